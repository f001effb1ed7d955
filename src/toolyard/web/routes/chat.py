"""Chat over HTTP: ``/v1/chat/completions`` and what belongs to it.

When the client leaves, its turn ends with it, unless the chat has an id of the client's: such a reply goes on and can
be followed again. So does one whose request has an ``Idempotency-Key``: a repeat of the request joins it.
"""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Annotated, Any
from uuid import uuid4

import orjson
from fastapi import APIRouter, Query, Request, Response
from fastapi.routing import APIRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from toolyard.gateway.chat import Chat, ChatRun
from toolyard.gateway.options import name_of_chat
from toolyard.gateway.vcp import HANDLES, find_handle
from toolyard.protocol.json import JsonObject
from toolyard.web.access import Visitor
from toolyard.web.answers import Who, answer
from toolyard.web.edge import VISITOR
from toolyard.web.idempotency import KEY, KEY_HELP
from toolyard.web.idempotent_runs import IdempotentRuns, IdempotentWork
from toolyard.web.refusal import Refusal, bad_request, not_found
from toolyard.web.running import Running
from toolyard.web.scope import needed
from toolyard.web.shapes import RecordShown

_MOST_DIGITS = 18
_LONGEST_ID = 128
_APPROVERS = needed("/v1/approvals")
_ASKED: dict[str, Any] = {
    "parameters": [{"name": KEY, "in": "header", "description": KEY_HELP, "schema": {"type": "string"}}],
    "requestBody": {
        "required": True,
        "description": "A request of OpenAI's chat protocol; what is not known here goes to the model as it is.",
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "required": ["messages"],
                    "properties": {
                        "model": {"type": "string"},
                        "messages": {"type": "array", "minItems": 1, "items": {"type": "object"}},
                        "stream": {"type": "boolean"},
                    },
                }
            }
        },
    },
    "responses": {
        "200": {
            "description": "The answer, whole or as server-sent events.",
            "content": {"application/json": {"schema": {"type": "object"}}, "text/event-stream": {"schema": {}}},
        }
    },
}
_EVENTS: dict[str, Any] = {
    "responses": {
        "200": {"description": "Server-sent events.", "content": {"text/event-stream": {"schema": {"type": "string"}}}}
    }
}


def router(chat: Chat, runs: IdempotentRuns) -> APIRouter:
    routes = APIRouter(prefix="/v1", tags=["chat"])

    async def complete(request: Request) -> Response:
        """Answer a chat; tools that the model asks for run on the way."""
        return await _completed(chat, runs, request, vcp=False)

    async def complete_vcp(request: Request) -> Response:
        """The same for clients of VCPToolBox: with the requests themselves and its information blocks."""
        return await _completed(chat, runs, request, vcp=True)

    for path, answers in (("/chat/completions", complete), ("/chatvcp/completions", complete_vcp)):
        routes.add_api_route(
            path, answers, methods=["POST"], openapi_extra=_ASKED, route_class_override=_Direct, response_model=None
        )

    @routes.post("/interrupt", response_model=None)
    async def interrupt(request: Request, who: Who) -> Response:
        """Stop a running turn, its model and its tools; by `requestId` (or `messageId`) or by `chat`."""
        said = _object(await request.body())
        handle, id_ = find_handle(said), said.get("chat")
        if not handle and not isinstance(id_, str):
            raise bad_request(f"say what to stop: {HANDLES[0]} or chat")
        if not chat.interrupt(caller=who.caller, request_id=handle, chat=id_ if isinstance(id_, str) else ""):
            raise not_found("such request that is running")
        return answer({"status": "success", "message": "interrupted"})

    @routes.get("/chats/{id}", responses={200: {"model": RecordShown}})
    async def show_chat(id: str, who: Who) -> Response:  # noqa: A002 it is the word of the OpenAPI
        """What was really sent to the model in each round, and what the tools did; secrets are masked."""
        record = chat.record(id, who.caller)
        if record is None:
            raise not_found(f"chat '{id[:100]}' of yours")
        return answer(record)

    @routes.get("/chats/{id}/stream", openapi_extra=_EVENTS)
    async def follow(
        id: str,  # noqa: A002
        request: Request,
        who: Who,
        cursor: Annotated[int, Query(ge=0, le=2**53, description="The `id` of the last event that was seen.")] = 0,
    ) -> Response:
        """Every event of a chat behind the cursor, once; until its reply has ended."""
        seen = request.headers.get("last-event-id", "")
        pieces = chat.follow(id, int(seen) if seen.isdecimal() and len(seen) <= _MOST_DIGITS else cursor, who.caller)
        if pieces is None:
            raise not_found(f"chat '{id[:100]}' of yours that can be followed")
        return Running(ChatRun(id=id, pieces=pieces))

    return routes


class _Direct(APIRoute):
    """A route without parameters: solving them takes longer than all that a chat needs."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        answers: Callable[[Request], Coroutine[Any, Any, Response]] = self.endpoint
        return answers


@dataclass(frozen=True, slots=True)
class _Route:
    path: str  # as metrics and logs name it


_SHORT = {"/v1/chat/completions": False, "/v1/chatvcp/completions": True}


def shortcut(app: ASGIApp, chat: Chat, runs: IdempotentRuns) -> ASGIApp:
    """The same application, but chats do not pass by all of its other routes: that takes as long as the chat itself."""
    routes = {path: (_Route(path), vcp) for path, vcp in _SHORT.items()}

    async def direct(scope: Scope, receive: Receive, send: Send) -> None:
        found = routes.get(scope["path"]) if scope["type"] == "http" and scope["method"] == "POST" else None
        if found is None:
            await app(scope, receive, send)
            return
        scope["route"], vcp = found
        response = await _completed(chat, runs, Request(scope, receive), vcp=vcp)
        await response(scope, receive, send)

    return direct


async def _completed(chat: Chat, runs: IdempotentRuns, request: Request, *, vcp: bool) -> Response:
    visitor, key = visitor_of(request), request.headers.get(KEY)
    raw = await request.body()
    body = _object(raw)
    complete = partial(
        chat.complete,
        body,
        caller=visitor.caller,
        may_approve=visitor.may(_APPROVERS),
        raw=raw,
        vcp=vcp,
        headers=request.headers,
        key_offer=visitor.offer,
    )
    if key is None:
        return Running(complete())
    run_id = f"chat_{uuid4().hex}"
    id_ = name_of_chat(body, request.headers)[:_LONGEST_ID] or run_id
    work = IdempotentWork(
        run=partial(complete, run_id=run_id),
        chat=id_,
        wait_early=partial(chat.wait_early, id_, visitor.caller),
        unfollowed_s=chat.followed_s,
    )
    return await runs.answer(request, key, visitor.caller, work)


def visitor_of(request: Request) -> Visitor:
    visitor = request.scope.get(VISITOR)
    if not isinstance(visitor, Visitor):
        raise Refusal(HTTPStatus.UNAUTHORIZED, "send the key as 'Authorization: Bearer KEY'")
    return visitor


def _object(raw: bytes) -> JsonObject:
    try:
        body = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise bad_request(f"the body is not valid JSON: {error}") from error
    if not isinstance(body, dict):
        raise bad_request("the body must be a JSON object")
    return body
