"""The server under a service manager: a socket that is passed to it, restarts, and notices of its state."""

import asyncio
import contextlib
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from tests.waiting import wait_for_value, wait_until
from tests.web.server_process import make_arguments, read_presence
from tests.web.test_serve import SLEEPY, add_plugin, plugin_options
from toolyard.errors import UsageError
from toolyard.web.server.systemd import ServiceNotifier, take_activated_socket

WITH_ACTIVATION = pytest.mark.skipif(
    shutil.which("systemd-socket-activate") is None, reason="systemd-socket-activate is not installed"
)


def find_free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@asynccontextmanager
async def activated(place: Path, port: int, *words: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Servers behind a socket of systemd-socket-activate: as in a unit, the next one starts when one has ended.

    That program becomes the one that it starts, so a shell keeps the socket; it sets LISTEN_PID as systemd would.
    """
    serve = shlex.join(make_arguments(place, "serve", "--quiet", *words))
    once = shlex.quote(f"export LISTEN_PID=$$; exec {serve}")
    loop = f"while true; do sh -c {once}; done"
    process = await asyncio.create_subprocess_exec(
        "systemd-socket-activate",
        f"--listen=127.0.0.1:{port}",
        "sh",
        "-c",
        loop,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # with the server of the moment, which is in the group
        await process.wait()


async def ask_pid(client: aiohttp.ClientSession, url: str, place: Path) -> int:
    """The process that is there after a request, which must be answered with 200, on a connection of its own."""
    async with client.get(f"{url}/readyz", headers={"Connection": "close"}) as answer:
        assert answer.status == 200
        await answer.read()
    pid: int = read_presence(place / "home")["pid"]
    return pid


@WITH_ACTIVATION
@pytest.mark.requirement("service:activation")
async def test_connections_wait_in_the_socket_while_the_server_restarts(tmp_path: Path) -> None:
    folder, port = add_plugin(tmp_path, "Sleepy", SLEEPY), find_free_port()
    url = f"http://127.0.0.1:{port}"
    patient = aiohttp.ClientTimeout(total=180)
    async with activated(tmp_path, port, *plugin_options(tmp_path)), aiohttp.ClientSession(timeout=patient) as client:

        async def connect_first() -> int | None:
            try:
                return await ask_pid(client, url, tmp_path)
            except aiohttp.ClientConnectorError:  # systemd-socket-activate does not listen yet
                return None

        first = await wait_for_value(connect_first)
        assert first is not None
        key = {"Authorization": f"Bearer {(tmp_path / 'home/key').read_text().strip()}"}
        running = asyncio.create_task(client.post(f"{url}/v1/tools/Sleepy", json={}, headers=key))
        await wait_until((folder / "started").exists)
        os.kill(first, signal.SIGTERM)  # it waits for the call; the connections below wait for the next server

        async def ask_until_restarted() -> None:
            while await ask_pid(client, url, tmp_path) == first:
                pass

        asking = [asyncio.create_task(ask_until_restarted()) for _ in range(5)]
        (folder / "go").touch()
        async with asyncio.timeout(180):
            answer = await running
            assert (answer.status, (await answer.json())["status"]) == (200, "success")
            await asyncio.gather(*asking)
        second = read_presence(tmp_path / "home")["pid"]
        assert second != first


@WITH_ACTIVATION
@pytest.mark.requirement("service:activation")
async def test_the_socket_of_the_manager_takes_the_place_of_host_and_port(tmp_path: Path) -> None:
    port = find_free_port()
    async with activated(tmp_path, port, "--port", "1"), aiohttp.ClientSession() as client:

        async def ask() -> bool:
            try:
                async with client.get(f"http://127.0.0.1:{port}/healthz") as answer:
                    return answer.status == 200
            except aiohttp.ClientConnectorError:
                return False

        await wait_for_value(ask)
        assert read_presence(tmp_path / "home")["url"] == f"http://127.0.0.1:{port}"


def run_with_socket(passed: socket.socket, count: str = "1") -> str:
    """What a process says that is given this socket by a manager."""
    code = (
        "import os\n"
        "from toolyard.errors import UsageError\n"
        "from toolyard.web.server.systemd import take_activated_socket\n"
        f"given = {{'LISTEN_FDS': {count!r}, 'LISTEN_PID': str(os.getpid())}}\n"
        "try:\n"
        "    taken = take_activated_socket(given)\n"
        "    print(taken.getsockname()[1], os.get_inheritable(taken.fileno()))\n"
        "except UsageError as error:\n"
        "    print(error)\n"
    )
    become = "import os, sys; os.dup2(int(sys.argv[1]), 3); os.execv(sys.executable, [sys.executable, *sys.argv[2:]])"
    words = [sys.executable, "-c", become, str(passed.fileno()), "-c", code]
    done = subprocess.run(words, pass_fds=[passed.fileno()], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.requirement("service:activation")
def test_only_a_single_listening_tcp_socket_is_taken_and_no_child_gets_it() -> None:
    with socket.socket() as listening, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        listening.bind(("127.0.0.1", 0))
        assert "does not listen on TCP" in run_with_socket(listening)
        listening.listen()
        assert run_with_socket(listening) == f"{listening.getsockname()[1]} False"
        assert "passed 2 sockets" in run_with_socket(listening, "2")
        assert "does not listen on TCP" in run_with_socket(datagrams)
    assert take_activated_socket({}) is None
    assert take_activated_socket({"LISTEN_FDS": "1", "LISTEN_PID": "1"}) is None  # for another process
    with pytest.raises(UsageError):
        take_activated_socket({"LISTEN_FDS": "3", "LISTEN_PID": str(os.getpid())})


@pytest.mark.requirement("service:notify")
async def test_the_manager_is_told_when_the_server_is_ready_alive_and_stopping(tmp_path: Path) -> None:
    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    address = tmp_path / "notify"
    manager.bind(str(address))
    manager.setblocking(False)
    told = {**os.environ, "NOTIFY_SOCKET": str(address), "WATCHDOG_USEC": "20000"}
    process = await asyncio.create_subprocess_exec(
        *make_arguments(tmp_path, "serve", "--quiet", "--port", "0"), env=told, stdout=asyncio.subprocess.DEVNULL
    )
    with manager:

        async def receive() -> str:
            return (await asyncio.get_running_loop().sock_recv(manager, 4096)).decode()

        async with asyncio.timeout(180):
            assert await receive() == "READY=1"
            assert read_presence(tmp_path / "home")["pid"] == process.pid
            assert [await receive() for _ in range(3)] == ["WATCHDOG=1"] * 3
            process.send_signal(signal.SIGTERM)
            await wait_for_value(receive, lambda state: state == "STOPPING=1")
        assert await process.wait() == 0


@pytest.mark.requirement("service:notify")
async def test_a_server_without_a_manager_tells_nobody(tmp_path: Path) -> None:
    ServiceNotifier({}).send("READY=1")
    ServiceNotifier({"NOTIFY_SOCKET": str(tmp_path / "nobody")}).send("READY=1")
    for environ in ({}, {"WATCHDOG_USEC": "1000", "WATCHDOG_PID": "1"}, {"WATCHDOG_USEC": "soon"}):
        await ServiceNotifier(environ).feed_watchdog()  # returns at once
