"""Anthropic's Messages over HTTP: ``/v1/messages`` and the count of a request's tokens."""

from functools import partial
from typing import Any

from fastapi import Request, Response

from toolyard.gateway.chats import Chat
from toolyard.gateway.client_request import ClientRequest
from toolyard.gateway.faults import ChatFailed
from toolyard.gateway.protocols.messages.client_answer import MessagesRendering
from toolyard.gateway.protocols.messages.client_request import MessagesRequest, read_messages_request
from toolyard.gateway.protocols.messages.token_count import estimate_input_tokens
from toolyard.gateway.turns.display import Show
from toolyard.gateway.turns.rendering import render_failure
from toolyard.protocol.json import JsonObject
from toolyard.web.chat_response import ChatResponse
from toolyard.web.idempotency import KEY, KEY_HELP, IdempotentRequests
from toolyard.web.responses import json_response, parse_object
from toolyard.web.routes.chats import answer_chat
from toolyard.web.routing import DirectAnswers, Routes
from toolyard.web.schemas.components import refer_to
from toolyard.web.schemas.messages import MessagesAnswer, MessagesBody, MessagesError, TokenCount
from toolyard.web.security.middleware import REQUEST_ID
from toolyard.web.security.request_head import MESSAGES_PATH
from toolyard.web.security.scope import Scope, get_principal

ESTIMATED: dict[str, str] = {"X-Toolyard-Estimate": "true"}  # the tokens were not counted by the provider
_BODY: dict[str, Any] = {
    "required": True,
    "description": "A request of Anthropic's Messages protocol; unknown fields reach a provider that speaks it.",
    "content": {"application/json": {"schema": refer_to(MessagesBody)}},
}
_REQUEST: dict[str, Any] = {
    "parameters": [{"name": KEY, "in": "header", "description": KEY_HELP, "schema": {"type": "string"}}],
    "requestBody": _BODY,
}
_ERROR: dict[int | str, dict[str, Any]] = {
    "default": {"model": MessagesError, "description": "An error, in Anthropic's shape."}
}
_ANSWER: dict[int | str, dict[str, Any]] = {
    200: {
        "model": MessagesAnswer,
        "description": "The message, as JSON or as server-sent events.",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    },
    **_ERROR,
}


def router(chat: Chat, idempotent: IdempotentRequests) -> Routes:
    routes = Routes("/v1", tag="chat")

    @routes.post("/messages", openapi_extra=_REQUEST, responses=_ANSWER, response_model=None, scope=Scope.CHAT)
    async def create(request: Request) -> Response:
        """Complete a chat for a client of Anthropic's Messages; tools that the model calls are run on the server."""
        return await _create(chat, idempotent, request)

    @routes.post(
        "/messages/count_tokens",
        TokenCount,
        openapi_extra={"requestBody": _BODY},
        responses=_ERROR,
        response_model=None,
        scope=Scope.CHAT,
    )
    async def count_tokens(request: Request) -> Response:
        """Count the tokens of a request. With `X-Toolyard-Estimate: true` they are estimated: the provider has no
        count."""
        return await _count(request)

    return routes


def direct_answers(chat: Chat, idempotent: IdempotentRequests) -> DirectAnswers:
    return {MESSAGES_PATH: partial(_create, chat, idempotent)}


async def _create(chat: Chat, idempotent: IdempotentRequests, request: Request) -> Response:
    body = parse_object(await request.body())
    try:
        read = read_messages_request(body, request.headers)
    except ChatFailed as failed:
        return ChatResponse(render_failure(_render(request, body), failed.fault))
    principal = get_principal(request.scope)
    asked = ClientRequest(
        read.body,
        caller=principal.caller,
        headers=request.headers,
        show=Show.EVENTS if read.lists_server else None,
        may_approve=principal.can_approve,
        key_offer=principal.offer,
        identity=read.identity,
        conversation=read.conversation,
    )
    return await answer_chat(chat, idempotent, request, asked, _render(request, body, read))


def _render(request: Request, body: JsonObject, read: MessagesRequest | None = None) -> MessagesRendering:
    return MessagesRendering(
        is_streamed=read is not None and read.is_streamed,
        input_tokens=estimate_input_tokens(body),
        request_id=request.scope.get(REQUEST_ID, ""),
        hides_thinking=read is not None and read.hides_thinking,
    )


async def _count(request: Request) -> Response:
    body = parse_object(await request.body())
    try:
        read_messages_request(body, request.headers)
    except ChatFailed as failed:
        return ChatResponse(render_failure(_render(request, body), failed.fault))
    return json_response({"input_tokens": estimate_input_tokens(body)}, headers=ESTIMATED)
