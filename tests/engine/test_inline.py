"""Inline runs: calls that wait for nothing are settled in one thread; others continue on the event loop."""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.fakes import FakeClock, FakeTool, ListJournal, says
from tests.waiting import run_loop_once
from toolyard.engine.inline import Ended, InlineRun, advance, go_to_event_loop, is_on_event_loop
from toolyard.engine.journal import Journal
from toolyard.engine.masking import Mask
from toolyard.engine.registry import Registry
from toolyard.engine.runner import Runner
from toolyard.errors import StorageError
from toolyard.protocol.call import Origin, ToolCall
from toolyard.protocol.envelope import ErrorCode, Status
from toolyard.protocol.outcome import Outcome, Result
from toolyard.protocol.store import NewEvent, Query, Record
from toolyard.protocol.tool import Checkpoint, ToolSpec
from toolyard.storage.sqlite import SqliteStore
from toolyard.tools.thread import in_thread

pytestmark = pytest.mark.requirement("runner:one-way")
WAIT_S = 60.0
DONE = Result(data={}, text="Done.")


@dataclass
class Threads(ListJournal):
    """Notes the threads in which it is recorded."""

    threads: set[int] = field(default_factory=set)

    async def record_start(self, call: ToolCall, *, deferred: bool = False) -> None:
        self.threads.add(threading.get_ident())
        await super().record_start(call, deferred=deferred)

    async def record_end(self, call: ToolCall, outcome: Outcome) -> Outcome | None:
        self.threads.add(threading.get_ident())
        return await super().record_end(call, outcome)


def runner_of(
    project: Path, journal: ListJournal | Journal, work: Callable[[Checkpoint], Result], timeout_s: float = 60.0
) -> Runner:
    async def run(call: ToolCall, checkpoint: Checkpoint) -> Result:
        return await in_thread(lambda: work(checkpoint))

    return Runner(
        Registry([FakeTool(run, runs_inline=True, timeout_s=timeout_s)]), root=str(project),
        clock=FakeClock(), journal=journal, mask=Mask(),
    )  # fmt: skip


@pytest.mark.parametrize("origin", [Origin.PYTHON, Origin.HTTP, Origin.CHAT, Origin.MCP])
async def test_a_call_that_nobody_is_asked_about_is_settled_in_one_thread(project: Path, origin: Origin) -> None:
    journal, ran_in = Threads(), set[int]()

    def work(checkpoint: Checkpoint) -> Result:
        ran_in.add(threading.get_ident())
        return DONE

    outcome = await runner_of(project, journal, work).settle(ToolCall(id="c1", tool="Fake", origin=origin))
    assert outcome.envelope.status is Status.SUCCESS
    assert journal.threads == ran_in
    assert threading.get_ident() not in ran_in


@pytest.mark.requirement("runner:cancel", "runner:journal")
@pytest.mark.parametrize("is_allowed", [True, False])
async def test_a_call_that_somebody_is_asked_about_is_recorded_in_a_thread_and_waits_on_the_event_loop(
    project: Path, is_allowed: bool
) -> None:
    journal, asked, answered = Threads(), asyncio.Event(), asyncio.Event()
    loop_thread = threading.get_ident()

    async def permit(call: ToolCall, spec: ToolSpec) -> ToolCall:
        assert not is_on_event_loop()
        await go_to_event_loop()
        assert threading.get_ident() == loop_thread
        asked.set()
        await answered.wait()
        return call

    tool = FakeTool(says, runs_inline=True)
    runner = Runner(Registry([tool]), root=str(project), clock=FakeClock(), journal=journal, mask=Mask(), permit=permit)
    call = ToolCall(id="c1", tool="Fake", arguments={"text": "hello"}, origin=Origin.CHAT)
    settling = asyncio.ensure_future(runner.settle(call))
    await asyncio.wait_for(asked.wait(), WAIT_S)
    assert journal.threads
    assert loop_thread not in journal.threads
    if is_allowed:
        answered.set()
    else:
        assert runner.cancel("c1")
    outcome = await asyncio.wait_for(settling, WAIT_S)
    assert outcome.envelope.status is (Status.SUCCESS if is_allowed else Status.ERROR)
    assert outcome.envelope.context.get("reason") == (None if is_allowed else "CANCELLED")
    assert [told for _, told in journal.finished_calls] == [outcome]


