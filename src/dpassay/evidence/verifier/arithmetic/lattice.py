"""Sums of independent losses on a lattice, certified from both sides, without Fourier transforms.

One coordinate with Laplace noise and shift a has an atom ½ at the loss a, an atom e^−a/2 at −a, and between
them the density e^((ℓ−a)/2)/4. Cut into cells, from below a cell is merged: its loss as a whole is its
middle. From above it is spread to its two ends so that its probability under both laws stays the same.

Probabilities are multiplied by e^(θ·loss) first, so that the relevant ones are not small, and composed by
repeated squaring. All numbers are non-negative, so a sum of k products has a relative error of at most
(k + 1)·2⁻⁵³. What is truncated at either end is counted: it can add at most its weight times e^(−θε) to δ(ε).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpassay.errors import CertificateError
from dpassay.evidence.verifier.arithmetic.numbers import (
    ONE,
    ZERO,
    Number,
    above,
    at_most_one,
    below,
    cached,
    iv,
    middle,
    whole_part,
)
from dpassay.evidence.verifier.arithmetic.work import spend
from dpassay.values import dataclass

Array: TypeAlias = NDArray[np.float64]
_U = 2.0**-53
_TINY = 1e-290  # what subnormal doubles can hide
_CUT = 1e-22
MOST_CELLS = 1 << 15  # of one coordinate
_PIECE = 1 << 13
_OF_A_SUM = 100_000  # what a sum of two losses costs, however few values they have
_OF_A_CELL = 1 << 11  # what is kept of a cell, beyond the numbers that count themselves


@dataclass(frozen=True)
class Grid:
    """The step of a lattice of losses, and by how much probabilities are tilted on it."""

    step: Number
    tilt: Number


@dataclass(frozen=True)
class LaplaceShift:
    """The loss of one coordinate with Laplace noise; the shift is in scales.

    With bounded noise, centered between its limits, a part `cut` of either tail is missing, and the rest is scaled up.
    """

    shift: Number
    cut: Number = ZERO

    def place(self, step: Number, upper: bool, tilt: float) -> Weights:
        """The weights p·e^(θ(ℓ − a)) at multiples of the step; a shift between multiples goes to the safe side."""
        ratio = self.shift / step
        whole = -_floor(-iv.mpf(ratio.b), "1e-40") if upper else _floor(iv.mpf(ratio.a), "1e-40")
        if not 1 <= whole <= MOST_CELLS:
            raise CertificateError(f"the grid's step must divide a loss into 1 to {MOST_CELLS} cells")
        spend(2 * whole * _OF_A_CELL)
        a, theta = step * whole, iv.mpf(tilt)
        if self.cut.b > 0 and abs(a - self.shift).b > (iv.mpf("1e-25") * a).b:
            raise CertificateError("the grid's step must divide the loss of bounded noise")
        inner = 2 / (2 - self.cut - self.cut * iv.exp(-a))
        atoms = inner * (1 - self.cut)
        rise = iv.exp(step * (theta + ONE / 2))
        lowest = iv.exp(-a * (1 + 2 * theta))  # e^((ℓ−a)/2)·e^(θ(ℓ−a)) at ℓ = −a
        weights = [ZERO] * (2 * whole + 1)
        if not upper:
            value, factor = lowest * rise, (iv.exp(step / 2) - iv.exp(-step / 2)) / 2
            for i in range(1, 2 * whole, 2):
                weights[i] = value * factor
                value *= rise * rise
        else:
            value, factor = lowest, 1 - 2 / (iv.exp(step / 2) + 1)
            for i in range(2 * whole + 1):
                weights[i] = value * factor / (2 if i in (0, 2 * whole) else 1)
                value *= rise
        weights = [weight * inner for weight in weights] if self.cut.b > 0 else weights
        weights[0] += lowest / 2 * atoms  # the two atoms
        weights[-1] += atoms / 2
        return Weights.of(-whole, weights, a * theta, upper)


@dataclass(frozen=True)
class Atoms:
    """A loss with finitely many values, each with its probability, and the probability of an infinite one."""

    atoms: tuple[tuple[Number, Number], ...]
    infinite: Number = ZERO

    def place(self, step: Number, upper: bool, tilt: float) -> Weights:
        """Each atom spread to the two lattice points around it; the largest one lies on the lattice."""
        if not upper:
            raise CertificateError("for a loss with finitely many values, the grid gives only an upper bound")
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
        if end - start > MOST_CELLS:
            raise CertificateError(f"the grid's step must divide a loss into 1 to {MOST_CELLS} cells")
        placed = [found.get(i, ZERO) for i in range(start, end + 1)]
        return replace(Weights.of(start, placed, top * theta, True), origin=top)


@dataclass(frozen=True)
class Rungs:
    """A loss whose finite values are integer multiples of a unit, from `start` on, with their probabilities.

    It is summed on a lattice whose step is the unit, so that nothing is spread or merged.
    """

    start: int
    chances: tuple[Number, ...]
    unit: Number
    infinite: Number = ZERO

    @property
    def pure(self) -> Number:
        return self.unit * (self.start + len(self.chances) - 1)

    def place(self, step: Number, upper: bool, tilt: float) -> Weights:
        """The weights p·e^(θ(ℓ − top))."""
        if len(self.chances) > 2 * MOST_CELLS:
            raise CertificateError(f"a loss may have at most {2 * MOST_CELLS} values")
        spend(len(self.chances) * _OF_A_CELL)
        fall, weights, factor = iv.exp(-self.unit * iv.mpf(tilt)), [], ONE
        for chance in reversed(self.chances):
            weights.append(chance * factor)
            factor *= fall
        return Weights.of(self.start, weights[::-1], self.pure * iv.mpf(tilt), upper)


Part: TypeAlias = LaplaceShift | Atoms | Rungs


def _floor(value: Number, slack: str) -> int:
    """The integer part; a number that is an integer up to the slack is taken for it."""
    return whole_part(value * (1 + iv.mpf(slack)) if value.a > 0 else value * (1 - iv.mpf(slack)))


@dataclass(frozen=True)
class Weights:
    """Non-negative weights at origin + (start + i)·step, times e^log_scale, each with a relative error up to `error`.

    `lost` bounds the weight that was truncated.
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
        """At least the sum of all weights, including truncated ones."""
        return float(self.mass.sum()) * (1 + self.error + len(self.mass) * _U) + self.lost

    def times(self, other: Weights, cut: float) -> Weights:
        """The weights of the sum of both losses."""
        first, second = len(self.mass), len(other.mass)
        spend(first * second + 50 * (first + second) + _OF_A_SUM)
        mass = _convolved(self.mass, other.mass)
        shorter = min(len(self.mass), len(other.mass))
        error = (1 + self.error) * (1 + other.error) * (1 + (shorter + 2) * _U) - 1
        lost = self.lost * other.total + other.lost * self.total + len(mass) * _TINY
        log_scale, origin = self.log_scale + other.log_scale, self.origin + other.origin
        return Weights(self.start + other.start, mass, log_scale, error, lost, origin)._trimmed(cut)

    def _trimmed(self, cut: float) -> Weights:
        """Without the ends whose weight is below the cut."""
        from_left, from_right = np.cumsum(self.mass), np.cumsum(self.mass[::-1])
        first, last = int(np.searchsorted(from_left, cut)), int(np.searchsorted(from_right, cut))
        if first + last == 0 or first + last >= len(self.mass):
            return self
        kept = self.mass[first : len(self.mass) - last]
        return replace(self, start=self.start + first, mass=kept, lost=self.lost + 2.01 * cut)

    def power(self, count: int, cut: float) -> Weights:
        """The weights of the sum of `count` independent copies."""
        if count == 1:
            return self
        half = self.power(count // 2, cut)
        twice = half.times(half, cut)
        return twice.times(self, cut) if count % 2 else twice


def _convolved(first: Array, second: Array) -> Array:
    """The sums of products, in pieces: longer ones would be handed to several threads, which takes many times as long.

    The error bound of a sum of k products holds in any order.
    """
    short, long = (first, second) if len(first) <= len(second) else (second, first)
    found = np.zeros(len(short) + len(long) - 1)
    for start in range(0, len(short), _PIECE):
        piece = np.convolve(long, short[start : start + _PIECE])
        found[start : start + len(piece)] += piece
    return found


@dataclass(frozen=True)
class Composed:
    """The sum of all losses: δ(ε) from the side toward which it errs."""

    weights: Weights
    step: Number
    tilt: float
    infinite: Number

    def delta(self, epsilon: Number, upper: bool) -> Number:
        """A bound on δ(ε)."""
        step, weights = middle(self.step), self.weights
        spend(60 * len(weights.mass) + _OF_A_SUM)
        base = middle(weights.origin - epsilon)
        steps = (weights.start + np.arange(len(weights.mass))) * step
        slack = 8 * _U * (abs(base) + abs(float(steps[0])) + abs(float(steps[-1])))
        gap = steps + base
        first = int(np.searchsorted(gap, -slack if upper else slack, side="right"))
        gap = gap[first:]
        each = weights.mass[first:] * np.exp(-self.tilt * np.maximum(gap, 0.0))
        each = each * -np.expm1(-np.maximum(0.0, gap + slack if upper else gap - slack))
        # Rounding of the exponent, of exp and of the sum.
        reach = float(gap[-1]) if len(gap) else 0.0
        relative = weights.error + self.tilt * 2 * slack + (4 * self.tilt * abs(reach) + len(gap) + 32) * _U
        if upper and not relative < 0.25:
            raise CertificateError("the grid's tilt is too large for numbers of this size")
        total = float(each.sum())
        scale = iv.exp(weights.log_scale - iv.mpf(self.tilt) * epsilon)
        if upper:
            return at_most_one(self.infinite + iv.mpf(total * (1 + 2 * relative) + 1.001 * weights.lost) * scale)
        return self.infinite + iv.mpf(max(0.0, total * (1 - 2 * relative) - len(gap) * _TINY)) * scale


@cached(8)
def compose(parts: Sequence[tuple[Part, int]], grid: Grid, upper: bool) -> Composed:
    """The sum of independent losses, each with its count; δ from the requested side."""
    step, tilt = grid.step, middle(grid.tilt)
    cut = _CUT / sum(count for _, count in parts)
    placed = [part.place(step, upper, tilt).power(count, cut) for part, count in parts]
    weights = reduce(lambda first, second: first.times(second, cut), placed)
    leaks = [(part.infinite, count) for part, count in parts if not isinstance(part, LaplaceShift)]
    finite = [(1 - leak) ** count for leak, count in leaks if leak.b > 0]
    return Composed(weights, step, tilt, 1 - math.prod(finite, start=ONE) if finite else ZERO)
