"""Workers as real processes, killed with -9: every call ends, truthfully, and none runs twice."""

import asyncio
import json
import os
import random
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests import postgres
from tests.hosts.yards import WorkerProcess, effects_folder, host, plugin, sees, shell_plugin, workers
from tests.waiting import wait_until
from toolyard.engine import recovery
from toolyard.hosts import host as hosts
from toolyard.protocol.envelope import Envelope, Status
from toolyard.protocol.records.task_record import KIND, TaskState
from toolyard.protocol.store import Query, Record
from toolyard.yard.yard import Yard

pytestmark = pytest.mark.requirement("hosts:killed-worker", "p:P2", "p:P3")

SOAK = os.environ.get("HYPOTHESIS_PROFILE") == "soak"
CALLS, TASKS, KILLS = (1000, 200, 20) if SOAK else (150, 30, 4)
AT_ONCE = 24
COUNT = "echo start >> $file; sleep 0.03; echo end >> $file\n"
SLOW = "echo start >> $file; while [ ! -e $file.go ]; do sleep 0.05; done; echo end >> $file\n"
LATER = """
import json, os, sys, time, urllib.request
said = json.loads(sys.stdin.read() or "{}")
name = said["name"]
with open(said["file"], "a") as file:
    file.write("start\\n")
receipt = "later: {{VCP_ASYNC_RESULT::Later::%s}}" % name
print(json.dumps({"status": "success", "result": receipt}), flush=True)
time.sleep(0.1)
address = os.environ["CALLBACK_BASE_URL"] + "/Later/" + name
body = json.dumps({"status": "Succeed", "message": "done"}).encode()
request = urllib.request.Request(address, body, {"content-type": "application/json"})
with urllib.request.urlopen(request, timeout=60) as answer:
    assert answer.status == 200
with open(said["file"], "a") as file:
    file.write("told\\n")
"""


@pytest.fixture
async def database() -> AsyncIterator[str]:
    async with postgres.database(new=True) as url:
        yield url


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """As ``worker_main``."""
    for module in (recovery, hosts):
        monkeypatch.setattr(module, "GRACE_S", 1.0)


def lines(file: Path) -> list[str]:
    return file.read_text().split() if file.exists() else []


async def test_the_calls_of_a_killed_worker_are_settled_within_seconds(database: str, tmp_path: Path) -> None:
    effect = effects_folder(tmp_path) / "effect"
    shell_plugin(tmp_path / "w", "Slow", SLOW)
    async with host(tmp_path / "a", database) as a, workers(database, tmp_path / "w") as (worker,):
        await sees(a.yard, "Slow")
        running = asyncio.create_task(a.yard.call("Slow", {"file": str(effect)}))
        await wait_until(effect.exists)
        await worker.end()
        async with asyncio.timeout(60):  # 10 s are promised; the machine of the tests is busy
            envelope = await running
        assert envelope.context["reason"] == "INTERRUPTED"
        assert "what it had done by then is not known" in envelope.text
        await worker.start()
        await sees(a.yard, "Slow")
        effect.with_suffix(".go").write_text("")
        assert (await a.yard.call("Slow", {"file": str(effect)})).status is Status.SUCCESS
    assert lines(effect) == ["start", "start", "end"]  # the second one was asked for


@pytest.mark.usefixtures("hasty")
async def test_an_idempotent_call_of_a_killed_worker_is_run_again_by_another(database: str, tmp_path: Path) -> None:
    effect = effects_folder(tmp_path) / "effect"
    for name in ("w", "x"):
        shell_plugin(tmp_path / name, "Slow", SLOW, idempotent=True)
    async with host(tmp_path / "a", database) as a, workers(database, tmp_path / "w") as (first,):
        await sees(a.yard, "Slow")
        running = asyncio.create_task(a.yard.call("Slow", {"file": str(effect)}))
        await wait_until(effect.exists)
        async with workers(database, tmp_path / "x"):
            await first.end()
            await wait_until(lambda: lines(effect) == ["start", "start"])
            effect.with_suffix(".go").write_text("")
            assert (await running).status is Status.SUCCESS
    assert lines(effect) == ["start", "start", "end"]


async def test_a_worker_that_is_asked_to_stop_ends_what_it_runs(database: str, tmp_path: Path) -> None:
    effect = effects_folder(tmp_path) / "effect"
    shell_plugin(tmp_path / "w", "Slow", SLOW)
    async with host(tmp_path / "a", database) as a, workers(database, tmp_path / "w") as (worker,):
        await sees(a.yard, "Slow")
        running = asyncio.create_task(a.yard.call("Slow", {"file": str(effect)}))
        await wait_until(effect.exists)
        ending = asyncio.create_task(worker.end(kill=False))
        await wait_until(lambda: a.directory.find_remote_tool("Slow") is None)  # it takes nothing new
        effect.with_suffix(".go").write_text("")
        assert (await running).status is Status.SUCCESS
        assert await ending == 0


