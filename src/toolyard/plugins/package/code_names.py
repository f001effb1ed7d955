"""The names in the code of a plugin: variables of the environment, and npm packages. Read, bounded, never run."""

import os
import re
from pathlib import Path

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
    for path in _list_files(folder):
        if path.suffix in (".js", ".mjs", ".cjs"):
            imported = _ASKED.findall((_read_bytes(path) or b"").decode("utf-8", "replace"))
            packages |= {"/".join(name.split("/")[: 2 if name.startswith("@") else 1]) for name in imported}
    return sorted(name for name in packages if name not in _NODE_OWN)


def mentions_variable(words: frozenset[str], variable: str) -> bool:
    """Return whether a plugin of these words names a variable; of one like ``A.B`` it must have each part."""
    parts = _WORD.findall(variable)
    return bool(parts) and words.issuperset(parts)


def _list_files(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            return sorted(Path(entry.path) for _, entry in zip(range(_MAX_FILES), entries, strict=False))
    except OSError:
        return []


def _read_bytes(path: Path) -> bytes | None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(fd, "rb") as file:
            raw = file.read(_MAX_BYTES + 1)
    except OSError:
        return None
    return raw if len(raw) <= _MAX_BYTES else None
