"""Asynchronous plugins: receipt, living child, callback, and every way in which that can go wrong."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import free_port
from tests.plugins.yards import PluginYard
from tests.waiting import wait_until
from toolyard.config import load_config
from toolyard.errors import StorageError
from toolyard.plugins.long_work import asynchronous
from toolyard.plugins.long_work.callback import CallbackListener
from toolyard.plugins.process.process_output import LogStream
from toolyard.process_numbers import process_start_time
from toolyard.protocol.envelope import ErrorCode, Status
from toolyard.protocol.json import Json
from toolyard.protocol.records.task_record import Task, TaskState
from toolyard.protocol.store import Query, Record
from toolyard.protocol.tool import Outcome
from toolyard.yard.plugin_source import HostOptions
from toolyard.yard.yard import Yard

START = """
import json, os, sys, threading, time, urllib.request
said = json.loads(sys.stdin.read() or "{}")
def receipt(text="Submitted: {{VCP_ASYNC_RESULT::Slow::job-1}}", **more):
    print(json.dumps({"status": "success", "result": text, **more}), flush=True)
def call_back(body, task="job-1", plugin=os.environ["PLUGIN_NAME_FOR_CALLBACK"]):
    url = os.environ["CALLBACK_BASE_URL"] + "/" + plugin + "/" + task
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code
def wait_for(name):
    while not os.path.exists(name): time.sleep(0.01)
