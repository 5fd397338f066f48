"""Pipelines whose records are sampled, or that are repeated: from the profile of one step to that of all.

`poisson`, `subsample` or `shuffle` at the beginning and `times` at the end enclose a pipeline that is analysed on its
own. Gaussian noise behind `poisson` has an exact answer (docs/proofs/poisson.md); for other noise, pure ε is known, and
what follows from it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from dpassay.core.neighbours import Neighbours
from dpassay.core.normal import normal_tail
from dpassay.core.numbers import INFINITY, ONE, ZERO, Number, exactly, iv, maximum, middle, minimum
from dpassay.core.theorems import Theorem
from dpassay.errors import InputError
from dpassay.exact.bounded_range import RangeBound, RangeSteps
from dpassay.exact.loss_components import AtomLoss, GaussianLoss
from dpassay.exact.privacy_loss import PrivacyLoss
from dpassay.exact.profile import Candidate, PrivacyProfile
from dpassay.exact.profile_bounds import (
    DropoutBound,
    PairBound,
    ProfileBound,
    PureBound,
    RenyiBound,
    ZcdpBound,
    between_ends,
)
from dpassay.exact.sampled_cells import Way
from dpassay.exact.sampled_loss import SampledLoss
from dpassay.exact.sampled_steps import with_laplace
from dpassay.pipeline.distributions import Laplace
from dpassay.pipeline.pair import Block, Pair
from dpassay.pipeline.pipeline import Pipeline
from dpassay.pipeline.regions import Ball, Box, Intersection, Region, Repeated, Sphere
from dpassay.pipeline.stages.sampling import Poisson, Sampling, Shuffle, Subsample, Times


@dataclass(frozen=True)
class Steps:
    """A pipeline taken apart: what one step does, which records take part in it, and how often it is done.

    >>> from dpassay.pipeline.parser import parse
    >>> steps = Steps.of(parse("poisson(0.01) | clip(l2, 1) | gaussian(1) | times(1000)"))
    >>> print(steps.inner, "x", steps.count)
    clip(l2, 1) | gaussian(1) x 1000
    """

    inner: Pipeline
    sampling: Sampling | None
    count: int

    @classmethod
    def of(cls, pipeline: Pipeline) -> Steps:
        """The parts of a pipeline; one that has neither stage is a single step."""
        stages, sampling, count = pipeline.stages, None, 1
        if isinstance(last := stages[-1], Times):
            stages, count = stages[:-1], last.steps
        if stages and isinstance(first := stages[0], Sampling):
            stages, sampling = stages[1:], first
        if not stages:
            raise InputError("there is nothing to sample for or to repeat: add a stage in between, such as gaussian(1)")
        if isinstance(sampling, Poisson | Subsample) and sampling.rate == 1:
            sampling = None
        return cls(pipeline if stages == pipeline.stages else Pipeline(stages, pipeline.dim), sampling, count)

    @property
    def warnings(self) -> tuple[str, ...]:
        """A note on what is easily confused."""
        if not isinstance(self.sampling, Shuffle) or self.sampling.batches == 1:
            return ()
        return (
            "Shuffled batches are not Poisson samples: an epsilon computed for "
            f"poisson(1/{self.sampling.batches}) does not hold here, and no amplification by shuffling is proved.",
        )

    @property
    def plain(self) -> bool:
        """Whether it is done once, with all records."""
        return self.sampling is None and self.count == 1

    @property
    def described(self) -> str:
        """A sentence about what is done, without the full stop."""
        each = f"in each of {self.count:,} steps" if self.count > 1 else ""
        if isinstance(self.sampling, Poisson):
            takes = f"A record takes part {each} with probability {middle(self.sampling.rate):g}".replace("  ", " ")
            return f"{takes}, and the losses of all steps add up" if each else takes
        if isinstance(self.sampling, Subsample):
            drawn = f"{self.sampling.size:,} of {self.sampling.records:,} records are drawn"
            return f"In each of {self.count:,} steps {drawn}, and the losses of all steps add up" if each else drawn
        if isinstance(self.sampling, Shuffle):
            batches = f"each record takes part in one of {self.sampling.batches:,} shuffled batches"
            return f"In each of {self.count:,} epochs {batches}" if each else f"E{batches[1:]}"
        return f"The losses of {self.count:,} steps add up"

    def relation(self, neighbours: Neighbours) -> Neighbours:
        """The neighbours for which one step is analysed: what a record that takes part changes."""
        return Neighbours("add-remove-record") if isinstance(self.sampling, Poisson) else neighbours

    def profile(self, one: PrivacyProfile, neighbours: Neighbours) -> PrivacyProfile:
        """The profile of all steps, given that of one."""
        if self.plain:
            return one
        if isinstance(self.sampling, Poisson):
            shown = one.region is not None and (neighbours.relation == "add-remove-record" or _symmetric(self.inner))
            exact = _sampled_gaussian(
                one, self.sampling.rate, self.count, neighbours.relation == "replace-record", shown
            )
            if exact is not None:
                return exact
            step = _sampled(one, self.sampling.rate, neighbours.relation == "replace-record", shown)
            found = step if self.count == 1 else repeated(step, self.count)
            if neighbours.relation == "add-remove-record":
                found = with_laplace(found, one, step, self.sampling.rate, self.count)
            return found
        if isinstance(self.sampling, Subsample):
            exact = _fixed_size_gaussian(one, self.sampling.rate, self.count)
            if exact is not None:
                return exact
            one = replace(_sampled(one, self.sampling.rate, False, True), theorems=(*one.theorems, Theorem.FIXED_SIZE))
        elif isinstance(self.sampling, Shuffle):
            return _shuffled(one, self.sampling.batches, self.count)
        return one if self.count == 1 else repeated(one, self.count)


def _symmetric(pipeline: Pipeline) -> bool:
    """Whether the opposite of a record's vector is also some record's vector."""
    outputs = pipeline.output_regions()[(pipeline.noise_positions or [0])[0]]
    region: Region = outputs.region
    if not outputs.exact:
        return False
    region = region.region if isinstance(region, Repeated) else region
    if isinstance(region, Box):
        return all(low.a == -high.b and low.b == -high.a for low, high, _ in region.sides)
    return isinstance(region, Ball | Sphere | Intersection)


def _gaussian(bound: ProfileBound) -> Number | None:
    """The shift, in standard deviations, of a bound that is the loss of Gaussian noise."""
    if not isinstance(bound, PairBound) or len(bound.losses) != 1 or len(bound.losses[0].components) != 1:
        return None
    component, count = bound.losses[0].components[0]
    return component.mu if isinstance(component, GaussianLoss) and count == 1 else None


def _sampled_gaussian(
    one: PrivacyProfile, rate: Number, count: int, replaced: bool, shown: bool
) -> PrivacyProfile | None:
    """Gaussian noise: the farthest record is the worst in each order of the data sets, and so is its opposite."""
    ways: tuple[Way, ...] = ("replace",) if replaced else ("remove", "add")

    def bound(mu: Number) -> PairBound:
        losses = (PrivacyLoss(((SampledLoss(rate, mu, way), count),)) for way in ways)
        return PairBound(tuple(losses), Theorem.POISSON)

    shifts = [mu for mu in map(_gaussian, one.uppers) if mu is not None]
    if not shifts:
        return None
    candidates = [
        Candidate(_opposite(c.pair) if replaced else c.pair, bound(mu))
        for c in one.candidates
        if shown and (mu := _gaussian(c.bound)) is not None
    ]
    uppers = (bound(minimum(*shifts)),)
    theorems = (*one.theorems, Theorem.POISSON, Theorem.LATTICE_SUMS)
    return replace(one, candidates=tuple(candidates), uppers=uppers, theorems=theorems, pure_from_tails=None)


def _fixed_size_gaussian(one: PrivacyProfile, rate: Number, count: int) -> PrivacyProfile | None:
    """Batches of a fixed size, Gaussian noise: docs/proofs/fixed-size.md."""

    def bound(mu: Number, ways: tuple[Way, ...]) -> PairBound:
        losses = (PrivacyLoss(((SampledLoss(rate, mu, way), count),)) for way in ways)
        return PairBound(tuple(losses), Theorem.FIXED_SIZE)

    shifts = [mu for mu in map(_gaussian, one.uppers) if mu is not None]
    if not shifts:
        return None
    shown = [(c, mu) for c in one.candidates if (mu := _gaussian(c.bound)) is not None]
    return replace(
        one,
        candidates=tuple(Candidate(c.pair, bound(mu, ("remove", "add"))) for c, mu in shown),
        uppers=(bound(minimum(*shifts), ("fixed",)),),
        theorems=(*one.theorems, Theorem.FIXED_SIZE, Theorem.LATTICE_SUMS),
        pure_from_tails=None,
    )


def _shuffled(one: PrivacyProfile, batches: int, epochs: int) -> PrivacyProfile:
    """Shuffled batches: the upper bound is as if it were known which one has the record, docs/proofs/shuffle.md."""
    known = repeated(one, epochs) if epochs > 1 else one
    shown = [(c, mu) for c in one.candidates if (mu := _gaussian(c.bound)) is not None]
    return replace(
        known,
        candidates=tuple(Candidate(c.pair, ShuffledBound(mu, batches)) for c, mu in shown),
        theorems=(*known.theorems, Theorem.SHUFFLE),
        pure_from_tails=one.lower_pure * epochs,
        pair=_pair(one),
    )


@dataclass(frozen=True)
class ShuffledBound:
    """What one epoch of shuffled batches shows, with Gaussian noise: the largest output, of a record `mu` away.

    >>> shown = ShuffledBound(ONE, 1).delta(ZERO)  # one batch: Gaussian noise, 2Φ(1/2) − 1
    >>> round(float(shown.mid), 6)
    0.382925
    """

    mu: Number
    batches: int
    theorem: Theorem = Theorem.SHUFFLE

    @property
    def pure(self) -> Number:
        return INFINITY if self.mu.a > 0 else ZERO

    def threshold(self, epsilon: float) -> float:
        """A threshold for the largest output that shows much; any is valid."""
        mu, b = middle(self.mu), self.batches

        def gain(t: float) -> float:
            tail, moved = math.erfc(t / math.sqrt(2)) / 2, math.erfc((t - mu) / math.sqrt(2)) / 2
            rest = b * math.log1p(-tail) if tail < 1 else -math.inf
            q = -math.expm1(rest)
            p = 1 - math.exp(rest - math.log1p(-tail)) * (1 - moved) if tail < 1 else 1.0
            return p - math.exp(min(epsilon + math.log(max(q, 1e-320)), 700.0))

        near = max((-8 + 0.1 * i for i in range(round(10 * (mu + 60)))), key=gain)
        return max((near + 0.005 * i for i in range(-20, 21)), key=gain)

    def delta(self, epsilon: Number) -> Number:
        """At least δ(ε): P − e^ε Q of the event that the largest output exceeds a threshold."""
        t = exactly(self.threshold(middle(epsilon)))
        stays = 1 - normal_tail(t)
        p = 1 - stays ** (self.batches - 1) * (1 - normal_tail(t - self.mu))
        return maximum(ZERO, p - iv.exp(epsilon) * (1 - stays**self.batches))

    def epsilon(self, delta: Number) -> Number:
        """At least ε(δ): the largest of some at which more than δ is shown."""
        low, high = 0.0, 1.0
        if self.delta(ZERO).a <= delta.b:
            return ZERO
        while self.delta(exactly(high)).a > delta.b and high < 1e6:
            low, high = high, 2 * high
        for _ in range(30):
            half = (low + high) / 2
            low, high = (half, high) if self.delta(exactly(half)).a > delta.b else (low, half)
        return exactly(low)

    epsilon_above = epsilon


def _opposite(pair: Pair) -> Pair:
    """A record's vector and the opposite one, from two sums that differ by it."""
    return Pair(tuple(Block(b.x - b.y, b.y - b.x, b.count, b.positions) for b in pair.blocks))


