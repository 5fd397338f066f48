"""Laplace noise on all vectors of an l2 ball at once, level by level. Proof: docs/proofs/levels.md.

Shifts are rounded, at random, to levels that are whole numbers of a step. A table holds the largest δ(ε) of all vectors
of levels whose squares sum up to each whole number. It grows by one coordinate at a time, from above.
"""

import math
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
SMALL = 4  # shifts up to this many steps are taken for Gaussian
ROUNDED = 8  # squares of small shifts are rounded up to a multiple of this
SMALLEST_NORM, LARGEST_NORM = 1e-6, 4.0
SHORT, LONG = 1e-11, 1e-4  # below these δ the integral of saddlepoint.md is as good, for norms up to 1.25 or above
FRACTIONS = np.geomspace(0.1, 1, 30)  # of the steepest multiplier, among which the best is taken
_U = 2.0**-53
_SLACK = 2e-9  # docs/proofs/levels.md, point 7


@dataclass(frozen=True)
class Levels:
    """How a ball is cut into levels: `steps` steps make its norm, and each coordinate costs its square and a `price`.

    Costs are in squared steps. Any price and any `steepest` multiplier give a valid bound.
    """

    step: float
    steps: int
    dim: int
    price: int
    steepest: float

    @classmethod
    def of(cls, norm: float, dim: int, tilt: float) -> "Levels":
        """Levels that are good where losses are weighted by e^(tilt·loss)."""
        mean = norm**2 / dim
        worth, slope = _moment(math.sqrt(mean), tilt)
        price, steps = 0, max(24, min(48, round(96 / math.sqrt(dim))))
        if dim > COUNTED:
            each = 0.6 * max(0.0, worth / slope - mean) / norm**2
            price, steps = round(each * 70**2), STEPS
            if price:
                steps = max(FEWEST, min(MOST, round(math.sqrt(price / each))))
        step = norm / steps * (1 + 4 * _U)
        return cls(step, steps, dim, price, 1.5 * slope * step**2)

    @property
    def counted(self) -> bool:
        return self.dim <= COUNTED

    @cached_property
    def levels(self) -> tuple[int, ...]:
        """Shifts to round to, in steps; the last one is not below the norm."""
        if self.counted:
            return tuple(range(self.steps + 1))
        found = [SMALL, SMALL + 1]
        while found[-1] < self.steps:
            a = b = found[-1]
            while b == a or (b < self.steps and self._excess(a, b + 1) <= self._excess(SMALL, SMALL + 1)):
                b += 1
            found.append(b)
        return tuple(found)

    def _excess(self, a: int, b: int) -> float:
        """By which part rounding to one of two levels raises the cost of a shift between them, at most."""
        mean = (b - a) ** 2 / 4 * (1 + b * self.step / 2) * math.exp((b - a) * self.step)
        return (mean + self.steepest * (b**2 - a**2) ** 2 / 8) / (a**2 + self.price)

    @cached_property
    def premium(self) -> float:
        """By which part rounding raises the cost of a vector, at most, if coordinates are not counted."""
        return max(self._excess(a, b) for a, b in pairwise(self.levels))

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
        quarter = self.steps / 4
        far = math.ceil(quarter * math.ceil((epsilon / self.step + 0.7 * self.steps) / quarter))
        return min(far, math.ceil(self.steps * math.sqrt(self.dim)) + 1)

    def log_delta(self, epsilon: float, reach: int) -> float:
        """ln δ(ε) from above, for all vectors of the ball."""
        table = _table(self, reach)
        i = min(int(epsilon / self.step), reach - 1)
        part = min(1.0, epsilon / self.step - i)
        logs = np.log((1 - part) * table[i] + part * table[i + 1])
        multipliers = self.steepest * FRACTIONS
        tops = (logs[:, None] - np.arange(len(logs))[:, None] * multipliers).max(axis=0)
        return float((tops + self.log_moment(multipliers)).min()) * (1 - _SLACK) + epsilon / 2 + _SLACK


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
        return math.exp(round(16 * math.log(self._integral.best_tilt(epsilon))) / 16)

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
        near = min(middle(self.pure), max(0.0, guess))
        for _ in range(5):
            levels = Levels.of(self.euclidean, self.dim, self.best_tilt(exactly(near)))
            near = found = max(found, _least(levels, wanted, near))
            if self.delta(exactly(found)).b <= delta.a:  # which has a tilt of its own
                return maximum(ZERO, minimum(self.pure, exactly(found)))
        return self.pure

    def epsilon_above(self, delta: Number) -> Number:
        return self.pure  # a table is not quick


