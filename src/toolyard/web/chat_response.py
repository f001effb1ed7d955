"""The response of a chat.

A stream sends a comment, or what its protocol has for it, every ``KEEP_ALIVE_S`` seconds while nothing else is sent.
When the client disconnects, the chat is cancelled at once.
"""

import asyncio
from collections.abc import Coroutine
from contextlib import aclosing
from http import HTTPStatus
from typing import Any, Final

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from toolyard.gateway.turns.rendering import ClientAnswer
from toolyard.web.server.connection import DISCONNECTION, Disconnection

KEEP_ALIVE_S: Final = 5.0
_STREAM = (b"content-type", b"text/event-stream; charset=utf-8")
_JSON = (b"content-type", b"application/json")


class ChatResponse(Response):
    """A response that is produced while it is sent, and cancelled when its client disconnects."""

    background = None
    __slots__ = ("_answer", "_is_client_gone", "_is_ending", "_sending")

    def __init__(self, answer: ClientAnswer | Coroutine[Any, Any, ClientAnswer]) -> None:
        self._answer = answer  # a coroutine: its headers are known only once it runs
        self._sending: asyncio.Task[object] | None = None
        self._is_client_gone = False
        self._is_ending = False  # from here on the connection may end normally

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 as ASGI has it
        self._sending = sending = asyncio.current_task()
        departure: Disconnection = scope[DISCONNECTION]
        departure.set_callback(self._cancel_sending)
        try:
            await self._send(send)
        except asyncio.CancelledError:
            if not self._is_client_gone or (sending is not None and sending.uncancel() > 0):
                raise
        finally:
            departure.set_callback(None)

    def _cancel_sending(self) -> None:
        if self._sending is not None and not self._is_ending:
            self._is_client_gone = True
            self._sending.cancel()

    async def _send(self, send: Send) -> None:
        answer = self._answer
        del self._answer  # a finished coroutine still holds all its memory
        if not isinstance(answer, ClientAnswer):
            answer = await answer
        headers = [(name.lower().encode(), value.encode("latin-1")) for name, value in answer.all_headers.items()]
        if answer.pieces is None:
            headers += [_JSON, (b"content-length", str(len(answer.body)).encode())]
            await send({"type": "http.response.start", "status": int(answer.status), "headers": headers})
            self._is_ending = True
            await send({"type": "http.response.body", "body": answer.body})
            return
        async with aclosing(answer.pieces) as pieces:
            await send({"type": "http.response.start", "status": HTTPStatus.OK.value, "headers": [*headers, _STREAM]})
            alive = _KeepAlive(send, answer.keep_alive)
            try:
                async for piece in pieces:
                    alive.reset()
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
            finally:
                alive.stop()
        self._is_ending = True
        await send({"type": "http.response.body", "body": b""})


class _KeepAlive:
    """Sends ``piece``, which says nothing, while nothing else is sent."""

    __slots__ = ("_last", "_loop", "_piece", "_send", "_sending", "_timer")

    def __init__(self, send: Send, piece: bytes) -> None:
        self._send, self._piece = send, piece
        self._loop = asyncio.get_running_loop()
        self._last = self._loop.time()
        self._timer = self._loop.call_later(KEEP_ALIVE_S, self._check)
        self._sending: asyncio.Task[None] | None = None

    def reset(self) -> None:
        self._last = self._loop.time()

    def stop(self) -> None:
        self._timer.cancel()
        if self._sending is not None:
            self._sending.cancel()

    def _check(self) -> None:
        now = self._loop.time()
        due = self._last + KEEP_ALIVE_S
        if now >= due:
            self._last, due = now, now + KEEP_ALIVE_S
            self._sending = asyncio.create_task(self._send_piece())
        self._timer = self._loop.call_at(due, self._check)

    async def _send_piece(self) -> None:
        await self._send({"type": "http.response.body", "body": self._piece, "more_body": True})
