"""Losses of noise with finitely many outputs: flipped bits, categories, the exponential mechanism.

Proofs: docs/proofs/randomized-response.md and docs/proofs/exponential.md.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

from dpassay.core.numbers import INFINITY, ONE, ZERO, Number, iv, log_add, maximum
from dpassay.core.theorems import Theorem
from dpassay.errors import InputError
from dpassay.exact.loss_components import AtomLoss
from dpassay.exact.privacy_loss import PrivacyLoss
from dpassay.exact.profile import Candidate, PrivacyProfile
from dpassay.exact.profile_bounds import PairBound, PureBound
from dpassay.pipeline.regions import (
    Ball,
    Block,
    Box,
    Categories,
    OneHot,
    Pair,
    Region,
    Repeated,
    RowBits,
    SensitivityBall,
    Sparse,
)
from dpassay.pipeline.stages.base import NoiseStage, OutputRegion
from dpassay.pipeline.stages.bits import BitNoise, Flip
from dpassay.pipeline.stages.exponential import Choose

_RESPONSE = Theorem.RANDOMIZED_RESPONSE
_PARITIES: dict[Literal["even", "odd"], int] = {"even": 0, "odd": 1}


def discrete_profile(stage: NoiseStage, outputs: OutputRegion, pushed: list[Pair]) -> PrivacyProfile:
    """Bound the loss of a noise stage with finitely many outputs."""
    region = outputs.region
    if isinstance(stage, Choose):
        return _choose(stage, outputs, pushed)
    if isinstance(stage, Flip) and isinstance(region, Categories):
        return _categories(stage, region, outputs.exact)
    if isinstance(stage, Flip):
        stage = stage.on_bits
    if not isinstance(stage, BitNoise):
        raise InputError(f"no exact loss is known for the stage {stage.name}")
    if region.diameter(1) == 0:  # a single string
        return PrivacyProfile((), (PureBound(ZERO, _RESPONSE),), (_RESPONSE,))
    pairs = _one_hot_pairs(region) if isinstance(region, OneHot) else _bit_pairs(stage, region)
    pairs = pairs[:1] if _symmetric(stage) else pairs
    bounds = [(pair, bit_bound(stage, pair)) for pair in pairs]
    shown = bounds if outputs.exact else [(pair, bit_bound(stage, pair)) for pair in pushed]
    if isinstance(region, Sparse) and not _symmetric(stage):  # all bits bound few ones from above only
        shown = [(region.farthest(1), bit_bound(stage, region.farthest(1)))] if outputs.exact else shown
    if isinstance(region, RowBits) and not region.whole and not _symmetric(stage) and outputs.exact:
        farthest = _of_one_person(region, [(region.first, region.second)])
        shown = [(pair, bit_bound(stage, pair)) for pair in farthest]
    candidates = tuple(Candidate(pair, bound) for pair, bound in shown if bound.losses[0].components)
    largest = PairBound(tuple(loss for _, bound in bounds for loss in bound.losses), _RESPONSE)
    if isinstance(region, OneHot) or _symmetric(stage):
        return PrivacyProfile(candidates, (largest,), (_RESPONSE,))
    return PrivacyProfile(candidates, (PureBound(largest.pure, _RESPONSE), _dominating(stage, region)), (_RESPONSE,))


def _symmetric(stage: BitNoise) -> bool:
    """Whether ones and zeros are treated alike everywhere, so that both ways of a pair are alike."""
    gaps = [stage.even - stage.odd, stage.even + stage.zero - 1]
    return all(abs(gap).b < iv.mpf("1e-40") for gap in gaps)


def bit_bound(stage: BitNoise, pair: Pair) -> PairBound:
    """The loss between two bit strings, both ways."""
    losses = []
    blocks = pair.by_parity().blocks
    for first, second in (("x", "y"), ("y", "x")):
        components = []
        for block in blocks:
            chance = stage.even if block.positions == "even" else stage.odd
            p, q = (chance if getattr(block, side) == 1 else stage.zero for side in (first, second))
            if not block.x == block.y and _symmetric(stage):
                p, q = stage.even, stage.zero  # which string has the 1 does not matter
            if not p == q:
                components.append((AtomLoss.of_bits(p, q), block.count))
        losses.append(PrivacyLoss(tuple(components)))
    return PairBound(tuple(losses[:1] if _symmetric(stage) else losses), _RESPONSE)


def _bit_pairs(stage: BitNoise, region: Region) -> list[Pair]:
    """All bits differ; which string has the ones at even and which at odd positions is tried both ways."""
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
    """Where a person's bits begin: at an even position, and where the persons' bits are odd in number at an odd one."""
    return (0, region.length) if region.length % 2 and region.dim > region.length else (0,)


def _of_one_person(region: RowBits, strings: list[tuple[str, str]]) -> list[Pair]:
    """One person's strings with all others' bits alike, for each parity at which a person's bits begin."""
    pairs = []
    for start in _starts(region):
        for first, second in strings:
            blocks: list[Block] = []
            for positions, parity in _PARITIES.items():
                own = [i for i in range(region.length) if (start + i) % 2 == parity]
                before = (start + 1 - parity) // 2
                after = (region.dim + 1 - parity) // 2 - before - len(own)
                blocks.append(Block(ZERO, ZERO, before, positions))
                blocks += [Block(iv.mpf(first[i]), iv.mpf(second[i]), 1, positions) for i in own]
                blocks.append(Block(ZERO, ZERO, after, positions))
            pairs.append(Pair(tuple(block for block in blocks if block.count)))
    return pairs


