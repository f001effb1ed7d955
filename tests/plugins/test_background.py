"""Work after the answer: stopped with a word, or a task when the owner of the plugin allows it."""

import asyncio
import os
import shutil
import signal
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import FakeClock
from tests.plugins.yards import PluginYard, entry
from tests.waiting import wait_until
from toolyard.config import load_config
from toolyard.plugins.authoring.lint import lint_plugin
from toolyard.plugins.process.process_output import LogStream
from toolyard.protocol.records.task_record import Task, TaskState
from toolyard.protocol.store import Query
from toolyard.protocol.tool import Outcome
from toolyard.yard.yard import Yard

# It answers at once; what it started writes its pid, and then a line for each tick until it is stopped.
WORKER = """
import os, signal, sys, time
out = sys.argv[1]
signal.signal(signal.SIGTERM, lambda *_: (open(out, "a").write("asked to end\\n"), sys.exit(0)))
open(out, "a").write(f"{os.getpid()}\\n")
for _ in range(int(sys.argv[2])):
    time.sleep(0.05)
print("noise on a pipe that somebody must read" * 1000, flush=True)
open(out, "a").write("done\\n")
"""
PYTHON = """
import json, subprocess, sys, time
said = json.load(sys.stdin)
subprocess.Popen([sys.executable, "worker.py", said["out"], said["ticks"]], start_new_session=said["session"] == "yes")
while not __import__("os").path.exists(said["out"]):
    time.sleep(0.01)
print(json.dumps({"status": "success", "result": "started"}))
"""
NODE = """
const { spawn } = require("child_process");
const fs = require("fs");
const said = JSON.parse(fs.readFileSync(0));
const child = spawn(process.env.PYTHON, ["worker.py", said.out, said.ticks], { detached: true, stdio: "ignore" });
child.unref();
const wait = setInterval(() => {
  if (!fs.existsSync(said.out)) return;
  clearInterval(wait);
  console.log(JSON.stringify({ status: "success", result: "started" }));
}, 10);
"""
# It answers and does not exit: a thread of its own works until it is let go on.
LATE_THREAD = """
import json, os, sys, threading, time
said = json.load(sys.stdin)
def work():
    while not os.path.exists(said["go"]):
        time.sleep(0.01)
    open(said["out"], "w").write("done")
threading.Thread(target=work).start()
print(json.dumps({"status": "success", "result": "started"}), flush=True)
"""
LONG = "100000"  # ticks: more than an hour


def add_starter(yards: PluginYard, code: str = PYTHON, **more: Any) -> Path:
    folder = yards.add("Starter", code, **more)
    (folder / "worker.py").write_text(WORKER)
    return folder


async def start(yards: PluginYard, out: Path, *, ticks: str = LONG, session: str = "yes") -> Outcome:
    return await yards.call("Starter", out=str(out), ticks=ticks, session=session)


def worker_pid(out: Path) -> int:
    return int(out.read_text().splitlines()[0])


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


async def background_task(yards: PluginYard, outcome: Outcome) -> Task:
    background = outcome.envelope.context["background"]
    assert isinstance(background, dict)
    task = await yards.yard.state.tasks.get(str(background["task"]))
    assert task is not None
    assert background["deadline"] == task.deadline
    return task


@pytest.mark.requirement("plugin:left-behind")
@pytest.mark.parametrize("session", ["yes", "no"])
async def test_work_after_the_answer_is_stopped_and_that_is_told(tmp_path: Path, session: str) -> None:
    async with PluginYard(tmp_path) as yards:
        add_starter(yards)
        out = yards.folder / "Starter" / "out"
        outcome = await start(yards, out, session=session)
        assert outcome.envelope.text.startswith("started")
        warnings = outcome.envelope.context["warnings"]
        assert isinstance(warnings, list)
        (warning,) = [str(one) for one in warnings if "went on after its answer" in str(one)]
        assert warning == (
            "Processes that went on after its answer were stopped: it may not work in the background. "
            "Its owner can let it go on: "
            f"{yards.yard.config.own_command.format('plugin allow', 'Starter', '--detached')}."
        )
        (note,) = [one for one in yards.yard.plugins.host.logs["Starter"].entries if one.stream is LogStream.NOTE]
        assert "were stopped" in note.text
        assert await yards.yard.state.tasks.page(Query(), limit=10) == []
        await wait_until(lambda: not is_alive(worker_pid(out)))
        assert "done" not in out.read_text()


