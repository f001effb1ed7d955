"""The journal: a record of every call, written before it runs and after it has ended.

The start of a call that changes nothing may be deferred: it is written together with its end, before anybody gets the
result, or as soon as the call turns out to take long. A call is one small record; what it came to is another, which is
read only when somebody asks for it. Secrets are masked before anything is written. A result over ``MAX_STORED`` bytes
is kept without its data. How the process of a plugin's call ran is kept with its result. The journal is no promise: a
power cut may take the last moments of it, a crash of the process takes nothing.
"""

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol, cast

from toolyard.crashpoint import crashpoint
from toolyard.engine.clock import Clock
from toolyard.engine.ownership import IsAlive, find_orphans, is_owner_alive
from toolyard.errors import StorageError, StorageInDoubt
from toolyard.message import Message, cut_message, from_fields
from toolyard.protocol.envelope import Envelope, Extras, Fault, Reason, Status, code_of
from toolyard.protocol.json import Json, JsonObject, json_bytes, json_problem, shorten_value
from toolyard.protocol.mask import Mask
from toolyard.protocol.records.call_record import CALL, RESULT, CallRecord, CallResult, CallState, Undo
from toolyard.protocol.store import NewEvent, PageCursor, Query, Record, Store
from toolyard.protocol.tool import Outcome, ToolCall

ConfirmOwner = Callable[[str], Awaitable[None]]
"""Raises Failure unless what this owner has begun still belongs to this host."""
DescribeEnd = Callable[[ToolCall, Outcome, float, Mask], Record]
"""Returns a record of a call that has ended at this time; it is stored in the same commit."""

_log = logging.getLogger(__name__)
CALL_PROGRESS: Final = "call.progress"  # the type of its events
STOPPED: Final = (Reason.CANCELLED, Reason.DENIED)
MAX_STORED: Final = 2**20
CUT: Final[JsonObject] = {"cut": f"more than {MAX_STORED} bytes"}  # instead of the data of a result over it
_MAX_LATE = 1000  # ends of calls that wait for a store that refuses; older ones are settled at the next start
_TRIES_IN_DOUBT = 2  # each takes as long as the store is patient
_MAX_TASKS = 100  # of one call, that its record names
_MAX_SEARCHED = 2000  # characters of arguments and of the text that a search looks at


class Recorder(Protocol):
    """Records the start and the end of calls for the runner."""

    async def record_start(self, call: ToolCall, *, deferred: bool = False) -> None:
        """Record the start of a call; ``deferred``: at its end, or when ``record_deferred_start`` is called."""
        ...

    async def record_deferred_start(self, call: ToolCall) -> None:
        """Record the start of a call now if it was deferred and the call has not ended."""
        ...

    async def confirm(self, call: ToolCall) -> None:
        """Raise Failure unless the call still belongs to this host."""
        ...

    async def record_end(self, call: ToolCall, outcome: Outcome) -> Outcome | None:
        """Record the end of a call; return the valid one: this, or that of a host which took this one for dead.

        Raises StorageError when the start was deferred and cannot be recorded either: the call counts as not run.
        None when the call is not running, or its end is recorded already.
        """
        ...


class NullRecorder:
    """A recorder that stores nothing."""

    async def record_start(self, call: ToolCall, *, deferred: bool = False) -> None:
        pass

    async def record_deferred_start(self, call: ToolCall) -> None:
        pass

    async def confirm(self, call: ToolCall) -> None:
        pass

    async def record_end(self, call: ToolCall, outcome: Outcome) -> Outcome | None:  # noqa: ARG002
        return outcome


@dataclass(slots=True)
class _OpenCall:
    """A running call with its record, which is not stored yet while its version is 0."""

    record: CallRecord
    arguments: Json  # without the secrets that were known by then:
    secrets: int  # so many
    size: int  # of the arguments, in bytes


