"""Squashing: tanh or the sigmoid of each coordinate."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpassay.core.numbers import Number, exactly, iv
from dpassay.errors import InputError
from dpassay.pipeline.regions import Ball, Box, Everything, Rows
from dpassay.pipeline.stages.base import OutputRegion, Stage
from dpassay.pipeline.syntax import INF, Parameter, Syntax


def _check_kind(kind: str) -> str:
    if kind not in ("tanh", "sigmoid"):
        raise InputError(f"squash knows tanh and sigmoid, got {kind!r}")
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
    kind: str

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
            cube = Box.cube(self._exact(-region.radius), self._exact(region.radius), region.dim)
            return OutputRegion(cube, before.exact)
        limit = region.largest_norm(INF)
        if limit == INF:
            return OutputRegion(whole, exact=False)
        outer = Box.cube(self._exact(-exactly(limit)), self._exact(exactly(limit)), region.dim)
        return OutputRegion(outer, exact=False)

    def run(self, batch: Any, rng: np.random.Generator) -> Any:
        if self.kind == "tanh":
            return np.tanh(batch)
        from scipy.special import expit

        return expit(batch)
