"""The lines that two texts share, as runs: the search behind ``protocol.patch``.

It is Myers' greedy one (An O(ND) Difference Algorithm, 1986). Many edit scripts are equally short; the one that npm
``diff`` gives comes out when, of two paths that got equally far, the one that removes a line is kept. The search is
bounded: of texts that differ in thousands of lines come runs that are right but perhaps not the longest, found around
the lines that stand once in both texts.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeAlias

_MAX_STEPS = 4_000_000  # diagonals the exact search may visit: about a second
_GAP_STEPS = 20_000  # the same for one gap between two anchors


class Run(NamedTuple):
    """Equal lines in both texts, counted from 0."""

    old: int
    new: int
    length: int


_Path: TypeAlias = "tuple[_Path, Run] | None"  # the runs along a path, the last one first


def equal_runs(a: list[int], b: list[int]) -> Iterable[Run]:
    """The equal runs of two lists of line numbers, in order."""
    left, right = Counter(a), Counter(b)
    certain = (left - right).total() + (right - left).total()  # so many lines differ at the least
    if certain * certain // 4 <= _MAX_STEPS:
        found = _shortest(a, b, _MAX_STEPS)
        if found is not None:
            return found
    return _anchored(a, b)


def _shortest(a: list[int], b: list[int], max_steps: int) -> list[Run] | None:
    """The runs of the shortest edit script, or None when finding it takes more than ``max_steps``.

    ``reach[k]`` is how many old lines the best path on diagonal k (old lines minus new lines) has used, ``paths[k]``
    its runs. Odd and even diagonals take turns, so the same list holds the last round and this one.
    """
    n, m = len(a), len(b)
    a, b = [*a, -1], [*b, -2]  # ends that differ, so that no run goes past them
    middle, target = m + 1, n + 1
    reach: list[int] = [-1] * (n + m + 3)
    paths: list[_Path] = [None] * (n + m + 3)
    x = 0
    while a[x] == b[x]:
        x += 1
    reach[middle], paths[middle] = x, (None, Run(0, 0, x)) if x else None
    lowest, highest = -m, n  # diagonals beyond a path that has reached an end cannot win any more
    distance = 0
    while reach[target] != n:
        distance += 1
        low = max(-distance, lowest)
        low += (low + distance) & 1
        high = min(distance, highest)
        max_steps -= (high - low) // 2 + 1
        if max_steps < 0:
            return None
        for k in range(low, high + 1, 2):
            at = middle + k
            removed, added = reach[at - 1], reach[at + 1]
            can_add = added >= 0 and added - k <= m
            if 0 <= removed < n and not (can_add and removed < added):
                x, path = removed + 1, paths[at - 1]
            elif can_add:
                x, path = added, paths[at + 1]
            else:
                reach[at] = -1
                continue
            begin, y = x, x - k
            while a[x] == b[y]:
                x += 1
                y += 1
            reach[at] = x
            paths[at] = (path, Run(begin, begin - k, x - begin)) if x > begin else path
            if x == n:
                highest = min(highest, k - 1)
            if y == m:
                lowest = max(lowest, k + 1)
    return _in_order(paths[target])


def _in_order(path: _Path) -> list[Run]:
    runs: list[Run] = []
    while path is not None:
        path, run = path
        runs.append(run)
    return runs[::-1]


def _anchored(a: list[int], b: list[int]) -> Iterator[Run]:
    """Runs around the lines that stand once in both texts, in the same order; small gaps are searched exactly."""
    x = y = 0
    for old, new in (*_anchors(a, b), (len(a), len(b))):
        gap = _shortest(a[x:old], b[y:new], _GAP_STEPS) if x < old and y < new else None
        yield from (Run(run.old + x, run.new + y, run.length) for run in gap or ())
        if old < len(a):
            yield Run(old, new, 1)
        x, y = old + 1, new + 1


def _anchors(a: list[int], b: list[int]) -> list[tuple[int, int]]:
    """The longest series of pairs of unique lines that grows in both texts (patience sorting)."""
    counts_a, counts_b = Counter(a), Counter(b)
    where = {line: at for at, line in enumerate(b) if counts_b[line] == 1}
    pairs = [(at, where[line]) for at, line in enumerate(a) if counts_a[line] == 1 and line in where]
    tops: list[int] = []  # the smallest new position that ends a series of each length
    ends: list[int] = []  # the pair that does
    before: list[int] = []
    for number, (_, new) in enumerate(pairs):
        length = bisect_left(tops, new)
        tops[length : length + 1] = [new]
        ends[length : length + 1] = [number]
        before.append(ends[length - 1] if length else -1)
    series = []
    at = ends[-1] if ends else -1
    while at >= 0:
        series.append(pairs[at])
        at = before[at]
    return series[::-1]
