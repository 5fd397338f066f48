"""Regions of points rather than volumes: bits, one-hot vectors, categories, lists; and min-max images."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from dpassay.core.numbers import INFINITY, ONE, ZERO, Number, digits, middle, number, real
from dpassay.errors import InputError
from dpassay.pipeline.pair import Array, Block, Pair
from dpassay.pipeline.regions.base import INF, SAFE, Region
from dpassay.pipeline.regions.vector import Box, SensitivityBall, norm_of_ones
from dpassay.values import dataclass


@dataclass(frozen=True)
class MinMax(Region):
    """The outputs of min-max normalization: [0, 1] in each coordinate, with at least one 0 and one 1.

    A constant vector has no range: it becomes all zeros. In one dimension nothing else can happen.

    >>> from dpassay.core.numbers import middle
    >>> middle(MinMax(dim=768).diameter(1)), middle(MinMax(dim=1).diameter(1))
    (768.0, 0.0)
    """

    kind = "minmax"
    unit = True
    dim: int

    def largest_norm(self, p: float) -> float:
        return norm_of_ones(self.dim, p)

    def farthest(self, q: float) -> Pair:
        if self.dim == 1:
            return Pair((Block(ZERO, ZERO, 1),))
        return Pair((Block(ONE, ZERO, 1), Block(ZERO, ONE, self.dim - 1)))

    def contains(self, value: Array, slack: float = 1e-9) -> bool:
        """Whether the smallest coordinate is 0 and the largest 1, or all are 0."""
        low, high = float(np.min(value)), float(np.max(value))
        return abs(low) <= slack and (abs(high - 1) <= slack or abs(high) <= slack)

    @property
    def cube_ends(self) -> tuple[Number, Number]:
        return ZERO, ONE


@dataclass(frozen=True)
class Bits(Region):
    """All strings of `dim` bits.

    >>> from dpassay.core.numbers import middle
    >>> middle(Bits(10).diameter(1))
    10.0
    """

    kind = "bits"
    unit = True
    dim: int

    def largest_norm(self, p: float) -> float:
        return norm_of_ones(self.dim, p)

    def farthest(self, q: float) -> Pair:
        return Pair((Block(ONE, ZERO, self.dim),))

    def contains(self, value: Array, slack: float = 1e-9) -> bool:
        return bool(np.all((value == 0) | (value == 1)))

    @property
    def cube_ends(self) -> tuple[Number, Number]:
        return ZERO, ONE

    def moving_a_sum(self) -> Region:
        return self

    def moved_by(self, count: int) -> Region:
        return Box.cube(ZERO, real(count), self.dim)


@dataclass(frozen=True)
class RowBits(Bits):
    """Strings of `dim` bits, the same number for each person; two neighbors differ in the bits of one person.

    No two strings that one person can have differ in more positions than `first` and `second`.

    >>> from dpassay.core.numbers import middle
    >>> middle(RowBits(20, "11111", "00000").diameter(1))
    5.0
    """

    kind = "row-bits"
    first: str
    second: str
    free: bool = False  # whether one person can have any string at all

    def __post_init__(self) -> None:
        super().__post_init__()
        strings = (self.first, self.second)
        if any(set(string) - {"0", "1"} or len(string) != self.length for string in strings) or self.dim % self.length:
            raise InputError(f"one person's bits must be two strings of the same length, which must divide {self.dim}")

    @property
    def length(self) -> int:
        """Bits for each person."""
        return max(1, len(self.first))

    def farthest(self, q: float) -> Pair:
        """The first person's bits differ; the others', equal in both, are written as 0, which changes no loss."""
        bits = [Block(real(one), real(other), 1) for one, other in zip(self.first, self.second, strict=True)]
        rest = [Block(ZERO, ZERO, self.dim - self.length)] if self.dim > self.length else []
        return Pair((*bits, *rest))


@dataclass(frozen=True)
class OneHot(Region):
    """The k vectors with a single 1.

    >>> from dpassay.core.numbers import middle
    >>> middle(OneHot(5).diameter(1))
    2.0
    """

    kind = "onehot"
    unit = True
    dim: int

    def largest_norm(self, p: float) -> float:
        return 1.0

    def farthest(self, q: float) -> Pair:
        if self.dim == 1:
            return Pair((Block(ONE, ONE, 1),))
        rest = (Block(ZERO, ZERO, self.dim - 2),) if self.dim > 2 else ()
        return Pair((Block(ONE, ZERO, 1), Block(ZERO, ONE, 1), *rest))

    def contains(self, value: Array, slack: float = 1e-9) -> bool:
        """Whether one coordinate is 1 and the others are 0."""
        return bool(np.all((value == 0) | (value == 1)) and np.sum(value) == 1)

    def moving_a_sum(self) -> Region:
        return Rows(self.dim, (ZERO, ONE))


@dataclass(frozen=True)
class Sparse(Region):
    """Strings of `dim` bits with at least one and at most `ones` ones, such as Bloom filters.

    >>> from dpassay.core.numbers import middle
    >>> middle(Sparse(32, 2).diameter(1))
    4.0
    """

    kind = "sparse"
    unit = True
    dim: int
    ones: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.ones > self.dim:
            raise InputError(f"at most {self.dim} of {self.dim} bits can be ones, got {self.ones}")

    def largest_norm(self, p: float) -> float:
        return norm_of_ones(self.ones, p)

    def farthest(self, q: float) -> Pair:
        """As many ones as leave room for another one, and as many as possible in other positions."""
        if self.dim == 1:
            return Pair((Block(ONE, ONE, 1),))
        ones = min(self.ones, self.dim - 1)
        others = min(self.ones, self.dim - ones)
        rest = Block(ZERO, ZERO, self.dim - ones - others)
        blocks = (Block(ONE, ZERO, ones), Block(ZERO, ONE, others), rest)
        return Pair(tuple(block for block in blocks if block.count))

    def contains(self, value: Array, slack: float = 1e-9) -> bool:
        """Whether each coordinate is 0 or 1, and some but not too many are 1."""
        return bool(np.all((value == 0) | (value == 1)) and 1 <= np.sum(value) <= self.ones)


@dataclass(frozen=True)
class Rows(Region):
    """Vectors with one coordinate per person, between two limits or unbounded; two neighbors differ in one.

    >>> Rows(3).farthest(1).first.tolist(), Rows(3, (2, 5)).farthest(1).first.tolist()
    ([1.0, 0.0, 0.0], [5.0, 2.0, 2.0])
    """

    kind = "rows"
    dim: int
    limits: tuple[Number, Number] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.limits is not None:
            low, high = (number(limit) for limit in self.limits)
            if low.a > high.b or abs(low).b == INFINITY or abs(high).b == INFINITY:
                raise InputError("rows need finite limits, the lower one first")
            object.__setattr__(self, "limits", (low, high))

    @property
    def row_limits(self) -> tuple[Number, Number] | None:
        return self.limits

    def farthest(self, q: float) -> Pair:
        """One coordinate differs; without limits there is always a farther pair."""
        low, high = self.limits or (ZERO, ONE)
        rest = (Block(low, low, self.dim - 1),) if self.dim > 1 else ()
        return Pair((Block(high, low, 1), *rest))

    def diameter(self, q: float) -> Number:
        return INFINITY if self.limits is None else self.limits[1] - self.limits[0]

    def largest_norm(self, p: float) -> float:
        return INF if self.limits is None else Box(((*self.limits, self.dim),)).largest_norm(p)

    def to_data(self) -> dict[str, Any]:
        limits = zip(("low", "high"), self.limits or (), strict=False)
        return {"kind": self.kind, "dim": self.dim, **{end: list(digits(limit)) for end, limit in limits}}

    def contains(self, value: Array, slack: float = 1e-9) -> bool:
        low, high = (-np.inf, np.inf) if self.limits is None else map(middle, self.limits)
        inside = (value >= low - slack * (1 + abs(low))) & (value <= high + slack * (1 + abs(high)))
        return bool(np.isfinite(value).all() and inside.all())

    def moved_by(self, count: int) -> Region:
        """Each moves one coordinate, perhaps another one."""
        low, high = self.limits or (ZERO, INFINITY)
        return SensitivityBall(1, (high - low) * count, self.dim)


@dataclass(frozen=True)
class Categories(Region):
    """The numbers 0, …, k−1 as names of k categories; distances between names mean nothing.

    >>> Categories(3).contains(np.array([2.0]))
    True
    """

    kind = "categories"
    size: int

    @property
    def dim(self) -> int:
        return 1

    def farthest(self, q: float) -> Pair:
        return Pair((Block(real(self.size - 1), ZERO, 1),))

    def contains(self, value: Array, slack: float = 1e-9) -> bool:
        return bool(value.shape == (1,) and value[0] in range(self.size))


@dataclass(frozen=True)
class Finite(Region):
    """A list of vectors. The farthest pair is found by exact comparison of all pairs.

    >>> from dpassay.core.numbers import middle
    >>> middle(Finite([[0, 0], [3, 4]]).diameter(2))
    5.0
    """

    kind = "finite"
    points: Sequence[Sequence[float]]

    def __post_init__(self) -> None:
        points = tuple(tuple(float(v) for v in point) for point in self.points)
        if not points or len({len(p) for p in points}) != 1 or not points[0]:
            raise InputError("a finite set needs at least one vector, and all vectors must have the same dimension")
        if not np.isfinite(np.array(points)).all():
            raise InputError("a finite set needs finite coordinates")
        if len(points) > 2000:
            raise InputError(f"a finite set may have at most 2000 vectors, got {len(points)}; use a Box or a Ball")
        object.__setattr__(self, "points", points)

    @property
    def dim(self) -> int:
        return len(self.points[0])

    def farthest(self, q: float) -> Pair:
        """The farthest pair by exact arithmetic among those that doubles cannot distinguish."""
        points = np.array(self.points)
        gaps = [np.linalg.norm(points[i:] - points[i], ord=q, axis=1) for i in range(len(points))]
        blur = 1e-14 * self.dim * float(np.abs(points).max())  # of a difference of doubles
        limit = max(float(row.max()) for row in gaps) * (1 - 1e-12) - blur
        close = [(i, i + int(k)) for i, row in enumerate(gaps) for k in np.flatnonzero(row >= limit)]
        # Pairs with the same coordinates, in any order, are equally far apart.
        kinds = {tuple(sorted(zip(self.points[i], self.points[j], strict=True))): (i, j) for i, j in close}
        i, j = max(kinds.values(), key=lambda ij: _exact_power(self.points[ij[0]], self.points[ij[1]], q))
        return Pair.of(self.points[i], self.points[j])

    def largest_norm(self, p: float) -> float:
        return float(np.linalg.norm(np.array(self.points), ord=p, axis=1).max()) * SAFE

    def to_data(self) -> dict[str, Any]:
        return {"kind": self.kind, "points": [list(map(repr, point)) for point in self.points], "dim": self.dim}

    def contains(self, value: Array, slack: float = 1e-9) -> bool:
        return bool(np.isclose(np.array(self.points), value, rtol=slack, atol=slack).all(axis=1).any())


def _exact_power(first: Sequence[float], second: Sequence[float], q: float) -> Fraction | float:
    """The qth power of the lq distance, exactly if q is an integer."""
    gaps = [abs(Fraction(repr(a)) - Fraction(repr(b))) for a, b in zip(first, second, strict=True)]
    if q == float("inf"):
        return max(gaps)
    return sum((gap ** int(q) for gap in gaps), Fraction(0)) if q == int(q) else float(sum(float(g) ** q for g in gaps))
