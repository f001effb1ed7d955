"""``/v1/doctor`` and ``/v1/backup``: what is wrong on this machine, and a copy of all that must not be lost."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from secrets import token_hex
from typing import IO

from fastapi import APIRouter, Response
from starlette.responses import StreamingResponse

from toolyard.app import Yard
from toolyard.doctor import examine
from toolyard.engine.clock import Clock
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.tool import ToolSpec
from toolyard.storage.backup import back_up
from toolyard.web.answers import answer
from toolyard.web.shapes_admin import CheckRows

_CHUNK = 256 * 1024
_ARCHIVE: JsonObject = {"application/gzip": {"schema": {"type": "string", "format": "binary"}}}


def router(yard: Yard, clock: Clock) -> APIRouter:
    routes = APIRouter(prefix="/v1", tags=["doctor"])

    @routes.get("/doctor", responses={200: {"model": CheckRows}})
    async def run_doctor() -> Response:
        """Every check of `toolyard doctor`, each with how to mend it."""
        tools = [tool.spec for tool in yard.tools.list_built_in_first()]
        found = await asyncio.to_thread(_checks, yard, tools)
        return answer(yard.mask.mask_known({"data": found}))

    @routes.post("/backup", responses={200: {"description": "A .tar.gz.", "content": _ARCHIVE}})
    async def make_backup() -> Response:
        """The state, the settings and the keys of the home as one archive, as `toolyard backup` makes it."""
        file = await asyncio.to_thread(_backup, yard.config.home)
        stamp = clock.now().strftime("%Y%m%d-%H%M%S")
        headers = {
            "Content-Length": str(os.fstat(file.fileno()).st_size),
            "Content-Disposition": f'attachment; filename="toolyard-{stamp}.tar.gz"',
        }
        return StreamingResponse(_chunks(file), headers=headers, media_type="application/gzip")

    return routes


def _checks(yard: Yard, tools: list[ToolSpec]) -> list[Json]:
    found = examine(str(yard.config.project), str(yard.config.home), tools)
    return [{"name": one.name, "level": one.health.value, "message": one.detail, "fix": one.fix} for one in found]


def _backup(home: Path) -> IO[bytes]:
    """An open archive that has no name any more: whatever becomes of the download, nothing of it stays."""
    place = home / f".backup-{token_hex(8)}"
    back_up(home, place)
    try:
        return place.open("rb")
    finally:
        place.unlink()


def _chunks(file: IO[bytes]) -> Iterator[bytes]:
    with file:
        while chunk := file.read(_CHUNK):
            yield chunk
