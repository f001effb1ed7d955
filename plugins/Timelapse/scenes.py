"""The scenes: each gives one frame after another as palette indices, computed for real.

A scene is a function of (width, height, frames, seed) that yields so many frames; beside it stands its palette.
"""

import math
import random
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple

Colour = tuple[int, int, int]
Frames = Iterator[bytes]


class Scene(NamedTuple):
    """How to paint it, in which colours, and what it is."""

    paint: Callable[[int, int, int, int], Frames]
    palette: tuple[Colour, ...]
    name: str


def _mixed(stops: list[Colour], count: int) -> tuple[Colour, ...]:
    """Colours that run evenly through the stops."""
    found = []
    for i in range(count):
        place = i * (len(stops) - 1) / (count - 1)
        low = min(int(place), len(stops) - 2)
        a, b, share = stops[low], stops[low + 1], place - low
        red, green, blue = (round(x + (y - x) * share) for x, y in zip(a, b, strict=True))
        found.append((red, green, blue))
    return tuple(found)


def life(width: int, height: int, frames: int, seed: int) -> Frames:
    """Conway's game on a torus, four pixels a cell; a dead cell fades."""
    columns, rows = max(4, width // 4), max(4, height // 4)
    chance = random.Random(seed)  # noqa: S311
    alive = {(x, y) for x in range(columns) for y in range(rows) if chance.random() < 0.28}
    glow: dict[tuple[int, int], int] = {}
    for _ in range(frames):
        glow = {cell: level - 1 for cell, level in glow.items() if level > 1}
        glow.update(dict.fromkeys(alive, 15))
        yield _cells(glow, width, height)
        near: dict[tuple[int, int], int] = {}
        for x, y in alive:
            for dx, dy in ((-1, -1), (0, -1), (1, -1), (-1, 0), (1, 0), (-1, 1), (0, 1), (1, 1)):
                cell = ((x + dx) % columns, (y + dy) % rows)
                near[cell] = near.get(cell, 0) + 1
        alive = {cell for cell, count in near.items() if count == 3 or (count == 2 and cell in alive)}


def _cells(glow: dict[tuple[int, int], int], width: int, height: int) -> bytes:
    found = bytearray(width * height)
    for (x, y), level in glow.items():
        line = bytes((level,)) * min(3, width - x * 4)
        for row in range(y * 4, min(y * 4 + 3, height)):
            at = row * width + x * 4
            found[at : at + len(line)] = line
    return bytes(found)


def mandelbrot(width: int, height: int, frames: int, seed: int) -> Frames:
    """A zoom towards a spiral in the seahorse valley; the seed turns the colours."""
    centre = complex(-0.743643887037151, 0.131825904205330)
    for frame in range(frames):
        view = 3.2 * 0.93**frame
        most = int(60 + frame * 2.5)
        step = view / width
        found = bytearray()
        for row in range(height):
            imaginary = centre.imag + (row - height / 2) * step
            for column in range(width):
                found.append(_escape(complex(centre.real + (column - width / 2) * step, imaginary), most, seed))
        yield bytes(found)


def _escape(c: complex, most: int, turn: int) -> int:
    z = 0j
    for count in range(most):
        z = z * z + c
        if z.real * z.real + z.imag * z.imag > 16:
            smooth = count + 1 - math.log2(math.log2(abs(z)))
            return 1 + int(max(0.0, smooth) * 5 + turn) % 127
    return 0


def heat(width: int, height: int, frames: int, seed: int) -> Frames:
    """Heat that spreads from moving sources over a plate with cold edges, two pixels a cell."""
    columns, rows = max(4, width // 2), max(4, height // 2)
    chance = random.Random(seed)  # noqa: S311
    sources = [(chance.random() * math.tau, 0.2 + chance.random() * 0.25, chance.choice((-1, 1))) for _ in range(3)]
    plate = [[0.0] * columns for _ in range(rows)]
    for frame in range(frames):
        for phase, reach, way in sources:
            angle = phase + way * frame * 0.12
            x = int(columns * (0.5 + reach * math.cos(angle)))
            y = int(rows * (0.5 + reach * math.sin(angle)))
            for dy in range(-2, 3):
                for dx in range(-2, 3):
                    plate[min(max(y + dy, 1), rows - 2)][min(max(x + dx, 1), columns - 2)] = 1.0
        for _ in range(3):
            plate = _spread(plate)
        lines = [bytes(min(127, int(value**0.6 * 127)) for value in row) for row in plate]
        yield _doubled(lines, width, height)


def _spread(plate: list[list[float]]) -> list[list[float]]:
    edge = [0.0] * len(plate[0])
    found = [edge]
    for above, row, below in zip(plate, plate[1:], plate[2:], strict=False):
        middle = [
            c + 0.22 * (up + down + left + right - 4 * c)
            for up, down, left, right, c in zip(above[1:], below[1:], row, row[2:], row[1:], strict=False)
        ]
        found.append([0.0, *middle[: len(row) - 2], 0.0])
    return [*found, edge]


def _doubled(lines: list[bytes], width: int, height: int) -> bytes:
    wide = [bytes(value for value in line for _ in range(2))[:width].ljust(width, b"\0") for line in lines]
    found = b"".join(line + line for line in wide)
    return found[: width * height].ljust(width * height, b"\0")


def pendulum(width: int, height: int, frames: int, seed: int) -> Frames:
    """A double pendulum by Runge-Kutta, with the trail of its end."""
    chance = random.Random(seed)  # noqa: S311
    state = [math.pi / 2 + chance.random(), math.pi / 2 + chance.random() * 2, 0.0, 0.0]
    length = min(width, height) * 0.23
    trail: list[tuple[float, float]] = []
    for _ in range(frames):
        for _ in range(20):
            state = _swung(state, 0.0025)
        x1, y1 = width / 2 + length * math.sin(state[0]), height / 2 + length * math.cos(state[0])
        x2, y2 = x1 + length * math.sin(state[1]), y1 + length * math.cos(state[1])
        trail = [*trail[-80:], (x2, y2)]
        picture = bytearray(width * height)
        for age, (start, end) in enumerate(pairwise(trail)):
            _lined(picture, width, start, end, 2 + age * 12 // max(1, len(trail)), 0.7)
        _lined(picture, width, (width / 2, height / 2), (x1, y1), 15, 0.9)
        _lined(picture, width, (x1, y1), (x2, y2), 15, 0.9)
        for x, y in ((x1, y1), (x2, y2)):
            _lined(picture, width, (x, y), (x, y), 14, 4.0)
        yield bytes(picture)


def _swung(state: list[float], step: float) -> list[float]:
    def moved(slopes: list[float], share: float) -> list[float]:
        return [value + slope * share for value, slope in zip(state, slopes, strict=True)]

    a = _slopes(state)
    b = _slopes(moved(a, step / 2))
    c = _slopes(moved(b, step / 2))
    d = _slopes(moved(c, step))
    return moved([(p + 2 * q + 2 * r + s) / 6 for p, q, r, s in zip(a, b, c, d, strict=True)], step)


def _slopes(state: list[float]) -> list[float]:
    one, two, speed_one, speed_two = state
    gap, gravity = one - two, 30.0
    below = 3 - math.cos(2 * gap)
    first = -3 * gravity * math.sin(one) - gravity * math.sin(one - 2 * two)
    first -= 2 * math.sin(gap) * (speed_two**2 + speed_one**2 * math.cos(gap))
    second = 2 * math.sin(gap) * (2 * speed_one**2 + 2 * gravity * math.cos(one) + speed_two**2 * math.cos(gap))
    return [speed_one, speed_two, first / below, second / below]


def _lined(
    picture: bytearray, width: int, start: tuple[float, float], end: tuple[float, float], level: int, half: float
) -> None:
    steps = max(1, int(math.dist(start, end) * 2))
    height = len(picture) // width
    reach = math.ceil(half)
    for i in range(steps + 1):
        x = start[0] + (end[0] - start[0]) * i / steps
        y = start[1] + (end[1] - start[1]) * i / steps
        for row in range(max(0, int(y) - reach), min(height, int(y) + reach + 1)):
            for column in range(max(0, int(x) - reach), min(width, int(x) + reach + 1)):
                if math.hypot(column + 0.5 - x, row + 0.5 - y) <= half + 0.3:
                    picture[row * width + column] = max(level, picture[row * width + column])


_NIGHT: Colour = (13, 17, 28)
SCENES = {
    "life": Scene(life, _mixed([_NIGHT, (24, 60, 110), (40, 160, 190), (225, 255, 235)], 16), "Game of Life"),
    "mandelbrot": Scene(
        mandelbrot,
        (
            _NIGHT,
            *_mixed([(10, 20, 90), (40, 120, 210), (240, 245, 220), (250, 170, 30), (110, 30, 20), (10, 20, 90)], 127),
        ),
        "Mandelbrot zoom",
    ),
    "heat": Scene(
        heat,
        _mixed([(10, 10, 40), (90, 20, 110), (210, 50, 70), (250, 160, 40), (255, 250, 200)], 128),
        "heat diffusion",
    ),
    "pendulum": Scene(
        pendulum, _mixed([_NIGHT, (60, 50, 140), (230, 90, 130), (255, 220, 150)], 16), "double pendulum"
    ),
}
