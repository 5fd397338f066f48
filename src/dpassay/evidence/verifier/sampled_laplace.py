"""Laplace noise on one coordinate of a sum in which each record takes part with some probability.

In scales of the noise a record that takes part moves the coordinate from 0 to a. Outputs below 0 and above a have the
smallest and the largest ratio of both laws; between them, at t, it is e^(2t − a): docs/proofs/poisson.md, point 10.
Sums of many losses are folded on a lattice as those of Gaussian noise are.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dpassay.errors import CertificateError
from dpassay.evidence.verifier import lattice
from dpassay.evidence.verifier.lattice import Array, Grid
from dpassay.evidence.verifier.losses import Loss, Summed, Worst
from dpassay.evidence.verifier.numbers import (
    ZERO,
    Number,
    above,
    at_most_one,
    below,
    hull,
    iv,
    largest,
    middle,
    positive_part,
    smallest,
)
from dpassay.evidence.verifier.sampled import Curve, largest_at, numbered_sum, spread_sum
from dpassay.evidence.verifier.work import spend

_U = 2.0**-53
_MOST = 1 << 21  # cells
_FAR = 400.0  # scales; the probabilities of larger moves cannot be held by doubles


@dataclass(frozen=True)
class SampledLaplace:
    """Some steps, in one order of the data sets: the record is in the first one ("in") or in the second ("out")."""

    rate: Number
    shift: Number
    order: str
    count: int
    grid: Grid | None

    @property
    def pure(self) -> Number:
        """ln(1 − q + q·e^a) per step, or −ln(1 − q + q·e^−a)."""
        if self.order == "in":
            return (self.shift + iv.log(self.rate + (1 - self.rate) * iv.exp(-self.shift))) * self.count
        return -iv.log(1 - self.rate + self.rate * iv.exp(-self.shift)) * self.count

    def delta(self, epsilon: Number, upper: bool) -> Number:
        if not self.shift.b > 0 or (self.pure - epsilon).b <= 0:
            return ZERO
        if self.count == 1:
            return self._one(epsilon)
        if self.grid is None:
            raise CertificateError("a sum of losses needs a grid")
        ends = above if upper else below
        rate, shift, step = ends(self.rate), ends(self.shift), middle(self.grid.step)
        apart, share = 1 - (1 - self._one(ZERO)) ** self.count, self._one(epsilon / self.count) * self.count
        from_one = hull(self._one(epsilon), at_most_one(smallest([apart, share])))
        if not (0 < rate < 1 and 0 < shift <= _FAR and step > 0):
            return from_one
        bound = _upper if upper else _lower
        curve = bound(rate, shift, self.order, self.count, step, middle(self.grid.tilt))
        found = iv.mpf(largest_at(curve, below(epsilon) if upper else above(epsilon), upper))
        return (smallest if upper else largest)([found, from_one])

    def _one(self, epsilon: Number) -> Number:
        """From one step's closed form: 1 − e^((ε' − a)/2), times the share of the outputs that it is about."""
        ratio, q = iv.exp(epsilon), self.rate
        if self.order == "in":
            share, before = q, 1 + (ratio - 1) / q
        else:
            share = 1 - ratio * (1 - q)
            if not share.a > 0:
                return iv.mpf([0, max(share.b, 0)])
            before = ratio * q / share
        return share * positive_part(1 - iv.sqrt(before) * iv.exp(-self.shift / 2))


def sampled_laplace(loss: Loss, rate: Number, count: int, grid: Grid | None) -> Loss | None:
    """All steps of a record added or removed, given the loss of one in which it takes part.

    None if that is not the loss of one coordinate with Laplace noise, or if a sum has no grid.
    """
    if isinstance(loss, Worst) and len(loss.losses) == 1:
        return sampled_laplace(loss.losses[0], rate, count, grid)
    if not isinstance(loss, Summed) or len(loss.parts) != 1 or (count > 1 and grid is None):
        return None
    part, copies = loss.parts[0]
    if copies != 1 or not isinstance(part, lattice.Laplace) or part.cut.b > 0:
        return None
    return Worst([SampledLaplace(rate, part.shift, order, count, grid) for order in ("in", "out")])


def _cells(rate: float, shift: float, order: str, step: float, around: bool) -> tuple[float, float, list[Array]]:
    """The smallest loss on the lattice, how far losses may be off, and bounds on all cells' masses under both laws.

    Cells lie between the points of the lattice, or `around` them; the masses are those of the first law from below and
    from above, then those of the second.
    """
    zero = math.log1p(-rate)  # what an output would lose at which only one law is possible
    bottom = math.log1p(rate / (1 - rate) * math.exp(-shift))
    top = float(np.logaddexp(0.0, math.log(rate) - zero + shift))
    if not (top - bottom) / step <= _MOST:
        raise CertificateError("the grid's step must divide a loss into cells, and not into too many")
    cells = round((top - bottom) / step) + 1 if around else max(1, math.ceil((top - bottom) / step))
    spend(900 * cells)
    rises = bottom + step * (np.arange(cells - 1) + (0.5 if around else 1.0))
    ratios = zero - math.log(rate) + rises + np.log1p(-np.exp(-rises))  # ln of both laws' ratio, if it takes part
    t = np.concatenate([[0.0], np.clip((ratios + shift) / 2, 0.0, shift), [shift]])
    narrow = -np.expm1(-np.diff(t)) / 2
    without, with_it = np.exp(-t[:-1]) * narrow, np.exp(t[1:] - shift) * narrow
    for law, first, last in ((without, 0.5, math.exp(-shift) / 2), (with_it, math.exp(-shift) / 2, 0.5)):
        law[0] += first
        law[-1] += last
    off = _U * (24 + 6 * shift)
    plain = [without * (1 - off), without * (1 + off) + 1e-300]
    moved = [with_it * (1 - off), with_it * (1 + off) + 1e-300]
    mixed = [((1 - rate) * a + rate * b) * (1 + s * 6 * _U) for a, b, s in zip(plain, moved, (-1, 1), strict=True)]
    masses = [*mixed, *plain] if order == "in" else [mass[::-1] for mass in (*plain, *mixed)]
    lowest = zero + bottom if order == "in" else -(zero + bottom + step * cells)
    blur = 64 * _U * (3 * shift + abs(math.log(rate)) + 3 * abs(zero) + bottom + step * (cells + 1) + 60)
    return lowest, blur, [np.concatenate([[0.0], mass, [0.0]]) for mass in masses]


@lru_cache(maxsize=2)
def _upper(rate: float, shift: float, order: str, count: int, step: float, tilt: float) -> Curve:
    lowest, blur, (_, most, least, _) = _cells(rate, shift, order, step, False)
    return spread_sum(lowest, blur, most, least, count, step, tilt)


@lru_cache(maxsize=2)
def _lower(rate: float, shift: float, order: str, count: int, step: float, tilt: float) -> Curve:
    _, _, (first, _, _, second) = _cells(rate, shift, order, step, True)
    return numbered_sum(first, second, count, step, tilt)
