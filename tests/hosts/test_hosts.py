"""Several hosts on one real PostgreSQL: a call runs where its tool is, and what one host knows all of them know."""

import asyncio
import hashlib
import json
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests import postgres
from tests.hosts.yards import config_of, effects_folder, host, plugin, sees, shell_plugin
from tests.waiting import wait_until
from toolyard.engine.background.tasks import CallbackAnswer
from toolyard.engine.history.stored_events import read_feed
from toolyard.hosts import directory, lease, remote_tools
from toolyard.hosts import host as hosts
from toolyard.hosts.open_yard import open_yard
from toolyard.protocol.content import Media
from toolyard.protocol.envelope import Status
from toolyard.protocol.records.task_record import Process, Task, TaskState
from toolyard.protocol.store import NewEvent, Query
from toolyard.protocol.tool import Origin
from toolyard.storage.sqlite import SqliteStore
from toolyard.yard.yard import Yard

pytestmark = pytest.mark.requirement("hosts:shared")


@pytest.fixture
async def database() -> AsyncIterator[str]:
    async with postgres.database(new=True) as url:
        yield url


@pytest.mark.requirement("hosts:runner", "hosts:event-numbers")
async def test_a_call_runs_on_the_host_that_has_the_tool_and_is_journalled_once_by_the_one_that_asked(
    database: str, tmp_path: Path
) -> None:
    plugin(tmp_path / "b", "Echo")
    async with host(tmp_path / "b", database), host(tmp_path / "a", database) as a:
        call = a.yard.calls.request("Echo", {"text": "hi", "number": 2**60})
        outcome = await a.yard.calls.settle(call)
        assert outcome.envelope.data == {"heard": {"text": "hi", "number": 2**60}, "where": "b"}
        assert outcome.root == str((tmp_path / "a/project").resolve())
        (record,) = await a.yard.state.journal.page(Query(tool="Echo"), limit=10)
        assert (record.id, record.state) == (call.id, "success")
        told = [event async for event in read_feed(a.yard.state.store, a.yard.clock, 0, follow=False)]
        assert [event.type for event in told if event.type.startswith("call.")] == ["call.started", "call.finished"]
        assert {event.type.partition(".")[0] for event in told} == {"call", "host"}  # hosts talk without events
        assert [event.seq for event in told] == list(range(1, len(told) + 1))


async def test_a_tool_that_this_host_has_too_runs_here(database: str, tmp_path: Path) -> None:
    for name in "ab":
        plugin(tmp_path / name, "Echo")
    async with host(tmp_path / "b", database) as b, host(tmp_path / "a", database) as a:
        for one, name in ((a, "a"), (b, "b")):
            assert (await one.yard.call("Echo")).data["where"] == name


