"""The loss of radial noise, of density proportional to e^(-norm/scale): docs/proofs/radial.md."""

from dataclasses import replace

from dpassay.core.interval import grouped
from dpassay.core.numbers import INFINITY, ONE, Number, middle
from dpassay.core.theorems import Theorem
from dpassay.exact.mechanisms.questions import Surroundings, least_loss, profile_of, reason
from dpassay.exact.pld.loss_components import AtomLoss
from dpassay.exact.pld.privacy_loss import PrivacyLoss
from dpassay.exact.profiles.bounds import PairBound, PureBound
from dpassay.exact.profiles.profile import Candidate, PrivacyProfile
from dpassay.pipeline.regions import Pair, Region
from dpassay.pipeline.stages.noises.radial import Radial

INF = float("inf")


@profile_of.register(Radial)
def radial_profile(stage: Radial, around: Surroundings) -> PrivacyProfile:
    """Pure ε is the largest distance in the norm over the scale; at δ > 0 only what that implies is known."""
    outputs, after = around.outputs, around.after
    region = outputs.region
    # An output is visible up to a bounded cell, however far out: unchanged, or rounded. Point 3 of the page.
    told = around.kept.thresholds
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
    pairs = [region.farthest(q) for q in dict.fromkeys((stage.q, INF))] if outputs.exact else around.pushed
    if not pairs or not in_cells:
        return profile
    pair = max(pairs, key=lambda each: stage.distance(each).a)
    return replace(profile, tail_lower_bound=stage.distance(pair) / stage.scale, pair=pair)


@reason.register(Radial)
def _(stage: Radial, region: Region, profile: PrivacyProfile) -> str:
    worst = profile.dominating_pure()
    pair = profile.pair if worst is None else worst.pair
    apart = "" if pair is None else f", and two neighbors' values can be {grouped(middle(stage.distance(pair)))} apart"
    noise = f"{stage.name.capitalize()} noise of scale {grouped(middle(stage.scale))}"
    return f"{noise} must hide {stage.norm} distances{apart}"


@least_loss.register(Radial)
def _(stage: Radial, pair: Pair) -> Number:
    return stage.distance(pair) / stage.scale
