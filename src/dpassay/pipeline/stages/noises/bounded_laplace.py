"""The bounded Laplace mechanism: Laplace noise, drawn again until the output lies between two limits."""

import math
from typing import Any

import numpy as np

from dpassay.core.numbers import Number, middle, number
from dpassay.errors import InputError
from dpassay.pipeline.distributions import Distribution
from dpassay.pipeline.regions import Array, Box, Categories
from dpassay.pipeline.stages.base import NoiseStage, OutputRegion
from dpassay.pipeline.syntax import Parameter, Syntax, positive, written
from dpassay.values import dataclass


@dataclass(frozen=True)
class BoundedLaplace(NoiseStage):
    """Add Laplace noise, redrawn until the output lies between low and high.

    The density is that of Laplace noise divided by the probability of landing between the limits, which depends on the
    input: the loss is more than the distance over the scale. docs/proofs/bounded-laplace.md.

    >>> print(BoundedLaplace(2, 0, "0.5"))
    bounded_laplace(2, 0, 0.5)
    """

    syntax = Syntax(
        "bounded_laplace",
        order=182,
        scale=positive("bounded_laplace: scale"),
        low=Parameter("number", number),
        high=Parameter("number", number),
    )
    scale: Number
    low: Number
    high: Number

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.low.b < self.high.a or max(abs(self.low).b, abs(self.high).b) > 1e300:
            given = f"{written(self.low)} and {written(self.high)}"
            raise InputError(f"bounded_laplace needs a finite lower limit below the upper one, got {given}")

    def output_region(self, before: OutputRegion) -> OutputRegion:
        """The box between the limits; it is not known which of its pairs come from neighbors."""
        if isinstance(before.region, Categories):
            raise InputError("noise cannot be added to a category's name: put onehot(k) before it")
        return OutputRegion(Box.cube(self.low, self.high, before.region.dim), exact=False)

    def run(self, batch: Any, rng: np.random.Generator) -> Any:
        """By the inverse of the distribution function. Values beyond a limit are treated like the limit."""
        b, low, high = (middle(value) for value in (self.scale, self.low, self.high))
        x = np.clip(np.asarray(batch, dtype=float), low, high)
        below, above = np.exp((low - x) / b), np.exp((x - high) / b)
        mass = rng.random(size=np.shape(x)) * (2 - below - above)
        left = mass <= 1 - below
        with np.errstate(divide="ignore", invalid="ignore"):
            up = x - b * np.log1p(-np.minimum(mass - (1 - below), 1 - above))
            output = np.where(left, x + b * np.log(below + mass), up)
        return np.clip(output, low, high)

    def distribution(self, value: Array) -> Distribution:
        return AroundCentre(self, value)


@dataclass(frozen=True)
class AroundCentre:
    """Bounded Laplace noise around a vector, each coordinate independently.

    >>> noisy = AroundCentre(BoundedLaplace(1, 0, 2), np.array([0.0]))
    >>> noisy.log_likelihood(np.array([[0.0], [3.0]])).round(6).tolist()  # -ln(1 - e^-2), and never
    [0.145413, -inf]
    """

    noise: BoundedLaplace
    centre: Array

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Draw n outputs, one per row."""
        return np.asarray(self.noise.run(np.tile(self.centre, (n, 1)), rng))

    def log_likelihood(self, outputs: Array) -> Array:
        """-|t - x|/scale - ln(scale) - ln(2 - e^(-(x - low)/scale) - e^(-(high - x)/scale)), summed; -inf beyond."""
        b, low, high = (middle(value) for value in (self.noise.scale, self.noise.low, self.noise.high))
        t, x = np.asarray(outputs, dtype=float), np.clip(self.centre, low, high)
        total = -np.expm1((low - x) / b) - np.expm1((x - high) / b)
        each = np.where((t >= low) & (t <= high), -np.abs(t - x) / b - math.log(b) - np.log(total), -np.inf)
        return np.asarray(each.sum(axis=-1))
