"""Requests of Anthropic's Messages, as chats."""

import json
from typing import Any

import pytest

from toolyard.gateway.faults import ChatFailed
from toolyard.gateway.media_parts import replace_parts
from toolyard.gateway.protocols.chat_body import drop_native
from toolyard.gateway.protocols.messages.client_request import MessagesRequest, read_messages_request
from toolyard.gateway.protocols.messages.provider_request import to_messages
from toolyard.gateway.tool_calls.native_calls import list_client_tools

USER: Any = {"role": "user", "content": "Hi"}
BILLING = {"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1; cch=abc;"}
CACHED = {"cache_control": {"type": "ephemeral"}}
PNG = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0="}}
PNG_PART = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0="}}


def native(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "native", "protocol": "messages", "item": item}


def read(*messages: Any, headers: dict[str, str] | None = None, **more: Any) -> MessagesRequest:
    body: Any = {"model": "m", "max_tokens": 100, "messages": [*messages] or [USER], **more}
    return read_messages_request(body, headers or {})


def chat(*messages: Any, **more: Any) -> Any:
    return read(*messages, **more).body


def written(*messages: Any, **more: Any) -> Any:
    """The messages of chat, without what stands beside them for a provider of this protocol."""
    return drop_origins(chat(*messages, **more)["messages"])


def drop_origins(value: Any) -> Any:
    if isinstance(value, list):
        return [drop_origins(one) for one in value]
    if isinstance(value, dict):
        return {key: drop_origins(inner) for key, inner in value.items() if key != "origin"}
    return value


@pytest.mark.requirement("anthropic:request")
def test_the_fields_of_chat_are_those_of_chat_and_all_others_stay_native() -> None:
    body = chat(
        temperature=0.5,
        top_p=0.9,
        top_k=5,
        stop_sequences=["END"],
        metadata={"user_id": "u"},
        service_tier="auto",
        context_management={"edits": []},
        output_config={"effort": "low"},
        thinking={"type": "adaptive"},
        invented=1,
        headers={"anthropic-beta": "one,two"},
    )
    assert body == {
        "messages": [USER],
        "stream": True,
        "stream_options": {"include_usage": True},
        "model": "m",
        "max_tokens": 100,
        "temperature": 0.5,
        "top_p": 0.9,
        "stop": ["END"],
        "reasoning_effort": "low",
        "native": {
            "protocol": "messages",
            "headers": {"anthropic-beta": "one,two"},
            "fields": {
                "top_k": 5,
                "metadata": {"user_id": "u"},
                "service_tier": "auto",
                "context_management": {"edits": []},
                "output_config": {"effort": "low"},
                "thinking": {"type": "adaptive"},
                "invented": 1,
            },
        },
    }


@pytest.mark.requirement("anthropic:request")
@pytest.mark.parametrize(
    ("given", "sent"),
    [("m", "m"), ("m[1m]", "m"), ("m+tools", "m+tools"), ("m[1m]+plain", "m+plain"), ("m+tools[1m]", "m+tools")],
)
def test_the_suffix_of_a_long_context_is_no_part_of_a_model(given: str, sent: str) -> None:
    assert chat(model=given)["model"] == sent


@pytest.mark.requirement("anthropic:request")
def test_system_texts_keep_their_order_and_the_billing_header_is_for_anthropic_alone() -> None:
    told = [BILLING, {"type": "text", "text": "Be brief."}, {"type": "text", "text": "Be kind.", **CACHED}]
    later = {"role": "system", "content": "New rules."}
    developer = {"role": "developer", "content": [{"type": "text", "text": "Newer ones."}]}
    assert written(USER, later, developer, system=told) == [
        {"role": "system", "content": [native(BILLING), told[1], told[2]]},
        USER,
        {"role": "system", "content": "New rules."},
        {"role": "system", "content": "Newer ones."},
    ]
    plain = [{"type": "text", "text": "One."}, {"type": "text", "text": "Two."}]
    assert written(system=plain)[0] == {"role": "system", "content": "One.\n\nTwo."}
    assert written(system="One.")[0] == {"role": "system", "content": "One."}


