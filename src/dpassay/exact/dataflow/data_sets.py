"""Two data sets that differ in one record, where records are sampled, and the sums that one step has in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from dpassay.core.numbers import ZERO, Number, middle
from dpassay.pipeline.pair import Block, Pair
from dpassay.values import dataclass


@dataclass(frozen=True)
class DataSets:
    """Two data sets that differ in one record, in words.

    `records` are that record's vectors in the two, the second one 0 if it has no such record. `sums` are the sum of a
    step in which the first data set's record takes part, and of one in which it does not.

    >>> from dpassay.core.numbers import ONE
    >>> print(fixed_size(Pair((Block(ONE, ZERO, 1),)), 2, 10))
    one record (1) beside 9 others (0) against 10 records (0)
    """

    records: Pair
    sums: Pair
    first: str
    second: str

    def __str__(self) -> str:
        return f"{self.first} against {self.second}"

    def reversed(self) -> DataSets:
        """The same two data sets in the other order."""
        return replace(self, first=self.second, second=self.first)


def added(record: Pair, beside: Pair | None = None) -> DataSets:
    """A record, the first vector, against no record; or `beside` others whose sampled vectors add up to about a sum."""
    what = f"one record {_written(record, 'x')}"
    if beside is None:
        return DataSets(record, record, what, "no record")
    sums = _combined(record, beside, lambda r, s: (r.x + s.x, s.x))
    others = f"many small ones, of which those sampled add up to about {_written(beside, 'x')}"
    return DataSets(record, sums, f"{what} beside {others}", "the small ones alone")


def replaced(records: Pair) -> DataSets:
    """One record against another one, and no others."""
    sums = _combined(records, records, lambda r, _: (r.x, ZERO))
    first, second = (f"one record {_written(records, side)}" for side in ("x", "y"))
    return DataSets(records, sums, first, second)


def fixed_size(records: Pair, drawn: int, size: int) -> DataSets:
    """A record against another one, to which all other records are equal; `drawn` of `size` records are summed."""
    sums = _combined(records, records, lambda r, _: (r.x + (drawn - 1) * r.y, drawn * r.y))
    first, second = (_written(records, side) for side in ("x", "y"))
    if size == 1:
        return DataSets(records, sums, f"one record {first}", f"one record {second}")
    others = f"{size - 1:,} other{'s' if size > 2 else ''} {second}"
    return DataSets(records, sums, f"one record {first} beside {others}", f"{size:,} records {second}")


def _combined(first: Pair, second: Pair, values: Callable[[Block, Block], tuple[Number, Number]]) -> Pair:
    """Block by block, two values made of those of two pairs; equal where the first pair's are."""
    blocks = []
    for one, other in zip(first.blocks, second.blocks, strict=True):
        x, y = values(one, other)
        blocks.append(Block(x, x if one.same else y, one.count, one.positions))
    return Pair(tuple(blocks))


def _written(pair: Pair, side: str) -> str:
    """One of a pair's vectors, in blocks of equal coordinates."""
    parts = [(f"{middle(getattr(block, side)):.6g}", block.count) for block in pair.blocks]
    return f"({', '.join(text if count == 1 else f'{text} × {count:,}' for text, count in parts)})"


def swapped(pair: Pair) -> Pair:
    """The same two vectors in the other order."""
    return Pair(tuple(Block(b.y, b.x if not b.same else b.y, b.count, b.positions) for b in pair.blocks))


def against_zero(pair: Pair, side: str = "x") -> Pair:
    """One of a pair's vectors against 0."""
    return Pair(tuple(Block(getattr(b, side), ZERO, b.count, b.positions) for b in pair.blocks))
