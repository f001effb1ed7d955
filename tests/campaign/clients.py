"""The observer's clients: they call tools over HTTP all the time, follow the events, and write into the ledger."""

import asyncio
import contextlib
import random
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import aiohttp

from tests.campaign.ledger import Entry, state_told
from tests.campaign.programs import ServerProgram

_ANSWER_S = 120.0
_PAUSE_S = 0.2  # after a refusal
_LEAVES = 0.03  # how often a client goes away in the middle


class Clients:
    """``number`` clients of one server; each calls one tool after the other."""

    def __init__(self, server: ServerProgram, folder: Path, tools: Sequence[str], *, number: int, seed: int) -> None:
        self._server, self._folder, self._tools, self._number = server, folder, tools, number
        self._chance = random.Random(seed)
        self.entries: list[Entry] = []
        self._works: list[asyncio.Task[None]] = []
        self._stopping = False
        folder.mkdir(parents=True, exist_ok=True)

    def start(self) -> None:
        self._works = [asyncio.create_task(self._work()) for _ in range(self._number)]

    async def stop(self) -> None:
        """Send nothing more, and wait for the answers that are still to come."""
        self._stopping = True
        await asyncio.gather(*self._works)

    async def call(self, client: aiohttp.ClientSession, tool: str, *, within_s: float = _ANSWER_S) -> Entry:
        id_ = f"call_{uuid4().hex}"
        entry = Entry(id_, self._folder / id_, time.time())
        self.entries.append(entry)
        url = f"{self._server.url}/v1/tools/{tool}?call_id={id_}"
        try:
            async with (
                asyncio.timeout(within_s),
                client.post(url, json={"file": str(entry.file)}, headers=self._server.headers) as response,
            ):
                body = await response.json()
                entry.told, entry.answered = state_told(response.status, body), time.time()
                entry.text = str(body.get("text") or body)
        except aiohttp.ClientConnectorError:
            self.entries.remove(entry)  # nobody was there: nothing was sent
        except (aiohttp.ClientError, TimeoutError, OSError):
            pass  # no answer
        return entry

    async def _work(self) -> None:
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(None)) as client:
            while not self._stopping:
                leaves = self._chance.random() < _LEAVES
                within_s = self._chance.random() * 0.5 if leaves else _ANSWER_S
                entry = await self.call(client, self._chance.choice(self._tools), within_s=within_s)
                if entry.told != "success":
                    await asyncio.sleep(_PAUSE_S)


class EventReader:
    """Follows ``/ws`` from its beginning, comes back with its cursor, and notes every number that is missing."""

    def __init__(self, server: ServerProgram) -> None:
        self._server = server
        self.cursor = 0
        self.holes: list[str] = []
        self.hosts: list[tuple[str, str]] = []  # what was told of hosts, in order: type and id
        self.ends: dict[str, float] = {}  # when the end of each call was heard
        self._work: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._work = asyncio.create_task(self._follow())

    async def stop(self) -> None:
        if self._work is not None:
            self._work.cancel()
            await asyncio.wait({self._work})

    def unreturned(self, alive: set[str]) -> list[str]:
        """Return the hosts that are ``alive``, were told to be lost, and never told to be up again."""
        last = {id_: type_ for type_, id_ in self.hosts}
        return [id_ for id_ in alive if last.get(id_) == "host.lost"]

    async def _follow(self) -> None:
        async with aiohttp.ClientSession() as client:
            while True:
                with contextlib.suppress(aiohttp.ClientError, TimeoutError, OSError):
                    url = f"{self._server.url}/ws?cursor={self.cursor}"
                    async with client.ws_connect(url, headers=self._server.headers, heartbeat=10) as events:
                        async for message in events:
                            if message.type is aiohttp.WSMsgType.TEXT:
                                self._hear(message.json())
                await asyncio.sleep(_PAUSE_S)

    def _hear(self, event: dict[str, Any]) -> None:
        if event["type"] != "gap" and event["seq"] != self.cursor + 1:
            self.holes.append(f"{event['type']} has the number {event['seq']} after {self.cursor}")
        self.cursor = event["seq"]
        if event["type"] == "call.finished":
            self.ends.setdefault(str(event["data"]["id"]), time.time())
        if event["type"].startswith("host."):
            self.hosts.append((event["type"], str(event["data"]["id"])))
