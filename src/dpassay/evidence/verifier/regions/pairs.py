"""Pairs of vectors in blocks of equal coordinates: those in a region, and what stages do to them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from dpassay.errors import CertificateError
from dpassay.evidence.verifier.arithmetic.numbers import (
    ONE,
    ZERO,
    Number,
    is_point,
    iv,
    largest,
    least_whole_part,
    middle,
    quotient,
    smallest,
    whole_part,
)
from dpassay.evidence.verifier.regions.regions import NORMS, ParsedStage, RegionShape, is_whole, power_sum, squash
from dpassay.evidence.verifier.regions.rules import clamp
from dpassay.values import dataclass


@dataclass(frozen=True, slots=True)
class PairBlock:
    """`count` coordinates in which the first vector is x and the second y; the even, the odd, or the next ones."""

    x: Number
    y: Number
    count: int
    positions: str = "all"


Pair = tuple[PairBlock, ...]
_HALF = ONE / 2


def distance(pair: Pair, q: float) -> Number:
    """The lq distance of the two vectors."""
    return power_sum([(block.x - block.y, block.count) for block in pair], q)


def differing(pair: Pair) -> list[tuple[Number, int]]:
    """The gaps y − x of the coordinates that certainly differ, and how many there are of each."""
    gaps = [(block.y - block.x, block.count) for block in pair]
    return [(gap, count) for gap, count in gaps if gap.a > 0 or gap.b < 0]


def same(block: PairBlock) -> bool:
    """Whether both vectors were given the same value."""
    return bool(block.x.a == block.y.a and block.x.b == block.y.b)


def along_first_axis(pair: Pair) -> bool:
    """Whether the two vectors differ at most in their first coordinate."""
    return pair[0].count == 1 and pair[0].positions == "all" and all(same(block) for block in pair[1:])


def lies_in(pair: Pair, shape: RegionShape) -> str:
    """Why a pair does not belong to the region; empty if it does."""
    if sum(block.count for block in pair) != shape.dim:
        return f"it has {sum(block.count for block in pair)} coordinates, not {shape.dim}"
    positions = {block.positions for block in pair}
    if positions != {"all"}:
        even = sum(block.count for block in pair if block.positions == "even")
        if "all" in positions or even != shape.dim - shape.dim // 2:
            return "its even and odd coordinates are not half of all"
    if shape.kind == "repeated":  # each copy has the same coordinates, grouped together
        if any(block.count % shape.count for block in pair):
            return "its copies differ from one another"
        one = replace(shape.one, whole=is_whole(shape))
        return lies_in(tuple(replace(block, count=block.count // shape.count) for block in pair), one)
    if is_whole(shape) and not all(is_point(v, whole_part(v)) for block in pair for v in (block.x, block.y)):
        return "its values are not whole numbers"
    if shape.kind == "box" and sum(block.count for block in pair if not same(block)) > shape.differing:
        return f"more than {shape.differing} of its coordinates differ"
    if shape.kind == "answers" and any(distance(pair, one.p).b > one.width.a for one in shape.balls):
        return "the two vectors are farther apart than the query allows"
    ends = [end for block in pair for end in (block.x, block.y)]
    if shape.values == "wholes" and not all(is_point(end, round(middle(end))) for end in ends):
        return "its values are not whole numbers"
    gaps = [block.x - block.y for block in pair]
    if shape.monotone and not (all(gap.a >= 0 for gap in gaps) or all(gap.b <= 0 for gap in gaps)):
        return "some answers rise and others fall"
    for side in ("x", "y"):
        if not _inside([(getattr(block, side), block.count) for block in pair], shape):
            return f"the {'first' if side == 'x' else 'second'} vector lies outside"
    return ""


def _inside(values: list[tuple[Number, int]], shape: RegionShape) -> bool:
    if shape.kind in ("ball", "answers"):
        return all(power_sum(values, one.p).b <= one.radius.a for one in shape.balls)
    if shape.kind == "categories":
        name = round(middle(values[0][0]))
        return 0 <= name < shape.count and is_point(values[0][0], name)
    if shape.kind == "sphere":  # other points are given by vectors before they are normalized
        return is_unit(values)
    if shape.kind != "box":
        return False
    low, high = shape.low, shape.high
    if not all((low.b < v.a and v.b < high.a) if shape.open else (low.b <= v.a and v.b <= high.a) for v, _ in values):
        return False
    ones, zeros = (sum(count for value, count in values if is_point(value, bit)) for bit in (1, 0))
    if shape.values == "minmax":
        return zeros == shape.dim or (zeros > 0 and ones > 0)
    least = 1 if shape.values == "sparse" else 0
    return shape.values == "reals" or (least <= ones <= shape.ones and ones + zeros == shape.dim)


def is_unit(values: list[tuple[Number, int]]) -> bool:
    """Whether the values enclose a vector of length 1, and hardly any other."""
    norm = power_sum(values, 2.0)
    return bool(norm.a <= 1 <= norm.b and (norm.b - norm.a) < iv.mpf("1e-50"))


def on_sphere(pair: Pair) -> Pair:
    """The unit vectors in the directions of two vectors: not many of them are decimals."""
    return carried([ParsedStage("normalise", {}, {}, {})], pair)


def carried(stages: Sequence[ParsedStage], pair: Pair) -> Pair:
    """The image of a pair under some stages, none of them random."""
    copies = False
    for stage in stages:
        copies |= stage.name == "repeat"
        if stage.name == "binary":
            if copies:
                raise CertificateError("copies stand together in a pair, so the places of their bits are not known")
            pair = _written_in_bits(stage, pair)
        elif stage.name == "repeat":  # equal coordinates are grouped together
            pair = tuple(replace(block, count=block.count * stage.wholes["times"]) for block in pair)
        elif stage.name not in ("dropout", "encode", "decode", "topk"):  # a function may also do nothing
            first, second = (_carried(stage, [(getattr(b, side), b.count) for b in pair]) for side in ("x", "y"))
            pair = tuple(replace(b, x=x, y=y) for x, y, b in zip(first, second, pair, strict=True))
    return pair


def _carried(stage: ParsedStage, values: list[tuple[Number, int]]) -> list[Number]:
    """A vector after a stage."""
    plain = [value for value, _ in values]
    if stage.name in ("clip", "normalise"):
        norm = power_sum(values, NORMS[stage.words.get("norm", "l2")])
        if norm.b == 0:
            return plain
        factor = quotient(stage.numbers["radius"] if stage.name == "clip" else ONE, norm)
        factor = smallest([ONE, factor]) if stage.name == "clip" else factor
        return [value * factor for value in plain]
    if stage.name == "minmax":
        low, high = smallest(plain), largest(plain)
        if (high - low).b == 0:
            return [ZERO] * len(plain)
        return [_unit(quotient(value - low, high - low)) for value in plain]
    if stage.name == "clamp":
        return [clamp(value, stage.numbers["low"], stage.numbers["high"]) for value in plain]
    if stage.name == "squash":
        return [squash(stage.words["kind"], value) for value in plain]
    if stage.name == "round":
        return [_nearest(value) for value in plain]
    raise CertificateError(f"it is not known how {stage.name} maps the pair")


def _unit(value: Number) -> Number:
    """A narrow interval around 0 or 1 is taken for it: the vector's smallest or largest value."""
    near = (whole for whole in (ZERO, ONE) if abs(value - whole).b < iv.mpf("1e-50") and value.a <= whole <= value.b)
    return next(near, value)


def _nearest(value: Number) -> Number:
    """The nearest integer, the same for all numbers of an interval; ties go to the even one."""
    raised = value + _HALF
    low, high = least_whole_part(raised), whole_part(raised)
    tie = bool(raised.a == low and low % 2)
    if low != high or (tie and not value.a == value.b):
        raise CertificateError("it is not known how round maps the pair")
    return iv.mpf(low - 1 if tie else low)


def _written_in_bits(stage: ParsedStage, pair: Pair) -> Pair:
    """Sign, integer and fraction bits of each coordinate."""
    size = stage.wholes["integer"], stage.wholes["fraction"]
    return _gathered([(_bits_of(block.x, *size), _bits_of(block.y, *size), block.count) for block in pair])


def _bits_of(value: Number, integer: int, fraction: int) -> list[int]:
    magnitude, most = abs(value) * 2**fraction, 2 ** (integer + fraction) - 1
    low, high = whole_part(iv.mpf(magnitude.a)), whole_part(iv.mpf(magnitude.b))
    if (low != high and low < most) or value.a < 0 <= value.b:
        raise CertificateError("it is not known how binary maps the pair")
    return [int(value.a < 0), *((min(low, most) >> place) & 1 for place in reversed(range(integer + fraction)))]


def _gathered(columns: list[tuple[list[int], list[int], int]]) -> Pair:
    """Bits of the first and the second string, with their counts, as blocks of the even and of the odd positions."""
    counts: Counter[tuple[int, int, str]] = Counter()
    start = 0
    for first, second, times in columns:
        # Every other word of odd length begins at an odd position.
        even = (times + (start % 2 == 0)) // 2 if len(first) % 2 else times * (start % 2 == 0)
        for place, (x, y) in enumerate(zip(first, second, strict=True)):
            counts[x, y, ("even", "odd")[place % 2]] += even
            counts[x, y, ("odd", "even")[place % 2]] += times - even
        start += times * len(first)
    return tuple(PairBlock(iv.mpf(x), iv.mpf(y), n, places) for (x, y, places), n in sorted(counts.items()) if n)


def by_parity(pair: Pair) -> Pair:
    """A pair of bit strings with its even and odd positions separated."""
    if all(block.positions != "all" for block in pair):
        return pair
    return _gathered([([round(middle(b.x))], [round(middle(b.y))], b.count) for b in pair])
