"""The differences of format that are forgiven when a text occurs nowhere exactly as written.

First line endings, which are all ``\\n`` in the texts given here; then blanks at the ends of lines; Unicode punctuation
that looks alike; one and the same indentation before every line. The words themselves are never guessed. The time is
linear in the text, up to ``_MOST_COMPARED`` lines compared word by word.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import accumulate

from toolyard.message import Message
from toolyard.protocol.edits.nearest_lines import OLD_NAME
from toolyard.protocol.edits.text_edit import Edit, Splice, Strategy, match_everywhere
from toolyard.protocol.envelope import Failure, Reason

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
