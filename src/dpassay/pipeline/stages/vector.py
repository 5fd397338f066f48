"""The deterministic parts of a mechanism: what bounds a value before the noise, what decodes it after.

Each stage runs on a batch (one value a row) and says what it can put out, given what comes in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpassay.core.numbers import Number, down, iv, middle, minimum, up
from dpassay.errors import InputError
from dpassay.pipeline.regions import (
    Array,
    Ball,
    Box,
    Everything,
    Intersection,
    MinMax,
    Region,
    Rows,
    SensitivityBall,
    Sphere,
    check_positive,
)
from dpassay.pipeline.stages.base import INF, NORMS, Keeps, OutputRegion, Stage, largest_norm, norm_power, written
from dpassay.pipeline.stages.coordinates import Clamp, Repeat, Round, Squash
from dpassay.pipeline.stages.discrete import Binary, Bloom, Category, Dropout, Hash, OneHotEncode

__all__ = [
    "NORMS",
    "Binary",
    "Bloom",
    "Category",
    "Clamp",
    "Clip",
    "Dropout",
    "Encode",
    "Function",
    "Hash",
    "Keeps",
    "MinMaxScale",
    "Normalise",
    "OneHotEncode",
    "OutputRegion",
    "PersonRows",
    "Query",
    "Repeat",
    "Round",
    "Squash",
    "Stage",
    "norm_power",
    "written",
]


def _in_units(batch: Array, p: float) -> tuple[Array, Array, Array]:
    """Each row divided by its largest coordinate, that coordinate, and the quotient's norm: nothing overflows."""
    top = np.max(np.abs(batch), axis=-1, keepdims=True)
    unit = batch / np.where(top == 0, 1.0, top)
    return unit, top, np.asarray(np.linalg.norm(unit, ord=p, axis=-1, keepdims=True))


def _of_any_function(before: OutputRegion, dim: int) -> OutputRegion:
    """Everything, for the worst function; but of a constant every function makes a constant."""
    if before.region.diameter(INF) == 0:
        return OutputRegion(Box.cube(0, 0, dim), before.exact)
    return OutputRegion(Everything(dim), before.exact)


def _surrounds_zero(region: Region) -> bool:
    """Whether every direction, scaled down, lies in the region and two such points can be neighbours."""
    if isinstance(region, Box):
        return all(down(low) < 0 < up(high) and up(low) < 0 < down(high) for low, high, _ in region.sides)
    return isinstance(region, Everything | Ball | Intersection | SensitivityBall)


@dataclass(frozen=True)
class Encode:
    """An opaque encoder to vectors of the pipeline's dimension: nothing is known of what it puts out.

    >>> Encode(4).output_region(OutputRegion(Everything(4))).region
    Everything(dim=4)
    """

    name: ClassVar[str] = "encode"
    keeps: ClassVar[Keeps] = "all"
    dim: int
    function: Callable[[Any], Array] | None = None

    def output_region(self, before: OutputRegion) -> OutputRegion:
        """Anything: the encoder may be any function."""
        return _of_any_function(before, self.dim)

    def run(self, batch: Any, rng: np.random.Generator) -> Any:
        """Apply the function, if one was given; vectors pass as they are."""
        if self.function is not None:
            return np.asarray(self.function(batch), dtype=float)
        if not isinstance(batch, np.ndarray):
            raise InputError("this encode stage is only a name: give it a function to run it on texts")
        return batch

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Clip:
    """Scale a vector down to norm C if it is longer.

    >>> Clip("l2", 1).run(np.array([[3.0, 4.0]]), np.random.default_rng()).tolist()
    [[0.6..., 0.8...]]
    """

    name: ClassVar[str] = "clip"
    keeps: ClassVar[Keeps] = "signs"
    norm: str
    radius: Number

    def __post_init__(self) -> None:
        norm_power(self.norm)
        object.__setattr__(self, "radius", check_positive(self.radius, "clipping constant"))

    def output_region(self, before: OutputRegion) -> OutputRegion:
        """The ball, cut down to what could come in."""
        region, p = before.region, NORMS[self.norm]
        ball = Ball(p, self.radius, region.dim)
        if isinstance(region, Everything):
            return OutputRegion(ball, before.exact)
        if isinstance(region, SensitivityBall):
            return self._reach_of_query(region, ball, before.exact)
        if largest_norm(region, p) <= down(self.radius):
            return before
        if isinstance(region, Ball):
            if region.p == p:
                return OutputRegion(Ball(p, minimum(region.radius, self.radius), region.dim), before.exact)
            inside = largest_norm(ball, region.p) <= down(region.radius)
            return OutputRegion(ball if inside else Intersection(region, ball), before.exact)
        if isinstance(region, Box) and all(
            up(low) <= -up(self.radius) and down(high) >= up(self.radius) for low, high, _ in region.sides
        ):
            return OutputRegion(ball, before.exact)
        return OutputRegion(ball, exact=False)

    def _reach_of_query(self, region: SensitivityBall, ball: Ball, exact: bool) -> OutputRegion:
        """l2 clipping never increases an l2 distance; in any norm clipping at most doubles a distance."""
        if self.norm == "l2" and region.p == 2:
            if down(region.distance) > up(2 * self.radius):
                return OutputRegion(ball, exact)
            return OutputRegion(region, exact)
        if region.p == ball.p:
            return OutputRegion(
                SensitivityBall(ball.p, 2 * minimum(region.distance, self.radius), region.dim), exact=False
            )
        return OutputRegion(ball, exact=False)

    def run(self, batch: Any, rng: np.random.Generator) -> Any:
        """Scale each row."""
        radius = middle(self.radius)
        unit, top, norm = _in_units(np.asarray(batch, dtype=float), NORMS[self.norm])
        norm = np.where(norm == 0, 1.0, norm)
        return np.where(top <= radius / norm, batch, unit * (radius / norm))

    def __str__(self) -> str:
        return f"clip({self.norm}, {written(self.radius)})"


