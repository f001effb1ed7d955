"""Answers of the other protocols as chat answers; the scripted ones are judged by the official client."""

import json
from typing import Any

import pytest
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from tests.gateway.native_providers import Protocol, Reply, ToolUse, events, to_body
from toolyard.gateway.faults import ChatFailed
from toolyard.gateway.protocols.chat_body import NativeRequest
from toolyard.gateway.protocols.chat_chunks import AnswerReader, fold_chunks
from toolyard.gateway.protocols.messages.provider_answer import MessagesReader
from toolyard.gateway.protocols.responses.provider_answer import ResponsesReader
from toolyard.gateway.reply.chunks import KeptDetails

pytestmark = pytest.mark.requirement("protocols:provider-answer")
READERS: dict[str, type[AnswerReader]] = {"responses": ResponsesReader, "messages": MessagesReader}
NATIVE: tuple[Protocol, ...] = ("responses", "messages")
both = pytest.mark.parametrize("protocol", NATIVE)
FULL = Reply(
    text="Hello, 世界 again.",
    reasoning="I think so.\nYes.",
    redacted="cmVk",
    calls=(ToolUse("Say", {"text": "x" * 20}), ToolUse("LS", {}, "call_2")),
    cited="https://example.org",
    cached=3,
    written=2,
)


def reader_of(protocol: Protocol, **more: Any) -> AnswerReader:
    return READERS[protocol]("theirs", NativeRequest(body={}, **more))


def read(protocol: Protocol, sent: list[bytes], **more: Any) -> list[bytes]:
    reader = reader_of(protocol, **more)
    made = [chunk for event in sent for chunk in reader.read_events([event.removesuffix(b"\n\n")])]
    reader.finish()
    return made


def streamed(protocol: Protocol, reply: Reply, **more: Any) -> Any:
    """The chunks of a streamed reply, put together."""
    return json.loads(fold_chunks(read(protocol, list(events(reply, protocol)), **more)))


def completed(protocol: Protocol, reply: Reply, **more: Any) -> Any:
    return json.loads(reader_of(protocol, **more).to_completion(to_body(reply, protocol)))


def data(event: Any) -> bytes:
    return b"data: " + json.dumps(event).encode()


def chunks_of(made: list[bytes]) -> list[Any]:
    return [json.loads(one.removeprefix(b"data: ")) for one in made if one != b"data: [DONE]"]


def test_the_scripted_responses_are_what_the_official_client_knows() -> None:
    known: Any = TypeAdapter(ResponseStreamEvent)
    for reply in (FULL, Reply(refusal="No."), Reply(text="x", cut_for="length"), Reply(text="x", error="Bad.")):
        for number, event in enumerate(events(reply, "responses")):
            value = json.loads(event.split(b"data: ")[1])
            known.validate_python(value)
            assert value["sequence_number"] == number
        Response.model_validate(json.loads(to_body(reply, "responses")))


def test_the_scripted_messages_are_what_the_official_client_knows() -> None:
    types = pytest.importorskip("anthropic.types", reason="the anthropic package is not installed")
    known: Any = TypeAdapter(types.RawMessageStreamEvent)
    for reply in (FULL, Reply(refusal="No."), Reply(text="x", cut_for="length")):
        values = [json.loads(event.split(b"data: ")[1]) for event in events(reply, "messages")]
        for value in values:
            if value["type"] != "ping":
                known.validate_python(value)
        types.Message.model_validate(json.loads(to_body(reply, "messages")))


