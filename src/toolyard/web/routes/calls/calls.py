"""``/v1/calls``: the journal, and each call with its approval, tasks, retries and files."""

from http import HTTPStatus
from typing import Annotated, Any, Literal

from fastapi import Query, Response
from pydantic import BaseModel, Field

from toolyard.engine.clock import Clock
from toolyard.engine.history.statistics import compute_statistics
from toolyard.engine.rules import find_commands
from toolyard.message import Message
from toolyard.protocol.access import ApprovalState, DecisionReason
from toolyard.protocol.content import CONTENT_KEYS
from toolyard.protocol.envelope import ErrorCode, Reason, list_causes
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.records.approval_record import Approval
from toolyard.protocol.records.call_record import CallRecord, CallState
from toolyard.protocol.records.task_record import Task
from toolyard.protocol.store import PageCursor
from toolyard.protocol.store import Query as RecordQuery
from toolyard.web.answers import After, CurrentPrincipal, Limit, json_response, page_response, require_owner
from toolyard.web.refusal import Refusal, not_found
from toolyard.web.routing import Routes
from toolyard.web.schemas.common import CallError, ChangedRecord, Envelope, StoredAction, StrictModel
from toolyard.web.schemas.records import extend_model, page_model, record_model
from toolyard.web.security.scope import Principal, Scope
from toolyard.workspace.changes.file_versions import FileVersion
from toolyard.yard.yard import Yard


class UndoneCall(ChangedRecord):
    restored: Annotated[list[str], Field(description="The paths that are as before the call again.")]
    deleted: Annotated[list[str], Field(description="The paths of the files and folders that the call had created.")]


_DAY_S = 86_400.0
_PLAYED = ("image", "audio", "video")
_BINARY: JsonObject = {"schema": {"type": "string", "format": "binary"}}
_MEDIA: dict[str, Any] = {"content": {f"{kind}/*": _BINARY for kind in _PLAYED}}
_MEDIA_HEADERS = {
    "Content-Disposition": "inline",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
}


def router(yard: Yard, clock: Clock) -> Routes:
    routes = Routes("/v1/calls", tag="calls", scope=Scope.TOOLS)

    @routes.get("", CallPage)
    async def list_calls(
        principal: CurrentPrincipal,
        after: After,
        limit: Limit = 50,
        state: Annotated[list[CallState], Query(max_length=10)] = [],  # noqa: B006 FastAPI copies it
        code: Annotated[
            list[ErrorCode | Reason],
            Query(max_length=10, description="Calls that ended with one of these error codes or reasons."),
        ] = [],  # noqa: B006
        tool: str | None = None,
        caller: Annotated[str | None, Query(description="Calls of this caller; those of others need `admin`.")] = None,
        search: Annotated[str, Query(max_length=200, description="Words in the arguments or the result.")] = "",
        since: Annotated[float | None, Query(description="Seconds since the epoch.", allow_inf_nan=False)] = None,
        before: Annotated[
            float | None,
            Query(description="Calls that began before it, in seconds since the epoch.", allow_inf_nan=False),
        ] = None,
    ) -> Response:
        """List calls, newest first."""
        query = RecordQuery(
            states=tuple(state), tool=tool, caller=principal.caller_filter or caller, text=search, since=since,
            before=before, codes=tuple(name for one in code for name in list_causes(one)),
        )  # fmt: skip
        calls = await yard.state.journal.page(query, limit=limit, after=after)
        return page_response(calls, limit, to_row_json, lambda one: PageCursor(at=one.started, id=one.id))

    @routes.get("/stats", CallStatistics)
    async def count_calls(
        principal: CurrentPrincipal,
        since: Annotated[
            float | None, Query(description="Seconds since the epoch; default: one day ago.", allow_inf_nan=False)
        ] = None,
    ) -> Response:
        """Return statistics of the newest calls, at most 10,000: how they ended and how long they ran."""
        begin = clock.now().timestamp() - _DAY_S if since is None else since
        return json_response(await compute_statistics(yard.state.store, since=begin, caller=principal.caller_filter))

    @routes.get("/{id}", CallDetail)
    async def show_call(id: str, principal: CurrentPrincipal) -> Response:  # noqa: A002 it is the word of the OpenAPI
        """Return one call with its arguments and full result; secrets are masked."""
        return json_response(await to_json(yard, await _get_call(yard, id, principal), only=principal.caller_filter))

    @routes.get("/{id}/files", CallFiles)
    async def show_files(id: str, principal: CurrentPrincipal) -> Response:  # noqa: A002
        """Return the files that a call wrote, before and after it, while they are kept; secrets are masked.

        At most 50 files, 512 KiB of each and 4 MiB in total.
        """
        await _get_call(yard, id, principal)
        return json_response(await list_files(yard, id))

    @routes.get("/{id}/media/{number}", responses={200: _MEDIA}, response_class=Response)
    async def show_media(id: str, number: int, principal: CurrentPrincipal) -> Response:  # noqa: A002
        """Return an image, audio or video of the result, by its place in the `content` of `data`, while it is kept."""
        source = find_media_source(await _get_call(yard, id, principal), number)
        media = await yard.results.load_media(source) if source else None
        if media is None or media.kind not in _PLAYED:
            raise not_found(Message("media {number} of call '{id}'", number=number, id=id[:100]))
        return Response(media.data, media_type=media.mime, headers=_MEDIA_HEADERS)

    @routes.post("/{id}/cancel", ChangedRecord)
    async def cancel_call(id: str, principal: CurrentPrincipal) -> Response:  # noqa: A002
        """Cancel a running call."""
        await _get_call(yard, id, principal)
        if not yard.calls.cancel(id):
            raise Refusal(HTTPStatus.CONFLICT, Message("{id} is not running on this host", id=id))
        return json_response({"ok": True, "id": id})

    @routes.post("/{id}/undo", UndoneCall)
    async def undo_call(id: str, principal: CurrentPrincipal) -> Response:  # noqa: A002
        """Restore the files that a call overwrote or deleted and delete those that it created, unless changed since."""
        await _get_call(yard, id, principal)
        undone = await yard.calls.undo(id, by=principal.caller)
        return json_response({"ok": True, "id": id, "restored": undone.restored, "deleted": undone.deleted})

    return routes


