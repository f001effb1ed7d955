"""The end of every program of the zoo, with real processes."""

import asyncio
import json
import os
import shutil
from collections.abc import AsyncIterator

import pytest

from tests.plugins.children import LINUX, Keeper, catch_failure, keeper
from tests.waiting import run_loop_once, wait_until
from toolyard.plugins.process.child import run_child
from toolyard.plugins.process.child_report import require_answer
from toolyard.plugins.process.process_output import HEAD, TAIL, StderrRing
from toolyard.protocol.envelope import ErrorCode, Reason
from toolyard.protocol.manifests.manifest import Limits

MIB = 2**20


@pytest.fixture
async def zoo() -> AsyncIterator[Keeper]:
    async with keeper() as opened:
        yield opened


@pytest.mark.requirement("s:S-82", "plugin:stdout")
@pytest.mark.parametrize("program", ["echo.py", "echo.sh"])
async def test_a_plugin_gets_its_arguments_as_json_on_stdin_and_nowhere_else(zoo: Keeper, program: str) -> None:
    arguments = {"text": "$(touch x); `id` && \"quoted\" '单' \n", "n": [1, 2.5, None]}
    ended = await zoo.run(program, stdin=json.dumps(arguments).encode())
    assert require_answer("Echo", ended) == {"status": "success", "result": arguments}
    assert (ended.warnings, ended.exit_code, ended.signal) == ((), 0, None)


@pytest.mark.skipif(not shutil.which("node"), reason="needs node")
@pytest.mark.requirement("s:S-82")
async def test_a_node_program_is_a_plugin(zoo: Keeper) -> None:
    node = str(shutil.which("node"))
    child = await zoo.starter.spawn(zoo.launch(node, "echo.js"), {})
    ended = await run_child(child, b'{"a": 1}', children=zoo.children, limits=Limits())
    assert require_answer("Echo", ended) == {"status": "success", "result": {"a": 1}}


@pytest.mark.skipif(not shutil.which("node"), reason="needs node")
@pytest.mark.requirement("r:R19")
@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("throw new TypeError('no key')", "TypeError: no key"),
        ("Promise.reject(new Error('no key'))", "Error: no key"),
        ("console.error('no key'); process.exit(3)", "no key"),
    ],
)
async def test_a_crash_of_a_node_program_is_told_by_its_error(zoo: Keeper, fault: str, words: str) -> None:
    child = await zoo.starter.spawn(zoo.launch(str(shutil.which("node")), "-e", fault), {})
    ended = await run_child(child, b"{}", children=zoo.children, limits=Limits())
    failure = catch_failure(require_answer, "Node", ended)
    assert (failure.reason, failure.message.partition("ends with: ")[2]) == (Reason.CRASHED, words)


@pytest.mark.requirement("r:R10", "r:R11", "p:P4")
@pytest.mark.parametrize("program", ["sleeps_forever.py", "ignores_signals.py"])
async def test_a_cancelled_run_returns_at_once_and_the_child_is_killed_behind_it(zoo: Keeper, program: str) -> None:
    ring = StderrRing()
    run = asyncio.create_task(zoo.run(program, stderr=ring))
    await wait_until(lambda: bool(zoo.list_alive()) and (bool(ring.total) or program == "sleeps_forever.py"))
    run.cancel()
    for _ in range(10):  # rounds of the loop, in which no time passes: it waits for nothing
        await run_loop_once()
    assert run.cancelled()
    assert await zoo.wait_all_gone()


@pytest.mark.requirement("r:R10")
async def test_a_child_gets_sigterm_first_and_may_end_by_itself(zoo: Keeper) -> None:
    child = await zoo.spawn("sleeps_forever.py")
    await wait_until(lambda: bool(zoo.list_alive()))
    await zoo.children.stop(child, 30.0)
    assert await child.wait() == -15


