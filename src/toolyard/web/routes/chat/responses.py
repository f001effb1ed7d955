"""Responses over HTTP: ``/v1/responses``, and as messages of a WebSocket on the same path (``responses_socket``)."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Literal
from uuid import uuid4

from fastapi import Query, Request, Response, WebSocket
from pydantic import BaseModel, Field

from toolyard.engine.chats.responses import KeptResponse
from toolyard.gateway.chat_request import ClientRequest
from toolyard.gateway.faults import ChatFailed
from toolyard.gateway.protocols.chat import CHAT
from toolyard.gateway.protocols.responses.response_turns import ResponseTurns
from toolyard.gateway.turns.rendering import ClientAnswer, render_failure
from toolyard.message import Message
from toolyard.protocol.json import JsonObject
from toolyard.web.answers import CurrentPrincipal, json_response, parse_object
from toolyard.web.chat_response import ChatResponse
from toolyard.web.idempotency import KEY, KEY_HELP, IdempotentRequests, SingleRun
from toolyard.web.refusal import not_found
from toolyard.web.routes.chat.responses_socket import serve_socket
from toolyard.web.routing import DirectAnswers, Routes
from toolyard.web.schemas.chat import ProviderErrorBody, ResponsesRequest
from toolyard.web.schemas.common import ErrorBody, OpenModel
from toolyard.web.schemas.components import refer_to
from toolyard.web.security.scope import Principal, Scope, get_principal


class ResponseUsage(OpenModel):
    input_tokens: int
    output_tokens: int
    total_tokens: int


class ResponseObject(OpenModel):
    id: str
    object: Literal["response"]
    created_at: int
    status: str
    model: str
    output: list[dict[str, Any]]
    usage: ResponseUsage | None = None


class DeletedResponse(BaseModel):
    id: str
    object: Literal["response"]
    deleted: bool


class InputItemList(BaseModel):
    object: Literal["list"]
    data: list[dict[str, Any]]
    first_id: str | None
    last_id: str | None
    has_more: bool


class Estimate(BaseModel):
    estimate: Annotated[bool, Field(description="The number was not counted by the provider.")]


class InputTokens(BaseModel):
    object: Literal["response.input_tokens"]
    input_tokens: int
    toolyard: Estimate


class CompactedResponse(BaseModel):
    id: str
    object: Literal["response.compaction"]
    created_at: int
    output: list[dict[str, Any]]
    usage: ResponseUsage


PATH = "/v1/responses"
_REQUEST_BODY: dict[str, Any] = {
    "required": True,
    "description": "A request of OpenAI's Responses; unknown fields are passed to a provider that speaks it.",
    "content": {"application/json": {"schema": refer_to(ResponsesRequest)}},
}
_REQUEST_SCHEMA: dict[str, Any] = {
    "parameters": [{"name": KEY, "in": "header", "description": KEY_HELP, "schema": {"type": "string"}}],
    "requestBody": _REQUEST_BODY,
}
_RESPONSE: dict[int | str, dict[str, Any]] = {
    200: {
        "model": ResponseObject,
        "description": "The response, as JSON or as server-sent events.",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    },
    "default": {"model": ErrorBody | ProviderErrorBody, "description": "An error, ours or the provider's."},
}


def router(turns: ResponseTurns, idempotent: IdempotentRequests, is_still_valid: Callable[[Principal], bool]) -> Routes:
    """``is_still_valid``: whether the key or session of a client that stays connected still holds."""
    routes = Routes(PATH, tag="responses", scope=Scope.CHAT)

    @routes.post("", openapi_extra=_REQUEST_SCHEMA, responses=_RESPONSE, response_model=None)
    async def create_response(request: Request) -> Response:
        """Create a response; tools that the model calls are run on the server."""
        return await create(turns, idempotent, request)

    @routes.post("/input_tokens", InputTokens, openapi_extra={"requestBody": _REQUEST_BODY}, response_model=None)
    async def count_input_tokens(request: Request) -> Response:
        """Estimate the tokens of a request, rather too high than too low."""
        sent = to_sent(parse_object(await request.body()), get_principal(request.scope), request)
        return _to_response(await turns.count_tokens(sent))

    @routes.post("/compact", CompactedResponse, openapi_extra={"requestBody": _REQUEST_BODY}, response_model=None)
    async def compact_response(request: Request) -> Response:
        """Replace a conversation by a summary, which the model of the request writes."""
        sent = to_sent(parse_object(await request.body()), get_principal(request.scope), request)
        return _to_response(await turns.compact(sent))

    @routes.websocket("")
    async def serve(socket: WebSocket) -> None:
        await serve_socket(socket, turns, is_still_valid)

    _add_stored(routes, turns)
    return routes


def _add_stored(routes: Routes, turns: ResponseTurns) -> None:
    """Add the routes of stored responses."""

    @routes.get("/{id}", responses=_RESPONSE, response_model=None)
    async def get_response(
        id: str,  # noqa: A002 it is the word of the OpenAPI
        principal: CurrentPrincipal,
        stream: Annotated[bool, Query(description="Its events, of one in the background.")] = False,
        starting_after: Annotated[int, Query(ge=-1, le=2**53, description="The number of the last event seen.")] = -1,
    ) -> Response:
        """Return a stored response of this key, or the events of one in the background."""
        if stream:
            answer = await turns.follow(principal.caller, id, starting_after)
            if answer is None:
                raise not_found(_name(id))
            return ChatResponse(answer)
        return json_response(_require(await turns.get(principal.caller, id), id).response)

    @routes.delete("/{id}", DeletedResponse)
    async def delete_response(id: str, principal: CurrentPrincipal) -> Response:  # noqa: A002
        """Delete a stored response; one in the background is stopped."""
        if not await turns.delete(principal.caller, id):
            raise not_found(_name(id))
        return json_response({"id": id, "object": "response", "deleted": True})

    @routes.post("/{id}/cancel", responses=_RESPONSE, response_model=None)
    async def cancel_response(id: str, principal: CurrentPrincipal) -> Response:  # noqa: A002
        """Stop a response in the background, with its model and its tools."""
        try:
            kept = await turns.cancel(principal.caller, id)
        except ChatFailed as failed:
            return _to_response(render_failure(CHAT, failed.fault))
        return json_response(_require(kept, id).response)

    @routes.get("/{id}/input_items", InputItemList)
    async def list_input_items(
        id: str,  # noqa: A002
        principal: CurrentPrincipal,
        limit: Annotated[int, Query(ge=1, le=100)] = 20,
        order: Literal["asc", "desc"] = "desc",
        after: Annotated[str, Query(max_length=200, description="The id of the last item of the page before.")] = "",
    ) -> Response:
        """List the input of a stored response."""
        items = list(_require(await turns.get(principal.caller, id), id).items)
        return json_response(_to_page(items if order == "asc" else items[::-1], limit, after))


def direct_answers(turns: ResponseTurns, idempotent: IdempotentRequests) -> DirectAnswers:
    return {PATH: partial(create, turns, idempotent)}


async def create(turns: ResponseTurns, idempotent: IdempotentRequests, request: Request) -> Response:
    principal = get_principal(request.scope)
    raw = await request.body()
    sent = replace(to_sent(parse_object(raw), principal, request), raw=raw)
    if KEY not in request.headers:
        return ChatResponse(turns.create(sent))
    single = await idempotent.single_run(request, principal.caller, chat=f"chat_{uuid4().hex}")
    request_body = sent.body
    if request_body.get("background") is True and not sent.wants_stream:  # its answer is there at once
        return ChatResponse(idempotent.run_call(single, lambda: turns.create(sent)))
    return ChatResponse(_create_once(turns, sent, single))


def to_sent(body: JsonObject, principal: Principal, connection: Request | WebSocket) -> ClientRequest:
    """Return a request as its client sent it."""
    return ClientRequest(
        body,
        caller=principal.caller,
        headers=connection.headers,
        may_approve=principal.can_approve,
        key_offer=principal.offer,
    )


async def _create_once(turns: ResponseTurns, sent: ClientRequest, single: SingleRun) -> ClientAnswer:
    return single.mark(await turns.create(sent, single))


def _to_response(answer: ClientAnswer) -> Response:
    return Response(answer.body, answer.status, answer.all_headers, "application/json")


def _to_page(items: list[JsonObject], limit: int, after: str) -> JsonObject:
    begin = next((at for at, item in enumerate(items, 1) if item.get("id") == after), 0) if after else 0
    page = items[begin : begin + limit]
    ids = [item.get("id") for item in page] or [None]
    has_more = begin + limit < len(items)
    return {"object": "list", "data": [*page], "first_id": ids[0], "last_id": ids[-1], "has_more": has_more}


def _require(kept: KeptResponse | None, id_: str) -> KeptResponse:
    if kept is None:
        raise not_found(_name(id_))
    return kept


def _name(id_: str) -> Message:
    return Message("response '{id}' of this key", id=id_[:100])
