"""``/v1/backup/restore``: upload a backup, check it, and have the next start of the server restore it.

One backup is staged at a time, until the server restarts; a confirmed one waits for the restart.
"""

import asyncio
import shutil
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from secrets import token_hex
from typing import Annotated, Any

from fastapi import Request, Response
from pydantic import BaseModel, Field

from toolyard.config import FILE_NAME, Config
from toolyard.errors import ConfigError, StorageError, StorageUnwritable
from toolyard.message import Message, replace_in_message
from toolyard.protocol.json import JsonObject
from toolyard.storage.backup_archive import report_full_disk
from toolyard.storage.backup_restore import BackupContents as Contents
from toolyard.storage.backup_restore import (
    PreparedRestore,
    cancel_scheduled,
    find_scheduled,
    make_draft_folder,
    prepare,
    schedule_restore,
)
from toolyard.web.answers import json_response
from toolyard.web.refusal import Refusal, bad_request, not_found
from toolyard.web.routing import Routes
from toolyard.web.schemas.common import OkResponse, StrictModel
from toolyard.web.security.owner_key import OWNER_KEY_FILE, read_owner_key
from toolyard.web.settings.live_settings import format_serve_command
from toolyard.web.settings.settings_change import reload_config
from toolyard.yard.yard import Yard


class BackupContents(BaseModel):
    files: list[str]
    plugins: list[str]
    counts: Annotated[dict[str, int], Field(description="Records by kind, and events.")]
    bytes: int
    fingerprint: Annotated[str, Field(description="Of the archive.")]


class StagedBackup(BackupContents):
    staged: str


class BackupConfirmation(StrictModel):
    fingerprint: Annotated[str, Field(max_length=200, description="Of the backup that was shown.")]


class PendingRestore(BaseModel):
    waiting: BackupContents | None
    command: Annotated[str, Field(description="The command that starts the server again.")]


_MAX_READ = 2**20
_BODY: JsonObject = {
    "requestBody": {
        "required": True,
        "content": {"application/gzip": {"schema": {"type": "string", "format": "binary"}}},
    }
}


@dataclass(slots=True)
class _Staged:
    id: str = ""
    prepared: PreparedRestore | None = None


def router(yard: Yard) -> Routes:
    routes = Routes("/v1/backup/restore", tag="doctor")
    home = yard.config.home
    looked, turn = _Staged(), asyncio.Lock()

    @routes.get("", PendingRestore)
    async def show_waiting() -> Response:
        """Return the backup that the next start restores, if any."""
        contents = await asyncio.to_thread(find_scheduled, home)
        return json_response(_pending_to_json(yard.config, contents))

    @routes.post("", StagedBackup, status=201, openapi_extra=_BODY)
    async def look_at_backup(request: Request) -> Response:
        """Check the archive in the body and return its contents; nothing is changed."""
        place = await asyncio.to_thread(make_draft_folder, home)
        try:
            with report_full_disk(), await asyncio.to_thread((place / "archive").open, "wb") as file:
                async for chunk in request.stream():
                    await asyncio.to_thread(file.write, chunk)
            prepared = await asyncio.to_thread(_prepare_backup, place / "archive", yard.config)
        finally:
            await asyncio.to_thread(shutil.rmtree, place, ignore_errors=True)
        async with turn:
            if looked.prepared:
                await asyncio.to_thread(looked.prepared.discard)
            looked.id, looked.prepared = token_hex(16), prepared
        return json_response({"staged": looked.id, **_contents_to_json(prepared.contents)}, HTTPStatus.CREATED)

    @routes.post("/{staged}/confirm", PendingRestore, audit="restore.confirmed")
    async def confirm_restore(staged: str, confirmation: BackupConfirmation) -> Response:
        """Restore exactly what was shown at the next start of the server."""
        async with turn:
            prepared = looked.prepared
            if prepared is None or looked.id != staged:
                raise not_found(_not_pending())
            if prepared.contents.digest != confirmation.fingerprint:
                raise Refusal(HTTPStatus.CONFLICT, Message("this is not the backup that was shown: upload it again"))
            await asyncio.to_thread(schedule_restore, prepared, home)
            looked.prepared = None
        return json_response(_pending_to_json(yard.config, prepared.contents))

    @routes.delete("/{staged}", OkResponse)
    async def discard_backup(staged: str) -> Response:
        """Discard the staged backup."""
        async with turn:
            if looked.prepared is None or looked.id != staged:
                raise not_found(_not_pending())
            await asyncio.to_thread(looked.prepared.discard)
            looked.prepared = None
        return json_response({"ok": True})

    @routes.delete("", OkResponse, audit="restore.cancelled")
    async def take_back() -> Response:
        """Cancel the pending restore."""
        await asyncio.to_thread(cancel_scheduled, home)
        return json_response({"ok": True})

    return routes


def _prepare_backup(archive: Path, config: Config) -> PreparedRestore:
    """Prepare a backup that a server can start with, else raise 400. Reads and writes files."""
    try:
        prepared = prepare(archive, config.home)
    except StorageUnwritable:
        raise
    except StorageError as error:
        raise bad_request(replace_in_message(str(error), str(archive), Message("the file"))) from error
    try:
        for name in (FILE_NAME, OWNER_KEY_FILE):
            _require_bounded(prepared.folder / name)
        read_owner_key(prepared.folder)
        settings = prepared.folder / FILE_NAME
        if settings.exists():
            reload_config(config, settings.read_text(encoding="utf-8"))
    except (ConfigError, UnicodeDecodeError) as error:
        prepared.discard()
        problem = replace_in_message(str(error), f"{prepared.folder}/", "its ")
        raise bad_request(Message("a server could not start with its settings: {problem}", problem=problem)) from error
    return prepared


def _require_bounded(file: Path) -> None:
    if file.exists() and file.stat().st_size > _MAX_READ:
        raise ConfigError(Message("{file} is larger than {value} MiB", file=file, value=_MAX_READ >> 20))


def _contents_to_json(contents: Contents) -> dict[str, Any]:
    return {
        "files": list(contents.names),
        "plugins": list(contents.plugins),
        "counts": dict(contents.counts),
        "bytes": contents.size,
        "fingerprint": contents.digest,
    }


def _pending_to_json(config: Config, contents: Contents | None) -> dict[str, Any]:
    waiting = _contents_to_json(contents) if contents else None
    return {"waiting": waiting, "command": format_serve_command(config)}


def _not_pending() -> Message:
    return Message("such backup to restore: it waits no more")
