"""Tasks: receipts and callbacks come in, and each task ends exactly once.

Promises (reliability §2): a callback that was answered 200 is stored with its event in one transaction; the
first terminal state stays; a later callback is only noted. A callback is taken from whoever has the token of the call,
also before its receipt. At most ``MAX_EXPECTED`` calls can be open at a time; their tokens are 256 random bits of
which only the hash is stored.
"""

import asyncio
import hashlib
import hmac
import json
import logging
import secrets
import socket
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final
from uuid import uuid4

from toolyard.crashpoint import crashpoint
from toolyard.engine.cancellation import uncancellable
from toolyard.engine.clock import Clock
from toolyard.engine.history.journal import searchable_text
from toolyard.errors import StorageError
from toolyard.message import Message, to_fields
from toolyard.process_numbers import process_start_time
from toolyard.protocol.envelope import ErrorCode, Failure, Reason
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.mask import MASK
from toolyard.protocol.records.task_record import (
    KIND,
    PendingCall,
    Process,
    Task,
    TaskState,
    find_task_ids,
    is_valid_id,
    state_from_callback,
    task_key,
)
from toolyard.protocol.store import NewEvent, PageCursor, Query, Record, Store
from toolyard.protocol.tool import ToolCall

_log = logging.getLogger(__name__)
MAX_EXPECTED = 10_000
PUSH_AGAIN: Final = "task.push"  # the result is to be pushed once more
_MAX_REFUSED = 200  # tasks whose refused callbacks are remembered
_MAX_REFUSALS = 5  # of each


class CallbackAnswer(StrEnum):
    """The answer to a callback."""

    STORED = "stored"
    DUPLICATE = "duplicate"  # the same body again
    ALREADY_ENDED = "already_ended"  # another body, or the task was cancelled or timed out: noted, nothing changed
    UNKNOWN = "unknown"  # the token is good, but no task of its call has this id
    FORBIDDEN = "forbidden"  # no such token
    INVALID = "invalid"  # no id at all


@dataclass(eq=False)
class _PendingCall:
    call: ToolCall
    deadline: float
    token: str
    token_hash: str
    tasks: dict[str, Task] = field(default_factory=dict)  # by the plugin's own id
    has_receipt: bool = False  # the receipt is stored: no further id is taken
    naming: asyncio.Lock = field(default_factory=asyncio.Lock)  # receipt and callback may name a task at once
    done: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def is_answered(self) -> bool:
        return bool(self.tasks) and all(task.result is not None for task in self.tasks.values())

    async def wait_ended(self) -> TaskState:
        await self.done.wait()
        return next(reversed(self.tasks.values())).state

    def observe(self, task: Task) -> None:
        """Take a task as read from the store; an ended one is never replaced by an older read."""
        latest = self.tasks.get(task.task_id)
        if latest is None or not latest.is_ended:
            self.tasks[task.task_id] = task
        if self.has_receipt and self.tasks and all(one.is_ended for one in self.tasks.values()):
            self.done.set()


