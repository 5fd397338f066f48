"""Laplace noise truncated at a bound: it lies within ±bound of 0, so the output's support moves with the input."""

import math

import numpy as np

from dpassay.core.numbers import Number, middle
from dpassay.pipeline.distributions import Noise
from dpassay.pipeline.pair import Array
from dpassay.pipeline.syntax import Syntax, positive
from dpassay.values import dataclass


@dataclass(frozen=True)
class TruncatedLaplace(Noise):
    """Density proportional to e^(−|t|/scale) for |t| ≤ bound, nothing beyond.

    >>> float(TruncatedLaplace(1, 2).cdf(np.array(0.0)))
    0.5
    """

    syntax = Syntax(
        "truncated_laplace",
        order=184,
        scale=positive("truncated_laplace: scale"),
        bound=positive("truncated_laplace: bound"),
    )
    norm = 1
    even = limited = fixed_loss = True
    scale: Number
    bound: Number

    @property
    def _inside(self) -> float:
        """The probability that Laplace noise stays within the bound."""
        return -math.expm1(-middle(self.bound) / middle(self.scale))

    def draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        """The absolute value by the inverse of its distribution function, and a sign."""
        size = -middle(self.scale) * np.log1p(-self._inside * rng.random(size=shape))
        return np.asarray(np.minimum(size, middle(self.bound)) * rng.choice([-1.0, 1.0], size=shape))

    def log_density(self, t: Array) -> Array:
        b = middle(self.scale)
        within = np.abs(t) <= middle(self.bound)
        return np.where(within, -np.abs(t) / b - math.log(2 * b * self._inside), -np.inf)

    def cdf(self, t: Array) -> Array:
        size = np.minimum(np.abs(t), middle(self.bound)) / middle(self.scale)
        half = -np.expm1(-size) / (2 * self._inside)
        return np.asarray(np.where(np.asarray(t) < 0, 0.5 - half, 0.5 + half))

    def survival(self, t: Array) -> Array:
        return self.cdf(-np.asarray(t))
