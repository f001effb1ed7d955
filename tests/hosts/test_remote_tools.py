"""A sender whose database is away for a while: it tells no end that it could not make sure of."""

import asyncio
from typing import cast

import pytest

from tests.fakes import FakeClock
from toolyard.engine.ownership import ProcessIdentity
from toolyard.errors import StorageError
from toolyard.hosts import remote_tools
from toolyard.hosts.directory import Directory
from toolyard.hosts.lease import HostLease
from toolyard.hosts.queue import Queue
from toolyard.hosts.remote_calls import RemoteCalls
from toolyard.hosts.remote_tools import RemoteTools, SignalRouter
from toolyard.protocol.envelope import Envelope, Status
from toolyard.protocol.records.remote_call import REMOTE_CALL, RemoteCall, RemoteCallState
from toolyard.protocol.store import Record
from toolyard.protocol.tool import Outcome, ToolCall, ToolSpec
from toolyard.storage.memory_store import MemoryLeases, MemoryStore

pytestmark = pytest.mark.requirement("hosts:fencing", "p:P3")

CALL = ToolCall(id="call_1", tool="Far", arguments={})
SPEC = ToolSpec(name="Far", description="", parameters={"type": "object"})
DONE = Outcome(
    envelope=Envelope(
        status=Status.SUCCESS, data={}, text="Done.", stats={"time_ms": 1.0}, context={"cwd": ".", "params_input": {}}
    ),
    root="/",
)


class AwayStore(MemoryStore):
    """Fails so many times when a call on its way is read."""

    def __init__(self) -> None:
        super().__init__()
        self.failures = 0

    async def get(self, kind: str, id: str) -> Record | None:  # noqa: A002
        if kind == REMOTE_CALL and self.failures:
            self.failures -= 1
            raise StorageError("db: the server does not answer")
        return await super().get(kind, id)


class Sender:
    """Host ``a`` sends to ``b``; the queue is away when ``is_queue_away``."""

    def __init__(self) -> None:
        self.store, self.clock = AwayStore(), FakeClock()
        self.a, self.b = (RemoteCalls(self.store, self.clock, host=name) for name in "ab")
        leases, me = MemoryLeases(self.store, self.clock.monotonic), ProcessIdentity("a", "a")
        directory = Directory(self.store, leases, self.clock, me, HostLease(leases, "a"))
        mail = SignalRouter(self.store, stop=lambda _: None, moved=lambda: None, missed=lambda: None)
        self.is_queue_away, self.sent = False, asyncio.Event()
        here = frozenset({"Far"})
        queue = cast("Queue", self)
        self.tools = RemoteTools(
            directory, self.a, queue, mail, self.clock, lambda: here, lambda *_: None, self.clock.monotonic
        )

    async def put(self, tool: str, call_id: str) -> None:
        """As the queue does."""
        self.sent.set()
        if self.is_queue_away:
            raise StorageError("db: the server does not answer")


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_tools, "_AWAY_S", 0.0)


async def test_a_sender_waits_for_the_end_of_its_call_while_the_database_is_away() -> None:
    sender = Sender()
    running = asyncio.create_task(sender.tools.run(CALL, SPEC))
    await asyncio.wait_for(sender.sent.wait(), 60)
    record = await sender.store.get(REMOTE_CALL, CALL.id)
    assert record is not None
    assert record.due == sender.clock.monotonic() + SPEC.timeout_s
    claimed = await sender.b.claim(RemoteCall.from_record(record))
    assert claimed is not None
    sender.store.failures = 3
    assert await sender.b.finish(claimed, DONE)
    assert (await asyncio.wait_for(running, 60)).envelope.text == "Done."
    assert sender.store.failures == 0


async def test_a_call_that_may_be_in_the_queue_is_taken_back_before_its_end_is_told() -> None:
    sender = Sender()
    sender.is_queue_away, sender.store.failures = True, 3
    with pytest.raises(StorageError):
        await asyncio.wait_for(sender.tools.run(CALL, SPEC), 60)
    assert sender.store.failures == 0
    record = await sender.store.get(REMOTE_CALL, CALL.id)
    assert record is not None
    assert record.state == RemoteCallState.DONE
