"""Sets of values that a stage can put out. Each names its farthest pair, exactly, in any lq norm.

A pair is written in blocks, so that 10⁵ equal coordinates take one line. See docs/proofs/diameters.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np

from dpassay.core.numbers import INFINITY, ZERO, Number, between, iv, middle, minimum, number
from dpassay.errors import InputError
from dpassay.pipeline.pair import Array, Block, Pair, check_dimension, check_positive
from dpassay.pipeline.regions.discrete import Measured


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


def _check_power(p: float) -> None:
    if not p >= 1:
        raise InputError(f"a norm needs p from 1 to infinity, got {p}")


def _inverse(p: float) -> Number:
    """1/p, with 1/∞ = 0."""
    return ZERO if p == float("inf") else 1 / number(p)


def _opposite(radius: Number, count: int, dim: int) -> Pair:
    """±radius in the first `count` coordinates, 0 in the others."""
    rest = (Block(ZERO, ZERO, dim - count),) if count < dim else ()
    return Pair((Block(radius, -radius, count), *rest))


@dataclass(frozen=True)
class Ball(Measured):
    """All vectors whose lp norm is at most the radius, p from 1 to ∞.

    >>> round(middle(Ball(2, 1, dim=32).diameter(1)), 9)
    11.313708499
    """

    p: float
    radius: Number
    dim: int

    def __post_init__(self) -> None:
        _check_power(self.p)
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
class Sphere(Measured):
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
class Box(Measured):
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
class SensitivityBall(Measured):
    """Any vector; two neighbours' vectors are at most `distance` apart in lp (a query's answers).

    Up to a common shift, such a pair lies in the lp ball of half that radius.

    >>> middle(SensitivityBall(2, 1, dim=4).diameter(1))
    2.0
    """

    p: float
    distance: Number
    dim: int

    def __post_init__(self) -> None:
        _check_power(self.p)
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
class Intersection:
    """The vectors that lie in two lp balls at once. Its diameter is known within bounds.

    >>> both = Intersection(Ball(2, 1, 4), Ball(float("inf"), 0.4, 4))
    >>> round(middle(both.diameter(1)), 9)
    3.2
    """

    first: Ball
    second: Ball

    def __post_init__(self) -> None:
        if self.first.dim != self.second.dim:
            raise InputError(f"two balls need the same dimension, got {self.first.dim} and {self.second.dim}")

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


@dataclass(frozen=True)
class Repeated:
    """The vectors of another region, each written down several times over.

    >>> middle(Repeated(Ball(2, 1, dim=4), 9).diameter(1)), middle(Repeated(Ball(2, 1, dim=4), 9).diameter(2))
    (36.0, 6.0)
    """

    region: Region
    times: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "times", check_dimension(self.times, "times"))
        check_dimension(self.dim)

    @property
    def dim(self) -> int:
        """How many coordinates its vectors have."""
        return self.region.dim * self.times

    def farthest(self, q: float) -> Pair:
        """The other region's farthest pair, repeated."""
        return self.repeat(self.region.farthest(q))

    def repeat(self, pair: Pair) -> Pair:
        """A pair of the other region as one of this; equal coordinates stand together, which changes no loss."""
        return Pair(tuple(replace(block, count=block.count * self.times) for block in pair.blocks))

    def diameter(self, q: float) -> Number:
        """times^(1/q) as large."""
        return self.region.diameter(q) * iv.mpf(self.times) ** _inverse(q)

    def contains(self, value: Array, slack: float = 1e-9) -> bool:
        """Whether it is one vector of the other region, repeated."""
        copies = np.reshape(value, (self.times, self.region.dim))
        return bool((copies == copies[0]).all()) and self.region.contains(copies[0], slack)
