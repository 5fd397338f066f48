"""Bounds for staircase noise: docs/proofs/staircase.md. Distances are in units of the sensitivity."""

from collections.abc import Iterable

from dpassay.core.numbers import ONE, ZERO, Number, number, real
from dpassay.core.theorems import Theorem
from dpassay.exact.pld.noises.staircase import MOST_STEPS, staircase_loss, steps_apart
from dpassay.exact.pld.privacy_loss import PrivacyLoss
from dpassay.exact.profiles.bounds import PairBound, ProfileBound, PureBound
from dpassay.exact.profiles.dominating_pairs import MOST_COORDINATES, dominating_pairs, most_differing
from dpassay.exact.profiles.profile import Candidate, PrivacyProfile
from dpassay.pipeline.distributions import Laplace
from dpassay.pipeline.pair import Block, Pair
from dpassay.pipeline.regions import Ball, Region, Repeated, SensitivityBall
from dpassay.pipeline.stages.base import OutputRegion
from dpassay.pipeline.staircase import Staircase

INF = float("inf")
_THEOREM = Theorem.STAIRCASE


def staircase_profile(noise: Staircase, outputs: OutputRegion, pushed: list[Pair], shown: bool) -> PrivacyProfile:
    """Bounds for staircase noise on a bounded region; `shown`: the whole output is visible."""
    region = outputs.region
    occurring: list[Pair] = []
    if shown:
        occurring = [*dominating_pairs(Laplace(ONE), region)[0], *_slivers(noise, region)] if outputs.exact else pushed
    occurring = [pair for pair in occurring if pair.distance(1).a > 0]
    candidates = tuple(Candidate(pair, _pair_bound(noise, pair)) for pair in occurring)
    sums = [sum((steps_apart(real(size.a)) * count for size, count in _sizes(noise, pair)), 0) for pair in occurring]
    return PrivacyProfile(
        candidates,
        tuple(_uppers(noise, region)),
        theorems=(Theorem.DIAMETERS, _THEOREM),
        tail_lower_bound=noise.epsilon * max(sums) if sums else None,
        noise=noise,
        region=region,
    )


def _uppers(noise: Staircase, region: Region) -> Iterable[ProfileBound]:
    """Moving any coordinate farther increases the loss, so each is moved as far as one can be."""
    farthest, whole = (real((region.diameter(q) / noise.sensitivity).b) for q in (INF, 1.0))
    count = most_differing(region)
    if farthest.b <= 0 or not count:
        yield PureBound(ZERO, _THEOREM)
        return
    steps = steps_apart(farthest)
    yield PureBound(noise.epsilon * min(count * steps, count - 1 + steps_apart(whole)), _THEOREM)
    if steps <= MOST_STEPS and count <= MOST_COORDINATES:
        yield PairBound((PrivacyLoss(((staircase_loss(noise, farthest), count),)),), _THEOREM)


def _pair_bound(noise: Staircase, pair: Pair) -> PairBound:
    """The noise is even, so both directions are equal. For very large losses only the farthest coordinate is used."""
    sizes = [(real(size.a), count) for size, count in _sizes(noise, pair)]
    if any(steps_apart(size) > MOST_STEPS for size, _ in sizes):
        sizes = [(max((size for size, _ in sizes), key=lambda size: size.a), 1)]
    return PairBound((PrivacyLoss(tuple((staircase_loss(noise, size), count) for size, count in sizes)),), _THEOREM)


def _sizes(noise: Staircase, pair: Pair) -> list[tuple[Number, int]]:
    """By how many sensitivities coordinates differ, and how many differ so."""
    sizes = [(abs(block.gap) / noise.sensitivity, block.count) for block in pair.blocks if not block.same]
    return [(size, count) for size, count in sizes if count and size.a > 0]


def _slivers(noise: Staircase, region: Region) -> list[Pair]:
    """A pair of a ball that differs in all coordinates, in all but one only slightly: each of these adds a step."""
    if isinstance(region, Repeated):
        return [region.repeat(pair) for pair in _slivers(noise, region.region)]
    ball = region.ball if isinstance(region, SensitivityBall) else region
    if not isinstance(ball, Ball) or ball.p == INF or not 1 < ball.dim <= MOST_COORDINATES:
        return []
    p, width = number(ball.p), real((2 * ball.radius / noise.sensitivity).a)
    least = steps_apart(width) - 1
    large = real(((width + least) / 2).mid)
    small = ((width**p - large**p) / (ball.dim - 1)) ** (1 / p) / 2
    halves = [real((size * noise.sensitivity / 2).mid) for size in (large, small)]
    return [Pair((Block(halves[0], -halves[0], 1), Block(halves[1], -halves[1], ball.dim - 1)))]
