"""Lower bounds after sampling: the two data sets that show them, and what they show.

If everything is visible after the noise, only the difference of two sums matters. Otherwise it also matters where they
lie and in which order they are compared: docs/proofs/poisson.md, points 7 and 8; docs/proofs/fixed-size.md, point 5.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dpassay.core.numbers import INFINITY, ONE, ZERO, Number, maximum
from dpassay.core.theorems import Theorem
from dpassay.exact.dataflow.data_sets import DataSets, added, against_zero, fixed_size, replaced, swapped
from dpassay.exact.dataflow.post_processing import outermost_loss, shown_in_order
from dpassay.exact.dataflow.sampled_pairs import (
    EventBound,
    absent,
    amplified,
    amplified_replaced,
    opposite,
    same_side,
    sampled,
    without_record,
)
from dpassay.exact.mechanisms.questions import loss_far_out
from dpassay.exact.profiles.bounds import ProfileBound
from dpassay.exact.profiles.dominating_pairs import additive_bound
from dpassay.exact.profiles.profile import Candidate, PrivacyProfile
from dpassay.pipeline.distributions import Gaussian
from dpassay.pipeline.pair import Block, Pair
from dpassay.pipeline.regions import Everything, Intersection, Region, SensitivityBall
from dpassay.pipeline.stages.base import OutputRegion
from dpassay.pipeline.stages.noises.radial import Radial
from dpassay.pipeline.thresholds import Thresholds
from dpassay.values import dataclass


@dataclass(frozen=True)
class Drawn:
    """How records are drawn, what one of them can be just before the noise, and what is visible after it.

    `pairs` are vectors that two records certainly can have. A batch of fixed size has `size` of `of` records, a Poisson
    sample has no size. `apart` is the profile without sampling of a record replaced by another one after Poisson
    sampling. `told` are the thresholds that the output shows, None if none are known. If `swamped`, the noise comes
    after another one, so that only data sets with very large sums reach the values before it.
    """

    rate: Number
    theorem: Theorem
    outputs: OutputRegion
    pairs: tuple[Pair, ...]
    told: Thresholds | None
    size: int = 0
    of: int = 0
    apart: PrivacyProfile | None = None
    swamped: bool = False
    radial: Radial | None = None

    @property
    def location_free(self) -> bool:
        """Whether only the difference of two sums matters, because later stages lose nothing."""
        return self.told is not None and self.told.everything

    @property
    def region(self) -> Region:
        """What one record can be, as one of several copies."""
        return self.outputs.region.one_copy

    @property
    def moves_anywhere(self) -> bool:
        """Whether other records, sampled as well, can put the sum nearly anywhere: vectors near 0 in all directions."""
        return self.outputs.exact and not self.outputs.far and self.region.around_zero


@dataclass(frozen=True)
class Lowers:
    """Real pairs of data sets with their losses, and the largest loss at δ = 0 if only rare outputs show it."""

    candidates: tuple[Candidate, ...] = ()
    pure: Number | None = None
    pair: Pair | None = None
    data_sets: DataSets | None = None

    def put(self, profile: PrivacyProfile) -> PrivacyProfile:
        """A profile with these lower bounds."""
        profile = replace(profile, candidates=self.candidates, tail_lower_bound=self.pure)
        return replace(profile, pair=self.pair, data_sets=self.data_sets)


def added_lowers(one: PrivacyProfile, drawn: Drawn) -> Lowers:
    """A record that is in one data set only; in batches of fixed size, where all others have the other vector.

    Either way a step has M = (1 − q)·N_b + q·N_a in the first data set and N_b in the second. Where the sums lie, one
    order may show more than the other.
    """
    far_out = {Theorem.NO_NOISE, Theorem.UNBOUNDED} & set(one.theorems)
    if drawn.location_free or drawn.swamped or far_out or one.noise is None or not one.noise.known_tails:
        return _by_difference(one, drawn)
    if drawn.told is None:
        return Lowers()
    candidates, pure = [], [ZERO]
    for sets in _located(drawn):
        if not sets.sums.distance(float("inf")).a > 0:
            continue
        bound = additive_bound(one.noise, sets.sums)
        pair = sets.records if drawn.size else sets.sums
        largest, shown = shown_in_order(one.noise, sets.sums, bound, drawn.told)
        candidates.append(Candidate(pair, sampled(shown, drawn.rate), sets))
        pure.append(amplified(largest, drawn.rate))
        largest, shown = shown_in_order(one.noise, swapped(sets.sums), bound, drawn.told)
        candidates.append(Candidate(pair, without_record(shown, drawn.rate), sets.reversed()))
        pure.append(absent(largest, drawn.rate))
    if not candidates:
        return Lowers()
    best = max(range(len(candidates)), key=lambda i: pure[i + 1].a)
    return Lowers(tuple(candidates), maximum(*pure), candidates[best].pair, candidates[best].data_sets)


def _by_difference(one: PrivacyProfile, drawn: Drawn) -> Lowers:
    """The losses of one step in which the record takes part, amplified: both orders must be possible, or be equal."""
    if not (one.noise is None or one.noise.even or _both_orders(one, drawn)):
        return Lowers()
    candidates = [
        replace(c, bound=sampled(c.bound, drawn.rate), data_sets=_difference(c.pair, drawn)) for c in one.candidates
    ]
    pure = None if one.tail_lower_bound is None else amplified(one.tail_lower_bound, drawn.rate)
    return Lowers(tuple(candidates), pure, one.pair, None if one.pair is None else _difference(one.pair, drawn))


def _both_orders(one: PrivacyProfile, drawn: Drawn) -> bool:
    """Whether a record and its opposite can be added, or two records replace each other.

    The opposite of a vector in a ball lies in it too, and on a sphere; but not in a part of it, of which the ball or
    the sphere is only an outer bound.
    """
    region = one.region and one.region.one_copy
    opposites = drawn.outputs.exact and isinstance(region, SensitivityBall | Intersection | Everything)
    return bool(drawn.size) or opposites


def _difference(pair: Pair, drawn: Drawn) -> DataSets:
    """The data sets whose sums differ as a pair does."""
    if drawn.size:
        return fixed_size(pair, drawn.size, drawn.of)
    blocks = []
    for b in pair.blocks:
        gap = b.y if b.x == 0 and b.x.delta == 0 else b.x - b.y
        blocks.append(Block(ZERO if b.same else gap, ZERO, b.count, b.positions))
    return added(Pair(tuple(blocks)))


def _located(drawn: Drawn) -> Iterator[DataSets]:
    """Data sets with sums whose places are known."""
    # Else vectors are known in doubles, up to a small move inwards, or are reached only in the limit.
    sure = drawn.outputs.exact and not drawn.outputs.far
    for pair in drawn.pairs:
        for each in (pair, swapped(pair)):
            record = against_zero(each)
            if drawn.size and (sure or drawn.size == 1):
                yield fixed_size(each, drawn.size, drawn.of)
            if drawn.size and drawn.moves_anywhere:
                yield fixed_size(record, drawn.size, drawn.of)
                yield fixed_size(_beside(record, -ONE / (2 * drawn.size)), drawn.size, drawn.of)
            if not drawn.size:
                yield added(record)
            if not drawn.size and drawn.moves_anywhere:
                half = Pair(tuple(Block(-b.x / 2, ZERO, b.count, b.positions) for b in record.blocks))
                yield added(record, half)


def _beside(record: Pair, share: Number) -> Pair:
    """A record's vector, and a multiple of it."""
    return Pair(tuple(Block(b.x, b.x * share, b.count, b.positions) for b in record.blocks))


