"""Pairs of vectors in blocks of equal coordinates: those a region has, and what stages make of them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dpassay.errors import CertificateError
from dpassay.evidence.verifier.numbers import INF, ONE, ZERO, Number, iv, largest, middle, number, smallest, whole_part
from dpassay.evidence.verifier.regions import NORMS, Shape, Stage, power_sum, squash
from dpassay.evidence.verifier.rules import clamp


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
    """The gaps y − x of the coordinates that differ beyond doubt, and how many there are of each."""
    gaps = [(block.y - block.x, block.count) for block in pair]
    return [(gap, count) for gap, count in gaps if gap.a > 0 or gap.b < 0]


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
    if shape.kind == "rows" and sum(b.count for b in pair if not (b.x.a == b.y.a and b.x.b == b.y.b)) > 1:
        return "more than one coordinate differs"
    if shape.kind == "apart" and distance(pair, shape.p).b > shape.size.a:
        return "the two vectors are farther apart than the query allows"
    gaps = [block.x - block.y for block in pair]
    if shape.monotone and not (all(gap.a >= 0 for gap in gaps) or all(gap.b <= 0 for gap in gaps)):
        return "some answers rise and others fall"
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
    """A pair with `times` copies of each vector, equal coordinates together."""
    return tuple(replace(block, count=block.count * times) for block in pair)


def _inside(values: list[tuple[Number, int]], shape: Shape) -> bool:
    if shape.kind in ("both", "apart"):
        return all(_inside(values, part) for part in shape.parts)
    if shape.kind == "ball":
        return bool(power_sum(values, shape.p).b <= shape.size.a)
    if shape.kind == "sphere":  # its points are named by vectors before they are normalised
        return False
    if shape.kind == "box" or (shape.kind == "rows" and shape.sides):
        low, high, _ = shape.sides[0]
        if shape.open:
            return all(low.b < v.a and v.b < high.a for v, _ in values)
        return all(low.b <= v.a and v.b <= high.a for v, _ in values)
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
    free = shape.kind == "everything" or (shape.kind == "rows" and not shape.sides)
    return free and all(value.a > -INF and value.b < INF for value, _ in values)


_EACH = ("clip", "normalise", "minmax", "squash", "clamp", "round")  # what works on each vector of a pair


def carried(stages: Sequence[Stage], pair: Pair) -> Pair:
    """What some stages, none of them random, make of a pair."""
    copies = False
    for stage in stages:
        copies |= stage.name == "repeat"
        if copies and stage.name == "binary":
            raise CertificateError("copies stand together in a pair, so the places of their bits are not known")
        found = _carried(stage, pair)
        if found is None:
            raise CertificateError(f"what {stage.name} makes of the pair is not known")
        pair = found
    return pair


def _carried(stage: Stage, pair: Pair) -> Pair | None:
    """A pair behind a stage; none where rounding cannot be decided."""
    if stage.name in ("dropout", "encode", "decode"):  # a function may also do nothing
        return pair
    if stage.name == "repeat":
        return copied(pair, stage.wholes["times"])
    if stage.name == "binary":
        return _written_in_bits(stage, pair)
    if stage.name not in _EACH:
        return None
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
    """Sign, integer and fraction bits of each coordinate."""
    columns = []
    for block in pair:
        x, y = (_bits_of(value, stage.wholes["integer"], stage.wholes["fraction"]) for value in (block.x, block.y))
        if x is None or y is None:
            return None
        columns.append((x, y, block.count))
    return _gathered(columns)


def _bits_of(value: Number, integer: int, fraction: int) -> list[int] | None:
    magnitude = abs(value) * 2**fraction
    low, high = whole_part(iv.mpf(magnitude.a)), whole_part(iv.mpf(magnitude.b))
    if (low != high and low < 2 ** (integer + fraction) - 1) or value.a < 0 <= value.b:
        return None
    whole = min(low, 2 ** (integer + fraction) - 1)
    return [int(value.a < 0), *((whole >> place) & 1 for place in reversed(range(integer + fraction)))]


def _gathered(columns: list[tuple[list[int], list[int], int]]) -> Pair:
    """Bits of the first and the second string, with their counts, as blocks of the even and of the odd places."""
    counts: Counter[tuple[int, int, str]] = Counter()
    start = 0
    for first, second, times in columns:
        # Of words of odd length every other one begins at an odd place.
        even = (times + (start % 2 == 0)) // 2 if len(first) % 2 else times * (start % 2 == 0)
        for place, (x, y) in enumerate(zip(first, second, strict=True)):
            counts[x, y, ("even", "odd")[place % 2]] += even
            counts[x, y, ("odd", "even")[place % 2]] += times - even
        start += times * len(first)
    return tuple(Block(iv.mpf(x), iv.mpf(y), n, parity) for (x, y, parity), n in sorted(counts.items()) if n)


def by_parity(pair: Pair) -> Pair:
    """A pair of bit strings with its even and odd places apart."""
    if all(block.parity != "all" for block in pair):
        return pair
    return _gathered([([round(middle(b.x))], [round(middle(b.y))], b.count) for b in pair])
