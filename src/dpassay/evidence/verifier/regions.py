"""Sets of vectors, and how large they are.

The largest lq distance in an lp ball of radius r in n dimensions is 2r·n^max(0, 1/q − 1/p).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dpassay.evidence.verifier.numbers import (
    INF,
    ONE,
    ZERO,
    Number,
    hull,
    iv,
    largest,
    middle,
    number,
    smallest,
    whole_part,
)

INFINITE = float("inf")
LARGEST = 10_000_000  # dimension, or number of categories
ADDITIVE = ("laplace", "gaussian", "onesided", "mixture", "radial")
NOISES = (*ADDITIVE, "flip", "bits", "exponential")
SINGLE = ("category", "hash", "bloom", "onehot")  # what takes one value, not a vector
NORMS = {"l1": 1.0, "l2": 2.0, "linf": INFINITE}


@dataclass(frozen=True, slots=True)
class Shape:
    """A set of vectors: its kind and those numbers that the kind has.

    >>> from dpassay.evidence.verifier.numbers import middle
    >>> round(middle(diameter(Shape("ball", 32, p=2.0, size=ONE), 1.0)), 6)
    11.313708
    """

    kind: str
    dim: int
    p: float = 0.0
    size: Number = ZERO  # a ball's radius, a query's distance
    sides: tuple[tuple[Number, Number, int], ...] = ()
    parts: tuple[Shape, ...] = ()
    free: bool = False  # of a query's answers: any vector can be one, not only any difference come
    monotone: bool = False  # of a query's answers: either none falls or none rises
    function: str = ""  # tanh or sigmoid, of what is squashed
    count: int = 0  # how many categories, ones of a sparse string, copies, or bits of a row
    open: bool = False  # whether the ends of the sides are approached only


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage: its name, its words and whole numbers, and its real numbers."""

    name: str
    words: Mapping[str, str]
    wholes: Mapping[str, int]
    numbers: Mapping[str, Number]
    parts: tuple[tuple[Number, Stage], ...] = ()  # of a mixture


@dataclass(frozen=True, slots=True)
class Reach:
    """What can come out of a stage; if exact, any two of these values can come from two neighbours.

    Where `far`, they are reached only in the limit of inputs that are ever farther away.
    """

    shape: Shape
    exact: bool
    far: bool = False


def everything(dim: int) -> Shape:
    """All vectors."""
    return Shape("everything", dim)


def cube(low: Any, high: Any, dim: int) -> Shape:
    """The box with equal sides."""
    return Shape("box", dim, sides=((low, high, dim),))


def root(count: int, q: float) -> Number:
    """count^(1/q)."""
    return ONE if q == INFINITE else iv.mpf(count) if q == 1 else iv.mpf(count) ** (1 / number(q))


def spread(dim: int, p: float, q: float) -> Number:
    """How much larger the lq norm of a vector can be than its lp norm."""
    return ONE if p <= q else root(dim, q) / root(dim, p)


def power_sum(values: list[tuple[Number, int]], q: float) -> Number:
    """The lq norm of a vector, given as values with their counts."""
    sizes = [(abs(value), count) for value, count in values if count]
    if q == INFINITE:
        return largest(size for size, _ in sizes)
    exponent = int(q) if q == int(q) else number(q)
    total = sum((size**exponent * count for size, count in sizes if size.b > 0), ZERO)
    return total if q == 1 else iv.sqrt(total) if q == 2 else total ** (1 / number(q)) if total.b > 0 else ZERO


