"""Schedules: calls that run later."""

import asyncio
import sqlite3
import struct
from collections.abc import Awaitable, Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tests.engine.held_store import HeldStore, cancelled
from tests.fakes import FakeClock
from tests.waiting import run_loop_once, wait_for_value, wait_until
from toolyard.engine.background.schedules import Schedules
from toolyard.errors import StorageError, StorageIndexDamaged
from toolyard.protocol.envelope import Envelope, ErrorCode, Failure, Fault, Reason, Status
from toolyard.protocol.records.schedule_record import Schedule, ScheduleRun, ScheduleState
from toolyard.protocol.store import PageCursor, Query, Record, Store
from toolyard.protocol.tool import Origin, Outcome, ToolCall
from toolyard.storage.memory_store import MemoryStore
from toolyard.storage.sqlite import SqliteStore

ZONE = ZoneInfo("Asia/Shanghai")


def outcome(error: str = "") -> Outcome:
    envelope = Envelope(
        status=Status.ERROR if error else Status.SUCCESS, data={}, text=error or "Done.", stats={"time_ms": 1},
        error=Fault(ErrorCode.EXECUTION_ERROR, error) if error else None, context={"cwd": ".", "params_input": {}},
    )  # fmt: skip
    return Outcome(envelope=envelope, root="/")


class Bench:
    def __init__(self, store: Store | None = None, clock: FakeClock | None = None) -> None:
        self.store, self.clock = store or MemoryStore(), clock or FakeClock()
        self.ran: list[ToolCall] = []
        self.work: Callable[[ToolCall], Awaitable[Outcome]] = self._done
        self.approved = "digest"
        self.schedules = Schedules(
            self.store, self.clock, zone=lambda: ZONE, owner="boot", settle=self._settle, approve=self._approve
        )

    async def add(self, at: str = "2026-11-15-18:00", cron: str = "", tool: str = "Tool") -> Schedule:
        call = ToolCall(
            id="call_0", tool=tool, arguments={"text": "hi"}, caller="key:1", origin=Origin.CHAT, maid="Nova"
        )
        return await self.schedules.submit(call, at="" if cron else at, cron=cron)

    async def tick(self) -> int:
        claimed = await self.schedules.tick()
        await self.schedules.drain()
        return claimed

    async def state(self, id_: str) -> str:
        record = await self.schedules.get(id_)
        assert record is not None
        return record.state

    async def _settle(self, call: ToolCall) -> Outcome:
        self.ran.append(call)
        return await self.work(call)

    async def _done(self, call: ToolCall) -> Outcome:
        return outcome()

    async def _approve(self, call: ToolCall) -> str:
        return self.approved


@pytest.mark.requirement("schedule:run", "hosts:runner")
async def test_a_scheduled_call_runs_once_at_its_time_with_what_plugins_are_told() -> None:
    bench = Bench()  # it is 17:30 in Shanghai
    added = await bench.add()
    assert added.scheduled_for == "2026-11-15T18:00:00+08:00"
    bench.clock.advance(29 * 60)
    assert await bench.tick() == 0
    bench.clock.advance(61)
    assert await bench.tick() == 1
    assert await bench.tick() == 0
    (call,) = bench.ran
    assert (call.tool, call.arguments, call.origin, call.caller) == ("Tool", {"text": "hi"}, Origin.SCHEDULE, "key:1")
    assert call.maid == "Nova"
    metadata = call.metadata["__vcp_timed_call"]
    assert isinstance(metadata, dict)
    assert metadata["taskId"] == added.id
    assert metadata["scheduledFor"] == "2026-11-15T18:00:00+08:00"
    assert metadata["originalTimelyContact"] == "2026-11-15-18:00"
    stored = await bench.schedules.get(added.id)
    assert stored is not None
    assert stored.state == ScheduleState.DONE
    assert stored.runs == (ScheduleRun(call_id=call.id, state=ScheduleState.DONE, text="Done.", at=stored.updated),)


@pytest.mark.requirement("s:S-29")
async def test_a_call_that_is_not_approved_is_not_scheduled_and_the_approval_goes_along_to_the_run() -> None:
    bench = Bench()
    await bench.add()
    bench.clock.advance(3600)
    await bench.tick()
    assert bench.ran[0].approved == "digest"

    async def refuse(call: ToolCall) -> str:
        raise Failure(Reason.DENIED, "no")

    bench.schedules._approve = refuse
    with pytest.raises(Failure):
        await bench.add("2026-11-16-18:00")
    assert len(await bench.schedules.page(Query(), limit=10)) == 1


