"""Native tool calls as providers really send them, and what becomes of their ids."""

import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.gateway.serving import gateway, request
from tests.gateway.test_served import server
from tests.gateway.upstream import DONE, Script, chunk, completion, says
from tests.web.test_backend_stream import read_events

pytestmark = pytest.mark.requirement("chat:native")


def calls(*deltas: dict[str, Any], finish: str = "tool_calls") -> Script:
    chunks = [chunk({"tool_calls": [{"type": "function", **delta}]}) for delta in deltas]
    return Script([chunk({"role": "assistant", "content": None}), *chunks, chunk({}, finish), DONE])


def say(text: str, **more: Any) -> dict[str, Any]:
    return {**more, "function": {"name": "Say", "arguments": json.dumps({"text": text})}}


@pytest.mark.parametrize("index", [{"index": 0}, {}], ids=["one index for all", "no index"])
async def test_another_id_is_another_call(tmp_path: Path, index: dict[str, int]) -> None:
    script = calls(say("one", id="a", **index), say("two", id="b", **index))
    async with gateway(tmp_path, [script, says("Done.")]) as one:
        await one.stream()
        assert {call.arguments["text"] for call in one.ran} == {"one", "two"}  # at the same time, in any order
        assert [message["tool_call_id"] for message in one.upstream.bodies[1]["messages"][2:]] == ["a", "b"]


async def test_calls_keep_the_order_of_their_index(tmp_path: Path) -> None:
    async with gateway(tmp_path, [calls(say("2", id="b", index=1), say("1", id="a", index=0)), says("Done.")]) as one:
        await one.stream()
        assert [message["tool_call_id"] for message in one.upstream.bodies[1]["messages"][2:]] == ["a", "b"]


@pytest.mark.parametrize("stream", [True, False])
async def test_a_call_without_an_id_gets_one_that_its_result_names(tmp_path: Path, stream: bool) -> None:
    message = {"role": "assistant", "content": None, "tool_calls": [say("one"), say("two", id="")]}
    answer = Script([completion(message, "tool_calls")], kind="application/json")
    script = calls(say("one", index=0), say("two", index=1, id="")) if stream else answer
    async with gateway(tmp_path, [script, says("Done.", stream=stream)]) as one:
        await (one.stream() if stream else one.complete())
        _, message_sent, *results = one.upstream.bodies[1]["messages"]
        ids = [call["id"] for call in message_sent["tool_calls"]]
        assert ids == [result["tool_call_id"] for result in results]
        assert len(set(ids)) == 2
        assert all(ids)
        assert {call.use_id for call in one.ran} == {""}


@pytest.mark.parametrize("stream", [True, False])
async def test_a_call_that_was_cut_before_its_arguments_is_not_run(tmp_path: Path, stream: bool) -> None:
    cut = {"id": "c", "function": {"name": "Say", "arguments": ""}}
    answer = Script(
        [completion({"role": "assistant", "content": None, "tool_calls": [say("a", id="w"), cut]}, "length")],
        kind="application/json",
    )
    script = calls(say("a", id="w", index=0), {**cut, "index": 1}, finish="length") if stream else answer
    async with gateway(tmp_path, [script, says("Sorry.", stream=stream)]) as one:
        await (one.stream() if stream else one.complete())
        assert [call.arguments for call in one.ran] == [{"text": "a"}]
        assert "cut" in one.upstream.bodies[1]["messages"][-1]["content"]


