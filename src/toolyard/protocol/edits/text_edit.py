"""An edit of a text: located in the text, and carried out as splices.

The old text is searched exactly; a place that would split a ``\\r\\n`` does not count. Only when it occurs nowhere are
differences of format forgiven, one step after the other: line endings; blanks at the ends of lines; Unicode punctuation
that looks alike; one and the same indentation before every line. The words themselves are never guessed. A forgiving
match must still be unique, and its strategy is reported. When nothing matches, the most similar lines are shown with
their differences made visible. The time is linear in the text, up to ``_MOST_COMPARED`` lines compared word by word.

Nothing in an edit is expanded or unescaped. The splices are in order and apart from each other: all characters outside
them stay as they are by construction. New lines get the line endings of those around them, in a text whose own may be
mixed. A ``\\r`` alone ends a line only in a text without any ``\\n``; elsewhere it is an ordinary character.
"""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import accumulate

from toolyard.message import Message, join_sentences
from toolyard.protocol.edits.diff import count_common_start
from toolyard.protocol.envelope import Failure, Reason

_MOST_COUNTED = 10_000  # places of a text that must be unique
_MOST_SOUGHT = 5_000_000  # characters: each further search costs the length of the text
_MOST_REPLACED = 1_000_000


class Strategy(StrEnum):
    EXACT = "exact"
    LINE_ENDINGS = "line_endings"
    TRAILING_BLANKS = "trailing_blanks"
    PUNCTUATION = "punctuation"
    INDENTATION = "indentation"


@dataclass(frozen=True, slots=True)
class Edit:
    old: str
    new: str
    replace_all: bool = False


