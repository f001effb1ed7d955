"""Clients of Anthropic's Messages with a provider that speaks it too: nothing is lost, and bytes pass unchanged."""

import json
from pathlib import Path
from typing import Any

import anthropic
import pytest

from tests.gateway.messages import text_of
from tests.gateway.native_providers import PROTOCOLS, Protocol, Reply, ToolUse, scripted, to_script, using
from tests.gateway.serving import Gateway, gateway
from tests.gateway.test_messages_served import HI, LINE, SERVER, STREAMED, WEATHER, ask, official, post
from tests.gateway.upstream import Call, Script

SAY = ToolUse("Say", {"text": "hello"})
SIGNED = "c2lnbmVk/+=="
BILLING = {"type": "text", "text": "x-anthropic-billing-header: cch=1;"}
CACHED = {"cache_control": {"type": "ephemeral"}}
each = pytest.mark.parametrize("protocol", PROTOCOLS)


@pytest.mark.requirement("anthropic:create", "protocols:provider")
@each
@STREAMED
async def test_a_tool_runs_once_whatever_the_provider_speaks(tmp_path: Path, protocol: Protocol, stream: bool) -> None:
    scripts = scripted(protocol, Reply(text="I look.", calls=(SAY,)), Reply(text="Done."))
    async with gateway(tmp_path, scripts, settings=using(protocol), served=True) as one:
        message = await ask(one, stream=stream)
        assert text_of(message) == f"I look.\n\n{LINE}\n\nDone."
        assert message["usage"]["output_tokens"] == 14
        assert len(one.ran) == 1


@pytest.mark.requirement("anthropic:tools", "protocols:provider")
@each
@STREAMED
async def test_parallel_calls_of_the_client_come_whole(tmp_path: Path, protocol: Protocol, stream: bool) -> None:
    reply = Reply(calls=(ToolUse("weather", {"at": "a"}, "t1"), ToolUse("weather", {"at": "b"}, "t2")))
    async with gateway(tmp_path, scripted(protocol, reply), settings=using(protocol), served=True) as one:
        message = await ask(one, stream=stream, tools=[WEATHER])
    used = [(block["id"], block["input"]) for block in message["content"] if block["type"] == "tool_use"]
    assert used == [("t1", {"at": "a"}), ("t2", {"at": "b"})]
    assert message["stop_reason"] == "tool_use"


@pytest.mark.requirement("anthropic:thinking")
@STREAMED
async def test_thinking_goes_through_byte_for_byte_both_ways(tmp_path: Path, stream: bool) -> None:
    reply = Reply(text="Yes.", reasoning="Hm.", signature=SIGNED, redacted="cmVk")
    async with gateway(tmp_path, scripted("messages", reply), settings=using("messages"), served=True) as one:
        message = await ask(one, stream=stream, thinking={"type": "enabled", "budget_tokens": 1024})
        thought = [block for block in message["content"] if block["type"] != "text"]
        assert thought == [
            {"type": "redacted_thinking", "data": "cmVk"},
            {"type": "thinking", "thinking": "Hm.", "signature": SIGNED},
        ]
        again = [*HI, {"role": "assistant", "content": message["content"]}, *HI]
        await ask(one, stream=stream, messages=again)
        assert one.upstream.bodies[1]["messages"][1]["content"] == message["content"]


@pytest.mark.requirement("anthropic:stops", "anthropic:tools")
@STREAMED
async def test_what_a_provider_of_the_same_protocol_says_of_its_answer_reaches_the_client(
    tmp_path: Path, stream: bool
) -> None:
    """As Claude Code's auto mode needs it: what its provider has found out about each call of the client."""
    judged = {"type": "available", "tool_uses": {"t1": {"type": "evaluated", "outcome": "not_flagged"}}}
    more = {
        "safeguard_results": [{"type": "dangerous_tool_use", "status": judged}],
        "container": {"id": "c1", "expires_at": "2026-11-20T00:00:00Z"},
        "context_management": {"applied_edits": []},
    }
    spent = {"server_tool_use": {"web_search_requests": 1, "web_fetch_requests": 0}}
    caller = {"caller": {"type": "direct"}}
    replies = [
        Reply(calls=(SAY,), spent=spent),
        Reply(calls=(ToolUse("weather", {"at": "a"}, "t1", caller),), more=more, spent=spent),
    ]
    async with gateway(tmp_path, scripted("messages", *replies), settings=using("messages"), served=True) as one:
        safeguards = [{"type": "dangerous_tool_use"}]
        message = await ask(one, stream=stream, tools=[WEATHER], model="m+tools", safeguards=safeguards)
        assert one.upstream.bodies[1]["safeguards"] == safeguards
        assert {key: message[key] for key in more} == more
        assert message["content"][-1]["caller"] == caller["caller"]
        assert message["usage"]["server_tool_use"] == {"web_search_requests": 2, "web_fetch_requests": 0}
        heard = await one.stream()
        assert "safeguard_results" not in json.dumps(heard.events), "a client of chat does not get it"
        assert "server_tool_use" not in json.dumps(heard.events)


