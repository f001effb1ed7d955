"""``/v1/plugins``: the discovered plugins, their details, their review, and test cases made from journalled calls.

Requires ``admin``. Nothing here runs a plugin. A name that several plugins share means the one in use; ``?folder=``
selects another. The arguments and the outcome of a case come from the journal, not from the request, which names the
call, the case, and a text that the answer must contain. A call that the plugin did not answer, or whose arguments
contain a secret, becomes no case.
"""

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from typing import Annotated, Any, Final, Literal

from fastapi import Query, Request, Response
from pydantic import BaseModel, Field

from toolyard.engine.history.journal import CUT
from toolyard.message import Message
from toolyard.plugins.authoring.cases import FILE, MAX_NAME, add_case, is_own_plugin
from toolyard.plugins.package.plugin import Plugin, PluginState
from toolyard.plugins.package.plugin_settings import write_settings
from toolyard.plugins.process.process_output import StderrLog
from toolyard.protocol.envelope import Reason, Status
from toolyard.protocol.json import Json, JsonObject, json_bytes
from toolyard.protocol.mask import MASK
from toolyard.protocol.replies.reply_prompt import Language
from toolyard.web.answers import json_response
from toolyard.web.refusal import Refusal, bad_request, not_found
from toolyard.web.routes.calls.audit import add_audit_detail
from toolyard.web.routes.plugins import plugin_details as plugin_view
from toolyard.web.routing import Audited, Routes
from toolyard.web.schemas.common import FunctionDefinition, OkResponse, StrictModel
from toolyard.web.schemas.plugins import (
    PluginFileContent,
    PluginFileRows,
    PluginReview,
    PluginRow,
    ProblemRow,
    ReviewDecision,
)
from toolyard.yard.yard import Yard


class RemovedPlugin(OkResponse):
    kept: Annotated[str | None, Field(description="The folder that its files were moved to.")]


class PluginRows(BaseModel):
    data: list[PluginRow]


class PluginSettingRow(BaseModel):
    key: str
    type: str
    description: str
    translations: Annotated[dict[str, str], Field(description="Translations of the description by language.")]
    required: bool
    secret: bool
    value: str | None
    set: bool
    source: Literal["plugin", "host", "default", "missing"]
    in_schema: Annotated[bool, Field(description="Whether the manifest declares it.")]
    changed: float | None


class PluginDoc(BaseModel):
    name: str
    html: str


class PluginDetail(PluginRow):
    manifest: str
    description: str
    description_length: int
    native: Annotated[FunctionDefinition | None, Field(description="The function definition in a chat.")]
    prompt_text: str
    hidden_characters: bool
    lint: list[ProblemRow]
    review: PluginReview | None
    config: list[PluginSettingRow]
    docs: list[PluginDoc]
    takes_tests: Annotated[bool, Field(description="Whether Toolyard can write tests to its folder.")]


class NewCase(StrictModel):
    call: Annotated[str, Field(min_length=1, max_length=200, description="The id of a call that the plugin answered.")]
    name: Annotated[str, Field(min_length=1, max_length=MAX_NAME)]
    text_contains: Annotated[
        str, Field(max_length=2000, description="A part of the result text that the test must find; empty for none.")
    ] = ""


class CaseExpectation(BaseModel):
    status: Annotated[str, Field(description="Missing for a call with tasks, which the test waits for.")] = ""
    text_contains: str = ""


class PluginCase(BaseModel):
    name: str
    args: dict[str, Any]
    expect: CaseExpectation


class CreatedCase(BaseModel):
    name: Annotated[str, Field(description="The name of the case.")]
    file: Annotated[str, Field(description="The file of the case.")]
    case: Annotated[PluginCase, Field(description="The case as written.")]


class PluginValues(StrictModel):
    values: Annotated[
        dict[str, str | int | float | bool | None],
        Field(min_length=1, max_length=200, description="Keys and values; null removes a key from `config.env`."),
    ]


