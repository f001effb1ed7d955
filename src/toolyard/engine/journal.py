"""The journal: every call, told before it runs and after it has ended, whatever the end.

A call is one small record; what it came to is another, which is read only when somebody asks for it. Secrets are masked
before anything is written. A result over ``MAX_STORED`` bytes is kept without its data. How the process of a plugin's
call ran is kept with its result. The journal is no promise: a power cut may take the last moments of it, a crash of the
process takes nothing.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple, Protocol, cast

from toolyard.crashpoint import crashpoint
from toolyard.engine.clock import Clock
from toolyard.engine.masking import Mask
from toolyard.engine.ownership import IsAlive, is_alive, orphans
from toolyard.errors import StorageError, StorageInDoubt
from toolyard.protocol.call import ToolCall
from toolyard.protocol.envelope import Envelope, Fault, Status
from toolyard.protocol.extras import Extras
from toolyard.protocol.failure import Reason, code_of
from toolyard.protocol.json import Json, JsonObject, json_bytes, json_problem
from toolyard.protocol.outcome import Outcome
from toolyard.protocol.store import NewEvent, Place, Query, Record, Store
from toolyard.protocol.truncation import shorten_value

ConfirmOwner = Callable[[str], Awaitable[None]]
"""Raises Failure unless what this owner has begun still belongs to this host."""

_log = logging.getLogger(__name__)
CALL: Final = "call"
RESULT: Final = "result"
RUNNING: Final = "running"
INTERRUPTED: Final = "interrupted"
CANCELLED: Final = "cancelled"  # somebody stopped it, or did not allow it: no error of its tool
STOPPED: Final = (Reason.CANCELLED, Reason.DENIED)
ENDED: Final = (*(status.value for status in Status), CANCELLED, INTERRUPTED)
KEPT: Final = "kept"  # the state of a result
MAX_STORED: Final = 2**20
CUT: Final[JsonObject] = {"cut": f"more than {MAX_STORED} bytes"}  # instead of the data of a result over it
_MAX_LATE = 1000  # ends of calls that wait for a store that refuses; older ones are settled at the next start
_TRIES_IN_DOUBT = 2  # each takes as long as the store is patient
_MAX_TASKS = 100  # of one call, that its record names
_SEARCHED = 2000  # characters of arguments and of the text that a search looks at


class Recorder(Protocol):
    """What the runner tells."""

    @property
    def straight(self) -> bool:
        """Whether it may be told in any thread, see ``straight``."""
        ...

    async def started(self, call: ToolCall) -> None: ...

    async def confirm(self, call: ToolCall) -> None:
        """Raise Failure unless the call is still to be run, and by this host."""
        ...

    async def finished(self, call: ToolCall, outcome: Outcome) -> Outcome | None:
        """The end that holds: this one, or that of another host which took this one for dead.

        None when the call does not run, or its end was told before.
        """
        ...


class Unrecorded:
    """Keeps nothing."""

    straight = True

    async def started(self, call: ToolCall) -> None:
        pass

    async def confirm(self, call: ToolCall) -> None:
        pass

    async def finished(self, call: ToolCall, outcome: Outcome) -> Outcome | None:  # noqa: ARG002
        return outcome


class _Running(NamedTuple):
    """A call that runs, as it is stored."""

    record: Record
    arguments: Json  # without the secrets that were known by then:
    secrets: int  # so many
    size: int  # of the arguments, in bytes


class Journal:
    def __init__(self, store: Store, clock: Clock, *, owner: str, mask: Mask) -> None:
        self.owner = owner  # of the calls that begin from now on
        self.confirm_owner: ConfirmOwner | None = None  # where other hosts may end the calls of this one
        self._store, self._clock, self._mask = store, clock, mask
        self._open: dict[str, _Running] = {}
        self._late: deque[tuple[_Running, Outcome, Sequence[Record]]] = deque(maxlen=_MAX_LATE)
        self._doubtful: deque[str] = deque(maxlen=_MAX_LATE)  # calls that did not run, and may be recorded as begun

    @property
    def straight(self) -> bool:
        return self._store.straight

    async def started(self, call: ToolCall) -> None:
        """Record a call before it runs. Raises StorageError, and then the call does not run."""
        now = self._now()
        arguments = self._arguments(call)
        written = json_bytes(arguments)
        record = Record(
            kind=CALL, id=call.id, state=RUNNING, created=now, updated=now, caller=call.caller, tool=call.tool,
            key=call.retry_of, owner=self.owner, text=f"{call.tool} {_searched(written)}",
            body={
                "arguments": shorten_value(arguments), "origin": call.origin.value, "maid": call.maid,
                "chat": call.chat or None, **({"retry_of": call.retry_of} if call.retry_of else {}),
            },
        )  # fmt: skip
        event = NewEvent(type="call.started", at=now, data=_told(record))
        try:
            begun = await self._store.commit([record], [event], lasting=False)
        except StorageError:
            if self.confirm_owner is not None:
                self._doubtful.append(call.id)
            raise
        if begun:
            self._open[call.id] = _Running(replace(record, version=1), arguments, self._mask.size, len(written))
        crashpoint("journal.started")

    async def confirm(self, call: ToolCall) -> None:
        opened = self._open.get(call.id.partition("#")[0])
        if self.confirm_owner is not None and opened is not None:
            await self.confirm_owner(opened.record.owner)

    async def finished(self, call: ToolCall, outcome: Outcome, *, also: Sequence[Record] = ()) -> Outcome | None:
        """``also`` is stored with it, or not at all.

        What was done is told to the caller in any case, unless other hosts may end the call: then its end is told only
        when it is kept, so that nobody is told anything that the journal contradicts.
        """
        opened = self._open.pop(call.id, None)
        if opened is None:
            return None
        try:
            kept = await self._finish_in_doubt(opened, outcome, also)
        except StorageError as error:
            if self.confirm_owner is not None:
                outcome, also = _to_unrecorded(opened.record.tool, outcome, error), ()
            self._keep_for_later((opened, outcome, also), error)
            return outcome
        await self.catch_up()
        return kept

    async def catch_up(self) -> None:
        """Record what could not be recorded: ends that met a full disk or a database that was away."""
        for _ in range(len(self._late)):
            try:
                late = self._late.popleft()
            except IndexError:
                return  # another thread was quicker
            try:
                await self._finish(*late)
            except StorageError as error:
                self._keep_for_later(late, error)
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
        if record is not None and record.state == RUNNING and record.id not in self._open:
            await self._interrupt(record, f"{record.tool} was not run: the database did not answer when it began.")

    def _keep_for_later(self, end: tuple[_Running, Outcome, Sequence[Record]], error: StorageError) -> None:
        self._late.append(end)
        _log.error("the end of %s is not recorded yet: %s", end[0].record.id, error)

    async def _finish_in_doubt(self, call: _Running, outcome: Outcome, also: Sequence[Record]) -> Outcome:
        """Keep the end of a call; when nobody knows whether it was kept, find out, before anything else is told."""
        for _ in range(_TRIES_IN_DOUBT):
            try:
                return await self._finish(call, outcome, also)
            except StorageInDoubt as error:
                _log.warning("the end of %s may be recorded or not: %s", call.record.id, error)
        return await self._finish(call, outcome, also)

    async def _finish(self, call: _Running, outcome: Outcome, also: Sequence[Record]) -> Outcome:
        """Keep the end of a call, if it has none yet; the one that it has now."""
        while not await self._keep(call, outcome, also):
            record = None if self._store.straight else await self._store.get(CALL, call.record.id)
            if record is None:
                break
            if record.state != RUNNING:
                return _to_interrupted(outcome, record) if record.state == INTERRUPTED else outcome
            call = call._replace(record=record)
        return outcome

    async def _keep(self, call: _Running, outcome: Outcome, also: Sequence[Record]) -> bool:
        now, record = self._now(), call.record
        envelope, course = outcome.envelope, outcome.course
        kept, size = self._whole(call, envelope)
        body: JsonObject = {
            **record.body,
            "text": envelope.text[:_SEARCHED],
            "time_ms": envelope.stats["time_ms"],
            "ran": course.ran,
            **({"waited_ms": course.waited_ms} if course.waited_ms else {}),
            "bytes_out": size,
            "tasks": _tasks(envelope),
            "reason": envelope.context.get("reason"),
            "error": envelope.error.to_json() if envelope.error else None,
        }
        ended = replace(
            record, state=ended_as(envelope), updated=now, owner="", body=body,
            text=f"{record.text} {envelope.text[:_SEARCHED]}",
        )  # fmt: skip
        whole = Record(
            kind=RESULT, id=record.id, state=KEPT, created=record.created, updated=now,
            body={**kept, "process": course.process} if course.process else kept,
        )  # fmt: skip
        event = NewEvent(type="call.finished", at=now, data=_told(ended))
        crashpoint("journal.before-finished")
        has_won = await self._store.commit([ended, whole, *also], [event], lasting=False)
        crashpoint("journal.finished")
        return has_won

    async def get(self, call_id: str) -> JsonObject | None:
        """One call with the whole of its result."""
        record = await self._store.get(CALL, call_id)
        if record is None:
            return None
        whole = await self._store.get(RESULT, call_id)
        return {**shown(record), **(whole.body if whole else {"envelope": None})}

    async def undone(self, call_id: str, *, by: str, again: bool = False) -> None:
        """Note that somebody put the files of a call back, or, ``again``, took that back: it is done in any case."""
        try:
            while (record := await self._store.get(CALL, call_id)) is not None:
                if await self._note_undone(record, by=by, again=again):
                    return
        except StorageError as error:
            _log.error("the undoing of %s is not recorded: %s", call_id, error)

    async def _note_undone(self, record: Record, *, by: str, again: bool) -> bool:
        now = self._now()
        body = {key: value for key, value in record.body.items() if key != "undone"}
        if not again:
            body["undone"] = {"at": now, "by": by}
        changed = replace(record, body=body)  # not when it changed last: that is when the call ended
        event = NewEvent(type="call.undone", at=now, data=_told(changed))
        return await self._store.commit([changed], [event], lasting=False)

    async def retries(self, call_id: str, *, limit: int) -> list[Record]:
        """The calls that repeat this one, newest first."""
        return await self._store.find(CALL, Query(key=call_id), limit=limit)

    async def page(self, query: Query, *, limit: int, after: Place | None = None) -> list[Record]:
        return await self._store.find(CALL, query, limit=limit, after=after)

    async def settle_orphans(self, alive: IsAlive = is_alive) -> int:
        """End the calls of hosts that are gone, as interrupted; how many there were."""
        settled = 0
        async for page in orphans(self._store, CALL, (RUNNING,), alive):
            settled += sum(await asyncio.gather(*map(self._interrupt, page)))
        return settled

    async def _interrupt(self, record: Record, text: str = "") -> bool:
        now = self._now()
        text = text or f"{record.tool} was cut off when its host went down: what it had done by then is not known."
        body: JsonObject = {**record.body, "text": text, "reason": Reason.INTERRUPTED.value}
        body["error"] = {"code": code_of(Reason.INTERRUPTED).value, "message": text}
        ended = replace(record, state=INTERRUPTED, updated=now, owner="", body=body)
        event = NewEvent(type="call.finished", at=now, data=_told(ended))
        return await self._store.commit([ended], [event], lasting=False)

    def _arguments(self, call: ToolCall) -> Json:
        problem = json_problem(call.arguments, "arguments")
        return {"unreadable": problem} if problem else self._mask.json(call.arguments)

    def _whole(self, call: _Running, envelope: Envelope) -> tuple[JsonObject, int]:
        """Everything about a call; its data, and then its arguments, only as far as there is room.

        And how many bytes its envelope had before anything was left out.

        Masked once more if need be: by its end a call may have brought secrets that nobody knew at its start.
        """
        arguments, params = call.arguments, call.record.body["arguments"]
        if self._mask.size != call.secrets or envelope.context.get("params_input") != arguments:
            arguments = self._mask.json(arguments)
            params = self._mask.json(shorten_value(envelope.context.get("params_input")))
        others = {**envelope.to_dict(), "context": {**envelope.context, "params_input": None}}
        said = cast("dict[str, Any]", self._mask.json(others))
        said["context"]["params_input"] = params
        whole: JsonObject = {"arguments": arguments, "envelope": said}
        size = len(json_bytes(said))
        if size + call.size > MAX_STORED:
            whole["envelope"] = {**said, "data": CUT}
            if len(json_bytes(whole)) > MAX_STORED:
                whole["arguments"] = shorten_value(whole["arguments"])
        return whole, size

    def _now(self) -> float:
        return self._clock.now().timestamp()


def ended_as(envelope: Envelope) -> str:
    """The state of a call that has come to this."""
    reason = envelope.context.get("reason")
    if reason == Reason.INTERRUPTED:
        return INTERRUPTED
    return CANCELLED if reason in STOPPED else envelope.status.value


def _to_interrupted(outcome: Outcome, record: Record) -> Outcome:
    """The end of a call that another host has ended as interrupted, instead of the one that came too late."""
    return _replace_envelope(outcome, str(record.body["text"]))


def _to_unrecorded(tool: str, outcome: Outcome, error: StorageError) -> Outcome:
    """The end of a call whose own end could not be kept, in a store where others may end it."""
    status = outcome.envelope.status.value
    return _replace_envelope(
        outcome,
        f"{tool} has ended here ({status}), but the database does not take its end: {error}. Its result is lost.",
    )


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


def shown(record: Record) -> JsonObject:
    """A call of the journal as people and programs see it."""
    return {
        "id": record.id,
        "tool": record.tool,
        "state": record.state,
        "caller": record.caller,
        "started": record.created,
        "ended": None if record.state == RUNNING else record.updated,
        **record.body,
    }


def _told(record: Record) -> JsonObject:
    told: JsonObject = {"id": record.id, "tool": record.tool, "caller": record.caller, "state": record.state}
    brief = ("origin", "maid", "text", "time_ms", "reason", "error", "retry_of", "undone")
    return told | {key: record.body[key] for key in brief if record.body.get(key) is not None}


def _tasks(envelope: Envelope) -> list[Json]:
    """The ids of the tasks that a call began."""
    tasks = envelope.data.get("tasks")
    named = [task.get("id") for task in tasks if isinstance(task, dict)] if isinstance(tasks, list) else []
    return [id_ for id_ in named[:_MAX_TASKS] if isinstance(id_, str)]


def excerpt(arguments: Json) -> str:
    """As much of the arguments as a search looks at."""
    return _searched(json_bytes(arguments))


def _searched(written: bytes) -> str:
    return written.decode()[:_SEARCHED]
