"""Bounds on a privacy profile: δ as a function of ε, and vice versa.

A `PairBound` is the exact profile of one pair of neighbors. The others bound all pairs at once, by a theorem.
"""

import math
from collections.abc import Callable
from functools import cached_property
from typing import ClassVar, Protocol

from dpassay.core.numbers import INFINITY, ONE, ZERO, Number, between, exp, log, maximum, middle, minimum, number, real
from dpassay.core.theorems import Theorem
from dpassay.exact.pld.privacy_loss import PrivacyLoss
from dpassay.values import dataclass


class ProfileBound(Protocol):
    """A bound on the privacy loss, as a certified function."""

    @property
    def losses(self) -> tuple[PrivacyLoss, ...]:
        """The losses of pairs that it states exactly; none if it holds by a theorem for all pairs."""

    @property
    def theorem(self) -> Theorem:
        """What it rests on."""

    @property
    def pure(self) -> Number:
        """ε at δ = 0."""

    def delta(self, epsilon: Number) -> Number:
        """δ(ε)."""

    def epsilon(self, delta: Number) -> Number:
        """ε(δ), at δ > 0."""

    def epsilon_above(self, delta: Number) -> Number:
        """An upper bound on ε(δ), quickly."""


class GeneralBound:
    """A bound that is not the loss of certain pairs."""

    losses: ClassVar[tuple[PrivacyLoss, ...]] = ()


@dataclass(frozen=True)
class PairBound:
    """The exact profile of one pair of neighbors: the loss in one direction, and in the other if it differs.

    For several pairs it has all losses, and the largest counts: exact if one of the pairs dominates at each ε.
    """

    losses: tuple[PrivacyLoss, ...]
    theorem: Theorem

    @property
    def pure(self) -> Number:
        return maximum(*(loss.pure for loss in self.losses))

    def delta(self, epsilon: Number) -> Number:
        return maximum(*(loss.delta_number(epsilon) for loss in self.losses))

    def epsilon(self, delta: Number) -> Number:
        return maximum(*(loss.epsilon_number(delta) for loss in self.losses))

    def epsilon_above(self, delta: Number) -> Number:
        return maximum(*(loss.epsilon_above(delta) for loss in self.losses))


@dataclass(frozen=True)
class CurveBound(GeneralBound):
    """The profile at every ε ≥ 0 of a pair whose loss is only partly visible: each ε has its own event.

    So this is not a loss that can be composed. docs/proofs/post-processing.md, points 7 and 8.
    """

    bound: PairBound
    theorem: Theorem = Theorem.POST_PROCESSING

    @property
    def pure(self) -> Number:
        return self.bound.pure

    def delta(self, epsilon: Number) -> Number:
        return self.bound.delta(epsilon)

    def epsilon(self, delta: Number) -> Number:
        return self.bound.epsilon(delta)

    def epsilon_above(self, delta: Number) -> Number:
        return self.bound.epsilon_above(delta)


@dataclass(frozen=True)
class PureBound(GeneralBound):
    """What ε₀-DP implies at δ > 0; randomized response attains it. docs/proofs/pure-to-approximate.md.

    >>> float(PureBound(number(1), Theorem.LAPLACE).delta(ZERO).mid)  # (e − 1)/(e + 1)
    0.46211715726...
    """

    pure: Number
    theorem: Theorem  # what ε₀-DP itself rests on

    def delta(self, epsilon: Number) -> Number:
        """(e^ε₀ − e^ε)/(e^ε₀ + 1)."""
        if self.pure.b == INFINITY:
            return ONE
        gap = maximum(ZERO, 1 - exp(epsilon - self.pure))
        return minimum(ONE, gap / (1 + exp(-self.pure)))

    def epsilon(self, delta: Number) -> Number:
        """ln(e^ε₀ (1 − δ) − δ)."""
        if self.pure.b == INFINITY:
            return INFINITY
        inside = (1 - delta) - delta * exp(-self.pure)
        return maximum(ZERO, self.pure + log(inside)) if inside.a > 0 else ZERO

    epsilon_above = epsilon


