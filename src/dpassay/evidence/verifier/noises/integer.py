"""Discrete noise on integers: docs/proofs/discrete-laplace.md and docs/proofs/discrete-gaussian.md."""

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from dpassay.errors import CertificateError
from dpassay.evidence.verifier.arithmetic.binomial import BitGroups, joined
from dpassay.evidence.verifier.arithmetic.lattice import MOST_CELLS, Grid, Rungs
from dpassay.evidence.verifier.arithmetic.numbers import (
    INF,
    ONE,
    ZERO,
    Number,
    above,
    at_most_one,
    below,
    hull,
    iv,
    largest,
    middle,
    whole_part,
)
from dpassay.evidence.verifier.arithmetic.work import KEPT_NUMBER, spend
from dpassay.evidence.verifier.noises.losses import (
    FEW_BITS,
    FiniteOutcomes,
    Loss,
    LossCurve,
    Summed,
    leak_loss,
    pure_loss,
)
from dpassay.evidence.verifier.reading import Step
from dpassay.evidence.verifier.regions.pairs import Pair, differing
from dpassay.evidence.verifier.regions.regions import (
    INFINITE,
    ParsedStage,
    RegionShape,
    diameter,
    is_whole,
    rounded_steps,
)
from dpassay.values import dataclass

_FARTHEST = 10**6  # a distance in one coordinate beyond which losses are not computed
_MOST_EVENTS = 64
_PIECE = 1 << 16  # outputs
Shifts = Mapping[int, int]  # how far coordinates move, and how many move that far


def whole_gaps(pair: Pair) -> Shifts | None:
    """The integers by which coordinates differ; None if one certainly differs by a non-integer."""
    found: dict[int, int] = {}
    for gap, count in differing(pair):
        size = whole_part(abs(gap))
        if abs(gap).a > size and abs(gap).b < size + 1:
            return None
        if not (abs(gap).a == size == abs(gap).b):
            raise CertificateError("it is not known whether the two values differ by a whole number")
        found[size] = found.get(size, 0) + count
    return found


def whole_shifts(shape: RegionShape) -> Shifts | None:
    """The worst differences at each ε, if they are known; a larger one in any coordinate is worse.

    At equal l1 distance a single coordinate is the worst: docs/proofs/discrete-gaussian.md, point 6.
    """
    if not is_whole(shape):
        raise CertificateError("the values before the noise are not known to be whole numbers")
    if shape.kind == "repeated":
        inner = whole_shifts(replace(shape.one, whole=True))
        return None if inner is None else {size: count * shape.count for size, count in inner.items()}
    if shape.kind == "sphere":  # −1 and 1, as only these are integers
        return {2: 1}
    if shape.kind == "answers":
        near = shape.balls[0]
        if near.p == INFINITE or shape.dim == 1:
            return {whole_part(near.width): shape.dim}
        if near.p == 1:
            return {whole_part(near.width): 1}
        square = whole_part(near.width**2)
        return {1: min(square, shape.dim)} if square < 4 else None
    if shape.kind == "rounded":
        steps, known = rounded_steps(shape)
        even = shape.dim == 1 or shape.parts[0].balls[0].p == INFINITE
        return {steps[0][0][0]: shape.dim} if known and even else None
    if shape.kind == "box" and shape.high.b < INF:
        return {whole_part(shape.high - shape.low): shape.differing} if shape.differing else {}
    raise CertificateError(f"nothing is known about discrete noise on the region {shape.kind}")


def discrete_laplace_pair(stage: ParsedStage, pair: Pair, grid: Grid | None) -> Loss:
    """Values that do not differ by integers have no output in common."""
    shifts = whole_gaps(pair)
    return leak_loss(ONE) if shifts is None else _discrete_laplace(shifts, stage.numbers["scale"], grid)


def discrete_laplace_upper(stage: ParsedStage, shape: RegionShape, step: Step) -> Loss:
    """The worst differences for some regions; for the others the whole l1 distance in one coordinate."""
    shifts, scale = whole_shifts(shape), stage.numbers["scale"]
    if shifts is None:
        most = _l1_distance(shape)
        return pure_loss(most / scale) if most > _FARTHEST else _discrete_laplace({most: 1}, scale, step.grid)
    return _discrete_laplace(shifts, scale, step.grid)


def _l1_distance(shape: RegionShape) -> int:
    """The largest l1 distance between two vectors of integers."""
    return whole_part(iv.mpf(diameter(shape, 1.0).b))


def _discrete_laplace(shifts: Shifts, scale: Number, grid: Grid | None) -> Loss:
    moved = {size: count for size, count in shifts.items() if size and count}
    if not moved:
        return pure_loss(ZERO)
    if set(moved) == {1}:
        return _steps_of_one(moved[1], scale)
    if sum(moved.values()) > 1:
        if max(moved) > MOST_CELLS:
            return _long_moves(moved, scale)
        return Summed(tuple((_rungs(size, scale), count) for size, count in moved.items()), grid)
    size = next(iter(moved))

    def times(count: int) -> Loss:
        return _discrete_laplace({size: count}, scale, grid)

    return LossCurve(
        size / scale,
        lambda epsilon: _delta(size, scale, epsilon),
        times=times,
        divergence=lambda order: _laplace_divergence(size, scale, order),
        attained=True,
    )


