"""Chat requests as requests of the other protocols."""

import json
from typing import Any, Final

import pytest

from toolyard.gateway.faults import ChatFault
from toolyard.gateway.protocols.messages.provider_request import (
    DEFAULT_TOKENS,
    Allowances,
    Thinking,
    find_allowances,
    to_messages,
)
from toolyard.gateway.protocols.responses.provider_request import to_responses

pytestmark = pytest.mark.requirement("protocols:provider-request")
LOOK: Any = {"type": "function", "function": {"name": "Look", "parameters": {"type": "object", "properties": {}}}}
PNG = "data:image/png;base64,iVBORw0KGgo="
MARK: Final = {"cache_control": {"type": "ephemeral"}}


def call(id_: str = "call_1", name: str = "Look", arguments: str = "{}") -> Any:
    return {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}


def body(*messages: Any, **more: Any) -> Any:
    return {"model": "m", "messages": list(messages), **more}


def user(content: Any = "Hi.") -> Any:
    return {"role": "user", "content": content}


def messages_of(*messages: Any, **more: Any) -> Any:
    return to_messages(body(*messages, **more)).body["messages"]


def input_of(*messages: Any, **more: Any) -> Any:
    return to_responses(body(*messages, **more)).body["input"]


# --- Responses


def test_a_conversation_becomes_items_of_responses() -> None:
    history: Any = [
        {"role": "system", "content": "Be brief."},
        user([{"type": "text", "text": "See:"}, {"type": "image_url", "image_url": {"url": PNG, "detail": "low"}}]),
        {"role": "assistant", "content": "I look.", "tool_calls": [call()]},
        {"role": "tool", "tool_call_id": "call_1", "content": "a cat"},
    ]
    assert input_of(*history) == [
        {"type": "message", "role": "system", "content": [{"type": "input_text", "text": "Be brief."}]},
        {
            "type": "message",
            "role": "user",
            "content": [
                {"type": "input_text", "text": "See:"},
                {"type": "input_image", "image_url": PNG, "detail": "low"},
            ],
        },
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "I look.", "annotations": []}],
        },
        {"type": "function_call", "call_id": "call_1", "name": "Look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_1", "output": "a cat"},
    ]


def test_fields_of_chat_become_those_of_responses() -> None:
    schema = {"name": "title", "schema": {"type": "object"}, "strict": True}
    made = to_responses(
        body(
            user(),
            tools=[LOOK],
            tool_choice={"type": "function", "function": {"name": "Look"}},
            max_tokens=5,
            stop=["x"],
            n=2,
            seed=1,
            reasoning_effort="low",
            verbosity="low",
            response_format={"type": "json_schema", "json_schema": schema},
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    assert made.body == {
        "model": "m",
        "store": False,
        "stream": True,
        "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi."}]}],
        "tools": [
            {
                "type": "function",
                "name": "Look",
                "description": None,
                "parameters": {"type": "object", "properties": {}},
                "strict": False,
            }
        ],
        "tool_choice": {"type": "function", "name": "Look"},
        "max_output_tokens": 16,
        "reasoning": {"effort": "low"},
        "include": ["reasoning.encrypted_content"],
        "text": {"format": {"type": "json_schema", **schema}, "verbosity": "low"},
    }
    assert made.wants_usage


def test_a_choice_of_several_tools_is_flat_in_responses() -> None:
    allowed = {"mode": "required", "tools": [{"type": "function", "function": {"name": "Look"}}]}
    made = to_responses(body(user(), tools=[LOOK], tool_choice={"type": "allowed_tools", "allowed_tools": allowed}))
    assert made.body["tool_choice"] == {
        "type": "allowed_tools",
        "mode": "required",
        "tools": [{"type": "function", "name": "Look"}],
    }


