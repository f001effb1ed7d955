"""A Toolyard of its own process for the console's tests, and the data that its pages show."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from tests.console.forking import Forked, fork

PLUGINS = Path(__file__).parent.parent.parent / "plugins"
START_S = 90
ZONE = "Asia/Shanghai"


@dataclass
class Host:
    """``toolyard serve`` as a person runs it; ``stop`` and ``start`` keep its port, its home and its sessions' key."""

    home: Path
    project: Path
    port: int = 0
    options: Sequence[str] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    process: asyncio.subprocess.Process | Forked | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def key(self) -> str:
        return (self.home / "key").read_text().strip()

    async def start(self) -> None:
        self.home.mkdir(parents=True, exist_ok=True)
        self.project.mkdir(parents=True, exist_ok=True)
        words = (
            *("serve", "--port", str(self.port), "--home", str(self.home), "--project", str(self.project)),
            *("--plugins", str(PLUGINS), "--trust", *self.options),
        )
        environment = {**os.environ, "TZ": ZONE, **self.settings}
        self.process = await (run if "PYTHONPATH" in self.settings else fork)(words, environment)
        assert self.process.stdout is not None
        async with asyncio.timeout(START_S):
            line = (await self.process.stdout.readline()).decode()
        assert "http://127.0.0.1:" in line, line
        self.port = int(line.rsplit(":", 1)[1].strip(" /\n"))

    async def stop(self, how: signal.Signals = signal.SIGKILL) -> None:
        if self.process is not None and self.process.returncode is None:
            self.process.send_signal(how)
            async with asyncio.timeout(START_S):
                await self.process.communicate()

    async def api(self, method: str, path: str, body: object = None, **headers: str) -> Any:
        sent = {"Authorization": f"Bearer {self.key}", **headers}
        async with (
            aiohttp.ClientSession() as client,
            client.request(method, self.url + path, json=body, headers=sent) as response,
        ):
            text = await response.read()
            assert response.status < 400, f"{method} {path}: {response.status} {text[:500]!r}"
            return await response.json() if response.content_type == "application/json" else text

    async def call(self, tool: str, **arguments: object) -> Any:
        return await self.api("POST", f"/v1/tools/{tool}", arguments)


async def run(words: Sequence[str], environment: Mapping[str, str]) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "toolyard", *words),
        env=environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )


@asynccontextmanager
async def hosting(folder: Path, *options: str, settings: Mapping[str, str] | None = None) -> AsyncIterator[Host]:
    host = Host(folder / "home", folder / "project", options=options, settings=settings or {})
    await host.start()
    try:
        yield host
    finally:
        await host.stop()


async def fill(host: Host) -> None:
    """A bit of everything that pages show: files written and edited, an error, a task, schedules."""
    await host.call("Write", path="notes/计划.md", content="# 计划\n\n- 第一\n- 第二\n")
    await host.call("Read", path="notes/计划.md")
    await host.call("Edit", path="notes/计划.md", old_string="- 第二", new_string="- 第二（完成）\n- third")
    await host.call("Read", path="missing.txt")
    await host.call("SciCalculator", expression="2^10 + sqrt(16)")
    await host.call("EchoPlugin", text="hello")
    await host.call("Timelapse", command="render", scene="life", frames="2", seed="7")
    await host.api(
        "POST", "/v1/schedules", {"tool": "SciCalculator", "arguments": {"expression": "1+1"}, "cron": "0 9 * * *"}
    )
    await host.api("POST", "/v1/schedules", {"tool": "LS", "arguments": {"path": "."}, "at": "2030-01-05-09:30"})
