"""Tasks: receipts and callbacks in, exactly one end each."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests import postgres
from tests.fakes import FakeClock
from toolyard.engine.tasks import CallbackAnswer, Tasks
from toolyard.protocol.call import ToolCall
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.store import Query, Store
from toolyard.protocol.task import PendingCall, Task, TaskState, from_record, write_result

RECEIPT = "Submitted. {{VCP_ASYNC_RESULT::Video::req-1}}"
DONE: Json = {"requestId": "req-1", "status": "Succeed", "message": "The film is ready."}


class Desk:
    def __init__(self, store: Store) -> None:
        self.store, self.clock = store, FakeClock()
        self.tasks = Tasks(store, self.clock, owner="boot")

    def expect(self, call_id: str = "call_1", tool: str = "Video", caller: str = "key:1") -> PendingCall:
        return self.tasks.expect(ToolCall(id=call_id, tool=tool, arguments={"p": "x"}, caller=caller), timeout_s=1800)

    async def submit(self, receipt: str = RECEIPT) -> tuple[PendingCall, Task]:
        expected = self.expect()
        (task,) = await self.tasks.store_receipt(expected, receipt, 1)
        return expected, task

    async def events(self) -> list[str]:
        return [event.type for event in await self.store.events(0, limit=100)]

    async def only(self) -> Task:
        (record,) = await self.store.find("task", Query(), limit=10)
        return from_record(record)


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def desk(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Desk]:
    async with postgres.store_in(request.param, tmp_path / "state.db") as store:
        yield Desk(store)


@pytest.mark.requirement("task:named", "task:states", "callback:stored")
async def test_a_receipt_names_the_task_and_its_callback_ends_it(desk: Desk) -> None:
    expected, task = await desk.submit()
    assert (task.plugin, task.task_id, task.state, task.caller) == ("Video", "req-1", TaskState.WAITING, "key:1")
    assert "still running" in write_result(task)
    assert await desk.tasks.take_callback(expected.token, "Video", "req-1", DONE) is CallbackAnswer.STORED
    ended = await desk.only()
    assert (ended.state, ended.result) == (TaskState.SUCCEEDED, DONE)
    assert write_result(ended) == "The film is ready."
    assert await desk.events() == ["task.started", "task.succeeded"]
    async with asyncio.timeout(60):
        assert await expected.wait_ended() is TaskState.SUCCEEDED
        assert (await desk.tasks.wait(task.id)).state is TaskState.SUCCEEDED


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
async def test_the_status_of_a_callback_says_how_the_task_ended(desk: Desk, body: Json, state: TaskState) -> None:
    expected, _ = await desk.submit()
    await desk.tasks.take_callback(expected.token, "Video", "req-1", body)
    assert (await desk.only()).state is state


@pytest.mark.requirement("task:query")
async def test_an_answer_that_names_no_task_makes_none(desk: Desk) -> None:
    expected = desk.expect()
    assert await desk.tasks.store_receipt(expected, "Status of {{VCP_ASYNC_RESULT::Other::x}}: fine", 1) == ()
    assert await desk.tasks.page(Query(), limit=10) == []


@pytest.mark.requirement("r:R50", "p:P8")
async def test_the_same_callback_again_is_a_duplicate_and_makes_no_second_event(desk: Desk) -> None:
    expected, _ = await desk.submit()
    await desk.tasks.take_callback(expected.token, "Video", "req-1", DONE)
    assert await desk.tasks.take_callback(expected.token, "Video", "req-1", DONE) is CallbackAnswer.DUPLICATE
    assert await desk.events() == ["task.started", "task.succeeded"]


@pytest.mark.requirement("r:R51", "s:S-03", "p:P8")
async def test_another_body_later_changes_nothing_and_is_in_the_audit(desk: Desk) -> None:
    expected, _ = await desk.submit()
    await desk.tasks.take_callback(expected.token, "Video", "req-1", DONE)
    other: Json = {"status": "Failed"}
    assert await desk.tasks.take_callback(expected.token, "Video", "req-1", other) is CallbackAnswer.ALREADY_ENDED
    task = await desk.only()
    assert (task.state, task.result) == (TaskState.SUCCEEDED, DONE)
    assert [entry["body"] for entry in task.audit] == [other]


@pytest.mark.requirement("r:R51", "ws:push")
async def test_nothing_that_is_noted_of_a_finished_task_at_the_same_time_is_lost(desk: Desk) -> None:
    expected, task = await desk.submit()
    assert (
        await desk.tasks.take_callback(expected.token, "Video", "req-1", {"status": "Succeed"}) is CallbackAnswer.STORED
    )
    push: JsonObject = {"at": 1.0, "target": None, "type": "film", "again": False}
    await asyncio.gather(
        *(desk.tasks.take_callback(expected.token, "Video", "req-1", {"late": number}) for number in range(5)),
        *(desk.tasks.take_callback(expected.token, "Video", "req-1", {"status": "Succeed"}) for _ in range(5)),
        *(desk.tasks.record_push(task.id, {**push, "seq": seq, "clients": 1, "reached": 1}) for seq in (7, 7, 8)),
    )
    ended = await desk.only()
    assert sorted("duplicate" if one.get("duplicate") else "late" for one in ended.audit) == [
        *["duplicate"] * 5,
        *["late"] * 5,
    ]
    assert sorted((one["seq"], one["clients"], one["reached"]) for one in ended.pushes) == [(7, 2, 2), (8, 1, 1)]


@pytest.mark.requirement("r:R52", "s:S-01")
async def test_a_callback_with_an_unknown_id_plugin_or_token_writes_nothing(desk: Desk) -> None:
    expected, task = await desk.submit()
    other = desk.expect("call_2")
    await desk.tasks.store_receipt(other, "{{VCP_ASYNC_RESULT::Video::req-2}}", 1)
    before = await desk.events()
    tries = {
        (expected.token, "Video", "nobody"): CallbackAnswer.UNKNOWN,
        (expected.token, "Image", "req-1"): CallbackAnswer.UNKNOWN,
        (expected.token, "Video", "req-2"): CallbackAnswer.UNKNOWN,  # the token of one call is no good for another
        ("", "Video", "req-1"): CallbackAnswer.FORBIDDEN,
        ("x" * 43, "Video", "req-1"): CallbackAnswer.FORBIDDEN,
        (task.token_hash, "Video", "req-1"): CallbackAnswer.FORBIDDEN,
    }
    assert {key: await desk.tasks.take_callback(*key, DONE) for key in tries} == tries
    assert await desk.events() == before
    assert (await desk.tasks.get("Video::req-1")) == task


@pytest.mark.requirement("r:R53", "task:named")
async def test_a_callback_before_the_receipt_is_stored_and_the_receipt_finds_it(desk: Desk) -> None:
    expected = desk.expect()
    assert await desk.tasks.take_callback(expected.token, "Video", "req-1", DONE) is CallbackAnswer.STORED
    (task,) = await desk.tasks.store_receipt(expected, RECEIPT, 1)
    assert (task.state, task.result) == (TaskState.SUCCEEDED, DONE)
    assert await desk.events() == ["task.started", "task.succeeded"]
    async with asyncio.timeout(60):
        assert await expected.wait_ended() is TaskState.SUCCEEDED


@pytest.mark.requirement("r:R53", "p:P8")
async def test_a_callback_at_the_very_moment_of_the_receipt_makes_one_task_and_ends_it(desk: Desk) -> None:
    for n in range(20):
        expected = desk.expect(f"call_{n}")
        receipt = f"{{{{VCP_ASYNC_RESULT::Video::a{n}}}}} {{{{VCP_ASYNC_RESULT::Video::b{n}}}}}"
        tasks, *answers = await asyncio.gather(
            desk.tasks.store_receipt(expected, receipt, 1),
            desk.tasks.take_callback(expected.token, "Video", f"b{n}", DONE),
            desk.tasks.take_callback(expected.token, "Video", f"a{n}", DONE),
        )
        assert answers == [CallbackAnswer.STORED, CallbackAnswer.STORED]
        assert len(tasks) == 2
        async with asyncio.timeout(60):
            assert await expected.wait_ended() is TaskState.SUCCEEDED
    assert await desk.store.count("task", Query()) == 40


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
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Held(desk.store, "commit", monkeypatch)
    expected = desk.expect()
    both = RECEIPT + "{{VCP_ASYNC_RESULT::Video::req-2}}"
    receiving = asyncio.create_task(desk.tasks.store_receipt(expected, both, 1))
    async with asyncio.timeout(60):
        await held.done.wait()
        receiving.cancel()
        held.go.set()
        with pytest.raises(asyncio.CancelledError):
            await receiving
        assert await expected.wait_ended() is TaskState.CANCELLED
    assert await desk.events() == ["task.started"] * 2 + ["task.cancelled"] * 2


@pytest.mark.requirement("r:R54", "p:P8")
async def test_a_task_may_be_ended_by_who_sees_it_before_its_receipt_is_done(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        held = Held(desk.store, "commit", patched)
        expected = desk.expect()
        receiving = asyncio.create_task(desk.tasks.store_receipt(expected, RECEIPT, 1))
        await asyncio.wait_for(held.done.wait(), 60)
    assert await desk.tasks.cancel((await desk.only()).id)
    held.go.set()
    async with asyncio.timeout(60):
        (task,) = await receiving
        assert await expected.wait_ended() is task.state is TaskState.CANCELLED


@pytest.mark.requirement("r:R50", "p:P8")
async def test_what_was_read_before_a_callback_does_not_undo_it(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    expected, _ = await desk.submit()
    with monkeypatch.context() as patched:
        held = Held(desk.store, "get", patched)
        looking = asyncio.create_task(desk.tasks.refresh(expected))
        await asyncio.wait_for(held.done.wait(), 60)
    assert await desk.tasks.take_callback(expected.token, "Video", "req-1", DONE) is CallbackAnswer.STORED
    held.go.set()
    await asyncio.wait_for(looking, 60)
    assert expected.is_answered


@pytest.mark.requirement("r:R54")
async def test_a_callback_after_cancel_or_timeout_is_noted_only(desk: Desk) -> None:
    expected, task = await desk.submit()
    assert await desk.tasks.cancel(task.id)
    assert not await desk.tasks.cancel(task.id)
    assert await desk.tasks.take_callback(expected.token, "Video", "req-1", DONE) is CallbackAnswer.ALREADY_ENDED
    ended = await desk.only()
    assert (ended.state, ended.result, len(ended.audit)) == (TaskState.CANCELLED, None, 1)


@pytest.mark.requirement("r:R58", "s:S-02")
@pytest.mark.parametrize(
    "task_id", ["", ".", "..", "a/b", "../x", "a\\b", "a\0b", "%2e%2e", "é", "x" * 129, "CON ", "a b", "\u2215", "x\n"]
)
async def test_an_id_that_is_none_is_refused_before_anything_else(desk: Desk, task_id: str) -> None:
    expected = desk.expect()
    assert await desk.tasks.take_callback(expected.token, "Video", task_id, DONE) is CallbackAnswer.INVALID
    assert await desk.events() == []


@pytest.mark.requirement("s:S-01")
async def test_only_the_hash_of_a_token_is_stored_and_each_call_has_its_own(desk: Desk) -> None:
    expected, task = await desk.submit()
    record = await desk.store.get("task", task.id)
    assert expected.token not in repr(record)
    assert len({desk.expect(f"call_{n}").token for n in range(100)}) == 100
    assert len(expected.token) >= 43


@pytest.mark.requirement("task:readopted", "r:R55")
async def test_after_a_restart_the_token_of_a_stored_task_is_still_good(desk: Desk) -> None:
    expected, _ = await desk.submit()
    again = Tasks(desk.store, desk.clock, owner="boot 2")
    assert await again.check_callback(expected.token, "Video", "req-1") is None
    assert await again.take_callback(expected.token, "Video", "req-1", DONE) is CallbackAnswer.STORED
    assert (await desk.only()).state is TaskState.SUCCEEDED


@pytest.mark.requirement("p:P8", "task:states")
async def test_of_a_callback_a_cancel_and_a_timeout_at_once_exactly_one_ends_the_task(desk: Desk) -> None:
    expected, task = await desk.submit()
    await asyncio.gather(
        desk.tasks.take_callback(expected.token, "Video", "req-1", DONE),
        desk.tasks.cancel(task.id),
        desk.tasks.end_open_tasks(expected, TaskState.TIMED_OUT, "too long"),
    )
    ends = [name for name in await desk.events() if name != "task.started"]
    assert len(ends) == 1
    assert ends == [f"task.{(await desk.only()).state}"]


@pytest.mark.requirement("r:R25")
async def test_a_call_whose_process_is_lost_ends_its_open_tasks_with_the_reason(desk: Desk) -> None:
    expected, _ = await desk.submit()
    await desk.tasks.end_open_tasks(expected, TaskState.FAILED, "the process ended without callback")
    task = await desk.only()
    assert task.state is TaskState.FAILED
    assert "the process ended without callback" in write_result(task)


@pytest.mark.requirement("placeholder:async")
async def test_a_task_is_known_only_to_the_caller_who_started_it(desk: Desk) -> None:
    _, task = await desk.submit()
    assert await desk.tasks.find_for_caller("Video", "req-1", "key:1") == task
    assert await desk.tasks.find_for_caller("Video", "req-1", "key:2") is None


@pytest.mark.requirement("task:states")
async def test_progress_is_kept_and_told_until_the_task_ends(desk: Desk) -> None:
    expected, task = await desk.submit()
    await desk.tasks.report_progress(task.id, {"done": 0.4, "text": "frame 4"})
    assert (await desk.only()).progress == {"done": 0.4, "text": "frame 4"}
    await desk.tasks.take_callback(expected.token, "Video", "req-1", DONE)
    await desk.tasks.report_progress(task.id, {"done": 0.9})
    assert (await desk.only()).state is TaskState.SUCCEEDED
    assert await desk.events() == ["task.started", "task.progress", "task.succeeded"]


@pytest.mark.requirement("r:R57")
async def test_a_thousand_callbacks_at_once_are_all_stored(desk: Desk) -> None:
    calls = [desk.expect(f"call_{n}") for n in range(1000)]
    await asyncio.gather(
        *(desk.tasks.store_receipt(one, f"{{{{VCP_ASYNC_RESULT::Video::r{n}}}}}", 1) for n, one in enumerate(calls))
    )
    answers = await asyncio.gather(
        *(desk.tasks.take_callback(one.token, "Video", f"r{n}", {"n": n}) for n, one in enumerate(calls))
    )
    assert set(answers) == {CallbackAnswer.STORED}
    assert await desk.store.count("task", Query(states=("succeeded",))) == 1000


@pytest.mark.requirement("task:states")
async def test_a_finished_task_cannot_be_finished_again(desk: Desk) -> None:
    _, task = await desk.submit()
    ended = replace(task, state=TaskState.FAILED)
    with pytest.raises(ValueError, match="already ended"):
        ended.finish(TaskState.SUCCEEDED, 1.0)
