"""ripgrep: finding the program, its command line, and its stderr.

It gets the folders and files that a walk has chosen and neither reads ignore files nor settings nor follows links. A
folder stands for the files directly in it; those it must not search are named one by one. Its own engine is linear;
PCRE2, for look-around and backreferences, is not, but its steps are bounded (S-19).
"""

import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from toolyard.workspace.search.batch import Batch
from toolyard.workspace.search.process import SearchProcess

_MAX_MESSAGE = 8192  # characters
_MAX_LINE = 64 * 1024  # the rest of a longer one tells nothing more
_SPECIAL = re.compile(rb"([\\*?\[\]{}!])")
_BINARY = re.compile(rb"ignoring \./(.*): found binary data at offset \d+", re.DOTALL)
_FAULT = re.compile(rb"(?:rg: )?\./(.*?): (PCRE2: .*|[^:]*?)(?: \(os error (\d+)\))?", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    pattern: str
    literal: bool = False
    ignore_case: bool = False
    multiline: bool = False
    before: int = 0
    after: int = 0
    pcre2: bool = False


class Engine(Protocol):
    """Something that searches batches of files and answers as ``rg --json`` does."""

    first_batch: int  # how many files to begin with
    largest_batch: int  # and how many to search in one batch
    parallel_batches: int  # how many batches to search at the same time

    def search(self, query: Query, batch: Batch, folder: int) -> SearchProcess:
        """Search the files of ``batch``, which are below the open ``folder``."""
        ...

    def search_file(self, query: Query, file: int, folder: int) -> SearchProcess:
        """Search one open file; ``folder`` is any open folder."""
        ...


def find_ripgrep() -> str | None:
    """The program: the one installed beside our interpreter, else the system's. None when there is none."""
    from shutil import which  # slow to import, and only a search needs it

    for place in (str(Path(sys.executable).parent), None):
        program = which("rg", path=place)
        if program is not None and os.path.isabs(program):  # never one from the folder we happen to be in
            return program
    return None


class Ripgrep:
    first_batch = 4000  # a few milliseconds of the walk
    largest_batch = 1_000_000
    parallel_batches = 2  # it uses all processors by itself: the second one only fills the gaps at start and end

    def __init__(self, program: str) -> None:
        self._program = program

    def search(self, query: Query, batch: Batch, folder: int) -> SearchProcess:
        arguments = [
            *self._base_command(query),
            "--max-depth=1",
            "--debug",
        ]  # only then it tells which files are binary
        if batch.hidden:
            arguments += ["--hidden", "--glob=!.git"]
        excluded = [b"--glob=!/" + _escape_glob(path) for path in batch.list_excluded()]
        return SearchProcess([*arguments, *excluded, "--", *(b"./" + path for path in batch.list_targets())], folder)

    def search_file(self, query: Query, file: int, folder: int) -> SearchProcess:
        return SearchProcess([*self._base_command(query), "--text", "--", "-"], folder, stdin=file)

    def _base_command(self, query: Query) -> Iterator[str]:
        yield from (self._program, "--json", "--no-config", "--no-ignore", "--no-mmap")
        yield "--ignore-case" if query.ignore_case else "--case-sensitive"
        yield from (f"--before-context={query.before}", f"--after-context={query.after}")
        if query.literal:
            yield "--fixed-strings"
        if query.multiline:
            yield from ("--multiline", "--multiline-dotall")
        if query.pcre2:
            yield "--pcre2"
        yield f"--regexp={query.pattern}"


@dataclass(slots=True)
class ErrorOutput:
    """The stderr of a search, read line by line. A name with a newline in it is miscounted at worst by one."""

    binary: set[bytes] = field(default_factory=set)  # files that are
    faults: dict[str, tuple[str, int]] = field(default_factory=dict)  # by path from the start: what, errno or 0
    message: str = ""  # its own words, when it could not search at all
    _rest: bytes = b""

    def feed(self, chunk: bytes) -> None:
        *lines, rest = (self._rest + chunk).split(b"\n")
        self._rest = rest[:_MAX_LINE]
        for line in lines:
            self._read_line(line)

    def _read_line(self, line: bytes) -> None:
        if b"DEBUG|" in line[:16]:
            if match := _BINARY.search(line):
                self.binary.add(match[1])
        elif match := _FAULT.fullmatch(line):
            path, what, number = match.groups()
            self.faults[_decode(path)] = (_decode(what), int(number or 0))
        elif len(self.message) < _MAX_MESSAGE:
            self.message += _decode(line.removeprefix(b"rg: ")) + "\n"


def _decode(raw: bytes) -> str:
    return raw.decode(errors="backslashreplace")


def _escape_glob(path: bytes) -> bytes:
    """A path as a pattern that matches it. Patterns must be UTF-8: a byte that is none is any one byte."""
    escaped = _SPECIAL.sub(rb"\\\1", path).decode(errors="surrogateescape").encode(errors="replace").decode()
    blank = escaped[-1:] if escaped[-1:].isspace() else ""  # which does not count at the end of a pattern
    return f"{escaped.removesuffix(blank)}{{{blank}}}".encode() if blank else escaped.encode()
