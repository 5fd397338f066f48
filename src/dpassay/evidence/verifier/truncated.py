"""Truncated Laplace noise: docs/proofs/truncated-laplace.md. Distances are in units of the scale."""

from collections.abc import Sequence

from dpassay.errors import CertificateError
from dpassay.evidence.verifier.additive import worst_shifts
from dpassay.evidence.verifier.lattice import Grid
from dpassay.evidence.verifier.losses import Curve, Loss, Worst, leak_loss, pure_loss
from dpassay.evidence.verifier.numbers import INF, ONE, ZERO, Number, is_infinite, iv, largest, smallest
from dpassay.evidence.verifier.pairs import Pair, differing
from dpassay.evidence.verifier.reading import Step
from dpassay.evidence.verifier.regions import INFINITE, Shape, Stage, diameter

Shifts = Sequence[tuple[Number, int]]


def _bound(stage: Stage) -> Number:
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


def _one(bound: Number, shift: Number) -> Loss:
    leak, cut = _outside(bound, shift), iv.exp(-bound)

    def delta(epsilon: Number) -> Number:
        top = _finite(bound, shift) - epsilon
        if top.b <= 0:
            return leak
        rest = 2 * iv.exp((epsilon - shift) / 2) - cut - iv.exp(epsilon - bound)
        shown = smallest([ONE, largest([leak, 1 - rest / (2 * (1 - cut))])])
        return shown if top.a > 0 else iv.mpf([leak.a, shown.b])

    return Curve(INF if leak.a > 0 else iv.mpf([0, "inf"]), delta, leak)


def _leak(bound: Number, shifts: Shifts) -> Number:
    hidden = ONE
    for shift, count in shifts:
        hidden *= (1 - _outside(bound, shift)) ** count
    return largest([ZERO, 1 - hidden])


def truncated_pair(stage: Stage, pair: Pair, grid: Grid | None) -> Loss:
    """What one coordinate shows, or that some coordinate reveals its value."""
    bound, shifts = _bound(stage), [(abs(gap) / stage.numbers["scale"], n) for gap, n in differing(pair)]
    if not shifts:
        return pure_loss(ZERO)
    return Worst([leak_loss(_leak(bound, shifts)), *(_one(bound, shift) for shift, _ in shifts)])


def truncated_upper(stage: Stage, shape: Shape, step: Step) -> Loss:
    """The worst shifts of Laplace noise, or all coordinates moved as far as one can be; exact for one coordinate."""
    bound, scale = _bound(stage), stage.numbers["scale"]
    try:
        found = worst_shifts(shape)
    except CertificateError:
        found = [[(iv.mpf(diameter(shape, INFINITE).b), shape.most_differing)]]
    losses: list[Loss] = []
    for gaps in found:
        shifts = [(iv.mpf((gap / scale).b), count) for gap, count in gaps if count and gap.b > 0]
        if any(is_infinite(shift) for shift, _ in shifts):
            raise CertificateError("nothing bounds the values before the noise")
        if sum(count for _, count in shifts) == 1:
            losses.append(_one(bound, shifts[0][0]))
        else:
            most = sum((_finite(bound, shift) * count for shift, count in shifts), ZERO)
            losses.append(leak_loss(_leak(bound, shifts), most) if shifts else pure_loss(ZERO))
    return Worst(losses)
