"""Arithmetic on plain numbers, exact as long as it can be, and bounded.

Whole numbers and fractions stay exact up to 20000 bits; past that a whole number is refused and a fraction becomes a
float. A result that overflows is an error, never a silent infinity; what leaves the reals becomes complex.
"""

import math
from collections.abc import Callable
from fractions import Fraction

from nodes import CalcError, Value

MAX_BITS = 20_000
TOO_LARGE = "Use log10(...) to estimate the number of digits, or a smaller exponent."


def is_number(value: Value) -> bool:
    """Whether the value is a plain number."""
    return isinstance(value, int | Fraction | float | complex) and not isinstance(value, bool)


def tidy(value: Value) -> Value:
    """The simplest type that holds the same number; too large ones are refused."""
    if isinstance(value, complex):
        value = value.real if value.imag == 0 else value
    elif isinstance(value, Fraction):
        if max(value.numerator.bit_length(), value.denominator.bit_length()) > MAX_BITS:
            value = real(value)
        elif value.denominator == 1:
            value = value.numerator
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        raise CalcError(f"the result is too large: more than {MAX_BITS} bits (about 6000 digits)", TOO_LARGE)
    if value != value:  # noqa: PLR0124  (only what is no number differs from itself)
        raise CalcError("the result is not defined (NaN)", "Check for operations such as ∞-∞ or 0×∞.")
    return value


def real(value: Value) -> float:
    """The number as a float."""
    if isinstance(value, complex):
        raise CalcError(
            "a real number is needed here, but this is complex", "Check roots and logarithms of negative numbers."
        )
    if not is_number(value):
        raise CalcError(
            "a number without a unit is needed here",
            "Convert and remove the unit first, for example (5 km to m)/(1 m).",
        )
    try:
        return float(value)
    except OverflowError:
        raise CalcError("the number is out of range (about 1.8e308)", TOO_LARGE) from None


def whole(value: Value, what: str) -> int:
    """The number as a whole number."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise CalcError(f"{what}: a whole number is needed", "Check the argument.")
    return value


def apply(work: Callable[..., Value], *operands: Value) -> Value:
    """One operation, its failures told in words and its result tidied."""
    try:
        result = work(*operands)
    except ZeroDivisionError:
        raise CalcError("division by zero", "Check the denominator.") from None
    except OverflowError:
        raise CalcError("the result is out of range (about 1.8e308)", TOO_LARGE) from None
    except (ValueError, TypeError) as problem:
        raise CalcError(f"this cannot be calculated: {problem}", "Check the range of the arguments.") from None
    if isinstance(result, float) and math.isinf(result) and not any(_infinite(operand) for operand in operands):
        raise CalcError("the result is out of range (about 1.8e308)", TOO_LARGE)
    return tidy(result)


def _infinite(value: Value) -> bool:
    return isinstance(value, float) and math.isinf(value)


def divide(left: Value, right: Value) -> Value:
    """Exact for exact numbers."""
    if isinstance(left, int) and isinstance(right, int):
        return Fraction(left, right)
    return left / right


def power(base: Value, exponent: Value) -> Value:
    """Exact where the result is exact and small enough."""
    if isinstance(base, int | Fraction) and isinstance(exponent, int | Fraction):
        return _exact_power(base, exponent)
    if base == 0 and not isinstance(exponent, complex) and exponent < 0:
        raise ZeroDivisionError
    return base**exponent


def _exact_power(base: int | Fraction, exponent: int | Fraction) -> Value:
    if base == 0 and exponent < 0:
        raise ZeroDivisionError
    if isinstance(exponent, Fraction) and exponent.denominator > 1:
        root = exact_root(base, exponent.denominator)
        if root is None:
            return real(base) ** real(exponent)
        base, exponent = root, exponent.numerator
    exponent = int(exponent)
    if base in (0, 1, -1):
        return Fraction(base) ** (exponent % 2 + 2 if exponent else 0)
    bits = max(base.numerator.bit_length(), base.denominator.bit_length())
    if bits * abs(exponent) > MAX_BITS + bits:
        if base.denominator == 1 and exponent > 0:
            raise CalcError("the result of the power would be too large", TOO_LARGE)
        found = real(base) ** exponent
        if found == 0:
            raise CalcError("the result is too small: below about 5e-324", TOO_LARGE)
        return found
    return Fraction(base) ** exponent


def exact_root(base: int | Fraction, degree: int) -> Value:
    """The exact positive root, or None when there is none."""
    if base < 0 or degree > 64:
        return None
    up, down = _whole_root(base.numerator, degree), _whole_root(base.denominator, degree)
    return None if up is None or down is None else Fraction(up, down)


def _whole_root(value: int, degree: int) -> int | None:
    if degree == 2:
        guess = math.isqrt(value)
        return guess if guess * guess == value else None
    if value.bit_length() > 1000:
        return None
    near = round(float(value) ** (1 / degree))
    return next((guess for guess in (near - 1, near, near + 1) if guess >= 0 and guess**degree == value), None)