def _sampled(one: PrivacyProfile, rate: Number, replaced: bool, shown: bool) -> PrivacyProfile:
    """Other noise, one step: docs/proofs/poisson.md, points 2 and 5."""

    def pure(epsilon: Number) -> Number:
        if epsilon == INFINITY:
            return INFINITY
        rise = between_ends(epsilon, lambda e: e + iv.log(rate + (1 - rate) * iv.exp(-e)))
        return rise - between_ends(-epsilon, lambda e: iv.log((1 - rate) + rate * iv.exp(e))) if replaced else rise

    theorems = (*one.theorems, Theorem.POISSON)
    # Between a data set and one with an extra record only one order of the noise appears; it must not matter which.
    even = [c for c in one.candidates if isinstance(c.bound, PairBound) and len(c.bound.losses) == 1]
    tails = one.pure_from_tails if isinstance(one.noise, Laplace) else None
    least = maximum(ZERO, *(c.bound.pure for c in even), *(() if tails is None else (tails,)))
    upper, lower = pure(one.pure), pure(least) if shown else ZERO
    uppers: tuple[ProfileBound, ...] = (PureBound(iv.mpf(upper.b), Theorem.POISSON),)
    if replaced:
        pair = _pair(one)
        pair = None if pair is None or not shown else _opposite(pair)
        return replace(one, candidates=(), uppers=uppers, theorems=theorems, pure_from_tails=lower, pair=pair)
    uppers = tuple(SampledBound(bound, 1 - rate) for bound in one.uppers)
    candidates = tuple(replace(c, bound=SampledBound(c.bound, 1 - rate)) for c in even)
    return replace(one, candidates=candidates, uppers=uppers, theorems=theorems, pure_from_tails=lower)


