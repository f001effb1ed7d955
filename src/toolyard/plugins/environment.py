"""The environment of a plugin's child: what it needs, and nothing of the host's (S-80).

A setting is found in the plugin's ``config.env``, else in the host's environment, else in the default of its schema. A
key that is in the schema is typed by it: an integer is the digits the value begins with, a boolean is true only when
the value is "true" in any case; a value that is neither counts as missing.

From the host a plugin gets: the few variables every program needs; the keys of its schema, unless they look like a
secret in name or value; and the keys that the owner shares with it by name. The keys of the host, of its upstream and
of other plugins are never given, also when they are asked for or shared. What the host decides (its own place, the
port, and for each call the caller's address and the callback) cannot be set by a plugin (S-73).
"""

import hashlib
import json
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from toolyard.errors import ConfigError
from toolyard.message import Message
from toolyard.own_command import FOR_DEFAULT_HOME, OwnCommand
from toolyard.plugins import publish_keys
from toolyard.protocol.failure import Failure, Reason
from toolyard.protocol.json import Json
from toolyard.protocol.manifest import ConfigKey, Manifest, PluginType
from toolyard.workspace.home_folder import make_private_folder

DATA_FOLDER = "plugin-data"
# the names that Toolyard and VCPToolBox give to the keys of the host and its upstream, in lower case
HOST_KEYS = frozenset({
    "api_key", "key", "vcp_key", "adminpassword", "adminusername", "openai_api_key", "anthropic_api_key",
    "decrypted_auth_code", "imageserver_image_key", "imageserver_file_key", "ssh_manager_token", "log_monitor_token",
})  # fmt: skip
_HOST_PREFIX = "toolyard_"
RESERVED = publish_keys.NAMES | {
    "HOME", "PYTHONPYCACHEPREFIX", "PROJECT_BASE_PATH", "SERVER_PORT", "VCP_REQUEST_IP", "CALLBACK_BASE_URL",
    "PLUGIN_NAME_FOR_CALLBACK",
}  # fmt: skip
_ADDRESS = "VarHttpUrl"  # what VCPToolBox calls the address of the host, without its port
_SECRET_NAME = re.compile(
    r"(?:^|_)(?:pass(?:word|wd|phrase|code)?|pwd|secrets?|tokens?|keys?|apikeys?|auth|authorization|cookies?|credentials?|dsn|session)(?:_|$)"
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_LOGIN_IN_URL = re.compile(r"://[^/\s@]*:[^/\s@]+@")
_INTEGER = re.compile(r"\s*([+-]?\d+)")
_NUMBER = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)")
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")


@dataclass(frozen=True, slots=True, kw_only=True)
class HostEnvironment:
    """The facts about the host from which a child's environment is built."""

    environ: Mapping[str, str] = field(repr=False)  # the host's own environment
    project: Path
    home: Path
    port: int
    own_command: OwnCommand = FOR_DEFAULT_HOME
    address: str = "http://127.0.0.1"  # by which people reach the server, without the port
    secret_keys: Collection[str] = ()  # variables that hold settings of the host which are secrets
    shared: Mapping[str, Collection[str]] = field(default_factory=dict)  # plugin -> the keys its owner shares with it


class SettingSource(StrEnum):
    """The origin of a plugin's setting."""

    PLUGIN = "plugin"  # its config.env
    HOST = "host"
    DEFAULT = "default"
    MISSING = "missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    values: Mapping[str, str] = field(repr=False)  # for every call
    sources: Mapping[str, SettingSource]  # of those that are settings
    from_host: tuple[str, ...]  # which of them are taken from the host beyond what every program needs
    secrets: tuple[str, ...] = field(repr=False)  # values to mask wherever they would be shown
    log_secrets: tuple[str, ...] = field(default=(), repr=False)  # values to mask in logs; results have them in links
    missing: tuple[str, ...] = ()  # required settings that are not set
    problems: tuple[str, ...] = ()


