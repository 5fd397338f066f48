"""Bounds and e-values against exact binomial tails, all outcomes of small games, and the numbers of the proofs."""

import math
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from dpassay.audit.options import check_alpha
from dpassay.audit.testing.inference import (
    AlphaBudget,
    RoundCounts,
    accuracy_bound,
    anytime_bound,
    anytime_delta,
    epsilon_at,
    log_evidence,
    log_limits,
    most_certifiable,
    p_value,
    runs_needed,
    runs_to_reach,
)
from dpassay.errors import InputError

LN3 = math.log(3)
ROUNDING = 1e-12  # of doubles, in a sum over a few hundred outcomes


def tail(right, guesses, p):
    """P(Bin(guesses, p) ≥ right), in mpmath."""
    with mp.workdps(40):
        return mp.fsum(mp.binomial(guesses, k) * p**k * (1 - p) ** (guesses - k) for k in range(right, guesses + 1))


def accuracy(epsilon, candidates=2, delta=0):
    """The most that a guesser may be right, docs/proofs/candidates.md, point 3."""
    with mp.workdps(max(40, mp.dps)):
        odds = mp.e ** mpf(epsilon)
        return (odds + (candidates - 1) * mpf(delta)) / (odds + candidates - 1)


# ── α ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "alpha", [0, 1, 2, -0.1, 0.0, 0.201, 0.999, math.nan, math.inf, "x", "0.1", True, False, None, [0.1]]
)
def test_what_is_no_error_probability(alpha):
    with pytest.raises(InputError, match=r"above 0 and at most 0\.2"):
        check_alpha(alpha)
    with pytest.raises(InputError, match=r"above 0 and at most 0\.2"):
        AlphaBudget(alpha)


@pytest.mark.parametrize("alpha", [0.001, 1e-300, 0.2, np.float64(0.05)])
def test_what_is_an_error_probability(alpha):
    assert check_alpha(alpha) == alpha
    assert type(check_alpha(alpha)) is float


@given(st.floats(1e-9, 0.2), st.lists(st.floats(0, 0.7), max_size=12))
@settings(derandomize=True, max_examples=200)
def test_a_ledger_never_gives_more_than_it_has(total, shares):
    ledger = AlphaBudget(total)
    for share in shares:
        before = ledger.left
        if share * total > before + 1e-9 * total:
            with pytest.raises(InputError, match="is left"):
                ledger.take("a test", share)
        else:
            assert ledger.take("a test", share) == share * total
    assert math.fsum(alpha for _, alpha in ledger.entries) <= total * (1 + 1e-8) + 1e-15  # so much for rounding
    assert 0 <= ledger.left <= total + 1e-15


def test_shares_that_fill_a_ledger_fit():
    ledger = AlphaBudget(0.001)
    for share in (0.1, 0.2, 0.3, 0.4):
        ledger.take("a test", share)
    assert ledger.left == 0
    with pytest.raises(InputError, match="one more asks for 1e-06 of the error probability, but only 0 is left"):
        ledger.take("one more", 0.001)


# ── What a claim allows ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("epsilon", [0.0, 1e-9, 0.3, 1.0, 8.0, 36.0, 50.0, 700.0, 745.0, 1e5])
@pytest.mark.parametrize("candidates", [2, 3, 100])
@pytest.mark.parametrize("delta", [0.0, 1e-300, 0.01, 0.9])
def test_limits_by_formula_at_any_epsilon(epsilon, candidates, delta):
    log_p, log_not = log_limits(epsilon, candidates, delta)
    with mp.workdps(60):
        odds = mp.e ** mpf(epsilon)
        below = (candidates - 1) * (1 - mpf(delta)) / (odds + candidates - 1)
        assert log_not == pytest.approx(float(mp.log(below)), rel=1e-14, abs=1e-15)
        assert log_p == pytest.approx(float(mp.log1p(-below)), rel=1e-13, abs=1e-16)
    assert log_p <= 0


@pytest.mark.parametrize(
    ("candidates", "delta", "p"),
    [
        (2, 0, 0.731058578630005),
        (3, 0, 0.576116884765829),
        (10, 0, 0.231969316684074),
        (100, 0, 0.0267236309893952),
        (2, 0.01, 0.733747992843705),
        (10, 0.01, 0.239649623517233),
        (2, 0.1, 0.757952720767004),
        (100, 0.1, 0.124051267890456),
    ],
)
def test_limits_of_the_page_on_candidates(candidates, delta, p):
    assert math.exp(log_limits(1.0, candidates, delta)[0]) == pytest.approx(p, rel=1e-14)


