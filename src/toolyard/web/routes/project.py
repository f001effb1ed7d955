"""``/v1/project``: look into the project folder, to choose a path.

No tool runs, so nothing of this is in the journal.
"""

import asyncio
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query, Response

from toolyard.protocol.envelope import ErrorCode
from toolyard.protocol.failure import Failure
from toolyard.web.refusal import Refusal
from toolyard.web.responses import json_response
from toolyard.web.schemas.project import ProjectFolder
from toolyard.yard.yard import Yard

_STATUSES = {ErrorCode.NOT_FOUND: HTTPStatus.NOT_FOUND, ErrorCode.ACCESS_DENIED: HTTPStatus.FORBIDDEN}


def router(yard: Yard) -> APIRouter:
    routes = APIRouter(prefix="/v1/project", tags=["tools"])

    @routes.get("/folder", responses={200: {"model": ProjectFolder}})
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
