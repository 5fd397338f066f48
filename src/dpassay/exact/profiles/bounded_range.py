"""What follows from losses that lie in an interval of known length: docs/proofs/bounded-range.md.

The exponential mechanism is the example: between two score vectors its losses span at most the rate times (the largest
minus the smallest difference of scores).
"""

import math
from dataclasses import replace
from functools import reduce, singledispatch

from dpassay.core.numbers import INFINITY, ONE, ZERO, Number, exp, log, log_add, maximum, middle, minimum, real, sqrt
from dpassay.core.theorems import Theorem
from dpassay.exact.pld.loss_components import AtomLoss, GaussianLoss, LaplaceLoss
from dpassay.exact.pld.noises.integer import DiscreteGaussianLoss, DiscreteLaplaceLoss
from dpassay.exact.pld.privacy_loss import PrivacyLoss
from dpassay.exact.profiles.bounds import GeneralBound, PureBound, RenyiBound, renyi_delta, renyi_epsilon, renyi_order
from dpassay.values import dataclass

_TINY = real("1e-20")  # below this range, 1 − e^−range loses too many of its 50 digits


@dataclass(frozen=True)
class RangeBound(GeneralBound):
    """Losses between t − range and t, where t is any number up to `pure`; `pure` bounds the losses in both directions.

    >>> bound = RangeBound(real(2), real(2))
    >>> float(bound.delta(ZERO).mid)  # tanh(1/2)
    0.46211715726...
    """

    range: Number
    pure: Number
    theorem: Theorem = Theorem.BOUNDED_RANGE
    least: Number = ZERO  # if no t lies between range − least and least

    @property
    def _whole(self) -> Number:
        return 1 - exp(-self.range)

    def delta(self, epsilon: Number) -> Number:
        """(1 − e^(t − r))(1 − e^(ε − t))/(1 − e^−r) at t = (r + ε)/2, or at the largest possible t."""
        if self.range.a < _TINY:
            return PureBound(self.pure, self.theorem).delta(epsilon)
        if epsilon.a >= self.pure.b:
            return ZERO
        top = minimum(self.pure, (self.range + epsilon) / 2)
        gaps = [maximum(ZERO, 1 - exp(gap)) for gap in (top - self.range, epsilon - top)]
        return minimum(ONE, gaps[0] * gaps[1] / self._whole)

    def epsilon(self, delta: Number) -> Number:
        """r + 2 ln(1 − √(δ(1 − e^−r))); if t would be too large for that, from the largest possible t."""
        if self.range.a < _TINY:
            return PureBound(self.pure, self.theorem).epsilon(delta)
        capped = self._at_largest(delta)
        if capped is not None:
            return capped
        left = 1 - sqrt(delta * self._whole)
        return maximum(ZERO, minimum(self.pure, self.range + 2 * log(left)))

    epsilon_above = epsilon

    def _at_largest(self, delta: Number) -> Number | None:
        """ε(δ) of the losses t and t − r with t = `pure`, if no smaller t has a larger one."""
        chance = 1 - exp(self.pure - self.range)
        if chance.a <= 0:
            return None
        left = 1 - delta * self._whole / chance
        if left.a <= 0:
            return None
        epsilon = self.pure + log(left)
        return maximum(ZERO, epsilon) if ((self.range + epsilon) / 2).a >= self.pure.b else None

    def divergence(self, order: Number) -> Number:
        """The largest Rényi divergence of an order: that of the losses t and t − r with the worst t.

        >>> round(float(RangeBound(real(2), ONE).divergence(real(2)).mid), 6)  # ln(e + 1/e − 1)
        0.735326
        """
        if self.range.a < _TINY:
            return self.pure
        less, r = order - 1, self.range
        high, low = 1 - exp(-order * r), 1 - exp(-less * r)
        top = minimum(self.pure, self.worst_loss(order))
        around = (r - self.least, self.least)
        tops = around if around[0].b < top.a and top.b < around[1].a else (top,)  # it grows up to `top`, and then falls
        rests = [high - low * exp(top - r) for top in tops]
        if any(rest.a <= 0 for rest in rests):
            return self.pure
        values = [top + log(rest / self._whole) / less for top, rest in zip(tops, rests, strict=True)]
        return maximum(ZERO, minimum(self.pure, maximum(*values)))

    def worst_loss(self, order: Number) -> Number:
        """The t with the largest Rényi divergence of an order, if all are possible."""
        high, low = (1 - exp(-factor * self.range) for factor in (order, order - 1))
        return self.range + log((order - 1) * high / (order * low))


