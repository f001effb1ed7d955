"""In what condition a schedule is: its state, or what a person wants to know before it.

Nothing of this is stored, because all of it passes: a schedule is ``late`` when its time has passed by more than
``LATE_S`` and it has not begun, and ``blocked`` when its run waits for somebody to approve it.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from toolyard.engine.approvals import KIND as APPROVAL
from toolyard.engine.schedule_runs import State
from toolyard.protocol.approval import State as Answered
from toolyard.protocol.json import JsonObject
from toolyard.protocol.store import Query, Record, Store

LATE_S: Final = 60.0
LATE: Final = "late"
BLOCKED: Final = "blocked"
_MOST_PENDING = 500


class Late(StrEnum):
    """Why a run did not begin at its time."""

    NO_HOST = "no_host"  # no server was running
    BUSY = "busy"  # one was, with too much else to do
    STORAGE = "storage"  # one was, and could not write down that it runs


SAID: Final = {
    Late.NO_HOST: "no server was running at its time",
    Late.BUSY: "the server has too much to do",
    Late.STORAGE: "the server cannot write to its store",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    name: str  # a state, ``late`` or ``blocked``
    late_s: float | None = None  # by how much it has missed its time
    why: Late | None = None
    approval: str | None = None  # the one that it waits for

    def to_dict(self) -> JsonObject:
        return {
            "condition": self.name, "late_s": None if self.late_s is None else round(self.late_s, 1),
            "late_because": self.why.value if self.why else None, "approval": self.approval,
        }  # fmt: skip


async def conditions(
    store: Store, records: Sequence[Record], *, now: float, queued: Collection[str], why: Late
) -> list[Condition]:
    """Of each record; ``queued`` are those that have been claimed and wait for their turn, ``why`` holds up the rest.

    Asks for the pending approvals once, and only when something runs.
    """
    runs = {str(one.body.get("call_id")) for one in records if one.state == State.RUNNING} - {"None"}
    asked: dict[str, str] = {}
    if runs:
        pending = await store.find(APPROVAL, Query(states=(Answered.PENDING,)), limit=_MOST_PENDING)
        asked = {str(one.body["call_id"]): one.id for one in pending}
    return [_of(record, now, asked, queued, why) for record in records]


def _of(record: Record, now: float, asked: dict[str, str], queued: Collection[str], why: Late) -> Condition:
    if record.state == State.SCHEDULED and record.due is not None and now - record.due > LATE_S:
        return Condition(name=LATE, late_s=now - record.due, why=why)
    if record.state != State.RUNNING:
        return Condition(name=record.state)
    approval = asked.get(str(record.body.get("call_id")))
    if approval:
        return Condition(name=BLOCKED, approval=approval)
    was_due = record.body.get("was_due")
    over = now - was_due if isinstance(was_due, int | float) else 0.0
    if record.id in queued and over > LATE_S:
        return Condition(name=LATE, late_s=over, why=Late.BUSY)
    return Condition(name=record.state)
