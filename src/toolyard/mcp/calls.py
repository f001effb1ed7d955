"""One MCP call from its arguments to its result: through the Yard's runner, with its approvals.

A call runs in a task of its own, so that a client that goes away cancels it cleanly. One that needs an approval asks
the client's user where the client can: by a request on the same connection, or, since 2026-07-28, by an answer that
asks for more; the call then waits under a secret name until the client comes back with the reply. At most
``MAX_WAITING`` calls wait like that. Only an explicit "allow" is a yes: what the user declines, closes or leaves open
is a no (S-98, S-99). A call whose client has left is cancelled. A rule, which holds for everybody, is made only by a
user who may make rules.

Where the client cannot ask, the approval waits for the console or the command line, and the client gets an early
result that says so. The call goes on. The same call, of the same caller with the same arguments, attaches to it within
``KEPT_S``; who gets its result has it, and the next one like it is a new call. At most ``MAX_KEPT`` are kept; then the
oldest ends.
"""

import asyncio
import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from toolyard.dialects.mcp_messages import drop_unfit
from toolyard.engine.history.journal import CALL_PROGRESS
from toolyard.mcp.resources import build_task_links
from toolyard.message import Message
from toolyard.protocol.access import ApprovalState
from toolyard.protocol.envelope import Envelope, Fault, Reason, Status, code_of
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.manifests.safe_text import escape_hidden, truncate
from toolyard.protocol.records.approval_record import Approval
from toolyard.protocol.records.audit_record import Actor
from toolyard.protocol.tool import Outcome, ToolCall
from toolyard.yard.yard import Yard

ANSWER_S: Final = 35.0  # some clients give up after 45 s, and a call is looked at every 5 s
KEPT_S: Final = 600.0
MAX_KEPT: Final = 100

_Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True, eq=False)
class CallRun:
    """A running call; ``question`` is done when it asks for an approval."""

    call: ToolCall
    task: "asyncio.Task[Outcome]"
    question: "asyncio.Future[Approval]"

    @property
    def approval(self) -> Approval | None:
        """The approval that the call asked for, if any."""
        question = self.question
        return question.result() if question.done() and not question.cancelled() else None


