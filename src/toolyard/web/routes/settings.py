"""``/v1/settings``: the effective settings and their sources, and atomic changes of ``config.toml``.

Requires ``admin``. Secrets are never shown: each is ``[masked]``, and keeps its value where a change still has the
mask.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from toolyard.config import FILE_NAME, Config
from toolyard.errors import ConfigError
from toolyard.message import Message
from toolyard.protocol.json import JsonObject
from toolyard.web.audit_trail import add_audit_detail
from toolyard.web.refusal import Refusal
from toolyard.web.responses import json_response
from toolyard.web.schemas.admin import NewSettings, NewValues, SettingProblems, SettingsChangeResult, SettingsDetail
from toolyard.web.serve_command import format_serve_command
from toolyard.web.settings_change import (
    SettingsChange,
    change_settings,
    list_overridden,
    read_stored_text,
    reload_config,
)
from toolyard.web.settings_file import (
    collect_file_texts,
    collect_texts,
    list_problems,
    mask_file,
    set_values,
    unmask_file,
)
from toolyard.web.settings_problems import problems_response
from toolyard.web.settings_reloader import SettingsReloader
from toolyard.web.views.setting import to_json
from toolyard.yard.yard import Yard

_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"model": SettingsChangeResult},
    422: {"model": SettingProblems, "description": "Nothing was written."},
}
Check = Annotated[bool, Query(description="Only validate, and return what would change.")]


def router(yard: Yard, reloading: SettingsReloader) -> APIRouter:
    routes = APIRouter(prefix="/v1/settings", tags=["settings"])
    turn = asyncio.Lock()

    @routes.get("", responses={200: {"model": SettingsDetail}})
    async def show_settings() -> Response:
        """List every setting: its value, its source, and whether it is in effect."""
        return json_response(await asyncio.to_thread(_settings_to_json, yard, reloading))

    @routes.put("", responses=_RESPONSES)
    async def replace_settings(new: NewSettings, request: Request, check: Check = False) -> Response:
        """Replace `config.toml`; 409 when it has changed since it was read."""

        def edit(stored: str) -> str:
            if mask_file(stored, yard.mask.text) != new.before:
                raise Refusal(
                    HTTPStatus.CONFLICT,
                    Message(
                        "settings.changed_since_read",
                        "{file_name} has changed since it was read: read it again",
                        file_name=FILE_NAME,
                    ),
                )
            return unmask_file(new.text, stored, yard.mask.text)

        async with turn:
            typed = collect_file_texts(new.text)
            return await _apply_change(yard, reloading, edit, request, typed=typed, check=check)

    @routes.patch("", responses=_RESPONSES)
    async def change_settings(new: NewValues, request: Request, check: Check = False) -> Response:
        """Set or remove single settings; the rest of the file is unchanged, comments included."""
        async with turn:
            problems = list_overridden(reloading.config, new.values)
            if problems:
                return problems_response(ConfigError(*problems))

            values: dict[str, Any] = {**new.values}

            def edit(stored: str) -> str:
                return set_values(stored, values)

            typed = collect_texts(values)
            return await _apply_change(yard, reloading, edit, request, typed=typed, check=check, given=[*values])

    return routes


async def _apply_change(
    yard: Yard,
    reloading: SettingsReloader,
    edit: Callable[[str], str],
    request: Request,
    *,
    typed: frozenset[str],
    check: bool,
    given: Sequence[str] = (),
) -> Response:
    config = reloading.config
    try:
        done = await asyncio.to_thread(change_settings, config, edit, yard.mask.text, typed=typed, write=not check)
    except ConfigError as error:
        return problems_response(ConfigError(*map(yard.mask.text, error.problems)), given=given)
    if not check:
        yard.mask.add(done.new.secrets)
        add_audit_detail(request.scope, settings=[*done.names])
        await reloading.reload_now()
    return json_response(_change_to_json(done, reloading.live_names, written=not check))


def _change_to_json(done: SettingsChange, live: frozenset[str], *, written: bool) -> JsonObject:
    return {
        "now": [name for name in done.names if name in live],
        "after_restart": [name for name in done.names if name not in live],
        "text": done.after,
        "diff": done.diff,
        "written": written,
    }


def _settings_to_json(yard: Yard, reloading: SettingsReloader) -> dict[str, Any]:
    """Return the settings and the file. Reads files."""
    running, problems = _running_config(yard, reloading), []
    try:
        config = reload_config(running)
        yard.mask.add(config.secrets)
    except ConfigError as error:
        config, problems = running, list_problems(ConfigError(*map(yard.mask.text, error.problems)))
    try:
        text = mask_file(read_stored_text(running), yard.mask.text)
    except ConfigError:
        text = ""
    return {
        "file": str(running.home / FILE_NAME),
        "text": text,
        "restart_command": format_serve_command(running),
        "settings": to_json(config, running, reloading.live_names),
        "problems": problems,
    }


def _running_config(yard: Yard, reloading: SettingsReloader) -> Config:
    """Return the config in effect: that of the start, with the live settings applied since."""
    start, now = yard.config, reloading.config
    taken_over = {name: getattr(now.settings, name) for name in reloading.live_names}
    return replace(start, settings=replace(start.settings, **taken_over), sources=now.sources, environ=now.environ)
