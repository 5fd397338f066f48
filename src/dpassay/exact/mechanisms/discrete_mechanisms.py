"""Losses of noise with finitely many outputs: flipped bits and categories. Proofs: docs/proofs/randomized-response.md.

The exponential mechanism has its own file.
"""

from dataclasses import replace
from typing import Literal

from dpassay.core.numbers import INFINITY, ONE, ZERO, Number, log, maximum, real
from dpassay.core.theorems import Theorem
from dpassay.exact.explanation import differing_bits
from dpassay.exact.mechanisms.bit_pairs import Kind, kind_loss, pair_of, worst_kinds
from dpassay.exact.mechanisms.questions import Surroundings, event, least_loss, profile_of, reason
from dpassay.exact.pld.loss_components import AtomLoss
from dpassay.exact.pld.privacy_loss import PrivacyLoss
from dpassay.exact.profiles.bounds import PairBound, PureBound
from dpassay.exact.profiles.profile import Candidate, PrivacyProfile
from dpassay.exact.witness import Witness, WorstPair, swapped
from dpassay.pipeline.regions import (
    Block,
    Categories,
    OneHot,
    Pair,
    Region,
    RowBits,
    Sparse,
)
from dpassay.pipeline.stages.base import OutputRegion
from dpassay.pipeline.stages.bits import BitNoise, Flip

_RESPONSE = Theorem.RANDOMIZED_RESPONSE
_PARITIES: dict[Literal["even", "odd"], int] = {"even": 0, "odd": 1}


@profile_of.register(Flip)
def _(stage: Flip, around: Surroundings) -> PrivacyProfile:
    region = around.outputs.region
    if isinstance(region, Categories):
        return around.of_names(_categories(stage, region, around.outputs.exact))
    return profile_of(stage.on_bits, around)


@profile_of.register(BitNoise)
def _(stage: BitNoise, around: Surroundings) -> PrivacyProfile:
    return around.of_names(_of_bits(stage, around.outputs, around.pushed))


def _of_bits(stage: BitNoise, outputs: OutputRegion, pushed: list[Pair]) -> PrivacyProfile:
    """Bound the loss of redrawn bits."""
    region = outputs.region
    if region.diameter(1) == 0:  # a single string
        return PrivacyProfile((), (PureBound(ZERO, _RESPONSE),), (_RESPONSE,))
    pairs = _one_hot_pairs(region) if isinstance(region, OneHot) else _bit_pairs(stage, region)
    pairs = pairs[:1] if _symmetric(stage) else pairs
    bounds = [(pair, bit_bound(stage, pair)) for pair in pairs]
    shown = bounds if outputs.exact else [(pair, bit_bound(stage, pair)) for pair in pushed]
    if isinstance(region, Sparse) and not _symmetric(stage):  # with few ones, all bits give only an upper bound
        shown = [(region.farthest(1), bit_bound(stage, region.farthest(1)))] if outputs.exact else shown
    if isinstance(region, RowBits) and not region.free and not _symmetric(stage) and outputs.exact:
        farthest = _of_one_person(region, [(region.first, region.second)])
        shown = [(pair, bit_bound(stage, pair)) for pair in farthest]
    candidates = tuple(Candidate(pair, bound) for pair, bound in shown if bound.losses[0].components)
    largest = PairBound(tuple(loss for _, bound in bounds for loss in bound.losses), _RESPONSE)
    if isinstance(region, OneHot) or _symmetric(stage):
        return PrivacyProfile(candidates, (largest,), (_RESPONSE,))
    if kinds := worst_kinds(region):
        return _listed(stage, region, kinds, outputs.exact, candidates)
    return PrivacyProfile(candidates, (PureBound(largest.pure, _RESPONSE), _dominating(stage, region)), (_RESPONSE,))


def _listed(
    stage: BitNoise, region: Region, kinds: list[Kind], exact: bool, candidates: tuple[Candidate, ...]
) -> PrivacyProfile:
    """Short strings: every kind of pair is tried, so that the worst one at each ε is among them."""
    losses = {kind: kind_loss(stage, kind) for kind in kinds}
    bound = PairBound(tuple(losses.values()), _RESPONSE)
    if exact:
        once = [kind for kind in kinds if kind <= kind.swapped]
        both = [(kind, dict.fromkeys((kind, kind.swapped))) for kind in once]
        candidates = tuple(
            Candidate(pair_of(region, kind), PairBound(tuple(losses[way] for way in ways), _RESPONSE))
            for kind, ways in both
        )
    # One loss that dominates all pairs at once also bounds their divergences.
    return PrivacyProfile(candidates, (bound, _dominating(stage, region)), (_RESPONSE,))


def _symmetric(stage: BitNoise) -> bool:
    """Whether ones and zeros are treated the same everywhere, so that both directions of a pair are equal."""
    gaps = [stage.even - stage.odd, stage.even + stage.zero - 1]
    return all(abs(gap).b < real("1e-40") for gap in gaps)


