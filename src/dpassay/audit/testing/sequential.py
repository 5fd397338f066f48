"""The guessing game, run by run: numbered tasks, each with its own random stream, that give integer counts.

A task depends on the tasks before it but never on their results. So tasks may be run ahead, anywhere, and
counted in order: the same seed gives the same counts wherever they run, and a game that stopped can be continued.
"""

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpassay.audit.mechanisms.batches import UNCONFIRMED, known_independent
from dpassay.audit.mechanisms.kernels import for_kernels, guesses_by_kernel
from dpassay.audit.mechanisms.targets import draw, draw_each, one_at_a_time
from dpassay.audit.outputs.outputs import Outputs, join, part, read
from dpassay.audit.remote.timing import OutOfTime, check_time
from dpassay.audit.testing import similarity_rule
from dpassay.audit.testing.decision_rule import RARE_FROM
from dpassay.audit.testing.experiment import (
    FEWEST_EACH,
    FIRST_ROUND,
    GROWTH,
    KEPT,
    MOST_ROWS,
    SHOWN,
    TEST,
    TRUST,
    TRUST_IN_DISTRIBUTION,
    Experiment,
    GameState,
    RoundResult,
)
from dpassay.audit.testing.inference import evidence_needed
from dpassay.audit.testing.training import (
    FEWEST_RUNS,
    MOST_LEARNT,
    TRAININGS,
    TrainingResult,
    learn_rule,
    learn_well,
    room_for,
)
from dpassay.errors import MechanismError
from dpassay.pipeline.mechanism import HasDistribution, Redrawn
from dpassay.values import dataclass

GuessCounts: TypeAlias = tuple[int, ...]  # correct and wrong guesses, and runs; then the same for the second input
LOOK_FROM = 1 << 9  # runs of a game from which its batches are examined, if the first rounds used none
WORTHWHILE = 1.5  # runs that must be left for the next rule, as a multiple of the runs that this one was learned from
LOOKS = 16  # a task is at most this fraction of the runs before it: runs after the decisive one are wasted
ALONE = 1 << 16  # guesses of a game up to which a round makes its runs one at a time…
MOST_ALONE = 1 << 17  # …and the same for a fixed number of runs
PROMISING = math.log(20)  # evidence of a round in batches from which single runs take over
ENOUGH = 4  # single runs, as a multiple of those expected to be needed to refute the claim…
FEWEST_ALONE = 1_000  # …and at least this many
MOST_UNCONFIRMED = 4  # promising rounds in batches that single runs did not confirm, before batches are abandoned


@dataclass(frozen=True, slots=True)
class Task:
    """Some runs of a round; `before` is how many runs the game's tasks had before it."""

    round_number: int
    number: int
    size: int
    before: int


KeptOutputs: TypeAlias = list[list[Outputs]]  # some outputs of each input
Outcomes: TypeAlias = Iterator[tuple[Task, GuessCounts | MechanismError]]
TaskRunner: TypeAlias = Callable[[Experiment, RoundResult, Iterator[Task], KeptOutputs], Outcomes]


def in_this_process(experiment: Experiment, current: RoundResult, tasks: Iterator[Task], kept: KeptOutputs) -> Outcomes:
    """Run tasks in this process, one after the other."""
    for task in tasks:
        try:
            yield task, run_by_input(experiment, current, task, kept)
        except MechanismError as error:
            yield task, error
            return


def run_task(experiment: Experiment, current: RoundResult, task: Task, kept: KeptOutputs) -> GuessCounts:
    """The same as `run_by_input`, without the second input's part."""
    return run_by_input(experiment, current, task, kept)[:3]


