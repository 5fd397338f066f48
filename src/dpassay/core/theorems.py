"""The theorems that bounds rest on. Each has a page, docs/proofs/<name>.md, with statement, premises and proof."""

from collections.abc import Mapping
from enum import StrEnum


class Premise(StrEnum):
    """What a theorem needs besides the noise itself. The analysis tests it, and the verifier tests it on its own."""

    SHOWN = "later stages preserve everything that the noisy value reveals"
    VISIBLE = "the output reveals on which side of some threshold a noisy value lies"
    FAR_OUT = "outputs far in the tails remain distinct"
    BETWEEN = "all outputs between the two values remain distinct"
    UNBOUNDED = "two neighbors' values can be any distance apart"
    PLACED = "the two values lie where those of neighbors can lie"
    DATA_SETS = "the two values are sums of data sets that differ in one record"
    IN_ORDER = "the sum with the record comes first, unless both orders are equal"
    SMALL_RECORDS = "records can be small in every direction, as in a ball and not on a sphere"
    COMMON_OUTPUT = "one output has the largest ratio against the other record and against none"
    OWN_VALUES = "the values before the noise are those of one input, not sums of records"
    INTEGERS = "all values before the noise are integers"
    CERTAIN_SIDE = "it is certain on which side of a jump every number lies"
    ANY_TWO = "the bound holds between any two inputs, not only between neighbors"


class Theorem(StrEnum):
    """A proved statement; its value is the name of its page in docs/proofs.

    >>> Theorem.LAPLACE.page
    'docs/proofs/laplace.md'
    """

    LAPLACE = "laplace"
    GAUSSIAN = "gaussian"
    RADIAL = "radial"
    SPHERE = "sphere"
    DISCRETE_LAPLACE = "discrete-laplace"
    DISCRETE_GAUSSIAN = "discrete-gaussian"
    TRUNCATED_LAPLACE = "truncated-laplace"
    STAIRCASE = "staircase"
    BOUNDED_LAPLACE = "bounded-laplace"
    ONE_SIDED = "one-sided"
    MIXTURE = "mixture"
    RANDOMIZED_RESPONSE = "randomized-response"
    EXPONENTIAL = "exponential"
    TOP_K = "top-k"
    NOISY_MAX = "noisy-max"
    BOUNDED_RANGE = "bounded-range"
    VOCABULARY = "vocabulary"
    DIAMETERS = "diameters"
    WORST_SHIFT = "worst-shift"
    RENYI = "renyi"
    SADDLEPOINT = "saddlepoint"
    LEVELS = "levels"
    PURE_TO_APPROXIMATE = "pure-to-approximate"
    HOCKEY_STICK = "hockey-stick"
    COMPOSITION = "composition"
    OPTIMAL_COMPOSITION = "optimal-composition"
    PARALLEL = "parallel"
    DISCRETISATION = "discretisation"
    GROUP = "group"
    DROPOUT = "dropout"
    METRIC = "metric"
    GUARANTEES = "guarantees"
    RECORD_SUMS = "record-sums"
    POISSON = "poisson"
    FIXED_SIZE = "fixed-size"
    SHUFFLE = "shuffle"
    LATTICE_SUMS = "lattice-sums"
    USER_ENTITY = "user-entity"
    POST_PROCESSING = "post-processing"
    TWO_NOISES = "two-noises"
    UNBOUNDED = "unbounded"
    NO_NOISE = "no-noise"
    ROUNDING = "rounding"
    GRID = "grid"
    GUESSING_GAME = "guessing-game"
    CANDIDATES = "candidates"
    ANYTIME = "anytime"
    BETTING = "betting"
    ONE_RUN = "one-run"

    @property
    def page(self) -> str:
        """The page with the proof."""
        return f"docs/proofs/{self.value}.md"

    @property
    def shows(self) -> tuple[frozenset[Premise], ...]:
        """For a pair's loss to be a lower bound, all premises of one of these sets must hold; none are needed if empty.

        >>> [sorted(premise.name for premise in premises) for premises in Theorem.LAPLACE.shows]
        [['SHOWN'], ['BETWEEN', 'PLACED']]
        """
        return _SHOWS.get(self, ())

    @property
    def bounds(self) -> frozenset[Premise]:
        """What an upper bound by the theorem needs."""
        return _BOUNDS.get(self, frozenset())

    @property
    def premises(self) -> frozenset[Premise]:
        """All premises that its page states."""
        return frozenset().union(*self.shows, self.bounds)


_SHOWN = (frozenset({Premise.SHOWN}),)
_SAMPLED = frozenset({Premise.DATA_SETS, Premise.IN_ORDER})
_SHOWS: Mapping[Theorem, tuple[frozenset[Premise], ...]] = {
    Theorem.LAPLACE: (*_SHOWN, frozenset({Premise.BETWEEN, Premise.PLACED})),
    **dict.fromkeys(
        (
            Theorem.GAUSSIAN,
            Theorem.ONE_SIDED,
            Theorem.SPHERE,
            Theorem.TRUNCATED_LAPLACE,
            Theorem.RANDOMIZED_RESPONSE,
            Theorem.DISCRETE_LAPLACE,
            Theorem.DISCRETE_GAUSSIAN,
        ),
        _SHOWN,
    ),
    Theorem.STAIRCASE: (frozenset({Premise.SHOWN, Premise.CERTAIN_SIDE}),),
    **dict.fromkeys(
        (Theorem.EXPONENTIAL, Theorem.NOISY_MAX, Theorem.TOP_K, Theorem.BOUNDED_LAPLACE),
        (frozenset({Premise.SHOWN, Premise.OWN_VALUES}),),
    ),
    Theorem.MIXTURE: (*_SHOWN, frozenset({Premise.FAR_OUT, Premise.UNBOUNDED})),
    Theorem.RADIAL: (frozenset({Premise.FAR_OUT}),),
    Theorem.TWO_NOISES: (frozenset({Premise.FAR_OUT}),),
    Theorem.UNBOUNDED: (frozenset({Premise.VISIBLE, Premise.UNBOUNDED}),),
    Theorem.POST_PROCESSING: (frozenset({Premise.VISIBLE, Premise.PLACED}), frozenset({Premise.FAR_OUT})),
    Theorem.POISSON: (
        _SAMPLED,
        frozenset({Premise.DATA_SETS, Premise.COMMON_OUTPUT}),
        frozenset({Premise.DATA_SETS, Premise.SMALL_RECORDS}),
    ),
    Theorem.FIXED_SIZE: (_SAMPLED,),
    Theorem.SHUFFLE: (frozenset({Premise.SHOWN, Premise.DATA_SETS}),),
}
_BOUNDS: Mapping[Theorem, frozenset[Premise]] = {
    Theorem.POST_PROCESSING: frozenset({Premise.OWN_VALUES}),
    Theorem.DISCRETE_LAPLACE: frozenset({Premise.INTEGERS}),
    Theorem.DISCRETE_GAUSSIAN: frozenset({Premise.INTEGERS}),
    Theorem.STAIRCASE: frozenset({Premise.CERTAIN_SIDE}),
    Theorem.DROPOUT: frozenset({Premise.ANY_TWO}),
    **dict.fromkeys(
        (Theorem.EXPONENTIAL, Theorem.NOISY_MAX, Theorem.TOP_K, Theorem.BOUNDED_LAPLACE),
        frozenset({Premise.OWN_VALUES}),
    ),
}
