"""The settings: the name, type, meaning and default of each, and how it is written."""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from toolyard.message import Message
from toolyard.protocol.access import ConfinementRule, Mode
from toolyard.protocol.result_limits import Direction
from toolyard.provider_settings import (
    Provider,
    ProviderOptions,
    ProviderProtocol,
    parse_fallbacks,
    parse_options,
    parse_protocol,
    parse_providers,
    parse_url,
)

REPLACEABLE = ("FileOperator",)  # built-in tools whose name a plugin of the owner may have
MIN_CLUSTER_KEY = 32  # characters
T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)


class Group(StrEnum):
    """The groups of the settings, in the order in which they are shown."""

    UPSTREAM = "upstream"
    APPROVALS = "approvals"
    CHAT = "chat"
    PLUGINS = "plugins"
    FILES = "files"
    HISTORY = "history"
    SERVER = "server"


GROUP_TITLES: Mapping[Group, Message] = {
    Group.UPSTREAM: Message("Model provider"),
    Group.APPROVALS: Message("Approvals"),
    Group.CHAT: Message("Chat"),
    Group.PLUGINS: Message("Plugins"),
    Group.FILES: Message("Files"),
    Group.HISTORY: Message("History"),
    Group.SERVER: Message("Server"),
}


class Setting(NamedTuple):
    """The description of a setting: everything but its value. Its Chinese is in the catalogue of messages."""

    name: str
    group: Group
    title: Message  # its name for people
    about: Message
    default: Any
    parse: Callable[[object], Any]
    environment: tuple[str, ...]  # the first one that is set counts; none: only the file can set it
    secret: bool
    choices: tuple[str, ...]


def _parse_texts(value: object, separator: str, what: str) -> list[str]:
    names = [name.strip() for name in value.split(separator)] if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
        raise ValueError(Message("expected a list of {what}", what=what))
    return names


def _parse_encodings(value: object) -> tuple[str, ...]:
    names = _parse_texts(value, ",", Message('encodings, such as ["gb18030", "shift_jis"]'))
    for name in names:
        try:
            "".encode(name)
        except (LookupError, ValueError) as error:
            raise ValueError(
                Message("'{name}' is not a text encoding: use names such as gb18030 or shift_jis", name=name)
            ) from error
    return tuple(names)


def _parse_text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(Message("expected a text"))
    return value


def _parse_folders(value: object) -> tuple[Path, ...]:
    names = _parse_texts(value, os.pathsep, Message('folders, such as ["/srv/plugins"]'))
    folders = tuple(Path(name).expanduser() for name in names)
    relative = next((folder for folder in folders if not folder.is_absolute()), None)
    if relative is not None:
        raise ValueError(Message("'{relative}' is not an absolute path", relative=relative))
    return folders


def _parse_program(value: object) -> str:
    place = Path(_parse_text(value)).expanduser()
    if not place.is_absolute() or not os.access(place, os.X_OK):
        raise ValueError(Message("'{value}' is not the absolute path of a program", value=value))
    return str(place)


def _parse_file(value: object) -> Path:
    file = Path(_parse_text(value)).expanduser()
    if not file.is_absolute():
        raise ValueError(Message("'{relative}' is not an absolute path", relative=file))
    return file


def _parse_switch(value: object) -> bool:
    parsed = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}.get(str(value).lower())
    if parsed is None:
        raise ValueError(Message("expected true or false"))
    return parsed


def _number_parser(least: int, most: int) -> Callable[[object], int]:
    def parse(value: object) -> int:
        digits = str(value)
        if isinstance(value, bool) or not digits.isdecimal() or not least <= int(digits) <= most:
            raise ValueError(Message("expected a whole number from {least} to {most}", least=least, most=most))
        return int(digits)

    return parse


def _parse_tool_names(value: object) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_parse_texts(value, ",", Message('tools, such as ["Read", "Grep"]'))))


def _parse_zone(value: object) -> str:
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(_parse_text(value)).key
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(
            Message("'{value}' is not a time zone: use a name such as Asia/Shanghai", value=value)
        ) from error


def _parse_hosts(value: object) -> tuple[str, ...]:
    names = _parse_texts(value, ",", Message('hosts, such as ["yard.example.org:6005"]'))
    wrong = next(
        (name for name in names if not re.fullmatch(r"[A-Za-z0-9._-]+(:\d{1,5})?|\[[0-9A-Fa-f:]+\](:\d{1,5})?", name)),
        None,
    )
    if wrong is not None:
        raise ValueError(
            Message("'{wrong}' is not a host: write it as browsers do, such as yard.example.org:6005", wrong=wrong)
        )
    return tuple(names)