def run_by_input(experiment: Experiment, current: RoundResult, task: Task, kept: KeptOutputs) -> GuessCounts:
    """Run one task: toss the coins, run the mechanism, guess.

    Returns correct and wrong guesses and runs, and how many of each are the second input's.

    A batch that failed was drawn again, and outputs redrawn after a failure have a different distribution from outputs
    drawn once. So all its guesses count as wrong, which is conservative. The next round makes runs one at a time.
    """
    rng = experiment.stream(TEST, task.round_number, task.number)
    ratios = for_kernels(experiment, current.rule, task.before)
    if ratios is not None:
        second = int(rng.binomial(task.size, 0.5))  # only the number of heads matters
        place = TEST, task.round_number, task.number
        return _in_a_row(
            guesses_by_kernel(experiment, current.rule, ratios, task.size, second, place), task.size, second
        )
    coins = rng.integers(0, len(experiment.inputs), task.size)
    guesses = np.zeros((len(experiment.inputs), 2), dtype=np.int64)  # correct and wrong ones, by input
    for side, batch in _batches(experiment, coins, current.singly, rng):
        outputs, again = read(batch, experiment.unknown), isinstance(batch, Redrawn)
        guesses[side] += (0, len(batch)) if again else current.rule.count(outputs, side)
        if not again or _learns(experiment):  # redrawn outputs are not compared with the distribution
            keep(experiment, kept, side, outputs)
    return _in_a_row(guesses, task.size, int(np.count_nonzero(coins == 1)))


def keep(experiment: Experiment, kept: KeptOutputs, side: int, outputs: Outputs) -> None:
    """Keep outputs of one input as long as there is room: for learning the next rule, or for checking the sampler.

    If rules are learned, the runs that test one may train the next: it is tested on later runs.
    """
    if kept:
        left = room(experiment, kept, outputs) - sum(map(len, kept[side]))
        kept[side] += [outputs if len(outputs) <= left else part(outputs, 0, left)] if left > 0 else []


def room(experiment: Experiment, kept: KeptOutputs, outputs: Outputs) -> int:
    """How many such outputs of each input are kept."""
    return room_for(outputs, len(kept)) if _learns(experiment) else KEPT


def _learns(experiment: Experiment) -> bool:
    """Whether rules are learned from outputs."""
    return experiment.custom is not None or not isinstance(experiment.mechanism, HasDistribution)


def _in_a_row(guesses: NDArray[np.int64], runs: int, of_second: int) -> GuessCounts:
    right, wrong = guesses.sum(axis=0).tolist()
    return right, wrong, runs, *guesses[1].tolist(), of_second


def _batches(
    experiment: Experiment, coins: NDArray[Any], singly: bool, rng: np.random.Generator
) -> Iterator[tuple[int, Any]]:
    """The outputs of each input. Runs made one at a time are made in the order of the coins.

    Otherwise something that changes from run to run but not with the input (a clock, a counter, a warm-up) would
    distinguish the first half of a task from the second, and so the inputs. Batches, one call each, come in random
    order.
    """
    if singly:
        outputs: list[list[Any]] = [[] for _ in experiment.inputs]
        inputs = [experiment.inputs[side] for side in coins.tolist()]
        for side, output in zip(coins.tolist(), draw_each(experiment.mechanism, inputs, rng), strict=True):
            outputs[side].append(output)
        yield from ((side, batch) for side, batch in enumerate(outputs) if batch)
        return
    counts = np.bincount(coins, minlength=len(experiment.inputs))
    for side in rng.permutation(len(experiment.inputs)).tolist():
        if counts[side]:
            yield side, draw(experiment.mechanism, experiment.inputs[side], int(counts[side]), rng)


