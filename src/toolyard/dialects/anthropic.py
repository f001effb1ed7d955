"""The ``tool_result`` block of Anthropic's Messages format. Models read pictures of four formats, and PDF files."""

from typing import Any, Final

from toolyard.dialects.model_parts import join_texts, list_parts
from toolyard.protocol.content import Media
from toolyard.protocol.tool import Outcome, ToolCall

_BLOCKS: Final = {
    "image/png": "image",
    "image/jpeg": "image",
    "image/gif": "image",
    "image/webp": "image",
    "application/pdf": "document",
}


def encode(call: ToolCall, outcome: Outcome, language: str) -> dict[str, Any]:
    parts = list_parts(call, outcome, language)
    text, media = join_texts(parts), [part for part in parts if isinstance(part, Media) and part.mime in _BLOCKS]
    return {
        "type": "tool_result",
        "tool_use_id": call.use_id or call.id,
        "content": [{"type": "text", "text": text}, *map(_encode_media, media)] if media else text,
        "is_error": outcome.envelope.error is not None,
    }


def _encode_media(media: Media) -> dict[str, Any]:
    source = {"type": "base64", "media_type": media.mime, "data": media.base64()}
    return {"type": _BLOCKS[media.mime], "source": source}
