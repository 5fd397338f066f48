"""The game: coins, tasks and counts; when it stops; and the comparison of a sampler with its distribution."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom

from dpassay.audit.distinguishers.custom import CustomDistinguisher
from dpassay.audit.distinguishers.statistic import Statistic
from dpassay.audit.inputs.pair_search import search
from dpassay.audit.mechanisms.targets import as_mechanism, draw
from dpassay.audit.outputs.outputs import read
from dpassay.audit.testing.decision_rule import DecisionRule, Hypothesis
from dpassay.audit.testing.experiment import (
    KEPT,
    MOST_ROWS,
    TEST,
    Experiment,
    GameState,
    RoundResult,
    against_distribution,
    bound,
    rejected,
    stream,
)
from dpassay.audit.testing.inference import RoundCounts, accuracy_bound, anytime_bound, log_evidence, p_value
from dpassay.audit.testing.sequential import Task, anytime, fixed, run_task, tasks_of
from dpassay.audit.testing.training import CELLS, MOST_LEARNT, learn_rule, rows_at_a_time, training_outputs
from dpassay.errors import DpassayError
from dpassay.pipeline.distributions import Gaussian, Laplace, Shifted
from dpassay.pipeline.mechanism import Redrawn
from statistics_helper import FALSE_ALARMS, counts_p_value, generator, require

NOISY = as_mechanism(lambda x, n, rng: x + rng.laplace(scale=0.5, size=n))
EXACT = as_mechanism(lambda x, n, rng: np.full(n, float(x)))  # tells its input
HALF = DecisionRule(Statistic("coordinate 0", 1), 1, 3, 9, 1, 0.1, 0.25)  # the first up to 1/4, the second from 3/4


class Recorded:
    """A mechanism that records its calls."""

    def __init__(self, function):
        self.function, self.asked = function, []

    def sample(self, x, n, rng):
        self.asked.append((float(np.ravel(x)[0]), n))
        return self.function(x, n, rng)


def experiment(mechanism, hypothesis=None, inputs=(0.0, 1.0), **options):
    return Experiment(mechanism, inputs, hypothesis or Hypothesis(1.0, 0.0, len(inputs)), 5, **options)


def new_round(rule=HALF, **options):
    return RoundResult(rule, RoundCounts(), 0, 10**9, **options)


class Noises:
    """A mechanism that remembers the noise of every batch."""

    def __init__(self):
        self.drawn = []

    def sample(self, x, n, rng):
        self.drawn.append(rng.laplace(size=n))
        return x + self.drawn[-1]


def test_both_inputs_are_learnt_from_the_same_random_numbers():
    mechanism = Noises()
    first, second = training_outputs(experiment(mechanism), 4_000, experiment(mechanism).paired_streams(0))[0]
    assert len(first) == len(second) == 2_000
    assert np.ptp(second.numbers - first.numbers) < 1e-12
    assert len(np.unique(first.numbers)) == 2_000  # of each input every run is another


def test_all_inputs_of_a_search_get_the_same_random_numbers():
    mechanism = Noises()
    pairs = [(0.0, 1.0), (0.0, 2.0), (1.0, 2.0)]
    steps = search(
        lambda inputs, number, aim: experiment(mechanism, aim, inputs, number=number),
        pairs,
        Hypothesis(1.0),
        900,
        False,
    )
    cost, _ = next(steps)
    noise = np.concatenate(mechanism.drawn).reshape(3, -1)  # one input after the other
    assert cost == noise.size
    assert (noise == noise[0]).all()


def test_the_game_is_tested_on_independent_runs():
    mechanism = Noises()
    run_task(experiment(mechanism), new_round(), Task(0, 0, 500, 0), [])
    noise = np.concatenate(mechanism.drawn)
    assert len(mechanism.drawn) == 2
    assert len(np.unique(noise)) == len(noise) == 500


def run_one(experiment, current, runs, place, kept):
    return run_task(experiment, current, Task(*place, runs, 0), kept)


def finish(steps):
    return [game.runs for game in steps]


# ── Streams and tasks ───────────────────────────────────────────────────────────────────────────


def test_every_place_has_a_stream_of_its_own():
    places = [(), (0,), (1,), (0, 0), (0, 1), (1, 0), (0, 0, 0), (0, 1, 0), (2**40,)]
    first = {tuple(stream(seed, *place).integers(2**63, size=2).tolist()) for seed in (0, 1, 2**70) for place in places}
    assert len(first) == 3 * len(places)
    assert stream(3, 1, 2).integers(2**63) == stream(3, 1, 2).integers(2**63)


def test_a_task_is_the_same_wherever_and_whenever_it_is_run():
    tasks = [(e, t) for e in range(2) for t in range(5)]
    forward = {place: run_one(experiment(NOISY), new_round(), 50, place, []) for place in tasks}
    backward = {place: run_one(experiment(NOISY), new_round(), 50, place, []) for place in reversed(tasks)}
    assert forward == backward
    assert len(set(forward.values())) > 3  # though not all alike
    assert run_one(experiment(NOISY, number=1), new_round(), 50, (0, 0), []) != forward[0, 0] or (
        run_one(experiment(NOISY, number=1), new_round(), 50, (0, 1), []) != forward[0, 1]
    )


def test_tasks_are_numbered_in_each_round():
    seen = []

    class Spy(Experiment):
        def stream(self, *place):
            seen.append(place)
            return super().stream(*place)

    game = GameState([new_round(rows=20)])
    spy = Spy(NOISY, (0.0, 1.0), Hypothesis(1.0), 5)
    finish(fixed(spy, game, 50))
    game.rounds.append(new_round(rows=30))
    finish(fixed(spy, game, 80))
    assert seen == [(TEST, 0, 0), (TEST, 0, 1), (TEST, 0, 2), (TEST, 1, 0)]
    assert [e.sizes for e in game.rounds] == [((20, 2), (10, 1)), ((30, 1),)]
    assert [e.counts.runs for e in game.rounds] == [50, 30]
    assert [(t.number, t.size, t.before) for e in (0, 1) for t in tasks_of(game, e)] == [
        (0, 20, 0), (1, 20, 20), (2, 10, 40), (0, 30, 50),
    ]  # fmt: skip
    assert game.runs == 80


@pytest.mark.parametrize("way", ["anytime", "fixed"])
def test_the_same_seed_gives_the_same_counts(way):
    def counts(seed):
        game = GameState(kept=[[], []])
        where = Experiment(NOISY, (0.0, 1.0), Hypothesis(1.9, 0.0, 2, 2000 if way == "fixed" else 0), seed)
        finish(fixed(where, game, 2000) if way == "fixed" else anytime(where, game, 2000, 0.001))
        return game.counts, [e.sizes for e in game.rounds], game.runs

    assert counts(5) == counts(5)
    assert counts(5) != counts(6)


# ── Coins ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("count", [2, 3, 7])
def test_all_runs_are_made_and_counted(count):
    mechanism = Recorded(EXACT.sample)
    inputs = tuple(float(i) for i in range(count))
    named = DecisionRule(
        CustomDistinguisher(lambda outputs: [[-abs(float(np.ravel(o)[0]) - i) for i in inputs] for o in outputs]),
        -math.inf,
        0.0,
        1,
        0,
        0,
        1,
        count,
    )
    if count == 2:
        named = HALF
    for runs in (1, 2, 50):
        mechanism.asked.clear()
        assert run_one(experiment(mechanism, inputs=inputs), new_round(named), runs, (0, 0), []) == (runs, 0, runs)
        assert sum(n for _, n in mechanism.asked) == runs
        assert all(n > 0 for _, n in mechanism.asked)


def test_the_coin_is_fair():
    # The number of runs of the second input, of 3 coins a task: Bin(3, 1/2). And of three inputs, one coin: 1/3 each.
    name = "coins of two"
    seed = int(generator(name).integers(2**32))
    mechanism = Recorded(EXACT.sample)
    seen = []
    for task in range(2500):
        mechanism.asked.clear()
        run_one(Experiment(mechanism, (0.0, 1.0), Hypothesis(1.0), seed), new_round(), 3, (0, task), [])
        seen.append(sum(n for x, n in mechanism.asked if x == 1))
    require(name, counts_p_value(np.bincount(seen, minlength=4), np.array([1, 3, 3, 1]) / 8))


def test_the_coin_of_three_is_fair():
    name = "coins of three"
    seed = int(generator(name).integers(2**32))
    mechanism = Recorded(EXACT.sample)
    always = DecisionRule(
        CustomDistinguisher(lambda outputs: np.zeros((len(outputs), 3))), -math.inf, -math.inf, 1, 0, 0.0, 1.0, 3
    )
    for task in range(2500):
        run_one(
            Experiment(mechanism, (0.0, 1.0, 2.0), Hypothesis(1.0, 0.0, 3), seed), new_round(always), 1, (0, task), []
        )
    counts = np.bincount([int(x) for x, _ in mechanism.asked], minlength=3)
    require(name, counts_p_value(counts, np.full(3, 1 / 3)))


def test_a_coin_knows_nothing_of_the_mechanism():
    # The coins are thrown before the mechanism draws, so how much it draws changes nothing of its first batch's size.
    greedy = Recorded(lambda x, n, rng: rng.normal(size=(1000, n))[0])
    plain = Recorded(EXACT.sample)
    for task in range(20):
        for mechanism in (greedy, plain):
            run_one(experiment(mechanism), new_round(), 100, (0, task), [])
    assert greedy.asked == plain.asked


# ── Counting ────────────────────────────────────────────────────────────────────────────────────


def test_abstaining_is_neither_right_nor_wrong():
    between = as_mechanism(lambda x, n, rng: np.full(n, 0.5))
    assert run_one(experiment(between), new_round(), 40, (0, 0), []) == (0, 0, 40)
    swapped = as_mechanism(lambda x, n, rng: np.full(n, 1.0 - x))
    assert run_one(experiment(swapped), new_round(), 40, (0, 0), []) == (0, 40, 40)


def fragile(x, n, rng):
    """Fails as a batch where the input is 1, and never one at a time."""
    if x == 1 and n > 1:
        raise RuntimeError("a batch")
    return np.full(n, float(x))


class Known:
    """A mechanism that says what its distribution is; no rule is learnt from its outputs."""

    def __init__(self, sample):
        self.sample = sample

    def distribution(self, x):
        raise AssertionError("nobody asks")


def test_a_batch_that_was_drawn_again_counts_as_wrong():
    mechanism = as_mechanism(fragile)
    assert isinstance(draw(mechanism, 1.0, 5, stream(0)), Redrawn)
    sides = np.bincount(stream(5, 0, TEST, 0, 0).integers(0, 2, 50)).tolist()
    kept = [[], []]
    assert run_one(experiment(mechanism), new_round(), 50, (0, 0), kept) == (sides[0], sides[1], 50)
    assert [sum(map(len, side)) for side in kept] == sides  # the next rule may be learnt from it

    kept = [[], []]
    assert run_one(experiment(Known(fragile)), new_round(), 50, (0, 0), kept) == (sides[0], sides[1], 50)
    assert kept[1] == []  # but it is not compared with a distribution
    # One at a time nothing is drawn again, and each guess counts as what it is.
    assert run_one(experiment(mechanism), new_round(singly=True), 50, (0, 0), []) == (50, 0, 50)


def test_the_next_round_runs_one_at_a_time_after_a_failure():
    training = learn_rule(experiment(as_mechanism(fragile)), 200, 0)
    assert training.singly
    assert training.cost == 200
    assert not learn_rule(experiment(EXACT), 200, 0).singly


def test_failures_of_one_input_are_evidence():
    def fails(x, n, rng):
        if x == 1:
            raise ZeroDivisionError
        return np.zeros(n)

    game = GameState(kept=[[], []])
    where = experiment(as_mechanism(fails))
    finish(anytime(where, game, 2000, 0.001))
    assert rejected(game, where.hypothesis, 0.001, False)
    assert game.rounds[0].singly


def test_a_mechanism_that_always_fails_is_no_evidence():
    def fails(x, n, rng):
        raise ZeroDivisionError("never")

    with pytest.raises(DpassayError, match="failed in every run"):
        finish(anytime(experiment(as_mechanism(fails)), GameState(kept=[[], []]), 2000, 0.001))


@pytest.mark.parametrize("score", [-math.inf, math.inf])
def test_a_rule_names_no_more_sides_than_it_says(score):
    # With δ > 0 the price of a bet is δ·sides/2: a side that is named and not paid for makes the bet unfair.
    one_sided = DecisionRule(
        Statistic("coordinate 0", 1), *((-math.inf, 1.0) if score < 0 else (1.0, math.inf)), 5, 1, 0.1, 1.0
    )
    assert one_sided.initial_counts(1.0).sides == 1
    assert one_sided.count(read([score]), 0) == (0, 0)


# ── Memory ──────────────────────────────────────────────────────────────────────────────────────


def test_what_is_kept_is_bounded():
    kept = [[], []]
    for task in range(80):
        run_one(experiment(Known(EXACT.sample)), new_round(), 40 * (1 + task), (0, task), kept)
    assert [sum(map(len, batches)) for batches in kept] == [KEPT, KEPT]  # to be compared with the distribution
    kept = [[], []]
    for task in range(9):
        run_one(experiment(NOISY), new_round(), MOST_ROWS, (0, task), kept)
    assert [sum(map(len, batches)) for batches in kept] == [MOST_LEARNT // 2] * 2  # to learn from
    run_one(experiment(NOISY), new_round(), 10, (0, 0), [])  # and nothing needs to be kept


@pytest.mark.parametrize(("width", "rows"), [(1, MOST_ROWS), (32, CELLS // 32), (10**4, CELLS // 10**4), (10**6, 64)])
def test_rows_at_a_time(width, rows):
    assert rows_at_a_time(read(np.zeros((1, width)))) == rows
    assert rows <= MOST_ROWS


def test_texts_are_held_in_moderate_numbers():
    assert 64 <= rows_at_a_time(read(["a text"])) <= MOST_ROWS // 4


def most_cells(way, width, runs=3000):
    mechanism = Recorded(lambda x, n, rng: x + rng.laplace(size=(n, width)))
    where = Experiment(
        mechanism, (np.zeros(width), np.full(width, 0.1)), Hypothesis(1e3, 0.0, 2, runs if way == "fixed" else 0), 1
    )
    game = GameState(kept=[[], []])
    finish(fixed(where, game, runs) if way == "fixed" else anytime(where, game, runs, 0.001))
    assert game.runs == runs
    return max(n for _, n in mechanism.asked) * width


@pytest.mark.long
def test_wide_outputs_come_in_batches_that_fit_into_memory():
    assert most_cells("anytime", 8192) <= CELLS


def test_wide_outputs_of_a_fixed_game_too():
    assert most_cells("fixed", 8192) <= CELLS


# ── When it stops ───────────────────────────────────────────────────────────────────────────────


def test_an_anytime_game_stops_as_soon_as_the_evidence_passes():
    where, alpha = experiment(NOISY), 0.001
    game = GameState(kept=[[], []])
    evidence = []
    for state in anytime(where, game, 50_000, alpha):
        evidence.append(log_evidence(state.counts, 1.0))
        assert rejected(state, where.hypothesis, alpha, False) == (evidence[-1] >= -math.log(alpha))
    assert [e >= -math.log(alpha) for e in evidence] == [False] * (len(evidence) - 1) + [True]
    assert game.runs < 50_000
    assert bound(game, where.hypothesis, alpha, False) == anytime_bound(game.counts, alpha) >= 1


def test_an_anytime_game_that_finds_nothing_spends_its_runs_and_no_more():
    mechanism = Recorded(NOISY.sample)
    game = GameState(kept=[[], []])
    finish(anytime(experiment(mechanism, Hypothesis(30.0)), game, 5000, 0.001))
    assert game.runs == 5000 == sum(n for _, n in mechanism.asked)
    assert game.runs == sum(e.learnt_from + e.counts.runs for e in game.rounds)
    assert all(e.counts.runs == e.finished for e in game.rounds)
    assert len(game.rounds) > 1
    assert not rejected(game, Hypothesis(30.0), 0.001, False)


def test_learning_and_playing_never_share_runs():
    # Learning and playing draw from streams of their own: no output that was learnt from is guessed.
    seen = {"learn": set(), "test": set()}

    class Spy(Experiment):
        def stream(self, *place):
            rng = super().stream(*place)
            seen["test" if place[0] == TEST else "learn"].add(place)
            return rng

    game = GameState(kept=[[], []])
    finish(anytime(Spy(NOISY, (0.0, 1.0), Hypothesis(30.0), 5), game, 5000, 0.001))
    assert len(seen["learn"]) == len(game.rounds) + 1  # a glance at likeness came before
    assert len(seen["test"]) == sum(e.tasks for e in game.rounds)


def test_a_fixed_game_plays_all_its_runs():
    mechanism = Recorded(EXACT.sample)
    aim = Hypothesis(0.5, 0.0, 2, 9000)
    game = GameState(kept=[[], []])
    finish(fixed(experiment(mechanism, aim), game, 9000))
    assert game.runs == 9000 == sum(n for _, n in mechanism.asked)  # although it was plain from the first
    right, wrong, runs = game.totals()
    assert (right, wrong) == (runs, 0)
    assert len(game.rounds) == 1
    assert bound(game, aim, 0.001, True) == accuracy_bound(right, wrong, 0.001)
    assert rejected(game, aim, 0.001, True) == (p_value(right, wrong, 0.5) <= 0.001) is True


def test_with_a_delta_a_pair_is_tested_by_betting_even_if_the_runs_are_fixed():
    game = GameState([RoundResult(HALF, RoundCounts(500, 0, 1000, 9.5, 1.5), 0, 1000)], 1000)
    aim = Hypothesis(1.0, 0.1, 2, 1000)
    assert bound(game, aim, 0.01, True) == anytime_bound(game.counts, 0.01, 0.1)
    assert rejected(game, aim, 0.01, True)
    assert not rejected(
        game, Hypothesis(1.0, 0.6, 2, 1000), 0.01, True
    )  # P(right) is at most δ = 0.6: nothing is shown
    many = Hypothesis(1.0, 0.1, 5, 1000)
    assert bound(game, many, 0.01, True) == accuracy_bound(500, 0, 0.01, 5, 0.1)


def test_no_game_no_bound():
    assert bound(GameState(), Hypothesis(1.0), 0.05, False) == bound(GameState(), Hypothesis(1.0), 0.05, True) == 0
    assert not rejected(GameState(), Hypothesis(0.0), 0.05, True)
    assert GameState().rule is None
    assert GameState().totals() == (0, 0, 0)


def test_the_best_round():
    rounds = [RoundResult(HALF, RoundCounts(c, w, 100), 0, 100) for c, w in ((50, 50), (99, 1), (60, 40))]
    assert GameState(rounds).best(Hypothesis(1.0)) is rounds[1]


def test_a_fixed_game_that_was_interrupted_goes_on_with_the_same_tasks():
    aim = Hypothesis(1.0, 0.0, 2, 200_000)
    whole = GameState(kept=[[], []])
    finish(fixed(experiment(NOISY, aim), whole, 200_000))
    broken = GameState(kept=[[], []])
    list(itertools.islice(fixed(experiment(NOISY, aim), broken, 200_000), 2))
    again = GameState(broken.rounds, broken.runs, kept=[[], []])  # as it comes from a file
    finish(fixed(experiment(NOISY, aim), again, 200_000))
    assert [e.sizes for e in again.rounds] == [e.sizes for e in whole.rounds]
    assert again.counts == whole.counts


# ── A known distribution ─────────────────────────────────────────────────────────────────────────────────


class Declared:
    """Laplace noise of scale 1, as it says."""

    def distribution(self, x):
        return Shifted(Laplace(1), np.array([float(x)]))

    def sample(self, x, n, rng):
        return self.distribution(x).sample(n, rng)


@pytest.mark.parametrize("says", ["laplace", None, 3.0])
def test_a_method_of_that_name_may_return_something_else(says):
    mechanism = Recorded(Declared().sample)
    mechanism.distribution = lambda x: says
    where = experiment(mechanism, Hypothesis(0.5))
    assert where.distributions() is None
    assert learn_rule(where, 100, 0).cost > 0


def test_where_the_law_is_known_learning_costs_no_runs():
    mechanism = Recorded(Declared().sample)
    mechanism.distribution = Declared().distribution
    where = experiment(mechanism, Hypothesis(0.5))
    training = learn_rule(where, 100, 0)
    assert training.cost == 0
    assert mechanism.asked == []
    assert training.rule.distinguisher.describe() == "the exact likelihood ratio"
    game = GameState(kept=[[], []])
    finish(anytime(where, game, 400, 0.001))
    assert game.runs == sum(n for _, n in mechanism.asked) == sum(t.runs for t in game.counts)


def test_a_sampler_of_positive_numbers_only_is_caught():
    # Half of the distribution is negative and names itself: who calls the rest the sampler's is right 3 times of 4.
    # Of the 500 outputs that are tested so few are right that p > 1e-6 with the probability below, less than allowed.
    name = "positive draws"
    enough = next(c for c in range(500) if binom.sf(c - 1, 500, 0.5) <= 1e-6)
    assert binom.cdf(enough - 1, 500, 0.75) < FALSE_ALARMS[name]
    distribution = Shifted(Laplace(1), np.zeros(1))
    rng = generator(name)
    assert against_distribution([read(np.abs(distribution.sample(1000, rng)))], distribution, rng) <= 1e-6


@pytest.mark.parametrize(
    "batches",
    [
        [],
        [read(np.zeros((3, 1)))],
        [read(np.zeros((0, 1)))],
        [read([None] * 3)],
    ],
)
def test_too_few_outputs_say_nothing(batches):
    distribution = Shifted(Laplace(1), np.zeros(1))
    if batches:
        assert against_distribution(batches, distribution, stream(1)) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        lambda rng: rng.laplace(scale=2, size=(1000, 1)),
        lambda rng: rng.laplace(size=(1000, 1)).round(),
        lambda rng: rng.normal(size=(1000, 1)) + 3,
        lambda rng: np.zeros((1000, 1)),
        lambda rng: [None, *rng.laplace(size=999).tolist()],
        lambda rng: ["text"] * 1000,
        lambda rng: rng.laplace(size=(1000, 3)),
        lambda rng: np.full((1000, 1), np.nan),
    ],
    ids=["scale", "rounded", "gaussian", "constant", "one None", "text", "wide", "nan"],
)
def test_other_wrong_samplers(wrong, request):
    distribution = Shifted(Laplace(1), np.zeros(1))
    p = against_distribution([read(wrong(np.random.default_rng(0)))], distribution, stream(1))
    assert 0 <= p <= 1
    if request.node.callspec.id not in ("one None", "scale"):  # one of 1,000 is too little to be sure
        assert p <= 1e-6


def test_a_right_sampler_is_seldom_accused():
    # Each p-value is at most t with probability at most t. Of 200 the number below 1/10 is dominated by Bin(200, 1/10).
    name = "right samplers"
    rng = generator(name)
    low = 0
    for noise, dim in ((Laplace(1), 1), (Gaussian(2), 3)):
        distribution = Shifted(noise, np.zeros(dim))
        low += sum(
            against_distribution([read(distribution.sample(100, rng))], distribution, rng) <= 0.1 for _ in range(100)
        )
    require(name, float(binom.sf(low - 1, 200, 0.1)))


def test_the_coin_between_a_sampler_and_its_law_is_fair(monkeypatch):
    # Whoever always calls the sampler (or always the distribution) is right as often as the coin says so.
    name = "coins against the distribution"
    distribution, rng = Shifted(Laplace(1), np.zeros(1)), generator(name)
    p_values, tested = [], []
    monkeypatch.setattr(
        "dpassay.audit.testing.experiment.p_value", lambda *counts: tested.append(counts) or p_value(*counts)
    )
    for low, high in ((1e300, math.inf), (-math.inf, -1e300)):
        always = DecisionRule(Statistic("coordinate 0", 1), low, high, 1, 0, 0.0, 1.0)
        monkeypatch.setattr("dpassay.audit.testing.experiment.learn", lambda *_, always=always: always)
        p_values.append(against_distribution([read(distribution.sample(20_000, rng))], distribution, rng))
    assert [right + wrong for right, wrong, _ in tested] == [10_000, 10_000]  # each coin is guessed once
    require(name, min(1.0, 2 * min(p_values)))


def test_guesses_of_a_right_mechanism_are_right_as_often_as_allowed():
    # Laplace noise of scale 1 and the inputs 0 and 1 is exactly 1-DP; the rule is fixed. Right among the guesses: at
    # most 1/(1 + e^−1), and attained beyond both inputs.
    name = "right guesses"
    rule = DecisionRule(Statistic("coordinate 0", 1), 0.0, 1e9, 9, 1, 0.1, 1e-9)  # thresholds count in grains: 0 and 1
    where = Experiment(Declared(), (0.0, 1.0), Hypothesis(1.0), int(generator(name).integers(2**32)))
    right, wrong, _ = run_one(where, new_round(rule), 200_000, (0, 0), [])
    p = 1 / (1 + math.exp(-1))
    tails = binom.cdf(right, right + wrong, p), binom.sf(right - 1, right + wrong, p)
    require(name, min(1.0, 2 * float(min(tails))))