@pytest.mark.requirement("anthropic:thinking", "anthropic:fed-back")
@pytest.mark.parametrize("words", ["", "Now the weather."])
@pytest.mark.parametrize("servers", [[], [SERVER]], ids=["lines", "blocks"])
async def test_each_thought_comes_back_once_and_before_the_call_that_it_led_to(
    tmp_path: Path, servers: list[Any], words: str
) -> None:
    """A turn with a tool of ours, and then one of the client: it sends all thoughts back in one message."""
    call = ToolUse("weather", {"at": "a"}, "t1")
    replies = [
        Reply(reasoning="First.", signature="b25l", calls=(SAY,)),
        Reply(reasoning="Second.", signature="dHdv", text=words, calls=(call,)),
        Reply(text="Done."),
    ]
    async with gateway(tmp_path, scripted("messages", *replies), settings=using("messages"), served=True) as one:
        more: dict[str, Any] = {"tools": [WEATHER], "model": "m+tools", "mcp_servers": servers}
        message = await ask(one, stream=True, **more)
        result = [{"type": "tool_result", "tool_use_id": "t1", "content": "rain"}]
        said = [{"role": "assistant", "content": message["content"]}, {"role": "user", "content": result}]
        await ask(one, stream=True, messages=[*HI, *said], **more)
        sent = one.upstream.bodies[2]["messages"]
    first, second = sent[1]["content"], sent[3]["content"]
    assert [(block["type"], block.get("signature")) for block in first] == [("thinking", "b25l"), ("tool_use", None)]
    assert second == [
        {"type": "thinking", "thinking": "Second.", "signature": "dHdv"},
        *([{"type": "text", "text": words}] if words else []),
        {"type": "tool_use", "id": "t1", "name": "weather", "input": {"at": "a"}},
    ]
    assert [block["type"] for block in sent[2]["content"]] == ["tool_result"]
    assert sent[4]["content"] == result


@pytest.mark.requirement("anthropic:request")
async def test_a_provider_of_the_same_protocol_gets_all_that_chat_has_no_word_for(tmp_path: Path) -> None:
    fields = {
        "thinking": {"type": "adaptive"},
        "output_config": {"effort": "max"},
        "context_management": {"edits": [{"type": "clear_thinking_20251015"}]},
        "metadata": {"user_id": "u"},
        "top_k": 5,
    }
    system = [BILLING, {"type": "text", "text": "Be brief.", **CACHED}]
    bash = {"type": "bash_20250124", "name": "bash"}
    searched = [
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}},
        {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []},
        {"type": "text", "text": "Found."},
    ]
    messages = [*HI, {"role": "assistant", "content": searched}, {"role": "user", "content": "Go on."}]
    async with gateway(
        tmp_path, scripted("messages", Reply(text="Yes.")), settings=using("messages"), served=True
    ) as one:
        beta = {"anthropic-beta": "context-management-2025-06-27"}
        await ask(
            one, stream=True, headers=beta, system=system, tools=[bash], messages=messages, model="m+tools", **fields
        )
        sent, head = one.upstream.bodies[0], one.upstream.heads[0]
    assert {key: sent[key] for key in fields} == fields
    assert sent["system"] == system
    assert sent["messages"][1]["content"] == searched
    assert sent["tools"][0] == bash
    assert "Say" in [tool["name"] for tool in sent["tools"]]
    assert head["anthropic-beta"] == beta["anthropic-beta"]


