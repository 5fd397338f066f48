"""Choosing a rule: its thresholds, its expected power, and what it counts."""

import math
from dataclasses import replace

import numpy as np
import pytest

from dpassay import audit
from dpassay.audit.distinguishers.base import TrainingSet
from dpassay.audit.distinguishers.exclusive import Exclusive
from dpassay.audit.distinguishers.statistic import Statistic
from dpassay.audit.outputs.outputs import part, read
from dpassay.audit.testing import decision_rule
from dpassay.audit.testing.decision_rule import (
    DecisionRule,
    Hypothesis,
    _of_rare_events,
    best_and_margin,
    learn,
    resolution_of,
    rounded,
    with_thresholds,
)
from dpassay.audit.testing.inference import log_limits

VALUE = Statistic("coordinate 0", 1)


def rule(low, high, **more):
    return DecisionRule(VALUE, low, high, 3, 1, 0.0, 1.0, **more)


def test_a_rule_names_the_first_input_below_and_the_second_above():
    outputs = read([-2.0, -1.0, 0.0, 1.0, 2.0, math.nan])
    assert rule(-1, 2).count(outputs, 0) == (2, 1)
    assert rule(-1, 2).count(outputs, 1) == (1, 2)
    assert rule(-math.inf, 1).count(outputs, 1) == (2, 0)
    assert rule(0, math.inf).count(read([]), 0) == (0, 0)


class Told:
    """A distinguisher that says what it was told to say."""

    def __init__(self, scores):
        self.score = lambda outputs: scores


def test_with_many_inputs_the_highest_score_is_named_where_its_margin_is_enough():
    scores = np.array([[3.0, 1.0, 0.0], [1.0, 0.9, 0.0], [np.nan, np.nan, np.nan], [0.0, 0.0, 5.0]])
    best, margin = best_and_margin(scores)
    assert best[[0, 1, 3]].tolist() == [0, 0, 2]
    assert margin.tolist() == [2.0, pytest.approx(0.1), -math.inf, 5.0]
    many = DecisionRule(Told(scores), -math.inf, 1.0, 0, 0, 0.0, 1.0, candidates=3)
    assert many.count(read([1, 2, 3, 4]), 0) == (1, 1)
    assert many.count(read([1, 2, 3, 4]), 2) == (1, 1)


def test_sides_are_those_that_the_thresholds_can_name():
    assert rule(-1, math.inf).initial_counts(1).sides == 1
    assert rule(-math.inf, 1).initial_counts(1).sides == 1
    assert rule(-1, 1).initial_counts(1).sides == 2
    assert rule(-1, 1, candidates=5).initial_counts(1).sides == 2


def test_initial_counts_expect_what_was_seen():
    counts = rule(-1, 1).initial_counts(0.5)
    assert (counts.right, counts.wrong, counts.runs) == (0, 0, 0)
    assert (counts.expected_right, counts.expected_wrong) == (2.0, 1.0)


def test_scores_are_coarser_than_rounding_errors():
    scores = np.array([-2.0, -2.0000000000000004, 1.0, 3.0, np.inf, np.nan])
    resolution = resolution_of([scores])
    assert 1e-7 < resolution < 1e-5
    whole = rounded(scores, resolution)
    assert whole[0] == whole[1]
    assert np.isfinite(whole[4])  # a threshold at infinity is reached by no score
    assert whole[4] > whole[3]
    assert np.isnan(whole[5])
    assert resolution_of([np.array([np.nan])]) == 1.0
    assert resolution_of([np.array([7.0, 7.0])]) > 0


def test_the_thresholds_of_the_highest_expected_power_are_found():
    """Below 0 only the first input, above 1 only the second, between them no difference."""
    rng = np.random.default_rng(3)
    first, second = rng.uniform(-1, 1, 4000), rng.uniform(0, 2, 4000)
    found = with_thresholds(VALUE, [first, second], Hypothesis(1.0))
    assert found.low * found.resolution == pytest.approx(0, abs=0.15)
    assert found.high * found.resolution == pytest.approx(1, abs=0.15)
    assert found.wrong <= 0.02 * found.right
    # Half of the runs are guessed, nearly all right: the growth of the best bet, -ln p, on each of them.
    assert found.expected_power == pytest.approx(-log_limits(1.0)[0] / 2, rel=0.2)


