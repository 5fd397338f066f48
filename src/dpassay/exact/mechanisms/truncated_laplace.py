"""Bounds for truncated Laplace noise: docs/proofs/truncated-laplace.md."""

from dpassay.core.numbers import INFINITY, ZERO, Number, maximum, real
from dpassay.core.theorems import Theorem
from dpassay.exact.mechanisms.questions import Surroundings, least_loss, loss_far_out, profile_of, reason
from dpassay.exact.pld.loss_components import AtomLoss
from dpassay.exact.pld.noises.truncated_laplace import TruncatedLaplaceLoss, truncated_loss
from dpassay.exact.pld.privacy_loss import PrivacyLoss
from dpassay.exact.profiles.bounds import PairBound
from dpassay.exact.profiles.dominating_pairs import dominating_pairs, most_differing
from dpassay.exact.profiles.profile import Candidate, PrivacyProfile
from dpassay.pipeline.distributions import Laplace
from dpassay.pipeline.pair import Block, Pair
from dpassay.pipeline.regions import Region
from dpassay.pipeline.truncated_laplace import TruncatedLaplace

_THEOREM = Theorem.TRUNCATED_LAPLACE


@profile_of.register(TruncatedLaplace)
def truncated_profile(noise: TruncatedLaplace, around: Surroundings) -> PrivacyProfile:
    """The noise is log-concave and even, so the worst shifts of Laplace noise are also the worst here."""
    outputs, region = around.outputs, around.outputs.region
    pairs, known = dominating_pairs(Laplace(noise.scale), region)
    farthest = Pair((Block(real(region.diameter(float("inf")).b), ZERO, most_differing(region)),))
    above = tuple(_loss(noise, pair) for pair in (pairs if known else [farthest]))
    uppers = [PairBound(above, _THEOREM)]
    if len(above) > 1:  # one loss that dominates all, so that steps can be repeated
        uppers.append(PairBound((_coarsest(above),), _THEOREM))
    shown = (pairs if outputs.exact else around.pushed) if around.shown else []
    occurring = [pair for pair in shown if pair.distance(1).a > 0]
    candidates = [Candidate(pair, PairBound((_loss(noise, pair),), _THEOREM)) for pair in occurring]
    theorems = (Theorem.DIAMETERS, Theorem.WORST_SHIFT, _THEOREM)
    return PrivacyProfile(tuple(candidates), tuple(uppers), theorems, noise=noise, region=region)


def _coarsest(losses: tuple[PrivacyLoss, ...]) -> PrivacyLoss:
    """As often infinite as any of some losses, and otherwise as large as the largest finite value of any."""
    leak = maximum(*(loss.infinite for loss in losses))
    finite = [
        sum((c.largest * count for c, count in loss.components if isinstance(c, TruncatedLaplaceLoss)), ZERO)
        for loss in losses
    ]
    return PrivacyLoss(((AtomLoss(((maximum(*finite), 1 - leak),), leak), 1),))


def _loss(noise: TruncatedLaplace, pair: Pair) -> PrivacyLoss:
    """The loss between two vectors, the same in both orders."""
    bound = noise.bound / noise.scale
    shifts = ((abs(block.gap) / noise.scale, block.count) for block in pair.blocks if not block.same)
    return PrivacyLoss(tuple((truncated_loss(bound, s), count) for s, count in shifts if count and s.b > 0))


@reason.register(TruncatedLaplace)
def _(noise: TruncatedLaplace, region: Region, profile: PrivacyProfile) -> str:
    return "Some outputs are possible for one input and impossible for another"


@loss_far_out.register(TruncatedLaplace)
@least_loss.register(TruncatedLaplace)
def _(noise: TruncatedLaplace, pair: Pair) -> Number:
    return INFINITY
