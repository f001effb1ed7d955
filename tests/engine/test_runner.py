"""The one way to run a tool: every call ends in exactly one outcome."""

import asyncio
import json
import socket
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes import Endless, FakeClock, FakeTool, ListJournal, Work, says
from tests.waiting import wait_until_blocking
from toolyard.config import load_config
from toolyard.engine import runner
from toolyard.engine.history.journal import Journal
from toolyard.engine.registry import Registry
from toolyard.engine.runner import Runner
from toolyard.protocol.content import Media, Text
from toolyard.protocol.envelope import ErrorCode, Extras, Failure, Fault, Reason, Status
from toolyard.protocol.mask import Mask
from toolyard.protocol.result_limits import MAX_BYTES, Direction
from toolyard.protocol.store import NewEvent, Query, Record
from toolyard.protocol.tool import Checkpoint, Origin, Result, Risk, ToolCall, ToolSpec
from toolyard.storage.sqlite import SqliteStore
from toolyard.tools.worker_thread import in_thread
from toolyard.workspace.outputs import Outputs
from toolyard.workspace.workspace import Workspace
from toolyard.yard.results import ModelView, Results
from toolyard.yard.state import Basis

WAIT_S = 60.0


class Bench:
    """A runner with one tool and everything around it in reach."""

    def __init__(self, root: Path, work: Work, **tool: object) -> None:
        self.clock, self.journal = FakeClock(), ListJournal()
        workspace, mask = Workspace(root), Mask(["top-secret-value"])
        basis = Basis(load_config(root, root.parent / "home"), workspace, self.clock, mask)
        self.runner = Runner(
            Registry([FakeTool(work, **tool)]),  # type: ignore[arg-type]
            root=str(root),
            clock=self.clock,
            journal=self.journal,
            mask=mask,
            keep_media=Results(basis).keep_media,
        )
        self.showing = ModelView(Outputs(workspace), self.clock, mask=mask)

    def call(self, tool: str = "Fake", **arguments: object) -> ToolCall:
        return ToolCall(id="c1", tool=tool, arguments=arguments)  # type: ignore[arg-type]


@pytest.mark.requirement("runner:time", "envelope:stats:time")
async def test_the_runner_measures_the_time_itself(project: Path) -> None:
    async def slow(call: ToolCall, checkpoint: Checkpoint) -> Result:
        bench.clock.advance(1.5)
        return Result(data={}, text="Done.", stats={"rows": 3})

    bench = Bench(project, slow)
    outcome = await bench.runner.settle(bench.call())
    assert outcome.envelope.stats == {"time_ms": 1500.0, "rows": 3}


@pytest.mark.requirement("runner:time")
async def test_a_tool_cannot_replace_the_measured_time(project: Path) -> None:
    async def liar(call: ToolCall, checkpoint: Checkpoint) -> Result:
        bench.clock.advance(2)
        return Result(data={}, text="Done.", stats={"time_ms": 1})

    bench = Bench(project, liar)
    outcome = await bench.runner.settle(bench.call())
    assert outcome.envelope.stats == {"time_ms": 2000.0}


@pytest.mark.requirement("runner:time")
async def test_the_wait_for_permission_is_no_part_of_the_time_and_told_by_itself(project: Path) -> None:
    clock, journal = FakeClock(), ListJournal()

    async def permit(call: ToolCall, spec: ToolSpec) -> ToolCall:
        clock.advance(60)
        if call.id == "denied":
            raise Failure(Reason.DENIED, "No.")
        return call

    async def slow(call: ToolCall, checkpoint: Checkpoint) -> Result:
        clock.advance(1.5)
        return Result(data={}, text="Done.")

    runner = Runner(
        Registry([FakeTool(slow)]), root=str(project), clock=clock,
        journal=journal, mask=Mask(), permit=permit,
    )  # fmt: skip
    began = clock.now().timestamp()
    allowed = await runner.settle(ToolCall(id="allowed", tool="Fake", origin=Origin.CHAT))
    assert allowed.envelope.stats == {"time_ms": 1500.0}
    assert (allowed.course.waited_ms, allowed.course.ran) == (60_000.0, began + 60)
    denied = await runner.settle(ToolCall(id="denied", tool="Fake", origin=Origin.CHAT))
    assert (denied.envelope.stats["time_ms"], denied.course.waited_ms, denied.course.ran) == (0.0, 60_000.0, None)
    unasked = await runner.settle(ToolCall(id="unasked", tool="Fake"))
    assert (unasked.envelope.stats["time_ms"], unasked.course.waited_ms) == (1500.0, 0.0)
    assert [outcome for _, outcome in journal.finished_calls] == [allowed, denied, unasked]


