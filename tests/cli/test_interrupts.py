"""Ctrl-C at any moment of a call, and a detached call that fails after it has answered."""

import asyncio
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, cast

import pytest

from toolyard.cli.chat_client import ChatClient
from toolyard.cli.commands.call import CallRequest, StopSignals, call_through_server
from toolyard.cli.commands.chat import Screen, _Conversation
from toolyard.cli.common_options import CommonOptions
from toolyard.config import Config
from toolyard.web.server.running_server import CallResponse, ServerClient

WAIT_S = 60


@pytest.mark.requirement("runner:cancel")
async def test_a_stop_that_came_while_a_call_became_a_task_stops_the_task() -> None:
    calls, tasks, others = asyncio.Event(), asyncio.Event(), asyncio.Event()
    stops = StopSignals(calls.set)
    signal.raise_signal(signal.SIGTERM)
    await asyncio.wait_for(calls.wait(), WAIT_S)
    stops.set_handler(tasks.set)
    assert tasks.is_set()
    StopSignals(calls.set).set_handler(others.set)
    assert not others.is_set()
    signal.raise_signal(signal.SIGINT)
    await asyncio.wait_for(others.wait(), WAIT_S)


@pytest.mark.requirement("runner:cancel", "cli:exit:failure")
async def test_a_stop_that_comes_before_the_server_has_the_call_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolyard.cli.commands.call._RETRY_S", 0.01)
    request, result = threading.Semaphore(0), list[tuple[str, int]]()

    class Slow:
        """The first cancel comes to it before the call."""

        def check(self) -> None: ...

        def call(self, *_: Any, **__: Any) -> CallResponse:
            signal.raise_signal(signal.SIGINT)
            assert all(request.acquire(timeout=WAIT_S) for _ in range(2))
            return CallResponse(value={"status": "error"}, failed=True)

        def cancel(self, _: str) -> None:
            request.release()

    async with asyncio.timeout(WAIT_S):
        code = await call_through_server(
            cast("ServerClient", Slow()),
            CallRequest(CommonOptions(quiet=True), "Slow", {}, (), "envelope", shown=False, force=False),
            cast("Config", None),
            lambda text, code: result.append((text, code)),
            wait=True,
        )  # fmt: skip
    assert (code, [one for _, one in result]) == (1, [1])


@pytest.mark.requirement("cli:chat")
async def test_ctrl_c_before_whoever_answers_has_the_question_stops_the_reply(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolyard.cli.commands.chat._RETRY_S", 0.01)
    request = asyncio.Semaphore(0)

    class Slow:
        """The first interrupt comes to it before the question."""

        async def interrupt(self) -> None:
            request.release()

    async def reply() -> None:
        await request.acquire()
        await request.acquire()

    conversation = _Conversation(cast("ChatClient", Slow()), Screen({}), "tour")
    conversation._turn = turn = asyncio.create_task(reply())
    conversation._handle_interrupt()
    await asyncio.wait_for(turn, WAIT_S)
    assert conversation._stopping is not None
    await asyncio.wait_for(conversation._stopping, WAIT_S)


DETACHED = """
import os, sys
from toolyard.cli.detach import run_detached
from toolyard.errors import ToolyardError

async def work(say, *, wait):
    say("the answer", 3)
    files = [open(f"{sys.argv[1]}/{number}", "w") for number in range(8)]  # one of them has the number of the pipe
    raise ToolyardError("too late")

code = run_detached(work)
os.wait()
sys.exit(code)
"""


@pytest.mark.requirement("task:call-waits")
def test_a_detached_call_that_fails_after_its_answer_writes_to_nobody_elses_file(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", DETACHED, tmp_path], capture_output=True, text=True, timeout=WAIT_S, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (3, "the answer\n", "")
    assert [file.read_text() for file in sorted(tmp_path.iterdir())] == [""] * 8
