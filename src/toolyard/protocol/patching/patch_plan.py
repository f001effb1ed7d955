"""Patches of several files: parsed, and checked against the files before anything is written.

``parse_patch`` reads ``*** Begin Patch`` and unified diffs; ``plan_files`` verifies every change against the current
texts and says what to write. All or nothing: the first change that does not fit is a Failure, and nothing is planned. A
plan is made of splices, so that what the patch does not touch stays as it is, byte for byte. Each file may be named
once: the changes are made at the same time, and none sees another.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from toolyard.message import Message, join_sentences
from toolyard.protocol.edits.text_edit import Nearest, Splice, Strategy, apply_splices, find_nearest_lines, make_visible
from toolyard.protocol.envelope import ErrorCode, Failure, Reason
from toolyard.protocol.json import JsonObject
from toolyard.protocol.patching.begin_patch import BEGIN, parse_begin_patch
from toolyard.protocol.patching.file_change import (
    FileChange,
    Mark,
    Operation,
    PatchHunk,
    PatchLine,
    Row,
    malformed_patch,
    split_rows,
)
from toolyard.protocol.patching.placement import (
    LineView,
    UnplacedHunk,
    append_lines,
    build_splices,
    drop_last_ending,
    join_lines,
)
from toolyard.protocol.patching.target_text import TargetText
from toolyard.protocol.patching.unified import is_unified, parse_unified

MAX_CHARACTERS = 10 * 1024 * 1024
_HEREDOC = re.compile(r"(?:(?:cat|apply_?patch|git apply)\s*)?<<-?\s*(['\"]?)(\w+)\1")
_FENCE = re.compile(r"(`{3,}|~{3,})\s*\w*")
_HOW_TO_WRITE = Message(
    "Write '*** Begin Patch' ... '*** End Patch', or a unified diff with '--- a/path' and '+++ b/path'."
)
_MAX_COMPARED = 1_000_000_000  # characters of the file times those of the longest line that is searched for in it


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """The planned change of one file; paths are as the patch writes them."""

    path: str
    operation: Operation
    new_path: str | None = None  # of a moved file
    before: str | None = None  # None when it is created
    splices: tuple[Splice, ...] = ()  # on ``before``
    text: str = ""  # of a created file
    strategy: Strategy = Strategy.EXACT  # the most forgiving one that was needed
    note: str = ""  # a request of the patch that is not carried out

    @property
    def after(self) -> str | None:
        """The complete new text; None when the file is deleted."""
        if self.operation is Operation.DELETE:
            return None
        return self.text if self.before is None else apply_splices(self.before, self.splices)


def parse_patch(patch: str) -> tuple[FileChange, ...]:
    """Parse a patch into its changes, in order; raises Failure naming the line that cannot be read."""
    if len(patch) > MAX_CHARACTERS:
        raise Failure(
            Reason.TOO_LARGE,
            Message(
                "The patch has {count} characters; the limit is {max_characters}.",
                count=len(patch),
                max_characters=MAX_CHARACTERS,
            ),
            hint=Message("Apply it in parts."),
        )
    rows = _unwrap_rows(split_rows(patch))
    first = next((at for at, row in enumerate(rows) if not row.is_blank), None)
    if first is None:
        raise Failure(ErrorCode.INVALID_PARAM, Message("The patch is empty."), hint=_HOW_TO_WRITE)
    if rows[first].text.strip() == BEGIN:
        return parse_begin_patch(rows[first:])
    if rows[first].text.lstrip().startswith("*** ") or not is_unified(rows):
        problem = Message("the patch must begin with '*** Begin Patch' or be a unified diff.")
        raise malformed_patch(rows[first], problem, _HOW_TO_WRITE)
    return parse_unified(rows)


def _unwrap_rows(rows: list[Row]) -> list[Row]:
    """Without the heredoc or the fence that a patch is often written in."""
    used = [at for at, row in enumerate(rows) if not row.is_blank]
    if not used:
        return rows
    first, last = rows[used[0]], rows[used[-1]]
    if heredoc := _HEREDOC.fullmatch(first.text.strip()):
        closing = heredoc[2]
    elif fence := _FENCE.fullmatch(first.text.strip()):
        closing = fence[1]
    else:
        return rows
    if last.text.strip() != closing:
        problem = Message(
            "what line {number} opens must be closed by a line '{closing}'.", number=first.number, closing=closing
        )
        raise malformed_patch(last, problem, _HOW_TO_WRITE)
    return rows[used[0] + 1 : used[-1]]


def plan_files(changes: Iterable[FileChange], read: Callable[[str], str | None]) -> tuple[PlannedFile, ...]:
    """Plan the writes in the order of the patch; ``read`` gives the text of a path, or None when there is no file."""
    changes = tuple(map(_simplify_move, changes))
    named: dict[str, FileChange] = {}
    for change in changes:
        for path in filter(None, (change.path, change.new_path)):
            if (other := named.setdefault(_plain_path(path), change)) is not change:
                raise _named_twice(path, other, change)
    return tuple(_plan_file(change, read) for change in changes)


def _plain_path(path: str) -> str:
    start = "/" if path.startswith("/") else ""
    return start + "/".join(part for part in path.split("/") if part not in {"", "."})


def _simplify_move(change: FileChange) -> FileChange:
    """A move to where the file already is changes only the text."""
    if change.new_path is not None and _plain_path(change.new_path) == _plain_path(change.path):
        return replace(change, operation=Operation.UPDATE, new_path=None)
    return change


def _plan_file(change: FileChange, read: Callable[[str], str | None]) -> PlannedFile:
    before = read(change.path)
    if change.operation is Operation.CREATE:
        if before is not None:
            hint: str = Message("Update the file instead of adding it, or choose another path.")
            if before == change.text:
                done = Message("It has exactly this text: the change seems to be made already.")
                hint = join_sentences(done, hint)
            raise _already_exists(change, change.path, hint)
        return PlannedFile(change.path, change.operation, text=change.text, note=change.note)
    if before is None:
        raise Failure(
            ErrorCode.NOT_FOUND,
            Message(
                "The patch wants to {operation} {path} (line {row}), but there is no such file.",
                operation=change.operation,
                path=change.path,
                row=change.row,
            ),
            hint=Message("Check the path, or add the file."),
            data={"path": change.path},
        )
    if change.new_path is not None and read(change.new_path) is not None:
        raise _already_exists(change, change.new_path, Message("Choose another path, or delete that file first."))
    planned = PlannedFile(change.path, change.operation, change.new_path, before, note=change.note)
    if change.hunks or change.operation is not Operation.DELETE:
        splices, strategy = _build_file_splices(change, before)
        planned = replace(planned, splices=splices, strategy=strategy)
    if change.operation is Operation.UPDATE and planned.after == before:
        raise Failure(
            Reason.NO_CHANGE,
            Message("The patch changes nothing in {path}.", path=change.path),
            hint=Message("Leave the file out of the patch."),
            data={"path": change.path},
        )
    if change.operation is Operation.DELETE and change.unified and apply_splices(before, planned.splices):
        raise Failure(
            Reason.NOT_FOUND_IN_FILE,
            Message("The patch deletes {path}, but the file has text that the patch does not show.", path=change.path),
            hint=Message("Read the file; to delete it whatever it holds, use '*** Delete File: path'."),
            data={"path": change.path},
        )
    return planned


def _build_file_splices(change: FileChange, before: str) -> tuple[tuple[Splice, ...], Strategy]:
    site = TargetText(before, unified=change.unified)
    placed: list[PatchHunk] = []
    added: list[PatchLine] = []
    for number, hunk in enumerate(change.hunks, 1):
        if len(hunk.old) > hunk.slack:
            placed.append(hunk)
        else:
            _require_at_end(change, number, site)
            added += hunk.new[: len(hunk.new) - hunk.slack]
    try:
        places = site.place_hunks(placed)
    except UnplacedHunk as unplaced:
        raise build_refusal(change, placed[unplaced.number - 1], unplaced, site) from None
    splices = [splice for place in places for splice in build_splices(place)]
    if added and change.unified:
        splices.append(Splice(0, 0, join_lines(added)))
    elif added:
        splices.append(append_lines(before, splices, site.split_lines(LineView.PLAIN), added))
    elif not change.unified:  # which says itself how the text ends
        splices = drop_last_ending(before, splices)
    strategies = list(Strategy)
    strategy = max((place.search.level.strategy for place in places), key=strategies.index, default=Strategy.EXACT)
    return tuple(splices), strategy


def _require_at_end(change: FileChange, number: int, site: TargetText) -> None:
    """Lines with no line of the file beside them go to its end, if nothing at all tells of another place."""
    hunk, texts = change.hunks[number - 1], site.split_lines(LineView.PLAIN).texts
    maybe_context = hunk.slack and not all(map(str.strip, texts))
    if texts and (change.unified or hunk.anchors or hunk.at is not None or maybe_context):
        raise Failure(
            Reason.NOT_UNIQUE,
            Message("{hunk} only adds lines and shows no line of the file beside them.", hunk=name_hunk(change, hunk)),
            hint=Message("Show the line before or after which they belong, with a space before it."),
            data={"path": change.path, "hunk": number},
        )


def _already_exists(change: FileChange, path: str, hint: str) -> Failure:
    return Failure(
        Reason.ALREADY_EXISTS,
        Message(
            "The patch wants to {operation} {path} (line {row}), but {path2} already exists.",
            operation=change.operation,
            path=change.path,
            row=change.row,
            path2=path,
        ),
        hint=hint,
        data={"path": path},
    )


def _named_twice(path: str, one: FileChange, other: FileChange) -> Failure:
    return Failure(
        ErrorCode.INVALID_PARAM,
        Message("The patch names {path} twice, in lines {row} and {row2}.", path=path, row=one.row, row2=other.row),
        hint=Message("Put all hunks of a file below one header, or apply two patches one after the other."),
        data={"path": path},
    )


def name_hunk(change: FileChange, hunk: PatchHunk) -> str:
    return Message(
        "Hunk {number} of {path} (line {row} of the patch)",
        number=change.hunks.index(hunk) + 1,
        path=change.path,
        row=hunk.row,
    )


def build_refusal(change: FileChange, hunk: PatchHunk, unplaced: UnplacedHunk, site: TargetText) -> Failure:
    data: JsonObject = {"path": change.path, "hunk": change.hunks.index(hunk) + 1}
    if unplaced.reason is Reason.NOT_FOUND_IN_FILE:
        return _build_not_found(name_hunk(change, hunk), hunk, unplaced.why, site, data)
    if unplaced.reason is Reason.TOO_LARGE:
        message = Message("{hunk}: its lines repeat too often in the file to be placed.", hunk=name_hunk(change, hunk))
        return Failure(unplaced.reason, message, hint=Message("Give each hunk lines that stand only once."), data=data)
    count, lines = len(unplaced.firsts), [first + 1 for first in unplaced.firsts[:10]]
    places = ", ".join(map(str, lines)) + (", ..." if count > len(lines) else "")
    return Failure(
        unplaced.reason,
        Message(
            "{hunk} fits in {count} places (lines {places}), and neither an anchor nor a line number nor the order "
            "of the hunks says which is meant.",
            hunk=name_hunk(change, hunk),
            count=count,
            places=places,
        ),
        hint=Message("Add lines around the one you mean, or an anchor such as '@@ def name():' above it."),
        data={**data, "occurrences": count, "lines": list(lines)},
    )


def _build_not_found(name: str, hunk: PatchHunk, why: str, site: TargetText, data: JsonObject) -> Failure:
    hint: str = Message("Read the file and copy the lines exactly as they stand there (· is a space, → a tab).")
    result = tuple(replace(line, mark=Mark.KEEP) for line in hunk.new)
    done = None if why else site.find_exact_line(replace(hunk, lines=result))
    near = _find_nearest(hunk, site)
    if near is not None:
        data["nearest"] = {"first_line": near.first, "last_line": near.last, "lines": list(near.lines)}
    if done is not None and any(line.text.strip() for line in result):
        cause: str = Message("This hunk seems to be applied already: its result stands at line {line}.", line=done)
        hint = Message("Leave this hunk out, unless you mean another place.")
    elif why:
        cause = why
    elif near is not None:
        cause = Message(
            "The nearest lines are {first}-{last}; {difference}",
            first=near.first,
            last=near.last,
            difference=near.difference,
        )
    else:
        cause = Message("Nothing in the file is like its line «{line}».", line=make_visible(hunk.old[0].text[:200]))
    if hunk.bare:
        bare = Message(
            "Begin each line of a hunk with a space, '-' or '+': one without was taken for a line that stays."
        )
        hint = join_sentences(bare, hint)
    return Failure(
        Reason.NOT_FOUND_IN_FILE,
        Message("{name} does not fit the file. {cause}", name=name, cause=cause),
        hint=hint,
        data=data,
    )


def _find_nearest(hunk: PatchHunk, site: TargetText) -> Nearest | None:
    text = "\n".join(site.split_lines(LineView.PLAIN).texts)
    old_lines = [line.text for line in hunk.old]
    if len(text) * max(map(len, old_lines)) > _MAX_COMPARED:
        return None
    return find_nearest_lines(text, "\n".join(old_lines), Message("the hunk"), full_lines=True)
