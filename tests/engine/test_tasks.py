"""Tasks: receipts and callbacks in, exactly one end each."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests import postgres
from tests.fakes import FakeClock
from toolyard.engine.background.tasks import CallbackAnswer, Tasks
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.records.task_record import PendingCall, Task, TaskState, write_result
from toolyard.protocol.store import Query, Store
from toolyard.protocol.tool import ToolCall

RECEIPT = "Submitted. {{VCP_ASYNC_RESULT::Video::req-1}}"
DONE: Json = {"requestId": "req-1", "status": "Succeed", "message": "The film is ready."}


class TaskBench:
    def __init__(self, store: Store) -> None:
        self.store, self.clock = store, FakeClock()
        self.tasks = Tasks(store, self.clock, owner="boot")

    def expect(self, call_id: str = "call_1", tool: str = "Video", caller: str = "key:1") -> PendingCall:
        return self.tasks.expect(ToolCall(id=call_id, tool=tool, arguments={"p": "x"}, caller=caller), timeout_s=1800)

    async def submit(self, receipt: str = RECEIPT) -> tuple[PendingCall, Task]:
        pending = self.expect()
        (task,) = await self.tasks.store_receipt(pending, receipt, 1)
        return pending, task

    async def events(self) -> list[str]:
        return [event.type for event in await self.store.events(0, limit=100)]

    async def only(self) -> Task:
        (record,) = await self.store.find("task", Query(), limit=10)
        return Task.from_record(record)


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def bench(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[TaskBench]:
    async with postgres.store_in(request.param, tmp_path / "state.db") as store:
        yield TaskBench(store)


@pytest.mark.requirement("task:named", "task:states", "callback:stored")
async def test_a_receipt_names_the_task_and_its_callback_ends_it(bench: TaskBench) -> None:
    pending, task = await bench.submit()
    assert (task.plugin, task.task_id, task.state, task.caller) == ("Video", "req-1", TaskState.WAITING, "key:1")
    assert "still running" in write_result(task)
    assert await bench.tasks.take_callback(pending.token, "Video", "req-1", DONE) is CallbackAnswer.STORED
    ended = await bench.only()
    assert (ended.state, ended.result) == (TaskState.SUCCEEDED, DONE)
    assert write_result(ended) == "The film is ready."
    assert await bench.events() == ["task.started", "task.succeeded"]
    async with asyncio.timeout(60):
        assert await pending.wait_ended() is TaskState.SUCCEEDED
        assert (await bench.tasks.wait(task.id)).state is TaskState.SUCCEEDED


@pytest.mark.requirement("callback:status")
@pytest.mark.parametrize(
    ("body", "state"),
    [
        ({"status": "Failed", "reason": "x"}, TaskState.FAILED),
        ({"status": "error"}, TaskState.FAILED),
        ({"status": "PollingTimeout"}, TaskState.FAILED),
        ({"status": "Succeed"}, TaskState.SUCCEEDED),
        ({"status": "Whatever"}, TaskState.SUCCEEDED),
        ({"videoUrl": "u"}, TaskState.SUCCEEDED),
        (["a", "list"], TaskState.SUCCEEDED),
    ],
)
async def test_the_status_of_a_callback_says_how_the_task_ended(bench: TaskBench, body: Json, state: TaskState) -> None:
    pending, _ = await bench.submit()
    await bench.tasks.take_callback(pending.token, "Video", "req-1", body)
    assert (await bench.only()).state is state


@pytest.mark.requirement("task:query")
async def test_an_answer_that_names_no_task_makes_none(bench: TaskBench) -> None:
    pending = bench.expect()
    assert await bench.tasks.store_receipt(pending, "Status of {{VCP_ASYNC_RESULT::Other::x}}: fine", 1) == ()
    assert await bench.tasks.page(Query(), limit=10) == []


@pytest.mark.requirement("r:R50", "p:P8")
async def test_the_same_callback_again_is_a_duplicate_and_makes_no_second_event(bench: TaskBench) -> None:
    pending, _ = await bench.submit()
    await bench.tasks.take_callback(pending.token, "Video", "req-1", DONE)
    assert await bench.tasks.take_callback(pending.token, "Video", "req-1", DONE) is CallbackAnswer.DUPLICATE
    assert await bench.events() == ["task.started", "task.succeeded"]


@pytest.mark.requirement("r:R51", "s:S-03", "p:P8")
async def test_another_body_later_changes_nothing_and_is_in_the_audit(bench: TaskBench) -> None:
    pending, _ = await bench.submit()
    await bench.tasks.take_callback(pending.token, "Video", "req-1", DONE)
    other: Json = {"status": "Failed"}
    assert await bench.tasks.take_callback(pending.token, "Video", "req-1", other) is CallbackAnswer.ALREADY_ENDED
    task = await bench.only()
    assert (task.state, task.result) == (TaskState.SUCCEEDED, DONE)
    assert [entry["body"] for entry in task.audit] == [other]


@pytest.mark.requirement("r:R51", "ws:push")
async def test_nothing_that_is_noted_of_a_finished_task_at_the_same_time_is_lost(bench: TaskBench) -> None:
    pending, task = await bench.submit()
    assert (
        await bench.tasks.take_callback(pending.token, "Video", "req-1", {"status": "Succeed"}) is CallbackAnswer.STORED
    )
    push: JsonObject = {"at": 1.0, "target": None, "type": "film", "again": False}
    await asyncio.gather(
        *(bench.tasks.take_callback(pending.token, "Video", "req-1", {"late": number}) for number in range(5)),
        *(bench.tasks.take_callback(pending.token, "Video", "req-1", {"status": "Succeed"}) for _ in range(5)),
        *(bench.tasks.record_push(task.id, {**push, "seq": seq, "clients": 1, "reached": 1}) for seq in (7, 7, 8)),
    )
    ended = await bench.only()
    assert sorted("duplicate" if one.get("duplicate") else "late" for one in ended.audit) == [
        *["duplicate"] * 5,
        *["late"] * 5,
    ]
    assert sorted((one["seq"], one["clients"], one["reached"]) for one in ended.pushes) == [(7, 2, 2), (8, 1, 1)]


@pytest.mark.requirement("r:R52", "s:S-01")
async def test_a_callback_with_an_unknown_id_plugin_or_token_writes_nothing(bench: TaskBench) -> None:
    pending, task = await bench.submit()
    other = bench.expect("call_2")
    await bench.tasks.store_receipt(other, "{{VCP_ASYNC_RESULT::Video::req-2}}", 1)
    before = await bench.events()
    tries = {
        (pending.token, "Video", "nobody"): CallbackAnswer.UNKNOWN,
        (pending.token, "Image", "req-1"): CallbackAnswer.UNKNOWN,
        (pending.token, "Video", "req-2"): CallbackAnswer.UNKNOWN,  # the token of one call is no good for another
        ("", "Video", "req-1"): CallbackAnswer.FORBIDDEN,
        ("x" * 43, "Video", "req-1"): CallbackAnswer.FORBIDDEN,
        (task.token_hash, "Video", "req-1"): CallbackAnswer.FORBIDDEN,
    }
    assert {key: await bench.tasks.take_callback(*key, DONE) for key in tries} == tries
    assert await bench.events() == before
    assert (await bench.tasks.get("Video::req-1")) == task


@pytest.mark.requirement("r:R53", "task:named")
async def test_a_callback_before_the_receipt_is_stored_and_the_receipt_finds_it(bench: TaskBench) -> None:
    pending = bench.expect()
    assert await bench.tasks.take_callback(pending.token, "Video", "req-1", DONE) is CallbackAnswer.STORED
    (task,) = await bench.tasks.store_receipt(pending, RECEIPT, 1)
    assert (task.state, task.result) == (TaskState.SUCCEEDED, DONE)
    assert await bench.events() == ["task.started", "task.succeeded"]
    async with asyncio.timeout(60):
        assert await pending.wait_ended() is TaskState.SUCCEEDED


@pytest.mark.requirement("r:R53", "p:P8")
async def test_a_callback_at_the_very_moment_of_the_receipt_makes_one_task_and_ends_it(bench: TaskBench) -> None:
    for n in range(20):
        pending = bench.expect(f"call_{n}")
        receipt = f"{{{{VCP_ASYNC_RESULT::Video::a{n}}}}} {{{{VCP_ASYNC_RESULT::Video::b{n}}}}}"
        tasks, *answers = await asyncio.gather(
            bench.tasks.store_receipt(pending, receipt, 1),
            bench.tasks.take_callback(pending.token, "Video", f"b{n}", DONE),
            bench.tasks.take_callback(pending.token, "Video", f"a{n}", DONE),
        )
        assert answers == [CallbackAnswer.STORED, CallbackAnswer.STORED]
        assert len(tasks) == 2
        async with asyncio.timeout(60):
            assert await pending.wait_ended() is TaskState.SUCCEEDED
    assert await bench.store.count("task", Query()) == 40


class Held:
    """One way into a store, on which whoever comes next is held up when it is done and others can see it."""

    def __init__(self, store: Store, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.done, self.go = asyncio.Event(), asyncio.Event()
        real = getattr(store, way)

        async def held(*arguments: object, **more: object) -> object:
            result = await real(*arguments, **more)
            self.done.set()
            await self.go.wait()
            return result

        monkeypatch.setattr(store, way, held)


@pytest.mark.requirement("r:R54", "p:P8")
async def test_a_call_stopped_while_its_receipt_is_stored_leaves_no_open_task(
    bench: TaskBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Held(bench.store, "commit", monkeypatch)
    pending = bench.expect()
    both = RECEIPT + "{{VCP_ASYNC_RESULT::Video::req-2}}"
    receiving = asyncio.create_task(bench.tasks.store_receipt(pending, both, 1))
    async with asyncio.timeout(60):
        await held.done.wait()
        receiving.cancel()
        held.go.set()
        with pytest.raises(asyncio.CancelledError):
            await receiving
        assert await pending.wait_ended() is TaskState.CANCELLED
    assert await bench.events() == ["task.started"] * 2 + ["task.cancelled"] * 2


@pytest.mark.requirement("r:R54", "p:P8")
async def test_a_task_may_be_ended_by_who_sees_it_before_its_receipt_is_done(
    bench: TaskBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        held = Held(bench.store, "commit", patched)
        pending = bench.expect()
        receiving = asyncio.create_task(bench.tasks.store_receipt(pending, RECEIPT, 1))
        await asyncio.wait_for(held.done.wait(), 60)
    assert await bench.tasks.cancel((await bench.only()).id)
    held.go.set()
    async with asyncio.timeout(60):
        (task,) = await receiving
        assert await pending.wait_ended() is task.state is TaskState.CANCELLED


@pytest.mark.requirement("r:R50", "p:P8")
async def test_what_was_read_before_a_callback_does_not_undo_it(
    bench: TaskBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    pending, _ = await bench.submit()
    with monkeypatch.context() as patched:
        held = Held(bench.store, "get", patched)
        looking = asyncio.create_task(bench.tasks.refresh(pending))
        await asyncio.wait_for(held.done.wait(), 60)
    assert await bench.tasks.take_callback(pending.token, "Video", "req-1", DONE) is CallbackAnswer.STORED
    held.go.set()
    await asyncio.wait_for(looking, 60)
    assert pending.is_answered


@pytest.mark.requirement("r:R54")
async def test_a_callback_after_cancel_or_timeout_is_noted_only(bench: TaskBench) -> None:
    pending, task = await bench.submit()
    assert await bench.tasks.cancel(task.id)
    assert not await bench.tasks.cancel(task.id)
    assert await bench.tasks.take_callback(pending.token, "Video", "req-1", DONE) is CallbackAnswer.ALREADY_ENDED
    ended = await bench.only()
    assert (ended.state, ended.result, len(ended.audit)) == (TaskState.CANCELLED, None, 1)


@pytest.mark.requirement("r:R58", "s:S-02")
@pytest.mark.parametrize(
    "task_id", ["", ".", "..", "a/b", "../x", "a\\b", "a\0b", "%2e%2e", "é", "x" * 129, "CON ", "a b", "\u2215", "x\n"]
)
async def test_an_id_that_is_none_is_refused_before_anything_else(bench: TaskBench, task_id: str) -> None:
    pending = bench.expect()
    assert await bench.tasks.take_callback(pending.token, "Video", task_id, DONE) is CallbackAnswer.INVALID
    assert await bench.events() == []


@pytest.mark.requirement("s:S-01")
async def test_only_the_hash_of_a_token_is_stored_and_each_call_has_its_own(bench: TaskBench) -> None:
    pending, task = await bench.submit()
    record = await bench.store.get("task", task.id)
    assert pending.token not in repr(record)
    assert len({bench.expect(f"call_{n}").token for n in range(100)}) == 100
    assert len(pending.token) >= 43


@pytest.mark.requirement("task:readopted", "r:R55")
async def test_after_a_restart_the_token_of_a_stored_task_is_still_good(bench: TaskBench) -> None:
    pending, _ = await bench.submit()
    again = Tasks(bench.store, bench.clock, owner="boot 2")
    assert await again.check_callback(pending.token, "Video", "req-1") is None
    assert await again.take_callback(pending.token, "Video", "req-1", DONE) is CallbackAnswer.STORED
    assert (await bench.only()).state is TaskState.SUCCEEDED


@pytest.mark.requirement("p:P8", "task:states")
async def test_of_a_callback_a_cancel_and_a_timeout_at_once_exactly_one_ends_the_task(bench: TaskBench) -> None:
    pending, task = await bench.submit()
    await asyncio.gather(
        bench.tasks.take_callback(pending.token, "Video", "req-1", DONE),
        bench.tasks.cancel(task.id),
        bench.tasks.end_open_tasks(pending, TaskState.TIMED_OUT, "too long"),
    )
    ends = [name for name in await bench.events() if name != "task.started"]
    assert len(ends) == 1
    assert ends == [f"task.{(await bench.only()).state}"]


@pytest.mark.requirement("r:R25")
async def test_a_call_whose_process_is_lost_ends_its_open_tasks_with_the_reason(bench: TaskBench) -> None:
    pending, _ = await bench.submit()
    await bench.tasks.end_open_tasks(pending, TaskState.FAILED, "the process ended without callback")
    task = await bench.only()
    assert task.state is TaskState.FAILED
    assert "the process ended without callback" in write_result(task)


@pytest.mark.requirement("placeholder:async")
async def test_a_task_is_known_only_to_the_caller_who_started_it(bench: TaskBench) -> None:
    _, task = await bench.submit()
    assert await bench.tasks.find_for_caller("Video", "req-1", "key:1") == task
    assert await bench.tasks.find_for_caller("Video", "req-1", "key:2") is None


@pytest.mark.requirement("task:states")
async def test_progress_is_kept_and_told_until_the_task_ends(bench: TaskBench) -> None:
    pending, task = await bench.submit()
    await bench.tasks.report_progress(task.id, {"done": 0.4, "text": "frame 4"})
    assert (await bench.only()).progress == {"done": 0.4, "text": "frame 4"}
    await bench.tasks.take_callback(pending.token, "Video", "req-1", DONE)
    await bench.tasks.report_progress(task.id, {"done": 0.9})
    assert (await bench.only()).state is TaskState.SUCCEEDED
    assert await bench.events() == ["task.started", "task.progress", "task.succeeded"]


@pytest.mark.requirement("r:R57")
async def test_a_thousand_callbacks_at_once_are_all_stored(bench: TaskBench) -> None:
    calls = [bench.expect(f"call_{n}") for n in range(1000)]
    await asyncio.gather(
        *(bench.tasks.store_receipt(one, f"{{{{VCP_ASYNC_RESULT::Video::r{n}}}}}", 1) for n, one in enumerate(calls))
    )
    answers = await asyncio.gather(
        *(bench.tasks.take_callback(one.token, "Video", f"r{n}", {"n": n}) for n, one in enumerate(calls))
    )
    assert set(answers) == {CallbackAnswer.STORED}
    assert await bench.store.count("task", Query(states=("succeeded",))) == 1000


@pytest.mark.requirement("task:states")
async def test_a_finished_task_cannot_be_finished_again(bench: TaskBench) -> None:
    _, task = await bench.submit()
    ended = replace(task, state=TaskState.FAILED)
    with pytest.raises(ValueError, match="already ended"):
        ended.finish(TaskState.SUCCEEDED, 1.0)
