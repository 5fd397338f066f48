"""The loss of the exponential mechanism. Proofs: docs/proofs/exponential.md and docs/proofs/bounded-range.md."""

import math
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction

from dpassay.core.interval import grouped
from dpassay.core.numbers import (
    INFINITY,
    ONE,
    ZERO,
    Number,
    down,
    exp,
    log,
    log_add,
    maximum,
    middle,
    minimum,
    number,
    real,
    sqrt,
)
from dpassay.core.theorems import Theorem
from dpassay.exact.explanation import how_far
from dpassay.exact.mechanisms.questions import (
    Surroundings,
    event,
    least_loss,
    profile_of,
    reason,
    unbounded_advice,
)
from dpassay.exact.mechanisms.top_k import top_k_profile
from dpassay.exact.pld.loss_components import AtomLoss
from dpassay.exact.pld.privacy_loss import PrivacyLoss
from dpassay.exact.profiles.bounded_range import RangeBound, largest_choice, with_range
from dpassay.exact.profiles.bounds import PairBound, ProfileBound, PureBound
from dpassay.exact.profiles.profile import Candidate, Family, PrivacyProfile
from dpassay.exact.witness import Witness, WorstPair, swapped
from dpassay.pipeline.regions import (
    Ball,
    Block,
    Box,
    Counted,
    Intersection,
    OneHot,
    Pair,
    Region,
    Rounded,
    RowBits,
    SensitivityBall,
    Sphere,
    Squashed,
)
from dpassay.pipeline.stages.exponential import Choice, Choose, Softmax

INF = float("inf")
_STEPS, _RATIO = 12, 1.6  # base points to examine, each _RATIO times nearer to the largest loss than the previous one
_SHORT, _LONG = real("1e-6"), 600.0  # ranges for which doubles can place a pair
_FAR = 60  # a score this far behind, times the rate, is practically infinitely far: e^−60 remains


@profile_of.register(Choose)
def _(stage: Choose, around: Surroundings) -> PrivacyProfile:
    return around.of_names(choose_profile(stage, around))


def choose_profile(stage: Choose, around: Surroundings) -> PrivacyProfile:
    """Scores in a region, of which perhaps only the largest are kept."""
    outputs, pushed, anywhere, kept = around.outputs, around.pushed, around.anywhere, around.scores
    region = outputs.region.one_copy
    if region.dim == 1:  # all scores are equal
        return PrivacyProfile((), (PureBound(ZERO, Theorem.EXPONENTIAL),), (Theorem.EXPONENTIAL,))
    if region.diameter(INF) == INFINITY:
        infinite = PairBound((PrivacyLoss(((AtomLoss((), ONE), 1),)),), Theorem.UNBOUNDED)
        shown = (Candidate(outputs.region.farthest(1), infinite),) if outputs.exact else ()
        return PrivacyProfile(shown, (PureBound(INFINITY, Theorem.EXPONENTIAL),), (Theorem.UNBOUNDED,))
    free = outputs.exact and anywhere and region.by_distance
    if kept is not None and region.diameter(INF).b > 0:
        # Nothing is known about others' bits, and about scores after a query only how far they move.
        known = free or (outputs.exact and not (region.by_distance or isinstance(region, RowBits)))
        return top_k_profile(stage, kept, region, region.cube_ends, score_spread(region), score_width(region), known)
    spread = stage.rate * score_spread(region)
    pairs = pushed
    if free:
        assert isinstance(region, SensitivityBall)
        pairs = _free_pairs(region, stage.rate, spread)
    elif outputs.exact and anywhere and isinstance(region, Counted) and region.limits is None:
        pairs = _count_pairs(region, stage.rate) or pushed
    elif outputs.exact and not region.by_distance:
        pairs = _region_pairs(region)
    if isinstance(region, RowBits):  # the other persons' bits are unknown
        pairs = pushed = []
    if pairs is not pushed:
        pairs = [outputs.region.repeat(pair) for pair in pairs]
    candidates = tuple(Candidate(pair, choose_bound(stage, pair)) for pair in pairs)
    pure = minimum(spread, _largest(region, stage.rate))
    ranged = with_range(spread, pure)
    if region.row_limits is not None:
        ranged = replace(ranged, least=_least_of_rows(ranged.range, region.dim))
    uppers: list[ProfileBound] = [PureBound(pure, Theorem.EXPONENTIAL), ranged]
    if outputs.exact and isinstance(region, OneHot):  # all pairs are equivalent, and so are both directions
        uppers.append(PairBound(choose_bound(stage, pairs[0]).losses[:1], Theorem.EXPONENTIAL))
    first = pairs[0] if pairs else None
    tails = spread if free else None
    family = None
    if pairs is not pushed and region is outputs.region and ranged.range.a > _SHORT:
        family = Family(candidates, lambda order: _worst_at(stage, region, ranged, order, free))
    theorems = (Theorem.EXPONENTIAL,)
    return PrivacyProfile(candidates, tuple(uppers), theorems, tail_lower_bound=tails, pair=first, family=family)


