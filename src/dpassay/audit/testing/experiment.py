"""The guessing game: a coin picks the input, the mechanism runs, a rule fixed beforehand names the input or abstains.

This module defines an experiment and what its counts show; `training` learns its rules, and `sequential` runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np

from dpassay.audit.distinguishers.base import Bits, Distinguisher
from dpassay.audit.mechanisms.common_numbers import common_numbers
from dpassay.audit.mechanisms.isolation import copied
from dpassay.audit.mechanisms.mechanism_hints import offered
from dpassay.audit.mechanisms.targets import settle
from dpassay.audit.options import Unknown
from dpassay.audit.outputs.outputs import Outputs, as_row, join, part, read
from dpassay.audit.testing.decision_rule import DecisionRule, learn
from dpassay.audit.testing.expected_power import Hypothesis
from dpassay.audit.testing.inference import (
    RoundCounts,
    accuracy_bound,
    anytime_bound,
    evidence_needed,
    log_evidence,
    p_value,
)
from dpassay.errors import InputError
from dpassay.pipeline.distributions import Distribution
from dpassay.pipeline.mechanism import HasDistribution, Mechanism
from dpassay.values import dataclass

LEARN, TEST, COMPARE = range(3)  # what a random stream is for
FIRST_ROUND = 128  # runs that the first rule is learned from
FEWEST_EACH = 4  # of each input, where there are many
# A loss that few runs show; how many times as far apart as neighbors inputs may be for it; from when this pays.
LARGE, FARTHEST, WORTHWHILE = 1.0, 15, 5
GROWTH = 2.0  # a new rule is learned each time the runs to learn from have grown by this factor
MOST_ROWS = 1 << 16
KEPT = 1000  # outputs of each input kept to compare the sampler with its distribution
SHOWN = 256  # outputs of each input from which examples are chosen
TRUST, TRUST_IN_DISTRIBUTION = 0.5, 1.0
SETTLING = 1 << 31  # the place of the stream for calls that show what a mechanism stores
SKIPPED = 1 << 32  # numbers of tasks left out after a game was killed: more than it can have begun


def stream(seed: int, *place: int) -> np.random.Generator:
    """The random numbers of one task: a counter-based generator, keyed by the seed and the task's position.

    >>> int(stream(1, TEST, 0).integers(100)) == int(stream(1, TEST, 0).integers(100))
    True
    """
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(seed, spawn_key=place)))


def factor_for(loss: float) -> int:
    """The odd factor by which inputs should be farther apart than neighbors so that few runs show a loss; 1 if large.

    >>> factor_for(1.0), factor_for(0.1), factor_for(0.0)
    (1, 9, 15)
    """
    factor = min(LARGE / max(loss, 1e-9), FARTHEST)
    return 2 * int((factor - 1) // 2) + 1 if factor >= WORTHWHILE else 1


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
    device: str = "cpu"  # where kernels compute
    unknown: Unknown = "refuse"  # how outputs of unknown types are read
    anywhere: bool = False  # whether every vector is an input, as answers of queries are
    repeatable: bool = True  # whether a run that was lost with its worker gives the same output if it is made again

    def farther(self, factor: int) -> Experiment | None:
        """The same experiment with inputs `factor` times as far apart, if such inputs exist.

        They are not neighbors, so nothing is tested on them. But what distinguishes them also distinguishes neighbors
        if losses grow with the distance, and far fewer runs show it.
        """
        possible = self.anywhere and factor > 1 and len(self.inputs) == 2
        if not possible or self.custom is not None or self.hypothesis.delta or self.distributions() is not None:
            return None
        x, y = (as_row(x) for x in self.inputs)
        if x is None or y is None or x.shape != y.shape or not np.isfinite(x - y).all():
            return None
        more = (factor - 1) / 2 * (y - x)
        return replace(self, inputs=(x - more, y + more))

    def distributions(self) -> list[Distribution] | None:
        """The exact distributions for all inputs, if the mechanism knows them."""
        if not isinstance(self.mechanism, HasDistribution):
            return None
        try:
            found = [self.mechanism.distribution(copied(x)) for x in self.inputs]
        except (InputError, NotImplementedError):
            return None
        # A method of this name may return something else, such as the name of a distribution.
        return found if all(hasattr(one, "sample") and hasattr(one, "log_likelihood") for one in found) else None

    def offered(self) -> tuple[Distinguisher, ...]:
        """Distinguishers that the mechanism itself offers for these inputs."""
        return offered(self.mechanism, self.inputs)

    def at_hand(self) -> tuple[Distinguisher, ...]:
        """Distinguishers that are not stored in files: the user's own, and those that the mechanism offers."""
        return (*(() if self.custom is None else (self.custom,)), *self.offered())

    def stream(self, *place: int) -> np.random.Generator:
        """The random numbers of one task of this experiment."""
        return stream(self.seed, self.number, *place)

    def settle(self) -> int:
        """Find out, once per process, what the mechanism stores for each input; return how many calls that took."""
        return settle(self.mechanism, self.inputs, self.stream(LEARN, SETTLING))

    def paired_streams(self, place: int) -> list[np.random.Generator]:
        """The same random numbers for each input, for training: see `draw_outputs`."""
        return [common_numbers(self.stream(LEARN, place)) for _ in self.inputs]


