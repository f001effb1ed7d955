"""A call on its way: who may run it, and which end counts."""

import asyncio

import pytest

from tests.fakes import FakeClock
from toolyard.hosts.remote_calls import RemoteCalls
from toolyard.protocol.envelope import Envelope, Failure, Reason, Status
from toolyard.protocol.records.remote_call import REMOTE_CALL, RemoteCall, RemoteCallState
from toolyard.protocol.store import Signal
from toolyard.protocol.tool import Outcome, ToolCall, ToolSpec
from toolyard.storage.memory_store import MemoryStore

pytestmark = pytest.mark.requirement("p:P2", "p:P8", "hosts:killed-worker")

CALL = ToolCall(id="call_1", tool="Echo", arguments={"text": "hi", "big": 2**100})


def spec(**more: bool) -> ToolSpec:
    return ToolSpec(name="Echo", description="Echoes.", parameters={"type": "object"}, **more)  # type: ignore[arg-type]


def outcome(text: str = "Done.") -> Outcome:
    envelope = Envelope(
        status=Status.SUCCESS, data={}, text=text, stats={"time_ms": 1.0}, context={"cwd": ".", "params_input": {}}
    )
    return Outcome(envelope=envelope, root="/project", arguments={})


class Hosts:
    """Three hosts on one store: ``a`` sends, ``b`` and ``c`` run."""

    def __init__(self) -> None:
        self.store, self.clock, self.signals = MemoryStore(), FakeClock(), list[Signal | None]()
        self.store.subscribe(self.signals.append)
        self.a, self.b, self.c = (RemoteCalls(self.store, self.clock, host=name) for name in "abc")

    async def record(self) -> RemoteCall:
        found = await self.store.get(REMOTE_CALL, CALL.id)
        assert found is not None
        return RemoteCall.from_record(found)


@pytest.fixture
async def hosts() -> Hosts:
    return Hosts()


async def test_of_all_who_are_told_about_a_call_exactly_one_runs_it(hosts: Hosts) -> None:
    await hosts.a.submit(CALL, spec())
    seen = await hosts.record()
    claims = await asyncio.gather(*(one.claim(seen) for one in (hosts.b, hosts.c, hosts.b, hosts.c)))
    assert [claim is not None for claim in claims].count(True) == 1
    claimed = next(claim for claim in claims if claim)
    assert claimed.to_call() == CALL
    assert await hosts.c.claim(await hosts.record()) is None


async def test_the_outcome_reaches_the_sender_and_the_arguments_are_not_kept(hosts: Hosts) -> None:
    await hosts.a.submit(CALL, spec())
    claimed = await hosts.b.claim(await hosts.record())
    assert claimed is not None
    assert await hosts.b.finish(claimed, outcome())
    done = await hosts.record()
    assert done.to_outcome() == outcome()
    assert "hi" not in str(done)
    assert hosts.signals == [Signal("remote.done", CALL.id)]
    assert await hosts.store.events(0, limit=10) == []  # no number that a client would miss


async def test_a_call_whose_host_is_gone_is_interrupted_and_a_late_outcome_changes_nothing(hosts: Hosts) -> None:
    await hosts.a.submit(CALL, spec())
    claimed = await hosts.b.claim(await hosts.record())
    assert claimed is not None
    assert not claimed.can_run_again
    assert await hosts.c.claim(claimed, abandoned=True) is None
    assert await hosts.c.interrupt(claimed)
    assert not await hosts.a.interrupt(claimed)
    assert not await hosts.b.finish(claimed, outcome())
    with pytest.raises(Failure, match="was cut off while it ran on b: what it had done by then is not known") as caught:
        (await hosts.record()).to_outcome()
    assert caught.value.reason is Reason.INTERRUPTED
    assert hosts.signals == [Signal("remote.done", CALL.id)]


async def test_an_idempotent_call_is_run_once_more_and_not_a_third_time(hosts: Hosts) -> None:
    await hosts.a.submit(CALL, spec(idempotent=True))
    first = await hosts.b.claim(await hosts.record())
    assert first is not None
    assert await hosts.c.claim(first) is None  # its owner lives
    second = await hosts.c.claim(first, abandoned=True)
    assert second is not None
    assert not await hosts.b.finish(first, outcome("the first run"))
    assert not second.can_run_again
    assert await hosts.b.claim(second, abandoned=True) is None
    assert await hosts.c.finish(second, outcome("the second run"))
    assert (await hosts.record()).to_outcome().envelope.text == "the second run"


async def test_a_call_that_waits_is_taken_back_and_never_begins(hosts: Hosts) -> None:
    await hosts.a.submit(CALL, spec())
    seen = await hosts.record()
    stopped = await hosts.a.stop(CALL.id)
    assert stopped is not None
    assert stopped.state == RemoteCallState.DONE
    assert await hosts.b.claim(seen) is None


async def test_the_owner_of_a_running_call_is_asked_to_stop_and_its_word_still_counts(hosts: Hosts) -> None:
    await hosts.a.submit(CALL, spec(idempotent=True))
    claimed = await hosts.b.claim(await hosts.record())
    assert claimed is not None
    await hosts.a.stop(CALL.id)
    await hosts.a.stop(CALL.id)
    assert hosts.signals == [Signal("remote.stop", CALL.id)]
    assert not (await hosts.record()).can_run_again
    assert await hosts.b.finish(claimed, outcome("after all"))
    assert (await hosts.record()).to_outcome().envelope.text == "after all"


async def test_two_calls_of_one_id_are_one(hosts: Hosts) -> None:
    await hosts.a.submit(CALL, spec())
    with pytest.raises(Failure, match="was sent before"):
        await hosts.b.submit(CALL, spec())


async def test_ended_calls_are_forgotten_and_open_ones_are_kept(hosts: Hosts) -> None:
    await hosts.a.submit(CALL, spec())
    hosts.clock.advance(3600)
    await hosts.a.remove_old_records()
    await hosts.a.stop(CALL.id)
    hosts.clock.advance(3600)
    await hosts.a.remove_old_records()
    assert await hosts.store.get(REMOTE_CALL, CALL.id) is None
