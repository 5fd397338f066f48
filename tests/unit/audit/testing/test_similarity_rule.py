"""The first rule of a game: an output is more like its own input."""

import math

import numpy as np
import pytest

from dpassay.audit.mechanisms.targets import as_mechanism
from dpassay.audit.outputs.outputs import read
from dpassay.audit.testing.decision_rule import Hypothesis
from dpassay.audit.testing.experiment import Experiment, GameState
from dpassay.audit.testing.sequential import anytime
from dpassay.audit.testing.similarity_rule import GLANCE, LENGTH, LONGEST, rule_by_likeness, worth_trying

WORDS = [read(["a c", "a d", "c d", "b d"]), read(["b c", "b d", "c d", "b a"])]  # of the inputs "a" and "b"


def finished(function, inputs, epsilon, runs=4_000):
    game = GameState(kept=[[] for _ in inputs])
    experiment = Experiment(as_mechanism(function), inputs, Hypothesis(epsilon), 1)
    for _ in anytime(experiment, game, runs, 0.001):
        pass
    return game


def test_words_that_are_kept_need_no_learning():
    rule = rule_by_likeness(WORDS, ("a", "b"), Hypothesis(0.0))
    assert (rule.right, rule.wrong) == (4, 1)  # "c d" and "b a" say nothing
    assert rule.expected_power == 0.0


def test_it_is_no_rule_where_it_does_no_better_than_the_claim_allows():
    allowed = math.log(4 / 1)  # right and wrong guesses above, with half a guess added to each: less than 4 to 1
    assert rule_by_likeness(WORDS, ("a", "b"), Hypothesis(allowed)) is None
    assert rule_by_likeness(list(reversed(WORDS)), ("a", "b"), Hypothesis(0.0)) is None
    assert rule_by_likeness(WORDS, (0.0, 1.0), Hypothesis(0.0)) is None


def test_numbers_beyond_both_inputs_are_the_most_alike():
    """With Laplace noise those have the largest loss; what lies between is left out where the claim is high."""
    runs = [read(np.array([-3.0, -1.0, -0.5, -0.1, 0.4, 0.6])), read(np.array([0.3, 0.7, 1.1, 1.5, 2.0, 4.0]))]
    rule = rule_by_likeness(runs, (0.0, 1.0), Hypothesis(2.0))
    assert (rule.right, rule.wrong) == (8, 0)
    assert rule.high * rule.resolution > 0.4


def test_a_game_begins_with_it_and_stays_with_it_while_it_wins():
    def kept(x, rng):
        return x if rng.random() < 0.9 else "neither"

    game = finished(kept, ("a", "b"), epsilon=3.0)
    assert len(game.rounds) == 1
    assert game.rounds[0].learnt_from == 2 * GLANCE + 8
    assert game.rounds[0].length <= LONGEST
    assert game.log_evidence(Hypothesis(3.0)) > math.log(1000)


def test_a_game_that_began_with_it_learns_from_its_runs():
    """Accuracy 0.88 at most, and 0.881 is allowed: likeness wins nothing, and later rules are learnt for no runs."""

    def noisy(x, rng):
        return x + rng.laplace(scale=0.5)

    game = finished(noisy, (0.0, 1.0), epsilon=1.0, runs=20_000)
    assert game.log_evidence(Hypothesis(1.0)) > math.log(1000)
    calm = finished(noisy, (0.0, 1.0), epsilon=2.0, runs=3_000)
    assert calm.runs == 3_000
    first, *later = calm.rounds
    assert first.length in (LENGTH, 2 * LENGTH, 4 * LENGTH)
    assert sum(one.learnt_from for one in later) <= 136


@pytest.mark.parametrize(("hypothesis", "inputs"), [(Hypothesis(1.0, 1e-5), (0, 1)), (Hypothesis(1, 0, 3), (0, 1, 2))])
def test_delta_and_many_candidates_are_left_to_learnt_rules(hypothesis, inputs):
    assert not worth_trying(Experiment(as_mechanism(lambda x, rng: x), inputs, hypothesis, 1), 10_000)


def test_few_runs_are_kept_for_learning():
    experiment = Experiment(as_mechanism(lambda x, rng: x), (0, 1), Hypothesis(1.0), 1)
    assert not worth_trying(experiment, LONGEST - 1)
    assert worth_trying(experiment, LONGEST)