@pytest.mark.requirement("r:R40")
async def test_after_the_clock_jumps_ahead_due_schedules_fire_once_each_in_the_order_of_their_times() -> None:
    bench = Bench()
    ids = [(await bench.add(f"2026-11-15-{hour}:{minute:02}", tool=f"T{hour}{minute:02}")).id
           for hour, minute in ((19, 10), (18, 40), (18, 50))]  # fmt: skip
    bench.clock.advance(2 * 3600)
    assert await bench.tick() == 3
    assert [call.tool for call in bench.ran] == ["T1840", "T1850", "T1910"]
    assert await bench.tick() == 0
    assert {await bench.state(one) for one in ids} == {ScheduleState.DONE}


@pytest.mark.requirement("r:R41")
async def test_after_the_clock_jumps_back_nothing_fires_twice() -> None:
    bench = Bench()
    await bench.add()
    bench.clock.advance(1900)
    await bench.tick()
    bench.clock.wall = datetime(2026, 11, 15, 7, 0, tzinfo=UTC)
    assert await bench.tick() == 0
    bench.clock.wall = datetime(2026, 11, 15, 11, 0, tzinfo=UTC)
    assert await bench.tick() == 0
    assert len(bench.ran) == 1


@pytest.mark.requirement("r:R41", "schedule:clock-back")
@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("ahead", [timedelta(hours=2), timedelta(days=3650)])
async def test_a_repeating_schedule_goes_on_after_the_clock_jumped_ahead_and_back(
    ahead: timedelta, restarted: bool
) -> None:
    bench = Bench()
    await bench.add(cron="* * * * *")
    serving = asyncio.create_task(bench.schedules.serve())
    async with asyncio.timeout(60):
        for runs in (1, 2):  # the first for the time before the jump, the second for one in a future that never came
            bench.clock.wall += ahead if runs == 1 else timedelta(seconds=61)
            await wait_until(lambda: len(bench.ran) == runs)  # noqa: B023 it ends in this round
        if restarted:
            serving.cancel()
            await bench.schedules.drain()
        bench.clock.wall -= ahead
        if restarted:
            bench = Bench(bench.store, bench.clock)
            serving = asyncio.create_task(bench.schedules.serve())
        before = len(bench.ran)
        await wait_for_value(lambda: _is_due_within(bench, 61))
        bench.clock.advance(61)
        await wait_until(lambda: len(bench.ran) > before)
    serving.cancel()
    await bench.schedules.drain()


async def _is_due_within(bench: Bench, seconds: float) -> bool:
    (schedule,) = await bench.schedules.page(Query(), limit=2)
    return schedule.due is not None and schedule.due <= bench.clock.now().timestamp() + seconds


@pytest.mark.requirement("r:R41", "schedule:clock-back")
async def test_a_repeating_schedule_is_not_run_twice_for_one_time_when_the_clock_goes_back() -> None:
    bench = Bench()
    added = await bench.add(cron="0 18 * * *")
    bench.clock.advance(1900)
    assert await bench.tick() == 1
    bench.clock.wall -= timedelta(hours=2)
    await bench.schedules.run_missed()
    stored = await bench.schedules.get(added.id)
    assert stored is not None
    assert stored.scheduled_for == "2026-11-16T18:00:00+08:00"


@pytest.mark.requirement("r:R43", "r:R44")
async def test_after_downtime_a_schedule_runs_late_within_the_grace_and_expires_beyond_it() -> None:
    bench = Bench()
    old, recent = await bench.add("2026-11-15-18:00", tool="Old"), await bench.add("2026-11-15-19:30", tool="Recent")
    later = FakeClock(wall=datetime(2026, 11, 15, 12, 0, tzinfo=UTC))  # 20:00 in Shanghai
    again = Bench(bench.store, later)
    await again.tick()
    assert [call.tool for call in again.ran] == ["Recent"]
    metadata = again.ran[0].metadata["__vcp_timed_call"]
    assert isinstance(metadata, dict)
    assert metadata["late"] is True
    assert await again.state(old.id) == ScheduleState.EXPIRED
    assert await again.schedules.run_by_hand(old.id)
    await again.schedules.drain()
    assert await again.state(old.id) == ScheduleState.DONE
    assert await again.state(recent.id) == ScheduleState.DONE


