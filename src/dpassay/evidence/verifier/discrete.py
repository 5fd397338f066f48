"""Curves of noise with finitely many outputs: flipped bits, categories, the exponential mechanism."""

from collections.abc import Sequence

from dpassay.evidence.verifier import lattice
from dpassay.evidence.verifier.ceilings import Pure, Worst
from dpassay.evidence.verifier.counting import MOST_IN_TABLE, EqualBits, TwoGroups
from dpassay.evidence.verifier.curves import Bits, Certain, Curve, Outcomes, Summed, TwoKinds
from dpassay.evidence.verifier.numbers import (
    ONE,
    ZERO,
    Number,
    is_infinite,
    iv,
    largest,
    log,
    log_sum,
    middle,
    number,
    positive_part,
)
from dpassay.evidence.verifier.pairs import Block, Pair, by_parity, farthest
from dpassay.evidence.verifier.regions import INFINITE, Reach, Shape, Stage, diameter, most_differing

Groups = list[tuple[Number, Number, int]]  # P(1) under both laws, and how many bits
_ALIKE = iv.mpf("1e-40")


def bits_curve(groups: Groups) -> Curve:
    """The loss of independent bits, the larger of both ways."""
    merged: dict[object, tuple[Number, Number, int]] = {}
    for p, q, count in groups:
        if count and abs(p - q).b > _ALIKE.b:
            key = (p._mpi_, q._mpi_)
            merged[key] = (p, q, count + (merged[key][2] if key in merged else 0))
    kinds = sorted(merged.values(), key=lambda group: -group[2])
    if not kinds:
        return Pure(ZERO)
    small = all(count <= MOST_IN_TABLE for _, _, count in kinds)
    if sum(count for _, _, count in kinds) <= 4:
        outcomes = [(ONE, ONE)]
        for p, q, count in kinds:
            for _ in range(count):
                outcomes = [(a * x, b * y) for a, b in outcomes for x, y in ((p, q), (1 - p, 1 - q))]
        return Worst([Outcomes(tuple(outcomes)), Outcomes(tuple((b, a) for a, b in outcomes))])
    if len(kinds) == 2 and small:
        sides = (kinds, [(q, p, n) for p, q, n in kinds])
        return Worst([TwoKinds(TwoGroups(*(EqualBits(*group) for group in side))) for side in sides])
    # Of more kinds only the most frequent is looked at: leaving bits out is post-processing.
    p, q, count = kinds[0]
    there, back = Bits(EqualBits(p, q, count)), Bits(EqualBits(q, p, count))
    return Worst([there] if abs(p + q - 1).b < _ALIKE.b else [there, back])


def noised_bits(stage: Stage, pair: Pair) -> Groups:
    """P(1) of each bit under both strings."""
    groups = []
    for block in by_parity(pair):
        one = stage.numbers["even" if block.parity == "even" else "odd"]
        p, q = (one if value.a == 1 else stage.numbers["zero"] for value in (block.x, block.y))
        groups.append((p, q, block.count))
    return groups


def symmetric(stage: Stage) -> bool:
    """Whether ones and zeros are treated alike at all places."""
    even, odd, zero = (stage.numbers[key] for key in ("even", "odd", "zero"))
    return all(abs(gap).b < _ALIKE.b for gap in (even - odd, even + zero - 1))


def string_pairs(stage: Stage, dim: int) -> list[Pair]:
    """Strings that differ in all places; which one has the ones at odd places is tried both ways."""
    odd = dim // 2
    even = Block(ONE, ZERO, dim - odd, "even")
    if not odd:
        return [(even,)]
    both: list[Pair] = [(even, Block(ONE, ZERO, odd, "odd")), (even, Block(ZERO, ONE, odd, "odd"))]
    return both[:1] if symmetric(stage) else both