def build_environment(
    manifest: Manifest,
    config: Mapping[str, str],
    host: HostEnvironment,
    *,
    keys_of_others: Collection[str] = (),
    given_keys: Collection[str] = (),
) -> Environment:
    """Build the environment of a plugin, without the variables of a single call.

    ``keys_of_others`` are the keys in the config.env of other plugins, ``given_keys`` the publish keys that its owner
    gave it. Raises Failure(START_FAILED) when those cannot be read.
    """
    denied = frozenset(key.lower() for key in host.secret_keys) | HOST_KEYS
    denied |= {key.lower() for key in keys_of_others if is_secret_name(key)}
    shared, problems = _shared_variables(manifest.name, host, denied)
    offered = shared | {key.name: v for key in manifest.config for v in _host_values(key.name, host.environ, denied)}
    schema = {key.name: key for key in manifest.config}
    values = _base_variables(manifest.name, host)
    defaults = {name: value for key in schema.values() for name, value in _default_values(key)}
    values |= defaults
    sources = dict.fromkeys(defaults, SettingSource.DEFAULT)
    for source, given in ((SettingSource.HOST, offered), (SettingSource.PLUGIN, config)):
        for name, value in given.items():
            typed = coerce_text(value, schema[name].type) if name in schema else value
            if typed is None:
                problems.append(
                    Message(
                        "plugin.wrong_setting_type",
                        "{name} is not of the type {type}: {name} counts as not set",
                        name=name,
                        type=schema[name].type,
                    )
                )
            elif name not in RESERVED:
                values[name], sources[name] = typed, source
    published = _publish_values(host.home, given_keys)
    values |= published
    sources |= dict.fromkeys(published, SettingSource.HOST)
    if published:
        values.setdefault(_ADDRESS, host.address)
    set_keys = {name for name, value in values.items() if value}
    missing = (
        key.name
        for key in manifest.config
        if key.is_required(set_keys) and key.name not in set_keys and key.name not in RESERVED
    )
    return Environment(
        values=values,
        sources=sources,
        from_host=tuple(sorted(name for name in offered if name not in config and name not in RESERVED)),
        secrets=tuple(v for name, v in {**offered, **config}.items() if is_secret(name, v)),
        log_secrets=tuple(published.values()),
        missing=tuple(missing),
        problems=tuple(problems),
    )


def describe_missing_settings(names: Sequence[str], folder: Path) -> Message:
    """Say that the plugin in a folder needs configuration, and where its owner writes it."""
    return Message(
        "plugin.needs_settings",
        "it needs configuration: set {names} on its page in the console, or in {file}",
        names=", ".join(names),
        file=folder / "config.env",
    )


def build_call_variables(
    manifest: Manifest, *, request_address: str, callback_base: str | None = None
) -> dict[str, str]:
    """Build the variables of one call. They come last, so a plugin's configuration cannot replace them."""
    values = {"VCP_REQUEST_IP": request_address}
    if manifest.type is PluginType.ASYNCHRONOUS and callback_base is not None:
        values |= {"CALLBACK_BASE_URL": callback_base, "PLUGIN_NAME_FOR_CALLBACK": manifest.name}
    return values


def data_folder(home: Path, plugin: str) -> Path:
    """Return the folder that is HOME to a plugin; its name is safe whatever the plugin's name is."""
    plain = _PLAIN_NAME.fullmatch(plugin)
    odd = hashlib.sha256(plugin.encode(errors="surrogatepass")).hexdigest()[:32]
    return home / DATA_FOLDER / (plugin if plain else f"_{odd}")


def temporary_folder(home: Path, plugin: str) -> Path:
    """Return the folder for the temporary files of a plugin, which no other program shares."""
    return data_folder(home, plugin) / "tmp"


def make_data_folder(home: Path, plugin: str) -> Path:
    """Create the data folder with its temporary folder, private to its owner. Raises Failure(START_FAILED)."""
    folder = data_folder(home, plugin)
    try:
        make_private_folder(folder)
        for place in (folder.parent, folder):
            _close_to_others(place)
        with suppress(FileExistsError):  # whatever the plugin has put there is its own affair
            temporary_folder(home, plugin).mkdir(mode=0o700)
    except OSError as error:
        message = Message(
            "plugin.data_folder_failed",
            "The plugin's data folder {folder} cannot be made: {strerror}.",
            folder=folder,
            strerror=error.strerror,
        )
        raise Failure(
            Reason.START_FAILED,
            message,
            hint=Message("hint.make_parent_writable", "Make its parent a folder that can be written."),
        ) from error
    return folder