@pytest.mark.requirement("r:R45")
async def test_a_schedule_does_not_fire_while_it_still_runs_and_two_hosts_claim_it_once() -> None:
    bench = Bench()
    go_on = asyncio.Event()

    async def slow(call: ToolCall) -> Outcome:
        await go_on.wait()
        return outcome()

    bench.work = slow
    other = Bench(bench.store, bench.clock)
    await bench.add(cron="* * * * *")
    bench.clock.advance(61)
    claimed = await asyncio.gather(bench.schedules.tick(), other.schedules.tick())
    assert sum(claimed) == 1
    bench.clock.advance(61)
    assert await other.schedules.tick() == 0
    go_on.set()
    await bench.schedules.drain()
    await other.schedules.drain()
    bench.clock.advance(61)
    assert await bench.tick() == 1


@pytest.mark.requirement("schedule:run", "r:R42")
async def test_a_repeating_schedule_goes_on_after_a_failure_and_runs_once_for_all_it_missed() -> None:
    bench = Bench()

    async def fail(call: ToolCall) -> Outcome:
        return outcome("It broke.")

    bench.work = fail
    added = await bench.add(cron="0 * * * *")
    bench.clock.advance(5 * 3600)
    assert await bench.tick() == 1
    stored = await bench.schedules.get(added.id)
    assert stored is not None
    assert stored.state == ScheduleState.SCHEDULED
    assert stored.scheduled_for == "2026-11-15T23:00:00+08:00"
    assert stored.runs[0].to_body() == {
        "call_id": bench.ran[0].id, "state": "failed", "text": "It broke.", "at": stored.updated,
        "late_s": 16200.0, "late_because": "no_host",
    }  # fmt: skip


@pytest.mark.requirement("schedule:run")
async def test_a_cancelled_schedule_never_runs() -> None:
    bench = Bench()
    added = await bench.add()
    assert await bench.schedules.cancel(added.id)
    assert not await bench.schedules.cancel(added.id)
    bench.clock.advance(3600)
    assert await bench.tick() == 0
    assert await bench.state(added.id) == ScheduleState.CANCELLED


@pytest.mark.requirement("p:P2")
async def test_a_schedule_cut_off_by_a_crash_is_interrupted_and_not_run_again() -> None:
    bench = Bench()
    added = await bench.add()
    bench.work = lambda call: asyncio.Event().wait()  # type: ignore[assignment,return-value]
    bench.clock.advance(1900)
    await bench.schedules.tick()
    again = Bench(bench.store, bench.clock)
    await again.schedules.settle_orphans(lambda owner: False)
    assert await again.state(added.id) == ScheduleState.INTERRUPTED
    assert await again.tick() == 0
    await bench.schedules.close()


@pytest.mark.requirement("r:R46")
async def test_ten_thousand_schedules_of_one_minute_are_all_claimed_and_run_once() -> None:
    bench = Bench()
    body = (await bench.add("2026-12-24-18:00")).to_record().body
    stamp = bench.clock.now().timestamp()
    for n in range(0, 10_000, 500):
        await bench.store.commit(
            [Record(kind="schedule", id=f"s{n + k}", state="scheduled", created=stamp, updated=stamp, caller="c",
                    tool="Tool", due=stamp + 60, body=body) for k in range(500)]
        )  # fmt: skip
    bench.clock.advance(90)
    assert await bench.tick() == 10_000
    assert len({call.id for call in bench.ran}) == 10_000


@pytest.mark.requirement("schedule:invalid")
@pytest.mark.parametrize(
    ("at", "cron"), [("", ""), ("2027-01-01-00:00", "* * * * *"), ("yesterday", ""), ("", "0 0 30 2 *")]
)
async def test_a_schedule_without_one_good_time_is_refused(at: str, cron: str) -> None:
    bench = Bench()
    with pytest.raises(Failure) as refused:
        await bench.schedules.submit(ToolCall(id="c", tool="T"), at=at, cron=cron)
    assert refused.value.code is ErrorCode.INVALID_PARAM


