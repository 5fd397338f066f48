"""Privacy curves: δ(ε) and ε(δ) of one pair of neighbours, or of all pairs by a theorem, within certified bounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from dpassay.verification import lattice
from dpassay.verification.counting import EqualBits, TwoGroups
from dpassay.verification.normal import gaussian_delta
from dpassay.verification.numbers import (
    INF,
    ONE,
    ZERO,
    Number,
    above,
    at_most_one,
    hull,
    is_infinite,
    iv,
    largest,
    log,
    middle,
    number,
    positive_part,
    smallest,
)

_POINTS = (1 << 12, 1 << 14, 1 << 16)
_SHARP = 2e-4  # a lattice is made finer until its bounds are this close, relatively


class Curve(Protocol):
    """A bound on the loss between two neighbours."""

    closed: bool  # whether it is a formula, not a lattice or a search

    @property
    def pure(self) -> Number:
        """ε at δ = 0."""

    def delta(self, epsilon: Number) -> Number:
        """δ(ε), within bounds."""

    def epsilon(self, delta: Number) -> Number:
        """ε(δ) at δ > 0, within bounds."""


@dataclass(frozen=True)
class Certain:
    """The output always gives the input away."""

    closed: bool = True
    pure: Number = field(default=INF)

    def delta(self, epsilon: Number) -> Number:
        """1."""
        return ONE

    def epsilon(self, delta: Number) -> Number:
        """Infinite."""
        return INF


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
class Outcomes:
    """Finitely many outcomes, each with its probabilities under both laws.

    >>> keep, other = number("0.75"), number("0.25")
    >>> curve = Outcomes(((keep, other), (other, keep)))
    >>> round(middle(curve.pure), 6), middle(curve.delta(ZERO))
    (1.098612, 0.5)
    """

    chances: tuple[tuple[Number, Number], ...]
    closed: bool = True

    @property
    def pure(self) -> Number:
        """The largest log-ratio."""
        return positive_part(largest(log(p) - log(q) if q.b > 0 else INF for p, q in self.chances if p.b > 0))

    def delta(self, epsilon: Number) -> Number:
        """Σ max(0, p − e^ε q)."""
        rise = iv.exp(epsilon)
        return at_most_one(sum((positive_part(p - rise * q) for p, q in self.chances), ZERO))

    def epsilon(self, delta: Number) -> Number:
        """By bisection."""
        return invert(self, delta)


@dataclass(frozen=True)
class Bits:
    """Independent bits that are all noised alike."""

    bits: EqualBits
    closed: bool = True

    @property
    def pure(self) -> Number:
        """The sum of the largest losses."""
        return self.bits.pure

    def delta(self, epsilon: Number) -> Number:
        """A binomial sum."""
        return self.bits.delta(epsilon)

    def epsilon(self, delta: Number) -> Number:
        """Solved exactly where the sum allows it."""
        found = self.bits.epsilon(delta)
        return invert(self, delta) if found is None else found


@dataclass(frozen=True)
class TwoKinds:
    """Bits of two kinds; serves from below only."""

    groups: TwoGroups
    closed: bool = False

    @property
    def pure(self) -> Number:
        """The sum of the largest losses."""
        return self.groups.pure

    def delta(self, epsilon: Number) -> Number:
        """From one event's bound up to 1."""
        return self.groups.delta(epsilon)

    def epsilon(self, delta: Number) -> Number:
        """The last ε at which the bound from below still exceeds δ."""
        target, most = middle(delta), middle(self.pure)
        if math.isinf(most):
            most = 1e4
        low, high = 0.0, most
        while high - low > 1e-9 * high:
            half = (low + high) / 2
            low, high = (half, high) if self.groups.rough(half) > target else (low, half)
        for slack in (1e-8, 1e-6, 1e-4, 1e-2):
            if self.delta(iv.mpf(low * (1 - slack))).a > delta.b:
                return hull(iv.mpf(low * (1 - slack)), self.pure)
        return hull(ZERO, self.pure)


@dataclass(frozen=True)
class Gaussian:
    """Normal noise, the shift being so many deviations."""

    mu: Number
    closed: bool = True

    @property
    def pure(self) -> Number:
        """Infinite."""
        return INF if self.mu.b > 0 else ZERO

    def delta(self, epsilon: Number) -> Number:
        """Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ)."""
        return gaussian_delta(epsilon, self.mu)

    def epsilon(self, delta: Number) -> Number:
        """By bisection."""
        return invert(self, delta)


@dataclass(frozen=True)
class OneSided:
    """Exponential noise: on coordinates that rise by `up` scales in all and fall by `down`.

    Where the second value is larger an output below it gives the first away: 1 − e^−up, whatever ε is.
    """

    up: Number
    down: Number
    closed: bool = True

    @property
    def pure(self) -> Number:
        """Infinite where anything differs."""
        return INF if largest([self.up, self.down]).b > 0 else ZERO

    def delta(self, epsilon: Number) -> Number:
        """The larger of both ways."""
        return 1 - iv.exp(-largest([self.up, self.down]))

    def epsilon(self, delta: Number) -> Number:
        """0 or infinite."""
        value = self.delta(ZERO)
        return ZERO if value.b <= delta.a else INF if value.a > delta.b else hull(ZERO, INF)


@dataclass(frozen=True)
class Leak:
    """A probability with which the first value is given away; from below only."""

    chance: Number
    closed: bool = True

    @property
    def pure(self) -> Number:
        """Infinite."""
        return INF if self.chance.a > 0 else hull(ZERO, INF)

    def delta(self, epsilon: Number) -> Number:
        """At least that probability."""
        return hull(self.chance, ONE)

    def epsilon(self, delta: Number) -> Number:
        """Infinite if δ is below it."""
        return INF if self.chance.a > delta.b else hull(ZERO, INF)


