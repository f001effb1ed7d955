"""With a cluster_key only calls that a host has signed run, once, and only results that a host has signed count."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from tests import postgres
from tests.fakes import FakeClock, FakeTool
from tests.hosts.yards import host, plugin, sees
from tests.waiting import wait_until
from toolyard.engine.clock import SystemClock
from toolyard.engine.registry import Registry
from toolyard.engine.runner import Runner
from toolyard.errors import StorageError
from toolyard.hosts.cluster_key import ClusterSigner
from toolyard.hosts.remote_calls import REFUSED, RemoteCalls
from toolyard.hosts.worker import Claims, Worker
from toolyard.protocol.envelope import Failure, Reason
from toolyard.protocol.mask import Mask
from toolyard.protocol.records.remote_call import REMOTE_CALL, RemoteCall, RemoteCallState, call_to_text
from toolyard.protocol.store import Event
from toolyard.protocol.tool import Checkpoint, Result, ToolCall, ToolSpec
from toolyard.storage.memory_store import MemoryStore
from toolyard.storage.secret_key import ClusterKey

pytestmark = pytest.mark.requirement("trust:signed-calls")

KEY = "a-cluster-key-of-32-characters-or-more"
CALL = ToolCall(id="call_1", tool="Fake", arguments={"text": "hi"}, caller="key:owner")
SPEC = ToolSpec(name="Fake", description="", parameters={"type": "object"})


class Cluster:
    """Host ``a`` sends calls, host ``b`` runs them; ``outsider`` can write to the database, and has no key."""

    def __init__(self) -> None:
        self.store, self.runs = MemoryStore(), 0
        signer = ClusterSigner(ClusterKey(KEY).signing)
        self.a, self.b = (RemoteCalls(self.store, FakeClock(), host=name, signer=signer) for name in "ab")
        self.outsider = RemoteCalls(self.store, FakeClock(), host="a")
        claims = Claims(self.b, self, FakeClock().monotonic)
        runner = Runner(Registry([FakeTool(self.work)]), root="/", clock=SystemClock(), journal=claims, mask=Mask())
        self.worker = Worker(self.b, claims, runner, self)

    def is_alive(self, owner: str) -> bool:
        return True

    async def is_gone(self, owner: str) -> bool:
        return False

    def is_certain(self) -> bool:
        return True

    def latest_store_time(self) -> float:
        return 0.0

    async def confirm(self, owner: str) -> None:
        pass

    async def work(self, call: ToolCall, checkpoint: Checkpoint) -> Result:
        self.runs += 1
        return Result(data={}, text="Done.")

    async def get(self) -> RemoteCall:
        call = await self.a.get(CALL.id)
        assert call is not None
        return call

    async def write(self, call: RemoteCall) -> None:
        """Write a record as somebody does who has only the database."""
        stored = await self.store.get(REMOTE_CALL, call.id)
        record = replace(call, version=stored.version if stored else 0).to_record()
        assert await self.store.commit([record])

    async def list_refusals(self) -> list[Event]:
        return [event for event in await self.store.events(0, limit=100) if event.type == REFUSED]


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


async def test_a_signed_call_runs_and_its_signed_result_is_taken(cluster: Cluster) -> None:
    await cluster.a.submit(CALL, SPEC, due=60.0)
    await cluster.worker.run(CALL.id)
    ended = await cluster.get()
    cluster.a.require_valid_end(ended)
    assert (ended.to_outcome().envelope.text, cluster.runs) == ("Done.", 1)


async def test_an_unsigned_call_is_refused_with_an_event_and_its_sender_learns_why(cluster: Cluster) -> None:
    await cluster.outsider.submit(CALL, SPEC, due=60.0)
    await cluster.worker.run(CALL.id)
    with pytest.raises(Failure, match="not signed with the cluster_key") as refused:
        (await cluster.get()).to_outcome()
    assert (refused.value.reason, cluster.runs) == (Reason.DENIED, 0)
    (event,) = await cluster.list_refusals()
    assert (event.data["id"], event.data["tool"], event.data["host"]) == (CALL.id, "Fake", "b")


@pytest.mark.parametrize(
    "change",
    [
        {"call_text": call_to_text(replace(CALL, arguments={"text": "rm -rf"}))},
        {"call_text": call_to_text(replace(CALL, caller="key:other"))},
        {"tool": "Other"},
        {"caller": "key:other"},
        {"sender": "a/2"},
        {"due": 10.0**12},
        {"created": 1.0},
        {"is_idempotent": True},
        {"signature": ""},
        {"signature": "0" * 64},
    ],
    ids="-".join,
)
async def test_a_call_that_was_changed_after_it_was_signed_is_refused(cluster: Cluster, change: dict[str, Any]) -> None:
    await cluster.a.submit(CALL, SPEC, due=60.0)
    await cluster.write(replace(await cluster.get(), **change))
    await cluster.worker.run(CALL.id)
    assert (cluster.runs, len(await cluster.list_refusals())) == (0, 1)


async def test_a_call_of_a_host_with_another_key_is_refused(cluster: Cluster) -> None:
    other = RemoteCalls(cluster.store, FakeClock(), host="a", signer=ClusterSigner(ClusterKey("other" * 8).signing))
    await other.submit(CALL, SPEC, due=60.0)
    await cluster.worker.run(CALL.id)
    assert (cluster.runs, len(await cluster.list_refusals())) == (0, 1)


async def test_a_signed_call_that_is_put_back_into_the_queue_does_not_run_again(cluster: Cluster) -> None:
    await cluster.a.submit(CALL, SPEC, due=60.0)
    signed = await cluster.get()
    await cluster.worker.run(CALL.id)
    await cluster.write(signed)
    await cluster.worker.run(CALL.id)
    assert cluster.runs == 1
    (event,) = await cluster.list_refusals()
    assert "has run here before" in str(event.data["reason"])


async def test_a_result_that_no_host_has_signed_is_not_used(cluster: Cluster) -> None:
    await cluster.a.submit(CALL, SPEC, due=60.0)
    await cluster.worker.run(CALL.id)
    ended = await cluster.get()
    for changed in (
        replace(ended, outcome_text=(ended.outcome_text or "").replace("Done.", "Lies.")),
        replace(ended, end_signature=""),
        replace(ended, outcome_text=None, failure={"reason": "DENIED", "message": "no", "hint": ""}),
    ):
        with pytest.raises(Failure, match="its result is not signed"):
            cluster.a.require_valid_end(changed)


@pytest.fixture
async def database() -> AsyncIterator[str]:
    async with postgres.database(new=True) as url:
        yield url


async def test_hosts_with_one_key_run_calls_for_each_other_and_refuse_what_somebody_else_wrote(
    database: str, tmp_path: Path
) -> None:
    plugin(tmp_path / "b", "Echo")
    async with (
        host(tmp_path / "b", database, cluster_key=KEY) as b,
        host(tmp_path / "a", database, cluster_key=KEY) as a,
    ):
        await sees(a.yard, "Echo")
        envelope = await a.yard.call("Echo", {"text": "hello"})
        assert envelope.data["heard"] == {"text": "hello"}
        forged = RemoteCall(
            id="call_forged", state=RemoteCallState.QUEUED, created=1.0, updated=1.0, caller="key:owner", tool="Echo",
            sender=a.yard.boot.name, due=2.0**40, call_text=call_to_text(replace(CALL, id="call_forged", tool="Echo")),
        ).to_record()  # fmt: skip
        db = await asyncpg.connect(database)
        await db.execute(
            """INSERT INTO toolyard.records
            (kind, id, state, version, created, updated, caller, tool, key, owner, due, text, body)
            VALUES ($1, $2, $3, 1, 1, 1, $4, $5, $6, '', $7, '', $8)""",
            *(forged.kind, forged.id, forged.state, forged.caller, forged.tool, forged.key, forged.due),
            json.dumps(forged.body),
        )
        await db.close()
        await a._queue.put("Echo", forged.id)

        async def list_refused() -> list[Event]:
            return [event for event in await b.yard.state.store.events(0, limit=1000) if event.type == REFUSED]

        refused: list[Event] = await wait_until(list_refused)
        (event,) = refused
        assert (event.data["id"], event.data["tool"]) == ("call_forged", "Echo")


async def test_a_host_without_the_key_or_with_another_one_does_not_start_while_others_run(
    database: str, tmp_path: Path
) -> None:
    async with host(tmp_path / "a", database, cluster_key=KEY):
        with pytest.raises(StorageError, match="this one has none: set the same cluster_key here"):
            async with host(tmp_path / "b", database):
                pass
        with pytest.raises(StorageError, match="another cluster_key: set the same one on every host"):
            async with host(tmp_path / "b", database, cluster_key="other" * 8):
                pass
    async with host(tmp_path / "b", database, cluster_key="other" * 8):  # nobody else runs: it is changed
        with pytest.raises(StorageError, match="another cluster_key"):
            async with host(tmp_path / "a", database, cluster_key=KEY):
                pass
