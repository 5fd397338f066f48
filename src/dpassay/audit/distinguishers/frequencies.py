"""How often each category of outputs came from each input."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dpassay.audit.distinguishers.base import (
    WEIGHTIEST,
    Distinguisher,
    Scores,
    TrainingSet,
    array,
    how_often,
    require,
    shown_names,
)
from dpassay.audit.outputs.features import anomalies
from dpassay.audit.outputs.keys import distinct
from dpassay.audit.outputs.outputs import Array, Outputs, join, part
from dpassay.values import dataclass

VALUES, ANOMALIES = "value", "oddities"  # their names in files
MOST_VALUES = 4096  # distinguished
LITTLE = 0.1  # log-odds too small to mention


@dataclass(frozen=True)
class Frequencies(Distinguisher):
    """Log-frequencies of categories. A category is the output itself, or what is anomalous about it."""

    of: str  # VALUES or ANOMALIES
    names: tuple[Any, ...]
    logs: Array  # one row per input, one column per name
    inputs: tuple[Any, ...] = ()

    kind = "Counted"
    order = 20
    per_input = "logs"

    @classmethod
    def fit(cls, training: TrainingSet) -> Iterator[Self]:
        """For structured outputs, single leaves come first: `fit_all` asks for whole outputs last."""
        if not training.structured:
            yield from cls.of_values(training)

    @classmethod
    def of_values(cls, training: TrainingSet) -> Iterator[Self]:
        """How often each output occurred, if outputs repeat."""
        if hardly_repeat(training.outputs):
            return
        keys = [outputs.keys() for outputs in training.outputs]
        names, counts = np.unique(np.concatenate(keys), return_counts=True)
        if len(names) > most_distinct(training.outputs):
            return
        if len(names) > MOST_VALUES:
            names = np.sort(names[np.argsort(-counts, kind="stable")[:MOST_VALUES]])
        table = np.array([_histogram(some, names) for some in keys], dtype=float)
        logs = _log_frequencies(table, training)
        if len(keys) == 2:
            # Runs at equal positions used the same random numbers, as far as the mechanism takes them from the
            # generator: equal outputs cancel, and the variance of a difference comes from the others.
            paired = len(keys[0]) == len(keys[1])
            shared = _histogram(keys[0][keys[0] == keys[1]], names) if paired else np.zeros(len(names))
            logs = _shrunk(table, logs[1] - logs[0], shared)
        yield cls(VALUES, tuple(names.tolist()), logs, training.inputs)

    @classmethod
    def of_anomalies(cls, training: TrainingSet) -> Self:
        """What is anomalous about the outputs; if nothing is, one category per type."""
        found = [anomalies(outputs, training.inputs) for outputs in training.outputs]
        names = tuple(dict.fromkeys(name for _, meaning in found for name in meaning.values()))
        table = np.zeros((len(found), len(names)))
        for row, (codes, meaning) in zip(table, found, strict=True):
            for code, name in meaning.items():
                row[names.index(name)] += np.count_nonzero(codes == code)
        return cls(ANOMALIES, names, _log_frequencies(table, training), training.inputs)

    def score(self, outputs: Outputs) -> Scores:
        """Differences of log-frequencies; NaN for unseen categories."""
        if self.of == VALUES:
            where = _positions(outputs.keys(), np.array(self.names, dtype=np.uint64))
        else:
            codes, meaning = anomalies(outputs, self.inputs)
            index = {name: i for i, name in enumerate(self.names)}
            where = np.zeros(len(codes), dtype=np.int64)
            for code, name in meaning.items():
                where[codes == code] = index.get(name, -1)
        logs = np.where(where >= 0, self.logs[:, where], np.nan)
        return logs[1] - logs[0] if len(logs) == 2 else logs.T

    @property
    def estimates_odds(self) -> bool:
        return True

    @property
    def by_features(self) -> bool:
        return True

    def describe(self) -> str:
        if self.of == VALUES:
            return "which value the output has"
        return "what sort of output it is: " + "; ".join(in_words(str(name)) for name in self.names[:4])

    def weightiest(self, outputs: Sequence[Outputs]) -> list[str]:
        """The categories that weigh most, frequent ones first; values only if these outputs have them."""
        if len(self.logs) != 2:
            return []
        log_odds = self.logs[1] - self.logs[0]
        if self.of != VALUES:
            order = np.argsort(-np.abs(log_odds), kind="stable")[:WEIGHTIEST]
            found = [anomalies(some, self.inputs) for some in outputs]
            often = [{said: float(np.mean(codes == code)) for code, said in names.items()} for codes, names in found]
            telling = [str(self.names[i]) for i in order if abs(log_odds[i]) > LITTLE]
            return [how_often(in_words(name), *(of.get(name, 0.0) for of in often)) for name in telling]
        return self.heaviest_values(outputs, lambda row: repr(row.tolist() if isinstance(row, np.ndarray) else row))

    def heaviest_values(self, outputs: Sequence[Outputs], shown: Callable[[Any], str]) -> list[str]:
        """The values that weigh most, as they are shown, and how often each input gives them."""
        seen, log_odds = join(outputs), self.logs[1] - self.logs[0]
        where = _positions(seen.keys(), np.array(self.names, dtype=np.uint64))
        side = np.repeat([0, 1], [len(some) for some in outputs])
        of_each = [np.bincount(where[(where >= 0) & (side == k)], minlength=len(self.names)) for k in (0, 1)]
        shares = [(of + 0.5) / (len(some) + 1) for of, some in zip(of_each, outputs, strict=True)]
        telling = np.abs(np.log(shares[1] / shares[0])) > LITTLE
        weights, rows = np.where(telling, sum(of_each) * np.abs(log_odds), 0.0), seen.rows()
        heavy = [int(i) for i in np.argsort(-weights, kind="stable")[:WEIGHTIEST] if weights[i] > 0]
        firsts = [rows[int(np.flatnonzero(where == i)[0])] for i in heavy]
        words = list(map(shown, firsts))
        rates = [[float(of[i]) / max(1, len(some)) for of, some in zip(of_each, outputs, strict=True)] for i in heavy]
        return [how_often(value, *both) for value, both in zip(words, rates, strict=True)]

    def describe_of(self, names: Sequence[str]) -> str:
        both = f" with {shown_names(names[1:])}" if len(names) > 1 else ""
        return f"which value {shown_names(names[:1])}{both} has"

    @classmethod
    def _read(cls, data: dict[str, Any], at_hand: Sequence[Distinguisher]) -> Self:
        of, names, logs = str(data["of"]), tuple(data["names"]), array(data["logs"], 2)
        require(of in (VALUES, ANOMALIES), f"to count one of {VALUES}, {ANOMALIES}")
        if of == VALUES:
            require(all(type(name) is int and 0 <= name < 1 << 64 for name in names), "names that are 64-bit numbers")
            require(list(names) == sorted(names), "names in order")
        else:
            require(all(isinstance(name, str) for name in names), "names that are texts")
        require(len(names) > 0 and logs.shape[0] >= 2 and logs.shape[1] == len(names), "a column for each name")
        return cls(of, names, logs, tuple(data["inputs"]))


def most_distinct(outputs: Sequence[Outputs]) -> int:
    """How many distinct values there may be for outputs to count as repeating."""
    return max(8, sum(map(len, outputs)) // 4)


def hardly_repeat(outputs: Sequence[Outputs], shown: Callable[[Outputs], Outputs] = lambda some: some) -> bool:
    """Whether the first outputs, in some view, have too many distinct values already; the others need no look."""
    if all(some.numbers is not None for some in outputs):
        return False
    most = most_distinct(outputs)
    first = [shown(part(some, 0, 2 + most * 5 // 8)) for some in outputs]
    known = [one for some in first for one in some.apart]
    if len(known) == sum(map(len, first)):  # what finite values show takes a fraction of the time of keys
        finite = [(one.form, *one.values) for one in known if one is not None and one.regular]
        if len(set(finite)) > most:
            return True
    return len(distinct(np.concatenate([some.keys() for some in first]))) > most


def in_words(name: str) -> str:
    """What is anomalous, with inputs counted from one."""
    return name.replace(", copies input 0", " equal to the first input").replace(
        ", copies input 1", " equal to the second"
    )


def _positions(keys: NDArray[Any], names: NDArray[Any]) -> NDArray[np.int64]:
    """The index of each key among the sorted names; -1 if it is absent."""
    where = np.minimum(np.searchsorted(names, keys), len(names) - 1)
    return np.where(names[where] == keys, where, -1)


def _histogram(keys: NDArray[Any], names: NDArray[Any]) -> NDArray[Any]:
    where = _positions(keys, names)
    return np.bincount(where[where >= 0], minlength=len(names))


def _log_frequencies(table: Array, training: TrainingSet) -> Array:
    totals = np.array([max(1, len(outputs)) for outputs in training.outputs], dtype=float)
    return np.asarray(np.log((table + 0.5) / (totals[:, None] + 1)))


def _shrunk(table: Array, scores: Array, shared: NDArray[Any]) -> Array:
    """Shrink each score by the chance part of its spread, because rare categories score mostly by chance."""
    chance = (1 / (table + 0.5)).sum(axis=0) - 2 * shared / (table + 0.5).prod(axis=0)
    weight = table.sum(axis=0)
    real = max(1e-4, float((weight * (scores**2 - chance)).sum() / weight.sum()))
    shrunk = scores * real / (real + chance)
    return np.stack([-shrunk / 2, shrunk / 2])
