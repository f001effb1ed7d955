"""The lines of a text that are most like a text which does not stand in it, with all that decides a match visible."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from toolyard.protocol.patch import count_common_start


@dataclass(frozen=True, slots=True)
class Nearest:
    first: int
    last: int
    shown: tuple[str, ...]  # "N\tline" with blanks made visible
    difference: str


_MAX_SHOWN = 20
_MAX_LINE = 500  # characters of a line that are shown
_MAX_EXCERPT = 200  # of two lines that differ,
_BEFORE = 100  # so many before the first difference
_SIMILAR = 60.0  # percent; less alike is not worth showing
_SIGNS = str.maketrans({"\t": "→", "\r": "␍", "\u00a0": "⍽"})
_UNSEEN = frozenset({"Cc", "Cf", "Zl", "Zp", "Zs"})


def find_nearest_lines(text: str, wanted: str, name: str = "old_string", *, whole: bool = False) -> Nearest | None:
    """The lines most like ``wanted`` (called ``name``) and where they first differ; None when nothing is like it.

    Unless ``wanted`` is ``whole`` lines, it may begin and end inside of one.
    """
    from rapidfuzz import fuzz, process  # only a miss needs it

    lines = text.split("\n")
    targets = wanted.strip("\n").split("\n")
    anchor = max(range(len(targets)), key=lambda number: len(targets[number].strip()))
    sought = targets[anchor].strip()
    best = process.extractOne(sought, lines, scorer=fuzz.ratio, processor=str.strip, score_cutoff=_SIMILAR)
    if best is None or not sought:
        return None
    first = max(0, best[2] - anchor)
    found = lines[first : first + len(targets)]
    shown = tuple(f"{first + number}\t{_cut_line(line)}" for number, line in enumerate(found[:_MAX_SHOWN], 1))
    return Nearest(
        first + 1, first + len(found), shown, _describe_difference(found, targets, first + 1, name, whole=whole)
    )


def make_visible(line: str) -> str:
    """What decides a match but is not seen, made visible: spaces at the ends, tabs, odd spaces, control characters."""
    body = line.strip(" ")
    left = "·" * (len(line) - len(line.lstrip(" ")))
    right = "·" * (len(line) - len(line.rstrip(" "))) if body else ""
    signed = (left + body + right).translate(_SIGNS)
    return signed if signed.isprintable() else "".join(map(_show_character, signed))


def _describe_difference(found: Sequence[str], targets: Sequence[str], first: int, name: str, *, whole: bool) -> str:
    for number, mine in enumerate(targets):
        if number == len(found):
            return f"the file ends before line {first + number}, where {name} has «{_cut_line(mine)}»."
        real, begins, ends = found[number], number == 0, number == len(targets) - 1
        if mine == real or (not whole and _fits(mine, real, begins=begins, ends=ends)):
            continue
        at = count_common_start(mine, real)
        theirs, ours = _cut_excerpt(real, at), _cut_excerpt(mine, at)
        difference = f"line {first + number} differs: the file has «{theirs}», {name} «{ours}»."
        if unicodedata.normalize("NFKC", mine) != unicodedata.normalize("NFKC", real):
            return difference
        theirs, ours = _name_character(real[at]), _name_character(mine[at])
        return f"{difference} They look alike: the file has {theirs}, {name} {ours}."
    return f"they differ from {name} only in the empty lines around them, or in where the file ends."


def _fits(mine: str, real: str, *, begins: bool, ends: bool) -> bool:
    """Whether a line of a text that may begin and end inside of lines is the one that stands there."""
    if begins and ends:
        return mine in real
    return (begins and real.endswith(mine)) or (ends and real.startswith(mine))


def _cut_excerpt(line: str, at: int) -> str:
    """A line, or of a long one what stands around the place ``at``."""
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
