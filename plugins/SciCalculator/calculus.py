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
DIVERGES = "积分没有收敛（可能发散或有奇点）"
Real = Callable[[float], float]


def unquoted(node: Node) -> Node:
    """A quoted expression as the expression itself."""
    return parse(node.value) if node.op == "text" else node


def variable(expression: Node, given: Node | None) -> str:
    """The variable that is named, or the only free one of the expression."""
    if given is not None:
        given = unquoted(given)
        if given.op != "name":
            raise CalcError("这里需要变量名", "例如 integral(x^2, x, 0, 1)", given.at)
        return str(given.value)
    free = sorted(expression.names() - set(CONSTANTS))
    if "x" in free or not free:
        return "x"
    if len(free) > 1:
        raise CalcError(f"有几个变量：{'、'.join(free)}", "请写明对哪一个运算，例如 integral(expr, x, 0, 1)")
    return free[0]


def split(args: tuple[Node, ...], rest: tuple[int, ...], usage: str) -> tuple[Node, str, list[Node]]:
    """Expression, variable (perhaps left out) and the other arguments."""
    if not args:
        raise CalcError("缺少参数", f"写法：{usage}")
    expression = unquoted(args[0])
    named = len(args) > 1 and unquoted(args[1]).op == "name" and unquoted(args[1]).value not in CONSTANTS
    others = list(args[2:] if named else args[1:])
    if len(others) not in rest:
        raise CalcError("参数个数不对", f"写法：{usage}")
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
            raise CalcError("被积或被求导的式子必须是不带单位的数", "请去掉单位")
        return real(value)

    return of


def integral(run: Run, args: tuple[Node, ...], names: Names) -> Value:
    """Adaptive Gauss-Kronrod; infinite ends by substitution."""
    usage = "integral(expr, x, a, b)，例如 integral(x^2, x, 0, 1)"
    expression, name, ends = split(args, (2,), usage)
    low, high = (real(run.value(end, names)) for end in ends)
    of = function(run, expression, name, names)
    try:
        return -_area(of, high, low) if low > high else _area(of, low, high)
    except CalcError as problem:
        if problem.what.startswith(("结果超出", "除数为零", "这一点上")):
            raise CalcError(DIVERGES, "请检查区间内是否有奇点，或把区间分段") from None
        raise
    except ArithmeticError:
        raise CalcError(DIVERGES, "请检查被积函数在无穷远处是否趋于 0") from None


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
        raise CalcError(DIVERGES, "请检查区间内是否有奇点，或把区间分段")
    return total


def derivative(run: Run, args: tuple[Node, ...], names: Names) -> Value:
    """A formula without a point, a number with one."""
    usage = "derivative(expr, x) 得到导函数；derivative(expr, x, 点[, 阶数]) 得到数值"
    expression, name, rest = split(args, (0, 1, 2), usage)
    order = whole(run.value(rest[1], names), "阶数") if len(rest) > 1 else 1
    if not 1 <= order <= 8:
        raise CalcError("阶数需要在 1 到 8 之间", usage)
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
    usage = "limit(expr, x, 点)，例如 limit(sin(x)/x, x, 0)；单侧：limit(1/x, x, 0, 'right')"
    expression, name, rest = split(args, (1, 2), usage)
    of = function(run, expression, name, names)
    to = real(run.value(rest[0], names))
    side = str(rest[1].value).lower() if len(rest) > 1 else "both"
    if math.isinf(to):
        return _approach(lambda h: of(math.copysign(1 / h, to)), 0.25)
    sides = [sign for word, sign in (("left", -1), ("right", 1)) if side in (word, "both", "+" if sign > 0 else "-")]
    if not sides:
        raise CalcError(f"不认识的方向“{side}”", usage)
    found = [_approach(lambda h, sign=sign: of(to + sign * h), 0.125 * max(1.0, abs(to))) for sign in sides]  # type: ignore[misc]
    if len(found) == 2 and not math.isclose(found[0], found[1], rel_tol=1e-6, abs_tol=1e-6):
        raise CalcError(
            f"两侧极限不同：左 {shown(found[0])}，右 {shown(found[1])}", "极限不存在；需要单侧请加 'left' 或 'right'"
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
        raise CalcError("在这一点附近无法计算函数值", "请检查定义域；单侧极限请加 'left' 或 'right'")
    if abs(values[-1]) > 1e6 and all(abs(b) > abs(a) * 1.2 for a, b in zip(values[-6:], values[-5:], strict=False)):
        return math.copysign(math.inf, values[-1])
    best, wrong, table = values[-1], math.inf, list(values)
    for order in range(1, 8):
        table = [(2**order * b - a) / (2**order - 1) for a, b in pairwise(table)]
        for a, b in pairwise(table):
            if abs(b - a) < wrong:
                best, wrong = b, abs(b - a)
    if wrong > 1e-6 * max(1.0, abs(best)):
        raise CalcError("极限没有收敛（可能不存在）", "请检查函数是否振荡，或改用单侧极限")
    return round(best, 12) if abs(best - round(best, 9)) < 1e-11 else best


def _series(run: Run, args: tuple[Node, ...], names: Names, op: str) -> Value:
    if len(args) < 3:  # of a list, or of a few numbers
        values = [run.value(arg, names) for arg in args]
        values = values[0] if len(values) == 1 and isinstance(values[0], list) else values
    elif unquoted(args[1]).op == "name" and len(args) == 4:
        expression, name = unquoted(args[0]), variable(args[0], args[1])
        low, high = (whole(run.value(arg, names), "上下限") for arg in args[2:])
        if high - low >= MAX_TERMS:
            raise CalcError(f"项数太多：{high - low + 1}", f"最多 {MAX_TERMS} 项")
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
