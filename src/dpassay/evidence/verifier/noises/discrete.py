"""Losses of noise with finitely many outputs: flipped bits, categories, the exponential mechanism."""

import math
from dataclasses import replace
from functools import partial
from itertools import pairwise, product
from operator import le

from dpassay.errors import CertificateError
from dpassay.evidence.verifier.arithmetic import lattice
from dpassay.evidence.verifier.arithmetic.numbers import (
    INF,
    ONE,
    ZERO,
    Number,
    around,
    iv,
    log,
    log_sum,
    positive_part,
    smallest,
    surely_equal,
)
from dpassay.evidence.verifier.noises.losses import (
    FiniteOutcomes,
    Loss,
    Summed,
    Worst,
    bits_loss,
    both_ways,
    leak_loss,
    pure_divergence,
    pure_loss,
    range_loss,
)
from dpassay.evidence.verifier.reading import Step
from dpassay.evidence.verifier.regions.pairs import Pair, PairBlock, by_parity, differing
from dpassay.evidence.verifier.regions.regions import INFINITE, ParsedStage, RegionShape, diameter

_ALIKE = iv.mpf("1e-40")
_LISTED = 8  # bits for which all ways to differ are listed


def noised_bits(stage: ParsedStage, pair: Pair) -> list[tuple[Number, Number, int]]:
    """P(1) of each bit under both strings, and how many bits there are of each kind."""
    groups = []
    for block in by_parity(pair):
        one = stage.numbers[block.positions]
        p, q = (one if value.a == 1 else stage.numbers["zero"] for value in (block.x, block.y))
        groups.append((p, q, block.count))
    return groups


def _kept_and_flipped(stage: ParsedStage) -> tuple[Number, Number] | None:
    """The probabilities of a bit's own value and of the other one, if ones and zeros are treated equally everywhere.

    Each interval covers the values at all positions; for probabilities near 0 their rounding differences may dominate.
    """
    even, odd, zero = (stage.numbers[key] for key in ("even", "odd", "zero"))
    if any(abs(gap).b >= _ALIKE.a for gap in (even - odd, even + zero - 1)):
        return None
    kept, flipped = (even, odd, 1 - zero), (zero, 1 - even, 1 - odd)
    return around(kept), around(flipped)