@pytest.mark.requirement("r:R13", "p:P4")
async def test_a_background_process_that_holds_stdout_delays_the_answer_by_the_drain_only(zoo: Keeper) -> None:
    ended = await asyncio.wait_for(zoo.run("leaves_stdout_open.py", drain_s=0.1), 60)
    assert require_answer("Held", ended)["result"] == "done"
    assert await zoo.wait_all_gone()


@pytest.mark.requirement("plugin:answered", "p:P4")
async def test_an_answer_counts_after_silence_and_the_process_is_stopped_later(zoo: Keeper) -> None:
    ended = await zoo.run("answers_and_stays.py", silence_s=0.2, linger_s=0.5)
    assert require_answer("Stays", ended)["result"] == "done"
    assert (ended.exit_code, ended.signal) == (None, None)
    assert ended.warnings == (
        "It answered but did not exit: the answer counts, and its process is stopped 10 s later.",
    )
    assert zoo.list_alive()
    assert await zoo.wait_all_gone()


@pytest.mark.requirement("plugin:answered", "p:P4")
async def test_the_end_of_the_host_does_not_wait_for_who_lingers() -> None:
    async with keeper() as zoo:
        await zoo.run("answers_and_stays.py", silence_s=0.2, linger_s=600.0)
        assert zoo.list_alive()
    assert not zoo.list_alive()


@pytest.mark.requirement("plugin:answered")
async def test_of_one_that_never_falls_silent_the_answer_counts_at_the_limit(zoo: Keeper) -> None:
    ended = await zoo.run("answers_and_stays.py", "babbles", silence_s=600.0, limit_s=1.0, linger_s=0.1)
    assert require_answer("Babbles", ended)["result"] == "done"
    assert await zoo.wait_all_gone()


@pytest.mark.requirement("plugin:answered", "r:R10")
async def test_without_an_answer_the_limit_is_a_timeout(zoo: Keeper) -> None:
    with pytest.raises(TimeoutError):
        await zoo.run("sleeps_forever.py", silence_s=0.1, limit_s=0.5)
    assert await zoo.wait_all_gone()


@pytest.mark.requirement("r:R14")
async def test_a_flood_on_stdout_ends_the_call_and_the_child(zoo: Keeper) -> None:
    ended = await zoo.run("floods_stdout.py", limits=Limits(stdout_bytes=MIB))
    failure = catch_failure(require_answer, "Flood", ended)
    assert (failure.reason, failure.code) == (Reason.OUTPUT_TOO_LARGE, ErrorCode.EXECUTION_ERROR)
    assert "1 MiB" in failure.message
    assert ended.stdout_bytes <= MIB
    assert await zoo.wait_all_gone()


@pytest.mark.requirement("r:R15")
async def test_a_flood_on_stderr_blocks_nothing_and_is_kept_at_both_ends(zoo: Keeper) -> None:
    ended = await zoo.run("floods_stderr.py", "16")
    assert require_answer("Loud", ended)["result"] == "done"
    assert ended.stderr.total == 16 * MIB + len("first line\n\nlast line\n")
    assert ended.stderr.head.startswith("first line\n")
    assert ended.stderr.tail.endswith("\nlast line\n")
    assert (len(ended.stderr.head), len(ended.stderr.tail)) == (HEAD, TAIL)
    assert ended.stderr.dropped_bytes == ended.stderr.total - HEAD - TAIL


@pytest.mark.requirement("r:R16")
async def test_floods_in_every_direction_at_once_do_not_lock_up(zoo: Keeper) -> None:
    limits = Limits(stdout_bytes=100 * MIB)
    ended = await asyncio.wait_for(zoo.run("floods_both.py", "8", stdin=b"z" * 50 * MIB, limits=limits), 60)
    assert require_answer("Both", ended)["result"] == "done"
    assert ended.stderr.total == 8 * MIB


