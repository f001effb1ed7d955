"""A small rasteriser: an RGB picture, anti-aliased strokes, discs, rectangles and pies, written as PNG.

A stroke gathers the greatest coverage per pixel first and blends once, so that joints do not darken.
"""

import bisect
import math
import struct
import zlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

Colour = tuple[int, int, int]
Point = tuple[float, float]


class Box(NamedTuple):
    """A rectangle of pixels; right and bottom stand outside."""

    left: float
    top: float
    right: float
    bottom: float


class Canvas:
    """The picture; (0, 0) is the top left corner, a pixel's middle is at .5."""

    def __init__(self, width: int, height: int, colour: Colour) -> None:
        self.width = width
        self.height = height
        self.pixels = bytearray(bytes(colour) * (width * height))

    @property
    def whole(self) -> Box:
        """Every pixel."""
        return Box(0, 0, self.width, self.height)

    def stroke(self, points: Sequence[Point], colour: Colour, width: float = 1.5, clip: Box | None = None) -> None:
        """A line through the points, with round ends; a single point is a dot."""
        mask: dict[int, float] = {}
        for start, end in zip(points, points[1:] or points, strict=False):
            self._segment(mask, start, end, width / 2, clip or self.whole)
        self._blend(mask, colour, 1.0)

    def _segment(self, mask: dict[int, float], start: Point, end: Point, half: float, clip: Box) -> None:
        (x0, y0), (x1, y1) = start, end
        steep = abs(y1 - y0) > abs(x1 - x0)
        if steep:
            x0, y0, x1, y1 = y0, x0, y1, x1
        if x0 > x1:
            x0, y0, x1, y1 = x1, y1, x0, y0
        low, high, side_low, side_high = (
            (clip.top, clip.bottom, clip.left, clip.right) if steep else (clip.left, clip.right, clip.top, clip.bottom)
        )
        dx, dy = x1 - x0, y1 - y0
        length2 = dx * dx + dy * dy
        slope = dy / dx if dx else 0.0
        reach = (half + 1) * math.sqrt(1 + slope * slope) + 1
        for major in range(max(int(low), math.floor(x0 - half - 1)), min(int(high), math.ceil(x1 + half + 1))):
            px = major + 0.5
            middle = y0 + slope * (min(max(px, x0), x1) - x0)
            for minor in range(max(int(side_low), int(middle - reach)), min(int(side_high), int(middle + reach) + 1)):
                py = minor + 0.5
                along = ((px - x0) * dx + (py - y0) * dy) / length2 if length2 else 0.0
                along = min(max(along, 0.0), 1.0)
                cover = half + 0.5 - math.hypot(px - x0 - along * dx, py - y0 - along * dy)
                if cover > 0:
                    index = major * self.width + minor if steep else minor * self.width + major
                    if cover > mask.get(index, 0.0):
                        mask[index] = cover

    def disc(self, centre: Point, radius: float, colour: Colour, opacity: float = 1.0, clip: Box | None = None) -> None:
        """A filled circle."""
        box = clip or self.whole
        x, y = centre
        mask: dict[int, float] = {}
        for row in range(
            max(int(box.top), math.floor(y - radius - 1)), min(int(box.bottom), math.ceil(y + radius + 1))
        ):
            for column in range(
                max(int(box.left), int(x - radius - 1)), min(int(box.right), math.ceil(x + radius + 1))
            ):
                cover = radius + 0.5 - math.hypot(column + 0.5 - x, row + 0.5 - y)
                if cover > 0:
                    mask[row * self.width + column] = cover
        self._blend(mask, colour, opacity)

    def pie(self, centre: Point, radius: float, ends: Sequence[float], colours: Sequence[Colour]) -> None:
        """A disc in slices; ``ends`` are their last angles, in radians clockwise from the top.

        Between slices the edge is hard: the caller draws a line over it.
        """
        x, y = centre
        masks: list[dict[int, float]] = [{} for _ in ends]
        for row in range(math.floor(y - radius), math.ceil(y + radius) + 1):
            down = row + 0.5 - y
            for column in range(math.floor(x - radius), math.ceil(x + radius) + 1):
                across = column + 0.5 - x
                cover = radius + 0.5 - math.hypot(across, down)
                if cover > 0:
                    which = min(bisect.bisect_right(ends, math.atan2(across, -down) % math.tau), len(ends) - 1)
                    masks[which][row * self.width + column] = cover
        for mask, colour in zip(masks, colours, strict=True):
            self._blend(mask, colour, 1.0)

    def fill(self, box: Box, colour: Colour) -> None:
        """A rectangle of whole pixels."""
        left, top = max(0, round(box.left)), max(0, round(box.top))
        right, bottom = min(self.width, round(box.right)), min(self.height, round(box.bottom))
        if right <= left:
            return
        line = bytes(colour) * (right - left)
        for row in range(top, bottom):
            at = (row * self.width + left) * 3
            self.pixels[at : at + len(line)] = line

    def _blend(self, mask: dict[int, float], colour: Colour, opacity: float) -> None:
        pixels = self.pixels
        for index, cover in mask.items():
            share = min(cover, 1.0) * opacity
            at = index * 3
            for channel in range(3):
                was = pixels[at + channel]
                pixels[at + channel] = round(was + (colour[channel] - was) * share)

    def png(self) -> bytes:
        """The picture as a PNG file."""
        stride = self.width * 3
        rows = b"".join(b"\0" + self.pixels[at : at + stride] for at in range(0, len(self.pixels), stride))
        header = struct.pack(">IIBBBBB", self.width, self.height, 8, 2, 0, 0, 0)
        chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows, 6)), (b"IEND", b""))
        return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, body) for name, body in chunks)


def _chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def rounded(points: Sequence[Point], *, closed: bool) -> list[Point]:
    """A polyline with its corners cut twice (Chaikin): smooth enough for letters."""
    now = list(points)
    for _ in range(3):
        pairs: Iterable[tuple[Point, Point]] = zip(now, [*now[1:], now[0]] if closed else now[1:], strict=False)
        cut: list[Point] = []
        for (ax, ay), (bx, by) in pairs:
            cut += [(ax * 0.75 + bx * 0.25, ay * 0.75 + by * 0.25), (ax * 0.25 + bx * 0.75, ay * 0.25 + by * 0.75)]
        now = cut if closed else [now[0], *cut, now[-1]]
    return [*now, now[0]] if closed else now
