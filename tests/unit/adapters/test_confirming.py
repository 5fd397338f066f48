"""The test by which an object confirms its formula: its intervals, and what it can and cannot tell apart."""

import math
from typing import Any

import numpy as np
import pytest

from dpassay.adapters.confirming import ConfirmingTrial, by_runs, clopper_pearson

LAPLACE = "query(l1, 1) | laplace(2)"


@pytest.mark.parametrize(("hits", "runs"), [(0, 50), (1, 50), (20, 50), (50, 50)])
def test_each_end_of_an_interval_is_wrong_at_the_stated_rate(hits: int, runs: int) -> None:
    """By the binomial distribution: at either end, as many hits or more extreme ones have just that probability."""
    level = 1e-4
    low, high = clopper_pearson(hits, runs, level)

    def chance(p: float, counts: range) -> float:
        return math.fsum(math.comb(runs, k) * p**k * (1 - p) ** (runs - k) for k in counts)

    assert low == 0 if hits == 0 else chance(low, range(hits, runs + 1)) == pytest.approx(level, rel=1e-6)
    assert high == 1 if hits == runs else chance(high, range(hits + 1)) == pytest.approx(level, rel=1e-6)


@pytest.mark.parametrize("dim", [1, 3, 50])
def test_an_object_that_does_what_its_formula_says_is_confirmed(dim: int) -> None:
    rng = np.random.default_rng(0)
    trials = [ConfirmingTrial(x, x) for x in ([0.0] * dim, [1.0] + [0.0] * (dim - 1))]
    assert by_runs(lambda x: x + rng.laplace(scale=2, size=dim), LAPLACE, dim, trials).agrees


@pytest.mark.parametrize(
    "noise",
    [
        lambda rng: rng.laplace(scale=2) * np.ones(3),
        lambda rng: rng.laplace(scale=1, size=3),
        lambda rng: rng.normal(scale=2 * math.sqrt(2), size=3) * 0.6,
        lambda rng: abs(rng.laplace(scale=2, size=3)),
        lambda rng: rng.laplace(scale=2, size=4),
        lambda rng: rng.laplace(scale=2, size=3) * np.array([1, 1, 0]),
    ],
    ids=["shared", "half", "normal", "one-sided", "one more", "none for the last"],
)
def test_other_noise_is_told_apart(noise: Any) -> None:
    rng = np.random.default_rng(0)
    found = by_runs(lambda x: noise(rng)[: len(x) + 1] + 0, LAPLACE, 3, [ConfirmingTrial([0.0] * 3, [0.0] * 3)])
    assert not found.agrees
    assert found.sentence.startswith("On the input [0.0, 0.0, 0.0] the")


def test_noise_that_comes_twice_is_told_apart() -> None:
    """Each number has the right law, but every other run repeats the one before."""
    rng = np.random.default_rng(0)
    drawn: list[float] = []

    def run(x: float) -> float:
        drawn.append(drawn[-1] if len(drawn) % 2 else rng.laplace(scale=2))
        return x + drawn[-1]

    found = by_runs(run, LAPLACE, 1, [ConfirmingTrial(0.0, 0.0)])
    assert "the change between two runs" in found.sentence
    assert not found.agrees
