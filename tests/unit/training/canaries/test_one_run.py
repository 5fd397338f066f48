"""How many canaries can be guessed right: against exact probabilities of mechanisms, and against a linear program."""

import math

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import binom, norm

from dpassay.core.guarantee import GDP, ZCDP, ApproxDP, PureDP
from dpassay.errors import InputError
from dpassay.training.canaries.one_run import Guesses, p_value, rejected


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 3.0])
def test_randomized_response_attains_the_bound_for_pure_dp(epsilon):
    right = math.exp(epsilon) / (1 + math.exp(epsilon))
    for k in (1, 15, 20, 28, 30):
        assert p_value(PureDP(epsilon), Guesses(40, 30, k)) == pytest.approx(binom.sf(k - 1, 30, right), rel=1e-9)


@pytest.mark.parametrize("mu", [0.3, 1.0, 2.0])
def test_independent_gaussian_canaries_stay_below_the_bound(mu):
    # Every canary is released with N(0, 1) noise at distance mu, and named by the likelier side.
    m = 60
    for k in range(m + 1):
        assert binom.sf(k - 1, m, norm.cdf(mu / 2)) <= p_value(GDP(mu), Guesses(m, m, k)) * (1 + 1e-9)


@pytest.mark.parametrize("often", [0.05, 0.3])
def test_a_mechanism_that_tells_all_at_once_stays_below_the_bound_and_comes_near(often):
    # With probability `often`, by one coin for all, every canary is released with noise at distance nu; else nothing.
    m, nu = 400, 1.5
    threshold = np.linspace(-9, 9, 4001)
    # Error rates of all tests of one canary: likelihood ratios rise in what is released; no release is in between.
    false, true = often * norm.sf(threshold), often * norm.sf(threshold - nu)
    blind = threshold < nu / 2
    false, true = false + (1 - often) * blind, true + (1 - often) * blind
    inner = (false > 1e-12) & (false < 1 - 1e-9) & (true < 1 - 1e-9)
    mu = float(np.max(norm.ppf(true[inner]) - norm.ppf(false[inner])))
    assert 0 < mu < nu
    worst = 0.0
    for k in range(m + 1):
        attained = often * binom.sf(k - 1, m, norm.cdf(nu / 2)) + (1 - often) * binom.sf(k - 1, m, 0.5)
        bound = p_value(GDP(mu), Guesses(m, m, k))
        assert attained <= bound * (1 + 1e-9)
        worst = max(worst, attained / bound)
    assert worst > 0.2


def all_of_point_3(constraint, m, r, least):
    """The largest P(C ≥ least) by a linear program: A_k ≤ slope · B_k + offset for every piece of G and every k."""
    rows, limits = [], []
    for k in range(1, r + 1):
        for slope, offset in constraint:
            row = np.zeros(r + 1)
            row[k:] += np.arange(k, r + 1) / m
            row[k - 1 : r] -= slope * (r - np.arange(k - 1, r)) / m
            rows.append(row)
            limits.append(offset)
    found = linprog(
        -(np.arange(r + 1) >= least).astype(float),
        A_ub=np.array(rows),
        b_ub=np.array(limits),
        A_eq=np.ones((1, r + 1)),
        b_eq=[1.0],
    )
    return -found.fun


@pytest.mark.parametrize("both", [True, False])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.01), (0.3, 1e-3), (2.0, 0.1)])
def test_the_procedure_solves_the_linear_program(epsilon, delta, both):
    m, r = 30, 12
    sides = 1 if both else 2  # G(x) = g(2x) / 2 for one side
    pieces = [
        (0.0, 1.0 / sides),
        (math.exp(epsilon), delta / sides),
        (math.exp(-epsilon), (1 - math.exp(-epsilon) * (1 - delta)) / sides),
    ]
    for k in (6, 9, 12):
        exact = all_of_point_3(pieces, m, r, k)
        shared = binom.sf(k - np.arange(1, k + 1), r, 1 / (1 + math.exp(-epsilon)))
        marked = np.min(shared + m * delta / sides / np.arange(1, k + 1))
        found = p_value(ApproxDP(epsilon, delta), Guesses(m, r, k, both))
        assert found == pytest.approx(min(exact, marked), rel=0.011)


def test_naming_canaries_as_in_only_shows_more():
    assert p_value(GDP(1), Guesses(1000, 40, 39, both=False)) < p_value(GDP(1), Guesses(1000, 40, 39, both=True))


def test_a_larger_value_is_harder_to_reject():
    seen = Guesses(10_000, 200, 180)
    for family in (PureDP, GDP, lambda value: ApproxDP(value, 1e-5)):
        chances = [p_value(family(value), seen) for value in (0.2, 0.5, 1.0, 2.0)]
        assert chances == sorted(chances)


def test_what_is_rejected_has_a_small_p_value():
    for guarantee in (PureDP(1), ApproxDP(1, 1e-4), GDP(0.5)):
        seen = Guesses(500, 60, 50)
        p = p_value(guarantee, seen)
        assert rejected(guarantee, seen, p * 1.02)
        assert not rejected(guarantee, seen, p * 0.98)


def test_other_guarantees_and_impossible_counts_are_refused():
    with pytest.raises(InputError, match="not 1-zCDP"):
        p_value(ZCDP(1), Guesses(10, 5, 5))
    with pytest.raises(InputError, match="0 <= right <= named <= canaries"):
        Guesses(10, 11, 5)
