"""Answers of MCP servers over HTTP have the same limit as over stdio, counted after decompression."""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.mcp.test_client import McpProject, allow, call
from toolyard.plugins.mcp.server_start import MAX_BODY

pytestmark = pytest.mark.requirement("mcp:http-limit")


class CompressingServer:
    """A server, made of aiohttp, that answers a call with as much as it is told, compressed."""

    def __init__(self) -> None:
        self.megabytes, self.depth, self.kind = 1, 0, "application/json"
        self.url = ""

    async def answer(self, request: web.Request) -> web.Response:
        message = await request.json()
        if "id" not in message:
            return web.Response(status=202)
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"]} | self._reply(message)).encode()
        if self.depth and message["method"] == "tools/call":
            body = body.replace(b'"content"', b'"deep": ' + b"[" * self.depth + b"]" * self.depth + b', "content"')
        if self.kind == "text/event-stream":
            body = b"event: message\ndata: " + body + b"\n\n"
        headers = {"Content-Type": self.kind, "Content-Encoding": "gzip"}
        return web.Response(body=gzip.compress(body, 1), headers=headers)

    def _reply(self, message: dict[str, Any]) -> dict[str, Any]:
        match message["method"]:
            case "initialize":
                info = {"name": "squeezed", "version": "1"}
                capabilities: dict[str, Any] = {"tools": {}}
                about = {"protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": info}
                return {"result": about}
            case "tools/list":
                return {"result": {"tools": [{"name": "inflate", "inputSchema": {"type": "object"}}]}}
            case "tools/call":
                return {"result": {"content": [{"type": "text", "text": "x" * (self.megabytes << 20)}]}}
        return {"error": {"code": -32601, "message": "no such method"}}


@pytest.fixture
async def squeezed() -> AsyncIterator[CompressingServer]:
    server = CompressingServer()
    app = web.Application()
    app.router.add_post("/mcp", server.answer)
    async with TestServer(app) as running:
        server.url = str(running.make_url("/mcp"))
        yield server


@pytest.mark.requirement("mcp:unreadable-reply")
@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
async def test_a_reply_that_is_nested_too_deeply_ends_its_call(
    squeezed: CompressingServer, tmp_path: Path, kind: str
) -> None:
    place = McpProject(tmp_path)
    place.write({"tiny": {"url": squeezed.url}})
    async with asyncio.timeout(180), place.yard() as yard:
        await allow(yard)
        squeezed.kind, squeezed.depth = kind, 200_000
        outcome = await call(yard, "inflate")
    assert outcome.envelope.context["reason"] == "INVALID_OUTPUT"
    assert "nested too deeply" in outcome.envelope.text


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
async def test_what_is_larger_than_the_limit_ends_the_call_and_nothing_else(
    squeezed: CompressingServer, tmp_path: Path, kind: str
) -> None:
    place = McpProject(tmp_path)
    place.write({"tiny": {"url": squeezed.url}})
    async with place.yard() as yard:
        await allow(yard)
        squeezed.kind = kind
        squeezed.megabytes = (MAX_BODY >> 20) - 1
        fits = await call(yard, "inflate")
        squeezed.megabytes = (MAX_BODY >> 20) + 1
        too_large = await call(yard, "inflate")
        squeezed.megabytes = 1
        again = await call(yard, "inflate")
    assert len(fits.envelope.text) == MAX_BODY - (1 << 20)
    assert too_large.envelope.error is not None
    assert ("larger than 16 MiB" if kind == "application/json" else "16777216 byte limit") in too_large.envelope.text
    assert again.envelope.error is None
