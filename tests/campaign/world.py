"""What a campaign is about: one server with its file, or a server and workers on a PostgreSQL of their own."""

import asyncio
import contextlib
import os
import shutil
import signal
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp

from tests import postgres
from tests.campaign.clients import Clients, EventReader
from tests.campaign.network import Wire
from tests.campaign.programs import READY_S, ServerProgram, WorkerProgram
from tests.hosts.yards import effects_folder, shell_plugin

NEAR, FAR = "Near", "Far"  # a tool of the server itself, and one that only workers have
_NOTE = 'echo start $(date +%s.%N) >> "$file"; sleep 0.1; echo end $(date +%s.%N) >> "$file"\n'
_PATIENT = {"protocol": "stdio", "timeout": 60_000}


class World:
    """``database`` and ``wires`` are missing where the state is a file."""

    def __init__(self, place: Path, *, workers: int) -> None:
        self.place = place
        self.database: postgres.Server | None = None
        self.wires: list[Wire] = []
        if workers:
            self._scratch = Path(tempfile.mkdtemp(prefix="toolyard-campaign-"))  # names of sockets must be short
            self._scratch.chmod(0o755)
            self.database = postgres.Server(self._scratch / "pg")
            self.wires = [
                Wire(self._scratch / f"w{number}", self._scratch / "pg" / "socket") for number in range(workers + 1)
            ]
        shell_plugin(place / "server", NEAR, _NOTE, communication=_PATIENT)
        for number in range(workers):
            shell_plugin(place / f"worker{number}", FAR, _NOTE, communication=_PATIENT)
        urls = [wire.url for wire in self.wires] or [""]
        self.server = ServerProgram(place / "server", database=urls[0])
        self.workers = [WorkerProgram(place / f"worker{number}", database=url) for number, url in enumerate(urls[1:])]
        self.tools = [NEAR, *([FAR] if workers else [])]

    @property
    def state(self) -> Path:
        """The file of the server's state."""
        return self.place / "server" / "home" / "state.db"

    def database_processes(self) -> list[int]:
        """Return the ids of all processes of the database."""
        assert self.database is not None
        assert self.database.process is not None
        first = self.database.process.pid
        return [first, *(int(path.name) for path in Path("/proc").glob("[0-9]*") if _parent(path) == first)]

    def signal_database(self, number: signal.Signals) -> None:
        for pid in self.database_processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    async def open(self) -> None:
        if self.database is not None:
            await asyncio.to_thread(self.database.start)
            for wire in self.wires:
                await wire.open()
        for program in (self.server, *self.workers):
            await program.start()

    async def close(self) -> None:
        for program in (*self.workers, self.server):
            await program.end()
        for wire in self.wires:
            await wire.close()
        if self.database is not None:
            with contextlib.suppress(AssertionError):
                self.signal_database(signal.SIGCONT)
            await asyncio.to_thread(self.database.stop, signal.SIGQUIT)
            shutil.rmtree(self._scratch)

    async def is_well(self, clients: Clients) -> None:
        """Wait until every tool can be called again."""
        async with asyncio.timeout(READY_S), aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(None)) as client:
            for tool in self.tools:
                while not await self._answers(clients, client, tool):  # noqa: ASYNC110
                    await asyncio.sleep(0.2)

    async def _answers(self, clients: Clients, client: aiohttp.ClientSession, tool: str) -> bool:
        has_key = (self.place / "server" / "home" / "key").exists()
        return has_key and (await clients.call(client, tool)).told == "success"

    async def journal(self) -> dict[str, dict[str, Any]]:
        """Read the whole journal over HTTP, when all that runs has ended."""
        async with aiohttp.ClientSession() as client:
            await self._all_ended(client)
            found: dict[str, dict[str, Any]] = {}
            after = ""
            while True:
                page = await self.server.get(client, f"/v1/calls?limit=200{after}")
                found.update({call["id"]: call for call in page["data"]})
                if not page.get("next"):
                    return found
                after = f"&after={quote(page['next'])}"

    async def _all_ended(self, client: aiohttp.ClientSession) -> None:
        until = time.monotonic() + READY_S
        running = "/v1/calls?state=running"
        while (await self.server.get(client, running))["data"] and time.monotonic() < until:  # noqa: ASYNC110
            await asyncio.sleep(0.5)

    async def hosts(self) -> set[str]:
        """Return the names of the hosts that are up."""
        import asyncpg

        if self.database is None:
            return set()
        db = await asyncpg.connect(self.database.url())
        try:
            rows = await db.fetch("SELECT id FROM toolyard.records WHERE kind = 'lease' AND state = 'held'")
        finally:
            await db.close()
        return {row[0] for row in rows}


def _parent(process: Path) -> int:
    try:
        return int((process / "stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, IndexError):
        return 0


@contextlib.asynccontextmanager
async def opened(
    place: Path, *, workers: int, clients: int, seed: int
) -> AsyncIterator[tuple[World, Clients, EventReader]]:
    """A world in which clients work."""
    world = World(place, workers=workers)
    try:
        await world.open()
        at_work = Clients(world.server, effects_folder(place), world.tools, number=clients, seed=seed)
        await world.is_well(at_work)
        events = EventReader(world.server)
        events.start()
        at_work.start()
        try:
            yield world, at_work, events
        finally:
            await events.stop()
    finally:
        await world.close()
