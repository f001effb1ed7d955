"""The changes between two texts as hunks: equal to ``structuredPatch`` of npm ``diff`` 7.

Most edits change one place: one line, or lines that stand nowhere else. Then there is only one way to match all other
lines, and the lines around that place are enough: to split two whole texts into lines would take longer than the edit.
For all others the equal lines are searched for within a budget of steps and memory: texts that differ
in thousands of lines get coarse hunks, which are right but perhaps not the shortest.

The search is Myers' greedy one (An O(ND) Difference Algorithm, 1986). Many edit scripts are equally short; the one that
npm ``diff`` gives comes out when, of two paths that got equally far, the one that removes a line is kept. The search
has a budget of steps, and it keeps one number of 4 bytes per step, so the budget bounds its memory too. Of texts that
differ too much for it come coarse runs: right, but perhaps not the longest, found around the lines that stand once in
both.
"""

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, AnyStr, Final, NamedTuple, TypedDict, cast

if TYPE_CHECKING:
    from toolyard.protocol.json import Json


CONTEXT = 3
NO_NEWLINE = "\\ No newline at end of file"
MAX_LINES: Final = 100_000  # of both texts that are searched for equal ones: half a second, 40 MB
_FEW = 16  # changed lines that are looked up one by one
_STRIDE = 16 * 1024  # characters compared at once
MAX_STEPS: Final = 1_000_000  # of one exact search: a quarter of a second, 4 MB
MAX_COARSE_STEPS: Final = 500_000  # of all gaps between anchors together
_GAP_STEPS = 20_000  # of one gap between two anchors
_RUN_STEP = 4  # lines compared along a run cost as much as one step


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


class Changes(NamedTuple):
    """The changed regions in order; between two of them stands at least one equal line.

    ``exact``: they are the shortest edit script. Else the search went over its budget, and they are merely right.
    """

    regions: list[Change]
    exact: bool = True


@dataclass(frozen=True, slots=True)
class Patch:
    """The hunks between two texts; ``exact``: those of npm ``diff``, else coarser ones that are right all the same."""

    hunks: list[Hunk]
    exact: bool = True

    def to_json(self) -> "list[Json]":
        return cast("list[Json]", self.hunks)


def structured_patch(old: str, new: str, context: int = CONTEXT) -> list[Hunk]:
    """The hunks that turn ``old`` into ``new``, with ``context`` unchanged lines around the changes."""
    return build_patch(old, new, context).hunks


def build_patch(old: str, new: str, context: int = CONTEXT) -> Patch:
    """The patch that turns ``old`` into ``new``, with ``context`` unchanged lines around the changes."""
    first, old, new = _cut_around_change(old, new, context)
    return _build_hunks(split_lines(old), split_lines(new), first, context)


def _build_hunks(old_lines: list[str], new_lines: list[str], first: int, context: int) -> Patch:
    """The patch of two texts that begin after ``first`` equal lines."""
    changes = find_changes(old_lines, new_lines)
    groups: list[list[Change]] = []
    for change in changes.regions:
        if groups and change.old_start - groups[-1][-1].old_end <= 2 * context:
            groups[-1].append(change)
        else:
            groups.append([change])
    return Patch([_build_hunk(group, old_lines, new_lines, first, context) for group in groups], changes.exact)


def split_lines(text: str) -> list[str]:
    """Lines without their ``\\n``; a last line that has none is marked by one, so that it differs from a whole line."""
    lines = text.split("\n")
    if lines[-1]:
        lines[-1] += "\n"
    else:
        lines.pop()
    return lines


def find_changes(old: list[str], new: list[str]) -> Changes:
    """Find the changed regions between two lists of lines."""
    start = _count_equal_lines(old, new)
    a, b = old[start:], new[start:]
    end = _count_equal_lines(a[::-1], b[::-1])
    gone, come = a[: len(a) - end], b[: len(b) - end]
    if len(gone) + len(come) <= _FEW and not any(line in b for line in gone) and not any(line in a for line in come):
        # Most edits: one place, lines that stand nowhere else, so there is nothing to search.
        return Changes([Change(start, start + len(gone), start, start + len(come))] if gone or come else [])
    left, right = set(a), set(b)
    rest = [line for line in a if line in right]
    if rest == [line for line in b if line in left]:
        # All other lines are new or gone: there is only one way to match these, whatever the search.
        removed = [at for at, line in enumerate(a) if line not in right]
        added = [at for at, line in enumerate(b) if line not in left]
        changes = Changes(list(_pair_changes(removed, added)))
    elif len(a) + len(b) > MAX_LINES:
        changes = Changes([Change(0, len(gone), 0, len(come))], exact=False)
    else:
        changes = _search_changes(a, b)
    return changes._replace(regions=[Change(*(place + start for place in change)) for change in changes.regions])


def _count_equal_lines(old: list[str], new: list[str]) -> int:
    """Count the lines that are equal from the start."""
    at, block = 0, 1024
    while old[at : at + block] == new[at : at + block] and at < len(old):
        at += block
    pairs = zip(old[at : at + block], new[at : at + block], strict=False)
    return min(
        len(old), at + next((n for n, (x, y) in enumerate(pairs) if x != y), min(len(old), len(new), at + block) - at)
    )


