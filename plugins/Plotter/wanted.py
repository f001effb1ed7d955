"""What to draw: a request with any of its synonyms becomes one ``Chart``, or is refused.

Bounds: 12 series, 20000 points, 60 bars, 24 slices.
"""

import math
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from canvas import Point
from formula import BadFormula, compiled
from reading import Bad, listed, number, points_of, read, span_of, table

MAX_SERIES = 12
MAX_POINTS = 20_000
MAX_BARS = 60
MAX_SLICES = 24
KINDS = {
    "function": "function", "functions": "function", "函数": "function", "line": "line", "折线": "line",
    "折线图": "line",
    "scatter": "scatter", "points": "scatter", "散点": "scatter", "散点图": "scatter", "bar": "bar", "bars": "bar",
    "column": "bar", "柱状图": "bar", "条形图": "bar", "histogram": "histogram", "hist": "histogram",
    "直方图": "histogram",
    "pie": "pie", "饼图": "pie", "parametric": "parametric", "参数": "parametric", "参数方程": "parametric",
    "polar": "polar",
    "极坐标": "polar",
}  # fmt: skip
_NAMES = {
    "kind": ("type", "kind", "chart", "chart_type", "类型"),
    "functions": ("functions", "function", "expression", "expressions", "expr", "formula", "y", "f", "函数"),
    "data": ("data", "values", "series", "数据"),
    "labels": ("labels", "categories", "names", "legend", "标签"),
    "range": ("range", "x_range", "xrange", "t_range", "domain", "范围"),
    "low": ("x_min", "xmin", "from", "t_min", "tmin"),
    "high": ("x_max", "xmax", "to", "t_max", "tmax"),
    "y_range": ("y_range", "yrange"),
    "y_low": ("y_min", "ymin"),
    "y_high": ("y_max", "ymax"),
    "title": ("title", "标题"),
    "x_label": ("x_label", "xlabel", "x轴"),
    "y_label": ("y_label", "ylabel", "y轴"),
    "width": ("width", "宽"),
    "height": ("height", "高"),
    "size": ("size", "resolution", "分辨率"),
    "bins": ("bins",),
}


class Series(NamedTuple):
    """Points under a name; a point that is NaN breaks the line."""

    name: str
    points: list[Point]


class Chart(NamedTuple):
    """Everything the drawing needs."""

    kind: str  # line, scatter, bar, histogram or pie
    series: list[Series]
    labels: list[str]
    title: str
    x_label: str
    y_label: str
    width: int
    height: int
    x_range: tuple[float, float] | None
    y_range: tuple[float, float] | None
    equal: bool  # one unit is as long on both axes


def given(args: Mapping[str, Any], name: str) -> Any:
    """A parameter under any of its names, or None."""
    lower = {str(key).strip().lower(): value for key, value in args.items()}
    return next((lower[key] for key in _NAMES[name] if lower.get(key) not in (None, "")), None)


def chart_from(args: Mapping[str, Any]) -> Chart:
    """The chart that is asked for."""
    formulas, data = listed(given(args, "functions")), given(args, "data")
    written = str(given(args, "kind") or ("function" if formulas else _guessed(data))).strip().lower()
    kind = KINDS.get(written)
    if kind is None:
        raise Bad(
            f"There is no type '{written[:50]}'. Use function, line, scatter, bar, histogram, pie, parametric or polar."
        )
    span = span_of(given(args, "range"), given(args, "low"), given(args, "high"), "x")
    labels = [str(label) for label in listed(given(args, "labels"))]
    if kind in ("function", "parametric", "polar"):
        if not formulas:
            raise Bad("functions is missing: write the functions to draw, such as sin(x); x^2/10.")
        series = [_sampled(kind, text, span, labels, index) for index, text in enumerate(formulas[:MAX_SERIES])]
    else:
        series, found = _data(data, kind)
        labels = labels or found
        if kind == "histogram":
            series, labels = _counted(series[0], number(given(args, "bins"))), []
    _bounded(kind, series)
    width, height = _size(args)
    shown = "line" if kind in ("function", "parametric", "polar") else kind
    return Chart(
        kind=shown,
        series=series,
        labels=labels,
        title=str(given(args, "title") or "").strip()[:200],
        x_label=str(given(args, "x_label") or "").strip()[:100],
        y_label=str(given(args, "y_label") or "").strip()[:100],
        width=width,
        height=height,
        x_range=(span or (-10.0, 10.0)) if kind == "function" else span if kind in ("line", "scatter") else None,
        y_range=span_of(given(args, "y_range"), given(args, "y_low"), given(args, "y_high"), "y"),
        equal=kind in ("parametric", "polar"),
    )


def _guessed(data: Any) -> str:
    found = read(data)
    if isinstance(found, dict) and all(not isinstance(value, list) for value in found.values()):
        return "bar"
    return "line"


