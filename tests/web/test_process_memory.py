"""The memory of a long-running process is closed to other processes of the same user."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.plugins.folders import make_plugin
from tests.waiting import wait_until
from tests.web.server_process import make_arguments, start_server
from tests.workspace.nobody import NOBODY, find_shared_python
from toolyard.process_numbers import has_ended

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux closes the memory of a process")

ECHO = """
import json, sys
print(json.dumps({"status": "success", "result": json.load(sys.stdin)["text"]}))
"""

# Each attempt of a process with the same user; prints the names of those that were possible.
READER = """
import ctypes, json, os, sys
pid = int(sys.argv[1])
def read(name):
    with open(f"/proc/{pid}/{name}", "rb") as file:
        if name == "mem":
            with open(f"/proc/{pid}/maps") as maps:
                file.seek(int(next(iter(maps)).partition("-")[0], 16))
        return file.read(16)
def attach():
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    if libc.ptrace(16, pid, None, None):
        raise PermissionError(ctypes.get_errno())
    os.waitpid(pid, 0)
    libc.ptrace(17, pid, None, None)
attempts = {name: lambda name=name: read(name) for name in ("environ", "maps", "mem")}
attempts |= {"fd": lambda: os.readlink(f"/proc/{pid}/fd/0"), "cwd": lambda: os.readlink(f"/proc/{pid}/cwd")}
attempts["ptrace"] = attach
possible = []
for name, attempt in attempts.items():
    try:
        attempt()
        possible.append(name)
    except PermissionError:
        pass
print(json.dumps(possible))
"""


@pytest.fixture
def wrapper() -> list[str]:
    """The command that starts a program as a user who is not root. It may still read the interpreter's files."""
    if os.getuid() != 0:
        return []
    if not shutil.which("setpriv"):
        pytest.skip("root reads every process, and setpriv is missing to start one as another user")
    user = [f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    return ["setpriv", *user, "--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search", "env", "HOME=/"]


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder of that user; pytest's own folders are closed to others."""
    with tempfile.TemporaryDirectory() as name:
        if os.getuid() == 0:
            os.chown(name, NOBODY, NOBODY)
        yield Path(name)


def give_to_nobody(place: Path) -> None:
    if os.getuid() == 0:
        for path in (place, *place.rglob("*")):
            os.chown(path, NOBODY, NOBODY)


def list_possible_reads(wrapper: Sequence[str], pid: int) -> list[str]:
    done = subprocess.run(
        [*wrapper, sys.executable, "-c", READER, str(pid)], capture_output=True, text=True, timeout=60, check=True
    )
    result: list[str] = json.loads(done.stdout)
    return result


def list_children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()]


def list_warm_processes(server: int) -> list[int]:
    """Return the process that forks for each call of a plugin, and its children, once all of them wait for a call."""
    for pid in list_children(server):
        if b"fork_main.py\0serve" in Path(f"/proc/{pid}/cmdline").read_bytes() and (waiting := list_children(pid)):
            return [] if any(map(has_ended, waiting)) else [pid, *waiting]
    return []


@pytest.mark.requirement("trust:memory", "plugin:warm:apart")
async def test_a_process_of_the_same_user_cannot_read_the_server_which_works_as_before(
    place: Path, wrapper: list[str]
) -> None:
    words = [*wrapper, sys.executable, "-c", "import sys; sys.stdin.read()"]
    ordinary = await asyncio.create_subprocess_exec(*words, stdin=asyncio.subprocess.PIPE)
    try:
        cmdline = Path(f"/proc/{ordinary.pid}/cmdline")
        await wait_until(lambda: cmdline.read_bytes().startswith(sys.executable.encode()))
        others = await asyncio.to_thread(list_possible_reads, wrapper, ordinary.pid)
        if "environ" not in others:
            pytest.skip("this kernel closes every process to its own user")
    finally:
        await ordinary.communicate(b"")
    folder = make_plugin(place / "given", "Echo")
    (folder / "main.py").write_text(ECHO)
    (place / "project").mkdir()
    (place / "project" / "a.txt").write_text("needle\n")
    (place / "home").mkdir()
    python = find_shared_python()
    (place / "home" / "config.toml").write_text(f'plugin_python = "{python.program}"\n')
    give_to_nobody(place)
    options = ("--plugins", str(place / "given"), "--trust")
    async with start_server(place, *options, wrapper=wrapper) as server:
        assert await asyncio.to_thread(list_possible_reads, wrapper, server.process.pid) == []
        for number in range(3):  # cold, and then from a fork server
            status, envelope = await server.request("POST", "/v1/tools/Echo", {"text": f"hello {number}"})
            assert (status, envelope["text"]) == (200, f"hello {number}")
        outside = os.readlink("/proc/self/ns/user")
        for pid in await wait_until(lambda: list_warm_processes(server.process.pid)):
            if os.readlink(f"/proc/{pid}/ns/user") == outside:  # its user may do anything in a namespace of their own;
                assert await asyncio.to_thread(list_possible_reads, wrapper, pid) == []  # other plugins may not
        status, envelope = await server.request("POST", "/v1/tools/Grep", {"pattern": "needle"})
        assert (status, envelope["status"]) == (200, "success")
        status, found = await server.request("GET", "/v1/status")
        assert status == 200
        assert found["memory_bytes"] > 0


@pytest.mark.requirement("trust:memory")
async def test_a_process_of_the_same_user_cannot_read_an_mcp_server(place: Path, wrapper: list[str]) -> None:
    words = make_arguments(place, "mcp", "serve")
    give_to_nobody(place)
    process = await asyncio.create_subprocess_exec(
        *wrapper, *words, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(request).encode() + b"\n")
        async with asyncio.timeout(120):
            await process.stdout.readline()  # it has started
        assert await asyncio.to_thread(list_possible_reads, wrapper, process.pid) == []
    finally:
        await process.communicate(b"")
