"""Distances and gaps between the rows of two blocks, by numpy.

The gap of two rows of scores is the largest difference a − b over all columns, and the smallest. For all pairs of rows
this is a matrix product with maxima in place of sums and differences in place of products: the inner loop of the search
for the worst pair of words. `numba_word_gaps` has the same functions, and `triton_word_gaps` does the whole search on a
GPU.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
METRICS = ("l2", "l1", "linf", "angle")
AT_ONCE = 1 << 22  # numbers held at a time


def gaps(a: NDArray[Any], b: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """The largest and the smallest a[i, k] − b[j, k] over k, for all i and j.

    >>> high, low = gaps(np.array([[1.0, 5.0]]), np.array([[0.0, 7.0], [1.0, 1.0]]))
    >>> high.tolist(), low.tolist()
    ([[1.0, 4.0]], [[-2.0, 0.0]])
    """
    high, low = (np.empty((len(a), len(b)), a.dtype) for _ in range(2))
    step = max(1, AT_ONCE // b.size)
    for i in range(0, len(a), step):
        difference = a[i : i + step, None, :] - b[None, :, :]
        difference.max(axis=2, out=high[i : i + step])
        difference.min(axis=2, out=low[i : i + step])
    return high, low


def distances(a: Array, b: Array, metric: str) -> Array:
    """The distance of each row of a from each row of b: l2, l1, linf, or the angle between them.

    It is computed from differences, never from scalar products, so that small distances stay accurate.

    >>> distances(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]]), "l2").tolist()
    [[5.0]]
    >>> distances(np.array([[1.0, 0.0]]), np.array([[0.0, 4.0]]), "angle").tolist() == [[np.pi / 2]]
    True
    """
    if metric == "angle":
        u, v = units(a), units(b)
        return angles(distances(u, v, "l2"), distances(u, -v, "l2"))
    total = np.zeros((len(a), len(b)))
    for x, y in zip(a.T, b.T, strict=True):
        difference = x[:, None] - y[None, :]
        if metric == "l2":
            total += difference * difference
        elif metric == "l1":
            total += np.abs(difference)
        else:
            np.maximum(total, np.abs(difference), out=total)
    return np.sqrt(total) if metric == "l2" else total


def units(rows: Array) -> Array:
    """Rows scaled to length 1."""
    found: Array = rows / np.sqrt((rows * rows).sum(axis=1, keepdims=True))
    return found


def angles(apart: Array, opposite: Array) -> Array:
    """The angles between unit vectors, from the lengths of their differences and of their sums."""
    return 2 * np.arctan2(apart, opposite)


def distance_error(dim: int, metric: str) -> tuple[float, float]:
    """How far a computed distance d may be from the true one: r·d + a. docs/proofs/vocabulary.md, point 5.

    >>> relative, absolute = distance_error(300, "l2")
    >>> relative < 1e-13, absolute < 1e-99
    (True, True)
    """
    unit = 2.0**-53
    if metric == "angle":
        return 16 * unit, (4 * dim + 64) * unit
    return {"l2": dim / 2 + 8, "l1": dim + 4, "linf": 4}[metric] * unit, 1e-100
