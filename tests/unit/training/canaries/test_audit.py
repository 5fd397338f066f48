"""Audits of training runs: wrong with at most the stated probability, and strong enough to be worth it."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from dpassay.core.guarantee import GDP
from dpassay.errors import InputError
from dpassay.training.canaries.audit import audit_training
from dpassay.training.canaries.guess_counts import guess_counts
from dpassay.training.canaries.scores import CanaryScores
from statistics_helper import generator, require


def gaussian_canaries(rng, m, mu, runs=1):
    """Each canary is released with standard normal noise, moved by mu if it is in: exactly mu-GDP."""
    included = rng.random(m * runs) < 0.5
    return CanaryScores(rng.normal(size=m * runs) + mu * included, included, np.arange(m * runs) // m)


def refuted_too_often(name, m, runs, repetitions):
    """p-value of how often a true guarantee is refuted; with several runs, one after the other."""
    rng, wrong = generator(name), 0
    for _ in range(repetitions):
        wrong += audit_training(gaussian_canaries(rng, m, 0.7, runs), mu=0.7, alpha=0.05, anytime=runs > 1).refuted
    return binom.sf(wrong - 1, repetitions, 0.05)


@pytest.mark.long(reduced=100, full=2000)
def test_a_true_guarantee_is_seldom_refuted(repetitions):
    name = "canaries"
    require(name, refuted_too_often(name, 200, 1, repetitions))


@pytest.mark.long(reduced=25, full=500)
def test_a_true_guarantee_is_seldom_refuted_run_by_run(repetitions):
    name = "canaries: run by run"
    require(name, refuted_too_often(name, 60, 2, repetitions))


@pytest.mark.long(reduced=100, full=2000)
def test_one_coin_for_all_canaries_seldom_refutes(repetitions):
    # With probability 0.04 all coins are shown, else none: (0, 0.04)-DP, and all guesses are right together.
    name = "canaries told all at once"
    rng, wrong = generator(name), 0
    for _ in range(repetitions):
        included = rng.random(100) < 0.5
        told = included * 1.0 if rng.random() < 0.04 else np.zeros(100)
        scores = CanaryScores(told + rng.normal(size=100) / 100, included)
        wrong += audit_training(scores, epsilon=0, delta=0.04).refuted
    require(name, binom.sf(wrong - 1, repetitions, 0.05))


@pytest.mark.parametrize(
    ("mu", "epsilon", "m", "least"),
    # Of a mechanism that is exactly (epsilon, 1e-5)-DP by being mu-GDP; the best of jax-privacy 2.0's bounds at 10³
    # and 10⁵ canaries, for one seed and with its default thresholds, were 1.42 and 2.40 of 4.
    [(0.9249, 4.0, 1_000, 1.42), (0.9249, 4.0, 100_000, 2.40)],
)
def test_gaussian_canaries_show_more_than_other_auditors_do(mu, epsilon, m, least):
    def at_delta(mu, delta=1e-5):
        from scipy.optimize import brentq
        from scipy.stats import norm

        def excess(e):
            return norm.cdf(-e / mu + mu / 2) - math.exp(e) * norm.cdf(-e / mu - mu / 2) - delta

        return brentq(excess, 0, 50) if mu > 0 and excess(0) > 0 else 0.0

    assert at_delta(mu) == pytest.approx(epsilon, abs=1e-3)
    rng = generator("gaussian canaries")
    found = [audit_training(gaussian_canaries(rng, m, mu), mu=0.1).mu.lower for _ in range(5)]
    assert least < at_delta(float(np.median(found)))


def test_what_is_refuted_says_so():
    verdict = audit_training(gaussian_canaries(generator("clear"), 1000, 3.0), epsilon=1, delta=1e-5)
    assert verdict.refuted
    assert verdict.epsilon.lower > 1
    assert math.isinf(verdict.epsilon.upper)
    assert verdict.alpha == 0.05
    assert "1,000 canaries in one run" in verdict.reason
    witness = verdict.witness
    assert witness.right + witness.wrong == sum(row[0] + row[1] for row in witness.table)
    assert witness.right == witness.table[0][0] + witness.table[1][1]
    assert sum(row[2] for row in witness.table) == 1000
    assert verdict.to_dict()["verdict"] == "refuted"


def test_scores_that_tell_nothing_leave_it_open():
    rng = generator("nothing")
    verdict = audit_training(CanaryScores(rng.normal(size=500), rng.random(500) < 0.5), epsilon=0.5)
    assert verdict.open
    assert "proves nothing" in verdict.reason


def test_more_runs_show_more_than_one():
    rng = generator("more runs")
    one, ten = (audit_training(gaussian_canaries(rng, 100, 2.0, runs), mu=0.1).mu.lower for runs in (1, 30))
    assert ten > one


def test_alpha_is_divided_and_never_exceeded():
    for m in (2, 10, 1000, 10**6):
        for mu in (0.01, 1, 30):
            counts = guess_counts(GDP(mu), m, 0.05)
            assert sum(count.alpha for count in counts) <= 0.05 * (1 + 1e-12)
            assert all(1 <= count.named <= m for count in counts)


def test_canaries_whose_coins_are_not_fair_get_a_warning():
    scores = CanaryScores(np.arange(100.0), np.ones(100, dtype=bool))
    assert "fair coins" in audit_training(scores, epsilon=1).warnings[0]


@pytest.mark.parametrize(
    ("claimed", "said"),
    [
        ({"epsilon": 1, "alpha": 0.7}, "at most 0.2"),
        ({}, "state the claim"),
        ({"epsilon": -1}, "epsilon must be"),
        ({"epsilon": 1, "neighbours": "friends"}, "unknown neighbors"),
    ],
)
def test_bad_claims_get_a_sentence(claimed, said):
    with pytest.raises(InputError, match=said):
        audit_training(gaussian_canaries(generator("bad"), 10, 1.0), **claimed)


@pytest.mark.parametrize("runs", [1, 500])
def test_the_order_of_a_file_tells_nothing(runs):
    # All scores are equal, so the run tells nothing: it is 0-DP. The canaries that were in are listed first.
    included = np.arange(1000) < 500
    scores = CanaryScores(np.zeros(1000), included, np.arange(1000) % runs)
    assert not audit_training(scores, epsilon=0.5, delta=1e-5).refuted


def test_probabilities_that_doubles_do_not_hold_are_no_trouble():
    # All of 20,000 coins are guessed right: below 2^-10000 for one half of them under 0-DP.
    included = np.random.default_rng(0).random(20_000) < 0.5
    assert audit_training(CanaryScores(1.0 * included, included), epsilon=1, anytime=True).refuted
