"""Rounding to integers."""

from typing import Any

import numpy as np

from dpassay.core.numbers import down, up
from dpassay.pipeline.regions import (
    Bits,
    Box,
    Categories,
    Counted,
    Everything,
    Finite,
    MinMax,
    OneHot,
    Rounded,
    Rows,
    SensitivityBall,
    Sparse,
)
from dpassay.pipeline.stages.base import OutputRegion, Stage
from dpassay.pipeline.syntax import INF, Syntax
from dpassay.pipeline.thresholds import Thresholds
from dpassay.values import dataclass


@dataclass(frozen=True)
class Round(Stage):
    """Round each coordinate to the nearest whole number, ties to the even one.

    >>> Round().run(np.array([[0.4, 1.6]]), np.random.default_rng()).tolist()
    [[0.0, 2.0]]
    """

    syntax = Syntax("round", order=230)
    keeps = "tails"
    jumps = True
    outweighs_noise = True

    def output_region(self, before: OutputRegion) -> OutputRegion:
        """Rounded values; as an outer bound a box half a unit wider, or everything."""
        region = before.region
        if isinstance(region, Bits | OneHot | Categories | Sparse | Counted):
            return before
        if isinstance(region, MinMax):  # all strings of bits except that of ones only; 0 in one dimension
            bits = Bits(region.dim) if region.dim > 1 else Box.cube(0, 0, 1)
            return OutputRegion(bits, exact=before.exact and region.dim == 1, rounded=True)
        if isinstance(region, Finite):
            return OutputRegion(Finite(np.rint(np.array(region.points)).tolist()), before.exact)
        if isinstance(region, Box):
            sides = [(np.ceil(down(low) - 0.5), np.floor(up(high) + 0.5), n) for low, high, n in region.sides]
            return OutputRegion(Box(tuple(sides)), exact=False, rounded=True)
        if isinstance(region, Rows) and region.limits is not None:
            ends = np.ceil(down(region.limits[0]) - 0.5), np.floor(up(region.limits[1]) + 0.5)
            return OutputRegion(Rows(region.dim, ends), exact=False, rounded=True)
        if isinstance(region, Rows):
            return OutputRegion(region, before.exact, far=True, rounded=True)
        if isinstance(region, SensitivityBall) and region.p in (1, 2, INF):
            return OutputRegion(Rounded(region), before.exact)
        limit = region.largest_norm(INF)
        if limit == INF:
            exact = before.exact and isinstance(region, Everything)
            return OutputRegion(Everything(region.dim), exact, far=True, rounded=True)
        most = np.floor(limit + 0.5)
        return OutputRegion(Box.cube(-most, most, region.dim), exact=False, rounded=True)

    def thresholds_before(self, after: Thresholds) -> Thresholds | None:
        """The numbers halfway between two integers."""
        return after.rounded()

    def run(self, batch: Any, rng: np.random.Generator) -> Any:
        return np.rint(batch)
