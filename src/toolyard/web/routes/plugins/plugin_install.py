"""``/v1/plugins/install``: stage a plugin in the home, review it, then install or discard it.

Nothing of it is run before it is approved. The newest ``MAX_STAGED`` staged plugins are kept, until the server
restarts.
"""

import asyncio
import os
import shutil
from collections import OrderedDict
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from secrets import token_hex
from typing import Annotated, Any, Final

from fastapi import Request, Response
from pydantic import BaseModel, Field, ValidationError

from toolyard.errors import ToolyardError
from toolyard.message import Message, to_fields
from toolyard.plugins.package.install import FOLDER, StagedPlugin, install_staged, stage_plugin
from toolyard.plugins.package.plugin import Plugin
from toolyard.plugins.package.review import PluginReview as Review
from toolyard.protocol.json import JsonObject
from toolyard.web.answers import json_response
from toolyard.web.refusal import Refusal, bad_request, not_found
from toolyard.web.routes.calls.audit import add_audit_detail
from toolyard.web.routes.plugins.plugin_details import (
    file_to_json,
    files_to_json,
    mask_secrets,
    review_to_json,
    to_json,
    to_row_json,
)
from toolyard.web.routes.plugins.plugins import FilePath, file_response
from toolyard.web.routing import Routes
from toolyard.web.schemas.common import OkResponse, StrictModel
from toolyard.web.schemas.plugins import (
    PluginFileContent,
    PluginFileRows,
    PluginReview,
    PluginRow,
    ProblemRow,
    ReviewDecision,
    Translations,
)
from toolyard.workspace.home_folder import make_private_folder
from toolyard.yard.yard import Yard


class InstallSource(StrictModel):
    source: Annotated[
        str,
        Field(min_length=1, max_length=4096, description="The absolute path of a folder or archive, or a git URL."),
    ]


class StagedFile(BaseModel):
    path: str
    size: int


class StagedPluginResponse(BaseModel):
    staged: Annotated[str, Field(description="The id for `allow` and `DELETE`.")]
    name: str
    display_name: str
    translations: Translations
    source: str
    proof: str
    files: list[StagedFile]
    size: int
    review: PluginReview | None
    description: str
    problems: list[ProblemRow]
    left_out: Annotated[list[str], Field(description="Dependencies that must be installed again.")]


MAX_STAGED: Final = 5
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


