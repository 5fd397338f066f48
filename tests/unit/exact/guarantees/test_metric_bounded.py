"""Bounded Laplace noise per unit of distance, against its density at random inputs and outputs."""

import math

import numpy as np
import pytest

from dpassay.api import check
from dpassay.core.guarantee import MetricDP
from dpassay.evidence.certificate import certify
from dpassay.evidence.verifier import verify


def slope(x: float, scale: float, low: float, high: float) -> float:
    """1/b + |d/dx ln C(x)|, C(x) the mass of e^(−|t − x|/b) between the limits, in closed form."""
    u, v = math.exp((low - x) / scale), math.exp((x - high) / scale)
    return (1 + abs(u - v) / (2 - u - v)) / scale


@pytest.mark.long(every=2)
@pytest.mark.parametrize(
    ("before", "scale", "low", "high", "near", "metric", "dim", "factor"),
    [
        ("", 1.0, 0.0, 2.0, 0.0, "l1", 3, 1),
        ("", 0.3, -1.0, 4.0, -1.0, "l2", 4, 2),
        ("clamp(-7, 9) | ", 0.3, -1.0, 4.0, -1.0, "linf", 3, 3),
        ("clamp(0.5, 1.2) | ", 1.0, 0.0, 2.0, 0.5, "linf", 2, 2),
        ("clamp(0.9, 1.8) | ", 0.4, 0.0, 2.0, 1.8, "l1", 1, 1),
    ],
)
def test_largest_at_the_end_nearest_to_a_limit(
    before: str, scale: float, low: float, high: float, near: float, metric: str, dim: int, factor: float
) -> None:
    text, truth = f"{before}bounded_laplace({scale}, {low}, {high})", factor * slope(near, scale, low, high)
    proven = check(text, guarantee=MetricDP(truth * (1 + 1e-9), metric), dim=dim)
    assert proven.proven
    assert verify(certify(proven)).verdict == "proven"
    refuted = check(text, guarantee=MetricDP(truth * (1 - 1e-9), metric), dim=dim)
    assert refuted.refuted
    assert verify(certify(refuted)).verdict == "refuted"


def test_no_two_inputs_lose_more() -> None:
    rng = np.random.default_rng(2)
    upper = check("clamp(0.2, 1.1) | bounded_laplace(0.5, 0, 2)", guarantee=MetricDP(1, "l1"), dim=1).epsilon.upper
    x, y = rng.uniform(0.2, 1.1, size=(2, 50_000))
    t = np.linspace(0, 2, 41)[:, None]
    logs = [-np.abs(t - z) / 0.5 - np.log(2 - np.exp(-z / 0.5) - np.exp(-(2 - z) / 0.5)) for z in (x, y)]
    losses = np.abs(logs[0] - logs[1]).max(axis=0) / np.abs(x - y)
    assert losses.max() <= upper * (1 + 1e-6)
    assert losses.max() >= upper * 0.99


def test_number_of_the_page() -> None:
    assert slope(0.5, 1, 0, 2) == pytest.approx(1.32759776488, abs=1e-11)


def test_values_beyond_one_limit_are_equal() -> None:
    verdict = check("clamp(3, 4) | bounded_laplace(1, 0, 2)", guarantee=MetricDP(0, "l2"), dim=2)
    assert verdict.proven
    assert verdict.epsilon.upper == 0
    assert verify(certify(verdict)).verdict == "proven"


def test_other_stages_before_it_have_an_upper_bound() -> None:
    verdict = check("squash(tanh) | bounded_laplace(1, 0, 2)", guarantee=MetricDP(2, "l1"), dim=2)
    assert verdict.proven
    assert verify(certify(verdict)).verdict == "proven"
