"""Repeated steps, with records drawn for each: from the loss of one step to that of all."""

from collections.abc import Sequence

from dpassay.errors import CertificateError
from dpassay.evidence.verifier.arithmetic.binomial import BitGroups
from dpassay.evidence.verifier.arithmetic.normal import tail
from dpassay.evidence.verifier.arithmetic.numbers import (
    INF,
    ONE,
    ZERO,
    Number,
    at_most_one,
    hull,
    is_infinite,
    iv,
    largest,
    log,
    positive_part,
)
from dpassay.evidence.verifier.noises.losses import (
    FiniteOutcomes,
    Leaking,
    Loss,
    LossCurve,
    Summed,
    Worst,
    bits_loss,
    leak_loss,
    loss_at_zero,
    pure_loss,
    range_steps,
)
from dpassay.evidence.verifier.reading import Step
from dpassay.evidence.verifier.regions.regions import ParsedStage
from dpassay.evidence.verifier.sampling.laplace import sampled_axis, sampled_laplace
from dpassay.evidence.verifier.sampling.sampled import Sampled
from dpassay.values import dataclass

_RESPONSE = "optimal-composition"
_LISTED = 4096  # outcomes of all steps together


@dataclass(frozen=True)
class Basic:
    """Guarantees add up: T steps that each are (ε/T, δ/T)-DP."""

    loss: Loss
    count: int

    @property
    def pure(self) -> Number:
        return self.loss.pure * self.count

    def delta(self, epsilon: Number, upper: bool) -> Number:
        return at_most_one(self.loss.delta(epsilon / self.count, upper) * self.count)


@dataclass(frozen=True)
class Amplified:
    """A record in only one of the data sets, which takes part with probability q: δ(ε) = q·δ₁(ln(1 + (e^ε−1)/q)).

    At δ = 0 all steps count; at δ > 0 one, or all in which an output reveals the record.
    """

    loss: Loss
    rate: Number
    count: int

    @property
    def pure(self) -> Number:
        pure = self.loss.pure
        return INF if is_infinite(pure) else iv.log(1 - self.rate + self.rate * iv.exp(pure)) * self.count

    @property
    def infinite(self) -> Number:
        """The probability of outputs that the second law cannot give, in any of the steps."""
        return 1 - (1 - at_most_one(self.rate * getattr(self.loss, "infinite", ZERO))) ** self.count

    def delta(self, epsilon: Number, upper: bool) -> Number:
        one = self.rate * self.loss.delta(iv.log(1 + (iv.exp(epsilon) - 1) / self.rate), upper)
        return one if self.count == 1 else largest([one, self.infinite])


@dataclass(frozen=True)
class Absent:
    """A record in only the second of the data sets: δ(ε) = (1 − γ(1 − q))·δ₁(ln(γq/(1 − γ(1 − q)))), γ = e^ε.

    The loss is that of the sum without the record against that with it. At δ = 0 all steps count; at δ > 0 one.
    """

    loss: Loss
    rate: Number
    count: int

    @property
    def pure(self) -> Number:
        pure = self.loss.pure
        less = ZERO if is_infinite(pure) else iv.exp(-pure)
        return -log(1 - self.rate + self.rate * less) * self.count

    def delta(self, epsilon: Number, upper: bool) -> Number:
        gamma = iv.exp(epsilon)
        share = 1 - gamma * (1 - self.rate)
        if not share.a > 0:
            return hull(ZERO, at_most_one(positive_part(share)))
        return share * self.loss.delta(positive_part(iv.log(gamma * self.rate / share)), upper)


def repeated(loss: Loss, count: int, upper: bool) -> Loss:
    """The loss of `count` steps, each with this one: from above for a dominating loss, from below for a pair's."""
    if count == 1:
        return loss
    if isinstance(loss, LossCurve) and loss.times is not None:
        return loss.times(count)
    if isinstance(loss, Leaking):
        return loss.times(count)
    if isinstance(loss, Summed):
        return Summed(tuple((part, times * count) for part, times in loss.parts), loss.grid)
    if isinstance(loss, BitGroups):
        return bits_loss([(p, q, times * count) for p, q, times in loss.groups])
    if isinstance(loss, FiniteOutcomes) and not upper and len(loss.chances) ** count <= _LISTED:
        chances = [(ONE, ONE)]
        for _ in range(count):
            chances = [(a * p, b * q) for a, b in chances for p, q in loss.chances]
        return FiniteOutcomes(tuple(chances))
    if isinstance(loss, FiniteOutcomes) and not upper:
        # For each step only one bit is used: whether its output is likelier under the first law.
        likelier = [(p, q) for p, q in loss.chances if p.a > q.b]
        first, second = (sum((chance[i] for chance in likelier), ZERO) for i in (0, 1))
        told = bits_loss([(at_most_one(first), at_most_one(second), count)])
        leak = at_most_one(loss.infinite)
        return Worst([told, leak_loss(1 - (1 - leak) ** count)]) if leak.a > 0 else told
    if isinstance(loss, Worst) and (len(loss.losses) == 1 or not upper):
        return Worst([repeated(one, count, upper) for one in loss.losses])
    if isinstance(loss, Worst) and all(isinstance(one, Leaking) for one in loss.losses):
        # No pair reveals more often, or loses more otherwise, than all of them together.
        most = largest(one.others(1).pure for one in loss.losses if isinstance(one, Leaking))
        return leak_loss(1 - (1 - loss.infinite) ** count, most * count)
    # From below all steps count at δ = 0, and at δ > 0 what one of them shows.
    return Basic(loss, count) if upper else loss_at_zero(loss.pure * count, loss)


