"""How a rule is learned: outputs of each input, not used for testing, and what the first of them show."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np

from dpassay.audit.distinguishers import fit_all
from dpassay.audit.distinguishers.base import TrainingSet
from dpassay.audit.distinguishers.exclusive import Exclusive
from dpassay.audit.mechanisms import batches as rows_of_batches
from dpassay.audit.mechanisms.python_objects import answers
from dpassay.audit.mechanisms.targets import draw, draw_singly, one_at_a_time
from dpassay.audit.outputs.outputs import Outputs, join, part, read
from dpassay.audit.testing.decision_rule import DecisionRule, best_of_many, learn
from dpassay.audit.testing.experiment import LEARN, MOST_ROWS, Experiment, factor_for
from dpassay.errors import ONLY_NONE, InputError, MechanismError
from dpassay.pipeline.mechanism import Failure, Mechanism, Redrawn, RepeatedRequest
from dpassay.pipeline.pipeline import Pipeline
from dpassay.values import dataclass

CELLS = 1 << 20  # numbers held at a time
DISTRIBUTION_DRAWS = 60_000
LEARNT_CELLS = 1 << 24  # numbers to learn from, at most: 128 MiB
MOST_LEARNT = 1 << 19  # runs to learn from, at most
UNKNOWN_WIDTH = 256  # how many numbers a non-numeric output counts as
GLANCE = 16  # runs of each input that show whether outputs resemble their inputs
FEWEST_RUNS = 40  # nothing can be learned from fewer
MOST_CALIBRATED = 1 << 21  # runs whose scores are held to choose thresholds
FEW = 4_000  # a fixed number of runs up to which only one training is worthwhile
SURE_FROM = 10_000  # runs of a training that may be the only one
SURE_OF_NONE = 1_000  # outputs after which a mechanism that gave only None is no longer run
ALIKE = 0.95  # share of the best promise from which inputs farther apart decide, because they show more
DOUBT = 2.0  # standard errors by which counts may fall short of what inputs farther apart promise
RARER = 4  # if guesses on neighbors are this many times rarer, neighbors do not show what the rule detects
FEWEST_FAR = 1_000  # runs of inputs farther apart
TRAININGS = 1_000  # random streams for trainings, before those of trainings repeated after a failure


def draw_outputs(
    experiment: Experiment,
    inputs: Sequence[Any],
    runs: int,
    rngs: Sequence[np.random.Generator],
    cells: int,
    singly: bool = False,
) -> tuple[list[Outputs], bool, list[list[Outputs]]]:
    """The same number of outputs per input, `runs` in total if memory allows, and whether a batch failed.

    Each input has a generator. If these are equal, outputs differ by little except their inputs, so that far fewer
    are needed to detect the difference. That is only for training: rules are tested on independent runs.

    The first outputs of each input come in small batches, which are returned too: see `batches.dependence`.
    """
    mechanism, unknown = experiment.mechanism, experiment.unknown
    each = max(1, runs // len(inputs))
    enough = each == GLANCE or each >= rows_of_batches.ROWS * rows_of_batches.BATCHES
    small = rows_of_batches.ROWS if enough else min(each, 64)
    start = min(each, 64)
    make = draw_singly if singly else draw
    parts = [
        [make(mechanism, x, small, rng) for _ in range(start // small)] for x, rng in zip(inputs, rngs, strict=True)
    ]
    first = [[read(batch, unknown) for batch in some] for some in parts]
    step = min(rows_at_a_time(some[0]) for some in first)
    each = min(each, max(64, cells // sum(max(1, some[0].width or UNKNOWN_WIDTH) for some in first)))
    for x, rng, some in zip(inputs, rngs, parts, strict=True):
        for begun in range(start, each, step):
            some.append(make(mechanism, x, min(step, each - begun), rng))
    failed = any(isinstance(part, Redrawn) and not isinstance(part, RepeatedRequest) for some in parts for part in some)
    seen = []
    for some in parts:
        seen.append(join([read(part, unknown) for part in some]))
        some.clear()  # free what has been joined
    return seen, failed, first


def training_outputs(
    experiment: Experiment,
    runs: int,
    rngs: Sequence[np.random.Generator],
    cells: int = LEARNT_CELLS,
    *,
    singly: bool = False,
) -> tuple[list[Outputs], bool]:
    """Outputs to learn from, equally many of each input, and whether some batch failed and was drawn again."""
    seen, failed, _ = draw_outputs(experiment, experiment.inputs, runs, rngs, cells, singly)
    check_alive(seen, experiment.mechanism)
    return seen, failed


@dataclass(frozen=True)
class FirstLook:
    """The first training outputs, their cost, and what they show about the mechanism's batches and its seed."""

    seen: list[Outputs]
    cost: int
    failed: bool = False
    batches: str = ""
    replays: bool = True


