"""Lower bounds: the loss of two values that neighbours can have, as far as it survives what comes after the noise."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from dpassay.errors import CertificateError
from dpassay.evidence.verifier.discrete import category_loss, choice_loss, noised_bits, score_spread
from dpassay.evidence.verifier.losses import Gaussian, Grid, Leak, Loss, Pure, bits_loss, chance_above, laplace_loss
from dpassay.evidence.verifier.mixtures import mixture_loss
from dpassay.evidence.verifier.numbers import ONE, ZERO, Number, is_infinite, iv, largest, smallest, whole_part
from dpassay.evidence.verifier.pairs import Pair, carried, differing, distance, lies_in
from dpassay.evidence.verifier.regions import (
    ADDITIVE,
    INFINITE,
    NOISES,
    NORMS,
    Reach,
    Shape,
    Stage,
    diameter,
    loses,
    most_differing,
    squash,
)

_LOSSLESS = ("encode", "decode", "repeat", "times")  # functions of which the worst lose nothing
NO_NOISE = Stage("", {}, {}, {})


@dataclass(frozen=True)
class AtZero:
    """A bound on ε at δ = 0: the events that show it are rare; at δ > 0 only what another loss shows is known."""

    pure: Number
    other: Loss | None = None

    def delta(self, epsilon: Number, upper: bool) -> Number:
        return ZERO if self.other is None else self.other.delta(epsilon, upper)


@dataclass(frozen=True)
class Shown:
    """A pair, where it comes in, and what is looked at: a grid of losses, or thresholds of its coordinates."""

    start: int
    pair: Pair
    grid: Grid | None = None
    thresholds: tuple[Number, ...] = ()


@dataclass(frozen=True)
class Place:
    """A noise in its pipeline: all stages, what neighbours can bring to each, and where the noise stands."""

    stages: Sequence[Stage]
    reaches: Sequence[Reach]  # of one record, where records are summed
    position: int
    moved: Reach | None = None  # what a record that is added or removed brings to the noise

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
    def behind(self) -> Sequence[Stage]:
        """The stages after the noise, and after noises added right after it."""
        return self.stages[self.position + len(self.added) :]

    @property
    def keeps_all(self) -> bool:
        """Whether nothing is lost behind the noise; of names and bits, which are whole, rounding loses nothing."""
        if self.noise.name not in ADDITIVE:
            return _told_far(self.behind)
        return all(stage.name in (*_LOSSLESS, "squash") for stage in self.behind)

    def region(self, start: int) -> Reach:
        """What neighbours can bring to a place."""
        if not 0 <= start <= self.position:
            raise CertificateError(f"the pair cannot come in at stage {start}, which is not before the noise")
        return self.reach if start == self.position else self.reaches[start]

    def pair(self, shown: Shown) -> Pair:
        """A pair of the region at an earlier place, carried here; any two values there can come from neighbours.

        Of records that are added or removed it is the first one's vector, against none.
        """
        reach = self.region(shown.start)
        if not reach.exact:
            raise CertificateError(f"it is not known which pairs can come in at stage {shown.start}")
        if reach.far and self.noise.name not in ("", *ADDITIVE):
            raise CertificateError("values that are reached only in the limit tell nothing of this noise")
        why = lies_in(shown.pair, reach.shape)
        if why:
            raise CertificateError(f"the pair is not one of the region {reach.shape.kind}: {why}")
        pair = carried(self.stages[shown.start : self.position], shown.pair)
        if self.moved is None or (shown.start == self.position and _inner(reach.shape).kind not in ("box", "bits")):
            return pair
        side = "y" if abs(pair[0].x).b >= abs(pair[0].y).b else "x"  # the empty sum
        return tuple(replace(block, **{side: ZERO}) for block in pair)

    def placed(self, shown: Shown) -> bool:
        """Whether the pair's values are those that neighbours have, not only their difference."""
        shape = _inner(self.region(shown.start).shape)
        return shape.kind != "apart" or shape.free or bool(shape.parts)

    def anywhere(self, shown: Shown) -> bool:
        """Whether the two values may be shifted together to any place."""
        shape = _inner(self.region(shown.start).shape)
        return shown.start == self.position and self.moved is None and shape.kind == "apart" and shape.free

    def tells(self, threshold: Number) -> bool:
        """Whether the output tells on which side of a threshold a noisy coordinate lay."""
        return _told(self.behind, threshold)

    def tells_far(self, shown: Shown) -> bool:
        """Whether the output tells thresholds arbitrarily far out, seen from the pair."""
        if any(is_infinite(abs(threshold)) for threshold in shown.thresholds):
            return _told_far(self.behind)
        known = bool(shown.thresholds) and all(self.tells(threshold) for threshold in shown.thresholds)
        return known and self.anywhere(shown)


