"""Polynomials as lists of coefficients from the constant up: read from a tree, and their roots.

Roots are exact where they are rational; others come from Aberth's method, all at once.
"""

import cmath
import math
from fractions import Fraction

from evaluate import Names, Run
from nodes import CalcError, Node, Value
from numeric import apply, divide, exact_root, is_number, power, real

MAX_DEGREE = 30
Coefficients = list[Value]


def polynomial(run: Run, node: Node, name: str, names: Names) -> Coefficients | None:
    """Coefficients from the constant up, or None when it is no polynomial of small degree."""
    if name not in node.names():
        value = run.value(node, names)
        return [value] if is_number(value) else None
    if node.op == "name":
        return [0, 1]
    if node.op not in ("+", "-", "*", "/", "^", "neg"):
        return None
    parts = [polynomial(run, arg, name, names) for arg in node.args]
    if any(part is None for part in parts):
        return None
    left, right = parts[0] or [], (parts[1] or [] if len(parts) > 1 else [])
    return _joined(node.op, left, right)


def _joined(op: str, left: Coefficients, right: Coefficients) -> Coefficients | None:
    if op == "neg":
        return [-value for value in left]
    if op in ("+", "-"):
        size = max(len(left), len(right))
        sign = 1 if op == "+" else -1
        return [coefficient(left, i) + sign * coefficient(right, i) for i in range(size)]
    if op == "*":
        return _multiplied(left, right)
    if len(right) > 1:
        return None
    if op == "/":
        return [apply(divide, value, right[0]) for value in left]
    exponent = right[0]
    if not isinstance(exponent, int) or not 0 <= exponent * (len(left) - 1) <= MAX_DEGREE:
        return None
    result: Coefficients = [1]
    for _ in range(exponent):
        result = _multiplied(result, left)
    return result


def coefficient(values: Coefficients, index: int) -> Value:
    """0 past the highest one."""
    return values[index] if index < len(values) else 0


def _multiplied(left: Coefficients, right: Coefficients) -> Coefficients:
    result: Coefficients = [0] * (len(left) + len(right) - 1)
    for i, a in enumerate(left):
        for j, b in enumerate(right):
            result[i + j] = apply(lambda was, x, y: was + x * y, result[i + j], a, b)
    return result


def polynomial_roots(coefficients: Coefficients) -> list[Value]:
    """Distinct roots: exact where rational, real ones first, then complex ones."""
    while coefficients and coefficients[-1] == 0:
        coefficients = coefficients[:-1]
    if not coefficients:
        raise CalcError("every value is a solution (the equation always holds)", "Check the equation.")
    if len(coefficients) > MAX_DEGREE + 1:
        raise CalcError(
            f"the degree of the polynomial is above {MAX_DEGREE}", "Give an interval to find roots numerically."
        )
    roots: list[Value] = []
    while len(coefficients) > 1 and coefficients[0] == 0:
        coefficients, roots = coefficients[1:], [0]
    if all(isinstance(value, int | Fraction) for value in coefficients):
        coefficients = square_free(coefficients)
    if len(coefficients) == 2:
        roots.append(apply(divide, -coefficients[0], coefficients[1]))
    elif len(coefficients) == 3:
        roots += _quadratic(*coefficients)
    elif len(coefficients) > 3:
        roots += _aberth(coefficients)
    return distinct(roots)


def square_free(coefficients: Coefficients) -> Coefficients:
    """The exact polynomial with each root once: divided by what it shares with its derivative."""
    common = [Fraction(value) for value in coefficients]
    rest = [index * value for index, value in enumerate(common)][1:]
    while any(rest):
        while not rest[-1]:
            rest.pop()
        rest = [value / rest[-1] for value in rest]
        common, rest = rest, _divided(common, rest)[1]
    return _divided([Fraction(value) for value in coefficients], common)[0]


def _divided(left: list[Fraction], right: list[Fraction]) -> tuple[list[Fraction], list[Fraction]]:
    """Quotient and remainder."""
    remainder = list(left)
    quotient = [Fraction(0)] * max(1, len(left) - len(right) + 1)
    for shift in reversed(range(len(left) - len(right) + 1)):
        times = remainder[shift + len(right) - 1] / right[-1]
        quotient[shift] = times
        for index, value in enumerate(right):
            remainder[shift + index] -= times * value
    return quotient, remainder[: len(right) - 1]


def _quadratic(c: Value, b: Value, a: Value) -> list[Value]:
    square = b * b - 4 * a * c
    exact = exact_root(square, 2) if isinstance(square, int | Fraction) and square >= 0 else None
    root = (
        exact
        if exact is not None
        else power(real(square), 0.5)
        if not isinstance(square, complex)
        else cmath.sqrt(square)
    )
    return [apply(divide, -b + root, 2 * a), apply(divide, -b - root, 2 * a)]


def _aberth(coefficients: Coefficients) -> list[Value]:
    """All roots at once, then rational ones recognised."""
    top = coefficients[-1]
    scaled = [complex(apply(divide, value, top)) for value in coefficients]
    degree = len(scaled) - 1
    reach = 1 + max(abs(value) for value in scaled[:-1])
    points = [reach * 0.7 * cmath.exp(1j * (2 * math.pi * k / degree + 0.4)) for k in range(degree)]
    for _ in range(500):
        moved = 0.0
        for i, z in enumerate(points):
            value, slope = _horner(scaled, z)
            if value == 0:
                continue
            ratio = slope / value - sum(1 / (z - other) for j, other in enumerate(points) if j != i and other != z)
            step = 1 / ratio if ratio else 0
            points[i] = z - step
            moved = max(moved, abs(step) / max(1.0, abs(z)))
        if moved < 1e-15:
            break
    return [_recognised(z, coefficients) for z in points]


def _horner(values: list[complex], z: complex) -> tuple[complex, complex]:
    value = slope = 0j
    for coefficient in reversed(values):
        slope = slope * z + value
        value = value * z + coefficient
    return value, slope


def _recognised(z: complex, coefficients: Coefficients) -> Value:
    if abs(z.imag) > 1e-7 * max(1.0, abs(z)):
        return complex(round(z.real, 12), round(z.imag, 12))
    near = Fraction(z.real).limit_denominator(1000)
    exact = all(isinstance(value, int | Fraction) for value in coefficients)
    if exact and abs(near - Fraction(z.real)) < 1e-5 and sum(c * near**i for i, c in enumerate(coefficients)) == 0:
        return near
    return z.real


def distinct(roots: list[Value]) -> list[Value]:
    """Each root once, real ones first."""
    kept: list[Value] = []
    for root in roots:
        if not any(abs(complex(root) - complex(other)) <= 1e-9 * max(1.0, abs(complex(root))) for other in kept):
            kept.append(root)
    return sorted(kept, key=lambda z: (isinstance(z, complex), complex(z).real, complex(z).imag))
