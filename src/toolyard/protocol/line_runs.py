"""The lines that two texts share, as runs: the search behind ``protocol.patch``.

It is Myers' greedy one (An O(ND) Difference Algorithm, 1986). Many edit scripts are equally short; the one that npm
``diff`` gives comes out when, of two paths that got equally far, the one that removes a line is kept. The search has a
budget of steps, and it keeps one number of 4 bytes per step, so the budget bounds its memory too. Of texts that differ
too much for it come coarse runs: right, but perhaps not the longest, found around the lines that stand once in both.
"""

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from typing import Final, NamedTuple

MAX_STEPS: Final = 1_000_000  # of one exact search: a quarter of a second, 4 MB
MAX_COARSE_STEPS: Final = 500_000  # of all gaps between anchors together
_GAP_STEPS = 20_000  # of one gap between two anchors
_RUN_STEP = 4  # lines compared along a run cost as much as one step


class Run(NamedTuple):
    """Equal lines in both texts, counted from 0."""

    old: int
    new: int
    length: int


class EqualRuns(NamedTuple):
    """Equal runs in order; ``exact``: there is no shorter edit script than the one that they leave."""

    runs: list[Run]
    exact: bool


def find_equal_runs(a: list[int], b: list[int]) -> EqualRuns:
    """Find the equal runs of two lists of line numbers."""
    left, right = Counter(a), Counter(b)
    certain = (left - right).total() + (right - left).total()  # so many lines differ at the least
    if certain * certain // 4 <= MAX_STEPS:
        runs, _ = _find_shortest(a, b, MAX_STEPS)
        if runs is not None:
            return EqualRuns(runs, exact=True)
    return EqualRuns(list(_find_anchored_runs(a, b)), exact=False)


class _Round(NamedTuple):
    """The diagonals ``low``, ``low + 2``, ... of one round, and how many old lines each path had used after it."""

    low: int
    reach: "array[int]"

    def get(self, k: int) -> int | None:
        """Return what the path on diagonal ``k`` had used; None when this round did not visit it."""
        at = (k - self.low) // 2
        return self.reach[at] if 0 <= at < len(self.reach) else None


def _find_shortest(a: list[int], b: list[int], max_steps: int) -> tuple[list[Run] | None, int]:
    """The runs of the shortest edit script, or None when finding it takes more than ``max_steps``; and what is left.

    ``reach[k]`` is how many old lines the best path on diagonal k (old lines minus new lines) has used. Odd and even
    diagonals take turns, so the same list holds the last round and this one.
    """
    n, m = len(a), len(b)
    a, b = [*a, -1], [*b, -2]  # ends that differ, so that no run goes past them
    middle, target = m + 1, n + 1
    reach = array("i", [-1]) * (n + m + 3)
    x = 0
    while a[x] == b[x]:
        x += 1
    reach[middle] = x
    rounds = [_Round(0, array("i", [x]))]
    lowest, highest = -m, n  # diagonals beyond a path that has reached an end cannot win any more
    distance = 0
    while reach[target] != n:
        distance += 1
        low = max(-distance, lowest)
        low += (low + distance) & 1
        high = min(distance, highest)
        max_steps -= (high - low) // 2 + 1
        if max_steps < 0:
            return None, 0
        compared = 0
        for k in range(low, high + 1, 2):
            at = middle + k
            removed, added = reach[at - 1], reach[at + 1]
            can_add = added >= 0 and added - k <= m
            if 0 <= removed < n and not (can_add and removed < added):
                x = removed + 1
            elif can_add:
                x = added
            else:
                reach[at] = -1
                continue
            y = x - k
            if a[x] == b[y]:
                begin = x
                while a[x] == b[y]:
                    x += 1
                    y += 1
                compared += x - begin
            reach[at] = x
            if x == n:
                highest = min(highest, k - 1)
            if y == m:
                lowest = max(lowest, k + 1)
        max_steps -= compared // _RUN_STEP
        rounds.append(_Round(low, reach[middle + low : middle + high + 1 : 2]))
    return _trace_back(rounds, n - m, n, m), max_steps


def _trace_back(rounds: list[_Round], k: int, n: int, m: int) -> list[Run]:
    """Walk a search back from its end to its start, by the rule it chose its paths by; the runs in order."""
    runs: list[Run] = []
    number, x = len(rounds) - 1, n
    while number > 0:
        removal, removed = _find_last_visit(rounds, number, k - 1)
        addition, added = _find_last_visit(rounds, number, k + 1)
        can_add = added >= 0 and added - k <= m
        if 0 <= removed < n and not (can_add and removed < added):
            number, before, used, begin = removal, k - 1, removed, removed + 1
        else:
            number, before, used, begin = addition, k + 1, added, added
        if x > begin:
            runs.append(Run(begin, begin - k, x - begin))
        k, x = before, used
    if x:
        runs.append(Run(0, 0, x))
    return runs[::-1]


def _find_last_visit(rounds: list[_Round], number: int, k: int) -> tuple[int, int]:
    """The last round before ``number`` that visited a diagonal, and what its path had used; -1 when none did."""
    for earlier in range(number - 1, abs(k) - 1, -2):  # a round visits every second diagonal, as far as its number
        used = rounds[earlier].get(k)
        if used is not None:
            return earlier, used
    return -1, -1


def _find_anchored_runs(a: list[int], b: list[int]) -> Iterator[Run]:
    """Runs around the lines that stand once in both texts, in the same order; small gaps are searched exactly."""
    x = y = 0
    left = MAX_COARSE_STEPS
    for old, new in (*_find_anchors(a, b), (len(a), len(b))):
        if x < old and y < new and left > 0:
            most = min(_GAP_STEPS, left)
            gap, unused = _find_shortest(a[x:old], b[y:new], most)
            left -= most - unused
            yield from (Run(run.old + x, run.new + y, run.length) for run in gap or ())
        if old < len(a):
            yield Run(old, new, 1)
        x, y = old + 1, new + 1


def _find_anchors(a: list[int], b: list[int]) -> list[tuple[int, int]]:
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
