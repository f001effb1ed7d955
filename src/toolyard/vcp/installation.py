"""An installation of VCPToolBox on disk: its plugins, settings, agents and state.

Reading is bounded, runs nothing and never writes. A value of ``Installation`` is what was there when it was read; what
cannot be read is left out and named in ``problems``. Lists of the installation's state (timed tasks, results) are read
when they are asked for, because only an import needs them.

Rules of VCPToolBox that this module knows: a plugin is a folder of ``Plugin`` with a manifest, disabled while that is
named ``.block``; of two plugins with one name the first folder counts; ``VCP_Key`` is that of ``Plugin/VCPLog`` if that
has a ``config.env``, else the root's; the folders of agents and texts can be named in ``config.env``.
"""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from toolyard.dialects.vcp_install import APPROVALS, CONFIG, PLUGINS, RESULTS, TIMED
from toolyard.errors import UsageError
from toolyard.message import Message
from toolyard.plugins.package.config_env import parse_config
from toolyard.plugins.package.plugin import PluginFiles, read_plugin_files, read_signature
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.manifests.manifest import Manifest, PluginType

AGENT_MAP: Final = "agent_map.json"
TOOLBOX_MAP: Final = "toolbox_map.json"
IN_PROCESS: Final = (PluginType.MESSAGE_PREPROCESSOR, PluginType.SERVICE, PluginType.HYBRID_SERVICE)
_MAX_BYTES = 8 * 2**20
_MAX_FILES = 10_000
MIN_KEY: Final = 8  # characters of a key that is accepted
_UNSET = "YOUR_"  # with which the values of config.env.example begin


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledPlugin:
    """A folder of ``Plugin``."""

    name: str  # the folder's, when there is no manifest to tell
    folder: Path
    manifest: Manifest | None  # None: it has none, or one that cannot be used
    problem: str = ""  # why
    is_enabled: bool = True
    config: Mapping[str, str] = field(default_factory=dict, repr=False)  # of its own config.env

    @property
    def is_in_process(self) -> bool:
        """It lives in VCPToolBox's own Node process."""
        if self.manifest is None:
            return False
        if self.manifest.type in IN_PROCESS:
            return True
        protocol = self.manifest.fields.get("communication")
        is_direct = isinstance(protocol, dict) and protocol.get("protocol") == "direct"
        return is_direct and self.manifest.type is not PluginType.STATIC


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    root: Path  # its real path
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)  # of config.env, in its order
    plugins: tuple[InstalledPlugin, ...] = ()
    agents: Mapping[str, Path] = field(default_factory=dict)  # by their names in agent_map.json
    toolboxes: Mapping[str, JsonObject] = field(default_factory=dict)  # {file, description}, by name
    problems: tuple[str, ...] = ()

    @property
    def plugin_folder(self) -> Path:
        return self.root / PLUGINS

    @property
    def agent_folder(self) -> Path:
        return self.root / self.variables.get("AGENT_DIR_PATH", "Agent")

    @property
    def text_folder(self) -> Path:
        return self.root / self.variables.get("TVSTXT_DIR_PATH", "TVStxt")

    @property
    def port(self) -> int | None:
        """The port on which VCPToolBox listens."""
        port = self.variables.get("PORT", "")
        return int(port) if port.isascii() and port.isdigit() and len(port) < 6 else None

    @property
    def key(self) -> str:
        """The key of its HTTP interface; empty: it is not set."""
        return self._find_key(None, "Key")

    @property
    def vcp_key(self) -> str:
        """The key of its WebSockets, for existing clients and nodes; empty: it is not set."""
        return self._find_key("VCPLog", "VCP_Key")

    @property
    def panel(self) -> tuple[str, str] | None:
        """The name and the password of its admin panel; None: they are not set."""
        name, password = self._find_key(None, "AdminUsername"), self._find_key(None, "AdminPassword")
        return (name, password) if name and password else None

    @property
    def image_key(self) -> str:
        """The key in ``/pw=KEY/images/``; empty: it is not set."""
        return self._find_key("ImageServer", "Image_Key")

    @property
    def file_key(self) -> str:
        """The key in ``/pw=KEY/files/``; empty: it is not set."""
        return self._find_key("ImageServer", "File_Key")

    def get(self, name: str) -> InstalledPlugin | None:
        return next((plugin for plugin in self.plugins if plugin.name == name and plugin.manifest), None)

    def _find_key(self, plugin: str | None, name: str) -> str:
        own = self.get(plugin) if plugin else None
        value = (own.config.get(name) if own else None) or self.variables.get(name, "")
        return "" if value.startswith(_UNSET) else value

    # --- its state, for an import ---

    def read_approvals(self) -> Json:
        """Return the stored approvals; None when there is no such file."""
        return _read_json(self.root / APPROVALS)

    def list_timed_tasks(self) -> Iterator[tuple[str, Json]]:
        return self._list_json_files(TIMED)

    def list_results(self) -> Iterator[tuple[str, Json]]:
        return self._list_json_files(RESULTS)

    def modified_time(self, folder: str, name: str) -> float:
        return (self.root / folder / name).stat().st_mtime

    def _list_json_files(self, folder: str) -> Iterator[tuple[str, Json]]:
        for path in list_entries(self.root / folder):
            raw = read_bytes(path) if path.suffix == ".json" else None
            if raw is not None:
                yield path.name, _parse_json(raw)