class SampledBound(DropoutBound):
    """A bound for a record that takes part with probability 1 − mu, and is in one of the data sets only."""


def _pair(profile: PrivacyProfile) -> Pair | None:
    best = profile.dominating_pure()
    return profile.pair if best is None else best.pair


def repeated(one: PrivacyProfile, count: int) -> PrivacyProfile:
    """Adaptive composition: docs/proofs/composition.md, points 3 to 5 and 7."""
    uppers = [bound for upper in one.uppers for bound in _all_steps(upper, count)]
    if one.pure.b < INFINITY:
        answer = _randomized_response(iv.mpf(one.pure.b))
        uppers.append(PairBound((answer.times(count),), Theorem.OPTIMAL_COMPOSITION))
    candidates = [
        replace(c, bound=PairBound(tuple(loss.times(count) for loss in c.bound.losses), c.bound.theorem))
        if isinstance(c.bound, PairBound)
        else c  # ignoring an output is post-processing
        for c in one.candidates
    ]
    lower = one.lower_pure * count
    theorems = (*one.theorems, Theorem.COMPOSITION)
    return replace(
        one,
        candidates=tuple(candidates),
        uppers=tuple(uppers),
        theorems=theorems,
        pure_from_tails=lower if lower.b > 0 else None,
        pair=_pair(one),
    )


