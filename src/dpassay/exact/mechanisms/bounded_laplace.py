"""The loss of the bounded Laplace mechanism: docs/proofs/bounded-laplace.md.

Values beyond a limit have the same output distribution as the limit, so they are moved to it first. Distances below are
in units of the scale.
"""

import math
from collections.abc import Sequence
from functools import cached_property
from typing import ClassVar

import numpy as np

from dpassay.core.numbers import (
    ONE,
    ZERO,
    Number,
    between,
    down,
    exp,
    log,
    maximum,
    middle,
    minimum,
    missing,
    number,
    real,
    up,
)
from dpassay.core.theorems import Theorem
from dpassay.exact.mechanisms.questions import Surroundings, least_loss, profile_of, reason
from dpassay.exact.pld.loss_components import AtomLoss, Cells
from dpassay.exact.pld.privacy_loss import PrivacyLoss
from dpassay.exact.profiles.bounds import GeneralBound, PairBound, ProfileBound, PureBound
from dpassay.exact.profiles.profile import Candidate, PrivacyProfile
from dpassay.pipeline.regions import (
    Array,
    Block,
    Box,
    Pair,
    Region,
    Rounded,
    Rows,
    SensitivityBall,
)
from dpassay.pipeline.stages.noises.bounded_laplace import BoundedLaplace
from dpassay.pipeline.syntax import written
from dpassay.values import dataclass

INF = float("inf")
_THEOREM = Theorem.BOUNDED_LAPLACE
_CELLS = 1 << 12
_PLACES = 1 << 14  # cells for the position of a query's answers
_SLACK = 1e-12  # more than the rounding error of the few operations of a formula


@dataclass(frozen=True)
class BoundedLaplaceLoss:
    """One coordinate: P around a value `edge` from one limit, Q around one `shift` farther in, limits `width` apart.

    >>> round(middle(BoundedLaplaceLoss(ZERO, ONE, number(2)).pure), 6)  # 1 + ln((2 − 2/e)/(1 − e^−2))
    1.379885
    """

    edge: Number
    shift: Number
    width: Number
    infinite: ClassVar[Number] = ZERO

    @cached_property
    def _own(self) -> Number:
        """Twice the probability of landing between the limits, for P."""
        return _twice(self.edge, self.width)

    @cached_property
    def _constant(self) -> Number:
        return log(_twice(self.edge + self.shift, self.width) / self._own)

    @property
    def pure(self) -> Number:
        """The loss below P's value."""
        return self.shift + self._constant

    @property
    def mean(self) -> Number:
        d, away = self.shift, exp(-self.shift)
        below, above = 1 - exp(-self.edge), away - exp(self.edge - self.width)
        between_them = d * (1 - away) - 2 + 2 * (1 + d) * away
        return self._constant + (d * (below - above) + between_them) / self._own

    @property
    def span(self) -> float:
        return max(up(abs(self.pure)), up(abs(self.pure - 2 * self.shift)))

    def delta(self, epsilon: Number) -> Number:
        """((1 − e^−edge)(1 − e^−2s) + (1 − e^−s)²) over `_own`, s = (pure − ε)/2, which is at most the shift."""
        return between(*(self._delta(real(end)) for end in (epsilon.b, epsilon.a)))

    def _delta(self, epsilon: Number) -> Number:
        half = maximum(ZERO, minimum(self.shift, (self.pure - epsilon) / 2))
        if epsilon.b < 0 and (self.pure - 2 * self.shift - epsilon).b >= 0:
            return 1 - exp(epsilon)
        near, far = 1 - exp(-half), 1 - exp(-2 * half)
        return ((1 - exp(-self.edge)) * far + near**2) / self._own

    def cells(self, step: float, stride: int, upper: bool) -> Cells:
        """Below P's value and above Q's the loss is constant; between them the loss of a cell is that of its middle."""
        side = up if upper else down
        cuts = np.linspace(0.0, middle(self.shift), _CELLS + 1)
        pure, own, edge = side(self.pure), middle(self._own), middle(self.edge)
        rest = math.exp(-cuts[-1]) * -math.expm1(min(0.0, edge + cuts[-1] - middle(self.width)))
        mass = np.exp(-cuts[:-1]) * -np.expm1(-np.diff(cuts))
        high = pure - 2 * np.concatenate([[0.0], cuts[:-1], cuts[-1:]])
        low = pure - 2 * np.concatenate([[0.0], cuts[1:], cuts[-1:]])
        masses = np.concatenate([[-math.expm1(-edge)], mass, [rest]]) / own
        return Cells(np.maximum(0.0, masses), (low + high) / 2, low, high)


