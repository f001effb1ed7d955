"""The settings: the name, type, meaning and default of each, and how it is written."""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from toolyard.message import Message
from toolyard.protocol.access import ConfinementRule
from toolyard.protocol.approval import Mode
from toolyard.protocol.offer import OfferMode
from toolyard.protocol.result_limits import Direction
from toolyard.provider_settings import (
    Provider,
    ProviderOptions,
    parse_fallbacks,
    parse_options,
    parse_providers,
    parse_url,
)

REPLACEABLE = ("FileOperator",)  # built-in tools whose name a plugin of the owner may have
MIN_CLUSTER_KEY = 32  # characters
# Where the server's own paths begin; a public_url with such a path would be ambiguous.
OWN_PATHS = frozenset(
    {
        *("v1", "mcp", "media", "metrics", "healthz", "readyz", "openapi.json", "plugin-callback", "VCPlog", "vcpinfo"),
        *(
            "login",
            "login.css",
            "login.js",
            "logout",
            "ws",
            "ws-ticket",
            "docs",
            "docs.css",
            "console",
            "chat",
            "tools",
        ),
        *("activity", "tasks", "schedule", "approvals", "settings", "status", "welcome", "providers"),
    }
)

T = TypeVar("T")


class Setting(NamedTuple):
    """The description of a setting: everything but its value."""

    name: str
    about: str
    default: Any
    parse: Callable[[object], Any]
    environment: tuple[str, ...] = ()  # the first one that is set counts; none: only the file can set it
    secret: bool = False


def _parse_texts(value: object, separator: str, what: str) -> list[str]:
    names = [name.strip() for name in value.split(separator)] if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
        raise ValueError(Message("settings.expected_list", "expected a list of {what}", what=what))
    return names


def _parse_encodings(value: object) -> tuple[str, ...]:
    names = _parse_texts(value, ",", Message("settings.encodings", 'encodings, such as ["gb18030", "shift_jis"]'))
    for name in names:
        try:
            "".encode(name)
        except (LookupError, ValueError) as error:
            raise ValueError(
                Message(
                    "settings.not_an_encoding",
                    "'{name}' is not a text encoding: use names such as gb18030 or shift_jis",
                    name=name,
                )
            ) from error
    return tuple(names)


def _parse_direction(value: object) -> Direction:
    if value not in list(Direction):
        raise ValueError(Message("settings.expected_head_or_tail", 'expected "head" or "tail"'))
    return Direction(str(value))


def _parse_text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(Message("settings.expected_text", "expected a text"))
    return value


def _parse_folders(value: object) -> tuple[Path, ...]:
    names = _parse_texts(value, os.pathsep, Message("settings.folders", 'folders, such as ["/srv/plugins"]'))
    folders = tuple(Path(name).expanduser() for name in names)
    relative = next((folder for folder in folders if not folder.is_absolute()), None)
    if relative is not None:
        raise ValueError(
            Message("settings.not_absolute_path", "'{relative}' is not an absolute path", relative=relative)
        )
    return folders


def _parse_program(value: object) -> str:
    place = Path(_parse_text(value)).expanduser()
    if not place.is_absolute() or not os.access(place, os.X_OK):
        raise ValueError(
            Message("settings.not_a_program", "'{value}' is not the absolute path of a program", value=value)
        )
    return str(place)


def _parse_file(value: object) -> Path:
    file = Path(_parse_text(value)).expanduser()
    if not file.is_absolute():
        raise ValueError(Message("settings.not_absolute_path", "'{relative}' is not an absolute path", relative=file))
    return file


def _parse_switch(value: object) -> bool:
    parsed = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}.get(str(value).lower())
    if parsed is None:
        raise ValueError(Message("settings.expected_true_false", "expected true or false"))
    return parsed


