"""Tasks: work that goes on after its call has ended, known by plugin and task id.

A task begins when the receipt of an asynchronous plugin names it, or when its callback arrives even earlier. It ends
exactly once: the first terminal state stays, whatever comes later.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Protocol

from toolyard.protocol.call import ToolCall
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.placeholders import Kind, find_placeholders
from toolyard.protocol.store import Record

KIND = "task"
_ID = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_FAILED = frozenset({"failed", "error", "pollingtimeout"})
_MAX_AUDIT = 20  # later callbacks that are remembered
_MAX_PUSHES = 20


class TaskState(StrEnum):
    WAITING = "waiting_callback"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"  # it ran past its total limit
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"  # its process was lost with its host


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process that can be found again: a pid alone may have been given to another."""

    pid: int
    started: int  # as the kernel counts it
    host: str  # the machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    id: str
    call_id: str
    plugin: str
    task_id: str  # as the plugin names it
    state: TaskState
    version: int = 0
    created: float
    updated: float
    deadline: float
    caller: str
    token_hash: str
    owner: str = ""
    arguments: JsonObject = field(default_factory=dict)
    receipt: str = ""
    result: Json = None  # the body of the callback that ended it
    message: str = ""  # why it ended, when no callback said so
    progress: JsonObject = field(default_factory=dict)
    process: Process | None = None
    audit: tuple[JsonObject, ...] = ()  # callbacks that came too late, or again
    chat: str = ""  # where its call was made
    pushes: tuple[JsonObject, ...] = ()  # when its result was pushed, to whom, and how many clients took it

    @property
    def ended(self) -> bool:
        return self.state is not TaskState.WAITING

    def finish(self, state: TaskState, at: float, *, result: Json = None, message: str = "") -> "Task":
        if self.ended:
            raise ValueError(f"task {self.id} has already ended")
        return replace(self, state=state, updated=at, result=result, message=message)

    def noted(self, at: float, body: Json) -> "Task":
        """The same task with one more callback that changed nothing."""
        return self._audited({"at": at, "body": body})

    def repeated(self, at: float) -> "Task":
        """The same task, whose callback came once more."""
        return self._audited({"at": at, "duplicate": True})

    def pushed(self, push: JsonObject) -> "Task":
        """The same task, told to ``clients`` more; several hosts may have told theirs of one event, its ``seq``."""
        before = next((one for one in self.pushes if one.get("seq") == push["seq"]), None)
        if before is None:
            return replace(self, pushes=(*self.pushes, push)[-_MAX_PUSHES:])
        sums = {name: _number(before.get(name)) + _number(push[name]) for name in ("clients", "reached")}
        whole: JsonObject = {**before, **{name: int(sum_) for name, sum_ in sums.items()}}
        return replace(self, pushes=tuple(whole if one is before else one for one in self.pushes))

    def _audited(self, entry: JsonObject) -> "Task":
        return replace(self, audit=(*self.audit, entry)[-_MAX_AUDIT:])

    def to_record(self) -> Record:
        return Record(
            kind=KIND, id=self.id, state=self.state, version=self.version, created=self.created, updated=self.updated,
            caller=self.caller, tool=self.plugin, key=key_of(self.plugin, self.task_id), owner=self.owner,
            due=None if self.ended else self.deadline,
            body={
                "call_id": self.call_id, "task_id": self.task_id, "deadline": self.deadline,
                "token_hash": self.token_hash, "arguments": self.arguments, "receipt": self.receipt,
                "result": self.result, "message": self.message, "progress": self.progress,
                "process": _written(self.process),
                "audit": list(self.audit), "chat": self.chat, "pushes": list(self.pushes),
            },
        )  # fmt: skip

    def to_dict(self) -> JsonObject:
        """What people and programs see of it: everything but the token."""
        return {
            "id": self.id, "plugin": self.plugin, "task_id": self.task_id, "state": self.state.value,
            "call_id": self.call_id, "caller": self.caller, "created": self.created, "updated": self.updated,
            "deadline": self.deadline, "arguments": self.arguments, "receipt": self.receipt,
            "progress": self.progress, "result": self.result, "message": self.message, "audit": list(self.audit),
            "chat": self.chat or None, "pushes": list(self.pushes),
        }  # fmt: skip


