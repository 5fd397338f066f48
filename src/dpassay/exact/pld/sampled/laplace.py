"""The loss of Laplace noise on a sum in which records take part with probability q: docs/proofs/poisson.md, point 10.

In scales of the noise a record that takes part moves one coordinate of the sum by at most a. Outputs matter only
through the loss u of the noise itself, between −a and a. With the record against without it they lose
ln(1 − q + q·e^u). A record replaced by its opposite loses that less its smallest value where the output lies on its
side, and the opposite of it on the other side: point 11.
"""

from __future__ import annotations

import math
from typing import ClassVar, Literal

import numpy as np

from dpassay.core.numbers import ZERO, Number, between, down, exp, log, maximum, middle, real, up
from dpassay.exact.pld.lattice_sum import CellMasses
from dpassay.exact.pld.lattice_window import MOST_CELLS, Limits, Sketch
from dpassay.exact.pld.loss_components import Cells
from dpassay.pipeline.pair import Array
from dpassay.values import dataclass

LaplaceWay = Literal["remove", "add", "replace"]
_U = 2.0**-53
_OUTPUTS = 2000  # of a sketch


@dataclass(frozen=True)
class SampledLaplaceLoss:
    """One step: a record that moves a coordinate by `shift` scales and takes part with probability `rate`.

    The record is in the first data set ("remove"), in the second ("add"), or its opposite is there ("replace").

    >>> from dpassay.core.numbers import number
    >>> loss = SampledLaplaceLoss(number("0.01"), number(1), "remove")
    >>> f"{middle(loss.pure):.9g}"  # ln(0.99 + 0.01·e)
    '0.0170368632'
    >>> f"{middle(loss.delta(number('0.005'))):.9g}"  # 0.01·(1 − e^((ln(1 + 100·(e^0.005 − 1)) − 1)/2))
    '0.00256844714'
    """

    rate: Number
    shift: Number
    way: LaplaceWay
    infinite: ClassVar[Number] = ZERO

    @property
    def pure(self) -> Number:
        """ln(1 − q + q·e^a), or −ln(1 − q + q·e^−a), or both together."""
        more = self.shift + log(self.rate + (1 - self.rate) * exp(-self.shift))
        less = -log(1 - self.rate + self.rate * exp(-self.shift))
        return {"remove": more, "add": less, "replace": more + less}[self.way]

    @property
    def mean(self) -> Number:
        """Divergences are convex: between 0 and q times that of the noise on its own."""
        shift = self.shift * 2 if self.way == "replace" else self.shift
        return between(ZERO, self.rate * (shift - 1 + exp(-shift)))

    @property
    def span(self) -> float:
        return max(up(self.pure), up(SampledLaplaceLoss(self.rate, self.shift, self._back).pure))

    @property
    def _back(self) -> LaplaceWay:
        back: dict[LaplaceWay, LaplaceWay] = {"remove": "add", "add": "remove", "replace": "replace"}
        return back[self.way]

    def delta(self, epsilon: Number) -> Number:
        """δ(ε) of one step, in closed form: docs/proofs/poisson.md, point 2, and docs/proofs/laplace.md, point 3."""
        if (self.pure - epsilon).b <= 0:
            return ZERO
        q, gamma = self.rate, exp(epsilon)
        if self.way == "replace":
            inner = log(gamma * exp(-self.shift) + (gamma - 1) * (1 - q) / q)
            return q * maximum(ZERO, 1 - exp((inner - self.shift) / 2))
        if self.way == "remove":
            inner, share = epsilon + log((1 - (1 - q) * exp(-epsilon)) / q), q
        else:
            share = 1 - gamma * (1 - q)
            if share.a <= 0:
                return between(ZERO, real(max(share.b, ZERO.b)))
            inner = epsilon + log(q / share)
        return share * maximum(ZERO, 1 - exp((inner - self.shift) / 2))

    def lattice_cells(self, step: float, upper: bool, limits: Limits) -> CellMasses:
        """Cells on a lattice of losses; both outermost losses are atoms, and lie within the cells."""
        rate, shift = (up(self.rate), up(self.shift)) if upper else (down(self.rate), down(self.shift))
        return self._cells_at(rate, shift, step, upper)

    def _cells_at(self, rate: float, shift: float, step: float, upper: bool) -> CellMasses:
        if self.way == "replace":
            return replaced_cells(rate, shift, step, upper)
        return laplace_cells(rate, shift, step, upper, self.way == "add")

    def sketch(self) -> Sketch:
        """The loss in doubles, to choose a window with."""
        if self.way == "replace":
            return replaced_sketch(middle(self.rate), middle(self.shift))
        return laplace_sketch(middle(self.rate), middle(self.shift), self.way == "add")

    def cells(self, step: float, stride: int, upper: bool) -> Cells:
        """Cells for a sum with losses that have no lattice of their own, between lattice points on either side."""
        rate, shift = (up(self.rate), up(self.shift)) if upper else (down(self.rate), down(self.shift))
        width = max(step * stride, 2 * self.span / MOST_CELLS)
        found = self._cells_at(rate, shift, width, True)
        p, q = found.first[int(upper)][1:-1], found.second[int(not upper)][1:-1]
        edges: Array = found.lowest + np.float64(width) * np.arange(len(p) + 1)
        low, high = edges[:-1] - found.blur, edges[1:] + found.blur
        with np.errstate(divide="ignore", invalid="ignore"):
            centre = np.nan_to_num(np.log(p) - np.log(q), nan=np.inf if upper else -np.inf)
        kept = p > 0
        return Cells(p[kept], np.clip(centre, low, high)[kept], low[kept], high[kept])