def test_reasoning_goes_back_to_responses_between_what_it_led_to() -> None:
    """Pieces of one item share its id; the gaps in the numbers are the places of text and calls."""
    of = {"format": "openai-responses-v1"}
    details: Any = [
        {"type": "reasoning.summary", "summary": "I ", "id": "rs_1", "index": 0, **of},
        {"type": "reasoning.summary", "summary": "see.", "id": "rs_1", "index": 0, **of},
        {"type": "reasoning.encrypted", "data": "AA==", "id": "rs_1", "index": 1, **of},
        {"type": "reasoning.encrypted", "data": "BB==", "id": "rs_2", "index": 3, **of},
        {"type": "reasoning.text", "text": "not theirs", "signature": "s", "format": "anthropic-claude-v1", "index": 5},
        {"type": "reasoning.summary", "summary": "nothing is stored", "id": "rs_3", "index": 6, **of},
    ]
    asked: Any = {"role": "assistant", "content": "Hm.", "reasoning_details": details, "tool_calls": [call()]}
    items = input_of(user(), asked, {"role": "tool", "tool_call_id": "call_1", "content": "x"})
    assert [item["type"] for item in items[1:]] == [
        "reasoning", "message", "reasoning", "function_call", "function_call_output",
    ]  # fmt: skip
    assert items[1] == {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "I see."}],
        "encrypted_content": "AA==",
    }
    assert items[3] == {"type": "reasoning", "id": "rs_2", "summary": [], "encrypted_content": "BB=="}


def test_custom_tools_are_flat_in_responses() -> None:
    grammar = {"definition": "start: x", "syntax": "lark"}
    tool = {"type": "custom", "custom": {"name": "Patch", "format": {"type": "grammar", "grammar": grammar}}}
    asked = {
        "role": "assistant",
        "tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "Patch", "input": "x"}}],
    }
    made: Any = to_responses(body(user(), asked, {"role": "tool", "tool_call_id": "c", "content": "ok"}, tools=[tool]))
    assert made.body["tools"] == [{"type": "custom", "name": "Patch", "format": {"type": "grammar", **grammar}}]
    assert made.body["input"][1:] == [
        {"type": "custom_tool_call", "call_id": "c", "name": "Patch", "input": "x"},
        {"type": "custom_tool_call_output", "call_id": "c", "output": "ok"},
    ]


def test_what_only_the_own_protocol_knows_stays_at_its_place() -> None:
    search: Any = {"type": "web_search_call", "id": "ws_1"}
    part = {"type": "native", "protocol": "responses", "item": search}
    asked = {"role": "assistant", "content": [{"type": "text", "text": "a"}, part, {"type": "text", "text": "b"}]}
    fields = {"truncation": "auto", "include": ["web_search_call.results"], "text": {"verbosity": "high"}}
    native = {"protocol": "responses", "fields": fields, "headers": {"OpenAI-Beta": "x"}}
    tools = [{"type": "native", "protocol": "responses", "tool": {"type": "web_search"}}]
    made: Any = to_responses(
        body(user(), asked, native=native, tools=tools, response_format={"type": "json_object"}, logprobs=True)
    )
    assert [item["type"] for item in made.body["input"]] == ["message", "message", "web_search_call", "message"]
    assert made.body["tools"] == [{"type": "web_search"}]
    assert made.body["truncation"] == "auto"
    assert made.body["include"] == ["web_search_call.results", "message.output_text.logprobs"]
    assert made.body["text"] == {"format": {"type": "json_object"}, "verbosity": "high"}
    assert (made.headers, made.is_client_native) == ({"OpenAI-Beta": "x"}, True)
    other: Any = to_messages(body(user(), asked, native=native, tools=tools))
    assert other.body["messages"][1]["content"] == [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert "tools" not in other.body
    assert "truncation" not in other.body
    assert (other.headers, other.is_client_native) == ({}, False)


# --- Messages


def test_a_conversation_becomes_messages() -> None:
    """The first system messages are the prompt, results of a round are in one message, and stand first in it."""
    pdf = {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERg=="}}
    history: Any = [
        {"role": "system", "content": "Be brief."},
        {"role": "developer", "content": [{"type": "text", "text": "Always.", "cache_control": {"type": "ephemeral"}}]},
        user([{"type": "image_url", "image_url": {"url": PNG}}, pdf, {"type": "input_audio", "input_audio": {}}]),
        user("And this?"),
        {"role": "assistant", "content": "", "tool_calls": [call("a", arguments='{"x": 1}'), call("b")]},
        {"role": "tool", "tool_call_id": "a", "content": "1"},
        {"role": "tool", "tool_call_id": "b", "content": [{"type": "text", "text": "2"}]},
        user("Go on."),
    ]
    made: Any = to_messages(body(*history, tools=[LOOK])).body
    assert made["system"] == [
        {"type": "text", "text": "Be brief."},
        {"type": "text", "text": "Always.", "cache_control": {"type": "ephemeral"}},
    ]
    assert made["max_tokens"] == DEFAULT_TOKENS
    assert made["messages"] == [
        {
            "role": "user",
            "content": [
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}},
                {
                    "type": "document",
                    "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="},
                    "title": "a.pdf",
                },
                {"type": "text", "text": "[audio]"},
                {"type": "text", "text": "And this?"},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "tool_use", "id": "a", "name": "Look", "input": {"x": 1}},
                {"type": "tool_use", "id": "b", "name": "Look", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": "1"},
                {"type": "tool_result", "tool_use_id": "b", "content": [{"type": "text", "text": "2"}]},
                {"type": "text", "text": "Go on."},
            ],
        },
    ]


