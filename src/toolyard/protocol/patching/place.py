"""Where the hunks of a patch stand in the text they are for.

Each hunk is looked for exactly; only when it stands nowhere are differences of format forgiven, in the steps of
``protocol.forgiven`` and never more. A place is taken when it is the only one: because the lines stand once, because
the patch numbers the line, because an anchor (``@@ def f():``) leaves one, or because of the order of the hunks. Else
nothing is chosen. The work is bounded: lines that repeat without end are refused, not tried out.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace

from toolyard.protocol.failure import Reason
from toolyard.protocol.lenient_match import measure_indent
from toolyard.protocol.patching.lines import (
    EXACT,
    LEVELS,
    UNIFIED_LEVELS,
    Level,
    Lines,
    Sought,
    View,
    as_it_is,
    without_margin,
)
from toolyard.protocol.patching.order import Options, Place, Unplaced, chosen, missed
from toolyard.protocol.patching.text import Mark, PatchHunk

_MAX_WORK = 1_000_000  # lines compared for one file: about half a second
_MAX_TRIED = 1000  # places looked at just to explain a failure


class Site:
    """A text in which hunks are to be placed."""

    def __init__(self, text: str, *, unified: bool = False) -> None:
        self._text = text
        self._levels = UNIFIED_LEVELS if unified else LEVELS
        self._views: dict[View, Lines] = {}
        self._scopes: dict[int, range] = {}
        self._work = 0
        self._number = 0  # of the hunk that is being placed
        if "\r" not in text or "\n" not in text:
            self._levels = tuple(level for level in self._levels if level.view is not View.LOOSE)

    def lines(self, view: View) -> Lines:
        if view not in self._views:
            self._views[view] = Lines(self._text, view)
        return self._views[view]

    def place(self, hunks: Sequence[PatchHunk]) -> list[Place]:
        """One place for each hunk, in the order of the text; raises Unplaced when one is not certain."""
        found: list[Options] = []
        shift: int | None = 0  # how far the text has moved against the line numbers of the patch; None: not known
        for number, hunk in enumerate(hunks, 1):
            self._number = number
            options = self._options(number, hunk if shift is not None else replace(hunk, at=None), shift or 0)
            found.append(options)
            if hunk.at is not None:
                shift = options.firsts[0] - hunk.at if len(options.firsts) == 1 else None
        return [Place(options.sought, first) for options, first in chosen(found)]

    def line_of(self, hunk: PatchHunk) -> int | None:
        """The number of the line where the old lines of a hunk stand exactly, if they do."""
        if not hunk.old:
            return None
        sought = Sought.of(hunk, EXACT, self.lines(EXACT.view))
        offset, places = sought.rarest()
        return next((at - offset + 1 for at in places[:_MAX_TRIED] if sought.fits(at - offset)), None)

    def _ways(self, hunk: PatchHunk) -> Iterator[Sought]:
        """The ways to look for a hunk, each tried only where those before it find nothing.

        Context as it stands, in case it has no marks, goes before all that is forgiven to context with marks.
        """
        literal = [level for level in self._levels if level.literal and not self._mute(hunk, level)]
        yield from (Sought.of(hunk, level, self.lines(level.view)) for level in literal)
        if (unmarked := hunk.unmarked) is not None:
            yield from (Sought.of(unmarked, level, self.lines(level.view)) for level in literal)
        yield from (Sought.of(hunk, level, self.lines(level.view)) for level in self._levels if not level.literal)

    def _mute(self, hunk: PatchHunk, level: Level) -> bool:
        """Whether the endings that a hunk writes prove nothing: no old line has one, and the text has others."""
        if level.view is not View.RAW or any(line.ending for line in hunk.old):
            return False
        return "\r\n" in self._text and all(line.ending != "\r\n" for line in hunk.lines)

    def _options(self, number: int, hunk: PatchHunk, shift: int) -> Options:
        parts = self._parts(number, hunk)
        for variant in _variants(hunk):
            for sought in self._ways(variant) if parts else ():
                if firsts := self._inside(parts, sought):
                    return Options(number, sought, firsts)
            for sought in self._ways(variant):
                if (pinned := _pinned(sought, shift)) is not None:
                    return Options(number, sought, [pinned])
                firsts = self._matches(sought)
                if firsts and (not parts or _only_one_behind(parts, firsts, sought)):
                    self._require_unnumbered(number, variant, shift, firsts)
                    return Options(number, sought, firsts)
        raise missed(number, "Its lines do not stand in the part that its anchor names." if parts else "")

    def _require_unnumbered(self, number: int, hunk: PatchHunk, shift: int, firsts: list[int]) -> None:
        """A better match elsewhere against one in the line that the patch names: no telling which is meant."""
        if hunk.at is not None:
            named = hunk.at + shift
            if named not in firsts and any(sought.resembles(named) for sought in self._ways(hunk)):
                raise Unplaced(number, Reason.NOT_UNIQUE, firsts=sorted({*firsts, named}))

    def _matches(self, sought: Sought) -> list[int]:
        if not sought.possible:
            return []
        if sought.hunk.at_end:
            last = len(sought.lines) - len(sought.keys)
            return [last] if sought.fits(last) else []
        offset, places = sought.rarest()
        self._spend(len(places) * len(sought.keys))
        return [at - offset for at in places if sought.fits(at - offset)]

    def _inside(self, parts: Sequence[range], sought: Sought) -> list[int]:
        """The places behind the anchors of those parts; one next to its anchor goes before others of its part."""
        firsts = self._matches(sought) if sought.level.view is View.PLAIN else []
        found: set[int] = set()
        anywhere = False
        for part in parts:
            start, stop = bisect_right(firsts, part.start), bisect_left(firsts, part.stop)
            anywhere = anywhere or start < stop
            if start < len(firsts) and (start >= stop or firsts[start] == part.start + 1):
                stop = start + 1  # next to the anchor, or where it would lead if its part had no end
            self._spend(stop - start)
            found.update(firsts[start:stop])
        return sorted(found) if anywhere else []

    def _spend(self, work: int) -> None:
        self._work += work
        if self._work > _MAX_WORK:
            raise Unplaced(self._number, Reason.TOO_LARGE)

    def _parts(self, number: int, hunk: PatchHunk) -> list[range]:
        """The parts of the text that the anchors name, each beginning with its anchor; none when nothing names one."""
        lines = self.lines(View.PLAIN)
        parts: list[range] = []
        for level, anchor in enumerate(hunk.anchors):
            known = lines.index(as_it_is).positions.get(anchor)
            where = known or lines.index(without_margin).positions.get(without_margin(anchor), [])
            inner = sorted({at for part in parts for at in _first_in(part, where)}) if level else where
            parts = [self._scope(lines.texts, at) for at in inner]
            if not parts and hunk.strict:
                where_not = f"below «{hunk.anchors[level - 1]}»" if level else "in the file"
                raise missed(number, f"Its anchor «{anchor}» does not stand {where_not}.")
        return parts

    def _scope(self, texts: Sequence[str], at: int) -> range:
        if at not in self._scopes:
            self._scopes[at] = self._new_scope(texts, at)
        return self._scopes[at]

    def _new_scope(self, texts: Sequence[str], at: int) -> range:
        """The lines of what begins at a line: those indented more than it, or all that follow when the next is not."""
        margin = _depth(texts[at])
        deeper = False
        for below in range(at + 1, len(texts)):
            self._spend(1)
            text, depth = texts[below].strip(), _depth(texts[below])
            if text and depth > margin:
                deeper = True
            elif text and (depth < margin or text[0] not in "{}[]()"):  # a bracket of its own opens or ends the part
                return range(at, below if deeper else len(texts))
        return range(at, len(texts))


def _first_in(part: range, where: Sequence[int]) -> Sequence[int]:
    at = bisect_right(where, part.start)
    return where[at : at + 1] if at < len(where) and where[at] < part.stop else ()


def _depth(line: str) -> int:
    return len(measure_indent(line).expandtabs())


def _variants(hunk: PatchHunk) -> Iterator[PatchHunk]:
    """The hunk as it is written; then without blank lines at its end that may stand for the end of text or patch."""
    yield hunk
    shorter = None
    if hunk.slack:
        shorter = hunk.without_last(hunk.slack, at_end=hunk.at_end)
    elif hunk.lines[-1].mark is Mark.KEEP and not hunk.lines[-1].text:
        shorter = hunk.without_last(1, at_end=True)
    if shorter and shorter.old:
        yield shorter


def _pinned(sought: Sought, shift: int) -> int | None:
    """The line that the patch names, if the hunk fits there, and nowhere else by another reading of the number."""
    at = sought.hunk.at
    if at is None or (shift and sought.fits(at)):
        return None
    return at + shift if sought.fits(at + shift) else None


def _only_one_behind(parts: Sequence[range], firsts: list[int], sought: Sought) -> bool:
    return len(firsts) == 1 and firsts[0] + len(sought.keys) > min(part.start for part in parts)
