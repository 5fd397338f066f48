"""The loss of Gaussian noise on a sum in which each record takes part with probability q: docs/proofs/poisson.md.

In units of the standard deviation a record that takes part moves the sum by at most μ. With the record the output is
(1 − q)·N(0, 1) + q·N(μ, 1), without it N(0, 1), and with the opposite record (1 − q)·N(0, 1) + q·N(−μ, 1).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

import numpy as np

from dpassay.core.normal import gaussian_delta, normal_tail
from dpassay.core.numbers import (
    INFINITY,
    ONE,
    ZERO,
    Number,
    between,
    down,
    exactly,
    iv,
    maximum,
    middle,
    minimum,
    number,
    up,
)
from dpassay.core.roots import falling_root
from dpassay.exact.lattice_sum import CellMasses, Curve, Window, lower_curve, upper_curve
from dpassay.exact.loss_components import Cells
from dpassay.pipeline.regions import Array

Way: TypeAlias = Literal["remove", "add", "replace"]  # the record is in the first data set, in the second, in both
MOST_POINTS, FEWEST_POINTS = 1 << 20, 1 << 11
MOST_CELLS = 1 << 20
TOLERANCE = 1e-4  # of ε, relatively: what the lattice may add
ROUNDS, CLOSE = 3, 7e-4  # how often a window is tried, and the relative width that is enough
_U = 2.0**-53
_SHARE = 36.0  # −ln of the share that may lie outside of a window, about


@dataclass(frozen=True)
class SampledLoss:
    """One step: a record that moves the sum by `mu` standard deviations and takes part with probability `rate`.

    >>> loss = SampledLoss(number("0.01"), ONE, "remove")
    >>> f"{float(loss.delta(ONE).mid):.6g}"  # 0.01·δ of Gaussian noise at ln(1 + 100(e − 1))
    '2.73201e-09'
    """

    rate: Number
    mu: Number
    way: Way

    @property
    def infinite(self) -> Number:
        return ZERO

    @property
    def pure(self) -> Number:
        """Without a limit, unless the record is in the second data set: then at most −ln(1 − q)."""
        if self.mu == 0:
            return ZERO
        return -iv.log(1 - self.rate) if self.way == "add" and self.rate.b < 1 else INFINITY

    @property
    def mean(self) -> Number:
        """Divergences are convex: between 0 and q times that of the noise on its own."""
        return between(ZERO, self.rate * self.mu**2 / 2 * (4 if self.way == "replace" else 1))

    @property
    def span(self) -> float:
        mu = up(self.mu)
        return float(np.abs(losses_at(down(self.rate), mu, np.array([-12.0 - mu, 12.0 + mu]), self.way)).max())

    def delta(self, epsilon: Number) -> Number:
        """δ(ε) of one step, in closed form."""
        if self.mu == 0:
            return ZERO
        q, gamma = self.rate, iv.exp(epsilon)
        if self.way == "remove":
            return q * gaussian_delta(epsilon + iv.log((1 - (1 - q) * iv.exp(-epsilon)) / q), self.mu)
        if self.way == "add":
            left = 1 - gamma * (1 - q)
            if left.b <= 0:
                return ZERO
            if left.a <= 0:
                return between(ZERO, iv.mpf(left.b))
            return left * gaussian_delta(epsilon + iv.log(q / left), self.mu)
        # The loss rises with the output; where it is ε, ln u = ε/2 + asinh((1−q)/q·e^(μ²/2)·sinh(ε/2)), u = e^(μx).
        inner = (1 - q) / q * iv.exp(self.mu**2 / 2) * (iv.exp(epsilon / 2) - iv.exp(-epsilon / 2)) / 2
        x = (epsilon / 2 + iv.log(inner + iv.sqrt(inner**2 + 1))) / self.mu
        x = iv.mpf(x.mid)  # any threshold shows no more than δ(ε), and this one all but what rounding takes
        p, r = ((1 - q) * normal_tail(x) + q * normal_tail(x - shift) for shift in (self.mu, -self.mu))
        return maximum(ZERO, p - gamma * r) + iv.mpf([0, iv.mpf("1e-40")])

    def cells(self, step: float, stride: int, upper: bool) -> Cells:
        """Cells for a sum with other losses."""
        width = step * stride
        found = cell_masses(self, width, upper, 1e-25)
        p, q = (side[int(upper)] for side in (found.first, found.second))
        edges = found.lowest + width * np.arange(len(p) - 1)
        low, high = np.append(-np.inf, edges) - found.blur, np.append(edges, np.inf) + found.blur
        with np.errstate(divide="ignore", invalid="ignore"):
            other = found.second[int(not upper)]
            centre = np.clip(np.nan_to_num(np.log(p / other), nan=0.0), low, high)
        keep = p > 0 if upper else (p > 0) & (q > 0) & np.isfinite(low)
        low = np.maximum(low, edges[0] - width)
        return Cells(p[keep], np.maximum(centre, low)[keep], low[keep], high[keep])


def losses_at(rate: float, mu: float, x: Array, way: Way) -> Array:
    """The loss at some outputs, in doubles."""
    up = np.logaddexp(math.log1p(-rate), math.log(rate) + mu * x - mu * mu / 2)
    if way == "replace":
        return np.asarray(up - np.logaddexp(math.log1p(-rate), math.log(rate) - mu * x - mu * mu / 2))
    return np.asarray(up if way == "remove" else -up)


def outputs_at(rate: float, mu: float, losses: Array, way: Way) -> Array:
    """The outputs that have some losses, −∞ and ∞ where none has; of "add" those whose losses are −losses."""
    odds = math.log1p(-rate) - math.log(rate) + mu * mu / 2
    with np.errstate(divide="ignore", over="ignore"):
        if way == "replace":
            size = np.abs(losses) / 2
            log = odds + size + np.log(-np.expm1(-2 * size)) - math.log(2)  # of (1−q)/q·e^(μ²/2)·sinh
            inverse = np.where(log > 20, log + math.log(2), np.arcsinh(np.exp(np.minimum(log, 21.0))))
            return np.asarray(np.sign(losses) * (size + inverse) / mu)
        above = losses - math.log1p(-rate)
        return np.asarray((odds + above + np.log(-np.expm1(-np.maximum(above, 0.0)))) / mu)


def cell_masses(loss: SampledLoss, step: float, upper: bool, beyond: float, depth: float = math.inf) -> CellMasses:
    """Cells on a lattice of losses, but for about this probability; of "add" to this depth below the largest."""
    rate, mu = (up(loss.rate), up(loss.mu)) if upper else (down(loss.rate), down(loss.mu))
    far = mu + math.sqrt(-2 * math.log(beyond))
    reach = float(losses_at(rate, mu, np.array([far]), "replace" if loss.way == "replace" else "remove")[0])
    base = 0.0 if loss.way == "replace" else math.log1p(-rate)
    last = max(1, math.ceil(min(reach - base, depth if loss.way == "add" else math.inf) / step))
    first = -last if loss.way == "replace" else 0
    edges: Array = base + np.float64(step) * np.arange(first, last + 1)
    if loss.way == "replace" and not upper:
        edges = edges + step / 2  # losses next to 0, which are many, get one number
    x = outputs_at(rate, mu, edges, "replace" if loss.way == "replace" else "remove")
    x = np.concatenate([[-np.inf], x, [np.inf]])
    if loss.way != "replace":
        x[1] = -np.inf  # the least loss is never reached
    plain = _masses(x, 0.0)
    mixed = _mixed(rate, plain, _masses(x, mu))
    other = plain if loss.way != "replace" else _mixed(rate, plain, _masses(x, -mu))
    laws = (mixed, other) if loss.way != "add" else (plain, mixed)
    size = mu * max(abs(float(x[-2])), far) + mu * mu + abs(math.log(rate)) + 2 * abs(base) + abs(edges[-1]) + 60
    blur = 32 * _U * size
    if loss.way == "add":
        first_law, second_law = ((low[::-1], high[::-1]) for low, high in laws)
        return CellMasses(-float(edges[-1]), step, blur, first_law, second_law)
    return CellMasses(float(edges[0]), step, blur, *laws)


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


@dataclass(frozen=True)
class SampledPower:
    """Several steps, each of which may depend on all outputs before.

    >>> steps = SampledPower(SampledLoss(number("0.01"), ONE, "remove"), 1000)
    >>> found = steps.epsilon(number("1e-5"))
    >>> 1.827 < found.a and found.b < 1.829
    True
    """

    component: SampledLoss
    count: int

    def delta(self, epsilon: Number) -> Number:
        """δ(ε)."""
        if self.count == 1 or self.component.mu == 0:
            return self.component.delta(epsilon)
        if (self.component.pure * self.count - epsilon).b <= 0:
            return ZERO
        at, least, most = down(epsilon), 0.0, 1.0
        near = _Near(self)
        tilt = near.tilt(lambda t: near.mean(t) < at)
        guess = min(0.5, math.exp(max(-700.0, near.log_moment(tilt) - tilt * at)))
        for _ in range(ROUNDS):
            low, high = _curves(self, at, guess)
            least, most = max(least, low.delta(up(epsilon))), min(most, high.delta(at))
            if most - least <= CLOSE * most:
                break
            guess = max(least, most / 100, 1e-300)
        return between(maximum(ZERO, exactly(least * (1 - 1e-12))), minimum(ONE, exactly(most * (1 + 1e-12))))

    def epsilon(self, delta: Number) -> Number:
        """ε(δ), at δ > 0."""
        if self.count == 1 or self.component.mu == 0:
            return _one_step(self.component, delta)
        guess, least, most = _guess(self, down(delta)), 0.0, math.inf
        for _ in range(ROUNDS):
            low, high = _curves(self, guess, down(delta))
            least, most = max(least, low.epsilon(up(delta))), max(0.0, min(most, high.epsilon(down(delta))))
            if most - least <= CLOSE * most:
                break
            guess = (least + most) / 2 if most < math.inf else 2 * max(least, guess)
        off = 1e-12 * (1 + least)
        largest = maximum(ZERO, self.component.pure * self.count)
        return between(exactly(max(0.0, least - off)), minimum(exactly(most + off), largest))

    def grid(self, epsilon: Number, delta: Number) -> tuple[float, float]:
        """The step and the tilt of a lattice that is precise about a point of the curve."""
        window, _ = _window(self, middle(epsilon), max(middle(delta), 1e-300))
        return float(f"{window.step:.12g}"), float(f"{window.tilt:.12g}")

    def tail(self, epsilon: Number) -> Number:
        """P(L > ε): at least δ(ε), and at most δ(ε − t)/(1 − e^−t) for every t > 0."""
        step = iv.mpf("0.1")
        most = self.delta(maximum(ZERO, epsilon - step)) / (1 - iv.exp(-step)) if epsilon.a >= step.b else ONE
        return between(self.delta(epsilon), minimum(ONE, most))

    def event(self, epsilon: Number) -> tuple[str, Number, Number]:
        """An event that shows nearly δ(ε), in words, and its probabilities; no words where it is not known well."""
        found = self.delta(epsilon)
        window, beyond = _window(self, up(epsilon), max(down(found), 1e-300))
        cells = cell_masses(self.component, window.step, False, *beyond)
        shown, p, q = lower_curve(cells, self.count, window).best(up(epsilon))
        rise = iv.exp(epsilon)
        low, high = exactly(p), exactly(q)
        p_number, q_number = between(low, minimum(ONE, rise * high + found)), between((low - found) / rise, high)
        if q_number.a <= 0 or p <= 0:
            return "", ONE, ONE
        total = self.count * (cells.lowest - cells.step) + shown * cells.step
        places = f"{cells.lowest!r} + k*{cells.step!r} (k = -1, ..., {len(cells.first[0]) - 2})"
        words = (
            f"the losses of the {self.count:,} outputs, each rounded down to {places}, add up to {total:.9g} or more"
        )
        return words, p_number, q_number


def _one_step(loss: SampledLoss, delta: Number) -> Number:
    """ε(δ) from the closed form: guessed, and confirmed on either side."""
    if loss.delta(ZERO).b <= delta.a:
        return ZERO
    target, high = math.log(float(delta.mid)), 1.0
    while loss.delta(number(high)).b > delta.a:
        high *= 2
    near = falling_root(lambda e: math.log(max(float(loss.delta(number(e)).mid), 1e-300)) - target, 0.0, high, 1e-13)
    for slack in ("1e-12", "1e-10", "1e-8", "1e-6", "1e-4", "1e-2"):
        ends = number(near[0]) * (1 - number(slack)), number(near[1]) * (1 + number(slack))
        if loss.delta(ends[0]).a > delta.b and loss.delta(ends[1]).b <= delta.a:
            return between(*ends)
    return between(ZERO, number(high))


@lru_cache(maxsize=8)
def _curves(power: SampledPower, epsilon: float, delta: float) -> tuple[Curve, Curve]:
    """δ(ε) from below and from above, most precise about the given point."""
    window, beyond = _window(power, epsilon, delta)
    below, above = (cell_masses(power.component, window.step, upper, *beyond) for upper in (False, True))
    return lower_curve(below, power.count, window), upper_curve(above, power.count, window)


def _window(power: SampledPower, epsilon: float, delta: float) -> tuple[Window, tuple[float, float]]:
    """Where to look, how finely, and what to leave out of one loss. Any choice is right; this one is good."""
    near = _Near(power)
    steep = near.tilt(lambda t: near.mean(t) < epsilon)
    found: list[tuple[int, Window, tuple[float, float]]] = []
    for share in (1.0, 0.9, 0.75, 0.6, 0.45, 0.3):
        tilt = steep * share
        lost = near.log_moment(tilt) - tilt * epsilon - math.log(delta)
        # A smaller tilt costs precision, of which many copies leave less; it helps where jumps are rare and large.
        if not found or lost < math.log(1e8 / (power.count * (1 + tilt))):
            found.append(_tilted_window(near, epsilon, delta, tilt))
    _, window, beyond = min(found, key=lambda one: one[0])
    return window, beyond


def _tilted_window(near: _Near, epsilon: float, delta: float, tilt: float) -> tuple[int, Window, tuple[float, float]]:
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


def _guess(power: SampledPower, delta: float) -> float:
    """About ε(δ), by the saddle point."""
    near = _Near(power)
    steep = near.tilt(lambda t: t * near.mean(t) - near.log_moment(t) < -math.log(delta))
    peak = max(1.0, steep * (steep + 1) * (2.5 * near.deviation(steep) + 1 / (steep + 1)))
    guess = (near.log_moment(steep) - math.log(delta) - math.log(peak)) / steep
    return min(near.mean(steep), max(guess, 0.02 * abs(near.mean(steep))))


class _Near:
    """Moments of the sum in doubles, to choose a window with."""

    def __init__(self, power: SampledPower) -> None:
        loss, self.way = power.component, power.component.way
        rate, mu = float(loss.rate.mid), float(loss.mu.mid)
        x = np.linspace(-12.0 - mu, 12.0 + mu, 4001)
        self.losses, self.count = losses_at(rate, mu, x, loss.way), power.count
        self.logs = -x * x / 2 + math.log((x[1] - x[0]) / math.sqrt(2 * math.pi))
        if loss.way != "add":
            self.logs = self.logs + losses_at(rate, mu, x, "remove")
        self.reach = float(np.abs(self.losses).max())
        self.largest = -math.log1p(-rate)  # of "add"
        self.base = {"remove": -self.largest, "add": self.largest, "replace": 0.0}[loss.way]  # a place on the lattice

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
        """The least tilt that is not too small."""
        low, high = 1e-3, 1e7
        for _ in range(50):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if too_small(middle) else (low, middle)
        return high
