"""``/v1/approvals``: calls that wait for approval, with all a person needs to decide.

That is what would run, what would change, and who asked. A dry run of a built-in file tool shows the change: nothing is
written, journalled or asked for. Batches have no dry run: each step would see the files without the steps before it.
Bounded: ``TIMEOUT_S``, and ``MAX_BYTES`` of hunks.
"""

from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Final, Literal
from uuid import uuid4

from fastapi import Query, Response
from pydantic import BaseModel, Field

from toolyard.engine.cancellation import CancelScope
from toolyard.engine.clock import Clock
from toolyard.gateway.chats import Chat
from toolyard.message import Message, to_fields
from toolyard.protocol.access import ApprovalState
from toolyard.protocol.arguments import accept_arguments
from toolyard.protocol.envelope import Failure
from toolyard.protocol.json import Json, JsonObject, json_bytes
from toolyard.protocol.records.approval_record import Approval
from toolyard.protocol.store import PageCursor
from toolyard.protocol.tool import Result, ToolCall, ToolSpec, fold_name, split_batch
from toolyard.tools.file_changer import ChangingTool
from toolyard.tools.worker_thread import in_thread
from toolyard.web.answers import After, CurrentPrincipal, Limit, json_response, page_response, require_admin_for_masked
from toolyard.web.refusal import Refusal, not_found
from toolyard.web.routing import Routes
from toolyard.web.schemas.common import Code, Params, StrictModel
from toolyard.web.schemas.records import PatchHunk, RevealedArguments, page_model, record_model
from toolyard.web.security.scope import Principal, Scope
from toolyard.yard.yard import Yard


class ApprovalDecision(StrictModel):
    always: bool = False
    for_: Annotated[
        Literal["once", "chat", "always"],
        Field(alias="for", description="`always` adds a rule; `chat` adds one for this chat, until a restart."),
    ] = "once"
    reason: Annotated[str, Field(max_length=2000)] = ""


class BulkDecision(StrictModel):
    ids: Annotated[list[str], Field(min_length=1, max_length=100)]
    effect: Literal["allow", "deny"]
    reason: Annotated[str, Field(max_length=2000)] = ""


class BulkDecisionRow(BaseModel):
    id: str
    state: str
    ok: Annotated[bool, Field(description="False when another answer came first.")]


class BulkDecisionResult(BaseModel):
    data: list[BulkDecisionRow]


class AnsweredApproval(BaseModel):
    id: str
    state: str


class PatchedFile(BaseModel):
    path: str
    operation: str
    from_: Annotated[str, Field(alias="from", description="The earlier path of a moved file.")] = ""
    structured_patch: list[PatchHunk]


class _ApprovalDetails(StrictModel):
    command_line: Annotated[list[str] | None, Field(description="The command of a plugin.")]
    patch: Annotated[list[PatchedFile] | None, Field(description="A preview of its changes, while it waits.")]
    patch_problem: str
    patch_problem_code: Code = ""
    patch_problem_params: Params
    excerpt: Annotated[str, Field(description="The last user message of its chat.")]


class _ApprovalSummary(StrictModel):
    summary: Annotated[str, Field(description="The beginning of its arguments.")]
    arguments_bytes: int


ApprovalDetail = record_model("ApprovalDetail", Approval, _ApprovalDetails)


ApprovalPage = page_model("ApprovalPage", record_model("ApprovalRow", Approval, _ApprovalSummary, without="arguments"))


