"""The one way to place all hunks of a file, if there is only one.

Hunks are written in the order of the file, so lines that repeat are told apart by the hunks around them. If the
leftmost way to place them all is also the rightmost, it is the only one. Hunks that fit in one place each, and to the
letter, may come in any order, because then no order is needed to find them.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from toolyard.protocol.failure import Reason
from toolyard.protocol.patching.lines import Sought


@dataclass(frozen=True, slots=True)
class Options:
    """The places where a hunk fits equally well, by their first lines, in order."""

    number: int  # of the hunk, from 1
    sought: Sought
    firsts: Sequence[int]

    def begin(self, first: int) -> int:
        return self.sought.lines.starts[first]

    def end(self, first: int) -> int:
        """Where the next hunk may begin: context may be shared, a change may not."""
        return self.sought.lines.starts[first + self.sought.hunk.reach]


@dataclass(frozen=True, slots=True)
class Place:
    sought: Sought
    first: int


class Unplaced(Exception):
    """A hunk, by its number from 1, that fits nowhere, or in more places than one (counted in lines from 0)."""

    def __init__(self, number: int, reason: Reason, why: str = "", firsts: Sequence[int] = ()) -> None:
        super().__init__(number, reason, why, firsts)
        self.number = number
        self.reason = reason
        self.why = why
        self.firsts = firsts


def missed(number: int, why: str) -> Unplaced:
    return Unplaced(number, Reason.NOT_FOUND_IN_FILE, why)


def chosen(found: Sequence[Options]) -> list[tuple[Options, int]]:
    """The one way to place all hunks: in their order if that decides, else each where it alone fits."""
    leftmost, rightmost = _leftmost(found), _rightmost(found)
    if leftmost is None or rightmost is None:
        for options in found:
            if len(options.firsts) > 1:
                raise Unplaced(options.number, Reason.NOT_UNIQUE, firsts=options.firsts)
        placed = sorted(((options, options.firsts[0]) for options in found), key=lambda it: it[0].begin(it[1]))
        loose = not all(options.sought.level.literal for options in found)
        for (one, first), (other, second) in pairwise(placed):
            if one.end(first) > other.begin(second):
                late = max(one, other, key=lambda options: options.number)
                raise missed(late.number, "Its lines stand only where another hunk changes them.")
            if loose and one.number > other.number:
                raise missed(
                    one.number, "Its lines stand before those of an earlier hunk, and not all hunks fit exactly."
                )
        return placed
    for options, first, last in zip(found, leftmost, rightmost, strict=True):
        if first != last:
            raise Unplaced(options.number, Reason.NOT_UNIQUE, firsts=options.firsts)
    return list(zip(found, leftmost, strict=True))


def _leftmost(found: Sequence[Options]) -> list[int] | None:
    chosen, free = [], 0
    for options in found:
        at = bisect_left(options.firsts, free, key=options.begin)
        if at == len(options.firsts):
            return None
        chosen.append(options.firsts[at])
        free = options.end(chosen[-1])
    return chosen


def _rightmost(found: Sequence[Options]) -> list[int] | None:
    chosen: list[int] = []
    for options in reversed(found):
        at = len(options.firsts)
        if chosen:
            after = found[-len(chosen)]
            at = bisect_right(options.firsts, after.begin(chosen[-1]), key=options.end)
        if not at:
            return None
        chosen.append(options.firsts[at - 1])
    return chosen[::-1]