def _number_parser(least: int, most: int) -> Callable[[object], int]:
    def parse(value: object) -> int:
        digits = str(value)
        if isinstance(value, bool) or not digits.isdecimal() or not least <= int(digits) <= most:
            raise ValueError(
                Message(
                    "settings.expected_whole_number",
                    "expected a whole number from {least} to {most}",
                    least=least,
                    most=most,
                )
            )
        return int(digits)

    return parse


def _parse_zone(value: object) -> str:
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(_parse_text(value)).key
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(
            Message(
                "settings.not_a_time_zone",
                "'{value}' is not a time zone: use a name such as Asia/Shanghai",
                value=value,
            )
        ) from error


def _parse_hosts(value: object) -> tuple[str, ...]:
    names = _parse_texts(value, ",", Message("settings.hosts", 'hosts, such as ["yard.example.org:6005"]'))
    wrong = next(
        (name for name in names if not re.fullmatch(r"[A-Za-z0-9._-]+(:\d{1,5})?|\[[0-9A-Fa-f:]+\](:\d{1,5})?", name)),
        None,
    )
    if wrong is not None:
        raise ValueError(
            Message(
                "settings.not_a_host",
                "'{wrong}' is not a host: write it as browsers do, such as yard.example.org:6005",
                wrong=wrong,
            )
        )
    return tuple(names)


def _parse_origins(value: object) -> tuple[str, ...]:
    names = _parse_texts(value, ",", Message("settings.origins", 'origins, such as ["https://chat.example.org"]'))
    wrong = next((name for name in names if not re.fullmatch(r"https?://[^/\s*]+", name)), None)
    if wrong is not None:
        raise ValueError(
            Message(
                "settings.not_an_origin",
                "'{wrong}' is not an origin: write it as browsers do, such as https://chat.example.org",
                wrong=wrong,
            )
        )
    return tuple(names)


def _parse_networks(value: object) -> tuple[str, ...]:
    from ipaddress import ip_network

    names = _parse_texts(value, ",", Message("settings.networks", 'addresses or networks, such as ["10.0.0.0/8"]'))
    for name in names:
        try:
            ip_network(name, strict=False)
        except ValueError as error:
            raise ValueError(
                Message(
                    "settings.not_a_network",
                    "'{name}' is not an address or a network: write it like 10.0.0.0/8",
                    name=name,
                )
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
                "settings.not_server_address",
                "'{value}' is not the address of a server: write it like https://yard.example.org or "
                "https://example.org/yard",
                value=value,
            )
        )
    path = match[4]
    if path and path.split("/")[1] in OWN_PATHS:
        raise ValueError(
            Message(
                "settings.path_taken",
                "'{value}' cannot be told from a page of the server itself: use another path, such as /yard",
                value=value,
            )
        )
    scheme, host = match[1].lower(), match[2].lower()
    port = "" if match[3] in (None, {"http": "80", "https": "443"}[scheme]) else f":{int(match[3])}"
    return f"{scheme}://{host}{port}{path}"


def _parse_show(value: object) -> str:
    if value not in ("summary", "raw", "hidden", "events"):
        raise ValueError(Message("settings.expected_chat_show", 'expected "summary", "raw", "hidden" or "events"'))
    return str(value)


def _parse_offer(value: object) -> OfferMode:
    if value not in list(OfferMode):
        raise ValueError(Message("settings.expected_one", "expected one of {names}", names=", ".join(OfferMode)))
    return OfferMode(str(value))


def _parse_database(value: object) -> str:
    if not isinstance(value, str) or not value.startswith(("postgresql://", "postgres://")):
        raise ValueError(
            Message(
                "settings.expected_database",
                "expected the address of a PostgreSQL database, such as postgresql://user@host:5432/name",
            )
        )
    return value


def _parse_cluster_key(value: object) -> str:
    if not isinstance(value, str) or len(value) < MIN_CLUSTER_KEY:
        raise ValueError(
            Message(
                "settings.cluster_key_too_short",
                "expected a random text of at least {least} characters, the same on every host",
                least=MIN_CLUSTER_KEY,
            )
        )
    return value


