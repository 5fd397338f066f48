"""Staircase noise. Expected values come from sums over the rectangles of its density, and from closed forms."""

import itertools
import math

import numpy as np
import pytest

from dpassay.api import check
from dpassay.core.numbers import ONE, down, number, up
from dpassay.errors import InputError
from dpassay.evidence.certificate import certify
from dpassay.evidence.verifier import verify
from dpassay.exact.analysis import analyse
from dpassay.exact.pld.noises.staircase import staircase_loss
from dpassay.exact.pld.privacy_loss import PrivacyLoss
from dpassay.exact.profiles.profile import PrivacyProfile
from dpassay.pipeline.distributions import Shifted
from dpassay.pipeline.parser import parse
from dpassay.pipeline.regions import Array
from dpassay.pipeline.staircase import Staircase


def profile(text: str, dim: int = 1) -> PrivacyProfile:
    pipeline = parse(text, dim)
    return analyse(pipeline, pipeline.neighbours)


def pieces(epsilon: float, gamma: float, shift: float) -> tuple[Array, Array]:
    """Probabilities around 0 and around the shift of all intervals on which both densities are constant."""
    top = -math.expm1(-epsilon) / (2 * (gamma + math.exp(-epsilon) * (1 - gamma)))

    def density(t: Array) -> Array:
        k = np.floor(np.abs(t))
        return top * np.exp(-epsilon * np.where(np.abs(t) - k < gamma, k, k + 1))

    k = np.arange(int(40 / epsilon) + int(shift) + 3)
    edges = np.concatenate([k, k + gamma])
    cuts = np.unique(np.concatenate([edges, -edges, shift + edges, shift - edges]))
    middles, widths = (cuts[1:] + cuts[:-1]) / 2, np.diff(cuts)
    return density(middles) * widths, density(middles - shift) * widths


def summed(parts: tuple[Array, Array], epsilon: float) -> float:
    return float(np.maximum(0, parts[0] - math.exp(epsilon) * parts[1]).sum())


@pytest.mark.parametrize("shift", [0.05, 0.3, 0.7, 1.0, 1.1, 2.0, 2.7, 5.35])
@pytest.mark.parametrize(("epsilon", "gamma"), [(0.5, 0.3), (1.0, 0.0), (1.0, 0.5), (1.5, 1.0), (3.0, 0.9), (1.0, 0.1)])
def test_one_number(epsilon: float, gamma: float, shift: float) -> None:
    parts = pieces(epsilon, gamma, shift)
    found = profile(f"query(l1, {shift}) | staircase({epsilon}, 1, {gamma})")
    for claimed in (0.0, 0.2, 0.5, 1.3, 2.2, 7.0):
        delta = found.delta(number(claimed))
        assert down(delta) == pytest.approx(summed(parts, claimed), abs=1e-13)
        assert up(delta) - down(delta) < 1e-14
    seen = parts[0] > 1e-10
    largest = float(np.log(parts[0][seen] / parts[1][seen]).max())
    assert down(found.pure) == pytest.approx(largest, rel=1e-9) == pytest.approx(math.ceil(shift) * epsilon)
    assert up(found.pure) == pytest.approx(down(found.pure), rel=1e-15)


def test_only_the_ratio_of_distance_and_sensitivity_counts() -> None:
    # ⌈distance/sensitivity⌉, to the last digit.
    for distance, steps in (("1.0000000000000000000000000000001", 2), ("1 + 1e-45", 2), ("1 - 1e-45", 1), ("3/7*7", 3)):
        found = check(f"query(l1, {distance}) | staircase(1, 1, 0.4)", epsilon=10, dim=1).bounds.value
        assert (found.lower, found.upper) == (steps, steps), distance
    # 0.3/0.3 and 0.1·3/0.3 are 1 exactly, though no binary number is 0.3.
    for text in ("query(l1, 0.3) | staircase(1, 0.3, 0.2)", "query(l1, 0.1*3) | staircase(1, 0.3, 0.2)"):
        assert check(text, epsilon=1, dim=1).proven
    assert check("query(l1, 1.001) | staircase(1, 1, 0.2)", epsilon=1.999, dim=1).refuted
    assert check("query(l1, 1.001) | staircase(1, 1, 0.2)", epsilon=2, dim=1).proven


def test_closed_forms() -> None:
    # At γ = 1/2 randomized response; at γ = 0 and 1 the largest loss has probability 1/2.
    assert down(profile("query(l1, 1) | staircase(1, 1, 0.5)").delta(number(0))) == pytest.approx(math.tanh(0.5))
    for gamma in (0, 1):
        delta = profile(f"query(l1, 1) | staircase(1, 1, {gamma})").delta(number(0))
        assert down(delta) == pytest.approx((1 - math.exp(-1)) / 2)


@pytest.mark.parametrize(
    ("text", "dim", "steps"),
    [
        ("query(l1, 1) | staircase(0.5, 1, 0.2)", 4, 4),  # n − 1 + ⌈D⌉
        ("query(l1, 2.5) | staircase(0.5, 1, 0.2)", 3, 5),
        ("query(linf, 2.5) | staircase(0.5, 1, 0.2)", 3, 9),  # n⌈D⌉
        ("clip(l1, 1) | staircase(0.5, 2, 0.2)", 5, 5),
        ("clamp(0, 1) | staircase(0.5, 1, 0.7)", 7, 7),
        ("category(5) | onehot(5) | staircase(0.5, 1, 0.3)", 1, 2),
        ("query(l1, 5000) | staircase(0.5, 1, 0.3)", 1, 5000),
        ("query(l1, 5000) | staircase(0.5, 1, 0.3)", 3, 5002),
        ("query(l1, 1) | staircase(0.5, 1, 0.3) | times(10)", 1, 10),
    ],
)
def test_the_largest_loss(text: str, dim: int, steps: int) -> None:
    pure = profile(text, dim).pure
    assert down(pure) <= steps * 0.5 <= up(pure)
    assert up(pure) - down(pure) < 1e-9 * steps


