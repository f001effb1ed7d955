"""A WebSocket client that follows the feed, with its own encoding of messages.

Clients are sent one message at a time, in turns, so that many of them hold up nobody. Their messages are bounded too:
one over 64 KiB closes the socket with 1009, more than ``RATE`` in a second or an invalid one with 1008. A client that
reads too slowly is closed with 1013 and may come back with its cursor; one that answers no ping for 20 s is dead.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final

import orjson
from starlette.responses import Response
from starlette.websockets import WebSocket, WebSocketDisconnect

from toolyard.protocol.json import JsonObject
from toolyard.web.feed import ClientEvent, Feed, Follower
from toolyard.web.refusal import error_body
from toolyard.web.security.access import Access
from toolyard.web.security.scope import Principal

MAX_MESSAGE: Final = 64 * 1024
MESSAGE_LIMIT: Final = "toolyard.message_limit"  # key of the ASGI scope: a function that sets another limit
PING_S: Final = 20.0
RATE: Final = 50
_CLOSE_S = 30.0  # for a dropped client to read the rest
_POLL_S = 5.0
TOO_SLOW: Final = 1013
INVALID_MESSAGE: Final = 1008
SIGNED_OUT = 1008

EncodeEvent = Callable[[ClientEvent], list[str]]
ReceiveMessage = Callable[[JsonObject], Awaitable[bool]]
"""Handles a message of a client; returns False when it is invalid."""


class WebSocketClient:
    def __init__(
        self,
        socket: WebSocket,
        feed: Feed,
        access: Access,
        principal: Principal,
        *,
        encode: EncodeEvent,
        receive: ReceiveMessage,
    ) -> None:
        self._socket, self._feed, self._access, self._principal = socket, feed, access, principal
        self._encode, self._receive = encode, receive

    async def serve(self, follower: Follower) -> None:
        """Serve an accepted socket until either side ends it."""
        code = 1000
        works = [
            asyncio.ensure_future(work)
            for work in (
                self._send_all(follower),
                self._receive_all(),
                _wait_until_dropped(follower.dropped),
                self._watch_access(),
            )
        ]
        try:
            done, _ = await asyncio.wait(works, return_when=asyncio.FIRST_COMPLETED)
            code = next(work for work in works if work in done).result()
        except (WebSocketDisconnect, OSError):
            return  # the client has left
        finally:
            for work in works:
                work.cancel()
            await asyncio.gather(*works, return_exceptions=True)
        with contextlib.suppress(TimeoutError, RuntimeError, OSError, WebSocketDisconnect):
            async with asyncio.timeout(_CLOSE_S):
                await self._socket.close(code)

    async def _send_all(self, follower: Follower) -> int:
        async with contextlib.aclosing(self._feed.follow(follower)) as messages:
            async for message in messages:
                for text in self._encode(message):
                    await self._socket.send({"type": "websocket.send", "text": text})
                await asyncio.sleep(0)
        return TOO_SLOW

    async def _receive_all(self) -> int:
        loop = asyncio.get_running_loop()
        since, count = loop.time(), 0
        while True:
            message = await self._socket.receive()
            if message["type"] == "websocket.disconnect":
                raise WebSocketDisconnect(message.get("code") or 1006)
            now = loop.time()
            since, count = (since, count + 1) if now - since < 1 else (now, 1)
            value = _parse_object(message.get("text"))
            if count > RATE or value is None or not await self._receive(value):
                return INVALID_MESSAGE

    async def _watch_access(self) -> int:
        """Return when the session has ended or the key is removed."""
        while self._access.is_still_valid(self._principal):  # noqa: ASYNC110 the end of a session raises no event
            await asyncio.sleep(_POLL_S)
        return SIGNED_OUT


async def deny_websocket(socket: WebSocket, status: HTTPStatus, problem: str) -> None:
    """Refuse a WebSocket with an HTTP error."""
    await socket.send_denial_response(Response(error_body(status, problem), status, media_type="application/json"))


async def _wait_until_dropped(dropped: asyncio.Event) -> int:
    await dropped.wait()
    return TOO_SLOW


def _parse_object(text: str | None) -> JsonObject | None:
    try:
        value = orjson.loads(text or "")
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None
