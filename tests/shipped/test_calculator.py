"""SciCalculator: answers checked against Python where Python knows them; hostile input refused in bounded time."""

import math
import re
import statistics
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.shipped.children import run

pytestmark = pytest.mark.requirement("shipped:calculator")
ANSWER = re.compile(r"###计算结果：(.*)###，请将结果转告用户###", re.DOTALL)


def results(expressions: list[str], home: Path) -> list[str]:
    """What one child answers to a batch."""
    said = run("SciCalculator", {f"expression{i}": text for i, text in enumerate(expressions, 1)}, home)
    match = ANSWER.fullmatch(said.answer["result"]) if said.answer["status"] == "success" else None
    body = match[1] if match else said.answer["error"].partition("\n")[2]
    if len(expressions) == 1:
        return [body]
    found = []
    for i, line in enumerate(body.strip("\n").split("\n"), 1):
        head = f"{i}. {expressions[i - 1].strip()}"
        assert line.startswith(head), line
        found.append(line[len(head) :].removeprefix(" = "))
    return found


def error(expression: str, home: Path) -> str:
    said = run("SciCalculator", {"expression": expression}, home)
    assert (said.answer["status"], said.code) == ("error", 1), said.answer
    return str(said.answer["error"])


@pytest.mark.parametrize(
    "stdin", [{"expression": "2+3*4"}, {"Expression": "2+3*4", "maid": "Nova"}, {"expression1": "2+3*4"}, b"2+3*4\n"]
)
def test_an_expression_is_answered_in_the_wording_of_the_handbook(stdin: object, tmp_path: Path) -> None:
    said = run("SciCalculator", stdin, tmp_path)
    assert said.answer == {"status": "success", "result": "###计算结果：14###，请将结果转告用户###"}
    assert said.code == 0


def test_a_batch_answers_every_expression_and_one_that_fails_spoils_no_other(tmp_path: Path) -> None:
    said = run(
        "SciCalculator", {"command1": "calc", "expression1": "1/0", "command2": "calc", "expression2": "6*7"}, tmp_path
    )
    assert said.answer["status"] == "success"
    assert "1. 1/0 failed: division by zero" in said.answer["result"]
    assert "2. 6*7 = 42" in said.answer["result"]


def test_a_batch_in_which_all_fail_is_an_error(tmp_path: Path) -> None:
    said = run("SciCalculator", {"expression1": "1/0", "expression2": "(("}, tmp_path)
    assert (said.answer["status"], said.code) == ("error", 1)


TABLE = {
    "0.1+0.2": "0.3",
    "2^100": str(2**100),
    "1/3": "0.333333333333333",
    "-2^2": "-4",
    "2^3^2": "512",
    "２＋３×４÷２−１": "7",
    "2（3+4）": "14",
    "200*15%": "30",
    "10 % 3": "1",
    "7 mod 3": "1",
    "5!": "120",
    "sqrt(-4)": "2i",
    "(3+4i)*(1-2i)": "11 - 2i",
    "e^(i*pi)": "-1",
    "sin(pi)": "0",
    "sin(30 deg)": "0.5",
    "8^(1/3)": "2",
    "cbrt(-27)": "-3",
    "log(8, 2)": "3",
    "log10(1000)": "3",
    "gcd(12, 18), lcm(4, 6)": "6, 12",
    "comb(10, 3)": "120",
    "perm(5, 2)": "20",
    "factor(360)": "2^3 × 3^2 × 5",
    "isprime(2^61-1)": "true",
    "hex(255)": "0xff",
    "frac(0.75)": "3/4",
    "5 km to m": "5000 m",
    "100 degC to degF": "212 degF",
    "-40 degC to degF": "-40 degF",
    "5 in to cm": "12.7 cm",
    "60 mph in km/h": "96.56064 km/h",
    "1 kWh to J": "3600000 J",
    "1 GiB to MB": "1073.741824 MB",
    "3 斤 to kg": "1.5 kg",
    "10 km / 4 h": "2.5 km/h",
    "3 km / 20 m": "150",
    "1 hour 转换为 min": "60 min",
    "20 degC + 5 K": "25 degC",
    "sqrt(16 m^2)": "4 m",
    "integral('sin(x)', 0, pi)": "2",
    "integral(x^2, x, 0, 3)": "9",
    "derivative(x^3+2x, x)": "3*x^2 + 2",
    "derivative(sin(x^2), x)": "2*cos(x^2)*x",
    "derivative(x^3, x, 2)": "12",
    "limit(sin(x)/x, x, 0)": "1",
    "limit(1/x, x, 0, 'right')": "∞",
    "sum(k^2, k, 1, 100)": "338350",
    "prod(k, k, 1, 5)": "120",
    "solve(x^2-4=0, x)": "x = -2 or x = 2",
    "solve(2x+3=7)": "x = 2",
    "solve(x^3-6x^2+11x-6=0, x)": "x = 1 or x = 2 or x = 3",
    "solve(x^2+1=0, x)": "x = -i or x = i",
    "solve([x+y=3, x-y=1], [x, y])": "x = 2, y = 1",
    "mean([1,2,3,4])": "2.5",
    "median(3,1,2)": "2",
    "percentile([1,2,3,4,5], 25)": "2",
    "linreg([1,2,3],[2,4,6])": "slope = 2, intercept = 0, R^2 = 1",
    "det([[1,2],[3,4]])": "-2",
    "inv([1,2;3,4])": "[[-2, 1], [1.5, -0.5]]",
    "[[1,1],[1,0]]^10": "[[89, 55], [55, 34]]",
    "dot([1,2,3],[4,5,6])": "32",
    "3 > 2": "true",
}


