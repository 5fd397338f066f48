"""Two vectors, written in blocks of equal coordinates so that 10⁵ of them take one line."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpassay.core.enclosure import decimal
from dpassay.core.numbers import INFINITY, ZERO, Number, maximum, middle, number, real
from dpassay.errors import InputError
from dpassay.values import dataclass

Array: TypeAlias = NDArray[np.float64]
MAX_DIMENSION = 10_000_000


_SIDES: tuple[Literal["x", "y"], ...] = ("x", "y")


@dataclass(frozen=True, slots=True)
class Block:
    """`count` coordinates in which the first vector is x and the second is y.

    They are the next coordinates in order; or the next even ones, or the next odd ones, counted from 0.
    """

    x: Number
    y: Number
    count: int
    positions: Literal["all", "even", "odd"] = "all"

    @property
    def same(self) -> bool:
        """Whether both vectors have the same number here. Equal enclosures may contain different numbers."""
        return self.x is self.y or bool(self.x == self.y and self.x.delta == 0)

    @property
    def gap(self) -> Number:
        """y − x; exactly 0 if both are the same number, however precisely it is known."""
        return ZERO if self.same else self.y - self.x

    def described(self, side: Literal["x", "y"]) -> str:
        """The number of the first or the second vector, with a count instead of repetitions."""
        value = f"{middle(getattr(self, side)):.6g}" + ("" if self.count == 1 else f" × {self.count}")
        return value if self.positions == "all" else f"{value} at {self.positions} places"


@dataclass(frozen=True, slots=True)
class Pair:
    """Two vectors, in blocks of equal coordinates.

    >>> pair = Pair((Block(number(1), number(-1), 3),))
    >>> middle(pair.distance(1)), pair.first.tolist()
    (6.0, [1.0, 1.0, 1.0])
    """

    blocks: tuple[Block, ...]

    def __str__(self) -> str:
        sides = (", ".join(block.described(side) for block in self.blocks) for side in _SIDES)
        return " against ".join(f"({side})" for side in sides)

    def distance(self, q: float) -> Number:
        """The lq distance between the two vectors."""
        gaps = [(abs(b.gap), b.count) for b in self.blocks if b.count]
        if q == float("inf"):
            return maximum(ZERO, *(gap for gap, _ in gaps))
        total = sum((gap ** number(q) * count for gap, count in gaps if gap != 0), ZERO)
        return total if q == 1 else total ** (1 / number(q))

    @property
    def first(self) -> Array:
        """The first vector as doubles."""
        return self._expand("x")

    @property
    def second(self) -> Array:
        """The second vector as doubles."""
        return self._expand("y")

    def _expand(self, side: Literal["x", "y"]) -> Array:
        def runs(positions: str) -> Array:
            chosen = [b for b in self.blocks if b.positions == positions]
            return np.repeat([middle(getattr(b, side)) for b in chosen], [b.count for b in chosen]).astype(float)

        even, odd = runs("even"), runs("odd")
        mixed = np.zeros(len(even) + len(odd))
        mixed[::2], mixed[1::2] = even, odd
        return np.concatenate([runs("all"), mixed])

    def by_parity(self) -> Pair:
        """The same pair with even and odd coordinates in separate blocks."""
        if all(b.positions != "all" for b in self.blocks):
            return self
        first, second = self.first, self.second
        even, odd = (Pair.of(first[start::2], second[start::2]).blocks for start in (0, 1))
        evens = (replace(block, positions="even") for block in even)
        return Pair((*evens, *(replace(block, positions="odd") for block in odd)))

    @classmethod
    def of(cls, first: Iterable[float], second: Iterable[float]) -> Pair:
        """Make a pair from two vectors, merging equal neighboring coordinates."""
        blocks: list[Block] = []
        last: tuple[float, float] | None = None
        for here in zip(first, second, strict=True):
            if here == last:
                blocks[-1] = Block(blocks[-1].x, blocks[-1].y, blocks[-1].count + 1)
            else:
                first_here = number(here[0])
                blocks.append(Block(first_here, first_here if here[0] == here[1] else number(here[1]), 1))
            last = here
        return cls(tuple(blocks))


def check_dimension(dim: Any, what: str = "dimension") -> int:
    """Refuse a dimension, or another count, that is not a whole number from 1 to 10⁷."""
    try:
        whole = int(dim)
    except (TypeError, ValueError, OverflowError):
        whole = 0
    if not 1 <= whole <= MAX_DIMENSION or whole != dim:
        raise InputError(f"{what} must be a whole number from 1 to {MAX_DIMENSION:,}, got {_given(dim)}")
    return whole


def _given(dim: Any) -> str:
    if not isinstance(dim, int) or isinstance(dim, bool):
        return str(dim)
    return f"{dim:,}" if abs(dim) < 10**15 else f"one of about {dim.bit_length() * 0.30103:.0f} digits"


def check_positive(value: Any, what: str) -> Number:
    """Refuse a number that is not positive, or that doubles cannot hold."""
    enclosed = number(value)
    if enclosed.a <= 0 or enclosed.b == INFINITY:
        raise InputError(f"{what} must be positive and finite, got {middle(enclosed):g}")
    if enclosed.b < real("1e-300").a or enclosed.a > real("1e300").b:
        raise InputError(f"{what} must lie between 1e-300 and 1e300, got {decimal(enclosed.mid, 6)}")
    return enclosed
