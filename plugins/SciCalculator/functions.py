"""Functions of plain numbers: elementary, number theory, rounding. Real where possible, complex where needed."""

import cmath
import math
from collections.abc import Callable
from fractions import Fraction

from nodes import CalcError, Value
from numeric import exact_root, power, real, whole

MAX_FACTORIAL = 2000
MAX_CHOICE = 20_000

CONSTANTS: dict[str, Value] = {
    "pi": math.pi, "e": math.e, "tau": math.tau, "phi": (1 + math.sqrt(5)) / 2, "i": 1j, "inf": math.inf,
    "euler_gamma": 0.5772156649015329, "true": True, "false": False,
    "avogadro": 6.02214076e23, "N_A": 6.02214076e23,
}  # fmt: skip
MEASURED = {  # constants with units: value and units as an expression of the calculator
    "c": "299792458 m/s", "speed_of_light": "299792458 m/s", "planck": "6.62607015e-34 J s",
    "hbar": "1.054571817e-34 J s",
    "gravity": "9.80665 m/s^2", "g0": "9.80665 m/s^2", "G": "6.6743e-11 m^3/(kg s^2)", "k_B": "1.380649e-23 J/K",
    "boltzmann": "1.380649e-23 J/K", "R": "8.314462618 J/(mol K)", "q_e": "1.602176634e-19 C",
    "m_e": "9.1093837015e-31 kg",
    "m_p": "1.67262192369e-27 kg", "epsilon0": "8.8541878128e-12 F/m", "sigma_sb": "5.670374419e-8 W/(m^2 K^4)",
}  # fmt: skip


def _either(of_real: Callable[[float], float], of_complex: Callable[[complex], complex]) -> Callable[[Value], Value]:
    """The real function, or the complex one where the real one is not defined."""

    def work(value: Value) -> Value:
        if not isinstance(value, complex):
            try:
                return of_real(real(value))
            except ValueError:
                if value == 0 or math.isinf(value):
                    raise CalcError(
                        "the function is not defined here",
                        "Check the argument: log(0) and atanh(1), for example, have no value.",
                    ) from None
        return of_complex(complex(value))

    return work


def _circular(of_real: Callable[[float], float], of_complex: Callable[[complex], complex]) -> Callable[[Value], Value]:
    """Sine and its kin: a value within the rounding error of the argument is zero."""
    either = _either(of_real, of_complex)

    def work(value: Value) -> Value:
        result = either(value)
        if isinstance(result, float) and abs(value) >= 1 and abs(result) < 2.5e-16 * abs(value):
            return 0
        return result

    return work


def _tan(value: float) -> float:
    if abs(value) >= 1 and abs(math.cos(value)) < 2.5e-16 * abs(value):
        raise CalcError("tan is not defined at odd multiples of π/2", "Check the angle; for degrees write tan(45 deg).")
    return math.tan(value)


def _inverse(of: Callable[[Value], Value]) -> Callable[[Value], Value]:
    return lambda value: 1 / of(value)


def sqrt(value: Value) -> Value:
    """Exact for perfect squares."""
    if isinstance(value, int | Fraction):
        exact = exact_root(Fraction(value if value >= 0 else -value), 2)
        if exact is not None:
            return exact if value >= 0 else complex(0, real(exact))
    return _either(math.sqrt, cmath.sqrt)(value)


def root(value: Value, degree: Value = 2) -> Value:
    """The n-th root; an odd root of a negative number is real."""
    n = whole(degree, "degree of the root")
    if n == 0:
        raise CalcError("the degree of a root cannot be 0", "For example root(27, 3).")
    if not isinstance(value, complex) and value < 0 and n % 2:
        return -power(-value, Fraction(1, n))
    return power(value, Fraction(1, n))


def log(value: Value, base: Value = None) -> Value:
    """The natural logarithm, or one to a base."""
    of = _either(math.log, cmath.log)
    if isinstance(value, int) and value > 0:  # also past the range of floats
        top = math.log(value)
        return top if base is None else math.log(value, base) if base not in (2, 10) else _common(value, base)
    return of(value) if base is None else of(value) / of(base)


def _common(value: Value, base: int) -> Value:
    if not isinstance(value, complex) and value > 0:
        exact = math.log10 if base == 10 else math.log2
        return exact(value if isinstance(value, int) else real(value))
    return cmath.log(complex(value)) / math.log(base)


def factorial(value: Value) -> Value:
    """Exact for whole numbers, gamma(x+1) otherwise."""
    if isinstance(value, int) and not isinstance(value, bool):
        if value < 0:
            raise CalcError("negative whole numbers have no factorial", "The argument must be at least 0.")
        if value > MAX_FACTORIAL:
            raise CalcError(
                f"{value}! is too large",
                f"The argument can be {MAX_FACTORIAL} at most; lgamma({value}+1)/log(10) estimates the digits.",
            )
        return math.factorial(value)
    return math.gamma(real(value) + 1)


def _choice(of: Callable[[int, int], int], name: str) -> Callable[..., int]:
    def work(n: Value, k: Value = None) -> int:
        total = whole(n, name)
        if total > MAX_CHOICE:
            raise CalcError(f"the argument of {name} is too large: {total}", f"n can be {MAX_CHOICE} at most.")
        return of(total, total if k is None else whole(k, name))

    return work


