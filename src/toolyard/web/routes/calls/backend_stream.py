"""``/v1/backend/stream``: one ``backend_only`` message per finished call, as server-sent events or over a WebSocket.

Both carry the message itself as raw JSON. Server-sent events have its cursor as ``id``, so that a reader can resume
with ``Last-Event-ID``; WebSocket frames have none. A frame of type ``gap`` means that messages after the cursor are no
longer kept. A key without ``admin`` gets its own calls only, until the key is removed or its session has ended. Nothing
is buffered for a slow reader: it gets the next message when it has taken the last.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from http import HTTPStatus
from typing import Annotated, Any, Final

from fastapi import Header, Query, Response, WebSocket
from fastapi.responses import StreamingResponse
from starlette.websockets import WebSocketDisconnect

from toolyard.engine.clock import Clock
from toolyard.engine.history.backend_messages import BackendMessage, BackendStream
from toolyard.message import Message
from toolyard.protocol.json import JsonObject, json_bytes
from toolyard.web.answers import CurrentPrincipal
from toolyard.web.refusal import bad_request
from toolyard.web.routing import Routes
from toolyard.web.security.access import Access
from toolyard.web.security.scope import Principal, Scope, get_principal
from toolyard.web.server.websocket_client import deny_websocket
from toolyard.yard.yard import Yard

KEEP_ALIVE_S: Final = 15.0
POLL_S: Final = 1.0  # how often a waiting stream checks whether it may continue
GAP: Final[JsonObject] = {"type": "gap"}
_MOST_DIGITS = 18
_EVENTS: dict[str, Any] = {
    "responses": {
        "200": {"description": "Server-sent events.", "content": {"text/event-stream": {"schema": {"type": "string"}}}}
    }
}
Condition = Callable[[], bool]
Cursor = Annotated[str, Query(description="The id of the last message read; without it, only new messages.")]


def router(yard: Yard, clock: Clock, access: Access, ending: Condition) -> Routes:
    routes = Routes("/v1/backend", tag="backend", scope=Scope.TOOLS)
    stream = BackendStream(yard.state.store, clock)

    def open_messages(after: int, principal: Principal) -> AsyncIterator[BackendMessage | None]:
        return _poll_messages(
            stream, after, principal.caller_filter, lambda: not ending() and access.is_still_valid(principal)
        )

    @routes.get("/stream", response_class=Response, openapi_extra=_EVENTS)
    async def follow(
        principal: CurrentPrincipal, cursor: Cursor = "", last_event_id: Annotated[str, Header()] = ""
    ) -> Response:
        """Stream one `backend_only` message per finished call, failures included."""
        after = await _parse_cursor(stream, cursor or last_event_id)
        if after is None:
            raise bad_request(Message("'cursor' must be the id of the last message read"))
        return StreamingResponse(
            _encode_events(open_messages(after, principal)),
            media_type="text/event-stream",
            headers={"Cache-Control": "no-store"},
        )

    @routes.websocket("/stream")
    async def connect(socket: WebSocket) -> None:
        principal = get_principal(socket.scope)
        after = await _parse_cursor(stream, socket.query_params.get("cursor", ""))
        if after is None:
            await deny_websocket(socket, HTTPStatus.BAD_REQUEST, "'cursor' must be the number of the last message read")
            return
        await socket.accept("bearer" if "bearer" in socket.scope["subprotocols"] else None)
        await _serve_socket(socket, open_messages(after, principal))

    return routes


async def _parse_cursor(stream: BackendStream, text: str) -> int | None:
    if not text:
        return await stream.newest_cursor()
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS else None


async def _poll_messages(
    stream: BackendStream, after: int, caller: str | None, goes_on: Condition
) -> AsyncIterator[BackendMessage | None]:
    """Yield messages, and None after ``POLL_S`` without one, while ``goes_on``."""
    async with contextlib.aclosing(stream.messages(after, caller=caller)) as messages:
        waiting: asyncio.Task[BackendMessage] | None = None
        try:
            while goes_on():
                waiting = waiting or asyncio.ensure_future(anext(messages))
                await asyncio.wait({waiting}, timeout=POLL_S)
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


async def _encode_events(messages: AsyncIterator[BackendMessage | None]) -> AsyncIterator[bytes]:
    silent_s = 0.0
    yield b": the stream begins\n\n"
    async for message in messages:
        silent_s = silent_s + POLL_S if message is None else 0.0
        if message is None:
            if silent_s >= KEEP_ALIVE_S:
                silent_s = 0.0
                yield b": nothing new\n\n"
        elif message.body is None:
            yield b"id: %d\nevent: gap\ndata: %s\n\n" % (message.seq, json_bytes(GAP))
        else:
            yield b"id: %d\ndata: %s\n\n" % (message.seq, json_bytes(message.body))


async def _serve_socket(socket: WebSocket, messages: AsyncIterator[BackendMessage | None]) -> None:
    hearing = asyncio.ensure_future(_discard_incoming(socket))
    sending = asyncio.ensure_future(_send_messages(socket, messages))
    try:
        await asyncio.wait({hearing, sending}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for work in (hearing, sending):
            work.cancel()
        await asyncio.gather(hearing, sending, return_exceptions=True)
    with contextlib.suppress(RuntimeError, OSError, WebSocketDisconnect):
        await socket.close()


async def _send_messages(socket: WebSocket, messages: AsyncIterator[BackendMessage | None]) -> None:
    async for message in messages:
        if message is not None:
            await socket.send_text(json_bytes(GAP if message.body is None else message.body).decode())


async def _discard_incoming(socket: WebSocket) -> None:
    """Discard what the client sends until it disconnects."""
    while (await socket.receive())["type"] != "websocket.disconnect":
        pass