@both
def test_an_answer_has_everything_in_the_words_of_chat(protocol: Protocol) -> None:
    answer = streamed(protocol, FULL)
    choice = answer["choices"][0]
    message = choice["message"]
    assert (answer["object"], answer["model"], choice["finish_reason"]) == ("chat.completion", "scripted", "tool_calls")
    assert (message["content"], message["reasoning_content"]) == (FULL.text, FULL.reasoning)
    assert [(one["id"], one["function"]["name"]) for one in message["tool_calls"]] == [
        ("call_1", "Say"), ("call_2", "LS"),
    ]  # fmt: skip
    assert [json.loads(one["function"]["arguments"]) for one in message["tool_calls"]] == [{"text": "x" * 20}, {}]
    cited = message["annotations"][0]["url_citation"]
    assert (cited["url"], cited["start_index"], cited["end_index"]) == (FULL.cited, 0, len(FULL.text))
    usage = answer["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]) == (11, 7, 18)
    assert usage["prompt_tokens_details"] == {"cached_tokens": 3, "cache_write_tokens": 2}


@both
def test_an_answer_in_one_piece_is_the_same_as_its_stream(protocol: Protocol) -> None:
    one, other = streamed(protocol, FULL), completed(protocol, FULL)
    for made in (one, other):
        for call in made["choices"][0]["message"]["tool_calls"]:
            call["function"]["arguments"] = json.loads(call["function"]["arguments"])
    assert one == other
    for reply in (Reply(text="x", cut_for="length"), Reply(refusal="No."), Reply(text="x", error="Bad.")):
        assert streamed(protocol, reply) == completed(protocol, reply)


def test_reasoning_keeps_what_the_model_needs_to_read_it_again() -> None:
    details = streamed("messages", FULL)["choices"][0]["message"]["reasoning_details"]
    of: Any = {"format": "anthropic-claude-v1"}
    assert details == [
        {"type": "reasoning.encrypted", "data": "cmVk", **of, "index": 0},
        {"type": "reasoning.text", "text": FULL.reasoning, **of, "index": 1, "signature": FULL.signature},
    ]
    details = streamed("responses", FULL)["choices"][0]["message"]["reasoning_details"]
    of = {"format": "openai-responses-v1"}
    assert details == [
        {"type": "reasoning.encrypted", "data": "cmVk", "id": "rs_0", **of, "index": 0},
        {"type": "reasoning.summary", "summary": FULL.reasoning, "id": "rs_1", **of, "index": 1},
        {"type": "reasoning.encrypted", "data": FULL.signature, "id": "rs_1", **of, "index": 2},
    ]


@both
def test_a_refusal_and_a_limit_are_told(protocol: Protocol) -> None:
    refused = streamed(protocol, Reply(refusal="I will not."))["choices"][0]
    if protocol == "responses":
        assert (refused["message"]["refusal"], refused["finish_reason"]) == ("I will not.", "stop")
    else:
        assert (refused["finish_reason"], refused["native_finish_reason"]) == ("content_filter", "refusal")
    limited = streamed(protocol, Reply(text="Half a", cut_for="length"))["choices"][0]
    assert (limited["message"]["content"], limited["finish_reason"]) == ("Half a", "length")


@both
@pytest.mark.requirement("protocols:cut")
def test_a_stream_that_was_cut_has_no_end(protocol: Protocol) -> None:
    sent = list(events(FULL, protocol))
    for number in range(len(sent)):
        made = read(protocol, sent[:number])
        assert b"data: [DONE]" not in made
        assert all(choice["finish_reason"] is None for chunk in chunks_of(made) for choice in chunk["choices"])
    assert read(protocol, sent)[-1] == b"data: [DONE]"


@both
def test_an_error_in_a_stream_is_one_of_chat(protocol: Protocol) -> None:
    made = chunks_of(read(protocol, list(events(Reply(text="Half", error="Overloaded."), protocol))))
    assert made[-1]["error"]["message"] == "Overloaded."
    assert [one for one in made if "error" in one] == made[-1:]
    assert json.loads(reader_of(protocol).to_completion(to_body(Reply(error="Bad."), protocol)))["error"][
        "message"
    ] == ("Bad.")


@both
def test_usage_is_a_chunk_of_its_own_only_for_those_who_asked(protocol: Protocol) -> None:
    sent = list(events(Reply(text="x"), protocol))
    *_, last = chunks_of(read(protocol, sent))
    assert (last["choices"][0]["finish_reason"], last["usage"]["total_tokens"]) == ("stop", 18)
    *_, finish, last = chunks_of(read(protocol, sent, wants_usage=True))
    assert (last["choices"], last["usage"]["total_tokens"], "usage" in finish) == ([], 18, False)


@both
def test_what_is_no_answer_of_the_protocol_is_told(protocol: Protocol) -> None:
    with pytest.raises(ChatFailed, match="no chat completion"):
        read(protocol, [b'data: {"hello": 1}'])
    with pytest.raises(ChatFailed, match="no chat completion"):
        reader_of(protocol).read_whole(b'{"hello": 1}')
    assert reader_of(protocol).to_completion(b"<html>") == b"<html>"
    assert read(protocol, [b"data: {half"]) == [b"data: {half"]


@both
def test_names_of_tools_are_those_of_the_client(protocol: Protocol) -> None:
    answer = streamed(protocol, FULL, names={"LS": "files.ls"})
    assert [one["function"]["name"] for one in answer["choices"][0]["message"]["tool_calls"]] == ["Say", "files.ls"]


def test_reasoning_in_very_many_pieces_takes_no_more_memory_than_its_text() -> None:
    """A turn keeps 16 MiB of it: the frames of its pieces would be most of that."""
    kept = KeptDetails()
    grown = sum(kept.add([{"type": "reasoning.text", "text": "ab", "index": 0, "format": "x"}]) for _ in range(10_000))
    assert (grown, grown < 21_000) == (len(kept), True)
    assert kept.to_json() == [{"type": "reasoning.text", "text": "ab" * 10_000, "index": 0, "format": "x"}]


# --- servers that send less, or in another order


def test_an_item_that_came_in_no_pieces_is_read_when_it_is_done() -> None:
    item: Any = {"type": "function_call", "id": "fc", "call_id": "c", "name": "LS", "arguments": '{"a": 1}'}
    done = {"type": "response.output_item.done", "output_index": 0, "item": item}
    end = {"type": "response.completed", "response": {"output": [item]}}
    pieces = [
        {"type": "response.function_call_arguments.delta", "output_index": 0, "item_id": "fc", "delta": '{"a": 1}'}
    ]
    for sent in ([done, end], [*pieces, done, end], [end]):
        answer = json.loads(fold_chunks(read("responses", [data(one) for one in sent])))
        calls = answer["choices"][0]["message"]["tool_calls"]
        assert calls == [{"id": "c", "type": "function", "function": {"name": "LS", "arguments": '{"a": 1}'}}]
        assert answer["choices"][0]["finish_reason"] == "tool_calls"


def test_text_of_responses_is_read_once_however_often_it_is_repeated() -> None:
    part = {"type": "output_text", "text": "Hello.", "annotations": []}
    item = {"type": "message", "id": "m", "content": [part]}
    place = {"output_index": 0, "item_id": "m", "content_index": 0}
    sent: list[Any] = [
        {"type": "response.output_text.delta", **place, "delta": "Hel", "logprobs": [{"token": "Hel", "logprob": -1}]},
        {"type": "response.output_text.done", **place, "text": "Hello."},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {"output": [item]}},
    ]
    answer = json.loads(fold_chunks(read("responses", [data(one) for one in sent])))
    assert answer["choices"][0]["message"]["content"] == "Hello."
    logprobs = answer["choices"][0]["logprobs"]["content"]
    assert logprobs == [{"token": "Hel", "logprob": -1, "bytes": None, "top_logprobs": []}]


