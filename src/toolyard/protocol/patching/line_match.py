"""A text as lines, and the ways in which lines of a patch can be found among them.

What ends a line is a matter of view. A unified diff sees ``\\n`` alone and takes a ``\\r`` before it as text. People
and the other patch language see ``\\r\\n`` and ``\\n``, or ``\\r`` in a text that has nothing else. Only for lines
that are found neither way is a ``\\r`` among other endings taken for one.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from toolyard.protocol.edits.lenient_match import ALIKE, BLANKS, measure_indent, reindent
from toolyard.protocol.edits.text_edit import Strategy
from toolyard.protocol.patching.file_change import Mark, PatchHunk, PatchLine


class LineView(Enum):
    RAW = re.compile("\n")
    PLAIN = re.compile("\r\n|\n")
    LOOSE = re.compile("\r\n|\n|\r")


class LineIndex(NamedTuple):
    """The lines under a key, and where each one stands."""

    keys: list[str]
    positions: dict[str, list[int]]


class TextLines:
    """Lines without their endings, where each one starts (and, last, where the text ends), and the endings."""

    def __init__(self, text: str, view: LineView) -> None:
        only_returns = view is LineView.PLAIN and "\r" in text and "\n" not in text
        self.view = view
        self.texts: list[str] = []
        self.endings: list[str] = []
        self.starts = [0]
        for ending in (LineView.LOOSE if only_returns else view).value.finditer(text):
            self._add(text[self.starts[-1] : ending.start()], ending[0])
        if self.starts[-1] < len(text):
            self._add(text[self.starts[-1] :], "")
        self._indexes: dict[Callable[[str], str], LineIndex] = {}

    def _add(self, text: str, ending: str) -> None:
        self.texts.append(text)
        self.endings.append(ending)
        self.starts.append(self.starts[-1] + len(text) + len(ending))

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def has_final_ending(self) -> bool:
        """Return whether a line added at the end needs no ending put before it."""
        return not self.endings or self.endings[-1] != ""

    def index_by(self, key: Callable[[str], str]) -> LineIndex:
        if key not in self._indexes:
            raw = self.view is LineView.RAW
            texts = map(str.__add__, self.texts, self.endings) if raw else self.texts
            keys = list(map(key, texts))
            positions: dict[str, list[int]] = {}
            for at, line in enumerate(keys):
                positions.setdefault(line, []).append(at)
            self._indexes[key] = LineIndex(keys, positions)
        return self._indexes[key]


class MatchLevel(NamedTuple):
    """A way to find lines, and what it forgives."""

    strategy: Strategy
    view: LineView
    key: Callable[[str], str]

    @property
    def is_literal(self) -> bool:
        """Return whether it forgives nothing but the ending of a line."""
        return self.key is identity and self.view is not LineView.LOOSE


def identity(line: str) -> str:
    return line


def _strip_trailing_blanks(line: str) -> str:
    return line.rstrip(BLANKS)


def _normalize_look(line: str) -> str:
    return line.rstrip(BLANKS).translate(ALIKE)


def strip_margin(line: str) -> str:
    return line.strip(BLANKS).translate(ALIKE)


EXACT = MatchLevel(Strategy.EXACT, LineView.PLAIN, identity)
_FORGIVING = (
    MatchLevel(Strategy.TRAILING_BLANKS, LineView.PLAIN, _strip_trailing_blanks),
    MatchLevel(Strategy.PUNCTUATION, LineView.PLAIN, _normalize_look),
    MatchLevel(Strategy.INDENTATION, LineView.PLAIN, strip_margin),
    MatchLevel(Strategy.LINE_ENDINGS, LineView.LOOSE, identity),
)
LEVELS: tuple[MatchLevel, ...] = (EXACT, *_FORGIVING)
UNIFIED_LEVELS: tuple[MatchLevel, ...] = (
    MatchLevel(Strategy.EXACT, LineView.RAW, identity),
    MatchLevel(Strategy.LINE_ENDINGS, LineView.PLAIN, identity),
    *_FORGIVING,
)


@dataclass(frozen=True, slots=True)
class HunkSearch:
    """The old lines of a hunk, looked for in one way."""

    hunk: PatchHunk
    level: MatchLevel
    lines: TextLines
    keys: list[str]

    @classmethod
    def build(cls, hunk: PatchHunk, level: MatchLevel, lines: TextLines) -> "HunkSearch":
        raw = level.view is LineView.RAW
        return cls(hunk, level, lines, [level.key(line.text + line.ending if raw else line.text) for line in hunk.old])

    @property
    def is_possible(self) -> bool:
        """Blank lines are alike everywhere, so they are found only as they are, and so is context without marks."""
        if self.level.is_literal:
            return True
        return not self.hunk.bare and any(key.strip() for key in self.keys)

    def fits_at(self, first: int) -> bool:
        if not self.is_possible or not self.resembles_at(first):
            return False
        return self.level.strategy is not Strategy.INDENTATION or self.build_added_lines(first) is not None

    def resembles_at(self, first: int) -> bool:
        """Return whether the lines there could be meant, be it certain or not."""
        keys = self.lines.index_by(self.level.key).keys
        last = len(keys) - len(self.keys)
        if not 0 <= first <= last or (self.hunk.at_end and first != last):
            return False
        return keys[first : first + len(self.keys)] == self.keys

    def find_rarest_line(self) -> tuple[int, list[int]]:
        """The old line that stands least often in the text, by its number, and where it stands."""
        positions = self.lines.index_by(self.level.key).positions
        places = [positions.get(key, []) for key in self.keys]
        offset = min(range(len(places)), key=lambda at: len(places[at]))
        return offset, places[offset]

    def build_added_lines(self, first: int) -> tuple[str, ...] | None:
        """The added lines as they read there; None when one indentation cannot explain how the lines differ."""
        if self.level.strategy is not Strategy.INDENTATION:
            return tuple(line.text for line in self.hunk.lines if line.mark is Mark.ADD)
        real_lines = self.lines.texts[first : first + len(self.keys)]
        new = self.hunk.new
        moved = reindent([line.text for line in self.hunk.old], real_lines, "\n".join(line.text for line in new))
        return None if moved is None or self._may_lack_mark(real_lines) else tuple(_select_added(moved, new))

    def _may_lack_mark(self, real_lines: list[str]) -> bool:
        """Return whether the lines may differ because context lost its mark: then the indentation is not certain.

        The mark is one space and indentations are even, so the sum is odd. A dropped line has another mark.
        """
        pairs = [(line, real) for line, real in zip(self.hunk.old, real_lines, strict=True) if line.text.strip(BLANKS)]
        if any(line.mark is Mark.DROP for line, _ in pairs):
            return False
        less, more = sorted((measure_indent(pairs[0][0].text), measure_indent(pairs[0][1])), key=len)
        shift = more.removesuffix(less)
        return len(shift) % 2 == 1 and not shift.strip(" ")


def _select_added(moved: str, new: tuple[PatchLine, ...]) -> Iterator[str]:
    for text, line in zip(moved.split("\n"), new, strict=True):
        if line.mark is Mark.ADD:
            yield text