@pytest.mark.requirement("p:P3", "p:P10")
@pytest.mark.parametrize("begun", [False, True])
async def test_a_run_that_is_stopped_with_its_host_ends_as_interrupted(*, begun: bool) -> None:
    bench, runs = Bench(), asyncio.Event()

    async def slow(_: ToolCall) -> Outcome:
        runs.set()
        await asyncio.Event().wait()
        return outcome()

    bench.work = slow
    ids = [(await bench.add()).id for _ in range(65)]  # one of them waits for its turn
    bench.clock.advance(1900)
    assert sorted(await bench.schedules.run_due()) == sorted(ids)
    async with asyncio.timeout(60):
        if begun:
            await runs.wait()
        await bench.schedules.close()
    assert {await bench.state(one) for one in ids} == {ScheduleState.INTERRUPTED}


@pytest.mark.requirement("p:P3", "p:P10")
async def test_a_run_that_was_done_when_its_host_stopped_is_done() -> None:
    store = HeldStore()
    bench = Bench(store)
    added = await bench.add()
    bench.clock.advance(1900)
    store.hold(ScheduleState.DONE, kept=False)
    await bench.schedules.tick()
    async with asyncio.timeout(60):
        await store.held.wait()
        closing = asyncio.ensure_future(bench.schedules.close())
        await run_loop_once()
        store.go.set()
        await closing
    assert await bench.state(added.id) == ScheduleState.DONE


@pytest.mark.requirement("p:P3", "r:R62")
async def test_a_store_that_refuses_the_end_of_a_run_does_not_hold_up_its_host(monkeypatch: pytest.MonkeyPatch) -> None:
    bench, refused = Bench(), asyncio.Event()
    added = await bench.add()
    bench.clock.advance(1900)
    real = bench.store.commit

    async def full(changes: Any, events: Any = (), **more: Any) -> bool:
        if changes and changes[0].state == ScheduleState.DONE:
            refused.set()
            raise StorageError("the disk is full")
        return await real(changes, events, **more)

    monkeypatch.setattr(bench.store, "commit", full)
    monkeypatch.setattr("toolyard.engine.background.schedule_runs._RETRY_S", 0.01)
    await bench.schedules.tick()
    async with asyncio.timeout(60):
        await refused.wait()
        await bench.schedules.close()
    assert await bench.state(added.id) == ScheduleState.RUNNING  # for the next start


@pytest.mark.requirement("schedule:run")
async def test_a_host_that_serves_no_longer_is_not_held_up_by_a_run_that_has_just_begun() -> None:
    bench, runs, go = Bench(), asyncio.Event(), asyncio.Event()

    async def slow(_: ToolCall) -> Outcome:
        runs.set()
        await go.wait()
        return outcome()

    bench.work = slow
    added = await bench.add()
    bench.clock.advance(1900)
    serving = asyncio.create_task(bench.schedules.serve())
    async with asyncio.timeout(60):
        await runs.wait()
        serving.cancel()
        await asyncio.wait({serving})
        go.set()
        await bench.schedules.drain()
    assert await bench.state(added.id) == ScheduleState.DONE


@pytest.mark.requirement("p:P3")
@pytest.mark.parametrize("by_hand", [False, True])
async def test_a_run_that_was_claimed_begins_even_if_whoever_claimed_it_is_cut_off(*, by_hand: bool) -> None:
    store = HeldStore()
    bench = Bench(store)
    added = await bench.add()
    bench.clock.advance(1900)
    store.hold(ScheduleState.RUNNING, kept=True)
    claiming = bench.schedules.run_by_hand(added.id) if by_hand else bench.schedules.tick()
    await cancelled(asyncio.ensure_future(claiming), store)
    await asyncio.wait_for(bench.schedules.drain(), 60)
    assert await bench.state(added.id) == ScheduleState.DONE
    assert len(bench.ran) == 1


@pytest.mark.requirement("r:R45")
async def test_of_two_who_run_a_schedule_by_hand_at_once_one_does_however_quick_the_run_is() -> None:
    store = HeldStore()
    bench = Bench(store)
    other = Bench(store, bench.clock)
    added = await bench.add(cron="0 * * * *")
    await bench.schedules.run_by_hand(added.id)
    await bench.schedules.drain()
    store.hold(ScheduleState.RUNNING, kept=False)
    slower = asyncio.ensure_future(other.schedules.run_by_hand(added.id))
    async with asyncio.timeout(60):
        await store.held.wait()
        assert await bench.schedules.run_by_hand(added.id)
        await bench.schedules.drain()
        store.go.set()
        assert not await slower
    assert (len(bench.ran), other.ran) == (2, [])