def test_where_nothing_is_known_no_rule_is_made():
    nothing = np.full(50, np.nan)
    assert with_thresholds(VALUE, [nothing, nothing], Hypothesis(1.0)) is None


def test_the_better_of_several_distinguishers_is_learnt():
    """The second coordinate tells all, the first nothing."""
    rng = np.random.default_rng(4)

    def outputs(shift):
        return read(np.column_stack([rng.normal(size=2000), rng.normal(size=2000) + shift]))

    found = learn([outputs(0), outputs(4)], [outputs(0), outputs(4)], (0, 1), Hypothesis(1.0))
    right, wrong = (found.count(outputs(4), 1)[i] for i in (0, 1))
    assert right > 1700
    assert wrong < 20


def test_distinguishers_see_no_float_bits_unless_told():
    rng = np.random.default_rng(5)
    runs = [read(x + rng.laplace(size=4000)) for x in (0.0, 0.0, 1.0, 1.0)]
    blind = learn(runs[::2], runs[1::2], (0.0, 1.0), Hypothesis(1.0))
    seeing = learn(runs[::2], runs[1::2], (0.0, 1.0), Hypothesis(1.0), bits="also")
    # At its own ε the mechanism gives nothing else away.
    assert seeing.expected_power > 10 * max(blind.expected_power, 1e-4)


@pytest.mark.parametrize("sides", [(-1.7e308, 1.7e308), (1e308, 1.7e308), (0.0, 5e-324), (-5e-324, 5e-324), (0.0, 0.0)])
def test_a_resolution_is_finite_and_more_than_nothing(sides):
    with np.errstate(all="raise", under="ignore"):
        unit = resolution_of([np.full(9, side) for side in sides])
    assert 0 < unit < math.inf


@pytest.mark.parametrize("sides", [(-1.7e308, 1.7e308), (1e308, 1.7e308), (1e-310, 1.0)])
@pytest.mark.parametrize("fixed", [False, True])
def test_outputs_of_any_size_tell_inputs_apart(sides, fixed):
    def tells(x, n, rng):
        return sides[x] * (1 - 0.01 * rng.random(n))

    with np.errstate(all="raise", under="ignore"):
        assert audit(tells, [(0, 1)], epsilon=1, runs=1_500, fixed=fixed, shrink=False).word == "refuted"


def test_a_rule_of_rare_events_expects_no_more_than_each_quarter_gets_from_the_others():
    """Laplace noise has no events that only one input gives; those that chance proposes are wrong as often as others.

    A rule that expected to be always right would lose the evidence of all other rounds."""
    rng = np.random.default_rng(5)
    drawn = [read(x + rng.laplace(size=4_000)) for x in (0.0, 1.0)]
    rule = _of_rare_events(drawn, (0.0, 1.0), Hypothesis(0.0))  # a claim that does not explain them
    assert rule is not None
    _, scores = Exclusive.cross_fit(TrainingSet(tuple(drawn), (0.0, 1.0)))
    right = np.count_nonzero(scores[0] < 0) + np.count_nonzero(scores[1] > 0)
    wrong = np.count_nonzero(scores[0] > 0) + np.count_nonzero(scores[1] < 0)
    assert wrong > 0
    assert (rule.right, rule.wrong) == (right, wrong)


