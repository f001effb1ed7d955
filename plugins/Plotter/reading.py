"""Values as people and models write them: lists, numbers, ranges and tables, from JSON or from text."""

import json
import math
import re
from typing import Any

from canvas import Point
from formula import BadFormula, compiled

MAX_VALUE = 1e150  # differences and sums of larger ones overflow


class Bad(Exception):
    """The request cannot be drawn; the message says why and how to write it."""


def listed(value: Any) -> list[Any]:
    """Several things, from a list or a text."""
    found = read(value)
    if found is None:
        return []
    if isinstance(found, list):
        return found
    parts = re.split(r"[;；\n]", str(found)) if re.search(r"[;；\n]", str(found)) else [str(found)]
    if len(parts) == 1 and "(" not in parts[0] and "=" not in parts[0]:
        parts = re.split(r"[,，]", parts[0])
    return [part.strip() for part in parts if part.strip()]


def read(value: Any) -> Any:
    """JSON where it is JSON, else the text itself."""
    if isinstance(value, str):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def number(value: Any, what: str = "") -> float | None:
    """A finite number; a text may be a formula such as 2pi."""
    if value is None:
        return None
    try:
        found = float(value) if not isinstance(value, str) else compiled(value, "x")(math.nan)
    except (TypeError, ValueError, OverflowError, BadFormula):
        found = math.nan
    if not math.isfinite(found):
        raise Bad(f"{what or 'the value'} '{str(value)[:50]}' is not a number.")
    if abs(found) > MAX_VALUE:
        raise Bad(f"{what or 'the value'} '{str(value)[:50]}' is too large: at most {MAX_VALUE:g}.")
    return found


def span_of(both: Any, low: Any, high: Any, axis: str) -> tuple[float, float] | None:
    """The two ends of an axis, or None."""
    if both is not None:
        parts = read(both)
        if not isinstance(parts, list):
            parts = [part for part in re.split(r"[,，~～:：;\s]+|\.\.", str(parts).strip(" []()")) if part]
        if len(parts) != 2:
            raise Bad(f"The range of {axis}, '{str(both)[:50]}', is wrong: write it like -5,5.")
        low, high = parts
    first, last = number(low, f"the lower end of {axis}"), number(high, f"the upper end of {axis}")
    if first is None and last is None:
        return None
    span = (-10.0 if first is None else first, 10.0 if last is None else last)
    if not span[0] < span[1]:
        raise Bad(
            f"The range of {axis} is wrong: its lower end {span[0]:g} must be less than its upper end {span[1]:g}."
        )
    return span


def table(text: str) -> Any:
    """Numbers, pairs or named values out of a text."""
    named = re.findall(r"([^,，:：=;；\n\t]+)[:：=\t]\s*(-?[\d.]+(?:[eE][+-]?\d+)?)", text)
    if named and not re.fullmatch(r"[-\d.,\s]+", text):
        return {name.strip(): float(value) for name, value in named}
    rows = [re.findall(r"-?\d*\.?\d+(?:[eE][+-]?\d+)?", row) for row in re.split(r"[;；\n]", text)]
    rows = [row for row in rows if row]
    if len(rows) > 1 and all(len(row) == 2 for row in rows):
        return [[float(a), float(b)] for a, b in rows]
    return [float(item) for row in rows for item in row]


def points_of(items: list[Any]) -> list[Point]:
    """Points out of numbers or pairs."""
    points: list[Point] = []
    for index, item in enumerate(items, 1):
        pair = list(item.values()) if isinstance(item, dict) else item
        if isinstance(pair, list) and len(pair) == 2:
            points.append((number(pair[0], "the number") or 0.0, number(pair[1], "the number") or 0.0))
        elif isinstance(pair, list):
            raise Bad(f"Point {index}, '{json.dumps(item)[:50]}', needs two numbers: [x, y].")
        else:
            points.append((float(index), math.nan if pair is None else number(pair, f"number {index}") or 0.0))
    return points
