"""Entries of the queue that come twice, too late, or for nobody: a call still runs at most once."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import FakeClock, FakeTool
from tests.waiting import wait_for_value, wait_until
from toolyard.engine.clock import SystemClock
from toolyard.engine.registry import Registry
from toolyard.engine.runner import Runner
from toolyard.hosts.remote_calls import RemoteCalls
from toolyard.hosts.worker import Claims, Worker
from toolyard.protocol.envelope import Failure, Reason
from toolyard.protocol.mask import Mask
from toolyard.protocol.records.remote_call import REMOTE_CALL, RemoteCall, RemoteCallState
from toolyard.protocol.tool import Checkpoint, Result, ToolCall, ToolSpec, confirm_start
from toolyard.storage.memory_store import MemoryStore
from toolyard.workspace.workspace import Workspace

pytestmark = pytest.mark.requirement("p:P2", "hosts:runner", "hosts:killed-worker")

CALL = ToolCall(id="call_1", tool="Fake", arguments={"text": "hi"})
SPEC = ToolSpec(name="Fake", description="", parameters={"type": "object"})


class Shop:
    """Hosts ``b`` and ``c`` run what ``a`` sends; ``gone`` are those nobody hears of."""

    def __init__(self, project: Path) -> None:
        self.store, self.runs = MemoryStore(), 0
        self.go, self.gone = asyncio.Event(), set[str]()
        self.ready = asyncio.Event()  # when the tool is about to give the call to its process
        self.ready.set()
        self.workspace = Workspace(project)
        self.calls = {name: RemoteCalls(self.store, FakeClock(), host=name) for name in "abc"}
        self.clock, self.store_time = FakeClock(), 0.0  # of the hosts, and of the store
        self.b, self.c = (self._worker(self.calls[name]) for name in "bc")

    def is_alive(self, owner: str) -> bool:
        return owner not in self.gone

    async def is_gone(self, owner: str) -> bool:
        return owner in self.gone

    def is_certain(self) -> bool:
        return True

    def latest_store_time(self) -> float:
        return self.store_time

    async def confirm(self, owner: str) -> None:
        """As a lease does."""
        if owner in self.gone:
            raise Failure(Reason.INTERRUPTED, "this host was taken for dead")

    async def work(self, call: ToolCall, checkpoint: Checkpoint) -> Result:
        await self.ready.wait()
        await confirm_start(checkpoint)
        self.runs += 1
        await self.go.wait()
        return Result(data={}, text="Done.")

    async def record(self) -> RemoteCall:
        found = await self.store.get(REMOTE_CALL, CALL.id)
        assert found is not None
        return RemoteCall.from_record(found)

    def _worker(self, calls: RemoteCalls) -> Worker:
        claims = Claims(calls, self, self.clock.monotonic)
        tools = Registry([FakeTool(self.work)])
        runner = Runner(tools, root="/", clock=SystemClock(), journal=claims, mask=Mask())
        return Worker(calls, claims, runner, self)

    async def begin(self, worker: Worker) -> "asyncio.Task[None]":
        """Let a worker claim the call; its tool waits until it is ``ready``."""
        self.ready.clear()
        running = asyncio.create_task(worker.run(CALL.id))
        await wait_for_value(self.record, lambda record: record.state == RemoteCallState.RUNNING)
        return running


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
    await wait_until(lambda: shop.runs)
    await shop.c.run(CALL.id)  # while it runs: its owner lives
    await shop.b.run(CALL.id)
    shop.go.set()
    await asyncio.gather(*entries)
    await shop.c.run(CALL.id)  # after it has ended
    assert shop.runs == 1
    assert (await shop.record()).to_outcome().envelope.text == "Done."


async def test_an_entry_of_a_host_that_is_gone_ends_its_call_as_interrupted(shop: Shop) -> None:
    running = asyncio.create_task(shop.b.run(CALL.id))
    await wait_until(lambda: shop.runs)
    shop.gone.add("b")
    await shop.c.run(CALL.id)
    assert shop.runs == 1
    with pytest.raises(Failure, match="was cut off"):
        (await shop.record()).to_outcome()
    shop.go.set()
    await running  # it was not gone after all: its word comes too late
    assert (await shop.record()).failure is not None


async def test_a_call_whose_sender_is_gone_does_not_begin(shop: Shop) -> None:
    shop.gone.add("a")
    await shop.b.run(CALL.id)
    assert shop.runs == 0
    assert (await shop.record()).state == RemoteCallState.DONE


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
        (await shop.record()).to_outcome()


async def test_a_call_that_a_host_has_forgotten_to_be_its_own_is_interrupted_not_repeated(shop: Shop) -> None:
    assert await shop.calls["b"].claim(await shop.record())  # and a crash of the database took back how it ended
    await shop.b.run(CALL.id)
    assert shop.runs == 0
    assert (await shop.record()).failure is not None


async def test_an_entry_without_a_call_is_passed_over(shop: Shop) -> None:
    await shop.b.run("call_unknown")
    assert shop.runs == 0


@pytest.mark.requirement("hosts:fencing")
async def test_a_call_that_another_host_has_ended_meanwhile_gets_no_input(shop: Shop) -> None:
    running = await shop.begin(shop.b)
    shop.clock.advance(14)  # its process stood still
    assert await shop.calls["c"].interrupt(await shop.record())
    shop.ready.set()
    await asyncio.wait_for(running, 60)
    assert shop.runs == 0
    assert (await shop.record()).failure is not None


@pytest.mark.requirement("hosts:fencing")
async def test_a_call_that_was_claimed_once_more_meanwhile_runs_by_its_newest_claim_alone(shop: Shop) -> None:
    record = await shop.record()
    await shop.store.commit([replace(record, is_idempotent=True).to_record()])
    running = await shop.begin(shop.b)
    shop.clock.advance(14)
    shop.gone.add("b")
    again = asyncio.create_task(shop.c.run(CALL.id))
    await wait_for_value(shop.record, lambda record: record.owner == "c")
    assert (await shop.record()).runs == 2  # the token has grown
    shop.ready.set()
    await asyncio.wait_for(running, 60)
    shop.go.set()
    await asyncio.wait_for(again, 60)
    assert shop.runs == 1
    assert (await shop.record()).to_outcome().envelope.text == "Done."


@pytest.mark.requirement("hosts:fencing")
async def test_a_call_whose_sender_gave_up_while_its_host_stood_still_gets_no_input(shop: Shop) -> None:
    running = await shop.begin(shop.b)
    shop.clock.advance(14)
    await shop.calls["a"].stop(CALL.id)  # the signal is not heard
    shop.ready.set()
    await asyncio.wait_for(running, 60)
    assert shop.runs == 0


@pytest.mark.requirement("hosts:fencing", "p:P3")
async def test_a_call_whose_time_is_over_by_the_clock_of_the_store_does_not_begin(shop: Shop) -> None:
    late = replace(CALL, id="call_2")
    await shop.calls["a"].submit(late, SPEC, due=100.0)
    shop.store_time = 100.0
    await shop.b.run(late.id)
    assert shop.runs == 0
    record = await shop.store.get(REMOTE_CALL, late.id)
    assert record is not None
    assert record.state == RemoteCallState.DONE


@pytest.mark.requirement("hosts:fencing")
async def test_a_call_that_its_sender_stopped_is_cancelled_although_nobody_heard_of_it(shop: Shop) -> None:
    running = asyncio.create_task(shop.b.run(CALL.id))
    await wait_until(lambda: shop.runs)
    await shop.calls["a"].stop(CALL.id)
    await shop.b.cancel_stopped()
    await asyncio.wait_for(running, 60)
    assert (await shop.record()).to_outcome().envelope.context["reason"] == "CANCELLED"
