"""Curves against their formulas in 50 digits, against quadrature, and against losses that they must bound."""

import itertools
import math

import numpy as np
import pytest
from mpmath import mp, mpf

from dpassay.core.numbers import INFINITY, ONE, ZERO, down, log, number, real, up
from dpassay.core.theorems import Theorem
from dpassay.exact.pld.privacy_loss import PrivacyLoss
from dpassay.exact.profiles.bounds import (
    DropoutBound,
    PairBound,
    PureBound,
    RenyiBound,
    before_dropout,
    between_ends,
)
from dpassay.pipeline.distributions import Laplace
from oracles import holds


@pytest.fixture(autouse=True)
def fifty_digits():  # type: ignore[no-untyped-def]
    with mp.workdps(60):
        yield


def laplace_pair(*gaps: str) -> PairBound:
    return PairBound((PrivacyLoss.of_shifts(Laplace(1), [(number(g), 1) for g in gaps]),), Theorem.LAPLACE)


# ── What pure DP implies ────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("pure", ["0.01", "1", "7.5", "700"])
@pytest.mark.parametrize("share", ["0", "0.1", "0.5", "0.99"])
def test_pure_curve(pure: str, share: str) -> None:
    bound = PureBound(number(pure), Theorem.LAPLACE)
    most = mpf(pure)
    epsilon = most * mpf(share)
    truth = (mp.exp(most) - mp.exp(epsilon)) / (mp.exp(most) + 1)
    assert holds(bound.delta(number(pure) * number(share)), truth)
    # and back, wherever δ is what an ε ≥ 0 gives
    delta = truth / 2
    back = mp.log(mp.exp(most) * (1 - delta) - delta)
    assert holds(bound.epsilon(real(mp.nstr(delta, 50))), back, digits=35)


def test_randomized_response_attains_the_pure_curve() -> None:
    # Keep a bit with probability 3/4: δ(0) is the total variation, 3/4 − 1/4.
    bound = PureBound(log(real(3)), Theorem.RANDOMIZED_RESPONSE)
    assert holds(bound.delta(ZERO), mpf(1) / 2)


def test_pure_curve_beyond_its_ends() -> None:
    bound = PureBound(ONE, Theorem.LAPLACE)
    assert bound.delta(number(1)).b < 1e-40
    assert bound.delta(number(5)) == 0
    assert bound.epsilon(number("0.5")) == 0  # δ(0) is 0.462
    assert PureBound(INFINITY, Theorem.LAPLACE).delta(number(10**6)) == 1
    assert PureBound(INFINITY, Theorem.LAPLACE).epsilon(number("0.1")) == INFINITY
    # e^ε₀ overflows a double at 709; the bound does not.
    assert up(PureBound(number(10**6), Theorem.LAPLACE).delta(number(999_999))) == pytest.approx(1 - math.exp(-1))


# ── Rényi ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("order", ["1.1", "2", "9.5"])
@pytest.mark.parametrize("shift", ["0.2", "3"])
def test_divergence_is_that_of_the_integral(order: str, shift: str) -> None:
    a, o = mpf(shift), mpf(order)

    def density(t: mpf) -> mpf:
        return mp.exp(-o * abs(t) - (1 - o) * abs(t - a)) / 2

    truth = mp.log(mp.quad(density, [-mp.inf, 0, a, mp.inf])) / (o - 1)
    bound = RenyiBound(number(shift), 2.0, 1)
    assert abs(mpf(up(bound.divergence(number(order)))) - truth) < 1e-14 * truth
    # n coordinates share an l2 norm: each is shifted by a/√n, and the divergences add up.
    four = RenyiBound(2 * number(shift), 2.0, 4)
    assert up(four.divergence(number(order))) == pytest.approx(4 * float(truth), rel=1e-14)


@pytest.mark.parametrize(("p", "dim"), [(2.0, 32), (2.0, 1), (3.0, 8), (math.inf, 6)])
def test_renyi_pure_is_the_diagonals(p: float, dim: int) -> None:
    truth = 1.5 * dim ** (1 - (0 if p == math.inf else 1 / p))
    assert up(RenyiBound(number("1.5"), p, dim).pure) == pytest.approx(truth, rel=1e-14)


def merged_delta(gaps: np.ndarray, epsilon: float) -> float:
    """δ of Laplace coordinates from below: the product of cells of the line."""
    p = q = np.ones(1)
    for gap in np.abs(gaps):
        edges = np.linspace(0, gap, 41)
        one = np.concatenate([[0.5], np.diff(-np.exp(-edges) / 2), [math.exp(-gap) / 2]])
        other = one[::-1]
        p, q = np.multiply.outer(p, one).ravel(), np.multiply.outer(q, other).ravel()
    return float(np.maximum(0, p - math.exp(epsilon) * q).sum())


