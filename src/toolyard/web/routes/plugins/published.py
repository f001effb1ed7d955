"""``/pw=KEY/images/...`` and ``/pw=KEY/files/...``: files that plugins publish, as VCPToolBox serves them.

The files are in ``image/`` and ``file/`` of the project, of a VCPToolBox installation that is used in place, or of the
data folder of a plugin that has the key, then after the plugin's name. Anyone with the URL may read; there is no
listing and no writing. A wrong key and a missing file get the same response. Some plugins write two leading slashes.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path, PurePosixPath
from typing import Any, Final, cast
from urllib.parse import quote

from fastapi import Request, Response
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from toolyard.plugins.package.environment import PublishKeys, data_folder
from toolyard.plugins.package.fingerprint import FILE_KEY, IMAGE_KEY
from toolyard.protocol.envelope import Failure
from toolyard.protocol.json import JsonObject
from toolyard.vcp.installation import Installation
from toolyard.web.refusal import error_body
from toolyard.web.routing import Routes
from toolyard.web.security.access import Access
from toolyard.web.security.middleware import REQUEST_HEAD
from toolyard.web.security.request_head import RequestHead
from toolyard.web.security.scope import PUBLIC
from toolyard.workspace.path_walk import FOLDER, PublishedFile, open_published
from toolyard.yard.yard import Yard

_CHUNK: Final = 256 * 1024
_BINARY: JsonObject = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {"description": "The file.", "content": _BINARY},
    206: {"description": "The requested range.", "content": _BINARY},
}
_OPEN: JsonObject = {"security": []}


@dataclass(frozen=True, slots=True)
class _PublishedKind:
    """One of the two kinds of published files."""

    key: str
    folder: str
    images_only: bool


_IMAGES = _PublishedKind(IMAGE_KEY, "image", images_only=True)
_FILES = _PublishedKind(FILE_KEY, "file", images_only=False)


def router(yard: Yard, access: Access, keys: PublishKeys, installation: Installation | None = None) -> Routes:
    """``installation`` is one of VCPToolBox that is used in place: its files open with its keys and ours."""
    theirs = {} if installation is None else {IMAGE_KEY: installation.image_key, FILE_KEY: installation.file_key}
    routes = Routes(tag="files", scope=PUBLIC)

    async def serve(kind: _PublishedKind, key: str, path: str, request: Request) -> Response:
        address = cast("RequestHead", request.scope[REQUEST_HEAD]).address
        right = filter(None, (keys.read().get(kind.key), theirs.get(kind.key)))
        if not access.check_url_key(key, right, address):
            return _not_found_response()
        plugin, _, rest = path.partition("/")
        owner = yard.plugins.plugins.get(plugin)
        own = data_folder(yard.config.home, plugin) if owner and kind.key in owner.publish_keys else None
        places = [(own / kind.folder, rest)] if own else []
        places += [(installation.root / kind.folder, path)] if installation else []
        file = await asyncio.to_thread(_open, yard, kind, path, places)
        return _not_found_response() if file is None else _file_response(file, kind, request)

    @routes.head("//pw={key}/images/{path:path}", include_in_schema=False)
    @routes.get("//pw={key}/images/{path:path}", include_in_schema=False)
    @routes.head("/pw={key}/images/{path:path}", include_in_schema=False)
    @routes.get("/pw={key}/images/{path:path}", responses=_ANSWERS, response_class=Response, openapi_extra=_OPEN)
    async def show_image(key: str, path: str, request: Request) -> Response:
        """Return an image that a plugin published. The key in the URL is the only credential."""
        return await serve(_IMAGES, key, path, request)

    @routes.head("//pw={key}/files/{path:path}", include_in_schema=False)
    @routes.get("//pw={key}/files/{path:path}", include_in_schema=False)
    @routes.head("/pw={key}/files/{path:path}", include_in_schema=False)
    @routes.get("/pw={key}/files/{path:path}", responses=_ANSWERS, response_class=Response, openapi_extra=_OPEN)
    async def show_file(key: str, path: str, request: Request) -> Response:
        """Return a file that a plugin published. The key in the URL is the only credential."""
        return await serve(_FILES, key, path, request)

    return routes


def _open(yard: Yard, kind: _PublishedKind, path: str, places: Sequence[tuple[Path, str]]) -> PublishedFile | None:
    """Open the file in the project, else in the first of other folders that has it."""
    try:
        folder = yard.open_folder(kind.folder)
    except Failure:
        file = None
    else:
        file = _open_in(folder, path)
    for place, inner in places:
        if file is None:
            with suppress(OSError):
                file = _open_in(os.open(place, FOLDER | os.O_NOFOLLOW), inner)
    return file


def _open_in(folder: int, path: str) -> PublishedFile | None:
    try:
        return open_published(folder, path)
    finally:
        os.close(folder)


def _file_response(file: PublishedFile, kind: _PublishedKind, request: Request) -> Response:
    etag = f'"{file.modified_ns:x}-{file.size:x}"'
    headers = make_headers(file.name, etag, images_only=kind.images_only)
    status, start, count = HTTPStatus.OK, 0, file.size
    if request.headers.get("if-range", etag) == etag:
        status, start, count = parse_range(request.headers.get("range", ""), file.size)
    unchanged = request.headers.get("if-none-match") == etag
    if headers is None or unchanged or status is HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
        os.close(file.fd)
        if headers is None:
            return _not_found_response()
        if unchanged:
            return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
        return Response(status_code=status, headers={"content-range": f"bytes */{file.size}"})
    if status is HTTPStatus.PARTIAL_CONTENT:
        headers["content-range"] = f"bytes {start}-{start + count - 1}/{file.size}"
    headers["content-length"] = str(count)
    return _FileResponse(file.fd, start, 0 if request.method == "HEAD" else count, status, headers)


def _not_found_response() -> Response:
    status = HTTPStatus.NOT_FOUND
    return Response(error_body(status, "there is no such file"), status, media_type="application/json")


class _FileResponse(StreamingResponse):
    """Sends a range of an open file in chunks, and closes it in any case."""

    def __init__(self, fd: int, start: int, count: int, status: HTTPStatus, headers: dict[str, str]) -> None:
        super().__init__(self._read(start, count), status, headers)
        self._fd = fd
        self._reading: asyncio.Future[bytes] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            if self._reading is None or self._reading.done():
                os.close(self._fd)
            else:  # a thread still reads it
                self._reading.add_done_callback(lambda _: os.close(self._fd))

    async def _read(self, start: int, count: int) -> AsyncIterator[bytes]:
        end = start + count
        while start < end:
            self._reading = asyncio.ensure_future(
                asyncio.to_thread(os.pread, self._fd, min(_CHUNK, end - start), start)
            )
            chunk = await asyncio.shield(self._reading)
            if not chunk:
                return  # it became shorter
            yield chunk
            start += len(chunk)


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
