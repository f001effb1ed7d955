"""Schedules: calls that run later, once or repeatedly.

A schedule is claimed by compare and set, so it runs once even when several hosts see it due, and never while it still
runs. One that is overdue by at most the grace runs once and is marked late; an older one expires and can be run by
hand. A repeating schedule that missed several times runs once. Approval is asked for when it is made and checked again
when it runs.
"""

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Final
from uuid import uuid4
from zoneinfo import ZoneInfo

from toolyard.crashpoint import crashpoint
from toolyard.engine.clock import Clock
from toolyard.engine.journal import searchable_text
from toolyard.engine.masking import Mask
from toolyard.engine.ownership import IsAlive, find_orphans, is_owner_alive
from toolyard.engine.schedule_conditions import LATE_S, LateReason, find_conditions
from toolyard.engine.schedule_runs import KIND, ScheduleRuns, ScheduleState, SettleCall, format_time, schedule_event
from toolyard.engine.schedule_time import find_first_time
from toolyard.engine.uncancellable import uncancellable
from toolyard.errors import StorageError
from toolyard.protocol.call import Origin, ToolCall
from toolyard.protocol.envelope import Envelope, ErrorCode, Fault, Status
from toolyard.protocol.failure import Failure
from toolyard.protocol.json import MAX_VALUES, Json, JsonObject, json_problem
from toolyard.protocol.store import PageCursor, Query, Record, Store

__all__ = ["GRACE_S", "KIND", "ScheduleState", "Schedules"]

_log = logging.getLogger(__name__)
GRACE_S: Final = 3600.0
_POLL_S = 1.0  # the wall clock may jump, so no wait is longer
_POLLS_PER_SCAN = 60  # looks at what is due, after which every schedule is looked at
_PAGE = 200

ApproveCall = Callable[[ToolCall], Awaitable[str]]