@pytest.mark.requirement("runner:validate", "runner:journal")
async def test_a_call_with_wrong_arguments_ends_before_the_tool_starts(project: Path) -> None:
    started = []

    async def work(call: ToolCall, checkpoint: Checkpoint) -> Result:
        started.append(call)
        return Result(data={}, text="Done.")

    bench = Bench(project, work)
    outcome = await bench.runner.settle(bench.call(txt="x"))
    assert outcome.envelope.error is not None
    assert outcome.envelope.error.code is ErrorCode.INVALID_PARAM
    assert "unknown parameter 'txt': did you mean 'text'?" in outcome.envelope.error.message
    assert started == []
    assert [envelope for _, envelope in bench.journal.finished_calls] == [outcome]


@pytest.mark.requirement("runner:catch", "code:closed")
async def test_a_tool_that_raises_ends_in_an_internal_error(project: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def broken(call: ToolCall, checkpoint: Checkpoint) -> Result:
        raise ZeroDivisionError("by zero")

    bench = Bench(project, broken)
    outcome = await bench.runner.settle(bench.call())
    assert outcome.envelope.error == Fault(
        ErrorCode.INTERNAL_ERROR, "Toolyard has a bug: Fake raised ZeroDivisionError: by zero."
    )
    assert "ZeroDivisionError" in caplog.text


@pytest.mark.requirement("runner:invalid-result")
@pytest.mark.parametrize(
    "result",
    [
        Result(data={"number": float("nan")}, text="Done."),
        Result(data={}, text=""),
        Result(data={}, text="Done.", context={"path_resolved": "/absolute"}),
        "not a result",
    ],
)
async def test_a_result_that_breaks_the_rules_is_an_internal_error(project: Path, result: Result) -> None:
    async def wrong(call: ToolCall, checkpoint: Checkpoint) -> Result:
        return result

    bench = Bench(project, wrong)
    outcome = await bench.runner.settle(bench.call())
    assert outcome.envelope.error is not None
    assert outcome.envelope.error.code is ErrorCode.INTERNAL_ERROR


@pytest.mark.requirement("envelope:context:reason", "envelope:text")
async def test_a_failure_says_what_happened_and_what_to_do_next(project: Path) -> None:
    async def refuses(call: ToolCall, checkpoint: Checkpoint) -> Result:
        raise Failure(Reason.NOT_UNIQUE, "The text stands twice.", hint="Give more of it.", data={"occurrences": 2})

    bench = Bench(project, refuses)
    outcome = await bench.runner.settle(bench.call())
    assert outcome.envelope.to_dict() == {
        "status": "error",
        "data": {"occurrences": 2},
        "text": "The text stands twice. Give more of it.",
        "error": {"code": "INVALID_PARAM", "message": "The text stands twice."},
        "stats": {"time_ms": 0.0},
        "context": {"cwd": ".", "params_input": {}, "reason": "NOT_UNIQUE"},
    }


@pytest.mark.requirement("code:unknown-tool", "s:S-27")
@pytest.mark.parametrize(
    "name", ["fake", "FAKE", "Fake ", " Fake", "Fаke", "Ｆake", "Fa\u200bke", "", "Fake\ud800", "../Fake"]
)
async def test_only_the_exact_name_of_a_tool_finds_it(project: Path, name: str) -> None:
    bench = Bench(project, says)
    outcome = await bench.runner.settle(bench.call(name))
    assert outcome.envelope.error is not None
    assert outcome.envelope.error.code is ErrorCode.NOT_FOUND
    assert "The tools are Fake." in outcome.envelope.text


@pytest.mark.requirement("server:address-space")
@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("can't start new thread")])
async def test_a_call_that_finds_no_memory_ends_as_such_and_not_as_a_bug(project: Path, error: Exception) -> None:
    async def fails(call: ToolCall, checkpoint: Checkpoint) -> Result:
        raise error

    bench = Bench(project, fails)
    outcome = await bench.runner.settle(bench.call())
    assert outcome.envelope.error == Fault(ErrorCode.EXECUTION_ERROR, "Fake was cut off: the server is out of memory.")
    assert outcome.envelope.context["reason"] == Reason.INTERRUPTED


