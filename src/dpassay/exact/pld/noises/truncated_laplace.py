"""The loss of a coordinate with truncated Laplace noise: docs/proofs/truncated-laplace.md. Distances are in scales."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from dpassay.core.numbers import INFINITY, ONE, ZERO, Number, between, exp, maximum, middle, minimum, missing, real, up
from dpassay.exact.pld.loss_components import AtomLoss, Cells, LaplaceLoss, LossComponent
from dpassay.values import dataclass


@dataclass(frozen=True)
class TruncatedLaplaceLoss:
    """Laplace noise between ±`bound` scales against itself, moved by `shift` scales, less than twice the bound.

    With probability `infinite` the output lies where the other one cannot be. All others are those of Laplace noise
    with the shift `largest`, of which a part of either tail is missing.

    >>> from dpassay.core.numbers import number
    >>> one = TruncatedLaplaceLoss(number(2), ONE)
    >>> round(middle(one.infinite), 6)  # (e^−1 − e^−2)/(2(1 − e^−2))
    0.134471
    """

    bound: Number
    shift: Number

    @cached_property
    def infinite(self) -> Number:
        """P(T < s − a), which increases with the shift."""
        low, high = (self._beyond(real(end)) for end in (self.shift.a, self.shift.b))
        return maximum(ZERO, between(low, high))

    def _beyond(self, shift: Number) -> Number:
        inside = 2 * missing(self.bound)
        if (shift - self.bound).b <= 0:
            return exp(shift - self.bound) * missing(shift) / inside
        return 1 - (exp(self.bound - shift) - exp(-self.bound)) / inside

    @cached_property
    def largest(self) -> Number:
        """The largest finite loss: min(s, 2a − s)."""
        return minimum(self.shift, 2 * self.bound - self.shift)

    @cached_property
    def _atom(self) -> Number:
        """The probability of the largest finite loss: 1 − e^(s − a) over 2(1 − e^−a)."""
        return missing(maximum(ZERO, self.bound - self.shift)) / (2 * missing(self.bound))

    @cached_property
    def _density(self) -> Number:
        """By how much losses between the largest and the smallest one are likelier than those of Laplace noise."""
        return exp(-maximum(ZERO, self.shift - self.bound)) / missing(self.bound)

    @property
    def pure(self) -> Number:
        return INFINITY if self.infinite.a > 0 else between(maximum(ZERO, self.largest), INFINITY)

    @property
    def mean(self) -> Number:
        return self.pure

    @property
    def span(self) -> float:
        return up(self.largest)

    def delta(self, epsilon: Number) -> Number:
        """λ + atom·(1 − e^(ε−m)) + density/2·(1 − e^((ε−m)/2))², m the largest finite loss."""
        return between(*(self._delta(real(end)) for end in (epsilon.b, epsilon.a)))

    def _delta(self, epsilon: Number) -> Number:
        gap = maximum(ZERO, self.largest - epsilon)
        return self.infinite + self._atom * missing(gap) + self._density / 2 * missing(gap / 2) ** 2

    def cells(self, step: float, stride: int, upper: bool) -> Cells:
        """Those of Laplace noise, with other weights: more is lost with a larger `largest`, as it is there."""
        cells = LaplaceLoss(self.largest).cells(step, stride, upper)
        weights = np.full(len(cells.mass), middle(self._density))
        weights[:2] = middle(2 * self._atom)
        return Cells(cells.mass * weights, cells.centre, cells.low, cells.high)


def truncated_loss(bound: Number, shift: Number) -> LossComponent:
    """The loss of one coordinate; two values that are too far apart have no output in common.

    >>> from dpassay.core.numbers import number
    >>> middle(truncated_loss(ONE, number(2)).infinite)
    1.0
    """
    if (2 * bound - shift).b <= 0:
        return AtomLoss((), ONE)
    if (2 * bound - shift).a <= 0:  # known only up to rounding
        return AtomLoss((), real([TruncatedLaplaceLoss(bound, real(shift.a)).infinite.a, ONE.b]))
    return TruncatedLaplaceLoss(bound, shift)
