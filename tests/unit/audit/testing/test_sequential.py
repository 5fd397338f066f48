"""Tasks: known beforehand, the same wherever they run, and drawn by kernels if a distribution is known."""

import itertools
import math

import numpy as np
import pytest

from dpassay.audit.distinguishers.custom import CustomDistinguisher
from dpassay.audit.distinguishers.likelihood_ratio import LikelihoodRatio
from dpassay.audit.distinguishers.statistic import Statistic
from dpassay.audit.mechanisms.kernels import KERNELS_FROM, for_kernels
from dpassay.audit.mechanisms.targets import as_mechanism
from dpassay.audit.outputs.outputs import read
from dpassay.audit.remote.timing import OutOfTime
from dpassay.audit.testing.decision_rule import DecisionRule, Hypothesis
from dpassay.audit.testing.experiment import MOST_ROWS, TEST, Experiment, GameState, RoundResult
from dpassay.audit.testing.inference import RoundCounts
from dpassay.audit.testing.sequential import (
    Task,
    anytime,
    fixed,
    in_this_process,
    keep,
    run_task,
    tasks_of,
    upcoming,
)
from dpassay.audit.testing.training import MOST_LEARNT
from dpassay.compute.kernels.philox import key
from dpassay.errors import MechanismError
from dpassay.pipeline.distributions import Laplace
from dpassay.pipeline.parser import parse
from dpassay.pipeline.pipeline import Pipeline
from dpassay.pipeline.stages.bounds.clamp import Clamp
from dpassay.pipeline.stages.functions import Encode
from dpassay.pipeline.stages.noises.additive import Additive

NOISE = parse("laplace(2)", dim=4)
INPUTS = (np.zeros(4), np.ones(4))
NOISY = as_mechanism(lambda x, n, rng: x + rng.laplace(scale=0.5, size=n))
HALF = DecisionRule(Statistic("coordinate 0", 1), 1, 3, 9, 1, 0.1, 0.25)


def known(mechanism=NOISE, inputs=INPUTS, **options):
    experiment = Experiment(mechanism, inputs, Hypothesis(1.0), 5, **options)
    return experiment, RoundResult(
        DecisionRule(LikelihoodRatio(tuple(experiment.distributions())), -1.0, 1.0, 9, 1, 0.1, 1e-6),
        RoundCounts(),
        0,
        10**9,
    )


def known_rule(mechanism, inputs=INPUTS):
    experiment, current = known(mechanism, inputs)
    return experiment, current.rule


def state(game):
    return [(e.counts, e.sizes) for e in game.rounds], game.runs


@pytest.mark.parametrize("growing", [True, False])
def test_what_comes_is_known_before_it_is_run(growing):
    experiment, current = known()
    whole = list(upcoming(experiment, GameState([current]), 300_000, growing=growing))
    assert sum(task.size for task in whole) == 300_000
    assert [task.number for task in whole] == list(range(len(whole)))
    assert [task.before for task in whole] == [sum(t.size for t in whole[:i]) for i in range(len(whole))]
    assert max(task.size for task in whole) <= MOST_ROWS
    game = GameState([current], kept=[[], []])
    steps = (fixed if not growing else lambda *a: anytime(*a, 1e-300))(experiment, game, 300_000)
    for played in itertools.islice(steps, 7):  # what comes after the seventh task is what was foreseen
        assert played is game
    assert list(upcoming(experiment, game, 300_000, growing=growing)) == whole[7:]
    assert list(tasks_of(game, 0)) == whole[:7]


def test_players_may_work_ahead_and_counts_come_in_order():
    def ahead(experiment, current, tasks, kept):
        known = list(tasks)  # all of them, run backwards; what they drew is kept in order, as they are counted
        drawn = {task: [[], []] for task in known}
        counts = {task: run_task(experiment, current, task, drawn[task]) for task in reversed(known)}
        for task in known:
            for side, outputs in enumerate(drawn[task]):
                for some in outputs:
                    keep(experiment, kept, side, some)
            yield task, counts[task]

    first, second = GameState(kept=[[], []]), GameState(kept=[[], []])
    experiment = Experiment(NOISY, (0.0, 1.0), Hypothesis(1.95), 5)
    for _ in anytime(experiment, first, 20_000, 0.001):
        pass
    for _ in anytime(experiment, second, 20_000, 0.001, ahead):
        pass
    assert state(first) == state(second)
    assert first.runs > 5000