def _all_steps(bound: ProfileBound, count: int) -> Iterator[ProfileBound]:
    if isinstance(bound, PairBound) and len(bound.losses) == 1:
        yield PairBound((bound.losses[0].times(count),), bound.theorem)
        return
    if isinstance(bound, RenyiBound):  # divergences add up, as those of copies of the vector do
        power = ZERO if bound.p == float("inf") else 1 / iv.mpf(bound.p)
        yield RenyiBound(bound.norm * iv.mpf(count) ** power, bound.p, bound.dim * count)
        return
    if isinstance(bound, ZcdpBound):
        yield ZcdpBound(bound.rho * count, bound.theorem)
        return
    if bound.theorem != Theorem.SADDLEPOINT:  # it is about one noise on one vector, and slow
        yield BasicBound(bound, count)
    if isinstance(bound, RangeBound):
        yield RangeSteps(bound, count)


def _randomized_response(epsilon: Number) -> PrivacyLoss:
    """The loss that dominates ε-DP."""
    if epsilon == 0:
        return PrivacyLoss(())
    keep = 1 / (1 + iv.exp(-epsilon))
    return PrivacyLoss(((AtomLoss(((epsilon, keep), (-epsilon, 1 - keep))), 1),))


@dataclass(frozen=True)
class BasicBound:
    """A bound for each of `count` steps, whose ε and δ add up: docs/proofs/composition.md, point 4.

    >>> two = BasicBound(PureBound(ONE, Theorem.LAPLACE), 2)
    >>> float(two.pure.mid)
    2.0
    """

    bound: ProfileBound
    count: int

    @property
    def theorem(self) -> Theorem:
        """What the bound for one step rests on."""
        return self.bound.theorem

    @property
    def pure(self) -> Number:
        return self.bound.pure * self.count

    def delta(self, epsilon: Number) -> Number:
        return minimum(ONE, self.bound.delta(epsilon / self.count) * self.count)

    def epsilon(self, delta: Number) -> Number:
        return maximum(ZERO, self.bound.epsilon(delta / self.count) * self.count)

    def epsilon_above(self, delta: Number) -> Number:
        return maximum(ZERO, self.bound.epsilon_above(delta / self.count) * self.count)
