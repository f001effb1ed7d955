"""One call of the journal with what is known about it elsewhere: its approval, its tasks, whether it can be undone."""

from toolyard.app import Yard
from toolyard.engine import approvals
from toolyard.engine.ask import commands_in
from toolyard.engine.journal import RUNNING, shown
from toolyard.protocol.approval import State
from toolyard.protocol.json import Json, JsonObject, json_bytes
from toolyard.protocol.store import Query, Record


def row(record: Record) -> JsonObject:
    return {"chat": None, **shown(record), "command": _command(record.body.get("arguments"))}


async def whole(yard: Yard, found: JsonObject) -> JsonObject:
    """``found`` is the call as the journal has it."""
    id_, envelope = str(found["id"]), found.get("envelope")
    asked = await yard.store.find(approvals.KIND, Query(text=id_, caller=str(found["caller"])), limit=1)
    approval = asked[0] if asked and asked[0].body.get("call_id") == id_ else None
    return {
        "chat": None, **found, "command": _command(found.get("arguments")),
        "bytes_out": len(json_bytes(envelope)) if envelope else 0, "tasks": _tasks(envelope),
        "approval": _approval(approval), "timeline": _timeline(found, approval),
        "process": _process(yard, id_),
        "undoable": found["state"] != RUNNING and await yard.can_undo(id_),
    }  # fmt: skip


def _process(yard: Yard, call_id: str) -> Json:
    """How the process of a plugin's call ran, while this server remembers it."""
    return yard.mask.json(yard.plugins.host.runs.get(call_id))


def _command(arguments: Json) -> str | None:
    """What a tool of several commands was asked to do."""
    named = commands_in(arguments) if isinstance(arguments, dict) else ()
    return ", ".join(named) or None


def _tasks(envelope: Json) -> list[Json]:
    data = envelope.get("data") if isinstance(envelope, dict) else None
    tasks = data.get("tasks") if isinstance(data, dict) else None
    return [task["id"] for task in tasks if isinstance(task, dict) and "id" in task] if isinstance(tasks, list) else []


def _approval(record: Record | None) -> JsonObject | None:
    return {"id": record.id, "state": record.state, "by": record.body.get("by")} if record else None


def _timeline(found: JsonObject, approval: Record | None) -> list[Json]:
    steps: list[Json] = [{"at": found["started"], "what": "called"}]
    if approval is not None:
        steps.append({"at": approval.created, "what": "asked"})
        if approval.state != State.PENDING:
            steps.append({"at": approval.updated, "what": approval.state})
    if found["ended"] is not None:
        steps.append({"at": found["ended"], "what": "ended"})
    return steps