async def test_a_failure_comes_back_as_it_was_with_how_its_process_ran_and_so_do_pictures(
    database: str, tmp_path: Path
) -> None:
    png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
    content = [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{png}"}}]
    said = json.dumps({"status": "success", "result": {"content": content}})
    plugin(tmp_path / "b", "Picture", f"print({said!r})")
    plugin(tmp_path / "b", "Bad", """print('{"status": "error", "error": "no such place"}')""")
    async with host(tmp_path / "b", database) as b, host(tmp_path / "a", database) as a:
        there = await b.yard.calls.settle(b.yard.calls.request("Bad", {"place": 1}))
        sent = a.yard.calls.request("Bad", {"place": 1})
        here = await a.yard.calls.settle(sent)
        assert there.envelope.error is not None
        kept: Any = await a.yard.state.journal.get(sent.id)
        assert kept["process"]["exit_code"] == 0
        assert kept["process"]["argv"][-1].endswith("main.py")
        assert (here.envelope.error, here.envelope.text) == (there.envelope.error, there.envelope.text)
        assert here.envelope.context == there.envelope.context
        picture = await a.yard.calls.settle(a.yard.calls.request("Picture", {}))
        (part,) = [part for part in picture.extras.parts if isinstance(part, Media)]
        assert part.mime == "image/png"


@pytest.mark.requirement("p:P3")
async def test_a_cancel_reaches_the_other_host(database: str, tmp_path: Path) -> None:
    effect = effects_folder(tmp_path) / "effect"
    shell_plugin(tmp_path / "b", "Slow", "echo start >> $file; sleep 600; echo end >> $file\n")
    async with host(tmp_path / "b", database) as b, host(tmp_path / "a", database) as a:
        call = a.yard.calls.request("Slow", {"file": str(effect)})
        running = asyncio.create_task(a.yard.calls.settle(call))
        await wait_until(effect.exists)
        assert a.yard.calls.cancel(call.id)
        envelope = (await running).envelope
        assert envelope.context["reason"] == "CANCELLED"
        await wait_until(lambda: not b._worker._running)  # it has told how it ended
        record = await a.yard.state.store.get("remote", call.id)
        assert record is not None
        assert record.state == "done"
        assert effect.read_text() == "start\n"


async def test_a_call_that_still_waits_is_taken_back_and_never_runs(database: str, tmp_path: Path) -> None:
    effect, other = effects_folder(tmp_path) / "effect", effects_folder(tmp_path) / "other"
    shell_plugin(
        tmp_path / "b", "One", "echo start >> $file; while [ ! -e $file.go ]; do sleep 0.05; done\n", maxConcurrency=1
    )
    async with host(tmp_path / "b", database), host(tmp_path / "a", database) as a:
        first = asyncio.create_task(a.yard.call("One", {"file": str(effect)}))
        await wait_until(effect.exists)
        call = a.yard.calls.request("One", {"file": str(other)})
        second = asyncio.create_task(a.yard.calls.settle(call))
        await wait_until(lambda: call.id in a._signals._waiting)
        a.yard.calls.cancel(call.id)
        assert (await second).envelope.context["reason"] == "CANCELLED"
        effect.with_suffix(".go").write_text("")
        assert (await first).status is Status.SUCCESS
        assert (await a.yard.call("One", {"file": str(effect)})).status is Status.SUCCESS  # the queue goes on
        assert not other.exists()


async def test_the_limit_of_a_tool_holds_for_all_hosts_together(database: str, tmp_path: Path) -> None:
    lock, effect = effects_folder(tmp_path) / "lock", effects_folder(tmp_path) / "effect"
    code = f"mkdir {lock} || echo overlap >> $file\necho $WHERE >> $file\nsleep 0.1\nrmdir {lock}\n"
    for name in "abc":
        shell_plugin(tmp_path / name, "Alone", code, maxConcurrency=1)
    async with (
        host(tmp_path / "a", database) as a,
        host(tmp_path / "b", database) as b,
        host(tmp_path / "c", database) as c,
    ):
        await wait_until(lambda: all(len(one.directory._hosts) == 3 for one in (a, b, c)))
        calls = [one.yard.call("Alone", {"file": str(effect)}) for one in (a, b, c) * 5]
        envelopes = await asyncio.gather(*calls)
    assert [envelope.text for envelope in envelopes if envelope.error] == []
    ran = effect.read_text().split()
    assert "overlap" not in ran
    assert len(ran) == 15


async def test_when_no_host_has_the_tool_any_more_a_waiting_call_ends(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_tools, "NOBODY_S", 0.1)
    effect = effects_folder(tmp_path) / "effect"
    shell_plugin(tmp_path / "b", "One", "echo start >> $file; sleep 0.3\n", maxConcurrency=1)
    async with host(tmp_path / "a", database) as a:
        async with host(tmp_path / "b", database):
            await sees(a.yard, "One")
            calls = [asyncio.create_task(a.yard.call("One", {"file": str(effect)})) for _ in range(8)]
            await wait_until(effect.exists)
        envelopes = await asyncio.gather(*calls)
        never = [envelope for envelope in envelopes if envelope.error]
        assert {envelope.context["reason"] for envelope in never} == {"START_FAILED"}
        assert len(effect.read_text().split()) == len(envelopes) - len(never)
        assert (await a.yard.call("One")).text.startswith("There is no tool called 'One'.")


async def test_a_host_without_the_tool_takes_no_call_of_it(database: str, tmp_path: Path) -> None:
    plugin(tmp_path / "b", "Echo")
    plugin(tmp_path / "c", "Other")
    async with (
        host(tmp_path / "b", database),
        host(tmp_path / "c", database),
        host(tmp_path / "a", database) as a,
    ):
        envelopes = await asyncio.gather(*(a.yard.call("Echo") for _ in range(10)))
        assert {envelope.data["where"] for envelope in envelopes} == {"b"}


async def test_a_plugin_that_is_added_later_is_announced_and_one_that_is_removed_is_not(
    database: str, tmp_path: Path
) -> None:
    async with host(tmp_path / "b", database) as b, host(tmp_path / "a", database) as a:
        folder = plugin(tmp_path / "b", "Echo")
        b.yard.plugins.plugins.refresh()
        await sees(a.yard, "Echo")
        assert (await a.yard.call("Echo")).data["where"] == "b"
        (folder / "plugin-manifest.json").unlink()
        b.yard.plugins.plugins.refresh()
        await wait_until(lambda: a.directory.find_remote_tool("Echo") is None)


@pytest.mark.requirement("p:P8")
async def test_a_callback_may_come_to_any_host(database: str, tmp_path: Path) -> None:
    receipt = json.dumps({"status": "success", "result": "later: {{VCP_ASYNC_RESULT::Later::t1}}"})
    code = f"""
import json, os, sys, time
place = json.load(sys.stdin)["place"]
with open(place + ".new", "w") as file:
    file.write(os.environ["CALLBACK_BASE_URL"])
os.rename(place + ".new", place)
print({receipt!r}, flush=True)
time.sleep(60)
"""
    place = effects_folder(tmp_path) / "address"
    plugin(tmp_path / "b", "Later", code, pluginType="asynchronous")
    async with host(tmp_path / "b", database), host(tmp_path / "a", database) as a:
        envelope = await a.yard.call("Later", {"place": str(place)})
        assert envelope.error is None, envelope.text
        token = place.read_text().rpartition("~")[2]
        assert await a.yard.state.tasks.take_callback("forged", "Later", "t1", {}) is CallbackAnswer.FORBIDDEN
        answered = await a.yard.state.tasks.take_callback(
            token, "Later", "t1", {"status": "Succeed", "message": "all done"}
        )
        assert answered is CallbackAnswer.STORED
        async with asyncio.timeout(60):
            task = await a.yard.state.tasks.get("Later::t1")
            assert task is not None
            assert (await a.yard.state.tasks.wait(task.id)).state is TaskState.SUCCEEDED
        assert (
            await a.yard.state.tasks.take_callback(token, "Later", "t1", {"status": "Failed"})
            is CallbackAnswer.ALREADY_ENDED
        )


async def test_a_question_is_answered_at_any_host(database: str, tmp_path: Path) -> None:
    plugin(tmp_path / "b", "Echo")
    async with host(tmp_path / "b", database) as b, host(tmp_path / "a", database) as a:
        call = a.yard.calls.request("Echo", {}, origin=Origin.CHAT)
        running = asyncio.create_task(a.yard.calls.settle(call))
        async with asyncio.timeout(60):
            newest = 0
            while not (pending := await b.yard.state.approvals.page(("pending",), limit=1)):
                await b.yard.state.store.next_event(newest)
                _, newest = await b.yard.state.store.event_span()
        await b.yard.state.approvals.answer(pending[0].id, allowed=True, by="a person at b")
        assert (await running).envelope.status is Status.SUCCESS  # and the host that runs it asks nobody again


async def test_a_schedule_of_one_host_is_run_by_any_other_and_once(database: str, tmp_path: Path) -> None:
    effect = effects_folder(tmp_path) / "effect"
    shell_plugin(tmp_path / "c", "Mark", "echo ran >> $file; while [ ! -e $file.go ]; do sleep 0.05; done\n")
    async with (
        host(tmp_path / "c", database),
        host(tmp_path / "b", database) as b,
        host(tmp_path / "a", database) as a,
    ):
        call = a.yard.calls.request("Mark", {"file": str(effect)})
        made = await a.yard.state.schedules.submit(call, cron="0 0 1 1 *")
        ran = await asyncio.gather(*(one.yard.state.schedules.run_by_hand(made.id) for one in (a, b)))
        assert sorted(ran) == [False, True]
        effect.with_suffix(".go").touch()  # not before both have asked
        await asyncio.gather(a.yard.state.schedules.drain(), b.yard.state.schedules.drain())
        assert effect.read_text() == "ran\n"


@pytest.mark.requirement("p:P9")
async def test_events_reach_the_clients_of_every_host_in_the_same_order(database: str, tmp_path: Path) -> None:
    plugin(tmp_path / "b", "Echo")
    async with host(tmp_path / "b", database) as b, host(tmp_path / "a", database) as a:
        envelopes = await asyncio.gather(
            *(a.yard.call("Echo") for _ in range(5)), *(b.yard.call("Echo") for _ in range(5))
        )
        assert not [envelope.text for envelope in envelopes if envelope.error]
        seen = [
            [event async for event in read_feed(one.yard.state.store, one.yard.clock, 0, follow=False)]
            for one in (a, b)
        ]
        assert seen[0] == seen[1][: len(seen[0])]
        assert [event.seq for event in seen[0]] == list(range(1, len(seen[0]) + 1))
        assert [event.type for event in seen[0]].count("call.finished") == 10


async def test_a_host_that_leaves_has_stopped_announcing_itself(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    still: list[bool] = []
    leave = directory.Announcement.withdraw

    async with host(tmp_path / "a", database) as a:

        async def left(announcement: directory.Announcement) -> None:
            still.extend(not task.done() for task in a._tasks)
            await leave(announcement)

        monkeypatch.setattr(directory.Announcement, "withdraw", left)
    assert still
    assert not any(still)


async def test_a_command_that_only_sends_takes_no_calls_and_announces_no_tools(database: str, tmp_path: Path) -> None:
    plugin(tmp_path / "b", "Echo")
    plugin(tmp_path / "c", "Own")
    async with host(tmp_path / "b", database) as b, host(tmp_path / "c", database, serves=False) as c:
        assert (await c.yard.call("Echo")).data["where"] == "b"
        assert (await c.yard.call("Own")).data["where"] == "c"
        await wait_until(lambda: c.yard.boot.name in b.directory._hosts)
        assert b.directory.find_remote_tool("Own") is None


async def test_without_a_database_there_is_one_host_with_its_own_file(tmp_path: Path) -> None:
    async with open_yard(config_of(tmp_path / "a")) as yard:
        assert isinstance(yard.state.store, SqliteStore)
        assert (await yard.call("LS", {"path": "."})).status is Status.SUCCESS


@pytest.mark.requirement("p:P3", "hosts:killed-worker")
async def test_hosts_go_on_when_the_database_comes_back(tmp_path: Path) -> None:
    folder = tempfile.mkdtemp(prefix="toolyard-pg-")
    server = postgres.Server(Path(folder))
    try:
        await asyncio.to_thread(server.start)
        plugin(tmp_path / "b", "Echo")
        async with host(tmp_path / "b", server.url()), host(tmp_path / "a", server.url()) as a:
            assert (await a.yard.call("Echo")).data["where"] == "b"
            await asyncio.to_thread(server.stop, signal.SIGQUIT)
            await asyncio.to_thread(server.start)
            async with asyncio.timeout(60):
                assert (await a.yard.call("Echo")).data["where"] == "b"
            newest, *_ = await a.yard.state.journal.page(Query(), limit=1)
            assert newest.state == "success"
    finally:
        await asyncio.to_thread(server.stop)
        shutil.rmtree(folder)


def test_without_a_database_nothing_for_many_hosts_is_loaded() -> None:
    code = (
        "import sys, toolyard.hosts.open_yard; print([name for name in ('asyncpg', 'pgqueuer') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.requirement("p:P3", "hosts:killed-worker")
async def test_a_task_whose_machine_is_gone_ends_after_a_while_unless_its_callback_comes(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, name, value in ((hosts, "SWEEP_S", 0.2), (lease, "LEASE_S", 2.0), (hosts, "POLL_S", 0.2)):
        monkeypatch.setattr(module, name, value)
    async with host(tmp_path / "a", database) as a:
        told = await _elsewhere(a.yard, "told")
        answer = await a.yard.state.tasks.take_callback("token of told", "Later", "told", {"status": "Succeed"})
        assert answer is CallbackAnswer.STORED
        monkeypatch.setattr(hosts, "GRACE_S", 0.5)
        lost = await _elsewhere(a.yard, "lost")
        async with asyncio.timeout(60):
            ended = [await a.yard.state.tasks.wait(task) for task in (lost, told)]
        assert [task.state for task in ended] == [TaskState.INTERRUPTED, TaskState.SUCCEEDED]
        assert "The machine that ran it is gone" in ended[0].message


async def _elsewhere(yard: Yard, name: str) -> str:
    """A task of a host on a machine that nobody hears of."""
    now = yard.clock.now().timestamp()
    task = Task(
        id=f"task_{name}", call_id="call_1", plugin="Later", task_id=name, state=TaskState.WAITING, created=now,
        updated=now, deadline=now + 600, caller="test", owner="elsewhere/1/1/x",
        token_hash=hashlib.sha256(f"token of {name}".encode()).hexdigest(),
        process=Process(pid=1, started=1, host="elsewhere"),
    )  # fmt: skip
    assert await yard.state.store.commit(
        [task.to_record()], [NewEvent(type="task.started", at=now, data={"id": task.id})]
    )
    return task.id
