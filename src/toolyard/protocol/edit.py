"""An edit of a text, and the splices that carry it out.

Nothing in an edit is expanded or unescaped. An edit is made as a list of splices, in order and apart from each other:
all characters outside them stay as they are by construction.
"""

from dataclasses import dataclass
from enum import StrEnum


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
