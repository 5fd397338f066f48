"""What guesses: rules that look at one output and say which input it came from.

A guesser gives each output a score: with two inputs one number, higher for the second; with M inputs one for each.
`learning` makes them, from runs that are never used to test them. docs/audit.md lists them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpassay.audit.features import FEATURES, LABELS, binned, ngrams
from dpassay.audit.outputs import Array, Outputs
from dpassay.compute.likelihood_ratio import LikelihoodRatioTable
from dpassay.errors import InputError
from dpassay.pipeline.distributions import Distribution, told_by_words

Scores = NDArray[np.float64]
MOST_KEYS = 4096  # categories that are told apart
ONE_SIDED = 2.5  # log-odds from which an oddity counts as one side's own


class Distinguisher(Protocol):
    """Scores outputs. One column for two inputs, M columns for M of them."""

    def scores(self, outputs: Outputs) -> Scores:
        """Higher means the second input, or this column's; NaN where it cannot tell."""

    def describe(self) -> str:
        """What it looks at, in a few words."""


@dataclass(frozen=True)
class Likelihood:
    """The exact log-likelihoods: no guesser is better."""

    distributions: tuple[Distribution, ...]

    @cached_property
    def width(self) -> int:
        """How many coordinates the distributions' outputs have, whatever a batch has."""
        return int(self.distributions[0].sample(1, np.random.default_rng(0)).shape[1])

    @cached_property
    def told(self) -> tuple[LikelihoodRatioTable, LikelihoodRatioTable] | None:
        """The same for kernels: what single words say, where the distributions are of a kind that kernels can draw."""
        return told_by_words(self.distributions)

    def scores(self, outputs: Outputs) -> Scores:
        """Log-likelihood ratio, or all log-likelihoods."""
        rows = outputs.matrix(self.width)
        with np.errstate(invalid="ignore", over="ignore"):
            logs = [distribution.log_likelihood(rows) for distribution in self.distributions]
            return np.asarray(logs[1] - logs[0]) if len(logs) == 2 else np.stack(logs, axis=1)

    def describe(self) -> str:
        """In words."""
        return "the exact likelihood ratio"


@dataclass(frozen=True)
class CustomDistinguisher:
    """A guesser that the user brings: a function from a list of outputs to scores, each for its output alone."""

    function: Callable[[list[Any]], Any]

    def scores(self, outputs: Outputs) -> Scores:
        """Whatever the function says, if it says the same of the last output when it is alone.

        All outputs of a batch have one input: scores that depend on the others would be guesses from many runs.
        """
        rows = outputs.rows()
        scores = self._asked(rows)
        alone = self._asked(rows[-1:])[0] if rows else 0.0
        if rows and not np.allclose(scores[-1], alone, rtol=1e-4, atol=1e-6, equal_nan=True):
            raise InputError(
                f"{self.describe()} scores an output {scores[-1]} among {len(rows)} and {alone} alone: "
                "it must look at each output alone, since all of a batch have the same input"
            )
        return scores

    def _asked(self, rows: list[Any]) -> Scores:
        try:
            scores = np.asarray(self.function(rows), dtype=float)
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
            raise InputError(f"{self.describe()} must give a list of numbers, but raised {said}") from error
        if scores.ndim not in (1, 2) or len(scores) != len(rows):
            raise InputError(f"{self.describe()} must give one score an output, {len(rows)}, got shape {scores.shape}")
        return scores

    def describe(self) -> str:
        """In words."""
        return f"the guesser {getattr(self.function, '__name__', 'given')}"


@dataclass(frozen=True)
class Statistic:
    """One number of a vector output: a coordinate, its smallest, its sum, or which input it is nearer to."""

    name: str
    width: int
    sign: float = 1.0
    inputs: tuple[Array, ...] = ()

    def scores(self, outputs: Outputs) -> Scores:
        """The number, turned so that it is higher for the second input."""
        rows = outputs.matrix(self.width)
        with np.errstate(invalid="ignore", over="ignore"):
            return self.sign * _statistic(self.name, rows, self.inputs)

    def describe(self) -> str:
        """In words."""
        nearer = {NEARER: "the output is", NEARER_STEPS: "the output's increments are"}
        if self.name in nearer:
            return f"which input {nearer[self.name]} nearer to in l1"
        return f"the {self.name} of the output"


NEARER, NEARER_STEPS = "nearness", "nearness of increments"
_WHOLE: dict[str, Callable[[Array], Array]] = {
    "sum": lambda rows: rows.sum(axis=1),
    "smallest coordinate": lambda rows: rows.min(axis=1),
    "largest coordinate": lambda rows: rows.max(axis=1),
    "l1 norm": lambda rows: np.abs(rows).sum(axis=1),
}


def _statistic(name: str, rows: Array, inputs: tuple[Array, ...]) -> Scores:
    if name in (NEARER, NEARER_STEPS):
        first, second = inputs
        rows = np.diff(rows, axis=1, prepend=0.0) if name == NEARER_STEPS else rows
        return np.asarray(np.abs(rows - first).sum(axis=1) - np.abs(rows - second).sum(axis=1))
    if name in _WHOLE:
        return np.asarray(_WHOLE[name](rows))
    return np.asarray(rows[:, int(name.removeprefix("coordinate "))])


