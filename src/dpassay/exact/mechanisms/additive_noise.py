"""Noise that is added to the coordinates of a vector: its bounds on a region, and what real pairs show."""

import math
from collections.abc import Iterable
from dataclasses import replace
from functools import singledispatch

from dpassay.core.functions.normal import normal_tail
from dpassay.core.interval import grouped
from dpassay.core.numbers import INFINITY, ONE, ZERO, Number, exp, log, maximum, middle, real
from dpassay.core.theorems import Theorem
from dpassay.exact.dataflow.post_processing import clamped_uppers, with_what_is_kept
from dpassay.exact.explanation import how_far, who
from dpassay.exact.mechanisms.questions import (
    Surroundings,
    event,
    least_loss,
    loss_far_out,
    metric_reason,
    profile_of,
    reason,
)
from dpassay.exact.pld.loss_components import AtomLoss
from dpassay.exact.pld.privacy_loss import PrivacyLoss
from dpassay.exact.profiles.bounds import PairBound, ProfileBound, PureBound, RenyiBound
from dpassay.exact.profiles.dominating_pairs import additive_bound, dominating_pairs, most_differing, most_spread
from dpassay.exact.profiles.levels import LevelBound
from dpassay.exact.profiles.profile import Candidate, PrivacyProfile
from dpassay.exact.profiles.saddlepoint import SaddlepointBound
from dpassay.exact.witness import ABOVE_CLAIM, BEYOND_FIRST, IMPOSSIBLE, Witness, WorstPair, loss_above, swapped
from dpassay.pipeline.distributions import Gaussian, Laplace, Mixture, Noise, OneSided
from dpassay.pipeline.regions import (
    Ball,
    Block,
    Intersection,
    Pair,
    Region,
    Rounded,
    Rows,
    SensitivityBall,
    Sphere,
    Squashed,
)
from dpassay.pipeline.stages.noises.additive import Additive

INF = float("inf")
_ABOVE_ZERO = "the first coordinate is above 0"


@profile_of.register(Additive)
def additive_profile(stage: Additive, around: Surroundings) -> PrivacyProfile:
    """Noise on the coordinates of a vector."""
    noise, outputs, pushed, kept = stage.noise, around.outputs, around.pushed, around.kept
    region, told = outputs.region, kept.thresholds
    if region.diameter(INF) == INFINITY:
        # If the vector is scaled later, one lost coordinate makes all of it lost.
        shown = told is not None and (told.unlimited or not noise.drops_values)
        profile = _unbounded(noise, region, outputs.exact and shown)
        if not noise.drops_values or outputs.exact or told is None or not told.everything:
            return profile
        return replace(profile, candidates=tuple(Candidate(pair, additive_bound(noise, pair)) for pair in pushed))
    return profile_of(noise, around)


@profile_of.register(Noise)
def _(noise: Noise, around: Surroundings) -> PrivacyProfile:
    outputs, kept = around.outputs, around.kept
    region = outputs.region
    pairs, known = dominating_pairs(noise, region) if outputs.exact else (around.pushed, False)
    bounds = [(pair, additive_bound(noise, pair)) for pair in pairs if pair.distance(INF).a > 0]
    uppers = list(_uppers(noise, region, [bound for _, bound in bounds] if known else []))
    profile = PrivacyProfile((), tuple(uppers), theorems=(Theorem.DIAMETERS,), noise=noise, region=region)
    if around.shown:
        return replace(profile, candidates=tuple(Candidate(pair, bound) for pair, bound in bounds))
    if not noise.known_tails:
        return replace(profile, theorems=(Theorem.DIAMETERS, Theorem.POST_PROCESSING))
    profile = replace(profile, uppers=(*uppers, *clamped_uppers(noise, region, kept.passed)))
    return with_what_is_kept(profile, noise, bounds, kept)


def _unbounded(noise: Noise, region: Region, known: bool) -> PrivacyProfile:
    """Noise on unbounded values hides nothing, except in coordinates that are lost."""
    lost = noise.lost if noise.drops_values else ZERO
    pair, theorem, count = region.farthest(1), Theorem.UNBOUNDED, 1
    if noise.drops_values:
        # So far apart that the overlap of the noises is zero to 50 digits.
        size = maximum(ONE, *(200 * each.width for _, each in noise.summands))
        theorem, count = Theorem.MIXTURE, most_differing(region)
        rest = (Block(ZERO, ZERO, region.dim - count),) if count < region.dim else ()
        pair = Pair((Block(ZERO, size, count), *rest))
    component = AtomLoss(((ZERO, lost),) if lost.b > 0 else (), 1 - lost)
    bound = PairBound((PrivacyLoss(((component, count),)),), theorem)
    candidates = (Candidate(pair, bound),) if known else ()
    return PrivacyProfile(candidates, (bound,), theorems=(theorem,), noise=noise)


