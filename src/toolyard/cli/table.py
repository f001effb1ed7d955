"""Tables for people: columns that stay straight with wide characters, and nothing that drives the terminal."""

import re
import shutil
import sys
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import click

from toolyard.protocol.manifests.safe_text import is_hidden

_GAP = "  "
_BLANK = re.compile(r"\s")
_WIDE = r"\u2e80-\u9fff\ua000-\ua4cf\uac00-\ud7a3\uf900-\ufaff\uff00-\uff60\U00020000-\U0003fffd"
_CLOSING = "，。、；：？！）」』】》〉”’…"  # never at the beginning of a line
_PIECES = re.compile(rf"(?:[{_WIDE}]|[^\s{_WIDE}]+)[{_CLOSING}]* *")
_LEAST = 10


@dataclass(frozen=True, slots=True)
class Cell:
    text: str
    colour: str | None = None


Row = Sequence[str | Cell]

_COLOURS = {
    "green": ("succeeded", "success", "done", "allowed", "allow"),
    "yellow": ("partial", "expired", "interrupted", "cancelled", "late", "blocked"),
    "red": ("failed", "error", "timed_out", "denied", "deny"),
    "cyan": ("running", "waiting_callback", "pending", "scheduled"),
}
_COLOUR_OF = {state: colour for colour, states in _COLOURS.items() for state in states}


def state_cell(state: str) -> Cell:
    return Cell(state.replace("_", " "), _COLOUR_OF.get(state))


def print_rows(heads: Sequence[str], rows: Sequence[Row]) -> None:
    """One line for each row; at a terminal the last column is cut to fit."""
    cells = [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in rows]
    plain = [[one_line(cell.text) for cell in row] for row in cells]
    widths = [max(map(width, column)) for column in zip(heads, *plain, strict=True)]
    room = None
    if sys.stdout.isatty():
        room = max(_LEAST, shutil.get_terminal_size().columns - sum(widths[:-1]) - len(_GAP) * (len(widths) - 1))
    click.secho(_line(heads, widths, room), bold=True)
    for row, texts in zip(cells, plain, strict=True):
        styled = [cell.colour for cell in row]
        click.echo(_line(texts, widths, room, styled))


def one_line(text: str) -> str:
    """A text without line breaks and without anything a terminal would obey."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def visible(text: str) -> str:
    """A text of several lines, with whatever a terminal would obey, or would not show, written out."""
    return "".join(f"\\u{ord(char):04x}" if _is_unseen(char) else char for char in text)


def _is_unseen(char: str) -> bool:
    return char != "\n" and (not char.isprintable() or is_hidden(char))


def width(text: str) -> int:
    """How many columns of a terminal a text takes."""
    return sum(_width(char) for char in text)


def cut(text: str, room: int) -> str:
    """As much of a text as fits, with a mark where it was cut."""
    if width(text) <= room:
        return text
    taken, left = [], room - 1
    for char in text:
        left -= _width(char)
        if left < 0:
            break
        taken.append(char)
    return "".join(taken) + "…"


def wrapped(text: str, room: int) -> list[str]:
    """A text in lines that fit, at least one: broken at blanks and between wide characters, words only if they must."""
    lines, line = [], ""
    for piece in _PIECES.findall(_BLANK.sub(" ", text).strip()):
        if line and width(line + piece.rstrip()) > room:
            lines.append(line.rstrip())
            line = ""
        line += piece
        while width(line.rstrip()) > room:
            fits = next(at for at in range(len(line), 0, -1) if width(line[:at]) <= room or at == 1)
            lines.append(line[:fits])
            line = line[fits:]
    return [*lines, line.rstrip()]


def _line(texts: Sequence[str], widths: Sequence[int], room: int | None, colours: Sequence[str | None] = ()) -> str:
    parts = []
    for number, text in enumerate(texts):
        last = number == len(texts) - 1
        shown = cut(text, room) if last and room is not None else text
        colour = colours[number] if colours else None
        parts.append(click.style(shown, fg=colour) if colour else shown)
        if not last:
            parts.append(" " * (widths[number] - width(text)) + _GAP)
    return "".join(parts).rstrip()


def _width(char: str) -> int:
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in ("W", "F") else 1
