"""Certified real numbers: intervals of 50 digits whose ends are rounded outward.

`number` reads what a person wrote (a float is read as the decimal it prints as), mpmath's interval
arithmetic carries it, `down` and `up` give the double below and above. A decimal remembers which number it is, and so
do sums, products and quotients: 0.3/0.3 is 1, not an interval around it. See docs/proofs/rounding.md.
"""

import math
import re
from collections.abc import Hashable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

from mpmath.ctx_iv import MPIntervalContext
from mpmath.libmp import (
    from_float,
    from_int,
    from_rational,
    mpf_cmp,
    mpi_from_str,
    round_ceiling,
    round_floor,
    round_nearest,
    to_float,
    to_str,
)

from dpassay.errors import InputError

Number: TypeAlias = Any  # an ivmpf of the context below; mpmath has no types

_read = lru_cache(maxsize=10_000)(mpi_from_str)


class _Intervals(MPIntervalContext):  # type: ignore[misc]
    """mpmath's intervals, with a shortcut for the most frequent conversions: integers and repeated decimals."""

    def convert(self, x: Any) -> Any:
        """Enclose a value; an integer within the working precision is exact."""
        kind = type(x)
        if kind is self.mpf:
            return x
        if kind is int and x.bit_length() <= self.prec:
            end = from_int(x)
            return self.make_mpf((end, end))
        if kind is str:
            return self.make_mpf(_read(x, self.prec))
        return super().convert(x)


iv = _Intervals()
iv.dps = 50

ZERO: Number = iv.mpf(0)
ONE: Number = iv.mpf(1)
INFINITY: Number = iv.mpf("inf")
_DECIMAL = re.compile(r"[+-]?(\d{1,1000}(\.\d{0,1000})?|\.\d{1,1000})([eE][+-]?\d{1,5})?|[+-]?inf")
# A bound that exceeds a claim relatively by less than this meets it. Only for that comparison: which side of a jump a
# number lies on is never decided with a tolerance.
TIE: Number = iv.mpf("1e-30")
_LONGEST = 2000  # bits of a fraction that is remembered
_MOST_DIGITS = 300  # of a decimal that is written out


def number(value: Any) -> Number:
    """Enclose a number given as text, int, float, fraction or enclosure.

    >>> 1 in number("0.1") * 10, 0.3 in number("0.3"), number(0.3).delta < 1e-49
    (True, False, True)
    """
    if isinstance(value, iv.mpf):
        return value
    if isinstance(value, Fraction):
        return _product(value)
    if getattr(value, "size", 0) == 1:
        value = value.item()  # a numpy scalar
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise InputError(f"expected a number, got {value!r}")
    if isinstance(value, int):
        return iv.mpf(value)
    text = repr(value) if isinstance(value, float) else value.strip()
    if not _DECIMAL.fullmatch(text):
        raise InputError(f"expected a number, got {text[:40]!r}")
    enclosed = iv.mpf(text)
    return enclosed if enclosed.delta == 0 or len(text) > _MOST_DIGITS or "inf" in text else _decimal(text)


@dataclass(frozen=True, slots=True)
class _Product:
    """A fraction times powers of numbers that are not fractions, such as π, each under a name."""

    factor: Fraction
    powers: tuple[tuple[Hashable, int], ...] = ()

    def times(self, other: "_Product", sign: int = 1) -> "_Product":
        """The product, or with sign −1 the quotient."""
        powers = dict(self.powers)
        for name, power in other.powers:
            powers[name] = powers.get(name, 0) + sign * power
        kept = tuple(sorted(((name, power) for name, power in powers.items() if power), key=repr))
        return _Product(self.factor * other.factor**sign, kept)

    def to(self, power: int) -> "_Product | None":
        """A power, unless it is too long."""
        factor, size = self.factor, max(self.factor.numerator.bit_length(), self.factor.denominator.bit_length())
        if size * abs(power) > _LONGEST or (power <= 0 and not factor):
            return None
        return _Product(factor**power, tuple((name, own * power) for name, own in self.powers if power))