"""
DONE: Json = {"status": "Succeed", "message": "Here it is."}


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[PluginYard]:
    async with PluginYard(tmp_path) as opened:
        yield opened


def add(host: PluginYard, code: str, **more: Any) -> Path:
    more.setdefault("communication", {"protocol": "stdio", "timeout": 600_000})
    return host.add("Slow", START + code, pluginType="asynchronous", **more)


async def wait_ended(host: PluginYard, outcome: Outcome) -> Task:
    tasks = outcome.envelope.data["tasks"]
    assert isinstance(tasks, list)
    assert isinstance(tasks[0], dict)
    async with asyncio.timeout(60):
        return await host.yard.state.tasks.wait(str(tasks[0]["id"]))


@pytest.mark.requirement("plugin:type:asynchronous", "plugin:environment:async", "callback:listener", "task:named")
async def test_the_receipt_comes_at_once_and_the_callback_ends_the_task(host: PluginYard) -> None:
    folder = add(host, f"receipt()\nwait_for('go')\nassert call_back({DONE!r}) == 200\n")
    outcome = await host.call("Slow", prompt="a cat")
    assert "{{VCP_ASYNC_RESULT::Slow::job-1}}" in outcome.envelope.text
    (folder / "go").touch()
    task = await wait_ended(host, outcome)
    assert (task.state, task.result, task.task_id, task.plugin) == (TaskState.SUCCEEDED, DONE, "job-1", "Slow")
    assert task.arguments == {"prompt": "a cat"}


@pytest.mark.requirement("r:R22", "plugin:stdout")
async def test_the_receipt_is_the_first_object_also_when_it_is_printed_over_many_lines(host: PluginYard) -> None:
    code = (
        "print('starting } up')\n"
        "print(json.dumps({'status':'success','result':'{{VCP_ASYNC_RESULT::Slow::job-1}} } x'},"
        'indent=2), flush=True)\nprint(\'{"status":"error","error":"late"}\', flush=True)\nwait_for(\'go\')\n'
    )
    folder = add(host, code)
    async with asyncio.timeout(60):
        outcome = await host.call("Slow")
    assert outcome.envelope.status is Status.SUCCESS
    (folder / "go").touch()


@pytest.mark.requirement("console:tools")
async def test_what_the_child_prints_beside_its_receipt_is_in_the_log_of_its_plugin(
    host: PluginYard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asynchronous, "EXIT_GRACE_S", 600.0)  # until it has said all
    code = "print('warming up')\nreceipt()\nprint('frame 1 of 9', file=sys.stderr, flush=True)\n"
    add(host, code + f"call_back({DONE!r})\nprint('bye', file=sys.stderr, flush=True)\n")
    outcome = await host.call("Slow")
    await wait_ended(host, outcome)
    logs = host.yard.plugins.host.logs
    await wait_until(lambda: "Slow" in logs)
    stderr, noise = logs["Slow"].entries
    assert (stderr.text, stderr.stream) == ("frame 1 of 9\nbye\n", LogStream.STDERR)
    assert (noise.text.strip(), noise.stream) == ("warming up", LogStream.NOISE)


@pytest.mark.requirement("task:query")
async def test_an_answer_without_a_placeholder_is_final(host: PluginYard) -> None:
    add(host, "receipt('Still running, 40 %.')")
    outcome = await host.call("Slow", command="query")
    assert outcome.envelope.text == "Still running, 40 %."
    assert "tasks" not in outcome.envelope.data
    assert await host.yard.state.tasks.page(Query(), limit=5) == []


@pytest.mark.requirement("r:R53")
async def test_a_callback_that_is_faster_than_the_receipt_counts(host: PluginYard) -> None:
    add(host, f"assert call_back({DONE!r}) == 200\nreceipt()")
    task = await wait_ended(host, await host.call("Slow"))
    assert (task.state, task.result) == (TaskState.SUCCEEDED, DONE)


@pytest.mark.requirement("r:R50", "r:R51", "r:R52", "s:S-01", "s:S-02")
async def test_duplicate_different_unknown_and_forged_callbacks_are_told_so(
    host: PluginYard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asynchronous, "EXIT_GRACE_S", 600.0)  # it goes on after its callback
    folder = add(
        host,
        f"receipt()\ncodes = [call_back({DONE!r}), call_back({DONE!r}), call_back({{'other': 1}}),"
        f"call_back({DONE!r}, task='job-2'), call_back({DONE!r}, plugin='Other'), call_back({DONE!r}, task='..')]\n"
        "base = os.environ['CALLBACK_BASE_URL'].rpartition('~')[0]\n"
        "os.environ['CALLBACK_BASE_URL'] = base + '~forged'\n"
        f"codes.append(call_back({DONE!r}))\nopen('codes.tmp','w').write(json.dumps(codes))\n"
        "os.rename('codes.tmp', 'codes')\n",
    )
    task = await wait_ended(host, await host.call("Slow"))
    assert task.result == DONE
    await wait_until((folder / "codes").exists)
    assert json.loads((folder / "codes").read_text()) == [200, 200, 409, 404, 404, 400, 401]


@pytest.mark.requirement("r:R54", "s:S-89")
@pytest.mark.parametrize("state", [TaskState.CANCELLED, TaskState.FAILED])
async def test_a_person_who_ends_a_task_stops_its_process_at_once(
    host: PluginYard, monkeypatch: pytest.MonkeyPatch, state: TaskState
) -> None:
    monkeypatch.setattr(asynchronous, "EXIT_GRACE_S", 600.0)  # for those that called back, and for nobody else
    folder = add(host, "open('pid','w').write(str(os.getpid()))\nreceipt()\ntime.sleep(600)")
    outcome = await host.call("Slow")
    (listed,) = await host.yard.state.tasks.page(Query(), limit=5)
    tasks = host.yard.state.tasks
    assert await (tasks.cancel(listed.id) if state is TaskState.CANCELLED else tasks.fail(listed.id, "it is gone"))
    assert (await wait_ended(host, outcome)).state is state
    pid = (folder / "pid").read_text()
    await wait_until(lambda: not Path(f"/proc/{pid}").exists())


@pytest.mark.requirement("r:R54", "s:S-89")
async def test_a_call_cancelled_while_its_receipt_is_stored_leaves_neither_task_nor_process(
    host: PluginYard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asynchronous, "EXIT_GRACE_S", 600.0)
    folder = add(host, "open('pid','w').write(str(os.getpid()))\nreceipt()\ntime.sleep(600)")
    stored, go_on, commit = asyncio.Event(), asyncio.Event(), host.yard.state.store.commit

    async def held(changes: Sequence[Record], *more: Any, **named: Any) -> bool:
        committed = await commit(changes, *more, **named)
        if changes and changes[0].kind == "task":
            stored.set()
            await go_on.wait()
        return committed

    monkeypatch.setattr(host.yard.state.store, "commit", held)
    calling = asyncio.create_task(host.call("Slow"))
    async with asyncio.timeout(60):
        await stored.wait()
        (listed,) = await host.yard.state.tasks.page(Query(), limit=5)
        calling.cancel()
        go_on.set()
        await asyncio.wait({calling})
        assert (await host.yard.state.tasks.wait(listed.id)).state is TaskState.CANCELLED
    pid = (folder / "pid").read_text()
    await wait_until(lambda: not Path(f"/proc/{pid}").exists())


@pytest.mark.requirement("r:R25")
async def test_a_process_that_ends_without_callback_fails_its_task(
    host: PluginYard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asynchronous, "CALLBACK_GRACE_S", 0.1)
    add(host, "receipt()")
    task = await wait_ended(host, await host.call("Slow"))
    assert task.state is TaskState.FAILED
    assert "without a callback" in task.message


@pytest.mark.requirement("r:R25", "s:S-91")
async def test_a_task_that_failed_tells_what_its_process_said_last_without_its_secrets(
    host: PluginYard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asynchronous, "CALLBACK_GRACE_S", 0.1)
    folder = add(host, "receipt()\nsys.exit('no credit left for ' + os.environ['SLOW_KEY'])")
    (folder / "config.env").write_text("SLOW_KEY=sk-secret-0123456789\n")
    task = await wait_ended(host, await host.call("Slow"))
    assert "Its stderr ends with: no credit left for [masked]" in task.message


@pytest.mark.requirement("r:R25")
async def test_a_task_is_watched_on_when_the_store_could_not_be_used_for_a_while(
    host: PluginYard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asynchronous, "CALLBACK_GRACE_S", 0.1)
    folder = add(host, "receipt()\nwait_for('go')")
    outcome = await host.call("Slow")
    faults, get = [StorageError("the disk is away")] * 2, host.yard.state.store.get

    async def failing(*arguments: Any) -> Record | None:
        if faults:
            raise faults.pop()
        return await get(*arguments)

    monkeypatch.setattr(host.yard.state.store, "get", failing)
    await wait_until(lambda: not faults)
    (folder / "go").touch()
    assert (await wait_ended(host, outcome)).state is TaskState.FAILED


@pytest.mark.requirement("r:R26")
async def test_a_plugin_that_gives_no_receipt_is_stopped(host: PluginYard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asynchronous, "RECEIPT_S", 0.4)
    add(host, "time.sleep(600)")
    async with asyncio.timeout(60):
        envelope = (await host.call("Slow")).envelope
    assert envelope.error is not None
    assert envelope.error.code is ErrorCode.TIMEOUT
    assert "no receipt" in envelope.error.message


@pytest.mark.requirement("r:R27")
async def test_a_task_that_runs_past_its_total_limit_is_timed_out(host: PluginYard) -> None:
    folder = add(
        host,
        "open('pid','w').write(str(os.getpid()))\nreceipt()\ntime.sleep(600)",
        communication={"protocol": "stdio", "timeout": 1500},
    )
    task = await wait_ended(host, await host.call("Slow"))
    assert task.state is TaskState.TIMED_OUT
    pid = (folder / "pid").read_text()
    await wait_until(lambda: not Path(f"/proc/{pid}").exists())


@pytest.mark.requirement("callback:status")
async def test_a_failed_callback_fails_the_task_with_what_it_said(host: PluginYard) -> None:
    add(host, "receipt()\ncall_back({'status': 'Failed', 'reason': 'no credit'})")
    task = await wait_ended(host, await host.call("Slow"))
    assert (task.state, task.result) == (TaskState.FAILED, {"status": "Failed", "reason": "no credit"})


@pytest.mark.requirement("plugin:result:error")
async def test_a_receipt_that_reports_an_error_is_the_end_of_the_call(host: PluginYard) -> None:
    add(host, "print(json.dumps({'status':'error','error':'no API key'}), flush=True)\ntime.sleep(600)")
    envelope = (await host.call("Slow")).envelope
    assert envelope.error is not None
    assert envelope.error.message == "no API key"
    assert await host.yard.state.tasks.page(Query(), limit=5) == []


@pytest.mark.requirement("task:call-waits")
async def test_progress_on_stderr_is_told_with_the_task(host: PluginYard) -> None:
    folder = add(
        host, f"receipt()\nprint('PROGRESS 0.4 frame 4', file=sys.stderr)\nwait_for('go')\ncall_back({DONE!r})"
    )
    outcome = await host.call("Slow")

    async with asyncio.timeout(60):
        events = await host.yard.state.store.events(0, limit=100)
        while not any(event.type == "task.progress" and event.data["done"] == 0.4 for event in events):
            await host.yard.state.store.next_event(events[-1].seq)
            events = await host.yard.state.store.events(0, limit=100)
    (folder / "go").touch()
    assert (await wait_ended(host, outcome)).progress == {"done": 0.4, "text": "frame 4"}


@pytest.mark.requirement("p:P4", "r:R27")
async def test_a_child_that_has_called_back_and_does_not_end_is_stopped(
    host: PluginYard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asynchronous, "EXIT_GRACE_S", 0.1)
    folder = add(host, f"open('pid','w').write(str(os.getpid()))\nreceipt()\ncall_back({DONE!r})\ntime.sleep(600)")
    task = await wait_ended(host, await host.call("Slow"))
    pid = (folder / "pid").read_text()
    await wait_until(lambda: not Path(f"/proc/{pid}").exists())
    assert task.state is TaskState.SUCCEEDED


@pytest.mark.requirement("code:reasons:plugins", "s:S-88")
async def test_one_more_living_child_than_may_be_is_busy(host: PluginYard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asynchronous, "MAX_CHILDREN", 1)
    add(host, "open('started', 'a').write('x')\nreceipt()\ntime.sleep(600)")
    assert (await host.call("Slow")).envelope.status is Status.SUCCESS
    refused = (await host.call("Slow")).envelope
    assert (refused.status, refused.context["reason"]) == (Status.ERROR, "BUSY")
    assert (host.folder / "Slow/started").read_text() == "x"


@pytest.mark.requirement("p:P10")
async def test_closing_the_yard_stops_what_it_waits_for_and_the_task_says_so(tmp_path: Path) -> None:
    async with PluginYard(tmp_path) as host:
        folder = add(host, "open('pid','w').write(str(os.getpid()))\nreceipt()\ntime.sleep(600)")
        await host.call("Slow")
    pid = (folder / "pid").read_text()
    await wait_until(lambda: not Path(f"/proc/{pid}").exists())
    async with PluginYard(tmp_path) as again:
        (task,) = await again.yard.state.tasks.page(Query(), limit=5)
        assert task.state is TaskState.INTERRUPTED


@pytest.mark.requirement("plugin:seed-manifests", "shipped:timelapse", "shipped:video")
async def test_several_tasks_of_one_call_each_end_by_their_own_callback(host: PluginYard) -> None:
    text = "{{VCP_ASYNC_RESULT::Slow::a}} and {{{{VCP_ASYNC_RESULT::Slow::b}}}}"
    add(host, f"receipt({text!r})\ncall_back({{'n': 1}}, task='a')\ncall_back({{'status': 'error'}}, task='b')")
    await host.call("Slow")
    first, second = await host.yard.state.tasks.get("Slow::a"), await host.yard.state.tasks.get("Slow::b")
    assert first is not None
    assert second is not None
    async with asyncio.timeout(60):
        assert (await host.yard.state.tasks.wait(first.id)).state is TaskState.SUCCEEDED
        assert (await host.yard.state.tasks.wait(second.id)).state is TaskState.FAILED


class Restarting:
    """A host that can be stopped and started again on the same home, at the same address."""

    def __init__(self, place: Path) -> None:
        self.plugins = PluginYard(place)
        self.port = free_port()

    async def base(self) -> str:
        return f"http://127.0.0.1:{self.port}/plugin-callback/~"

    def start(self) -> Yard:
        place = self.plugins.place
        config = load_config(place / "project", place / "home", plugin_folders=[self.plugins.folder], trusts_given=True)
        return Yard(config, outside=HostOptions(callback_base=self.base, outlives=True))


@pytest.mark.requirement("task:readopted", "r:R02", "r:R55")
async def test_a_child_after_its_receipt_outlives_its_host_and_is_adopted_by_the_next(tmp_path: Path) -> None:
    host = Restarting(tmp_path)
    code = f"open('pid','w').write(str(os.getpid()))\nreceipt()\nwait_for('go')\nassert call_back({DONE!r}) == 200\n"
    folder = add(host.plugins, code)
    async with host.start() as first:
        await first.call("Slow", {"prompt": "x"})
    pid = int((folder / "pid").read_text())
    assert process_start_time(pid) != 0
    async with host.start() as second:
        report = await second.state.recover(lambda owner: owner == second.boot.name)
        assert [task.state for task in report.left] == [TaskState.WAITING]
        assert await second.plugins.adopt(report.left) == 1
        assert await second.plugins.adopt(report.left) == 0  # they are looked after already
        listener = CallbackListener(second.plugins.receive_callback)
        await listener.open(host.port)
        (folder / "go").touch()
        async with asyncio.timeout(60):
            task = await second.state.tasks.wait(report.left[0].id)
        assert (task.state, task.result) == (TaskState.SUCCEEDED, DONE)
        await listener.close()
    await wait_until(lambda: process_start_time(pid) == 0)


@pytest.mark.requirement("task:readopted", "r:R27")
async def test_the_total_limit_of_an_adopted_child_still_holds(tmp_path: Path) -> None:
    host = Restarting(tmp_path)
    limit = {"protocol": "stdio", "timeout": 2500}
    folder = add(
        host.plugins, "open('pid','w').write(str(os.getpid()))\nreceipt()\ntime.sleep(600)", communication=limit
    )
    async with host.start() as first:
        await first.call("Slow")
    pid = int((folder / "pid").read_text())
    async with host.start() as second:
        report = await second.state.recover(lambda owner: owner == second.boot.name)
        await second.plugins.adopt(report.left)
        (task,) = await second.state.tasks.page(Query(), limit=2)
        async with asyncio.timeout(60):
            task = await second.state.tasks.wait(task.id)
        assert task.state is TaskState.TIMED_OUT
        await wait_until(lambda: process_start_time(pid) == 0)
