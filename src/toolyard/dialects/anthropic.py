"""The ``tool_result`` block of Anthropic's Messages format; its envelope is the truncated one.

Models read pictures of four formats, and PDF files. Other media are in the envelope only, as references.
"""

import json
from typing import Any, Final

from toolyard.dialects.content_parts import list_parts
from toolyard.protocol.content import Media
from toolyard.protocol.tool import Outcome, ToolCall

_BLOCKS: Final = {
    "image/png": "image",
    "image/jpeg": "image",
    "image/gif": "image",
    "image/webp": "image",
    "application/pdf": "document",
}


def encode(call: ToolCall, outcome: Outcome) -> dict[str, Any]:
    text = json.dumps(outcome.envelope.to_dict(), ensure_ascii=False)
    media = [part for part in list_parts(outcome) if isinstance(part, Media) and part.mime in _BLOCKS]
    return {
        "type": "tool_result",
        "tool_use_id": call.use_id or call.id,
        "content": [{"type": "text", "text": text}, *map(_encode_media, media)] if media else text,
        "is_error": outcome.envelope.error is not None,
    }


def _encode_media(media: Media) -> dict[str, Any]:
    source = {"type": "base64", "media_type": media.mime, "data": media.base64()}
    return {"type": _BLOCKS[media.mime], "source": source}
