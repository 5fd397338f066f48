"""Laplace noise on all vectors of a ball at once, by Fourier inversion. Proof: docs/proofs/saddlepoint.md.

For a tilt s, ln δ(ε) ≤ `log_mass(s)` − sε for every ε. The mass is an integral over frequencies t. At each of them weak
duality bounds the product of the coordinates' transforms over all shift vectors of one l2 norm. Cells of frequencies
and of shifts are bounded in doubles, and every error that this makes is added.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import TypeAlias

import numpy as np

from dpassay.core.numbers import ONE, ZERO, Number, exactly, exp, log, maximum, middle, minimum, real, up
from dpassay.core.theorems import Theorem
from dpassay.exact.profiles.bounds import GeneralBound, RenyiBound
from dpassay.pipeline.pair import Array
from dpassay.values import dataclass

CELLS, FEWER_CELLS = 500, 150  # of frequencies; fewer if it must be quick
CUT = 1e4  # beyond this many times max(s, the width of the peak) frequencies are bounded as one cell
LEFT, RIGHT = 40, 140  # squared shifts below and above the mean one
FEWER_LEFT, FEWER_RIGHT = 30, 70
SMALLEST = 1e-5  # of the squared shifts, in mean ones
SMALLEST_DELTA = 1e-250  # below it doubles are too imprecise for the search
ROUNDS, STEPS = 2, 16  # in the search for a multiplier; any multiplier is valid
_U = 2.0**-53
_ROUNDING, MORE = 64 * _U, 1 + 1e-9  # docs/proofs/saddlepoint.md, point 7

Lines: TypeAlias = tuple[Array, Array]  # the values at both ends of each cell of squares


@dataclass(frozen=True)
class SaddlepointBound(GeneralBound):
    """Laplace noise, every shift vector whose lp norm is at most `norm` scales, p ≥ 2. docs/proofs/saddlepoint.md.

    >>> bound = SaddlepointBound(ONE, 2.0, 32)
    >>> 4.40 < middle(bound.epsilon(real("1e-6"))) < 4.46
    True
    """

    norm: Number
    p: float
    dim: int
    quick: bool = False  # with fewer cells: ε is about 0.4% larger, and takes a quarter of the time
    theorem: Theorem = Theorem.SADDLEPOINT

    @property
    def pure(self) -> Number:
        return self._renyi.pure

    @cached_property
    def _renyi(self) -> RenyiBound:
        return RenyiBound(self.norm, self.p, self.dim)

    @cached_property
    def mean_square(self) -> float:
        """The mean square of a longest vector's coordinates: norm² n^(−2/p), from above."""
        power = ZERO if self.p == math.inf else 2 / real(self.p)
        return up(self.norm**2 / real(self.dim) ** power)

    @cached_property
    def largest_square(self) -> float:
        """The largest square of a coordinate, from above."""
        return max(self.mean_square, up(self.norm**2))

    def log_mass(self, tilt: float) -> float:
        """A number C with ln δ(ε) ≤ C − tilt·ε for every ε."""
        return _log_mass(self.mean_square, self.largest_square, self.dim, tilt, self.quick)

    def best_tilt(self, epsilon: Number) -> float:
        """The tilt that gives nearly the smallest δ(ε)."""
        claimed = middle(epsilon)
        return _least(lambda s: self.near(s) - s * claimed)

    def best_tilt_for(self, delta: Number) -> float:
        """The tilt that gives nearly the smallest ε(δ)."""
        log_delta = middle(log(delta))
        return _least(lambda s: (self.near(s) - log_delta) / s)

    def near(self, tilt: float) -> float:
        """A quick approximation of `log_mass`, from vectors with some equal coordinates and the others 0."""
        return _near(self.mean_square, self.largest_square, self.dim, tilt)

    def near_delta(self, epsilon: Number) -> float:
        """About what δ(ε) is, to search with."""
        tilt = self.best_tilt(epsilon)
        return math.exp(min(0.0, self.near(tilt) - tilt * middle(epsilon)))

    def delta(self, epsilon: Number) -> Number:
        first = self._delta(epsilon, self.best_tilt(epsilon))
        if first.b <= SMALLEST_DELTA or first == ONE:
            return first
        # A search from the other side gives a slightly different tilt, and often a better one.
        return minimum(first, self._delta(epsilon, self.best_tilt_for(first)))

    def _delta(self, epsilon: Number, tilt: float) -> Number:
        return minimum(ONE, exp(exactly(self.log_mass(tilt)) - exactly(tilt) * real(epsilon.a)))

    def epsilon(self, delta: Number) -> Number:
        if delta.b <= SMALLEST_DELTA:
            return self._renyi.epsilon(delta)
        tilt = self.best_tilt_for(delta)
        found = (exactly(self.log_mass(tilt)) - log(real(delta.a))) / exactly(tilt)
        for _ in range(4):  # the result must also follow from δ at that ε, which has its own tilt
            there = self.delta(real(found.b))
            if there.b <= delta.a:
                break
            found = real(found.b) + real("1.01") * log(there / delta) / exactly(tilt)
        return maximum(ZERO, minimum(self.pure, found))

    def epsilon_above(self, delta: Number) -> Number:
        return replace(self, quick=True).epsilon(delta)


