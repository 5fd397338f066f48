"""Losses of several kinds in cells on one lattice, so that they can be summed: docs/proofs/lattice-sums.md, point 7."""

from __future__ import annotations

import math
from functools import singledispatch

import numpy as np

from dpassay.core.numbers import down, exp, middle, up
from dpassay.exact.pld.lattice_sum import CellMasses
from dpassay.exact.pld.lattice_window import Limits, Sketch
from dpassay.exact.pld.loss_components import AtomLoss, GaussianLoss, LaplaceLoss
from dpassay.exact.pld.sampled.cells import cell_masses, normal_masses, sketch
from dpassay.exact.pld.sampled.gaussian import FARTHEST, SampledLoss
from dpassay.exact.pld.sampled.laplace import SampledLaplaceLoss, laplace_cells, laplace_sketch
from dpassay.exact.pld.sampled.laplace_sum import SampledSumLoss
from dpassay.pipeline.pair import Array

_U = 2.0**-53
_NEAR = 1e-7  # of a step: an atom this near to a lattice point is taken to lie there, and the difference is counted


@singledispatch
def has_cells(component: object) -> bool:
    """Whether a loss can be divided into cells on a lattice."""
    return False


@singledispatch
def sketch_of(component: object) -> Sketch:
    """A loss that has cells in doubles, to choose a window with."""
    raise NotImplementedError


@singledispatch
def cells_of(component: object, step: float, upper: bool, limits: Limits) -> CellMasses:
    """Cells of the finite part of a loss that has them, erring toward one side."""
    raise NotImplementedError


@has_cells.register(AtomLoss)
def _(component: AtomLoss) -> bool:
    return bool(component.atoms) and all(p.a > 0 for _, p in component.atoms)


@sketch_of.register(AtomLoss)
def _(component: AtomLoss) -> Sketch:
    losses, chances = (np.array([middle(atom[i]) for atom in component.atoms]) for i in (0, 1))
    return Sketch(losses, np.log(chances), float(losses.max()), float(np.ptp(losses)))


@has_cells.register(GaussianLoss)
@has_cells.register(SampledLoss)
def _(component: GaussianLoss | SampledLoss) -> bool:
    return bool(component.mu.a > 0 and up(component.mu) <= FARTHEST)


@sketch_of.register(GaussianLoss)
def _(component: GaussianLoss) -> Sketch:
    mu, z = middle(component.mu), np.linspace(-14.0, 14.0, 4001)
    logs = -z * z / 2 + math.log((z[1] - z[0]) / math.sqrt(2 * math.pi))
    return Sketch(mu * z + mu * mu / 2, logs, mu * mu / 2, 28 * mu)


@cells_of.register(GaussianLoss)
def _(component: GaussianLoss, step: float, upper: bool, limits: Limits) -> CellMasses:
    return _gaussian_cells(up(component.mu) if upper else down(component.mu), step, upper, limits.unlikely)


sketch_of.register(SampledLoss, sketch)


@cells_of.register(SampledLoss)
def _(component: SampledLoss, step: float, upper: bool, limits: Limits) -> CellMasses:
    return cell_masses(component, step, upper, limits.unlikely, limits.depth)


@has_cells.register(LaplaceLoss)
def _(component: LaplaceLoss) -> bool:
    return bool(component.shift.a > 0)


@sketch_of.register(LaplaceLoss)
def _(component: LaplaceLoss) -> Sketch:
    return laplace_sketch(1.0, middle(component.shift), False)


@cells_of.register(LaplaceLoss)
def _(component: LaplaceLoss, step: float, upper: bool, limits: Limits) -> CellMasses:
    return laplace_cells(1.0, up(component.shift) if upper else down(component.shift), step, upper, False)


@has_cells.register(SampledLaplaceLoss)
def _(component: SampledLaplaceLoss) -> bool:
    return bool(down(component.rate) > 1e-300 and component.shift.a > 0)


@has_cells.register(SampledSumLoss)
def _(component: SampledSumLoss) -> bool:
    return bool(component.shift.a > 0 and down(component.rate) > 1e-300 and up(component.rate) < 1)


for _kind in (SampledLaplaceLoss, SampledSumLoss):
    sketch_of.register(_kind, _kind.sketch)
    cells_of.register(_kind, _kind.lattice_cells)


@cells_of.register(AtomLoss)
def _atom_cells(component: AtomLoss, step: float, upper: bool, limits: Limits) -> CellMasses:
    """The largest atom lies on the lattice; each other one in a cell from above, and nearest to a number from below."""
    losses = np.array([middle(loss) for loss, _ in component.atoms])
    top = float(losses.max())
    below = (losses - top) / step
    last = math.ceil(-float(below.min())) + 1
    number = np.floor(below + _NEAR) if upper else np.rint(below)
    cells = np.minimum(number, -1.0 if upper else 0.0).astype(int) + last + (1 if upper else 0)
    lowest = top - last * step
    size = max(up(abs(loss)) for loss, _ in component.atoms) + (last + 1) * step
    wide = max(up(loss) - down(loss) for loss, _ in component.atoms)
    edges = lowest + step * (cells - 1)
    outside = np.maximum(edges - losses, losses - edges - step).max(initial=0.0)
    blur = float(outside) + wide + 16 * _U * size if upper else 0.0
    seconds = [chance * exp(-loss) for loss, chance in component.atoms]

    def gathered(values: list[float], more: float) -> Array:
        return np.asarray(np.bincount(cells, weights=values, minlength=last + 2) * (1 + more * len(values) * _U))

    first, second = (
        (gathered([down(value) for value in side], -2.0), gathered([up(value) for value in side], 2.0))
        for side in ([chance for _, chance in component.atoms], seconds)
    )
    return CellMasses(lowest, step, blur, first, second)


def _gaussian_cells(mu: float, step: float, upper: bool, unlikely: float) -> CellMasses:
    """The output of N(μ, 1) against N(0, 1): the loss at x is μx − μ²/2."""
    far = math.sqrt(-2 * math.log(unlikely))
    lowest = mu * mu / 2 - mu * far
    count = max(1, math.ceil(2 * mu * far / step))
    edges = lowest + step * np.arange(count + 1)
    x = np.concatenate([[-np.inf], (edges + mu * mu / 2) / mu, [np.inf]])
    blur = 16 * _U * (mu * mu + 2 * mu * far + step * count + abs(lowest) + 1)
    return CellMasses(lowest, step, blur, normal_masses(x, mu), normal_masses(x, 0.0))
