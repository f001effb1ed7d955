"""The frame of a chart: ranges, round ticks, grid, labels, legend. Gives back how a value becomes a pixel."""

import math
from typing import NamedTuple

import strokes
from canvas import Box, Canvas, Colour, Point
from wanted import Chart

INK: Colour = (45, 52, 64)
SOFT: Colour = (110, 118, 130)
GRID: Colour = (232, 235, 240)
AXIS: Colour = (176, 183, 193)
PAPER: Colour = (255, 255, 255)
PALETTE: tuple[Colour, ...] = (
    (31, 111, 214), (232, 89, 12), (26, 152, 80), (201, 42, 116), (124, 77, 196), (0, 150, 167), (184, 134, 11),
    (196, 43, 43),
    (90, 110, 130), (120, 160, 20), (214, 120, 170), (70, 70, 200),
)  # fmt: skip
TEXT = 10.0


class Frame(NamedTuple):
    """The plotting area and the values at its edges."""

    box: Box
    x: tuple[float, float]
    y: tuple[float, float]

    def place(self, point: Point) -> Point:
        """Where a value stands in the picture."""
        across = (point[0] - self.x[0]) / (self.x[1] - self.x[0])
        up = (point[1] - self.y[0]) / (self.y[1] - self.y[0])
        return (
            self.box.left + across * (self.box.right - self.box.left),
            self.box.bottom - up * (self.box.bottom - self.box.top),
        )


def shown_name(chart: Chart, index: int) -> str:
    """The name of a series as it can be drawn."""
    name = chart.series[index].name
    if name and strokes.drawable(name):
        return name if len(name) <= 42 else name[:39] + "..."
    return f"series {index + 1}" if name or len(chart.series) > 1 else ""


def ticks(low: float, high: float, most: int) -> list[float]:
    """Round values: steps of 1, 2 or 5 times a power of ten."""
    rough = (high - low) / max(1, most)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [
        round(k * step, 12 - math.floor(math.log10(step))) for k in range(first, math.floor(high / step + 1e-9) + 1)
    ]


def labelled(values: list[float]) -> list[str]:
    """The ticks as text, all with as many decimals as the step needs."""
    largest = max((abs(value) for value in values), default=0.0)
    step = abs(values[1] - values[0]) if len(values) > 1 else largest or 1.0
    if largest >= 1e6 or step < 1e-4:
        return [f"{value:.6g}" for value in values]
    places = max(0, -math.floor(math.log10(step) + 1e-9))
    return [f"{value:.{places}f}".replace("-", "−") for value in values]


def padded(low: float, high: float, share: float = 0.05) -> tuple[float, float]:
    """A little more room on both sides; never empty."""
    if high - low <= 1e-12 * max(abs(low), abs(high), 1e-290):
        reach = abs(low) * 0.1 or 1.0
        return low - reach, high + reach
    return low - (high - low) * share, high + (high - low) * share


def header(canvas: Canvas, chart: Chart, names: list[str]) -> float:
    """Title and legend; gives the height they take."""
    top = 18.0
    if chart.title and strokes.drawable(chart.title):
        size = min(15.0, 15.0 * (canvas.width - 40) / max(1.0, strokes.width(chart.title, 15.0)))
        left = (canvas.width - strokes.width(chart.title, size)) / 2
        strokes.draw(canvas, chart.title, (left, top + size), size, INK, bold=True)
        top += 30
    if any(names):
        top = _legend(canvas, names, top)
    return top


def _legend(canvas: Canvas, names: list[str], top: float) -> float:
    widths = [strokes.width(name, TEXT) + 50 for name in names]
    rows: list[list[int]] = [[]]
    for index, width in enumerate(widths):
        if rows[-1] and sum(widths[i] for i in rows[-1]) + width > canvas.width - 60:
            rows.append([])
        rows[-1].append(index)
    for row in rows:
        pen = (canvas.width - sum(widths[i] for i in row)) / 2 + 8
        for index in row:
            canvas.stroke([(pen, top + 6), (pen + 20, top + 6)], PALETTE[index % len(PALETTE)], 3.2)
            strokes.draw(canvas, names[index], (pen + 28, top + 6 + TEXT / 2), TEXT, INK)
            pen += widths[index]
        top += 20
    return top + 2


