"""The loss of Gaussian noise on a sum in which each record takes part with probability q: docs/proofs/poisson.md.

In units of the standard deviation a record that takes part moves the sum by at most μ. With the record the output is
(1 − q)·N(0, 1) + q·N(μ, 1), without it N(0, 1), and with the opposite record (1 − q)·N(0, 1) + q·N(−μ, 1).
"""

from __future__ import annotations

import math
from functools import cached_property, lru_cache

import numpy as np

from dpassay.core.functions.normal import gaussian_delta, normal_tail
from dpassay.core.functions.roots import falling_root
from dpassay.core.numbers import (
    INFINITY,
    ONE,
    ZERO,
    Number,
    between,
    down,
    exactly,
    exp,
    log,
    maximum,
    middle,
    minimum,
    number,
    real,
    sqrt,
    up,
)
from dpassay.exact.pld.lattice_sum import Curve, lower_curve, upper_curve
from dpassay.exact.pld.lattice_window import Moments, window_at
from dpassay.exact.pld.loss_components import Cells
from dpassay.exact.pld.sampled.cells import Adjacency, cell_masses, losses_at, sketch
from dpassay.values import dataclass

TOLERANCE = 1e-4  # relative to ε: what the lattice may add
ROUNDS, CLOSE = 3, 7e-4  # how often a window is tried, and the relative width that is enough
FARTHEST = 50.0  # standard deviations; losses of larger moves are too large for a lattice to add anything to one step


