"""The files of a plugin's folder, read safely: bounded, never blocking, never through a device.

The last good manifest and the last good settings are kept while a newer one cannot be read, be it broken, half written
or gone unreadable (R30): a plugin runs as it was, or as it is, and never as half of it.
"""

import errno
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from toolyard.message import Message
from toolyard.plugins.config_env import parse_config
from toolyard.plugins.environment import is_secret_name
from toolyard.plugins.plugin import PluginProblem
from toolyard.protocol.manifest import Manifest, read_manifest

MANIFEST = "plugin-manifest.json"
BLOCK = f"{MANIFEST}.block"  # its name while the plugin is disabled
CONFIG = "config.env"
_MAX_BYTES = 2**20

Signature: TypeAlias = tuple[tuple[int, ...], ...]


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
        message=Message("plugin.empty_just_gone", "is empty or has just gone"),
        fix=Message("plugin.write_manifest", "write the manifest"),
        file=name,
        line=1,
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
        message = Message(
            "plugin.secrets_readable_by_others", "other users of this machine can read the secrets in it."
        )
        problems.append(
            PluginProblem(
                message=message,
                fix=Message("plugin.chmod_600", "chmod 600 {config}", config=CONFIG),
                file=CONFIG,
                warning=True,
            )
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
            message=Message("plugin.cannot_read", "cannot be read: {strerror}", strerror=error.strerror),
            fix=Message("plugin.make_readable_file", "make it a readable file"),
            file=name,
        )


def _read_bounded(fd: int, name: str) -> bytes | PluginProblem:
    info = os.fstat(fd)
    if not stat.S_ISREG(info.st_mode):
        return PluginProblem(
            message=Message("plugin.not_ordinary_file", "is not an ordinary file"),
            fix=Message("plugin.replace_one", "replace it with one"),
            file=name,
        )
    if info.st_size > _MAX_BYTES:
        return PluginProblem(
            message=Message("plugin.larger_mib", "is larger than {value} MiB", value=_MAX_BYTES >> 20),
            fix=Message("plugin.shorten", "shorten it"),
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
            message=Message("plugin.not_utf_8", "is not UTF-8"),
            fix=Message("plugin.save_utf_8", "save it as UTF-8"),
            file=name,
            line=line,
            column=column,
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
