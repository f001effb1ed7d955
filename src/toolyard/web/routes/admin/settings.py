"""``/v1/settings``: the effective settings and their sources, and atomic changes of ``config.toml``.

Requires ``admin``. Secrets are never shown: each is ``[masked]``, and keeps its value where a change still has the
mask.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Annotated, Any, Literal

import orjson
from fastapi import Query, Request, Response
from pydantic import BaseModel, Field

from toolyard.config import FILE_NAME, Config
from toolyard.errors import ConfigError
from toolyard.message import Message
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.mask import MASK
from toolyard.provider_settings import Provider, ProviderOptions
from toolyard.settings import GROUP_TITLES, SETTINGS, Group, Setting
from toolyard.web.answers import json_response
from toolyard.web.refusal import Refusal, error_body
from toolyard.web.routes.calls.audit import add_audit_detail
from toolyard.web.routing import Audited, Routes
from toolyard.web.schemas.common import StrictModel
from toolyard.web.schemas.settings import SettingProblem, SettingProblems, SettingValue
from toolyard.web.settings.live_settings import SettingsReloader, format_serve_command
from toolyard.web.settings.settings_change import (
    SettingsChange,
    change_settings,
    list_overridden,
    read_stored_text,
    reload_config,
)
from toolyard.web.settings.settings_file import (
    collect_file_texts,
    collect_texts,
    list_problems,
    mask_file,
    set_values,
    unmask_file,
)
from toolyard.yard.yard import Yard


class SettingRow(BaseModel):
    name: str
    value: SettingValue
    default: SettingValue
    source: Literal["default", "file", "env"]
    variable: Annotated[str, Field(description="The environment variable that sets it, or empty.")]
    variables: Annotated[list[str], Field(description="The environment variables that can set it.")]
    set: bool
    secret: bool
    live: Annotated[bool, Field(description="Whether a change takes effect at once; else after a restart.")]
    holds: Annotated[bool, Field(description="Whether this value is in effect.")]
    title: Annotated[str, Field(description="Its name for people.")]
    title_zh: Annotated[str, Field(description="In Chinese, or as `title` if there is no translation.")]
    description: str
    description_zh: Annotated[str, Field(description="In Chinese, or as `description` if there is no translation.")]
    kind: Literal["text", "number", "bool", "list", "choice", "table"]
    choices: list[str]
    group: Annotated[str, Field(description="The `id` of one of `groups`.")]


class SettingGroup(BaseModel):
    id: str
    title: str
    title_zh: Annotated[str, Field(description="In Chinese, or as `title` if there is no translation.")]


class SettingsDetail(BaseModel):
    file: str
    text: str
    restart_command: Annotated[str, Field(description="The command that starts this server again.")]
    groups: Annotated[list[SettingGroup], Field(description="In the order in which a page shows them.")]
    settings: list[SettingRow]
    problems: list[SettingProblem]


class NewSettings(StrictModel):
    text: Annotated[str, Field(max_length=262_144, description="The whole file; `[masked]` keeps the stored value.")]
    before: Annotated[str, Field(max_length=262_144, description="`text` as it was read.")]


class NewValues(StrictModel):
    values: Annotated[
        dict[str, SettingValue], Field(min_length=1, max_length=100, description="null removes a setting.")
    ]


class SettingsChangeResult(BaseModel):
    now: Annotated[list[str], Field(description="Changed settings that are in effect.")]
    after_restart: Annotated[list[str], Field(description="Changed settings that take effect after a restart.")]
    text: str
    diff: str
    written: bool


_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"model": SettingsChangeResult},
    422: {"model": SettingProblems, "description": "Nothing was written."},
}
Check = Annotated[bool, Query(description="Only validate, and return what would change.")]


def router(yard: Yard, reloading: SettingsReloader) -> Routes:
    routes = Routes("/v1/settings", tag="settings")
    turn = asyncio.Lock()

    @routes.get("", SettingsDetail)
    async def show_settings() -> Response:
        """List every setting: its value, its source, and whether it is in effect."""
        return json_response(await asyncio.to_thread(_settings_to_json, yard, reloading))

    @routes.put("", audit=Audited("settings.changed", only_with_detail=True), responses=_RESPONSES)
    async def replace_settings(new: NewSettings, request: Request, check: Check = False) -> Response:
        """Replace `config.toml`; 409 when it has changed since it was read."""

        def edit(stored: str) -> str:
            if mask_file(stored, yard.mask.text) != new.before:
                raise Refusal(
                    HTTPStatus.CONFLICT,
                    Message("{file_name} has changed since it was read: read it again", file_name=FILE_NAME),
                )
            return unmask_file(new.text, stored, yard.mask.text)

        async with turn:
            typed = collect_file_texts(new.text)
            return await _apply_change(yard, reloading, edit, request, typed=typed, check=check)

    @routes.patch("", audit=Audited("settings.changed", only_with_detail=True), responses=_RESPONSES)
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
        "groups": groups_to_json(),
        "settings": list_settings(config, running, reloading.live_names),
        "problems": problems,
    }


def _running_config(yard: Yard, reloading: SettingsReloader) -> Config:
    """Return the config in effect: that of the start, with the live settings applied since."""
    start, now = yard.config, reloading.config
    taken_over = {name: getattr(now.settings, name) for name in reloading.live_names}
    return replace(start, settings=replace(start.settings, **taken_over), sources=now.sources, environ=now.environ)


def problems_response(error: ConfigError, *, given: Collection[str] = ()) -> Response:
    """Return an error response with the position of each problem.

    ``given``: the settings that were given by name. Their problems have no position: nobody wrote them in a file.
    """
    named = ConfigError(*(_drop_place(problem, given) for problem in error.problems))
    status = HTTPStatus(422)  # Python 3.13 renamed it
    body = orjson.loads(error_body(status, str(named))) | {"problems": list_problems(named)}
    return json_response(body, status)


def _drop_place(problem: str, given: Collection[str]) -> str:
    inner = problem.params.get("problem") if isinstance(problem, Message) else None
    is_given = isinstance(inner, Message) and (inner.params.get("name") in given or inner.params.get("key") in given)
    return str(inner) if is_given else problem


def list_settings(config: Config, running: Config, live: frozenset[str]) -> list[dict[str, Any]]:
    """Return every setting. ``config``: as in the files now; ``running``: as the server uses it."""
    return [_setting_to_json(setting, config, running, live) for setting in SETTINGS]


def groups_to_json() -> list[dict[str, str]]:
    """Return the groups, in the order in which a page shows them."""
    return [{"id": group, "title": GROUP_TITLES[group], "title_zh": GROUP_TITLES[group].chinese} for group in Group]


def _setting_to_json(setting: Setting, config: Config, running: Config, live: frozenset[str]) -> dict[str, Any]:
    name, source = setting.name, config.sources[setting.name]
    by_file = source == str(config.home / FILE_NAME)
    value = getattr(config.settings, name)
    return {
        "name": name,
        "value": _value_to_json(setting, value),
        "default": _value_to_json(setting, setting.default),
        "source": "default" if source == "default" else "file" if by_file else "env",
        "variable": "" if by_file or source == "default" else source,
        "variables": list(setting.environment),
        "set": bool(value) or value is False,
        "secret": setting.secret,
        "live": name in live,
        "holds": value == getattr(running.settings, name),
        "title": setting.title,
        "title_zh": setting.title.chinese,
        "description": setting.about,
        "description_zh": setting.about.chinese,
        "kind": _find_kind(setting),
        "choices": list(setting.choices),
        "group": setting.group,
    }


def _find_kind(setting: Setting) -> str:
    if setting.choices:
        return "choice"
    kinds = {bool: "bool", int: "number", tuple: "list", dict: "table", ProviderOptions: "table"}
    return kinds.get(type(setting.default), "text")


def _value_to_json(setting: Setting, value: Any) -> Json:
    """Return a value as JSON, secrets masked."""
    if isinstance(value, Mapping):
        return {name: _inner_to_json(one) for name, one in value.items()}
    if isinstance(value, ProviderOptions):
        return value.to_json()
    if setting.secret and value:
        return MASK
    return _inner_to_json(value)


def _inner_to_json(value: Any) -> Json:
    if isinstance(value, Provider):
        return value.to_json()
    if isinstance(value, tuple):
        return [str(one) for one in value]
    return value if value is None or isinstance(value, bool | int) else str(value)
