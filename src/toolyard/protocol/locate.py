"""Locates an edit in a text, and returns the splices that carry it out.

The old text is searched exactly. Only when it occurs nowhere are differences of format forgiven, one step after the
other. A forgiving match must still be unique, and its strategy is reported. A ``\\r`` alone ends a line only in a
text without any ``\\n``. The time is linear in the text.
"""

import re
from bisect import bisect_left
from dataclasses import replace

from toolyard.message import Message
from toolyard.protocol.edit import Edit, Match, Splice, Strategy
from toolyard.protocol.failure import Failure, Reason
from toolyard.protocol.lenient_match import SEARCHES
from toolyard.protocol.line_endings import Endings
from toolyard.protocol.nearest import OLD_NAME, find_nearest_lines
from toolyard.protocol.occurrences import are_all, match_everywhere

_NEW_NAME = "new_string"


def locate(text: str, edit: Edit) -> Match:
    """Return the splices of one edit; raises Failure when the text is missing, not unique, or would not change."""
    if edit.old == edit.new:
        raise Failure(
            Reason.NO_CHANGE,
            Message(
                "file.strings_identical",
                "{old} and {new} are the same: nothing would change.",
                old=OLD_NAME,
                new=_NEW_NAME,
            ),
        )
    exact = list(match_everywhere(text, edit))
    if exact:
        match = _make_match(text, exact, edit, Strategy.EXACT)
        return replace(match, left=_count_left(text, edit, len(match.splices))) if edit.replace_all else match
    plain = _FoldedText(text)
    folded = Edit(plain.fold(edit.old), plain.fold(edit.new), edit.replace_all)
    for strategy, search in SEARCHES:
        splices = [
            Splice(plain.to_real(place.start), plain.to_real(place.end), place.text)
            for place in search(plain.text, folded)
        ]
        if splices:
            return _make_match(text, splices, edit, strategy)
    raise _not_found_failure(plain.text, folded.old)


class _FoldedText:
    """A text with all line endings as ``\\n``, and the mapping of positions back to the real one."""

    def __init__(self, text: str) -> None:
        self._lone = "\r" in text and "\n" not in text  # a file of old Macintosh lines
        self.text = self.fold(text)
        pairs = (match.start() for match in re.finditer("\r\n", text))
        self._pairs = [position - number for number, position in enumerate(pairs)]  # their positions in the plain text

    def fold(self, text: str) -> str:
        plain = text.replace("\r\n", "\n")
        return plain.replace("\r", "\n") if self._lone else plain

    def to_real(self, index: int) -> int:
        return index + bisect_left(self._pairs, index)


def _make_match(text: str, places: list[Splice], edit: Edit, strategy: Strategy) -> Match:
    if len(places) > 1 and not edit.replace_all:
        raise _not_unique_failure(text, places)
    endings = Endings(text) if "\n" in edit.new else None
    chosen: list[Splice] = []
    for place in places:
        if not chosen or place.start >= chosen[-1].end:  # "aa" occurs twice in "aaa" but can be replaced only once
            chosen.append(
                Splice(place.start, place.end, endings.fit(place.start, place.end, place.text)) if endings else place
            )
    if all(text[splice.start : splice.end] == splice.text for splice in chosen):
        raise Failure(
            Reason.NO_CHANGE,
            Message(
                "file.edit_already_made", "The text already reads like {new}: nothing would change.", new=_NEW_NAME
            ),
        )
    return Match(tuple(chosen), strategy)


def _count_left(text: str, edit: Edit, replaced: int) -> int:
    if "\n" not in edit.old or "\r\n" not in text:
        return 0
    alike = text.replace("\r\n", "\n").count(edit.old.replace("\r\n", "\n"))
    return max(0, alike - replaced)


def _not_unique_failure(text: str, places: list[Splice]) -> Failure:
    newline = "\n" if "\n" in text else "\r"
    lines = [text.count(newline, 0, place.start) + 1 for place in places[:10]]
    numbers = ", ".join(map(str, lines)) + (", ..." if len(places) > 10 else "")
    is_all = are_all(len(places), places[0].end - places[0].start)
    times = (
        Message("file.times", "{count} times", count=len(places))
        if is_all
        else Message("file.times_or_more", "{count} times or more", count=len(places))
    )
    return Failure(
        Reason.NOT_UNIQUE,
        Message(
            "file.old_string_not_unique",
            "{old} stands {times} in the file (in lines {numbers}).",
            old=OLD_NAME,
            times=times,
            numbers=numbers,
        ),
        hint=Message(
            "hint.more_text_or_replace_all", "Give more of the text around the one you mean, or set replace_all."
        ),
        data={"occurrences": len(places), "lines": list(lines)},
    )


def _not_found_failure(text: str, old: str) -> Failure:
    near = find_nearest_lines(text, old)
    if near is None:
        return Failure(
            Reason.NOT_FOUND_IN_FILE,
            Message(
                "file.old_string_not_found", "{old} does not stand in the file, nor anything like it.", old=OLD_NAME
            ),
            hint=Message("hint.read_and_copy", "Read the file and copy the text exactly."),
        )
    return Failure(
        Reason.NOT_FOUND_IN_FILE,
        Message(
            "file.old_string_near_match",
            "{old} does not stand in the file. The nearest lines are {first}-{last}; {difference}",
            old=OLD_NAME,
            first=near.first,
            last=near.last,
            difference=near.difference,
        ),
        hint=Message("hint.copy_marked_text", "Copy the text exactly as it stands there (· is a space, → a tab)."),
        data={"nearest": {"first_line": near.first, "last_line": near.last, "lines": list(near.lines)}},
    )