@pytest.mark.requirement("runner:catch")
async def test_a_batch_that_is_wrongly_numbered_ends_in_an_envelope(project: Path) -> None:
    runner = Runner(
        Registry([FakeTool(says, runs_inline=True, splits_batches=True)]), root=str(project),
        clock=FakeClock(), journal=ListJournal(), mask=Mask(),
    )  # fmt: skip
    outcome = await runner.settle(ToolCall(id="c1", tool="Fake", arguments={"text1": "a", "text3": "b"}))
    assert outcome.envelope.error is not None
    assert outcome.envelope.error.code is ErrorCode.INVALID_PARAM


@pytest.mark.requirement("runner:deadline", "runner:cancel")
@pytest.mark.parametrize("ends", ["deadline", "cancel"])
async def test_a_straight_call_stops_at_its_checkpoint_when_its_time_is_over_or_somebody_cancels_it(
    project: Path, ends: str
) -> None:
    journal, begun = ListJournal(), threading.Event()

    def work(checkpoint: Checkpoint) -> Result:
        begun.set()
        while True:
            checkpoint()

    runner = runner_of(project, journal, work, 0.05 if ends == "deadline" else 60.0)
    settling = asyncio.ensure_future(runner.settle(ToolCall(id="c1", tool="Fake")))
    if ends == "cancel":
        assert await asyncio.to_thread(begun.wait, WAIT_S)
        assert runner.cancel("c1")
    outcome = await asyncio.wait_for(settling, WAIT_S)
    assert outcome.envelope.error is not None
    assert (outcome.envelope.error.code is ErrorCode.TIMEOUT) == (ends == "deadline")
    assert [recorded for _, recorded in journal.finished_calls] == [outcome]
    assert not runner.cancel("c1")


@pytest.mark.requirement("runner:deadline", "runner:journal")
async def test_a_straight_call_that_ignores_its_deadline_is_left_behind_and_its_end_is_told_once(
    project: Path, tmp_path: Path
) -> None:
    store, release, over = SqliteStore(tmp_path / "state.db"), threading.Event(), threading.Event()
    journal = Journal(store, FakeClock(), owner="me", mask=Mask())

    def work(checkpoint: Checkpoint) -> Result:
        release.wait(WAIT_S)
        over.set()
        return DONE

    runner = runner_of(project, journal, work, 0.05)
    outcome = await asyncio.wait_for(runner.settle(ToolCall(id="c1", tool="Fake")), WAIT_S)
    assert outcome.envelope.error is not None
    assert outcome.envelope.error.code is ErrorCode.TIMEOUT
    release.set()
    assert await asyncio.to_thread(over.wait, WAIT_S)
    await asyncio.get_running_loop().shutdown_default_executor()
    (record,) = await journal.page(Query(), limit=10)
    assert (record.state, record.error_code) == ("error", "TIMEOUT")
    await store.close()


@pytest.mark.requirement("runner:journal")
async def test_a_call_that_reads_for_long_is_recorded_as_running_and_ends_once(project: Path, tmp_path: Path) -> None:
    store, release = SqliteStore(tmp_path / "state.db"), threading.Event()
    journal = Journal(store, FakeClock(), owner="me", mask=Mask())

    def work(checkpoint: Checkpoint) -> Result:
        release.wait(WAIT_S)
        return DONE

    settling = asyncio.ensure_future(runner_of(project, journal, work).settle(ToolCall(id="c1", tool="Fake")))
    await asyncio.wait_for(store.next_event(0), WAIT_S)
    (record,) = await journal.page(Query(), limit=10)
    assert record.state == "running"
    release.set()
    await asyncio.wait_for(settling, WAIT_S)
    (record,) = await journal.page(Query(), limit=10)
    assert record.state == "success"
    assert [event.type for event in await store.events(0, limit=10)] == ["call.started", "call.finished"]
    await store.close()


