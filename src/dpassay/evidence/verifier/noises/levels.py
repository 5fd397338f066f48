"""Laplace noise on all shift vectors of a bounded l2 norm at once, level by level: docs/proofs/levels.md.

Shifts are rounded at random to whole numbers of a step; a table by the sum of their squares (and by their number, where
there are few) holds the most that e^(−ε/2)·δ(ε) of all but the largest can be. Those are looked at one after the other,
where it matters most. Doubles; what they lose is added.
"""

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dpassay.errors import CertificateError
from dpassay.evidence.verifier.arithmetic.numbers import ONE, Number, above, at_most_one, below, iv
from dpassay.evidence.verifier.arithmetic.work import make_room, spend
from dpassay.values import dataclass

Array = NDArray[np.float64]
Tables = dict[int, list[Array]]  # by the largest level, and by how many coordinates more than one are left out
_FEW, _UNIT = 40, 4
_WIDTH = 8  # costs that share a column; also how many tables a level has where coordinates are counted
_ROUNDS = 640  # how often what is largest is looked at more closely; half as often if coordinates are not counted
_NORM = 24.0  # beyond it the table would be too coarse to be worth its time
_ETA, _MORE = 2.0**-53, 1e-9
_KEPT = 1024  # results, more than a single certificate has room for: the work of each is counted once
_FOUND: dict[tuple[float, int, float, float], float] = {}  # of the last tables, as files often repeat a step


@dataclass(frozen=True)
class Ladder:
    """The bound for n coordinates of a bounded l2 norm, in scales; any tilt above 0 is allowed."""

    pure: Number
    norm: Number
    dim: int
    tilt: float

    def delta(self, epsilon: Number, upper: bool) -> Number:
        norm, at = above(self.norm), below(epsilon)
        if not 1e-6 < norm <= _NORM or self.dim < 2:
            raise CertificateError(f"levels are for norms from 1e-6 to {_NORM:g} scales, and two or more coordinates")
        if at < 0 or at > above(self.pure):
            return ONE
        return at_most_one(iv.exp(iv.mpf(log_delta(norm, self.dim, self.tilt, at))))


