"""A boosted additive model: a table of scores over the bins of each feature, and of some pairs of features.

Implemented here because it must be fast on a hundred runs, have fine bins in the tails, and be stored as plain data.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import field
from itertools import combinations, pairwise
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpassay.audit.distinguishers.base import (
    WEIGHTIEST,
    Distinguisher,
    Scores,
    TrainingSet,
    array,
    require,
    shown_names,
    where_apart,
)
from dpassay.audit.outputs.features import (
    FEATURES,
    FLOAT_BITS,
    NOT_ZERO,
    binned,
    feature_count,
    feature_name,
    features_examined,
)
from dpassay.audit.outputs.keys import distinct
from dpassay.audit.outputs.outputs import Array, Outputs, join, part
from dpassay.values import dataclass

Columns: TypeAlias = tuple[int, ...]  # the features of a table: one or two

MOST_BITS = 8  # coordinates whose bits are used
MOST_COORDINATES = 128  # used one by one
MOST_FITTED = 1 << 19  # runs used for boosting
PASSES = 4
QUANTILED = 1 << 14  # values that determine the bins
# Where the bins of a feature end: fine in the tails, where the largest losses hide.
_TAIL = np.geomspace(2e-4, 0.03, 6)
QUANTILES = np.concatenate([_TAIL, np.linspace(0.05, 0.95, 25), 1 - _TAIL[::-1]])
BINS = len(QUANTILES) + 2  # one more, and one for NaN
# Two features together have few runs per cell: their bins are merged in threes, except the one for NaN.
COARSE_BINS = np.append(np.arange(BINS - 1) // 3 * 3, BINS - 1).astype(np.int32)


@dataclass(frozen=True)
class BoostedTables(Distinguisher):
    """The sum of one entry of each table: the entry of the bins in which the table's features fall."""

    features: str  # one of FEATURES
    width: int
    columns: tuple[Columns, ...]
    edges: dict[int, Array]
    tables: tuple[Array, ...]

    kind = "Boosted"
    order = 60

    @classmethod
    def fit(cls, training: TrainingSet) -> Iterator[Self]:
        """One for each kind of features that the outputs have."""
        if len(training.outputs) != 2:
            return
        width = training.width
        some = [part(outputs, 0, MOST_FITTED // 2) for outputs in training.outputs]
        if width > 1 and any(np.isnan(outputs.matrix(width)[:1000]).any() for outputs in some):
            yield from cls._fit_features("where the output ends", some, width)
        if width > 2 and any(_partly_zero(outputs.matrix(width)[:1000]) for outputs in some):
            yield from cls._fit_features(NOT_ZERO, some, width)
        if width and not (training.vectors and width > MOST_COORDINATES):  # `OnLeaves` chooses some
            yield from cls._fit_features("coordinates", some, min(width, MOST_COORDINATES))
        if width and training.bits == "also":
            yield from cls._fit_features(FLOAT_BITS, some, min(width, MOST_BITS))
        if not training.vectors:
            yield from cls._fit_features("lengths", some, 1)

    @classmethod
    def fit_float_bits(cls, training: TrainingSet) -> Iterator[Self]:
        """Only on the bit patterns of floats."""
        return cls._fit_features(FLOAT_BITS, training.outputs, min(training.width, MOST_BITS))

    @classmethod
    def _fit_features(cls, features: str, outputs: Sequence[Outputs], width: int) -> Iterator[Self]:
        views = [FEATURES[features](some, width) for some in outputs]
        edges, bins, examined = [], [], features_examined(features, outputs, width)
        for j in examined:
            column = np.concatenate([view(j) for view in views])
            finite = column[np.isfinite(column)]
            some = finite[:: 1 + len(finite) // QUANTILED]
            cuts = distinct(np.quantile(some, QUANTILES, method="nearest")) if len(finite) else finite
            edges.append(cuts)
            bins.append(binned(column, cuts).astype(np.uint8))
        labels = np.repeat([0.0, 1.0], [len(some) for some in outputs])
        if len(labels) < 20 or not bins:
            return
        tables = _Boosting(bins, labels).fit()
        used = sorted({j for columns in tables for j in columns})
        if used:
            columns = tuple(tuple(examined[j] for j in some) for some in tables)
            yield cls(features, width, columns, {examined[j]: edges[j] for j in used}, tuple(tables.values()))

    def score(self, outputs: Outputs) -> Scores:
        view = FEATURES[self.features](outputs, self.width)
        bins = {j: binned(view(j), edges) for j, edges in self.edges.items()}
        total = np.zeros(len(outputs))
        for columns, table in zip(self.columns, self.tables, strict=True):
            total += table[tuple(bins[j] for j in columns)]
        return total

    @property
    def estimates_odds(self) -> bool:
        return True

    @property
    def by_features(self) -> bool:
        return True

    def _heaviest(self) -> list[int]:
        """Its features, those with the most varied tables first."""
        order = np.argsort([-float(np.std(table)) for table in self.tables], kind="stable")
        return list(dict.fromkeys(j for i in order for j in self.columns[i]))

    def describe(self) -> str:
        return shown_names([feature_name(self.features, j, self.width) for j in self._heaviest()])

    def describe_of(self, names: Sequence[str]) -> str:
        if self.features == "coordinates":
            steps = [f"{b} - {a}" for a, b in pairwise(names)]
            return shown_names([[*names[: self.width], *steps][j] for j in self._heaviest()])
        return f"{self.describe()} of {shown_names(names)}"

    def weightiest(self, outputs: Sequence[Outputs]) -> list[str]:
        """The tables whose entries vary most from output to output."""
        view = FEATURES[self.features](join(outputs), self.width)
        bins = {j: binned(view(j), edges) for j, edges in self.edges.items()}
        spreads = [
            float(np.std(table[tuple(bins[j] for j in columns)]))
            for columns, table in zip(self.columns, self.tables, strict=True)
        ]
        chosen = [self.columns[i] for i in np.argsort(-np.array(spreads), kind="stable")[:WEIGHTIEST] if spreads[i] > 0]
        cut = len(outputs[0])
        names = [[feature_name(self.features, j, self.width) for j in columns] for columns in chosen]
        return [
            where_apart(name[0], view(columns[0])[:cut], view(columns[0])[cut:])
            if len(columns) == 1
            else " with ".join(name)
            for name, columns in zip(names, chosen, strict=True)
        ]

    @classmethod
    def _read(cls, data: dict[str, Any], at_hand: Sequence[Distinguisher]) -> Self:
        features, width = str(data["features"]), int(data["width"])
        require(features in FEATURES and width > 0, f"features that are one of {', '.join(FEATURES)}")
        edges = {int(j): array(cuts, 1) for j, cuts in data["edges"].items()}
        columns = tuple(tuple(int(j) for j in c) for c in data["columns"])
        tables = tuple(array(table, len(c)) for table, c in zip(data["tables"], columns, strict=True))
        require(all(0 <= j < feature_count(features, width) for j in edges), "edges of features that it has")
        bins = {j: len(cuts) + 2 for j, cuts in edges.items()}
        fits = (np.all(np.array(t.shape) >= [bins[j] for j in c]) for c, t in zip(columns, tables, strict=True))
        require(all(columns) and all(fits), "tables that have an entry for each bin")
        return cls(features, width, columns, edges, tables)


@dataclass
class _Boosting:
    """Boosting in progress: the tables so far, and the resulting score, residual and curvature of each run."""

    bins: Sequence[NDArray[np.uint8]]  # one array per feature
    labels: Array
    tables: dict[Columns, Array] = field(default_factory=dict)
    noises: dict[Columns, Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.scores = np.zeros(len(self.labels))
        self.residuals, self.curvatures = self.labels - 0.5, np.full(len(self.labels), 0.25)
        self.pairs = len(self.labels) // 2 if 2 * self.labels.sum() == len(self.labels) else 0

    def fit(self) -> dict[Columns, Array]:
        """Tables for features more informative than chance, then for pairs that are more informative together."""
        single = self.informative([(j,) for j in range(len(self.bins))])
        self.boost(single)
        first = [0, 1] if len(self.bins) == 2 else [columns[0] for columns in single[:4]]
        self.boost(self.informative(list(combinations(sorted(first), 2)))[:2])
        return self.tables

    def cells(self, columns: Columns) -> NDArray[Any]:
        """The cell of a table that each run falls into."""
        if len(columns) == 1:
            return self.bins[columns[0]]
        first, second = (COARSE_BINS[self.bins[j]] for j in columns)
        return first * BINS + second

    def step(self, columns: Columns, cells: NDArray[Any]) -> tuple[Array, float, float]:
        """A Newton step in all cells of a table, how much it gains beyond chance, and how much chance may gain."""
        size = BINS ** len(columns)
        slope = np.bincount(cells, self.residuals, minlength=size)
        curvature = np.bincount(cells, self.curvatures, minlength=size)
        busy, noise = curvature > 0, self.noises.get(columns)
        if noise is None:
            noise = self.noises[columns] = _noise_share(cells, self.pairs, size)
        beyond = float((slope[busy] ** 2 / curvature[busy] - noise[busy]).sum())  # 0 on average by chance alone
        doubt = 1.5 * math.sqrt(2 * float((noise[busy] ** 2).sum()))
        variance = max(beyond / curvature.sum(), 1e-6)  # of the cells' true values: if it is small, so are the steps
        return 0.7 * slope / (curvature + noise / variance), beyond, doubt

    def informative(self, proposed: Sequence[Columns]) -> list[Columns]:
        """The tables that gain more than chance does, best first."""
        steps = {columns: self.step(columns, self.cells(columns)) for columns in proposed}
        gains = {columns: beyond - doubt for columns, (_, beyond, doubt) in steps.items()}
        return [columns for columns in sorted(gains, key=lambda c: -gains[c]) if gains[columns] > 0]

    def boost(self, chosen: Sequence[Columns]) -> None:
        """Some passes over these tables, with a step in each."""
        for columns in [*chosen] * PASSES:
            cells = self.cells(columns)
            move, beyond, _ = self.step(columns, cells)
            if beyond <= 0:
                continue  # this table adds nothing to those so far
            table = self.tables.setdefault(columns, np.zeros((BINS,) * len(columns)))
            self.scores = self.scores + move[cells]
            chance = 1 / (1 + np.exp(-self.scores))
            self.residuals, self.curvatures = self.labels - chance, chance * (1 - chance)
            full = move.reshape(table.shape)
            table += full if len(columns) == 1 else full[np.ix_(COARSE_BINS, COARSE_BINS)]


def _partly_zero(rows: Array) -> bool:
    """Whether there are both zeros and nonzero numbers."""
    known = rows[~np.isnan(rows)]
    return len(known) > 0 and 0.02 < float((known == 0).mean()) < 0.98


def _noise_share(cells: NDArray[Any], pairs: int, size: int) -> Array:
    """The variance of each cell's slope, as a fraction of its variance if all runs are independent.

    Two runs with the same random numbers, one for each input, cancel if they are in the same cell. What remains are the
    runs whose counterpart is elsewhere. With `pairs` of 0, no runs are paired.
    """
    if not pairs:
        return np.ones(size)
    moved = cells[:pairs] != cells[pairs:]
    apart = np.bincount(cells[:pairs][moved], minlength=size) + np.bincount(cells[pairs:][moved], minlength=size)
    return np.asarray((apart + 1) / (np.bincount(cells, minlength=size) + 1))


def uses_float_bits(data: Any) -> bool:
    """Whether a distinguisher's data form, or one inside it, examines the bit patterns of floats."""
    if isinstance(data, dict):
        return data.get("features") == FLOAT_BITS or any(map(uses_float_bits, data.values()))
    return isinstance(data, list | tuple) and any(map(uses_float_bits, data))
