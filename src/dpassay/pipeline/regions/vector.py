"""Regions with a volume: balls, boxes, intersections of two balls, everything. And repeated vectors.

A pair is written in blocks, so that 10⁵ equal coordinates take one line. See docs/proofs/diameters.md.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dpassay.core.numbers import (
    INFINITY,
    ZERO,
    Number,
    between,
    digits,
    down,
    maximum,
    middle,
    minimum,
    number,
    real,
    up,
)
from dpassay.errors import InputError
from dpassay.pipeline.pair import Array, Block, Pair, check_dimension
from dpassay.pipeline.regions.base import SAFE, Region, unknown_move
from dpassay.values import dataclass


def _inverse(p: float) -> Number:
    """1/p, with 1/∞ = 0."""
    return ZERO if p == float("inf") else 1 / number(p)


def norm_of_ones(count: int, p: float) -> float:
    """The lp norm of a vector of ones, from above."""
    return float(np.linalg.norm(np.ones(count), ord=p)) * SAFE


def _opposite(radius: Number, count: int, dim: int) -> Pair:
    """±radius in the first `count` coordinates, 0 in the others."""
    rest = (Block(ZERO, ZERO, dim - count),) if count < dim else ()
    return Pair((Block(radius, -radius, count), *rest))


@dataclass(frozen=True)
class Ball(Region):
    """All vectors whose lp norm is at most the radius, p from 1 to ∞.

    >>> round(middle(Ball(2, 1, dim=32).diameter(1)), 9)
    11.313708499
    """

    kind = "ball"
    around_zero = True
    surrounds_zero = True
    p: float
    radius: Number
    dim: int

    def farthest(self, q: float) -> Pair:
        """±(r, …, r)/n^(1/p) if q < p, otherwise ±(r, 0, …, 0)."""
        count = self.dim if q < self.p else 1
        return self.diagonal(count)

    @property
    def ball(self) -> Ball:
        return self

    def largest_norm(self, p: float) -> float:
        return up(self.diameter(p) / 2)

    def diagonal(self, count: int) -> Pair:
        """The opposite pair spread evenly over the first `count` coordinates."""
        return _opposite(self.radius / real(count) ** _inverse(self.p), count, self.dim)

    def contains(self, value: Array, slack: float = 1e-9) -> bool:
        return bool(np.linalg.norm(value, ord=self.p) <= middle(self.radius) * (1 + slack))

    @property
    def cube_ends(self) -> tuple[Number, Number] | None:
        return (-self.radius, self.radius) if self.p == float("inf") else None

    def moving_a_sum(self) -> Region:
        return SensitivityBall(self.p, self.radius, self.dim)


@dataclass(frozen=True)
class Sphere(Region):
    """All vectors whose l2 norm is the radius.

    >>> middle(Sphere(1, dim=4).diameter(1))
    4.0
    """

    kind = "sphere"
    radius: Number
    dim: int

    def farthest(self, q: float) -> Pair:
        return self.ball.farthest(q)

    @property
    def ball(self) -> Ball:
        return Ball(2, self.radius, self.dim)

    def largest_norm(self, p: float) -> float:
        return up(self.diameter(p) / 2)

    def contains(self, value: Array, slack: float = 1e-9) -> bool:
        radius = middle(self.radius)
        return bool(abs(np.linalg.norm(value) - radius) <= radius * slack)

    def moving_a_sum(self) -> Region:
        return SensitivityBall(2, self.radius, self.dim)


@dataclass(frozen=True)
class Box(Region):
    """A product of intervals, given as (low, high, count) for each run of equal sides.

    >>> middle(Box.cube(0, 1, dim=768).diameter(1))
    768.0
    """

    kind = "box"
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
        return sum(count for _, _, count in self.sides)

    def farthest(self, q: float) -> Pair:
        return Pair(tuple(Block(high, low, count) for low, high, count in self.sides))

    def largest_norm(self, p: float) -> float:
        corner = [max(abs(middle(low)), abs(middle(high))) for low, high, _ in self.sides]
        return float(np.linalg.norm(np.repeat(corner, [count for _, _, count in self.sides]), ord=p)) * SAFE

    @property
    def surrounds_zero(self) -> bool:
        """Whether 0 lies inside every side."""
        return all(up(low) < 0 < down(high) for low, high, _ in self.sides)

    def to_data(self) -> dict[str, Any]:
        sides = [{"low": list(digits(low)), "high": list(digits(high)), "count": n} for low, high, n in self.sides]
        return {"kind": self.kind, "sides": sides, "dim": self.dim}

    def contains(self, value: Array, slack: float = 1e-9) -> bool:
        counts = [n for _, _, n in self.sides]
        low = np.repeat([middle(side[0]) for side in self.sides], counts)
        high = np.repeat([middle(side[1]) for side in self.sides], counts)
        return bool(np.all(value >= low - slack * (1 + abs(low))) and np.all(value <= high + slack * (1 + abs(high))))

    @property
    def cube_ends(self) -> tuple[Number, Number] | None:
        return self.sides[0][:2] if len(self.sides) == 1 else None

    def moving_a_sum(self) -> Region:
        """A constant is known to be one, but not always which."""
        if self.diameter(float("inf")) == 0:
            raise unknown_move("a constant")
        sides = []
        for low, high, count in self.sides:
            size = maximum(abs(low), abs(high))
            sides.append((ZERO, size, count) if abs(high).mid >= abs(low).mid else (-size, ZERO, count))
        return Box(tuple(sides))

    def moved_by(self, count: int) -> Region:
        return Box(tuple((low * count, high * count, n) for low, high, n in self.sides))


@dataclass(frozen=True)
class SensitivityBall(Region):
    """Any vector; two neighbors' vectors are at most `distance` apart in lp (a query's answers).

    Up to a common shift, such a pair lies in the lp ball of half that radius.

    >>> middle(SensitivityBall(2, 1, dim=4).diameter(1))
    2.0
    """

    kind = "apart"
    by_distance = True
    surrounds_zero = True
    p: float
    distance: Number
    dim: int

    @property
    def ball(self) -> Ball:
        """The ball that contains all pairs, after a shift."""
        return Ball(self.p, self.distance / 2, self.dim)

    def farthest(self, q: float) -> Pair:
        return self.ball.farthest(q)

    def moved_by(self, count: int) -> Region:
        return replace(self, distance=self.distance * count)


@dataclass(frozen=True)
class MonotoneBall(SensitivityBall):
    """Answers to a query that all move in the same direction between neighbors: none rises while another falls.

    The farthest pairs of `SensitivityBall` also move like this, so additive noise has the same loss on both.

    >>> middle(MonotoneBall(2, 1, dim=4).diameter(1))
    2.0
    """

    kind = "monotone"
    monotone = True
    surrounds_zero = False  # opposite directions are not neighbors


@dataclass(frozen=True)
class ClippedAnswers(SensitivityBall):
    """A query's answers after l2 clipping: as close in l2 as before, and in another norm nearly so.

    >>> both = ClippedAnswers(2, 1, dim=4, other=SensitivityBall(1, "1.5", dim=4))
    >>> middle(both.diameter(1)), middle(both.diameter(2))
    (1.5, 1.0)
    """

    kind = "clipped"
    surrounds_zero = False
    other: SensitivityBall

    def diameter(self, q: float) -> Number:
        """No more than either distance allows."""
        return minimum(self.farthest(q).distance(q), self.other.diameter(q))


@dataclass(frozen=True)
class Intersection(Region):
    """The intersection of two lp balls. Its diameter is known within bounds.

    >>> both = Intersection(Ball(2, 1, 4), Ball(float("inf"), 0.4, 4))
    >>> round(middle(both.diameter(1)), 9)
    3.2
    """

    kind = "both"
    around_zero = True
    surrounds_zero = True
    first: Ball
    second: Ball

    def __post_init__(self) -> None:
        if self.first.dim != self.second.dim:
            raise InputError(f"two balls need the same dimension, got {self.first.dim} and {self.second.dim}")

    @property
    def dim(self) -> int:
        return self.first.dim

    def farthest(self, q: float) -> Pair:
        """The best evenly spread pair: inside both, but perhaps not the farthest."""
        counts = {1, self.dim} | {min(self.dim, 2**k) for k in range(self.dim.bit_length())}
        ends = [(self.first, self.second), (self.second, self.first)]
        for one, other in ends:
            power = middle(_inverse(one.p) - _inverse(other.p))
            if power:
                crossing = (middle(one.radius) / middle(other.radius)) ** (1 / power)
                counts |= {min(self.dim, max(1, int(crossing) + step)) for step in (0, 1) if crossing < self.dim}
        return max((self.spread(k) for k in sorted(counts)), key=lambda pair: pair.distance(q).a)

    def knows_farthest(self, q: float) -> bool:
        return False

    def spread(self, count: int) -> Pair:
        """The opposite pair spread evenly over the first `count` coordinates, as far from 0 as both balls allow."""
        sizes = [ball.radius / real(count) ** _inverse(ball.p) for ball in (self.first, self.second)]
        size = minimum(*sizes)
        return _opposite(size, count, self.dim)

    def diameter(self, q: float) -> Number:
        """From the pair found to the smaller of the two balls' diameters."""
        return between(self.farthest(q).distance(q), minimum(self.first.diameter(q), self.second.diameter(q)))

    def largest_norm(self, p: float) -> float:
        return min(self.first.largest_norm(p), self.second.largest_norm(p))

    def contains(self, value: Array, slack: float = 1e-9) -> bool:
        return self.first.contains(value, slack) and self.second.contains(value, slack)

    def moving_a_sum(self) -> Region:
        first, second = (replace(ball, radius=ball.radius / 2) for ball in (self.first, self.second))
        return Intersection(first, second)

    def moved_by(self, count: int) -> Region:
        first, second = (replace(ball, radius=ball.radius * count) for ball in (self.first, self.second))
        return Intersection(first, second)