@given(st.floats(0, 700), st.integers(2, 1000))
@settings(derandomize=True, max_examples=100)
def test_the_epsilon_of_the_limits_is_the_epsilon(epsilon, candidates):
    log_p, log_not = log_limits(epsilon, candidates)
    assert epsilon_at(log_p - log_not, candidates) == pytest.approx(epsilon, rel=1e-12, abs=1e-12)


def test_worse_than_guessing_is_no_epsilon():
    assert epsilon_at(-3.0) == 0
    assert epsilon_at(-3.0, 1000) == pytest.approx(math.log(999) - 3)


# ── A fixed number of runs ──────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("guesses", [1, 2, 7, 40])
@pytest.mark.parametrize(("epsilon", "candidates", "delta"), [(0.0, 2, 0), (1.0, 2, 0), (4.0, 5, 0), (0.5, 3, 0.1)])
def test_p_values_are_binomial_tails(guesses, epsilon, candidates, delta):
    p = accuracy(epsilon, candidates, delta)
    for right in range(guesses + 1):
        found = p_value(right, guesses - right, epsilon, candidates, delta)
        assert found == pytest.approx(float(tail(right, guesses, p)), rel=1e-11)


def test_p_values_of_the_page_on_the_game():
    assert p_value(19, 1, 1.0) == pytest.approx(0.0158900240783734, rel=1e-12)
    assert p_value(90, 10, 1.0) == pytest.approx(2.73581280076615e-5, rel=1e-12)
    assert p_value(0, 0, 1.0) == 1
    assert p_value(0, 50, 0.0) == 1
    assert p_value(10**9, 0, 50.0) == pytest.approx(1, abs=1e-9)
    assert p_value(10, 0, 1e5) == 1


@pytest.mark.parametrize("guesses", [1, 5, 30])
@pytest.mark.parametrize("epsilon", [0.0, 0.7, 3.0])
def test_a_p_value_is_at_most_alpha_with_probability_alpha(guesses, epsilon):
    p = accuracy(epsilon)
    for right in range(guesses + 1):
        level = p_value(right, guesses - right, epsilon)
        rejecting = [k for k in range(guesses + 1) if p_value(k, guesses - k, epsilon) <= level]
        assert float(tail(min(rejecting), guesses, p)) <= level * (1 + 1e-11)


@pytest.mark.parametrize(
    ("right", "wrong", "alpha", "candidates", "epsilon"),
    [
        (19, 1, 0.05, 2, 1.28850380975727),
        (90, 10, 0.05, 2, 1.63082319274097),
        (900, 100, 0.001, 2, 1.87871986255087),
        (40, 10, 0.05, 100, 5.36920503769247),
        (10**6, 0, 0.001, 2, 11.8828623701686),
        (10**3, 0, 0.05, 100, 10.4041881886812),
        (10**6, 0, 0.001, 100, 16.4779822203032),
    ],
)
def test_bounds_of_the_proofs(right, wrong, alpha, candidates, epsilon):
    bound = accuracy_bound(right, wrong, alpha, candidates)
    assert bound <= epsilon
    assert bound == pytest.approx(epsilon, abs=2e-8)  # it gives way by a billionth of the odds


@given(st.integers(0, 60), st.integers(0, 60), st.floats(1e-6, 0.5), st.integers(2, 9), st.sampled_from([0.0, 0.05]))
@settings(derandomize=True, max_examples=150, deadline=None)
def test_a_bound_is_where_the_exact_tail_is_alpha(right, wrong, alpha, candidates, delta):
    bound = accuracy_bound(right, wrong, alpha, candidates, delta)
    at = tail(right, right + wrong, accuracy(bound, candidates, delta))
    if bound > 0:
        assert at <= alpha  # all below the bound is rejected, in the oracle's precision
        assert at >= alpha * (1 - 1e-6)
    else:
        assert at >= alpha * (1 - 1e-6)


