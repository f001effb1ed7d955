"""Bytes between two connections, both ways, with bounds on memory and silence."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Final, TypeAlias

CHUNK: Final = 64 * 1024

ConnectionCallback: TypeAlias = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
"""Serves one accepted connection to its end, and closes it."""


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
