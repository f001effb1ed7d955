"""No process outlives its call, whatever it does to hide, and none outlives its host."""

import asyncio
import json
import os
import resource
import signal
import sys
import uuid
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.plugins.children import LINUX, Keeper, bytes_written, catch_failure, find_marked, is_gone, keeper
from tests.waiting import wait_until
from toolyard import process_numbers
from toolyard.plugins.process import children
from toolyard.plugins.process.child_report import require_answer
from toolyard.protocol.envelope import Reason
from toolyard.protocol.manifests.manifest import Limits

pytestmark = pytest.mark.skipif(not LINUX, reason="needs Linux")
ROOT = Path(__file__).parents[2]


@pytest.fixture
async def zoo() -> AsyncIterator[Keeper]:
    async with keeper() as opened:
        yield opened


@asynccontextmanager
async def _host(mark: str, *words: str, **variables: str) -> AsyncIterator[Process]:
    """A host in a process of its own."""
    environment = {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "PYTHONDONTWRITEBYTECODE": "1", "PATH": "/usr/bin:/bin"}
    environment |= variables
    host = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.plugins.host", mark, *words, stdout=PIPE, env=environment, cwd=ROOT
    )
    try:
        yield host
    finally:
        if host.returncode is None:
            host.kill()
        await host.communicate()


def _zombies() -> set[str]:
    """Dead children that this process has not waited for."""
    pids = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text("latin-1").rpartition(") ")[2].split()
        except OSError:
            continue
        if fields[0] == "Z" and int(fields[1]) == os.getpid():
            pids.add(stat.parent.name)
    return pids


@pytest.mark.requirement("r:R12", "p:P4")
async def test_50_processes_that_hide_are_gone_after_the_call(zoo: Keeper, monkeypatch: pytest.MonkeyPatch) -> None:
    others, hunt, escaped = _zombies(), zoo.children._kill_escaped, list[int]()

    def watched(dead: set[int]) -> Any:
        escaped.extend(zoo.list_alive() if dead else ())
        return hunt(dead)

    monkeypatch.setattr(zoo.children, "_kill_escaped", watched)
    assert require_answer("Scatter", await zoo.run("scatters.py"))["result"] == "scattered"
    assert await zoo.wait_all_gone()
    assert escaped  # from the group, which was killed before
    await wait_until(lambda: _zombies() <= others)


@pytest.mark.requirement("r:R12", "p:P4")
async def test_closing_kills_what_is_left_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "_SWEEP_S", 600.0)
    others = _zombies()
    async with keeper() as zoo:
        await zoo.run("scatters.py")
        hidden = len(zoo.list_alive())
        run = asyncio.create_task(zoo.run("sleeps_forever.py"))
        await wait_until(lambda: len(zoo.list_alive()) > hidden > 0)
        run.cancel()
    assert zoo.list_alive() == []
    assert _zombies() <= others


@pytest.mark.requirement("r:R33", "s:S-88", "p:P5")
async def test_a_fork_bomb_is_stopped_while_other_calls_go_on(zoo: Keeper) -> None:
    bomb = asyncio.create_task(zoo.run("fork_bomb.py", limits=Limits(processes=40)))
    await wait_until(lambda: len(zoo.list_alive()) > 20)
    async with keeper() as other:
        assert require_answer("Echo", await other.run("echo.sh", stdin=b'"fine"'))["result"] == "fine"
    failure = catch_failure(require_answer, "Bomb", await asyncio.wait_for(bomb, 60))
    assert failure.reason is Reason.CRASHED
    assert "more than 40 processes" in failure.message
    assert await zoo.wait_all_gone()


@pytest.mark.requirement("p:P4", "p:P5")
async def test_one_host_never_touches_the_children_of_another(zoo: Keeper) -> None:
    async with keeper() as other:
        run = asyncio.create_task(other.run("sleeps_forever.py"))
        await wait_until(lambda: len(other.list_alive()) == 1)
        await zoo.run("scatters.py")
        assert await zoo.wait_all_gone()
        assert len(other.list_alive()) == 1
        run.cancel()
    assert other.list_alive() == []


@pytest.mark.requirement("p:P4")
async def test_a_process_keeps_its_number_through_fork_session_and_exec(zoo: Keeper) -> None:
    run = asyncio.create_task(zoo.run("receipt_then_detaches.py", drain_s=60))
    seen: list[int] = []

    def only_the_hidden_one() -> bool:
        seen[:] = zoo.list_alive()  # one look: between two of them the plugin may fork or end
        return len(seen) == 1 and zoo.children.number_of(seen[0]) == 0

    await wait_until(only_the_hidden_one)
    (hidden,) = seen
    ours = zoo.children.numbers
    assert {member.number >> 32 for member in process_numbers.find_processes(ours.prefix) if member.pid == hidden} == {
        ours.prefix >> 32
    }
    run.cancel()
    assert await zoo.wait_all_gone()