def _parse_confinement(value: object) -> ConfinementRule:
    if value not in list(ConfinementRule):
        raise ValueError(Message("settings.expected_one", "expected one of {names}", names=", ".join(ConfinementRule)))
    return ConfinementRule(str(value))


def _parse_mode(value: object) -> Mode:
    if value not in list(Mode):
        raise ValueError(Message("settings.expected_one", "expected one of {names}", names=", ".join(Mode)))
    return Mode(str(value))


def _parse_shared_keys(value: object) -> Mapping[str, tuple[str, ...]]:
    if not isinstance(value, dict):
        raise ValueError(
            Message(
                "settings.expected_shared_keys",
                'expected a table of plugins, such as {{ TarotDivination = ["VarHttpUrl"] }}',
            )
        )
    what = Message("settings.variables", 'variables, such as ["VarHttpUrl"]')
    return {plugin: tuple(_parse_texts(keys, ",", what)) for plugin, keys in value.items()}


def _parse_built_in(value: object) -> Mapping[str, bool]:
    if not isinstance(value, dict) or not value.keys() <= set(REPLACEABLE):
        raise ValueError(
            Message(
                "settings.expected_built_in",
                "expected a table of built-in tools that a plugin may replace, such as {{ {name} = false }}",
                name=REPLACEABLE[0],
            )
        )
    return {
        name: _parse_switch(one[0] if isinstance(one, list) and len(one) == 1 else one) for name, one in value.items()
    }


