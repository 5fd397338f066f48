"""Truncated Laplace noise: docs/proofs/truncated-laplace.md. Distances are in units of the scale."""

from collections.abc import Sequence

from dpassay.errors import CertificateError
from dpassay.evidence.verifier.arithmetic.lattice import Grid, LaplaceShift
from dpassay.evidence.verifier.arithmetic.numbers import (
    ONE,
    ZERO,
    Number,
    at_most_one,
    hull,
    is_infinite,
    iv,
    largest,
    positive_part,
    smallest,
)
from dpassay.evidence.verifier.noises.additive import worst_shifts
from dpassay.evidence.verifier.noises.losses import Leaking, Loss, LossCurve, Summed, Worst, leak_loss, pure_loss
from dpassay.evidence.verifier.reading import Step
from dpassay.evidence.verifier.regions.pairs import Pair, differing
from dpassay.evidence.verifier.regions.regions import INFINITE, ParsedStage, RegionShape, diameter

Shifts = Sequence[tuple[Number, int]]


def _bound(stage: ParsedStage) -> Number:
    return stage.numbers["bound"] / stage.numbers["scale"]


def _outside(bound: Number, shift: Number) -> Number:
    """The probability of an output where a value `shift` away cannot be: P(T < shift − bound), which increases."""
    return iv.mpf([_tail(bound, iv.mpf(shift.a)).a, _tail(bound, iv.mpf(shift.b)).b])


def _tail(bound: Number, shift: Number) -> Number:
    total, cut = 2 * (1 - iv.exp(-bound)), iv.exp(-bound)
    if (shift - 2 * bound).a >= 0:
        return ONE
    left = (iv.exp(shift - bound) - cut) / total
    right = smallest([ONE, 1 - (iv.exp(bound - shift) - cut) / total])
    if (shift - bound).b <= 0:
        return left
    return right if (shift - bound).a >= 0 else iv.mpf([smallest([left, right]).a, largest([left, right]).b])


def _finite(bound: Number, shift: Number) -> Number:
    """The largest finite loss."""
    return largest([ZERO, smallest([shift, 2 * bound - shift])])


def _inside(bound: Number, shift: Number) -> tuple[LaplaceShift, LossCurve]:
    """One coordinate given that both values can give its output: Laplace noise between limits, of both laws alike.

    The first value is `edge` from its limit, and the second as far from the other one.
    """
    edge, top = largest([ZERO, bound - shift]), _finite(bound, shift)
    within = 2 - iv.exp(-edge) - iv.exp(-edge - top)

    def delta(epsilon: Number) -> Number:
        ends = [largest([ZERO, iv.mpf(gap)]) for gap in ((top - epsilon).a, (top - epsilon).b)]
        low, high = ((1 - iv.exp(-edge)) * (1 - iv.exp(-gap)) + (1 - iv.exp(-gap / 2)) ** 2 for gap in ends)
        return at_most_one(hull(low, high) / within)

    return LaplaceShift(top, iv.exp(-edge)), LossCurve(top, delta)


def _loss(bound: Number, shifts: Shifts, grid: Grid | None) -> Loss:
    """All coordinates: exactly for one, on a grid for several, and without one by the largest and by a single one."""
    if not shifts:
        return pure_loss(ZERO)
    leak = _leak(bound, shifts)
    if any((2 * bound - shift).a <= 0 for shift, _ in shifts):  # with nothing in common, as far as is known
        return leak_loss(hull(leak, ONE)) if leak.a < 1 else leak_loss(ONE)
    each = [(*_inside(bound, shift), count) for shift, count in shifts]

    def others(times: int) -> Loss:
        if times * sum(count for _, _, count in each) == 1:
            return each[0][1]
        if grid is not None:
            return Summed(tuple((part, count * times) for part, _, count in each), grid)
        most = sum((curve.pure * count for _, curve, count in each), ZERO) * times
        return LossCurve(most, lambda epsilon: hull(_single(epsilon), positive_part(1 - iv.exp(epsilon - most))))

    def _single(epsilon: Number) -> Number:
        return largest(curve.delta(epsilon, False) for _, curve, _ in each)

    return Leaking(leak, others)


def _leak(bound: Number, shifts: Shifts) -> Number:
    hidden = ONE
    for shift, count in shifts:
        hidden *= (1 - _outside(bound, shift)) ** count
    return largest([ZERO, 1 - hidden])


def truncated_pair(stage: ParsedStage, pair: Pair, grid: Grid | None) -> Loss:
    """Two values' loss, the same in both orders."""
    return _loss(_bound(stage), [(abs(gap) / stage.numbers["scale"], n) for gap, n in differing(pair)], grid)


def truncated_upper(stage: ParsedStage, shape: RegionShape, step: Step) -> Loss:
    """The worst shifts of Laplace noise, or all coordinates moved as far as one can be."""
    bound, scale = _bound(stage), stage.numbers["scale"]
    try:
        found = worst_shifts(shape)
    except CertificateError:
        found = [[(iv.mpf(diameter(shape, INFINITE).b), shape.most_differing)]]
    losses = []
    for gaps in found:
        shifts = [(iv.mpf((gap / scale).b), count) for gap, count in gaps if count and gap.b > 0]
        if any(is_infinite(shift) for shift, _ in shifts):
            raise CertificateError("nothing bounds the values before the noise")
        losses.append(_loss(bound, shifts, step.grid))
    return losses[0] if len(losses) == 1 else Worst(losses)