def test_who_stops_early_ends_the_player():
    closed = []

    def run_tasks(experiment, current, tasks, kept):
        try:
            yield from in_this_process(experiment, current, tasks, kept)
        finally:
            closed.append(True)

    experiment = Experiment(as_mechanism(lambda x, n, rng: np.full(n, float(x))), (0.0, 1.0), Hypothesis(1.0), 5)
    game = GameState(kept=[[], []])
    for _ in anytime(experiment, game, 10**6, 0.001, run_tasks):
        pass
    assert closed == [True] * len(game.rounds)
    assert game.runs < 2000


@pytest.mark.parametrize("delta", [0.0, 0.25])
def test_a_task_that_breaks_off_ends_the_game_at_its_place(delta):
    def run_tasks(experiment, current, tasks, kept):
        for task in tasks:
            yield task, MechanismError("gone") if task.number == 2 else (task.size, 0, task.size)

    game = GameState([RoundResult(HALF, RoundCounts(), 0, 10**9, rows=10)])
    experiment = Experiment(NOISY, (0.0, 1.0), Hypothesis(1.0, delta), 5)
    with pytest.raises(MechanismError, match="gone"):
        list(fixed(experiment, game, 100, run_tasks))
    lost = 10 if delta else 0
    assert game.rounds[0].sizes == ((10, 2), (0, 1))
    assert game.totals() == (20, lost, 20 + lost)
    assert next(upcoming(experiment, game, 100, growing=False)) == Task(0, 3, 10, 20)


@pytest.mark.parametrize(("delta", "wrong"), [(0.0, 0), (1e-3, 8)])
@pytest.mark.parametrize("stop", [KeyboardInterrupt, OutOfTime])
def test_a_task_that_was_cut_is_not_run_again_with_the_same_coins(stop, delta, wrong):
    """Unless the seed gives the same outputs again: else those that hang would come too rarely, not equally so for all
    inputs, and a right mechanism could be refuted."""
    asked = []

    def hangs(x, rng):
        asked.append(x)
        if len(asked) == 20:
            raise stop
        return x + rng.laplace()

    experiment = Experiment(as_mechanism(hangs), (0.0, 1.0), Hypothesis(1.0, delta), 5)
    for replays in (True, False):
        asked.clear()
        game = GameState([RoundResult(HALF, RoundCounts(), 0, 32, singly=True)], 0, kept=[], replays=replays)
        with pytest.raises(stop):
            list(anytime(experiment, game, 32, None))
        tasks = ((8, 2),) if replays else ((8, 2), (0, 1))
        assert (game.rounds[0].sizes, game.rounds[0].counts.runs) == (tasks, 16 if replays else 16 + wrong)
        list(itertools.islice(anytime(experiment, game, 32, None), 1))
        expected = experiment.stream(TEST, 0, 2 if replays else 3).integers(0, 2, 8)
        assert asked[20:28] == expected.tolist()


def test_kernels_draw_the_later_runs_of_a_pipeline_and_of_nothing_else():
    experiment, current = known()
    assert for_kernels(experiment, current.rule, KERNELS_FROM - 1) is None  # the first are the mechanism's own
    assert for_kernels(experiment, current.rule, KERNELS_FROM) is not None

    class Same:
        """The same distribution, but with its own sampler, which is what is audited."""

        distribution, sample = staticmethod(NOISE.distribution), staticmethod(NOISE.sample)

    other, its_round = known(Same())
    assert for_kernels(other, its_round.rule, 10**9) is None
    assert for_kernels(experiment, HALF, 10**9) is None


def test_kernels_draw_for_nothing_that_is_ones_own():
    class Wider(Laplace):
        def draw(self, shape, rng):
            return 10 * super().draw(shape, rng)

    wider = Pipeline((Additive(Wider(2)),), 4)
    assert for_kernels(*known_rule(wider), 10**9) is None
    moody = Pipeline((Encode(4, lambda texts: np.random.default_rng().normal(size=(len(texts), 4))), *NOISE.stages), 4)
    assert for_kernels(*known_rule(moody, ("a", "b")), 10**9) is None

    class Clamped(Clamp):
        """A stage of one's own is of another module."""

    own = Pipeline((Clamped(0, 1), *NOISE.stages), 4)
    assert for_kernels(*known_rule(own), 10**9) is None
    assert for_kernels(*known_rule(Pipeline((Clamp(0, 1), *NOISE.stages), 4)), 10**9) is not None


