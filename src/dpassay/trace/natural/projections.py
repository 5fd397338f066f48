"""Weighted sums of the numbers of an output, in directions that separate the outputs of two inputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from dpassay.trace.natural.columns import Array, OutputColumn, RunOutputs
from dpassay.values import dataclass

MOST_WRITTEN = 4  # weights that are written out
SINGULAR = 1e-9  # an eigenvalue of correlations below this is 0
ROWS = 10  # outputs for each number, from which their covariance is taken


@dataclass(frozen=True, eq=False)
class Centres:
    """Centers and spreads of the noisy numbers of each input, as watched."""

    first: Array
    second: Array
    scale: Array
    gaussian: bool


@dataclass(frozen=True, eq=False)
class Projection:
    """A weighted sum of numbers, each kept within its limits."""

    columns: Sequence[OutputColumn]
    weights: Array
    low: Array
    high: Array

    def of_rows(self, rows: Array) -> Array:
        return np.asarray(np.clip(rows, self.low, self.high) @ self.weights)

    def __call__(self, outputs: RunOutputs) -> Array:
        rows = np.stack([column.of(outputs) for column in self.columns], axis=1)
        finite = np.isfinite(rows).all(axis=1)
        return np.where(finite, self.of_rows(np.where(finite[:, None], rows, 0.0)), np.nan)

    def __str__(self) -> str:
        used = [k for k, weight in enumerate(self.weights.tolist()) if weight]
        if len(used) > MOST_WRITTEN:
            ends = min(self.weights[used]), max(self.weights[used])
            return f"a sum of {len(used)} numbers with weights from {ends[0]:.3g} to {ends[1]:.3g}"
        parts = []
        for k in used:
            said = self.columns[k].said
            if np.isfinite(self.low[k]):
                said = f"clip({said}, {self.low[k]:.6g}, {self.high[k]:.6g})"
            size, minus = f"{abs(self.weights[k]):.3g}", "−" if self.weights[k] < 0 else ""
            parts.append(minus + (said if size == "1" else f"{size}·{said}"))
        return " + ".join(parts).replace("+ −", "− ") or "0"


def likelihood_ratio(columns: Sequence[OutputColumn], centres: Centres) -> Projection:
    """The logarithm of the ratio of the densities, up to a constant."""
    gap, unbounded = centres.first - centres.second, np.full(centres.first.shape, np.inf)
    scale = np.where(centres.scale > 0, centres.scale, np.inf)
    if centres.gaussian:
        return Projection(columns, gap / scale**2, -unbounded, unbounded)
    low, high = np.minimum(centres.first, centres.second), np.maximum(centres.first, centres.second)
    return Projection(columns, 2 * np.sign(gap) / scale, low, high)


def projections(columns: Sequence[OutputColumn], tables: Sequence[Array]) -> Iterator[Projection]:
    """By medians, which rare large numbers do not move; kept between the two; by covariance; without any noise; by
    means, for 0 and 1."""
    medians = [np.median(table, axis=0) for table in tables]
    spread = np.mean(
        [np.median(np.abs(table - middle), axis=0) for table, middle in zip(tables, medians, strict=True)], axis=0
    )
    apart, means = medians[0] - medians[1], [table.mean(axis=0) for table in tables]
    low, high = np.minimum(*medians), np.maximum(*medians)
    unbounded = np.full(low.shape, np.inf)
    yield Projection(columns, _ratio(apart, spread**2), -unbounded, unbounded)
    yield Projection(columns, _ratio(np.sign(apart), spread), low, high)
    if 2 <= len(columns) <= min(map(len, tables)) / ROWS:  # Fisher's discriminant: noise of different numbers may agree
        together = np.mean([np.cov(table, rowvar=False) for table in tables], axis=0)
        if np.isfinite(together).all():
            weights = np.linalg.pinv(together, rcond=1e-9, hermitian=True) @ apart
            yield Projection(columns, _ratio(weights, np.ones(len(weights))), -unbounded, unbounded)
            if (weights := _without_noise(together, means[0] - means[1])) is not None:
                yield Projection(columns, _ratio(weights, np.ones(len(weights))), -unbounded, unbounded)
    varies = np.mean([table.var(axis=0) for table in tables], axis=0)
    few = (spread == 0) & (varies > 0)  # values: with more of them, the means of some runs are unreliable
    if few.any():
        yield Projection(columns, _ratio(np.where(few, means[0] - means[1], 0.0), varies), -unbounded, unbounded)


def _without_noise(together: Array, apart: Array) -> Array | None:
    """Weights of a sum that is constant for each input, but not the same; the largest is 1 or −1."""
    scale = np.sqrt(np.diag(together))
    varied = np.flatnonzero(scale > 0)  # constants are events of their own
    if varied.size < 2:
        return None
    scale = scale[varied]
    sizes, directions = np.linalg.eigh(together[np.ix_(varied, varied)] / np.outer(scale, scale))
    still = directions[:, sizes < SINGULAR]
    found = still @ (still.T @ (apart[varied] / scale)) / scale
    most = np.abs(found).max(initial=0.0)
    if most * np.abs(apart).max() < SINGULAR:
        return None
    weights = np.zeros(len(apart))
    weights[varied] = np.where(np.abs(found) < SINGULAR * most, 0.0, found / most)
    return np.asarray(weights * np.sign(weights[np.flatnonzero(weights)[0]]))


def _ratio(one: Array, by: Array) -> Array:
    """The ratio to three digits, as it is printed; 0 for a division by 0."""
    found = np.divide(one, by, out=np.zeros_like(by), where=by > 0)
    return np.array([float(f"{value:.3g}") for value in found.tolist()])
