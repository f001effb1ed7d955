"""Retention: what a sweep deletes and what it leaves."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from random import Random, randbytes

import pytest

from tests import postgres
from tests.fakes import FakeClock
from toolyard.config import load_config
from toolyard.engine import retention
from toolyard.engine.retention import ENDED, EVENTS_S, KEPT_S, Retention, SweepResult
from toolyard.protocol.store import NewEvent, Query, Record, Store
from toolyard.storage.sqlite import SqliteStore
from toolyard.storage.state_file import measure_used_bytes
from toolyard.yard.plugin_source import HostOptions
from toolyard.yard.yard import Yard

UNENDED = {
    "call": ["running"],
    "task": ["waiting_callback"],
    "approval": ["pending"],
    "rule": ["active"],
    "schedule": ["scheduled", "running"],
}
WRITER = """
import asyncio, sys
from pathlib import Path
from toolyard.protocol.store import NewEvent, Record
from toolyard.storage.sqlite import SqliteStore

async def main(file, name):
    store = SqliteStore(Path(file))
    print("ready", flush=True)
    for n in range(150):
        made = [Record(kind="call", id=f"{name}{n}.{k}", state="success", created=9e9, updated=9e9, text="a b c")
                for k in range(4)]
        done = await asyncio.gather(*(
            store.commit([one], [NewEvent(type="call.finished", at=9e9)], lasting=True) for one in made))
        assert all(done)
    await store.close()

