"""Enclosures that remember which number they enclose, so that 0.3/0.3 is 1: docs/proofs/rounding.md, point 6."""

import math
from collections.abc import Hashable
from decimal import Decimal
from fractions import Fraction
from typing import Any

from flint import arb, fmpq

from dpassay.core.enclosure import PRECISION, Number, real, sqrt
from dpassay.values import dataclass

__all__ = [
    "MOST_DIGITS",
    "Known",
    "fraction_number",
    "fraction_of",
    "quotient",
    "remembered",
    "square_root",
    "written_out",
]

_LONGEST = 2000  # bits of a fraction that is remembered
MOST_DIGITS = 300  # of a decimal that is written out


@dataclass(frozen=True, slots=True)
class _Product:
    """A fraction times powers of numbers that are not fractions, such as π, each under a name."""

    factor: Any
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
        if _length(self.factor) * abs(power) > _LONGEST or (power <= 0 and not self.factor):
            return None
        return _Product(self.factor**power, tuple((name, own * power) for name, own in self.powers if power))


def _length(factor: Any) -> int:
    return int(max(factor.p.bit_length(), factor.q.bit_length()))


class Known(Number):
    """An enclosure of a number that is known exactly. Sums, products and quotients of such numbers are known too.

    What is not known exactly becomes a plain enclosure. Equal enclosures of different numbers are not equal.
    """

    __slots__ = ("product",)
    product: _Product

    def __eq__(self, other: object) -> bool:
        return type(other) is Known and self.product == other.product

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return super().__hash__()

    def __add__(self, other: Any) -> Number:
        return _added(self, other, 1)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Number:
        return _added(self, other, -1)

    def __rsub__(self, other: Any) -> Number:
        return -_added(self, other, -1)

    def __mul__(self, other: Any) -> Number:
        return _multiplied(self, other, 1)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Number:
        return _multiplied(self, other, -1)

    def __rtruediv__(self, other: Any) -> Number:
        return _multiplied(real(other), self, -1)

    def __neg__(self) -> Number:
        return _remembering(super().__neg__(), _Product(-self.product.factor, self.product.powers))

    def __abs__(self) -> Number:
        return -self if self.b <= 0 else self if self.a >= 0 else super().__abs__()

    def __pow__(self, exponent: Any) -> Number:
        power, enclosure = fraction_of(real(exponent)), super().__pow__(exponent)
        if power is None or power.denominator != 1:
            return enclosure
        return _remembering(enclosure, self.product.to(int(power)))

    def __reduce__(self) -> Any:
        factor = int(self.product.factor.p), int(self.product.factor.q)
        return _again, (super().__reduce__(), factor, self.product.powers)


def _again(enclosure: Any, factor: tuple[int, int], powers: Any) -> Number:
    make, ends = enclosure
    return _remembering(make(*ends), _Product(fmpq(*factor), powers))


def fraction_of(value: Number) -> Fraction | None:
    """The number, if the enclosure is known to be of this fraction."""
    found = _rational(value)
    return None if found is None else Fraction(int(found.p), int(found.q))


def _rational(value: Number) -> Any:
    if type(value) is Known:
        return None if value.product.powers else value.product.factor
    if not value.is_exact:
        return None
    mantissa, exponent = value.man_exp()
    if abs(exponent) + mantissa.bit_length() > _LONGEST:
        return None
    return fmpq(mantissa << exponent, 1) if exponent >= 0 else fmpq(mantissa, 1 << -exponent)


def _of(value: Number) -> _Product | None:
    if type(value) is Known:
        return value.product
    found = _rational(value)
    return None if found is None else _Product(found)


def _remembering(enclosure: Number, product: _Product | None) -> Number:
    """The enclosure, with what it is known to enclose; a fraction that has one of width 0 needs no more."""
    if product is None:
        return enclosure
    factor = product.factor
    if _length(factor) > _LONGEST or len(product.powers) > 8:
        return enclosure
    if not product.powers or not factor:
        enclosure = _around(factor)
        if enclosure.is_exact:
            return enclosure
    found = object.__new__(Known)
    found._ball, found._low, found._high, found.product = enclosure._ball, enclosure._low, enclosure._high, product
    return found


def fraction_number(factor: Fraction) -> Number:
    """Enclose a fraction, and remember it."""
    whole = fmpq(factor.numerator, factor.denominator)
    return _remembering(_around(whole), _Product(whole))


def _around(factor: Any) -> Number:
    if factor.q == 1 and factor.p.bit_length() <= PRECISION:
        return real(int(factor.p))
    return real(arb(factor))


def _added(first: Number, second: Any, sign: int) -> Number:
    second = real(second)
    one, other = _of(first), _of(second)
    if one is None or other is None or not (one.powers == other.powers or not other.factor):
        return _plain_sum(first, second, sign)
    factor = one.factor + sign * other.factor
    product = _Product(factor, one.powers if factor else ())
    if not product.powers and _length(factor) <= _LONGEST:
        return _remembering(first, product)  # which takes its enclosure from the fraction
    return _remembering(_plain_sum(first, second, sign), product)


def _plain_sum(first: Number, second: Number, sign: int) -> Number:
    return Number.__add__(first, second) if sign > 0 else Number.__sub__(first, second)


def _multiplied(first: Number, second: Any, sign: int) -> Number:
    second = real(second)
    one, other = _of(first), _of(second)
    if one is None or other is None or (sign < 0 and not other.factor):
        return _plain_product(first, second, sign)
    product = one.times(other, sign) if one.factor and other.factor else _Product(fmpq(0))
    if not product.powers and _length(product.factor) <= _LONGEST:
        return _remembering(first, product)
    return _remembering(_plain_product(first, second, sign), product)


def _plain_product(first: Number, second: Number, sign: int) -> Number:
    return Number.__mul__(first, second) if sign > 0 else Number.__truediv__(first, second)


def quotient(first: Number, second: Number) -> Number:
    """Enclose a quotient, and remember it even if neither number needed to be: 1/3.

    >>> 3 * quotient(real(1), real(3)) == 1
    True
    """
    return _multiplied(first, second, -1)


def remembered(enclosure: Number, name: str, *of: Number) -> Number:
    """An enclosure of a constant, or of a function's value: the same name, of the same numbers, is the same number.

    >>> root = remembered(sqrt(2), "sqrt", real(2))
    >>> 2 * root / root == 2, root * root == 2
    (True, False)
    """
    known = [_of(value) for value in of]
    if type(enclosure) is Known or enclosure.is_exact or None in known:
        return enclosure
    return _remembering(enclosure, _Product(fmpq(1), (((name, *known), 1),)))


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
    return sqrt(value)


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
