"""Laplace noise on all shift vectors of a bounded l2 norm at once, level by level: docs/proofs/levels.md.

Shifts are rounded at random to whole numbers of a step; a table by the sum of their squares (and by their number, where
there are few) holds the most that e^(−ε/2)·δ(ε) of all but the two largest can be. Doubles; what they lose is added.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dpassay.errors import CertificateError
from dpassay.evidence.verifier.lattice import spend
from dpassay.evidence.verifier.numbers import ONE, Number, above, at_most_one, below, iv

Array = NDArray[np.float64]
Ladders = Iterator[tuple[int, int, Array]]  # the two largest levels, and a table of what others have
_FEW, _UNIT = 32, 4
_NORM = 8.0  # beyond it the table would be too coarse to be worth its time
_ETA = 2.0**-53
_MORE = 1e-9
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
            raise CertificateError(
                f"levels are for norms of a shift from 1e-6 to {_NORM:g} scales, and two or more coordinates"
            )
        if at < 0 or at > above(self.pure):
            return ONE
        return at_most_one(iv.exp(iv.mpf(log_delta(norm, self.dim, self.tilt, at))))


def log_delta(norm: float, dim: int, tilt: float, epsilon: float) -> float:
    """ln δ(ε), from above.

    >>> all(math.log(1 - math.exp((e - 1) / 2)) <= log_delta(1.0, 2, 2.0, e) for e in (0.1, 0.5, 0.9))  # of one shift 1
    True
    """
    worth, slope = _moment(norm / math.sqrt(dim), tilt)
    if not 0 < slope < 1e15:
        raise CertificateError("the tilt is too small or too large for levels")
    price, steps = 0, max(34, min(48, round(192 / math.sqrt(dim))))
    if dim > _FEW:
        each = 0.6 * max(0.0, worth / slope - norm**2 / dim) / norm**2
        price, steps = min(round(each * 70**2), 6400), 64
        steps = max(60, min(80, round(math.sqrt(price / each)))) if price else steps
    g = norm / steps * (1 + 4 * _ETA)
    steepest = 1.5 * slope * g**2
    beyond = max(0.7 * steps, 1.6 * steps - epsilon / g / 2)
    last = math.ceil(steps / 4 * math.ceil((epsilon / g + beyond) / (steps / 4)))
    last = min(last, math.ceil(steps * math.sqrt(dim)) + 1)
    multipliers = steepest * np.geomspace(0.1, 1, 30)
    few = dim <= _FEW
    ladder, moment = (_few if few else _many)(g, steps, dim, last, multipliers, price)
    key = norm, dim, tilt, epsilon
    if key not in _FOUND:  # its work is counted in any case, so that a verdict does not depend on what came before
        _FOUND.update({key: _least(ladder, moment, multipliers, epsilon / g, last, g, price, 1 if few else _UNIT)})
        for old in list(_FOUND)[:-64]:
            del _FOUND[old]
    return _FOUND[key] * (1 - _MORE) + epsilon / 2 + _MORE


def _least(
    ladder: Ladders, moment: Array, multipliers: Array, at: float, last: int, g: float, price: int, unit: int
) -> float:
    """The least bound on ln U at this many steps that a multiplier gives."""
    i = min(int(at), last - 1)
    part = min(1.0, at - i)
    costs = [np.zeros(1, dtype=int)]
    logs = [np.array([math.log(1e-290)])]
    for first, second, others in ladder:
        near, far = (_after(row, [first, second], others, g) for row in (i, i + 1))
        paid = sum(level**2 + price for level in (first, second) if level)
        costs.append(paid + np.arange(len(near)) * unit)
        logs.append(np.log((1 - part) * near + part * far))
    all_costs, all_logs = np.concatenate(costs), np.concatenate(logs)
    tops = np.array([(all_logs - each * all_costs).max() for each in multipliers])
    return float((tops + moment).min())


def _after(row: int, levels: list[int], others: Array, g: float) -> Array:
    """What others have at a row, by cost, after coordinates of these levels: a walk from the row, one jump for each."""
    mass, start, own = np.ones(1), row, 0.0
    for level in levels:
        if level:
            own += float(mass @ _alone(start + np.arange(len(mass)), level, g))
            jump = math.exp(-level * g / 2) * np.array([1 / 2 + g / 8, *[g / 4] * (2 * level - 1), 1 / 2 + g / 8])
            mass, start = np.convolve(mass, jump), start - level
    weights = np.zeros(len(others))
    np.add.at(weights, np.minimum(np.abs(start + np.arange(len(mass))), len(others) - 1), mass)
    return np.asarray(weights @ others + own)


def _alone(places: NDArray[np.int64], level: int, g: float) -> Array:
    """What one coordinate has without any other."""
    return np.asarray(math.exp(-level * g / 2) * np.expm1(np.maximum(0, level - np.abs(places)) * g / 2))


def _moment(shift: float, tilt: float) -> tuple[float, float]:
    """ln E[e^(tilt·loss)] of one coordinate and its derivative by the squared shift: what good levels depend on."""
    decay = math.exp(-(2 * tilt + 1) * shift)
    inside = (tilt + 1 + tilt * decay) / (2 * tilt + 1)
    return tilt * shift + math.log(inside), (tilt - tilt * decay / inside) / (2 * shift)


def _few(g: float, steps: int, dim: int, last: int, multipliers: Array, _price: int) -> tuple[Ladders, Array]:
    """Tables by the number of other coordinates and the sum of their squares; ln E[e^(λ·sum)]."""
    most = int((steps + math.sqrt(dim)) ** 2) + 1
    spend((dim + steps) * steps * (last + steps) * most)

    def ladder() -> Ladders:
        table = np.full((dim - 1, last + 1, most + 1), 1e-290)
        yield from ((first, 0, table[0, :, :1]) for first in range(1, steps + 1))
        for second in range(1, steps + 1):
            room = most + 1 - 2 * second**2
            for count in range(dim - 2 if room > 0 else 0):
                more = _with(table[count, :, : max(0, room - second**2)], second, g)
                table[count + 1, :, second**2 : room] = np.maximum(table[count + 1, :, second**2 : room], more)
            for first in range(second, steps + 1):
                end = min(most + 1 - first**2 - second**2, (dim - 2) * second**2 + 1)
                if end > 0:
                    yield first, second, table[-1, :, :end]

    mean = steps**2 + dim / 4 * (1 + steps * g / 2) * math.exp(g)
    return ladder(), multipliers * mean + (multipliers * (steps + math.sqrt(dim) / 2)) ** 2 / 2


def _many(g: float, steps: int, dim: int, last: int, multipliers: Array, price: int) -> tuple[Ladders, Array]:
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
    spend((4 + len(levels) // _UNIT) * len(levels) * (last + steps) * most)
    costs: Array = _UNIT * np.arange(most // _UNIT + 2, dtype=float) * (g**2 / premium)
    added = _variances(costs, price * g**2, small * g, dim)
    y: Array = g * np.arange(last + 1, dtype=float)[:, None]

    def ladder() -> Ladders:
        table = _small(y, added, small * g, smooth * g**2)
        table = table[:, (np.arange(most + 1) + _UNIT - 1) // _UNIT]
        yield 0, 0, _coarse(table)
        yield from ((first, 0, _coarse(table[:, : most + 1 - first**2 - price])) for first in levels)
        for second in levels:
            cost = second**2 + price
            if 2 * cost > most:
                return
            for start in range(0, most + 1 - cost, cost):
                end = min(start + cost, most + 1 - cost)
                more = _with(table[:, start:end], second, g)
                table[:, start + cost : end + cost] = np.maximum(table[:, start + cost : end + cost], more)
            whole = _coarse(table[:, : most + 1 - 2 * cost])
            for first in levels:
                if first >= second and (end := most + 1 - cost - first**2 - price) > 0:
                    yield first, second, whole[:, : -(-end // _UNIT)]

    return ladder(), multipliers * (premium * total + _UNIT)


def _coarse(table: Array) -> Array:
    """The largest of every few neighbouring columns."""
    rows, columns = table.shape
    whole = np.zeros((rows, -(-columns // _UNIT) * _UNIT))
    whole[:, :columns] = table
    return np.asarray(whole.reshape(rows, -1, _UNIT).max(axis=2))


def _with(table: Array, level: int, g: float) -> Array:
    """Values at 0, g, 2g, … of functions that are even and convex on either side of 0, after one more coordinate."""
    rows, h = len(table), level * g
    whole = np.concatenate([table[np.minimum(np.arange(level, 0, -1), rows - 1)], table, table[[-1] * level]])
    sums = np.cumsum(whole[::-1], axis=0)[::-1]
    inner = sums[1 : rows + 1] * (1 + 4 * len(whole) * _ETA) - sums[2 * level : 2 * level + rows]
    moved = math.exp(-h / 2) * ((1 / 2 + g / 8) * (whole[:rows] + whole[2 * level :]) + g / 4 * inner)
    return np.asarray(moved + _alone(np.arange(rows), level, g)[:, None])


def _threshold(norm: float, steps: int, dim: int, price: int) -> tuple[int, int]:
    """Up to which level shifts count as small, at most ½, and the variance that is added for them, in squared steps."""

    def harm(choice: tuple[int, int]) -> float:
        level, smooth = choice
        gain = norm / 3 * min(level / steps, 1 / math.sqrt(dim))
        return (smooth + level**2 / 6 * math.log(steps**2 / smooth)) / steps**2 - gain

    choices = [(level, max(24, math.ceil(1.2 * level**2))) for level in range(3, 7)]
    fit = [choice for choice in choices if choice[0] * norm / steps <= 1 / 2]
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
    erfc = np.frompyfunc(math.erfc, 1, 1)
    near, far = ((y / sigma + end) / math.sqrt(2) for end in (-sigma / 2, sigma / 2))
    one = np.exp(-y / 2) / 2 * np.asarray(erfc(near), dtype=float)
    other = np.exp(y / 2) / 2 * np.asarray(erfc(far), dtype=float)
    return np.asarray(one - other + 64 * _ETA * (1 + (y / sigma + sigma / 2) ** 2) * one + 1e-290)
