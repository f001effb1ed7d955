"""Anthropic's Messages through the gateway: the official client, and the same turn streamed and in one piece."""

import asyncio
import dataclasses
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import anthropic
import pytest

from tests.fakes import Endless, FakeTool
from tests.gateway.messages import check_message, parse_events, read_stream, text_of
from tests.gateway.serving import Gateway, gateway, request
from tests.gateway.upstream import DONE, Script, chunk, replies, says
from tests.waiting import wait_until
from toolyard.protocol.tool import Checkpoint, Result, ToolCall

HI: Any = [{"role": "user", "content": "Hi"}]
CALL = {"id": "call_1", "type": "function", "function": {"name": "Say", "arguments": '{"text": "hello"}'}}
WEATHER: Any = {"name": "weather", "description": "The weather.", "input_schema": {"type": "object"}}
SERVER: Any = {"type": "url", "name": "toolyard", "url": "https://yard.example.org"}
NO_HEADERS: Mapping[str, str] = {}
LINE = "> ✓ Say: Said it."


def calls(*made: dict[str, Any]) -> Script:
    indexed = [{"index": at, **call} for at, call in enumerate(made)]
    return Script([chunk({"role": "assistant", "tool_calls": indexed}), chunk({}, "tool_calls"), DONE])


@asynccontextmanager
async def official(one: Gateway) -> AsyncIterator[anthropic.AsyncAnthropic]:
    async with anthropic.AsyncAnthropic(base_url=one.url, api_key="me", max_retries=0, timeout=60) as client:
        yield client


async def post(one: Gateway, body: dict[str, Any], headers: Mapping[str, str] = NO_HEADERS) -> tuple[int, bytes]:
    async with (
        aiohttp.ClientSession(one.url, headers={"x-api-key": "me", **headers}) as session,
        session.post("/v1/messages", json=body) as got,
    ):
        return got.status, await got.read()


async def ask(one: Gateway, *, stream: bool, headers: Mapping[str, str] = NO_HEADERS, **more: Any) -> dict[str, Any]:
    """The message of a request, streamed or whole; its order and types are checked."""
    body = {"model": "scripted", "max_tokens": 1000, "messages": HI, **more}
    status, raw = await post(one, body | ({"stream": True} if stream else {}), headers)
    assert status == 200, raw
    return read_stream(raw) if stream else check_message(json.loads(raw))


@pytest.mark.requirement("anthropic:create")
async def test_the_official_client_gets_an_answer_and_a_stream_with_a_tool_of_ours(tmp_path: Path) -> None:
    async with gateway(tmp_path, [calls(CALL), says("Done."), calls(CALL), says("Done.")], served=True) as one:
        async with official(one) as client:
            message = await client.messages.create(model="scripted", max_tokens=1000, messages=HI, system="Be brief.")
            async with client.messages.stream(model="scripted", max_tokens=1000, messages=HI) as stream:
                texts = [text async for text in stream.text_stream]
                streamed = await stream.get_final_message()
        assert message.content[0].type == "text"
        assert message.content[0].text == f"{LINE}\n\nDone."
        assert "".join(texts) == f"{LINE}\n\nDone."
        assert streamed.stop_reason == message.stop_reason == "end_turn"
        assert [message["role"] for message in one.upstream.bodies[0]["messages"]] == ["system", "user"]
        assert len(one.ran) == 2


@pytest.mark.requirement("anthropic:create")
@pytest.mark.parametrize("stream", [True, False])
async def test_a_call_of_ours_is_a_line_in_the_text(tmp_path: Path, stream: bool) -> None:
    async with gateway(tmp_path, [calls(CALL), says("Done.")], served=True) as one:
        message = await ask(one, stream=stream)
        assert [block["type"] for block in message["content"]] == ["text"]
        assert text_of(message) == f"{LINE}\n\nDone."


STREAMED = pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])


