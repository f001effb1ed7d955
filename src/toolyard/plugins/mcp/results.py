"""Convert a ``CallToolResult`` to a Result or a Failure.

A server that answers in envelopes, as Toolyard itself does, is taken at its word. Texts that only repeat the structured
content are left out, so that a model reads it once.
"""

import json
from typing import Any

import mcp_types as types

from toolyard.message import Message
from toolyard.protocol.envelope import ErrorCode
from toolyard.protocol.failure import Failure
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.outcome import Result
from toolyard.protocol.plugin_result import read_plugin_result


def to_result(tool: str, result: types.CallToolResult) -> Result:
    structured: Json = result.structured_content
    if isinstance(structured, dict) and {"status", "data", "text", "stats", "context"} <= structured.keys():
        return read_plugin_result(tool, structured)
    content: list[Json] = [_to_part(block) for block in result.content]
    if result.is_error:
        message = "\n".join(_split(content)[0]).strip() or Message(
            "mcp.failed_silently", "{tool} failed and did not say why.", tool=tool
        )
        data: JsonObject = structured if isinstance(structured, dict) else {}
        raise Failure(ErrorCode.EXECUTION_ERROR, message, data=data)
    beside: JsonObject = structured if isinstance(structured, dict) else {}
    if structured is not None and not beside:
        beside = {"result": structured}
    texts, media = _split(content)
    if not content or (not media and _repeats_value(texts, structured)):
        return read_plugin_result(tool, {"status": "success", "result": structured})
    if beside.keys() == {"result"} and not media and _repeats_value(texts, beside["result"]):
        return read_plugin_result(tool, {"status": "success", "result": beside["result"]})
    if media and _repeats_value(texts, structured):
        content = media
    return read_plugin_result(tool, {"status": "success", "result": {**beside, "content": content}})


def _split(content: list[Json]) -> tuple[list[str], list[Json]]:
    """Split content into its texts and everything else."""
    texts = [str(part["text"]) for part in content if isinstance(part, dict) and part["type"] == "text"]
    return texts, [part for part in content if not (isinstance(part, dict) and part["type"] == "text")]


def _repeats_value(texts: list[str], value: Json) -> bool:
    """Return whether texts only repeat this value as JSON, as servers do for clients of older protocols."""
    if len(texts) == 1:
        return _is_json_of(texts[0], value)
    if not isinstance(value, list) or len(texts) != len(value) or not texts:
        return False
    return all(_is_json_of(text, item) for text, item in zip(texts, value, strict=True))


def _is_json_of(text: str, value: Json) -> bool:
    if isinstance(value, str):
        return text == value
    try:
        return value is not None and bool(json.loads(text) == value)
    except (ValueError, RecursionError):
        return False


def _to_part(block: types.ContentBlock) -> dict[str, Any]:
    """Convert a content block to the form in which plugins write content."""
    match block:
        case types.TextContent():
            return {"type": "text", "text": block.text}
        case types.ImageContent() | types.AudioContent():
            return {"type": "image_url", "image_url": {"url": f"data:{block.mime_type};base64,{block.data}"}}
        case types.ResourceLink():
            return {"type": "text", "text": f"{block.name}: {block.uri}"}
        case types.EmbeddedResource(resource=types.TextResourceContents() as inner):
            return {"type": "text", "text": inner.text}
        case types.EmbeddedResource(resource=types.BlobResourceContents() as inner):
            mime = inner.mime_type or "application/octet-stream"
            return {
                "type": "image_url",
                "name": str(inner.uri),
                "image_url": {"url": f"data:{mime};base64,{inner.blob}"},
            }
        case _:
            return {"type": "text", "text": block.model_dump_json(by_alias=True, exclude_none=True)}
