"""What two neighboring data sets show if their records are sampled.

With probability q a step's sum has the record in which they differ, and otherwise not.
docs/proofs/poisson.md, points 4, 8 and 9.
"""

from __future__ import annotations

import math
from functools import cached_property

from dpassay.core.functions.roots import falling_root
from dpassay.core.numbers import INFINITY, ZERO, Number, exactly, exp, log, maximum, middle, real, up
from dpassay.core.theorems import Theorem
from dpassay.exact.dataflow.post_processing import log_tail
from dpassay.exact.pld.loss_components import AtomLoss
from dpassay.exact.pld.noises.truncated_laplace import TruncatedLaplaceLoss
from dpassay.exact.pld.privacy_loss import PrivacyLoss
from dpassay.exact.profiles.bounds import DropoutBound, GeneralBound, PairBound, ProfileBound, between_ends
from dpassay.pipeline.distributions import Noise
from dpassay.pipeline.pair import Pair
from dpassay.pipeline.thresholds import Thresholds
from dpassay.values import dataclass

CLOSE = 1e-9  # the relative width of an ε that is found from its δ
_OFFSETS = (-1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0)  # thresholds to try, in half gaps beyond the middle


def amplified(pure: Number, rate: Number) -> Number:
    """ln(1 − q + q·e^ε): the loss of a record that takes part with probability q, against its absence."""
    if pure.b == INFINITY:
        return INFINITY if pure.a == INFINITY else real([_rise(real(pure.a), rate).a, INFINITY.b])
    return between_ends(pure, lambda e: _rise(e, rate))


def _rise(epsilon: Number, rate: Number) -> Number:
    return epsilon + log(rate + (1 - rate) * exp(-epsilon))


def amplified_replaced(alone: Number, apart: Number, rate: Number) -> Number:
    """The loss of a record replaced, if it loses `alone` against its absence and `apart` against the other one.

    ln((1 − q + q·e^ε₀)/(1 − q + q·e^(ε₀ − ε₁))): docs/proofs/poisson.md, point 4. It grows with both.

    >>> q = real("0.5")  # staircase noise: one step against no record, and one against the opposite one
    >>> round(middle(amplified_replaced(real(1), real(1), q)), 4)
    0.6201
    """
    if alone.b == INFINITY or apart.b == INFINITY:
        known = alone.a == INFINITY and apart.a == INFINITY
        return INFINITY if known else real([0, INFINITY.b])

    def found(alone: Number, apart: Number) -> Number:
        return _rise(alone, rate) - log(1 - rate + rate * exp(alone - apart))

    low, high = (found(real(getattr(alone, end)), real(getattr(apart, end))) for end in ("a", "b"))
    return maximum(ZERO, real([min(low.a, high.b), high.b]))


def same_side(records: Pair) -> bool:
    """Whether in each coordinate 0 and the second vector lie on the same side of the first one.

    Then the outputs beyond the first one, away from both, have both of the largest ratios.
    """
    return all(b.same or (b.x * (b.x - b.y)).a >= 0 for b in records.blocks)


def opposite(records: Pair) -> bool:
    """Whether the second vector is the opposite of the first."""
    return all(b.x.a == -b.y.b and b.x.b == -b.y.a for b in records.blocks)


