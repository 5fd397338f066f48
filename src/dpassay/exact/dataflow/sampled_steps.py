"""Steps with Laplace noise in which a record takes part with some probability, composed exactly where a pair dominates.

docs/proofs/poisson.md, points 2, 6 and 10 to 12.
"""

from dataclasses import replace

from dpassay.core.numbers import Number, minimum, real, up
from dpassay.core.theorems import Theorem
from dpassay.exact.dataflow.data_sets import replaced
from dpassay.exact.dataflow.sampled_lowers import Drawn
from dpassay.exact.dataflow.sampled_pairs import opposite
from dpassay.exact.pld.loss_components import LaplaceLoss, LossComponent
from dpassay.exact.pld.privacy_loss import PrivacyLoss
from dpassay.exact.pld.sampled.laplace import LaplaceWay, SampledLaplaceLoss
from dpassay.exact.pld.sampled.laplace_sum import MOST_COORDINATES, SampledSumLoss
from dpassay.exact.profiles.bounds import PairBound, ProfileBound, without_dropout
from dpassay.exact.profiles.profile import Candidate, PrivacyProfile
from dpassay.pipeline.distributions import Laplace
from dpassay.pipeline.pair import Pair

FARTHEST = 50.0  # scales; losses of larger moves are too large for a lattice to add anything to what one step says


def laplace_shifts(bound: ProfileBound) -> tuple[Number, int] | None:
    """The shift, in scales, of a bound that is the loss of Laplace noise on equal coordinates, and their number."""
    if len(bound.losses) != 1 or len(bound.losses[0].components) != 1:
        return None
    component, count = bound.losses[0].components[0]
    return (component.shift, count) if isinstance(component, LaplaceLoss) else None


def laplace_shift(bound: ProfileBound) -> Number | None:
    """The shift, in scales, of a bound that is the loss of Laplace noise on one coordinate."""
    found = laplace_shifts(bound)
    return found[0] if found is not None and found[1] == 1 else None


def with_laplace(
    found: PrivacyProfile, one: PrivacyProfile, step: PrivacyProfile, rate: Number, count: int
) -> PrivacyProfile:
    """What is `found` for all steps of a record added or removed, made exact for Laplace noise on equal coordinates.

    `one` is the profile of a step in which the record takes part, and `step` that of one in which it may: pairs of data
    sets are taken from there, and their losses must be those of the noise, of which nothing is lost.
    """

    def bound(shift: Number, copies: int = 1) -> PairBound:
        ways: tuple[LaplaceWay, ...] = ("remove", "add")
        losses = (PrivacyLoss(((_step(rate, shift, copies, way), count),)) for way in ways)
        return PairBound(tuple(losses), Theorem.POISSON)

    shifts = [shift for shift in map(laplace_shift, one.uppers) if shift is not None]
    inner = [(c, without_dropout(c.bound)) for c in step.candidates]
    theorems = tuple(dict.fromkeys((*found.theorems, Theorem.POISSON, Theorem.LATTICE_SUMS)))
    if shifts:
        exact = [replace(c, bound=bound(shift)) for c, own in inner if (shift := laplace_shift(own)) is not None]
        uppers = (bound(minimum(*shifts)),)
        return replace(found, uppers=uppers, candidates=tuple(exact) or found.candidates, theorems=theorems)
    reach = _reach(one)
    if count == 1 or reach is None:
        return found
    above = [bound(*both) for both in map(laplace_shifts, one.uppers) if both is not None and _composable(*both)]
    below = [
        replace(c, bound=bound(*both))
        for c, own in inner
        if (both := laplace_shifts(own)) is not None and _composable(*both)
    ]
    return replace(
        found,
        uppers=(*(above or [bound(reach)]), *found.uppers),
        candidates=(*below, *found.candidates),
        theorems=theorems,
    )


def with_replaced(found: PrivacyProfile, one: PrivacyProfile, drawn: Drawn, count: int) -> PrivacyProfile:
    """What is `found` for all steps of a record replaced, with the pair that dominates after Laplace noise.

    Real pairs are a record on an axis and its opposite, or no record: a record with the vector 0 has no effect.
    """

    def bound(shift: Number, ways: tuple[LaplaceWay, ...] = ("replace",)) -> PairBound:
        losses = (PrivacyLoss(((SampledLaplaceLoss(drawn.rate, shift, way), count),)) for way in ways)
        return PairBound(tuple(losses), Theorem.POISSON)

    reach, noise, exact = _reach(one), one.noise, []
    if reach is None:
        return found
    if drawn.location_free and not drawn.swamped and isinstance(noise, Laplace):
        for records in drawn.pairs:
            size = _alone(records)
            if size is not None and size.a > 0:
                ways: tuple[LaplaceWay, ...] = ("replace",) if opposite(records) else ("remove", "add")
                exact.append(Candidate(records, bound(size / noise.scale, ways), replaced(records)))
    theorems = tuple(dict.fromkeys((*found.theorems, Theorem.POISSON, Theorem.LATTICE_SUMS)))
    uppers, candidates = (bound(reach), *found.uppers), (*exact, *found.candidates)
    return replace(found, uppers=uppers, candidates=candidates, theorems=theorems)


def _step(rate: Number, shift: Number, copies: int, way: LaplaceWay) -> LossComponent:
    return SampledLaplaceLoss(rate, shift, way) if copies == 1 else SampledSumLoss(rate, shift, copies, way)


def _composable(shift: Number, copies: int) -> bool:
    return copies <= MOST_COORDINATES and up(shift) * copies <= FARTHEST


def _reach(one: PrivacyProfile) -> Number | None:
    """How far, in l1 and in scales, Laplace noise lets a record move the sum, if that is not too far."""
    known = [bound.pure for bound in one.uppers if bound.theorem == Theorem.LAPLACE]
    reach = real(minimum(*known).b) if known else None
    return reach if reach is not None and 0 < up(reach) <= FARTHEST else None


def _alone(records: Pair) -> Number | None:
    """The size of a record on an axis, if the other record is its opposite or 0."""
    moved = [block for block in records.blocks if not block.same]
    rest = [block for block in records.blocks if block.same]
    if sum(block.count for block in moved) != 1 or any(block.x.a != 0 or block.x.b != 0 for block in rest):
        return None
    (block,) = moved
    if opposite(Pair((block,))):
        return abs(block.x)
    values = [value for value in (block.x, block.y) if value.a != 0 or value.b != 0]
    return abs(values[0]) if len(values) == 1 else None
