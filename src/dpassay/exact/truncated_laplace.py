"""The loss of truncated Laplace noise: docs/proofs/truncated-laplace.md. Distances are in units of the scale."""

from dataclasses import dataclass

from dpassay.core.numbers import INFINITY, ONE, ZERO, Number, between, iv, maximum, minimum
from dpassay.core.theorems import Theorem
from dpassay.exact.dominating_pairs import dominating_pairs, most_differing
from dpassay.exact.profile import Candidate, PrivacyProfile
from dpassay.exact.profile_bounds import ProfileBound, between_ends
from dpassay.pipeline.distributions import Laplace
from dpassay.pipeline.pair import Block, Pair
from dpassay.pipeline.stages.base import OutputRegion
from dpassay.pipeline.truncated_laplace import TruncatedLaplace

_THEOREM = Theorem.TRUNCATED_LAPLACE
Shifts = tuple[tuple[Number, int], ...]


@dataclass(frozen=True)
class TruncatedBound:
    """A bound for coordinates with these shifts: exact for one, from above or from below for several.

    >>> from dpassay.core.numbers import middle, number
    >>> one = TruncatedBound(number(2), ((ONE, 1),), upper=True)
    >>> round(middle(one.delta(ONE)), 6)  # (e^−1 − e^−2)/(2(1 − e^−2))
    0.134471
    """

    bound: Number
    shifts: Shifts
    upper: bool
    theorem: Theorem = _THEOREM

    @property
    def pure(self) -> Number:
        return INFINITY if any(s.a > 0 for s, _ in self.shifts) else between(ZERO, INFINITY) if self.shifts else ZERO

    @property
    def _leak(self) -> Number:
        """How likely some coordinate is where the other input cannot give it."""
        hidden = ONE
        for shift, count in self.shifts:
            hidden *= (1 - self._beyond(shift)) ** count
        return maximum(ZERO, 1 - hidden)

    def _below(self, t: Number) -> Number:
        """The distribution function."""
        size, total = minimum(self.bound, abs(t)), 2 * (1 - iv.exp(-self.bound))
        half = (1 - iv.exp(-size)) / total
        return ONE / 2 - half if t.mid < 0 else ONE / 2 + half

    def _beyond(self, shift: Number) -> Number:
        return between_ends(shift, lambda s: ONE if (s - 2 * self.bound).a >= 0 else self._below(s - self.bound))

    def _largest(self, shift: Number) -> Number:
        """The largest finite loss."""
        return maximum(ZERO, minimum(shift, 2 * self.bound - shift))

    def _one(self, shift: Number, epsilon: Number) -> Number:
        """1 − (2e^(−(s−ε)/2) − e^−a − e^(ε−a))/(2(1 − e^−a)) below the largest finite loss, then the leak."""
        total, cut = 2 * (1 - iv.exp(-self.bound)), iv.exp(-self.bound)
        shown = 1 - (2 * iv.exp((epsilon - shift) / 2) - cut - iv.exp(epsilon) * cut) / total
        leak = self._beyond(shift)
        if (self._largest(shift) - epsilon).b <= 0:
            return leak
        found = maximum(leak, minimum(ONE, shown))
        return found if (self._largest(shift) - epsilon).a > 0 else iv.mpf([leak.a, found.b])

    def delta(self, epsilon: Number) -> Number:
        if sum(count for _, count in self.shifts) == 1:
            return self._one(self.shifts[0][0], epsilon)
        if not self.upper:
            return maximum(self._leak, ZERO, *(self._one(shift, epsilon) for shift, _ in self.shifts))
        most = sum((self._largest(shift) * count for shift, count in self.shifts), ZERO)
        return self._leak + (1 - self._leak) * maximum(ZERO, 1 - iv.exp(epsilon - most))

    def epsilon(self, delta: Number) -> Number:
        """By bisection; infinite if the leak alone exceeds δ."""
        if not self.shifts or self.delta(ZERO).b <= delta.a:
            return ZERO
        high = iv.mpf(sum((self._largest(shift) * count for shift, count in self.shifts), ZERO).b)
        if self.delta(high).b > delta.a:
            return INFINITY if self.delta(high).a > delta.b else between(ZERO, INFINITY)
        low = ZERO
        for _ in range(60):
            half = iv.mpf(((low + high) / 2).mid)
            low, high = (low, half) if self.delta(half).b <= delta.a else (half, high)
        return between(low, high)

    epsilon_above = epsilon


def truncated_profile(
    noise: TruncatedLaplace, outputs: OutputRegion, pushed: list[Pair], shown: bool
) -> PrivacyProfile:
    """The noise is log-concave and even, so the worst shifts of Laplace noise are also the worst here."""
    region, bound = outputs.region, noise.bound / noise.scale
    pairs, known = dominating_pairs(Laplace(noise.scale), region)
    worst = pairs if known else [Pair((Block(iv.mpf(region.diameter(float("inf")).b), ZERO, most_differing(region)),))]
    uppers = [TruncatedBound(bound, _shifts(noise, pair), upper=True) for pair in worst]
    real = [pair for pair in (pairs if outputs.exact else pushed) if pair.distance(1).a > 0] if shown else []
    candidates = [Candidate(pair, TruncatedBound(bound, _shifts(noise, pair), upper=False)) for pair in real]
    theorems = (Theorem.DIAMETERS, Theorem.WORST_SHIFT, _THEOREM)
    largest: ProfileBound = uppers[0] if len(uppers) == 1 else _Largest(tuple(uppers))
    return PrivacyProfile(tuple(candidates), (largest,), theorems, noise=noise, region=region)


@dataclass(frozen=True)
class _Largest:
    """The largest of some bounds at each ε, one of which holds for each pair."""

    bounds: tuple[TruncatedBound, ...]
    theorem: Theorem = _THEOREM

    @property
    def pure(self) -> Number:
        return maximum(*(bound.pure for bound in self.bounds))

    def delta(self, epsilon: Number) -> Number:
        return maximum(*(bound.delta(epsilon) for bound in self.bounds))

    def epsilon(self, delta: Number) -> Number:
        return maximum(*(bound.epsilon(delta) for bound in self.bounds))

    epsilon_above = epsilon


def _shifts(noise: TruncatedLaplace, pair: Pair) -> Shifts:
    gaps = ((abs(block.gap) / noise.scale, block.count) for block in pair.blocks if not block.same)
    return tuple((shift, count) for shift, count in gaps if count and shift.b > 0)
