"""Which line endings new lines get in a text whose own may be mixed.

A ``\\r`` alone ends a line only in a text without any ``\\n``; elsewhere it is a character like others.
"""

import re

_ENDING = re.compile("\r\n|\n")
_LONE = re.compile("\r")


class Endings:
    """The line endings of a text, for what is put into it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._one = _LONE if "\r" in text and "\n" not in text else _ENDING

    def given(self, start: int, end: int, new: str) -> str:
        """``new`` with the line endings of the lines that it replaces; a line that stays keeps its own."""
        if "\n" not in new:
            return new
        old = self._text[start:end]
        endings = self._one.findall(old) or self._beside(start, end)
        if not endings:
            return new  # a text of one line has no line ending of its own
        lines = new.replace("\r\n", "\n").split("\n")
        if len(set(endings)) > 1:
            endings = _aligned(self._one.split(old), endings, lines)
        pieces = [lines[0]]
        for number, line in enumerate(lines[1:]):
            pieces += [endings[min(number, len(endings) - 1)], line]
        return "".join(pieces)

    def _beside(self, start: int, end: int) -> list[str]:
        """How the line ends in which a place stands; at the end of the text, how the line before it does."""
        text = self._text
        if after := self._one.search(text, end):
            return [after[0]]
        at = text.rfind("\r" if self._one is _LONE else "\n", 0, start)
        return [] if at < 0 else ["\r\n" if text[at - 1 : at + 1] == "\r\n" else text[at]]


def _aligned(old: list[str], endings: list[str], new: list[str]) -> list[str]:
    """An ending for every line of ``new`` but the last: its own for a line that stays, what is left for others."""
    most = min(len(old), len(new)) - 1
    first = next((number for number in range(most) if old[number] != new[number]), most)
    last = next((number for number in range(most - first) if old[-1 - number] != new[-1 - number]), most - first)
    left = endings[first : len(endings) - last] or endings[first : first + 1] or endings[-1:]
    between = len(new) - 1 - first - last
    middle = [left[min(number, len(left) - 1)] for number in range(between)]
    return [*endings[:first], *middle, *endings[len(endings) - last :]]