def frame(
    canvas: Canvas, chart: Chart, top: float, x: tuple[float, float], y: tuple[float, float], names: list[str] | None
) -> Frame:
    """Draws grid, axes and labels; ``names`` stand below a bar chart in place of numbers."""
    y_ticks = ticks(*y, max(2, int(canvas.height / 70)))
    y_texts = labelled(y_ticks)
    left = 26 + max((strokes.width(text, TEXT) for text in y_texts), default=0) + (24 if _drawn(chart.y_label) else 0)
    box = Box(round(left), round(top + 8), canvas.width - 24, canvas.height - (62 if _drawn(chart.x_label) else 40))
    if chart.equal:
        x, y = _equal(box, x, y)
        y_ticks = ticks(*y, max(2, int(canvas.height / 70)))
        y_texts = labelled(y_ticks)
    made = Frame(box, x, y)
    _rows(canvas, made, y_ticks, y_texts)
    if names is None:
        x_ticks = ticks(*x, max(2, int((box.right - box.left) / 90)))
        _columns(canvas, made, x_ticks, labelled(x_ticks), grid=True)
    else:
        every = max(
            1,
            math.ceil(
                max((strokes.width(name, TEXT) + 10 for name in names), default=1) * len(names) / (box.right - box.left)
            ),
        )
        _columns(canvas, made, [float(i + 1) for i in range(0, len(names), every)], names[::every], grid=False)
    _axis_labels(canvas, chart, box)
    return made


def _drawn(text: str) -> bool:
    return bool(text) and strokes.drawable(text)


def _equal(box: Box, x: tuple[float, float], y: tuple[float, float]) -> tuple[tuple[float, float], tuple[float, float]]:
    width, height = box.right - box.left, box.bottom - box.top
    unit = max((x[1] - x[0]) / width, (y[1] - y[0]) / height)
    mx, my = (x[0] + x[1]) / 2, (y[0] + y[1]) / 2
    return (mx - unit * width / 2, mx + unit * width / 2), (my - unit * height / 2, my + unit * height / 2)


def _rows(canvas: Canvas, made: Frame, values: list[float], texts: list[str]) -> None:
    box = made.box
    for value, text in zip(values, texts, strict=True):
        y = round(made.place((made.x[0], value))[1])
        canvas.fill(Box(box.left, y, box.right, y + 1), AXIS if value == 0 else GRID)
        strokes.draw(canvas, text, (box.left - 10 - strokes.width(text, TEXT), y + TEXT / 2), TEXT, SOFT)


def _columns(canvas: Canvas, made: Frame, values: list[float], texts: list[str], *, grid: bool) -> None:
    box = made.box
    for value, text in zip(values, texts, strict=True):
        x = round(made.place((value, made.y[0]))[0])
        if grid:
            canvas.fill(Box(x, box.top, x + 1, box.bottom), AXIS if value == 0 else GRID)
        canvas.fill(Box(x, box.bottom, x + 1, box.bottom + 5), AXIS)
        strokes.draw(canvas, text, (x + 0.5 - strokes.width(text, TEXT) / 2, box.bottom + 22), TEXT, SOFT)
    canvas.fill(Box(box.left, box.bottom, box.right, box.bottom + 1), AXIS)
    canvas.fill(Box(box.left, box.top, box.left + 1, box.bottom), AXIS)


def _axis_labels(canvas: Canvas, chart: Chart, box: Box) -> None:
    if _drawn(chart.x_label):
        left = (box.left + box.right - strokes.width(chart.x_label, TEXT + 1)) / 2
        strokes.draw(canvas, chart.x_label, (left, canvas.height - 14), TEXT + 1, INK)
    if _drawn(chart.y_label):
        bottom = (box.top + box.bottom + strokes.width(chart.y_label, TEXT + 1)) / 2
        strokes.draw(canvas, chart.y_label, (26, bottom), TEXT + 1, INK, up=True)