def _close_to_others(folder: Path) -> None:
    """Take a folder away from everybody but its owner. Raises OSError, also when the folder itself is a link."""
    opened = os.open(os.path.realpath(folder.parent) + f"/{folder.name}", os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if os.fstat(opened).st_mode & 0o077:
            os.fchmod(opened, 0o700)
    finally:
        os.close(opened)


def is_secret_name(name: str) -> bool:
    """Return whether only secrets have such a name: DOUBAO_API_KEY, Image_Key, accessToken."""
    return bool(_SECRET_NAME.search(_CAMEL.sub("_", name).replace("-", "_").replace(".", "_").lower()))


def is_secret(name: str, value: str) -> bool:
    """Return whether a setting must be hidden, by its name or its value."""
    return is_secret_name(name) or bool(_LOGIN_IN_URL.search(value))


def _base_variables(plugin: str, host: HostEnvironment) -> dict[str, str]:
    environ = host.environ
    zone = environ.get("TZ") or _local_timezone()
    return {
        "PATH": environ.get("PATH") or os.defpath,
        "HOME": str(data_folder(host.home, plugin)),
        "LANG": environ.get("LANG") or "C.UTF-8",
        **({"TZ": zone} if zone else {}),
        "TMPDIR": str(temporary_folder(host.home, plugin)),
        "PYTHONIOENCODING": "utf-8",
        "PYTHONUNBUFFERED": "1",
        "PROJECT_BASE_PATH": str(host.project),
        "SERVER_PORT": str(host.port),
    }


def _local_timezone() -> str | None:
    """Return the name of the machine's time zone; None when it is unknown, and programs then find it themselves."""
    try:
        target = os.readlink("/etc/localtime")
    except OSError:
        return None if os.path.exists("/etc/localtime") else "UTC"
    return target.partition("zoneinfo/")[2] or None


def _shared_variables(plugin: str, host: HostEnvironment, denied: frozenset[str]) -> tuple[dict[str, str], list[str]]:
    values: dict[str, str] = {}
    problems: list[str] = []
    for name in host.shared.get(plugin, ()):
        if _is_denied(name, denied):
            problems.append(
                Message(
                    "plugin.key_not_shareable",
                    "{name} is a key of the host, its upstream or another plugin: it cannot be shared",
                    name=name,
                )
            )
        elif name in host.environ:
            values[name] = host.environ[name]
    return values, problems


def _host_values(name: str, environ: Mapping[str, str], denied: frozenset[str]) -> Iterator[str]:
    """Yield the host's value for a key of the schema, unless it may be a secret."""
    value = environ.get(name)
    if (
        value is not None
        and not _is_denied(name, denied)
        and not is_secret_name(name)
        and not _LOGIN_IN_URL.search(value)
    ):
        yield value


def _is_denied(name: str, denied: frozenset[str]) -> bool:
    return name.lower() in denied or name.lower().startswith(_HOST_PREFIX)


def _publish_values(home: Path, names: Collection[str]) -> dict[str, str]:
    if not names:
        return {}
    try:
        keys = publish_keys.PublishKeys(home).read_or_make()
    except ConfigError as error:
        raise Failure(
            Reason.START_FAILED,
            Message(
                "plugin.file_keys_unreadable",
                "The keys for published files cannot be read: {error}.",
                error=error,
            ),
        ) from error
    return {name: keys[name] for name in names}


def _default_values(key: ConfigKey) -> Iterator[tuple[str, str]]:
    text = _to_text(key.default)
    typed = None if text is None else coerce_text(text, key.type)
    if typed is not None and key.name not in RESERVED:
        yield key.name, typed


def _to_text(value: Json) -> str | None:
    if value is None or isinstance(value, str):
        return None if value is None or "\0" in value else value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def coerce_text(value: str, kind: str) -> str | None:
    """Return ``value`` as a child reads a setting of this type, or None when it does not fit."""
    match kind:
        case "boolean":
            return "true" if value.strip().lower() == "true" else "false"
        case "integer" | "number":
            match = (_INTEGER if kind == "integer" else _NUMBER).match(value)
            return match[1] if match else None
        case _:
            return value