@pytest.mark.parametrize(("guesses", "epsilon", "alpha"), [(12, 0.0, 0.1), (25, 1.0, 0.05), (25, 2.5, 0.01)])
def test_a_bound_exceeds_the_truth_with_probability_alpha_at_most(guesses, epsilon, alpha):
    too_high = [k for k in range(guesses + 1) if accuracy_bound(k, guesses - k, alpha) > epsilon]
    assert not too_high or tail(min(too_high), guesses, accuracy(epsilon)) <= alpha


def test_no_right_guess_no_bound():
    assert accuracy_bound(0, 0, 0.05) == accuracy_bound(0, 100, 0.05) == accuracy_bound(50, 50, 0.05) == 0
    assert accuracy_bound(5, 5, 0.05, 2, 0.999) == 0


# ── All outcomes of small games ─────────────────────────────────────────────────────────────────


def expectation(rounds, chances, evidence):
    """The mean of a function of (right, wrong) over a game in which a run is right, wrong or abstained."""
    total = mpf(0)
    for right in range(rounds + 1):
        for wrong in range(rounds + 1 - right):
            rest = rounds - right - wrong
            ways = math.comb(rounds, right) * math.comb(rounds - right, wrong)
            chance = mpf(ways) * chances[0] ** right * chances[1] ** wrong * chances[2] ** rest
            total += chance * mp.e ** mpf(evidence(right, wrong))
    return total


PRIORS = [(0.5, 0.5), (20.5, 3.0), (1.0, 200.0), (0.5, 40.5)]


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize(("epsilon", "candidates"), [(0.0, 2), (LN3, 2), (3.0, 2), (1.0, 5), (0.2, 40)])
@pytest.mark.parametrize("falling", [False, True])
def test_evidence_has_a_mean_of_at_most_one(prior, epsilon, candidates, falling):
    p = accuracy(epsilon, candidates)
    for named in (mpf(1), mpf("0.4")):  # how often the guesser does not abstain
        for worse in (mpf(1), mpf("0.9"), mpf("0.5")):  # and right less often than the claim allows
            right = p * worse
            mean = expectation(
                6,
                (named * right, named * (1 - right), 1 - named),
                lambda c, w: RoundCounts(c, w, 6, *prior).log_evidence(epsilon, 0.0, candidates, falling),
            )
            assert mean <= 1 + ROUNDING
            if worse == 1 and not falling:
                assert mean == pytest.approx(1, abs=1e-11)  # it is a martingale there: nothing is given away


def corners(epsilon, delta, sides):
    """Probabilities of right, wrong and abstained: the corners of what (ε, δ) allows.

    right − e^ε·wrong ≤ kδ/2, and right + wrong ≤ 1 (betting.md, point 1).
    """
    odds, cost = mp.e ** mpf(epsilon), mpf(delta) * sides / 2
    both = (odds + cost) / (1 + odds)
    return [(mpf(0), mpf(0), mpf(1)), (cost, mpf(0), 1 - cost), (both, 1 - both, mpf(0)), (mpf(0), mpf(1), mpf(0))]


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("sides", [1, 2])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.1), (1.0, 0.01), (1.0, 0.3), (3.0, 1e-6)])
def test_bets_have_a_mean_of_at_most_one(prior, sides, epsilon, delta):
    found = corners(epsilon, delta, sides)
    mixed = [tuple((a + b) / 2 for a, b in zip(x, y, strict=True)) for x, y in product(found, found)]
    for chances in mixed:
        mean = expectation(6, chances, lambda c, w: RoundCounts(c, w, 6, *prior, sides).log_evidence(epsilon, delta))
        assert mean <= 1 + ROUNDING


def test_bets_on_more_than_is_allowed_win():
    # Twice the δ that is claimed, and nothing ever wrong: the mean passes 1, or the test above could not fail.
    chances = (mpf("0.4"), mpf(0), mpf("0.6"))
    assert expectation(80, chances, lambda c, w: RoundCounts(c, w, 80).log_evidence(1.0, 0.2)) > 1


