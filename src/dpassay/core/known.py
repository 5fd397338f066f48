"""Enclosures that remember which number they enclose, so that 0.3/0.3 is 1: docs/proofs/rounding.md, point 6."""

import math
from collections.abc import Hashable
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

from mpmath.ctx_iv import MPIntervalContext
from mpmath.libmp import from_int, from_rational, mpi_from_str, round_ceiling, round_floor

from dpassay.values import dataclass

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

_LONGEST = 2000  # bits of a fraction that is remembered
MOST_DIGITS = 300  # of a decimal that is written out


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


class Known(iv.mpf):  # type: ignore[misc, name-defined]
    """An enclosure of a number that is known exactly. Sums, products and quotients of such numbers are known too.

    What is not known exactly becomes a plain enclosure. Equal enclosures of different numbers are not equal.
    """

    product: _Product

    def __eq__(self, other: Any) -> bool:
        return type(other) is Known and self.product == other.product

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
        return _remembering(super().__neg__(), _Product(-self.product.factor, self.product.powers))

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return -self if self.b <= 0 else self if self.a >= 0 else super().__abs__()

    def __pow__(self, exponent: Any) -> Any:
        power, enclosure = fraction_of(iv.convert(exponent)), super().__pow__(exponent)
        return (
            enclosure
            if power is None or power.denominator != 1
            else _remembering(enclosure, self.product.to(int(power)))
        )


def fraction_of(value: Number) -> Fraction | None:
    """The number, if the enclosure is known to be of this fraction."""
    if type(value) is Known:
        return None if value.product.powers else value.product.factor
    (sign, mantissa, exponent, bits), high = value._mpi_
    if value._mpi_[0] != high or (not mantissa and exponent) or abs(exponent) + bits > _LONGEST:
        return None
    found: Fraction = (-1) ** sign * Fraction(int(mantissa)) * Fraction(2) ** exponent
    return found


def _of(value: Number) -> _Product | None:
    if type(value) is Known:
        return value.product
    found = fraction_of(value)
    return None if found is None else _Product(found)


def _remembering(enclosure: Number, product: _Product | None) -> Number:
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
    found = object.__new__(Known)
    found._mpi_, found.product = enclosure._mpi_, product
    return found


def fraction_number(factor: Fraction) -> Number:
    """Enclose a fraction, and remember it."""
    return _remembering(_around(factor), _Product(factor))


def _around(factor: Fraction) -> Number:
    ends = (from_rational(factor.numerator, factor.denominator, iv.prec, way) for way in (round_floor, round_ceiling))
    return iv.make_mpf(tuple(ends))


def _added(first: Number, second: Any, enclosure: Number, sign: int = 1) -> Number:
    one, other = _of(first), _of(iv.convert(second))
    if one is None or other is None or not (one.powers == other.powers or not other.factor):
        return enclosure
    factor = one.factor + sign * other.factor
    return _remembering(enclosure, _Product(factor, one.powers if factor else ()))


def _multiplied(first: Number, second: Any, enclosure: Number, sign: int = 1) -> Number:
    one, other = _of(first), _of(iv.convert(second))
    if one is None or other is None or (sign < 0 and not other.factor):
        return enclosure
    return _remembering(enclosure, one.times(other, sign) if one.factor and other.factor else _Product(Fraction(0)))


def quotient(first: Number, second: Number) -> Number:
    """Enclose a quotient, and remember it even if neither number needed to be: 1/3.

    >>> 3 * quotient(iv.mpf(1), iv.mpf(3)) == 1
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
    if type(enclosure) is Known or enclosure.delta == 0 or None in known:
        return enclosure
    return _remembering(enclosure, _Product(Fraction(1), (((name, *known), 1),)))


def square_root(value: Number) -> Number:
    """Enclose the square root; that of the square of a fraction is known.

    >>> square_root(fraction_number(Fraction("0.09"))) == fraction_number(Fraction("0.3"))
    True
    """
    square = fraction_of(value)
    ends = () if square is None or square < 0 else (square.numerator, square.denominator)
    roots = [math.isqrt(end) for end in ends]
    if ends and all(root * root == end for root, end in zip(roots, ends, strict=True)):
        return fraction_number(Fraction(*roots))
    return iv.sqrt(value)


def written_out(value: Number) -> str:
    """The decimal that a number is; empty if it is none, or too long."""
    factor, places = fraction_of(value), 0
    if factor is None:
        return ""
    rest = factor.denominator
    for prime in (2, 5):
        power = 0
        while rest % prime == 0:
            rest, power = rest // prime, power + 1
        places = max(places, power)
    whole = str(abs(factor.numerator) * 10**places // factor.denominator) if places <= MOST_DIGITS else ""
    if rest > 1 or not 0 < len(whole) <= MOST_DIGITS:
        return ""
    return str(Decimal((int(factor < 0), tuple(map(int, whole)), -places)))
