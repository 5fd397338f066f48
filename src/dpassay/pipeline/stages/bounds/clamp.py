"""Clamping: each coordinate is moved between two limits."""

from dataclasses import replace
from typing import Any

import numpy as np

from dpassay.core.numbers import ONE, Number, down, maximum, middle, minimum, number, up
from dpassay.errors import InputError
from dpassay.pipeline.regions import (
    Bits,
    Box,
    Counted,
    Everything,
    MinMax,
    OneHot,
    Rounded,
    Rows,
    SensitivityBall,
    Sparse,
)
from dpassay.pipeline.stages.base import OutputRegion, Stage
from dpassay.pipeline.syntax import INF, Parameter, Syntax, written
from dpassay.pipeline.thresholds import Thresholds
from dpassay.values import dataclass


@dataclass(frozen=True)
class Clamp(Stage):
    """Move each coordinate to the nearest value between two limits.

    >>> Clamp(0, 1).run(np.array([[-3.0, 0.5, 2.0]]), np.random.default_rng()).tolist()
    [[0.0, 0.5, 1.0]]
    """

    syntax = Syntax("clamp", order=60, low=Parameter("number", number), high=Parameter("number", number))
    keeps = "order"
    contracts = True
    low: Number
    high: Number

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.low.b < self.high.a:
            given = f"{written(self.low)} and {written(self.high)}"
            raise InputError(f"clamp needs a lower limit below the upper one, got {given}")

    def output_region(self, before: OutputRegion) -> OutputRegion:
        """The box. Rows stay rows, and no distance between a query's answers increases, though it may decrease.

        Integers stay integers between limits that are integers: docs/proofs/diameters.md, point 18.
        """
        region = before.region
        inside = -(limit := region.largest_norm(INF)) >= up(self.low) and limit <= down(self.high)
        if before.whole and self._whole and (not inside or isinstance(region, Rows)):
            return self._of_integers(before)
        if isinstance(region, Counted):
            near = SensitivityBall(region.region.p, region.region.distance, region.dim)
            return OutputRegion(near, exact=False)
        if isinstance(region, Rows):
            limits = region.limits or (self.low, self.high)
            low, high = (maximum(self.low, minimum(self.high, limit)) for limit in limits)
            return OutputRegion(Rows(region.dim, (low, high)), before.exact)
        if isinstance(region, SensitivityBall):
            return OutputRegion(region, exact=False)
        if inside:
            return before
        if isinstance(region, MinMax | Bits | OneHot | Sparse) and up(self.low) <= 0 and down(self.high) >= 1:
            return before
        return OutputRegion(Box.cube(self.low, self.high, region.dim), before.exact and isinstance(region, Everything))

    @property
    def _whole(self) -> bool:
        return all(end.a == end.b == round(middle(end)) for end in (self.low, self.high))

    def _of_integers(self, before: OutputRegion) -> OutputRegion:
        """Integers between the limits; a query's answers stay as close as they were, where that says more."""
        region = before.region
        if isinstance(region, Bits | OneHot | Sparse) and self.low.b <= 0 and self.high.a >= 1:
            return before
        if isinstance(region, Rows):
            limits = region.limits or (self.low, self.high)
            low, high = (maximum(self.low, minimum(self.high, limit)) for limit in limits)
            return OutputRegion(Rows(region.dim, (low, high)), before.exact, rounded=True)
        if isinstance(region, Box):
            sides = [
                (maximum(self.low, minimum(self.high, low)), maximum(self.low, minimum(self.high, high)), count)
                for low, high, count in region.sides
            ]
            return OutputRegion(Box(tuple(sides)), exact=False, rounded=True)
        box = Box.cube(self.low, self.high, region.dim)
        if isinstance(region, Rounded) and region.diameter(1).b < box.diameter(1).a:
            within = region.limits or (self.low, self.high)
            low, high = (maximum(self.low, minimum(self.high, limit)) for limit in within)
            return OutputRegion(replace(region, limits=(low, high)), exact=False)
        return OutputRegion(box, exact=False, rounded=True)

    def thresholds_before(self, after: Thresholds) -> Thresholds | None:
        """Those between the limits: values beyond a limit become equal."""
        return after.within(self.low, self.high)

    @property
    def limits(self) -> tuple[Number, Number]:
        return self.low, self.high

    @property
    def slope(self) -> Number:
        return ONE

    def image(self, value: Number) -> Number:
        return maximum(self.low, minimum(self.high, value))

    def run(self, batch: Any, rng: np.random.Generator) -> Any:
        return np.clip(batch, middle(self.low), middle(self.high))
