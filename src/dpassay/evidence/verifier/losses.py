"""Privacy losses as functions: ε at δ = 0, and δ at an ε, each within certified bounds."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from dpassay.errors import CertificateError
from dpassay.evidence.verifier import lattice
from dpassay.evidence.verifier.binomial import EqualBits, UnequalBits, joined
from dpassay.evidence.verifier.normal import gaussian_delta, tail
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
    positive_part,
    smallest,
)
from dpassay.evidence.verifier.regions import Stage

_SHORTEST = iv.mpf("1e-20")  # below this a range leaves too few digits in 1 − e^−range

FEW_BITS = 4  # of which all outcomes are listed


class Loss(Protocol):
    """A bound on the loss between two neighbours."""

    @property
    def pure(self) -> Number:
        """ε at δ = 0."""

    def delta(self, epsilon: Number, upper: bool) -> Number:
        """δ(ε); of the number's two ends the upper or the lower one is asked for."""


@dataclass(frozen=True)
class Grid:
    """The step of a lattice of losses, and by how much probabilities are tilted on it."""

    step: Number
    tilt: float


@dataclass(frozen=True)
class Pure:
    """What ε₀-DP implies: δ(ε) ≤ (e^ε₀ − e^ε)/(e^ε₀ + 1), attained by randomized response.

    >>> from dpassay.evidence.verifier.numbers import middle
    >>> round(middle(Pure(ONE).delta(ZERO, True)), 9)
    0.462117157
    """

    pure: Number

    def delta(self, epsilon: Number, upper: bool) -> Number:
        if is_infinite(self.pure):
            return ONE
        return positive_part(1 - iv.exp(epsilon - self.pure)) / (1 + iv.exp(-self.pure))


@dataclass(frozen=True)
class Range:
    """Losses between t − range and t, t at most `pure`: (1 − e^(t−r))(1 − e^(ε−t))/(1 − e^−r), largest at t = (r+ε)/2.

    >>> from dpassay.evidence.verifier.numbers import middle
    >>> round(middle(Range(iv.mpf(2), iv.mpf(2)).delta(ZERO, True)), 9)  # tanh(1/2)
    0.462117157
    """

    range: Number
    pure: Number

    def delta(self, epsilon: Number, upper: bool) -> Number:
        if self.range.a < _SHORTEST:
            return Pure(self.pure).delta(epsilon, upper)
        top = smallest([self.pure, (self.range + epsilon) / 2])
        gaps = [positive_part(1 - iv.exp(gap)) for gap in (top - self.range, epsilon - top)]
        return at_most_one(gaps[0] * gaps[1] / (1 - iv.exp(-self.range)))


@dataclass(frozen=True)
class Gaussian:
    """Normal noise, the shift μ in standard deviations: Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ)."""

    mu: Number

    @property
    def pure(self) -> Number:
        return INF if self.mu.a > 0 else ZERO if self.mu.b <= 0 else hull(ZERO, INF)

    def delta(self, epsilon: Number, upper: bool) -> Number:
        return gaussian_delta(epsilon, self.mu)


@dataclass(frozen=True)
class Leak:
    """A probability with which the first value is given away, and no more can be told, whatever ε is."""

    chance: Number

    @property
    def pure(self) -> Number:
        return INF if self.chance.a > 0 else ZERO if self.chance.b <= 0 else hull(ZERO, INF)

    def delta(self, epsilon: Number, upper: bool) -> Number:
        return self.chance


@dataclass(frozen=True)
class Outcomes:
    """Finitely many outcomes, each with its probabilities under both laws.

    >>> from dpassay.evidence.verifier.numbers import middle
    >>> keep, other = iv.mpf("0.75"), iv.mpf("0.25")
    >>> loss = Outcomes(((keep, other), (other, keep)))
    >>> round(middle(loss.pure), 6), middle(loss.delta(ZERO, True))
    (1.098612, 0.5)
    """

    chances: tuple[tuple[Number, Number], ...]

    @property
    def pure(self) -> Number:
        ratios = (
            log(p) - log(q) if q.b > 0 else INF if p.a > 0 else hull(-INF, INF) for p, q in self.chances if p.b > 0
        )
        return positive_part(largest(ratios))

    def delta(self, epsilon: Number, upper: bool) -> Number:
        """Σ max(0, p − e^ε q)."""
        rise = iv.exp(epsilon)
        return at_most_one(sum((positive_part(p - rise * q) for p, q in self.chances), ZERO))


