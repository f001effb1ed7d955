"""solve(): polynomials by their roots, other equations by searching, linear systems exactly, others by Newton."""

import math
from fractions import Fraction

from answer import shown
from calculus import Real, function, split, unquoted
from evaluate import Names, Run, Special
from matrices import MAX_ROWS, solve_rows
from nodes import CalcError, Node, Value
from numeric import is_number, real
from polynomials import Coefficients, coefficient, distinct, polynomial, polynomial_roots
from symbolic import simplified

SEARCHED = 1000.0


def solve(run: Run, args: tuple[Node, ...], names: Names) -> Value:
    """One equation or a list of them."""
    usage = (
        "solve(x^2-4=0, x), in an interval solve(cos(x)=x, x, 0, 2), several equations solve([x+y=3, x-y=1], [x, y])"
    )
    if args and args[0].op == "list":
        return _system(run, args, names, usage)
    expression, name, ends = split(args, (0, 2), usage)
    zero = _zero_form(expression)
    if name not in zero.names():
        raise CalcError(f"the equation has no variable {name}", f"Write {usage}.")
    try:
        coefficients = None if ends else polynomial(run, simplified(zero), name, names)
    except CalcError:
        coefficients = None
    if coefficients is not None:
        return _told(name, polynomial_roots(coefficients))
    low, high = (real(run.value(end, names)) for end in ends) if ends else (-SEARCHED, SEARCHED)
    found = _search(function(run, zero, name, names), low, high)
    if not found:
        raise CalcError(
            f"no real root found in [{low:g}, {high:g}]", "Give a better interval: solve(equation, x, a, b)."
        )
    return _told(name, list(found)) + ("" if ends else f" (real roots, searched in [{-SEARCHED:g}, {SEARCHED:g}])")


def _zero_form(node: Node) -> Node:
    node = unquoted(node)
    node = node.args[0] if node.op == "group" else node
    return Node("-", node.args) if node.op in ("=", "==") else node


def _told(name: str, roots: list[Value]) -> str:
    if not roots:
        return "no solution"
    return " or ".join(f"{name} = {shown(root)}" for root in roots)


def _search(of: Real, low: float, high: float) -> list[float]:
    """Sign changes and touching points on a grid that is finer near zero."""
    grid = 2000
    spread = [math.sinh(6 * (2 * i / grid - 1)) / math.sinh(6) for i in range(grid + 1)]
    middle, half = (low + high) / 2, (high - low) / 2
    points = [middle + half * s for s in spread]
    values = [_quiet(of, x) for x in points]
    found: list[float] = []
    for i in range(1, len(points)):
        a, b = values[i - 1], values[i]
        if a == 0:
            found.append(points[i - 1])
        elif a * b < 0:
            found.append(_bisected(of, points[i - 1], points[i], a))
        elif i + 1 < len(points) and abs(b) < abs(a) and abs(b) < abs(values[i + 1]):
            found.append(_touching(of, points[i - 1], points[i + 1]))
    if values[-1] == 0:
        found.append(points[-1])
    good = [x for x in found if not math.isnan(x) and abs(_quiet(of, x)) < 1e-6]
    return sorted(real(root) for root in distinct([_rounded(of, x) for x in good]))[:100]


def _quiet(of: Real, x: float) -> float:
    try:
        return of(x)
    except CalcError as problem:
        if "too much work" in problem.what:
            raise
        return math.nan


def _bisected(of: Real, low: float, high: float, at_low: float) -> float:
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        value = _quiet(of, middle)
        if value == 0:
            return middle
        low, high = (middle, high) if value * at_low > 0 else (low, middle)
    return (low + high) / 2


def _touching(of: Real, low: float, high: float) -> float:
    """The smallest absolute value between two points, by golden section."""
    ratio = (math.sqrt(5) - 1) / 2
    for _ in range(100):
        a, b = high - ratio * (high - low), low + ratio * (high - low)
        low, high = (low, b) if abs(_quiet(of, a)) < abs(_quiet(of, b)) else (a, high)
    middle = (low + high) / 2
    return middle if abs(_quiet(of, middle)) < 1e-9 else math.nan


def _rounded(of: Real, x: float) -> float:
    near = round(x, 9)
    return near if abs(_quiet(of, near)) <= abs(_quiet(of, x)) else x


