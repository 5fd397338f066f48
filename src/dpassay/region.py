"""Sets of values that a stage can put out. Each names its farthest pair, exactly, in any lq norm.

A pair is written in blocks, so that 10⁵ equal coordinates take one line. See docs/proofs/diameters.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dpassay.enclosure import INFINITY, ONE, ZERO, Number, between, iv, maximum, middle, minimum, number
from dpassay.errors import InputError

Array: TypeAlias = NDArray[np.float64]
MAX_DIMENSION = 10_000_000


@dataclass(frozen=True, slots=True)
class Block:
    """`count` coordinates in which the first vector is x and the second is y.

    They are the next ones in order; or the next even ones, or the next odd ones, counted from 0.
    """

    x: Number
    y: Number
    count: int
    positions: Literal["all", "even", "odd"] = "all"


@dataclass(frozen=True, slots=True)
class Pair:
    """Two vectors, in blocks of equal coordinates.

    >>> pair = Pair((Block(number(1), number(-1), 3),))
    >>> middle(pair.distance(1)), pair.first.tolist()
    (6.0, [1.0, 1.0, 1.0])
    """

    blocks: tuple[Block, ...]

    def distance(self, q: float) -> Number:
        """The lq distance of the two vectors."""
        gaps = [(abs(b.x - b.y), b.count) for b in self.blocks if b.count]
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
        """The same pair with even and odd coordinates in blocks of their own."""
        if all(b.positions != "all" for b in self.blocks):
            return self
        first, second = self.first, self.second
        even, odd = (Pair.of(first[start::2], second[start::2]).blocks for start in (0, 1))
        evens = (replace(block, positions="even") for block in even)
        return Pair((*evens, *(replace(block, positions="odd") for block in odd)))

    @classmethod
    def of(cls, first: Iterable[float], second: Iterable[float]) -> Pair:
        """Make a pair from two vectors, joining equal neighbouring coordinates."""
        blocks: list[Block] = []
        last: tuple[float, float] | None = None
        for here in zip(first, second, strict=True):
            if here == last:
                blocks[-1] = Block(blocks[-1].x, blocks[-1].y, blocks[-1].count + 1)
            else:
                blocks.append(Block(number(here[0]), number(here[1]), 1))
            last = here
        return cls(tuple(blocks))


@runtime_checkable
class Region(Protocol):
    """A set of vectors of one dimension."""

    @property
    def dim(self) -> int:
        """How many coordinates its vectors have."""

    def farthest(self, q: float) -> Pair:
        """Two of its vectors, as far apart in lq as any two (or, for an open set, than which none is farther)."""

    def diameter(self, q: float) -> Number:
        """The lq distance of the farthest pair; an interval where it is known only within bounds."""

    def contains(self, value: Array, slack: float = 1e-9) -> bool:
        """Whether a vector lies in the set, up to rounding."""


def check_dimension(dim: Any) -> int:
    """Refuse a dimension that is not a whole number from 1 to 10⁷."""
    try:
        whole = int(dim)
    except (TypeError, ValueError, OverflowError):
        whole = 0
    if not 1 <= whole <= MAX_DIMENSION or whole != dim:
        given = "a larger one" if isinstance(dim, int) and dim > MAX_DIMENSION else dim
        raise InputError(f"dimension must be a whole number from 1 to {MAX_DIMENSION}, got {given}")
    return whole


def check_positive(value: Any, what: str) -> Number:
    """Refuse a number that is not positive, or that doubles cannot hold."""
    enclosed = number(value)
    if enclosed.a <= 0 or enclosed.b == INFINITY:
        raise InputError(f"{what} must be positive and finite, got {middle(enclosed):g}")
    if enclosed.a < iv.mpf("1e-300") or enclosed.b > iv.mpf("1e300"):
        raise InputError(f"{what} must lie between 1e-300 and 1e300")
    return enclosed


def _inverse(p: float) -> Number:
    """1/p, with 1/∞ = 0."""
    return ZERO if p == float("inf") else 1 / number(p)


def _opposite(radius: Number, count: int, dim: int) -> Pair:
    """±radius in the first `count` coordinates, 0 in the others."""
    rest = (Block(ZERO, ZERO, dim - count),) if count < dim else ()
    return Pair((Block(radius, -radius, count), *rest))


class _Measured:
    """A region whose diameter is the distance of its farthest pair."""

    def farthest(self, q: float) -> Pair:
        raise NotImplementedError

    def diameter(self, q: float) -> Number:
        """The lq distance of the farthest pair."""
        return self.farthest(q).distance(q)


@dataclass(frozen=True)
class Ball(_Measured):
    """All vectors whose lp norm is at most the radius, p from 1 to ∞.

    >>> round(middle(Ball(2, 1, dim=32).diameter(1)), 9)
    11.313708499
    """

    p: float
    radius: Number
    dim: int

    def __post_init__(self) -> None:
        if not self.p >= 1:
            raise InputError(f"a norm needs p from 1 to infinity, got {self.p}")
        object.__setattr__(self, "radius", check_positive(self.radius, "radius"))
        object.__setattr__(self, "dim", check_dimension(self.dim))

    def farthest(self, q: float) -> Pair:
        """±(r, …, r)/n^(1/p) where q < p, else ±(r, 0, …, 0)."""
        count = self.dim if q < self.p else 1
        return self.diagonal(count)

    def diagonal(self, count: int) -> Pair:
        """The opposite pair spread evenly over the first `count` coordinates."""
        return _opposite(self.radius / iv.mpf(count) ** _inverse(self.p), count, self.dim)

    def contains(self, value: Array, slack: float = 1e-9) -> bool:
        """Whether the norm is within the radius."""
        return bool(np.linalg.norm(value, ord=self.p) <= middle(self.radius) * (1 + slack))


@dataclass(frozen=True)
class Sphere(_Measured):
    """All vectors whose l2 norm is the radius.

    >>> middle(Sphere(1, dim=4).diameter(1))
    4.0
    """

    radius: Number
    dim: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", check_positive(self.radius, "radius"))
        object.__setattr__(self, "dim", check_dimension(self.dim))

    def farthest(self, q: float) -> Pair:
        """The ball's farthest pair lies on the sphere."""
        return Ball(2, self.radius, self.dim).farthest(q)

    def contains(self, value: Array, slack: float = 1e-9) -> bool:
        """Whether the norm is the radius."""
        radius = middle(self.radius)
        return bool(abs(np.linalg.norm(value) - radius) <= radius * slack)


