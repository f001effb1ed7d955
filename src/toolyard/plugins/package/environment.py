"""The environment of a plugin's child: what it needs, and nothing of the host's (S-80).

A setting is found in the plugin's ``config.env``, else in the host's environment, else in the default of its schema. A
key that is in the schema is typed by it: an integer is the digits the value begins with, a boolean is true only when
the value is "true" in any case; a value that is neither counts as missing.

From the host a plugin gets: the few variables every program needs; the keys of its schema, unless they look like a
secret in name or value; and the keys that the owner shares with it by name. The keys of the host, of its upstream and
of other plugins are never given, also when they are asked for or shared. What the host decides (its own place, the
port, and for each call the caller's address and the callback) cannot be set by a plugin (S-73).

Children that may run Python keep compiled code in a folder of the home for each fingerprint (S-83). Python runs what
``__pycache__`` beside a source has when the times written in it fit, whatever the source says, so a review of the
sources would not cover it; with a cache elsewhere it does not read ``__pycache__`` at all. What one version of a plugin
has compiled is read by that version alone. The last ``MAX_VERSIONS`` versions of each plugin have a folder. A cache
that cannot be written costs time only.
"""

import hashlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final

from toolyard.errors import ConfigError
from toolyard.message import Message
from toolyard.own_command import FOR_DEFAULT_HOME, OwnCommand
from toolyard.plugins.package.config_env import is_secret, is_secret_name
from toolyard.plugins.package.fingerprint import FILE_KEY, IMAGE_KEY, PUBLISH_KEYS
from toolyard.plugins.package.plugin import Plugin
from toolyard.protocol.envelope import Failure, Reason
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.manifests.manifest import ConfigKey, Manifest, PluginType
from toolyard.workspace.home_folder import StateFile, make_private_folder

DATA_FOLDER = "plugin-data"
# the names that Toolyard and VCPToolBox give to the keys of the host and its upstream, in lower case
HOST_KEYS = frozenset({
    "api_key", "key", "vcp_key", "adminpassword", "adminusername", "openai_api_key", "anthropic_api_key",
    "decrypted_auth_code", "imageserver_image_key", "imageserver_file_key", "ssh_manager_token", "log_monitor_token",
})  # fmt: skip
_HOST_PREFIX = "toolyard_"
RESERVED = PUBLISH_KEYS | {
    "HOME", "PYTHONPYCACHEPREFIX", "PROJECT_BASE_PATH", "SERVER_PORT", "VCP_REQUEST_IP", "CALLBACK_BASE_URL",
    "PLUGIN_NAME_FOR_CALLBACK",
}  # fmt: skip
_IN_LINKS = frozenset({"Image_Key", "File_Key"})  # of VCPToolBox, which results have in links
_ADDRESS = "VarHttpUrl"  # what VCPToolBox calls the address of the host, without its port
_INTEGER = re.compile(r"\s*([+-]?\d+)")
_NUMBER = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)")
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
PUBLISH_KEYS_FILE = "publish-keys.json"
CACHE_FOLDER: Final = "python-cache"
CACHE_VARIABLE: Final = "PYTHONPYCACHEPREFIX"
MAX_VERSIONS: Final = 3
_PYTHON = re.compile(r"(?:python|pypy)[\d.]*")
_SOURCES = (".py", ".pyw", ".pyc")
_WITHOUT_ENVIRONMENT = re.compile(r"-[A-Za-z]*[EI][A-Za-z]*")


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
    project: Path | None = None,
    installation: Mapping[str, str] | None = None,
) -> Environment:
    """Build the environment of a plugin, without the variables of a single call.

    ``keys_of_others`` are the keys in the config.env of other plugins, ``given_keys`` the publish keys that its owner
    gave it, ``installation`` the variables of a VCPToolBox installation that one of its plugins gets, and ``project``
    its folder. Raises Failure(START_FAILED) when the keys cannot be read.
    """
    denied = frozenset(key.lower() for key in host.secret_keys) | HOST_KEYS
    denied |= {key.lower() for key in keys_of_others if is_secret_name(key)}
    shared, problems = _shared_variables(manifest.name, host, denied)
    own = {key.name: v for key in manifest.config for v in _host_values(key.name, host.environ, denied)}
    offered = {**(installation or {}), **shared, **own}
    schema = {key.name: key for key in manifest.config}
    values = _base_variables(manifest.name, host, project)
    defaults = {name: value for key in schema.values() for name, value in _default_values(key)}
    values |= defaults
    sources = dict.fromkeys(defaults, SettingSource.DEFAULT)
    for source, given in ((SettingSource.HOST, offered), (SettingSource.PLUGIN, config)):
        for name, value in given.items():
            typed = coerce_text(value, schema[name].type) if name in schema else value
            if typed is None:
                problems.append(
                    Message(
                        "{name} is not of the type {type}: {name} counts as not set", name=name, type=schema[name].type
                    )
                )
            elif name not in RESERVED:
                values[name], sources[name] = typed, source
    published = {**_publish_values(host.home, given_keys), **_published_there(given_keys, installation or {})}
    values |= published
    sources |= dict.fromkeys(published, SettingSource.HOST)
    if published:
        values.setdefault(_ADDRESS, host.address)
    in_links = tuple(value for name, value in (installation or {}).items() if name in _IN_LINKS)
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
        secrets=tuple(v for name, v in {**offered, **config}.items() if is_secret(name, v) and v not in in_links),
        log_secrets=(*published.values(), *in_links),
        missing=tuple(missing),
        problems=tuple(problems),
    )