def router(yard: Yard) -> Routes:
    routes = Routes("/v1/plugins/install", tag="plugins")
    waiting: OrderedDict[str, StagedPlugin] = OrderedDict()
    turn = asyncio.Lock()
    _add_file_routes(routes, yard, waiting)

    @routes.post("", StagedPluginResponse, status=201, openapi_extra=_BODY)
    async def stage_plugin(request: Request) -> Response:
        """Stage a plugin from a zip in the body or from `source`, for review; nothing of it is run."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        source = await request.body() if kind == _ZIP else _parse_source(await request.body())
        async with turn:  # until it is registered: unregistered folders are removed by the next request
            staged_names = frozenset(one.stage.name for one in waiting.values())
            staged = await asyncio.to_thread(_stage, yard, source, staged_names)
            plugin = yard.plugins.inspect(staged.folder)
            if plugin is None:
                staged.discard()
                raise bad_request(Message("the staged plugin is gone"))
            while len(waiting) >= MAX_STAGED:
                await asyncio.to_thread(waiting.popitem(last=False)[1].discard)
            id_ = token_hex(16)
            files = await asyncio.to_thread(_list_files, staged.folder)
            waiting[id_] = staged
        body = _staged_to_json(yard, plugin, staged, id_, files)
        return json_response(mask_secrets(yard, body), HTTPStatus.CREATED)

    @routes.post("/{staged}/allow", PluginRow, audit="plugin.installed")
    async def admit_plugin(staged: str, decision: ReviewDecision, request: Request) -> Response:
        """Install a staged plugin and approve exactly what was shown."""
        one = waiting.get(staged)
        plugin = yard.plugins.inspect(one.folder) if one else None
        if one is None or plugin is None:
            raise not_found(_not_staged())
        if yard.plugins.review(plugin).review.shown_digest != decision.fingerprint:
            raise Refusal(HTTPStatus.CONFLICT, Message("{name} is not what was shown: review it again", name=one.name))
        async with turn:
            if waiting.pop(staged, None) is None:
                raise not_found(_not_staged())
            done = await asyncio.to_thread(install_staged, one, yard.config.home, yard.config.own_command)
        reviewed = _review_installed(yard, done.folder, decision.fingerprint).with_access(decision.access)
        add_audit_detail(
            request.scope,
            target=done.name,
            plugin=done.name,
            source=done.source,
            fingerprint=decision.fingerprint,
            access=reviewed.review.access.value,
        )
        await asyncio.to_thread(yard.plugins.allow, reviewed, confirm_read=decision.confirm_read)
        yard.plugins.plugins.refresh()
        installed = (one for one in yard.plugins.plugins.all if one.folder == reviewed.review.folder)
        return json_response(mask_secrets(yard, to_row_json(yard, next(installed))))

    @routes.delete("/{staged}", OkResponse)
    async def discard_plugin(staged: str) -> Response:
        """Discard a staged plugin."""
        one = waiting.pop(staged, None)
        if one is None:
            raise not_found(_not_staged())
        await asyncio.to_thread(one.discard)
        return json_response({"ok": True})

    return routes


def _add_file_routes(routes: Routes, yard: Yard, waiting: Mapping[str, StagedPlugin]) -> None:
    def get_staged(id_: str) -> Plugin:
        one = waiting.get(id_)
        plugin = yard.plugins.inspect(one.folder) if one else None
        if plugin is None:
            raise not_found(_not_staged())
        return plugin

    @routes.get("/{staged}/files", PluginFileRows)
    async def list_staged_files(staged: str) -> Response:
        """List the files of a staged plugin."""
        return json_response(await asyncio.to_thread(files_to_json, yard, get_staged(staged)))

    @routes.get("/{staged}/file", PluginFileContent)
    async def show_staged_file(staged: str, path: FilePath) -> Response:
        """Return one file of a staged plugin; secrets are masked."""
        return file_response(await asyncio.to_thread(file_to_json, yard, get_staged(staged), path), path)


def _review_installed(yard: Yard, folder: Path, fingerprint: str) -> Review:
    """Return the review of a plugin just installed; 409 when it is not what was shown."""
    place = os.path.realpath(folder)
    yard.plugins.plugins.refresh()
    installed = next((one for one in yard.plugins.plugins.all if str(one.folder) == place), None)
    reviewed = yard.plugins.review(installed) if installed else None
    if reviewed is None or reviewed.review.shown_digest != fingerprint:
        raise Refusal(
            HTTPStatus.CONFLICT, Message("{name} is installed, but is not what was shown: review it", name=folder.name)
        )
    return reviewed


def _parse_source(body: bytes) -> str:
    try:
        source = InstallSource.model_validate_json(body).source
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
        raise Refusal(HTTPStatus(422), problems[:2000]) from error
    if "://" not in source and not Path(source).is_absolute():
        raise bad_request(
            Message("give the absolute path of a folder or archive, or a git URL that begins with https://")
        )
    return source


def _stage(yard: Yard, source: str | bytes, staged_names: frozenset[str]) -> StagedPlugin:
    """Stage a plugin. Reads and writes files, and may use the network."""
    config = yard.config
    place = config.home / FOLDER
    for left in place.glob(f"{_PREFIX}*") if place.is_dir() else ():
        if left.name not in staged_names:  # left by an earlier server: only one owns a home
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


def _list_files(folder: Path) -> list[JsonObject]:
    files: list[JsonObject] = []
    for place, _, names in os.walk(folder):
        for name in names:
            path = Path(place, name)
            files.append({"path": str(path.relative_to(folder)), "size": path.lstat().st_size})
    return sorted(files, key=lambda one: str(one["path"]))


def _staged_to_json(
    yard: Yard, plugin: Plugin, staged: StagedPlugin, id_: str, files: list[JsonObject]
) -> dict[str, Any]:
    detail = to_json(yard, plugin)
    exists = (yard.config.home / FOLDER / staged.name).exists()
    taken = {
        **to_fields("message", Message("{name} is already installed", name=staged.name)),
        **to_fields("fix", Message("remove it first")),
        "warning": False,
    }
    nowhere = {"file": "", "line": 0, "column": 0, "field": ""}
    return {
        "staged": id_,
        "name": staged.name,
        "display_name": detail["display_name"],
        "translations": detail["translations"],
        "source": "upload" if staged.source.endswith("/upload.zip") else staged.source,
        "proof": staged.proof,
        "files": files,
        "size": sum(int(str(one["size"])) for one in files),
        "review": review_to_json(yard, plugin),
        "description": detail["description"],
        "problems": [*([taken | nowhere] if exists else []), *detail["lint"]],
        "left_out": list(staged.left_out),
    }


def _not_staged() -> Message:
    return Message("such plugin to install: it waits no more")
