"""Content: texts and media, whose type is detected from their bytes and never from a name.

A part that was read from a plugin's output keeps the item as its ``original`` where it would be written differently,
so that the dialect in which it was written can pass it on unchanged. Two parts are equal whatever their originals and
sources are. ``data`` refers to media, and never has their bytes: those that came with a result are stored under a name
made of their content, so the reference is known before they are stored, and the same on every host.

An attachment is a file that a person gives a model with a message. A client sends its text inside
``ATTACHMENT_OPENING`` and ``ATTACHMENT_CLOSING`` in front of the words of the message, so that both the model and the
server know what is a file: a tool request in it never runs, even if the model repeats it.
"""

import base64
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Final, TypeAlias

from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.records.client_json import Doc, to_client_json

SNIFF_BYTES = 64  # bytes of a file that ``sniff`` needs
_SIGNATURES: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"II*\x00", "image/tiff"),
    (b"MM\x00*", "image/tiff"),
    (b"\x00\x00\x01\x00", "image/x-icon"),
    (b"%PDF-", "application/pdf"),
    (b"ID3\x02", "audio/mpeg"),
    (b"ID3\x03", "audio/mpeg"),
    (b"ID3\x04", "audio/mpeg"),
    (b"\xff\xfb", "audio/mpeg"),
    (b"\xff\xf3", "audio/mpeg"),
    (b"\xff\xf2", "audio/mpeg"),
    (b"\xff\xf1", "audio/aac"),
    (b"\xff\xf9", "audio/aac"),
    (b"fLaC", "audio/flac"),
    (b"OggS", "audio/ogg"),
)
_RIFF = {b"WEBP": "image/webp", b"WAVE": "audio/wav", b"AVI ": "video/x-msvideo"}
_ISO_BRANDS = {
    b"avif": "image/avif",
    b"heic": "image/heic",
    b"heix": "image/heic",
    b"mif1": "image/heic",
    b"M4A ": "audio/mp4",
    b"M4B ": "audio/mp4",
    b"qt  ": "video/quicktime",
}
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
ATTACHMENT_OPENING: Final = "<attached_file "
ATTACHMENT_CLOSING: Final = "</attached_file>"


@dataclass(frozen=True, slots=True)
class Text:
    text: str
    original: Json = field(default=None, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Link(Text):
    """The address of media that are not fetched; for a model it is a text."""

    kind: str = field(default="image", kw_only=True)  # of the media at the address, as far as known


@dataclass(frozen=True, slots=True)
class Blob(Text):
    """Bytes of an unknown format, with the text shown in their place."""

    data: bytes = field(kw_only=True)
    name: str = field(default="", kw_only=True)
    source: str = field(default="", compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Media:
    mime: str
    data: bytes
    name: str = ""
    source: str = field(default="", compare=False, kw_only=True)  # a path in the project, or a URL
    original: Json = field(default=None, compare=False, repr=False, kw_only=True)

    @property
    def kind(self) -> str:
        """``image``, ``audio``, ``video`` or ``application``."""
        return self.mime.partition("/")[0]

    def base64(self) -> str:
        return base64.b64encode(self.data).decode("ascii")

    def data_uri(self) -> str:
        return f"data:{self.mime};base64,{self.base64()}"


Part: TypeAlias = Text | Media


def sniff(head: bytes) -> str | None:
    """Return the media type of a file that starts with ``head``, or None when it is unknown."""
    for signature, mime in _SIGNATURES:
        if head.startswith(signature):
            return mime
    if head[:4] == b"RIFF":
        return _RIFF.get(head[8:12])
    if head[4:8] == b"ftyp":
        return _ISO_BRANDS.get(head[8:12], "video/mp4")
    if head[:4] == b"\x1aE\xdf\xa3":
        return "video/webm" if b"webm" in head else "video/x-matroska"
    if head[:2] == b"BM" and head[6:10] == b"\0\0\0\0":
        return "image/bmp"
    return None


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


class AttachmentKind(StrEnum):
    TEXT = "text"
    PDF = "pdf"
    IMAGE = "image"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    name: Annotated[str, Doc("The name of the file; of a project file its path.")]
    kind: AttachmentKind
    size: Annotated[int, Doc("The bytes of the complete file.")]
    text: Annotated[str, Doc("The beginning of its text; empty for an image.")] = ""
    truncated: Annotated[bool, Doc("Whether the file has more text.")] = False
    pages: Annotated[int | None, Doc("The pages of a PDF.")] = None
    image: Annotated[str, Doc("An image as a data URI; else empty.")] = ""

    def to_json(self) -> JsonObject:
        return to_client_json(self)


def find_attached_text(content: str) -> str:
    """Return the files in the text of a message, from the first opening to the last closing; empty without any.

    A file may contain a closing of its own, so nothing between the two counts as the words of a person.
    """
    start, end = content.find(ATTACHMENT_OPENING), content.rfind(ATTACHMENT_CLOSING)
    return content[start:end] if 0 <= start < end else ""