@pytest.mark.requirement("anthropic:request")
def test_pictures_and_documents_are_parts_and_unknown_blocks_stay_as_they_are() -> None:
    pdf = {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}
    found = {"type": "search_result", "source": "s", "title": "t", "content": []}
    stored = {"type": "image", "source": {"type": "file", "file_id": "file_1"}}
    content = [
        {"type": "text", "text": "Look.", **CACHED},
        PNG,
        {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
        {"type": "document", "source": pdf, "title": "A"},
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "Words."}, "title": "B"},
        {"type": "document", "source": {"type": "url", "url": "https://example.org/a.pdf"}},
        {"type": "document", "source": {"type": "file", "file_id": "file_2"}},
        {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "In it."}, PNG]}},
        found,
        stored,
    ]
    assert written({"role": "user", "content": content})[0]["content"] == [
        {"type": "text", "text": "Look.", **CACHED},
        PNG_PART,
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
        {"type": "file", "file": {"filename": "A", "file_data": "data:application/pdf;base64,JVBERi0="}},
        {"type": "text", "text": "B\n\nWords."},
        {"type": "file", "file": {"file_url": "https://example.org/a.pdf"}},
        {"type": "file", "file": {"file_id": "file_2"}},
        {"type": "text", "text": "In it."},
        PNG_PART,
        native(found),
        native(stored),
    ]


@pytest.mark.requirement("anthropic:request")
def test_calls_of_the_client_are_answered_before_anything_else_is_said() -> None:
    asked = [
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "t1", "name": "look", "input": {"at": "a"}, **CACHED},
        {"type": "tool_use", "id": "t2", "name": "look", "input": {}},
        {"type": "text", "text": " Now."},
    ]
    results = [
        {"type": "text", "text": "Here."},
        {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "seen"}, PNG], **CACHED},
        {"type": "tool_result", "tool_use_id": "t2", "content": "not there", "is_error": True},
    ]
    call = {"type": "function", "function": {"name": "look", "arguments": '{"at":"a"}'}}
    assert written(USER, {"role": "assistant", "content": asked}, {"role": "user", "content": results})[1:] == [
        {
            "role": "assistant",
            "content": [{"type": "text", "text": "I look."}, {"type": "text", "text": " Now."}],
            "tool_calls": [
                {"id": "t1", **call, **CACHED},
                {"id": "t2", "type": "function", "function": {"name": "look", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "t1", "content": "seen", **CACHED},
        {"role": "tool", "tool_call_id": "t2", "content": "Error: not there"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "<!-- VCP_TOOL_PAYLOAD -->\nMedia of the results above:"},
                PNG_PART,
                {"type": "text", "text": "Here."},
            ],
        },
    ]


@pytest.mark.requirement("anthropic:request")
def test_what_says_more_than_chat_can_comes_back_whole_to_a_provider_of_the_same_protocol() -> None:
    cited = {"type": "char_location", "cited_text": "W", "document_index": 0, "start_char_index": 0}
    cites = {"citations": {"enabled": True}}
    words = {"type": "text", "media_type": "text/plain", "data": "Words."}
    pdf = {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}
    inner = {"type": "content", "content": [{"type": "text", "text": "In it."}, PNG, {"type": "text", "text": "Too."}]}
    asked = [
        {"type": "text", "text": "Look.", **CACHED},
        *({"type": "document", "source": source, "title": "A", **cites} for source in (words, pdf, inner)),
    ]
    said = [
        {"type": "text", "text": "W.", "citations": [cited]},
        {"type": "tool_use", "id": "t1", "name": "look", "input": {"at": 1}, "caller": {"type": "direct"}},
        {"type": "tool_use", "id": "t2", "name": "look", "input": {}},
        {"type": "tool_use", "id": "t3", "name": "find", "input": {}},
    ]
    found = [{"type": "tool_reference", "tool_name": "later"}]
    results = [
        {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "seen"}, PNG], **CACHED},
        {"type": "tool_result", "tool_use_id": "t2", "content": "not there", "is_error": True},
        {"type": "tool_result", "tool_use_id": "t3", "content": found},
        {"type": "text", "text": "And?"},
    ]
    messages = [
        {"role": role, "content": content}
        for role, content in (("user", asked), ("assistant", said), ("user", results))
    ]
    schema = {"input_schema": {"type": "object"}}
    tools = [
        {"name": "look", **schema, "input_examples": [{"at": 1}], "allowed_callers": ["direct"]},
        {"name": "find", **schema},
        {"name": "later", **schema, "defer_loading": True},
        {"name": "never", **schema, "defer_loading": True},
    ]
    body = chat(*messages, tools=tools)
    sent = to_messages(body).body
    assert sent["messages"] == messages
    assert sent["tools"] == tools
    assert "origin" not in json.dumps(drop_native(body))
    refused = to_messages(body | {"messages": replace_parts(body["messages"], frozenset({"image"}))}).body
    assert "iVBORw0=" not in json.dumps(refused), "a model that refuses pictures gets them from nowhere"
    body["messages"][0]["content"][1]["text"] = "Changed on its way."
    assert "Changed on its way." in json.dumps(to_messages(body).body)


