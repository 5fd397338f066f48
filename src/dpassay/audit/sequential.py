"""The guessing game, run by run: numbered tasks, each with a random stream of its own, that give integer counts.

What a task is depends on the tasks before it, never on what came of them. So tasks may be run ahead, anywhere, and
counted in order: the same seed gives the same counts wherever they run, and a game that stopped can be continued.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpassay.audit.decision_rule import DecisionRule
from dpassay.audit.distinguishers.likelihood_ratio import LikelihoodRatio
from dpassay.audit.experiment import (
    FEWEST_RUNS,
    FIRST_ROUND,
    GROWTH,
    KEPT,
    MOST_ROWS,
    TEST,
    TESTED,
    TRAININGS,
    TRUST,
    TRUST_IN_DISTRIBUTION,
    Experiment,
    Game,
    Round,
    TrainingResult,
    learn_rule,
    learn_well,
)
from dpassay.audit.inference import evidence_needed
from dpassay.audit.outputs import Outputs, part, read
from dpassay.audit.targets import draw, draw_singly
from dpassay.compute.devices import numbers
from dpassay.compute.likelihood_ratio import LikelihoodRatioTable
from dpassay.compute.philox import key
from dpassay.errors import MechanismError
from dpassay.pipeline.mechanism import Redrawn
from dpassay.pipeline.pipeline import Pipeline

GuessCounts: TypeAlias = tuple[int, int, int]  # right and wrong guesses, and runs
Ratios: TypeAlias = tuple[LikelihoodRatioTable, LikelihoodRatioTable]  # of each input
KERNELS_FROM = 1 << 14  # runs of a game, from which on kernels draw for a pipeline whose distribution is known
LOG_STEP = 33 * math.log(2)
HARMLESS = 0.01  # standard errors that the 32 bits of a coordinate's word may come to; docs/scale.md


@dataclass(frozen=True, slots=True)
class Task:
    """Some runs of a round; `before` is how many runs the game's tasks had before it."""

    round_number: int
    number: int
    size: int
    before: int


Kept: TypeAlias = list[list[Outputs]]  # some outputs of each input
Outcomes: TypeAlias = Iterator[tuple[Task, GuessCounts | MechanismError]]
TaskRunner: TypeAlias = Callable[[Experiment, Round, Iterator[Task], Kept], Outcomes]


def in_this_process(experiment: Experiment, current: Round, tasks: Iterator[Task], kept: Kept) -> Outcomes:
    """Run tasks in this process, one after the other."""
    for task in tasks:
        try:
            yield task, run_task(experiment, current, task, kept)
        except MechanismError as error:
            yield task, error
            return


def run_task(experiment: Experiment, current: Round, task: Task, kept: Kept) -> GuessCounts:
    """Run one task: toss the coins, run the mechanism, guess. Returns correct and wrong guesses, and runs.

    A batch that failed was drawn again, and what is drawn again after a failure has other odds than what is drawn
    once. So all its guesses count as wrong, which is never better than the truth. The next round runs one at a time.
    """
    rng = experiment.stream(TEST, task.round_number, task.number)
    ratios = for_kernels(experiment, current.rule, task.before)
    if ratios is not None:
        return _by_kernel(experiment, current.rule, ratios, task, rng)
    coins = rng.integers(0, len(experiment.inputs), task.size)
    right = wrong = 0
    for side, batch in _batches(experiment, coins, current.singly, rng):
        if isinstance(batch, Redrawn):
            wrong += len(batch)
            continue
        outputs = read(batch)
        hits, misses = current.rule.count(outputs, side)
        right, wrong = right + hits, wrong + misses
        if kept and sum(map(len, kept[side])) < KEPT:
            kept[side].append(part(outputs, 0, KEPT))
    return right, wrong, task.size


def for_kernels(experiment: Experiment, rule: DecisionRule, before: int) -> Ratios | None:
    """What kernels need for a task of a pipeline whose distribution is known; None where the mechanism itself is run.

    The first runs are always the mechanism's own: they are compared with its distribution. So are those that come
    after as many as 32-bit draws would show in: each coordinate's word moves a probability by at most 2^-33.
    """
    mechanism, distinguisher = experiment.mechanism, rule.distinguisher
    if before < KERNELS_FROM or not isinstance(mechanism, Pipeline) or not isinstance(distinguisher, LikelihoodRatio):
        return None
    ratios = distinguisher.tables if mechanism.told_by_its_text else None
    if ratios is None:
        return None
    rounding = math.log(ratios[0].dim * math.sqrt(before + MOST_ROWS) / HARMLESS)
    return ratios if experiment.hypothesis.epsilon + rounding <= LOG_STEP else None


def _by_kernel(
    experiment: Experiment, rule: DecisionRule, ratios: Ratios, task: Task, rng: np.random.Generator
) -> GuessCounts:
    """Nothing but the number of heads counts, and of each run nothing but the guess."""
    second = int(rng.binomial(task.size, 0.5))
    right = wrong = 0
    for side, runs in enumerate((task.size - second, second)):
        stream = key(experiment.seed, experiment.number, TEST, task.round_number, task.number, side)
        named = numbers(experiment.device).count_guesses(
            stream, 0, runs, ratios[side], rule.low, rule.high, rule.resolution
        )
        right, wrong = right + named[side], wrong + named[1 - side]
    return right, wrong, task.size


