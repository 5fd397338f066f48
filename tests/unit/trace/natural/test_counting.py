"""What an event counted in two inputs' runs shows: bounds of Clopper and Pearson, held against binomial tails."""

import math

import pytest
from scipy.stats import binom

from dpassay.trace.natural.counting import Count, shown

ALPHA = 1e-3


@pytest.mark.parametrize("runs", [39, 98, 2_000])
def test_an_event_that_always_comes_and_never_comes(runs: int) -> None:
    """The least p and the largest q at which all of the runs, or none, have the event with probability α/2."""
    p = (ALPHA / 2) ** (1 / runs)
    assert math.exp(shown((runs, 0), (runs, runs), 0.0, ALPHA)) == pytest.approx(p / (1 - p), rel=1e-6)
    assert shown((runs, 0), (runs, runs), 0.1, ALPHA) == pytest.approx(math.log((p - 0.1) / (1 - p)), rel=1e-6)


def test_rates_are_bounded_by_binomial_tails() -> None:
    """For every ratio that is at most e^ε of what is shown, one of the two counts has a probability below α/2."""
    hits, runs = (180, 20), (300, 400)
    epsilon = shown(hits, runs, 0.0, ALPHA)
    assert 0 < epsilon < math.log((180 / 300) / (20 / 400))
    for k in range(1, 1000):
        q = k / 1000
        p = min(1.0, q * math.exp(epsilon) * (1 - 1e-6))
        assert min(binom.sf(hits[0] - 1, runs[0], p), binom.cdf(hits[1], runs[1], q)) < ALPHA / 2


@pytest.mark.parametrize(
    ("hits", "runs", "delta"),
    [((0, 0), (100, 100), 0.0), ((50, 50), (100, 100), 0.0), ((100, 100), (100, 100), 0.0), ((10, 0), (100, 100), 0.2)],
)
def test_counts_that_show_nothing(hits: tuple[int, int], runs: tuple[int, int], delta: float) -> None:
    assert shown(hits, runs, delta, ALPHA) == 0
    assert shown((0, 0), (0, 0), 0.0, ALPHA) == 0


def test_two_calls_show_half_of_what_both_lose() -> None:
    """Two calls of an (ε, δ)-DP mechanism satisfy (2ε, 2δ)-DP."""
    p = (ALPHA / 2) ** (1 / 98)
    two = Count("it happens", (98, 0), (98, 98), 0, 0.05, ALPHA, calls=2)
    assert two.epsilon == pytest.approx(math.log((p - 0.1) / (1 - p)) / 2, rel=1e-6)
    assert "with one input and then the other" in str(two)