def _many(of: Callable[..., int], name: str) -> Callable[..., int]:
    return lambda *values: of(*(whole(value, name) for value in values))


def mod(left: Value, right: Value) -> Value:
    """The remainder with the sign of the divisor."""
    return left % right


def rounded(value: Value, digits: Value = 0) -> Value:
    """Half goes to even, as Python does."""
    places = whole(digits, "digits")
    if abs(places) > 100:
        raise CalcError("too many digits", "Use from -100 to 100 digits.")
    return round(value, places) if places or isinstance(value, Fraction) else round(value)


def _absolute(value: Value) -> Value:
    return abs(value)


def is_prime(value: Value) -> bool:
    """Miller-Rabin with the first twelve primes: certain below 3.3e24, which is the bound."""
    n = whole(value, "isprime")
    if n >= 3_317_044_064_679_887_385_961_981:
        raise CalcError("the argument of isprime is too large", "The limit is about 3.3e24.")
    primes = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)
    if n < 2 or any(n % p == 0 for p in primes):
        return n in primes
    odd, twos = n - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    return all(_passes(pow(p, odd, n), twos, n) for p in primes)


def _passes(x: int, twos: int, n: int) -> bool:
    if x in (1, n - 1):
        return True
    for _ in range(twos - 1):
        x = x * x % n
        if x == n - 1:
            return True
    return False


def factors(value: Value) -> str:
    """The prime factors by trial division, up to 10^12."""
    n = whole(value, "factor")
    if not 1 < n <= 10**12:
        raise CalcError("the argument of factor must be from 2 to 10^12", "For larger numbers use isprime.")
    found: list[str] = []
    p = 2
    while p * p <= n:
        count = 0
        while n % p == 0:
            n, count = n // p, count + 1
        if count:
            found.append(str(p) + (f"^{count}" if count > 1 else ""))
        p += 1 if p == 2 else 2
    return " × ".join(found + ([str(n)] if n > 1 else []))


def _sign(value: Value) -> int:
    return int(value > 0) - int(value < 0)


SCALAR: dict[str, Callable[..., Value]] = {
    "sin": _circular(math.sin, cmath.sin), "cos": _circular(math.cos, cmath.cos), "tan": _circular(_tan, cmath.tan),
    "cot": _inverse(_circular(_tan, cmath.tan)), "sec": _inverse(_circular(math.cos, cmath.cos)),
    "csc": _inverse(_circular(math.sin, cmath.sin)),
    "asin": _either(math.asin, cmath.asin), "acos": _either(math.acos, cmath.acos),
    "atan": _either(math.atan, cmath.atan),
    "atan2": lambda y, x: math.atan2(real(y), real(x)), "hypot": lambda *values: math.hypot(*map(real, values)),
    "sinh": _either(math.sinh, cmath.sinh), "cosh": _either(math.cosh, cmath.cosh),
    "tanh": _either(math.tanh, cmath.tanh),
    "asinh": _either(math.asinh, cmath.asinh), "acosh": _either(math.acosh, cmath.acosh),
    "atanh": _either(math.atanh, cmath.atanh),
    "exp": _either(math.exp, cmath.exp), "expm1": lambda x: math.expm1(real(x)), "log": log, "ln": log,
    "log10": lambda x: _common(x, 10), "lg": lambda x: _common(x, 10), "log2": lambda x: _common(x, 2),
    "lb": lambda x: _common(x, 2), "log1p": lambda x: math.log1p(real(x)),
    "sqrt": sqrt, "cbrt": lambda x: root(x, 3), "root": root, "pow": power, "abs": _absolute,
    "factorial": factorial, "fact": factorial, "gamma": lambda x: math.gamma(real(x)),
    "lgamma": lambda x: math.lgamma(real(x)),
    "beta": lambda a, b: math.exp(math.lgamma(real(a)) + math.lgamma(real(b)) - math.lgamma(real(a) + real(b))),
    "erf": lambda x: math.erf(real(x)), "erfc": lambda x: math.erfc(real(x)),
    "gcd": _many(math.gcd, "gcd"), "lcm": _many(math.lcm, "lcm"), "comb": _choice(math.comb, "comb"),
    "ncr": _choice(math.comb, "nCr"), "perm": _choice(math.perm, "perm"), "npr": _choice(math.perm, "nPr"),
    "mod": mod, "round": rounded, "floor": math.floor, "ceil": math.ceil,
    "trunc": math.trunc, "sign": _sign, "isprime": is_prime, "factor": factors,
    "degrees": lambda x: math.degrees(real(x)), "radians": lambda x: math.radians(real(x)),
    "re": lambda z: complex(z).real, "im": lambda z: complex(z).imag, "conj": lambda z: complex(z).conjugate(),
    "arg": lambda z: cmath.phase(complex(z)), "phase": lambda z: cmath.phase(complex(z)),
    "frac": lambda x: str(Fraction(x).limit_denominator(10**6) if isinstance(x, float) else Fraction(x)),
    "hex": lambda n: hex(whole(n, "hex")), "bin": lambda n: bin(whole(n, "bin")), "oct": lambda n: oct(whole(n, "oct")),
}  # fmt: skip
ALIASES = {
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "tg": "tan", "ctg": "cot", "nroot": "root", "ceiling": "ceil",
    "sgn": "sign", "choose": "comb", "binomial": "comb", "permutation": "perm", "sinus": "sin",
}  # fmt: skip
