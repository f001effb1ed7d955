"""An answer of a chat on its way to the client.

A stream sends a comment every ``KEEP_ALIVE_S`` seconds while nothing else is sent. When the client leaves, the making
of the answer is cancelled at once.
"""

import asyncio
from collections.abc import Coroutine
from contextlib import aclosing
from http import HTTPStatus
from typing import Any, Final

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from toolyard.gateway.chat import ChatRun
from toolyard.gateway.options import CHAT_HEADER
from toolyard.gateway.sse import KEEP_ALIVE
from toolyard.web.connection import DEPARTURE, Departure

KEEP_ALIVE_S: Final = 5.0
_STREAM = (b"content-type", b"text/event-stream; charset=utf-8")
_JSON = (b"content-type", b"application/json")


class Running(Response):
    """An answer that is made while it is sent, and no longer than somebody is there to read it."""

    background = None
    __slots__ = ("_ending", "_gone", "_run", "_sending")

    def __init__(self, run: ChatRun | Coroutine[Any, Any, ChatRun]) -> None:  # it has no headers before it is made
        self._run = run
        self._sending: asyncio.Task[object] | None = None
        self._gone = False
        self._ending = False  # from here on the server itself says that the connection is over

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 as ASGI has it
        self._sending = sending = asyncio.current_task()
        departure: Departure = scope[DEPARTURE]
        departure.then(self._leave)
        try:
            await self._send(send)
        except asyncio.CancelledError:
            if not self._gone or (sending is not None and sending.uncancel() > 0):
                raise
        finally:
            departure.then(None)

    def _leave(self) -> None:
        if self._sending is not None and not self._ending:
            self._gone = True
            self._sending.cancel()

    async def _send(self, send: Send) -> None:
        run = self._run
        del self._run  # a coroutine that has ended is still as large as all that it needed
        if not isinstance(run, ChatRun):
            run = await run
        headers = [(name.lower().encode(), value.encode("latin-1")) for name, value in run.headers.items()]
        if run.id:
            headers.append((CHAT_HEADER.lower().encode(), run.id.encode()))
        if run.pieces is None:
            headers += [_JSON, (b"content-length", str(len(run.body)).encode())]
            await send({"type": "http.response.start", "status": int(run.status), "headers": headers})
            self._ending = True
            await send({"type": "http.response.body", "body": run.body})
            return
        async with aclosing(run.pieces) as pieces:
            await send({"type": "http.response.start", "status": HTTPStatus.OK.value, "headers": [*headers, _STREAM]})
            alive = _KeepAlive(send)
            try:
                async for piece in pieces:
                    alive.touched()
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
            finally:
                alive.stop()
        self._ending = True
        await send({"type": "http.response.body", "body": b""})


class _KeepAlive:
    """Says something now and then while there is nothing to say."""

    __slots__ = ("_last", "_loop", "_saying", "_send", "_timer")

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
