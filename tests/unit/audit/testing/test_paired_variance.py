"""What runs that go together are worth."""

import math

import numpy as np
import pytest

from dpassay.audit.testing.paired_variance import efficiency_of


def test_what_runs_that_go_together_areefficiency_of():
    # Chance in ln(right/wrong) has variance Σ (aᵢ/right − bᵢ/wrong)², a and b being the guesses of the i-th two runs.
    rng = np.random.default_rng(0)
    noise = rng.integers(0, 30, 400)
    first, second = noise + rng.integers(0, 3, 400) * 1.0, noise + 1.0 + rng.integers(0, 3, 400)
    first[:5], second[3:9] = math.nan, math.nan
    cuts = np.array([2.0, 5.0, 9.0, 9.5, 20.0, 25.0])
    low, high = [-math.inf, *cuts], [*cuts, math.inf]
    right, wrong = (
        np.array([[np.sum(a <= x) + np.sum(b >= y) for y in high] for x in low])
        for a, b in ((first, second), (second, first))
    )
    found = efficiency_of(right, wrong, [first, second], cuts)
    for i, j in [(0, 0), (0, 3), (1, 4), (2, 2), (3, 5), (1, 6), (6, 6)]:
        a = 1.0 * (first <= low[i]) + (second >= high[j])
        b = 1.0 * (second <= low[i]) + (first >= high[j])
        r, w = right[i, j] + 1, wrong[i, j] + 1
        together = (np.sum(a**2) + 1) / r**2 + (np.sum(b**2) + 1) / w**2 - 2 * np.sum(a * b) / (r * w)
        assert found[i, j] == pytest.approx(min(100, (1 / r + 1 / w) / together), rel=1e-9)
    assert efficiency_of(right, wrong, [first, second[1:]], cuts) == 1.0


def test_independent_runs_are_worth_one_and_runs_of_one_noise_many():
    rng = np.random.default_rng(1)
    noise, other = rng.normal(size=(2, 20_000))
    cuts = np.array([-2.0, 2.0])

    def worth(first, second):
        right = np.array([[np.sum(first <= x) + np.sum(second >= y) for y in (-2, 2, 9e9)] for x in (-9e9, -2, 2)])
        wrong = np.array([[np.sum(second <= x) + np.sum(first >= y) for y in (-2, 2, 9e9)] for x in (-9e9, -2, 2)])
        return float(efficiency_of(right, wrong, [first, second], cuts)[1, 1])

    assert worth(noise, other + 0.1) == pytest.approx(1, abs=0.1)  # both far out by chance: in one of 500
    assert worth(noise, noise + 0.1) > 5  # a tenth of a spread moves one in ten across such a threshold