def router(yard: Yard, clock: Clock, chat: Chat | None) -> Routes:
    routes = Routes("/v1/approvals", tag="approvals", scope=Scope.APPROVE)

    @routes.get("", ApprovalPage)
    async def list_approvals(
        after: After,
        limit: Limit = 50,
        state: Annotated[list[ApprovalState], Query(max_length=10)] = [],  # noqa: B006 FastAPI copies it
    ) -> Response:
        """List approvals, newest first, with the beginning of their arguments."""
        approvals = await yard.state.approvals.page(tuple(state), limit=limit, after=after)
        return page_response(approvals, limit, Approval.to_list_json, lambda one: PageCursor(at=one.created, id=one.id))

    @routes.post("/bulk", BulkDecisionResult)
    async def answer_several(bulk: BulkDecision, principal: CurrentPrincipal) -> Response:
        """Answer several approvals at once. Allowing requires that all of them are for the same call."""
        approvals = [await _get_approval(yard, id_) for id_ in bulk.ids]
        allowed = bulk.effect == "allow"
        if allowed and len({approval.digest for approval in approvals}) > 1:
            raise Refusal(
                HTTPStatus.CONFLICT, Message("the approvals are for different calls: review and allow each one")
            )
        expected, done = ApprovalState.ALLOWED if allowed else ApprovalState.DENIED, []
        for approval in approvals:
            state = await yard.state.approvals.answer(
                approval.id, allowed=allowed, by=principal.actor, reason=bulk.reason
            )
            done.append({"id": approval.id, "state": state, "ok": state is expected})
        return json_response({"data": done})

    @routes.get("/{id}", ApprovalDetail)
    async def show_approval(id: str) -> Response:  # noqa: A002 it is the word of the OpenAPI
        """Return one approval with its full arguments and a preview of its changes; secrets are masked."""
        return json_response(await to_json(yard, clock, chat, await _get_approval(yard, id)))

    @routes.get("/{id}/arguments", RevealedArguments, audit="approval.revealed")
    async def reveal_arguments(id: str, principal: CurrentPrincipal) -> Response:  # noqa: A002
        """Return the unmasked arguments of a waiting call; requires the scope `admin`."""
        require_admin_for_masked(principal)
        approval = await _get_approval(yard, id)
        arguments = yard.state.approvals.reveal(id)
        if arguments is None:
            raise Refusal(HTTPStatus.CONFLICT, _unavailable_message(approval))
        return json_response({"id": id, "arguments": arguments})

    @routes.post("/{id}/allow", AnsweredApproval)
    async def allow(id: str, principal: CurrentPrincipal, decision: ApprovalDecision | None = None) -> Response:  # noqa: A002
        """Approve a waiting call."""
        return await _answer_approval(yard, id, principal, decision or ApprovalDecision(), allowed=True)

    @routes.post("/{id}/deny", AnsweredApproval)
    async def deny(id: str, principal: CurrentPrincipal, decision: ApprovalDecision | None = None) -> Response:  # noqa: A002
        """Deny a waiting call."""
        return await _answer_approval(yard, id, principal, decision or ApprovalDecision(), allowed=False)

    return routes


async def _get_approval(yard: Yard, id_: str) -> Approval:
    approval = await yard.state.approvals.get(id_)
    if approval is None:
        raise not_found(_name_approval(id_[:100]))
    return approval


def _unavailable_message(approval: Approval) -> str:
    if approval.state is ApprovalState.PENDING:
        return Message(
            "{id} is waiting on another host, which alone knows the masked values: ask there", id=approval.id
        )
    return Message(
        "{id} is already {state}: masked values are no longer stored", id=approval.id, state=approval.state.value
    )


async def _answer_approval(
    yard: Yard, id_: str, principal: Principal, decision: ApprovalDecision, *, allowed: bool
) -> Response:
    """Answer an approval. The first answer counts; a different second one gets 409."""
    approval = await _get_approval(yard, id_)
    for_chat = decision.for_ == "chat"
    if for_chat and not approval.chat:
        raise Refusal(HTTPStatus.CONFLICT, Message("{id} is not part of a chat: allow it once or always", id=id_))
    always = decision.always or decision.for_ == "always"
    state = await yard.state.approvals.answer(
        id_, allowed=allowed, by=principal.actor, always=always, for_chat=for_chat, reason=decision.reason
    )
    if state is not (ApprovalState.ALLOWED if allowed else ApprovalState.DENIED):
        state_name = state.value if state else "gone"
        raise Refusal(
            HTTPStatus.CONFLICT, Message("{id} is already {state_name}", id=id_, state_name=state_name), code=state_name
        )
    return json_response({"id": id_, "state": state.value})


def _name_approval(id_: str) -> Message:
    return Message("approval '{id}'", id=id_)


_MAX_EXCERPT = 500


