"""``/v1/approvals``: what waits for a person's word, and the rules that answer by themselves."""

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query, Response

from toolyard.app import Yard
from toolyard.engine.approvals import KIND, to_list_json
from toolyard.engine.clock import Clock
from toolyard.gateway.chat import Chat
from toolyard.protocol.approval import ApprovalState
from toolyard.protocol.store import PageCursor, Record
from toolyard.web.access import Visitor
from toolyard.web.answers import After, Limit, Who, answer, page
from toolyard.web.approval_view import whole
from toolyard.web.refusal import Refusal, not_found
from toolyard.web.shapes import RecordPage, RecordShown
from toolyard.web.shapes_records import ApprovalShown, ArgumentsShown, Bulk, BulkDone, Decision


def router(yard: Yard, clock: Clock, chat: Chat | None) -> APIRouter:
    routes = APIRouter(prefix="/v1/approvals", tags=["approvals"])

    @routes.get("", responses={200: {"model": RecordPage}})
    async def list_approvals(
        after: After,
        limit: Limit = 50,
        state: Annotated[list[ApprovalState], Query(max_length=10)] = [],  # noqa: B006 FastAPI copies it
    ) -> Response:
        """The approvals, newest first; of the arguments only the beginning."""
        found = await yard.approvals.page(tuple(state), limit=limit, after=after)
        return page(found, limit, to_list_json, lambda one: PageCursor(created=one.created, id=one.id))

    @routes.post("/bulk", responses={200: {"model": BulkDone}})
    async def answer_several(bulk: Bulk, who: Who) -> Response:
        """Answer several at once. They are allowed only when all ask for the very same."""
        records = [await _approval(yard, id_) for id_ in bulk.ids]
        allowed = bulk.effect == "allow"
        if allowed and len({record.key for record in records}) > 1:
            raise Refusal(HTTPStatus.CONFLICT, "they ask for different things: look at each, then allow it")
        wanted, done = ApprovalState.ALLOWED if allowed else ApprovalState.DENIED, []
        for record in records:
            state = await yard.approvals.answer(record.id, allowed=allowed, by=who.caller, reason=bulk.reason)
            done.append({"id": record.id, "state": state, "ok": state is wanted})
        return answer({"data": done})

    @routes.get("/{id}", responses={200: {"model": ApprovalShown}})
    async def show_approval(id: str) -> Response:  # noqa: A002 it is the word of the OpenAPI
        """One approval with the whole of its arguments, and what it would change; secrets are masked."""
        return answer(await whole(yard, clock, chat, await _approval(yard, id)))

    @routes.get("/{id}/arguments", responses={200: {"model": ArgumentsShown}})
    async def reveal_arguments(id: str, who: Who) -> Response:  # noqa: A002
        """The arguments of a waiting call with nothing masked, for the owner: a key with the scope `admin`."""
        if not who.is_admin:
            raise Refusal(HTTPStatus.FORBIDDEN, "only a key with the scope 'admin' sees what is masked")
        record = await _approval(yard, id)
        arguments = yard.approvals.reveal(id)
        if arguments is None:
            raise Refusal(HTTPStatus.CONFLICT, _not_here(record))
        return answer({"id": id, "arguments": arguments})

    @routes.post("/{id}/allow", responses={200: {"model": RecordShown}})
    async def allow(id: str, who: Who, decision: Decision | None = None) -> Response:  # noqa: A002
        """Let a waiting call run."""
        return await _answer(yard, id, who, decision or Decision(), allowed=True)

    @routes.post("/{id}/deny", responses={200: {"model": RecordShown}})
    async def deny(id: str, who: Who, decision: Decision | None = None) -> Response:  # noqa: A002
        """Refuse a waiting call."""
        return await _answer(yard, id, who, decision or Decision(), allowed=False)

    return routes


async def _approval(yard: Yard, id_: str) -> Record:
    record = await yard.store.get(KIND, id_)
    if record is None:
        raise not_found(f"approval '{id_[:100]}'")
    return record


def _not_here(record: Record) -> str:
    if record.state == ApprovalState.PENDING:
        return f"{record.id} waits at another host, which alone knows what is masked: ask there"
    return f"{record.id} is {record.state} already: what was masked is not kept"


async def _answer(yard: Yard, id_: str, who: Visitor, decision: Decision, *, allowed: bool) -> Response:
    """The first answer counts; a second one is told how it came out, with 409 unless it says the same."""
    record = await _approval(yard, id_)
    for_chat = decision.for_ == "chat"
    if for_chat and not record.body.get("chat"):
        raise Refusal(HTTPStatus.CONFLICT, f"{id_} is not part of a chat: allow it once or always")
    always = decision.always or decision.for_ == "always"
    state = await yard.approvals.answer(
        id_, allowed=allowed, by=who.caller, always=always, for_chat=for_chat, reason=decision.reason
    )
    if state is not (ApprovalState.ALLOWED if allowed else ApprovalState.DENIED):
        told = state.value if state else "gone"
        raise Refusal(HTTPStatus.CONFLICT, f"{id_} is {told} already", code=told)
    return answer({"id": id_, "state": state.value})
