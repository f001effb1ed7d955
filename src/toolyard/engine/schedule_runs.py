"""Schedule runs: from the claim to the end that is stored with the schedule.

A run that has begun ends in the store, whatever happens to it: done, failed, or interrupted with its host. A repeating
schedule gets its next time with it. Of the runs of a schedule the last 50 are kept, each with how late it was and why.
``queued`` names those that were claimed and wait for their turn: at most 64 run at a time.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final
from zoneinfo import ZoneInfo

from toolyard.crashpoint import crashpoint
from toolyard.dialects.vcp import describe_timed_call
from toolyard.engine.clock import Clock
from toolyard.engine.schedule_time import iterate_cron
from toolyard.errors import StorageError
from toolyard.protocol.call import Origin, ToolCall
from toolyard.protocol.failure import Failure
from toolyard.protocol.json import JsonObject
from toolyard.protocol.outcome import Outcome
from toolyard.protocol.store import NewEvent, Record, Store

_log = logging.getLogger(__name__)
KIND: Final = "schedule"
_RETRY_S = 1.0  # between two attempts to keep an end
_MAX_RUNNING = 64

SettleCall = Callable[[ToolCall], Awaitable[Outcome]]


class ScheduleState(StrEnum):
    SCHEDULED = "scheduled"
    PAUSED = "paused"  # it waits until it is resumed
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"  # its time passed while no host was running
    INTERRUPTED = "interrupted"  # the host went down while it ran


class ScheduleRuns:
    """Runs the calls of claimed schedules with ``settle``."""

    def __init__(self, store: Store, clock: Clock, *, zone: ZoneInfo, settle: SettleCall) -> None:
        self._store, self._clock, self._zone, self._settle = store, clock, zone, settle
        self._runs: set[asyncio.Task[None]] = set()  # nobody cancels them: each keeps its end
        self._calls: set[asyncio.Future[Outcome]] = set()  # of those whose turn it is
        self._room = asyncio.Semaphore(_MAX_RUNNING)
        self._closed = False
        self.queued: set[str] = set()

    async def drain(self) -> None:
        """Wait until the runs that have begun have ended."""
        while self._runs:
            await asyncio.wait(self._runs)

    async def close(self) -> None:
        """Stop the runs that have begun; they end as interrupted, and so does one that is started from now on."""
        self._closed = True
        for call in self._calls:
            call.cancel()
        await self.drain()

    def start(self, record: Record, *, late: bool) -> None:
        self.queued.add(record.id)
        run = asyncio.ensure_future(self._run(record, late=late))
        self._runs.add(run)
        run.add_done_callback(self._runs.discard)

    async def _run(self, record: Record, *, late: bool) -> None:
        call = self._build_call(record, late=late)
        async with self._room:
            self.queued.discard(record.id)
            state, text = await self._run_call(call)
        crashpoint("schedule.ran")
        await self._finish_with_retries(record.id, state, text, call.id)
        crashpoint("schedule.finished")

    async def _run_call(self, call: ToolCall) -> tuple[ScheduleState, str]:
        if self._closed:
            return ScheduleState.INTERRUPTED, "its host was stopped before it ran"
        running = asyncio.ensure_future(self._settle(call))
        self._calls.add(running)
        running.add_done_callback(self._calls.discard)
        try:
            envelope = (await running).envelope
        except StorageError as error:  # it could not be recorded, so it did not run
            return ScheduleState.FAILED, str(error)
        except asyncio.CancelledError:  # by ``close``, or the event loop ends
            return ScheduleState.INTERRUPTED, "its host was stopped while it ran"
        return ScheduleState.FAILED if envelope.error else ScheduleState.DONE, envelope.text[:500]

    async def _finish_with_retries(self, id_: str, state: ScheduleState, text: str, call_id: str) -> None:
        """Call ``finish`` until the store accepts it: a run that has ended must not stay open."""
        while True:
            try:
                await self.finish(id_, state, text, call_id)
            except StorageError as error:
                _log.error("the end of %s is not recorded yet: %s", id_, error)
            else:
                return
            if self._closed:
                return  # the next start settles it
            await asyncio.sleep(_RETRY_S)

    def _build_call(self, record: Record, *, late: bool) -> ToolCall:
        body = record.body
        now = self._clock.now().timestamp()
        arguments, maid = body["arguments"], body.get("maid")
        metadata = describe_timed_call(
            task_id=record.id, requested=format_time(self._zone, record.created), due=str(body["for"]),
            triggered=format_time(self._zone, now), original=str(body["at"] or body["cron"]), late=late,
        )  # fmt: skip
        return ToolCall(
            id=str(body["call_id"]), tool=record.tool, arguments=arguments if isinstance(arguments, dict) else {},
            maid=maid if isinstance(maid, str) else None, caller=record.caller, origin=Origin.SCHEDULE,
            approved=str(body.get("approved", "")), metadata=metadata,
        )  # fmt: skip

    async def finish(self, id_: str, state: ScheduleState, text: str, call_id: str) -> bool:
        """Store the end of the run that made this call; False when that run has ended already."""
        while True:
            record = await self._store.get(KIND, id_)
            if (
                record is None
                or record.state != ScheduleState.RUNNING
                or str(record.body.get("call_id") or "") != call_id
            ):
                return False
            now = self._clock.now()
            ran: JsonObject = {"call_id": call_id, "state": state.value, "text": text, "at": now.timestamp()}
            if record.body.get("late_s"):
                ran |= {name: record.body[name] for name in ("late_s", "late_because")}
            runs = record.body.get("runs")
            body: JsonObject = {**record.body, "runs": [*(runs if isinstance(runs, list) else []), ran][-50:]}
            due = self._find_next_time(record, now)
            if due is not None:
                body["for"] = format_time(self._zone, due)
            ended = replace(
                record,
                state=ScheduleState.SCHEDULED if due else state,
                updated=now.timestamp(),
                owner="",
                due=due,
                body=body,
            )
            if await self._store.commit(
                [ended], [schedule_event(f"schedule.{state.value}", now.timestamp(), ended, ran)]
            ):
                return True

    def _find_next_time(self, record: Record, now: datetime) -> float | None:
        cron = str(record.body.get("cron", ""))
        if not cron:
            return None
        with contextlib.suppress(Failure, StopIteration):
            return next(iterate_cron(cron, self._zone, now)).timestamp()
        return None


def format_time(zone: ZoneInfo, stamp: float) -> str:
    """Return a timestamp as local ISO time with its offset."""
    return datetime.fromtimestamp(stamp, UTC).astimezone(zone).isoformat(timespec="seconds")


def schedule_event(kind: str, at: float, record: Record, more: JsonObject | None = None) -> NewEvent:
    data: JsonObject = {"id": record.id, "tool": record.tool, "state": record.state, "due": record.due}
    return NewEvent(type=kind, at=at, data=data | (more or {}))
