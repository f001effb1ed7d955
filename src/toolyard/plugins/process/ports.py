"""The ports that the host serves inside a plugin's network namespace.

A socket belongs for ever to the namespace it was made in, whoever holds it. So the host accepts connections on
listening sockets that were bound in there, and reaches the world from its own network. The sockets are handed over
when the namespace is made, or come later through a channel from the program that makes it. Bytes are relayed both
ways, with bounds on memory and silence.
"""

import array
import asyncio
import contextlib
import logging
import os
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Final, TypeAlias

from toolyard.confinement.start import StartedProcess
from toolyard.plugins.process.launch import PortServer

_RECEIVE_S = 30.0
_BACKLOG = 64
CHUNK: Final = 64 * 1024
_log = logging.getLogger(__name__)
ConnectionCallback: TypeAlias = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
"""Serves one accepted connection to its end, and closes it."""
TakePort: TypeAlias = Callable[[int, PortServer], None]
"""Takes a listening socket, which stays open here, and what is served on it."""


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    connections: int = 64  # at once; each takes two descriptors of the host
    head_s: float = 30.0  # for the whole head of a request
    connect_s: float = 20.0  # for looking up a name, and again for reaching one of its addresses
    idle_s: float = 600.0  # without a byte in either direction: some models think for minutes
    linger_s: float = 5.0  # for a peer to read the last bytes before it is cut off


class IdleTimeout:
    """A timeout that starts again at each sign of life. Raises TimeoutError in the block it guards."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._timeout = asyncio.timeout(seconds)

    async def __aenter__(self) -> "IdleTimeout":
        await self._timeout.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._timeout.__aexit__(kind, error, trace)

    def restart(self) -> None:
        if not self._timeout.expired():
            self._timeout.reschedule(asyncio.get_running_loop().time() + self._seconds)


@dataclass(frozen=True, slots=True)
class Connection:
    """The two ends of one connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> None:
        """Write the bytes, and wait while the peer is slow to read. Raises OSError when it is gone."""
        self._require_open()
        self.writer.write(data)
        await self.writer.drain()

    def end(self) -> None:
        """Send the end of the stream; the peer may still send. Raises OSError when it is gone."""
        self._require_open()
        self.writer.write_eof()

    def _require_open(self) -> None:
        if self.writer.is_closing():  # on which uvloop would raise a RuntimeError
            raise ConnectionResetError("the peer is gone")


