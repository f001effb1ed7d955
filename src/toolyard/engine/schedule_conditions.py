"""Conditions of schedules: the state, or ``proposed``, ``late`` or ``blocked``.

Conditions are computed, not stored: a schedule is ``proposed`` while nobody has approved its call, ``late`` when its
time has passed by more than ``LATE_S`` and it has not begun, and ``blocked`` when its run waits for an approval.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from toolyard.protocol.approval import ApprovalState
from toolyard.protocol.approval_record import APPROVAL, Approval
from toolyard.protocol.json import JsonObject
from toolyard.protocol.schedule import LateReason, Schedule, ScheduleState
from toolyard.protocol.store import Query, Store

LATE_S: Final = 60.0
PROPOSED: Final = "proposed"
LATE: Final = "late"
BLOCKED: Final = "blocked"
_MAX_PENDING = 500


LATE_TEXTS: Final = {
    LateReason.NO_HOST: "no server was running at its time",
    LateReason.BUSY: "the server has too much to do",
    LateReason.STORAGE: "the server cannot write to its store",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    name: str  # a state, ``proposed``, ``late`` or ``blocked``
    late_s: float | None = None  # by how much it has missed its time
    late_reason: LateReason | None = None
    approval: str | None = None  # the one that it waits for

    def to_json(self) -> JsonObject:
        return {
            "condition": self.name, "late_s": None if self.late_s is None else round(self.late_s, 1),
            "late_because": self.late_reason.value if self.late_reason else None, "approval": self.approval,
        }  # fmt: skip


async def find_conditions(
    store: Store, schedules: Sequence[Schedule], *, now: float, queued: Collection[str], why: LateReason
) -> list[Condition]:
    """Return the condition of each schedule; ``queued`` are claimed and wait for a slot, ``why`` delays the rest.

    Asks for the pending approvals once, and only when something runs.
    """
    runs = any(one.state is ScheduleState.RUNNING and one.call_id for one in schedules)
    approvals: dict[str, str] = {}
    if runs:
        pending = await store.find(APPROVAL, Query(states=(ApprovalState.PENDING,)), limit=_MAX_PENDING)
        approvals = {approval.call_id: approval.id for approval in map(Approval.from_record, pending)}
    return [_find_condition(schedule, now, approvals, queued, why) for schedule in schedules]


def _find_condition(
    schedule: Schedule, now: float, approvals: dict[str, str], queued: Collection[str], why: LateReason
) -> Condition:
    state, due = schedule.state, schedule.due
    if state is ScheduleState.SCHEDULED and due is not None and now - due > LATE_S:
        return Condition(name=LATE, late_s=now - due, late_reason=why)
    if state is not ScheduleState.RUNNING:
        is_proposed = schedule.proposed and state is ScheduleState.SCHEDULED
        return Condition(name=PROPOSED if is_proposed else state.value)
    approval = approvals.get(schedule.call_id)
    if approval:
        return Condition(name=BLOCKED, approval=approval)
    over = 0.0 if schedule.was_due is None else now - schedule.was_due
    if schedule.id in queued and over > LATE_S:
        return Condition(name=LATE, late_s=over, late_reason=LateReason.BUSY)
    return Condition(name=state.value)
