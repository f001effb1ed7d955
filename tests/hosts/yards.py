"""Hosts of the tests: Yards that share one database, each with plugins of its own, and workers as processes."""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.plugins.folders import manifest_text
from tests.waiting import wait_until
from toolyard.config import Config, load_config
from toolyard.hosts.host import Host, join_hosts
from toolyard.yard.plugin_source import HostOptions
from toolyard.yard.yard import Yard

SHELL = {"entryPoint": {"type": "shell", "command": "sh main.sh"}}
ARGUMENT = 'said=$(cat); file=$(printf %s "$said" | sed \'s/.*"file": *"\\([^"]*\\)".*/\\1/\')\n'
DONE = 'echo \'{"status": "success", "result": "done"}\'\n'
ECHO = """
import json, os, sys
heard = json.loads(sys.stdin.read() or "{}")
print(json.dumps({"status": "success", "result": {"heard": heard, "where": os.environ["WHERE"]}}))
"""


def plugin(place: Path, name: str, code: str = ECHO, **more: Any) -> Path:
    """A Python plugin of the host that lives in ``place``; it is told ``WHERE`` it runs."""
    return _plugin(place, name, "main.py", code, **more)


def shell_plugin(place: Path, name: str, code: str, **more: Any) -> Path:
    """A plugin in shell, which starts fast; ``$file`` is the argument of that name."""
    return _plugin(place, name, "main.sh", ARGUMENT + code + DONE, **SHELL, **more)


def effects_folder(root: Path) -> Path:
    """The folder in which the plugins of all hosts below ``root`` note what they did."""
    folder = root / "effects"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _plugin(place: Path, name: str, file: str, code: str, **more: Any) -> Path:
    folder = place / "given" / name
    folder.mkdir(parents=True)
    fields = {"permissions": {"network": "any", "write": [str(effects_folder(place.parent))]}, **more}
    (folder / "plugin-manifest.json").write_text(manifest_text(name, **fields), encoding="utf-8")
    (folder / file).write_text(code, encoding="utf-8")
    (folder / "config.env").write_text(f"WHERE={place.name}\n", encoding="utf-8")
    (folder / "config.env").chmod(0o600)
    return folder


def config_of(place: Path, settings: Mapping[str, Any] | None = None) -> Config:
    for folder in ("project", "given", "home"):
        (place / folder).mkdir(parents=True, exist_ok=True)
    lines = [f"{name} = {json.dumps(value)}" for name, value in ({"warm_starts": False} | dict(settings or {})).items()]
    (place / "home" / "config.toml").write_text("\n".join(lines), encoding="utf-8")
    (place / "home" / "config.toml").chmod(0o600)
    return load_config(place / "project", place / "home", plugin_folders=[place / "given"], trusts_given=True)


@asynccontextmanager
async def host(
    place: Path, database: str, *, outside: HostOptions | None = None, serves: bool = True, **settings: Any
) -> AsyncIterator[Host]:
    joined = await join_hosts(config_of(place, settings), database, outside=outside or HostOptions(), serves=serves)
    try:
        yield joined
    finally:
        await joined.close()


class WorkerProcess:
    """``toolyard worker`` on the plugins of ``place``; it can be killed and started again."""

    def __init__(self, place: Path, database: str) -> None:
        self.place, self._database = place, database
        self._process: asyncio.subprocess.Process | None = None
        self.name = ""

    async def start(self) -> None:
        """Until it has joined."""
        config_of(self.place)
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.hosts.worker_main", "worker", "--database", self._database,
            "--project", str(self.place / "project"), "--home", str(self.place / "home"),
            "--plugins", str(self.place / "given"), "--trust",
            cwd=Path(__file__).parents[2], stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        assert self._process.stderr is not None
        async with asyncio.timeout(180):
            said = (await self._process.stderr.readline()).decode()
        assert said.startswith("Worker "), said + (await self._process.stderr.read()).decode()
        self.name = said.split()[1].rstrip(",")

    def pause(self) -> None:
        """Stop it as a debugger, a frozen container or a sleeping machine does."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    async def end(self, *, kill: bool = True) -> int:
        process, self._process = self._process, None
        if process is None:
            return 0
        if process.returncode is None:
            (process.kill if kill else process.terminate)()
        async with asyncio.timeout(180):
            return await process.wait()


@asynccontextmanager
async def workers(database: str, *places: Path) -> AsyncIterator[list[WorkerProcess]]:
    started = [WorkerProcess(place, database) for place in places]
    try:
        await asyncio.gather(*(one.start() for one in started))
        yield started
    finally:
        for one in started:
            await one.end()


async def sees(yard: Yard, tool: str, *, within_s: float = 120) -> None:
    """Until a tool of another host can be called here."""
    await wait_until(lambda: any(one.spec.name == tool for one in yard.tools), within_s=within_s)
