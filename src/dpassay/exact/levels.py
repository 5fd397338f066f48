"""Laplace noise on all vectors of an l2 ball at once, level by level. Proof: docs/proofs/levels.md.

Shifts are rounded, at random, to levels that are whole numbers of a step. A table holds the largest δ(ε) of all vectors
of levels whose squares sum up to each whole number. It grows by one coordinate at a time, from above. The two largest
coordinates come last and are chosen together.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

import numpy as np

from dpassay.core.numbers import ONE, ZERO, Number, exactly, iv, maximum, middle, minimum, up
from dpassay.core.theorems import Theorem
from dpassay.exact.saddlepoint import SaddlepointBound
from dpassay.pipeline.regions import Array

COUNTED = 32  # up to this many coordinates they are counted, so that no Gaussian stands for the smallest shifts
STEPS, FEWEST, MOST = 64, 60, 80  # of the norm, where coordinates are not counted
SMALL = range(3, 7)  # the largest shift, in steps, that is treated as Gaussian
SMOOTH = 24  # squared steps, at least: the variance of a Gaussian that is added first, and makes rounding cheaper
ROUNDED = 4  # squares of small shifts are rounded up to a multiple of this, other costs down at last
SMALLEST_NORM, LARGEST_NORM = 1e-6, 4.0
SHORT, LONG = 1e-11, 1e-4  # below these δ the integral of saddlepoint.md is as good, for norms up to 1.25 or above
FRACTIONS = np.geomspace(0.1, 1, 30)  # of the steepest multiplier, among which the best is taken
TOGETHER = 8  # largest levels that are multiplied at once
_U = 2.0**-53
_SLACK = 2e-9  # docs/proofs/levels.md, point 7


@dataclass(frozen=True)
class Levels:
    """How a ball is cut into levels: `steps` steps make its norm, and each coordinate costs its square and a `price`.

    Costs are in squared steps. Any price and any `steepest` multiplier give a valid bound, and so do all `small` shifts
    up to ½ (in steps), if coordinates are not counted.
    """

    step: float
    steps: int
    dim: int
    price: int
    steepest: float
    small: int = SMALL[0]

    @classmethod
    def of(cls, norm: float, dim: int, tilt: float) -> "Levels":
        """Levels that are good where losses are weighted by e^(tilt·loss)."""
        mean = norm**2 / dim
        worth, slope = _moment(math.sqrt(mean), tilt)
        price, steps = 0, max(34, min(48, round(192 / math.sqrt(dim))))
        if dim > COUNTED:
            each = 0.6 * max(0.0, worth / slope - mean) / norm**2
            price, steps = round(each * 70**2), STEPS
            if price:
                steps = max(FEWEST, min(MOST, round(math.sqrt(price / each))))
        step = norm / steps * (1 + 4 * _U)
        return cls(step, steps, dim, price, 1.5 * slope * step**2, _small(norm, steps, dim, price))

    @property
    def counted(self) -> bool:
        return self.dim <= COUNTED

    @property
    def smooth(self) -> int:
        """The variance of the Gaussian that is added first, in squared steps."""
        return _smooth(self.small)

    @cached_property
    def levels(self) -> tuple[int, ...]:
        """Shifts to round to, in steps; the last one is not below the norm."""
        if self.counted:
            return tuple(range(self.steps + 1))
        found = [self.small, self.small + 1]
        while found[-1] < self.steps:
            a = b = found[-1]
            while b == a or (b < self.steps and self._excess(a, b + 1) <= self._excess(*found[:2])):
                b += 1
            found.append(b)
        return tuple(found)

    def _excess(self, a: int, b: int) -> float:
        """By which part rounding to one of two levels raises the cost of a shift between them, at most."""
        alone = (b - a) ** 2 / 4 * (1 + b * self.step / 2) * math.exp((b - a) * self.step)
        apart = b**2 - a**2
        bend = self.step / (4 * a) + min(1 / (6 * self.smooth), 1 / (2 * a**2))
        smoothed = apart**2 / 8 * ((1 + math.exp(bend * apart)) / 2) ** 2 * bend
        return (min(alone, smoothed) + self.steepest * apart**2 / 8) / (a**2 + self.price)

    @cached_property
    def premium(self) -> float:
        """By which part rounding raises the cost of a vector, at most, if coordinates are not counted."""
        return max(self._excess(a, b) for a, b in pairwise(self.levels))

    def paid(self, level: int) -> int:
        """What a coordinate of a level costs."""
        return level**2 + self.price if level else 0

    @property
    def cost(self) -> int:
        """What the longest vector costs."""
        return self.steps**2 + self.price * self.dim

    @cached_property
    def largest_cost(self) -> int:
        """What a vector costs at most once its shifts are rounded."""
        if self.counted:
            return int((self.steps + math.sqrt(self.dim)) ** 2) + 1
        worst = max((b**2 + self.price) / (a**2 + self.price) for a, b in pairwise(self.levels))
        return int(max(worst, 1 + self.premium) * self.cost) + ROUNDED + 1

    def log_moment(self, multipliers: Array) -> Array:
        """ln E[e^(λ·cost)] of a rounded vector, from above."""
        if self.counted:
            each = (1 + self.steps * self.step / 2) * math.exp(self.step) / 4
            spread = (self.steps + math.sqrt(self.dim) / 2) ** 2 / 2
            return np.asarray(multipliers * (self.cost + self.dim * each) + multipliers**2 * spread)
        return np.asarray(multipliers * ((1 + self.premium) * self.cost + ROUNDED))

    def reach(self, epsilon: float) -> int:
        """How many steps of ε a table is to hold."""
        quarter, at = self.steps / 4, epsilon / self.step
        far = math.ceil(quarter * math.ceil((at + max(0.7 * self.steps, 1.6 * self.steps - at / 2)) / quarter))
        return min(far, math.ceil(self.steps * math.sqrt(self.dim)) + 1)

    def log_delta(self, epsilon: float, reach: int) -> float:
        """ln δ(ε) from above, for all vectors of the ball."""
        return _log_delta(self, epsilon, reach)


@dataclass(frozen=True)
class LevelBound:
    """Laplace noise, every shift vector whose lp norm is at most `norm` scales, p ≥ 2. docs/proofs/levels.md.

    >>> bound = LevelBound(exactly(0.5), 2.0, 8)
    >>> 1.218 < middle(bound.epsilon(iv.mpf("1e-3"))) < 1.235
    True
    """

    norm: Number
    p: float
    dim: int
    theorem: Theorem = Theorem.LEVELS

    @property
    def pure(self) -> Number:
        return self._integral.pure

    @cached_property
    def _integral(self) -> SaddlepointBound:
        return SaddlepointBound(self.norm, self.p, self.dim)

    @cached_property
    def euclidean(self) -> float:
        """The largest l2 norm, from above."""
        return up(iv.sqrt(self.dim * exactly(self._integral.mean_square)))

    @property
    def is_useful(self) -> bool:
        """Whether it is better than other bounds at some δ."""
        return SMALLEST_NORM < self.euclidean <= LARGEST_NORM and self.dim > 1

    def _is_useful_at(self, log_delta: float) -> bool:
        return self.is_useful and log_delta > math.log(SHORT if self.euclidean <= 1.25 else LONG)

    def best_tilt(self, epsilon: Number) -> float:
        """The tilt that gives good levels, one of few so that nearly equal ε share a table."""
        return math.exp(round(4 * math.log(self._integral.best_tilt(epsilon))) / 4)

    def delta(self, epsilon: Number) -> Number:
        claimed, tilt = middle(iv.mpf(epsilon.a)), self.best_tilt(epsilon)
        near = self._integral.near(tilt) - tilt * claimed
        if not 0 <= claimed < middle(self.pure) or not self._is_useful_at(near + 1):
            return ONE
        levels = Levels.of(self.euclidean, self.dim, tilt)
        return minimum(ONE, iv.exp(exactly(levels.log_delta(claimed, levels.reach(claimed)))))

    def epsilon(self, delta: Number) -> Number:
        if not self._is_useful_at(middle(iv.log(delta))):
            return self.pure
        tilt = self._integral.best_tilt_for(delta)
        guess = (self._integral.near(tilt) - middle(iv.log(delta))) / tilt
        wanted, found = middle(iv.log(iv.mpf(delta.a))), 0.0
        near = min(middle(self.pure), max(0.0, 0.96 * guess))  # most of what that bound is too large by
        for _ in range(5):
            tilt = self.best_tilt(exactly(near))
            near = found = max(found, _least(Levels.of(self.euclidean, self.dim, tilt), wanted, near, tilt))
            if self.delta(exactly(found)).b <= delta.a:  # which has a tilt of its own
                return maximum(ZERO, minimum(self.pure, exactly(found)))
        return self.pure

    def epsilon_above(self, delta: Number) -> Number:
        return self.pure  # a table is not quick


def _least(levels: Levels, wanted: float, near: float, slope: float) -> float:
    """An ε at which ln δ is just as small as wanted; close to it ln δ falls about by the slope. Rows cost time."""
    reach = levels.reach(near)
    low, high, at = -1, reach, min(reach - 1, round(near / levels.step))
    while high - low > 1:
        over = levels.log_delta(at * levels.step, reach) - wanted
        low, high = (at, high) if over > 0 else (low, at)
        at = max(low + 1, min(high - 1, math.ceil(at + over / (slope * levels.step) - (over <= 0))))
    left, right = max(0, low) * levels.step, high * levels.step
    for _ in range(22):
        half = (left + right) / 2
        left, right = (half, right) if levels.log_delta(half, reach) > wanted else (left, half)
    return right * (1 + 1e-8)


def _small(norm: float, steps: int, dim: int, price: int) -> int:
    """Up to how many steps shifts are taken for Gaussian: what this adds to the variance, about, is to be least."""

    def added(small: int) -> float:
        wide, smooth = steps**2, _smooth(small)
        alone = min(small / steps, 1 / math.sqrt(dim)) * norm / 3  # by which part such shifts have less than a Gaussian
        return (smooth + small**2 / 6 * math.log(wide / smooth)) / wide - alone

    return SMALL[0] if price else min((j for j in SMALL if 2 * j * norm <= steps), key=added)


def _smooth(small: int) -> int:
    return max(SMOOTH, math.ceil(1.2 * small**2))


def _moment(shift: float, tilt: float) -> tuple[float, float]:
    """ln E[e^(tilt·loss)] of one coordinate, and its derivative by the squared shift."""
    s, decay = tilt, math.exp(-(2 * tilt + 1) * shift)
    inside = (s + 1 + s * decay) / (2 * s + 1)
    return s * shift + math.log(inside), (s - s * decay / inside) / (2 * shift)


@lru_cache(maxsize=4096)  # the same ball is asked about at the same ε again and again, and a table is not quick
def _log_delta(levels: Levels, epsilon: float, reach: int) -> float:
    i = min(int(epsilon / levels.step), reach - 1)
    part = min(1.0, epsilon / levels.step - i)
    logs = np.log((1 - part) * _row(levels, reach, i) + part * _row(levels, reach, i + 1))
    multipliers = levels.steepest * FRACTIONS
    tops = (logs[:, None] - np.arange(len(logs))[:, None] * multipliers).max(axis=0)
    return float((tops + levels.log_moment(multipliers)).min()) * (1 - _SLACK) + epsilon / 2 + _SLACK


@lru_cache(maxsize=128)
def _row(levels: Levels, reach: int, i: int) -> Array:
    """e^(−y/2) δ(y) from above at y = i steps, by cost: the two largest shifts, chosen at once, and what others add."""
    found = np.full(levels.largest_cost + 1, 1e-290)
    for second, others in _others(levels, reach).items():
        firsts = [0, *levels.levels] if second == 0 else [level for level in levels.levels if level >= second]
        every = 1 if levels.counted else ROUNDED
        for some in (firsts[k : k + TOGETHER] for k in range(0, len(firsts), TOGETHER)):
            cost = levels.paid(second) + levels.paid(some[0])
            rest = others[:, : (len(found) - cost) // every + 1]
            weights, own = zip(*(_weights(levels.step, i, first, second, reach) for first in some), strict=True)
            for first, more in zip(some, np.array(weights) @ rest + np.array(own)[:, None], strict=True):
                there = found[levels.paid(second) + levels.paid(first) :: every][: len(more)]
                np.maximum(there, more[: len(there)], out=there)
    return found


def _weights(step: float, i: int, first: int, second: int, reach: int) -> tuple[Array, float]:
    """By which weights values at 0, 1, 2, … steps enter that at i steps after two more coordinates; what these add."""
    inner, outer = _kernel(first, step), _kernel(second, step)
    both = np.arange(-first - second, first + second + 1)
    weights = np.bincount(np.minimum(np.abs(i + both), reach), np.convolve(inner, outer), reach + 1)
    near = i + np.arange(-first, first + 1, dtype=float)
    own = float((inner * _own(near, second, step)).sum() + _own(near[first : first + 1], first, step)[0])
    return np.asarray(weights, dtype=float), own


def _kernel(level: int, step: float) -> Array:
    """One more coordinate of a level: docs/proofs/levels.md, point 2. Level 0 changes nothing."""
    if level == 0:
        return np.ones(1)
    kernel = np.full(2 * level + 1, step / 4)
    kernel[[0, -1]] = 1 / 2 + step / 8
    return np.asarray(kernel * math.exp(-level * step / 2))


def _own(places: Array, level: int, step: float) -> Array:
    """What a coordinate of a level has by itself."""
    return np.asarray(math.exp(-level * step / 2) * np.expm1(np.maximum(0, level - np.abs(places)) * (step / 2)))


@lru_cache(maxsize=2)
def _others(levels: Levels, reach: int) -> dict[int, Array]:
    """By the second largest level, 0 if there is none: e^(−y/2) δ(y) from above of what is not above it.

    Rows are y from 0 to `reach` steps, columns costs; those that two such levels leave no room for are left out.
    """
    return dict(_counted(levels, reach) if levels.counted else _uncounted(levels, reach))


def _uncounted(levels: Levels, reach: int) -> Iterator[tuple[int, Array]]:
    table = _gaussian(levels, reach)
    yield 0, _grouped(table)
    for level in levels.levels:
        cost, size = levels.paid(level), levels.largest_cost + 1 - levels.paid(level)
        if size <= cost:
            return
        table = table[:, :size]
        for first in range(cost, size, cost):  # what was reached with this level can be used again
            last = min(first + cost, size)
            more = _one_more(table[:, first - cost : last - cost], level, levels.step)
            np.maximum(table[:, first:last], more, out=table[:, first:last])
        yield level, _grouped(table[:, : size - cost])


def _grouped(table: Array) -> Array:
    """The largest entry of each group of `ROUNDED` neighbouring columns, row by row."""
    found = table[:, ::ROUNDED].copy()
    for k in range(1, ROUNDED):
        more = table[:, k::ROUNDED]
        np.maximum(found[:, : more.shape[1]], more, out=found[:, : more.shape[1]])
    return found


def _counted(levels: Levels, reach: int) -> Iterator[tuple[int, Array]]:
    tables = np.full((levels.dim - 1, reach + 1, levels.largest_cost + 1), 1e-290)
    yield 0, np.full((reach + 1, 1), 1e-290)
    for level in levels.levels[1:]:
        left = min(levels.largest_cost + 1 - 2 * level**2, (levels.dim - 2) * level**2 + 1)
        if left <= 0:
            return
        for count in range(1, levels.dim - 1):
            target = tables[count, :, level**2 : left]
            more = _one_more(tables[count - 1, :, : target.shape[1]], level, levels.step)
            np.maximum(target, more, out=target)
        yield level, tables[-1, :, :left].copy()


def _one_more(table: Array, level: int, step: float) -> Array:
    """The same functions of y with one more coordinate of this level."""
    size = len(table)
    values = table[np.minimum(np.abs(np.arange(-level, size + level)), size - 1)]  # even, and falling beyond the end
    sums = np.cumsum(values[::-1], axis=0)[::-1]
    more = values[:size] + values[2 * level :]
    more *= 2 / step + 0.5
    more += sums[1 : size + 1] * (1 + 4 * len(values) * _U)
    more -= sums[2 * level : 2 * level + size]
    more *= math.exp(-level * step / 2) * step / 4
    near = np.arange(min(level, size))
    more[: len(near)] += (math.exp(-level * step / 2) * np.expm1((level - near) * step / 2))[:, None]
    return np.asarray(more)


def _gaussian(levels: Levels, reach: int) -> Array:
    """All shifts that are small, by what they cost: docs/proofs/levels.md, points 4 and 6."""
    costs = np.arange(0, levels.largest_cost + ROUNDED, ROUNDED, dtype=float) * levels.step**2 / (1 + levels.premium)
    largest = levels.small * levels.step
    added = _added(costs, levels.price * levels.step**2, largest, levels.dim)
    excess = largest**2 / (1 - largest / 3)
    start = max(excess, levels.smooth * levels.step**2)
    variance = start + added
    for _ in range(60):
        variance = start + added + excess / 6 * np.log((variance - 5 / 12 * excess) / (start - 5 / 12 * excess))
    deviation, y = np.sqrt(variance * (1 + 1e-12)), levels.step * np.arange(reach + 1)[:, None]
    near, far = y / deviation - deviation / 2, y / deviation + deviation / 2
    first, second = np.exp(-y / 2) * _normal_tail(near), np.exp(y / 2) * _normal_tail(far)
    found = first - second + 64 * _U * (1 + far**2) * first + 1e-290
    return np.asarray(found[:, -(-np.arange(levels.largest_cost + 1) // ROUNDED)])


def _added(costs: Array, price: float, largest: float, dim: int) -> Array:
    """What small shifts of these costs add to a variance at most, but for what depends on it."""
    costs = np.minimum(costs, dim * (largest**2 + price))
    first, root = 1 + 0.15 * largest**2, 0.0
    for _ in range(60):
        root = (root + (6 * price * (first - root / 2)) ** (1 / 3)) / 2
    tangent = np.minimum(largest, np.maximum(root, np.sqrt(np.maximum(0, costs / dim - price))))
    each = tangent**3 / 6 - price * (first - tangent / 2)
    return np.asarray((first - tangent / 2) * costs + np.maximum(dim * each, each * costs / (largest**2 + price)))


def _normal_tail(x: Array) -> Array:
    return np.asarray(np.frompyfunc(math.erfc, 1, 1)(x / math.sqrt(2)), dtype=float) / 2
