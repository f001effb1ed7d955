"""Chat over HTTP: ``/v1/chat/completions``, following and interrupting.

When the client disconnects, its turn is cancelled, unless the chat has an id chosen by the client: such a reply goes on
and can be followed again. So does one whose request has an ``Idempotency-Key``: a repeat of the request joins it.
"""

from functools import partial
from typing import Annotated, Any, Literal
from uuid import uuid4

from fastapi import Query, Request, Response
from pydantic import BaseModel, Field

from toolyard.gateway.chat_request import ClientRequest, name_of_chat
from toolyard.gateway.chats import Chat
from toolyard.gateway.turns.display import Show
from toolyard.gateway.turns.rendering import ClientAnswer, Rendering
from toolyard.gateway.vcp_blocks import HANDLES, find_handle
from toolyard.message import Message
from toolyard.settings import OfferMode
from toolyard.web.answers import CurrentPrincipal, json_response, parse_object
from toolyard.web.chat_response import ChatResponse
from toolyard.web.idempotency import KEY, KEY_HELP, IdempotentRequests, SingleRun
from toolyard.web.refusal import bad_request, not_found
from toolyard.web.routing import DirectAnswers, Routes
from toolyard.web.schemas.chat import ChatMessage, ChatRequest, ChatUsage, InterruptRequest, ProviderErrorBody
from toolyard.web.schemas.common import ErrorBody, OpenModel
from toolyard.web.schemas.components import refer_to
from toolyard.web.security.scope import Scope, get_principal


class ChatChoice(OpenModel):
    index: int
    message: ChatMessage
    finish_reason: str | None = None


class ChatCompletion(OpenModel):
    id: str
    object: str
    created: int
    model: str
    choices: list[ChatChoice]
    usage: ChatUsage | None = None


class InterruptResult(BaseModel):
    status: Literal["success"]
    message: str


class ChatOffer(BaseModel):
    mode: OfferMode
    tools: list[str]
    tokens: int
    left_out: list[str]
    searchable: Annotated[int, Field(description="The number of tools that a search may find.")]


class ChatRound(BaseModel):
    sent: Annotated[Any, Field(description="The request to the model; as a text if it was cut.")]


class ChatWork(BaseModel):
    round: int
    tool: str
    state: str
    text: str


class ChatDetail(BaseModel):
    id: str
    model: str
    started: float
    state: str
    error: str | None
    offer: ChatOffer
    unfilled: Annotated[list[str], Field(description="The names of placeholders in its prompt that nothing fills.")]
    rounds: list[ChatRound]
    work: list[ChatWork]
    cursor: Annotated[int | None, Field(description="The newest event of its stream; null if it cannot be followed.")]


_MAX_DIGITS = 18
_MAX_ID_LENGTH = 128
_REQUEST_SCHEMA: dict[str, Any] = {
    "parameters": [{"name": KEY, "in": "header", "description": KEY_HELP, "schema": {"type": "string"}}],
    "requestBody": {
        "required": True,
        "description": "A request of OpenAI's chat protocol; unknown fields are passed to the model unchanged.",
        "content": {
            "application/json": {
                "schema": refer_to(ChatRequest),
            }
        },
    },
}
_COMPLETION: dict[int | str, dict[str, Any]] = {
    200: {
        "model": ChatCompletion,
        "description": "The completion, as JSON or as server-sent events.",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    },
    "default": {"model": ErrorBody | ProviderErrorBody, "description": "An error, ours or the provider's."},
}
_INTERRUPT_SCHEMA: dict[str, Any] = {
    "requestBody": {"required": True, "content": {"application/json": {"schema": refer_to(InterruptRequest)}}}
}
_EVENTS: dict[str, Any] = {
    "responses": {
        "200": {"description": "Server-sent events.", "content": {"text/event-stream": {"schema": {"type": "string"}}}}
    }
}


