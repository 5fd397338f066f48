"""Counterexamples that anyone can replay: two values before the noise, and an event on the output."""

from __future__ import annotations

import math
from dataclasses import replace

from dpassay.core.guarantee import EpsilonDelta
from dpassay.core.numbers import (
    INFINITY,
    ONE,
    ZERO,
    Number,
    between,
    down,
    exp,
    log,
    log_add,
    maximum,
    minimum,
    number,
    real,
    up,
)
from dpassay.core.theorems import Theorem
from dpassay.exact.dataflow.data_sets import DataSets
from dpassay.exact.dataflow.post_processing import thresholds_told
from dpassay.exact.dataflow.sampling import Steps
from dpassay.exact.mechanisms.questions import event
from dpassay.exact.pld.privacy_loss import PrivacyLoss
from dpassay.exact.pld.sampled.gaussian import SampledLoss, SampledPower
from dpassay.exact.profiles.bounds import ProfileBound, before_dropout, without_dropout
from dpassay.exact.profiles.profile import Candidate, PrivacyProfile
from dpassay.pipeline.distributions import Gaussian
from dpassay.pipeline.pipeline import Pipeline
from dpassay.pipeline.regions import Block, Pair
from dpassay.pipeline.stages.base import Stage
from dpassay.pipeline.stages.noises.additive import Additive
from dpassay.pipeline.stages.noises.radial import in_dimension
from dpassay.values import dataclass

# What an event may be called.
ABOVE_CLAIM = "the log-likelihood ratio of the first value to the second exceeds the claimed epsilon"
BEYOND_FIRST = "every differing coordinate lies at or beyond the first value, on the side away from the second"
IMPOSSIBLE = "an output that the second value cannot give"


@dataclass(frozen=True)
class Witness:
    """Two values that neighbors can have just before the noise, and what distinguishes them.

    `log_p` and `log_q` are the logarithms of the event's probability for the first and the second value.
    If no single event is named, the event is empty and only the pair's loss is evidence. If records are sampled, the
    two values are those of `data_sets`.
    """

    pair: Pair
    event: str = ""
    log_p: Number = ZERO
    log_q: Number = ZERO
    mu: Number = ZERO
    data_sets: DataSets | None = None

    def __str__(self) -> str:
        return f"{self.values}\nEvent: {self.event_text}" if self.event else self.values

    @property
    def values(self) -> str:
        """The two values, or if records are sampled the two data sets, in one line."""
        return f"{self.pair}, just before the noise" if self.data_sets is None else str(self.data_sets)

    @property
    def event_text(self) -> str:
        """The event with its two probabilities."""
        return f"{self.event}: probability {_chance(self.log_p)} against {_chance(self.log_q)}"

    @property
    def ratio(self) -> Number:
        """The loss that the event shows: ln P − ln Q."""
        return INFINITY if self.log_q == -INFINITY else self.log_p - self.log_q

    def excess(self, epsilon: Number) -> Number:
        """P − e^ε Q, which is at most δ under (ε, δ)-DP."""
        p = exp(self.log_p)
        return p if self.log_q == -INFINITY else p - exp(self.log_q + epsilon)

    def behind_dropout(self, mu: Number) -> Witness:
        """The same if the word is dropped with probability mu, which gives the second value."""
        if mu == 0 or not self.event:
            return self
        log_p = log(1 - mu) + self.log_p
        if not self.log_q == -INFINITY:
            log_p = log_add(log_p, log(mu) + self.log_q)
        return Witness(self.pair, self.event, log_p, self.log_q, mu)


@dataclass(frozen=True)
class WorstPair:
    """Two values that neighbors can have just before a noise, their loss, and the claim that it refutes.

    `mu` is the probability that the word is dropped that distinguishes them.
    """

    pair: Pair
    bound: ProfileBound
    epsilon: Number
    delta: Number
    mu: Number

    @property
    def before_dropout(self) -> Number:
        """The claimed ε as the loss without word dropout."""
        return before_dropout(self.epsilon, self.mu)

    @property
    def without_event(self) -> Witness:
        """The pair, of which no event is known."""
        return Witness(self.pair)

    @property
    def never_alike(self) -> bool:
        """Whether no output of the first value is possible for the second."""
        return bool(self.bound.losses[0].infinite == 1)

    @property
    def far(self) -> bool:
        """Whether the values may be arbitrarily far apart."""
        return self.bound.theorem == Theorem.UNBOUNDED

    def far_apart(self, width: Number) -> tuple[Pair, Number]:
        """Values so far apart that the sign of the first coordinate reveals which one it was, and their size."""
        # P > 1 − (1 − δ)/4 and e^ε Q < (1 − δ)/4: their difference is above δ.
        delta = self.delta / (1 - self.mu)
        size = width * (self.before_dropout + 2 + log(4 / (1 - delta))) + 1  # and 1 more, in case they are rounded
        first, *rest = self.pair.blocks
        return Pair((Block(size, -size, first.count), *rest)), size

    def loss_above(self) -> Witness:
        """The event that the loss exceeds ε, in the direction in which that shows more."""
        epsilon = self.before_dropout
        larger = max(self.bound.losses, key=lambda loss: loss.delta_number(epsilon).a)
        pair = self.pair if larger is self.bound.losses[0] else swapped(self.pair)
        return loss_above(larger, pair, epsilon)


