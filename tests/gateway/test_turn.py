"""Rounds of asking the model and doing what it asks for."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import FakeTool
from tests.gateway.serving import ME, StreamedAnswer, chat_body, gateway, request
from tests.gateway.upstream import DONE, Script, chunk, completion, replies, says, streamed
from tests.plugins.folders import make_plugin
from toolyard.gateway.chat_request import ClientRequest
from toolyard.gateway.tool_calls.text_calls import MAX_KEPT
from toolyard.gateway.turns.dialogue import MAX_ROUNDS
from toolyard.gateway.turns.display import Show
from toolyard.message import read_hint
from toolyard.protocol.access import Mode
from toolyard.protocol.content import Media
from toolyard.protocol.envelope import Extras
from toolyard.protocol.store import Query
from toolyard.protocol.tool import Checkpoint, Origin, Result, ToolCall

BLOCK = request(text="hello")
PNG = b"\x89PNG\r\n\x1a\n" + bytes(24)


def native(*calls: tuple[str, str, dict[str, Any]], text: str = "") -> Script:
    """A reply with native tool calls, its arguments in pieces."""
    pieces = [chunk({"role": "assistant", "content": text or None})]
    for index, (id_, name, arguments) in enumerate(calls):
        written = json.dumps(arguments)
        head = {"index": index, "id": id_, "type": "function", "function": {"name": name, "arguments": ""}}
        pieces.append(chunk({"tool_calls": [head]}))
        for at in range(0, len(written), 5):
            part = {"index": index, "function": {"arguments": written[at : at + 5]}}
            pieces.append(chunk({"tool_calls": [part]}))
    return Script([*pieces, chunk({}, "tool_calls"), DONE])


@pytest.mark.requirement("chat:loop", "chat:completions", "request:results")
@pytest.mark.parametrize("stream", [True, False])
async def test_a_request_runs_and_its_result_goes_back_to_the_model(tmp_path: Path, stream: bool) -> None:
    async with gateway(tmp_path, replies(f"I look.\n{BLOCK}\n", "It said hello.")) as one:
        heard = (await one.stream()).text if stream else (await one.complete())["choices"][0]["message"]["content"]
        assert [(call.tool, call.arguments, call.caller, call.origin) for call in one.ran] == [
            ("Say", {"text": "hello"}, ME, Origin.CHAT)
        ]
        assert heard == "I look.\n\n> ✓ Say: Said it.\n\nIt said hello."
        user, assistant, result = one.upstream.bodies[1]["messages"]
        assert (user["role"], assistant) == ("user", {"role": "assistant", "content": f"I look.\n{BLOCK}\n"})
        assert result["role"] == "user"
        assert result["content"].startswith("<!-- VCP_TOOL_PAYLOAD -->")
        assert "Said it." in result["content"]


@pytest.mark.requirement("chat:completions")
async def test_a_stream_has_one_id_one_finish_and_one_end_and_all_the_usage(tmp_path: Path) -> None:
    usage = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
    async with gateway(tmp_path, replies(BLOCK, BLOCK, "Done.", usage=usage)) as one:
        heard = await one.stream(stream_options={"include_usage": True})
    assert (heard.finishes, heard.done) == (["stop"], 1)
    assert {event["id"] for event in heard.events} == {"chatcmpl-1"}
    assert [event["usage"] for event in heard.events if "usage" in event] == [
        {"prompt_tokens": 15, "completion_tokens": 6, "total_tokens": 21}
    ]
    assert sum("role" in choice["delta"] for event in heard.events for choice in event["choices"]) == 1


@pytest.mark.requirement("chat:completions")
async def test_a_whole_answer_has_the_usage_of_all_rounds(tmp_path: Path) -> None:
    async with gateway(tmp_path, replies(BLOCK, "Done.", usage={"total_tokens": 4})) as one:
        answer = await one.complete()
    assert (answer["usage"], answer["choices"][0]["finish_reason"]) == ({"total_tokens": 8}, "stop")


@pytest.mark.requirement("chat:completions")
async def test_a_reply_that_needs_nothing_passes_as_the_bytes_that_came(tmp_path: Path) -> None:
    strange = [*streamed("Just text.\nWith <b>tags</b>.")[:-1]]
    strange.insert(1, chunk({"content": "", "some_field": [1, 2]}, logprobs=None, service_tier="x"))
    body = completion({"role": "assistant", "content": "Hi", "odd": {"é": 1}})
    answer = Script([body], kind="application/json")
    async with gateway(
        tmp_path, lambda request_body: Script([*strange, DONE]) if request_body.get("stream") else answer
    ) as one:
        run = await one.chat.complete(ClientRequest(chat_body("Hi", stream=True), caller=ME))
        assert run.pieces is not None
        assert b"".join([piece async for piece in run.pieces]) == b"".join([*strange, DONE])
        assert (await one.chat.complete(ClientRequest(chat_body("Hi"), caller=ME))).body == body


@pytest.mark.requirement("chat:completions")
async def test_what_the_client_says_reaches_the_model_untouched(tmp_path: Path) -> None:
    raw = b'{ "model":"m", "temperature": 1.50, "messages":[{"role":"user","content":"\\u00e9"}], "x_odd": [1e2] }'
    async with gateway(tmp_path, replies("Hi.")) as one:
        await one.chat.complete(
            ClientRequest(json.loads(raw), caller=ME, raw=raw, headers={"x-toolyard-offer": "none"})
        )
        assert one.upstream.raw == [raw]
        extended = chat_body("Hi", requestId="r", toolyard={"show": "raw", "offer": "none"}, seed=7)
        await one.chat.complete(ClientRequest(extended, caller=ME))
        assert one.upstream.bodies[1] == chat_body("Hi", seed=7)
        assert one.upstream.keys == ["Bearer sk-the-key"] * 2


@pytest.mark.requirement("chat:native", "chat:shown")
@pytest.mark.parametrize("stream", [True, False])
async def test_native_calls_of_our_tools_run_and_go_back_as_role_tool(tmp_path: Path, stream: bool) -> None:
    function = {"name": "Say", "arguments": '{"text": "a"}'}
    call = {"id": "t1", "type": "function", "function": function, "extra_content": {"signature": "keep"}}
    message = {"role": "assistant", "content": None, "tool_calls": [call], "reasoning_content": "hm"}
    answers = [Script([completion(message, "tool_calls")], kind="application/json"), says("Done.", stream=False)]
    pieces = [
        chunk({"reasoning_content": "h"}),
        chunk({"reasoning_content": "m"}),
        chunk({"tool_calls": [{**call, "index": 0}]}),
    ]
    streams = [Script([*pieces, chunk({}, "tool_calls"), DONE]), says("Done.")]
    async with gateway(tmp_path, streams if stream else answers) as one:
        if stream:
            heard = await one.stream()
            assert (heard.finishes, heard.done, heard.text) == (["stop"], 1, "> ✓ Say: Said it.\n\nDone.")
            assert not any("tool_calls" in choice["delta"] for event in heard.events for choice in event["choices"])
        else:
            answer = (await one.complete())["choices"][0]
            assert (answer["message"]["content"], answer["finish_reason"]) == ("> ✓ Say: Said it.\n\nDone.", "stop")
        _, call_message, result = one.upstream.bodies[1]["messages"]
        assert (call_message["tool_calls"], call_message["reasoning_content"]) == ([call], "hm")
        assert (result["role"], result["tool_call_id"]) == ("tool", "t1")
        assert result["content"] == 'Said it.\n{"said":"a"}'


@pytest.mark.requirement("chat:native")
@pytest.mark.parametrize("stream", [True, False])
async def test_calls_of_the_clients_own_tools_end_the_turn(tmp_path: Path, stream: bool) -> None:
    tools = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]
    arguments = {"city": "Köln, a long name"}
    message = {"role": "assistant", "content": None, "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": json.dumps(arguments)}}
    ]}  # fmt: skip
    answer = Script([completion(message, "tool_calls")], kind="application/json")
    async with gateway(tmp_path, [native(("c1", "weather", arguments)) if stream else answer]) as one:
        if stream:
            heard = await one.stream(tools=tools)
            deltas = [choice["delta"] for event in heard.events for choice in event["choices"]]
            calls = [call for delta in deltas for call in delta.get("tool_calls", [])]
            assert json.loads("".join(call["function"]["arguments"] for call in calls)) == arguments
            assert (heard.finishes, heard.done) == (["tool_calls"], 1)
        else:
            assert (await one.complete(tools=tools))["choices"][0]["message"] == message
        assert one.upstream.bodies == [chat_body("Hi.", tools=tools) | ({"stream": True} if stream else {})]
        assert one.ran == []


@pytest.mark.requirement("chat:native")
async def test_a_reply_with_calls_of_both_sides_is_asked_again_for_those_of_the_client(tmp_path: Path) -> None:
    tools = [{"type": "function", "function": {"name": "weather"}}]
    both = native(("o1", "Say", {"text": "x"}), ("c1", "weather", {}))
    async with gateway(tmp_path, [both, native(("c2", "weather", {}))]) as one:
        heard = await one.stream(tools=tools, toolyard={"offer": "native"})
        assert [call.arguments for call in one.ran] == [{"text": "x"}]
        _, call_message, result = one.upstream.bodies[1]["messages"]
        assert [call["id"] for call in call_message["tool_calls"]] == [result["tool_call_id"]] == ["o1"]
    deltas = [choice["delta"] for event in heard.events for choice in event["choices"]]
    assert [call["id"] for delta in deltas for call in delta.get("tool_calls", []) if "id" in call] == ["c2"]


@pytest.mark.requirement("chat:native")
async def test_arguments_that_are_no_json_and_unknown_tools_are_told_to_the_model(tmp_path: Path) -> None:
    broken = chunk({"tool_calls": [{"index": 0, "id": "b", "function": {"name": "Say", "arguments": '{"text": '}}]})
    unknown = chunk({"tool_calls": [{"index": 1, "id": "u", "function": {"name": "Sya", "arguments": ""}}]})
    async with gateway(tmp_path, [Script([broken, unknown, chunk({}, "tool_calls"), DONE]), says("Sorry.")]) as one:
        assert (await one.stream()).text.endswith("Sorry.")
        *_, first, second = one.upstream.bodies[1]["messages"]
        assert "not JSON" in first["content"]
        assert "Did you mean 'Say'" in second["content"]
        assert one.ran == []


@pytest.mark.requirement("chat:parallel")
async def test_calls_of_one_reply_run_together_and_results_keep_their_order(tmp_path: Path) -> None:
    started: list[str] = []
    all_started, others_met = asyncio.Event(), asyncio.Event()

    async def meet(call: ToolCall, checkpoint: Checkpoint) -> Result:
        text = str(call.arguments["text"])
        started.append(text)
        if len(started) == 3:
            all_started.set()
        await all_started.wait()
        if text == "1":  # it began first, and ends after another
            await others_met.wait()
        others_met.set()
        return Result(data={}, text=f"Met {text}.")

    blocks = "\n".join(request("Meet", text=str(number)) for number in (1, 2, 3))
    async with gateway(tmp_path, replies(blocks, "Done.")) as one:
        one.yard.tools.add(FakeTool(meet, name="Meet"))
        async with asyncio.timeout(60):
            heard = await one.stream()
        result = one.upstream.bodies[1]["messages"][-1]["content"]
    assert [result.index(f"Met {number}.") for number in (1, 2, 3)] == sorted(
        result.index(f"Met {number}.") for number in (1, 2, 3)
    )
    assert heard.text.index("Met 1") < heard.text.index("Met 2") < heard.text.index("Met 3")


@pytest.mark.requirement("chat:forbidden")
@pytest.mark.parametrize("stream", [True, False])
async def test_the_switch_in_a_system_message_turns_tools_off(tmp_path: Path, stream: bool) -> None:
    async with gateway(tmp_path, replies(BLOCK)) as one:
        system = "Be kind. [[VCPToolUse=Forbidden]]"
        text = (
            (await one.stream(system=system)).text
            if stream
            else (await one.complete(system=system))["choices"][0]["message"]["content"]
        )
        assert text == BLOCK
        assert one.ran == []
        assert one.upstream.bodies[0]["messages"][0]["content"] == "Be kind. "
        await one.complete("[[VCPToolUse=Forbidden]]")
        assert len(one.ran) > 0


@pytest.mark.requirement("r:R78")
@pytest.mark.parametrize("stream", [True, False])
async def test_a_loop_of_tools_ends_as_a_complete_answer_with_a_note(tmp_path: Path, stream: bool) -> None:
    limit = {"type": "round_limit"}
    async with gateway(tmp_path, replies(f"Again.\n{BLOCK}")) as one:
        if stream:
            heard = await one.stream()
            assert (heard.finishes, heard.done, heard.events[-1]["toolyard"]) == (["stop"], 1, limit)
            text = heard.text
        else:
            answer = await one.complete()
            choice = answer["choices"][0]
            assert (choice["finish_reason"], answer["toolyard"]) == ("stop", limit)
            text = choice["message"]["content"]
        assert f"more than {MAX_ROUNDS} rounds" in text
        assert (len(one.ran), len(one.upstream.bodies)) == (MAX_ROUNDS, MAX_ROUNDS + 1)
        run = await one.chat.complete(ClientRequest(chat_body("请一直读取"), caller=ME))
        assert f"模型请求工具超过 {MAX_ROUNDS} 轮" in json.loads(run.body)["choices"][0]["message"]["content"]


@pytest.mark.requirement("chat:reason-shown")
async def test_the_line_of_a_failed_call_says_what_to_do_next(tmp_path: Path) -> None:
    async with gateway(tmp_path, replies(request("Read", path="none.txt"), "Sorry.")) as one:
        envelope = (await one.yard.calls.settle(one.yard.calls.request("Read", {"path": "none.txt"}))).envelope
        assert read_hint(envelope.text)
        assert f"> ✗ Read: {envelope.text}".replace("`", "'") in (await one.stream()).text


@pytest.mark.requirement("request:malformed", "s:S-22")
@pytest.mark.parametrize("stream", [True, False])
async def test_a_block_that_cannot_be_run_is_told_to_the_model_and_kept(tmp_path: Path, stream: bool) -> None:
    bad = BLOCK.replace("text:", "text:「始」a「末」,\ntext:")
    async with gateway(tmp_path, replies(f"Look: 你好\n{bad}\nDone.", "Sorry.")) as one:
        if stream:
            assert "✗ Say" in (await one.stream()).text
        else:
            await one.complete()
        assert one.ran == []
        assert "twice" in one.upstream.bodies[1]["messages"][-1]["content"]
        (record,) = await one.yard.state.journal.page(Query(), limit=5)
        assert (record.tool, record.state, record.origin) == ("Say", "error", "chat")
        stored = await one.yard.state.journal.get(record.id)
        assert stored is not None
        assert stored["arguments"] == {"written": bad.strip()}
        assert "twice" in str(stored["text"])


@pytest.mark.requirement("request:malformed")
async def test_of_many_broken_blocks_some_are_kept_and_all_are_told(tmp_path: Path) -> None:
    bad = BLOCK.replace("tool_name", "tool")
    async with gateway(tmp_path, replies("\n".join([bad] * 40), "Sorry.")) as one:
        await one.stream(toolyard={"tools": ["LS"]})
        assert one.upstream.bodies[1]["messages"][-1]["content"].count("tool_name") >= 40
        assert len(await one.yard.state.journal.page(Query(), limit=100)) == MAX_KEPT


@pytest.mark.requirement("s:S-30")
async def test_of_very_many_blocks_32_run_and_the_rest_are_told(tmp_path: Path) -> None:
    async with gateway(tmp_path, replies("\n".join([BLOCK] * 500), "Done.")) as one:
        await one.stream(toolyard={"show": "hidden"})
        assert len(one.ran) == 32
        told = one.upstream.bodies[1]["messages"][-1]["content"]
        assert (told.count("Only the first 32"), told.count("Only the first 64")) == (32, 1)


@pytest.mark.requirement("request:delivery")
async def test_fire_and_forget_is_not_waited_for(tmp_path: Path) -> None:
    release, ended = asyncio.Event(), asyncio.Event()

    async def wait(call: ToolCall, checkpoint: Checkpoint) -> Result:
        await release.wait()
        ended.set()
        return Result(data={}, text="Waited.")

    lone = request("Wait").replace("tool_name", "archery:「始」no_reply「末」,\ntool_name")
    async with gateway(tmp_path, replies(f"{lone}\nStarted.")) as one:
        one.yard.tools.add(FakeTool(wait, name="Wait"))
        async with asyncio.timeout(60):
            heard = await one.stream()
            assert heard.finishes == ["stop"]
            assert len(one.upstream.bodies) == 1
            assert not ended.is_set()
            release.set()
            await ended.wait()


@pytest.mark.requirement("request:delivery")
@pytest.mark.parametrize(("river", "expected"), [("full", 3), ("last:1", 1), ("text", 3), ("last", 3)])
async def test_the_river_takes_the_conversation_along(tmp_path: Path, river: str, expected: int) -> None:
    block = BLOCK.replace("tool_name", f"river:「始」{river}「末」,\ntool_name")
    history: list[Any] = [{"role": "user", "content": [{"type": "text", "text": "One"}]}]
    history.append({"role": "assistant", "content": "Two"})
    async with gateway(tmp_path, replies(block, "Done.")) as one:
        await one.chat.complete(
            ClientRequest({"messages": [*history, {"role": "user", "content": "Three"}]}, caller=ME)
        )
        context = one.ran[0].metadata["river_context"]
        assert one.ran[0].arguments == {"text": "hello"}
    assert isinstance(context, list)
    assert len(context) == expected
    if river == "text":
        assert context[0] == {"role": "user", "content": "One"}


@pytest.mark.requirement("request:delivery")
async def test_a_time_schedules_the_call_instead_of_running_it(tmp_path: Path) -> None:
    late = BLOCK.replace("tool_name", "timely_contact:「始」2099-01-02-03:04「末」,\ntool_name")
    past = BLOCK.replace("tool_name", "timely_contact:「始」2001-01-02-03:04「末」,\ntool_name")
    async with gateway(tmp_path, replies(f"{late}\n{past}", "Done.")) as one:
        heard = await one.stream()
        assert one.ran == []
        result = one.upstream.bodies[1]["messages"][-1]["content"]
    assert "[1] Say: Say will run at 2099-01-02T03:04" in result
    assert "[2] Say: INVALID_PARAM: " in result
    assert "⏲ Say" in heard.text


@pytest.mark.requirement("request:built-in-values")
async def test_built_in_tools_take_strings_for_numbers(tmp_path: Path) -> None:
    block = request("Read", path="a.txt", start_line="2", limit="1", maid="Nova")
    async with gateway(tmp_path, replies(block, "Done.")) as one:
        (tmp_path / "project/a.txt").write_text("one\ntwo\nthree\n")
        await one.stream()
        assert "2\ttwo" in one.upstream.bodies[1]["messages"][-1]["content"]


@pytest.mark.requirement("chat:shown")
async def test_the_model_gets_the_shown_result_of_a_long_one(tmp_path: Path) -> None:
    async def much(call: ToolCall, checkpoint: Checkpoint) -> Result:
        return Result(data={"lines": ["x" * 100] * 5000}, text="Much.")

    async with gateway(tmp_path, [native(("n", "Much", {})), says("Done.")]) as one:
        one.yard.tools.add(FakeTool(much, name="Much"))
        await one.stream()
        content = one.upstream.bodies[1]["messages"][-1]["content"]
    assert len(content) < 80_000
    assert content.startswith("⚠️ Output too large, truncated")
    assert "tool-output/" in content


@pytest.mark.requirement("chat:shown", "chat:native")
@pytest.mark.parametrize("text", [True, False])
async def test_media_reach_the_model_as_content_parts(tmp_path: Path, text: bool) -> None:
    async def draw(call: ToolCall, checkpoint: Checkpoint) -> Result:
        return Result(data={}, text="Drawn.", extras=Extras(parts=(Media("image/png", PNG),)))

    reply = says(request("Draw")) if text else native(("d", "Draw", {}))
    async with gateway(tmp_path, [reply, says("Nice.")]) as one:
        one.yard.tools.add(FakeTool(draw, name="Draw"))
        await one.stream()
        last = one.upstream.bodies[1]["messages"][-1]
    assert (last["role"], last["content"][0]["type"]) == ("user", "text")
    assert last["content"][0]["text"].startswith("<!-- VCP_TOOL_PAYLOAD -->")
    assert last["content"][1]["image_url"]["url"].startswith("data:image/png;base64,")


@pytest.mark.requirement("chat:vcp-route")
async def test_vcp_clients_see_requests_and_information_blocks(tmp_path: Path) -> None:
    async with gateway(tmp_path, replies(f"I look.\n{BLOCK}", "Done.")) as one:
        run = await one.chat.complete(ClientRequest(chat_body("Hi", stream=True), caller=ME, show=Show.RAW))
        assert run.pieces is not None
        text = StreamedAnswer.from_bytes(b"".join([piece async for piece in run.pieces])).text
    assert text.startswith(f"I look.\n{BLOCK}\n[[VCP调用结果信息汇总:\n- 工具名称: Say\n- 执行状态: ✅ SUCCESS\n")
    assert "\n[本轮工具调用摘要:]\nSay 调用成功。\n[本轮工具调用摘要结束]\n" in text
    assert text.endswith("\nDone.")


@pytest.mark.requirement("chat:completions")
@pytest.mark.parametrize(
    ("show", "expected"),
    [("hidden", "A.\nDone."), ("summary", "A.\n\n> ✓ Say: Said it.\n\nDone."), ("events", "A.\nDone.")],
)
async def test_the_client_says_what_it_sees_of_tool_work(tmp_path: Path, show: str, expected: str) -> None:
    async with gateway(tmp_path, replies(f"A.\n{BLOCK}\n", "Done.")) as one:
        heard = await one.stream(toolyard={"show": show})
    assert heard.text == expected
    types = [event["toolyard"]["type"] for event in heard.events if "toolyard" in event]
    shown = ["round.ended", "call.started", "call.finished", "round.ended"]
    assert types == (shown if show == "events" else [])


@pytest.mark.requirement("request:delivery")
async def test_a_marked_call_shows_its_result_in_any_form(tmp_path: Path) -> None:
    block = BLOCK.replace("tool_name", "ink:「始」mark_history「末」,\ntool_name")
    async with gateway(tmp_path, replies(block, "Done.")) as one:
        heard = await one.stream(toolyard={"show": "hidden"})
    assert "[[VCP调用结果信息汇总:\n- 工具名称: Say" in heard.text


@pytest.mark.requirement("request:delivery", "request:strings")
async def test_a_plugin_gets_its_arguments_who_signed_and_the_river(tmp_path: Path) -> None:
    plugin = make_plugin(tmp_path / "plugins", "Heard")
    (plugin / "main.py").write_text(
        "import json, sys\nprint(json.dumps({'status': 'success', 'result': sys.stdin.read()}))\n"
    )
    block = request("Heard", a="1", b="「末」 {{Date}}").replace(
        "tool_name", "river:「始」last:1「末」,\nmaid:「始」Nova「末」,\ntool_name"
    )
    settings = {"approval_mode": Mode.AUTO}
    async with gateway(tmp_path, replies(block, "Done."), plugins=(tmp_path / "plugins",), settings=settings) as one:
        await one.stream("Hi.")
        result = one.upstream.bodies[1]["messages"][-1]["content"].replace("\u200b", "")
    heard = json.loads(result[result.index("{") : result.rindex("}") + 1])
    assert (heard["a"], heard["b"], heard["maid"]) == ("1", "「末」 {{Date}}", "Nova")
    assert heard["river_context"] == [{"role": "user", "content": "Hi."}]
