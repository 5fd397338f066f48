"""The exponential mechanism, under that name and as the softmax of logits, and top-k before it."""

from dataclasses import field
from typing import Any, ClassVar

import numpy as np

from dpassay.core.numbers import Number, double_above, middle, number
from dpassay.errors import InputError
from dpassay.pipeline.distributions import Distribution, Pmf
from dpassay.pipeline.regions import Array, Categories, Repeated
from dpassay.pipeline.stages.base import NoiseStage, OutputRegion, Stage
from dpassay.pipeline.syntax import Syntax, count, positive
from dpassay.values import dataclass


class Choice(NoiseStage):
    """Outputs one of the coordinates, chosen by scores and noise; `rate` is one over the scale of that noise."""

    chooses = True
    least_noise: ClassVar = ("rate that is small", "larger", "largest rate")  # words for its rate
    rate: Number

    def output_region(self, before: OutputRegion) -> OutputRegion:
        if isinstance(before.region, Categories):
            raise InputError(f"{self.name} needs a vector of scores, not a category")
        return OutputRegion(Categories(before.region.dim), exact=False)

    def at_rate(self, rate: Number) -> "Choice":
        """The same stage with another rate, or with one that is smaller by less than a double's resolution."""
        raise NotImplementedError


@dataclass(frozen=True)
class Choose(Choice):
    """Name coordinate j with probability proportional to e^(rate·x_j).

    >>> Choose(1).distribution(np.array([0.0, 0.0])).probabilities.tolist()
    [0.5, 0.5]
    """

    syntax = Syntax("exponential", order=220, rate=positive("exponential: rate"))
    rate: Number

    def at_rate(self, rate: Number) -> "Choose":
        return Choose(rate)

    def distribution(self, value: Array) -> Distribution:
        weights = np.exp(middle(self.rate) * (value - np.max(value)))
        return Pmf(weights / weights.sum())

    def run(self, batch: Any, rng: np.random.Generator) -> Any:
        scores = middle(self.rate) * np.asarray(batch, dtype=float)
        return np.argmax(scores + rng.gumbel(size=scores.shape), axis=-1)[..., None].astype(float)


@dataclass(frozen=True)
class Softmax(Choose):
    """Name coordinate j with probability proportional to e^(x_j/temperature): draw one token from its logits.

    This is the exponential mechanism with rate 1/temperature.

    >>> softmax = Softmax("0.5")
    >>> print(softmax, middle(softmax.rate))
    softmax(0.5) 2.0
    """

    syntax = Syntax("softmax", order=222, temperature=positive("softmax: temperature"))
    least_noise = ("temperature that is high", "lower", "lowest temperature")
    rate: Number = field(init=False, repr=False)
    temperature: Number

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "rate", 1 / self.temperature)

    def at_rate(self, rate: Number) -> "Softmax":
        return Softmax(number(double_above(1 / rate)))


@dataclass(frozen=True)
class TopK(Stage):
    """Keep the k largest scores, ties going to the first; the others are never chosen. Only before a choice.

    Scores that are not kept become minus infinity.

    >>> TopK(2).run(np.array([[3.0, 1.0, 3.0, 2.0]]), np.random.default_rng()).tolist()
    [[3.0, -inf, 3.0, -inf]]
    """

    syntax = Syntax("topk", order=218, k=count("topk: k"))
    followed_by = ("exponential", "softmax")
    k: int

    def output_region(self, before: OutputRegion) -> OutputRegion:
        """The scores unchanged: the next stage considers which of them are kept."""
        if isinstance(before.region, Categories):
            raise InputError("topk needs a vector of scores, not a category")
        if isinstance(before.region, Repeated):
            raise InputError("topk keeps the largest of all scores, and repeat makes copies of them: leave repeat out")
        return before

    def run(self, batch: Any, rng: np.random.Generator) -> Any:
        scores = np.asarray(batch, dtype=float)
        if self.k >= scores.shape[-1]:
            return scores
        dropped = np.argsort(-scores, axis=-1, kind="stable")[..., self.k :]
        kept = scores.copy()
        np.put_along_axis(kept, dropped, -np.inf, axis=-1)
        return kept
