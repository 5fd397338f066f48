"""Certified real numbers: intervals of 57 digits whose ends are rounded outward.

`number` reads what a person wrote (a float is read as the decimal it prints as), Arb's ball
arithmetic carries it, `down` and `up` give the double below and above. A decimal remembers which number it is, and so
do sums, products and quotients: 0.3/0.3 is 1, not an interval around it. See docs/proofs/rounding.md.
"""

import math
import re
from fractions import Fraction
from functools import lru_cache
from typing import Any

from dpassay.core.enclosure import (
    PI,
    Number,
    atan2,
    ceiling,
    cos,
    decimal,
    exp,
    floor,
    hull,
    log,
    nearest,
    real,
    sin,
    sqrt,
)
from dpassay.core.known import MOST_DIGITS, Known, fraction_number, written_out
from dpassay.errors import InputError

__all__ = [
    "INFINITY",
    "ONE",
    "PI",
    "TIE",
    "ZERO",
    "Number",
    "as_written",
    "atan2",
    "between",
    "ceiling",
    "cos",
    "digits",
    "double_above",
    "double_below",
    "down",
    "exactly",
    "exp",
    "floor",
    "log",
    "log_add",
    "maximum",
    "middle",
    "minimum",
    "number",
    "real",
    "sin",
    "sqrt",
    "up",
]

ZERO, ONE, INFINITY = real(0), real(1), real("inf")
_DECIMAL = re.compile(r"[+-]?(\d{1,1000}(\.\d{0,1000})?|\.\d{1,1000})([eE][+-]?\d{1,5})?|[+-]?inf")
# A bound that exceeds a claim relatively by less than this meets it. Only for that comparison: which side of a jump a
# number lies on is never decided with a tolerance.
TIE = real("1e-30")


def number(value: Any) -> Number:
    """Enclose a number given as text, int, float, fraction or enclosure.

    >>> 1 in number("0.1") * 10, 0.3 in number("0.3"), number(0.3).delta < 1e-49
    (True, False, True)
    """
    if isinstance(value, Number):
        return value
    if isinstance(value, Fraction):
        return fraction_number(value)
    if getattr(value, "size", 0) == 1:
        value = value.item()  # a numpy scalar
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise InputError(f"expected a number, got {value!r}")
    if isinstance(value, int):
        return real(value)
    text = repr(value) if isinstance(value, float) else value.strip()
    if not _DECIMAL.fullmatch(text):
        raise InputError(f"expected a number, got {text[:40]!r}")
    enclosed = real(text)
    return enclosed if enclosed.delta == 0 or len(text) > MOST_DIGITS or "inf" in text else _decimal(text)


@lru_cache(maxsize=10_000)
def _decimal(text: str) -> Number:
    small = abs(int(text.lower().partition("e")[2] or 0)) <= MOST_DIGITS
    return fraction_number(Fraction(text)) if small else real(text)


def exactly(value: float) -> Number:
    """A double as its exact binary value; `number` reads it as the decimal that it prints as.

    >>> exactly(0.1) == number(0.1), exactly(0.5) == number(0.5)
    (False, True)
    """
    return real(float(value))


def between(lower: Number, upper: Number) -> Number:
    """Enclose everything from one number's lower end to another's upper end.

    >>> between(ZERO, ONE).delta == 1
    True
    """
    return hull(lower, upper)


def maximum(*values: Number) -> Number:
    """Enclose the largest of some numbers."""
    for value in values:  # one that is remembered stays so if it is certainly the largest
        if type(value) is Known and all(other is value or value.a >= other.b for other in values):
            return value
    return hull(max(v.a for v in values), max(v.b for v in values))


def minimum(*values: Number) -> Number:
    """Enclose the smallest of some numbers."""
    for value in values:
        if type(value) is Known and all(other is value or value.b <= other.a for other in values):
            return value
    return hull(min(v.a for v in values), min(v.b for v in values))


def down(value: Number) -> float:
    """Give the largest double that is not above the number.

    >>> down(number("0.1")) <= 0.1
    True
    """
    lower = value.a
    near = nearest(lower)
    if math.isinf(near):
        return near if near < 0 or value == INFINITY else math.nextafter(near, 0)
    return near if real(near) <= lower else math.nextafter(near, -math.inf)


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
    return nearest(value.mid)


def as_written(value: Number) -> str:
    """Write a number in the fewest digits that give it back, as a person wrote it; else as the double nearest to it.

    >>> as_written(number("1.00000000004")), as_written(number("1.00000000000000000004")), as_written(number("1e-6"))
    ('1.00000000004', '1.00000000000000000004', '1e-06')
    """
    double = repr(middle(value)).removesuffix(".0")
    for text in (double, *(decimal(value.mid, count) for count in range(17, 46))):
        read = real(text)
        if read.a <= value.b and value.a <= read.b:
            return text
    return double


def digits(value: Number) -> tuple[str, str]:
    """Write both ends in 45 digits, rounded outward, so that another program can read them; a decimal as it is.

    >>> digits(number(2))[0].startswith("2.0"), digits(number("0.3"))
    (True, ('0.3', '0.3'))
    """
    if value == INFINITY:
        return "inf", "inf"
    if type(value) is Known and (text := written_out(value)):
        return text, text
    return _outward(value.a, -1), _outward(value.b, 1)


def _outward(end: Number, direction: int) -> str:
    if not end.is_finite:
        return decimal(end, 1)
    text = decimal(end, 45)
    while True:
        read = real(text)
        if read.b <= end if direction < 0 else read.a >= end:
            return text
        text = decimal(read + direction * abs(read) * real("1e-44"), 45)


def log_without(chance: Number) -> Number:
    """Enclose ln(1 − chance), also of a chance so small that 1 − chance has too few digits.

    >>> middle(log_without(number("1e-100")))
    -1e-100
    """
    if not (chance.a >= 0 and chance.b < real("1e-20")):
        return log(1 - chance)
    return -chance * (1 + chance / 2 + real([0, 1]) * chance**2)  # c + c²/2 + c³/3 + …, the rest at most c³


def missing(loss: Number) -> Number:
    """Enclose 1 − e^−loss for a loss of at least 0, also for one so small that e^−loss has too few digits.

    >>> middle(missing(number("1e-100")))
    1e-100
    """
    loss = maximum(ZERO, loss)
    if loss.b > real("1e-20"):
        return 1 - exp(-loss)
    return loss * (1 - loss / 2 + real([0, 1]) * loss**2)  # x − x²/2 + x³/6 − …


def log_add(first: Number, second: Number) -> Number:
    """Enclose ln(e^first + e^second) without overflow.

    >>> up(log_add(number(10**6), number(10**6)) - 10**6)
    0.693147180559945...
    """
    large, small = maximum(first, second), minimum(first, second)
    return large + log(1 + exp(small - large))