@pytest.mark.requirement("plugin:detached")
@pytest.mark.parametrize("kind", ["python", "python in its group", "node"])
async def test_a_detached_plugin_works_on_after_its_answer_as_a_task(tmp_path: Path, kind: str) -> None:
    if kind == "node" and shutil.which("node") is None:
        pytest.skip("node is not installed")
    async with PluginYard(tmp_path) as yards:
        if kind == "node":
            folder = add_starter(
                yards, detached=True, entryPoint=entry("node main.js"), config=f"PYTHON={sys.executable}"
            )
            (folder / "main.js").write_text(NODE)
        else:
            add_starter(yards, detached=True)
        out = yards.folder / "Starter" / "out"
        outcome = await start(yards, out, ticks="40", session="yes" if kind == "python" else "no")
        assert outcome.envelope.text.startswith("started")
        assert "warnings" not in outcome.envelope.context
        assert outcome.envelope.data.get("tasks") is None
        task = await background_task(yards, outcome)
        assert (task.state, task.plugin) == (TaskState.WAITING, "Starter")
        assert 1700 < task.deadline - task.created <= 1800
        ended = await asyncio.wait_for(yards.yard.state.tasks.wait(task.id), 120)
        assert (ended.state, ended.message) == (TaskState.SUCCEEDED, "Its processes have ended.")
        assert out.read_text().endswith("done\n")


@pytest.mark.requirement("plugin:detached")
async def test_a_thread_of_a_detached_plugin_works_on_after_the_answer_as_a_task(tmp_path: Path) -> None:
    async with PluginYard(tmp_path) as yards:
        yards.add("Late", LATE_THREAD, detached=True)
        go, out = yards.folder / "Late" / "go", yards.folder / "Late" / "out"
        outcome = await yards.call("Late", go=str(go), out=str(out))
        assert outcome.envelope.text.startswith("started")
        task = await background_task(yards, outcome)
        assert (task.state, task.plugin) == (TaskState.WAITING, "Late")
        assert not out.exists()
        go.touch()
        ended = await asyncio.wait_for(yards.yard.state.tasks.wait(task.id), 120)
        assert (ended.state, ended.message) == (TaskState.SUCCEEDED, "Its processes have ended.")
        assert out.read_text() == "done"


@pytest.mark.requirement("plugin:detached")
async def test_a_task_of_background_work_is_stopped_by_cancelling_it(tmp_path: Path) -> None:
    async with PluginYard(tmp_path) as yards:
        add_starter(yards, detached=True)
        out = yards.folder / "Starter" / "out"
        task = await background_task(yards, await start(yards, out))
        assert is_alive(worker_pid(out))
        assert await yards.yard.state.tasks.cancel(task.id)
        await wait_until(lambda: not is_alive(worker_pid(out)))
        assert out.read_text().splitlines()[1:] == ["asked to end"]


@pytest.mark.requirement("plugin:detached")
async def test_background_work_ends_at_its_limit(tmp_path: Path) -> None:
    async with PluginYard(tmp_path) as yards:
        add_starter(yards, detached=True, detachedTimeout=300)
        out = yards.folder / "Starter" / "out"
        task = await background_task(yards, await start(yards, out))
        ended = await asyncio.wait_for(yards.yard.state.tasks.wait(task.id), 120)
        assert (ended.state, ended.message) == (TaskState.TIMED_OUT, "It ran past its limit.")
        await wait_until(lambda: not is_alive(worker_pid(out)))


@pytest.mark.requirement("plugin:detached")
async def test_background_work_ends_with_its_host_and_its_task_says_so(tmp_path: Path) -> None:
    async with PluginYard(tmp_path) as yards:
        add_starter(yards, detached=True)
        out = yards.folder / "Starter" / "out"
        task = await background_task(yards, await start(yards, out))
    assert not is_alive(worker_pid(out))
    async with PluginYard(tmp_path) as yards:
        stored = await yards.yard.state.tasks.get(task.id)
        assert stored is not None
        assert (stored.state, stored.message) == (TaskState.INTERRUPTED, "The server that watched over it was stopped.")


@pytest.mark.requirement("plugin:detached")
async def test_a_plugin_that_leaves_nothing_behind_makes_no_task(tmp_path: Path) -> None:
    code = "import json, subprocess\nsubprocess.run(['true'])\nprint(json.dumps({'status': 'success', 'result': 'x'}))"
    async with PluginYard(tmp_path) as yards:
        yards.add("Quick", code, detached=True)
        outcome = await yards.call("Quick")
        assert "background" not in outcome.envelope.context
        assert await yards.yard.state.tasks.page(Query(), limit=10) == []


