"""The model providers by name, and the choice of the one that answers for a model.

In this order: ``tour`` is the built-in guide; ``name/model`` is that provider's model; a model that the settings list
for a provider is that provider's, and so is one that a provider itself was last heard to list; ``name/model`` with a
former name of a provider is that provider's; any other goes to the default provider, else to one without a list.
Without any provider the guide answers for every model. Fallback models are resolved in the same way. A request that
names no model gets the default model.

A fallback is tried only while nothing of a round was answered. In a later round that repeats no tool: the model that
stands in gets the results of the calls that have run.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from types import MappingProxyType
from typing import Final

from toolyard.gateway.faults import ChatFailed, ChatFault, bad_request
from toolyard.gateway.protocols.chat_body import drop_native
from toolyard.gateway.providers.answer import Answer, ProviderWait, WaitListener, ignore_wait
from toolyard.gateway.providers.contact import Contact, WatchedUpstream
from toolyard.gateway.providers.forwarded_answer import ForwardedAnswer, Outgoing
from toolyard.gateway.providers.upstream import Upstream
from toolyard.message import Message
from toolyard.protocol.json import Json, JsonObject, json_bytes, json_value
from toolyard.provider_settings import ProviderProtocol

TOUR: Final = "tour"
_FRESH_S: Final = 15.0
_RETRY_S: Final = 3.0  # before a provider that did not answer is asked for its list again
_LEARN_S: Final = 3.0  # a chat waits so long for the lists of models, once
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Provider:
    upstream: Upstream
    models: tuple[str, ...] = ()  # none: any model
    former_names: tuple[str, ...] = ()


class Upstreams:
    def __init__(
        self,
        tour: Upstream,
        providers: Mapping[str, Provider],
        default: Upstream | None = None,
        fallbacks: Mapping[str, Sequence[str]] = MappingProxyType({}),
        default_model: str = "",
        mask: Callable[[str], str] = str,
    ) -> None:
        """``mask`` hides secrets in what is logged: a provider may repeat the key that it refuses."""
        self._mask = mask
        self._tour, self._providers, self._default, self._fallbacks = tour, dict(providers), default, fallbacks
        self.default_model = default_model
        self._learning: asyncio.Task[object] | None = None
        self._listed: tuple[float, dict[str, list[JsonObject]]] = (-_FRESH_S, {})  # by the name of the provider
        self._unavailable: tuple[str, ...] = ()  # providers that did not answer when they were last asked for a list
        self._forwarding = 0
        self._is_idle = asyncio.Event()
        self._is_idle.set()

    def pick(self, model: str) -> tuple[Upstream, str]:
        """Return the provider of a model for one turn, and its own name for the model. Raises ChatFailed."""
        model = model or self.default_model
        others = self._fallbacks.get(model)
        if not others:
            return self._pick(model)
        candidates = [self._pick(name) for name in (model, *others)]
        return Fallback(candidates), candidates[0][1]

    def is_tour(self, model: str) -> bool:
        """Return whether the built-in guide answers for a model."""
        return (model or self.default_model) == TOUR or (self._default is None and not self._providers)

    async def learn(self, model: str, *, is_long: bool = False) -> None:
        """Ask the providers for their models, once: if only their lists can say whose a model is, or what it takes."""
        asks = is_long or self._needs_lists(model or self.default_model)
        if self._learning is None and not self._listed[1] and asks and not self.is_tour(model):
            self._learning = asyncio.create_task(self._lists())
            await asyncio.wait({self._learning}, timeout=_LEARN_S)

    def _needs_lists(self, model: str) -> bool:
        unlisted = (self._default is not None) + sum(not one.models for one in self._providers.values())
        is_known = model in ("", TOUR) or model.partition("/")[0] in self._providers
        return unlisted > 1 and not is_known and not any(model in one.models for one in self._providers.values())

    def _pick(self, model: str) -> tuple[Upstream, str]:
        if self.is_tour(model):
            return self._tour, TOUR
        name, slash, rest = model.partition("/")
        if slash and name in self._providers:
            return self._providers[name].upstream, rest
        listing = next((one.upstream for one in self._providers.values() if model in one.models), None)
        open_ = next((one.upstream for one in self._providers.values() if not one.models), None)
        upstream = listing or self._find_by_list(model)
        if upstream is None and slash and (renamed := self._find_renamed(name)):
            return self._providers[renamed].upstream, rest
        upstream = upstream or self._default or open_
        if upstream is None:
            known = ", ".join(model for one in self._providers.values() for model in one.models)
            what = (
                Message("no model provider has '{model}'", model=model)
                if model
                else Message("the request names no model")
            )
            raise bad_request(
                Message("{what}: use one of {known}, tour", what=what, known=known),
                "model_not_found",
                HTTPStatus.NOT_FOUND,
            )
        return upstream, model

    def _find_renamed(self, former: str) -> str | None:
        """Return the name that a provider has now, by a former one."""
        return next((name for name, one in self._providers.items() if former in one.former_names), None)

    def _find_by_list(self, model: str) -> Upstream | None:
        """Return the first provider that was last heard to list a model."""
        lists = self._listed[1].items()
        name = next((name for name, models in lists if any(one["id"] == model for one in models)), None)
        return None if name is None else self._providers[name].upstream if name else self._default

    async def protocol(self, model: str) -> ProviderProtocol:
        """Return the protocol of the provider of a model. Raises ChatFailed."""
        await self.learn(model)
        return self.pick(model)[0].protocol

    async def forward(
        self, model: str, outgoing: Callable[[str], Outgoing], protocol: ProviderProtocol | None = None
    ) -> ForwardedAnswer:
        """Send a request to the provider of a model; ``outgoing`` makes it with the provider's name for the model.

        With a ``protocol``, the model's fallbacks that speak it stand in for it as in a chat. Raises ChatFailed. The
        providers stay open until the answer is closed, see ``idle``.
        """
        await self.learn(model)
        self._begin_forward()
        try:
            forwarded = await self._forward_to_first(self._list_candidates(model, protocol), outgoing)
        except BaseException:
            self._end_forward()
            raise
        forwarded.when_closed = self._end_forward
        return forwarded

    def _list_candidates(self, model: str, protocol: ProviderProtocol | None) -> list[tuple[Upstream, str]]:
        """Return the provider of a model, and those that may stand in for it."""
        first = self._find_provider(model)
        others = self._fallbacks.get(model or self.default_model, ()) if protocol else ()
        return [first, *(one for one in map(self._pick, others) if one[0].protocol is protocol)]

    async def _forward_to_first(
        self, candidates: list[tuple[Upstream, str]], outgoing: Callable[[str], Outgoing]
    ) -> ForwardedAnswer:
        """Send a request to the first of the candidates that answers."""
        first: ChatFailed | None = None
        for upstream, name in candidates:
            try:
                return await upstream.forward(outgoing(name))
            except ChatFailed as failed:
                if not may_fall_back(failed.fault):
                    raise
                first = first or failed
        raise first or RuntimeError("there is at least one")

    async def idle(self) -> None:
        """Return when no answer is being forwarded."""
        await self._is_idle.wait()

    def _find_provider(self, model: str) -> tuple[Upstream, str]:
        if self._default is None and not self._providers:
            raise bad_request(
                Message(
                    "no model provider is set, and the built-in guide can only chat: set OPENAI_BASE_URL and "
                    "OPENAI_API_KEY, or upstream_url and upstream_key in config.toml"
                ),
                "no_provider",
            )
        return self._pick(model or self.default_model)

    def _begin_forward(self) -> None:
        self._forwarding += 1
        self._is_idle.clear()

    def _end_forward(self) -> None:
        self._forwarding -= 1
        if not self._forwarding:
            self._is_idle.set()

    async def models(self) -> list[JsonObject]:
        """Return all models, the default one first; a provider that does not answer has those that it listed last.

        A model whose name is another provider's is listed with the name of its provider, as in ``name/model``. Models
        of a provider that does not answer have ``"available": false``; the default model is among them even if nobody
        ever listed it, so that nobody takes the guide in its place.
        """
        fixed = {model: name for name, one in self._providers.items() for model in one.models}
        listed: dict[str, JsonObject] = {}
        first: list[str] = []
        for provider, models in (await self._lists()).items():
            for model in models:
                own = str(model["id"])
                is_taken = own in listed or fixed.get(own, provider) != provider
                id_ = f"{provider}/{own}" if is_taken and provider else own
                state: JsonObject = {"available": False} if provider in self._unavailable else {}
                listed.setdefault(id_, {**model, **state, "id": id_})
                if self.default_model in (own, f"{provider}/{own}"):
                    first.append(id_)
        if not first and self.default_model not in ("", TOUR) and self._is_default_unlisted():
            first = [self.default_model]
            away: JsonObject = {"available": False} if self._unavailable else {}
            listed[first[0]] = {**_model(first[0], ""), **away}
        listed |= {str(model["id"]): model for model in await self._tour.models()}
        return [listed[id_] for id_ in dict.fromkeys([*first[:1], *listed])]

    def _is_default_unlisted(self) -> bool:
        """Return whether the default model may exist although nobody lists it: a provider is away, or lists nothing."""
        has_provider = self._default is not None or bool(self._providers)
        return bool(self._unavailable) or (has_provider and not any(self._listed[1].values()))

    def unavailable(self) -> list[str]:
        """Return the providers that did not answer when they were last asked for their models."""
        return [name or "upstream" for name in self._unavailable]

    async def model(self, id_: str) -> JsonObject | None:
        """Return a model by its provider's name and its id there, as in ``name/model``."""
        name, _, rest = id_.partition("/")
        provider = name if name in self._providers else self._find_renamed(name) or name
        models = (model for model in (await self._lists()).get(provider, ()) if model.get("id") == rest)
        model = next(models, None) if provider else None
        return {**model, "id": id_} if model is not None else None

    async def _lists(self) -> dict[str, list[JsonObject]]:
        """Return each provider's models by its name, refreshed after ``_FRESH_S``. The default provider has no name."""
        at, lists = self._listed
        now = asyncio.get_running_loop().time()
        fresh_s = _RETRY_S if self._unavailable else _FRESH_S
        if now - at > fresh_s or not any(lists.values()):
            upstreams = {"": self._default} if self._default else {}
            upstreams |= {name: one.upstream for name, one in self._providers.items() if not one.models}
            answers = await asyncio.gather(*map(self._list_models, upstreams.values()))
            answered = dict(zip(upstreams, answers, strict=True))
            self._unavailable = tuple(name for name, models in answered.items() if models is None)
            lists = {name: models if models is not None else lists.get(name, []) for name, models in answered.items()}
            lists |= {
                by: [_model(name, by) for name in one.models] for by, one in self._providers.items() if one.models
            }
            self._listed = (now, lists)
        return lists

    async def _list_models(self, upstream: Upstream) -> list[JsonObject] | None:
        """Return the models of a provider; None if it does not answer."""
        try:
            return await upstream.models()
        except ChatFailed as failed:
            problem = self._mask(failed.fault.message)
            _log.warning("the model provider %s does not list its models: %s", upstream.name, problem)
            return None

    def contacts(self) -> dict[str, Contact]:
        """Return the last contact with each provider; the default one has no name."""
        named = {name: one.upstream for name, one in self._providers.items()}
        all_ = {**({"": self._default} if self._default else {}), **named}
        return {name: one.contact for name, one in all_.items() if isinstance(one, WatchedUpstream)}

    async def close(self) -> None:
        if self._learning is not None:
            self._learning.cancel()
        default = [self._default] if self._default else []
        for upstream in (self._tour, *default, *(one.upstream for one in self._providers.values())):
            await upstream.close()


