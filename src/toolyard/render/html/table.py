"""Tables: ``{columns, rows}``, lists, CSV or Markdown as one value, and that value as HTML. Cells are text only.

At most 1,000 rows and 50 columns are shown.
"""

import csv
import io
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from toolyard.protocol.json import Json
from toolyard.render.html.card import render_figure, render_note
from toolyard.render.html.code import render_source
from toolyard.render.html.sheet import Sheet
from toolyard.render.html.visible import escape_text

_MAX_ROWS = 1_000
_MAX_COLUMNS = 50
_MAX_CELL = 10_000
_RULE = re.compile(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*){0,200}\|?[ \t]*")


@dataclass(frozen=True, slots=True)
class Table:
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    row_count: int  # of the complete table


def render_table(sheet: Sheet, content: Json, title: str | None) -> str:
    read = read_table(content)
    if read is None:
        source = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
        return render_figure("table", title, render_source(sheet, source))
    cut = sheet.texts.rows_cut.format(shown=len(read.rows), all=read.row_count)
    return render_figure(
        "table", title, table_to_html(read) + (render_note(cut) if read.row_count > len(read.rows) else "")
    )


def table_to_html(read: Table) -> str:
    head = "".join(f'<th scope="col">{escape_text(name)}</th>' for name in read.columns)
    rows = "".join("<tr>" + "".join(f"<td>{escape_text(cell)}</td>" for cell in row) + "</tr>" for row in read.rows)
    head = f"<thead><tr>{head}</tr></thead>" if read.columns else ""
    return f"<table>{head}<tbody>{rows}</tbody></table>"


def read_table(content: Json) -> Table | None:
    """Return the table in ``content``, or None where there is none."""
    if isinstance(content, str):
        text = content.strip()
        if text[:1] in ("{", "["):
            try:
                return read_table(_parse_text(text))
            except ValueError:
                pass
        return _parse_markdown(text) or _parse_csv(text)
    if isinstance(content, dict):
        rows, columns = content.get("rows"), content.get("columns")
        return _from_rows(rows, columns if isinstance(columns, list) else []) if isinstance(rows, list) else None
    return _from_rows(content, []) if isinstance(content, list) else None


def _parse_text(text: str) -> Json:
    try:
        value: Json = json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if isinstance(value, str):
        raise ValueError("a text is no table")
    return value


def _from_rows(rows: list[Json], columns: list[Json]) -> Table:
    keys = [_first_value(column, ("key", "field", "name", "id", "title")) for column in columns[:_MAX_COLUMNS]]
    names = [_first_value(column, ("title", "label", "name", "header", "key")) for column in columns[:_MAX_COLUMNS]]
    if not keys:
        all_keys = dict.fromkeys(key for row in rows[:_MAX_ROWS] if isinstance(row, dict) for key in row)
        keys = names = list(all_keys)[:_MAX_COLUMNS]
    cells = [
        [row.get(key, "") for key in keys] if isinstance(row, dict) else row if isinstance(row, list) else [row]
        for row in rows[:_MAX_ROWS]
    ]
    return _make_table(names, cells, len(rows))


def _first_value(column: Json, names: Sequence[str]) -> str:
    if isinstance(column, dict):
        return next((_format_cell(column[name]) for name in names if name in column), "")
    return _format_cell(column)


def _parse_csv(text: str) -> Table | None:
    first = text.partition("\n")[0]
    mark = max(",;\t|", key=first.count)
    try:
        rows = [row for row in csv.reader(io.StringIO(text), delimiter=mark, skipinitialspace=True) if row]
    except csv.Error:
        return None
    return _make_table(rows[0], rows[1:], len(rows) - 1) if rows and first.count(mark) else None


def _parse_markdown(text: str) -> Table | None:
    lines = text.splitlines()
    if len(lines) < 2 or "|" not in lines[0] or len(lines[1]) > _MAX_CELL or not _RULE.fullmatch(lines[1]):
        return None
    rows = [_split_row(line) for line in lines[2:] if line.strip()]
    return _make_table(_split_row(lines[0]), rows, len(rows))


def _split_row(line: str) -> list[str]:
    cells = re.split(r"(?<!\\)\|", line.strip())
    cells = cells[1:] if not cells[0] else cells
    cells = cells[:-1] if cells and not cells[-1] else cells
    return [cell.strip().replace("\\|", "|") for cell in cells]


def _make_table(columns: Sequence[Json], rows: Sequence[Iterable[Json]], count: int) -> Table:
    names = tuple(_format_cell(name) for name in columns[:_MAX_COLUMNS])
    cells = (tuple(_format_cell(cell) for cell in list(row)[:_MAX_COLUMNS]) for row in rows[:_MAX_ROWS])
    return Table(names, tuple(row + ("",) * (len(names) - len(row)) for row in cells), count)


def _format_cell(value: Json) -> str:
    text = value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)
    return text[:_MAX_CELL]