def _setting(about: str, default: T, parse: Callable[[object], T], *environment: str, secret: bool = False) -> T:
    """Build a field of Settings. The first environment variable that is set counts; none: only the file sets it."""
    described = {"about": about, "default": default, "parse": parse, "environment": environment, "secret": secret}
    return field(default_factory=lambda: default, metadata=described)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The effective settings."""

    allowed_hosts: tuple[str, ...] = _setting(
        "Further names, with their port, under which the server is reached.",
        (),
        _parse_hosts,
        "TOOLYARD_ALLOWED_HOSTS",
    )
    allowed_origins: tuple[str, ...] = _setting(
        "Origins of other servers whose pages may use this one.",
        (),
        _parse_origins,
        "TOOLYARD_ALLOWED_ORIGINS",
    )
    approval_mode: Mode = _setting(
        "What a chat, an MCP client or a schedule may do without asking: ask, auto, read-only or deny.",
        Mode.ASK,
        _parse_mode,
        "TOOLYARD_APPROVAL_MODE",
    )
    bubblewrap: bool = _setting(
        "Hide other processes from plugins and MCP servers, with bubblewrap. They then start more slowly.",
        False,
        _parse_switch,
        "TOOLYARD_BUBBLEWRAP",
    )
    built_in: Mapping[str, bool] = _setting(
        "Built-in tools that are off, so that a plugin of the same name is used: FileOperator.",
        {},
        _parse_built_in,
    )
    chat_show: str = _setting(
        "What a client of the chat sees of tool work if it does not say so itself: summary, raw, hidden or events.",
        "summary",
        _parse_show,
        "TOOLYARD_CHAT_SHOW",
    )
    chat_unfollowed_minutes: int = _setting(
        "After how many minutes a named chat ends that nobody follows any more.",
        30,
        _number_parser(1, 10_080),
        "TOOLYARD_CHAT_UNFOLLOWED_MINUTES",
    )
    cluster_key: str | None = _setting(
        "The key that hosts on one database share: it signs the calls between them and encrypts the secrets there.",
        None,
        _parse_cluster_key,
        "TOOLYARD_CLUSTER_KEY",
        secret=True,
    )
    confinement: ConfinementRule = _setting(
        "How far plugins and MCP servers must be confined: available (as far as this machine can), files or required.",
        ConfinementRule.AVAILABLE,
        _parse_confinement,
        "TOOLYARD_CONFINEMENT",
    )
    database: str | None = _setting(
        "The PostgreSQL database that several hosts share, such as postgresql://user@host/name; none: a file at home.",
        None,
        _parse_database,
        "TOOLYARD_DATABASE",
        secret=True,  # it may hold a password
    )
    default_model: str | None = _setting(
        "The model of new chats, and of requests that name none; none: the first that a provider lists.",
        None,
        _parse_text,
        "TOOLYARD_DEFAULT_MODEL",
    )
    fallback_encodings: tuple[str, ...] = _setting(
        "Encodings tried, in this order, for a file that is not valid UTF-8, before a statistical guess.",
        ("gb18030",),
        _parse_encodings,
        "TOOLYARD_FALLBACK_ENCODINGS",
    )
    fallbacks: Mapping[str, tuple[str, ...]] = _setting(
        "Models that stand in, in this order, for one whose provider does not answer.",
        {},
        parse_fallbacks,
    )
    history_days: int = _setting(
        "How many days calls, results, tasks, schedules and approvals that have ended are kept.",
        30,
        _number_parser(1, 3650),
        "TOOLYARD_HISTORY_DAYS",
    )
    history_mib: int = _setting(
        "How many MiB the state may take before the oldest of them go earlier.",
        2048,
        _number_parser(64, 1_048_576),
        "TOOLYARD_HISTORY_MIB",
    )
    model_aliases: bool = _setting(
        "List each model also as NAME+tools and NAME+plain, to use it with or without tools.",
        False,
        _parse_switch,
        "TOOLYARD_MODEL_ALIASES",
    )
    offer: OfferMode = _setting(
        "How a chat is offered the tools if it does not say so itself: auto, native, text or none.",
        OfferMode.AUTO,
        _parse_offer,
        "TOOLYARD_OFFER",
    )
    plugin_cpu_minutes: int = _setting(
        "How many minutes of processor time a process of a plugin may take, unless its manifest says otherwise.",
        360,
        _number_parser(1, 16_000),
        "TOOLYARD_PLUGIN_CPU_MINUTES",
    )
    plugin_file_mib: int = _setting(
        "How large a file may be that a plugin or an MCP server writes, in MiB, unless the manifest says otherwise.",
        8192,
        _number_parser(1, 2**22),
        "TOOLYARD_PLUGIN_FILE_MIB",
    )
    plugin_memory_mib: int = _setting(
        "How much memory a process of a plugin or an MCP server may take, in MiB, unless the manifest says otherwise.",
        4096,
        _number_parser(64, 2**22),
        "TOOLYARD_PLUGIN_MEMORY_MIB",
    )
    plugin_python: str | None = _setting(
        "The Python that runs plugins whose command says python and that have no .venv of their own.",
        None,
        _parse_program,
        "TOOLYARD_PLUGIN_PYTHON",
    )
    plugins_at_once: int = _setting(
        "How many calls of plugins run at the same time; further ones wait their turn.",
        8,
        _number_parser(1, 1000),
        "TOOLYARD_PLUGINS_AT_ONCE",
    )
    port: int = _setting(
        "The port of the server.",
        6005,
        _number_parser(1, 65535),
        "TOOLYARD_PORT",
        "PORT",
    )
    public_url: str | None = _setting(
        "The address at which people reach this server, such as https://example.org/yard; none: the one it listens on.",
        None,
        _parse_public_url,
        "TOOLYARD_PUBLIC_URL",
    )
    remember_tool_results: bool = _setting(
        "Remember tool results between the messages of a chat whose app sends back only the text.",
        True,
        _parse_switch,
        "TOOLYARD_REMEMBER_TOOL_RESULTS",
    )
    request_nonce: bool = _setting(
        "Run a tool request in a reply only if it carries the number that the model was given for this reply.",
        False,
        _parse_switch,
        "TOOLYARD_REQUEST_NONCE",
    )
    shared_keys: Mapping[str, tuple[str, ...]] = _setting(
        "Variables of the host that a plugin may see, by the name of the plugin.",
        {},
        _parse_shared_keys,
    )
    strict_edits: bool = _setting(
        "Refuse to edit a file that has changed since the caller read it, also where the edit would fit.",
        False,
        _parse_switch,
        "TOOLYARD_STRICT_EDITS",
    )
    strict_network: bool = _setting(
        "Keep plugins that do not say which hosts they need from using the network.",
        False,
        _parse_switch,
        "TOOLYARD_STRICT_NETWORK",
    )
    time_zone: str | None = _setting(
        "The time zone of times that name none, such as those of schedules.",
        None,
        _parse_zone,
        "TOOLYARD_TIME_ZONE",
        "DEFAULT_TIMEZONE",
    )
    tls_cert: Path | None = _setting(
        "The certificate of the server, a PEM file with its chain: the server then speaks HTTPS. It needs tls_key.",
        None,
        _parse_file,
        "TOOLYARD_TLS_CERT",
    )
    tls_key: Path | None = _setting(
        "The private key of tls_cert, a PEM file without a password.",
        None,
        _parse_file,
        "TOOLYARD_TLS_KEY",
    )
    tls_self_signed: bool = _setting(
        "Serve HTTPS with a certificate that Toolyard makes itself and keeps in its home.",
        False,
        _parse_switch,
        "TOOLYARD_TLS_SELF_SIGNED",
    )
    truncation_direction: Direction = _setting(
        "Which end of a result too long for a model is shown: head or tail.",
        Direction.HEAD,
        _parse_direction,
        "TOOLYARD_TRUNCATION_DIRECTION",
    )
    trusted_folders: tuple[Path, ...] = _setting(
        "Folders whose plugins run without a review.",
        (),
        _parse_folders,
        "TOOLYARD_TRUSTED_FOLDERS",
    )
    trusted_proxies: tuple[str, ...] = _setting(
        "Addresses or networks of proxies whose X-Forwarded-For, -Proto, -Host and -Prefix or Forwarded are believed.",
        (),
        _parse_networks,
        "TOOLYARD_TRUSTED_PROXIES",
    )
    upstream_key: str | None = _setting(
        "The key of the model provider. It is masked where arguments, texts and errors would repeat it.",
        None,
        _parse_text,
        "OPENAI_API_KEY",
        "API_Key",
        secret=True,
    )
    upstream_options: ProviderOptions = _setting(
        "How the model provider is asked: further keys, headers, query parameters, a proxy, time limits, tool rounds.",
        ProviderOptions(),
        parse_options,
        secret=True,
    )
    upstream_url: str | None = _setting(
        "The address of the model provider, with or without /v1. Without any, the built-in guide answers.",
        None,
        parse_url,
        "OPENAI_BASE_URL",
        "API_URL",
    )
    upstreams: Mapping[str, Provider] = _setting(
        "Further model providers by name, each with its url, and its key, models and options if it has them.",
        {},
        parse_providers,
        secret=True,
    )
    vcp_channels: bool = _setting(
        "Open the WebSocket channels of VCPToolBox. Their addresses contain the key.",
        False,
        _parse_switch,
        "TOOLYARD_VCP_CHANNELS",
    )
    warm_starts: bool = _setting(
        "Start plugins before they are needed, so that their calls begin sooner.",
        True,
        _parse_switch,
        "TOOLYARD_WARM_STARTS",
    )

    def list_differences(self, other: "Settings") -> list[str]:
        """Return the names of the settings that ``other`` has otherwise."""
        return [setting.name for setting in SETTINGS if getattr(self, setting.name) != getattr(other, setting.name)]


SETTINGS = tuple(Setting(name=one.name, **one.metadata) for one in fields(Settings))
