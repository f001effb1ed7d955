"""Requests of Responses read as requests for a chat."""

from pathlib import Path
from typing import Any

import openai
import pytest

from tests.gateway.response_events import ask, post
from tests.gateway.serving import gateway, request
from tests.gateway.upstream import Script, replies
from toolyard.gateway.faults import ChatFailed
from toolyard.gateway.protocols.responses.client_request import parse_request

CALL: Any = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}


def chat(**sent: Any) -> dict[str, Any]:
    return parse_request({"model": "m", "input": "Hi", **sent}).body


def messages(*items: Any, **sent: Any) -> Any:
    return chat(input=[*items], **sent)["messages"]


@pytest.mark.requirement("responses:create")
def test_instructions_and_system_messages_at_the_beginning_are_one() -> None:
    read = messages(
        {"role": "developer", "content": "A"}, {"role": "user", "content": "B"}, {"role": "system", "content": "C"},
        instructions="Z",
    )  # fmt: skip
    assert [(one["role"], one["content"]) for one in read] == [("system", "Z\n\nA"), ("user", "B"), ("system", "C")]


@pytest.mark.requirement("responses:create")
def test_every_kind_of_content_has_its_part() -> None:
    parts = [
        {"type": "input_text", "text": "Look"},
        {"type": "input_image", "image_url": "data:image/png;base64,AA==", "detail": "low"},
        {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,AA=="},
        {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}},
        {"type": "input_image", "file_id": "file_1"},
    ]
    content = messages({"role": "user", "content": parts})[0]["content"]
    assert [part["type"] for part in content] == ["text", "image_url", "file", "input_audio", "native"]
    assert content[1]["image_url"] == {"url": "data:image/png;base64,AA==", "detail": "low"}
    assert content[4]["item"] == parts[4]


@pytest.mark.requirement("responses:create", "responses:client_tools")
def test_what_a_model_wrote_is_one_message_until_it_has_calls() -> None:
    ours = {
        "type": "mcp_call",
        "id": "mcp_1",
        "server_label": "toolyard",
        "name": "Say",
        "arguments": "{}",
        "output": "x",
    }
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    picture = {"type": "input_image", "image_url": "https://x.example/a.png"}
    output = {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "1"}, picture]}
    read = messages(
        {"role": "assistant", "content": [{"type": "output_text", "text": "A"}]}, ours, {**ours, "id": "mcp_2"}, search,
        {"role": "assistant", "content": "B"}, CALL, output, {"role": "user", "content": "C"},
    )  # fmt: skip
    assert [(one["role"], one["content"]) for one in read[:5]] == [
        ("assistant", "A"), ("tool", "x"), ("assistant", None), ("tool", "x"), ("assistant", "B"),
    ]  # fmt: skip
    assert [call["id"] for one in read for call in one.get("tool_calls", [])] == ["mcp_1", "mcp_2", "c"]
    assert read[4]["native"] == [{"type": "native", "protocol": "responses", "item": search, "index": 0}]
    assert (read[5]["content"], read[6]["content"][1]["type"], read[7]["content"]) == ("1", "image_url", "C")


@pytest.mark.requirement("responses:create")
def test_options_have_the_names_of_chat_and_the_rest_goes_to_its_own_protocol() -> None:
    form = {"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": True}
    body = chat(
        text={"format": form, "verbosity": "low"}, reasoning={"effort": "high", "summary": "auto"}, top_logprobs=2,
        max_output_tokens=50, metadata={"a": "b"}, include=["reasoning.encrypted_content"], truncation="auto",
        prompt_cache_key="k", odd=1, store=False, temperature=0.5, client_metadata={"x": "y"},
    )  # fmt: skip
    assert body["response_format"]["json_schema"] == {"name": "n", "schema": {"type": "object"}, "strict": True}
    assert (body["max_tokens"], body["reasoning_effort"], body["verbosity"]) == (50, "high", "low")
    assert (body["logprobs"], body["top_logprobs"], body["temperature"], body["stream"]) == (True, 2, 0.5, True)
    assert body["native"]["fields"] == {
        "include": ["reasoning.encrypted_content"], "truncation": "auto", "prompt_cache_key": "k", "odd": 1,
        "reasoning": {"effort": "high", "summary": "auto"},
    }  # fmt: skip


@pytest.mark.requirement("responses:client_tools")
def test_allowed_tools_leave_the_model_no_others() -> None:
    tools = [{"type": "function", "name": name} for name in ("a", "b")]
    allowed: dict[str, Any] = {
        "type": "allowed_tools",
        "mode": "required",
        "tools": [{"type": "function", "name": "b"}],
    }
    without = chat(tools=tools, tool_choice=allowed)
    ours = {"type": "mcp", "server_label": "toolyard"}
    both = chat(tools=[*tools, ours], tool_choice={**allowed, "tools": [*allowed["tools"], {**ours, "name": "Read"}]})
    assert [tool["function"]["name"] for tool in without["tools"]] == ["b"]
    assert (without["tool_choice"], without["toolyard"], without["model"]) == ("required", {"tools": []}, "m")
    assert (both["toolyard"], both["model"]) == ({"tools": ["Read"]}, "m+tools")