def test_a_block_of_a_client_in_the_system_prompt_stays_there() -> None:
    block: Any = {"type": "text", "text": "x-anthropic-billing-header: 1"}
    part = {"type": "native", "protocol": "messages", "item": block}
    system = {"role": "system", "content": [part, {"type": "text", "text": "Be brief."}]}
    assert to_messages(body(system, user())).body["system"] == [block, {"type": "text", "text": "Be brief."}]
    assert input_of(system, user())[0]["content"] == [{"type": "input_text", "text": "Be brief."}]


@pytest.mark.requirement("window:marks")
def test_a_conversation_with_tools_has_marks_for_the_cache_unless_its_client_has_set_them() -> None:
    system = {"role": "system", "content": "Be brief."}
    long = [message for _ in range(12) for message in (user(), {"role": "assistant", "content": "Yes."})]
    made = to_messages(body(system, *long, user(), tools=[LOOK])).body
    assert made["system"] == [{"type": "text", "text": "Be brief.", **MARK}]
    messages: Any = made["messages"]
    marked = [at for at, message in enumerate(messages) if "cache_control" in json.dumps(message)]
    assert marked == [8, 24]
    own = {"role": "user", "content": [{"type": "text", "text": "Hi.", **MARK}]}
    assert json.dumps(to_messages(body(own, *long[1:], user(), tools=[LOOK])).body).count("cache_control") == 1
    assert "cache_control" not in json.dumps(to_messages(body(system, user())).body)


def test_fields_of_chat_become_those_of_messages() -> None:
    schema = {"type": "object"}
    made = to_messages(
        body(
            user(),
            tools=[LOOK],
            tool_choice="required",
            parallel_tool_calls=False,
            max_completion_tokens=5,
            temperature=1.5,
            stop="x",
            user="me",
            logprobs=True,
            response_format={"type": "json_schema", "json_schema": {"name": "title", "schema": schema}},
        )
    )
    assert made.body == {
        "model": "m",
        "max_tokens": 5,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi.", **MARK}]}],
        "tools": [{"name": "Look", "input_schema": {"type": "object", "properties": {}}}],
        "tool_choice": {"type": "any", "disable_parallel_tool_use": True},
        "stop_sequences": ["x"],
        "metadata": {"user_id": "me"},
        "output_config": {"format": {"type": "json_schema", "schema": schema}},
        "temperature": 1,
    }


@pytest.mark.parametrize(
    ("choice", "made"),
    [
        ("auto", {"type": "auto"}),
        ("none", {"type": "none"}),
        ("required", {"type": "any"}),
        ({"type": "function", "function": {"name": "Look"}}, {"type": "tool", "name": "Look"}),
    ],
)
def test_the_choice_of_a_tool_has_its_word_in_messages(choice: Any, made: Any) -> None:
    assert to_messages(body(user(), tools=[LOOK], tool_choice=choice)).body["tool_choice"] == made


def test_only_allowed_tools_are_sent_as_messages() -> None:
    other = {"type": "function", "function": {"name": "Other"}}
    allowed = {"mode": "required", "tools": [{"type": "function", "function": {"name": "Look"}}]}
    choice = {"type": "allowed_tools", "allowed_tools": allowed}
    made: Any = to_messages(body(user(), tools=[LOOK, other], tool_choice=choice)).body
    assert ([tool["name"] for tool in made["tools"]], made["tool_choice"]) == (["Look"], {"type": "any"})


