"""Images, audio and video: shown when their data is in the reply, and never fetched.

Data is shown when its declared type is on the list and its first bytes agree, within 1.5 MB, and for pictures 40
million pixels: a small file may expand to a huge picture, so the size is read from its first bytes without decoding it.
SVG is shown as a picture only, where its scripts do not run. A remote address becomes a card with the address, its host
and a button that does nothing by itself.
"""

import base64
import binascii
import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

from toolyard.protocol.content import SNIFF_BYTES, Media, sniff
from toolyard.protocol.replies.reply_values import AttachmentType
from toolyard.render.html.links import MAX_ADDRESS, parse_remote_address
from toolyard.render.html.sheet import Reason, Sheet, escape_plain, escape_text, render_figure, render_warning

_MAX_BYTES = 1_500_000
_MAX_PIXELS = 40_000_000
_MAX_SIDE = 16_384
_MAX_USES = 30  # of one part of an SVG by another: they multiply
_DATA = re.compile(r"\s*data:([^,;]{0,100})((?:;[^,;]{0,100}){0,5}),", re.IGNORECASE)
_SVG = "image/svg+xml"
_SAME = {"image/jpg": "image/jpeg", "audio/mp3": "audio/mpeg", "audio/x-wav": "audio/wav", "audio/wave": "audio/wav",
         "audio/x-m4a": "audio/mp4", "audio/m4a": "audio/mp4"}  # fmt: skip
_ALLOWED: dict[str, frozenset[str]] = {  # the declared type, and the types that its bytes may have
    **{mime: frozenset({mime}) for mime in ("image/png", "image/jpeg", "image/gif", "image/webp")},
    **{mime: frozenset({mime}) for mime in ("audio/mpeg", "audio/wav", "audio/ogg", "video/mp4", "video/webm")},
    "audio/mp4": frozenset({"audio/mp4", "video/mp4"}),
    "audio/webm": frozenset({"video/webm"}),
}
_JPEG_SIZES = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})  # segments with width and height
_JPEG_BARE = frozenset({0x01, *range(0xD0, 0xD9)})  # markers without a length