@dataclass(frozen=True)
class RenyiBound(GeneralBound):
    """Laplace noise, every shift vector whose lp norm is at most `norm` scales, p ≥ 2. docs/proofs/renyi.md.

    >>> bound = RenyiBound(number(1), 2.0, 32)
    >>> 4.40 < middle(bound.epsilon(number("1e-6"))) < 5.66
    True
    """

    norm: Number
    p: float
    dim: int
    theorem: Theorem = Theorem.RENYI

    @property
    def pure(self) -> Number:
        return self._shift * self.dim

    @cached_property
    def _shift(self) -> Number:
        """Each coordinate of the diagonal shift."""
        power = ZERO if self.p == math.inf else 1 / number(self.p)
        return self.norm / real(self.dim) ** power

    def divergence(self, order: Number) -> Number:
        """n times the Rényi divergence of one coordinate."""
        a, o = self._shift, order
        # ln(o/(2o−1) e^((o−1)a) + (o−1)/(2o−1) e^(−oa)), with the first exponential factored out
        inner = o / (2 * o - 1) + (o - 1) / (2 * o - 1) * exp(-(2 * o - 1) * a)
        return self.dim * ((o - 1) * a + log(inner)) / (o - 1)

    def log_delta(self, epsilon: Number, order: Number) -> Number:
        """ln of the bound on δ(ε) that one order gives."""
        return (order - 1) * (self.divergence(order) - epsilon) + _conversion(order)

    def _epsilon(self, delta: Number, order: Number) -> Number:
        return self.divergence(order) + (_conversion(order) - log(delta)) / (order - 1)

    def best_order(self, epsilon: Number) -> Number:
        """The order that gives nearly the least δ(ε)."""
        return renyi_order(self._near, middle(epsilon))

    def best_order_for(self, delta: Number) -> Number:
        """The order that gives nearly the smallest ε(δ)."""
        log_delta = middle(log(delta))
        return _least(lambda less: self._near(less) + (_near_conversion(less) - log_delta) / less)

    def _near(self, less: float) -> float:
        """The divergence of order 1 + less in doubles, to search with."""
        a, o = middle(self._shift), 1 + less
        inner = o / (2 * o - 1) + less / (2 * o - 1) * math.exp(-(2 * o - 1) * a)
        return self.dim * (a + math.log(inner) / less)

    def delta(self, epsilon: Number) -> Number:
        return minimum(ONE, exp(self.log_delta(epsilon, self.best_order(epsilon))))

    def epsilon(self, delta: Number) -> Number:
        return maximum(ZERO, minimum(self.pure, self._epsilon(delta, self.best_order_for(delta))))

    epsilon_above = epsilon


@dataclass(frozen=True)
class ZcdpBound(GeneralBound):
    """Rényi divergences of at most ρ times the order, for every pair. docs/proofs/discrete-gaussian.md.

    >>> middle(ZcdpBound(number("0.5"), Theorem.DISCRETE_GAUSSIAN).divergence(number(3)))
    1.5
    """

    rho: Number
    theorem: Theorem

    @property
    def pure(self) -> Number:
        return INFINITY if self.rho.b > 0 else ZERO

    def divergence(self, order: Number) -> Number:
        return order * self.rho

    def _near(self, less: float) -> float:
        return (1 + less) * middle(self.rho)

    def best_order(self, epsilon: Number) -> Number:
        """The order that gives nearly the least δ(ε)."""
        return renyi_order(self._near, middle(epsilon))

    def delta(self, epsilon: Number) -> Number:
        if self.rho.b == 0:
            return ZERO  # no two neighbors differ
        return minimum(ONE, renyi_delta(self.divergence, epsilon, self.best_order(epsilon)))

    def epsilon(self, delta: Number) -> Number:
        return renyi_epsilon(self.divergence, delta, self._near)

    epsilon_above = epsilon


def _conversion(order: Number) -> Number:
    """ln of the largest (1 − e^−x) e^(−(order − 1)x)."""
    return -log(order) + (order - 1) * log(1 - 1 / order)


def _near_conversion(less: float) -> float:
    return -math.log1p(less) + less * math.log(less / (1 + less))


