"""Where an edit applies in a text, and what it writes there.

The text to replace is looked for exactly. Only when it stands nowhere are differences of format forgiven, one step
after the other: line endings; blanks at the ends of lines; Unicode punctuation that looks alike; one and the same
indentation before every line. What is forgiven must still fit in one place only, and is named. The words themselves
are never guessed, nothing is expanded or unescaped, and an edit is a list of splices: all other characters stay as
they are by construction.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from toolyard.protocol.failure import Failure, Reason


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
    exact = list(_everywhere(text, edit))
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
    chosen: list[Splice] = []
    for place in places:
        if not chosen or place.start >= chosen[-1].end:  # "aa" stands twice in "aaa" but can be replaced only once
            chosen.append(Splice(place.start, place.end, _with_endings(text, place)))
    if all(text[splice.start : splice.end] == splice.text for splice in chosen):
        raise Failure(Reason.NO_CHANGE, "The text already reads like new_string: nothing would change.")
    return Match(tuple(chosen), strategy)


def occurrences(text: str, wanted: str) -> list[int]:
    """Every place, overlapping ones too: counting only disjoint ones would call an ambiguous edit unique."""
    found, at = [], text.find(wanted)
    while at >= 0:
        found.append(at)
        at = text.find(wanted, at + 1)
    return found


def _everywhere(text: str, edit: Edit) -> Iterator[Splice]:
    yield from (Splice(at, at + len(edit.old), edit.new) for at in occurrences(text, edit.old))


def _look_alike(text: str, edit: Edit) -> Iterator[Splice]:
    found = occurrences(text.translate(ALIKE), edit.old.translate(ALIKE))
    yield from (Splice(at, at + len(edit.old), edit.new) for at in found if edit.old.strip())


def _by_lines(key: Callable[[str], str]) -> Callable[[str, Edit], Iterator[Splice]]:
    """Whole lines that are equal under ``key``."""

    def search(text: str, edit: Edit) -> Iterator[Splice]:
        for start, end, _ in _windows(text, edit.old, key):
            yield Splice(start, end, edit.new)

    return search


def _indented(text: str, edit: Edit) -> Iterator[Splice]:
    """Whole lines that differ by one indentation, which the new text then gets or loses as well."""
    wanted = edit.old.split("\n")
    for start, end, lines in _windows(text, edit.old, lambda line: line.strip(BLANKS).translate(ALIKE)):
        new = reindented(wanted, lines, edit.new)
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


def _windows(text: str, wanted: str, key: Callable[[str], str]) -> Iterator[tuple[int, int, list[str]]]:
    """Runs of whole lines whose keys are those of ``wanted``; never for a text of blanks alone."""
    if not wanted.strip():
        return
    lines = text.split("\n")
    keys = list(map(key, lines))
    targets = list(map(key, wanted.split("\n")))
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    count = len(targets)
    open_end = wanted.endswith("\n")  # then the last target is empty: the place ends where the next line begins
    for at in range(len(keys) - count + 1):
        if keys[at] != targets[0]:
            continue
        if open_end and keys[at : at + count - 1] == targets[:-1]:
            yield starts[at], starts[at + count - 1], [*lines[at : at + count - 1], ""]
        elif not open_end and keys[at : at + count] == targets:
            yield starts[at], starts[at + count] - 1, lines[at : at + count]


def _with_endings(text: str, place: Splice) -> str:
    """The new text with the line endings of the lines it replaces, in order; further ones end like the last of them."""
    if "\n" not in place.text:
        return place.text
    endings = _ENDING.findall(text, place.start, place.end) or _ending_beside(text, place)
    if not endings:
        return place.text  # a text of one line has no line ending of its own
    lines = place.text.replace("\r\n", "\n").split("\n")
    pieces = [lines[0]]
    for number, line in enumerate(lines[1:]):
        pieces += [endings[min(number, len(endings) - 1)], line]
    return "".join(pieces)


def _ending_beside(text: str, place: Splice) -> list[str]:
    """How the line ends in which ``place`` stands; at the end of the text, how the line before it does."""
    after = _ENDING.search(text, place.end)
    if after:
        return [after[0]]
    at = max(text.rfind("\n", 0, place.start), text.rfind("\r", 0, place.start))
    return [] if at < 0 else ["\r\n" if text[at - 1 : at + 1] == "\r\n" else text[at]]


def _not_unique(text: str, places: list[Splice]) -> Failure:
    lines = [text.count("\n", 0, place.start) + 1 for place in places[:10]]
    numbers = ", ".join(map(str, lines)) + (", ..." if len(places) > 10 else "")
    return Failure(
        Reason.NOT_UNIQUE,
        f"old_string stands {len(places)} times in the file (in lines {numbers}).",
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
_ENDING = re.compile("\r\n|\n|\r")


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