@pytest.mark.requirement("anthropic:request")
async def test_a_provider_that_speaks_chat_gets_plain_chat(tmp_path: Path) -> None:
    system = [BILLING, {"type": "text", "text": "Be brief.", **CACHED}, {"type": "text", "text": "Be kind."}]
    said = [
        {"type": "thinking", "thinking": "Hm.", "signature": SIGNED},
        {"type": "text", "text": "I look.", **CACHED},
        {"type": "tool_use", "id": "t1", "name": "weather", "input": {}, **CACHED},
    ]
    result = [
        {"type": "tool_result", "tool_use_id": "t1", "content": "rain", **CACHED},
        {"type": "text", "text": "So?"},
    ]
    messages = [*HI, {"role": "assistant", "content": said}, {"role": "user", "content": result}]
    tools = [{**WEATHER, **CACHED}, {"type": "bash_20250124", "name": "bash"}]
    more: Any = {"system": system, "messages": messages, "tools": tools, "thinking": {"type": "adaptive"}}
    async with gateway(tmp_path, scripted("chat", Reply(text="Yes.")), served=True) as one:
        await ask(one, stream=True, **more)
        sent = one.upstream.bodies[0]
    assert "cache_control" not in json.dumps(sent)
    assert "native" not in json.dumps(sent)
    assert [tool["function"]["name"] for tool in sent["tools"]] == ["weather"]
    assert sent["messages"] == [
        {"role": "system", "content": "Be brief.\n\nBe kind."},
        {"role": "user", "content": "Hi"},
        {
            "role": "assistant",
            "content": "I look.",
            "tool_calls": [{"id": "t1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "t1", "content": "rain"},
        {"role": "user", "content": "So?"},
    ]


@pytest.mark.requirement("anthropic:request")
async def test_a_model_that_knows_no_effort_is_asked_again_without(tmp_path: Path) -> None:
    words = b'{"error": {"message": "Unsupported parameter: reasoning_effort is not supported with this model."}}'

    def model(body: dict[str, Any]) -> Script:
        if "reasoning_effort" in body:
            return Script([words], status=400, kind="application/json")
        return to_script(Reply(text="Yes."), "chat")

    async with gateway(tmp_path, model, served=True) as one:
        message = await ask(one, stream=True, output_config={"effort": "max"})
        assert text_of(message) == "Yes."
        assert [body.get("reasoning_effort") for body in one.upstream.bodies] == ["high", None]


@pytest.mark.requirement("anthropic:plain")
@STREAMED
@pytest.mark.parametrize("how", ["alias", "header"])
async def test_without_tools_bytes_pass_unchanged(tmp_path: Path, stream: bool, how: str) -> None:
    body = {"model": "scripted" + ("+plain" if how == "alias" else ""), "max_tokens": 9, "messages": HI}
    body |= {"stream": True} if stream else {}
    headers = {"X-Toolyard-Offer": "none"} if how == "header" else {}
    reply = Reply(text="Yes.", reasoning="Hm.", signature=SIGNED)
    async with gateway(tmp_path, scripted("messages", reply), settings=using("messages"), served=True) as one:
        status, raw = await post(one, body, headers | {"anthropic-beta": "a,b"})
        sent, head = one.upstream.raw[0], one.upstream.heads[0]
    assert (status, raw) == (200, b"".join(to_script(reply, "messages", stream=stream).pieces))
    assert head["anthropic-beta"] == "a,b"
    assert json.loads(sent) == {**body, "model": "scripted"}
    if how == "header":
        assert sent == json.dumps(body).encode()


@pytest.mark.requirement("anthropic:plain", "anthropic:faults")
async def test_a_refusal_and_a_cut_of_a_forwarded_answer_have_anthropics_shape(tmp_path: Path) -> None:
    replies = scripted("messages", Reply(status=400, error="No."), Reply(text="Hello, you.", cut_after=4))
    async with gateway(tmp_path, replies, settings=using("messages"), served=True) as one, official(one) as client:
        more: Any = {"model": "scripted+plain", "max_tokens": 9, "messages": HI}
        with pytest.raises(anthropic.BadRequestError, match="No"):
            await client.messages.create(**more)
        with pytest.raises(anthropic.APIStatusError, match="broke off"):
            async with client.messages.stream(**more) as stream:
                await stream.get_final_message()


@pytest.mark.requirement("anthropic:plain")
async def test_a_named_chat_or_one_with_tools_is_a_turn(tmp_path: Path) -> None:
    reply = Reply(text="Yes.")
    async with gateway(tmp_path, scripted("messages", reply), settings=using("messages"), served=True) as one:
        for more, headers in (({}, {"X-Toolyard-Chat": "c1"}), ({"mcp_servers": [SERVER]}, {})):
            await ask(one, stream=True, headers=headers, **more)
        assert {name for _, name in one.chat._logs._logs} >= {"c1"}
        assert len(one.chat._logs._logs) == 2


def counts(one: Gateway, *, status: int = 200) -> None:
    def answer(call: Call) -> Script:
        assert call.path == "/v1/messages/count_tokens"
        return Script([b'{"input_tokens": 4321}'], status=status, kind="application/json")

    one.upstream.answer = answer


@pytest.mark.requirement("anthropic:tokens")
async def test_tokens_are_counted_by_a_provider_that_can(tmp_path: Path) -> None:
    async with gateway(tmp_path, [Script()], settings=using("messages"), served=True) as one, official(one) as client:
        for status, counted in ((200, True), (404, False), (429, None)):
            counts(one, status=status)
            asking = client.messages.with_raw_response.count_tokens(model="scripted+tools", messages=HI)
            if counted is None:
                with pytest.raises(anthropic.RateLimitError):
                    await asking
                continue
            got = await asking
            assert ((await got.parse()).input_tokens == 4321) == counted
            assert ("X-Toolyard-Estimate" not in got.headers) == counted
        assert json.loads(one.upstream.calls[0].body) == {"model": "scripted", "messages": HI}