@dataclass(frozen=True)
class EventBound(GeneralBound):
    """Events after sampling, for a record that is replaced: every coordinate that differs lies beyond a threshold.

    Of several steps each shows whether the event occurred. docs/proofs/poisson.md, point 8. Any visible thresholds are
    valid, so they are chosen in doubles.
    """

    noise: Noise
    records: Pair
    rate: Number
    told: Thresholds
    count: int = 1
    theorem: Theorem = Theorem.POISSON

    def _thresholds(self, offset: float) -> tuple[Number, ...]:
        """For each block a visible threshold, some half gaps beyond the middle of its two values."""
        found = []
        for block in self.records.blocks:
            beyond = (block.x + block.y) / 2 + exactly(offset) * (block.x - block.y) / 2
            found.append(self.told.nearest(real(beyond.mid)))
        return tuple(found)

    def _chances(self, thresholds: tuple[Number, ...]) -> tuple[Number, Number]:
        """The probability of the event for the two data sets."""
        first, second, none = (self._log_chance(side, thresholds) for side in ("x", "y", ""))
        absent = (1 - self.rate) * exp(none)
        return absent + self.rate * exp(first), absent + self.rate * exp(second)

    def _log_chance(self, side: str, thresholds: tuple[Number, ...]) -> Number:
        """The event's, if the sum is the first or the second record's vector, or 0."""
        total = ZERO
        for block, limit in zip(self.records.blocks, thresholds, strict=True):
            if not block.same:
                value = getattr(block, side) if side else ZERO
                upwards = (block.x - block.y).mid > 0
                total += log_tail(self.noise, limit - value if upwards else value - limit) * block.count
        return total

    @cached_property
    def events(self) -> tuple[tuple[tuple[Number, ...], Number, Number], ...]:
        """Thresholds that were tried, and the probabilities of their events."""
        tried = dict.fromkeys(self._thresholds(offset) for offset in _OFFSETS)
        return tuple((thresholds, *self._chances(thresholds)) for thresholds in tried)

    def best(self, epsilon: Number) -> tuple[Number, ...]:
        """The thresholds of an event that shows much at an ε."""
        if self.count > 1:
            return max(self.events, key=lambda event: _information(*event[1:]))[0]
        rise = exp(epsilon)
        return max(self.events, key=lambda event: (event[1] - rise * event[2]).a)[0]

    @cached_property
    def _bits(self) -> PairBound:
        """All steps' bits, of one event."""
        _, p, q = max(self.events, key=lambda event: _information(*event[1:]))
        return PairBound((PrivacyLoss(((AtomLoss.of_bits(p, q), self.count),)),), self.theorem)

    @property
    def pure(self) -> Number:
        """The best of the events; the largest loss may be approached only in the tails."""
        logs = (log(p) - log(q) for _, p, q in self.events if p.a > 0 and q.a > 0)
        return maximum(ZERO, *logs) * self.count

    def delta(self, epsilon: Number) -> Number:
        """At least δ(ε): P − e^ε Q of the best event."""
        if self.count > 1:
            return self._bits.delta(epsilon)
        rise = exp(epsilon)
        return maximum(ZERO, *(p - rise * q for _, p, q in self.events))

    def epsilon(self, delta: Number) -> Number:
        """At least ε(δ): the largest ε at which one of the events has P − e^ε Q above δ."""
        if self.count > 1:
            return self._bits.epsilon(delta)
        return maximum(ZERO, *(log((p - delta) / q) for _, p, q in self.events if (p - delta).a > 0 and q.a > 0))

    epsilon_above = epsilon


def _information(p: Number, q: Number) -> float:
    """About how much one bit tells: the squared gap over the variance."""
    first, second = middle(p), middle(q)
    spread = second * (1 - second)
    return (first - second) ** 2 / spread if spread > 0 else 0.0


class SampledBound(DropoutBound):
    """A bound for a record that is in only one of the data sets and takes part with probability 1 − mu."""


def sampled(bound: ProfileBound, rate: Number) -> ProfileBound:
    """A bound for a record that takes part with probability `rate`, from one without sampling."""
    return bound if rate == 1 else SampledBound(bound, 1 - rate)


@dataclass(frozen=True)
class AbsentBound(GeneralBound):
    """At least what the data set without the record shows against that with it: docs/proofs/poisson.md, points 2 and 7.

    `bound` is about a step in which the record takes part, in the same order. δ(ε) = (1 − γ(1 − q))·δ₁(ln γ''), with
    γ = e^ε and γ'' = γq/(1 − γ(1 − q)).

    >>> from dpassay.core.numbers import ONE
    >>> from dpassay.exact.profiles.bounds import PureBound
    >>> without = AbsentBound(PureBound(real(3), Theorem.LAPLACE), ONE / 2)
    >>> round(middle(without.pure), 6)  # ln(2/(1 + e^−3))
    0.64456
    """

    bound: ProfileBound
    rate: Number

    @property
    def theorem(self) -> Theorem:
        """What the bound without sampling rests on."""
        return self.bound.theorem

    @property
    def pure(self) -> Number:
        """−ln(1 − q + q·e^−ε)."""
        return absent(self.bound.pure, self.rate)

    def inner(self, epsilon: Number) -> Number | None:
        """The loss without sampling that matters at ε, if any does."""
        gamma = exp(epsilon)
        share = 1 - gamma * (1 - self.rate)
        return maximum(ZERO, log(gamma * self.rate / share)) if share.a > 0 else None

    def delta(self, epsilon: Number) -> Number:
        before = self.inner(epsilon)
        return ZERO if before is None else (1 - exp(epsilon) * (1 - self.rate)) * self.bound.delta(before)

    def epsilon(self, delta: Number) -> Number:
        """Rounded down."""
        if self.delta(ZERO).a <= delta.b:
            return ZERO
        most = middle(-log(1 - self.rate))
        low, _ = falling_root(lambda e: _above(self.delta(exactly(e)).a, delta.b), 0.0, most, CLOSE)
        return exactly(low)

    epsilon_above = epsilon