@pytest.mark.requirement("plugin:paused-host")
async def test_a_tool_whose_answer_came_while_the_process_stood_still_has_answered_in_time(project: Path) -> None:
    ours, theirs = socket.socketpair()

    async def waits(call: ToolCall, checkpoint: Checkpoint) -> Result:
        loop = asyncio.get_running_loop()
        reader, writer = await asyncio.open_connection(sock=ours)
        theirs.sendall(b"an answer\n")
        end = loop.time() + 0.05 + runner._LATE_S
        wait_until_blocking(lambda: loop.time() > end)  # it blocks the event loop, as a pause of the process does
        line = await reader.readline()
        writer.close()
        return Result(data={}, text=line.decode())

    bench = Bench(project, waits, timeout_s=0.05)
    with theirs:
        outcome = await bench.runner.settle(bench.call())
    assert (outcome.envelope.error, outcome.envelope.text) == (None, "an answer\n")


@pytest.mark.requirement("runner:deadline")
async def test_a_tool_that_runs_past_its_deadline_is_stopped(project: Path) -> None:
    endless = Endless()
    bench = Bench(project, endless, timeout_s=0.05)
    outcome = await asyncio.wait_for(bench.runner.settle(bench.call()), WAIT_S)
    assert outcome.envelope.error == Fault(ErrorCode.TIMEOUT, "Fake did not finish within 0.05 s and was stopped.")
    assert endless.stopped.is_set()


def until_expired(checkpoint: Checkpoint) -> None:
    with suppress(Failure):
        while True:
            checkpoint()


@pytest.mark.requirement("runner:truth")
async def test_a_write_that_ends_after_its_deadline_is_told_as_done(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "_GRACE_S", 0.0)

    async def writes(call: ToolCall, checkpoint: Checkpoint) -> Result:
        def work() -> Result:
            until_expired(checkpoint)
            return Result(data={}, text="Written.")

        return await in_thread(work)

    bench = Bench(project, writes, timeout_s=0.05, risk=Risk.WRITE)
    bench.clock.monotonic = time.monotonic  # type: ignore[method-assign]
    outcome = await asyncio.wait_for(bench.runner.settle(bench.call()), WAIT_S)
    assert (outcome.envelope.status, outcome.envelope.text) == (Status.SUCCESS, "Written.")


@pytest.mark.requirement("runner:truth", "runner:deadline")
async def test_a_tool_that_goes_on_after_its_deadline_is_not_told_as_stopped(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "_GRACE_S", 0.05)
    let_go = threading.Event()

    async def goes_on(call: ToolCall, checkpoint: Checkpoint) -> Result:
        def work() -> Result:
            let_go.wait(WAIT_S)
            return Result(data={}, text="Finished.")

        return await in_thread(work)

    bench = Bench(project, goes_on, timeout_s=0.05)
    outcome = await asyncio.wait_for(bench.runner.settle(bench.call()), WAIT_S)
    let_go.set()
    assert outcome.envelope.error == Fault(ErrorCode.TIMEOUT, "Fake did not finish within 0.05 s.")
    assert "may still finish" in outcome.envelope.text
    assert next(told for _, told in bench.journal.finished_calls) == outcome


@pytest.mark.requirement("runner:deadline")
async def test_a_call_may_ask_for_less_time_than_its_tool_has_but_not_for_more(project: Path) -> None:
    bench = Bench(project, Endless(), timeout_s=0.05)
    for asked in (0.01, 3600.0):
        call = ToolCall(id="c1", tool="Fake", timeout_s=asked)
        outcome = await asyncio.wait_for(bench.runner.settle(call), WAIT_S)
        assert outcome.envelope.error is not None
        assert f"within {min(asked, 0.05):g} s" in outcome.envelope.error.message