def _twice(edge: Number, width: Number) -> Number:
    """2 − e^−edge − e^−(width − edge): twice the probability that Laplace noise stays between the limits."""
    return missing(edge) + missing(width - edge)


@dataclass(frozen=True)
class SlidingBound(GeneralBound):
    """A query's answers, one number, any two `shift` scales apart: the pair may lie anywhere between the limits.

    Neither a limit nor the middle is the worst position at every ε. For the upper bound, positions are divided into
    cells; in each, increasing terms are taken at one end and decreasing ones at the other: point 5 of
    docs/proofs/bounded-laplace.md.
    """

    shift: Number
    width: Number
    theorem: Theorem = _THEOREM

    @property
    def pure(self) -> Number:
        """At a limit."""
        return BoundedLaplaceLoss(ZERO, self.shift, self.width).pure

    @cached_property
    def _table(self) -> tuple[Array, Array, Array]:
        """For each cell, the largest pure loss, 1 − e^−edge, and 1 over the probability of landing inside."""
        shift, width = middle(self.shift), middle(self.width)
        room = max(0.0, width - shift)
        edges = np.append(0.0, np.geomspace(room * 1e-9, room * (1 + _SLACK), _PLACES)) if room > 0 else np.zeros(2)
        own = -np.expm1(-edges) - np.expm1(edges - width)
        other = -np.expm1(-edges - shift) - np.expm1(np.minimum(0.0, edges + shift - width))
        pure = shift + np.log(other / own)
        return pure[:-1], -np.expm1(-edges[1:]), 1 / np.minimum(own[:-1], own[1:])

    def _above(self, epsilon: float) -> float:
        pure, below, inside = self._table
        slack = _SLACK * (1 + pure + epsilon)
        half = np.maximum(0.0, (pure - epsilon) / 2 + slack)
        near = -np.expm1(-half)
        return min(1.0, float(np.max((below * -np.expm1(-2 * half) + near**2) * inside)) * (1 + _SLACK))

    def delta(self, epsilon: Number) -> Number:
        if (self.pure - epsilon).b <= 0:
            return ZERO
        return between(ZERO, real(self._above(down(epsilon))))

    def epsilon(self, delta: Number) -> Number:
        """From 0 to an ε at which δ is certainly not exceeded."""
        low, high, limit = 0.0, up(self.pure), down(delta)
        if self._above(0.0) <= limit:
            return ZERO
        for _ in range(60):
            half = (low + high) / 2
            low, high = (low, half) if self._above(half) <= limit else (half, high)
        return between(ZERO, minimum(real(high), self.pure))

    epsilon_above = epsilon


def pair_bound(stage: BoundedLaplace, pair: Pair) -> PairBound:
    """The loss between two vectors, in both directions."""
    ways = []
    for first, second in (("x", "y"), ("y", "x")):
        components = []
        for block in pair.blocks:
            x, y = (_inside(stage, getattr(block, side)) for side in (first, second))
            shift = abs(y - x)
            if block.same or shift.b <= 0:
                continue
            edge = x if (y - x).mid > 0 else stage_width(stage) - x  # as seen from the limit on P's side
            components.append((BoundedLaplaceLoss(maximum(ZERO, edge), shift, stage_width(stage)), block.count))
        ways.append(PrivacyLoss(tuple(components)))
    return PairBound(tuple(ways), _THEOREM)


def stage_width(stage: BoundedLaplace) -> Number:
    """The distance between the limits, in scales."""
    return (stage.high - stage.low) / stage.scale


