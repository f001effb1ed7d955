"""Responses over a WebSocket: each message ``response.create`` is a request, and its events are messages.

One response is made after the other. The newest stays on the socket: the next may follow it although it is not stored,
until one fails. A client that leaves stops what runs for it.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from http import HTTPStatus
from typing import Final

import orjson
from fastapi import WebSocket
from starlette.websockets import WebSocketDisconnect

from toolyard.gateway.chat_request import ClientRequest
from toolyard.gateway.protocols.responses.response_turns import ResponseTurns
from toolyard.gateway.protocols.responses.stored_responses import Session
from toolyard.gateway.sse import DONE, Events, data_of
from toolyard.message import Message
from toolyard.protocol.json import JsonObject, json_bytes, json_value
from toolyard.web.security.request_body import MAX_CHAT
from toolyard.web.security.scope import Principal, get_principal
from toolyard.web.server.websocket_client import MESSAGE_LIMIT, SIGNED_OUT, TOO_SLOW

MAX_WAITING: Final = 8  # requests that wait for their turn
_UNSENT = ("type", "stream", "stream_options", "background")


async def serve_socket(socket: WebSocket, turns: ResponseTurns, is_still_valid: Callable[[Principal], bool]) -> None:
    if set_limit := socket.scope.get(MESSAGE_LIMIT):
        set_limit(MAX_CHAT)
    await socket.accept()
    await _Connection(socket, turns, is_still_valid).serve()


class _Connection:
    def __init__(self, socket: WebSocket, turns: ResponseTurns, is_still_valid: Callable[[Principal], bool]) -> None:
        self._socket, self._turns, self._is_still_valid = socket, turns, is_still_valid
        self._principal = get_principal(socket.scope)
        self._session = Session()
        self._waiting: deque[str] = deque()
        self._news = asyncio.Event()

    async def serve(self) -> None:
        answering = asyncio.create_task(self._answer_all())
        try:
            while len(self._waiting) < MAX_WAITING:
                message = await self._socket.receive()
                if message["type"] == "websocket.disconnect":
                    return
                if not self._is_still_valid(self._principal):
                    await self._socket.close(SIGNED_OUT)
                    return
                self._waiting.append(message.get("text") or "")
                self._news.set()
            await self._socket.close(TOO_SLOW)
        except WebSocketDisconnect:
            pass
        finally:
            answering.cancel()
            with suppress(asyncio.CancelledError, WebSocketDisconnect, RuntimeError):
                await answering

    async def _answer_all(self) -> None:
        while True:
            while not self._waiting:
                self._news.clear()
                await self._news.wait()
            await self._answer(self._waiting.popleft())

    async def _answer(self, text: str) -> None:
        try:
            message = orjson.loads(text)
        except orjson.JSONDecodeError:
            message = None
        if not isinstance(message, dict) or message.get("type") != "response.create":
            problem = Message("send a JSON object with the type 'response.create'")
            error: JsonObject = {"type": "invalid_request_error", "code": "invalid_request", "message": problem}
            await self._send_error(HTTPStatus.BAD_REQUEST, {**error, "param": "type"})
            return
        body: JsonObject = {key: value for key, value in message.items() if key not in _UNSENT} | {"stream": True}
        sent = ClientRequest(
            body,
            caller=self._principal.caller,
            headers=self._socket.headers,
            may_approve=self._principal.can_approve,
            key_offer=self._principal.offer,
        )
        answer = await self._turns.create(sent, session=self._session)
        if answer.pieces is None:
            self._session.forget(body.get("previous_response_id"))
            await self._send_error(answer.status, json_value(answer.body)["error"])
        else:
            await self._send_events(answer.pieces)

    async def _send_events(self, streamed: AsyncGenerator[bytes, None]) -> None:
        parser = Events()
        async with aclosing(streamed) as pieces:
            async for piece in pieces:
                for event in parser.feed(piece):
                    if (data := data_of(event)) is not None and event != DONE.strip():
                        await self._socket.send({"type": "websocket.send", "text": data.decode()})

    async def _send_error(self, status: int, error: JsonObject) -> None:
        text = json_bytes({"type": "error", "status": int(status), "error": error}).decode()
        await self._socket.send({"type": "websocket.send", "text": text})
