"""Sets of vectors as a certificate describes them: their size, and what each stage makes of one.

Written from the definitions of the stages, not from the code that made the certificate. The largest lq
distance in an lp ball of radius r in n dimensions is 2r·n^max(0, 1/q − 1/p).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from dpassay.verification.numbers import (
    INF,
    ONE,
    ZERO,
    Number,
    close,
    hull,
    is_infinite,
    iv,
    largest,
    middle,
    number,
    smallest,
    whole_part,
)

INFINITE = float("inf")
ADDITIVE = ("laplace", "gaussian", "onesided", "mixture")
NOISES = (*ADDITIVE, "flip", "bits", "exponential")
NORMS = {"l1": 1.0, "l2": 2.0, "linf": INFINITE}
SAME = "1e-40"
_TOUCHING = iv.mpf(SAME)


@dataclass(frozen=True, slots=True)
class Shape:
    """A set of vectors: its kind and those numbers that the kind has.

    >>> from dpassay.verification.numbers import middle
    >>> round(middle(diameter(Shape("ball", 32, p=2.0, size=ONE), 1.0)), 6)
    11.313708
    """

    kind: str
    dim: int
    p: float = 0.0
    size: Number = ZERO  # a ball's radius, a query's distance
    sides: tuple[tuple[Number, Number, int], ...] = ()
    parts: tuple[Shape, ...] = ()
    count: int = 0  # how many categories


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
    """The lq norm of a vector that has each value so many times."""
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
    if shape.kind == "box":
        return power_sum([(high - low, count) for low, high, count in shape.sides], q)
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
    if shape.kind == "box":
        return power_sum([(largest([abs(low), abs(high)]), count) for low, high, count in shape.sides], q)
    if shape.kind == "both":
        return smallest(largest_norm(part, q) for part in shape.parts)
    if shape.kind == "bits":
        return root(shape.dim, q)
    if shape.kind == "minmax":  # one coordinate at least is 0
        return ZERO if shape.dim == 1 else root(shape.dim - 1, q)
    return ONE if shape.kind == "onehot" else INF


def contains(outer: Shape, inner: Shape) -> bool:
    """Whether a set surely contains another, up to the last digit of a double."""
    if outer.dim != inner.dim:
        return False
    if outer.kind == "everything" or same(outer, inner):
        return True
    if outer.kind == "both":
        return all(contains(part, inner) for part in outer.parts)
    if outer.kind == "ball":
        return bool(largest_norm(inner, outer.p).b <= (outer.size * (1 + _TOUCHING)).b)
    if outer.kind == "box":
        low, high = _range(inner)
        slack = _TOUCHING * largest([abs(low), abs(high)])
        return all((a - slack).a <= low.a and high.b <= (b + slack).b for a, b, _ in outer.sides)
    return False


def _range(shape: Shape) -> tuple[Number, Number]:
    """The least and the largest value that a coordinate can have."""
    if shape.kind == "box":
        return smallest(low for low, _, _ in shape.sides), largest(high for _, high, _ in shape.sides)
    if shape.kind in ("bits", "minmax", "onehot"):
        return ZERO, ONE
    limit = largest_norm(shape, INFINITE)
    return -limit, limit


def same(first: Shape, second: Shape) -> bool:
    """Whether two descriptions are alike, numbers within 10⁻⁴⁰."""
    if (first.kind, first.dim, first.p, first.count) != (second.kind, second.dim, second.p, second.count):
        return False
    if len(first.sides) != len(second.sides) or len(first.parts) != len(second.parts):
        return False
    sides = zip(first.sides, second.sides, strict=True)
    return (
        close(first.size, second.size, SAME)
        and all(close(a, x, SAME) and close(b, y, SAME) and n == m for (a, b, n), (x, y, m) in sides)
        and all(same(a, b) for a, b in zip(first.parts, second.parts, strict=True))
    )


def _as_box(shape: Shape) -> Shape:
    return cube(-shape.size, shape.size, shape.dim) if shape.kind == "ball" and shape.p == INFINITE else shape


def equal_sets(mine: Shape, theirs: Shape) -> bool:
    """Whether two descriptions mean the same set: alike, a cube, or two balls of which one lies in the other."""
    if same(mine, theirs) or same(_as_box(mine), _as_box(theirs)):
        return True
    return (
        theirs.kind == "both"
        and any(same(mine, part) for part in theirs.parts)
        and all(contains(part, mine) for part in theirs.parts)
    )


def after(stage: Stage, before: Reach, dim: int) -> Reach:
    """What can come out of a stage, given what comes in.

    Behind noise only what swamps it is surely reached: every direction, far out, by one more stage.
    """
    found = _after(stage, before, dim)
    if not before.far and stage.name not in NOISES:
        return found
    swamping = before.shape.kind == "everything" and stage.name in _SWAMPED
    return replace(found, exact=found.exact and before.exact and swamping, far=True)


_SWAMPED = (*ADDITIVE, "round", "encode", "decode", "clip", "normalise", "minmax", "squash")


def _after(stage: Stage, before: Reach, dim: int) -> Reach:
    shape = before.shape
    rules: dict[str, Callable[[Stage, Reach], Reach]] = {
        "clip": _clipped,
        "normalise": _normalised,
        "minmax": _minmaxed,
        "squash": _squashed,
        "binary": _in_bits,
        "round": _rounded,
    }
    if stage.name in rules:
        return rules[stage.name](stage, before)
    if stage.name in ("encode", "decode"):
        # Any function, the worst one; but of a constant every function makes a constant.
        size = dim if stage.name == "encode" else shape.dim
        constant = diameter(shape, INFINITE).b <= 0
        return Reach(cube(ZERO, ZERO, size) if constant else everything(size), before.exact)
    if stage.name == "dropout":
        return before
    if stage.name == "query":
        return Reach(Shape("apart", shape.dim, NORMS[stage.words["norm"]], stage.numbers["distance"]), True)
    if stage.name == "category":
        return Reach(Shape("categories", 1, count=stage.wholes["size"]), before.exact)
    if stage.name == "onehot":
        return Reach(Shape("onehot", stage.wholes["size"]), before.exact)
    return _noised(stage, before)


def _noised(stage: Stage, before: Reach) -> Reach:
    shape = before.shape
    if stage.name == "exponential":
        return Reach(Shape("categories", 1, count=shape.dim), False)
    if stage.name == "flip":
        return Reach(shape, False)
    if stage.name == "bits":
        return Reach(Shape("bits", shape.dim), False)
    # Values without a bound can swamp the noise, so nothing changes for them.
    return Reach(everything(shape.dim), before.exact and shape.kind == "everything")


def _at_least(first: Number, second: Number) -> bool:
    """Whether the first is as large as the second, taking what 40 digits cannot tell apart as equal."""
    return bool((first * (1 + iv.mpf(SAME))).b >= second.a)


def _clipped(stage: Stage, before: Reach) -> Reach:
    """Scaling down keeps every vector's direction, so a set that contains 0 and is star-shaped is cut, no more."""
    shape, p, radius = before.shape, NORMS[stage.words["norm"]], stage.numbers["radius"]
    ball = Shape("ball", shape.dim, p, radius)
    if shape.kind == "everything":
        return Reach(ball, before.exact)
    if shape.kind == "apart":
        return _clipped_answers(shape, ball, before.exact)
    if _at_least(radius, largest_norm(shape, p)):
        return before
    if shape.kind == "ball" and shape.p == p:
        return Reach(ball, before.exact)
    if shape.kind == "ball":
        inside = _at_least(shape.size, largest_norm(ball, shape.p))
        return Reach(ball if inside else Shape("both", shape.dim, parts=(shape, ball)), before.exact)
    wide = shape.kind == "box" and all(
        _at_least(-low, radius) and _at_least(high, radius) for low, high, _ in shape.sides
    )
    return Reach(ball, before.exact and wide)


