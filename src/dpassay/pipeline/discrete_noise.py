"""Noise on whole numbers: what is added to a whole number, coordinate by coordinate, is a whole number too.

Added to other numbers it hides nothing: two values that do not differ by a whole number have no output in common.
"""

import math
from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from dpassay.core.numbers import Number, middle
from dpassay.pipeline.distributions import Noise
from dpassay.pipeline.pair import Array
from dpassay.pipeline.syntax import Syntax, positive


class DiscreteNoise(Noise):
    """A distribution on the whole numbers, even, whose probabilities are log-concave."""

    @property
    @abstractmethod
    def deviation(self) -> float:
        """Its standard deviation."""

    def survival(self, t: Array) -> Array:
        """P(noise > t), which is P(noise ≤ −⌊t⌋ − 1)."""
        return self.cdf(-np.floor(np.asarray(t, dtype=float)) - 1)


@dataclass(frozen=True)
class DiscreteLaplace(DiscreteNoise):
    """P(t) proportional to e^(−|t|/scale), t a whole number: the two-sided geometric distribution.

    >>> DiscreteLaplace(1).log_density(np.array([0.0, 1.0, 0.5])).round(6).tolist()  # tanh(1/2) is P(0)
    [-0.771937, -1.771937, -inf]
    """

    syntax = Syntax("discrete_laplace", order=192, scale=positive("discrete_laplace: scale"))
    norm = 1
    scale: Number

    @property
    def deviation(self) -> float:
        """The root of 2a/(1 − a)², a = e^(−1/scale)."""
        return 1 / (math.sqrt(2) * math.sinh(min(1 / (2 * middle(self.scale)), 700)))

    def draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        """The difference of two geometric numbers."""
        stop = -math.expm1(-1 / middle(self.scale))
        first, second = (rng.geometric(stop, size=shape) for _ in range(2))
        return np.asarray(first - second, dtype=float)

    def log_density(self, t: Array) -> Array:
        """Log of the probability of each number; −inf where it is not a whole one."""
        b = middle(self.scale)
        return np.where(t == np.rint(t), -np.abs(t) / b + math.log(math.tanh(1 / (2 * b))), -np.inf)

    def cdf(self, t: Array) -> Array:
        """The tail e^(t/scale)/(1 + e^(−1/scale)) at a whole number below 0, and its mirror image above."""
        b, whole = middle(self.scale), np.floor(np.asarray(t, dtype=float))
        tail = np.exp(np.where(whole < 0, whole, -whole - 1) / b) / (1 + math.exp(-1 / b))
        return np.asarray(np.where(whole < 0, tail, 1 - tail))