class EarlyResults:
    """The runs that were answered early, the oldest first."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._runs: dict[_Key, tuple[CallRun, float]] = {}

    def __contains__(self, run: CallRun) -> bool:
        return any(one.task is run.task for one, _ in self._runs.values())

    def find(self, call: ToolCall) -> CallRun | None:
        """Return the run that this call repeats."""
        now = self._monotonic()
        self._runs = {key: (run, since) for key, (run, since) in self._runs.items() if now - since <= KEPT_S}
        entry = self._runs.get(_call_key(call)) if self._runs else None
        return entry[0] if entry else None

    def keep(self, run: CallRun) -> None:
        """Let the same call attach to this run, counted from its first early answer."""
        if run in self:
            return
        self._runs[_call_key(run.call)] = run, self._monotonic()
        if len(self._runs) > MAX_KEPT:
            oldest, _ = self._runs.pop(next(iter(self._runs)))
            oldest.task.cancel()

    def drop(self, run: CallRun) -> None:
        """Note that somebody got the result."""
        if run in self:
            del self._runs[_call_key(run.call)]


def _call_key(call: ToolCall) -> _Key:
    return call.caller, call.tool, json.dumps(call.arguments, sort_keys=True)


def build_early_outcome(
    run: CallRun, approval: Approval, *, root: str, waited_s: float, address: str, command: str
) -> Outcome:
    """Build the outcome that a client gets while the call waits: what waits, and the ``command`` that allows it."""
    page = f"{address}/approvals/{approval.id}" if address else ""
    message = f"{run.call.tool} has not run yet: it waits for a person's approval."
    where = f"at {page} or with '{command}'" if page else f"with '{command}'"
    hint = (
        f"Ask the user to allow it {where}, then call it again with the same arguments within {KEPT_S / 60:g} minutes: "
        "that call gets the result, and it runs once."
    )
    approval_json: JsonObject = {"id": approval.id, "call_id": run.call.id, "command": command}
    reason = Reason.APPROVAL_REQUIRED
    envelope = Envelope(
        status=Status.ERROR,
        data={"approval": approval_json | ({"url": page} if page else {})},
        text=f"{message} {hint}",
        error=Fault(code_of(reason), message),
        stats={"time_ms": round(waited_s * 1000, 3)},
        context={"cwd": ".", "params_input": approval.arguments, "reason": reason.value},
    )
    return Outcome(envelope=envelope, root=root, arguments=run.call.arguments)


MAX_WAITING: Final = 1000
PROGRESS_S: Final = 5.0
QUICK_S: Final = 0.05  # a call that takes longer may be one that asks
_EARLIER_EVENTS = 200  # among which a call's own first ones may be
_QUESTION = "approval"
Context = ServerRequestContext[Any, Any]
Answer = types.CallToolResult | types.InputRequiredResult
FindConsoleUrl = Callable[[], str]
"""Where people reach the console; empty when there is none."""
CanMakeRules = Callable[[Any], bool]
"""Whether who is asking may make rules, by the HTTP request that carries the message; None over stdio."""
FIELD: Final = "answer"
_MAX_SHOWN = 20_000  # characters of arguments; who wants to see more looks into the console
_LONG_TEXT = 2_000  # characters of one text when all together are more than that
DENY, ALLOW, ALWAYS = "deny", "allow", "always"


class Calls:
    def __init__(
        self,
        yard: Yard,
        monotonic: Callable[[], float],
        *,
        may_rule: CanMakeRules,
        address: FindConsoleUrl = lambda: "",
        beat_s: float = PROGRESS_S,
    ) -> None:
        self._yard, self._monotonic, self._may_rule, self._beat_s = yard, monotonic, may_rule, beat_s
        self._address = address
        self._runs: set[asyncio.Task[Outcome]] = set()
        self._waiting: dict[str, CallRun] = {}
        self._handed_over: dict[types.RequestId | None, CallRun] = {}  # by the id of the request that will attach
        self._early = EarlyResults(monotonic)

    async def begin(self, ctx: Context, call: ToolCall) -> Answer:
        """Run a call, or attach to the one that was handed over or that it repeats."""
        run = self._handed_over.pop(ctx.request_id, None) or self._early.find(call) or self.start(call)
        return await self._follow(ctx, run)

    def is_repeated(self, call: ToolCall) -> bool:
        """Return whether the call repeats one that was answered early."""
        return self._early.find(call) is not None

    def start(self, call: ToolCall) -> CallRun:
        question = self._yard.state.approvals.watch(call.id)
        task = asyncio.create_task(self._yard.calls.settle(call))
        self._runs.add(task)
        task.add_done_callback(self._runs.discard)
        task.add_done_callback(lambda _: question.cancel())
        return CallRun(call, task, question)

    def hand_over(self, request_id: types.RequestId, run: CallRun) -> None:
        """Let the request of this id, which is about to come, attach to a run."""
        self._handed_over[request_id] = run

    async def resume(self, ctx: Context, call: ToolCall, state: str, replies: types.InputResponses | None) -> Answer:
        """Resume a call that comes again, with its user's answer."""
        run = self._waiting.get(state)
        mine = run is not None and (run.call.caller, run.call.tool) == (call.caller, call.tool)
        if run is None or run.approval is None or not mine or run.call.arguments != call.arguments:
            raise MCPError(types.INVALID_PARAMS, "this question is no longer open: call the tool again")
        del self._waiting[state]
        response = (replies or {}).get(_QUESTION)
        return await self._follow(ctx, run, response if isinstance(response, types.ElicitResult) else None)

    async def close(self) -> None:
        for task in self._runs:
            task.cancel()
        if self._runs:
            await asyncio.wait(set(self._runs), timeout=self._beat_s)

    async def _follow(self, ctx: Context, run: CallRun, elicited: types.ElicitResult | None = None) -> Answer:
        """Follow a call until it has ended, or until it needs input that only another request can bring.

        ``elicited`` is the answer to an earlier question.
        """
        goes_on, began = False, self._monotonic()
        try:
            if elicited is not None and run.approval is not None:
                await self._answer_approval(ctx, run.approval, elicited)
            await asyncio.wait({run.task}, timeout=QUICK_S)
            if not run.task.done():
                early = await self._wait_for_answer(ctx, run, began)
                if early is not None:
                    goes_on = True
                    return early
            outcome = await asyncio.shield(run.task)
            self._early.drop(run)
            result = self._encode(ctx, run.call, outcome)
            result.content += build_task_links(outcome.envelope)
            return result
        finally:
            if not goes_on and not run.task.done() and run not in self._early:
                run.task.cancel()

    async def _wait_for_answer(self, ctx: Context, run: CallRun, began: float) -> Answer | None:
        """Wait until it has ended: None; or there is an answer for the client before that."""
        can_ask = _can_elicit(ctx)
        elicited: asyncio.Future[None] | None = None
        unheard: set[asyncio.Future[Any]] = {run.question}  # each is heard once, also when it was done before
        relay = asyncio.create_task(self._relay_progress(ctx, run.call, began))
        try:
            while not run.task.done():
                done, _ = await asyncio.wait(
                    {run.task, *unheard}, timeout=self._beat_s, return_when=asyncio.FIRST_COMPLETED
                )
                unheard -= done
                pending = await self._find_pending_approval(run)
                if pending is not None and can_ask and elicited is None:
                    if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
                        return self._require_input(ctx, run, pending)
                    elicited = asyncio.ensure_future(self._elicit(ctx, pending))
                    unheard.add(elicited)
                elapsed = round(self._monotonic() - began, 3)
                asks = elicited is not None and not elicited.done()
                if pending is not None and not asks and elapsed >= ANSWER_S:
                    return self._answer_early(ctx, run, pending, elapsed)
                if await _has_disconnected(ctx):
                    raise MCPError(types.CONNECTION_CLOSED, "the client has left")
                await ctx.session.report_progress(elapsed, None, self._progress_message(run.call, pending))
        finally:
            started = [task for task in (elicited, relay) if task is not None]
            for task in started:
                task.cancel()
            await asyncio.gather(*started, return_exceptions=True)
        return None

    async def _relay_progress(self, ctx: Context, call: ToolCall, began: float) -> None:
        """Pass on what the call reports while it runs, until cancelled."""
        store = self._yard.state.store
        seen = max(0, (await store.event_span())[1] - _EARLIER_EVENTS)
        while True:
            for event in await store.events(seen, limit=_EARLIER_EVENTS):
                seen = event.seq
                if event.type == CALL_PROGRESS and event.data.get("id") == call.id:
                    elapsed = round(self._monotonic() - began, 3)
                    await ctx.session.report_progress(elapsed, None, str(event.data.get("text", "")))
            await store.next_event(seen)

    def _answer_early(self, ctx: Context, run: CallRun, approval: Approval, waited_s: float) -> types.CallToolResult:
        self._early.keep(run)
        root = str(self._yard.config.project.resolve())
        outcome = build_early_outcome(
            run,
            approval,
            root=root,
            waited_s=waited_s,
            address=self._address(),
            command=self._allow_command(approval),
        )
        return self._encode(ctx, run.call, outcome)

    def _progress_message(self, call: ToolCall, pending: Approval | None) -> str:
        if pending is None:
            return f"{call.tool} is running"
        return f"{call.tool} waits for an approval: answer it here or with '{self._allow_command(pending)}'"

    def _allow_command(self, approval: Approval) -> str:
        return self._yard.config.own_command.for_home.format("approval allow", approval.id)

    async def _find_pending_approval(self, run: CallRun) -> Approval | None:
        """Return the approval that a run waits for now."""
        approval = run.approval
        stored = await self._yard.state.approvals.get(approval.id) if approval else None
        return stored if stored is not None and stored.state is ApprovalState.PENDING else None

    async def _elicit(self, ctx: Context, approval: Approval) -> None:
        schema = build_schema(approval, rules=self._may_rule(ctx.request))
        response = await ctx.session.elicit_form(build_message(approval), schema, related_request_id=ctx.request_id)
        await self._answer_approval(ctx, approval, response)

    def _require_input(self, ctx: Context, run: CallRun, approval: Approval) -> types.InputRequiredResult:
        while len(self._waiting) >= MAX_WAITING:
            self._waiting.pop(next(iter(self._waiting))).task.cancel()
        state = secrets.token_urlsafe(32)
        self._waiting[state] = run
        run.task.add_done_callback(lambda _: self._forget_later(state))
        schema = build_schema(approval, rules=self._may_rule(ctx.request))
        form = types.ElicitRequestFormParams(message=build_message(approval), requested_schema=schema)
        return types.InputRequiredResult(
            input_requests={_QUESTION: types.ElicitRequest(params=form)}, request_state=state
        )

    def _forget_later(self, state: str) -> None:
        """Forget a waiting call later: one that was answered elsewhere keeps its result for its client."""
        asyncio.get_running_loop().call_later(600, self._waiting.pop, state, None)

    async def _answer_approval(self, ctx: Context, approval: Approval, response: types.ElicitResult) -> None:
        answer = parse_answer(response.action, response.content)
        always = answer.always and self._may_rule(ctx.request)  # also of a client that says what it was not offered
        await self._yard.state.approvals.answer(
            approval.id, allowed=answer.allowed, by=_client_actor(ctx), always=always, reason=answer.reason
        )

    def express(self, call: ToolCall, outcome: Outcome, version: str) -> dict[str, Any]:
        """Return the result of a call as this version of MCP writes it."""
        result = self._yard.results.express(call, outcome, "mcp", shown=True)
        drop_unfit(result, only_objects=version not in MODERN_PROTOCOL_VERSIONS)
        return result

    def _encode(self, ctx: Context, call: ToolCall, outcome: Outcome) -> types.CallToolResult:
        return types.CallToolResult.model_validate(self.express(call, outcome, ctx.protocol_version))


