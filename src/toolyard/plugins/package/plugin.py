"""A plugin as it is now: the content of its folder, and whether it may run.

Its files are read safely: bounded, never blocking, never through a device. The last good manifest and the last good
settings are kept while a newer one cannot be read, be it broken, half written or gone unreadable (R30): a plugin runs
as it was, or as it is, and never as half of it.
"""

import errno
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TypeAlias

from toolyard.message import Message, strip_period
from toolyard.plugins.package.command_line import CommandLine
from toolyard.plugins.package.config_env import is_secret_name, parse_config
from toolyard.plugins.package.fingerprint import Fingerprint
from toolyard.protocol.access import AccessChoice
from toolyard.protocol.manifests.manifest import Manifest
from toolyard.protocol.manifests.manifest_parser import read_manifest
from toolyard.protocol.tool import Risk

MANIFEST = "plugin-manifest.json"
BLOCK = f"{MANIFEST}.block"  # its name while the plugin is disabled
CONFIG = "config.env"
_MAX_BYTES = 2**20
Signature: TypeAlias = tuple[tuple[int, ...], ...]


class Origin(StrEnum):
    SHIPPED = "shipped"
    HOME = "home"
    PROJECT = "project"
    GIVEN = "given"  # with --plugins
    VCP = "vcp"  # in the installation of VCPToolBox that is used in place


class PluginState(StrEnum):
    READY = "ready"
    MISSING_CONFIG = "missing_config"  # its owner lets it run, but a setting that it requires is not set
    DISABLED = "disabled"
    NEEDS_REVIEW = "needs_review"  # nobody has allowed it yet
    CHANGED = "changed"  # it is no longer what was allowed
    UNSUPPORTED = "unsupported"  # of a type that only VCPToolBox itself can run
    BROKEN = "broken"
    DUPLICATE = "duplicate"  # another plugin of the same name hides it
    SHADOWED = "shadowed"  # a built-in tool has the name


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginProblem:
    """A fault of a plugin and its place. Lines and columns count from 1; 0 is no place in particular."""

    message: str
    fix: str = ""
    file: str = ""  # relative to the plugin's folder
    line: int = 0
    column: int = 0
    field: str = ""
    warning: bool = False  # it runs all the same

    def __str__(self) -> str:
        text = self.message
        if self.field and self.field not in text:
            text = Message("{field}: {problem}", field=self.field, problem=text)
        if self.file:
            place = ":".join([self.file, *(str(n) for n in (self.line, self.column) if n)])
            text = Message("{place}: {problem}", place=place, problem=text)
        if self.fix:
            text = Message("{problem}. Fix: {fix}", problem=strip_period(text), fix=self.fix)
        return text


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    name: str  # the folder's, when there is no manifest to tell
    folder: Path  # its real path
    origin: Origin
    installation: Path | None = None  # of VCPToolBox, to which it belongs: the project that it knows
    state: PluginState
    reason: str = ""  # why it is not ready, or why an older version of it is still used; with what to do
    manifest: Manifest | None = None  # the last good one
    raw_manifest: bytes = field(default=b"", repr=False)  # what it was read from
    config: Mapping[str, str] = field(default_factory=dict, repr=False)  # of its config.env
    command: CommandLine | None = None
    fingerprint: Fingerprint | None = None
    read_confirmed: bool = False  # its word that it only reads counts
    access: AccessChoice = AccessChoice.DECLARED  # the owner's decision on what it may reach
    paths: tuple[str, ...] = ()  # that its settings name and its owner has seen: it may write there
    links: Mapping[str, str] = field(default_factory=dict)  # on the way to what it may reach, and where they lead
    publish_keys: frozenset[str] = frozenset()  # of the host, which the owner gave it at its review
    problems: tuple[PluginProblem, ...] = ()
    was_allowed: bool = False  # its owner allowed it, as it is now or was: no other plugin gets its name
    hidden_by: Path | None = None  # the folder of the plugin that has its name
    hides: tuple[Path, ...] = ()  # the folders of those whose name it has

    @property
    def risk(self) -> Risk:
        """The effective risk: what its manifest claims, except that read-only must have been confirmed."""
        claimed = self.manifest.risk if self.manifest else Risk.EXECUTE
        return Risk.EXECUTE if claimed is Risk.READ and not self.read_confirmed else claimed

    @property
    def is_ready(self) -> bool:
        """It can do its work, and is offered to models."""
        return self.state is PluginState.READY

    @property
    def waits(self) -> bool:
        """It waits for its owner's decision."""
        return self.state in (PluginState.NEEDS_REVIEW, PluginState.CHANGED)

    @property
    def may_run(self) -> bool:
        """Its owner lets it run. One that lacks a setting is not offered, but does what it can when it is called."""
        return self.state in (PluginState.READY, PluginState.MISSING_CONFIG)

    @property
    def is_in_process(self) -> bool:
        """It lives in the process of the installation of VCPToolBox to which it belongs: see ``vcp.bridge``."""
        return self.installation is not None and self.manifest is not None and bool(self.manifest.script)

    @property
    def id(self) -> str:
        """The identity among all plugins that may ever have its name; stable when the home or Toolyard moves."""
        movable = self.origin in (Origin.SHIPPED, Origin.HOME)
        return f"{self.origin.value}:{self.folder.name if movable else self.folder}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginFiles:
    """The last good content; ``problems`` are those of the present one."""

    signature: Signature
    blocked: bool
    manifest: Manifest | None
    raw_manifest: bytes = b""
    config: Mapping[str, str] | None = field(default_factory=dict, repr=False)  # None: there has never been a good one
    problems: tuple[PluginProblem, ...] = ()
    stale: bool = False  # something of it is older than the files


