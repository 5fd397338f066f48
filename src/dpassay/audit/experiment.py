"""The guessing game: a coin picks the input, the mechanism runs, a rule fixed before names the input or abstains.

Here is what an experiment is, how its rules are learnt, and what its counts say; `sequential` runs it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dpassay.audit import batches as rows_of_batches
from dpassay.audit.decision_rule import DecisionRule, Hypothesis, best_of_many, learn
from dpassay.audit.distinguishers import fit_all
from dpassay.audit.distinguishers.base import Bits, Distinguisher
from dpassay.audit.inference import Counts, accuracy_bound, anytime_bound, evidence_needed, log_evidence, p_value
from dpassay.audit.options import Unknown
from dpassay.audit.outputs import Outputs, join, part, read
from dpassay.audit.targets import draw, draw_singly, one_at_a_time
from dpassay.errors import InputError, MechanismError
from dpassay.pipeline.distributions import Distribution
from dpassay.pipeline.mechanism import Failure, HasDistribution, Mechanism, Redrawn, Repeated
from dpassay.pipeline.pipeline import Pipeline

LEARN, TEST, COMPARE = range(3)  # what a random stream is for
FIRST_ROUND = 256  # runs that the first rule is learnt from
GROWTH = 4
SLOW_GROWTH = 2  # where each call gives one output: a rule is learnt anew as soon as there are twice as many
TESTED = 3  # a round tests its rule on this many times the runs that the rule was learnt from
CELLS = 1 << 20  # numbers that are held at a time
MOST_ROWS = 1 << 16
KEPT = 1000  # outputs of each input that are kept to compare the sampler with its distribution
SHOWN = 256  # outputs of each input from which examples are chosen
TRUST, TRUST_IN_DISTRIBUTION = 0.5, 1.0
DISTRIBUTION_DRAWS = 60_000
LEARNT_CELLS = 1 << 24  # numbers to learn from at the very most: 128 MiB
UNKNOWN_WIDTH = 256  # how many numbers an output that is none is worth
FEWEST_RUNS = 40  # nothing can be learnt from fewer
MOST_CALIBRATED = 1 << 21  # runs whose scores are held to choose thresholds
SURE_FROM = 10_000  # runs of a training that may be the only one
TRAININGS = 1_000  # random streams for trainings, before those of trainings repeated after a failure


def stream(seed: int, *place: int) -> np.random.Generator:
    """The random numbers of one task: a counter-based generator, keyed by the seed and the task's place.

    >>> int(stream(1, TEST, 0).integers(100)) == int(stream(1, TEST, 0).integers(100))
    True
    """
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(seed, spawn_key=place)))


@dataclass(frozen=True)
class Experiment:
    """One mechanism, one set of inputs to distinguish, one hypothesis, and the random streams to test it with."""

    mechanism: Mechanism
    inputs: tuple[Any, ...]
    hypothesis: Hypothesis
    seed: int
    number: int = 0  # distinguishes experiments with the same seed
    custom: Distinguisher | None = None
    bits: Bits = "no"
    device: str = "cpu"  # where kernels make their numbers
    unknown: Unknown = "refuse"  # how outputs of unknown types are read

    def distributions(self) -> list[Distribution] | None:
        """The exact distributions of all inputs, where the mechanism knows them."""
        if not isinstance(self.mechanism, HasDistribution):
            return None
        try:
            return [self.mechanism.distribution(x) for x in self.inputs]
        except (InputError, NotImplementedError):
            return None

    def stream(self, *place: int) -> np.random.Generator:
        """The random numbers of one task of this experiment."""
        return stream(self.seed, self.number, *place)

    def paired_streams(self, place: int) -> list[np.random.Generator]:
        """The same random numbers for each input, to learn from: see `draw_outputs`."""
        return [self.stream(LEARN, place) for _ in self.inputs]


@dataclass(frozen=True)
class Round:
    """A rule and its counts."""

    rule: DecisionRule
    counts: Counts
    learnt_from: int
    length: int
    singly: bool = False  # runs are made one at a time, in the order of the coins
    sizes: tuple[tuple[int, int], ...] = ()  # of its tasks in order, and how often each; 0 for one that broke off
    rows: int = 64  # the most that a task may hold
    screening: bool = False  # made in batches whose rows may depend on each other: a refutation rests on other rounds

    @property
    def tasks(self) -> int:
        """How many tasks it has had."""
        return sum(times for _, times in self.sizes)

    @property
    def finished(self) -> int:
        """The runs of its tasks that did not break off."""
        return sum(size * times for size, times in self.sizes)

    def after(self, size: int) -> Round:
        """The same after one more task of this size."""
        *before, last = self.sizes or ((size, 0),)
        added = ((size, last[1] + 1),) if last[0] == size else (last, (size, 1))
        return replace(self, sizes=(*before, *added))


@dataclass
class Game:
    """The state of a game: its rounds, how many runs it took, and some outputs to compare with the distribution."""

    rounds: list[Round] = field(default_factory=list)
    runs: int = 0
    lost: int = 0  # trainings in which the mechanism failed: the next one has other random numbers
    fruitless: int = 0  # trainings from which no rule came: the next one has other runs, and more of them
    nothing_learnt: bool = False
    kept: list[list[Outputs]] = field(default_factory=list)
    batches: str = ""  # what is wrong with the rows of one batch: then all runs are made one at a time
    replays: bool = True  # whether the same seed gave the same outputs again
    learnt: tuple[Outputs, ...] = ()  # some outputs of each input that the first rule was learnt from, to be shown

    @property
    def shown(self) -> list[Outputs]:
        """Some outputs of each input, the same wherever tasks run; none of a game that was continued from a file."""
        return list(self.learnt) or [join(list(batches)) for batches in self.kept if batches]

    @property
    def counts(self) -> list[Counts]:
        return [current.counts for current in self.rounds]

    @property
    def evidence(self) -> list[Round]:
        """The rounds on which a refutation may rest."""
        return [current for current in self.rounds if not current.screening]

    @property
    def rule(self) -> DecisionRule | None:
        return self.rounds[-1].rule if self.rounds else None

    def best(self, hypothesis: Hypothesis) -> Round:
        """The round that says most against the claim, of those that count."""
        claimed = hypothesis.epsilon, hypothesis.delta, hypothesis.candidates
        return max(self.evidence or self.rounds, key=lambda one: one.counts.log_evidence(*claimed))

    def log_evidence(self, hypothesis: Hypothesis) -> float:
        """What all rounds that count say together against the claim."""
        counts = [current.counts for current in self.evidence]
        return log_evidence(counts, hypothesis.epsilon, hypothesis.delta, hypothesis.candidates)

    def totals(self) -> tuple[int, int, int]:
        """Right and wrong guesses, and the runs they were made in."""
        return (
            sum(counts.right for counts in self.counts),
            sum(counts.wrong for counts in self.counts),
            sum(counts.runs for counts in self.counts),
        )


@dataclass(frozen=True)
class GameResult:
    """A game with what it was about: its inputs, its experiment's number and its share of the error probability."""

    game: Game
    inputs: tuple[Any, ...]
    number: int
    alpha: float