class PluginConfigResult(BaseModel):
    name: str
    state: str
    reason: str
    holds: Literal["next call"]
    config: list[PluginSettingRow]


class LogRow(BaseModel):
    n: int
    at: float
    stream: Literal["stderr", "noise", "note"]
    call: str
    text: str


class LogPage(BaseModel):
    data: list[LogRow]
    next: int
    lost: int


FilePath = Annotated[str, Query(min_length=1, max_length=4096, description="A path of the list of files.")]
Folder = Annotated[str, Query(max_length=4096, description="Selects one of several plugins with the same name.")]


def router(yard: Yard) -> Routes:
    routes = Routes("/v1/plugins", tag="plugins")
    _add_read_routes(routes, yard)
    _add_write_routes(routes, yard)
    return routes


def _add_read_routes(routes: Routes, yard: Yard) -> None:
    @routes.get("", PluginRows)
    async def list_plugins() -> Response:
        """List every plugin, including those that cannot run."""
        plugins = sorted(yard.plugins.plugins.all, key=lambda one: one.name.lower())  # stable: those in use come first

        def build() -> Response:
            rows = [plugin_view.to_row_json(yard, plugin) for plugin in plugins]
            return json_response({"data": [plugin_view.mask_secrets(yard, row) for row in rows]})

        return await asyncio.to_thread(build)  # looks at files

    @routes.get("/{name}", PluginDetail)
    async def show_plugin(name: str, folder: Folder = "", lang: Language = Language.ENGLISH) -> Response:
        """Return one plugin: its command, its description for models, its settings and problems."""
        plugin = get_plugin(yard, name, folder)
        detail = plugin_view.to_json(yard, plugin)
        docs = await asyncio.to_thread(plugin_view.render_documents, plugin.folder, lang)
        return _masked_response(yard, detail | {"docs": docs})

    @routes.get("/{name}/files", PluginFileRows)
    async def list_plugin_files(name: str, folder: Folder = "") -> Response:
        """List the files of a plugin for its review, those that changed since it was approved first."""
        plugin = get_plugin(yard, name, folder)
        return json_response(await asyncio.to_thread(plugin_view.files_to_json, yard, plugin))

    @routes.get("/{name}/file", PluginFileContent)
    async def show_plugin_file(name: str, path: FilePath, folder: Folder = "") -> Response:
        """Return one file of a plugin, with the difference against the approved version; secrets are masked."""
        plugin = get_plugin(yard, name, folder)
        return file_response(await asyncio.to_thread(plugin_view.file_to_json, yard, plugin, path), path)

    @routes.get("/{name}/logs", LogPage)
    async def show_logs(
        name: str,
        folder: Folder = "",
        after: Annotated[int, Query(ge=0, le=2**53, description="`next` of the previous response.")] = 0,
    ) -> Response:
        """Return its output on stderr, and on stdout besides its answers, since the server started; oldest first."""
        plugin = get_plugin(yard, name, folder)
        return json_response(
            _log_to_json(yard.plugins.host.logs.get(plugin.name) or StderrLog(), after, yard.mask.log_text)
        )


