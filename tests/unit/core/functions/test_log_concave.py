"""Integrals of e to a concave or convex function: bounds on both sides, against closed forms."""

import math

import numpy as np
import pytest
from mpmath import mp

from dpassay.core.functions.log_concave import log_integral


@pytest.mark.parametrize(
    ("phi", "low", "high", "truth"),
    [
        (lambda x: -(x**2) / 2, -9, 9, mp.log(mp.sqrt(2 * mp.pi) * mp.erf(9 / mp.sqrt(2)))),
        (lambda x: -1e8 * (x - 0.3) ** 2 / 2, 0, 1, mp.log(mp.sqrt(2 * mp.pi / mp.mpf("1e8")))),  # a narrow peak
        (lambda x: 3 * x, 0, 2, mp.log((mp.exp(6) - 1) / 3)),
        (lambda x: -1e5 + 0 * x, 1, 3, mp.log(2) - mp.mpf("1e5")),
        (lambda x: 40 * np.log(x) + 60 * np.log1p(-x), 0, 1, mp.log(mp.beta(41, 61))),  # −∞ at both ends
        (lambda x: 0.5 * np.log(x), 0, 1, mp.log(mp.mpf(2) / 3)),
    ],
)
def test_concave(phi, low, high, truth) -> None:
    found = log_integral(phi, float(low), float(high))
    assert found[0] <= truth <= found[1]
    assert found[1] - found[0] < 5e-5


@pytest.mark.parametrize("kappa", [0.1, 3.0, 400.0])
def test_convex(kappa: float) -> None:
    # e^(−κ cos a) on a quarter of a circle: π/2 (I₀(κ) − L₀(κ)), L₀ the modified Struve function.
    with mp.workdps(30 + int(kappa)):
        truth = mp.log(mp.pi / 2 * (mp.besseli(0, kappa) - mp.struvel(0, kappa)))
    found = log_integral(lambda a: -kappa * np.cos(a), 0.0, math.pi / 2, convex=True)
    assert found[0] <= truth <= found[1]
    assert found[1] - found[0] < 5e-5


def test_a_larger_error_is_counted() -> None:
    exact, rough = (log_integral(lambda x: -x * x, 0.0, 1.0, error) for error in (0.0, 0.01))
    assert rough[0] < exact[0] - 0.01
    assert rough[1] > exact[1] + 0.01


def test_an_empty_interval() -> None:
    assert log_integral(lambda x: x, 1.0, 1.0) == (-np.inf, -np.inf)
