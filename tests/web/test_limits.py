"""A server that may open only a few files, as when clients hold all it has."""

import asyncio
import contextlib
import json
import os
import resource
import signal
import sys
from pathlib import Path

import pytest

from tests.waiting import wait_for_value, wait_until, wait_until_still
from tests.web.conftest import RunningServer
from tests.web.server_process import run_command, start_server
from toolyard.engine.ownership import OwnerLock, is_owned

FILES = 128
CLIENTS = 150
CALL = {"text": "x"}


@pytest.mark.requirement("r:R64")
@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="the limit of another process is set with prlimit")
async def test_clients_leave_enough_open_files_for_plugin_starts_and_one_too_many_is_told(tmp_path: Path) -> None:
    async with start_server(tmp_path) as server, contextlib.AsyncExitStack() as clients:
        pid = server.process.pid
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (FILES, FILES))
        port = int(server.url.rpartition(":")[2])
        head = f"Host: 127.0.0.1:{port}\r\nAuthorization: Bearer {server.key}\r\n"
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        clients.callback(writer.close)
        for _ in range(CLIENTS):
            clients.callback((await asyncio.open_connection("127.0.0.1", port))[1].close)
        body = json.dumps(CALL)
        writer.write(
            f"POST /v1/tools/EchoPlugin HTTP/1.1\r\n{head}Content-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n{body}".encode()
        )
        async with asyncio.timeout(120):
            assert (await reader.readline()).startswith(b"HTTP/1.1 200"), "who is in is still served"
            assert "Echo: x" in (await reader.readuntil(b"}}")).decode()
        await wait_until(lambda: _open_files(pid) < FILES - 16)  # those that were too many are closed
        status, retry_after = await _ask_health(port, expected=503)
        assert (status, retry_after) == (503, True)
        await clients.aclose()
        assert (await _ask_health(port, expected=200))[0] == 200
        assert (await server.request("POST", "/v1/tools/LS", {"path": "."}))[1]["status"] == "success"
        server.signal(signal.SIGTERM)
        assert (await server.wait_for_end())[0] == 0


@pytest.mark.requirement("r:R64")
@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="the limit of another process is set with prlimit")
async def test_at_the_open_file_limit_accepting_pauses_and_recovers_without_a_crash(tmp_path: Path) -> None:
    async with start_server(tmp_path) as server, contextlib.AsyncExitStack() as clients:
        pid = server.process.pid
        port = int(server.url.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        clients.callback(writer.close)
        async with asyncio.timeout(60):
            await server.request("GET", "/v1/tools")  # what is opened once is open now
        used = await wait_until_still(lambda: _open_files(pid))
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (used + 4, FILES))
        for _ in range(CLIENTS):
            clients.callback((await asyncio.open_connection("127.0.0.1", port))[1].close)
        await wait_until(lambda: _open_files(pid) >= used + 2)
        before = _cpu_ticks(pid)
        writer.write(f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
        async with asyncio.timeout(60):
            assert (await reader.readline()).startswith(b"HTTP/1.1 200"), "who is in is still served"
        assert _cpu_ticks(pid) - before < os.sysconf("SC_CLK_TCK"), "waiting for a file takes no time of the processor"
        await clients.aclose()
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (FILES, FILES))
        # Until then the queue of the kernel may be full: it drops a connection that its client takes for open.
        assert (await _ask_health(port, expected=200))[0] == 200
        assert (await server.request("POST", "/v1/tools/LS", {"path": "."}))[1]["status"] == "success"
        server.signal(signal.SIGTERM)
        assert (await server.wait_for_end())[0] == 0


async def _ask_health(port: int, *, expected: int) -> tuple[int, bool]:
    """Ask on new connections until the answer has this status; return it, and whether it says when to come again."""

    async def ask() -> tuple[int, bool]:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            writer.write(f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n".encode())
            answer = await reader.read()
        except OSError:  # too many of those that were too many
            answer = b""
        finally:
            writer.close()
        return int(answer.split()[1]) if answer else 0, b"retry-after" in answer

    async with asyncio.timeout(60):
        return await wait_for_value(ask, lambda found: found[0] == expected)


@pytest.mark.requirement("r:R64")
async def test_an_idle_connection_makes_room_for_a_new_one(
    running_server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolyard.web.server.connection._max_connections", lambda: 1)
    port = int(running_server.url.rpartition(":")[2])
    request = f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode()
    first, writer = await asyncio.open_connection("127.0.0.1", port)
    async with asyncio.timeout(60):
        writer.write(request)
        assert (await first.readuntil(b"}")).startswith(b"HTTP/1.1 200")
        assert (await _ask_health(port, expected=200))[0] == 200
        assert await first.read() == b""
    writer.close()


def _open_files(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def _cpu_ticks(pid: int) -> int:
    """Ticks of the processor that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


@pytest.mark.requirement("store:owner-lock")
async def test_calls_and_programs_never_take_the_lock_of_the_home(tmp_path: Path) -> None:
    home = tmp_path / "home"
    code, _, err = await run_command(tmp_path, "call", "LS", "path=.")
    assert (code, err) == (0, "")
    assert not (home / "owner.lock").exists()
    program = (
        "import sys, toolyard\n"
        "from pathlib import Path\n"
        "from toolyard.engine.ownership import OwnerLock\n"
        "with toolyard.open(project=sys.argv[1], home=sys.argv[2]) as yard:\n"
        "    assert yard.call('LS', {'path': '.'}).error is None\n"
        "    OwnerLock.acquire(Path(sys.argv[2])).release()\n"
    )
    assert await _python(program, tmp_path / "project", home) == (0, "")
    lock = OwnerLock.acquire(home)
    try:
        code, _, err = await run_command(tmp_path, "call", "LS", "path=.")
        assert (code, err) == (0, ""), "another process has it, and nobody waits for it"
        request = program.replace("    OwnerLock.acquire(Path(sys.argv[2])).release()\n", "")
        assert await _python(request, tmp_path / "project", home) == (0, "")
        assert is_owned(home)
    finally:
        lock.release()


async def _python(program: str, *words: Path) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, *map(str, words), stderr=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(60):
        _, err = await process.communicate()
    return process.returncode or 0, err.decode()