@dataclass(frozen=True)
class SampledLoss:
    """One step: a record that moves the sum by `mu` standard deviations and takes part with probability `rate`.

    >>> loss = SampledLoss(number("0.01"), ONE, "remove")
    >>> f"{float(loss.delta(ONE).mid):.6g}"  # 0.01·δ of Gaussian noise at ln(1 + 100(e − 1))
    '2.73201e-09'
    """

    rate: Number
    mu: Number
    way: Adjacency

    @property
    def infinite(self) -> Number:
        return ZERO

    @property
    def pure(self) -> Number:
        """Unbounded, unless the record is in the second data set: then at most −ln(1 − q)."""
        if self.mu == 0:
            return ZERO
        return -log(1 - self.rate) if self.way == "add" and self.rate.b < 1 else INFINITY

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
        q, gamma = self.rate, exp(epsilon)
        if self.way in ("remove", "fixed"):
            return q * gaussian_delta(epsilon + log((1 - (1 - q) * exp(-epsilon)) / q), self.mu)
        if self.way == "add":
            left = 1 - gamma * (1 - q)
            if left.b <= 0:
                return ZERO
            if left.a <= 0:
                return between(ZERO, real(left.b))
            return left * gaussian_delta(epsilon + log(q / left), self.mu)
        # The loss increases with the output; where it is ε, ln u = ε/2 + asinh((1−q)/q·e^(μ²/2)·sinh(ε/2)), u = e^(μx).
        inner = (1 - q) / q * exp(self.mu**2 / 2) * (exp(epsilon / 2) - exp(-epsilon / 2)) / 2
        x = (epsilon / 2 + log(inner + sqrt(inner**2 + 1))) / self.mu
        x = real(x.mid)  # any threshold shows at most δ(ε), and this one all of it up to rounding
        p, r = ((1 - q) * normal_tail(x) + q * normal_tail(x - shift) for shift in (self.mu, -self.mu))
        return maximum(ZERO, p - gamma * r) + real([0, real("1e-40")])

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
        rough = self._from_one_step(epsilon)
        at, least, most = down(epsilon), down(rough), up(rough)
        if self._too_far or most - least <= CLOSE * most:
            return rough
        guess = self.near.delta(at)
        for _ in range(ROUNDS):
            low, high = _curves(self, at, guess)
            least, most = max(least, low.delta(up(epsilon))), min(most, high.delta(at))
            if most - least <= CLOSE * most:
                break
            guess = max(least, most / 100, 1e-300)
        return between(maximum(ZERO, exactly(least * (1 - 1e-12))), minimum(ONE, exactly(most * (1 + 1e-12))))

    @property
    def _too_far(self) -> bool:
        return up(self.component.mu) > FARTHEST

    @cached_property
    def near(self) -> Moments:
        """Moments of the sum, to choose windows with."""
        return Moments([(sketch(self.component), self.count)])

    def _from_one_step(self, epsilon: Number) -> Number:
        """δ(ε) as far as it follows from one step's: docs/proofs/lattice-sums.md, point 6."""
        one, count = self.component.delta, self.count
        apart = 1 - (1 - one(ZERO)) ** count
        return between(one(epsilon), minimum(ONE, apart, count * one(epsilon / count)))

    def epsilon(self, delta: Number) -> Number:
        """ε(δ), at δ > 0."""
        if self.count == 1 or self.component.mu == 0:
            return _one_step(self.component, delta)
        if self._from_one_step(ZERO).b <= delta.a:
            return ZERO
        if self._too_far:
            return self._epsilon_from_one_step(delta)
        guess, least, most = self.near.epsilon(down(delta)), 0.0, math.inf
        for _ in range(ROUNDS):
            low, high = _curves(self, guess, down(delta))
            least, most = max(least, low.epsilon(up(delta))), max(0.0, min(most, high.epsilon(down(delta))))
            if most < math.inf and most - least <= CLOSE * most:
                break
            guess = (least + most) / 2 if most < math.inf else 2 * max(least, guess)
        off = 1e-12 * (1 + least)
        largest = maximum(ZERO, self.component.pure * self.count)
        found = between(exactly(max(0.0, least - off)), minimum(exactly(most + off), largest))
        if found.b < INFINITY:
            return found
        rough = self._epsilon_from_one_step(delta)
        return between(maximum(found, rough), rough)

    def _epsilon_from_one_step(self, delta: Number) -> Number:
        """ε(δ) as far as it follows from one step's."""
        above = self.count * _one_step(self.component, delta / self.count)
        return between(
            _one_step(self.component, delta), minimum(above, maximum(ZERO, self.component.pure * self.count))
        )

    def grid(self, epsilon: Number, delta: Number) -> tuple[float, float]:
        """The step and the tilt of a lattice that is precise about a point of the curve."""
        window, _ = window_at(self.near, middle(epsilon), max(middle(delta), 1e-300), TOLERANCE)
        return float(f"{window.step:.12g}"), float(f"{window.tilt:.12g}")

    def tail(self, epsilon: Number) -> Number:
        """P(L > ε): at least δ(ε), and at most δ(ε − t)/(1 − e^−t) for every t > 0."""
        step = real("0.1")
        most = self.delta(maximum(ZERO, epsilon - step)) / (1 - exp(-step)) if epsilon.a >= step.b else ONE
        return between(self.delta(epsilon), minimum(ONE, most))

    def event(self, epsilon: Number) -> tuple[str, Number, Number]:
        """An event that shows nearly δ(ε), as text, and its probabilities; no text if it is not known precisely."""
        found = self.delta(epsilon)
        if self._too_far:
            return "", ONE, ONE
        window, (limits,) = window_at(self.near, up(epsilon), max(down(found), 1e-300), TOLERANCE)
        cells = cell_masses(self.component, window.step, False, limits.unlikely, limits.depth)
        best = lower_curve([(cells, self.count)], window).best(up(epsilon))
        if best is None:
            return "", ONE, ONE
        shown, p, q = best
        rise = exp(epsilon)
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
    window, (limits,) = window_at(power.near, epsilon, delta, TOLERANCE)
    below, above = (
        cell_masses(power.component, window.step, upper, limits.unlikely, limits.depth) for upper in (False, True)
    )
    return lower_curve([(below, power.count)], window), upper_curve([(above, power.count)], window)
