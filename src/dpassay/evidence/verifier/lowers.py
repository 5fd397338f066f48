"""Lower bounds: the loss of two values that neighbours can have, as far as it survives what comes after the noise."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dpassay.errors import CertificateError
from dpassay.evidence.verifier import normal
from dpassay.evidence.verifier.discrete import category_loss, choice_loss, noised_bits
from dpassay.evidence.verifier.losses import Gaussian, Grid, Leak, Loss, Pure, bits_loss, laplace_loss
from dpassay.evidence.verifier.mixtures import mixture_loss
from dpassay.evidence.verifier.numbers import ONE, ZERO, Number, is_infinite, iv, largest, smallest
from dpassay.evidence.verifier.pairs import Pair, carried, differing, distance, lies_in
from dpassay.evidence.verifier.regions import (
    ADDITIVE,
    INFINITE,
    NOISES,
    NORMS,
    Reach,
    Stage,
    diameter,
    loses,
    most_differing,
)

# What is left of an output behind a stage: all of it, events far out, signs; nothing that is known behind the others.
_KEEPS = {
    **dict.fromkeys(("encode", "decode", "squash", "repeat", *ADDITIVE), "all"),
    **dict.fromkeys(("clip", "normalise", "binary"), "signs"),
    "round": "tails",
}


NO_NOISE = Stage("", {}, {}, {})


@dataclass(frozen=True)
class AtZero:
    """A bound on ε at δ = 0 alone: the events that show it are rare."""

    pure: Number

    def delta(self, epsilon: Number, upper: bool) -> Number:
        return ZERO


def kept_after(stages: Sequence[Stage]) -> str:
    """What the stages after a noise leave of its output."""
    kept, squashed = set(), ""
    for stage in stages:
        what = _KEEPS.get(stage.name, "nothing")
        # What was squashed has no far-out values any more, and behind a sigmoid all signs are the same.
        lost = (what == "tails" and squashed) or (what == "signs" and squashed == "sigmoid")
        kept.add("nothing" if lost else what)
        if stage.name == "binary":
            squashed = "sigmoid"  # bits have no signs either
        if stage.name == "squash":
            squashed = "sigmoid" if "sigmoid" in (squashed, stage.words["kind"]) else "tanh"
    if "nothing" in kept or {"tails", "signs"} <= kept:
        return "nothing"
    return next((what for what in ("signs", "tails") if what in kept), "all")


@dataclass(frozen=True)
class Place:
    """A noise in its pipeline: all stages, what neighbours can bring to each, and where the noise stands."""

    stages: Sequence[Stage]
    reaches: Sequence[Reach]  # of one record, where records are summed
    position: int
    moved: Reach | None = None  # what a record that is added or removed brings to the noise
    around_zero: bool = True  # whether neighbours' values can lie anywhere, up to their difference

    @property
    def noise(self) -> Stage:
        """The noise; a stage without a name where there is none."""
        return self.stages[self.position] if self.position < len(self.stages) else NO_NOISE

    @property
    def reach(self) -> Reach:
        return self.moved or self.reaches[self.position]

    @property
    def added(self) -> list[Stage]:
        """The noises added right after one another here, this one first."""
        found: list[Stage] = []
        for stage in self.stages[self.position :]:
            if stage.name not in ADDITIVE:
                break
            found.append(stage)
        return found or [self.noise]

    @property
    def keeps(self) -> str:
        """What survives behind the noise, and the noises added right after it."""
        behind = self.stages[self.position + len(self.added) :]
        kept = kept_after(behind)
        hidden = any(stage.name in NOISES for stage in behind) or (kept == "signs" and not self.around_zero)
        return "nothing" if hidden else kept

    def pair(self, start: int, given: Pair) -> Pair:
        """A pair of the region at an earlier place, carried here; any two values there can come from neighbours.

        Of records that are added or removed it is the first one's vector, against none.
        """
        if not 0 <= start <= self.position:
            raise CertificateError(f"the pair cannot come in at stage {start}, which is not before the noise")
        reach = self.reach if start == self.position else self.reaches[start]
        if not reach.exact:
            raise CertificateError(f"it is not known which pairs can come in at stage {start}")
        if reach.far and self.noise.name not in ("", *ADDITIVE):
            raise CertificateError("values that are reached only in the limit tell nothing of this noise")
        why = lies_in(given, reach.shape)
        if why:
            raise CertificateError(f"the pair is not one of the region {reach.shape.kind}: {why}")
        pair = carried(self.stages[start : self.position], given)
        if self.moved is None or start == self.position:
            return pair
        return tuple(replace(block, y=ZERO) for block in pair)


def lower(theorem: str, place: Place, start: int, given: Pair, grid: Grid | None) -> Loss:
    """The loss that some neighbours show, by the theorem of this name."""
    if theorem == "unbounded":
        return _unbounded(place)
    if theorem == "exponential" and not given:
        return _far_scores(place)
    pair = place.pair(start, given)
    if theorem == "no-noise":
        if any(stage.name in NOISES for stage in place.stages):
            raise CertificateError("there is noise")
        return Leak(ONE if distance(pair, INFINITE).a > 0 else ZERO)
    if theorem == "two-noises":
        return _rare(place, pair)
    noise, keeps = joined_noise(place.added), place.keeps
    if noise is None:
        raise CertificateError("of a sum of different noises only rare outputs are known")
    if _OF_PAIRS.get(noise.name) == theorem:
        if keeps == "all" or (noise.name not in ADDITIVE and keeps == "tails"):
            return pair_loss(noise, pair, grid)
        if keeps == "tails" and noise.name in ("laplace", "gaussian"):
            return AtZero(pair_loss(noise, pair, grid).pure)
    if theorem == noise.name == "radial" and keeps in ("all", "tails"):
        return AtZero(distance(pair, NORMS[noise.words["norm"]]) / noise.numbers["scale"])
    if theorem == "post-processing" and keeps == "signs" and noise.name in ("laplace", "gaussian"):
        chances = [tuple(chance_above_zero(noise, value) for value in (b.x, b.y)) for b in pair]
        return bits_loss([(p, q, block.count) for (p, q), block in zip(chances, pair, strict=True)])
    raise CertificateError(f"no theorem {theorem!r} says what a pair shows behind {noise.name} here")


_OF_PAIRS = {
    "laplace": "laplace",
    "gaussian": "gaussian",
    "onesided": "one-sided",
    "mixture": "mixture",
    "bits": "randomized-response",
    "flip": "randomized-response",
    "exponential": "exponential",
}


def joined_noise(noises: Sequence[Stage]) -> Stage | None:
    """One noise, or the sum of Gaussians that are added to one another."""
    if len(noises) == 1:
        return noises[0]
    if any(noise.name != "gaussian" for noise in noises):
        return None
    square = sum((noise.numbers["sigma"] ** 2 for noise in noises), ZERO)
    return replace(noises[0], numbers={"sigma": iv.sqrt(square)})


def pair_loss(stage: Stage, pair: Pair, grid: Grid | None) -> Loss:
    """The loss of one pair just before a noise."""
    gaps = differing(pair)
    if stage.name == "gaussian":
        return Gaussian(distance(pair, 2.0) / stage.numbers["sigma"])
    if stage.name == "laplace":
        return laplace_loss(gaps, stage.numbers["scale"], grid)
    if stage.name == "onesided":
        ways = [sum((sign * gap * n for gap, n in gaps if (sign * gap).a > 0), ZERO) for sign in (1, -1)]
        return Leak(1 - iv.exp(-largest(ways) / stage.numbers["scale"]))
    if stage.name == "mixture":
        return mixture_loss(stage, gaps)
    if stage.name == "bits":
        return bits_loss(noised_bits(stage, pair))
    if stage.name == "flip":
        return category_loss(stage) if gaps else Pure(ZERO)
    return choice_loss(stage, pair)


def chance_above_zero(stage: Stage, centre: Number) -> Number:
    """P(centre + noise > 0)."""
    if stage.name == "gaussian":
        return normal.tail(-centre / stage.numbers["sigma"])
    tail = iv.exp(-abs(centre) / stage.numbers["scale"]) / 2
    return 1 - tail if centre.a > 0 else tail


def _unbounded(place: Place) -> Loss:
    """Values that nothing bounds are given away, unless every coordinate that differs is lost."""
    noise, reach, keeps = place.noise, place.reach, place.keeps
    if not reach.exact or not is_infinite(diameter(reach.shape, INFINITE)) or keeps == "nothing":
        raise CertificateError("it is not known that values can be any distance apart")
    if noise.name == "exponential" and reach.shape.dim > 1 and keeps in ("all", "tails"):
        return Leak(ONE)
    if noise.name not in ADDITIVE:
        raise CertificateError(f"of {noise.name} on values without a bound nothing is known")
    if any(loses(stage) for stage in place.added):
        # Where a vector is scaled, one lost coordinate takes the others with it.
        if len(place.added) > 1 or keeps == "signs":
            raise CertificateError("values may be lost")
        return Leak(1 - noise.numbers["lost"] ** most_differing(reach.shape))
    return Leak(ONE)


def _rare(place: Place, pair: Pair) -> Loss:
    """Laplace and Gaussian noises added right after one another: far out the widest Laplace noise decides."""
    if place.keeps not in ("all", "tails") or any(noise.name not in ("laplace", "gaussian") for noise in place.added):
        raise CertificateError("of these noises nothing is known that survives")
    return AtZero(smallest(pair_loss(noise, pair, None).pure for noise in place.added))


def _far_scores(place: Place) -> Loss:
    """A query's scores can put one output far behind the others; there 2·rate·Δ is approached."""
    noise, reach = place.noise, place.reach
    known = noise.name == "exponential" and reach.exact and place.keeps in ("all", "tails") and reach.shape.dim > 1
    if not known or reach.shape.kind != "apart" or reach.shape.p != INFINITE:
        raise CertificateError("scores are not known to lie far behind one another")
    return AtZero(2 * noise.numbers["rate"] * reach.shape.size)
