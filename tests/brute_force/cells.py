"""The laws of all outputs on common cells: their masses, and their densities where the output shows the value.

From the masses of cells, Σ max(0, P(cell) − e^ε Q(cell)) is never above the true δ(ε) of a pair, and comes close to it
as cells become small.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from brute_force.behind import Behind
from brute_force.laws import Array, Noise


@dataclass(frozen=True)
class Family:
    """Pairs of data sets: row i is the pair of mixtures of the noise around p[i, k] and q[i, k]."""

    p: Array  # pairs, components, coordinates
    weights_p: Array
    q: Array
    weights_q: Array
    real: bool = True  # every pair is of data sets; otherwise the pairs are at least as far apart as any data sets
    hull: Callable[[Array], Array] | None = None  # what averages of the rows' δ can be, where only those bound it
    nudged: Callable[[Array, float], Family] | None = None  # neighbours of some rows, for a search nearby

    def rows(self, which: Array) -> Family:
        """Some of the pairs."""
        near = self.nudged
        again = None if near is None else lambda some, share: near(which[some], share)
        return Family(self.p[which], self.weights_p, self.q[which], self.weights_q, self.real, None, again)


@dataclass(frozen=True)
class Columns:
    """Of each value (row) the mass of each cell, and what decides the ratio of two laws: densities and atoms."""

    masses: Array
    ratios: Array


def _merged(masses: Array, groups: list[object]) -> tuple[Array, Array]:
    """Columns of one group added up; first those without one."""
    own = np.array([group is None for group in groups])
    names = {name: i for i, name in enumerate(dict.fromkeys(group for group in groups if group is not None))}
    added = np.zeros((masses.shape[0], len(names)))
    for i, group in enumerate(groups):
        if group is not None:
            added[:, names[group]] += masses[:, i]
    return masses[:, own], added


def _atoms(noise: Noise, values: Array) -> tuple[Array, Array]:
    """Single outputs and their probabilities; of whole numbers without end only those that are near to all values."""
    t, weights, reach = noise.atoms, noise.weights, noise.reach
    if noise.logarithms is not None:
        reach = float(np.ceil(noise.reach + np.ptp(values)))
        t = np.arange(-reach, reach + 1)
        with np.errstate(under="ignore"):
            weights = np.exp(noise.logarithms(t))
    points = np.round(values[:, None] + t, 9)
    unique, where = np.unique(points, return_inverse=True)
    at = np.zeros((len(values), len(unique)))
    np.add.at(at, (np.arange(len(values))[:, None], where.reshape(points.shape)), weights[None])
    if noise.logarithms is not None:
        inside = (unique >= values.max() - reach) & (unique <= values.min() + reach)
        unique, at = unique[inside], at[:, inside]
    return unique, at


def columns(noise: Noise, behind: Behind, values: Array, fineness: int, most_kinks: int) -> Columns:
    """Cells of one coordinate for values that the noise is added to."""
    x = values[:, None]
    low, high = values.min() - noise.reach, values.max() + noise.reach
    if noise.limits:
        low, high = noise.limits
    span = (values.min(), values.max()) if not noise.limits else (low, high)
    grids = [np.linspace(low, high, fineness), np.linspace(*span, fineness)]
    nearest = noise.kinks[np.argsort(np.abs(noise.kinks), kind="stable")][: most_kinks // len(values)]
    kinks = (x + nearest).ravel()
    cuts = np.array(behind.cuts)
    inner = np.concatenate([*grids, kinks, np.array(noise.limits)])
    inner = inner[(inner >= low - 1e-9) & (inner <= high + 1e-9)]
    ends = np.unique(np.round(np.concatenate([inner, cuts]), 11))
    a, b = np.concatenate([[-np.inf], ends]), np.concatenate([ends, [np.inf]])
    middle = np.where(np.isinf(a), ends[0] - 1, np.where(np.isinf(b), ends[-1] + 1, (a + b) / 2))
    exact = np.round(cuts, 11)
    piece = np.searchsorted(exact, middle)
    label = [behind.pieces[i].value for i in piece]
    with np.errstate(under="ignore"):
        masses = np.maximum(noise.mass(x, a[None], b[None]), 0)
        free = np.array([value is None for value in label])
        width = np.where(np.isinf(b - a), 1, b - a)
        probes = np.concatenate(
            [
                middle[free],
                (np.where(np.isinf(a), b - 1e-7, a + 1e-7 * width))[free],
                (np.where(np.isinf(b), a + 1e-7, b - 1e-7 * width))[free],
            ]
        )
        if noise.jump is not None:  # values are rounded, so what is between two jumps that nearly meet is not there
            probes = probes[(noise.jump(probes[None] - x) > 2e-8).all(0)]
        densities = noise.density(x, probes[None])
    if noise.discrete:
        unique, at = _atoms(noise, values)
        on_cut = np.isin(unique, np.round(cuts, 9))
        inside = np.searchsorted(np.round(cuts, 9), unique)
        label = label + [
            behind.at(y) if cut else behind.pieces[i].value
            for y, cut, i in zip(unique.tolist(), on_cut.tolist(), inside.tolist(), strict=True)
        ]
        free = np.concatenate([free, np.zeros(len(unique), bool)])
        masses = np.concatenate([masses, at], axis=1)
    own, added = _merged(masses, label)
    lost = np.full((len(values), 1), noise.lost)
    alone = masses[:, ~free & np.array([v is None for v in label])]  # atoms that show the value
    return Columns(np.concatenate([own, added, lost], axis=1), np.concatenate([densities, added, alone, lost], axis=1))


def mixed(parts: list[Array], where: Array, weights: Array) -> Array:
    """Mixtures of products: where[i, k, j] is the row of part j."""
    total = None
    for k in range(where.shape[1]):
        row = parts[0][where[:, k, 0]]
        for j in range(1, where.shape[2]):
            row = (row[:, :, None] * parts[j][where[:, k, j]][:, None, :]).reshape(len(row), -1)
        total = weights[k] * row if total is None else total + weights[k] * row
    assert total is not None
    return total