@pytest.mark.requirement("r:R45")
async def test_what_was_due_and_was_run_or_changed_since_is_not_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    other = Bench(bench.store, bench.clock)
    often, once = await bench.add(cron="0 * * * *"), await bench.add()
    bench.clock.advance(1900)
    found = await bench.store.find("schedule", Query(states=(ScheduleState.SCHEDULED,)), limit=5)
    assert {one.id for one in found} == {often.id, once.id}
    by_hand = ToolCall(id="call_1", tool="Other", caller="key:1", origin=Origin.HTTP)
    assert await bench.schedules.change(once.id, by_hand, at="2026-11-16-18:00") is not None
    assert await bench.tick() == 1
    pages, find = iter([found]), bench.store.find

    async def slow(kind: str, query: Query, **more: Any) -> list[Record]:
        return next(pages, None) or await find(kind, query, **more)

    monkeypatch.setattr(bench.store, "find", slow)
    assert await other.tick() == 0
    assert other.ran == []
    assert {await bench.state(one.id) for one in found} == {ScheduleState.SCHEDULED}


@pytest.mark.requirement("schedule:run")
async def test_a_schedule_that_is_changed_while_it_is_resumed_goes_on_at_its_new_time() -> None:
    store = HeldStore()
    bench = Bench(store)
    added = await bench.add()
    await bench.schedules.pause(added.id)
    store.hold(ScheduleState.SCHEDULED, kept=False)
    resuming = asyncio.ensure_future(bench.schedules.resume(added.id))
    call = ToolCall(id="call_1", tool="Other", caller="key:1", origin=Origin.HTTP)
    async with asyncio.timeout(60):
        await store.held.wait()
        assert await bench.schedules.change(added.id, call, at="2026-11-15-19:00") is not None
        store.go.set()
        assert await resuming
    resumed = await bench.schedules.get(added.id)
    assert resumed is not None
    assert (resumed.state, resumed.tool, resumed.scheduled_for) == ("scheduled", "Other", "2026-11-15T19:00:00+08:00")
    assert resumed.due == datetime(2026, 11, 15, 11, tzinfo=UTC).timestamp()


@pytest.mark.requirement("schedule:run", "s:S-91")
async def test_a_schedule_is_shown_without_the_secrets_it_keeps_for_its_run() -> None:
    bench = Bench()
    call = ToolCall(id="c", tool="Tool", arguments={"password": "open sesame"}, caller="key:1")
    added = await bench.schedules.submit(call, at="2026-11-15-18:00")
    assert bench.schedules.to_json(added)["arguments"] == {"password": "[masked]"}
    assert await bench.store.find("schedule", Query(text="sesame"), limit=1) == []
    bench.clock.advance(1900)
    await bench.tick()
    assert bench.ran[0].arguments == {"password": "open sesame"}


@pytest.mark.requirement("schedule:run", "schedule:invalid")
async def test_a_receipt_says_when_the_call_runs_or_why_it_does_not() -> None:
    bench = Bench()
    call = ToolCall(id="c", tool="Tool", arguments={"token": "abc"}, caller="key:1")
    receipt = await bench.schedules.submit_for_receipt(call, at="2026-11-15-18:00")
    assert (receipt.status, receipt.data["scheduled_for"]) == (Status.SUCCESS, "2026-11-15T18:00:00+08:00")
    assert str(receipt.data["schedule_id"]) in receipt.text
    assert receipt.context["params_input"] == {"token": "[masked]"}
    for when in ("2026-11-15-17:00", "never", ""):
        refused = await bench.schedules.submit_for_receipt(call, at=when)
        assert refused.error is not None
        assert refused.error.code is ErrorCode.INVALID_PARAM
    odd = ToolCall(id="c", tool="Tool", arguments={"x": float("nan")}, caller="key:1")
    refused = await bench.schedules.submit_for_receipt(odd, at="2026-11-15-18:00")
    assert refused.error is not None
    assert refused.error.code is ErrorCode.INVALID_PARAM


