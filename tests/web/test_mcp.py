"""``/mcp`` on a real server, behind its middleware."""

import asyncio
from pathlib import Path

import aiohttp
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.mcp.clients import ERAS, User
from tests.web.conftest import RunningServer, run_server
from toolyard.protocol.store import Query
from toolyard.web.server.lifecycle import ServerOptions

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


@pytest.fixture
def server(running_server: RunningServer) -> RunningServer:
    return running_server


@pytest.mark.requirement("mcp:server", "mcp:runner")
@pytest.mark.parametrize("mode", ERAS)
async def test_the_official_client_works_with_the_key(server: RunningServer, mode: str) -> None:
    user = User()
    headers = {"Authorization": f"Bearer {server.key}"}
    async with asyncio.timeout(180), httpx2.AsyncClient(headers=headers, timeout=120) as http:
        transport = streamable_http_client(f"{server.url}/mcp", http_client=http)
        async with Client(transport, mode=mode, elicitation_callback=user) as client:
            assert "Read" in {tool.name for tool in (await client.list_tools()).tools}
            written = await client.call_tool("Write", {"path": "a.txt", "content": "x"})
    assert not written.is_error
    assert (server.project / "a.txt").read_text() == "x"
    (call,) = await server.yard.state.journal.page(Query(), limit=5)
    assert (call.caller, call.origin) == ("key:owner", "mcp")
    assert len(user.asked) == 1


@pytest.mark.requirement("mcp:server", "s:S-42")
async def test_without_key_or_from_elsewhere_nobody_gets_in(server: RunningServer) -> None:
    assert (await server.post("/mcp", PING, key=None)).status == 401
    assert (await server.post("/mcp", PING, headers={"Host": "evil.example"})).status in (403, 421)
    assert (await server.post("/mcp", PING, headers={"Origin": "https://evil.example"})).status == 403


@pytest.mark.requirement("mcp:server")
async def test_when_it_cannot_be_loaded_nobody_waits_and_the_next_request_tries_again(
    server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: str) -> None:
        raise ImportError("no such module")

    headers = {"Accept": "application/json, text/event-stream"}
    with monkeypatch.context() as patch:
        patch.setattr("toolyard.mcp.mount.importlib.import_module", broken)
        async with asyncio.timeout(60):
            assert (await server.post("/mcp", PING, headers=headers)).status == 500
    async with asyncio.timeout(60):
        assert (await server.post("/mcp", PING, headers=headers)).status != 500


@pytest.mark.requirement("mcp:server")
async def test_an_open_stream_of_news_does_not_hold_up_the_end(tmp_path: Path) -> None:
    async with asyncio.timeout(180), aiohttp.ClientSession() as client:
        async with run_server(tmp_path, ServerOptions(port=0, grace_s=600.0)) as server:
            head = await _begin_session(client, server)
            news = await client.get(f"{server.url}/mcp", headers=head)
            assert (news.status, news.content_type) == (200, "text/event-stream")
        news.close()


@pytest.mark.requirement("mcp:server")
async def test_a_client_that_wants_to_resume_a_stream_gets_a_new_one(server: RunningServer) -> None:
    async with asyncio.timeout(180), aiohttp.ClientSession() as client:
        head = await _begin_session(client, server) | {"Last-Event-ID": "no-such-event"}
        async with client.get(f"{server.url}/mcp", headers=head) as news:
            assert (news.status, news.content_type) == (200, "text/event-stream")
        del head["Mcp-Session-Id"]
        async with client.get(f"{server.url}/mcp", headers=head) as refused:
            assert refused.status == 400


async def _begin_session(client: aiohttp.ClientSession, server: RunningServer) -> dict[str, str]:
    """Begin a session in the way of 2025 and return the headers of its requests."""
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    head = {
        "Authorization": f"Bearer {server.key}",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2025-06-18",
    }
    began = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
    async with client.post(f"{server.url}/mcp", json=began, headers=head) as answer:
        assert answer.status == 200
        head["Mcp-Session-Id"] = answer.headers["Mcp-Session-Id"]
        await answer.read()
    initialized = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    async with client.post(f"{server.url}/mcp", json=initialized, headers=head) as answer:
        assert answer.status == 202
    return head
