"""Accepts TLS and plain HTTP on one port: a connection whose first byte begins a TLS handshake is encrypted.

Programs on this machine, such as plugins that call back and the command line, go on with plain HTTP, which never leaves
it; ``security.https_only`` sends everybody else to HTTPS.
"""

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Callable
from typing import Final

from toolyard.web.connection import HEAD_S

_HANDSHAKE: Final = b"\x16"  # the record type that begins a TLS connection
_RETRY_S = 1.0
_log = logging.getLogger("toolyard.web")


class TlsAcceptor:
    """Accepts the connections of one listening socket, as an ``asyncio.Server`` does."""

    def __init__(
        self, listening: socket.socket, context: ssl.SSLContext, make_protocol: Callable[[], asyncio.Protocol]
    ) -> None:
        self._listening, self._context, self._make_protocol = listening, context, make_protocol
        self._opening: set[asyncio.Task[None]] = set()
        self._accepting = asyncio.create_task(self._accept())

    @property
    def is_opening(self) -> bool:
        """True while accepted connections have not become ready."""
        return bool(self._opening)

    def close(self) -> None:
        """Accept no more. Connections that are being opened go on."""
        self._accepting.cancel()
        self._accepting.add_done_callback(lambda _: self._listening.close())

    async def wait_closed(self) -> None:
        for task in self._opening:
            task.cancel()
        await asyncio.gather(self._accepting, *self._opening, return_exceptions=True)

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(self._listening)
            except OSError as error:  # too many open files, until some clients have disconnected
                _log.warning("a connection could not be accepted: %s", error.strerror)
                await asyncio.sleep(_RETRY_S)
                continue
            task = asyncio.create_task(self._open(connection))
            self._opening.add(task)
            task.add_done_callback(self._opening.discard)

    async def _open(self, connection: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(HEAD_S):
                first = await _peek(connection)
                context = self._context if first == _HANDSHAKE else None
                if first:
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    await loop.connect_accepted_socket(self._make_protocol, connection, ssl=context)
                    return
        except (OSError, TimeoutError) as error:
            _log.debug("a connection could not be opened: %s", error)  # such as a browser that refuses the certificate
        except BaseException:
            connection.close()
            raise
        with contextlib.suppress(OSError):
            connection.close()


async def _peek(connection: socket.socket) -> bytes:
    """Wait for the first byte of a connection, and leave it there; empty when the client has left."""
    loop, is_readable = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(connection, is_readable.set)
    try:
        await is_readable.wait()
    finally:
        loop.remove_reader(connection)
    return connection.recv(1, socket.MSG_PEEK)