async def _has_disconnected(ctx: Context) -> bool:
    """Return whether the HTTP request of a call is gone; one over stdio lives as long as the server."""
    return ctx.request is not None and await ctx.request.is_disconnected()


def _can_elicit(ctx: Context) -> bool:
    capabilities = ctx.session.client_capabilities
    if capabilities is None or capabilities.elicitation is None:
        return False
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS or ctx.session.can_send_request


def _client_actor(ctx: Context) -> Actor:
    client = ctx.request.client if ctx.request is not None else None
    return Actor(name=_client_name(ctx), way="mcp", address=client.host if client else "")


def _client_name(ctx: Context) -> str:
    params = ctx.session.client_params
    return f"mcp:{params.client_info.name}" if params is not None else "mcp"


@dataclass(frozen=True, slots=True)
class ElicitedAnswer:
    allowed: bool
    always: bool
    reason: str = ""


def build_message(approval: Approval) -> str:
    arguments = _to_json_text(approval.arguments)
    if len(arguments) > _MAX_SHOWN:  # each is still named, with its beginning and its end
        arguments = _to_json_text(_shorten(approval.arguments))
    protected = "\nIt touches a protected path." if approval.protected else ""
    return (
        f"Toolyard asks: may {escape_hidden(approval.tool)} run? (risk: {approval.risk}){protected}\n"
        f"Arguments:\n{truncate(escape_hidden(arguments), _MAX_SHOWN)}"
    )


def build_schema(approval: Approval, *, rules: bool = True) -> dict[str, Any]:
    """A choice whose first and preset word is no; ``rules``: whether this user may make any."""
    choices = [DENY, ALLOW, *([ALWAYS] if rules and approval.always_offered else [])]
    about = "deny; allow this call; or always allow this tool and command" if len(choices) > 2 else "deny or allow"
    field = {"type": "string", "title": "Answer", "description": about, "enum": choices, "default": DENY}
    return {"type": "object", "properties": {FIELD: field}, "required": [FIELD]}


def parse_answer(action: str, content: object) -> ElicitedAnswer:
    answer = content.get(FIELD) if action == "accept" and isinstance(content, dict) else None
    allowed = answer in (ALLOW, ALWAYS)
    refused = Message("the user of the MCP client said no")
    return ElicitedAnswer(allowed, answer == ALWAYS, "" if allowed else refused)


def _to_json_text(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def _shorten(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: _shorten(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_shorten(inner) for inner in value]
    if not isinstance(value, str) or len(value) <= _LONG_TEXT:
        return value
    half = _LONG_TEXT // 2
    left_out = len(value) - 2 * half
    return f"{value[:half]} [… {left_out} characters are shown only in the console …] {value[-half:]}"
