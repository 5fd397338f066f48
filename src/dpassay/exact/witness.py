"""Counterexamples that anyone can replay: two values before the noise, and an event on the output."""

from __future__ import annotations

import math
from dataclasses import replace

from dpassay.core.functions.normal import normal_tail
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
from dpassay.exact.pld.privacy_loss import PrivacyLoss
from dpassay.exact.pld.sampled.gaussian import SampledLoss, SampledPower
from dpassay.exact.profiles.bounds import CurveBound, DropoutBound, PairBound, before_dropout
from dpassay.exact.profiles.profile import Candidate, PrivacyProfile
from dpassay.pipeline.discrete_noise import DiscreteLaplace, DiscreteNoise
from dpassay.pipeline.distributions import Gaussian, Laplace, Mixture, OneSided
from dpassay.pipeline.pipeline import Pipeline
from dpassay.pipeline.regions import Block, Pair
from dpassay.pipeline.stages.base import Stage
from dpassay.pipeline.stages.bits import BitNoise, Flip
from dpassay.pipeline.stages.exponential import Choice
from dpassay.pipeline.stages.noises.additive import Additive
from dpassay.pipeline.stages.noises.bounded_laplace import BoundedLaplace
from dpassay.pipeline.stages.noises.directions import Direction
from dpassay.pipeline.stages.noises.radial import Radial, in_dimension
from dpassay.pipeline.truncated_laplace import TruncatedLaplace
from dpassay.values import dataclass


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
    inner = Candidate(candidate.pair, bound.bound if isinstance(bound, DropoutBound) else bound)
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
    if not isinstance(bound, PairBound) or delta == 0:
        return Witness(pair, data_sets=sets)
    larger = max(bound.losses, key=lambda loss: loss.delta_number(epsilon).a)
    if larger is not bound.losses[0]:
        pair, sets = _swapped(pair), sets and sets.reversed()
    found = replace(_loss_above(larger, pair, epsilon), data_sets=sets)
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
    if isinstance(stage, Additive):
        if isinstance(candidate.bound, CurveBound) or isinstance(stage.noise, TruncatedLaplace):
            return Witness(candidate.pair)
        found = _additive(stage, candidate, epsilon, delta, mu)
        # Such an event is about values that were not rounded, or about their signs.
        after = pipeline.stages[pipeline.noise_positions[-1] + 1 :]
        told = thresholds_told(after)
        far = isinstance(candidate.bound, PairBound) and candidate.bound.theorem == Theorem.UNBOUNDED
        lost = any(stage.name == "round" for stage in after) or (far and not (told and told.tells_signs))
        return Witness(found.pair) if lost else found
    if isinstance(stage, Radial | Direction | BoundedLaplace):
        return Witness(candidate.pair)
    if isinstance(stage, Choice):
        return _choose(stage, candidate)
    assert isinstance(candidate.bound, PairBound)
    if delta == 0 or (isinstance(stage, Flip) and stage.size):
        return _bits(stage, candidate)
    losses = candidate.bound.losses
    larger = max(losses, key=lambda loss: loss.delta_number(before_dropout(epsilon, mu)).a)
    pair = candidate.pair if larger is losses[0] else _swapped(candidate.pair)
    return _loss_above(larger, pair, before_dropout(epsilon, mu))


def _swapped(pair: Pair) -> Pair:
    return Pair(tuple(Block(b.y, b.x, b.count, b.positions) for b in pair.blocks))


def _additive(stage: Additive, candidate: Candidate, epsilon: Number, delta: Number, mu: Number) -> Witness:
    noise, pair, bound = stage.noise, candidate.pair, candidate.bound
    assert isinstance(bound, PairBound)
    if bound.theorem == Theorem.UNBOUNDED:
        return _far_apart(stage, pair, before_dropout(epsilon, mu), delta / (1 - mu))
    if bound.theorem == Theorem.POST_PROCESSING:
        return Witness(pair, "")
    if isinstance(noise, Laplace) and delta == 0:
        # docs/proofs/laplace.md: each differing coordinate is at or beyond the first value, away from the second.
        count = sum(block.count for block in pair.blocks if not block.same)
        log_p = -count * log(real(2))
        event = "every differing coordinate lies at or beyond the first value, on the side away from the second"
        return Witness(pair, event, log_p, log_p - pair.distance(1) / noise.scale)
    if isinstance(noise, DiscreteNoise):
        return _discrete(noise, pair, bound, delta)
    if isinstance(noise, Gaussian):
        mean = pair.distance(2) / noise.sigma
        # At δ = 0 any claim fails far enough out.
        threshold = before_dropout(epsilon, mu) + (1 if delta == 0 else 0)
        event = "the log-likelihood ratio of the first value to the second exceeds the claimed epsilon"
        near, far = threshold / mean - mean / 2, threshold / mean + mean / 2
        return Witness(pair, event, _log_normal_tail(near), _log_normal_tail(far))
    if isinstance(noise, Laplace):
        return _loss_above(bound.losses[0], pair, before_dropout(epsilon, mu))
    if isinstance(noise, Mixture) and noise.one_sided:
        larger = max(bound.losses, key=lambda loss: loss.infinite.a)
        if larger.infinite.a <= 0:
            return Witness(pair)
        ordered = pair if larger is bound.losses[0] else _swapped(pair)
        return Witness(ordered, "an output that the second value cannot give", log(larger.infinite), -INFINITY)
    if isinstance(noise, OneSided):
        lower = pair if sum(float(b.gap.mid) * b.count for b in pair.blocks) > 0 else _swapped(pair)
        rise = sum((maximum(ZERO, b.gap) * b.count for b in lower.blocks), ZERO)
        event = "some coordinate lies below the second value, which the second value cannot give"
        return Witness(lower, event, log(1 - exp(-rise / noise.scale)), -INFINITY)
    return Witness(pair)


