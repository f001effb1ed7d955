"""An estimate of the tokens of a Messages request, for providers that do not count them."""

from typing import Final

from toolyard.gateway.offer import estimate_tokens
from toolyard.protocol.json import Json, JsonObject, json_bytes

_PER_MESSAGE: Final = 4
_IMAGE: Final = 1_600  # of a large one; a smaller one has fewer
_PAGE: Final = 1_600
_PAGE_CHARS: Final = 80_000  # of Base64
_MAX_DEPTH: Final = 10  # of blocks in blocks; a picture in a result of a tool is at the sixth
_COUNTED: Final = ("text", "thinking", "name", "title", "content", "source", "input", "data")


def estimate_input_tokens(body: JsonObject) -> int:
    """Return an upper estimate; at least 1."""
    messages = body.get("messages")
    messages = messages if isinstance(messages, list) else []
    tokens = sum(_count(message) + _PER_MESSAGE for message in messages) + _count(body.get("system"))
    if tools := body.get("tools"):
        tokens += estimate_tokens(json_bytes(tools).decode())
    return max(1, tokens)


def _count(value: Json, depth: int = 0) -> int:
    if isinstance(value, str):
        return estimate_tokens(value)
    if depth > _MAX_DEPTH or not isinstance(value, list | dict):
        return 0
    if isinstance(value, list):
        return sum(_count(one, depth + 1) for one in value)
    kind = value.get("type")
    if kind == "image":
        return _IMAGE
    if kind == "base64":
        return _PAGE * (1 + len(str(value.get("data"))) // _PAGE_CHARS)
    if kind in ("tool_use", "mcp_tool_use", "server_tool_use"):
        return estimate_tokens(json_bytes(value.get("input")).decode()) + _count(value.get("name"))
    return sum(_count(value[key], depth + 1) for key in _COUNTED if key in value)
