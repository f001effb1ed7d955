"""Tools that block a thread: their deadline, their cancellation, and the start that is recorded with the end."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fakes import FakeClock, FakeTool, ListJournal, says
from tests.waiting import run_loop_once
from toolyard.engine.history.journal import Journal
from toolyard.engine.registry import Registry
from toolyard.engine.runner import Runner
from toolyard.protocol.envelope import ErrorCode, Status
from toolyard.protocol.mask import Mask
from toolyard.protocol.store import Query
from toolyard.protocol.tool import Checkpoint, Result, ToolCall
from toolyard.storage.sqlite import SqliteStore
from toolyard.tools.worker_thread import in_thread

pytestmark = pytest.mark.requirement("runner:one-way")
WAIT_S = 60.0
DONE = Result(data={}, text="Done.")


def runner_of(
    project: Path, journal: ListJournal | Journal, work: Callable[[Checkpoint], Result], timeout_s: float = 60.0
) -> Runner:
    async def run(call: ToolCall, checkpoint: Checkpoint) -> Result:
        return await in_thread(lambda: work(checkpoint))

    return Runner(
        Registry([FakeTool(run, timeout_s=timeout_s)]), root=str(project),
        clock=FakeClock(), journal=journal, mask=Mask(),
    )  # fmt: skip


@pytest.mark.requirement("runner:catch")
async def test_a_batch_that_is_wrongly_numbered_ends_in_an_envelope(project: Path) -> None:
    runner = Runner(
        Registry([FakeTool(says, splits_batches=True)]), root=str(project),
        clock=FakeClock(), journal=ListJournal(), mask=Mask(),
    )  # fmt: skip
    outcome = await runner.settle(ToolCall(id="c1", tool="Fake", arguments={"text1": "a", "text3": "b"}))
    assert outcome.envelope.error is not None
    assert outcome.envelope.error.code is ErrorCode.INVALID_PARAM


@pytest.mark.requirement("runner:deadline", "runner:cancel")
@pytest.mark.parametrize("ends", ["deadline", "cancel"])
async def test_a_blocking_call_stops_at_its_checkpoint_when_its_time_is_over_or_somebody_cancels_it(
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
async def test_a_blocking_call_that_ignores_its_deadline_is_left_behind_and_its_end_is_told_once(
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
async def test_a_blocking_call_that_is_cancelled_before_a_thread_is_free_ends_at_once_and_never_runs(
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
async def test_what_a_blocking_call_has_done_is_journalled_when_nobody_waits_for_it_any_more(project: Path) -> None:
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
