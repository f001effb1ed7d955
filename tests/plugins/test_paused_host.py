"""A host that stood still (a stopped process, a suspended machine) reads what has come before it judges a limit."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.plugins.children import LINUX, Keeper, keeper
from tests.plugins.folders import make_plugin
from tests.plugins.test_asynchronous import DONE, add, wait_ended
from tests.plugins.test_warm_same import PER_CALL, folder_with, launch_of, make_warm, starters
from tests.plugins.yards import PluginYard
from tests.waiting import run_loop_once, wait_until, wait_until_blocking
from tests.web.server_process import start_server
from toolyard.plugins.long_work.task_child import AsyncChild
from toolyard.plugins.process.child import RunTimes, run_child
from toolyard.plugins.process.child_report import ChildReport
from toolyard.plugins.process.launch import ChildProcess
from toolyard.process_numbers import has_ended
from toolyard.protocol.manifests.manifest import Limits
from toolyard.protocol.records.task_record import TaskState

pytestmark = [
    pytest.mark.requirement("plugin:paused-host"),
    pytest.mark.skipif(not LINUX, reason="other systems tell of an exit by a thread"),
]
LIMIT_S = 0.3
ECHO = 'import sys\nprint(\'{"status": "success", "result": "in time"}\')'
WAITS = """
import json, os, sys, time
if json.load(sys.stdin).get("wait"):
    os.symlink(str(os.getpid()), "began")
    while not os.path.exists("finish"): time.sleep(0.01)
print('{"status": "success", "result": "in time"}')
"""


@pytest.fixture
async def zoo() -> AsyncIterator[Keeper]:
    async with keeper() as opened:
        yield opened


def stand_still_until_ended(pid: int, *, past_s: float) -> None:
    """Block the event loop, as a pause of its process does, until a child has ended and its limit is over."""
    loop = asyncio.get_running_loop()
    end = loop.time() + past_s
    wait_until_blocking(lambda: has_ended(pid) and loop.time() > end)


async def begin(zoo: Keeper, child: ChildProcess, limit_s: float | None) -> "asyncio.Task[ChildReport]":
    run = run_child(
        child, b'{"a": 1}', children=zoo.children, limits=Limits(), times=RunTimes(limit_s=limit_s, silence_s=60.0)
    )
    task = asyncio.create_task(run)
    await run_loop_once()  # its input is written
    return task


async def test_a_child_that_ended_while_its_host_stood_still_has_ended_in_time(zoo: Keeper) -> None:
    child = await zoo.spawn("echo.py")
    running = await begin(zoo, child, LIMIT_S)
    stand_still_until_ended(child.pid, past_s=LIMIT_S)
    report = await running
    assert (report.answer, report.exit_code, report.warnings) == ({"status": "success", "result": {"a": 1}}, 0, ())


async def test_a_child_that_ended_before_its_caller_gave_up_tells_its_answer(zoo: Keeper) -> None:
    child = await zoo.spawn("echo.py")
    running = await begin(zoo, child, None)
    stand_still_until_ended(child.pid, past_s=0)
    running.cancel()
    assert (await running).answer == {"status": "success", "result": {"a": 1}}


async def test_a_caller_that_gave_up_does_not_wait_for_whoever_holds_the_output(zoo: Keeper) -> None:
    child = await zoo.spawn("leaves_stdout_open.py")
    run = run_child(child, b"{}", children=zoo.children, limits=Limits(), times=RunTimes(drain_s=600.0))
    running = asyncio.create_task(run)
    await run_loop_once()
    stand_still_until_ended(child.pid, past_s=0)
    running.cancel()
    report = await asyncio.wait_for(running, 60)
    assert report.answer == {"status": "success", "result": "done"}


async def test_a_child_that_still_runs_when_the_host_goes_on_is_past_its_limit(zoo: Keeper) -> None:
    child = await zoo.spawn("sleeps_forever.py")
    running = await begin(zoo, child, LIMIT_S)
    end = asyncio.get_running_loop().time() + LIMIT_S
    wait_until_blocking(lambda: asyncio.get_running_loop().time() > end)
    with pytest.raises(TimeoutError):
        await running


async def test_the_exit_of_a_forked_child_is_waited_for_when_its_server_stood_still_too(tmp_path: Path) -> None:
    launch = launch_of(folder_with(tmp_path, "main.py", ECHO), sys.executable, "main.py")
    async with starters() as (children, _, warm):
        assert await make_warm(children, warm, launch)
        (server,) = warm.servers.pids
        child = await warm.spawn(launch, PER_CALL)
        os.kill(server, signal.SIGSTOP)
        running = asyncio.create_task(
            run_child(child, b"", children=children, limits=Limits(), times=RunTimes(limit_s=LIMIT_S))
        )
        await run_loop_once()
        stand_still_until_ended(child.pid, past_s=LIMIT_S)
        asyncio.get_running_loop().call_later(0.1, os.kill, server, signal.SIGCONT)
        report = await running
    assert (report.answer, report.exit_code) == ({"status": "success", "result": "in time"}, 0)


async def test_a_receipt_that_came_while_the_host_stood_still_counts(zoo: Keeper) -> None:
    child = AsyncChild(await zoo.spawn("receipt_then_dies.py"), b"{}", children=zoo.children, limits=Limits())
    with_limit = asyncio.create_task(asyncio.wait_for(child.wait_receipt(), LIMIT_S))
    await run_loop_once()
    stand_still_until_ended(child.pid, past_s=LIMIT_S)
    assert (await with_limit).answer is not None


async def test_a_callback_that_came_while_the_host_stood_still_ends_its_task(tmp_path: Path) -> None:
    async with PluginYard(tmp_path) as host:
        code = f"receipt()\nwait_for('go')\nopen('calling', 'x')\ncall_back({DONE!r})"
        folder = add(host, code, communication={"protocol": "stdio", "timeout": 3000})
        outcome = await host.call("Slow")
        loop = asyncio.get_running_loop()
        end = loop.time() + 3.5
        (folder / "go").touch()
        wait_until_blocking(lambda: (folder / "calling").exists() and loop.time() > end)
        assert (await wait_ended(host, outcome)).state is TaskState.SUCCEEDED


async def test_a_call_of_a_server_that_was_stopped_past_its_limit_has_the_answer_of_its_plugin(tmp_path: Path) -> None:
    folder = make_plugin(tmp_path / "given", "Waits", communication={"protocol": "stdio", "timeout": 2000})
    (folder / "main.py").write_text(WAITS)
    async with start_server(tmp_path, "--plugins", str(tmp_path / "given"), "--trust") as server:
        assert (await server.request("POST", "/v1/tools/Waits", {"wait": ""}))[1]["text"] == "in time"
        calling = asyncio.create_task(server.request("POST", "/v1/tools/Waits", {"wait": "yes"}))
        await wait_until((folder / "began").is_symlink)
        end = asyncio.get_running_loop().time() + 2.5
        plugin = int(os.readlink(folder / "began"))
        os.kill(server.process.pid, signal.SIGSTOP)
        (folder / "finish").touch()
        try:
            await wait_until(lambda: has_ended(plugin) and asyncio.get_running_loop().time() > end)
        finally:
            os.kill(server.process.pid, signal.SIGCONT)
        status, envelope = await calling
        server.process.terminate()  # in order, so that nothing of it is left to this process
        await asyncio.wait_for(server.process.wait(), 60)
    assert (status, envelope["status"], envelope["text"]) == (200, "success", "in time")