def _least(levels: Levels, wanted: float, near: float) -> float:
    """An ε at which ln δ is just as small as wanted."""
    reach = levels.reach(near)
    if levels.log_delta(0.0, reach) <= wanted:
        return 0.0
    low, high = 0.0, reach * levels.step
    for _ in range(28):
        centre = (low + high) / 2
        low, high = (centre, high) if levels.log_delta(centre, reach) > wanted else (low, centre)
    return high * (1 + 1e-8)


def _moment(shift: float, tilt: float) -> tuple[float, float]:
    """ln E[e^(tilt·loss)] of one coordinate, and its derivative by the squared shift."""
    s, decay = tilt, math.exp(-(2 * tilt + 1) * shift)
    inside = (s + 1 + s * decay) / (2 * s + 1)
    return s * shift + math.log(inside), (s - s * decay / inside) / (2 * shift)


@lru_cache(maxsize=3)
def _table(levels: Levels, reach: int) -> Array:
    """e^(−y/2) δ(y) from above, by y from 0 to `reach` steps and by cost."""
    if levels.counted:
        return _counted(levels, reach)
    table = _gaussian(levels, reach)
    for level in levels.levels:
        cost = level**2 + levels.price
        for first in range(cost, levels.largest_cost + 1, cost):  # what was reached with this level can be used again
            last = min(first + cost, levels.largest_cost + 1)
            more = _one_more(table[:, first - cost : last - cost], level, levels.step)
            np.maximum(table[:, first:last], more, out=table[:, first:last])
    return table


def _counted(levels: Levels, reach: int) -> Array:
    tables = np.full((levels.dim + 1, reach + 1, levels.largest_cost + 1), 1e-290)
    for level in levels.levels[1:]:
        for count in range(1, levels.dim + 1):
            target = tables[count, :, level**2 :]
            more = _one_more(tables[count - 1, :, : target.shape[1]], level, levels.step)
            np.maximum(target, more, out=target)
    return np.asarray(tables[-1].copy())


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
    """All shifts that are small, by what they cost: docs/proofs/levels.md, point 4."""
    costs = np.arange(0, levels.largest_cost + ROUNDED, ROUNDED, dtype=float)
    squares = costs * levels.step**2 / ((1 + levels.price / SMALL**2) * (1 + levels.premium))
    largest = (SMALL * levels.step) ** 2
    whole = largest
    for _ in range(60):
        whole = largest / (1 - 1 / 8 - whole / 16)
    variance = 2 * whole + squares
    for _ in range(60):
        variance = 2 * whole + (squares + 3 / 8 * whole * np.log(variance / (2 * whole))) / (1 - whole / 16)
    deviation, y = np.sqrt(variance * (1 + 1e-12)), levels.step * np.arange(reach + 1)[:, None]
    near, far = y / deviation - deviation / 2, y / deviation + deviation / 2
    first, second = np.exp(-y / 2) * _normal_tail(near), np.exp(y / 2) * _normal_tail(far)
    found = first - second + 64 * _U * (1 + far**2) * first + 1e-290
    return np.asarray(found[:, -(-np.arange(levels.largest_cost + 1) // ROUNDED)])


def _normal_tail(x: Array) -> Array:
    return np.asarray(np.frompyfunc(math.erfc, 1, 1)(x / math.sqrt(2)), dtype=float) / 2
