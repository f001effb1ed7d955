"""Responses over HTTP: ``/v1/responses``."""

from functools import partial
from typing import Any
from uuid import uuid4

from fastapi import Request, Response

from toolyard.gateway.client_request import ClientRequest
from toolyard.gateway.protocols.responses.response_turns import ResponseTurns
from toolyard.gateway.turns.rendering import ClientAnswer
from toolyard.web.chat_response import ChatResponse
from toolyard.web.idempotency import KEY, KEY_HELP, IdempotentRequests, SingleRun
from toolyard.web.responses import parse_object
from toolyard.web.routing import DirectAnswers, Routes
from toolyard.web.schemas.chat import ProviderErrorBody
from toolyard.web.schemas.common import ErrorBody
from toolyard.web.schemas.components import refer_to
from toolyard.web.schemas.responses import ResponseObject, ResponsesRequest
from toolyard.web.security.scope import Scope, get_principal

PATH = "/v1/responses"
_REQUEST_SCHEMA: dict[str, Any] = {
    "parameters": [{"name": KEY, "in": "header", "description": KEY_HELP, "schema": {"type": "string"}}],
    "requestBody": {
        "required": True,
        "description": "A request of OpenAI's Responses; unknown fields are passed to a provider that speaks it.",
        "content": {"application/json": {"schema": refer_to(ResponsesRequest)}},
    },
}
_RESPONSE: dict[int | str, dict[str, Any]] = {
    200: {
        "model": ResponseObject,
        "description": "The response, as JSON or as server-sent events.",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    },
    "default": {"model": ErrorBody | ProviderErrorBody, "description": "An error, ours or the provider's."},
}


def router(turns: ResponseTurns, idempotent: IdempotentRequests) -> Routes:
    routes = Routes(PATH, tag="responses", scope=Scope.CHAT)

    @routes.post("", openapi_extra=_REQUEST_SCHEMA, responses=_RESPONSE, response_model=None)
    async def create_response(request: Request) -> Response:
        """Create a response; tools that the model calls are run on the server."""
        return await create(turns, idempotent, request)

    return routes


def direct_answers(turns: ResponseTurns, idempotent: IdempotentRequests) -> DirectAnswers:
    return {PATH: partial(create, turns, idempotent)}


async def create(turns: ResponseTurns, idempotent: IdempotentRequests, request: Request) -> Response:
    principal = get_principal(request.scope)
    raw = await request.body()
    sent = ClientRequest(
        parse_object(raw),
        caller=principal.caller,
        raw=raw,
        headers=request.headers,
        may_approve=principal.can_approve,
        key_offer=principal.offer,
    )
    if KEY not in request.headers:
        return ChatResponse(turns.create(sent))
    single = await idempotent.single_run(request, principal.caller, chat=f"chat_{uuid4().hex}")
    return ChatResponse(_create_once(turns, sent, single))


async def _create_once(turns: ResponseTurns, sent: ClientRequest, single: SingleRun) -> ClientAnswer:
    return single.mark(await turns.create(sent, single))