@pytest.mark.parametrize("delta", [0.0, 0.1])
@pytest.mark.parametrize("alpha", [0.2, 0.05])
def test_evidence_ever_passes_with_probability_alpha_at_most(alpha, delta):
    # Ville, exactly: all paths of 60 runs, stopped at the first look that passes. With δ the guesser never abstains.
    epsilon, prior = 1.0, (8.5, 1.5)
    p = float(accuracy(epsilon, 2, delta))
    alive, passed = {(0, 0): 1.0}, 0.0
    for _ in range(60):
        reached: dict[tuple[int, int], float] = {}
        for (right, wrong), chance in alive.items():
            for now, factor in (((right + 1, wrong), p), ((right, wrong + 1), 1 - p)):
                reached[now] = reached.get(now, 0.0) + chance * factor
        evidence = {(c, w): RoundCounts(c, w, c + w, *prior).log_evidence(epsilon, delta) for c, w in reached}
        stopped = {now for now in reached if evidence[now] >= -math.log(alpha)}
        passed += math.fsum(reached[now] for now in stopped)
        alive = {now: chance for now, chance in reached.items() if now not in stopped}
    assert alpha / 20 < passed <= alpha  # and it is no empty statement


def test_looking_often_at_the_fixed_test_is_not_allowed():
    # The number of the page: stopping at p ≤ 1/20 with p = 3/4 within 200 guesses. Evidence does not do that.
    alive, passed = {0: 1.0}, 0.0
    for run in range(1, 201):
        reached: dict[int, float] = {}
        for right, chance in alive.items():
            reached[right] = reached.get(right, 0.0) + chance * 0.25
            reached[right + 1] = reached.get(right + 1, 0.0) + chance * 0.75
        stopped = {c for c in reached if p_value(c, run - c, LN3) <= 0.05}
        passed += sum(reached[c] for c in stopped)
        alive = {c: chance for c, chance in reached.items() if c not in stopped}
    assert passed == pytest.approx(0.218067899132549, rel=1e-10)


# ── Evidence by formula ─────────────────────────────────────────────────────────────────────────


def moved(right, wrong, epsilon, a, b):
    """The mixture of anytime.md, point 2, with the prior that is moved; in mpmath."""
    with mp.workdps(150):
        p, a, b = accuracy(epsilon), mpf(a), mpf(b)
        above = mp.betainc(right + a, wrong + b, p, 1) / mp.beta(a, b)
        return mp.betainc(a, b, 0, p, regularized=True) + above / (p**right * (1 - p) ** wrong)


@pytest.mark.parametrize(
    ("right", "wrong", "a", "expected"),
    [
        (1, 0, 1, 1.04946900990072),
        (10, 0, 1, 2.74950018794565),
        (20, 1, 1, 4.92502782156286),
        (90, 10, 1, 507.828291062567),
        (90, 10, 0.5, 536.591505387330),
    ],
)
def test_evidence_of_the_page(right, wrong, a, expected):
    found = math.exp(RoundCounts(right, wrong, right + wrong, a, a).log_evidence(1.0))
    assert found == pytest.approx(expected, rel=1e-12)
    assert found == pytest.approx(float(moved(right, wrong, 1, a, a)), rel=1e-12)


@pytest.mark.parametrize(("right", "wrong"), [(0, 5), (3, 0), (500, 3), (120, 60)])
@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("epsilon", [0.0, 1.0, 6.0])
def test_evidence_by_formula(right, wrong, prior, epsilon):
    found = RoundCounts(right, wrong, right + wrong, *prior).log_evidence(epsilon)
    assert found == pytest.approx(float(mp.log(moved(right, wrong, epsilon, *prior))), rel=1e-10, abs=1e-10)


@pytest.mark.parametrize("epsilon", [50.0, 700.0, 1e5])
@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_no_evidence_against_what_is_beyond_reach(epsilon, delta):
    for tally in (RoundCounts(), RoundCounts(1000, 0, 1000), RoundCounts(1000, 1, 2000), RoundCounts(0, 1000, 1000)):
        for falling in (False, True):
            assert tally.log_evidence(epsilon, delta, 2, falling) <= 1e-9


def test_nothing_played_nothing_won():
    assert RoundCounts().log_evidence(1.0) == 0
    assert RoundCounts(0, 0, 500).log_evidence(1.0) == 0  # with δ = 0 abstaining costs nothing
    assert log_evidence([], 1.0) == 0
    assert RoundCounts(0, 0, 500).log_evidence(1.0, 0.1) < 0  # with δ it does


