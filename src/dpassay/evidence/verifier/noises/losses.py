"""Privacy losses as functions: ε at δ = 0, and δ at an ε, each within certified bounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol

from dpassay.errors import CertificateError
from dpassay.evidence.verifier.arithmetic import lattice
from dpassay.evidence.verifier.arithmetic.binomial import BitGroups, Group, joined
from dpassay.evidence.verifier.arithmetic.normal import gaussian_delta, tail
from dpassay.evidence.verifier.arithmetic.numbers import (
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
from dpassay.evidence.verifier.regions.regions import ParsedStage
from dpassay.values import dataclass

_SHORTEST = iv.mpf("1e-20")  # below this range, 1 − e^−range loses too many digits

FEW_BITS = 4  # of which all outcomes are listed


class Loss(Protocol):
    """A bound on the loss between two neighbors."""

    @property
    def pure(self) -> Number:
        """ε at δ = 0."""

    def delta(self, epsilon: Number, upper: bool) -> Number:
        """δ(ε); the caller needs either the upper or the lower end."""


@dataclass(frozen=True)
class LossCurve:
    """A loss by its formula; `infinite` is the probability of outputs that the second law cannot give.

    For Gaussian noise `mu` is the shift in standard deviations, for losses in an interval `width` is its length.
    `times` gives the loss of several such answers. If they are known, `divergence` bounds a Rényi divergence by its
    order, and is the loss's own if it is `attained`; `rho` times the order bounds it too.
    """

    pure: Number
    formula: Callable[[Number], Number]
    infinite: Number = ZERO
    mu: Number | None = None
    width: Number | None = None
    times: Callable[[int], Loss] | None = None
    divergence: Callable[[Number], Number] | None = None
    attained: bool = False
    rho: Number | None = None

    def delta(self, epsilon: Number, upper: bool) -> Number:
        return self.formula(epsilon)


def pure_loss(pure: Number) -> Loss:
    """What ε₀-DP implies: δ(ε) ≤ (e^ε₀ − e^ε)/(e^ε₀ + 1), attained by randomized response."""
    if is_infinite(pure):
        return LossCurve(pure, lambda epsilon: ONE)
    return LossCurve(pure, lambda epsilon: positive_part(1 - iv.exp(epsilon - pure)) / (1 + iv.exp(-pure)))


def pure_divergence(pure: Number, o: Number, count: int = 1) -> Number:
    """The Rényi divergence of an order that ε-DP allows, `count` times: ln((e^(oε) + e^((1−o)ε))/(1 + e^ε))/(o − 1)."""
    if is_infinite(pure):
        return INF
    # e^(oε) and e^ε are factored out
    inside = iv.log((1 + iv.exp((1 - 2 * o) * pure)) / (1 + iv.exp(-pure)))
    return positive_part(pure + inside / (o - 1)) * count


def range_loss(width: Number, pure: Number, least: Number = ZERO) -> Loss:
    """Losses from t − r to t, t at most `pure`: (1 − e^(t−r))(1 − e^(ε−t))/(1 − e^−r), largest at t = (r+ε)/2."""
    if width.a < _SHORTEST:
        return pure_loss(pure)

    def delta(epsilon: Number) -> Number:
        top = smallest([pure, (width + epsilon) / 2])
        gaps = [positive_part(1 - iv.exp(gap)) for gap in (top - width, epsilon - top)]
        return at_most_one(gaps[0] * gaps[1] / (1 - iv.exp(-width)))

    return LossCurve(pure, delta, width=width, divergence=lambda order: range_divergence(width, pure, order, least))


def range_divergence(width: Number, pure: Number, o: Number, least: Number = ZERO) -> Number:
    """The largest Rényi divergence of an order o > 1 of losses from t − r to t, t at most `pure`.

    D = t + ln((A − B e^(t−r))/(1 − e^−r))/(o − 1), A = 1 − e^(−or), B = 1 − e^(−(o−1)r), largest at e^(t−r) =
    (o−1)A/(oB). If that t lies between r − least and least, where none is possible, at one of these.
    """
    if width.a < _SHORTEST:
        return pure
    first, second = 1 - iv.exp(-o * width), 1 - iv.exp(-(o - 1) * width)
    top = smallest([pure, width + iv.log((o - 1) * first / (o * second))])
    missed = (width - least).b < top.a and top.b < least.a
    found = []
    for t in (width - least, least) if missed else (top,):
        rest = first - second * iv.exp(t - width)
        found.append(t + iv.log(rest / (1 - iv.exp(-width))) / (o - 1) if rest.a > 0 else pure)
    return smallest([pure, largest(found)])


def range_steps(width: Number, pure: Number, count: int, order: Number) -> Loss:
    """`count` uses, each with losses of this range whatever came before: Rényi divergences of an order o > 1 add up.

    δ(ε) ≤ (1/o)(1 − 1/o)^(o−1)·e^((o−1)(D − ε)).

    >>> from dpassay.evidence.verifier.arithmetic.numbers import middle
    >>> steps = range_steps(iv.mpf(2), iv.mpf(2), 100, iv.mpf("1.59"))
    >>> middle(steps.delta(iv.mpf("93.83"), True)) < 1e-6 < middle(steps.delta(iv.mpf("93.8"), True))
    True
    """
    divergence, o = range_divergence(width, pure, order), order
    constant = (o - 1) * divergence * count - iv.log(o) + (o - 1) * iv.log(1 - 1 / o)
    return LossCurve(pure * count, lambda epsilon: at_most_one(iv.exp(constant - (o - 1) * epsilon)))


def gaussian_loss(mu: Number) -> Loss:
    """Normal noise, the shift μ in standard deviations: Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ)."""

    def times(count: int) -> Loss:
        return gaussian_loss(mu * iv.sqrt(iv.mpf(count)))

    return LossCurve(_if_any(mu), lambda epsilon: gaussian_delta(epsilon, mu), mu=mu, times=times, rho=mu**2 / 2)


def leak_loss(chance: Number, otherwise: Number = ZERO) -> Loss:
    """A probability with which the first value is revealed, whatever ε is; otherwise the loss is at most `otherwise`.

    >>> from dpassay.evidence.verifier.arithmetic.numbers import middle
    >>> round(middle(leak_loss(iv.mpf("0.5"), ONE).delta(ZERO, True)), 9)  # 1 − e^−1/2
    0.816060279
    """

    def delta(epsilon: Number) -> Number:
        if (otherwise - epsilon).b <= 0:
            return chance
        return at_most_one(chance + (1 - chance) * positive_part(1 - iv.exp(epsilon - otherwise)))

    def times(count: int) -> Loss:
        return leak_loss(1 - (1 - chance) ** count, otherwise * count)

    pure = otherwise if chance.b <= 0 else _if_any(chance)
    return LossCurve(pure, delta, chance, times=times)


def _if_any(value: Number) -> Number:
    """Infinite if a number is above 0."""
    return INF if value.a > 0 else ZERO if value.b <= 0 else hull(ZERO, INF)


def renyi_loss(shift: Number, dim: int, order: Number) -> Loss:
    """Laplace noise, all shifts of at most a given lp norm, p ≥ 2: the even one has the largest Rényi divergence D.

    At every order o > 1 it gives δ(ε) ≤ (1/o)(1 − 1/o)^(o−1)·e^((o−1)(D − ε)).
    """
    moment = dim * laplace_moment(shift, order) - iv.log(order) + (order - 1) * iv.log(1 - 1 / order)

    def times(count: int) -> Loss:
        return renyi_loss(shift, dim * count, order)

    def divergence(order: Number) -> Number:
        return dim * laplace_moment(shift, order) / (order - 1)

    def delta(epsilon: Number) -> Number:
        return at_most_one(iv.exp(moment - (order - 1) * epsilon))

    return LossCurve(shift * dim, delta, times=times, divergence=divergence)


def laplace_moment(a: Number, o: Number) -> Number:
    """(o − 1) times the Rényi divergence of an order of Laplace noise, shifted by `a` scales.

    ln(o/(2o−1) e^((o−1)a) + (o−1)/(2o−1) e^(−oa)).
    """
    return (o - 1) * a + iv.log(o / (2 * o - 1) + (o - 1) / (2 * o - 1) * iv.exp(-(2 * o - 1) * a))


def loss_at_zero(pure: Number, other: Loss | None = None) -> Loss:
    """A bound on ε at δ = 0: the events that show it are rare; at δ > 0 only another loss's bound is known."""
    return LossCurve(pure, lambda epsilon: ZERO if other is None else other.delta(epsilon, False))


