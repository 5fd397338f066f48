"""An interval that contains a number, and where each of its ends comes from."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import field
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, localcontext
from numbers import Real
from typing import Any

from dpassay.core.numbers import Number, down, up
from dpassay.errors import AmbiguousError, InputError
from dpassay.values import dataclass


@dataclass(frozen=True, slots=True, repr=False)
class Interval:
    """[lower, upper], with the source of each end.

    It can be compared with numbers and other intervals if the answer is certain, and raises an error if it is not.

    >>> print(Interval(5.6568542494, 5.6568542495))
    [5.656854249, 5.656854250]
    >>> 5.65685424945 in Interval(5.6568542494, 5.6568542495)
    True
    >>> Interval(5.6, 5.7) > 2, Interval(5.6, 5.7) <= Interval(1, 2)
    (True, False)
    """

    lower: float
    upper: float
    lower_from: str = field(default="", compare=False)
    upper_from: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if not self.lower <= self.upper:
            raise InputError(f"an interval needs lower <= upper, got [{self.lower}, {self.upper}]")

    @classmethod
    def around(cls, value: Number, lower_from: str = "", upper_from: str = "") -> Interval:
        """Round a certified number outward to doubles."""
        return cls(down(value), up(value), lower_from, upper_from or lower_from)

    @property
    def width(self) -> float:
        """The distance between the ends; 0 if both are infinite."""
        return 0.0 if self.lower == self.upper else self.upper - self.lower

    def __contains__(self, value: float) -> bool:
        return self.lower <= value <= self.upper

    def __lt__(self, other: Any) -> bool:
        return self._compare(other, operator.lt, "<", "upper", "lower")

    def __le__(self, other: Any) -> bool:
        return self._compare(other, operator.le, "<=", "upper", "lower")

    def __gt__(self, other: Any) -> bool:
        return self._compare(other, operator.gt, ">", "lower", "upper")

    def __ge__(self, other: Any) -> bool:
        return self._compare(other, operator.ge, ">=", "lower", "upper")

    def _compare(self, other: Any, holds: Callable[[Any, Any], bool], sign: str, hard: str, easy: str) -> bool:
        """Compare the least and the most favorable ends: if both agree, the answer is certain."""
        if not isinstance(other, Interval | Real):
            return NotImplemented  # type: ignore[no-any-return]
        ends = other if isinstance(other, Interval) else Interval(other, other)  # type: ignore[arg-type]
        certainly = holds(getattr(self, hard), getattr(ends, easy))
        if certainly == holds(getattr(self, easy), getattr(ends, hard)):
            return certainly
        shown = ends if isinstance(other, Interval) else other
        asked = f".{hard} {sign} {getattr(ends, easy)} (certainly) or .{easy} {sign} {getattr(ends, hard)} (possibly)"
        raise AmbiguousError(f"whether {self} {sign} {shown} is not known: ask {asked}")

    def __repr__(self) -> str:
        return f"Interval({self.lower!r}, {self.upper!r})"

    def __str__(self) -> str:
        low, high = outward(self.lower, -1), outward(self.upper, 1)
        return low if low == high else f"[{low}, {high}]"


def outward(value: float, direction: int, significant: int = 10) -> str:
    """Write a number in a few digits, rounded down (direction −1) or up (+1).

    >>> outward(0.12345678912, -1), outward(0.12345678912, 1)
    ('0.1234567891', '0.1234567892')
    """
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if value == int(value) and abs(value) < 10**significant:
        return str(int(value))
    rounding = ROUND_FLOOR if direction < 0 else ROUND_CEILING
    rounded = Context(prec=significant, rounding=rounding).create_decimal(Decimal(value))
    if -6 <= rounded.adjusted() < significant + 3:
        return f"{rounded:f}"
    return f"{rounded.normalize():e}"


def nearest(value: Interval, *borders: float, significant: int = 4) -> str:
    """Write a number in a few digits, rounded to the nearest; empty if the ends of the interval are too far apart.

    It gets more digits if rounding would otherwise move it to one of the `borders`, such as a claimed value, or across.

    >>> nearest(Interval(5.656854249, 5.65685425)), nearest(Interval(53013.355, 53013.356)), nearest(Interval(4.4, 4.6))
    ('5.657', '53,013', '')
    >>> nearest(Interval(5.656854249, 5.65685425), 5.6569), nearest(Interval(5.656854249, 5.65685425), 5.657)
    ('5.65685', '5.6569')
    """
    if math.isinf(value.upper) or value.width > 1e-5 * value.upper:
        return "inf" if math.isinf(value.lower) else ""
    middle, text = value.lower + value.width / 2, ""
    for digits in range(significant, 17):
        text = grouped(middle, digits)
        rounded = float(text.replace(",", ""))
        if rounded in value or all(rounded > b if value.lower > b else rounded < b for b in borders):
            break
    return text


def bound(value: float, direction: int, *borders: float, significant: int = 4) -> str:
    """Write a bound in a few digits, rounded down (direction −1) or up (+1), but to or across none of the `borders`.

    One that is past a short number by 1e-9 at most, as rounding errors are, has ten digits: the next short one is far.

    >>> bound(0.81727, -1), bound(0.81727, 1), bound(0.81727, -1, 0.8172), bound(53013.3, 1)
    ('0.8172', '0.8173', '0.81727', '53,014')
    >>> bound(1.0000000000000002, 1), bound(1.000004, 1), bound(0.9999999999999998, 1)
    ('1.000000001', '1.001', '1')
    """
    whole = len(str(int(value))) if 0 <= value < 1e12 else 0
    for digits in range(max(significant, whole), 17):
        rounded = float(outward(value, direction, digits))
        if digits < 10 and rounded != (near := float(f"{value:.{digits}g}")) and math.isclose(near, value):
            continue
        if rounded == value or all(rounded > b if value > b else rounded < b for b in borders):
            return grouped(rounded, digits)
    return grouped(value, 17)


def grouped(value: float, significant: int = 4) -> str:
    """Write a number in a few digits, or in all that precede the decimal point, in groups of three.

    >>> grouped(11.3137085), grouped(53013.3), grouped(8.836e-5), grouped(2.5e13)
    ('11.31', '53,013', '8.836e-05', '2.5e+13')
    """
    if 1000 <= abs(value) < 1e12:
        return f"{value:,.{max(significant, len(str(int(abs(value)))))}g}"
    return f"{value:.{significant}g}"


def outward_fixed(value: float, direction: int, places: int = 1, unit: float = 1) -> str:
    """Write a number in so many decimal places, rounded down (direction −1) or up (+1); `unit` 100 gives percent.

    >>> outward_fixed(0.99962, -1, unit=100), outward_fixed(0.99962, 1, unit=100), outward_fixed(1.0, -1, unit=100)
    ('99.9', '100.0', '100.0')
    """
    rounding = ROUND_FLOOR if direction < 0 else ROUND_CEILING
    with localcontext(prec=400):
        return f"{(Decimal(value) * Decimal(unit)).quantize(Decimal(1).scaleb(-places), rounding=rounding):f}"