@dataclass(frozen=True)
class Box(_Measured):
    """A product of intervals, given as (low, high, count) for each run of equal sides.

    >>> middle(Box.cube(0, 1, dim=768).diameter(1))
    768.0
    """

    sides: tuple[tuple[Number, Number, int], ...]

    def __post_init__(self) -> None:
        sides = tuple((number(low), number(high), check_dimension(n)) for low, high, n in self.sides)
        if not sides or any(low.a > high.b for low, high, _ in sides):
            raise InputError("a box needs at least one side, each with low <= high")
        if any(abs(end).b == float("inf") for low, high, _ in sides for end in (low, high)):
            raise InputError("a box needs finite sides; use Everything for an unbounded set")
        object.__setattr__(self, "sides", sides)

    @classmethod
    def cube(cls, low: Any, high: Any, dim: int) -> Box:
        """The box with equal sides."""
        return cls(((number(low), number(high), dim),))

    @property
    def dim(self) -> int:
        """How many coordinates its vectors have."""
        return sum(count for _, _, count in self.sides)

    def farthest(self, q: float) -> Pair:
        """Two opposite corners."""
        return Pair(tuple(Block(high, low, count) for low, high, count in self.sides))

    def contains(self, value: Array, slack: float = 1e-9) -> bool:
        """Whether each coordinate lies within its side."""
        counts = [n for _, _, n in self.sides]
        low = np.repeat([middle(side[0]) for side in self.sides], counts)
        high = np.repeat([middle(side[1]) for side in self.sides], counts)
        return bool(np.all(value >= low - slack * (1 + abs(low))) and np.all(value <= high + slack * (1 + abs(high))))


