"""One call of the journal with what is known about it elsewhere: its approval, its tasks, its retries, its files."""

from toolyard.app import Yard
from toolyard.engine import approvals
from toolyard.engine.journal import RUNNING, to_json
from toolyard.engine.permission_request import find_commands
from toolyard.engine.rules import DecisionReason
from toolyard.protocol.approval import ApprovalState
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.store import Query, Record
from toolyard.protocol.task import Task
from toolyard.workspace.file_versions import FileVersion

_RETRIES = 20
_TASKS = 20
_LATER: JsonObject = {
    "chat": None, "time_ms": None, "waited_ms": None, "bytes_out": None, "tasks": [], "retry_of": None, "undone": None,
}  # fmt: skip


def row(record: Record) -> JsonObject:
    return {**_LATER, **to_json(record), "command": _command(record.body.get("arguments"))}


async def whole(yard: Yard, found: JsonObject, *, only: str | None) -> JsonObject:
    """``found`` is the call as the journal has it; ``only``: show no call of another caller beside it."""
    id_ = str(found["id"])
    asked = await yard.store.find(approvals.KIND, Query(text=id_, caller=str(found["caller"])), limit=1)
    approval = asked[0] if asked and asked[0].body.get("call_id") == id_ else None
    retries = [one for one in await yard.journal.find_retries(id_, limit=_RETRIES) if only in (None, one.caller)]
    return {
        **_LATER, **found, "process": found.get("process"), "command": _command(found.get("arguments")),
        "retries": [{"id": one.id, "state": one.state, "started": one.created} for one in retries],
        "approval": _approval(approval), "timeline": _timeline(found, approval, await _tasks(yard, found)),
        "undoable": found["state"] != RUNNING and await yard.can_undo(id_),
    }  # fmt: skip


async def files(yard: Yard, call_id: str) -> JsonObject:
    """The files that a call wrote, before and after it; secrets are masked."""
    found = await yard.files_of(call_id)
    return {
        "data": [
            {"path": one.path, "before": _side(yard, one.before), "after": _side(yard, one.after)} for one in found
        ]
    }


def _side(yard: Yard, side: FileVersion) -> JsonObject:
    text = None if side.text is None else yard.mask.text(side.text)
    return {"state": side.state.value, "bytes": side.bytes, "text": text}


def _command(arguments: Json) -> str | None:
    """What a tool of several commands was asked to do."""
    named = find_commands(arguments) if isinstance(arguments, dict) else ()
    return ", ".join(named) or None


async def _tasks(yard: Yard, found: JsonObject) -> list[Task]:
    """Those that it really began: a plugin may name what it likes."""
    named = found.get("tasks")
    tasks = [await yard.tasks.get(str(one)) for one in named[:_TASKS]] if isinstance(named, list) else []
    return [task for task in tasks if task is not None and task.call_id == found["id"]]


def _approval(record: Record | None) -> JsonObject | None:
    return {"id": record.id, "state": record.state, "by": record.body.get("by")} if record else None


def _timeline(found: JsonObject, approval: Record | None, tasks: list[Task]) -> list[Json]:
    """What happened to it, in order, as far as it is known."""
    process, undone = found.get("process"), found.get("undone")
    of_process = process if isinstance(process, dict) else {}
    steps = [_step(found["started"], "called")]
    if approval is not None:
        steps += _asked(approval)
    steps.append(_step(of_process.get("started", found.get("ran")), "started"))
    steps.append(_step(of_process.get("first_output"), "first_output"))
    steps.append(_step(found["ended"], "ended"))
    for task in tasks:
        steps += _callbacks(task)
    if isinstance(undone, dict):
        steps.append(_step(undone["at"], "undone", by=undone["by"]))
    return [*sorted((step for step in steps if step["at"] is not None), key=lambda step: float(str(step["at"])))]


def _step(at: Json, what: str, *, by: Json = None, task: str | None = None, result: str | None = None) -> JsonObject:
    return {"at": at, "what": what, "by": by, "task": task, "result": result}


def _asked(approval: Record) -> list[JsonObject]:
    if approval.body.get("because") == DecisionReason.AUTO_SAFE:
        return [_step(approval.created, "unasked")]
    asked = _step(approval.created, "asked")
    if approval.state == ApprovalState.PENDING:
        return [asked]
    return [asked, _step(approval.updated, approval.state, by=approval.body.get("by"))]


def _callbacks(task: Task) -> list[JsonObject]:
    """The callback that ended a task and those that came after it; or how it ended without one."""
    came = [
        _step(late.get("at"), "callback", task=task.id, result="duplicate" if late.get("duplicate") else "refused")
        for late in task.audit
    ]
    if task.result is not None:
        return [_step(task.updated, "callback", task=task.id, result="accepted"), *came]
    return [_step(task.updated, "task_ended", task=task.id, result=task.state.value), *came] if task.is_ended else came
