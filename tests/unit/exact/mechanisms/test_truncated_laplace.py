"""Truncated Laplace noise. Expected values come from sums over fine grids of its density, and from the literature."""

import math

import numpy as np
import pytest

from dpassay.api import check
from dpassay.core.numbers import down, number, up
from dpassay.errors import InputError
from dpassay.evidence.certificate import certify
from dpassay.evidence.verifier import verify
from dpassay.exact.analysis import analyse
from dpassay.pipeline.parser import parse
from dpassay.pipeline.truncated_laplace import TruncatedLaplace

STEP = 1e-4


def on_a_grid(bound: float, shift: float, epsilon: float) -> float:
    """δ(ε) of one coordinate, scale 1, by summation over the middles of small cells."""
    t = np.arange(-bound, bound + shift, STEP) + STEP / 2
    total = 2 * -math.expm1(-bound)
    p, q = (np.where(np.abs(t - c) <= bound, np.exp(-np.abs(t - c)), 0) / total for c in (0.0, shift))
    return float(np.maximum(0, p - math.exp(epsilon) * q).sum() * STEP)


@pytest.mark.parametrize(("bound", "shift"), [(3, 1), (3, 2.9), (2, 3), (1, 1.9), (1, 2), (1, 5), (10, 1)])
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 0.9, 1.0, 2.5])
def test_one_coordinate(bound: float, shift: float, epsilon: float) -> None:
    pipeline = parse(f"query(l1, {shift}) | truncated_laplace(1, {bound})", 1)
    delta = analyse(pipeline, pipeline.neighbours).delta(number(epsilon))
    assert down(delta) == pytest.approx(on_a_grid(bound, shift, epsilon), abs=3e-4)
    assert up(delta) - down(delta) < 1e-12


def test_the_bound_of_the_literature() -> None:
    # Geng and others: A = b ln(1 + (e^(Δ/b) − 1)/(2δ)) gives (Δ/b, δ)-DP, and no smaller bound does.
    bound = math.log(1 + (math.e - 1) / (2 * 1e-3))
    assert check(f"query(l1, 1) | truncated_laplace(1, {bound + 1e-9})", epsilon=1, delta="1e-3", dim=1).proven
    assert check(f"query(l1, 1) | truncated_laplace(1, {bound - 1e-9})", epsilon=1, delta="1e-3", dim=1).refuted
    assert check("query(l1, 1) | truncated_laplace(1, 100)", epsilon=50, dim=1).refuted


def test_two_coordinates_are_enclosed() -> None:
    t = np.arange(-3, 4, 0.01) + 0.005
    p, q = (np.where(np.abs(t - c) <= 3, np.exp(-np.abs(t - c)), 0) for c in (0.0, 1.0))
    p, q = p / p.sum(), q / q.sum()
    pipeline = parse("clamp(0, 1) | truncated_laplace(1, 3)", 2)
    profile = analyse(pipeline, pipeline.neighbours)
    for epsilon in (0.2, 1.0, 2.0, 4.0):
        truth = np.maximum(0, np.outer(p, p) - math.exp(epsilon) * np.outer(q, q)).sum()
        delta = profile.delta(number(epsilon))
        assert down(delta) - 2e-3 <= truth <= up(delta) + 2e-3
    assert up(profile.delta(number(2))) == pytest.approx(1 - (1 - 0.0450152865786) ** 2, rel=1e-9)


def test_an_l1_distance_is_worst_in_one_coordinate() -> None:
    for dim in (1, 7):
        pipeline = parse("query(l1, 1) | truncated_laplace(1, 3)", dim)
        assert up(analyse(pipeline, pipeline.neighbours).delta(number(1))) == pytest.approx(0.0450152865786, rel=1e-9)


def leaked(bound: float, shift: float) -> float:
    """P(T < s − a), scale 1, from the distribution function on either side of 0."""
    total, t = -math.expm1(-bound), min(bound, shift - bound)
    half = -math.expm1(-abs(t)) / (2 * total)
    return 0.5 + math.copysign(half, t)


def composed(bound: float, shift: float, count: int, epsilon: float) -> float:
    """δ(ε) of several coordinates or steps: the losses of small cells, rounded to a fine grid and convolved."""
    t, step = np.arange(-bound, bound + shift, STEP) + STEP / 2, 1e-3
    total = 2 * -math.expm1(-bound)
    p, q = (np.where(np.abs(t - c) <= bound, np.exp(-np.abs(t - c)), 0) * STEP / total for c in (0.0, shift))
    both = (p > 0) & (q > 0)
    at = np.rint((np.abs(t - shift) - np.abs(t))[both] / step).astype(int)
    one = np.bincount(at - at.min(), weights=p[both])
    whole, least = one, int(at.min())
    for _ in range(count - 1):
        whole, least = np.convolve(whole, one), least + int(at.min())
    losses = (least + np.arange(len(whole))) * step
    finite = float((whole * np.maximum(0, -np.expm1(epsilon - losses))).sum())
    return finite + 1 - (1 - leaked(bound, shift)) ** count


