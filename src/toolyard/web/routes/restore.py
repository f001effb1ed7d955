"""``/v1/backup/restore``: a backup is brought, looked at as a whole, and put in place by the next start of the server.

One waits to be looked at, and not for another start; what was confirmed waits for nothing else.
"""

import asyncio
import shlex
import shutil
import sys
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from secrets import token_hex
from typing import Any

from fastapi import APIRouter, Request, Response

from toolyard.app import Yard
from toolyard.config import FILE_NAME, Config
from toolyard.errors import ConfigError, StorageError, StorageUnwritable
from toolyard.protocol.json import JsonObject
from toolyard.storage.backup import needs_room
from toolyard.storage.restore import Contents, Prepared, draft, forget, keep, prepare, waiting
from toolyard.web.answers import answer
from toolyard.web.keys import FILE, stored_key
from toolyard.web.refusal import Refusal, bad_request, not_found
from toolyard.web.settings_change import read_again
from toolyard.web.shapes import Done
from toolyard.web.shapes_admin import BackupConfirmed, BackupShown, BackupWaiting

_MAX_READ = 2**20
_BODY: JsonObject = {
    "requestBody": {
        "required": True,
        "content": {"application/gzip": {"schema": {"type": "string", "format": "binary"}}},
    }
}


@dataclass(slots=True)
class _Looked:
    id: str = ""
    prepared: Prepared | None = None


def router(yard: Yard) -> APIRouter:
    routes = APIRouter(prefix="/v1/backup/restore", tags=["doctor"])
    home = yard.config.home
    looked, turn = _Looked(), asyncio.Lock()

    @routes.get("", responses={200: {"model": BackupWaiting}})
    async def show_waiting() -> Response:
        """The backup that the next start puts in place, if one waits."""
        contents = await asyncio.to_thread(waiting, home)
        return answer(_waits(yard.config, contents))

    @routes.post("", status_code=201, responses={201: {"model": BackupShown}}, openapi_extra=_BODY)
    async def look_at_backup(request: Request) -> Response:
        """Check the archive in the body as a whole, and show what it would bring back; nothing is changed."""
        place = await asyncio.to_thread(draft, home)
        try:
            with needs_room(), await asyncio.to_thread((place / "archive").open, "wb") as file:
                async for chunk in request.stream():
                    await asyncio.to_thread(file.write, chunk)
            prepared = await asyncio.to_thread(_checked, place / "archive", yard.config)
        finally:
            await asyncio.to_thread(shutil.rmtree, place, ignore_errors=True)
        async with turn:
            if looked.prepared:
                await asyncio.to_thread(looked.prepared.discard)
            looked.id, looked.prepared = token_hex(16), prepared
        return answer({"staged": looked.id, **_told(prepared.contents)}, HTTPStatus.CREATED)

    @routes.post("/{staged}/confirm", responses={200: {"model": BackupWaiting}})
    async def confirm_restore(staged: str, said: BackupConfirmed) -> Response:
        """Let exactly what was shown be put in place by the next start of the server."""
        async with turn:
            prepared = looked.prepared
            if prepared is None or looked.id != staged:
                raise not_found("such backup to restore: it waits no more")
            if prepared.contents.digest != said.fingerprint:
                raise Refusal(HTTPStatus.CONFLICT, "this is not the backup that was shown: look at it again")
            await asyncio.to_thread(keep, prepared, home)
            looked.prepared = None
        return answer(_waits(yard.config, prepared.contents))

    @routes.delete("/{staged}", responses={200: {"model": Done}})
    async def discard_backup(staged: str) -> Response:
        """Throw away what was looked at."""
        async with turn:
            if looked.prepared is None or looked.id != staged:
                raise not_found("such backup to restore: it waits no more")
            await asyncio.to_thread(looked.prepared.discard)
            looked.prepared = None
        return answer({"ok": True})

    @routes.delete("", responses={200: {"model": Done}})
    async def take_back() -> Response:
        """Restore nothing at the next start after all."""
        await asyncio.to_thread(forget, home)
        return answer({"ok": True})

    return routes


def _checked(archive: Path, config: Config) -> Prepared:
    """A backup that a server can start with. Reads and writes files; 400 for anything else."""
    try:
        prepared = prepare(archive, config.home)
    except StorageUnwritable:
        raise
    except StorageError as error:
        raise bad_request(str(error).replace(str(archive), "the file")) from error
    try:
        for name in (FILE_NAME, FILE):
            _bounded(prepared.folder / name)
        stored_key(prepared.folder)
        settings = prepared.folder / FILE_NAME
        if settings.exists():
            read_again(config, settings.read_text(encoding="utf-8"))
    except (ConfigError, UnicodeDecodeError) as error:
        prepared.discard()
        said = str(error).replace(f"{prepared.folder}/", "its ")
        raise bad_request(f"a server could not start with the settings in it: {said}") from error
    return prepared


def _bounded(file: Path) -> None:
    if file.exists() and file.stat().st_size > _MAX_READ:
        raise ConfigError(f"{file} is larger than {_MAX_READ >> 20} MiB")


def _told(contents: Contents) -> dict[str, Any]:
    return {
        "files": list(contents.names),
        "plugins": list(contents.plugins),
        "counts": dict(contents.counts),
        "bytes": contents.size,
        "fingerprint": contents.digest,
    }


def _waits(config: Config, contents: Contents | None) -> dict[str, Any]:
    program = "python -m toolyard" if sys.argv[0].endswith("__main__.py") else "toolyard"
    command = f"{program} serve --home {shlex.quote(str(config.home))} --project {shlex.quote(str(config.project))}"
    return {"waiting": _told(contents) if contents else None, "command": command}