@pytest.mark.requirement("r:R17")
async def test_a_closed_stdin_is_no_error(zoo: Keeper) -> None:
    ended = await zoo.run("closes_stdin.py", stdin=b"z" * 5 * MIB)
    assert require_answer("Deaf", ended)["result"] == "done"
    assert ended.warnings == ()


@pytest.mark.requirement("r:R18")
async def test_invalid_utf8_in_an_answer_makes_it_partial_and_says_where(zoo: Keeper) -> None:
    ended = await zoo.run("bad_utf8.py")
    assert require_answer("Cafe", ended) == {"status": "partial", "result": "caf\ufffd"}
    assert ended.bad_utf8_at == 36
    assert ended.warnings == ("Byte 36 of stdout is not UTF-8; what could not be read was replaced.",)


@pytest.mark.requirement("r:R18")
async def test_output_that_is_no_text_fails_with_its_bytes_in_hex(zoo: Keeper) -> None:
    failure = catch_failure(require_answer, "Png", await zoo.run("not_text.py"))
    assert failure.reason is Reason.INVALID_OUTPUT
    assert failure.data["stdout_hex"] == "89 50 4e 47 0d 0a 1a 0a 00 00 ff fe"


@pytest.mark.requirement("r:R19")
@pytest.mark.parametrize(
    ("how", "reason"), [("0", Reason.INVALID_OUTPUT), ("1", Reason.CRASHED), ("signal", Reason.CRASHED)]
)
async def test_half_an_answer_is_none_and_shows_what_there_was(zoo: Keeper, how: str, reason: Reason) -> None:
    ended = await zoo.run("half_an_answer.py", how)
    failure = catch_failure(require_answer, "Half", ended)
    assert failure.reason is reason
    stdout, stderr = str(failure.data["stdout"]), str(failure.data["stderr"])
    assert (len(stdout), len(stderr)) == (2048, 2048)
    assert stdout.startswith('{"status": "success"')
    assert stderr.endswith("out of words\n")
    if how == "signal":
        assert "signal 11 (SIGSEGV)" in failure.message


@pytest.mark.requirement("r:R20", "plugin:stdout")
async def test_log_lines_around_an_answer_are_a_warning_that_shows_the_first(zoo: Keeper) -> None:
    ended = await zoo.run("chatty.py")
    assert require_answer("Chatty", ended) == {"status": "success", "result": "done"}
    (warning,) = ended.warnings
    assert warning.startswith("STDOUT_NOISE: ")
    assert "loading model {not json" in warning
    assert "bye {" in ended.noise
    assert "no status" in ended.noise


@pytest.mark.requirement("r:R21")
async def test_answers_of_every_layout_are_understood(zoo: Keeper) -> None:
    pretty, braces, long, odd = await asyncio.gather(
        *(zoo.run(f"{name}.py") for name in ("pretty", "braces_in_strings", "one_long_line", "not_a_number"))
    )
    assert require_answer("Pretty", pretty)["result"] == {"list": [1, 2]}
    assert require_answer("Braces", braces)["result"] == 'if (x) {y} else } \\" {"status": "error"} '
    assert require_answer("Long", long)["result"] == "{}" * 5_000_000
    assert require_answer("Odd", odd) == {"status": "success", "mean": None, "most": None, "twice": 2}
    assert odd.warnings[0].startswith("NaN is not JSON")


@pytest.mark.requirement("r:R21")
async def test_an_answer_nested_too_deep_is_invalid(zoo: Keeper) -> None:
    failure = catch_failure(require_answer, "Deep", await zoo.run("too_deep.py"))
    assert failure.reason is Reason.INVALID_OUTPUT
    assert "200 levels" in failure.message


@pytest.mark.requirement("r:R22")
async def test_of_two_answers_the_last_counts_with_a_warning(zoo: Keeper) -> None:
    ended = await zoo.run("two_answers.py")
    assert require_answer("Twice", ended)["result"] == "second"
    assert ended.warnings == ("2 JSON objects with a status were printed; the last one was used.",)


