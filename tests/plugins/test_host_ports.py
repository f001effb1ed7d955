"""Listening sockets that the host serves for a plugin, also across network namespaces."""

import asyncio
import fcntl
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.plugins.proxies import open_listener
from tests.waiting import run_loop_once, wait_until
from tests.workspace.web import Reply, Web, here, serving
from toolyard.plugins.process.network_proxy import NetworkProxy, proxy_variables
from toolyard.plugins.process.network_services import PortForward
from toolyard.plugins.process.ports import ConnectionCallback, HostPorts

pytestmark = pytest.mark.requirement("network:ports")

# Runs in a new network namespace: brings its loopback up, sends two listening sockets, and is the plugin from then on.
STARTER = """
import fcntl, json, os, socket, struct, sys
with socket.socket() as any_socket:
    fcntl.ioctl(any_socket, 0x8914, struct.pack("16sh", b"lo", 0x1))  # SIOCSIFFLAGS, IFF_UP
listeners = [socket.create_server(("127.0.0.1", port)) for port in (8001, 8002)]
channel = socket.socket(fileno=int(sys.argv[1]))
socket.send_fds(channel, [b"ports"], [listener.fileno() for listener in listeners])
for listener in listeners:
    listener.close()
channel.close()
os.execvp(sys.argv[2], sys.argv[2:])
"""


@pytest.fixture
async def ports() -> AsyncIterator[HostPorts]:
    opened = HostPorts()
    yield opened
    await opened.close()


@pytest.fixture
def channel() -> Iterator[tuple[socket.socket, socket.socket]]:
    """The host's end and the starter's."""
    host, starter = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with host, starter:
        yield host, starter


@pytest.fixture
def web() -> Iterator[Web]:
    with serving() as running:
        running.replies["/a"] = Reply(b"hello")
        yield running


def greeting(word: bytes) -> ConnectionCallback:
    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(word)
        await writer.drain()
        writer.close()

    return greet


async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"hello")
    await asyncio.Event().wait()


async def read_from(port: int) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        async with asyncio.timeout(60):
            return await reader.read()
    finally:
        writer.close()


def port_of(listener: socket.socket) -> int:
    return int(listener.getsockname()[1])


def find_descriptors(inode: int) -> list[int]:
    links = [link for link in Path("/proc/self/fd").iterdir() if link.exists()]
    return [int(link.name) for link in links if link.stat().st_ino == inode]


def count_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


async def test_each_listening_socket_is_served_by_its_handler(ports: HostPorts) -> None:
    listeners = [open_listener(), open_listener()]
    numbers = [port_of(listener) for listener in listeners]
    for listener, word in zip(listeners, (b"one", b"two"), strict=True):
        await ports.serve(listener, greeting(word))
    assert [await read_from(number) for number in numbers] == [b"one", b"two"]


async def test_close_ends_the_listeners_and_their_connections(ports: HostPorts) -> None:
    listener = open_listener()
    number = port_of(listener)
    await ports.serve(listener, hang)
    reader, writer = await asyncio.open_connection("127.0.0.1", number)
    assert await reader.readexactly(5) == b"hello"
    await ports.close()
    async with asyncio.timeout(60):
        assert await reader.read() == b""
    writer.close()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", number)
    late = open_listener()
    number = port_of(late)
    await ports.serve(late, hang)
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", number)


async def test_sockets_that_come_later_through_a_channel_are_served(
    ports: HostPorts, channel: tuple[socket.socket, socket.socket]
) -> None:
    host, starter = channel
    waiting = asyncio.create_task(ports.serve_from_channel(host, [greeting(b"one"), greeting(b"two")]))
    await run_loop_once()
    assert not waiting.done()
    with open_listener() as one, open_listener() as two:
        numbers = [port_of(one), port_of(two)]
        socket.send_fds(starter, [b"ports"], [one.fileno(), two.fileno()])
    await waiting
    assert [await read_from(number) for number in numbers] == [b"one", b"two"]