def _kept_and_flipped(stage: BitNoise) -> tuple[Number, Number]:
    """The probabilities of a bit's own value and of the other one if these are the same everywhere.

    Each interval covers the values at all positions; for probabilities near 0 their rounding differences may dominate.
    """
    kept, flipped = (stage.even, stage.odd, 1 - stage.zero), (stage.zero, 1 - stage.even, 1 - stage.odd)
    first, second = (real([min(p.a for p in group), max(p.b for p in group)]) for group in (kept, flipped))
    return first, second


def bit_bound(stage: BitNoise, pair: Pair) -> PairBound:
    """The loss between two bit strings, in both directions."""
    losses = []
    blocks = pair.by_parity().blocks
    for first, second in (("x", "y"), ("y", "x")):
        components = []
        for block in blocks:
            chance = stage.even if block.positions == "even" else stage.odd
            p, q = (chance if getattr(block, side) == 1 else stage.zero for side in (first, second))
            if not block.x == block.y and _symmetric(stage):
                p, q = _kept_and_flipped(stage)  # which string has the 1 does not matter
            if not p == q:
                components.append((AtomLoss.of_bits(p, q), block.count))
        losses.append(PrivacyLoss(tuple(components)))
    return PairBound(tuple(losses[:1] if _symmetric(stage) else losses), _RESPONSE)


def _bit_pairs(stage: BitNoise, region: Region) -> list[Pair]:
    """All bits differ; both choices of which string has the ones at even positions and which at odd ones are tried."""
    if isinstance(region, Sparse) and _symmetric(stage):
        return [region.farthest(1)]  # the more bits differ, the larger the loss
    if isinstance(region, RowBits):
        mixed = "10" * region.length
        every = [("1" * region.length, "0" * region.length), (mixed[: region.length], mixed[1 : 1 + region.length])]
        return _of_one_person(region, [(region.first, region.second)] if _symmetric(stage) else every)
    odd = region.dim // 2
    even = region.dim - odd
    alike = [Block(ONE, ZERO, even, "even"), Block(ONE, ZERO, odd, "odd")]
    opposed = [Block(ONE, ZERO, even, "even"), Block(ZERO, ONE, odd, "odd")]
    choices = [alike] if _symmetric(stage) or not odd else [alike, opposed]
    return [Pair(tuple(block for block in blocks if block.count)) for blocks in choices]


def _one_hot_pairs(region: OneHot) -> list[Pair]:
    """One pair for each choice of parities of the two positions."""
    odd = region.dim // 2
    even = region.dim - odd
    one, other = Block(ONE, ZERO, 1), Block(ZERO, ONE, 1)
    pairs = []
    for evens, odds in (([one], [other]), ([one, other], []), ([], [one, other])):
        if len(evens) <= even and len(odds) <= odd:
            rest = [Block(ZERO, ZERO, even - len(evens), "even"), Block(ZERO, ZERO, odd - len(odds), "odd")]
            blocks = [replace(b, positions="even") for b in evens] + [replace(b, positions="odd") for b in odds]
            pairs.append(Pair(tuple(block for block in (*blocks, *rest) if block.count)))
    return pairs or [region.farthest(1)]


def _starts(region: RowBits) -> tuple[int, ...]:
    """Where a person's bits begin: at an even position, and at an odd one too if persons have odd numbers of bits."""
    return (0, region.length) if region.length % 2 and region.dim > region.length else (0,)


def _of_one_person(region: RowBits, strings: list[tuple[str, str]]) -> list[Pair]:
    """One person's strings with all others' bits equal, for each parity at which a person's bits begin."""
    pairs = []
    for start in _starts(region):
        for first, second in strings:
            blocks: list[Block] = []
            for positions, parity in _PARITIES.items():
                own = [i for i in range(region.length) if (start + i) % 2 == parity]
                before = (start + 1 - parity) // 2
                after = (region.dim + 1 - parity) // 2 - before - len(own)
                blocks.append(Block(ZERO, ZERO, before, positions))
                blocks += [Block(real(first[i]), real(second[i]), 1, positions) for i in own]
                blocks.append(Block(ZERO, ZERO, after, positions))
            pairs.append(Pair(tuple(block for block in blocks if block.count)))
    return pairs


def _dominating(stage: BitNoise, region: Region) -> PairBound:
    """Each bit replaced by a pair that is at least as far apart as it is in either direction, at every ε."""
    even, odd = region.dim - region.dim // 2, region.dim // 2
    counts = [(even, odd)]
    if isinstance(region, RowBits):
        even, odd = region.length - region.length // 2, region.length // 2
        counts = [(odd, even) if start % 2 else (even, odd) for start in _starts(region)]
    losses = []
    for evens, odds in counts:
        chances = [(chance, count) for chance, count in ((stage.even, evens), (stage.odd, odds)) if count]
        losses.append(PrivacyLoss(tuple((_envelope(chance, stage.zero), count) for chance, count in chances)))
    return PairBound(tuple(losses), _RESPONSE)


