"""The regularized incomplete beta function I_x(a, b) and its inverse, for tails of binomials.

For counts of a few thousand runs a continued fraction is enough, with a relative error below 1e-10: importing
`scipy.special` would take longer than an audit of so many runs. For larger counts scipy computes the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable

MOST = 10_000  # a + b up to which the continued fraction is used
TINY, PRECISION, MOST_TERMS = 1e-300, 1e-16, 10_000
FARTHEST = 745.0  # log-odds beyond which a double is 0


def betaln(a: float, b: float) -> float:
    """The logarithm of the beta function.

    >>> round(betaln(2, 3), 12) == round(-math.log(12), 12)
    True
    """
    if a + b > MOST:
        from scipy.special import betaln as of_scipy

        return float(of_scipy(a, b))
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def betainc(a: float, b: float, x: float) -> float:
    """I_x(a, b): for integers, the probability of at least a successes in a + b − 1 trials of probability x.

    >>> round(betainc(9, 2, 0.5), 12) == round(11 / 1024, 12)
    True
    """
    if a + b > MOST:
        from scipy.special import betainc as of_scipy

        return float(of_scipy(a, b, x))
    return _betainc(a, b, x, 1 - x)


def betaincinv(a: float, b: float, p: float) -> float:
    """The x at which I_x(a, b) is p."""
    if a + b > MOST:
        from scipy.special import betaincinv as of_scipy

        return float(of_scipy(a, b, p))
    return _where(lambda x, y: _betainc(a, b, x, y) >= p)


def betainccinv(a: float, b: float, p: float) -> float:
    """The x at which 1 − I_x(a, b) is p, also if p is tiny."""
    if a + b > MOST:
        from scipy.special import betainccinv as of_scipy

        return float(of_scipy(a, b, p))
    return _where(lambda x, y: _betainc(b, a, y, x) <= p)


def _where(reached: Callable[[float, float], bool]) -> float:
    """The least x of the unit interval for which `reached(x, 1 − x)` holds, by bisection of its log-odds."""
    low, high = -FARTHEST, FARTHEST
    for _ in range(64):
        middle = (low + high) / 2
        x, y = _expit(middle), _expit(-middle)
        low, high = (low, middle) if reached(x, y) else (middle, high)
    return _expit(high)


def _expit(t: float) -> float:
    return 1 / (1 + math.exp(-t)) if t > -700 else math.exp(t)


def _betainc(a: float, b: float, x: float, y: float) -> float:
    """The same, given x and y = 1 − x, each as exactly as it is known."""
    if x <= 0 or y <= 0:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):  # where its own fraction is slow, and its value is not small
        return 1.0 - _betainc(b, a, y, x)
    log_x, log_y = (math.log(x), math.log1p(-x)) if x < 0.5 else (math.log1p(-y), math.log(y))
    log_factor = a * log_x + b * log_y - betaln(a, b)
    return math.exp(log_factor) * _fraction(a, b, x) / a if log_factor > -FARTHEST else 0.0


def _fraction(a: float, b: float, x: float) -> float:
    """The continued fraction DLMF 8.17.22, by Lentz's method in the form of Thompson and Barnett."""
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1) or TINY)
    found = d
    for m in range(1, MOST_TERMS):
        for numerator in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / (1 + numerator * d or TINY)
            c = 1 + numerator / c or TINY
            change = c * d
            found *= change
        if abs(change - 1) <= PRECISION:
            break
    return found