def test_a_bet_by_formula():
    # The mixture is read off the code's stakes and weights: the rest is the formula of betting.md, point 2.
    tally = RoundCounts(50, 5, 100, 6.0, 1.5, 1)
    stakes, weights = tally._stakes(1.0, 0.02)
    assert weights.sum() <= 1
    cost, odds = 0.01, math.e
    terms = (
        v * (1 + s * (1 - cost)) ** 50 * (1 - s * (odds + cost)) ** 5 * (1 - s * cost) ** 45
        for s, v in zip(stakes.tolist(), weights.tolist(), strict=True)
    )
    assert math.exp(tally.log_evidence(1.0, 0.02)) == pytest.approx(math.fsum(terms), rel=1e-12)


@given(
    st.integers(0, 300),
    st.integers(0, 100),
    st.integers(0, 300),
    st.sampled_from(PRIORS),
    st.sampled_from([1, 2]),
    st.sampled_from([0.0, 1e-4, 0.1]),
    st.sampled_from([2, 2, 7]),
)
@settings(derandomize=True, max_examples=120, deadline=None)
def test_evidence_falls_in_epsilon_and_in_delta(right, wrong, rest, prior, sides, delta, candidates):
    tally = RoundCounts(right, wrong, right + wrong + rest, *prior, sides)
    values = [tally.log_evidence(e, delta, candidates, True) for e in np.linspace(0, 12, 49).tolist()]
    assert all(later <= earlier + 1e-9 for earlier, later in pairwise(values))
    if candidates == 2:
        values = [tally.log_evidence(1.0, d) for d in np.linspace(1e-9, 1, 30).tolist()]
        assert all(later <= earlier + 1e-9 for earlier, later in pairwise(values))
    for epsilon in (0.0, 0.5, 2.0, 9.0):  # the falling form never says more than the other
        assert tally.log_evidence(epsilon, delta, candidates, True) <= (
            tally.log_evidence(epsilon, delta, candidates) + 1e-9
        )


def test_without_falling_several_epochs_may_reject_more_than_a_half_line():
    # The page's counterexample; so the test above is not about nothing.
    epochs = [RoundCounts(10, 40, 50, 180, 20), RoundCounts(70, 0, 70, 1, 1)]
    expected = {
        1: 297.111648930875,
        2: 0.332162788174845,
        3: 1.95891915229666,
        5: 25.4379592141701,
        8: 17.9607412257353,
    }
    for odds, value in expected.items():
        assert math.exp(log_evidence(epochs, math.log(odds))) == pytest.approx(value, rel=1e-11)
    falling = [log_evidence(epochs, math.log(odds), falling=True) for odds in expected]
    assert falling == sorted(falling, reverse=True)
    assert falling[0] == pytest.approx(math.log(297.111648930875), rel=1e-11)
    assert anytime_bound(epochs, 0.05) < math.log(2)


# ── Bounds at any time ──────────────────────────────────────────────────────────────────────────


def just_below(value):
    """A bound gives way by what evidence may be off in rounding, 1e-6, over how steeply it falls with ε; never more."""
    return pytest.approx(value - 5e-7, abs=5e-7)


def test_anytime_bounds_of_the_pages():
    assert anytime_bound([RoundCounts(90, 10, 100, 1, 1)], 0.05) == just_below(1.22112378273932)
    assert anytime_bound([RoundCounts(900, 100, 1000)], 0.001) == just_below(1.74082714129457)


@given(
    st.lists(st.tuples(st.integers(0, 500), st.integers(0, 60), st.integers(0, 50)), min_size=1, max_size=3),
    st.sampled_from([0.0, 0.0, 0.02]),
    st.sampled_from([0.05, 1e-6]),
)
@settings(derandomize=True, max_examples=60, deadline=None)
def test_an_anytime_bound_is_the_end_of_what_is_rejected(counts, delta, alpha):
    epochs = [RoundCounts(c, w, c + w + m, 4.5, 1.0) for c, w, m in counts]
    bound = anytime_bound(epochs, alpha, delta)
    needed = -math.log(alpha)
    for share in (0.0, 0.5, 0.99, 1.0):
        if bound > 0:
            assert log_evidence(epochs, share * bound, delta, 2, True) >= needed
    assert log_evidence(epochs, bound * (1 + 1e-7) + 1e-7, delta, 2, True) < needed + 1e-6
    perfect = sum(c for c, _, _ in counts)
    assert bound <= most_certifiable(max(1, perfect), alpha) + 1e-6  # anytime.md, point 8
    if delta:
        least = anytime_delta(epochs, alpha, 1.0)
        assert 0 <= least <= 1
        if least > 0:
            assert log_evidence(epochs, 1.0, least) >= needed
        if least < 1:
            assert log_evidence(epochs, 1.0, least * (1 + 1e-7) + 1e-15) < needed + 1e-6


