"""Pipelines whose records are sampled, or that are repeated: from the profile of one step to that of all.

`poisson` at the beginning and `times` at the end stand around a pipeline that is analysed on its own. Gaussian noise
has an exact answer (docs/proofs/poisson.md); of other noise pure ε, and what follows from it, is known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from dpassay.core.neighbours import Neighbours
from dpassay.core.numbers import INFINITY, ONE, ZERO, Number, iv, maximum, middle, minimum
from dpassay.core.theorems import Theorem
from dpassay.errors import InputError
from dpassay.exact.loss_components import AtomLoss, GaussianLoss
from dpassay.exact.privacy_loss import PrivacyLoss
from dpassay.exact.profile import Candidate, PrivacyProfile
from dpassay.exact.profile_bounds import DropoutBound, PairBound, ProfileBound, PureBound, RenyiBound, between_ends
from dpassay.exact.sampled_loss import SampledLoss, Way
from dpassay.pipeline.pair import Block, Pair
from dpassay.pipeline.pipeline import Pipeline
from dpassay.pipeline.regions import Ball, Box, Intersection, Region, Repeated, Sphere
from dpassay.pipeline.stages.sampling import Poisson, Sampling, Times


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
            raise InputError("there is nothing to sample for or to repeat: put stages between, such as gaussian(1)")
        if isinstance(sampling, Poisson) and sampling.rate == 1:
            sampling = None
        return cls(pipeline if stages == pipeline.stages else Pipeline(stages, pipeline.dim), sampling, count)

    @property
    def plain(self) -> bool:
        """Whether it is done once, by all records."""
        return self.sampling is None and self.count == 1

    @property
    def described(self) -> str:
        """A sentence about what is done, without its full stop."""
        each = f"in each of {self.count:,} steps" if self.count > 1 else ""
        if isinstance(self.sampling, Poisson):
            takes = f"A record takes part {each} with probability {middle(self.sampling.rate):g}".replace("  ", " ")
            return f"{takes}, and the losses of all steps add up" if each else takes
        return f"The losses of {self.count:,} steps add up"

    def relation(self, neighbours: Neighbours) -> Neighbours:
        """Between which inputs one step is to be analysed: what a record that takes part changes."""
        return neighbours if self.sampling is None else Neighbours("add-remove-record")

    def profile(self, one: PrivacyProfile, neighbours: Neighbours) -> PrivacyProfile:
        """The profile of all steps, given that of one."""
        if self.plain:
            return one
        if isinstance(self.sampling, Poisson):
            shown = one.region is not None and (neighbours.kind == "add-remove-record" or _symmetric(self.inner))
            exact = _sampled_gaussian(one, self.sampling.rate, self.count, neighbours.kind == "replace-record", shown)
            if exact is not None:
                return exact
            one = _sampled(one, self.sampling.rate, neighbours.kind == "replace-record", shown)
        return one if self.count == 1 else repeated(one, self.count)


def _symmetric(pipeline: Pipeline) -> bool:
    """Whether with a record's vector the opposite one is that of some record too."""
    region: Region = pipeline.output_regions()[(pipeline.noise_positions or [0])[0]].region
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
    upper, lower = pure(one.pure), pure(one.lower_pure) if shown else ZERO
    uppers: tuple[ProfileBound, ...] = (PureBound(iv.mpf(upper.b), Theorem.POISSON),)
    if replaced:
        pair = _pair(one)
        pair = None if pair is None or not shown else _opposite(pair)
        return replace(one, candidates=(), uppers=uppers, theorems=theorems, pure_from_tails=lower, pair=pair)
    uppers = tuple(SampledBound(bound, 1 - rate) for bound in one.uppers)
    candidates = tuple(replace(c, bound=SampledBound(c.bound, 1 - rate)) for c in one.candidates)
    tails = None if one.pure_from_tails is None else pure(one.pure_from_tails)
    return replace(one, candidates=candidates, uppers=uppers, theorems=theorems, pure_from_tails=tails)


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
        else c  # an output that is not looked at takes nothing away
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
    if isinstance(bound, RenyiBound):  # divergences add up, as those of so many copies of the vector
        power = ZERO if bound.p == float("inf") else 1 / iv.mpf(bound.p)
        yield RenyiBound(bound.norm * iv.mpf(count) ** power, bound.p, bound.dim * count)
        return
    if bound.theorem != Theorem.SADDLEPOINT:  # it is about one noise on one vector, and slow
        yield BasicBound(bound, count)


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
