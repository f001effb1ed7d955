"""How each provider is asked: headers, query parameters, a proxy, several keys, limits of its own."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.serving import ME, QUICK, chat_body, gateway, request
from tests.gateway.upstream import Script, provider, replies, says, streamed
from toolyard.config import load_config
from toolyard.errors import ConfigError
from toolyard.gateway.chat_request import ClientRequest
from toolyard.gateway.faults import refused_request
from toolyard.gateway.providers.upstream import BUSY_S, MAX_REST_S, REFUSED_S, HttpUpstream, KeyRing
from toolyard.provider_settings import Provider, ProviderOptions

KEY, SECOND, THIRD = "sk-first-0001", "sk-second-0002", "sk-third-0003"
WHOLE = f"""
[upstream_options]
keys = ["{SECOND}"]
idle_seconds = 45

[upstreams.azure]
url = "https://x.openai.azure.com/openai/deployments/gpt"
key = "{KEY}"
keys = ["{SECOND}", "{THIRD}"]
models = ["gpt"]
headers = {{ api-key = "{{key}}", X-Title = "Yard" }}
query = {{ api-version = "2024-10-21" }}
proxy = "http://me:my-password@proxy.example.org:3128"
first_byte_seconds = 30
idle_seconds = 2.5
whole_seconds = 90
tool_rounds = 4

