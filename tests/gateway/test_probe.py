"""The test of a provider finds out which protocol it speaks."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from tests.gateway.native_providers import PATHS, PROTOCOLS, SETTINGS, Protocol
from toolyard.gateway.providers import probe as module
from toolyard.gateway.providers.probe import probe
from toolyard.provider_settings import ProviderOptions, ProviderProtocol

pytestmark = pytest.mark.requirement("protocols:probe")
CHAT, RESPONSES, ANTHROPIC = ProviderProtocol


@asynccontextmanager
async def server(
    *paths: str, status: int = 400, lists: int = 200, needs: str = ""
) -> AsyncIterator[tuple[str, list[str]]]:
    """A server that knows these paths: its address, and what it was asked; ``needs``: a header that it insists on."""
    asked: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(f"{request.method} {request.path}")
        if needs and needs not in request.headers:
            return web.json_response({"error": {"message": "no key"}}, status=401)
        if request.method == "GET":
            return web.json_response({"data": [{"id": "m"}]}, status=lists)
        assert await request.read() == b"{}"
        return web.json_response({"error": {"message": "'messages' is missing"}}, status=status)

    app = web.Application()
    for path in paths:
        app.router.add_post(path, answer)
    app.router.add_get("/v1/models", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}", asked
    finally:
        await runner.cleanup()


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("status", [400, 422, 200])
async def test_a_server_of_one_protocol_is_known_by_its_path(protocol: Protocol, status: int) -> None:
    async with server(PATHS[protocol], status=status) as (url, _):
        found = await probe(url, "sk")
        assert (found.error, found.models, found.protocols) == ("", ("m",), (SETTINGS[protocol],))


async def test_of_several_protocols_chat_counts_unless_another_is_set() -> None:
    async with server(*PATHS.values()) as (url, asked):
        assert (await probe(url, None)).protocols == (CHAT,)
        assert asked == ["GET /v1/models", "POST /v1/chat/completions"]
        for protocol in (RESPONSES, ANTHROPIC):
            assert (await probe(url, None, ProviderOptions(protocol=protocol))).protocols == (protocol,)


async def test_a_server_that_takes_keys_as_anthropic_does_is_asked_so() -> None:
    """With the key of the other protocols it refuses everything."""
    async with server(PATHS["messages"], needs="x-api-key") as (url, _):
        found = await probe(url, "sk")
        assert (found.error, found.models, found.protocols) == ("", ("m",), (ANTHROPIC,))


async def test_a_protocol_that_the_server_does_not_speak_is_told() -> None:
    async with server(PATHS["messages"]) as (url, _):
        found = await probe(url, "sk", ProviderOptions(protocol=RESPONSES))
        assert found.error == "it does not speak the protocol 'responses'"
        assert found.hint == "It speaks 'anthropic': set that as its protocol."


@pytest.mark.parametrize("status", [401, 404, 500])
async def test_what_cannot_be_found_out_is_left_open(status: int) -> None:
    paths = [] if status == 404 else PATHS.values()
    async with server(*paths, status=status) as (url, _):
        assert (await probe(url, "sk")).protocols == ()


async def test_the_vendors_own_servers_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    known: Any = module._KNOWN
    assert (known["api.openai.com"][0], known["api.anthropic.com"][0]) == (RESPONSES, ANTHROPIC)
    monkeypatch.setattr(module, "_KNOWN", {"127.0.0.1": known["api.anthropic.com"]})
    async with server(needs="x-api-key") as (url, asked):
        assert (await probe(url, "sk")).protocols == (ANTHROPIC, CHAT)
        assert asked == ["GET /v1/models"]
