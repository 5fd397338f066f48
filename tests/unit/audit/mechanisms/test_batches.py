"""Rows of one batch that are not independent runs: right mechanisms are left alone, wrong ones found, flaws named."""

import numpy as np
import pytest
from scipy.stats import binom

from dpassay import Open, Refuted, audit
from dpassay.audit.mechanisms.batches import BATCHES, REPEATED, ROWS, SHARED, dependence, known_independent
from dpassay.audit.mechanisms.targets import as_mechanism
from dpassay.audit.outputs.outputs import read
from dpassay.audit.storage.checkpoint import load
from dpassay.audit.storage.replay import replay
from dpassay.pipeline.parser import parse
from statistics_helper import generator, require

PAIR = [(0.0, 1.0)]


def one_draw(scale):
    return lambda x, n, rng: np.full(n, x + rng.laplace(scale=scale))


def by_fours(scale):
    return lambda x, n, rng: x + np.repeat(rng.laplace(scale=scale, size=-(-n // 4)), 4)[:n]


def large_batches_only(scale):
    """Too small a batch does not show it."""
    return lambda x, n, rng: (
        x + (rng.laplace(scale=scale) * np.ones(n) if n > 100 else rng.laplace(scale=scale, size=n))
    )


def same_seed(scale):
    return lambda x, n, rng: x + np.random.default_rng(7).laplace(scale=scale, size=n)


def independent(scale):
    return lambda x, n, rng: x + rng.laplace(scale=scale, size=n)


@pytest.fixture
def soon_in_batches(monkeypatch):
    """An audit makes its runs in batches from the 2,048th on, and not from the 65,536th on."""
    monkeypatch.setattr("dpassay.audit.testing.sequential.ALONE", 2_048)
    monkeypatch.setattr("dpassay.audit.runner.ALONE", 2_048)


def _refuted_too_often(make, runs, repetitions):
    """The p-value of how often a right mechanism is refuted, where 0.001 is allowed."""
    rng = generator(make.__name__)
    refuted = sum(
        audit(make(1.0), PAIR, epsilon=1, runs=runs, seed=int(rng.integers(2**32)), bits=False).word == "refuted"
        for _ in range(repetitions)
    )
    return float(binom.sf(refuted - 1, repetitions, 0.001))


@pytest.mark.long(reduced=8, full=60)
def test_right_mechanisms_with_one_draw_for_all_rows_are_not_refuted(repetitions):
    name = "dependent rows: one_draw"
    require(name, _refuted_too_often(one_draw, 5_000, repetitions))


@pytest.mark.long(reduced=8, full=60)
def test_right_mechanisms_with_rows_that_share_draws_are_not_refuted(repetitions):
    name = "dependent rows: by_fours"
    require(name, _refuted_too_often(by_fours, 5_000, repetitions))


@pytest.mark.usefixtures("soon_in_batches")
@pytest.mark.long(reduced=8, full=60)
def test_right_mechanisms_with_large_batches_that_share_a_draw_are_not_refuted(repetitions):
    name = "dependent rows: large_batches_only"
    require(name, _refuted_too_often(large_batches_only, 20_000, repetitions))


@pytest.mark.parametrize("make", [one_draw, by_fours, large_batches_only, independent])
def test_wrong_mechanisms_are_refuted_whatever_their_batches(make):
    verdict = audit(make(0.2), PAIR, epsilon=1, bits=False)
    assert isinstance(verdict, Refuted)
    assert 1 < verdict.epsilon.lower <= 5  # the truth is 5 for one output


@pytest.mark.parametrize("make", [one_draw, by_fours])
def test_rows_that_agree_too_well_are_named(make):
    verdict = audit(make(1.0), PAIR, epsilon=1, runs=2_000, bits=False)
    assert isinstance(verdict, Open)
    assert "rows of one batch are not independent" in verdict.warnings[0]


def test_a_generator_seeded_alike_in_every_batch_is_refuted_and_named():
    verdict = audit(same_seed(1.0), PAIR, epsilon=1, runs=5_000)
    assert isinstance(verdict, Refuted)
    assert "Every batch gives the same outputs" in verdict.warnings[0]


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng: rng.laplace(size=ROWS),
        lambda rng: rng.integers(0, 2, ROWS),
        lambda rng: rng.random((ROWS, 3)),
        lambda rng: np.zeros(ROWS),
        lambda rng: np.zeros((ROWS, 0)),
        lambda rng: np.where(rng.random(ROWS) < 0.03, np.nan, 1.0),
        lambda rng: ["a" if heads else None for heads in rng.random(ROWS) < 0.5],
    ],
    ids=["laplace", "bits", "vectors", "constant", "empty", "rare", "mixed"],
)
def test_independent_rows_are_left_alone(draw):
    # A false alarm has probability 2/20,001 a time, and 1e-6 for a repetition: 7 kinds of 20 each, 0.014 in all; the
    # generator is seeded by the test's name, so that it is the same each time.
    rng = generator("independent rows")
    assert not any(dependence([read(draw(rng)) for _ in range(BATCHES)], rng) for _ in range(20))


def test_rows_with_something_in_common_are_found():
    rng = generator("common part")

    def batch():
        return read(3 * rng.normal() + rng.normal(size=ROWS))

    assert dependence([batch() for _ in range(BATCHES)], rng) == SHARED
    assert dependence([read(np.arange(ROWS)) for _ in range(BATCHES)], rng) == REPEATED


def test_independence_is_known_of_pipelines_and_of_those_that_say_so():
    def own(x, n, rng):
        return x + rng.laplace(size=n)

    assert not known_independent(as_mechanism(own))
    own.independent_rows = True
    assert known_independent(as_mechanism(own))
    assert known_independent(parse("laplace(1)", dim=1))
    verdict = audit(own, PAIR, epsilon=1.2, runs=20_000)
    assert "a bound from batches" not in dict(verdict.ledger)


@pytest.mark.usefixtures("soon_in_batches")
def test_what_batches_promise_is_confirmed_by_single_calls(tmp_path):
    asked = []

    def recorded(x, n, rng):
        asked.append(n)
        return x + rng.laplace(scale=0.5, size=n)

    path = tmp_path / "audit.json"
    verdict = audit(recorded, PAIR, epsilon=1.85, runs=400_000, bits=False, save=path, until_refuted=True)
    assert isinstance(verdict, Refuted)
    epochs = load(path).main.epochs
    in_batches = [one for one in epochs if one.screening]
    assert in_batches
    assert not any(one.singly for one in in_batches)
    assert epochs[-1].singly  # the round that refutes it
    assert sum(n == 1 for n in asked) >= sum(one.runs for one in epochs if one.singly)
    assert replay(path, recorded, seed=5).ok


@pytest.mark.usefixtures("soon_in_batches")
def test_a_bound_that_rests_on_batches_says_so():
    verdict = audit(independent(1.0), PAIR, epsilon=1.2, runs=40_000, bits=False)
    assert isinstance(verdict, Open)
    assert 0.5 < verdict.epsilon.lower <= 1
    assert "assuming that the rows of one batch are independent" in verdict.epsilon.lower_from
