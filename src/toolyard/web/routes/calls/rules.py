"""``/v1/approvals/rules``, their ``/preview`` on past calls, and ``/v1/approvals/test``."""

from http import HTTPStatus
from typing import Annotated, Any, Final, Literal

from fastapi import Query, Response
from pydantic import Field

from toolyard.engine.rules import MAX_RULE_COMMAND, find_commands, write_exact_arguments
from toolyard.message import Message
from toolyard.protocol.access import Effect
from toolyard.protocol.envelope import Failure
from toolyard.protocol.json import MAX_VALUES, json_problem
from toolyard.protocol.records.approval_record import Rule, RuleTarget
from toolyard.protocol.records.call_record import CallRecord
from toolyard.protocol.store import PageCursor
from toolyard.protocol.store import Query as RecordQuery
from toolyard.protocol.tool import Origin, ToolSpec
from toolyard.web.answers import CurrentPrincipal, json_response
from toolyard.web.refusal import bad_request, not_found
from toolyard.web.routing import Routes
from toolyard.web.schemas.common import ChangedRecord, StrictModel
from toolyard.web.schemas.records import extend_model, record_model
from toolyard.web.security.scope import Scope
from toolyard.yard.yard import Yard


class _RuleMatches(StrictModel):
    matched: int
    looked_at: int


RulePreview = extend_model("RulePreview", _RuleMatches, rule=record_model("RuleTarget", RuleTarget))


class RuleTrial(StrictModel):
    tool: Annotated[str, Field(min_length=1, max_length=200)]
    arguments: dict[str, Any] = Field(default_factory=dict)


class NewRule(StrictModel):
    tool: Annotated[str, Field(min_length=1, max_length=200)]
    command: Annotated[str, Field(max_length=MAX_RULE_COMMAND, description="Only this command; empty: all.")] = ""
    effect: Literal["allow", "deny"]


RuleRow = record_model("RuleRow", Rule)


RuleList = extend_model("RuleList", StrictModel, data=list[RuleRow])  # type: ignore[valid-type]


class _RuleTrialVerdict(StrictModel):
    asks: bool
    effect: Literal["run", "ask", "deny"]
    because: str
    reason: str


RuleTrialResult = extend_model("RuleTrialResult", _RuleTrialVerdict, rule=RuleRow | None)


MAX_PREVIEWED: Final = 1000
_PAGE = 200


def router(yard: Yard) -> Routes:
    routes = Routes("/v1/approvals", tag="approvals", scope=Scope.APPROVE)

    @routes.get("/rules", RuleList)
    async def list_rules() -> Response:
        """List the rules in effect; one that denies beats one that allows."""
        return json_response({"data": [rule.to_json() for rule in await yard.state.approvals.rules()]})

    @routes.post("/rules", RuleRow, status=201)
    async def add_rule(new: NewRule, principal: CurrentPrincipal) -> Response:
        """Add a rule for a tool, or for one of its commands."""
        spec = _find_spec(yard, new.tool)
        plugin = spec.plugin_id if spec else ""
        rule = await yard.state.approvals.add_rule(
            new.tool, new.command, Effect(new.effect), by=principal.actor, plugin=plugin
        )
        return json_response(rule.to_json(), HTTPStatus.CREATED)

    @routes.get("/rules/preview", RulePreview)
    async def preview_rule(
        tool: Annotated[str, Query(min_length=1, max_length=200)],
        command: Annotated[str, Query(max_length=MAX_RULE_COMMAND)] = "",
    ) -> Response:
        """Return how many of the last 1,000 calls a rule would match."""
        calls = await _list_last_calls(yard)
        spec = _find_spec(yard, tool)
        exact = spec is not None and spec.exact_approval
        matched = [
            call
            for call in calls
            if call.tool == tool and (not command or command in _list_commands(call, exact=exact))
        ]
        rule = {"tool": tool, "command": command, "effect": Effect.ALLOW.value}
        return json_response({"rule": rule, "matched": len(matched), "looked_at": len(calls)})

    @routes.delete("/rules/{id}", ChangedRecord)
    async def revoke_rule(id: str, principal: CurrentPrincipal) -> Response:  # noqa: A002 it is the word of the OpenAPI
        """Revoke a rule."""
        if not await yard.state.approvals.revoke(id, by=principal.actor):
            raise not_found(_name_rule(id[:100]))
        return json_response({"ok": True, "id": id})

    @routes.post("/test", RuleTrialResult)
    async def try_call(trial: RuleTrial, principal: CurrentPrincipal) -> Response:
        """Return what would happen to such a call from a chat. Nothing runs, and nobody is asked."""
        problem = json_problem(trial.arguments, "arguments", most=MAX_VALUES)
        if problem:
            raise bad_request(problem)
        spec = yard.tools.get(trial.tool).spec
        call = yard.calls.request(trial.tool, trial.arguments, caller=principal.caller, origin=Origin.CHAT)
        verdict = await yard.state.approvals.judge(await yard.calls.build_permission_request(call, spec))
        effect = {Effect.ALLOW: "run", Effect.DENY: "deny", None: "ask"}[verdict.effect]
        rule = yard.state.approvals.with_uses(verdict.rules[0]).to_json() if verdict.rules else None
        describe = verdict.describe(trial.tool, yard.state.approvals.mode)
        verdict_json = {
            "asks": effect == "ask",
            "effect": effect,
            "because": verdict.because,
            "reason": describe,
            "rule": rule,
        }
        return json_response(verdict_json)

    return routes


def _find_spec(yard: Yard, tool: str) -> ToolSpec | None:
    try:
        return yard.tools.get(tool).spec
    except Failure:
        return None


async def _list_last_calls(yard: Yard) -> list[CallRecord]:
    calls: list[CallRecord] = []
    while len(calls) < MAX_PREVIEWED:
        after = PageCursor(at=calls[-1].started, id=calls[-1].id) if calls else None
        page = await yard.state.journal.page(RecordQuery(), limit=_PAGE, after=after)
        calls += page
        if len(page) < _PAGE:
            break
    return calls


def _list_commands(call: CallRecord, *, exact: bool) -> tuple[str, ...]:
    """Return what a rule for such a call names: its commands, or its complete arguments."""
    if not isinstance(call.arguments, dict):
        return ()
    return (write_exact_arguments(call.arguments),) if exact else find_commands(call.arguments)


def _name_rule(id_: str) -> Message:
    return Message("rule '{id}'", id=id_)
