"""Values as text: exact when short, otherwise 15 significant digits."""

import math
from fractions import Fraction

from nodes import Value
from units import Quantity, written


def shown(value: Value) -> str:
    """How a value is told to a person."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Fraction):
        return _fraction(value)
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, complex):
        return _complex(value)
    if isinstance(value, Quantity):
        return f"{shown(value.value)} {written(value.powers)}"
    if isinstance(value, list):
        return "[" + ", ".join(shown(item) for item in value) + "]"
    return str(value)


def _float(value: float) -> str:
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    return f"{value:.15g}"


def _fraction(value: Fraction) -> str:
    if value.denominator == 1:
        return str(value.numerator)
    rest, twos, fives = value.denominator, 0, 0
    while rest % 2 == 0:
        rest, twos = rest // 2, twos + 1
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    places = max(twos, fives)
    if rest == 1 and places <= 30 and 1e-6 <= abs(value) < 10**20:
        digits = str(abs(value.numerator) * 10**places // value.denominator).rjust(places + 1, "0")
        return ("-" if value < 0 else "") + f"{digits[:-places]}.{digits[-places:]}"
    try:
        return _float(float(value)) if float(value) else str(value)
    except OverflowError:
        return str(value)


def _complex(value: complex) -> str:
    size = abs(value)
    real = 0.0 if abs(value.real) < 1e-15 * size else value.real
    imag = 0.0 if abs(value.imag) < 1e-15 * size else value.imag
    if imag == 0:
        return _float(real)
    part = "" if abs(imag) == 1 else _float(abs(imag))
    if real == 0:
        return f"{'-' if imag < 0 else ''}{part}i"
    return f"{_float(real)} {'-' if imag < 0 else '+'} {part}i"
