"""The events of a Responses stream, for whatever a model writes."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.response_events import ask, check_events, post, stream
from tests.gateway.serving import gateway, request
from tests.gateway.upstream import DONE, Script, chunk, completion, replies, says, streamed
from toolyard.gateway.protocols.chat_body import as_list
from toolyard.gateway.protocols.responses.client_request import parse_request

BLOCK = request(text="hello")
TOOLS: Any = [{"type": "function", "name": name, "parameters": {}} for name in ("one", "two")]


def calls(*pieces: dict[str, Any], finish: str = "tool_calls") -> Script:
    return Script([*(chunk({"tool_calls": [piece]}) for piece in pieces), chunk({}, finish), DONE])


def piece(index: int, written: str, id_: str | None = None, name: str | None = None) -> dict[str, Any]:
    head = {"id": id_, "type": "function"} if id_ else {}
    return {"index": index, **head, "function": {"arguments": written, **({"name": name} if name else {})}}


@pytest.mark.requirement("responses:stream")
async def test_a_text_is_a_message_in_pieces(tmp_path: Path) -> None:
    usage = {
        "prompt_tokens": 9,
        "completion_tokens": 2,
        "total_tokens": 11,
        "prompt_tokens_details": {"cached_tokens": 4},
    }
    async with gateway(tmp_path, [Script(streamed("Hello there.", usage=usage))], served=True) as one:  # type: ignore[arg-type]
        events = await stream(one.url, {"input": "Hi"})
    last = check_events(events)
    assert [event["delta"] for event in events if event["type"].endswith("text.delta")] == ["Hello t", "here."]
    assert last["output"][0]["content"][0]["text"] == "Hello there."
    assert last["usage"]["input_tokens_details"]["cached_tokens"] == 4
    assert (last["status"], last["usage"]["total_tokens"]) == ("completed", 11)


@pytest.mark.requirement("responses:stream", "responses:own_tools")
async def test_each_call_of_ours_is_an_item_between_the_texts(tmp_path: Path) -> None:
    async with gateway(tmp_path, replies(f"Look.\n{BLOCK}\n{BLOCK}", "Done."), served=True) as one:
        events = await stream(one.url, {"input": "Hi"})
    last = check_events(events)
    assert [item["type"] for item in last["output"]] == ["message", "mcp_call", "mcp_call", "message"]
    assert json.loads(last["output"][1]["arguments"]) == {"text": "hello"}
    kinds = [event["type"] for event in events if event.get("output_index") == 1]
    assert kinds == [
        "response.output_item.added", "response.mcp_call.in_progress", "response.mcp_call_arguments.delta",
        "response.mcp_call_arguments.done", "response.mcp_call.completed", "response.output_item.done",
    ]  # fmt: skip


@pytest.mark.requirement("responses:own_tools")
async def test_a_call_that_fails_has_an_error_and_no_output(tmp_path: Path) -> None:
    async with gateway(tmp_path, replies(request("Read", path="none.txt"), "Done."), served=True) as one:
        last = check_events(await stream(one.url, {"input": "Hi"}))
    call = last["output"][0]
    assert (call["status"], call["output"], call["error"]["type"]) == ("failed", None, "mcp_tool_execution_error")
    assert "none.txt" in call["error"]["content"][0]["text"]


@pytest.mark.requirement("responses:client_tools")
async def test_calls_of_the_client_come_one_after_the_other_however_they_are_cut(tmp_path: Path) -> None:
    begun = (piece(0, "", "a", "one"), piece(1, '{"y":', "b", "two"))
    mixed = calls(*begun, piece(0, '{"x":'), piece(1, "2}"), piece(0, "1}"))
    same_index = calls(piece(0, "{}", "a", "one"), piece(0, '{"z": 3}', "b", "two"))
    async with gateway(tmp_path, [mixed, same_index], served=True) as one:
        first = check_events(await stream(one.url, {"input": "Hi", "tools": TOOLS}))
        second = check_events(await stream(one.url, {"input": "Ho", "tools": TOOLS}))
    found = [
        [(item["call_id"], item["name"], item["arguments"]) for item in last["output"]] for last in (first, second)
    ]
    assert found == [
        [("a", "one", '{"x":1}'), ("b", "two", '{"y":2}')],
        [("a", "one", "{}"), ("b", "two", '{"z": 3}')],
    ]


@pytest.mark.requirement("responses:client_tools")
async def test_tools_in_a_namespace_and_custom_ones_come_back_under_their_own_names(tmp_path: Path) -> None:
    custom = {"index": 1, "id": "b", "type": "custom", "custom": {"name": "patch", "input": "*** Begin"}}
    tools = [
        {"type": "namespace", "name": "crm", "description": "", "tools": [{"type": "function", "name": "find"}]},
        {"type": "custom", "name": "patch", "format": {"type": "grammar", "syntax": "lark", "definition": "x"}},
        {"type": "web_search", "external_web_access": False},
    ]
    async with gateway(tmp_path, [calls(piece(0, "{}", "a", "crm__find"), custom)], served=True) as one:
        last = check_events(await stream(one.url, {"input": "Hi", "tools": tools}))
        sent = one.upstream.bodies[0]["tools"]
        back = [*last["output"], {"type": "function_call_output", "call_id": "a", "output": "1"}]
        back.append({"type": "custom_tool_call_output", "call_id": "b", "output": "2"})
        await stream(one.url, {"input": back, "tools": tools})
        again = one.upstream.bodies[1]["messages"]
    assert [(item["type"], item.get("namespace"), item["name"]) for item in last["output"]] == [
        ("function_call", "crm", "find"),
        ("custom_tool_call", None, "patch"),
    ]
    assert sent[0]["function"]["name"] == "crm__find"
    assert sent[1]["custom"]["format"] == {"type": "grammar", "grammar": {"syntax": "lark", "definition": "x"}}
    assert [call[call["type"]]["name"] for call in again[0]["tool_calls"]] == ["crm__find", "patch"]
    assert [message["role"] for message in again] == ["assistant", "tool", "tool"]


@pytest.mark.requirement("responses:reasoning")
async def test_reasoning_is_an_item_before_the_text_and_goes_back_as_it_came(tmp_path: Path) -> None:
    plain = [chunk({"reasoning_content": "Let me "}), chunk({"reasoning_content": "think."})]
    kind = {"type": "reasoning.text", "format": "anthropic-claude-v1", "index": 0}
    signed = [
        chunk({"reasoning_details": [{**kind, "text": "Hm."}]}),
        chunk({"reasoning_details": [{**kind, "signature": "s=="}]}),
    ]
    summary = {
        "type": "reasoning.summary",
        "summary": "Short.",
        "id": "rs_1",
        "format": "openai-responses-v1",
        "index": 0,
    }
    sealed = {"type": "reasoning.encrypted", "data": "gAAA", "id": "rs_1", "format": "openai-responses-v1", "index": 1}
    scripts = [
        Script([*one, *streamed("Yes.")]) for one in (plain, signed, [chunk({"reasoning_details": [summary, sealed]})])
    ]
    async with gateway(tmp_path, scripts, served=True) as one:
        lasts = [check_events(await stream(one.url, {"input": f"Hi {number}"})) for number in range(3)]
    back: list[Any] = [as_list(parse_request({"input": last["output"]}).body["messages"])[0] for last in lasts]
    assert [[item["type"] for item in last["output"]] for last in lasts] == [["reasoning", "message"]] * 3
    assert lasts[0]["output"][0]["content"] == [{"type": "reasoning_text", "text": "Let me think."}]
    assert lasts[2]["output"][0] == {
        "id": "rs_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": "Short."}],
        "encrypted_content": "gAAA",
    }  # fmt: skip
    assert back[0]["reasoning_content"] == "Let me think."
    assert back[1]["reasoning_details"] == [{**kind, "text": "Hm.", "signature": "s=="}]
    assert back[2]["reasoning_details"] == [summary, sealed]


@pytest.mark.requirement("responses:stream")
async def test_a_refusal_and_citations_are_parts_of_the_message(tmp_path: Path) -> None:
    citation = {"url": "https://x.example", "title": "X", "start_index": 0, "end_index": 2}
    cited = [chunk({"content": "So."}), chunk({"annotations": [{"type": "url_citation", "url_citation": citation}]})]
    refused = [chunk({"refusal": "I "}), chunk({"refusal": "cannot."})]
    scripts = [Script([*one, chunk({}, "stop"), DONE]) for one in (cited, refused)]
    async with gateway(tmp_path, scripts, served=True) as one:
        first = check_events(await stream(one.url, {"input": "Hi"}))
        second = check_events(await stream(one.url, {"input": "Ho"}))
    assert first["output"][0]["content"][0]["annotations"] == [{"type": "url_citation", **citation}]
    assert second["output"][0]["content"] == [{"type": "refusal", "refusal": "I cannot."}]


@pytest.mark.requirement("responses:ends")
@pytest.mark.parametrize(("finish", "reason"), [("length", "max_output_tokens"), ("content_filter", "content_filter")])
async def test_an_answer_that_is_cut_is_incomplete(tmp_path: Path, finish: str, reason: str) -> None:
    script = Script([chunk({"content": "Hel"}), chunk({}, finish), DONE])
    async with gateway(tmp_path, [script], served=True) as one:
        events = await stream(one.url, {"input": "Hi"})
        whole = await ask(one.url, {"input": "Hi"})
    last = check_events(events)
    assert events[-1]["type"] == "response.incomplete"
    for response in (last, whole):
        assert (response["status"], response["incomplete_details"]) == ("incomplete", {"reason": reason})
        assert response["output"][0]["status"] == "incomplete"


@pytest.mark.requirement("responses:errors")
async def test_an_answer_that_breaks_off_ends_with_an_error_and_a_failed_response(tmp_path: Path) -> None:
    async with gateway(tmp_path, [Script(streamed("Hello there.")[:3], then="cut")], served=True) as one:
        events = await stream(one.url, {"input": "Hi"})
        status, raw = await post(one.url, {"model": "m", "input": "Hi"})
    last = check_events(events)
    error = next(event for event in events if event["type"] == "error")
    assert error["code"] == error["error"]["code"] == "upstream_cut_off"
    assert last["error"] == {"code": "server_error", "message": error["message"]}
    assert last["output"][0]["status"] == "incomplete"
    assert (status, json.loads(raw)["error"]["code"]) == (502, "upstream_cut_off")


@pytest.mark.requirement("responses:stream")
async def test_an_answer_in_one_piece_of_a_provider_is_streamed_all_the_same(tmp_path: Path) -> None:
    whole = Script([completion({"role": "assistant", "content": "Hello."})], kind="application/json")
    async with gateway(tmp_path, [whole], served=True) as one:
        last = check_events(await stream(one.url, {"input": "Hi"}))
    assert last["output"][0]["content"][0]["text"] == "Hello."


@pytest.mark.requirement("responses:repeats")
async def test_a_repeated_request_after_a_tool_joins_its_turn_in_either_form(tmp_path: Path) -> None:
    scripts = [says(BLOCK), Script([], status=500), Script([], status=500), Script([], status=500), says("Done.")]
    body = {"input": "Hi", "client_metadata": {"a": "1"}}
    turn = {"x_codex_turn_metadata": json.dumps({"turn_id": "t1"}), "session_id": "s1"}
    async with gateway(tmp_path, scripts, served=True) as one:
        events = await stream(one.url, body, **turn)
        status, raw = await post(one.url, {"model": "m", "client_metadata": {"a": "2"}, "input": "Hi"}, **turn)
        same = check_events(await stream(one.url, body, **turn))
    failed, done = check_events(events), json.loads(raw)
    assert (failed["status"], events[-2]["code"]) == ("failed", "tools_have_run")
    assert (status, done["status"], len(one.ran)) == (200, "completed", 1)
    assert [item["type"] for item in done["output"]] == ["mcp_call", "message"]
    assert (same["id"], same["output"]) == (done["id"], done["output"])


@pytest.mark.requirement("responses:repeats")
async def test_a_turn_that_its_client_names_is_joined_with_all_items_in_place_of_the_response_before(
    tmp_path: Path,
) -> None:
    """Codex does so when its WebSocket breaks, and leaves our calls out; on a socket each message names the turn."""
    failing = [Script([], status=500)] * 3
    turns = [{"client_metadata": {"x-codex-turn-metadata": json.dumps({"turn_id": f"t{at}"})}} for at in (1, 2)]
    async with gateway(
        tmp_path, [says(BLOCK), says("Hello."), says(BLOCK), *failing, says("Done.")], served=True
    ) as one:
        first = await ask(one.url, {"input": "Hi", **turns[0]})
        await stream(one.url, {"input": "And?", "previous_response_id": first["id"], **turns[1]})
        history = [("user", "Hi"), ("assistant", "Hello."), ("user", "And?")]
        items = [{"role": role, "content": content} for role, content in history]
        done = await ask(one.url, {"input": items, **turns[1]})
    assert done["output"][-1]["content"][0]["text"] == "Done."
    assert len(one.ran) == 2