@dataclass(frozen=True)
class RoundResult:
    """A rule and its counts."""

    rule: DecisionRule
    counts: RoundCounts
    learnt_from: int
    length: int
    singly: bool = False  # runs are made one at a time, in the order of the coins
    sizes: tuple[tuple[int, int], ...] = ()  # of its tasks in order, and how often each occurs; 0 for an aborted one
    rows: int = 64  # most runs per task
    screening: bool = False  # made in batches whose rows may be dependent: a refutation rests on other rounds

    def skipping(self, tasks: int) -> RoundResult:
        """The same with the random numbers of some tasks left out."""
        return replace(self, sizes=(*self.sizes, (0, tasks))) if tasks else self

    @property
    def tasks(self) -> int:
        """How many tasks it has had so far."""
        return sum(times for _, times in self.sizes)

    @property
    def finished(self) -> int:
        """The runs of its tasks that were not aborted."""
        return sum(size * times for size, times in self.sizes)

    def after(self, size: int) -> RoundResult:
        """The same after one more task of this size."""
        *before, last = self.sizes or ((size, 0),)
        added = ((size, last[1] + 1),) if last[0] == size else (last, (size, 1))
        return replace(self, sizes=(*before, *added))


@dataclass
class GameState:
    """The state of a game: its rounds, its number of runs, and some outputs to compare with the distribution."""

    rounds: list[RoundResult] = field(default_factory=list)
    runs: int = 0
    lost: int = 0  # trainings in which the mechanism failed: the next one has different random numbers
    fruitless: int = 0  # trainings that gave no rule: the next one has different and more runs
    nothing_learnt: bool = False
    looked: bool = False  # whether the rows of its batches were examined
    kept: list[list[Outputs]] = field(default_factory=list)
    batches: str = ""  # what is wrong with the rows of one batch, if anything: then all runs are made one at a time
    failing: bool = False  # whether a batch failed, so that runs are made one at a time
    replays: bool = True  # whether the same seed gave the same outputs again
    restarts: int = 0  # how often it was killed while it ran, so that tasks may have been lost
    announce: Callable[[int], None] | None = None  # is told how many runs there will be before they are made
    learnt: tuple[Outputs, ...] = ()  # some outputs of each input from which the first rule was learned, to be shown

    @property
    def shown(self) -> list[Outputs]:
        """Some outputs of each input, the same wherever tasks run; none for a game continued from a file."""
        return list(self.learnt) or [join(list(batches)) for batches in self.kept if batches]

    def begin(self, new: RoundResult) -> None:
        """Add a round, whose tasks have random numbers that no lost task had."""
        self.rounds.append(new.skipping(SKIPPED * self.restarts))

    def restart(self, lost: int) -> None:
        """Continue after a kill: tasks may have been lost, and this many lost runs count as wrong guesses."""
        self.restarts += 1
        if self.rounds:
            last, wrong = self.rounds[-1].skipping(SKIPPED), (0, lost, lost)
            self.rounds[-1], self.runs = replace(last, counts=last.counts + wrong), self.runs + lost

    @property
    def counts(self) -> list[RoundCounts]:
        return [current.counts for current in self.rounds]

    @property
    def evidence(self) -> list[RoundResult]:
        """The rounds on which a refutation may rest."""
        return [current for current in self.rounds if not current.screening]

    @property
    def rule(self) -> DecisionRule | None:
        return self.rounds[-1].rule if self.rounds else None

    def best(self, hypothesis: Hypothesis) -> RoundResult:
        """The round with the most evidence against the claim, of those that count."""
        claimed = hypothesis.epsilon, hypothesis.delta, hypothesis.candidates
        return max(self.evidence or self.rounds, key=lambda one: one.counts.log_evidence(*claimed))

    def log_evidence(self, hypothesis: Hypothesis) -> float:
        """The combined evidence against the claim from all rounds that count."""
        counts = [current.counts for current in self.evidence]
        return log_evidence(counts, hypothesis.epsilon, hypothesis.delta, hypothesis.candidates)

    def totals(self) -> tuple[int, int, int]:
        """Correct and wrong guesses, and the runs they were made in."""
        return (
            sum(counts.right for counts in self.counts),
            sum(counts.wrong for counts in self.counts),
            sum(counts.runs for counts in self.counts),
        )