@dataclass(frozen=True)
class Linear:
    """Logistic regression on the coordinates; where `missing` is given, NaN counts as 0 and has a weight of its own."""

    weights: Array
    bias: float
    missing: Array = field(default_factory=lambda: np.zeros(0))

    def scores(self, outputs: Outputs) -> Scores:
        """The log-odds. (A matrix product would round a row as the number of rows suggests.)"""
        rows, sums = outputs.matrix(len(self.weights)), self.bias
        with np.errstate(invalid="ignore", over="ignore"):
            if len(self.missing):
                unknown = np.isnan(rows)
                sums = sums + np.einsum("ij,j->i", unknown, self.missing)
                rows = np.where(unknown, 0.0, rows)
            return np.asarray(np.einsum("ij,j->i", rows, self.weights) + sums)

    def describe(self) -> str:
        """In words."""
        return "a weighted sum of the output's coordinates"


@dataclass(frozen=True)
class Boosted:
    """Tables of scores, learnt by boosting: each over the bins of one feature, or of two of them together.

    `kind` says which features: the coordinates with their differences, the bit patterns of floats, or lengths.
    """

    kind: str
    width: int
    columns: tuple[tuple[int, ...], ...]
    edges: dict[int, Array]
    tables: tuple[Array, ...]

    def scores(self, outputs: Outputs) -> Scores:
        """The sum of the tables' entries."""
        features = FEATURES[self.kind](outputs, self.width)
        bins = {j: binned(features(j), edges) for j, edges in self.edges.items()}
        total = np.zeros(len(outputs))
        for columns, table in zip(self.columns, self.tables, strict=True):
            total += table[tuple(bins[j] for j in columns)]
        return total

    def describe(self) -> str:
        """In words."""
        return f"a boosted classifier on {self.kind}"


@dataclass(frozen=True)
class Counted:
    """How often each category came from each input. A category is the output itself, or what is odd about it."""

    kind: str
    names: tuple[Any, ...]
    logs: Array  # one row an input, one column a name
    inputs: tuple[Any, ...] = ()

    def scores(self, outputs: Outputs) -> Scores:
        """Differences of log-counts; categories that were not seen are not guessed."""
        codes, words = LABELS[self.kind](outputs, self.inputs)
        if words is None:
            known = np.array(self.names, dtype=np.uint64)
            where = np.minimum(np.searchsorted(known, codes), len(known) - 1)
            where = np.where(known[where] == codes, where, -1)
        else:
            index = {name: i for i, name in enumerate(self.names)}
            where = np.zeros(len(codes), dtype=np.int64)
            for code, word in words.items():
                where[codes == code] = index.get(word, -1)
        logs = np.where(where >= 0, self.logs[:, where], np.nan)
        return logs[1] - logs[0] if len(logs) == 2 else logs.T

    def describe(self) -> str:
        """In words."""
        if self.kind == "value":
            return "how often each output was seen"
        return "what sort of output it is: " + ", ".join(map(str, self.names[:4]))


@dataclass(frozen=True)
class Ngrams:
    """Which words, pairs of words and runs of three characters a text has (naive Bayes)."""

    logs: Array  # one row an input, one column a cell

    def scores(self, outputs: Outputs) -> Scores:
        """Sum of the log-odds of all n-grams in the text."""
        empty = [text == "" for text in outputs.texts()]
        totals = np.array([self.logs[:, ngrams(text)].sum(axis=1) for text in outputs.texts()]).reshape(
            len(outputs), len(self.logs)
        )
        totals[empty] = np.nan
        return totals[:, 1] - totals[:, 0] if len(self.logs) == 2 else totals

    def describe(self) -> str:
        """In words."""
        return "the words and characters of the output"


@dataclass(frozen=True)
class Nearest:
    """Which of several inputs a vector output is nearest to."""

    inputs: tuple[Array, ...]

    def scores(self, outputs: Outputs) -> Scores:
        """Minus the l1 distances."""
        rows = outputs.matrix(len(self.inputs[0]))
        with np.errstate(invalid="ignore", over="ignore"):
            return np.stack([-np.abs(rows - x).sum(axis=1) for x in self.inputs], axis=1)

    def describe(self) -> str:
        """In words."""
        return "which input the output is nearest to in l1"


@dataclass(frozen=True)
class Guarded:
    """A guesser that first looks for outputs which only one input ever gave."""

    base: Distinguisher
    oddities: Counted

    def scores(self, outputs: Outputs) -> Scores:
        """The base's score, but far out where the oddity was seen from one side only."""
        scores = self.base.scores(outputs)
        odd = self.oddities.scores(outputs)
        one_sided = np.abs(odd) > ONE_SIDED
        return np.where(one_sided, np.copysign(np.inf, odd), scores)

    def describe(self) -> str:
        """In words."""
        return f"{self.base.describe()}, and {self.oddities.describe()}"
