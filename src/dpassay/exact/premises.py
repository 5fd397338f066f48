"""Whether the premises of the theorems behind a profile hold, checked again from the stages alone.

Bounds are made where their premises are known; here each bound of the result is checked against the list of premises
of its theorem in `core/theorems.py`. A bound without its premises is a bug in dpassay, never an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dpassay.core.neighbours import Neighbours
from dpassay.core.numbers import INFINITY, Number, ceiling, real
from dpassay.core.theorems import Premise, Theorem
from dpassay.errors import DpassayError
from dpassay.exact.dataflow.data_sets import DataSets
from dpassay.exact.dataflow.record_sums import sums_records
from dpassay.exact.dataflow.sampled_pairs import AbsentBound, ReplacedBound, same_side
from dpassay.exact.dataflow.sampling import BasicBound, Steps
from dpassay.exact.profiles.bounds import DropoutBound, ProfileBound
from dpassay.exact.profiles.profile import Candidate, PrivacyProfile
from dpassay.pipeline.discrete_noise import DiscreteNoise
from dpassay.pipeline.pair import Pair
from dpassay.pipeline.pipeline import Pipeline
from dpassay.pipeline.regions import Sphere
from dpassay.pipeline.regions.images import squashed
from dpassay.pipeline.stages.base import OutputRegion, Stage
from dpassay.pipeline.stages.bounds.squash import Squash
from dpassay.pipeline.stages.sampling import Poisson, Sampling, Subsample
from dpassay.pipeline.staircase import Staircase
from dpassay.values import dataclass

_LOSSLESS = ("encode", "decode", "repeat", "times")


@dataclass(frozen=True)
class Setting:
    """A pipeline with its neighbors: what is true around its noise."""

    pipeline: Pipeline
    neighbours: Neighbours

    @property
    def noises(self) -> list[int]:
        """The random stages' positions; one after all stages if there is none."""
        return self.pipeline.noise_positions or [len(self.pipeline.stages)]

    @property
    def behind(self) -> tuple[Stage, ...]:
        """The stages after the last noise."""
        return self.pipeline.stages[self.noises[-1] + 1 :]

    @property
    def sampling(self) -> Sampling | None:
        """How records are drawn, unless each always takes part alone."""
        return Steps.of(self.pipeline).sampling

    @property
    def drawn(self) -> bool:
        """Whether it is drawn in each step which records take part."""
        return self.sampling is not None and self.sampling.amplifies

    @property
    def before(self) -> OutputRegion:
        """What is before the first noise."""
        return self.pipeline.output_regions()[self.noises[0]]

    @property
    def swamped(self) -> bool:
        """Whether a noise comes after another one with stages between them."""
        return self.noises != list(range(self.noises[0], self.noises[-1] + 1))

    def shown(self) -> bool:
        """Whether all stages after the noise can be undone; rounding leaves integers unchanged."""
        noise = self.pipeline.stages[self.noises[-1]] if self.pipeline.noise_positions else None
        whole = noise is not None and not noise.adds_to_vectors and noise.name != "bounded_laplace"
        low, high = -INFINITY, INFINITY
        for stage in self.behind:
            if isinstance(stage, Squash):
                low, high = (squashed(stage.kind, end) for end in (low, high))
                whole = False
            elif stage.limits is not None:
                least, most = stage.limits
                if not (least.b <= low.a and high.b <= most.a):
                    return False
            elif stage.name not in _LOSSLESS and not (whole and stage.name == "round"):
                return False
        return True

    def far_out(self) -> bool:
        """Whether no stage after the noise limits what is visible; squashed values are limited once rounded."""
        names = [stage.name for stage in self.behind]
        limited = "squash" in names and "round" in names[names.index("squash") :]
        return all(name in (*_LOSSLESS, "squash", "round") for name in names) and not limited

    def visible(self) -> bool:
        """Whether some threshold of the noisy value is visible: the last stages say so, one by one."""
        return all(stage.keeps != "nothing" for stage in self.behind)

    def between(self, pair: Pair) -> bool:
        """Whether clamps after the noise leave everything between two values."""
        ends = [(b.x, b.y) for b in pair.blocks if not b.same]
        for stage in self.behind:
            if stage.limits is not None:
                least, most = stage.limits
                if not all(_at_most(least, v) and _at_most(v, most) for both in ends for v in both):
                    return False
            elif isinstance(stage, Squash):
                ends = [(squashed(stage.kind, x), squashed(stage.kind, y)) for x, y in ends]
            elif stage.name not in _LOSSLESS:
                return False
        return True

    def placed(self, candidate: Candidate) -> bool:
        """Whether the values lie where neighbors' values do: sums of one-dimensional unit vectors are integers."""
        if self.drawn:
            return candidate.data_sets is not None and self.reached(candidate.data_sets)
        added = sums_records(self.pipeline, self.neighbours) and self.neighbours.relation == "add-remove-record"
        inner = self.before.region.one_copy
        return not (added and inner.dim == 1 and (isinstance(inner, Sphere) or self.before.far))

    def reached(self, sets: DataSets) -> bool:
        """Whether the sums are those of the records, drawn as the first stage says."""
        blocks = list(zip(sets.records.blocks, sets.sums.blocks, strict=True))
        if isinstance(self.sampling, Subsample):
            m = self.sampling.size
            return all(
                _alike(s.x, r.x + (m - 1) * r.y) and (r.same or _alike(s.y, m * r.y)) for r, s in blocks
            ) and self._contains(sets)
        shifts = [s.y for _, s in blocks]
        moved = any(not (shift == 0) for shift in shifts)
        if moved and not self.small_records():
            return False
        replaced = self.neighbours.relation == "replace-record"
        return all(_alike(s.x - s.y, r.x if replaced else r.x - r.y) for r, s in blocks) and self._contains(sets)

    def small_records(self) -> bool:
        """Whether records near 0 exist in all directions."""
        outputs = self.before
        return outputs.exact and not outputs.far and outputs.region.one_copy.around_zero

    def _contains(self, sets: DataSets) -> bool:
        """Whether the records' vectors lie in the region, in doubles; no record means no vector."""
        region = self.before.region
        if sets.records.blocks and sum(b.count for b in sets.records.blocks) > 10_000:
            return True
        sphere = isinstance(region.one_copy, Sphere)
        vectors = [v for v in (sets.records.first, sets.records.second) if v.any()]
        return sphere or all(region.contains(vector, 1e-6) for vector in vectors)

    def in_order(self, profile: PrivacyProfile) -> bool:
        """Whether both orders of the two values are possible with the record in the first data set, or show the same.

        A record replaced can be either one. Added to others it can be a vector or its opposite, where all of a ball or
        of a sphere is reached and not only a part of it.
        """
        if profile.noise is None or profile.noise.even or not isinstance(self.sampling, Poisson):
            return True
        inner = self.before.region.one_copy
        return self.before.exact and (inner.around_zero or isinstance(inner, Sphere))

    def holds(self, premise: Premise, candidate: Candidate, profile: PrivacyProfile) -> bool:
        """Whether a premise of a lower bound holds."""
        sums = candidate.pair if candidate.data_sets is None else candidate.data_sets.sums
        facts: Mapping[Premise, Callable[[], bool]] = {
            Premise.SHOWN: self.shown,
            Premise.FAR_OUT: self.far_out,
            Premise.VISIBLE: self.visible,
            Premise.BETWEEN: lambda: self.between(sums),
            Premise.UNBOUNDED: self.unbounded,
            Premise.PLACED: lambda: self.placed(candidate),
            Premise.DATA_SETS: lambda: candidate.data_sets is not None,
            Premise.IN_ORDER: lambda: self.in_order(profile),
            Premise.SMALL_RECORDS: self.small_records,
            Premise.COMMON_OUTPUT: lambda: same_side(candidate.pair),
            Premise.OWN_VALUES: self.own_values,
            Premise.CERTAIN_SIDE: lambda: self.certain_side(candidate, profile),
        }
        return facts[premise]()

    def certain_side(self, candidate: Candidate, profile: PrivacyProfile) -> bool:
        """Whether the loss of a pair has no more steps of staircase noise than its smallest possible distances."""
        noise = profile.noise
        if not isinstance(noise, Staircase):
            return len(self.noises) > 1  # then the profile does not say which noise the pair belongs to
        gaps = [(abs(b.gap) / noise.sensitivity, b.count) for b in candidate.pair.blocks if not b.same]
        steps = sum(ceiling(gap.a) * count for gap, count in gaps) * Steps.of(self.pipeline).count
        return bool(_inner(candidate.bound).pure.a <= (noise.epsilon * steps).b)

    def own_values(self) -> bool:
        """Whether no records are summed before the noise; after the first noise there is one value."""
        return not sums_records(self.pipeline, self.neighbours) or len(self.noises) > 1

    def unbounded(self) -> bool:
        """Whether nothing bounds the values before a noise."""
        outputs = self.pipeline.output_regions()
        return any(outputs[i].region.diameter(float("inf")) == INFINITY for i in self.noises)

    def integers(self) -> bool:
        """Whether all values before a discrete noise, or before noises that it is added to, are integers."""
        outputs, stages = self.pipeline.output_regions(), self.pipeline.stages
        for i in self.pipeline.noise_positions:
            first = i
            while first > 0 and stages[first - 1].added_noise is not None:
                first -= 1
            if _discrete(stages[i]) and outputs[first].whole:
                return True
        return False