def replaced_lowers(one: PrivacyProfile, drawn: Drawn) -> Lowers:
    """A record replaced after Poisson sampling, and no other records: docs/proofs/poisson.md, points 4 and 8."""
    if drawn.swamped:
        pure = maximum(ZERO, *(c.bound.pure for c in one.candidates))
        return Lowers((), amplified(pure, drawn.rate) if pure.b > 0 else None, _first(one))
    if {Theorem.NO_NOISE, Theorem.UNBOUNDED} & set(one.theorems):
        candidates = [replace(c, bound=sampled(c.bound, drawn.rate)) for c in one.candidates]
        return Lowers(tuple(candidates))
    if drawn.told is None:
        return Lowers()
    candidates, found = [], []
    for pair in drawn.pairs:
        for records in (pair, swapped(pair)):
            if not records.distance(float("inf")).a > 0:
                continue
            if one.noise is not None and one.noise.known_tails:
                event = EventBound(one.noise, records, drawn.rate, drawn.told)
                candidates.append(Candidate(records, event, replaced(records)))
            pure = _common_output(one, drawn, records)
            found.append((pure, records))
    if not found:
        return Lowers()
    largest, pair = max(found, key=lambda one: one[0].a)
    return Lowers(tuple(candidates), largest if largest.b > 0 else None, pair, replaced(pair))


def _first(one: PrivacyProfile) -> Pair | None:
    best = one.dominating_pure()
    return one.pair if best is None else best.pair


def _common_output(one: PrivacyProfile, drawn: Drawn, records: Pair) -> Number:
    """ε at δ = 0 of outputs that have the largest ratios against both the other record and none."""
    assert drawn.told is not None
    noise, told = one.noise, drawn.told
    if drawn.radial is not None and told.unlimited and one.tail_lower_bound is not None and opposite(records):
        alone, apart = (drawn.radial.distance(pair) / drawn.radial.scale for pair in (against_zero(records), records))
        return amplified_replaced(alone, apart, drawn.rate)
    if not same_side(records):
        return ZERO
    if noise is None:
        return ZERO
    if told.unlimited if noise.known_tails else told.everything:
        against_none, against_other = (loss_far_out(noise, pair) for pair in (against_zero(records), records))
        if against_none is None or against_other is None:
            return ZERO
        if against_none == INFINITY:
            return INFINITY if any((b.x * (b.x - b.y)).a > 0 for b in records.blocks) else ZERO
        return amplified_replaced(against_none, against_other, drawn.rate)
    if not noise.known_tails:
        return ZERO
    # The outermost thresholds: P and Q of that event, by the ratios against no record.
    alone, apart = ZERO, ZERO
    for block in records.blocks:
        if not block.same:
            alone += outermost_loss(noise, block.x, ZERO, told) * block.count if not _zero(block.x) else ZERO
            apart += outermost_loss(noise, block.x, block.y, told) * block.count
    return amplified_replaced(alone, apart, drawn.rate)


def _zero(value: Number) -> bool:
    return bool(value == 0 and value.delta == 0)


def opposite_records(one: PrivacyProfile, drawn: Drawn) -> list[Candidate]:
    """A record and its opposite, with the loss of Gaussian noise between a record and none, if all of it is visible."""
    found, noise = [], one.noise
    if not drawn.location_free or drawn.swamped or not isinstance(noise, Gaussian):
        return []
    for records in drawn.pairs:
        if opposite(records) and records.distance(2).a > 0:
            bound: ProfileBound = additive_bound(noise, against_zero(records))
            found.append(Candidate(records, bound, replaced(records)))
    return found