@dataclass(frozen=True)
class Summed:
    """Independent coordinates, Laplace noise or atoms: one coordinate by its formula, more on the lattice."""

    parts: tuple[tuple[lattice.Part, int], ...]
    memory: dict[Any, Number] = field(default_factory=dict, compare=False, repr=False)

    @property
    def closed(self) -> bool:
        """Whether one coordinate is all there is."""
        return len(self.parts) == 1 and self.parts[0][1] == 1 and isinstance(self.parts[0][0], lattice.Laplace)

    @property
    def pure(self) -> Number:
        """The sum of the largest losses."""
        total = ZERO
        for part, count in self.parts:
            if isinstance(part, lattice.Laplace):
                total += part.shift * count
            elif part.infinite.b > 0:
                return INF
            else:
                total += largest(loss for loss, _ in part.atoms) * count
        return positive_part(total)

    def delta(self, epsilon: Number) -> Number:
        """1 − e^((ε−a)/2) for one coordinate."""
        if not self.parts or (self.pure - epsilon).b <= 0:
            return ZERO
        if self.closed:
            return positive_part(1 - iv.exp((epsilon - self.pure) / 2))
        return self._kept("delta", epsilon, lattice.enclose_delta)

    def epsilon(self, delta: Number) -> Number:
        """a + 2 ln(1 − δ) for one coordinate."""
        if not self.parts:
            return ZERO
        if self.closed:
            return positive_part(self.pure + 2 * iv.log(1 - delta))
        found = self._kept("epsilon", delta, lattice.enclose_epsilon)
        most = min(found.b, self.pure.b)
        return iv.mpf([min(found.a, most), most])

    def tail(self, epsilon: Number) -> Number:
        """P(loss > ε), within bounds."""
        if len(self.parts) > 1:  # shifts are rounded to the lattice, which tails do not follow
            return hull(self.delta(epsilon), ONE)
        return self._kept("tail", epsilon, lattice.enclose_tail)

    def _kept(self, what: str, value: Number, bounds: Callable[..., Number]) -> Number:
        """Compute once, on lattices that get finer until they are sharp."""
        key = (what, value._mpi_)
        if key not in self.memory:
            self.memory[key] = _sharpened(lambda points: bounds(self.parts, value, points))
        return self.memory[key]


def _sharpened(bounds: Callable[[int], Number]) -> Number:
    found = bounds(_POINTS[0])
    for points in _POINTS[1:]:
        if (found.b - found.a) <= _SHARP * found.b:
            break
        finer = bounds(points)
        found = iv.mpf([max(found.a, finer.a), min(found.b, finer.b)])
    return found


@dataclass(frozen=True)
class Renyi:
    """Laplace noise, all shifts whose lp norm is at most `norm` scales, p ≥ 2: the even shift has the largest divergence.

    Its conversion to δ: (1/o)(1 − 1/o)^(o−1)·e^((o−1)(D − ε)) at every order o > 1.
    """

    shift: Number  # of each of the coordinates
    dim: int
    closed: bool = False

    @property
    def pure(self) -> Number:
        """The l1 norm of the even shift."""
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
        """The least bound over orders."""
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

    >>> round(middle(Dropped(Pure(number("38.4")), number("0.5")).pure), 4)
    37.7069
    """

    curve: Curve
    mu: Number

    @property
    def closed(self) -> bool:
        """As the curve behind it."""
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
            INF if end == INF else iv.mpf(end) + iv.log((1 - self.mu) + self.mu * iv.exp(-iv.mpf(end)))
            for end in (inner.a, inner.b)
        ]
        return hull(*ends)


def before_dropout(epsilon: Number, mu: Number) -> Number:
    """The loss before word dropout that becomes ε behind it."""
    return positive_part(epsilon + iv.log((1 - mu * iv.exp(-epsilon)) / (1 - mu))) if mu.b > 0 else epsilon


def invert(curve: Curve, delta: Number) -> Number:
    """The least ε ≥ 0 with δ(ε) ≤ δ for a curve that falls: a bisection, certified at both ends."""
    if curve.delta(ZERO).b <= delta.a:
        return ZERO
    high = above(curve.pure) if not is_infinite(curve.pure) else 1.0
    while math.isfinite(high) and is_infinite(curve.pure) and curve.delta(iv.mpf(high)).b > delta.a:
        high = 4 * high if high < 1e12 else math.inf
    if math.isinf(high):
        return INF if curve.delta(iv.mpf(1e12)).a > delta.b else hull(ZERO, INF)
    low, target = 0.0, delta.mid.a
    while high - low > 1e-15 * high:
        half = (low + high) / 2
        if half in (low, high):
            break
        low, high = (half, high) if curve.delta(iv.mpf(half)).mid.a > target else (low, half)
    for slack in ("1e-14", "1e-12", "1e-10", "1e-8"):
        ends = iv.mpf(low) * (1 - number(slack)), iv.mpf(high) * (1 + number(slack))
        if curve.delta(ends[0]).a > delta.b and curve.delta(ends[1]).b <= delta.a:
            return hull(*ends)
    return hull(ZERO, curve.pure)


@dataclass(frozen=True)
class Worst:
    """The largest of some curves at each ε."""

    curves: Sequence[Curve]

    @property
    def closed(self) -> bool:
        """If all are."""
        return all(curve.closed for curve in self.curves)

    @property
    def pure(self) -> Number:
        """The largest."""
        return largest(curve.pure for curve in self.curves)

    def delta(self, epsilon: Number) -> Number:
        """The largest."""
        return largest(curve.delta(epsilon) for curve in self.curves)

    def epsilon(self, delta: Number) -> Number:
        """The largest."""
        return largest(curve.epsilon(delta) for curve in self.curves)