class Tasks:
    """The tasks of one host, over its store."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        *,
        owner: str,
        mask: Callable[[Json], Json] = lambda json: json,
        project: str = "",
    ) -> None:
        self._store, self._clock, self.owner, self._mask, self._project = store, clock, owner, mask, project
        self._expected: dict[str, _PendingCall] = {}  # by the hash of the token
        self._refused: OrderedDict[str, deque[float]] = OrderedDict()  # by plugin and id; a bad token writes nothing

    # --- the plugin's side ---

    def expect(self, call: ToolCall, *, timeout_s: float) -> PendingCall:
        if len(self._expected) >= MAX_EXPECTED:
            raise Failure(
                Reason.BUSY,
                Message("{count} tasks are running already.", count=len(self._expected)),
                hint=Message("Try again later."),
            )
        token = secrets.token_urlsafe(32)
        pending = _PendingCall(call, self._now() + timeout_s, token, _hash_token(token))
        self._expected[pending.token_hash] = pending
        return pending

    async def store_receipt(self, pending: PendingCall, receipt: str, pid: int | None) -> tuple[Task, ...]:
        """Store the tasks that a receipt names; without ``pid`` their work is done on another machine."""
        pending = _require_own(pending)
        try:
            return await uncancellable(self._store_receipt(pending, receipt, pid))
        except (asyncio.CancelledError, StorageError):
            try:
                why = Message("Its call was stopped before its receipt was stored.")
                await self.end_open_tasks(pending, TaskState.CANCELLED, why)
            except StorageError as error:
                _log.error("the tasks of %s stay open until the next start: %s", pending.call.id, error)
            raise

    async def _store_receipt(self, pending: _PendingCall, receipt: str, pid: int | None) -> tuple[Task, ...]:
        process = None
        if pid is not None:
            process = Process(pid=pid, started=process_start_time(pid), host=socket.gethostname())
        async with pending.naming:
            for task_id in find_task_ids(receipt, pending.call.tool):
                if task_id not in pending.tasks:
                    pending.observe(await self._create_task(pending, task_id, receipt, process))
                else:  # its callback was faster
                    await self._add_receipt(pending.tasks[task_id].id, receipt, process)
            pending.has_receipt = True
        for task in list(pending.tasks.values()):
            pending.observe(task)
        return tuple(pending.tasks.values())

    async def begin_task(self, pending: PendingCall, task_id: str) -> Task:
        pending = _require_own(pending)
        try:
            return await uncancellable(self._begin_only_task(pending, task_id))
        except (asyncio.CancelledError, StorageError):
            try:
                why = Message("Its call was stopped before the task was stored.")
                await self.end_open_tasks(pending, TaskState.CANCELLED, why)
            except StorageError as error:
                _log.error("the task of %s stays open until the next start: %s", pending.call.id, error)
            raise

    async def _begin_only_task(self, pending: _PendingCall, task_id: str) -> Task:
        async with pending.naming:
            task = await self._create_task(pending, task_id, "", None)
            pending.has_receipt = True
        pending.observe(task)
        return task

    async def adopt(self, tasks: Sequence[Task]) -> PendingCall | None:
        """Adopt the open tasks of one call whose host is dead; None when another host was faster."""
        now = self._now()
        ours = [replace(task, owner=self.owner, updated=now) for task in tasks]
        if not await self._store.commit([_to_record(task) for task in ours]):
            return None
        first = ours[0]
        call = ToolCall(id=first.call_id, tool=first.plugin, arguments=first.arguments, caller=first.caller)
        pending = _PendingCall(call, first.deadline, "", first.token_hash, has_receipt=True)
        for task in ours:
            pending.observe(replace(task, version=task.version + 1))
        crashpoint("task.readopted")
        self._expected[first.token_hash] = pending
        return pending

    async def reclaim(self) -> None:
        """Own the tasks of this host again after it was taken for dead and got a new name."""
        for pending in list(self._expected.values()):
            for task in [task for task in pending.tasks.values() if not task.is_ended and task.owner != self.owner]:
                record = await self._store.get(KIND, task.id)
                if record is not None and record.owner == task.owner and not Task.from_record(record).is_ended:
                    await self._store.commit([replace(record, owner=self.owner)])

    async def refresh(self, pending: PendingCall) -> None:
        """Read the tasks of a call again: a callback or a cancel may come to any host."""
        pending = _require_own(pending)
        for task in list(pending.tasks.values()):
            record = await self._store.get(KIND, task.id)
            if record is not None:
                pending.observe(Task.from_record(record))

    async def end_open_tasks(self, pending: PendingCall, state: TaskState, message: str) -> None:
        for task in list(_require_own(pending).tasks.values()):
            await self.end(task.id, state, message=message)

    def close(self, pending: PendingCall) -> None:
        self._expected.pop(_require_own(pending).token_hash, None)

    # --- the callback's side ---

    async def check_callback(self, token: str, plugin: str, task_id: str) -> CallbackAnswer | None:
        """Check a callback before its body is read; return the refusal, or None when it is acceptable."""
        if not is_valid_id(task_id) or not is_valid_id(plugin):
            return CallbackAnswer.INVALID
        hashed = _hash_token(token)
        pending = self._expected.get(hashed)
        if pending is not None:
            is_known = not pending.has_receipt or task_id in pending.tasks
            return None if is_known and pending.call.tool == plugin else CallbackAnswer.UNKNOWN
        if await self._find_stored(hashed, plugin, task_id):
            return None
        self._remember_refusal(task_key(plugin, task_id))
        return CallbackAnswer.FORBIDDEN

    async def take_callback(self, token: str, plugin: str, task_id: str, body: Json) -> CallbackAnswer:
        """Store a callback with its event; a repeated one only gets noted."""
        refused = await self.check_callback(token, plugin, task_id)
        if refused is not None:
            return refused
        hashed = _hash_token(token)
        pending = self._expected.get(hashed)
        if pending is not None and not await self._ensure_task(pending, task_id):
            return CallbackAnswer.UNKNOWN
        task = pending.tasks[task_id] if pending else await self._find_stored(hashed, plugin, task_id)
        if task is None:
            return CallbackAnswer.UNKNOWN
        crashpoint("callback.before-stored")
        if await self.end(task.id, state_from_callback(body), result=body):
            crashpoint("callback.stored")
            return CallbackAnswer.STORED
        return await self._note_callback(task.id, body)

    def refusal_times(self, task: Task) -> tuple[float, ...]:
        """Return the times of recent callbacks to this process for a task with a wrong token."""
        return tuple(self._refused.get(task_key(task.plugin, task.task_id), ()))

    def _remember_refusal(self, key: str) -> None:
        self._refused.setdefault(key, deque(maxlen=_MAX_REFUSALS)).append(self._now())
        self._refused.move_to_end(key)
        if len(self._refused) > _MAX_REFUSED:
            self._refused.popitem(last=False)

    async def _ensure_task(self, pending: _PendingCall, task_id: str) -> bool:
        """Create the task that a callback names before its receipt; False when its call has no such task."""
        async with pending.naming:
            if task_id not in pending.tasks and not pending.has_receipt:
                pending.observe(await self._create_task(pending, task_id, "", None))
        return task_id in pending.tasks

    # --- everyone else's side ---

    async def get(self, name: str) -> Task | None:
        """Return a task by its own id or by ``plugin::id``."""
        record = await self._store.get(KIND, name)
        if record is None and "::" in name:
            record = next(iter(await self._store.find(KIND, Query(key=name), limit=1)), None)
        return Task.from_record(record) if record else None

    async def find_for_caller(self, plugin: str, task_id: str, caller: str) -> Task | None:
        """Return the newest task of that name that this caller started."""
        records = await self._store.find(KIND, Query(key=task_key(plugin, task_id), caller=caller), limit=1)
        return Task.from_record(records[0]) if records else None

    async def page(self, query: Query, *, limit: int, after: PageCursor | None = None) -> list[Task]:
        return [Task.from_record(record) for record in await self._store.find(KIND, query, limit=limit, after=after)]

    async def cancel(self, task_id: str) -> bool:
        """End a task that still runs; False when it had ended already."""
        return await self.end(task_id, TaskState.CANCELLED, message=Message("It was cancelled."))

    async def fail(self, task_id: str, reason: str) -> bool:
        """Mark a running task as failed by a person's decision."""
        return await self.end(task_id, TaskState.FAILED, message=reason)

    async def count(self, caller: str | None = None) -> dict[str, int]:
        """Return the number of tasks in each state, of all callers or of one."""
        queries = {state.value: Query(states=(state,), caller=caller) for state in TaskState}
        return {state: await self._store.count(KIND, query) for state, query in queries.items()}

    async def report_progress(self, task_id: str, progress: JsonObject) -> None:
        """Store the progress of a task; a report that loses a race is dropped."""
        record = await self._store.get(KIND, task_id)
        task = Task.from_record(record) if record else None
        if task is not None and not task.is_ended:
            now = self._now()
            await self._store.commit(
                [_to_record(replace(task, progress=progress, updated=now))],
                [_to_event("task.progress", now, task, progress)],
            )

    async def request_push(self, task: Task) -> None:
        """Emit an event that pushes the result of a task once more."""
        await self._store.commit([], [_to_event(PUSH_AGAIN, self._now(), task)])

    async def record_push(self, task_id: str, push: JsonObject) -> None:
        """Record with a task to how many clients its result was pushed; a deleted task stays deleted."""
        while (record := await self._store.get(KIND, task_id)) is not None:
            task = Task.from_record(record).with_push(push)
            event = NewEvent(type="task.pushed", at=self._now(), data={"id": task.id, **push})
            if await self._store.commit([_to_record(task)], [event]):
                return

    async def wait(self, task_id: str) -> Task:
        """Wait until a task has ended."""
        _, seq = await self._store.event_span()
        while True:
            record = await self._store.get(KIND, task_id)
            if record is None:
                raise KeyError(task_id)
            task = Task.from_record(record)
            if task.is_ended:
                return task
            await self._store.next_event(seq)
            _, seq = await self._store.event_span()

    async def _create_task(self, pending: _PendingCall, task_id: str, receipt: str, process: Process | None) -> Task:
        call, now = pending.call, self._now()
        arguments = self._mask(call.arguments)
        task = Task(
            id=f"task_{uuid4().hex}", call_id=call.id, plugin=call.tool, task_id=task_id, state=TaskState.WAITING,
            created=now, updated=now, deadline=pending.deadline, caller=call.caller, token_hash=pending.token_hash,
            owner=self.owner, arguments=arguments if isinstance(arguments, dict) else {}, receipt=receipt,
            process=process, chat=call.chat or None, project=self._project,
        )  # fmt: skip
        crashpoint("task.before-started")
        if not await self._store.commit([_to_record(task)], [_to_event("task.started", now, task)]):
            raise RuntimeError("a new task id was taken")
        return replace(task, version=1)

    async def _add_receipt(self, task_id: str, receipt: str, process: Process | None) -> None:
        """Add the receipt and the process to a task that its callback began."""
        while (record := await self._store.get(KIND, task_id)) is not None:
            completed = replace(Task.from_record(record), receipt=receipt, process=process)
            if await self._store.commit([_to_record(completed)]):
                return

    async def end(self, task_id: str, state: TaskState, *, result: Json = None, message: str = "") -> bool:
        """End a task by compare-and-set; False when it has ended already."""
        masked = self._mask(message)
        while True:
            record = await self._store.get(KIND, task_id)
            if record is None:
                return False
            task = Task.from_record(record)
            if task.is_ended:
                return False
            now = self._now()
            ended = task.finish(state, now, result=result, message=masked if isinstance(masked, str) else "")
            if await self._store.commit([_to_record(ended)], [_to_event(f"task.{state.value}", now, ended)]):
                crashpoint("task.ended")
                pending = self._expected.get(ended.token_hash)
                if pending is not None:
                    pending.observe(ended)
                return True

    async def _note_callback(self, task_id: str, body: Json) -> CallbackAnswer:
        while (record := await self._store.get(KIND, task_id)) is not None:
            task = Task.from_record(record)
            is_same = task.result == body and task.state is state_from_callback(body)
            noted = task.with_duplicate(self._now()) if is_same else task.with_callback(self._now(), body)
            if await self._store.commit([_to_record(noted)]):
                return CallbackAnswer.DUPLICATE if is_same else CallbackAnswer.ALREADY_ENDED
        return CallbackAnswer.UNKNOWN

    async def _find_stored(self, token_hash: str, plugin: str, task_id: str) -> Task | None:
        records = await self._store.find(KIND, Query(key=task_key(plugin, task_id)), limit=100)
        tasks = (Task.from_record(record) for record in records)
        return next((task for task in tasks if hmac.compare_digest(task.token_hash, token_hash)), None)

    def _now(self) -> float:
        return self._clock.now().timestamp()


def repeat_arguments(task: Task) -> JsonObject:
    """Return the arguments for another call of a task's plugin; Failure when a secret among them was masked."""
    if MASK in json.dumps(task.arguments, ensure_ascii=False):
        raise Failure(
            ErrorCode.INVALID_PARAM,
            Message("{id} cannot be repeated: a secret among its arguments was masked when it was stored.", id=task.id),
            hint=Message("Call the plugin again with the secret."),
        )
    return task.arguments


def _require_own(pending: PendingCall) -> _PendingCall:
    if not isinstance(pending, _PendingCall):
        raise TypeError("not a pending call of these tasks")
    return pending


def _hash_token(token: str) -> str:
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()


def _to_record(task: Task) -> Record:
    return replace(task.to_record(), text=f"{task.plugin} {task.task_id} {searchable_text(task.arguments)}")


def _to_event(kind: str, at: float, task: Task, data: JsonObject | None = None) -> NewEvent:
    fields: JsonObject = {"id": task.id, "plugin": task.plugin, "task_id": task.task_id, "call_id": task.call_id}
    if task.is_ended:
        fields |= {"state": task.state.value, "result": task.result, **to_fields("message", task.message)}
    return NewEvent(type=kind, at=at, data=fields | (data or {}))
