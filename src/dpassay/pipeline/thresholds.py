"""Which thresholds of a coordinate are visible in an output: what post-processing leaves of noise.

See docs/proofs/post-processing.md, point 5.
"""

import math
from fractions import Fraction

from dpassay.core.numbers import INFINITY, ZERO, Number, down, maximum, minimum, number, up
from dpassay.values import dataclass


@dataclass(frozen=True)
class Thresholds:
    """The numbers c for which an output shows whether a coordinate lay below or above c.

    All from `low` to `high` if `whole`; otherwise `low` and `high` are two of them (or the same), or if they are
    infinite there are such numbers arbitrarily far out: the numbers halfway between integers.

    >>> Thresholds().within(number(0), number(10)).whole, Thresholds(whole=False).within(number(0), number(3)).high
    (True, [2.5])
    """

    low: Number = -INFINITY
    high: Number = INFINITY
    whole: bool = True

    @property
    def unlimited(self) -> bool:
        """Whether they reach arbitrarily far out on both sides."""
        return bool(self.low == -INFINITY and self.high == INFINITY)

    @property
    def everything(self) -> bool:
        """Whether nothing is lost."""
        return self.whole and self.unlimited

    @property
    def tells_signs(self) -> bool:
        """Whether 0 is one of them."""
        if self.whole:
            return bool(self.low.b <= 0 <= self.high.a)
        return any(end == 0 and end.delta == 0 for end in (self.low, self.high))

    def nearest(self, value: Number) -> Number:
        """One of them, the nearest to a number if that is easy to find."""
        if self.whole:
            return maximum(self.low, minimum(self.high, value))
        if self.unlimited:
            return number(math.floor(down(value)) + Fraction(1, 2)) if abs(value).b < 2**50 else number("0.5")
        finite = [end for end in (self.low, self.high) if abs(end).b < INFINITY]
        return min(finite, key=lambda end: abs(end - value).mid)

    def within(self, low: Number, high: Number) -> "Thresholds | None":
        """Those between two limits; None if they are not known."""
        if self.whole:
            ends = maximum(self.low, low), minimum(self.high, high)
            return Thresholds(*ends) if ends[0].b < ends[1].a else None
        if self.unlimited:  # strictly inside: a value on a limit itself may be rounded either way
            first = ZERO - INFINITY if low == -INFINITY else number(_floor(low) + Fraction(1, 2))
            last = INFINITY if high == INFINITY else number(_ceiling(high) - Fraction(1, 2))
            return Thresholds(first, last, whole=False) if first.b <= last.a else None
        return self._of([end for end in (self.low, self.high) if low.b < end.a and end.b < high.a])

    def rounded(self) -> "Thresholds | None":
        """Those that are still visible if these are the thresholds after rounding to integers."""
        if self.unlimited:
            return Thresholds(whole=False)
        if self.whole:
            low = self.low if self.low == -INFINITY else number(math.floor(Fraction(up(self.low))) + Fraction(1, 2))
            high = self.high if self.high == INFINITY else number(math.ceil(Fraction(down(self.high))) - Fraction(1, 2))
            return Thresholds(low, high, whole=False) if low.b <= high.a else None
        ends = [number(_between_wholes(end)) for end in (self.low, self.high) if _between_wholes(end) is not None]
        return self._of(ends)

    @staticmethod
    def _of(members: list[Number]) -> "Thresholds | None":
        return Thresholds(members[0], members[-1], whole=False) if members else None


SIGNS = Thresholds(ZERO, ZERO, whole=False)


def _floor(limit: Number) -> int:
    """The integer k of the smallest k + 1/2 above a limit."""
    return math.floor(Fraction(up(limit)) + Fraction(1, 2))


def _ceiling(limit: Number) -> int:
    """The integer k of the largest k − 1/2 below a limit."""
    return math.ceil(Fraction(down(limit)) - Fraction(1, 2))


def _between_wholes(value: Number) -> Fraction | None:
    """The threshold before rounding that decides whether the rounded number lies above a non-integer value."""
    if abs(value).b == INFINITY:
        return None
    above = math.ceil(Fraction(up(value)))
    return Fraction(above) - Fraction(1, 2) if above - 1 < Fraction(down(value)) and up(value) < above else None
