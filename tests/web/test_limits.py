"""A server that may open only a few files, as when clients hold all it has."""

import asyncio
import contextlib
import os
import resource
import signal
import sys
from pathlib import Path

import pytest

from tests.waiting import wait_until
from tests.web.server_process import run_command, start_server
from toolyard.engine.ownership import OwnerLock, is_owned

FILES = 80
CLIENTS = 150


@pytest.mark.requirement("r:R64")
@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="the limit of another process is set with prlimit")
async def test_at_the_open_file_limit_accepting_pauses_and_recovers_without_a_crash(tmp_path: Path) -> None:
    async with start_server(tmp_path) as server, contextlib.AsyncExitStack() as clients:
        pid = server.process.pid
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (FILES, FILES))
        port = int(server.url.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        clients.callback(writer.close)
        for _ in range(CLIENTS):
            clients.callback((await asyncio.open_connection("127.0.0.1", port))[1].close)
        await wait_until(lambda: _open_files(pid) >= FILES - 2)
        before = _cpu_ticks(pid)
        writer.write(f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
        async with asyncio.timeout(60):
            assert (await reader.readline()).startswith(b"HTTP/1.1 200"), "who is in is still served"
        assert _cpu_ticks(pid) - before < os.sysconf("SC_CLK_TCK"), "waiting for a file takes no time of the processor"
        await clients.aclose()
        # Until then the queue of the kernel may be full: it drops a connection that its client takes for open.
        await wait_until(lambda: _open_files(pid) < FILES // 2)
        async with asyncio.timeout(60):
            status, tools = await server.request("GET", "/v1/tools")
        assert (status, bool(tools["data"])) == (200, True)
        assert (await server.request("POST", "/v1/tools/LS", {"path": "."}))[1]["status"] == "success"
        server.signal(signal.SIGTERM)
        assert (await server.wait_for_end())[0] == 0


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
