"""``/v1/approvals/rules`` and what they would do: ``/preview`` for calls that were made, ``/v1/approvals/test``."""

from http import HTTPStatus
from typing import Annotated, Final

from fastapi import APIRouter, Query, Response

from toolyard.app import Yard
from toolyard.engine.journal import CALL
from toolyard.engine.permission_request import find_commands
from toolyard.protocol.approval import Effect
from toolyard.protocol.call import Origin
from toolyard.protocol.failure import Failure
from toolyard.protocol.json import MAX_VALUES, json_problem
from toolyard.protocol.store import PageCursor, Record
from toolyard.protocol.store import Query as Wanted
from toolyard.web.answers import Who, answer
from toolyard.web.refusal import bad_request, not_found
from toolyard.web.shapes import Done
from toolyard.web.shapes_records import NewRule, RuleList, RulePreview, RuleShown, Trial, TrialShown

LOOKED_AT: Final = 1000
_PAGE = 200


def router(yard: Yard) -> APIRouter:
    routes = APIRouter(prefix="/v1/approvals", tags=["approvals"])

    @routes.get("/rules", responses={200: {"model": RuleList}})
    async def list_rules() -> Response:
        """The rules that hold; one that denies beats one that allows."""
        return answer({"data": [yard.approvals.rule_to_json(rule) for rule in await yard.approvals.rules()]})

    @routes.post("/rules", status_code=201, responses={201: {"model": RuleShown}})
    async def add_rule(new: NewRule, who: Who) -> Response:
        """Keep a rule for a tool, or for one command of it."""
        plugin = _plugin_id(yard, new.tool)
        rule = await yard.approvals.add_rule(new.tool, new.command, Effect(new.effect), by=who.caller, plugin=plugin)
        return answer(yard.approvals.rule_to_json(rule), HTTPStatus.CREATED)

    @routes.get("/rules/preview", responses={200: {"model": RulePreview}})
    async def preview_rule(
        tool: Annotated[str, Query(min_length=1, max_length=200)],
        command: Annotated[str, Query(max_length=200)] = "",
    ) -> Response:
        """How many of the last 1,000 calls a rule would be about."""
        calls = await _last_calls(yard)
        matched = [call for call in calls if call.tool == tool and (not command or command in _commands(call))]
        rule = {"tool": tool, "command": command, "effect": Effect.ALLOW.value}
        return answer({"rule": rule, "matched": len(matched), "looked_at": len(calls)})

    @routes.delete("/rules/{id}", responses={200: {"model": Done}})
    async def revoke_rule(id: str) -> Response:  # noqa: A002 it is the word of the OpenAPI
        """Let a rule hold no longer."""
        if not await yard.approvals.revoke(id):
            raise not_found(f"rule '{id[:100]}' that holds")
        return answer({"ok": True, "id": id})

    @routes.post("/test", responses={200: {"model": TrialShown}})
    async def try_call(trial: Trial, who: Who) -> Response:
        """What would become of such a call from a chat. Nothing runs, and nobody is asked."""
        problem = json_problem(trial.arguments, "arguments", most=MAX_VALUES)
        if problem:
            raise bad_request(problem)
        spec = yard.tools.get(trial.tool).spec
        call = yard.request(trial.tool, trial.arguments, caller=who.caller, origin=Origin.CHAT)
        verdict = await yard.approvals.judge(await yard.build_ask(call, spec))
        said = {Effect.ALLOW: "run", Effect.DENY: "deny", None: "ask"}[verdict.effect]
        rule = yard.approvals.rule_to_json(verdict.rules[0]) if verdict.rules else None
        reason = verdict.describe(trial.tool, yard.approvals.mode)
        told = {"asks": said == "ask", "effect": said, "because": verdict.because, "reason": reason, "rule": rule}
        return answer(told)

    return routes


def _plugin_id(yard: Yard, tool: str) -> str:
    """Return the id of the plugin that has this name now; empty when none has."""
    try:
        return yard.tools.get(tool).spec.plugin_id
    except Failure:
        return ""


async def _last_calls(yard: Yard) -> list[Record]:
    calls: list[Record] = []
    while len(calls) < LOOKED_AT:
        after = PageCursor(created=calls[-1].created, id=calls[-1].id) if calls else None
        found = await yard.store.find(CALL, Wanted(), limit=_PAGE, after=after)
        calls += found
        if len(found) < _PAGE:
            break
    return calls


def _commands(call: Record) -> tuple[str, ...]:
    arguments = call.body.get("arguments")
    return find_commands(arguments) if isinstance(arguments, dict) else ()