def additive_uppers(noise: Noise, region: Region) -> list[ProfileBound]:
    """All upper bounds on the loss of additive noise on a region."""
    pairs, known = dominating_pairs(noise, region)
    return list(_uppers(noise, region, [additive_bound(noise, pair) for pair in pairs] if known else []))


def _uppers(noise: Noise, region: Region, dominating: list[PairBound]) -> Iterable[ProfileBound]:
    """Bounds that hold for every pair of the region; if it is known which pairs dominate all others, their loss."""
    if dominating:
        theorem = Theorem.GAUSSIAN if isinstance(noise, Gaussian) else Theorem.WORST_SHIFT
        yield PairBound(tuple(loss for bound in dominating for loss in bound.losses), theorem)
    yield from _uppers_by_size(noise, region, bool(dominating))


@singledispatch
def _uppers_by_size(noise: Noise, region: Region, known: bool) -> Iterable[ProfileBound]:
    """Bounds that follow from how wide a region is; `known`: the loss of its dominating pairs is another one."""
    return ()


@_uppers_by_size.register(Gaussian)
def _(noise: Gaussian, region: Region, known: bool) -> Iterable[ProfileBound]:
    yield additive_bound(noise, Pair((Block(real(region.diameter(2).b), ZERO, 1),)))


@_uppers_by_size.register(OneSided)
def _(noise: OneSided, region: Region, known: bool) -> Iterable[ProfileBound]:
    yield additive_bound(noise, Pair((Block(ZERO, region.diameter(1), 1),)))


@_uppers_by_size.register(Laplace)
def _(noise: Laplace, region: Region, known: bool) -> Iterable[ProfileBound]:
    yield PureBound(region.diameter(1) / noise.scale, Theorem.LAPLACE)
    yield from _renyi(noise, region)
    if not known:
        sane = [b for b in _renyi(noise, region) if 1e-9 < b.norm.mid < 1e9]  # where doubles integrate well
        yield from (SaddlepointBound(b.norm, b.p, b.dim) for b in sane)
        levels = (LevelBound(b.norm, b.p, b.dim) for b in sane)
        yield from (bound for bound in levels if bound.is_useful)


@_uppers_by_size.register(Mixture)
def _(noise: Mixture, region: Region, known: bool) -> Iterable[ProfileBound]:
    yield PureBound(_mixture_pure(noise, region.diameter(1)), Theorem.MIXTURE)
    if noise.one_sided:
        yield _overlap(noise, region)


def _overlap(noise: Mixture, region: Region) -> PairBound:
    """What two distributions share if every coordinate differs by the most: docs/proofs/mixture.md, points 6, 7."""
    base = region.one_copy
    even = isinstance(base, Ball | SensitivityBall | Sphere | Intersection | Squashed)
    gap = most_spread(region).distance(INF) if even else region.diameter(INF)
    alike = noise.lost
    for weight, each in noise.parts:
        alike += weight * exp(-gap / each.width)
    count = most_differing(region)
    components = ((AtomLoss(((ZERO, alike),), 1 - alike), count),) if count else ()
    return PairBound((PrivacyLoss(components),), Theorem.MIXTURE)


def _mixture_pure(noise: Mixture, distance: Number) -> Number:
    scales = [each.scale for _, each in noise.parts if isinstance(each, Laplace)]
    if len(scales) < len(noise.parts) or noise.atom_weight.b > 0:
        return INFINITY
    return maximum(ZERO, *(distance / scale for scale in scales))


def _renyi(noise: Laplace, region: Region) -> Iterable[RenyiBound]:
    if isinstance(region, Intersection):
        yield from _renyi(noise, region.first)
        yield from _renyi(noise, region.second)
        return
    base = region.one_copy
    kinds = Ball | SensitivityBall | Sphere | Rows | Squashed | Rounded
    p = max(2.0, getattr(base, "p", 2.0) if isinstance(base, kinds) else INF)  # a smaller p bounds the l2 norm too
    shift = region.diameter(p)
    if not math.isinf(float(shift.b)):
        yield RenyiBound(shift / noise.scale, p, region.dim)


@reason.register(Additive)
def _(stage: Additive, region: Region, profile: PrivacyProfile) -> str:
    return reason(stage.noise, region, profile)


@reason.register(Noise)
def _(noise: Noise, region: Region, profile: PrivacyProfile) -> str:
    if profile.least_delta > 0:
        return "Some outputs are possible for one input and impossible for another"
    return "Some outputs are more likely for one input than for another by a larger factor than claimed"


