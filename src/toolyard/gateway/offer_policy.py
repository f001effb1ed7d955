"""The policy of offering tools to chats. The request sets the mode, else its model alias, its key or the settings.

Whether there are so many tools that a model searches them is decided at the first request of a conversation, and stays.
Nothing is offered where it would only disturb: see ``_should_offer_nothing``. A request with tools of its own gets
ours only if it, its alias or its key asks for them. A model that refuses native tools is asked again at once with the
text listing, and gets that at once for a while (``ToolRefusals``).
"""

import re
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Final

from toolyard.gateway.chat_ports import PromptSources
from toolyard.gateway.chat_prompt import FilledPrompt, add_nonce, add_system_text, detect_language, lists_tools
from toolyard.gateway.chat_request import ModelRequest, identify_conversation, wants_json
from toolyard.gateway.faults import ChatFault
from toolyard.gateway.offer import Offer, Offers, Search, Selection
from toolyard.gateway.providers.upstream import Upstream
from toolyard.gateway.providers.upstreams import TOUR
from toolyard.gateway.tool_calls.jobs import Bounds
from toolyard.protocol.json import Json, JsonObject
from toolyard.settings import OfferMode


@dataclass(frozen=True, slots=True)
class OfferChoice:
    """The offer mode to use, and whether it was chosen for this request."""

    mode: OfferMode
    is_explicit: bool = False  # applies to a request with tools of its own too, or that lists ours

    def forbids_tools(self, messages: list[Json], *, has_installed_prompts: bool) -> bool:
        """Return whether tools are off: nothing runs, and the conversation is passed on as it was sent.

        A setting alone does not turn off the tools that a prompt lists by placeholders, or that the prompts of an
        installation may list.
        """
        may_list = has_installed_prompts or lists_tools(messages)
        return self.mode is OfferMode.NONE and (self.is_explicit or not may_list)


ALIASES: Final = {
    "+tools": OfferChoice(OfferMode.AUTO, is_explicit=True),
    "+plain": OfferChoice(OfferMode.NONE, is_explicit=True),
}


def split_alias(model: str) -> tuple[str, OfferChoice | None]:
    """Return the name of a model without its alias, and the choice of its alias."""
    for suffix, choice in ALIASES.items():
        if model.endswith(suffix):
            return model.removesuffix(suffix), choice
    return model, None


def choose_offer(
    option: OfferMode | None, alias: OfferChoice | None, key: OfferMode | None, default: OfferMode
) -> OfferChoice:
    """Return the first choice that was made; ``default`` is the setting's."""
    if option is not None:
        return OfferChoice(option, is_explicit=option is not OfferMode.AUTO)
    if alias is not None:
        return alias
    return OfferChoice(key, is_explicit=key is not OfferMode.AUTO) if key is not None else OfferChoice(default)


@dataclass(frozen=True, slots=True)
class TextForm:
    """A request with its tools as text, for a model that refuses native ones; ``remember`` notes that it does."""

    make: Callable[[], ModelRequest]
    remember: Callable[[], None]


class OfferPolicy:
    """Adds offers to chat requests. ``default_mode`` and ``lists_aliases`` are settings, and may change meanwhile."""

    def __init__(
        self,
        texts: PromptSources,
        now: Callable[[], float],
        default_mode: OfferMode,
        *,
        lists_aliases: bool,
        search: Search,
    ) -> None:
        """``now`` is a monotonic clock."""
        self._offers = Offers(texts.specs, texts.version, texts.mask)
        self._refusals = ToolRefusals(now)
        self.default_mode, self.lists_aliases, self.search = default_mode, lists_aliases, search
        self._searching: OrderedDict[bytes, tuple[str, ...] | None] = OrderedDict()  # by conversation

    def list_models(self, models: list[JsonObject]) -> list[JsonObject]:
        """Return the models, and each once more under its aliases if these are listed."""
        real = [model for model in models if self.lists_aliases and model.get("id") != TOUR]
        return [*models, *({**model, "id": f"{model['id']}{suffix}"} for model in real for suffix in ALIASES)]

    def add_offer(
        self,
        ask: ModelRequest,
        prompt: FilledPrompt,
        choice: OfferChoice,
        bounds: Bounds,
        upstream: Upstream,
        model: str,
    ) -> tuple[ModelRequest, TextForm | None]:
        """Return the request with its offer, and the form to retry with if the model refuses that."""
        if choice.mode is OfferMode.NONE or prompt.lists_tools or wants_json(ask.body):
            return ask, None
        if ask.owners.brings_tools and not choice.is_explicit:
            return ask, None
        selection = self._choose_search(ask, Selection.from_bounds(bounds, ask.owners.client), upstream.window(model))
        refused = choice.mode is OfferMode.AUTO and self._refusals.has(upstream.name, model)
        if refused or choice.mode is OfferMode.TEXT or "functions" in ask.body:
            return self._add_listing(ask, selection), None
        offered = add_tools(ask, self._offers.native(selection), prompt.messages)
        if choice.mode is not OfferMode.AUTO:
            return offered, None
        return offered, TextForm(
            make=lambda: self._add_listing(ask, selection),
            remember=lambda: self._refusals.add(upstream.name, model),
        )

    def _choose_search(self, ask: ModelRequest, selection: Selection, window: int | None) -> Selection:
        """Return the selection with what is always offered, if the others are to be searched."""
        key = identify_conversation(ask.caller, ask.messages)
        if key not in self._searching:
            searches = self._offers.needs_search(selection, self.search, window)
            self._searching[key] = self.search.always if searches else None
            if len(self._searching) > _MAX_CONVERSATIONS:
                self._searching.popitem(last=False)
        self._searching.move_to_end(key)
        return replace(selection, always=self._searching[key])

    def _add_listing(self, ask: ModelRequest, selection: Selection) -> ModelRequest:
        selection = replace(selection, client_names=frozenset())  # a listing shadows nothing
        return add_listing(ask, self._offers.text(selection, detect_language(ask.messages)))


