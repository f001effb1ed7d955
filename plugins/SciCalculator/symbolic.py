"""Derivatives of elementary functions as formulas: derive, simplify while building, write."""

from collections.abc import Callable
from fractions import Fraction

from evaluate import function_name
from grammar import parse
from nodes import CalcError, Node, Value, number
from numeric import apply, divide, power

MAX_NODES = 4000
ZERO, ONE = number(0), number(1)


def _is(node: Node, value: int) -> bool:
    return node.op == "num" and node.value == value


def _constant(left: Node, right: Node) -> bool:
    return left.op == "num" and right.op == "num"


def plus(left: Node, right: Node) -> Node:
    """left + right."""
    if _constant(left, right):
        return number(apply(lambda a, b: a + b, left.value, right.value))
    if _is(left, 0):
        return right
    if _is(right, 0):
        return left
    if right.op == "neg":
        return minus(left, right.args[0])
    return times(number(2), left) if left.same(right) else Node("+", (left, right))


def minus(left: Node, right: Node) -> Node:
    """left - right."""
    if _constant(left, right):
        return number(apply(lambda a, b: a - b, left.value, right.value))
    if _is(right, 0):
        return left
    if _is(left, 0):
        return negative(right)
    if right.op == "neg":
        return plus(left, right.args[0])
    return ZERO if left.same(right) else Node("-", (left, right))


def negative(node: Node) -> Node:
    """-node."""
    if node.op == "num":
        return number(-node.value)
    if node.op == "*" and node.args[0].op == "num":
        return times(number(-node.args[0].value), node.args[1])
    return node.args[0] if node.op == "neg" else Node("neg", (node,))


def times(left: Node, right: Node) -> Node:
    """left * right, numbers first."""
    if _constant(left, right):
        return number(apply(lambda a, b: a * b, left.value, right.value))
    if right.op == "num":
        left, right = right, left
    if _is(left, 0):
        return ZERO
    if _is(left, 1):
        return right
    if _is(left, -1):
        return negative(right)
    if right.op == "neg":
        return negative(times(left, right.args[0]))
    if left.op == "neg":
        return negative(times(left.args[0], right))
    if right.op == "*" and right.args[0].op == "num":
        return times(times(left, right.args[0]), right.args[1])
    if right.op == "/" and _is(right.args[0], 1):
        return over(left, right.args[1])
    if left.op == "/":
        return over(times(left.args[0], right), left.args[1])
    if left.op == "*" and left.args[1].same(right):
        return times(left.args[0], to_power(right, number(2)))
    return to_power(left, number(2)) if left.same(right) else Node("*", (left, right))


def over(left: Node, right: Node) -> Node:
    """left / right."""
    if _constant(left, right) and right.value:
        return number(apply(divide, left.value, right.value))
    if _is(left, 0):
        return ZERO
    if _is(right, 1):
        return left
    if left.op == "neg":
        return negative(over(left.args[0], right))
    return ONE if left.same(right) else Node("/", (left, right))


def to_power(base: Node, exponent: Node) -> Node:
    """base ^ exponent."""
    if _is(exponent, 0):
        return ONE
    if _is(exponent, 1):
        return base
    if _constant(base, exponent) and isinstance(exponent.value, int) and (base.value or exponent.value > 0):
        return number(apply(power, base.value, exponent.value))
    if base.op == "^" and base.args[1].op == "num" and exponent.op == "num":
        return to_power(base.args[0], times(base.args[1], exponent))
    return Node("^", (base, exponent))


def call(name: str, *args: Node) -> Node:
    """A function of trees."""
    return Node("call", args, value=name)


def simplified(node: Node) -> Node:
    """The same tree in the five operations above, other nodes kept."""
    args = tuple(simplified(arg) for arg in node.args)
    if node.op == "text":
        return simplified(parse(node.value))
    if node.op == "group":
        return args[0]
    if node.op == "percent":
        return over(args[0], number(100))
    if node.op == "call":
        name = function_name(node.value)
        if name == "pow" and len(args) == 2:
            return to_power(args[0], args[1])
        if name == "log" and len(args) == 2:
            return over(call("ln", args[0]), call("ln", args[1]))
        return Node("call", args, value=name, at=node.at)
    build = _BUILD.get(node.op)
    return build(*args) if build else Node(node.op, args, node.value, node.at)


_BUILD: dict[str, Callable[..., Node]] = {
    "+": plus, "-": minus, "*": times, "implied": times, "/": over, "^": to_power, "neg": negative,
}  # fmt: skip
_HALF = number(Fraction(1, 2))


def _two(node: Node) -> Node:
    return to_power(node, number(2))


