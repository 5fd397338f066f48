"""Sums whose noise has one law may be matched in any order: bounds from the centres, and code without one."""

import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

import dpassay
from dpassay.core.guarantee import make_guarantee
from dpassay.trace.findings.explaining import MATCHED
from dpassay.trace.findings.suggesting import suggested
from dpassay.trace.natural.budget import TimeBudget
from dpassay.trace.replay.trials import agreeing
from dpassay.trace.watch.tracer import Tracer

TRIALS = 15


def bound(code: Callable[..., Any], pair: tuple[Any, Any], epsilon: float, delta: float = 0) -> tuple[float, str, bool]:
    """ε as watched, what differs in a few trials, and whether sums were matched in another order."""
    tracer = Tracer(code)
    tracer.run(pair[0])
    watched = suggested(tracer, *pair, make_guarantee(epsilon, delta))
    limits: dict[str, Any] = {"alpha": 0.001, "least": TRIALS, "most": TRIALS, "budget": TimeBudget(60.0)}
    trials = agreeing(tracer, pair, watched.sums, watched.matching, **limits)
    return float(watched.upper.b), trials.different, watched.matching is not None


def numbers(counts: list[float], rng: Any) -> list[float]:
    return sorted(c + rng.laplace(0, 2) for c in counts)


def locations(counts: list[float], rng: Any) -> list[float]:
    return sorted(rng.laplace(c, 2) for c in counts)


def array(counts: list[float], rng: Any) -> Any:
    return np.sort(np.array(counts) + rng.laplace(0, 2, len(counts)))