class HostPorts:
    """Listening sockets and their connections, served by the running loop until ``close``."""

    def __init__(self) -> None:
        self._servers: list[asyncio.Server] = []
        self._connections: set[asyncio.Task[None]] = set()
        self._waiting: set[asyncio.Future[list[socket.socket]]] = set()
        self._is_closed = False

    async def serve(self, listener: socket.socket, handle: ConnectionCallback) -> None:
        """Serve a listening socket, which is closed with this object, or at once when that has been closed."""

        async def handle_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self._handle_connection(handle, reader, writer)

        listener.setblocking(False)
        server = await asyncio.start_server(handle_connection, sock=listener, limit=CHUNK, backlog=_BACKLOG)
        self._servers.append(server)
        if self._is_closed:
            server.close()

    async def serve_from_channel(self, channel: socket.socket, handlers: Sequence[ConnectionCallback]) -> None:
        """Receive one packet with a listening socket for each handler, in their order, and serve them.

        ``channel`` is a SEQPACKET socket and stays the caller's. Raises OSError when the sender is gone, sends
        anything else, or takes too long, and when this object is closed meanwhile; nothing is served then.
        """
        async with asyncio.timeout(_RECEIVE_S):
            listeners = await self._receive_listeners(channel, len(handlers))
        for listener, handle in zip(listeners, handlers, strict=True):
            await self.serve(listener, handle)

    def list_listeners(self) -> list[int]:
        """Return the descriptors of the listening sockets, in the order in which they came."""
        return [server.sockets[0].fileno() for server in self._servers]

    async def close(self) -> None:
        """Stop listening, and cut off the connections that are open."""
        self._is_closed = True
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_exception(ConnectionAbortedError("the ports were closed"))
        for server in self._servers:
            server.close()
        self._servers.clear()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _handle_connection(
        self, handle: ConnectionCallback, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._connections.add(task)
            task.add_done_callback(self._connections.discard)
        try:
            if not self._is_closed:  # else it came in the moment of the end
                await handle(reader, writer)
        except asyncio.CancelledError:  # by ``close``, which waits for it
            writer.transport.abort()
        finally:
            writer.close()

    async def _receive_listeners(self, channel: socket.socket, count: int) -> list[socket.socket]:
        loop = asyncio.get_running_loop()
        received: asyncio.Future[list[socket.socket]] = loop.create_future()

        def receive() -> None:
            if received.done():
                return
            try:
                received.set_result(_receive_packet(channel, count))
            except (BlockingIOError, InterruptedError):
                return  # nothing there yet after all
            except OSError as error:
                received.set_exception(error)

        if self._is_closed:
            raise ConnectionAbortedError("the ports were closed")
        channel.setblocking(False)
        loop.add_reader(channel, receive)
        self._waiting.add(received)
        try:
            return await received
        finally:
            loop.remove_reader(channel)
            self._waiting.discard(received)


class ChildPorts:
    def __init__(self, services: Mapping[int, PortServer], started: StartedProcess) -> None:
        """``services`` belong to the profile's ports, in the order of the ports."""
        self._ports = HostPorts()
        self._services = tuple(services.values())
        self._serving = asyncio.ensure_future(self._serve(started)) if self._services else None
        self._closing: asyncio.Future[None] | None = None
        if not self._services and started.channel is not None:
            started.channel.close()

    def hand_over(self, take: TakePort) -> None:
        """Give every port to ``take``, as soon as it is served here."""

        def give() -> None:
            for listener, service in zip(self._ports.list_listeners(), self._services, strict=False):
                take(listener, service)

        if self._serving is None or self._serving.done():
            give()
        else:
            self._serving.add_done_callback(lambda _: give())

    def close(self) -> None:
        """Stop serving; connections that are open are cut off."""
        if self._serving is not None and self._closing is None:
            self._closing = asyncio.ensure_future(self._close(self._serving))

    async def wait_closed(self) -> None:
        """Wait until nothing is served any more, after ``close``."""
        if self._closing is not None:
            await self._closing

    async def _serve(self, started: StartedProcess) -> None:
        handlers = [service.handle for service in self._services]
        if started.channel is None:
            for listener, handle in zip(started.listeners, handlers, strict=True):
                await self._ports.serve(listener, handle)
            return
        try:
            await self._ports.serve_from_channel(started.channel, handlers)
        except (OSError, TimeoutError) as error:  # the program could not begin, and its output says why
            _log.debug("the ports of a child are not served: %s", error)
        finally:
            started.channel.close()

    async def _close(self, serving: "asyncio.Future[None]") -> None:
        await self._ports.close()
        with contextlib.suppress(OSError):
            await serving


def _receive_packet(channel: socket.socket, count: int) -> list[socket.socket]:
    """Return the listening sockets of one packet. Raises OSError, and keeps none, unless they are ``count``."""
    # Not socket.recv_fds, which ignores its flags: every child that starts now would inherit the sockets.
    space = socket.CMSG_SPACE((count + 1) * array.array("i").itemsize)
    data, ancillary, flags, _ = channel.recvmsg(1024, space, socket.MSG_CMSG_CLOEXEC)
    descriptors = array.array("i")
    for level, kind, payload in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            descriptors.frombytes(payload[: len(payload) - len(payload) % descriptors.itemsize])
    if not data and not descriptors:
        raise ConnectionResetError("the sender of the listening sockets is gone")
    sockets: list[socket.socket] = []
    try:
        if len(descriptors) != count or flags & socket.MSG_CTRUNC:
            raise ConnectionError(f"{len(descriptors)} descriptors came instead of {count} listening sockets")
        while descriptors:
            sockets.append(_open_listener(descriptors[0]))
            descriptors.pop(0)
    except OSError:
        for descriptor in descriptors:
            os.close(descriptor)
        for opened in sockets:
            opened.close()
        raise
    return sockets


def _open_listener(descriptor: int) -> socket.socket:
    """Return a descriptor as the listening socket it is. Raises OSError, and leaves it open, when it is none."""
    listener = socket.socket(fileno=descriptor)
    is_stream = listener.family in (socket.AF_INET, socket.AF_INET6) and listener.type == socket.SOCK_STREAM
    if not is_stream or not listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        listener.detach()
        raise ConnectionError("a descriptor came that is not a listening TCP socket")
    return listener


async def open_tcp_connection(address: str, port: int) -> Connection:
    return Connection(*await asyncio.open_connection(address, port, limit=CHUNK))


async def open_tls_connection(address: str, port: int, context: ssl.SSLContext, name: str) -> Connection:
    """Connect to an address whose certificate must be that of ``name``."""
    streams = await asyncio.open_connection(address, port, limit=CHUNK, ssl=context, server_hostname=name)
    return Connection(*streams)


async def close_gracefully(connection: Connection, within_s: float) -> None:
    """Close a connection when its last bytes are sent; cut it off when that takes too long."""
    connection.writer.close()
    try:
        with suppress(OSError):
            async with asyncio.timeout(within_s):
                await connection.writer.wait_closed()
    finally:
        connection.writer.transport.abort()


async def relay(client: Connection, upstream: Connection, idle_s: float) -> None:
    """Copy bytes both ways until both sides have ended, one has failed, or both are silent for too long."""
    async with IdleTimeout(idle_s) as idle:
        copies = {
            asyncio.create_task(_copy(client, upstream, idle)),
            asyncio.create_task(_copy(upstream, client, idle)),
        }
        try:
            await asyncio.wait(copies, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            for copy in copies:
                copy.cancel()
            await asyncio.gather(*copies, return_exceptions=True)


async def _copy(source: Connection, sink: Connection, idle: IdleTimeout) -> None:
    while chunk := await source.reader.read(CHUNK):
        idle.restart()
        await sink.send(chunk)
        idle.restart()
    sink.end()
