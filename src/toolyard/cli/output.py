"""Output of results on stdout, as tables or JSON."""

import json
import shutil
from collections.abc import Sequence
from typing import Any

import click

from toolyard.cli.table import display_width, wrap


def json_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def print_json(value: Any) -> None:
    click.echo(json_text(value))


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