def _add_write_routes(routes: Routes, yard: Yard) -> None:
    @routes.post("/{name}/allow", PluginRow, audit=Audited("plugin.allowed", plugin="name"))
    async def allow_plugin(name: str, decision: ReviewDecision, request: Request, folder: Folder = "") -> Response:
        """Approve this exact version of a plugin; 409 when it has changed since it was shown."""
        yard.plugins.plugins.refresh()
        plugin = get_plugin(yard, name, folder)
        reviewed = yard.plugins.review(plugin)
        if reviewed.review.shown_digest != decision.fingerprint:
            raise Refusal(
                HTTPStatus.CONFLICT, Message("{name} has changed since it was shown: review it again", name=plugin.name)
            )
        reviewed = reviewed.with_detached(detached=decision.detached).with_access(decision.access)
        await asyncio.to_thread(yard.plugins.allow, reviewed, confirm_read=decision.confirm_read)
        add_audit_detail(
            request.scope,
            fingerprint=decision.fingerprint,
            folder=str(plugin.folder),
            access=reviewed.review.access.value,
        )
        yard.plugins.plugins.refresh()
        return _current_row(yard, plugin)

    @routes.post("/{name}/enable", PluginRow, audit=Audited("plugin.enabled", plugin="name"))
    async def enable_plugin(name: str, folder: Folder = "") -> Response:
        """Enable a disabled plugin; 409 when its manifest's file name keeps it disabled."""
        plugin = get_plugin(yard, name, folder)
        await asyncio.to_thread(yard.plugins.plugins.enable, plugin)
        yard.plugins.plugins.refresh()
        now = _find_current(yard, plugin)
        if now.state is PluginState.DISABLED:
            raise Refusal(
                HTTPStatus.CONFLICT, Message("{name} is still disabled: {reason}", name=plugin.name, reason=now.reason)
            )
        return _current_row(yard, plugin)

    @routes.post("/{name}/disable", PluginRow, audit=Audited("plugin.disabled", plugin="name"))
    async def disable_plugin(name: str, folder: Folder = "") -> Response:
        """Disable a plugin; running calls go on, and its files are untouched."""
        plugin = get_plugin(yard, name, folder)
        await asyncio.to_thread(yard.plugins.plugins.disable, plugin)
        yard.plugins.plugins.refresh()
        return _current_row(yard, plugin)

    @routes.post("/{name}/reload", PluginRow)
    async def reload_plugin(name: str, folder: Folder = "") -> Response:
        """Reload a plugin's files, even if they seem unchanged."""
        plugin = get_plugin(yard, name, folder)
        yard.plugins.plugins.refresh(plugin.folder)
        return _current_row(yard, plugin)

    @routes.delete("/{name}", RemovedPlugin, audit=Audited("plugin.removed", plugin="name"))
    async def remove_plugin(name: str, folder: Folder = "") -> Response:
        """Uninstall a plugin from the home; its files are moved aside, and its data is kept."""
        plugin = get_plugin(yard, name, folder)
        moved_to = await asyncio.to_thread(yard.plugins.remove, plugin)
        yard.plugins.plugins.refresh()
        return json_response({"ok": True, "kept": str(moved_to) if moved_to else None})

    @routes.put("/{name}/config", PluginConfigResult, audit=Audited("plugin.configured", plugin="name"))
    async def configure_plugin(name: str, new: PluginValues, request: Request, folder: Folder = "") -> Response:
        """Set or remove keys in the plugin's `config.env`; the rest of the file is unchanged."""
        plugin = get_plugin(yard, name, folder)
        await asyncio.to_thread(write_settings, plugin, new.values)
        add_audit_detail(request.scope, settings=sorted(new.values))
        yard.plugins.plugins.refresh()
        now = _find_current(yard, plugin)
        row = plugin_view.to_row_json(yard, now)
        fields = {key: row[key] for key in ("name", "state", "reason")}
        return _masked_response(
            yard, fields | {"holds": "next call", "config": plugin_view.settings_to_json(yard, now)}
        )


def _masked_response(yard: Yard, value: dict[str, Any]) -> Response:
    return json_response(plugin_view.mask_secrets(yard, value))


def _current_row(yard: Yard, plugin: Plugin) -> Response:
    return _masked_response(yard, plugin_view.to_row_json(yard, _find_current(yard, plugin)))


def _find_current(yard: Yard, before: Plugin) -> Plugin:
    return next((one for one in yard.plugins.plugins.all if one.folder == before.folder), before)


def get_plugin(yard: Yard, name: str, folder: str) -> Plugin:
    """Return the plugin of this name, in this folder if given. Raises Refusal without one."""
    plugins = yard.plugins.plugins
    plugin = plugins.get(name)
    if folder:
        plugin = next((one for one in plugins.all if one.name == name and str(one.folder) == folder), None)
    if plugin is None:
        raise not_found(
            Message("plugin called '{name}' in that folder", name=name[:100])
            if folder
            else Message("plugin called '{name}'", name=name[:100])
        )
    return plugin