def _one_hot_pairs(dim: int) -> list[Pair]:
    """The 1 moves from an even to an odd position, between two even ones, or between two odd ones."""
    places = {"even": dim - dim // 2, "odd": dim // 2}
    moves = [("even", "odd"), *((parity, parity) for parity, room in places.items() if room > 1)]
    return [(PairBlock(ONE, ZERO, 1, first), PairBlock(ZERO, ONE, 1, second)) for first, second in moves]


def bits_pair(stage: ParsedStage, pair: Pair, grid: lattice.Grid | None) -> Loss:
    """The loss of two strings; of short ones also by listing their outputs, which is exact at every ε."""
    groups = [(p, q, count) for p, q, count in noised_bits(stage, pair) if not (p.a == q.a and p.b == q.b)]
    known = bits_loss(groups)
    if not groups or sum(count for *_, count in groups) > _LISTED or not isinstance(known, Worst):
        return known
    return Worst([*known.losses, *_listed_loss(groups).losses])


def _listed_loss(groups: list[tuple[Number, Number, int]]) -> Worst:
    """The larger one of both directions, by how many bits of each group are 1."""
    outcomes = [(ONE, ONE)]
    for p, q, count in groups:
        ways = [math.comb(count, ones) for ones in range(count + 1)]
        each = [
            (way * p**ones * (1 - p) ** (count - ones), way * q**ones * (1 - q) ** (count - ones))
            for ones, way in enumerate(ways)
        ]
        outcomes = [(a * x, b * y) for a, b in outcomes for x, y in each]
    return Worst([FiniteOutcomes(tuple(outcomes)), FiniteOutcomes(tuple((q, p) for p, q in outcomes))])


def bits_upper(stage: ParsedStage, shape: RegionShape, step: Step) -> Loss:
    """A loss that no pair of strings exceeds.

    With equal noise on all bits, a string that differs in more positions is worse. Otherwise each bit is replaced by a
    pair of laws that is at least as far apart as the bit is in either direction.
    """
    if diameter(shape, 1.0).b <= 0:
        return pure_loss(ZERO)
    alike = _kept_and_flipped(stage)
    if alike is not None:  # all that differ are randomized response with one ε, so their divergences add up
        every = bits_loss([(*alike, shape.most_differing)])
        divergence = partial(pure_divergence, abs(log(alike[0]) - log(alike[1])), count=shape.most_differing)
        return replace(every, divergence=divergence) if isinstance(every, Worst) else every
    if shape.one_hot:
        return Worst([bits_loss(noised_bits(stage, pair)) for pair in _one_hot_pairs(shape.dim)])
    if shape.values == "sparse" and shape.dim <= _LISTED and step.grid is None:
        return Worst([_listed_loss(groups) for groups in _sparse_ways(stage, shape)])
    if shape.count:  # all bits of one row, which may begin at an odd position
        more, less = shape.count - shape.count // 2, shape.count // 2
        begins = [(more, less), (less, more)] if shape.count % 2 and shape.dim > shape.count else [(more, less)]
    else:
        begins = [(shape.dim - shape.dim // 2, shape.dim // 2)]
    return Worst([_all_bits(stage, even, odd, step.grid) for even, odd in begins])


def _sparse_ways(stage: ParsedStage, shape: RegionShape) -> list[list[tuple[Number, Number, int]]]:
    """All ways in which two strings with few ones can differ, by parity: docs/proofs/randomized-response.md, point 10.

    A string that has no 1 of its own shares one with the other; a way that differs in more positions is worse.
    """
    even, odd, zero = (stage.numbers[key] for key in ("even", "odd", "zero"))
    room = shape.dim - shape.dim // 2, shape.dim // 2
    sides = [[(up, down) for up in range(size + 1) for down in range(size + 1 - up)] for size in room]
    found = []
    for first, second in product(*sides):
        ups, downs = first[0] + second[0], first[1] + second[1]
        shared = 0 if ups and downs else 1
        if max(ups, downs) + shared <= shape.ones and ups + downs + shared <= shape.dim:
            found.append((*first, *second))
    worst = [way for way in found if not any(way != more and all(map(le, way, more)) for more in found)]
    chances = ((even, zero), (zero, even), (odd, zero), (zero, odd))
    return [[(p, q, n) for (p, q), n in zip(chances, way, strict=True) if n] for way in worst]


def _all_bits(stage: ParsedStage, even: int, odd: int, grid: lattice.Grid | None) -> Loss:
    """Given numbers of bits at even and at odd positions, any of which may differ in any direction."""
    places = (("even", even), ("odd", odd))
    chances = [(stage.numbers[key], stage.numbers["zero"], count) for key, count in places if count]
    if grid is not None:
        return Summed(tuple((_envelope(p, q), count) for p, q, count in chances), grid)
    if even + odd <= _LISTED:  # all of them: a bit that does not differ hides nothing
        ways: list[list[tuple[Number, Number, int]]] = [[]]
        for p, q, count in chances:
            ways = [[*way, (p, q, up), (q, p, count - up)] for way in ways for up in range(count + 1)]
        return Worst([_listed_loss(way) for way in ways])
    each = [both_ways(((p, q), (1 - p, 1 - q))).pure * count for p, q, count in chances]
    return pure_loss(INF if any(loss.b == INF for loss in each) else sum(each, ZERO))


def _envelope(p: Number, q: Number) -> lattice.Atoms:
    """The loss whose δ is the larger one of both directions at every ε.

    δ as a function of z = e^ε is the largest of the lines P(E) − z·Q(E). Where its slope changes by s, the second
    law has probability s and the first z·s.
    """
    if p.a <= q.b and q.a <= p.b and not p.a == p.b == q.a == q.b:
        raise CertificateError("the probabilities of a bit are too close to one another")
    lines = [(ONE, ONE), (p, q), (1 - p, 1 - q), (q, p), (1 - q, 1 - p), (ZERO, ZERO)]
    here, atoms = (ONE, ONE), []
    while here[1].b > 0:
        flatter = [line for line in lines if line[1].mid.a < here[1].mid.a or line[1].b <= 0 < here[1].b]
        crossings = [((here[0] - line[0]) / (here[1] - line[1]), line) for line in flatter]
        z, there = min(crossings, key=lambda found: (found[0].mid.a, found[1][1].mid.a))
        if z.b > 0:
            atoms.append((log(z), z * (here[1] - there[1])))
        here = there
    return lattice.Atoms(tuple(atoms), positive_part(here[0]))


def category_pair(stage: ParsedStage, pair: Pair, grid: lattice.Grid | None) -> Loss:
    """The loss of two names."""
    return _category_loss(stage) if differing(pair) else pure_loss(ZERO)


def category_upper(stage: ParsedStage, shape: RegionShape, step: Step) -> Loss:
    """The loss of any two names."""
    return _category_loss(stage)


def _category_loss(stage: ParsedStage) -> Loss:
    """Keep one of k categories, otherwise name any other: all pairs are equivalent."""
    count, keep = stage.wholes["k"], stage.numbers["keep"]
    if count == 1:
        return pure_loss(ZERO)
    other = (1 - keep) / (count - 1)
    rest = other * (count - 2)
    return (
        pure_loss(ZERO) if surely_equal(keep, other) else FiniteOutcomes(((keep, other), (other, keep), (rest, rest)))
    )


def choice_pair(stage: ParsedStage, pair: Pair, grid: lattice.Grid | None = None) -> Loss:
    """The exponential mechanism between two vectors of scores, the larger of both directions."""
    chances = choice_chances(stage, pair)
    return both_ways([(p * block.count, q * block.count) for (p, q), block in zip(chances, pair, strict=True)])


def choice_chances(stage: ParsedStage, pair: Pair) -> list[tuple[Number, Number]]:
    """The probability of one output of each block, under both vectors."""
    rate = stage.numbers["rate"]
    sides = []
    for side in ("x", "y"):
        scores = [rate * getattr(block, side) for block in pair]
        total = -INF
        for score, block in zip(scores, pair, strict=True):
            total = log_sum(total, score + iv.log(iv.mpf(block.count)))
        sides.append([iv.exp(score - total) for score in scores])
    return list(zip(*sides, strict=True))


def top_k_pair(stage: ParsedStage, pair: Pair, grid: lattice.Grid | None = None) -> Loss:
    """A choice among the k largest scores, between two vectors of scores, the larger of both directions."""
    return both_ways(top_k_chances(stage, pair))


def top_k_chances(stage: ParsedStage, pair: Pair) -> list[tuple[Number, Number]]:
    """Under both vectors, the probability of each block's outputs that both of them keep, or only one of them.

    Ties go to the first scores: a block's coordinates are the next ones in order.
    """
    rate, sides = stage.numbers["rate"], []
    if any(block.positions in ("even", "odd") for block in pair):
        raise CertificateError("the order of the scores is not known")
    for side in ("x", "y"):
        values = [getattr(block, side) for block in pair]
        kept = _largest_first(values, [block.count for block in pair], stage.wholes["k"])
        total = -INF
        for value, count in zip(values, kept, strict=True):
            total = log_sum(total, rate * value + iv.log(iv.mpf(count))) if count else total
        sides.append([(iv.exp(rate * value - total), count) for value, count in zip(values, kept, strict=True)])
    found = []
    for (p, own), (q, other) in zip(*sides, strict=True):
        common = min(own, other)
        found += [(p * common, q * common), (p * (own - common), q * (other - common))]
    return [(p, q) for p, q in found if p.b > 0 or q.b > 0]


def _largest_first(values: list[Number], counts: list[int], k: int) -> list[int]:
    """How many coordinates of each block are among the k largest; of equal scores the first ones come first.

    If neighbors in this order are known to be equal, or to be larger and smaller, so are all others.
    """
    order = sorted(range(len(values)), key=lambda i: values[i].a, reverse=True)  # which keeps the order of equal ones
    for i, j in pairwise(order):
        value, other = values[i], values[j]
        if not (value.a == value.b == other.a == other.b or value.a > other.b):
            raise CertificateError("it is not known which of two scores is larger")
    kept, ahead = [0] * len(values), 0
    for i in order:
        kept[i] = max(0, min(counts[i], k - ahead))
        ahead += counts[i]
    return kept


def top_k_upper(stage: ParsedStage, shape: RegionShape, step: Step) -> Loss:
    """Outputs that the other vector does not keep have at most some probability; the loss of the others is bounded."""
    k, rate, others = stage.wholes["k"], stage.numbers["rate"], shape.dim - stage.wholes["k"]
    if others >= k:
        return leak_loss(ONE)
    spread, width = (rate * iv.mpf(found.b) for found in (score_spread(shape), score_width(shape)))
    if spread.b == INF and width.b == INF:
        raise CertificateError("nothing bounds the scores")
    common, n = spread, iv.mpf(k - 1)
    if width.b < INF:
        common = smallest([spread, width + log((iv.exp(-width) + n) / (1 + n * iv.exp(-width)))])
    leak = others / (others + (k - others) * iv.exp(-smallest([spread, width])))
    return leak_loss(leak, iv.mpf(common.b))


def score_spread(shape: RegionShape) -> Number:
    """The maximum of (largest − smallest coordinate of x − y).

    Two coordinates of a vector of lq norm 1 differ by at most 2^(1 − 1/q); if all move the same way, by the largest
    alone.
    """
    if shape.monotone:
        return diameter(shape, INFINITE)
    powers = {1.0: ONE, 2.0: iv.sqrt(iv.mpf(2)), INFINITE: iv.mpf(2)}
    return smallest(diameter(shape, q) * power for q, power in powers.items())


def score_width(shape: RegionShape) -> Number:
    """The maximum of (largest − smallest coordinate) of one vector."""
    if shape.kind in ("box", "answers", "rounded"):  # answers have limits if they were clamped
        return shape.high - shape.low
    return score_spread(shape) / 2 if shape.kind in ("ball", "sphere") else INF  # they contain −x with every x


def choice_upper(stage: ParsedStage, shape: RegionShape, step: Step) -> Loss:
    """At most the rate times the spread of the scores, and what their width allows."""
    inner = shape.one
    if inner.one_hot and inner.dim > 1:  # all pairs are equivalent, and so are both directions of one
        rest = (PairBlock(ZERO, ZERO, inner.dim - 2),) if inner.dim > 2 else ()
        pair = (PairBlock(ONE, ZERO, 1), PairBlock(ZERO, ONE, 1), *rest)
        chances = zip(choice_chances(stage, pair), pair, strict=True)
        return FiniteOutcomes(tuple((p * block.count, q * block.count) for (p, q), block in chances))
    return pure_loss(_largest_losses(stage, inner)[1])


def choice_range(stage: ParsedStage, shape: RegionShape, step: Step) -> Loss:
    """The losses also differ by at most the rate times the spread."""
    spread, pure = _largest_losses(stage, shape.one)
    if shape.one.kind == "box" and shape.one.differing == 1 and shape.one.dim > 1 and spread.b < INF:
        low = log(shape.one.dim / (1 + (shape.one.dim - 1) * iv.exp(-spread)))  # exponential.md, point 9
        return range_loss(smallest([spread, 2 * pure]), pure, low)
    return range_loss(smallest([spread, 2 * pure]), pure)


def _largest_losses(stage: ParsedStage, shape: RegionShape) -> tuple[Number, Number]:
    """The rate times the spread, and the largest loss."""
    if shape.dim == 1:  # all scores are equal
        return ZERO, ZERO
    rate, n = stage.numbers["rate"], iv.mpf(shape.dim - 1)
    spread, width = rate * iv.mpf(score_spread(shape).b), rate * score_width(shape)
    if spread.b == INF:
        raise CertificateError("nothing bounds the scores")
    if shape.kind == "box" and shape.differing == 1:
        low = iv.exp(-width)
        return spread, smallest([spread, log((low + n) / (shape.dim * low))])
    if width.b == INF:
        return spread, spread
    return spread, smallest([spread, width + log((iv.exp(-width) + n) / (1 + n * iv.exp(-width)))])