@pytest.mark.parametrize("p", [2.0, 4.0, math.inf])
@pytest.mark.parametrize("size", [0.3, 2.0, 8.0])
def test_no_shift_in_the_ball_beats_the_renyi_bound(p: float, size: float) -> None:
    rng = np.random.default_rng(11)
    bound = RenyiBound(number(size), p, 3)
    shifts = np.abs(np.concatenate([np.eye(3), np.ones((1, 3)), rng.normal(size=(12, 3))]))
    shifts *= size / np.linalg.norm(shifts, ord=p, axis=1, keepdims=True)
    for epsilon, shift in itertools.product((0.0, 0.2 * size, 0.8 * size), shifts):
        assert merged_delta(shift, epsilon) <= up(bound.delta(number(epsilon))), (shift, epsilon)


def test_every_order_bounds_and_the_best_is_found() -> None:
    bound = RenyiBound(number(1), 2.0, 32)
    epsilon = number(4)
    at_best = up(bound.log_delta(epsilon, bound.best_order(epsilon)))
    others = [up(bound.log_delta(epsilon, number(1 + 0.01 * 1.1**i))) for i in range(100)]
    assert at_best <= min(others) + 1e-9
    delta = number("1e-6")
    exact = up(bound.epsilon(delta))
    orders = [number(1 + 0.01 * 1.1**i) for i in range(100)]
    by_hand = [up(bound.divergence(o) + (-log(o) + (o - 1) * log(1 - 1 / o) - log(delta)) / (o - 1)) for o in orders]
    assert exact <= min(by_hand) + 1e-9
    # FACTS: the diagonal pair alone needs 4.40; the pure loss is √32.
    assert 4.40 < exact < math.sqrt(32)


def test_renyi_is_capped_by_what_always_holds() -> None:
    bound = RenyiBound(number(1), 2.0, 4)
    assert up(bound.delta(ZERO)) <= 1
    assert up(bound.epsilon(number("1e-300"))) <= 2.0000000001
    assert bound.epsilon(number("0.999")) == 0


# ── Dropout ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("mu", ["0.1", "0.5", "0.999"])
@pytest.mark.parametrize("pure", ["0.5", "38.4", "5000"])
def test_dropout_of_a_pure_loss(mu: str, pure: str) -> None:
    after = DropoutBound(PureBound(number(pure), Theorem.LAPLACE), number(mu)).pure
    truth = mp.log((1 - mpf(mu)) * mp.exp(mpf(pure)) + mpf(mu))
    assert holds(after, truth)
    assert holds(before_dropout(after, number(mu)), mpf(pure), digits=35)


def test_dropout_at_a_delta() -> None:
    mu, gap = mpf("0.3"), mpf(2)
    bound = DropoutBound(laplace_pair("2"), number("0.3"))
    for epsilon in ("0.1", "0.7", "1.5"):
        inner = mp.log((mp.exp(mpf(epsilon)) - mu) / (1 - mu))
        truth = (1 - mu) * (1 - mp.exp((inner - gap) / 2))
        assert holds(bound.delta(number(epsilon)), truth)
        at = number(mp.nstr(truth, 45))
        for found in (bound.epsilon(at), bound.epsilon_above(at)):
            assert up(found) == pytest.approx(float(epsilon), rel=1e-9)
    assert bound.epsilon(number("0.7")) == 0  # the word is there with probability 0.7 only
    assert bound.epsilon_above(number("0.9")) == 0
    assert bound.theorem is Theorem.LAPLACE


def test_dropout_cannot_hide_what_is_infinite() -> None:
    bound = DropoutBound(PureBound(INFINITY, Theorem.UNBOUNDED), number("0.9"))
    assert bound.pure == INFINITY
    assert up(bound.delta(number(3))) == pytest.approx(0.1, rel=1e-15)


def test_no_dropout_changes_nothing() -> None:
    epsilon = number("1.25")
    assert before_dropout(epsilon, ZERO) is epsilon


# ── Pairs ───────────────────────────────────────────────────────────────────────────────────────


def test_a_pair_takes_the_worse_way() -> None:
    weak, strong = (laplace_pair(gap).losses[0] for gap in ("1", "2"))
    both = PairBound((weak, strong), Theorem.LAPLACE)
    assert up(both.pure) == 2
    assert holds(both.delta(ONE), 1 - mp.exp(mpf(-1) / 2))
    for found in (both.epsilon(number("0.1")), both.epsilon_above(number("0.1"))):
        assert up(found) == pytest.approx(2 + 2 * math.log(0.9), rel=1e-12)


def test_the_worst_of_some_bounds() -> None:
    # Which of the two is worse depends on ε: (1) has the larger loss, (0.6, 0.3) none above 0.9.
    worst = PairBound((*laplace_pair("0.3", "0.6").losses, *laplace_pair("1").losses), Theorem.WORST_SHIFT)
    assert up(worst.pure) == 1
    for epsilon in ("0", "0.5", "0.95"):
        single = 1 - mp.exp((mpf(epsilon) - 1) / 2)
        assert up(worst.delta(number(epsilon))) >= float(single) * (1 - 1e-12)
    assert down(worst.epsilon(number("1e-3"))) <= up(worst.epsilon_above(number("1e-3")))


def test_ends_are_tighter_than_interval_arithmetic() -> None:
    wide = real([1, 2])
    assert between_ends(wide, lambda x: x - x / 2).delta == real("0.5")
    assert between_ends(real([1, "inf"]), lambda x: x).b == INFINITY
