"""Pairs that a clamp does not bring closer: answers and vectors may lie anywhere, and therefore between its limits."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import singledispatch
from math import ceil, floor

from dpassay.core.numbers import Number, down, real, up
from dpassay.pipeline.pair import Block, Pair
from dpassay.pipeline.regions import Counted, Everything, Region, Rounded, Rows, SensitivityBall
from dpassay.pipeline.stages.bounds.clamp import Clamp


@singledispatch
def between_limits(region: Region, pairs: Iterable[Pair], clamp: Clamp) -> Iterable[Pair]:
    """Pairs of a region whose values can be shifted, moved between the limits of a clamp as far as they fit.

    Integer answers are shifted by integers; rounded ones by even integers, which leave ties as they were.
    """
    return ()


@between_limits.register(Everything)
def _(region: Everything, pairs: Iterable[Pair], clamp: Clamp) -> Iterable[Pair]:
    return [Pair((Block(clamp.high, clamp.low, region.dim),))]


@between_limits.register(Rows)
def _(region: Rows, pairs: Iterable[Pair], clamp: Clamp) -> Iterable[Pair]:
    others = (Block(clamp.low, clamp.low, region.dim - 1),) if region.dim > 1 else ()
    return [Pair((Block(clamp.high, clamp.low, 1), *others))] if region.limits is None else []


@between_limits.register(SensitivityBall)
def _(region: SensitivityBall, pairs: Iterable[Pair], clamp: Clamp) -> Iterable[Pair]:
    centre = (clamp.low + clamp.high) / 2
    return (_shifted(pair, real(centre.mid)) for pair in pairs)


@between_limits.register(Rounded)
def _(region: Rounded, pairs: Iterable[Pair], clamp: Clamp, step: int = 2) -> Iterable[Pair]:
    first = step * ceil(Fraction(ceil(Fraction(up(clamp.low))), step))
    return (_shifted(pair, real(first)) for pair in pairs)


@between_limits.register(Counted)
def _(region: Counted, pairs: Iterable[Pair], clamp: Clamp) -> Iterable[Pair]:
    yield from between_limits.dispatch(Rounded)(region, pairs, clamp, step=1)
    low, high = ceil(Fraction(up(clamp.low))), floor(Fraction(down(clamp.high)))
    if region.p == 1 and high > low:
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
