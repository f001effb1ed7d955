"""``/v1/approvals``: calls that wait for approval."""

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query, Response

from toolyard.engine.clock import Clock
from toolyard.gateway.chat import Chat
from toolyard.message import Message
from toolyard.protocol.approval import ApprovalState
from toolyard.protocol.approval_record import Approval
from toolyard.protocol.store import PageCursor
from toolyard.web.refusal import Refusal, not_found
from toolyard.web.responses import (
    After,
    CurrentPrincipal,
    Limit,
    json_response,
    page_response,
    require_admin_for_masked,
)
from toolyard.web.schemas.records import (
    AnsweredApproval,
    ApprovalDecision,
    ApprovalDetail,
    ApprovalPage,
    BulkDecision,
    BulkDecisionResult,
    RevealedArguments,
)
from toolyard.web.security.principal import Principal
from toolyard.web.views.approval import to_json
from toolyard.yard.yard import Yard


def router(yard: Yard, clock: Clock, chat: Chat | None) -> APIRouter:
    routes = APIRouter(prefix="/v1/approvals", tags=["approvals"])

    @routes.get("", responses={200: {"model": ApprovalPage}})
    async def list_approvals(
        after: After,
        limit: Limit = 50,
        state: Annotated[list[ApprovalState], Query(max_length=10)] = [],  # noqa: B006 FastAPI copies it
    ) -> Response:
        """List approvals, newest first, with the beginning of their arguments."""
        approvals = await yard.approvals.page(tuple(state), limit=limit, after=after)
        return page_response(approvals, limit, Approval.to_list_json, lambda one: PageCursor(at=one.created, id=one.id))

    @routes.post("/bulk", responses={200: {"model": BulkDecisionResult}})
    async def answer_several(bulk: BulkDecision, principal: CurrentPrincipal) -> Response:
        """Answer several approvals at once. Allowing requires that all of them are for the same call."""
        approvals = [await _get_approval(yard, id_) for id_ in bulk.ids]
        allowed = bulk.effect == "allow"
        if allowed and len({approval.digest for approval in approvals}) > 1:
            raise Refusal(
                HTTPStatus.CONFLICT,
                Message(
                    "approval.different_calls",
                    "the approvals are for different calls: review and allow each one",
                ),
            )
        expected, done = ApprovalState.ALLOWED if allowed else ApprovalState.DENIED, []
        for approval in approvals:
            state = await yard.approvals.answer(approval.id, allowed=allowed, by=principal.actor, reason=bulk.reason)
            done.append({"id": approval.id, "state": state, "ok": state is expected})
        return json_response({"data": done})

    @routes.get("/{id}", responses={200: {"model": ApprovalDetail}})
    async def show_approval(id: str) -> Response:  # noqa: A002 it is the word of the OpenAPI
        """Return one approval with its full arguments and a preview of its changes; secrets are masked."""
        return json_response(await to_json(yard, clock, chat, await _get_approval(yard, id)))

    @routes.get("/{id}/arguments", responses={200: {"model": RevealedArguments}})
    async def reveal_arguments(id: str, principal: CurrentPrincipal) -> Response:  # noqa: A002
        """Return the unmasked arguments of a waiting call; requires the scope `admin`."""
        require_admin_for_masked(principal)
        approval = await _get_approval(yard, id)
        arguments = yard.approvals.reveal(id)
        if arguments is None:
            raise Refusal(HTTPStatus.CONFLICT, _unavailable_message(approval))
        return json_response({"id": id, "arguments": arguments})

    @routes.post("/{id}/allow", responses={200: {"model": AnsweredApproval}})
    async def allow(id: str, principal: CurrentPrincipal, decision: ApprovalDecision | None = None) -> Response:  # noqa: A002
        """Approve a waiting call."""
        return await _answer_approval(yard, id, principal, decision or ApprovalDecision(), allowed=True)

    @routes.post("/{id}/deny", responses={200: {"model": AnsweredApproval}})
    async def deny(id: str, principal: CurrentPrincipal, decision: ApprovalDecision | None = None) -> Response:  # noqa: A002
        """Deny a waiting call."""
        return await _answer_approval(yard, id, principal, decision or ApprovalDecision(), allowed=False)

    return routes


async def _get_approval(yard: Yard, id_: str) -> Approval:
    approval = await yard.approvals.get(id_)
    if approval is None:
        raise not_found(_name_approval(id_[:100]))
    return approval


def _unavailable_message(approval: Approval) -> str:
    if approval.state is ApprovalState.PENDING:
        return Message(
            "approval.waits_elsewhere",
            "{id} is waiting on another host, which alone knows the masked values: ask there",
            id=approval.id,
        )
    return Message(
        "approval.masked_values_gone",
        "{id} is already {state}: masked values are no longer stored",
        id=approval.id,
        state=approval.state.value,
    )


async def _answer_approval(
    yard: Yard, id_: str, principal: Principal, decision: ApprovalDecision, *, allowed: bool
) -> Response:
    """Answer an approval. The first answer counts; a different second one gets 409."""
    approval = await _get_approval(yard, id_)
    for_chat = decision.for_ == "chat"
    if for_chat and not approval.chat:
        raise Refusal(
            HTTPStatus.CONFLICT,
            Message("approval.not_in_chat", "{id} is not part of a chat: allow it once or always", id=id_),
        )
    always = decision.always or decision.for_ == "always"
    state = await yard.approvals.answer(
        id_, allowed=allowed, by=principal.actor, always=always, for_chat=for_chat, reason=decision.reason
    )
    if state is not (ApprovalState.ALLOWED if allowed else ApprovalState.DENIED):
        state_name = state.value if state else "gone"
        raise Refusal(
            HTTPStatus.CONFLICT,
            Message("http.already_in_state", "{id} is already {state_name}", id=id_, state_name=state_name),
            code=state_name,
        )
    return json_response({"id": id_, "state": state.value})


def _name_approval(id_: str) -> Message:
    return Message("http.approval", "approval '{id}'", id=id_)