@pytest.mark.requirement("r:R13", "platform:macos")
async def test_without_numbers_what_stays_in_the_group_is_killed_with_the_end_of_its_call() -> None:
    async with keeper(numbered=False) as zoo:
        await zoo.run("leaves_stdout_open.py")
        assert await zoo.wait_all_gone()


@pytest.mark.requirement("p:P4", "p:P5")
async def test_what_another_thread_starts_meanwhile_does_not_count_as_the_plugins(zoo: Keeper) -> None:
    with zoo.children.assign_number() as number:
        bystander = await asyncio.create_subprocess_exec("/bin/sleep", "60")
    assert resource.prlimit(bystander.pid, 10)[0] == number > 0
    assert [
        member for member in process_numbers.find_processes(zoo.children.numbers.prefix) if member.pid == bystander.pid
    ] == []
    bystander.kill()
    await bystander.wait()


@pytest.mark.requirement("p:P4")
async def test_the_host_does_not_wait_for_children_that_are_not_of_its_calls(zoo: Keeper) -> None:
    stranger = await asyncio.create_subprocess_exec("/bin/sh", "-c", "exit 7")
    await zoo.run("scatters.py")
    assert await zoo.wait_all_gone()
    assert await asyncio.wait_for(stranger.wait(), 60) == 7


@pytest.mark.requirement("r:R02", "platform:macos")
@pytest.mark.parametrize(
    ("words", "many"), [(["ignores_signals.py"], 0), (["fork_bomb.py"], 20), (["groups", "ignores_signals.py"], 0)]
)
async def test_when_the_host_is_killed_its_children_die(words: list[str], many: int) -> None:
    mark = f"ZOO_MARK={uuid.uuid4().hex}"
    async with _host(mark, *words) as host:
        await wait_until(lambda: len(find_marked(mark)) > many)
        host.kill()
        await host.wait()
        await wait_until(lambda: not find_marked(mark))


@pytest.mark.requirement("r:R02", "platform:macos")
@pytest.mark.parametrize("point", ["plugin.spawned", "plugin.adopted", "plugin.stdin-written"])
@pytest.mark.parametrize("words", [("sleeps_forever.py",), ("groups", "sleeps_forever.py")])
async def test_when_the_host_is_killed_while_it_starts_a_child_the_child_dies(
    point: str, words: tuple[str, ...]
) -> None:
    mark = f"ZOO_MARK={uuid.uuid4().hex}"
    async with _host(mark, *words, KILLED_AT=point) as host:
        assert await host.wait() == -signal.SIGKILL
        await wait_until(lambda: not find_marked(mark))


@pytest.mark.requirement("r:R02")
async def test_when_the_host_is_killed_a_child_after_its_receipt_lives_on() -> None:
    mark = f"ZOO_MARK={uuid.uuid4().hex}"
    async with _host(mark, "receipt", "receipt_then_works.py") as host:
        assert host.stdout
        report = json.loads(await asyncio.wait_for(host.stdout.readline(), 60))
        host.kill()
        await host.wait()
        before = bytes_written(report["pid"])
        await wait_until(
            lambda: bytes_written(report["pid"]) > before + 300_000
        )  # the guardian has killed, and reads now
        assert find_marked(mark) == [report["pid"]]
        os.kill(report["pid"], signal.SIGKILL)
        await wait_until(lambda: is_gone(report["pid"]) and is_gone(report["guardian"]))


@pytest.mark.requirement("r:R14", "r:R15", "r:R16")
@pytest.mark.parametrize(
    ("words", "outcome"),
    [
        (("floods_stdout.py",), "OUTPUT_TOO_LARGE"),
        (("floods_stderr.py", "1024"), {"status": "success", "result": "done"}),
    ],
)
async def test_a_gigabyte_of_output_does_not_grow_the_host(words: tuple[str, ...], outcome: object) -> None:
    async with _host(f"ZOO_MARK={uuid.uuid4().hex}", *words) as host:
        assert host.stdout
        report = json.loads(await asyncio.wait_for(host.stdout.readline(), 60))
    assert report["outcome"] == outcome
    assert report["grown_kib"] < 64 * 1024
