"""A proxy on this machine for tests: it runs in a thread, on the loop of the server or on Python's own."""

import asyncio
import socket
import socketserver
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvloop

from tests.workspace.web import here
from toolyard.plugins.process.network_proxy import NetworkProxy
from toolyard.plugins.process.ports import ConnectionCallback, ConnectionLimits, HostPorts
from toolyard.workspace.safe_fetch import Resolve

LoopFactory = Callable[[], asyncio.AbstractEventLoop]
LOOPS: tuple[LoopFactory, ...] = (asyncio.new_event_loop, uvloop.new_event_loop)


@dataclass
class RunningProxy:
    port: int
    refused: list[tuple[str, int, str]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), 60)

    def send(self, raw: bytes) -> bytes:
        """Return everything that comes back for these bytes."""
        with self.connect() as client:
            client.sendall(raw)
            return read_all(client)


def read_all(client: socket.socket) -> bytes:
    received = b""
    while data := client.recv(65536):
        received += data
    return received


def open_listener() -> socket.socket:
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)
    return listener


@contextmanager
def running_handler(handle: ConnectionCallback, loop_factory: LoopFactory = asyncio.new_event_loop) -> Iterator[int]:
    """Serve a handler in a thread; yield its port. Fails when the handler raised an error that nobody caught."""
    listener = open_listener()
    port = int(listener.getsockname()[1])
    started, loops, ended = threading.Event(), [], asyncio.Event()
    problems: list[dict[str, Any]] = []

    async def serve() -> None:
        loops.append(asyncio.get_running_loop())
        loops[0].set_exception_handler(lambda loop, problem: problems.append(problem))
        ports = HostPorts()
        await ports.serve(listener, handle)
        started.set()
        await ended.wait()
        await ports.close()

    def run() -> None:
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            runner.run(serve())

    thread = threading.Thread(target=run)
    thread.start()
    assert started.wait(60)
    try:
        yield port
    finally:
        loops[0].call_soon_threadsafe(ended.set)
        thread.join()
    assert problems == []


@contextmanager
def running_proxy(
    hosts: Sequence[str],
    *,
    resolve: Resolve = here,
    tls: Callable[[], ssl.SSLContext] = ssl.create_default_context,
    limits: ConnectionLimits | None = None,
    loop_factory: LoopFactory = asyncio.new_event_loop,
) -> Iterator[RunningProxy]:
    refused: list[tuple[str, int, str]] = []
    proxy = NetworkProxy(
        hosts, on_refused=lambda *words: refused.append(words), resolve=resolve, tls=tls, limits=limits
    )
    with running_handler(proxy.handle, loop_factory) as port:
        yield RunningProxy(port, refused)


@dataclass
class RawServer:
    """A TCP server that sends fixed bytes when it has read a request, and keeps what it has read."""

    port: int
    received: list[bytes] = field(default_factory=list)


@contextmanager
def raw_server(reply: bytes, *, ends_with: bytes = b"\r\n\r\n", host: str = "127.0.0.1") -> Iterator[RawServer]:
    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            received = b""
            while not received.endswith(ends_with) and (data := self.request.recv(65536)):
                received += data
            server.received.append(received)
            self.request.sendall(reply)

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        address_family = socket.AF_INET6 if ":" in host else socket.AF_INET

    with Server((host, 0), Handler) as listening:
        server = RawServer(listening.server_address[1])
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            listening.shutdown()
            thread.join()
