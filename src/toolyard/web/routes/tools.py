"""``/v1/tools``: list and call tools.

A call answers 200 with any envelope: a failing tool is no server error. Only a call that could not begin because there
is too much work is refused with 429. When the client disconnects before its call has
ended, the call is cancelled, unless it has an ``Idempotency-Key``: then it goes on, and a repeat joins it.
"""

import asyncio
import re
from collections.abc import Hashable
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Annotated
from uuid import uuid4

from fastapi import APIRouter, Header, Query, Request, Response

from toolyard.dialects import Dialect
from toolyard.gateway.chat import ChatRun
from toolyard.message import Message
from toolyard.protocol.call import Origin, ToolCall
from toolyard.protocol.call_record import CALL
from toolyard.protocol.failure import Failure, Reason
from toolyard.protocol.json import MAX_VALUES, JsonObject, json_bytes, json_problem, json_value
from toolyard.protocol.outcome import Outcome
from toolyard.web.idempotency import KEY, KEY_HELP
from toolyard.web.idempotent_runs import IdempotentRuns, IdempotentWork
from toolyard.web.refusal import Refusal, bad_request, not_found
from toolyard.web.responses import CurrentPrincipal, json_response
from toolyard.web.schemas.dialects import ToolResult
from toolyard.web.schemas.plugins import ToolRow, ToolRows, ToolSummaries
from toolyard.web.security.principal import Principal
from toolyard.web.server_client import CALL_ID_HEADER, STATUS_HEADER, TASKS_HEADER, cli_caller
from toolyard.web.views.tool import to_json, to_summary_json
from toolyard.yard.yard import Yard, require_dialect

_ARGUMENTS: JsonObject = {
    "requestBody": {
        "description": "The arguments of the tool.",
        "content": {"application/json": {"schema": {"type": "object"}}},
    }
}
_RETRY_S = 5  # unless the failure names another time
_CALL_ID = re.compile(r"call_[0-9a-f]{32}")
_CALLER = re.compile(r"cli|yard:[0-9a-f]{32}")


def summary_router(yard: Yard) -> APIRouter:
    routes = APIRouter(prefix="/v1/tool-summaries", tags=["tools"])
    listed: Hashable = None  # the version of the tools that the body lists
    body = b""

    @routes.get("", responses={200: {"model": ToolSummaries}})
    async def list_tool_summaries() -> Response:
        """List the available tools without their schemas, and with the first lines of their texts."""
        nonlocal listed, body
        version = yard.tools.version()
        if not body or version != listed:
            tools = list(yard.tools)
            built = await asyncio.to_thread(lambda: json_bytes({"data": [to_summary_json(yard, one) for one in tools]}))
            listed, body = version, built
            return Response(built, media_type="application/json")
        return Response(body, media_type="application/json")

    return routes


def router(yard: Yard, runs: IdempotentRuns) -> APIRouter:
    routes = APIRouter(prefix="/v1/tools", tags=["tools"])

    @routes.get("", responses={200: {"model": ToolRows}})
    async def list_tools() -> Response:
        """List the available tools, with everything about them; for a list to show there is `/v1/tool-summaries`."""
        tools = list(yard.tools)
        rows = await asyncio.to_thread(lambda: [to_json(yard, tool) for tool in tools])  # looks at files
        return await asyncio.to_thread(json_response, {"data": rows})

    @routes.get("/{name}", responses={200: {"model": ToolRow}})
    async def show_tool(name: str) -> Response:
        """Return one tool: its description for models and its parameters."""
        try:
            return json_response(to_json(yard, yard.tools.get(yard.tools.resolve_name(name))))
        except Failure as failure:
            raise not_found(Message("http.tool", "tool called '{name}'", name=name[:100])) from failure

    @routes.post("/{name}", responses={200: {"model": ToolResult}}, openapi_extra=_ARGUMENTS)
    async def call_tool(
        name: str,
        request: Request,
        principal: CurrentPrincipal,
        dialect: Annotated[Dialect, Query(description="The format of the result.")] = "envelope",
        shown: Annotated[bool, Query(description="The result as a model sees it, truncated if too long.")] = False,
        codes: Annotated[
            bool,
            Query(description="With the code and the parameters of the text, in the envelope's `context`."),
        ] = False,
        force: Annotated[bool, Query(description="Overwrite files that were not read before; needs `admin`.")] = False,
        caller: Annotated[
            str, Query(description="`cli`: call as the command line of this project; needs `admin`.")
        ] = "",
        call_id: Annotated[
            str, Query(description="The id of the call, `call_` and 32 hex digits; needs `admin`.")
        ] = "",
        retry_of: Annotated[
            str,
            Query(
                max_length=200, description="The id of the call that this one repeats; ignored if you cannot see it."
            ),
        ] = "",
        tool_call_id: Annotated[
            str,
            Query(
                max_length=200,
                description="The model's id of the call; for the dialects `openai`, `anthropic` and `backend`.",
            ),
        ] = "",
        idempotency_key: Annotated[
            str | None,
            Header(alias=KEY, description=KEY_HELP),
        ] = None,
    ) -> Response:
        """Call a tool; the body is its arguments."""
        require_dialect(dialect, tool_call_id)
        options = _CallOptions(name, dialect, shown, codes, force, caller, call_id, retry_of, tool_call_id)
        if idempotency_key is None:
            call, outcome = await _run_call(yard, principal, options, request)
            return json_response(_express(yard, options, call, outcome), headers=_call_headers(call, outcome))
        own_id = call_id if _CALL_ID.fullmatch(call_id) else f"call_{uuid4().hex}"

        async def run() -> ChatRun:
            call, outcome = await _run_call(yard, principal, options, request, own_id=own_id)
            return ChatRun(
                id="", body=json_bytes(_express(yard, options, call, outcome)), headers=_call_headers(call, outcome)
            )

        return await runs.answer(request, idempotency_key, principal.caller, IdempotentWork(run=run, call=own_id))

    return routes


