"""Formulas in one variable: Python's parser, a short list of allowed nodes, then closures; never ``eval``.

``^`` is the power, ``2x`` and ``3sin(x)`` are products. A point where the formula is not defined is NaN.
"""

import ast
import math
import operator
import re
from collections.abc import Callable
from typing import Any

MAX_LENGTH = 500
MAX_NODES = 300
Formula = Callable[[float], float]


class BadFormula(Exception):
    """The formula cannot be drawn; the message says why and how to write it."""


_CONSTANTS = {"pi": math.pi, "e": math.e, "tau": math.tau, "phi": (1 + math.sqrt(5)) / 2}
_FUNCTIONS: dict[str, Callable[..., float]] = {
    "sin": math.sin, "cos": math.cos, "tan": math.tan, "asin": math.asin, "acos": math.acos, "atan": math.atan,
    "arcsin": math.asin, "arccos": math.acos, "arctan": math.atan, "atan2": math.atan2,
    "sinh": math.sinh, "cosh": math.cosh, "tanh": math.tanh, "asinh": math.asinh, "acosh": math.acosh,
    "atanh": math.atanh,
    "exp": math.exp, "ln": math.log, "log": math.log, "log10": math.log10, "lg": math.log10, "log2": math.log2,
    "sqrt": math.sqrt, "cbrt": lambda x: math.copysign(abs(x) ** (1 / 3), x), "abs": abs, "floor": math.floor,
    "ceil": math.ceil,
    "round": round, "sign": lambda x: float((x > 0) - (x < 0)), "gamma": math.gamma, "erf": math.erf,
    "min": min, "max": max, "hypot": math.hypot, "mod": math.fmod, "sec": lambda x: 1 / math.cos(x),
    "csc": lambda x: 1 / math.sin(x), "cot": lambda x: 1 / math.tan(x), "sinc": lambda x: math.sin(x) / x if x else 1.0,
}  # fmt: skip


def _power(base: float, exponent: float) -> float:
    found = float(base) ** float(exponent)
    return math.nan if isinstance(found, complex) else found


_OPERATORS: dict[type[ast.AST], Callable[..., float]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.Mod: operator.mod, ast.FloorDiv: operator.floordiv, ast.Pow: _power,
    ast.USub: operator.neg, ast.UAdd: operator.pos,
}  # fmt: skip
_SIGNS = str.maketrans("×÷−–（）［］，＋－＊／＾。０１２３４５６７８９", "*/--()[],+-*/^.0123456789")


def compiled(text: str, variable: str) -> Formula:
    """The formula as a function; refuses what is no formula in this variable."""
    source = _plain(text)
    if len(source) > MAX_LENGTH:
        raise BadFormula(f"The formula is too long: {len(source)} characters, at most {MAX_LENGTH}.")
    try:
        tree = ast.parse(source, mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise BadFormula(f"The formula '{text[:80]}' cannot be read. Write it like sin(x) or x^2-3*x+1.") from None
    if sum(1 for _ in ast.walk(tree)) > MAX_NODES:
        raise BadFormula(f"The formula '{text[:80]}' is too complex: split it.")
    work = _closure(tree.body, variable, text)

    def at(value: float) -> float:
        try:
            found = float(work(value))
        except (ValueError, ZeroDivisionError, OverflowError, TypeError):
            return math.nan
        return found if abs(found) < 1e150 else math.nan

    return at


def _plain(text: str) -> str:
    source = (
        text.strip().translate(_SIGNS).replace("^", "**").replace("π", "pi").replace("²", "**2").replace("³", "**3")
    )
    source = re.sub(r"\|([^|]+)\|", r"abs(\1)", source)
    source = re.sub(r"(?<![\w.])(\d+\.?\d*|\.\d+)(?!\w*[eE][+-]?\d)\s*(?=[A-Za-z(])(?![eE][+-]?\d)", r"\1*", source)
    return re.sub(r"\)\s*(?=[A-Za-z(\d])", ")*", source)


def _closure(node: ast.AST, variable: str, text: str) -> Callable[[float], Any]:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        constant = float(node.value) if abs(node.value) < 1e300 else math.inf
        return lambda _: constant
    if isinstance(node, ast.Name):
        return _named(node.id, variable, text)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        work, left, right = (
            _OPERATORS[type(node.op)],
            _closure(node.left, variable, text),
            _closure(node.right, variable, text),
        )
        return lambda x: work(left(x), right(x))
    if isinstance(node, ast.UnaryOp) and type(node.op) in _OPERATORS:
        of, operand = _OPERATORS[type(node.op)], _closure(node.operand, variable, text)
        return lambda x: of(operand(x))
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and not node.keywords
        and 1 <= len(node.args) <= 4
    ):
        called = _FUNCTIONS.get(node.func.id.lower())
        if called is None:
            raise BadFormula(
                f"The formula '{text[:80]}' has an unknown function {node.func.id}. Known are sin, cos, tan, exp, ln, "
                "sqrt, abs and others."
            )
        args = [_closure(arg, variable, text) for arg in node.args]
        return lambda x: called(*(arg(x) for arg in args))
    raise BadFormula(
        f"The formula '{text[:80]}' has something that is not allowed. Use only numbers, {variable}, operators and "
        "functions."
    )


def _named(name: str, variable: str, text: str) -> Formula:
    if name == variable:
        return lambda x: x
    if name.lower() in _CONSTANTS:
        constant = _CONSTANTS[name.lower()]
        return lambda _: constant
    raise BadFormula(f"The formula '{text[:80]}' has an unknown name {name}. The variable is {variable}.")