def deltas(*made: dict[str, Any], finish: str = "stop", usage: dict[str, Any] | None = None, **end: Any) -> Script:
    """A reply in these deltas; ``end`` stands beside its finish reason."""
    last = chunk({}, finish, **({"usage": usage} if usage else {}))
    if end:
        data = json.loads(last.removeprefix(b"data: "))
        data["choices"][0] |= end
        last = b"data: " + json.dumps(data).encode() + b"\n\n"
    return Script([chunk({"role": "assistant", "content": ""}), *map(chunk, made), last, DONE])


def piece(index: int, arguments: str, id_: str = "", name: str = "") -> dict[str, Any]:
    call = {"index": index, "function": {"arguments": arguments} | ({"name": name} if name else {})}
    return {"tool_calls": [call | ({"id": id_, "type": "function"} if id_ else {})]}


@pytest.mark.requirement("anthropic:tools")
@STREAMED
async def test_calls_of_the_client_are_one_block_after_the_other_however_their_pieces_come(
    tmp_path: Path, stream: bool
) -> None:
    reply = deltas(
        {"content": "I look."},
        piece(0, '{"at":', "t1", "weather"),
        piece(1, "", "t2", "weather"),
        piece(1, '{"at": "b'),
        piece(0, ' "a"}'),
        piece(1, '"}'),
        piece(2, "{}", "t3", "weather"),
        {"content": "And wait."},
        finish="tool_calls",
    )
    async with gateway(tmp_path, [reply], served=True) as one:
        message = await ask(one, stream=stream, tools=[WEATHER])
    used = [(block["id"], block["input"]) for block in message["content"] if block["type"] == "tool_use"]
    assert used == [("t1", {"at": "a"}), ("t2", {"at": "b"}), ("t3", {})]
    assert [block["type"] for block in message["content"]] == ["text", "tool_use", "tool_use", "tool_use", "text"]
    assert (message["stop_reason"], text_of(message)) == ("tool_use", "I look.And wait.")


@pytest.mark.requirement("anthropic:tools")
@STREAMED
async def test_text_between_the_pieces_of_a_call_comes_after_it(tmp_path: Path, stream: bool) -> None:
    reply = deltas(piece(0, '{"at":', "t1", "weather"), {"content": "Hm."}, piece(0, "1}"), finish="stop")
    async with gateway(tmp_path, [reply], served=True) as one:
        message = await ask(one, stream=stream, tools=[WEATHER])
    assert [block.get("input", block.get("text")) for block in message["content"]] == [{"at": 1}, "Hm."]
    assert message["stop_reason"] == "tool_use"


@pytest.mark.requirement("anthropic:tools")
@STREAMED
async def test_a_client_that_lists_our_server_gets_calls_as_blocks_after_a_text(tmp_path: Path, stream: bool) -> None:
    thought = chunk({"reasoning_content": "Hm.", "tool_calls": [{"index": 0, **CALL}]})
    scripts = [Script([thought, chunk({}, "tool_calls"), DONE]), says("Done.")]
    async with gateway(tmp_path, scripts, served=True) as one:
        message = await ask(one, stream=stream, mcp_servers=[SERVER], tools=[WEATHER])
        offered = [tool["function"]["name"] for tool in one.upstream.bodies[0]["tools"]]
    assert offered[0] == "weather"
    assert "Say" in offered
    thinking, empty, use, result, text = message["content"]
    assert (thinking["thinking"], empty["text"], text["text"]) == ("Hm.", "", "Done.")
    assert (use["name"], use["server_name"], use["input"]) == ("Say", "toolyard", {} if stream else {"text": "hello"})
    assert (result["tool_use_id"], result["is_error"]) == (use["id"], False)
    assert "Said it." in result["content"][0]["text"]