def _envelope(p: Number, q: Number) -> AtomLoss:
    """The largest of the lines P(E) − z·Q(E) over all events and both directions, as a loss in its own right.

    Where the slope of the envelope changes by s at z, Q has mass s and P has z·s.
    """
    lines: list[tuple[Number, Number]] = []  # value at z = 0, and negative slope
    for height, fall in [(ONE, ONE), (p, q), (1 - p, 1 - q), (q, p), (1 - q, 1 - p), (ZERO, ZERO)]:
        # Lines with equal slopes up to rounding are merged.
        twins = [i for i, line in enumerate(lines) if abs(line[1] - fall).b < real("1e-40")]
        if twins:
            lines[twins[0]] = maximum(lines[twins[0]][0], height), maximum(lines[twins[0]][1], fall)
        else:
            lines.append((height, fall))
    lines.sort(key=lambda line: (-float(line[0].mid), -float(line[1].mid)))
    here, atoms = lines[0], []
    while here[1].b > 0:
        later = [((here[0] - line[0]) / (here[1] - line[1]), line) for line in lines if line[1].mid < here[1].mid]
        z, there = min(later, key=lambda pair: (float(pair[0].mid), float(pair[1][1].mid)))
        mass = z * (here[1] - there[1])
        if z.a > 0:
            atoms.append((log(z), mass))
        elif z.b > 0:  # 0 up to rounding
            atoms.append((log(real(z.b)), maximum(ZERO, mass)))
        here = there
    return AtomLoss(tuple(atoms), maximum(ZERO, here[0]))


def _categories(stage: Flip, region: Categories, exact: bool) -> PrivacyProfile:
    """k-ary randomized response: all pairs are equivalent."""
    k = region.size
    if k == 1 or stage.keep == (1 - stage.keep) / (k - 1):
        return PrivacyProfile((), (PureBound(ZERO, _RESPONSE),), (_RESPONSE,))
    bound = category_bound(stage, k)
    candidates = (Candidate(Pair((Block(ZERO, ONE, 1),)), bound),) if exact else ()
    return PrivacyProfile(candidates, (bound,), (_RESPONSE,))


def category_bound(stage: Flip, size: int) -> PairBound:
    """The loss between any two of some categories."""
    keep, other = stage.keep, (1 - stage.keep) / (size - 1)
    rest = other * (size - 2)
    return PairBound((PrivacyLoss(((AtomLoss.between((keep, other, rest), (other, keep, rest)), 1),)),), _RESPONSE)


@reason.register(BitNoise)
def _(stage: BitNoise, region: Region, profile: PrivacyProfile) -> str:
    return f"{differing_bits(region, profile)}, and each adds its own loss"


@event.register(Flip)
def _(stage: Flip, worst: WorstPair) -> Witness:
    """About categories: bits are noise of their own."""
    keep, other = stage.keep, (1 - stage.keep) / (stage.size - 1)
    if keep.mid < other.mid:
        return Witness(worst.pair, "the second category is put out", *_logs(other, keep))
    return Witness(worst.pair, "the first category is put out", *_logs(keep, other))


@event.register(BitNoise)
def _(stage: BitNoise, worst: WorstPair) -> Witness:
    if not worst.delta == 0:
        return worst.loss_above()
    pair = worst.pair
    there, back = worst.bound.losses[0], worst.bound.losses[-1]
    if back.pure.a > there.pure.a:
        pair = swapped(pair.by_parity())
    log_p = log_q = ZERO
    for block in pair.by_parity().blocks:
        if block.same:
            continue
        chance = stage.even if block.positions == "even" else stage.odd
        p, q = (chance if bit == 1 else stage.zero for bit in (block.x, block.y))
        ones, zeros = _logs(p, q), _logs(1 - p, 1 - q)
        better = ones if _gap(ones) >= _gap(zeros) else zeros
        log_p, log_q = log_p + better[0] * block.count, log_q + better[1] * block.count
    return Witness(pair, "each bit that differs takes the value that speaks most for the first string", log_p, log_q)


def _logs(p: Number, q: Number) -> tuple[Number, Number]:
    return (log(p) if p.a > 0 else -INFINITY, log(q) if q.a > 0 else -INFINITY)


def _gap(logs: tuple[Number, Number]) -> float:
    if logs[0] == -INFINITY:
        return float("-inf")
    return float("inf") if logs[1] == -INFINITY else float((logs[0] - logs[1]).mid)


@least_loss.register(BitNoise)
def _(stage: BitNoise, pair: Pair) -> Number:
    return bit_bound(stage, pair).pure


@least_loss.register(Flip)
def _(stage: Flip, pair: Pair) -> Number:
    return bit_bound(stage.on_bits, pair).pure