def _inside(stage: BoundedLaplace, value: Number) -> Number:
    """How many scales a value, moved between the limits, is above the lower one."""
    return (minimum(stage.high, maximum(stage.low, value)) - stage.low) / stage.scale


@profile_of.register(BoundedLaplace)
def bounded_profile(stage: BoundedLaplace, around: Surroundings) -> PrivacyProfile:
    """Bounds for all pairs of a region."""
    outputs = around.outputs
    region = outputs.region
    inner = region.one_copy
    times = region.copies
    moving = isinstance(inner, SensitivityBall | Rounded)
    uppers = _of_answers(stage, inner, times) if moving else _of_limits(stage, inner, times)
    pairs = _real_pairs(stage, inner) if outputs.exact else around.pushed
    if outputs.exact:
        pairs = [region.repeat(pair) for pair in pairs]
    bounds = [(pair, pair_bound(stage, pair)) for pair in pairs] if around.shown else []
    bounds = [(pair, bound) for pair, bound in bounds if bound.losses[0].components]
    candidates = [Candidate(pair, bound if _evenly(bound) else _sides(stage, pair)) for pair, bound in bounds]
    largest, worst = max(((b.pure, p) for p, b in bounds), key=lambda one: one[0].a, default=(None, None))
    theorems = (Theorem.DIAMETERS, _THEOREM)
    return PrivacyProfile(tuple(candidates), tuple(uppers), theorems, largest, worst, region=region)


@reason.register(BoundedLaplace)
def _(stage: BoundedLaplace, region: Region, profile: PrivacyProfile) -> str:
    return (
        f"If outputs are kept between {written(stage.low)} and {written(stage.high)} the loss exceeds the "
        "distance divided by the scale, because the probability of landing there depends on the input"
    )


@least_loss.register(BoundedLaplace)
def _(stage: BoundedLaplace, pair: Pair) -> Number:
    return pair_bound(stage, pair).pure


def _evenly(bound: PairBound) -> bool:
    """Whether one coordinate differs, or the loss of each is the same in both directions."""
    there, back = (loss.components for loss in bound.losses)
    if sum(count for _, count in there) == 1:
        return True
    return all(_edges_meet(first, second) for (first, _), (second, _) in zip(there, back, strict=True))


def _edges_meet(first: object, second: object) -> bool:
    assert isinstance(first, BoundedLaplaceLoss)
    assert isinstance(second, BoundedLaplaceLoss)
    return bool(abs(first.edge - second.edge).b <= real("1e-40"))


def _sides(stage: BoundedLaplace, pair: Pair) -> PairBound:
    """For coordinates that differ in their own ways: on which side of the middle of its two values each output lies."""
    ways = []
    for first, second in (("x", "y"), ("y", "x")):
        parts = []
        for block in pair.blocks:
            x, y = (_inside(stage, getattr(block, side)) for side in (first, second))
            if not block.same and abs(y - x).b > 0:
                middle_of_both = real(((x + y) / 2).mid)
                p, q = (_above(value, middle_of_both, stage_width(stage)) for value in (x, y))
                parts.append((AtomLoss.of_bits(p, q), block.count))
        ways.append(PrivacyLoss(tuple(parts)))
    return PairBound(tuple(ways), _THEOREM)


def _above(value: Number, threshold: Number, width: Number) -> Number:
    """P(output > threshold), all measured from the lower limit in scales."""

    def tail(distance: Number) -> Number:
        less = exp(-abs(distance)) / 2
        return less if distance.a >= 0 else 1 - less if distance.b <= 0 else between(less, 1 - less)

    top = tail(width - value)
    return minimum(ONE, maximum(ZERO, (tail(threshold - value) - top) / (tail(-value) - top)))


def _limits(stage: BoundedLaplace, region: Region) -> list[tuple[Number, Number, int]]:
    """The limits between which coordinates lie, and how many of them can differ between neighbors."""
    if region.all_vectors:
        return [(stage.low, stage.high, region.dim)]
    if isinstance(region, Box):
        return list(region.sides)
    if isinstance(region, Rows):
        return [(*(region.limits or (stage.low, stage.high)), 1)]
    if region.unit:
        return [(ZERO, ONE, round(middle(region.diameter(1))))]
    limit = region.largest_norm(INF)
    return [(stage.low, stage.high, region.dim)] if limit == INF else [(-real(limit), real(limit), region.dim)]