def raised(rate: float, u: Array) -> Array:
    """ln(1 − q + q·e^u)."""
    if rate >= 1:
        return u
    return np.asarray(np.logaddexp(math.log1p(-rate), math.log(rate) + u))


def _lowered(rate: float, above: Array) -> Array:
    """The u whose ln(1 − q + q·e^u) is ln(1 − q) plus this; for q = 1 plus 0."""
    if rate >= 1:
        return above
    odds = math.log1p(-rate) - math.log(rate)
    with np.errstate(divide="ignore"):
        return np.asarray(odds + above + np.log(-np.expm1(-above)))


def laplace_cells(rate: float, shift: float, step: float, upper: bool, added: bool) -> CellMasses:
    """Cells of the losses of sampled Laplace noise, in the order of the losses.

    From above cells lie between lattice points, the first of which is the smallest loss with the record. From below
    they lie around them, so that the two atoms do not count for more or less than the losses between them.
    """
    base = math.log1p(-rate) if rate < 1 else 0.0
    # Above the base, the smallest loss is ln(1 + q/(1 − q)·e^−a).
    least = math.log1p(rate / (1 - rate) * math.exp(-shift)) if rate < 1 else -shift
    reach = float(raised(rate, np.array([shift]))[0]) - base - least
    count = max(1, math.ceil(reach / step)) if upper else round(reach / step) + 1
    inner: Array = least + np.float64(step) * (np.arange(1, count) - (0.0 if upper else 0.5))
    u = np.concatenate([[-shift], np.clip(_lowered(rate, inner), -shift, shift), [shift]])
    moved, still = _masses(u, shift)
    mixed = tuple((1 - rate) * one + rate * other for one, other in zip(still, moved, strict=True))
    mixed = mixed[0] * (1 - 4 * _U), mixed[1] * (1 + 4 * _U)
    laws = (still, mixed) if added else (mixed, still)
    lowest = -(base + least + step * count) if added else base + least
    padded = [tuple(np.concatenate([[0.0], side[::-1] if added else side, [0.0]]) for side in law) for law in laws]
    size = 3 * shift + abs(math.log(rate)) + 3 * abs(base) + abs(least) + step * (count + 1) + 60
    first, second = ((law[0], law[1]) for law in padded)
    return CellMasses(lowest, step, 32 * _U * size, first, second)