@dataclass(frozen=True)
class Everything(Region):
    """All vectors: nothing bounds them.

    >>> Everything(3).diameter(1) == INFINITY
    True
    """

    kind = "everything"
    around_zero = True
    all_vectors = True
    surrounds_zero = True
    dim: int

    def farthest(self, q: float, size: Any = 1) -> Pair:
        """An opposite pair of the requested size; there is always a farther one."""
        return _opposite(number(size), 1, self.dim)

    def diameter(self, q: float) -> Number:
        return INFINITY

    def moving_a_sum(self) -> Region:
        return self

    def moved_by(self, count: int) -> Region:
        return self


@dataclass(frozen=True)
class Repeated(Region):
    """The vectors of another region, each repeated several times.

    >>> middle(Repeated(Ball(2, 1, dim=4), 9).diameter(1)), middle(Repeated(Ball(2, 1, dim=4), 9).diameter(2))
    (36.0, 6.0)
    """

    kind = "repeated"
    region: Region
    times: int

    def __post_init__(self) -> None:
        super().__post_init__()
        check_dimension(self.dim)

    @property
    def dim(self) -> int:
        return self.region.dim * self.times

    @property
    def one_copy(self) -> Region:
        return self.region

    @property
    def copies(self) -> int:
        return self.times

    def farthest(self, q: float) -> Pair:
        return self.repeat(self.region.farthest(q))

    def repeat(self, pair: Pair) -> Pair:
        """A pair of the other region as one of this; equal coordinates are grouped, which changes no loss."""
        return Pair(tuple(replace(block, count=block.count * self.times) for block in pair.blocks))

    def diameter(self, q: float) -> Number:
        """times^(1/q) as large."""
        return self.region.diameter(q) * real(self.times) ** _inverse(q)

    def largest_norm(self, p: float) -> float:
        """times^(1/p) as large."""
        return self.region.largest_norm(p) * norm_of_ones(self.times, p)

    def contains(self, value: Array, slack: float = 1e-9) -> bool:
        """Whether it is one vector of the other region, repeated."""
        copies = np.reshape(value, (self.times, self.region.dim))
        return bool((copies == copies[0]).all()) and self.region.contains(copies[0], slack)

    def moving_a_sum(self) -> Region:
        return Repeated(self.region.moving_a_sum(), self.times)

    def moved_by(self, count: int) -> Region:
        return Repeated(self.region.moved_by(count), self.times)
