"""Playing the guessing game: numbered tasks, each with a random stream of its own, that give integer counts.

What a task is depends on the tasks before it, never on what came of them. So tasks may be played ahead, anywhere, and
counted in order: the same seed gives the same counts whoever plays them, and a game that stopped goes on where it was.
"""

from __future__ import annotations

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
    FIRST_EPOCH,
    GROWTH,
    KEPT,
    LESSONS,
    MOST_ROWS,
    PLAY,
    PLAYED,
    TRUST,
    TRUST_IN_LAW,
    Epoch,
    Experiment,
    Game,
    TrainingResult,
    learn_rule,
    learn_well,
)
from dpassay.audit.inference import evidence_needed, log_evidence
from dpassay.audit.outputs import Outputs, part, read
from dpassay.audit.targets import draw, draw_singly
from dpassay.compute.devices import numbers
from dpassay.compute.likelihood_ratio import LikelihoodRatioTable
from dpassay.compute.philox import key
from dpassay.errors import MechanismError
from dpassay.pipeline.mechanism import Redrawn
from dpassay.pipeline.pipeline import Pipeline

GuessCounts: TypeAlias = tuple[int, int, int]  # right and wrong guesses, and runs
KERNELS_FROM = 1 << 14  # runs of a game, from which on kernels draw for a pipeline whose distribution is known
LOG_STEP = 33 * math.log(2)
HARMLESS = 0.01  # standard errors that the 32 bits of a coordinate's word may come to; docs/scale.md


@dataclass(frozen=True, slots=True)
class Task:
    """So many runs, the next of an epoch; `before` is how many runs the game's tasks had before it."""

    epoch: int
    number: int
    size: int
    before: int


Player: TypeAlias = Callable[
    [Experiment, Epoch, Iterator[Task], list[list[Outputs]]], Iterator[tuple[Task, GuessCounts | MechanismError]]
]


def here(
    table: Experiment, epoch: Epoch, tasks: Iterator[Task], kept: list[list[Outputs]]
) -> Iterator[tuple[Task, GuessCounts | MechanismError]]:
    """Play tasks in this process, one after the other."""
    for task in tasks:
        try:
            yield task, play(table, epoch, task, kept)
        except MechanismError as error:
            yield task, error
            return


def play(table: Experiment, epoch: Epoch, task: Task, kept: list[list[Outputs]]) -> GuessCounts:
    """One task: so many coins, runs and guesses. Right and wrong guesses, and runs.

    A batch that failed was drawn again, and what is drawn again after a failure has other odds than what is drawn
    once. So all its guesses count as wrong, which is never better than the truth. The next epoch runs one at a time.
    """
    rng = table.stream(PLAY, task.epoch, task.number)
    told = for_kernels(table, epoch.rule, task.before)
    if told is not None:
        return _by_kernel(table, epoch.rule, told, task, rng)
    coins = rng.integers(0, len(table.inputs), task.size)
    right = wrong = 0
    for side, batch in _batches(table, coins, epoch.singly, rng):
        if isinstance(batch, Redrawn):
            wrong += len(batch)
            continue
        outputs = read(batch)
        hits, misses = epoch.rule.count(outputs, side)
        right, wrong = right + hits, wrong + misses
        if kept and sum(map(len, kept[side])) < KEPT:
            kept[side].append(part(outputs, 0, KEPT))
    return right, wrong, task.size


def for_kernels(
    table: Experiment, rule: DecisionRule, before: int
) -> tuple[LikelihoodRatioTable, LikelihoodRatioTable] | None:
    """What kernels need for a task of a pipeline whose distribution is known; None where the mechanism itself is run.

    The first runs are always the mechanism's own: they are compared with its distribution. So are those that come
    after so many that 32 bits might begin to tell: each coordinate's word moves a probability by at most 2^-33.
    """
    mechanism, distinguisher = table.mechanism, rule.distinguisher
    if before < KERNELS_FROM or not isinstance(mechanism, Pipeline) or not isinstance(distinguisher, LikelihoodRatio):
        return None
    told = distinguisher.tables if mechanism.told_by_its_text else None
    if told is None or table.aim.epsilon + math.log(told[0].dim * math.sqrt(before + MOST_ROWS) / HARMLESS) > LOG_STEP:
        return None
    return told


def _by_kernel(
    table: Experiment,
    rule: DecisionRule,
    told: tuple[LikelihoodRatioTable, LikelihoodRatioTable],
    task: Task,
    rng: np.random.Generator,
) -> GuessCounts:
    """Nothing but the number of heads counts, and of each run nothing but the guess."""
    second = int(rng.binomial(task.size, 0.5))
    right = wrong = 0
    for side, runs in enumerate((task.size - second, second)):
        stream = key(table.seed, table.number, PLAY, task.epoch, task.number, side)
        named = numbers(table.device).count_guesses(stream, 0, runs, told[side], rule.low, rule.high, rule.resolution)
        right, wrong = right + named[side], wrong + named[1 - side]
    return right, wrong, task.size