async def test_received_sockets_are_not_inherited_by_children(
    ports: HostPorts, channel: tuple[socket.socket, socket.socket]
) -> None:
    host, starter = channel
    with open_listener() as one:
        inode = os.fstat(one.fileno()).st_ino
        socket.send_fds(starter, [b"ports"], [one.fileno()])
    await ports.serve_from_channel(host, [hang])
    received = find_descriptors(inode)
    assert received
    assert all(fcntl.fcntl(number, fcntl.F_GETFD) & fcntl.FD_CLOEXEC for number in received)


async def test_anything_but_the_expected_listening_sockets_is_refused_and_closed(
    ports: HostPorts, channel: tuple[socket.socket, socket.socket], tmp_path: Path
) -> None:
    host, starter = channel
    with (
        open_listener() as one,
        open_listener() as two,
        open_listener() as three,
        open_listener() as four,
        socket.socket() as plain,
        socket.socket(type=socket.SOCK_DGRAM) as datagrams,
        (tmp_path / "file").open("w") as file,
    ):
        good = one.fileno(), two.fileno()
        wrong: list[list[int]] = [
            [],
            [one.fileno()],
            [*good, three.fileno()],
            [*good, three.fileno(), four.fileno()],
            [one.fileno(), plain.fileno()],
            [one.fileno(), datagrams.fileno()],
            [one.fileno(), file.fileno()],
            [file.fileno(), one.fileno()],
        ]
        before = count_descriptors()
        for descriptors in wrong:
            socket.send_fds(starter, [b"ports"], descriptors)
            with pytest.raises(OSError, match=r"listening|non-socket"):
                await ports.serve_from_channel(host, [hang, hang])
            assert (descriptors, count_descriptors()) == (descriptors, before)


async def test_a_starter_that_is_gone_is_an_error(
    ports: HostPorts, channel: tuple[socket.socket, socket.socket]
) -> None:
    host, starter = channel
    starter.close()
    with pytest.raises(ConnectionResetError):
        await ports.serve_from_channel(host, [hang])


async def test_close_ends_the_wait_for_sockets(ports: HostPorts, channel: tuple[socket.socket, socket.socket]) -> None:
    waiting = asyncio.create_task(ports.serve_from_channel(channel[0], [hang]))
    await run_loop_once()
    await ports.close()
    with pytest.raises(ConnectionAbortedError):
        await waiting
    with pytest.raises(ConnectionAbortedError):
        await ports.serve_from_channel(channel[0], [hang])


def can_unshare_network() -> bool:
    command = ["unshare", "--user", "--map-root-user", "--net", "true"]
    if shutil.which("unshare") is None:
        return False
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.mark.requirement("network:proxy")
@pytest.mark.skipif(not can_unshare_network(), reason="needs network namespaces")
async def test_a_program_in_its_own_network_namespace_reaches_declared_hosts_and_the_callback_port_only(
    ports: HostPorts, channel: tuple[socket.socket, socket.socket], web: Web
) -> None:
    host, starter = channel
    refused: list[str] = []
    proxy = NetworkProxy(
        [f"files.example:{web.port}", f"127.0.0.1:{web.port}"],
        resolve=here,
        on_refused=lambda name, port, reason: refused.append(name),
    )
    script = f"""
        curl -sS -q http://files.example:{web.port}/a; echo
        curl -sS -q http://other.example:{web.port}/a -o /dev/null -w '%{{http_code}}\\n'
        curl -sS -q http://127.0.0.1:8002/a; echo
        curl -sS -q http://127.0.0.1:{web.port}/a 2>/dev/null || echo closed
        curl -sS -q --noproxy '*' http://[::ffff:127.0.0.1]:{web.port}/a 2>/dev/null || echo closed
    """
    command = ["unshare", "--user", "--map-root-user", "--net"]
    command += [sys.executable, "-c", STARTER, str(starter.fileno()), "sh", "-c", script]
    environment = {"PATH": os.environ["PATH"], **proxy_variables(8001)}
    child = await asyncio.create_subprocess_exec(
        *command, pass_fds=[starter.fileno()], env=environment, stdout=subprocess.PIPE
    )
    starter.close()
    await ports.serve_from_channel(host, [proxy.handle, PortForward("127.0.0.1", web.port).handle])
    printed, _ = await child.communicate()
    assert printed.decode().split() == ["hello", "403", "hello", "closed", "closed"]
    assert refused == ["other.example"]
    await wait_until(lambda: len(web.asked) == 2)