def diameter(shape: Shape, q: float) -> Number:
    """The largest lq distance between two vectors; an interval where it is known within bounds only."""
    if shape.kind in ("ball", "sphere"):
        return 2 * shape.size * spread(shape.dim, shape.p, q)
    if shape.kind == "apart":
        return shape.size * spread(shape.dim, shape.p, q)
    if shape.kind == "squashed":
        return _squashed_diameter(shape, q)
    if shape.kind == "rounded":
        return rounded_diameter(shape, q)
    if shape.kind == "box":
        return power_sum([(high - low, count) for low, high, count in shape.sides], q)
    if shape.kind == "rows":  # one coordinate differs
        return shape.sides[0][1] - shape.sides[0][0] if shape.sides else INF
    if shape.kind == "repeated":
        return diameter(shape.parts[0], q) * root(shape.count, q)
    if shape.kind in ("sparse", "row-bits"):
        return root(most_differing(shape), q) if most_differing(shape) else ZERO
    if shape.kind == "both":
        at_most = smallest(diameter(part, q) for part in shape.parts)
        return hull(largest(2 * size * root(count, q) for size, count in even_pairs(shape)), at_most)
    if shape.kind == "bits" or (shape.kind == "minmax" and shape.dim > 1):
        return root(shape.dim, q)
    if shape.kind == "onehot" and shape.dim > 1:
        return root(2, q)
    if shape.kind == "categories":
        return iv.mpf(shape.count - 1)
    return INF if shape.kind == "everything" else ZERO


def squash(kind: str, value: Number) -> Number:
    """tanh or the sigmoid, both rising."""
    scaled = 2 * value if kind == "tanh" else value
    ends = [1 / (1 + iv.exp(-iv.mpf(end))) for end in (scaled.a, scaled.b)]
    sigmoid = hull(*ends)
    return 2 * sigmoid - 1 if kind == "tanh" else sigmoid


def even_gap(shape: Shape) -> Number:
    """By how much each coordinate differs in the farthest pair whose coordinates all differ alike."""
    if shape.kind == "both":
        return smallest(even_gap(part) for part in shape.parts)
    if shape.kind == "squashed":
        half = even_gap(shape.parts[0]) / 2
        return squash(shape.function, half) - squash(shape.function, -half)
    width = shape.size if shape.kind == "apart" else 2 * shape.size
    return width / root(shape.dim, shape.p)


def _squashed_diameter(shape: Shape, q: float) -> Number:
    """Opposite vectors of a ball behind tanh or the sigmoid: even ones for q ≤ p, else one coordinate or a bound."""
    inner = shape.parts[0]
    half, kappa = diameter(inner, INFINITE) / 2, ONE if shape.function == "tanh" else ONE / 2
    one = squash(shape.function, half) - squash(shape.function, -half)
    if q <= inner.p:
        return even_gap(shape) * root(shape.dim, q)
    argument = 2 * kappa * half
    sinh = (iv.exp(argument) - iv.exp(-argument)) / 2
    if q == INFINITE or shape.dim == 1 or (sinh / argument).b <= (number(q) / number(inner.p)).a:
        return one
    return hull(one, smallest([kappa**2 * diameter(inner, q), one * root(shape.dim, q)]))


def rounded_steps(shape: Shape) -> tuple[list[list[tuple[int, int]]], bool]:
    """Differences of a query's rounded answers, as sizes and how many coordinates have them.

    They are all extreme ones if the flag says so: every other one lies below a mean of these, in any order. A
    coordinate moves by m only if it moved by more than m − 1, or by m − 1 with m even, from tie to tie.
    """
    answers, n = shape.parts[0], shape.dim
    p = INFINITE if n == 1 else answers.p
    budget = answers.size**2 if p == 2 else answers.size
    below = -whole_part(iv.mpf(-budget.b)) - 1  # whole numbers below it, or equal to it
    most, tie = whole_part(iv.mpf(budget.b)), bool(budget.a == budget.b == whole_part(budget))
    if p == INFINITE:
        return [[(most + 1 if tie and most % 2 else below + 1, n)]], True
    if p == 1:
        ties = range(2 - most % 2, min(n, most) + 1, 2) if tie else range(0)
        found = [[(most - j + 2, 1), (2, j - 1), (0, n - j)] for j in ties[:16]]
        return [[(below + 1, 1), (1, n - 1)], *found], len(ties) <= 16
    if most < 1:
        return [[(1, n)]], True
    return ([[(1, n)], [(2, 1), (0, n - 1)]] if tie and most == 1 else [[(2, 1), (1, n - 1)]]), most <= 1


