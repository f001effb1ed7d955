"""Requests that are passed to the model's provider unchanged: embeddings, images, audio, moderations, completions."""

import re
from collections.abc import Callable
from typing import Any, Final

from fastapi import APIRouter, Request, Response

from toolyard.gateway.chat import Chat
from toolyard.gateway.providers.passthrough import FORM, Incoming, PassThrough
from toolyard.message import Message
from toolyard.web.forwarded_response import ForwardedResponse
from toolyard.web.refusal import not_found
from toolyard.web.schemas.chat import ProviderErrorBody
from toolyard.web.schemas.common import ErrorBody

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


def router(chat: Chat, mask: Callable[[str], str]) -> APIRouter:
    routes = APIRouter(prefix="/v1", tags=["passthrough"])
    passthrough = PassThrough(lambda: chat.upstreams, mask)

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

    @routes.post(
        "/embeddings", response_model=None, responses=_ERRORS, openapi_extra=_make_openapi_extra(needs="input")
    )
    async def create_embeddings(request: Request) -> Response:
        """Create embeddings at the provider of the model."""
        return forward(request, "/embeddings")

    @routes.post(
        "/completions", response_model=None, responses=_ERRORS, openapi_extra=_make_openapi_extra(needs="prompt")
    )
    async def complete_text(request: Request) -> Response:
        """Complete a text with OpenAI's legacy API at the provider of the model; no tools run."""
        return forward(request, "/completions")

    @routes.post(
        "/moderations", response_model=None, responses=_ERRORS, openapi_extra=_make_openapi_extra(needs="input")
    )
    async def moderate(request: Request) -> Response:
        """Classify text or images with a moderation model at its provider."""
        return forward(request, "/moderations")

    @routes.post(
        "/images/{operation}", response_model=None, responses=_ERRORS, openapi_extra=_make_openapi_extra(form=True)
    )
    async def make_images(operation: str, request: Request) -> Response:
        """Images: `generations`, `edits`, `variations` or another operation of the model's provider."""
        return forward(request, f"/images/{_require_operation(operation)}")

    @routes.post(
        "/audio/{operation}", response_model=None, responses=_ERRORS, openapi_extra=_make_openapi_extra(form=True)
    )
    async def use_audio(operation: str, request: Request) -> Response:
        """Audio: `speech`, `transcriptions`, `translations` or another operation of the model's provider."""
        return forward(request, f"/audio/{_require_operation(operation)}")

    return routes


def _require_operation(operation: str) -> str:
    if not _OPERATION.fullmatch(operation):
        raise not_found(
            Message("http.operation", "such operation: its name has only lower-case letters, digits, '_' and '-'")
        )
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
