"""Finds the lines of a text most similar to a text that does not occur in it, and makes the differences visible."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from toolyard.message import Message, join_sentences
from toolyard.protocol.edits.diff import count_common_start

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
