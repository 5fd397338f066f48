"""Windows for sums of losses: where to look, how finely, and how to tilt. docs/proofs/lattice-sums.md.

Nothing here needs to be right for a bound to hold: windows decide only how narrow it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from dpassay.exact.pld.lattice_sum import Window
from dpassay.pipeline.pair import Array
from dpassay.values import dataclass

MOST_POINTS, FEWEST_POINTS = 1 << 20, 1 << 11
MOST_CELLS = 1 << 20
_SHARE = 36.0  # −ln of the fraction that may lie outside a window, approximately


@dataclass(frozen=True)
class Sketch:
    """One loss as points with the logarithms of their probabilities, in doubles.

    `base` is a place on its lattice, `reach` the size of the losses that cells must cover. A loss that goes far down
    from its largest value, `top`, may be divided only near it.
    """

    losses: Array
    logs: Array
    base: float
    reach: float
    top: float = math.inf


@dataclass(frozen=True)
class Limits:
    """What to leave out of one loss: outcomes less likely than `unlikely`, and those `depth` below the largest loss."""

    unlikely: float
    depth: float = math.inf


class Moments:
    """Moments of a sum of independent losses, each as often as given, to choose a window with."""

    def __init__(self, parts: Sequence[tuple[Sketch, int]]) -> None:
        self.parts = parts
        self.count = sum(count for _, count in parts)

    @staticmethod
    def _weights(sketch: Sketch, tilt: float) -> tuple[Array, float]:
        logs = sketch.logs + tilt * sketch.losses
        top = float(logs.max())
        return np.exp(logs - top), top

    def log_moment(self, tilt: float) -> float:
        """ln E[e^(tilt·loss)]."""
        total = 0.0
        for sketch, count in self.parts:
            weights, top = self._weights(sketch, tilt)
            total += count * (top + math.log(float(weights.sum())))
        return total

    def mean(self, tilt: float) -> float:
        """The mean of the tilted sum."""
        return sum(count * self.mean_of(sketch, tilt) for sketch, count in self.parts)

    def mean_of(self, sketch: Sketch, tilt: float) -> float:
        """The mean of one tilted loss."""
        weights, _ = self._weights(sketch, tilt)
        return float((weights * sketch.losses).sum() / weights.sum())

    def deviation(self, tilt: float) -> float:
        """The standard deviation of the tilted sum."""
        total = 0.0
        for sketch, count in self.parts:
            weights, _ = self._weights(sketch, tilt)
            weights = weights / weights.sum()
            centre = float((weights * sketch.losses).sum())
            total += count * float((weights * (sketch.losses - centre) ** 2).sum())
        return math.sqrt(max(1e-300, total))

    def step(self, tilt: float, off: float) -> float:
        """A step whose lattice adds about `off` to ε: half the variance that spreading adds, times tilt + 1."""
        shares = []
        for sketch, count in self.parts:
            weights, _ = self._weights(sketch, tilt)
            shares.append((weights / weights.sum(), np.abs(sketch.losses - sketch.base), count))
        low, high = 1e-12, 1.0
        for _ in range(40):
            step = math.sqrt(low * high)
            added = sum(n * float((w * np.minimum(step * step / 6, step * apart)).sum()) for w, apart, n in shares)
            low, high = (step, high) if added * (tilt + 1) / 2 < off else (low, step)
        return low

    def tilt(self, too_small: Callable[[float], bool]) -> float:
        """The smallest admissible tilt."""
        low, high = 1e-3, 1e7
        for _ in range(50):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if too_small(middle) else (low, middle)
        return high

    def epsilon(self, delta: float) -> float:
        """About ε(δ), by the saddle point."""
        steep = self.tilt(lambda t: t * self.mean(t) - self.log_moment(t) < -math.log(delta))
        peak = max(1.0, steep * (steep + 1) * (2.5 * self.deviation(steep) + 1 / (steep + 1)))
        guess = (self.log_moment(steep) - math.log(delta) - math.log(peak)) / steep
        return min(self.mean(steep), max(guess, 0.02 * abs(self.mean(steep))))

    def delta(self, epsilon: float) -> float:
        """An upper bound on δ(ε), approximately."""
        tilt = self.tilt(lambda t: self.mean(t) < epsilon)
        return math.exp(min(math.log(0.5), max(-700.0, self.log_moment(tilt) - tilt * epsilon)))


def window_at(near: Moments, epsilon: float, delta: float, tolerance: float) -> tuple[Window, tuple[Limits, ...]]:
    """A window that is precise about a point of the curve; its lattice adds about `tolerance` times ε."""
    steep = near.tilt(lambda t: near.mean(t) < epsilon)
    found: list[tuple[int, Window, tuple[Limits, ...]]] = []
    for share in (1.0, 0.9, 0.75, 0.6, 0.45, 0.3):
        tilt = steep * share
        lost = near.log_moment(tilt) - tilt * epsilon - math.log(delta)
        # A smaller tilt costs precision, of which many copies leave less; it helps if jumps are rare and large.
        if not found or lost < math.log(1e8 / (near.count * (1 + tilt))):
            found.append(_tilted_window(near, epsilon, delta, tilt, tolerance))
    _, window, limits = min(found, key=lambda one: one[0])
    return window, limits


def _tilted_window(
    near: Moments, epsilon: float, delta: float, tilt: float, tolerance: float
) -> tuple[int, Window, tuple[Limits, ...]]:
    """A window for this tilt, and how many places would be needed."""
    mean, deviation = near.mean(tilt), near.deviation(tilt)
    scales = [2.0**k * unit for unit in (1 / deviation, tilt) for k in range(-6, 8)]
    here = near.log_moment(tilt)
    tops = [(near.log_moment(tilt + s) - here + _SHARE) / s for s in scales]
    ends = [(here - near.log_moment(tilt - s) - _SHARE) / s for s in scales]
    high, low = max(min(tops), epsilon + deviation), min(max(ends), epsilon - 0.5 * deviation)
    off = max(tolerance * abs(epsilon), tolerance / 100 / tilt)
    finest = min(near.step(tilt, off), max(abs(epsilon), 0.1 / tilt) / 64)
    needed = 1 << max(0, math.ceil(math.log2((high - low) / finest)))
    points = min(MOST_POINTS, max(FEWEST_POINTS, needed))
    unlikely = min(1e-20, 1e-6 * delta / near.count)
    limits, widest = [], 0.0
    for sketch, _ in near.parts:
        depth = math.inf
        if sketch.top < math.inf:
            depth = sketch.top - near.mean_of(sketch, tilt) + (80 + math.log(near.count)) / tilt
        limits.append(Limits(unlikely, depth))
        widest = max(widest, min(sketch.reach, depth))
    step = max((high - low) / points, widest / MOST_CELLS)
    beyond = scales[ends.index(max(ends))], scales[tops.index(min(tops))]
    return needed, Window(mean - low, step, points, tilt, beyond), tuple(limits)