def test_kernels_stop_where_their_bits_might_tell():
    # dim · e^ε · 2^-33 · √runs is to stay below a hundredth of a standard error
    for dim, epsilon in ((1, 1.0), (4, 1.0), (4, 5.0)):
        pipeline = parse("laplace(2)", dim=dim)
        experiment = Experiment(pipeline, (np.zeros(dim), np.ones(dim)), Hypothesis(epsilon), 5)
        rule = DecisionRule(LikelihoodRatio(tuple(experiment.distributions())), -1.0, 1.0, 9, 1, 0.1, 1e-6)
        most = (0.01 * 2**33 / dim / math.exp(epsilon)) ** 2
        assert for_kernels(experiment, rule, int(most * 0.99)) is not None
        assert for_kernels(experiment, rule, int(most * 1.01)) is None


def test_all_devices_count_the_same():
    task = Task(0, 7, 5000, KERNELS_FROM)
    counts = set()
    for device in ("numpy", "cpu"):
        experiment, current = known(device=device)
        counts.add(run_task(experiment, current, task, []))
    assert len(counts) == 1
    right, wrong, runs = counts.pop()
    assert runs == 5000 >= right + wrong
    assert right > wrong > 0
    experiment, current = known()
    assert run_task(experiment, current, Task(0, 8, 5000, KERNELS_FROM), []) != (
        right,
        wrong,
        runs,
    )  # streams of their own
    other, _ = known(number=1)
    assert run_task(other, current, task, []) != (right, wrong, runs)


def test_every_task_and_side_has_a_stream_of_its_own(monkeypatch):
    asked = []
    monkeypatch.setattr("dpassay.audit.mechanisms.kernels.key", lambda *place: asked.append(key(*place)) or asked[-1])
    for number in (0, 1):
        experiment, current = known(number=number)
        for place in ((0, 0), (0, 1), (1, 0)):
            run_task(experiment, current, Task(*place, 100, KERNELS_FROM), [])
    assert len(set(asked)) == len(asked) == 2 * 3 * 2


def test_kernel_tasks_are_as_large_as_any():
    wide = parse("laplace(200)", dim=400)
    experiment, current = known(wide, (np.zeros(400), np.ones(400)))
    current = RoundResult(current.rule, RoundCounts(), 0, 10**9, rows=2600)
    sizes = [task.size for task in upcoming(experiment, GameState([current]), 500_000, growing=False)]
    assert set(sizes[:6]) == {2600}
    assert MOST_ROWS in sizes


def test_many_tasks_take_little_room():
    current = RoundResult(HALF, RoundCounts(), 0, 10**9)
    for size in [16, 18] + [100] * 5000 + [0] + [100] * 3:
        current = current.after(size)
    assert current.sizes == ((16, 1), (18, 1), (100, 5000), (0, 1), (100, 3))
    assert (current.tasks, current.finished) == (5006, 34 + 500_300)


GLANCE, FIRST = 32 + 8, 128 + 8  # runs before anything is learnt, and for the first rule; eight are drawn twice


def test_a_mechanism_of_single_outputs_learns_from_all_that_it_gave():
    """Only the first rule costs runs. Each next one is learnt when there are twice as many, and tested on others."""
    drawn = []

    def noisy(x, rng):
        drawn.append(x + rng.laplace())
        return drawn[-1]

    game = GameState(kept=[[], []])
    for _ in anytime(Experiment(as_mechanism(noisy), (0.0, 1.0), Hypothesis(3.0), 5), game, 2000, 0.001):
        pass
    # At first a glance at likeness. Eight were drawn twice, to see if they replay. The last rule is tested on the rest.
    assert [one.learnt_from for one in game.rounds] == [GLANCE + FIRST, 0, 0, 0]
    assert game.runs == len(drawn) == 2000
    assert game.rounds[0].length == 128
    assert 200 < game.rounds[1].length <= 32 + 256
    assert 400 < game.rounds[2].length <= 64 + 512
    assert game.rounds[3].counts.runs >= 2000 - GLANCE - FIRST - 128 - 288 - 576
    kept = [float(v) for side in game.kept for outputs in side for v in outputs.numbers.ravel()]
    assert sorted(kept) == sorted(drawn[:32] + drawn[GLANCE : GLANCE + 128] + drawn[GLANCE + FIRST :])


