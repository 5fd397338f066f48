"""Certified numbers for the verifier: its own interval arithmetic, 60 digits, ends rounded outward.

Two intervals are compared by their ends only; mpmath refuses to compare intervals that overlap. A decimal keeps its
exact value, and so do sums, products and quotients of exact values. Where a function jumps, an interval on both sides
of the jump has both values, and whoever uses it takes the worse one.
"""

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from fractions import Fraction
from functools import wraps
from typing import Any, TypeAlias, TypeVar

from mpmath.libmp import (
    from_float,
    from_rational,
    mpf_cmp,
    round_ceiling,
    round_floor,
    round_nearest,
    to_float,
    to_int,
)

from dpassay.errors import CertificateError
from dpassay.evidence.verifier.arithmetic import intervals
from dpassay.evidence.verifier.arithmetic.work import count_number, spend

Number: TypeAlias = Any  # an interval of the context below; mpmath has no types
T = TypeVar("T")

iv = intervals.iv
_MOST_BITS = 1 << 12  # of an integer
_FEW_BITS = 64

ZERO: Number = iv.mpf(0)
ONE: Number = iv.mpf(1)
INF: Number = iv.mpf("inf")
DECIMAL = re.compile(r"-?[0-9]{1,400}(\.[0-9]{1,400})?([eE][+-]?[0-9]{1,5})?")
LARGEST_EXPONENT = 1_000
_NARROW = iv.mpf("1e-40")
_BITS = 4000  # of an exact value that is kept
_LONGEST_NAME = 3000  # characters
Value: TypeAlias = tuple[Fraction, tuple[tuple[str, int], ...]]  # a fraction times powers of what has a name


def number(value: int | float | str) -> Number:
    """Enclose an integer, a double (exactly) or a decimal (or "inf")."""
    return iv.mpf(value)


class Exact(iv.mpf):  # type: ignore[misc, name-defined]
    """An interval around a number whose exact value is known: a fraction times powers of named numbers."""

    value: Value

    def __add__(self, other: Any) -> Any:
        return _sum(self, iv.convert(other), super().__add__(other), 1)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return _sum(self, iv.convert(other), super().__sub__(other), -1)

    def __rsub__(self, other: Any) -> Any:
        return _sum(iv.convert(other), self, super().__rsub__(other), -1)

    def __mul__(self, other: Any) -> Any:
        return _product(self, iv.convert(other), super().__mul__(other), 1)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return _product(self, iv.convert(other), super().__truediv__(other), -1)

    def __rtruediv__(self, other: Any) -> Any:
        return _product(iv.convert(other), self, super().__rtruediv__(other), -1)

    def __neg__(self) -> Any:
        return _with(super().__neg__(), -self.value[0], self.value[1])

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        if self.a >= 0:
            return self
        return -self if self.b <= 0 else super().__abs__()

    def __pow__(self, other: Any) -> Any:
        power, (factor, names) = exact_fraction(iv.convert(other)), self.value
        count_number(32)
        plain = super().__pow__(other)
        if power is None or power.denominator > 1 or (power <= 0 and not factor):
            return plain
        whole = int(power)
        if abs(whole) * max(factor.numerator.bit_length(), factor.denominator.bit_length()) > _BITS:
            return plain
        return _with(plain, factor**whole, tuple((name, own * whole) for name, own in names if whole))


def exact_fraction(value: Number) -> Fraction | None:
    """The fraction that an interval is known to be about."""
    if isinstance(value, Exact):
        return None if value.value[1] else value.value[0]
    low, high = value._mpi_
    sign, digits, exponent, size = low
    if low != high or (not digits and exponent) or abs(exponent) + size > _BITS:
        return None
    found: Fraction = (-1) ** sign * int(digits) * Fraction(2) ** exponent
    return found


def _value(number: Number) -> Value | None:
    if isinstance(number, Exact):
        return number.value
    found = exact_fraction(number)
    return None if found is None else (found, ())