def test_thinking_goes_back_with_its_signature_byte_for_byte() -> None:
    of = {"format": "anthropic-claude-v1"}
    details: Any = [
        {"type": "reasoning.encrypted", "data": "cmVk", "index": 0, **of},
        {"type": "reasoning.text", "text": "I ", "index": 1, **of},
        {"type": "reasoning.text", "text": "see.\n", "index": 1, **of},
        {"type": "reasoning.text", "signature": "Ab/+==", "index": 1, **of},
        {"type": "reasoning.text", "text": "unsigned", "index": 2, **of},
        {"type": "reasoning.text", "text": "empty", "signature": "", "index": 3, **of},
        {"type": "reasoning.encrypted", "data": "x", "format": "openai-responses-v1", "index": 4},
    ]
    asked: Any = {"role": "assistant", "content": "Hm.", "reasoning_details": details, "tool_calls": [call()]}
    made = messages_of(user(), asked, {"role": "tool", "tool_call_id": "call_1", "content": "x"})
    assert made[1]["content"] == [
        {"type": "redacted_thinking", "data": "cmVk"},
        {"type": "thinking", "thinking": "I see.\n", "signature": "Ab/+=="},
        {"type": "text", "text": "Hm."},
        {"type": "tool_use", "id": "call_1", "name": "Look", "input": {}},
    ]


def test_the_thinking_of_several_rounds_is_not_mixed_up() -> None:
    """A client may send back what several rounds of one answer had: each begins to count anew."""
    of: Any = {"type": "reasoning.text", "index": 0, "format": "anthropic-claude-v1"}
    details: Any = [
        {**of, "text": "One."},
        {**of, "signature": "a"},
        {**of, "text": "Two."},
        {**of, "text": "", "signature": "b"},
    ]
    made = messages_of(user(), {"role": "assistant", "content": "Hm.", "reasoning_details": details}, user())
    assert [(block["thinking"], block["signature"]) for block in made[1]["content"][:2]] == [
        ("One.", "a"),
        ("Two.", "b"),
    ]


def test_messages_get_no_empty_text_and_begin_with_the_user() -> None:
    made = messages_of({"role": "assistant", "content": "Hello. "}, user(""), user(" \n"))
    assert [message["role"] for message in made] == ["user", "assistant"]
    assert made[1]["content"] == [{"type": "text", "text": "Hello."}]
    assert messages_of({"role": "system", "content": "x"})[0]["role"] == "user"


def test_a_later_system_message_stays_at_its_place() -> None:
    system = {"role": "system", "content": "Now in French."}
    answered = {"role": "assistant", "content": "Hi."}
    assert [one["role"] for one in messages_of(user(), system, answered, user())] == [
        "user", "system", "assistant", "user",
    ]  # fmt: skip
    for history in ([user(), answered, system, user()], [user(), system, user("2"), answered, user()]):
        made = messages_of(*history)
        assert [one["role"] for one in made] == ["user", "assistant", "user"]
        texts = [block["text"] for block in made[0]["content"] + made[2]["content"]]
        assert "<system>\nNow in French.\n</system>" in texts
    old: Any = to_messages(body(user(), system, answered, user()), Allowances(system_messages=False)).body
    assert [one["role"] for one in old["messages"]] == ["user", "assistant", "user"]


def test_every_call_in_messages_has_a_result_and_an_id_of_its_own() -> None:
    ask: Any = {
        "role": "assistant",
        "content": None,
        "tool_calls": [call("functions.Look:0"), call("functions.Look:0")],
    }
    result: Any = {"role": "tool", "tool_call_id": "functions.Look:0", "content": "1"}
    made = messages_of(user(), ask, result, user("Stop."), ask, result, {**result, "content": "2"})
    ids = [block["id"] for message in made if message["role"] == "assistant" for block in message["content"]]
    results = [block for message in made if message["role"] == "user" for block in message["content"]][1:]
    assert ids == ["functions_Look_0", "functions_Look_0_2", "functions_Look_0_3", "functions_Look_0_4"]
    answered = [(one["tool_use_id"], one["content"]) for one in results if one["type"] == "tool_result"]
    assert answered == [(ids[0], "1"), (ids[1], "(no result)"), (ids[2], "1"), (ids[3], "2")]


def test_names_that_a_provider_refuses_are_changed_and_known_again() -> None:
    dotted: Any = {"type": "function", "function": {"name": "mcp.read file"}}
    taken: Any = {"type": "function", "function": {"name": "mcp_read_file"}}
    for made in (to_messages(body(user(), tools=[dotted, taken])), to_responses(body(user(), tools=[dotted, taken]))):
        sent: Any = made.body["tools"]
        assert [tool["name"] for tool in sent] == ["mcp_read_file", "mcp_read_file_2"]
        assert made.names == {"mcp_read_file": "mcp.read file", "mcp_read_file_2": "mcp_read_file"}