def _chance(log_p: Number) -> str:
    """A probability from its logarithm."""
    if log_p.b == -INFINITY.b:
        return "0"
    value = (down(log_p) + up(log_p)) / 2
    if value > -600:
        return f"{math.exp(value):.6g}"
    return f"10^{value / math.log(10):.6g}"


def find_witness(pipeline: Pipeline, profile: PrivacyProfile, guarantee: EpsilonDelta) -> Witness | None:
    """The strongest counterexample for a guarantee, with an event that violates it if one is known."""
    epsilon, delta = guarantee.exact_epsilon, guarantee.exact_delta
    candidate = profile.dominating_pure() if delta == 0 else profile.dominating_at(epsilon)
    rare = delta == 0 and profile.tail_lower_bound is not None  # what only outputs in the far tails reveal
    if candidate is None or (rare and profile.pair is not None and profile.data_sets is not None):
        return None if profile.pair is None else Witness(profile.pair, data_sets=profile.data_sets)
    if not Steps.of(pipeline).plain:
        return _of_all_steps(candidate, epsilon, delta)
    bound = candidate.bound
    inner = Candidate(candidate.pair, without_dropout(bound))
    outputs = pipeline.output_regions()
    stages = [in_dimension(pipeline.stages[i], outputs[i].region.dim) for i in pipeline.noise_positions]
    if len(stages) > 1 and not isinstance(profile.noise, Gaussian):
        return Witness(candidate.pair)  # for a sum of other noises no event is known
    stage = Additive(profile.noise) if len(stages) > 1 and profile.noise else stages[0] if stages else None
    found = _named(pipeline, stage, inner, epsilon, delta, profile.mu).behind_dropout(profile.mu)
    breaks = found.ratio.a > epsilon.b if delta == 0 else found.excess(epsilon).a > delta.b
    return found if breaks else Witness(found.pair)


def _of_all_steps(candidate: Candidate, epsilon: Number, delta: Number) -> Witness:
    """An event about the outputs of all steps, sampled or not."""
    pair, bound, sets = candidate.pair, candidate.bound, candidate.data_sets
    if not bound.losses or delta == 0:
        return Witness(pair, data_sets=sets)
    larger = max(bound.losses, key=lambda loss: loss.delta_number(epsilon).a)
    if larger is not bound.losses[0]:
        pair, sets = swapped(pair), sets and sets.reversed()
    found = replace(loss_above(larger, pair, epsilon), data_sets=sets)
    if isinstance(component := larger.components[0][0], SampledLoss):
        event, p, q = SampledPower(component, larger.components[0][1]).event(epsilon)
        found = Witness(pair, event, log(p), log(q)) if event else Witness(pair)
        found = replace(found, data_sets=sets)
    return found if found.event and found.excess(epsilon).a > delta.b else Witness(pair, data_sets=sets)


def _named(
    pipeline: Pipeline, stage: Stage | None, candidate: Candidate, epsilon: Number, delta: Number, mu: Number
) -> Witness:
    """The pair with the strongest event; the event is empty if none is known."""
    if stage is None:
        return Witness(candidate.pair, "the output that the first value gives", ZERO, -INFINITY)
    noise, worst = stage.added_noise, WorstPair(candidate.pair, candidate.bound, epsilon, delta, mu)
    if noise is None:
        return event(stage, worst)
    if noise.limited or not candidate.bound.losses or candidate.bound.theorem == Theorem.POST_PROCESSING:
        return worst.without_event
    # Such an event is about values that were not rounded, or about their signs.
    after = pipeline.stages[pipeline.noise_positions[-1] + 1 :]
    told = thresholds_told(after)
    found = event(noise, worst)
    lost = any(stage.name == "round" for stage in after) or (worst.far and not (told and told.tells_signs))
    return Witness(found.pair) if lost else found


def swapped(pair: Pair) -> Pair:
    """The second value first."""
    return Pair(tuple(Block(b.y, b.x, b.count, b.positions) for b in pair.blocks))


def loss_above(loss: PrivacyLoss, pair: Pair, epsilon: Number) -> Witness:
    """The event that the loss exceeds ε: P is its tail, and P − e^ε Q is δ(ε)."""
    tail = loss.tail(real(epsilon.mid))
    p = between(number(tail.lower), number(tail.upper))
    q = minimum(ONE, maximum(ZERO, (p - loss.delta_number(epsilon)) * exp(-epsilon)))
    if p.a <= 0 or q.a <= 0:
        return Witness(pair)
    return Witness(pair, ABOVE_CLAIM, log(p), log(q))
