"""The ports that the host serves inside a plugin's network namespace.

A socket belongs for ever to the namespace it was made in, whoever holds it. So the host accepts connections on
listening sockets that were bound in there, and reaches the world from its own network. The sockets are handed over
when the namespace is made, or come later through a channel from the program that makes it.
"""

import array
import asyncio
import os
import socket
from collections.abc import Sequence

from toolyard.plugins.stream_relay import CHUNK, ConnectionCallback

_RECEIVE_S = 30.0
_BACKLOG = 64


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
