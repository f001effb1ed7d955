"""An install of VCPToolBox on disk: read, bounded, and never written to."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

from toolyard.dialects.vcp_install import APPROVALS, CONFIG, PLUGINS, RESULTS, TIMED
from toolyard.errors import UsageError
from toolyard.message import Message
from toolyard.plugins.package.config_env import parse_config
from toolyard.protocol.json import Json

_MAX_BYTES = 8 * 2**20
_MAX_FILES = 10_000
_WORD = re.compile(r"\w+")
_PACKAGE = r"""['"]((?:@[\w.-]+/)?[a-z0-9][\w.-]*(?:/[\w./-]*)?)['"]"""
_ASKED = re.compile(rf"(?m)^(?![ \t]*(?://|\*)).*?\b(?:require\(\s*|import\(\s*|from\s+|import\s+){_PACKAGE}")
_NODE_OWN = frozenset({
    "assert", "async_hooks", "buffer", "child_process", "cluster", "console", "constants", "crypto", "dgram",
    "diagnostics_channel", "dns", "domain", "events", "fs", "http", "http2", "https", "inspector", "module", "net",
    "os", "path", "perf_hooks", "process", "punycode", "querystring", "readline", "repl", "stream", "string_decoder",
    "sys", "timers", "tls", "tty", "url", "util", "v8", "vm", "wasi", "worker_threads", "zlib",
})  # fmt: skip


class VcpInstall:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        if not (folder / PLUGINS).is_dir():
            raise UsageError(
                Message(
                    "'{folder}' is not an install of VCPToolBox: it has no folder called {plugins}",
                    folder=folder,
                    plugins=PLUGINS,
                )
            )

    def find_plugins(self) -> list[Path]:
        return [
            path for path in _list_entries(self.folder / PLUGINS) if path.is_dir() and not path.name.startswith(".")
        ]

    def read_variables(self) -> tuple[dict[str, str], list[str]]:
        """Return the host's own settings, and the problems of the file."""
        raw = _read_bytes(self.folder / CONFIG)
        if raw is None:
            return {}, []
        config = parse_config(raw.decode("utf-8", "replace"))
        return dict(config.values), [f"line {one.line}: {one.message}" for one in config.problems]

    def read_approvals(self) -> Json:
        """Return the stored approvals; None when there is no such file."""
        raw = _read_bytes(self.folder / APPROVALS)
        return _parse_json(raw) if raw is not None else None

    def list_timed_tasks(self) -> Iterator[tuple[str, Json]]:
        return self._list_json_files(TIMED)

    def list_results(self) -> Iterator[tuple[str, Json]]:
        return self._list_json_files(RESULTS)

    def modified_time(self, folder: str, name: str) -> float:
        return (self.folder / folder / name).stat().st_mtime

    def _list_json_files(self, folder: str) -> Iterator[tuple[str, Json]]:
        for path in _list_entries(self.folder / folder):
            raw = _read_bytes(path) if path.suffix == ".json" else None
            if raw is not None:
                yield path.name, _parse_json(raw)


def find_words(folder: Path) -> frozenset[str]:
    """Return every word in the sources of a plugin, to see which variables they name."""
    words: set[str] = set()
    size = 0
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in ("node_modules", ".git", ".venv", "venv", "__pycache__")]
        for name in sorted(names):
            if name.endswith((".js", ".mjs", ".cjs", ".ts", ".py", ".sh", ".json")) and size < _MAX_BYTES:
                raw = _read_bytes(Path(place, name)) or b""
                size += len(raw)
                words.update(_WORD.findall(raw.decode("utf-8", "replace")))
    return frozenset(words)


def find_packages(folder: Path) -> list[str]:
    """Return the npm packages that the scripts of a plugin import; Node's own modules are none."""
    packages: set[str] = set()
    for path in _list_entries(folder):
        if path.suffix in (".js", ".mjs", ".cjs"):
            imported = _ASKED.findall((_read_bytes(path) or b"").decode("utf-8", "replace"))
            packages |= {"/".join(name.split("/")[: 2 if name.startswith("@") else 1]) for name in imported}
    return sorted(name for name in packages if name not in _NODE_OWN)


def mentions_variable(words: frozenset[str], variable: str) -> bool:
    """Return whether a plugin of these words names a variable; of one like ``A.B`` it must have each part."""
    parts = _WORD.findall(variable)
    return bool(parts) and words.issuperset(parts)


def _list_entries(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            return sorted(Path(entry.path) for _, entry in zip(range(_MAX_FILES), entries, strict=False))
    except OSError:
        return []


def _read_bytes(path: Path) -> bytes | None:
    """Return the content of a regular file; None when there is none, or it is too large."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(fd, "rb") as file:
            raw = file.read(_MAX_BYTES + 1)
    except OSError:
        return None
    return raw if len(raw) <= _MAX_BYTES else None


def _parse_json(raw: bytes) -> Json:
    try:
        value: Json = json.loads(raw.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None
    return value