@dataclass(frozen=True)
class FiniteOutcomes:
    """Finitely many outcomes, each with its probabilities under both laws."""

    chances: tuple[tuple[Number, Number], ...]

    @property
    def pure(self) -> Number:
        ratios = (
            log(p) - log(q) if q.b > 0 else INF if p.a > 0 else hull(-INF, INF) for p, q in self.chances if p.b > 0
        )
        return positive_part(largest(ratios))

    @property
    def infinite(self) -> Number:
        return sum((p for p, q in self.chances if q.b <= 0), ZERO)

    def delta(self, epsilon: Number, upper: bool) -> Number:
        """Σ max(0, p − e^ε q)."""
        rise = iv.exp(epsilon)
        return at_most_one(sum((positive_part(p - rise * q) for p, q in self.chances), ZERO))


@dataclass(frozen=True)
class Summed:
    """Independent coordinates, Laplace noise or atoms: one coordinate by its formula, more on a lattice."""

    parts: tuple[tuple[lattice.Part, int], ...]
    grid: lattice.Grid | None = None

    @property
    def pure(self) -> Number:
        total = ZERO
        for part, count in self.parts:
            if isinstance(part, lattice.LaplaceShift):
                total += part.shift * count
            elif part.infinite.b > 0:
                return INF
            elif isinstance(part, lattice.Rungs):
                total += part.pure * count
            else:
                total += largest(loss for loss, _ in part.atoms) * count
        return positive_part(total)

    def delta(self, epsilon: Number, upper: bool) -> Number:
        """1 − e^((ε−a)/2) for one coordinate with Laplace noise."""
        if not self.parts or (self.pure - epsilon).b <= 0:
            return ZERO
        (part, count), *others = self.parts
        if not others and count == 1 and isinstance(part, lattice.LaplaceShift) and part.cut.b <= 0:
            return positive_part(1 - iv.exp((epsilon - self.pure) / 2))
        if self.grid is None:
            raise CertificateError("a sum of losses needs a grid")
        grid = self.grid if not isinstance(part, lattice.Rungs) else replace(self.grid, step=part.unit)
        return lattice.compose(self.parts, grid, upper).delta(epsilon, upper)