def _parse_origins(value: object) -> tuple[str, ...]:
    names = _parse_texts(value, ",", Message('origins, such as ["https://chat.example.org"]'))
    wrong = next((name for name in names if not re.fullmatch(r"https?://[^/\s*]+", name)), None)
    if wrong is not None:
        raise ValueError(
            Message(
                "'{wrong}' is not an origin: write it as browsers do, such as https://chat.example.org", wrong=wrong
            )
        )
    return tuple(names)


def _parse_networks(value: object) -> tuple[str, ...]:
    from ipaddress import ip_network

    names = _parse_texts(value, ",", Message('addresses or networks, such as ["10.0.0.0/8"]'))
    for name in names:
        try:
            ip_network(name, strict=False)
        except ValueError as error:
            raise ValueError(
                Message("'{name}' is not an address or a network: write it like 10.0.0.0/8", name=name)
            ) from error
    return tuple(names)


def _parse_public_url(value: object) -> str:
    """Parse the address of a server: an origin, and the path below which a proxy serves it."""
    match = re.fullmatch(
        r"(https?)://([a-z0-9.-]+|\[[0-9a-f:]+\])(?::([0-9]{1,5}))?((?:/[a-z0-9._~-]+)*)/?",
        _parse_text(value).strip(),
        re.IGNORECASE,
    )
    if match is None or not 0 < int(match[3] or 1) <= 65535 or not {".", ".."}.isdisjoint(match[4].split("/")):
        raise ValueError(
            Message(
                "'{value}' is not the address of a server: write it like https://yard.example.org or "
                "https://example.org/yard",
                value=value,
            )
        )
    from toolyard.server_paths import OWN_PATHS  # reads a file, and only this setting needs it

    path = match[4]
    if path and path.split("/")[1] in OWN_PATHS:
        raise ValueError(
            Message(
                "'{value}' cannot be told from a page of the server itself: use another path, such as /yard",
                value=value,
            )
        )
    scheme, host = match[1].lower(), match[2].lower()
    port = "" if match[3] in (None, {"http": "80", "https": "443"}[scheme]) else f":{int(match[3])}"
    return f"{scheme}://{host}{port}{path}"


class OfferMode(StrEnum):
    """The ways in which Toolyard's tools are offered to a model."""

    AUTO = "auto"  # native, or text for a model that refuses native tools; nothing to a request with tools of its own
    NATIVE = "native"  # as ``tools`` of the request
    TEXT = "text"  # as a listing in its system message
    NONE = "none"


_SHOWS = ("summary", "raw", "hidden", "events")


def _parse_show(value: object) -> str:
    if value not in _SHOWS:
        raise ValueError(Message('expected "summary", "raw", "hidden" or "events"'))
    return str(value)


def _parse_database(value: object) -> str:
    if not isinstance(value, str) or not value.startswith(("postgresql://", "postgres://")):
        raise ValueError(
            Message("expected the address of a PostgreSQL database, such as postgresql://user@host:5432/name")
        )
    return value


def _parse_cluster_key(value: object) -> str:
    if not isinstance(value, str) or len(value) < MIN_CLUSTER_KEY:
        raise ValueError(
            Message(
                "expected a random text of at least {least} characters, the same on every host", least=MIN_CLUSTER_KEY
            )
        )
    return value


def _parse_shared_keys(value: object) -> Mapping[str, tuple[str, ...]]:
    if not isinstance(value, dict):
        raise ValueError(Message('expected a table of plugins, such as {{ TarotDivination = ["VarHttpUrl"] }}'))
    what = Message('variables, such as ["VarHttpUrl"]')
    return {plugin: tuple(_parse_texts(keys, ",", what)) for plugin, keys in value.items()}


def _parse_built_in(value: object) -> Mapping[str, bool]:
    if not isinstance(value, dict) or not value.keys() <= set(REPLACEABLE):
        raise ValueError(
            Message(
                "expected a table of built-in tools that a plugin may replace, such as {{ {name} = false }}",
                name=REPLACEABLE[0],
            )
        )
    return {
        name: _parse_switch(one[0] if isinstance(one, list) and len(one) == 1 else one) for name, one in value.items()
    }


def _choice_parser(kind: type[E], expected: str = "") -> Callable[[object], E]:
    expected = expected or Message("expected one of {names}", names=", ".join(kind))

    def parse(value: object) -> E:
        if value not in list(kind):
            raise ValueError(expected)
        return kind(str(value))

    return parse


