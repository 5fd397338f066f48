"""Sets of vectors, and how large they are: docs/proofs/diameters.md."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from dpassay.evidence.verifier.arithmetic.numbers import (
    INF,
    ONE,
    ZERO,
    Number,
    iv,
    largest,
    number,
    rounded_up,
    smallest,
    whole_part,
)
from dpassay.values import dataclass

INFINITE = float("inf")
LARGEST = 10_000_000  # dimension, or number of categories
WHOLE = ("discrete_laplace", "discrete_gaussian")  # integer noise
_AROUND_ZERO = ("laplace", "gaussian", "radial", "mahalanobis", "truncated_laplace", "staircase")
ADDITIVE = (*_AROUND_ZERO, "onesided", "mixture", *WHOLE)
DIRECTIONS = ("vmf", "purkayastha")
NOISES = (*ADDITIVE, *DIRECTIONS, "bounded_laplace", "flip", "bits", "exponential", "top-k", "noisymax")
SINGLE = ("category", "hash", "bloom", "onehot")  # stages that take one value, not a vector
NORMS = {"l1": 1.0, "l2": 2.0, "linf": INFINITE}


@dataclass(frozen=True, slots=True)
class NormBall:
    """Two vectors are at most `width` apart in the lp norm, and none is longer than `radius`."""

    p: float
    width: Number
    radius: Number


@dataclass(frozen=True, slots=True)
class RegionShape:
    """A set of vectors. Its kind determines which of the fields are used.

    box: each coordinate lies between two limits, and neighbors differ in at most `differing` of them. The values may
    be `reals`, `bits`, `sparse` (bits, some of which are 1) or `minmax` (some are 0 and some 1, or all are 0).
    ball, sphere: vectors in one or two balls. answers: a query's, at most a given distance apart.
    squashed, rounded: the image of another set under tanh or the sigmoid, or rounding. repeated: copies of a vector.
    categories: one of `count` names.
    """

    kind: str
    dim: int
    low: Number = -INF
    high: Number = INF
    differing: int = 0
    values: str = "reals"
    ones: int = 0  # how many coordinates can be nonzero
    kept: int = 0  # how many of the largest scores may be chosen, if not all
    open: bool = False  # whether the limits are only approached
    balls: tuple[NormBall, ...] = ()
    free: bool = False  # for answers: any vector can be one, not only any difference can occur
    monotone: bool = False  # for answers: either none falls or none rises
    parts: tuple[RegionShape, ...] = ()
    function: str = ""  # tanh or sigmoid, if squashed
    count: int = 0  # how many categories, copies, or bits of a row
    whole: bool = False  # whether all values are integers
    unknown: bool = False  # whether it stands for a constant that some function gave, whichever that is

    @property
    def one(self) -> RegionShape:
        """One of several copies."""
        return self.parts[0] if self.kind == "repeated" else self

    @property
    def everything(self) -> bool:
        """Whether these are all vectors, and any two can be neighbors."""
        return self.kind == "box" and bool(self.low.a == -INF) and self.differing == self.dim

    @property
    def constant(self) -> Number | None:
        """What each coordinate of every vector is, if that is known."""
        if self.kind == "repeated":
            return self.one.constant
        point = self.kind == "box" and self.low.a == self.high.a and self.low.b == self.high.b
        return self.low if point and self.values == "reals" and not self.unknown else None

    @property
    def one_hot(self) -> bool:
        return self.values == "sparse" and self.ones == 1

    @property
    def most_differing(self) -> int:
        """In how many coordinates two neighbors can differ, at most."""
        if self.kind == "repeated":
            return self.count * self.one.most_differing
        return self.differing if self.kind == "box" else self.dim


@dataclass(frozen=True, slots=True)
class ParsedStage:
    """A stage: its name, its words and integers, and its real numbers."""

    name: str
    words: Mapping[str, str]
    wholes: Mapping[str, int]
    numbers: Mapping[str, Number]


@dataclass(frozen=True, slots=True)
class Reach:
    """The possible outputs of a stage; if exact, any two of these values can come from two neighbors.

    If `far`, they are reached only in the limit of inputs that are ever farther away. If it `varies`, two neighbors
    certainly can have different values, whichever these are.
    """

    shape: RegionShape
    exact: bool
    far: bool = False
    varies: bool = False


def box(low: Number, high: Number, dim: int, differing: int | None = None, open_ends: bool = False) -> RegionShape:
    """Numbers between two limits."""
    return RegionShape("box", dim, low, high, dim if differing is None else differing, ones=dim, open=open_ends)


def everything(dim: int) -> RegionShape:
    """All vectors."""
    return box(-INF, INF, dim)


def bits(dim: int, differing: int, row: int = 0) -> RegionShape:
    """Strings of bits, of which `differing` can differ; if rows are written in bits, those of one row."""
    return RegionShape("box", dim, ZERO, ONE, differing, "bits", dim, count=row)


def sparse(dim: int, ones: int) -> RegionShape:
    """Strings with one to `ones` ones; two of them need not have one in common, and a single bit is always 1."""
    return RegionShape("box", dim, ZERO, ONE, min(2 * ones, dim) if dim > 1 else 0, "sparse", ones)


def minmax(dim: int) -> RegionShape:
    """Vectors whose smallest coordinate is 0 and whose largest is 1, or all are equal."""
    return RegionShape("box", dim, ZERO, ONE, dim if dim > 1 else 0, "minmax", dim - 1)


def ball(p: float, radius: Number, dim: int) -> RegionShape:
    """All vectors of at most this lp norm."""
    return RegionShape("ball", dim, balls=(NormBall(p, 2 * radius, radius),))


def root(count: int, q: float) -> Number:
    """count^(1/q), q = 1, 2 or ∞."""
    return ONE if q == INFINITE else iv.mpf(count) if q == 1 else iv.sqrt(iv.mpf(count))


def spread(dim: int, p: float, q: float) -> Number:
    """How much larger the lq norm of a vector can be than its lp norm."""
    return ONE if p <= q else root(dim, q) / root(dim, p)


def power_sum(values: list[tuple[Number, int]], q: float) -> Number:
    """The lq norm of a vector, given as values with their counts; q = 1, 2 or ∞."""
    sizes = [(abs(value), count) for value, count in values if count]
    if q == INFINITE:
        return largest(size for size, _ in sizes)
    total = sum((size ** int(q) * count for size, count in sizes), ZERO)
    return total if q == 1 else iv.sqrt(total)


def diameter(shape: RegionShape, q: float) -> Number:
    """A number whose upper end no lq distance between two vectors exceeds; for most sets the largest distance."""
    if shape.kind == "repeated":
        return diameter(shape.one, q) * root(shape.count, q)
    if shape.kind in ("answers", "rounded") and shape.high.b < INF:  # clamped
        free = replace(shape, low=-INF, high=INF)
        return smallest([diameter(free, q), (shape.high - shape.low) * root(shape.dim, q)])
    if shape.kind == "answers" and shape.whole and shape.balls[0].p == 2:
        return _counted_diameter(shape, q)
    if shape.balls:
        return smallest(one.width * spread(shape.dim, one.p, q) for one in shape.balls)
    if shape.kind == "squashed":
        return _squashed_diameter(shape, q)
    if shape.kind == "rounded":
        return _rounded_diameter(shape, q)
    if shape.kind == "categories":
        return iv.mpf(shape.count - 1)
    return (shape.high - shape.low) * root(shape.differing, q) if shape.differing else ZERO


def largest_norm(shape: RegionShape, q: float) -> Number:
    """A number whose upper end no lq norm of a vector exceeds."""
    if shape.kind == "repeated":
        return largest_norm(shape.one, q) * root(shape.count, q)
    if shape.balls:
        return smallest(one.radius * spread(shape.dim, one.p, q) for one in shape.balls)
    if shape.kind == "squashed":
        inner = shape.parts[0]
        widest = squash(shape.function, inner.balls[0].radius) * root(shape.dim, q)
        return smallest([widest, largest_norm(inner, q)]) if shape.function == "tanh" else widest
    if shape.kind != "box":
        return INF
    return largest([abs(shape.low), abs(shape.high)]) * root(shape.ones, q) if shape.ones else ZERO


def squash(kind: str, value: Number) -> Number:
    """tanh or the sigmoid, both increasing."""
    scaled = 2 * value if kind == "tanh" else value
    low, high = (1 / (1 + iv.exp(-iv.mpf(end))) for end in (scaled.a, scaled.b))
    sigmoid = iv.mpf([low.a, high.b])
    return 2 * sigmoid - 1 if kind == "tanh" else sigmoid


def even_gap(shape: RegionShape) -> Number:
    """How much each coordinate differs in the farthest pair whose coordinates all differ equally."""
    if shape.kind == "squashed":
        half = even_gap(shape.parts[0]) / 2
        return squash(shape.function, half) - squash(shape.function, -half)
    return smallest(one.width / root(shape.dim, one.p) for one in shape.balls)


def _squashed_diameter(shape: RegionShape, q: float) -> Number:
    """Opposite vectors of a ball after tanh or the sigmoid: even ones for q ≤ p, else one coordinate or a bound."""
    inner, p = shape.parts[0], shape.parts[0].balls[0].p
    if q <= p:
        return even_gap(shape) * root(shape.dim, q)
    half, kappa = diameter(inner, INFINITE) / 2, ONE if shape.function == "tanh" else ONE / 2
    one = squash(shape.function, half) - squash(shape.function, -half)
    argument = 2 * kappa * half
    sinh = (iv.exp(argument) - iv.exp(-argument)) / 2
    if q == INFINITE or shape.dim == 1 or (sinh / argument).b <= (number(q) / number(p)).a:
        return one
    return smallest([kappa**2 * diameter(inner, q), one * root(shape.dim, q)])


def rounded_steps(shape: RegionShape) -> tuple[list[list[tuple[int, int]]], bool]:
    """Differences of a query's rounded answers, as sizes with numbers of coordinates: docs/proofs/rounding.md.

    If the flag is set, they are all the extreme ones: every other one lies below a mean of these, in any order. A
    coordinate moves by m only if it moved by more than m − 1, or by m − 1 with m even, from tie to tie. Answers that
    may be farther apart include all others, so that the upper end of the distance is the worst.
    """
    answers, n = shape.parts[0].balls[0], shape.dim
    p = INFINITE if n == 1 else answers.p
    budget = answers.width**2 if p == 2 else answers.width
    below, most = rounded_up(budget) - 1, whole_part(budget)  # the largest integers below it, and up to it
    tie = below < most
    if p == INFINITE:
        return [[(most + 1 if tie and most % 2 else below + 1, n)]], True
    if p == 1:
        ties = range(2 - most % 2, min(n, most) + 1, 2) if tie else range(0)
        found = [[(most - j + 2, 1), (2, j - 1), (0, n - j)] for j in ties[:16]]
        return [[(below + 1, 1), (1, n - 1)], *found], len(ties) <= 16
    if most < 1:
        return [[(1, n)]], True
    return ([[(1, n)], [(2, 1), (0, n - 1)]] if tie and most == 1 else [[(2, 1), (1, n - 1)]]), most <= 1


def _rounded_diameter(shape: RegionShape, q: float) -> Number:
    """The largest of the extreme differences; if they are not known, one more than before in each coordinate."""
    steps, known = rounded_steps(shape)
    if known:
        return largest(power_sum([(iv.mpf(size), n) for size, n in step], q) for step in steps)
    answers = shape.parts[0].balls[0]
    if q == INFINITE:
        return iv.mpf(whole_part(iv.mpf(answers.width.b)) + 1)
    found = diameter(shape.parts[0], q) + root(shape.dim, q)
    if q == 1 and answers.p == 2:  # integers with the largest sum and this sum of squares
        square = whole_part(iv.mpf((answers.width**2).b))
        level = math.isqrt(square // shape.dim)
        more = (square - level * level * shape.dim) // (2 * level + 1)
        return smallest([found, iv.mpf(shape.dim * (level + 1) + more)])
    return found


def _counted_diameter(shape: RegionShape, q: float) -> Number:
    """Integers whose squares sum to at most a given number."""
    square = whole_part(iv.mpf((shape.balls[0].width ** 2).b))
    if q == 2:
        return iv.sqrt(iv.mpf(square))
    if q == INFINITE:
        return iv.mpf(math.isqrt(square))
    level = math.isqrt(square // shape.dim)
    return iv.mpf(shape.dim * level + (square - level * level * shape.dim) // (2 * level + 1))


def is_whole(shape: RegionShape) -> bool:
    """Whether all values are known to be integers."""
    return shape.whole or shape.one.values in ("bits", "sparse") or shape.one.kind == "rounded" or shape.one.whole


def may_drop_values(stage: ParsedStage) -> bool:
    """Whether a coordinate may be lost, together with its value."""
    return stage.name == "mixture" and bool(stage.numbers["lost"].b > 0)
