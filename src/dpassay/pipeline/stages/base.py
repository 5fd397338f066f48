"""What a stage is: a class that owns its text form, its data form, its region and how it runs.

A class with a `syntax` is known to the parser, the help and the certificates as soon as it is defined.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar

import numpy as np

from dpassay.core.neighbours import Relation
from dpassay.core.numbers import INFINITY, ZERO, Number
from dpassay.pipeline.distributions import Distribution, Noise
from dpassay.pipeline.regions import Array, Bits, Finite, OneHot, Region, Rounded, Sparse
from dpassay.pipeline.syntax import Syntax, Written
from dpassay.pipeline.thresholds import SIGNS, Thresholds
from dpassay.values import dataclass

Build = TypeVar("Build", bound="Callable[..., Stage]")
# What survives of an output when a stage is applied to it: everything, events far out in every
# coordinate, the order of values between two limits, the sign of each coordinate, or nothing that is known.
Keeps = Literal["all", "tails", "order", "signs", "nothing"]


@dataclass(frozen=True, slots=True)
class OutputRegion:
    """The values a stage can output, and whether any two of them can come from two neighbors.

    If `exact` is false, the region is only an outer bound: it can be used only for upper bounds. If `far` is true, the
    values are reached only in the limit of inputs that are ever farther away. If `rounded` is true, every coordinate is
    an integer, whatever else the region contains.
    """

    region: Region
    exact: bool = True
    far: bool = False
    rounded: bool = False

    @property
    def whole(self) -> bool:
        """Whether every coordinate is known to be an integer.

        >>> from dpassay.pipeline.regions import Box
        >>> OutputRegion(OneHot(3)).whole, OutputRegion(Box.cube(0, 1, 3)).whole
        (True, False)
        """
        inner = self.region.one_copy
        if isinstance(inner, Finite):
            return bool(np.all(np.array(inner.points) == np.rint(inner.points)))
        return self.rounded or isinstance(inner, Bits | OneHot | Sparse | Rounded)


class Stage(Written, ABC):
    """One part of a pipeline."""

    keeps: ClassVar[Keeps] = "nothing"
    takes_one_value: ClassVar[bool] = False  # the name of a category, or a value to hash; not a vector
    random: ClassVar[bool] = False
    jumps: ClassVar[bool] = False  # maps values next to each other far apart
    contracts: ClassVar[bool] = False  # shortens vectors, or brings coordinates closer together
    adds_to_vectors: ClassVar[bool] = False  # random, adding noise that is not bounded to a vector
    chooses: ClassVar[bool] = False  # random, naming a coordinate by its score
    one_per_person: ClassVar[bool] = False  # a first stage after which neighbors differ in one coordinate
    on_words: ClassVar[bool] = False  # works on texts, so it must come before all stages that give vectors
    takes_unit_vectors: ClassVar[bool] = False  # at the start of a pipeline, inputs must have length 1
    opaque: ClassVar[bool] = False  # any function; its `dim`, which is not in the text, is the pipeline's
    depends_on_dimension: ClassVar[bool] = False  # what it does to vectors of one coordinate implies nothing for others
    outweighs_noise: ClassVar[bool] = False  # after noise, inputs that are far enough away still reach its region
    followed_by: ClassVar[tuple[str, ...]] = ()  # one of these must come right after it
    comes_last: ClassVar[bool] = False  # nothing may come after it
    neighbours: ClassVar[tuple[Relation, ...]] = ()  # defines how these differ, and allows no others; so it comes first

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "syntax" in vars(cls):
            text_form(cls.syntax)(cls)

    @property
    def name(self) -> str:
        """Its name in a text."""
        return self.syntax.name

    @property
    def dropped(self) -> Number:
        """The probability that a word is dropped."""
        return ZERO

    @property
    def added_noise(self) -> Noise | None:
        """The noise that it adds to each coordinate, independently."""
        return None

    @abstractmethod
    def output_region(self, before: OutputRegion) -> OutputRegion:
        """The possible outputs, given the possible inputs."""

    @abstractmethod
    def run(self, batch: Any, rng: np.random.Generator) -> Any:
        """Transform a batch, one value per row."""

    def thresholds_before(self, after: Thresholds) -> Thresholds | None:
        """Thresholds of a coordinate before the stage that are visible, given which are visible after it."""
        if self.keeps == "signs":
            return SIGNS if after.tells_signs else None
        return after if self.keeps == "all" else None

    @property
    def limits(self) -> tuple[Number, Number] | None:
        """The limits between which it leaves coordinates unchanged, and to which it moves all others."""
        return None

    @property
    def slope(self) -> Number:
        """How many times as far apart as before two coordinates can be; infinity if that is not known."""
        return INFINITY

    def image(self, value: Number) -> Number | None:
        """What it makes of each coordinate's number, whatever the others are; None if that depends on the others."""
        return None

    def for_region(self, region: Region) -> Stage:
        """The same stage, or the one that does the same on values of this region."""
        return self


class NoiseStage(Stage):
    """A random stage that knows the distribution of its output."""

    random = True

    @abstractmethod
    def distribution(self, value: Array) -> Distribution:
        """The distribution of the output for one value."""


class StageForm(NamedTuple):
    """A text form, and the function that makes the stage from its arguments."""

    syntax: Syntax
    build: Callable[..., Stage]

    @property
    def help(self) -> str:
        """What the stage does: the first line of its documentation."""
        first = (self.build.__doc__ or "").partition("\n")[0]
        return first[:1].lower() + first[1:].removesuffix(".")


# The groups of stages in the help: each has the stages whose `order` is below its number.
GROUPS = (
    (80, "encode and bound a vector"),
    (130, "categories, hashes and bits"),
    (142, "queries and rows of a data set"),
    (160, "which records or words take part"),
    (195, "added noise"),
    (200, "random directions"),
    (230, "randomized response and choice"),
    (10_000, "afterwards"),
)
STAGES: dict[str, StageForm] = {}  # every stage that a text can name, in the order in which the help lists them


def text_form(syntax: Syntax) -> Callable[[Build], Build]:
    """Register a text form of a stage, with the function that builds it."""

    def known(build: Build) -> Build:
        STAGES[syntax.name] = StageForm(syntax, build)
        for name in sorted(STAGES, key=lambda name: STAGES[name].syntax.order):
            STAGES[name] = STAGES.pop(name)
        return build

    return known
