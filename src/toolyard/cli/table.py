"""Texts on a terminal: tables aligned with wide characters, and arguments for a person who approves a call.

Nothing of them is hidden: control and invisible characters are escaped or removed.
"""

import re
import shutil
import sys
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import click

from toolyard.cli.common_options import json_text
from toolyard.protocol.json import Json
from toolyard.protocol.manifests.safe_text import is_hidden

_GAP = "  "
_BLANK = re.compile(r"\s")
_WIDE = r"\u2e80-\u9fff\ua000-\ua4cf\uac00-\ud7a3\uf900-\ufaff\uff00-\uff60\U00020000-\U0003fffd"
_CLOSING = "，。、；：？！）」』】》〉”’…"  # never at the start of a line
_COMMAND = "'toolyard "  # the beginning of a command for people to copy, which no line break may spoil
_PIECES = re.compile(rf"(?:{_COMMAND}.*?'(?=[;,.:)]|$)\S*|[{_WIDE}]|[^\s{_WIDE}]+)[{_CLOSING}]* *")
_LEAST = 10
_COLOURS = {
    "green": ("succeeded", "success", "done", "allowed", "allow"),
    "yellow": ("partial", "expired", "interrupted", "cancelled", "late", "blocked"),
    "red": ("failed", "error", "timed_out", "denied", "deny"),
    "cyan": ("running", "waits", "waiting_callback", "pending", "scheduled"),
}
_COLOUR_OF = {state: colour for colour, states in _COLOURS.items() for state in states}


@dataclass(frozen=True, slots=True)
class Cell:
    text: str
    colour: str | None = None


Row = Sequence[str | Cell]


def state_cell(state: str) -> Cell:
    return Cell(state.replace("_", " "), _COLOUR_OF.get(state))


def print_rows(heads: Sequence[str], rows: Sequence[Row]) -> None:
    """Print a line per row; on a terminal the last column is truncated to fit."""
    cells = [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in rows]
    plain = [[to_one_line(cell.text) for cell in row] for row in cells]
    widths = [max(map(display_width, column)) for column in zip(heads, *plain, strict=True)]
    room = None
    if sys.stdout.isatty():
        room = max(_LEAST, shutil.get_terminal_size().columns - sum(widths[:-1]) - len(_GAP) * (len(widths) - 1))
    click.secho(_format_line(heads, widths, room), bold=True)
    for row, texts in zip(cells, plain, strict=True):
        styled = [cell.colour for cell in row]
        click.echo(_format_line(texts, widths, room, styled))


def to_one_line(text: str) -> str:
    """Return a text without line breaks and control characters."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def escape_unprintable(text: str) -> str:
    """Return a text with control and invisible characters escaped, except line breaks."""
    return "".join(f"\\u{ord(char):04x}" if _is_unprintable(char) else char for char in text)


def _is_unprintable(char: str) -> bool:
    return char != "\n" and (not char.isprintable() or is_hidden(char))


def display_width(text: str) -> int:
    """Return how many terminal columns a text takes."""
    return sum(_char_width(char) for char in text)


def truncate(text: str, room: int) -> str:
    """Return as much of a text as fits, with an ellipsis if truncated."""
    if display_width(text) <= room:
        return text
    taken, left = [], room - 1
    for char in text:
        left -= _char_width(char)
        if left < 0:
            break
        taken.append(char)
    return "".join(taken) + "…"


def wrap(text: str, room: int) -> list[str]:
    """Return a text in lines that fit, broken at blanks and between wide characters, within words only if needed.

    A command between quotes is never broken, even if its line does not fit: a terminal then breaks it as one line.
    """
    lines, line = [], ""
    for piece in _PIECES.findall(_BLANK.sub(" ", text).strip()):
        if line and display_width(line + piece.rstrip()) > room:
            lines.append(line.rstrip())
            line = ""
        line += piece
        while display_width(line.rstrip()) > room and not line.startswith(_COMMAND):
            fits = next(at for at in range(len(line), 0, -1) if display_width(line[:at]) <= room or at == 1)
            lines.append(line[:fits])
            line = line[fits:]
    return [*lines, line.rstrip()]


def _format_line(
    texts: Sequence[str], widths: Sequence[int], room: int | None, colours: Sequence[str | None] = ()
) -> str:
    parts = []
    for number, text in enumerate(texts):
        last = number == len(texts) - 1
        shown = truncate(text, room) if last and room is not None else text
        colour = colours[number] if colours else None
        parts.append(click.style(shown, fg=colour) if colour else shown)
        if not last:
            parts.append(" " * (widths[number] - display_width(text)) + _GAP)
    return "".join(parts).rstrip()


def _char_width(char: str) -> int:
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in ("W", "F") else 1


def print_table(rows: Sequence[Sequence[str]], *, indent: str = "") -> None:
    """Print rows in columns; the last column is wrapped to the terminal."""
    widths = [max(display_width(row[column]) for row in rows) for column in range(len(rows[0]) - 1)] if rows else []
    before = len(indent) + sum(wide + 2 for wide in widths)
    room = max(20, shutil.get_terminal_size((100, 24)).columns - before)
    for row in rows:
        cells = zip(row[:-1], widths, strict=True)
        lead = indent + "".join(cell + " " * (wide - display_width(cell) + 2) for cell, wide in cells)
        for number, line in enumerate(wrap(row[-1], room)):
            click.echo((lead if number == 0 else " " * before) + line)


def format_arguments(arguments: Json) -> list[str]:
    """Return the lines of all arguments; control and invisible characters are escaped."""
    if not isinstance(arguments, dict):
        return _indent("", json_text(arguments))
    if not arguments:
        return ["  (no arguments)"]
    return [line for name, value in arguments.items() for line in _format_argument(name, value)]


def _format_argument(name: str, value: Json) -> list[str]:
    text = value if isinstance(value, str) else json_text(value)
    title = escape_unprintable(name.replace("\n", "\\n"))
    return [f"  {title}: {escape_unprintable(text)}"] if "\n" not in text else _indent(f"{title}:", text)


def _indent(title: str, text: str) -> list[str]:
    lines = [f"    {escape_unprintable(line)}" for line in text.split("\n")]
    return [f"  {title}", *lines] if title else lines
