"""Source lines that start processes meant to outlive the answer: a scan of patterns, never a proof.

Node's ``detached``, Python's new sessions, the shell's ``nohup``, ``setsid``, ``disown`` and ``&``. Bounded: the first
``_MAX_FILES`` files that count, ``_MAX_BYTES`` of each.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

_MAX_FILES = 40
_MAX_BYTES = 128 * 1024
_NODE = re.compile(r"\bdetached\s*:\s*true\b")
_PYTHON = re.compile(r"\bstart_new_session\s*=\s*True\b|\bos\.setsid\b|\bDETACHED_PROCESS\b")
_SHELL = re.compile(r"\b(?:nohup|setsid|disown)\b|(?<![&>|])&[ \t]*(?:#.*)?$", re.MULTILINE)
_BY_SUFFIX = {
    ".js": _NODE, ".mjs": _NODE, ".cjs": _NODE, ".ts": _NODE, ".py": _PYTHON, ".sh": _SHELL, ".bash": _SHELL,
}  # fmt: skip
_COMMENT = ("#", "//", "*")


class DetachedStart(NamedTuple):
    """A line in a file of the plugin's folder, and the matched words."""

    file: str
    line: int
    words: str


def find_detached_starts(folder: Path, files: Iterable[str]) -> Iterator[DetachedStart]:
    """Yield the first such line of each file. ``files`` are relative to ``folder``."""
    scanned = [name for name in sorted(files) if Path(name).suffix in _BY_SUFFIX and "node_modules" not in name]
    for name in scanned[:_MAX_FILES]:
        for number, line in enumerate(_read(folder / name).splitlines(), 1):
            match = _BY_SUFFIX[Path(name).suffix].search(line)
            if match and not line.lstrip().startswith(_COMMENT):
                yield DetachedStart(name, number, match[0].strip())
                break


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_MAX_BYTES).decode(errors="replace")
    except OSError:
        return ""
