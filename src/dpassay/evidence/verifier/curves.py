"""Privacy curves of one pair of neighbours: δ(ε) and ε(δ), within certified bounds."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from dpassay.evidence.verifier import lattice
from dpassay.evidence.verifier.counting import EqualBits, TwoGroups
from dpassay.evidence.verifier.normal import gaussian_delta, rough_delta
from dpassay.evidence.verifier.numbers import (
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
)

# A lattice is made finer until its bounds are this close, relatively.
_SHARP = ((1 << 12, 1e-3), (1 << 14, 5e-3), (1 << 16, 1.0))


class Curve(Protocol):
    """A bound on the loss between two neighbours."""

    @property
    def closed(self) -> bool:
        """Whether it is a formula, not a lattice or a search."""

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
        return ONE

    def epsilon(self, delta: Number) -> Number:
        return INF


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
        return positive_part(largest(log(p) - log(q) if q.b > 0 else INF for p, q in self.chances if p.b > 0))

    def delta(self, epsilon: Number) -> Number:
        """Σ max(0, p − e^ε q)."""
        rise = iv.exp(epsilon)
        return at_most_one(sum((positive_part(p - rise * q) for p, q in self.chances), ZERO))

    def epsilon(self, delta: Number) -> Number:
        pairs = [(middle(p), middle(q)) for p, q in self.chances]

        def rough(epsilon: float) -> float:
            rise = math.exp(min(epsilon, 700.0))
            return sum(max(0.0, p - rise * q) for p, q in pairs)

        return invert(self, delta, rough)


@dataclass(frozen=True)
class Bits:
    """Independent bits that are all noised alike."""

    bits: EqualBits
    closed: bool = True

    @property
    def pure(self) -> Number:
        return self.bits.pure

    def delta(self, epsilon: Number) -> Number:
        return self.bits.delta(epsilon)

    def epsilon(self, delta: Number) -> Number:
        found = self.bits.epsilon(delta)
        return invert(self, delta) if found is None else found


@dataclass(frozen=True)
class TwoKinds:
    """Bits of two kinds; serves from below only."""

    groups: TwoGroups
    closed: bool = False

    @property
    def pure(self) -> Number:
        return self.groups.pure

    def delta(self, epsilon: Number) -> Number:
        """One event's P − e^ε Q, nearly the best event's."""
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
            shown = iv.mpf(low * (1 - slack))
            if self.delta(shown).a > delta.b:
                return hull(shown, iv.mpf(low * (1 + slack)))
        return ZERO


@dataclass(frozen=True)
class Gaussian:
    """Normal noise, the shift being so many deviations."""

    mu: Number
    closed: bool = True

    @property
    def pure(self) -> Number:
        return INF if self.mu.b > 0 else ZERO

    def delta(self, epsilon: Number) -> Number:
        """Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ)."""
        return gaussian_delta(epsilon, self.mu)

    def epsilon(self, delta: Number) -> Number:
        mu = middle(self.mu)
        return invert(self, delta, lambda epsilon: rough_delta(epsilon, mu))


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
        return INF if largest([self.up, self.down]).b > 0 else ZERO

    def delta(self, epsilon: Number) -> Number:
        return 1 - iv.exp(-largest([self.up, self.down]))

    def epsilon(self, delta: Number) -> Number:
        value = self.delta(ZERO)
        return ZERO if value.b <= delta.a else INF if value.a > delta.b else hull(ZERO, INF)


@dataclass(frozen=True)
class Leak:
    """A probability with which the first value is given away, and no more can be told."""

    chance: Number
    closed: bool = True

    @property
    def pure(self) -> Number:
        return INF if self.chance.a > 0 else ZERO

    def delta(self, epsilon: Number) -> Number:
        return self.chance

    def epsilon(self, delta: Number) -> Number:
        """Infinite if δ is below it, 0 if not; either where the digits cannot tell."""
        return INF if self.chance.a > delta.b else ZERO if self.chance.b <= delta.a else hull(ZERO, INF)


@dataclass(frozen=True)
class Summed:
    """Independent coordinates, Laplace noise or atoms: one coordinate by its formula, more on the lattice."""

    parts: tuple[tuple[lattice.Part, int], ...]
    memory: dict[Any, Number] = field(default_factory=dict, compare=False, repr=False)

    @property
    def closed(self) -> bool:
        return len(self.parts) == 1 and self.parts[0][1] == 1 and isinstance(self.parts[0][0], lattice.Laplace)

    @property
    def pure(self) -> Number:
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

    def sharpen(self, epsilon: Number) -> None:
        """Know δ(ε) as well as the finest lattice can tell."""
        if not self.closed and self.parts and (self.pure - epsilon).b > 0:
            coarse = self.delta(epsilon)
            finer = lattice.enclose_delta(self.parts, epsilon, _SHARP[-1][0])
            self.memory["delta", epsilon._mpi_] = iv.mpf([max(coarse.a, finer.a), min(coarse.b, finer.b)])

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
        if self.closed:
            return ZERO if epsilon.a >= self.pure.b else 1 - iv.exp((epsilon - self.pure) / 2) / 2
        if len(self.parts) > 1:  # shifts are rounded to the lattice, which tails do not follow
            return hull(self.delta(epsilon), ONE)
        return self._kept("tail", epsilon, lattice.enclose_tail)

    def _kept(self, what: str, value: Number, bounds: Callable[..., Number]) -> Number:
        """Compute once, on lattices that get finer until they are sharp."""
        key = (what, value._mpi_)
        if key not in self.memory:
            atoms = any(isinstance(part, lattice.Atoms) for part, _ in self.parts)
            # Of atoms there is no lower bound to compare with, and tails get sharp only slowly.
            levels = _SHARP[1:2] if atoms or what == "tail" else _SHARP
            self.memory[key] = _sharpened(lambda points: bounds(self.parts, value, points), levels)
        return self.memory[key]


def _sharpened(bounds: Callable[[int], Number], levels: Sequence[tuple[int, float]]) -> Number:
    found = hull(ZERO, INF)
    for points, width in levels:
        finer = bounds(points)
        found = iv.mpf([max(found.a, finer.a), min(found.b, finer.b)])
        if (found.b - found.a) <= width * found.b:
            break
    return found


def invert(curve: Curve, delta: Number, rough: Callable[[float], float] | None = None) -> Number:
    """The least ε ≥ 0 with δ(ε) ≤ δ for a curve that falls: a bisection, certified at both ends."""
    if curve.delta(ZERO).b <= delta.a:
        return ZERO
    at = rough or (lambda epsilon: middle(curve.delta(iv.mpf(epsilon))))
    target = middle(delta)
    low, high = 0.0, above(curve.pure) if not is_infinite(curve.pure) else 1.0
    while is_infinite(curve.pure) and at(high) > target:
        low, high = high, 4 * high
        if high > 1e12:
            return INF if curve.delta(iv.mpf(high)).a > delta.b else hull(ZERO, INF)
    while high - low > 1e-15 * high and low < (low + high) / 2 < high:
        half = (low + high) / 2
        low, high = (half, high) if at(half) > target else (low, half)
    for slack in ("1e-14", "1e-13", "1e-12", "1e-11", "1e-10", "1e-8"):
        ends = iv.mpf(low) * (1 - number(slack)), iv.mpf(high) * (1 + number(slack))
        if curve.delta(ends[0]).a > delta.b and curve.delta(ends[1]).b <= delta.a:
            return hull(*ends)
    return hull(ZERO, curve.pure)