@dataclass(frozen=True, slots=True)
class _CallOptions:
    """The query options of a call."""

    tool: str
    dialect: Dialect
    shown: bool
    codes: bool
    force: bool
    caller: str
    call_id: str
    retry_of: str
    tool_call_id: str


async def _run_call(
    yard: Yard, principal: Principal, options: _CallOptions, request: Request, *, own_id: str = ""
) -> tuple[ToolCall, Outcome]:
    """Run the call of a request; with ``own_id`` it goes on when the client disconnects."""
    arguments = read_arguments(await request.body())
    later = arguments.pop("timely_contact", None)
    call = yard.request(
        options.tool, arguments, caller=principal.caller, origin=Origin.HTTP, tool_call_id=options.tool_call_id
    )
    if options.retry_of and await _can_see(yard, principal, options.retry_of):
        call = replace(call, retry_of=options.retry_of)
    if options.force or options.caller or options.call_id:
        call = await _apply_owner_options(
            yard, principal, call, caller=options.caller, call_id=options.call_id, force=options.force
        )
    call = replace(call, id=own_id or call.id)
    if later is not None:
        return call, await yard.submit(call, at=str(later))
    outcome = await (yard.settle(call) if own_id else run_until_disconnect(yard, call, request))
    require_begun(outcome)
    return call, outcome


def require_begun(outcome: Outcome) -> None:
    """Raise Refusal when there was too much work for a call to begin."""
    envelope = outcome.envelope
    if envelope.error is not None and envelope.context.get("reason") == Reason.BUSY:
        wait_s = envelope.context.get("retry_after_s", _RETRY_S)
        headers = {"Retry-After": str(wait_s)}
        raise Refusal(HTTPStatus.TOO_MANY_REQUESTS, envelope.text, code="busy", headers=headers)


def _express(yard: Yard, options: _CallOptions, call: ToolCall, outcome: Outcome) -> JsonObject:
    return yard.express(call, outcome, options.dialect, shown=options.shown, codes=options.codes)


async def _can_see(yard: Yard, principal: Principal, call_id: str) -> bool:
    """Return whether the principal may see a call; an expired one does not exist."""
    call = await yard.store.get(CALL, call_id)
    return call is not None and principal.can_see(call.caller)


def _call_headers(call: ToolCall, outcome: Outcome) -> dict[str, str]:
    """Return the headers that describe a call, whatever its dialect."""
    headers = {CALL_ID_HEADER: call.id, STATUS_HEADER: outcome.envelope.status.value}
    tasks = outcome.envelope.data.get("tasks")
    ids = (
        [str(task["id"]) for task in tasks if isinstance(task, dict) and "id" in task]
        if isinstance(tasks, list)
        else []
    )
    return {**headers, TASKS_HEADER: ",".join(ids)} if ids else headers


def read_arguments(body: bytes) -> JsonObject:
    try:
        value = json_value(body or b"{}")
    except (ValueError, RecursionError) as error:
        raise bad_request(
            Message("http.body_invalid_json", "the body is not valid JSON: {error}", error=error)
        ) from error
    if not isinstance(value, dict):
        raise bad_request(
            Message(
                "http.arguments_not_object",
                'the body must be a JSON object of arguments, such as {{"path": "src"}}',
            )
        )
    problem = json_problem(value, "body", most=MAX_VALUES)
    if problem:
        raise bad_request(problem)
    return value


async def run_until_disconnect(yard: Yard, call: ToolCall, request: Request) -> Outcome:
    """Run a call; it is cancelled when its client disconnects."""
    await request.body()  # what follows the body is the disconnect
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


async def _apply_owner_options(
    yard: Yard, principal: Principal, call: ToolCall, *, caller: str, call_id: str, force: bool
) -> ToolCall:
    """Apply the options that require ``admin``."""
    if not principal.is_admin:
        raise Refusal(
            HTTPStatus.FORBIDDEN,
            Message(
                "key.admin_scope_for_fields",
                "the key lacks the scope admin, which 'caller', 'call_id' and 'force' require",
            ),
        )
    if caller and not _CALLER.fullmatch(caller):
        raise bad_request(Message("request.invalid_caller", "'caller' must be 'cli', or 'yard:' and 32 hex digits"))
    if call_id and not _CALL_ID.fullmatch(call_id):
        raise bad_request(Message("request.invalid_call_id", "'call_id' must be 'call_' and 32 hex digits"))
    if call_id and await yard.journal.get(call_id) is not None:
        raise Refusal(
            HTTPStatus.CONFLICT,
            Message("http.call_already", "there is already a call {call_id}", call_id=call_id),
        )
    if caller == "cli":
        call = replace(call, caller=cli_caller(yard.config), origin=Origin.CLI)
    elif caller:
        call = replace(call, caller=caller, origin=Origin.PYTHON)
    return replace(call, id=call_id or call.id, force=force)
