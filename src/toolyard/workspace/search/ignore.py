"""The ignore rules of the project's ``.gitignore`` files, exactly as git applies them.

Rules of a deeper folder come after those of the folders above it, and the last rule that matches decides. A folder that
is left out is not entered, so a rule inside it can bring nothing back. Our own stored outputs are always left out.
Git counts by bytes: a ``?`` is one byte of a name, not one character, so rules and names are compared ``to_byte_text``.
"""

import os
import stat
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from toolyard.workspace.search.wildcard import Segment, compile_path, matches_path

if TYPE_CHECKING:
    from toolyard.workspace.workspace import Workspace

FILE_NAME = ".gitignore"
OUTPUT_FOLDER = "tool-output"
_MAX_BYTES = 1024 * 1024  # of one ignore file


class _Rule(NamedTuple):
    segments: tuple[Segment, ...]
    negated: bool
    folders_only: bool


class IgnoreRules(NamedTuple):
    """The rules that hold in one folder: its own after its parents'. ``depth`` of a layer is where its paths begin."""

    layers: tuple[tuple[int, tuple[_Rule, ...]], ...] = ()

    def with_lines(self, lines: Iterable[str], depth: int) -> "IgnoreRules":
        rules = tuple(rule for rule in map(_parse_rule, map(to_byte_text, lines)) if rule)
        return IgnoreRules((*self.layers, (depth, rules))) if rules else self

    def is_left_out(self, path: tuple[str, ...], *, is_folder: bool) -> bool:
        """Return whether the rules leave out ``path`` itself (its segments, from the root), not a folder above it."""
        return path == (OUTPUT_FOLDER,) or self.is_ignored(path, is_folder=is_folder)

    def is_ignored(self, path: tuple[str, ...], *, is_folder: bool) -> bool:
        path = tuple(map(to_byte_text, path))
        for depth, rules in reversed(self.layers):
            below = path[depth:]
            for rule in reversed(rules):
                if (is_folder or not rule.folders_only) and matches_path(rule.segments, below):
                    return not rule.negated
        return False


def to_byte_text(name: str) -> str:
    """A name or a rule with one character for each of its bytes."""
    return name if name.isascii() else name.encode(errors="surrogateescape").decode("latin-1")


def read_rules(folder: int) -> list[str]:
    """The lines of the ``.gitignore`` in an open folder; a link is not followed, just as in git."""
    try:
        fd = os.open(FILE_NAME, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=folder)
    except OSError:
        return []  # none there, or none that we may read: then it has no rules for us
    try:
        return split_lines(os.read(fd, _MAX_BYTES)) if stat.S_ISREG(os.fstat(fd).st_mode) else []
    except OSError:
        return []
    finally:
        os.close(fd)


def read_rules_above(workspace: "Workspace", path: tuple[str, ...]) -> IgnoreRules:
    """The ignore rules of the folders from the root down to the one at ``path``, which brings its own."""
    rules = IgnoreRules()
    for depth in range(len(path)):
        with workspace.open_folder("/".join(path[:depth]) or ".") as above:
            rules = rules.with_lines(read_rules(above.fd), depth)
    return rules


def split_lines(raw: bytes) -> list[str]:
    """Bytes that are not UTF-8 stand for themselves, as they do in the file names that the system gives us."""
    lines = raw.decode(errors="surrogateescape").removeprefix("\ufeff").split("\n")
    return [line.removesuffix("\r") for line in lines]


def _parse_rule(line: str) -> _Rule | None:
    line = _strip_trailing_spaces(line)
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


def _strip_trailing_spaces(line: str) -> str:
    """Trailing spaces do not count, but one behind a backslash that is not itself escaped is meant."""
    bare = line.rstrip(" ")
    escaped = (len(bare) - len(bare.rstrip("\\"))) % 2
    return line[: len(bare) + escaped]
