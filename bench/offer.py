"""Offering the tools: what it adds to a chat, against the same chat without, in the same run.

The server is ``toolyard serve`` as people start it, with the 16 tools that ship and with plugins that make it 1,000.
The model provider is a stub, which reads the request as providers do.
"""

import asyncio
import json
import statistics
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import aiohttp

from bench.gateway import Served, bench_words, ours_at, running, serve_words

CHATS = 400
SHIPPED = 16
TARGETS = {SHIPPED: 0.3, 1000: 3.0}  # ms at p50, by the number of tools
_WARM_UP = 40


def main() -> None:
    print(f"{'offering tools adds to a chat at p50, ms':<44}{'without':>10}{'with':>10}{'added':>10}  target")
    for tools, target in TARGETS.items():
        with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
            place = Path(folder)
            (place / "plugins").mkdir()
            for number in range(tools - SHIPPED):
                _write_plugin(place / "plugins", number)
            stub = stack.enter_context(running(bench_words("stub")))
            words = serve_words(place, "--plugins", str(place / "plugins"), "--trust")
            ours = stack.enter_context(running(words, OPENAI_BASE_URL=stub.url, OPENAI_API_KEY="sk-bench"))
            served = ours_at(ours.url, place)
            for streams in (False, True):
                without, offered = asyncio.run(_measure(served, tools, streams=streams))
                what = f"{tools:,} tools, {'streamed' if streams else 'not streamed'}"
                print(f"{what:<44}{without:>10.2f}{offered:>10.2f}{offered - without:>10.2f}  {target:g} ms")


async def _measure(at: Served, tools: int, *, streams: bool) -> tuple[float, float]:
    samples: dict[str, list[float]] = {"none": [], "auto": []}
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {at.key}"}) as session:
        await _await_tools(session, at.url, tools)
        for number in range(CHATS + _WARM_UP):
            for offer, spent in samples.items():  # in turn, so that both have the same weather
                took = await _chat(session, at.url, offer, streams=streams)
                if number >= _WARM_UP:
                    spent.append(took)
    return statistics.median(samples["none"]) * 1000, statistics.median(samples["auto"]) * 1000


async def _await_tools(session: aiohttp.ClientSession, url: str, tools: int) -> None:
    """Plugins are looked for after the server listens."""
    async with asyncio.timeout(120):
        while True:
            async with session.get(f"{url}/v1/tools") as response:
                if len((await response.json())["data"]) >= tools:
                    return
            await asyncio.sleep(0.2)


async def _chat(session: aiohttp.ClientSession, url: str, offer: str, *, streams: bool) -> float:
    messages = [{"role": "system", "content": "You are helpful."}, {"role": "user", "content": "Hello " * 50}]
    body = {"model": "stub-20", "messages": messages, "stream": streams}
    headers = {"X-Toolyard-Offer": offer}
    began = time.perf_counter()
    async with session.post(f"{url}/v1/chat/completions", json=body, headers=headers) as response:
        data = await response.read()
    spent = time.perf_counter() - began
    assert data.count(b"word ") == 20, data[-200:]
    return spent


def _write_plugin(place: Path, number: int) -> None:
    folder = place / f"Bench{number:04}"
    folder.mkdir()
    (folder / "main.py").write_text("print('{}')\n")
    schema = {"type": "object", "properties": {"text": {"type": "string", "description": "The text to work on."}}}
    command = {"commandIdentifier": "Go", "description": f"Does work number {number}.", "parameters": schema}
    manifest = {
        "name": folder.name,
        "displayName": folder.name,
        "description": f"A plugin that does work number {number}, for measurements.",
        "pluginType": "synchronous",
        "entryPoint": {"type": "python", "command": "python main.py"},
        "communication": {"protocol": "stdio"},
        "capabilities": {"invocationCommands": [command]},
        "risk": "read",
    }
    (folder / "plugin-manifest.json").write_text(json.dumps(manifest))


if __name__ == "__main__":
    main()
