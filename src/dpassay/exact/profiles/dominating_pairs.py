"""Which pairs of a region to examine for a noise, and whether a theorem states that one of them dominates all."""

from dpassay.core.numbers import middle
from dpassay.core.theorems import Theorem
from dpassay.exact.pld.privacy_loss import PrivacyLoss
from dpassay.exact.profiles.bounds import PairBound
from dpassay.pipeline.distributions import Gaussian, Laplace, Mixture, Noise, OneSided
from dpassay.pipeline.regions import (
    Block,
    Box,
    Finite,
    Intersection,
    MinMax,
    OneHot,
    Pair,
    Region,
    Rounded,
    RowBits,
    Rows,
    Sparse,
    Squashed,
)

INF = float("inf")
# Beyond this many coordinates the grid would be too large: fewer coordinates give the lower
# bound (omitting some is post-processing) and Rényi divergences the upper one.
MOST_COORDINATES = 1 << 18
COUNTED_DIMENSIONS = 32  # up to this many, one coordinate more or less can matter


def dominating_pairs(noise: Noise, region: Region) -> tuple[list[Pair], bool]:
    """Pairs to examine, and whether one of them dominates all others at every ε."""
    if region.one_copy is not region:
        # The shift of a repeated pair is linear in the pair's, so what dominates still does: composition.md, point 6.
        inner, known = dominating_pairs(noise, region.one_copy)
        pairs = [region.repeat(pair) for pair in inner]
        if isinstance(noise, Laplace) and any(_differing(pair) > MOST_COORDINATES for pair in pairs):
            return [pairs[0], *(_shortened(pair) for pair in pairs)], False
        return pairs, known and noise.known_tails
    if isinstance(noise, Gaussian):
        return [region.farthest(2)], region.knows_farthest(2)
    if isinstance(noise, Mixture) and noise.one_sided:
        return [most_spread(region)], False
    if not isinstance(noise, Laplace):
        upwards = isinstance(noise, OneSided) and not isinstance(region, MinMax | OneHot | Finite | RowBits)
        return [region.farthest(1)], upwards and region.knows_farthest(1)
    if isinstance(region, Rounded) and all(_differing(pair) <= MOST_COORDINATES for pair in region.pairs()):
        return region.pairs(), region.complete
    if isinstance(region, Finite):
        return _finite_pairs(region)
    ball = region.ball
    if ball is not None and ball.dim > 1 and ball.p not in (1, INF):
        counts = {ball.dim, 2, 3} | {4**k for k in range(ball.dim.bit_length() // 2 + 1)}
        counts = {min(count, ball.dim, MOST_COORDINATES) for count in counts}
        # The most spread pair has the largest pure loss, the least spread ones may have a larger δ. So may one or two
        # coordinates less, where few small shifts have losses close to a lattice.
        counts |= {ball.dim - 1, ball.dim - 2} if 2 < ball.dim <= COUNTED_DIMENSIONS else set()
        first = [ball.farthest(1)] if ball.dim > MOST_COORDINATES else []
        return [*first, *(ball.diagonal(count) for count in sorted(counts, reverse=True))], False
    if isinstance(region, Squashed) and region.dim > 1 and region.p != INF:
        counts = {min(count, region.dim, MOST_COORDINATES) for count in (1, 4, 16, 64, region.dim)}
        first = [region.farthest(1)] if region.dim > MOST_COORDINATES else []
        return [*first, *(region.spread(count) for count in sorted(counts, reverse=True))], False
    pair = region.farthest(1)
    known = ball is not None or region.unit or isinstance(region, Box | Rows | Squashed)
    if _differing(pair) > MOST_COORDINATES:
        return [pair, _shortened(pair)], False
    return [pair], known


def additive_bound(noise: Noise, pair: Pair) -> PairBound:
    """The loss of a noise that is added to two vectors, in both orders unless these are equal."""
    shifts = [(b.gap, b.count) for b in pair.blocks]
    theorem = {Laplace: Theorem.LAPLACE, Gaussian: Theorem.GAUSSIAN, OneSided: Theorem.ONE_SIDED}
    there = PrivacyLoss.of_shifts(noise, shifts)
    source = theorem.get(type(noise), Theorem.MIXTURE)
    if noise.even:
        return PairBound((there,), source)
    return PairBound((there, PrivacyLoss.of_shifts(noise, [(-gap, n) for gap, n in shifts])), source)


def most_spread(region: Region) -> Pair:
    """A pair whose coordinates all differ by as much as they can at once, if the region treats them equally."""
    inner = region.one_copy
    if isinstance(inner, Intersection):
        return region.repeat(inner.spread(inner.dim))
    return region.repeat(inner.farthest(1) if inner.ball is None else inner.ball.diagonal(inner.dim))


def _differing(pair: Pair) -> int:
    return sum(block.count for block in pair.blocks if not block.same)


def dominating_pair_is_known(noise: Noise, region: Region) -> bool:
    """Whether a theorem states which pair dominates all others."""
    return dominating_pairs(noise, region)[1]


def _shortened(pair: Pair) -> Pair:
    """A pair that differs in this many coordinates only; the others are made equal."""
    blocks, left = [], MOST_COORDINATES
    for block in pair.blocks:
        used = min(left, block.count)
        left -= used
        blocks += [Block(block.x, block.y, used), Block(block.x, block.x, block.count - used)]
    return Pair(tuple(block for block in blocks if block.count))


def _finite_pairs(region: Finite) -> tuple[list[Pair], bool]:
    points = region.points
    if len(points) > 24:
        return [region.farthest(q) for q in (1.0, 2.0, INF)], False
    pairs = [Pair.of(points[i], points[j]) for i in range(len(points)) for j in range(i)]
    return pairs or [Pair.of(points[0], points[0])], True


def most_differing(region: Region) -> int:
    """The largest number of coordinates in which two neighbors can differ."""
    inner = region.one_copy
    if isinstance(inner, OneHot | Sparse | RowBits):
        return region.copies * round(middle(inner.diameter(1)))
    return region.copies * (1 if isinstance(inner, Rows) else inner.dim)
