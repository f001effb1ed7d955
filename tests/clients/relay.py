"""A connection to a server that a test breaks, as networks and proxies do."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass
class Relay:
    """Listens at ``host`` and passes bytes to the server at ``port`` and back."""

    host: str = ""
    port: int = 0
    cuts: int = 0
    _writers: set[asyncio.StreamWriter] = field(default_factory=set)

    def cut(self) -> None:
        """Break the connections that are there; those that come later stay."""
        self.cuts += 1
        for writer in self._writers:
            writer.transport.abort()

    async def connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        its_reader, its_writer = await asyncio.open_connection("127.0.0.1", self.port)
        await asyncio.gather(self._pass_on(reader, its_writer), self._pass_on(its_reader, writer))

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            with contextlib.suppress(ConnectionError):
                while data := await reader.read(2**16):
                    writer.write(data)
                    await writer.drain()
        finally:
            self._writers.discard(writer)
            writer.close()


@asynccontextmanager
async def relaying() -> AsyncIterator[Relay]:
    relay = Relay()
    listening = await asyncio.start_server(relay.connect, "127.0.0.1")
    relay.host = f"127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    try:
        yield relay
    finally:
        listening.close()