def _discrete(stage: Stage) -> bool:
    return isinstance(stage.added_noise, DiscreteNoise)


def _at_most(first: Number, second: Number) -> bool:
    """Whether the first is no larger than the second, up to rounding."""
    return bool((first - second).a <= real("1e-40") * (1 + abs(first).b))


def _alike(first: Number, second: Number) -> bool:
    """Whether two enclosures may be the same number."""
    return bool((first - second).a <= 0 <= (first - second).b) or abs(first - second).b < real("1e-40")


def require_premises(pipeline: Pipeline, neighbours: Neighbours, profile: PrivacyProfile) -> PrivacyProfile:
    """Return the profile if the premises of every theorem that it uses hold."""
    setting = Setting(pipeline, neighbours)
    if profile.mu.b > 0 and (neighbours.relation != "word" or pipeline.stages[0].neighbours):
        raise _without(Theorem.DROPOUT, "a bound", Theorem.DROPOUT.bounds)
    for candidate in profile.candidates:
        theorem = _inner(candidate.bound).theorem
        ways = theorem.shows
        if ways and not any(all(setting.holds(p, candidate, profile) for p in way) for way in ways):
            raise _without(theorem, "what a pair shows", min(ways, key=len))
        sampled = setting.drawn and not setting.swamped
        if sampled and theorem not in (Theorem.UNBOUNDED, Theorem.NO_NOISE) and candidate.data_sets is None:
            raise _without(theorem, "what sampled records show", frozenset({Premise.DATA_SETS}))
        if sampled and theorem not in (Theorem.UNBOUNDED, Theorem.NO_NOISE) and not setting.in_order(profile):
            raise _without(theorem, "what sampled records show", frozenset({Premise.IN_ORDER}))
    for bound in profile.uppers:
        theorem = _inner(bound).theorem
        finite = bound.pure.b < INFINITY or theorem == Theorem.DISCRETE_GAUSSIAN
        if Premise.OWN_VALUES in theorem.bounds and not setting.own_values():
            raise _without(theorem, "an upper bound", theorem.bounds)
        alone = len(setting.noises) == 1  # else the profile does not say which noise the bound belongs to
        if theorem == Theorem.STAIRCASE and alone and not _takes_the_larger_side(bound, profile):
            raise _without(theorem, "an upper bound", theorem.bounds)
        nothing = bound.pure.a == INFINITY and theorem == Theorem.DISCRETE_GAUSSIAN
        if Premise.INTEGERS in theorem.bounds and finite and not nothing and not setting.integers():
            raise _without(theorem, "an upper bound", theorem.bounds)
    return profile


def _takes_the_larger_side(bound: ProfileBound, profile: PrivacyProfile) -> bool:
    """Whether an upper bound has all steps of staircase noise that the largest possible distance needs."""
    noise, region = profile.noise, profile.region
    if not isinstance(noise, Staircase) or region is None:
        return False
    farthest = region.diameter(float("inf")) / noise.sensitivity
    return bool(_inner(bound).pure.b >= (noise.epsilon * ceiling(farthest)).a)


def _inner(bound: ProfileBound) -> ProfileBound:
    """A bound of one step, without sampling or dropout."""
    while isinstance(bound, DropoutBound | ReplacedBound | BasicBound | AbsentBound):
        bound = bound.alone if isinstance(bound, ReplacedBound) else bound.bound
    return bound


def _without(theorem: Theorem, what: str, premises: frozenset[Premise]) -> DpassayError:
    needed = "; ".join(sorted(premises))
    used = f"the theorem {theorem.value} was used for {what} without its premises ({needed})"
    return DpassayError(f"{used}: please report this bug in dpassay")