@pytest.mark.parametrize("stream", [True, False])
async def test_a_call_of_a_clients_custom_tool_is_the_clients(tmp_path: Path, stream: bool) -> None:
    tools = [{"type": "custom", "custom": {"name": "shell"}}]
    call = {"id": "c", "type": "custom", "custom": {"name": "shell", "input": "ls"}}
    begun = {"index": 0, **call, "custom": {"name": "shell", "input": "l"}}
    script = calls(begun, {"index": 0, "type": "custom", "custom": {"input": "s"}})
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    answer = Script([completion(message, "tool_calls")], kind="application/json")
    async with gateway(tmp_path, [script if stream else answer]) as one:
        if stream:
            heard = await one.stream(tools=tools)
            deltas = [choice["delta"] for event in heard.events for choice in event["choices"]]
            customs = [call["custom"] for delta in deltas for call in delta.get("tool_calls", [])]
            assert customs == [{"name": "shell", "input": "l"}, {"input": "s"}]
            assert heard.finishes == ["tool_calls"]
        else:
            assert (await one.complete(tools=tools))["choices"][0]["message"] == message
        assert len(one.upstream.bodies) == 1


@pytest.mark.parametrize("text", [request(text="x"), f"Hm.\n{request(text='x')}", request(text="x") + "\n"])
async def test_a_request_before_a_clients_call_is_done_first_whatever_follows_it(tmp_path: Path, text: str) -> None:
    theirs = {"index": 0, "id": "c", "function": {"name": "weather", "arguments": "{}"}}
    call_chunk = chunk({"tool_calls": [{"type": "function", **theirs}]})
    both = Script([chunk({"role": "assistant", "content": text}), call_chunk, chunk({}, "tool_calls"), DONE])
    async with gateway(tmp_path, [both, says("Done.")]) as one:
        heard = await one.stream(tools=[{"type": "function", "function": {"name": "weather"}}])
        assert [call.arguments for call in one.ran] == [{"text": "x"}]
        assert heard.text.endswith("Done.")
        assert heard.finishes == ["stop"]


@pytest.mark.parametrize("last", [True, False])
async def test_a_clients_call_that_waited_for_no_request_is_told_whole(tmp_path: Path, last: bool) -> None:
    pieces = [{"name": "weather", "arguments": '{"a"'}, {"arguments": ": 1}"}]
    deltas = [{"tool_calls": [{"index": 0, "id": "c", "type": "function", "function": piece}]} for piece in pieces]
    ends = [chunk(deltas[1], "tool_calls")] if last else [chunk(deltas[1]), chunk({}, "tool_calls")]
    text = chunk({"role": "assistant", "content": "Not `<<<[TOOL_REQUEST]>>>`."})
    async with gateway(tmp_path, [Script([text, chunk(deltas[0]), *ends, DONE])]) as one:
        heard = await one.stream(tools=[{"type": "function", "function": {"name": "weather"}}])
    received = [call for event in heard.events for call in event["choices"][0]["delta"].get("tool_calls", [])]
    assert [(call["index"], call["id"], call["function"]["arguments"]) for call in received] == [(0, "c", '{"a": 1}')]
    assert heard.finishes == ["tool_calls"]


async def test_calls_of_a_whole_answer_have_their_index_in_a_stream(tmp_path: Path) -> None:
    names = ["weather", "news"]
    made = [{"id": name, "type": "function", "function": {"name": name, "arguments": "{}"}} for name in names]
    message = {"role": "assistant", "content": None, "tool_calls": made}
    answer = Script([completion(message, "tool_calls")], kind="application/json")
    async with gateway(tmp_path, [answer]) as one:
        heard = await one.stream(tools=[{"type": "function", "function": {"name": name}} for name in names])
    deltas = [choice["delta"] for event in heard.events for choice in event["choices"]]
    received = [(call["index"], call["id"]) for delta in deltas for call in delta.get("tool_calls", [])]
    assert received == [(0, "weather"), (1, "news")]