def test_what_people_write_is_read_as_they_mean_it(tmp_path: Path) -> None:
    expressions = list(TABLE)
    answers = [
        answer for at in range(0, len(expressions), 50) for answer in results(expressions[at : at + 50], tmp_path)
    ]
    assert dict(zip(expressions, answers, strict=True)) == TABLE


def test_quantiles_and_intervals_are_those_of_the_tables(tmp_path: Path) -> None:
    wanted = {
        "norm_ppf(0.975)": statistics.NormalDist().inv_cdf(0.975),
        "norm_cdf(1.5, 1, 2)": statistics.NormalDist(1, 2).cdf(1.5),
        "t_ppf(0.975, 10)": 2.2281388519649385,
        "t_ppf(0.95, 1)": 6.313751514675043,
        "t_cdf(2, 5)": 0.9490302605850709,
        "stdev([2,4,4,4,5,5,7,9])": statistics.stdev([2, 4, 4, 4, 5, 5, 7, 9]),
        "pvar([2,4,4,4,5,5,7,9])": 4.0,
        "integral(exp(-x^2), x, -inf, inf)": math.sqrt(math.pi),
        "solve(cos(x)=x, x, 0, 2)": 0.7390851332151607,
        "derivative(gamma(x), x, 2)": 1 - 0.5772156649015329,
        "limit((1+1/n)^n, n, inf)": math.e,
    }
    for answer, value in zip(results(list(wanted), tmp_path), wanted.values(), strict=True):
        assert float(answer.removeprefix("x = ")) == pytest.approx(value, rel=1e-9)


REAL = ("sin", "cos", "tan", "atan", "sinh", "cosh", "tanh", "asinh", "exp", "erf", "cbrt")
few = settings(
    max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None
)


@few
@given(
    st.lists(
        st.tuples(st.sampled_from(REAL), st.floats(-20, 20).filter(lambda x: abs(x) > 1e-6)), min_size=40, max_size=40
    )
)
def test_elementary_functions_agree_with_python(tmp_path: Path, calls: list[tuple[str, float]]) -> None:
    answers = results([f"{name}({x!r})" for name, x in calls], tmp_path)
    for (name, x), answer in zip(calls, answers, strict=True):
        assert float(answer) == pytest.approx(getattr(math, name)(x), rel=1e-12, abs=5e-15)


@few
@given(
    st.lists(
        st.tuples(*[st.fractions(-1000, 1000, max_denominator=50)] * 3, st.integers(0, 9)), min_size=30, max_size=30
    )
)
def test_exact_arithmetic_agrees_with_fractions(
    tmp_path: Path, rows: list[tuple[Fraction, Fraction, Fraction, int]]
) -> None:
    texts = [f"frac((({a}) + ({b})) * ({c})^{n} - ({a}))" for a, b, c, n in rows]
    assert results(texts, tmp_path) == [str((a + b) * c**n - a) for a, b, c, n in rows]