def _discrete(noise: DiscreteNoise, pair: Pair, bound: PairBound, delta: Number) -> Witness:
    """docs/proofs/discrete-laplace.md, points 1 and 2."""
    if bound.losses[0].infinite == 1:
        return Witness(pair, "an output that the second value cannot give", ZERO, -INFINITY)
    if not isinstance(noise, DiscreteLaplace) or delta.b > 0:
        return Witness(pair)
    count = sum(block.count for block in pair.blocks if not block.same)
    log_p = -count * log(1 + exp(-1 / noise.scale))
    event = "every differing coordinate lies at or beyond the first value, on the side away from the second"
    return Witness(pair, event, log_p, log_p - pair.distance(1) / noise.scale)


def _loss_above(loss: PrivacyLoss, pair: Pair, epsilon: Number) -> Witness:
    """The event that the loss exceeds ε: P is its tail, and P − e^ε Q is δ(ε)."""
    tail = loss.tail(real(epsilon.mid))
    p = between(number(tail.lower), number(tail.upper))
    q = minimum(ONE, maximum(ZERO, (p - loss.delta_number(epsilon)) * exp(-epsilon)))
    if p.a <= 0 or q.a <= 0:
        return Witness(pair)
    event = "the log-likelihood ratio of the first value to the second exceeds the claimed epsilon"
    return Witness(pair, event, log(p), log(q))


def _far_apart(stage: Additive, pair: Pair, epsilon: Number, delta: Number) -> Witness:
    """Two values so far apart that the sign of the first coordinate reveals which one it was."""
    noise = stage.noise
    scale = noise.scale if hasattr(noise, "scale") else getattr(noise, "sigma", ONE)
    # P > 1 − (1 − δ)/4 and e^ε Q < (1 − δ)/4: their difference is above δ.
    size = scale * (epsilon + 2 + log(4 / (1 - delta))) + 1  # and 1 more, in case they are rounded
    first = pair.blocks[0]
    far = Pair((Block(size, -size, first.count), *pair.blocks[1:]))
    event = "the first coordinate is above 0"
    if isinstance(noise, Laplace):
        tail = exp(-size / noise.scale) / 2
        return Witness(far, event, log(1 - tail), log(tail))
    if isinstance(noise, Gaussian):
        log_tail = _log_normal_tail(size / noise.sigma)
        return Witness(far, event, log(1 - exp(log_tail)), log_tail)
    return Witness(far)


def _log_normal_tail(z: Number) -> Number:
    """ln P(N(0,1) > z)."""
    return log(normal_tail(z)) if z.mid > 0 else log(1 - normal_tail(-z))


def _bits(stage: object, candidate: Candidate) -> Witness:
    pair, bound = candidate.pair, candidate.bound
    if isinstance(stage, Flip) and stage.size:
        keep, other = stage.keep, (1 - stage.keep) / (stage.size - 1)
        if keep.mid < other.mid:
            return Witness(pair, "the second category is put out", *_logs(other, keep))
        return Witness(pair, "the first category is put out", *_logs(keep, other))
    assert isinstance(stage, BitNoise)
    assert isinstance(bound, PairBound)
    there, back = bound.losses[0], bound.losses[-1]
    if back.pure.a > there.pure.a:
        pair = _swapped(pair.by_parity())
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


def _choose(stage: Choice, candidate: Candidate) -> Witness:
    bound = candidate.bound
    assert isinstance(bound, PairBound)
    if bound.theorem == Theorem.UNBOUNDED:
        return Witness(candidate.pair)
    if bound.theorem == Theorem.TOP_K:
        larger = max(bound.losses, key=lambda loss: loss.infinite.a)
        if larger.infinite.a <= 0:
            return Witness(candidate.pair)
        ordered = candidate.pair if larger is bound.losses[0] else _swapped(candidate.pair)
        event = "an output is chosen that is not among the second value's top k"
        return Witness(ordered, event, log(minimum(ONE, larger.infinite)), -INFINITY)
    component, _ = bound.losses[0].components[0]
    loss, chance = component.atoms[0]  # type: ignore[attr-defined]
    count = candidate.pair.blocks[0].count
    event = (
        "the first output is chosen"
        if count == 1
        else f"one of the {count} outputs with the first one's scores is chosen"
    )
    return Witness(candidate.pair, event, log(chance), log(chance) - loss)