def file_response(content: JsonObject | None, path: str) -> Response:
    """Return the response with the content of a plugin's file; 404 without any."""
    if content is None:
        raise not_found(Message("file '{path}' of this plugin", path=path[:200]))
    return json_response(content)


def _log_to_json(log: StderrLog, after: int, hide: Callable[[str], str]) -> dict[str, Any]:
    """Return the log entries after ``after``; ``lost`` counts those no longer kept."""
    entries = [entry for entry in log.entries if entry.number > after]
    rows = [
        {
            "n": one.number,
            "at": one.at.timestamp(),
            "stream": one.stream.value,
            "call": one.call_id,
            "text": hide(one.text),
        }
        for one in entries
    ]
    return {"data": rows, "next": log.total, "lost": max(0, log.total - after - len(entries))}


_NOT_ITS_OWN: Final = (Reason.BUSY, Reason.DENIED, Reason.CANCELLED, Reason.INTERRUPTED)


def cases_router(yard: Yard) -> Routes:
    routes = Routes("/v1/plugins", tag="plugins")

    @routes.post("/{name}/cases", CreatedCase, status=201)
    async def save_case(name: str, new: NewCase) -> Response:
        """Add a call to the plugin's `cases.json`, as a test for `toolyard plugin test`.

        The test expects the same status, and `text_contains` in the text of the result. Only for plugins in the plugin
        folder of the home or the project; 409 when the call has not been answered by the plugin.
        """
        plugin = get_plugin(yard, name, "")
        if not is_own_plugin(plugin, project=yard.config.project, home=yard.config.home):
            raise bad_request(
                Message(
                    "{name} is in {folder}, where Toolyard does not write: copy the test case and add it to {file} "
                    "there",
                    name=plugin.name,
                    folder=plugin.folder,
                    file=FILE,
                )
            )
        call = await yard.state.journal.get(new.call)
        if call is None or call["tool"] != plugin.name:
            raise not_found(Message("call '{id}' of {plugin}", id=new.call[:100], plugin=plugin.name))
        arguments, expect = _make_case(call, new.text_contains)
        got = await asyncio.to_thread(
            add_case, plugin, home=yard.config.home, name=new.name, arguments=arguments, expect=expect
        )
        case = {"name": got, "args": arguments, "expect": expect}
        return json_response({"name": got, "file": str(plugin.folder / FILE), "case": case}, HTTPStatus.CREATED)

    return routes


def _make_case(call: JsonObject, words: str) -> tuple[JsonObject, JsonObject]:
    """Return the arguments of the call and the expected result."""
    envelope: Any = call.get("envelope")
    if call["state"] not in list(Status) or not isinstance(envelope, dict) or call.get("reason") in _NOT_ITS_OWN:
        raise Refusal(HTTPStatus.CONFLICT, Message("the plugin has not answered this call: let it finish first"))
    arguments: Json = call.get("arguments")
    if not isinstance(arguments, dict) or envelope.get("data") == CUT:
        raise Refusal(
            HTTPStatus.CONFLICT, Message("this call is too large to be stored completely: write its test by hand")
        )
    if MASK.encode() in json_bytes({"arguments": arguments, "words": words}):
        raise Refusal(
            HTTPStatus.CONFLICT, Message("the arguments of this call contain a secret, which does not belong in a test")
        )
    if call.get("tasks"):  # a test waits for the tasks, whose result differs from the receipt of this call
        if words:
            raise bad_request(
                Message("the test waits for the task: omit 'text_contains', because the receipt is not its result")
            )
        return arguments, {}
    if words not in str(envelope.get("text", "")):
        raise bad_request(Message("the text of the result does not contain 'text_contains'"))
    expect: JsonObject = {"status": str(envelope.get("status"))}
    return arguments, expect | ({"text_contains": words} if words else {})