@few
@given(st.lists(st.lists(st.integers(-9, 9), min_size=3, max_size=5), min_size=15, max_size=15))
def test_the_roots_of_a_product_of_linear_factors_are_found(tmp_path: Path, rooted: list[list[int]]) -> None:
    texts = ["solve(" + "*".join(f"(x-({root}))" for root in roots) + "=0, x)" for roots in rooted]
    for roots, answer in zip(rooted, results(texts, tmp_path), strict=True):
        found = [float(part.removeprefix("x = ")) for part in answer.split(" or ")]
        assert found == pytest.approx(sorted(set(roots)), abs=1e-4)


FORMULAS: dict[str, Callable[[float], float]] = {
    "sin(x)*x": lambda x: math.sin(x) * x,
    "exp(x)/x": lambda x: math.exp(x) / x,
    "ln(x^2+1)": lambda x: math.log(x * x + 1),
    "x^x": lambda x: x**x,
    "sqrt(x)*cos(x)": lambda x: math.sqrt(x) * math.cos(x),
    "atan(x)^2": lambda x: math.atan(x) ** 2,
    "2^x - tanh(3x)": lambda x: 2**x - math.tanh(3 * x),
    "1/asin(x/4)": lambda x: 1 / math.asin(x / 4),
}


@few
@given(st.floats(0.5, 3))
def test_a_derived_formula_gives_what_differences_give(tmp_path: Path, x: float) -> None:
    answers = results([f"derivative({text}, x, {x!r})" for text in FORMULAS], tmp_path)
    for of, answer in zip(FORMULAS.values(), answers, strict=True):
        assert float(answer) == pytest.approx((of(x + 1e-5) - of(x - 1e-5)) / 2e-5, rel=1e-6, abs=1e-6)


ATTACKS = [
    "9**9**9", "9^9^9^9", "2^(10^9)", "10^-(10^9)", "99999!", "2000!*2000!*2000!", "comb(10^9, 5*10^8)",
    "1e999999999", "(" * 3000 + ")" * 3000,
    "-" * 3000 + "1", "2^" * 1500 + "2", "1+" * 1999 + "1+", "sum(k, k, 1, 10^12)",
    "sum(sum(j, j, 1, 10^5), k, 1, 10^5)",
    "integral(sin(1/x)/x, x, 0, 1)", "solve(sum(sin(k*x), k, 1, 10000)=0, x)", "[" * 200 + "1" + "]" * 200, "x" * 4001,
    "__import__('os').system('id')", "().__class__.__bases__", "eval('1')", "open('/etc/passwd')", "lambda: 1",
    "'" * 3, "\x00", "{{VCPAllTools}}",
    "integral(x^2-2, x, -inf, inf)", "degrees((2i*30 deg))",
    "derivative(" + "x^" * 200 + "x, x)", "log(0)", "tan(pi/2)", "asin(x)", "0^-1", "identity(10^9)", "[[1]]^(10^9)",
    "1e308*1e308*1.5*exp(700)",
]  # fmt: skip


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda text: text[:24])
def test_hostile_and_hopeless_input_is_refused_with_a_reason(attack: str, tmp_path: Path) -> None:
    assert error(attack, tmp_path).startswith("The calculation failed: ")


@pytest.mark.parametrize(
    ("expression", "what", "where", "how"),
    [
        ("2+*3", "'*' cannot stand here", "character 3", "A number, a name or an opening bracket"),
        ("(1+2", "')' is missing", "character 5", "brackets come in pairs"),
        ("sine(3)", "unknown function 'sine'", "character 1", "Did you mean sin"),
        ("1+qzv", "unknown name 'qzv'", "character 3", "spelling"),
        ("5 km + 3 kg", "units do not match: km and kg", "character 6", "the same thing"),
        ("1/0", "division by zero", "character 2", "denominator"),
        ("limit(1/x, x, 0)", "left -∞, right ∞", "character 1", "add 'left'"),
        ("", "the expression is empty", "", "2+3*4"),
    ],
)
def test_an_error_says_what_where_and_how(expression: str, what: str, where: str, how: str, tmp_path: Path) -> None:
    told = error(expression, tmp_path)
    assert what in told
    assert where in told
    assert how in told


@pytest.mark.parametrize("stdin", [b"{}", b'{"a": 1}', b"null", b"\xff\xff", b"x" * 1_000_001])
def test_a_request_without_an_expression_is_an_error(stdin: bytes, tmp_path: Path) -> None:
    said = run("SciCalculator", stdin, tmp_path)
    assert (said.answer["status"], said.code) == ("error", 1)
