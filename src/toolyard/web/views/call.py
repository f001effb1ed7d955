"""A call of the journal as client JSON, with its approval, tasks, retries and files."""

from toolyard.engine.permission_request import find_commands
from toolyard.protocol.approval import ApprovalState, DecisionReason
from toolyard.protocol.approval_record import Approval
from toolyard.protocol.call_record import CallRecord, CallState
from toolyard.protocol.content_reference import CONTENT_KEYS
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.task import Task
from toolyard.workspace.file_versions import FileVersion
from toolyard.yard.yard import Yard

_RETRIES = 20
_TASKS = 20


def to_row_json(call: CallRecord) -> JsonObject:
    """Return a call as JSON for a list."""
    return {**call.to_json(), "command": _join_commands(call.arguments)}


async def to_json(yard: Yard, call: JsonObject, *, only: str | None) -> JsonObject:
    """Return a call of the journal with its details; with ``only``, retries of other callers are left out."""
    id_ = str(call["id"])
    approval = await yard.approvals.find_for_call(id_, str(call["caller"]))
    retries = [one for one in await yard.journal.find_retries(id_, limit=_RETRIES) if only in (None, one.caller)]
    return {
        **call, "process": call.get("process"), "command": _join_commands(call.get("arguments")),
        "retries": [{"id": one.id, "state": one.state.value, "started": one.started} for one in retries],
        "approval": _approval_to_json(approval),
        "timeline": _build_timeline(call, approval, await _list_tasks(yard, call)),
        "undoable": call["state"] != CallState.RUNNING and await yard.can_undo(id_),
    }  # fmt: skip


async def list_files(yard: Yard, call_id: str) -> JsonObject:
    """Return the files that a call wrote, before and after it; secrets are masked."""
    files = await yard.list_written_files(call_id)
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
    tasks = [await yard.tasks.get(str(one)) for one in names[:_TASKS]] if isinstance(names, list) else []
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