def _of_limits(stage: BoundedLaplace, region: Region, times: int) -> Sequence[ProfileBound]:
    """Coordinates between limits: the pair of limits is the worst in each order. Point 4."""
    sides = [(low, high, count * times) for low, high, count in _limits(stage, region) if count]
    differing = [side for side in sides if (_inside(stage, side[1]) - _inside(stage, side[0])).b > 0]
    if not differing:
        return [PureBound(ZERO, _THEOREM)]
    even = [_even_loss(stage, low, high) for low, high, _ in differing]
    if all(loss is not None for loss in even):
        parts = [(loss, count) for loss, (_, _, count) in zip(even, differing, strict=True) if loss is not None]
        return [PairBound((PrivacyLoss(tuple(parts)),), _THEOREM)]
    bounds = [pair_bound(stage, Pair((Block(low, high, 1),))) for low, high, _ in differing]
    if [count for _, _, count in differing] == [1]:
        return bounds
    return [PureBound(sum((b.pure * n for b, (_, _, n) in zip(bounds, differing, strict=True)), ZERO), _THEOREM)]


def _even_loss(stage: BoundedLaplace, low: Number, high: Number) -> BoundedLaplaceLoss | None:
    """The loss of a pair of limits centered between the mechanism's own, so that both directions are equal."""
    first, second = (minimum(stage.high, maximum(stage.low, end)) for end in (low, high))
    below, above = (first - stage.low) / stage.scale, (stage.high - second) / stage.scale
    if abs(below - above).b > real("1e-40"):
        return None
    edge = real([min(below.a, above.a), max(below.b, above.b)])  # valid for either direction
    return BoundedLaplaceLoss(maximum(ZERO, edge), (second - first) / stage.scale, stage_width(stage))


def _of_answers(stage: BoundedLaplace, region: Region, times: int) -> Sequence[ProfileBound]:
    """A query's answers, which may lie anywhere: pure loss is largest at a limit. Points 3 and 5."""
    width, count = stage_width(stage), region.dim * times
    shift = minimum(width, real(region.diameter(INF).b) / stage.scale)
    one = SlidingBound(shift, width)
    if count == 1:
        return [one]
    rise = log(_twice(minimum(shift, width / 2), width) / _twice(ZERO, width))
    total = real(region.diameter(1).b) * times / stage.scale + count * rise
    return [PureBound(minimum(one.pure * count, total), _THEOREM)]


def _real_pairs(stage: BoundedLaplace, region: Region) -> list[Pair]:
    """Pairs that neighbors can have: limits, or answers at and next to a limit."""
    if region.all_vectors:
        return [Pair((Block(stage.low, stage.high, region.dim),))]
    if isinstance(region, Rows) and region.limits is None:
        return [Pair((Block(stage.low, stage.high, 1), *_rest(stage.low, region.dim - 1)))]
    if not region.by_distance:
        return [] if isinstance(region, Rounded) else [region.farthest(q) for q in (1.0, 2.0)][: 1 + (region.dim > 1)]
    farthest = region.farthest(1)
    shift = abs(farthest.blocks[0].gap)
    room = stage.high - stage.low - shift
    if room.a <= 0:
        return [_at(stage.low + room / 2, farthest)]
    far = middle(room / stage.scale) / 2
    places = [0.0, *np.geomspace(min(1e-3, far / 8), far, 12 if region.dim == 1 else 2).tolist()]
    return [_at(stage.low + minimum(room / 2, number(place) * stage.scale), farthest) for place in places]


def _at(start: Number, pair: Pair) -> Pair:
    """A pair of answers whose smaller values are all equal."""
    return Pair(tuple(Block(start, start if b.same else start + abs(b.gap), b.count) for b in pair.blocks))


def _rest(value: Number, count: int) -> tuple[Block, ...]:
    return (Block(value, value, count),) if count else ()