@pytest.mark.requirement("plugin:detached")
async def test_work_of_a_plugin_that_gave_no_answer_does_not_go_on(tmp_path: Path) -> None:
    async with PluginYard(tmp_path) as yards:
        add_starter(yards, PYTHON.replace("print(json.dumps(", "str(("), detached=True)
        out = yards.folder / "Starter" / "out"
        outcome = await start(yards, out)
        assert outcome.envelope.error is not None
        await wait_until(lambda: not is_alive(worker_pid(out)))
        assert await yards.yard.state.tasks.page(Query(), limit=10) == []


@pytest.mark.requirement("plugin:detached", "s:S-83")
async def test_the_owner_allows_it_at_review_and_takes_it_back(tmp_path: Path) -> None:
    async with PluginYard(tmp_path, trusted=False) as yards:
        add_starter(yards)
        source = yards.yard.plugins

        def review(*, detached: bool | None) -> None:
            plugin = source.plugins.get("Starter")
            assert plugin is not None
            source.allow(source.review(plugin).with_detached(detached=detached))
            source.plugins.refresh()

        review(detached=True)
        task = await background_task(yards, await start(yards, yards.folder / "Starter" / "first", ticks="60"))
        await asyncio.wait_for(yards.yard.state.tasks.wait(task.id), 120)
        review(detached=False)
        outcome = await start(yards, yards.folder / "Starter" / "second")
        assert "background" not in outcome.envelope.context
        assert "warnings" in outcome.envelope.context


@pytest.mark.requirement("plugin:detached")
async def test_the_owners_no_counts_more_than_the_manifest(tmp_path: Path) -> None:
    async with PluginYard(tmp_path, trusted=False) as yards:
        add_starter(yards, detached=True)
        plugin = yards.yard.plugins.plugins.get("Starter")
        assert plugin is not None
        reviewed = yards.yard.plugins.review(plugin)
        assert reviewed.to_json()["detached"] is True
        yards.yard.plugins.allow(reviewed.with_detached(detached=False))
        yards.yard.plugins.plugins.refresh()
        outcome = await start(yards, yards.folder / "Starter" / "out")
        assert "background" not in outcome.envelope.context


@pytest.mark.requirement("plugin:left-behind")
@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("run.js", "const a = 1;\nspawn('x', [], { detached: true });\n", 2),
        ("run.py", "subprocess.Popen(['x'], start_new_session=True)\n", 1),
        ("run.sh", "#!/bin/sh\nnohup ./work > log &\n", 2),
        ("run.sh", "./work &\n", 1),
    ],
)
async def test_lint_says_what_starts_work_that_is_stopped(tmp_path: Path, name: str, text: str, line: int) -> None:
    async with PluginYard(tmp_path) as yards:
        (yards.add("Starter") / name).write_text(text)
        plugin = yards.yard.plugins.plugins.get("Starter")
        assert plugin is not None
        (problem,) = [one for one in lint_plugin(plugin) if "outlives the answer" in one.message]
        assert (problem.file, problem.line, problem.warning) == (name, line, True)
        assert "toolyard plugin allow Starter --detached" in problem.fix


@pytest.mark.requirement("plugin:left-behind")
async def test_lint_is_silent_about_what_is_allowed_or_only_said(tmp_path: Path) -> None:
    async with PluginYard(tmp_path) as yards:
        (yards.add("Free", detached=True) / "run.py").write_text("Popen(x, start_new_session=True)\n")
        (yards.add("Calm") / "run.sh").write_text("# nohup it\na && b\nx 2>&1\ny=$((1 & 2))\n")
        for plugin in yards.yard.plugins.plugins.all:
            assert [one for one in lint_plugin(plugin) if "outlives" in one.message] == []


HOST = """
import asyncio, os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from tests.plugins.test_background import start
from tests.plugins.yards import PluginYard

async def main() -> None:
    async with PluginYard(Path(sys.argv[1])) as yards:
        await start(yards, Path(sys.argv[2]))
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


@pytest.mark.requirement("plugin:detached")
async def test_when_the_host_is_killed_the_work_ends_and_the_next_host_says_so(tmp_path: Path) -> None:
    folder = add_starter(PluginYard(tmp_path), detached=True)
    out, root = folder / "out", str(Path(__file__).parents[2])
    host = await asyncio.create_subprocess_exec(sys.executable, "-c", HOST, str(tmp_path), str(out), root)
    assert await host.wait() == -signal.SIGKILL
    await wait_until(lambda: not is_alive(worker_pid(out)))
    clock = FakeClock(wall=datetime.now(UTC) + timedelta(minutes=5))
    async with Yard(load_config(tmp_path / "project", tmp_path / "home"), clock=clock) as yard:
        await yard.state.recover()
        (task,) = await yard.state.tasks.page(Query(), limit=10)
        assert task.state is TaskState.INTERRUPTED