def _dominating(stage: BitNoise, region: Region) -> PairBound:
    """Each bit replaced by a pair that is at least as far apart as either way of it, at every ε."""
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
    """The largest of the lines P(E) − z·Q(E) over all events and both ways, as a loss in its own right.

    Where the slope of the envelope changes by s at z, Q has mass s and P has z·s.
    """
    lines: list[tuple[Number, Number]] = []  # height at z = 0, and fall
    for height, fall in [(ONE, ONE), (p, q), (1 - p, 1 - q), (q, p), (1 - q, 1 - p), (ZERO, ZERO)]:
        # Lines that fall alike up to rounding are one.
        twins = [i for i, line in enumerate(lines) if abs(line[1] - fall).b < iv.mpf("1e-40")]
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
            atoms.append((iv.log(z), mass))
        elif z.b > 0:  # 0 up to rounding
            atoms.append((iv.log(iv.mpf(z.b)), maximum(ZERO, mass)))
        here = there
    return AtomLoss(tuple(atoms), maximum(ZERO, here[0]))


def _categories(stage: Flip, region: Categories, exact: bool) -> PrivacyProfile:
    """k-ary randomized response: all pairs are alike."""
    k = region.size
    if k == 1:
        return PrivacyProfile((), (PureBound(ZERO, _RESPONSE),), (_RESPONSE,))
    keep, other = stage.keep, (1 - stage.keep) / (k - 1)
    rest = other * (k - 2)
    if keep == other:
        return PrivacyProfile((), (PureBound(ZERO, _RESPONSE),), (_RESPONSE,))
    bound = PairBound((PrivacyLoss(((AtomLoss.between((keep, other, rest), (other, keep, rest)), 1),)),), _RESPONSE)
    candidates = (Candidate(Pair((Block(ZERO, ONE, 1),)), bound),) if exact else ()
    return PrivacyProfile(candidates, (bound,), (_RESPONSE,))


def choose_bound(stage: Choose, pair: Pair) -> PairBound:
    """The loss of the exponential mechanism between two score vectors, both ways."""
    losses = []
    for first, second in (("x", "y"), ("y", "x")):
        scores = [[getattr(block, side) * stage.rate for block in pair.blocks] for side in (first, second)]
        totals = [_log_total(values, [block.count for block in pair.blocks]) for values in scores]
        atoms = []
        for x, y, block in zip(*scores, pair.blocks, strict=True):
            chance = iv.exp(x - totals[0]) * block.count
            atoms.append(((ZERO if block.same else x - y) - totals[0] + totals[1], chance))
        losses.append(PrivacyLoss(((AtomLoss(tuple(atoms)), 1),)))
    return PairBound(tuple(losses), Theorem.EXPONENTIAL)


def _log_total(scores: Iterable[Number], counts: Iterable[int]) -> Number:
    total: Number | None = None
    for score, count in zip(scores, counts, strict=True):
        term = score + iv.log(iv.mpf(count))
        total = term if total is None else log_add(total, term)
    return total


def _choose(stage: Choose, outputs: OutputRegion, pushed: list[Pair]) -> PrivacyProfile:
    """Scores in a region: 2·rate·Δ∞ always holds; on a cube the dominating pair is known exactly."""
    region, theorem = outputs.region, Theorem.EXPONENTIAL
    if region.dim == 1 or (isinstance(region, Repeated) and region.region.dim == 1):  # all scores are equal
        return PrivacyProfile((), (PureBound(ZERO, theorem),), (theorem,))
    general = PureBound(2 * stage.rate * region.diameter(float("inf")), theorem)
    if region.diameter(float("inf")) == INFINITY:
        infinite = PairBound((PrivacyLoss(((AtomLoss((), ONE), 1),)),), Theorem.UNBOUNDED)
        known = (Candidate(region.farthest(1), infinite),) if outputs.exact else ()
        return PrivacyProfile(known, (general,), (Theorem.UNBOUNDED,))
    pairs = _score_pairs(region, stage) if outputs.exact else pushed
    candidates = tuple(Candidate(pair, choose_bound(stage, pair)) for pair in pairs)
    if outputs.exact and _cube(region) is not None:
        exact = PureBound(maximum(*(c.bound.pure for c in candidates)), theorem)
        return PrivacyProfile(candidates, (general, exact), (theorem,))
    tails = general.pure if outputs.exact and isinstance(region, SensitivityBall) and region.p == float("inf") else None
    return PrivacyProfile(candidates, (general,), (theorem,), pure_from_tails=tails, pair=pairs[0] if pairs else None)


def _cube(region: Region) -> tuple[Number, Number] | None:
    if isinstance(region, Ball) and region.p == float("inf"):
        return -region.radius, region.radius
    if isinstance(region, Box) and len(region.sides) == 1:
        return region.sides[0][0], region.sides[0][1]
    return None


def _score_pairs(region: Region, stage: Choose) -> list[Pair]:
    """One output's score high against all others', and the other way round."""
    cube = _cube(region)
    if cube is not None:
        low, high = cube
        return [Pair((Block(high, low, 1), Block(low, high, region.dim - 1)))]
    if isinstance(region, SensitivityBall) and region.p == float("inf"):
        half = region.distance / 2
        return [
            # Far behind the others, the first output gains the most; level with them, most often.
            Pair((Block(half - base, -half - base, 1), Block(-half, half, region.dim - 1)))
            for base in (60 / stage.rate + region.distance, ZERO)
        ]
    return [region.farthest(q) for q in (1.0, 2.0, float("inf"))]