@pytest.mark.requirement("anthropic:tools")
def test_tools_that_a_system_message_adds_or_removes_are_offered_from_there_on() -> None:
    schema = {"input_schema": {"type": "object"}}

    def change(kind: str, name: str, **more: Any) -> dict[str, Any]:
        return {"type": f"tool_{kind}", "tool": {"type": "tool_reference", "name": name} | more}

    tools = [{"name": "late", **schema, "defer_loading": True}, {"name": "gone", **schema}, {"name": "back", **schema}]
    added = {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": {"name": "new", **schema}}}
    blocks = [change("addition", "late"), change("removal", "gone"), change("removal", "back")]
    messages = [
        *(USER, {"role": "system", "content": [*blocks, {"type": "text", "text": "Mind it."}]}),
        {"role": "assistant", "content": [{"type": "text", "text": "Yes."}]},
        *(USER, {"role": "system", "content": [added, change("addition", "back")]}),
    ]
    body = chat(*messages, tools=tools)
    assert list_client_tools(body) == {"late", "gone", "back", "new"}, "a call of any of them is the client's"
    plain: Any = drop_native(body)
    assert [tool["function"]["name"] for tool in plain["tools"]] == ["late", "back", "new"]
    assert [one["content"] for one in plain["messages"] if one["role"] == "system"] == ["Mind it."]
    sent: Any = to_messages(body).body
    assert sent["tools"] == tools
    assert [one["content"] for one in sent["messages"] if one["role"] == "system"] == [
        messages[1]["content"],
        messages[4]["content"],
    ]
    with pytest.raises(ChatFailed, match=r"messages\[1\].content\[0\].tool' must be an object"):
        chat(USER, {"role": "system", "content": [{"type": "tool_addition"}]})


@pytest.mark.requirement("anthropic:thinking")
def test_signed_thinking_keeps_its_place_and_bytes_and_unsigned_thinking_is_reasoning() -> None:
    said = [
        {"type": "thinking", "thinking": "Hm. ", "signature": "EqQB/+=="},
        {"type": "redacted_thinking", "data": "b64=="},
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "t1", "name": "look", "input": {}},
    ]
    unsigned = [{"type": "thinking", "thinking": "Hm.", "signature": ""}, {"type": "text", "text": "Yes."}]
    made = written(USER, {"role": "assistant", "content": said}, {"role": "assistant", "content": unsigned})
    details = {"format": "anthropic-claude-v1"}
    assert made[1]["reasoning_details"] == [
        {"type": "reasoning.text", "text": "Hm. ", "signature": "EqQB/+==", **details, "index": 0},
        {"type": "reasoning.encrypted", "data": "b64==", **details, "index": 1},
    ]
    assert made[2] == {"role": "assistant", "content": "Yes.", "reasoning_content": "Hm."}


