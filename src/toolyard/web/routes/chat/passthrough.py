"""Requests that are passed to the model's provider unchanged: embeddings, images, audio, moderations, completions.

Their answers come back byte for byte. When the client disconnects, the provider's answer is closed at once. A stream of
events that breaks off ends with an error event; for other types the connection is closed, because nothing else shows a
client that bytes are missing.
"""

import logging
import re
from collections.abc import Callable, Coroutine
from contextlib import aclosing, closing
from typing import Any, Final

from fastapi import Request, Response
from starlette.types import Send

from toolyard.gateway.chats import Chat
from toolyard.gateway.faults import ChatFailed, ChatFault, server_stopping
from toolyard.gateway.protocols.chat import CHAT
from toolyard.gateway.providers.forwarded_answer import ForwardedAnswer
from toolyard.gateway.providers.passthrough import FORM, Incoming, PassThrough
from toolyard.gateway.turns.rendering import Rendering
from toolyard.message import Message
from toolyard.web.chat_response import ChatResponse
from toolyard.web.refusal import not_found
from toolyard.web.routing import Endpoint, Routes
from toolyard.web.schemas.chat import ProviderErrorBody
from toolyard.web.schemas.common import ErrorBody
from toolyard.web.security.scope import Scope

_OPERATION: Final = re.compile(r"[a-z][a-z0-9_-]{0,63}")
_TEXTS: dict[str, Any] = {"anyOf": [{"type": "string"}, {"type": "array", "items": {}}]}
_BINARY: dict[str, Any] = {"schema": {"type": "string", "format": "binary"}}
_ERRORS: dict[int | str, dict[str, Any]] = {
    "default": {"model": ErrorBody | ProviderErrorBody, "description": "An error, ours or the provider's."}
}
_ANSWER: dict[str, Any] = {
    "200": {
        "description": "The provider's response, byte for byte.",
        "content": {
            "application/json": {"schema": {}},
            "text/event-stream": {"schema": {"type": "string"}},
            "*/*": _BINARY,
        },
    }
}


def router(chat: Chat, mask: Callable[[str], str]) -> Routes:
    routes = Routes("/v1", tag="passthrough")
    passthrough = PassThrough(lambda: chat.upstreams, mask)

    def forwards(path: str, schema: dict[str, Any]) -> Callable[[Endpoint], Endpoint]:
        return routes.post(path, response_model=None, responses=_ERRORS, openapi_extra=schema, scope=Scope.CHAT)

    def forward(request: Request, path: str) -> Response:
        length = request.headers.get("content-length", "")
        incoming = Incoming(
            path=path,
            content_type=request.headers.get("content-type", ""),
            pieces=aiter(request.stream()),
            length=int(length) if length.isdecimal() else None,
            accept=request.headers.get("accept", ""),
        )
        return ForwardedResponse(passthrough.forward(incoming), mask, chat)

    @forwards("/embeddings", _make_openapi_extra(needs="input"))
    async def create_embeddings(request: Request) -> Response:
        """Create embeddings at the provider of the model."""
        return forward(request, "/embeddings")

    @forwards("/completions", _make_openapi_extra(needs="prompt"))
    async def complete_text(request: Request) -> Response:
        """Complete a text with OpenAI's legacy API at the provider of the model; no tools run."""
        return forward(request, "/completions")

    @forwards("/moderations", _make_openapi_extra(needs="input"))
    async def moderate(request: Request) -> Response:
        """Classify text or images with a moderation model at its provider."""
        return forward(request, "/moderations")

    @forwards("/images/{operation}", _make_openapi_extra(form=True))
    async def make_images(operation: str, request: Request) -> Response:
        """Images: `generations`, `edits`, `variations` or another operation of the model's provider."""
        return forward(request, f"/images/{_require_operation(operation)}")

    @forwards("/audio/{operation}", _make_openapi_extra(form=True))
    async def use_audio(operation: str, request: Request) -> Response:
        """Audio: `speech`, `transcriptions`, `translations` or another operation of the model's provider."""
        return forward(request, f"/audio/{_require_operation(operation)}")

    return routes


