"""The gateway: how soon it is ready, what it adds to a chat, how many requests it takes, how its memory behaves.

In one run a stub model provider answers directly, through a bare aiohttp proxy, through ``toolyard serve`` as people
start it, and through LiteLLM where that is installed (``LITELLM`` or the path may name its program), each in a process
of its own.
"""

import asyncio
import contextlib
import json
import os
import resource
import secrets
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import aiohttp

from bench.gateway_servers import HELD, HELD_CHUNKS

CHATS = 300
REQUESTS = 4000
PARALLEL = 32
MEMORY_CHATS = 3000
STREAMS = 3000  # at once
LITELLM_KEY = f"sk-{secrets.token_hex(32)}"
CHUNKS = {"streamed, 20 chunks": 20, "streamed, 200 chunks": 200}
TARGETS = {"not streamed": 1.0, "streamed, 20 chunks": 1.0, "streamed, 200 chunks": 3.0}
PATHS = {"chat": "/v1/chat/completions", "Responses": "/v1/responses", "Messages": "/v1/messages"}
PROTOCOL_TARGETS = {"not streamed": 0.5, "streamed, 20 chunks": 0.5, "streamed, 200 chunks": 1.0}  # over chat


@dataclass(frozen=True, slots=True)
class Served:
    """Where chats are answered, the key that opens it, and the protocol in which they are asked."""

    url: str
    key: str = ""
    protocol: str = "chat"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        place = Path(folder)
        stub = stack.enter_context(running(bench_words("stub")))
        proxy = stack.enter_context(running(bench_words("proxy", stub.url)))
        ours = stack.enter_context(running(serve_words(place), OPENAI_BASE_URL=stub.url, OPENAI_API_KEY="sk-bench"))
        print(f"toolyard is ready after {ours.ready_s:.2f} s  (target: 1 s)")
        print(f"memory of toolyard before the first chat, MB: {_resident(ours.pid):.0f}  (target: 120)")
        served = {
            "direct": Served(stub.url),
            "bare aiohttp proxy": Served(proxy.url),
            "toolyard": ours_at(ours.url, place),
        }
        program = os.environ.get("LITELLM") or shutil.which("litellm")
        if program:
            theirs = stack.enter_context(running(_litellm(program, place, stub.url)))
            print(f"LiteLLM is ready after {theirs.ready_s:.2f} s; its memory, MB: {_resident(theirs.pid):.0f}")
            served["LiteLLM"] = Served(theirs.url, LITELLM_KEY)
        else:
            print("LiteLLM is left out: pip install 'litellm[proxy]' somewhere and name its program in LITELLM")
        for protocol in ("Responses", "Messages"):
            served[protocol] = replace(served["toolyard"], protocol=protocol)
        asyncio.run(_measure(served, ours.pid))
        for who, server in {"bare aiohttp proxy": proxy, "toolyard": ours}.items():
            asyncio.run(_streams(who, served[who], server.pid))


async def _measure(urls: dict[str, Served], pid: int) -> None:
    times: dict[str, dict[str, float]] = {name: {} for name in TARGETS}
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        for name in TARGETS:
            chunks = CHUNKS.get(name, 0)
            samples: dict[str, list[float]] = {who: [] for who in urls}
            for number in range(CHATS + 20):
                for who, at in urls.items():  # in turn, so that all have the same weather
                    spent = await measure_chat(session, at, chunks)
                    if number >= 20:
                        samples[who].append(spent)
            times[name] = {who: statistics.median(spent) * 1000 for who, spent in samples.items()}
        print(f"\n{'added to a chat at p50, ms':<28}" + "".join(f"{who:>20}" for who in urls) + "  target")
        for name, found in times.items():
            added = [found[who] - found["direct"] for who in urls]
            shown = [f"({found['direct']:.2f})", *(f"{one:.2f}" for one in added[1:])]
            print(f"{name:<28}" + "".join(f"{one:>20}" for one in shown) + f"  {TARGETS[name]:g} ms")
        for protocol in ("Responses", "Messages"):
            for name, found in times.items():
                more = found[protocol] - found["toolyard"]
                print(f"{protocol} over chat, {name}: {more:.2f} ms  (target: {PROTOCOL_TARGETS[name]:g} ms)")
        rates = {who: await _rate(session, at) for who, at in urls.items()}
        print(
            f"{f'requests/s, {PARALLEL} at once':<28}"
            + "".join(f"{rate:>20,.0f}" for rate in rates.values())
            + "  2,000"
        )
        await _memory(session, urls["toolyard"], pid)


async def _memory(session: aiohttp.ClientSession, at: Served, pid: int) -> None:
    found = [_resident(pid)]
    for _ in range(3):
        for _ in range(MEMORY_CHATS // 3 // PARALLEL):
            await asyncio.gather(*(measure_chat(session, at, 20) for _ in range(PARALLEL)))
        found.append(_resident(pid))
    told = ", ".join(f"{one:.0f}" for one in found)
    print(f"memory of toolyard over {MEMORY_CHATS:,} more chats, MB: {told}  (target: flat)")


async def _streams(who: str, at: Served, pid: int) -> None:
    """All are open before any goes on."""
    before = _resident(pid)
    held = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(120))
    async with held as session:
        ended = await asyncio.gather(*(_held(session, at) for _ in range(STREAMS)), return_exceptions=True)
    whole, most = sum(one is True for one in ended), _most_resident(pid)
    target = "  (target: 200)" if who == "toolyard" else ""
    print(f"{who}: {whole:,} of {STREAMS:,} streams at once completed; memory, MB: {before:.0f}, {most:.0f}{target}")


