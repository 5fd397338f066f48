"""How far apart l2 clipping moves two count vectors that differ by one: docs/proofs/diameters.md, point 20.

A search in doubles over everything that the distance depends on. What it leaves out is certainly smaller, and its
result is computed again in certified numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache

from dpassay.core.numbers import ONE, Number, digits, maximum, middle, minimum, real, sqrt
from dpassay.pipeline.pair import Block, Pair
from dpassay.values import dataclass

Counts = tuple[tuple[int, int], ...]  # numbers, and how many coordinates have each of them
_MOST_WORK = 200_000  # vectors and partial vectors to look at
_DEEPEST = 400  # how many coordinates may be moved away from the level
_SAFE = 1 - 1e-9  # far more than the rounding error of the search
_STEEPEST = 2 / (3 * math.sqrt(3))  # the maximum of u(1 − u²)


class _TooMuch(Exception):
    """There are more vectors to look at than is reasonable."""


@dataclass(frozen=True, slots=True)
class ClippedStep:
    """The largest l1 distance between two clipped count vectors that differ by one in a coordinate, and the vectors."""

    distance: Number
    pair: Pair


@dataclass(frozen=True, slots=True)
class _Step:
    """The coordinate that moves, from `own` to own + 1, and the others; their sum and sum of squares decide."""

    own: int
    others: Counts
    total: int
    squares: int

    def distance(self, radius: Number) -> Number:
        before, after = (
            minimum(ONE, radius / sqrt(real(own * own + self.squares))) if own or self.squares else ONE
            for own in (self.own, self.own + 1)
        )
        return after * (self.own + 1) - before * self.own + (before - after) * self.total

    def pair(self) -> Pair:
        rest = [Block(real(size), real(size), count) for size, count in self.others if count]
        return Pair((Block(real(self.own + 1), real(self.own), 1), *rest))


def clipped_step(dim: int, radius: Number) -> ClippedStep | None:
    """The largest distance for vectors of this dimension; None if that takes too long to find.

    >>> round(middle(clipped_step(3, real(3)).distance), 9)  # from (1, 2, 2) to (2, 2, 2): 3 − √3
    1.267949192
    """
    near = middle(radius)
    if not (1e-6 < near < 1e4) or radius.delta.b > radius.a * 1e-20:
        return None
    return _clipped_step(dim, digits(radius), near)


@lru_cache(maxsize=64)
def _clipped_step(dim: int, ends: tuple[str, str], near: float) -> ClippedStep | None:
    radius = real(list(ends))
    try:
        steps = list(_largest_steps(dim, near))
    except _TooMuch:
        return None
    distances = [step.distance(radius) for step in steps]
    best = max(range(len(steps)), key=lambda i: distances[i].a)
    return ClippedStep(maximum(*distances), steps[best].pair())


def _largest_steps(dim: int, radius: float) -> Iterator[_Step]:
    """All steps that may be the largest, by their length: those left out are smaller, or as large as one of these."""
    found = [(_distance(0, 0, 0, radius), _Step(0, ((0, dim - 1),), 0, 0))]
    best, work, square = found[0][0], [_MOST_WORK], max(0, math.floor(radius * radius - 2 * radius) - 2)
    while square == 0 or _beyond(dim, radius, square) > best * _SAFE:
        for own in range(math.isqrt(square) + 1):
            _spend(work)
            squares = square - own * own
            if square + 2 * own + 1 > radius * radius * _SAFE and (dim > 1 or squares == 0):
                for total in _totals(dim - 1, squares):
                    value = _distance(own, total, squares, radius)
                    if value <= best * _SAFE:
                        break
                    others = _vector(dim - 1, total, squares, work)
                    if others is not None:
                        found.append((value, _Step(own, others, total, squares)))
                        best = max(best, value)
                        break
        square += 1
    return (step for value, step in found if value >= best * _SAFE)


def _distance(own: int, total: int, squares: int, radius: float) -> float:
    lengths = (math.sqrt(own * own + squares), math.sqrt((own + 1) ** 2 + squares))
    before, after = (radius / length if length > radius else 1.0 for length in lengths)
    return after * (own + 1) - before * own + (before - after) * total


def _beyond(dim: int, radius: float, square: int) -> float:
    """What no step exceeds that begins at this squared length or beyond; inside the ball, nothing is known."""
    if square <= radius * radius:
        return math.inf
    return radius / math.sqrt(square) * min((1 + math.sqrt(dim)) / 2, 1 + _STEEPEST * math.sqrt(square))


def _spend(work: list[int]) -> None:
    work[0] -= 1
    if work[0] < 0:
        raise _TooMuch


def _totals(count: int, squares: int) -> Iterator[int]:
    """The sums that `count` counts with this sum of squares can have, and perhaps others, from the largest."""
    if count == 0:
        yield 0
        return
    level = math.isqrt(squares // count)
    most = (squares + count * level * (level + 1)) // (2 * level + 1)
    yield from range(most - (most - squares) % 2, math.isqrt(squares - 1) if squares else -1, -2)


def _vector(count: int, total: int, squares: int, work: list[int]) -> Counts | None:
    """So many counts with this sum and this sum of squares.

    They are a level, or one more; and a few that are farther away, by k below or by k + 1 above, each of which adds
    k(k + 1) to the squares.
    """
    if count == 0:
        return ()
    level, above = divmod(total, count)
    excess, odd = divmod(squares - count * level * level - above * (2 * level + 1), 2)
    if excess < 0 or odd:
        return None
    if excess > _DEEPEST:
        raise _TooMuch
    moves = _moves(excess, (math.isqrt(8 * excess + 1) - 1) // 2, True, (level, count, above), work)
    if moves is None:
        return None
    higher = above - sum(moves)
    return (*((level + move, 1) for move in moves), (level + 1, higher), (level, count - len(moves) - higher))


def _moves(
    excess: int, largest: int, upward: bool, left: tuple[int, int, int], work: list[int]
) -> tuple[int, ...] | None:
    """Moves away from the level, in descending order of k and for each k upward first, that add up to the excess."""
    _spend(work)
    level, count, above = left
    if excess == 0:
        return () if 0 <= above <= count else None
    if count == 0:
        return None
    for k in range(min(largest, (math.isqrt(8 * excess + 1) - 1) // 2), 0, -1):
        for move in (k + 1, -k) if k < largest or upward else (-k,):
            if level + move >= 0:
                rest = level, count - 1, above - move
                found = _moves(excess - k * (k + 1) // 2, k, move > 0, rest, work)
                if found is not None:
                    return (move, *found)
    return None