class MediaRefused(Exception):
    """A piece of media is not shown."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class _Picture:
    media: Media
    size: tuple[int, int] | None


def render_media(sheet: Sheet, kind: AttachmentType, source: str, title: str | None, *, inline: bool = False) -> str:
    """Return a ``figure``, or with ``inline`` something that can stand in a sentence."""
    elsewhere = parse_remote_address(source)
    if elsewhere:
        body = _render_remote(sheet, kind, elsewhere.href, elsewhere.host, source)
    else:
        try:
            body = _render_element(kind, _read_media(kind, source), title)
        except MediaRefused as refusal:
            body = render_warning(f"{sheet.texts.refused[refusal.reason]} {_shorten(source)}", inline=True)
    if not inline:
        return render_figure(kind.value, title, body)
    return body if body.startswith("<img") or not title else f'<span class="title">{escape_text(title)}</span> {body}'


def check_media_type(kind: AttachmentType, data: bytes) -> str:
    """Return the type of remote bytes, if a page may show them as ``kind``. Raises MediaRefused."""
    detected = sniff(data[:SNIFF_BYTES])
    mime = next((mime for mime, all_ in _ALLOWED.items() if mime.startswith(f"{kind}/") and detected in all_), None)
    if mime is None:
        raise MediaRefused(Reason.TYPE)
    if kind is AttachmentType.IMAGE:
        _check_size(mime, data)
    return mime


def _render_remote(sheet: Sheet, kind: AttachmentType, href: str, host: str, source: str) -> str:
    load = sheet.texts.load
    button = f'<button type="button" class="load" data-kind="{kind}" data-src="{escape_plain(href)}">{load}</button>'
    return (
        f'<span class="card remote">{sheet.texts.remote} <bdi class="host">{escape_text(host)}</bdi> '
        f'<bdi class="address">{escape_text(source.strip()[:MAX_ADDRESS])}</bdi> {button}</span>'
    )


def _render_element(kind: AttachmentType, picture: _Picture, title: str | None) -> str:
    uri = picture.media.data_uri()
    if kind is not AttachmentType.IMAGE:
        return f'<{kind} controls="" preload="metadata" src="{uri}"></{kind}>'
    size = ' width="{}" height="{}"'.format(*picture.size) if picture.size else ""
    return f'<img src="{uri}" alt="{escape_plain(title or "")}"{size}>'


def _read_media(kind: AttachmentType, source: str) -> _Picture:
    if kind is AttachmentType.IMAGE and re.match(r"\s*(?:<\?xml|<svg)", source):
        return _Picture(_clean_svg(source.encode("utf-8", "replace")), None)
    match = _DATA.match(source)
    if not match:
        raise MediaRefused(Reason.NO_MEDIA)
    mime = _SAME.get(match[1].strip().lower(), match[1].strip().lower())
    data = _decode_data(source[match.end() :], is_base64=match[2].lower().endswith(";base64"))
    if mime == _SVG and kind is AttachmentType.IMAGE:
        return _Picture(_clean_svg(data), None)
    if mime not in _ALLOWED or not mime.startswith(f"{kind}/"):
        raise MediaRefused(Reason.TYPE)
    if sniff(data[:SNIFF_BYTES]) not in _ALLOWED[mime]:
        raise MediaRefused(Reason.BYTES)
    return _Picture(Media(mime, data), _check_size(mime, data) if kind is AttachmentType.IMAGE else None)


def _decode_data(text: str, *, is_base64: bool) -> bytes:
    if len(text) > _MAX_BYTES * 4 // 3 + 4:
        raise MediaRefused(Reason.TOO_LARGE)
    data = unquote_to_bytes(text)
    if not is_base64:
        return data
    packed = re.sub(rb"\s+", b"", data).translate(bytes.maketrans(b"-_", b"+/"))
    try:
        return base64.b64decode(packed + b"=" * (-len(packed) % 4), validate=True)
    except binascii.Error as error:
        raise MediaRefused(Reason.BASE64) from error


def _check_size(mime: str, data: bytes) -> tuple[int, int]:
    size = read_pixels(mime, data)
    if size is None:
        raise MediaRefused(Reason.NO_SIZE)
    width, height = size
    if not (0 < width <= _MAX_SIDE and 0 < height <= _MAX_SIDE) or width * height > _MAX_PIXELS:
        raise MediaRefused(Reason.PIXELS)
    return size


def _clean_svg(data: bytes) -> Media:
    if len(data) > _MAX_BYTES:
        raise MediaRefused(Reason.TOO_LARGE)
    if not re.match(rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]*\?>\s*)?(?:<!--[^>]*-->\s*){0,5}<svg[\s>]", data):
        raise MediaRefused(Reason.BYTES)
    grows = re.search(rb"<!(?:DOCTYPE|ENTITY)", data, re.IGNORECASE)
    if grows or len(re.findall(rb"<(?:\w+:)?use\b", data)) > _MAX_USES:
        raise MediaRefused(Reason.SVG)
    return Media(_SVG, data)


def _shorten(source: str) -> str:
    text = source.strip()
    return text if len(text) <= 200 else f"{text[:200]}…"


def read_pixels(mime: str, data: bytes) -> tuple[int, int] | None:
    """Return width and height, or None when the picture does not contain them."""
    match mime:
        case "image/png" if data[12:16] == b"IHDR" and len(data) >= 24:
            return _read_big_endian(data, 16, 4), _read_big_endian(data, 20, 4)
        case "image/gif" if len(data) >= 10:
            return _read_gif(data)
        case "image/jpeg":
            return next(_read_jpeg(data), None)
        case "image/webp":
            return _read_webp(data)
    return None


def _read_big_endian(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "big")


def _read_little_endian(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "little")


def _read_gif(data: bytes) -> tuple[int, int]:
    """Return the size of a GIF: its screen, or its first frame where that is larger."""
    width, height = _read_little_endian(data, 6, 2), _read_little_endian(data, 8, 2)
    palette = 3 << ((data[10] & 7) + 1) if len(data) > 10 and data[10] & 0x80 else 0
    at = 13 + palette
    if data[at : at + 1] == b"," and len(data) >= at + 9:
        return max(width, _read_little_endian(data, at + 5, 2)), max(height, _read_little_endian(data, at + 7, 2))
    return width, height


def _read_jpeg(data: bytes) -> Iterator[tuple[int, int]]:
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if marker == 0xFF or marker in _JPEG_BARE:
            at += 1 if marker == 0xFF else 2
        elif marker in _JPEG_SIZES:
            yield _read_big_endian(data, at + 7, 2), _read_big_endian(data, at + 5, 2)
            return
        else:
            at += 2 + max(2, _read_big_endian(data, at + 2, 2))


def _read_webp(data: bytes) -> tuple[int, int] | None:
    if len(data) < 30:
        return None
    match data[12:16]:
        case b"VP8X":
            return _read_little_endian(data, 24, 3) + 1, _read_little_endian(data, 27, 3) + 1
        case b"VP8L":
            bits = _read_little_endian(data, 21, 4)
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8 ":
            return _read_little_endian(data, 26, 2) & 0x3FFF, _read_little_endian(data, 28, 2) & 0x3FFF
    return None
