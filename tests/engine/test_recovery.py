"""Recovery of what dead hosts leave behind, and the single owner of a home."""

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from tests import postgres
from tests.fakes import FakeClock
from toolyard.engine.approvals import Approvals
from toolyard.engine.background.schedules import Schedules
from toolyard.engine.background.tasks import Tasks
from toolyard.engine.chats.idempotency import Idempotency
from toolyard.engine.chats.turns import Turns
from toolyard.engine.history.journal import Journal
from toolyard.engine.ownership import OwnerLock, identify_process, is_owned, is_owner_alive
from toolyard.engine.recovery import GRACE_S, Recovery, RecoveryReport
from toolyard.errors import AlreadyOwned
from toolyard.process_numbers import process_start_time
from toolyard.protocol.access import ApprovalState, Mode
from toolyard.protocol.mask import Mask
from toolyard.protocol.records.task_record import Process, Task, TaskState
from toolyard.protocol.store import Query, Record, Store
from toolyard.protocol.tool import Outcome, ToolCall

MACHINE = socket.gethostname()
PENDING = 10_000 if os.environ.get("HYPOTHESIS_PROFILE") == "soak" else 2_000  # the same work on a smaller heap
OWNER = """
import sys
from pathlib import Path
from toolyard.engine.ownership import OwnerLock
lock = OwnerLock.acquire(Path(sys.argv[1]))
print("mine", flush=True)
input()
"""


def name_of_dead_process() -> str:
    """The name of a process of this machine that has ended."""
    child = subprocess.Popen([sys.executable, "-c", ""])
    name = f"{MACHINE}/{child.pid}/{process_start_time(child.pid)}/dead"
    child.wait()
    return name


class Host:
    """One process over a store, which may have been another's before."""

    def __init__(self, store: Store, owner: str, clock: FakeClock | None = None, detached: str = "") -> None:
        self.store, self.owner, self.clock = store, owner, clock or FakeClock()
        self.journal = Journal(store, self.clock, owner=owner, mask=Mask())
        self.tasks = Tasks(store, self.clock, owner=owner)
        self.idempotency = Idempotency(store, self.clock, owner=owner)
        self.turns = Turns(store, self.clock, owner=owner, mask=Mask())
        self.approvals = Approvals(store, self.clock, mode=Mode.ASK, owner=owner)
        self.schedules = Schedules(
            store, self.clock, zone=lambda: ZoneInfo("UTC"), owner=owner, settle=self._never, approve=self._approve
        )
        self.recovery = Recovery(self, self.clock, takes_over=True, is_detached=lambda plugin: plugin == detached)

    async def leave(self, kind: str, id_: str, state: str, **body: str) -> None:
        """A record of this host that has not ended."""
        now = self.clock.now().timestamp()
        made = Record(kind=kind, id=id_, state=state, created=now, updated=now, tool="Tool", owner=self.owner,
                      body={"call_id": "call_0", **body})  # fmt: skip
        assert await self.store.commit([made])

    async def leave_task(self, id_: str, process: Process | None, plugin: str = "Video") -> None:
        now = self.clock.now().timestamp()
        task = Task(id=id_, call_id="call_0", plugin=plugin, task_id=id_, state=TaskState.WAITING, created=now,
                    updated=now, deadline=now + 1800, caller="key:1", token_hash="h", owner=self.owner,
                    process=process)  # fmt: skip
        assert await self.store.commit([task.to_record()])

    async def state(self, kind: str, id_: str) -> str:
        record = await self.store.get(kind, id_)
        assert record is not None
        return record.state

    async def _never(self, call: ToolCall) -> Outcome:
        raise AssertionError("nothing is run again")

    async def _approve(self, call: ToolCall) -> str:
        return ""


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    async with postgres.store_in(request.param, tmp_path / "state.db") as opened:
        yield opened


@pytest.fixture
def sleeper() -> Iterator[Process]:
    """A process that lives for as long as the test."""
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield Process(pid=child.pid, started=process_start_time(child.pid), host=MACHINE)
    child.communicate(b"\n")


@pytest.mark.requirement("p:P2", "p:P10", "r:R03b")
async def test_what_a_dead_host_ran_ends_as_interrupted_once_and_is_not_run_again(store: Store) -> None:
    dead, living = Host(store, name_of_dead_process()), Host(store, identify_process().name)
    for host, id_ in ((dead, "old"), (living, "mine")):
        await host.leave("call", id_, "running")
        await host.leave("schedule", id_, "running")
        await host.leave("approval", id_, "pending")
        await host.leave("idempotency", id_, "running")
    assert await living.recovery.recover() == RecoveryReport(calls=1, schedules=1, approvals=1, requests=1)
    assert await living.recovery.recover() == RecoveryReport()
    kinds = (("call", "running"), ("schedule", "running"), ("approval", "pending"), ("idempotency", "running"))
    for kind, mine in kinds:
        assert await living.state(kind, "old") == "interrupted"
        assert await living.state(kind, "mine") == mine
    ended = await living.journal.get("old")
    assert ended is not None
    message = {"message": ended["text"], "message_code": "call.host_went_down", "message_params": {"tool": "Tool"}}
    assert (ended["reason"], ended["error"]) == ("INTERRUPTED", {"code": "EXECUTION_ERROR", **message})
    assert "is not known" in str(ended["text"])
    events = [event.type for event in await store.events(0, limit=20)]
    assert events == ["approval.interrupted", "schedule.interrupted", "call.finished"]
    assert await living.approvals.answer("old", allowed=True, by="me") is ApprovalState.INTERRUPTED
    assert not await living.schedules.cancel("old")


