"""The matches of Grep as a model reads them: proved, decoded, cut to a readable length, with the lines around them.

ripgrep opens files by name, and a name may have led elsewhere for a moment. So every file in an answer is opened once
more through the workspace, without following links, and must still hold the line that was found (S-13, S-14).
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field

from toolyard.protocol.failure import Failure
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.result_limits import MAX_LINE_CHARS
from toolyard.tools.search_report import path_text
from toolyard.workspace.encoding import Encoding, can_decode
from toolyard.workspace.search.match_collector import FileRows, Row
from toolyard.workspace.workspace import OpenHandle, Workspace

_BEFORE_MATCH = 500  # characters shown before the match in a line that is cut
_PROOF = 4096  # bytes of a line that must still be there
_SAMPLE = 64 * 1024
_MAX_WIDE = 64 * 1024 * 1024  # bytes of a UTF-16 file that are read for the proof
_UTF8 = Encoding("utf-8", certain=False)


@dataclass(slots=True)
class MatchPage:
    """Files on their way into an answer."""

    workspace: Workspace
    base: str  # the folder that was searched: empty, or "a/b/"
    single: OpenHandle | None  # the one file that was searched
    fallbacks: Sequence[str]
    changed: list[str] = field(default_factory=list)  # files that no longer hold what was found in them
    cut: int = 0  # lines that are not shown whole

    def verify_files(self, files: Sequence[FileRows]) -> Iterator[tuple[str, FileRows, Encoding]]:
        """Each file with its path and encoding. Files that do not pass the proof are left out."""
        for file in files:
            path = self.single.path if self.single else path_text(self.base + os.fsdecode(file.path))
            try:
                with nullcontext(self.single) if self.single else self.workspace.open_file(path) as opened:
                    if self.single or (opened.path == path and all(_still_has_row(opened, row) for row in file.rows)):
                        yield path, file, self._choose_encoding(opened, file)
                        continue
            except Failure:
                pass  # gone, or not ours to read
            self.changed.append(path)

    def list_matches(
        self, path: str, file: FileRows, encoding: Encoding, before: int, after: int
    ) -> Iterator[JsonObject]:
        """The rows of a file, each with up to so many lines ``before`` and ``after`` it."""
        around: dict[int, Json] = {}
        if before or after:
            for row in (*file.rows, *file.around):
                lines = self._cut_text(row, encoding).split("\n")
                around |= {row.number + at: {"line": row.number + at, "text": line} for at, line in enumerate(lines)}
        for row in file.rows:
            match: JsonObject = {"file": path, "line": row.number, "text": self._cut_text(row, encoding, count=True)}
            if row.column is not None:
                match["column"] = row.column if row.utf8 else _count_column(row, encoding)
            if before:
                match["before"] = [around[n] for n in range(row.number - before, row.number) if n in around]
            if after:
                match["after"] = [around[n] for n in range(row.last + 1, row.last + after + 1) if n in around]
            yield match

    def _choose_encoding(self, opened: OpenHandle, file: FileRows) -> Encoding:
        """Choose the encoding of lines that are not UTF-8: the first fallback encoding that fits; never a guess."""
        if all(row.utf8 for row in (*file.rows, *file.around)):
            return _UTF8
        sample = os.pread(opened.fd, _SAMPLE, 0)
        whole = len(sample) == opened.stat.st_size
        fits = (name for name in self.fallbacks if can_decode(sample, name, whole=whole))
        return Encoding(next(fits, _UTF8.name))

    def _cut_text(self, row: Row, encoding: Encoding, *, count: bool = False) -> str:
        text = (_UTF8 if row.utf8 else encoding).to_utf8(row.raw).decode()
        if row.size == len(row.raw) and len(text) <= MAX_LINE_CHARS:
            return text
        self.cut += count
        at = len(row.raw[: (row.at or row.lead) - row.lead].decode(errors="ignore"))
        start = max(0, at - _BEFORE_MATCH) if at > MAX_LINE_CHARS - _BEFORE_MATCH else 0
        before = "… " if start or row.lead else ""
        size = "" if row.size is None else f": {row.size} bytes in all"
        return f"{before}{text[start : start + MAX_LINE_CHARS]}… [line cut{size}]"


def _count_column(row: Row, encoding: Encoding) -> int | None:
    """The column of a line that is not UTF-8, as its encoding counts."""
    if row.lead or row.at is None:
        return row.column
    return len(encoding.to_utf8(row.raw[: row.at]).decode()) + 1


def _still_has_row(opened: OpenHandle, row: Row) -> bool:
    expected = row.raw[:_PROOF]
    if os.pread(opened.fd, len(expected), row.offset) == expected:
        return True
    mark = os.pread(opened.fd, 3, 0)
    if mark == b"\xef\xbb\xbf":
        return os.pread(opened.fd, len(expected), row.offset + 3) == expected
    if mark[:2] in (b"\xff\xfe", b"\xfe\xff"):  # offsets count in UTF-8
        name = "utf-16-le" if mark[:1] == b"\xff" else "utf-16-be"
        line = expected.decode(errors="ignore").encode(name, errors="replace")
        return line in os.pread(opened.fd, _MAX_WIDE, 0)
    return False
