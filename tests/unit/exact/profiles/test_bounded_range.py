"""Bounded range against the maximum over all two-point losses, random distributions, and published statements."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from dpassay.core.numbers import down, number, up
from dpassay.core.theorems import Theorem
from dpassay.exact.pld.loss_components import AtomLoss
from dpassay.exact.pld.privacy_loss import PrivacyLoss
from dpassay.exact.profiles.bounded_range import RangeBound, loss_divergence, with_range
from dpassay.exact.profiles.bounds import PureBound, renyi_epsilon

CASES = [("2", "2"), ("2", "1"), ("2", "1.7"), ("0.1", "0.08"), ("30", "30"), ("30", "29.5")]


@pytest.fixture(autouse=True)
def thirty_digits():  # type: ignore[no-untyped-def]
    with mp.workdps(30):
        yield


def two_points(t: mpf, r: mpf) -> list[tuple[mpf, mpf]]:
    """The losses t and t − r with the probabilities that make Q sum to 1."""
    p = (mp.exp(r) - mp.exp(t)) / (mp.exp(r) - 1)
    return [(t, p), (t - r, 1 - p)]


def over_all_t(r: str, largest: str, value) -> mpf:  # type: ignore[no-untyped-def]
    """The largest value over two-point losses with t up to the largest, on a fine grid."""
    top = mpf(largest)
    return max(value(two_points(top * i / 1000, mpf(r))) for i in range(1, 1001))


@pytest.mark.long(every=5)
@pytest.mark.parametrize(("r", "largest"), CASES)
@pytest.mark.parametrize("share", ["0", "0.3", "0.8", "0.97"])
def test_delta_is_that_of_the_worst_two_point_loss(r: str, largest: str, share: str) -> None:
    epsilon = mpf(largest) * mpf(share)
    truth = over_all_t(r, largest, lambda atoms: sum(p * max(mpf(0), 1 - mp.exp(epsilon - a)) for a, p in atoms))
    found = RangeBound(number(r), number(largest)).delta(number(mp.nstr(epsilon, 25)))
    assert down(found) >= truth * (1 - mpf("1e-12"))
    assert up(found) == pytest.approx(float(truth), rel=1e-2, abs=1e-20)


@pytest.mark.parametrize(("r", "largest"), CASES)
@pytest.mark.parametrize("delta", ["1e-9", "1e-3", "0.2", "0.9"])
def test_epsilon_inverts_delta(r: str, largest: str, delta: str) -> None:
    bound = RangeBound(number(r), number(largest))
    epsilon = bound.epsilon(number(delta))
    if up(epsilon) == 0:
        assert up(bound.delta(number(0))) <= float(delta)
    else:
        assert float(bound.delta(epsilon).mid) == pytest.approx(float(delta), rel=1e-9)


@pytest.mark.long(every=5)
@pytest.mark.parametrize(("r", "largest"), CASES)
@pytest.mark.parametrize("order", ["1.001", "1.6", "7", "300"])
def test_divergence_is_that_of_the_worst_two_point_loss(r: str, largest: str, order: str) -> None:
    less = mpf(order) - 1
    truth = over_all_t(r, largest, lambda atoms: mp.log(sum(p * mp.exp(less * a) for a, p in atoms)) / less)
    found = RangeBound(number(r), number(largest)).divergence(number(order))
    assert down(found) >= truth * (1 - mpf("1e-12"))
    assert up(found) == pytest.approx(float(truth), rel=1e-3)
    # Cesar and Rogers 2021: r²/8-zCDP.
    assert up(found) <= float(mpf(order) * mpf(r) ** 2 / 8) * (1 + 1e-12)


@settings(max_examples=200, derandomize=True, deadline=None)
@given(st.integers(2, 5), st.integers(0, 10**6), st.sampled_from([0.05, 1.0, 6.0]), st.sampled_from([0.0, 0.1, 0.6]))
def test_no_distribution_with_that_range_beats_it(outputs: int, seed: int, size: float, share: float) -> None:
    rng = np.random.default_rng(seed)
    q = rng.dirichlet(np.full(outputs, 0.3)) + 1e-12
    p = q * np.exp(rng.uniform(0, size, outputs))
    p, q = p / p.sum(), q / q.sum()
    losses = np.log(p / q)
    r, largest = float(np.ptp(losses)) + 1e-12, float(np.abs(losses).max()) + 1e-12
    bound = with_range(number(r), number(largest))
    epsilon = share * largest
    assert np.maximum(0, p - math.exp(epsilon) * q).sum() <= up(bound.delta(number(epsilon))) * (1 + 1e-9) + 1e-15
    for order in (1.5, 4.0):
        divergence = math.log((p * (p / q) ** (order - 1)).sum()) / (order - 1)
        assert divergence <= up(bound.divergence(number(order))) * (1 + 1e-9) + 1e-13


def test_closed_forms() -> None:
    bound = RangeBound(number(2), number(2))
    assert float(bound.delta(number(0)).mid) == pytest.approx(math.tanh(0.5), rel=1e-14)
    assert float(bound.delta(number(1)).mid) == pytest.approx(0.179049889216818, rel=1e-13)
    assert float(bound.epsilon(number("1e-6")).mid) == pytest.approx(1.99813938780883, rel=1e-13)
    assert float(bound.divergence(number(2)).mid) == pytest.approx(0.867561660966054, rel=1e-13)
    assert up(bound.delta(number(2))) == 0


@pytest.mark.parametrize("epsilon", ["0", "0.3", "0.9", "1", "2"])
def test_pure_dp_is_a_range_of_twice_that(epsilon: str) -> None:
    # With nothing known but ε₀, the bound is that of randomized response.
    both = [
        bound.delta(number(epsilon))
        for bound in (with_range(number(9), number(1)), PureBound(number(1), Theorem.LAPLACE))
    ]
    assert float(both[0].mid) == pytest.approx(float(both[1].mid), rel=1e-13, abs=1e-30)


def test_a_hundred_uses() -> None:
    # 50-zCDP gives 50 + 2 √(50 ln 10⁶) = 102.57; the best order of the divergences themselves 93.8155.
    bound = RangeBound(number(2), number(2))
    found = renyi_epsilon(lambda order: 100 * bound.divergence(order), number("1e-6"))
    assert 93.8155 < float(found.mid) < 93.8156


def test_tiny_ranges() -> None:
    for r in ("1e-25", "1e-300"):
        bound = RangeBound(number(r), number(r))
        assert 0 <= up(bound.delta(number(0))) <= max(float(r), 1e-49)
        assert up(bound.epsilon(number("1e-9"))) <= float(r)
        assert up(bound.divergence(number(2))) <= float(r)


def test_divergence_of_losses_that_may_be_infinite() -> None:
    # Given that the loss is finite: ln(3/4·e² + 1/4·e^−2) of order 3, over 2.
    loss = PrivacyLoss(((AtomLoss(((number(1), number("0.6")), (number(-1), number("0.2"))), number("0.2")), 1),))
    truth = math.log(0.75 * math.e**2 + 0.25 * math.e**-2) / 2
    assert float(loss_divergence(loss, number(3)).mid) == pytest.approx(truth, rel=1e-13)
    whole = PrivacyLoss(((AtomLoss((), number(1)), 1),))
    assert up(loss_divergence(whole, number(3))) == math.inf
