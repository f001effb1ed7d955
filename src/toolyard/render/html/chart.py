"""Charts: of a Chart.js configuration the plain data, as a table that can be read and as JSON that can be drawn.

``data-chart`` holds ``{type, labels, datasets: [{label, data, type?}], title?, stacked?, horizontal?}`` and nothing
else of the configuration: no options, no functions, no addresses. At most 20 datasets of 1,000 points.
"""

import json
from dataclasses import dataclass
from html import escape

from toolyard.protocol.json import Json, JsonObject
from toolyard.render.html.card import figure, note, warning
from toolyard.render.html.code import source_block
from toolyard.render.html.sheet import Sheet
from toolyard.render.html.table import Table, table_html

_TYPES = frozenset({"bar", "line", "pie", "doughnut", "radar", "scatter", "bubble", "polararea"})
_MAX_SETS = 20
_MAX_POINTS = 1_000
_MAX_NAME = 500


@dataclass(frozen=True, slots=True)
class _Set:
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
    sets: tuple[_Set, ...]
    extras: JsonObject

    @property
    def points(self) -> int:
        return max(len(self.labels), *(len(one.data) for one in self.sets))

    def to_dict(self) -> JsonObject:
        labels: list[Json] = [*self.labels[:_MAX_POINTS]]
        return {"type": self.type, "labels": labels, "datasets": [one.to_dict() for one in self.sets], **self.extras}

    def table(self) -> Table:
        rows = tuple(
            (
                self.labels[number] if number < len(self.labels) else str(number + 1),
                *(_shown(one.data[number]) if number < len(one.data) else "" for one in self.sets),
            )
            for number in range(min(self.points, _MAX_POINTS))
        )
        return Table(("", *(one.label for one in self.sets)), rows, self.points)


def chart(sheet: Sheet, content: Json, title: str | None) -> str:
    try:
        read = _read(_folded(json.loads(content) if isinstance(content, str) else content))
    except (ValueError, RecursionError):
        source = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
        return figure("chart-source", title, warning(sheet.texts.chart) + source_block(sheet, source))
    data = escape(json.dumps(read.to_dict(), separators=(",", ":"), allow_nan=False))
    cut = sheet.texts.rows_cut.format(shown=_MAX_POINTS, all=read.points)
    body = table_html(read.table()) + (note(cut) if read.points > _MAX_POINTS else "")
    own = read.extras.get("title")
    return figure("chart", title or (own if isinstance(own, str) else None), body, attributes=f' data-chart="{data}"')


def _read(config: JsonObject) -> _Chart:
    data, kind = _folded(config.get("data")), config.get("type")
    given, labels = data.get("datasets"), data.get("labels")
    sets = tuple(_set(_folded(item)) for item in given[:_MAX_SETS]) if isinstance(given, list) else ()
    if not sets:
        raise ValueError("there are no datasets")
    names = tuple(_name(label) for label in labels) if isinstance(labels, list) else ()
    return _Chart(_known(kind) or "bar", names, sets, _extras(_optional(config.get("options"))))


def _extras(options: JsonObject) -> JsonObject:
    extras: JsonObject = {}
    title = _optional(_optional(options.get("plugins")).get("title")).get("text")
    if isinstance(title, str):
        extras["title"] = title[:_MAX_NAME]
    scales = [_optional(scale) for scale in _optional(options.get("scales")).values()]
    if any(scale.get("stacked") is True for scale in scales):
        extras["stacked"] = True
    if options.get("indexaxis") == "y":
        extras["horizontal"] = True
    return extras


def _set(item: JsonObject) -> _Set:
    data = item.get("data")
    points = tuple(_point(value) for value in data) if isinstance(data, list) else ()
    return _Set(_name(item.get("label") or ""), _known(item.get("type")), points)


def _known(kind: Json) -> str | None:
    return kind.lower() if isinstance(kind, str) and kind.lower() in _TYPES else None


def _point(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: _number(value[key]) for key in ("x", "y", "r") if key in value}
    if isinstance(value, list):
        return [_number(item) for item in value[:3]]
    return _number(value)


def _number(value: Json) -> Json:
    if isinstance(value, str):
        return value[:_MAX_NAME]
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300
    return value if is_number else None


def _name(value: Json) -> str:
    return (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))[:_MAX_NAME]


def _folded(value: Json) -> JsonObject:
    if not isinstance(value, dict):
        raise ValueError("a chart is an object with data")
    return {key.lower(): item for key, item in value.items()}


def _optional(value: Json) -> JsonObject:
    return _folded(value) if isinstance(value, dict) else {}


def _shown(value: Json) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} = {_shown(item)}" for key, item in value.items())
    return "" if value is None else value if isinstance(value, str) else json.dumps(value)
