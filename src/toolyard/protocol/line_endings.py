"""Line endings of new lines in a text whose own may be mixed.

A ``\\r`` alone ends a line only in a text without any ``\\n``; elsewhere it is an ordinary character.
"""

import re
from bisect import bisect_left

_ENDING = re.compile("\r\n|\n")
_LONE = re.compile("\r")


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
