"""Where an edit applies in a text, and what it writes there.

The text to replace is looked for exactly; a place that would cut a ``\\r\\n`` in two is none. Only when it stands
nowhere are differences of format forgiven, one step after the other: line endings; blanks at the ends of lines; Unicode
punctuation that looks alike; one and the same indentation before every line. What is forgiven must still fit in one
place only, and is named. The words themselves are never guessed, nothing is expanded or unescaped, and an edit is a
list of splices: all other characters stay as they are by construction. A ``\\r`` alone ends a line only in a text
without any ``\\n``. The time is linear in the text, up to ``_MOST_COMPARED`` lines compared word by word.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import accumulate

from toolyard.protocol.failure import Failure, Reason
from toolyard.protocol.line_endings import Endings


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


def locate(text: str, edit: Edit) -> Match:
    """The splices of one edit; raises Failure when the text is not there, not unique, or would not change."""
    if edit.old == edit.new:
        raise Failure(Reason.NO_CHANGE, "old_string and new_string are the same: nothing would change.")
    exact = [splice for splice in _everywhere(text, edit) if not cuts(text, splice.start, splice.end)]
    if exact:
        return _match(text, exact, edit, Strategy.EXACT)
    plain = _Plain(text)
    folded = Edit(plain.fold(edit.old), plain.fold(edit.new), edit.replace_all)
    for strategy, search in _SEARCHES:
        found = [
            Splice(plain.real(place.start), plain.real(place.end), place.text) for place in search(plain.text, folded)
        ]
        if found:
            return _match(text, found, edit, strategy)
    raise _not_found(plain.text, folded.old)


def apply(text: str, splices: tuple[Splice, ...]) -> str:
    pieces, at = [], 0
    for splice in splices:
        pieces += [text[at : splice.start], splice.text]
        at = splice.end
    return "".join([*pieces, text[at:]])


class _Plain:
    """A text with all line endings as ``\\n``, and the way back to where things stand in the real one."""

    def __init__(self, text: str) -> None:
        self._lone = "\r" in text and "\n" not in text  # a file of old Macintosh lines
        self.text = self.fold(text)
        pairs = (match.start() for match in re.finditer("\r\n", text))
        self._pairs = [position - number for number, position in enumerate(pairs)]  # where they stand in the plain text

    def fold(self, text: str) -> str:
        plain = text.replace("\r\n", "\n")
        return plain.replace("\r", "\n") if self._lone else plain

    def real(self, index: int) -> int:
        return index + bisect_left(self._pairs, index)


def _match(text: str, places: list[Splice], edit: Edit, strategy: Strategy) -> Match:
    if len(places) > 1 and not edit.replace_all:
        raise _not_unique(text, places)
    endings = Endings(text) if "\n" in edit.new else None
    chosen: list[Splice] = []
    for place in places:
        if not chosen or place.start >= chosen[-1].end:  # "aa" stands twice in "aaa" but can be replaced only once
            chosen.append(
                Splice(place.start, place.end, endings.given(place.start, place.end, place.text)) if endings else place
            )
    if all(text[splice.start : splice.end] == splice.text for splice in chosen):
        raise Failure(Reason.NO_CHANGE, "The text already reads like new_string: nothing would change.")
    return Match(tuple(chosen), strategy)


def occurrences(text: str, wanted: str) -> list[int]:
    """Every place, overlapping ones too: counting only disjoint ones would call an ambiguous edit unique.

    Not all of them when there are more than ``MOST_COUNTED``, or so many of a long text that finding them takes long.
    """
    found: list[int] = []
    at = text.find(wanted)
    while at >= 0 and len(found) < MOST_COUNTED and len(found) * len(wanted) < _MOST_SOUGHT:
        found.append(at)
        at = text.find(wanted, at + 1)
    return found


def cuts(text: str, start: int, end: int) -> bool:
    """Whether a place begins or ends between the two characters of one line ending."""
    return "\r\n" in (text[max(0, start - 1) : start + 1], text[end - 1 : end + 1])


def _everywhere(text: str, edit: Edit) -> Iterator[Splice]:
    found = _disjoint(text, edit.old) if edit.replace_all else occurrences(text, edit.old)
    yield from (Splice(at, at + len(edit.old), edit.new) for at in found)


def _disjoint(text: str, wanted: str) -> Iterator[int]:
    if text.count(wanted) > _MOST_REPLACED:
        raise Failure(Reason.TOO_LARGE, f"old_string stands in more than {_MOST_REPLACED} places of the file.")
    at = text.find(wanted)
    while at >= 0:
        yield at
        at = text.find(wanted, at + len(wanted))


def _look_alike(text: str, edit: Edit) -> Iterator[Splice]:
    if edit.old.strip():
        yield from (
            Splice(place.start, place.end, edit.new)
            for place in _everywhere(text.translate(ALIKE), replace(edit, old=edit.old.translate(ALIKE)))
        )


def _by_lines(key: Callable[[str], str]) -> Callable[[str, Edit], Iterator[Splice]]:
    """Whole lines that are equal under ``key``."""

    def search(text: str, edit: Edit) -> Iterator[Splice]:
        for start, end, _ in _windows(text, edit.old, key):
            yield Splice(start, end, edit.new)

    return search


def _indented(text: str, edit: Edit) -> Iterator[Splice]:
    """Whole lines that differ by one indentation, which the new text then gets or loses as well."""
    wanted, compared = edit.old.split("\n"), 0
    for start, end, lines in _windows(text, edit.old, lambda line: line.strip(BLANKS).translate(ALIKE)):
        compared += len(wanted)
        if compared > _MOST_COMPARED:
            raise Failure(
                Reason.TOO_LARGE,
                "old_string fits in too many places but for its indentation: they cannot be told apart in time.",
                hint="Copy the text exactly as it stands in the file, or give less of it.",
            )
        new = reindented(wanted, lines(), edit.new)
        if new is not None:
            yield Splice(start, end, new)


def reindented(wanted: list[str], found: list[str], new: str) -> str | None:
    """``new`` moved as ``found`` is moved against ``wanted``; None when not one indentation alone is the difference."""
    if _margin(new.split("\n")) != _margin(wanted):
        return None  # the new text does not stand where the old one was thought to stand: no telling what is meant
    shifts = {(indent(line), indent(real)) for line, real in zip(wanted, found, strict=True) if line.strip(BLANKS)}
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


def _windows(text: str, wanted: str, key: Callable[[str], str]) -> Iterator[tuple[int, int, Callable[[], list[str]]]]:
    """Runs of whole lines whose keys are those of ``wanted``; never for a text of blanks alone."""
    if not wanted.strip():
        return
    lines = text.split("\n")
    targets = list(map(key, wanted.split("\n")))
    starts = list(accumulate((len(line) + 1 for line in lines), initial=0))
    open_end = wanted.endswith("\n")  # then the last target is empty: the place ends where the next line begins
    count = len(targets) - open_end
    for at in _runs(list(map(key, lines)), targets[:count]):
        last = at + count
        if not open_end:
            yield starts[at], starts[last] - 1, lambda at=at, last=last: lines[at:last]  # type: ignore[misc]
        elif last < len(lines):
            yield starts[at], starts[last], lambda at=at, last=last: [*lines[at:last], ""]  # type: ignore[misc]


def _runs(keys: list[str], wanted: list[str]) -> Iterator[int]:
    """Where ``wanted`` stands in ``keys``, overlapping ones too, in linear time (Knuth, Morris and Pratt)."""
    back, held = [0], 0  # how much of the beginning still fits when the next one does not
    for one in wanted[1:]:
        while held and one != wanted[held]:
            held = back[held - 1]
        held += one == wanted[held]
        back.append(held)
    held = 0
    for at, one in enumerate(keys):
        while held and one != wanted[held]:
            held = back[held - 1]
        held += one == wanted[held]
        if held == len(wanted):
            yield at + 1 - held
            held = back[held - 1]


def _not_unique(text: str, places: list[Splice]) -> Failure:
    lines = [text.count("\n", 0, place.start) + 1 for place in places[:10]]
    numbers = ", ".join(map(str, lines)) + (", ..." if len(places) > 10 else "")
    is_all = len(places) < MOST_COUNTED and len(places) * (places[0].end - places[0].start) < _MOST_SOUGHT
    times = f"{len(places)} times{'' if is_all else ' or more'}"
    return Failure(
        Reason.NOT_UNIQUE,
        f"old_string stands {times} in the file (in lines {numbers}).",
        hint="Give more of the text around the one you mean, or set replace_all.",
        data={"occurrences": len(places), "lines": list(lines)},
    )


def _not_found(text: str, wanted: str) -> Failure:
    near = nearest_lines(text, wanted)
    if near is None:
        return Failure(
            Reason.NOT_FOUND_IN_FILE,
            "old_string does not stand in the file, nor anything like it.",
            hint="Read the file and copy the text exactly.",
        )
    return Failure(
        Reason.NOT_FOUND_IN_FILE,
        f"old_string does not stand in the file. The nearest lines are {near.first}-{near.last}; {near.difference}",
        hint="Copy the text exactly as it stands there (· is a space, → a tab).",
        data={"nearest": {"first_line": near.first, "last_line": near.last, "lines": list(near.shown)}},
    )


@dataclass(frozen=True, slots=True)
class Nearest:
    first: int
    last: int
    shown: tuple[str, ...]  # "N\tline" with blanks made visible
    difference: str


_MAX_SHOWN = 20
_SIMILAR = 60.0  # percent; less alike is not worth showing


def nearest_lines(text: str, wanted: str, name: str = "old_string") -> Nearest | None:
    """The lines most like ``wanted`` (called ``name``) and where they first differ; None when nothing is like it."""
    from rapidfuzz import fuzz, process  # only a miss needs it

    lines = text.split("\n")
    targets = wanted.strip("\n").split("\n")
    anchor = max(range(len(targets)), key=lambda number: len(targets[number].strip()))
    best = process.extractOne(
        targets[anchor].strip(), lines, scorer=fuzz.ratio, processor=str.strip, score_cutoff=_SIMILAR
    )
    if best is None:
        return None
    first = max(0, best[2] - anchor)
    found = lines[first : first + len(targets)]
    shown = tuple(f"{first + number}\t{visible(line)}" for number, line in enumerate(found[:_MAX_SHOWN], 1))
    pairs = zip(targets, found, strict=False)
    different = next((number for number, (mine, real) in enumerate(pairs) if mine != real), len(found))
    mine = visible(targets[different]) if different < len(targets) else "nothing"
    real = visible(found[different]) if different < len(found) else "the end of the file"
    difference = f"line {first + different + 1} differs: the file has «{real[:200]}», {name} «{mine[:200]}»."
    return Nearest(first + 1, first + len(found), shown, difference)


def visible(line: str) -> str:
    """Blanks that decide a match, made visible: spaces at the ends, tabs, carriage returns, odd spaces."""
    body = line.strip(" ")
    left = "·" * (len(line) - len(line.lstrip(" ")))
    right = "·" * (len(line) - len(line.rstrip(" "))) if body else ""
    return (left + body + right).replace("\t", "→").replace("\r", "␍").replace("\u00a0", "⍽")


BLANKS = " \t"
MOST_COUNTED = 10_000  # places of a text that should stand in one
_MOST_SOUGHT = 5_000_000  # characters: to look for a long text again costs its length
_MOST_REPLACED = 1_000_000
_MOST_COMPARED = 200_000  # lines, in all places together


def indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(BLANKS))]


def _margin(lines: list[str]) -> str | None:
    return min((indent(line) for line in lines if line.strip(BLANKS)), key=len, default=None)


_WIDE = "，：；！？（）［］｛｝"  # what a Chinese keyboard gives for the ASCII ones
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

_SEARCHES: tuple[tuple[Strategy, Callable[[str, Edit], Iterator[Splice]]], ...] = (
    (Strategy.LINE_ENDINGS, _everywhere),
    (Strategy.TRAILING_BLANKS, _by_lines(lambda line: line.rstrip(BLANKS))),
    (Strategy.PUNCTUATION, _look_alike),
    (Strategy.PUNCTUATION, _by_lines(lambda line: line.rstrip(BLANKS).translate(ALIKE))),
    (Strategy.INDENTATION, _indented),
)