def anytime(
    experiment: Experiment, game: GameState, budget: int, alpha: float | None, run_tasks: TaskRunner = in_this_process
) -> Iterator[GameState]:
    """Test until the claim is refuted or all runs are used, with a look after every task. Without an α, all are used.

    Only runs that are known to be independent can refute the claim. If the rows of one batch may not be, the first
    rounds consist of calls that ask for one output. Later rounds are made in batches, and only decide whether to look
    closer: as soon as one is promising, its rule is tested on single runs.
    """
    needed = math.inf if alpha is None else evidence_needed(alpha)
    while game.runs < budget:
        if not game.rounds or game.rounds[-1].counts.runs >= game.rounds[-1].length:
            known = len(game.rounds)
            if known == 1 and similarity_rule.goes_on(
                game.rounds[0], _evidence_of(game.rounds[0], experiment) / needed
            ):
                game.rounds[0] = replace(game.rounds[0], length=2 * game.rounds[0].length)
                continue
            _begin_round(experiment, game, budget, alone=alpha is None)
            if game.nothing_learnt:
                return
            if len(game.rounds) == known:  # training gave no rule: learn from more runs
                yield game
                continue
        before = game.runs
        for _ in _counted(experiment, game, upcoming(experiment, game, budget, growing=True), run_tasks):
            yield game
            if game.log_evidence(experiment.hypothesis) >= needed:
                return
            if game.rounds[-1].screening and _evidence_of(game.rounds[-1], experiment) >= PROMISING:
                _look_closer(experiment, game, needed)
                break
        if game.runs == before:
            return


def fixed(
    experiment: Experiment, game: GameState, budget: int, run_tasks: TaskRunner = in_this_process
) -> Iterator[GameState]:
    """Learn once, then test on all remaining runs; look once, at the end.

    If the rows of one batch may not be independent, single runs decide, as many as can be made in seconds.
    """
    while not game.rounds:
        with _counting_losses(game):
            training = learn_well(experiment, budget - game.runs, game.lost + game.fruitless)
        length, alone = budget - game.runs - training.cost, _alone(experiment, training.singly)
        _add_round(game, training, min(length, MOST_ALONE) if alone and not game.batches else length, alone=alone)
        if game.nothing_learnt:
            return
        if not game.rounds:
            yield game
    yield from _counted(experiment, game, upcoming(experiment, game, budget, growing=False), run_tasks)
    if game.runs < budget and not game.rounds[-1].screening:
        first = game.rounds[-1]
        expected = replace(first.counts, right=0, wrong=0, runs=0, second=(0, 0, 0))
        game.begin(RoundResult(first.rule, expected, 0, budget - game.runs, rows=first.rows, screening=True))
        yield from _counted(experiment, game, upcoming(experiment, game, budget, growing=False), run_tasks)


def _evidence_of(current: RoundResult, experiment: Experiment) -> float:
    claimed = experiment.hypothesis
    return current.counts.log_evidence(claimed.epsilon, claimed.delta, claimed.candidates)


def _look_closer(experiment: Experiment, game: GameState, needed: float) -> None:
    """A round of single runs for the rule of a promising round in batches."""
    found, promised = game.rounds[-1], _evidence_of(game.rounds[-1], experiment)
    missing = needed - game.log_evidence(experiment.hypothesis)
    length = int(max(FEWEST_ALONE, ENOUGH * found.counts.runs * missing / promised))
    seen = replace(found.rule, right=found.rule.right + found.counts.right, wrong=found.rule.wrong + found.counts.wrong)
    game.begin(RoundResult(found.rule, seen.initial_counts(TRUST), 0, length, singly=True, rows=found.rows))


def _alone(experiment: Experiment, singly: bool) -> bool:
    """Whether the mechanism gives batches whose rows are not known to be independent."""
    return not (singly or known_independent(experiment.mechanism))


