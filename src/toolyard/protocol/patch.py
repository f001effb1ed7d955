"""What changed between two texts, as hunks: equal to ``structuredPatch`` of npm ``diff`` 7.

The search is Myers' greedy one (An O(ND) Difference Algorithm, 1986). Many edit scripts are equally short; the one that
npm ``diff`` gives comes out when, of two paths that got equally far, the one that removes a line is kept. The search is
bounded: texts that differ in thousands of lines get hunks that are right but perhaps not the shortest, found around the
lines that stand once in both texts.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeAlias, TypedDict

CONTEXT = 3
NO_NEWLINE = "\\ No newline at end of file"
_MAX_STEPS = 4_000_000  # diagonals the exact search may visit: about a second
_FEW = 16  # changed lines that are looked up one by one
_GAP_STEPS = 20_000  # the same for one gap between two anchors


class Hunk(TypedDict):
    """Positions count from 1; each line begins with a space, ``-`` or ``+``."""

    oldStart: int
    oldLines: int
    newStart: int
    newLines: int
    lines: list[str]


class Change(NamedTuple):
    """Old lines ``old_start:old_end`` became new lines ``new_start:new_end``, counted from 0."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


class _Run(NamedTuple):
    """Equal lines in both texts, counted from 0."""

    old: int
    new: int
    length: int


_Path: TypeAlias = "tuple[_Path, _Run] | None"  # the runs along a path, the last one first


def structured_patch(old: str, new: str, context: int = CONTEXT) -> list[Hunk]:
    """The hunks that turn ``old`` into ``new``, with ``context`` unchanged lines around the changes."""
    old_lines, new_lines = split_lines(old), split_lines(new)
    groups: list[list[Change]] = []
    for change in changes(old_lines, new_lines):
        if groups and change.old_start - groups[-1][-1].old_end <= 2 * context:
            groups[-1].append(change)
        else:
            groups.append([change])
    return [_hunk(group, old_lines, new_lines, context) for group in groups]


def split_lines(text: str) -> list[str]:
    """Lines without their ``\\n``; a last line that has none is marked by one, so that it differs from a whole line."""
    lines = text.split("\n")
    if lines[-1]:
        lines[-1] += "\n"
    else:
        lines.pop()
    return lines


def changes(old: list[str], new: list[str]) -> Iterator[Change]:
    """The changed regions in order; between two of them stands at least one equal line."""
    start = _equal_lines(old, new)
    a, b = old[start:], new[start:]
    end = _equal_lines(a[::-1], b[::-1])
    gone, come = a[: len(a) - end], b[: len(b) - end]
    if len(gone) + len(come) <= _FEW and not any(line in b for line in gone) and not any(line in a for line in come):
        if gone or come:  # most edits: one place, lines that stand nowhere else, so there is nothing to search
            yield Change(start, start + len(gone), start, start + len(come))
        return
    left, right = set(a), set(b)
    rest = [line for line in a if line in right]
    if rest == [line for line in b if line in left]:
        # All other lines are new or gone: there is only one way to match these, whatever the search.
        removed = [at for at, line in enumerate(a) if line not in right]
        added = [at for at, line in enumerate(b) if line not in left]
        found = _between(removed, added)
    else:
        found = _searched(a, b)
    for change in found:
        yield Change(*(place + start for place in change))


def _equal_lines(old: list[str], new: list[str]) -> int:
    """How many lines are equal from the start."""
    at, block = 0, 1024
    while old[at : at + block] == new[at : at + block] and at < len(old):
        at += block
    pairs = zip(old[at : at + block], new[at : at + block], strict=False)
    return min(
        len(old), at + next((n for n, (x, y) in enumerate(pairs) if x != y), min(len(old), len(new), at + block) - at)
    )


def _between(gone: list[int], come: list[int]) -> Iterator[Change]:
    """Regions from the places of removed and added lines, when all other lines match in order."""
    removed = Counter(at - number for number, at in enumerate(gone))  # by how many matching lines stand before them
    added = Counter(at - number for number, at in enumerate(come))
    x = y = 0
    for before in sorted(removed.keys() | added.keys()):
        old_start, new_start = before + x, before + y
        x, y = x + removed[before], y + added[before]
        yield Change(old_start, before + x, new_start, before + y)


def _searched(old: list[str], new: list[str]) -> Iterator[Change]:
    ids: dict[str, int] = {}
    a = [ids.setdefault(line, len(ids)) for line in old]
    b = [ids.setdefault(line, len(ids)) for line in new]
    x = y = 0
    for run in (*_runs(a, b), _Run(len(a), len(b), 0)):
        if run.old > x or run.new > y:
            yield Change(x, run.old, y, run.new)
        x, y = run.old + run.length, run.new + run.length


def _hunk(group: list[Change], old: list[str], new: list[str], context: int) -> Hunk:
    first, last = group[0], group[-1]
    old_start = max(0, first.old_start - context)
    old_end = min(len(old), last.old_end + context)
    new_start = first.new_start - (first.old_start - old_start)
    new_end = last.new_end + (old_end - last.old_end)
    lines: list[str] = []
    at = old_start
    for change in group:
        lines += _marked(" ", old[at : change.old_start])
        lines += _marked("-", old[change.old_start : change.old_end])
        lines += _marked("+", new[change.new_start : change.new_end])
        at = change.old_end
    lines += _marked(" ", old[at:old_end])
    return {
        "oldStart": old_start + 1,
        "oldLines": old_end - old_start,
        "newStart": new_start + 1,
        "newLines": new_end - new_start,
        "lines": lines,
    }


def _marked(mark: str, lines: list[str]) -> Iterator[str]:
    for line in lines:
        if line.endswith("\n"):
            yield mark + line[:-1]
            yield NO_NEWLINE
        else:
            yield mark + line


def _runs(a: list[int], b: list[int]) -> Iterable[_Run]:
    """The equal runs of two lists of line numbers, in order."""
    left, right = Counter(a), Counter(b)
    certain = (left - right).total() + (right - left).total()  # so many lines differ at the least
    if certain * certain // 4 <= _MAX_STEPS:
        found = _shortest(a, b, _MAX_STEPS)
        if found is not None:
            return found
    return _anchored(a, b)


def _shortest(a: list[int], b: list[int], max_steps: int) -> list[_Run] | None:
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
    reach[middle], paths[middle] = x, (None, _Run(0, 0, x)) if x else None
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
            paths[at] = (path, _Run(begin, begin - k, x - begin)) if x > begin else path
            if x == n:
                highest = min(highest, k - 1)
            if y == m:
                lowest = max(lowest, k + 1)
    return _in_order(paths[target])


def _in_order(path: _Path) -> list[_Run]:
    runs: list[_Run] = []
    while path is not None:
        path, run = path
        runs.append(run)
    return runs[::-1]


def _anchored(a: list[int], b: list[int]) -> Iterator[_Run]:
    """Runs around the lines that stand once in both texts, in the same order; small gaps are searched exactly."""
    x = y = 0
    for old, new in (*_anchors(a, b), (len(a), len(b))):
        gap = _shortest(a[x:old], b[y:new], _GAP_STEPS) if x < old and y < new else None
        yield from (_Run(run.old + x, run.new + y, run.length) for run in gap or ())
        if old < len(a):
            yield _Run(old, new, 1)
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
