"""Repetition, which is composition: each copy of the vector gets its own noise."""

from typing import Any

import numpy as np

from dpassay.errors import InputError
from dpassay.pipeline.regions import Categories, Repeated
from dpassay.pipeline.stages.base import OutputRegion, Stage
from dpassay.pipeline.syntax import Syntax, count
from dpassay.values import dataclass


@dataclass(frozen=True)
class Repeat(Stage):
    """Repeat the vector this many times; each copy gets its own noise.

    >>> Repeat(2).run(np.array([[1.0, 3.0]]), np.random.default_rng()).tolist()
    [[1.0, 3.0, 1.0, 3.0]]
    """

    syntax = Syntax("repeat", order=70, times=count("repeat: times"))
    keeps = "all"
    times: int

    def output_region(self, before: OutputRegion) -> OutputRegion:
        region = before.region
        if isinstance(region, Categories):
            raise InputError("a category's name cannot be repeated: put onehot(k) before it")
        if isinstance(region, Repeated):
            return OutputRegion(
                Repeated(region.region, region.times * self.times), before.exact, rounded=before.rounded
            )
        return OutputRegion(Repeated(region, self.times), before.exact, rounded=before.rounded)

    def run(self, batch: Any, rng: np.random.Generator) -> Any:
        return np.tile(np.asarray(batch, dtype=float), self.times)