def test_an_l2_ball_is_enclosed() -> None:
    # At most 2.5 apart in l2: shifts just above (2, 1, 1), as 4 + 1 + 1 < 2.5², take 3 + 2 + 2 steps.
    pure = profile("query(l2, 2.5) | staircase(0.5, 1, 0.2)", 3).pure
    assert down(pure) <= 3.5 <= up(pure)
    assert down(pure) >= 2.5


def test_two_coordinates_on_a_cube_are_exact() -> None:
    p, q = pieces(1.0, 0.3, 1.5)
    found = profile("clamp(0, 1.5) | staircase(1, 1, 0.3)", 2)
    for epsilon in (0.2, 1.0, 2.5, 3.9):
        truth = np.maximum(0, np.outer(p, p) - math.exp(epsilon) * np.outer(q, q)).sum()
        delta = found.delta(number(epsilon))
        assert down(delta) <= truth * (1 + 1e-9)
        assert up(delta) >= truth * (1 - 1e-9)
        assert up(delta) - down(delta) < 1e-6


def test_small_shifts_in_l1_stay_within_the_interval() -> None:
    # Two coordinates that share a distance of 1: the true loss of any such pair is at most the upper bound.
    found = profile("query(l1, 1) | staircase(1, 1, 0.3)", 2)
    for share in (0.1, 0.25, 0.5):
        first, second = pieces(1.0, 0.3, share), pieces(1.0, 0.3, 1 - share)
        for epsilon in (0.2, 1.0, 1.5):
            p, q = (np.outer(one, other) for one, other in zip(first, second, strict=True))
            truth = np.maximum(0, p - math.exp(epsilon) * q).sum()
            assert truth <= up(found.delta(number(epsilon))) + 1e-12
    assert down(found.delta(number("0.2"))) >= summed(pieces(1.0, 0.3, 1.0), 0.2) - 1e-12


def test_losses_of_more_steps_than_are_listed() -> None:
    found = profile("query(l1, 1500.5) | staircase(0.01, 1, 0.3)")
    truth = summed(pieces(0.01, 0.3, 1500.5), 14.0)
    assert down(found.delta(number(14))) <= truth * (1 + 1e-9)
    assert truth <= up(found.delta(number(14))) * (1 + 1e-9)
    assert down(found.delta(number(14))) > 0.3


@pytest.mark.long(every=5)
@pytest.mark.parametrize("claim", [("1", "0"), ("0.4", "0"), ("1", "0.01"), ("0.2", "0.1"), ("3", "1e-3")])
@pytest.mark.parametrize(
    ("text", "dim"),
    [
        ("query(l1, 1) | staircase(1, 1, 0.3)", 1),
        ("query(l1, 0.3) | staircase(1, 0.3, 0)", 1),
        ("query(l1, 2.5) | staircase(0.5, 1, 0.2)", 3),
        ("query(linf, 2.5) | staircase(0.1, 1, 0.2)", 3),
        ("clip(l2, 1) | staircase(0.3, 1, 0.4)", 5),
        ("clamp(0, 1) | staircase(0.3, 1, 0.4)", 3),
        ("query(l1, 5000) | staircase(0.001, 1, 0.4)", 3),
        ("query(l1, 1) | staircase(0.1, 1, 0.4) | times(10)", 1),
    ],
)
def test_verdicts_have_certificates(text: str, dim: int, claim: tuple[str, str]) -> None:
    verdict = check(text, dim=dim, epsilon=claim[0], delta=claim[1])
    assert verify(certify(verdict)).verdict == verdict.word


def test_the_law() -> None:
    noise, t = Staircase("0.8", 2, "0.3"), np.linspace(-60, 60, 120_001)
    density = np.exp(noise.log_density(t))
    assert np.trapezoid(density, t) == pytest.approx(1, abs=1e-3)
    below = np.cumsum(density) * (t[1] - t[0])
    assert np.abs(noise.cdf(t) - below).max() < 1e-3
    assert np.abs(noise.survival(t) - noise.cdf(-t)).max() < 1e-15
    levels = noise.log_density(np.array([0.0, 0.59, 0.61, 2.59, 2.61, -2.61]))
    assert levels - levels[0] == pytest.approx([0, 0, -0.8, -0.8, -1.6, -1.6])
    loss = PrivacyLoss.between(Shifted(noise, np.zeros(2)), Shifted(noise, np.array([0.0, 2.0])))
    assert down(loss.pure) == pytest.approx(0.8)


def test_bad_input() -> None:
    for text, message in (
        ("staircase(0, 1, 0.5)", "staircase: epsilon must be positive"),
        ("staircase(1, -1, 0.5)", "staircase: sensitivity must be positive"),
        ("staircase(1, 1, 1.5)", "staircase: gamma must be a probability, 0 to 1, got 1.5"),
        ("staircase(1, 1)", "gamma"),
    ):
        with pytest.raises(InputError, match=message):
            parse(f"query(l1, 1) | {text}", 1)


def test_probabilities_add_up() -> None:
    for gamma, shift in itertools.product(("0", "0.2", "0.5", "1"), ("0.2", "1", "1.5", "7.25")):
        loss = staircase_loss(Staircase("0.4", 1, gamma), number(shift))
        assert abs(sum((p for _, p in loss.atoms), number(0)) - ONE).b < 1e-40
