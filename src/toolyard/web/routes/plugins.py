"""``/v1/plugins``: every plugin that was found, what is known of one, and what its owner says about it.

All of it is the owner's. Nothing here runs a plugin. A name that several plugins want means the one that has it;
``?folder=`` means another.
"""

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from toolyard.app import Yard
from toolyard.plugins.plugin import Plugin, PluginState
from toolyard.plugins.plugin_settings import write_settings
from toolyard.plugins.stderr import StderrLog
from toolyard.protocol.replies.prompt import Language
from toolyard.web import plugin_view
from toolyard.web.answers import answer
from toolyard.web.refusal import Refusal, not_found
from toolyard.web.shapes import Done
from toolyard.web.shapes_plugins import (
    Allowed,
    LogPage,
    PluginConfigured,
    PluginRow,
    PluginRows,
    PluginShown,
    PluginValues,
)

Folder = Annotated[str, Query(max_length=4096, description="Which one, when several plugins have the name.")]


def router(yard: Yard) -> APIRouter:
    routes = APIRouter(prefix="/v1/plugins", tags=["plugins"])
    _add_looking(routes, yard)
    _add_deciding(routes, yard)
    return routes


def _add_looking(routes: APIRouter, yard: Yard) -> None:
    @routes.get("", responses={200: {"model": PluginRows}})
    async def list_plugins() -> Response:
        """Every plugin, also those that cannot run."""
        found = sorted(yard.plugins.plugins.all, key=lambda one: one.name.lower())  # and as they win
        rows = [plugin_view.row(yard, plugin) for plugin in found]
        return answer({"data": [plugin_view.without_secrets(yard, row) for row in rows]})

    @routes.get("/{name}", responses={200: {"model": PluginShown}})
    async def show_plugin(name: str, folder: Folder = "", lang: Language = Language.ENGLISH) -> Response:
        """One plugin: what it runs, what a model reads of it, its settings and what is wrong with it."""
        plugin = named(yard, name, folder)
        shown = plugin_view.whole(yard, plugin)
        docs = await asyncio.to_thread(plugin_view.documents, plugin.folder, lang)
        return _told(yard, shown | {"docs": docs})

    @routes.get("/{name}/logs", responses={200: {"model": LogPage}})
    async def show_logs(
        name: str,
        folder: Folder = "",
        after: Annotated[int, Query(ge=0, le=2**53, description="`next` of the answer before.")] = 0,
    ) -> Response:
        """What it printed on stderr, and on stdout beside its answers, since this server runs; oldest first."""
        plugin = named(yard, name, folder)
        return answer(_log(yard.plugins.host.logs.get(plugin.name) or StderrLog(), after, yard.mask.log_text))


def _add_deciding(routes: APIRouter, yard: Yard) -> None:
    @routes.post("/{name}/allow", responses={200: {"model": PluginRow}})
    async def allow_plugin(name: str, said: Allowed, folder: Folder = "") -> Response:
        """Let exactly what was reviewed run; 409 when it has changed since it was shown."""
        yard.plugins.plugins.refresh()
        plugin = named(yard, name, folder)
        reviewed = yard.plugins.review(plugin)
        if reviewed.review.digest != said.fingerprint:
            raise Refusal(HTTPStatus.CONFLICT, f"{plugin.name} has changed since it was shown: look at it again")
        reviewed = reviewed.with_detached(detached=said.detached)
        await asyncio.to_thread(yard.plugins.allow, reviewed, confirm_read=said.confirm_read)
        yard.plugins.plugins.refresh()
        return _now(yard, plugin)

    @routes.post("/{name}/enable", responses={200: {"model": PluginRow}})
    async def enable_plugin(name: str, folder: Folder = "") -> Response:
        """Let a disabled plugin run again; 409 when it stays disabled because its manifest is named so."""
        plugin = named(yard, name, folder)
        await asyncio.to_thread(yard.plugins.plugins.enable, plugin)
        yard.plugins.plugins.refresh()
        now = _again(yard, plugin)
        if now.state is PluginState.DISABLED:
            raise Refusal(HTTPStatus.CONFLICT, f"{plugin.name} is still disabled: {now.reason}")
        return _now(yard, plugin)

    @routes.post("/{name}/disable", responses={200: {"model": PluginRow}})
    async def disable_plugin(name: str, folder: Folder = "") -> Response:
        """Keep a plugin from running; what runs goes on, and its files are not touched."""
        plugin = named(yard, name, folder)
        await asyncio.to_thread(yard.plugins.plugins.disable, plugin)
        yard.plugins.plugins.refresh()
        return _now(yard, plugin)

    @routes.post("/{name}/reload", responses={200: {"model": PluginRow}})
    async def reload_plugin(name: str, folder: Folder = "") -> Response:
        """Read its files again, whether they seem to have changed or not."""
        plugin = named(yard, name, folder)
        yard.plugins.plugins.refresh(plugin.folder)
        return _now(yard, plugin)

    @routes.delete("/{name}", responses={200: {"model": Done}})
    async def remove_plugin(name: str, folder: Folder = "") -> Response:
        """Take an installed plugin out of the home; its files are kept aside, and so is its data."""
        plugin = named(yard, name, folder)
        kept = await asyncio.to_thread(yard.plugins.remove, plugin)
        yard.plugins.plugins.refresh()
        return answer({"ok": True, "kept": str(kept) if kept else None})

    @routes.put("/{name}/config", responses={200: {"model": PluginConfigured}})
    async def configure_plugin(name: str, said: PluginValues, folder: Folder = "") -> Response:
        """Set or take out single keys of its `config.env`; the rest of the file stays as it is."""
        plugin = named(yard, name, folder)
        await asyncio.to_thread(write_settings, plugin, said.values)
        yard.plugins.plugins.refresh()
        now = _again(yard, plugin)
        told = plugin_view.row(yard, now)
        kept = {key: told[key] for key in ("name", "state", "reason")}
        return _told(yard, kept | {"holds": "next call", "config": plugin_view.settings(yard, now)})


def _told(yard: Yard, value: dict[str, Any]) -> Response:
    return answer(plugin_view.without_secrets(yard, value))


def _now(yard: Yard, plugin: Plugin) -> Response:
    return _told(yard, plugin_view.row(yard, _again(yard, plugin)))


def _again(yard: Yard, before: Plugin) -> Plugin:
    return next((one for one in yard.plugins.plugins.all if one.folder == before.folder), before)


def named(yard: Yard, name: str, folder: str) -> Plugin:
    """The plugin of that name, or of that name in that folder; Refusal when there is none."""
    plugins = yard.plugins.plugins
    found = plugins.get(name)
    if folder:
        found = next((one for one in plugins.all if one.name == name and str(one.folder) == folder), None)
    if found is None:
        raise not_found(f"plugin called '{name[:100]}'{' in that folder' if folder else ''}")
    return found


def _log(log: StderrLog, after: int, hide: Callable[[str], str]) -> dict[str, Any]:
    """``lost``: how many that came after ``after`` are no longer kept."""
    kept = [entry for entry in log.entries if entry.number > after]
    rows = [
        {
            "n": one.number,
            "at": one.at.timestamp(),
            "stream": one.stream.value,
            "call": one.call_id,
            "text": hide(one.text),
        }
        for one in kept
    ]
    return {"data": rows, "next": log.total, "lost": max(0, log.total - after - len(kept))}