async def to_json(yard: Yard, clock: Clock, chat: Chat | None, approval: Approval) -> JsonObject:
    plugin = yard.plugins.plugins.get(approval.tool)
    argv: Json = list(plugin.command.argv) if plugin and plugin.command else None
    is_pending = approval.state is ApprovalState.PENDING
    rehearsed = await _preview_change(yard, clock, approval) if is_pending else DryRunResult()
    patch = None if rehearsed.patch is None else yard.mask.json([*rehearsed.patch])
    beside: JsonObject = {
        "command_line": argv, "patch": patch, **to_fields("patch_problem", rehearsed.problem),
        "excerpt": _find_excerpt(chat, approval.chat or "", approval.caller),
    }  # fmt: skip
    return approval.to_json() | beside


@dataclass(frozen=True, slots=True)
class DryRunResult:
    """The result of a dry run: ``patch`` has an entry per file; None without one, mostly because of ``problem``."""

    patch: list[JsonObject] | None = None
    problem: str = ""


async def _preview_change(yard: Yard, clock: Clock, approval: Approval) -> DryRunResult:
    arguments = yard.state.approvals.reveal(approval.id) or approval.arguments
    try:
        tool = yard.tools.get(approval.tool)
    except Failure as failure:
        return DryRunResult(problem=failure.message)
    if not isinstance(tool, ChangingTool) or not isinstance(arguments, dict):
        return DryRunResult()
    return await dry_run(tool, tool.spec, arguments, caller=approval.caller, clock=clock)


def _find_excerpt(chat: Chat | None, id_: str, caller: str) -> str:
    """Return the last user message of the chat that made the call, if the chat is still remembered."""
    record = chat.record(id_, caller) if chat and id_ else None
    rounds = record["rounds"] if record else None
    first = rounds[0] if isinstance(rounds, list) and rounds else None
    sent = first.get("sent") if isinstance(first, dict) else None
    messages = sent.get("messages") if isinstance(sent, dict) else None
    for message in reversed(messages if isinstance(messages, list) else []):
        if isinstance(message, dict) and message.get("role") == "user":
            return _content_text(message.get("content"))[:_MAX_EXCERPT]
    return ""


def _content_text(content: Json) -> str:
    if isinstance(content, list):
        return " ".join(str(part["text"]) for part in content if isinstance(part, dict) and "text" in part)
    return content if isinstance(content, str) else ""


TIMEOUT_S: Final = 10.0
MAX_BYTES: Final = 512 * 1024
_DRY = "dry_run"
_HUNKS = "structured_patch"


async def dry_run(
    tool: ChangingTool, spec: ToolSpec, arguments: JsonObject, *, caller: str, clock: Clock
) -> DryRunResult:
    own = {name: value for name, value in arguments.items() if fold_name(name) != fold_name(_DRY)}
    try:
        if spec.splits_batches and split_batch(own, (*spec.parameter_names, *spec.synonyms)) is not None:
            several = Message("It has several steps: their combined changes are not known before they run.")
            return DryRunResult(problem=several)
        accepted = accept_arguments(spec, {**own, _DRY: True})
        call = ToolCall(id=f"rehearsal_{uuid4().hex}", tool=spec.name, arguments=accepted, caller=caller)
        stop = CancelScope(spec.name, clock, TIMEOUT_S)
        patch = _read_patch(await in_thread(lambda: tool.change(call, stop)))
    except Failure as failure:
        return DryRunResult(problem=failure.message)
    if len(json_bytes([*patch])) > MAX_BYTES:
        return DryRunResult(problem=Message("The changes exceed {most} bytes.", most=MAX_BYTES))
    return DryRunResult(patch=patch)


def _read_patch(result: Result) -> list[JsonObject]:
    files = result.data.get("files")
    if isinstance(files, list):
        return [_patch_entry(file) for file in files if isinstance(file, dict)]
    operation = "create" if result.extras.before is None else "update"
    path: Json = result.context.get("path_resolved")
    return [{"path": path, "operation": operation, _HUNKS: result.data.get(_HUNKS)}]


def _patch_entry(file: JsonObject) -> JsonObject:
    return {key: file[key] for key in ("path", "operation", "from", _HUNKS) if key in file}