@pytest.mark.requirement("runner:deadline", "runner:cancel")
async def test_blocking_work_is_stopped_at_its_next_checkpoint(project: Path) -> None:
    began, ended = threading.Event(), threading.Event()

    async def spins(call: ToolCall, checkpoint: Checkpoint) -> Result:
        def work() -> Result:
            began.set()
            try:
                while True:
                    checkpoint()
            finally:
                ended.set()

        return await in_thread(work)

    bench = Bench(project, spins, timeout_s=0.05)
    outcome = await asyncio.wait_for(bench.runner.settle(bench.call()), WAIT_S)
    assert outcome.envelope.error is not None
    assert outcome.envelope.error.code is ErrorCode.TIMEOUT
    assert ended.wait(WAIT_S) or not began.is_set()  # a busy machine may be late to start it


@pytest.mark.requirement("runner:cancel")
async def test_a_cancelled_call_ends_as_cancelled_and_its_tool_is_stopped(project: Path) -> None:
    endless = Endless()
    bench = Bench(project, endless)
    running = asyncio.create_task(bench.runner.settle(bench.call()))
    await asyncio.wait_for(endless.started.wait(), WAIT_S)
    assert bench.runner.cancel("c1")
    outcome = await asyncio.wait_for(running, WAIT_S)
    assert outcome.envelope.error == Fault(ErrorCode.EXECUTION_ERROR, "Fake was cancelled before it finished.")
    assert outcome.envelope.context["reason"] == "CANCELLED"
    assert endless.stopped.is_set()
    assert not bench.runner.cancel("c1")


@pytest.mark.requirement("runner:cancel", "runner:journal")
async def test_when_the_waiting_task_is_cancelled_the_tool_stops_and_the_journal_hears_of_it(project: Path) -> None:
    endless = Endless()
    bench = Bench(project, endless)
    running = asyncio.create_task(bench.runner.settle(bench.call()))
    await asyncio.wait_for(endless.started.wait(), WAIT_S)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(running, WAIT_S)
    assert endless.stopped.is_set()
    [(_, outcome)] = bench.journal.finished_calls
    assert outcome.envelope.context["reason"] == "CANCELLED"


class Holding(SqliteStore):
    """Keeps whoever commits waiting when others can see it already."""

    def __init__(self, file: Path, commit: int) -> None:
        super().__init__(file)
        self._left, self.seen, self.let_go = commit, asyncio.Event(), asyncio.Event()

    async def commit(self, records: Sequence[Record], events: Sequence[NewEvent] = (), *, lasting: bool = True) -> bool:
        committed = await super().commit(records, events, lasting=lasting)
        self._left -= 1
        if not self._left:
            self.seen.set()
            await self.let_go.wait()
        return committed


@pytest.mark.requirement("runner:cancel", "runner:journal")
@pytest.mark.parametrize(("commit", "state"), [(1, "cancelled"), (2, "success")])
async def test_a_call_cancelled_while_the_journal_is_written_ends_there_as_it_ended(
    project: Path, tmp_path: Path, commit: int, state: str
) -> None:
    store = Holding(tmp_path / "state.db", commit)
    journal = Journal(store, FakeClock(), owner="me", mask=Mask())
    runner = Runner(
        Registry([FakeTool(says, risk=Risk.WRITE)]), root=str(project), clock=FakeClock(), journal=journal, mask=Mask()
    )
    running = asyncio.create_task(runner.settle(ToolCall(id="c1", tool="Fake", origin=Origin.CHAT)))
    async with asyncio.timeout(WAIT_S):
        await store.seen.wait()
        running.cancel()
        store.let_go.set()
        with pytest.raises(asyncio.CancelledError):
            await running
    (record,) = await journal.page(Query(), limit=10)
    await store.close()
    assert record.state == state


@pytest.mark.requirement("runner:cancel", "runner:journal")
def test_a_call_that_the_end_of_the_event_loop_cuts_off_ends_as_cancelled(project: Path) -> None:
    endless = Endless()
    bench = Bench(project, endless)

    async def leaves() -> asyncio.Task[object]:
        left = asyncio.create_task(bench.runner.settle(bench.call()))
        await asyncio.wait_for(endless.started.wait(), WAIT_S)
        return left

    assert asyncio.run(leaves()).cancelled()
    [(_, outcome)] = bench.journal.finished_calls
    assert outcome.envelope.context["reason"] == "CANCELLED"


