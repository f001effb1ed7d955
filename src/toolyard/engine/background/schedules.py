"""Schedules: calls that run later, once or repeatedly.

A schedule is claimed by compare and set, so it runs once even when several hosts see it due, and never while it still
runs. One that is overdue by at most the grace runs once and is marked late; an older one expires and can be run by
hand. A repeating schedule that missed several times runs once. When the clock went back, it goes on by the new time,
and is not run again for the time that it ran for last. Approval is asked for when it is made and checked again when it
runs. A condition says more than a state: that a schedule is late and why, or what its run waits for.
"""

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final
from uuid import uuid4
from zoneinfo import ZoneInfo

from toolyard.crashpoint import crashpoint
from toolyard.engine.background.schedule_runs import ScheduleRuns, SettleCall, format_time
from toolyard.engine.background.schedule_time import find_first_time
from toolyard.engine.cancellation import uncancellable
from toolyard.engine.clock import Clock
from toolyard.engine.history.journal import searchable_text
from toolyard.engine.ownership import IsAlive, find_orphans, is_owner_alive
from toolyard.errors import StorageError
from toolyard.message import Message, add_hint
from toolyard.own_command import FOR_DEFAULT_HOME, OwnCommand
from toolyard.protocol.access import ApprovalState
from toolyard.protocol.envelope import Envelope, ErrorCode, Failure, Fault, Status
from toolyard.protocol.json import MAX_VALUES, Json, JsonObject, json_problem
from toolyard.protocol.mask import Mask
from toolyard.protocol.records.approval_record import APPROVAL, Approval, HiddenText
from toolyard.protocol.records.schedule_record import SCHEDULE, LateReason, Schedule, ScheduleState
from toolyard.protocol.store import PageCursor, Query, Store
from toolyard.protocol.tool import Origin, ToolCall

_log = logging.getLogger(__name__)
GRACE_S: Final = 3600.0
_POLL_S = 1.0  # the wall clock may jump, so no wait is longer
_POLLS_PER_SCAN = 60  # looks at what is due, after which every schedule is looked at
_PAGE = 200
_MAX_PENDING = 500
LATE_S: Final = 60.0
PROPOSED: Final = "proposed"
LATE: Final = "late"
BLOCKED: Final = "blocked"
LATE_TEXTS: Final = {
    LateReason.NO_HOST: "no server was running at its time",
    LateReason.BUSY: "the server has too much to do",
    LateReason.STORAGE: "the server cannot write to its store",
}

ApproveCall = Callable[[ToolCall], Awaitable[str]]


