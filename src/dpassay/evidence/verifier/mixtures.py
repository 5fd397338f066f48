"""Exponential noise that may be left out, or lost together with its value: what two values show of themselves."""

import math

from dpassay.evidence.verifier.losses import Leak, Loss, Outcomes, Pure, Worst
from dpassay.evidence.verifier.numbers import INF, ONE, ZERO, Number, iv, largest
from dpassay.evidence.verifier.regions import INFINITE, Shape, Stage, diameter, even_gap, most_differing

Gaps = list[tuple[Number, int]]  # by how much the second value is larger, and in how many coordinates
_MOST_OUTCOMES = 2000


def mixture_loss(stage: Stage, gaps: Gaps) -> Loss:
    """The loss of one pair, the larger of both ways.

    Where all coordinates move one way, what gives the value away is all there is: other losses are not positive.
    """
    ways = [[(sign * gap, n) for gap, n in gaps] for sign in (1, -1)]
    mixed = all(any(gap.a > 0 for gap, _ in way) for way in ways)
    if mixed and math.prod(count + 1 for _, count in gaps) <= _MOST_OUTCOMES:
        return Worst([Outcomes(_outcomes(stage, way)) for way in ways])
    return Leak(largest(leak(stage, way) for way in ways))


def leak(stage: Stage, gaps: Gaps) -> Number:
    """How likely an output shows the first value: it hits the atom, or lies where the second cannot be."""
    hidden = ONE
    for gap, count in gaps:
        shown = stage.numbers["atom"]
        if gap.a > 0:
            shown += sum((w * (1 - iv.exp(-gap / part.numbers["scale"])) for w, part in stage.parts), ZERO)
        hidden *= (1 - shown) ** count
    return largest([ZERO, 1 - hidden])


def _outcomes(stage: Stage, gaps: Gaps) -> tuple[tuple[Number, Number], ...]:
    """What can be seen: of each group of coordinates how many are lost, and the others' noise lies where both can be.

    There the two densities are in one proportion. All else the second value cannot give.
    """
    lost, seen = stage.numbers["lost"], [(ONE, ONE)]
    weight = stage.parts[0][0] if stage.parts else ZERO
    for gap, count in gaps:
        shared = weight * iv.exp(-abs(gap) / stage.parts[0][1].numbers["scale"]) if stage.parts else ZERO
        p, q = (shared, weight) if gap.a > 0 else (weight, shared)
        group = [
            (math.comb(count, k) * p**k * lost ** (count - k), math.comb(count, k) * q**k * lost ** (count - k))
            for k in range(count + 1)
        ]
        seen = [(a * x, b * y) for a, b in seen for x, y in group]
    return (*seen, (leak(stage, gaps), ZERO))


def overlap(stage: Stage, shape: Shape) -> Loss:
    """No event tells two laws apart by more than what they do not have in common; each coordinate has this much.

    Of balls and the like the even pair has the least in common.
    """
    inner = shape.parts[0] if shape.kind == "repeated" else shape
    even = inner.kind in ("ball", "sphere", "apart", "both", "squashed")
    gap, common = even_gap(inner) if even else diameter(shape, INFINITE), stage.numbers["lost"]
    if gap.b <= 0:
        return Pure(ZERO)
    for weight, part in stage.parts:
        common += ZERO if gap.b == INF else weight * iv.exp(-iv.mpf(gap.b) / part.numbers["scale"])
    return Leak(largest([ZERO, 1 - common ** most_differing(shape)]))