@dataclass(frozen=True)
class MinMax(_Measured):
    """What min-max normalisation puts out: [0, 1] in each coordinate, with a 0 and a 1 among them.

    A constant vector has no range: it becomes all zeros. In one dimension nothing else can happen.

    >>> middle(MinMax(dim=768).diameter(1)), middle(MinMax(dim=1).diameter(1))
    (768.0, 0.0)
    """

    dim: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "dim", check_dimension(self.dim))

    def farthest(self, q: float) -> Pair:
        """(1, 0, …, 0) and (0, 1, …, 1)."""
        if self.dim == 1:
            return Pair((Block(ZERO, ZERO, 1),))
        return Pair((Block(ONE, ZERO, 1), Block(ZERO, ONE, self.dim - 1)))

    def contains(self, value: Array, slack: float = 1e-9) -> bool:
        """Whether the least coordinate is 0 and the largest 1, or all are 0."""
        low, high = float(np.min(value)), float(np.max(value))
        return abs(low) <= slack and (abs(high - 1) <= slack or abs(high) <= slack)


@dataclass(frozen=True)
class Bits(_Measured):
    """All strings of `dim` bits.

    >>> middle(Bits(10).diameter(1))
    10.0
    """

    dim: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "dim", check_dimension(self.dim))

    def farthest(self, q: float) -> Pair:
        """All ones and all zeros."""
        return Pair((Block(ONE, ZERO, self.dim),))

    def contains(self, value: Array, slack: float = 1e-9) -> bool:
        """Whether each coordinate is 0 or 1."""
        return bool(np.all((value == 0) | (value == 1)))


@dataclass(frozen=True)
class OneHot(_Measured):
    """The k vectors with a single 1.

    >>> middle(OneHot(5).diameter(1))
    2.0
    """

    dim: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "dim", check_dimension(self.dim))

    def farthest(self, q: float) -> Pair:
        """Any two different ones."""
        if self.dim == 1:
            return Pair((Block(ONE, ONE, 1),))
        rest = (Block(ZERO, ZERO, self.dim - 2),) if self.dim > 2 else ()
        return Pair((Block(ONE, ZERO, 1), Block(ZERO, ONE, 1), *rest))

    def contains(self, value: Array, slack: float = 1e-9) -> bool:
        """Whether one coordinate is 1 and the others are 0."""
        return bool(np.all((value == 0) | (value == 1)) and np.sum(value) == 1)


@dataclass(frozen=True)
class Categories(_Measured):
    """The numbers 0, …, k−1 as names of k categories; distances between names mean nothing.

    >>> Categories(3).contains(np.array([2.0]))
    True
    """

    size: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", check_dimension(self.size))

    @property
    def dim(self) -> int:
        """A category is one value."""
        return 1

    def farthest(self, q: float) -> Pair:
        """The first and the last name."""
        return Pair((Block(iv.mpf(self.size - 1), ZERO, 1),))

    def contains(self, value: Array, slack: float = 1e-9) -> bool:
        """Whether it is one of the names."""
        return bool(value.shape == (1,) and value[0] in range(self.size))


@dataclass(frozen=True)
class Finite(_Measured):
    """A list of vectors. The farthest pair is found by exact comparison of all pairs.

    >>> middle(Finite([[0, 0], [3, 4]]).diameter(2))
    5.0
    """

    points: Sequence[Sequence[float]]

    def __post_init__(self) -> None:
        points = tuple(tuple(float(v) for v in point) for point in self.points)
        if not points or len({len(p) for p in points}) != 1 or not points[0]:
            raise InputError("a finite set needs at least one vector, all of one dimension")
        if not np.isfinite(np.array(points)).all():
            raise InputError("a finite set needs finite coordinates")
        if len(points) > 2000:
            raise InputError(f"a finite set may have at most 2000 vectors, got {len(points)}; use a Box or a Ball")
        object.__setattr__(self, "points", points)

    @property
    def dim(self) -> int:
        """How many coordinates its vectors have."""
        return len(self.points[0])

    def farthest(self, q: float) -> Pair:
        """The pair that exact arithmetic finds farthest among those that doubles cannot tell apart."""
        points = np.array(self.points)
        gaps = [np.linalg.norm(points[i:] - points[i], ord=q, axis=1) for i in range(len(points))]
        limit = max(float(row.max()) for row in gaps) * (1 - 1e-12)
        close = [(i, i + int(k)) for i, row in enumerate(gaps) for k in np.flatnonzero(row >= limit)]
        # Pairs that differ by the same amounts, in whatever order, are equally far apart.
        kinds = {tuple(sorted(np.abs(points[i] - points[j]).tolist())): (i, j) for i, j in close}
        i, j = max(kinds.values(), key=lambda ij: _exact_power(self.points[ij[0]], self.points[ij[1]], q))
        return Pair.of(self.points[i], self.points[j])

    def contains(self, value: Array, slack: float = 1e-9) -> bool:
        """Whether it is one of the vectors."""
        return bool(np.isclose(np.array(self.points), value, rtol=slack, atol=slack).all(axis=1).any())


