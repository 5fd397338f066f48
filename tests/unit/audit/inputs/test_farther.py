"""Inputs farther apart than neighbours: what a search and a rule take from them, and when they do not."""

import math
from dataclasses import dataclass, field

import numpy as np
import pytest

from dpassay.audit.distinguishers.custom import CustomDistinguisher
from dpassay.audit.distinguishers.statistic import Statistic
from dpassay.audit.inputs.pair_search import search
from dpassay.audit.mechanisms.targets import as_mechanism
from dpassay.audit.options import AuditOptions
from dpassay.audit.outputs.outputs import read
from dpassay.audit.resolved import resolve
from dpassay.audit.testing.decision_rule import DecisionRule, Hypothesis
from dpassay.audit.testing.experiment import FARTHEST, Experiment, factor_for
from dpassay.audit.testing.training import Extrapolated, learn_well
from dpassay.errors import InputError, MechanismError
from dpassay.pipeline.distributions import Laplace, Shifted

BOUND = Hypothesis(1e-9, runs=200_000, alpha=0.1)


@dataclass
class OwnNoise:
    """Laplace noise of scale 100 on the sum of the queries, the last of which counts twice.

    The noise is its own, so two inputs never have the same, and a loss of 1/100 or 2/100 takes many runs to see.
    """

    noise: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))
    asked: list = field(default_factory=list)
    independent_rows = True

    def sample(self, x, n, rng):
        self.asked.append((tuple(x), n))
        return x.sum() + x[-1] + self.noise.laplace(scale=100, size=n)


def experiment(mechanism, inputs, number=0, hypothesis=BOUND, **options):
    return Experiment(mechanism, inputs, hypothesis, 5, number, **{"anywhere": True, **options})


def test_inputs_move_apart_on_both_sides():
    far = experiment(OwnNoise(), (np.array([0.0, 1.0]), np.array([1.0, 1.0]))).farther(5)
    assert [x.tolist() for x in far.inputs] == [[-2, 1], [3, 1]]


class Known(OwnNoise):
    def distribution(self, x):
        return Shifted(Laplace(100.0), np.array([x.sum() + x[-1]]))


@pytest.mark.parametrize(
    ("mechanism", "inputs", "options"),
    [
        (OwnNoise(), ([0.0], [1.0]), {"anywhere": False}),
        (OwnNoise(), ([0.0], [1.0]), {"custom": CustomDistinguisher(len)}),
        (OwnNoise(), ([0.0], [1.0]), {"hypothesis": Hypothesis(1.0, 0.1)}),
        (Known(), ([0.0], [1.0]), {}),
        (OwnNoise(), ([0.0], [1.0], [2.0]), {}),
        (OwnNoise(), ([0.0], [math.inf]), {}),
        (OwnNoise(), ([0.0], "text"), {}),
    ],
    ids=["not anywhere", "own guesser", "delta", "distribution known", "three", "infinite", "text"],
)
def test_there_is_nothing_farther_apart(mechanism, inputs, options):
    vectors = tuple(np.array(x) if isinstance(x, list) else x for x in inputs)
    assert experiment(mechanism, vectors, **options).farther(5) is None


def test_large_losses_need_no_larger_ones():
    assert experiment(OwnNoise(), (np.zeros(1), np.ones(1))).farther(factor_for(2.0)) is None
    assert factor_for(-1.0) == FARTHEST


@pytest.mark.parametrize(("region", "anywhere"), [("query(linf, 1)", True), ("clip(linf, 1)", False)])
def test_only_answers_of_queries_may_be_anywhere(region, anywhere):
    options = AuditOptions.of({"region": region, "dim": 2, "epsilon": 1.0})
    question, _ = resolve(as_mechanism(lambda x, n, rng: x[0] + rng.laplace(size=n)), options)
    assert question.experiment(question.input_sets[0], 0).anywhere == anywhere


def found(mechanism, pairs, budget=40_000, fixed=True):
    steps = search(lambda inputs, number, aim: experiment(mechanism, inputs, number, aim), pairs, BOUND, budget, fixed)
    costs, results = zip(*steps, strict=True)
    return sum(costs), results[-1]


UNIT = [(np.zeros(6), np.eye(6)[j]) for j in range(6)]


def test_a_search_finds_the_best_pair_by_inputs_farther_apart():
    # 6,000 runs of each input tell losses of 0.01 and 0.02 hardly from 0: log-odds of halves have a standard error of
    # 0.026. Fifteen times as far apart they are 0.15 and 0.3.
    right = 0
    for seed in range(4):
        mechanism = OwnNoise(np.random.default_rng(seed))
        cost, pair = found(mechanism, UNIT)
        assert cost == sum(n for _, n in mechanism.asked) <= 40_000
        right += pair is UNIT[-1]
    assert right >= 3


def test_a_search_for_a_refutation_asks_for_no_other_inputs():
    mechanism = OwnNoise()
    found(mechanism, UNIT, fixed=False)
    assert {x for x, _ in mechanism.asked} == {tuple(x) for pair in UNIT for x in pair}


@dataclass
class Refusing(OwnNoise):
    """Answers below 0 are refused."""

    error: type[Exception] = ValueError

    def sample(self, x, n, rng):
        if (x < 0).any():
            raise self.error("an answer below 0")
        return super().sample(x, n, rng)


