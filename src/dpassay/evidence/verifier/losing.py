"""Exponential noise that may be left out, or lost together with its value: what two values show of themselves."""

import math

from dpassay.evidence.verifier.ceilings import Worst
from dpassay.evidence.verifier.curves import Curve, Leak, Outcomes
from dpassay.evidence.verifier.numbers import ONE, ZERO, Number, iv, largest
from dpassay.evidence.verifier.regions import INFINITE, Shape, Stage, diameter, most_differing

Gaps = list[tuple[Number, int]]  # by how much the second value is larger, and in how many coordinates
_MOST_OUTCOMES = 2000


def losing_curve(stage: Stage, gaps: Gaps) -> Curve:
    """The loss of one pair, the larger of both ways.

    Where all coordinates move one way, what gives the value away is all there is: other losses are not positive.
    """
    ways = [[(sign * gap, n) for gap, n in gaps] for sign in (1, -1)]
    mixed = all(any(gap.a > 0 for gap, _ in way) for way in ways)
    size = math.prod(count + 1 for _, count in gaps)
    if mixed and size <= _MOST_OUTCOMES and one_sided(stage):
        return Worst([Outcomes(_outcomes(stage, way), closed=False) for way in ways])
    return Leak(largest(leak(stage, way) for way in ways))


def leak(stage: Stage, gaps: Gaps) -> Number:
    """How likely a mixture's output shows the first value: it hits the atom, or lies where the second cannot be."""
    rising = all(part.name == "onesided" for _, part in stage.parts)
    hidden = ONE
    for gap, count in gaps:
        shown = stage.numbers["atom"]
        if rising and gap.a > 0:
            shown += sum((w * (1 - iv.exp(-gap / part.numbers["scale"])) for w, part in stage.parts), ZERO)
        hidden *= (1 - shown) ** count
    return largest([ZERO, 1 - hidden])


def one_sided(stage: Stage) -> bool:
    """Whether a mixture is one exponential noise at most, besides none and lost."""
    return len(stage.parts) < 2 and all(part.name == "onesided" for _, part in stage.parts)


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


def overlap(stage: Stage, shape: Shape) -> Curve:
    """No event tells two laws apart by more than what they do not have in common; each coordinate has this much."""
    gap, common = diameter(shape, INFINITE), stage.numbers["lost"]
    for weight, part in stage.parts:
        common += weight * iv.exp(-iv.mpf(gap.b) / part.numbers["scale"])
    return Leak(largest([ZERO, 1 - common ** most_differing(shape)]))