@dataclass(frozen=True)
class RangeSteps(GeneralBound):
    """`count` uses in sequence, each with such losses whatever the earlier outputs: their divergences add up.

    >>> steps = RangeSteps(RangeBound(real(2), real(2)), 100)
    >>> float(steps.pure.mid), 93.8 < float(steps.epsilon(real("1e-6")).mid) < 93.9
    (200.0, True)
    """

    each: RangeBound
    count: int
    theorem: Theorem = Theorem.BOUNDED_RANGE

    @property
    def pure(self) -> Number:
        return self.each.pure * self.count

    def divergence(self, order: Number) -> Number:
        """The sum of the largest Rényi divergences of an order."""
        return replace(self.each, least=ZERO).divergence(order) * self.count

    def best_order(self, epsilon: Number) -> Number:
        """The order that gives nearly the smallest δ(ε)."""
        return renyi_order(self._near, middle(epsilon))

    def _near(self, less: float) -> float:
        """The divergence of order 1 + less in doubles, to search with."""
        r, pure = middle(self.each.range), middle(self.each.pure)
        if r < 1e-9:
            return self.count * pure
        high, low, whole = (-math.expm1(-factor * r) for factor in (1 + less, less, 1.0))
        top = min(pure, r + math.log(less * high / ((1 + less) * low)))
        rest = high - low * math.exp(top - r)
        return self.count * (min(pure, top + math.log(rest / whole) / less) if rest > 0 else pure)

    def delta(self, epsilon: Number) -> Number:
        """By the best order; 0 beyond all losses."""
        if epsilon.a >= self.pure.b:
            return ZERO
        return minimum(ONE, renyi_delta(self.divergence, epsilon, self.best_order(epsilon)))

    def epsilon(self, delta: Number) -> Number:
        return minimum(self.pure, renyi_epsilon(self.divergence, delta, self._near))

    epsilon_above = epsilon


def largest_choice(width: Number, count: int) -> Number:
    """The largest loss of the exponential mechanism with `count` outputs, scores times rate in a cube of this width.

    >>> round(float(largest_choice(ONE, 10).mid), 9)
    1.776136585
    """
    # ln((1 + n e^w)/(e^w + n)), with e^w taken out of both
    n, inverse = real(count - 1), exp(-width)
    return width + log((inverse + n) / (1 + n * inverse))


def with_range(spread: Number, pure: Number) -> RangeBound:
    """A range bound whose range is at most twice the largest loss, which every range is."""
    return RangeBound(minimum(spread, 2 * pure), pure)


def loss_divergence(loss: PrivacyLoss, order: Number) -> Number:
    """The Rényi divergence of a loss if it is finite, or infinity if there is no closed form.

    >>> float(loss_divergence(PrivacyLoss(((GaussianLoss(ONE), 4),)), real(3)).mid)  # 4·3/2
    6.0
    """
    total = ZERO
    for component, count in loss.components:
        each = _divergence(component, order)
        if each is None:
            return INFINITY
        total += each * count
    return total


@singledispatch
def _divergence(component: object, order: Number) -> Number | None:
    """The Rényi divergence of one loss, None if there is no closed form."""
    return None


@_divergence.register(GaussianLoss)
def _(component: GaussianLoss, order: Number) -> Number:
    return order * component.mu**2 / 2


@_divergence.register(LaplaceLoss)
def _(component: LaplaceLoss, order: Number) -> Number:
    return RenyiBound(component.shift, 2.0, 1).divergence(order)


_divergence.register(DiscreteGaussianLoss, DiscreteGaussianLoss.divergence)
_divergence.register(DiscreteLaplaceLoss, DiscreteLaplaceLoss.divergence)


@_divergence.register(AtomLoss)
def _(component: AtomLoss, order: Number) -> Number:
    finite = 1 - component.infinite
    if not component.atoms or finite.a <= 0 or any(p.a <= 0 for _, p in component.atoms):
        return INFINITY
    terms = [(order - 1) * loss + log(p / finite) for loss, p in component.atoms]
    return reduce(log_add, terms) / (order - 1)
