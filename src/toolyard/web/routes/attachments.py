"""``/v1/attachments`` and ``/v1/project/files``: files for chat messages, uploaded or from the project.

Nothing is stored: the client keeps the text with its message. Looking for a file is no call of a tool, so the journal
has none of it.
"""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from toolyard.message import Message
from toolyard.protocol.json import JsonObject
from toolyard.tools.readers.attachment import read_attachment
from toolyard.web.refusal import bad_request
from toolyard.web.responses import Limit, json_response
from toolyard.web.schemas.assistants import AttachmentContent, ProjectFileList
from toolyard.yard.yard import Yard

_BODY: JsonObject = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}


def router(yard: Yard) -> APIRouter:
    routes = APIRouter(tags=["conversations"])

    @routes.post("/v1/attachments", responses={200: {"model": AttachmentContent}}, openapi_extra=_BODY)
    async def read_file(
        request: Request, name: Annotated[str, Query(min_length=1, max_length=255, description="Of the file.")]
    ) -> Response:
        """Return the text of an uploaded file or PDF, for a chat message; nothing is stored."""
        raw = await request.body()
        if not raw:
            raise bad_request(Message("attachment.empty", "'{name}' is empty", name=name))
        fallbacks = yard.config.settings.fallback_encodings
        attachment = await asyncio.to_thread(read_attachment, name, raw, size=len(raw), fallbacks=fallbacks)
        return json_response(attachment.to_json())

    @routes.get("/v1/project/files", responses={200: {"model": ProjectFileList}})
    async def find_files(
        search: Annotated[str, Query(max_length=200, description="Words in the path; none: the last changed.")] = "",
        limit: Limit = 50,
    ) -> Response:
        """Find files of the project by words in their paths, best matches first."""
        found = await asyncio.to_thread(yard.project_files.find, search, limit)
        return json_response({"data": [{"path": path} for path in found.paths], "truncated": found.truncated})

    @routes.get("/v1/project/attachment", responses={200: {"model": AttachmentContent}})
    async def attach_file(path: Annotated[str, Query(min_length=1, max_length=4096)]) -> Response:
        """Return a file of the project for a chat message: its text, the text of a PDF, or an image."""
        return json_response((await asyncio.to_thread(yard.project_files.attach, path)).to_json())

    return routes
