"""Tables and charts, as HTML tables. Cells are text only.

A table is ``{columns, rows}``, lists, CSV or Markdown; at most 1,000 rows and 50 columns are shown. A chart is the
plain data of a Chart.js configuration, as a readable table and as JSON for drawing: ``data-chart`` holds ``{type,
labels, datasets: [{label, data, type?}], title?, stacked?, horizontal?}`` and nothing else of the configuration: no
options, no functions, no addresses. At most 20 datasets of 1,000 points."""

import csv
import io
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from toolyard.protocol.json import Json, JsonObject
from toolyard.render.html.code import render_source
from toolyard.render.html.sheet import Sheet, escape_text, render_figure, render_note, render_warning

_MAX_ROWS = 1_000
_MAX_COLUMNS = 50
_MAX_CELL = 10_000
_RULE = re.compile(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*){0,200}\|?[ \t]*")
_TYPES = frozenset({"bar", "line", "pie", "doughnut", "radar", "scatter", "bubble", "polararea"})
_MAX_SETS = 20
_MAX_POINTS = 1_000
_MAX_NAME = 500


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


@dataclass(frozen=True, slots=True)
class _DataSet:
    label: str
    type: str | None
    data: tuple[Json, ...]

    def to_dict(self) -> JsonObject:
        kind: JsonObject = {"type": self.type} if self.type else {}
        return {"label": self.label, "data": list(self.data[:_MAX_POINTS]), **kind}


@dataclass(frozen=True, slots=True)
class _Chart:
    type: str
    labels: tuple[str, ...]
    sets: tuple[_DataSet, ...]
    extras: JsonObject

    @property
    def points(self) -> int:
        return max(len(self.labels), *(len(one.data) for one in self.sets))

    def to_dict(self) -> JsonObject:
        labels: list[Json] = [*self.labels[:_MAX_POINTS]]
        return {"type": self.type, "labels": labels, "datasets": [one.to_dict() for one in self.sets], **self.extras}

    def to_table(self) -> Table:
        rows = tuple(
            (
                self.labels[number] if number < len(self.labels) else str(number + 1),
                *(_format_value(one.data[number]) if number < len(one.data) else "" for one in self.sets),
            )
            for number in range(min(self.points, _MAX_POINTS))
        )
        return Table(("", *(one.label for one in self.sets)), rows, self.points)


def render_chart(sheet: Sheet, content: Json, title: str | None) -> str:
    try:
        read = _read_chart(_fold_lines(json.loads(content) if isinstance(content, str) else content))
    except (ValueError, RecursionError):
        source = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
        return render_figure("chart-source", title, render_warning(sheet.texts.chart) + render_source(sheet, source))
    data = escape(json.dumps(read.to_dict(), separators=(",", ":"), allow_nan=False))
    cut = sheet.texts.rows_cut.format(shown=_MAX_POINTS, all=read.points)
    body = table_to_html(read.to_table()) + (render_note(cut) if read.points > _MAX_POINTS else "")
    own = read.extras.get("title")
    return render_figure(
        "chart", title or (own if isinstance(own, str) else None), body, attributes=f' data-chart="{data}"'
    )


def _read_chart(config: JsonObject) -> _Chart:
    data, kind = _fold_lines(config.get("data")), config.get("type")
    entries, labels = data.get("datasets"), data.get("labels")
    sets = tuple(_read_set(_fold_lines(item)) for item in entries[:_MAX_SETS]) if isinstance(entries, list) else ()
    if not sets:
        raise ValueError("there are no datasets")
    names = tuple(_read_name(label) for label in labels) if isinstance(labels, list) else ()
    return _Chart(_known_kind(kind) or "bar", names, sets, _read_extras(_read_optional(config.get("options"))))


def _read_extras(options: JsonObject) -> JsonObject:
    extras: JsonObject = {}
    title = _read_optional(_read_optional(options.get("plugins")).get("title")).get("text")
    if isinstance(title, str):
        extras["title"] = title[:_MAX_NAME]
    scales = [_read_optional(scale) for scale in _read_optional(options.get("scales")).values()]
    if any(scale.get("stacked") is True for scale in scales):
        extras["stacked"] = True
    if options.get("indexaxis") == "y":
        extras["horizontal"] = True
    return extras


def _read_set(item: JsonObject) -> _DataSet:
    data = item.get("data")
    points = tuple(_read_point(value) for value in data) if isinstance(data, list) else ()
    return _DataSet(_read_name(item.get("label") or ""), _known_kind(item.get("type")), points)


def _known_kind(kind: Json) -> str | None:
    return kind.lower() if isinstance(kind, str) and kind.lower() in _TYPES else None


def _read_point(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: _read_plain_number(value[key]) for key in ("x", "y", "r") if key in value}
    if isinstance(value, list):
        return [_read_plain_number(item) for item in value[:3]]
    return _read_plain_number(value)


def _read_plain_number(value: Json) -> Json:
    if isinstance(value, str):
        return value[:_MAX_NAME]
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300
    return value if is_number else None


def _read_name(value: Json) -> str:
    return (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))[:_MAX_NAME]


def _fold_lines(value: Json) -> JsonObject:
    if not isinstance(value, dict):
        raise ValueError("a chart is an object with data")
    return {key.lower(): item for key, item in value.items()}


def _read_optional(value: Json) -> JsonObject:
    return _fold_lines(value) if isinstance(value, dict) else {}


def _format_value(value: Json) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} = {_format_value(item)}" for key, item in value.items())
    return "" if value is None else value if isinstance(value, str) else json.dumps(value)
