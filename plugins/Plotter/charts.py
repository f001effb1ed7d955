"""Draws a ``Chart``: lines, points, bars and pies on the frame that ``axes`` makes."""

import math

import axes
import strokes
from axes import INK, PALETTE, PAPER, SOFT, TEXT, Frame
from canvas import Box, Canvas, Colour, Point
from wanted import Chart


def drawn(chart: Chart) -> Canvas:
    """The finished picture."""
    canvas = Canvas(chart.width, chart.height, PAPER)
    if chart.kind == "pie":
        _pie(canvas, chart)
        return canvas
    names = [axes.shown_name(chart, index) for index in range(len(chart.series))]
    top = axes.header(canvas, chart, names if len(names) > 1 or any(names) else [])
    if chart.kind in ("bar", "histogram"):
        _bars(canvas, chart, top)
        return canvas
    made = axes.frame(canvas, chart, top, *_ranges(chart), None)
    for index, series in enumerate(chart.series):
        colour = PALETTE[index % len(PALETTE)]
        if chart.kind == "scatter":
            for point in series.points:
                if _finite(point):
                    canvas.disc(made.place(point), 4.2, colour, 0.8, made.box)
        else:
            _line(canvas, made, series.points, colour)
    return canvas


def _finite(point: Point) -> bool:
    return math.isfinite(point[0]) and math.isfinite(point[1])


def _ranges(chart: Chart) -> tuple[tuple[float, float], tuple[float, float]]:
    points = [point for series in chart.series for point in series.points if _finite(point)]
    xs, ys = [x for x, _ in points], [y for _, y in points]
    x = chart.x_range or axes.padded(min(xs), max(xs))
    return x, chart.y_range or axes.padded(*_without_poles(sorted(ys)))


def _without_poles(ys: list[float]) -> tuple[float, float]:
    """The range of the values, but for the few that run away near a pole."""
    if len(ys) < 200:
        return ys[0], ys[-1]
    low, high = ys[len(ys) // 25], ys[-1 - len(ys) // 25]
    reach = high - low
    if ys[-1] - ys[0] <= 12 * reach or reach == 0:
        return ys[0], ys[-1]
    return max(ys[0], low - reach * 0.1), min(ys[-1], high + reach * 0.1)


def _line(canvas: Canvas, made: Frame, points: list[Point], colour: Colour) -> None:
    """Broken where a value is missing and where it jumps across the whole picture, as at a pole."""
    height = made.box.bottom - made.box.top
    run: list[Point] = []
    few = len(points) <= 40
    for point in points:
        if not _finite(point):
            _stroke(canvas, made, run, colour)
            run = []
            continue
        x, y = made.place(point)
        place = (x, min(max(y, made.box.top - 3 * height), made.box.bottom + 3 * height))
        if run and len(points) > 200 and _jumps(run[-1], place, made):
            _stroke(canvas, made, run, colour)
            run = []
        run.append(place)
        if few:
            canvas.disc(place, 3.6, colour, 1.0, made.box)
    _stroke(canvas, made, run, colour)


def _jumps(was: Point, now: Point, made: Frame) -> bool:
    beyond = made.box.top, made.box.bottom
    return (was[1] < beyond[0] and now[1] > beyond[1]) or (now[1] < beyond[0] and was[1] > beyond[1])


def _stroke(canvas: Canvas, made: Frame, run: list[Point], colour: Colour) -> None:
    if run:
        canvas.stroke(run, colour, 2.4, made.box)


def _bars(canvas: Canvas, chart: Chart, top: float) -> None:
    ys = [y for series in chart.series for _, y in series.points if math.isfinite(y)]
    low, high = min(0.0, *ys), max(0.0, *ys)
    y = chart.y_range or (low - (high - low) * 0.05 * (low < 0), high + ((high - low) * 0.05 or 1.0))
    if chart.kind == "histogram":
        xs = [x for x, _ in chart.series[0].points]
        step = xs[1] - xs[0] if len(xs) > 1 else 1.0
        made = axes.frame(canvas, chart, top, axes.padded(xs[0] - step / 2, xs[-1] + step / 2, 0.02), y, None)
        for x, value in chart.series[0].points:
            _bar(canvas, made, x - step / 2, x + step / 2, value, PALETTE[0])
        return
    count = max(len(series.points) for series in chart.series)
    made = axes.frame(canvas, chart, top, (0.4, count + 0.6), y, bar_names(chart, count))
    share = 0.72 / len(chart.series)
    for index, series in enumerate(chart.series):
        for place, (_, value) in enumerate(series.points, 1):
            left = place - 0.36 + index * share
            _bar(canvas, made, left, left + share, value, PALETTE[index % len(PALETTE)])


def bar_names(chart: Chart, count: int) -> list[str]:
    """What stands below the bars: a label that cannot be drawn becomes its number."""
    given = chart.labels + [str(i + 1) for i in range(len(chart.labels), count)]
    return [
        (name if len(name) <= 16 else name[:14] + "..") if strokes.drawable(name) else str(i)
        for i, name in enumerate(given[:count], 1)
    ]


def _bar(canvas: Canvas, made: Frame, left: float, right: float, value: float, colour: Colour) -> None:
    if not math.isfinite(value):
        return
    (x0, y0), (x1, y1) = made.place((left, max(0.0, value))), made.place((right, min(0.0, value)))
    top, bottom = max(y0, made.box.top), min(y1, made.box.bottom)
    canvas.fill(Box(round(x0) + 1, top, max(round(x1) - 1, round(x0) + 2), bottom), colour)


def _pie(canvas: Canvas, chart: Chart) -> None:
    top = axes.header(canvas, chart, [])
    values = [value for _, value in chart.series[0].points]
    total = sum(values)
    names = bar_names(chart, len(values))
    texts = [f"{name}  {value / total:.1%}" for name, value in zip(names, values, strict=True)]
    wide = max(strokes.width(text, TEXT) for text in texts) + 60
    radius = min(canvas.height - top - 30, canvas.width - wide - 60) / 2
    centre = ((canvas.width - wide) / 2, top + (canvas.height - top) / 2 - 4)
    ends = [sum(values[: index + 1]) / total * math.tau for index in range(len(values))]
    canvas.pie(centre, radius, ends, [PALETTE[index % len(PALETTE)] for index in range(len(values))])
    for edge in ends if sum(value > 0 for value in values) > 1 else []:
        canvas.stroke([centre, (centre[0] + radius * math.sin(edge), centre[1] - radius * math.cos(edge))], PAPER, 2.4)
    row = max(16.0, min(26.0, (canvas.height - top - 20) / len(texts)))
    pen = centre[1] - row * len(texts) / 2 + row / 2
    for index, text in enumerate(texts):
        left = canvas.width - wide
        canvas.fill(Box(left, pen - 6, left + 13, pen + 7), PALETTE[index % len(PALETTE)])
        strokes.draw(
            canvas,
            text,
            (left + 22, pen + TEXT / 2 + 0.5),
            TEXT,
            INK if index % 2 == 0 else SOFT if len(texts) > 16 else INK,
        )
        pen += row
