"""WebSockets: one client that follows the feed, whatever shape it wants its messages in.

Clients are sent one message at a time, in turns, so that many of them hold up nobody. What they say is bounded too: a
message over 64 KiB closes with 1009, more than ``RATE`` in a second or one that makes no sense with 1008. A client that
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
from toolyard.web.access import Access, Visitor
from toolyard.web.feed import Feed, Follower, Told
from toolyard.web.refusal import error_body

MAX_MESSAGE: Final = 64 * 1024
PING_S: Final = 20.0
RATE: Final = 50
_CLOSE_S = 30.0  # for a client that was dropped to read what is left
_LOOK_S = 5.0
TOO_SLOW: Final = 1013
NONSENSE: Final = 1008
_SIGNED_OUT = 1008

Say = Callable[[Told], list[str]]
Hear = Callable[[JsonObject], Awaitable[bool]]
"""Takes what a client says; False when it makes no sense."""


class Client:
    def __init__(
        self, socket: WebSocket, feed: Feed, access: Access, visitor: Visitor, *, say: Say, hear: Hear
    ) -> None:
        self._socket, self._feed, self._access, self._visitor = socket, feed, access, visitor
        self._say, self._hear = say, hear

    async def serve(self, follower: Follower) -> None:
        """Until either side ends it. The socket was accepted."""
        code = 1000
        works = [
            asyncio.ensure_future(work)
            for work in (self._send_all(follower), self._hear_all(), _waits(follower.dropped), self._watch())
        ]
        try:
            done, _ = await asyncio.wait(works, return_when=asyncio.FIRST_COMPLETED)
            code = next(work for work in works if work in done).result()
        except (WebSocketDisconnect, OSError):
            return  # it has gone by itself
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
                for text in self._say(message):
                    await self._socket.send({"type": "websocket.send", "text": text})
                await asyncio.sleep(0)
        return TOO_SLOW

    async def _hear_all(self) -> int:
        loop = asyncio.get_running_loop()
        since, count = loop.time(), 0
        while True:
            message = await self._socket.receive()
            if message["type"] == "websocket.disconnect":
                raise WebSocketDisconnect(message.get("code") or 1006)
            now = loop.time()
            since, count = (since, count + 1) if now - since < 1 else (now, 1)
            said = _object(message.get("text"))
            if count > RATE or said is None or not await self._hear(said):
                return NONSENSE

    async def _watch(self) -> int:
        """Whoever signs out, or whose key is removed, hears no more."""
        while self._access.still_in(self._visitor):  # noqa: ASYNC110 nobody tells when a session ends
            await asyncio.sleep(_LOOK_S)
        return _SIGNED_OUT


async def deny(socket: WebSocket, status: HTTPStatus, problem: str) -> None:
    """Let nobody in, and say why."""
    await socket.send_denial_response(Response(error_body(status, problem), status, media_type="application/json"))


async def _waits(dropped: asyncio.Event) -> int:
    await dropped.wait()
    return TOO_SLOW


def _object(text: str | None) -> JsonObject | None:
    try:
        value = orjson.loads(text or "")
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None
