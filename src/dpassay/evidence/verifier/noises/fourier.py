"""Laplace noise on all shift vectors of a bounded lp norm at once, p ≥ 2: docs/proofs/saddlepoint.md.

ln δ(ε) ≤ C − sε, where e^C = (1/π)∫ e^(n·W(t))/|(s+it)(s+1+it)| dt and W(t) is, for any λ, the largest of
ln|M(√u, s+it)| + λ(m − u) over squared shifts u. Doubles, on cells of t and u; their rounding errors are added.
"""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpassay.evidence.verifier.arithmetic.numbers import Number, above, at_most_one, iv
from dpassay.evidence.verifier.arithmetic.work import spend
from dpassay.values import dataclass

Array = NDArray[np.float64]
_CELLS, _SQUARES, _CUT = 500, 180, 1e4
_ERROR = 128 * 2.0**-53
_MORE = 1 + 1e-8
_WORK = 400_000_000  # of one integral


@dataclass(frozen=True)
class Fourier:
    """The bound for n coordinates, whose squares are on average at most `mean` and never above `largest`."""

    pure: Number
    mean: Number
    largest: Number
    dim: int
    tilt: float

    def delta(self, epsilon: Number, upper: bool) -> Number:
        mean = above(self.mean)
        integral = mean, max(mean, above(self.largest)), self.dim, self.tilt
        spend(_WORK, integral)
        power = log_mass(*integral)
        return at_most_one(iv.exp(iv.mpf(power) - iv.mpf(self.tilt) * epsilon))


