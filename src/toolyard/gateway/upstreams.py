"""The model providers by name, and which of them answers for a model.

In this order: ``tour`` is the built-in guide; ``name/model`` is that provider's model; a model that a provider lists
is that provider's; any other goes to the default provider, else to one without a list. Without any provider the guide
answers for every model.
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from toolyard.gateway.contact import Contact, Watched
from toolyard.gateway.faults import ChatFailed, bad_request
from toolyard.gateway.upstream import Upstream
from toolyard.protocol.json import JsonObject

TOUR: Final = "tour"
_FRESH_S: Final = 60.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Provider:
    upstream: Upstream
    models: tuple[str, ...] = ()  # none: whatever it is asked for


class Upstreams:
    def __init__(self, tour: Upstream, providers: Mapping[str, Provider], default: Upstream | None = None) -> None:
        self._tour, self._providers, self._default = tour, dict(providers), default
        self._listed: tuple[float, list[JsonObject]] = (-_FRESH_S, [])

    def pick(self, model: str) -> tuple[Upstream, str]:
        """Who answers for a model, and what that one calls it. Raises ChatFailed."""
        if model == TOUR or (self._default is None and not self._providers):
            return self._tour, TOUR
        name, slash, rest = model.partition("/")
        if slash and name in self._providers:
            return self._providers[name].upstream, rest
        listing = next((one.upstream for one in self._providers.values() if model in one.models), None)
        open_ = next((one.upstream for one in self._providers.values() if not one.models), None)
        found = listing or self._default or open_
        if found is None:
            known = ", ".join(model for one in self._providers.values() for model in one.models)
            raise bad_request(
                f"no model provider has '{model}': use one of {known}, tour", "model_not_found", HTTPStatus.NOT_FOUND
            )
        return found, model

    async def models(self) -> list[JsonObject]:
        """What all of them offer; a provider that does not answer has what the settings list, or nothing."""
        at, listed = self._listed
        now = asyncio.get_running_loop().time()
        if now - at > _FRESH_S or not listed:
            asked = [*([self._default] if self._default else [])]
            asked += [one.upstream for one in self._providers.values() if not one.models]
            found = await asyncio.gather(*map(_ask, asked))
            listed = [model for models in found for model in models]
            listed += [_model(name, by) for by, one in self._providers.items() for name in one.models]
            self._listed = (now, listed)
        unique = {str(model.get("id")): model for model in [*listed, *await self._tour.models()]}
        return list(unique.values())

    def contacts(self) -> dict[str, Contact]:
        """When each provider last answered or failed; the default one has no name."""
        named = {name: one.upstream for name, one in self._providers.items()}
        all_ = {**({"": self._default} if self._default else {}), **named}
        return {name: one.contact for name, one in all_.items() if isinstance(one, Watched)}

    async def close(self) -> None:
        default = [self._default] if self._default else []
        for upstream in (self._tour, *default, *(one.upstream for one in self._providers.values())):
            await upstream.close()


async def _ask(upstream: Upstream) -> list[JsonObject]:
    try:
        return await upstream.models()
    except ChatFailed as failed:
        _log.warning("the model provider %s does not list its models: %s", upstream.name, failed.fault.message)
        return []


def _model(name: str, by: str) -> JsonObject:
    return {"id": name, "object": "model", "created": 0, "owned_by": by}
