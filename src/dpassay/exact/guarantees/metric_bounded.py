"""The bounded Laplace mechanism per unit of distance: docs/proofs/metric.md, point 7.

Its loss is that of Laplace noise, and up to twice as much next to a limit, where the probability of landing
inside changes fastest.
"""

from dpassay.core.numbers import ONE, ZERO, Number, between, exp, maximum, minimum
from dpassay.pipeline.pair import Block, Pair
from dpassay.pipeline.stages.base import Stage
from dpassay.pipeline.stages.noises.bounded_laplace import BoundedLaplace


def bounded_rate(before: tuple[Stage, ...], noise: BoundedLaplace) -> tuple[Number, tuple[Number, int]]:
    """The loss of one coordinate per unit of distance, with the value near which it is approached, and the direction.

    >>> from dpassay.core.numbers import middle
    >>> middle(bounded_rate((), BoundedLaplace(4, 0, 1))[0])
    0.5
    """
    limits = before[0].limits if len(before) == 1 else None
    low, high = noise.low, noise.high
    if limits is not None:
        low, high = maximum(low, limits[0]), minimum(high, limits[1])
        if low.a >= high.b:  # all values are moved to one limit
            return ZERO, (noise.low, 1)
        if not low.b < high.a:
            return between(ZERO, 2 / noise.scale), (noise.low, 1)
    ends = [(_fall(noise, low - noise.low), (low, 1)), (_fall(noise, noise.high - high), (high, -1))]
    return (1 + maximum(ends[0][0], ends[1][0])) / noise.scale, max(ends, key=lambda end: end[0].mid)[1]


def _fall(noise: BoundedLaplace, edge: Number) -> Number:
    """(u − v)/(2 − u − v), u = e^(−edge/scale), v the same from the other limit; 1 at a limit."""
    near, far = (exp(-gap / noise.scale) for gap in (edge, noise.high - noise.low - edge))
    return minimum(ONE, (near - far) / (2 - near - far))


def near_limit(
    before: tuple[Stage, ...], noise: BoundedLaplace, place: tuple[Number, int], q: float, dim: int, shrink: Number
) -> Pair | None:
    """Two inputs near the worst value; none if there are other stages than one clamp before the noise."""
    limits = before[0].limits if before else None
    if len(before) > 1 or (before and limits is None):
        return None
    value, direction = place
    room = [noise.scale, noise.high - noise.low]
    if limits is not None:
        room.append(limits[1] - limits[0])
    step, count = minimum(*room) / 4 * shrink, dim if q > 1 else 1
    rest = (Block(value, value, dim - count),) if count < dim else ()
    return Pair((Block(value, value + direction * step, count), *rest))
