"""What guesses: rules that look at one output and say which input it came from.

A guesser gives each output a score: with two inputs one number, higher for the second; with M inputs one for each.
`learning` makes them, from runs that are never used to test them. docs/audit.md lists them.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpassay.compute.telling import Telling
from dpassay.drawing import told_by_words
from dpassay.errors import InputError
from dpassay.law import Law
from dpassay.outputs import LONGEST, Array, Outputs, read

Scores = NDArray[np.float64]
MOST_KEYS = 4096  # categories that are told apart
ONE_SIDED = 2.5  # log-odds from which an oddity counts as one side's own
MOST_COPIED = 8  # inputs whose copies are looked for
FLOAT_BITS, BIT_VIEWS = "float bits", 4
MANY, FEW = 1 << 14, 64  # values in one call, and edges, from and up to which edges are counted
HASHED = 1 << 15  # n-grams are counted in so many cells


class Guesser(Protocol):
    """Scores outputs. One column for two inputs, M columns for M of them."""

    def scores(self, outputs: Outputs) -> Scores:
        """Higher means the second input, or this column's; NaN where it cannot tell."""

    def describe(self) -> str:
        """What it looks at, in a few words."""


@dataclass(frozen=True)
class Likelihood:
    """The exact log-likelihoods: no guesser is better."""

    laws: tuple[Law, ...]

    @cached_property
    def width(self) -> int:
        """How many coordinates the laws' outputs have, whatever a batch has."""
        return int(self.laws[0].sample(1, np.random.default_rng(0)).shape[1])

    @cached_property
    def told(self) -> tuple[Telling, Telling] | None:
        """The same for kernels: what single words say, where the laws are of a kind that kernels can draw."""
        return told_by_words(self.laws)

    def scores(self, outputs: Outputs) -> Scores:
        """Log-likelihood ratio, or all log-likelihoods."""
        rows = outputs.matrix(self.width)
        with np.errstate(invalid="ignore", over="ignore"):
            logs = [law.log_likelihood(rows) for law in self.laws]
            return np.asarray(logs[1] - logs[0]) if len(logs) == 2 else np.stack(logs, axis=1)

    def describe(self) -> str:
        """In words."""
        return "the exact likelihood ratio"


@dataclass(frozen=True)
class Own:
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

    base: Guesser
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


def ngrams(text: str) -> NDArray[np.int64]:
    """The cells of a text's words, pairs of words and character trigrams, each once.

    >>> len(ngrams("to be"))  # to, be, to be, and "to ", "o b", " be"
    6
    """
    text = text[: 8 * LONGEST]
    words = text.lower().split()
    found = {*words, *(f"{a} {b}" for a, b in pairwise(words))}
    found |= {f"\0{text[i : i + 3]}" for i in range(min(len(text) - 2, LONGEST))}
    cells = {zlib.crc32(gram.encode("utf-8", "surrogatepass")) % HASHED for gram in found}
    return np.array(sorted(cells), dtype=np.int64)


def binned(values: Array, edges: Array) -> NDArray[Any]:
    """The bin of each value; NaN has a bin of its own, the last.

    >>> binned(np.array([-1.0, 0.0, 0.5, np.nan]), np.array([0.0, 1.0])).tolist()
    [0, 1, 1, 3]
    """
    if len(values) < MANY or len(edges) > FEW:
        bins = np.searchsorted(edges, values, side="right")
    else:  # counting the edges below gives the same, twice as fast as searching
        bins = np.zeros(len(values), dtype=np.uint8)
        for start in range(0, len(values), MANY):
            some, into = np.ascontiguousarray(values[start : start + MANY]), bins[start : start + MANY]
            for edge in edges:
                into += some >= edge
    bins[np.isnan(values)] = len(edges) + 1
    return bins


# Features for boosting: from outputs to a function that gives one column at a time.


def _coordinates(outputs: Outputs, width: int) -> Callable[[int], Array]:
    rows = outputs.matrix(width)

    def column(j: int) -> Array:
        if j < width:
            return rows[:, j]
        with np.errstate(invalid="ignore", over="ignore"):
            return np.asarray(rows[:, j - width + 1] - rows[:, j - width])

    return column


def _endings(outputs: Outputs, width: int) -> Callable[[int], Array]:
    """Of outputs that stop early: how many coordinates are numbers, and the last that is one."""
    rows = outputs.matrix(width)
    known = ~np.isnan(rows)
    last = width - 1 - known[:, ::-1].argmax(axis=1)
    return lambda j: known.sum(axis=1).astype(float) if j == 0 else rows[np.arange(len(rows)), last]


