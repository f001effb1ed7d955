"""The first steps: whether a model provider answers, and that nobody has to be led any more.

A test sends a stored key only to the origin it was stored for (S-72).
"""

import asyncio
from dataclasses import replace

from fastapi import APIRouter, Response

from toolyard.app import Yard
from toolyard.config import Config
from toolyard.engine.clock import Clock
from toolyard.engine.masking import MASK
from toolyard.gateway.probe import probe
from toolyard.protocol.json import JsonObject
from toolyard.provider_settings import ProviderOptions
from toolyard.settings import SETTINGS
from toolyard.web.answers import answer
from toolyard.web.first_run import finish
from toolyard.web.refusal import bad_request
from toolyard.web.reloading import Reloading
from toolyard.web.settings_change import stored_key, stored_options, upstream_url
from toolyard.web.shapes import Done
from toolyard.web.shapes_admin import UpstreamTest, UpstreamTested

_PARSE_URL = next(setting.parse for setting in SETTINGS if setting.name == "upstream_url")


def router(yard: Yard, reloading: Reloading, clock: Clock) -> APIRouter:
    routes = APIRouter(prefix="/v1", tags=["setup"])

    @routes.post("/upstream/test", responses={200: {"model": UpstreamTested}})
    async def test_upstream(said: UpstreamTest) -> Response:
        """Ask a model provider for its models; `error` has its own words. Nothing is stored."""
        config = reloading.config
        url = _url(said.url or upstream_url(config))
        stored = None if said.key else stored_key(config, url)
        started = clock.monotonic()
        found = await probe(url, said.key or stored, _options(config, url, own_key=bool(said.key)))
        told: JsonObject = {
            "ok": not found.error,
            "url": url,
            "key": "given" if said.key else "stored" if stored else "none",
            "models": list(found.models),
            "error": found.error.replace(said.key, MASK) if said.key else found.error,
            "ms": round((clock.monotonic() - started) * 1000, 1),
        }
        return answer(yard.mask.mask_known(told))

    @routes.post("/setup/done", responses={200: {"model": Done}})
    async def setup_done() -> Response:
        """Say that the first steps are done, or not wanted."""
        await asyncio.to_thread(finish, yard.config, clock.now().timestamp())
        return answer({"ok": True})

    return routes


def _options(config: Config, url: str, *, own_key: bool) -> ProviderOptions:
    """Those stored for the origin; without its keys when the key that was given is to be tried."""
    options = stored_options(config, url)
    return replace(options, keys=()) if own_key else options


def _url(url: str) -> str:
    if not url:
        raise bad_request("no model provider is set: give its address as 'url'")
    try:
        return str(_PARSE_URL(url))
    except ValueError as error:
        raise bad_request(f"url: {error}") from error