class _Known(iv.mpf):  # type: ignore[misc]
    """An enclosure of a number that is known exactly. Sums, products and quotients of such numbers are known too.

    What is not known exactly becomes a plain enclosure. Equal enclosures of different numbers are not equal.
    """

    product: _Product

    def __eq__(self, other: Any) -> bool:
        return type(other) is _Known and self.product == other.product

    def __ne__(self, other: Any) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self._mpi_)

    def __add__(self, other: Any) -> Any:
        return _added(self, other, super().__add__(other))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return _added(self, other, super().__sub__(other), -1)

    def __rsub__(self, other: Any) -> Any:
        return -(self - other)

    def __mul__(self, other: Any) -> Any:
        return _multiplied(self, other, super().__mul__(other))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return _multiplied(self, other, super().__truediv__(other), -1)

    def __rtruediv__(self, other: Any) -> Any:
        return _multiplied(iv.convert(other), self, super().__rtruediv__(other), -1)

    def __neg__(self) -> Any:
        return _enclosed(super().__neg__(), _Product(-self.product.factor, self.product.powers))

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return -self if self.b <= 0 else self if self.a >= 0 else super().__abs__()

    def __pow__(self, exponent: Any) -> Any:
        power, enclosure = _fraction(iv.convert(exponent)), super().__pow__(exponent)
        return (
            enclosure if power is None or power.denominator != 1 else _enclosed(enclosure, self.product.to(int(power)))
        )


def _fraction(value: Number) -> Fraction | None:
    """The number, if the enclosure is known to be of this fraction."""
    if type(value) is _Known:
        return None if value.product.powers else value.product.factor
    (sign, mantissa, exponent, bits), high = value._mpi_
    if value._mpi_[0] != high or (not mantissa and exponent) or abs(exponent) + bits > _LONGEST:
        return None
    return (-1) ** sign * Fraction(int(mantissa)) * Fraction(2) ** exponent


def _of(value: Number) -> _Product | None:
    if type(value) is _Known:
        return value.product
    found = _fraction(value)
    return None if found is None else _Product(found)


def _enclosed(enclosure: Number, product: _Product | None) -> Number:
    """The enclosure, with what it is known to enclose; a fraction that has one of width 0 needs no more."""
    if product is None:
        return enclosure
    factor = product.factor
    if max(factor.numerator.bit_length(), factor.denominator.bit_length()) > _LONGEST or len(product.powers) > 8:
        return enclosure
    if not product.powers or not factor:
        enclosure = _around(factor)
        if enclosure.delta == 0:
            return enclosure
    found = object.__new__(_Known)
    found._mpi_, found.product = enclosure._mpi_, product
    return found


def _product(factor: Fraction) -> Number:
    return _enclosed(_around(factor), _Product(factor))


def _around(factor: Fraction) -> Number:
    ends = (from_rational(factor.numerator, factor.denominator, iv.prec, way) for way in (round_floor, round_ceiling))
    return iv.make_mpf(tuple(ends))


@lru_cache(maxsize=10_000)
def _decimal(text: str) -> Number:
    factor = Fraction(text) if abs(int(text.lower().partition("e")[2] or 0)) <= _MOST_DIGITS else None
    return _enclosed(iv.mpf(text), None if factor is None else _Product(factor))


def _added(first: Number, second: Any, enclosure: Number, sign: int = 1) -> Number:
    one, other = _of(first), _of(iv.convert(second))
    if one is None or other is None or not (one.powers == other.powers or not other.factor):
        return enclosure
    factor = one.factor + sign * other.factor
    return _enclosed(enclosure, _Product(factor, one.powers if factor else ()))


def _multiplied(first: Number, second: Any, enclosure: Number, sign: int = 1) -> Number:
    one, other = _of(first), _of(iv.convert(second))
    if one is None or other is None or (sign < 0 and not other.factor):
        return enclosure
    return _enclosed(enclosure, one.times(other, sign) if one.factor and other.factor else _Product(Fraction(0)))


def quotient(first: Number, second: Number) -> Number:
    """Enclose a quotient, and remember it even if neither number needed to be: 1/3.

    >>> 3 * quotient(ONE, number(3)) == 1
    True
    """
    return _multiplied(first, second, first / second, -1)


def remembered(enclosure: Number, name: str, *of: Number) -> Number:
    """An enclosure of a constant, or of a function's value: the same name, of the same numbers, is the same number.

    >>> root = remembered(iv.sqrt(iv.mpf(2)), "sqrt", iv.mpf(2))
    >>> 2 * root / root == 2, root * root == 2
    (True, False)
    """
    known = [_of(value) for value in of]
    if enclosure.delta == 0 or None in known:
        return enclosure
    return _enclosed(enclosure, _Product(Fraction(1), (((name, *known), 1),)))


def square_root(value: Number) -> Number:
    """Enclose the square root; that of the square of a fraction is known.

    >>> square_root(number("0.09")) == number("0.3")
    True
    """
    square = _fraction(value)
    ends = () if square is None or square < 0 else (square.numerator, square.denominator)
    roots = [math.isqrt(end) for end in ends]
    if ends and all(root * root == end for root, end in zip(roots, ends, strict=True)):
        return number(Fraction(*roots))
    return iv.sqrt(value)