def _masses(u: Array, shift: float) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """Probabilities of the noise's losses between neighbors in a list from −a to a, the atoms at both ends included.

    For a record that takes part, and for one that does not, each from below and from above.
    """
    gap = -np.expm1(-np.diff(u) / 2) / 2
    moved, still = np.exp((u[1:] - shift) / 2) * gap, np.exp(-(u[:-1] + shift) / 2) * gap
    small = math.exp(-shift) / 2
    for law, first, last in ((moved, small, 0.5), (still, 0.5, small)):
        law[0] += first  # one cell may have both atoms
        law[-1] += last
    off = _U * (16 + 4 * shift)
    return tuple((law * (1 - off), law * (1 + off) + 1e-300) for law in (moved, still))  # type: ignore[return-value]


def laplace_sketch(rate: float, shift: float, added: bool) -> Sketch:
    """Sampled Laplace noise in doubles."""
    u = np.linspace(-shift, shift, _OUTPUTS + 1)
    middles, width = (u[1:] + u[:-1]) / 2, u[1] - u[0]
    still = np.concatenate([[-math.log(2)], -(middles + shift) / 2 + math.log(width / 4), [-shift - math.log(2)]])
    outputs = np.concatenate([[-shift], middles, [shift]])
    lost = raised(rate, outputs)
    reach = float(lost[-1] - lost[0])
    if added:
        return Sketch(-lost, still, -float(lost[0]), reach)
    return Sketch(lost, still + lost, float(lost[0]), reach)


def replaced_cells(rate: float, shift: float, step: float, upper: bool) -> CellMasses:
    """Cells of the losses of a record against its opposite; from above 0 lies between two cells, from below in one.

    At an output t ≥ 0 the second law is that without a record times 1 − q + q·e^−a. Negative outputs are the mirror
    image, with both laws exchanged.
    """
    base = math.log1p(-rate) if rate < 1 else 0.0
    least = math.log1p(rate / (1 - rate) * math.exp(-shift)) if rate < 1 else -shift
    reach = float(raised(rate, np.array([shift]))[0]) - base - least
    count = max(1, math.ceil(reach / step)) if upper else round(reach / step) + 1
    inner: Array = least + np.float64(step) * (np.arange(1, count) - (0.0 if upper else 0.5))
    t = np.concatenate([[0.0], np.clip((_lowered(rate, inner) + shift) / 2, 0.0, shift), [shift]])
    gap = -np.expm1(-np.diff(t)) / 2
    moved, still = np.exp(t[1:] - shift) * gap, np.exp(-t[:-1]) * gap
    moved[-1] += 0.5
    still[-1] += math.exp(-shift) / 2
    first, second = (1 - rate) * still + rate * moved, (1 - rate + rate * math.exp(-shift)) * still
    laws = []
    for here, there in ((first, second), (second, first)):
        halves = [there[::-1], here] if upper else [there[:0:-1], here[:1] + there[:1], here[1:]]
        law, off = np.concatenate([[0.0], *halves, [0.0]]), _U * (24 + 4 * shift)
        laws.append((law * (1 - off), np.where(law > 0, law * (1 + off) + 1e-300, 0.0)))
    size = 3 * shift + abs(math.log(rate)) + 3 * abs(base) + abs(least) + step * (2 * count + 1) + 60
    lowest = -step * count if upper else -step * (count - 1)
    return CellMasses(lowest, step, 32 * _U * size, laws[0], laws[1])


def replaced_sketch(rate: float, shift: float) -> Sketch:
    """A record against its opposite in doubles."""
    t = np.linspace(0.0, shift, _OUTPUTS // 2 + 1)
    middles, width = (t[1:] + t[:-1]) / 2, t[1] - t[0]
    still = np.concatenate([-middles + math.log(width / 2), [-shift - math.log(2)]])
    lost = raised(rate, 2 * np.append(middles, shift) - shift)
    least = float(raised(rate, np.array([-shift]))[0])
    losses, logs = lost - least, still + lost
    return Sketch(np.concatenate([-losses, losses]), np.concatenate([still + least, logs]), 0.0, 2 * float(losses[-1]))
