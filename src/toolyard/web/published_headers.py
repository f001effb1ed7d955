"""Response headers of a published file: content type, sandbox, ranges. Pure.

A page or an SVG runs no script and has no origin; a file of unknown type is downloaded instead of shown. Pages of other
servers may embed it, because that is what plugins publish URLs for.
"""

from http import HTTPStatus
from pathlib import PurePosixPath
from typing import Final
from urllib.parse import quote

IMAGES: Final = {
    ".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp",
    ".avif": "image/avif", ".bmp": "image/bmp", ".ico": "image/x-icon", ".svg": "image/svg+xml",
}  # fmt: skip
_TEXT = "text/plain; charset=utf-8"
FILES: Final = IMAGES | {
    ".txt": _TEXT, ".md": _TEXT, ".log": _TEXT, ".csv": "text/csv; charset=utf-8", ".json": "application/json",
    ".html": "text/html; charset=utf-8", ".htm": "text/html; charset=utf-8", ".xml": "application/xml",
    ".pdf": "application/pdf", ".mp4": "video/mp4", ".m4v": "video/mp4", ".webm": "video/webm",
    ".mov": "video/quicktime", ".mp3": "audio/mpeg", ".wav": "audio/wav", ".ogg": "audio/ogg", ".oga": "audio/ogg",
    ".opus": "audio/ogg", ".flac": "audio/flac", ".m4a": "audio/mp4", ".aac": "audio/aac",
}  # fmt: skip
_ACTIVE = frozenset({".svg", ".html", ".htm", ".xml"})
_SANDBOX = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; media-src data:"


def make_headers(name: str, etag: str, *, images_only: bool) -> dict[str, str] | None:
    """Return the headers for a file of this name; None when its type is not served here."""
    suffix = PurePosixPath(name).suffix.lower()
    kind = (IMAGES if images_only else FILES).get(suffix)
    if kind is None and images_only:
        return None
    headers = {
        "content-type": kind or "application/octet-stream",
        "x-content-type-options": "nosniff",
        "cross-origin-resource-policy": "cross-origin",
        "cache-control": "private, no-cache",
        "accept-ranges": "bytes",
        "etag": etag,
    }
    if suffix in _ACTIVE:
        headers["content-security-policy"] = _SANDBOX
    if kind is None:
        headers["content-disposition"] = f"attachment; filename*=UTF-8''{quote(name)}"
    return headers


def parse_range(header: str, size: int) -> tuple[HTTPStatus, int, int]:
    """Return status, offset and length for a ``Range`` header; an invalid one is ignored."""
    whole = HTTPStatus.OK, 0, size
    unit, _, bounds = header.replace(" ", "").partition("=")
    first, dash, last = bounds.partition("-")
    if unit != "bytes" or not dash or not all(_is_number(one) for one in (first, last) if one) or first + last == "":
        return whole
    start = int(first) if first else max(0, size - int(last))
    end = min(int(last), size - 1) if first and last else size - 1
    if first and last and int(last) < int(first):
        return whole
    if start >= size or (not first and int(last) == 0):
        return HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, 0, 0
    return HTTPStatus.PARTIAL_CONTENT, start, end - start + 1


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 20
