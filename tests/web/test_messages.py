"""The edge of the server for Anthropic's clients: keys, errors, probes, and the base URLs that people give."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import aiohttp
import anthropic
import openai
import pytest

from tests.gateway.messages import read_stream, text_of
from tests.gateway.serving import request
from tests.gateway.test_served import server
from tests.gateway.upstream import replies
from tests.web.conftest import RunningServer
from toolyard.web import chat_response
from toolyard.web.security.request_body import MAX_CHAT
from toolyard.web.security.scope import Scope
from toolyard.web.security.ways_in import find_route

HI: Any = [{"role": "user", "content": "Hi"}]
BODY = {"model": "tour", "max_tokens": 100, "messages": HI}
WRITE = f"I write.\n{request('Write', path='new.txt', content='x')}\n"


@pytest.mark.requirement("anthropic:faults")
async def test_every_error_of_the_edge_has_anthropics_shape(running_server: RunningServer) -> None:
    large, typed = {"Content-Length": str(MAX_CHAT + 1)}, {"Content-Type": "application/json"}
    version = {"anthropic-version": "2023-06-01"}
    asked: list[tuple[str, str, dict[str, Any], int, str]] = [
        ("POST", "/v1/messages", {"key": None, "json": BODY}, 401, "authentication_error"),
        ("POST", "/v1/messages", {"key": "wrong", "json": BODY}, 401, "authentication_error"),
        ("POST", "/v1/messages", {"json": {}, "headers": large}, 413, "request_too_large"),
        ("POST", "/v1/messages", {"data": b"{", "headers": typed}, 400, "invalid_request_error"),
        ("POST", "/v1/messages", {"json": []}, 400, "invalid_request_error"),
        ("POST", "/v1/messages", {"data": b"x"}, 415, "invalid_request_error"),
        ("POST", "/v1/messages/count_tokens", {"json": {"messages": 1}}, 400, "invalid_request_error"),
        ("GET", "/v1/messages", {}, 405, "invalid_request_error"),
        ("POST", "/v1/messages/batches", {"json": {}}, 404, "not_found_error"),
        ("GET", "/v1/models/none", {"headers": version}, 404, "not_found_error"),
        ("GET", "/v1/models", {"key": None, "headers": version}, 401, "authentication_error"),
    ]  # fmt: skip
    for method, path, more, status, kind in asked:
        answer = await running_server.request(method, path, **more)
        assert (answer.status, answer.json["type"], answer.json["error"]["type"]) == (status, "error", kind), path
        assert answer.json["request_id"] == answer.headers["X-Request-Id"] == answer.headers["request-id"]
    refused = await running_server.post("/v1/messages", BODY, key=None)
    assert refused.headers["x-should-retry"] == "false"
    other = await running_server.post("/v1/chat/completions", {}, key=None)
    assert other.json["error"]["code"] == "unauthorized"


@pytest.mark.requirement("anthropic:create", "http:auth")
async def test_a_key_may_come_as_anthropics_clients_send_it(running_server: RunningServer) -> None:
    for key in ({"api_key": running_server.key}, {"auth_token": running_server.key, "api_key": None}):
        async with anthropic.AsyncAnthropic(base_url=running_server.url, max_retries=0, **key) as client:
            message = await client.beta.messages.create(
                model="tour", max_tokens=100, messages=HI, betas=["x-2025-01-01"]
            )
            assert message.stop_reason == "end_turn"
    own = {"x-api-key": running_server.key}
    assert (await running_server.get("/v1/tools", key=None, headers=own)).status == 200


@pytest.mark.requirement("anthropic:claude-code")
async def test_probes_are_answered_without_a_key(running_server: RunningServer) -> None:
    for path in ("/", "/api/hello"):
        assert (await running_server.request("HEAD", path, key=None)).status == 200
    assert (await running_server.get("/", key=None)).status == 401


@pytest.mark.requirement("anthropic:waits")
@pytest.mark.parametrize("servers", [[], [{"type": "url", "name": "toolyard", "url": "x"}]], ids=["lines", "blocks"])
async def test_a_stream_that_waits_for_an_approval_says_so_and_is_kept_alive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, servers: list[Any]
) -> None:
    monkeypatch.setattr(chat_response, "KEEP_ALIVE_S", 0.05)
    async with server(tmp_path, replies(WRITE, "That is all.")) as running:
        body = {"model": "m", "max_tokens": 100, "messages": HI, "stream": True, "mcp_servers": servers}
        headers = {"x-api-key": running.key}
        async with (
            asyncio.timeout(60),
            aiohttp.ClientSession(running.url, headers=headers) as session,
            session.post("/v1/messages?beta=true", json=body) as response,
        ):
            heard = b""
            while not ((match := re.search(rb"approval_[0-9a-f]{32}", heard)) and heard.endswith(b'"ping"}\n\n')):
                heard += await response.content.readany()
            async with session.post(f"/v1/approvals/{match[0].decode()}/allow", json={}) as answered:
                assert answered.status == 200
            heard += await response.read()
    message = read_stream(heard)
    assert "Write (new.txt) waits for approval" in text_of(message)
    assert text_of(message).endswith("That is all.")
    kinds = ["text", "mcp_tool_use", "text", "mcp_tool_result", "text"] if servers else ["text"]
    assert [block["type"] for block in message["content"]] == kinds


@pytest.mark.requirement("http:ways-in")
async def test_a_base_url_of_any_habit_leads_to_the_route(running_server: RunningServer) -> None:
    for base in ("", "/v1", "/v1/", "/anthropic", "/v1/v1", "/api", "/v1/messages"):
        async with anthropic.AsyncAnthropic(
            base_url=f"{running_server.url}{base}", api_key=running_server.key, max_retries=0
        ) as client:
            message = await client.messages.create(model="tour", max_tokens=100, messages=HI)
            assert message.type == "message", base
            assert [model async for model in client.models.list()]
    for base in ("", "/", "/v1/", "/openai/v1", "/v1/v1/", "/api/v1", "/v1/chat/completions"):
        async with openai.AsyncOpenAI(
            base_url=f"{running_server.url}{base}", api_key=running_server.key, max_retries=0
        ) as other:
            answer = await other.chat.completions.create(model="tour", messages=HI)
            assert answer.object == "chat.completion", base
            assert [model async for model in other.models.list()]


@pytest.mark.requirement("http:ways-in")
def test_only_the_ways_to_routes_of_models_change() -> None:
    same = ["/", "/tools", "/docs/messages", "//pw=x/v1/messages", "/pw=x/messages", "/v1/models/a/b", "/v1/messagesx"]
    assert [find_route("POST", path) for path in same] == same
    assert find_route("GET", "/chat/completions") == "/chat/completions"  # a page of the console
    ways = {
        "/messages": "/v1/messages",
        "/v1//messages/": "/v1/messages",
        "/anthropic/v1/messages/count_tokens": "/v1/messages/count_tokens",
        "/v1/v1/models/a/b": "/v1/models/a/b",
        "/openai/v1/responses/resp_1/cancel": "/v1/responses/resp_1/cancel",
        "/responses/": "/v1/responses",
        "/v1/responses/responses": "/v1/responses",
        "/v1/chat/completions/v1/messages": "/v1/messages",
        "/api/v1/chat/completions": "/v1/chat/completions",
        "/images/edits": "/v1/images/edits",
        "/embeddings": "/v1/embeddings",
    }
    assert {path: find_route("POST", path) for path in ways} == ways
    long = "/" * 60_000 + "x"
    assert find_route("POST", long) == long


@pytest.mark.requirement("http:ways-in")
async def test_a_base_url_that_leads_nowhere_is_answered_with_the_right_ones(running_server: RunningServer) -> None:
    told = f"the base URL is {running_server.url}/v1 for clients of OpenAI, and {running_server.url} for those of Anth"
    chat = running_server.make_key(Scope.CHAT)
    for key in (running_server.key, chat):
        for path in ("/proxy/v1/messages", "/openai/deployments/m/chat/completions", "/v2/responses"):
            answer = await running_server.post(path, BODY, key=key)
            assert (answer.status, told in answer.json["error"]["message"]) == (404, True), path
    async with anthropic.AsyncAnthropic(base_url=f"{running_server.url}/proxy", api_key=chat, max_retries=0) as client:
        with pytest.raises(anthropic.NotFoundError, match="the base URL is"):
            await client.messages.create(model="tour", max_tokens=100, messages=HI)


@pytest.mark.requirement("http:ways-in", "s:S-40")
async def test_another_way_needs_the_same_key(running_server: RunningServer) -> None:
    for path in ("/messages", "/v1/v1/chat/completions", "/models", "/anthropic/v1/messages"):
        assert (await running_server.post(path, BODY, key=None)).status == 401
    assert json.loads((await running_server.post("/messages", BODY, key="wrong")).body)["type"] == "error"