async def _get_call(yard: Yard, id_: str, principal: Principal) -> JsonObject:
    call = await yard.state.journal.get(id_)
    if call is None:
        raise not_found(_name_call(id_[:100]))
    require_owner(principal, str(call["caller"]), _name_call(id_[:100]))
    return call


def _name_call(id_: str) -> Message:
    return Message("call '{id}'", id=id_)


_RETRIES = 20
_TASKS = 20


def to_row_json(call: CallRecord) -> JsonObject:
    """Return a call as JSON for a list."""
    return {**call.to_json(), "command": _join_commands(call.arguments)}


async def to_json(yard: Yard, call: JsonObject, *, only: str | None) -> JsonObject:
    """Return a call of the journal with its details; with ``only``, retries of other callers are left out."""
    id_ = str(call["id"])
    approval = await yard.state.approvals.find_for_call(id_, str(call["caller"]))
    retries = [one for one in await yard.state.journal.find_retries(id_, limit=_RETRIES) if only in (None, one.caller)]
    return {
        **call, "process": call.get("process"), "command": _join_commands(call.get("arguments")),
        "retries": [{"id": one.id, "state": one.state.value, "started": one.started} for one in retries],
        "approval": _approval_to_json(approval),
        "timeline": _build_timeline(call, approval, await _list_tasks(yard, call)),
        "undoable": call["state"] != CallState.RUNNING and await yard.calls.can_undo(id_),
    }  # fmt: skip


async def list_files(yard: Yard, call_id: str) -> JsonObject:
    """Return the files that a call wrote, before and after it; secrets are masked."""
    files = await yard.calls.list_written_files(call_id)
    return {
        "data": [
            {"path": one.path, "before": _version_to_json(yard, one.before), "after": _version_to_json(yard, one.after)}
            for one in files
        ]
    }


def find_media_source(call: JsonObject, number: int) -> str:
    """Return the path of a part of a call's result; empty if that part is no stored file."""
    envelope = call.get("envelope")
    data = envelope.get("data") if isinstance(envelope, dict) else None
    fields = data if isinstance(data, dict) else {}
    lists = [parts for key in CONTENT_KEYS if isinstance(parts := fields.get(key), list)]
    part = lists[0][number] if lists and 0 <= number < len(lists[0]) else None
    path = part.get("path") if isinstance(part, dict) else None
    return path if isinstance(path, str) else ""


def _version_to_json(yard: Yard, version: FileVersion) -> JsonObject:
    text = None if version.text is None else yard.mask.text(version.text)
    return {"state": version.state.value, "bytes": version.bytes, "text": text}


def _join_commands(arguments: Json) -> str | None:
    """Return the commands in the arguments of a multi-command tool."""
    named = find_commands(arguments) if isinstance(arguments, dict) else ()
    return ", ".join(named) or None


async def _list_tasks(yard: Yard, call: JsonObject) -> list[Task]:
    """Return the tasks that the call started; a plugin may name others, which are left out."""
    names = call.get("tasks")
    tasks = [await yard.state.tasks.get(str(one)) for one in names[:_TASKS]] if isinstance(names, list) else []
    return [task for task in tasks if task is not None and task.call_id == call["id"]]


def _approval_to_json(approval: Approval | None) -> JsonObject | None:
    return {"id": approval.id, "state": approval.state.value, "by": approval.answered_by} if approval else None