def test_outputs_that_are_not_at_hand_are_drawn_anew():
    """So it is after an audit was continued: a rule is learnt from about as many runs as there were before."""
    game = GameState(kept=[[], []])
    experiment = Experiment(as_mechanism(lambda x, rng: x + rng.laplace()), (0.0, 1.0), Hypothesis(3.0), 5)
    for _ in anytime(experiment, game, 10_000, 0.001):
        game.kept = [[], []]
        if len(game.rounds) > 1:
            break
    assert [one.learnt_from for one in game.rounds] == [GLANCE + FIRST, 256]


def test_outputs_that_gave_no_rule_are_not_looked_at_again_without_others():
    """A mechanism of single outputs, and a guesser that says nothing until it has seen 1,000: no training is free."""
    seen = 0

    def late(outputs):
        nonlocal seen
        seen += len(outputs)
        return outputs if seen > 1_000 else [float("nan")] * len(outputs)

    game = GameState(kept=[[], []])
    custom = CustomDistinguisher(late)
    experiment = Experiment(as_mechanism(lambda x, rng: x + rng.laplace()), (0.0, 1.0), Hypothesis(3.0), 5, 0, custom)
    for _ in anytime(experiment, game, 10_000, 0.001):
        pass
    assert game.fruitless >= 1
    assert game.rounds
    assert game.runs == 10_000


def test_workers_that_keep_no_outputs_do_not_stop_a_rule_from_being_learnt_anew():
    """What the first rule was learnt from is at hand, but each next rule needs about twice as many."""

    def elsewhere(experiment, current, tasks, kept):
        return in_this_process(experiment, current, tasks, [])

    game = GameState(kept=[[], []])
    experiment = Experiment(as_mechanism(lambda x, rng: x + rng.laplace()), (0.0, 1.0), Hypothesis(3.0), 5)
    for _ in anytime(experiment, game, 20_000, 0.001, elsewhere):
        pass
    assert len(game.rounds) < 10
    assert sum(one.learnt_from for one in game.rounds) > 1_000


def test_batches_teach_the_next_rule_too():
    """Rows that are declared independent are tested in batches; each next rule is learnt from these rows."""

    def noisy(x, n, rng):
        return x + rng.laplace(size=n)

    noisy.independent_rows = True
    game = GameState(kept=[[], []])
    for _ in anytime(Experiment(as_mechanism(noisy), (0.0, 1.0), Hypothesis(3.0), 5), game, 8_000, 0.001):
        pass
    assert [one.learnt_from for one in game.rounds] == [GLANCE + FIRST] + [0] * (len(game.rounds) - 1)
    assert len(game.rounds) == 6  # learnt from 128, 288, 576, 1,152, 2,304 and about 4,600 runs
    assert not any(one.singly or one.screening for one in game.rounds)
    assert game.runs == 8_000


def test_what_is_kept_to_learn_from_stays_small():
    """128 MiB of numbers may be learnt from, and half as many are kept, of both inputs together."""
    experiment = Experiment(NOISY, (0.0, 1.0), Hypothesis(3.0), 5)
    kept, wide = [[], []], read(np.zeros((300, 1 << 14)))
    for _ in range(4):
        keep(experiment, kept, 0, wide)
    assert sum(map(len, kept[0])) == (1 << 23) // (1 << 14) // 2
    kept = [[], []]
    for _ in range(40):
        keep(experiment, kept, 1, read(np.zeros(10_000)))
    assert sum(map(len, kept[1])) == MOST_LEARNT // 2


def test_outputs_of_batches_that_failed_teach_that_runs_are_made_singly():
    """A batch that fails is drawn again one by one and counted as wrong, and the next round makes single runs."""

    def breaks(x, n, rng):
        noise = rng.laplace(size=n)
        if (noise > 4).any():
            raise ValueError("too much")
        return x + noise

    breaks.independent_rows = True
    game = GameState(kept=[[], []])
    for _ in anytime(Experiment(as_mechanism(breaks), (0.0, 1.0), Hypothesis(3.0), 5), game, 2_000, 0.001):
        pass
    assert game.rounds[-1].singly