def one_hot_pairs(dim: int) -> list[Pair]:
    """The 1 moves from an even to an odd place, between two even ones, or between two odd ones."""
    odd = dim // 2
    room = {"even": dim - odd, "odd": odd}
    pairs = []
    for first, second in (("even", "odd"), ("even", "even"), ("odd", "odd")):
        used = {parity: (first == parity) + (second == parity) for parity in room}
        if all(used[parity] <= room[parity] for parity in room):
            rest = [Block(ZERO, ZERO, room[parity] - used[parity], parity) for parity in room]
            pairs.append((Block(ONE, ZERO, 1, first), Block(ZERO, ONE, 1, second), *(b for b in rest if b.count)))
    return pairs


def bit_uppers(stage: Stage, shape: Shape) -> list[Curve]:
    """Curves that hold for all pairs of strings.

    Noising bits alike, a string that differs in more places is worse. Otherwise each bit is replaced by a pair of
    laws that is at least as far apart as the bit is in either direction.
    """
    if shape.kind == "sparse" and symmetric(stage):
        return [_differing_bits(stage, most_differing(shape))]
    if diameter(shape, 1.0).b <= 0:
        return [Pure(ZERO)]
    if shape.kind == "onehot":
        pairs = one_hot_pairs(shape.dim)
        return [Worst([bits_curve(noised_bits(stage, pair)) for pair in pairs]) if pairs else Pure(ZERO)]
    curves = [bits_curve(noised_bits(stage, pair)) for pair in string_pairs(stage, shape.dim)]
    if symmetric(stage):
        return [Worst(curves)]
    odd = shape.dim // 2
    places = (("even", shape.dim - odd), ("odd", odd))
    parts = tuple((envelope(stage.numbers[key], stage.numbers["zero"]), count) for key, count in places if count)
    return [Pure(pure_of_bits(stage, shape.dim)), Summed(parts)]


def _differing_bits(stage: Stage, count: int) -> Curve:
    """So many bits differ and are all noised alike; which string has the 1 does not matter."""
    return bits_curve([(stage.numbers["even"], stage.numbers["zero"], count)])


def pure_of_bits(stage: Stage, dim: int) -> Number:
    """The sum over bits of the largest |ln| of a ratio."""
    odd, total = dim // 2, ZERO
    for key, count in (("even", dim - odd), ("odd", odd)):
        one, zero = stage.numbers[key], stage.numbers["zero"]
        there = ((one, zero), (1 - one, 1 - zero))
        back = tuple((q, p) for p, q in there)
        total += count * Worst([Outcomes(there), Outcomes(back)]).pure
    return total


def envelope(p: Number, q: Number) -> lattice.Atoms:
    """The loss whose δ is the larger one of both ways at every ε.

    δ as a function of z = e^ε is the largest of the lines P(E) − z·Q(E). Where its slope changes by s, the second
    law has probability s and the first z·s.
    """
    lines = [(ONE, ONE), (p, q), (1 - p, 1 - q), (q, p), (1 - q, 1 - p), (ZERO, ZERO)]
    here, atoms = (ONE, ONE), []
    while here[1].b > 0:
        flatter = [line for line in lines if middle(line[1]) < middle(here[1]) or line[1].b <= 0 < here[1].b]
        crossings = [((here[0] - line[0]) / (here[1] - line[1]), line) for line in flatter]
        z, there = min(crossings, key=lambda found: (middle(found[0]), middle(found[1][1])))
        if z.b > 0:
            atoms.append((log(z), z * (here[1] - there[1])))
        here = there
    return lattice.Atoms(tuple(atoms), positive_part(here[0]))


def category_curve(stage: Stage, count: int) -> Curve:
    """Keep one of k categories, else name any other: all pairs are alike."""
    if count == 1:
        return Pure(ZERO)
    keep = stage.numbers["keep"]
    other = (1 - keep) / (count - 1)
    if keep.a == other.a and keep.b == other.b:
        return Pure(ZERO)
    rest = other * (count - 2)
    return Outcomes(((keep, other), (other, keep), (rest, rest)))


