"""Starting children, and what it says when one cannot be started."""

import asyncio
import os
import resource
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.plugins.children import LINUX, ZOO, Keeper, build_argv, keeper
from tests.waiting import wait_until
from toolyard.plugins.process.child import run_child
from toolyard.plugins.process.child_report import require_answer
from toolyard.plugins.process.launch import Launch
from toolyard.plugins.process.process_output import StderrRing
from toolyard.protocol.envelope import Failure, Reason
from toolyard.protocol.manifests.manifest import Limits


@pytest.fixture(params=["numbers", "groups"])
async def zoo(request: pytest.FixtureRequest) -> AsyncIterator[Keeper]:
    """Starts children as on Linux, and as on a system without process numbers."""
    async with keeper(numbered=LINUX and request.param == "numbers") as opened:
        yield opened


async def _start_failure(zoo: Keeper, program: Path, cwd: Path = ZOO) -> Failure:
    with pytest.raises(Failure) as raised:
        await zoo.starter.spawn(Launch(argv=(str(program),), cwd=cwd, profile=None, environment={}), {})
    assert raised.value.reason is Reason.START_FAILED
    assert str(program) in raised.value.message
    return raised.value


def _copy(name: str, folder: Path, mode: int) -> Path:
    path = folder / name
    path.write_bytes((ZOO / name).read_bytes())
    path.chmod(mode)
    return path


@pytest.mark.requirement("r:R28")
async def test_a_command_that_is_not_there(zoo: Keeper, tmp_path: Path) -> None:
    failure = await _start_failure(zoo, tmp_path / "nothing")
    assert "there is no such file" in failure.message
    assert failure.hint == "Install nothing, or mend entryPoint.command."


@pytest.mark.requirement("r:R28")
async def test_a_file_that_may_not_be_executed(zoo: Keeper, tmp_path: Path) -> None:
    path = _copy("echo.sh", tmp_path, 0o644)
    failure = await _start_failure(zoo, path)
    assert "it is not executable" in failure.message
    assert f"chmod +x {path}" in failure.hint


@pytest.mark.requirement("r:R28")
async def test_a_folder_is_no_command(zoo: Keeper, tmp_path: Path) -> None:
    assert "it is a folder" in (await _start_failure(zoo, tmp_path)).message


@pytest.mark.requirement("r:R28")
async def test_a_script_whose_interpreter_is_missing(zoo: Keeper, tmp_path: Path) -> None:
    failure = await _start_failure(zoo, _copy("wrong_interpreter.sh", tmp_path, 0o755))
    assert "the interpreter '/no/such/interpreter', which does not exist" in failure.message


@pytest.mark.requirement("r:R28")
async def test_a_script_with_the_line_ends_of_windows_shows_them(zoo: Keeper, tmp_path: Path) -> None:
    path = tmp_path / "windows.sh"
    path.write_bytes(b"#!/bin/sh\r\necho\r\n")
    path.chmod(0o755)
    assert r"'/bin/sh\r'" in (await _start_failure(zoo, path)).message


@pytest.mark.requirement("r:R28")
async def test_a_file_that_is_no_program(zoo: Keeper, tmp_path: Path) -> None:
    failure = await _start_failure(zoo, _copy("no_first_line.txt", tmp_path, 0o755))
    assert "neither a program of this machine nor a script" in failure.message


@pytest.mark.requirement("r:R28")
async def test_a_folder_that_is_gone(zoo: Keeper, tmp_path: Path) -> None:
    failure = await _start_failure(zoo, Path("/bin/sh"), cwd=tmp_path / "gone")
    assert f"its folder {tmp_path / 'gone'} does not exist" in failure.message


@pytest.mark.requirement("r:R28")
async def test_a_failed_start_leaves_no_descriptor_and_hurts_no_other_call(zoo: Keeper, tmp_path: Path) -> None:
    await zoo.run("echo.sh")
    before = set(os.listdir("/dev/fd"))
    for _ in range(5):
        await _start_failure(zoo, tmp_path / "nothing")
    await wait_until(lambda: set(os.listdir("/dev/fd")) <= before)  # a sweep may be reading
    assert require_answer("Echo", await zoo.run("echo.sh"))["status"] == "success"


@pytest.mark.requirement("s:S-82", "p:P4")
async def test_a_child_has_its_own_session_its_folder_and_no_environment_but_what_it_was_given(zoo: Keeper) -> None:
    child = await zoo.starter.spawn(
        Launch(
            argv=build_argv("tells_about_itself.py"), cwd=ZOO, profile=None, environment={"A": "1", "LC_ALL": "C.UTF-8"}
        ),
        {"B": "2"},
    )
    number = zoo.children.number_of(child.pid)
    answer = require_answer("Self", await run_child(child, b"", children=zoo.children, limits=Limits()))
    assert answer["environment"] == {"A": "1", "B": "2", "LC_ALL": "C.UTF-8"}
    assert answer["cwd"] == str(ZOO)
    assert answer["leads_a_session"] is True
    assert answer["descriptors"] == [0, 1, 2]
    assert not number or answer["number"] == number


@pytest.mark.skipif(not LINUX, reason="limits of other processes are set on Linux only")
@pytest.mark.requirement("r:R33", "s:S-88")
async def test_every_limit_bounds_what_a_plugin_can_use(zoo: Keeper) -> None:
    files, spin, disk, memory = await asyncio.gather(
        zoo.run("opens_files.py", limits=Limits(open_files=50)),
        zoo.run("spins.py", limits=Limits(cpu_s=1)),
        zoo.run("writes_a_large_file.py", limits=Limits(file_bytes=2**20)),
        zoo.run("eats_memory.py", limits=Limits(memory_bytes=200 * 2**20)),
    )
    assert require_answer("Files", files)["error"] == "Too many open files after 47"
    for name, ended, part in (
        ("Spin", spin, "CPU time"),
        ("Disk", disk, "File too large"),
        ("Memory", memory, "MemoryError"),
    ):
        with pytest.raises(Failure) as raised:
            require_answer(name, ended)
        assert raised.value.reason is Reason.CRASHED
        assert part in raised.value.message


@pytest.mark.requirement("platform:macos")
async def test_without_anything_that_only_linux_has_plugins_run_and_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pidfd_open", raising=False)
    monkeypatch.delattr(os, "waitid", raising=False)
    monkeypatch.delattr(resource, "prlimit", raising=False)
    monkeypatch.setattr(sys, "platform", "darwin")
    async with keeper(numbered=False) as zoo:
        assert require_answer("Echo", await zoo.run("echo.sh", stdin=b'{"a": 1}'))["result"] == {"a": 1}
        assert require_answer("Held", await zoo.run("leaves_stdout_open.py", drain_s=0.05))["result"] == "done"
        ring = StderrRing()
        run = asyncio.create_task(zoo.run("ignores_signals.py", stderr=ring, grace_s=0.1))
        await wait_until(lambda: ring.total > 0)
        run.cancel()
        assert await zoo.wait_all_gone()
