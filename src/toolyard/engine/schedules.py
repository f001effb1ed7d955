"""Schedules: calls that run later, once or again and again.

A schedule is claimed by compare and set, so it runs once even when several hosts see it due, and never while it still
runs. One that is overdue by at most the grace runs once and is marked late; an older one expires and can be run by
hand. A repeating schedule that missed several times runs once. Approval is asked for when it is made and checked again
when it runs.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final
from uuid import uuid4
from zoneinfo import ZoneInfo

from toolyard.crashpoint import crashpoint
from toolyard.dialects.vcp import timed_call
from toolyard.engine.clock import Clock
from toolyard.engine.journal import excerpt
from toolyard.engine.masking import Mask
from toolyard.engine.ownership import IsAlive, is_alive, orphans
from toolyard.engine.when import moment, repeats
from toolyard.errors import StorageError
from toolyard.protocol.call import Origin, ToolCall
from toolyard.protocol.envelope import Envelope, ErrorCode, Fault, Status
from toolyard.protocol.failure import Failure
from toolyard.protocol.json import Json, JsonObject, json_problem
from toolyard.protocol.outcome import Outcome
from toolyard.protocol.store import NewEvent, Place, Query, Record, Store

_log = logging.getLogger(__name__)
KIND: Final = "schedule"
GRACE_S: Final = 3600.0
_LOOK_S = 1.0  # the wall clock may jump, so no wait is longer
_PAGE = 200
_AT_ONCE = 64

Settle = Callable[[ToolCall], Awaitable[Outcome]]
Approve = Callable[[ToolCall], Awaitable[str]]


class State(StrEnum):
    SCHEDULED = "scheduled"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"  # its time passed while no host was running
    INTERRUPTED = "interrupted"  # the host went down while it ran


class Schedules:
    """``settle`` runs a call, ``approve`` asks whether it may and gives the digest that was approved."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        *,
        zone: ZoneInfo,
        owner: str,
        settle: Settle,
        approve: Approve,
        mask: Mask | None = None,
    ) -> None:
        self._store, self._clock, self._zone, self._owner = store, clock, zone, owner
        self._settle, self._approve, self._mask = settle, approve, mask or Mask()
        self._runs: set[asyncio.Task[None]] = set()
        self._room = asyncio.Semaphore(_AT_ONCE)

    async def submit(self, call: ToolCall, *, at: str = "", cron: str = "") -> Record:
        """Keep a call for later. Raises Failure when the time makes no sense or the call is not allowed."""
        now = self._clock.now()
        if problem := json_problem(call.arguments, "arguments"):
            raise Failure(ErrorCode.INVALID_PARAM, f"{problem}.", hint="Send arguments that are JSON.")
        if bool(at) == bool(cron):
            raise Failure(
                ErrorCode.INVALID_PARAM, "A schedule needs either a time or a cron expression.", hint="Give one."
            )
        due = moment(at, self._zone, now) if at else next(repeats(cron, self._zone, now), None)
        if due is None:
            raise Failure(ErrorCode.INVALID_PARAM, f"'{cron}' never comes.", hint="Write a date that exists.")
        digest = await self._approve(call)
        stamp = now.timestamp()
        record = Record(
            kind=KIND, id=f"schedule_{uuid4().hex}", state=State.SCHEDULED, created=stamp, updated=stamp,
            caller=call.caller, tool=call.tool, due=due.timestamp(),
            text=f"{call.tool} {call.maid or ''} {excerpt(self._mask.json(call.arguments))}",
            body={
                "arguments": call.arguments, "maid": call.maid, "at": at, "cron": cron, "zone": self._zone.key,
                "for": self.shown(due.timestamp()), "approved": digest, "origin": call.origin.value, "runs": [],
            },
        )  # fmt: skip
        await self._store.commit([record], [_event("schedule.added", stamp, record)])
        crashpoint("schedule.added")
        return record

    async def receipt(self, call: ToolCall, *, at: str = "", cron: str = "") -> Envelope:
        """Keep a call for later; what whoever asked gets for it: when it will run, or why it will not."""
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
        """False when it has run, or runs, or there is none."""
        return await self._move(id_, (State.SCHEDULED, State.EXPIRED), State.CANCELLED) is not None

    async def run_by_hand(self, id_: str) -> bool:
        """Run one now that is scheduled or expired."""
        claimed = await self._move(id_, (State.SCHEDULED, State.EXPIRED), State.RUNNING)
        if claimed is not None:
            crashpoint("schedule.claimed-by-hand")
            self._start(claimed, late=False)
        return claimed is not None

    async def get(self, id_: str) -> Record | None:
        return await self._store.get(KIND, id_)

    async def page(self, query: Query, *, limit: int, after: Place | None = None) -> list[Record]:
        return await self._store.find(KIND, query, limit=limit, after=after)

    async def tick(self) -> int:
        """Claim everything that is due, in the order of its times; how many were claimed."""
        return len(await self.run_due())

    async def run_due(self) -> list[str]:
        """As ``tick``; which they were."""
        claimed: list[str] = []
        now = self._clock.now().timestamp()
        while due := await self._store.find(KIND, Query(states=(State.SCHEDULED,), due_until=now), limit=_PAGE):
            claimed += [record.id for record in due if await self._claim(record, now)]
        return claimed

    async def serve(self) -> None:
        """Until it is cancelled."""
        try:
            while True:
                try:
                    await self.tick()
                except StorageError as error:  # a full disk passes; what is due stays due
                    _log.error("schedules wait: %s", error)
                await asyncio.sleep(_LOOK_S)
        finally:
            await self.drain()

    async def drain(self) -> None:
        """Until the runs that have begun have ended."""
        while self._runs:
            await asyncio.wait(self._runs)

    async def close(self) -> None:
        """Stop the runs that have begun; they end as interrupted."""
        for run in self._runs:
            run.cancel()
        await self.drain()

    async def settle_orphans(self, alive: IsAlive = is_alive) -> int:
        """End what a host that is gone left running, as interrupted; how many there were."""
        settled = 0
        async for page in orphans(self._store, KIND, (State.RUNNING,), alive):
            why = "its host went down while it ran: what it had done by then is not known"
            ends = (self._finish(record.id, State.INTERRUPTED, why, "") for record in page)
            settled += sum(await asyncio.gather(*ends))
        return settled

    def to_dict(self, record: Record) -> JsonObject:
        """A schedule as people and programs see it: without the secrets among its arguments."""
        body = record.body
        return {
            "id": record.id, "tool": record.tool, "state": record.state, "caller": record.caller,
            "created": record.created, "updated": record.updated, "due": record.due,
            "scheduled_for": body["for"], "at": body["at"] or None, "cron": body["cron"] or None, "zone": body["zone"],
            "arguments": self._mask.json(body["arguments"]), "maid": body["maid"], "origin": body["origin"],
            "runs": body["runs"],
        }  # fmt: skip

    def shown(self, stamp: float) -> str:
        """A moment as people of this zone read it, with its offset."""
        return datetime.fromtimestamp(stamp, UTC).astimezone(self._zone).isoformat(timespec="seconds")

    async def _claim(self, record: Record, now: float) -> bool:
        overdue = now - (record.due or now)
        if overdue > GRACE_S and not record.body.get("cron"):
            await self._move(record.id, (State.SCHEDULED,), State.EXPIRED)
            return False
        claimed = await self._move(record.id, (State.SCHEDULED,), State.RUNNING)
        if claimed is not None:
            crashpoint("schedule.claimed")
            self._start(claimed, late=overdue > 60)
        return claimed is not None

    def _start(self, record: Record, *, late: bool) -> None:
        run = asyncio.ensure_future(self._run(record, late=late))
        self._runs.add(run)
        run.add_done_callback(self._runs.discard)

    async def _run(self, record: Record, *, late: bool) -> None:
        call = self._call(record, late=late)
        try:
            async with self._room:
                envelope = (await self._settle(call)).envelope
            state, text = State.FAILED if envelope.error else State.DONE, envelope.text[:500]
        except StorageError as error:  # it could not be recorded, so it did not run
            state, text = State.FAILED, str(error)
        except asyncio.CancelledError:
            why = "its host was stopped while it ran"
            await asyncio.shield(self._finish(record.id, State.INTERRUPTED, why, call.id))
            raise
        crashpoint("schedule.ran")
        await self._finish_surely(record.id, state, text, call.id)
        crashpoint("schedule.finished")

    async def _finish_surely(self, id_: str, state: State, text: str, call_id: str) -> None:
        """As ``_finish``, again and again while the store refuses: a run that has ended must not stay open."""
        while True:
            try:
                await self._finish(id_, state, text, call_id)
            except StorageError as error:
                _log.error("the end of %s is not recorded yet: %s", id_, error)
                await asyncio.sleep(_LOOK_S)
            else:
                return

    def _call(self, record: Record, *, late: bool) -> ToolCall:
        body = record.body
        now = self._clock.now().timestamp()
        arguments, maid = body["arguments"], body.get("maid")
        told = timed_call(
            task_id=record.id, requested=self.shown(record.created), due=str(body["for"]),
            triggered=self.shown(now), original=str(body["at"] or body["cron"]), late=late,
        )  # fmt: skip
        return ToolCall(
            id=f"call_{uuid4().hex}", tool=record.tool, arguments=arguments if isinstance(arguments, dict) else {},
            maid=maid if isinstance(maid, str) else None, caller=record.caller, origin=Origin.SCHEDULE,
            approved=str(body.get("approved", "")), metadata=told,
        )  # fmt: skip

    async def _move(self, id_: str, from_states: tuple[State, ...], to: State) -> Record | None:
        """Compare and set; the record as it is now stored, or None when another was faster."""
        while True:
            record = await self._store.get(KIND, id_)
            if record is None or record.state not in from_states:
                return None
            now = self._clock.now().timestamp()
            owner = self._owner if to is State.RUNNING else ""
            moved = replace(record, state=to, updated=now, owner=owner, due=None)
            if await self._store.commit([moved], [_event(f"schedule.{to.value}", now, moved)]):
                return replace(moved, version=moved.version + 1)

    async def _finish(self, id_: str, state: State, text: str, call_id: str) -> bool:
        while True:
            record = await self._store.get(KIND, id_)
            if record is None or record.state != State.RUNNING:
                return False
            now = self._clock.now()
            ran: JsonObject = {"call_id": call_id, "state": state.value, "text": text, "at": now.timestamp()}
            runs = record.body.get("runs")
            body: JsonObject = {**record.body, "runs": [*(runs if isinstance(runs, list) else []), ran][-50:]}
            due = self._next(record, now)
            if due is not None:
                body["for"] = self.shown(due)
            ended = replace(
                record, state=State.SCHEDULED if due else state, updated=now.timestamp(), owner="", due=due, body=body
            )
            if await self._store.commit([ended], [_event(f"schedule.{state.value}", now.timestamp(), ended, ran)]):
                return True

    def _next(self, record: Record, now: datetime) -> float | None:
        cron = str(record.body.get("cron", ""))
        if not cron:
            return None
        with contextlib.suppress(Failure, StopIteration):
            return next(repeats(cron, self._zone, now)).timestamp()
        return None


def _event(kind: str, at: float, record: Record, more: JsonObject | None = None) -> NewEvent:
    told: JsonObject = {"id": record.id, "tool": record.tool, "state": record.state, "due": record.due}
    return NewEvent(type=kind, at=at, data=told | (more or {}))
