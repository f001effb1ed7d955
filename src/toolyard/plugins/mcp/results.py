"""Convert a ``CallToolResult`` to a Result or a Failure.

A server that answers in envelopes, as Toolyard itself does in ``_meta``, is taken at its word. Structured content is
``data``, and goes to MCP clients as it came. Texts that only repeat it are left out, so that a model reads it once.
"""

from dataclasses import replace
from typing import Any

import mcp_types as types

from toolyard.dialects.mcp_messages import ENVELOPE
from toolyard.message import Message
from toolyard.protocol.envelope import ErrorCode, Failure
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.plugin_answers.plugin_content import is_repeated, is_written, read_parts, to_pretty_json
from toolyard.protocol.plugin_answers.plugin_result import build_structured_result, read_plugin_result
from toolyard.protocol.tool import Result


def to_result(tool: str, result: types.CallToolResult) -> Result:
    structured: Json = result.structured_content
    has_structured = structured is not None or "structured_content" in result.model_fields_set
    mcp: JsonObject = {"structured_content": structured} if has_structured else {}
    for envelope in ((result.meta or {}).get(ENVELOPE), structured):
        if isinstance(envelope, dict) and {"status", "data", "text", "stats", "context"} <= envelope.keys():
            return _add_mcp(read_plugin_result(tool, envelope), mcp)
    content: list[Json] = [_to_part(block) for block in result.content]
    if result.is_error:
        message = "\n".join(_split(content)[0]).strip() or Message("{tool} failed and did not say why.", tool=tool)
        raise Failure(ErrorCode.EXECUTION_ERROR, message, data=structured if isinstance(structured, dict) else {})
    if not has_structured:
        return _add_mcp(read_plugin_result(tool, {"status": "success", "result": {"content": content}}), mcp)
    return _read_structured(tool, structured, content, mcp)


def _read_structured(tool: str, structured: Json, content: list[Json], mcp: JsonObject) -> Result:
    """Return a result whose data is the structured content, and whose parts say all of it, once."""
    data: JsonObject = structured if isinstance(structured, dict) else {"result": structured}
    texts, media = _split(content)
    written = to_pretty_json(structured)
    if not texts or _repeats_value(texts, structured):
        text = texts[0] if len(texts) == 1 else written
    elif data.keys() == {"result"} and _repeats_value(texts, data["result"]):
        text = texts[0] if len(texts) == 1 else to_pretty_json(data["result"])
    else:  # not every client shows its model more than the parts
        parts = read_parts([*content, {"type": "text", "text": written}])
        return build_structured_result(tool, data, "\n".join(texts), parts, mcp)
    return build_structured_result(tool, data, text, read_parts([{"type": "text", "text": text}, *media]), mcp)


def _add_mcp(result: Result, mcp: JsonObject) -> Result:
    return replace(result, extras=replace(result.extras, mcp=mcp))


def _split(content: list[Json]) -> tuple[list[str], list[Json]]:
    """Split content into its texts and everything else."""
    texts = [str(part["text"]) for part in content if isinstance(part, dict) and part["type"] == "text"]
    return texts, [part for part in content if not (isinstance(part, dict) and part["type"] == "text")]


def _repeats_value(texts: list[str], value: Json) -> bool:
    """Return whether texts only repeat this value as JSON, as servers do for clients of older protocols."""
    if len(texts) == 1:
        return is_repeated(value, texts[0]) or is_written(value, texts[0])
    if not isinstance(value, list) or len(texts) != len(value) or not texts:
        return False
    return all(_repeats_value([text], item) for text, item in zip(texts, value, strict=True))


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