def _setting(
    group: Group,
    title: Message,
    about: Message,
    default: T,
    parse: Callable[[object], T],
    *,
    environment: tuple[str, ...] | None = None,
    secret: bool = False,
    choices: tuple[str, ...] = (),
) -> T:
    """Build a field of Settings: ``Setting`` says what the values mean.

    The environment variable is TOOLYARD_ and its name, unless it is given. A default that is an enum has its choices.
    """
    choices = tuple(type(default)) if isinstance(default, StrEnum) else choices
    described = {"group": group, "title": title, "about": about, "default": default, "parse": parse}
    described |= {"environment": environment, "secret": secret, "choices": choices}
    return field(default_factory=lambda: default, metadata=described)


def _describe(name: str, *, environment: tuple[str, ...] | None, **described: Any) -> Setting:
    variables = (f"TOOLYARD_{name.upper()}",) if environment is None else environment
    return Setting(name, environment=variables, **described)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The effective settings."""

    allowed_hosts: tuple[str, ...] = _setting(
        Group.SERVER,
        Message("Allowed host names"),
        Message("Further names, with their port, under which the server is reached."),
        (),
        _parse_hosts,
    )
    allowed_origins: tuple[str, ...] = _setting(
        Group.SERVER,
        Message("Allowed origins (CORS)"),
        Message("Origins of other servers whose pages may use this one."),
        (),
        _parse_origins,
    )
    always_offered: tuple[str, ...] = _setting(
        Group.CHAT,
        Message("Always offered"),
        Message("The tools that a chat is offered beside a search for the others."),
        ("LS", "Glob", "Grep", "Read", "Write", "Edit", "MultiEdit", "NotebookEdit", "ApplyPatch"),
        _parse_tool_names,
    )
    approval_mode: Mode = _setting(
        Group.APPROVALS,
        Message("Approval mode"),
        Message("What a chat, an MCP client or a schedule may do without asking: ask, auto, read-only or deny."),
        Mode.ASK,
        _choice_parser(Mode),
    )
    bubblewrap: bool = _setting(
        Group.PLUGINS,
        Message("Processes of their own (bubblewrap)"),
        Message("Hide other processes from plugins and MCP servers, with bubblewrap. They then start more slowly."),
        False,
        _parse_switch,
    )
    built_in: Mapping[str, bool] = _setting(
        Group.PLUGINS,
        Message("Built-in tools that are off"),
        Message("Built-in tools that are off, so that a plugin of the same name is used: FileOperator."),
        {},
        _parse_built_in,
        environment=(),
    )
    chat_show: str = _setting(
        Group.CHAT,
        Message("Tool calls in replies"),
        Message(
            "What a client of the chat sees of tool work if it does not say so itself: summary, raw, hidden or events."
        ),
        "summary",
        _parse_show,
        choices=_SHOWS,
    )
    chat_unfollowed_minutes: int = _setting(
        Group.CHAT,
        Message("Unattended chat timeout, minutes"),
        Message("After how many minutes a named chat ends that nobody follows any more."),
        30,
        _number_parser(1, 10_080),
    )
    cluster_key: str | None = _setting(
        Group.SERVER,
        Message("Cluster key"),
        Message(
            "The key that hosts on one database share: it signs the calls between them and encrypts the secrets there."
        ),
        None,
        _parse_cluster_key,
        secret=True,
    )
    confinement: ConfinementRule = _setting(
        Group.PLUGINS,
        Message("Confinement of plugins"),
        Message(
            "How far plugins and MCP servers must be confined: available (as far as this machine can), files or "
            "required."
        ),
        ConfinementRule.AVAILABLE,
        _choice_parser(ConfinementRule),
    )
    database: str | None = _setting(
        Group.SERVER,
        Message("Shared database"),
        Message(
            "The PostgreSQL database that several hosts share, such as postgresql://user@host/name; none: a file "
            "at home."
        ),
        None,
        _parse_database,
        secret=True,
    )
    default_model: str | None = _setting(
        Group.UPSTREAM,
        Message("Default model"),
        Message("The model of new chats, and of requests that name none; none: the first that a provider lists."),
        None,
        _parse_text,
    )
    fallback_encodings: tuple[str, ...] = _setting(
        Group.FILES,
        Message("Fallback encodings"),
        Message("Encodings tried, in this order, for a file that is not valid UTF-8, before a statistical guess."),
        ("gb18030",),
        _parse_encodings,
    )
    fallbacks: Mapping[str, tuple[str, ...]] = _setting(
        Group.UPSTREAM,
        Message("Fallback models"),
        Message("Models that stand in, in this order, for one whose provider does not answer."),
        {},
        parse_fallbacks,
        environment=(),
    )
    history_days: int = _setting(
        Group.HISTORY,
        Message("Retention, days"),
        Message("How many days calls, results, tasks, schedules and approvals that have ended are kept."),
        30,
        _number_parser(1, 3650),
    )
    history_mib: int = _setting(
        Group.HISTORY,
        Message("Maximum size, MiB"),
        Message("How many MiB the state may take before the oldest of them go earlier."),
        2048,
        _number_parser(64, 1_048_576),
    )
    model_aliases: bool = _setting(
        Group.CHAT,
        Message("List models with and without tools"),
        Message("List each model also as NAME+tools and NAME+plain, to use it with or without tools."),
        False,
        _parse_switch,
    )
    node_review: bool = _setting(
        Group.SERVER,
        Message("Review of nodes"),
        Message("Let the tools of a node run only after you have allowed them."),
        False,
        _parse_switch,
    )
    offer: OfferMode = _setting(
        Group.CHAT,
        Message("Tools in chats"),
        Message("How a chat is offered the tools if it does not say so itself: auto, native, text or none."),
        OfferMode.AUTO,
        _choice_parser(OfferMode),
    )
    plugin_cpu_minutes: int = _setting(
        Group.PLUGINS,
        Message("Processor time of a plugin, minutes"),
        Message(
            "How many minutes of processor time a process of a plugin may take, unless its manifest says otherwise."
        ),
        360,
        _number_parser(1, 16_000),
    )
    plugin_file_mib: int = _setting(
        Group.PLUGINS,
        Message("File written by a plugin, MiB"),
        Message(
            "How large a file may be that a plugin or an MCP server writes, in MiB, unless the manifest says otherwise."
        ),
        8192,
        _number_parser(1, 2**22),
    )
    plugin_memory_mib: int = _setting(
        Group.PLUGINS,
        Message("Memory of a plugin, MiB"),
        Message(
            "How much memory a process of a plugin or an MCP server may take, in MiB, unless the manifest says "
            "otherwise."
        ),
        4096,
        _number_parser(64, 2**22),
    )
    plugin_python: str | None = _setting(
        Group.PLUGINS,
        Message("Python for plugins"),
        Message("The Python that runs plugins whose command says python and that have no .venv of their own."),
        None,
        _parse_program,
    )
    plugins_at_once: int = _setting(
        Group.PLUGINS,
        Message("Concurrent plugin calls"),
        Message("How many calls of plugins run at the same time; further ones wait their turn."),
        8,
        _number_parser(1, 1000),
    )
    port: int = _setting(
        Group.SERVER,
        Message("Port"),
        Message("The port of the server."),
        6005,
        _number_parser(1, 65535),
        environment=("TOOLYARD_PORT", "PORT"),
    )
    public_url: str | None = _setting(
        Group.SERVER,
        Message("Public URL"),
        Message(
            "The address at which people reach this server, such as https://example.org/yard; none: the one it "
            "listens on."
        ),
        None,
        _parse_public_url,
    )
    remember_tool_results: bool = _setting(
        Group.CHAT,
        Message("Remember tool results"),
        Message("Remember tool results between the messages of a chat whose app sends back only the text."),
        True,
        _parse_switch,
    )
    request_nonce: bool = _setting(
        Group.CHAT,
        Message("Require request numbers"),
        Message("Run a tool request in a reply only if it carries the number that the model was given for this reply."),
        False,
        _parse_switch,
    )
    shared_keys: Mapping[str, tuple[str, ...]] = _setting(
        Group.PLUGINS,
        Message("Shared variables"),
        Message("Variables of the host that a plugin may see, by the name of the plugin."),
        {},
        _parse_shared_keys,
        environment=(),
    )
    strict_edits: bool = _setting(
        Group.FILES,
        Message("Strict edits"),
        Message("Refuse to edit a file that has changed since the caller read it, also where the edit would fit."),
        False,
        _parse_switch,
    )
    strict_network: bool = _setting(
        Group.PLUGINS,
        Message("Close undeclared networks"),
        Message("Keep plugins that do not say which hosts they need from using the network."),
        False,
        _parse_switch,
    )
    time_zone: str | None = _setting(
        Group.CHAT,
        Message("Time zone"),
        Message("The time zone of times that name none, such as those of schedules."),
        None,
        _parse_zone,
        environment=("TOOLYARD_TIME_ZONE", "DEFAULT_TIMEZONE"),
    )
    tls_cert: Path | None = _setting(
        Group.SERVER,
        Message("TLS certificate"),
        Message(
            "The certificate of the server, a PEM file with its chain: the server then speaks HTTPS. It needs tls_key."
        ),
        None,
        _parse_file,
    )
    tls_key: Path | None = _setting(
        Group.SERVER,
        Message("TLS key"),
        Message("The private key of tls_cert, a PEM file without a password."),
        None,
        _parse_file,
    )
    tls_self_signed: bool = _setting(
        Group.SERVER,
        Message("Self-signed TLS certificate"),
        Message("Serve HTTPS with a certificate that Toolyard makes itself and keeps in its home."),
        False,
        _parse_switch,
    )
    tool_search: int = _setting(
        Group.CHAT,
        Message("Search beyond, tools"),
        Message("With more tools than this, a chat is offered a few, and a search for the others; 0: never."),
        40,
        _number_parser(0, 10_000),
    )
    truncation_direction: Direction = _setting(
        Group.FILES,
        Message("Truncation"),
        Message("Which end of a result too long for a model is shown: head or tail."),
        Direction.HEAD,
        _choice_parser(Direction, Message('expected "head" or "tail"')),
    )
    trusted_folders: tuple[Path, ...] = _setting(
        Group.PLUGINS,
        Message("Trusted folders"),
        Message("Folders whose plugins run without a review."),
        (),
        _parse_folders,
    )
    trusted_proxies: tuple[str, ...] = _setting(
        Group.SERVER,
        Message("Trusted proxies"),
        Message(
            "Addresses or networks of proxies whose X-Forwarded-For, -Proto, -Host and -Prefix or Forwarded are "
            "believed."
        ),
        (),
        _parse_networks,
    )
    upstream_key: str | None = _setting(
        Group.UPSTREAM,
        Message("API key"),
        Message("The key of the model provider. It is masked where arguments, texts and errors would repeat it."),
        None,
        _parse_text,
        environment=("OPENAI_API_KEY", "API_Key"),
        secret=True,
    )
    upstream_options: ProviderOptions = _setting(
        Group.UPSTREAM,
        Message("Options"),
        Message(
            "How the model provider is asked: further keys, headers, query parameters, a proxy, time limits, "
            "tool rounds."
        ),
        ProviderOptions(),
        parse_options,
        environment=(),
        secret=True,
    )
    upstream_protocol: ProviderProtocol = _setting(
        Group.UPSTREAM,
        Message("Protocol"),
        Message("What the model provider speaks: chat, responses (OpenAI) or anthropic (Messages)."),
        ProviderProtocol.CHAT,
        parse_protocol,
    )
    upstream_url: str | None = _setting(
        Group.UPSTREAM,
        Message("Base URL"),
        Message("The address of the model provider, with or without /v1. Without any, the built-in guide answers."),
        None,
        parse_url,
        environment=("OPENAI_BASE_URL", "API_URL"),
    )
    upstreams: Mapping[str, Provider] = _setting(
        Group.UPSTREAM,
        Message("Additional providers"),
        Message("Further model providers by name, each with its url, and its key, models and options if it has them."),
        {},
        parse_providers,
        environment=(),
        secret=True,
    )
    vcp: Path | None = _setting(
        Group.PLUGINS,
        Message("VCPToolBox folder"),
        Message("The folder of a VCPToolBox installation that is used in place."),
        None,
        _parse_file,
    )
    vcp_channels: bool = _setting(
        Group.SERVER,
        Message("VCPToolBox channels"),
        Message("Open the WebSocket channels of VCPToolBox. Their addresses contain the key."),
        False,
        _parse_switch,
    )
    warm_starts: bool = _setting(
        Group.PLUGINS,
        Message("Warm starts"),
        Message("Start plugins before they are needed, so that their calls begin sooner."),
        True,
        _parse_switch,
    )

    @property
    def default_provider_options(self) -> ProviderOptions:
        """The options of the default provider, with its protocol; chat is what nobody said."""
        protocol = self.upstream_protocol
        return replace(self.upstream_options, protocol=None if protocol is ProviderProtocol.CHAT else protocol)

    def list_differences(self, other: "Settings") -> list[str]:
        """Return the names of the settings that ``other`` has otherwise."""
        return [setting.name for setting in SETTINGS if getattr(self, setting.name) != getattr(other, setting.name)]


SETTINGS = tuple(_describe(one.name, **one.metadata) for one in fields(Settings))
