"""Bounds for staircase noise: docs/proofs/staircase.md. Distances are in units of the sensitivity."""

from collections.abc import Iterable

from dpassay.core.numbers import ONE, ZERO, Number, as_written, number, real
from dpassay.core.theorems import Theorem
from dpassay.exact.explanation import how_far, who
from dpassay.exact.mechanisms.questions import Surroundings, least_loss, loss_far_out, profile_of, reason
from dpassay.exact.pld.noises.staircase import MOST_STEPS, staircase_loss, steps_apart
from dpassay.exact.pld.privacy_loss import PrivacyLoss
from dpassay.exact.profiles.bounds import PairBound, ProfileBound, PureBound
from dpassay.exact.profiles.dominating_pairs import MOST_COORDINATES, dominating_pairs, most_differing
from dpassay.exact.profiles.profile import Candidate, PrivacyProfile
from dpassay.pipeline.distributions import Laplace
from dpassay.pipeline.pair import Block, Pair
from dpassay.pipeline.regions import Ball, Region, SensitivityBall
from dpassay.pipeline.staircase import Staircase

INF = float("inf")
_THEOREM = Theorem.STAIRCASE


@profile_of.register(Staircase)
def staircase_profile(noise: Staircase, around: Surroundings) -> PrivacyProfile:
    """Bounds for staircase noise on a bounded region."""
    region = around.outputs.region
    occurring: list[Pair] = around.pushed if around.shown else []
    if around.shown and around.outputs.exact:
        occurring = [*dominating_pairs(Laplace(ONE), region)[0], *_slivers(noise, region)]
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
    inner = region.one_copy
    if not isinstance(inner, Ball | SensitivityBall) or inner.p == INF or not 1 < inner.dim <= MOST_COORDINATES:
        return []
    ball = inner.ball
    p, width = number(ball.p), real((2 * ball.radius / noise.sensitivity).a)
    least = steps_apart(width) - 1
    large = real(((width + least) / 2).mid)
    small = ((width**p - large**p) / (ball.dim - 1)) ** (1 / p) / 2
    halves = [real((size * noise.sensitivity / 2).mid) for size in (large, small)]
    return [region.repeat(Pair((Block(halves[0], -halves[0], 1), Block(halves[1], -halves[1], ball.dim - 1))))]


@reason.register(Staircase)
def _(noise: Staircase, region: Region, profile: PrivacyProfile) -> str:
    assert profile.region is not None
    most, far = profile.region.diameter(1), how_far(profile, 1, "be {} apart in l1")
    if profile.shown_distance(1).a >= most.b * (1 - real("1e-40")):
        far = f"can be {as_written(most)} apart in l1"
    step = f"every {as_written(noise.sensitivity)}, or part of it, by which a coordinate moves"
    return f"The loss of staircase noise is {as_written(noise.epsilon)} for {step}, and {who(region, profile)} {far}"


@least_loss.register(Staircase)
def _(noise: Staircase, pair: Pair) -> Number:
    return noise.epsilon


@loss_far_out.register(Staircase)
def _(noise: Staircase, pair: Pair) -> Number:
    return noise.epsilon * sum(steps_apart(real(size.a)) * count for size, count in _sizes(noise, pair))
