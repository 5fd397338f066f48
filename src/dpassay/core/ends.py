"""The ends of enclosures: exact numbers of Arb, or infinite ones, and operations on them that round outward."""

from typing import Any, TypeAlias

import flint
from flint import arb

PRECISION = 192  # bits
flint.ctx.prec = max(flint.ctx.prec, PRECISION)

_MOST_BITS = 20_000  # of the largest power of e that is not replaced by a bound
ZERO, PLUS, MINUS = arb(0), arb.pos_inf(), arb.neg_inf()
Ends: TypeAlias = tuple[Any, Any]


def down(found: Any) -> Any:
    """The lower end of a ball."""
    if found.is_exact():
        return found if not found.is_nan() else MINUS
    low = found.lower()
    return low if low.is_exact() and not low.is_nan() else MINUS


def up(found: Any) -> Any:
    """The upper end of a ball."""
    if found.is_exact():
        return found if not found.is_nan() else PLUS
    high = found.upper()
    return high if high.is_exact() and not high.is_nan() else PLUS


def largest(one: Any, other: Any) -> Any:
    """The larger of two ends."""
    return one if one >= other else other


def product(low: Any, high: Any, least: Any, most: Any) -> Ends:
    """A product of ends. An infinite end is approached, not reached: zero times it is zero, unless one factor is 0."""
    if (low == 0 == high and not (least.is_finite() and most.is_finite())) or (
        least == 0 == most and not (low.is_finite() and high.is_finite())
    ):
        return MINUS, PLUS
    return spanned([ZERO if x == 0 or y == 0 else x * y for x in (low, high) for y in (least, most)])


def quotient(low: Any, high: Any, least: Any, most: Any) -> Ends:
    """A quotient of ends. Where a divisor may come near to 0 from one side only, one end is infinite."""
    if (least < 0 < most) or (least == 0 == most) or (low == 0 == high and (least == 0 or most == 0)):
        return MINUS, PLUS
    if least != 0 != most and all(end.is_finite() for end in (low, high, least, most)):
        return spanned([x / y for x in (low, high) for y in (least, most)])
    small = MINUS if most == 0 else down(1 / most) if most.is_finite() else ZERO
    large = PLUS if least == 0 else up(1 / least) if least.is_finite() else ZERO
    return product(low, high, small, large)


def spanned(found: list[Any]) -> Ends:
    """The ends of the smallest enclosure of some balls."""
    low, high = down(found[0]), up(found[0])
    for each in found[1:]:
        below, above = down(each), up(each)
        low, high = below if below < low else low, above if above > high else high
    return low, high


def whole_power(end: Any, power: int) -> Any:
    """An exact number to a whole power of at least 0; an infinite one as itself, with its sign."""
    if end.is_finite():
        return end**power
    return arb(1) if power == 0 else MINUS if end < 0 and power % 2 else PLUS


def power_of_e(end: Any) -> Ends:
    """What is at most and at least e to an exact power, which may be huge, or infinite."""
    if not end.is_finite():
        return (ZERO, ZERO) if end < 0 else (PLUS, PLUS)
    found = end.exp()
    if not (found.is_finite() and found > 0):
        bits = int(end.man_exp()[1]) + int(end.man_exp()[0]).bit_length()
        if bits > _MOST_BITS:
            far = arb(2) ** (PRECISION // 2)
            return (ZERO, up((-far).exp())) if end < 0 else (down(far.exp()), PLUS)
        with flint.ctx.workprec(bits + PRECISION):
            found = end.exp()
    return down(found), up(found)


def log(end: Any) -> Ends:
    """What is at most and at least the logarithm of an end that is not negative."""
    if end == 0 or not end.is_finite():
        return (MINUS, MINUS) if end == 0 else (PLUS, PLUS)
    found = end.log()
    return down(found), up(found)


def sqrt(end: Any) -> Ends:
    """What is at most and at least the square root of an end that is not negative."""
    if not end.is_finite():
        return PLUS, PLUS
    found = end.sqrt()
    return down(found), up(found)


def erfc(end: Any) -> Ends:
    """What is at most and at least the complementary error function of an end."""
    if not end.is_finite():
        return (arb(2), arb(2)) if end < 0 else (ZERO, ZERO)
    found = end.erfc()
    return largest(down(found), ZERO), -largest(-up(found), arb(-2))


def portable(end: Any) -> Any:
    """An end as whole numbers or a word, to be hashed and kept."""
    return tuple(map(int, end.man_exp())) if end.is_finite() else "inf" if end > 0 else "-inf"


def stored(kept: Any) -> Any:
    """What was kept by `portable`."""
    if isinstance(kept, str):
        return PLUS if kept == "inf" else MINUS
    mantissa, exponent = kept
    with flint.ctx.workprec(max(mantissa.bit_length(), PRECISION) + 1):
        return arb(mantissa) * arb(2) ** exponent


def floor(end: Any) -> int:
    """The largest whole number that is not above a finite end."""
    mantissa, exponent = map(int, end.man_exp())
    return mantissa << exponent if exponent >= 0 else mantissa >> -exponent


def decimal(end: Any, digits: int) -> str:
    """An end to so many digits, rounded to the nearest."""
    if not end.is_finite():
        return "inf" if end > 0 else "-inf"
    mantissa, _, power = str(end.str(digits, radius=False)).partition("e")
    whole, _, rest = mantissa.partition(".")
    shown = f"{whole}.{rest.rstrip('0') or '0'}"
    return f"{shown}e{int(power)}" if power else shown