def _inner(shape: Shape) -> Shape:
    return shape.parts[0] if shape.kind == "repeated" else shape


def _told(stages: Sequence[Stage], threshold: Number) -> bool:
    """Whether "above the threshold" or "not below it" before some stages can be told behind them.

    It is followed through stage by stage. At its lower limit a clamp tells only the first, at its upper one the second.
    """
    told = {"above", "not below"}
    for stage in stages:
        if stage.name == "clamp":
            low, high = stage.numbers["low"], stage.numbers["high"]
            if not (low.b <= threshold.a and threshold.b <= high.a):
                return False
            if not low.b < threshold.a:
                told &= {"above"}
            if not threshold.b < high.a:
                told &= {"not below"}
            if not told:
                return False
        elif stage.name == "squash":
            threshold = squash(stage.words["kind"], threshold)
        elif stage.name == "round":
            twice = 2 * threshold
            odd = twice.a == twice.b == whole_part(twice) and whole_part(twice) % 2 == 1
            if not odd or len(told) < 2:
                return False
        elif stage.name in ("clip", "normalise", "binary"):
            if not (threshold.a == 0 and threshold.b == 0) or len(told) < 2:
                return False
            threshold = ONE / 2 if stage.name == "binary" else ZERO
        elif stage.name not in _LOSSLESS:
            return False
    return True


def _told_far(stages: Sequence[Stage]) -> bool:
    """Whether values that lie far out, or are whole numbers, are told apart; what was squashed is not, once rounded."""
    names = [stage.name for stage in stages]
    if "squash" in names and "round" in names[names.index("squash") :]:
        return False
    return all(name in (*_LOSSLESS, "squash", "round") for name in names)


def _all_between(stages: Sequence[Stage], pair: Pair) -> bool:
    """Whether all that lies between the two values of each coordinate can be told apart behind some stages."""
    for block in pair:
        low, high = smallest([block.x, block.y]), largest([block.x, block.y])
        if block.x.a == block.y.a and block.x.b == block.y.b:
            continue
        for stage in stages:
            if stage.name == "squash":
                low, high = (squash(stage.words["kind"], end) for end in (low, high))
            elif stage.name == "clamp":
                if not (stage.numbers["low"].b <= low.a and high.b <= stage.numbers["high"].a):
                    return False
            elif stage.name not in _LOSSLESS:
                return False
    return True


def lower(theorem: str, place: Place, shown: Shown) -> Loss:
    """The loss that some neighbours show, by the theorem of this name."""
    if not shown.pair:
        if shown.start != place.position or theorem not in ("unbounded", "exponential"):
            raise CertificateError(f"the theorem {theorem!r} speaks of a pair, and none is given")
        return _unbounded(place, shown) if theorem == "unbounded" else _far_scores(place)
    pair = place.pair(shown)
    if theorem == "no-noise":
        if any(stage.name in NOISES for stage in place.stages):
            raise CertificateError("there is noise")
        return Leak(ONE if distance(pair, INFINITE).a > 0 else ZERO)
    if theorem == "two-noises":
        return _rare(place, shown, pair)
    noise = joined_noise(place.added)
    if noise is None:
        raise CertificateError("of a sum of different noises only rare outputs are known")
    known = _LOSSES.get(theorem)
    if known is not None and noise.name in known[0]:
        return known[1](noise, place, shown, pair)
    raise CertificateError(f"no theorem {theorem!r} says what a pair shows behind {noise.name} here")


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


