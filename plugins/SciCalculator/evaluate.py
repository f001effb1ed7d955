"""Walks the tree. One ``Run`` is one calculation: it counts steps, watches the clock and knows the names in scope."""

import operator
import time
from collections.abc import Callable, Mapping

import matrices
import units
from functions import ALIASES, CONSTANTS, MEASURED, SCALAR
from grammar import parse
from nodes import CalcError, Node, Value
from numeric import apply, divide, is_number, power
from sampling import STATISTICS
from units import Quantity

MAX_STEPS = 3_000_000
MAX_SECONDS = 6.0  # of a whole request

Names = Mapping[str, Value]
Special = Callable[["Run", tuple[Node, ...], Names], Value]

FUNCTIONS: dict[str, Callable[..., Value]] = {**SCALAR, **STATISTICS, **matrices.MATRICES}
SPECIAL: dict[str, Special] = {}  # take their arguments unevaluated; filled by the entry script
_LISTS = frozenset((*STATISTICS, *matrices.MATRICES))
_COMPARE: dict[str, Callable[[Value, Value], Value]] = {
    "<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip


def deadline() -> float:
    """When a request that begins now must have ended."""
    return time.monotonic() + MAX_SECONDS


class Run:
    """One calculation within its bounds."""

    def __init__(self, deadline: float) -> None:
        self.steps = 0
        self.deadline = deadline

    def count(self) -> None:
        """One step; refuses to go on for ever."""
        self.steps += 1
        if self.steps > MAX_STEPS or (self.steps % 256 == 0 and time.monotonic() > self.deadline):
            raise CalcError("too much work, stopped", "Use a smaller interval, fewer terms or less precision.")

    def value(self, node: Node, names: Names) -> Value:
        """The value of the tree, its problems placed."""
        self.count()
        try:
            return self._value(node, names)
        except CalcError as problem:
            if problem.at is None:
                problem.at = node.at
            raise

    def _value(self, node: Node, names: Names) -> Value:
        op = node.op
        if op == "num":
            return node.value
        if op == "name":
            return self._named(node.value, names)
        if op in ("call", "text"):
            return self._call(node, names) if op == "call" else self.value(parse(node.value), names)
        if op in ("list", "rows"):
            return [self.value(arg, names) for arg in node.args]
        if op == "=":
            raise CalcError("an equation cannot stand here", "To solve one, write solve(x^2-4=0, x).")
        return combine(op, [self.value(arg, names) for arg in node.args])

    def _named(self, name: str, names: Names) -> Value:
        if name in names:
            return names[name]
        if name in CONSTANTS:
            return CONSTANTS[name]
        if name in MEASURED:
            return self.value(parse(MEASURED[name]), {})
        found = units.unit_named(name)
        if found is None:
            found = CONSTANTS.get(name.lower())
        if found is None:
            raise CalcError(f"unknown name '{name}'", _nearest(name, [*CONSTANTS, *MEASURED, *FUNCTIONS]))
        return found

    def _call(self, node: Node, names: Names) -> Value:
        name = function_name(node.value)
        if name in SPECIAL:
            return SPECIAL[name](self, node.args, names)
        if name not in FUNCTIONS:
            if len(node.args) == 1 and (node.value in names or node.value in CONSTANTS or units.unit_named(node.value)):
                return combine("implied", [self._named(node.value, names), self.value(node.args[0], names)])
            raise CalcError(f"unknown function '{node.value}'", _nearest(name, [*FUNCTIONS, *SPECIAL]))
        return call(name, [self.value(arg, names) for arg in node.args])


def function_name(written: str) -> str:
    """The one name of a function that may be written in several ways."""
    lower = written.lower()
    return ALIASES.get(lower, lower)


def _nearest(name: str, known: list[str]) -> str:
    from difflib import get_close_matches  # only needed to mend a mistake

    near = get_close_matches(name, known, n=3, cutoff=0.6)
    return (
        f"Did you mean {', '.join(near)}?"
        if near
        else "Check the spelling; variables can only stand in functions such as solve, integral and derivative."
    )


def call(name: str, values: list[Value]) -> Value:
    """A function of values; one of a single number also maps over a list."""
    work = FUNCTIONS[name]
    if name in _LISTS:
        return apply_many(work, values)
    values = [units.angle(value) for value in values]
    if values and isinstance(values[0], list) and len(values) == 1:
        if name in ("gcd", "lcm", "hypot"):
            return apply(work, *values[0])
        return [call(name, [value]) for value in values[0]]
    if any(isinstance(value, Quantity) for value in values):
        return _of_quantity(name, work, values)
    if any(isinstance(value, list | str) for value in values):
        raise CalcError(f"{name} takes no list", "Give it a number.")
    return apply(work, *values)


def apply_many(work: Callable[..., Value], values: list[Value]) -> Value:
    """A function of lists: its result may be a list or a text."""
    if any(isinstance(value, Quantity) for value in values):
        raise CalcError(
            "functions of statistics and matrices take only numbers without units",
            "Convert to the same unit first, then remove it.",
        )
    return apply(work, *values)


def _of_quantity(name: str, work: Callable[..., Value], values: list[Value]) -> Value:
    first, *rest = values
    if name in ("sqrt", "cbrt") and isinstance(first, Quantity):
        return units.raise_to(first, apply(divide, 1, 2 if name == "sqrt" else 3))
    if name in ("abs", "round", "floor", "ceil", "trunc") and isinstance(first, Quantity):
        return Quantity(apply(work, first.value, *rest), first.powers)
    raise CalcError(f"the arguments of {name} cannot have units", "Remove the unit first; an angle can be 30 deg.")


def combine(op: str, values: list[Value]) -> Value:
    """One operator on its values, whatever they are."""
    if op == "group":
        return values[0]
    if op in _COMPARE:
        return apply(_COMPARE[op], *map(_comparable, values))
    if op == "to":
        return units.convert(*values)
    if op == "percent":
        return combine("/", [values[0], 100])
    if op in ("factorial", "mod"):
        return call(op, values)
    if op == "neg":
        return combine("*", [-1, values[0]])
    left, right = values
    if isinstance(left, str) or isinstance(right, str):
        raise CalcError("a result that is text cannot be calculated with", "Make it an expression of its own.")
    if isinstance(left, list) or isinstance(right, list):
        return _with_lists(op, left, right)
    if isinstance(left, Quantity) or isinstance(right, Quantity):
        return _with_units(op, left, right)
    return apply(_PLAIN[op], left, right)


def _comparable(value: Value) -> Value:
    if isinstance(value, Quantity):
        return value.si()
    return value


_PLAIN: dict[str, Callable[[Value, Value], Value]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "implied": operator.mul, "/": divide, "^": power,
    "floordiv": operator.floordiv,
}  # fmt: skip


def _with_units(op: str, left: Value, right: Value) -> Value:
    if op in ("+", "-"):
        if not (isinstance(left, Quantity) and isinstance(right, Quantity)):
            raise CalcError(
                "a quantity with a unit cannot be added to a number without one", "Write a unit on both sides."
            )
        return units.add(left, right, 1 if op == "+" else -1)
    if op in ("*", "implied"):
        return units.multiply(left, right, 1)
    if op == "/":
        return units.multiply(left, right, -1)
    if op == "^" and isinstance(left, Quantity) and is_number(right):
        return units.raise_to(left, right)
    raise CalcError("an exponent cannot have a unit", "Check what follows ^.")


def _with_lists(op: str, left: Value, right: Value) -> Value:
    if isinstance(left, list) and isinstance(right, list):
        if op in ("*", "implied"):
            return matrices.product(left, right)
        if op not in ("+", "-") or len(left) != len(right):
            raise CalcError(
                "two lists can only be added or subtracted (of the same length) or multiplied as matrices",
                "Write separate expressions for each element.",
            )
        return [combine(op, [a, b]) for a, b in zip(left, right, strict=True)]
    if op == "^" and isinstance(right, int) and isinstance(left, list):
        return _matrix_power(left, right)
    if isinstance(left, list):
        return [combine(op, [item, right]) for item in left]
    return [combine(op, [left, item]) for item in right]


def _matrix_power(base: Value, exponent: int) -> Value:
    rows = matrices.square(base)
    if abs(exponent) > 1000:
        raise CalcError("the exponent of the matrix is too large", "It can be from -1000 to 1000.")
    rows = matrices.inverse(rows) if exponent < 0 else rows
    result: Value = matrices.identity(len(rows))
    for bit in bin(abs(exponent))[2:]:
        result = matrices.product(result, result)
        result = matrices.product(result, rows) if bit == "1" else result
    return result