def _least(value: Callable[[float], float]) -> float:
    """Search tilts e^x for the smallest value; any tilt gives a valid bound."""

    def at(x: float) -> float:
        return value(math.exp(x))

    centre = min((-12 + 0.5 * i for i in range(38)), key=at)
    low, high = centre - 0.5, centre + 0.5
    for _ in range(10):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, right) if at(left) < at(right) else (left, high)
    return math.exp((low + high) / 2)


@lru_cache(maxsize=4096)  # each search begins at the same tilts, and one check needs the same ε many times
def _near(mean: float, largest: float, dim: int, tilt: float) -> float:
    total = mean * dim
    fewer = [4.0**k for k in range(6) if total / largest <= 4**k < dim]
    counts = np.array([float(dim), *fewer])
    t = _frequencies(tilt, total, 80, 1e3)
    z = tilt + 1j * t
    shift = np.sqrt(total / counts)[:, None]
    decayed = 1 - z * -np.expm1(-(2 * z + 1) * shift) / (2 * z + 1)
    logs = (counts[:, None] * (tilt * shift + np.log(np.abs(decayed)))).max(axis=0)
    values = np.exp(logs - logs[0]) / np.abs(z * (z + 1))
    area = float(((values[1:] + values[:-1]) / 2 * np.diff(t)).sum()) + float(np.exp(logs[-1] - logs[0])) / t[-1]
    return float(logs[0]) + math.log(area / math.pi)


def _frequencies(tilt: float, total: float, cells: int, cut: float) -> Array:
    """From 0 to the cut: even steps at the peak, whose width is about 1/√total, and growing ones beyond."""
    width = 1 / math.sqrt(total)
    return np.asarray(width * np.sinh(np.linspace(0, math.asinh(cut * max(1.0, tilt / width)), cells + 1)))


def _squares(mean: float, largest: float, quick: bool = False) -> Array:
    """Squared shifts from 0 to the largest, closest together around the mean."""
    left, right = (FEWER_LEFT, FEWER_RIGHT) if quick else (LEFT, RIGHT)
    below = mean * np.exp(math.log(SMALLEST) * np.linspace(1, 0, left) ** 1.5)
    if largest <= mean:
        return np.concatenate([[0.0], below])
    above = mean * np.exp(math.log(largest / mean) * np.linspace(0, 1, right + 1)[1:] ** 1.5)
    return np.concatenate([[0.0], below, above[:-1], [largest]])


@lru_cache(maxsize=256)
def _log_mass(mean: float, largest: float, dim: int, s: float, quick: bool) -> float:
    """ln of (1/π) ∫ e^(n·worst(t)) / |(s+it)(s+1+it)| dt, from above."""
    cells = FEWER_CELLS if quick else CELLS
    t, squares = _frequencies(s, mean * dim, cells, CUT), _squares(mean, largest, quick)
    most = [_most(lines, squares, mean) for lines in (_below_the_cut(squares, t, s), _beyond(squares, float(t[-1]), s))]
    logs = dim * np.concatenate(most)
    weights = np.append(np.diff(t) / (np.hypot(s, t[:-1]) * np.hypot(s + 1, t[:-1])), 1 / t[-1])
    peak = float(logs.max())
    area = float((np.exp(logs - peak) * weights).sum())
    return peak + math.log(area / math.pi) + _ROUNDING * (cells + abs(peak))


def _below_the_cut(squares: Array, t: Array, s: float) -> list[Lines]:
    """For each cell of frequencies and of squares u, lines in u that lie above ln|M(√u, s+it)|."""
    a = np.sqrt(squares)
    at = _modulus(a, t, s)
    ends = np.maximum(at[1:], at[:-1]) + (np.diff(t)[:, None] * a) ** 2 / 4 * MORE
    ends = s * a + np.log1p(np.maximum(ends, -1 + _ROUNDING)) / 2
    first, last = s + 1j * t[:-1, None], s + 1j * t[1:, None]
    low, high, left, right = ends[:, :-1], ends[:, 1:], a[:-1], a[1:]
    product, size = np.abs(last * (last + 1)), np.abs(last + 1) ** 2
    with np.errstate(divide="ignore", over="ignore"):
        third = np.minimum(1 + size * right, 2 * size / np.abs(2 * first + 1))
        second = product**2 / 2 + product * third / (4 * left)  # of |M|² by u, but for e^(2sa)
        excess = np.diff(squares) ** 2 / 8 * second * np.exp(2 * (s * right - np.minimum(low, high)))
        curved = ((high - low) ** 2 / 4 + excess / 2) * MORE
    steady = _envelope(a, np.abs(first + 1) / np.abs(2 * first + 1), np.abs(last) / np.abs(2 * last + 1), s)
    return [(low + curved, high + curved), _chords(steady, a), _chords(s * (s + 1) / 2 * squares, a)]