def test_few_runs_of_a_fixed_number_are_enough_for_noise_of_half_the_size():
    """Of 20 audits, 12 at least: thresholds that guess on every second output are right with probability 0.88, and
    the exact test of 300 such runs against 0.731 has a power above 0.9. It was 5 of 20 with thresholds from a curve."""
    noisy = [
        audit(lambda x, rng: x + rng.laplace(scale=0.5), [(0.0, 1.0)], epsilon=1, runs=400, fixed=True, seed=seed)
        for seed in range(20)
    ]
    assert sum(verdict.refuted for verdict in noisy) >= 12


def test_a_rare_event_behind_noise_at_the_claim_is_found():
    """Nine outputs of each input are decisive: too few to outdo a rule chosen among thousands, but surprising."""
    rng = np.random.default_rng(3)
    drawn = [x + rng.laplace(size=9_000) for x in (0.0, 1.0)]
    for x, side in enumerate(drawn):
        side[::1_001] = 100.5 + x
    seen = [read(side) for side in drawn]
    halves = [[part(side, 0, 4_500) for side in seen], [part(side, 4_500) for side in seen]]
    rule = learn(*halves, (0.0, 1.0), Hypothesis(1.0), everything=seen)
    assert isinstance(rule.distinguisher, Exclusive)
    assert rule.wrong == 0


def test_rare_events_replace_only_a_rule_that_gathered_less(monkeypatch):
    """Both are held to the same standard: of two rules that are expected to gain nothing, the better one is kept."""
    rng = np.random.default_rng(5)
    drawn = [read(x + rng.laplace(scale=0.5, size=5_000)) for x in (0.0, 1.0)]
    halves = [[part(side, 0, 2_500) for side in drawn], [part(side, 2_500) for side in drawn]]
    rare = replace(_of_rare_events(drawn, (0.0, 1.0), Hypothesis(0.0)), expected_power=1.0)
    for right, wrong, chosen in ((90, 12, False), (4_000, 100, True)):
        found = replace(rare, right=right, wrong=wrong)
        monkeypatch.setattr(decision_rule, "_of_rare_events", lambda *given, found=found, **more: found)
        rule = learn(*halves, (0.0, 1.0), Hypothesis(1.9), everything=drawn)
        assert isinstance(rule.distinguisher, Exclusive) == chosen


def test_three_events_are_tried_if_nothing_else_promises_anything():
    """The claim allows that three of three came from one input by chance: later runs decide."""
    rng = np.random.default_rng(5)
    drawn = [rng.normal(size=4_000) for _ in (0, 1)]
    drawn[1][[100, 2_000, 3_900]] = math.nan
    seen = [read(side) for side in drawn]
    halves = [[part(side, 0, 2_000) for side in seen], [part(side, 2_000) for side in seen]]
    rule = learn(*halves, (0.0, 1.0), Hypothesis(1.0), everything=seen)
    assert (
        rule.describe() == "based on events that only one input gave: the second input where the output is number, NaN"
    )


def test_little_is_expected_of_rare_events():
    """What similar rules got wrong may be other events; thirty correct guesses of thirty must refute a claim of 1."""
    rare = Exclusive(kinds=(("none", 0),), inputs=(0.0, 1.0))
    for right, wrong in ((5, 0), (30, 6), (400, 0)):
        begun = DecisionRule(rare, -1.0, math.inf, right, wrong, 0.0, 1.0).initial_counts(0.5)
        assert begun.expected_right + begun.expected_wrong <= 4.0
        assert replace(begun, right=30, runs=30_000).log_evidence(1.0) > math.log(1000)


def test_rare_events_that_other_runs_contradict_replace_no_other_rule():
    """They did, from 8,192 runs on: Laplace noise of ε 2 took 181,000 runs in the median against a claim of 1.9."""
    rng = np.random.default_rng(5)
    drawn = [read(x + rng.laplace(scale=0.5, size=5_000)) for x in (0.0, 1.0)]
    halves = [[part(side, 0, 2_500) for side in drawn], [part(side, 2_500) for side in drawn]]
    rule = learn(*halves, (0.0, 1.0), Hypothesis(1.9), everything=drawn)
    assert not isinstance(rule.distinguisher, Exclusive)