@pytest.mark.requirement("anthropic:fed-back")
@pytest.mark.parametrize("servers", [[SERVER], []], ids=["blocks", "lines"])
async def test_what_a_client_sends_back_reaches_the_model_once(tmp_path: Path, servers: list[Any]) -> None:
    async with gateway(tmp_path, [calls(CALL), says("Done.")], served=True) as one:
        first = await ask(one, stream=False, mcp_servers=servers)
        again = [*HI, {"role": "assistant", "content": first["content"]}, {"role": "user", "content": "And now?"}]
        await ask(one, stream=True, messages=again, mcp_servers=servers)
        await ask(one, stream=True, messages=again, mcp_servers=servers, model="scripted+plain")
        sent = one.upstream.bodies[2]["messages"]
        plain = json.dumps(one.upstream.bodies[3]["messages"])
    assert [message["role"] for message in sent] == ["user", "assistant", "tool", "assistant", "user"]
    assert json.loads(sent[1]["tool_calls"][0]["function"]["arguments"]) == {"text": "hello"}
    assert "Said it." in sent[2]["content"]
    assert sent[3]["content"] == "Done."
    assert plain.count("Said it.") == 1


@pytest.mark.requirement("anthropic:thinking")
@STREAMED
async def test_thinking_keeps_its_signature_and_redacted_thinking_its_data(tmp_path: Path, stream: bool) -> None:
    kind = {"format": "anthropic-claude-v1"}
    reply = deltas(
        {
            "reasoning_content": "Hm",
            "reasoning_details": [{"type": "reasoning.text", "text": "Hm", **kind, "index": 0}],
        },
        {"reasoning_content": ".", "reasoning_details": [{"type": "reasoning.text", "text": ".", **kind, "index": 0}]},
        {"reasoning_details": [{"type": "reasoning.text", "signature": "Eq/+==", **kind, "index": 0}]},
        {"reasoning_details": [{"type": "reasoning.encrypted", "data": "b64==", **kind, "index": 1}]},
        {"reasoning_details": [{"type": "reasoning.text", "text": "So.", **kind, "index": 2}]},
        {"content": "Yes."},
    )
    async with gateway(tmp_path, [reply], served=True) as one:
        message = await ask(one, stream=stream)
    assert message["content"] == [
        {"type": "thinking", "thinking": "Hm.", "signature": "Eq/+=="},
        {"type": "redacted_thinking", "data": "b64=="},
        {"type": "thinking", "thinking": "So.", "signature": ""},
        {"type": "text", "text": "Yes."},
    ]


@pytest.mark.requirement("anthropic:thinking")
@pytest.mark.parametrize("thinking", [{"type": "disabled"}, {"type": "adaptive", "display": "omitted"}])
async def test_a_client_that_wants_no_thinking_gets_none(tmp_path: Path, thinking: dict[str, str]) -> None:
    async with gateway(tmp_path, [deltas({"reasoning": "Hm."}, {"content": "Yes."})], served=True) as one:
        message = await ask(one, stream=True, thinking=thinking)
        assert message["content"] == [{"type": "text", "text": "Yes."}]


@pytest.mark.requirement("anthropic:stops")
@STREAMED
@pytest.mark.parametrize(
    ("finish", "end", "stop"),
    [
        ("stop", {}, ("end_turn", None)),
        ("length", {}, ("max_tokens", None)),
        ("content_filter", {}, ("refusal", None)),
        ("tool_calls", {}, ("end_turn", None)),  # without any
        ("stop", {"native_finish_reason": "stop_sequence", "stop_sequence": "END"}, ("stop_sequence", "END")),
        ("stop", {"native_finish_reason": "pause_turn"}, ("pause_turn", None)),
        ("stop", {"native_finish_reason": "STOP"}, ("end_turn", None)),
        ("length", {"native_finish_reason": "model_context_window_exceeded"}, ("model_context_window_exceeded", None)),
    ],
)
async def test_each_finish_reason_has_its_stop_reason(
    tmp_path: Path, finish: str, end: dict[str, Any], stop: tuple[str, str | None], stream: bool
) -> None:
    async with gateway(tmp_path, [deltas({"content": "So."}, finish=finish, **end)], served=True) as one:
        message = await ask(one, stream=stream)
        assert (message["stop_reason"], message["stop_sequence"]) == stop