def _long_moves(moved: Shifts, scale: Number) -> Loss:
    """Coordinates that move too far for all outputs between to be listed.

    At δ > 0 they show what the one that moves farthest shows, and no more than their largest loss allows.
    """
    pure = sum(size * count for size, count in moved.items()) / scale
    most = pure_loss(pure)
    return LossCurve(
        pure,
        lambda epsilon: hull(_delta(max(moved), scale, epsilon), most.delta(epsilon, True)),
        times=lambda more: _long_moves({size: count * more for size, count in moved.items()}, scale),
        divergence=lambda order: sum(
            (count * _laplace_divergence(size, scale, order) for size, count in moved.items()), ZERO
        ),
        attained=True,
    )


def _laplace_divergence(size: int, scale: Number, order: Number) -> Number:
    """ln E[e^((o−1)L)]/(o − 1): the two tails, and a geometric sum over the outputs between."""
    ratio, fall = iv.exp(-1 / scale), iv.exp((1 - 2 * order) / scale)
    between = (1 - ratio) * fall * (1 - fall ** (size - 1)) / (1 - fall)
    return size / scale + iv.log((1 + fall**size + between) / (1 + ratio)) / (order - 1)


def _steps_of_one(count: int, scale: Number) -> Loss:
    """Coordinates that move by 1: each is a bit that is kept with probability 1/(1 + e^(−1/scale))."""
    keep = 1 / (1 + iv.exp(-1 / scale))
    if count > FEW_BITS:
        return BitGroups(joined([(keep, 1 - keep, count)]))
    ways = [math.comb(count, kept) for kept in range(count + 1)]
    chances = [way * keep**kept * (1 - keep) ** (count - kept) for kept, way in enumerate(ways)]
    outcomes = FiniteOutcomes(tuple(zip(chances, reversed(chances), strict=True)))
    return LossCurve(
        count / scale,
        lambda epsilon: outcomes.delta(epsilon, True),
        times=lambda more: _steps_of_one(count * more, scale),
        divergence=lambda order: count * _laplace_divergence(1, scale, order),
        attained=True,
    )


def _delta(size: int, scale: Number, epsilon: Number) -> Number:
    """The best of the events "at most m": 1 − (a^(m+1) + e^ε a^(k−m))/(1 + a), a = e^(−1/scale); it falls with ε."""
    ends = []
    for end in (iv.mpf(epsilon.b), iv.mpf(epsilon.a)):
        best, ratio, rise = (size - end * scale) / 2, iv.exp(-1 / scale), iv.exp(end)
        tried = range(max(0, -whole_part(iv.mpf(-best.a)) - 2), min(size, whole_part(best) + 1) + 1)
        if len(tried[:_MOST_EVENTS]) == _MOST_EVENTS:
            raise CertificateError("the best event is not known precisely enough")
        each = [1 - (ratio ** (m + 1) + rise * ratio ** (size - m)) / (1 + ratio) for m in tried]
        ends.append(ZERO if (size / scale - end).b <= 0 else largest([ZERO, *each]))
    return hull(*ends)


def _rungs(size: int, scale: Number) -> Rungs:
    """Outputs from 0 to the size, those beyond moved to these; the losses are integer multiples of 1/scale."""
    spend(size * KEPT_NUMBER)
    ratio = iv.exp(-1 / scale)
    chances = [1 / (1 + ratio)]
    inner = (1 - ratio) / (1 + ratio)
    for _ in range(size - 1):
        inner *= ratio
        chances += [ZERO, inner]
    return Rungs(-size, (*reversed([*chances, ZERO, ratio**size / (1 + ratio)]),), 1 / scale)


def discrete_gaussian_pair(stage: ParsedStage, pair: Pair, grid: Grid | None) -> Loss:
    """What the coordinate that moves farthest shows."""
    shifts = whole_gaps(pair)
    if shifts is None:
        return leak_loss(ONE)
    return _one_gaussian(max(shifts, default=0), stage.numbers["sigma"], grid)


def discrete_gaussian_upper(stage: ParsedStage, shape: RegionShape, step: Step) -> Loss:
    """Rényi divergences of at most the order times ρ; or the loss of one coordinate that moves as far as all do."""
    sigma, shifts = stage.numbers["sigma"], whole_shifts(shape)
    if step.order is not None:
        return _zcdp(iv.mpf(diameter(shape, 2.0).b) ** 2 / (2 * sigma**2), step.order)
    if shifts is None or sum(shifts.values()) > 1:
        most = _l1_distance(shape)
        if most > _FARTHEST:
            raise CertificateError(f"the loss of discrete Gaussian noise is not computed for a distance of {most}")
        shifts = {most: 1}
    return _one_gaussian(max(shifts, default=0), sigma, step.grid)


