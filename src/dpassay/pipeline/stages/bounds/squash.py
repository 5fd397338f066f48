"""Squashing: tanh or the sigmoid of each coordinate."""

from typing import Any

import numpy as np

from dpassay.core.numbers import INFINITY, ONE, ZERO, Number, exactly, log, real
from dpassay.errors import InputError
from dpassay.pipeline.regions import Ball, Box, Everything, Rows, SensitivityBall, Sphere, Squashed
from dpassay.pipeline.regions.images import squashed
from dpassay.pipeline.stages.base import OutputRegion, Stage
from dpassay.pipeline.syntax import INF, Parameter, Syntax
from dpassay.pipeline.thresholds import Thresholds
from dpassay.values import dataclass


def _check_kind(kind: str) -> str:
    if kind not in ("tanh", "sigmoid"):
        raise InputError(f"squash supports tanh and sigmoid, got {kind!r}")
    return kind


@dataclass(frozen=True)
class Squash(Stage):
    """Apply tanh or sigmoid to each coordinate.

    >>> Squash("sigmoid").run(np.array([[0.0]]), np.random.default_rng()).tolist()
    [[0.5]]
    """

    syntax = Syntax("squash", order=50, kind=Parameter("word", _check_kind, ("tanh", "sigmoid")))
    keeps = "all"
    outweighs_noise = True
    contracts = True
    kind: str

    @property
    def slope(self) -> Number:
        return real("0.25") if self.kind == "sigmoid" else ONE

    def image(self, value: Number) -> Number:
        return squashed(self.kind, value)

    def output_region(self, before: OutputRegion) -> OutputRegion:
        """The open box between the two limits, or the part of it that bounded inputs give."""
        region = before.region
        whole = Box.cube(-1 if self.kind == "tanh" else 0, 1, region.dim)
        if isinstance(region, Everything):
            return OutputRegion(whole, before.exact)
        if isinstance(region, Box):
            sides = tuple((self.image(low), self.image(high), n) for low, high, n in region.sides)
            return OutputRegion(Box(sides), before.exact)
        if isinstance(region, Rows):
            low, high = whole.sides[0][:2] if region.limits is None else map(self.image, region.limits)
            return OutputRegion(Rows(region.dim, (low, high)), before.exact)
        if isinstance(region, Ball) and region.p == INF:
            cube = Box.cube(self.image(-region.radius), self.image(region.radius), region.dim)
            return OutputRegion(cube, before.exact)
        if isinstance(region, Sphere):  # its pairs are as far apart as the ball's
            region = Ball(2, region.radius, region.dim)
        if isinstance(region, Ball | SensitivityBall):
            return OutputRegion(Squashed(region, self.kind), before.exact)
        limit = region.largest_norm(INF)
        if limit == INF:
            return OutputRegion(whole, exact=False)
        outer = Box.cube(self.image(-exactly(limit)), self.image(exactly(limit)), region.dim)
        return OutputRegion(outer, exact=False)

    def thresholds_before(self, after: Thresholds) -> Thresholds | None:
        """Those between its limits, mapped back through it."""
        low, high = (-ONE if self.kind == "tanh" else ZERO), ONE
        inside = after.within(low, high)
        if inside is None:
            return None
        ends = (self._before(inside.low, low, high), self._before(inside.high, low, high))
        return Thresholds(*ends, inside.whole)

    def _before(self, value: Number, low: Number, high: Number) -> Number:
        """ln((v − l)/(h − v)), for tanh half of it; the limits themselves are infinitely far away."""
        if value == low:
            return -INFINITY
        if value == high:
            return INFINITY
        return log((value - low) / (high - value)) / (2 if self.kind == "tanh" else 1)

    def run(self, batch: Any, rng: np.random.Generator) -> Any:
        if self.kind == "tanh":
            return np.tanh(batch)
        from scipy.special import expit

        return expit(batch)
