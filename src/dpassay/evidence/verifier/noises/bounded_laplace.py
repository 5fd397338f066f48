"""The bounded Laplace mechanism: docs/proofs/bounded-laplace.md. Distances are in units of the scale."""

import numpy as np

from dpassay.errors import CertificateError
from dpassay.evidence.verifier.arithmetic.lattice import Grid, LaplaceShift
from dpassay.evidence.verifier.arithmetic.numbers import (
    ZERO,
    Number,
    above,
    at_most_one,
    below,
    hull,
    iv,
    largest,
    smallest,
)
from dpassay.evidence.verifier.arithmetic.work import spend
from dpassay.evidence.verifier.noises.losses import Loss, LossCurve, Summed, Worst, bits_loss, loss_at_zero, pure_loss
from dpassay.evidence.verifier.reading import Step
from dpassay.evidence.verifier.regions.pairs import Pair, same
from dpassay.evidence.verifier.regions.regions import INFINITE, ParsedStage, RegionShape, diameter, largest_norm

_EVEN = iv.mpf("1e-40")
_CELLS = 1 << 13
_SLACK = 1e-12


def _width(stage: ParsedStage) -> Number:
    return (stage.numbers["high"] - stage.numbers["low"]) / stage.numbers["scale"]


def _ends(stage: ParsedStage, x: Number, y: Number) -> tuple[Number, Number, Number]:
    """The distance of the smaller value from the lower limit, of the other from the upper, and between them.

    A value beyond a limit is moved to it: its output has the same distribution.
    """
    low, high, scale = (stage.numbers[key] for key in ("low", "high", "scale"))
    first, second = (smallest([high, largest([low, value])]) for value in (x, y))
    if first.b > second.a and not first.b <= second.b:
        first, second = second, first
    return (first - low) / scale, (high - second) / scale, largest([ZERO, (second - first) / scale])


def _inside(edge: Number, width: Number) -> Number:
    """Twice the probability that Laplace noise around a value lands between the limits."""
    return 2 - iv.exp(-edge) - iv.exp(edge - width)


def _pure(edge: Number, shift: Number, width: Number) -> Number:
    return shift + iv.log(_inside(edge + shift, width) / _inside(edge, width))


def _one_way(edge: Number, shift: Number, width: Number) -> LossCurve:
    """The loss of the value that is `edge` from its limit against one that is `shift` farther in."""
    pure = _pure(edge, shift, width)

    def delta(epsilon: Number) -> Number:
        ends = [_shown(iv.mpf(pure.a) - epsilon.b, edge), _shown(iv.mpf(pure.b) - epsilon.a, edge)]
        return hull(ends[0], ends[1]) / _inside(edge, width)

    return LossCurve(pure, delta)


def _shown(twice: Number, edge: Number) -> Number:
    """(1 − e^−edge)(1 − e^−2s) + (1 − e^−s)², 2s being given, or 0; it increases with both."""
    half = largest([ZERO, twice / 2])
    near = 1 - iv.exp(-half)
    return (1 - iv.exp(-edge)) * (1 - iv.exp(-2 * half)) + near * near


def _is_even(ends: tuple[Number, Number, Number]) -> bool:
    """Whether two values are equally far from the limits, so that both directions are equal."""
    return bool(abs(ends[0] - ends[1]).b <= _EVEN.a)


def _even_part(ends: tuple[Number, Number, Number], count: int) -> tuple[LaplaceShift, int]:
    return LaplaceShift(ends[2], iv.exp(-smallest(ends[:2]))), count


def _coordinates(ends: tuple[Number, Number, Number], count: int, stage: ParsedStage, grid: Grid | None) -> Loss:
    """The loss of `count` equal coordinates: one, or several with both directions equal."""
    if count == 1:
        return Worst([_one_way(edge, ends[2], _width(stage)) for edge in ends[:2]])
    return Summed((_even_part(ends, count),), grid)


