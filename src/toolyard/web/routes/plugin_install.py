"""``/v1/plugins/install``: bring a plugin into the home, look at all of it, then allow it or throw it away.

Nothing of it is run before it is allowed. What was staged waits for at most ``MOST`` further ones, and not for another
start of the server.
"""

import asyncio
import os
import shutil
from collections import OrderedDict
from http import HTTPStatus
from pathlib import Path
from secrets import token_hex
from typing import Any, Final

from fastapi import APIRouter, Request, Response
from pydantic import ValidationError

from toolyard.app import Yard
from toolyard.errors import ToolyardError
from toolyard.plugins.install import FOLDER, StagedPlugin, install_staged, stage_plugin
from toolyard.plugins.plugin import Plugin
from toolyard.plugins.review import PluginReview
from toolyard.protocol.json import JsonObject
from toolyard.web.answers import answer
from toolyard.web.plugin_view import review_of, row, whole, without_secrets
from toolyard.web.refusal import Refusal, bad_request, not_found
from toolyard.web.shapes import Done
from toolyard.web.shapes_plugins import Allowed, InstallSource, PluginRow, StagedShown
from toolyard.workspace.home_folder import make_private_folder

MOST: Final = 5
_PREFIX = ".staged-"
_ZIP = "application/zip"
_BODY: JsonObject = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": InstallSource.model_json_schema()},
            _ZIP: {"schema": {"type": "string", "format": "binary"}},
        },
    }
}


def router(yard: Yard) -> APIRouter:
    routes = APIRouter(prefix="/v1/plugins/install", tags=["plugins"])
    waiting: OrderedDict[str, StagedPlugin] = OrderedDict()
    turn = asyncio.Lock()

    @routes.post("", status_code=201, responses={201: {"model": StagedShown}}, openapi_extra=_BODY)
    async def stage_plugin(request: Request) -> Response:
        """Bring a plugin in, from a zip in the body or from `source`, and show it; nothing of it is run."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        source = await request.body() if kind == _ZIP else _source(await request.body())
        async with turn:  # until it waits: what does not is removed when the next one comes
            kept = frozenset(one.stage.name for one in waiting.values())
            staged = await asyncio.to_thread(_staged, yard, source, kept)
            plugin = yard.plugins.inspect(staged.folder)
            if plugin is None:
                staged.discard()
                raise bad_request("there is no plugin in it any more")
            while len(waiting) >= MOST:
                await asyncio.to_thread(waiting.popitem(last=False)[1].discard)
            id_ = token_hex(16)
            files = await asyncio.to_thread(_files, staged.folder)
            waiting[id_] = staged
        shown = _shown(yard, plugin, staged, id_, files)
        return answer(without_secrets(yard, shown), HTTPStatus.CREATED)

    @routes.post("/{staged}/allow", responses={200: {"model": PluginRow}})
    async def admit_plugin(staged: str, said: Allowed) -> Response:
        """Install it and let exactly what was shown run."""
        one = waiting.get(staged)
        plugin = yard.plugins.inspect(one.folder) if one else None
        if one is None or plugin is None:
            raise not_found("such plugin to install: it waits no more")
        if yard.plugins.review(plugin).review.digest != said.fingerprint:
            raise Refusal(HTTPStatus.CONFLICT, f"{one.name} is not what was shown: look at it again")
        async with turn:
            if waiting.pop(staged, None) is None:
                raise not_found("such plugin to install: it waits no more")
            done = await asyncio.to_thread(install_staged, one, yard.config.home)
        reviewed = _reviewed(yard, done.folder, said.fingerprint)
        await asyncio.to_thread(yard.plugins.allow, reviewed, confirm_read=said.confirm_read)
        yard.plugins.plugins.refresh()
        found = (one for one in yard.plugins.plugins.all if one.folder == reviewed.review.folder)
        return answer(without_secrets(yard, row(yard, next(found))))

    @routes.delete("/{staged}", responses={200: {"model": Done}})
    async def discard_plugin(staged: str) -> Response:
        """Throw it away."""
        one = waiting.pop(staged, None)
        if one is None:
            raise not_found("such plugin to install: it waits no more")
        await asyncio.to_thread(one.discard)
        return answer({"ok": True})

    return routes


def _reviewed(yard: Yard, folder: Path, fingerprint: str) -> PluginReview:
    """The review of a plugin that was just installed; 409 when it is not what was shown."""
    place = os.path.realpath(folder)
    yard.plugins.plugins.refresh()
    found = next((one for one in yard.plugins.plugins.all if str(one.folder) == place), None)
    reviewed = yard.plugins.review(found) if found else None
    if reviewed is None or reviewed.review.digest != fingerprint:
        raise Refusal(HTTPStatus.CONFLICT, f"{folder.name} is installed, but it is not what was shown: review it")
    return reviewed


def _source(body: bytes) -> str:
    try:
        source = InstallSource.model_validate_json(body).source
    except ValidationError as error:
        told = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
        raise Refusal(HTTPStatus(422), told[:2000]) from error
    if "://" not in source and not Path(source).is_absolute():
        raise bad_request(
            "name a folder or an archive by its absolute path, or a git address that begins with https://"
        )
    return source


def _staged(yard: Yard, source: str | bytes, kept: frozenset[str]) -> StagedPlugin:
    """Reads and writes files, and may reach the network."""
    config = yard.config
    place = config.home / FOLDER
    for left in place.glob(f"{_PREFIX}*") if place.is_dir() else ():
        if left.name not in kept:  # of a server that has ended: only one owns a home
            shutil.rmtree(left, ignore_errors=True)
    if isinstance(source, str):
        return stage_plugin(source, config.home, config.environ, prefix=_PREFIX)
    upload = place / f"{_PREFIX}upload-{token_hex(8)}" / "upload.zip"
    try:
        make_private_folder(upload.parent)
        upload.write_bytes(source)
        return stage_plugin(str(upload), config.home, config.environ, prefix=_PREFIX)
    except ToolyardError as error:
        raise ToolyardError(str(error).replace(str(upload), "the archive")) from error
    finally:
        shutil.rmtree(upload.parent, ignore_errors=True)


def _files(folder: Path) -> list[JsonObject]:
    found: list[JsonObject] = []
    for place, _, names in os.walk(folder):
        for name in names:
            path = Path(place, name)
            found.append({"path": str(path.relative_to(folder)), "size": path.lstat().st_size})
    return sorted(found, key=lambda one: str(one["path"]))


def _shown(yard: Yard, plugin: Plugin, staged: StagedPlugin, id_: str, files: list[JsonObject]) -> dict[str, Any]:
    told = whole(yard, plugin)
    exists = (yard.config.home / FOLDER / staged.name).exists()
    taken = {"message": f"{staged.name} is installed already", "fix": "remove it first", "warning": False}
    nowhere = {"file": "", "line": 0, "column": 0, "field": ""}
    return {
        "staged": id_,
        "name": staged.name,
        "display_name": told["display_name"],
        "translations": told["translations"],
        "source": "upload" if staged.source.endswith("/upload.zip") else staged.source,
        "proof": staged.proof,
        "files": files,
        "size": sum(int(str(one["size"])) for one in files),
        "review": review_of(yard, plugin),
        "description": told["description"],
        "problems": [*([taken | nowhere] if exists else []), *told["lint"]],
        "left_out": list(staged.left_out),
    }
