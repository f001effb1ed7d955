"""Statistics of lists, and the usual distributions. Variance and deviation are of a sample unless they begin with p."""

import math
from collections.abc import Callable

from nodes import CalcError, Value
from numeric import apply, divide, exact_root, real, whole

_TINY = 1e-300


def _data(values: tuple[Value, ...], least: int = 1) -> list[Value]:
    flat = list(values[0]) if len(values) == 1 and isinstance(values[0], list) else list(values)
    if len(flat) < least:
        raise CalcError(f"at least {least} values are needed", "For example stdev([1, 2, 3]).")
    if any(isinstance(value, list | complex | str) for value in flat):
        raise CalcError("functions of statistics need a list of real numbers", "For example mean([1, 2, 3]).")
    return flat


def mean(*values: Value) -> Value:
    """The arithmetic mean."""
    data = _data(values)
    return divide(sum(data), len(data))


def median(*values: Value) -> Value:
    """The middle value."""
    data = sorted(_data(values))
    half = len(data) // 2
    return data[half] if len(data) % 2 else divide(data[half - 1] + data[half], 2)


def mode(*values: Value) -> Value:
    """The most frequent value; the first of several."""
    data = _data(values)
    return max(data, key=data.count)


def _variance(values: tuple[Value, ...], lost: int) -> Value:
    data = _data(values, 1 + lost)
    middle = mean(data)
    return divide(sum((value - middle) ** 2 for value in data), len(data) - lost)


def _deviation(values: tuple[Value, ...], lost: int) -> Value:
    spread = apply(lambda: _variance(values, lost))
    root = None if isinstance(spread, float) else exact_root(spread, 2)
    return math.sqrt(spread) if root is None else root


def quantile(data: Value, share: Value) -> Value:
    """Linear between the neighbours, as most programs do."""
    if not 0 <= share <= 1:
        raise CalcError(
            "a quantile must be from 0 to 1", "For example quantile([1,2,3], 0.25) or percentile([1,2,3], 25)."
        )
    ordered = sorted(_data((data,)))
    position = share * (len(ordered) - 1)
    low = math.floor(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (position - low)


def _pairs(xs: Value, ys: Value) -> tuple[list[float], list[float], float, float, float]:
    left, right = [real(x) for x in _data((xs,), 2)], [real(y) for y in _data((ys,), 2)]
    if len(left) != len(right):
        raise CalcError(f"the two lists differ in length: {len(left)} and {len(right)}", "Each x needs one y.")
    mx, my = math.fsum(left) / len(left), math.fsum(right) / len(right)
    sxx = math.fsum((x - mx) ** 2 for x in left)
    syy = math.fsum((y - my) ** 2 for y in right)
    sxy = math.fsum((x - mx) * (y - my) for x, y in zip(left, right, strict=True))
    return left, right, sxx, syy, sxy


def covariance(xs: Value, ys: Value) -> float:
    """Of a sample."""
    left, _, _, _, sxy = _pairs(xs, ys)
    return sxy / (len(left) - 1)


def correlation(xs: Value, ys: Value) -> float:
    """Pearson's r."""
    _, _, sxx, syy, sxy = _pairs(xs, ys)
    if sxx == 0 or syy == 0:
        raise CalcError("all values of a list are equal, so the correlation is not defined", "Check the values.")
    return sxy / math.sqrt(sxx * syy)


def regression(xs: Value, ys: Value) -> str:
    """The line of least squares, told with its coefficient of determination."""
    left, right, sxx, syy, sxy = _pairs(xs, ys)
    if sxx == 0:
        raise CalcError("all x are equal, so there is no linear regression", "Check the values.")
    slope = sxy / sxx
    intercept = math.fsum(right) / len(right) - slope * math.fsum(left) / len(left)
    fit = 1.0 if syy == 0 else sxy * sxy / (sxx * syy)
    return f"slope = {slope:.12g}, intercept = {intercept:.12g}, R^2 = {fit:.12g}"


def norm_pdf(x: Value, mu: Value = 0, sigma: Value = 1) -> float:
    """The density of the normal distribution."""
    return math.exp(-(_z(x, mu, sigma) ** 2) / 2) / (real(sigma) * math.sqrt(math.tau))


def norm_cdf(x: Value, mu: Value = 0, sigma: Value = 1) -> float:
    """The probability of a value up to x."""
    return math.erfc(-_z(x, mu, sigma) / math.sqrt(2)) / 2


def _z(x: Value, mu: Value, sigma: Value) -> float:
    if real(sigma) <= 0:
        raise CalcError("the standard deviation must be above 0", "For example norm_cdf(1.96, 0, 1).")
    return (real(x) - real(mu)) / real(sigma)


def norm_ppf(p: Value, mu: Value = 0, sigma: Value = 1) -> float:
    """The value below which the share p lies."""
    return real(mu) + real(sigma) * _inverse(norm_cdf, _share(p), -40.0, 40.0)


def _share(p: Value) -> float:
    if not 0 < p < 1:
        raise CalcError("a probability must be between 0 and 1", "For example norm_ppf(0.975).")
    return real(p)


def _inverse(of: Callable[[float], float], wanted: float, low: float, high: float) -> float:
    if wanted > 0.5:  # the lower tail keeps its digits
        return -_inverse(of, 1 - wanted, -high, -low)
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if of(middle) < wanted else (low, middle)
    return (low + high) / 2


def t_cdf(x: Value, df: Value) -> float:
    """Student's distribution."""
    n, t = _degrees(df), real(x)
    tail = incomplete_beta(n / 2, 0.5, n / (n + t * t)) / 2
    return 1 - tail if t > 0 else tail


def t_ppf(p: Value, df: Value) -> float:
    """The quantile of Student's distribution."""
    n = _degrees(df)
    return _inverse(lambda t: t_cdf(t, n), _share(p), -1e8, 1e8)


def _degrees(df: Value) -> float:
    if real(df) <= 0:
        raise CalcError("the degrees of freedom must be above 0", "For example t_ppf(0.975, 10).")
    return real(df)


def incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function by its continued fraction."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):
        return 1 - incomplete_beta(b, a, 1 - x)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)) / a
    c, d = 1.0, 1 / _off_zero(1 - (a + b) * x / (a + 1))
    total = d
    for m in range(1, 500):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d, c = 1 / _off_zero(1 + term * d), _off_zero(1 + term / c)
            total *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return front * total


