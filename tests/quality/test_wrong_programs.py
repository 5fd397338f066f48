"""Wrong programs in the styles that people write: their truths, and how many of them audits find.

`benchmarks/power.py` audits all of them and writes the table in docs/benchmarks.md.
"""

import itertools
import math

import numpy as np
import pytest
from scipy.integrate import quad

import dpassay
from wrong_programs import ALL
from wrong_programs.program import finite, runs_needed
from wrong_programs.sparse import FOUR, LEVEL, MIXED, SEVEN, marks, released

BAR = 84 / 94  # the share of wrong programs that must be found
BY_NAME = {program.name: program for program in ALL}


def refuted(program, seed=0):
    options = {"epsilon": program.claimed, "delta": program.delta, "bits": True if program.bits else None}
    limits = {"runs": program.runs, "seed": seed, "until_refuted": True, "shrink": False}
    return dpassay.audit(program.subject, [program.pair], **options, **limits).refuted


def test_every_claim_is_false():
    assert len(BY_NAME) == len(ALL) >= 94
    assert all(program.truth > program.claimed for program in ALL)
    assert all(20_000 <= program.runs <= 100_000 for program in ALL)


def below(t, scale):
    return math.exp(t / scale) / 2 if t < 0 else 1 - math.exp(-t / scale) / 2


def integral(function, corners):
    edges = [-200.0, *sorted(corners), 200.0]
    return sum(quad(function, a, b, epsabs=0, epsrel=1e-10, limit=200)[0] for a, b in itertools.pairwise(edges))


def test_the_answers_of_lee_and_clifton_have_the_probabilities_on_which_their_limits_rest():
    """By quadrature, for the longest sequence of each: all but the last below, and the last above."""
    for x, stop in ((FOUR[0], 1), (SEVEN[1], 3)):
        found = marks(x, 4.0, 4 / 3, stop)
        assert found.sum() == pytest.approx(1, abs=1e-4)

        def none_above(z, x=x):
            return math.exp(-abs(z) / 4) / 8 * math.prod(below(LEVEL + z - query, 4 / 3) for query in x)

        assert found[0] == pytest.approx(integral(none_above, {-1.0, 0.0}), rel=1e-3)


def test_the_values_of_roth_have_the_densities_on_which_their_limit_rests():
    """By quadrature, for the value 1 after nine queries below: f(1 − query) ∫ p(z) Π F(1 + z − query) dz, z ≤ 0."""
    x = MIXED[0]

    def nine_below(z):
        return math.exp(-abs(z) / 2) / 4 * math.prod(below(LEVEL + z - query, 2) for query in x[:9])

    cells = released(x, 2.0, 2.0)
    per_query = (len(cells) - 1) // 10
    expected = math.exp(-abs(LEVEL - x[9]) / 2) / 4 * quad(nine_below, -200, 0, points=[-1.0], limit=200)[0]
    step = 120 / (per_query - 1)
    middle = cells[9 * per_query + per_query // 2]  # its sum over z goes half a step too far
    assert middle / step == pytest.approx(expected, rel=0.02)
    assert BY_NAME["roth with the value that was compared"].truth == pytest.approx(3.0)  # six rise and four fall, at ½


def test_the_runs_that_a_likelihood_ratio_needs():
    """Laplace noise of ε 2 against a claim of 1, as three cells: docs/proofs/anytime.md has the whole distribution."""
    tail = math.exp(-2) / 2
    p, q = (0.5, 0.5 - tail, tail), (tail, 0.5 - tail, 0.5)
    share, most = 0.5 / (0.5 + tail), math.e / (1 + math.e)
    won = (0.5 + tail) * (share * math.log(share / most) + (1 - share) * math.log((1 - share) / (1 - most)))
    assert runs_needed(p, q, 1.0) == pytest.approx(math.log(1000) / won)
    assert finite(p, q) == pytest.approx(2.0)


@pytest.mark.long(every=5)
@pytest.mark.parametrize(
    "name",
    [
        "lee and clifton stopped at three",
        "noisy maximum with the gap",
        "a debugging key once in five hundred",
        "lee and clifton stopped at one",
        "roth with the value that was compared",
    ],
)
def test_sparse_vectors_and_rare_keys_are_found(name):
    """Seed 0. The exact likelihood ratio needs 866, 6,516 and 5,389 runs of these sparse vectors on average."""
    assert refuted(BY_NAME[name])


@pytest.mark.long(reduced=16, full=len(ALL))
def test_nearly_all_are_found(repetitions):
    """Seed 0; of fewer, those whose noise is wrong: the first ones, which take few runs."""
    quick = [program for program in ALL if program.runs < 100_000]
    chosen = ALL if repetitions == len(ALL) else quick[:: len(quick) // repetitions][:repetitions]
    found = [refuted(program) for program in chosen]
    assert np.mean(found) >= BAR, [program.name for program, one in zip(chosen, found, strict=True) if not one]
