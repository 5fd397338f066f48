"""What is known about a mechanism's loss: the losses of real pairs from below, bounds for all pairs from above."""

from collections.abc import Callable
from dataclasses import replace

from dpassay.core.guarantee import EpsilonDelta, Guarantee
from dpassay.core.numbers import INFINITY, ONE, TIE, ZERO, Number, between, down, maximum, minimum
from dpassay.core.theorems import Theorem
from dpassay.errors import DpassayError
from dpassay.exact.dataflow.data_sets import DataSets
from dpassay.exact.pld.privacy_loss import PrivacyLoss
from dpassay.exact.profiles.bounds import DropoutBound, ProfileBound, before_dropout, without_dropout
from dpassay.exact.profiles.saddlepoint import SaddlepointBound
from dpassay.pipeline.distributions import Noise
from dpassay.pipeline.regions import Pair, Region
from dpassay.values import dataclass

FEW, COARSE = 3, 1 << 12  # pairs of a quick profile, and the points of the grid by which they are chosen


@dataclass(frozen=True)
class Candidate:
    """Two values that neighbors can have just before the noise, and the loss between them.

    After sampling, `data_sets` says which data sets show the bound.
    """

    pair: Pair
    bound: ProfileBound
    data_sets: DataSets | None = None


@dataclass(frozen=True)
class Family:
    """Pairs of which there is one for every need; the candidates `known` are some of them."""

    known: tuple[Candidate, ...]
    worst: Callable[[Number], tuple[Candidate, ...]]


