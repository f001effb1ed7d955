"""The failure of a hunk that has no place: which hunk, which line, what stands there, what to do."""

from dataclasses import replace

from toolyard.message import Message, join_sentences
from toolyard.protocol.failure import Failure, Reason
from toolyard.protocol.json import JsonObject
from toolyard.protocol.nearest import Nearest, find_nearest_lines, make_visible
from toolyard.protocol.patching.file_change import FileChange, Mark, PatchHunk
from toolyard.protocol.patching.line_match import LineView
from toolyard.protocol.patching.placement import UnplacedHunk
from toolyard.protocol.patching.target_text import TargetText

_MAX_COMPARED = 1_000_000_000  # characters of the file times those of the longest line that is searched for in it


def name_hunk(change: FileChange, hunk: PatchHunk) -> str:
    return Message(
        "patch.hunk_name",
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
        message = Message(
            "patch.hunk_too_repetitive",
            "{hunk}: its lines repeat too often in the file to be placed.",
            hunk=name_hunk(change, hunk),
        )
        return Failure(
            unplaced.reason,
            message,
            hint=Message("hint.unique_hunk_lines", "Give each hunk lines that stand only once."),
            data=data,
        )
    count, lines = len(unplaced.firsts), [first + 1 for first in unplaced.firsts[:10]]
    places = ", ".join(map(str, lines)) + (", ..." if count > len(lines) else "")
    return Failure(
        unplaced.reason,
        Message(
            "patch.hunk_ambiguous",
            "{hunk} fits in {count} places (lines {places}), and neither an anchor nor a line number nor the order "
            "of the hunks says which is meant.",
            hunk=name_hunk(change, hunk),
            count=count,
            places=places,
        ),
        hint=Message(
            "hint.add_lines_or_anchor",
            "Add lines around the one you mean, or an anchor such as '@@ def name():' above it.",
        ),
        data={**data, "occurrences": count, "lines": list(lines)},
    )


def _build_not_found(name: str, hunk: PatchHunk, why: str, site: TargetText, data: JsonObject) -> Failure:
    hint: str = Message(
        "hint.copy_lines", "Read the file and copy the lines exactly as they stand there (· is a space, → a tab)."
    )
    result = tuple(replace(line, mark=Mark.KEEP) for line in hunk.new)
    done = None if why else site.find_exact_line(replace(hunk, lines=result))
    near = _find_nearest(hunk, site)
    if near is not None:
        data["nearest"] = {"first_line": near.first, "last_line": near.last, "lines": list(near.lines)}
    if done is not None and any(line.text.strip() for line in result):
        cause: str = Message(
            "patch.applied_already",
            "This hunk seems to be applied already: its result stands at line {line}.",
            line=done,
        )
        hint = Message("hint.leave_hunk_out", "Leave this hunk out, unless you mean another place.")
    elif why:
        cause = why
    elif near is not None:
        cause = Message(
            "patch.nearest_lines",
            "The nearest lines are {first}-{last}; {difference}",
            first=near.first,
            last=near.last,
            difference=near.difference,
        )
    else:
        cause = Message(
            "patch.nothing_like_it",
            "Nothing in the file is like its line «{line}».",
            line=make_visible(hunk.old[0].text[:200]),
        )
    if hunk.bare:
        bare = Message(
            "hint.begin_hunk_lines",
            "Begin each line of a hunk with a space, '-' or '+': one without was taken for a line that stays.",
        )
        hint = join_sentences(bare, hint)
    return Failure(
        Reason.NOT_FOUND_IN_FILE,
        Message("patch.does_not_apply", "{name} does not fit the file. {cause}", name=name, cause=cause),
        hint=hint,
        data=data,
    )


def _find_nearest(hunk: PatchHunk, site: TargetText) -> Nearest | None:
    text = "\n".join(site.split_lines(LineView.PLAIN).texts)
    old_lines = [line.text for line in hunk.old]
    if len(text) * max(map(len, old_lines)) > _MAX_COMPARED:
        return None
    return find_nearest_lines(text, "\n".join(old_lines), Message("patch.the_hunk", "the hunk"), full_lines=True)
