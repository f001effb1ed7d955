"""Anthropic's Messages over HTTP: ``/v1/messages`` and the count of a request's tokens.

A request that involves no tool goes to a provider that speaks Messages as it came.
"""

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from typing import Any, Literal

from fastapi import Request, Response
from pydantic import BaseModel

from toolyard.gateway.chat_request import ClientRequest
from toolyard.gateway.chats import Chat
from toolyard.gateway.faults import ChatFailed
from toolyard.gateway.native_requests import is_plain, make_outgoing, speaks
from toolyard.gateway.offer_policy import split_alias
from toolyard.gateway.protocols.messages.client_answer import MessagesRendering
from toolyard.gateway.protocols.messages.client_request import BETA_HEADER, MessagesRequest, read_messages_request
from toolyard.gateway.protocols.messages.token_count import estimate_input_tokens
from toolyard.gateway.providers.forwarded_answer import Outgoing
from toolyard.gateway.turns.display import Show
from toolyard.gateway.turns.rendering import render_failure
from toolyard.protocol.json import JsonObject
from toolyard.provider_settings import ProviderProtocol
from toolyard.web.answers import json_response, parse_object
from toolyard.web.chat_response import ChatResponse
from toolyard.web.idempotency import KEY, KEY_HELP, IdempotentRequests
from toolyard.web.routes.chat.chats import answer_chat
from toolyard.web.routes.chat.passthrough import ForwardedResponse
from toolyard.web.routing import DirectAnswers, Routes
from toolyard.web.schemas.chat import MessageBlock, MessagesBody, MessagesError
from toolyard.web.schemas.common import OpenModel
from toolyard.web.schemas.components import refer_to
from toolyard.web.security.middleware import REQUEST_ID
from toolyard.web.security.request_head import MESSAGES_PATH
from toolyard.web.security.scope import Scope, get_principal


class MessagesUsage(OpenModel):
    input_tokens: int
    output_tokens: int


class MessagesAnswer(OpenModel):
    id: str
    type: Literal["message"]
    role: Literal["assistant"]
    model: str
    content: list[MessageBlock]
    stop_reason: str | None
    stop_sequence: str | None
    usage: MessagesUsage


class TokenCount(BaseModel):
    input_tokens: int


Mask = Callable[[str], str]
_PROTOCOL = ProviderProtocol.ANTHROPIC
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


def router(chat: Chat, idempotent: IdempotentRequests, mask: Mask) -> Routes:
    routes = Routes("/v1", tag="chat")

    @routes.post("/messages", openapi_extra=_REQUEST, responses=_ANSWER, response_model=None, scope=Scope.CHAT)
    async def create(request: Request) -> Response:
        """Complete a chat for a client of Anthropic's Messages; tools that the model calls are run on the server."""
        return await _create(chat, idempotent, mask, request)

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
        return await _count(chat, mask, request)

    return routes


def direct_answers(chat: Chat, idempotent: IdempotentRequests, mask: Mask) -> DirectAnswers:
    return {MESSAGES_PATH: partial(_create, chat, idempotent, mask)}


async def _create(chat: Chat, idempotent: IdempotentRequests, mask: Mask, request: Request) -> Response:
    raw = await request.body()
    body = parse_object(raw)
    rendering = _render(request, body)
    principal = get_principal(request.scope)
    try:
        read = read_messages_request(body, request.headers)
        rendering = replace(rendering, is_streamed=read.is_streamed, hides_thinking=read.hides_thinking)
        asked = ClientRequest(
            read.body,
            caller=principal.caller,
            headers=request.headers,
            show=Show.EVENTS if read.lists_server else None,
            may_approve=principal.can_approve,
            key_offer=principal.offer,
            identity=read.identity,
            conversation=read.conversation,
            own_calls=read.own_calls,
        )
        if KEY in request.headers or not await is_plain(chat, asked, _PROTOCOL):
            return await answer_chat(chat, idempotent, request, asked, rendering)
    except ChatFailed as failed:
        return ChatResponse(render_failure(rendering, failed.fault))
    outgoing = _make_outgoing("/messages", raw, body, read, mask, request)
    making = chat.upstreams.forward(split_alias(read.model)[0], outgoing, _PROTOCOL)
    return ForwardedResponse(making, mask, chat, rendering)


def _render(request: Request, body: JsonObject) -> MessagesRendering:
    request_id = request.scope.get(REQUEST_ID, "")
    return MessagesRendering(is_streamed=False, input_tokens=estimate_input_tokens(body), request_id=request_id)


def _make_outgoing(
    path: str, raw: bytes, body: JsonObject, read: MessagesRequest, mask: Mask, request: Request
) -> Callable[[str], Outgoing]:
    betas = request.headers.get(BETA_HEADER)
    same = raw if read.native_body is body else b""
    return make_outgoing(path, same, read.native_body, mask, {BETA_HEADER: betas} if betas else {})


async def _count(chat: Chat, mask: Mask, request: Request) -> Response:
    raw = await request.body()
    body = parse_object(raw)
    try:
        read = read_messages_request(body, request.headers)
        model = split_alias(read.model)[0]
        if await speaks(chat, model, _PROTOCOL):
            outgoing = _make_outgoing("/messages/count_tokens", raw, body, read, mask, request)
            with closing(await chat.upstreams.forward(model, outgoing, _PROTOCOL)) as counted:
                answer = b"".join([piece async for piece in counted.pieces()])
            return Response(answer, media_type="application/json")
    except ChatFailed as failed:
        if failed.fault.status not in (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED):
            return ChatResponse(render_failure(_render(request, body), failed.fault.mask_secrets(mask)))
    return json_response({"input_tokens": estimate_input_tokens(body)}, headers=ESTIMATED)
