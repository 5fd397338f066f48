"""Cells of the loss of one sampled step: docs/proofs/lattice-sums.md.

The outputs are those of the one coordinate that counts, in standard deviations of the noise.
"""

from __future__ import annotations

import math
from typing import Literal, Protocol, TypeAlias

import numpy as np

from dpassay.core.numbers import Number, down, middle, up
from dpassay.exact.pld.lattice_sum import CellMasses
from dpassay.exact.pld.lattice_window import Sketch
from dpassay.pipeline.pair import Array

# The record is in the first data set, in the second, in both; or, for batches of fixed size, the dominating pair.
Adjacency: TypeAlias = Literal["remove", "add", "replace", "fixed"]
_U = 2.0**-53


class SampledStep(Protocol):
    """The loss of one step: how often a record takes part, and by how much it then moves the sum."""

    @property
    def rate(self) -> Number: ...

    @property
    def mu(self) -> Number: ...

    @property
    def way(self) -> Adjacency: ...


def losses_at(rate: float, mu: float, x: Array, way: Adjacency) -> Array:
    """The loss at some outputs, in doubles."""
    up = np.logaddexp(math.log1p(-rate), math.log(rate) + mu * x - mu * mu / 2)
    if way == "replace":
        return np.asarray(up - np.logaddexp(math.log1p(-rate), math.log(rate) - mu * x - mu * mu / 2))
    return np.asarray(up if way == "remove" else -up)


def outputs_at(rate: float, mu: float, losses: Array, way: Adjacency) -> Array:
    """The outputs that have some losses, −∞ and ∞ if none has; for "add" those whose losses are −losses."""
    odds = math.log1p(-rate) - math.log(rate) + mu * mu / 2
    with np.errstate(divide="ignore", over="ignore"):
        if way == "replace":
            size = np.abs(losses) / 2
            log = odds + size + np.log(-np.expm1(-2 * size)) - math.log(2)  # of (1−q)/q·e^(μ²/2)·sinh
            inverse = np.where(log > 20, log + math.log(2), np.arcsinh(np.exp(np.minimum(log, 21.0))))
            return np.asarray(np.sign(losses) * (size + inverse) / mu)
        above = losses - math.log1p(-rate)
        return np.asarray((odds + above + np.log(-np.expm1(-np.maximum(above, 0.0)))) / mu)


def cell_masses(loss: SampledStep, step: float, upper: bool, beyond: float, depth: float = math.inf) -> CellMasses:
    """Cells on a lattice of losses, up to about this probability; for "add" to this depth below the largest."""
    rate, mu = (up(loss.rate), up(loss.mu)) if upper else (down(loss.rate), down(loss.mu))
    far = mu + math.sqrt(-2 * math.log(beyond))
    reach = float(losses_at(rate, mu, np.array([far]), "replace" if loss.way == "replace" else "remove")[0])
    base = 0.0 if loss.way in ("replace", "fixed") else math.log1p(-rate)
    last = max(1, math.ceil(min(reach - base, depth if loss.way == "add" else math.inf) / step))
    first = -last if loss.way == "replace" else 0
    edges: Array = base + np.float64(step) * np.arange(first, last + 1)
    if loss.way == "replace" and not upper:
        edges = edges + step / 2  # the many losses near 0 get one number
    x = outputs_at(rate, mu, edges, "replace" if loss.way == "replace" else "remove")
    x = np.concatenate([[-np.inf], x, [np.inf]])
    if loss.way in ("remove", "add"):
        x[1] = -np.inf  # the least loss is never reached
    plain = normal_masses(x, 0.0)
    mixed = _mixed(rate, plain, normal_masses(x, mu))
    other = plain if loss.way != "replace" else _mixed(rate, plain, normal_masses(x, -mu))
    laws = (mixed, other) if loss.way != "add" else (plain, mixed)
    size = mu * max(abs(float(x[-2])), far) + mu * mu + abs(math.log(rate)) + 2 * abs(base) + abs(edges[-1]) + 60
    blur = 32 * _U * size
    if loss.way == "fixed":
        return _both_ways(laws, step, blur)
    if loss.way == "add":
        first_law, second_law = ((low[::-1], high[::-1]) for low, high in laws)
        return CellMasses(-float(edges[-1]), step, blur, first_law, second_law)
    return CellMasses(float(edges[0]), step, blur, *laws)


def _both_ways(laws: tuple[tuple[Array, Array], tuple[Array, Array]], step: float, blur: float) -> CellMasses:
    """The losses above 0 of a pair, their mirror images, and an atom at 0: docs/proofs/fixed-size.md, point 3."""
    (p_low, p_high), (q_low, q_high) = ((low[1:], high[1:]) for low, high in laws)  # without what lies below 0
    whole = [1 - float(p.sum()) - float(q.sum()) for p, q in ((p_high, q_high), (p_low, q_low))]
    atom = max(0.0, whole[0] - 1e-12), max(0.0, whole[1] + 1e-12)
    first: list[Array] = []
    second: list[Array] = []
    for p, q, middle_mass in ((p_low, q_low, atom[0]), (p_high, q_high, atom[1])):
        for side, above, below in ((first, p, q), (second, q, p)):
            joined = np.concatenate([below[::-1], above])
            joined[len(below)] += middle_mass  # the cell from 0 on
            side.append(joined)
    return CellMasses(-step * (len(p_low) - 1), step, blur, (first[0], first[1]), (second[0], second[1]))


def _mixed(rate: float, plain: tuple[Array, Array], moved: tuple[Array, Array]) -> tuple[Array, Array]:
    low, high = ((1 - rate) * one + rate * other for one, other in zip(plain, moved, strict=True))
    return low * (1 - 4 * _U), high * (1 + 4 * _U)


def normal_masses(x: Array, shift: float) -> tuple[Array, Array]:
    """The probabilities of N(shift, 1) between neighboring x, from below and from above."""
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


def sketch(loss: SampledStep) -> Sketch:
    """The loss of one step in doubles, to choose a window with."""
    rate, mu = middle(loss.rate), middle(loss.mu)
    x = np.linspace(-12.0 - mu, 12.0 + mu, 4001)
    losses = losses_at(rate, mu, x, "remove" if loss.way == "fixed" else loss.way)
    logs = -x * x / 2 + math.log((x[1] - x[0]) / math.sqrt(2 * math.pi))
    if loss.way != "add":
        logs = logs + losses_at(rate, mu, x, "remove")
    if loss.way == "fixed":
        above = losses > 0
        losses = np.concatenate([losses[above], -losses[above], [0.0]])
        logs = np.concatenate([logs[above], logs[above] - losses[: above.sum()], [0.0]])
        logs[-1] = math.log(max(1e-300, 1 - float(np.exp(logs[:-1]).sum())))
    least = math.log1p(-rate)
    base = {"remove": least, "add": -least, "replace": 0.0, "fixed": 0.0}[loss.way]  # a place on the lattice
    top = -least if loss.way == "add" else math.inf
    return Sketch(losses, logs, base, float(np.abs(losses).max()), top)
