"""The programs of a campaign as processes: a server and workers that can be killed, paused and started again."""

import asyncio
import os
import signal
import socket
import sys
from pathlib import Path
from typing import Any

import aiohttp

from tests.hosts.yards import config_of

READY_S = 180.0
_ROOT = Path(__file__).parents[2]


class Program:
    """``toolyard serve`` or ``toolyard worker`` on the plugins of ``place``."""

    def __init__(self, place: Path, *words: str, database: str = "") -> None:
        self.place, self._words, self._database = place, words, database
        self._process: asyncio.subprocess.Process | None = None
        config_of(place)

    async def start(self) -> None:
        environment = {**os.environ, **({"TOOLYARD_DATABASE": self._database} if self._database else {})}
        with (self.place / "log").open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "toolyard", *self._words, "--project", str(self.place / "project"),
                "--home", str(self.place / "home"), "--plugins", str(self.place / "given"), "--trust",
                cwd=_ROOT, env=environment, stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip

    def send(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    async def end(self, number: signal.Signals = signal.SIGKILL) -> None:
        if self._process is not None and self._process.returncode is None:
            self.send(signal.SIGCONT)
            self.send(number)
            async with asyncio.timeout(READY_S):
                await self._process.wait()
        self._process = None


class WorkerProgram(Program):
    def __init__(self, place: Path, *, database: str) -> None:
        super().__init__(place, "worker", database=database)

    async def start(self) -> None:
        """Until it has joined; one that meets no database when it starts ends, and is started again."""
        before = self._joined()
        async with asyncio.timeout(READY_S):
            while self._joined() == before:
                if self._process is None or self._process.returncode is not None:
                    await super().start()
                await asyncio.sleep(0.1)

    def _joined(self) -> int:
        log = self.place / "log"
        return log.read_text().count("Worker ") if log.exists() else 0


class ServerProgram(Program):
    """A server that is always at the same address."""

    def __init__(self, place: Path, *, database: str = "") -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        super().__init__(place, "serve", "--port", str(self.port), database=database)
        self.url = f"http://127.0.0.1:{self.port}"

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {(self.place / 'home' / 'key').read_text().strip()}"}

    async def get(self, client: aiohttp.ClientSession, path: str) -> Any:
        async with client.get(self.url + path, headers=self.headers) as response:
            assert response.status == 200, await response.text()
            return await response.json()
