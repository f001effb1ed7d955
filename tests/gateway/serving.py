"""A gateway for tests: a real Yard, a scripted provider, a real server on a free port."""

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import aiohttp
import openai
import uvicorn
from fastapi import FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.fakes import FakeTool, says
from tests.gateway.upstream import Answers, Provider, provider
from tests.waiting import wait_until
from toolyard.config import load_config
from toolyard.engine.clock import SystemClock
from toolyard.gateway.chat_request import ClientRequest
from toolyard.gateway.chats import Chat
from toolyard.gateway.media_links import MediaLinks
from toolyard.gateway.protocols.responses.response_turns import ResponseTurns
from toolyard.gateway.providers.answer import Limits
from toolyard.protocol.json import JsonObject
from toolyard.protocol.mask import Mask
from toolyard.protocol.requests.scanner import format_request
from toolyard.protocol.tool import Checkpoint, Result, ToolCall
from toolyard.web.idempotency import IdempotentRequests
from toolyard.web.routes.chat import chats as chat_routes
from toolyard.web.routes.chat import messages as message_routes
from toolyard.web.routes.chat import models, passthrough, responses
from toolyard.web.routing import route_first
from toolyard.web.security.scope import PRINCIPAL, Principal
from toolyard.web.security.scope import Scope as KeyScope
from toolyard.web.server.connection import BoundedHttpProtocol
from toolyard.web.server.health import Drain
from toolyard.yard.chat import make_chat
from toolyard.yard.yard import Yard

# Of these limits none is met: what ends in a test has ended for a reason of its own.
QUICK = Limits(connect_s=300, first_byte_s=300, idle_s=300, whole_s=300, tries=3, pause_s=0.01)
ME = "key:me"
PUBLIC_URL = "https://yard.example.org"
ROOT = Path(__file__).parents[2]
Meter = Callable[[], Awaitable[dict[str, float]]]


@dataclass
class Gateway:
    yard: Yard
    chat: Chat
    upstream: Provider
    url: str = ""
    responses: ResponseTurns | None = None  # when it is served
    ran: list[ToolCall] = field(default_factory=list)  # the calls of the tool Say

    def client(self, key: str = "me") -> openai.AsyncOpenAI:
        return openai.AsyncOpenAI(base_url=f"{self.url}/v1", api_key=key, max_retries=0, timeout=60)

    async def complete(self, text: str = "Hi.", **more: Any) -> dict[str, Any]:
        """The answer in one piece, by the port."""
        run = await self.chat.complete(ClientRequest(chat_body(text, **more), caller=ME))
        answer: dict[str, Any] = json.loads(run.body)
        return answer

    async def stream(self, text: str = "Hi.", **more: Any) -> "StreamedAnswer":
        run = await self.chat.complete(ClientRequest(chat_body(text, stream=True, **more), caller=ME))
        if run.pieces is None:
            return StreamedAnswer(events=[json.loads(run.body)], status=int(run.status))
        raw = b"".join([piece async for piece in run.pieces])
        return StreamedAnswer.from_bytes(raw)


@dataclass
class StreamedAnswer:
    """What a client has heard of a stream."""

    events: list[dict[str, Any]]
    done: int = 0
    status: int = 200

    @classmethod
    def from_bytes(cls, raw: bytes) -> "StreamedAnswer":
        lines = [line for event in raw.split(b"\n\n") for line in event.split(b"\n") if line.startswith(b"data: ")]
        data = [line.removeprefix(b"data: ") for line in lines]
        return cls([json.loads(one) for one in data if one != b"[DONE]"], data.count(b"[DONE]"))

    @property
    def text(self) -> str:
        deltas = (choice["delta"] or {} for event in self.events for choice in event.get("choices", []))
        return "".join(delta.get("content") or "" for delta in deltas)

    @property
    def finishes(self) -> list[str]:
        reasons = (choice.get("finish_reason") for event in self.events for choice in event.get("choices", []))
        return [finish for finish in reasons if finish]

    @property
    def errors(self) -> list[dict[str, Any]]:
        return [event["error"] for event in self.events if "error" in event]


def chat_body(text: str, *, system: str = "", **more: Any) -> JsonObject:
    messages = [{"role": "system", "content": system}] if system else []
    return {"model": "scripted", "messages": [*messages, {"role": "user", "content": text}], **more}


def request(tool: str = "Say", **arguments: str) -> str:
    return format_request(tool, arguments)