@pytest.mark.requirement("p:P3")
async def test_a_repeating_schedule_that_was_cut_off_goes_on_with_its_next_time(store: Store) -> None:
    dead, living = Host(store, name_of_dead_process()), Host(store, identify_process().name)
    await dead.leave("schedule", "old", "running", cron="0 * * * *")
    assert (await living.recovery.recover()).schedules == 1
    record = await living.schedules.get("old")
    assert record is not None
    assert (record.state, record.scheduled_for) == ("scheduled", "2026-11-15T10:00:00+00:00")


@pytest.mark.requirement("p:P3", "p:P10", "task:readopted")
async def test_a_task_goes_on_while_its_process_lives_and_is_interrupted_after_a_grace_when_it_does_not(
    store: Store, sleeper: Process
) -> None:
    dead, living = Host(store, name_of_dead_process()), Host(store, identify_process().name)
    await dead.leave_task("alive", sleeper)
    await dead.leave_task("dead", replace(sleeper, started=sleeper.started + 1))  # its number was given to another
    await dead.leave_task("early", None)
    await living.leave_task("mine", None)
    report = await living.recovery.recover()
    assert (report.settled, {task.id for task in report.left}) == (0, {"alive", "dead", "early"})
    living.clock.advance(GRACE_S)
    report = await living.recovery.recover()
    assert (report.tasks, [task.id for task in report.left]) == (2, ["alive"])
    for id_ in ("dead", "early"):
        task = await living.tasks.get(id_)
        assert task is not None
        assert (task.state, "is not known" in task.message) == (TaskState.INTERRUPTED, True)
    assert await living.state("task", "mine") == TaskState.WAITING
    assert await living.tasks.cancel("alive")


@pytest.mark.requirement("p:P3", "r:R25")
async def test_a_task_on_another_machine_or_of_a_detached_plugin_is_judged_by_its_limit(store: Store) -> None:
    dead, living = Host(store, name_of_dead_process()), Host(store, identify_process().name, detached="Detached")
    nobody = Process(pid=2**22 + 1, started=1, host=MACHINE)
    await dead.leave_task("elsewhere", replace(nobody, host="another"))
    await dead.leave_task("detached", nobody, "Detached")
    living.clock.advance(1800)
    assert (await living.recovery.recover()).tasks == 0
    living.clock.advance(GRACE_S + 1)
    assert (await living.recovery.recover()).tasks == 2
    assert await living.state("task", "elsewhere") == TaskState.TIMED_OUT
    assert await living.state("task", "detached") == TaskState.TIMED_OUT


@pytest.mark.requirement("p:P2")
async def test_two_hosts_that_recover_at_once_settle_everything_once(store: Store) -> None:
    dead = Host(store, name_of_dead_process())
    for number in range(20):
        await dead.leave("call", f"c{number}", "running")
    hosts = [Host(store, identify_process().name) for _ in range(2)]
    reports = await asyncio.gather(*(host.recovery.recover() for host in hosts))
    assert sum(report.calls for report in reports) == 20
    assert len(await store.events(0, limit=100)) == 20


@pytest.mark.requirement("r:R60")
async def test_thousands_of_pending_tasks_are_recovered_listed_and_cancelled(store: Store, sleeper: Process) -> None:
    dead, living = Host(store, name_of_dead_process()), Host(store, identify_process().name)
    await dead.leave_task("0", sleeper)
    (one,) = await store.find("task", Query(), limit=1)
    for start in range(1, PENDING, 1000):
        many = range(start, min(start + 1000, PENDING))
        assert await store.commit([replace(one, id=str(n), version=0, key=f"Video::{n}") for n in many])
    async with asyncio.timeout(60):  # start takes under 3 s on an idle machine: bench measures it
        report = await living.recovery.recover()
        assert (report.settled, len(report.left)) == (0, PENDING)
        page = await living.tasks.page(Query(states=(TaskState.WAITING,)), limit=50)
        assert len(page) == 50
        while page := await living.tasks.page(Query(states=(TaskState.WAITING,)), limit=500):
            assert all(await asyncio.gather(*(living.tasks.cancel(task.id) for task in page)))
    assert await store.count("task", Query(states=(TaskState.CANCELLED,))) == PENDING


@pytest.mark.requirement("r:R05")
def test_a_home_has_one_owner_and_is_free_when_that_one_is_gone(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert not is_owned(home)
    lock = OwnerLock.acquire(home)
    assert is_owned(home)
    with pytest.raises(AlreadyOwned, match=f"process {os.getpid()}") as refused:
        OwnerLock.acquire(home)
    assert refused.value.exit_code == 3
    assert str(home) in str(refused.value)
    lock.release()
    assert not is_owned(home)
    child = subprocess.Popen([sys.executable, "-c", OWNER, str(home)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.readline() == b"mine\n"
    assert is_owned(home)
    child.kill()
    child.communicate()
    assert not is_owned(home)
    OwnerLock.acquire(home).release()


@pytest.mark.requirement("r:R05")
def test_a_process_is_known_again_by_its_name_and_no_other_is_taken_for_it() -> None:
    mine = identify_process().name
    assert is_owner_alive(mine)
    machine, pid, began, rest = mine.split("/")
    assert not is_owner_alive(f"{machine}/{pid}/{int(began) + 1}/{rest}")
    assert not is_owner_alive(name_of_dead_process())
    assert not is_owner_alive("")
    assert is_owner_alive(f"another-{machine}/{pid}/{began}/{rest}")  # that machine knows
