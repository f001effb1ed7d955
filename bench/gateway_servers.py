"""What the gateway is measured with: a model provider that answers at once, and a proxy that only passes on.

As a program: ``python -m bench.gateway_servers stub --port PORT`` or ``... proxy UPSTREAM --port PORT``.
"""

import asyncio
import json
import sys
from collections.abc import Callable, Coroutine

import aiohttp
from aiohttp import web

MOST_CHUNKS = 200
HELD, HELD_CHUNKS = "held", 20  # a model of which ``held-50`` goes on after its first word when 50 chats are there


async def _stub(port: int) -> None:
    word = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "stub"}
    chunks = [_chunk(word, number) for number in range(MOST_CHUNKS)]
    last = [{"index": 0, "delta": {}, "finish_reason": "stop"}]
    end = f"data: {json.dumps(word | {'choices': last})}\n\ndata: [DONE]\n\n".encode()
    message = {"role": "assistant", "content": "word " * 20}
    usage = {"prompt_tokens": 50, "completion_tokens": 20, "total_tokens": 70}
    whole = {**word, "object": "chat.completion", "usage": usage}
    whole["choices"] = [{"index": 0, "message": message, "finish_reason": "stop"}]
    answer = json.dumps(whole).encode()

    held = list[asyncio.Future[None]]()

    async def everybody(number: int) -> None:
        held.append(asyncio.get_running_loop().create_future())
        mine = held[-1]
        if len(held) == number:
            for one in held:
                one.set_result(None)
            held.clear()
        await mine

    async def complete(request: web.Request) -> web.StreamResponse:
        asked = json.loads(await request.read())
        if not asked.get("stream"):
            return web.Response(body=answer, content_type="application/json")
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        kind, _, number = asked["model"].rpartition("-")
        if kind == HELD:
            await response.write(chunks[0])
            await everybody(int(number))
        for chunk in chunks[1:HELD_CHUNKS] if kind == HELD else chunks[: int(number)]:
            await response.write(chunk)
        await response.write(end)
        return response

    await _serve_aiohttp(complete, port)


def _chunk(word: dict[str, object], number: int) -> bytes:
    """No two are the same: some proxies take that for a model that has lost its way."""
    delta = [{"index": 0, "delta": {"content": f"word {number} "}, "finish_reason": None}]
    return f"data: {json.dumps(word | {'choices': delta})}\n\n".encode()


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


async def _serve_aiohttp(complete: object, port: int) -> None:
    app = web.Application()
    app.router.add_post("/v1/chat/completions", complete)  # type: ignore[arg-type]
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    import uvloop

    kind, *more, _, port = sys.argv[1:]
    servers: dict[str, Callable[..., Coroutine[None, None, None]]] = {"stub": _stub, "proxy": _proxy}
    uvloop.run(servers[kind](int(port), *more))
