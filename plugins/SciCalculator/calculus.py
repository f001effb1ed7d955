"""Calculus: integrals, derivatives, limits, sums and products. Each is a special form of ``evaluate``."""

import math
from collections.abc import Callable
from itertools import pairwise

import symbolic
from answer import shown
from evaluate import Names, Run, Special, combine
from functions import CONSTANTS
from grammar import parse
from nodes import CalcError, Node, Value
from numeric import is_number, real, whole

MAX_TERMS = 200_000
DIVERGES = "the integral does not converge (it may diverge or have a singularity)"
Real = Callable[[float], float]


def unquoted(node: Node) -> Node:
    """A quoted expression as the expression itself."""
    return parse(node.value) if node.op == "text" else node


def variable(expression: Node, given: Node | None) -> str:
    """The variable that is named, or the only free one of the expression."""
    if given is not None:
        given = unquoted(given)
        if given.op != "name":
            raise CalcError("a variable name is needed here", "For example integral(x^2, x, 0, 1).", given.at)
        return str(given.value)
    free = sorted(expression.names() - set(CONSTANTS))
    if "x" in free or not free:
        return "x"
    if len(free) > 1:
        raise CalcError(
            f"there are several variables: {', '.join(free)}",
            "Say which one is meant, for example integral(expr, x, 0, 1).",
        )
    return free[0]


def split(args: tuple[Node, ...], rest: tuple[int, ...], usage: str) -> tuple[Node, str, list[Node]]:
    """Expression, variable (perhaps left out) and the other arguments."""
    if not args:
        raise CalcError("an argument is missing", f"Write {usage}.")
    expression = unquoted(args[0])
    named = len(args) > 1 and unquoted(args[1]).op == "name" and unquoted(args[1]).value not in CONSTANTS
    others = list(args[2:] if named else args[1:])
    if len(others) not in rest:
        raise CalcError("the number of arguments is wrong", f"Write {usage}.")
    return expression, variable(expression, args[1] if named else None), others


def floating(node: Node) -> Node:
    """The tree with float constants: many evaluations need no exactness."""
    if node.op == "num" and not isinstance(node.value, complex) and abs(node.value) < 1e300:
        return Node("num", value=float(node.value), at=node.at) if not isinstance(node.value, int) else node
    return Node(node.op, tuple(floating(arg) for arg in node.args), node.value, node.at)


def function(run: Run, expression: Node, name: str, names: Names) -> Real:
    """The expression as a function of floats."""
    tree = floating(expression)

    def of(x: float) -> float:
        value = run.value(tree, {**names, name: x})
        if not is_number(value):
            raise CalcError("what is integrated or differentiated must be a number without a unit", "Remove the unit.")
        return real(value)

    return of


def integral(run: Run, args: tuple[Node, ...], names: Names) -> Value:
    """Adaptive Gauss-Kronrod; infinite ends by substitution."""
    usage = "integral(expr, x, a, b), for example integral(x^2, x, 0, 1)"
    expression, name, ends = split(args, (2,), usage)
    low, high = (real(run.value(end, names)) for end in ends)
    of = function(run, expression, name, names)
    try:
        return -_area(of, high, low) if low > high else _area(of, low, high)
    except CalcError as problem:
        if problem.what.startswith(("the result is out", "division by zero", "the function is not defined")):
            raise CalcError(DIVERGES, "Check whether the interval contains a singularity, or split it.") from None
        raise
    except ArithmeticError:
        raise CalcError(DIVERGES, "Check whether the function tends to 0 at infinity.") from None


def _area(of: Real, low: float, high: float) -> float:
    if low == high:
        return 0.0
    if math.isinf(low) and math.isinf(high):
        return _area(of, low, 0.0) + _area(of, 0.0, high)
    if math.isinf(high):
        return _adaptive(lambda t: of(low + t / (1 - t)) / (1 - t) ** 2, 0.0, 1.0)
    if math.isinf(low):
        return _adaptive(lambda t: of(high - t / (1 - t)) / (1 - t) ** 2, 0.0, 1.0)
    return _adaptive(of, low, high)