def describe_missing_settings(names: Sequence[str], folder: Path) -> Message:
    """Say that the plugin in a folder needs configuration, and where its owner writes it."""
    return Message(
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
            "The plugin's data folder {folder} cannot be made: {strerror}.", folder=folder, strerror=error.strerror
        )
        raise Failure(
            Reason.START_FAILED, message, hint=Message("Make its parent a folder that can be written.")
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


def _base_variables(plugin: str, host: HostEnvironment, project: Path | None) -> dict[str, str]:
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
        "PROJECT_BASE_PATH": str(project or host.project),
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
                Message("{name} is a key of the host, its upstream or another plugin: it cannot be shared", name=name)
            )
        elif name in host.environ:
            values[name] = host.environ[name]
    return values, problems


def _host_values(name: str, environ: Mapping[str, str], denied: frozenset[str]) -> Iterator[str]:
    """Yield the host's value for a key of the schema, unless it may be a secret."""
    value = environ.get(name)
    if value is not None and not _is_denied(name, denied) and not is_secret(name, value):
        yield value


def _is_denied(name: str, denied: frozenset[str]) -> bool:
    return name.lower() in denied or name.lower().startswith(_HOST_PREFIX)


def _publish_values(home: Path, names: Collection[str]) -> dict[str, str]:
    if not names:
        return {}
    try:
        keys = PublishKeys(home).read_or_make()
    except ConfigError as error:
        raise Failure(
            Reason.START_FAILED, Message("The keys for published files cannot be read: {error}.", error=error)
        ) from error
    return {name: keys[name] for name in names}


def _published_there(names: Collection[str], installation: Mapping[str, str]) -> dict[str, str]:
    """Return the publish keys that a VCPToolBox installation has: links that were made before keep working."""
    there = {IMAGE_KEY: installation.get("Image_Key"), FILE_KEY: installation.get("File_Key")}
    return {name: key for name, key in there.items() if key and name in names}


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


class PublishKeys:
    """The keys of the addresses under which plugins publish files: ``/pw=KEY/images/...`` and ``/pw=KEY/files/...``.

    They are random, the same for every plugin of a home, and stand in ``publish-keys.json``, which only its owner can
    read. A plugin that names one gets it when its owner has said yes to a review that shows it. Another process may
    create them.
    """

    def __init__(self, home: Path) -> None:
        self._file = StateFile(home / PUBLISH_KEYS_FILE)

    def read(self) -> Mapping[str, str]:
        """Return the keys by their names; empty while there are none."""
        return _read_keys(self._file.read())

    def read_or_make(self) -> Mapping[str, str]:
        """Return both keys, created the first time. Raises ConfigError."""
        keys = self.read()
        if keys.keys() != PUBLISH_KEYS:
            self._file.update(_add_missing_keys)
            keys = self.read()
        return keys


def _read_keys(value: JsonObject) -> dict[str, str]:
    return {name: key for name in PUBLISH_KEYS if isinstance(key := value.get(name), str) and len(key) >= 20}


def _add_missing_keys(value: JsonObject) -> None:
    keys = _read_keys(value)
    value.update({name: keys.get(name) or secrets.token_urlsafe(32) for name in sorted(PUBLISH_KEYS)})


def make_cache_folder(home: Path, plugin: Plugin) -> Path | None:
    """Create and return the folder for the bytecode of this version of a plugin; None when it has no Python."""
    if plugin.command is None or plugin.fingerprint is None or not _can_run_python(plugin):
        return None
    own = home / CACHE_FOLDER / data_folder(home, plugin.name).name
    folder = own / plugin.fingerprint.digest
    if not folder.is_dir():
        with suppress(OSError):
            make_private_folder(folder)
            _remove_oldest(own)
    return folder


def add_cache_option(argv: tuple[str, ...], folder: Path) -> tuple[str, ...]:
    """Name the cache on the command line of a Python that ignores its environment (``-E``, ``-I``)."""
    if not _PYTHON.fullmatch(Path(argv[0]).name):
        return argv
    for word in argv[1:]:
        if not word.startswith("-") or word == "-":
            break
        if _WITHOUT_ENVIRONMENT.fullmatch(word):
            return (argv[0], f"-Xpycache_prefix={folder}", *argv[1:])
    return argv


def _can_run_python(plugin: Plugin) -> bool:
    argv = plugin.command.argv if plugin.command else ()
    files = plugin.fingerprint.files if plugin.fingerprint else {}
    return bool(argv and _PYTHON.fullmatch(Path(argv[0]).name)) or any(name.endswith(_SOURCES) for name in files)


def _remove_oldest(own: Path) -> None:
    newest_first = sorted(own.iterdir(), key=lambda folder: folder.lstat().st_mtime_ns, reverse=True)
    for folder in newest_first[MAX_VERSIONS:]:
        shutil.rmtree(folder, ignore_errors=True)
