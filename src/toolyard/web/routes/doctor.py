"""``/v1/doctor`` and ``/v1/backup``: health checks of this machine, and a backup of the home."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from secrets import token_hex
from typing import IO

from fastapi import APIRouter, Response
from starlette.responses import StreamingResponse

from toolyard.doctor import run_checks
from toolyard.engine.clock import Clock
from toolyard.message import to_fields
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.tool import ToolSpec
from toolyard.storage.backup import back_up
from toolyard.web.responses import json_response
from toolyard.web.schemas.admin import CheckRows
from toolyard.yard.yard import Yard

_CHUNK = 256 * 1024
_ARCHIVE: JsonObject = {"application/gzip": {"schema": {"type": "string", "format": "binary"}}}


def router(yard: Yard, clock: Clock) -> APIRouter:
    routes = APIRouter(prefix="/v1", tags=["doctor"])

    @routes.get("/doctor", responses={200: {"model": CheckRows}})
    async def run_doctor() -> Response:
        """Run the checks of `toolyard doctor`; each problem says how to fix it."""
        tools = [tool.spec for tool in yard.tools.list_built_in_first()]
        checks = await asyncio.to_thread(_run_checks, yard, tools)
        return json_response(yard.mask.mask_known({"data": checks}))

    @routes.post(
        "/backup", response_class=Response, responses={200: {"description": "A .tar.gz.", "content": _ARCHIVE}}
    )
    async def make_backup() -> Response:
        """Return the state, settings and keys of the home as one archive, like `toolyard backup`."""
        file = await asyncio.to_thread(_make_backup, yard.config.home)
        stamp = clock.now().strftime("%Y%m%d-%H%M%S")
        headers = {
            "Content-Length": str(os.fstat(file.fileno()).st_size),
            "Content-Disposition": f'attachment; filename="toolyard-{stamp}.tar.gz"',
        }
        return StreamingResponse(_read_chunks(file), headers=headers, media_type="application/gzip")

    return routes


def _run_checks(yard: Yard, tools: list[ToolSpec]) -> list[Json]:
    checks = run_checks(str(yard.config.project), str(yard.config.home), tools, yard.plugins.plugins.all)
    return [
        {"name": one.name, "level": one.health.value, **to_fields("message", one.detail), **to_fields("fix", one.fix)}
        for one in checks
    ]


def _make_backup(home: Path) -> IO[bytes]:
    """Return an open, unlinked archive, so that nothing remains after the download."""
    place = home / f".backup-{token_hex(8)}"
    back_up(home, place)
    try:
        return place.open("rb")
    finally:
        place.unlink()


def _read_chunks(file: IO[bytes]) -> Iterator[bytes]:
    with file:
        while chunk := file.read(_CHUNK):
            yield chunk