@pytest.mark.parametrize("error", [ValueError, InputError, MechanismError])
def test_inputs_that_the_mechanism_refuses_are_left_alone(error):
    mechanism = Refusing(error=error)
    found(mechanism, UNIT)
    training = learn_well(experiment(mechanism, UNIT[0]), 100_000)
    near = {tuple(x) for pair in UNIT for x in pair}
    assert {n for x, n in mechanism.asked if x not in near} <= {1}
    assert training.rule is not None


# ── Rules ────────────────────────────────────────────────────────────────────────────────────────


def extrapolated(right, wrong, power=0.9, factor=9, runs=2000):
    rule = DecisionRule(Statistic("coordinate 0", 1), -math.inf, 0.0, 900, 300, power, 1.0)
    return Extrapolated(rule, factor, 0.5, runs, right, wrong)


def test_a_rule_from_farther_inputs_is_kept_unless_counts_speak_against_it():
    # It promises 0.9 / 9 = 0.1. Log-odds of 0.05 ± 0.063 allow that, and -0.1 ± 0.063 and 0.05 ± 0.0063 do not.
    assert extrapolated(513, 487).holds_against(0.0)
    assert not extrapolated(475, 525).holds_against(0.0)
    assert not extrapolated(51_250, 48_750, runs=200_000).holds_against(0.0)
    assert extrapolated(513, 487).checked.expected_power == pytest.approx(0.1)


def test_a_rule_from_farther_inputs_must_promise_about_as_much_as_the_other():
    assert extrapolated(1000, 900, power=0.9).holds_against(0.104)
    assert not extrapolated(1000, 900, power=0.9).holds_against(0.2)


def test_a_rule_from_farther_inputs_must_guess_about_as_often_here():
    # There it guesses on half of the outputs. What it reads may be a little rarer here, but not missing.
    assert extrapolated(130, 125).holds_against(0.0)
    assert not extrapolated(125, 120).holds_against(0.0)
    assert not extrapolated(0, 0).holds_against(0.0)


def test_a_small_loss_is_learnt_from_inputs_farther_apart():
    # Laplace noise of scale 100, sums 2 apart: the loss is 0.02 wherever an output is beyond both sums. Half of it is
    # asked for. Rules from 12,500 runs of neighbours are mostly chance: their log-odds have a standard error of 0.018.
    powers = []
    for seed in range(5):
        mechanism = OwnNoise(np.random.default_rng(seed))
        rule = learn_well(experiment(mechanism, UNIT[-1]), 200_000).rule
        rng = np.random.default_rng(100 + seed)
        fresh = [x.sum() + x[-1] + rng.laplace(scale=100, size=(1_000_000, 1)) for x in UNIT[-1]]
        counts = [rule.count_scores(scores_of(rule, outputs), side) for side, outputs in enumerate(fresh)]
        right, wrong = np.sum(counts, axis=0)
        powers.append(math.log(right / wrong))
    assert np.median(powers) >= 0.01


def scores_of(rule, numbers):
    return rule.distinguisher.score(read(numbers))


class OnlyFar(OwnNoise):
    """Tells its input, but only one that is far from 0; of others nothing, but for noise."""

    def sample(self, x, n, rng):
        return np.where(np.abs(x).max() > 2, 1000 * np.sign(x.sum()), 0.0) + super().sample(0 * x, n, rng)


def test_what_only_farther_inputs_show_is_not_believed():
    rule = learn_well(experiment(OnlyFar(), UNIT[0]), 100_000).rule
    assert rule is None or rule.expected_power < 0.05


class Capped(OwnNoise):
    """Noise of scale 20 on the difference of two answers, and whether the first is above a cap that it seldom is."""

    def sample(self, x, n, rng):
        self.asked.append((tuple(x), n))
        return np.column_stack([x[-1] - x[0] + self.noise.laplace(scale=20, size=n), np.full(n, float(x[0] > 3))])


def test_a_pair_that_shows_more_only_farther_apart_is_not_taken():
    # The first pair moves one answer, and the cap shows it only farther apart. The second moves both: its loss is 0.1.
    pairs = [(np.zeros(2), np.array([1.0, 0.0])), (np.array([0.0, 1.0]), np.array([1.0, 0.0]))]
    right = sum(found(Capped(np.random.default_rng(seed)), pairs, 60_000)[1] is pairs[1] for seed in range(4))
    assert right >= 3


def test_after_two_refusals_no_more_inputs_are_tried():
    class Halves(OwnNoise):
        """Refuses all but the first pair, farther apart."""

        def sample(self, x, n, rng):
            self.asked.append((tuple(x), n))
            if np.abs(x[1:]).max() > 2:
                raise ValueError("too far")
            return OwnNoise.sample(self, x, n, rng)

    mechanism = Halves()
    found(mechanism, UNIT)
    assert len({x for x, _ in mechanism.asked if np.abs(x[1:]).max() > 2}) == 4  # both inputs of two pairs


@pytest.mark.parametrize(
    "answer",
    [lambda x, n: [None] * n, lambda x, n: [object()] * n, lambda x, n: np.zeros(1), lambda x, n: None if n > 1 else 0],
    ids=["None", "a type that cannot be read", "too few", "None for a batch"],
)
def test_odd_answers_to_farther_inputs_cost_nothing_but_runs(answer):
    class Odd(OwnNoise):
        def sample(self, x, n, rng):
            return answer(x, n) if np.abs(x).max() > 4 else super().sample(x, n, rng)

    mechanism = Odd()
    cost, pair = found(mechanism, UNIT)
    assert cost <= 40_000
    assert any(pair is one for one in UNIT)
    assert learn_well(experiment(mechanism, UNIT[0]), 100_000).rule is not None
