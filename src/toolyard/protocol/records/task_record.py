"""Tasks: work that goes on after its call has ended, known by plugin and task id.

A task begins when the receipt of an asynchronous plugin names it, or when its callback arrives even earlier. It ends
exactly once: the first terminal state stays, whatever comes later.
"""

import json
import re
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Annotated, Protocol

from toolyard.message import Message, to_fields
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.placeholders import Kind, find_placeholders
from toolyard.protocol.records.client_json import INTERNAL, Doc, to_client_json
from toolyard.protocol.store import (
    Record,
    read_integer,
    read_message,
    read_number,
    read_object,
    read_objects,
    read_text,
)
from toolyard.protocol.tool import ToolCall

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
    plugin: str
    task_id: Annotated[str, Doc("As the plugin names it.")]
    state: TaskState
    call_id: str
    caller: str
    created: float
    updated: float
    deadline: float
    arguments: JsonObject = field(default_factory=dict)
    receipt: str = ""
    progress: JsonObject = field(default_factory=dict)
    result: Annotated[Json, Doc("The body of the callback that ended it.")] = None
    message: Annotated[Message | str, Doc("The reason of its end when there was no callback.")] = ""
    audit: Annotated[tuple[JsonObject, ...], Doc("Late and repeated callbacks.")] = ()
    chat: Annotated[str | None, Doc("The chat of its call.")] = None
    project: Annotated[str, Doc("The folder of the project of its call; empty for tasks before this was noted.")] = ""
    pushes: Annotated[tuple[JsonObject, ...], Doc("Times, targets and client counts of its pushes.")] = ()
    token_hash: Annotated[str, INTERNAL]
    process: Annotated[Process | None, INTERNAL] = None
    version: Annotated[int, INTERNAL] = 0
    owner: Annotated[str, INTERNAL] = ""

    @property
    def is_ended(self) -> bool:
        return self.state is not TaskState.WAITING

    def finish(self, state: TaskState, at: float, *, result: Json = None, message: str = "") -> "Task":
        if self.is_ended:
            raise ValueError(f"task {self.id} has already ended")
        return replace(self, state=state, updated=at, result=result, message=message)

    def with_callback(self, at: float, body: Json) -> "Task":
        """Return the task with one more late callback in its audit."""
        return self._with_audit({"at": at, "body": body})

    def with_duplicate(self, at: float) -> "Task":
        """Return the task with a repeated callback in its audit."""
        return self._with_audit({"at": at, "duplicate": True})

    def with_push(self, push: JsonObject) -> "Task":
        """Return the task with one more push; several hosts may push one event (``seq``), which are summed."""
        before = next((one for one in self.pushes if one.get("seq") == push["seq"]), None)
        if before is None:
            return replace(self, pushes=(*self.pushes, push)[-_MAX_PUSHES:])
        sums = {name: read_number(before, name) + read_number(push, name) for name in ("clients", "reached")}
        summed: JsonObject = {**before, **{name: int(sum_) for name, sum_ in sums.items()}}
        return replace(self, pushes=tuple(summed if one is before else one for one in self.pushes))

    def _with_audit(self, entry: JsonObject) -> "Task":
        return replace(self, audit=(*self.audit, entry)[-_MAX_AUDIT:])

    @classmethod
    def from_record(cls, record: Record) -> "Task":
        body = record.body
        process = read_object(body, "process")
        return cls(
            id=record.id, plugin=record.tool, task_id=read_text(body, "task_id"), state=TaskState(record.state),
            call_id=read_text(body, "call_id"), caller=record.caller, created=record.created, updated=record.updated,
            deadline=read_number(body, "deadline"), arguments=read_object(body, "arguments"),
            receipt=read_text(body, "receipt"), progress=read_object(body, "progress"), result=body.get("result"),
            message=read_message(body, "message"), audit=read_objects(body, "audit"),
            chat=read_text(body, "chat") or None, pushes=read_objects(body, "pushes"),
            token_hash=read_text(body, "token_hash"),
            process=_process_from_json(process) if process else None, version=record.version, owner=record.owner,
            project=record.project,
        )  # fmt: skip

    def to_record(self) -> Record:
        return Record(
            kind=KIND, id=self.id, state=self.state, version=self.version, created=self.created, updated=self.updated,
            caller=self.caller, tool=self.plugin, key=task_key(self.plugin, self.task_id), owner=self.owner,
            project=self.project, due=None if self.is_ended else self.deadline,
            body={
                "call_id": self.call_id, "task_id": self.task_id, "deadline": self.deadline,
                "token_hash": self.token_hash, "arguments": self.arguments, "receipt": self.receipt,
                "result": self.result, **to_fields("message", self.message), "progress": self.progress,
                "process": _process_to_json(self.process),
                "audit": list(self.audit), "chat": self.chat or "", "pushes": list(self.pushes),
            },
        )  # fmt: skip

    def to_json(self) -> JsonObject:
        return to_client_json(self)


