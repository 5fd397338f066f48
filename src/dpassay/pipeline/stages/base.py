"""What a stage is, and what is known of the values that it puts out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np

from dpassay.core.numbers import Number, middle, up
from dpassay.errors import InputError
from dpassay.pipeline.regions import (
    Ball,
    Bits,
    Box,
    Finite,
    Intersection,
    MinMax,
    OneHot,
    Region,
    Repeated,
    Rows,
    Sparse,
    Sphere,
)

INF = float("inf")
NORMS: dict[str, float] = {"l1": 1.0, "l2": 2.0, "linf": INF}

# What survives of an output when a stage is applied to it: everything, events far out in every
# coordinate, the sign of each coordinate, or nothing that we know of.
Keeps = Literal["all", "tails", "signs", "nothing"]


@dataclass(frozen=True, slots=True)
class OutputRegion:
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

    def output_region(self, before: OutputRegion) -> OutputRegion:
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


def largest_norm(region: Region, p: float) -> float:
    """The largest lp norm in a region, from above."""
    if isinstance(region, Ball):
        return up(region.diameter(p) / 2)
    if isinstance(region, Intersection):
        return min(largest_norm(region.first, p), largest_norm(region.second, p))
    if isinstance(region, Sphere):
        return up(region.diameter(p) / 2)
    if isinstance(region, Box) or (isinstance(region, Rows) and region.limits is not None):
        sides = region.sides if isinstance(region, Box) else ((*region.limits, region.dim),)  # type: ignore[misc]
        corner = [max(abs(middle(low)), abs(middle(high))) for low, high, _ in sides]
        counts = [count for _, _, count in sides]
        return float(np.linalg.norm(np.repeat(corner, counts), ord=p)) * (1 + 1e-12)
    if isinstance(region, Bits | MinMax):
        return float(np.linalg.norm(np.ones(region.dim), ord=p)) * (1 + 1e-12)
    if isinstance(region, Finite):
        return float(np.linalg.norm(np.array(region.points), ord=p, axis=1).max()) * (1 + 1e-12)
    if isinstance(region, Repeated | Sparse):
        # So many equal norms side by side; of a sparse string, so many ones.
        times, inner = (region.times, region.region) if isinstance(region, Repeated) else (region.ones, OneHot(1))
        return largest_norm(inner, p) * float(np.linalg.norm(np.ones(times), ord=p)) * (1 + 1e-12)
    return 1.0 if isinstance(region, OneHot) else INF