def _whole_loss(noise: Stage, place: Place, shown: Shown, pair: Pair) -> Loss:
    """Nothing is lost; or of Laplace noise nothing that lies between the two values, which is all that counts."""
    between = noise.name == "laplace" and place.placed(shown) and _all_between(place.behind, pair)
    if not place.keeps_all and not between:
        raise CertificateError(f"not all of what {noise.name} leaves of the pair is known to survive")
    if noise.name == "exponential" and not place.placed(shown):
        raise CertificateError("the scores themselves are not known, only how far they move")
    return pair_loss(noise, pair, shown.grid)


def _thresholds(noise: Stage, place: Place, shown: Shown, pair: Pair) -> Loss:
    """On which side of a threshold each coordinate lies; far out all of ε at δ = 0 is shown."""
    known = len(shown.thresholds) == len(pair) and place.placed(shown)
    told = known and all(place.tells(threshold) for threshold in shown.thresholds)
    if not told and not place.tells_far(shown):
        raise CertificateError("the output does not tell on which side of these thresholds the pair's values lie")
    groups = []
    for block, threshold in zip(pair, shown.thresholds if told else (), strict=bool(told)):
        p, q = (chance_above(noise, value, threshold) for value in (block.x, block.y))
        same = block.x.a == block.y.a and block.x.b == block.y.b
        groups.append((p, p if same else q, block.count))
    sides = bits_loss(groups)
    return AtZero(pair_loss(noise, pair, None).pure, sides) if place.tells_far(shown) else sides


def _radial(noise: Stage, place: Place, shown: Shown, pair: Pair) -> Loss:
    """Far out along the pair the distance over the scale is shown, where cells of bounded size can be told there."""
    if not _told_far(place.behind):
        raise CertificateError("outputs far out cannot be told apart")
    return AtZero(distance(pair, NORMS[noise.words["norm"]]) / noise.numbers["scale"])


_LOSSES: dict[str, tuple[tuple[str, ...], Callable[[Stage, Place, Shown, Pair], Loss]]] = {
    "laplace": (("laplace",), _whole_loss),
    "gaussian": (("gaussian",), _whole_loss),
    "one-sided": (("onesided",), _whole_loss),
    "mixture": (("mixture",), _whole_loss),
    "randomized-response": (("bits", "flip"), _whole_loss),
    "exponential": (("exponential",), _whole_loss),
    "post-processing": (("laplace", "gaussian"), _thresholds),
    "radial": (("radial",), _radial),
}


def _unbounded(place: Place, shown: Shown) -> Loss:
    """Values that nothing bounds are given away, unless every coordinate that differs is lost."""
    noise, reach = place.noise, place.reach
    if not reach.exact or not is_infinite(diameter(reach.shape, INFINITE)):
        raise CertificateError("it is not known that values can be any distance apart")
    if noise.name == "exponential" and _inner(reach.shape).dim > 1 and place.keeps_all:
        return Leak(ONE)
    far = any(is_infinite(abs(threshold)) for threshold in shown.thresholds) and _told_far(place.behind)
    told = far or (bool(shown.thresholds) and all(place.tells(threshold) for threshold in shown.thresholds))
    if noise.name not in ADDITIVE or not told:
        raise CertificateError(f"of {noise.name} on values without a bound nothing is known here")
    if any(loses(stage) for stage in place.added):
        # Where a vector is scaled, one lost coordinate takes the others with it.
        if len(place.added) > 1 or not far:
            raise CertificateError("values may be lost")
        return Leak(1 - noise.numbers["lost"] ** most_differing(reach.shape))
    return Leak(ONE)


def _rare(place: Place, shown: Shown, pair: Pair) -> Loss:
    """Laplace and Gaussian noises added right after one another: far out the widest Laplace noise decides."""
    known = all(noise.name in ("laplace", "gaussian") for noise in place.added)
    if not known or not place.tells_far(shown):
        raise CertificateError("of these noises nothing is known that survives")
    return AtZero(smallest(pair_loss(noise, pair, None).pure for noise in place.added))


def _far_scores(place: Place) -> Loss:
    """A query's scores can put one output far behind the others; there the rate times their spread is approached."""
    noise, shape = place.noise, _inner(place.reach.shape)
    free = shape.kind == "apart" and shape.free and place.moved is None
    if noise.name != "exponential" or not place.reach.exact or not place.keeps_all or not free or shape.dim == 1:
        raise CertificateError("scores are not known to lie far behind one another")
    return AtZero(noise.numbers["rate"] * iv.mpf(score_spread(shape).a))
