"""Counts by numpy alone, on any machine: the steps of `numba_kernels` and `triton_kernels`, in flat memory."""

from __future__ import annotations

import numpy as np

from dpassay.compute.kernels.draws import Span
from dpassay.compute.kernels.likelihood_ratio import LikelihoodRatioTable
from dpassay.compute.kernels.philox import RUNS, Key, words

CELLS = 1 << 18  # words held at a time
FAR = 1e300  # scores are capped at this, in steps


def count_votes(key: Key, start: int, runs: int, dim: int, ones: Span) -> int:
    """The number of runs in which more than half of the coordinates are 1: those whose words are among `ones`.

    >>> 400 < count_votes((1, 2), 0, 1000, 1, Span(0, 1 << 31)) < 600
    True
    """
    found = 0
    rows = max(RUNS, CELLS // dim // RUNS * RUNS)
    for first in range(start, start + runs, rows):
        size = min(rows, start + runs - first)
        votes = np.zeros(size, dtype=np.int64)
        for j in range(0, dim, CELLS):  # in one pass unless there are very many coordinates
            votes += ones.holds(words(key, first, size, range(j, min(dim, j + CELLS)))).sum(axis=1)
        found += int(np.count_nonzero(2 * votes > dim))
    return found


def count_guesses(
    key: Key, start: int, runs: int, table: LikelihoodRatioTable, low: float, high: float, resolution: float
) -> tuple[int, int]:
    """The numbers of runs in which the sum of the ratios, in whole steps, is at most `low`, and at least `high`."""
    below = above = 0
    rows = max(RUNS, CELLS // table.dim // RUNS * RUNS)
    for first in range(start, start + runs, rows):
        size = min(rows, start + runs - first)
        total = np.zeros(size)
        for j in range(0, table.dim, CELLS):
            wide = range(j, min(table.dim, j + CELLS))
            drawn = words(key, first, size, wide)
            for column, coordinate in enumerate(wide):
                total += table.scores(drawn[:, column], coordinate)
        with np.errstate(over="ignore", invalid="ignore"):
            coarse = np.clip(np.rint(total / resolution), -FAR, FAR)
        below, above = below + int(np.count_nonzero(coarse <= low)), above + int(np.count_nonzero(coarse >= high))
    return below, above


def describe() -> str:
    """A description of what computes the counts."""
    return f"numpy {np.__version__}"