def test_a_conversation_with_calls_lists_their_tools_for_messages() -> None:
    asked = {"role": "assistant", "content": None, "tool_calls": [call()]}
    made = to_messages(body(user(), asked, {"role": "tool", "tool_call_id": "call_1", "content": "x"})).body
    assert made["tools"] == [{"name": "Look", "input_schema": {"type": "object", "properties": {}}}]
    assert made["tool_choice"] == {"type": "none"}


def test_arguments_that_are_no_object_still_reach_messages() -> None:
    asked = {"role": "assistant", "content": None, "tool_calls": [call(arguments='{"x": '), call("b", arguments="")]}
    content = messages_of(user(), asked)[1]["content"]
    assert [block["input"] for block in content] == [{"written": '{"x": '}, {}]


# --- what models differ in


def thinking_of(allowed: Allowances = Allowances(), *messages: Any, **more: Any) -> Any:  # noqa: B008 it is frozen
    made = to_messages(body(*(messages or (user(),)), temperature=0.5, **more), allowed).body
    return made.get("thinking"), made.get("output_config"), made.get("temperature")


def test_the_effort_becomes_thinking_as_the_model_takes_it() -> None:
    adaptive, budget = Allowances(), Allowances(thinking=Thinking.BUDGET)
    assert thinking_of(adaptive, reasoning_effort="low") == ({"type": "adaptive"}, {"effort": "low"}, None)
    assert thinking_of(adaptive, reasoning_effort="xhigh")[1] == {"effort": "max"}
    assert thinking_of(adaptive, reasoning_effort="none") == ({"type": "disabled"}, None, 0.5)
    assert thinking_of(budget, reasoning_effort="high")[0] == {"type": "enabled", "budget_tokens": 16_384}
    assert thinking_of(budget, reasoning_effort="high", max_tokens=4096)[0]["budget_tokens"] == 3072
    assert thinking_of(budget, reasoning_effort="high", max_tokens=1000) == (None, None, 0.5)
    assert thinking_of(Allowances(thinking=Thinking.NONE), reasoning_effort="high") == (None, None, 0.5)
    assert thinking_of(adaptive, reasoning_effort="high", tools=[LOOK], tool_choice="required")[0] is None


def test_calls_without_their_thinking_rule_out_a_budget() -> None:
    """They come from another model, or from one that did not think."""
    asked = {"role": "assistant", "content": None, "tool_calls": [call()]}
    turn = (user(), asked, {"role": "tool", "tool_call_id": "call_1", "content": "x"})
    budget = Allowances(thinking=Thinking.BUDGET)
    assert thinking_of(budget, *turn, reasoning_effort="high")[0] is None
    answered = {"role": "assistant", "content": "A cat."}
    assert thinking_of(budget, *turn, answered, user(), reasoning_effort="high")[0] is not None


def test_the_thinking_of_a_client_that_speaks_messages_is_its_own() -> None:
    fields = {"thinking": {"type": "enabled", "budget_tokens": 2000}, "output_config": {"effort": "max"}, "top_k": 3}
    made = to_messages(
        body(user(), reasoning_effort="low", native={"protocol": "messages", "fields": fields, "headers": {"a": "b"}})
    )
    assert (made.body["thinking"], made.body["output_config"]) == (fields["thinking"], {"effort": "max"})
    assert (made.body["top_k"], made.headers, made.is_client_native) == (3, {"a": "b"}, True)


@pytest.mark.parametrize(
    ("words", "allowed"),
    [
        ("max_tokens: 32000 > 8192, which is the maximum allowed number", Allowances(max_tokens=8192)),
        ("adaptive thinking is not supported on this model", Allowances(thinking=Thinking.BUDGET)),
        ('messages: Unexpected role "system".', Allowances(system_messages=False)),
        ("`temperature` is deprecated for this model", Allowances(sampling=False)),
        ("credit balance is too low", Allowances()),
    ],
)
def test_a_refusal_says_what_a_model_does_not_take(words: str, allowed: Allowances) -> None:
    refusal = ChatFault(status=400, message="x", code="upstream_400", words=words)
    assert find_allowances(refusal, Allowances()) == allowed
    assert find_allowances(ChatFault(status=500, message="x", code="upstream_500", words=words), Allowances()) == (
        Allowances()
    )