def _least(value: Callable[[float], float]) -> Number:
    """Search orders 1 + e^t for the smallest value; any order gives a valid bound, so doubles are enough.

    scipy.optimize would work too, but importing it takes longer than a whole check.
    """

    def at(t: float) -> float:
        return value(math.exp(t))

    centre = min((-12 + 0.5 * i for i in range(61)), key=at)
    low, high = centre - 0.5, centre + 0.5
    for _ in range(25):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, right) if at(left) < at(right) else (left, high)
    return number(1 + math.exp((low + high) / 2))


def renyi_epsilon(
    divergence: Callable[[Number], Number], delta: Number, near: Callable[[float], float] | None = None
) -> Number:
    """ε(δ) by the best order, for a Rényi divergence that is known as a function of the order: docs/proofs/renyi.md.

    `near` is the divergence of order 1 + its argument in doubles, to search with.

    >>> gauss = renyi_epsilon(lambda order: order / 2, number("1e-5"))  # μ = 1; exactly 4.3772
    >>> 4.37 < middle(gauss) < 4.8
    True
    """
    log_delta, rough = middle(log(delta)), near or (lambda less: middle(divergence(number(1 + less))))
    order = _least(lambda less: rough(less) + (_near_conversion(less) - log_delta) / less)
    return maximum(ZERO, divergence(order) + (_conversion(order) - log(delta)) / (order - 1))


def renyi_order(near: Callable[[float], float], epsilon: float) -> Number:
    """The order that gives nearly the smallest δ(ε), for a divergence of order 1 + less in doubles."""
    return _least(lambda less: less * (near(less) - epsilon) + _near_conversion(less))


def renyi_delta(divergence: Callable[[Number], Number], epsilon: Number, order: Number) -> Number:
    """A bound on δ(ε) from a Rényi divergence of one order: docs/proofs/renyi.md."""
    return exp((order - 1) * (divergence(order) - epsilon) + _conversion(order))


@dataclass(frozen=True)
class DropoutBound(GeneralBound):
    """A bound after word dropout with probability mu, one word apart. docs/proofs/dropout.md.

    >>> amplified = DropoutBound(PureBound(number("38.4"), Theorem.LAPLACE), number("0.5"))
    >>> round(float(amplified.pure.mid), 4)
    37.7069
    """

    bound: ProfileBound
    mu: Number

    @property
    def theorem(self) -> Theorem:
        """What the bound without the dropout rests on."""
        return self.bound.theorem

    @property
    def pure(self) -> Number:
        """ln((1 − μ) e^ε + μ)."""
        return self._after(self.bound.pure)

    def delta(self, epsilon: Number) -> Number:
        """(1 − μ) δ(ε₀), where ε₀ is the loss before dropout that becomes ε."""
        return (1 - self.mu) * self.bound.delta(before_dropout(epsilon, self.mu))

    def epsilon(self, delta: Number) -> Number:
        """The loss after dropout of ε₀(δ/(1 − μ))."""
        scaled = delta / (1 - self.mu)
        return ZERO if scaled.b >= 1 else self._after(self.bound.epsilon(scaled))

    def epsilon_above(self, delta: Number) -> Number:
        scaled = delta / (1 - self.mu)
        return ZERO if scaled.b >= 1 else self._after(self.bound.epsilon_above(scaled))

    def _after(self, epsilon: Number) -> Number:
        if epsilon == INFINITY:
            return INFINITY
        return between_ends(epsilon, lambda e: e + log((1 - self.mu) + self.mu * exp(-e)))


def without_dropout(bound: ProfileBound) -> ProfileBound:
    """The bound without word dropout, if there is any."""
    return bound.bound if isinstance(bound, DropoutBound) else bound


def before_dropout(epsilon: Number, mu: Number) -> Number:
    """The loss without word dropout that becomes ε with it: e^ε₀ = (e^ε − μ)/(1 − μ).

    >>> round(float(before_dropout(number("37.70685281944"), number("0.5")).mid), 6)
    38.4
    """
    return epsilon if mu == 0 else maximum(ZERO, epsilon + log((1 - mu * exp(-epsilon)) / (1 - mu)))


def between_ends(value: Number, rising: Callable[[Number], Number]) -> Number:
    """Apply an increasing function to both ends, which is tighter than interval arithmetic."""
    high = INFINITY if value.b == INFINITY else rising(real(value.b))
    return between(rising(real(value.a)), high)