def matrix(counts: list[float], rng: Any) -> Any:
    return np.sort((np.array(counts).reshape(2, -1) + rng.laplace(0, 2, (2, len(counts) // 2))).reshape(-1))


def by_formula(counts: list[float], rng: Any) -> list[float]:
    found = []
    for c in counts:
        u = rng.random() - 0.5
        found.append(float(c - 2 * np.sign(u) * np.log(1 - 2 * np.abs(u))))
    return sorted(found)


def at_two_lines(counts: list[float], rng: Any) -> tuple[float, float]:
    one = counts[0] + rng.laplace(0, 2)
    other = counts[1] + rng.laplace(0, 2)
    return max(one, other), min(one, other)


def with_a_total(counts: list[float], rng: Any) -> tuple[list[float], float]:
    """Only the first two are sorted."""
    noisy = sorted(c + rng.laplace(0, 2) for c in counts[:2])
    return noisy, counts[2] + rng.laplace(0, 2)


def by_name(rows: list[tuple[str, float]], rng: Any) -> list[tuple[str, float]]:
    return sorted((name, c + rng.laplace(0, 2)) for name, c in rows)


@pytest.mark.long(every=3)
@pytest.mark.parametrize(
    ("code", "pair", "epsilon"),
    [
        (numbers, ([50, 0], [0, 50]), 0),
        (numbers, ([50, 0], [1, 50]), 1 / 2),
        (numbers, ([4, 0, 2], [0, 3, 4.5]), (1 + 0.5) / 2),
        (locations, ([50, 0], [1, 50]), 1 / 2),
        (array, ([10, 0, 5], [5, 10, 0]), 0),
        (array, ([10, 0, 5], [5, 11, 0]), 1 / 2),
        (matrix, ([10, 0, 5, 7], [5, 7, 0, 11]), 1 / 2),
        (by_formula, ([50, 0], [0, 50]), 0),
        (at_two_lines, ([9, 0], [1, 9]), 1 / 2),
        (with_a_total, ([60.5, 0, 60], [0, 60.5, 61]), 1 / 2),
        (by_name, ([("ann", 3), ("bob", 9)], [("bob", 9), ("ann", 3)]), 0),
    ],
)
def test_the_loss_is_that_of_the_centres_by_size(code: Callable[..., Any], pair: Any, epsilon: float) -> None:
    """The distance of the sorted centres in l1, divided by the scale of 2."""
    upper, different, matched = bound(code, pair, 1)
    assert matched
    assert not different
    assert upper == pytest.approx(epsilon, rel=1e-9, abs=1e-12)


def test_gaussian_noise_is_matched_at_a_delta() -> None:
    """A shift by 1 at σ = 1: δ(ε) = Φ(½ − ε) − e^ε·Φ(−½ − ε)."""
    truth = brentq(lambda e: norm.cdf(0.5 - e) - math.exp(e) * norm.cdf(-0.5 - e) - 0.01, 0, 10, xtol=1e-12)
    code = lambda counts: sorted(c + random.gauss(0, 1) for c in counts)  # noqa: E731
    upper, different, matched = bound(code, ([7, 3], [3, 8]), 3, 0.01)
    assert matched
    assert not different
    assert upper == pytest.approx(truth, rel=1e-6)


def test_what_is_bounded_within_the_claim_is_not_matched() -> None:
    upper, different, matched = bound(numbers, ([1, 0], [0, 1]), 1)
    assert (upper, different, matched) == (pytest.approx(1), "", False)


def which_is_largest(counts: list[float], rng: Any) -> int:
    noisy = [c + rng.laplace(0, 2) for c in counts]
    return noisy.index(max(noisy))


def with_the_largest_first(counts: list[float], rng: Any) -> tuple[list[float], bool]:
    noisy = [c + rng.laplace(0, 2) for c in counts]
    return sorted(noisy), noisy[0] > noisy[1]


def with_the_noise(counts: list[float], rng: Any) -> tuple[list[float], float]:
    noise = rng.laplace(0, 2, 2)
    return sorted((np.array(counts) + noise).tolist()), float(noise[0])


def one_number_for_all(counts: list[float], rng: Any) -> list[float]:
    noise = rng.laplace(0, 2)
    return sorted(c + noise for c in counts)


def rarely_by_position(counts: list[float], rng: Any) -> Any:
    """Sorted, unless the noise is far out."""
    noisy = [c + rng.laplace(0, 2) for c in counts]
    return sorted(noisy) if max(noisy) < 90 else noisy


def raised_by_noise(counts: list[float], rng: Any) -> list[float]:
    """The output is a function of the sums, but the second centre rarely depends on the noise of the first."""
    one = counts[0] + rng.laplace(0, 2)
    return sorted([one, counts[1] + (20 if one > 60 else 0) + rng.laplace(0, 2)])


@pytest.mark.parametrize(
    "code",
    [
        *(which_is_largest, with_the_largest_first, with_the_noise, one_number_for_all, rarely_by_position),
        raised_by_noise,
    ],
)
def test_code_that_shows_which_is_which_gets_no_small_bound(code: Callable[..., Any]) -> None:
    upper, different, matched = bound(code, ([50, 0], [0, 50]), 1)
    assert not matched or different
    assert upper >= 25 or different


def test_different_scales_are_not_matched() -> None:
    """5 / 1 + 5 / 2."""
    code = lambda counts, rng: sorted(c + rng.laplace(0, 1 + k) for k, c in enumerate(counts))  # noqa: E731
    upper, different, matched = bound(code, ([5, 0], [0, 5]), 1)
    assert not matched
    assert not different
    assert upper == pytest.approx(7.5)


def test_only_sums_of_one_scale_are_matched_with_one_another() -> None:
    """Scales 2, 2 and 4: the first two by size, and 1 / 4 for the third."""
    code = lambda counts, rng: sorted(c + rng.laplace(0, b) for c, b in zip(counts, (2, 2, 4), strict=True))  # noqa: E731
    upper, different, matched = bound(code, ([9, 1, 5], [1, 9, 6]), 1)
    assert matched
    assert not different
    assert upper == pytest.approx(0.25)


def test_a_trace_says_that_sums_were_matched() -> None:
    result = dpassay.trace(numbers, pairs=[([50, 0], [0, 50])], epsilon=1, hostile=False)
    assert result.pair_epsilon.upper == 0
    assert result.traced_epsilon.upper == 0
    assert MATCHED in result.verdict.reason
    assert not result.findings


def test_a_gap_that_depends_on_other_noise_is_not_bounded() -> None:
    """All is a function of the sums, but in e^−1/2 of the runs with 1 the second number shows the 1."""

    def code(x: float, rng: Any) -> tuple[float, float]:
        one = x + rng.laplace()
        return one, (100 * x if one > 2 else 0) + rng.laplace()

    for seed in range(3):
        result = dpassay.trace(code, pairs=[(0.0, 1.0)], epsilon=1, hostile=False, seed=seed)
        assert result.verdict.refuted or result.pair_epsilon.upper == math.inf
