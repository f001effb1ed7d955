"""Content parts: one text or one piece of media, whose type is detected from its bytes and never from a name.

A part that was read from a plugin's output keeps the item as its ``original`` where it would be written differently,
so that the dialect in which it was written can pass it on unchanged. Two parts are equal whatever their originals and
sources are.
"""

import base64
from dataclasses import dataclass, field
from typing import TypeAlias

from toolyard.protocol.json import Json

SNIFF_BYTES = 64  # bytes of a file that ``sniff`` needs


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