def first_look(experiment: Experiment, runs: int, place: int) -> FirstLook:
    """Outputs to learn from. If the rows of one batch are not independent, they are drawn again, one at a time."""
    mechanism, rngs = experiment.mechanism, experiment.paired_streams(place)
    seen, failed, first = draw_outputs(experiment, experiment.inputs, runs, rngs, LEARNT_CELLS)
    check_alive(seen, mechanism)
    cost, wrong = sum(map(len, seen)), ""
    if not (failed or one_at_a_time(mechanism) or rows_of_batches.known_independent(mechanism)):
        wrong = next(filter(None, map(_dependence, first[:2])), "")
    replays = bool(getattr(mechanism, "replays", True))
    if replays and len(seen[0]) >= GLANCE and not isinstance(mechanism, Pipeline):
        rng = experiment.paired_streams(place)[0]
        again = read(draw(mechanism, experiment.inputs[0], len(first[0][0]), rng), experiment.unknown)
        replays, cost = bool((again.keys() == first[0][0].keys()).all()), cost + len(again)
    if wrong:
        streams = experiment.paired_streams(place)
        seen, failed = training_outputs(experiment, runs, streams, singly=True)
        cost += sum(map(len, seen))
    return FirstLook(seen, cost, failed, wrong, replays)


def _dependence(batches: Sequence[Outputs]) -> str:
    if len(batches) < rows_of_batches.BATCHES:
        return ""
    return rows_of_batches.dependence(batches, np.random.default_rng(0))  # for the shuffles only


def check_alive(seen: Sequence[Outputs], mechanism: Mechanism) -> None:
    """Refuse a mechanism that fails in every run, for every input, or whose code never returns anything."""
    items = [item for outputs in seen for item in outputs.items]
    if all(outputs.numbers is None for outputs in seen) and all(isinstance(item, Failure) for item in items):
        first = items[0]
        said = f"the mechanism failed in every run, for every input: {first.kind}: {first.said}"[:500]
        raise MechanismError(said) from first.error
    if len(items) >= SURE_OF_NONE and only_none(seen) and not answers(mechanism):
        raise MechanismError(ONLY_NONE)


def only_none(seen: Sequence[Outputs]) -> bool:
    """Whether there are outputs, and all of them are None."""
    items = [item for outputs in seen for item in outputs.items]
    return bool(items) and all(outputs.numbers is None for outputs in seen) and all(item is None for item in items)