def absent(pure: Number, rate: Number) -> Number:
    """−ln(1 − q + q·e^−ε): the loss of a record's absence against the record, which takes part with probability q."""
    if pure.a == INFINITY:
        return -log(1 - rate) if rate.b < 1 else INFINITY
    finite = real(pure.a)
    low = finite - log(rate + (1 - rate) * exp(finite))
    return low if pure.b == pure.a else real([low.a, absent(real(pure.b), rate).b])


def without_record(bound: ProfileBound, rate: Number) -> ProfileBound:
    """A bound after sampling, from one on the loss of a value without the record against one with it."""
    return bound if rate == 1 else AbsentBound(bound, rate)


def leak(bound: SampledBound) -> Number:
    """The probability of an output in one step that the data set without the record cannot give."""
    losses = bound.bound.losses
    return (1 - bound.mu) * maximum(ZERO, *(loss.infinite for loss in losses))


def revealed(bound: SampledBound, count: int) -> PairBound:
    """What such outputs show in several steps: docs/proofs/truncated-laplace.md, point 5."""
    return PairBound((PrivacyLoss(((AtomLoss((), leak(bound)), count),)),), bound.theorem)


def leaking_steps(bound: SampledBound, count: int) -> PrivacyLoss:
    """A loss that dominates several steps, each of which loses at most some ε unless an output reveals the record.

    Each step is (ε, δ)-DP with the δ that is revealed at least: docs/proofs/optimal-composition.md.
    """
    revealing = leak(bound)
    finite = maximum(*(finite_part(loss) for loss in bound.bound.losses))
    if finite.b == INFINITY:
        return PrivacyLoss(((AtomLoss((), real(1)), 1),))
    epsilon = real(amplified(finite, 1 - bound.mu).b)
    keep = (1 - revealing) / (1 + exp(-epsilon))
    atoms = ((epsilon, keep), (-epsilon, (1 - revealing) - keep)) if epsilon.b > 0 else ((ZERO, 1 - revealing),)
    return PrivacyLoss(((AtomLoss(atoms, revealing), count),))


def finite_part(loss: PrivacyLoss) -> Number:
    """The largest finite value of a loss."""
    total = ZERO
    for component, count in loss.components:
        if isinstance(component, TruncatedLaplaceLoss):
            total += component.largest * count
        elif isinstance(component, AtomLoss):
            total += maximum(ZERO, *(value for value, _ in component.atoms)) * count
        else:
            total += component.pure * count
    return total


def _above(delta: Number, stated: Number) -> float:
    """Above 0 if and only if δ > δ', and nearly linear in ε: it grows like ln δ above δ', and like δ below."""
    apart = math.asinh(min(1e300, middle(delta / stated))) - math.asinh(1)
    return max(apart, 1e-300) if delta > stated else min(apart, 0.0)


@dataclass(frozen=True)
class ReplacedBound(GeneralBound):
    """A record replaced after Poisson sampling, from bounds without sampling: docs/proofs/poisson.md, point 9.

    δ(ε) = q·((1 − β)·δ₀(ε') + β·δ₁(ε')) with e^ε' = 1 + (e^ε − 1)/q and β = e^(ε−ε'), where δ₀ bounds a record added or
    removed and δ₁ one replaced.
    """

    alone: ProfileBound
    apart: ProfileBound
    rate: Number

    @property
    def theorem(self) -> Theorem:
        """What the bounds without sampling rest on."""
        return self.alone.theorem

    @property
    def pure(self) -> Number:
        return amplified_replaced(real(self.alone.pure.b), real(self.apart.pure.b), self.rate)

    def inner(self, epsilon: Number) -> Number:
        """ε': the loss without sampling that matters at ε."""
        return log(1 + (exp(epsilon) - 1) / self.rate)

    def delta(self, epsilon: Number) -> Number:
        before = self.inner(epsilon)
        share = exp(epsilon - before)
        return self.rate * ((1 - share) * self.alone.delta(before) + share * self.apart.delta(before))

    def epsilon(self, delta: Number) -> Number:
        """Rounded up."""
        if self.delta(ZERO).b <= delta.a:
            return ZERO
        low, high, pure = 0.0, 1.0, up(self.pure)
        while high < pure and self.delta(exactly(high)).b > delta.a:
            low, high = high, 2 * high
            if high > 1e9:
                return self.pure
        high = min(high, pure)
        return real([*falling_root(lambda e: _above(self.delta(exactly(e)).b, delta.a), low, high, CLOSE)])

    epsilon_above = epsilon