@dataclass(frozen=True, slots=True)
class Splice:
    """Put ``text`` in the place of the characters ``start:end``."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Match:
    splices: tuple[Splice, ...]
    strategy: Strategy
    left: int = 0  # places that differ in their line endings alone, and are left because others fit exactly


def apply_splices(text: str, splices: tuple[Splice, ...]) -> str:
    pieces, at = [], 0
    for splice in splices:
        pieces += [text[at : splice.start], splice.text]
        at = splice.end
    return "".join([*pieces, text[at:]])


def match_everywhere(text: str, edit: Edit) -> Iterator[Splice]:
    size = len(edit.old)
    positions = _find_disjoint(text, edit.old) if edit.replace_all else find_occurrences(text, edit.old)
    yield from (Splice(at, at + size, edit.new) for at in positions if not cuts_line_ending(text, at, at + size))


def cuts_line_ending(text: str, start: int, end: int) -> bool:
    """Return whether a place begins or ends between the two characters of one line ending."""
    return "\r\n" in (text[max(0, start - 1) : start + 1], text[end - 1 : end + 1])


def _find_disjoint(text: str, old: str) -> Iterator[int]:
    if text.count(old) > _MOST_REPLACED:
        raise Failure(
            Reason.TOO_LARGE,
            Message("old_string stands in more than {most_replaced} places of the file.", most_replaced=_MOST_REPLACED),
        )
    at = text.find(old)
    while at >= 0:
        yield at
        behind = at + len(old)
        at = text.find(old, at + 1 if cuts_line_ending(text, at, behind) else behind)


def find_occurrences(text: str, old: str) -> list[int]:
    """Return every place, overlapping and cutting ones too: disjoint ones alone would make an ambiguous edit unique.

    Not all of them when there are more than ``_MOST_COUNTED``, or so many of a long text that finding them takes long.
    """
    positions: list[int] = []
    at = text.find(old)
    while at >= 0 and are_all(len(positions), len(old)):
        positions.append(at)
        at = text.find(old, at + 1)
    return positions


def are_all(count: int, length: int) -> bool:
    """Return whether ``count`` places of a text of this length can be all of them: beyond that they are not counted."""
    return count < _MOST_COUNTED and count * length < _MOST_SOUGHT


BLANKS = " \t"
_MOST_COMPARED = 200_000  # lines, in all places together

_WIDE = "，：；！？（）［］｛｝"  # a Chinese keyboard's forms of the ASCII ones
ALIKE = dict(zip(map(ord, _WIDE), ",:;!?()[]{}", strict=True)) | {
    ord(other): plain
    for plain, others in {
        "'": "‘’‚‛′＇",
        '"': "“”„‟″＂",
        "-": "‐‑‒–—―−－",
        " ": "\u00a0\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000",
    }.items()
    for other in others
}


def measure_indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(BLANKS))]


def _measure_margin(lines: list[str]) -> str | None:
    return min((measure_indent(line) for line in lines if line.strip(BLANKS)), key=len, default=None)


def _match_look_alikes(text: str, edit: Edit) -> Iterator[Splice]:
    if edit.old.strip():
        yield from (
            Splice(place.start, place.end, edit.new)
            for place in match_everywhere(text.translate(ALIKE), replace(edit, old=edit.old.translate(ALIKE)))
        )


def _line_matcher(key: Callable[[str], str]) -> Callable[[str, Edit], Iterator[Splice]]:
    """Return a search for runs of lines that are equal under ``key``."""

    def search(text: str, edit: Edit) -> Iterator[Splice]:
        for start, end, _ in _find_windows(text, edit.old, key):
            yield Splice(start, end, edit.new)

    return search


def _match_indented(text: str, edit: Edit) -> Iterator[Splice]:
    """Yield runs of lines that differ by one indentation, which the new text then gains or loses as well."""
    old_lines, compared = edit.old.split("\n"), 0
    for start, end, lines in _find_windows(text, edit.old, lambda line: line.strip(BLANKS).translate(ALIKE)):
        compared += len(old_lines)
        if compared > _MOST_COMPARED:
            raise Failure(
                Reason.TOO_LARGE,
                Message(
                    "{old} fits in too many places but for its indentation: they cannot be told apart in time.",
                    old=OLD_NAME,
                ),
                hint=Message("Copy the text exactly as it stands in the file, or give less of it."),
            )
        new = reindent(old_lines, lines(), edit.new)
        if new is not None:
            yield Splice(start, end, new)


def reindent(old: list[str], actual: list[str], new: str) -> str | None:
    """Return ``new`` shifted as ``actual`` is against ``old``; None unless one indentation alone is the difference."""
    if _measure_margin(new.split("\n")) != _measure_margin(old):
        return None  # the new text has another margin than the old one: ambiguous
    shifts = {
        (measure_indent(line), measure_indent(real))
        for line, real in zip(old, actual, strict=True)
        if line.strip(BLANKS)
    }
    before, after = min(shifts)
    more, less = after.removesuffix(before), before.removesuffix(after)
    if len(more) + len(before) == len(after):
        fits = all(real == more + line for line, real in shifts)
        return "\n".join(more + line if line.strip(BLANKS) else line for line in new.split("\n")) if fits else None
    if len(less) + len(after) != len(before) or any(line != less + real for line, real in shifts):
        return None
    lines = new.split("\n")
    if any(line.strip(BLANKS) and not line.startswith(less) for line in lines):
        return None
    return "\n".join(line.removeprefix(less) for line in lines)


def _find_windows(text: str, old: str, key: Callable[[str], str]) -> Iterator[tuple[int, int, Callable[[], list[str]]]]:
    """Yield runs of lines whose keys are those of ``old``; none for a text of blanks alone."""
    if not old.strip():
        return
    lines = text.split("\n")
    targets = list(map(key, old.split("\n")))
    starts = list(accumulate((len(line) + 1 for line in lines), initial=0))
    open_end = old.endswith("\n")  # then the last target is empty: the place ends where the next line begins
    count = len(targets) - open_end
    for at in _find_runs(list(map(key, lines)), targets[:count]):
        last = at + count
        if not open_end:
            yield starts[at], starts[last] - 1, lambda at=at, last=last: lines[at:last]  # type: ignore[misc]
        elif last < len(lines):
            yield starts[at], starts[last], lambda at=at, last=last: [*lines[at:last], ""]  # type: ignore[misc]


def _find_runs(keys: list[str], pattern: list[str]) -> Iterator[int]:
    """Yield the positions of ``pattern`` in ``keys``, overlapping ones too, in linear time (Knuth-Morris-Pratt)."""
    back, held = [0], 0  # the length of the prefix that still fits after a mismatch
    for one in pattern[1:]:
        while held and one != pattern[held]:
            held = back[held - 1]
        held += one == pattern[held]
        back.append(held)
    held = 0
    for at, one in enumerate(keys):
        while held and one != pattern[held]:
            held = back[held - 1]
        held += one == pattern[held]
        if held == len(pattern):
            yield at + 1 - held
            held = back[held - 1]


SEARCHES: tuple[tuple[Strategy, Callable[[str, Edit], Iterator[Splice]]], ...] = (
    (Strategy.LINE_ENDINGS, match_everywhere),
    (Strategy.TRAILING_BLANKS, _line_matcher(lambda line: line.rstrip(BLANKS))),
    (Strategy.PUNCTUATION, _match_look_alikes),
    (Strategy.PUNCTUATION, _line_matcher(lambda line: line.rstrip(BLANKS).translate(ALIKE))),
    (Strategy.INDENTATION, _match_indented),
)


OLD_NAME = "old_string"  # the parameter with the text that is searched for; a caller may know it by another name
_MAX_SHOWN = 20
_MAX_LINE = 500  # characters of a line that are shown
_MAX_EXCERPT = 200  # of two lines that differ,
_BEFORE = 100  # so many before the first difference
_SIMILAR = 60.0  # percent; less similar lines are not shown
_SIGNS = str.maketrans({"\t": "→", "\r": "␍", "\u00a0": "⍽"})
_UNSEEN = frozenset({"Cc", "Cf", "Zl", "Zp", "Zs"})


@dataclass(frozen=True, slots=True)
class Nearest:
    first: int
    last: int
    lines: tuple[str, ...]  # "N\tline" with blanks made visible
    difference: str


def find_nearest_lines(text: str, old: str, name: str = OLD_NAME, *, full_lines: bool = False) -> Nearest | None:
    """Return the lines most similar to ``old`` (called ``name``) and their first difference; None without any.

    Unless ``old`` consists of ``full_lines``, it may begin and end inside of one.
    """
    from rapidfuzz import fuzz, process  # only a miss needs it

    lines = text.split("\n")
    targets = old.strip("\n").split("\n")
    anchor = max(range(len(targets)), key=lambda number: len(targets[number].strip()))
    sought = targets[anchor].strip()
    best = process.extractOne(sought, lines, scorer=fuzz.ratio, processor=str.strip, score_cutoff=_SIMILAR)
    if best is None or not sought:
        return None
    first = max(0, best[2] - anchor)
    nearest = lines[first : first + len(targets)]
    excerpt = tuple(f"{first + number}\t{_cut_line(line)}" for number, line in enumerate(nearest[:_MAX_SHOWN], 1))
    difference = _describe_difference(nearest, targets, first + 1, name, full_lines=full_lines)
    return Nearest(first + 1, first + len(nearest), excerpt, difference)


def make_visible(line: str) -> str:
    """Return ``line`` with invisible characters visible: spaces at its ends, tabs, odd spaces, control characters."""
    body = line.strip(" ")
    left = "·" * (len(line) - len(line.lstrip(" ")))
    right = "·" * (len(line) - len(line.rstrip(" "))) if body else ""
    signed = (left + body + right).translate(_SIGNS)
    return signed if signed.isprintable() else "".join(map(_show_character, signed))


def _describe_difference(
    real_lines: Sequence[str], targets: Sequence[str], first: int, name: str, *, full_lines: bool
) -> str:
    for number, mine in enumerate(targets):
        if number == len(real_lines):
            return Message(
                "the file ends before line {line}, where {name} has «{text}».",
                line=first + number,
                name=name,
                text=_cut_line(mine),
            )
        real, begins, ends = real_lines[number], number == 0, number == len(targets) - 1
        if mine == real or (not full_lines and _fits(mine, real, begins=begins, ends=ends)):
            continue
        at = count_common_start(mine, real)
        theirs, ours = _cut_excerpt(real, at), _cut_excerpt(mine, at)
        difference = Message(
            "line {line} differs: the file has «{theirs}», {name} «{ours}».",
            line=first + number,
            theirs=theirs,
            name=name,
            ours=ours,
        )
        if unicodedata.normalize("NFKC", mine) != unicodedata.normalize("NFKC", real):
            return difference
        theirs, ours = _name_character(real[at]), _name_character(mine[at])
        alike = Message("They look alike: the file has {theirs}, {name} {ours}.", theirs=theirs, name=name, ours=ours)
        return join_sentences(difference, alike)
    return Message("they differ from {name} only in the empty lines around them, or in where the file ends.", name=name)


def _fits(mine: str, real: str, *, begins: bool, ends: bool) -> bool:
    """Return whether ``mine``, which may begin and end inside of lines, fits the line ``real``."""
    if begins and ends:
        return mine in real
    return (begins and real.endswith(mine)) or (ends and real.startswith(mine))


def _cut_excerpt(line: str, at: int) -> str:
    """Return a line, or the surroundings of ``at`` of a long one."""
    start = max(0, at - _BEFORE) if len(line) > _MAX_EXCERPT else 0
    end = start + _MAX_EXCERPT
    return ("…" if start else "") + make_visible(line[start:end]) + ("…" if end < len(line) else "")


def _cut_line(line: str) -> str:
    return (
        make_visible(line)
        if len(line) <= _MAX_LINE
        else f"{make_visible(line[:_MAX_LINE])}… [cut: {len(line)} characters]"
    )


def _show_character(char: str) -> str:
    return f"⟨{_name_character(char)}⟩" if char != " " and unicodedata.category(char) in _UNSEEN else char


def _name_character(char: str) -> str:
    return f"U+{ord(char):04X}"


_NEW_NAME = "new_string"
_ENDING = re.compile("\r\n|\n")
_LONE = re.compile("\r")


def locate(text: str, edit: Edit) -> Match:
    """Return the splices of one edit; raises Failure when the text is missing, not unique, or would not change."""
    if edit.old == edit.new:
        raise Failure(
            Reason.NO_CHANGE,
            Message("{old} and {new} are the same: nothing would change.", old=OLD_NAME, new=_NEW_NAME),
        )
    exact = list(match_everywhere(text, edit))
    if exact:
        match = _make_match(text, exact, edit, Strategy.EXACT)
        return replace(match, left=_count_left(text, edit, len(match.splices))) if edit.replace_all else match
    plain = _FoldedText(text)
    folded = Edit(plain.fold(edit.old), plain.fold(edit.new), edit.replace_all)
    for strategy, search in SEARCHES:
        splices = [
            Splice(plain.to_real(place.start), plain.to_real(place.end), place.text)
            for place in search(plain.text, folded)
        ]
        if splices:
            return _make_match(text, splices, edit, strategy)
    raise _not_found_failure(plain.text, folded.old)


class _FoldedText:
    """A text with all line endings as ``\\n``, and the mapping of positions back to the real one."""

    def __init__(self, text: str) -> None:
        self._lone = "\r" in text and "\n" not in text  # a file of old Macintosh lines
        self.text = self.fold(text)
        pairs = (match.start() for match in re.finditer("\r\n", text))
        self._pairs = [position - number for number, position in enumerate(pairs)]  # their positions in the plain text

    def fold(self, text: str) -> str:
        plain = text.replace("\r\n", "\n")
        return plain.replace("\r", "\n") if self._lone else plain

    def to_real(self, index: int) -> int:
        return index + bisect_left(self._pairs, index)


def _make_match(text: str, places: list[Splice], edit: Edit, strategy: Strategy) -> Match:
    if len(places) > 1 and not edit.replace_all:
        raise _not_unique_failure(text, places)
    endings = Endings(text) if "\n" in edit.new else None
    chosen: list[Splice] = []
    for place in places:
        if not chosen or place.start >= chosen[-1].end:  # "aa" occurs twice in "aaa" but can be replaced only once
            chosen.append(
                Splice(place.start, place.end, endings.fit(place.start, place.end, place.text)) if endings else place
            )
    if all(text[splice.start : splice.end] == splice.text for splice in chosen):
        raise Failure(
            Reason.NO_CHANGE, Message("The text already reads like {new}: nothing would change.", new=_NEW_NAME)
        )
    return Match(tuple(chosen), strategy)


def _count_left(text: str, edit: Edit, replaced: int) -> int:
    if "\n" not in edit.old or "\r\n" not in text:
        return 0
    alike = text.replace("\r\n", "\n").count(edit.old.replace("\r\n", "\n"))
    return max(0, alike - replaced)


def _not_unique_failure(text: str, places: list[Splice]) -> Failure:
    newline = "\n" if "\n" in text else "\r"
    lines = [text.count(newline, 0, place.start) + 1 for place in places[:10]]
    numbers = ", ".join(map(str, lines)) + (", ..." if len(places) > 10 else "")
    is_all = are_all(len(places), places[0].end - places[0].start)
    times = (
        Message("{count} times", count=len(places)) if is_all else Message("{count} times or more", count=len(places))
    )
    return Failure(
        Reason.NOT_UNIQUE,
        Message("{old} stands {times} in the file (in lines {numbers}).", old=OLD_NAME, times=times, numbers=numbers),
        hint=Message("Give more of the text around the one you mean, or set replace_all."),
        data={"occurrences": len(places), "lines": list(lines)},
    )


def _not_found_failure(text: str, old: str) -> Failure:
    near = find_nearest_lines(text, old)
    if near is None:
        return Failure(
            Reason.NOT_FOUND_IN_FILE,
            Message("{old} does not stand in the file, nor anything like it.", old=OLD_NAME),
            hint=Message("Read the file and copy the text exactly."),
        )
    return Failure(
        Reason.NOT_FOUND_IN_FILE,
        Message(
            "{old} does not stand in the file. The nearest lines are {first}-{last}; {difference}",
            old=OLD_NAME,
            first=near.first,
            last=near.last,
            difference=near.difference,
        ),
        hint=Message("Copy the text exactly as it stands there (· is a space, → a tab)."),
        data={"nearest": {"first_line": near.first, "last_line": near.last, "lines": list(near.lines)}},
    )


class Endings:
    """The line endings of a text, for text that is put into it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._one = _LONE if "\r" in text and "\n" not in text else _ENDING
        self._all: list[tuple[int, str]] | None = None  # position and text of each; computed once

    def fit(self, start: int, end: int, new: str) -> str:
        """Return ``new`` with the line endings of the lines that it replaces; a line that stays keeps its own."""
        if "\n" not in new:
            return new
        old = self._text[start:end]
        endings = self._one.findall(old) or self._ending_beside(start, end)
        if not endings:
            return new  # a text of one line has no line ending of its own
        lines = new.replace("\r\n", "\n").split("\n")
        if len(set(endings)) > 1:
            endings = _align_endings(self._one.split(old), endings, lines)
        pieces = [lines[0]]
        for number, line in enumerate(lines[1:]):
            pieces += [endings[min(number, len(endings) - 1)], line]
        return "".join(pieces)

    def _ending_beside(self, start: int, end: int) -> list[str]:
        """Return the ending of the line at a place; at the end of the text, that of the line before it."""
        if self._all is None:
            self._all = [(match.start(), match[0]) for match in self._one.finditer(self._text)]
        at = bisect_left(self._all, (end, ""))
        if at == len(self._all):
            at = bisect_left(self._all, (start, "")) - 1
        return [self._all[at][1]] if at >= 0 else []


def _align_endings(old: list[str], endings: list[str], new: list[str]) -> list[str]:
    """Return an ending for each line of ``new`` but the last: a kept line's own, the remaining ones for others."""
    most = min(len(old), len(new)) - 1
    first = next((number for number in range(most) if old[number] != new[number]), most)
    last = next((number for number in range(most - first) if old[-1 - number] != new[-1 - number]), most - first)
    left = endings[first : len(endings) - last] or endings[first : first + 1] or endings[-1:]
    between = len(new) - 1 - first - last
    middle = [left[min(number, len(left) - 1)] for number in range(between)]
    return [*endings[:first], *middle, *endings[len(endings) - last :]]