def _with(interval: Number, factor: Fraction, names: tuple[tuple[str, int], ...] = ()) -> Number:
    """An interval with the exact value in it. A fraction has the narrowest one, and a point needs nothing else."""
    if max(factor.numerator.bit_length(), factor.denominator.bit_length()) > _BITS or len(names) > 10:
        return interval
    if not names or not factor:
        interval, names = _around(factor), ()
        if interval.a == interval.b:
            return interval
    found = object.__new__(Exact)
    found._mpi_, found.value = interval._mpi_, (factor, names)
    return found


def _count_fractions(*values: Fraction) -> None:
    """Count a sum or a product of fractions, by how many bits they have."""
    bits = sum(value.numerator.bit_length() + value.denominator.bit_length() for value in values)
    count_number(8 + (bits >> 9))


def _sum(first: Number, second: Number, interval: Number, sign: int) -> Number:
    one, other = _value(first), _value(second)
    if one is None or other is None or (one[1] != other[1] and one[0] and other[0]):
        return interval
    _count_fractions(one[0], other[0])
    return _with(interval, one[0] + sign * other[0], one[1] if one[0] else other[1])


def _product(first: Number, second: Number, interval: Number, sign: int) -> Number:
    one, other = _value(first), _value(second)
    if one is None or other is None or (sign < 0 and not other[0]):
        return interval
    _count_fractions(one[0], other[0])
    powers = dict(one[1])
    for name, power in other[1]:
        powers[name] = powers.get(name, 0) + sign * power
    return _with(interval, one[0] * other[0] ** sign, tuple(sorted((name, n) for name, n in powers.items() if n)))


def exactly(value: Fraction) -> Number:
    """A fraction."""
    _count_fractions(value)
    return _with(_around(value), value)


def _around(value: Fraction) -> Number:
    """The narrowest interval."""
    ends = (from_rational(value.numerator, value.denominator, iv.prec, way) for way in (round_floor, round_ceiling))
    return iv.make_mpf(tuple(ends))


def quotient(first: Number, second: Number) -> Number:
    """A quotient, with its exact value if both are exact."""
    return _product(first, second, first / second, -1)


def under_name(interval: Number, name: str) -> Number:
    """Some number of an interval, the same one wherever the name is used."""
    exact = isinstance(interval, Exact) or interval.a == interval.b
    return interval if exact or is_infinite(abs(interval)) else _with(interval, Fraction(1), ((name, 1),))


def exact_name(value: Number) -> str:
    """A text that is the same for equal exact values only; empty if the value is not exact, or the text is long.

    A name may contain others, and each level of quotes may double its length.
    """
    found = _value(value)
    name = "" if found is None else repr(found)
    return name if len(name) <= _LONGEST_NAME else ""


def surely_equal(first: Number, second: Number) -> bool:
    """Whether two numbers are certainly the same; equal intervals need not be about equal numbers."""
    return (found := _value(first)) is not None and found == _value(second)


def is_decimal(text: Any) -> bool:
    """Whether a text is a decimal of sane size."""
    if not isinstance(text, str) or not DECIMAL.fullmatch(text):
        return False
    return abs(int(text.lower().partition("e")[2] or 0)) <= LARGEST_EXPONENT


def is_narrow(value: Number, nothing: Number) -> bool:
    """Whether a number is known to 40 digits, or is almost exactly 0."""
    return bool((value.b - value.a) <= (_NARROW * abs(value)).b + nothing.a)


def hull(first: Number, second: Number) -> Number:
    """Everything from the lower end of the first to the upper end of the second."""
    return iv.mpf([first.a, second.b])


def is_infinite(value: Number) -> bool:
    """Whether the upper end is infinite."""
    return bool(value.b == INF)


def is_point(value: Number, point: int) -> bool:
    """Whether a number is certainly this integer."""
    return bool(value.a == point and value.b == point)


def largest(values: Iterable[Number]) -> Number:
    """Enclose the largest of some numbers, 0 if there are none."""
    found = list(values) or [ZERO]
    exact = [value for value in found if isinstance(value, Exact)]
    if exact:  # the value of one that is certainly the largest stays exact
        high = max(exact, key=lambda value: value.a)
        if all(one is high or high.a >= one.b for one in found):
            return high
    return iv.mpf([max(v.a for v in found), max(v.b for v in found)])


