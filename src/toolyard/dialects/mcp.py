"""The ``CallToolResult`` of the Model Context Protocol."""

from typing import Any
from urllib.parse import quote

from toolyard.dialects.content import content_of
from toolyard.protocol.content import Part, Text
from toolyard.protocol.outcome import Outcome


def encode(outcome: Outcome) -> dict[str, Any]:
    return {
        "content": [_part(part) for part in content_of(outcome)],
        "structuredContent": outcome.envelope.to_dict(),
        "isError": outcome.envelope.error is not None,
    }


def _part(part: Part) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    if part.kind in ("image", "audio"):
        return {"type": part.kind, "data": part.base64(), "mimeType": part.mime}
    uri = "toolyard://content/" + quote(part.name or "media")
    return {"type": "resource", "resource": {"uri": uri, "mimeType": part.mime, "blob": part.base64()}}
