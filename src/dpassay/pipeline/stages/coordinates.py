"""Stages that treat each coordinate alike: squash, clamp and round it, or write the vector down again and again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpassay.core.numbers import Number, down, exactly, iv, maximum, middle, minimum, number, up
from dpassay.errors import InputError
from dpassay.pipeline.regions import (
    Ball,
    Bits,
    Box,
    Categories,
    Everything,
    Finite,
    MinMax,
    OneHot,
    Repeated,
    Rows,
    SensitivityBall,
    Sparse,
    check_dimension,
)
from dpassay.pipeline.stages.base import INF, Keeps, OutputRegion, largest_norm, written


@dataclass(frozen=True)
class Squash:
    """Apply tanh or the sigmoid to each coordinate.

    >>> Squash("sigmoid").run(np.array([[0.0]]), np.random.default_rng()).tolist()
    [[0.5]]
    """

    name: ClassVar[str] = "squash"
    keeps: ClassVar[Keeps] = "all"
    kind: str

    def __post_init__(self) -> None:
        if self.kind not in ("tanh", "sigmoid"):
            raise InputError(f"squash knows tanh and sigmoid, got {self.kind!r}")

    def _exact(self, value: Number) -> Number:
        if self.kind == "tanh":
            return 1 - 2 / (iv.exp(2 * value) + 1)
        return 1 / (1 + iv.exp(-value))

    def output_region(self, before: OutputRegion) -> OutputRegion:
        """The open box between the two limits, or its part that bounded inputs give."""
        region = before.region
        whole = Box.cube(-1 if self.kind == "tanh" else 0, 1, region.dim)
        if isinstance(region, Everything):
            return OutputRegion(whole, before.exact)
        if isinstance(region, Box):
            sides = tuple((self._exact(low), self._exact(high), n) for low, high, n in region.sides)
            return OutputRegion(Box(sides), before.exact)
        if isinstance(region, Rows):
            low, high = whole.sides[0][:2] if region.limits is None else map(self._exact, region.limits)
            return OutputRegion(Rows(region.dim, (low, high)), before.exact)
        if isinstance(region, Ball) and region.p == INF:
            return OutputRegion(
                Box.cube(self._exact(-region.radius), self._exact(region.radius), region.dim), before.exact
            )
        limit = largest_norm(region, INF)
        if limit == INF:
            return OutputRegion(whole, exact=False)
        return OutputRegion(
            Box.cube(self._exact(-exactly(limit)), self._exact(exactly(limit)), region.dim), exact=False
        )

    def run(self, batch: Any, rng: np.random.Generator) -> Any:
        """Squash each coordinate."""
        if self.kind == "tanh":
            return np.tanh(batch)
        from scipy.special import expit

        return expit(batch)

    def __str__(self) -> str:
        return f"squash({self.kind})"


@dataclass(frozen=True)
class Clamp:
    """Move each coordinate to the nearest value between two limits.

    >>> Clamp(0, 1).run(np.array([[-3.0, 0.5, 2.0]]), np.random.default_rng()).tolist()
    [[0.0, 0.5, 1.0]]
    """

    name: ClassVar[str] = "clamp"
    keeps: ClassVar[Keeps] = "nothing"
    low: Number
    high: Number

    def __post_init__(self) -> None:
        low, high = number(self.low), number(self.high)
        if not low.b < high.a:
            raise InputError(f"clamp needs a lower limit below the upper one, got {written(low)} and {written(high)}")
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    def output_region(self, before: OutputRegion) -> OutputRegion:
        """The box. Rows stay rows, and no two answers to a query move apart, though they may come closer."""
        region = before.region
        if isinstance(region, Rows):
            limits = region.limits or (self.low, self.high)
            low, high = (maximum(self.low, minimum(self.high, limit)) for limit in limits)
            return OutputRegion(Rows(region.dim, (low, high)), before.exact)
        if isinstance(region, SensitivityBall):
            return OutputRegion(region, exact=False)
        if -(limit := largest_norm(region, INF)) >= up(self.low) and limit <= down(self.high):
            return before
        if isinstance(region, MinMax | Bits | OneHot | Sparse) and up(self.low) <= 0 and down(self.high) >= 1:
            return before
        return OutputRegion(Box.cube(self.low, self.high, region.dim), before.exact and isinstance(region, Everything))

    def run(self, batch: Any, rng: np.random.Generator) -> Any:
        """Move each coordinate."""
        return np.clip(batch, middle(self.low), middle(self.high))

    def __str__(self) -> str:
        return f"clamp({written(self.low)}, {written(self.high)})"


@dataclass(frozen=True)
class Repeat:
    """Write the vector down several times: noise added later is drawn anew for each copy. This is composition.

    >>> Repeat(2).run(np.array([[1.0, 3.0]]), np.random.default_rng()).tolist()
    [[1.0, 3.0, 1.0, 3.0]]
    """

    name: ClassVar[str] = "repeat"
    keeps: ClassVar[Keeps] = "all"
    times: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "times", check_dimension(self.times, "repeat: times"))

    def output_region(self, before: OutputRegion) -> OutputRegion:
        """The region, repeated."""
        region = before.region
        if isinstance(region, Categories):
            raise InputError("a category's name cannot be repeated: put onehot(k) before it")
        if isinstance(region, Repeated):
            return OutputRegion(Repeated(region.region, region.times * self.times), before.exact)
        return OutputRegion(Repeated(region, self.times), before.exact)

    def run(self, batch: Any, rng: np.random.Generator) -> Any:
        """Copy each row."""
        return np.tile(np.asarray(batch, dtype=float), self.times)

    def __str__(self) -> str:
        return f"repeat({self.times})"


@dataclass(frozen=True)
class Round:
    """Round each coordinate to the nearest whole number.

    >>> Round().run(np.array([[0.4, 1.6]]), np.random.default_rng()).tolist()
    [[0.0, 2.0]]
    """

    name: ClassVar[str] = "round"
    keeps: ClassVar[Keeps] = "tails"

    def output_region(self, before: OutputRegion) -> OutputRegion:
        """Rounded values; as an outer bound a box half a unit wider, or everything."""
        region = before.region
        if isinstance(region, Bits | OneHot | Categories | Sparse):
            return before
        if isinstance(region, Finite):
            return OutputRegion(Finite(np.rint(np.array(region.points)).tolist()), before.exact)
        if isinstance(region, Rows):
            return self._reach_of_rows(region, before.exact)
        limit = largest_norm(region, INF)
        if limit == INF:
            return OutputRegion(Everything(region.dim), before.exact and isinstance(region, Everything), far=True)
        return OutputRegion(Box.cube(-np.floor(limit + 0.5), np.floor(limit + 0.5), region.dim), exact=False)

    def _reach_of_rows(self, region: Rows, exact: bool) -> OutputRegion:
        if region.limits is None:
            return OutputRegion(region, exact, far=True)
        ends = np.ceil(down(region.limits[0]) - 0.5), np.floor(up(region.limits[1]) + 0.5)
        return OutputRegion(Rows(region.dim, ends), exact=False)

    def run(self, batch: Any, rng: np.random.Generator) -> Any:
        """Round."""
        return np.rint(batch)

    def __str__(self) -> str:
        return self.name