def rows_at_a_time(outputs: Outputs) -> int:
    """How many outputs may be held at once."""
    return int(min(MOST_ROWS, max(64, CELLS // max(1, outputs.width or UNKNOWN_WIDTH))))


def room_for(outputs: Outputs, inputs: int) -> int:
    """How many such outputs of each input are kept to learn from: half the numbers that may be learned from."""
    return max(64, min(MOST_LEARNT, LEARNT_CELLS // 2 // max(1, outputs.width or UNKNOWN_WIDTH)) // inputs)


@dataclass(frozen=True)
class TrainingResult:
    """What was learned: a rule (if any), how many runs it cost, and whether runs must be made one at a time."""

    rule: DecisionRule | None
    cost: int
    singly: bool = False
    rows: int = 64
    batches: str = ""  # what is wrong with the rows of one batch
    replays: bool = True
    exact: bool = False  # whether it comes from the distribution itself
    seen: tuple[Outputs, ...] = ()  # the outputs drawn for it
    failed: bool = False  # whether a batch failed


def learn_rule(
    experiment: Experiment,
    runs: int,
    place: int,
    fitted: float = 0.5,
    *,
    first: bool = False,
    singly: bool = False,
    had: Sequence[Outputs] = (),
) -> TrainingResult:
    """Learn a rule for this experiment. If the distribution is known, this costs no runs.

    Nor does it if there are outputs that it already `had`, equally many of each input: a rule may be learned from any
    runs except those that test it. The `first` training of a game draws more, to examine the mechanism's batches and
    its seed; `singly` avoids batches.
    """
    distributions = experiment.distributions() if experiment.custom is None else None
    rngs = experiment.paired_streams(place)
    if distributions is not None:
        width = read(distributions[0].sample(1, np.random.default_rng(0))).width or UNKNOWN_WIDTH
        room = (LEARNT_CELLS if first else LEARNT_CELLS // 8) // width
        each = max(200, min(DISTRIBUTION_DRAWS, 256 * runs, room) // len(distributions))
        pairs = zip(distributions, rngs, strict=True)
        sampled = [read(distribution.sample(each, rng)) for distribution, rng in pairs]
        rule = learn(sampled, sampled, experiment.inputs, experiment.hypothesis, distributions)
        rows = min(map(rows_at_a_time, sampled))
        return TrainingResult(rule, 0, one_at_a_time(experiment.mechanism), rows, exact=True)
    if first:
        look = first_look(experiment, runs, place)
    elif had:
        look = FirstLook(list(had), 0, any(isinstance(item, Failure) for outputs in had for item in outputs.items))
        check_alive(look.seen, experiment.mechanism)
    else:
        drawn, broke = training_outputs(experiment, runs, rngs, singly=singly)
        look = FirstLook(drawn, sum(map(len, drawn)), broke)
    seen = [join(list(both)) for both in zip(look.seen, had, strict=True)] if first and had else look.seen
    cut = max(1, int(fitted * len(seen[0])))
    fit, calibrate = [part(o, 0, cut) for o in seen], [part(o, cut) for o in seen]
    looks = experiment.custom, experiment.bits, experiment.offered()
    rule = learn(fit, calibrate, experiment.inputs, experiment.hypothesis, None, *looks, everything=seen)
    singly = singly or look.failed or bool(look.batches) or one_at_a_time(experiment.mechanism)
    new, rows = tuple(look.seen) if look.cost else (), min(map(rows_at_a_time, seen))
    return TrainingResult(rule, look.cost, singly, rows, look.batches, look.replays, seen=new, failed=look.failed)


def learn_well(experiment: Experiment, budget: int, lost: int = 0) -> TrainingResult:
    """Learn from an eightieth of the runs. If more could help, learn from a sixteenth and calibrate on a tenth.

    If these are too few to learn from, a quarter of all runs serves for both. A curve through so few scores would
    promise more for rare guesses than most outputs keep.
    """
    if budget < FEWEST_RUNS:
        return TrainingResult(None, 0)
    if experiment.custom is not None or experiment.distributions() is not None:
        return learn_rule(experiment, max(32, min(budget // 10, DISTRIBUTION_DRAWS)), TRAININGS * lost, first=True)
    if budget < FEW:
        experiment = replace(experiment, hypothesis=replace(experiment.hypothesis, spreads=0.0))
        return learn_rule(experiment, max(FEWEST_RUNS // 2, budget // 4), TRAININGS * lost, first=True)
    first = learn_rule(experiment, budget // 80, TRAININGS * lost, first=True)
    if first.rule is not None and first.rule.sure and first.cost >= SURE_FROM:
        return first
    streams, singly = experiment.paired_streams(TRAININGS * lost + 1), bool(first.batches)
    seen, failed = training_outputs(experiment, budget // 16, streams, singly=singly)
    extrapolated, far = _from_farther(experiment, first.rule, budget // 20, TRAININGS * lost + 3, singly=singly)
    cost, failed = first.cost + sum(map(len, seen)) + far, failed or first.singly

    def calibration() -> Iterator[list[Outputs]]:
        nonlocal cost, failed
        rngs, size = experiment.paired_streams(TRAININGS * lost + 2), max(2, budget // 40)
        left = min(max(2, budget // 10), MOST_CALIBRATED)
        while left > 0:
            batch, also = training_outputs(experiment, min(left, size), rngs, LEARNT_CELLS // 4, singly=singly)
            number = sum(map(len, batch))
            cost, failed, left, size = cost + number, failed or also, left - number, 2 * MOST_ROWS
            if extrapolated is not None:
                extrapolated.look(batch)
            yield batch

    rare = Exclusive.fit(TrainingSet(tuple(seen), experiment.inputs, epsilon=experiment.hypothesis.epsilon))
    found = chain(fit_all(seen, experiment.inputs, experiment.bits, experiment.offered()), rare)
    rule = best_of_many(found, calibration(), experiment.hypothesis)
    if extrapolated is not None and extrapolated.holds_against(0.0 if rule is None else rule.expected_power):
        rule = extrapolated.checked
    return replace(first, rule=rule or first.rule, cost=cost, singly=failed)


@dataclass
class Extrapolated:
    """A rule learned on inputs farther apart, how often it guesses there, and how it performs on the actual inputs."""

    rule: DecisionRule
    factor: int
    rate: float
    runs: int = 0
    right: int = 0
    wrong: int = 0

    @property
    def checked(self) -> DecisionRule:
        """The rule with its expected power on the actual inputs."""
        power = self.rule.expected_power / self.factor
        return replace(self.rule, right=self.right, wrong=self.wrong, expected_power=power)

    def look(self, batch: Sequence[Outputs]) -> None:
        """Count its guesses on outputs of the inputs themselves."""
        for side, outputs in enumerate(batch):
            right, wrong = self.rule.count(outputs, side)
            self.right, self.wrong, self.runs = self.right + right, self.wrong + wrong, self.runs + len(outputs)

    def holds_against(self, other: float) -> bool:
        """Whether it promises as much as another rule, and these counts do not contradict that.

        They do if it guesses far more rarely here: then neighbors do not show what it detects.
        """
        right, wrong = self.right + 0.5, self.wrong + 0.5
        most = math.log(right / wrong) + DOUBT * math.sqrt(1 / right + 1 / wrong)
        promised, guesses = self.checked.expected_power, self.right + self.wrong
        return RARER * guesses >= self.rate * self.runs and most >= promised > max(0.0, ALIKE * other)


def _from_farther(
    experiment: Experiment, known: DecisionRule | None, runs: int, place: int, *, singly: bool
) -> tuple[Extrapolated | None, int]:
    """A rule from inputs that are farther apart, with its thresholds, and the runs that it took.

    A loss that is k times as large is bounded equally well, in proportion, by k² times fewer runs.
    """
    factor, hypothesis = factor_for(0.0 if known is None else known.expected_power), experiment.hypothesis
    far = experiment.farther(factor)
    if far is None or runs < FEWEST_FAR:
        return None, 0
    if not runs_on(far, place):
        return None, len(far.inputs)
    try:
        drawn, _, _ = draw_outputs(far, far.inputs, runs, far.paired_streams(place), LEARNT_CELLS // 2, singly)
    except (InputError, MechanismError):  # about inputs that nobody asked about
        return None, len(far.inputs) + runs
    half = len(drawn[0]) // 2
    fit, calibrate = [part(outputs, 0, half) for outputs in drawn], [part(outputs, half) for outputs in drawn]
    fewer = replace(hypothesis, runs=max(1, hypothesis.runs // factor**2))
    found = fit_all(fit, experiment.inputs, experiment.bits, experiment.offered())
    rule = best_of_many(found, iter([calibrate]), fewer)
    cost = len(far.inputs) + sum(map(len, drawn))
    return None if rule is None else Extrapolated(rule, factor, guess_rate(rule, calibrate)), cost


def guess_rate(rule: DecisionRule, outputs: Sequence[Outputs]) -> float:
    """The share of these outputs, by which a rule was chosen, that it guesses on."""
    return (rule.right + rule.wrong) / max(1, sum(map(len, outputs)))


def runs_on(experiment: Experiment, place: int) -> bool:
    """Whether the mechanism accepts these inputs at all, checked by one run of each."""
    try:
        drawn = [draw(experiment.mechanism, x, 1, experiment.stream(LEARN, place)) for x in experiment.inputs]
        seen = [read(outputs, experiment.unknown) for outputs in drawn]
    except (InputError, MechanismError):
        return False
    return not any(isinstance(outputs[0], Failure) for outputs in drawn) and not only_none(seen)