_RULES: dict[str, Callable[[Node], Node]] = {
    "sin": lambda u: call("cos", u), "cos": lambda u: negative(call("sin", u)),
    "tan": lambda u: over(ONE, _two(call("cos", u))), "cot": lambda u: negative(over(ONE, _two(call("sin", u)))),
    "sec": lambda u: times(call("sec", u), call("tan", u)),
    "csc": lambda u: negative(times(call("csc", u), call("cot", u))),
    "asin": lambda u: over(ONE, call("sqrt", minus(ONE, _two(u)))),
    "acos": lambda u: negative(over(ONE, call("sqrt", minus(ONE, _two(u))))),
    "atan": lambda u: over(ONE, plus(_two(u), ONE)), "sinh": lambda u: call("cosh", u),
    "cosh": lambda u: call("sinh", u),
    "tanh": lambda u: over(ONE, _two(call("cosh", u))), "asinh": lambda u: over(ONE, call("sqrt", plus(_two(u), ONE))),
    "acosh": lambda u: over(ONE, call("sqrt", minus(_two(u), ONE))), "atanh": lambda u: over(ONE, minus(ONE, _two(u))),
    "exp": lambda u: call("exp", u), "ln": lambda u: over(ONE, u), "log": lambda u: over(ONE, u),
    "log10": lambda u: over(ONE, times(u, call("ln", number(10)))),
    "lg": lambda u: over(ONE, times(u, call("ln", number(10)))),
    "log2": lambda u: over(ONE, times(u, call("ln", number(2)))),
    "lb": lambda u: over(ONE, times(u, call("ln", number(2)))),
    "sqrt": lambda u: over(ONE, times(number(2), call("sqrt", u))), "abs": lambda u: call("sign", u),
    "cbrt": lambda u: over(ONE, times(number(3), _two(call("cbrt", u)))),
    "erf": lambda u: over(times(number(2), call("exp", negative(_two(u)))), call("sqrt", Node("name", value="pi"))),
}  # fmt: skip


def derive(node: Node, name: str) -> Node:
    """The derivative of a simplified tree; what has no rule is refused."""
    if name not in node.names():
        return ZERO
    if node.op == "name":
        return ONE
    if node.op == "call":
        rule = _RULES.get(node.value)
        if rule is None or len(node.args) != 1:
            raise CalcError(
                f"there is no rule for the derivative of {node.value}",
                "Give a point for a numeric derivative: derivative(expr, x, point).",
            )
        return _small(times(rule(node.args[0]), derive(node.args[0], name)))
    if node.op == "neg":
        return negative(derive(node.args[0], name))
    rule_of_two = _OF_TWO.get(node.op)
    if rule_of_two is None:
        raise CalcError(f"'{node.op}' has no derivative", "Use elementary functions only.")
    return _small(rule_of_two(node.args[0], node.args[1], name))


def _product(u: Node, v: Node, name: str) -> Node:
    return plus(times(derive(u, name), v), times(u, derive(v, name)))


def _quotient(u: Node, v: Node, name: str) -> Node:
    if name not in v.names():
        return over(derive(u, name), v)
    return over(minus(times(derive(u, name), v), times(u, derive(v, name))), _two(v))


def _power(u: Node, v: Node, name: str) -> Node:
    if name not in v.names():
        return times(times(v, to_power(u, minus(v, ONE))), derive(u, name))
    if u.op == "name" and u.value == "e":
        return times(to_power(u, v), derive(v, name))
    if name not in u.names():
        return times(times(call("ln", u), to_power(u, v)), derive(v, name))
    return times(to_power(u, v), plus(times(derive(v, name), call("ln", u)), times(v, over(derive(u, name), u))))


_OF_TWO: dict[str, Callable[[Node, Node, str], Node]] = {
    "+": lambda u, v, name: plus(derive(u, name), derive(v, name)),
    "-": lambda u, v, name: minus(derive(u, name), derive(v, name)),
    "*": _product, "/": _quotient, "^": _power,
}  # fmt: skip


def _small(node: Node) -> Node:
    if size(node) > MAX_NODES:
        raise CalcError(
            "the formula of the derivative is too long", "Give a point for a numeric derivative, or simplify first."
        )
    return node


def size(node: Node) -> int:
    """How many nodes the tree has."""
    return 1 + sum(size(arg) for arg in node.args)


_LEVEL = {"+": 1, "-": 1, "*": 2, "/": 2, "neg": 2, "^": 4}


def written(node: Node, shown: Callable[[Value], str]) -> str:
    """The tree as text that the calculator reads back."""
    if node.op == "num":
        return shown(node.value)
    if node.op == "name":
        return str(node.value)
    if node.op == "call":
        return f"{node.value}({', '.join(written(arg, shown) for arg in node.args)})"
    level = _LEVEL.get(node.op, 0)
    if node.op == "neg":
        return "-" + _wrapped(node.args[0], 3, shown)
    left, right = node.args
    tight = level + (node.op in ("-", "/", "^"))
    return (
        f"{_wrapped(left, level + (node.op == '^'), shown)}{_SIGN.get(node.op, node.op)}{_wrapped(right, tight, shown)}"
    )


_SIGN = {"+": " + ", "-": " - "}


def _wrapped(node: Node, least: int, shown: Callable[[Value], str]) -> str:
    text = written(node, shown)
    if node.op == "num":
        return f"({text})" if (text.startswith("-") or "/" in text) and least > 1 else text
    return f"({text})" if node.op in _LEVEL and _LEVEL[node.op] < least else text
