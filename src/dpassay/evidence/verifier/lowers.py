"""Lower bounds: the loss of two values that neighbors can have, as far as it survives the stages after the noise."""

from collections.abc import Sequence
from dataclasses import replace

from dpassay.errors import CertificateError
from dpassay.evidence.verifier.arithmetic.numbers import (
    INF,
    ONE,
    ZERO,
    Number,
    is_infinite,
    is_point,
    iv,
    largest,
    smallest,
    whole_part,
)
from dpassay.evidence.verifier.noises.discrete import score_spread
from dpassay.evidence.verifier.noises.known_noises import KNOWN, joined_noise, pair_loss
from dpassay.evidence.verifier.noises.losses import Loss, bits_loss, chance_above, leak_loss, loss_at_zero
from dpassay.evidence.verifier.reading import Step
from dpassay.evidence.verifier.regions.pairs import Pair, along_first_axis, carried, distance, lies_in, same
from dpassay.evidence.verifier.regions.regions import (
    ADDITIVE,
    DIRECTIONS,
    INFINITE,
    NOISES,
    NORMS,
    WHOLE,
    ParsedStage,
    Reach,
    diameter,
    may_drop_values,
    squash,
)
from dpassay.values import dataclass

_LOSSLESS = ("encode", "decode", "repeat", "times")  # functions that in the worst case lose nothing
# Noises whose law for a value is approached by those for values that come near it.
_CONTINUOUS = ("", *(name for name in ADDITIVE if name not in WHOLE), "exponential", "noisymax", "bounded_laplace")
NO_NOISE = ParsedStage("", {}, {}, {})


@dataclass(frozen=True)
class NoisePlace:
    """A noise in its pipeline: all stages, which values neighbors can have at each, and the noise's position."""

    stages: Sequence[ParsedStage]
    reaches: Sequence[Reach]  # of one record, if records are summed
    position: int
    moved: Reach | None = None  # the sum of added or removed records at the noise
    count: int = 1  # how many such records

    @property
    def noise(self) -> ParsedStage:
        """The noise; a stage without a name if there is none."""
        return self.stages[self.position] if self.position < len(self.stages) else NO_NOISE

    @property
    def reach(self) -> Reach:
        return self.moved or self.reaches[self.position]

    @property
    def added(self) -> list[ParsedStage]:
        """The noises added right after one another here, this one first."""
        found: list[ParsedStage] = []
        for stage in self.stages[self.position :]:
            if stage.name not in ADDITIVE:
                break
            found.append(stage)
        return found or [self.noise]

    @property
    def behind(self) -> Sequence[ParsedStage]:
        """The stages after the noise, and after noises added right after it."""
        return self.stages[self.position + len(self.added) :]

    @property
    def keeps_all(self) -> bool:
        """Whether nothing is lost after the noise; names and bits are integers, so rounding does not change them."""
        if self.noise.name not in (*ADDITIVE, *DIRECTIONS, "bounded_laplace"):
            return told_far(self.behind)
        return _undone(self.behind)

    def region(self, start: int) -> Reach:
        """Which values neighbors can have at a position."""
        if not 0 <= start <= self.position:
            raise CertificateError(f"the pair cannot come in at stage {start}, which is not before the noise")
        return self.reach if start == self.position else self.reaches[start]

    def pair(self, step: Step) -> Pair:
        """A pair of the region at an earlier position, carried here; any two values there can come from neighbors.

        For records that are added or removed it is the first one's vector, once per record, against none.
        """
        reach = self.region(step.at)
        if not reach.exact:
            raise CertificateError(f"it is not known which pairs can come in at stage {step.at}")
        if reach.far and self.noise.name not in _CONTINUOUS:
            raise CertificateError("values that are reached only in the limit say nothing about this noise")
        why = lies_in(step.pair, reach.shape)
        if why:
            raise CertificateError(f"the pair does not lie in the region {reach.shape.kind}: {why}")
        pair = carried(self.stages[step.at : self.position], step.pair)
        if sum(block.count for block in pair) != self.reaches[self.position].shape.dim:
            raise CertificateError(
                "it is not known which coordinates a function returns, because it changes their number"
            )
        shape = reach.shape.one
        any_vector = shape.kind == "box" and shape.differing == shape.dim and not shape.everything
        if self.moved is None or (step.at == self.position and not any_vector):
            return pair
        side, other = ("y", "x") if abs(pair[0].x).b >= abs(pair[0].y).b else ("x", "y")  # the empty sum
        times = self.count if step.at < self.position else 1
        if (constant := self.reaches[self.position].shape.constant) is not None:  # so no other vector occurs
            return tuple(replace(block, **{side: ZERO, other: constant * self.count}) for block in pair)
        return tuple(replace(block, **{side: ZERO, other: getattr(block, other) * times}) for block in pair)

    def placed(self, step: Step) -> bool:
        """Whether the pair's values are those that neighbors have, not only their difference."""
        shape = self.region(step.at).shape.one
        counts = shape.whole and self.moved is None  # answers that may be any integers
        return shape.kind != "answers" or shape.free or counts or not is_infinite(shape.balls[0].radius)

    def tells(self, step: Step) -> bool:
        """Whether the output shows on which side of each threshold a noisy coordinate lay."""
        near = all(not is_infinite(abs(one)) for one in step.thresholds)
        return bool(step.thresholds) and near and all(_told(self.behind, one, one) for one in step.thresholds)

    def tells_far(self, step: Step) -> bool:
        """Whether thresholds arbitrarily far out, seen from the pair, are visible in the output."""
        if any(is_infinite(abs(threshold)) for threshold in step.thresholds):
            return told_far(self.behind)
        anywhere = step.at == self.position and self.moved is None and self.reach.shape.one.free
        return anywhere and self.tells(step)