@pytest.mark.requirement("runner:cancel", "runner:journal")
async def test_what_a_tool_has_done_is_journalled_when_nobody_waits_for_it_any_more(project: Path) -> None:
    begun = asyncio.Event()

    async def wrote(call: ToolCall, checkpoint: Checkpoint) -> Result:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return Result(data={}, text="Written.")  # too late to stop
        raise AssertionError("nobody sets the event")

    bench = Bench(project, wrote)
    running = asyncio.create_task(bench.runner.settle(bench.call()))
    await asyncio.wait_for(begun.wait(), WAIT_S)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(running, WAIT_S)
    assert [told.envelope.text for _, told in bench.journal.finished_calls] == ["Written."]


@pytest.mark.requirement("runner:cancel", "runner:journal")
async def test_a_tool_that_is_cancelled_from_within_ends_as_cancelled(project: Path) -> None:
    async def gives_up(call: ToolCall, checkpoint: Checkpoint) -> Result:
        raise asyncio.CancelledError

    bench = Bench(project, gives_up)
    outcome = await asyncio.wait_for(bench.runner.settle(bench.call()), WAIT_S)
    assert outcome.envelope.context["reason"] == "CANCELLED"
    assert [told for _, told in bench.journal.finished_calls] == [outcome]


@pytest.mark.requirement("runner:journal")
async def test_the_journal_gets_each_call_once_before_and_once_after_it_ran(project: Path) -> None:
    bench = Bench(project, says)
    calls = [bench.call(text="a"), bench.call("Nothing"), bench.call(text=5)]
    outcomes = [await bench.runner.settle(call) for call in calls]
    assert bench.journal.started_calls == calls
    assert bench.journal.finished_calls == list(zip(calls, outcomes, strict=True))


@pytest.mark.requirement("envelope:context:params-input")
async def test_params_input_is_exactly_what_the_caller_sent(project: Path) -> None:
    bench = Bench(project, says)
    outcome = await bench.runner.settle(bench.call(TEXT="5"))
    assert outcome.envelope.context["params_input"] == {"TEXT": "5"}
    assert outcome.arguments == {"text": "5"}


@pytest.mark.requirement("envelope:context:params-masked")
async def test_secrets_in_params_input_are_masked(project: Path) -> None:
    bench = Bench(
        project, says, parameters={"type": "object", "properties": {"text": {}, "api_key": {}, "maxTokens": {}}}
    )
    sent: dict[str, Any] = {"text": ["a top-secret-value here"], "api_key": "k-1", "maxTokens": 5}
    outcome = await bench.runner.settle(bench.call(**sent))
    assert outcome.envelope.context["params_input"] == {
        "text": ["a [masked] here"],
        "api_key": "[masked]",
        "maxTokens": 5,
    }
    assert outcome.arguments == sent


@pytest.mark.requirement("params:types")
async def test_arguments_that_json_cannot_carry_are_refused(project: Path) -> None:
    bench = Bench(project, says)
    for value in (b"bytes", float("inf"), "\ud800", object()):
        outcome = await bench.runner.settle(bench.call(text=value))
        assert outcome.envelope.error is not None
        assert outcome.envelope.error.code is ErrorCode.INVALID_PARAM
        json.dumps(outcome.envelope.to_dict()).encode()


@pytest.mark.requirement("items:some-failed", "batch:order")
async def test_a_batch_goes_on_after_a_failed_item_and_is_partial(project: Path) -> None:
    bench = Bench(project, says, splits_batches=True)
    outcome = await bench.runner.settle(bench.call(text2="b", text1="a", text3=5))
    assert outcome.envelope.status is Status.PARTIAL
    assert outcome.envelope.data["results"] == [{"said": "a"}, {"said": "b"}, {}]
    (failed,) = cast("list[dict[str, Any]]", outcome.envelope.data["failed_items"])
    assert (failed["item"], failed["code"]) == ("3", "INVALID_PARAM")
    assert failed["message"] == "Fake cannot run with these arguments: 'text': expected a string, got 5."
    assert outcome.envelope.text.startswith("Batch of 3 finished: 2 succeeded, 1 failed.")
    assert [item.outcome.envelope.status for item in outcome.batch] == [Status.SUCCESS, Status.SUCCESS, Status.ERROR]