class Schedules:
    """The schedules of a host; ``settle`` runs a call, ``approve`` gets permission and returns its digest."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        *,
        zone: ZoneInfo,
        owner: str,
        settle: SettleCall,
        approve: ApproveCall,
        mask: Mask | None = None,
    ) -> None:
        self._store, self._clock, self._zone, self.owner = store, clock, zone, owner
        self._approve, self._mask = approve, mask or Mask()
        self._runs = ScheduleRuns(store, clock, zone=zone, settle=settle)
        self._serving_since: float | None = None
        self._refused = False  # whether the store refused to be written the last time

    async def submit(self, call: ToolCall, *, at: str = "", cron: str = "") -> Record:
        """Schedule a call. Raises Failure when the time makes no sense or the call is not allowed."""
        return await self._add(await self._add_approval(self._plan(call, at, cron), call))

    async def propose(self, call: ToolCall, *, at: str) -> Record:
        """Schedule a call that nobody has approved: it asks when it runs, unless it is allowed before."""
        return await self._add(self._plan(call, at, ""))

    async def allow(self, id_: str) -> bool:
        """Approve a waiting schedule, so that it does not ask. False when it runs, has ended or is unknown.

        Raises Failure when its call could not begin.
        """
        while True:
            record = await self._store.get(KIND, id_)
            if record is None or record.state not in (ScheduleState.SCHEDULED, ScheduleState.PAUSED):
                return False
            allowed = await self._add_approval(record, _build_owner_call(record))
            if await self._store.commit([allowed], [schedule_event("schedule.changed", allowed.updated, allowed)]):
                return True

    async def _add_approval(self, record: Record, call: ToolCall) -> Record:
        digest = await self._approve(call)
        return replace(record, updated=self._clock.now().timestamp(), body={**record.body, "approved": digest})

    async def _add(self, record: Record) -> Record:
        await self._store.commit([record], [schedule_event("schedule.added", record.created, record)])
        crashpoint("schedule.added")
        return record

    async def change(self, id_: str, call: ToolCall, *, at: str = "", cron: str = "") -> Record | None:
        """Change the call or time of a waiting or paused schedule; None when it runs or has ended."""
        planned = await self._add_approval(replace(self._plan(call, at, cron), id=id_), call)
        while True:
            old = await self._store.get(KIND, id_)
            if old is None or old.state not in (ScheduleState.SCHEDULED, ScheduleState.PAUSED):
                return None
            due = planned.due if old.state == ScheduleState.SCHEDULED else None
            body: JsonObject = {**planned.body, "runs": old.body["runs"], "chat": old.body.get("chat")}
            new = replace(
                planned,
                state=old.state,
                version=old.version,
                created=old.created,
                caller=old.caller,
                due=due,
                body=body,
            )
            if await self._store.commit([new], [schedule_event("schedule.changed", new.updated, new)]):
                return replace(new, version=new.version + 1)

    def _plan(self, call: ToolCall, at: str, cron: str) -> Record:
        """Build an unapproved schedule. Raises Failure when the arguments or the time make no sense."""
        now = self._clock.now()
        if problem := json_problem(call.arguments, "arguments", most=MAX_VALUES):
            raise Failure(ErrorCode.INVALID_PARAM, f"{problem}.", hint="Send arguments that are JSON.")
        due = find_first_time(at, cron, self._zone, now).timestamp()
        return Record(
            kind=KIND, id=f"schedule_{uuid4().hex}", state=ScheduleState.SCHEDULED, created=now.timestamp(),
            updated=now.timestamp(), caller=call.caller, tool=call.tool, due=due,
            text=f"{call.tool} {call.maid or ''} {searchable_text(self._mask.json(call.arguments))}",
            body={
                "arguments": call.arguments, "maid": call.maid, "at": at, "cron": cron, "zone": self._zone.key,
                "for": self.format_time(due), "approved": "", "origin": call.origin.value, "runs": [],
                "chat": call.chat or None,
            },
        )  # fmt: skip

    async def submit_for_receipt(self, call: ToolCall, *, at: str = "", cron: str = "") -> Envelope:
        """Schedule a call and return an envelope that says when it will run, or why it will not."""
        began = self._clock.monotonic()
        data: JsonObject = {}
        problem = json_problem(call.arguments, "arguments")
        echo: Json = {"unreadable": problem} if problem else self._mask.json(call.arguments)
        fault, context = None, {"cwd": ".", "params_input": echo}
        try:
            record = await self.submit(call, at=at, cron=cron)
            when = str(record.body["for"])
            data = {"schedule_id": record.id, "scheduled_for": when, "tool": call.tool}
            text = f"{call.tool} will run at {when}, as {record.id}. Its result is kept under this id."
        except Failure as failure:
            fault, text = Fault(failure.code, failure.message), f"{failure.message} {failure.hint}".strip()
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
            record = await self._store.get(KIND, id_)
            if record is None or record.state != ScheduleState.PAUSED:
                return False
            at, cron = str(record.body["at"]), str(record.body["cron"])
            due = find_first_time(at, cron, self._zone, self._clock.now()).timestamp()
            if await self._try_move(record, ScheduleState.SCHEDULED, due=due) is not None:
                return True

    async def run_by_hand(self, id_: str) -> bool:
        """Run a scheduled or expired schedule now."""
        return await uncancellable(self._claim_by_hand(id_))

    async def _claim_by_hand(self, id_: str) -> bool:
        record = await self._store.get(KIND, id_)
        last = record.body.get("call_id") if record else None
        while record is not None and record.state in (ScheduleState.SCHEDULED, ScheduleState.EXPIRED):
            if record.body.get("call_id") != last:
                break  # another was faster, and its run has ended
            claimed = await self._try_move(record, ScheduleState.RUNNING, begins=_start_run())
            if claimed is not None:
                crashpoint("schedule.claimed-by-hand")
                self._runs.start(claimed, late=False)
                return True
            record = await self._store.get(KIND, id_)
        return False

    async def get(self, id_: str) -> Record | None:
        return await self._store.get(KIND, id_)

    async def page(self, query: Query, *, limit: int, after: PageCursor | None = None) -> list[Record]:
        return await self._store.find(KIND, query, limit=limit, after=after)

    async def tick(self) -> int:
        """Claim everything that is due, in the order of its times; return how many."""
        return len(await self.run_due())

    async def run_due(self) -> list[str]:
        """Claim everything that is due; return the ids."""
        claimed: list[str] = []
        now = self._clock.now().timestamp()
        while due := await self._store.find(KIND, Query(states=(ScheduleState.SCHEDULED,), due_until=now), limit=_PAGE):
            claimed += [record.id for record in due if await uncancellable(self._claim(record, now))]
        return claimed

    async def run_missed(self) -> list[str]:
        """Claim what is due, then what a damaged index of due times did not show; return the ids of the latter.

        Those are found by their state, which is another index.
        """
        missed: list[str] = []
        now, after = self._clock.now().timestamp(), None
        await self.tick()
        while page := await self._store.find(KIND, Query(states=(ScheduleState.SCHEDULED,)), limit=_PAGE, after=after):
            after = PageCursor(created=page[-1].created, id=page[-1].id)
            for record in page:
                if record.due is not None and record.due <= now and await uncancellable(self._claim(record, now)):
                    _log.error("%s was due, but not found so: the state is damaged; see 'toolyard doctor'", record.id)
                    missed.append(record.id)
        return missed

    async def serve(self) -> None:
        """Claim due schedules until cancelled. Runs go on: ``drain`` waits for them, ``close`` stops them."""
        self._serving_since = self._clock.now().timestamp()
        for look in itertools.count():
            try:
                await (self.tick() if look % _POLLS_PER_SCAN else self.run_missed())
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
        async for page in find_orphans(self._store, KIND, (ScheduleState.RUNNING,), alive):
            why = "its host went down while it ran: what it had done by then is not known"
            ends = (
                self._runs.finish(record.id, ScheduleState.INTERRUPTED, why, str(record.body.get("call_id") or ""))
                for record in page
            )
            settled += sum(await asyncio.gather(*ends))
        return settled

    async def list_json(self, records: Sequence[Record], *, is_served: bool = False) -> list[JsonObject]:
        """Return schedules as client JSON with their conditions; ``is_served``: another process runs them."""
        now = self._clock.now().timestamp()
        conditions = await find_conditions(
            self._store,
            records,
            now=now,
            queued=self._runs.queued,
            why=self._find_late_reason(None, is_served=is_served),
        )
        return [self.to_json(record) | one.to_json() for record, one in zip(records, conditions, strict=True)]

    def _find_late_reason(self, due: float | None, *, is_served: bool = False) -> LateReason:
        """Return the reason for which something that was ``due`` has not run."""
        since = self._serving_since
        if self._refused:
            return LateReason.STORAGE
        if since is None:
            return LateReason.BUSY if is_served else LateReason.NO_HOST
        return LateReason.NO_HOST if due is not None and due < since else LateReason.BUSY

    def to_json(self, record: Record) -> JsonObject:
        """Return a stored schedule as client JSON, with masked arguments."""
        body = record.body
        return {
            "id": record.id, "tool": record.tool, "state": record.state, "caller": record.caller,
            "created": record.created, "updated": record.updated, "due": record.due,
            "scheduled_for": body["for"], "at": body["at"] or None, "cron": body["cron"] or None, "zone": body["zone"],
            "arguments": self._mask.json(body["arguments"]), "maid": body["maid"], "origin": body["origin"],
            "runs": body["runs"], "chat": body.get("chat"),
        }  # fmt: skip

    def format_time(self, stamp: float) -> str:
        """Return a timestamp as ISO time in the zone of the settings."""
        return format_time(self._zone, stamp)

    async def _claim(self, record: Record, now: float) -> bool:
        """Claim a due schedule as it was read; one that has changed since is left to the next query."""
        overdue = now - (record.due or now)
        if overdue > GRACE_S and not record.body.get("cron"):
            await self._try_move(record, ScheduleState.EXPIRED)
            return False
        is_late = overdue > LATE_S
        begins = _start_run(record.due)
        if is_late:
            begins |= {"late_s": round(overdue, 1), "late_because": self._find_late_reason(record.due).value}
        claimed = await self._try_move(record, ScheduleState.RUNNING, begins=begins)
        if claimed is not None:
            crashpoint("schedule.claimed")
            self._runs.start(claimed, late=is_late)
        return claimed is not None

    async def _move(self, id_: str, from_states: tuple[ScheduleState, ...], to: ScheduleState) -> bool:
        """Move a schedule to a state by compare-and-set until won; False when it is in another state."""
        while True:
            record = await self._store.get(KIND, id_)
            if record is None or record.state not in from_states:
                return False
            if await self._try_move(record, to) is not None:
                return True

    async def _try_move(
        self, record: Record, to: ScheduleState, *, due: float | None = None, begins: JsonObject | None = None
    ) -> Record | None:
        """Move a schedule by compare-and-set; return the stored record, or None when another writer was faster."""
        now = self._clock.now().timestamp()
        owner = self.owner if to is ScheduleState.RUNNING else ""
        body = {**record.body, **(begins or {})} if due is None else {**record.body, "for": self.format_time(due)}
        moved = replace(record, state=to, updated=now, owner=owner, due=due, body=body)
        won = await self._store.commit([moved], [schedule_event(f"schedule.{to.value}", now, moved)])
        return replace(moved, version=moved.version + 1) if won else None


def _start_run(due: float | None = None) -> JsonObject:
    """Return the fields that a new run sets in its schedule: its call id, and no rest of the run before."""
    return {"call_id": f"call_{uuid4().hex}", "was_due": due, "late_s": None, "late_because": None}


def _build_owner_call(record: Record) -> ToolCall:
    """Build the call of a schedule as its owner would make it, which needs no approval."""
    arguments, maid = record.body["arguments"], record.body.get("maid")
    return ToolCall(
        id=record.id, tool=record.tool, arguments=arguments if isinstance(arguments, dict) else {},
        maid=maid if isinstance(maid, str) else None, caller=record.caller, origin=Origin.CLI,
    )  # fmt: skip
