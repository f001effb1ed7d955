"""The units the calculator knows: factor to SI, dimensions, and for temperatures the zero point. Data only.

Dimensions: length, mass, time, current, temperature, substance, light, information, angle.
"""

import math
from fractions import Fraction
from typing import Any, NamedTuple

Dimensions = tuple[Any, ...]


class Unit(NamedTuple):
    """One unit: how to write it, how many SI base units it is, of what, and where its scale begins."""

    symbol: str
    factor: Any
    dimensions: Dimensions
    zero: Any = 0


def _of(**powers: int) -> Dimensions:
    return tuple(powers.get(name, 0) for name in ("m", "kg", "s", "A", "K", "mol", "cd", "bit", "rad"))


NONE = _of()
ANGLE = _of(rad=1)
_LENGTH, _MASS, _TIME, _DATA, _HEAT = _of(m=1), _of(kg=1), _of(s=1), _of(bit=1), _of(K=1)
_AREA, _VOLUME, _SPEED = _of(m=2), _of(m=3), _of(m=1, s=-1)
_FORCE, _PRESSURE, _ENERGY, _POWER = (
    _of(m=1, kg=1, s=-2),
    _of(m=-1, kg=1, s=-2),
    _of(m=2, kg=1, s=-2),
    _of(m=2, kg=1, s=-3),
)
_VOLT = _of(m=2, kg=1, s=-3, A=-1)

_PREFIXES = {
    "Q": 30, "R": 27, "Y": 24, "Z": 21, "E": 18, "P": 15, "T": 12, "G": 9, "M": 6, "k": 3, "h": 2, "da": 1, "d": -1,
    "c": -2, "m": -3, "u": -6, "n": -9, "p": -12, "f": -15, "a": -18, "z": -21, "y": -24,
}  # fmt: skip
_LONG_PREFIXES = {
    "tera": 12, "giga": 9, "mega": 6, "kilo": 3, "hecto": 2, "deci": -1, "centi": -2, "milli": -3, "micro": -6,
    "nano": -9, "pico": -12,
}  # fmt: skip

_PREFIXED: dict[str, tuple[Any, Dimensions, str]] = {  # symbol: factor, dimensions, long names
    "m": (1, _LENGTH, "meter metre"), "g": (Fraction(1, 1000), _MASS, "gram gramme"), "s": (1, _TIME, "second sec"),
    "A": (1, _of(A=1), "ampere amp"), "K": (1, _HEAT, "kelvin"), "mol": (1, _of(mol=1), "mole"),
    "cd": (1, _of(cd=1), "candela"), "Hz": (1, _of(s=-1), "hertz"), "N": (1, _FORCE, "newton"),
    "Pa": (1, _PRESSURE, "pascal"), "J": (1, _ENERGY, "joule"), "W": (1, _POWER, "watt"),
    "C": (1, _of(A=1, s=1), "coulomb"), "V": (1, _VOLT, "volt"), "F": (1, _of(m=-2, kg=-1, s=4, A=2), "farad"),
    "ohm": (1, _of(m=2, kg=1, s=-3, A=-2), ""), "T": (1, _of(kg=1, s=-2, A=-1), "tesla"),
    "Wb": (1, _of(m=2, kg=1, s=-2, A=-1), "weber"), "H": (1, _of(m=2, kg=1, s=-2, A=-2), "henry"),
    "L": (Fraction(1, 1000), _VOLUME, "liter litre"), "l": (Fraction(1, 1000), _VOLUME, ""),
    "eV": (1.602176634e-19, _ENERGY, "electronvolt"), "cal": (Fraction(4184, 1000), _ENERGY, "calorie"),
    "Wh": (3600, _ENERGY, ""), "bar": (100_000, _PRESSURE, ""), "bit": (1, _DATA, ""), "b": (1, _DATA, ""),
    "B": (8, _DATA, "byte"), "bps": (1, _of(bit=1, s=-1), ""),
}  # fmt: skip

