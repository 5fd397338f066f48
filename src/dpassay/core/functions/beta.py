"""The regularized incomplete beta function I_x(a, b) and its inverse, for tails of binomials.

For counts of up to a hundred thousand runs a continued fraction is enough, with a relative error below 1e-10: importing
`scipy.special` would take longer than an audit of so many runs. For larger counts scipy computes the same.
"""

from __future__ import annotations

import math

MOST = 100_000  # a + b up to which the continued fraction is used
TINY, PRECISION, MOST_TERMS = 1e-300, 1e-16, 10_000
LARGE = 32.0  # from here on Stirling's series is used
FARTHEST = 700.0  # log-odds beyond which nothing is sought
MOST_STEPS = 100


def betaln(a: float, b: float) -> float:
    """The logarithm of the beta function.

    >>> round(betaln(2, 3), 12) == round(-math.log(12), 12)
    True
    """
    if a + b > MOST:
        from scipy.special import betaln as of_scipy

        return float(of_scipy(a, b))
    a, b = min(a, b), max(a, b)
    if b < LARGE:
        return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
    # Differences of lgamma would lose digits: Stirling's series, its large terms combined.
    rest = _stirling(b) - _stirling(a + b)
    if a < LARGE:
        return math.lgamma(a) + (b - 0.5) * math.log1p(-a / (a + b)) - a * math.log(a + b) + a + rest
    share = (a - 0.5) * math.log(a / (a + b)) + b * math.log1p(-a / (a + b))
    return 0.5 * math.log(2 * math.pi / b) + share + _stirling(a) + rest


def _stirling(x: float) -> float:
    """What Stirling's formula leaves of ln Γ(x): DLMF 5.11.1, with an error below 1e-15 from LARGE on."""
    y = 1 / (x * x)
    return (1 / 12 - y * (1 / 360 - y * (1 / 1260 - y / 1680))) / x


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
    return _expit(_log_odds(a, b, p))


def betainccinv(a: float, b: float, p: float) -> float:
    """The x at which 1 − I_x(a, b) is p, also if p is tiny."""
    if a + b > MOST:
        from scipy.special import betainccinv as of_scipy

        return float(of_scipy(a, b, p))
    return _expit(-_log_odds(b, a, p))


def _log_odds(a: float, b: float, p: float) -> float:
    """The log-odds t of the x at which I_x(a, b) is p.

    Newton's method for ln I = ln p. As a function of t, ln I is concave and increasing, so that its tangent reaches
    ln p before it does: from the second step on, the steps approach t from below.
    """
    if p <= 0 or p >= 1:
        return -FARTHEST if p <= 0 else FARTHEST
    t, target = math.log(a / b), math.log(p)
    for _ in range(MOST_STEPS):
        x, y = _expit(t), _expit(-t)
        found = _log_betainc(a, b, x, y)
        slope = math.exp(_log_factor(a, b, x, y) - found)
        step = (target - found) / slope if slope > 0 else math.inf
        t, before = min(max(t + step, -FARTHEST), FARTHEST), t
        if abs(t - before) <= 1e-13 * (1 + abs(t)):
            break
    return t


def _expit(t: float) -> float:
    return 1 / (1 + math.exp(-t))


def _betainc(a: float, b: float, x: float, y: float) -> float:
    """The same, given x and y = 1 − x, each as exactly as it is known."""
    if x <= 0 or y <= 0:
        return 0.0 if x <= 0 else 1.0
    return math.exp(_log_betainc(a, b, x, y))


def _log_betainc(a: float, b: float, x: float, y: float) -> float:
    if x > (a + 1) / (a + b + 2):  # where its own fraction is slow, and its value is not small
        return math.log1p(-math.exp(_log_betainc(b, a, y, x)))
    return _log_factor(a, b, x, y) + math.log(_fraction(a, b, x) / a)


def _log_factor(a: float, b: float, x: float, y: float) -> float:
    """ln(x^a y^b / B(a, b)), which is also the derivative of I by the log-odds of x."""
    log_x, log_y = (math.log(x), math.log1p(-x)) if x < 0.5 else (math.log1p(-y), math.log(y))
    return a * log_x + b * log_y - betaln(a, b)


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
