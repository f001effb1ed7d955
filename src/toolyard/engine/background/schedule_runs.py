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
from zoneinfo import ZoneInfo

from toolyard.crashpoint import crashpoint
from toolyard.dialects.vcp_messages import describe_timed_call
from toolyard.engine.background.schedule_time import iterate_cron
from toolyard.engine.clock import Clock
from toolyard.errors import StorageError
from toolyard.message import Message, cut_message
from toolyard.protocol.envelope import Failure
from toolyard.protocol.records.schedule_record import SCHEDULE, Schedule, ScheduleState
from toolyard.protocol.store import Store
from toolyard.protocol.tool import Origin, Outcome, ToolCall

_log = logging.getLogger(__name__)
_RETRY_S = 1.0  # between two attempts to keep an end
_MAX_RUNNING = 64
_MAX_TEXT = 500  # characters of the result that are kept with a run

SettleCall = Callable[[ToolCall], Awaitable[Outcome]]


class ScheduleRuns:
    """Runs the calls of claimed schedules with ``settle``."""

    def __init__(self, store: Store, clock: Clock, *, zone: Callable[[], ZoneInfo], settle: SettleCall) -> None:
        self._store, self._clock, self._find_zone, self._settle = store, clock, zone, settle
        self._runs: set[asyncio.Task[None]] = set()  # nobody cancels them: each keeps its end
        self._calls: set[asyncio.Future[Outcome]] = set()  # of those whose turn it is
        self._room = asyncio.Semaphore(_MAX_RUNNING)
        self._closed = False
        self.queued: set[str] = set()

    @property
    def zone(self) -> ZoneInfo:
        return self._find_zone()

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

    def start(self, schedule: Schedule, *, late: bool) -> None:
        self.queued.add(schedule.id)
        run = asyncio.ensure_future(self._run(schedule, late=late))
        self._runs.add(run)
        run.add_done_callback(self._runs.discard)

    async def _run(self, schedule: Schedule, *, late: bool) -> None:
        call = self._build_call(schedule, late=late)
        async with self._room:
            self.queued.discard(schedule.id)
            state, text = await self._run_call(call)
        crashpoint("schedule.ran")
        await self._finish_with_retries(schedule.id, state, text, call.id)
        crashpoint("schedule.finished")

    async def _run_call(self, call: ToolCall) -> tuple[ScheduleState, str]:
        if self._closed:
            return ScheduleState.INTERRUPTED, Message("The server was stopped before it ran.")
        running = asyncio.ensure_future(self._settle(call))
        self._calls.add(running)
        running.add_done_callback(self._calls.discard)
        try:
            envelope = (await running).envelope
        except StorageError as error:  # it could not be recorded, so it did not run
            return ScheduleState.FAILED, str(error)
        except asyncio.CancelledError:  # by ``close``, or the event loop ends
            return ScheduleState.INTERRUPTED, Message("The server was stopped while it ran.")
        return ScheduleState.FAILED if envelope.error else ScheduleState.DONE, cut_message(envelope.text, _MAX_TEXT)

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

    def _build_call(self, schedule: Schedule, *, late: bool) -> ToolCall:
        now = self._clock.now().timestamp()
        metadata = describe_timed_call(
            task_id=schedule.id, requested=format_time(self.zone, schedule.created), due=schedule.scheduled_for,
            triggered=format_time(self.zone, now), original=schedule.at or schedule.cron or "", late=late,
        )  # fmt: skip
        return ToolCall(
            id=schedule.call_id, tool=schedule.tool, arguments=schedule.arguments, maid=schedule.maid,
            caller=schedule.caller, origin=Origin.SCHEDULE, approved=schedule.approved, metadata=metadata,
        )  # fmt: skip

    async def finish(self, id_: str, state: ScheduleState, text: str, call_id: str) -> bool:
        """Store the end of the run that made this call; False when that run has ended already."""
        while True:
            record = await self._store.get(SCHEDULE, id_)
            schedule = Schedule.from_record(record) if record else None
            if schedule is None or schedule.state is not ScheduleState.RUNNING or schedule.call_id != call_id:
                return False
            now = self._clock.now()
            run = schedule.end_run(state, text, now.timestamp())
            due = self.find_next_time(schedule, now)
            ended = replace(
                schedule, state=ScheduleState.SCHEDULED if due else state, updated=now.timestamp(), owner="", due=due,
                runs=schedule.add_run(run),
                scheduled_for=schedule.scheduled_for if due is None else format_time(self.zone, due),
            )  # fmt: skip
            if await self._store.commit([ended.to_record()], [ended.to_event(state.value, now.timestamp(), run)]):
                return True

    def find_next_time(self, schedule: Schedule, now: datetime) -> float | None:
        """Return the next time of a repeating schedule: not the one it ran for last, if the clock went back since."""
        if schedule.cron is None:
            return None
        with contextlib.suppress(Failure, StopIteration):
            times = (time.timestamp() for time in iterate_cron(schedule.cron, self.zone, now))
            return next(time for time in times if time != schedule.was_due)
        return None


def format_time(zone: ZoneInfo, stamp: float) -> str:
    """Return a timestamp as local ISO time with its offset."""
    return datetime.fromtimestamp(stamp, UTC).astimezone(zone).isoformat(timespec="seconds")