@pytest.mark.requirement("r:R23")
@pytest.mark.parametrize(
    ("program", "status", "code"),
    [("reports_error_exits_0.py", "error", 0), ("reports_success_exits_1.py", "success", 1)],
)
async def test_the_report_counts_and_not_the_exit_code(zoo: Keeper, program: str, status: str, code: int) -> None:
    ended = await zoo.run(program)
    assert require_answer("Odd", ended)["status"] == status
    assert ended.warnings == (f"It reported {_article(status)} but exited with code {code}; the report counts.",)


def _article(status: str) -> str:
    return "an error" if status == "error" else status


@pytest.mark.requirement("r:R24")
@pytest.mark.parametrize("code", ["0", "3"])
async def test_silence_is_no_output(zoo: Keeper, code: str) -> None:
    failure = catch_failure(require_answer, "Silent", await zoo.run("silent.py", code))
    assert failure.reason is Reason.NO_OUTPUT
    assert failure.hint


@pytest.mark.requirement("r:R07")
async def test_a_killed_plugin_fails_with_the_signal_and_the_likely_cause(zoo: Keeper) -> None:
    failure = catch_failure(require_answer, "Big", await zoo.run("killed.py"))
    assert (failure.reason, failure.code) == (Reason.CRASHED, ErrorCode.EXECUTION_ERROR)
    assert "signal 9 (SIGKILL), possibly because of a memory limit" in failure.message


@pytest.mark.requirement("r:R28")
async def test_a_missing_dependency_is_named(zoo: Keeper) -> None:
    package = catch_failure(require_answer, "Needy", await zoo.run("needs_a_package.py"))
    assert package.reason is Reason.START_FAILED
    assert package.message == "Needy could not run: it needs the Python package no_such_package_here."
    assert "pip install no_such_package_here" in package.hint
    needed = catch_failure(require_answer, "Needy", await zoo.run("needs_a_command.sh"))
    assert needed.reason is Reason.START_FAILED
    assert "no-such-command-here was not found" in needed.message


@pytest.mark.requirement("r:R28")
@pytest.mark.parametrize("program", ["not_there.py", "not_there.sh"])
async def test_a_missing_entry_file_is_named(zoo: Keeper, program: str) -> None:
    failure = catch_failure(require_answer, "Gone", await zoo.run(program))
    assert failure.reason is Reason.START_FAILED
    assert f"{program} is not there" in failure.message


@pytest.mark.skipif(not shutil.which("node"), reason="needs node")
@pytest.mark.requirement("r:R28")
async def test_a_missing_node_module_is_named(zoo: Keeper) -> None:
    child = await zoo.starter.spawn(zoo.launch(str(shutil.which("node")), "needs_a_module.js"), {})
    failure = catch_failure(
        require_answer, "Needy", await run_child(child, b"{}", children=zoo.children, limits=Limits())
    )
    assert failure.reason is Reason.START_FAILED
    assert failure.message == "Needy could not run: it needs the Node package no-such-module-here."


@pytest.mark.requirement("p:P5")
async def test_of_300_calls_at_32_in_parallel_no_answer_is_lost(zoo: Keeper) -> None:
    slots = asyncio.Semaphore(32)

    async def one(number: int) -> object:
        async with slots:
            return require_answer("Echo", await zoo.run("echo.sh", stdin=b'{"n": %d}' % number))["result"]

    assert await asyncio.gather(*map(one, range(300))) == [{"n": number} for number in range(300)]


@pytest.mark.skipif(not LINUX, reason="needs /proc")
@pytest.mark.requirement("p:P5")
async def test_no_descriptor_is_left_open(zoo: Keeper) -> None:
    await zoo.run("echo.sh")
    before = set(os.listdir("/proc/self/fd"))
    for _ in range(20):
        await zoo.run("echo.sh")
    await wait_until(lambda: set(os.listdir("/proc/self/fd")) <= before)  # a sweep may be reading