def _build_timeline(call: JsonObject, approval: Approval | None, tasks: list[Task]) -> list[Json]:
    """Return the known steps of a call in order of time."""
    process, undone = call.get("process"), call.get("undone")
    of_process = process if isinstance(process, dict) else {}
    steps = [_make_step(call["started"], "called")]
    if approval is not None:
        steps += _approval_steps(approval)
    steps.append(_make_step(of_process.get("started", call.get("ran")), "started"))
    steps.append(_make_step(of_process.get("first_output"), "first_output"))
    steps.append(_make_step(call["ended"], "ended"))
    for task in tasks:
        steps += _callback_steps(task)
    if isinstance(undone, dict):
        steps.append(_make_step(undone["at"], "undone", by=undone["by"]))
    return [*sorted((step for step in steps if step["at"] is not None), key=lambda step: float(str(step["at"])))]


def _make_step(
    at: Json, what: str, *, by: Json = None, task: str | None = None, result: str | None = None
) -> JsonObject:
    return {"at": at, "what": what, "by": by, "task": task, "result": result}


def _approval_steps(approval: Approval) -> list[JsonObject]:
    if approval.because is DecisionReason.AUTO_SAFE:
        return [_make_step(approval.created, "unasked")]
    requested = _make_step(approval.created, "asked")
    if approval.state is ApprovalState.PENDING:
        return [requested]
    return [requested, _make_step(approval.updated, approval.state.value, by=approval.answered_by)]


def _callback_steps(task: Task) -> list[JsonObject]:
    """Return the callback that ended a task and later ones, or how the task ended without one."""
    came = [
        _make_step(late.get("at"), "callback", task=task.id, result="duplicate" if late.get("duplicate") else "refused")
        for late in task.audit
    ]
    if task.result is not None:
        return [_make_step(task.updated, "callback", task=task.id, result="accepted"), *came]
    return (
        [_make_step(task.updated, "task_ended", task=task.id, result=task.state.value), *came]
        if task.is_ended
        else came
    )


class CallApproval(BaseModel):
    id: str
    state: str
    by: str | None
    because: str | None = None


class TimelineStep(BaseModel):
    at: float
    what: Annotated[
        str,
        Field(
            description="`called`, `asked`, `unasked`, how the approval ended, `started`, `first_output`, `ended`,"
            " `callback`, `task_ended`, `undone`."
        ),
    ]
    by: Annotated[str | None, Field(description="The caller that allowed, denied or undid it.")]
    task: Annotated[str | None, Field(description="The task of the callback or end.")]
    result: Annotated[str | None, Field(description="The result of the callback or the task.")]


class RetrySummary(BaseModel):
    id: str
    state: str
    started: float


class ProcessDetail(BaseModel):
    pid: int
    argv: list[str]
    folder: str
    environment: Annotated[list[str], Field(description="Names of its environment variables.")]
    warm: Annotated[bool, Field(description="Whether it was started from a prepared interpreter.")]
    started: float
    first_output: float | None
    exit_code: int | None
    signal: int | None
    limits_hit: list[str]
    stdout_bytes: int | None
    stderr: str
    noise: Annotated[str, Field(description="Output on stdout besides the answer.")]


class FileSide(BaseModel):
    state: Annotated[
        Literal["text", "none", "binary", "too_large", "gone"],
        Field(description="`none`: there was no file; `gone`: it has changed since and is no longer stored."),
    ]
    bytes: int | None
    text: str | None


class CallFile(BaseModel):
    path: str
    before: FileSide
    after: FileSide


class CallFiles(BaseModel):
    data: list[CallFile]


class _CallError(StrictModel):
    error: CallError | None


class _CallSummary(_CallError):
    command: str | None


class _CallDetails(StoredAction, _CallSummary):
    envelope: Envelope | None
    retries: Annotated[list[RetrySummary], Field(description="The calls that repeat it, newest first.")]
    approval: CallApproval | None
    timeline: list[TimelineStep]
    process: Annotated[ProcessDetail | None, Field(description="The process, for plugins.")]
    undoable: Annotated[bool, Field(description="Whether its changes can be undone: the files are unchanged since.")]


CallDetail = record_model("CallDetail", CallRecord, _CallDetails)
CallPage = page_model("CallPage", record_model("CallRow", CallRecord, _CallSummary))


class ToolCount(BaseModel):
    tool: str
    calls: int
    errors: int
    cancelled: Annotated[int, Field(description="Cancelled or denied calls, which are no errors.")]
    p50_ms: float | None
    max_ms: float | None


class ErrorCount(BaseModel):
    code: str
    count: int


class _CallCounts(StrictModel):
    since: float
    counted_since: Annotated[float, Field(description="The start of the oldest call that is counted, if `is_capped`.")]
    is_capped: Annotated[bool, Field(description="There are more calls: only the newest 10,000 are counted.")]
    total: int
    by_state: dict[str, int]
    by_tool: list[ToolCount]
    errors: list[ErrorCount]


_SlowCall = record_model("SlowCall", CallRecord, _CallError)
CallStatistics = extend_model(
    "CallStatistics",
    _CallCounts,
    slow=Annotated[list[_SlowCall], Field(description="The ten slowest calls.")],  # type: ignore[valid-type]
)
