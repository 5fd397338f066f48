"""How many random pairs of vectors lie farther apart than 2C in l1, clipped in l2 or, as a control, in l1.

All lengths are in units of C. A pair has 2n words of `philox`: n for its first vector, n for its second.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpassay.compute.kernels.normal_quantile import normal_quantile
from dpassay.compute.kernels.numpy_kernels import CELLS
from dpassay.compute.kernels.philox import RUNS, Key, Words, words

Array: TypeAlias = NDArray[np.float64]
UNIFORM, NORMAL = "uniform", "normal"
# Vectors on the l1 sphere are 2C apart up to rounding if none of their signs agree.
ROUNDING = 1e-12


def count_beyond(key: Key, start: int, pairs: int, dim: int, shape: str, clip: float) -> tuple[int, int]:
    """The number of pairs whose l1 distance exceeds 2C after l2 clipping at C, and the number after l1 clipping.

    Coordinates are uniform on (-C, C), or normal with variance 0.1 C. The first pair must be a multiple of 16.

    >>> beyond, control = count_beyond((1, 2), 0, 1000, 8, "uniform", 10.0)
    >>> 0 < beyond < 1000, control
    (True, 0)
    """
    beyond = control = 0
    rows = max(RUNS, CELLS // (2 * dim) // RUNS * RUNS)
    for first in range(start, start + pairs, rows):
        size = min(rows, start + pairs - first)
        drawn = coordinates(words(key, first, size, range(2 * dim)), shape, clip).T
        x, y = drawn[:dim], drawn[dim:]
        a, b = (1 / np.maximum(1, np.sqrt(_sums(v * v))) for v in (x, y))
        p, q = (1 / np.maximum(1, _sums(np.abs(v))) for v in (x, y))
        beyond += int(np.count_nonzero(_sums(np.abs(a * x - b * y)) > 2))
        control += int(np.count_nonzero(_sums(np.abs(p * x - q * y)) > 2 * (1 + ROUNDING)))
    return beyond, control


def coordinates(words: Words, shape: str, clip: float) -> Array:
    """What each word means, in units of C.

    >>> ends = np.array([0, 1 << 31, (1 << 32) - 1], dtype=np.uint32)
    >>> coordinates(ends, "uniform", 10.0).round(6).tolist(), coordinates(ends, "normal", 10.0).round(2).tolist()
    ([-1.0, 0.0, 1.0], [-0.63, 0.0, 0.63])
    """
    u = (words + 0.5) / (1 << 32)
    return 2 * u - 1 if shape == UNIFORM else deviation(clip) * normal_quantile(u)


def deviation(clip: float) -> float:
    """The standard deviation of a normal coordinate, in units of C."""
    return math.sqrt(0.1 / clip)


def _sums(terms: Array) -> Array:
    """Over coordinates, from the first to the last: the order in which a kernel adds."""
    total = np.zeros(terms.shape[1])
    for row in terms:
        total += row
    return total