def _sampled(kind: str, text: Any, span: tuple[float, float] | None, labels: list[str], index: int) -> Series:
    formula = str(text).strip()
    name = labels[index] if index < len(labels) else formula
    body = re.sub(r"^\s*(?:[A-Za-z]\w*\s*\(\s*\w\s*\)|[yrf])\s*=(?!=)\s*", "", formula)
    try:
        if kind == "function":
            low, high = span or (-10.0, 10.0)
            of, steps = compiled(body, "x"), 1600
            return Series(name, [(x, of(x)) for x in (low + (high - low) * i / steps for i in range(steps + 1))])
        low, high = span or (0.0, math.tau)
        times = [low + (high - low) * i / 1600 for i in range(1601)]
        if kind == "polar":
            radius = compiled(body.replace("theta", "t").replace("θ", "t"), "t")
            return Series(name, [(radius(t) * math.cos(t), radius(t) * math.sin(t)) for t in times])
        across, down = (compiled(part, "t") for part in _pair(body))
        return Series(name, [(across(t), down(t)) for t in times])
    except BadFormula as problem:
        raise Bad(str(problem)) from None


def _pair(text: str) -> tuple[str, str]:
    depth = 0
    plain = re.sub(r"[xy]\s*=\s*", "", text.strip()).replace("，", ",")
    if plain.startswith("(") and plain.endswith(")") and plain.count("(") == plain.count(")"):
        inner = plain[1:-1]
        plain = inner if "," in inner and inner.find(")") >= inner.find("(") else plain
    for at, sign in enumerate(plain):
        depth += (sign == "(") - (sign == ")")
        if sign == "," and depth == 0:
            return plain[:at], plain[at + 1 :]
    raise Bad(f"The parametric curve '{text[:80]}' needs two parts, x and y, such as cos(3t), sin(2t).")


def _data(value: Any, kind: str) -> tuple[list[Series], list[str]]:
    found = read(value)
    if isinstance(found, str):
        found = table(found)
    if isinstance(found, dict) and found:
        if all(isinstance(item, list) for item in found.values()):
            return [Series(str(name), points_of(items)) for name, items in found.items()], []
        return [Series("", points_of(list(found.values())))], [str(name) for name in found]
    if isinstance(found, list) and found:
        if all(isinstance(item, dict) and isinstance(item.get("data"), list) for item in found):
            return [Series(str(item.get("name", "")), points_of(item["data"])) for item in found], []
        return [Series("", points_of(found))], []
    example = '{"A": 3, "B": 5}' if kind in ("pie", "bar") else "[[0,1],[1,3],[2,2]] or [1,3,2]"
    raise Bad(f"data is missing or wrong. For {kind}, write it like {example}.")


def _counted(series: Series, bins: float | None) -> list[Series]:
    values = [y for _, y in series.points if math.isfinite(y)]
    if not values:
        raise Bad("A histogram needs at least one number.")
    low, high = min(values), max(values)
    count = int(bins) if bins else max(1, min(50, math.ceil(math.sqrt(len(values)))))
    if not 1 <= count <= 200:
        raise Bad("bins must be from 1 to 200.")
    step = (high - low) / count or 1.0
    heights = [0] * count
    for value in values:
        heights[min(int((value - low) / step), count - 1)] += 1
    return [Series(series.name, [(low + step * (i + 0.5), float(height)) for i, height in enumerate(heights)])]


def _bounded(kind: str, series: list[Series]) -> None:
    if len(series) > MAX_SERIES:
        raise Bad(f"There are {len(series)} series, at most {MAX_SERIES} can be drawn.")
    total = sum(len(item.points) for item in series)
    longest = max(len(item.points) for item in series)
    if total > MAX_POINTS + 1601 * (kind in ("line", "scatter", "histogram")):
        raise Bad(f"There are {total} points, at most {MAX_POINTS} can be drawn.")
    if (kind == "bar" and longest > MAX_BARS) or (kind == "pie" and longest > MAX_SLICES):
        raise Bad(f"There are {longest} items, at most {MAX_BARS} bars or {MAX_SLICES} slices can be drawn.")
    if not any(math.isfinite(x) and math.isfinite(y) for item in series for x, y in item.points):
        raise Bad("There is nothing to draw in this range: check the domain of the function, or the data.")
    if kind == "pie" and (any(not y >= 0 for _, y in series[0].points) or not sum(y for _, y in series[0].points) > 0):
        raise Bad("A pie chart needs data that are not negative, with a sum above 0.")


def _size(args: Mapping[str, Any]) -> tuple[int, int]:
    text = str(given(args, "size") or "")
    match = re.fullmatch(r"\s*(\d{2,5})\s*[xX×*]\s*(\d{2,5})\s*", text)
    width = int(match[1]) if match else number(given(args, "width"), "width") or 960
    height = int(match[2]) if match else number(given(args, "height"), "height") or 600
    if not (240 <= width <= 2000 and 180 <= height <= 2000):
        raise Bad(f"The size {width:g}x{height:g} is wrong: 240 to 2000 pixels wide and 180 to 2000 pixels high.")
    return int(width), int(height)
