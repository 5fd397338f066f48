"""Real numbers enclosed by Arb: every operation encloses all results that its arguments' values can have.

A number is a ball, a midpoint and a radius, as long as it came from narrow ones; what was made of two ends, or has an
infinite one, keeps both ends, each of them exact. See docs/proofs/rounding.md, point 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any

import flint
from flint import arb

from dpassay.core import ends
from dpassay.core.ends import PRECISION

__all__ = [
    "PI",
    "PRECISION",
    "Number",
    "atan2",
    "ceiling",
    "cos",
    "decimal",
    "dyadic",
    "erfc",
    "exact_fraction",
    "exp",
    "floor",
    "hull",
    "log",
    "more_digits",
    "nearest",
    "real",
    "sin",
    "sqrt",
]

_new = object.__new__


class Number:
    """An enclosure of a real number.

    Comparisons hold where they hold for all numbers of both enclosures; equal are enclosures with the same ends.

    >>> third = real(1) / 3
    >>> third < 0.34, third * 3 < 1, third * 3 > 1, 1 in third * 3
    (True, False, False, True)
    """

    __slots__ = ("_ball", "_high", "_low")
    _ball: Any  # None if there are only ends
    _low: Any  # None until asked for
    _high: Any

    # ── Ends ─────────────────────────────────────────────────────────────────────────────────

    def _ends(self) -> tuple[Any, Any]:
        if self._low is None:
            self._low, self._high = ends.down(self._ball), ends.up(self._ball)
        return self._low, self._high

    @property
    def a(self) -> Number:
        """The lower end."""
        return _exact(self._ends()[0])

    @property
    def b(self) -> Number:
        """The upper end."""
        return _exact(self._ends()[1])

    @property
    def delta(self) -> Number:
        """The distance between the ends."""
        low, high = self._ends()
        return _exact(ends.ZERO) if low == high else _exact(ends.up(high - low))

    @property
    def mid(self) -> Number:
        """A number in the middle, as an exact one."""
        low, high = self._ends()
        if low == high or not (low.is_finite() and high.is_finite()):
            return _exact(low if low == high else ends.ZERO if low == -high else high if low.is_finite() else low)
        return _exact(((low + high) / 2).mid())

    def man_exp(self) -> tuple[int, int]:
        """The whole numbers m and e for which an exact number is m * 2**e.

        >>> real(0.75).man_exp()
        (3, -2)
        """
        mantissa, exponent = self._ends()[0].man_exp()
        return int(mantissa), int(exponent)

    @property
    def is_exact(self) -> bool:
        """Whether both ends are the same finite number."""
        low, high = self._ends()
        return bool(low == high) and bool(low.is_finite())

    @property
    def is_finite(self) -> bool:
        """Whether both ends are finite."""
        return self._ball is not None or bool(self._low.is_finite() and self._high.is_finite())

    # ── Arithmetic ───────────────────────────────────────────────────────────────────────────

    def __add__(self, other: Any) -> Number:
        if not isinstance(other, Number):
            other = _operand(other)
            if other is NotImplemented:
                return NotImplemented
        if self._ball is not None and other._ball is not None:
            return _balled(self._ball + other._ball)
        (low, high), (least, most) = self._ends(), other._ends()
        return _ended(ends.down(low + least), ends.up(high + most))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Number:
        if not isinstance(other, Number):
            other = _operand(other)
            if other is NotImplemented:
                return NotImplemented
        if self._ball is not None and other._ball is not None:
            return _balled(self._ball - other._ball)
        (low, high), (least, most) = self._ends(), other._ends()
        return _ended(ends.down(low - most), ends.up(high - least))

    def __rsub__(self, other: Any) -> Number:
        other = _operand(other)
        return other if other is NotImplemented else other - self

    def __mul__(self, other: Any) -> Number:
        if not isinstance(other, Number):
            other = _operand(other)
            if other is NotImplemented:
                return NotImplemented
        if self._ball is not None and other._ball is not None:
            return _balled(self._ball * other._ball)
        return _ended(*ends.product(*self._ends(), *other._ends()))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Number:
        if not isinstance(other, Number):
            other = _operand(other)
            if other is NotImplemented:
                return NotImplemented
        if self._ball is not None and other._ball is not None and not other._ball.contains(0):
            return _balled(self._ball / other._ball)
        return _ended(*ends.quotient(*self._ends(), *other._ends()))

    def __rtruediv__(self, other: Any) -> Number:
        other = _operand(other)
        return other if other is NotImplemented else other / self

    def __neg__(self) -> Number:
        if self._ball is not None:
            return _balled(-self._ball)
        return _ended(-self._high, -self._low)

    def __pos__(self) -> Number:
        return self

    def __abs__(self) -> Number:
        low, high = self._ends()
        return self if low >= 0 else -self if high <= 0 else _ended(ends.ZERO, ends.largest(-low, high))

    def __pow__(self, exponent: Any) -> Number:
        if not isinstance(exponent, Number):
            exponent = _operand(exponent)
            if exponent is NotImplemented:
                return NotImplemented
        if exponent.is_exact and exponent._low.is_integer():
            return self._to(int(exponent._low.unique_fmpz()))
        if exponent.is_exact and (2 * exponent._low).is_integer():  # a half
            return sqrt(self)._to(int((2 * exponent._low).unique_fmpz()))
        return exp(exponent * log(self))

    def __rpow__(self, base: Any) -> Number:
        base = _operand(base)
        return base if base is NotImplemented else base**self

    def _to(self, power: int) -> Number:
        if power < 0:
            return real(1) / self._to(-power)
        if self._ball is not None and not self._ball.contains(0):
            found = self._ball**power
            if found.is_finite():
                return _balled(found)
        low, high = self._ends()
        if low < 0 and high > 0 and power % 2 == 0 and power:
            return _ended(
                ends.ZERO, ends.largest(ends.up(ends.whole_power(low, power)), ends.up(ends.whole_power(high, power)))
            )
        small, large = ends.whole_power(low, power), ends.whole_power(high, power)
        if high <= 0 and power % 2 == 0:
            small, large = large, small
        return _ended(ends.down(small), ends.up(large))

    # ── Comparisons ──────────────────────────────────────────────────────────────────────────

    def __lt__(self, other: Any) -> bool:
        other = other if isinstance(other, Number) else _operand(other)
        return other if other is NotImplemented else bool(self._ends()[1] < other._ends()[0])

    def __le__(self, other: Any) -> bool:
        other = other if isinstance(other, Number) else _operand(other)
        return other if other is NotImplemented else bool(self._ends()[1] <= other._ends()[0])

    def __gt__(self, other: Any) -> bool:
        other = other if isinstance(other, Number) else _operand(other)
        return other if other is NotImplemented else bool(self._ends()[0] > other._ends()[1])

    def __ge__(self, other: Any) -> bool:
        other = other if isinstance(other, Number) else _operand(other)
        return other if other is NotImplemented else bool(self._ends()[0] >= other._ends()[1])

    def __eq__(self, other: object) -> bool:
        other = other if isinstance(other, Number) else _operand(other)
        if not isinstance(other, Number):
            return NotImplemented
        return bool(self._ends()[0] == other._ends()[0] and self._ends()[1] == other._ends()[1])

    def __hash__(self) -> int:
        return hash(tuple(map(ends.portable, self._ends())))

    def __contains__(self, other: Any) -> bool:
        (low, high), (least, most) = self._ends(), real(other)._ends()
        return bool(low <= least and most <= high)

    # ── As other things ──────────────────────────────────────────────────────────────────────

    def __float__(self) -> float:
        return nearest(self.mid)

    def __int__(self) -> int:
        return int(float(self)) if not self.is_finite else int(exact_fraction(self.mid))

    def __repr__(self) -> str:
        low, high = self._ends()
        return f"[{ends.decimal(low, 30)}]" if low == high else f"[{ends.decimal(low, 30)}, {ends.decimal(high, 30)}]"

    def _mpmath_(self, precision: int, rounding: str) -> Any:
        """How mpmath reads an exact number."""
        from mpmath import mp
        from mpmath.libmp import finf, fninf, from_man_exp

        if not self.is_finite and self._low == self._high:
            return mp.make_mpf(finf if self._low > 0 else fninf)
        if not self.is_exact:
            raise TypeError(f"mpmath reads one number, this is an enclosure: {self}")
        return mp.make_mpf(from_man_exp(*self.man_exp()))

    def __reduce__(self) -> Any:
        return _from_ends, tuple(ends.portable(end) for end in self._ends())


# ── Making them ─────────────────────────────────────────────────────────────────────────────────


def real(value: Any) -> Number:
    """Enclose a number, a decimal that is written out, a fraction, or all between two ends; a float is taken as it is.

    >>> real("0.1") == 0.1, real(0.5) == 0.5, real([1, "inf"]).b
    (False, True, [inf])
    """
    if isinstance(value, Number):
        return value
    if isinstance(value, list | tuple):
        low, high = map(real, value)
        return hull(low, high)
    found = _operand(value)
    if found is NotImplemented:
        raise TypeError(f"no number: {value!r}")
    return found  # type: ignore[no-any-return]


def hull(lower: Number, upper: Number) -> Number:
    """Enclose everything from one number's lower end to another's upper end."""
    if lower is upper:
        return lower
    low, high = lower._ends()[0], upper._ends()[1]
    if low > high:
        raise ValueError("the lower end is above the upper one")
    return _ended(low, high)


def dyadic(low: int, high: int, exponent: int) -> Number:
    """Enclose everything from one whole number to another, times a power of two.

    >>> dyadic(1, 3, -1)
    [0.5, 1.5]
    """
    return _ended(arb((low, exponent)), arb((high, exponent)))


@contextmanager
def more_digits() -> Iterator[None]:
    """Compute with twice as many digits for a while.

    >>> with more_digits():
    ...     exp(1).delta < real("1e-100")
    True
    """
    with flint.ctx.workprec(2 * PRECISION):
        yield


def _operand(value: Any) -> Any:
    kind = type(value)
    if kind is int:
        return _whole(value) if -1024 <= value <= 1024 else _exact(arb(value))
    if kind is str:
        return _read(value)
    if isinstance(value, float):
        return _exact(arb(float(value)))
    if isinstance(value, Fraction):
        return _balled(arb(value.numerator) / arb(value.denominator))
    if kind is arb:
        return _balled(value) if value.is_finite() else _ended(ends.down(value), ends.up(value))
    if hasattr(value, "__index__"):
        return _exact(arb(value.__index__()))
    return NotImplemented


@cache
def _whole(value: int) -> Number:
    return _exact(arb(value))


@lru_cache(maxsize=10_000)
def _read(text: str) -> Number:
    text = text.strip()
    if not text.strip("+-").lower().startswith("inf") and not set(text) <= set("0123456789+-.eE"):
        raise ValueError(f"no number: {text[:40]!r}")
    if "inf" in text:
        return _exact(ends.MINUS if "-" in text else ends.PLUS)
    return _balled(arb(text.removeprefix("+")))


def _balled(ball: Any) -> Number:
    made = _new(Number)
    made._ball, made._low, made._high = ball, None, None
    return made


def _exact(end: Any) -> Number:
    made = _new(Number)
    made._ball = end if end.is_finite() else None
    made._low = made._high = end
    return made


def _ended(low: Any, high: Any) -> Number:
    made = _new(Number)
    made._ball = low if low == high and low.is_finite() else None
    made._low, made._high = low, high
    return made


def _from_ends(low: Any, high: Any) -> Number:
    return _ended(ends.stored(low), ends.stored(high))


# ── Functions ───────────────────────────────────────────────────────────────────────────────────


def exp(value: Any) -> Number:
    """Enclose e to a power.

    >>> 2.718281828459045 < exp(1) < 2.718281828459046
    True
    """
    value = real(value)
    if value._ball is not None:
        found = value._ball.exp()
        if found.is_finite() and found > 0:
            return _balled(found)
    low, high = value._ends()
    return _ended(ends.power_of_e(low)[0], ends.power_of_e(high)[1])


def log(value: Any) -> Number:
    """Enclose a natural logarithm; that of 0 is minus infinity."""
    value = real(value)
    if value._ball is not None and value._ball > 0:
        return _balled(value._ball.log())
    low, high = value._ends()
    if low < 0:
        raise ValueError("the logarithm of a number that may be negative")
    return _ended(ends.log(low)[0], ends.log(high)[1])


def sqrt(value: Any) -> Number:
    """Enclose a square root."""
    value = real(value)
    if value._ball is not None and value._ball > 0:
        return _balled(value._ball.sqrt())
    low, high = value._ends()
    if low < 0:
        raise ValueError("the square root of a number that may be negative")
    return _ended(ends.sqrt(low)[0], ends.sqrt(high)[1])


def erfc(value: Any) -> Number:
    """Enclose the complementary error function, of ends that are finite or not."""
    low, high = real(value)._ends()
    return _ended(ends.erfc(high)[0], ends.erfc(low)[1])


def _around(value: Any) -> Any:
    """A ball around a number with finite ends."""
    value = real(value)
    return value._ball if value._ball is not None else value._ends()[0].union(value._ends()[1])


def sin(value: Any) -> Number:
    """Enclose a sine."""
    return _balled(_around(value).sin())


def cos(value: Any) -> Number:
    """Enclose a cosine."""
    return _balled(_around(value).cos())


def atan2(first: Any, second: Any) -> Number:
    """Enclose the angle of a point, given its second coordinate first."""
    return _balled(arb.atan2(_around(first), _around(second)))


PI = _balled(arb.pi())


# ── As doubles, fractions and decimals ──────────────────────────────────────────────────────────


def exact_fraction(value: Number) -> Fraction:
    """An exact number as a fraction.

    >>> exact_fraction(real(0.75))
    Fraction(3, 4)
    """
    mantissa, exponent = value.man_exp()
    return Fraction(mantissa) * Fraction(2) ** exponent


def floor(value: Number) -> int:
    """The largest whole number that is at most the lower end."""
    return ends.floor(value._ends()[0])


def ceiling(value: Number) -> int:
    """The smallest whole number that is at least the upper end.

    >>> floor(real([1.5, 2.5])), ceiling(real([1.5, 2.5]))
    (1, 3)
    """
    return -floor(-value)


def nearest(value: Number) -> float:
    """The double nearest to the lower end, which may be infinite.

    >>> nearest(real("0.1")), nearest(real("1e400"))
    (0.1, inf)
    """
    return float(value._ends()[0])


def decimal(value: Number, digits: int) -> str:
    """The lower end to so many digits, rounded to the nearest; without a power of ten where it needs none.

    >>> decimal(real(0.1), 20), decimal(real("1e-500"), 5), decimal(real(2), 45)
    ('0.10000000000000000555', '1.0e-500', '2.0')
    """
    return ends.decimal(value._ends()[0], digits)
