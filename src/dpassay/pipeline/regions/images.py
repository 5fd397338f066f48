"""Squashed balls and answers, and rounded answers: docs/proofs/diameters.md, points 14 and 15."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from dpassay.core.numbers import ONE, ZERO, Number, between, digits, down, exp, maximum, minimum, number, real, sqrt, up
from dpassay.pipeline.pair import Array, Block, Pair
from dpassay.pipeline.regions.base import INF, Region
from dpassay.pipeline.regions.vector import Ball, Box, SensitivityBall, norm_of_ones
from dpassay.values import dataclass

MOST_PAIRS = 16  # of rounded answers, none of which is known to be worse than another


def squashed(function: str, value: Number) -> Number:
    """Apply tanh or sigmoid to a number.

    >>> squashed("sigmoid", ZERO) == number("0.5")
    True
    """
    if function == "tanh":
        return 1 - 2 / (exp(2 * value) + 1)
    return 1 / (1 + exp(-value))


@dataclass(frozen=True)
class Squashed(Region):
    """The image of a ball, or of a query's answers, under tanh or the sigmoid of each coordinate.

    >>> from dpassay.core.numbers import middle
    >>> round(middle(Squashed(Ball(2, 5, 64), "tanh").diameter(1)), 9)  # 128 tanh(5/8)
    70.988764461
    """

    kind = "squashed"
    region: Ball | SensitivityBall
    function: str

    @property
    def dim(self) -> int:
        return self.region.dim

    @property
    def p(self) -> float:
        """The norm of the region before squashing."""
        return self.region.p

    @property
    def _ball(self) -> Ball:
        return self.region.ball if isinstance(self.region, SensitivityBall) else self.region

    def spread(self, count: int) -> Pair:
        """The images of the opposite pair that is spread evenly over the first `count` coordinates."""
        first = self._ball.diagonal(count).blocks[0]
        centre = squashed(self.function, ZERO)
        rest = (Block(centre, centre, self.dim - count),) if count < self.dim else ()
        return Pair((Block(squashed(self.function, first.x), squashed(self.function, first.y), count), *rest))

    def farthest(self, q: float) -> Pair:
        """Spread evenly over all coordinates for q ≤ p; otherwise the best that was tried."""
        if q <= self.p:
            return self.spread(self.dim)
        counts = {1, self.dim} | {2**k for k in range(self.dim.bit_length())}
        return max((self.spread(count) for count in sorted(counts)), key=lambda pair: pair.distance(q).a)

    def knows_farthest(self, q: float) -> bool:
        """Whether no pair is farther apart in lq than the one that is named."""
        if q <= self.p or q == INF or self.dim == 1:
            return True
        argument = self._ball.radius * (2 if self.function == "tanh" else 1)
        sinh = (exp(argument) - exp(-argument)) / 2
        return bool((sinh / argument - number(q) / number(self.p)).b <= 0)

    def diameter(self, q: float) -> Number:
        """The farthest pair's distance, or from that to what a contraction allows."""
        found = self.farthest(q).distance(q)
        if self.knows_farthest(q):
            return found
        slope = ONE if self.function == "tanh" else ONE / 4
        widest = self.diameter(INF) * real(self.dim) ** (1 / number(q))
        return between(found, minimum(slope * self._ball.diameter(q), widest))

    def largest_norm(self, p: float) -> float:
        if isinstance(self.region, SensitivityBall):
            return norm_of_ones(self.dim, p)
        widest = norm_of_ones(self.dim, p) * up(squashed(self.function, self._ball.radius))
        return min(widest, self._ball.largest_norm(p)) if self.function == "tanh" else widest

    def contains(self, value: Array, slack: float = 1e-9) -> bool:
        with np.errstate(divide="ignore", invalid="ignore"):
            before = np.arctanh(value) if self.function == "tanh" else np.log(value) - np.log1p(-value)
        return bool(np.isfinite(before).all()) and self.region.contains(before, slack)

    def moving_a_sum(self) -> Region:
        """As for the box around it, which loses something, but is enough for a bound."""
        most = self.region.diameter(INF) / 2
        return Box.cube(squashed(self.function, -most), squashed(self.function, most), self.dim).moving_a_sum()


