"""Sums of independent losses on a lattice, certified from both sides, without Fourier transforms.

One coordinate with Laplace noise and shift a has an atom ½ at the loss a, an atom e^−a/2 at −a, and between
them the density e^((ℓ−a)/2)/4. Cut into cells, from below a cell is merged: its loss as a whole is its
middle. From above it is spread to its two ends so that its probability under both laws stays the same.

Probabilities are multiplied by e^(θ·loss) first, so that those that matter are not small, and composed by
repeated squaring. All numbers are non-negative, so a sum of k products has a relative error of at most
(k + 1)·2⁻⁵³. What is cut off at either end is counted: it can add at most its weight times e^(−θε) to δ(ε).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpassay.evidence.verifier.numbers import (
    ONE,
    ZERO,
    Number,
    above,
    at_most_one,
    below,
    hull,
    iv,
    log,
    middle,
    whole_part,
)

Array: TypeAlias = NDArray[np.float64]
_U = 2.0**-53
_TINY = 1e-290  # what doubles too small to be normal can hide
_CUT = 1e-22
_WIDTH = 11.0  # standard deviations that are kept on either side


@dataclass(frozen=True)
class Laplace:
    """The loss of one coordinate with Laplace noise, shifted by so many scales."""

    shift: Number

    @property
    def span(self) -> float:
        return middle(self.shift)

    def place(self, step: Number, side: str, tilt: float) -> Weights:
        """The weights p·e^(θ(ℓ − a)) at multiples of the step; a shift between multiples goes to the safe side."""
        ratio = self.shift / step
        up = side in ("above", "late")
        whole = -_floor(-iv.mpf(ratio.b), "1e-40") if up else _floor(iv.mpf(ratio.a), "1e-40")
        a, theta = step * whole, iv.mpf(tilt)
        rise = iv.exp(step * (theta + ONE / 2))
        lowest = iv.exp(-a * (1 + 2 * theta))  # e^((ℓ−a)/2)·e^(θ(ℓ−a)) at ℓ = −a
        weights = [ZERO] * (2 * whole + 1)
        if side == "below":
            value, factor = lowest * rise, (iv.exp(step / 2) - iv.exp(-step / 2)) / 2
            for i in range(1, 2 * whole, 2):
                weights[i] = value * factor
                value *= rise * rise
        elif side == "above":
            value, factor = lowest, 1 - 2 / (iv.exp(step / 2) + 1)
            for i in range(2 * whole + 1):
                weights[i] = value * factor / (2 if i in (0, 2 * whole) else 1)
                value *= rise
        else:
            half = (iv.exp(step / 4) - iv.exp(-step / 4)) / 2 * iv.exp(step / 4)
            value = lowest * half
            shift = 1 if side == "late" else 0
            moved = iv.exp(step * theta * shift)
            for i in range(2 * whole):
                weights[i + shift] = value * moved
                value *= rise
        weights[0] += lowest / 2  # the two atoms
        weights[-1] += ONE / 2
        return Weights.of(-whole, weights, a * theta, up)


@dataclass(frozen=True)
class Atoms:
    """A loss with finitely many values, each with its probability, and the probability of an infinite one."""

    atoms: tuple[tuple[Number, Number], ...]
    infinite: Number = ZERO

    @property
    def span(self) -> float:
        return max((abs(middle(loss)) for loss, _ in self.atoms), default=0.0)

    def place(self, step: Number, side: str, tilt: float) -> Weights:
        """Each atom spread to the two places around it; the largest one lies on the lattice."""
        assert side == "above"
        found: dict[int, Number] = {}
        theta, top = iv.mpf(tilt), max((loss for loss, _ in self.atoms), key=middle)
        for loss, chance in self.atoms:
            below_top = (loss - top) / step
            low = 0 if loss is top else _floor(iv.mpf(below_top.a), "0")
            share = (1 - iv.exp(step * (low - below_top))) / (1 - iv.exp(-step))
            for index, part in ((low, chance * (1 - share)), (low + 1, chance * share)):
                if not (loss is top and index):  # the top lies on the lattice
                    found[index] = found.get(index, ZERO) + part * iv.exp(theta * step * index)
        start, end = min(found), max(found)
        placed = [found.get(i, ZERO) for i in range(start, end + 1)]
        return replace(Weights.of(start, placed, top * theta, True), origin=top)


Part: TypeAlias = Laplace | Atoms


def _floor(value: Number, slack: str) -> int:
    """The whole part, where a number that is a whole one up to the slack is meant to be it."""
    return whole_part(value * (1 + iv.mpf(slack)) if value.a > 0 else value * (1 - iv.mpf(slack)))


@dataclass(frozen=True)
class Weights:
    """Non-negative weights at origin + (start + i)·step, times e^log_scale, each with a relative error up to `error`.

    `lost` bounds the weight that was cut off.
    """

    start: int
    mass: Array
    log_scale: Number
    error: float
    lost: float
    origin: Number = ZERO

    @classmethod
    def of(cls, start: int, weights: Sequence[Number], log_scale: Number, upper: bool) -> Weights:
        """One end of each weight as a double, scaled to sum to about 1."""
        mass = np.array([above(weight) if upper else max(0.0, below(weight)) for weight in weights])
        norm = float(mass.sum())
        mass /= norm
        mass[mass < _TINY] = 0.0
        return cls(start, mass, log_scale + iv.log(iv.mpf(norm)), 4 * _U, len(weights) * _TINY)

    @property
    def total(self) -> float:
        """At least the sum of all weights, those cut off included."""
        return float(self.mass.sum()) * (1 + self.error + len(self.mass) * _U) + self.lost

    def times(self, other: Weights, cut: float) -> Weights:
        """The weights of the sum of both losses."""
        mass = np.convolve(self.mass, other.mass)
        shorter = min(len(self.mass), len(other.mass))
        error = (1 + self.error) * (1 + other.error) * (1 + (shorter + 2) * _U) - 1
        lost = self.lost * other.total + other.lost * self.total + len(mass) * _TINY
        log_scale, origin = self.log_scale + other.log_scale, self.origin + other.origin
        return Weights(self.start + other.start, mass, log_scale, error, lost, origin)._trimmed(cut)

    def _trimmed(self, cut: float) -> Weights:
        """Without the ends that weigh less than the cut."""
        from_left, from_right = np.cumsum(self.mass), np.cumsum(self.mass[::-1])
        first, last = int(np.searchsorted(from_left, cut)), int(np.searchsorted(from_right, cut))
        if first + last == 0 or first + last >= len(self.mass):
            return self
        kept = self.mass[first : len(self.mass) - last]
        return replace(self, start=self.start + first, mass=kept, lost=self.lost + 2.01 * cut)

    def power(self, count: int, cut: float) -> Weights:
        """The weights of the sum of so many independent copies."""
        result: Weights | None = None
        base = self
        while True:
            if count & 1:
                result = base if result is None else result.times(base, cut)
            count >>= 1
            if not count:
                assert result is not None
                return result
            base = base.times(base, cut)


@dataclass(frozen=True)
class Composed:
    """The sum of all losses: δ(ε) and P(loss > ε) from the side that it errs to."""

    weights: Weights
    step: Number
    tilt: float
    infinite: Number

    def delta(self, epsilon: Number, upper: bool) -> Number:
        """A bound on δ(ε)."""
        return self._sum(epsilon, upper, damped=True)

    def tail(self, epsilon: Number, upper: bool) -> Number:
        """A bound on P(loss > ε)."""
        return self._sum(epsilon, upper, damped=False)

    def _sum(self, epsilon: Number, upper: bool, damped: bool) -> Number:
        step, weights = middle(self.step), self.weights
        base = middle(weights.origin - epsilon)
        steps = (weights.start + np.arange(len(weights.mass))) * step
        slack = 8 * _U * (abs(base) + abs(float(steps[0])) + abs(float(steps[-1])))
        gap = steps + base
        first = int(np.searchsorted(gap, -slack if upper else slack, side="right"))
        gap = gap[first:]
        each = weights.mass[first:] * np.exp(-self.tilt * np.maximum(gap, 0.0))
        if damped:
            each = each * -np.expm1(-np.maximum(0.0, gap + slack if upper else gap - slack))
        # Rounding of the exponent, of exp and of the sum.
        reach = float(gap[-1]) if len(gap) else 0.0
        relative = weights.error + self.tilt * 2 * slack + (4 * self.tilt * abs(reach) + len(gap) + 32) * _U
        total = float(each.sum())
        scale = iv.exp(weights.log_scale - iv.mpf(self.tilt) * epsilon)
        if upper:
            return at_most_one(self.infinite + iv.mpf(total * (1 + 2 * relative) + 1.001 * weights.lost) * scale)
        return self.infinite + iv.mpf(max(0.0, total * (1 - 2 * relative) - len(gap) * _TINY)) * scale


def compose(parts: Sequence[tuple[Part, int]], step: Number, side: str, tilt: float) -> Composed:
    """The sum of independent losses, each part so many times."""
    cut = _CUT / sum(count for _, count in parts)
    weights: Weights | None = None
    finite = ONE
    for part, count in parts:
        power = part.place(step, side, tilt).power(count, cut)
        weights = power if weights is None else weights.times(power, cut)
        if isinstance(part, Atoms):
            finite *= (1 - part.infinite) ** count
    assert weights is not None
    return Composed(weights, step, tilt, ZERO if finite == 1 else 1 - finite)


Sketch: TypeAlias = list[tuple[Array, Array, int]]


def cumulant(sketch: Sketch, tilt: float) -> tuple[float, float, float]:
    """ln E[e^(θL)], its slope and its curvature, roughly: they only steer the search."""
    value = slope = curve = 0.0
    for losses, chances, count in sketch:
        top = float(losses.max())
        weight = chances * np.exp(tilt * (losses - top))
        total = float(weight.sum())
        mean = float((weight * losses).sum()) / total
        value += count * (tilt * top + math.log(total))
        slope += count * mean
        curve += count * float((weight * (losses - mean) ** 2).sum()) / total
    return value, slope, curve


def sketch(parts: Sequence[tuple[Part, int]]) -> Sketch:
    """Rough losses and probabilities of each part."""
    return [(*_rough(part), count) for part, count in parts]


def _rough(part: Part) -> tuple[Array, Array]:
    if isinstance(part, Atoms):
        return np.array([middle(v) for v, _ in part.atoms]), np.array([middle(p) for _, p in part.atoms])
    a = middle(part.shift)
    losses = np.linspace(-a, a, 65)
    chances = np.exp((losses - a) / 2) / 4 * (2 * a / 64)
    chances[0], chances[-1] = math.exp(-a) / 2 + chances[0] / 2, 0.5 + chances[-1] / 2
    return losses, chances


def tilt_to(rough: Sketch, wanted: Callable[[float], bool]) -> float:
    """The θ where a condition that holds for large θ begins to hold, at least 0.

    The largest loss occurs with some probability; close to it tilting has no more to give.
    """
    top = -sum(count * math.log(float(chances[np.argmax(losses)])) for losses, chances, count in rough)

    def beyond(tilt: float) -> bool:
        value, slope, _ = cumulant(rough, tilt)
        return tilt * slope - value >= 0.9 * top or wanted(tilt)

    if beyond(0.0):
        return 0.0
    low, high = 0.0, 1e-6
    while not beyond(high) and high < 1e5:
        low, high = high, 4 * high
    for _ in range(30):
        half = (low + high) / 2
        low, high = (low, half) if beyond(half) else (half, high)
    return low


def step_for(parts: Sequence[tuple[Part, int]], tilt: float, points: int) -> Number:
    """A step for which about so many points are left after cutting; one shift is a multiple of it."""
    deviation = math.sqrt(max(cumulant(sketch(parts), tilt)[2], 1e-300))
    whole = 2 * sum(part.span * count for part, count in parts)
    width = min(whole, 2 * _WIDTH * deviation)
    widest = max((part for part, _ in parts), key=lambda part: part.span)
    copies = sum(count for _, count in parts)
    cells = max(1, points // (2 * copies), min(points // 16, math.floor(points * widest.span / max(width, 1e-300))))
    return (widest.shift if isinstance(widest, Laplace) else iv.mpf(widest.span)) / cells


def enclose_delta(parts: Sequence[tuple[Part, int]], epsilon: Number, points: int) -> Number:
    """δ(ε) of the sum, from below and from above."""
    rough = sketch(parts)
    tilt = tilt_to(rough, lambda t: cumulant(rough, t)[1] >= middle(epsilon))
    step = step_for(parts, tilt, points)
    low = compose(parts, step, "below", tilt).delta(iv.mpf(epsilon.b), False) if _has_cells(parts) else ZERO
    return hull(low, compose(parts, step, "above", tilt).delta(iv.mpf(epsilon.a), True))


def _has_cells(parts: Sequence[tuple[Part, int]]) -> bool:
    """Atoms, of which there is no bound from below here, are used from above only."""
    return all(isinstance(part, Laplace) for part, _ in parts)


def enclose_tail(parts: Sequence[tuple[Part, int]], epsilon: Number, points: int) -> Number:
    """P(loss > ε) of the sum: every cell moved to its lower end, and to its upper end."""
    rough = sketch(parts)
    tilt = tilt_to(rough, lambda t: cumulant(rough, t)[1] >= middle(epsilon))
    step = step_for(parts, tilt, points)
    low, high = (compose(parts, step, side, tilt) for side in ("early", "late"))
    return hull(low.tail(iv.mpf(epsilon.b), False), high.tail(iv.mpf(epsilon.a), True))


def enclose_epsilon(parts: Sequence[tuple[Part, int]], delta: Number, points: int) -> Number:
    """The least ε ≥ 0 with δ(ε) ≤ δ, from below and from above."""
    target = -middle(log(delta))
    rough = sketch(parts)
    tilt = tilt_to(rough, lambda t: t * cumulant(rough, t)[1] - cumulant(rough, t)[0] >= target)
    step = step_for(parts, tilt, points)
    high = compose(parts, step, "above", tilt)
    near, most = cumulant(rough, tilt)[1], sum(part.span * count for part, count in parts) * (1 + 1e-9)
    lower = 0.0
    if _has_cells(parts):
        low = compose(parts, step, "below", tilt)
        lower = _crossing(lambda e: bool(low.delta(iv.mpf(e), False).a > delta.b), near, most)[0]
    upper = _crossing(lambda e: bool(high.delta(iv.mpf(e), True).b > delta.a), near, most)[1]
    return hull(iv.mpf(lower), iv.mpf(upper))


def _crossing(exceeds: Callable[[float], bool], near: float, most: float) -> tuple[float, float]:
    """Two numbers close together: at the first δ is exceeded (or it is 0), at the second it is not (or it is ∞).

    Far from where the tilt points the bounds are poor, so the search starts there.
    """
    start = min(max(near, 0.0), most)
    step = 1e-3 * most
    low = high = start
    if exceeds(start):
        while exceeds(high):
            if high >= most:
                return high, math.inf
            low, high, step = high, min(most, high + step), 2 * step
    else:
        while not exceeds(low):
            if low <= 0:
                return 0.0, 0.0
            low, high, step = max(0.0, low - step), low, 2 * step
    while high - low > 1e-9 * high:
        half = (low + high) / 2
        low, high = (half, high) if exceeds(half) else (low, half)
    return low, high
