"""The theorems that bounds rest on. Each has a page, docs/proofs/<name>.md, with statement and proof."""

from enum import StrEnum


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