def add_tools(ask: ModelRequest, offer: Offer, messages: list[Json]) -> ModelRequest:
    """Return the request with native tools, after those of the client.

    ``messages``: the same as the request has, with the calls of earlier turns as native ones.
    """
    if offer.mode is not OfferMode.NATIVE:
        return replace(ask, offer=offer)
    own = ask.body.get("tools")
    tools = [*own, *offer.tools] if isinstance(own, list) and own else offer.tools
    body: JsonObject = {**ask.body, "messages": messages, "tools": tools}
    raw = ask.raw.rstrip() if messages is ask.messages and "tools" not in ask.body else b""
    return replace(ask, body=body, raw=raw, offer=offer, owners=replace(ask.owners, is_offered=True))


def add_listing(ask: ModelRequest, offer: Offer) -> ModelRequest:
    """Return the request with the text listing at the end of its first system message, or as one of its own."""
    if offer.mode is not OfferMode.TEXT:
        return replace(ask, offer=offer)
    text = offer.listing if ask.nonce is None else add_nonce(offer.listing, ask.nonce)
    body: JsonObject = {**ask.body, "messages": add_system_text(ask.messages, text)}
    return replace(ask, body=body, raw=b"", offer=offer)


def declines_tools(body: JsonObject) -> bool:
    """Return whether a request wants no calls, or several replies at once, of which none could be acted on."""
    return "none" in (body.get("tool_choice"), body.get("function_call")) or body.get("n") not in (None, 1)


_MAX_CONVERSATIONS: Final = 10_000
_MAX_KEPT: Final = 256  # models
_KEPT_S: Final = 3600.0  # a provider may be started anew, with tools
_CODES: Final = frozenset(
    f"upstream_{status.value}"
    for status in (
        HTTPStatus.BAD_REQUEST,
        HTTPStatus.NOT_FOUND,  # OpenRouter: no endpoint of the model takes them
        HTTPStatus.METHOD_NOT_ALLOWED,  # DeepInfra
        HTTPStatus.UNPROCESSABLE_ENTITY,
        HTTPStatus.INTERNAL_SERVER_ERROR,  # llama.cpp without --jinja
        HTTPStatus.NOT_IMPLEMENTED,
    )
)
_ABOUT_TOOLS: Final = re.compile(r"\btools?\b|\bfunctions?\b|tool[_ -](?:use|call|choice)|function[_ -]call", re.I)


_REFUSES: Final = re.compile(
    r"\bnot?\b|n't|\bun(?:support|known|recogni|expected|able)|\bextra\b|\binvalid\b|--\w|\bdisabled\b|\bwithout\b|不",
    re.I,
)
_ABOUT_REASONING: Final = re.compile(r"reasoning|thinking|thought", re.I)


def is_tool_refusal(fault: ChatFault) -> bool:
    """Return whether a provider says that its model takes no tools."""
    words = fault.words
    if fault.code not in _CODES or fault.is_overflow or _ABOUT_REASONING.search(words):
        return False
    return bool(_ABOUT_TOOLS.search(words) and _REFUSES.search(words))


class ToolRefusals:
    """The models that have refused native tools, by provider; a refusal is forgotten after a while."""

    def __init__(self, now: Callable[[], float]) -> None:
        """``now`` is a monotonic clock."""
        self._now = now
        self._refused: OrderedDict[tuple[str, str], float] = OrderedDict()

    def add(self, provider: str, model: str) -> None:
        self._refused[provider, model] = self._now()
        self._refused.move_to_end((provider, model))
        if len(self._refused) > _MAX_KEPT:
            self._refused.popitem(last=False)

    def has(self, provider: str, model: str) -> bool:
        at = self._refused.get((provider, model))
        return at is not None and self._now() - at < _KEPT_S
