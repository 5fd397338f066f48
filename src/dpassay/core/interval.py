"""An interval that contains a number, and where each of its ends comes from."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

from dpassay.core.numbers import Number, down, up
from dpassay.errors import InputError


@dataclass(frozen=True, slots=True)
class Interval:
    """[lower, upper], with the source of each end.

    >>> print(Interval(5.6568542494, 5.6568542495))
    [5.656854249, 5.656854250]
    >>> 5.65685424945 in Interval(5.6568542494, 5.6568542495)
    True
    """

    lower: float
    upper: float
    lower_from: str = ""
    upper_from: str = ""

    def __post_init__(self) -> None:
        if not self.lower <= self.upper:
            raise InputError(f"an interval needs lower <= upper, got [{self.lower}, {self.upper}]")

    @classmethod
    def around(cls, value: Number, lower_from: str = "", upper_from: str = "") -> Interval:
        """Round a certified number outward to doubles."""
        return cls(down(value), up(value), lower_from, upper_from or lower_from)

    @property
    def width(self) -> float:
        """How far apart the ends are; 0 if both are infinite."""
        return 0.0 if self.lower == self.upper else self.upper - self.lower

    def __contains__(self, value: float) -> bool:
        return self.lower <= value <= self.upper

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