@pytest.mark.requirement("runner:cancel", "runner:journal")
async def test_a_straight_call_that_is_cancelled_before_a_thread_is_free_ends_at_once_and_never_runs(
    project: Path,
) -> None:
    journal, release, ran = ListJournal(), threading.Event(), threading.Event()

    def work(checkpoint: Checkpoint) -> Result:
        ran.set()
        return DONE

    loop, runner = asyncio.get_running_loop(), runner_of(project, journal, work)
    busy = [loop.run_in_executor(None, release.wait, WAIT_S) for _ in range(64)]
    settling = asyncio.ensure_future(runner.settle(ToolCall(id="c1", tool="Fake")))
    await run_loop_once()
    assert runner.cancel("c1")
    outcome = await asyncio.wait_for(settling, WAIT_S)
    assert outcome.envelope.context["reason"] == "CANCELLED"
    release.set()
    await asyncio.gather(*busy)
    await loop.shutdown_default_executor()
    assert not ran.is_set()
    assert [recorded for _, recorded in journal.finished_calls] == [outcome]


@pytest.mark.requirement("runner:cancel", "runner:journal")
async def test_what_a_straight_call_has_done_is_journalled_when_nobody_waits_for_it_any_more(project: Path) -> None:
    journal, begun, release = ListJournal(), threading.Event(), threading.Event()

    def work(checkpoint: Checkpoint) -> Result:
        begun.set()
        release.wait(WAIT_S)
        return DONE

    settling = asyncio.ensure_future(runner_of(project, journal, work).settle(ToolCall(id="c1", tool="Fake")))
    assert await asyncio.to_thread(begun.wait, WAIT_S)
    settling.cancel()
    release.set()
    with pytest.raises(asyncio.CancelledError):
        await settling
    assert [recorded.envelope.status for _, recorded in journal.finished_calls] == [Status.SUCCESS]


async def test_a_coroutine_that_waits_in_a_thread_without_an_event_loop_is_a_bug() -> None:
    future = asyncio.get_running_loop().create_future()

    async def waits() -> None:
        await future

    with pytest.raises(RuntimeError, match="without an event loop"):
        await asyncio.to_thread(advance, waits())


async def test_the_rest_of_a_coroutine_runs_where_its_result_is_awaited_and_can_be_cancelled_there() -> None:
    seen: list[bool] = []

    async def work(*, waits: bool) -> str:
        seen.append(is_on_event_loop())
        await go_to_event_loop()
        seen.append(is_on_event_loop())
        if waits:
            await asyncio.Event().wait()
        return "done"

    run = InlineRun(work(waits=False))
    assert await run.wait_left(WAIT_S)
    assert await run.result() == "done"
    run = InlineRun(work(waits=True))
    assert await run.wait_left(WAIT_S)
    rest = asyncio.ensure_future(run.result())
    await run_loop_once()
    rest.cancel()
    with pytest.raises(asyncio.CancelledError):
        await rest
    assert seen == [False, True] * 2


async def test_threads_and_the_event_loop_commit_side_by_side_and_nothing_is_lost(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "state.db")

    def one(name: str) -> Record:
        return Record(kind="thing", id=name, state="new", created=1.0, updated=1.0)

    def many(thread: int) -> None:
        for n in range(20):
            done = advance(store.commit([one(f"{thread}-{n}")], [NewEvent(type="made", at=1.0, data={})]))
            assert done is not None
            assert done.value

    seen = asyncio.ensure_future(store.next_event(0))
    threads = [asyncio.to_thread(many, thread) for thread in range(4)]
    here = [store.commit([one(f"here-{n}")]) for n in range(20)]
    await asyncio.gather(*threads, *here)
    await asyncio.wait_for(seen, WAIT_S)
    assert await store.count("thing", Query()) == 100
    assert (await store.event_span())[1] == 80
    assert await asyncio.to_thread(advance, store.commit([one("here-1")])) == Ended(False)  # it is there already
    assert await asyncio.to_thread(advance, store.get("thing", "0-0")) == Ended(await store.get("thing", "0-0"))
    await store.close()
    with pytest.raises(StorageError):
        await asyncio.to_thread(advance, store.commit([one("late")]))