def _batches(
    table: Experiment, coins: NDArray[Any], singly: bool, rng: np.random.Generator
) -> Iterator[tuple[int, Any]]:
    """The outputs of each input. Runs that are made one at a time are made in the order of the coins.

    Else something that changes from run to run but not with the input (a clock, a counter, a warm-up) would tell the
    first half of a task from the second, and so the inputs. Batches, made by one call each, come in a random order.
    """
    if singly:
        outputs: list[list[Any]] = [[] for _ in table.inputs]
        for side in coins.tolist():
            outputs[side] += draw_singly(table.mechanism, table.inputs[side], 1, rng)
        yield from ((side, batch) for side, batch in enumerate(outputs) if batch)
        return
    counts = np.bincount(coins, minlength=len(table.inputs))
    for side in rng.permutation(len(table.inputs)).tolist():
        if counts[side]:
            yield side, draw(table.mechanism, table.inputs[side], int(counts[side]), rng)


def anytime(table: Experiment, game: Game, budget: int, alpha: float, player: Player = here) -> Iterator[Game]:
    """Play until the claim is refuted or the runs are spent; a look after every task."""
    needed = evidence_needed(alpha)
    while game.runs < budget:
        if not game.epochs or game.epochs[-1].tally.runs >= game.epochs[-1].length:
            _begin_epoch(table, game, budget)
            if game.wasted:
                return
        before = game.runs
        for _ in _played(table, game, upcoming(table, game, budget, growing=True), player):
            yield game
            if log_evidence(game.tallies, table.aim.epsilon, table.aim.delta, table.aim.candidates) >= needed:
                return
        if game.runs == before:
            return


def fixed(table: Experiment, game: Game, budget: int, player: Player = here) -> Iterator[Game]:
    """Learn once, then play all the runs that are left; look once, at the end."""
    if not game.epochs:
        with _counting_losses(game):
            lesson = learn_well(table, budget, game.lost)
        _add_epoch(game, lesson, budget - lesson.cost)
        if game.wasted:
            return
    yield from _played(table, game, upcoming(table, game, budget, growing=False), player)


def upcoming(table: Experiment, game: Game, budget: int, *, growing: bool) -> Iterator[Task]:
    """The tasks of the current epoch from here to its end. Growing ones are an eighth of all that was played before."""
    epoch, place = game.epochs[-1], len(game.epochs) - 1
    number, before = epoch.tasks, sum(e.finished for e in game.epochs)
    played, left = sum(t.runs for t in game.tallies), budget - game.runs
    left = min(left, epoch.length - epoch.tally.runs) if growing else left
    while left > 0:
        most = epoch.rows if for_kernels(table, epoch.rule, before) is None else MOST_ROWS
        size = min(max(8 * len(table.inputs), played // 8) if growing else most, most, left)
        yield Task(place, number, size, before)
        number, before, played, left = number + 1, before + size, played + size, left - size


def tasks_of(game: Game, place: int) -> Iterator[Task]:
    """The tasks that an epoch has had, but for those that broke off."""
    before, number = sum(e.finished for e in game.epochs[:place]), 0
    for size, times in game.epochs[place].sizes:
        for _ in range(times):
            if size:
                yield Task(place, number, size, before)
            number, before = number + 1, before + size


def _played(table: Experiment, game: Game, tasks: Iterator[Task], player: Player) -> Iterator[Game]:
    """Count tasks in order.

    A task in which the mechanism broke off is not played again with the same coins: outputs that do not break it off
    would come more often than they do. The next task has other coins; where δ > 0 all guesses of this one are wrong.
    """
    outcomes = player(table, game.epochs[-1], tasks, game.kept)
    with closing(outcomes):  # type: ignore[type-var]
        for task, outcome in outcomes:
            epoch = game.epochs[-1]
            if isinstance(outcome, MechanismError):
                lost = (0, task.size, task.size) if table.aim.delta else (0, 0, 0)
                game.runs += lost[2]
                game.epochs[-1] = replace(epoch.after(0), tally=epoch.tally + lost)
                raise outcome
            game.runs += task.size  # first: an interruption in between leaves a task to be played again, no more
            game.epochs[-1] = replace(epoch.after(task.size), tally=epoch.tally + outcome)
            yield game


def _begin_epoch(table: Experiment, game: Game, budget: int) -> None:
    number = len(game.epochs)
    size = FIRST_EPOCH * GROWTH ** (number + (table.bits == "only"))  # bits alone say little at first
    left = budget - game.runs
    if left < max(FEWEST_RUNS, 2 * len(table.inputs)):
        game.wasted = True
        return
    size = min(size, MOST_ROWS, max(left // 4, min(left, 32)))
    with _counting_losses(game):
        lesson = learn_rule(table, size, LESSONS * game.lost + number)
    endless = lesson.cost == 0 or size >= MOST_ROWS
    _add_epoch(game, lesson, budget if endless else PLAYED * size)


@contextmanager
def _counting_losses(game: Game) -> Iterator[None]:
    """A lesson in which the mechanism breaks off is not begun again with the same random numbers."""
    try:
        yield
    except MechanismError:
        game.lost += 1
        raise


def _add_epoch(game: Game, lesson: TrainingResult, length: int) -> None:
    game.runs += lesson.cost
    if lesson.rule is None:
        game.wasted = True
        return
    tally = lesson.rule.initial_counts(TRUST if lesson.cost else TRUST_IN_LAW)
    game.epochs.append(Epoch(lesson.rule, tally, lesson.cost, length, lesson.singly, rows=lesson.rows))