def smallest(values: Iterable[Number]) -> Number:
    """Enclose the smallest of some numbers."""
    found = list(values)
    exact = [value for value in found if isinstance(value, Exact)]
    if exact:
        low = min(exact, key=lambda value: value.b)
        if all(one is low or low.b <= one.a for one in found):
            return low
    return iv.mpf([min(v.a for v in found), min(v.b for v in found)])


def around(values: Iterable[Number]) -> Number:
    """The smallest interval that contains all of some intervals."""
    found = list(values)
    return iv.mpf([min(v.a for v in found), max(v.b for v in found)])


def positive_part(value: Number) -> Number:
    """Enclose max(0, value)."""
    return largest([ZERO, value])


def at_most_one(value: Number) -> Number:
    """Enclose min(1, value)."""
    return smallest([ONE, value])


def log(value: Number) -> Number:
    """ln, with ln 0 = −∞."""
    return -INF if value.b <= 0 else hull(-INF if value.a <= 0 else iv.log(iv.mpf(value.a)), iv.log(iv.mpf(value.b)))


def log_sum(first: Number, second: Number) -> Number:
    """ln(e^first + e^second)."""
    if second.b == -INF:
        return first
    if first.b == -INF:
        return second
    top, bottom = largest([first, second]), smallest([first, second])
    return top + iv.log(1 + iv.exp(bottom - top))


def middle(value: Number) -> float:
    """A double near the middle, for searches and messages."""
    if value.a == -INF or value.b == INF:
        return float(to_float(value._mpi_[0 if value.a == -INF else 1], rnd=round_nearest))
    return float(to_float(value.mid._mpi_[0], rnd=round_nearest))


def below(value: Number) -> float:
    """A double that is not above the number."""
    end = value._mpi_[0]
    near = float(to_float(end, rnd=round_nearest))
    if math.isinf(near):
        return near if value.a in (-INF, INF) else math.nextafter(near, 0.0)
    return near if mpf_cmp(from_float(near), end) <= 0 else math.nextafter(near, -math.inf)


def above(value: Number) -> float:
    """A double that is not below the number."""
    return 0.0 - below(-value)


def whole_part(value: Number) -> int:
    """The largest integer that the upper end reaches."""
    return _whole(value._mpi_[1])


def least_whole_part(value: Number) -> int:
    """The largest integer that the lower end reaches: the whole part of all numbers in between is at least this."""
    return _whole(value._mpi_[0])


def _whole(end: Any) -> int:
    """An end rounded down; an integer of very many digits is refused, before it is written out."""
    _, mantissa, exponent, bits = end
    size = exponent + bits if mantissa else 0
    if size > _MOST_BITS:
        raise CertificateError(f"an integer of more than {_MOST_BITS} bits is needed")
    if size > _FEW_BITS:
        spend(size << 14)  # powers of this order
    return int(to_int(end, round_floor))


def rounded_up(value: Number) -> int:
    """The smallest integer that no number of the interval exceeds."""
    return -least_whole_part(-value)


def show(value: Number) -> str:
    """A number for people, to 12 digits."""
    return f"{middle(value):.12g}"


_KEPT: list[dict[Any, Any]] = []


def forget() -> None:
    """Clear all cached results, so that what follows costs as much as in a fresh process."""
    for kept in _KEPT:
        kept.clear()


def cached(size: int) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Cache the latest results of a function of numbers, which are identified by their ends."""

    def decorated(function: Callable[..., T]) -> Callable[..., T]:
        kept: dict[Any, T] = {}
        _KEPT.append(kept)

        @wraps(function)
        def remembering(*arguments: Any) -> T:
            key = _key(arguments)
            if key not in kept:
                found = function(*arguments)
                if len(kept) >= size:
                    kept.pop(next(iter(kept)))
                kept[key] = found
            return kept[key]

        return remembering

    return decorated


def _key(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return tuple(_key(one) for one in value)
    if is_dataclass(value):
        return type(value), *(_key(getattr(value, field.name)) for field in fields(value))
    return (value._mpi_, value.value) if isinstance(value, Exact) else getattr(value, "_mpi_", value)