def read_signature(folder: Path | str) -> Signature | None:
    """Return a value that changes with the files; None when this is not a plugin's folder."""
    manifest, block = _stat(f"{folder}/{MANIFEST}"), _stat(f"{folder}/{BLOCK}")
    if manifest == block == (errno.ENOENT,) or (errno.ENOTDIR,) in (manifest, block):
        return None
    return manifest, block, _stat(f"{folder}/{CONFIG}")


def read_plugin_files(folder: Path, signature: Signature, last: PluginFiles | None) -> PluginFiles:
    blocked = len(signature[1]) > 1
    name = BLOCK if signature[0] == (errno.ENOENT,) else MANIFEST
    manifest, raw, problems = _read_manifest_file(folder, name)
    config, remarks = _read_config_file(folder)
    stale = False
    if manifest is None and last and last.manifest:
        manifest, raw, stale = last.manifest, last.raw_manifest, True
    if config is None and last and last.config is not None:
        config, stale = last.config, True
    return PluginFiles(
        signature=signature,
        blocked=blocked,
        manifest=manifest,
        raw_manifest=raw,
        config=config,
        problems=(*problems, *remarks),
        stale=stale,
    )


def _read_manifest_file(folder: Path, name: str) -> tuple[Manifest | None, bytes, list[PluginProblem]]:
    raw = _read_file(folder, name) or PluginProblem(
        message=Message("is empty or has just gone"), fix=Message("write the manifest"), file=name, line=1
    )
    if isinstance(raw, PluginProblem):
        return None, b"", [raw]
    text = _decode(raw, name)
    if isinstance(text, PluginProblem):
        return None, b"", [text]
    read = read_manifest(text)
    problems = [
        PluginProblem(
            message=fault.message,
            fix=fault.fix,
            file=name,
            line=fault.line,
            column=fault.column,
            field=fault.field,
            warning=fault.warning,
        )
        for fault in read.problems
    ]
    return read.manifest, raw, problems


def _read_config_file(folder: Path) -> tuple[Mapping[str, str] | None, list[PluginProblem]]:
    raw = _read_file(folder, CONFIG)
    if raw is None:
        return {}, []
    text = raw if isinstance(raw, PluginProblem) else _decode(raw, CONFIG)
    if isinstance(text, PluginProblem):
        return None, [text]
    config = parse_config(text)
    problems = [
        PluginProblem(message=p.message, fix=p.fix, file=CONFIG, line=p.line, warning=not p.fatal)
        for p in config.problems
    ]
    if any(map(is_secret_name, config.values)) and _is_open_to_others(folder / CONFIG):
        message = Message("other users of this machine can read the secrets in it.")
        problems.append(
            PluginProblem(message=message, fix=Message("chmod 600 {config}", config=CONFIG), file=CONFIG, warning=True)
        )
    return (None if any(p.fatal for p in config.problems) else config.values), problems


def _read_file(folder: Path, name: str) -> bytes | PluginProblem | None:
    """Return the bytes of a regular file of bounded size, or the problem; None when there is no such file."""
    try:
        fd = os.open(folder / name, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
        try:
            return _read_bounded(fd, name)
        finally:
            os.close(fd)
    except FileNotFoundError:
        return None
    except OSError as error:
        return PluginProblem(
            message=Message("cannot be read: {strerror}", strerror=error.strerror),
            fix=Message("make it a readable file"),
            file=name,
        )


def _read_bounded(fd: int, name: str) -> bytes | PluginProblem:
    info = os.fstat(fd)
    if not stat.S_ISREG(info.st_mode):
        return PluginProblem(message=Message("is not an ordinary file"), fix=Message("replace it with one"), file=name)
    if info.st_size > _MAX_BYTES:
        return PluginProblem(
            message=Message("is larger than {value} MiB", value=_MAX_BYTES >> 20),
            fix=Message("shorten it"),
            file=name,
            line=1,
            column=1,
        )
    with open(fd, "rb", buffering=0, closefd=False) as file:
        return file.read(_MAX_BYTES)


def _decode(raw: bytes, name: str) -> str | PluginProblem:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        before = raw[: error.start].decode()
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        return PluginProblem(
            message=Message("is not UTF-8"), fix=Message("save it as UTF-8"), file=name, line=line, column=column
        )


def _is_open_to_others(path: Path) -> bool:
    try:
        return bool(path.stat().st_mode & 0o077)
    except OSError:
        return False


def _stat(path: str) -> tuple[int, ...]:
    try:
        info = os.stat(path)
    except OSError as error:
        return (error.errno or 0,)
    return info.st_mode, info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns
