"""Pairs of vectors in blocks of equal coordinates: those a region has, and what stages make of them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpassay.evidence.verifier.numbers import INF, ONE, ZERO, Number, iv, largest, middle, number, smallest, whole_part
from dpassay.evidence.verifier.regions import (
    INFINITE,
    NORMS,
    Reach,
    Shape,
    Stage,
    even_pairs,
    most_differing,
    power_sum,
    root,
)
from dpassay.evidence.verifier.rules import clamp, squash

SLACK = iv.mpf("1e-30")
# A pair that is spread over more coordinates is not looked at: fewer give a bound from below too.
MOST_COORDINATES = 1 << 18
LONGEST = 1 << 22


@dataclass(frozen=True, slots=True)
class Block:
    """`count` coordinates in which the first vector is x and the second y; the even, the odd, or the next ones."""

    x: Number
    y: Number
    count: int
    parity: str = "all"


Pair = tuple[Block, ...]


def distance(pair: Pair, q: float) -> Number:
    """The lq distance of the two vectors."""
    return power_sum([(block.x - block.y, block.count) for block in pair], q)


def differing(pair: Pair) -> list[tuple[Number, int]]:
    """The gaps y − x of the coordinates that differ, and how many there are of each."""
    return [(b.y - b.x, b.count) for b in pair if b.count and not (b.x.a == b.y.a and b.x.b == b.y.b)]


def lies_in(pair: Pair, shape: Shape) -> str:
    """Why a pair is not one of the region's, or nothing if it is."""
    if sum(block.count for block in pair) != shape.dim:
        return f"it has {sum(block.count for block in pair)} coordinates, not {shape.dim}"
    parities = {block.parity for block in pair}
    if parities != {"all"}:
        even = sum(block.count for block in pair if block.parity == "even")
        if "all" in parities or even != shape.dim - shape.dim // 2:
            return "its even and odd coordinates are not half of all"
    if shape.kind == "repeated":
        return _copies_lie_in(pair, shape)
    if shape.kind == "rows" and sum(count for _, count in differing(pair)) > 1:
        return "more than one coordinate differs"
    if shape.kind == "apart":
        far = distance(pair, shape.p).a > (shape.size * (1 + SLACK)).b
        return "the two vectors are farther apart than the query allows" if far else ""
    for side in ("x", "y"):
        values = [(getattr(block, side), block.count) for block in pair if block.count]
        if not _inside(values, shape):
            return f"the {'first' if side == 'x' else 'second'} vector lies outside"
    return ""


