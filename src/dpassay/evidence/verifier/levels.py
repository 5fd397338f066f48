"""Laplace noise on all shift vectors of a bounded l2 norm at once, level by level: docs/proofs/levels.md.

Shifts are rounded at random to whole numbers of a step; a table by the sum of their squares (and by their number, where
there are few) holds the most that e^(−ε/2)·δ(ε) can be. Doubles; whatever they lose is added.
"""

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dpassay.errors import CertificateError
from dpassay.evidence.verifier.lattice import spend
from dpassay.evidence.verifier.numbers import ONE, Number, above, at_most_one, below, iv

Array = NDArray[np.float64]
_FEW, _SMALL, _UNIT = 32, 4, 8
_NORM = 8.0  # beyond it the table would be too coarse to be worth its time
_ETA = 2.0**-53
_MORE = 1e-9


@dataclass(frozen=True)
class Ladder:
    """The bound for n coordinates of a bounded l2 norm, in scales; any tilt above 0 is allowed."""

    pure: Number
    norm: Number
    dim: int
    tilt: float

    def delta(self, epsilon: Number, upper: bool) -> Number:
        norm, at = above(self.norm), below(epsilon)
        if not 1e-6 < norm <= _NORM:
            raise CertificateError(f"levels are for norms of a shift from 1e-6 to {_NORM:g} scales")
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
    price, steps = 0, max(24, min(48, round(96 / math.sqrt(dim))))
    if dim > _FEW:
        each = 0.6 * max(0.0, worth / slope - norm**2 / dim) / norm**2
        price, steps = min(round(each * 70**2), 6400), 64
        steps = max(60, min(80, round(math.sqrt(price / each)))) if price else steps
    g = norm / steps * (1 + 4 * _ETA)
    steepest = 1.5 * slope * g**2
    last = math.ceil(steps / 4 * math.ceil((epsilon / g + 0.7 * steps) / (steps / 4)))
    last = min(last, math.ceil(steps * math.sqrt(dim)) + 1)
    multipliers = steepest * np.geomspace(0.1, 1, 30)
    if dim <= _FEW:
        table, moment = _few(g, steps, dim, last, multipliers)
    else:
        table, moment = _many(g, steps, dim, last, multipliers, price)
    i = min(int(epsilon / g), last - 1)
    part = min(1.0, epsilon / g - i)
    logs = np.log((1 - part) * table[i] + part * table[i + 1])
    tops = np.array([(logs - each * np.arange(len(logs))).max() for each in multipliers])
    return float((tops + moment).min()) * (1 - _MORE) + epsilon / 2 + _MORE


def _moment(shift: float, tilt: float) -> tuple[float, float]:
    """ln E[e^(tilt·loss)] of one coordinate and its derivative by the squared shift: what good levels depend on."""
    decay = math.exp(-(2 * tilt + 1) * shift)
    inside = (tilt + 1 + tilt * decay) / (2 * tilt + 1)
    return tilt * shift + math.log(inside), (tilt - tilt * decay / inside) / (2 * shift)


def _few(g: float, steps: int, dim: int, last: int, multipliers: Array) -> tuple[Array, Array]:
    """A table by the number of coordinates and the sum of their squares; ln E[e^(λ·sum)]."""
    most = int((steps + math.sqrt(dim)) ** 2) + 1
    spend(2 * dim * steps * (last + steps) * most)
    table = np.full((dim + 1, last + 1, most + 1), 1e-290)
    for level in range(1, steps + 1):
        square = level**2
        for count in range(dim):
            more = _with(table[count, :, : most + 1 - square], level, g)
            table[count + 1, :, square:] = np.maximum(table[count + 1, :, square:], more)
    mean = steps**2 + dim / 4 * (1 + steps * g / 2) * math.exp(g)
    return table[dim], multipliers * mean + (multipliers * (steps + math.sqrt(dim) / 2)) ** 2 / 2


def _many(g: float, steps: int, dim: int, last: int, multipliers: Array, price: int) -> tuple[Array, Array]:
    """A table by the sum of squares and of a price for each coordinate; ln E[e^(λ·sum)]."""
    steepest = float(multipliers[-1])

    def excess(a: int, b: int) -> float:
        mean = (b - a) ** 2 / 4 * (1 + b * g / 2) * math.exp((b - a) * g)
        return (mean + steepest * (b**2 - a**2) ** 2 / 8) / (a**2 + price)

    levels = [_SMALL, _SMALL + 1]
    while levels[-1] < steps:
        a = levels[-1]
        fits = [b for b in range(a + 2, steps + 1) if excess(a, b) <= excess(_SMALL, _SMALL + 1)]
        levels.append(max(fits, default=a + 1))
    cells = list(pairwise(levels))
    total, premium = steps**2 + price * dim, 1 + max(excess(a, b) for a, b in cells)
    most = int(total * max(premium, *((b**2 + price) / (a**2 + price) for a, b in cells))) + _UNIT + 1
    spend(4 * len(levels) * (last + steps) * most)
    costs = _UNIT * np.arange(most // _UNIT + 2, dtype=float)
    squares: Array = costs * (g**2 / (premium * (1 + price / _SMALL**2)))
    y: Array = g * np.arange(last + 1, dtype=float)[:, None]
    table = _small(y, squares, (_SMALL * g) ** 2)
    table = table[:, (np.arange(most + 1) + _UNIT - 1) // _UNIT]
    for level in levels:
        cost = level**2 + price
        for start in range(0, most + 1 - cost, cost):
            end = min(start + cost, most + 1 - cost)
            more = _with(table[:, start:end], level, g)
            table[:, start + cost : end + cost] = np.maximum(table[:, start + cost : end + cost], more)
    return table, multipliers * (premium * total + _UNIT)


def _with(table: Array, level: int, g: float) -> Array:
    """Values at 0, g, 2g, … of functions that are even and convex on either side of 0, after one more coordinate."""
    rows, h = len(table), level * g
    whole = np.concatenate([table[np.minimum(np.arange(level, 0, -1), rows - 1)], table, table[[-1] * level]])
    sums = np.cumsum(whole[::-1], axis=0)[::-1]
    inner = sums[1 : rows + 1] * (1 + 4 * len(whole) * _ETA) - sums[2 * level : 2 * level + rows]
    moved = math.exp(-h / 2) * ((1 / 2 + g / 8) * (whole[:rows] + whole[2 * level :]) + g / 4 * inner)
    own = math.exp(-h / 2) * np.expm1(np.maximum(0, level - np.arange(rows)) * g / 2)
    return np.asarray(moved + own[:, None])


def _small(y: Array, squares: Array, largest: float) -> Array:
    """Shifts with squares up to `largest` and of these sums, by the Gaussian that stands for them all."""
    whole = largest
    for _ in range(60):
        whole = largest / (7 / 8 - whole / 16)
    variance = squares + 2 * whole
    for _ in range(60):
        variance = 2 * whole + (squares + 3 / 8 * whole * np.log(variance / (2 * whole))) / (1 - whole / 16)
    sigma = np.sqrt(variance * (1 + 1e-12))
    erfc = np.frompyfunc(math.erfc, 1, 1)
    near, far = ((y / sigma + end) / math.sqrt(2) for end in (-sigma / 2, sigma / 2))
    first = np.exp(-y / 2) / 2 * np.asarray(erfc(near), dtype=float)
    second = np.exp(y / 2) / 2 * np.asarray(erfc(far), dtype=float)
    return np.asarray(first - second + 64 * _ETA * (1 + (y / sigma + sigma / 2) ** 2) * first + 1e-290)
