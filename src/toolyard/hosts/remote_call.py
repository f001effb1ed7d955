"""Calls on their way to another host, as records: queued, then running with an owner, then done.

Each step is one compare-and-set, so whoever sees a call first, twice or too late, it runs at most once: only the one
who moves it to ``running`` may run it, and only the first end is kept. ``runs`` counts the claims: it is the fencing
token, and an end with an older one is refused. A call whose owner is gone ends as interrupted.
Only a call of an idempotent tool may be claimed once more instead. An ended call is kept without its arguments until
``forget`` removes it; its story is in the journal of the host that sent it.
"""

from dataclasses import replace
from enum import StrEnum
from typing import Final

from toolyard.engine.clock import Clock
from toolyard.protocol.call import ToolCall
from toolyard.protocol.envelope import ErrorCode
from toolyard.protocol.failure import Failure, Reason
from toolyard.protocol.json import JsonObject
from toolyard.protocol.message import Message
from toolyard.protocol.outcome import Outcome
from toolyard.protocol.outcome_json import call_from_text, call_to_text, outcome_from_text, outcome_to_text
from toolyard.protocol.store import Query, Record, SharedStore, Signal
from toolyard.protocol.tool import ToolSpec

KIND: Final = "remote"
DONE: Final = "remote.done"  # signals
STOP: Final = "remote.stop"
MAX_OUTCOME: Final = 64 * 2**20  # characters; a plugin's own limit is far below
_RUNS = 2  # of an idempotent tool
_KEPT_S = 600.0
_LONGEST_S = 86_400.0  # no call waits so long
_PAGE = 500


