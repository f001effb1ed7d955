"""``/v1/backend/stream``: one ``backend_only`` message per finished call, as server-sent events or over a WebSocket.

Both carry the same frame: the message itself, as raw JSON. Server-sent events have its cursor as ``id`` beside it, so
that a reader comes back with ``Last-Event-ID`` where it was; a WebSocket has no place for one. A frame of the type
``gap`` tells that what followed the cursor is no longer kept. A key that is no admin's hears of
its own calls, until the key is removed or its session has ended. A reader is sent the next message when it has taken
the last: nothing is held for a slow one.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from http import HTTPStatus
from typing import Annotated, Any, Final, cast

from fastapi import APIRouter, Header, Query, Response, WebSocket
from fastapi.responses import StreamingResponse
from starlette.websockets import WebSocketDisconnect

from toolyard.app import Yard
from toolyard.engine.backend import BackendMessage, BackendStream
from toolyard.engine.clock import Clock
from toolyard.protocol.json import JsonObject, json_bytes
from toolyard.web.access import Access, Visitor
from toolyard.web.answers import Who, own_only
from toolyard.web.edge import VISITOR
from toolyard.web.refusal import bad_request
from toolyard.web.sockets import deny

KEEP_ALIVE_S: Final = 15.0
LOOK_S: Final = 1.0  # how often a waiting stream looks whether it may go on
GAP: Final[JsonObject] = {"type": "gap"}
_MOST_DIGITS = 18
_EVENTS: dict[str, Any] = {
    "responses": {
        "200": {"description": "Server-sent events.", "content": {"text/event-stream": {"schema": {"type": "string"}}}}
    }
}
Asked = Callable[[], bool]
Cursor = Annotated[str, Query(description="The id of the last message that was read; none: only what comes.")]


def router(yard: Yard, clock: Clock, access: Access, ending: Asked) -> APIRouter:
    routes = APIRouter(prefix="/v1/backend", tags=["backend"])
    stream = BackendStream(yard.store, clock)

    def told(after: int, who: Visitor) -> AsyncIterator[BackendMessage | None]:
        return _told(stream, after, own_only(who), lambda: not ending() and access.still_in(who))

    @routes.get("/stream", openapi_extra=_EVENTS)
    async def follow(who: Who, cursor: Cursor = "", last_event_id: Annotated[str, Header()] = "") -> Response:
        """One message of seed 004 for every call that ends, failures included."""
        after = await _after(stream, cursor or last_event_id)
        if after is None:
            raise bad_request("'cursor' is the id of the last message that was read")
        return StreamingResponse(
            _events(told(after, who)), media_type="text/event-stream", headers={"Cache-Control": "no-store"}
        )

    @routes.websocket("/stream")
    async def connect(socket: WebSocket) -> None:
        visitor = cast("Visitor", socket.scope[VISITOR])
        after = await _after(stream, socket.query_params.get("cursor", ""))
        if after is None:
            await deny(socket, HTTPStatus.BAD_REQUEST, "'cursor' is the number of the last message that was read")
            return
        await socket.accept("bearer" if "bearer" in socket.scope["subprotocols"] else None)
        await _serve(socket, told(after, visitor))

    return routes


async def _after(stream: BackendStream, text: str) -> int | None:
    if not text:
        return await stream.newest_cursor()
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS else None


async def _told(
    stream: BackendStream, after: int, caller: str | None, goes_on: Asked
) -> AsyncIterator[BackendMessage | None]:
    """The messages, and None whenever there was none for a while; as long as it goes on."""
    async with contextlib.aclosing(stream.messages(after, caller=caller)) as messages:
        waiting: asyncio.Task[BackendMessage] | None = None
        try:
            while goes_on():
                waiting = waiting or asyncio.ensure_future(anext(messages))
                await asyncio.wait({waiting}, timeout=LOOK_S)
                if waiting.done() and goes_on():
                    message = waiting.result()
                    waiting = None
                    yield message
                else:
                    yield None
        finally:
            if waiting is not None:
                waiting.cancel()
                await asyncio.gather(waiting, return_exceptions=True)


async def _events(told: AsyncIterator[BackendMessage | None]) -> AsyncIterator[bytes]:
    silent_s = 0.0
    yield b": the stream begins\n\n"
    async for message in told:
        silent_s = silent_s + LOOK_S if message is None else 0.0
        if message is None:
            if silent_s >= KEEP_ALIVE_S:
                silent_s = 0.0
                yield b": nothing new\n\n"
        elif message.body is None:
            yield b"id: %d\nevent: gap\ndata: %s\n\n" % (message.seq, json_bytes(GAP))
        else:
            yield b"id: %d\ndata: %s\n\n" % (message.seq, json_bytes(message.body))


async def _serve(socket: WebSocket, told: AsyncIterator[BackendMessage | None]) -> None:
    hearing = asyncio.ensure_future(_hear(socket))
    sending = asyncio.ensure_future(_send(socket, told))
    try:
        await asyncio.wait({hearing, sending}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for work in (hearing, sending):
            work.cancel()
        await asyncio.gather(hearing, sending, return_exceptions=True)
    with contextlib.suppress(RuntimeError, OSError, WebSocketDisconnect):
        await socket.close()


async def _send(socket: WebSocket, told: AsyncIterator[BackendMessage | None]) -> None:
    async for message in told:
        if message is not None:
            await socket.send_text(json_bytes(GAP if message.body is None else message.body).decode())


async def _hear(socket: WebSocket) -> None:
    """Clients have nothing to say: what they send is thrown away, until they leave."""
    while (await socket.receive())["type"] != "websocket.disconnect":
        pass
