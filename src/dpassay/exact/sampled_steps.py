"""Steps with Laplace noise in which a record takes part with some probability: both orders exactly.

docs/proofs/poisson.md, points 2, 6 and 10.
"""

from dataclasses import replace

from dpassay.core.numbers import Number, minimum
from dpassay.core.theorems import Theorem
from dpassay.exact.loss_components import LaplaceLoss
from dpassay.exact.privacy_loss import PrivacyLoss
from dpassay.exact.profile import PrivacyProfile
from dpassay.exact.profile_bounds import DropoutBound, PairBound, ProfileBound
from dpassay.exact.sampled_laplace import SampledLaplaceLoss


def laplace_shift(bound: ProfileBound) -> Number | None:
    """The shift, in scales, of a bound that is the loss of Laplace noise on one coordinate."""
    if not isinstance(bound, PairBound) or len(bound.losses) != 1 or len(bound.losses[0].components) != 1:
        return None
    component, count = bound.losses[0].components[0]
    return component.shift if isinstance(component, LaplaceLoss) and count == 1 else None


def with_laplace(
    found: PrivacyProfile, one: PrivacyProfile, step: PrivacyProfile, rate: Number, count: int
) -> PrivacyProfile:
    """What is `found` for all steps of a record added or removed, made exact for Laplace noise on one coordinate.

    `one` is the profile of a step in which the record takes part, and `step` that of one in which it may: pairs of data
    sets are taken from there, and their losses must be those of the noise, of which nothing is lost.
    """

    def bound(shift: Number) -> PairBound:
        losses = (PrivacyLoss(((SampledLaplaceLoss(rate, shift, way), count),)) for way in ("remove", "add"))
        return PairBound(tuple(losses), Theorem.POISSON)

    shifts = [shift for shift in map(laplace_shift, one.uppers) if shift is not None]
    if not shifts:
        return found
    inner = [(c, c.bound.bound if isinstance(c.bound, DropoutBound) else c.bound) for c in step.candidates]
    exact = [replace(c, bound=bound(shift)) for c, own in inner if (shift := laplace_shift(own)) is not None]
    theorems = tuple(dict.fromkeys((*found.theorems, Theorem.POISSON, Theorem.LATTICE_SUMS)))
    uppers = (bound(minimum(*shifts)),)
    return replace(found, uppers=uppers, candidates=tuple(exact) or found.candidates, theorems=theorems)