@dataclass(frozen=True)
class PrivacyProfile:
    """Bounds on the loss of one mechanism between its neighbors.

    `tail_lower_bound` is a lower bound on ε at δ = 0 only, for outputs of which only far-out events
    survive the stages after the noise.
    """

    candidates: tuple[Candidate, ...]
    uppers: tuple[ProfileBound, ...]
    theorems: tuple[Theorem, ...] = ()
    tail_lower_bound: Number | None = None
    pair: Pair | None = None
    noise: Noise | None = None
    region: Region | None = None
    mu: Number = ZERO
    data_sets: DataSets | None = None  # after sampling, those that `pair` belongs to
    family: Family | None = None  # pairs of which some are candidates
    whole: "PrivacyProfile | None" = None  # of a quick one: all pairs, and the upper bounds in full, but for tables

    def candidates_at(self, order: Number) -> tuple[Candidate, ...]:
        """The candidates, with those of the family that are worst for the Rényi divergence of an order."""
        if self.family is None or self.candidates is not self.family.known:  # something was done to them since
            return self.candidates
        return (*self.candidates, *self.family.worst(order))

    def shown_distance(self, q: float) -> Number:
        """How far apart in lq known pairs of neighbors are."""
        pairs = [candidate.pair for candidate in self.candidates] + ([self.pair] if self.pair else [])
        return maximum(ZERO, *(pair.distance(q) for pair in pairs))

    @property
    def lower_pure(self) -> Number:
        """The best lower bound on ε at δ = 0."""
        tails = () if self.tail_lower_bound is None else (self.tail_lower_bound,)
        return maximum(ZERO, *tails, *(c.bound.pure for c in self.candidates))

    @property
    def pure(self) -> Number:
        """ε at δ = 0, within bounds."""
        return enclose(self.lower_pure, minimum(INFINITY, *(bound.pure for bound in self.uppers)))

    def delta(self, epsilon: Number) -> Number:
        """δ at an ε, within bounds."""
        lower = maximum(ZERO, *(c.bound.delta(epsilon) for c in self.candidates))
        return enclose(lower, minimum(ONE, *(bound.delta(epsilon) for bound in self.uppers)))

    def epsilon(self, delta: Number) -> Number:
        """ε at a δ > 0, within bounds."""
        lower = maximum(ZERO, *(c.bound.epsilon(delta) for c in self.candidates))
        return enclose(lower, minimum(INFINITY, *(bound.epsilon(delta) for bound in self.uppers)))

    def epsilon_above(self, delta: Number) -> Number:
        """An upper bound on ε at a δ > 0, quickly."""
        return minimum(INFINITY, *(bound.epsilon_above(delta) for bound in self.uppers))

    def quick(self, guarantee: EpsilonDelta) -> "PrivacyProfile":
        """The same with bounds that take little time: of the pairs those that promise most, and wider upper bounds.

        Itself if nothing takes long.
        """
        if guarantee.exact_delta == 0:
            return self
        uppers = self.quick_uppers
        candidates = self._promising(guarantee)
        if uppers == self.uppers and len(candidates) == len(self.candidates):
            return self
        whole = replace(self, uppers=self._without_levels)
        return replace(whole, uppers=uppers, candidates=candidates, whole=whole)

    @property
    def quick_uppers(self) -> tuple[ProfileBound, ...]:
        """Upper bounds that take little time: of two that differ in their number of cells the one with fewer."""
        return tuple(map(quick, self._without_levels))

    @property
    def _without_levels(self) -> tuple[ProfileBound, ...]:
        """Upper bounds that take no seconds, if there are any."""
        return tuple(bound for bound in self.uppers if bound.theorem is not Theorem.LEVELS) or self.uppers

    def _promising(self, guarantee: EpsilonDelta) -> tuple[Candidate, ...]:
        """If there are many pairs, the ones with the largest ε and the largest δ by a coarse grid, and at δ = 0."""
        pairs = [(one, one.bound.losses) for one in self.candidates if one.bound.losses]
        if len(self.candidates) <= FEW or len(pairs) < len(self.candidates) or self.least_delta > 0:
            return self.candidates
        epsilon, delta = guarantee.exact_epsilon, guarantee.exact_delta
        largest = max(pairs, key=lambda pair: max(loss.epsilon_below(delta, COARSE).a for loss in pair[1]))
        likeliest = max(pairs, key=lambda pair: max(loss.delta_below(epsilon, COARSE).a for loss in pair[1]))
        chosen = (largest[0], likeliest[0], self.dominating_pure())
        return tuple(one for one in self.candidates if any(one is each for each in chosen))

    @property
    def least_delta(self) -> float:
        """The δ that every finite ε needs at least: the probability of an output that the other input cannot give."""
        losses = [loss for c in self.candidates for loss in c.bound.losses]
        return max((down(loss.infinite) for loss in losses), default=0.0)

    def dominating_pure(self) -> Candidate | None:
        """The pair with the largest loss at δ = 0."""
        return max(self.candidates, key=lambda c: c.bound.pure.a, default=None)

    def dominating_at(self, epsilon: Number) -> Candidate | None:
        """The pair with the largest δ at an ε."""
        return max(self.candidates, key=lambda c: c.bound.delta(epsilon).a, default=None)

    def dominating_loss(self, guarantee: Guarantee) -> PrivacyLoss | None:
        """The loss, before word dropout, of the pair that is worst for a guarantee, in its worse direction."""
        epsilon, pure = guarantee.value, guarantee.exact_delta == 0
        worst = self.dominating_pure() if pure else self.dominating_at(epsilon)
        bound = None if worst is None else worst.bound
        if bound is None or not (losses := without_dropout(bound).losses):
            return None
        before = before_dropout(epsilon, self.mu)
        return max(losses, key=lambda loss: (loss.pure if pure else loss.delta_number(before)).a)

    def upper_at(self, epsilon: Number) -> ProfileBound:
        """The smallest upper bound on δ at an ε."""
        return min(self.uppers, key=lambda bound: bound.delta(epsilon).b)

    def upper_pure(self) -> ProfileBound:
        """The smallest upper bound at δ = 0."""
        return min(self.uppers, key=lambda bound: bound.pure.b)


def quick(bound: ProfileBound) -> ProfileBound:
    """The same bound from fewer cells, if it is one that takes many."""
    if isinstance(bound, DropoutBound):
        inner = quick(bound.bound)
        return bound if inner is bound.bound else replace(bound, bound=inner)
    return replace(bound, quick=True) if isinstance(bound, SaddlepointBound) else bound


def enclose(lower: Number, upper: Number) -> Number:
    """From a lower bound's lower end to an upper bound's upper end."""
    if lower.a <= upper.b:
        return between(lower, upper)
    if lower.a <= (upper * (1 + TIE)).b:
        return between(upper, upper)
    raise DpassayError(
        f"a lower bound, {lower.a}, exceeds an upper bound, {upper.b}: please report this bug in dpassay"
    )
