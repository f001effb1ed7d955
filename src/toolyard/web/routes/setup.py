"""The setup: test of a model provider, and the end of the first steps.

A test sends a stored key only to the origin it was stored for (S-72).
"""

import asyncio
from dataclasses import replace

from fastapi import APIRouter, Response

from toolyard.config import Config
from toolyard.engine.clock import Clock
from toolyard.engine.masking import MASK
from toolyard.gateway.providers.probe import probe
from toolyard.message import Message, to_fields
from toolyard.protocol.json import JsonObject
from toolyard.provider_settings import ProviderOptions
from toolyard.settings import SETTINGS
from toolyard.web.first_run import mark_finished
from toolyard.web.refusal import bad_request
from toolyard.web.responses import json_response
from toolyard.web.schemas.admin import UpstreamTest, UpstreamTestResult
from toolyard.web.schemas.common import OkResponse
from toolyard.web.settings_change import find_stored_key, find_stored_options, upstream_url
from toolyard.web.settings_reloader import SettingsReloader
from toolyard.yard.yard import Yard

_PARSE_URL = next(setting.parse for setting in SETTINGS if setting.name == "upstream_url")


def router(yard: Yard, reloading: SettingsReloader, clock: Clock) -> APIRouter:
    routes = APIRouter(prefix="/v1", tags=["setup"])

    @routes.post("/upstream/test", responses={200: {"model": UpstreamTestResult}})
    async def test_upstream(test: UpstreamTest) -> Response:
        """List the models of a provider; `error` is its own message. Nothing is stored."""
        config = reloading.config
        url = _parse_url(test.url or upstream_url(config))
        stored = None if test.key else find_stored_key(config, url)
        started = clock.monotonic()
        result = await probe(url, test.key or stored, _find_options(config, url, own_key=bool(test.key)))

        def hide_key(text: str) -> str:
            return text.replace(test.key, MASK) if test.key else text

        error = result.error.map_text(hide_key) if isinstance(result.error, Message) else hide_key(result.error)
        body: JsonObject = {
            "ok": not result.error,
            "url": url,
            "key": "given" if test.key else "stored" if stored else "none",
            "models": list(result.models),
            **to_fields("error", error),
            "ms": round((clock.monotonic() - started) * 1000, 1),
        }
        return json_response(yard.mask.mask_known(body))

    @routes.post("/setup/done", responses={200: {"model": OkResponse}})
    async def setup_done() -> Response:
        """Mark the setup as finished or dismissed."""
        await asyncio.to_thread(mark_finished, yard.config, clock.now().timestamp())
        return json_response({"ok": True})

    return routes


def _find_options(config: Config, url: str, *, own_key: bool) -> ProviderOptions:
    """Return the options stored for the origin, without its keys when another key is tested."""
    options = find_stored_options(config, url)
    return replace(options, keys=()) if own_key else options


def _parse_url(url: str) -> str:
    if not url:
        raise bad_request(Message("provider.no_url", "no model provider is configured: pass its URL as 'url'"))
    try:
        return str(_PARSE_URL(url))
    except ValueError as error:
        raise bad_request(Message("http.invalid_url", "url: {error}", error=error)) from error