def _pair_changes(gone: list[int], come: list[int]) -> Iterator[Change]:
    """Regions from the places of removed and added lines, when all other lines match in order."""
    removed = Counter(at - number for number, at in enumerate(gone))  # by how many matching lines stand before them
    added = Counter(at - number for number, at in enumerate(come))
    x = y = 0
    for before in sorted(removed.keys() | added.keys()):
        old_start, new_start = before + x, before + y
        x, y = x + removed[before], y + added[before]
        yield Change(old_start, before + x, new_start, before + y)


def _search_changes(old: list[str], new: list[str]) -> Changes:
    ids: dict[str, int] = {}
    a = [ids.setdefault(line, len(ids)) for line in old]
    b = [ids.setdefault(line, len(ids)) for line in new]
    runs, exact = find_equal_runs(a, b)
    regions: list[Change] = []
    x = y = 0
    for run in (*runs, Run(len(a), len(b), 0)):
        if run.old > x or run.new > y:
            regions.append(Change(x, run.old, y, run.new))
        x, y = run.old + run.length, run.new + run.length
    return Changes(regions, exact)


def _build_hunk(group: list[Change], old: list[str], new: list[str], skipped: int, context: int) -> Hunk:
    first, last = group[0], group[-1]
    old_start = max(0, first.old_start - context)
    old_end = min(len(old), last.old_end + context)
    new_start = first.new_start - (first.old_start - old_start)
    new_end = last.new_end + (old_end - last.old_end)
    lines: list[str] = []
    at = old_start
    for change in group:
        lines += _mark_lines(" ", old[at : change.old_start])
        lines += _mark_lines("-", old[change.old_start : change.old_end])
        lines += _mark_lines("+", new[change.new_start : change.new_end])
        at = change.old_end
    lines += _mark_lines(" ", old[at:old_end])
    return {
        "oldStart": skipped + old_start + 1,
        "oldLines": old_end - old_start,
        "newStart": skipped + new_start + 1,
        "newLines": new_end - new_start,
        "lines": lines,
    }


def _mark_lines(mark: str, lines: list[str]) -> Iterator[str]:
    for line in lines:
        if line.endswith("\n"):
            yield mark + line[:-1]
            yield NO_NEWLINE
        else:
            yield mark + line


def count_common_start(old: AnyStr, new: AnyStr) -> int:
    """Count the items that are equal from the start."""
    at, step, most = 0, _STRIDE, min(len(old), len(new))
    while step:
        if at + step <= most and new.startswith(old[at : at + step], at):
            at += step
        else:
            step //= 2
    return at


def count_common_end(old: AnyStr, new: AnyStr, start: int) -> int:
    """Count the items that are equal at the end, none of them before ``start``."""
    at, step, most = 0, _STRIDE, min(len(old), len(new)) - start
    while step:
        if at + step <= most and new.startswith(old[len(old) - at - step : len(old) - at], len(new) - at - step):
            at += step
        else:
            step //= 2
    return at


def _cut_around_change(old: str, new: str, context: int) -> tuple[int, str, str]:
    """Cut two texts to what their hunks need; also return how many lines stand before it."""
    start = old.rfind("\n", 0, count_common_start(old, new)) + 1
    end = _count_equal_end(old, new, start)
    gone, come = split_lines(old[start : len(old) - end]), split_lines(new[start : len(new) - end])
    if end in (len(old), len(new)) or len(gone) + len(come) > _FEW:
        return 0, old, new
    if len(gone) == len(come) == 1:  # any other way to match the rest would shift the line that follows
        again = old.startswith((f"{gone[0]}\n", f"{come[0]}\n"), len(old) - end)
    else:
        again = _stands_elsewhere(gone, come, new, end) or _stands_elsewhere(come, gone, old, end)
    if again:
        return 0, old, new
    first, last = start, len(old) - end
    for _ in range(context):
        first = old.rfind("\n", 0, max(0, first - 1)) + 1
        last = old.find("\n", last) + 1 or len(old)
    return old.count("\n", 0, first), old[first:last], new[first : len(new) - len(old) + last]


def _count_equal_end(old: str, new: str, start: int) -> int:
    """Count the characters of whole lines that are equal at the end, none of them before ``start``."""
    at = count_common_end(old, new, start)
    if all(len(text) - at == start or text[len(text) - at - 1] == "\n" for text in (old, new)):
        return at
    newline = old.find("\n", len(old) - at)
    return len(old) - newline - 1 if newline >= 0 else 0


def _stands_elsewhere(lines: list[str], others: list[str], text: str, end: int) -> bool:
    """Return whether one of ``lines`` is among ``others`` or a line of the last ``end`` characters of ``text``."""
    return any(
        line in others or text.find(f"\n{line}\n", len(text) - end - 1) >= 0 or text.endswith(f"\n{line}")
        for line in lines
    )


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
