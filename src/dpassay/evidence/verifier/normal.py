"""The normal tail, certified from both sides: a series of positive terms for small z, a continued fraction for large.

P(Z > z) = ½ − φ(z)·Σ z^(2k+1)/(1·3·…·(2k+1)); and P(Z > z) = φ(z)·1/(z + 1/(z + 2/(z + 3/(z + …)))), whose
convergents lie in turn above and below the value.
"""

import math

from dpassay.evidence.verifier.numbers import INF, ONE, ZERO, Number, around, hull, iv, middle

_SERIES_BELOW = 6
_ENOUGH, _HALF = iv.mpf("1e-70"), iv.mpf("0.5")


def tail(z: Number) -> Number:
    """P(Z > z) for a standard normal Z."""
    return _tail_at(z) if z.a == z.b else hull(_tail_at(iv.mpf(z.b)), _tail_at(iv.mpf(z.a)))


def _density(z: Number) -> Number:
    return iv.exp(-z * z / 2) / iv.sqrt(2 * iv.pi)


def _tail_at(z: Number) -> Number:
    if z.a < 0:
        return 1 - _tail_at(-z)
    return _HALF - _density(z) * _series(z) if z.b < _SERIES_BELOW else _density(z) * mills(z)


def _series(z: Number) -> Number:
    """Σ z^(2k+1)/(2k+1)!!; once a term's ratio is below ½ the rest is at most the last term."""
    term, total, square, k = z, ZERO, z * z, 0
    while True:
        total += term
        k += 1
        ratio = square / (2 * k + 1)
        term *= ratio
        if ratio.b < _HALF.a and term.b <= (total * _ENOUGH).b:
            return hull(total, total + 2 * term)


def mills(z: Number) -> Number:
    """(1 − Φ(z))/φ(z) for z > 0, between two neighbouring convergents."""
    enough = 40 + math.ceil(6000 / middle(z) ** 2)  # for 50 digits; the bounds hold for any number of terms
    ends = []
    for terms in (enough, enough + 1):
        value = z
        for k in range(terms, 0, -1):
            value = z + k / value
        ends.append(ONE / value)
    return around(ends)


def gaussian_delta(epsilon: Number, mu: Number) -> Number:
    """δ(ε) of a standard normal against itself shifted by μ: it falls with ε and grows with μ."""
    if mu.b <= 0:
        return ZERO
    ends = [_delta_at(iv.mpf(e), iv.mpf(m)) for e, m in ((epsilon.b, mu.a), (epsilon.a, mu.b))]
    value = hull(*ends)
    return iv.mpf([max(value.a, ZERO), min(value.b, ONE)]) if value.b < INF else hull(ZERO, ONE)


def _delta_at(epsilon: Number, mu: Number) -> Number:
    if mu.a <= 0:
        return ZERO
    return tail(epsilon / mu - mu / 2) - iv.exp(epsilon) * tail(epsilon / mu + mu / 2)