def _exact_power(first: Sequence[float], second: Sequence[float], q: float) -> Fraction | float:
    """The qth power of the lq distance, exactly where q is whole."""
    gaps = [abs(Fraction(repr(a)) - Fraction(repr(b))) for a, b in zip(first, second, strict=True)]
    if q == float("inf"):
        return max(gaps)
    return sum((gap ** int(q) for gap in gaps), Fraction(0)) if q == int(q) else float(sum(float(g) ** q for g in gaps))


@dataclass(frozen=True)
class Apart(_Measured):
    """Any vector; two neighbours' vectors are at most `distance` apart in lp (a query's answers).

    Up to a common shift, such a pair lies in the lp ball of half that radius.

    >>> middle(Apart(2, 1, dim=4).diameter(1))
    2.0
    """

    p: float
    distance: Number
    dim: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "distance", check_positive(self.distance, "distance"))
        object.__setattr__(self, "dim", check_dimension(self.dim))

    @property
    def ball(self) -> Ball:
        """The ball that holds all pairs, after a shift."""
        return Ball(self.p, self.distance / 2, self.dim)

    def farthest(self, q: float) -> Pair:
        """The farthest pair of that ball."""
        return self.ball.farthest(q)

    def contains(self, value: Array, slack: float = 1e-9) -> bool:
        """Every finite vector."""
        return bool(np.isfinite(value).all())


@dataclass(frozen=True)
class Both:
    """The vectors that lie in two lp balls at once. Its diameter is known within bounds.

    >>> both = Both(Ball(2, 1, 4), Ball(float("inf"), 0.4, 4))
    >>> round(middle(both.diameter(1)), 9)
    3.2
    """

    first: Ball
    second: Ball

    @property
    def dim(self) -> int:
        """How many coordinates its vectors have."""
        return self.first.dim

    def farthest(self, q: float) -> Pair:
        """The best evenly spread pair: inside both, though perhaps not the farthest."""
        counts = {1, self.dim} | {min(self.dim, 2**k) for k in range(self.dim.bit_length())}
        ends = [(self.first, self.second), (self.second, self.first)]
        for one, other in ends:
            power = middle(_inverse(one.p) - _inverse(other.p))
            if power:
                crossing = (middle(one.radius) / middle(other.radius)) ** (1 / power)
                counts |= {min(self.dim, max(1, int(crossing) + step)) for step in (0, 1) if crossing < self.dim}
        return max((self._spread(k) for k in sorted(counts)), key=lambda pair: pair.distance(q).a)

    def _spread(self, count: int) -> Pair:
        sizes = [ball.radius / iv.mpf(count) ** _inverse(ball.p) for ball in (self.first, self.second)]
        size = minimum(*sizes)
        return _opposite(size, count, self.dim)

    def diameter(self, q: float) -> Number:
        """From the pair found to the smaller of the two balls' diameters."""
        return between(self.farthest(q).distance(q), minimum(self.first.diameter(q), self.second.diameter(q)))

    def contains(self, value: Array, slack: float = 1e-9) -> bool:
        """Whether it lies in both."""
        return self.first.contains(value, slack) and self.second.contains(value, slack)


@dataclass(frozen=True)
class Everything:
    """All vectors: nothing bounds them.

    >>> Everything(3).diameter(1) == INFINITY
    True
    """

    dim: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "dim", check_dimension(self.dim))

    def farthest(self, q: float, size: Any = 1) -> Pair:
        """An opposite pair of the size asked for; there is always a farther one."""
        return _opposite(number(size), 1, self.dim)

    def diameter(self, q: float) -> Number:
        """Infinite."""
        return INFINITY

    def contains(self, value: Array, slack: float = 1e-9) -> bool:
        """Every finite vector."""
        return bool(np.isfinite(value).all())