@dataclass(frozen=True)
class GameResult:
    """A game with what it was about: its inputs, its experiment's number and its share of the error probability."""

    game: GameState
    inputs: tuple[Any, ...]
    number: int
    alpha: float


def bound(game: GameState, hypothesis: Hypothesis, alpha: float, exact: bool, batches: bool = False) -> float:
    """The lower bound on ε from a game; with `batches` also from rows that may depend on each other."""
    rounds = game.rounds if batches else game.evidence
    if not rounds:
        return 0.0
    if exact and not (hypothesis.delta and hypothesis.candidates == 2):
        right, wrong = _as_if_finished(rounds)
        return accuracy_bound(right, wrong, alpha, hypothesis.candidates, hypothesis.delta)
    return anytime_bound([one.counts for one in rounds], alpha, hypothesis.delta, hypothesis.candidates)


def _as_if_finished(rounds: Sequence[RoundResult]) -> tuple[int, int]:
    """Correct and wrong guesses of a fixed number of runs; runs not yet made count as wrong.

    So an early look never gives a better result than the final one.
    """
    right, wrong = sum(one.counts.right for one in rounds), sum(one.counts.wrong for one in rounds)
    return right, wrong + max(0, sum(one.length - one.counts.runs for one in rounds))


def rejected(game: GameState, hypothesis: Hypothesis, alpha: float, exact: bool) -> bool:
    """Whether the game refutes the claim at this error probability."""
    if not game.evidence:
        return False
    if exact and not (hypothesis.delta and hypothesis.candidates == 2):
        right, wrong = _as_if_finished(game.evidence)
        return p_value(right, wrong, hypothesis.epsilon, hypothesis.candidates, hypothesis.delta) <= alpha
    return game.log_evidence(hypothesis) >= evidence_needed(alpha)


def against_distribution(kept: Sequence[Outputs], distribution: Distribution, rng: np.random.Generator) -> float:
    """p-value against the hypothesis that outputs were drawn from their declared distribution.

    The same game at ε = 0: one input is the mechanism, the other its distribution. A rule learned on half of the
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
