"""``/v1/tools``: list and call tools; and ``/v1/human/tool``, which runs the tool requests in a person's text.

A call answers 200 with any envelope: a failing tool is no server error. Only a call that could not begin because there
is too much work is refused with 429. When the client disconnects before its call has ended, the call is cancelled,
unless it has an ``Idempotency-Key``: then it goes on, and a repeat joins it. A person's text is answered in
VCPToolBox's shape: one block gives its result, several, which run concurrently, give a list in order.
"""

import asyncio
import re
from collections.abc import Hashable
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Annotated, Any, Literal
from uuid import uuid4

from fastapi import Header, Query, Request, Response
from pydantic import BaseModel, Field

from toolyard.dialects import Dialect, require_dialect
from toolyard.dialects.vcp_messages import human_answer, human_schedule_answer
from toolyard.engine.clock import Clock
from toolyard.gateway.turns.rendering import ClientAnswer
from toolyard.message import Message, read_hint
from toolyard.protocol.access import ConfinementLevel
from toolyard.protocol.envelope import Failure, Reason
from toolyard.protocol.json import MAX_VALUES, JsonObject, json_bytes, json_problem, json_value
from toolyard.protocol.records.call_record import CALL
from toolyard.protocol.requests.scanner import parse_requests
from toolyard.protocol.tool import Origin, Outcome, ToolCall
from toolyard.web.answers import CurrentPrincipal, json_response
from toolyard.web.chat_response import ChatResponse
from toolyard.web.idempotency import KEY, KEY_HELP, IdempotentRequests
from toolyard.web.refusal import Refusal, bad_request, not_found
from toolyard.web.routes.calls.tool_details import to_json, to_summary_json
from toolyard.web.routing import Routes
from toolyard.web.schemas.common import ErrorBody, FunctionDefinition
from toolyard.web.schemas.dialects import HumanAnswer, HumanRefusal, ToolResult
from toolyard.web.schemas.plugins import TranslationRow, Translations
from toolyard.web.security.scope import Principal, Scope
from toolyard.web.server.running_server import CALL_ID_HEADER, STATUS_HEADER, TASKS_HEADER, cli_caller
from toolyard.yard.yard import Yard


class ToolExample(BaseModel):
    command: str
    arguments: dict[str, Any]


class CommandForm(BaseModel):
    name: str
    display_name: Annotated[str, Field(description="Empty: the name.")]
    description: str
    translations: Translations
    parameters: Annotated[dict[str, Any], Field(description="A JSON Schema of the calls of this command.")]


class ToolRow(BaseModel):
    name: str
    description: str
    risk: Literal["read", "write", "execute", "network"]
    parameters: Annotated[dict[str, Any], Field(description="A JSON Schema.")]
    output_schema: Annotated[
        dict[str, Any] | None, Field(description="A JSON Schema of `data`, as an MCP server declares it.")
    ]
    synonyms: Annotated[dict[str, str], Field(description="Other names of parameters.")]
    aliases: Annotated[list[str], Field(description="Other names of the tool.")]
    timeout_s: float
    native: Annotated[FunctionDefinition, Field(description="The function definition in a chat.")]
    kind: Literal["built-in", "sync", "async", "mcp", "remote"]
    plugin: str | None
    server: str | None
    display_name: str
    translations: Translations
    version: str
    commands: list[str]
    forms: Annotated[list[CommandForm], Field(description="Its commands, if it has several, with their parameters.")]
    examples: list[ToolExample]
    hidden_characters: bool
    confinement: Annotated[
        ConfinementLevel | None, Field(description="How far its program is confined; null without one.")
    ]


class ToolRows(BaseModel):
    data: list[ToolRow]


class ToolSummary(BaseModel):
    name: str
    description: Annotated[str, Field(description="Its first line.")]
    risk: Literal["read", "write", "execute", "network"]
    kind: Literal["built-in", "sync", "async", "mcp", "remote"]
    plugin: str | None
    server: str | None
    display_name: str
    translations: Annotated[
        dict[str, TranslationRow], Field(description="As in `/v1/tools`, with first lines and without parameters.")
    ]
    version: str
    commands: list[str]
    hidden_characters: bool


class ToolSummaries(BaseModel):
    data: list[ToolSummary]


_ARGUMENTS: JsonObject = {
    "requestBody": {
        "description": "The arguments of the tool.",
        "content": {"application/json": {"schema": {"type": "object"}}},
    }
}
_RETRY_S = 5  # unless the failure names another time
_CALL_ID = re.compile(r"call_[0-9a-f]{32}")
_CALLER = re.compile(r"cli|yard:[0-9a-f]{32}")


def summary_router(yard: Yard) -> Routes:
    routes = Routes("/v1/tool-summaries", tag="tools", scope=Scope.TOOLS)
    listed: Hashable = None  # the version of the tools that the body lists
    body = b""

    @routes.get("", ToolSummaries)
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


