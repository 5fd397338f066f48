"""How a ball is cut into levels, and tables of what all but the largest shifts have. Proof: docs/proofs/levels.md.

Shifts are rounded, at random, to levels that are whole numbers of a step. A table holds the largest e^(−ε/2) δ(ε) of
all vectors of levels whose squares sum up to each whole number. It grows by one coordinate at a time, from above.
Levels are added from the smallest to the largest. Some tables are also built the other way round, and the lesser of
the two is kept.
"""

import math
from collections.abc import Iterator
from functools import cached_property, lru_cache
from itertools import pairwise

import numpy as np

from dpassay.pipeline.pair import Array
from dpassay.values import dataclass

COUNTED = 40  # up to this many coordinates they are counted, so that no Gaussian stands for the smallest shifts
SMALL = range(4, 8)  # steps: up to one of these shifts count as Gaussian; the first if coordinates have a price
SMOOTH = 24  # squared steps, at least: the variance of a Gaussian that is added first, and makes rounding cheaper
ROUNDED = 4  # costs of small shifts are rounded up to a multiple of this
JOINED = 8  # neighboring costs share one column; also how many tables a level has where coordinates are counted
BOTH_WAYS = (1.0, 1.17)  # tables of these levels are built from both ends; 1 is the level of equal shifts
LARGE = 0.12  # at a larger δ the search is more thorough: a small error in δ is a large one in ε there
FRACTIONS = np.geomspace(0.1, 1, 30)  # of the steepest multiplier, among which the best is taken
_U = 2.0**-53


@dataclass(frozen=True)
class Levels:
    """How a ball is cut into levels: `steps` steps make its norm, and each coordinate costs its square and a `price`.

    Costs are in squared steps. Any price and any `steepest` multiplier give a valid bound, and so do all `small` shifts
    up to ½ (in steps), if coordinates are not counted. With `both_ways` some tables are built from both ends.
    """

    step: float
    steps: int
    dim: int
    price: int
    steepest: float
    small: int = SMALL[0]
    both_ways: bool = False

    @classmethod
    def of(cls, norm: float, dim: int, tilt: float, epsilon: float) -> "Levels":
        """Levels that are good at an ε where losses are weighted by e^(tilt·loss)."""
        mean, (few, many) = norm**2 / dim, few_and_many(norm, dim, epsilon)
        worth, slope = _moment(math.sqrt(mean), tilt)
        price, steps, small, large = 0, max(40, min(48, round(226 / math.sqrt(dim)))), 0, max(few, many) > LARGE
        if dim > COUNTED:
            tangent = max(0.0, worth / slope - mean) / norm**2 if few < 0.985 * many else 0.0
            price, steps = _priced(tangent, large, short=epsilon < 1.25 * norm)
            small = _small(norm, steps, dim, price)
        step = norm / steps * (1 + 4 * _U)
        return cls(step, steps, dim, price, 1.5 * slope * step**2, small, both_ways=large)

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
        """Upper bound on the relative increase of a shift's cost by rounding to one of two levels."""
        alone = (b - a) ** 2 / 4 * (1 + b * self.step / 2) * math.exp((b - a) * self.step)
        apart = b**2 - a**2
        bend = self.step / (4 * a) + min(1 / (6 * self.smooth), 1 / (2 * a**2))
        smoothed = apart**2 / 8 * ((1 + math.exp(bend * apart)) / 2) ** 2 * bend
        return (min(alone, smoothed) + self.steepest * apart**2 / 8) / (a**2 + self.price)

    @cached_property
    def premium(self) -> float:
        """Upper bound on the relative increase of a vector's cost by rounding, if coordinates are not counted."""
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

    @property
    def multipliers(self) -> Array:
        """λ, one of which is to be the best."""
        return np.asarray(self.steepest * FRACTIONS)

    @cached_property
    def firsts(self) -> tuple[int, ...]:
        """What the largest level of a vector can be; 0: there is none."""
        return self.levels if self.counted else (0, *self.levels)

    @property
    def usual(self) -> float:
        """About the best λ, for which columns are joined."""
        return self.steepest / 2

    @property
    def log_moments(self) -> Array:
        """ln E[e^(λ·cost)] of a rounded vector, from above, by the two levels around its largest shift and λ."""
        if self.counted:
            each = (1 + np.array(self.levels[1:])[:, None] * self.step / 2) * math.exp(self.step) / 4
            spread = (self.steps + math.sqrt(self.dim) / 2) ** 2 / 2
            return np.asarray(self.multipliers * (self.cost + self.dim * each) + self.multipliers**2 * spread)
        return np.asarray(self.multipliers * ((1 + self.premium) * self.cost + ROUNDED))[None]

    def reach(self, epsilon: float) -> int:
        """How many steps of ε a table is to hold."""
        quarter, at = self.steps / 4, epsilon / self.step
        far = math.ceil(quarter * math.ceil((at + max(0.7 * self.steps, 1.6 * self.steps - at / 2)) / quarter))
        return min(far, math.ceil(self.steps * math.sqrt(self.dim)) + 1)


