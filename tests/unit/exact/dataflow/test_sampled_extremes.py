"""Sampled Gaussian noise that is tiny against the clipping constant, and sampling rates next to 0 and 1."""

import math

import numpy as np
import pytest

from dpassay.api import check
from dpassay.core.numbers import down, number, up
from dpassay.evidence.certificate import certify
from dpassay.evidence.verifier import verify
from dpassay.exact.pld.lattice_sum import Curve
from dpassay.exact.pld.sampled.gaussian import SampledLoss, SampledPower


def test_noise_that_hides_nothing_is_refuted() -> None:
    # A record that takes part is seen beyond doubt: δ is q, and ε about μ²/2 + μ·z, z the normal quantile of 2e-5.
    verdict = check("poisson(0.5) | clip(l2, 1e6) | gaussian(1)", epsilon=3, delta="1e-5", dim=2)
    assert verdict.refuted
    assert verdict.epsilon.lower == pytest.approx(1e12 / 2 + 1e6 * 4.10748, rel=1e-9)
    assert verdict.epsilon.upper == pytest.approx(verdict.epsilon.lower, rel=1e-9)
    assert verify(certify(verdict)).verdict == "refuted"


@pytest.mark.long(every=5)
@pytest.mark.parametrize("way", ["remove", "add", "replace"])
@pytest.mark.parametrize("rate", ["1e-9", "0.5", "0.999999"])
@pytest.mark.parametrize("mu", ["1e6", "1e3", "60"])
@pytest.mark.parametrize("count", [1, 10, 1_000_000])
def test_far_moves_show_who_takes_part(way: str, rate: str, mu: str, count: int) -> None:
    # So far apart, the first law's outputs tell whether the record took part in some step: δ(0) = 1 − (1 − q)^T.
    steps = SampledPower(SampledLoss(number(rate), number(mu), way), count)  # type: ignore[arg-type]
    truth = -math.expm1(count * math.log1p(-float(rate)))
    delta = steps.delta(number(0))
    assert down(delta) <= truth * (1 + 1e-9)
    assert up(delta) >= truth * (1 - 1e-9)
    assert down(delta) >= float(rate) * (1 - 1e-9)
    epsilon = steps.epsilon(number("1e-5"))
    assert 0 <= down(epsilon) <= up(epsilon)
    if truth <= 1e-5:
        assert up(epsilon) == 0
    elif way != "add" and float(rate) > 1e-5:
        assert down(epsilon) > float(mu) ** 2 / 2
        assert up(epsilon) < count * (float(mu) + 12) ** 2 * 2


def test_claims_about_rare_records_are_proven() -> None:
    # One of ten steps has the record with probability 1e-8 at most, whatever it shows then.
    verdict = check("poisson(1e-9) | clip(l2, 1) | gaussian(1) | times(10)", epsilon=3, delta="1e-5", dim=2)
    assert verdict.proven
    assert verdict.epsilon.upper == 0


def test_what_one_step_shows_counts_where_a_lattice_tells_nothing() -> None:
    steps = SampledPower(SampledLoss(number("0.5"), number(20), "remove"), 10)
    delta = steps.delta(number(3))
    assert down(delta) >= 0.5 * (1 - 1e-9)
    assert up(delta) <= 1 - 0.5**10 + 1e-9


def test_events_too_large_for_doubles_are_not_named() -> None:
    assert Curve(np.array([]), np.array([]), (0.0, 0.0), False).best(1.0) is None
    assert Curve(np.ones(1), np.ones(1), (1e4, 0.0), False).best(1.0) is None
    assert Curve(np.ones(2), np.array([1.0, 0.5]), (0.0, 0.0), False).best(1.0) == (1, 1.0, 0.5)
