"""Cells of the loss of one sampled step, and windows for sums of many: docs/proofs/lattice-sums.md.

The outputs are those of the one coordinate that counts, in standard deviations of the noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, Protocol, TypeAlias

import numpy as np

from dpassay.core.numbers import Number, down, middle, up
from dpassay.exact.lattice_sum import CellMasses, Window
from dpassay.pipeline.regions import Array

# The record is in the first data set, in the second, in both; or, for batches of fixed size, the dominating pair.
Way: TypeAlias = Literal["remove", "add", "replace", "fixed"]
MOST_POINTS, FEWEST_POINTS = 1 << 20, 1 << 11
MOST_CELLS = 1 << 20
TOLERANCE = 1e-4  # relative to ε: what the lattice may add
_U = 2.0**-53
_SHARE = 36.0  # −ln of the fraction that may lie outside a window, approximately


class Sampled(Protocol):
    """The loss of one step: how often a record takes part, and by how much it then moves the sum."""

    @property
    def rate(self) -> Number: ...

    @property
    def mu(self) -> Number: ...

    @property
    def way(self) -> Way: ...


def losses_at(rate: float, mu: float, x: Array, way: Way) -> Array:
    """The loss at some outputs, in doubles."""
    up = np.logaddexp(math.log1p(-rate), math.log(rate) + mu * x - mu * mu / 2)
    if way == "replace":
        return np.asarray(up - np.logaddexp(math.log1p(-rate), math.log(rate) - mu * x - mu * mu / 2))
    return np.asarray(up if way == "remove" else -up)


def outputs_at(rate: float, mu: float, losses: Array, way: Way) -> Array:
    """The outputs that have some losses, −∞ and ∞ if none has; for "add" those whose losses are −losses."""
    odds = math.log1p(-rate) - math.log(rate) + mu * mu / 2
    with np.errstate(divide="ignore", over="ignore"):
        if way == "replace":
            size = np.abs(losses) / 2
            log = odds + size + np.log(-np.expm1(-2 * size)) - math.log(2)  # of (1−q)/q·e^(μ²/2)·sinh
            inverse = np.where(log > 20, log + math.log(2), np.arcsinh(np.exp(np.minimum(log, 21.0))))
            return np.asarray(np.sign(losses) * (size + inverse) / mu)
        above = losses - math.log1p(-rate)
        return np.asarray((odds + above + np.log(-np.expm1(-np.maximum(above, 0.0)))) / mu)


def cell_masses(loss: Sampled, step: float, upper: bool, beyond: float, depth: float = math.inf) -> CellMasses:
    """Cells on a lattice of losses, up to about this probability; for "add" to this depth below the largest."""
    rate, mu = (up(loss.rate), up(loss.mu)) if upper else (down(loss.rate), down(loss.mu))
    far = mu + math.sqrt(-2 * math.log(beyond))
    reach = float(losses_at(rate, mu, np.array([far]), "replace" if loss.way == "replace" else "remove")[0])
    base = 0.0 if loss.way in ("replace", "fixed") else math.log1p(-rate)
    last = max(1, math.ceil(min(reach - base, depth if loss.way == "add" else math.inf) / step))
    first = -last if loss.way == "replace" else 0
    edges: Array = base + np.float64(step) * np.arange(first, last + 1)
    if loss.way == "replace" and not upper:
        edges = edges + step / 2  # the many losses near 0 get one number
    x = outputs_at(rate, mu, edges, "replace" if loss.way == "replace" else "remove")
    x = np.concatenate([[-np.inf], x, [np.inf]])
    if loss.way in ("remove", "add"):
        x[1] = -np.inf  # the least loss is never reached
    plain = _masses(x, 0.0)
    mixed = _mixed(rate, plain, _masses(x, mu))
    other = plain if loss.way != "replace" else _mixed(rate, plain, _masses(x, -mu))
    laws = (mixed, other) if loss.way != "add" else (plain, mixed)
    size = mu * max(abs(float(x[-2])), far) + mu * mu + abs(math.log(rate)) + 2 * abs(base) + abs(edges[-1]) + 60
    blur = 32 * _U * size
    if loss.way == "fixed":
        return _both_ways(laws, step, blur)
    if loss.way == "add":
        first_law, second_law = ((low[::-1], high[::-1]) for low, high in laws)
        return CellMasses(-float(edges[-1]), step, blur, first_law, second_law)
    return CellMasses(float(edges[0]), step, blur, *laws)


def _both_ways(laws: tuple[tuple[Array, Array], tuple[Array, Array]], step: float, blur: float) -> CellMasses:
    """The losses above 0 of a pair, their mirror images, and an atom at 0: docs/proofs/fixed-size.md, point 3."""
    (p_low, p_high), (q_low, q_high) = ((low[1:], high[1:]) for low, high in laws)  # without what lies below 0
    whole = [1 - float(p.sum()) - float(q.sum()) for p, q in ((p_high, q_high), (p_low, q_low))]
    atom = max(0.0, whole[0] - 1e-12), max(0.0, whole[1] + 1e-12)
    first: list[Array] = []
    second: list[Array] = []
    for p, q, middle_mass in ((p_low, q_low, atom[0]), (p_high, q_high, atom[1])):
        for side, above, below in ((first, p, q), (second, q, p)):
            joined = np.concatenate([below[::-1], above])
            joined[len(below)] += middle_mass  # the cell from 0 on
            side.append(joined)
    return CellMasses(-step * (len(p_low) - 1), step, blur, (first[0], first[1]), (second[0], second[1]))


def _mixed(rate: float, plain: tuple[Array, Array], moved: tuple[Array, Array]) -> tuple[Array, Array]:
    low, high = ((1 - rate) * one + rate * other for one, other in zip(plain, moved, strict=True))
    return low * (1 - 4 * _U), high * (1 + 4 * _U)


def _masses(x: Array, shift: float) -> tuple[Array, Array]:
    """The probabilities of N(shift, 1) between neighbouring x, from below and from above."""
    z = x - shift
    size = np.abs(z)
    tails = np.fromiter(map(math.erfc, (size * math.sqrt(0.5)).tolist()), float, len(z)) / 2
    # erfc is off by an ulp or so, and z² of them come from rounding its argument.
    slack = 8 * _U * (1 + np.minimum(size, 1e3) ** 2) * tails + 1e-300
    left, right = tails[:-1], tails[1:]
    mass = np.where(z[1:] <= 0, right - left, np.where(z[:-1] >= 0, left - right, 1 - left - right))
    off = slack[:-1] + slack[1:] + np.where((z[1:] > 0) & (z[:-1] < 0), 2 * _U, 0.0)
    off[z[1:] == z[:-1]] = 0.0
    return np.maximum(0.0, mass - off), np.maximum(0.0, mass) + off


def window_at(loss: Sampled, count: int, epsilon: float, delta: float) -> tuple[Window, tuple[float, float]]:
    """Where to look, how finely, and what to leave out of one loss. Any choice is valid; this one is good."""
    near = Near(loss, count)
    steep = near.tilt(lambda t: near.mean(t) < epsilon)
    found: list[tuple[int, Window, tuple[float, float]]] = []
    for share in (1.0, 0.9, 0.75, 0.6, 0.45, 0.3):
        tilt = steep * share
        lost = near.log_moment(tilt) - tilt * epsilon - math.log(delta)
        # A smaller tilt costs precision, of which many copies leave less; it helps if jumps are rare and large.
        if not found or lost < math.log(1e8 / (count * (1 + tilt))):
            found.append(_tilted_window(near, epsilon, delta, tilt))
    _, window, beyond = min(found, key=lambda one: one[0])
    return window, beyond


def _tilted_window(near: Near, epsilon: float, delta: float, tilt: float) -> tuple[int, Window, tuple[float, float]]:
    """A window for this tilt, and how many places would be needed."""
    mean, deviation, count = near.mean(tilt), near.deviation(tilt), near.count
    scales = [2.0**k * unit for unit in (1 / deviation, tilt) for k in range(-6, 8)]
    here = near.log_moment(tilt)
    tops = [(near.log_moment(tilt + s) - here + _SHARE) / s for s in scales]
    ends = [(here - near.log_moment(tilt - s) - _SHARE) / s for s in scales]
    high, low = max(min(tops), epsilon + deviation), min(max(ends), epsilon - 0.5 * deviation)
    off = max(TOLERANCE * abs(epsilon), 1e-6 / tilt)
    finest = min(near.step(tilt, off), max(abs(epsilon), 0.1 / tilt) / 64)
    needed = 1 << max(0, math.ceil(math.log2((high - low) / finest)))
    points = min(MOST_POINTS, max(FEWEST_POINTS, needed))
    depth = near.largest - mean / count + (80 + math.log(count)) / tilt
    step = max((high - low) / points, (near.reach if near.way != "add" else min(near.reach, depth)) / MOST_CELLS)
    beyond = scales[ends.index(max(ends))], scales[tops.index(min(tops))]
    return needed, Window(mean - low, step, points, tilt, beyond), (min(1e-20, 1e-6 * delta / count), depth)


def epsilon_near(loss: Sampled, count: int, delta: float) -> float:
    """About ε(δ), by the saddle point."""
    near = Near(loss, count)
    steep = near.tilt(lambda t: t * near.mean(t) - near.log_moment(t) < -math.log(delta))
    peak = max(1.0, steep * (steep + 1) * (2.5 * near.deviation(steep) + 1 / (steep + 1)))
    guess = (near.log_moment(steep) - math.log(delta) - math.log(peak)) / steep
    return min(near.mean(steep), max(guess, 0.02 * abs(near.mean(steep))))


class Near:
    """Moments of the sum in doubles, to choose a window with."""

    def __init__(self, loss: Sampled, count: int) -> None:
        self.way, self.count = loss.way, count
        rate, mu = middle(loss.rate), middle(loss.mu)
        x = np.linspace(-12.0 - mu, 12.0 + mu, 4001)
        self.losses = losses_at(rate, mu, x, "remove" if loss.way == "fixed" else loss.way)
        self.logs = -x * x / 2 + math.log((x[1] - x[0]) / math.sqrt(2 * math.pi))
        if loss.way != "add":
            self.logs = self.logs + losses_at(rate, mu, x, "remove")
        if loss.way == "fixed":
            above, logs = self.losses > 0, self.logs
            self.losses = np.concatenate([self.losses[above], -self.losses[above], [0.0]])
            self.logs = np.concatenate([logs[above], logs[above] - self.losses[: above.sum()], [0.0]])
            self.logs[-1] = math.log(max(1e-300, 1 - float(np.exp(self.logs[:-1]).sum())))
        self.reach = float(np.abs(self.losses).max())
        self.largest = -math.log1p(-rate)  # of "add"
        self.base = {"remove": -self.largest, "add": self.largest, "replace": 0.0, "fixed": 0.0}[
            loss.way
        ]  # a place on the lattice

    def _weights(self, tilt: float) -> tuple[Array, float]:
        logs = self.logs + tilt * self.losses
        top = float(logs.max())
        return np.exp(logs - top), top

    def log_moment(self, tilt: float) -> float:
        weights, top = self._weights(tilt)
        return self.count * (top + math.log(float(weights.sum())))

    def mean(self, tilt: float) -> float:
        weights, _ = self._weights(tilt)
        return self.count * float((weights * self.losses).sum() / weights.sum())

    def deviation(self, tilt: float) -> float:
        weights, _ = self._weights(tilt)
        weights = weights / weights.sum()
        centre = float((weights * self.losses).sum())
        return math.sqrt(max(1e-300, self.count * float((weights * (self.losses - centre) ** 2).sum())))

    def step(self, tilt: float, off: float) -> float:
        """A step whose lattice adds about `off` to ε: half the variance that spreading adds, times tilt + 1."""
        weights, _ = self._weights(tilt)
        weights = weights / weights.sum()
        apart = np.abs(self.losses - self.base)
        low, high = 1e-12, 1.0
        for _ in range(40):
            step = math.sqrt(low * high)
            added = float((weights * np.minimum(step * step / 6, step * apart)).sum()) * self.count * (tilt + 1) / 2
            low, high = (step, high) if added < off else (low, step)
        return low

    def tilt(self, too_small: Callable[[float], bool]) -> float:
        """The smallest admissible tilt."""
        low, high = 1e-3, 1e7
        for _ in range(50):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if too_small(middle) else (low, middle)
        return high