def test_blocks_that_are_open_at_once_are_told_apart() -> None:
    begin = {"type": "content_block_start"}
    use = {"type": "tool_use", "input": {}}
    sent: list[Any] = [
        {"type": "message_start", "message": {"id": "m", "usage": {}}},
        {**begin, "index": 0, "content_block": {**use, "id": "a", "name": "One"}},
        {**begin, "index": 1, "content_block": {**use, "id": "b", "name": "Two"}},
        *(
            {"type": "content_block_delta", "index": at, "delta": {"type": "input_json_delta", "partial_json": piece}}
            for at, piece in ((0, '{"x"'), (1, '{"y"'), (0, ":1}"), (1, ":2}"))
        ),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
        {"type": "message_stop"},
    ]
    answer = json.loads(fold_chunks(read("messages", [data(one) for one in sent])))
    assert [call["function"] for call in answer["choices"][0]["message"]["tool_calls"]] == [
        {"name": "One", "arguments": '{"x":1}'},
        {"name": "Two", "arguments": '{"y":2}'},
    ]


def test_a_call_that_was_cut_has_no_arguments_that_could_run() -> None:
    block = {"type": "tool_use", "id": "a", "name": "One", "input": {}}
    for reason, arguments in (("max_tokens", ""), ("tool_use", "{}")):
        sent: list[Any] = [
            {"type": "message_start", "message": {"id": "m"}},
            {"type": "content_block_start", "index": 0, "content_block": block},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": reason}},
            {"type": "message_stop"},
        ]
        answer = json.loads(fold_chunks(read("messages", [data(one) for one in sent])))
        assert answer["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] == arguments


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("pause_turn", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "content_filter"),
    ],
)
def test_each_stop_reason_of_messages_has_its_finish_reason(reason: str, finish: str) -> None:
    answer = {"type": "message", "id": "m", "content": [], "stop_reason": reason, "stop_sequence": "END"}
    choice = json.loads(reader_of("messages").to_completion(json.dumps(answer).encode()))["choices"][0]
    assert choice["finish_reason"] == finish
    assert choice.get("native_finish_reason") == (None if reason in ("end_turn", "max_tokens") else reason)
    assert choice.get("stop_sequence") == ("END" if reason == "stop_sequence" else None)


def test_custom_tools_come_back_as_custom_calls() -> None:
    reply = Reply(calls=(ToolUse("Patch", {"input": "*** Begin"}),))
    for answer in (
        streamed("messages", reply, custom=frozenset({"Patch"})),
        completed("messages", reply, custom=frozenset({"Patch"})),
    ):
        calls = answer["choices"][0]["message"]["tool_calls"]
        assert calls == [{"id": "call_1", "type": "custom", "custom": {"name": "Patch", "input": "*** Begin"}}]


@both
def test_items_without_a_word_in_chat_reach_clients_of_the_same_protocol_only(protocol: Protocol) -> None:
    item: Any = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    answer: Any = {"object": "response", "status": "completed", "output": [item]}
    if protocol == "messages":
        item = {"type": "server_tool_use", "id": "ws_1", "name": "web_search", "input": {"query": "x"}}
        answer = {"type": "message", "content": [item], "stop_reason": "end_turn"}
    raw = json.dumps(answer).encode()
    message = json.loads(reader_of(protocol, is_client_native=True).to_completion(raw))["choices"][0]["message"]
    assert message["native"] == [{"type": "native", "protocol": protocol, "item": item, "index": 0}]
    assert "native" not in json.loads(reader_of(protocol).to_completion(raw))["choices"][0]["message"]