@reason.register(Gaussian)
def _(noise: Gaussian, region: Region, profile: PrivacyProfile) -> str:
    return f"Before Gaussian noise {who(region, profile)} {how_far(profile, 2, 'be {} apart in l2')}"


@reason.register(Laplace)
def _(noise: Laplace, region: Region, profile: PrivacyProfile) -> str:
    values = f"{who(region, profile)} {how_far(profile, 1, 'be {} apart in l1')}"
    return f"Laplace noise of scale {grouped(middle(noise.scale))} must hide l1 distances, and {values}"


@reason.register(OneSided)
def _(noise: OneSided, region: Region, profile: PrivacyProfile) -> str:
    return "The noise is never negative, so an output below the input's value is impossible"


@reason.register(Mixture)
def _(noise: Mixture, region: Region, profile: PrivacyProfile) -> str:
    if not noise.parts:
        return f"With probability {noise.atom:.4g} a coordinate is released as it is"
    return reason.dispatch(OneSided if noise.one_sided else Noise)(noise, region, profile)


@metric_reason.register(Gaussian)
def _(noise: Gaussian, metric: str) -> str:
    return "The loss of Gaussian noise is unbounded, however close two inputs are"


@event.register(Noise)
def _(noise: Noise, worst: WorstPair) -> Witness:
    return Witness(worst.far_apart(noise.width)[0]) if worst.far else worst.without_event


@event.register(Laplace)
def _(noise: Laplace, worst: WorstPair) -> Witness:
    if worst.far:
        far, size = worst.far_apart(noise.scale)
        tail = exp(-size / noise.scale) / 2
        return Witness(far, _ABOVE_ZERO, log(1 - tail), log(tail))
    if not worst.delta == 0:
        return loss_above(worst.bound.losses[0], worst.pair, worst.before_dropout)
    # docs/proofs/laplace.md: each differing coordinate is at or beyond the first value, away from the second.
    count = sum(block.count for block in worst.pair.blocks if not block.same)
    log_p = -count * log(real(2))
    return Witness(worst.pair, BEYOND_FIRST, log_p, log_p - worst.pair.distance(1) / noise.scale)


@event.register(Gaussian)
def _(noise: Gaussian, worst: WorstPair) -> Witness:
    if worst.far:
        far, size = worst.far_apart(noise.sigma)
        log_tail = _log_normal_tail(size / noise.sigma)
        return Witness(far, _ABOVE_ZERO, log(1 - exp(log_tail)), log_tail)
    mean = worst.pair.distance(2) / noise.sigma
    # At δ = 0 any claim fails far enough out.
    threshold = worst.before_dropout + (1 if worst.delta == 0 else 0)
    near, far_out = threshold / mean - mean / 2, threshold / mean + mean / 2
    return Witness(worst.pair, ABOVE_CLAIM, _log_normal_tail(near), _log_normal_tail(far_out))


@event.register(OneSided)
def _(noise: OneSided, worst: WorstPair) -> Witness:
    if worst.far:
        return event.dispatch(Noise)(noise, worst)
    rises = sum(float(b.gap.mid) * b.count for b in worst.pair.blocks) > 0
    lower = worst.pair if rises else swapped(worst.pair)
    rise = sum((maximum(ZERO, b.gap) * b.count for b in lower.blocks), ZERO)
    name = "some coordinate lies below the second value, which the second value cannot give"
    return Witness(lower, name, log(1 - exp(-rise / noise.scale)), -INFINITY)


@event.register(Mixture)
def _(noise: Mixture, worst: WorstPair) -> Witness:
    losses = worst.bound.losses
    larger = max(losses, key=lambda loss: loss.infinite.a)
    if worst.far or not noise.one_sided or larger.infinite.a <= 0:
        return event.dispatch(Noise)(noise, worst)
    ordered = worst.pair if larger is losses[0] else swapped(worst.pair)
    return Witness(ordered, IMPOSSIBLE, log(larger.infinite), -INFINITY)


def _log_normal_tail(z: Number) -> Number:
    """ln P(N(0,1) > z)."""
    return log(normal_tail(z)) if z.mid > 0 else log(1 - normal_tail(-z))


@loss_far_out.register(Gaussian)
def _(noise: Gaussian, pair: Pair) -> Number:
    return INFINITY


@loss_far_out.register(Laplace)
@least_loss.register(Laplace)
def _(noise: Laplace, pair: Pair) -> Number:
    return pair.distance(1) / noise.scale


@least_loss.register(Gaussian)
@least_loss.register(OneSided)
def _(noise: Gaussian | OneSided, pair: Pair) -> Number:
    return INFINITY
