"""Laplace noise on several coordinates of a sum in which records take part with probability q.

A record that takes part moves each of n coordinates by at most a scales. The loss of the noise itself, u, is a sum of n
independent ones, divided on a lattice of its own. With the record against without it, ln(1 − q + q·e^u) is lost:
docs/proofs/poisson.md, point 12.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import ClassVar

import numpy as np

from dpassay.core.numbers import ONE, ZERO, Number, between, down, exp, log, middle, up
from dpassay.exact.pld.lattice_sum import CellMasses
from dpassay.exact.pld.lattice_window import MOST_CELLS, Limits, Sketch
from dpassay.exact.pld.loss_components import Cells
from dpassay.exact.pld.sampled.laplace import LaplaceWay, raised
from dpassay.pipeline.pair import Array
from dpassay.values import dataclass

_U = 2.0**-53
_MOST_POINTS = 1 << 14  # of the sum of all coordinates
MOST_COORDINATES = 64


@dataclass(frozen=True)
class SampledSumLoss:
    """One step: a record that moves `copies` coordinates by `shift` scales each and takes part with probability `rate`.

    >>> from dpassay.core.numbers import number
    >>> f"{middle(SampledSumLoss(ONE / 2, ONE, 3, 'remove').pure):.9g}"  # ln(1/2 + e^3/2)
    '2.35544017'
    """

    rate: Number
    shift: Number
    copies: int
    way: LaplaceWay
    infinite: ClassVar[Number] = ZERO

    @property
    def pure(self) -> Number:
        """ln(1 − q + q·e^(na)), or −ln(1 − q + q·e^(−na))."""
        whole = self.shift * self.copies
        if self.way == "remove":
            return whole + log(self.rate + (1 - self.rate) * exp(-whole))
        return -log(1 - self.rate + self.rate * exp(-whole))

    @property
    def mean(self) -> Number:
        """Divergences are convex: between 0 and q times that of the noise on its own."""
        return between(ZERO, self.rate * self.copies * (self.shift - 1 + exp(-self.shift)))

    @property
    def span(self) -> float:
        ways: tuple[LaplaceWay, ...] = ("remove", "add")
        return max(up(SampledSumLoss(self.rate, self.shift, self.copies, way).pure) for way in ways)

    def delta(self, epsilon: Number) -> Number:
        """Known from the cells of several steps alone."""
        return ZERO if (self.pure - epsilon).b <= 0 else between(ZERO, ONE)

    def lattice_cells(self, step: float, upper: bool, limits: Limits) -> CellMasses:
        """Cells on a lattice of losses, from a lattice of the noise's own that is no coarser."""
        rate, shift = (up(self.rate), up(self.shift)) if upper else (down(self.rate), down(self.shift))
        return _sum_cells(rate, shift, self.copies, step, upper, self.way == "add")

    def sketch(self) -> Sketch:
        """The loss in doubles, to choose a window with."""
        rate, shift = middle(self.rate), middle(self.shift)
        u, moved, still = _noise_sum(shift, self.copies, max(1, 512 // self.copies), False)
        mixed = (1 - rate) * still + rate * moved
        losses, mass = (-raised(rate, u), still) if self.way == "add" else (raised(rate, u), mixed)
        kept = mass > 0
        return Sketch(losses[kept], np.log(mass[kept]), float(losses[0]), float(np.ptp(losses)))

    def cells(self, step: float, stride: int, upper: bool) -> Cells:
        """Cells for a sum with losses that have no lattice of their own, between lattice points on either side."""
        width = max(step * stride, 2 * self.span / MOST_CELLS)
        rate, shift = (up(self.rate), up(self.shift)) if upper else (down(self.rate), down(self.shift))
        found = _sum_cells(rate, shift, self.copies, width, True, self.way == "add")
        p, q = found.first[int(upper)][1:-1], found.second[int(not upper)][1:-1]
        edges: Array = found.lowest + np.float64(width) * np.arange(len(p) + 1)
        low, high = edges[:-1] - found.blur, edges[1:] + found.blur
        with np.errstate(divide="ignore", invalid="ignore"):
            centre = np.nan_to_num(np.log(p) - np.log(q), nan=np.inf if upper else -np.inf)
        kept = p > 0
        return Cells(p[kept], np.clip(centre, low, high)[kept], low[kept], high[kept])


def _sum_cells(rate: float, shift: float, copies: int, step: float, upper: bool, added: bool) -> CellMasses:
    """Cells on a lattice, in the order of the losses; from below they are numbers of sums, whatever they lose."""
    wanted = math.ceil(shift * math.sqrt(copies) / step)
    u, moved, still = _noise_sum(shift, copies, max(1, min(wanted, _MOST_POINTS // (2 * copies))), upper)
    losses = raised(rate, u)
    least = float(losses[0])
    number = np.floor((losses - least) / step) if upper else np.rint((losses - least) / step)
    places: np.ndarray[tuple[int], np.dtype[np.int64]] = number.astype(np.int64)
    count = int(places[-1]) + 1
    off = _U * (40 * copies + 4 * len(u) + 8 * copies * shift)  # of masses: powers, sums of products, and their sums

    def gathered(mass: Array) -> tuple[Array, Array]:
        law = np.bincount(places, weights=mass, minlength=count)
        law = law[::-1] if added else law
        ends = (law * (1 - off), law * (1 + off) + 1e-300)
        least_mass, most_mass = (np.concatenate([[0.0], end, [0.0]]) for end in ends)
        return least_mass, most_mass

    still_cells, mixed_cells = gathered(still), gathered((1 - rate) * still + rate * moved)
    first, second = (still_cells, mixed_cells) if added else (mixed_cells, still_cells)
    lowest = -(least + step * count) if added else least
    size = 4 * copies * shift + abs(math.log(rate)) + 4 * abs(math.log1p(-rate)) + step * (count + 1) + 60
    return CellMasses(lowest, step, 64 * _U * size, first, second)


@lru_cache(maxsize=8)
def _noise_sum(shift: float, copies: int, half: int, upper: bool) -> tuple[Array, Array, Array]:
    """The losses u of the noise on all coordinates on a lattice, and their masses with the record and without it.

    From above each coordinate's cells are spread to both ends, so that u is the logarithm of the ratio of both laws
    there. From below they are numbered, and u is only about what outputs of a number lose.
    """
    step = shift / half
    low: Array = np.float64(step) * np.arange(2 * half) - shift
    cell = np.exp((low + step - shift) / 2) * -math.expm1(-step / 2) / 2
    moved = np.zeros(2 * half + 1)
    if upper:
        share = 1 / (1 + math.exp(-step / 2))
        moved[1:] += cell * share
        moved[:-1] += cell * (1 - share)
    else:  # cells of two steps around every other place, and the atoms
        moved[1::2] += cell[0::2] + cell[1::2]
    moved[0] += math.exp(-shift) / 2
    moved[-1] += 0.5
    still = moved[::-1].copy()
    whole_moved, whole_still = moved, still
    for _ in range(copies - 1):
        whole_moved, whole_still = np.convolve(whole_moved, moved), np.convolve(whole_still, still)
    u: Array = np.float64(step) * (np.arange(len(whole_moved)) - copies * half)
    return u, whole_moved, whole_still
