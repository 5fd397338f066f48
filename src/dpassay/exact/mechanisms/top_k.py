"""The loss of a choice among only the k largest scores. Proof: docs/proofs/top-k.md."""

from collections.abc import Sequence
from itertools import pairwise

from dpassay.core.numbers import INFINITY, ONE, ZERO, Number, exp, log, log_add, minimum, number, real
from dpassay.core.theorems import Theorem
from dpassay.exact.pld.loss_components import AtomLoss
from dpassay.exact.pld.privacy_loss import PrivacyLoss
from dpassay.exact.profiles.bounded_range import largest_choice
from dpassay.exact.profiles.bounds import PairBound, PureBound
from dpassay.exact.profiles.profile import Candidate, PrivacyProfile
from dpassay.pipeline.pipeline import Pipeline
from dpassay.pipeline.regions import Ball, Block, OneHot, Pair, Region, SensitivityBall, Sphere
from dpassay.pipeline.stages.exponential import Choose, TopK

INF = float("inf")


def scores_kept(pipeline: Pipeline, position: int) -> int | None:
    """How many scores a stage right before a choice keeps; None if it keeps all."""
    before = pipeline.stages[position - 1] if position else None
    dim = pipeline.output_regions()[position].region.dim
    return before.k if isinstance(before, TopK) and before.k < dim else None


def top_k_profile(
    stage: Choose, k: int, region: Region, cube: tuple[Number, Number] | None, spread: Number, width: Number, free: bool
) -> PrivacyProfile:
    """Scores of a region, k of which are kept: `spread` and `width` are as in exponential.md.

    `free`: any two values of the region, or any answers to a query, can be those of two neighbors.
    """
    pairs = _pairs(region, k, cube) if free else []
    bounds = [(pair, top_k_bound(stage, k, pair)) for pair in pairs]
    candidates = tuple(Candidate(pair, bound) for pair, bound in bounds if bound is not None)
    reach = stage.rate * minimum(spread, width)
    if reach == INFINITY:
        return PrivacyProfile(candidates, (PureBound(INFINITY, Theorem.TOP_K),), (Theorem.TOP_K,))
    common = minimum(stage.rate * spread, largest_choice(stage.rate * width, k) if width.b < INFINITY else INFINITY)
    leak = most_outside(reach, k, region.dim)
    loss = AtomLoss(((common, 1 - leak),) if leak.b < 1 else (), leak)
    return PrivacyProfile(candidates, (PairBound((PrivacyLoss(((loss, 1),)),), Theorem.TOP_K),), (Theorem.TOP_K,))


def most_outside(reach: Number, k: int, dim: int) -> Number:
    """The largest probability of outputs that are not among the other vector's k: point 1.

    >>> float(most_outside(ZERO, 2, 3).mid), float(most_outside(ONE, 2, 4).mid)
    (0.5, 1.0)
    """
    others = dim - k
    return ONE if others >= k else 1 / (1 + (k - others) * exp(-reach) / others)


def _pairs(region: Region, k: int, cube: tuple[Number, Number] | None) -> list[Pair]:
    """One vector chooses outputs that the other one drops; those come last, so that others win ties."""
    dim, others = region.dim, region.dim - k
    root = ONE if getattr(region, "p", INF) == INF else real(others) ** (1 / number(getattr(region, "p", 2.0)))
    if cube is not None:
        low, high = cube
        return [Pair((Block(low, high, k), Block(high, low, others)))]
    if isinstance(region, SensitivityBall):
        down = -region.distance if region.p == INF and not region.monotone else ZERO
        return [Pair((Block(down, ZERO, k), Block(region.distance / root, ZERO, others)))]
    if isinstance(region, Ball | Sphere):
        size = region.radius / root
        return [Pair((Block(ZERO, ZERO, k), Block(size, -size, others)))]
    if isinstance(region, OneHot):
        rest = (Block(ZERO, ZERO, dim - 2),) if dim > 2 else ()
        return [Pair((*rest, Block(ONE, ZERO, 1), Block(ZERO, ONE, 1)))]
    if region.row_limits is not None:
        low, high = region.row_limits
        return [Pair((Block(low, low, dim - 1), Block(high, low, 1)))]
    return []


def top_k_bound(stage: Choose, k: int, pair: Pair) -> PairBound | None:
    """The loss, in both directions, between two score vectors with the k largest kept; none if ties are in doubt."""
    blocks = pair.blocks
    counts = [block.count for block in blocks]
    of_x, of_y = _kept([b.x for b in blocks], counts, k), _kept([b.y for b in blocks], counts, k)
    if of_x is None or of_y is None:
        return None
    losses = []
    for first, second, here, there in (("x", "y", of_x, of_y), ("y", "x", of_y, of_x)):
        scores = [[getattr(block, side) * stage.rate for block in blocks] for side in (first, second)]
        totals = [_log_total(values, kept) for values, kept in zip(scores, (here, there), strict=True)]
        atoms, outside = [], ZERO
        for x, y, block, own, other in zip(*scores, blocks, here, there, strict=True):
            chance = exp(x - totals[0])
            if common := min(own, other):
                atoms.append(((ZERO if block.same else x - y) - totals[0] + totals[1], chance * common))
            outside += chance * max(0, own - other)
        losses.append(PrivacyLoss(((AtomLoss(tuple(atoms), outside if atoms else ONE), 1),)))
    return PairBound(tuple(losses), Theorem.TOP_K)


def _kept(values: Sequence[Number], counts: Sequence[int], k: int) -> list[int] | None:
    """How many coordinates of each block are among the k largest, ties going to the first; None if in doubt."""
    order = sorted(range(len(values)), key=lambda i: (-values[i].mid, i))
    for one, next_one in pairwise(order):
        a, b = values[one], values[next_one]
        if not (a.a > b.b or (a.a == a.b == b.a == b.b)):
            return None
    left, kept = k, [0] * len(values)
    for i in order:
        kept[i] = min(left, counts[i])
        left -= kept[i]
    return kept


def _log_total(scores: Sequence[Number], counts: Sequence[int]) -> Number:
    total = -INFINITY
    for score, count in zip(scores, counts, strict=True):
        if count:
            term = score + log(real(count))
            total = term if total == -INFINITY else log_add(total, term)
    return total
