"""Which paths the project's ``.gitignore`` files leave out, exactly as git decides.

Rules of a deeper folder come after those of the folders above it, and the last rule that matches decides. A folder that
is left out is not entered, so a rule inside it can bring nothing back. Our own stored outputs are always left out.
"""

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass

from toolyard.workspace.wildcard import Segment, compile_path, matches

FILE_NAME = ".gitignore"
OUTPUT_FOLDER = "tool-output"
_MAX_BYTES = 1024 * 1024  # of one ignore file
_TRAILING = re.compile(r"(?<!\\)((?:\\\\)*)[ ]+$")


@dataclass(frozen=True, slots=True)
class _Rule:
    segments: tuple[Segment, ...]
    negated: bool
    folders_only: bool


@dataclass(frozen=True, slots=True)
class Ignores:
    """The rules that hold in one folder: its own after its parents'. ``depth`` of a layer is where its paths begin."""

    layers: tuple[tuple[int, tuple[_Rule, ...]], ...] = ()

    def with_lines(self, lines: Iterable[str], depth: int) -> "Ignores":
        rules = tuple(rule for rule in map(_parse, lines) if rule)
        return Ignores((*self.layers, (depth, rules))) if rules else self

    def leave_out(self, path: tuple[str, ...], *, is_folder: bool) -> bool:
        """Whether ``path`` (its segments, from the root) is left out by a rule that matches it itself."""
        if path == (OUTPUT_FOLDER,):
            return True
        for depth, rules in reversed(self.layers):
            below = path[depth:]
            for rule in reversed(rules):
                if (is_folder or not rule.folders_only) and matches(rule.segments, below):
                    return not rule.negated
        return False


def read_rules(folder: int) -> list[str]:
    """The lines of the ``.gitignore`` in an open folder; a link is not followed, just as in git."""
    try:
        fd = os.open(FILE_NAME, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=folder)
    except OSError:
        return []  # none there, or none that we may read: then it has no rules for us
    with os.fdopen(fd, "rb") as file:
        if not os.path.isfile(fd):
            return []
        return split_lines(file.read(_MAX_BYTES).decode(errors="surrogateescape"))


def split_lines(text: str) -> list[str]:
    return text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")


def _parse(line: str) -> _Rule | None:
    line = _TRAILING.sub(r"\1", line)
    if not line or line.startswith("#"):
        return None
    negated = line.startswith("!")
    pattern = line[negated:]
    folders_only = pattern.endswith("/")
    pattern = pattern.removesuffix("/")
    if not pattern:
        return None
    anchored = "/" in pattern
    pattern = pattern.removeprefix("/")
    return _Rule(compile_path(pattern if anchored else f"**/{pattern}"), negated, folders_only)