def rounded_diameter(shape: Shape, q: float) -> Number:
    """The largest of the extreme differences; where they are not known, one more than before in each coordinate."""
    steps, known = rounded_steps(shape)
    if known:
        return largest(power_sum([(iv.mpf(size), n) for size, n in step], q) for step in steps)
    answers = shape.parts[0]
    if q == INFINITE:
        return iv.mpf(whole_part(iv.mpf(answers.size.b)) + 1)
    found = diameter(answers, q) + root(shape.dim, q)
    if q == 1 and answers.p == 2:  # whole numbers with the largest sum and this sum of squares
        square = whole_part(iv.mpf((answers.size**2).b))
        level = math.isqrt(square // shape.dim)
        more = (square - level * level * shape.dim) // (2 * level + 1)
        return smallest([found, iv.mpf(shape.dim * (level + 1) + more)])
    return found


def most_differing(shape: Shape) -> int:
    """In how many coordinates two neighbours can differ, at most."""
    if shape.kind == "repeated":
        return shape.count * most_differing(shape.parts[0])
    if shape.kind == "sparse":
        # Two strings without a 1 in common; a single bit is always 1.
        return min(2 * shape.count, shape.dim) if shape.dim > 1 else 0
    if shape.kind == "onehot":
        return min(2, shape.dim) if shape.dim > 1 else 0
    if shape.kind == "row-bits":
        return whole_part(shape.size)
    return 1 if shape.kind == "rows" else shape.dim


def loses(stage: Stage) -> bool:
    """Whether a coordinate may be lost, value and all."""
    return stage.name == "mixture" and bool(stage.numbers["lost"].b > 0)


def even_pairs(shape: Shape) -> list[tuple[Number, int]]:
    """Opposite vectors in two balls at once, spread evenly: the size of a coordinate, and how many are not 0.

    min(r/k^(1/p), s/k^(1/q))·k^(1/t) is largest at an end or where the two balls cross.
    """
    first, second = shape.parts
    counts = {1, shape.dim}
    power = sum(sign / ball.p for sign, ball in ((1, first), (-1, second)))
    if power:
        at = middle(first.size / second.size) ** (1 / power)
        counts |= {min(shape.dim, max(1, int(at) + step)) for step in (0, 1) if at < shape.dim}
    return [(smallest(ball.size / root(k, ball.p) for ball in shape.parts), k) for k in sorted(counts)]


def largest_norm(shape: Shape, q: float) -> Number:
    """The largest lq norm of a vector."""
    if shape.kind in ("ball", "sphere"):
        return shape.size * spread(shape.dim, shape.p, q)
    if shape.kind == "box" or (shape.kind == "rows" and shape.sides):
        return power_sum([(largest([abs(low), abs(high)]), count) for low, high, count in shape.sides], q)
    if shape.kind == "repeated":
        return largest_norm(shape.parts[0], q) * root(shape.count, q)
    if shape.kind == "sparse":
        return root(shape.count, q)
    if shape.kind == "both":
        return smallest(largest_norm(part, q) for part in shape.parts)
    if shape.kind in ("bits", "row-bits"):
        return root(shape.dim, q)
    if shape.kind == "squashed":
        inner = shape.parts[0]
        if inner.kind == "apart":
            return root(shape.dim, q)
        widest = squash(shape.function, inner.size) * root(shape.dim, q)
        return smallest([widest, largest_norm(inner, q)]) if shape.function == "tanh" else widest
    if shape.kind == "minmax":  # one coordinate at least is 0
        return ZERO if shape.dim == 1 else root(shape.dim - 1, q)
    return ONE if shape.kind == "onehot" else INF
