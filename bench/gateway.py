"""The gateway: what it adds to a chat, how many requests it takes, and how its memory behaves.

In one run a stub model provider answers directly, through a bare aiohttp proxy, and through Toolyard, each in a process
of its own.
"""

import asyncio
import contextlib
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path

import aiohttp
from aiohttp import web

CHATS = 300
REQUESTS = 4000
PARALLEL = 32
MEMORY_CHATS = 3000
CHUNKS = {"streamed, 20 chunks": 20, "streamed, 200 chunks": 200}
TARGETS = {"not streamed": 1.0, "streamed, 20 chunks": 1.0, "streamed, 200 chunks": 3.0}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        stub = stack.enter_context(_running("stub"))
        proxy = stack.enter_context(_running("proxy", stub[0]))
        ours = stack.enter_context(_running("ours", stub[0], folder))
        key = (Path(folder) / "home/key").read_text().strip()
        urls = {"direct": stub[0], "bare aiohttp proxy": proxy[0], "toolyard": ours[0]}
        asyncio.run(_measure(urls, key, ours[1]))


async def _measure(urls: dict[str, str], key: str, pid: int) -> None:
    times: dict[str, dict[str, float]] = {name: {} for name in TARGETS}
    headers = {"Authorization": f"Bearer {key}"}
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), headers=headers) as session:
        for name in TARGETS:
            chunks = CHUNKS.get(name, 0)
            samples: dict[str, list[float]] = {who: [] for who in urls}
            for number in range(CHATS + 20):
                for who, url in urls.items():  # in turn, so that all have the same weather
                    spent = await _chat(session, url, chunks)
                    if number >= 20:
                        samples[who].append(spent)
            times[name] = {who: statistics.median(spent) * 1000 for who, spent in samples.items()}
        print(f"\n{'added to a chat at p50, ms':<28}" + "".join(f"{who:>20}" for who in urls) + "  target")
        for name, found in times.items():
            added = [found[who] - found["direct"] for who in urls]
            shown = [f"({found['direct']:.2f})", *(f"{one:.2f}" for one in added[1:])]
            print(f"{name:<28}" + "".join(f"{one:>20}" for one in shown) + f"  {TARGETS[name]:g} ms")
        rates = {who: await _rate(session, url) for who, url in urls.items()}
        print(
            f"{f'requests/s, {PARALLEL} at once':<28}"
            + "".join(f"{rate:>20,.0f}" for rate in rates.values())
            + "  2,000"
        )
        await _memory(session, urls["toolyard"], pid)


async def _memory(session: aiohttp.ClientSession, url: str, pid: int) -> None:
    found = [_resident(pid)]
    for _ in range(3):
        for _ in range(MEMORY_CHATS // 3 // PARALLEL):
            await asyncio.gather(*(_chat(session, url, 20) for _ in range(PARALLEL)))
        found.append(_resident(pid))
    told = ", ".join(f"{one:.0f}" for one in found)
    print(f"memory of toolyard over {MEMORY_CHATS:,} chats, MB: {told}  (target: 120 idle, and flat)")


async def _rate(session: aiohttp.ClientSession, url: str) -> float:
    left = iter(range(REQUESTS))

    async def work() -> None:
        for _ in left:
            await _chat(session, url, 0)

    began = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(PARALLEL)))
    return REQUESTS / (time.perf_counter() - began)


async def _chat(session: aiohttp.ClientSession, url: str, chunks: int) -> float:
    messages = [{"role": "system", "content": "You are helpful."}, {"role": "user", "content": "Hello " * 50}]
    body = {"model": "stub", "messages": messages, "stream": bool(chunks), "chunks": chunks}
    began = time.perf_counter()
    async with session.post(f"{url}/v1/chat/completions", json=body) as response:
        data = await response.read()
    spent = time.perf_counter() - began
    assert response.status == 200, data
    assert data.endswith(b"[DONE]\n\n" if chunks else b"}"), data[-100:]
    return spent


# --- the three servers ---


async def _stub(port: int) -> None:
    word = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "stub"}
    delta = [{"index": 0, "delta": {"content": "word "}, "finish_reason": None}]
    chunk = f"data: {json.dumps(word | {'choices': delta})}\n\n".encode()
    last = [{"index": 0, "delta": {}, "finish_reason": "stop"}]
    end = f"data: {json.dumps(word | {'choices': last})}\n\ndata: [DONE]\n\n".encode()
    message = {"role": "assistant", "content": "word " * 20}
    usage = {"prompt_tokens": 50, "completion_tokens": 20, "total_tokens": 70}
    whole = {**word, "object": "chat.completion", "usage": usage}
    whole["choices"] = [{"index": 0, "message": message, "finish_reason": "stop"}]
    answer = json.dumps(whole).encode()

    async def complete(request: web.Request) -> web.StreamResponse:
        asked = json.loads(await request.read())
        if not asked["stream"]:
            return web.Response(body=answer, content_type="application/json")
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for _ in range(asked["chunks"]):
            await response.write(chunk)
        await response.write(end)
        return response

    await _serve_aiohttp(complete, port)


async def _proxy(port: int, upstream: str) -> None:
    session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))

    async def complete(request: web.Request) -> web.StreamResponse:
        body = await request.read()
        headers = {"Content-Type": "application/json"}
        async with session.post(f"{upstream}/v1/chat/completions", data=body, headers=headers) as answer:
            if answer.content_type != "text/event-stream":
                return web.Response(body=await answer.read(), content_type=answer.content_type)
            response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
            await response.prepare(request)
            async for data in answer.content.iter_any():
                await response.write(data)
            return response

    await _serve_aiohttp(complete, port)


async def _ours(port: int, upstream: str, folder: str) -> None:
    from toolyard.config import load
    from toolyard.web.server import Options, Server

    os.environ["OPENAI_BASE_URL"], os.environ["OPENAI_API_KEY"] = upstream, "sk-bench"
    place = Path(folder)
    (place / "project").mkdir(exist_ok=True)
    await Server(load(place / "project", place / "home"), Options(port=port)).start()
    await asyncio.Event().wait()


async def _serve_aiohttp(complete: object, port: int) -> None:
    app = web.Application()
    app.router.add_post("/v1/chat/completions", complete)  # type: ignore[arg-type]
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    await asyncio.Event().wait()


def _resident(pid: int) -> float:
    """Megabytes, where the system tells."""
    statm = Path(f"/proc/{pid}/statm")
    return int(statm.read_text().split()[1]) * resource.getpagesize() / 1e6 if statm.exists() else float("nan")


@contextlib.contextmanager
def _running(*what: str) -> Iterator[tuple[str, int]]:
    """The address of a server, and its process."""
    port = _free_port()
    process = subprocess.Popen([sys.executable, "-m", "bench.gateway", what[0], str(port), *what[1:]])
    try:
        asyncio.run(_until_up(port))
        yield f"http://127.0.0.1:{port}", process.pid
    finally:
        process.terminate()
        process.wait(10)


async def _until_up(port: int) -> None:
    async with asyncio.timeout(30):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.05)
            else:
                writer.close()
                return


def _free_port() -> int:
    import socket

    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


if __name__ == "__main__":
    import uvloop

    kind, port, *more = sys.argv[1:]
    servers: dict[str, Callable[..., Coroutine[None, None, None]]] = {"stub": _stub, "proxy": _proxy, "ours": _ours}
    uvloop.run(servers[kind](int(port), *more))
