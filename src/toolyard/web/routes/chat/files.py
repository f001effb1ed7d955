"""Files around a chat: media by their signed links, attachments, and a look into the project folder.

Media are for anyone with a link, on pages of any origin. The signature is the permission; no key is needed or checked.
Only a fixed list of media types is served, each as exactly that type, and nothing served can run scripts. There is no
listing. Of attachments nothing is stored: the client keeps the text with its message. Looking for a file or into a
folder is no call of a tool, so the journal has none of it.
"""

import asyncio
from http import HTTPStatus
from typing import Annotated, Final

from fastapi import Query, Request, Response
from fastapi.responses import FileResponse
from pydantic import BaseModel, Field

from toolyard.gateway.media_links import LinkState, MediaLinks
from toolyard.message import Message
from toolyard.protocol.content import Attachment
from toolyard.protocol.envelope import ErrorCode, Failure
from toolyard.protocol.json import JsonObject
from toolyard.storage.media_store import KEPT
from toolyard.tools.project_files import read_attachment
from toolyard.web.answers import Limit, json_response
from toolyard.web.refusal import Refusal, bad_request
from toolyard.web.routing import Routes
from toolyard.web.schemas.common import ErrorBody, StrictModel
from toolyard.web.schemas.records import record_model
from toolyard.web.security.scope import PUBLIC, Scope
from toolyard.workspace.folder_listing import EntryType
from toolyard.yard.yard import Yard

AttachmentContent = record_model("AttachmentContent", Attachment)


class ProjectFileRow(StrictModel):
    path: Annotated[str, Field(description="Relative to the project.")]


class ProjectFileList(StrictModel):
    data: list[ProjectFileRow]
    truncated: Annotated[bool, Field(description="Whether more files match.")]


class ProjectEntry(BaseModel):
    name: str
    path: Annotated[str, Field(description="Relative to the root.")]
    type: EntryType


class ProjectFolder(BaseModel):
    path: Annotated[str, Field(description="Relative to the root, which is `.`; links are resolved.")]
    entries: list[ProjectEntry]
    truncated: Annotated[bool, Field(description="There are more entries than were returned.")]


_HEADERS: Final = {
    "Content-Disposition": "inline",
    "Content-Security-Policy": "default-src 'none'; img-src 'self'; frame-ancestors 'none'; sandbox",
    "Cross-Origin-Resource-Policy": "cross-origin",
    "Cache-Control": f"private, max-age={KEPT.total_seconds():.0f}, immutable",
}
_PLAYED: Final = _HEADERS | {  # browsers play no media in a sandbox
    "Content-Security-Policy": "default-src 'none'; media-src 'self'; frame-ancestors 'none'"
}
_BINARY: Final[JsonObject] = {"schema": {"type": "string", "format": "binary"}}
_MEDIA: Final[JsonObject] = {"content": {"image/*": _BINARY, "audio/*": _BINARY, "video/*": _BINARY}}


def router(links: MediaLinks) -> Routes:
    routes = Routes(tag="media", scope=PUBLIC)

    @routes.head("/media/{name}", include_in_schema=False)
    @routes.get(
        "/media/{name}",
        responses={200: _MEDIA, 206: _MEDIA, 403: {"model": ErrorBody}, 410: {"model": ErrorBody}},
        response_class=Response,
        openapi_extra={"security": []},
    )
    async def show_media(name: str, expires: str = "", signature: str = "") -> Response:
        """Return an image, audio or video file of a chat by its signed link; ranges are supported."""
        state = await links.check(name, expires, signature)
        if state is LinkState.FORGED:
            raise Refusal(
                HTTPStatus.FORBIDDEN, Message("the signature of this link is invalid: use the link unchanged")
            )
        stored = await links.find(name) if state is LinkState.VALID else None
        if stored is None:
            raise Refusal(
                HTTPStatus.GONE, Message("this file has expired: media are kept for {days} days", days=KEPT.days)
            )
        headers = _HEADERS if stored.mime.startswith("image/") else _PLAYED
        return FileResponse(stored.path, media_type=stored.mime, headers=headers)

    return routes


_BODY: JsonObject = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}


def attachments_router(yard: Yard) -> Routes:
    routes = Routes(tag="conversations")

    @routes.post("/v1/attachments", AttachmentContent, scope=Scope.CHAT, openapi_extra=_BODY)
    async def read_file(
        request: Request, name: Annotated[str, Query(min_length=1, max_length=255, description="Of the file.")]
    ) -> Response:
        """Return the text of an uploaded file or PDF, for a chat message; nothing is stored."""
        raw = await request.body()
        if not raw:
            raise bad_request(Message("'{name}' is empty", name=name))
        fallbacks = yard.config.settings.fallback_encodings
        attachment = await asyncio.to_thread(read_attachment, name, raw, size=len(raw), fallbacks=fallbacks)
        return json_response(attachment.to_json())

    @routes.get("/v1/project/files", ProjectFileList, scope=Scope.TOOLS)
    async def find_files(
        search: Annotated[str, Query(max_length=200, description="Words in the path; none: the last changed.")] = "",
        limit: Limit = 50,
    ) -> Response:
        """Find files of the project by words in their paths, best matches first."""
        found = await asyncio.to_thread(yard.project_files.find, search, limit)
        return json_response({"data": [{"path": path} for path in found.paths], "truncated": found.truncated})

    @routes.get("/v1/project/attachment", AttachmentContent, scope=Scope.TOOLS)
    async def attach_file(path: Annotated[str, Query(min_length=1, max_length=4096)]) -> Response:
        """Return a file of the project for a chat message: its text, the text of a PDF, or an image."""
        return json_response((await asyncio.to_thread(yard.project_files.attach, path)).to_json())

    return routes


_STATUSES = {ErrorCode.NOT_FOUND: HTTPStatus.NOT_FOUND, ErrorCode.ACCESS_DENIED: HTTPStatus.FORBIDDEN}


def project_router(yard: Yard) -> Routes:
    routes = Routes("/v1/project", tag="tools", scope=Scope.TOOLS)

    @routes.get("/folder", ProjectFolder)
    async def list_folder(
        path: Annotated[str, Query(max_length=4096, description="A folder, relative to the root.")] = ".",
        nearest: Annotated[bool, Query(description="List the nearest folder above a path that is no folder.")] = False,
    ) -> Response:
        """List a folder of the project: folders first, at most 2,000 entries. Nothing outside it can be listed."""
        try:
            listing = await asyncio.to_thread(yard.list_folder, path or ".", nearest=nearest)
        except Failure as failure:
            raise Refusal(_STATUSES.get(failure.code, HTTPStatus.BAD_REQUEST), failure.message) from failure
        return json_response(listing.to_json())

    return routes