def _priced(tangent: float, large: bool, short: bool) -> tuple[int, int]:
    """The price of a coordinate in squared steps, and how many steps make the norm, where coordinates are not counted.

    A price is best at about 0.6 of where the tangent meets the axis, and is a whole number. Steps are finer at a large
    δ, and finest if ε is small too, as tables have fewer rows then.
    """
    fewest, most, without = (90, 100, 100) if large else (74, 84, 80)
    finest, least = (120, 0.45) if large and short else (most, 0.6)
    price = round(0.6 * tangent * most**2) or int(tangent * finest**2 > least)
    if not price:
        return 0, without
    return price, max(fewest, min(finest if price == 1 else most, round(math.sqrt(price / (0.6 * tangent)))))


def few_and_many(norm: float, dim: int, epsilon: float) -> tuple[float, float]:
    """δ(ε) of one shift or two equal ones, whichever is larger, and about that of many, which are nearly Gaussian.

    >>> few_and_many(1.0, 100, 1.0)[0] == 1 - math.exp((1 - 2**0.5) / 2) * (1 + (2**0.5 - 1) / 4)
    True
    """
    two, each = math.sqrt(2) * norm - epsilon, norm / math.sqrt(dim)
    few = max(0, 1 - math.exp(min(0, (epsilon - norm) / 2)), 1 - math.exp(-two / 2) * (1 + two / 4) if two > 0 else 0)
    deviation = norm * math.sqrt(1 - each / 3 + 0.15 * each**2)
    near, far = (epsilon / deviation + sign * deviation / 2 for sign in (-1, 1))
    more = math.exp(epsilon) * math.erfc(far / math.sqrt(2)) if epsilon < 700 else 0.0
    return few, (math.erfc(near / math.sqrt(2)) - more) / 2


def _small(norm: float, steps: int, dim: int, price: int) -> int:
    """Number of steps up to which shifts are approximated as Gaussian, chosen to minimize the added variance."""

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


@lru_cache(maxsize=2)
def others(levels: Levels, reach: int) -> dict[int, tuple[Array, ...]]:
    """By the largest level, 0 if there is none: e^(−y/2) δ(y) from above of all vectors of levels up to it.

    Rows are y from 0 to `reach` steps, columns costs, joined. Costs that leave no room for one more such level are left
    out. Where coordinates are counted, the first table has all but one, the next all but two, and so on.
    """
    return dict(_counted(levels, reach) if levels.counted else _uncounted(levels, reach))


def _uncounted(levels: Levels, reach: int) -> Iterator[tuple[int, tuple[Array, ...]]]:
    table = _gaussian(levels, reach)
    yield 0, (_joined(table, levels.usual),)
    for level in levels.levels:
        cost, size = levels.paid(level), levels.largest_cost + 1 - levels.paid(level)
        if size <= cost:
            return
        table = table[:, :size]
        for first in range(cost, size, cost):  # what was reached with this level can be used again
            last = min(first + cost, size)
            more = _one_more(table[:, first - cost : last - cost], level, levels.step)
            np.maximum(table[:, first:last], more, out=table[:, first:last])
        yield level, (_joined(table, levels.usual),)


def _joined(table: Array, multiplier: float) -> Array:
    """The largest entry of neighboring columns, row by row, each times e^(−λ·cost), where the first one costs 0."""
    apart = 1
    while apart < JOINED:  # pairs, then pairs of pairs
        more = table[:, 1::2] * math.exp(-multiplier * apart)
        table = table[:, ::2].copy()
        np.maximum(table[:, : more.shape[1]], more, out=table[:, : more.shape[1]])
        apart *= 2
    return table


def _counted(levels: Levels, reach: int) -> Iterator[tuple[int, tuple[Array, ...]]]:
    tables = np.full((levels.dim, reach + 1, levels.largest_cost + 1), 1e-290)
    yield 0, (np.full((reach + 1, 1), 1e-290),)
    for level in levels.levels[1:]:
        left = min(levels.largest_cost + 1 - level**2, (levels.dim - 1) * level**2 + 1)
        if left <= level**2:
            return
        _add(tables[:, :, :left], level, levels.step)
        if levels.both_ways and BOTH_WAYS[0] <= level * math.sqrt(levels.dim) / levels.steps <= BOTH_WAYS[1]:
            other_way = np.full((levels.dim, reach + 1, left), 1e-290)
            for each in range(level, 0, -1):
                _add(other_way, each, levels.step)
            np.minimum(tables[:, :, :left], other_way, out=tables[:, :, :left])
        yield level, tuple(_joined(table[:, :left], levels.usual) for table in tables[: -JOINED - 1 : -1])


def _add(tables: Array, level: int, step: float) -> None:
    """A coordinate of this level, or more of them, in tables by the number of coordinates."""
    for count in range(1, len(tables)):
        target = tables[count, :, level**2 :]
        np.maximum(target, _one_more(tables[count - 1, :, : target.shape[1]], level, step), out=target)


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