def _beyond(squares: Array, t: float, s: float) -> list[Lines]:
    """The same for all frequencies from t on."""
    a, z = np.sqrt(squares), s + 1j * t
    steady = _envelope(a, abs(z + 1) / abs(2 * z + 1), 0.5, s)
    return [_chords(steady, a), _chords(s * (s + 1) / 2 * squares, a)]


def _chords(values: Array, a: Array) -> Lines:
    """Ends of lines in u = a² that lie above a function which is convex in a, from cell to cell."""
    low, high = values[..., :-1], values[..., 1:]
    rise = np.maximum(0, high - low) * (np.diff(a) / (a[1:] + a[:-1]) / 4)
    return low + rise, high + rise


def _envelope(a: Array, first: Array | float, second: Array | float, s: float) -> Array:
    """What ln|M(a, z)| does not exceed, where |z+1|/|2z+1| and |z|/|2z+1| do not exceed these two; convex in a."""
    return np.asarray(s * a + np.log(first + second * np.exp(-(2 * s + 1) * a)) + _ROUNDING * (1 + s * a))


def _modulus(a: Array, t: Array, s: float) -> Array:
    """|M(a, s+it)|² e^(−2sa) − 1 from above, a row for each frequency."""
    t = t[:, None]
    decay, angle = np.exp(-(2 * s + 1) * a), t * a
    real = -np.expm1(-(2 * s + 1) * a) + decay * 2 * np.sin(angle) ** 2  # of 1 − e^(−(2z+1)a)
    imaginary = decay * np.sin(2 * angle)
    size = (2 * s + 1) ** 2 + 4 * t**2  # z/(2z+1) = (s(2s+1) + 2t² + it)/size
    x, y = (s * (2 * s + 1) + 2 * t**2) / size, t / size
    q_real, q_imaginary = x * real - y * imaginary, x * imaginary + y * real
    return np.asarray(q_real * (q_real - 2) + q_imaginary**2 + _ROUNDING * np.sqrt(size) * a)


def _most(lines: list[Lines], squares: Array, mean: float) -> Array:
    """What the mean of a function below the lines is at most, if its arguments' mean is `mean`: weak duality."""
    rows = max(len(np.atleast_2d(low)) for low, _ in lines)
    slope, least = np.zeros((rows, 1)), np.full(rows, np.inf)
    low, high = _lowest(lines, squares, slope)
    for _ in range(ROUNDS):
        inner = np.maximum(low[:, 1:], high[:, :-1])
        slope = _multiplier(np.concatenate([low[:, :1], inner, high[:, -1:]], axis=1), squares, mean)
        low, high = _lowest(lines, squares, slope)
        ends = np.concatenate([low + slope * (mean - squares[:-1]), high + slope * (mean - squares[1:])], axis=1)
        slack = _ROUNDING * (np.abs(low).max(axis=1) + np.abs(high).max(axis=1) + 2 * np.abs(slope[:, 0]) * squares[-1])
        least = np.minimum(least, ends.max(axis=1) + slack)
    return least


def _lowest(lines: list[Lines], squares: Array, slope: Array) -> Lines:
    """In each cell the line whose ends, minus slope·u, are smallest."""
    left, right = slope * squares[:-1], slope * squares[1:]
    chosen, least = lines[0], np.maximum(lines[0][0] - left, lines[0][1] - right)
    for low, high in lines[1:]:
        top = np.maximum(low - left, high - right)
        better = top < least
        chosen = np.where(better, low, chosen[0]), np.where(better, high, chosen[1])
        np.minimum(least, top, out=least)
    return chosen


def _multiplier(points: Array, squares: Array, mean: float) -> Array:
    """The slope at the mean of the concave envelope of points above the squares, nearly.

    It minimizes max(point + slope·(mean − square)), a convex function of the slope: each step takes the slope at which
    one line from either side of the minimum meet.
    """
    best, least = np.zeros(len(points)), np.full(len(points), np.inf)
    rows, left, right = np.arange(len(points)), np.zeros(len(points), dtype=int), np.full(len(points), len(squares) - 1)
    for _ in range(STEPS):
        slope = (points[rows, right] - points[rows, left]) / (squares[right] - squares[left])
        values = slope[:, None] * squares
        np.subtract(points if len(rows) == len(points) else points[rows], values, out=values)
        top = values.argmax(axis=1)
        value = values[np.arange(len(rows)), top] + slope * mean
        better = value < least[rows]
        best[rows[better]], least[rows[better]] = slope[better], value[better]
        beyond = squares[top] > mean
        before, after = np.where(beyond, left, np.minimum(top, right - 1)), np.where(beyond, top, right)
        moved = (before != left) | (after != right)  # where neither end moves, no later step moves one
        rows, left, right = rows[moved], before[moved], after[moved]
        if not len(rows):
            break
    return best[:, None]