def draw_outputs(
    experiment: Experiment,
    inputs: Sequence[Any],
    runs: int,
    rngs: Sequence[np.random.Generator],
    cells: int,
    singly: bool = False,
) -> tuple[list[Outputs], bool, list[list[Outputs]]]:
    """The same number of outputs per input, `runs` in all if memory allows, and whether a batch failed.

    Each input has a generator. Where these are alike, outputs differ by their inputs and little else, so that far
    fewer of them show by how much. That is for learning only: rules are tested on independent runs.

    The first outputs of each input come in small batches, which are returned too: see `batches.dependence`.
    """
    mechanism, unknown = experiment.mechanism, experiment.unknown
    each = max(1, runs // len(inputs))
    small = rows_of_batches.ROWS if each >= rows_of_batches.ROWS * rows_of_batches.BATCHES else min(each, 64)
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
    failed = any(isinstance(part, Redrawn) and not isinstance(part, Repeated) for some in parts for part in some)
    seen = []
    for some in parts:
        seen.append(join([read(part, unknown) for part in some]))
        some.clear()  # what has been joined need not be held twice
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
    check_alive(seen)
    return seen, failed


@dataclass(frozen=True)
class FirstLook:
    """The first outputs to learn from, what they cost, and what they show of the mechanism's batches and its seed."""

    seen: list[Outputs]
    cost: int
    failed: bool = False
    batches: str = ""
    replays: bool = True


def first_look(experiment: Experiment, runs: int, place: int) -> FirstLook:
    """Outputs to learn from. If the rows of one batch are not independent they are drawn again, one at a time."""
    mechanism, rngs = experiment.mechanism, experiment.paired_streams(place)
    seen, failed, first = draw_outputs(experiment, experiment.inputs, runs, rngs, LEARNT_CELLS)
    check_alive(seen)
    cost, wrong = sum(map(len, seen)), ""
    if not (failed or one_at_a_time(mechanism) or rows_of_batches.known_independent(mechanism)):
        wrong = next(filter(None, map(_dependence, first[:2])), "")
    replays = bool(getattr(mechanism, "replays", True))
    if replays and len(seen[0]) >= 64 and not isinstance(mechanism, Pipeline):
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
    return rows_of_batches.dependence(batches, np.random.default_rng(0))  # for shuffles, whatever was drawn


def check_alive(seen: Sequence[Outputs]) -> None:
    """A mechanism that fails in every run, for every input, has said nothing."""
    items = [item for outputs in seen for item in outputs.items]
    if all(outputs.numbers is None for outputs in seen) and all(isinstance(item, Failure) for item in items):
        first = items[0]
        said = f"the mechanism failed in every run, for every input: {first.kind}: {first.said}"[:500]
        raise MechanismError(said) from first.error


def rows_at_a_time(outputs: Outputs) -> int:
    """How many outputs may be held at once."""
    return int(min(MOST_ROWS, max(64, CELLS // max(1, outputs.width or UNKNOWN_WIDTH))))


@dataclass(frozen=True)
class TrainingResult:
    """What was learnt: a rule (if any), how many runs it cost, and whether runs must be made one at a time."""

    rule: DecisionRule | None
    cost: int
    singly: bool = False
    rows: int = 64
    batches: str = ""  # what is wrong with the rows of one batch
    replays: bool = True
    exact: bool = False  # from the distribution itself
    seen: tuple[Outputs, ...] = ()  # the outputs that were drawn for it


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
    """Learn a rule for this experiment. Where the distribution is known it costs no runs.

    Nor does it where outputs were `had` before, equally many of each input: a rule may be learnt from any runs but
    those that test it. The `first` training of a game looks at the mechanism's batches and its seed, too; `singly`
    does without batches.
    """
    distributions = experiment.distributions() if experiment.custom is None else None
    rngs = experiment.paired_streams(place)
    if distributions is not None:
        each = max(200, min(DISTRIBUTION_DRAWS, 256 * runs) // len(distributions))
        pairs = zip(distributions, rngs, strict=True)
        sampled = [read(distribution.sample(each, rng)) for distribution, rng in pairs]
        rule = learn(sampled, sampled, experiment.inputs, experiment.hypothesis, distributions)
        rows = min(map(rows_at_a_time, sampled))
        return TrainingResult(rule, 0, one_at_a_time(experiment.mechanism), rows, exact=True)
    if had:
        look = FirstLook(list(had), 0)
        check_alive(look.seen)
    elif first:
        look = first_look(experiment, runs, place)
    else:
        drawn, broke = training_outputs(experiment, runs, rngs, singly=singly)
        look = FirstLook(drawn, sum(map(len, drawn)), broke)
    seen = look.seen
    cut = max(1, int(fitted * len(seen[0])))
    fit, calibrate = [part(o, 0, cut) for o in seen], [part(o, cut) for o in seen]
    rule = learn(fit, calibrate, experiment.inputs, experiment.hypothesis, None, experiment.custom, experiment.bits)
    singly = singly or look.failed or bool(look.batches) or one_at_a_time(experiment.mechanism)
    new, rows = tuple(seen) if look.cost else (), min(map(rows_at_a_time, seen))
    return TrainingResult(rule, look.cost, singly, rows, look.batches, look.replays, seen=new)


def learn_well(experiment: Experiment, budget: int, lost: int = 0) -> TrainingResult:
    """Learn from an eightieth of the runs. If more could help, learn from a sixteenth and calibrate on a tenth."""
    if budget < FEWEST_RUNS:
        return TrainingResult(None, 0)
    if experiment.custom is not None or experiment.distributions() is not None:
        return learn_rule(experiment, max(32, min(budget // 10, DISTRIBUTION_DRAWS)), TRAININGS * lost, first=True)
    first = learn_rule(experiment, max(2, budget // 80), TRAININGS * lost, first=True)
    if first.rule is not None and first.rule.sure and first.cost >= SURE_FROM:
        return first
    streams, singly = experiment.paired_streams(TRAININGS * lost + 1), bool(first.batches)
    seen, failed = training_outputs(experiment, budget // 16, streams, singly=singly)
    cost, failed = first.cost + sum(map(len, seen)), failed or first.singly

    def calibration() -> Iterator[list[Outputs]]:
        nonlocal cost, failed
        rngs, size = experiment.paired_streams(TRAININGS * lost + 2), max(2, budget // 40)
        left = min(max(2, budget // 10), MOST_CALIBRATED)
        while left > 0:
            batch, also = training_outputs(experiment, min(left, size), rngs, LEARNT_CELLS // 4, singly=singly)
            number = sum(map(len, batch))
            cost, failed, left, size = cost + number, failed or also, left - number, 2 * MOST_ROWS
            yield batch

    rule = best_of_many(fit_all(seen, experiment.inputs, experiment.bits), calibration(), experiment.hypothesis)
    return replace(first, rule=rule or first.rule, cost=cost, singly=failed)


def bound(game: Game, hypothesis: Hypothesis, alpha: float, exact: bool, batches: bool = False) -> float:
    """The lower bound on ε that a game has earned; with `batches` also from rows that may depend on each other."""
    rounds = game.rounds if batches else game.evidence
    if not rounds:
        return 0.0
    if exact and not (hypothesis.delta and hypothesis.candidates == 2):
        right, wrong = _as_if_finished(rounds)
        return accuracy_bound(right, wrong, alpha, hypothesis.candidates, hypothesis.delta)
    return anytime_bound([one.counts for one in rounds], alpha, hypothesis.delta, hypothesis.candidates)


def _as_if_finished(rounds: Sequence[Round]) -> tuple[int, int]:
    """Right and wrong guesses of a fixed number of runs; the runs not yet made count as wrong.

    So a look before the end is never better than the one at the end.
    """
    right, wrong = sum(one.counts.right for one in rounds), sum(one.counts.wrong for one in rounds)
    return right, wrong + max(0, sum(one.length - one.counts.runs for one in rounds))


def rejected(game: Game, hypothesis: Hypothesis, alpha: float, exact: bool) -> bool:
    """Whether the game refutes the claim at this error probability."""
    if not game.evidence:
        return False
    if exact and not (hypothesis.delta and hypothesis.candidates == 2):
        right, wrong = _as_if_finished(game.evidence)
        return p_value(right, wrong, hypothesis.epsilon, hypothesis.candidates, hypothesis.delta) <= alpha
    return game.log_evidence(hypothesis) >= evidence_needed(alpha)


def against_distribution(kept: Sequence[Outputs], distribution: Distribution, rng: np.random.Generator) -> float:
    """p-value of the guess that outputs were not drawn from their declared distribution.

    The same game at ε = 0: the one input is the mechanism, the other its distribution. A rule learnt on half of the
    outputs is tested on the other half.
    """
    seen = join(list(kept))
    half = len(seen) // 2
    if half < 8:
        return 1.0
    learning, testing = part(seen, 0, half), part(seen, half)
    drawn = read(distribution.sample(8 * half, rng))
    third = len(drawn) // 2
    rule = learn([learning, part(drawn, 0, third)], [learning, part(drawn, third)], ((), ()), Hypothesis(0.0))
    if rule is None:
        return 1.0
    from_distribution = read(distribution.sample(len(testing), rng))
    coins = rng.random(len(testing)) < 0.5
    right = wrong = 0
    for side, outputs in ((0, testing.chosen(coins)), (1, from_distribution.chosen(~coins))):
        hits, misses = rule.count(outputs, side)
        right, wrong = right + hits, wrong + misses
    return p_value(right, wrong, 0.0)
