"""The loss as it is drawn, against closed forms, enumeration and certified intervals."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from scipy.integrate import quad

from dpassay import check
from dpassay.claims.registry import REGISTRY
from dpassay.core.numbers import middle, number
from dpassay.exact.mechanisms.bounded_laplace import BoundedLaplaceLoss
from dpassay.exact.pld.loss_components import AtomLoss
from dpassay.exact.pld.loss_masses import LossMasses, loss_masses
from dpassay.exact.pld.privacy_loss import PrivacyLoss
from dpassay.exact.pld.sampled.gaussian import SampledLoss
from dpassay.pipeline.discrete_noise import DiscreteGaussian, DiscreteLaplace
from dpassay.pipeline.distributions import Gaussian, Laplace, Mixture
from dpassay.pipeline.staircase import Staircase

CLOSE = 5e-3  # how far off a drawn δ may be, as a part of it
BIT = AtomLoss(((number(math.log(3)), number("0.75")), (number(-math.log(3)), number("0.25"))))  # kept with 3/4
HALF_AND_HALF = Mixture(0, (("0.5", Laplace(1)), ("0.5", Laplace(3))))


def above(z: float) -> float:
    return math.erfc(z / math.sqrt(2)) / 2


def gaussian_delta(epsilon: float, mu: float) -> float:
    return above(epsilon / mu - mu / 2) - math.exp(epsilon) * above(epsilon / mu + mu / 2)


def shown(loss: PrivacyLoss) -> LossMasses:
    found = loss_masses(loss)
    assert found is not None
    assert found.masses.sum() + found.infinite == pytest.approx(1, abs=1e-9)
    assert (np.diff(found.losses) > 0).all()
    return found


def drawn(loss: PrivacyLoss, epsilon: float) -> float:
    return float(shown(loss).delta(np.array([epsilon]))[0])


def sampled(rate: str, steps: int, way: str = "remove") -> PrivacyLoss:
    return PrivacyLoss(((SampledLoss(number(rate), number(1), way), steps),))  # type: ignore[arg-type]


def shifted(noise, gap, count) -> PrivacyLoss:  # type: ignore[no-untyped-def]
    return PrivacyLoss.of_shifts(noise, [(number(gap), count)])


def test_gaussian_noise_on_many_coordinates() -> None:
    assert drawn(shifted(Gaussian(2), "0.1", 900), 2.0) == pytest.approx(gaussian_delta(2.0, 1.5), rel=1e-3)


def test_laplace_noise_on_one_coordinate() -> None:
    assert drawn(shifted(Laplace(1), 1, 1), 0.5) == pytest.approx(1 - math.exp((0.5 - 1) / 2), rel=1e-3)


def test_laplace_noise_that_is_far_too_small() -> None:
    found = shown(shifted(Laplace(1), 1_000_000, 1))  # the loss is a − 2t beyond the first input, t exponential, else a
    assert float(found.losses @ found.masses) == pytest.approx(1e6 - 1, abs=0.01)


def test_laplace_noise_on_many_coordinates_has_the_right_mean_and_variance() -> None:
    a, n = 0.05, 768
    found = shown(shifted(Laplace(1), "0.05", n))
    mean = float(found.losses @ found.masses)
    assert mean == pytest.approx(n * (a - 1 + math.exp(-a)), rel=1e-6)
    t = (np.arange(100_000) + 0.5) * a / 100_000  # E L² is a²/2 + a²e^(−a)/2 + ∫ (a − 2t)² e^(−t)/2
    square = a**2 * (1 + math.exp(-a)) / 2 + float(((a - 2 * t) ** 2 * np.exp(-t) / 2).sum() * a / 100_000)
    variance = float((found.losses - mean) ** 2 @ found.masses)
    assert variance == pytest.approx(n * (square - (mean / n) ** 2), rel=1e-3)


def test_bits_by_enumeration() -> None:
    truth = sum(
        math.prod(0.75 if kept else 0.25 for kept in bits)
        * max(0.0, 1 - math.exp(1.0 - sum(math.log(3) if kept else -math.log(3) for kept in bits)))
        for bits in product((True, False), repeat=6)
    )
    assert drawn(PrivacyLoss(((BIT, 6),)), 1.0) == pytest.approx(truth, rel=1e-6)


def test_two_kinds_of_bits_by_enumeration() -> None:
    other = AtomLoss(((number(1), number("0.6")), (number(-2), number("0.4"))))
    truth = sum(
        math.comb(6, i) * 0.75**i * 0.25 ** (6 - i) * math.comb(5, j) * 0.6**j * 0.4 ** (5 - j)
        * max(0.0, 1 - math.exp(1.0 - (2 * i - 6) * math.log(3) - j + 2 * (5 - j)))
        for i in range(7)
        for j in range(6)
    )  # fmt: skip
    assert drawn(PrivacyLoss(((BIT, 6), (other, 5))), 1.0) == pytest.approx(truth, rel=CLOSE)


def test_a_sampled_step() -> None:
    q, epsilon = 0.1, 0.3
    inner = math.log(1 + (math.exp(epsilon) - 1) / q)  # δ is q times that of the noise on its own there
    assert drawn(sampled("0.1", 1), epsilon) == pytest.approx(q * gaussian_delta(inner, 1.0), rel=CLOSE)


def test_many_sampled_steps_at_a_published_point() -> None:
    """At rate 0.01, sigma 1 and 1,000 steps, accountants agree on an ε of 1.828 at δ = 1e-5."""
    assert drawn(sampled("0.01", 1000), 1.81) > 1e-5 > drawn(sampled("0.01", 1000), 1.85)


@pytest.mark.parametrize("way", ["remove", "add", "replace"])
def test_the_mean_of_sampled_steps_by_quadrature(way: str) -> None:
    def bell(t: float) -> float:
        return math.exp(-(t**2) / 2) / math.sqrt(2 * math.pi)

    def mixed(t: float, to: float) -> float:
        return 0.99 * bell(t) + 0.01 * bell(t - to)

    def loss(t: float) -> float:
        first = bell(t) if way == "add" else mixed(t, 1)
        second = mixed(t, 1) if way == "add" else mixed(t, -1) if way == "replace" else bell(t)
        return first * math.log(first / second)

    truth = 1000 * quad(loss, -12, 13, epsabs=1e-13, limit=200)[0]
    found = shown(sampled("0.01", 1000, way))
    assert float(found.losses @ found.masses) == pytest.approx(truth, rel=1e-4)


@pytest.mark.parametrize(
    "loss",
    [
        PrivacyLoss(()),
        shifted(Laplace(1), 1, 1),
        shifted(Laplace(1), "0.3", 20),
        shifted(Laplace(100), 1, 100_000),
        shifted(Gaussian(1), 2, 1),
        shifted(Laplace(1), 1, 1).compose(shifted(Gaussian(2), 1, 1)),
        PrivacyLoss(((BIT, 1),)),
        PrivacyLoss(((BIT, 7680),)),
        shifted(DiscreteLaplace(20), 50, 1),
        shifted(DiscreteLaplace(20), 5, 100),
        shifted(DiscreteGaussian(10), 3, 1),
        shifted(DiscreteGaussian(10), 3, 50),
        shifted(HALF_AND_HALF, 1, 30),
        shifted(Staircase("0.1", 1, "0.4"), "2.5", 40),
        PrivacyLoss(((BoundedLaplaceLoss(number(1), number(1), number(5)), 10),)),
    ],
    ids=lambda loss: "+".join(f"{n}x{type(part).__name__}" for part, n in loss.components) or "nothing",
)
def test_the_mean_is_the_exact_one(loss: PrivacyLoss) -> None:
    found, mean = shown(loss), loss.mean()
    average = float(found.losses @ found.masses)
    slack = 1e-5 * mean.upper + 1e-9
    assert mean.lower - slack <= average <= mean.upper + slack


def test_losses_on_a_lattice_are_drawn_one_by_one() -> None:
    found = shown(shifted(DiscreteLaplace(2), 2, 8))  # each loss is −1, 0 or 1
    there = found.losses[found.masses > 1e-12]
    assert there == pytest.approx(np.arange(-8, 9), abs=1e-6)


@pytest.mark.parametrize("name", REGISTRY)
def test_delta_of_every_claim_is_within_its_certified_interval(name: str) -> None:
    verdict = check(REGISTRY[name])
    loss = None if verdict.profile is None else verdict.profile.dominating_loss(verdict.guarantee)
    if loss is None or middle(loss.infinite) >= 1 or sum(n for _, n in loss.components) > 8000:
        pytest.skip("no loss of a single pair, or one whose interval takes seconds")
    found = shown(loss)
    top = max(0.0, float(found.losses[found.masses > 1e-9].max()))
    for epsilon in (0.0, top / 3, top / 1.5):
        certified, at = loss.delta(epsilon), float(found.delta(np.array([epsilon]))[0])
        assert certified.lower * (1 - CLOSE) - 1e-12 <= at <= certified.upper * (1 + CLOSE) + 1e-12, epsilon


def test_tails() -> None:
    loss = PrivacyLoss(((BIT, 2),))
    at = np.array([0.0, 2 * math.log(3)])  # three of four with both kept or one of them; a tie does not count
    assert shown(loss).tail(at) == pytest.approx([0.75**2, 0.0])


def test_word_dropout_by_formula() -> None:
    # Behind dropout 1/2 the loss ln 3 of a bit is ln(1/2 + 3/2): δ = 1/2·3/4·(1 − e^ε₀/3), e^ε₀ = 2e^ε − 1.
    found = shown(PrivacyLoss(((BIT, 1),)))
    truth = 0.375 * (1 - (2 * math.exp(0.3) - 1) / 3)
    assert found.delta(np.array([0.3]), number("0.5")) == pytest.approx([truth])


def test_an_infinite_loss_is_not_among_the_finite() -> None:
    found = shown(PrivacyLoss(((AtomLoss(((number(1), number("0.2")),), number("0.8")), 3),)))
    assert (found.losses.tolist(), found.infinite) == ([3.0], pytest.approx(1 - 0.2**3))
    assert found.masses == pytest.approx([0.2**3])
    certain = shown(PrivacyLoss(((AtomLoss((), number(1)), 1),)))
    assert certain.delta(np.array([0.0, 5.0])).tolist() == [1.0, 1.0]


def test_a_pattern_is_joined_whole() -> None:
    comb = LossMasses(np.arange(4000.0), np.tile([0.0] * 9 + [1 / 400], 400), period=10)
    losses, masses = comb.histogram(200)
    assert len(losses) == 200
    assert masses == pytest.approx(1 / 200)
