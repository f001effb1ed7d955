"""Replies of a model as providers of each protocol send them: one script, served in any of the three.

    calls = Reply(calls=(ToolUse("Say", {"text": "x"}),))
    async with gateway(tmp_path, scripted("messages", calls, Reply(text="Done.")), settings=using("messages")):

``test_provider_answers.py`` reads what is served with the official clients.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.gateway.response_events import NULLABLE
from tests.gateway.upstream import DONE, Script, chunk, completion
from toolyard.provider_settings import ProviderProtocol

Protocol = Literal["chat", "responses", "messages"]
PROTOCOLS: tuple[Protocol, ...] = ("chat", "responses", "messages")
PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}
SETTINGS = {
    "chat": ProviderProtocol.CHAT,
    "responses": ProviderProtocol.RESPONSES,
    "messages": ProviderProtocol.ANTHROPIC,
}
_Made = dict[str, Any]


@dataclass(frozen=True)
class ToolUse:
    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    id: str = "call_1"
    more: Mapping[str, Any] = field(default_factory=dict)  # in Messages, what else is said of it


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What a model answers to one request."""

    text: str = ""
    reasoning: str = ""
    signature: str = (
        "c2lnbmF0dXJl/+=="  # of the reasoning: in Messages its own field, in Responses the encrypted content
    )
    redacted: str = ""  # reasoning that nobody can read
    calls: tuple[ToolUse, ...] = ()
    refusal: str = ""
    cited: str = ""  # the address of a page that the text is about
    cut_for: Literal["", "length", "content_filter"] = ""
    cached: int = 0  # tokens of the prompt
    written: int = 0  # tokens of the prompt that were put into the cache
    prompt: int = 11  # tokens, cached ones included
    answered: int = 7  # tokens
    status: int = 200  # any other: it is refused with ``error``
    error: str = ""  # in place of the end of a stream, when the status is 200
    error_type: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    cut_after: int | None = None  # events, after which the connection closes
    then: str = "end"  # or hang
    size: int = 7  # characters of a piece
    more: Mapping[str, Any] = field(default_factory=dict)  # in Messages, what else is said of the answer
    spent: Mapping[str, Any] = field(default_factory=dict)  # and of its tokens


def using(protocol: Protocol) -> dict[str, Any]:
    """The settings of a gateway whose default provider speaks a protocol."""
    return {"upstream_protocol": SETTINGS[protocol]}


def scripted(protocol: Protocol, *replies: Reply) -> Callable[[_Made], Script]:
    """One reply after the other, streamed or whole as each request asks for; the last for all that follow."""
    left = list(replies)

    def answer(body: _Made) -> Script:
        return to_script(left.pop(0) if len(left) > 1 else left[0], protocol, stream=bool(body.get("stream")))

    return answer


