"""The normal tail, certified from both sides: a series of positive terms for small z, a continued fraction for large.

P(Z > z) = ½ − φ(z)·Σ z^(2k+1)/(1·3·…·(2k+1)); and P(Z > z) = φ(z)·1/(z + 1/(z + 2/(z + 3/(z + …)))), whose
convergents lie alternately above and below the value.
"""

import math

from mpmath.libmp import from_man_exp, round_ceiling, round_floor, to_fixed

from dpassay.evidence.verifier.arithmetic.numbers import INF, ONE, ZERO, Number, around, hull, iv, middle
from dpassay.evidence.verifier.arithmetic.work import count_number

_SERIES_BELOW = 6
_HALF = iv.mpf("0.5")
_BITS = 260
_FARTHEST = iv.mpf(2**64)


def tail(z: Number) -> Number:
    """P(Z > z) for a standard normal Z."""
    return _tail_at(z) if z.a == z.b else hull(_tail_at(iv.mpf(z.b)), _tail_at(iv.mpf(z.a)))


def _density(z: Number) -> Number:
    return iv.exp(-z * z / 2) / iv.sqrt(2 * iv.pi)


def _tail_at(z: Number) -> Number:
    if z.a < 0:
        return 1 - _tail_at(-z)
    if z.b == INF:
        return ZERO
    count_number(64 if z.b < _SERIES_BELOW else 128)
    if z.a > _FARTHEST:  # φ(z)(1/z − 1/z³) < P(Z > z) < φ(z)/z, without the digits of z before the point
        return _density(z) * hull((1 - 1 / z**2) / z, 1 / z)
    return _HALF - _density(z) * _series(z) if z.b < _SERIES_BELOW else _density(z) * mills(z)


def _series(z: Number) -> Number:
    """Σ z^(2k+1)/(2k+1)!!; once a term's ratio is below ½ the rest is at most the last term."""
    low, high = _fixed(z)
    square_low, square_high = low * low >> _BITS, -(-high * high >> _BITS)
    total_low = total_high = k = 0
    while True:
        total_low, total_high, k = total_low + low, total_high + high, k + 1
        divisor = (2 * k + 1) << _BITS
        low, high = low * square_low // divisor, -(-high * square_high // divisor)
        if 2 * square_high < divisor and high <= 1:
            return _interval(total_low, total_high + 2 * high)


def mills(z: Number) -> Number:
    """(1 − Φ(z))/φ(z) for z > 0, between two neighboring convergents."""
    enough = 40 + math.ceil(6000 / middle(z) / middle(z))  # for 50 digits; the bounds hold for any number of terms
    low, high = _fixed(z)
    ends = []
    for terms in (enough, enough + 1):
        least, most = low, high
        for k in range(terms, 0, -1):
            over = k << 2 * _BITS
            least, most = low + over // most, high - (-over // least)
        ends.append(ONE / _interval(least, most))
    return around(ends)


def _fixed(z: Number) -> tuple[int, int]:
    """A number z ≥ 0 in multiples of 2^−_BITS, from below and from above: hundreds of terms are then integers,
    each rounded down in one sum and up in the other."""
    low, high = z._mpi_
    return to_fixed(low, _BITS), to_fixed(high, _BITS) + 1


def _interval(low: int, high: int) -> Number:
    ends = from_man_exp(low, -_BITS, iv.prec, round_floor), from_man_exp(high, -_BITS, iv.prec, round_ceiling)
    return iv.make_mpf(ends)


def gaussian_delta(epsilon: Number, mu: Number) -> Number:
    """δ(ε) of a standard normal against itself shifted by μ: it decreases with ε and increases with μ."""
    if mu.b <= 0:
        return ZERO
    ends = [_delta_at(iv.mpf(e), iv.mpf(m)) for e, m in ((epsilon.b, mu.a), (epsilon.a, mu.b))]
    value = hull(*ends)
    return iv.mpf([max(value.a, ZERO), min(value.b, ONE)]) if value.b < INF else hull(ZERO, ONE)


def _delta_at(epsilon: Number, mu: Number) -> Number:
    if mu.a <= 0:
        return ZERO
    return tail(epsilon / mu - mu / 2) - iv.exp(epsilon) * tail(epsilon / mu + mu / 2)