@pytest.mark.requirement("chat:loop")
async def test_a_last_round_that_nobody_waits_for_is_counted_once(tmp_path: Path) -> None:
    used = {"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11}
    fires = request(text="a").replace("text:", "archery:「始」no_reply「末」,\ntext:")
    async with gateway(tmp_path, [says(request(text="b"), usage=used), says(fires, usage=used)]) as one:
        heard = await one.stream(stream_options={"include_usage": True})
        assert [event["usage"]["total_tokens"] for event in heard.events if event.get("usage")] == [22]
        await one.chat.close()


@pytest.mark.requirement("backend:stream")
async def test_a_back_end_hears_the_models_id_of_a_call(tmp_path: Path) -> None:
    read = {"id": "call_of_the_model", "index": 0, "function": {"name": "Read", "arguments": '{"path": "a.md"}'}}
    lost = {"id": "call_lost", "index": 1, "function": {"name": "Read", "arguments": '{"path": "b.md"}'}}
    torn = {"id": "call_torn", "index": 0, "function": {"name": "Read", "arguments": '{"path": "a.'}}
    answers = [calls(read), calls(lost), calls(torn), says(request("LS")), says("Done.")]
    async with server(tmp_path, answers) as running:
        headers = {"Authorization": f"Bearer {running.key}"}
        body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "Hi"}]}
        async with (
            aiohttp.ClientSession(running.url, headers=headers) as session,
            session.get("/v1/backend/stream") as stream,
        ):
            async with session.post("/v1/chat/completions", json=body) as response:
                assert b"Done." in await response.read()
            events = [json.loads(event["data"]) for event in await read_events(stream, 4)]
            async with session.get("/v1/calls") as response:
                records = (await response.json())["data"]
    assert [one["tool_name"] for one in events] == ["Read", "Read", "Read", "LS"]
    assert [one["tool_use_id"] for one in events[:3]] == ["call_of_the_model", "call_lost", "call_torn"]
    assert events[1]["data"].startswith("Error: NOT_FOUND")
    assert events[2]["data"].startswith("Error: INVALID_PARAM: The arguments of this call are not JSON")
    assert events[3]["tool_use_id"].startswith("call_")
    assert [(one["tool"], one["state"]) for one in records[::-1]][1:3] == [("Read", "error"), ("Read", "error")]


@pytest.mark.parametrize("stream", [True, False])
async def test_a_clients_call_beside_one_that_nobody_waits_for_reaches_the_client(tmp_path: Path, stream: bool) -> None:
    fires = request(text="a").replace("text:", "archery:「始」no_reply「末」,\ntext:")
    theirs = {"index": 0, "id": "c", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    message = {"role": "assistant", "content": f"{fires}\n", "tool_calls": [theirs]}
    pieces = Script(
        [chunk({"role": "assistant", "content": f"{fires}\n"}), chunk({"tool_calls": [theirs]}, "tool_calls")]
    )
    answer = Script([completion(message, "tool_calls")], kind="application/json")
    tools = [{"type": "function", "function": {"name": "weather"}}]
    async with gateway(tmp_path, [pieces if stream else answer]) as one:
        if stream:
            heard = await one.stream(tools=tools)
            received = [call for event in heard.events for call in event["choices"][0]["delta"].get("tool_calls", [])]
            finish = heard.finishes[0]
        else:
            choice = (await one.complete(tools=tools))["choices"][0]
            received, finish = choice["message"].get("tool_calls", []), choice["finish_reason"]
        await one.chat.close()
    assert ([call["function"]["name"] for call in received], finish) == (["weather"], "tool_calls")


async def test_a_long_number_reaches_its_tool_as_the_model_wrote_it(tmp_path: Path) -> None:
    long = 123456789012345678901234567890
    written = {"index": 0, "id": "c", "function": {"name": "Say", "arguments": json.dumps({"text": long})}}
    async with gateway(tmp_path, [calls(written), says("Done.")]) as one:
        heard = await one.stream(toolyard={"show": "events"})
        received = [event["toolyard"] for event in heard.events if "toolyard" in event]
        started, finished = [one for one in received if one["type"] != "round.ended"]
        assert started["arguments"] == {"text": long}
        assert f"got {long}" in finished["text"]
