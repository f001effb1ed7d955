"""The setup: whether the first steps are shown, the test of a model provider, and the end of the first steps.

They are shown while no model provider is configured and nobody has finished or dismissed them. A test sends a stored
key only to the origin it was stored for (S-72).
"""

import asyncio
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, Literal

from fastapi import Response
from pydantic import BaseModel, Field

from toolyard.config import Config
from toolyard.engine.clock import Clock
from toolyard.errors import ConfigError
from toolyard.gateway.providers.probe import probe
from toolyard.message import Message, to_fields
from toolyard.protocol.json import JsonObject
from toolyard.protocol.mask import Mask
from toolyard.provider_settings import ProviderOptions, ProviderProtocol
from toolyard.settings import SETTINGS
from toolyard.web.answers import json_response
from toolyard.web.refusal import bad_request, not_found
from toolyard.web.routes.admin.settings import problems_response
from toolyard.web.routing import Routes
from toolyard.web.schemas.common import Code, OkResponse, Params, StrictModel
from toolyard.web.schemas.settings import SettingProblems, SettingValue
from toolyard.web.settings.live_settings import SettingsReloader
from toolyard.web.settings.settings_change import (
    change_settings,
    find_stored_key,
    find_stored_options,
    list_overridden,
    upstream_url,
)
from toolyard.web.settings.settings_file import collect_texts, set_values
from toolyard.workspace.home_folder import StateFile
from toolyard.yard.yard import Yard


class UpstreamTest(StrictModel):
    url: Annotated[str, Field(max_length=2000, description="Empty: the stored one.")] = ""
    key: Annotated[
        str, Field(max_length=2000, description="Empty: the stored one, if it was stored for the same origin.")
    ] = ""
    values: Annotated[
        dict[str, SettingValue],
        Field(max_length=100, description="Changes as for `PATCH /v1/settings`, which are tested instead of stored."),
    ] = Field(default_factory=dict)
    name: Annotated[
        str | None,
        Field(max_length=200, description="The provider to test, of the settings with `values`; empty: the default."),
    ] = None


class UpstreamTestResult(BaseModel):
    ok: bool
    url: str
    key: Literal["given", "stored", "none"]
    models: list[str]
    protocol: Annotated[
        ProviderProtocol | None, Field(description="The protocol that it speaks; null if that cannot be said.")
    ]
    error: str
    error_code: Code = ""
    error_params: Params
    hint: Annotated[str, Field(description="What to do about the error.")]
    hint_code: Code = ""
    hint_params: Params
    status: Annotated[int | None, Field(description="The HTTP status of the provider; null without an answer.")]
    ms: float


_PARSE_URL = next(setting.parse for setting in SETTINGS if setting.name == "upstream_url")


def router(yard: Yard, reloading: SettingsReloader, clock: Clock) -> Routes:
    routes = Routes("/v1", tag="setup")

    @routes.post("/upstream/test", UpstreamTestResult, responses={422: {"model": SettingProblems}})
    async def test_upstream(test: UpstreamTest) -> Response:
        """List the models of a provider, and find out its protocol; `error` is its own message. Nothing is stored."""
        started = clock.monotonic()
        try:
            target = await asyncio.to_thread(_find_target, yard, reloading.config, test)
        except ConfigError as error:
            return problems_response(ConfigError(*map(yard.mask.text, error.problems)), given=[*test.values])
        result = await probe(target.url, target.key, target.options)
        typed = Mask()
        typed.add(target.secrets)
        body: JsonObject = {
            "ok": not result.error,
            "url": target.url,
            "key": target.key_source,
            "models": list(result.models),
            "protocol": result.protocols[0] if result.protocols else None,
            **to_fields("error", typed.text(result.error)),
            **to_fields("hint", result.hint),
            "status": result.status,
            "ms": round((clock.monotonic() - started) * 1000, 1),
        }
        return json_response(yard.mask.mask_known(body))

    @routes.post("/setup/done", OkResponse)
    async def setup_done() -> Response:
        """Mark the setup as finished or dismissed."""
        await asyncio.to_thread(mark_finished, yard.config, clock.now().timestamp())
        return json_response({"ok": True})

    return routes


@dataclass(frozen=True, slots=True)
class _Target:
    """A provider to test; ``is_given``: its key came with the request."""

    url: str
    key: str | None
    options: ProviderOptions
    is_given: bool

    @property
    def key_source(self) -> str:
        return "given" if self.is_given else "stored" if self.key or self.options.keys else "none"

    @property
    def secrets(self) -> tuple[str, ...]:
        return (*((self.key,) if self.key else ()), *self.options.secrets)


def _find_target(yard: Yard, config: Config, test: UpstreamTest) -> _Target:
    """Return what a test is about. Raises Refusal, or ConfigError for settings that could not be stored either."""
    if test.name is None:
        url = _parse_url(test.url or upstream_url(config))
        options = find_stored_options(config, url)
        if test.key:
            return _Target(url, test.key, replace(options, keys=()), is_given=True)
        return _Target(url, find_stored_key(config, url), options, is_given=False)
    values: dict[str, Any] = {**test.values}
    typed = collect_texts(values)
    new = config
    if values:
        if problems := list_overridden(config, values):
            raise ConfigError(*problems)
        new = change_settings(
            config, lambda stored: set_values(stored, values), yard.mask.text, typed=typed, write=False
        ).new
    settings = new.settings
    if not test.name:
        key, options = settings.upstream_key, settings.default_provider_options
        return _Target(_parse_url(upstream_url(new)), key, options, is_given=bool(key) and key in typed)
    provider = settings.upstreams.get(test.name)
    if provider is None:
        raise not_found(Message("model provider '{name}'", name=test.name))
    return _Target(provider.url, provider.key, provider.options, is_given=bool(provider.key) and provider.key in typed)


def _parse_url(url: str) -> str:
    if not url:
        raise bad_request(Message("no model provider is configured: pass its URL as 'url'"))
    try:
        return str(_PARSE_URL(url))
    except ValueError as error:
        raise bad_request(Message("url: {error}", error=error)) from error


FILE_NAME: Final = "setup.json"


def is_first_run(config: Config) -> bool:
    """Return whether the setup should be shown. Reads a small file of the home."""
    settings = config.settings
    has_provider = settings.upstream_url or settings.upstream_key or settings.upstreams
    return not has_provider and "done" not in StateFile(config.home / FILE_NAME).read()


def mark_finished(config: Config, at: float) -> None:
    """Record that the setup is finished. Raises ConfigError."""
    StateFile(config.home / FILE_NAME).update(lambda value: value.update({"done": at}))
