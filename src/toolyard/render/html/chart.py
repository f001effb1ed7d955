"""Charts: the plain data of a Chart.js configuration, as a readable table and as JSON for drawing.

``data-chart`` holds ``{type, labels, datasets: [{label, data, type?}], title?, stacked?, horizontal?}`` and nothing
else of the configuration: no options, no functions, no addresses. At most 20 datasets of 1,000 points.
"""

import json
from dataclasses import dataclass
from html import escape

from toolyard.protocol.json import Json, JsonObject
from toolyard.render.html.card import render_figure, render_note, render_warning
from toolyard.render.html.code import render_source
from toolyard.render.html.sheet import Sheet
from toolyard.render.html.table import Table, table_to_html

_TYPES = frozenset({"bar", "line", "pie", "doughnut", "radar", "scatter", "bubble", "polararea"})
_MAX_SETS = 20
_MAX_POINTS = 1_000
_MAX_NAME = 500


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
        return {key: _read_number(value[key]) for key in ("x", "y", "r") if key in value}
    if isinstance(value, list):
        return [_read_number(item) for item in value[:3]]
    return _read_number(value)


def _read_number(value: Json) -> Json:
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