@pytest.mark.requirement("items:all-failed")
async def test_a_batch_whose_items_all_failed_is_an_error(project: Path) -> None:
    bench = Bench(project, says, splits_batches=True)
    outcome = await bench.runner.settle(bench.call(text1=1, text2=2))
    assert outcome.envelope.status is Status.ERROR
    assert outcome.envelope.error is not None
    assert outcome.envelope.error.code is ErrorCode.INVALID_PARAM


@pytest.mark.requirement("batch:single")
async def test_a_tool_that_does_not_split_batches_gets_them_unchanged(project: Path) -> None:
    parameters = {"type": "object", "properties": {"text1": {"type": "string"}, "text": {"type": "string"}}}
    bench = Bench(project, says, parameters=parameters)
    outcome = await bench.runner.settle(bench.call(text1="a", text="b"))
    assert outcome.arguments == {"text1": "a", "text": "b"}


@pytest.mark.requirement("dialect:vcp:batch:writes")
async def test_items_of_a_writing_tool_are_marked_as_writes(project: Path) -> None:
    bench = Bench(project, says, splits_batches=True, risk=Risk.WRITE)
    outcome = await bench.runner.settle(bench.call(text1="a"))
    assert [item.reads for item in outcome.batch] == [False]


@pytest.mark.requirement("dialect:vcp:batch:reads", "dialect:vcp:batch:writes")
async def test_a_tool_that_reads_and_writes_says_which_of_its_items_are_answers(project: Path) -> None:
    async def either(call: ToolCall, checkpoint: Checkpoint) -> Result:
        return Result(data={}, text="Done.", extras=Extras(reads=call.arguments["text"] == "read"))

    bench = Bench(project, either, splits_batches=True, risk=Risk.WRITE)
    outcome = await bench.runner.settle(bench.call(text1="read", text2="write"))
    assert [item.reads for item in outcome.batch] == [True, False]


@pytest.mark.requirement("runner:bound", "truncation:before-dialects", "saved:first", "truncation:full")
async def test_the_shown_outcome_is_cut_and_the_full_one_is_stored_whole(project: Path) -> None:
    async def talks(call: ToolCall, checkpoint: Checkpoint) -> Result:
        return Result(
            data={}, text="line\n" * 5000, extras=Extras(parts=(Text("line\n" * 5000), Media("image/png", b"x")))
        )

    bench = Bench(project, talks)
    call = bench.call()
    outcome = await bench.runner.settle(call)
    shown = bench.showing.to_shown(call, outcome)
    assert outcome.envelope.data == {"content": [{"type": "image", "mime": "image/png", "size": 1, "name": ""}]}
    assert shown.envelope.status is Status.PARTIAL
    truncation = shown.envelope.data["truncation"]
    assert isinstance(truncation, dict)
    assert truncation["full_output_path"] == "tool-output/tool_20261115_093000_Fake.json"
    stored = json.loads((project / "tool-output/tool_20261115_093000_Fake.json").read_text())
    assert stored == outcome.envelope.to_dict()
    assert shown.envelope.context["full_text_path"] == "tool-output/tool_20261115_093000_Fake.txt"
    assert (project / "tool-output/tool_20261115_093000_Fake.txt").read_text() == "line\n" * 5000
    assert shown.extras.parts == (Text(shown.envelope.text), Text("line\n" * 2000), Media("image/png", b"x"))


@pytest.mark.requirement("envelope:context:params-cut")
async def test_long_arguments_are_cut_only_in_what_the_model_sees(project: Path) -> None:
    bench = Bench(project, says)
    call = bench.call(text="é" * 3000)
    outcome = await bench.runner.settle(call)
    outcome = type(outcome)(envelope=outcome.envelope, root=outcome.root)
    assert outcome.envelope.context["params_input"] == {"text": "é" * 3000}
    shown = bench.showing.to_shown(call, outcome)
    assert shown.envelope.context["params_input"] == {"text": "é" * 2048 + "… [cut: 6000 bytes in all]"}


