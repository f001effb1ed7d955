"""Data of the attachments that are no text: tables, charts as tables, and the sources of media.

A table of more than 2,000 cells or 40 columns is shown as its source. Nothing here is escaped.
"""

import csv
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from toolyard.protocol.json import Json

_MAX_CELLS = 2_000
_MAX_COLUMNS = 40
_RULE = re.compile(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*")
_PIPE = re.compile(r"(?<!\\)\|")
_DATA_URI = re.compile(r"data:([a-z0-9.+-]{1,60}/[a-z0-9.+-]{1,60})?[^,]{0,200}?(;base64)?,", re.IGNORECASE)
_WEB = re.compile(r"https?://[^/?#\s]", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Table:
    """Every row has as many cells as there are columns."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Media:
    """One of the three: a web address, data of ``size`` bytes, or a ``text`` that is neither."""

    url: str = ""
    mime: str = ""
    size: int = 0
    text: str = ""


def read_table(content: Json) -> Table | None:
    if isinstance(content, str):
        parsed = _parse_text(content)
        return _parse_table(content) if parsed is None else read_table(parsed)
    if isinstance(content, dict):
        rows = content.get("rows")
        columns = content.get("columns")
        return _make_table(columns if isinstance(columns, list) else [], rows) if isinstance(rows, list) else None
    return _make_table([], content) if isinstance(content, list) else None


def read_chart(content: Json) -> Table | None:
    """Return the numbers of a Chart.js configuration: a row for each label, a column for each dataset."""
    config = _parse_text(content) if isinstance(content, str) else content
    data = config.get("data") if isinstance(config, dict) else None
    labels = data.get("labels") if isinstance(data, dict) else None
    entries = data.get("datasets") if isinstance(data, dict) else None
    datasets = [item for item in entries if isinstance(item, dict)] if isinstance(entries, list) else []
    series: list[list[Json]] = [values for item in datasets if isinstance(values := item.get("data"), list)]
    if not series or len(series) != len(datasets):
        return None
    count = max(len(values) for values in series)
    names = labels if isinstance(labels, list) else list(range(1, count + 1))
    if max(count, len(names)) * (len(series) + 1) > _MAX_CELLS:
        return None
    rows: list[Json] = [
        [names[at] if at < len(names) else "", *(values[at] if at < len(values) else "" for values in series)]
        for at in range(max(count, len(names)))
    ]
    return _make_table(["", *(write_cell(item.get("label")) for item in datasets)], rows)


def read_media(content: Json) -> Media:
    text = content.strip() if isinstance(content, str) else write_cell(content)
    data = _DATA_URI.match(text)
    if data:
        body = len(text) - data.end()
        return Media(mime=(data[1] or "text/plain").lower(), size=body * 3 // 4 if data[2] else body)
    return Media(url=text) if _WEB.match(text) else Media(text=text)


def write_cell(value: Json) -> str:
    """Return a value as one line of a table."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return " ".join(text.split())


def _make_table(columns: Sequence[Json], rows: list[Json]) -> Table | None:
    if not columns and rows and isinstance(rows[0], dict):
        columns = list(rows[0])
    width = max([len(columns), *(len(row) if isinstance(row, list) else 1 for row in rows)])
    if not 0 < width <= _MAX_COLUMNS or width * len(rows) > _MAX_CELLS:
        return None
    keys = [_column_name(column, ("key", "field", "name", "id", "title")) for column in columns]
    heads = [_column_name(column, ("title", "label", "name", "header", "key")) for column in columns]
    return Table(_pad_cells(heads, width), tuple(_pad_cells(list(_read_cells(row, keys)), width) for row in rows))


def _column_name(column: Json, names: Sequence[str]) -> str:
    return write_cell(
        next((column[name] for name in names if name in column), "") if isinstance(column, dict) else column
    )


def _read_cells(row: Json, keys: list[str]) -> Iterator[str]:
    if isinstance(row, dict):
        yield from (write_cell(row.get(key)) for key in keys)
    else:
        yield from map(write_cell, row if isinstance(row, list) else [row])


def _pad_cells(cells: Sequence[str], width: int) -> tuple[str, ...]:
    return (*cells, *[""] * (width - len(cells)))


def _parse_table(text: str) -> Table | None:
    lines = text.strip().splitlines(keepends=True)
    if not lines or len(lines) > _MAX_CELLS:
        return None
    if len(lines) > 1 and "|" in lines[0] and _RULE.fullmatch(lines[1].rstrip()):
        table = [_split_row(line) for line in (lines[0], *lines[2:]) if line.strip()]
    else:
        mark = max(",\t;|", key=lines[0].count)
        if mark not in lines[0]:
            return None
        try:
            table = [row for row in csv.reader(lines, delimiter=mark, skipinitialspace=True) if row]
        except csv.Error:
            return None
    return _make_table(table[0], [list[Json](row) for row in table[1:]]) if table else None


def _split_row(line: str) -> list[str]:
    body = line.strip().removeprefix("|")
    body = body[:-1] if body.endswith("|") and not body.endswith("\\|") else body
    return [part.strip().replace("\\|", "|") for part in _PIPE.split(body)]


def _parse_text(text: str) -> Json:
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        value: Json = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value