def _told(stages: Sequence[ParsedStage], low: Number, high: Number) -> bool:
    """Whether "above" or "not below" a threshold is visible after some stages, for each from low to high.

    They are followed stage by stage. At its lower limit a clamp shows only the first, at its upper one the second;
    for a single threshold one must remain visible, for all between two the ends do not matter.
    """
    told, one = {"above", "not below"}, low is high
    for stage in stages:
        if stage.name == "clamp":
            least, most = stage.numbers["low"], stage.numbers["high"]
            if not (least.b <= low.a and high.b <= most.a):
                return False
            told -= set() if least.b < low.a else {"not below"}
            told -= set() if high.b < most.a else {"above"}
            if one and not told:
                return False
        elif stage.name == "squash":
            low, high = (squash(stage.words["kind"], end) for end in (low, high))
        elif stage.name in ("round", "clip", "normalise", "binary"):
            odd = is_point(2 * low, whole_part(2 * low)) and whole_part(2 * low) % 2 == 1
            if not one or len(told) < 2 or not (odd if stage.name == "round" else is_point(low, 0)):
                return False
            if stage.name == "binary":
                low = high = ONE / 2
        elif stage.name not in _LOSSLESS:
            return False
    return True


def told_far(stages: Sequence[ParsedStage]) -> bool:
    """Whether values far out, or integers, remain distinct; squashed values do not, once rounded."""
    names = [stage.name for stage in stages]
    if "squash" in names and "round" in names[names.index("squash") :]:
        return False
    return _undone([stage for stage in stages if stage.name != "round"])


def _undone(stages: Sequence[ParsedStage]) -> bool:
    """Whether nothing is lost after some stages: a clamp loses nothing of what was squashed between its limits."""
    low, high = -INF, INF
    for stage in stages:
        if stage.name == "squash":
            low, high = (squash(stage.words["kind"], end) for end in (low, high))
        elif stage.name == "clamp":
            if not (stage.numbers["low"].b <= low.a and high.b <= stage.numbers["high"].a):
                return False
        elif stage.name not in _LOSSLESS:
            return False
    return True


def all_between(stages: Sequence[ParsedStage], pair: Pair) -> bool:
    """Whether all values between the two values of each coordinate remain distinct after some stages."""
    ends = [(smallest([block.x, block.y]), largest([block.x, block.y])) for block in pair if not same(block)]
    return all(_told(stages, low, high) for low, high in ends)


def lower(place: NoisePlace, step: Step) -> Loss:
    """The loss that some neighbors show, by the theorem named in a step."""
    theorem = step.theorem
    if not step.pair:
        if step.at != place.position or theorem not in ("unbounded", "exponential", "noisy-max"):
            raise CertificateError(f"the theorem {theorem!r} needs a pair, and none is given")
        if theorem == "noisy-max" and step.guarantee is not None and step.guarantee.kind == "metric":
            return _far_choice(place, step.guarantee.metric)
        return _unbounded(place, step) if theorem == "unbounded" else _far_scores(place, theorem)
    pair = place.pair(step)
    if theorem == "no-noise":
        if any(stage.name in NOISES for stage in place.stages):
            raise CertificateError("there is noise")
        return leak_loss(ONE if distance(pair, INFINITE).a > 0 else ZERO)
    if theorem == "two-noises":
        return _rare(place, step, pair)
    noise = joined_noise(place.added)
    if noise is None:
        raise CertificateError("for a sum of different noises, only rare outputs are known")
    if theorem == KNOWN[noise.name].theorem:
        return _whole_loss(noise, place, step, pair)
    if theorem == "post-processing" and noise.name in ("laplace", "gaussian"):
        return _thresholds(noise, place, step, pair)
    if theorem == "radial" and noise.name in ("radial", "mahalanobis"):
        return radial_loss(noise, place, pair)
    raise CertificateError(f"no theorem {theorem!r} says what a pair shows after {noise.name} here")


def _whole_loss(noise: ParsedStage, place: NoisePlace, step: Step, pair: Pair) -> Loss:
    """Nothing is lost; or, for Laplace noise, nothing between the two values, which is all that matters."""
    between = noise.name == "laplace" and place.placed(step) and all_between(place.behind, pair)
    if not place.keeps_all and not between:
        raise CertificateError(f"not all of what {noise.name} leaves of the pair is known to survive")
    if noise.name in ("exponential", "top-k", "noisymax", "bounded_laplace") and not place.placed(step):
        raise CertificateError("the values themselves are not known, only how far they move")
    return pair_loss(noise, pair, step.grid)