@pytest.mark.requirement("r:R62", "p:P3")
async def test_a_run_whose_end_meets_a_full_disk_is_recorded_when_there_is_room_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench()
    added = await bench.add()
    real, refusals = bench.store.commit, iter([True, True, False])

    async def full(changes: Any, events: Any = (), **more: Any) -> bool:
        if changes and changes[0].state == ScheduleState.DONE and next(refusals):
            raise StorageError("the disk is full")
        return await real(changes, events, **more)

    monkeypatch.setattr(bench.store, "commit", full)
    monkeypatch.setattr("toolyard.engine.background.schedule_runs._RETRY_S", 0.01)
    bench.clock.advance(1900)
    async with asyncio.timeout(60):
        await bench.tick()
    assert await bench.state(added.id) == ScheduleState.DONE
    assert len(bench.ran) == 1


@pytest.mark.requirement("schedule:run")
async def test_a_paused_schedule_does_not_run_and_goes_on_at_its_own_time() -> None:
    bench = Bench()
    once, often = await bench.add(), await bench.add(cron="0 18 * * *")
    for one in (once, often):
        assert await bench.schedules.pause(one.id)
    bench.clock.advance(2000)
    assert await bench.tick() == 0
    with pytest.raises(Failure, match="not in the future"):
        await bench.schedules.resume(once.id)
    assert await bench.state(once.id) == ScheduleState.PAUSED
    assert await bench.schedules.resume(often.id)
    resumed = await bench.schedules.get(often.id)
    assert resumed is not None
    assert resumed.scheduled_for == "2026-11-16T18:00:00+08:00"
    bench.clock.advance(86_400)
    assert await bench.tick() == 1


@pytest.mark.requirement("schedule:run")
async def test_a_changed_schedule_keeps_its_runs_and_asks_for_approval_again() -> None:
    bench = Bench()
    added = await bench.add(cron="0 18 * * *")
    bench.clock.advance(1900)
    assert await bench.tick() == 1
    bench.approved = "another digest"
    call = ToolCall(id="call_1", tool="Other", arguments={}, caller="key:1", origin=Origin.HTTP)
    changed = await bench.schedules.change(added.id, call, at="2026-11-15-19:00")
    assert changed is not None
    assert (changed.tool, changed.approved) == ("Other", "another digest")
    assert [run.state for run in changed.runs] == ["done"]
    bench.clock.advance(3600)
    assert await bench.tick() == 1
    assert bench.ran[-1].tool == "Other"
    assert await bench.schedules.change(added.id, call, at="2027-11-20-10:00") is None


async def condition(bench: Bench, id_: str, **more: bool) -> tuple[Any, ...]:
    record = await bench.schedules.get(id_)
    assert record is not None
    (told,) = await bench.schedules.list_json([record], **more)
    return told["condition"], told["late_because"], told["late_s"], told["approval"]


@pytest.mark.requirement("console:schedule", "r:R43")
async def test_a_schedule_that_did_not_begin_at_its_time_is_late_and_says_why() -> None:
    bench = Bench()
    added = await bench.add("2026-11-15-18:00")
    bench.clock.wall = datetime(2026, 11, 15, 10, 0, 59, tzinfo=UTC)
    assert await condition(bench, added.id) == ("scheduled", None, None, None)
    bench.clock.wall = datetime(2026, 11, 15, 10, 2, tzinfo=UTC)
    assert await condition(bench, added.id) == ("late", "no_host", 120.0, None)
    assert await condition(bench, added.id, is_served=True) == ("late", "busy", 120.0, None)
    assert await bench.tick() == 1
    assert await condition(bench, added.id) == ("done", None, None, None)
    ran = (await bench.schedules.list_json([one for one in [await bench.schedules.get(added.id)] if one]))[0]["runs"]
    assert isinstance(ran, list)
    assert isinstance(ran[-1], dict)
    assert (ran[-1]["late_s"], ran[-1]["late_because"]) == (120.0, "no_host")


@pytest.mark.requirement("console:schedule")
async def test_a_schedule_that_waits_for_its_turn_behind_others_is_late_because_of_them() -> None:
    bench, go = Bench(), asyncio.Event()

    async def slow(_: ToolCall) -> Outcome:
        await go.wait()
        return outcome()

    bench.work = slow
    added = [await bench.add("2026-11-15-18:00") for _ in range(65)]
    bench.clock.wall = datetime(2026, 11, 15, 10, 0, 1, tzinfo=UTC)
    assert await bench.schedules.tick() == 65
    await wait_until(lambda: len(bench.ran) >= 64)
    bench.clock.advance(120)
    seen = [await condition(bench, one.id) for one in added]
    assert sorted(seen) == [("late", "busy", 121.0, None), *[("running", None, None, None)] * 64]
    go.set()
    await bench.schedules.drain()
    assert len(bench.ran) == 65


