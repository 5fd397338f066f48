"""What a stage is, and what is known of the values that it puts out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np

from dpassay.enclosure import Number, middle
from dpassay.errors import InputError
from dpassay.region import Region

INF = float("inf")
NORMS: dict[str, float] = {"l1": 1.0, "l2": 2.0, "linf": INF}

# What survives of an output when a stage is applied to it: everything, events far out in every
# coordinate, the sign of each coordinate, or nothing that we know of.
Keeps = Literal["all", "tails", "signs", "nothing"]


@dataclass(frozen=True, slots=True)
class Reach:
    """The values a stage can put out, and whether any two of them can come from two neighbours.

    Where `exact` is false the region is only an outer bound: it serves for upper bounds alone. Where `far` is
    true the values are reached only in the limit of inputs that are ever farther away.
    """

    region: Region
    exact: bool = True
    far: bool = False


@runtime_checkable
class Stage(Protocol):
    """One part of a pipeline."""

    name: ClassVar[str]
    keeps: ClassVar[Keeps]

    def reach(self, before: Reach) -> Reach:
        """What can come out, given what comes in."""

    def run(self, batch: Any, rng: np.random.Generator) -> Any:
        """Transform a batch."""


def norm_power(norm: str) -> float:
    """Read the name of a norm."""
    if norm not in NORMS:
        raise InputError(f"unknown norm {norm!r}; allowed: {', '.join(NORMS)}")
    return NORMS[norm]


def written(value: Number) -> str:
    """Write a parameter as the double nearest to it, in the fewest digits that say which."""
    return repr(middle(value)).removesuffix(".0")