def router(chat: Chat, idempotent: IdempotentRequests) -> Routes:
    routes = Routes("/v1", tag="chat")

    async def complete(request: Request) -> Response:
        """Complete a chat; tools that the model calls are run on the server."""
        return await _complete(chat, idempotent, request, vcp=False)

    async def complete_vcp(request: Request) -> Response:
        """Complete a chat for clients of VCPToolBox, with tool requests and information blocks in the text."""
        return await _complete(chat, idempotent, request, vcp=True)

    for path, answers in (("/chat/completions", complete), ("/chatvcp/completions", complete_vcp)):
        routes.post(path, openapi_extra=_REQUEST_SCHEMA, responses=_COMPLETION, response_model=None, scope=Scope.CHAT)(
            answers
        )

    @routes.post("/interrupt", InterruptResult, openapi_extra=_INTERRUPT_SCHEMA, response_model=None, scope=Scope.CHAT)
    async def interrupt(request: Request, principal: CurrentPrincipal) -> Response:
        """Stop a running turn, its model and its tools, by `requestId` (or `messageId`) or by `chat`."""
        body = parse_object(await request.body())
        handle, id_ = find_handle(body), body.get("chat")
        if not handle and not isinstance(id_, str):
            raise bad_request(Message("name what to stop: {value} or chat", value=HANDLES[0]))
        if not chat.interrupt(caller=principal.caller, request_id=handle, chat=id_ if isinstance(id_, str) else ""):
            raise not_found(Message("such running request"))
        return json_response({"status": "success", "message": "interrupted"})

    @routes.get("/chats/{id}", ChatDetail, scope=Scope.CHAT)
    async def show_chat(id: str, principal: CurrentPrincipal) -> Response:  # noqa: A002 it is the word of the OpenAPI
        """Return what was sent to the model in each round, and the tool calls; secrets are masked."""
        record = chat.record(id, principal.caller)
        if record is None:
            raise not_found(Message("chat '{id}' of this key", id=id[:100]))
        return json_response(record)

    @routes.get("/chats/{id}/stream", response_class=Response, openapi_extra=_EVENTS, scope=Scope.CHAT)
    async def follow(
        id: str,  # noqa: A002
        request: Request,
        principal: CurrentPrincipal,
        cursor: Annotated[int, Query(ge=0, le=2**53, description="The `id` of the last event seen.")] = 0,
    ) -> Response:
        """Stream the events of a chat after the cursor until its reply has ended."""
        seen = request.headers.get("last-event-id", "")
        pieces = chat.follow(
            id, int(seen) if seen.isdecimal() and len(seen) <= _MAX_DIGITS else cursor, principal.caller
        )
        if pieces is None:
            raise not_found(Message("chat '{id}' of this key to follow", id=id[:100]))
        return ChatResponse(ClientAnswer(id=id, pieces=pieces))

    return routes


def direct_answers(chat: Chat, idempotent: IdempotentRequests) -> DirectAnswers:
    """Return what answers chats past FastAPI; their routes in ``router`` describe them in the OpenAPI document."""
    return {
        "/v1/chat/completions": partial(_complete, chat, idempotent, vcp=False),
        "/v1/chatvcp/completions": partial(_complete, chat, idempotent, vcp=True),
    }


async def _complete(chat: Chat, idempotent: IdempotentRequests, request: Request, *, vcp: bool) -> Response:
    principal = get_principal(request.scope)
    raw = await request.body()
    body = parse_object(raw)
    asked = ClientRequest(
        body,
        caller=principal.caller,
        raw=raw,
        headers=request.headers,
        show=Show.RAW if vcp else None,
        may_approve=principal.can_approve,
        key_offer=principal.offer,
    )
    return await answer_chat(chat, idempotent, request, asked)


async def answer_chat(
    chat: Chat,
    idempotent: IdempotentRequests,
    request: Request,
    asked: ClientRequest,
    rendering: Rendering | None = None,
) -> Response:
    """Answer the request of a client; one with a key runs once."""
    if KEY not in request.headers:
        return ChatResponse(chat.complete(asked, rendering=rendering))
    named = name_of_chat(asked.body, request.headers)[:_MAX_ID_LENGTH]
    single = await idempotent.single_run(request, asked.caller, chat=named or f"chat_{uuid4().hex}")
    return ChatResponse(_complete_once(chat, asked, single, rendering))


async def _complete_once(
    chat: Chat, asked: ClientRequest, single: SingleRun, rendering: Rendering | None
) -> ClientAnswer:
    return single.mark(await chat.complete(asked, single, rendering))