@pytest.mark.requirement("responses:errors")
@pytest.mark.parametrize(
    ("sent", "param"),
    [
        ({"input": 5}, "input"),
        ({"input": []}, "input"),
        ({"input": [{"role": "king", "content": ""}]}, "input[0].role"),
        ({"input": [{"role": "user", "content": [5]}]}, "input[0].content"),
        ({"input": [{"type": "function_call", "call_id": "c"}]}, "input[0].name"),
        ({"input": [{"type": "function_call_output", "call_id": "c", "output": ""}]}, "input[0].call_id"),
        ({"input": [{"type": "item_reference", "id": "msg_x"}]}, "input[0].id"),
        ({"input": [{"type": "mcp_approval_response"}]}, "input[0]"),
        ({"stream": 1}, "stream"),
        ({"max_output_tokens": -1}, "max_output_tokens"),
        ({"tools": {}}, "tools"),
        ({"tools": [{"type": "function"}]}, "tools[0].name"),
        ({"tool_choice": "any"}, "tool_choice"),
        ({"conversation": "a b"}, "conversation"),
        ({"conversation": "c", "previous_response_id": "r"}, "previous_response_id"),
        ({"toolyard": {"show": "raw"}}, "toolyard.show"),
    ],
)
def test_a_request_that_is_wrong_is_told_where(sent: dict[str, Any], param: str) -> None:
    with pytest.raises(ChatFailed) as failed:
        parse_request({"model": "m", "input": "Hi", **sent})
    assert failed.value.fault.param == param


@pytest.mark.requirement("responses:stored")
async def test_items_that_are_only_named_are_those_of_stored_responses(tmp_path: Path) -> None:
    async with gateway(tmp_path, replies(request(text="hello"), "Done.", "Yes."), served=True) as one:
        first = await ask(one.url, {"input": "Hi"})
        named = [{"type": "item_reference", "id": item["id"]} for item in first["output"]]
        question = {"role": "user", "content": "And?"}
        await ask(one.url, {"input": [{"role": "user", "content": "Hi"}, *named, question]})
        status, _ = await post(one.url, {"model": "m", "input": [*named, question]}, key="you")
        sent = one.upstream.bodies[2]["messages"]
    assert status == 404
    assert [message["role"] for message in sent] == ["user", "assistant", "tool", "assistant", "user"]


@pytest.mark.requirement("responses:own_tools")
async def test_no_more_of_our_tools_run_than_a_request_allows(tmp_path: Path) -> None:
    blocks = "\n".join([request(text="1"), request(text="2")])
    async with gateway(tmp_path, replies(blocks, request(text="3"), "Done."), served=True) as one:
        response = await ask(one.url, {"input": "Hi", "max_tool_calls": 1})
    assert len(one.ran) == 1
    assert response["output"][-1]["content"][0]["text"] == "Done."


@pytest.mark.requirement("responses:repeats", "http:idempotency")
async def test_a_request_with_a_key_runs_once_also_in_the_background(tmp_path: Path) -> None:
    async with gateway(tmp_path, replies("Hello."), served=True) as one:
        for number, more in enumerate(({}, {"stream": True}, {"background": True})):
            body = {"model": "m", "input": f"Hi {number}", **more}
            answers = [await post(one.url, body, idempotency_key=f"k{number}") for _ in range(2)]
            assert answers[0] == answers[1]
            assert answers[0][0] == 200
    assert [raw["messages"][0]["content"] for raw in one.upstream.bodies] == ["Hi 0", "Hi 1", "Hi 2"]


@pytest.mark.requirement("responses:create", "http:idempotency")
@pytest.mark.parametrize("is_streamed", [False, True])
async def test_a_request_with_a_key_that_failed_before_its_answer_fails_the_same_again(
    tmp_path: Path, is_streamed: bool
) -> None:
    async with gateway(tmp_path, [Script([], status=500)], served=True) as one:
        body = {"model": "m", "input": "Hi", "stream": is_streamed}
        answers = [await post(one.url, body, idempotency_key="k") for _ in range(2)]
    assert answers[0] == answers[1]
    assert answers[0][0] == 500


@pytest.mark.requirement("responses:stored", "p:P9")
async def test_a_secret_in_what_is_stored_is_masked(tmp_path: Path) -> None:
    async with gateway(tmp_path, replies("The key is sk-the-key."), served=True) as one, one.client() as client:
        made = await client.responses.create(model="m", input="Say sk-the-key.")
        stored = await client.responses.retrieve(made.id)
        listed = [item async for item in await client.responses.input_items.list(made.id)]
    assert isinstance(stored, openai.types.responses.Response)
    assert "sk-the-key" not in stored.to_json() + "".join(item.to_json() for item in listed)
