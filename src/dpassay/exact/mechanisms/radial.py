"""The loss of radial noise, of density proportional to e^(-norm/scale): docs/proofs/radial.md."""

from collections.abc import Sequence
from dataclasses import replace

from dpassay.core.numbers import INFINITY, ONE
from dpassay.core.theorems import Theorem
from dpassay.exact.dataflow.post_processing import VisibleThresholds
from dpassay.exact.pld.loss_components import AtomLoss
from dpassay.exact.pld.privacy_loss import PrivacyLoss
from dpassay.exact.profiles.bounds import PairBound, PureBound
from dpassay.exact.profiles.profile import Candidate, PrivacyProfile
from dpassay.pipeline.regions import Pair
from dpassay.pipeline.stages.base import OutputRegion, Stage
from dpassay.pipeline.stages.noises.radial import Radial

INF = float("inf")


def radial_profile(
    stage: Radial, outputs: OutputRegion, pushed: list[Pair], kept: VisibleThresholds, after: Sequence[Stage]
) -> PrivacyProfile:
    """Pure ε is the largest distance in the norm over the scale; at δ > 0 only what that implies is known.

    `pushed` are pairs that can certainly occur if the region is only an outer bound, `kept` what the
    later stages, `after`, leave of the output.
    """
    region = outputs.region
    # An output is visible up to a bounded cell, however far out: unchanged, or rounded. Point 3 of the page.
    told = kept.thresholds
    far_out = told is not None and told.unlimited  # not so after tanh and then rounding
    in_cells = far_out and all(each.keeps == "all" or each.name == "round" for each in after)
    if region.diameter(stage.q) == INFINITY:
        nothing_hidden = PairBound((PrivacyLoss(((AtomLoss((), ONE), 1),)),), Theorem.UNBOUNDED)
        known = outputs.exact and told is not None
        candidates = (Candidate(region.farthest(1), nothing_hidden),) if known else ()
        return PrivacyProfile(candidates, (nothing_hidden,), (Theorem.UNBOUNDED,))
    upper = PureBound(stage.diameter(region) / stage.scale, Theorem.RADIAL)
    profile = PrivacyProfile((), (upper,), (Theorem.DIAMETERS, Theorem.RADIAL), region=region)
    if after:
        profile = replace(profile, theorems=(*profile.theorems, Theorem.POST_PROCESSING))
    pairs = [region.farthest(q) for q in dict.fromkeys((stage.q, INF))] if outputs.exact else pushed
    if not pairs or not in_cells:
        return profile
    pair = max(pairs, key=lambda each: stage.distance(each).a)
    return replace(profile, tail_lower_bound=stage.distance(pair) / stage.scale, pair=pair)
