"""Images, audio and video: shown when their data is in the reply, and never fetched.

Data is shown when its declared type is on the list and its first bytes agree, within 1.5 MB, and for pictures 40
million pixels. SVG is shown as a picture only, where its scripts do not run. A remote address becomes a card with the
address, its host and a button that does nothing by itself.
"""

import base64
import binascii
import re
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

from toolyard.protocol.content import SNIFF_BYTES, Media, sniff
from toolyard.protocol.reply import AttachmentType
from toolyard.render.html.address import MAX_ADDRESS, parse_remote_address
from toolyard.render.html.card import render_figure, render_warning
from toolyard.render.html.pixels import read_pixels
from toolyard.render.html.sheet import Sheet
from toolyard.render.html.texts import Reason
from toolyard.render.html.visible import escape_plain, escape_text

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