_KRONROD = (
    (0.0, 0.209482141084727828, 0.417959183673469388),
    (0.207784955007898468, 0.204432940075298892, 0.0),
    (0.405845151377397167, 0.190350578064785410, 0.381830050505118945),
    (0.586087235467691130, 0.169004726639267903, 0.0),
    (0.741531185599394440, 0.140653259715525919, 0.279705391489276668),
    (0.864864423359769073, 0.104790010322250184, 0.0),
    (0.949107912342758525, 0.063092092629978553, 0.129484966168869693),
    (0.991455371120812640, 0.022935322010529225, 0.0),
)  # fmt: skip


def _panel(of: Real, low: float, high: float) -> tuple[float, float]:
    middle, half = (low + high) / 2, (high - low) / 2
    fine = coarse = 0.0
    for node, weight, rough in _KRONROD:
        pair = of(middle) if node == 0 else of(middle - half * node) + of(middle + half * node)
        fine += weight * pair
        coarse += rough * pair
    return fine * half, abs(fine - coarse) * half


def _adaptive(of: Real, low: float, high: float) -> float:
    panels = [(*_panel(of, low, high), low, high)]
    for _ in range(2000):
        total, wrong = math.fsum(panel[0] for panel in panels), math.fsum(panel[1] for panel in panels)
        if wrong <= 1e-13 * abs(total) + 1e-15:
            return total
        worst = max(range(len(panels)), key=lambda i: panels[i][1])
        _, _, a, b = panels.pop(worst)
        middle = (a + b) / 2
        if middle in (a, b):
            panels.append((_panel(of, a, b)[0], 0.0, a, b))
            continue
        panels += [(*_panel(of, a, middle), a, middle), (*_panel(of, middle, b), middle, b)]
    total, wrong = math.fsum(panel[0] for panel in panels), math.fsum(panel[1] for panel in panels)
    if wrong > 1e-6 * max(1.0, abs(total)):
        raise CalcError(DIVERGES, "Check whether the interval contains a singularity, or split it.")
    return total


def derivative(run: Run, args: tuple[Node, ...], names: Names) -> Value:
    """A formula without a point, a number with one."""
    usage = "derivative(expr, x) for a formula, or derivative(expr, x, point[, order]) for a number"
    expression, name, rest = split(args, (0, 1, 2), usage)
    order = whole(run.value(rest[1], names), "order") if len(rest) > 1 else 1
    if not 1 <= order <= 8:
        raise CalcError("the order must be from 1 to 8", f"Write {usage}.")
    tree = symbolic.simplified(expression)
    try:
        for _ in range(order):
            tree = symbolic.derive(tree, name)
    except CalcError:
        if not rest or order > 1:
            raise
        return _slope(function(run, expression, name, names), real(run.value(rest[0], names)))
    if not rest:
        return symbolic.written(tree, shown)
    return run.value(tree, {**names, name: run.value(rest[0], names)})


def _slope(of: Real, at: float) -> float:
    """Ridders: central differences, extrapolated."""
    step, best, wrong = max(abs(at), 1.0) * 0.05, math.nan, math.inf
    rows: list[list[float]] = []
    for i in range(12):
        row = [(of(at + step) - of(at - step)) / (2 * step)]
        for j in range(i):
            row.append(row[j] + (row[j] - rows[i - 1][j]) / (1.96 ** (j + 1) - 1))
            gap = max(abs(row[j + 1] - row[j]), abs(row[j + 1] - rows[i - 1][j]))
            if gap <= wrong:
                best, wrong = row[j + 1], gap
        rows.append(row)
        step /= 1.4
    return best


