"""Noise that is added to the coordinates of a vector: its bounds on a region, and what real pairs show."""

import math
from collections.abc import Iterable
from dataclasses import replace

from dpassay.core.numbers import INFINITY, ONE, ZERO, Number, exp, maximum, real
from dpassay.core.theorems import Theorem
from dpassay.exact.dataflow.post_processing import VisibleThresholds, clamped_uppers, with_what_is_kept
from dpassay.exact.mechanisms.special_noise import special_profile
from dpassay.exact.pld.loss_components import AtomLoss
from dpassay.exact.pld.privacy_loss import PrivacyLoss
from dpassay.exact.profiles.bounds import PairBound, ProfileBound, PureBound, RenyiBound
from dpassay.exact.profiles.dominating_pairs import additive_bound, dominating_pairs, most_differing, most_spread
from dpassay.exact.profiles.levels import LevelBound
from dpassay.exact.profiles.profile import Candidate, PrivacyProfile
from dpassay.exact.profiles.saddlepoint import SaddlepointBound
from dpassay.pipeline.distributions import Gaussian, Laplace, Mixture, Noise, OneSided
from dpassay.pipeline.regions import (
    Ball,
    Block,
    Intersection,
    Pair,
    Region,
    Repeated,
    Rounded,
    Rows,
    SensitivityBall,
    Sphere,
    Squashed,
)
from dpassay.pipeline.stages.base import OutputRegion
from dpassay.pipeline.stages.noises.additive import may_drop_values

INF = float("inf")


def additive_profile(
    noise: Noise, outputs: OutputRegion, pushed: list[Pair], kept: VisibleThresholds
) -> PrivacyProfile:
    """Noise on the coordinates of a vector."""
    region, told = outputs.region, kept.thresholds
    if region.diameter(INF) == INFINITY:
        # If the vector is scaled later, one lost coordinate makes all of it lost.
        shown = told is not None and (told.unlimited or not may_drop_values(noise))
        profile = _unbounded(noise, region, outputs.exact and shown)
        if not may_drop_values(noise) or outputs.exact or told is None or not told.everything:
            return profile
        return replace(profile, candidates=tuple(Candidate(pair, additive_bound(noise, pair)) for pair in pushed))
    special = special_profile(noise, outputs, pushed, told is not None and told.everything)
    if special is not None:
        return special
    pairs, known = dominating_pairs(noise, region) if outputs.exact else (pushed, False)
    bounds = [(pair, additive_bound(noise, pair)) for pair in pairs if pair.distance(INF).a > 0]
    uppers = list(_uppers(noise, region, [bound for _, bound in bounds] if known else []))
    profile = PrivacyProfile((), tuple(uppers), theorems=(Theorem.DIAMETERS,), noise=noise, region=region)
    if told is not None and told.everything:
        return replace(profile, candidates=tuple(Candidate(pair, bound) for pair, bound in bounds))
    if not isinstance(noise, Laplace | Gaussian):
        return replace(profile, theorems=(Theorem.DIAMETERS, Theorem.POST_PROCESSING))
    profile = replace(profile, uppers=(*uppers, *clamped_uppers(noise, region, kept.passed)))
    return with_what_is_kept(profile, noise, bounds, kept)


def _unbounded(noise: Noise, region: Region, known: bool) -> PrivacyProfile:
    """Noise on unbounded values hides nothing, except in coordinates that are lost."""
    lost = noise.lost if isinstance(noise, Mixture) and may_drop_values(noise) else ZERO
    pair, theorem, count = region.farthest(1), Theorem.UNBOUNDED, 1
    if isinstance(noise, Mixture) and may_drop_values(noise):
        # So far apart that the overlap of the noises is zero to 50 digits.
        size = maximum(ONE, *(200 * each.scale for _, each in noise.parts if isinstance(each, OneSided)))
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
    if isinstance(noise, Gaussian):
        yield additive_bound(noise, Pair((Block(real(region.diameter(2).b), ZERO, 1),)))
        return
    diameter = region.diameter(1)
    if isinstance(noise, OneSided):
        yield additive_bound(noise, Pair((Block(ZERO, diameter, 1),)))
    elif isinstance(noise, Laplace):
        yield PureBound(diameter / noise.scale, Theorem.LAPLACE)
        yield from _renyi(noise, region)
        if not dominating:
            sane = [b for b in _renyi(noise, region) if 1e-9 < b.norm.mid < 1e9]  # where doubles integrate well
            yield from (SaddlepointBound(b.norm, b.p, b.dim) for b in sane)
            levels = (LevelBound(b.norm, b.p, b.dim) for b in sane)
            yield from (bound for bound in levels if bound.is_useful)
    elif isinstance(noise, Mixture):
        yield PureBound(_mixture_pure(noise, diameter), Theorem.MIXTURE)
        if noise.one_sided:
            yield _overlap(noise, region)


def _overlap(noise: Mixture, region: Region) -> PairBound:
    """What two distributions share if every coordinate differs by the most: docs/proofs/mixture.md, points 6, 7."""
    base = region.region if isinstance(region, Repeated) else region
    even = isinstance(base, Ball | SensitivityBall | Sphere | Intersection | Squashed)
    gap = most_spread(region).distance(INF) if even else region.diameter(INF)
    alike = noise.lost
    for weight, each in noise.parts:
        assert isinstance(each, OneSided)
        alike += weight * exp(-gap / each.scale)
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
    base = region.region if isinstance(region, Repeated) else region
    kinds = Ball | SensitivityBall | Sphere | Rows | Squashed | Rounded
    p = max(2.0, getattr(base, "p", 2.0) if isinstance(base, kinds) else INF)  # a smaller p bounds the l2 norm too
    shift = region.diameter(p)
    if not math.isinf(float(shift.b)):
        yield RenyiBound(shift / noise.scale, p, region.dim)