class Journal:
    def __init__(self, store: Store, clock: Clock, *, owner: str, mask: Mask, project: str = "") -> None:
        self.owner = owner  # of the calls that begin from now on
        self._project = project
        self.confirm_owner: ConfirmOwner | None = None  # where other hosts may end the calls of this one
        self.describe_end: DescribeEnd | None = None  # for readers of other records
        self._store, self._clock, self._mask = store, clock, mask
        self._open: dict[str, _OpenCall] = {}
        self._late: deque[tuple[_OpenCall, Outcome, Sequence[Record]]] = deque(maxlen=_MAX_LATE)
        self._doubtful: deque[str] = deque(maxlen=_MAX_LATE)  # calls that did not run, and may be recorded as begun

    async def record_start(self, call: ToolCall, *, deferred: bool = False) -> None:
        """Record a call before it runs. Raises StorageError, and then the call does not run."""
        opened = self._build_open_call(call)
        if (taken := self._open.get(call.id)) is not None:  # from a dead host
            opened.record = taken.record
            self._open[call.id] = opened
            return
        if deferred or await self._commit_start(opened):
            self._open[call.id] = opened
        crashpoint("journal.started")

    async def record_deferred_start(self, call: ToolCall) -> None:
        opened = self._open.get(call.id)
        if opened is not None and not opened.record.version:
            await self._commit_start(opened)

    def _build_open_call(self, call: ToolCall) -> _OpenCall:
        now = self._now()
        arguments = self._mask_arguments(call)
        written = json_bytes(arguments)
        record = CallRecord(
            id=call.id, tool=call.tool, state=CallState.RUNNING, caller=call.caller, started=now, updated=now,
            arguments=shorten_value(arguments), origin=call.origin.value, maid=call.maid, chat=call.chat or None,
            retry_of=call.retry_of or None, owner=self.owner, project=self._project,
            search_text=f"{call.tool} {_cut_searchable(written)}",
        )  # fmt: skip
        return _OpenCall(record, arguments, self._mask.size, len(written))

    async def _commit_start(self, call: _OpenCall) -> bool:
        """Store the start of a call; False when it is stored already."""
        record = call.record
        started = record.to_event("started", record.started)
        try:
            is_stored = await self._store.commit([record.to_record()], [started], lasting=False)
        except StorageError:
            if self.confirm_owner is not None:
                self._doubtful.append(record.id)
            raise
        if is_stored:
            call.record = record._replace(version=1)
        return is_stored

    async def record_progress(self, call: ToolCall, progress: JsonObject) -> None:
        """Announce how far a running call is, and what it printed; its record does not change."""
        about: JsonObject = {"id": call.id, "tool": call.tool, "caller": call.caller}
        masked = self._mask.json(progress)
        event = NewEvent(type=CALL_PROGRESS, at=self._now(), data=about | (masked if isinstance(masked, dict) else {}))
        await self._store.commit([], [event], lasting=False)

    async def confirm(self, call: ToolCall) -> None:
        opened = self._open.get(call.id.partition("#")[0])
        if self.confirm_owner is not None and opened is not None:
            await self.confirm_owner(opened.record.owner)

    async def record_end(self, call: ToolCall, outcome: Outcome) -> Outcome | None:
        """Record the end of a call.

        A failed write still returns the outcome, unless other hosts may end the call: then the outcome is replaced, so
        that no caller gets a result that the journal contradicts. It raises StorageError when the start is not stored.
        """
        opened = self._open.pop(call.id, None)
        if opened is None:
            return None
        also: Sequence[Record] = ()
        if self.describe_end is not None:
            also = [self.describe_end(call, outcome, self._now(), self._mask)]
        try:
            stored = await self._finish_in_doubt(opened, outcome, also)
        except StorageError as error:
            if not opened.record.version:
                raise
            if self.confirm_owner is not None:
                outcome, also = _to_unrecorded(opened.record.tool, outcome, error), ()
            self._retry_later((opened, outcome, also), error)
            return outcome
        await self.catch_up()
        return stored

    async def catch_up(self) -> None:
        """Retry the ends that could not be recorded because of a full disk or an unreachable database."""
        for _ in range(len(self._late)):
            if not self._late:
                return  # another call was quicker
            late = self._late.popleft()
            try:
                await self._finish(*late)
            except StorageError as error:
                self._retry_later(late, error)
                return
        while self._doubtful:
            call_id = self._doubtful.popleft()
            try:
                await self._end_doubtful(call_id)
            except StorageError as error:
                self._doubtful.append(call_id)
                _log.error("whether %s was recorded is not known yet: %s", call_id, error)
                return

    async def _end_doubtful(self, call_id: str) -> None:
        """End a call that never ran, if it was recorded as begun."""
        record = await self._store.get(CALL, call_id)
        if record is not None and record.state == CallState.RUNNING and record.id not in self._open:
            text = Message("{tool} was not run: the database did not answer when it began.", tool=record.tool)
            await self._interrupt(CallRecord.from_record(record), text)

    def _retry_later(self, end: tuple[_OpenCall, Outcome, Sequence[Record]], error: StorageError) -> None:
        self._late.append(end)
        _log.error("the end of %s is not recorded yet: %s", end[0].record.id, error)

    async def _finish_in_doubt(self, call: _OpenCall, outcome: Outcome, also: Sequence[Record]) -> Outcome:
        """Store the end of a call; retry while it is unknown whether the commit was made."""
        for _ in range(_TRIES_IN_DOUBT):
            try:
                return await self._finish(call, outcome, also)
            except StorageInDoubt as error:
                _log.warning("the end of %s may be recorded or not: %s", call.record.id, error)
        return await self._finish(call, outcome, also)

    async def _finish(self, call: _OpenCall, outcome: Outcome, also: Sequence[Record]) -> Outcome:
        """Store the end of a call unless it has one; return the stored one."""
        version = call.record.version
        while not await self._commit_end(call, outcome, also):
            if not version:  # its start was stored in this very moment
                version = 1
                call.record = call.record._replace(version=version)
                continue
            stored = await self._store.get(CALL, call.record.id)
            if stored is None:
                break
            record = CallRecord.from_record(stored)
            if record.state is not CallState.RUNNING:
                return _to_interrupted(outcome, record) if record.state is CallState.INTERRUPTED else outcome
            call.record = record
        return outcome

    async def _commit_end(self, call: _OpenCall, outcome: Outcome, also: Sequence[Record]) -> bool:
        now, record = self._now(), call.record
        envelope, course = outcome.envelope, outcome.course
        arguments, written, size = self._build_result(call, envelope)
        action = cast("JsonObject", self._mask.json(outcome.extras.summarize_action()))
        text, reason = envelope.text[:_MAX_SEARCHED], envelope.context.get("reason")
        if not envelope.error:  # which has a message of its own
            text = cut_message(envelope.text, _MAX_SEARCHED)
        ended = record._replace(
            state=state_from_envelope(envelope), updated=now, owner="", text=text,
            time_ms=float(envelope.stats["time_ms"]), ran=course.ran, waited_ms=course.waited_ms or None,
            bytes_out=size, tasks=_find_task_ids(envelope), reason=reason if isinstance(reason, str) else None,
            error=envelope.error.to_json() if envelope.error else None, search_text=f"{record.search_text} {text}",
        )  # fmt: skip
        result = CallResult(
            id=record.id, created=record.started, updated=now, arguments=arguments, envelope=written,
            process=course.process, action=action,
        )  # fmt: skip
        changes = [ended.to_record(), result.to_record(), *also]
        crashpoint("journal.before-finished")
        events = [] if record.version else [record.to_event("started", record.started)]
        has_won = await self._store.commit(changes, [*events, ended.to_event("finished", now, action)], lasting=False)
        crashpoint("journal.finished")
        return has_won

    async def get(self, call_id: str) -> JsonObject | None:
        """Return one call with its complete result."""
        record = await self._store.get(CALL, call_id)
        if record is None:
            return None
        result = await self._store.get(RESULT, call_id)
        content = CallResult.from_record(result).to_json() if result else {"envelope": None}
        return CallRecord.from_record(record).to_json() | content

    async def find_outcome(self, call: ToolCall, *, root: str) -> Outcome | None:
        """Return the outcome of a call that began in an earlier process; None when it never began."""
        stored = await self._store.get(CALL, call.id)
        if stored is None:
            return None
        record, result = CallRecord.from_record(stored), await self._store.get(RESULT, call.id)
        written = CallResult.from_record(result).envelope if result else None
        if written is not None and record.state is not CallState.RUNNING:
            return Outcome(envelope=Envelope.from_dict(written), root=root, arguments=call.arguments)
        text = from_fields("message", record.error) if record.error else _host_went_down(record.tool)
        reason = Reason(record.reason) if record.reason else Reason.INTERRUPTED
        envelope = Envelope(
            status=Status.ERROR,
            data={},
            text=text,
            error=Fault(code_of(reason), text),
            stats={"time_ms": 0.0},
            context={"cwd": ".", "params_input": record.arguments, "reason": reason.value},
        )
        return Outcome(envelope=envelope, root=root, arguments=call.arguments)

    async def record_undo(self, call_id: str, *, by: str, again: bool = False) -> None:
        """Record that the files of a call were restored or, ``again``, that the restore was undone."""
        try:
            while (record := await self._store.get(CALL, call_id)) is not None:
                now = self._now()
                undone = None if again else Undo(at=now, by=by)
                call = CallRecord.from_record(record)._replace(undone=undone)  # ``updated`` stays: the call ended then
                if await self._store.commit([call.to_record()], [call.to_event("undone", now)], lasting=False):
                    return
        except StorageError as error:
            _log.error("the undoing of %s is not recorded: %s", call_id, error)

    async def find_retries(self, call_id: str, *, limit: int) -> list[CallRecord]:
        """Return the calls that repeat this one, newest first."""
        return await self.page(Query(key=call_id), limit=limit)

    async def page(self, query: Query, *, limit: int, after: PageCursor | None = None) -> list[CallRecord]:
        records = await self._store.find(CALL, query, limit=limit, after=after)
        return [CallRecord.from_record(record) for record in records]

    async def settle_orphans(
        self,
        alive: IsAlive = is_owner_alive,
        *,
        waiting: Collection[str] = (),
        unstarted: Collection[str] = (),
        takes_over: bool = True,
    ) -> int:
        """End the calls of dead hosts; return how many there were.

        ``waiting`` are the ids of calls that wait on for an approval, with ``takes_over`` here; ``unstarted`` of those
        that waited for one when their host died: they never began.
        """
        settled = 0
        async for page in find_orphans(self._store, CALL, (CallState.RUNNING,), alive):
            for call in map(CallRecord.from_record, page):
                if call.id in waiting:
                    if takes_over:
                        await self._take_over(call)
                else:
                    settled += await (self._end_unstarted(call) if call.id in unstarted else self._interrupt(call))
        return settled

    async def _take_over(self, call: CallRecord) -> None:
        """Own the call of a dead host that has not begun, until it is settled here."""
        own = call._replace(owner=self.owner)
        if await self._store.commit([own.to_record()], lasting=False):
            opened = _OpenCall(own._replace(version=own.version + 1), own.arguments, self._mask.size, 0)
            self._open[call.id] = opened

    async def _end_unstarted(self, call: CallRecord) -> bool:
        text = Message("{tool} did not run: it waited for approval when the server went down.", tool=call.tool)
        return await self._end(call, CallState.CANCELLED, Reason.CANCELLED, text)

    async def _interrupt(self, call: CallRecord, text: str = "") -> bool:
        text = text or _host_went_down(call.tool)
        return await self._end(call, CallState.INTERRUPTED, Reason.INTERRUPTED, text)

    async def _end(self, call: CallRecord, state: CallState, reason: Reason, text: str) -> bool:
        """End a call without a result."""
        now = self._now()
        ended = call._replace(
            state=state, updated=now, owner="", text="".join(text), reason=reason.value,
            error=Fault(code_of(reason), text).to_json(),
        )  # fmt: skip
        return await self._store.commit([ended.to_record()], [ended.to_event("finished", now)], lasting=False)

    def _mask_arguments(self, call: ToolCall) -> Json:
        problem = json_problem(call.arguments, "arguments")
        return {"unreadable": problem} if problem else self._mask.json(call.arguments)

    def _build_result(self, call: _OpenCall, envelope: Envelope) -> tuple[Json, JsonObject, int]:
        """Return the arguments and the envelope to store, cut to size, and the full size of the envelope.

        They are masked again when a call has brought secrets that were unknown at its start.
        """
        arguments, params = call.arguments, call.record.arguments
        if self._mask.size != call.secrets or envelope.context.get("params_input") != arguments:
            arguments = self._mask.json(arguments)
            params = self._mask.json(shorten_value(envelope.context.get("params_input")))
        whole = envelope.to_json()
        others = {**whole, "context": {**whole["context"], "params_input": None}}
        written = cast("dict[str, Any]", self._mask.json(others))
        written["context"]["params_input"] = params
        size = len(json_bytes(written))
        if size + call.size > MAX_STORED:
            written = {**written, "data": CUT}
            if len(json_bytes({"arguments": arguments, "envelope": written})) > MAX_STORED:
                arguments = shorten_value(arguments)
        return arguments, written, size

    def _now(self) -> float:
        return self._clock.now().timestamp()


