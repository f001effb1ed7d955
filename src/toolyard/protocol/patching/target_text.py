"""The text that a patch changes, and the places of the hunks in it.

Each hunk is looked for exactly; only when it stands nowhere are differences of format forgiven, in the steps that
``protocol.edits.text_edit`` has. A place is taken when it is the only one: because the lines stand once, because
the patch numbers the line, because an anchor (``@@ def f():``) leaves one, or because of the order of the hunks. Else
nothing is chosen. The work is bounded: lines that repeat without end are refused, not tried out.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace

from toolyard.message import Message
from toolyard.protocol.edits.text_edit import measure_indent
from toolyard.protocol.envelope import Reason
from toolyard.protocol.patching.file_change import Mark, PatchHunk
from toolyard.protocol.patching.placement import (
    EXACT,
    LEVELS,
    UNIFIED_LEVELS,
    HunkCandidates,
    HunkPlace,
    HunkSearch,
    LineView,
    MatchLevel,
    TextLines,
    UnplacedHunk,
    choose_places,
    identity,
    not_found,
    strip_margin,
)

_MAX_WORK = 1_000_000  # lines compared for one file: about half a second
_MAX_TRIED = 1000  # places looked at just to explain a failure


class TargetText:
    """A text in which hunks are to be placed."""

    def __init__(self, text: str, *, unified: bool = False) -> None:
        self._text = text
        self._levels = UNIFIED_LEVELS if unified else LEVELS
        self._views: dict[LineView, TextLines] = {}
        self._scopes: dict[int, range] = {}
        self._work = 0
        self._number = 0  # of the hunk that is being placed
        if "\r" not in text or "\n" not in text:
            self._levels = tuple(level for level in self._levels if level.view is not LineView.LOOSE)

    def split_lines(self, view: LineView) -> TextLines:
        if view not in self._views:
            self._views[view] = TextLines(self._text, view)
        return self._views[view]

    def place_hunks(self, hunks: Sequence[PatchHunk]) -> list[HunkPlace]:
        """One place for each hunk, in the order of the text; raises Unplaced when one is not certain."""
        candidates: list[HunkCandidates] = []
        shift: int | None = 0  # how far the text has moved against the line numbers of the patch; None: not known
        for number, hunk in enumerate(hunks, 1):
            self._number = number
            options = self._find_candidates(number, hunk if shift is not None else replace(hunk, at=None), shift or 0)
            candidates.append(options)
            if hunk.at is not None:
                shift = options.firsts[0] - hunk.at if len(options.firsts) == 1 else None
        return [HunkPlace(options.search, first) for options, first in choose_places(candidates)]

    def find_exact_line(self, hunk: PatchHunk) -> int | None:
        """The number of the line where the old lines of a hunk stand exactly, if they do."""
        if not hunk.old:
            return None
        sought = HunkSearch.build(hunk, EXACT, self.split_lines(EXACT.view))
        offset, places = sought.find_rarest_line()
        return next((at - offset + 1 for at in places[:_MAX_TRIED] if sought.fits_at(at - offset)), None)

    def _list_searches(self, hunk: PatchHunk) -> Iterator[HunkSearch]:
        """The ways to look for a hunk, each tried only where those before it find nothing.

        Context as it stands, in case it has no marks, goes before all that is forgiven to context with marks.
        """
        literal = [level for level in self._levels if level.is_literal and not self._has_unproven_endings(hunk, level)]
        yield from (HunkSearch.build(hunk, level, self.split_lines(level.view)) for level in literal)
        if (unmarked := hunk.without_marks) is not None:
            yield from (HunkSearch.build(unmarked, level, self.split_lines(level.view)) for level in literal)
        yield from (
            HunkSearch.build(hunk, level, self.split_lines(level.view))
            for level in self._levels
            if not level.is_literal
        )

    def _has_unproven_endings(self, hunk: PatchHunk, level: MatchLevel) -> bool:
        """Return whether the endings that a hunk writes prove nothing: no old line has one, and the text has others."""
        if level.view is not LineView.RAW or any(line.ending for line in hunk.old):
            return False
        return "\r\n" in self._text and all(line.ending != "\r\n" for line in hunk.lines)

    def _find_candidates(self, number: int, hunk: PatchHunk, shift: int) -> HunkCandidates:
        parts = self._find_anchored_parts(number, hunk)
        for variant in _list_variants(hunk):
            for sought in self._list_searches(variant) if parts else ():
                if firsts := self._find_behind_anchors(parts, sought):
                    return HunkCandidates(number, sought, firsts)
            for sought in self._list_searches(variant):
                if (pinned := _match_numbered_line(sought, shift)) is not None:
                    return HunkCandidates(number, sought, [pinned])
                firsts = self._find_matches(sought)
                if firsts and (not parts or _is_only_one_behind(parts, firsts, sought)):
                    self._require_no_rival(number, variant, shift, firsts)
                    return HunkCandidates(number, sought, firsts)
        outside = Message("Its lines do not stand in the part that its anchor names.")
        raise not_found(number, outside if parts else "")

    def _require_no_rival(self, number: int, hunk: PatchHunk, shift: int, firsts: list[int]) -> None:
        """A better match elsewhere against one in the line that the patch names: no telling which is meant."""
        if hunk.at is not None:
            named = hunk.at + shift
            if named not in firsts and any(sought.resembles_at(named) for sought in self._list_searches(hunk)):
                raise UnplacedHunk(number, Reason.NOT_UNIQUE, firsts=sorted({*firsts, named}))

    def _find_matches(self, sought: HunkSearch) -> list[int]:
        if not sought.is_possible:
            return []
        if sought.hunk.at_end:
            last = len(sought.lines) - len(sought.keys)
            return [last] if sought.fits_at(last) else []
        offset, places = sought.find_rarest_line()
        self._spend_work(len(places) * len(sought.keys))
        return [at - offset for at in places if sought.fits_at(at - offset)]

    def _find_behind_anchors(self, parts: Sequence[range], sought: HunkSearch) -> list[int]:
        """The places behind the anchors of those parts; one next to its anchor goes before others of its part."""
        firsts = self._find_matches(sought) if sought.level.view is LineView.PLAIN else []
        places: set[int] = set()
        anywhere = False
        for part in parts:
            start, stop = bisect_right(firsts, part.start), bisect_left(firsts, part.stop)
            anywhere = anywhere or start < stop
            if start < len(firsts) and (start >= stop or firsts[start] == part.start + 1):
                stop = start + 1  # next to the anchor, or where it would lead if its part had no end
            self._spend_work(stop - start)
            places.update(firsts[start:stop])
        return sorted(places) if anywhere else []

    def _spend_work(self, work: int) -> None:
        self._work += work
        if self._work > _MAX_WORK:
            raise UnplacedHunk(self._number, Reason.TOO_LARGE)

    def _find_anchored_parts(self, number: int, hunk: PatchHunk) -> list[range]:
        """The parts of the text that the anchors name, each beginning with its anchor; none when nothing names one."""
        lines = self.split_lines(LineView.PLAIN)
        parts: list[range] = []
        for level, anchor in enumerate(hunk.anchors):
            known = lines.index_by(identity).positions.get(anchor)
            where = known or lines.index_by(strip_margin).positions.get(strip_margin(anchor), [])
            inner = sorted({at for part in parts for at in _first_inside(part, where)}) if level else where
            parts = [self._scope(lines.texts, at) for at in inner]
            if not parts and hunk.strict:
                missing = (
                    Message(
                        "Its anchor «{anchor}» does not stand below «{outer}».",
                        anchor=anchor,
                        outer=hunk.anchors[level - 1],
                    )
                    if level
                    else Message("Its anchor «{anchor}» does not stand in the file.", anchor=anchor)
                )
                raise not_found(number, missing)
        return parts

    def _scope(self, texts: Sequence[str], at: int) -> range:
        if at not in self._scopes:
            self._scopes[at] = self._measure_scope(texts, at)
        return self._scopes[at]

    def _measure_scope(self, texts: Sequence[str], at: int) -> range:
        """The lines of what begins at a line: those indented more than it, or all that follow when the next is not."""
        margin = _measure_depth(texts[at])
        deeper = False
        for below in range(at + 1, len(texts)):
            self._spend_work(1)
            text, depth = texts[below].strip(), _measure_depth(texts[below])
            if text and depth > margin:
                deeper = True
            elif text and (depth < margin or text[0] not in "{}[]()"):  # a bracket of its own opens or ends the part
                return range(at, below if deeper else len(texts))
        return range(at, len(texts))


def _first_inside(part: range, where: Sequence[int]) -> Sequence[int]:
    at = bisect_right(where, part.start)
    return where[at : at + 1] if at < len(where) and where[at] < part.stop else ()


def _measure_depth(line: str) -> int:
    return len(measure_indent(line).expandtabs())


def _list_variants(hunk: PatchHunk) -> Iterator[PatchHunk]:
    """The hunk as it is written; then without blank lines at its end that may stand for the end of text or patch."""
    yield hunk
    shorter = None
    if hunk.slack:
        shorter = hunk.without_last(hunk.slack, at_end=hunk.at_end)
    elif hunk.lines[-1].mark is Mark.KEEP and not hunk.lines[-1].text:
        shorter = hunk.without_last(1, at_end=True)
    if shorter and shorter.old:
        yield shorter


def _match_numbered_line(sought: HunkSearch, shift: int) -> int | None:
    """The line that the patch names, if the hunk fits there, and nowhere else by another reading of the number."""
    at = sought.hunk.at
    if at is None or (shift and sought.fits_at(at)):
        return None
    return at + shift if sought.fits_at(at + shift) else None


def _is_only_one_behind(parts: Sequence[range], firsts: list[int], sought: HunkSearch) -> bool:
    return len(firsts) == 1 and firsts[0] + len(sought.keys) > min(part.start for part in parts)