def limit(run: Run, args: tuple[Node, ...], names: Names) -> Value:
    """From both sides unless one is named ('left', 'right'), extrapolated."""
    usage = "limit(expr, x, point), for example limit(sin(x)/x, x, 0), or from one side limit(1/x, x, 0, 'right')"
    expression, name, rest = split(args, (1, 2), usage)
    of = function(run, expression, name, names)
    to = real(run.value(rest[0], names))
    side = str(rest[1].value).lower() if len(rest) > 1 else "both"
    if math.isinf(to):
        return _approach(lambda h: of(math.copysign(1 / h, to)), 0.25)
    sides = [sign for word, sign in (("left", -1), ("right", 1)) if side in (word, "both", "+" if sign > 0 else "-")]
    if not sides:
        raise CalcError(f"unknown side '{side}'", f"Write {usage}.")
    found = [_approach(lambda h, sign=sign: of(to + sign * h), 0.125 * max(1.0, abs(to))) for sign in sides]  # type: ignore[misc]
    if len(found) == 2 and not math.isclose(found[0], found[1], rel_tol=1e-6, abs_tol=1e-6):
        raise CalcError(
            f"the limits of the two sides differ: left {shown(found[0])}, right {shown(found[1])}",
            "There is no limit; for one side add 'left' or 'right'.",
        )
    return found[-1] if len(found) == 1 or math.isinf(found[0]) else (found[0] + found[1]) / 2


def _approach(of: Real, step: float) -> float:
    """Halving steps towards 0, extrapolated; growth without bound is infinity."""
    values: list[float] = []
    while len(values) < 30:
        try:
            values.append(of(step))
        except CalcError:
            break  # too near to be computed: what we have must do
        step /= 2
    if len(values) < 4:
        raise CalcError(
            "the function cannot be calculated near this point", "Check its domain; for one side add 'left' or 'right'."
        )
    if abs(values[-1]) > 1e6 and all(abs(b) > abs(a) * 1.2 for a, b in zip(values[-6:], values[-5:], strict=False)):
        return math.copysign(math.inf, values[-1])
    best, wrong, table = values[-1], math.inf, list(values)
    for order in range(1, 8):
        table = [(2**order * b - a) / (2**order - 1) for a, b in pairwise(table)]
        for a, b in pairwise(table):
            if abs(b - a) < wrong:
                best, wrong = b, abs(b - a)
    if wrong > 1e-6 * max(1.0, abs(best)):
        raise CalcError(
            "the limit does not converge (it may not exist)",
            "Check whether the function oscillates, or use the limit of one side.",
        )
    return round(best, 12) if abs(best - round(best, 9)) < 1e-11 else best


def _series(run: Run, args: tuple[Node, ...], names: Names, op: str) -> Value:
    if len(args) < 3:  # of a list, or of a few numbers
        values = [run.value(arg, names) for arg in args]
        values = values[0] if len(values) == 1 and isinstance(values[0], list) else values
    elif unquoted(args[1]).op == "name" and len(args) == 4:
        expression, name = unquoted(args[0]), variable(args[0], args[1])
        low, high = (whole(run.value(arg, names), "bound of the sum") for arg in args[2:])
        if high - low >= MAX_TERMS:
            raise CalcError(f"too many terms: {high - low + 1}", f"At most {MAX_TERMS} terms.")
        values = [run.value(expression, {**names, name: k}) for k in range(low, high + 1)]
    else:
        values = [run.value(arg, names) for arg in args]
    total: Value = 0 if op == "+" else 1
    for index, value in enumerate(values):
        total = value if index == 0 else combine(op, [total, value])
    return total


FORMS: dict[str, Special] = {
    "integral": integral, "integrate": integral, "derivative": derivative, "diff": derivative, "limit": limit,
    "lim": limit,
    "sum": lambda run, args, names: _series(run, args, names, "+"),
    "prod": lambda run, args, names: _series(run, args, names, "*"),
    "product": lambda run, args, names: _series(run, args, names, "*"),
}  # fmt: skip
