"""The one way to place all hunks of a file, if there is only one.

Hunks are written in the order of the file, so lines that repeat are told apart by the hunks around them. If the
leftmost way to place them all is also the rightmost, it is the only one. Hunks that fit in one place each, and to the
letter, may come in any order, because then no order is needed to find them.

The splices of a placed hunk touch the changed lines alone. Lines that stay are not written again, so their blanks and
endings survive a match that forgave them. An added line ends like the line it takes the place of, or else like the line
before it. In a text whose last line has no ending, the last line still has none afterwards, unless a unified diff says
otherwise.

What ends a line is a matter of view. A unified diff sees ``\\n`` alone and takes a ``\\r`` before it as text. People
and the other patch language see ``\\r\\n`` and ``\\n``, or ``\\r`` in a text that has nothing else. Only for lines
that are found neither way is a ``\\r`` among other endings taken for one.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from typing import NamedTuple

from toolyard.message import Message
from toolyard.protocol.edits.text_edit import ALIKE, BLANKS, Splice, Strategy, apply_splices, measure_indent, reindent
from toolyard.protocol.envelope import Reason
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


@dataclass(frozen=True, slots=True)
class HunkCandidates:
    """The places where a hunk fits equally well, by their first lines, in order."""

    number: int  # of the hunk, from 1
    search: HunkSearch
    firsts: Sequence[int]

    def start_offset(self, first: int) -> int:
        return self.search.lines.starts[first]

    def end_offset(self, first: int) -> int:
        """Return the offset at which the next hunk may begin: context may be shared, a change may not."""
        return self.search.lines.starts[first + self.search.hunk.changed_reach]


@dataclass(frozen=True, slots=True)
class HunkPlace:
    search: HunkSearch
    first: int


class UnplacedHunk(Exception):
    """A hunk, by its number from 1, that fits nowhere, or in more places than one (counted in lines from 0)."""

    def __init__(self, number: int, reason: Reason, why: str = "", firsts: Sequence[int] = ()) -> None:
        super().__init__(number, reason, why, firsts)
        self.number = number
        self.reason = reason
        self.why = why
        self.firsts = firsts


def not_found(number: int, why: str) -> UnplacedHunk:
    return UnplacedHunk(number, Reason.NOT_FOUND_IN_FILE, why)


def choose_places(candidates: Sequence[HunkCandidates]) -> list[tuple[HunkCandidates, int]]:
    """The one way to place all hunks: in their order if that decides, else each where it alone fits."""
    leftmost, rightmost = _place_leftmost(candidates), _place_rightmost(candidates)
    if leftmost is None or rightmost is None:
        for options in candidates:
            if len(options.firsts) > 1:
                raise UnplacedHunk(options.number, Reason.NOT_UNIQUE, firsts=options.firsts)
        placed = sorted(
            ((options, options.firsts[0]) for options in candidates), key=lambda it: it[0].start_offset(it[1])
        )
        loose = not all(options.search.level.is_literal for options in candidates)
        for (one, first), (other, second) in pairwise(placed):
            if one.end_offset(first) > other.start_offset(second):
                late = max(one, other, key=lambda options: options.number)
                raise not_found(late.number, Message("Its lines stand only where another hunk changes them."))
            if loose and one.number > other.number:
                raise not_found(
                    one.number,
                    Message("Its lines stand before those of an earlier hunk, and not all hunks fit exactly."),
                )
        return placed
    for options, first, last in zip(candidates, leftmost, rightmost, strict=True):
        if first != last:
            raise UnplacedHunk(options.number, Reason.NOT_UNIQUE, firsts=options.firsts)
    return list(zip(candidates, leftmost, strict=True))


def _place_leftmost(candidates: Sequence[HunkCandidates]) -> list[int] | None:
    chosen, free = [], 0
    for options in candidates:
        at = bisect_left(options.firsts, free, key=options.start_offset)
        if at == len(options.firsts):
            return None
        chosen.append(options.firsts[at])
        free = options.end_offset(chosen[-1])
    return chosen


def _place_rightmost(candidates: Sequence[HunkCandidates]) -> list[int] | None:
    chosen: list[int] = []
    for options in reversed(candidates):
        at = len(options.firsts)
        if chosen:
            after = candidates[-len(chosen)]
            at = bisect_right(options.firsts, after.start_offset(chosen[-1]), key=options.end_offset)
        if not at:
            return None
        chosen.append(options.firsts[at - 1])
    return chosen[::-1]


@dataclass(frozen=True, slots=True)
class _Run:
    """Lines from ``first`` on that are dropped, and the lines that come in their place."""

    first: int
    dropped: tuple[PatchLine, ...]
    added: tuple[PatchLine, ...]
    texts: tuple[str, ...]  # of the added lines, as they read in this place

    @property
    def end(self) -> int:
        return self.first + len(self.dropped)


def build_splices(place: HunkPlace) -> Iterator[Splice]:
    lines = place.search.lines
    for run in map(_narrow_run, _list_runs(place)):
        if run.dropped or run.added:
            text = (
                join_lines(run.added)
                if lines.view is LineView.RAW
                else _write_run(run, lines, ended=_ends_with_ending(run, place))
            )
            behind = run.first == len(lines) and not lines.has_final_ending  # behind a last line that has no ending yet
            opening = _choose_endings(run, lines)[0] if behind else ""
            yield Splice(lines.starts[run.first], lines.starts[run.end], opening + text)


def append_lines(text: str, splices: Sequence[Splice], lines: TextLines, added: Sequence[PatchLine]) -> Splice:
    """Lines put at the end of a text, behind the splices that change it."""
    run = _Run(len(lines), (), tuple(added), tuple(line.text for line in added))
    new = _write_run(run, lines, ended=lines.has_final_ending)
    changed = apply_splices(text, tuple(splices))
    opening = "" if not changed or changed.endswith(("\n", "\r")) else _choose_endings(run, lines)[0]
    return Splice(len(text), len(text), opening + new)


def drop_last_ending(text: str, splices: Sequence[Splice]) -> list[Splice]:
    """Return the splices; where they drop a last line without an ending, the line before it loses its own."""
    ordered = sorted(splices, key=lambda splice: (splice.start, splice.end))
    start = len(text)
    while ordered and ordered[-1].end == start and not ordered[-1].text:
        start = ordered.pop().start
    if start in {0, len(text)} or text.endswith(("\n", "\r")):
        return list(splices)
    if ordered and ordered[-1].end == start:  # the last line that is left is a new one
        last = ordered.pop()
        return [*ordered, Splice(last.start, len(text), _strip_last_ending(last.text))]
    return [*ordered, Splice(len(_strip_last_ending(text[:start])), len(text), "")]


def _strip_last_ending(text: str) -> str:
    return text.removesuffix("\n").removesuffix("\r") if text.endswith("\n") else text.removesuffix("\r")


def join_lines(lines: Sequence[PatchLine]) -> str:
    return "".join(line.text + line.ending for line in lines)


def _list_runs(place: HunkPlace) -> Iterator[_Run]:
    texts = iter(place.search.build_added_lines(place.first) or ())
    at = place.first
    changed: list[PatchLine] = []
    for line in (*place.search.hunk.lines, None):
        if line is not None and line.mark is not Mark.KEEP:
            changed.append(line)
            continue
        dropped = tuple(line for line in changed if line.mark is Mark.DROP)
        added = tuple(line for line in changed if line.mark is Mark.ADD)
        yield _Run(at, dropped, added, tuple(next(texts) for _ in added))
        at += len(dropped) + 1
        changed = []


def _narrow_run(run: _Run) -> _Run:
    """Without the lines at either end that come back as they went."""
    both = min(len(run.dropped), len(run.added))
    head = 0
    while head < both and _is_same_line(run.dropped[head], run.added[head]):
        head += 1
    tail = 0
    while tail < both - head and _is_same_line(run.dropped[-1 - tail], run.added[-1 - tail]):
        tail += 1
    to_drop, to_add = len(run.dropped) - tail, len(run.added) - tail
    return _Run(run.first + head, run.dropped[head:to_drop], run.added[head:to_add], run.texts[head:to_add])


def _is_same_line(one: PatchLine, other: PatchLine) -> bool:
    return (one.text, one.ending) == (other.text, other.ending)


def _ends_with_ending(run: _Run, place: HunkPlace) -> bool:
    """Return whether the text ends with a line ending, if the run is its last lines: only a hunk changes that."""
    before, after = (any(not line.ending for line in side[-1:]) for side in (place.search.hunk.old, run.added))
    return place.search.lines.has_final_ending if before == after or not run.added else not after


def _write_run(run: _Run, lines: TextLines, *, ended: bool) -> str:
    endings = _choose_endings(run, lines)
    pieces = []
    for number, text in enumerate(run.texts):
        pieces += [text, endings[min(number, len(endings) - 1)]]
    if run.end == len(lines) and not ended:
        pieces = pieces[:-1]
    return "".join(pieces)


def _choose_endings(run: _Run, lines: TextLines) -> list[str]:
    """The endings of the dropped lines, else that of a line beside them, else one that the patch is written with."""
    if lines.view is LineView.LOOSE:
        return lines.endings[:1]  # no line tells which of so many kinds is the text's own: the first, as codex does
    dropped = [ending for ending in lines.endings[run.first : run.end] if ending]
    beside = [*lines.endings[max(0, run.first - 2) : run.first][::-1], *lines.endings[run.end : run.end + 1]]
    written = [line.ending for line in run.added]
    return dropped or [ending for ending in (*beside, *written, "\n") if ending][:1]