def choose_bound(stage: Choose, pair: Pair) -> PairBound:
    """The loss of the exponential mechanism between two score vectors, in both directions."""
    losses = []
    for first, second in (("x", "y"), ("y", "x")):
        scores = [[getattr(block, side) * stage.rate for block in pair.blocks] for side in (first, second)]
        totals = [_log_total(values, [block.count for block in pair.blocks]) for values in scores]
        atoms = []
        for x, y, block in zip(*scores, pair.blocks, strict=True):
            chance = exp(x - totals[0]) * block.count
            atoms.append(((ZERO if block.same else x - y) - totals[0] + totals[1], chance))
        losses.append(PrivacyLoss(((AtomLoss(tuple(atoms)), 1),)))
    return PairBound(tuple(losses), Theorem.EXPONENTIAL)


def _log_total(scores: Iterable[Number], counts: Iterable[int]) -> Number:
    total = -INFINITY
    for score, count in zip(scores, counts, strict=True):
        term = score + log(real(count))
        total = term if total == -INFINITY else log_add(total, term)
    return total


def score_spread(region: Region) -> Number:
    """The maximum of (largest − smallest coordinate of x − y): exponential.md, point 1.

    >>> from dpassay.pipeline.regions import MonotoneBall
    >>> middle(score_spread(SensitivityBall(INF, 1, dim=3))), middle(score_spread(MonotoneBall(INF, 1, dim=3)))
    (2.0, 1.0)
    """
    answers = region.region if isinstance(region, Squashed | Rounded) else region
    if answers.monotone:  # this holds for monotone functions of them too
        return region.diameter(INF)
    # Two coordinates of a vector of lq norm 1 differ by at most 2^(1 − 1/q).
    powers = {1.0: ONE, 2.0: sqrt(real(2)), INF: real(2)}
    norms = {q: region.diameter(q) * power for q, power in powers.items()}
    p = getattr(region, "p", INF)
    if p not in powers:
        norms[p] = region.diameter(p) * real(2) ** (1 - 1 / number(p))
    return minimum(*norms.values())


def score_width(region: Region) -> Number:
    """The maximum of (largest − smallest coordinate) of one vector.

    >>> middle(score_width(Box.cube(0, 3, dim=2)))
    3.0
    """
    if isinstance(region, Box):
        lows, highs, _ = zip(*region.sides, strict=True)
        return maximum(*highs) - minimum(*lows)
    if region.unit:
        return ONE
    if isinstance(region, Squashed):
        return (
            region.diameter(INF) if isinstance(region.region, Ball) else ONE * (2 if region.function == "tanh" else 1)
        )
    if isinstance(region, Ball | Sphere | Intersection):  # contains −x with every x
        return score_spread(region) / 2
    if isinstance(region, Rounded) and region.limits is not None:
        return region.limits[1] - region.limits[0]
    return INFINITY


