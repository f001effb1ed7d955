"""One fixed address of the host, reachable through a listening socket in a plugin's network namespace."""

import asyncio
from contextlib import suppress

from toolyard.plugins.stream_relay import Connection, ConnectionLimits, close_gracefully, open_tcp_connection, relay
from toolyard.protocol.json import JsonObject

_RETRY_S = 0.25


class PortForward:
    """Forwards each connection to one address, such as the host's listener for callbacks."""

    def __init__(self, address: str, port: int, *, waits: bool = False, limits: ConnectionLimits | None = None) -> None:
        self._address, self._port = address, port
        self._waits = waits  # for a server that is not there at the moment: it may be restarting
        self._limits = limits or ConnectionLimits()
        self._connections = 0

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection. One too many is closed at once, as is one whose address does not answer."""
        if self._connections >= self._limits.connections:
            writer.close()
            return
        client = Connection(reader, writer)
        self._connections += 1
        try:
            with suppress(OSError):
                await self._forward(client)
            await close_gracefully(client, self._limits.linger_s)
        finally:
            self._connections -= 1
            writer.transport.abort()

    def to_json(self) -> JsonObject:
        return {"address": self._address, "port": self._port, "waits": self._waits}

    async def _forward(self, client: Connection) -> None:
        async with asyncio.timeout(self._limits.connect_s):
            upstream = await self._connect()
        try:
            await relay(client, upstream, self._limits.idle_s)
            await close_gracefully(upstream, self._limits.linger_s)
        finally:
            upstream.writer.transport.abort()

    async def _connect(self) -> Connection:
        while True:
            try:
                return await open_tcp_connection(self._address, self._port)
            except ConnectionRefusedError:
                if not self._waits:
                    raise
            await asyncio.sleep(_RETRY_S)
