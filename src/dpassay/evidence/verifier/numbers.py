"""Certified numbers for the verifier: its own interval arithmetic, 60 digits, ends rounded outward.

Two intervals are compared by their ends only; mpmath refuses to compare intervals that overlap.
"""

import math
import re
from collections.abc import Iterable
from typing import Any, TypeAlias

from mpmath.ctx_iv import MPIntervalContext
from mpmath.libmp import from_float, mpf_cmp, round_floor, round_nearest, to_float, to_int

Number: TypeAlias = Any  # an interval of the context below; mpmath has no types

iv = MPIntervalContext()
iv.dps = 60

ZERO: Number = iv.mpf(0)
ONE: Number = iv.mpf(1)
INF: Number = iv.mpf("inf")
DECIMAL = re.compile(r"-?[0-9]{1,400}(\.[0-9]{1,400})?([eE][+-]?[0-9]{1,5})?")
LARGEST_EXPONENT = 1_000


def number(value: int | float | str) -> Number:
    """Enclose a whole number, a double (exactly) or a decimal (or "inf").

    >>> 1 in number("0.1") * 10
    True
    """
    return iv.mpf(value)


def is_decimal(text: Any) -> bool:
    """Whether a text is a decimal of sane size.

    >>> is_decimal("1e-6"), is_decimal("1e999999"), is_decimal("nan"), is_decimal(1.0)
    (True, False, False, False)
    """
    if not isinstance(text, str) or not DECIMAL.fullmatch(text):
        return False
    return abs(int(text.lower().partition("e")[2] or 0)) <= LARGEST_EXPONENT


def hull(first: Number, second: Number) -> Number:
    """Everything from the lower end of the first to the upper end of the second.

    >>> hull(ZERO, ONE).b == 1
    True
    """
    return iv.mpf([first.a, second.b])


def is_infinite(value: Number) -> bool:
    """Whether the upper end is infinite.

    >>> is_infinite(INF), is_infinite(ONE)
    (True, False)
    """
    return bool(value.b == INF)


def largest(values: Iterable[Number]) -> Number:
    """Enclose the largest of some numbers, 0 if there are none.

    >>> largest([ONE, ZERO]) == 1
    True
    """
    found = list(values) or [ZERO]
    return iv.mpf([max(v.a for v in found), max(v.b for v in found)])


def smallest(values: Iterable[Number]) -> Number:
    """Enclose the smallest of some numbers.

    >>> smallest([ONE, ZERO]) == 0
    True
    """
    found = list(values)
    return iv.mpf([min(v.a for v in found), min(v.b for v in found)])


def positive_part(value: Number) -> Number:
    """Enclose max(0, value)."""
    return largest([ZERO, value])


def at_most_one(value: Number) -> Number:
    """Enclose min(1, value)."""
    return smallest([ONE, value])


def log(value: Number) -> Number:
    """ln, with ln 0 = −∞.

    >>> log(ZERO) == -INF
    True
    """
    return -INF if value.b <= 0 else hull(-INF if value.a <= 0 else iv.log(iv.mpf(value.a)), iv.log(iv.mpf(value.b)))


def log_sum(first: Number, second: Number) -> Number:
    """ln(e^first + e^second).

    >>> bool((log_sum(ZERO, ZERO) - iv.log(2)).delta < 1e-50)
    True
    """
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
    """A double that is not above the number.

    >>> below(number("0.1")) <= 0.1
    True
    """
    end = value._mpi_[0]
    near = float(to_float(end, rnd=round_nearest))
    if math.isinf(near):
        return near if value.a in (-INF, INF) else math.nextafter(near, 0.0)
    return near if mpf_cmp(from_float(near), end) <= 0 else math.nextafter(near, -math.inf)


def above(value: Number) -> float:
    """A double that is not below the number.

    >>> above(number("0.1")) >= 0.1
    True
    """
    return 0.0 - below(-value)


def whole_part(value: Number) -> int:
    """The largest whole number that the upper end reaches.

    >>> whole_part(number("2.7")), whole_part(number("-0.5"))
    (2, -1)
    """
    return int(to_int(value._mpi_[1], round_floor))


def show(value: Number) -> str:
    """A number for people, to 12 digits."""
    return f"{middle(value):.12g}"
