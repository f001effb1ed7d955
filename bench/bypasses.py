"""Bypasses of the main road, each beside the plain road in the same run: one that gains less than 15 % is removed.

A bypass is switched off from outside, here or in a process of its own (``bench.bypass_off``), and both roads are
measured in turn, so that a busy moment hits both alike; the gain is the median of all pairs. Processor time, except
where a child works.
"""

import asyncio
import contextlib
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

import aiohttp
from mcp import Client, StdioServerParameters

import toolyard
from bench import bypass_off
from bench.gateway import bench_words, measure_chat, ours_at, running
from bench.plugins import PYTHON_ECHO, Way, hosted, make_launch, until_warm
from bench.protocols import LIVELY, reply
from toolyard.engine.runner import Runner
from toolyard.plugins.process.children import Children
from toolyard.plugins.process.cold_starter import ColdStarter
from toolyard.plugins.process.warm import prestarted_process
from toolyard.plugins.process.warm.warm_starter import WarmStarter
from toolyard.protocol import reply as replies
from toolyard.protocol.tool import Origin
from toolyard.yard.yard import Yard

LEAST_GAIN = 0.15
CHATS = 40  # in one round
CALLS = 80
REPLIES = 200
HEAVY_ECHO = f"import asyncio, email, http.client, json, logging, sys, unittest.mock\n{PYTHON_ECHO}"


@dataclass(frozen=True, slots=True)
class Row:
    """Samples of both roads, in microseconds."""

    name: str
    measured: str
    has_target: bool = True
    bypass: list[float] = field(default_factory=list)
    plain: list[float] = field(default_factory=list)

    def roads(self) -> tuple[tuple[bool, list[float]], ...]:
        """Return whether it is the bypass, and its samples, for each of the two."""
        return (True, self.bypass), (False, self.plain)

    def __str__(self) -> str:
        bypass, plain = statistics.median(self.bypass), statistics.median(self.plain)
        gain = statistics.median(1 - own / other for own, other in zip(self.bypass, self.plain, strict=True))
        missed = "  MISSED" if self.has_target and gain < LEAST_GAIN else ""
        return f"{self.name:<30} {bypass:>10,.0f} {plain:>10,.0f} {gain:>6.0%}  {self.measured}{missed}"


def main() -> None:
    print(f"\n{'bypass':<30} {'µs':>10} {'plain µs':>10} {'gain':>6}  target: at least {LEAST_GAIN:.0%}")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        print(asyncio.run(_chats(place / "chats")), flush=True)
        for lines in (1, 7, 36):
            print(_replies(lines), flush=True)
        for at_once in (1, 8):
            print(asyncio.run(_calls(place / f"calls-{at_once}", at_once)), flush=True)
        print(asyncio.run(_mcp_calls(place / "mcp-calls")), flush=True)
        print(_commands(place / "commands"), flush=True)
        print(asyncio.run(_forks(place / "forks")), flush=True)
        print(_collections(place / "server", "freeze in the server", "toolyard.web.server.lifecycle", "-"), flush=True)
        print(_collections(place / "mcp", "freeze after loading MCP", "toolyard.mcp.mount", "mcp"), flush=True)


async def _chats(place: Path) -> Row:
    """Chats that are not streamed, through a server with the fast path and one that routes them by FastAPI."""
    row = Row(bypass_off.CHAT_ROUTED_FIRST, "of the server's processor time for a chat")
    with contextlib.ExitStack() as stack:
        stub = await asyncio.to_thread(stack.enter_context, running(bench_words("stub")))
        servers = {}
        for is_bypass, _ in row.roads():
            words = _toolyard(row.name, is_bypass=is_bypass, place=place / str(is_bypass))
            given = {"OPENAI_BASE_URL": stub.url, "OPENAI_API_KEY": "sk-bench"}
            servers[is_bypass] = await asyncio.to_thread(
                stack.enter_context, running([*words, "serve", "--port"], **given)
            )
        async with aiohttp.ClientSession() as session:
            for number in range(21):
                for is_bypass, samples in row.roads():
                    server = servers[is_bypass]
                    before = _processor_s(server.pid)
                    for _ in range(CHATS):
                        await measure_chat(session, ours_at(server.url, place / str(is_bypass)), 0)
                    if number:  # the first round loads what chats need
                        samples.append((_processor_s(server.pid) - before) / CHATS * 1e6)
    return row


async def _mcp_calls(place: Path) -> Row:
    """Reads over MCP and stdio, of a server with quick calls and of one that leaves all of them to the SDK."""
    row = Row(bypass_off.QUICK_MCP_CALLS, "of the server's processor time for a call")
    async with contextlib.AsyncExitStack() as stack:
        clients = {}
        for is_bypass, _ in row.roads():
            command, *words = _toolyard(row.name, is_bypass=is_bypass, place=place / str(is_bypass))
            (place / str(is_bypass) / "project/a.txt").write_text("one\n" * 20)
            started = StdioServerParameters(command=command, args=[*words, "mcp", "serve"])
            clients[is_bypass] = await stack.enter_async_context(Client(started))
        for number in range(21):
            for is_bypass, samples in row.roads():
                before = _processor_s(_find_server(place / str(is_bypass)))
                for _ in range(CALLS):
                    await clients[is_bypass].call_tool("Read", {"path": "a.txt"})
                if number:  # the first round loads what calls need
                    samples.append((_processor_s(_find_server(place / str(is_bypass))) - before) / CALLS * 1e6)
    return row


