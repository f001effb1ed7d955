"""One turn, whatever its provider speaks: tools, reasoning, limits, errors, retries, keys, fallbacks and lists."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.native_providers import (
    PATHS,
    PROTOCOLS,
    SETTINGS,
    Protocol,
    Reply,
    ToolUse,
    events,
    scripted,
    to_script,
    using,
)
from tests.gateway.serving import Gateway, gateway, request
from tests.gateway.upstream import Script, provider
from toolyard.config import load_config
from toolyard.errors import ConfigError
from toolyard.gateway.chat_request import ModelRequest
from toolyard.gateway.providers.answer import Limits
from toolyard.gateway.providers.endpoint import Endpoint, add_client_headers, base_address
from toolyard.gateway.providers.forwarded_answer import Outgoing
from toolyard.gateway.providers.upstream import HttpUpstream
from toolyard.gateway.providers.upstreams import Fallback, Provider, Upstreams
from toolyard.gateway.turns.display import Show
from toolyard.provider_settings import Provider as Setting
from toolyard.provider_settings import ProviderOptions, ProviderProtocol

pytestmark = pytest.mark.requirement("protocols:provider")
each = pytest.mark.parametrize("protocol", PROTOCOLS)
both = pytest.mark.parametrize("protocol", PROTOCOLS[1:])
either = pytest.mark.parametrize("stream", [True, False])
SAY = ToolUse("Say", {"text": "a"})
SIGNED = "c2lnbmVk/+=="


async def ask(one: Gateway, *, stream: bool, **more: Any) -> tuple[str, str]:
    """The text of an answer, and its finish reason."""
    if stream:
        heard = await one.stream(**more)
        assert (heard.done, heard.errors) == (1, [])
        return heard.text, heard.finishes[0]
    choice = (await one.complete(**more))["choices"][0]
    return choice["message"]["content"], choice["finish_reason"]


def to_text(body: Any) -> str:
    """All of a request, as one text."""
    return json.dumps(body, ensure_ascii=False)


@each
@either
async def test_a_plain_answer_is_the_same_in_every_protocol(tmp_path: Path, protocol: Protocol, stream: bool) -> None:
    async with gateway(tmp_path, scripted(protocol, Reply(text="Hello, 世界.")), settings=using(protocol)) as one:
        assert await ask(one, stream=stream) == ("Hello, 世界.", "stop")
        assert one.upstream.addresses == [PATHS[protocol]]
        head = one.upstream.heads[0]
        key = {"messages": head.get("x-api-key")}.get(protocol, one.upstream.keys[0].removeprefix("Bearer "))
        assert (key, head.get("anthropic-version")) == ("sk-the-key", "2023-06-01" if protocol == "messages" else None)


async def test_an_answer_without_a_time_has_that_of_its_server(tmp_path: Path) -> None:
    async with gateway(tmp_path, scripted("messages", Reply(text="x")), settings=using("messages")) as one:
        assert (await one.complete())["created"] > 1_700_000_000


@each
@either
async def test_tools_run_and_their_results_reach_the_model(tmp_path: Path, protocol: Protocol, stream: bool) -> None:
    asked = Reply(text="I look.", calls=(SAY, ToolUse("Say", {"text": "b"}, "call_2")))
    async with gateway(tmp_path, scripted(protocol, asked, Reply(text="Done.")), settings=using(protocol)) as one:
        text, finish = await ask(one, stream=stream)
        assert (text.endswith("Done."), finish) == (True, "stop")
        assert sorted(str(call.arguments["text"]) for call in one.ran) == ["a", "b"]
        sent = one.upstream.bodies[1]
        if protocol == "messages":
            assert [block["type"] for block in sent["messages"][1]["content"]] == ["text", "tool_use", "tool_use"]
            assert [one["tool_use_id"] for one in sent["messages"][2]["content"]] == ["call_1", "call_2"]
        elif protocol == "responses":
            kinds = [(item["type"], item.get("call_id")) for item in sent["input"][-4:]]
            assert kinds == [
                (kind, id_) for kind in ("function_call", "function_call_output") for id_ in ("call_1", "call_2")
            ]


@both
@either
async def test_reasoning_goes_back_to_its_model_byte_for_byte(tmp_path: Path, protocol: Protocol, stream: bool) -> None:
    asked = Reply(reasoning="I see\nit.", signature=SIGNED, redacted="cmVk", calls=(SAY,))
    async with gateway(tmp_path, scripted(protocol, asked, Reply(text="Done.")), settings=using(protocol)) as one:
        await ask(one, stream=stream)
        if protocol == "messages":
            assert one.upstream.bodies[1]["messages"][1]["content"][:2] == [
                {"type": "redacted_thinking", "data": "cmVk"},
                {"type": "thinking", "thinking": "I see\nit.", "signature": SIGNED},
            ]
        else:
            reasoned = [item for item in one.upstream.bodies[1]["input"] if item["type"] == "reasoning"]
            summary = [{"type": "summary_text", "text": "I see\nit."}]
            assert reasoned == [
                {"type": "reasoning", "id": "rs_0", "summary": [], "encrypted_content": "cmVk"},
                {"type": "reasoning", "id": "rs_1", "summary": summary, "encrypted_content": SIGNED},
            ]


@each
async def test_requests_in_the_text_of_a_model_run_too(tmp_path: Path, protocol: Protocol) -> None:
    asked = Reply(text=request(text="a"), reasoning="I ask.")
    async with gateway(tmp_path, scripted(protocol, asked, Reply(text="Done.")), settings=using(protocol)) as one:
        heard = await one.stream()
        assert (len(one.ran), heard.text.endswith("Done.")) == (1, True)


@each
async def test_the_clients_own_tools_are_handed_over(tmp_path: Path, protocol: Protocol) -> None:
    tool = {"type": "function", "function": {"name": "theirs.look", "parameters": {"type": "object"}}}
    native = "theirs.look" if protocol == "chat" else "theirs_look"
    reply = Reply(calls=(ToolUse(native, {"x": 1}, "call_9"),))
    async with gateway(tmp_path, scripted(protocol, reply), settings=using(protocol)) as one:
        answer = await one.complete(tools=[tool])
        (call,) = answer["choices"][0]["message"]["tool_calls"]
        assert (call["id"], call["function"]["name"]) == ("call_9", "theirs.look")
        assert (json.loads(call["function"]["arguments"]), one.ran) == ({"x": 1}, [])


@each
async def test_usage_is_that_of_all_rounds(tmp_path: Path, protocol: Protocol) -> None:
    replies = (Reply(calls=(SAY,), cached=4), Reply(text="Done.", cached=5))
    for stream in (True, False):
        answers = scripted(protocol, *replies)
        async with gateway(tmp_path / str(stream), answers, settings=using(protocol)) as one:
            if stream:
                heard = await one.stream(stream_options={"include_usage": True})
                usage = heard.events[-1]["usage"]
            else:
                usage = (await one.complete())["usage"]
        assert (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]) == (22, 14, 36)
        assert usage["prompt_tokens_details"]["cached_tokens"] == 9


@both
@pytest.mark.requirement("protocols:cut")
async def test_a_stream_that_is_cut_anywhere_runs_nothing_and_is_asked_again(
    tmp_path: Path, protocol: Protocol
) -> None:
    """Nothing of a reply with one call is passed on, so that the round is asked again, up to twice."""
    asked = Reply(calls=(SAY,))
    count = len(list(events(asked, protocol)))
    for cut_after in range(0, count, 2):
        script = to_script(Reply(calls=(SAY,), cut_after=cut_after), protocol)
        scripts = [script, script, to_script(asked, protocol), to_script(Reply(text="Done."), protocol)]
        async with gateway(tmp_path / str(cut_after), scripts, settings=using(protocol)) as one:
            heard = await one.stream()
            assert (len(one.ran), heard.text.endswith("Done."), heard.errors) == (1, True, [])
            assert len(one.upstream.bodies) == 4


@each
@pytest.mark.requirement("protocols:cut")
async def test_an_answer_that_is_cut_after_text_fails_as_broken_off(tmp_path: Path, protocol: Protocol) -> None:
    whole = list(events(Reply(text="Hello, you there."), protocol))
    pieces = whole[: next(at for at, event in enumerate(whole) if b"there" in event or b"u the" in event)]
    async with gateway(tmp_path, [Script(pieces, then="cut")], settings=using(protocol)) as one:
        heard = await one.stream()
        assert [error["code"] for error in heard.errors] == ["upstream_cut_off"]
        assert heard.finishes == []


@each
@pytest.mark.parametrize(("cut_for", "finish"), [("length", "length"), ("content_filter", "content_filter")])
async def test_an_answer_that_was_not_allowed_to_go_on_says_so(
    tmp_path: Path, protocol: Protocol, cut_for: Any, finish: str
) -> None:
    async with gateway(
        tmp_path, scripted(protocol, Reply(text="Half", cut_for=cut_for)), settings=using(protocol)
    ) as one:
        assert await ask(one, stream=True) == ("Half", finish)
        assert await ask(one, stream=False) == ("Half", finish)


async def fault_of(one: Gateway, *, stream: bool, **more: Any) -> Any:
    """The error of an answer."""
    return (await one.stream(**more)).errors[0] if stream else (await one.complete(**more))["error"]


@each
@either
async def test_a_refused_request_has_the_providers_words(tmp_path: Path, protocol: Protocol, stream: bool) -> None:
    kind = "invalid_request_error" if protocol == "messages" else ""
    refused = Reply(status=400, error="prompt is too long: 9 tokens > 8 maximum", error_type=kind)
    async with gateway(tmp_path, scripted(protocol, refused), settings=using(protocol)) as one:
        error = await fault_of(one, stream=stream)
        assert (error["code"], "too long" in error["message"]) == ("context_length_exceeded", True)


@both
async def test_an_overloaded_provider_is_asked_again(tmp_path: Path, protocol: Protocol) -> None:
    """Before its answer by its status; in a stream, while nothing of it was passed on, by its error."""
    overloaded = {"chat": "", "responses": "server_error", "messages": "overloaded_error"}[protocol]
    script = scripted(
        protocol,
        Reply(status=529, error="Overloaded", error_type=overloaded),
        Reply(error="Overloaded", error_type=overloaded),
        Reply(text="Hello."),
    )
    async with gateway(tmp_path, script, settings=using(protocol)) as one:
        assert await ask(one, stream=True) == ("Hello.", "stop")
        assert len(one.upstream.bodies) == 3


@each
async def test_an_error_in_a_stream_ends_the_answer_with_the_providers_words(
    tmp_path: Path, protocol: Protocol
) -> None:
    async with gateway(
        tmp_path, scripted(protocol, Reply(text="Half", error="Bad.", error_type="odd")), settings=using(protocol)
    ) as one:
        heard = await one.stream()
        (error,) = heard.errors
        assert (heard.text, error["message"]) == ("Half", "Bad.")
        assert (await fault_of(one, stream=False))["message"] == "Bad."


@both
async def test_json_in_place_of_a_stream_is_read(tmp_path: Path, protocol: Protocol) -> None:
    script = to_script(Reply(text="Hello.", reasoning="Hm."), protocol, stream=False)
    async with gateway(tmp_path, [script], settings=using(protocol)) as one:
        assert await ask(one, stream=True) == ("Hello.", "stop")


@both
@either
async def test_an_answer_in_another_protocol_is_told(tmp_path: Path, protocol: Protocol, stream: bool) -> None:
    script = to_script(Reply(text="Hello."), "messages" if protocol == "responses" else "responses", stream=stream)
    async with gateway(tmp_path, [script], settings=using(protocol)) as one:
        error = await fault_of(one, stream=stream)
        assert ("no chat completion" in error["message"], error["code"]) == (True, "upstream_invalid_answer")


@each
async def test_keys_are_used_in_turn_in_every_protocol(tmp_path: Path, protocol: Protocol) -> None:
    settings = {**using(protocol), "upstream_options": ProviderOptions(keys=("sk-second",))}
    script = scripted(protocol, Reply(status=401, error="bad key"), Reply(text="Hello."))
    async with gateway(tmp_path, script, settings=settings) as one:
        assert await ask(one, stream=True) == ("Hello.", "stop")
        heads = one.upstream.heads
        sent = [head.get("x-api-key") or head["Authorization"].removeprefix("Bearer ") for head in heads]
        assert sent == ["sk-the-key", "sk-second"]


@pytest.mark.parametrize("first", PROTOCOLS)
@pytest.mark.parametrize("second", PROTOCOLS)
async def test_fallbacks_mix_protocols_in_the_middle_of_a_turn(
    tmp_path: Path, first: Protocol, second: Protocol
) -> None:
    """The second gets the results of the tools that have run, without the reasoning of the first."""
    script = scripted(first, Reply(reasoning="Hm.", calls=(SAY,)), Reply(status=500, error="down"))
    async with provider(scripted(second, Reply(text="From the second."))) as other:
        named = Setting(other.url, "sk-2", (), ProviderOptions(protocol=SETTINGS[second]))
        settings = {**using(first), "upstreams": {"other": named}, "fallbacks": {"scripted": ("other/b",)}}
        async with gateway(tmp_path, script, settings=settings) as one:
            heard = await one.stream()
            assert (len(one.ran), heard.text.endswith("From the second."), heard.errors) == (1, True, [])
            (sent,) = other.bodies
            assert (sent["model"], to_text(sent).count("call_1"), "Hm." in to_text(sent)) == ("b", 2, False)


@both
async def test_models_are_listed_in_every_protocol(tmp_path: Path, protocol: Protocol) -> None:
    listed: Any = {"object": "list", "data": [{"id": "gpt", "object": "model", "created": 1, "owned_by": "x"}]}
    if protocol == "messages":
        claude = {"type": "model", "id": "claude", "display_name": "Claude", "created_at": "2026-05-28T00:00:00Z"}
        listed = {"data": [claude], "has_more": False, "first_id": "claude", "last_id": "claude"}
    async with gateway(tmp_path, scripted(protocol, Reply(text="x")), settings=using(protocol)) as one:
        one.upstream.models = Script([json.dumps(listed).encode()], kind="application/json")
        model = (await one.chat.upstreams.models())[0]
        assert (model["id"], model["object"]) == (listed["data"][0]["id"], "model")
        assert model["created"] == (1779926400 if protocol == "messages" else 1)
        expected = "/v1/models?limit=1000" if protocol == "messages" else "/v1/models"
        assert one.upstream.addresses == [expected]


async def test_a_model_that_takes_less_is_asked_once_more_and_remembered(tmp_path: Path) -> None:
    refused = "adaptive thinking is not supported on this model"
    script = scripted(
        "messages", Reply(status=400, error=refused, error_type="invalid_request_error"), Reply(text="Hello.")
    )
    async with gateway(tmp_path, script, settings=using("messages")) as one:
        for _ in range(2):
            assert await ask(one, stream=True, reasoning_effort="low") == ("Hello.", "stop")
        kinds = [body["thinking"]["type"] for body in one.upstream.bodies]
        assert kinds == ["adaptive", "enabled", "enabled"]


# --- a request in the provider's own protocol


@both
async def test_a_native_request_goes_on_unchanged(protocol: Protocol) -> None:
    async with provider(scripted(protocol, Reply(text="Hello."))) as upstream:
        http = HttpUpstream("theirs", upstream.url, "sk-1", options=ProviderOptions(protocol=SETTINGS[protocol]))
        upstreams = Upstreams(http, {}, http)
        assert await upstreams.protocol("m") is SETTINGS[protocol]
        raw = b'{"model": "m",  "stream": true, "anything": [1]}'
        more = {"anthropic-beta": "one", "Authorization": "Bearer theirs", "X-Api-Key": "theirs"}
        path = PATHS[protocol].removeprefix("/v1")

        def outgoing(_: str) -> Outgoing:
            return Outgoing(path=path, body=raw, content_type="application/json", more=more)

        forwarded = await upstreams.forward("m", outgoing, SETTINGS[protocol])
        try:
            data = b"".join([piece async for piece in forwarded.pieces()])
        finally:
            forwarded.close()
            await http.close()
        assert data == b"".join(events(Reply(text="Hello."), protocol))
        assert (upstream.raw, upstream.heads[0]["anthropic-beta"]) == ([raw], "one")
        sent = upstream.heads[0]["x-api-key" if protocol == "messages" else "Authorization"]
        assert sent.removeprefix("Bearer ") == "sk-1"


async def test_a_native_request_goes_to_a_fallback_of_the_same_protocol() -> None:
    async with (
        provider(scripted("messages", Reply(status=529, error="down"))) as one,
        provider(scripted("chat", Reply(text="x"))) as two,
        provider(scripted("messages", Reply(text="Hello."))) as three,
    ):
        named = {
            name: HttpUpstream(name, each.url, None, options=ProviderOptions(protocol=SETTINGS[protocol]))
            for name, each, protocol in (("one", one, "messages"), ("two", two, "chat"), ("three", three, "messages"))
        }
        providers = {name: Provider(upstream) for name, upstream in named.items()}
        upstreams = Upstreams(named["one"], providers, None, {"one/m": ("two/m", "three/m")})

        def outgoing(name: str) -> Outgoing:
            body = json.dumps({"model": name, "stream": True}).encode()
            return Outgoing(path="/messages", body=body, content_type="application/json")

        forwarded = await upstreams.forward("one/m", outgoing, ProviderProtocol.ANTHROPIC)
        forwarded.close()
        await upstreams.close()
        assert (len(one.bodies), two.bodies, three.bodies) == (3, [], [{"model": "m", "stream": True}])


# --- settings, addresses and headers


def test_protocols_come_from_the_file_and_mistakes_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "config.toml"
    file.write_text('[upstreams.far]\nurl = "https://x.org"\nprotocol = "anthropic"\n')
    monkeypatch.setenv("TOOLYARD_UPSTREAM_PROTOCOL", "responses")
    settings = load_config(tmp_path, tmp_path).settings
    assert settings.upstreams["far"].options.protocol is ProviderProtocol.ANTHROPIC
    assert settings.upstreams["far"].to_json()["protocol"] == "anthropic"
    assert settings.default_provider_options.protocol is ProviderProtocol.RESPONSES
    for text, told in (
        ('[upstreams.far]\nurl = "https://x.org"\nprotocol = "messages"', "chat, responses, anthropic"),
        ('[upstream_options]\nprotocol = "anthropic"', "upstream_protocol"),
        ('upstream_protocol = "x"', "chat, responses, anthropic"),
    ):
        file.write_text(text)
        monkeypatch.delenv("TOOLYARD_UPSTREAM_PROTOCOL", raising=False)
        with pytest.raises(ConfigError, match=told):
            load_config(tmp_path, tmp_path)


@pytest.mark.parametrize(
    ("url", "base"),
    [
        ("https://api.anthropic.com", "https://api.anthropic.com/v1"),
        ("https://api.anthropic.com/v1/", "https://api.anthropic.com/v1"),
        ("https://api.anthropic.com/v1/messages", "https://api.anthropic.com/v1"),
        ("https://api.deepseek.com/anthropic", "https://api.deepseek.com/anthropic/v1"),
        ("https://gateway.example.org/v1/account/anthropic", "https://gateway.example.org/v1/account/anthropic/v1"),
    ],
)
def test_the_address_of_anthropic_has_its_version_at_the_end(url: str, base: str) -> None:
    assert base_address(url, ProviderProtocol.ANTHROPIC) == base


def test_the_address_of_responses_may_be_that_of_its_path() -> None:
    url = "https://api.openai.com/v1/responses"
    assert base_address(url, ProviderProtocol.RESPONSES) == "https://api.openai.com/v1"


def test_the_owners_headers_win_over_those_of_the_protocol() -> None:
    def headers(**own: str) -> dict[str, str]:
        named = {name.replace("_", "-"): value for name, value in own.items()}
        return Endpoint("https://x", ProviderOptions(protocol=ProviderProtocol.ANTHROPIC, headers=named)).headers("sk")

    usual = {"Accept-Encoding": "identity"}
    version = {"anthropic-version": "2023-06-01"}
    assert headers() == {**usual, **version, "x-api-key": "sk"}
    assert headers(Authorization="Bearer {key}") == {**usual, **version, "Authorization": "Bearer sk"}
    assert headers(X_Api_Key="own", Anthropic_Version="2") == {**usual, "X-Api-Key": "own", "Anthropic-Version": "2"}


def test_betas_of_the_owner_and_of_a_client_are_sent_together() -> None:
    made = add_client_headers({"Anthropic-Beta": "a,b", "X": "1"}, {"anthropic-beta": "b, c", "x": "2", "y": "3"})
    assert made == {"Anthropic-Beta": "a,b,c", "X": "1", "y": "3"}


async def test_a_chat_provider_gets_nothing_of_another_protocol(tmp_path: Path) -> None:
    part = {"type": "native", "protocol": "responses", "item": {"type": "web_search_call"}}
    details = [{"type": "reasoning.encrypted", "data": "x", "format": "openai-responses-v1"}]
    asked = {"role": "assistant", "content": [{"type": "text", "text": "a"}, part], "reasoning_details": details}
    messages = [{"role": "user", "content": "Hi"}, asked, {"role": "user", "content": "And?"}]
    tools = [{"type": "native", "protocol": "responses", "tool": {"type": "web_search"}}]
    native = {"protocol": "responses", "fields": {"truncation": "auto"}}
    body: Any = {"model": "m", "messages": messages, "tools": tools, "tool_choice": "auto", "native": native}
    async with provider(scripted("chat", Reply(text="x"))) as upstream:
        http = HttpUpstream("theirs", upstream.url, None)
        speaks_it = ProviderOptions(protocol=ProviderProtocol.RESPONSES)
        away = HttpUpstream("away", "http://127.0.0.1:9", None, Limits(tries=1), speaks_it)
        either = Fallback([(away, "m"), (http, "m")])
        wishes: list[tuple[Any, Any]] = [(http, body), (http, {"messages": [asked]}), (either, body)]
        for one, sent in wishes:
            wish = ModelRequest(caller="key:a", body=sent, show=Show.SUMMARY)
            data = wish.encode(sent, takes_native=one.takes_native).join()
            (await one.ask(data, stream=False, retry=True)).close()
        await http.close()
        await away.close()
        text = {"role": "assistant", "content": "a"}
        dropped = {"model": "m", "messages": [messages[0], text, messages[2]]}
        assert upstream.bodies == [dropped, {"messages": [asked]}, dropped]  # the second client itself speaks chat