def to_script(reply: Reply, protocol: Protocol, *, stream: bool = True) -> Script:
    headers = dict(reply.headers)
    if reply.status != 200:
        body = json.dumps(_refusals[protocol](reply)).encode()
        return Script([body], status=reply.status, kind="application/json", headers=headers)
    if not stream:
        body = to_body(reply, protocol)
        if reply.cut_after is not None:
            return Script([body[: len(body) // 2]], kind="application/json", headers=headers, then="cut")
        return Script([body], kind="application/json", headers=headers)
    pieces = list(events(reply, protocol))
    if reply.cut_after is not None:
        return Script(pieces[: reply.cut_after], headers=headers, then="cut")
    return Script(pieces, headers=headers, then=reply.then)


def events(reply: Reply, protocol: Protocol) -> Iterator[bytes]:
    """The events of a streamed reply."""
    makers = {"chat": _chat_events, "responses": _responses_events, "messages": _messages_events}
    return makers[protocol](reply)


def to_body(reply: Reply, protocol: Protocol) -> bytes:
    """A reply in one piece."""
    if protocol == "chat":
        return _chat_whole(reply)
    made = _response(reply, _items(reply)) if protocol == "responses" else _message(reply)
    return json.dumps(made).encode()


def _pieces(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def _arguments(call: ToolUse) -> str:
    return json.dumps(dict(call.arguments))


# --- chat completions


def _chat_usage(reply: Reply) -> _Made:
    details: _Made = {"prompt_tokens_details": {"cached_tokens": reply.cached}} if reply.cached else {}
    details |= {"completion_tokens_details": {"reasoning_tokens": 3}} if reply.reasoning else {}
    total = reply.prompt + reply.answered
    return {"prompt_tokens": reply.prompt, "completion_tokens": reply.answered, "total_tokens": total} | details


def _chat_finish(reply: Reply) -> str:
    return reply.cut_for or ("tool_calls" if reply.calls else "stop")


def _chat_events(reply: Reply) -> Iterator[bytes]:
    yield chunk({"role": "assistant", "content": ""})
    for key, text in (("reasoning_content", reply.reasoning), ("content", reply.text), ("refusal", reply.refusal)):
        yield from (chunk({key: piece}) for piece in _pieces(text, reply.size))
    if reply.cited:
        yield chunk({"annotations": _chat_annotations(reply)})
    for index, call in enumerate(reply.calls):
        head = {"index": index, "id": call.id, "type": "function", "function": {"name": call.name, "arguments": ""}}
        yield chunk({"tool_calls": [head]})
        for piece in _pieces(_arguments(call), reply.size):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    if reply.error:
        error = {"error": {"message": reply.error, "code": reply.error_type or 500}}
        yield b"data: " + json.dumps(error).encode() + b"\n\n"
        return
    yield chunk({}, _chat_finish(reply), usage=_chat_usage(reply))
    yield DONE


def _chat_whole(reply: Reply) -> bytes:
    if reply.error:
        return json.dumps({"error": {"message": reply.error, "code": reply.error_type or 500}}).encode()
    message: _Made = {"role": "assistant", "content": reply.text or None}
    if reply.reasoning:
        message["reasoning_content"] = reply.reasoning
    if reply.refusal:
        message["refusal"] = reply.refusal
    if reply.cited:
        message["annotations"] = _chat_annotations(reply)
    if reply.calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": _arguments(call)}}
            for call in reply.calls
        ]
    return completion(message, _chat_finish(reply), _chat_usage(reply))


def _chat_annotations(reply: Reply) -> list[_Made]:
    page = {"url": reply.cited, "title": "A page", "start_index": 0, "end_index": len(reply.text)}
    return [{"type": "url_citation", "url_citation": page}]


# --- Responses


def _items(reply: Reply) -> list[_Made]:
    made: list[_Made] = []
    if reply.redacted:
        made.append({"type": "reasoning", "id": "rs_0", "summary": [], "encrypted_content": reply.redacted})
    if reply.reasoning:
        summary = [{"type": "summary_text", "text": reply.reasoning}]
        made.append({"type": "reasoning", "id": "rs_1", "summary": summary, "encrypted_content": reply.signature})
    parts: list[_Made] = []
    if reply.text:
        parts.append({"type": "output_text", "text": reply.text, "annotations": _annotations(reply), "logprobs": []})
    if reply.refusal:
        parts.append({"type": "refusal", "refusal": reply.refusal})
    status = "incomplete" if reply.cut_for else "completed"
    if parts:
        made.append({"type": "message", "id": "msg_1", "role": "assistant", "status": status, "content": parts})
    for number, call in enumerate(reply.calls, 1):
        item = {"type": "function_call", "id": f"fc_{number}", "call_id": call.id, "name": call.name}
        made.append({**item, "arguments": _arguments(call), "status": status})
    return made


def _annotations(reply: Reply) -> list[_Made]:
    if not reply.cited:
        return []
    cited = {"type": "url_citation", "url": reply.cited, "title": "A page"}
    return [{**cited, "start_index": 0, "end_index": len(reply.text)}]


def _response(reply: Reply, output: list[_Made], status: str = "") -> _Made:
    status = status or ("failed" if reply.error else "incomplete" if reply.cut_for else "completed")
    reason = {"length": "max_output_tokens"}.get(reply.cut_for, reply.cut_for)
    error = {"code": reply.error_type or "server_error", "message": reply.error}
    usage = {
        "input_tokens": reply.prompt,
        "input_tokens_details": {"cached_tokens": reply.cached, "cache_write_tokens": reply.written},
        "output_tokens": reply.answered,
        "output_tokens_details": {"reasoning_tokens": 3 if reply.reasoning else 0},
        "total_tokens": reply.prompt + reply.answered,
    }
    return {
        **dict.fromkeys(NULLABLE),
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": status,
        "model": "scripted",
        "output": output,
        "error": error if status == "failed" else None,
        "incomplete_details": {"reason": reason} if status == "incomplete" else None,
        "instructions": None,
        "metadata": {},
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": None if status == "in_progress" else usage,
    }


def _responses_events(reply: Reply) -> Iterator[bytes]:
    for number, event in enumerate(_responses_objects(reply)):
        data = json.dumps({**event, "sequence_number": number})
        yield f"event: {event['type']}\ndata: {data}\n\n".encode()


def _responses_objects(reply: Reply) -> Iterator[_Made]:
    begun = _response(reply, [], "in_progress")
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    items = _items(reply)
    for index, item in enumerate(items):
        yield from _item_objects(item, index, reply.size)
    if reply.error:
        error = {"code": reply.error_type or "server_error", "message": reply.error, "param": None}
        yield {"type": "error", **error}
        yield {"type": "response.failed", "response": _response(reply, items)}
        return
    end = "incomplete" if reply.cut_for else "completed"
    yield {"type": f"response.{end}", "response": _response(reply, items)}


def _item_objects(item: _Made, index: int, size: int) -> Iterator[_Made]:
    place = {"item_id": item["id"], "output_index": index}
    empty: dict[str, _Made] = {"message": {"content": []}, "function_call": {"arguments": ""}, "reasoning": {}}
    begun = {**item, **empty[item["type"]], "status": "in_progress"}
    if item["type"] == "reasoning":
        begun["summary"] = []
    begun.pop("encrypted_content", None)
    yield {"type": "response.output_item.added", "output_index": index, "item": begun}
    if item["type"] == "reasoning":
        for number, part in enumerate(item["summary"]):
            yield from _summary_objects(part, {**place, "summary_index": number}, size)
    elif item["type"] == "message":
        for number, part in enumerate(item["content"]):
            yield from _part_objects(part, {**place, "content_index": number}, size)
    else:
        name = "response.function_call_arguments"
        yield from ({"type": f"{name}.delta", **place, "delta": piece} for piece in _pieces(item["arguments"], size))
        yield {"type": f"{name}.done", **place, "arguments": item["arguments"], "name": item["name"]}
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


def _summary_objects(part: _Made, place: _Made, size: int) -> Iterator[_Made]:
    name, text = "response.reasoning_summary", part["text"]
    yield {"type": f"{name}_part.added", **place, "part": {"type": "summary_text", "text": ""}}
    yield from ({"type": f"{name}_text.delta", **place, "delta": piece} for piece in _pieces(text, size))
    yield {"type": f"{name}_text.done", **place, "text": text}
    yield {"type": f"{name}_part.done", **place, "part": part}


def _part_objects(part: _Made, place: _Made, size: int) -> Iterator[_Made]:
    key = "text" if part["type"] == "output_text" else "refusal"
    name = "response.output_text" if key == "text" else "response.refusal"
    more: _Made = {"logprobs": []} if key == "text" else {}
    yield {"type": "response.content_part.added", **place, "part": {**part, key: "", **_without(part)}}
    yield from ({"type": f"{name}.delta", **place, "delta": piece, **more} for piece in _pieces(part[key], size))
    for number, annotation in enumerate(part.get("annotations", [])):
        added = {"type": "response.output_text.annotation.added", **place, "annotation_index": number}
        yield {**added, "annotation": annotation}
    yield {"type": f"{name}.done", **place, key: part[key], **more}
    yield {"type": "response.content_part.done", **place, "part": part}


def _without(part: _Made) -> _Made:
    return {"annotations": []} if "annotations" in part else {}


# --- Messages


def _blocks(reply: Reply) -> list[_Made]:
    made: list[_Made] = []
    if reply.redacted:
        made.append({"type": "redacted_thinking", "data": reply.redacted})
    if reply.reasoning:
        made.append({"type": "thinking", "thinking": reply.reasoning, "signature": reply.signature})
    if text := reply.text or reply.refusal:
        made.append({"type": "text", "text": text, "citations": _citations(reply) or None})
    uses = ({"id": call.id, "name": call.name, "input": dict(call.arguments), **call.more} for call in reply.calls)
    return [*made, *({"type": "tool_use", **use} for use in uses)]


def _citations(reply: Reply) -> list[_Made]:
    if not reply.cited:
        return []
    found = {"type": "web_search_result_location", "url": reply.cited, "title": "A page"}
    return [{**found, "encrypted_index": "Eo8=", "cited_text": "It says so."}]


def _stop_reason(reply: Reply) -> str:
    if reply.cut_for or reply.refusal:
        return "max_tokens" if reply.cut_for == "length" else "refusal"
    return "tool_use" if reply.calls else "end_turn"


def _messages_usage(reply: Reply) -> _Made:
    fresh = reply.prompt - reply.cached - reply.written
    made: _Made = {"input_tokens": fresh, "output_tokens": reply.answered}
    made |= {"output_tokens_details": {"thinking_tokens": 3}} if reply.reasoning else {}
    return made | {"cache_read_input_tokens": reply.cached, "cache_creation_input_tokens": reply.written}


def _message(reply: Reply) -> _Made:
    if reply.error:
        return _messages_error(reply)
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "scripted", "content": _blocks(reply)}
    usage = {**_messages_usage(reply), **reply.spent}
    return {**head, "stop_reason": _stop_reason(reply), "stop_sequence": None, "usage": usage, **reply.more}


def _messages_error(reply: Reply) -> _Made:
    error = {"type": reply.error_type or "api_error", "message": reply.error}
    return {"type": "error", "error": error, "request_id": "req_1"}


def _messages_events(reply: Reply) -> Iterator[bytes]:
    for event in _messages_objects(reply):
        yield f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()


def _messages_objects(reply: Reply) -> Iterator[_Made]:
    begun = {"id": "msg_1", "type": "message", "role": "assistant", "model": "scripted", "content": []}
    usage = {**_messages_usage(reply), "output_tokens": 1}
    yield {"type": "message_start", "message": {**begun, "stop_reason": None, "stop_sequence": None, "usage": usage}}
    yield {"type": "ping"}
    for index, block in enumerate(_blocks(reply)):
        yield from _block_objects(block, index, reply.size)
    if reply.error:
        yield _messages_error(reply)
        return
    more = dict(reply.more)
    beside = {key: more.pop(key) for key in ("context_management",) if key in more}
    delta = {"stop_reason": _stop_reason(reply), "stop_sequence": None, **more}
    usage = {"output_tokens": reply.answered, **reply.spent}
    yield {"type": "message_delta", "delta": delta, "usage": usage, **beside}
    yield {"type": "message_stop"}


def _block_objects(block: _Made, index: int, size: int) -> Iterator[_Made]:
    deltas: list[_Made] = []
    begun = dict(block)
    match block["type"]:
        case "thinking":
            begun |= {"thinking": "", "signature": ""}
            deltas += [{"type": "thinking_delta", "thinking": piece} for piece in _pieces(block["thinking"], size)]
            deltas += [{"type": "signature_delta", "signature": block["signature"]}]
        case "text":
            begun |= {"text": "", "citations": None}
            deltas += [{"type": "citations_delta", "citation": one} for one in block["citations"] or []]
            deltas += [{"type": "text_delta", "text": piece} for piece in _pieces(block["text"], size)]
        case "tool_use":
            begun |= {"input": {}}
            written = ["", *_pieces(json.dumps(block["input"]), size)]  # the first may be empty
            deltas += [{"type": "input_json_delta", "partial_json": piece} for piece in written]
    yield {"type": "content_block_start", "index": index, "content_block": begun}
    yield from ({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas)
    yield {"type": "content_block_stop", "index": index}


# --- refusals


def _openai_error(reply: Reply) -> _Made:
    error = {"message": reply.error, "type": "invalid_request_error", "param": None}
    return {"error": {**error, "code": reply.error_type or None}}


_refusals: Mapping[Protocol, Callable[[Reply], _Made]] = {
    "chat": _openai_error,
    "responses": _openai_error,
    "messages": _messages_error,
}
