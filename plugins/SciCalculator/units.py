"""Quantities: a number with units, kept in the units the person wrote until a conversion is asked for."""

from fractions import Fraction
from typing import Any

from nodes import CalcError, Value
from numeric import apply, divide, is_number, power, real
from unit_table import ANGLE, NONE, UNITS, Dimensions, Unit

Powers = tuple[tuple[Unit, Any], ...]


class Quantity:
    """A value in units, such as 2.5 km/h; a temperature on a scale with its own zero is a point, not a difference."""

    __slots__ = ("powers", "value")

    def __init__(self, value: Value, powers: Powers) -> None:
        self.value = value
        self.powers = powers

    @property
    def dimensions(self) -> Dimensions:
        """What it measures."""
        sums = [sum(unit.dimensions[i] * exponent for unit, exponent in self.powers) for i in range(len(NONE))]
        return tuple(sums)

    @property
    def factor(self) -> Value:
        """How many SI units one of its units is."""
        total: Value = 1
        for unit, exponent in self.powers:
            total = apply(lambda a, b: a * b, total, apply(power, unit.factor, exponent))
        return total

    @property
    def scale(self) -> Unit | None:
        """The temperature scale, if it is a point on one."""
        if len(self.powers) == 1 and self.powers[0][1] == 1 and self.powers[0][0].zero:
            return self.powers[0][0]
        return None

    def si(self) -> Value:
        """The value in SI base units."""
        scaled = apply(lambda a, b: a * b, self.value, self.factor)
        return scaled + self.scale.zero if self.scale else scaled


def unit_named(name: str) -> Quantity | None:
    """One of that unit, or None when there is no such unit."""
    unit = UNITS.get(name) or UNITS.get(name.lower())
    return None if unit is None else Quantity(1, ((unit, 1),))


def simple(value: Value, powers: Powers) -> Value:
    """A quantity, or the bare number when its units cancel."""
    kept = tuple((unit, exponent) for unit, exponent in powers if exponent)
    if not kept:
        return value
    quantity = Quantity(value, kept)
    if any(quantity.dimensions):
        return quantity
    return apply(lambda a, b: a * b, value, quantity.factor)


def convert(quantity: Value, target: Value) -> Quantity:
    """The same amount in the units of the target."""
    if not isinstance(target, Quantity):
        raise CalcError("a unit is needed after to", "For example 5 km to mile, or 100 degC to degF.")
    if not isinstance(quantity, Quantity):
        raise CalcError("the number before to has no unit", "For example 5 km to mile.")
    if quantity.dimensions != target.dimensions:
        raise CalcError(
            f"units do not match: {written(quantity.powers)} cannot be converted to {written(target.powers)}",
            "Both must measure the same thing; write fractions in brackets, for example (1/2) km to m.",
        )
    si = quantity.si()
    zero = target.scale.zero if target.scale else 0
    return Quantity(apply(divide, si - zero, target.factor), target.powers)


def add(left: Quantity, right: Quantity, sign: int) -> Quantity:
    """Sum or difference in the units of the left one."""
    if left.dimensions != right.dimensions:
        raise CalcError(
            f"units do not match: {written(left.powers)} and {written(right.powers)} cannot be added",
            "Both must measure the same thing.",
        )
    if left.scale and right.scale:
        if sign > 0:
            raise CalcError("two temperatures cannot be added", "Write a difference in K, for example 20 degC + 5 K.")
        return Quantity(apply(lambda a, b: a - b, left.si(), right.si()), ((UNITS["K"], 1),))
    if right.scale:
        raise CalcError(
            "a difference and a temperature cannot be added in this order",
            "Write the temperature first, for example 20 degC - 5 K.",
        )
    other = apply(divide, apply(lambda a, b: a * b, right.value, right.factor), left.factor)
    return Quantity(apply(lambda a, b: a + sign * b, left.value, other), left.powers)


def multiply(left: Value, right: Value, sign: int) -> Value:
    """Product (sign 1) or quotient (sign -1); units of one kind are brought together."""
    value, powers = (left.value, left.powers) if isinstance(left, Quantity) else (left, ())
    other, others = (right.value, right.powers) if isinstance(right, Quantity) else (right, ())
    _refuse_scaled_points(left, right)
    value = apply(divide if sign < 0 else (lambda a, b: a * b), value, other)
    merged = dict(powers)
    for unit, exponent in others:
        kin = next((known for known in merged if known.dimensions == unit.dimensions), unit)
        if kin is not unit:
            ratio = apply(power, apply(divide, unit.factor, kin.factor), exponent * sign)
            value = apply(lambda a, b: a * b, value, ratio)
        merged[kin] = merged.get(kin, 0) + sign * exponent
    return simple(value, tuple(merged.items()))


def _refuse_scaled_points(left: Value, right: Value) -> None:
    for mine, other in ((left, right), (right, left)):
        if isinstance(mine, Quantity) and mine.scale and not (is_number(other) and mine.value == 1):
            raise CalcError(
                "temperatures in degC or degF cannot be multiplied",
                "Convert to K first, for example (20 degC to K) * 2.",
            )


def raise_to(base: Quantity, exponent: Value) -> Value:
    """A power of a quantity."""
    if not isinstance(exponent, int | Fraction):
        raise CalcError("the exponent of a quantity with a unit must be rational", "For example (3 m)^2.")
    return simple(
        apply(power, base.value, exponent),
        tuple((unit, _exact(Fraction(was) * exponent)) for unit, was in base.powers),
    )


def _exact(value: Fraction) -> Any:
    return value.numerator if value.denominator == 1 else value


def angle(value: Value) -> Value:
    """An angle in radians as a bare number; anything else unchanged."""
    if isinstance(value, Quantity) and value.dimensions == ANGLE:
        return real(value.value) * float(value.factor)
    return value


def written(powers: Powers) -> str:
    """Units as text: km/h, kg·m/s^2."""
    up = [unit.symbol + _exponent(exponent) for unit, exponent in powers if exponent > 0]
    down = [unit.symbol + _exponent(-exponent) for unit, exponent in powers if exponent < 0]
    over = "·".join(up) or "1"
    return over if not down else f"{over}/{down[0] if len(down) == 1 else '(' + '·'.join(down) + ')'}"


def _exponent(exponent: Any) -> str:
    return "" if exponent == 1 else f"^{exponent}" if isinstance(exponent, int) else f"^({exponent})"
