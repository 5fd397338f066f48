"""A theorem that is used without its premises is an internal error, never a bound."""

from dataclasses import replace
from pathlib import Path

import pytest

from dpassay import parse
from dpassay.core.neighbours import Neighbours
from dpassay.core.numbers import number
from dpassay.core.theorems import Premise, Theorem
from dpassay.errors import DpassayError
from dpassay.evidence.verifier import premises as verified
from dpassay.exact.analysis import analyse
from dpassay.exact.dataflow.data_sets import added, fixed_size
from dpassay.exact.dataflow.sampled_pairs import sampled
from dpassay.exact.premises import require_premises
from dpassay.exact.profiles.bounds import PairBound, PureBound
from dpassay.exact.profiles.dominating_pairs import additive_bound
from dpassay.exact.profiles.profile import Candidate, PrivacyProfile
from dpassay.pipeline.distributions import Laplace, OneSided
from dpassay.pipeline.pair import Block, Pair

ROOT = Path(__file__).parents[3]
ONE = Pair((Block(number(5), number(2), 1),))
LOSS = additive_bound(Laplace(1), ONE)


def judged(text, candidate=None, upper=None, relation="replace-record", dim=1):
    """The profile of a pipeline with a bound put into it that its analysis did not give."""
    pipeline, neighbours = parse(text, dim=dim), Neighbours(relation)
    profile = analyse(pipeline, neighbours)
    if candidate is not None:
        profile = replace(profile, candidates=(candidate,))
    if upper is not None:
        profile = replace(profile, uppers=(upper,))
    return require_premises(pipeline, neighbours, profile)


def test_a_pair_behind_sampling_belongs_to_data_sets():
    alone = Candidate(ONE, sampled(LOSS, number("0.5")))
    with pytest.raises(DpassayError, match="sums of data sets that differ in one record"):
        judged("subsample(100, 200) | clamp(2, 5) | laplace(1)", alone)
    assert judged("subsample(100, 200) | clamp(2, 5) | laplace(1)", replace(alone, data_sets=fixed_size(ONE, 100, 200)))


def test_what_a_clamp_hides_is_not_shown():
    """The sums are 499 and 200, beyond the limits; those of one record are between them."""
    text = "subsample({}) | clamp(2, 5) | laplace(1) | clamp(0, 6)"
    for size, of in ((100, 200), (1, 2)):
        candidate = Candidate(ONE, sampled(LOSS, number("0.5")), fixed_size(ONE, size, of))
        if size == 1:
            assert judged(text.format(f"{size}, {of}"), candidate)
        else:
            with pytest.raises(DpassayError, match="without its premises"):
                judged(text.format(f"{size}, {of}"), candidate)


def test_sums_are_those_of_the_records():
    """The sums of one record, where a hundred are drawn."""
    wrong = Candidate(ONE, sampled(LOSS, number("0.5")), fixed_size(ONE, 1, 2))
    with pytest.raises(DpassayError, match="without its premises"):
        judged("subsample(100, 200) | clamp(2, 5) | laplace(1) | clamp(0, 6)", wrong)


@pytest.mark.parametrize(("text", "holds"), [("clip(l2, 1)", True), ("normalise(l2)", False)])
def test_other_records_move_sums_of_balls_and_not_of_spheres(text, holds):
    record = Pair((Block(number("0.6"), number(0), 1), Block(number("0.8"), number(0), 1)))
    half = Pair(tuple(Block(-b.x / 2, number(0), 1) for b in record.blocks))
    sets = added(record, half)
    candidate = Candidate(sets.sums, sampled(additive_bound(Laplace(1), sets.sums), number("0.5")), sets)
    pipeline = f"poisson(0.5) | {text} | laplace(1) | clamp(-0.5, 0.5)"
    if holds:
        assert judged(pipeline, candidate, relation="add-remove-record", dim=2)
    else:
        with pytest.raises(DpassayError, match="without its premises"):
            judged(pipeline, candidate, relation="add-remove-record", dim=2)


@pytest.mark.parametrize(("text", "holds"), [("normalise(l2)", True), ("clamp(0, 1) | normalise(l2)", False)])
def test_both_orders_need_a_record_and_its_opposite(text, holds):
    record = Pair((Block(number(1), number(0), 1), Block(number(0), number(0), 1)))
    bound = sampled(additive_bound(OneSided(number(1)), record), number("0.5"))
    candidate = Candidate(record, bound, added(record))
    if holds:
        assert judged(f"poisson(0.5) | {text} | onesided(1)", candidate, relation="add-remove-record", dim=2)
    else:
        with pytest.raises(DpassayError, match="the sum with the record comes first"):
            judged(f"poisson(0.5) | {text} | onesided(1)", candidate, relation="add-remove-record", dim=2)


def test_limits_of_values_bound_no_sums():
    clamped = PureBound(number(1), Theorem.POST_PROCESSING)
    with pytest.raises(DpassayError, match="not sums of records"):
        judged("clamp(0, 1) | laplace(1) | clamp(0, 1)", upper=clamped)
    assert judged("clamp(0, 1) | laplace(1) | clamp(0, 1)", upper=clamped, relation="any")


def test_discrete_noise_needs_integers():
    finite = PairBound(LOSS.losses, Theorem.DISCRETE_LAPLACE)
    with pytest.raises(DpassayError, match="integers"):
        judged("clamp(0, 1) | discrete_laplace(1)", upper=finite, relation="any")
    assert judged("onehot(3) | discrete_laplace(1)", upper=finite, relation="any")


def test_staircase_steps_are_counted_without_a_tolerance():
    """A distance a little above 1 has two steps of ε = 1, one a little below it has one."""
    text = "clamp(0, {}) | staircase(1, 1, 0.4)"
    one_step = PureBound(number(1), Theorem.STAIRCASE)
    assert judged(text.format("1"), upper=one_step, relation="any")
    with pytest.raises(DpassayError, match="side of a jump"):
        judged(text.format("1.0000000000000000000000000000001"), upper=one_step, relation="any")
    pair = Pair((Block(number("0.9999999999999999999999999999999"), number(0), 1),))
    two_steps = Candidate(pair, PureBound(number(2), Theorem.STAIRCASE))
    with pytest.raises(DpassayError, match="side of a jump"):
        judged(text.format("1"), two_steps, relation="any")


def test_each_page_states_its_premises():
    for theorem in Theorem:
        if theorem.premises:
            stated = (ROOT / theorem.page).read_text().split("**Premises.**")
            assert len(stated) == 2, theorem
            for premise in theorem.premises:
                assert f"`{premise.name}`" in stated[1].split("**Proof")[0], (theorem, premise)
    assert set(Premise) == {premise for theorem in Theorem for premise in theorem.premises}


def test_the_verifier_tests_the_same_theorems():
    """Its list is its own; which theorems have premises is the same."""
    assert {theorem.value for theorem in Theorem if theorem.shows} == set(verified.SHOWS)
    own = {theorem.value for theorem in Theorem if theorem.bounds} - {"dropout", "staircase"}
    assert own == set(verified.BOUNDS) - {"bounded-range"}


def test_a_profile_without_bounds_has_nothing_to_show():
    pipeline = parse("clip(l2, 1) | laplace(1)", dim=1)
    empty = PrivacyProfile((), ())
    assert require_premises(pipeline, Neighbours(), empty) is empty