def _find_server(place: Path) -> int:
    """Return the process that serves the project in ``place``."""
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has just ended
            if str(place).encode() in (words := file.read_bytes()) and words.endswith(b"\0mcp\0serve\0"):
                return int(file.parent.name)
    raise RuntimeError(f"no server of {place} is running")


def _replies(lines: int) -> Row:
    text = reply(LIVELY, lines)
    row = Row(f"plain reply, {len(text.encode()):,} bytes", "of the processor time to read it")
    for _ in range(25):
        for is_bypass, samples in row.roads():
            with contextlib.nullcontext() if is_bypass else patch.object(replies, "parse_plain_reply", lambda _: None):
                before = time.process_time()
                for _ in range(REPLIES):
                    replies.parse_reply(text)
                samples.append((time.process_time() - before) / REPLIES * 1e6)
    return row


async def _calls(place: Path, at_once: int) -> Row:
    """Calls one after the other, as a model makes most of them; in a crowd the plain road shares more commits."""
    row = Row(f"deferred start, {at_once} at once", "of the processor time of a call", has_target=at_once == 1)
    (place / "project").mkdir(parents=True)
    (place / "project/a.txt").write_text("one\n" * 20)
    async with _open_yard(place, "deferred") as deferred, _open_yard(place, "plain") as plain:
        for _ in range(25):
            for is_bypass, samples in row.roads():
                with contextlib.nullcontext() if is_bypass else patch.object(Runner, "_defers_start", lambda *_: False):
                    before = time.process_time()
                    await asyncio.gather(
                        *(_read(deferred if is_bypass else plain, CALLS // at_once) for _ in range(at_once))
                    )
                    samples.append((time.process_time() - before) / CALLS * 1e6)
    return row


@contextlib.asynccontextmanager
async def _open_yard(place: Path, name: str) -> AsyncIterator[Yard]:
    """A Yard that asks nobody."""
    (place / name).mkdir()
    (place / name / "config.toml").write_text('approval_mode = "auto"\n')
    async with toolyard.open_async(place / "project", place / name) as yard:
        yield yard


async def _read(yard: Yard, times: int) -> None:
    for _ in range(times):
        outcome = await yard.calls.settle(yard.calls.request("Read", {"path": "a.txt"}, origin=Origin.MCP))
        assert outcome.envelope.error is None


def _commands(place: Path) -> Row:
    row = Row(bypass_off.FREEZE_BEFORE_END, "of the processor time of toolyard call LS")
    words = {is_bypass: _toolyard(row.name, is_bypass=is_bypass, place=place) for is_bypass, _ in row.roads()}
    for _ in range(41):
        for is_bypass, samples in row.roads():
            samples.append(_run([*words[is_bypass], "call", "LS"]) * 1e6)
    return row


async def _forks(place: Path) -> Row:
    """Warm calls of a plugin with a few imports, from a fork server that freezes and from a copy that does not."""
    row = Row("freeze before a fork", "of the time of a warm call")
    async with (
        _start_warm(place / "freezes", freeze=True) as freezes,
        _start_warm(place / "plain", freeze=False) as plain,
    ):
        for number in range(60):
            for is_bypass, samples in row.roads():
                began = time.perf_counter()
                assert await (freezes if is_bypass else plain)(b'{"n": %d}' % number) == {"n": number}
                samples.append((time.perf_counter() - began) * 1e6)
    return row


@contextlib.asynccontextmanager
async def _start_warm(folder: Path, *, freeze: bool) -> AsyncIterator[Way]:
    """Start a copy of the fork server for a plugin, and give what calls the plugin."""
    source = shutil.copytree(Path(prestarted_process.__file__).parent, folder / "warm")
    if not freeze:
        imports = source / "fork_imports.py"
        code = imports.read_text()
        assert "gc.freeze()" in code
        imports.write_text(code.replace("gc.freeze()", "pass"))
    launch = make_launch(folder, sys.executable, "echo.py", HEAVY_ECHO)
    children = Children()
    warm = WarmStarter(children, ColdStarter(children))

    async def call(stdin: bytes) -> object:
        return await hosted(children, warm, launch, stdin)

    try:
        with patch.object(prestarted_process, "FOLDER", str(source)):
            await until_warm(warm, launch, call)
        yield call
    finally:
        await warm.close()
        await children.close()


def _collections(place: Path, name: str, module: str, request: str) -> Row:
    row = Row(name, "of a full garbage collection, in which every chat stands still")
    for number in range(3):
        for is_bypass, samples in row.roads():
            own = place / f"{number}-{is_bypass}"
            (own / "project").mkdir(parents=True)
            words = [
                sys.executable,
                "-m",
                "bench.bypass_collection",
                str(own),
                "none" if is_bypass else module,
                request,
            ]
            samples.append(float(subprocess.run(words, check=True, capture_output=True).stdout) * 1e6)
    return row


def _toolyard(bypass: str, *, is_bypass: bool, place: Path) -> list[str]:
    """Return the beginning of a command that goes by the bypass, or by the plain road."""
    (place / "project").mkdir(parents=True, exist_ok=True)
    words = [sys.executable, "-m", "bench.bypass_off", bypass_off.NONE if is_bypass else bypass]
    return [*words, "--home", str(place / "home"), "--project", str(place / "project")]


def _run(words: list[str]) -> float:
    """Run a command and return the seconds of processor time that it took."""
    quiet = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    _, status, usage = os.wait4(os.posix_spawn(words[0], words, os.environ, file_actions=quiet), 0)
    assert status == 0, words
    return usage.ru_utime + usage.ru_stime


def _processor_s(pid: int) -> float:
    """Seconds of processor time of all threads of a process, to the nanosecond (Linux)."""
    return sum(int(file.read_text().split()[0]) for file in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9