@lru_cache(maxsize=256)  # several steps of a certificate share it, and it is checked when it is written
def log_mass(mean: float, largest: float, dim: int, s: float) -> float:
    """C, from above.

    >>> deltas = [(e / 50, 1 - math.exp((e / 50 - 1) / 2)) for e in range(50)]  # one coordinate with the shift 1
    >>> all(math.log(delta) <= log_mass(1.0, 1.0, 1, 2.0) - 2 * epsilon for epsilon, delta in deltas)
    True
    """
    width = 1 / math.sqrt(mean * dim)
    t = width * np.sinh(np.linspace(0, math.asinh(_CUT * max(1.0, s / width)), _CELLS + 1))
    u = mean * np.concatenate([[0.0], np.exp(math.log(1e-5) * np.linspace(1, 0, _SQUARES // 3) ** 1.5)])
    if largest > mean:
        u = np.concatenate([u, mean * np.exp(np.linspace(0, 1, _SQUARES)[1:] ** 1.5 * math.log(largest / mean))])
        u[-1] = largest
    worst = np.append(_least(_lines(t, u, s), u, mean), _least(_beyond(t[-1], u, s), u, mean))
    logs = dim * worst
    weights = np.append(np.diff(t) / (np.hypot(s, t[:-1]) * np.hypot(s + 1, t[:-1])), 1 / t[-1])
    peak = float(logs.max())
    area = float((np.exp(logs - peak) * weights).sum())
    return peak + math.log(area / math.pi) + _ERROR * (_CELLS + abs(peak))


def _lines(t: Array, u: Array, s: float) -> list[tuple[Array, Array]]:
    """Lines above ln|M(√u, s+it)| on each cell of t (rows) and u (columns), by their values at both ends of u."""
    a, h = np.sqrt(u), np.diff(t)[:, None]
    z0, z1 = s + 1j * t[:-1, None], s + 1j * t[1:, None]
    squared = _squared(t, a, s)
    ends = (
        s * a + np.log1p(np.maximum(np.maximum(squared[1:], squared[:-1]) + (h * a) ** 2 / 4 * _MORE, _ERROR - 1)) / 2
    )
    low, high = ends[:, :-1], ends[:, 1:]
    product, size = np.abs(z1 * (z1 + 1)), np.abs(z1 + 1) ** 2
    with np.errstate(divide="ignore", over="ignore"):
        third = np.minimum(1 + size * a[1:], 2 * size / np.abs(2 * z0 + 1))
        curvature = product**2 / 2 + product * third / (4 * a[:-1])
        bend = np.diff(u) ** 2 / 16 * curvature * np.exp(2 * (s * a[1:] - np.minimum(low, high)))
    raised = ((high - low) ** 2 / 4 + bend) * _MORE
    first, second = np.abs(z0 + 1) / np.abs(2 * z0 + 1), np.abs(z1) / np.abs(2 * z1 + 1)
    return [(low + raised, high + raised), _steady(a, first, second, s), _chord(s * (s + 1) / 2 * u, a)]


def _beyond(t: float, u: Array, s: float) -> list[tuple[Array, Array]]:
    """The same for all frequencies from t on."""
    a, z = np.sqrt(u), s + 1j * t
    return [_steady(a, np.array([[abs(z + 1) / abs(2 * z + 1)]]), 0.5, s), _chord(s * (s + 1) / 2 * u, a)]


def _steady(a: Array, first: Array, second: Array | float, s: float) -> tuple[Array, Array]:
    """What the triangle inequality gives: it does not oscillate, and is convex in the shift."""
    return _chord(s * a + np.log(first + second * np.exp(-(2 * s + 1) * a)) + _ERROR * (1 + s * a), a)


def _chord(values: Array, a: Array) -> tuple[Array, Array]:
    values = np.atleast_2d(values)
    low, high = values[:, :-1], values[:, 1:]
    rise = np.maximum(0, high - low) * (np.diff(a) / (a[1:] + a[:-1]) / 4) * _MORE
    return low + rise, high + rise


def _squared(t: Array, a: Array, s: float) -> Array:
    """|M(a, s+it)|²·e^(−2sa) − 1 = |1 − q|² − 1 with q = z/(2z+1)·(1 − e^(−(2z+1)a)), from above."""
    t = t[:, None]
    decay = np.exp(-(2 * s + 1) * a)
    real, imaginary = -np.expm1(-(2 * s + 1) * a) + 2 * decay * np.sin(t * a) ** 2, decay * np.sin(2 * t * a)
    size = (2 * s + 1) ** 2 + 4 * t**2
    x, y = (s * (2 * s + 1) + 2 * t**2) / size, t / size
    q = x * real - y * imaginary, x * imaginary + y * real
    return np.asarray(q[0] * (q[0] - 2) + q[1] ** 2 + _ERROR * np.sqrt(size) * a)


def _least(lines: list[tuple[Array, Array]], u: Array, mean: float) -> Array:
    """For each row, nearly the minimum over λ of the maximum over cells of the lowest line + λ(mean − u)."""
    rows = max(len(low) for low, _ in lines)
    slope, best = np.zeros((rows, 1)), np.full(rows, np.inf)
    for _ in range(3):
        low, high = _lowest(lines, u, slope)
        slope = _slope(np.hstack([low, high]), np.concatenate([u[:-1], u[1:]]), mean)
        low, high = _lowest(lines, u, slope)
        ends = np.maximum(low + slope * (mean - u[:-1]), high + slope * (mean - u[1:]))
        slack = _ERROR * (np.abs(low) + np.abs(high) + 2 * np.abs(slope) * u[-1])
        best = np.minimum(best, (ends + slack).max(axis=1))
    return best


def _lowest(lines: list[tuple[Array, Array]], u: Array, slope: Array) -> tuple[Array, Array]:
    """In each cell the line whose larger end, minus slope·u, is smallest."""
    tops = [np.maximum(low - slope * u[:-1], high - slope * u[1:]) for low, high in lines]
    chosen = np.argmin(np.stack(np.broadcast_arrays(*tops)), axis=0)[None]
    ends = (np.stack(np.broadcast_arrays(*(line[i] for line in lines), tops[0])[: len(lines)]) for i in (0, 1))
    first, second = (np.take_along_axis(end, chosen, axis=0)[0] for end in ends)
    return first, second


def _slope(points: Array, u: Array, mean: float) -> Array:
    """For each row nearly the λ with the smallest max(point + λ(mean − u)): convex in λ, by ternary search."""
    reach = (np.ptp(points, axis=1) + 1e-12) / mean
    left, right = -reach[:, None], reach[:, None]
    for _ in range(45):
        third = (right - left) / 3
        values = [(points + slope * (mean - u)).max(axis=1) for slope in (left + third, right - third)]
        better = (values[0] < values[1])[:, None]
        left, right = np.where(better, left, left + third), np.where(better, right - third, right)
    return np.asarray((left + right) / 2)