def _require_operation(operation: str) -> str:
    if not _OPERATION.fullmatch(operation):
        raise not_found(Message("such operation: its name has only lower-case letters, digits, '_' and '-'"))
    return operation


def _make_openapi_extra(*, needs: str = "", form: bool = False) -> dict[str, Any]:
    """Describe a body that has a member ``needs`` and whatever else the provider takes."""
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"model": {"type": "string"}, **({needs: _TEXTS} if needs else {})},
        "required": [needs] if needs else [],
        "additionalProperties": True,
    }
    content = {"application/json": {"schema": schema}, **({FORM: {"schema": schema}} if form else {})}
    return {"requestBody": {"required": True, "content": content}, "responses": _ANSWER}


_log = logging.getLogger("toolyard.web")
_EVENTS: Final = "text/event-stream"
_BYTES = "application/octet-stream"
_KINDS = (
    "application/json", "application/x-ndjson", _BYTES, _EVENTS, "text/plain", "text/vtt", "application/x-subrip",
    "audio/", "image/png", "image/jpeg", "image/webp", "image/gif", "video/",
)  # fmt: skip


class ForwardedResponse(ChatResponse):
    __slots__ = ("_chat", "_forwarding", "_mask", "_rendering")

    def __init__(
        self,
        making: Coroutine[Any, Any, ForwardedAnswer],
        mask: Callable[[str], str],
        chat: Chat,
        rendering: Rendering = CHAT,
    ) -> None:
        """``chat`` ends it when the server stops; ``rendering`` writes its faults."""
        self._forwarding, self._mask, self._chat, self._rendering = making, mask, chat, rendering
        self._sending, self._is_client_gone, self._is_ending = None, False, False

    async def _send(self, send: Send) -> None:
        try:
            forwarded = await self._forwarding
        except ChatFailed as failed:
            await self._refuse(send, self._find_fault(failed))
            return
        with closing(forwarded), self._chat.ended_by_stop(forwarded.close):
            kind = safe_content_type(forwarded.content_type)
            headers = [(b"content-type", kind.encode("latin-1"))]
            await send({"type": "http.response.start", "status": int(forwarded.status), "headers": headers})
            try:
                async with aclosing(forwarded.pieces()) as pieces:
                    async for piece in pieces:
                        await send({"type": "http.response.body", "body": piece, "more_body": True})
            except ChatFailed as failed:
                fault = self._find_fault(failed)
                if not kind.startswith(_EVENTS):
                    _log.warning("%s, so the client connection is closed", fault.message)
                    return  # without an end, so the server closes the connection
                await send({"type": "http.response.body", "body": self._write_event(fault), "more_body": True})
        self._is_ending = True
        await send({"type": "http.response.body", "body": b""})

    def _write_event(self, fault: ChatFault) -> bytes:
        name = b"" if self._rendering is CHAT else b"event: error\n"
        return b"%bdata: %b\n\n" % (name, self._rendering.write_fault(fault))

    def _find_fault(self, failed: ChatFailed) -> ChatFault:
        return server_stopping() if self._chat.is_stopping else failed.fault.mask_secrets(self._mask)

    async def _refuse(self, send: Send, fault: ChatFault) -> None:
        body = self._rendering.write_fault(fault)
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        if fault.retry_after:
            headers.append((b"retry-after", fault.retry_after.encode("latin-1")))
        await send({"type": "http.response.start", "status": int(fault.status), "headers": headers})
        self._is_ending = True
        await send({"type": "http.response.body", "body": body})


def safe_content_type(content_type: str) -> str:
    """Return the content type of a response, or a binary one if a browser could take it for a page of ours."""
    is_header = content_type.isascii() and content_type.isprintable()
    return content_type if is_header and content_type.strip().lower().startswith(_KINDS) else _BYTES