class Expected(Protocol):
    """A call to an asynchronous plugin whose receipt or callback may come any moment."""

    @property
    def token(self) -> str:
        """What the callback address of this one call carries; told to the child and to nobody else."""
        ...

    @property
    def answered(self) -> bool:
        """Whether callbacks have ended all of its tasks, so that its process may end in its own time."""
        ...

    async def ended(self) -> TaskState:
        """Until every task of the call has ended; how the last one did."""
        ...


class Desk(Protocol):
    """Where the calls of asynchronous plugins become tasks."""

    def expect(self, call: ToolCall, *, timeout_s: float) -> Expected:
        """Open the door for the callback of a call that is about to start."""
        ...

    async def received(self, expected: Expected, receipt: str, pid: int) -> tuple[Task, ...]:
        """The tasks that a receipt names, stored; none when it names none, and then the call is all there was.

        Stopped meanwhile, it ends those that it has stored.
        """
        ...

    async def begin(self, expected: Expected, task_id: str) -> Task:
        """The one task of a call, stored: work that goes on without a callback. Stopped meanwhile, it ends it."""
        ...

    async def look(self, expected: Expected) -> None:
        """See what others did to the tasks of a call."""
        ...

    async def progressed(self, task_id: str, progress: JsonObject) -> None:
        """How far a task is."""
        ...

    async def lost(self, expected: Expected, state: TaskState, message: str) -> None:
        """End what is still open of a call whose process can no longer call back."""
        ...

    def close(self, expected: Expected) -> None:
        """Shut the door: no callback with this token is taken any more, unless a stored task has it."""
        ...


def from_record(record: Record) -> Task:
    body: Mapping[str, Json] = record.body
    process = body.get("process")
    return Task(
        id=record.id, call_id=str(body["call_id"]), plugin=record.tool, task_id=str(body["task_id"]),
        state=TaskState(record.state), version=record.version, created=record.created, updated=record.updated,
        deadline=_number(body["deadline"]), caller=record.caller, token_hash=str(body["token_hash"]),
        owner=record.owner, arguments=_object(body.get("arguments")), receipt=str(body.get("receipt", "")),
        result=body.get("result"), message=str(body.get("message", "")), progress=_object(body.get("progress")),
        process=_process(process) if isinstance(process, dict) else None,
        audit=_objects(body.get("audit")), chat=str(body.get("chat", "")), pushes=_objects(body.get("pushes")),
    )  # fmt: skip


def key_of(plugin: str, task_id: str) -> str:
    return f"{plugin}::{task_id}"


def valid_id(text: str) -> bool:
    """Ids are keys, never file names; ``.`` and ``..`` are nobody's id."""
    return bool(_ID.fullmatch(text)) and text.strip(".") != ""


def named_tasks(text: str, plugin: str) -> tuple[str, ...]:
    """The ids of the tasks of ``plugin`` that a receipt's text names, in order."""
    found = (p.parts for p in find_placeholders(text) if p.kind is Kind.ASYNC_RESULT)
    return tuple(dict.fromkeys(task_id for name, task_id in found if name == plugin and valid_id(task_id)))


def state_of(body: Json) -> TaskState:
    """How a task ends by what its callback says."""
    status = body.get("status") if isinstance(body, dict) else None
    failed = isinstance(status, str) and status.replace("_", "").lower() in _FAILED
    return TaskState.FAILED if failed else TaskState.SUCCEEDED


def result_text(task: Task) -> str:
    """What ``{{VCP_ASYNC_RESULT::plugin::id}}`` becomes."""
    if not task.ended:
        return f"[Task {task.plugin} (ID: {task.task_id}) is still running; its result will be here when it is done]"
    message = task.result.get("message") if isinstance(task.result, dict) else None
    if isinstance(message, str) and message:
        return message
    if task.result is not None:
        return json.dumps(task.result, ensure_ascii=False)
    return f"[Task {task.plugin} (ID: {task.task_id}) {task.state.value.replace('_', ' ')}: {task.message}]"


def _written(process: Process | None) -> Json:
    return None if process is None else {"pid": process.pid, "started": process.started, "host": process.host}


def _object(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _objects(value: Json) -> tuple[JsonObject, ...]:
    return tuple(entry for entry in value if isinstance(entry, dict)) if isinstance(value, list) else ()


def _number(value: Json) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _process(value: JsonObject) -> Process:
    return Process(pid=int(_number(value["pid"])), started=int(_number(value["started"])), host=str(value["host"]))