def _written_out(value: Number) -> str:
    """The decimal that a number is; empty if it is none, or too long."""
    factor, places = _fraction(value), 0
    if factor is None:
        return ""
    rest = factor.denominator
    for prime in (2, 5):
        power = 0
        while rest % prime == 0:
            rest, power = rest // prime, power + 1
        places = max(places, power)
    whole = str(abs(factor.numerator) * 10**places // factor.denominator) if places <= _MOST_DIGITS else ""
    if rest > 1 or not 0 < len(whole) <= _MOST_DIGITS:
        return ""
    return str(Decimal((int(factor < 0), tuple(map(int, whole)), -places)))


def exactly(value: float) -> Number:
    """A double as its exact binary value; `number` reads it as the decimal that it prints as.

    >>> exactly(0.1) == number(0.1), exactly(0.5) == number(0.5)
    (False, True)
    """
    return iv.mpf(value)


def between(lower: Number, upper: Number) -> Number:
    """Enclose everything from one number's lower end to another's upper end.

    >>> between(ZERO, ONE).delta == 1
    True
    """
    return iv.mpf([lower.a, upper.b])


def maximum(*values: Number) -> Number:
    """Enclose the largest of some numbers."""
    for value in values:  # one that is remembered stays so if it is certainly the largest
        if type(value) is _Known and all(other is value or value.a >= other.b for other in values):
            return value
    return iv.mpf([max(v.a for v in values), max(v.b for v in values)])


def minimum(*values: Number) -> Number:
    """Enclose the smallest of some numbers."""
    for value in values:
        if type(value) is _Known and all(other is value or value.b <= other.a for other in values):
            return value
    return iv.mpf([min(v.a for v in values), min(v.b for v in values)])


def down(value: Number) -> float:
    """Give the largest double that is not above the number.

    >>> down(number("0.1")) <= 0.1
    True
    """
    exact = value._mpi_[0]
    near = float(to_float(exact, rnd=round_nearest))
    if math.isinf(near):
        return near if near < 0 or value == INFINITY else math.nextafter(near, 0)
    return near if mpf_cmp(from_float(near), exact) <= 0 else math.nextafter(near, -math.inf)


def up(value: Number) -> float:
    """Give the smallest double that is not below the number.

    >>> up(number("0.1")) >= 0.1
    True
    """
    return 0.0 - down(-value)


def double_above(value: Number) -> float:
    """Give a double that is not below the number, whether it is read in binary or as the decimal it prints as."""
    double = up(value)
    return double if number(double).a >= value.b else math.nextafter(double, math.inf)


def double_below(value: Number) -> float:
    """Give a double that is not above the number, whether it is read in binary or as the decimal it prints as."""
    double = down(value)
    return double if number(double).b <= value.a else math.nextafter(double, -math.inf)


def middle(value: Number) -> float:
    """Give a double near the number's middle, for display and for running mechanisms."""
    return float(to_float(value.mid._mpi_[0], rnd=round_nearest))


def as_written(value: Number) -> str:
    """Write a number in the fewest digits that give it back, as a person wrote it; else as the double nearest to it.

    >>> as_written(number("1.00000000004")), as_written(number("1.00000000000000000004")), as_written(number("1e-6"))
    ('1.00000000004', '1.00000000000000000004', '1e-06')
    """
    nearest = repr(middle(value)).removesuffix(".0")
    for text in (nearest, *(str(to_str(value.mid._mpi_[0], count)) for count in range(17, 46))):
        read = iv.mpf(text)
        if read.a <= value.b and value.a <= read.b:
            return text
    return nearest


def digits(value: Number) -> tuple[str, str]:
    """Write both ends in 45 digits, rounded outward, so that another program can read them; a decimal as it is.

    >>> digits(number(2))[0].startswith("2.0"), digits(number("0.3"))
    (True, ('0.3', '0.3'))
    """
    if value == INFINITY:
        return "inf", "inf"
    if type(value) is _Known and (text := _written_out(value)):
        return text, text
    return _outward(value._mpi_[0], -1), _outward(value._mpi_[1], 1)


def _outward(end: Any, direction: int) -> str:
    if end == INFINITY._mpi_[1]:
        return "inf"
    text: str = to_str(end, 45)
    while True:
        read = iv.mpf(text)._mpi_[0 if direction > 0 else 1]
        if direction * mpf_cmp(read, end) >= 0:
            return text
        nudged = iv.mpf(text) * (1 + direction * (1 if text[0] != "-" else -1) * iv.mpf("1e-44"))
        text = to_str(nudged._mpi_[0 if direction < 0 else 1], 45)


def log_add(first: Number, second: Number) -> Number:
    """Enclose ln(e^first + e^second) without overflow.

    >>> up(log_add(number(10**6), number(10**6)) - 10**6)
    0.693147180559945...
    """
    large, small = maximum(first, second), minimum(first, second)
    return large + iv.log(1 + iv.exp(small - large))
