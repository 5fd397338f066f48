"""What each theorem needs besides the noise itself, tested here from the stages of the certificate alone.

A step is checked where its theorem is applied; this is a second look at the same premises, in one place and by theorem,
so that a theorem that is applied somewhere new brings its premises along. The pages of docs/proofs state them.
"""

from collections.abc import Callable, Mapping

from dpassay.errors import CertificateError
from dpassay.evidence.verifier.arithmetic.numbers import is_infinite
from dpassay.evidence.verifier.lowers import NoisePlace, all_between, told_far
from dpassay.evidence.verifier.reading import Step
from dpassay.evidence.verifier.regions.pairs import Pair, carried
from dpassay.evidence.verifier.regions.regions import INFINITE, WHOLE, diameter, is_whole
from dpassay.evidence.verifier.sampling.steps import SampledSteps
from dpassay.values import dataclass

_EVEN = ("", "laplace", "gaussian", "staircase", "discrete_laplace", "discrete_gaussian", "truncated_laplace")
_ANY_ORDER = (*_EVEN, "radial", "mahalanobis")


@dataclass(frozen=True)
class Use:
    """A theorem in its place: the noise, how records are drawn, whether they are summed, and the step."""

    place: NoisePlace
    steps: SampledSteps
    summed: bool
    step: Step

    @property
    def first_noise(self) -> bool:
        """Whether the values before this noise are what the stages made of the inputs, without noise."""
        return all(stage.name not in _RANDOM for stage in self.place.stages[: self.place.position])

    def shown(self) -> bool:
        return self.place.keeps_all

    def far_out(self) -> bool:
        return told_far(self.place.behind)

    def visible(self) -> bool:
        return self.place.tells(self.step) or self.far_out()

    def anywhere(self) -> bool:
        """Whether answers may be shifted to any place, where the thresholds are visible."""
        return self.place.tells_far(self.step)

    def between(self) -> bool:
        return self.drawn() or all_between(self.place.behind, self._pair())

    def placed(self) -> bool:
        return self.drawn() or self.place.placed(self.step)

    def drawn(self) -> bool:
        """Whether the sums of sampled data sets were worked out where the step was checked."""
        return self.steps.sampled

    def unbounded(self) -> bool:
        return is_infinite(diameter(self.place.reach.shape, INFINITE))

    def own_values(self) -> bool:
        return not (self.summed and self.first_noise)

    def integers(self) -> bool:
        first = self.place.position
        while first > 0 and self.place.stages[first - 1].name in _ADDED:
            first -= 1
        return is_whole(self.place.reaches[first].shape)

    def in_order(self) -> bool:
        """Whether the record can be added, or replaced, the other way round too, or all orders show the same."""
        shape = self.place.reach.shape.one
        every = self.place.reaches[self.place.position].exact  # not only a part of the ball or of the sphere
        opposite = every and (shape.kind == "answers" or shape.everything)
        either = not self.steps.sampled or self.steps.batch[1] > 1
        return self.place.noise.name in _ANY_ORDER or either or opposite

    def _pair(self) -> Pair:
        return carried(self.place.stages[self.step.at : self.place.position], self.step.pair)


_ADDED = ("laplace", "gaussian", "truncated_laplace", "staircase", "onesided", "mixture", *WHOLE)
_RANDOM = (*_ADDED, "radial", "mahalanobis", "vmf", "purkayastha", "bounded_laplace", "flip", "bits")
Test = Callable[[Use], bool]
_SENTENCES: Mapping[Test, str] = {
    Use.shown: "later stages preserve everything that the noisy value reveals",
    Use.far_out: "outputs far in the tails remain distinct",
    Use.visible: "the output reveals on which side of a threshold a noisy value lies",
    Use.anywhere: "answers can be shifted to where a threshold is visible",
    Use.between: "all outputs between the two values remain distinct",
    Use.placed: "the two values lie where those of neighbors can lie",
    Use.unbounded: "two neighbors' values can be any distance apart",
    Use.own_values: "the values before the noise are those of one input, not sums of records",
    Use.integers: "all values before the noise are integers",
    Use.in_order: "the sum with the record comes first, unless both orders are equal",
}
# For a pair to show what a theorem says, all tests of one of these groups must hold.
SHOWS: Mapping[str, tuple[tuple[Test, ...], ...]] = {
    "laplace": ((Use.shown,), (Use.between, Use.placed)),
    **dict.fromkeys(("gaussian", "sphere", "truncated-laplace", "randomized-response", "staircase"), ((Use.shown,),)),
    "one-sided": ((Use.shown, Use.in_order),),
    **dict.fromkeys(("discrete-laplace", "discrete-gaussian"), ((Use.shown,),)),
    "mixture": ((Use.shown, Use.in_order), (Use.far_out, Use.unbounded)),
    **dict.fromkeys(("exponential", "noisy-max", "top-k", "bounded-laplace"), ((Use.shown, Use.own_values),)),
    "radial": ((Use.far_out,),),
    "two-noises": ((Use.far_out,), (Use.anywhere,)),
    "unbounded": ((Use.visible, Use.unbounded), (Use.shown, Use.unbounded)),
    "post-processing": ((Use.visible, Use.placed), (Use.far_out,), (Use.anywhere,)),
    "poisson": ((Use.shown, Use.in_order), (Use.visible, Use.in_order)),
    "fixed-size": ((Use.shown, Use.in_order), (Use.visible, Use.in_order)),
    "shuffle": ((Use.shown,), (Use.visible, Use.placed), (Use.far_out,)),
}
BOUNDS: Mapping[str, tuple[Test, ...]] = {
    "post-processing": (Use.own_values,),
    **dict.fromkeys(("discrete-laplace", "discrete-gaussian"), (Use.integers,)),
    **dict.fromkeys(("exponential", "bounded-range", "noisy-max", "top-k", "bounded-laplace"), (Use.own_values,)),
}


def require_shown(use: Use) -> None:
    """Refuse a lower bound whose theorem lacks its premises."""
    ways = SHOWS.get(use.step.theorem, ())
    if ways and not any(all(test(use) for test in way) for way in ways):
        raise _missing(use, ways[0])


def require_bounded(use: Use) -> None:
    """Refuse an upper bound whose theorem lacks its premises."""
    tests = BOUNDS.get(use.step.theorem, ())
    if not all(test(use) for test in tests):
        raise _missing(use, tests)


def _missing(use: Use, tests: tuple[Test, ...]) -> CertificateError:
    needed = " and ".join(_SENTENCES[test] for test in tests)
    return CertificateError(f"the theorem {use.step.theorem!r} needs that {needed}")
