"""Locates an edit in a text, and returns the splices that carry it out.

The old text is searched exactly. Only when it occurs nowhere are differences of format forgiven, one step after the
other. A forgiving match must still be unique, and its strategy is reported. A ``\\r`` alone ends a line only in a
text without any ``\\n``. The time is linear in the text.

New lines get the line endings of those around them, in a text whose own may be mixed. A ``\\r`` alone ends a line only
in a text without any ``\\n``; elsewhere it is an ordinary character.
"""

import re
from bisect import bisect_left
from dataclasses import replace

from toolyard.message import Message
from toolyard.protocol.edits.lenient_match import SEARCHES
from toolyard.protocol.edits.nearest_lines import OLD_NAME, find_nearest_lines
from toolyard.protocol.edits.text_edit import Edit, Match, Splice, Strategy, are_all, match_everywhere
from toolyard.protocol.envelope import Failure, Reason

_NEW_NAME = "new_string"
_ENDING = re.compile("\r\n|\n")
_LONE = re.compile("\r")


def locate(text: str, edit: Edit) -> Match:
    """Return the splices of one edit; raises Failure when the text is missing, not unique, or would not change."""
    if edit.old == edit.new:
        raise Failure(
            Reason.NO_CHANGE,
            Message("{old} and {new} are the same: nothing would change.", old=OLD_NAME, new=_NEW_NAME),
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
            Reason.NO_CHANGE, Message("The text already reads like {new}: nothing would change.", new=_NEW_NAME)
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
        Message("{count} times", count=len(places)) if is_all else Message("{count} times or more", count=len(places))
    )
    return Failure(
        Reason.NOT_UNIQUE,
        Message("{old} stands {times} in the file (in lines {numbers}).", old=OLD_NAME, times=times, numbers=numbers),
        hint=Message("Give more of the text around the one you mean, or set replace_all."),
        data={"occurrences": len(places), "lines": list(lines)},
    )


def _not_found_failure(text: str, old: str) -> Failure:
    near = find_nearest_lines(text, old)
    if near is None:
        return Failure(
            Reason.NOT_FOUND_IN_FILE,
            Message("{old} does not stand in the file, nor anything like it.", old=OLD_NAME),
            hint=Message("Read the file and copy the text exactly."),
        )
    return Failure(
        Reason.NOT_FOUND_IN_FILE,
        Message(
            "{old} does not stand in the file. The nearest lines are {first}-{last}; {difference}",
            old=OLD_NAME,
            first=near.first,
            last=near.last,
            difference=near.difference,
        ),
        hint=Message("Copy the text exactly as it stands there (· is a space, → a tab)."),
        data={"nearest": {"first_line": near.first, "last_line": near.last, "lines": list(near.lines)}},
    )


class Endings:
    """The line endings of a text, for text that is put into it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._one = _LONE if "\r" in text and "\n" not in text else _ENDING
        self._all: list[tuple[int, str]] | None = None  # position and text of each; computed once

    def fit(self, start: int, end: int, new: str) -> str:
        """Return ``new`` with the line endings of the lines that it replaces; a line that stays keeps its own."""
        if "\n" not in new:
            return new
        old = self._text[start:end]
        endings = self._one.findall(old) or self._ending_beside(start, end)
        if not endings:
            return new  # a text of one line has no line ending of its own
        lines = new.replace("\r\n", "\n").split("\n")
        if len(set(endings)) > 1:
            endings = _align_endings(self._one.split(old), endings, lines)
        pieces = [lines[0]]
        for number, line in enumerate(lines[1:]):
            pieces += [endings[min(number, len(endings) - 1)], line]
        return "".join(pieces)

    def _ending_beside(self, start: int, end: int) -> list[str]:
        """Return the ending of the line at a place; at the end of the text, that of the line before it."""
        if self._all is None:
            self._all = [(match.start(), match[0]) for match in self._one.finditer(self._text)]
        at = bisect_left(self._all, (end, ""))
        if at == len(self._all):
            at = bisect_left(self._all, (start, "")) - 1
        return [self._all[at][1]] if at >= 0 else []


def _align_endings(old: list[str], endings: list[str], new: list[str]) -> list[str]:
    """Return an ending for each line of ``new`` but the last: a kept line's own, the remaining ones for others."""
    most = min(len(old), len(new)) - 1
    first = next((number for number in range(most) if old[number] != new[number]), most)
    last = next((number for number in range(most - first) if old[-1 - number] != new[-1 - number]), most - first)
    left = endings[first : len(endings) - last] or endings[first : first + 1] or endings[-1:]
    between = len(new) - 1 - first - last
    middle = [left[min(number, len(left) - 1)] for number in range(between)]
    return [*endings[:first], *middle, *endings[len(endings) - last :]]