@pytest.mark.requirement("anthropic:fed-back")
def test_calls_of_ours_that_are_sent_back_are_calls_with_their_results() -> None:
    def use(id_: str, path: str) -> dict[str, Any]:
        ours = {"type": "mcp_tool_use", "server_name": "toolyard", "id": id_, "name": "Read"}
        return ours | {"input": {"path": path}}

    def result(id_: str, text: str) -> dict[str, Any]:
        return {"type": "mcp_tool_result", "tool_use_id": id_, "content": [{"type": "text", "text": text}]}

    theirs = {"type": "mcp_tool_use", "id": "x", "name": "n", "server_name": "other", "input": {}}
    said = [
        {"type": "text", "text": ""},
        *(use("a", "a.md"), use("b", "b.md"), result("a", "A"), result("b", "B")),
        *({"type": "text", "text": "Now c."}, use("c", "c.md"), use("d", "d.md")),
        *(result("c", "C"), {"type": "text", "text": "All read."}, result("d", "D"), theirs),
        *(use("waits", "e.md"), {"type": "text", "text": "It waits."}),
    ]
    asked = read(USER, {"role": "assistant", "content": said}, USER)
    messages: Any = asked.body["messages"]
    roles = [(one["role"], one.get("content"), len(one.get("tool_calls", ()))) for one in messages[1:-1]]
    assert roles == [
        ("assistant", "", 2),
        ("tool", "A", 0),
        ("tool", "B", 0),
        ("assistant", "Now c.", 2),
        ("tool", "C", 0),
        ("tool", "D", 0),
        (
            "assistant",
            [{"type": "text", "text": "All read."}, native(theirs), {"type": "text", "text": "It waits."}],
            0,
        ),
    ]
    assert asked.own_calls == frozenset((id_, "Read") for id_ in "abcd")
    assert read().own_calls is None


@pytest.mark.requirement("anthropic:request")
def test_tools_are_functions_and_those_of_anthropic_stay_the_clients() -> None:
    bash = {"type": "bash_20250124", "name": "bash"}
    look = {"name": "look", "description": "Look.", "input_schema": {"type": "object"}, "strict": True, **CACHED}
    body = chat(tools=[look, bash], tool_choice={"type": "any", "disable_parallel_tool_use": True})
    assert body["tools"] == [
        {
            "type": "function",
            "function": {"name": "look", "description": "Look.", "parameters": {"type": "object"}, "strict": True},
            **CACHED,
        },
        {"type": "native", "protocol": "messages", "tool": bash},
    ]
    assert (body["tool_choice"], body["parallel_tool_calls"]) == ("required", False)
    assert list_client_tools(body) == {"look", "bash"}
    named = chat(tools=[look], tool_choice={"type": "tool", "name": "look"})
    assert named["tool_choice"] == {"type": "function", "function": {"name": "look"}}


@pytest.mark.requirement("anthropic:request")
def test_deferred_tools_are_offered_once_a_search_has_named_them() -> None:
    tools: Any = [{"name": name, "input_schema": {}, "defer_loading": True} for name in ("found", "hidden")]
    search = {"type": "tool_use", "id": "t1", "name": "ToolSearch", "input": {"query": "f"}}
    found = {"type": "tool_reference", "tool_name": "found"}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": [found]}
    messages = (USER, {"role": "assistant", "content": [search]}, {"role": "user", "content": [result]})
    body = chat(*messages, tools=tools)
    assert [tool["type"] for tool in body["tools"]] == ["function", "native"]
    assert body["messages"][-1]["content"] == "The tool found can be called now."


