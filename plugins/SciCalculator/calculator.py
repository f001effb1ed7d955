"""SciCalculator: a safe scientific calculator. Reads one request from stdin, prints one JSON object, exit 1 on error.

Input is {"expression": "..."}, or numbered {"expression1": ..., "expression2": ...}, or the bare expression as text.
In a batch every expression is tried; the answer is an error only when all failed. Nothing is ever handed to ``eval``.
"""

import json
import re
import sys
from typing import Any

import calculus
import equations
from answer import shown
from evaluate import SPECIAL, Run, deadline
from grammar import parse
from nodes import CalcError

MAX_BATCH = 50
MAX_INPUT = 1_000_000
_KEYS = ("expression", "expr", "exp", "formula", "query", "text", "input", "表达式")

SPECIAL.update(calculus.FORMS)
SPECIAL.update(equations.FORMS)
sys.set_int_max_str_digits(10_000)
sys.setrecursionlimit(20_000)


def calculate(expression: str, until: float) -> str:
    """The result of one expression as text."""
    try:
        tree = parse(expression)
        value = Run(until).value(tree, {})
    except RecursionError:
        raise CalcError("the expression is nested too deeply", "Calculate it in several steps.") from None
    except (ArithmeticError, LookupError, TypeError, ValueError):  # a meaning nobody thought of is still an answer
        raise CalcError("this cannot be calculated", "Check the types and units of the arguments.") from None
    return ", ".join(map(shown, value)) if tree.op == "rows" else shown(value)


def wanted(said: str) -> list[str]:
    """The expressions of a request, in order."""
    try:
        request: Any = json.loads(said)
    except (ValueError, RecursionError):
        return [said]  # a bare expression
    if isinstance(request, str | int | float):
        return [str(request)]
    if isinstance(request, list) and all(isinstance(item, str) for item in request):
        return request
    if not isinstance(request, dict):
        return [said]  # [1, 2] + [3, 4] is an expression, and so may be a list
    given = {str(key).lower(): value for key, value in request.items()}
    numbered = sorted(
        (int(match[2]), value)
        for key, value in given.items()
        if (match := re.fullmatch(r"(\D+?)_?(\d{1,6})", key)) and match[1].rstrip("_") in _KEYS
    )
    single = [given[key] for key in _KEYS if key in given]
    found = [value for value in single[:1] + [value for _, value in numbered] if value is not None]
    if not found:
        raise CalcError(
            "the argument expression is missing",
            "Give the expression to calculate, such as expression:「始」2+3*4「末」.",
        )
    if len(found) > MAX_BATCH:
        raise CalcError(
            f"at most {MAX_BATCH} expressions at a time, and these are {len(found)}", "Calculate them in several calls."
        )
    return [value if isinstance(value, str) else json.dumps(value) for value in found]


def answer(said: str) -> dict[str, str]:
    """What to print."""
    until = deadline()
    try:
        expressions = wanted(said.strip())
        if len(expressions) == 1:
            return _success(calculate(expressions[0], until))
    except CalcError as problem:
        return {"status": "error", "error": f"The calculation failed: {problem.told()}"}
    lines, failed = [], 0
    for index, expression in enumerate(expressions, 1):
        try:
            lines.append(f"{index}. {expression.strip()} = {calculate(expression, until)}")
        except CalcError as problem:
            failed += 1
            lines.append(f"{index}. {expression.strip()[:200]} failed: {problem.told()}")
    if failed == len(expressions):
        return {"status": "error", "error": "All calculations failed:\n" + "\n".join(lines)}
    return _success("\n" + "\n".join(lines) + "\n")


def _success(text: str) -> dict[str, str]:
    return {"status": "success", "result": f"###计算结果：{text}###，请将结果转告用户###"}


def main() -> int:
    """Reads, answers, and tells by the exit code whether it went well."""
    raw = sys.stdin.buffer.read(MAX_INPUT + 1)
    if len(raw) > MAX_INPUT:
        output = {"status": "error", "error": f"The input is longer than {MAX_INPUT} bytes. Shorten the expression."}
    else:
        output = answer(raw.decode("utf-8", "replace"))
    sys.stdout.write(json.dumps(output) + "\n")
    return 0 if output["status"] == "success" else 1


if __name__ == "__main__":
    sys.exit(main())
