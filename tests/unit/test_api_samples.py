"""Exact bounds and samples in one verdict."""

import math

import numpy as np
import pytest

from dpassay import InputError, Open, Proven, Refuted, check
from dpassay.pipeline.distributions import Laplace, Pmf, Shifted

PAIR = [(0.0, 1.0)]


class Noisy:
    """Laplace noise of scale 1/2: ε is 2 for inputs that are 1 apart."""

    def sample(self, x, n, rng):
        return x + rng.laplace(scale=0.5, size=(n, 1))

    def distribution(self, x):
        return Shifted(Laplace(0.5), np.array([float(x)]))


def test_samples_stand_beside_the_exact_answer():
    verdict = check("clip(l1, 1) | laplace(2)", epsilon=1, dim=3, runs=5_000)
    assert isinstance(verdict, Proven)
    assert verdict.epsilon.lower == pytest.approx(1)
    assert verdict.epsilon.upper == pytest.approx(1)
    assert verdict.runs == 5_000
    assert verdict.alpha == 0.001
    assert "5,000 runs show an epsilon of at least" in verdict.reason
    assert "guessing-game" in {theorem.value for theorem in verdict.theorems}


def test_a_refuted_claim_keeps_its_exact_witness():
    verdict = check("clip(l2, 1) | laplace(2)", epsilon=1, dim=16, runs=20_000)
    assert isinstance(verdict, Refuted)
    assert verdict.epsilon.lower == pytest.approx(4)  # √16
    assert verdict.witness.pair.distance(1) is not None


def test_samples_raise_the_lower_bound_where_no_pair_is_known():
    # Two different noises in a row: the exact analysis has no pair at δ > 0.
    text = "clip(linf, 1) | laplace(1) | gaussian(0.1)"
    alone = check(text, epsilon=3, delta=1e-6, dim=1)
    beside = check(text, epsilon=3, delta=1e-6, dim=1, runs=20_000)
    assert beside.epsilon.lower > alone.epsilon.lower
    assert beside.epsilon.upper == alone.epsilon.upper


def test_code_that_does_not_do_what_its_formula_says(monkeypatch):
    from dpassay.pipeline.stages.noises.additive import Additive

    monkeypatch.setattr(Additive, "run", lambda self, batch, rng: np.asarray(batch, dtype=float))
    verdict = check("clip(l1, 1) | laplace(2)", epsilon=1, dim=3, runs=5_000)
    assert isinstance(verdict, Refuted)
    assert verdict.reason.startswith(
        "The code that was run has a larger loss than its formula, whose epsilon is at most 1: "
    )


def test_a_mechanism_with_a_law_is_judged_by_its_exact_loss():
    for epsilon, kind in ((1.99, Refuted), (2, Open)):
        verdict = check(Noisy(), PAIR, epsilon=epsilon, runs=2_000)
        assert isinstance(verdict, kind)
        assert verdict.epsilon.lower == pytest.approx(2, rel=1e-12)
        assert verdict.epsilon.upper == math.inf


def test_a_finite_law():
    class Response:
        def sample(self, x, n, rng):
            return self.distribution(x).sample(n, rng)

        def distribution(self, x):
            return Pmf(np.array([0.75, 0.25]) if x == 0 else np.array([0.25, 0.75]))

    assert check(Response(), [(0, 1)], epsilon=1, runs=2_000).epsilon.lower == pytest.approx(math.log(3))


def test_a_mechanism_without_a_law_is_audited():
    verdict = check(lambda x, n, rng: x + rng.laplace(scale=0.5, size=n), PAIR, epsilon=1)
    assert isinstance(verdict, Refuted)
    assert verdict.runs > 0


def test_pairs_of_a_pipeline_need_runs():
    with pytest.raises(InputError, match="give the number of runs"):
        check("clip(l1, 1) | laplace(2)", [(np.zeros(2), np.ones(2))], epsilon=1, dim=2)