@pytest.mark.requirement("anthropic:stops")
@STREAMED
async def test_a_refusal_is_text_and_a_citation_stands_in_the_text(tmp_path: Path, stream: bool) -> None:
    page = {"type": "url_citation", "url_citation": {"url": "https://example.org", "title": "A page"}}
    scripts = [deltas({"refusal": "No."}), deltas({"content": "Yes."}, {"annotations": [page]})]
    async with gateway(tmp_path, scripts, served=True) as one:
        refused = await ask(one, stream=stream)
        cited = await ask(one, stream=stream)
    assert (text_of(refused), refused["stop_reason"]) == ("No.", "refusal")
    (citation,) = cited["content"][0]["citations"]
    assert (citation["type"], citation["url"]) == ("web_search_result_location", "https://example.org")


@pytest.mark.requirement("anthropic:stops")
@STREAMED
async def test_the_usage_is_that_of_all_rounds_without_what_a_cache_had(tmp_path: Path, stream: bool) -> None:
    spent = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    cached = {"prompt_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 30}}
    rounds = [deltas({"tool_calls": [{"index": 0, **CALL}]}, finish="tool_calls", usage=spent | cached),
              deltas({"content": "Done."}, usage=spent)]  # fmt: skip
    async with gateway(tmp_path, rounds, served=True) as one:
        usage = (await ask(one, stream=stream))["usage"]
    assert usage == {
        "input_tokens": 110,
        "cache_creation_input_tokens": 30,
        "cache_read_input_tokens": 60,
        "output_tokens": 20,
    }


@pytest.mark.requirement("anthropic:stops")
@STREAMED
async def test_without_a_usage_it_is_estimated(tmp_path: Path, stream: bool) -> None:
    async with gateway(tmp_path, [says("Done.")], served=True) as one:
        usage = (await ask(one, stream=stream, system="x" * 300))["usage"]
        assert 100 <= usage["input_tokens"] <= 120
        assert 1 <= usage["output_tokens"] <= 5


@pytest.mark.requirement("anthropic:faults")
@STREAMED
@pytest.mark.parametrize(
    ("status", "kind"), [(400, "invalid_request_error"), (429, "rate_limit_error"), (503, "overloaded_error")]
)
async def test_an_error_before_the_answer_has_its_status_and_type(
    tmp_path: Path, status: int, kind: str, stream: bool
) -> None:
    refusal = Script([b'{"error": {"message": "No."}}'], status=status, kind="application/json")
    async with gateway(tmp_path, [refusal], served=True) as one:
        got, raw = await post(one, {"model": "m", "max_tokens": 9, "messages": HI, "stream": stream})
        error = json.loads(raw)
        assert (got, error["type"], error["error"]["type"]) == (status, "error", kind)
        async with official(one) as client:
            with pytest.raises(anthropic.APIStatusError) as caught:
                await client.messages.create(model="m", max_tokens=9, messages=HI)
            assert caught.value.status_code == status


@pytest.mark.requirement("anthropic:faults")
async def test_a_stream_that_breaks_off_ends_with_an_error(tmp_path: Path) -> None:
    async with gateway(tmp_path, [Script(says("Hello, you.").pieces[:3], then="cut")], served=True) as one:
        _, raw = await post(one, {"model": "m", "max_tokens": 9, "messages": HI, "stream": True})
        events = parse_events(raw)
        assert [event["type"] for event in events[:2]] == ["message_start", "content_block_start"]
        assert (events[-1]["type"], events[-1]["error"]["type"]) == ("error", "api_error")
        async with official(one) as client:
            with pytest.raises(anthropic.APIStatusError, match="broke off"):
                async with client.messages.stream(model="m", max_tokens=9, messages=HI) as stream:
                    await stream.get_final_message()


@pytest.mark.requirement("anthropic:faults")
async def test_a_fault_after_a_tool_is_not_to_be_repeated_and_a_long_conversation_is_named(tmp_path: Path) -> None:
    too_long = b'{"error": {"message": "too long", "code": "context_length_exceeded"}}'
    refusal = Script([too_long], status=400, kind="application/json")
    async with gateway(tmp_path, [calls(CALL), Script(status=500), refusal], served=True) as one:
        async with official(one) as client:
            with pytest.raises(anthropic.BadRequestError) as caught:
                await client.with_options(max_retries=3).messages.create(model="m", max_tokens=9, messages=HI)
        assert caught.value.response.headers["x-should-retry"] == "false"
        assert "prompt is too long" in caught.value.message
        assert len(one.ran) == 1


@pytest.mark.requirement("anthropic:once")
@pytest.mark.parametrize("first", [True, False], ids=["streamed-first", "whole-first"])
async def test_a_request_that_is_sent_again_in_the_other_form_joins_the_turn(tmp_path: Path, first: bool) -> None:
    """As Claude Code does when it gives up a stream: the same body without ``stream``, the same session."""
    started, release = asyncio.Event(), asyncio.Event()

    async def work(call: ToolCall, checkpoint: Checkpoint) -> Result:
        started.set()
        await release.wait()
        return Result(data={}, text="Worked.")

    effects: list[str] = []
    session = {"X-Claude-Code-Session-Id": "s1", "X-Stainless-Retry-Count": "0"}
    async with gateway(tmp_path, replies(request("Work"), "Done."), served=True) as one, asyncio.timeout(60):
        one.yard.tools.add(FakeTool(counted(work, effects), name="Work"))
        asking = asyncio.create_task(ask(one, stream=first, headers=session))
        await started.wait()
        again = asyncio.create_task(ask(one, stream=not first, headers=session))
        (log,) = one.chat._logs.running()
        await wait_until(lambda: len(log._readers) == 2)
        release.set()
        messages = await asyncio.gather(asking, again)
        assert [text_of(message) for message in messages] == ["> ✓ Work: Worked.\n\nDone."] * 2
        assert messages[0]["id"] == messages[1]["id"]
        assert (len(effects), len(one.upstream.bodies)) == (1, 2)


def counted(
    run: Callable[[ToolCall, Checkpoint], Awaitable[Result]], effects: list[str]
) -> Callable[[ToolCall, Checkpoint], Awaitable[Result]]:
    async def counting(call: ToolCall, checkpoint: Checkpoint) -> Result:
        effects.append(call.id)
        return await run(call, checkpoint)

    return counting


@pytest.mark.requirement("anthropic:once")
@pytest.mark.parametrize("again", [True, False], ids=["streamed", "whole"])
async def test_a_client_that_lost_its_stream_continues_the_turn(tmp_path: Path, again: bool) -> None:
    endless = Endless()
    block = f"{request(text='hello')}\n{request('Endless')}\n"
    async with gateway(tmp_path, replies(block, "So be it."), served=True) as one, asyncio.timeout(60):
        one.yard.tools.add(FakeTool(endless, name="Endless"))
        body = {"model": "scripted", "max_tokens": 1000, "messages": HI, "stream": True}
        async with aiohttp.ClientSession(one.url, headers={"x-api-key": "me"}) as client:
            asking = asyncio.create_task(client.post("/v1/messages", json=body))
            await endless.started.wait()
            await wait_until(lambda: one.ran)
            (await asking).close()
            await endless.stopped.wait()
        message = await ask(one, stream=again)
        assert text_of(message).endswith("So be it.")
        assert len(one.ran) == 1


@pytest.mark.requirement("anthropic:once")
@STREAMED
async def test_a_request_with_a_key_runs_once(tmp_path: Path, stream: bool) -> None:
    async with gateway(tmp_path, [calls(CALL), says("Done.")], served=True) as one:
        key = {"Idempotency-Key": "once"}
        first = await ask(one, stream=stream, headers=key)
        assert await ask(one, stream=stream, headers=key) == first
        assert len(one.ran) == 1


@pytest.mark.requirement("anthropic:tokens")
async def test_tokens_are_estimated_where_the_provider_does_not_count(tmp_path: Path) -> None:
    wrong: Any = [{"role": "x", "content": ""}]
    async with gateway(tmp_path, [says("Hi.")], served=True) as one, official(one) as client:
        short = await client.messages.count_tokens(model="scripted", messages=HI)
        text = "word " * 300
        counted = await client.messages.with_raw_response.count_tokens(
            model="scripted", messages=[{"role": "user", "content": text}], tools=[WEATHER], system="Be brief."
        )
        assert 1 <= short.input_tokens < 20
        assert 300 <= (await counted.parse()).input_tokens <= 600
        assert counted.headers["X-Toolyard-Estimate"] == "true"
        with pytest.raises(anthropic.BadRequestError, match=r"messages\[0\].role"):
            await client.messages.count_tokens(model="scripted", messages=wrong)


@pytest.mark.requirement("anthropic:models")
async def test_models_are_listed_in_anthropics_shape_for_its_clients(tmp_path: Path) -> None:
    async with gateway(tmp_path, [says("Hi.")], served=True) as one, official(one) as client:
        models = [model async for model in client.models.list(limit=1)]
        assert {"scripted", "tour"} <= {model.id for model in models}
        shown = await client.models.retrieve("scripted")
        assert (shown.type, shown.display_name) == ("model", "scripted")
        first = await client.models.list(limit=1)
        rest = await client.models.list(after_id=first.last_id or "")
        assert [*first.data, *rest.data] == models
        before = await client.models.list(before_id=rest.data[-1].id, limit=1)
        assert before.data == models[-2:-1]


@pytest.mark.requirement("anthropic:claude-code")
async def test_a_title_gets_nothing_of_ours_and_a_turn_of_claude_code_its_own_tools(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}
    form = {"format": {"type": "json_schema", "schema": schema}}
    async with gateway(tmp_path, replies('{"title": "Hi"}', "Hello."), served=True) as one:
        title = await ask(one, stream=True, tools=[], output_config=form)
        await ask(one, stream=True, tools=[WEATHER])
        await ask(one, stream=True, tools=[WEATHER], model="scripted+tools")
        asked = [[tool["function"]["name"] for tool in body.get("tools", [])] for body in one.upstream.bodies]
    assert json.loads(text_of(title)) == {"title": "Hi"}
    assert asked[:2] == [[], ["weather"]]
    assert {"weather", "Say"} <= set(asked[2])


@pytest.mark.requirement("anthropic:waits", "repeat:approval", "repeat:told")
@pytest.mark.parametrize("servers", [[], [SERVER]], ids=["lines", "blocks"])
async def test_an_answer_in_one_piece_says_what_it_waits_for_and_the_same_request_goes_on(
    tmp_path: Path, servers: list[Any]
) -> None:
    block = request("Write", path="a.txt", content="x")
    answers = replies(f"I write.\n{block}\n", "Written.", "I see.")
    async with gateway(tmp_path, answers, served=True) as one, asyncio.timeout(60):
        one.chat.rules = dataclasses.replace(one.chat.rules, approval_wait_s=0.05)
        early = await ask(one, stream=False, mcp_servers=servers)
        (waiting,) = early["toolyard"]["approvals"]
        assert text_of(early).count(f"approval allow {waiting['id']}") == 1
        assert text_of(early).endswith("send the same request again within 10 minutes: it goes on from here.\n")
        going_on = asyncio.create_task(ask(one, stream=True, mcp_servers=servers))
        await one.yard.state.approvals.answer(waiting["id"], allowed=True, by="key:me")
        assert text_of(await going_on).endswith("Written.")
        again = [*HI, {"role": "assistant", "content": early["content"]}, {"role": "user", "content": "And now?"}]
        await ask(one, stream=False, messages=again, mcp_servers=servers)
        assert len(one.upstream.bodies) == 3
        told = json.dumps(one.upstream.bodies[-1]["messages"])
        assert "Created" in told or "Wrote" in told