def bounded_pair(stage: ParsedStage, pair: Pair, grid: Grid | None) -> Loss:
    """Two vectors; for several coordinates that are not even, ε at δ = 0, and on which side of the middle each lies."""
    blocks = [(_ends(stage, b.x, b.y), b.count, b) for b in pair if not same(b)]
    moved = [(ends, count, b) for ends, count, b in blocks if ends[2].a > 0]
    if not moved:
        return pure_loss(ZERO)
    if len(moved) == 1 and moved[0][1] == 1:
        return _coordinates(*moved[0][:2], stage, grid)
    if all(_is_even(ends) for ends, _, _ in moved):
        return Summed(tuple(_even_part(ends, count) for ends, count, _ in moved), grid)
    width, ways, sides = _width(stage), [ZERO, ZERO], []
    for ends, count, b in moved:
        if not (b.x.b <= b.y.a or b.y.b <= b.x.a):
            raise CertificateError("it is not known which of two values is the larger one")
        smaller = 0 if b.x.b <= b.y.a else 1  # the direction in which the smaller value comes first
        ways[smaller] += _pure(ends[0], ends[2], width) * count
        ways[1 - smaller] += _pure(ends[1], ends[2], width) * count
        chances = [_below_middle(ends, width), 1 - _below_middle((ends[1], ends[0], ends[2]), width)]
        sides.append((chances[smaller], chances[1 - smaller], count))
    return loss_at_zero(largest(ways), bits_loss(sides))


def _below_middle(ends: tuple[Number, Number, Number], width: Number) -> Number:
    """The probability that the smaller of two values has an output below their middle."""
    edge, _, shift = ends
    below = 1 - iv.exp(-edge) / 2 - iv.exp(-shift / 2) / 2
    return at_most_one(below / (_inside(edge, width) / 2))


def bounded_upper(stage: ParsedStage, shape: RegionShape, step: Step) -> Loss:
    """Answers may lie anywhere; other values lie between limits, and these are the worst pair in each order."""
    times, one, width = (shape.count if shape.kind == "repeated" else 1), shape.one, _width(stage)
    if one.kind in ("answers", "rounded"):
        shift, count = smallest([width, iv.mpf(diameter(one, INFINITE).b) / stage.numbers["scale"]]), one.dim * times
        pure = _pure(ZERO, shift, width)
        if count == 1:
            return LossCurve(pure, lambda epsilon: _anywhere(shift, width, epsilon))
        rise = iv.log(_inside(smallest([shift, width / 2]), width) / _inside(ZERO, width))
        total = iv.mpf(diameter(one, 1.0).b) * times / stage.numbers["scale"] + count * rise
        return pure_loss(smallest([pure * count, total]))
    limit = iv.mpf(largest_norm(one, INFINITE).b)
    low, high, count = (one.low, one.high, one.differing) if one.kind == "box" else (-limit, limit, one.dim)
    ends = _ends(stage, low, high)
    if not count or ends[2].b <= 0:
        return pure_loss(ZERO)
    if count * times == 1 or _is_even(ends):
        return _coordinates(ends, count * times, stage, step.grid)
    return pure_loss(largest(_pure(edge, ends[2], width) for edge in ends[:2]) * count * times)


def _anywhere(shift: Number, width: Number, epsilon: Number) -> Number:
    """A bound on δ of all pairs this far apart, wherever they lie: the largest over many small cells of positions.

    The farther in, the smaller the pure loss; 1 − e^−edge increases, and the probability of landing inside is smallest
    at an end of a cell. In doubles: each number is the result of a few operations, off by a few ulps of the summands;
    the slack is a thousand times that.
    """
    spend(_CELLS << 8)
    distance, most, limit = above(shift), above(width), below(epsilon)
    room = max(0.0, most - distance)
    edges = np.append(0.0, np.geomspace(1e-9, 1 + _SLACK, _CELLS) * room)
    own = -np.expm1(-edges) - np.expm1(np.minimum(0.0, edges - most))
    other = -np.expm1(-edges - distance) - np.expm1(np.minimum(0.0, edges + distance - most))
    pure = distance + np.log(other / own)[:-1]
    half = np.maximum(0.0, (pure - limit) / 2 + _SLACK * (1 + distance + pure + limit))
    shown = -np.expm1(-edges[1:]) * -np.expm1(-2 * half) + np.expm1(-half) ** 2
    largest_one = float((shown / np.minimum(own[:-1], own[1:])).max()) * (1 + _SLACK)
    return at_most_one(iv.mpf([0, largest_one]))
