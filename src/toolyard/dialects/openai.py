"""The ``role: "tool"`` message of the OpenAI chat format."""

from typing import Any

from toolyard.dialects.model_parts import join_texts, list_parts
from toolyard.protocol.content import Media
from toolyard.protocol.tool import Outcome, ToolCall


def encode(call: ToolCall, outcome: Outcome, language: str) -> dict[str, Any]:
    parts = list_parts(call, outcome, language)
    text, media = join_texts(parts), [part for part in parts if isinstance(part, Media)]
    content = [{"type": "text", "text": text}, *map(_encode_part, media)] if media else text
    return {"role": "tool", "tool_call_id": call.use_id or call.id, "content": content}


def _encode_part(media: Media) -> dict[str, Any]:
    if media.kind == "audio":
        format_ = {"audio/mpeg": "mp3"}.get(media.mime, media.mime.partition("/")[2])
        return {"type": "input_audio", "input_audio": {"data": media.base64(), "format": format_}}
    if media.kind == "video":
        return {"type": "video_url", "video_url": {"url": media.data_uri()}}
    if media.kind == "image":
        return {"type": "image_url", "image_url": {"url": media.data_uri()}}
    return {"type": "file", "file": {"filename": media.name, "file_data": media.data_uri()}}