def _zcdp(rho: Number, order: Number) -> Loss:
    """δ(ε) ≤ (1/o)(1 − 1/o)^(o−1)·e^((o−1)(oρ − ε)); divergences of several answers add up."""
    constant = (order - 1) * order * rho - iv.log(order) + (order - 1) * iv.log(1 - 1 / order)
    pure = INF if rho.b > 0 else ZERO
    return LossCurve(
        pure,
        lambda epsilon: at_most_one(iv.exp(constant - (order - 1) * epsilon)),
        times=lambda n: _zcdp(rho * n, order),
        rho=rho,
    )


def _one_gaussian(size: int, sigma: Number, grid: Grid | None) -> Loss:
    """Outputs up to the last one whose loss exceeds ε: Σ P(t)(1 − e^(ε − L(t))), L(t) = (k² − 2kt)/(2σ²)."""
    if not size:
        return pure_loss(ZERO)
    square = 2 * sigma**2
    if sigma.a > 3:
        others = iv.exp(-(iv.pi**2) * square)
        total = sigma * iv.sqrt(2 * iv.pi) * (1 + 2 * hull(ZERO, others / (1 - others)))
    else:
        terms = [iv.exp(-(t * t) / square) for t in range(1, 60)]
        total = 1 + 2 * sum(terms, ZERO) + hull(ZERO, 4 * terms[-1])

    def delta(epsilon: Number) -> Number:
        ends = [_tail_sum(size, square, iv.mpf(end)) / total for end in (epsilon.b, epsilon.a)]
        return at_most_one(hull(*ends))

    def times(count: int) -> Loss:
        reach = math.ceil(14 * middle(sigma)) + size  # beyond it lies less than e^−90 of the mass
        if 4 * reach > 2 * MOST_CELLS:
            raise CertificateError(f"a loss may have at most {2 * MOST_CELLS} values")
        spend(reach * KEPT_NUMBER)
        chances = [iv.exp(-(t * t) / square) / total for t in range(reach + 1)]
        inside = [one for t in range(reach, -reach - 1, -1) for one in (chances[abs(t)], ZERO)]  # the largest loss last
        rungs = Rungs(size - 2 * reach, tuple(inside[:-1]), size / square)
        return Sided(
            Summed(((replace(rungs, infinite=iv.exp(iv.mpf(-90))), count),), grid), Summed(((rungs, count),), grid)
        )

    def divergence(order: Number) -> Number:
        """oρ for whole orders; for others the lattice takes off a little, at most what it does at ½."""
        most, others = order * size**2 / square, iv.exp(-(iv.pi**2) * square)
        if order.a == order.b == whole_part(order):
            return most
        lost = iv.log(iv.exp(-1 / (4 * square)) / total)
        if (3 * others).b < 1:
            lost = largest([lost, iv.log((1 - 3 * others) / (1 + others))])
        return most + hull(lost, ZERO) / (order - 1)

    return LossCurve(INF, delta, times=times, divergence=divergence, attained=True)


@dataclass(frozen=True)
class Sided:
    """A loss whose omitted rare outputs count as revealing from above, and not at all from below."""

    most: Loss
    least: Loss

    @property
    def pure(self) -> Number:
        return INF

    def delta(self, epsilon: Number, upper: bool) -> Number:
        return (self.most if upper else self.least).delta(epsilon, upper)


def _tail_sum(size: int, square: Number, epsilon: Number) -> Number:
    """Σ e^(−t²/2σ²)(1 − e^(ε − L(t))) in doubles over t = last, last − 1, …, each term relative to the largest one.

    At t the exponent is −k(t* − t)/σ², t* where the loss is ε. Exponents are below 700 and off by 1e-15 of themselves;
    omitted terms are below e^−100 of the largest term, at each place.
    """
    crossing = size / iv.mpf(2) - square * epsilon / (2 * size)
    last = whole_part(crossing)
    doubled = middle(square)
    first = min(last, math.ceil(math.sqrt(110 * doubled)) + 2)
    reach = math.ceil(first + math.sqrt(min(last, 0) ** 2 + 110 * doubled)) + 2
    spend(20 * reach)
    nearest = max(0, first - reach + 1) if first > 0 else first  # to 0, of all outputs
    top = -float(nearest) * float(nearest) / doubled
    rest, totals = [end(crossing - last) for end in (below, above)], [0.0, 0.0]
    for start in range(0, reach, _PIECE):  # a part at a time, so that no more memory is needed for more outputs
        t = first - np.arange(float(start), float(min(start + _PIECE, reach)))
        worth = np.exp(-t * t / doubled - top)
        for side in (0, 1):
            gap = np.maximum(0.0, rest[side] + (last - t))
            totals[side] += float((worth * -np.expm1(-2 * size * gap / doubled)).sum())
    error = 1e-14 * (1000 + reach * 0.1 + 4 * abs(top))
    found = [totals[0] * (1 - error), totals[1] * (1 + error) + (reach + doubled) * math.exp(-100)]
    scale = iv.exp(iv.mpf(top))
    return hull(iv.mpf(max(0.0, found[0])) * scale, iv.mpf(found[1]) * scale)
