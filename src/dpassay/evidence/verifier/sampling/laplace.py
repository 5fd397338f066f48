"""Laplace noise on a sum in which each record takes part with some probability: one coordinate, or equal ones.

In scales of the noise a record that takes part moves the coordinate from 0 to a. Outputs below 0 and above a have the
smallest and the largest ratio of both laws; between them, at t, it is e^(2t − a): docs/proofs/poisson.md, point 10.
Several coordinates are summed on a lattice of their own first: point 12. A record replaced by its opposite: point 11.
Sums of many losses are folded on a lattice as those of Gaussian noise are.
"""

import math
from functools import lru_cache

import numpy as np

from dpassay.errors import CertificateError
from dpassay.evidence.verifier.arithmetic import lattice
from dpassay.evidence.verifier.arithmetic.lattice import Array, Grid
from dpassay.evidence.verifier.arithmetic.numbers import (
    ONE,
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
from dpassay.evidence.verifier.arithmetic.work import spend
from dpassay.evidence.verifier.noises.losses import Loss, Summed, Worst
from dpassay.evidence.verifier.sampling.sampled import SampledCurve, largest_at, numbered_sum, spread_sum
from dpassay.values import dataclass

_U = 2.0**-53
_MOST = 1 << 21  # cells
_MOST_POINTS = 1 << 13  # of the noise on several coordinates
MOST_COPIES = 64  # coordinates
_FAR = 400.0  # scales; the probabilities of larger moves cannot be held by doubles


@dataclass(frozen=True)
class SampledLaplace:
    """Some steps, in one order of the data sets: the record is in the first one ("in") or in the second ("out").

    If the second one has its opposite, the order is "both". A record may move several coordinates alike.
    """

    rate: Number
    shift: Number
    order: str
    count: int
    grid: Grid | None
    copies: int = 1

    @property
    def pure(self) -> Number:
        """ln(1 − q + q·e^a) per step, or −ln(1 − q + q·e^−a), or both."""
        whole, total = self.shift * self.copies, ZERO
        if self.order != "out":
            total += whole + iv.log(self.rate + (1 - self.rate) * iv.exp(-whole))
        if self.order != "in":
            total -= iv.log(1 - self.rate + self.rate * iv.exp(-whole))
        return total * self.count

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
        curve = bound(rate, shift, self.order, self.copies, self.count, step, middle(self.grid.tilt))
        found = iv.mpf(largest_at(curve, below(epsilon) if upper else above(epsilon), upper))
        return (smallest if upper else largest)([found, from_one])

    def _one(self, epsilon: Number) -> Number:
        """From one step's closed form: 1 − e^((ε' − a)/2), times the share of the outputs that it is about."""
        ratio, q = iv.exp(epsilon), self.rate
        if self.copies > 1:
            return hull(ZERO, ONE)  # nothing is known in closed form
        if self.order == "both":
            share, before = q, ratio * iv.exp(-self.shift) + (ratio - 1) * (1 - q) / q
        elif self.order == "in":
            share, before = q, 1 + (ratio - 1) / q
        else:
            share = 1 - ratio * (1 - q)
            if not share.a > 0:
                return iv.mpf([0, max(share.b, 0)])
            before = ratio * q / share
        return share * positive_part(1 - iv.sqrt(before) * iv.exp(-self.shift / 2))


def sampled_laplace(loss: Loss, rate: Number, count: int, grid: Grid | None) -> Loss | None:
    """All steps of a record added or removed, given the loss of one in which it takes part.

    None if that is not the loss of equal coordinates with Laplace noise, or if a sum has no grid.
    """
    if isinstance(loss, Worst) and len(loss.losses) == 1:
        return sampled_laplace(loss.losses[0], rate, count, grid)
    if not isinstance(loss, Summed) or len(loss.parts) != 1 or (count > 1 and grid is None):
        return None
    part, copies = loss.parts[0]
    if not isinstance(part, lattice.LaplaceShift) or part.cut.b > 0 or (copies > 1 and not count > 1):
        return None
    if copies > MOST_COPIES:
        return None
    return Worst([SampledLaplace(rate, part.shift, order, count, grid, copies) for order in ("in", "out")])


def sampled_axis(reach: Number, rate: Number, count: int, grid: Grid | None, replaced: bool) -> Loss:
    """All steps, given how far, in l1 and in scales, a record can move the sum: on one axis it shows most."""
    orders = ("both",) if replaced else ("in", "out")
    return Worst([SampledLaplace(rate, iv.mpf(reach.b), order, count, grid) for order in orders])


def _check_cells(cells: float, most: float) -> None:
    if not cells <= most:  # nor NaN
        raise CertificateError("the grid divides a loss into too many cells: its step must be larger")


def _cells(rate: float, shift: float, order: str, step: float, around: bool) -> tuple[float, float, list[Array]]:
    """The smallest loss on the lattice, how far losses may be off, and bounds on all cells' masses under both laws.

    Cells lie between the points of the lattice, or `around` them; the masses are those of the first law from below and
    from above, then those of the second.
    """
    zero = math.log1p(-rate)  # what an output would lose at which only one law is possible
    bottom = math.log1p(rate / (1 - rate) * math.exp(-shift))
    top = float(np.logaddexp(0.0, math.log(rate) - zero + shift))
    _check_cells((top - bottom) / step, _MOST)
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


def _opposite_cells(rate: float, shift: float, step: float, around: bool) -> tuple[float, float, list[Array]]:
    """The same for a record against its opposite.

    At an output t > 0 both laws have the part without a record, the second one e^−a times that for the other record,
    and the first one its own. Below 0 the two laws are exchanged.
    """
    zero = math.log1p(-rate)
    bottom = math.log1p(rate / (1 - rate) * math.exp(-shift))
    top = float(np.logaddexp(0.0, math.log(rate) - zero + shift)) - bottom
    _check_cells(top / step, _MOST / 2)
    half = round(top / step) + 1 if around else max(1, math.ceil(top / step))
    spend(1800 * half)
    rises = bottom + step * (np.arange(half - 1) + (0.5 if around else 1.0))
    ratios = zero - math.log(rate) + rises + np.log1p(-np.exp(-rises))
    t = np.concatenate([[0.0], np.clip((ratios + shift) / 2, 0.0, shift), [shift]])
    narrow = -np.expm1(-np.diff(t)) / 2
    absent, own = np.exp(-t[:-1]) * narrow, np.exp(t[1:] - shift) * narrow
    absent[-1] += math.exp(-shift) / 2
    own[-1] += 0.5
    near, far = (1 - rate) * absent + rate * own, (1 - rate + rate * math.exp(-shift)) * absent
    laws = []
    for right, left in ((near, far), (far, near)):
        if around:  # the cell around 0 has a part on either side
            laws.append(np.concatenate([left[:0:-1], [right[0] + left[0]], right[1:]]))
        else:
            laws.append(np.concatenate([left[::-1], right]))
    off = _U * (32 + 6 * shift)
    ends = [end for law in laws for end in (law * (1 - off), law * (1 + off) + 1e-300)]
    blur = 64 * _U * (3 * shift + abs(math.log(rate)) + 3 * abs(zero) + bottom + 2 * step * (half + 1) + 60)
    return -step * half, blur, [np.concatenate([[0.0], mass, [0.0]]) for mass in ends]


def _noise(shift: float, copies: int, pieces: int, around: bool) -> tuple[Array, Array, Array]:
    """The sum of the losses of some coordinates with Laplace noise on a lattice, and its masses with and without it.

    Each coordinate's losses from −a to a are cut into pieces. From above they are spread to both ends, which leaves
    their probabilities under both laws as they are; from below (`around`) all that is used is their number.
    """
    width = 2 * shift / pieces
    edges = np.linspace(-shift, shift, pieces + 1)
    mass = np.exp((edges[1:] - shift) / 2) * -math.expm1(-width / 2) / 2
    if around:
        one = np.concatenate([[math.exp(-shift) / 2], mass, [0.5]])  # atom, pieces, atom
    else:
        right = 1 / (1 + math.exp(-width / 2))
        one = np.append(mass * (1 - right), 0.0) + np.append(0.0, mass * right)
        one[0] += math.exp(-shift) / 2
        one[-1] += 0.5
    with_it, without = one, one[::-1]
    spend(2 * copies * copies * len(one) * len(one) + 900 * copies * len(one))
    for _ in range(copies - 1):
        with_it, without = np.convolve(with_it, one), np.convolve(without, one[::-1])
    return np.linspace(-shift * copies, shift * copies, len(with_it)), with_it, without


def _several_cells(
    rate: float, shift: float, copies: int, order: str, step: float, around: bool
) -> tuple[float, float, list[Array]]:
    """The same for several coordinates that a record moves alike."""
    pieces = min(2 * math.ceil(shift * math.sqrt(copies) / step), _MOST_POINTS // copies)
    u, with_it, without = _noise(shift, copies, max(2, pieces), around)
    zero = math.log1p(-rate)
    losses = np.logaddexp(zero, math.log(rate) + u)
    rises = (losses - losses[0]) / step
    _check_cells(float(rises[-1]), _MOST)
    numbers = (np.rint(rises) if around else np.floor(rises)).astype(np.int64)
    cells = int(numbers[-1]) + 1
    off = _U * (48 * copies + 4 * len(u) + 8 * copies * shift)
    mixed = (1 - rate) * without + rate * with_it
    ends = []
    for law in (mixed, without) if order == "in" else (without, mixed):
        mass = np.bincount(numbers, weights=law, minlength=cells)
        mass = mass if order == "in" else mass[::-1]
        ends += [mass * (1 - off), mass * (1 + off) + 1e-300]
    lowest = float(losses[0]) if order == "in" else -(float(losses[0]) + step * cells)
    blur = 128 * _U * (4 * copies * shift + abs(math.log(rate)) + 4 * abs(zero) + step * (cells + 1) + 60)
    return lowest, blur, [np.concatenate([[0.0], mass, [0.0]]) for mass in ends]


def _all_cells(
    rate: float, shift: float, order: str, copies: int, step: float, around: bool
) -> tuple[float, float, list[Array]]:
    if copies > 1:
        return _several_cells(rate, shift, copies, order, step, around)
    if order == "both":
        return _opposite_cells(rate, shift, step, around)
    return _cells(rate, shift, order, step, around)


@lru_cache(maxsize=2)
def _upper(rate: float, shift: float, order: str, copies: int, count: int, step: float, tilt: float) -> SampledCurve:
    lowest, blur, (_, most, least, _) = _all_cells(rate, shift, order, copies, step, False)
    return spread_sum(lowest, blur, most, least, count, step, tilt)


@lru_cache(maxsize=2)
def _lower(rate: float, shift: float, order: str, copies: int, count: int, step: float, tilt: float) -> SampledCurve:
    _, _, (first, _, _, second) = _all_cells(rate, shift, order, copies, step, True)
    return numbered_sum(first, second, count, step, tilt)