@asynccontextmanager
async def gateway(
    place: Path,
    answers: Answers,
    *,
    limits: Limits = QUICK,
    settings: Mapping[str, Any] | None = None,
    plugins: tuple[Path, ...] = (),
    served: bool = False,
) -> AsyncIterator[Gateway]:
    (place / "project").mkdir(parents=True, exist_ok=True)
    config = load_config(place / "project", place / "home", plugin_folders=plugins, trusts_given=True)
    async with provider(answers) as upstream, contextlib.AsyncExitStack() as stack:
        values = {"upstream_url": upstream.url, "upstream_key": "sk-the-key", **(settings or {})}
        config = replace(config, settings=replace(config.settings, **values))
        yard = await stack.enter_async_context(Yard(config))
        links = MediaLinks(yard.state.media, PUBLIC_URL, SystemClock().now)
        chat = make_chat(yard, limits=limits, tour_pause_s=0, mask=Mask(config.secrets), links=links)
        stack.push_async_callback(chat.close)
        one = Gateway(yard, chat, upstream)

        async def say(call: ToolCall, checkpoint: Checkpoint) -> Result:
            one.ran.append(call)
            return await says(call, checkpoint)

        yard.tools.add(FakeTool(say, name="Say"))
        if served:
            idempotent = IdempotentRequests(yard.state.idempotency, Drain(), config.own_command)
            turns = one.responses = ResponseTurns(chat, yard.state.responses, yard.state.approvals, SystemClock())
            stack.push_async_callback(turns.close)
            app = chat_app(chat, idempotent, turns, Mask(config.secrets))
            one.url = await stack.enter_async_context(serve(app))
        yield one


def chat_app(chat: Chat, idempotent: IdempotentRequests, turns: ResponseTurns, mask: Mask) -> ASGIApp:
    """The chat's routes alone; the key is the caller's name."""
    routed = FastAPI()
    areas = (
        chat_routes.router(chat, idempotent),
        responses.router(turns, idempotent, lambda _: True),
        message_routes.router(chat, idempotent, mask.text),
        models.router(chat),
        passthrough.router(chat, mask.text),
    )
    for area in areas:
        routed.router.routes.extend(area.routes)
    direct = {
        **chat_routes.direct_answers(chat, idempotent),
        **responses.direct_answers(turns, idempotent),
        **message_routes.direct_answers(chat, idempotent, mask.text),
    }
    app = route_first(routed, direct)

    async def named(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket"):
            headers = dict(scope["headers"])
            key = headers.get(b"x-api-key") or headers.get(b"authorization", b"Bearer nobody")
            name = key.decode().removeprefix("Bearer ")
            scopes = {KeyScope.CHAT, KeyScope.APPROVE} if name == "boss" else {KeyScope.CHAT}
            scope[PRINCIPAL] = Principal(key_id=name, scopes=frozenset(scopes))
        await app(scope, receive, send)

    return named


@asynccontextmanager
async def serve(app: ASGIApp) -> AsyncIterator[str]:
    config = uvicorn.Config(
        app, host="127.0.0.1", port=0, log_config=None, lifespan="off", http=BoundedHttpProtocol, timeout_keep_alive=600
    )
    server = uvicorn.Server(config)
    server.capture_signals = contextlib.nullcontext  # type: ignore[method-assign,assignment]
    serving = asyncio.create_task(server.serve())
    await wait_until(lambda: server.started)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        server.force_exit = True
        await serving


@asynccontextmanager
async def metered(place: Path, answers: Answers) -> AsyncIterator[tuple[aiohttp.ClientSession, Meter]]:
    """A whole server in a process of its own, and what it has measured of itself since it was asked last."""
    (place / "project").mkdir()
    (place / "project/a.md").write_text("# Heading\n")
    async with provider(answers) as upstream:
        words = ["-m", "tests.gateway.metered", str(place / "home"), str(place / "project")]
        pipe = asyncio.subprocess.PIPE
        environ = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "OPENAI_BASE_URL": upstream.url,
            "OPENAI_API_KEY": "sk-the-key",
        }
        process = await asyncio.create_subprocess_exec(
            sys.executable, *words, stdin=pipe, stdout=pipe, cwd=ROOT, env=environ
        )
        assert process.stdin is not None
        assert process.stdout is not None
        stdin, stdout = process.stdin, process.stdout
        url = (await stdout.readline()).decode().strip()
        key = (place / "home/key").read_text().strip()

        async def meter() -> dict[str, float]:
            stdin.write(b"\n")
            measured: dict[str, float] = json.loads(await stdout.readline())
            return measured

        headers = {"Authorization": f"Bearer {key}"}
        try:
            async with aiohttp.ClientSession(url, connector=aiohttp.TCPConnector(limit=0), headers=headers) as session:
                yield session, meter
        finally:
            stdin.close()
            await process.wait()
