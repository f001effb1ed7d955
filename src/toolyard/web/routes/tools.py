"""``/v1/tools``: what there is to call, and calling it.

A call answers 200 with any envelope: a tool that fails is no fault of the server. When the client goes away before its
call has ended, the call is cancelled, unless it has an ``Idempotency-Key``: then it goes on, and a repeat joins it.
"""

import asyncio
import re
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Annotated, Any, Literal
from uuid import uuid4

from fastapi import APIRouter, Header, Query, Request, Response

from toolyard.app import Yard
from toolyard.gateway.chat import ChatRun
from toolyard.protocol.call import Origin, ToolCall
from toolyard.protocol.call_record import CALL
from toolyard.protocol.failure import Failure
from toolyard.protocol.json import MAX_VALUES, JsonObject, json_bytes, json_problem, json_value
from toolyard.protocol.outcome import Outcome
from toolyard.web.access import Visitor
from toolyard.web.answers import Who, answer, own_only
from toolyard.web.client import CALL_HEADER, STATUS_HEADER, TASKS_HEADER
from toolyard.web.idempotency import KEY, KEY_HELP
from toolyard.web.idempotent_runs import IdempotentRuns, IdempotentWork
from toolyard.web.refusal import Refusal, bad_request, not_found
from toolyard.web.shapes import EnvelopeShown
from toolyard.web.shapes_plugins import ToolRow, ToolRows
from toolyard.web.tool_view import describe

_ARGUMENTS: JsonObject = {
    "requestBody": {
        "description": "The arguments of the tool.",
        "content": {"application/json": {"schema": {"type": "object"}}},
    }
}
_CALL_ID = re.compile(r"call_[0-9a-f]{32}")
_CALLER = re.compile(r"cli|yard:[0-9a-f]{32}")
Dialect = Literal["envelope", "vcp", "backend", "openai", "mcp"]


def router(yard: Yard, runs: IdempotentRuns) -> APIRouter:
    routes = APIRouter(prefix="/v1/tools", tags=["tools"])

    @routes.get("", responses={200: {"model": ToolRows}})
    async def list_tools() -> Response:
        """Every tool that can be called now."""
        return answer({"data": [describe(yard, tool) for tool in yard.tools]})

    @routes.get("/{name}", responses={200: {"model": ToolRow}})
    async def show_tool(name: str) -> Response:
        """One tool: what a model reads about it, and its parameters."""
        try:
            return answer(describe(yard, yard.tools.get(yard.tools.resolve_name(name))))
        except Failure as failure:
            raise not_found(f"tool called '{name[:100]}'") from failure

    @routes.post("/{name}", responses={200: {"model": EnvelopeShown | dict[str, Any]}}, openapi_extra=_ARGUMENTS)
    async def call_tool(
        name: str,
        request: Request,
        who: Who,
        dialect: Annotated[Dialect, Query(description="The shape of the answer.")] = "envelope",
        shown: Annotated[bool, Query(description="As a model sees it, cut when it is too long.")] = False,
        force: Annotated[bool, Query(description="Write over a file that was not read; needs `admin`.")] = False,
        caller: Annotated[str, Query(description="`cli`: as the command line of this project; needs `admin`.")] = "",
        call_id: Annotated[str, Query(description="`call_` and 32 hex digits: the id to give it; needs `admin`.")] = "",
        retry_of: Annotated[
            str,
            Query(max_length=200, description="The call that this one repeats; one that you cannot see is ignored."),
        ] = "",
        idempotency_key: Annotated[
            str | None,
            Header(alias=KEY, description=KEY_HELP),
        ] = None,
    ) -> Response:
        """Run a tool; the body is its arguments."""
        asked = _Asked(name, dialect, shown, force, caller, call_id, retry_of)
        if idempotency_key is None:
            call, outcome = await _run(yard, who, asked, request)
            return answer(_express(yard, asked, call, outcome), headers=_beside(call, outcome))
        own_id = call_id if _CALL_ID.fullmatch(call_id) else f"call_{uuid4().hex}"

        async def run() -> ChatRun:
            call, outcome = await _run(yard, who, asked, request, own_id=own_id)
            return ChatRun(id="", body=json_bytes(_express(yard, asked, call, outcome)), headers=_beside(call, outcome))

        return await runs.answer(request, idempotency_key, who.caller, IdempotentWork(run=run, call=own_id))

    return routes


