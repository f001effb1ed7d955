"""``/pw=KEY/images/...`` and ``/pw=KEY/files/...``: files that plugins publish, as VCPToolBox serves them.

They stand in ``image/`` and ``file/`` of the project, or in those of the data folder of a plugin that has the key, then
with the name of the plugin in front. Whoever has the address may read; nothing is listed, nothing can be written. A
wrong key and a file that is not there get the same answer. Some plugins write two slashes in front.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, cast

from fastapi import APIRouter, Request, Response
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from toolyard.app import Yard
from toolyard.plugins.environment import data_folder
from toolyard.plugins.publish_keys import FILE_KEY, IMAGE_KEY, PublishKeys
from toolyard.protocol.failure import Failure
from toolyard.protocol.json import JsonObject
from toolyard.web.access import Access
from toolyard.web.edge import HEAD
from toolyard.web.head import Head
from toolyard.web.published_headers import headers_of, read_range
from toolyard.web.refusal import error_body
from toolyard.workspace.open_flags import FOLDER
from toolyard.workspace.published import PublishedFile, open_published

_CHUNK: Final = 256 * 1024
_BINARY: JsonObject = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {"description": "The file.", "content": _BINARY},
    206: {"description": "A part of it, as `Range` asked.", "content": _BINARY},
}
_OPEN: JsonObject = {"security": []}


@dataclass(frozen=True, slots=True)
class _Kind:
    """What one of the two addresses serves."""

    key: str
    folder: str
    images_only: bool


_IMAGES = _Kind(IMAGE_KEY, "image", images_only=True)
_FILES = _Kind(FILE_KEY, "file", images_only=False)


def router(yard: Yard, access: Access, keys: PublishKeys) -> APIRouter:
    routes = APIRouter(tags=["files"])

    async def serve(kind: _Kind, key: str, path: str, request: Request) -> Response:
        address = cast("Head", request.scope[HEAD]).address
        if not access.check_address_key(key, keys.read().get(kind.key), address):
            return _missing()
        plugin, _, rest = path.partition("/")
        found = yard.plugins.plugins.get(plugin)
        own = data_folder(yard.config.home, plugin) if found and kind.key in found.publish_keys else None
        file = await asyncio.to_thread(_open, yard, kind, path, own, rest)
        return _missing() if file is None else _answer(file, kind, request)

    @routes.api_route("//pw={key}/images/{path:path}", methods=["GET", "HEAD"], include_in_schema=False)
    @routes.head("/pw={key}/images/{path:path}", include_in_schema=False)
    @routes.get("/pw={key}/images/{path:path}", responses=_ANSWERS, openapi_extra=_OPEN)
    async def show_image(key: str, path: str, request: Request) -> Response:
        """A picture that a plugin publishes. The key in the address is all that it takes."""
        return await serve(_IMAGES, key, path, request)

    @routes.api_route("//pw={key}/files/{path:path}", methods=["GET", "HEAD"], include_in_schema=False)
    @routes.head("/pw={key}/files/{path:path}", include_in_schema=False)
    @routes.get("/pw={key}/files/{path:path}", responses=_ANSWERS, openapi_extra=_OPEN)
    async def show_file(key: str, path: str, request: Request) -> Response:
        """A file that a plugin publishes. The key in the address is all that it takes."""
        return await serve(_FILES, key, path, request)

    return routes


def _open(yard: Yard, kind: _Kind, path: str, own: Path | None, rest: str) -> PublishedFile | None:
    """The file in the project, else in the plugin's own folder."""
    try:
        folder = yard.open_folder(kind.folder)
    except Failure:
        found = None
    else:
        found = _open_in(folder, path)
    if found is None and own is not None:
        try:
            folder = os.open(own / kind.folder, FOLDER | os.O_NOFOLLOW)
        except OSError:
            return None
        found = _open_in(folder, rest)
    return found


def _open_in(folder: int, path: str) -> PublishedFile | None:
    try:
        return open_published(folder, path)
    finally:
        os.close(folder)


def _answer(file: PublishedFile, kind: _Kind, request: Request) -> Response:
    etag = f'"{file.modified_ns:x}-{file.size:x}"'
    headers = headers_of(file.name, etag, images_only=kind.images_only)
    status, start, count = HTTPStatus.OK, 0, file.size
    if request.headers.get("if-range", etag) == etag:
        status, start, count = read_range(request.headers.get("range", ""), file.size)
    unchanged = request.headers.get("if-none-match") == etag
    if headers is None or unchanged or status is HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
        os.close(file.fd)
        if headers is None:
            return _missing()
        if unchanged:
            return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
        return Response(status_code=status, headers={"content-range": f"bytes */{file.size}"})
    if status is HTTPStatus.PARTIAL_CONTENT:
        headers["content-range"] = f"bytes {start}-{start + count - 1}/{file.size}"
    headers["content-length"] = str(count)
    return _FileAnswer(file.fd, start, 0 if request.method == "HEAD" else count, status, headers)


def _missing() -> Response:
    status = HTTPStatus.NOT_FOUND
    return Response(error_body(status, "there is no such file"), status, media_type="application/json")


class _FileAnswer(StreamingResponse):
    """Sends a part of an open file, a chunk at a time, and closes it whatever happens."""

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
            else:  # a thread has it in hand
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