@pytest.mark.parametrize(("bound", "shift", "count"), [(3, 1, 2), (3, 1, 10), (2, 3, 4), (1, 1.9, 3), (10, 1, 5)])
def test_steps_and_coordinates_are_exact(bound: float, shift: float, count: int) -> None:
    for text, dim in (
        (f"clamp(0, {shift}) | truncated_laplace(1, {bound}) | times({count})", 1),
        (f"clamp(0, {shift}) | truncated_laplace(1, {bound})", count),
    ):
        pipeline = parse(text, dim)
        profile = analyse(pipeline, pipeline.neighbours)
        for epsilon in (0.0, 0.4, 1.3):
            found = profile.delta(number(epsilon))
            assert down(found) == pytest.approx(composed(bound, shift, count, epsilon), abs=3e-3)
            assert up(found) - down(found) < 2e-4


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("clamp(0, 1) | truncated_laplace(1, 3) | times(10)", 1.0),
        ("poisson(0.5) | clamp(0, 1) | truncated_laplace(1, 3) | times(10)", 0.5),
        ("subsample(1, 4) | clamp(0, 1) | truncated_laplace(1, 3) | times(10)", 0.25),
    ],
)
@pytest.mark.parametrize("dim", [1, 2])
def test_no_epsilon_holds_below_what_all_steps_leak(text: str, rate: float, dim: int) -> None:
    one = rate * (1 - (1 - leaked(3, 1)) ** dim)
    leak = 1 - (1 - one) ** 10
    below = check(text, dim=dim, epsilon=1000, delta=leak * (1 - 1e-9))
    above = check(text, dim=dim, epsilon=10 * dim, delta=leak * (1 + 1e-9))
    assert below.refuted
    assert below.epsilon.lower == math.inf
    assert above.proven
    assert all(verify(certify(verdict)).verdict == verdict.word for verdict in (below, above))


def test_a_record_that_is_revealed_in_some_steps() -> None:
    # Without noise, or without a bound before it, a record is revealed whenever it takes part.
    for text in ("poisson(0.1) | clamp(0, 1) | times(5)", "poisson(0.1) | laplace(1) | times(5)"):
        below = check(text, dim=1, epsilon=1000, delta=(1 - 0.9**5) * (1 - 1e-9))
        assert below.refuted
        assert verify(certify(below)).verdict == "refuted"
        assert check(text, dim=1, epsilon=0, delta=(1 - 0.9**5) * (1 + 1e-9)).proven


@pytest.mark.long(every=3)
@pytest.mark.parametrize("claim", [("1", "0"), ("1", "0.01"), ("1", "0.2"), ("0.2", "0.01")])
@pytest.mark.parametrize(
    ("text", "dim"),
    [
        ("query(l1, 1) | truncated_laplace(1, 3)", 1),
        ("query(l1, 1) | truncated_laplace(1, 10)", 4),
        ("clamp(0, 1) | truncated_laplace(4, 30)", 3),
        ("clip(l2, 1) | truncated_laplace(4, 30)", 3),
        ("query(l1, 1) | truncated_laplace(10, 100) | times(10)", 1),
        ("query(l1, 1.5) | round | truncated_laplace(10, 100) | times(3)", 2),
        ("poisson(0.3) | clamp(0, 1) | truncated_laplace(4, 30) | times(3)", 2),
    ],
)
def test_verdicts_have_certificates(text: str, dim: int, claim: tuple[str, str]) -> None:
    verdict = check(text, dim=dim, epsilon=claim[0], delta=claim[1])
    assert verify(certify(verdict)).verdict == verdict.word


def test_the_law_and_bad_input() -> None:
    noise, t = TruncatedLaplace("0.7", 2), np.linspace(-2, 2, 40_001)
    density = np.exp(noise.log_density(t))
    assert np.trapezoid(density, t) == pytest.approx(1, abs=1e-6)
    assert noise.cdf(t)[[0, 20_000, -1]] == pytest.approx([0, 0.5, 1])
    assert np.gradient(noise.cdf(t), t)[5_000] == pytest.approx(density[5_000], rel=1e-4)
    assert np.isneginf(noise.log_density(np.array([2.1])))
    assert np.abs(noise.draw((1000,), np.random.default_rng(0))).max() <= 2
    with pytest.raises(InputError, match="truncated_laplace: bound must be positive"):
        parse("query(l1, 1) | truncated_laplace(1, 0)", 1)
    with pytest.raises(InputError, match="truncated_laplace: scale must be positive"):
        parse("query(l1, 1) | truncated_laplace(-1, 1)", 1)