class Schedules:
    """The schedules of a host; ``settle`` runs a call, ``approve`` gets permission and returns its digest."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        *,
        zone: Callable[[], ZoneInfo],
        owner: str,
        settle: SettleCall,
        approve: ApproveCall,
        mask: Mask | None = None,
        own_command: OwnCommand = FOR_DEFAULT_HOME,
    ) -> None:
        self._store, self._clock, self.owner = store, clock, owner
        self._approve, self._mask, self._own_command = approve, mask or Mask(), own_command
        self._runs = ScheduleRuns(store, clock, zone=zone, settle=settle)
        self._serving_since: float | None = None
        self._refused = False  # whether the store refused to be written the last time

    @property
    def zone(self) -> ZoneInfo:
        """The zone of times without an offset."""
        return self._runs.zone

    async def submit(self, call: ToolCall, *, at: str = "", cron: str = "") -> Schedule:
        """Schedule a call. Raises Failure when the time makes no sense or the call is not allowed."""
        return await self._add(await self._add_approval(self._plan(call, at, cron), call))

    async def propose(self, call: ToolCall, *, at: str) -> Schedule:
        """Schedule a call that nobody has approved: it asks when it runs, unless it is allowed before."""
        return await self._add(self._plan(call, at, ""))

    async def allow(self, id_: str) -> bool:
        """Approve a waiting schedule, so that it does not ask. False when it runs, has ended or is unknown.

        Raises Failure when its call could not begin.
        """
        while True:
            schedule = await self.get(id_)
            if schedule is None or not schedule.is_waiting:
                return False
            allowed = await self._add_approval(schedule, _build_owner_call(schedule))
            if await self._store.commit([allowed.to_record()], [allowed.to_event("changed", allowed.updated)]):
                return True

    async def _add_approval(self, schedule: Schedule, call: ToolCall) -> Schedule:
        digest = await self._approve(call)
        return replace(schedule, updated=self._clock.now().timestamp(), approved=digest)

    async def _add(self, schedule: Schedule) -> Schedule:
        await self._store.commit([schedule.to_record()], [schedule.to_event("added", schedule.created)])
        crashpoint("schedule.added")
        return schedule

    async def change(self, id_: str, call: ToolCall, *, at: str = "", cron: str = "") -> Schedule | None:
        """Change the call or time of a waiting or paused schedule; None when it runs or has ended."""
        planned = await self._add_approval(replace(self._plan(call, at, cron), id=id_), call)
        while True:
            old = await self.get(id_)
            if old is None or not old.is_waiting:
                return None
            new = replace(
                planned, state=old.state, version=old.version, created=old.created, caller=old.caller,
                due=planned.due if old.state is ScheduleState.SCHEDULED else None, runs=old.runs, chat=old.chat,
            )  # fmt: skip
            if await self._store.commit([new.to_record()], [new.to_event("changed", new.updated)]):
                return replace(new, version=new.version + 1)

    def _plan(self, call: ToolCall, at: str, cron: str) -> Schedule:
        """Build an unapproved schedule. Raises Failure when the arguments or the time make no sense."""
        now = self._clock.now()
        if problem := json_problem(call.arguments, "arguments", most=MAX_VALUES):
            raise Failure(ErrorCode.INVALID_PARAM, problem, hint=Message("Send arguments that are JSON."))
        due = find_first_time(at, cron, self.zone, now).timestamp()
        return Schedule(
            id=f"schedule_{uuid4().hex}", tool=call.tool, state=ScheduleState.SCHEDULED, caller=call.caller,
            created=now.timestamp(), updated=now.timestamp(), due=due, scheduled_for=self.format_time(due),
            at=at or None, cron=cron or None, zone=self.zone.key, arguments=call.arguments, maid=call.maid,
            origin=call.origin.value, chat=call.chat or None,
            search_text=f"{call.tool} {call.maid or ''} {searchable_text(self._mask.json(call.arguments))}",
        )  # fmt: skip

    async def submit_for_receipt(self, call: ToolCall, *, at: str = "", cron: str = "") -> Envelope:
        """Schedule a call and return an envelope that says when it will run, or why it will not."""
        began = self._clock.monotonic()
        data: JsonObject = {}
        problem = json_problem(call.arguments, "arguments")
        echo: Json = {"unreadable": problem} if problem else self._mask.json(call.arguments)
        fault, context = None, {"cwd": ".", "params_input": echo}
        try:
            schedule = await self.submit(call, at=at, cron=cron)
            when = schedule.scheduled_for
            data = {"schedule_id": schedule.id, "scheduled_for": when, "tool": call.tool}
            text: str = Message(
                "{tool} will run at {when}, as {id}. Its result is kept under this id.",
                tool=call.tool,
                when=when,
                id=schedule.id,
            )
        except Failure as failure:
            fault, text = Fault(failure.code, failure.message), add_hint(failure.message, failure.hint)
            context |= {"reason": failure.reason.value} if failure.reason else {}
        stats = {"time_ms": round(max(0.0, self._clock.monotonic() - began) * 1000, 3)}
        status = Status.ERROR if fault else Status.SUCCESS
        return Envelope(status=status, data=data, text=text, error=fault, stats=stats, context=context)

    async def cancel(self, id_: str) -> bool:
        """Cancel a schedule; False when it runs, has run or is unknown."""
        waiting = (ScheduleState.SCHEDULED, ScheduleState.PAUSED, ScheduleState.EXPIRED)
        return await self._move(id_, waiting, ScheduleState.CANCELLED)

    async def pause(self, id_: str) -> bool:
        """Pause a schedule until it is resumed; False when it does not wait for its time."""
        return await self._move(id_, (ScheduleState.SCHEDULED,), ScheduleState.PAUSED)

    async def resume(self, id_: str) -> bool:
        """Resume a paused schedule, at its own time or the next one; False when it is not paused.

        Raises Failure when its time has passed meanwhile.
        """
        while True:
            schedule = await self.get(id_)
            if schedule is None or schedule.state is not ScheduleState.PAUSED:
                return False
            now = self._clock.now()
            due = find_first_time(schedule.at or "", schedule.cron or "", self.zone, now).timestamp()
            resumed = replace(schedule, due=due, scheduled_for=self.format_time(due))
            if await self._try_move(resumed, ScheduleState.SCHEDULED) is not None:
                return True

    async def run_by_hand(self, id_: str) -> bool:
        """Run a scheduled or expired schedule now."""
        return await uncancellable(self._claim_by_hand(id_))

    async def _claim_by_hand(self, id_: str) -> bool:
        schedule = await self.get(id_)
        last = schedule.call_id if schedule else ""
        while schedule is not None and schedule.state in (ScheduleState.SCHEDULED, ScheduleState.EXPIRED):
            if schedule.call_id != last:
                break  # another was faster, and its run has ended
            claimed = await self._try_move(_start_run(replace(schedule, due=None)), ScheduleState.RUNNING)
            if claimed is not None:
                crashpoint("schedule.claimed-by-hand")
                self._runs.start(claimed, late=False)
                return True
            schedule = await self.get(id_)
        return False

    async def get(self, id_: str) -> Schedule | None:
        record = await self._store.get(SCHEDULE, id_)
        return Schedule.from_record(record) if record else None

    async def page(self, query: Query, *, limit: int, after: PageCursor | None = None) -> list[Schedule]:
        return [
            Schedule.from_record(record) for record in await self._store.find(SCHEDULE, query, limit=limit, after=after)
        ]

    async def tick(self) -> int:
        """Claim everything that is due, in the order of its times; return how many."""
        return len(await self.run_due())

    async def run_due(self) -> list[str]:
        """Claim everything that is due; return the ids."""
        claimed: list[str] = []
        now = self._clock.now().timestamp()
        while due := await self.page(Query(states=(ScheduleState.SCHEDULED,), due_until=now), limit=_PAGE):
            claimed += [schedule.id for schedule in due if await uncancellable(self._claim(schedule, now))]
        return claimed

    async def run_missed(self) -> list[str]:
        """Claim what is due, then what a damaged index of due times did not show; return the ids of the latter.

        Those are found by their state, which is another index. Repeating schedules whose next time was set by a clock
        that was ahead get another one.
        """
        missed: list[str] = []
        now, after = self._clock.now().timestamp(), None
        doctor = self._own_command.format("doctor")
        await self.tick()
        while page := await self.page(Query(states=(ScheduleState.SCHEDULED,)), limit=_PAGE, after=after):
            after = PageCursor(at=page[-1].created, id=page[-1].id)
            for schedule in page:
                if schedule.due is not None and schedule.due <= now and await uncancellable(self._claim(schedule, now)):
                    _log.error("%s was due, but not found so: the state is damaged; see '%s'", schedule.id, doctor)
                    missed.append(schedule.id)
                elif schedule.cron is not None and schedule.updated > now:
                    await self._set_earlier_time(schedule)
        return missed

    async def _set_earlier_time(self, schedule: Schedule) -> None:
        """Set the next time of a schedule by the clock of now, if that is earlier."""
        due = self._runs.find_next_time(schedule, self._clock.now())
        if due is not None and schedule.due is not None and due < schedule.due:
            await self._try_move(
                replace(schedule, due=due, scheduled_for=self.format_time(due)), ScheduleState.SCHEDULED
            )

    async def serve(self) -> None:
        """Claim due schedules until cancelled. Runs go on: ``drain`` waits for them, ``close`` stops them."""
        self._serving_since = last = self._clock.now().timestamp()
        for look in itertools.count():
            now = self._clock.now().timestamp()
            went_back, last = now < last, now
            try:
                await (self.tick() if look % _POLLS_PER_SCAN and not went_back else self.run_missed())
                self._refused = False
            except StorageError as error:  # a full disk passes; what is due stays due
                self._refused = True
                _log.error("schedules wait: %s", error)
            await asyncio.sleep(_POLL_S)

    async def drain(self) -> None:
        """Wait until the runs that have begun have ended."""
        await self._runs.drain()

    async def close(self) -> None:
        """Stop the runs that have begun; they end as interrupted."""
        await self._runs.close()

    async def settle_orphans(self, alive: IsAlive = is_owner_alive) -> int:
        """Interrupt the runs of dead hosts; return how many there were."""
        settled = 0
        async for page in find_orphans(self._store, SCHEDULE, (ScheduleState.RUNNING,), alive):
            why = Message("The server went down while it ran: what it had done by then is not known.")
            ends = (
                self._runs.finish(schedule.id, ScheduleState.INTERRUPTED, why, schedule.call_id)
                for schedule in map(Schedule.from_record, page)
            )
            settled += sum(await asyncio.gather(*ends))
        return settled

    async def list_json(self, schedules: Sequence[Schedule], *, is_served: bool = False) -> list[JsonObject]:
        """Return schedules as client JSON with their conditions; ``is_served``: another process runs them."""
        now = self._clock.now().timestamp()
        conditions = await find_conditions(
            self._store,
            schedules,
            now=now,
            queued=self._runs.queued,
            why=self._find_late_reason(None, is_served=is_served),
        )
        return [self.to_json(schedule) | one.to_json() for schedule, one in zip(schedules, conditions, strict=True)]

    def _find_late_reason(self, due: float | None, *, is_served: bool = False) -> LateReason:
        """Return the reason for which something that was ``due`` has not run."""
        since = self._serving_since
        if self._refused:
            return LateReason.STORAGE
        if since is None:
            return LateReason.BUSY if is_served else LateReason.NO_HOST
        return LateReason.NO_HOST if due is not None and due < since else LateReason.BUSY

    def to_json(self, schedule: Schedule) -> JsonObject:
        """Return a schedule as client JSON, with masked arguments."""
        return schedule.to_json() | {"arguments": self._mask.json(schedule.arguments)}

    def list_hidden(self, schedule: Schedule) -> list[HiddenText]:
        """Return the texts of the arguments that are masked in client JSON."""
        return self._mask.describe(schedule.arguments)[1]

    def format_time(self, stamp: float) -> str:
        """Return a timestamp as ISO time in the zone of the settings."""
        return format_time(self.zone, stamp)

    async def _claim(self, schedule: Schedule, now: float) -> bool:
        """Claim a due schedule as it was read; one that has changed since is left to the next query."""
        overdue = now - (schedule.due or now)
        if overdue > GRACE_S and schedule.cron is None:
            await self._try_move(replace(schedule, due=None), ScheduleState.EXPIRED)
            return False
        is_late = overdue > LATE_S
        begun = _start_run(schedule)
        if is_late:
            begun = replace(begun, late_s=round(overdue, 1), late_because=self._find_late_reason(schedule.due))
        claimed = await self._try_move(begun, ScheduleState.RUNNING)
        if claimed is not None:
            crashpoint("schedule.claimed")
            self._runs.start(claimed, late=is_late)
        return claimed is not None

    async def _move(self, id_: str, from_states: tuple[ScheduleState, ...], to: ScheduleState) -> bool:
        """Move a schedule to a state by compare-and-set until won; False when it is in another state."""
        while True:
            schedule = await self.get(id_)
            if schedule is None or schedule.state not in from_states:
                return False
            if await self._try_move(replace(schedule, due=None), to) is not None:
                return True

    async def _try_move(self, schedule: Schedule, to: ScheduleState) -> Schedule | None:
        """Move a schedule by compare-and-set; return it as stored, or None when another writer was faster."""
        now = self._clock.now().timestamp()
        owner = self.owner if to is ScheduleState.RUNNING else ""
        moved = replace(schedule, state=to, updated=now, owner=owner)
        won = await self._store.commit([moved.to_record()], [moved.to_event(to.value, now)])
        return replace(moved, version=moved.version + 1) if won else None


def _start_run(schedule: Schedule) -> Schedule:
    """Return a schedule whose next run begins: with a new call id, and nothing left of the run before."""
    call_id = f"call_{uuid4().hex}"
    return replace(schedule, call_id=call_id, was_due=schedule.due, due=None, late_s=None, late_because=None)


def _build_owner_call(schedule: Schedule) -> ToolCall:
    """Build the call of a schedule as its owner would make it, which needs no approval."""
    return ToolCall(
        id=schedule.id, tool=schedule.tool, arguments=schedule.arguments, maid=schedule.maid, caller=schedule.caller,
        origin=Origin.CLI,
    )  # fmt: skip


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