_PLAIN: dict[str, tuple[Any, Dimensions]] = {  # names separated by blanks, the first is the symbol
    "inch in inches 英寸": ("0.0254", _LENGTH), "ft foot feet 英尺": ("0.3048", _LENGTH),
    "yd yard 码": ("0.9144", _LENGTH), "mile mi 英里": ("1609.344", _LENGTH), "nmi 海里": (1852, _LENGTH),
    "ly lightyear 光年": (9460730472580800, _LENGTH), "au 天文单位": (149597870700, _LENGTH),
    "pc parsec 秒差距": (3.0856775814913673e16, _LENGTH), "angstrom": ("1e-10", _LENGTH),
    "米": (1, _LENGTH), "千米 公里": (1000, _LENGTH), "分米": ("0.1", _LENGTH), "厘米": ("0.01", _LENGTH),
    "毫米": ("0.001", _LENGTH), "微米": ("1e-6", _LENGTH), "纳米": ("1e-9", _LENGTH), "里 华里 市里": (500, _LENGTH),
    "lb lbs pound 磅": ("0.45359237", _MASS), "oz ounce 盎司": ("0.028349523125", _MASS),
    "stone": ("6.35029318", _MASS), "t ton tonne 吨": (1000, _MASS), "carat ct 克拉": ("0.0002", _MASS),
    "千克 公斤": (1, _MASS), "克": ("0.001", _MASS), "毫克": ("1e-6", _MASS), "斤 市斤": ("0.5", _MASS),
    "两": ("0.05", _MASS),
    "min minute 分钟": (60, _TIME), "h hr hour 小时": (3600, _TIME), "d day 天 日": (86400, _TIME),
    "week wk 周 星期": (604800, _TIME), "month 个月": (2629800, _TIME), "year yr 年": (31557600, _TIME),
    "century 世纪": (3155760000, _TIME), "秒": (1, _TIME), "毫秒": ("0.001", _TIME),
    "are": (100, _AREA), "ha hectare 公顷": (10_000, _AREA), "acre 英亩": ("4046.8564224", _AREA),
    "亩": (Fraction(2000, 3), _AREA), "平方米": (1, _AREA), "平方公里 平方千米": (1_000_000, _AREA),
    "sqft": ("0.09290304", _AREA),
    "立方米": (1, _VOLUME), "升": ("0.001", _VOLUME), "毫升 cc": ("1e-6", _VOLUME),
    "gal gallon 加仑": ("0.003785411784", _VOLUME),
    "qt quart": ("0.000946352946", _VOLUME), "pint": ("0.000473176473", _VOLUME), "cup": ("0.0002365882365", _VOLUME),
    "floz": ("0.0000295735295625", _VOLUME), "tbsp": ("0.00001478676478125", _VOLUME),
    "tsp": ("0.00000492892159375", _VOLUME),
    "bbl barrel 桶": ("0.158987294928", _VOLUME),
    "kmh kph": (Fraction(5, 18), _SPEED), "mph": ("0.44704", _SPEED), "knot kn kt 节": (Fraction(1852, 3600), _SPEED),
    "fps": ("0.3048", _SPEED), "mach 马赫": ("340.29", _SPEED),
    "kgf": ("9.80665", _FORCE), "lbf": ("4.4482216152605", _FORCE), "dyn": ("1e-5", _FORCE),
    "atm 大气压": (101325, _PRESSURE), "mmHg 毫米汞柱": ("133.322387415", _PRESSURE),
    "torr": (Fraction(101325, 760), _PRESSURE),
    "psi": ("6894.757293168", _PRESSURE), "帕": (1, _PRESSURE), "千帕": (1000, _PRESSURE),
    "兆帕": (1_000_000, _PRESSURE),
    "btu BTU": ("1055.05585262", _ENERGY), "erg": ("1e-7", _ENERGY), "焦耳 焦": (1, _ENERGY), "千焦": (1000, _ENERGY),
    "卡路里": ("4.184", _ENERGY), "千卡 大卡 Cal": (4184, _ENERGY), "千瓦时": (3_600_000, _ENERGY),
    "hp horsepower 马力": ("745.69987158227", _POWER), "瓦 瓦特": (1, _POWER), "千瓦": (1000, _POWER),
    "牛 牛顿": (1, _FORCE), "伏 伏特": (1, _VOLT), "安 安培": (1, _of(A=1)), "rpm": (Fraction(1, 60), _of(s=-1)),
    "KB": (8000, _DATA), "字节": (8, _DATA), "比特": (1, _DATA),
    "rad radian 弧度": (1, ANGLE), "deg degree ° 度": (math.pi / 180, ANGLE), "grad gon": (math.pi / 200, ANGLE),
    "arcmin 角分": (math.pi / 10800, ANGLE), "arcsec 角秒": (math.pi / 648000, ANGLE),
    "turn rev 圈": (2 * math.pi, ANGLE),
}  # fmt: skip

_SCALES = (
    ("degC °C celsius 摄氏度", 1, Fraction(27315, 100)),
    ("degF °F fahrenheit 华氏度", Fraction(5, 9), Fraction(45967, 180)),
    ("degR rankine", Fraction(5, 9), 0),
    ("开尔文 开", 1, 0),
)


def _table() -> dict[str, Unit]:
    units: dict[str, Unit] = {}
    for symbol, (factor, dimensions, names) in _PREFIXED.items():
        for prefix, exponent in {"": 0, **_PREFIXES}.items():
            units[prefix + symbol] = Unit(prefix + symbol, factor * _ten(exponent, factor), dimensions)
        for name in names.split():
            for prefix, exponent in {"": 0, **_LONG_PREFIXES}.items():
                short = next((sign for sign, power in _PREFIXES.items() if power == exponent), "") + symbol
                unit = Unit(short, factor * _ten(exponent, factor), dimensions)
                units[prefix + name] = units[prefix + name + "s"] = unit
    for sign, power in (("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50)):
        units[f"{sign}B"] = Unit(f"{sign}B", 8 * 2**power, _DATA)
    for names, (factor, dimensions) in _PLAIN.items():
        exact = Fraction(factor) if isinstance(factor, str) else factor
        _name(units, Unit(names.split()[0], exact, dimensions), names)
    for names, factor, zero in _SCALES:
        _name(units, Unit(names.split()[0], factor, _HEAT, zero), names)
    return units


def _ten(exponent: int, factor: Any) -> Any:
    return 10.0**exponent if isinstance(factor, float) else Fraction(10) ** exponent


def _name(units: dict[str, Unit], unit: Unit, names: str) -> None:
    for name in names.split():
        units[name] = unit
        if len(name) > 2 and name.isascii() and not name.endswith("s"):
            units.setdefault(name + "s", unit)


UNITS = _table()
