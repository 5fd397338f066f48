"""What a stage is: a class that owns its text form, its data form, its region and how it runs.

A class with a `syntax` is known to the parser, the help and the certificates as soon as it is defined.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar

import numpy as np

from dpassay.core.neighbours import Relation
from dpassay.pipeline.distributions import Distribution
from dpassay.pipeline.regions import Array, Bits, Finite, OneHot, Region, Repeated, Rounded, Sparse
from dpassay.pipeline.syntax import Syntax, Written
from dpassay.pipeline.thresholds import SIGNS, Thresholds

Build = TypeVar("Build", bound="Callable[..., Stage]")
# What survives of an output when a stage is applied to it: everything, events far out in every
# coordinate, the order of values between two limits, the sign of each coordinate, or nothing that we know of.
Keeps = Literal["all", "tails", "order", "signs", "nothing"]


@dataclass(frozen=True, slots=True)
class OutputRegion:
    """The values a stage can put out, and whether any two of them can come from two neighbours.

    Where `exact` is false the region is only an outer bound: it serves for upper bounds alone. Where `far` is
    true the values are reached only in the limit of inputs that are ever farther away. Where `rounded` is true every
    coordinate is a whole number, whatever the region has besides.
    """

    region: Region
    exact: bool = True
    far: bool = False
    rounded: bool = False

    @property
    def whole(self) -> bool:
        """Whether every coordinate is known to be a whole number.

        >>> from dpassay.pipeline.regions import Box
        >>> OutputRegion(OneHot(3)).whole, OutputRegion(Box.cube(0, 1, 3)).whole
        (True, False)
        """
        inner = self.region.region if isinstance(self.region, Repeated) else self.region
        if isinstance(inner, Finite):
            return bool(np.all(np.array(inner.points) == np.rint(inner.points)))
        return self.rounded or isinstance(inner, Bits | OneHot | Sparse | Rounded)


class Stage(Written, ABC):
    """One part of a pipeline."""

    keeps: ClassVar[Keeps] = "nothing"
    takes_one_value: ClassVar[bool] = False  # the name of a category, or a value to hash; not a vector
    on_words: ClassVar[bool] = False  # works on texts, so only before all stages that give vectors
    takes_unit_vectors: ClassVar[bool] = False  # at the start of a pipeline it says that inputs have length 1
    opaque: ClassVar[bool] = False  # any function; its `dim`, which no text names, is the pipeline's
    depends_on_dimension: ClassVar[bool] = False  # what it does to vectors of one coordinate tells nothing of others
    outweighs_noise: ClassVar[bool] = False  # behind noise, inputs that are far enough away still reach its region
    followed_by: ClassVar[tuple[str, ...]] = ()  # one of these must come right after it
    comes_last: ClassVar[bool] = False  # nothing may come after it
    neighbours: ClassVar[tuple[Relation, ...]] = ()  # says how these differ, and speaks of no others; so it comes first

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "syntax" in vars(cls):
            text_form(cls.syntax)(cls)

    @property
    def name(self) -> str:
        """Its name in a text."""
        return self.syntax.name

    @abstractmethod
    def output_region(self, before: OutputRegion) -> OutputRegion:
        """What can come out, given what comes in."""

    @abstractmethod
    def run(self, batch: Any, rng: np.random.Generator) -> Any:
        """Transform a batch, one value a row."""

    def thresholds_before(self, after: Thresholds) -> Thresholds | None:
        """Thresholds of a coordinate before the stage that can be told, given which can be told behind it."""
        if self.keeps == "signs":
            return SIGNS if after.tells_signs else None
        return after if self.keeps == "all" else None

    def for_region(self, region: Region) -> Stage:
        """The same stage, or the one that does its work on values of this region."""
        return self


class NoiseStage(Stage):
    """A stage that randomizes, and knows the distribution of its output."""

    @abstractmethod
    def distribution(self, value: Array) -> Distribution:
        """The distribution of the output for one value."""


class StageForm(NamedTuple):
    """A text form, and what makes the stage from its arguments."""

    syntax: Syntax
    build: Callable[..., Stage]

    @property
    def help(self) -> str:
        """What the stage does: the first line of its documentation."""
        first = (self.build.__doc__ or "").partition("\n")[0]
        return first[:1].lower() + first[1:].removesuffix(".")


# What the help groups stages by: each group has the stages whose `order` is below its number.
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
    """Make a text form of a stage known, with what builds it."""

    def known(build: Build) -> Build:
        STAGES[syntax.name] = StageForm(syntax, build)
        for name in sorted(STAGES, key=lambda name: STAGES[name].syntax.order):
            STAGES[name] = STAGES.pop(name)
        return build

    return known
