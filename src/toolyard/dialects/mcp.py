"""The ``CallToolResult`` of the Model Context Protocol.

Many clients show a model ``content`` only. So when that would be the text alone, the content read and the rest of the
data follow it. The structured content is the envelope, or what an MCP server has sent.
"""

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from toolyard.dialects.content import list_parts
from toolyard.protocol.content import Part, Text
from toolyard.protocol.outcome import Outcome
from toolyard.protocol.shown_outcome import drop_repeats


def encode(outcome: Outcome) -> dict[str, Any]:
    return {
        "content": [_encode_part(part) for part in (*list_parts(outcome), *_list_data_parts(outcome))],
        **_encode_structured(outcome),
        "isError": outcome.envelope.error is not None,
    }


def drop_unfit_structure(result: dict[str, Any], *, only_objects: bool, has_own_schema: bool) -> None:
    """Remove a structured content that a client would refuse; the content says all of it.

    ``only_objects``: before 2026-07-28 it had to be an object. ``has_own_schema``: the tool declares one that is not
    the envelope; the TypeScript SDK checks failures against it too.
    """
    no_object = only_objects and not isinstance(result.get("structuredContent"), dict)
    if no_object or (has_own_schema and result["isError"]):
        result.pop("structuredContent", None)


def _encode_structured(outcome: Outcome) -> dict[str, Any]:
    own = outcome.extras.mcp
    if own is None:
        return {"structuredContent": outcome.envelope.to_dict()}
    return {"structuredContent": own["structured_content"]} if own else {}


def _list_data_parts(outcome: Outcome) -> Iterator[Part]:
    envelope = outcome.envelope
    if envelope.error or list_parts(outcome) != (Text(envelope.text),):
        return
    data = drop_repeats(envelope.data, envelope.text, outcome.extras.content_key)
    content = data.get("content")
    if isinstance(content, str):
        yield Text(content)
    rest = {key: value for key, value in data.items() if key != "content" or not isinstance(content, str)}
    if rest:
        yield Text(json.dumps(rest, ensure_ascii=False))


def _encode_part(part: Part) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    if part.kind in ("image", "audio"):
        return {"type": part.kind, "data": part.base64(), "mimeType": part.mime}
    uri = "toolyard://content/" + quote(part.name or "media")
    return {"type": "resource", "resource": {"uri": uri, "mimeType": part.mime, "blob": part.base64()}}