def randomized_response(pure: Number, count: int) -> Loss:
    """The worst ε₀-DP mechanism, `count` times."""
    if is_infinite(pure):
        raise CertificateError("the steps are not known to be ε-DP for any ε")
    keep = 1 / (1 + iv.exp(-pure))
    return bits_loss([(keep, 1 - keep, count)]) if pure.b > 0 else pure_loss(ZERO)


@dataclass(frozen=True)
class Largest:
    """Shuffled batches with Gaussian noise: whether the largest of b outputs exceeds a threshold."""

    mu: Number
    batches: int
    threshold: Number

    @property
    def pure(self) -> Number:
        return ZERO

    def delta(self, epsilon: Number, upper: bool) -> Number:
        stays, moved = 1 - tail(self.threshold), 1 - tail(self.threshold - self.mu)
        p, q = 1 - stays ** (self.batches - 1) * moved, 1 - stays**self.batches
        return positive_part(p - iv.exp(epsilon) * q)


@dataclass(frozen=True)
class SampledSteps:
    """How often a pipeline runs, and how records are drawn: the probability that one takes part, or the batches."""

    count: int
    kind: str
    rate: Number
    batches: int
    replaced: bool
    batch: tuple[int, int] = (0, 0)  # how many records are summed, and of how many

    @classmethod
    def of(cls, stages: Sequence[ParsedStage], neighbours: str) -> "SampledSteps":
        first, last = stages[0], stages[-1]
        kind = first.name if first.name in ("poisson", "subsample", "shuffle") else ""
        rate, batches = ONE, 1
        if kind == "poisson":
            rate = first.numbers["rate"]
        elif kind == "subsample":
            rate = iv.mpf(first.wholes["m"]) / first.wholes["n"]
        elif kind == "shuffle":
            batches = first.wholes["batches"]
        batch = (first.wholes["m"], first.wholes["n"]) if kind == "subsample" and first.wholes["n"] > 1 else (0, 0)
        if kind in ("poisson", "subsample") and rate.a >= 1:
            kind = ""
        count = last.wholes["steps"] if last.name == "times" else 1
        return cls(count, kind, rate, batches, neighbours == "replace-record", batch)

    @property
    def sampled(self) -> bool:
        """Whether a step's sum may have other records, or may lack the one that differs."""
        return self.kind in ("poisson", "subsample") or self.batch[1] > 1

    def theorem(self, name: str, noise: ParsedStage) -> str:
        """The theorem about one step, in which the record takes part, that a theorem about all steps needs."""
        if name not in ("poisson", "optimal-composition", "fixed-size", "shuffle"):
            return name
        others = {"vmf": "sphere", "purkayastha": "sphere", "mahalanobis": "radial", "noisymax": "noisy-max"}
        others |= dict.fromkeys(("flip", "bits"), "randomized-response")
        return others.get(noise.name, noise.name.replace("_", "-"))

    def upper(self, step: Step, loss: Loss, apart: Loss | None = None) -> Loss:
        """The loss of all steps, given one that dominates each of them.

        After Poisson sampling it is that of a record added or removed, and `apart` that of one replaced.
        """
        name = step.theorem
        if name == "unbounded" and self.kind in ("poisson", "subsample"):  # who takes part is revealed at worst
            return leak_loss(1 - (1 - self.rate) ** self.count)
        own = {"poisson": "poisson", "subsample": "fixed-size"}.get(self.kind, "")
        if (name in ("poisson", "fixed-size") and name != own) or name == "shuffle" or (own and name == _RESPONSE):
            raise CertificateError(f"the theorem {name!r} does not apply to these steps")
        if name == _RESPONSE:
            return randomized_response(loss.pure, self.count)
        if not own and isinstance(loss, LossCurve) and loss.width is not None and step.order is not None:
            return range_steps(loss.width, loss.pure, self.count, step.order)
        if not own:
            return repeated(loss, self.count, True)
        if name != own:
            if self.added and (found := sampled_laplace(loss, self.rate, self.count, step.grid)) is not None:
                return found
            if name == "laplace" and self.kind == "poisson" and step.grid is not None and not is_infinite(loss.pure):
                return sampled_axis(loss.pure, self.rate, self.count, step.grid, self.replaced)
            one = Amplified(loss, self.rate, 1) if apart is None else Replaced(loss, apart, self.rate)
            return one if self.count == 1 else Basic(one, self.count)
        if isinstance(loss, LossCurve) and loss.mu is not None:
            orders = ("fixed",) if self.kind == "subsample" else ("both",) if self.replaced else ("in", "out")
            return Worst([Sampled(self.rate, loss.mu, order, self.count, step.grid) for order in orders])
        if isinstance(loss, Leaking) and apart is None:
            # Each step is (ε, δ)-DP with the δ at which outputs reveal the record.
            finite = iv.log(1 - self.rate + self.rate * iv.exp(loss.others(1).pure))
            return Leaking(self.rate * loss.infinite, lambda steps: randomized_response(finite, steps), self.count)
        if is_infinite(loss.pure) or (apart is not None and is_infinite(apart.pure)):
            raise CertificateError("for this noise after sampling, only ε-DP is known")
        if apart is not None:
            return randomized_response(amplified_replaced(loss.pure, apart.pure, self.rate), self.count)
        return randomized_response(iv.log(1 - self.rate + self.rate * iv.exp(loss.pure)), self.count)

    def lower(self, step: Step, loss: Loss) -> Loss:
        """The loss that a pair shows in all steps, if all records take part or each is in one shuffled batch."""
        name, mu = step.theorem, loss.mu if isinstance(loss, LossCurve) else None
        own = "shuffle" if self.kind == "shuffle" else ""
        if name in ("poisson", "fixed-size", "shuffle", "optimal-composition") and name != own:
            raise CertificateError(f"the theorem {name!r} does not say what a pair shows in these steps")
        if not own:
            return repeated(loss, self.count, False)
        if mu is not None and name == own and len(step.thresholds) == 1:
            return Largest(mu, self.batches, step.thresholds[0])
        return loss_at_zero(loss.pure * self.count)

    def refuse_event(self) -> None:
        """Events are known only for a single step."""
        if self.count > 1 or self.kind or self.sampled:
            raise CertificateError("no event is known for sampled or repeated steps")

    @property
    def added(self) -> bool:
        """Whether a record that takes part with some probability is in one of the data sets only."""
        return self.kind == "poisson" and not self.replaced


