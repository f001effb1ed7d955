"""Clients of the three protocols, in one form: a test says what is asked, and reads the answer in the same words.

Every answer is checked on its way: the order of the events of its protocol, the fields of its objects.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import aiohttp

from tests.gateway import messages, response_events
from tests.gateway.native_providers import Protocol
from tests.gateway.serving import Gateway, StreamedAnswer
from tests.gateway.upstream import DONE

PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}
SCHEMA = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}
LENGTH, REFUSED, CALLS, STOPPED = "length", "refused", "calls", "stop"
_FINISHES = {
    "stop": STOPPED, "end_turn": STOPPED, "completed": STOPPED, "tool_calls": CALLS, "tool_use": CALLS,
    "length": LENGTH, "max_tokens": LENGTH, "max_output_tokens": LENGTH, "content_filter": REFUSED, "refusal": REFUSED,
}  # fmt: skip


@dataclass(kw_only=True)
class Heard:
    """An answer, whatever its protocol."""

    status: int = 200
    text: str = ""
    reasoning: str = ""
    refusal: str = ""
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)  # of the client's own tools
    ours: list[str] = field(default_factory=list)  # tools of the host that the answer shows as calls
    cited: list[str] = field(default_factory=list)  # addresses of pages
    finish: str = ""
    sent: int = 0  # tokens, cached ones included
    cached: int = 0
    answered: int = 0
    thought: int = 0  # tokens of the answer that were reasoning
    said: list[Any] = field(default_factory=list)  # what the client sends back to go on, in its protocol
    error: dict[str, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: bytes = b""


def body_of(protocol: Protocol, text: str, *, stream: bool, model: str = "scripted", **asks: Any) -> dict[str, Any]:
    """A request. ``tool``: the name of a tool of the client; ``json``: the answer is to be of ``SCHEMA``.

    ``picture``: Base64 that it shows; ``said``: what it said and got before; ``more``: further fields.
    """
    tool, wants_json = asks.pop("tool", ""), asks.pop("json", False)
    picture, said, more = asks.pop("picture", ""), asks.pop("said", []), asks.pop("more", {})
    assert not asks
    body: dict[str, Any] = {"model": model, "stream": stream, **more}
    asked = {"role": "user", "content": [*_PICTURES[protocol](picture), _text(protocol, text)] if picture else text}
    described = {"name": tool, "description": "A tool of the client."}
    parameters = {"type": "object", "properties": {"city": {"type": "string"}}}
    match protocol:
        case "chat":
            body["messages"] = [*said, asked]
            if stream:
                body["stream_options"] = {"include_usage": True}
            if tool:
                body["tools"] = [{"type": "function", "function": described | {"parameters": parameters}}]
            if wants_json:
                schema = {"name": "answer", "schema": SCHEMA}
                body["response_format"] = {"type": "json_schema", "json_schema": schema}
        case "responses":
            body["input"] = [*said, asked] if said or picture else text
            if tool:
                body["tools"] = [{"type": "function", **described, "parameters": parameters}]
            if wants_json:
                body["text"] = {"format": {"type": "json_schema", "name": "answer", "schema": SCHEMA}}
        case "messages":
            body |= {"messages": [*said, asked], "max_tokens": 1000}
            if tool:
                body["tools"] = [described | {"input_schema": parameters}]
            if wants_json:
                body["output_config"] = {"format": {"type": "json_schema", "schema": SCHEMA}}
    return body


_PICTURES: dict[Protocol, Callable[[str], list[Any]]] = {
    "chat": lambda data: [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}],
    "responses": lambda data: [{"type": "input_image", "image_url": f"data:image/png;base64,{data}"}],
    "messages": lambda data: [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}],
}


def _text(protocol: Protocol, text: str) -> dict[str, str]:
    return {"type": "input_text" if protocol == "responses" else "text", "text": text}


async def ask(
    one: Gateway, protocol: Protocol, text: str = "Hi.", *, stream: bool, headers: Mapping[str, str] = {}, **asks: Any
) -> Heard:
    """``passed``: the answer is the provider's own, and OpenAI's has no such end as Open Responses wants."""
    end = DONE if asks.pop("passed", False) and protocol == "responses" and stream else b""
    body = body_of(protocol, text, stream=stream, **asks)
    async with (
        aiohttp.ClientSession(one.url, headers={"Authorization": "Bearer me", **headers}) as session,
        session.post(PATHS[protocol], json=body) as got,
    ):
        raw = await got.read()
        heard = read_answer(protocol, got.status, raw + end, _lower(got.headers), stream=stream)
        return replace(heard, raw=raw)


def results_of(protocol: Protocol, heard: Heard, text: str) -> list[Any]:
    """What a client says to go on: what it got, and the result of each call of its own tools."""
    results: list[Any]
    if protocol == "chat":
        ids = [call["id"] for call in heard.said[0]["tool_calls"]]
        results = [{"role": "tool", "tool_call_id": id_, "content": text} for id_ in ids]
    elif protocol == "responses":
        ids = [item["call_id"] for item in heard.said if item["type"] == "function_call"]
        results = [{"type": "function_call_output", "call_id": id_, "output": text} for id_ in ids]
    else:
        ids = [block["id"] for block in heard.said[0]["content"] if block["type"] == "tool_use"]
        made = [{"type": "tool_result", "tool_use_id": id_, "content": text} for id_ in ids]
        results = [{"role": "user", "content": made}]
    return [{"role": "user", "content": "Hi."}, *heard.said, *results]


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def read_answer(protocol: Protocol, status: int, raw: bytes, headers: Mapping[str, str], *, stream: bool) -> Heard:
    if status != 200:
        heard = Heard(status=status, error=json.loads(raw)["error"])
    elif protocol == "chat":
        heard = _read_chat_stream(raw) if stream else _read_completion(json.loads(raw))
    elif protocol == "responses":
        heard = _read_response(raw, stream=stream)
    else:
        heard = _read_message(raw, stream=stream)
    heard.headers, heard.raw = headers, raw
    return heard


def _read_chat_stream(raw: bytes) -> Heard:
    streamed = StreamedAnswer.from_bytes(raw)
    if streamed.errors:
        return Heard(text=streamed.text, error=streamed.errors[0])
    assert streamed.done == 1
    made: dict[str, Any] = {"content": streamed.text, "reasoning_content": "", "refusal": "", "tool_calls": {}}
    made["annotations"] = []
    for event in streamed.events:
        for choice in event.get("choices", []):
            delta = choice["delta"] or {}
            for key in ("reasoning_content", "refusal"):
                made[key] += delta.get(key) or ""
            made["annotations"] += delta.get("annotations") or []
            for piece in delta.get("tool_calls") or []:
                call = made["tool_calls"].setdefault(piece["index"], {"function": {"name": "", "arguments": ""}})
                call |= {key: piece[key] for key in ("id", "type") if piece.get(key)}
                function = call["function"]
                function["name"] = function["name"] or piece["function"].get("name") or ""
                function["arguments"] += piece["function"].get("arguments") or ""
    made["tool_calls"] = [*made["tool_calls"].values()]
    (finish,) = streamed.finishes
    usage = [event["usage"] for event in streamed.events if event.get("usage")]
    return _read_completion({"choices": [{"message": made, "finish_reason": finish}], "usage": (usage or [{}])[-1]})


def _read_completion(answer: dict[str, Any]) -> Heard:
    choice, usage = answer["choices"][0], answer.get("usage") or {}
    message = choice["message"]
    functions = [call["function"] for call in message.get("tool_calls") or []]
    said = {"role": "assistant", "content": message["content"]}
    said |= {"tool_calls": message["tool_calls"]} if functions else {}
    pages = [one["url_citation"]["url"] for one in message.get("annotations") or []]
    prompt, completion = (usage.get(f"{name}_tokens_details") or {} for name in ("prompt", "completion"))
    return Heard(
        text=message["content"] or "", reasoning=message.get("reasoning_content") or "",
        refusal=message.get("refusal") or "", finish=_FINISHES[choice["finish_reason"]],
        calls=[(function["name"], json.loads(function["arguments"])) for function in functions],
        sent=usage.get("prompt_tokens", 0), answered=usage.get("completion_tokens", 0), said=[said], cited=pages,
        cached=prompt.get("cached_tokens", 0), thought=completion.get("reasoning_tokens", 0),
    )  # fmt: skip


def _read_response(raw: bytes, *, stream: bool) -> Heard:
    if stream:
        response = response_events.check_events(response_events.parse_stream(raw))
    else:
        response = json.loads(raw)
        response_events.check_response(response)
    heard = Heard(error=response["error"], said=response["output"])
    for item in response["output"]:
        match item["type"]:
            case "message":
                heard.text += "".join(part.get("text", "") for part in item["content"])
                heard.refusal += "".join(part.get("refusal", "") for part in item["content"])
                heard.cited += [one["url"] for part in item["content"] for one in part.get("annotations", [])]
            case "reasoning":
                parts = [*item["summary"], *(item.get("content") or [])]
                heard.reasoning += "".join(part["text"] for part in parts)
            case "function_call":
                if item["status"] == "completed":
                    heard.calls.append((item["name"], json.loads(item["arguments"])))
            case "mcp_call":
                heard.ours.append(item["name"])
    details = response["incomplete_details"] or {}
    heard.finish = _FINISHES.get(details.get("reason") or response["status"], "")
    heard.finish = CALLS if heard.calls else REFUSED if heard.refusal else heard.finish
    if usage := response["usage"]:
        heard.sent, heard.answered = usage["input_tokens"], usage["output_tokens"]
        heard.cached = usage["input_tokens_details"]["cached_tokens"]
        heard.thought = usage["output_tokens_details"]["reasoning_tokens"]
    return heard


def _read_message(raw: bytes, *, stream: bool) -> Heard:
    if stream and b"event: error" in raw:
        data = raw[raw.index(b"event: error") :].split(b"\n")[1].removeprefix(b"data: ")
        return Heard(error=json.loads(data)["error"])
    message = messages.read_stream(raw) if stream else messages.check_message(json.loads(raw))
    said = {"role": "assistant", "content": message["content"]}
    heard = Heard(finish=_FINISHES[message["stop_reason"]], said=[said])
    for block in message["content"]:
        match block["type"]:
            case "text":
                heard.text += block["text"]
                heard.cited += [one["url"] for one in block.get("citations") or []]
            case "thinking":
                heard.reasoning += block["thinking"]
            case "tool_use":
                heard.calls.append((block["name"], block["input"]))
            case "mcp_tool_use":
                heard.ours.append(block["name"])
    usage = message["usage"]
    cached = (usage.get("cache_read_input_tokens") or 0) + (usage.get("cache_creation_input_tokens") or 0)
    heard.sent, heard.answered = usage["input_tokens"] + cached, usage["output_tokens"]
    heard.cached = usage.get("cache_read_input_tokens") or 0
    heard.thought = (usage.get("output_tokens_details") or {}).get("thinking_tokens", 0)
    return heard
