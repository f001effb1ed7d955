"""An answer of a chat on its way to the client.

A stream sends a comment every ``KEEP_ALIVE_S`` seconds while nothing else is sent. When the client leaves, the making
of the answer is cancelled at once, but not before ``WATCH_S``.
"""

import asyncio
from collections.abc import Coroutine
from http import HTTPStatus
from typing import Any, Final

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from toolyard.gateway.chat import ChatRun
from toolyard.gateway.sse import KEEP_ALIVE

KEEP_ALIVE_S: Final = 5.0
WATCH_S: Final = 0.05  # nobody looks whether a client has left before this: most answers are made by then
CHAT: Final = "X-Toolyard-Chat"
_STREAM = (b"content-type", b"text/event-stream; charset=utf-8")
_JSON = (b"content-type", b"application/json")


class Running(Response):
    """An answer that is made while it is sent, and no longer than somebody is there to read it."""

    background = None

    def __init__(self, run: ChatRun | Coroutine[Any, Any, ChatRun]) -> None:  # it has no headers before it is made
        self._run = run
        self._ending = False  # from here on the server itself says that the connection is over

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 as ASGI has it
        sending = asyncio.current_task()
        gone = False

        async def watch() -> None:
            nonlocal gone
            while (await receive())["type"] != "http.disconnect":
                pass
            if sending is not None and not self._ending:
                gone = True
                sending.cancel()

        watching: list[asyncio.Task[None]] = []
        timer = asyncio.get_running_loop().call_later(
            WATCH_S, lambda: watching.append(asyncio.create_task(watch(), name="toolyard-watch"))
        )
        try:
            await self._send(send)
        except asyncio.CancelledError:
            if not gone or (sending is not None and sending.uncancel() > 0):
                raise
        finally:
            timer.cancel()
            for task in watching:
                task.cancel()

    async def _send(self, send: Send) -> None:
        run: ChatRun = self._run if isinstance(self._run, ChatRun) else await self._run
        headers = [(name.lower().encode(), value.encode("latin-1")) for name, value in run.headers.items()]
        if run.id:
            headers.append((CHAT.lower().encode(), run.id.encode()))
        if run.pieces is None:
            headers += [_JSON, (b"content-length", str(len(run.body)).encode())]
            await send({"type": "http.response.start", "status": int(run.status), "headers": headers})
            self._ending = True
            await send({"type": "http.response.body", "body": run.body})
            return
        await send({"type": "http.response.start", "status": HTTPStatus.OK.value, "headers": [*headers, _STREAM]})
        alive = _KeepAlive(send)
        try:
            async for piece in run.pieces:
                alive.touched()
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        finally:
            alive.stop()
            await run.pieces.aclose()
        self._ending = True
        await send({"type": "http.response.body", "body": b""})


class _KeepAlive:
    """Says something now and then while there is nothing to say."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._loop = asyncio.get_running_loop()
        self._last = self._loop.time()
        self._timer = self._loop.call_later(KEEP_ALIVE_S, self._look)
        self._saying: asyncio.Task[None] | None = None

    def touched(self) -> None:
        self._last = self._loop.time()

    def stop(self) -> None:
        self._timer.cancel()
        if self._saying is not None:
            self._saying.cancel()

    def _look(self) -> None:
        now = self._loop.time()
        due = self._last + KEEP_ALIVE_S
        if now >= due:
            self._last, due = now, now + KEEP_ALIVE_S
            self._saying = asyncio.create_task(self._say())
        self._timer = self._loop.call_at(due, self._look)

    async def _say(self) -> None:
        await self._send({"type": "http.response.body", "body": KEEP_ALIVE, "more_body": True})
