"""Privacy curves that hold for all pairs at once, by a theorem, and curves made of others."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dpassay.evidence.verifier.curves import Curve, Summed
from dpassay.evidence.verifier.numbers import (
    INF,
    ONE,
    ZERO,
    Number,
    at_most_one,
    hull,
    is_infinite,
    iv,
    largest,
    log,
    middle,
    positive_part,
    smallest,
)


@dataclass(frozen=True)
class Pure:
    """What ε₀-DP implies: δ(ε) ≤ (e^ε₀ − e^ε)/(e^ε₀ + 1), attained by randomized response.

    >>> round(middle(Pure(ONE).delta(ZERO)), 9)
    0.462117157
    """

    pure: Number
    closed: bool = True

    def delta(self, epsilon: Number) -> Number:
        """The bound, or 1 where ε₀ is infinite."""
        if is_infinite(self.pure):
            return ONE
        return positive_part(1 - iv.exp(epsilon - self.pure)) / (1 + iv.exp(-self.pure))

    def epsilon(self, delta: Number) -> Number:
        """ln(e^ε₀(1 − δ) − δ)."""
        if is_infinite(self.pure):
            return INF
        inside = 1 - delta - delta * iv.exp(-self.pure)
        return ZERO if inside.a <= 0 else positive_part(self.pure + iv.log(inside))


@dataclass(frozen=True)
class Renyi:
    """Laplace noise, all shifts of at most a given lp norm, p ≥ 2: the even one has the largest Rényi divergence D.

    At every order o > 1 it gives δ(ε) ≤ (1/o)(1 − 1/o)^(o−1)·e^((o−1)(D − ε)).
    """

    shift: Number  # of each of the coordinates
    dim: int
    closed: bool = False

    @property
    def pure(self) -> Number:
        return self.shift * self.dim

    def _log_delta(self, order: Number, epsilon: Number) -> Number:
        a, o = self.shift, order
        inner = o / (2 * o - 1) + (o - 1) / (2 * o - 1) * iv.exp(-(2 * o - 1) * a)
        moment = self.dim * ((o - 1) * a + iv.log(inner))
        return moment - (o - 1) * epsilon - iv.log(o) + (o - 1) * iv.log(1 - 1 / o)

    def _rough(self, t: float, epsilon: float) -> float:
        """The same in doubles at order 1 + e^t, to steer the search."""
        a, x = middle(self.shift), math.exp(t)
        inner = math.log1p(x / (1 + 2 * x) * math.expm1(-(1 + 2 * x) * a))
        return self.dim * (x * a + inner) - x * epsilon - math.log1p(x) + x * (t - math.log1p(x))

    def delta(self, epsilon: Number) -> Number:
        t = _least(lambda t: self._rough(t, middle(epsilon)))
        return at_most_one(iv.exp(self._log_delta(iv.mpf(1 + math.exp(t)), epsilon)))

    def epsilon(self, delta: Number) -> Number:
        """The least bound over orders, and never more than at δ = 0."""
        target = middle(log(delta))
        t = _least(lambda t: (self._rough(t, 0.0) - target) * math.exp(-t))
        order = iv.mpf(1 + math.exp(t))
        found = (self._log_delta(order, ZERO) - log(delta)) / (order - 1)
        return positive_part(smallest([found, self.pure]))


def _least(value: Callable[[float], float]) -> float:
    """Where a function is least: a coarse walk, then a golden section."""
    centre = min((-14 + 0.25 * i for i in range(140)), key=value)
    low, high, golden = centre - 0.25, centre + 0.25, (math.sqrt(5) - 1) / 2
    for _ in range(60):
        left, right = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, right) if value(left) < value(right) else (left, high)
    return (low + high) / 2


@dataclass(frozen=True)
class Dropped:
    """A curve behind word dropout: e^ε = (1 − μ)e^ε₀ + μ, and δ = (1 − μ)·δ₀(ε₀).

    >>> round(middle(Dropped(Pure(iv.mpf("38.4")), iv.mpf("0.5")).pure), 4)
    37.7069
    """

    curve: Curve
    mu: Number

    @property
    def closed(self) -> bool:
        return self.curve.closed

    @property
    def pure(self) -> Number:
        """ln((1 − μ)e^ε₀ + μ)."""
        return self._behind(self.curve.pure)

    def delta(self, epsilon: Number) -> Number:
        """(1 − μ)·δ₀(ε₀)."""
        return (1 - self.mu) * self.curve.delta(before_dropout(epsilon, self.mu))

    def epsilon(self, delta: Number) -> Number:
        """ε₀(δ/(1 − μ)), seen behind the dropout."""
        scaled = delta / (1 - self.mu)
        return ZERO if scaled.a >= 1 else self._behind(self.curve.epsilon(scaled))

    def _behind(self, inner: Number) -> Number:
        ends = [
            INF if end == INF else iv.mpf(end) + iv.log(1 - self.mu * (1 - iv.exp(-iv.mpf(end))))
            for end in (inner.a, inner.b)
        ]
        return hull(*ends)


def before_dropout(epsilon: Number, mu: Number) -> Number:
    """The loss before word dropout that becomes ε behind it."""
    return positive_part(epsilon + iv.log((1 - mu * iv.exp(-epsilon)) / (1 - mu))) if mu.b > 0 else epsilon


@dataclass(frozen=True)
class Worst:
    """The largest of some curves at each ε."""

    curves: Sequence[Curve]

    @property
    def closed(self) -> bool:
        return all(curve.closed for curve in self.curves)

    @property
    def pure(self) -> Number:
        return largest(curve.pure for curve in self.curves)

    def delta(self, epsilon: Number) -> Number:
        return largest(curve.delta(epsilon) for curve in self.curves)

    def epsilon(self, delta: Number) -> Number:
        return largest(curve.epsilon(delta) for curve in self.curves)


def sharpen(curve: Curve, epsilon: Number) -> None:
    """Know δ(ε) as well as the finest lattice can tell."""
    if isinstance(curve, Dropped):
        sharpen(curve.curve, before_dropout(epsilon, curve.mu))
    elif isinstance(curve, Worst):
        for part in curve.curves:
            sharpen(part, epsilon)
    elif isinstance(curve, Summed):
        curve.sharpen(epsilon)