def upcoming(experiment: Experiment, game: GameState, budget: int, *, growing: bool) -> Iterator[Task]:
    """The tasks of the current round from here to its end. They grow, but stay a small fraction of all earlier runs."""
    current, place = game.rounds[-1], len(game.rounds) - 1
    number, before = current.tasks, sum(e.finished for e in game.rounds)
    tested, left = sum(t.runs for t in game.counts), budget - game.runs
    left = min(left, current.length - current.counts.runs)
    while left > 0:
        most = current.rows if for_kernels(experiment, current.rule, before) is None else MOST_ROWS
        size = min(max(4 * len(experiment.inputs), tested // LOOKS) if growing else most, most, left)
        yield Task(place, number, size, before)
        number, before, tested, left = number + 1, before + size, tested + size, left - size


def tasks_of(game: GameState, place: int) -> Iterator[Task]:
    """The tasks that a round has had, except aborted ones."""
    before, number = sum(e.finished for e in game.rounds[:place]), 0
    for size, times in game.rounds[place].sizes:
        for k in range(times if size else 0):
            yield Task(place, number + k, size, before + k * size)
        number, before = number + times, before + times * size


def _counted(
    experiment: Experiment, game: GameState, tasks: Iterator[Task], run_tasks: TaskRunner
) -> Iterator[GameState]:
    """Count tasks in order.

    A task that the mechanism aborted is not repeated with the same coins: outputs that do not abort it would become
    too frequent. The next task has other coins; if δ > 0, all guesses of this one count as wrong. The same applies to
    tasks in progress when the time is over, on Ctrl-C, which users press when something hangs, or when a worker dies,
    which ends the audit; unless the seed gives the same outputs again. For a process that was killed see
    `Game.restart` (docs/proofs/anytime.md, point 10).
    """
    under_way: deque[Task] = deque()
    experiment = experiment if game.replays else replace(experiment, repeatable=False)
    outcomes = run_tasks(experiment, game.rounds[-1], _noted(tasks, under_way, game), game.kept)
    with closing(outcomes):  # type: ignore[type-var]
        try:
            for task, outcome in outcomes:
                if isinstance(outcome, MechanismError):
                    _lose(experiment, game, [task])
                    under_way.clear()  # the others may be repeated: they did not cause this one to end
                    raise outcome
                current = game.rounds[-1]
                game.runs += task.size  # first, so that an interruption in between only leaves a task to be run again
                game.rounds[-1] = replace(current.after(task.size), counts=current.counts + outcome)
                under_way.popleft()
                yield game
                check_time()
        except (KeyboardInterrupt, OutOfTime, MechanismError):
            _lose(experiment, game, [] if game.replays else under_way)
            raise


def _noted(tasks: Iterator[Task], under_way: deque[Task], game: GameState) -> Iterator[Task]:
    for task in tasks:
        under_way.append(task)
        if game.announce is not None:
            game.announce(game.runs + sum(one.size for one in under_way))
        yield task


def _lose(experiment: Experiment, game: GameState, tasks: Iterable[Task]) -> None:
    for task in tasks:
        lost = (0, task.size, task.size) if experiment.hypothesis.delta else (0, 0, 0)
        current, game.runs = game.rounds[-1], game.runs + lost[2]
        game.rounds[-1] = replace(current.after(0), counts=current.counts + lost)


def _batches_are_due(experiment: Experiment, game: GameState) -> bool:
    """Whether it is time to examine the rows of batches, after first rounds that used none."""
    unknown = _alone(experiment, one_at_a_time(experiment.mechanism))
    return unknown and not game.looked and game.runs >= LOOK_FROM


def _begin_by_likeness(experiment: Experiment, game: GameState) -> int:
    """Begin with a rule that needs no training, if a few runs show that it is promising; else return their cost."""
    with _counting_losses(game):
        training = similarity_rule.at_a_glance(experiment, TRAININGS * game.lost + TRAININGS - 1)
    for side, outputs in enumerate(training.seen):
        keep(experiment, game.kept, side, outputs)
    if training.rule is not None:
        _add_round(game, training, similarity_rule.LENGTH, alone=_alone(experiment, training.singly))
        return 0
    game.replays, game.failing = game.replays and training.replays, game.failing or training.failed
    return training.cost


def _begin_round(experiment: Experiment, game: GameState, budget: int, alone: bool) -> None:
    number = len(game.rounds) + game.fruitless
    glance = 0
    if not number and not game.failing and similarity_rule.worth_trying(experiment, budget - game.runs):
        glance = _begin_by_likeness(experiment, game)
        if game.rounds:
            return
    left = budget - game.runs - glance
    if left < max(FEWEST_RUNS, 2 * len(experiment.inputs)):
        game.nothing_learnt = True
        return
    closer = sum(one.screening and not (then.screening or then.learnt_from) for one, then in pairwise(game.rounds))
    if not game.batches and closer >= MOST_UNCONFIRMED:
        game.batches = UNCONFIRMED
    size = max(FIRST_ROUND, FEWEST_EACH * len(experiment.inputs)) * (8 if experiment.bits == "only" else 1)
    learnt = number - closer - sum(map(similarity_rule.is_by_likeness, game.rounds[:1]))
    size = min(int(size * GROWTH**learnt), MOST_LEARNT, max(left // 4, min(left, 32)))
    had, full = _at_hand(game, size) if game.rounds else ([], False)
    late = bool(had) and _batches_are_due(experiment, game)
    first, place = (not number or late) and not game.batches, TRAININGS * game.lost + number
    singly = bool(game.batches) or game.failing
    with _counting_losses(game):
        drawn = FIRST_ROUND if late else size
        training = learn_rule(experiment, drawn, place, first=first, singly=singly, had=had)
        game.looked = game.looked or first
        if had and not late and training.rule is None:  # these outputs contain nothing more
            had, training = [], learn_rule(experiment, size, place, singly=singly)
    training = replace(training, cost=training.cost + glance)
    size, tested = sum(map(len, had)) or size, sum(counts.runs for counts in game.counts)
    length, left = int((GROWTH - 1) * size), budget - game.runs - training.cost
    last = training.exact or full or size >= MOST_LEARNT
    if not last and left - length < WORTHWHILE * size:
        # A rule that promises nothing is not kept for all remaining runs: a rare event may show up soon.
        last = training.rule is None or not training.rule.hopeless or not RARE_FROM <= size <= left // 2
        length //= 2
    length, unknown = budget if last else length, _alone(experiment, training.singly)
    alone = unknown and (alone or tested < ALONE)
    length = min(length, max(ALONE - tested, FEWEST_ALONE)) if alone and last else length
    _add_round(game, training, length, alone=alone, screening=unknown and not alone)
    for side, outputs in enumerate(training.seen):
        keep(experiment, game.kept, side, outputs)


def _at_hand(game: GameState, enough: int) -> tuple[list[Outputs], bool]:
    """All outputs so far, equally many of each input, and whether no more will be kept, so that no run is wasted.

    The resulting rule is tested on later runs, so the test is as valid as with a rule from elsewhere. Outputs from
    before an audit was continued are not available. If fewer than half of `enough` are left, none are used.
    """
    if not game.kept or not all(game.kept):
        return [], False
    for side in game.kept:
        side[:] = [join(side)]
    each = min(len(outputs) for side in game.kept for outputs in side)
    full = all(each >= room_for(outputs, len(game.kept)) for side in game.kept for outputs in side)
    if not full and 2 * each * len(game.kept) < enough:
        return [], False
    return [part(outputs, 0, each) for side in game.kept for outputs in side], full


@contextmanager
def _counting_losses(game: GameState) -> Iterator[None]:
    """A training that the mechanism aborted is not repeated with the same random numbers."""
    try:
        yield
    except MechanismError:
        game.lost += 1
        raise


def _add_round(
    game: GameState, training: TrainingResult, length: int, *, alone: bool = False, screening: bool = False
) -> None:
    game.runs += training.cost
    game.batches, game.replays = game.batches or training.batches, game.replays and training.replays
    game.failing = game.failing or training.failed
    game.learnt = game.learnt or tuple(part(outputs, 0, SHOWN) for outputs in training.seen)
    if training.rule is None:
        game.fruitless += 1
        game.nothing_learnt = not training.cost
        return
    counts = training.rule.initial_counts(TRUST_IN_DISTRIBUTION if training.exact else TRUST)
    singly, rows = training.singly or alone, training.rows
    game.begin(RoundResult(training.rule, counts, training.cost, length, singly, rows=rows, screening=screening))