@dataclass(frozen=True)
class Worst:
    """The largest of some losses at each ε; `divergence` is a bound on all Rényi divergences if one is known."""

    losses: Sequence[Loss]
    divergence: Callable[[Number], Number] | None = None

    @property
    def pure(self) -> Number:
        return largest(loss.pure for loss in self.losses)

    @property
    def infinite(self) -> Number:
        return largest(getattr(loss, "infinite", ZERO) for loss in self.losses)

    def delta(self, epsilon: Number, upper: bool) -> Number:
        return largest(loss.delta(epsilon, upper) for loss in self.losses)


@dataclass(frozen=True)
class Leaking:
    """Outputs that the second law cannot give, with probability `chance`; given all others, the loss is another one.

    `others` gives that loss for several answers.
    """

    chance: Number
    others: Callable[[int], Loss]
    count: int = 1

    @property
    def infinite(self) -> Number:
        return largest([ZERO, 1 - (1 - self.chance) ** self.count])

    @property
    def pure(self) -> Number:
        others = self.others(self.count).pure
        return INF if self.chance.a > 0 else hull(others, INF) if self.chance.b > 0 else others

    def delta(self, epsilon: Number, upper: bool) -> Number:
        return at_most_one(self.infinite + (1 - self.infinite) * self.others(self.count).delta(epsilon, upper))

    def times(self, count: int) -> Loss:
        """The loss of several such answers."""
        return replace(self, count=self.count * count)


def both_ways(chances: Sequence[tuple[Number, Number]]) -> Loss:
    """The larger one of the loss of the first law against the second and of the second against the first."""
    return Worst([FiniteOutcomes(tuple(chances)), FiniteOutcomes(tuple((q, p) for p, q in chances))])


def bits_loss(groups: Sequence[Group]) -> Loss:
    """The loss of independent bits, the larger one of both directions."""
    kinds = joined(groups)
    if not kinds:
        return pure_loss(ZERO)
    if sum(count for _, _, count in kinds) <= FEW_BITS:
        outcomes = [(ONE, ONE)]
        for p, q, count in kinds:
            for _ in range(count):
                outcomes = [(a * x, b * y) for a, b in outcomes for x, y in ((p, q), (1 - p, 1 - q))]
        return both_ways(outcomes)
    return Worst([BitGroups(kinds), BitGroups(joined([(q, p, count) for p, q, count in kinds]))])


def laplace_loss(shifts: Sequence[tuple[Number, int]], scale: Number, grid: lattice.Grid | None) -> Loss:
    """Independent coordinates with Laplace noise: how far they move, and how many move that far."""
    sizes: dict[Any, tuple[lattice.Part, int]] = {}
    for gap, count in shifts:
        size = abs(gap) / scale
        if count and size.b > 0:
            known = sizes.get(size._mpi_, (lattice.LaplaceShift(size), 0))
            sizes[size._mpi_] = known[0], known[1] + count
    return Summed(tuple(sizes.values()), grid)


def chance_above(stage: ParsedStage, centre: Number, threshold: Number) -> Number:
    """P(centre + noise > threshold)."""
    distance = threshold - centre
    if stage.name == "gaussian":
        return tail(distance / stage.numbers["sigma"])
    least, most = (_laplace_tail(iv.mpf(end) / stage.numbers["scale"]) for end in (distance.b, distance.a))
    return hull(least, most)


def _laplace_tail(z: Number) -> Number:
    less = iv.exp(-abs(z)) / 2
    return less if z.a > 0 else 1 - less
