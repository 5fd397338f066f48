"""Logistic regression on the coordinates of the output.

Implemented here because it is short, and importing a library for it would take a second.
"""

from collections.abc import Iterator, Sequence
from dataclasses import field
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
    where_apart,
)
from dpassay.audit.outputs.features import coordinate_name
from dpassay.audit.outputs.keys import distinct
from dpassay.audit.outputs.outputs import Array, Outputs, join
from dpassay.values import dataclass

WIDEST = 2048
NEWTON, NEWTON_AGAIN = 5, 2  # steps on the first runs, and on all of them
MARKED, SELDOM = 1 << 12, 0.02  # runs that show which coordinates may be 0; the share of zeros attributed to chance
FIRST_FITTED = 1 << 16  # runs of each input; also how many are processed at a time


@dataclass(frozen=True)
class LogisticRegression(Distinguisher):
    """Log-odds that are linear in the coordinates; with `missing`, NaN counts as 0 and has its own weight.

    With `nonzero`, so does any number other than 0, which may reveal more than the number itself.
    """

    weights: Array
    bias: float
    missing: Array = field(default_factory=lambda: np.zeros(0))
    nonzero: Array = field(default_factory=lambda: np.zeros(0))

    kind = "Linear"
    order = 50
    description = "a weighted sum of the output's coordinates"

    @classmethod
    def fit(cls, training: TrainingSet) -> Iterator[Self]:
        """Ridge-regularized, by Newton's method, on standardized coordinates.

        A coordinate that may be NaN, or is 0 or one of many numbers, has another column as its indicator.
        """
        width = training.width
        if not training.vectors or len(training.outputs) != 2 or not 2 <= width <= WIDEST:
            return
        limit = max(map(len, training.outputs)) if width <= 64 else max(200, 1_000_000 // width)
        sides = [outputs.matrix(width)[:limit] for outputs in training.outputs]
        holes = np.flatnonzero(sum(np.isnan(rows[:FIRST_FITTED]).sum(axis=0) for rows in sides))
        marks = np.flatnonzero(_zero_or_many(np.concatenate([rows[:MARKED] for rows in sides])))
        first = [_design(rows[:FIRST_FITTED], holes, marks) for rows in sides]
        both = np.concatenate(first)
        if len(both) < 20 or not all(map(len, first)):
            return
        centre, spread = both.mean(axis=0), both.std(axis=0)
        spread[spread == 0] = 1.0
        weights = np.zeros(len(centre) + 1)
        steps = [FIRST_FITTED] * (NEWTON if width <= 16 else 3 if width <= 64 else 1)
        steps += [limit] * NEWTON_AGAIN if max(map(len, sides)) > FIRST_FITTED else []
        for most in steps:
            slope, curvature = -weights, np.eye(len(weights))
            for label, rows in enumerate(sides):
                for start in range(0, min(len(rows), most), FIRST_FITTED):
                    design = _design(rows[start : start + FIRST_FITTED], holes, marks) if start else first[label]
                    design = np.column_stack([(design - centre) / spread, np.ones(len(design))])
                    chance = 1 / (1 + np.exp(-np.clip(design @ weights, -30, 30)))
                    slope += design.T @ (label - chance)
                    curvature += (design * (chance * (1 - chance) + 1e-6)[:, None]).T @ design
            weights = weights + np.linalg.solve(curvature, slope)
        scaled = weights[:-1] / spread
        if np.isfinite(scaled).all():
            missing, nonzero = (np.zeros(width if len(some) else 0) for some in (holes, marks))
            missing[holes], nonzero[marks] = scaled[width : width + len(holes)], scaled[width + len(holes) :]
            yield cls(scaled[:width], float(weights[-1] - centre @ scaled), missing, nonzero)

    @property
    def estimates_odds(self) -> bool:
        return True

    @property
    def by_features(self) -> bool:
        return True

    def describe_of(self, names: Sequence[str]) -> str:
        heaviest = np.argsort(-np.abs(self.weights), kind="stable")
        return f"a weighted sum of {shown_names([names[int(j)] for j in heaviest])}"

    def score(self, outputs: Outputs) -> Scores:
        """The log-odds. (The rounding of a matrix product would depend on the number of rows.)"""
        rows, sums = outputs.matrix(len(self.weights)), self.bias
        with np.errstate(invalid="ignore", over="ignore"):
            if len(self.missing):
                unknown = np.isnan(rows)
                sums = sums + np.einsum("ij,j->i", unknown, self.missing)
                rows = np.where(unknown, 0.0, rows)
            if len(self.nonzero):
                sums = sums + np.einsum("ij,j->i", rows != 0, self.nonzero)
            return np.asarray(np.einsum("ij,j->i", rows, self.weights) + sums)

    def weightiest(self, outputs: Sequence[Outputs]) -> list[str]:
        """The coordinates whose weight times spread is largest, by how high they are or by not being 0."""
        width = len(self.weights)
        rows = join(outputs).matrix(width)
        with np.errstate(all="ignore"):
            known = np.where(np.isfinite(rows), rows, 0.0)
            weights = self.weights * np.nan_to_num(known.std(axis=0))
        if len(self.nonzero):
            weights = np.concatenate([weights, self.nonzero * (known != 0).std(axis=0)])
        chosen = [int(j) for j in np.argsort(-np.abs(weights), kind="stable")[:WEIGHTIEST] if weights[j]]
        names = [coordinate_name(j % width, width) for j in chosen]
        sides = np.split(rows, [len(outputs[0])])
        said = []
        for j, name in zip(chosen, names, strict=True):
            first, second = (side[:, j % width] for side in sides)
            shares = (float(np.mean((side != 0) & ~np.isnan(side))) for side in (first, second))
            said.append(where_apart(name, first, second) if j < width else how_often(f"{name} not 0", *shares))
        return said

    def to_data(self) -> dict[str, Any]:
        data = super().to_data()
        return data if len(self.nonzero) else {name: value for name, value in data.items() if name != "nonzero"}

    @classmethod
    def _read(cls, data: dict[str, Any], at_hand: Sequence[Distinguisher]) -> Self:
        weights, missing, nonzero = (
            array(some, 1) for some in (data["weights"], data["missing"], data.get("nonzero", []))
        )
        fitting = all(len(some) in (0, len(weights)) for some in (missing, nonzero))
        require(len(weights) > 0 and fitting, "a weight for each coordinate")
        return cls(weights, float(data["bias"]), missing, nonzero)


def _zero_or_many(rows: Array) -> NDArray[np.bool_]:
    """Which coordinates are often 0 and else one of many numbers."""
    found = []
    for column in rows.T:
        others = column[(column != 0) & ~np.isnan(column)]
        zero = (column == 0).mean() if len(column) else 0.0
        found.append(zero > SELDOM and len(others) > SELDOM * len(column) and 2 * len(distinct(others)) > len(others))
    return np.array(found, dtype=bool)


def _design(rows: Array, holes: NDArray[Any], marks: NDArray[Any]) -> Array:
    """The coordinates with NaN as 0, then indicators of NaN and of nonzero numbers, without rows with infinities."""
    if len(holes) or len(marks):
        unknown = np.isnan(rows)
        known = np.where(unknown, 0.0, rows) if len(holes) else rows
        rows = np.column_stack([known, unknown[:, holes], known[:, marks] != 0])
    finite = np.isfinite(rows).all(axis=1)
    return rows if finite.all() else rows[finite]