def _copies_lie_in(pair: Pair, shape: Shape) -> str:
    """Of a vector that is written down several times, each copy has the same coordinates; these stand together."""
    if any(block.count % shape.count for block in pair):
        return "its copies differ from one another"
    return lies_in(tuple(replace(block, count=block.count // shape.count) for block in pair), shape.parts[0])


def copied(pair: Pair, times: int) -> Pair:
    """A pair of which each vector is written down so often, equal coordinates together."""
    return tuple(replace(block, count=block.count * times) for block in pair)


def _inside(values: list[tuple[Number, int]], shape: Shape) -> bool:
    if shape.kind == "both":
        return all(_inside(values, part) for part in shape.parts)
    if shape.kind == "ball":
        return bool(power_sum(values, shape.p).a <= (shape.size * (1 + SLACK)).b)
    if shape.kind == "sphere":
        norm = power_sum(values, 2.0)
        return bool(norm.b == 0 or abs(norm - shape.size).a <= (shape.size * SLACK).b)
    if shape.kind == "box" or (shape.kind == "rows" and shape.sides):
        low, high, _ = shape.sides[0]
        slack = SLACK * largest([abs(low), abs(high), ONE])
        return len(shape.sides) == 1 and all((low - slack).a <= v.b and v.a <= (high + slack).b for v, _ in values)
    ones = sum(count for value, count in values if value.a == 1 and value.b == 1)
    zeros = sum(count for value, count in values if value.a == 0 and value.b == 0)
    total = sum(count for _, count in values)
    if shape.kind == "minmax":
        bounded = all(value.a >= 0 and value.b <= 1 for value, _ in values)
        return bounded and (zeros == total or (zeros > 0 and ones > 0))
    if shape.kind == "bits":
        return ones + zeros == total
    if shape.kind == "sparse":
        return 1 <= ones <= shape.count and ones + zeros == total
    if shape.kind == "onehot":
        return ones == 1 and ones + zeros == total
    if shape.kind == "categories":
        value = values[0][0]
        return total == 1 and bool(value.a == value.b) and middle(value) in range(shape.count)
    return all(value.a > -INF and value.b < INF for value, _ in values)


def opposite(size: Number, count: int, dim: int) -> Pair:
    """±size in so many coordinates, 0 in the others."""
    rest = (Block(ZERO, ZERO, dim - count),) if count < dim else ()
    return (Block(size, -size, count), *rest)


def farthest(shape: Shape, q: float) -> Pair:
    """Two of the region's vectors, as far apart in lq as any two."""
    if shape.kind in ("ball", "sphere", "apart"):
        return even_pair(shape, shape.dim if q < shape.p else 1)
    if shape.kind == "box":
        return tuple(Block(high, low, count) for low, high, count in shape.sides)
    if shape.kind == "both":
        size, count = max(even_pairs(shape), key=lambda pair: middle(pair[0] * root(pair[1], q)))
        return opposite(size, count, shape.dim)
    if shape.kind == "bits":
        return (Block(ONE, ZERO, shape.dim),)
    if shape.kind == "repeated":
        return copied(farthest(shape.parts[0], q), shape.count)
    if shape.kind == "rows":
        low, high = shape.sides[0][:2] if shape.sides else (ZERO, ONE)
        return (Block(high, low, 1), *((Block(low, low, shape.dim - 1),) if shape.dim > 1 else ()))
    if shape.kind == "sparse":
        unlike = most_differing(shape)
        ones = min(shape.count, unlike - 1) if unlike else 0  # the other string has a 1, too
        blocks = ((ONE, ZERO, ones), (ZERO, ONE, unlike - ones), (ZERO, ZERO, shape.dim - unlike))
        return tuple(Block(*block) for block in blocks if block[2]) if unlike else (Block(ONE, ONE, 1),)
    if shape.kind in ("minmax", "onehot") and shape.dim > 1:
        others = shape.dim - 1 if shape.kind == "minmax" else 1
        rest = shape.dim - 1 - others
        return (Block(ONE, ZERO, 1), Block(ZERO, ONE, others), *((Block(ZERO, ZERO, rest),) if rest else ()))
    if shape.kind == "categories":
        return (Block(iv.mpf(shape.count - 1), ZERO, 1),)
    if shape.kind == "everything":
        return opposite(ONE, 1, shape.dim)
    value = ONE if shape.kind == "onehot" else ZERO
    return (Block(value, value, 1),)


def even_pair(shape: Shape, count: int) -> Pair:
    """The opposite vectors of a ball, sphere or query that are spread evenly over so many coordinates."""
    radius = shape.size / 2 if shape.kind == "apart" else shape.size
    return opposite(radius / root(count, shape.p), count, shape.dim)


def laplace_pairs(shape: Shape) -> tuple[list[Pair], bool]:
    """Pairs that may be the worst for Laplace noise, and whether one of them is so at every ε.

    A larger gap in any coordinate is worse, and at equal l1 distance one coordinate is the worst; between
    those the l2 ball has no pair known to be the worst, and evenly spread ones serve from below.
    """
    if shape.kind == "repeated":  # repeating is linear, and keeps every symmetry that these statements rest on
        inner, known = laplace_pairs(shape.parts[0])
        pairs = [copied(pair, shape.count) for pair in inner]
        if any(sum(count for _, count in differing(pair)) > MOST_COORDINATES for pair in pairs):
            return [pairs[0], *(_shortened(pair) for pair in pairs)], False
        return pairs, known
    round_ball = shape.kind in ("ball", "sphere", "apart") and shape.dim > 1
    if round_ball and shape.p not in (1.0, INFINITE):
        counts = {4**k for k in range(shape.dim.bit_length() // 2 + 1)} | {shape.dim}
        wanted = {min(count, shape.dim, MOST_COORDINATES) for count in counts}
        first = [even_pair(shape, shape.dim)] if shape.dim > MOST_COORDINATES else []
        return [*first, *(even_pair(shape, count) for count in sorted(wanted, reverse=True))], False
    pair = farthest(shape, 1.0)
    if sum(count for _, count in differing(pair)) > MOST_COORDINATES:
        return [pair, _shortened(pair)], False
    return [pair], shape.kind != "both"


def _shortened(pair: Pair) -> Pair:
    """Only so many differing coordinates; the others are made equal."""
    blocks, left = [], MOST_COORDINATES
    for block in pair:
        used = min(left, block.count)
        left -= used
        blocks += [Block(block.x, block.y, used), Block(block.x, block.x, block.count - used)]
    return tuple(block for block in blocks if block.count)


def passed_on(stages: Sequence[Stage], reaches: Sequence[Reach], position: int) -> list[Pair]:
    """Pairs that surely can come in at a stage whose region is an outer bound only.

    They are the farthest ones of the last exact region, carried through the stages between; none if noise is there.
    """
    start = max(i for i in range(position + 1) if reaches[i].exact)
    between = stages[start:position]
    if any(stage.name not in _CARRY for stage in between):
        return []
    copies = any(reach.shape.kind == "repeated" for reach in reaches[start:position])
    if copies and any(stage.name == "binary" for stage in between):
        return []  # copies stand together in a pair, and places in a bit string have a parity
    shape = reaches[start].shape
    sources = [farthest(shape, q) for q in (1.0, 2.0, INFINITE)]
    if shape.kind == "everything":
        sources = [opposite(number(size), 1, shape.dim) for size in (1, 20)]
    found = []
    for source in sources:
        pair: Pair | None = _inside_of(shape, source)
        for stage in between:
            pair = None if pair is None else _carried(stage, pair)
        if pair is not None:
            found.append(pair)
    return found


def _inside_of(shape: Shape, pair: Pair) -> Pair:
    """A pair a little nearer to the middle: the limits of a box or of rows may never be reached."""
    inner = shape.parts[0] if shape.kind == "repeated" else shape
    if inner.kind not in ("box", "rows") or not inner.sides:
        return pair
    moved = []
    for block in pair:
        low, high = inner.sides[0][:2] if inner.kind == "rows" else (block.y, block.x)
        centre = (low + high) / 2
        x, y = (centre + (value - centre) * (1 - iv.mpf("1e-8")) for value in (block.x, block.y))
        alike_here = block.x.a == block.y.a and block.x.b == block.y.b
        moved.append(replace(block, x=x, y=x if alike_here else y))
    return tuple(moved)


_CARRY = (
    *("clip", "normalise", "minmax", "squash", "clamp", "repeat", "round", "binary"),
    *("dropout", "encode", "decode"),
)


def _carried(stage: Stage, pair: Pair) -> Pair | None:
    """A pair behind a stage; none where rounding cannot be decided."""
    if stage.name in ("dropout", "encode", "decode"):  # a function may also do nothing
        return pair
    if stage.name == "repeat":
        return copied(pair, stage.wholes["times"])
    if stage.name == "binary":
        return _written_in_bits(stage, pair)
    sides = [_carried_side(stage, [(getattr(b, side), b.count) for b in pair]) for side in ("x", "y")]
    if any(side is None for side in sides):
        return None
    first, second = (side for side in sides if side is not None)
    return tuple(Block(x, y, b.count, b.parity) for x, y, b in zip(first, second, pair, strict=True))


def _carried_side(stage: Stage, values: list[tuple[Number, int]]) -> list[Number] | None:
    plain = [value for value, _ in values]
    if stage.name in ("clip", "normalise"):
        norm = power_sum(values, NORMS[stage.words.get("norm", "l2")])
        if norm.b == 0:
            return plain
        target = stage.numbers["radius"] if stage.name == "clip" else ONE
        factor = target / norm
        return [value * (smallest([ONE, factor]) if stage.name == "clip" else factor) for value in plain]
    if stage.name == "minmax":
        low, high = smallest(plain), largest(plain)
        if (high - low).b == 0:
            return [ZERO] * len(plain)
        return [_unit((value - low) / (high - low)) for value in plain]
    if stage.name == "clamp":
        return [clamp(value, stage.numbers["low"], stage.numbers["high"]) for value in plain]
    if stage.name == "squash":
        return [squash(stage.words["kind"], value) for value in plain]
    rounded = [_nearest(value) for value in plain]
    return None if any(value is None for value in rounded) else rounded


def _unit(value: Number) -> Number:
    """0 and 1 are meant exactly where they are met within 50 digits."""
    for whole in (ZERO, ONE):
        if abs(value - whole).b < iv.mpf("1e-50"):
            return whole
    return value


def _nearest(value: Number) -> Number | None:
    """The nearest whole number; of two, the even one; none where the digits cannot tell."""
    low, high = whole_part(iv.mpf(value.a) + number("0.5")), whole_part(iv.mpf(value.b) + number("0.5"))
    if low != high:
        return None
    tie = bool(value.a == value.b and (value + number("0.5")).a == low)
    return iv.mpf(low - 1 if tie and low % 2 else low)


def _written_in_bits(stage: Stage, pair: Pair) -> Pair | None:
    """Sign, integer and fraction bits of each coordinate, gathered by the parity of their place."""
    integer, fraction = stage.wholes["integer"], stage.wholes["fraction"]
    length = 1 + integer + fraction
    if sum(block.count for block in pair) * length > LONGEST:
        return None
    columns = []
    for block in pair:
        bits = [_bits_of(value, integer, fraction) for value in (block.x, block.y)]
        if bits[0] is None or bits[1] is None:
            return None
        columns.append(np.tile(np.array([bits[0], bits[1]]), (1, block.count)))
    return gathered(np.concatenate(columns, axis=1))


def _bits_of(value: Number, integer: int, fraction: int) -> list[int] | None:
    magnitude = abs(value) * 2**fraction
    low, high = whole_part(iv.mpf(magnitude.a)), whole_part(iv.mpf(magnitude.b))
    if low != high and low < 2 ** (integer + fraction) - 1:
        return None
    whole = min(low, 2 ** (integer + fraction) - 1)
    return [int(value.a < 0), *((whole >> place) & 1 for place in reversed(range(integer + fraction)))]


def gathered(bits: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> Pair:
    """Two bit strings as blocks, the even and the odd places each by what the two strings have there."""
    blocks = []
    for start, parity in ((0, "even"), (1, "odd")):
        codes, counts = np.unique(2 * bits[0, start::2] + bits[1, start::2], return_counts=True)
        blocks += [
            Block(iv.mpf(int(c) // 2), iv.mpf(int(c) % 2), int(n), parity) for c, n in zip(codes, counts, strict=True)
        ]
    return tuple(blocks)


def by_parity(pair: Pair) -> Pair:
    """A pair of bit strings with its even and odd places apart."""
    if all(block.parity != "all" for block in pair):
        return pair
    rows = [np.repeat([round(middle(getattr(b, side))) for b in pair], [b.count for b in pair]) for side in ("x", "y")]
    return gathered(np.array(rows))


def alike(first: Pair, second: Pair) -> bool:
    """Whether two pairs have the same coordinates in some order, up to 10⁻⁷ of the largest."""
    slack = 1e-7 * max((abs(middle(v)) for b in (*first, *second) for v in (b.x, b.y)), default=0.0)
    rest = [[middle(block.x), middle(block.y), block.count] for block in second]
    for block in first:
        x, y, left = middle(block.x), middle(block.y), block.count
        for other in rest:
            if abs(x - other[0]) <= slack and abs(y - other[1]) <= slack:
                used = min(left, int(other[2]))
                left, other[2] = left - used, other[2] - used
        if left:
            return False
    return not any(other[2] for other in rest)