def _clipped_answers(shape: Shape, ball: Shape, exact: bool) -> Reach:
    """Clipping in l2 never moves two vectors apart in l2; in any norm it at most doubles their distance."""
    if ball.p == shape.p == 2:
        return Reach(shape if _at_least(2 * ball.size, shape.size) else ball, exact)
    if ball.p == shape.p:
        return Reach(replace(shape, size=2 * smallest([shape.size, ball.size])), False)
    return Reach(ball, False)


def _every_direction(shape: Shape) -> bool:
    """Whether two vectors of any two directions lie in the set, and neighbours can have them."""
    if shape.kind == "box":
        return all(low.b < 0 and high.a > 0 for low, high, _ in shape.sides)
    return shape.kind in ("everything", "ball", "both", "apart", "sphere")


def _normalised(stage: Stage, before: Reach) -> Reach:
    shape = before.shape
    return Reach(Shape("sphere", shape.dim, 2.0, ONE), before.exact and _every_direction(shape))


def _minmaxed(stage: Stage, before: Reach) -> Reach:
    """Shift and scale do not matter, so any set with an interior gives all of them."""
    shape = before.shape
    full = shape.kind == "box" and len(shape.sides) == 1 and shape.sides[0][0].b < shape.sides[0][1].a
    whole = _every_direction(shape) or shape.kind == "minmax" or full
    return Reach(Shape("minmax", shape.dim), before.exact and whole)


def squash(kind: str, value: Number) -> Number:
    """tanh or the sigmoid, both rising."""
    scaled = 2 * value if kind == "tanh" else value
    ends = [1 / (1 + iv.exp(-iv.mpf(end))) for end in (scaled.a, scaled.b)]
    sigmoid = hull(*ends)
    return 2 * sigmoid - 1 if kind == "tanh" else sigmoid


def _squashed(stage: Stage, before: Reach) -> Reach:
    shape, kind = before.shape, stage.words["kind"]
    whole = cube(-ONE if kind == "tanh" else ZERO, ONE, shape.dim)
    if shape.kind == "everything":
        return Reach(whole, before.exact)
    if shape.kind == "box":
        sides = tuple((squash(kind, low), squash(kind, high), n) for low, high, n in shape.sides)
        return Reach(replace(shape, sides=sides), before.exact)
    limit = largest_norm(shape, INFINITE)
    if is_infinite(limit):
        return Reach(whole, False)
    all_corners = shape.kind == "ball" and shape.p == INFINITE
    return Reach(cube(squash(kind, -limit), squash(kind, limit), shape.dim), before.exact and all_corners)


def _in_bits(stage: Stage, before: Reach) -> Reach:
    length = 1 + stage.wholes["integer"] + stage.wholes["fraction"]
    return Reach(Shape("bits", before.shape.dim * length), before.exact and before.shape.kind == "everything")


def _rounded(stage: Stage, before: Reach) -> Reach:
    shape = before.shape
    if shape.kind in ("bits", "onehot", "categories"):
        return before
    limit = largest_norm(shape, INFINITE)
    if is_infinite(limit):
        return Reach(everything(shape.dim), before.exact and shape.kind == "everything", far=True)
    whole = whole_part(limit + number("0.5"))
    return Reach(cube(iv.mpf(-whole), iv.mpf(whole), shape.dim), False)
