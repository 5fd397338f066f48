"""The numbers of a pipeline's text: how they are read, and what may be done with them, enclosed to 50 digits."""

from __future__ import annotations

import operator
import re
from typing import Any

from dpassay.core.guarantee import make_guarantee
from dpassay.core.normal import gaussian_sigma
from dpassay.core.numbers import INFINITY, Number, iv, middle, number
from dpassay.errors import InputError
from dpassay.pipeline.regions import check_positive
from dpassay.pipeline.stages.base import written

MAX_DIGITS, MAX_EXPONENT = 1000, 10_000  # of one number as it is written
MAX_LOG, MAX_WHOLE = 10**7, 2**53  # of what exp and ^ put out; of whole numbers and exponents
NUMBER = r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"


def read_number(value: Any) -> Number:
    """Read a number: a literal of the text, or what was given for a name."""
    if isinstance(value, str):
        value, shown = value.strip(), value if len(value) <= 40 else value[:37] + "..."
        if not re.fullmatch(f"[+-]?{NUMBER}", value):
            raise InputError(f"expected a number such as 2, 0.5 or 1e-6, got {shown!r}")
        if len(value) > MAX_DIGITS:
            raise InputError(f"the number {shown} is {len(value)} characters long; at most {MAX_DIGITS} are read")
        if abs(int(value.lower().partition("e")[2] or 0)) > MAX_EXPONENT:
            raise InputError(f"the exponent of {shown} is too large: the limit is {MAX_EXPONENT}, up and down")
    if value != value:
        raise InputError("expected a number, got NaN")
    enclosed = number(value)
    if not (enclosed.a > -INFINITY and enclosed.b < INFINITY):
        raise InputError(f"expected a finite number, got {written(enclosed)}")
    return enclosed


def whole_number(value: Number) -> int | None:
    """Find the one whole number in a very narrow enclosure."""
    if not (abs(value).b <= MAX_WHOLE and value.delta < iv.mpf("1e-20")):
        return None
    nearest = round(middle(value))
    return nearest if nearest in value else None


# The ends of an enclosure are compared, never the whole: "cannot tell" must count as "not certain".
def _divide(first: Number, second: Number) -> Number:
    if 0 in second:
        raise InputError("division by zero" if second == 0 else "division by a number that may be zero")
    return first / second


def _power(base: Number, exponent: Number) -> Number:
    size = abs(base).b if 0 in base else abs(base)
    if not abs(exponent).b <= MAX_WHOLE or (size != 0 and not abs(exponent * iv.log(size)).b <= MAX_LOG):
        raise InputError(f"too large: the result's natural logarithm may be at most {MAX_LOG} in size")
    if base.a < 0 and (exponent.delta != 0 or whole_number(exponent) is None):
        raise InputError("a base that may be negative needs a whole exponent")
    if 0 in base and exponent != 0 and not exponent.a > 0:
        raise InputError("a base that may be zero needs an exponent that is surely positive")
    return base**exponent


def apply(name: str, *values: Number) -> Number:
    """Call a function of the text by its name.

    >>> round(float(apply("least_sigma", number(10), number("1e-5"), number(1)).mid), 5)
    0.49989
    """
    value = values[0]
    if name == "least_sigma":
        if len(values) != 3:
            raise InputError(f"least_sigma takes epsilon, delta and the l2 distance, got {len(values)} numbers")
        return gaussian_sigma(make_guarantee(*values[:2]), check_positive(values[2], "l2 distance"))
    if len(values) != 1:
        raise InputError(f"{name} takes one number, got {len(values)}")
    if name == "exp" and not abs(value).b <= MAX_LOG:
        raise InputError(f"too large: exp takes numbers of at most {MAX_LOG} in size")
    if name != "exp" and not (value.a > 0 or (name == "sqrt" and value.a == 0)):
        allowed = "0 or more" if name == "sqrt" else "positive"
        raise InputError(f"{name} needs a number that is surely {allowed}, got {written(value)}")
    return FUNCTIONS[name](value)


FUNCTIONS: dict[str, Any] = {"exp": iv.exp, "ln": iv.log, "sqrt": iv.sqrt, "least_sigma": gaussian_sigma}
OPERATIONS: dict[str, Any] = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": _divide, "^": _power}
