"""A model provider that does what a test tells it: a real server that answers with given bytes, and can break off."""

import asyncio
import email
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email.policy import HTTP
from typing import Any

from aiohttp import web

DONE = b"data: [DONE]\n\n"


@dataclass
class Script:
    """One answer. ``pieces`` are written one by one; then it ends, breaks off, or stays silent."""

    pieces: Sequence[bytes] = ()
    status: int = 200
    kind: str = "text/event-stream"  # empty: it does not say
    headers: dict[str, str] = field(default_factory=dict)
    then: str = "end"  # end, cut, hang; or drop: the connection closes without an answer
    pause_s: float = 0.0
    late_s: float = 0.0  # before anything is sent
    begins: asyncio.Event | None = None  # before anything is sent
    waits: asyncio.Event | None = None  # before anything but the head is sent


@dataclass(frozen=True)
class Call:
    """A request other than for a chat."""

    path: str
    body: bytes
    head: Mapping[str, str]
    fields: Mapping[str, Any]  # of a form, or of an object


Answers = Iterable[Script] | Callable[[dict[str, Any]], Script]


@dataclass
class Provider:
    url: str
    bodies: list[dict[str, Any]] = field(default_factory=list)
    raw: list[bytes] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    heads: list[Mapping[str, str]] = field(default_factory=list)
    addresses: list[str] = field(default_factory=list)  # paths with their query
    written: int = 0
    gone: asyncio.Event = field(default_factory=asyncio.Event)  # a client left before its answer had ended
    connections: set[Any] = field(default_factory=set)
    answers: Answers = ()
    models: Script | None = None  # what it answers when it is asked for its models
    calls: list[Call] = field(default_factory=list)
    answer: Callable[[Call], Script] | None = None  # what it answers to them
    when_begun: Callable[[], None] | None = None  # told when the head of one is there


@asynccontextmanager
async def provider(answers: Answers) -> AsyncIterator[Provider]:
    """Scripts are used one after the other, the last for all that follow; or made from the request."""
    one = Provider("", answers=answers)
    left = list(answers) if not callable(answers) else []

    async def complete(request: web.Request) -> web.StreamResponse:
        if one.answer is not None and request.path != "/v1/chat/completions":
            return await other(request)
        raw = await request.read()
        body = json.loads(raw)
        one.heads.append(request.headers)
        one.addresses.append(request.path_qs)
        one.raw.append(raw)
        one.bodies.append(body)
        one.keys.append(request.headers.get("Authorization", ""))
        one.connections.add(request.transport)
        script = answers(body) if callable(answers) else left.pop(0) if len(left) > 1 else left[0]
        return await _perform(request, script, one)

    async def models(request: web.Request) -> web.StreamResponse:
        one.heads.append(request.headers)
        one.addresses.append(request.path_qs)
        if one.models is not None:
            return await _perform(request, one.models, one)
        return web.json_response({"object": "list", "data": [{"id": "scripted", "object": "model"}]})

    async def other(request: web.Request) -> web.StreamResponse:
        if one.when_begun is not None:
            one.when_begun()
        raw = await request.read()
        is_form = request.content_type == "multipart/form-data"
        fields = _parse_form(request.headers["Content-Type"], raw) if is_form else json.loads(raw)
        call = Call(request.path, raw, request.headers, fields)
        one.calls.append(call)
        if one.answer is None:
            return web.Response(status=404)
        return await _perform(request, one.answer(call), one)

    app = web.Application(client_max_size=64 * 2**20)
    app.on_response_prepare.append(_leave_out)
    for path in ("chat/completions", "responses", "messages"):
        app.router.add_post(f"/v1/{path}", complete)
    app.router.add_get("/v1/models", models)
    app.router.add_post("/v1/{path:.*}", other)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    one.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    try:
        yield one
    finally:
        await runner.cleanup()


def _parse_form(content_type: str, raw: bytes) -> dict[str, Any]:
    """Texts, and files as bytes; by Python's own reader of mail."""
    parts = email.message_from_bytes(f"Content-Type: {content_type}\r\n\r\n".encode() + raw, policy=HTTP).iter_parts()
    made: dict[str, Any] = {}
    for part in parts:
        name = part.get_param("name", header="content-disposition")
        value: Any = part.get_payload(decode=True)
        made[str(name)] = value if part.get_filename() is not None else value.decode()
    return made


async def _leave_out(_: web.Request, response: web.StreamResponse) -> None:
    """aiohttp always says what kind of content it sends."""
    if response.headers.get("Content-Type") == "":
        del response.headers["Content-Type"]


async def _perform(request: web.Request, script: Script, one: Provider) -> web.StreamResponse:
    response = web.StreamResponse(status=script.status, headers={"Content-Type": script.kind, **script.headers})
    try:
        await asyncio.sleep(script.late_s)
        if script.begins is not None:
            await script.begins.wait()
        if script.then == "drop" and request.transport is not None:
            request.transport.close()
            return response
        await response.prepare(request)
        if script.waits is not None:
            await script.waits.wait()
        for piece in script.pieces:
            await response.write(piece)
            one.written += len(piece)
            if script.pause_s:
                await asyncio.sleep(script.pause_s)
        if script.then == "hang":
            await asyncio.Event().wait()
        if script.then == "cut":
            transport = request.transport
            if transport is not None:
                transport.close()
            return response
        await response.write_eof()
    except (asyncio.CancelledError, ConnectionError):
        one.gone.set()
        raise
    return response


def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> bytes:
    made = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "scripted"}
    choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
    return f"data: {json.dumps(made | {'choices': choices} | more, ensure_ascii=False)}\n\n".encode()


def streamed(text: str, *, size: int = 7, usage: dict[str, int] | None = None) -> list[bytes]:
    """A whole reply as events of ``size`` characters."""
    texts = [text[at : at + size] for at in range(0, len(text), size)]
    made = [chunk({"role": "assistant", "content": ""}), *(chunk({"content": piece}) for piece in texts)]
    made.append(chunk({}, "stop"))
    if usage:
        shell = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "scripted"}
        made.append(f"data: {json.dumps(shell | {'choices': [], 'usage': usage})}\n\n".encode())
    return [*made, DONE]


def says(text: str, *, size: int = 7, usage: dict[str, int] | None = None, stream: bool = True) -> Script:
    """A reply that is as it should be."""
    if stream:
        return Script(streamed(text, size=size, usage=usage))
    return Script([completion({"role": "assistant", "content": text}, usage=usage)], kind="application/json")


def completion(message: dict[str, Any], finish: str = "stop", usage: dict[str, int] | None = None) -> bytes:
    made: dict[str, Any] = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "scripted"}
    made["choices"] = [{"index": 0, "message": message, "finish_reason": finish}]
    return json.dumps(made | ({"usage": usage} if usage else {}), ensure_ascii=False).encode()


def replies(*texts: str, **more: Any) -> Callable[[dict[str, Any]], Script]:
    """One text after the other, streamed or whole as each request asks for; the last for all that follow."""
    left = list(texts)

    def answer(body: dict[str, Any]) -> Script:
        return says(left.pop(0) if len(left) > 1 else left[0], stream=bool(body.get("stream")), **more)

    return answer