def read_installation(folder: Path) -> Installation:
    """Read an installation. Raises UsageError when the folder is none."""
    root = Path(os.path.realpath(folder))
    if not (root / PLUGINS).is_dir():
        raise UsageError(
            Message(
                "'{folder}' is not an install of VCPToolBox: it has no folder called {plugins}",
                folder=folder,
                plugins=PLUGINS,
            )
        )
    raw = read_bytes(root / CONFIG)
    config = parse_config((raw or b"").decode("utf-8", "replace"))
    variables = dict(config.values)
    agent_folder = root / variables.get("AGENT_DIR_PATH", "Agent")
    return Installation(
        root=root,
        variables=variables,
        plugins=tuple(_list_plugins(root / PLUGINS)),
        agents={name: agent_folder / file for name, file in _read_map(root / AGENT_MAP) if isinstance(file, str)},
        toolboxes=dict(_read_toolboxes(root / TOOLBOX_MAP)),
        problems=tuple(
            Message("{file}, line {line}: {problem}", file=CONFIG, line=one.line, problem=one.message)
            for one in config.problems
        ),
    )


def _list_plugins(folder: Path) -> Iterator[InstalledPlugin]:
    seen: dict[str, Path] = {}
    for path in list_entries(folder):
        if not path.is_dir() or path.name.startswith("."):
            continue
        signature = read_signature(path)
        if signature is None:
            yield InstalledPlugin(name=path.name, folder=path, manifest=None, problem=Message("it has no manifest"))
            continue
        plugin = _read_plugin(path, read_plugin_files(path, signature, None))
        first = seen.setdefault(plugin.name, path)
        if first is not path:
            problem = Message("{folder} has a plugin of this name too, which counts", folder=first.name)
            plugin = replace(plugin, manifest=None, problem=problem)
        yield plugin


def _read_plugin(folder: Path, files: PluginFiles) -> InstalledPlugin:
    faults = [str(fault) for fault in files.problems if not fault.warning]
    return InstalledPlugin(
        name=files.manifest.name if files.manifest else folder.name,
        folder=folder,
        manifest=files.manifest,
        problem="" if files.manifest else Message("its manifest cannot be used: {why}", why="; ".join(faults)),
        is_enabled=not files.blocked,
        config=files.config or {},
    )


def _read_map(path: Path) -> Iterator[tuple[str, Json]]:
    value = _read_json(path)
    yield from value.items() if isinstance(value, dict) else ()


def _read_toolboxes(path: Path) -> Iterator[tuple[str, JsonObject]]:
    for name, entry in _read_map(path):
        if isinstance(entry, str):
            yield name, {"file": entry}
        elif isinstance(entry, dict) and isinstance(entry.get("file"), str):
            yield name, entry


def list_entries(folder: Path) -> list[Path]:
    """Return what is in a folder by name, up to a bound; nothing when it cannot be read."""
    try:
        with os.scandir(folder) as entries:
            return sorted(Path(entry.path) for _, entry in zip(range(_MAX_FILES), entries, strict=False))
    except OSError:
        return []


def read_bytes(path: Path) -> bytes | None:
    """Return the content of a regular file; None when there is none, or it is too large."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(fd, "rb") as file:
            raw = file.read(_MAX_BYTES + 1)
    except OSError:
        return None
    return raw if len(raw) <= _MAX_BYTES else None


def _read_json(path: Path) -> Json:
    raw = read_bytes(path)
    return None if raw is None else _parse_json(raw)


def _parse_json(raw: bytes) -> Json:
    try:
        value: Json = json.loads(raw.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None
    return value
