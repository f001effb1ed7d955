"""Machines that share a home in turn: an earlier container, or this machine before it was renamed."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from toolyard.config import load_config
from toolyard.protocol.store import Record
from toolyard.workspace.home_folder import MachineLock, list_machines
from toolyard.yard.yard import Yard

pytestmark = pytest.mark.requirement("container:machine-name")

HOLDER = """
import socket, sys
from pathlib import Path
socket.gethostname = lambda: "first"
from toolyard.workspace.home_folder import MachineLock
lock = MachineLock.acquire(Path(sys.argv[1]))
print("held", flush=True)
input()
"""


def open_as(machine: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> Yard:
    monkeypatch.setattr(socket, "gethostname", lambda: machine)
    return Yard(load_config(str(home.parent), str(home)))


async def leave_running_call(yard: Yard) -> None:
    record = Record(
        kind="call", id="call_1", state="running", owner=yard.boot.name, created=1.0, updated=1.0, body={"tool": "LS"}
    )
    assert await yard.state.store.commit([record])


async def get_state(yard: Yard) -> str:
    call = await yard.state.store.get("call", "call_1")
    assert call is not None
    return call.state


async def test_what_an_earlier_machine_left_running_ends_when_the_machine_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    first = open_as("first", home, monkeypatch)
    await leave_running_call(first)
    second = open_as("second", home, monkeypatch)
    async with second:
        assert (await second.state.recover()).calls == 0
        assert await get_state(second) == "running"
        await first.state.store.close()  # as its end closes it
        assert (await second.state.recover()).calls == 1
        assert await get_state(second) == "interrupted"
    await first.close()


def test_a_machine_is_listed_until_its_last_process_ends_and_its_lock_is_removed_then(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        own = MachineLock.acquire(tmp_path)
        assert list_machines(tmp_path) == {"first", socket.gethostname()}
        holder.kill()
    assert list_machines(tmp_path) == {socket.gethostname()}
    assert [file.name for file in (tmp_path / "machines").iterdir()] == [f"{socket.gethostname()}.lock"]
    own.release()
    assert list_machines(tmp_path) == frozenset()


def test_a_home_that_nobody_used_has_no_machines(tmp_path: Path) -> None:
    assert list_machines(tmp_path) == frozenset()


def test_a_lock_that_was_removed_between_opening_and_locking_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    lock, removed = fcntl.flock, list[int]()

    def remove_first(fd: int, operation: int) -> None:
        if not removed:
            removed.append(fd)
            list_machines(tmp_path)
        lock(fd, operation)

    monkeypatch.setattr(fcntl, "flock", remove_first)
    held = MachineLock.acquire(tmp_path)
    monkeypatch.undo()
    assert list_machines(tmp_path) == {socket.gethostname()}
    held.release()
