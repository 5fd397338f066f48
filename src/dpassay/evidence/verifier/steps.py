"""Repeated steps, with records drawn for each: from the loss of one step to that of all."""

from collections.abc import Sequence
from dataclasses import dataclass

from dpassay.errors import CertificateError
from dpassay.evidence.verifier.binomial import Bits
from dpassay.evidence.verifier.losses import (
    Curve,
    Loss,
    Outcomes,
    Summed,
    Worst,
    bits_loss,
    leak_loss,
    loss_at_zero,
    pure_loss,
    range_steps,
)
from dpassay.evidence.verifier.normal import tail
from dpassay.evidence.verifier.numbers import INF, ONE, ZERO, Number, at_most_one, is_infinite, iv, positive_part
from dpassay.evidence.verifier.pairs import Pair
from dpassay.evidence.verifier.reading import Step
from dpassay.evidence.verifier.regions import Stage
from dpassay.evidence.verifier.sampled import Sampled
from dpassay.evidence.verifier.sampled_laplace import sampled_laplace


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

    At δ = 0 all steps count; at δ > 0 one.
    """

    loss: Loss
    rate: Number
    count: int

    @property
    def pure(self) -> Number:
        pure = self.loss.pure
        return INF if is_infinite(pure) else iv.log(1 - self.rate + self.rate * iv.exp(pure)) * self.count

    def delta(self, epsilon: Number, upper: bool) -> Number:
        return self.rate * self.loss.delta(iv.log(1 + (iv.exp(epsilon) - 1) / self.rate), upper)


def repeated(loss: Loss, count: int, upper: bool) -> Loss:
    """The loss of `count` steps, each with this one: from above for a dominating loss, from below for a pair's."""
    if count == 1:
        return loss
    if isinstance(loss, Curve) and loss.times is not None:
        return loss.times(count)
    if isinstance(loss, Summed):
        return Summed(tuple((part, times * count) for part, times in loss.parts), loss.grid)
    if isinstance(loss, Bits):
        return bits_loss([(p, q, times * count) for p, q, times in loss.groups])
    if isinstance(loss, Outcomes) and not upper:
        # For each step only one bit is used: whether its output is likelier under the first law.
        likelier = [(p, q) for p, q in loss.chances if p.a > q.b]
        first, second = (sum((chance[i] for chance in likelier), ZERO) for i in (0, 1))
        told = bits_loss([(at_most_one(first), at_most_one(second), count)])
        leak = at_most_one(loss.infinite)
        return Worst([told, leak_loss(1 - (1 - leak) ** count)]) if leak.a > 0 else told
    if isinstance(loss, Worst) and (len(loss.losses) == 1 or not upper):
        return Worst([repeated(one, count, upper) for one in loss.losses])
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
class Steps:
    """How often a pipeline runs, and how records are drawn: the probability that one takes part, or the batches."""

    count: int
    kind: str
    rate: Number
    batches: int
    replaced: bool

    @classmethod
    def of(cls, stages: Sequence[Stage], neighbours: str) -> "Steps":
        first, last = stages[0], stages[-1]
        kind = first.name if first.name in ("poisson", "subsample", "shuffle") else ""
        rate, batches = ONE, 1
        if kind == "poisson":
            rate = first.numbers["rate"]
        elif kind == "subsample":
            rate = iv.mpf(first.wholes["m"]) / first.wholes["n"]
        elif kind == "shuffle":
            batches = first.wholes["batches"]
        if kind in ("poisson", "subsample") and rate.a >= 1:
            kind = ""
        count = last.wholes["steps"] if last.name == "times" else 1
        return cls(count, kind, rate, batches, neighbours == "replace-record")

    def theorem(self, name: str, noise: Stage) -> str:
        """The theorem about one step, in which the record takes part, that a theorem about all steps needs."""
        if name not in ("poisson", "optimal-composition", "fixed-size", "shuffle"):
            return name
        others = {"vmf": "sphere", "purkayastha": "sphere", "mahalanobis": "radial", "noisymax": "noisy-max"}
        others |= dict.fromkeys(("flip", "bits"), "randomized-response")
        return others.get(noise.name, noise.name.replace("_", "-"))

    def upper(self, step: Step, loss: Loss) -> Loss:
        """The loss of all steps, given one that dominates each of them."""
        name = step.theorem
        own = {"poisson": "poisson", "subsample": "fixed-size"}.get(self.kind, "")
        if (name in ("poisson", "fixed-size") and name != own) or name == "shuffle":
            raise CertificateError(f"the theorem {name!r} does not apply to these steps")
        if name == "optimal-composition" and not own:
            return randomized_response(loss.pure, self.count)
        if not own and isinstance(loss, Curve) and loss.width is not None and step.order is not None:
            return range_steps(loss.width, loss.pure, self.count, step.order)
        if not own:
            return repeated(loss, self.count, True)
        if name != own:
            if self._added and (found := sampled_laplace(loss, self.rate, self.count, step.grid)) is not None:
                return found
            if (self.replaced and self.kind == "poisson") or self.count > 1:
                raise CertificateError(f"the theorem {name!r} does not apply to these steps")
            return Amplified(loss, self.rate, 1)
        if isinstance(loss, Curve) and loss.mu is not None:
            orders = ("fixed",) if self.kind == "subsample" else ("both",) if self.replaced else ("in", "out")
            return Worst([Sampled(self.rate, loss.mu, order, self.count, step.grid) for order in orders])
        return randomized_response(self._amplified(loss.pure), self.count)

    def lower(self, step: Step, loss: Loss, pair: Pair) -> Loss:
        """The loss that a pair shows in all steps, given what it shows in one in which the record takes part."""
        name, mu = step.theorem, loss.mu if isinstance(loss, Curve) else None
        own = {"poisson": "poisson", "subsample": "fixed-size", "shuffle": "shuffle"}.get(self.kind, "")
        if (name in ("poisson", "fixed-size", "shuffle") and name != own) or name == "optimal-composition":
            raise CertificateError(f"the theorem {name!r} does not say what a pair shows in these steps")
        if not own:
            return repeated(loss, self.count, False)
        if self.kind == "shuffle":
            if mu is not None and name == own and len(step.thresholds) == 1:
                return Largest(mu, self.batches, step.thresholds[0])
            return loss_at_zero(loss.pure * self.count)
        opposite = self.replaced and self.kind == "poisson"
        if name != own:
            if opposite or (self.kind == "poisson" and name != "laplace"):
                raise CertificateError(f"the theorem {name!r} does not say what a pair shows behind sampling")
            if self._added and (found := sampled_laplace(loss, self.rate, self.count, step.grid)) is not None:
                return found
            return Amplified(loss, self.rate, self.count)
        if opposite and not all(block.x.a == -block.y.b and block.x.b == -block.y.a for block in pair):
            raise CertificateError("the pair is not a record's vector and the opposite one")
        half = 2 if opposite else 1
        if mu is not None:
            orders = ("both",) if opposite else ("in", "out")
            return Worst([Sampled(self.rate, mu / half, order, self.count, step.grid) for order in orders])
        return loss_at_zero(self._amplified(loss.pure / half) * self.count)

    def refuse_event(self) -> None:
        """Events are known only for a single step."""
        if self.count > 1 or self.kind:
            raise CertificateError("no event is known for sampled or repeated steps")

    @property
    def _added(self) -> bool:
        """Whether a record that takes part with some probability is in one of the data sets only."""
        return self.kind == "poisson" and not self.replaced

    def _amplified(self, pure: Number) -> Number:
        """ε at δ = 0 of one step, given that of a record that certainly takes part."""
        if is_infinite(pure):
            raise CertificateError("for this noise after sampling, only ε-DP is known")
        most = iv.log(1 - self.rate + self.rate * iv.exp(pure))
        if self.replaced and self.kind == "poisson":
            most -= iv.log(1 - self.rate + self.rate * iv.exp(-pure))
        return most


__all__ = ["Steps"]
