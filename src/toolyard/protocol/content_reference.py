"""Content parts as ``data`` refers to them: texts as they are, media as references, never as bytes.

Bytes that came with a result are stored under a name made of their content, so the reference is known before they are
stored, and the same on every host.
"""

import hashlib
import re
from collections.abc import Mapping

from toolyard.protocol.content import Blob, Link, Media, Part
from toolyard.protocol.json import Json, JsonObject

CONTENT_KEYS = _KEY, _OTHER_KEY = "content", "content_parts"
_STORED = re.compile(r"tool-output/media_[0-9a-f]{32}\.[a-z0-9]+")
_ENDINGS = {
    "application/pdf": "pdf",
    "audio/aac": "aac",
    "audio/flac": "flac",
    "audio/mp4": "m4a",
    "audio/mpeg": "mp3",
    "audio/ogg": "ogg",
    "audio/wav": "wav",
    "image/avif": "avif",
    "image/bmp": "bmp",
    "image/gif": "gif",
    "image/heic": "heic",
    "image/jpeg": "jpg",
    "image/png": "png",
    "image/tiff": "tiff",
    "image/webp": "webp",
    "image/x-icon": "ico",
    "video/mp4": "mp4",
    "video/quicktime": "mov",
    "video/webm": "webm",
    "video/x-matroska": "mkv",
    "video/x-msvideo": "avi",
}


def make_stored_path(data: bytes, mime: str = "") -> str:
    """Return the path under which the host stores bytes of a result, relative to the project root."""
    return f"tool-output/media_{hashlib.sha256(data).hexdigest()[:32]}.{_ENDINGS.get(mime, 'bin')}"


def is_stored_path(source: str) -> bool:
    """Return whether the host stores the bytes at ``source``; any other source exists already."""
    return bool(_STORED.fullmatch(source))


def content_key(data: Mapping[str, Json]) -> str:
    """Return the key of ``data`` for its parts: ``content``, or another one where the tool itself uses that."""
    return _KEY if _KEY not in data else _OTHER_KEY


def to_reference(part: Part) -> JsonObject:
    """Return a part as JSON without its bytes."""
    if isinstance(part, Media | Blob):
        kind, mime = (part.kind, part.mime) if isinstance(part, Media) else ("", "")
        return {
            "type": kind if kind in ("image", "audio", "video") else "file",
            "mime": mime or "application/octet-stream",
            "size": len(part.data),
            "name": part.name or _last_step(part.source),
            **_place(part.source),
        }
    if isinstance(part, Link):
        return {"type": part.kind, "name": _last_step(part.text), "url": part.text}
    return {"type": "text", "text": part.text}


def drop_path(value: Json, path: str) -> Json:
    """Return ``value`` without the references to ``path``, because nothing is there."""
    if isinstance(value, list):
        return [drop_path(inner, path) for inner in value]
    if not isinstance(value, dict):
        return value
    return {key: drop_path(inner, path) for key, inner in value.items() if (key, inner) != ("path", path)}


def _place(source: str) -> JsonObject:
    if not source:
        return {}
    return {"url": source} if "://" in source else {"path": source}


def _last_step(address: str) -> str:
    return address.partition("?")[0].partition("#")[0].rstrip("/").rpartition("/")[2]