class PendingCall(Protocol):
    """A call to an asynchronous plugin whose receipt or callback may come any moment."""

    @property
    def token(self) -> str:
        """The secret in the callback address of this call; only its child process gets it."""
        ...

    @property
    def is_answered(self) -> bool:
        """Return whether callbacks have ended all of its tasks, so that its process may end in its own time."""
        ...

    async def wait_ended(self) -> TaskState:
        """Wait until every task of the call has ended; return the state of the last one."""
        ...


class TaskIntake(Protocol):
    """Turns the calls of asynchronous plugins into tasks."""

    def expect(self, call: ToolCall, *, timeout_s: float) -> PendingCall:
        """Accept callbacks for a call that is about to start."""
        ...

    async def store_receipt(self, pending: PendingCall, receipt: str, pid: int) -> tuple[Task, ...]:
        """Store the tasks that a receipt names and return them; none when it names none.

        When it is cancelled meanwhile, the stored tasks are ended.
        """
        ...

    async def begin_task(self, pending: PendingCall, task_id: str) -> Task:
        """Store the only task of a call, which ends without a callback. Cancelled meanwhile, the task is ended."""
        ...

    async def refresh(self, pending: PendingCall) -> None:
        """Read the tasks of a call again, which other hosts may have changed."""
        ...

    async def report_progress(self, task_id: str, progress: JsonObject) -> None:
        """Store the progress of a task."""
        ...

    async def end_open_tasks(self, pending: PendingCall, state: TaskState, message: str) -> None:
        """End the open tasks of a call whose process can no longer call back."""
        ...

    def close(self, pending: PendingCall) -> None:
        """Refuse further callbacks with this token, unless a stored task has it."""
        ...


def task_key(plugin: str, task_id: str) -> str:
    return f"{plugin}::{task_id}"


def is_valid_id(text: str) -> bool:
    """Return whether a plugin may use this id; ``.`` and ``..`` are refused."""
    return bool(_ID.fullmatch(text)) and text.strip(".") != ""


def find_task_ids(text: str, plugin: str) -> tuple[str, ...]:
    """Return the ids of the tasks of ``plugin`` that a receipt's text names, in order."""
    named = (p.parts for p in find_placeholders(text) if p.kind is Kind.ASYNC_RESULT)
    return tuple(dict.fromkeys(task_id for name, task_id in named if name == plugin and is_valid_id(task_id)))


def state_from_callback(body: Json) -> TaskState:
    """Return the end state that a callback's ``status`` means."""
    status = body.get("status") if isinstance(body, dict) else None
    failed = isinstance(status, str) and status.replace("_", "").lower() in _FAILED
    return TaskState.FAILED if failed else TaskState.SUCCEEDED


def write_result(task: Task) -> str:
    """Return the text that replaces ``{{VCP_ASYNC_RESULT::plugin::id}}``."""
    if not task.is_ended:
        return f"[Task {task.plugin} (ID: {task.task_id}) is still running; its result will be here when it is done]"
    message = task.result.get("message") if isinstance(task.result, dict) else None
    if isinstance(message, str) and message:
        return message
    if task.result is not None:
        return json.dumps(task.result, ensure_ascii=False)
    return f"[Task {task.plugin} (ID: {task.task_id}) {task.state.value.replace('_', ' ')}: {task.message}]"


def _process_to_json(process: Process | None) -> Json:
    return None if process is None else {"pid": process.pid, "started": process.started, "host": process.host}


def _process_from_json(value: JsonObject) -> Process:
    return Process(
        pid=read_integer(value, "pid"), started=read_integer(value, "started"), host=read_text(value, "host")
    )
