"""Random directions on the unit sphere, between opposite vectors: docs/proofs/sphere.md, with its own integrals.

A concave exponent lies below its tangents, here at the middle of each cell, and above its chords; a convex one the
other way round. Everything is computed in doubles; the rounding error of an exponent is bounded and counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpassay.errors import CertificateError
from dpassay.evidence.verifier.arithmetic.numbers import (
    ONE,
    ZERO,
    Number,
    above,
    below,
    hull,
    is_point,
    iv,
    middle,
    smallest,
)
from dpassay.evidence.verifier.arithmetic.work import spend
from dpassay.evidence.verifier.noises.losses import Loss, LossCurve, loss_at_zero, pure_loss
from dpassay.evidence.verifier.reading import Step
from dpassay.evidence.verifier.regions.pairs import Pair, distance, is_unit
from dpassay.evidence.verifier.regions.regions import ParsedStage, RegionShape, power_sum
from dpassay.values import dataclass

Array: TypeAlias = NDArray[np.float64]
_CELLS = 1 << 14
_DEEP = 70.0
_LARGEST_ERROR = 1e-4


@dataclass(frozen=True)
class _Exponent:
    """A function and its slope on an interval that begins at 0."""

    value: Callable[[Array], Array]
    slope: Callable[[Array], Array]
    convex: bool = False

    def log_integral(self, end: float, error: float) -> tuple[float, float]:
        """Bounds on the logarithm of the integral of e to the function from 0 to `end`."""
        if not end > 0:
            return -math.inf, -math.inf
        spend(10_000_000)
        peak = end if self.convex else self._last(0.0, end, lambda x: self._slope(x) > 0)
        floor = self._value(peak) - _DEEP
        left = 0.0 if self._value(0.0) >= floor else self._last(0.0, peak, lambda x: self._value(x) < floor)
        right = end if peak == end else self._last(peak, end, lambda x: self._value(x) >= floor)
        edges = np.linspace(left, min(end, right), _CELLS + 1)
        y, width, centres = self.value(edges), np.diff(edges), (edges[1:] + edges[:-1]) / 2
        at, half = self.value(centres), np.abs(self.slope(centres)) * width / 2
        top = float(at.max())
        tangents = width * np.exp(at - top + half) * np.where(half > 1e-8, -np.expm1(-2 * half) / (2 * half), 1 - half)
        gaps = np.abs(np.diff(y))
        mean = np.where(gaps > 1e-8, -np.expm1(-gaps) / np.where(gaps > 1e-8, gaps, 1), 1 - gaps / 2)
        chords = width * np.exp(np.maximum(y[:-1], y[1:]) - top) * np.where(np.isinf(gaps), 0.0, mean)
        rest = left * math.exp(min(0.0, y[0] - top)) + (end - min(end, right)) * math.exp(min(0.0, y[-1] - top))
        least, most = (tangents, chords) if self.convex else (chords, tangents)
        slack = 4 * error + 1e-10
        return top + math.log(least.sum()) - slack, top + math.log(most.sum() + rest) + slack

    def _value(self, x: float) -> float:
        return float(self.value(np.array([x]))[0])

    def _slope(self, x: float) -> float:
        return float(self.slope(np.array([x]))[0])

    @staticmethod
    def _last(low: float, high: float, holds: Callable[[float], bool]) -> float:
        """Nearly the largest x between two at which a condition holds, which is true at the first and then false."""
        for _ in range(100):
            centre = (low + high) / 2
            low, high = (centre, high) if holds(centre) else (low, centre)
        return high


@dataclass(frozen=True)
class _Law:
    """The exponent of the density on the half around a pole, the loss there, and where a loss is attained.

    The coordinate begins at the pole: 1 − cosine for von Mises-Fisher noise in 3 dimensions and more, else the angle.
    """

    kappa: float
    near: _Exponent
    far: _Exponent
    loss: Callable[[Array], Array]
    fall: Callable[[Array], Array]  # minus the slope of the loss
    reach: Callable[[float], float]
    equator: float
    error: float

    @classmethod
    def of(cls, name: str, kappa: float, dim: int) -> _Law:
        error = 2.0**-49 * (8 * kappa + 80 * dim)
        if name == "vmf" and dim > 2:
            power = (dim - 3) / 2

            def exponent(sign: float) -> _Exponent:
                return _Exponent(
                    lambda c: sign * kappa * (1 - c) + (power * np.log(c * (2 - c)) if power else 0.0),
                    lambda c: -sign * kappa + (power * (1 / c - 1 / (2 - c)) if power else 0.0) + 0 * c,
                )

            ends = lambda loss: 1 - loss / (2 * kappa)  # noqa: E731
            fall = lambda c: 2 * kappa + 0 * c  # noqa: E731
            return cls(kappa, exponent(1), exponent(-1), lambda c: 2 * kappa * (1 - c), fall, ends, 1.0, error)
        half = math.pi / 2
        if name == "vmf":
            near = _Exponent(lambda a: kappa * np.cos(a), lambda a: -kappa * np.sin(a))
            far = _Exponent(lambda a: -kappa * np.cos(a), lambda a: kappa * np.sin(a), convex=True)
            return cls(
                kappa,
                near,
                far,
                lambda a: 2 * kappa * np.cos(a),
                lambda a: 2 * kappa * np.sin(a),
                lambda loss: math.acos(min(1.0, loss / (2 * kappa))),
                half,
                error,
            )
        turns = dim - 2

        def angular(sign: float) -> _Exponent:
            return _Exponent(
                lambda a: sign * kappa * (half - a) + (turns * np.log(np.sin(a)) if turns else 0.0),
                lambda a: -sign * kappa + (turns / np.tan(a) if turns else 0.0) + 0 * a,
            )

        return cls(
            kappa,
            angular(1),
            angular(-1),
            lambda a: 2 * kappa * (half - a),
            lambda a: 2 * kappa + 0 * a,
            lambda loss: half - loss / (2 * kappa),
            half,
            error,
        )

    def counted(self, epsilon: float) -> _Exponent:
        """The density times 1 − e^(ε − loss), where the loss exceeds ε."""

        def excess(x: Array) -> Array:
            return np.maximum(0.0, -np.expm1(epsilon - self.loss(x)))

        def slope(x: Array) -> Array:
            return self.near.slope(x) - self.fall(x) * np.exp(epsilon - self.loss(x)) / np.maximum(excess(x), 1e-300)

        return _Exponent(lambda x: self.near.value(x) + np.log(excess(x)), slope)

    def delta(self, epsilon: Number) -> Number:
        """Bounds on δ(ε)."""
        if self.error > _LARGEST_ERROR:
            return hull(ZERO, ONE)
        with np.errstate(all="ignore"):
            whole = [part.log_integral(self.equator, self.error) for part in (self.near, self.far)]
            total = [float(np.logaddexp(whole[0][side], whole[1][side])) for side in (0, 1)]
            ends = above(epsilon) + 2 * self.error, max(0.0, below(epsilon) - 2 * self.error)
            low, high = (self.counted(end).log_integral(self.reach(end), self.error) for end in ends)
        least = iv.exp(iv.mpf(low[0] - total[1] - 1e-11)) if low[0] > -math.inf else ZERO
        return hull(least, iv.exp(iv.mpf(high[1] - total[0] + 1e-11)) if high[1] > -math.inf else ONE)


def _opposite_loss(stage: ParsedStage, dim: int) -> Loss:
    """The loss between opposite vectors, which dominates all others."""
    kappa = stage.numbers["kappa"]
    pure = 2 * kappa if stage.name == "vmf" else kappa * +iv.pi
    law, most = _Law.of(stage.name, middle(kappa), dim), pure_loss(pure)

    def delta(epsilon: Number) -> Number:
        if epsilon.a >= pure.b:
            return ZERO
        return smallest([law.delta(epsilon), most.delta(epsilon, True)])

    return LossCurve(pure, delta)


def sphere_upper(stage: ParsedStage, shape: RegionShape, step: Step) -> Loss:
    """Opposite vectors are the worst."""
    return _opposite_loss(stage, shape.dim)


def sphere_pair(stage: ParsedStage, pair: Pair, grid: object) -> Loss:
    """The loss of two opposite unit vectors; of others, the largest loss of von Mises-Fisher noise (point 1)."""
    vectors = [[(getattr(block, side), block.count) for block in pair] for side in ("x", "y")]
    opposite = all(block.x.a == block.x.b == -block.y.a == -block.y.b for block in pair)
    if not opposite or not is_point(power_sum(vectors[0], 2.0), 1):
        if stage.name != "vmf" or not all(is_unit(vector) for vector in vectors):
            raise CertificateError("the pair is not known to be of opposite unit vectors")
        return loss_at_zero(stage.numbers["kappa"] * distance(pair, 2.0))
    return _opposite_loss(stage, sum(block.count for block in pair))
