"""An edit of a text, and the splices that carry it out.

Nothing in an edit is expanded or unescaped. An edit is made as a list of splices, in order and apart from each other:
all characters outside them stay as they are by construction.

Exact occurrences of the old text are found here: a place that would split a ``\\r\\n`` does not count.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from toolyard.message import Message
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