def _largest(region: Region, rate: Number) -> Number:
    """The largest loss that the width of the region allows: exponential.md, points 2 and 5."""
    if region.row_limits is not None:
        width = exp(-rate * (region.row_limits[1] - region.row_limits[0]))
        return -log((region.dim * width) / (width + region.dim - 1))
    return largest_choice(rate * score_width(region), region.dim)


def _region_pairs(region: Region) -> list[Pair]:
    """Some outputs' scores high and the others' low, and the other way round."""
    cube = region.cube_ends
    if cube is not None:
        low, high = cube
        sizes = sorted({region.dim // 2, *(2**i for i in range(region.dim.bit_length() - 1))})
        return [Pair((Block(high, low, size), Block(low, high, region.dim - size))) for size in sizes]
    if region.row_limits is not None:
        low, high = region.row_limits
        return [Pair((Block(high, low, 1), Block(rest, rest, region.dim - 1))) for rest in (high, low)]
    pairs = [region.farthest(q) for q in (1.0, 2.0, INF)]
    if isinstance(region, Ball | Sphere):
        size = region.radius / real(2) ** (1 / number(getattr(region, "p", 2.0)))
        rest = (Block(ZERO, ZERO, region.dim - 2),) if region.dim > 2 else ()
        pairs.insert(0, Pair((Block(size, -size, 1), Block(-size, size, 1), *rest)))
    return pairs


def _free_pairs(region: SensitivityBall, rate: Number, spread: Number) -> list[Pair]:
    """One output's score rises relative to the others' as far as it may, from several base points.

    The farther it was behind them, the larger the loss, and the rarer the output.
    """
    length = middle(spread)
    gaps = (length / (2 * _RATIO**i) for i in range(_STEPS))  # to the largest loss
    behind = [length + _FAR, *(_log_odds(length - gap, length) for gap in gaps)]
    return [_free_pair(region, rate, spread, log_odds) for log_odds in behind]


def _count_pairs(region: Counted, rate: Number) -> list[Pair]:
    """One count rises relative to the others as far as it may, from base points that are integers."""
    most, n = math.floor(Fraction(down(region.region.distance))), region.dim - 1
    if most < 1:
        return []
    up, back, moving = most, 0, n
    if region.p == INF and region.dim > 1:
        back = most
    elif region.p == 2:
        square = math.floor(Fraction(down(region.region.distance**2)))
        up, back = max(((i, math.isqrt(square - i * i)) for i in range(1, most + 1)), key=sum)
        moving = 1 if back else n
    length = middle(rate) * (up + back)
    wanted = (length / 2, length * 3 / 4, length * 0.95, length - math.log1p(length) / 2, length * 0.999)
    behind = [_log_odds(loss, length) for loss in wanted if 0 < loss < length < _LONG]
    behind.append(length + _FAR)
    leads = dict.fromkeys([0, *(round((math.log(moving) - odds) / middle(rate)) for odds in behind)])
    never = min(0, *leads) - math.ceil(200 / middle(rate)) if moving < n else 0
    rest = (Block(real(never), real(never), n - moving),) if moving < n else ()
    return [Pair((Block(real(lead + up), real(lead), 1), Block(ZERO, real(back), moving), *rest)) for lead in leads]


def _log_odds(loss: float, length: float) -> float:
    """How far an output is behind the others together, if its loss is this and that of the others is `length` less."""
    return loss + math.log(-math.expm1(-loss)) - math.log(-math.expm1(loss - length))


def _free_pair(region: SensitivityBall, rate: Number, spread: Number, log_odds: float) -> Pair:
    n = region.dim - 1
    one_moves = region.monotone or region.p == 1
    if not one_moves and region.p < INF:
        n = 1  # all outputs but two stay unchanged, and are never chosen
    lead = number(math.log(n) - log_odds) / rate
    step = spread / rate
    high, low = (lead + step, ZERO) if one_moves else (lead + step / 2, -step / 2)
    blocks = [Block(high, lead, 1), Block(low, ZERO, n)]
    if n < region.dim - 1:
        never = minimum(maximum(high, low), maximum(lead, ZERO)) - 200 / rate
        blocks.append(Block(never, never, region.dim - 1 - n))
    return Pair(tuple(blocks))


def _worst_at(stage: Choose, region: Region, ranged: RangeBound, order: Number, free: bool) -> tuple[Candidate, ...]:
    """Pairs with two losses that are worst for the Rényi divergence of an order, or nearly: exponential.md, point 8."""
    length = middle(ranged.range)
    loss = middle(ranged.worst_loss(order))
    if not 0 < loss < length < _LONG:
        return ()
    pairs: list[Pair] = []
    if free:
        assert isinstance(region, SensitivityBall)
        pairs.append(_free_pair(region, stage.rate, ranged.range, _log_odds(loss, length)))
    elif region.row_limits is not None:
        low, high = region.row_limits
        for wanted in (loss, length - loss):
            ahead = _log_odds(wanted, length) - math.log(region.dim - 1)
            rest = minimum(high, maximum(low, low + number(ahead) / stage.rate))
            pairs.append(Pair((Block(high, low, 1), Block(rest, rest, region.dim - 1))))
    elif (cube := region.cube_ends) is not None:
        low, high = cube
        width, c = math.exp(length / 2), math.exp(loss - length / 2)
        split = region.dim * (width - c) / ((c + 1) * (width - 1))
        for size in {min(region.dim - 1, max(1, math.floor(split) + i)) for i in (0, 1)}:
            pairs.append(Pair((Block(high, low, size), Block(low, high, region.dim - size))))
    return tuple(Candidate(pair, choose_bound(stage, pair)) for pair in pairs)


def _least_of_rows(spread: Number, count: int) -> Number:
    """The smallest loss of the output whose score rises from the lowest to the highest, if others are lowest."""
    return log(real(count) / (1 + (count - 1) * exp(-spread)))


@unbounded_advice.register(Choose)
def _(stage: Choose) -> str:
    return "Bound the scores first, for example clamp(-C, C) | exponential(eps/(4*C))."


@unbounded_advice.register(Softmax)
def _(stage: Softmax) -> str:
    return "Bound the scores first, for example clamp(-C, C) | softmax(4*C/eps)."


@reason.register(Choice)
def _(stage: Choice, region: Region, profile: PrivacyProfile) -> str:
    given = "scale" if stage.name == "noisymax" else "rate"
    return f"Two neighbors' scores {how_far(profile, INF, 'differ by {}', region)} at the given {given}"


@reason.register(Softmax)
def _(stage: Softmax, region: Region, profile: PrivacyProfile) -> str:
    logits = how_far(profile, INF, "differ by {}", region)
    return f"Two neighbors' logits {logits} at temperature {grouped(middle(stage.temperature))}"


@event.register(Choice)
def _(stage: Choice, worst: WorstPair) -> Witness:
    pair, bound = worst.pair, worst.bound
    if bound.theorem == Theorem.UNBOUNDED:
        return worst.without_event
    if bound.theorem == Theorem.TOP_K:
        larger = max(bound.losses, key=lambda loss: loss.infinite.a)
        if larger.infinite.a <= 0:
            return worst.without_event
        ordered = pair if larger is bound.losses[0] else swapped(pair)
        name = "an output is chosen that is not among the second value's top k"
        return Witness(ordered, name, log(minimum(ONE, larger.infinite)), -INFINITY)
    component, _ = bound.losses[0].components[0]
    loss, chance = component.atoms[0]  # type: ignore[attr-defined]
    count = pair.blocks[0].count
    one_of = f"one of the {count} outputs with the first one's scores is chosen"
    return Witness(pair, "the first output is chosen" if count == 1 else one_of, log(chance), log(chance) - loss)


@least_loss.register(Choose)
def _(stage: Choose, pair: Pair) -> Number:
    return choose_bound(stage, pair).pure