[fallbacks]
gpt = ["azure/gpt-mini", "tour"]
"""


def bearers(keys: list[str]) -> list[str]:
    return [key.removeprefix("Bearer ") for key in keys]


@pytest.mark.requirement("clients:provider-options")
def test_the_options_of_providers_come_from_the_file(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(WHOLE)
    config = load_config(tmp_path, tmp_path)
    options = ProviderOptions(
        keys=(SECOND, THIRD),
        headers={"api-key": "{key}", "X-Title": "Yard"},
        query={"api-version": "2024-10-21"},
        proxy="http://me:my-password@proxy.example.org:3128",
        first_byte_seconds=30,
        idle_seconds=2.5,
        whole_seconds=90,
        tool_rounds=4,
    )
    url = "https://x.openai.azure.com/openai/deployments/gpt"
    assert config.settings.upstreams == {"azure": Provider(url, KEY, ("gpt",), options)}
    assert config.settings.upstream_options == ProviderOptions(keys=(SECOND,), idle_seconds=45)
    assert config.settings.fallbacks == {"gpt": ("azure/gpt-mini", "tour")}
    assert {KEY, SECOND, THIRD, "my-password"} <= set(config.secrets)
    assert not {"{key}", "Yard", "2024-10-21"} & set(config.secrets)
    assert not any(secret in repr(config.settings.upstreams) for secret in (KEY, SECOND, "my-password"))


@pytest.mark.requirement("clients:provider-options", "cli:config:check")
@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ('kays = ["x"]', "'x': unknown field 'kays': did you mean 'keys'?"),
        ("keys = []", "'x': keys: expected a list of 1 to 100 keys"),
        ('keys = ["a\\nb"]', "'x': keys: expected a key as the provider gives it"),
        ('key = ""', "'x': key: expected a key as the provider gives it"),
        ('headers = { "a b" = "c" }', "'x': headers: 'a b' is not a header"),
        ('headers = { a = "c\\r\\nd: e" }', "'x': headers: 'a' is not a header"),
        ('headers = { Host = "c" }', "'x': headers: 'Host' belongs to the connection"),
        ('headers = "a: b"', "'x': headers: expected a table of at most 64 texts"),
        ("query = { a = 1 }", "'x': query: expected a table of at most 64 texts"),
        ('proxy = "socks5://h:1"', "'x': proxy: expected the address of an HTTP proxy"),
        ("idle_seconds = 0", "'x': idle_seconds: expected a number of seconds from 1 to 3600"),
        ("whole_seconds = true", "'x': whole_seconds: expected a number of seconds"),
        ("tool_rounds = 2.5", "'x': tool_rounds: expected a whole number from 1 to 100"),
        ("models = [1]", "'x': models: expected a list of models"),
    ],
)
def test_mistakes_are_told_with_the_provider_and_the_field(tmp_path: Path, field: str, expected: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(f'[upstreams.x]\nurl = "http://x"\n{field}\n')
    with pytest.raises(ConfigError) as raised:
        load_config(tmp_path, tmp_path)
    assert f"{file}, line 1, column 2: upstreams: {expected}" in str(raised.value)


@pytest.mark.requirement("clients:provider-options", "cli:config:check")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("upstream_options = 1", "upstream_options: expected a table"),
        ('[upstream_options]\nurl = "http://x"', "upstream_options: unknown field 'url'"),
        ("fallbacks = 1", "fallbacks: expected a table of models"),
        ("[fallbacks]\na = []", "fallbacks: 'a' needs a list of 1 to 10 models"),
        ('[fallbacks]\na = ["b", "b"]', "fallbacks: 'a' names a model twice"),
        ('[fallbacks]\na = ["a"]', "fallbacks: 'a' names a model twice"),
    ],
)
def test_mistakes_in_the_other_tables_are_told(tmp_path: Path, text: str, expected: str) -> None:
    (tmp_path / "config.toml").write_text(text)
    with pytest.raises(ConfigError, match="line 1") as raised:
        load_config(tmp_path, tmp_path)
    assert expected in str(raised.value)


@pytest.mark.requirement("clients:provider-options")
@pytest.mark.parametrize("stream", [True, False])
async def test_headers_and_query_parameters_go_with_every_request(tmp_path: Path, stream: bool) -> None:
    headers = {"api-key": "{key}", "X-Title": "Yard"}
    options = ProviderOptions(headers=headers, query={"api-version": "2024-10-21", "odd": "a b&c"})
    async with gateway(tmp_path, [says("Hi.", stream=stream)], settings={"upstream_options": options}) as one:
        await (one.stream() if stream else one.complete())
        await one.chat.models()
        assert [head["api-key"] for head in one.upstream.heads] == ["sk-the-key"] * 2
        assert [head["X-Title"] for head in one.upstream.heads] == ["Yard"] * 2
        assert not any("Authorization" in head for head in one.upstream.heads)
        query = "?api-version=2024-10-21&odd=a+b%26c"
        assert one.upstream.addresses == [f"/v1/chat/completions{query}", f"/v1/models{query}"]


@pytest.mark.requirement("clients:provider-options")
async def test_an_authorization_of_the_owner_stands_in_place_of_ours(tmp_path: Path) -> None:
    options = ProviderOptions(headers={"authorization": "Basic something"})
    async with gateway(tmp_path, [says("Hi.")], settings={"upstream_options": options}) as one:
        await one.stream()
        assert one.upstream.heads[0].getall("Authorization") == ["Basic something"]  # type: ignore[attr-defined]


@asynccontextmanager
async def proxy(answer: bytes) -> AsyncIterator[tuple[str, list[str]]]:
    """A proxy that answers everything itself, and the heads of what it was asked."""
    heads: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        heads.append(head)
        writer.write(answer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}", heads
    finally:
        server.close()


@pytest.mark.requirement("clients:provider-options", "s:S-91")
async def test_a_provider_is_asked_through_its_proxy_and_the_login_is_told_to_nobody_else(tmp_path: Path) -> None:
    body = b"".join(streamed("From afar."))
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: {len(body)}\r\n\r\n"
    async with proxy(head.encode() + body) as (place, heads):
        options = ProviderOptions(proxy=f"http://me:my-password@{place}")
        settings = {"upstream_url": "http://models.invalid/v1", "upstream_options": options}
        async with gateway(tmp_path, [], settings=settings) as one:
            assert (await one.stream()).text == "From afar."
        assert heads[0].startswith("POST http://models.invalid/v1/chat/completions HTTP/1.1\r\n")
        assert "Proxy-Authorization: Basic bWU6bXktcGFzc3dvcmQ=" in heads[0]
    async with proxy(b"HTTP/1.1 407 me:my-password is wrong\r\nContent-Length: 0\r\n\r\n") as (place, heads):
        options = ProviderOptions(proxy=f"http://me:my-password@{place}")
        settings = {"upstream_url": "https://models.invalid/v1", "upstream_options": options}
        async with gateway(tmp_path / "tls", [], settings=settings) as one:
            run = await one.chat.complete(ClientRequest(chat_body("Hi", stream=True), caller=ME))
        assert heads[0].startswith("CONNECT models.invalid:443 HTTP/1.1\r\n")
        assert "Bearer" not in heads[0]
        assert (run.status, json.loads(run.body)["error"]["code"]) == (502, "upstream_unreachable")
        assert b"my-password" not in run.body


def refusal(status: int, **headers: str) -> Script:
    return Script([b'{"error": {"message": "no"}}'], status=status, kind="application/json", headers=headers)


@pytest.mark.requirement("clients:several-keys")
async def test_keys_are_used_in_turn(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"upstream_key": KEY, "upstream_options": ProviderOptions(keys=(SECOND, THIRD))}
    async with gateway(tmp_path, replies("Hi."), settings=settings) as one:
        for _ in range(4):
            await one.complete()
        assert bearers(one.upstream.keys) == [KEY, SECOND, THIRD, KEY]


@pytest.mark.requirement("clients:several-keys")
@pytest.mark.parametrize("status", [401, 403, 429])
@pytest.mark.parametrize("stream", [True, False])
async def test_a_key_that_is_not_taken_is_skipped_at_once_and_rests(tmp_path: Path, status: int, stream: bool) -> None:
    settings: dict[str, Any] = {"upstream_key": KEY, "upstream_options": ProviderOptions(keys=(SECOND, THIRD))}
    answers = [refusal(status, **{"Retry-After": "500"}), says("Hi.", stream=stream)]
    async with gateway(tmp_path, answers, settings=settings) as one:
        for _ in range(4):
            if stream:
                assert (await one.stream()).text == "Hi."
            else:
                assert (await one.complete())["choices"][0]["message"]["content"] == "Hi."
        assert bearers(one.upstream.keys) == [KEY, SECOND, SECOND, THIRD, SECOND]


@pytest.mark.requirement("clients:several-keys")
async def test_when_no_key_is_taken_the_client_hears_it_and_each_was_tried_once(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"upstream_key": KEY, "upstream_options": ProviderOptions(keys=(SECOND,))}
    async with gateway(tmp_path, [refusal(401)], settings=settings) as one:
        run = await one.chat.complete(ClientRequest(chat_body("Hi"), caller=ME))
        assert (run.status, bearers(one.upstream.keys)) == (502, [KEY, SECOND])
    async with provider([refusal(429), says("Hi.")]) as other:
        upstream = HttpUpstream("x", other.url, KEY, QUICK, ProviderOptions(keys=(SECOND,)))
        with pytest.raises(Exception, match="answered 429"):
            await upstream.ask(b"{}", stream=True, retry=False)
        assert bearers(other.keys) == [KEY]  # what may not be tried again is not tried with another key
        await upstream.close()


@pytest.mark.requirement("clients:several-keys")
def test_a_key_rests_as_long_as_the_provider_says_within_a_bound() -> None:
    now = 0.0
    ring = KeyRing([KEY, SECOND, KEY], lambda: now)
    assert ring.all() == (KEY, SECOND)
    for after, seconds in (("7", 7), ("999999", MAX_REST_S), ("", BUSY_S), ("soon", BUSY_S)):
        ring.rest(KEY, refused_request("x", 429, b"", after).fault)
        for passed, first in ((seconds - 0.1, {SECOND}), (0.2, {KEY, SECOND})):
            now += passed
            assert {ring.in_order()[0] for _ in range(2)} == first
    ring.rest(KEY, refused_request("x", 401, b"").fault)
    ring.rest(SECOND, refused_request("x", 429, b"", "9").fault)
    assert ring.in_order() == ring.in_order() == [SECOND, KEY]  # none is free: the one that wakes first
    now += REFUSED_S
    assert {ring.in_order()[0] for _ in range(2)} == {KEY, SECOND}


@pytest.mark.requirement("clients:provider-options")
async def test_time_limits_are_those_of_the_provider(tmp_path: Path) -> None:
    options = ProviderOptions(idle_seconds=0.2)  # shorter than the file allows, so that the test is short
    script = Script(streamed("Hi. " * 5)[:3], then="hang")
    async with gateway(tmp_path / "idle", [script], settings={"upstream_options": options}) as one:
        assert "silent for 0.2 s" in (await one.stream()).errors[0]["message"]
    options = ProviderOptions(first_byte_seconds=0.2, whole_seconds=0.3)
    async with gateway(tmp_path / "first", [Script(late_s=300)], settings={"upstream_options": options}) as one:
        for stream, expected in ((True, "nothing within 0.2 s"), (False, "nothing within 0.3 s")):
            run = await one.chat.complete(ClientRequest(chat_body("Hi", stream=stream), caller=ME))
            assert (run.status, expected in run.body.decode()) == (504, True)


@pytest.mark.requirement("clients:provider-options")
async def test_a_turn_has_as_many_tool_rounds_as_its_provider_allows(tmp_path: Path) -> None:
    block = request(text="again")
    async with gateway(tmp_path, replies(block), settings={"upstream_options": ProviderOptions(tool_rounds=3)}) as one:
        answer = await one.complete()
        assert (answer["toolyard"], len(one.ran)) == ({"type": "round_limit"}, 3)
        assert "more than 3 rounds" in answer["choices"][0]["message"]["content"]
