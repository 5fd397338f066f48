"""Pairs that a clamp does not bring closer: answers and vectors may lie anywhere, and therefore between its limits."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from math import ceil, floor

from dpassay.core.numbers import Number, down, real, up
from dpassay.pipeline.pair import Block, Pair
from dpassay.pipeline.regions import Counted, Everything, Region, Rounded, Rows, SensitivityBall
from dpassay.pipeline.stages.bounds.clamp import Clamp


def between_limits(region: Region, pairs: Iterable[Pair], clamp: Clamp) -> Iterator[Pair]:
    """Pairs of a region whose values can be shifted, moved between the limits of a clamp as far as they fit.

    Integer answers are shifted by integers; rounded ones by even integers, which leave ties as they were.
    """
    if isinstance(region, Everything):
        yield Pair((Block(clamp.high, clamp.low, region.dim),))
    elif isinstance(region, Rows) and region.limits is None:
        others = (Block(clamp.low, clamp.low, region.dim - 1),) if region.dim > 1 else ()
        yield Pair((Block(clamp.high, clamp.low, 1), *others))
    elif isinstance(region, SensitivityBall):
        centre = (clamp.low + clamp.high) / 2
        yield from (_shifted(pair, real(centre.mid)) for pair in pairs)
    elif isinstance(region, Rounded):
        low, high = ceil(Fraction(up(clamp.low))), floor(Fraction(down(clamp.high)))
        step = 1 if isinstance(region, Counted) else 2
        first = step * ceil(Fraction(low, step))
        yield from (_shifted(pair, real(first)) for pair in pairs)
        if isinstance(region, Counted) and region.p == 1 and high > low:
            yield from _filled(region, low, high)


def _shifted(pair: Pair, by: Number) -> Pair:
    return Pair(tuple(replace(b, x=b.x + by, y=b.x + by if b.same else b.y + by) for b in pair.blocks))


def _filled(region: Counted, low: int, high: int) -> Iterator[Pair]:
    """A difference as large as the limits allow in as many coordinates as it takes."""
    most, width, dim = floor(Fraction(down(region.region.distance))), high - low, region.dim
    full = min(dim, most // width)
    rest = min(width, most - full * width) if full < dim else 0
    sizes = [(width, full), (rest, 1 if rest else 0)]
    blocks = [Block(real(low + size), real(low), count) for size, count in sizes if count]
    left = dim - sum(block.count for block in blocks)
    if blocks:
        yield Pair((*blocks, Block(real(low), real(low), left)) if left else tuple(blocks))