def _system(run: Run, args: tuple[Node, ...], names: Names, usage: str) -> str:
    zeros = [simplified(_zero_form(item)) for item in args[0].args]
    if len(args) > 1:
        given = args[1].args if args[1].op == "list" else args[1:]
        wanted = [str(unquoted(item).value) for item in given]
    else:
        wanted = sorted(set().union(*(zero.names() for zero in zeros)))
    if not 1 <= len(zeros) <= MAX_ROWS or len(zeros) != len(wanted):
        raise CalcError(
            f"{len(zeros)} equations, but {len(wanted)} unknowns ({', '.join(wanted)})",
            f"There must be as many of both. Write {usage}.",
        )
    rows = [_linear(run, zero, wanted, names) for zero in zeros]
    if any(row is None for row in rows):
        return _newton(run, zeros, wanted, names)
    left = [row[:-1] for row in rows if row]
    found, _ = solve_rows(left, [[-row[-1]] for row in rows if row])
    if found is None:
        raise CalcError(
            "the equations have no single solution (the determinant is 0)",
            "Check whether equations repeat or contradict each other.",
        )
    return ", ".join(f"{name} = {shown(row[0])}" for name, row in zip(wanted, found, strict=True))


def _linear(run: Run, node: Node, wanted: list[str], names: Names) -> list[Value] | None:
    """Coefficients of the unknowns and the constant, or None when it is not linear."""
    inside = dict.fromkeys(wanted, 0)
    row: list[Value] = []
    for name in wanted:
        others = {**names, **{other: Fraction(7, 3) for other in wanted if other != name}}
        for at in (inside, others):
            coefficients = polynomial(run, node, name, {**names, **at}) if name in node.names() else [0]
            if coefficients is None or any(value != 0 for value in coefficients[2:]):
                return None
            slope = coefficient(coefficients, 1)
            if at is inside:
                row.append(slope)
            elif slope != row[-1]:
                return None
    return [*row, run.value(node, {**names, **inside})]


def _newton(run: Run, zeros: list[Node], wanted: list[str], names: Names) -> str:
    starts = [[base * (1 + 0.3 * i) for i in range(len(wanted))] for base in (1.0, -1.0, 0.3, 5.0, -5.0, 20.0)]
    for start in starts:
        try:
            found = _newton_from(run, zeros, wanted, names, start)
        except CalcError as problem:
            if "too much work" in problem.what:
                raise
            continue
        if found:
            text = ", ".join(f"{name} = {shown(round(x, 10))}" for name, x in zip(wanted, found, strict=True))
            return f"{text} (one numeric solution of nonlinear equations; there may be others)"
    raise CalcError("no solution of the nonlinear equations found", "Check the equations, or use fewer unknowns.")


def _newton_from(
    run: Run, zeros: list[Node], wanted: list[str], names: Names, start: list[float]
) -> list[float] | None:
    at = list(start)

    def values(point: list[float]) -> list[float]:
        return [real(run.value(zero, {**names, **dict(zip(wanted, point, strict=True))})) for zero in zeros]

    for _ in range(60):
        now = values(at)
        if max(map(abs, now)) < 1e-12:
            return at
        columns = []
        for i in range(len(at)):
            step = 1e-7 * max(1.0, abs(at[i]))
            there = values([x + step * (i == j) for j, x in enumerate(at)])
            columns.append([(b - a) / step for a, b in zip(now, there, strict=True)])
        rows = [list(row) for row in zip(*columns, strict=True)]
        move, _ = solve_rows(rows, [[-value] for value in now])
        if move is None:
            return None
        at = [x + real(step[0]) for x, step in zip(at, move, strict=True)]
    return at if max(map(abs, values(at))) < 1e-8 else None


def _listed(run: Run, args: tuple[Node, ...], names: Names) -> Coefficients:
    values = run.value(args[0], names) if args else None
    if len(args) != 1 or not isinstance(values, list) or not all(is_number(value) for value in values):
        raise CalcError(
            "roots needs the list of coefficients, from the highest power down", "For example roots([1, 0, -4])."
        )
    return list(reversed(values))


def roots(run: Run, args: tuple[Node, ...], names: Names) -> str:
    """Of a polynomial given by its coefficients, from the highest down."""
    return _told("x", polynomial_roots(_listed(run, args, names)))


FORMS: dict[str, Special] = {"solve": solve, "roots": roots}
