"""Integrals of e^φ over an interval, from both sides, for φ that is concave or convex: docs/proofs/sphere.md, point 5.

A concave function lies above its chords and, in each cell, below the neighboring chords extended into it; a convex
one the other way round. So both sums bound the integral, whatever the number of cells. scipy.integrate only estimates
its error, and importing it takes longer than a whole check.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
CELLS = 4096
_DEEP = 60.0  # where φ is this far below its maximum, it is bounded, not integrated
_ROUNDING = 1e-11  # relative: of a sum of that many doubles, and of the operations that lead to each of them


def log_integral(
    phi: Callable[[Array], Array], low: float, high: float, error: float = 0.0, convex: bool = False
) -> tuple[float, float]:
    """Bounds on ln ∫ e^φ from low to high. `error` is the largest rounding error of a value of φ.

    >>> bounds = log_integral(lambda x: -x * x / 2, -9.0, 9.0)
    >>> [round(bound, 4) for bound in bounds]  # ln √(2π)
    [0.9189, 0.9189]
    """
    if not low < high:
        return -np.inf, -np.inf
    start, end = _where_it_counts(phi, low, high)
    x = np.linspace(start, end, CELLS + 1)
    with np.errstate(all="ignore"):
        y = phi(x)
        top = float(y.max())
        if not np.isfinite(top):
            return -np.inf, np.inf
        y, width = y - top, np.diff(x)
        chords = width * _mean_exponential(y[:-1], y[1:])
        beyond = _extended(y, width, convex)
        outside = [
            (start - low, y[0], phi(np.array([low]))[0] - top),
            (high - end, y[-1], phi(np.array([high]))[0] - top),
        ]
        rest = sum(
            length * float(np.exp(max(near, far) if convex else near)) for length, near, far in outside if length
        )
        least, most = (beyond.sum(), chords.sum()) if convex else (chords.sum(), beyond.sum())
        slack = 8 * error + _ROUNDING
        return top + float(np.log(least)) - slack, top + float(np.log(most + rest)) + slack


def _where_it_counts(phi: Callable[[Array], Array], low: float, high: float) -> tuple[float, float]:
    """A part of the interval outside of which e^φ is negligible, and φ decreases away from it."""
    for _ in range(40):
        x = np.linspace(low, high, 129)
        with np.errstate(all="ignore"):
            y = phi(x)
        inside = np.flatnonzero(y > y.max() - _DEEP)
        if not len(inside):
            break
        first, last = max(0, int(inside[0]) - 1), min(128, int(inside[-1]) + 1)
        if last - first > 64:
            break
        low, high = float(x[first]), float(x[last])
    return low, high


def _mean_exponential(first: Array, second: Array) -> Array:
    """The mean of e^y with y uniform between the first value and the second."""
    gap = np.abs(second - first)
    some = np.maximum(gap, 1e-12)  # below it both ends equal the mean, up to the rounding that is counted
    return np.asarray(np.exp(np.maximum(first, second)) * -np.expm1(-some) / some)


def _extended(y: Array, width: Array, convex: bool) -> Array:
    """Integrals over cells of e to the neighboring chords: each over its half, or only one of them if that is better.

    The latter applies at either end, and next to a very steep cell.
    """
    slope = np.diff(y) / width
    left, right = np.append(np.nan, slope[:-1]) * width, -np.append(slope[1:], np.nan) * width
    halves = (_mean_exponential(y[:-1], y[:-1] + left / 2) + _mean_exponential(y[1:] + right / 2, y[1:])) / 2
    bent = np.flatnonzero(~(np.abs(left + right) < 0.5))
    lines = [
        _mean_exponential(y[bent], y[bent] + left[bent]),
        _mean_exponential(y[bent + 1] + right[bent], y[bent + 1]),
        halves[bent],
    ]
    worst, best = (0.0, np.fmax) if convex else (np.inf, np.fmin)
    found = [np.where(np.isfinite(line), line, worst) for line in lines]
    halves[bent] = best(best(found[0], found[1]), found[2])
    return np.asarray(width * halves)
