"""The settings of model providers: their addresses, protocols, keys, headers, limits, and who stands in for whom.

A header whose value is or holds ``{key}`` carries the key of the provider in place of ``Authorization``.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, TypeVar

from toolyard.message import Message

if TYPE_CHECKING:
    from toolyard.protocol.json import Json, JsonObject

T = TypeVar("T")
MAX_KEYS: Final = 100
MAX_ENTRIES: Final = 64  # headers, or query parameters
MAX_FALLBACKS: Final = 10
MAX_FORMER_NAMES: Final = 20
FORMER_NAMES: Final = "former_names"
MAX_SECONDS: Final = 3600
MAX_TOOL_ROUNDS: Final = 100
MAX_WINDOW: Final = 100_000_000  # tokens
MIN_WINDOW: Final = 1024
KEY_MARK: Final = "{key}"
TABLES: Final = ("headers", "query")  # fields that hold several texts by their names
# Patterns are compiled by ``re`` when a provider is read: most commands read none.
_HEADER = r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}"
_HEADER_VALUE = r"[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?"
_URL = r"https?://[^\s/?#@]+(/[^\s?#]*)?"
_PROXY = r"https?://([^\s/?#@]+@)?[^\s/?#@]+/?"
# they belong to the connection or to the body
_NOT_HEADERS = frozenset({
    "accept-encoding", "connection", "content-encoding", "content-length", "content-type", "expect", "host",
    "keep-alive", "te", "trailer", "transfer-encoding", "upgrade",
})  # fmt: skip


class ProviderProtocol(StrEnum):
    """The protocols that model providers speak."""

    CHAT = "chat"  # OpenAI's chat completions
    RESPONSES = "responses"  # OpenAI's Responses
    ANTHROPIC = "anthropic"  # Anthropic's Messages


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderOptions:
    """The options of requests to a model provider, beside its address and its first key."""

    protocol: ProviderProtocol | None = None  # not said: chat
    keys: tuple[str, ...] = field(default=(), repr=False)  # further ones, used in turn
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    query: Mapping[str, str] = field(default_factory=dict, repr=False)
    proxy: str | None = field(default=None, repr=False)  # it may hold a login
    first_byte_seconds: float | None = None
    idle_seconds: float | None = None
    whole_seconds: float | None = None
    tool_rounds: int | None = None
    context_window: int | None = None
    disabled: bool = False

    def __bool__(self) -> bool:
        return self != ProviderOptions()

    @property
    def named_secrets(self) -> tuple[tuple[str, str], ...]:
        """Return the keys and the values of secret headers and query parameters, each with its field."""
        tables = (("headers", self.headers), ("query", self.query))
        held = [
            (table, value)
            for table, entries in tables
            for name, value in entries.items()
            if _is_secret(name, value) and KEY_MARK not in value
        ]
        return (*(("keys", key) for key in self.keys), *held)

    @property
    def secrets(self) -> tuple[str, ...]:
        """Return the texts that nobody may see: the named secrets, and the login of a proxy."""
        held = [value for _, value in self.named_secrets]
        tokens = [value.split()[-1] for value in held if " " in value]  # such as the one after Bearer
        login = self.proxy.partition("://")[2].rpartition("@")[0] if self.proxy else ""
        return (*held, *tokens, *([login, login.partition(":")[2]] if ":" in login else []))

    def to_json(self) -> "JsonObject":
        """Return the fields that are set, with secrets masked."""
        return {one.name: value for one in fields(self) if (value := mask_field(one.name, getattr(self, one.name)))}


@dataclass(frozen=True, slots=True)
class Provider:
    """A model provider with a name of its own."""

    url: str
    key: str | None = field(default=None, repr=False)
    models: tuple[str, ...] = ()  # none: it is asked what it has
    options: ProviderOptions = ProviderOptions()
    former_names: tuple[str, ...] = ()  # under which its models still answer

    @property
    def secrets(self) -> tuple[str, ...]:
        return (*((self.key,) if self.key else ()), *self.options.secrets)

    def to_json(self) -> "JsonObject":
        """Return the fields that are set, with secrets masked."""
        own: JsonObject = {"url": self.url, "key": mask_field("key", self.key), "models": list(self.models)}
        former: JsonObject = {FORMER_NAMES: list(self.former_names)} if self.former_names else {}
        return own | former | self.options.to_json()


def mask_field(name: str, value: Any) -> "Json":
    """Return the field of a provider with secrets masked; None when it is not set."""
    from toolyard.protocol.mask import MASK

    if not value:
        return None
    if name in TABLES:
        return {key: MASK if is_secret_entry(name, key, one) else one for key, one in value.items()}
    if name in OPEN_FIELDS and not (isinstance(value, str) and _is_secret("", value)):
        return list(value) if isinstance(value, tuple) else value
    return MASK


def is_secret_entry(table: str, name: str, value: object) -> bool:
    """Return whether a header or a query parameter is shown without its value; any header may hold a key."""
    return table == "headers" or not isinstance(value, str) or _is_secret(name, value)


def parse_url(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(Message("expected a text"))
    if not re.fullmatch(_URL, value):
        raise ValueError(
            Message(
                "'{value}' is not the address of a model provider: write it like https://api.example.org/v1",
                value=value,
            )
        )
    return value


def parse_providers(value: object) -> Mapping[str, Provider]:
    if not isinstance(value, dict):
        raise ValueError(Message("expected a table of model providers, such as [upstreams.local]"))
    return {name: _parse_provider(name, table) for name, table in value.items()}


def parse_options(value: object) -> ProviderOptions:
    """Parse the options of the provider that has no name."""
    if not isinstance(value, dict):
        raise ValueError(Message("expected a table, such as [upstream_options]"))
    if "protocol" in value:
        raise ValueError(Message("the protocol of the default provider is a setting of its own: upstream_protocol"))
    _require_known(value, _OPTIONS)
    return _parse_options(value)


def parse_fallbacks(value: object) -> Mapping[str, tuple[str, ...]]:
    if not isinstance(value, dict):
        raise ValueError(Message('expected a table of models, such as {{ "gpt-5" = ["far/gpt-5", "local/qwen3:8b"] }}'))
    return {model: _parse_fallback(model, others) for model, others in value.items()}


def _parse_fallback(model: str, others: object) -> tuple[str, ...]:
    if not isinstance(others, list) or not 1 <= len(others) <= MAX_FALLBACKS or not all(map(_is_word, others)):
        raise ValueError(
            Message(
                "'{model}' needs a list of 1 to {limit} models, in the order in which they stand in for it",
                model=model,
                limit=MAX_FALLBACKS,
            )
        )
    if model in others or len(set(others)) < len(others):
        raise ValueError(Message("'{model}' names a model twice: each stands in once", model=model))
    return tuple(others)


def _parse_provider(name: str, table: object) -> Provider:
    if not isinstance(table, dict) or "url" not in table:
        raise ValueError(Message("'{name}' needs url, and may have {fields}", name=name, fields=", ".join(_FIELDS[1:])))
    try:
        _require_known(table, _FIELDS)
        models = _parse_field("models", _parse_models, table.get("models", []))
        key = _parse_field("key", _parse_key, table["key"]) if "key" in table else None
        url = _parse_field("url", parse_url, table["url"])
        former = _parse_field(FORMER_NAMES, _parse_names, table.get(FORMER_NAMES, []))
        return Provider(url, key, models, _parse_options(table), former)
    except ValueError as error:
        raise ValueError(Message("'{name}': {error}", name=name, error=error)) from error


def _parse_field(name: str, parse: Callable[[object], T], value: object) -> T:
    try:
        return parse(value)
    except ValueError as error:
        raise ValueError(Message("{name}: {error}", name=name, error=error)) from error


def _require_known(table: Mapping[str, object], known: tuple[str, ...]) -> None:
    from toolyard.protocol.arguments import find_nearest

    for name in table:
        if name not in known:
            guess = find_nearest(name, list(known))
            hint = (
                Message("did you mean '{guess}'?", guess=guess)
                if guess
                else Message("use {fields}", fields=", ".join(known))
            )
            raise ValueError(Message("unknown field '{name}': {hint}", name=name, hint=hint))


def _parse_options(table: Mapping[str, object]) -> ProviderOptions:
    return ProviderOptions(**{
        name: _parse_field(name, parse, table[name]) for name, parse in _OPTION_PARSERS.items() if name in table
    })  # fmt: skip


def _parse_models(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(map(_is_word, value)):
        raise ValueError(Message('expected a list of models, such as ["qwen3:8b"]'))
    return tuple(value)


def _parse_names(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > MAX_FORMER_NAMES or not all(map(_is_name, value)):
        raise ValueError(
            Message(
                'expected a list of at most {limit} names without slashes, such as ["local"]', limit=MAX_FORMER_NAMES
            )
        )
    return tuple(value)


def _parse_key(value: object) -> str:
    if not isinstance(value, str) or not re.fullmatch(_HEADER_VALUE, value):
        raise ValueError(Message("expected a key as the provider gives it: one line of ASCII characters"))
    return value


def _parse_keys(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not 1 <= len(value) <= MAX_KEYS:
        raise ValueError(Message("expected a list of 1 to {limit} keys", limit=MAX_KEYS))
    return tuple(map(_parse_key, value))


def _parse_headers(value: object) -> Mapping[str, str]:
    headers = _parse_entries(value, '{ "X-Title" = "Toolyard" }')
    for name, text in headers.items():
        if not re.fullmatch(_HEADER, name) or not re.fullmatch(_HEADER_VALUE, text):
            raise ValueError(Message("'{name}' is not a header: a name and one line of ASCII characters", name=name))
        if name.lower() in _NOT_HEADERS:
            raise ValueError(Message("'{name}' belongs to the connection and cannot be set: leave it out", name=name))
    return headers


def _parse_query(value: object) -> Mapping[str, str]:
    return _parse_entries(value, '{ "api-version" = "2024-10-21" }')


def _parse_entries(value: object, example: str) -> Mapping[str, str]:
    if (
        not isinstance(value, dict)
        or len(value) > MAX_ENTRIES
        or not all(name and isinstance(text, str) for name, text in value.items())
    ):
        raise ValueError(
            Message("expected a table of at most {limit} texts, such as {example}", limit=MAX_ENTRIES, example=example)
        )
    return dict(value)


def _parse_proxy(value: object) -> str:
    if not isinstance(value, str) or not re.fullmatch(_PROXY, value):
        raise ValueError(Message("expected the address of an HTTP proxy, such as http://proxy.example.org:3128"))
    return value


def _parse_seconds(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value <= MAX_SECONDS:
        raise ValueError(Message("expected a number of seconds from 1 to {limit}", limit=MAX_SECONDS))
    return value


def _parse_rounds(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_TOOL_ROUNDS:
        raise ValueError(Message("expected a whole number from 1 to {limit}", limit=MAX_TOOL_ROUNDS))
    return value


def _parse_window(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not MIN_WINDOW <= value <= MAX_WINDOW:
        raise ValueError(Message("expected a whole number from {least} to {most}", least=MIN_WINDOW, most=MAX_WINDOW))
    return value


def _parse_disabled(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(Message("expected true or false"))
    return value


def parse_protocol(value: object) -> ProviderProtocol:
    if value not in list(ProviderProtocol):
        raise ValueError(Message("expected one of {names}", names=", ".join(ProviderProtocol)))
    return ProviderProtocol(str(value))


def _is_name(value: object) -> bool:
    return isinstance(value, str) and bool(value) and "/" not in value


def _is_word(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _is_secret(name: str, value: str) -> bool:
    from toolyard.plugins.package.config_env import is_secret

    return is_secret(name, value)


_OPTION_PARSERS: Mapping[str, Callable[[object], Any]] = {
    "protocol": parse_protocol,
    "keys": _parse_keys,
    "headers": _parse_headers,
    "query": _parse_query,
    "proxy": _parse_proxy,
    "first_byte_seconds": _parse_seconds,
    "idle_seconds": _parse_seconds,
    "whole_seconds": _parse_seconds,
    "tool_rounds": _parse_rounds,
    "context_window": _parse_window,
    "disabled": _parse_disabled,
}
_OPTIONS = tuple(name for name in _OPTION_PARSERS if name != "protocol")  # of the provider without a name
_FIELDS = ("url", "key", "models", FORMER_NAMES, *_OPTION_PARSERS)
OPEN_FIELDS: Final = frozenset(_FIELDS) - {"key", "keys"}  # shown, unless what they hold is a secret
