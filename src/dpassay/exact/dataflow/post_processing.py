"""How much of the loss of Laplace or Gaussian noise remains after later stages.

docs/proofs/post-processing.md, points 3 to 8.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from dpassay.core.functions.normal import normal_tail
from dpassay.core.neighbours import Neighbours
from dpassay.core.numbers import INFINITY, ONE, ZERO, Number, between, exactly, exp, log, maximum, minimum, real
from dpassay.core.theorems import Theorem
from dpassay.exact.dataflow.record_sums import adds_a_record, can_lie_around_zero, sums_records
from dpassay.exact.pld.loss_components import AtomLoss
from dpassay.exact.pld.privacy_loss import PrivacyLoss
from dpassay.exact.profiles.bounds import CurveBound, PairBound, ProfileBound, PureBound
from dpassay.exact.profiles.profile import Candidate, PrivacyProfile
from dpassay.pipeline.distributions import Gaussian, Noise
from dpassay.pipeline.pipeline import Pipeline
from dpassay.pipeline.regions import Block, Box, Pair, Region
from dpassay.pipeline.stages.base import Stage
from dpassay.pipeline.stages.bounds.clamp import Clamp
from dpassay.pipeline.stages.bounds.squash import Squash
from dpassay.pipeline.stages.query import Query
from dpassay.pipeline.thresholds import Thresholds
from dpassay.values import dataclass

INF = float("inf")


@dataclass(frozen=True)
class VisibleThresholds:
    """What is left of a noisy vector at the end of a pipeline.

    `thresholds` are visible in the output. `passed` are those that clamps right after the noise let pass, all that any
    later stage can know, provided the values lie in the region before the noise, as sums of records need not.
    `anywhere` means that two neighbors' values may be shifted together to any place, `placed` that the pairs of the
    region before the noise lie where neighbors' values do.
    """

    thresholds: Thresholds | None
    passed: Thresholds
    anywhere: bool
    placed: bool


def kept_after(pipeline: Pipeline, position: int, neighbours: Neighbours) -> VisibleThresholds:
    """What the stages after a noise leave of its output."""
    stages = pipeline.stages[position + 1 :]
    clamps = next((i for i, stage in enumerate(stages) if not isinstance(stage, Clamp | Squash)), len(stages))
    anywhere = position == 1 and type(pipeline.stages[0]) is Query  # counts may be shifted only by integers
    outputs = pipeline.output_regions()[position]
    placed = not adds_a_record(pipeline, position, neighbours) or can_lie_around_zero(outputs)
    summed = sums_records(pipeline, neighbours) and position <= pipeline.noise_positions[0]
    passed = None if summed else thresholds_told(stages[:clamps])
    return VisibleThresholds(thresholds_told(stages), passed or Thresholds(), anywhere, placed)


def thresholds_told(stages: Sequence[Stage]) -> Thresholds | None:
    """The thresholds of a value before some stages that are visible in their output."""
    left: Thresholds | None = Thresholds()
    for stage in reversed(stages):
        left = None if left is None else stage.thresholds_before(left)
    return left


def with_what_is_kept(
    profile: PrivacyProfile,
    noise: Noise,
    bounds: Sequence[tuple[Pair, PairBound]],
    kept: VisibleThresholds,
) -> PrivacyProfile:
    """Add the losses of real pairs that the output still reveals, if there are stages after the noise."""
    told = kept.thresholds
    profile = replace(profile, theorems=(*profile.theorems, Theorem.POST_PROCESSING))
    if told is None or not bounds or not (kept.placed or told.unlimited):
        return profile
    losses = [_pure(noise, pair, bound, kept) for pair, bound in bounds]
    worst = max(range(len(losses)), key=lambda i: losses[i].a)
    candidates = tuple(_candidate(noise, pair, bound, kept) for pair, bound in bounds) if kept.placed else ()
    return replace(profile, candidates=candidates, tail_lower_bound=maximum(*losses), pair=bounds[worst][0])


def _pure(noise: Noise, pair: Pair, bound: PairBound, kept: VisibleThresholds) -> Number:
    """The largest loss between two values, in either order, that the outermost thresholds show."""
    told = kept.thresholds
    assert told is not None
    if kept.anywhere or told.unlimited:
        return bound.pure
    ways = [[(b.x, b.y, b.count) for b in pair.blocks if not b.same]]
    ways.append([(y, x, count) for x, y, count in ways[0]])
    return maximum(*(sum((outermost_loss(noise, x, y, told) * n for x, y, n in way), ZERO) for way in ways))


def outermost_loss(noise: Noise, x: Number, y: Number, told: Thresholds) -> Number:
    """ln P(E) − ln Q(E), E the values beyond the outermost threshold on the side of x away from y.

    >>> from dpassay.core.numbers import middle, number
    >>> from dpassay.pipeline.distributions import Laplace
    >>> told = Thresholds(number(0), number(10))
    >>> round(middle(outermost_loss(Laplace(1), number(1), number(-1), told)), 9)
    2.0
    """
    upwards = (x - y).mid > 0
    limit = told.high if upwards else told.low
    if abs(limit).b == INFINITY:
        return abs(x - y) / noise.width if noise.flat_tails else INFINITY
    beyond = [(limit - value) if upwards else (value - limit) for value in (x, y)]
    return log_tail(noise, beyond[0]) - log_tail(noise, beyond[1])


def log_tail(noise: Noise, distance: Number) -> Number:
    """ln P(noise > distance), which decreases."""
    return between(*(_log_tail_at(noise, real(end)) for end in (distance.b, distance.a)))


def _log_tail_at(noise: Noise, distance: Number) -> Number:
    if isinstance(noise, Gaussian):
        return log(normal_tail(distance / noise.sigma))
    half, scaled = log(real(2)), distance / noise.width
    return -scaled - half if distance.a >= 0 else log(1 - exp(scaled) / 2)


def shown_in_order(noise: Noise, pair: Pair, bound: PairBound, told: Thresholds) -> tuple[Number, ProfileBound]:
    """What the output shows of the first value against the second, where the two lie: ε at δ = 0, and δ(ε).

    Sampled records need one order: with the record that takes part against without it.
    """
    differing = [block for block in pair.blocks if not block.same]
    if told.unlimited:
        pure = bound.pure
    else:
        pure = sum((outermost_loss(noise, b.x, b.y, told) * b.count for b in differing), ZERO)
    if told.everything or (told.whole and noise.flat_tails and _between_limits(pair, told, False)):
        return pure, bound
    if sum(block.count for block in differing) == 1 and _tells_curve(noise, differing[0], told, in_order=True):
        return pure, CurveBound(bound)
    return pure, PairBound(_threshold_bound(noise, pair, told).losses[:1], Theorem.POST_PROCESSING)


def _candidate(noise: Noise, pair: Pair, bound: PairBound, kept: VisibleThresholds) -> Candidate:
    """The pair with as much of its loss as is known to remain at δ > 0."""
    told = kept.thresholds
    assert told is not None
    if told.whole and noise.flat_tails:
        placed = _between_limits(pair, told, kept.anywhere)
        if placed is not None:
            return Candidate(placed, bound)
    differing = [block for block in pair.blocks if not block.same]
    if sum(block.count for block in differing) == 1 and (kept.anywhere or _tells_curve(noise, differing[0], told)):
        return Candidate(pair, CurveBound(bound))
    if kept.anywhere:
        pair = _shifted(pair, told.nearest(ZERO))
    return Candidate(pair, _threshold_bound(noise, pair, told))


def _tells_curve(noise: Noise, block: Block, told: Thresholds, in_order: bool = False) -> bool:
    """Whether the best threshold for each ε ≥ 0 is visible, of x against y if in order, else in one of both orders."""
    middle = (block.x + block.y) / 2
    top, bottom = maximum(block.x, block.y), minimum(block.x, block.y)
    if not noise.flat_tails:
        top, bottom = INFINITY, -INFINITY
    upwards = told.low.b <= middle.a and top.b <= told.high.a and not (in_order and block.x.b <= block.y.a)
    downwards = told.low.b <= bottom.a and middle.b <= told.high.a and not (in_order and block.x.a >= block.y.b)
    return told.whole and bool(upwards or downwards)


def _between_limits(pair: Pair, told: Thresholds, anywhere: bool) -> Pair | None:
    """The pair if the limits are beyond both values of each coordinate that differs, shifted if that is allowed."""
    gap = pair.distance(INF)
    if anywhere and abs(told.low).b < INFINITY:
        pair = _shifted(pair, told.low + gap / 2)
    elif anywhere and abs(told.high).b < INFINITY:
        pair = _shifted(pair, told.high - gap / 2)
    if anywhere:  # the region's pairs are symmetric about 0, so everything lies between one limit and gap more
        return pair if (told.high - told.low - gap).a >= 0 else None
    ends = [end for block in pair.blocks if not block.same for end in (block.x, block.y)]
    return pair if all((end - told.low).a >= 0 and (told.high - end).a >= 0 for end in ends) else None


def _shifted(pair: Pair, by: Number) -> Pair:
    def moved(block: Block) -> Block:
        x = block.x + by
        return replace(block, x=x, y=x if block.same else block.y + by)

    return Pair(tuple(moved(block) for block in pair.blocks))


def _threshold_bound(noise: Noise, pair: Pair, told: Thresholds) -> PairBound:
    """The loss of one bit per coordinate: on which side of a threshold it lies."""
    losses = []
    for one, other in (("x", "y"), ("y", "x")):
        components = []
        for block in (b for b in pair.blocks if b.count and not b.same):
            limit = told.nearest((block.x + block.y) / 2)
            p, q = (_chances(noise, getattr(block, side) - limit) for side in (one, other))
            components.append((AtomLoss.between(p, q), block.count))
        losses.append(PrivacyLoss(tuple(components)))
    return PairBound(tuple(losses), Theorem.POST_PROCESSING)


def _chances(noise: Noise, centre: Number) -> tuple[Number, Number]:
    """P(centre + noise > 0) and its complement, neither computed as 1 minus the other."""
    if isinstance(noise, Gaussian):
        return normal_tail(-centre / noise.sigma), normal_tail(centre / noise.sigma)
    tail = exp(-abs(centre) / noise.width) / 2
    return (1 - tail, tail) if centre.mid > 0 else (tail, 1 - tail)


def clamped_uppers(noise: Noise, region: Region, passed: Thresholds) -> Iterable[ProfileBound]:
    """ε at δ = 0 if clamps right after the noise leave nothing beyond their limits."""
    sides = _sides(region)
    if passed.everything or sides is None:
        return
    largest = ZERO
    for low, high, count in sides:
        ways = [outermost_loss(noise, x, y, passed) for x, y in ((high, low), (low, high))]
        largest += maximum(ZERO, *ways) * count
    yield PureBound(largest, Theorem.POST_PROCESSING)


def _sides(region: Region) -> Sequence[tuple[Number, Number, int]] | None:
    """The limits between which coordinates differ, and how many differ; None if no limits are known."""
    if isinstance(region, Box):
        return region.sides
    if region.row_limits is not None:
        return ((*region.row_limits, 1),)
    if region.unit:
        return ((ZERO, ONE, region.dim),)
    limit = region.largest_norm(INF)
    return None if limit == INF else ((-exactly(limit), exactly(limit), region.dim),)
