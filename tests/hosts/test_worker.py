"""Entries of the queue that come twice, too late, or for nobody: a call still runs at most once."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import FakeClock, FakeTool
from toolyard.engine.clock import SystemClock
from toolyard.engine.journal import Unrecorded
from toolyard.engine.masking import Mask
from toolyard.engine.registry import Registry
from toolyard.engine.runner import Runner
from toolyard.hosts.remote_call import KIND, RemoteCalls, State, outcome_of
from toolyard.hosts.worker import Worker
from toolyard.protocol.call import ToolCall
from toolyard.protocol.failure import Failure
from toolyard.protocol.outcome import Result
from toolyard.protocol.store import Record
from toolyard.protocol.tool import Checkpoint, ToolSpec
from toolyard.storage.memory import MemoryStore
from toolyard.workspace.workspace import Workspace

pytestmark = pytest.mark.requirement("p:P2", "hosts:runner", "hosts:killed-worker")

CALL = ToolCall(id="call_1", tool="Fake", arguments={"text": "hi"})
SPEC = ToolSpec(name="Fake", description="", parameters={"type": "object"})


class Shop:
    """Hosts ``b`` and ``c`` run what ``a`` sends; ``gone`` are those nobody hears of."""

    def __init__(self, project: Path) -> None:
        self.store, self.runs = MemoryStore(), 0
        self.go, self.gone = asyncio.Event(), set[str]()
        self.workspace = Workspace(project)
        self.calls = {name: RemoteCalls(self.store, FakeClock(), host=name) for name in "abc"}
        self.b, self.c = (Worker(self.calls[name], self._runner(), self) for name in "bc")

    def alive(self, owner: str) -> bool:
        return owner not in self.gone

    async def is_gone(self, owner: str) -> bool:
        return owner in self.gone

    async def work(self, call: ToolCall, checkpoint: Checkpoint) -> Result:
        self.runs += 1
        await self.go.wait()
        return Result(data={}, text="Done.")

    async def record(self) -> Record:
        found = await self.store.get(KIND, CALL.id)
        assert found is not None
        return found

    def _runner(self) -> Runner:
        tools = Registry([FakeTool(self.work)])
        return Runner(tools, root="/", clock=SystemClock(), journal=Unrecorded(), mask=Mask())


@pytest.fixture
async def shop(project: Path) -> Shop:
    made = Shop(project)
    await made.calls["a"].submit(CALL, SPEC)
    return made


@pytest.fixture(autouse=True)
def closed(shop: Shop) -> Iterator[None]:
    yield
    shop.workspace.close()


async def test_entries_that_come_again_to_the_same_and_to_other_hosts_run_the_call_once(shop: Shop) -> None:
    entries = [asyncio.create_task(worker.run(CALL.id)) for worker in (shop.b, shop.b, shop.c, shop.b, shop.c)]
    while not shop.runs:  # noqa: ASYNC110
        await asyncio.sleep(0)
    await shop.c.run(CALL.id)  # while it runs: its owner lives
    await shop.b.run(CALL.id)
    shop.go.set()
    await asyncio.gather(*entries)
    await shop.c.run(CALL.id)  # after it has ended
    assert shop.runs == 1
    assert outcome_of(await shop.record()).envelope.text == "Done."


async def test_an_entry_of_a_host_that_is_gone_ends_its_call_as_interrupted(shop: Shop) -> None:
    running = asyncio.create_task(shop.b.run(CALL.id))
    while not shop.runs:  # noqa: ASYNC110
        await asyncio.sleep(0)
    shop.gone.add("b")
    await shop.c.run(CALL.id)
    assert shop.runs == 1
    with pytest.raises(Failure, match="was cut off"):
        outcome_of(await shop.record())
    shop.go.set()
    await running  # it was not gone after all: its word comes too late
    assert "failure" in (await shop.record()).body


async def test_a_call_whose_sender_is_gone_does_not_begin(shop: Shop) -> None:
    shop.gone.add("a")
    await shop.b.run(CALL.id)
    assert shop.runs == 0
    assert (await shop.record()).state == State.DONE


async def test_a_call_that_is_stopped_before_its_host_knows_that_it_has_claimed_it_does_not_run(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    claimed, go_on, commit = asyncio.Event(), asyncio.Event(), shop.store.commit

    async def held(*arguments: Any, **more: Any) -> bool:
        committed = await commit(*arguments, **more)
        claimed.set()
        await go_on.wait()
        return committed

    with monkeypatch.context() as patched:
        patched.setattr(shop.store, "commit", held)
        running = asyncio.create_task(shop.b.run(CALL.id))
        await asyncio.wait_for(claimed.wait(), 60)
    await shop.calls["a"].stop(CALL.id)
    shop.b.cancel(CALL.id)  # as the mail does
    go_on.set()
    shop.go.set()
    await asyncio.wait_for(running, 60)
    assert shop.runs == 0
    with pytest.raises(Failure, match="cancelled before it began"):
        outcome_of(await shop.record())


async def test_a_call_that_a_host_has_forgotten_to_be_its_own_is_interrupted_not_repeated(shop: Shop) -> None:
    assert await shop.calls["b"].claim(await shop.record())  # and a crash of the database took back how it ended
    await shop.b.run(CALL.id)
    assert shop.runs == 0
    assert "failure" in (await shop.record()).body


async def test_an_entry_without_a_call_is_passed_over(shop: Shop) -> None:
    await shop.b.run("call_unknown")
    assert shop.runs == 0
