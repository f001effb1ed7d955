"""Servers in processes of their own, as users start them."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp


@dataclass
class ServerProcess:
    """A server process that has printed its URL."""

    process: asyncio.subprocess.Process
    lines: list[str]
    home: Path
    project: Path

    @property
    def url(self) -> str:
        return self.lines[0].rpartition(" ")[2]

    @property
    def key(self) -> str:
        return (self.home / "key").read_text().strip()

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    async def request(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        headers = {"Authorization": f"Bearer {self.key}"}
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(180)) as client,
            client.request(method, self.url + path, json=body, headers=headers) as response,
        ):
            return response.status, await response.json()

    async def wait_for_end(self) -> tuple[int, str]:
        """Wait for the end; return the exit code and the log."""
        async with asyncio.timeout(180):
            _, log = await self.process.communicate()
        return self.process.returncode or 0, log.decode()


def make_arguments(
    place: Path, *words: str, project: Path | None = None, program: Sequence[str] = ("toolyard",)
) -> list[str]:
    """A command line; ``program`` is the module that runs it, and what that wants to know before."""
    (place / "project").mkdir(parents=True, exist_ok=True)
    common = ["--home", str(place / "home"), "--project", str(project or place / "project")]
    return [sys.executable, "-m", *program, *words, *common]


async def run_command(place: Path, *words: str, project: Path | None = None) -> tuple[int, str, str]:
    """One command; its exit code, stdout and stderr."""
    process = await asyncio.create_subprocess_exec(
        *make_arguments(place, *words, project=project), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(180):
        out, err = await process.communicate()
    return process.returncode or 0, out.decode(), err.decode()


@asynccontextmanager
async def start_server(
    place: Path, *words: str, program: Sequence[str] = ("toolyard",), wrapper: Sequence[str] = ()
) -> AsyncIterator[ServerProcess]:
    """Start a server; ``wrapper`` is the command that starts it, such as one that changes the user."""
    process = await asyncio.create_subprocess_exec(
        *wrapper,
        *make_arguments(place, "serve", "--port", "0", *words, program=program),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    lines: list[str] = []
    try:
        async with asyncio.timeout(180):
            while not lines or "to sign in: " not in lines[-1]:
                line = (await process.stdout.readline()).decode().strip()
                assert line, "the server has ended"
                lines.append(line)
        yield ServerProcess(process, lines, place / "home", place / "project")
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
        await process.communicate()


def read_presence(home: Path) -> dict[str, Any]:
    result: dict[str, Any] = json.loads((home / "server.json").read_text())
    return result