def _thresholds(noise: ParsedStage, place: NoisePlace, step: Step, pair: Pair) -> Loss:
    """On which side of a threshold each coordinate lies; far out all of ε at δ = 0 is step."""
    told = len(step.thresholds) == len(pair) and place.placed(step) and place.tells(step)
    if not told and not place.tells_far(step):
        raise CertificateError("the output does not reveal on which side of these thresholds the pair's values lie")
    groups = []
    for block, threshold in zip(pair, step.thresholds if told else (), strict=bool(told)):
        p, q = (chance_above(noise, value, threshold) for value in (block.x, block.y))
        groups.append((p, p if same(block) else q, block.count))
    sides = bits_loss(groups)
    return loss_at_zero(pair_loss(noise, pair, None).pure, sides) if place.tells_far(step) else sides


def radial_loss(noise: ParsedStage, place: NoisePlace, pair: Pair) -> Loss:
    """Far out along the pair the loss is the distance over the scale, if cells of bounded size are visible there."""
    if not told_far(place.behind):
        raise CertificateError("outputs far in the tails cannot be distinguished")
    if noise.name == "radial":
        return loss_at_zero(distance(pair, NORMS[noise.words["norm"]]) / noise.numbers["scale"])
    # Along the first axis the eigenvalue is the smallest; in any direction it is at most the largest.
    root = iv.sqrt(noise.numbers["least" if along_first_axis(pair) else "largest"])
    return loss_at_zero(distance(pair, 2.0) / (root * noise.numbers["scale"]))


def _unbounded(place: NoisePlace, step: Step) -> Loss:
    """Unbounded values are revealed, unless every coordinate that differs is lost."""
    noise, reach = place.noise, place.reach
    if not reach.exact or not is_infinite(diameter(reach.shape, INFINITE)):
        raise CertificateError("it is not known that values can be any distance apart")
    if noise.name in ("exponential", "noisymax") and reach.shape.one.dim > 1 and place.keeps_all:
        return leak_loss(ONE)
    far = any(is_infinite(abs(threshold)) for threshold in step.thresholds) and told_far(place.behind)
    if noise.name not in ADDITIVE or not (far or place.tells(step)):
        raise CertificateError(f"nothing is known here about {noise.name} on unbounded values")
    if any(may_drop_values(stage) for stage in place.added):
        # If a vector is scaled, one lost coordinate makes the others lost too.
        if len(place.added) > 1 or not far:
            raise CertificateError("values may be lost")
        return leak_loss(1 - noise.numbers["lost"] ** reach.shape.most_differing)
    return leak_loss(ONE)


def _rare(place: NoisePlace, step: Step, pair: Pair) -> Loss:
    """Laplace and Gaussian noises added right after one another: far out the widest Laplace noise decides."""
    known = all(noise.name in ("laplace", "gaussian") for noise in place.added)
    if not known or not place.tells_far(step):
        raise CertificateError("nothing about these noises is known to survive")
    return loss_at_zero(smallest(pair_loss(noise, pair, None).pure for noise in place.added))


def _far_scores(place: NoisePlace, theorem: str) -> Loss:
    """A query's scores can put one output far behind the others; there the rate times their spread is approached."""
    noise, shape = place.noise, place.reach.shape.one
    free = shape.free and place.moved is None and shape.dim > 1
    rates = {("exponential", "exponential"): "rate", ("noisymax", "noisy-max"): "scale"}
    own = rates.get((noise.name, theorem))
    if own is None or not place.reach.exact or not place.keeps_all or not free:
        raise CertificateError("it is not known that one score can lie far below another")
    rate = noise.numbers["rate"] if own == "rate" else 1 / noise.numbers["scale"]
    return loss_at_zero(rate * iv.mpf(score_spread(shape).a))


def _far_choice(place: NoisePlace, metric: str) -> Loss:
    """What noisy max of any scores loses per unit of distance: docs/proofs/noisy-max.md, point 5.

    If all scores but two are far below, the output that lies far behind gains or loses the other with a ratio that
    tends to exp(h/scale), where h is how much the gap of the two changes: by 1 in l1, √2 in l2, 2 in linf, per unit.
    """
    changes = {"l1": ONE, "l2": iv.sqrt(iv.mpf(2)), "linf": iv.mpf(2)}
    reach = place.reach
    if place.noise.name != "noisymax" or not (reach.exact and reach.shape.everything and reach.shape.dim > 1):
        raise CertificateError("it is not known that one score can lie far below another")
    if place.moved is not None or reach.far or not place.keeps_all or metric not in changes:
        raise CertificateError("it is not known that one score can lie far below another")
    return loss_at_zero(changes[metric] / place.noise.numbers["scale"])