@dataclass(frozen=True)
class Summed:
    """Independent coordinates, Laplace noise or atoms: one coordinate by its formula, more on a lattice."""

    parts: tuple[tuple[lattice.Part, int], ...]
    grid: Grid | None = None

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

    def delta(self, epsilon: Number, upper: bool) -> Number:
        """1 − e^((ε−a)/2) for one coordinate with Laplace noise."""
        if not self.parts or (self.pure - epsilon).b <= 0:
            return ZERO
        (part, count), *others = self.parts
        if not others and count == 1 and isinstance(part, lattice.Laplace):
            return positive_part(1 - iv.exp((epsilon - self.pure) / 2))
        if self.grid is None:
            raise CertificateError("a sum of losses needs a grid")
        return lattice.compose(self.parts, self.grid.step, "above" if upper else "below", self.grid.tilt).delta(
            epsilon, upper
        )


@dataclass(frozen=True)
class Renyi:
    """Laplace noise, all shifts of at most a given lp norm, p ≥ 2: the even one has the largest Rényi divergence D.

    At every order o > 1 it gives δ(ε) ≤ (1/o)(1 − 1/o)^(o−1)·e^((o−1)(D − ε)).
    """

    shift: Number  # of each of the coordinates
    dim: int
    order: Number

    @property
    def pure(self) -> Number:
        return self.shift * self.dim

    def delta(self, epsilon: Number, upper: bool) -> Number:
        a, o = self.shift, self.order
        inner = o / (2 * o - 1) + (o - 1) / (2 * o - 1) * iv.exp(-(2 * o - 1) * a)
        moment = self.dim * ((o - 1) * a + iv.log(inner))
        return at_most_one(iv.exp(moment - (o - 1) * epsilon - iv.log(o) + (o - 1) * iv.log(1 - 1 / o)))


@dataclass(frozen=True)
class Worst:
    """The largest of some losses at each ε."""

    losses: Sequence[Loss]

    @property
    def pure(self) -> Number:
        return largest(loss.pure for loss in self.losses)

    def delta(self, epsilon: Number, upper: bool) -> Number:
        return largest(loss.delta(epsilon, upper) for loss in self.losses)


def infinite_part(loss: Loss) -> Number:
    """The probability of outputs that the second law cannot give: what δ(ε) never falls below."""
    if isinstance(loss, Leak):
        return loss.chance
    if isinstance(loss, Outcomes):
        return sum((p for p, q in loss.chances if q.b <= 0), ZERO)
    if isinstance(loss, EqualBits | UnequalBits):
        return loss.infinite
    return largest(infinite_part(one) for one in loss.losses) if isinstance(loss, Worst) else ZERO


def both_ways(chances: Sequence[tuple[Number, Number]]) -> Loss:
    """The larger one of the loss of the first law against the second and of the second against the first."""
    return Worst([Outcomes(tuple(chances)), Outcomes(tuple((q, p) for p, q in chances))])


def bits_loss(groups: Sequence[tuple[Number, Number, int]]) -> Loss:
    """The loss of independent bits: P(1) under both laws, and how many bits; the larger one of both ways."""
    kinds = joined(groups)
    if not kinds:
        return Pure(ZERO)
    if sum(kind.count for kind in kinds) <= FEW_BITS:
        outcomes = [(ONE, ONE)]
        for kind in kinds:
            for _ in range(kind.count):
                each = ((kind.p, kind.q), (1 - kind.p, 1 - kind.q))
                outcomes = [(a * x, b * y) for a, b in outcomes for x, y in each]
        return both_ways(outcomes)
    back = joined([(kind.q, kind.p, kind.count) for kind in kinds])
    return Worst([way[0] if len(way) == 1 else UnequalBits(way) for way in (kinds, back)])


def laplace_loss(shifts: Sequence[tuple[Number, int]], scale: Number, grid: Grid | None) -> Loss:
    """Independent coordinates with Laplace noise: how far each moves, and how many move so."""
    sizes: list[tuple[Number, int]] = []
    for gap, count in shifts:
        size = abs(gap) / scale
        if count and size.b > 0:
            same = [i for i, (other, _) in enumerate(sizes) if other.a == size.a and other.b == size.b]
            if same:
                sizes[same[0]] = size, sizes[same[0]][1] + count
            else:
                sizes.append((size, count))
    return Summed(tuple((lattice.Laplace(size), count) for size, count in sizes), grid)


def chance_above(stage: Stage, centre: Number, threshold: Number) -> Number:
    """P(centre + noise > threshold)."""
    distance = threshold - centre
    if stage.name == "gaussian":
        return tail(distance / stage.numbers["sigma"])
    ends = []
    for end in (distance.b, distance.a):
        less = iv.exp(-abs(iv.mpf(end)) / stage.numbers["scale"]) / 2
        ends.append(less if end > 0 else 1 - less)
    return iv.mpf([ends[0].a, ends[1].b])
