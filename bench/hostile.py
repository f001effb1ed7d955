"""Providers that send what would stop a careless gateway: how long ``/healthz`` waits meanwhile, at most.

The provider runs in a process of its own (``python -m bench.hostile provider --port PORT``), ``toolyard serve`` in
another. While each answer comes in, ``/healthz`` is asked again and again over one connection.
"""

import asyncio
import contextlib
import sys
import tempfile
import time
import zlib
from collections.abc import AsyncIterator, Callable, Coroutine
from functools import partial
from pathlib import Path

import aiohttp
from aiohttp import web

from bench.gateway import Served, ours_at, running, serve_words

LIMIT_MS = 100.0
TIMES = 3  # of each, the median counts: the machine may have others to serve
MIB = 2**20
_WHOLE = b'{"choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": %s}}]}'
_CHUNK = b'data: {"choices": [{"index": 0, "delta": {"content": %s}}]}\n\n'


Attack = Callable[[], Coroutine[None, None, None]]


def _repeat(unit: bytes, size: int) -> bytes:
    return unit * (size // len(unit))


async def _pieces(data: bytes, size: int) -> AsyncIterator[bytes]:
    for at in range(0, len(data), size):
        yield data[at : at + size]


async def _bomb(begin: bytes) -> AsyncIterator[bytes]:
    """One gibibyte in one mebibyte."""
    packer = zlib.compressobj(9, wbits=31)
    yield packer.compress(begin)
    block = b"x" * MIB
    for _ in range(1024):
        if packed := packer.compress(block):
            yield packed
    yield packer.flush()


# What is sent for a model of this name; the second is whether it is compressed.
ATTACKS: dict[str, tuple[Callable[[], AsyncIterator[bytes]], bool]] = {
    "gzip bomb as events": (lambda: _bomb(b"data: "), True),
    "gzip bomb as JSON": (lambda: _bomb(b'{"choices": ["'), True),
    "an event without end, 64 KiB at once": (lambda: _pieces(b"data: " + b"x" * 17 * MIB, 65536), False),
    "an event without end, byte by byte": (lambda: _pieces(b"data: " + b"x" * 300_000, 1), False),
    "an event of 16 MiB of values": (lambda: _pieces(_CHUNK % (b"[" + _repeat(b"{},", 15 * MIB) + b"0]"), MIB), False),
    "an event of 190,000 values": (lambda: _pieces(_CHUNK % (b"[" + b"[]," * 95_000 + b"0]"), MIB), False),
    "an event of 48,000 values and NaN": (lambda: _pieces(_CHUNK % (b"[" + b"[]," * 24_000 + b"NaN]"), MIB), False),
    "an event of 100,000 levels": (lambda: _pieces(_CHUNK % (b"[" * 100_000), MIB), False),
    "an event of 3 million lines": (lambda: _pieces(b"data:\n" * 2_700_000 + b"\n", MIB), False),
    "500,000 empty events": (lambda: _pieces(b"data: {}\n\n" * 500_000, MIB), False),
    "JSON of 32 MiB of values": (lambda: _pieces(_WHOLE % (b"[" + _repeat(b"[],", 31 * MIB) + b"0]"), MIB), False),
    "JSON of 600,000 values": (lambda: _pieces(_WHOLE % (b"[" + b"[]," * 300_000 + b"0]"), MIB), False),
}
LISTS: dict[str, Callable[[], bytes]] = {
    "a list of 20,000 models": lambda: b'{"data": [' + b'{"id": "some-model", "object": "model"},' * 20_000 + b"{}]}",
    "a list of 4 MiB of values": lambda: b'{"data": [' + _repeat(b"{},", 4 * MIB - 100) + b"{}]}",
    "a list of 1 GiB": lambda: b"",
}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        place = Path(folder)
        provider = stack.enter_context(running([sys.executable, "-m", "bench.hostile", "provider", "--port"]))
        words = serve_words(place)
        server = stack.enter_context(running(words, OPENAI_BASE_URL=provider.url, OPENAI_API_KEY="sk-bench"))
        asyncio.run(_measure(ours_at(server.url, place), provider.url))


async def _measure(at: Served, provider: str) -> None:
    headers = {"Authorization": f"Bearer {at.key}"}
    timeout = aiohttp.ClientTimeout(300)
    print(f"\n{'the longest wait of /healthz, ms':<45}{'median':>10}{'most':>10}  limit")
    async with aiohttp.ClientSession(at.url, headers=headers, timeout=timeout) as session:
        await _row(session, "nothing", lambda: asyncio.sleep(1))
        for name in ATTACKS:
            await _row(session, name, partial(_chat, session, name, stream=True))
            await _row(session, f"{name}, whole", partial(_chat, session, name, stream=False))
        for name in LISTS:
            await _row(session, name, partial(_list, session, provider, name))


async def _row(session: aiohttp.ClientSession, name: str, attack: Attack) -> None:
    found = sorted([await _longest_wait(session, attack) for _ in range(TIMES)])
    print(f"{name:<45}{found[TIMES // 2]:>10.0f}{found[-1]:>10.0f}  {LIMIT_MS:g}", flush=True)


async def _longest_wait(session: aiohttp.ClientSession, attack: Attack) -> float:
    attacking = asyncio.create_task(attack())
    longest = 0.0
    while not attacking.done():
        began = time.perf_counter()
        async with session.get("/healthz") as response:
            await response.read()
        longest = max(longest, (time.perf_counter() - began) * 1000)
        await asyncio.sleep(0.002)
    await attacking
    return longest


async def _chat(session: aiohttp.ClientSession, model: str, *, stream: bool) -> None:
    body = {"model": model, "messages": [{"role": "user", "content": "Hi"}], "stream": stream}
    async with session.post("/v1/chat/completions", json=body) as response:
        while await response.content.read(MIB):
            pass


async def _list(session: aiohttp.ClientSession, provider: str, name: str) -> None:
    async with aiohttp.ClientSession(provider) as other, other.post("/next", json=name):
        pass
    for _ in range(3):  # a list that failed is asked for again, a good one is kept for a minute
        async with session.get("/v1/models") as response:
            await response.read()


async def _provide(port: int) -> None:
    listed = ""

    async def complete(request: web.Request) -> web.StreamResponse:
        make, packed = ATTACKS[(await request.json())["model"]]
        return await _send(request, make(), packed=packed)

    async def models(request: web.Request) -> web.StreamResponse:
        if listed == "a list of 1 GiB":
            return await _send(request, _bomb(b'{"data": ["'), packed=True)
        return await _send(request, _pieces(LISTS[listed]() if listed else b"{}", MIB), packed=False)

    async def choose(request: web.Request) -> web.Response:
        nonlocal listed
        listed = await request.json()
        return web.Response()

    app = web.Application()
    app.router.add_post("/v1/chat/completions", complete)
    app.router.add_get("/v1/models", models)
    app.router.add_post("/next", choose)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    await asyncio.Event().wait()


async def _send(request: web.Request, pieces: AsyncIterator[bytes], *, packed: bool) -> web.StreamResponse:
    headers = {"Content-Type": "text/event-stream"} | ({"Content-Encoding": "gzip"} if packed else {})
    response = web.StreamResponse(headers=headers)
    with contextlib.suppress(ConnectionError):
        await response.prepare(request)
        async for piece in pieces:
            await response.write(piece)
        await response.write_eof()
    return response


if __name__ == "__main__":
    asyncio.run(_provide(int(sys.argv[-1])))