def test_anytime_bounds_without_evidence():
    assert anytime_bound([], 0.05) == anytime_bound([RoundCounts(5, 5, 10)], 0.05) == 0
    assert anytime_delta([], 0.05, 1.0) == anytime_delta([RoundCounts(5, 5, 10)], 0.05, 1.0) == 0


def test_many_candidates_certify_more():
    two, many = (anytime_bound([RoundCounts(100, 0, 100)], 0.001, 0.0, m) for m in (2, 50))
    assert many == pytest.approx(two + math.log(49), abs=1.0)
    assert many > two + 3


# ── Plans ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("runs", "alpha", "epsilon"),
    [(10**6, 0.001, 11.8828623701686), (10**6, 0.05, 12.7183203597328), (10**3, 0.05, 5.80906833854661)],
)
def test_the_most_that_runs_can_certify(runs, alpha, epsilon):
    assert most_certifiable(runs, alpha) == pytest.approx(epsilon, abs=2e-8)
    assert most_certifiable(runs, alpha) <= epsilon


def test_how_many_runs_it_takes():
    assert 65_987 <= runs_to_reach(10.0, 0.05) <= 65_990
    assert 152_157 <= runs_to_reach(10.0, 0.001) <= 152_160


@given(st.floats(0.01, 14), st.floats(1e-9, 0.2), st.integers(2, 50))
@settings(derandomize=True, max_examples=200)
def test_the_two_plans_agree(epsilon, alpha, candidates):
    runs = runs_to_reach(epsilon, alpha, candidates)
    assert most_certifiable(runs, alpha, candidates) >= epsilon
    with mp.workdps(40):  # point 5: at least ln(1/α)/ln(1/p) of them, and hardly more
        least = mp.log(alpha) / mp.log(accuracy(epsilon, candidates))
    assert least <= runs <= least * (1 + 1e-5) + 3


@pytest.mark.parametrize("epsilon", [20.0, 36.0, 50.0, 500.0])
def test_runs_to_reach_far_away_by_formula(epsilon):
    with mp.workdps(300):
        expected = mp.log(20) / mp.log1p(mp.e ** (-mpf(epsilon)))
    assert float(mpf(runs_to_reach(epsilon, 0.05)) / expected) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("epsilon", [601.0, 750.0, 1e5])
def test_what_no_number_of_runs_reaches(epsilon):
    assert runs_to_reach(epsilon, 0.05) >= 10**200
    assert runs_needed(1.0, 1.0, 0.05) >= 10**200
    assert runs_needed(2.0, 1.0, 0.05) >= 10**200


@pytest.mark.parametrize(
    ("claimed", "true"), [(1.0, 2.0), (1.0, 1.1), (0.0, 0.5), (5.0, 6.0), (1.0, 1e5), (50.0, 60.0)]
)
@pytest.mark.parametrize("candidates", [2, 10])
def test_runs_needed_is_the_growth_of_the_best_bet(claimed, true, candidates):
    with mp.workdps(120):
        p, q = accuracy(claimed, candidates), accuracy(min(true, 200), candidates)
        gain = q * mp.log(q / p) + (1 - q) * mp.log((1 - q) / (1 - p))
        expected = float(-mp.log(0.001) / gain)
    assert runs_needed(claimed, true, 0.001, candidates) == pytest.approx(expected, abs=1, rel=1e-3)
    half = runs_needed(claimed, true, 0.001, candidates, 0.5)
    assert half == pytest.approx(2 * expected, abs=1, rel=1e-3)


def test_runs_needed_in_fractions():
    # p = 1/2, q = 3/4: the growth is ln 2 − h(1/4).
    growth = Fraction(3, 4) * math.log(1.5) + Fraction(1, 4) * math.log(0.5)
    assert runs_needed(0.0, LN3, 0.05) == math.ceil(math.log(20) / growth)


def test_adding_counts_keeps_what_was_expected():
    tally, counts = RoundCounts(1, 2, 4, 9.5, 3.5, 1), (10, 20, 40)
    assert tally + counts == RoundCounts(11, 22, 44, 9.5, 3.5, 1)