@dataclass(frozen=True)
class LevelSteps:
    """Levels above 0, in steps g, and what a vector of them may cost; tables are by the largest level, 0 for none.

    `limit` is the number of coordinates, where they are counted. `moments` are ln E[e^(λ·cost)] for each of `pairs`.
    Columns are joined by e^(−λ·cost) for the multiplier `usual`.
    """

    g: float
    last: int
    levels: list[int]
    price: int
    most: int
    limit: float
    rounds: int
    multipliers: Array
    moments: Array
    usual: float
    work: int
    tables: Callable[[], Tables]

    def cost(self, level: int) -> int:
        return level**2 + self.price

    @property
    def room(self) -> int:
        """At least as many doubles as all tables have."""
        each, counts = (1, 1) if self.limit == math.inf else (_WIDTH, int(self.limit))
        return (self.last + 1) * self.most * (len(self.levels) * each // _WIDTH + 1 + 2 * counts)

    @property
    def pairs(self) -> list[tuple[int, ...]]:
        """Which levels, by their place, can be the largest of a rounded vector: those around its largest shift."""
        around = [(i, i + 1) for i in range(1, len(self.levels))]
        return [(0,), *around] if self.limit == math.inf else [(0, 1), *around]


def log_delta(norm: float, dim: int, tilt: float, epsilon: float) -> float:
    """ln δ(ε), from above.

    >>> all(math.log(1 - math.exp((e - 1) / 2)) <= log_delta(1.0, 2, 2.0, e) for e in (0.1, 0.5, 0.9))  # of one shift 1
    True
    """
    worth, slope = _moment(norm / math.sqrt(dim), tilt)
    if not 0 < slope < 1e15:
        raise CertificateError("the tilt is too small or too large for levels")
    few, many = _few_and_many(norm, dim, epsilon)
    price, steps, large = 0, max(40, min(48, round(226 / math.sqrt(dim)))), max(few, many) > 0.12
    if dim > _FEW:
        tangent = max(0.0, worth / slope - norm**2 / dim) / norm**2
        price, steps = _priced(tangent if few < 0.985 * many else 0.0, large, epsilon < 1.25 * norm)
    g = norm / steps * (1 + 4 * _ETA)
    multipliers = 1.5 * slope * g**2 * np.geomspace(0.1, 1, 30)
    beyond = max(0.7 * steps, 1.6 * steps - epsilon / g / 2)
    last = math.ceil(steps / 4 * math.ceil((epsilon / g + beyond) / (steps / 4)))
    last = min(last, math.ceil(steps * math.sqrt(dim)) + 1)
    if dim <= _FEW:
        ladder = _few(g, steps, dim, last, multipliers, large)
    else:
        ladder = _many(g, steps, dim, last, multipliers, price)
    key = norm, dim, tilt, epsilon
    spend(ladder.work, key)  # also if another certificate had it, so that a verdict does not depend on what came before
    make_room(ladder.room)
    if key not in _FOUND:
        _FOUND[key] = _least(ladder, epsilon / g)
        for old in list(_FOUND)[:-_KEPT]:
            del _FOUND[old]
    return _FOUND[key] * (1 - _MORE) + epsilon / 2 + _MORE


def _priced(tangent: float, large: bool, short: bool) -> tuple[int, int]:
    """The price of a coordinate in squared steps, and how many steps make the norm: more at a large δ and a small ε."""
    fewest, most, without = (90, 100, 100) if large else (74, 84, 80)
    finest, least = (120, 0.45) if large and short else (most, 0.6)
    price = round(min(0.6 * most**2 * tangent, 6420.0)) or int(finest**2 * tangent > least)
    if not price:
        return 0, without
    return price, max(fewest, min(finest if price == 1 else most, round(math.sqrt(price / (0.6 * tangent)))))


def _few_and_many(norm: float, dim: int, epsilon: float) -> tuple[float, float]:
    """δ(ε) of one or of two equal shifts, and that of a Gaussian like that of many shifts."""
    room, few = math.sqrt(2) * norm - epsilon, 0.0
    if room > 0:
        few = max(-math.expm1((epsilon - norm) / 2), 1 - math.exp(-room / 2) * (1 + room / 4))
    h = norm / math.sqrt(dim)
    sigma = norm * math.sqrt(1 - h / 3 + 3 / 20 * h**2)
    one, other = (math.erfc((epsilon / sigma + end) / math.sqrt(2)) / 2 for end in (-sigma / 2, sigma / 2))
    return few, one - math.exp(epsilon) * other if epsilon < 700 else one


def _least(steps: LevelSteps, at: float) -> float:
    """The least bound on ln U at this many steps that multipliers give, one for each pair of largest levels."""
    i = min(int(at), steps.last - 1)
    part = min(1.0, at - i)
    tables = steps.tables()
    near, far = (np.exp(_row(steps, tables, row)) for row in (i, i + 1))
    rows = np.log((1 - part) * near + part * far + 1e-300)
    return float(max(bound.min() for bound in _bounds(steps, rows)))


def _bounds(steps: LevelSteps, tops: Array) -> list[Array]:
    """The largest of each pair of levels, times E[e^(λ·cost)]."""
    return [tops[list(pair)].max(axis=0) + moment for pair, moment in zip(steps.pairs, steps.moments, strict=True)]


@dataclass(frozen=True)
class _Start:
    """Vectors whose largest levels are known: a walk from a row, one jump for each. Others are up to `below`."""

    count: int
    below: int
    cost: int
    place: int
    mass: Array
    own: float
    worth: Array

    def jump(self, steps: LevelSteps, level: int) -> "_Start | None":
        """One more coordinate of a level, if there is room for it."""
        cost = self.cost + steps.cost(level)
        if cost > steps.most or self.count >= steps.limit:
            return None
        g, places = steps.g, self.place + np.arange(len(self.mass))
        own = self.own + float((self.mass * _alone(places, level, g)).sum())
        jump = math.exp(-level * g / 2) * np.array([1 / 2 + g / 8, *[g / 4] * (2 * level - 1), 1 / 2 + g / 8])
        mass, count = np.convolve(self.mass, jump), self.count + 1
        return _Start(count, level, cost, self.place - level, mass, own, self.worth)

    def with_others(self, steps: LevelSteps, tables: Tables, below: int) -> "_Start":
        """What vectors have with others of levels up to this one, times e^(−λ·cost): its logarithm for each λ."""
        below = below if self.count < steps.limit else 0
        others = tables[below][min(max(0, self.count - 1), len(tables[below]) - 1)]
        others = others[:, : (steps.most - self.cost) // _WIDTH + 1]
        weights, places = np.zeros(len(others)), np.abs(self.place + np.arange(len(self.mass)))
        np.add.at(weights, np.minimum(places, len(others) - 1), self.mass)
        logs = np.log(np.einsum("y,yb->b", weights, others) + self.own)  # without threads
        costs = self.cost + _WIDTH * np.arange(len(logs))
        worth = np.array([(logs - each * costs).max() for each in steps.multipliers])
        if below or steps.limit == math.inf:  # a column stands for several costs
            worth += (_WIDTH - 1) * np.maximum(0, steps.usual - steps.multipliers)
        worth = np.minimum(worth, self.worth)
        return _Start(self.count, below, self.cost, self.place, self.mass, self.own, worth)


def _row(steps: LevelSteps, tables: Tables, row: int) -> Array:
    """ln of the most that U·e^(−λ·cost) can be at a row, by the largest level and λ; what is largest is looked into."""
    nothing = _Start(0, 0, 0, row, np.ones(1), 0.0, np.full(len(steps.multipliers), math.inf))
    families = [[nothing.with_others(steps, tables, 0)]]
    for level in steps.levels:
        one = nothing.jump(steps, level)
        families.append([one.with_others(steps, tables, _next(tables, level + 1))] if one else [])
    tops, final = (np.array([_largest(steps, family, all_) for family in families]) for all_ in (True, False))
    for _ in range(steps.rounds):
        bounds = _bounds(steps, tops)
        worst = int(np.argmax([bound.min() for bound in bounds]))
        bound, floor = bounds[worst], final[list(steps.pairs[worst])].max(axis=0) + steps.moments[worst]
        lower = (floor < bound.min()) & (bound > floor)  # where something can still be gained
        if not lower.any():
            break
        at = int(np.where(lower, bound, math.inf).argmin())
        _, i, k = max(
            (float(start.worth[at]), i, k)
            for i in steps.pairs[worst]
            for k, start in enumerate(families[i])
            if start.below
        )
        start = families[i].pop(k)
        longer = start.jump(steps, start.below)
        families[i] += [longer.with_others(steps, tables, start.below)] if longer else []
        families[i].append(start.with_others(steps, tables, _next(tables, start.below)))
        tops[i], final[i] = (_largest(steps, families[i], all_) for all_ in (True, False))
    return tops


def _next(tables: Tables, level: int) -> int:
    """The largest level below this one that has a table."""
    return max(each for each in tables if each < level)


def _largest(steps: LevelSteps, family: list[_Start], all_: bool) -> Array:
    """The largest of all vectors, or of those that have no other levels, for each λ."""
    none = np.full(len(steps.multipliers), -math.inf)
    return np.asarray(np.max([none, *(start.worth for start in family if all_ or not start.below)], axis=0))


def _alone(places: NDArray[np.int64], level: int, g: float) -> Array:
    """What one coordinate has without any other."""
    return np.asarray(math.exp(-level * g / 2) * np.expm1(np.maximum(0, level - np.abs(places)) * g / 2))


def _moment(shift: float, tilt: float) -> tuple[float, float]:
    """ln E[e^(tilt·loss)] of one coordinate and its derivative by the squared shift: what good levels depend on."""
    decay = math.exp(-(2 * tilt + 1) * shift)
    inside = (tilt + 1 + tilt * decay) / (2 * tilt + 1)
    return tilt * shift + math.log(inside), (tilt - tilt * decay / inside) / (2 * shift)


def _few(g: float, steps: int, dim: int, last: int, multipliers: Array, large: bool) -> LevelSteps:
    """Tables by the number of other coordinates and the sum of their squares; ln E[e^(λ·sum)]."""
    most, usual = int((steps + math.sqrt(dim)) ** 2) + 1, float(multipliers[-1]) / 2
    twice = [level for level in range(1, steps + 1) if large and 1 <= level * math.sqrt(dim) / steps <= 1.17]
    work = _work(((dim + 4) * steps + dim * sum(twice)) * (last + steps) * most, 0, steps, last, most, _ROUNDS)

    def tables() -> Tables:
        table = np.full((dim, last + 1, most + 1), 1e-290)
        found = {0: [table[0, :, :1]]}
        for level in range(1, steps + 1):
            room = most + 1 - level**2
            if room <= level**2:
                break
            end = min(room, (dim - 1) * level**2 + 1)
            _widen(table[:, :, :end], level, g)
            if level in twice:  # both orders of levels bound the same vectors
                falling = np.full((dim, last + 1, end), 1e-290)
                for each in range(level, 0, -1):
                    _widen(falling, each, g)
                table[:, :, :end] = np.minimum(table[:, :, :end], falling)
            counts = range(dim - 1, max(-1, dim - 1 - _WIDTH), -1)
            found[level] = [_coarse(table[count, :, :end], usual) for count in counts]
        return found

    largest = np.arange(1, steps + 1)[:, None]
    means = steps**2 + dim / 4 * (1 + largest * g / 2) * math.exp(g)
    moments = multipliers * means + (multipliers * (steps + math.sqrt(dim) / 2)) ** 2 / 2
    return LevelSteps(
        g, last, list(range(1, steps + 1)), 0, most, dim, _ROUNDS, multipliers, moments, usual, work, tables
    )


def _widen(table: Array, level: int, g: float) -> None:
    """What tables by the number of coordinates hold if these can also have this level."""
    for count in range(len(table) - 1):
        more = _with(table[count, :, : max(0, table.shape[2] - level**2)], level, g)
        table[count + 1, :, level**2 :] = np.maximum(table[count + 1, :, level**2 :], more)


def _many(g: float, steps: int, dim: int, last: int, multipliers: Array, price: int) -> LevelSteps:
    """Tables by the sum of squares and of a price for each other coordinate; ln E[e^(λ·sum)]."""
    steepest, (small, smooth) = float(multipliers[-1]), _threshold(g * steps, steps, dim, price)

    def excess(a: int, b: int) -> float:
        bend, gap = g / (4 * a) + min(1 / (6 * smooth), 1 / (2 * a**2)), b**2 - a**2
        mean = min(
            (b - a) ** 2 / 4 * (1 + b * g / 2) * math.exp((b - a) * g),
            bend * gap**2 / 8 * ((1 + math.exp(bend * gap)) / 2) ** 2,
        )
        return (mean + steepest * gap**2 / 8) / (a**2 + price)

    levels = [small, small + 1]
    while levels[-1] < steps:
        a = levels[-1]
        fits = [b for b in range(a + 2, steps + 1) if excess(a, b) <= excess(small, small + 1)]
        levels.append(max(fits, default=a + 1))
    cells = list(pairwise(levels))
    total, premium = steps**2 + price * dim, 1 + max(excess(a, b) for a, b in cells)
    most = int(total * max(premium, *((b**2 + price) / (a**2 + price) for a, b in cells))) + _UNIT + 1
    sums, half, usual = 2 * len(levels) * (last + steps) * most, _ROUNDS // 2, steepest / 2
    work = _work(sums, (last + 1) * (most // _UNIT + 2), len(levels), last, most, half)

    def tables() -> Tables:
        costs: Array = _UNIT * np.arange(most // _UNIT + 2, dtype=float) * (g**2 / premium)
        added = _variances(costs, price * g**2, small * g, dim)
        y: Array = g * np.arange(last + 1, dtype=float)[:, None]
        table = _small(y, added, small * g, smooth * g**2)
        table = table[:, (np.arange(most + 1) + _UNIT - 1) // _UNIT]
        found = {0: [_coarse(table, usual)]}
        for level in levels:
            cost = level**2 + price
            if 2 * cost > most:
                break
            for start in range(0, most + 1 - cost, cost):
                end = min(start + cost, most + 1 - cost)
                more = _with(table[:, start:end], level, g)
                table[:, start + cost : end + cost] = np.maximum(table[:, start + cost : end + cost], more)
            found[level] = [_coarse(table[:, : most + 1 - cost], usual)]
        return found

    moments = np.tile(multipliers * (premium * total + _UNIT), (len(levels), 1))
    return LevelSteps(g, last, levels, price, most, math.inf, half, multipliers, moments, usual, work, tables)


def _work(cells: int, gaussians: int, levels: int, last: int, most: int, rounds: int) -> int:
    """The work of all tables, as measured, and of two rows: two looks for each round, and one for each level."""
    return 8 * cells + 1000 * gaussians + 2 * (levels + 2 * rounds) * (450_000 + 2 * (last + 30) * (most // _WIDTH))


def _coarse(table: Array, usual: float) -> Array:
    """The largest of every few neighboring columns, times e^(−λ·cost) for the usual λ, where the first costs 0."""
    rows, columns = table.shape
    whole = np.zeros((rows, -(-columns // _WIDTH) * _WIDTH))
    whole[:, :columns] = table
    for cost in (1, 2, 4):
        whole = np.maximum(whole[:, ::2], whole[:, 1::2] * math.exp(-usual * cost))
    return whole


def _with(table: Array, level: int, g: float) -> Array:
    """Values at 0, g, 2g, … of functions that are even and convex on either side of 0, after one more coordinate."""
    rows, h = len(table), level * g
    whole = table[np.minimum(np.abs(np.arange(-level, rows + level)), rows - 1)]
    sums = np.cumsum(whole[::-1], axis=0)[::-1]
    moved = sums[1 : rows + 1] * (1 + 4 * len(whole) * _ETA)
    moved -= sums[2 * level : 2 * level + rows]
    moved *= g / 4
    ends = whole[:rows] + whole[2 * level :]
    ends *= 1 / 2 + g / 8
    moved += ends
    moved *= math.exp(-h / 2)
    moved[:level] += _alone(np.arange(min(level, rows)), level, g)[:, None]
    return np.asarray(moved)


def _threshold(norm: float, steps: int, dim: int, price: int) -> tuple[int, int]:
    """Up to which level shifts count as small, at most ½, and the variance that is added for them, in squared steps."""

    def harm(choice: tuple[int, int]) -> float:
        level, smooth = choice
        gain = norm / 3 * min(level / steps, 1 / math.sqrt(dim))
        return (smooth + level**2 / 6 * math.log(steps**2 / smooth)) / steps**2 - gain

    choices = [(level, max(24, math.ceil(1.2 * level**2))) for level in range(4, 8)]
    fit = [choice for choice in choices if choice[0] * norm / steps <= 1 / 2]
    if not fit:
        raise CertificateError("levels are too coarse for a shift of this length in this many coordinates")
    return fit[0] if price else min(fit, key=harm)


def _variances(costs: Array, price: float, tau: float, dim: int) -> Array:
    """The largest sum of h² − h³/3 + 3h⁴/20 over at most n shifts h ≤ τ whose h² + price sum up to a cost."""
    costs = np.minimum(costs, dim * (tau**2 + price))
    zeta, low, high = 1 + 3 / 20 * tau**2, 0.0, tau
    for _ in range(60):
        half = (low + high) / 2
        low, high = (half, high) if half**3 / 6 < price * (zeta - half / 2) else (low, half)
    t = np.clip(np.sqrt(np.maximum(0, costs / dim - price)), low, tau)
    beta = t**3 / 6 - price * (zeta - t / 2)
    count = np.where(beta > 0, dim, costs / (tau**2 + price))
    return np.asarray((zeta - t / 2) * costs + count * beta)


def _small(y: Array, more: Array, tau: float, smooth: float) -> Array:
    """Shifts up to τ that add so much to a variance, by the Gaussian that stands for them all."""
    theta = tau**2 / (1 - tau / 3)
    first, less = max(smooth, theta), 5 / 12 * theta
    variance = more + first
    for _ in range(60):
        variance = first + more + theta / 6 * np.log((variance - less) / (first - less))
    sigma = np.sqrt(variance * (1 + 1e-12))
    near, far = ((y / sigma + end) / math.sqrt(2) for end in (-sigma / 2, sigma / 2))
    for row in (*near, *far):  # one at a time, as Python's numbers take four times the memory
        row[:] = list(map(math.erfc, row.tolist()))
    one, other = np.exp(-y / 2) / 2 * near, np.exp(y / 2) / 2 * far
    return np.asarray(one - other + 64 * _ETA * (1 + (y / sigma + sigma / 2) ** 2) * one + 1e-290)