async def _held(session: aiohttp.ClientSession, at: Served) -> bool:
    body = {"model": f"{HELD}-{STREAMS}", "messages": [{"role": "user", "content": "Hello"}], "stream": True}
    headers = {"Authorization": f"Bearer {at.key}"}
    async with session.post(f"{at.url}/v1/chat/completions", json=body, headers=headers) as response:
        data = await response.read()
    return data.count(b"word ") == HELD_CHUNKS and data.endswith(b"[DONE]\n\n")


async def _rate(session: aiohttp.ClientSession, at: Served) -> float:
    left = iter(range(REQUESTS))

    async def work() -> None:
        for _ in left:
            await measure_chat(session, at, 0)

    began = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(PARALLEL)))
    return REQUESTS / (time.perf_counter() - began)


async def measure_chat(session: aiohttp.ClientSession, at: Served, chunks: int) -> float:
    body = {"model": f"stub-{chunks or 20}", "stream": bool(chunks), **_ask(at.protocol)}
    headers = {"Authorization": f"Bearer {at.key}"}
    began = time.perf_counter()
    async with session.post(f"{at.url}{PATHS[at.protocol]}", json=body, headers=headers) as response:
        data = await response.read()
    spent = time.perf_counter() - began
    assert response.status == 200, data
    is_repeated = at.protocol == "Responses" and chunks  # its last events have the whole text again
    assert data.endswith((b"[DONE]\n\n", b'"type":"message_stop"}\n\n') if chunks else b"}"), data[-100:]
    assert data.count(b"word ") >= (chunks or 20) * (2 if is_repeated else 1), data[-100:]
    return spent


def _ask(protocol: str) -> dict[str, object]:
    """The same question in each protocol."""
    system, question = "You are helpful.", "Hello " * 50
    user = [{"role": "user", "content": question}]
    match protocol:
        case "Responses":
            return {"instructions": system, "input": question, "store": False}
        case "Messages":
            return {"system": system, "messages": user, "max_tokens": 1000}
        case _:
            return {"messages": [{"role": "system", "content": system}, *user]}


# --- the servers ---


def bench_words(*words: str) -> list[str]:
    """Return the command of one of ``bench.gateway_servers``."""
    return [sys.executable, "-m", "bench.gateway_servers", *words, "--port"]


def serve_words(place: Path, *options: str) -> list[str]:
    """Return the command of a server with its home and its project in ``place``."""
    (place / "project").mkdir()
    words = ["serve", "--home", str(place / "home"), "--project", str(place / "project"), *options, "--port"]
    return [sys.executable, "-m", "toolyard", *words]


def ours_at(url: str, place: Path) -> Served:
    """A server of ``serve_words``, which has made its key by now."""
    return Served(url, (place / "home/key").read_text().strip())


def _litellm(program: str, place: Path, stub: str) -> list[str]:
    given = {"model": "openai/*", "api_base": f"{stub}/v1", "api_key": "sk-bench"}
    config = place / "litellm.yaml"
    general = {"master_key": LITELLM_KEY}  # it checks a key, as we do
    models = [{"model_name": "*", "litellm_params": given}]
    config.write_text(json.dumps({"model_list": models, "general_settings": general}))
    return [program, "--config", str(config), "--host", "127.0.0.1", "--port"]


def _resident(pid: int) -> float:
    """Megabytes, where the system tells."""
    statm = Path(f"/proc/{pid}/statm")
    return int(statm.read_text().split()[1]) * resource.getpagesize() / 1e6 if statm.exists() else float("nan")


def _most_resident(pid: int) -> float:
    """Megabytes at its peak."""
    status = Path(f"/proc/{pid}/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith("VmHWM:")), float("nan"))


@dataclass(frozen=True, slots=True)
class _Server:
    url: str
    pid: int
    ready_s: float  # from its start until it answers a request


@contextlib.contextmanager
def running(words: list[str], **environ: str) -> Iterator[_Server]:
    """A server that is up; its port is the last word."""
    port = _free_port()
    began = time.perf_counter()
    quiet = subprocess.DEVNULL
    process = subprocess.Popen([*words, str(port)], env={**os.environ, **environ}, stdout=quiet, stderr=quiet)
    try:
        asyncio.run(_until_up(port, process))
        yield _Server(f"http://127.0.0.1:{port}", process.pid, time.perf_counter() - began)
    finally:
        process.terminate()
        process.wait(30)


async def _until_up(port: int, process: "subprocess.Popen[bytes]") -> None:
    async with asyncio.timeout(120):
        while True:
            if process.poll() is not None:
                raise SystemExit(f"{process.args!r} has ended with {process.returncode} before it answered")
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.01)
                continue
            writer.write(b"GET /readyz HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n")
            answered = await reader.read()
            writer.close()
            if answered:
                return


def _free_port() -> int:
    import socket

    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