def amplified_replaced(alone: Number, apart: Number, rate: Number) -> Number:
    """ε at δ = 0 of a record replaced, which takes part with probability q: docs/proofs/poisson.md, point 4.

    ln((1 − q + q·e^ε₀)/(1 − q + q·e^(ε₀−ε₁))), ε₀ of a record against none and ε₁ of two records; it grows with both.
    """

    def found(alone: Number, apart: Number) -> Number:
        return iv.log(1 - rate + rate * iv.exp(alone)) - iv.log(1 - rate + rate * iv.exp(alone - apart))

    if is_infinite(alone) or is_infinite(apart):
        raise CertificateError("for this noise after sampling, only ε-DP is known")
    low, high = (found(iv.mpf(getattr(alone, end)), iv.mpf(getattr(apart, end))) for end in ("a", "b"))
    return positive_part(hull(low, high))


@dataclass(frozen=True)
class Replaced:
    """A record replaced after Poisson sampling: docs/proofs/poisson.md, point 9.

    δ(ε) = q·((1 − β)·δ₀(ε') + β·δ₁(ε')), e^ε' = 1 + (e^ε − 1)/q and β = e^(ε−ε').
    """

    alone: Loss
    apart: Loss
    rate: Number

    @property
    def pure(self) -> Number:
        if is_infinite(self.alone.pure) or is_infinite(self.apart.pure):
            return INF
        return amplified_replaced(self.alone.pure, self.apart.pure, self.rate)

    def delta(self, epsilon: Number, upper: bool) -> Number:
        before = iv.log(1 + (iv.exp(epsilon) - 1) / self.rate)
        share = iv.exp(epsilon - before)
        mixed = (1 - share) * self.alone.delta(before, upper) + share * self.apart.delta(before, upper)
        return at_most_one(self.rate * mixed)