def _batches(
    experiment: Experiment, coins: NDArray[Any], singly: bool, rng: np.random.Generator
) -> Iterator[tuple[int, Any]]:
    """The outputs of each input. Runs that are made one at a time are made in the order of the coins.

    Else something that changes from run to run but not with the input (a clock, a counter, a warm-up) would tell the
    first half of a task from the second, and so the inputs. Batches, made by one call each, come in a random order.
    """
    if singly:
        outputs: list[list[Any]] = [[] for _ in experiment.inputs]
        for side in coins.tolist():
            outputs[side] += draw_singly(experiment.mechanism, experiment.inputs[side], 1, rng)
        yield from ((side, batch) for side, batch in enumerate(outputs) if batch)
        return
    counts = np.bincount(coins, minlength=len(experiment.inputs))
    for side in rng.permutation(len(experiment.inputs)).tolist():
        if counts[side]:
            yield side, draw(experiment.mechanism, experiment.inputs[side], int(counts[side]), rng)


def anytime(
    experiment: Experiment, game: Game, budget: int, alpha: float, run_tasks: TaskRunner = in_this_process
) -> Iterator[Game]:
    """Test until the claim is refuted or the runs are spent; a look after every task."""
    needed = evidence_needed(alpha)
    while game.runs < budget:
        if not game.rounds or game.rounds[-1].counts.runs >= game.rounds[-1].length:
            _begin_round(experiment, game, budget)
            if game.nothing_learnt:
                return
        before = game.runs
        for _ in _counted(experiment, game, upcoming(experiment, game, budget, growing=True), run_tasks):
            yield game
            if game.log_evidence(experiment.hypothesis) >= needed:
                return
        if game.runs == before:
            return


def fixed(experiment: Experiment, game: Game, budget: int, run_tasks: TaskRunner = in_this_process) -> Iterator[Game]:
    """Learn once, then test on all the runs that are left; look once, at the end."""
    if not game.rounds:
        with _counting_losses(game):
            training = learn_well(experiment, budget, game.lost)
        _add_round(game, training, budget - training.cost)
        if game.nothing_learnt:
            return
    yield from _counted(experiment, game, upcoming(experiment, game, budget, growing=False), run_tasks)


def upcoming(experiment: Experiment, game: Game, budget: int, *, growing: bool) -> Iterator[Task]:
    """The tasks of the current round from here to its end. Growing ones are an eighth of all runs before."""
    current, place = game.rounds[-1], len(game.rounds) - 1
    number, before = current.tasks, sum(e.finished for e in game.rounds)
    tested, left = sum(t.runs for t in game.counts), budget - game.runs
    left = min(left, current.length - current.counts.runs) if growing else left
    while left > 0:
        most = current.rows if for_kernels(experiment, current.rule, before) is None else MOST_ROWS
        size = min(max(8 * len(experiment.inputs), tested // 8) if growing else most, most, left)
        yield Task(place, number, size, before)
        number, before, tested, left = number + 1, before + size, tested + size, left - size


def tasks_of(game: Game, place: int) -> Iterator[Task]:
    """The tasks that a round has had, but for those that broke off."""
    before, number = sum(e.finished for e in game.rounds[:place]), 0
    for size, times in game.rounds[place].sizes:
        for _ in range(times):
            if size:
                yield Task(place, number, size, before)
            number, before = number + 1, before + size


def _counted(experiment: Experiment, game: Game, tasks: Iterator[Task], run_tasks: TaskRunner) -> Iterator[Game]:
    """Count tasks in order.

    A task in which the mechanism broke off is not run again with the same coins: outputs that do not break it off
    would come more often than they do. The next task has other coins; where δ > 0 all guesses of this one are wrong.
    """
    outcomes = run_tasks(experiment, game.rounds[-1], tasks, game.kept)
    with closing(outcomes):  # type: ignore[type-var]
        for task, outcome in outcomes:
            current = game.rounds[-1]
            if isinstance(outcome, MechanismError):
                lost = (0, task.size, task.size) if experiment.hypothesis.delta else (0, 0, 0)
                game.runs += lost[2]
                game.rounds[-1] = replace(current.after(0), counts=current.counts + lost)
                raise outcome
            game.runs += task.size  # first: an interruption in between leaves a task to be run again, no more
            game.rounds[-1] = replace(current.after(task.size), counts=current.counts + outcome)
            yield game


def _begin_round(experiment: Experiment, game: Game, budget: int) -> None:
    number = len(game.rounds)
    size = FIRST_ROUND * GROWTH ** (number + (experiment.bits == "only"))  # bits alone say little at first
    left = budget - game.runs
    if left < max(FEWEST_RUNS, 2 * len(experiment.inputs)):
        game.nothing_learnt = True
        return
    size = min(size, MOST_ROWS, max(left // 4, min(left, 32)))
    with _counting_losses(game):
        training = learn_rule(experiment, size, TRAININGS * game.lost + number)
    endless = training.cost == 0 or size >= MOST_ROWS
    _add_round(game, training, budget if endless else TESTED * size)


@contextmanager
def _counting_losses(game: Game) -> Iterator[None]:
    """A training in which the mechanism breaks off is not begun again with the same random numbers."""
    try:
        yield
    except MechanismError:
        game.lost += 1
        raise


def _add_round(game: Game, training: TrainingResult, length: int) -> None:
    game.runs += training.cost
    if training.rule is None:
        game.nothing_learnt = True
        return
    counts = training.rule.initial_counts(TRUST if training.cost else TRUST_IN_DISTRIBUTION)
    game.rounds.append(Round(training.rule, counts, training.cost, length, training.singly, rows=training.rows))