class State(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"


class RemoteCalls:
    """As one host sees them. ``host`` is the name under which it owns things; it changes with its term."""

    def __init__(self, store: SharedStore, clock: Clock, *, host: str) -> None:
        self._store, self._clock, self.host = store, clock, host

    async def submit(self, call: ToolCall, spec: ToolSpec, *, due: float | None = None) -> None:
        """Send a call that must not begin after ``due``, by the clock of the store.

        Not lasting by itself: the queue's own commit comes later, and takes everything before it to the disk.
        """
        now = self._now()
        record = Record(
            kind=KIND, id=call.id, state=State.QUEUED, created=now, updated=now, caller=call.caller, tool=spec.name,
            key=self.host, due=due, body={"call": call_to_text(call), "idempotent": spec.idempotent, "runs": 0},
        )  # fmt: skip
        if not await self._store.commit([record], lasting=False):
            raise Failure(
                ErrorCode.CONFLICT,
                Message("host.call_id_sent_before", "A call with the id {id} was sent before.", id=call.id),
                hint="Use a new id.",
            )

    async def get(self, call_id: str) -> Record | None:
        return await self._store.get(KIND, call_id)

    async def claim(self, record: Record, *, abandoned: bool = False) -> Record | None:
        """Take a call to run it, on the disk before it runs; None when it is no longer to be had.

        ``abandoned`` says that its owner is gone.
        """
        if record.state != State.QUEUED and not (abandoned and may_run_again(record)):
            return None
        runs = record.body["runs"]
        body: JsonObject = {**record.body, "runs": runs + 1 if isinstance(runs, int) else 1}
        claimed = replace(record, state=State.RUNNING, updated=self._now(), owner=self.host, body=body)
        won = await self._store.commit([claimed])
        return replace(claimed, version=claimed.version + 1) if won else None

    async def finish(self, claimed: Record, outcome: Outcome) -> bool:
        """Keep the outcome of a run and tell the sender; False when the call has ended, or runs elsewhere.

        Not lasting by itself, as ``submit``: the queue forgets the call only later.
        """
        text = outcome_to_text(outcome)
        return await self._end(claimed, {"outcome": text} if len(text) <= MAX_OUTCOME else _failed(_too_large(outcome)))

    async def drop(self, claimed: Record) -> bool:
        """End a call that was stopped after it was claimed, before it ran."""
        return await self._end(claimed, _failed(_cancelled(claimed)))

    async def _end(self, claimed: Record, what: JsonObject) -> bool:
        record: Record | None = claimed
        while record is not None and _is_same_run(record, claimed):
            ended = _ended(record, self._now(), what)
            if await self._store.commit([ended], lasting=False, signals=[Signal(DONE, record.id)]):
                return True
            record = await self.get(claimed.id)
        return False

    async def stop(self, call_id: str) -> Record | None:
        """End a call that waits; ask the owner of one that runs to stop it. The call as it is now."""
        while (record := await self.get(call_id)) is not None and record.state != State.DONE:
            now = self._now()
            if record.state == State.QUEUED:
                changed, signal = _ended(record, now, _failed(_cancelled(record))), Signal(DONE, call_id)
            else:
                changed = replace(record, updated=now, body={**record.body, "stop": True})
                signal = Signal(STOP, call_id)
            if record.body.get("stop") or await self._store.commit([changed], lasting=False, signals=[signal]):
                return changed
        return record

    async def interrupt(self, record: Record) -> bool:
        """End a running call whose owner is gone."""
        machine = record.owner.partition("/")[0]
        twice = " It was run twice, because it may be repeated." if record.body["runs"] == _RUNS else ""
        lost = Failure(
            Reason.INTERRUPTED,
            Message(
                "host.cut_off_while_ran_what",
                "{tool} was cut off while it ran on {machine}: what it had done by then is not known.{twice}",
                tool=record.tool,
                machine=machine,
                twice=twice,
            ),
            hint="Look at what it may have changed before you call it again.",
        )
        changed = _ended(record, self._now(), _failed(lost))
        return await self._store.commit([changed], signals=[Signal(DONE, record.id)])

    async def confirm(self, claimed: Record) -> None:
        """Raise Failure unless a claimed call is still to be run here, by this claim of it."""
        record = await self.get(claimed.id)
        if record is None or not _is_same_run(record, claimed):
            raise Failure(
                Reason.INTERRUPTED,
                Message(
                    "host.not_started_call_ended_another",
                    "{tool} was not started: the call was ended by another host.",
                    tool=claimed.tool,
                ),
            )
        if record.body.get("stop") is True:
            raise _cancelled(claimed)

    async def find_stopped(self) -> list[str]:
        """Return the ids of the calls that run here and that their senders no longer want."""
        found = await self._store.find(KIND, Query(states=(State.RUNNING,), owner=self.host), limit=_PAGE)
        return [record.id for record in found if record.body.get("stop") is True]

    async def forget(self) -> None:
        """Ended calls, and those that were taken back before they came into the queue."""
        for state, kept_s in ((State.DONE, _KEPT_S), (State.QUEUED, _LONGEST_S)):
            await self._store.remove(KIND, self._now() - kept_s, states=(state,), limit=_PAGE)

    def _now(self) -> float:
        return self._clock.now().timestamp()


def _is_same_run(record: Record, claimed: Record) -> bool:
    return (record.state, record.owner, record.body["runs"]) == (State.RUNNING, claimed.owner, claimed.body["runs"])


def may_run_again(record: Record) -> bool:
    runs = record.body["runs"]
    return (
        record.state == State.RUNNING
        and record.body["idempotent"] is True
        and record.body.get("stop") is not True
        and isinstance(runs, int)
        and runs < _RUNS
    )


def call_of(record: Record) -> ToolCall:
    return call_from_text(str(record.body["call"]))


def outcome_of(record: Record) -> Outcome:
    """What an ended call came to; raises its Failure when it never ran to an end."""
    failed = record.body.get("failure")
    if isinstance(failed, dict):
        raise Failure(Reason(str(failed["reason"])), str(failed["message"]), hint=str(failed["hint"]))
    return outcome_from_text(str(record.body["outcome"]))


def _ended(record: Record, now: float, what: JsonObject) -> Record:
    body: JsonObject = {"runs": record.body["runs"], "idempotent": record.body["idempotent"], **what}
    return replace(record, state=State.DONE, updated=now, owner="", body=body)


def _failed(failure: Failure) -> JsonObject:
    reason = failure.reason.value if failure.reason else Reason.INTERRUPTED.value
    return {"failure": {"reason": reason, "message": failure.message, "hint": failure.hint}}


def _cancelled(record: Record) -> Failure:
    return Failure(
        Reason.CANCELLED,
        Message("host.cancelled_before_began", "{tool} was cancelled before it began.", tool=record.tool),
    )


def _too_large(outcome: Outcome) -> Failure:
    return Failure(
        Reason.OUTPUT_TOO_LARGE,
        Message(
            "host.ran_another_host_ended_but",
            "It ran on another host and ended there ({value}), but its result is larger than {max_outcome} "
            "characters and was not sent back.",
            value=outcome.envelope.status.value,
            max_outcome=MAX_OUTCOME,
        ),
        hint="Ask for less at a time.",
    )