def _host_went_down(tool: str) -> Message:
    return Message("{tool} was cut off when the server went down: what it had done by then is not known.", tool=tool)


def state_from_envelope(envelope: Envelope) -> CallState:
    """Return the state of a call that ended with this envelope."""
    reason = envelope.context.get("reason")
    if reason == Reason.INTERRUPTED:
        return CallState.INTERRUPTED
    return CallState.CANCELLED if reason in STOPPED else CallState(envelope.status.value)


def _to_interrupted(outcome: Outcome, call: CallRecord) -> Outcome:
    """Return the outcome of a call that another host has already ended as interrupted."""
    return _replace_envelope(outcome, from_fields("message", call.error) if call.error else call.text or "")


def _to_unrecorded(tool: str, outcome: Outcome, error: StorageError) -> Outcome:
    """Return the outcome of a call whose end could not be stored where other hosts may end it."""
    status = outcome.envelope.status.value
    text = Message(
        "{tool} has ended here ({status}), but the database does not take its end: {error}. Its result is lost.",
        tool=tool,
        status=status,
        error=error,
    )
    return _replace_envelope(outcome, text)


def _replace_envelope(outcome: Outcome, text: str) -> Outcome:
    envelope = Envelope(
        status=Status.ERROR,
        data={},
        text=text,
        error=Fault(code_of(Reason.INTERRUPTED), text),
        stats={"time_ms": outcome.envelope.stats["time_ms"]},
        context={**outcome.envelope.context, "reason": Reason.INTERRUPTED.value},
    )
    return replace(outcome, envelope=envelope, extras=Extras(), batch=())


def _find_task_ids(envelope: Envelope) -> tuple[str, ...]:
    """Return the ids of the tasks that a call began."""
    tasks = envelope.data.get("tasks")
    named = [task.get("id") for task in tasks if isinstance(task, dict)] if isinstance(tasks, list) else []
    return tuple(id_ for id_ in named[:_MAX_TASKS] if isinstance(id_, str))


def searchable_text(arguments: Json) -> str:
    """Return the part of the arguments that a search looks at."""
    return _cut_searchable(json_bytes(arguments))


def _cut_searchable(written: bytes) -> str:
    return written.decode()[:_MAX_SEARCHED]
