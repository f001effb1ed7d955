"""The journal where other hosts may end a call: its caller gets the end that is stored."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from tests.fakes import FakeClock, FakeTool
from toolyard.engine.clock import SystemClock
from toolyard.engine.history.journal import Journal
from toolyard.engine.registry import Registry
from toolyard.engine.runner import Runner
from toolyard.errors import StorageError, StorageInDoubt
from toolyard.protocol.envelope import Envelope, Failure, Reason, Status
from toolyard.protocol.mask import Mask
from toolyard.protocol.records.call_record import CALL
from toolyard.protocol.store import NewEvent, Record
from toolyard.protocol.tool import Checkpoint, Result, Risk, ToolCall
from toolyard.storage.memory_store import MemoryStore

pytestmark = pytest.mark.requirement("hosts:one-story")

CLICK = ToolCall(id="call_1", tool="Fake", arguments={"text": "hi"})


class FrozenStore(MemoryStore):
    """Does not answer while it is ``frozen``; ``keeps``: what it was asked to commit is kept all the same.

    ``thaws``: it answers again after the next commit.
    """

    def __init__(self) -> None:
        super().__init__()
        self.frozen = self.keeps = self.thaws = False

    async def commit(self, changes: Sequence[Record], events: Sequence[NewEvent] = (), **more: Any) -> bool:
        if self.frozen and not self.keeps:
            raise StorageError("db: the server does not answer")
        done = await super().commit(changes, events, **more)
        if self.frozen:
            self.frozen = not self.thaws
            raise StorageInDoubt("db: the server does not answer; whether the last change was kept is not known")
        return done


class Host:
    """One of several hosts on one store; its tool does ``work``."""

    def __init__(self) -> None:
        self.store, self.runs = FrozenStore(), 0
        self.owned = True
        self.journal, self.other = (Journal(self.store, FakeClock(), owner=name, mask=Mask()) for name in "ab")
        self.journal.confirm_owner = self.confirm
        self.runner = Runner(
            Registry([FakeTool(self.work, risk=Risk.WRITE)]),
            root="/",
            clock=SystemClock(),
            journal=self.journal,
            mask=Mask(),
        )

    async def confirm(self, owner: str) -> None:
        assert owner == "a"
        if not self.owned:
            raise Failure(Reason.INTERRUPTED, "this host was taken for dead")

    async def work(self, call: ToolCall, checkpoint: Checkpoint) -> Result:
        self.runs += 1
        await self.during()
        return Result(data={"done": True}, text="Done.")

    async def during(self) -> None:
        """What happens while the tool runs."""

    async def call(self) -> Envelope:
        return (await self.runner.settle(CLICK)).envelope

    async def stored_call(self) -> Record:
        record = await self.store.get(CALL, CLICK.id)
        assert record is not None
        return record


async def test_a_call_that_another_host_has_interrupted_is_told_as_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    host = Host()

    async def lost() -> None:
        assert await host.other.settle_orphans(lambda owner: owner != "a") == 1

    monkeypatch.setattr(host, "during", lost)
    envelope, kept = await host.call(), await host.stored_call()
    assert (envelope.status, envelope.context["reason"], envelope.data) == (Status.ERROR, "INTERRUPTED", {})
    assert (kept.state, kept.body["text"]) == ("interrupted", envelope.text)
    events = [event.type for event in await host.store.events(0, limit=10)]
    assert events == ["call.started", "call.finished"]


@pytest.mark.requirement("hosts:fencing")
async def test_a_call_of_a_host_that_was_taken_for_dead_does_not_start() -> None:
    host = Host()
    host.owned = False
    envelope = await host.call()
    assert host.runs == 0
    assert envelope.context["reason"] == "INTERRUPTED"
    assert (await host.stored_call()).state == "interrupted"


@pytest.mark.parametrize("comes_first", ["the host itself", "another host"])
async def test_an_end_that_the_database_does_not_take_is_told_as_such_and_kept_as_told(
    monkeypatch: pytest.MonkeyPatch, comes_first: str
) -> None:
    host = Host()

    async def freeze() -> None:
        host.store.frozen = True

    monkeypatch.setattr(host, "during", freeze)
    envelope = await host.call()
    assert envelope.context["reason"] == "INTERRUPTED"
    assert "the database does not take its end: db: the server does not answer" in envelope.text
    host.store.frozen = False
    if comes_first == "another host":
        assert await host.other.settle_orphans(lambda owner: owner != "a") == 1
    await host.journal.catch_up()
    assert (await host.stored_call()).state == "interrupted"
    finished = [event for event in await host.store.events(0, limit=10) if event.type == "call.finished"]
    assert len(finished) == 1


async def test_an_end_of_which_nobody_knows_whether_it_was_kept_is_looked_for_before_it_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    host = Host()

    async def freeze() -> None:
        host.store.frozen = host.store.keeps = host.store.thaws = True

    monkeypatch.setattr(host, "during", freeze)
    envelope = await host.call()
    assert (envelope.status, (await host.stored_call()).state) == (Status.SUCCESS, "success")
    finished = [event for event in await host.store.events(0, limit=10) if event.type == "call.finished"]
    assert len(finished) == 1


async def test_a_call_that_may_be_recorded_although_it_was_refused_does_not_stay_open() -> None:
    host = Host()
    host.store.frozen = host.store.keeps = True
    with pytest.raises(StorageError, match="does not answer"):
        await host.call()
    assert (await host.stored_call()).state == "running"
    await host.journal.catch_up()  # it still does not answer
    host.store.frozen = False
    await asyncio.gather(*(host.journal.catch_up() for _ in range(3)))
    assert host.runs == 0
    assert (await host.stored_call()).state == "interrupted"
    assert "was not run" in str((await host.stored_call()).body["text"])


@pytest.mark.parametrize(("when", "reason"), [("before", "START_FAILED"), ("while", "INTERRUPTED")])
async def test_a_database_that_does_not_answer_is_no_bug(
    monkeypatch: pytest.MonkeyPatch, when: str, reason: str
) -> None:
    host = Host()

    async def away(*_: object) -> Any:
        raise StorageError("db: the server does not answer")

    if when == "before":
        monkeypatch.setattr(Registry, "get", lambda *_: (_ for _ in ()).throw(StorageError("db: no answer")))
    else:
        monkeypatch.setattr(host, "during", away)
    envelope = await host.call()
    assert envelope.context["reason"] == reason
    assert "bug" not in envelope.text
    assert "the state c" in envelope.text
    assert (await host.stored_call()).state == ("error" if reason == "START_FAILED" else "interrupted")
