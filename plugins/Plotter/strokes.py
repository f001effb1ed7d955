"""Letters as strokes, drawn for this plotter: ASCII, a few signs more. There are no Chinese letters.

A glyph is polylines separated by ``/``; a point is two digits, x and y; capitals stand on y=6 and reach y=0, small
letters begin at y=2. ``~`` rounds a polyline, ``o`` rounds and closes it.
"""

from functools import cache

from canvas import Canvas, Colour, Point, rounded

GLYPHS = {
    "A": "06 20 46/14 34", "B": "00 06/~00 30 33 03/~03 43 46 06", "C": "~41 30 10 01 05 16 36 45",
    "D": "00 06/~00 20 41 45 26 06", "E": "40 00 06 46/03 33", "F": "40 00 06/03 33",
    "G": "~41 30 10 01 05 16 36 45/44 46/44 24", "H": "00 06/40 46/03 43", "I": "00 06", "J": "30 34/~34 35 26 16 05",
    "K": "00 06/40 04/13 46", "L": "00 06 46", "M": "06 00 24 40 46", "N": "06 00 46 40",
    "O": "o10 30 41 45 36 16 05 01",
    "P": "06 00/~00 30 41 42 33 03", "Q": "o10 30 41 45 36 16 05 01/24 46", "R": "06 00/~00 30 41 42 33 03/23 46",
    "S": "~41 30 10 01 02 13 33 44 45 36 16 05", "T": "00 40/20 26", "U": "00 04/~04 05 16 36 45 44/44 40",
    "V": "00 26 40",
    "W": "00 16 31 46 60", "X": "00 46/40 06", "Y": "00 23 40/23 26", "Z": "00 40 06 46",
    "0": "o10 30 41 45 36 16 05 01", "1": "11 20 26", "2": "~01 10 30 41 42 33 06/06 46",
    "3": "~01 10 30 41 42 33 23/~23 33 44 45 36 16 05",
    "4": "36 30 04 44", "5": "40 10 03/~03 12 32 43 45 36 16 05", "6": "~41 30 10 01 03 05/o12 32 43 45 36 16 05 03",
    "7": "00 40 16", "8": "o10 30 41 42 33 13 02 01/o13 33 44 45 36 16 05 04",
    "9": "o10 30 41 43 34 14 03 01/~41 43 45 36 16 05",
    "a": "o12 22 33 35 26 16 05 03/32 36", "b": "00 06/o12 22 33 35 26 16 05 03", "c": "~33 22 12 03 05 16 26 35",
    "d": "o12 22 33 35 26 16 05 03/30 36", "e": "04 34/~34 33 22 12 03 05 16 26 35", "f": "~20 10 11 13/13 16/02 22",
    "g": "o12 22 33 35 26 16 05 03/32 36/~36 37 28 18 07", "h": "00 06/~04 03 12 22 33 34/34 36", "i": "02 06/00",
    "j": "12 16/~16 17 08/10",
    "k": "00 06/32 05/14 36", "l": "00 06", "m": "02 06/~04 03 12 23 24/24 26/~24 23 32 43 44/44 46",
    "n": "02 06/~04 03 12 22 33 34/34 36",
    "o": "o12 22 33 35 26 16 05 03", "p": "02 08/o12 22 33 35 26 16 05 03", "q": "o12 22 33 35 26 16 05 03/32 38",
    "r": "02 06/~04 03 12 22",
    "s": "~33 22 12 03 14 24 35 26 16 05", "t": "10 14/~14 15 26/02 22", "u": "02 04/~04 05 16 26 35 34/32 36",
    "v": "02 26 42",
    "w": "02 16 33 46 62", "x": "02 36/32 06", "y": "02 26/42 08", "z": "02 32 06 36",
    ".": "06", ",": "06 07", ":": "03/06", ";": "03/06 07", "!": "00 04/06", "?": "~01 10 20 31 32 13 14/16",
    "'": "00 01",
    '"': "00 01/20 21", "(": "~10 02 05 17", ")": "~00 12 15 07", "[": "10 00 07 17", "]": "00 10 17 07",
    "{": "~20 10 13 03/~03 13 16 26", "}": "~00 10 13 23/~23 13 16 06", "+": "21 25/03 43", "-": "03 33",
    "=": "02 42/04 44",
    "/": "07 30", "\\": "00 37", "*": "21 25/12 34/14 32", "%": "06 40/o00 10 12 02/o34 44 46 36", "^": "02 20 42",
    "_": "07 47",
    "<": "41 03 45", ">": "01 43 05", "|": "00 07", "~": "~04 12 34 42", "#": "10 16/30 36/02 42/04 44",
    "$": "~41 30 10 01 02 13 33 44 45 36 16 05/20 26", "&": "~46 02 01 10 20 31 04 05 16 26 44",
    "@": "~33 22 13 24 33 34 43 42 30 10 01 05 16 36", "`": "00 11", "π": "02 42/12 16/32 36", "°": "o00 10 11 01",
    "−": "03 33", "×": "12 45/42 15", "·": "03", "²": "~00 10 11 02/02 12",
}  # fmt: skip
_DIGITS = "0123456789"
GAP = 1.8
SPACE = 3.0


@cache
def _lines(sign: str) -> tuple[tuple[Point, ...], ...]:
    found = []
    for part in GLYPHS[sign].split("/"):
        points = [(float(pair[-2]), float(pair[-1])) for pair in part.split()]
        if part[0] in "~o":
            points = rounded(points, closed=part[0] == "o")
        found.append(tuple(points))
    return tuple(found)


def drawable(text: str) -> bool:
    """Whether every letter can be drawn."""
    return all(sign in GLYPHS or sign == " " for sign in text)


def _advance(sign: str) -> float:
    if sign == " ":
        return SPACE
    if sign in _DIGITS:
        return 4 + GAP  # figures stand in columns
    return max(x for line in _lines(sign) for x, _ in line) + GAP


def width(text: str, size: float) -> float:
    """How wide the text is; ``size`` is the height of a capital."""
    return max(0.0, sum(map(_advance, text)) - GAP) * size / 6


def draw(
    canvas: Canvas, text: str, at: Point, size: float, colour: Colour, *, bold: bool = False, up: bool = False
) -> None:
    """Text whose first letter begins at this point of the baseline; ``up`` turns it to read upwards."""
    unit, pen = size / 6, 0.0
    for sign in text:
        if sign != " ":
            for line in _lines(sign):
                points = [((x + pen) * unit, (y - 6) * unit) for x, y in line]
                placed = [(at[0] + y, at[1] - x) if up else (at[0] + x, at[1] + y) for x, y in points]
                canvas.stroke(placed, colour, size * (0.19 if bold else 0.135) if size > 8 else 1.1)
        pen += _advance(sign)
