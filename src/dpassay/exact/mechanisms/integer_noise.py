"""Bounds for discrete noise: docs/proofs/discrete-laplace.md and docs/proofs/discrete-gaussian.md.

For numbers that are not known to be integers, nothing is known to be hidden.
"""

import math
from collections.abc import Iterable
from dataclasses import replace

from dpassay.core.numbers import INFINITY, ONE, ZERO, Number, exp, log, real, up
from dpassay.core.theorems import Theorem
from dpassay.exact.explanation import how_far, who
from dpassay.exact.mechanisms.questions import Surroundings, event, least_loss, loss_far_out, profile_of, reason
from dpassay.exact.pld.loss_components import AtomLoss
from dpassay.exact.pld.noises.integer import surely_broken, whole_number
from dpassay.exact.pld.privacy_loss import PrivacyLoss
from dpassay.exact.profiles.bounds import PairBound, ProfileBound, PureBound, ZcdpBound
from dpassay.exact.profiles.profile import Candidate, PrivacyProfile
from dpassay.exact.witness import BEYOND_FIRST, IMPOSSIBLE, Witness, WorstPair
from dpassay.pipeline.discrete_noise import DiscreteGaussian, DiscreteLaplace, DiscreteNoise
from dpassay.pipeline.distributions import Noise
from dpassay.pipeline.regions import (
    Ball,
    Block,
    Box,
    Counted,
    Finite,
    Intersection,
    MinMax,
    Pair,
    Region,
    Rounded,
    Rows,
    SensitivityBall,
)

THEOREMS: dict[type[DiscreteNoise], Theorem] = {
    DiscreteLaplace: Theorem.DISCRETE_LAPLACE,
    DiscreteGaussian: Theorem.DISCRETE_GAUSSIAN,
}
_FARTHEST = 10**6  # a distance beyond which the exact loss of one coordinate is not computed


def whole_pairs(noise: DiscreteNoise, region: Region) -> tuple[list[Pair], bool]:
    """Pairs of integer vectors to examine, and whether one of them dominates all others at every ε."""
    if region.one_copy is not region:
        pairs, known = whole_pairs(noise, region.one_copy)
        return [region.repeat(pair) for pair in pairs], known
    if isinstance(region, Rounded):
        alone = region.p == float("inf") or region.dim == 1
        one_coordinate = isinstance(region, Counted) and region.p == 1
        few = isinstance(region, Counted) and len(region.pairs()) == 1 and region.p == 2
        return region.pairs(), region.complete and (alone or one_coordinate or few)
    if isinstance(region, Finite):
        points = region.points
        if len(points) > 24:
            return [region.farthest(q) for q in (1.0, 2.0)], False
        return [Pair.of(x, y) for i, x in enumerate(points) for y in points[:i]] or [
            Pair.of(points[0], points[0])
        ], True
    # Integers this near in l1 differ most in one coordinate, docs/proofs/discrete-gaussian.md, point 6.
    return [region.farthest(1)], not isinstance(region, SensitivityBall) or region.p == 1


def broken_pair(region: Region) -> Pair | None:
    """Two vectors of a region with some coordinates that do not differ by an integer, if easily found."""
    inner = region.one_copy
    pairs = [inner.farthest(q) for q in (1.0, 2.0)]
    if isinstance(inner, Ball | Box | Intersection | Rows | SensitivityBall):  # convex
        pairs.append(_half_apart(pairs[0]))
    if isinstance(inner, MinMax) and inner.dim > 2:
        ends = Block(ZERO, ZERO, 1), Block(ONE, ONE, 1)
        pairs.append(Pair((*ends, Block(ONE / 2, ZERO, inner.dim - 2))))
    found = next((pair for pair in pairs if any(surely_broken(block.gap) for block in pair.blocks)), None)
    return None if found is None else region.repeat(found)


def _half_apart(pair: Pair) -> Pair:
    """The first vector, and one on the way to the second, such that a differing coordinate differs by 1/2."""
    sizes = [abs(block.gap) for block in pair.blocks if not block.same]
    if not sizes or sizes[0].a < ONE / 2:
        return pair
    share = ONE / 2 / sizes[0]
    return Pair(tuple(replace(b, y=b.x if b.same else b.x + (b.y - b.x) * share) for b in pair.blocks))