asyncio.run(main(*sys.argv[1:]))
"""


def record(kind: str, id_: str, state: str, at: float, **more: object) -> Record:
    return Record(kind=kind, id=id_, state=state, created=at, updated=at, text="some words", **more)  # type: ignore[arg-type]


class Watched(SqliteStore):
    """Remembers how much was forgotten in each step."""

    def __init__(self, file: Path) -> None:
        super().__init__(file)
        self.steps: list[int] = []

    async def remove(self, kind: str, before: float, *, states: Sequence[str], limit: int) -> int:
        self.steps.append(await super().remove(kind, before, states=states, limit=limit))
        return self.steps[-1]

    async def forget_events(self, before: float, *, limit: int) -> int:
        self.steps.append(await super().forget_events(before, limit=limit))
        return self.steps[-1]


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    async with postgres.store_in(request.param, tmp_path / "state.db") as opened:
        yield opened


@pytest.mark.requirement("r:R99", "p:P6")
async def test_ended_things_and_events_are_forgotten_when_they_are_old_and_nothing_else_is(store: Store) -> None:
    clock = FakeClock()
    now = clock.now().timestamp()
    states = {kind: [*ended, *UNENDED.get(kind, [])] for kind, ended in ENDED.items()}
    for age, at in (("old", now - KEPT_S - 1), ("new", now - KEPT_S + 1)):
        made = [record(kind, f"{age} {state}", state, at) for kind in states for state in states[kind]]
        assert await store.commit(made, [NewEvent(type="e", at=at)])
    await store.commit([], [NewEvent(type="e", at=now - EVENTS_S - 1), NewEvent(type="e", at=now - EVENTS_S + 1)])
    swept = await Retention(store, clock).sweep()
    assert swept == SweepResult(records=sum(map(len, ENDED.values())), events=3, is_complete=True)
    for kind, all_states in states.items():
        left = {one.id for one in await store.find(kind, Query(), limit=100)}
        assert left == {f"new {state}" for state in all_states} | {f"old {state}" for state in UNENDED.get(kind, [])}
    assert await store.event_span() == (4, 4)
    assert await Retention(store, clock).sweep() == SweepResult(records=0, events=0, is_complete=True)
    sooner = await Retention(store, clock, kept_s=KEPT_S / 2).sweep()  # as an owner may set it
    assert sooner.records == sum(map(len, ENDED.values()))


@pytest.mark.requirement("p:P6")
async def test_a_state_that_is_too_large_loses_its_oldest_first(tmp_path: Path) -> None:
    clock, file = FakeClock(), tmp_path / "state.db"
    store = SqliteStore(file)
    now = clock.now().timestamp()
    for hours in range(100):
        body = {"filler": randbytes(10_000).hex()}
        assert await store.commit([record("result", f"{hours:02}", "kept", now - hours * 3600, body=body)])

    async def used() -> int:
        return measure_used_bytes(file)

    whole = await used()
    swept = await Retention(store, clock, used=used, max_bytes=whole // 2).sweep()
    assert 30 < swept.records < 70
    assert await used() <= whole // 2
    left = [one.id for one in await store.find("result", Query(), limit=200)]
    assert left == sorted(left)[: len(left)]
    await store.close()


@pytest.mark.requirement("state:size")
async def test_the_limit_holds_for_what_is_younger_than_an_hour_and_whole_results_go_before_calls(
    tmp_path: Path,
) -> None:
    clock, file = FakeClock(), tmp_path / "state.db"
    store = SqliteStore(file)
    now = clock.now().timestamp()
    for minutes in range(60):
        for kind, state, size in (("call", "success", 100), ("result", "kept", 10_000), ("call", "running", 100)):
            made = record(
                kind, f"{minutes:02} {state}", state, now - minutes * 60, body={"filler": randbytes(size).hex()}
            )
            assert await store.commit([made], [NewEvent(type="e", at=now - minutes * 60)])

    async def used() -> int:
        return measure_used_bytes(file)

    whole = await used()
    swept = await Retention(store, clock, used=used, max_bytes=whole // 2).sweep()
    assert (await used() <= whole // 2, swept.fits) == (True, True)
    assert await store.count("call", Query(states=("success",))) == 60
    left = [one.id for one in await store.find("result", Query(), limit=200)]
    assert left == [f"{minutes:02} kept" for minutes in range(len(left))]
    assert 0 < len(left) < 40
    swept = await Retention(store, clock, used=used, max_bytes=1).sweep()
    assert (swept.fits, swept.is_complete) == (False, True)
    counts = [await store.count(kind, Query()) for kind in ("result", "call")]
    assert counts == [1, 61], "what runs stays, and what ended at this very moment"
    await store.close()


@pytest.mark.requirement("state:size")
async def test_a_file_that_is_written_again_and_again_takes_little_room_in_the_state(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    words, written, content = Random(1), 0, ""
    async with Yard(load_config(tmp_path / "project", tmp_path / "home"), outside=HostOptions(outlives=True)) as yard:
        for _ in range(40):
            content = "\n".join(" ".join(f"word{words.randrange(3000)}" for _ in range(10)) for _ in range(300))
            written += len(content)
            envelope = await yard.call("Write", {"file_path": "a.txt", "content": content})
            assert envelope.status == "success"
        call = (await yard.state.journal.page(Query(), limit=1))[0]
        told = await yard.state.journal.get(call.id)
    assert told is not None
    assert told["arguments"] == {"file_path": "a.txt", "content": content}
    assert measure_used_bytes(tmp_path / "home/state.db") < 3 * written  # 8 times as much before bodies were compressed


@pytest.mark.requirement("p:P6")
async def test_one_sweep_takes_a_bounded_number_of_steps_and_says_that_there_is_more(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "MAX_STEPS", 3)
    monkeypatch.setattr(retention, "_PAGE", 2)
    await store.commit([record("result", str(n), "kept", 1.0) for n in range(9)])
    sweeper = Retention(store, FakeClock())
    assert await sweeper.sweep() == SweepResult(records=6, events=0, is_complete=False)
    assert await store.count("result", Query()) == 3


@pytest.mark.requirement("r:R99")
async def test_a_sweep_while_other_processes_write_causes_no_locked_database(tmp_path: Path) -> None:
    file = tmp_path / "state.db"
    store = Watched(file)
    for start in range(0, 8000, 1000):
        await store.commit([record("call", str(n), "success", 1.0) for n in range(start, start + 1000)])
        await store.commit([], [NewEvent(type="e", at=1.0)] * 1000)
    writers = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-c", WRITER, str(file), name, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for name in "ab"
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert await asyncio.wait_for(writer.stdout.readline(), 60) == b"ready\n"
    async with asyncio.timeout(120):
        swept = await Retention(store, FakeClock()).sweep()
        said = [await writer.communicate() for writer in writers]
    assert swept == SweepResult(records=8000, events=8000, is_complete=True)
    assert max(store.steps) <= 2000  # no step holds the lock of the file for long
    assert [(writer.returncode, err) for writer, (_, err) in zip(writers, said, strict=True)] == [(0, b"")] * 2
    assert await store.count("call", Query()) == 2 * 600
    assert (await store.event_span())[1] == 8000 + 2 * 600
    await store.close()