def _model(name: str, by: str) -> JsonObject:
    return {"id": name, "object": "model", "created": 0, "owned_by": by}


_OF_REQUEST = (
    HTTPStatus.BAD_REQUEST, HTTPStatus.CONFLICT, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNPROCESSABLE_ENTITY,
)  # fmt: skip
_COMMON = ("role", "content", "refusal", "name", "tool_calls", "function_call")
_COMMON_OF_CALLS = ("id", "type", "function", "custom")


class Fallback:
    """An Upstream for one turn. ``candidates`` are providers, each with its own name of the model."""

    def __init__(self, candidates: Sequence[tuple[Upstream, str]]) -> None:
        self._candidates = candidates
        self._upstream, self._model = candidates[0]
        self._writers: list[tuple[Upstream, str]] = []  # those that have answered in this turn

    @property
    def name(self) -> str:
        return self._upstream.name

    @property
    def protocol(self) -> ProviderProtocol:
        return self._upstream.protocol

    @property
    def max_rounds(self) -> int | None:
        return self._upstream.max_rounds

    @property
    def takes_native(self) -> bool:
        return any(upstream.takes_native for upstream, _ in self._candidates)

    def window(self, model: str) -> int | None:  # noqa: ARG002 it is the first one's name
        return self._upstream.window(self._model)

    async def ask(self, body: bytes, *, stream: bool, retry: bool, on_wait: WaitListener = ignore_wait) -> Answer:
        """Ask the provider that keeps the turn, and the others if it does not answer.

        ``body`` names the first one's model.
        """
        current = (self._upstream, self._model)
        order = [current, *(one for one in self._candidates if one != current)] if retry else [current]
        first: ChatFailed | None = None
        for number, (upstream, model) in enumerate(order, 1):
            is_other = any(writer != (upstream, model) for writer in self._writers)
            named = self._write_for(upstream, model, body, is_other=is_other)
            try:
                answer = await upstream.ask(named, stream=stream, retry=retry, on_wait=on_wait)
            except ChatFailed as failed:
                if not may_fall_back(failed.fault):
                    raise
                _log.warning("%s does not answer for %s: %s", upstream.name, model, failed.fault.message[:500])
                first = first or failed
                for following, _ in order[number : number + 1]:
                    on_wait(ProviderWait(provider=upstream.name, fault=failed.fault, next_provider=following.name))
            else:
                self._upstream, self._model = upstream, model
                self._writers.append((upstream, model))
                return answer
        raise first or RuntimeError("there is at least one")

    async def forward(self, request: Outgoing) -> ForwardedAnswer:
        return await self._upstream.forward(request)

    async def models(self) -> list[JsonObject]:
        return await self._upstream.models()

    def note_failure(self, failed: ChatFailed) -> None:
        self._upstream.note_failure(failed)

    async def close(self) -> None:
        """Do nothing: the providers belong to all turns."""

    def _write_for(self, upstream: Upstream, model: str, body: bytes, *, is_other: bool = False) -> bytes:
        """Return the request for a model; ``is_other``: another one has written replies in it."""
        has_native = self.takes_native and not upstream.takes_native
        if model == self._candidates[0][1] and not is_other and not has_native:
            return body
        request = drop_native(json_value(body)) if has_native else json_value(body)
        messages = request.get("messages")
        if is_other and isinstance(messages, list):
            request["messages"] = [_select_common(message) for message in messages]
        return json_bytes({**request, "model": model})


def _select_common(message: Json) -> Json:
    """Return a message with what every model takes: signed reasoning of another one is refused."""
    if not isinstance(message, dict) or message.get("role") != "assistant":
        return message
    made = {key: value for key, value in message.items() if key in _COMMON}
    if isinstance(calls := message.get("tool_calls"), list):
        made["tool_calls"] = [
            {key: value for key, value in call.items() if key in _COMMON_OF_CALLS} if isinstance(call, dict) else call
            for call in calls
        ]
    return made


def may_fall_back(fault: ChatFault) -> bool:
    """Return whether another provider may succeed: not when the request itself is wrong."""
    return fault.status not in _OF_REQUEST
