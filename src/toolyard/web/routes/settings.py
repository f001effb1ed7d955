"""``/v1/settings``: what holds and where it comes from, and changing ``config.toml`` without half of a change.

All of it is the owner's. No secret is ever shown: each stands as ``[masked]``, and stays what it was where a change
still says so.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from http import HTTPStatus
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Query, Response

from toolyard.app import Yard
from toolyard.config import FILE_NAME, Config
from toolyard.errors import ConfigError
from toolyard.protocol.json import JsonObject
from toolyard.web.answers import answer
from toolyard.web.refusal import Refusal, error_body
from toolyard.web.reloading import Reloading
from toolyard.web.setting_view import rows
from toolyard.web.settings_change import Change, change, outranked, read_again, stored_text
from toolyard.web.settings_file import changed, masked, problems_of, texts_in, texts_of, unmasked
from toolyard.web.shapes_admin import NewSettings, NewValues, SettingProblems, SettingsChanged, SettingsShown

_WRONG: dict[int | str, dict[str, Any]] = {
    200: {"model": SettingsChanged},
    422: {"model": SettingProblems, "description": "Nothing was written."},
}
Check = Annotated[bool, Query(description="Only look whether it is right, and what would change.")]


def router(yard: Yard, reloading: Reloading) -> APIRouter:
    routes = APIRouter(prefix="/v1/settings", tags=["settings"])
    turn = asyncio.Lock()

    @routes.get("", responses={200: {"model": SettingsShown}})
    async def show_settings() -> Response:
        """Every setting: its value, where it comes from, and whether it holds now."""
        return answer(await asyncio.to_thread(_shown, yard, reloading))

    @routes.put("", responses=_WRONG)
    async def replace_settings(new: NewSettings, check: Check = False) -> Response:
        """Write the whole of `config.toml`; 409 when it has changed since it was read."""

        def edit(stored: str) -> str:
            if masked(stored, yard.mask.text) != new.before:
                raise Refusal(HTTPStatus.CONFLICT, f"{FILE_NAME} has changed since it was read: read it again")
            return unmasked(new.text, stored, yard.mask.text)

        async with turn:
            return await _changed(yard, reloading, edit, typed=texts_of(new.text), check=check)

    @routes.patch("", responses=_WRONG)
    async def change_settings(new: NewValues, check: Check = False) -> Response:
        """Set or take out single settings; the rest of the file stays as it is, comments included."""
        async with turn:
            problems = outranked(reloading.config, new.values)
            if problems:
                return _refused(ConfigError("\n".join(problems)))

            def edit(stored: str) -> str:
                return changed(stored, new.values)

            return await _changed(yard, reloading, edit, typed=texts_in(new.values), check=check)

    return routes


async def _changed(
    yard: Yard, reloading: Reloading, edit: Callable[[str], str], *, typed: frozenset[str], check: bool
) -> Response:
    config = reloading.config
    try:
        done = await asyncio.to_thread(change, config, edit, yard.mask.text, typed=typed, write=not check)
    except ConfigError as error:
        return _refused(ConfigError(yard.mask.text(str(error))))
    if not check:
        yard.mask.add(done.new.secrets)
        await reloading.at_once()
    return answer(_told(done, reloading.live, written=not check))


def _told(done: Change, live: frozenset[str], *, written: bool) -> JsonObject:
    return {
        "now": [name for name in done.names if name in live],
        "after_restart": [name for name in done.names if name not in live],
        "text": done.after,
        "diff": done.diff,
        "written": written,
    }


def _refused(error: ConfigError) -> Response:
    """In the shape of every error, with the place of each problem beside it."""
    status = HTTPStatus(422)  # Python has renamed it since
    told = orjson.loads(error_body(status, str(error))) | {"problems": problems_of(error)}
    return answer(told, status)


def _shown(yard: Yard, reloading: Reloading) -> dict[str, Any]:
    """Reads files."""
    running, problems = _running(yard, reloading), []
    try:
        config = read_again(running)
        yard.mask.add(config.secrets)
    except ConfigError as error:
        config, problems = running, problems_of(ConfigError(yard.mask.text(str(error))))
    try:
        text = masked(stored_text(running), yard.mask.text)
    except ConfigError:
        text = ""
    return {
        "file": str(running.home / FILE_NAME),
        "text": text,
        "settings": rows(config, running, reloading.live),
        "problems": problems,
    }


def _running(yard: Yard, reloading: Reloading) -> Config:
    """What the server really runs with: what it has started with, and what it has taken over since."""
    start, now = yard.config, reloading.config
    taken_over = {name: getattr(now.settings, name) for name in reloading.live}
    return replace(start, settings=replace(start.settings, **taken_over), sources=now.sources, environ=now.environ)