def router(yard: Yard, idempotent: IdempotentRequests) -> Routes:
    routes = Routes("/v1/tools", tag="tools", scope=Scope.TOOLS)

    @routes.get("", ToolRows)
    async def list_tools() -> Response:
        """List the available tools, with everything about them; for a list to show there is `/v1/tool-summaries`."""
        tools = list(yard.tools)
        rows = await asyncio.to_thread(lambda: [to_json(yard, tool) for tool in tools])  # looks at files
        return await asyncio.to_thread(json_response, {"data": rows})

    @routes.get("/{name}", ToolRow)
    async def show_tool(name: str) -> Response:
        """Return one tool: its description for models and its parameters."""
        try:
            return json_response(to_json(yard, yard.tools.get(yard.tools.resolve_name(name))))
        except Failure as failure:
            raise not_found(Message("tool called '{name}'", name=name[:100])) from failure

    @routes.post("/{name}", ToolResult, openapi_extra=_ARGUMENTS)
    async def call_tool(
        name: str,
        request: Request,
        principal: CurrentPrincipal,
        dialect: Annotated[Dialect, Query(description="The format of the result.")] = "envelope",
        shown: Annotated[bool, Query(description="The result as a model sees it, truncated if too long.")] = False,
        codes: Annotated[
            bool,
            Query(description="With the codes and the parameters of its sentences, in the envelope's `context`."),
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

        async def run() -> ClientAnswer:
            call, outcome = await _run_call(yard, principal, options, request, own_id=own_id)
            body = json_bytes(_express(yard, options, call, outcome))
            return ClientAnswer(body=body, headers=_call_headers(call, outcome))

        single = await idempotent.single_run(request, principal.caller, call=own_id)
        return ChatResponse(idempotent.run_call(single, run))

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
    call = yard.calls.request(
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
        return call, await yard.calls.submit(call, at=str(later))
    outcome = await (yard.calls.settle(call) if own_id else run_until_disconnect(yard, call, request))
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
    return yard.results.express(call, outcome, options.dialect, shown=options.shown, codes=options.codes)


async def _can_see(yard: Yard, principal: Principal, call_id: str) -> bool:
    """Return whether the principal may see a call; an expired one does not exist."""
    call = await yard.state.store.get(CALL, call_id)
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
        raise bad_request(Message("the body is not valid JSON: {error}", error=error)) from error
    if not isinstance(value, dict):
        raise bad_request(Message('the body must be a JSON object of arguments, such as {{"path": "src"}}'))
    problem = json_problem(value, "body", most=MAX_VALUES)
    if problem:
        raise bad_request(problem)
    return value


async def run_until_disconnect(yard: Yard, call: ToolCall, request: Request) -> Outcome:
    """Run a call; it is cancelled when its client disconnects."""
    await request.body()  # what follows the body is the disconnect
    running = asyncio.ensure_future(yard.calls.settle(call))
    watching = asyncio.ensure_future(request.receive())
    try:
        await asyncio.wait({running, watching}, return_when=asyncio.FIRST_COMPLETED)
        if not running.done():
            yard.calls.cancel(call.id)
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
            Message("the key lacks the scope admin, which 'caller', 'call_id' and 'force' require"),
        )
    if caller and not _CALLER.fullmatch(caller):
        raise bad_request(Message("'caller' must be 'cli', or 'yard:' and 32 hex digits"))
    if call_id and not _CALL_ID.fullmatch(call_id):
        raise bad_request(Message("'call_id' must be 'call_' and 32 hex digits"))
    if call_id and await yard.state.journal.get(call_id) is not None:
        raise Refusal(HTTPStatus.CONFLICT, Message("there is already a call {call_id}", call_id=call_id))
    if caller == "cli":
        call = replace(call, caller=cli_caller(yard.config), origin=Origin.CLI)
    elif caller:
        call = replace(call, caller=caller, origin=Origin.PYTHON)
    return replace(call, id=call_id or call.id, force=force)


_BODY: JsonObject = {"requestBody": {"content": {"text/plain": {"schema": {"type": "string"}}}, "required": True}}


def human_router(yard: Yard, clock: Clock) -> Routes:
    routes = Routes("/v1/human", tag="tools", scope=Scope.TOOLS)

    @routes.post(
        "/tool",
        responses={
            200: {"description": "The results of the tools.", "model": HumanAnswer | list[HumanAnswer]},
            400: {"description": "The text has no block, or an invalid one.", "model": HumanRefusal | ErrorBody},
            500: {"description": "The tools failed.", "model": HumanAnswer | list[HumanAnswer] | ErrorBody},
        },
        openapi_extra=_BODY,
    )
    async def run_blocks(request: Request, principal: CurrentPrincipal) -> Response:
        """Run the tool requests in the text; the response has VCPToolBox's shape."""
        text = (await request.body()).decode("utf-8", "replace")
        blocks = parse_requests(text)
        bad = next((str(one["problem"]) for one in blocks if not one["ok"]), "")
        if bad or not blocks:
            return json_response({"error": bad or "the text has no tool request"}, HTTPStatus.BAD_REQUEST)
        is_alone = len(blocks) == 1  # of several, the others have run
        answers = await asyncio.gather(
            *(_run_block(yard, clock, principal, one, can_refuse=is_alone) for one in blocks)
        )
        status = HTTPStatus.INTERNAL_SERVER_ERROR if all("plugin_error" in one for one in answers) else HTTPStatus.OK
        return json_response(answers[0] if len(answers) == 1 else answers, status)

    return routes


async def _run_block(
    yard: Yard, clock: Clock, principal: Principal, block: JsonObject, *, can_refuse: bool
) -> JsonObject:
    arguments, tool = block["args"], str(block["tool"])
    given = arguments if isinstance(arguments, dict) else {}
    call = yard.calls.request(tool, given, caller=principal.caller, origin=Origin.HTTP)
    now = clock.now().isoformat(timespec="seconds")
    if later := block.get("timely_contact"):
        outcome = await yard.calls.submit(call, at=str(later))
        data = outcome.envelope.data
        if not outcome.envelope.error:
            due = str(data["scheduled_for"])
            return human_schedule_answer(str(data["schedule_id"]), tool, requested=now, due=due)
    else:
        outcome = await yard.calls.settle(call)
        if can_refuse:
            require_begun(outcome)
    hint = read_hint(outcome.envelope.text)
    return human_answer(yard.results.express(call, outcome, "vcp"), maid=call.maid, at=now, hint=hint)