@pytest.mark.requirement("anthropic:claude-code")
def test_titles_probes_and_a_listed_server_decide_about_our_tools() -> None:
    schema = {"type": "object", "properties": {"title": {"type": "string"}}}
    title = chat(tools=[], output_config={"format": {"type": "json_schema", "schema": schema}})
    assert title["response_format"] == {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    assert title["toolyard"] == {"offer": "none"}
    assert "tools" not in title
    assert chat(max_tokens=1)["toolyard"] == {"offer": "none"}
    assert "toolyard" not in chat(tools=[], headers={"x-toolyard-offer": "native"})
    ours = {"type": "url", "name": "toolyard", "url": "https://example.org"}
    other = {"type": "url", "name": "other", "url": "https://example.org"}
    look = {"name": "look", "input_schema": {}}
    toolset = {"type": "mcp_toolset", "mcp_server_name": "toolyard"}
    listed = read(mcp_servers=[ours, other], tools=[look, toolset])
    assert listed.lists_server
    assert listed.body["model"] == "m+tools"
    assert listed.body["native"] == {"protocol": "messages", "fields": {"mcp_servers": [other]}}
    assert len(listed.body["tools"]) == 1  # type: ignore[arg-type]
    assert read(mcp_servers=[ours]).body["native"] == {"protocol": "messages", "fields": {}}


@pytest.mark.requirement("anthropic:once")
def test_a_request_is_the_same_whether_streamed_or_not_and_whatever_is_billed() -> None:
    one, other = (read(stream=stream, system=[billed, {"type": "text", "text": "x"}]) for stream, billed in (
        (True, BILLING), (None, {"type": "text", "text": "x-anthropic-billing-header: other"}),
    ))  # fmt: skip
    assert one.identity == other.identity
    omitted = {"type": "adaptive", "display": "omitted"}  # Claude Code leaves it out after an error
    assert read(thinking=omitted, max_tokens=32_000).identity == read(thinking={"type": "adaptive"}).identity
    assert read(USER, USER).identity != read(USER).identity
    assert (one.is_streamed, other.is_streamed) == (True, False)
    session = read(headers={"x-claude-code-session-id": "s1"})
    assert session.conversation == "s1"


@pytest.mark.requirement("anthropic:request", "anthropic:faults")
@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"messages": "x"}, "'messages' must be a list"),
        ({"messages": []}, "'messages' must be a list with at least one message"),
        ({"messages": [1]}, "'messages[0]' must be an object"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "'messages[0].role' must be one of user, assistant, system"),
        ({"messages": [{"role": "user"}]}, "'messages[0].content' must be a text or a list of blocks"),
        ({"messages": [{"role": "user", "content": [{}]}]}, "'messages[0].content[0].type' must be a text"),
        (
            {"messages": [USER, {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "b"}]}]},
            "'messages[1].content[0].input' must be an object",
        ),
        (
            {"messages": [{"role": "user", "content": [{"type": "image", "source": {"type": "base64"}}]}]},
            "'messages[0].content[0].source.data' must be a text",
        ),
        ({"system": 1}, "'system' must be a text or a list of blocks"),
        ({"max_tokens": 0}, "'max_tokens' must be a whole number above 0"),
        ({"max_tokens": True}, "'max_tokens' must be a whole number above 0"),
        ({"tools": [{"input_schema": {}}]}, "'tools[0].name' must be a text"),
        ({"tools": [{"name": "a"}]}, "'tools[0].input_schema' must be an object"),
        ({"tool_choice": {"type": "all"}}, "'tool_choice.type' must be one of auto, any, none, tool"),
        ({"stream": "yes"}, "'stream' must be true or false"),
        ({"model": 1}, "'model' must be a text"),
        ({"stop_sequences": "x"}, "'stop_sequences' must be a list"),
        ({"thinking": "x"}, "'thinking' must be an object"),
    ],
)
def test_what_is_malformed_is_named_with_its_place(wrong: dict[str, Any], problem: str) -> None:
    body: Any = {"model": "m", "max_tokens": 100, "messages": [USER], **wrong}
    with pytest.raises(ChatFailed) as caught:
        read_messages_request(body, {})
    assert (caught.value.fault.message, caught.value.fault.status) == (problem, 400)
