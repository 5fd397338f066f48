"""The exponential mechanism."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpassay.core.numbers import Number, middle
from dpassay.errors import InputError
from dpassay.pipeline.distributions import Distribution, Pmf
from dpassay.pipeline.regions import Array, Categories
from dpassay.pipeline.stages.base import NoiseStage, OutputRegion
from dpassay.pipeline.syntax import Syntax, positive


@dataclass(frozen=True)
class Choose(NoiseStage):
    """Name coordinate j with probability proportional to e^(rate·x_j).

    >>> Choose(1).distribution(np.array([0.0, 0.0])).probabilities.tolist()
    [0.5, 0.5]
    """

    syntax = Syntax("exponential", order=220, rate=positive("exponential: rate"))
    rate: Number

    def output_region(self, before: OutputRegion) -> OutputRegion:
        if isinstance(before.region, Categories):
            raise InputError("exponential needs a vector of scores, not a category")
        return OutputRegion(Categories(before.region.dim), exact=False)

    def distribution(self, value: Array) -> Distribution:
        weights = np.exp(middle(self.rate) * (value - np.max(value)))
        return Pmf(weights / weights.sum())

    def run(self, batch: Any, rng: np.random.Generator) -> Any:
        scores = middle(self.rate) * np.asarray(batch, dtype=float)
        return np.argmax(scores + rng.gumbel(size=scores.shape), axis=-1)[..., None].astype(float)