def _float_bits(outputs: Outputs, width: int) -> Callable[[int], Array]:
    """Of each coordinate the zeros it ends in, its exponent, where its last one stands, and its last three bits."""
    rows = outputs.matrix(width)

    def column(j: int) -> Array:
        bits = np.ascontiguousarray(rows[:, j // BIT_VIEWS]).view(np.uint64)
        exponent = (bits >> np.uint64(52) & np.uint64(0x7FF)).astype(float)
        lowest = np.maximum(bits & (~bits + np.uint64(1)), np.uint64(1))
        zeros = np.minimum(np.log2(lowest.astype(float)), 52.0)  # behind the last one of the mantissa
        # What a sum's rounding leaves is where the last one stands, whatever the exponent: exponent and zeros together.
        views = (zeros, exponent, exponent + zeros, (bits & np.uint64(7)).astype(float))
        return np.asarray(views[j % BIT_VIEWS])

    return column


def _lengths(outputs: Outputs, width: int) -> Callable[[int], Array]:
    """Characters or entries, and words."""
    return lambda j: outputs.lengths() if j == 0 else np.array([float(len(t.split())) for t in outputs.texts()])


FEATURES: dict[str, Callable[[Outputs, int], Callable[[int], Array]]] = {
    "coordinates": _coordinates,
    "where the output ends": _endings,
    FLOAT_BITS: _float_bits,
    "lengths": _lengths,
}


def feature_count(kind: str, width: int) -> int:
    """How many columns a kind of features has."""
    return {"coordinates": 2 * width - 1, FLOAT_BITS: BIT_VIEWS * width}.get(kind, 2)


# Categories: from outputs to one name each.


def _oddities(outputs: Outputs, inputs: tuple[Any, ...]) -> tuple[NDArray[np.int64], dict[int, str]]:
    """What is strange about each output: its type, NaN, infinities, and exact copies of an input or its coordinates.

    A code for each output, and what the codes mean.
    """
    if outputs.numbers is not None:
        flags = _flags(outputs.numbers, inputs)
        kind = outputs.kind
        return flags, {int(flag): kind + _flag_words(int(flag)) for flag in np.unique(flags)}
    names = []
    for item in outputs.items:
        alone = read([item])
        if alone.numbers is not None:
            names.append(alone.kind + _flag_words(int(_flags(alone.numbers, inputs)[0])))
        else:
            copies = [i for i, x in enumerate(inputs) if isinstance(x, str) and x == item]
            names.append(alone.kind + "".join(f", copies input {i}" for i in copies))
    known = {name: code for code, name in enumerate(dict.fromkeys(names))}
    return np.array([known[name] for name in names], dtype=np.int64), {code: name for name, code in known.items()}


def _flags(rows: Array, inputs: tuple[Any, ...]) -> NDArray[np.int64]:
    """1 for NaN, 2 for infinity, 4 << i for a coordinate that is input i's and no other input's."""
    flags = np.zeros(len(rows), dtype=np.int64)
    with np.errstate(invalid="ignore", over="ignore"):
        if not np.isfinite(rows.sum(axis=1)).all():
            flags += np.isnan(rows).any(axis=1) + 2 * np.isinf(rows).any(axis=1)
    vectors = [as_row(x) for x in inputs[:MOST_COPIED]]
    if any(v is None or len(v) != rows.shape[1] for v in vectors):
        return flags
    for i, vector in enumerate(vectors):
        telling = np.all([v != vector for j, v in enumerate(vectors) if j != i], axis=0)
        if telling.all():
            flags += (4 << i) * (rows == vector).any(axis=1)
        elif telling.any():
            flags += (4 << i) * (rows[:, telling] == vector[telling]).any(axis=1)  # type: ignore[index]
    return flags


def _flag_words(flag: int) -> str:
    words = [word for bit, word in ((1, "NaN"), (2, "infinite")) if flag & bit]
    words += [f"copies input {i}" for i in range(8) if flag & (4 << i)]
    return "".join(f", {word}" for word in words)


def as_row(x: Any) -> Array | None:
    """An input as a vector, if it is one."""
    numbers = read([x]).numbers
    return None if numbers is None else numbers[0]


def _values(outputs: Outputs, inputs: tuple[Any, ...]) -> tuple[NDArray[np.uint64], None]:
    return outputs.keys(), None


LABELS: dict[str, Callable[[Outputs, tuple[Any, ...]], tuple[NDArray[Any], dict[int, str] | None]]] = {
    "value": _values,
    "oddities": _oddities,
}
