"""Pipelines whose records are sampled, or that are repeated: from the profile of one step to that of all.

`poisson`, `subsample` or `shuffle` at the beginning and `times` at the end enclose a pipeline that is analyzed on its
own. Gaussian noise after `poisson` has an exact answer (docs/proofs/poisson.md); for other noise, pure ε is known with
its consequences.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from dpassay.core.functions.normal import normal_tail
from dpassay.core.neighbours import Neighbours
from dpassay.core.numbers import INFINITY, ONE, ZERO, Number, exactly, exp, maximum, middle, minimum, real
from dpassay.core.theorems import Theorem
from dpassay.errors import InputError
from dpassay.exact.dataflow.data_sets import fixed_size
from dpassay.exact.dataflow.sampled_lowers import Drawn, added_lowers, opposite_records, replaced_lowers
from dpassay.exact.dataflow.sampled_pairs import (
    EventBound,
    ReplacedBound,
    SampledBound,
    amplified_replaced,
    leak,
    leaking_steps,
    revealed,
    sampled,
)
from dpassay.exact.dataflow.sampled_steps import with_laplace, with_replaced
from dpassay.exact.pld.loss_components import AtomLoss, GaussianLoss
from dpassay.exact.pld.privacy_loss import PrivacyLoss
from dpassay.exact.pld.sampled.cells import Adjacency
from dpassay.exact.pld.sampled.gaussian import SampledLoss
from dpassay.exact.profiles.bounded_range import RangeBound, RangeSteps
from dpassay.exact.profiles.bounds import (
    GeneralBound,
    PairBound,
    ProfileBound,
    PureBound,
    RenyiBound,
    ZcdpBound,
)
from dpassay.exact.profiles.profile import Candidate, PrivacyProfile
from dpassay.pipeline.pair import Pair
from dpassay.pipeline.pipeline import Pipeline
from dpassay.pipeline.stages.sampling import Sampling, Shuffle, Times
from dpassay.values import dataclass


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
        if sampling is not None and sampling.takes_all:
            sampling = None
        return cls(pipeline if stages == pipeline.stages else Pipeline(stages, pipeline.dim), sampling, count)

    @property
    def warnings(self) -> tuple[str, ...]:
        """A warning about ways of sampling that are easily confused."""
        return () if self.sampling is None else self.sampling.warnings

    @property
    def plain(self) -> bool:
        """Whether there is a single step with all records."""
        return self.sampling is None and self.count == 1

    @property
    def described(self) -> str:
        """A sentence about the steps, without the full stop."""
        return (
            f"The losses of {self.count:,} steps add up"
            if self.sampling is None
            else self.sampling.described(self.count)
        )

    def relation(self, neighbours: Neighbours) -> Neighbours:
        """The neighbors for which one step is analyzed: what a record that takes part changes."""
        adds = self.sampling is not None and self.sampling.on_its_own
        return Neighbours("add-remove-record") if adds else neighbours

    def profile(self, one: PrivacyProfile, drawn: Drawn | None = None) -> PrivacyProfile:
        """The profile of all steps, given that of one in which the record takes part, and what `drawn` tells."""
        if self.plain:
            return one
        if isinstance(self.sampling, Shuffle):
            return _shuffled(one, self.sampling.batches, self.count)
        if self.sampling is not None:
            assert drawn is not None
            of_gaussian = _sampled_gaussian if self.sampling.on_its_own else _fixed_size_gaussian
            exact = of_gaussian(one, drawn, self.count)
            if exact is not None:
                return exact
            step = _replaced(one, drawn) if drawn.apart is not None else _added(one, drawn)
            found = step if self.count == 1 else repeated(step, self.count)
            if not self.sampling.on_its_own:
                return found
            if drawn.apart is not None:
                return with_replaced(found, one, drawn, self.count)
            return with_laplace(found, one, step, drawn.rate, self.count)
        return repeated(one, self.count)


def _gaussian(bound: ProfileBound) -> Number | None:
    """The shift, in standard deviations, of a bound that is the loss of Gaussian noise."""
    if len(bound.losses) != 1 or len(bound.losses[0].components) != 1:
        return None
    component, count = bound.losses[0].components[0]
    return component.mu if isinstance(component, GaussianLoss) and count == 1 else None


def _sampled_gaussian(one: PrivacyProfile, drawn: Drawn, count: int) -> PrivacyProfile | None:
    """Gaussian noise: the farthest record is the worst in each order of the data sets, and so is its opposite."""
    ways: tuple[Adjacency, ...] = ("remove", "add") if drawn.apart is None else ("replace",)

    def bound(mu: Number) -> PairBound:
        losses = (PrivacyLoss(((SampledLoss(drawn.rate, mu, way), count),)) for way in ways)
        return PairBound(tuple(losses), Theorem.POISSON)

    shifts = [mu for mu in map(_gaussian, one.uppers) if mu is not None]
    if not shifts:
        return None
    theorems = (*one.theorems, Theorem.POISSON, Theorem.LATTICE_SUMS)
    found = replace(one, uppers=(bound(minimum(*shifts)),), theorems=theorems, tail_lower_bound=None, candidates=())
    if drawn.apart is None:
        lowers = added_lowers(one, drawn)
        exact = [(c, mu) for c in lowers.candidates if (mu := _gaussian(_unsampled(c.bound))) is not None]
    else:
        lowers = replaced_lowers(one, drawn)
        exact = [(c, mu) for c in opposite_records(one, drawn) if (mu := _gaussian(c.bound)) is not None]
    if exact:
        return replace(found, candidates=tuple(replace(c, bound=bound(mu)) for c, mu in exact))
    found = lowers.put(found)
    return found if count == 1 else _repeated_lowers(found, count)


def _unsampled(bound: ProfileBound) -> ProfileBound:
    return bound.bound if isinstance(bound, SampledBound) else bound


def _fixed_size_gaussian(one: PrivacyProfile, drawn: Drawn, count: int) -> PrivacyProfile | None:
    """Batches of a fixed size, Gaussian noise: docs/proofs/fixed-size.md."""
    if drawn.rate == 1:
        return None

    def bound(mu: Number, ways: tuple[Adjacency, ...]) -> PairBound:
        losses = (PrivacyLoss(((SampledLoss(drawn.rate, mu, way), count),)) for way in ways)
        return PairBound(tuple(losses), Theorem.FIXED_SIZE)

    shifts = [mu for mu in map(_gaussian, one.uppers) if mu is not None]
    if not shifts:
        return None
    theorems = (*one.theorems, Theorem.FIXED_SIZE, Theorem.LATTICE_SUMS)
    uppers = (bound(minimum(*shifts), ("fixed",)),)
    found = replace(one, uppers=uppers, theorems=theorems, tail_lower_bound=None, candidates=())
    lowers = added_lowers(one, drawn)
    exact = [(c, mu) for c in lowers.candidates if (mu := _gaussian(_unsampled(c.bound))) is not None]
    if exact:
        return replace(found, candidates=tuple(replace(c, bound=bound(mu, ("remove", "add"))) for c, mu in exact))
    found = lowers.put(found)
    return found if count == 1 else _repeated_lowers(found, count)


def _shuffled(one: PrivacyProfile, batches: int, epochs: int) -> PrivacyProfile:
    """Shuffled batches: the upper bound is as if it were known which one has the record, docs/proofs/shuffle.md."""
    known = repeated(one, epochs) if epochs > 1 else one
    shown = [(c, mu) for c in one.candidates if (mu := _gaussian(c.bound)) is not None]
    return replace(
        known,
        candidates=tuple(
            Candidate(c.pair, ShuffledBound(mu, batches), fixed_size(c.pair, 1, batches)) for c, mu in shown
        ),
        theorems=(*known.theorems, Theorem.SHUFFLE),
        tail_lower_bound=one.lower_pure * epochs,
        pair=(pair := _pair(one)),
        data_sets=None if pair is None else fixed_size(pair, 1, batches),
    )


@dataclass(frozen=True)
class ShuffledBound(GeneralBound):
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
        return maximum(ZERO, p - exp(epsilon) * (1 - stays**self.batches))

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


def _added(one: PrivacyProfile, drawn: Drawn) -> PrivacyProfile:
    """One step with any noise; the record is added or removed, or replaced in a batch of fixed size."""
    uppers = tuple(sampled(bound, drawn.rate) for bound in one.uppers)
    return added_lowers(one, drawn).put(replace(one, uppers=uppers, theorems=(*one.theorems, drawn.theorem)))


def _replaced(one: PrivacyProfile, drawn: Drawn) -> PrivacyProfile:
    """One step with any noise, a record replaced after Poisson sampling: docs/proofs/poisson.md, points 4 and 9."""
    assert drawn.apart is not None
    pure = amplified_replaced(real(one.pure.b), real(drawn.apart.pure.b), drawn.rate)
    uppers: list[ProfileBound] = [PureBound(real(pure.b), drawn.theorem)]
    for alone in one.uppers:
        alike = [apart for apart in drawn.apart.uppers if apart.theorem == alone.theorem and type(apart) is type(alone)]
        uppers += [ReplacedBound(alone, apart, drawn.rate) for apart in alike[:1]]
    found = replace(one, uppers=tuple(uppers), theorems=(*one.theorems, drawn.theorem))
    return replaced_lowers(one, drawn).put(found)


def _pair(profile: PrivacyProfile) -> Pair | None:
    best = profile.dominating_pure()
    return profile.pair if best is None else best.pair


def repeated(one: PrivacyProfile, count: int) -> PrivacyProfile:
    """Adaptive composition: docs/proofs/composition.md, points 3 to 5 and 7."""
    uppers = [bound for upper in one.uppers for bound in _all_steps(upper, count)]
    if one.pure.b < INFINITY:
        answer = _randomized_response(real(one.pure.b))
        uppers.append(PairBound((answer.times(count),), Theorem.OPTIMAL_COMPOSITION))
    drawn = [upper for upper in one.uppers if isinstance(upper, SampledBound) and 0 < leak(upper).b < 1]
    uppers += [PairBound((leaking_steps(upper, count),), Theorem.OPTIMAL_COMPOSITION) for upper in drawn]
    theorems = (*one.theorems, Theorem.COMPOSITION)
    return _repeated_lowers(replace(one, uppers=tuple(uppers), theorems=theorems), count)


def _repeated_lowers(one: PrivacyProfile, count: int) -> PrivacyProfile:
    """The lower bounds of several steps with the same two data sets."""
    candidates = []
    for candidate in one.candidates:
        bound = candidate.bound
        if isinstance(bound, EventBound):
            candidates.append(replace(candidate, bound=replace(bound, count=count)))
        elif bound.losses:
            losses = tuple(loss.times(count) for loss in bound.losses)
            candidates.append(replace(candidate, bound=PairBound(losses, bound.theorem)))
        else:
            candidates.append(candidate)  # ignoring an output is post-processing
        if isinstance(bound, SampledBound) and leak(bound).a > 0:
            candidates.append(replace(candidate, bound=revealed(bound, count)))
    lower = one.lower_pure * count
    tails, best = lower if lower.b > 0 else None, one.dominating_pure()
    sets = one.data_sets if best is None else best.data_sets
    return replace(one, candidates=tuple(candidates), tail_lower_bound=tails, pair=_pair(one), data_sets=sets)


def _all_steps(bound: ProfileBound, count: int) -> Iterator[ProfileBound]:
    if len(bound.losses) == 1:
        yield PairBound((bound.losses[0].times(count),), bound.theorem)
        return
    if isinstance(bound, RenyiBound):  # divergences add up, as those of copies of the vector do
        power = ZERO if bound.p == float("inf") else 1 / real(bound.p)
        yield RenyiBound(bound.norm * real(count) ** power, bound.p, bound.dim * count)
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
    keep, flip = 1 / (1 + exp(-epsilon)), 1 / (1 + exp(epsilon))
    return PrivacyLoss(((AtomLoss(((epsilon, keep), (-epsilon, flip))), 1),))


@dataclass(frozen=True)
class BasicBound(GeneralBound):
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