@profile_of.register(DiscreteNoise)
def whole_profile(noise: DiscreteNoise, around: Surroundings) -> PrivacyProfile:
    """Bounds for discrete noise on a bounded region."""
    outputs, pushed, shown = around.outputs, around.pushed, around.shown
    region, theorem = outputs.region, THEOREMS[type(noise)]
    profile = PrivacyProfile((), (), theorems=(Theorem.DIAMETERS, theorem), noise=noise, region=region)
    if not outputs.whole:
        nothing_hidden = PairBound((PrivacyLoss(((AtomLoss((), ONE), 1),)),), theorem)
        # Values that are reached only in the limit may differ by non-integers before it.
        pair = broken_pair(region) if outputs.exact and shown and not outputs.far else None
        if pair is None and shown:
            pair = next((each for each in pushed if any(_clearly_broken(block.gap) for block in each.blocks)), None)
        candidates = [] if pair is None else [Candidate(pair, nothing_hidden)]
        return replace(profile, candidates=tuple(candidates), uppers=(nothing_hidden,))
    pairs, known = whole_pairs(noise, region)
    occurring = [pair for pair in (pairs if outputs.exact else pushed) if _is_whole(pair) and pair.distance(1).a > 0]
    candidates = [Candidate(pair, _pair_bound(noise, pair)) for pair in occurring] if shown else []
    uppers = list(_uppers(noise, region))
    if known and (isinstance(noise, DiscreteLaplace) or all(_differing(pair) == 1 for pair in pairs)):
        losses = [loss for pair in pairs for loss in _pair_bound(noise, pair).losses]
        uppers = [PairBound(tuple(losses), theorem), *(u for u in uppers if isinstance(u, ZcdpBound))]
    return replace(profile, candidates=tuple(candidates), uppers=tuple(uppers))


def _uppers(noise: DiscreteNoise, region: Region) -> Iterable[ProfileBound]:
    """What holds whichever pair dominates: the loss of one coordinate that moves by the whole l1 distance, and zCDP."""
    most = math.floor(up(region.diameter(1)))
    if most <= _FARTHEST:
        yield _pair_bound(noise, Pair((Block(real(most), ZERO, 1),)))
    elif isinstance(noise, DiscreteLaplace):
        yield PureBound(region.diameter(1) / noise.scale, Theorem.DISCRETE_LAPLACE)
    if isinstance(noise, DiscreteGaussian):
        yield ZcdpBound(real(region.diameter(2).b) ** 2 / (2 * noise.sigma**2), Theorem.DISCRETE_GAUSSIAN)


def _clearly_broken(gap: Number) -> bool:
    """Whether a difference of two values that were computed in doubles is certainly not an integer."""
    return surely_broken(gap + real(["-1e-6", "1e-6"])) and abs(gap).b < 1e6


def _differing(pair: Pair) -> int:
    return sum(block.count for block in pair.blocks if not block.same)


def _is_whole(pair: Pair) -> bool:
    """Whether the two vectors certainly differ by integers."""
    return all(block.same or whole_number(block.gap) is not None for block in pair.blocks)


def _pair_bound(noise: DiscreteNoise, pair: Pair) -> PairBound:
    """The noise is even, so both directions are equal. With Gaussian noise only the farthest coordinate is used."""
    if isinstance(noise, DiscreteGaussian):
        farthest = max((block.gap for block in pair.blocks), key=lambda gap: abs(gap).mid)
        return PairBound((PrivacyLoss.of_shifts(noise, [(farthest, 1)]),), Theorem.DISCRETE_GAUSSIAN)
    loss = PrivacyLoss.of_shifts(noise, [(b.gap, b.count) for b in pair.blocks])
    return PairBound((loss,), THEOREMS[type(noise)])


@reason.register(DiscreteNoise)
def _(noise: DiscreteNoise, region: Region, profile: PrivacyProfile) -> str:
    assert profile.region is not None
    values = who(region, profile)
    if profile.least_delta == 1:
        return (
            f"The noise of {noise} is a whole number, so {values} that do not differ by whole numbers have no output "
            "in common (round them first, or state counts)"
        )
    q = 1 if noise.norm == 1 else 2
    return f"The noise of {noise} must hide l{q} distances, and {values} {how_far(profile, q, 'be {} apart')}"


@event.register(DiscreteNoise)
def _(noise: DiscreteNoise, worst: WorstPair) -> Witness:
    if worst.never_alike and not worst.far:
        return Witness(worst.pair, IMPOSSIBLE, ZERO, -INFINITY)
    return event.dispatch(Noise)(noise, worst)


@event.register(DiscreteLaplace)
def _(noise: DiscreteLaplace, worst: WorstPair) -> Witness:
    """docs/proofs/discrete-laplace.md, points 1 and 2."""
    if worst.never_alike or worst.far or worst.delta.b > 0:
        return event.dispatch(DiscreteNoise)(noise, worst)
    log_p = -_differing(worst.pair) * log(1 + exp(-1 / noise.scale))
    return Witness(worst.pair, BEYOND_FIRST, log_p, log_p - worst.pair.distance(1) / noise.scale)


@least_loss.register(DiscreteNoise)
def _(noise: DiscreteNoise, pair: Pair) -> Number:
    if any(surely_broken(block.gap) for block in pair.blocks if not block.same):
        return INFINITY
    if not _is_whole(pair):
        return ZERO
    return pair.distance(1) / noise.width if noise.norm == 1 else INFINITY


@loss_far_out.register(DiscreteLaplace)
def _(noise: DiscreteLaplace, pair: Pair) -> Number:
    return pair.distance(1) / noise.scale