@pytest.mark.requirement("console:schedule", "r:R43")
async def test_a_server_whose_store_refuses_is_late_because_of_that(monkeypatch: pytest.MonkeyPatch) -> None:
    bench, looked = Bench(), asyncio.Event()
    added = await bench.add("2026-11-15-18:00")
    bench.clock.wall = datetime(2026, 11, 15, 10, 2, tzinfo=UTC)

    async def full(*_: Any, **__: Any) -> bool:
        looked.set()
        raise StorageError("the disk is full")

    monkeypatch.setattr(bench.store, "commit", full)
    serving = asyncio.create_task(bench.schedules.serve())
    async with asyncio.timeout(60):
        await looked.wait()
    await wait_for_value(lambda: condition(bench, added.id), lambda told: told[1] == "storage")
    assert await condition(bench, added.id) == ("late", "storage", 120.0, None)
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)


@pytest.mark.requirement("schedule:run", "console:schedule")
async def test_a_schedule_keeps_the_chat_that_made_it_through_every_change() -> None:
    bench = Bench()
    call = ToolCall(id="call_0", tool="Tool", caller="key:1", origin=Origin.CHAT, chat="tea-time")
    made = await bench.schedules.submit(call, at="2026-11-15-18:00")
    by_hand = ToolCall(id="call_1", tool="Other", caller="key:1", origin=Origin.HTTP)
    changed = await bench.schedules.change(made.id, by_hand, at="2026-11-15-19:00")
    assert changed is not None
    assert [bench.schedules.to_json(one)["chat"] for one in (made, changed)] == ["tea-time", "tea-time"]


@pytest.mark.requirement("schedule:damaged-index")
async def test_a_schedule_whose_index_lost_it_is_run_or_the_damage_is_told(tmp_path: Path) -> None:
    file, clock = tmp_path / "state.db", FakeClock()
    bench = Bench(SqliteStore(file), clock)
    added = await bench.add()
    await bench.store.close()
    with closing(sqlite3.connect(file)) as db:
        db.execute("PRAGMA journal_mode = DELETE")
        (size,) = db.execute("PRAGMA page_size").fetchone()
        (page,) = db.execute("SELECT pageno FROM dbstat WHERE name = 'records_by_due'").fetchone()
    content = bytearray(file.read_bytes())
    assert added.due is not None
    at = content.index(b"schedule" + struct.pack(">i", int(added.due)), (page - 1) * size) + len("schedule")
    content[at : at + 4] = struct.pack(">i", 2**31 - 1)  # as far as its index knows, it is due in a long time
    file.write_bytes(content)
    bench = Bench(SqliteStore(file), clock)
    clock.advance(31 * 60)
    assert await bench.tick() == 0, "the damage is not what this test is about"
    try:
        report = ", ".join(await bench.schedules.run_missed())
    except StorageIndexDamaged as error:  # an SQLite that does not change a record whose index is wrong
        report = str(error)
    assert added.id in report or "doctor --repair" in report
    await bench.schedules.drain()
    await bench.store.close()


@pytest.mark.requirement("schedule:damaged-index")
async def test_a_host_looks_at_every_schedule_when_it_starts_to_serve() -> None:
    class Forgetful(MemoryStore):
        """As one whose index of due times is empty."""

        async def find(self, kind: str, query: Query, *, limit: int, after: PageCursor | None = None) -> list[Record]:
            return [] if query.due_until is not None else await super().find(kind, query, limit=limit, after=after)

    bench = Bench(Forgetful())
    ran = asyncio.Event()

    async def work(call: ToolCall) -> Outcome:
        ran.set()
        return outcome()

    bench.work = work
    await bench.add()
    bench.clock.advance(31 * 60)
    serving = asyncio.create_task(bench.schedules.serve())
    async with asyncio.timeout(60):
        await ran.wait()
    serving.cancel()
    await asyncio.wait([serving])
    await bench.schedules.drain()
