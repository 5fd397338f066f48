"""The incomplete beta function against mpmath, sums of binomials in fractions, and scipy where it takes over."""

import math
from fractions import Fraction

import pytest
import scipy.special
from mpmath import mp, mpf

from dpassay.core.functions.beta import MOST, betainc, betainccinv, betaincinv, betaln

POINTS = [
    (60_000, 35_000, 0.61),
    (60_000.5, 35_000.5, 0.64),
    (20.5, 90_000.5, 1e-4),
    (31_000.5, 31_500.5, 0.5),
    (0.5, 0.5, 0.3),
    (1, 1, 0.25),
    (0.5, 4000.5, 1e-5),
    (3.5, 1.5, 0.99),
    (40, 60, 0.4),
    (411, 55, 0.7310585786300049),
    (54.5, 411.5, 0.2689414213699951),
    (5000, 4999, 0.5),
    (5000, 4999, 0.45),
    (9990, 9, 0.99),
    (40, 60, 0.6),
    (9000.5, 900.5, 0.9999),
    (2, 9997, 1e-4),
]


def series(a, b, x):
    """I_x(a, b) by the power series of positive terms (DLMF 8.17.8), from the side where it converges fast."""
    if x > a / (a + b):
        return 1 - series(b, a, 1 - x)
    term = total = mpf(1)
    for n in range(10**6):
        term *= (a + b + n) * x / (a + 1 + n)
        total += term
        if term < total * mpf(10) ** -40:
            break
    return mp.exp(a * mp.log(x) + b * mp.log(1 - x)) / (a * mp.beta(a, b)) * total


@pytest.mark.parametrize(("a", "b", "x"), POINTS)
def test_the_stated_relative_error(a, b, x):
    with mp.workdps(60):
        truth = series(mpf(a), mpf(b), mpf(x))
        upper = 1 - truth
        assert abs(betainc(a, b, x) / truth - 1) < 1e-10
        assert abs(betaln(a, b) - mp.log(mp.beta(mpf(a), mpf(b)))) < 1e-10
        # Back to x: the error of the function, times how much x depends on it, is left.
        if 1e-300 < truth < 0.999:
            density = mp.exp((a - 1) * mp.log(x) + (b - 1) * mp.log1p(-x)) / mp.beta(a, b)
            allowed = 1e-10 * max(1, truth / (density * x))
            assert abs(betaincinv(a, b, float(truth)) / x - 1) < allowed
        if upper > 1e-300:
            density = mp.exp((a - 1) * mp.log(x) + (b - 1) * mp.log1p(-x)) / mp.beta(a, b)
            allowed = 1e-10 * max(1, upper / (density * x))
            assert abs(betainccinv(a, b, float(upper)) / x - 1) < allowed


@pytest.mark.parametrize("successes", [1, 5, 12, 20])
def test_tails_of_binomials_in_fractions(successes):
    third = Fraction(1, 3)
    tail = sum(math.comb(20, k) * third**k * (1 - third) ** (20 - k) for k in range(successes, 21))
    assert betainc(successes, 21 - successes, 1 / 3) == pytest.approx(float(tail), rel=1e-13)


def test_ends_of_the_interval():
    assert betainc(3, 4, 0.0) == 0.0
    assert betainc(3, 4, 1.0) == 1.0
    assert betainc(5000, 10, 1e-300) == 0.0  # too small for a double
    assert betainccinv(1, 1000, 0.001) == pytest.approx(1 - 0.001 ** (1 / 1000), rel=1e-10)  # by hand


@pytest.mark.parametrize("function", ["betainc", "betaincinv", "betainccinv"])
def test_the_same_on_both_sides_of_the_limit(function):
    ours, scipys = globals()[function], getattr(scipy.special, function)
    for total in (MOST - 1, MOST, MOST + 1):
        assert ours(0.7 * total, 0.3 * total, 0.69) == pytest.approx(
            float(scipys(0.7 * total, 0.3 * total, 0.69)), rel=1e-9
        )