@pytest.mark.requirement("saved:first", "truncation:text")
async def test_when_the_whole_cannot_be_stored_the_shown_text_says_why(project: Path) -> None:
    async def talks(call: ToolCall, checkpoint: Checkpoint) -> Result:
        return Result(data={}, text="x" * (MAX_BYTES + 1))

    (project / "tool-output").write_text("in the way")
    bench = Bench(project, talks)
    call = bench.call()
    shown = bench.showing.to_shown(call, await bench.runner.settle(call))
    truncation = shown.envelope.data["truncation"]
    assert isinstance(truncation, dict)
    assert truncation["full_output_path"] is None
    assert "full_text_path" not in shown.envelope.context
    assert "could not be stored (Not a directory)" in shown.envelope.text


@pytest.mark.requirement("truncation:direction")
async def test_what_is_kept_of_a_long_text_is_the_owners_choice(project: Path) -> None:
    async def counts(call: ToolCall, checkpoint: Checkpoint) -> Result:
        return Result(data={}, text="\n".join(map(str, range(3000))))

    bench = Bench(project, counts)
    call = bench.call()
    showing = ModelView(Outputs(Workspace(project)), bench.clock, mask=Mask(), direction=Direction.TAIL)
    shown = showing.to_shown(call, await bench.runner.settle(call))
    assert str(shown.envelope.data["preview"]).startswith("1000\n")
    assert str(shown.envelope.data["preview"]).endswith("\n2999")


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.requirement("runner:catch", "runner:one-way")
@settings(max_examples=150, deadline=None)
@given(tool=st.sampled_from(["Fake", "Other"]) | st.text(), arguments=st.dictionaries(st.text(), _json, max_size=4))
def test_any_call_at_all_ends_in_one_envelope_that_json_can_write(
    tmp_path_factory: pytest.TempPathFactory, tool: str, arguments: dict[str, object]
) -> None:
    bench = Bench(tmp_path_factory.mktemp("p"), says, splits_batches=True)
    outcome = asyncio.run(bench.runner.settle(ToolCall(id="c", tool=tool, arguments=arguments)))  # type: ignore[arg-type]
    json.dumps(outcome.envelope.to_dict(), allow_nan=False).encode()
    assert len(bench.journal.finished_calls) == 1


@pytest.mark.requirement("runner:cancel")
async def test_a_cancelled_batch_ends_the_item_that_runs_and_starts_no_other(project: Path) -> None:
    endless = Endless()
    bench = Bench(project, endless, splits_batches=True)
    running = asyncio.create_task(bench.runner.settle(bench.call(text1="a", text2="b", text3="c")))
    await asyncio.wait_for(endless.started.wait(), WAIT_S)
    assert bench.runner.cancel("c1")
    outcome = await asyncio.wait_for(running, WAIT_S)
    assert [item.outcome.envelope.context.get("reason") for item in outcome.batch] == ["CANCELLED"] * 3
    assert outcome.envelope.status is Status.ERROR


@pytest.mark.requirement("envelope:context:params-masked", "params:types")
async def test_arguments_that_cannot_be_echoed_leak_nothing_and_break_nothing(project: Path) -> None:
    bench = Bench(project, says)
    deep: list[object] = []
    for _ in range(5000):
        deep = [deep]
    for value in (10**5000, deep, {"password": "hunter2222", "x": float("nan")}):
        outcome = await bench.runner.settle(bench.call(text=value))
        assert outcome.envelope.error is not None
        assert "hunter2222" not in json.dumps(outcome.envelope.to_dict())


@pytest.mark.requirement("runner:cancel")
async def test_a_call_that_waits_for_permission_can_be_cancelled_and_the_question_with_it(project: Path) -> None:
    asked, gone = asyncio.Event(), asyncio.Event()

    async def permit(call: ToolCall, spec: ToolSpec) -> ToolCall:
        asked.set()
        try:
            await asyncio.Event().wait()
            return call
        finally:
            gone.set()

    runner = Runner(
        Registry([FakeTool(says)]), root=str(project), clock=FakeClock(),
        journal=ListJournal(), mask=Mask(), permit=permit,
    )  # fmt: skip
    settling = asyncio.ensure_future(runner.settle(ToolCall(id="call_1", tool="Fake", origin=Origin.CHAT)))
    async with asyncio.timeout(60):
        await asked.wait()
        assert runner.cancel("call_1")
        outcome = await settling
    assert outcome.envelope.context["reason"] == "CANCELLED"
    assert gone.is_set()
