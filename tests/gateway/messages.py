"""Judges of what clients of Anthropic's Messages get: the order of the events, and the message that they make."""

import json
from typing import Any

from anthropic.types.beta import BetaMessage
from pydantic import TypeAdapter

KINDS = (
    "end_turn",
    "max_tokens",
    "stop_sequence",
    "tool_use",
    "pause_turn",
    "refusal",
    "model_context_window_exceeded",
)
DELTAS = {
    "text": {"text_delta", "citations_delta"},
    "thinking": {"thinking_delta", "signature_delta"},
    "redacted_thinking": set[str](),
    "tool_use": {"input_json_delta"},
    "server_tool_use": {"input_json_delta"},
    "mcp_tool_use": set[str](),  # with deltas Claude Code sends its request again
    "mcp_tool_result": set[str](),
    "web_search_tool_result": set[str](),
}
BESIDE = ("context_management",)  # what the last event has beside its delta
_FIELDS = {"text_delta": "text", "thinking_delta": "thinking"}


def parse_events(raw: bytes) -> list[dict[str, Any]]:
    """The events of a stream; each has its name in its data, too."""
    events = []
    for block in raw.decode().split("\n\n"):
        lines = [line for line in block.split("\n") if line and not line.startswith((":", "id: "))]
        if not lines:
            continue
        name, data = lines
        event = json.loads(data.removeprefix("data: "))
        assert name == f"event: {event['type']}"
        events.append(event)
    return events


def read_stream(raw: bytes) -> dict[str, Any]:
    """The message that the events make, which must come in the documented order."""
    return check_order(parse_events(raw))


def check_order(events: list[dict[str, Any]]) -> dict[str, Any]:
    events = [event for event in events if event["type"] != "ping"]
    kinds = [event["type"] for event in events]
    assert kinds[0] == "message_start"
    assert kinds.count("message_start") == 1
    assert kinds[-2:] == ["message_delta", "message_stop"], kinds
    assert kinds.count("message_delta") == kinds.count("message_stop") == 1
    message: dict[str, Any] = events[0]["message"]
    assert message["content"] == []
    assert message["usage"]["input_tokens"] + message["usage"]["cache_read_input_tokens"] > 0
    is_open, written = False, ""
    for event in events[1:-2]:
        match event["type"]:
            case "content_block_start":
                assert not is_open, "two blocks are open at once"
                assert event["index"] == len(message["content"])
                message["content"].append(event["content_block"])
                is_open, written = True, ""
            case "content_block_delta":
                block, delta = message["content"][-1], event["delta"]
                assert is_open
                assert event["index"] == len(message["content"]) - 1
                assert delta["type"] in DELTAS[block["type"]]
                if delta["type"] in _FIELDS:
                    block[_FIELDS[delta["type"]]] += delta[_FIELDS[delta["type"]]]
                elif delta["type"] == "signature_delta":
                    assert not block["signature"]
                    block["signature"] = delta["signature"]
                elif delta["type"] == "citations_delta":
                    block.setdefault("citations", []).append(delta["citation"])
                else:
                    written += delta["partial_json"]
            case "content_block_stop":
                assert is_open
                assert event["index"] == len(message["content"]) - 1
                is_open = False
                if written:
                    message["content"][-1]["input"] = json.loads(written)
            case kind:
                raise AssertionError(f"no event of a message: {kind}")
    assert not is_open
    message |= events[-2]["delta"] | {key: events[-2][key] for key in BESIDE if key in events[-2]}
    message["usage"] |= events[-2]["usage"]
    return check_message(message)


def check_message(message: dict[str, Any]) -> dict[str, Any]:
    """A whole message: as the official client's types have it, with text before any call of ours."""
    TypeAdapter(BetaMessage).validate_python(message)
    assert message["stop_reason"] in KINDS
    kinds = [block["type"] for block in message["content"] if "thinking" not in block["type"]]
    assert not kinds[0].startswith("mcp_")
    has_calls = "tool_use" in kinds
    assert (message["stop_reason"] == "tool_use") <= has_calls
    return message


def text_of(message: dict[str, Any]) -> str:
    return "".join(block["text"] for block in message["content"] if block["type"] == "text")