@dataclass(frozen=True)
class Rounded(Region):
    """A query's answers, each coordinate rounded to an integer, ties to the even one; p is 1, 2 or ∞.

    However little a coordinate moves, its rounded value can move by 1.

    >>> from dpassay.core.numbers import middle
    >>> middle(Rounded(SensitivityBall(1, 1.5, 4)).diameter(1)), middle(Rounded(SensitivityBall(1, 1, 1)).diameter(1))
    (5.0, 2.0)
    """

    kind = "rounded"
    region: SensitivityBall
    limits: tuple[Number, Number] | None = None  # between which they were clamped; then differences may be smaller

    @property
    def dim(self) -> int:
        return self.region.dim

    @property
    def p(self) -> float:
        """The norm in which the answers are close."""
        return INF if self.dim == 1 else self.region.p

    def to_data(self) -> dict[str, Any]:
        limits = zip(("low", "high"), self.limits or (), strict=False)
        return {"kind": self.kind, "region": self.region.to_data(), **{end: list(digits(x)) for end, x in limits}}

    @cached_property
    def _budget(self) -> tuple[int, int, bool]:
        """The distance, or for p = 2 its square: the integers that are certainly below it, not above it; and a tie."""
        budget = self.region.distance**2 if self.p == 2 else self.region.distance
        low, high = Fraction(down(budget)), Fraction(up(budget))
        return math.ceil(low) - 1, math.floor(high), low == high and low.denominator == 1

    @cached_property
    def _steps(self) -> tuple[list[list[tuple[int, int]]], bool]:
        """Differences of two rounded answers as (size, count), and whether every other one is within one of these.

        Within: no larger in any coordinate, or a mean of such.
        """
        below, most, tie = self._budget
        known = tie or below == most
        n = self.dim
        if self.p == INF:
            size = most + 1 if tie and most % 2 else below + 1
            return [[(size, n)]], known
        if self.p == 1:
            tied = range(2 - most % 2, min(n, most) + 1, 2) if tie else range(0)
            chosen = tied if len(tied) <= MOST_PAIRS else (tied[0], tied[-1])
            found = [[(most - j + 2, 1), (2, j - 1), (0, n - j)] for j in chosen]
            return [[(below + 1, 1), (1, n - 1)], *found], known and len(tied) == len(chosen)
        level, more = _levels(below, n)
        found = [[(level + 2, more), (level + 1, n - more)], [(math.isqrt(below) + 1, 1), (1, n - 1)]]
        if tie:
            level, more = _levels(most, n)
            root = math.isqrt(most)
            found += [[(level + 1, n)]] if level % 2 and not more else []
            found += [[(root + 1, 1), (0, n - 1)]] if root % 2 and root * root == most else []
        return found, known and most <= 1

    def pairs(self) -> list[Pair]:
        """Pairs of rounded answers, one of which may be the worst."""
        return [_pair(step) for step in self._steps[0]]

    @property
    def complete(self) -> bool:
        """Whether one of `pairs` is the worst for log-concave noise that is symmetric in each coordinate."""
        return self._steps[1]

    def farthest(self, q: float) -> Pair:
        return max(self.pairs(), key=lambda pair: pair.distance(q).a)

    def knows_farthest(self, q: float) -> bool:
        """Whether no pair is farther apart in lq than the one that is named."""
        below, most, tie = self._budget
        return self.complete or ((tie or below == most) and (self.p == 1 or q == 1))

    def diameter(self, q: float) -> Number:
        """The farthest pair's distance, or from that to a bound on all; between limits no more than these allow."""
        found = self.farthest(q).distance(q)
        if not self.knows_farthest(q):
            found = between(found, maximum(found, self._bound(q)))
        if self.limits is None:
            return found
        wide = self.limits[1] - self.limits[0]
        return between(ZERO, minimum(found, wide if q == INF else wide * real(self.dim) ** (1 / number(q))))

    def _bound(self, q: float) -> Number:
        """A coordinate moves by at most 1 more than before, and by an integer."""
        if q == INF:
            return real(math.floor(Fraction(up(self.region.distance))) + 1)
        general = self.region.diameter(q) + real(self.dim) ** (1 / number(q))
        most = self._budget[1]
        whole = {INF: (most + 1) * self.dim, 1: most + self.dim, 2: sum(_levels(most, self.dim, total=True))}
        return minimum(general, real(whole[self.p])) if q == 1 else general

    def contains(self, value: Array, slack: float = 1e-9) -> bool:
        return bool(np.all(value == np.rint(value)))


@dataclass(frozen=True)
class Counted(Rounded):
    """Integer answers to a query: two neighbors' answers differ by integers, and by at most `distance`.

    >>> from dpassay.core.numbers import middle
    >>> middle(Counted(SensitivityBall(1, 1.5, 4)).diameter(1)), middle(Counted(SensitivityBall(2, 2, 3)).diameter(1))
    (1.0, 3.0)
    """

    kind = "counted"

    @property
    def p(self) -> float:
        """The norm in which the answers are close."""
        return 1.0 if self.region.p == 1 else INF if self.dim == 1 else self.region.p

    @cached_property
    def _steps(self) -> tuple[list[list[tuple[int, int]]], bool]:
        """Differences as (size, count), and whether every other one is no larger in any coordinate, or a mean of such.

        docs/proofs/diameters.md, point 17.
        """
        below, most, tie = self._budget
        known, n = tie or below == most, self.dim
        most = most if known else below  # if 50 digits cannot decide
        if self.p == 1:
            return [[(most, 1), (0, n - 1)]], known
        if self.p == INF:
            return [[(most, n)]], known
        level, more = _levels(most, n)
        found = [[(level + 1, more), (level, n - more)], [(math.isqrt(most), 1), (0, n - 1)]]
        return found[: 1 if most < 4 else 2], known and most < 4

    @property
    def unit_steps(self) -> bool:
        """Whether from one neighbor to the other it takes no more steps of one count than their distance is."""
        return self.limits is None and (self.p == 1 or self.dim == 1 or (self.p == 2 and self._budget[1] == 1))

    def _bound(self, q: float) -> Number:
        """The largest distance that integers can have."""
        most, n = self._budget[1], self.dim
        if q == 1 or self.p == 1:
            return real({1.0: most, INF: most * n}.get(self.p, _levels(most, n, total=True)[0]))
        if q == INF:
            return real(most if self.p == INF else math.isqrt(most))
        return sqrt(real(most if self.p == 2 else most * most * n)) if q == 2 else self.region.diameter(q)

    def knows_farthest(self, q: float) -> bool:
        """Whether no pair is farther apart in lq than the one that is named."""
        below, most, tie = self._budget
        return self.complete or ((tie or below == most) and q in (1, INF))


def _levels(square: int, count: int, total: bool = False) -> tuple[int, int]:
    """Integers with the largest sum and at most this sum of squares: all are k, except some that are k + 1.

    With `total`, also their sum, and how many there are.
    """
    level = math.isqrt(square // count)
    more = (square - level * level * count) // (2 * level + 1)
    return (level * count + more, count) if total else (level, more)


def _pair(steps: Iterable[tuple[int, int]]) -> Pair:
    return Pair(tuple(Block(number(size) if size else ZERO, ZERO, count) for size, count in steps if count))
