"""Forwarded requests pass the same middleware as all others: keys, scopes, limits, errors."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import openai
import pytest

from tests.gateway.upstream import Call, Provider, Script, provider, replies
from tests.web.conftest import RunningServer, run_server
from toolyard.web.security import request_body
from toolyard.web.security.scope import Scope

pytestmark = pytest.mark.requirement("clients:passthrough")
JSON_PATHS = ("/v1/embeddings", "/v1/completions", "/v1/moderations", "/v1/images/generations", "/v1/audio/speech")
PART = b'--b\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n'
FORM = {"Content-Type": "multipart/form-data; boundary=b"}


def echo(call: Call) -> Script:
    output = {"path": call.path, "key": call.head["Authorization"], "size": len(call.body)}
    return Script([json.dumps(output).encode()], kind="application/json")


@pytest.fixture
async def server_and_provider(tmp_path: Path) -> AsyncIterator[tuple[RunningServer, Provider]]:
    async with asyncio.timeout(120), provider(replies("Hi.")) as upstream:
        upstream.answer = echo
        text = f'upstream_url = "{upstream.url}"\nupstream_key = "sk-canary-91f"\n'
        async with run_server(tmp_path, settings=text) as running:
            yield running, upstream


async def test_a_key_for_chats_may_use_it_and_others_may_not(
    server_and_provider: tuple[RunningServer, Provider],
) -> None:
    running, upstream = server_and_provider
    chat, tools = running.make_key(Scope.CHAT), running.make_key(Scope.TOOLS)
    for path in JSON_PATHS:
        assert (await running.post(path, {"model": "m"}, key=chat)).json["path"] == path
        assert (await running.post(path, {"model": "m"}, key=tools)).status == 403
        assert (await running.post(path, {"model": "m"}, key=None)).status == 401
        assert (await running.post(path, {"model": "m"}, key="sk-canary-91f")).status == 401
    assert {call.head["Authorization"] for call in upstream.calls} == {"Bearer sk-canary-91f"}
    assert len(upstream.calls) == len(JSON_PATHS)


async def test_bodies_have_a_kind_and_a_size(
    server_and_provider: tuple[RunningServer, Provider], monkeypatch: pytest.MonkeyPatch
) -> None:
    running, upstream = server_and_provider
    monkeypatch.setattr(request_body, "MAX_CHAT", 200_000)
    form = PART % (b"model", b"m") + PART % (b"file", b"x" * 300_000) + b"--b--\r\n"
    large = {"model": "m", "input": "x" * 300_000}

    async def pieces() -> AsyncIterator[bytes]:
        for at in range(0, len(form), 50_000):
            yield form[at : at + 50_000]

    refused = [
        await running.post("/v1/embeddings", large),
        await running.post("/v1/audio/transcriptions", data=form, headers=FORM),
        await running.post("/v1/audio/transcriptions", data=pieces(), headers=FORM),  # it does not say how large it is
    ]
    assert [answer.status for answer in refused] == [413] * 3
    assert all("larger than 200000 bytes" in answer.json["error"]["message"] for answer in refused)
    wrong = [
        await running.post("/v1/embeddings", data=form[:1000], headers=FORM),
        await running.post("/v1/audio/transcriptions", data=b"x", headers={"Content-Type": "audio/mpeg"}),
    ]
    assert [answer.status for answer in wrong] == [415, 415]
    unnamed = await running.post("/v1/audio/x", data=b"x", headers={"Content-Type": "multipart/form-data"})
    assert (unnamed.status, "boundary" in unnamed.json["error"]["message"]) == (400, True)
    assert upstream.calls == []
    fits = await running.post("/v1/audio/transcriptions", data=form[:300] + b"\r\n--b--\r\n", headers=FORM)
    assert fits.status == 200


async def test_what_a_provider_refuses_has_openais_shape_and_no_secret(
    server_and_provider: tuple[RunningServer, Provider],
) -> None:
    running, upstream = server_and_provider
    upstream.answer = lambda _: Script([b"<p>not sk-canary-91f</p>"], status=404, kind="text/html")
    answer = await running.post("/v1/embeddings", {"model": "m"})
    assert (answer.status, answer.json["error"]["code"]) == (404, "upstream_404")
    assert "not [masked]" in answer.json["error"]["message"]
    assert answer.headers["X-Request-Id"]


async def test_new_providers_answer_from_the_next_request_on_and_a_running_one_stays(
    server_and_provider: tuple[RunningServer, Provider],
) -> None:
    running, upstream = server_and_provider
    go = asyncio.Event()
    upstream.answer = lambda _: Script([b"first", b"last"], kind="audio/mpeg", waits=go)
    headers = {"Authorization": f"Bearer {running.key}"}
    async with provider(replies("Hi.")) as second, aiohttp.ClientSession(running.url, headers=headers) as session:
        second.answer = echo
        async with session.post("/v1/audio/speech", json={"model": "m"}) as response:
            values = {"upstream_url": second.url, "upstream_key": "sk-canary-91f"}
            assert (await running.request("PATCH", "/v1/settings", json={"values": values})).status == 200
            assert (await running.post("/v1/embeddings", {"model": "m"})).json["path"] == "/v1/embeddings"
            assert (len(upstream.calls), len(second.calls)) == (1, 1)
            go.set()
            assert await response.read() == b"firstlast"


@pytest.mark.requirement("clients:models")
async def test_a_model_that_nobody_has_is_told_in_openais_shape(
    server_and_provider: tuple[RunningServer, Provider],
) -> None:
    running, _ = server_and_provider
    async with openai.AsyncOpenAI(base_url=f"{running.url}/v1", api_key=running.key, max_retries=0) as client:
        assert (await client.models.retrieve("scripted")).id == "scripted"
        with pytest.raises(openai.NotFoundError, match="there is no model 'org/nobody'") as result:
            await client.models.retrieve("org/nobody")
        assert result.value.code == "model_not_found"