@pytest.mark.usefixtures("hasty")
async def test_the_call_of_a_killed_sender_is_stopped_where_it_runs(database: str, tmp_path: Path) -> None:
    effect = effects_folder(tmp_path) / "effect"
    patient = {"protocol": "stdio", "timeout": 120_000}  # its own limit is not what ends it
    shell_plugin(tmp_path / "b", "Slow", SLOW, communication=patient)
    async with host(tmp_path / "b", database) as b, workers(database, tmp_path / "w") as (sender,):
        made = await b.yard.state.schedules.submit(
            b.yard.calls.request("Slow", {"file": str(effect)}), cron="0 0 1 1 *"
        )
        record = await b.yard.state.store.get("schedule", made.id)
        assert record is not None
        # Only the worker looks for what is due: it has no such tool, so it sends the call back here.
        await b.yard.state.store.commit([replace(record, due=record.created)])
        await wait_until(effect.exists)
        await sender.end()
        await wait_until(lambda: not b._worker._running)
        assert lines(effect) == ["start"]
        (call,) = await b.yard.state.journal.page(Query(tool="Slow"), limit=2)
        schedule = await _ended(b.yard, "schedule", made.id)
        assert json.dumps(schedule.body["runs"]).count("interrupted") == 1
        assert (await _ended(b.yard, "call", call.id)).state == "interrupted"


@pytest.mark.usefixtures("hasty")
async def test_nothing_is_lost_and_nothing_runs_twice_while_workers_are_killed(database: str, tmp_path: Path) -> None:
    places = [tmp_path / f"w{number}" for number in range(3)]
    for place in places:
        shell_plugin(place, "Count", COUNT)
        plugin(place, "Later", LATER, pluginType="asynchronous")
    async with host(tmp_path / "a", database) as a, workers(database, *places) as crew:
        await sees(a.yard, "Later")
        work = Work(a.yard, tmp_path)
        killing = asyncio.create_task(_kill(crew, work))
        async with asyncio.timeout(1800 if SOAK else 240):
            await work.done()
            await killing
            await _check_calls(work)
            await _check_tasks(work)
        await _check_journal(a.yard, CALLS + TASKS)


class Work:
    """A mix of calls and tasks, some at a time, each with a file of its own for what it did."""

    def __init__(self, yard: Yard, place: Path) -> None:
        self.yard, self.place, self.ended = yard, place, 0
        self.envelopes: dict[str, Envelope] = {}
        self._room = asyncio.Semaphore(AT_ONCE)
        names = [f"call{number}" for number in range(CALLS)] + [f"task{number}" for number in range(TASKS)]
        random.Random(7).shuffle(names)
        self._calls = [asyncio.create_task(self._one(name)) for name in names]

    def file(self, name: str) -> Path:
        return effects_folder(self.place) / f"{name}.effect"

    async def done(self) -> None:
        await asyncio.gather(*self._calls)

    async def _one(self, name: str) -> None:
        arguments: dict[str, Any] = {"file": str(self.file(name))}
        async with self._room:
            if name.startswith("call"):
                self.envelopes[name] = await self.yard.call("Count", arguments)
            else:
                self.envelopes[name] = await self.yard.call("Later", {**arguments, "name": name})
        self.ended += 1


async def _kill(crew: list[WorkerProcess], work: Work) -> None:
    """Kill one of them after every so many calls, at a moment that nobody chose, and start it again."""
    chance = random.Random(11)
    for number in range(1, KILLS + 1):
        await wait_until(lambda due=number * (CALLS + TASKS) // (KILLS + 2): work.ended >= due, within_s=1800)  # type: ignore[misc]
        victim = chance.choice(crew)
        await victim.end()
        await victim.start()


async def _check_calls(work: Work) -> None:
    reasons: Counter[str] = Counter()
    for name, envelope in work.envelopes.items():
        did = lines(work.file(name))
        assert did.count("start") <= 1, (name, did)
        if envelope.error is None:
            assert did[:1] == ["start"], name
            assert name.startswith("task") or did == ["start", "end"], (name, did)
        else:
            reasons[str(envelope.context.get("reason") or envelope.text)] += 1
    assert set(reasons) <= {"INTERRUPTED"}, reasons
    assert len(work.envelopes) == CALLS + TASKS


async def _check_tasks(work: Work) -> None:
    """Every task that has begun ends; one whose callback was acknowledged has succeeded."""
    while True:
        _, newest = await work.yard.state.store.event_span()
        if not await work.yard.state.store.find(KIND, Query(states=(TaskState.WAITING,)), limit=1):
            break
        await work.yard.state.store.next_event(newest)
    tasks = await work.yard.state.tasks.page(Query(), limit=TASKS + 1)
    states = {task.task_id: task.state for task in tasks}
    assert len(states) == len(tasks) <= TASKS
    for name, envelope in work.envelopes.items():
        if name.startswith("task") and envelope.error is None:
            assert name in states
        if "told" in lines(work.file(name)):
            assert states[name] is TaskState.SUCCEEDED
    assert set(states.values()) <= {TaskState.SUCCEEDED, TaskState.INTERRUPTED, TaskState.FAILED}
    assert TaskState.SUCCEEDED in states.values()


async def _check_journal(yard: Yard, expected: int) -> None:
    assert await yard.state.store.count("call", Query(states=("running",))) == 0
    assert await yard.state.store.count("call", Query()) == expected
    assert await yard.state.store.count("remote", Query(states=("queued", "running"))) == 0
    after, finished = 0, Counter[str]()
    while page := await yard.state.store.events(after, limit=1000):
        assert [event.seq for event in page] == list(range(after + 1, after + len(page) + 1))
        after = page[-1].seq
        finished.update(str(event.data["id"]) for event in page if event.type == "call.finished")
    assert len(finished) == expected
    assert set(finished.values()) == {1}


async def _ended(yard: Yard, kind: str, id_: str) -> Record:
    async with asyncio.timeout(60):
        while True:
            _, newest = await yard.state.store.event_span()
            record = await yard.state.store.get(kind, id_)
            assert record is not None
            if record.state != "running":
                return record
            await yard.state.store.next_event(newest)