def _off_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


def confidence(data: Value, level: Value = 0.95) -> list[float]:
    """The interval of the mean by Student's distribution."""
    sample = _data((data,), 2)
    reach = t_ppf((1 + _share(level)) / 2, len(sample) - 1) * real(_deviation((sample,), 1)) / math.sqrt(len(sample))
    middle = real(mean(sample))
    return [middle - reach, middle + reach]


def t_test(data: Value, mu: Value) -> str:
    """One sample against a mean, two-sided."""
    sample = _data((data,), 2)
    spread = real(_deviation((sample,), 1))
    if spread == 0:
        raise CalcError("all values are equal, so there is no t-test", "Check the values.")
    t = (real(mean(sample)) - real(mu)) / (spread / math.sqrt(len(sample)))
    return f"t = {t:.10g}, df = {len(sample) - 1}, p = {2 * t_cdf(-abs(t), len(sample) - 1):.10g}"


def binomial_pmf(k: Value, n: Value, p: Value) -> float:
    """The probability of k hits in n tries."""
    hits, tries, share = whole(k, "binom_pmf"), whole(n, "binom_pmf"), real(p)
    if not 0 <= share <= 1 or not 0 <= tries <= 1000:
        raise CalcError("binom_pmf needs 0<=p<=1 and 0<=n<=1000", "For example binom_pmf(3, 10, 0.5).")
    return math.comb(tries, hits) * share**hits * (1 - share) ** (tries - hits) if 0 <= hits <= tries else 0.0


def poisson_pmf(k: Value, rate: Value) -> float:
    """The probability of k events."""
    count, mu = whole(k, "poisson_pmf"), real(rate)
    if count < 0 or mu <= 0:
        raise CalcError("poisson_pmf needs k>=0 and λ>0", "For example poisson_pmf(2, 3.5).")
    return math.exp(count * math.log(mu) - mu - math.lgamma(count + 1))


STATISTICS: dict[str, Callable[..., Value]] = {
    "mean": mean, "avg": mean, "average": mean, "median": median, "mode": mode,
    "var": lambda *v: _variance(v, 1), "variance": lambda *v: _variance(v, 1), "pvar": lambda *v: _variance(v, 0),
    "stdev": lambda *v: _deviation(v, 1), "std": lambda *v: _deviation(v, 1), "pstdev": lambda *v: _deviation(v, 0),
    "quantile": quantile, "percentile": lambda data, p: quantile(data, divide(p, 100)),
    "cov": covariance, "corr": correlation, "linreg": regression, "linear_regression": regression,
    "norm_pdf": norm_pdf, "norm_cdf": norm_cdf, "norm_ppf": norm_ppf, "t_cdf": t_cdf, "t_ppf": t_ppf,
    "ci": confidence, "confidence_interval": confidence, "t_test": t_test, "ttest": t_test,
    "binom_pmf": binomial_pmf, "poisson_pmf": poisson_pmf, "max": lambda *v: max(_data(v)),
    "min": lambda *v: min(_data(v)),
    "range": lambda *v: max(_data(v)) - min(_data(v)), "count": lambda *v: len(_data(v)),
    "sort": lambda *v: sorted(_data(v)),
}  # fmt: skip
