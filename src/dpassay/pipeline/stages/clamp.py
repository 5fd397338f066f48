"""Clamping: each coordinate is moved between two limits."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpassay.core.numbers import Number, down, maximum, middle, minimum, number, up
from dpassay.errors import InputError
from dpassay.pipeline.regions import Bits, Box, Everything, MinMax, OneHot, Rows, SensitivityBall, Sparse
from dpassay.pipeline.stages.base import OutputRegion, Stage
from dpassay.pipeline.syntax import INF, Parameter, Syntax, written
from dpassay.pipeline.thresholds import Thresholds


@dataclass(frozen=True)
class Clamp(Stage):
    """Move each coordinate to the nearest value between two limits.

    >>> Clamp(0, 1).run(np.array([[-3.0, 0.5, 2.0]]), np.random.default_rng()).tolist()
    [[0.0, 0.5, 1.0]]
    """

    syntax = Syntax("clamp", order=60, low=Parameter("number", number), high=Parameter("number", number))
    keeps = "order"
    low: Number
    high: Number

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.low.b < self.high.a:
            given = f"{written(self.low)} and {written(self.high)}"
            raise InputError(f"clamp needs a lower limit below the upper one, got {given}")

    def output_region(self, before: OutputRegion) -> OutputRegion:
        """The box. Rows stay rows, and no distance between a query's answers increases, though it may decrease."""
        region = before.region
        if isinstance(region, Rows):
            limits = region.limits or (self.low, self.high)
            low, high = (maximum(self.low, minimum(self.high, limit)) for limit in limits)
            return OutputRegion(Rows(region.dim, (low, high)), before.exact)
        if isinstance(region, SensitivityBall):
            return OutputRegion(region, exact=False)
        if -(limit := region.largest_norm(INF)) >= up(self.low) and limit <= down(self.high):
            return before
        if isinstance(region, MinMax | Bits | OneHot | Sparse) and up(self.low) <= 0 and down(self.high) >= 1:
            return before
        return OutputRegion(Box.cube(self.low, self.high, region.dim), before.exact and isinstance(region, Everything))

    def thresholds_before(self, after: Thresholds) -> Thresholds | None:
        """Those between the limits: values beyond a limit become equal."""
        return after.within(self.low, self.high)

    def run(self, batch: Any, rng: np.random.Generator) -> Any:
        return np.clip(batch, middle(self.low), middle(self.high))
