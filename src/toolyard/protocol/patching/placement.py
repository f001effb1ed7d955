"""The one way to place all hunks of a file, if there is only one.

Hunks are written in the order of the file, so lines that repeat are told apart by the hunks around them. If the
leftmost way to place them all is also the rightmost, it is the only one. Hunks that fit in one place each, and to the
letter, may come in any order, because then no order is needed to find them.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from toolyard.message import Message
from toolyard.protocol.failure import Reason
from toolyard.protocol.patching.line_match import HunkSearch


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
                raise not_found(
                    late.number,
                    Message("patch.lines_of_other_hunk", "Its lines stand only where another hunk changes them."),
                )
            if loose and one.number > other.number:
                raise not_found(
                    one.number,
                    Message(
                        "patch.lines_before_earlier_hunk",
                        "Its lines stand before those of an earlier hunk, and not all hunks fit exactly.",
                    ),
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