def choice_curve(stage: Stage, pair: Pair) -> Curve:
    """The exponential mechanism between two vectors of scores, the larger of both ways."""
    chances = choice_chances(stage, pair)
    there = tuple((p * block.count, q * block.count) for (p, q), block in zip(chances, pair, strict=True))
    return Worst([Outcomes(there), Outcomes(tuple((q, p) for p, q in there))])


def choice_chances(stage: Stage, pair: Pair) -> list[tuple[Number, Number]]:
    """The probability of one output of each block, under both vectors."""
    rate = stage.numbers["rate"]
    sides = []
    for side in ("x", "y"):
        scores = [rate * getattr(block, side) for block in pair]
        total = -number("inf")
        for score, block in zip(scores, pair, strict=True):
            total = log_sum(total, score + iv.log(iv.mpf(block.count)))
        sides.append([iv.exp(score - total) for score in scores])
    return list(zip(*sides, strict=True))


def cube_of(shape: Shape) -> tuple[Number, Number] | None:
    """The range of every coordinate, where the region is a cube."""
    if shape.kind == "ball" and shape.p == INFINITE:
        return -shape.size, shape.size
    return shape.sides[0][:2] if shape.kind == "box" and len(shape.sides) == 1 else None


def score_pairs(stage: Stage, shape: Shape) -> list[Pair]:
    """One output's score high against the others', and the other way round."""
    cube = cube_of(shape)
    if cube is not None:
        low, high = cube
        return [(Block(high, low, 1), Block(low, high, shape.dim - 1))]
    if shape.kind == "apart" and shape.p == INFINITE:
        half = shape.size / 2
        bases = (60 / stage.numbers["rate"] + shape.size, ZERO)
        return [(Block(half - base, -half - base, 1), Block(-half, half, shape.dim - 1)) for base in bases]
    return [farthest(shape, q) for q in (1.0, 2.0, INFINITE)]


def discrete_bounds(stage: Stage, reach: Reach, passed: Sequence[Pair]) -> tuple[list[Curve], list[Curve], Number]:
    """Curves of pairs, curves for all pairs, and what outputs that are rare show of ε at δ = 0."""
    shape = reach.shape
    if stage.name == "flip":
        curve = category_curve(stage, shape.count)
        return ([curve] if reach.exact or passed else []), [curve], ZERO
    if stage.name == "bits" and shape.kind == "sparse" and reach.exact:
        unlike = bits_curve(noised_bits(stage, farthest(shape, 1.0)))
        worst = _differing_bits(stage, most_differing(shape)) if symmetric(stage) else unlike
        return [worst], bit_uppers(stage, shape), ZERO
    if stage.name == "bits":
        pairs = one_hot_pairs(shape.dim) if shape.kind == "onehot" else string_pairs(stage, shape.dim)
        shown = [bits_curve(noised_bits(stage, pair)) for pair in (pairs if reach.exact else passed)]
        return shown, bit_uppers(stage, shape), ZERO
    return _chosen(stage, reach, passed)


def _chosen(stage: Stage, reach: Reach, passed: Sequence[Pair]) -> tuple[list[Curve], list[Curve], Number]:
    """The exponential mechanism: 2·rate·Δ∞ always holds, on a cube the worst pair is known."""
    shape, rate = reach.shape, stage.numbers["rate"]
    if shape.dim == 1 or (shape.kind == "repeated" and shape.parts[0].dim == 1):  # all scores are equal
        return [], [Pure(ZERO)], ZERO
    if is_infinite(diameter(shape, INFINITE)):
        return ([Certain()] if reach.exact else []), [Certain()], ZERO
    general = Pure(2 * rate * diameter(shape, INFINITE))
    shown = [choice_curve(stage, pair) for pair in (score_pairs(stage, shape) if reach.exact else passed)]
    if reach.exact and cube_of(shape) is not None:
        return shown, [general, Pure(largest(curve.pure for curve in shown))], ZERO
    # A query's scores can put one output far behind the others; there the bound is approached.
    rare = general.pure if reach.exact and shape.kind == "apart" and shape.p == INFINITE else ZERO
    return shown, [general], rare