@dataclass(frozen=True, slots=True)
class _Asked:
    """What the address of a request says about its call."""

    tool: str
    dialect: Dialect
    shown: bool
    force: bool
    caller: str
    call_id: str
    retry_of: str


async def _run(
    yard: Yard, who: Visitor, asked: _Asked, request: Request, *, own_id: str = ""
) -> tuple[ToolCall, Outcome]:
    """Run the call of a request; one with an id of its own also when its client has gone."""
    arguments = read_arguments(await request.body())
    later = arguments.pop("timely_contact", None)
    call = yard.request(asked.tool, arguments, caller=who.caller, origin=Origin.HTTP)
    if asked.retry_of and await _may_see(yard, who, asked.retry_of):
        call = replace(call, retry_of=asked.retry_of)
    if asked.force or asked.caller or asked.call_id:
        call = await _as_the_owner(yard, who, call, caller=asked.caller, call_id=asked.call_id, force=asked.force)
    call = replace(call, id=own_id or call.id)
    if later is not None:
        return call, await yard.submit(call, at=str(later))
    return call, await (yard.settle(call) if own_id else until_gone(yard, call, request))


def _express(yard: Yard, asked: _Asked, call: ToolCall, outcome: Outcome) -> JsonObject:
    return yard.express(call, outcome, asked.dialect, shown=asked.shown)


async def _may_see(yard: Yard, who: Visitor, call_id: str) -> bool:
    """A call may repeat one that is forgotten by now: that is no reason not to run it."""
    found = await yard.store.get(CALL, call_id)
    return found is not None and own_only(who) in (None, found.caller)


def _beside(call: ToolCall, outcome: Outcome) -> dict[str, str]:
    """What a client can know of a call without reading its answer, whatever the dialect."""
    told = {CALL_HEADER: call.id, STATUS_HEADER: outcome.envelope.status.value}
    tasks = outcome.envelope.data.get("tasks")
    ids = (
        [str(task["id"]) for task in tasks if isinstance(task, dict) and "id" in task]
        if isinstance(tasks, list)
        else []
    )
    return {**told, TASKS_HEADER: ",".join(ids)} if ids else told


def read_arguments(body: bytes) -> JsonObject:
    try:
        value = json_value(body or b"{}")
    except (ValueError, RecursionError) as error:
        raise bad_request(f"the body is not valid JSON: {error}") from error
    if not isinstance(value, dict):
        raise bad_request('the body must be a JSON object of arguments, such as {"path": "src"}')
    problem = json_problem(value, "body", most=MAX_VALUES)
    if problem:
        raise bad_request(problem)
    return value


async def until_gone(yard: Yard, call: ToolCall, request: Request) -> Outcome:
    """Run a call; it is cancelled when whoever asked for it has gone."""
    await request.body()  # what is received after it is that they go
    running = asyncio.ensure_future(yard.settle(call))
    watching = asyncio.ensure_future(request.receive())
    try:
        await asyncio.wait({running, watching}, return_when=asyncio.FIRST_COMPLETED)
        if not running.done():
            yard.cancel(call.id)
        return await running
    finally:
        for work in (running, watching):
            work.cancel()


async def _as_the_owner(
    yard: Yard, who: Visitor, call: ToolCall, *, caller: str, call_id: str, force: bool
) -> ToolCall:
    """What only a person on this machine may say about a call."""
    if not who.is_admin:
        raise Refusal(HTTPStatus.FORBIDDEN, "'caller', 'call_id' and 'force' take the scope admin")
    if caller and not _CALLER.fullmatch(caller):
        raise bad_request("'caller' is 'cli', or 'yard:' and 32 hex digits")
    if call_id and not _CALL_ID.fullmatch(call_id):
        raise bad_request("'call_id' is 'call_' and 32 hex digits")
    if call_id and await yard.journal.get(call_id) is not None:
        raise Refusal(HTTPStatus.CONFLICT, f"there has been a call {call_id} already")
    if caller == "cli":
        call = replace(call, caller=f"cli:{yard.config.project.resolve()}", origin=Origin.CLI)
    elif caller:
        call = replace(call, caller=caller, origin=Origin.PYTHON)
    return replace(call, id=call_id or call.id, force=force)
