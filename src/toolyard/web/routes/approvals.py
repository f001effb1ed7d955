"""``/v1/approvals``: what waits for a person's word, and the rules that answer by themselves."""

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query, Response

from toolyard.app import Yard
from toolyard.engine.approvals import KIND, shown, shown_rule
from toolyard.protocol.approval import Effect, State
from toolyard.protocol.store import Place
from toolyard.web.access import Visitor
from toolyard.web.answers import After, Limit, Who, answer, page
from toolyard.web.refusal import Refusal, not_found
from toolyard.web.shapes import Decision, Done, NewRule, RecordPage, RecordShown, RuleList, RuleShown


def router(yard: Yard) -> APIRouter:
    routes = APIRouter(prefix="/v1/approvals", tags=["approvals"])

    @routes.get("", responses={200: {"model": RecordPage}})
    async def list_approvals(
        after: After,
        limit: Limit = 50,
        state: Annotated[list[str], Query(max_length=10)] = [],  # noqa: B006 FastAPI copies it
    ) -> Response:
        """The approvals, newest first."""
        found = await yard.approvals.page(tuple(state), limit=limit, after=after)
        return page(found, limit, shown, lambda one: Place(created=one.created, id=one.id))

    @routes.get("/rules", responses={200: {"model": RuleList}})
    async def list_rules() -> Response:
        """The rules that hold; one that denies beats one that allows."""
        return answer({"data": [shown_rule(rule) for rule in await yard.approvals.rules()]})

    @routes.post("/rules", status_code=201, responses={201: {"model": RuleShown}})
    async def add_rule(new: NewRule, who: Who) -> Response:
        """Keep a rule for a tool, or for one command of it."""
        rule = await yard.approvals.add_rule(new.tool, new.command, Effect(new.effect), by=who.caller)
        return answer(shown_rule(rule), HTTPStatus.CREATED)

    @routes.delete("/rules/{id}", responses={200: {"model": Done}})
    async def revoke_rule(id: str) -> Response:  # noqa: A002 it is the word of the OpenAPI
        """Let a rule hold no longer."""
        if not await yard.approvals.revoke(id):
            raise not_found(f"rule '{id[:100]}' that holds")
        return answer({"ok": True, "id": id})

    @routes.get("/{id}", responses={200: {"model": RecordShown}})
    async def show_approval(id: str) -> Response:  # noqa: A002
        """One approval with the whole of its arguments; secrets are masked."""
        record = await yard.store.get(KIND, id)
        if record is None:
            raise not_found(f"approval '{id[:100]}'")
        return answer(shown(record))

    @routes.post("/{id}/allow", responses={200: {"model": RecordShown}})
    async def allow(id: str, who: Who, decision: Decision | None = None) -> Response:  # noqa: A002
        """Let a waiting call run."""
        return await _answer(yard, id, who, decision or Decision(), allowed=True)

    @routes.post("/{id}/deny", responses={200: {"model": RecordShown}})
    async def deny(id: str, who: Who, decision: Decision | None = None) -> Response:  # noqa: A002
        """Refuse a waiting call."""
        return await _answer(yard, id, who, decision or Decision(), allowed=False)

    return routes


async def _answer(yard: Yard, id_: str, who: Visitor, decision: Decision, *, allowed: bool) -> Response:
    """The first answer counts; a second one is told how it came out, with 409 unless it says the same."""
    state = await yard.approvals.answer(
        id_, allowed=allowed, by=who.caller, always=decision.always, reason=decision.reason
    )
    if state is None:
        raise not_found(f"approval '{id_[:100]}'")
    if state is not (State.ALLOWED if allowed else State.DENIED):
        raise Refusal(HTTPStatus.CONFLICT, f"{id_} is {state.value} already", code=state.value)
    return answer({"id": id_, "state": state.value})
