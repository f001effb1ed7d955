"""A wire between a host and its database that can be stalled and cut: a proxy of PostgreSQL's unix socket."""

import asyncio
import contextlib
from pathlib import Path
from urllib.parse import quote

_SOCKET = ".s.PGSQL.5432"
_CHUNK = 65536


class Wire:
    def __init__(self, folder: Path, database: Path) -> None:
        """``database`` is the folder with the socket of the server, ``folder`` the one with that of this wire."""
        self._folder, self._database = folder, database / _SOCKET
        self._flows = asyncio.Event()
        self._flows.set()
        self._is_cut = False
        self._open: set[asyncio.StreamWriter] = set()
        self._server: asyncio.AbstractServer | None = None

    @property
    def url(self) -> str:
        return f"postgresql://tests@/postgres?host={quote(str(self._folder), safe='')}"

    async def open(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._server = await asyncio.start_unix_server(self._connect, self._folder / _SOCKET)

    async def close(self) -> None:
        self._drop_all()
        if self._server is not None:
            self._server.close()

    def stall(self) -> None:
        """Let nothing through, and tell nobody."""
        self._flows.clear()

    def cut(self) -> None:
        """End every connection, and take no new one."""
        self._is_cut = True
        self._drop_all()

    def heal(self) -> None:
        self._is_cut = False
        self._flows.set()

    def _drop_all(self) -> None:
        for writer in self._open:
            writer.transport.abort()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            if self._is_cut:
                return
            await self._flows.wait()
            there, back = await asyncio.open_unix_connection(str(self._database))
            self._open.add(back)
            try:
                ways = [asyncio.create_task(self._carry(*way)) for way in ((reader, back), (there, writer))]
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
                for way in ways:
                    way.cancel()
            finally:
                self._open.discard(back)
                back.transport.abort()
        except OSError:
            pass  # the database is away
        finally:
            self._open.discard(writer)
            writer.transport.abort()

    async def _carry(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(_CHUNK):
                await self._flows.wait()
                target.write(data)
                await target.drain()
