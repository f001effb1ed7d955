"""Conditions of schedules: the state, or ``late`` or ``blocked``.

Conditions are computed, not stored: a schedule is ``late`` when its time has passed by more than
``LATE_S`` and it has not begun, and ``blocked`` when its run waits for somebody to approve it.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from toolyard.engine.approvals import KIND as APPROVAL
from toolyard.engine.schedule_runs import ScheduleState
from toolyard.protocol.approval import ApprovalState as Answered
from toolyard.protocol.json import JsonObject
from toolyard.protocol.store import Query, Record, Store

LATE_S: Final = 60.0
LATE: Final = "late"
BLOCKED: Final = "blocked"
_MAX_PENDING = 500


class LateReason(StrEnum):
    """The reason for which a run did not begin at its time."""

    NO_HOST = "no_host"  # no server was running
    BUSY = "busy"  # one was, with too much else to do
    STORAGE = "storage"  # one was, and could not write down that it runs


LATE_TEXTS: Final = {
    LateReason.NO_HOST: "no server was running at its time",
    LateReason.BUSY: "the server has too much to do",
    LateReason.STORAGE: "the server cannot write to its store",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    name: str  # a state, ``late`` or ``blocked``
    late_s: float | None = None  # by how much it has missed its time
    late_reason: LateReason | None = None
    approval: str | None = None  # the one that it waits for

    def to_json(self) -> JsonObject:
        return {
            "condition": self.name, "late_s": None if self.late_s is None else round(self.late_s, 1),
            "late_because": self.late_reason.value if self.late_reason else None, "approval": self.approval,
        }  # fmt: skip


async def find_conditions(
    store: Store, records: Sequence[Record], *, now: float, queued: Collection[str], why: LateReason
) -> list[Condition]:
    """Return the condition of each record; ``queued`` are claimed and wait for a slot, ``why`` delays the rest.

    Asks for the pending approvals once, and only when something runs.
    """
    runs = {str(one.body.get("call_id")) for one in records if one.state == ScheduleState.RUNNING} - {"None"}
    approvals: dict[str, str] = {}
    if runs:
        pending = await store.find(APPROVAL, Query(states=(Answered.PENDING,)), limit=_MAX_PENDING)
        approvals = {str(one.body["call_id"]): one.id for one in pending}
    return [_find_condition(record, now, approvals, queued, why) for record in records]


def _find_condition(
    record: Record, now: float, approvals: dict[str, str], queued: Collection[str], why: LateReason
) -> Condition:
    if record.state == ScheduleState.SCHEDULED and record.due is not None and now - record.due > LATE_S:
        return Condition(name=LATE, late_s=now - record.due, late_reason=why)
    if record.state != ScheduleState.RUNNING:
        return Condition(name=record.state)
    approval = approvals.get(str(record.body.get("call_id")))
    if approval:
        return Condition(name=BLOCKED, approval=approval)
    was_due = record.body.get("was_due")
    over = now - was_due if isinstance(was_due, int | float) else 0.0
    if record.id in queued and over > LATE_S:
        return Condition(name=LATE, late_s=over, late_reason=LateReason.BUSY)
    return Condition(name=record.state)
