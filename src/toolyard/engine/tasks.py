"""Tasks while they live: receipts and callbacks in, one end each.

What is promised (reliability §2): a callback that was answered 200 is stored with its event in one transaction; the
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
from toolyard.engine.clock import Clock
from toolyard.engine.journal import excerpt
from toolyard.engine.masking import MASK
from toolyard.engine.ownership import started
from toolyard.engine.whole import whole
from toolyard.errors import StorageError
from toolyard.protocol.call import ToolCall
from toolyard.protocol.envelope import ErrorCode
from toolyard.protocol.failure import Failure, Reason
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.store import NewEvent, Place, Query, Record, Store
from toolyard.protocol.task import (
    KIND,
    Expected,
    Process,
    Task,
    TaskState,
    from_record,
    key_of,
    named_tasks,
    state_of,
    valid_id,
)

_log = logging.getLogger(__name__)
MAX_EXPECTED = 10_000
PUSH_AGAIN: Final = "task.push"  # the result is to be pushed once more
_MAX_REFUSED = 200  # tasks whose refused callbacks are remembered
_MAX_REFUSALS = 5  # of each


class Answer(StrEnum):
    """What a callback is told."""

    STORED = "stored"
    DUPLICATE = "duplicate"  # the same body again
    ALREADY_ENDED = "already_ended"  # another body, or the task was cancelled or timed out: noted, nothing changed
    UNKNOWN = "unknown"  # the token is good, but no task of its call has this id
    FORBIDDEN = "forbidden"  # no such token
    INVALID = "invalid"  # no id at all


@dataclass(eq=False)
class _Expected:
    call: ToolCall
    deadline: float
    token: str
    token_hash: str
    tasks: dict[str, Task] = field(default_factory=dict)  # by the plugin's own id
    named: bool = False  # the receipt is stored: no further id is taken
    naming: asyncio.Lock = field(default_factory=asyncio.Lock)  # receipt and callback may name a task at once
    done: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def answered(self) -> bool:
        return bool(self.tasks) and all(task.result is not None for task in self.tasks.values())

    async def ended(self) -> TaskState:
        await self.done.wait()
        return next(reversed(self.tasks.values())).state

    def saw(self, task: Task) -> None:
        """What was read before a task ended may come after its end, which stays."""
        known = self.tasks.get(task.task_id)
        if known is None or not known.ended:
            self.tasks[task.task_id] = task
        if self.named and self.tasks and all(one.ended for one in self.tasks.values()):
            self.done.set()


class Tasks:
    """The tasks of one host, over its store."""

    def __init__(
        self, store: Store, clock: Clock, *, owner: str, mask: Callable[[Json], Json] = lambda json: json
    ) -> None:
        self._store, self._clock, self.owner, self._mask = store, clock, owner, mask
        self._expected: dict[str, _Expected] = {}  # by the hash of the token
        self._refused: OrderedDict[str, deque[float]] = OrderedDict()  # by plugin and id; a bad token writes nothing

    # --- the plugin's side ---

    def expect(self, call: ToolCall, *, timeout_s: float) -> Expected:
        if len(self._expected) >= MAX_EXPECTED:
            raise Failure(Reason.BUSY, f"{len(self._expected)} tasks are running already.", hint="Try again later.")
        token = secrets.token_urlsafe(32)
        expected = _Expected(call, self._now() + timeout_s, token, _hash(token))
        self._expected[expected.token_hash] = expected
        return expected

    async def received(self, expected: Expected, receipt: str, pid: int) -> tuple[Task, ...]:
        own = _own(expected)
        try:
            return await whole(self._received(own, receipt, pid))
        except (asyncio.CancelledError, StorageError):
            try:
                await self.lost(own, TaskState.CANCELLED, "its call was stopped before its receipt was stored")
            except StorageError as error:
                _log.error("the tasks of %s stay open until the next start: %s", own.call.id, error)
            raise

    async def _received(self, own: _Expected, receipt: str, pid: int) -> tuple[Task, ...]:
        process = Process(pid=pid, started=started(pid), host=socket.gethostname())
        async with own.naming:
            for task_id in named_tasks(receipt, own.call.tool):
                if task_id not in own.tasks:
                    own.saw(await self._begin(own, task_id, receipt, process))
                else:  # its callback was faster
                    await self._complete(own.tasks[task_id].id, receipt, process)
            own.named = True
        for task in list(own.tasks.values()):
            own.saw(task)
        return tuple(own.tasks.values())

    async def begin(self, expected: Expected, task_id: str) -> Task:
        own = _own(expected)
        try:
            return await whole(self._begin_only(own, task_id))
        except (asyncio.CancelledError, StorageError):
            try:
                await self.lost(own, TaskState.CANCELLED, "its call was stopped before the task was stored")
            except StorageError as error:
                _log.error("the task of %s stays open until the next start: %s", own.call.id, error)
            raise

    async def _begin_only(self, own: _Expected, task_id: str) -> Task:
        async with own.naming:
            task = await self._begin(own, task_id, "", None)
            own.named = True
        own.saw(task)
        return task

    async def adopt(self, tasks: Sequence[Task]) -> Expected | None:
        """Take over the open tasks of one call, whose host is gone; None when another host was faster."""
        now = self._now()
        ours = [replace(task, owner=self.owner, updated=now) for task in tasks]
        if not await self._store.commit([_record(task) for task in ours]):
            return None
        first = ours[0]
        call = ToolCall(id=first.call_id, tool=first.plugin, arguments=first.arguments, caller=first.caller)
        expected = _Expected(call, first.deadline, "", first.token_hash, named=True)
        for task in ours:
            expected.saw(replace(task, version=task.version + 1))
        crashpoint("task.readopted")
        self._expected[first.token_hash] = expected
        return expected

    async def keep_own(self) -> None:
        """Own again what this host still looks after: it was taken for dead, and has another name now."""
        for expected in list(self._expected.values()):
            for task in [task for task in expected.tasks.values() if not task.ended and task.owner != self.owner]:
                record = await self._store.get(KIND, task.id)
                if record is not None and record.owner == task.owner and not from_record(record).ended:
                    await self._store.commit([replace(record, owner=self.owner)])

    async def look(self, expected: Expected) -> None:
        """See what others did to the tasks of a call: a callback may come to any host, and so may a cancel."""
        own = _own(expected)
        for task in list(own.tasks.values()):
            record = await self._store.get(KIND, task.id)
            if record is not None:
                own.saw(from_record(record))

    async def lost(self, expected: Expected, state: TaskState, message: str) -> None:
        for task in list(_own(expected).tasks.values()):
            await self.end(task.id, state, message=message)

    def close(self, expected: Expected) -> None:
        self._expected.pop(_own(expected).token_hash, None)

    # --- the callback's side ---

    async def admits(self, token: str, plugin: str, task_id: str) -> Answer | None:
        """Why this callback cannot be taken, before its body is read; None when it can."""
        if not valid_id(task_id) or not valid_id(plugin):
            return Answer.INVALID
        hashed = _hash(token)
        expected = self._expected.get(hashed)
        if expected is not None:
            known = not expected.named or task_id in expected.tasks
            return None if known and expected.call.tool == plugin else Answer.UNKNOWN
        if await self._stored(hashed, plugin, task_id):
            return None
        self._remember_refusal(key_of(plugin, task_id))
        return Answer.FORBIDDEN

    async def callback(self, token: str, plugin: str, task_id: str, body: Json) -> Answer:
        """Take a callback: stored and told to everyone, once."""
        refused = await self.admits(token, plugin, task_id)
        if refused is not None:
            return refused
        hashed = _hash(token)
        expected = self._expected.get(hashed)
        if expected is not None and not await self._name(expected, task_id):
            return Answer.UNKNOWN
        task = expected.tasks[task_id] if expected else await self._stored(hashed, plugin, task_id)
        if task is None:
            return Answer.UNKNOWN
        crashpoint("callback.before-stored")
        if await self.end(task.id, state_of(body), result=body):
            crashpoint("callback.stored")
            return Answer.STORED
        return await self._note(task.id, body)

    def refusals(self, task: Task) -> tuple[float, ...]:
        """When callbacks in the name of a task came to this process with a token that is not its own, of late."""
        return tuple(self._refused.get(key_of(task.plugin, task.task_id), ()))

    def _remember_refusal(self, key: str) -> None:
        self._refused.setdefault(key, deque(maxlen=_MAX_REFUSALS)).append(self._now())
        self._refused.move_to_end(key)
        if len(self._refused) > _MAX_REFUSED:
            self._refused.popitem(last=False)

    async def _name(self, expected: _Expected, task_id: str) -> bool:
        """Make sure that the task a callback names is there; False when its call has no such task."""
        async with expected.naming:
            if task_id not in expected.tasks and not expected.named:
                expected.saw(await self._begin(expected, task_id, "", None))
        return task_id in expected.tasks

    # --- everyone else's side ---

    async def get(self, name: str) -> Task | None:
        """A task by its own id or by ``plugin::id``."""
        record = await self._store.get(KIND, name)
        if record is None and "::" in name:
            record = next(iter(await self._store.find(KIND, Query(key=name), limit=1)), None)
        return from_record(record) if record else None

    async def of_caller(self, plugin: str, task_id: str, caller: str) -> Task | None:
        """The newest task of that name that this caller started."""
        found = await self._store.find(KIND, Query(key=key_of(plugin, task_id), caller=caller), limit=1)
        return from_record(found[0]) if found else None

    async def page(self, query: Query, *, limit: int, after: Place | None = None) -> list[Task]:
        return [from_record(record) for record in await self._store.find(KIND, query, limit=limit, after=after)]

    async def cancel(self, task_id: str) -> bool:
        """End a task that still runs; False when it had ended already."""
        return await self.end(task_id, TaskState.CANCELLED, message="It was cancelled.")

    async def fail(self, task_id: str, reason: str) -> bool:
        """The same, because a person knows that nothing will come of it."""
        return await self.end(task_id, TaskState.FAILED, message=reason)

    async def count(self, caller: str | None = None) -> dict[str, int]:
        """How many tasks are in each state, of all callers or of one."""
        wanted = {state.value: Query(states=(state,), caller=caller) for state in TaskState}
        return {state: await self._store.count(KIND, query) for state, query in wanted.items()}

    async def progressed(self, task_id: str, progress: JsonObject) -> None:
        """How far a task is; the latest word counts, and none that lost a race is repeated."""
        record = await self._store.get(KIND, task_id)
        task = from_record(record) if record else None
        if task is not None and not task.ended:
            now = self._now()
            await self._store.commit(
                [_record(replace(task, progress=progress, updated=now))],
                [_event("task.progress", now, task, progress)],
            )

    async def push(self, task: Task) -> None:
        """Have the result of a task that a callback ended pushed once more."""
        await self._store.commit([], [_event(PUSH_AGAIN, self._now(), task)])

    async def pushed(self, task_id: str, push: JsonObject) -> None:
        """Keep with a task to whom its result was pushed; a task that is forgotten meanwhile stays forgotten."""
        while (record := await self._store.get(KIND, task_id)) is not None:
            task = from_record(record).pushed(push)
            told = NewEvent(type="task.pushed", at=self._now(), data={"id": task.id, **push})
            if await self._store.commit([_record(task)], [told]):
                return

    async def wait(self, task_id: str) -> Task:
        """Until a task has ended."""
        _, seq = await self._store.event_span()
        while True:
            record = await self._store.get(KIND, task_id)
            if record is None:
                raise KeyError(task_id)
            task = from_record(record)
            if task.ended:
                return task
            await self._store.next_event(seq)
            _, seq = await self._store.event_span()

    async def _begin(self, expected: _Expected, task_id: str, receipt: str, process: Process | None) -> Task:
        call, now = expected.call, self._now()
        arguments = self._mask(call.arguments)
        task = Task(
            id=f"task_{uuid4().hex}", call_id=call.id, plugin=call.tool, task_id=task_id, state=TaskState.WAITING,
            created=now, updated=now, deadline=expected.deadline, caller=call.caller, token_hash=expected.token_hash,
            owner=self.owner, arguments=arguments if isinstance(arguments, dict) else {}, receipt=receipt,
            process=process, chat=call.chat,
        )  # fmt: skip
        crashpoint("task.before-started")
        if not await self._store.commit([_record(task)], [_event("task.started", now, task)]):
            raise RuntimeError("a new task id was taken")
        return replace(task, version=1)

    async def _complete(self, task_id: str, receipt: str, process: Process) -> None:
        """Add what only the receipt tells to a task that its callback began."""
        while (record := await self._store.get(KIND, task_id)) is not None:
            whole = replace(from_record(record), receipt=receipt, process=process)
            if await self._store.commit([_record(whole)]):
                return

    async def end(self, task_id: str, state: TaskState, *, result: Json = None, message: str = "") -> bool:
        """Compare and set until won or too late."""
        while True:
            record = await self._store.get(KIND, task_id)
            if record is None:
                return False
            task = from_record(record)
            if task.ended:
                return False
            now = self._now()
            ended = task.finish(state, now, result=result, message=message)
            if await self._store.commit([_record(ended)], [_event(f"task.{state.value}", now, ended)]):
                crashpoint("task.ended")
                expected = self._expected.get(ended.token_hash)
                if expected is not None:
                    expected.saw(ended)
                return True

    async def _note(self, task_id: str, body: Json) -> Answer:
        while (record := await self._store.get(KIND, task_id)) is not None:
            task = from_record(record)
            is_same = task.result == body and task.state is state_of(body)
            noted = task.repeated(self._now()) if is_same else task.noted(self._now(), body)
            if await self._store.commit([_record(noted)]):
                return Answer.DUPLICATE if is_same else Answer.ALREADY_ENDED
        return Answer.UNKNOWN

    async def _stored(self, token_hash: str, plugin: str, task_id: str) -> Task | None:
        found = await self._store.find(KIND, Query(key=key_of(plugin, task_id)), limit=100)
        tasks = (from_record(record) for record in found)
        return next((task for task in tasks if hmac.compare_digest(task.token_hash, token_hash)), None)

    def _now(self) -> float:
        return self._clock.now().timestamp()


def again(task: Task) -> JsonObject:
    """The arguments to call a task's plugin with once more; Failure when they are no longer known."""
    if MASK in json.dumps(task.arguments, ensure_ascii=False):
        raise Failure(
            ErrorCode.INVALID_PARAM,
            f"{task.id} cannot be repeated: a secret among its arguments was masked when it was stored.",
            hint="Call the plugin again with the secret.",
        )
    return task.arguments


def _own(expected: Expected) -> _Expected:
    if not isinstance(expected, _Expected):
        raise TypeError("not one of this desk's calls")
    return expected


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()


def _record(task: Task) -> Record:
    return replace(task.to_record(), text=f"{task.plugin} {task.task_id} {excerpt(task.arguments)}")


def _event(kind: str, at: float, task: Task, data: JsonObject | None = None) -> NewEvent:
    told: JsonObject = {"id": task.id, "plugin": task.plugin, "task_id": task.task_id, "call_id": task.call_id}
    if task.ended:
        told |= {"state": task.state.value, "result": task.result, "message": task.message}
    return NewEvent(type=kind, at=at, data=told | (data or {}))