@dataclass(frozen=True)
class Normalise:
    """Scale a vector to l2 norm 1. A zero vector stays zero.

    >>> Normalise("l2").run(np.array([[3.0, 4.0]]), np.random.default_rng()).tolist()
    [[0.6, 0.8]]
    """

    name: ClassVar[str] = "normalise"
    keeps: ClassVar[Keeps] = "signs"
    norm: str = "l2"

    def __post_init__(self) -> None:
        if self.norm != "l2":
            raise InputError(f"normalise knows l2 only, got {self.norm!r}; use clip for other norms")

    def output_region(self, before: OutputRegion) -> OutputRegion:
        """The sphere (and the zero vector, which is never farther from anything)."""
        whole = _surrounds_zero(before.region) or isinstance(before.region, Sphere)
        return OutputRegion(Sphere(iv.mpf(1), before.region.dim), before.exact and whole)

    def run(self, batch: Any, rng: np.random.Generator) -> Any:
        """Scale each row."""
        unit, _, norm = _in_units(np.asarray(batch, dtype=float), 2)
        return unit / np.where(norm == 0, 1.0, norm)

    def __str__(self) -> str:
        return f"normalise({self.norm})"


@dataclass(frozen=True)
class MinMaxScale:
    """Shift and scale each vector so that its least coordinate is 0 and its largest 1.

    A constant vector has no range; it becomes all zeros.

    >>> MinMaxScale().run(np.array([[1.0, 3.0, 2.0], [5.0, 5.0, 5.0]]), np.random.default_rng()).tolist()
    [[0.0, 1.0, 0.5], [0.0, 0.0, 0.0]]
    """

    name: ClassVar[str] = "minmax"
    keeps: ClassVar[Keeps] = "nothing"

    def output_region(self, before: OutputRegion) -> OutputRegion:
        """All vectors with a 0, a 1 and the rest between."""
        region = before.region
        cube = isinstance(region, Box) and len(region.sides) == 1 and region.sides[0][0].b < region.sides[0][1].a
        whole = _surrounds_zero(region) or cube or isinstance(region, Sphere | MinMax)
        return OutputRegion(MinMax(region.dim), before.exact and whole)

    def run(self, batch: Any, rng: np.random.Generator) -> Any:
        """Scale each row."""
        low = np.min(batch, axis=-1, keepdims=True)
        span = np.max(batch, axis=-1, keepdims=True) - low
        return (batch - low) / np.where(span == 0, 1.0, span)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Query:
    """The answer to a query; on neighbouring data sets the answers are at most `distance` apart.

    >>> middle(Query("l2", 1).output_region(OutputRegion(Everything(4))).region.diameter(2))
    1.0
    """

    name: ClassVar[str] = "query"
    keeps: ClassVar[Keeps] = "nothing"
    norm: str
    distance: Number

    def __post_init__(self) -> None:
        norm_power(self.norm)
        object.__setattr__(self, "distance", check_positive(self.distance, "sensitivity"))

    def output_region(self, before: OutputRegion) -> OutputRegion:
        """Any vector, with a bound on neighbours' distance."""
        return OutputRegion(SensitivityBall(NORMS[self.norm], self.distance, before.region.dim))

    def run(self, batch: Any, rng: np.random.Generator) -> Any:
        """Pass the answers on."""
        return batch

    def __str__(self) -> str:
        return f"query({self.norm}, {written(self.distance)})"


@dataclass(frozen=True)
class PersonRows:
    """A data set with one coordinate a person; on neighbouring data sets one of them differs, by anything.

    >>> PersonRows().output_region(OutputRegion(Everything(4))).region
    Rows(dim=4, limits=None)
    """

    name: ClassVar[str] = "rows"
    keeps: ClassVar[Keeps] = "nothing"

    def output_region(self, before: OutputRegion) -> OutputRegion:
        """Any vector."""
        return OutputRegion(Rows(before.region.dim))

    def run(self, batch: Any, rng: np.random.Generator) -> Any:
        """Pass the rows on."""
        return batch

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Function:
    """Any function; `decode` in a pipeline's text. After the noise it is post-processing.

    Nothing is known of it, so bounds hold for the worst such function (one that loses nothing).

    >>> Function(lambda batch: batch * 2).run(np.array([[1.0]]), np.random.default_rng()).tolist()
    [[2.0]]
    """

    name: ClassVar[str] = "decode"
    keeps: ClassVar[Keeps] = "all"
    function: Callable[[Any], Any] | None = None
    dim: int | None = None  # of what it puts out; as many coordinates as come in if not given

    def output_region(self, before: OutputRegion) -> OutputRegion:
        """Anything."""
        return _of_any_function(before, self.dim or before.region.dim)

    def run(self, batch: Any, rng: np.random.Generator) -> Any:
        """Apply it, if one was given."""
        return batch if self.function is None else self.function(batch)

    def __str__(self) -> str:
        return self.name
