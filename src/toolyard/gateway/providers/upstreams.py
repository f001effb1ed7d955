"""The model providers by name, and the choice of the one that answers for a model.

In this order: ``tour`` is the built-in guide; ``name/model`` is that provider's model; a model that a provider lists
is that provider's; any other goes to the default provider, else to one without a list. Without any provider the guide
answers for every model. Fallback models are resolved in the same way.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from types import MappingProxyType
from typing import Final

from toolyard.gateway.faults import ChatFailed, bad_request
from toolyard.gateway.providers.contact import Contact, WatchedUpstream
from toolyard.gateway.providers.fallback import Fallback
from toolyard.gateway.providers.forwarding import ForwardedAnswer, Outgoing
from toolyard.gateway.providers.upstream import Upstream
from toolyard.message import Message
from toolyard.protocol.json import JsonObject

TOUR: Final = "tour"
_FRESH_S: Final = 60.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Provider:
    upstream: Upstream
    models: tuple[str, ...] = ()  # none: any model


class Upstreams:
    def __init__(
        self,
        tour: Upstream,
        providers: Mapping[str, Provider],
        default: Upstream | None = None,
        fallbacks: Mapping[str, Sequence[str]] = MappingProxyType({}),
    ) -> None:
        self._tour, self._providers, self._default, self._fallbacks = tour, dict(providers), default, fallbacks
        self._listed: tuple[float, dict[str, list[JsonObject]]] = (-_FRESH_S, {})  # by the name of the provider
        self._forwarding = 0
        self._is_idle = asyncio.Event()
        self._is_idle.set()

    def pick(self, model: str) -> tuple[Upstream, str]:
        """Return the provider of a model for one turn, and its own name for the model. Raises ChatFailed."""
        others = self._fallbacks.get(model)
        if not others:
            return self._pick(model)
        candidates = [self._pick(name) for name in (model, *others)]
        return Fallback(candidates), candidates[0][1]

    def _pick(self, model: str) -> tuple[Upstream, str]:
        if model == TOUR or (self._default is None and not self._providers):
            return self._tour, TOUR
        name, slash, rest = model.partition("/")
        if slash and name in self._providers:
            return self._providers[name].upstream, rest
        listing = next((one.upstream for one in self._providers.values() if model in one.models), None)
        open_ = next((one.upstream for one in self._providers.values() if not one.models), None)
        upstream = listing or self._default or open_
        if upstream is None:
            known = ", ".join(model for one in self._providers.values() for model in one.models)
            what = f"no model provider has '{model}'" if model else "the request names no model"
            raise bad_request(
                Message("chat.use_one_tour", "{what}: use one of {known}, tour", what=what, known=known),
                "model_not_found",
                HTTPStatus.NOT_FOUND,
            )
        return upstream, model

    async def forward(self, model: str, outgoing: Callable[[str], Outgoing]) -> ForwardedAnswer:
        """Send a request to the provider of a model; ``outgoing`` makes it with the provider's name for the model.

        Raises ChatFailed. The providers stay open until the answer is closed, see ``idle``.
        """
        upstream, name = self._find_provider(model)
        self._begin_forward()
        try:
            forwarded = await upstream.forward(outgoing(name))
        except BaseException:
            self._end_forward()
            raise
        forwarded.when_closed = self._end_forward
        return forwarded

    async def idle(self) -> None:
        """Return when no answer is being forwarded."""
        await self._is_idle.wait()

    def _find_provider(self, model: str) -> tuple[Upstream, str]:
        if self._default is None and not self._providers:
            raise bad_request(
                Message(
                    "chat.no_provider",
                    "no model provider is set, and the built-in guide can only chat: set OPENAI_BASE_URL and "
                    "OPENAI_API_KEY, or upstream_url and upstream_key in config.toml",
                ),
                "no_provider",
            )
        return self._pick(model)

    def _begin_forward(self) -> None:
        self._forwarding += 1
        self._is_idle.clear()

    def _end_forward(self) -> None:
        self._forwarding -= 1
        if not self._forwarding:
            self._is_idle.set()

    async def models(self) -> list[JsonObject]:
        """Return all models; a provider that does not answer has those that the settings list, or none."""
        listed = [model for models in (await self._lists()).values() for model in models]
        return list({str(model.get("id")): model for model in [*listed, *await self._tour.models()]}.values())

    async def model(self, id_: str) -> JsonObject | None:
        """Return a model by its provider's name and its id there, as in ``name/model``."""
        provider, _, rest = id_.partition("/")
        models = (model for model in (await self._lists()).get(provider, ()) if model.get("id") == rest)
        model = next(models, None) if provider else None
        return {**model, "id": id_} if model is not None else None

    async def _lists(self) -> dict[str, list[JsonObject]]:
        """Return each provider's models by its name, refreshed after ``_FRESH_S``. The default provider has no name."""
        at, lists = self._listed
        now = asyncio.get_running_loop().time()
        if now - at > _FRESH_S or not any(lists.values()):
            upstreams = {"": self._default} if self._default else {}
            upstreams |= {name: one.upstream for name, one in self._providers.items() if not one.models}
            answers = await asyncio.gather(*map(_list_models, upstreams.values()))
            lists = dict(zip(upstreams, answers, strict=True))
            lists |= {
                by: [_model(name, by) for name in one.models] for by, one in self._providers.items() if one.models
            }
            self._listed = (now, lists)
        return lists

    def contacts(self) -> dict[str, Contact]:
        """Return the last contact with each provider; the default one has no name."""
        named = {name: one.upstream for name, one in self._providers.items()}
        all_ = {**({"": self._default} if self._default else {}), **named}
        return {name: one.contact for name, one in all_.items() if isinstance(one, WatchedUpstream)}

    async def close(self) -> None:
        default = [self._default] if self._default else []
        for upstream in (self._tour, *default, *(one.upstream for one in self._providers.values())):
            await upstream.close()


async def _list_models(upstream: Upstream) -> list[JsonObject]:
    try:
        return await upstream.models()
    except ChatFailed as failed:
        _log.warning("the model provider %s does not list its models: %s", upstream.name, failed.fault.message)
        return []


def _model(name: str, by: str) -> JsonObject:
    return {"id": name, "object": "model", "created": 0, "owned_by": by}
