"""Noise on integers: an integer is added to each coordinate, which must be an integer itself.

Added to other numbers it hides nothing: two values that do not differ by an integer have no output in common.
"""

import math
from abc import abstractmethod
from functools import cached_property
from typing import Any

import numpy as np

from dpassay.core.numbers import Number, middle, number, real
from dpassay.errors import InputError
from dpassay.pipeline.distributions import Noise
from dpassay.pipeline.pair import Array, check_positive
from dpassay.pipeline.syntax import Parameter, Syntax, positive
from dpassay.values import dataclass

_WIDEST = 100_000  # sums over outputs are this long


class DiscreteNoise(Noise):
    """A symmetric distribution on the integers whose probabilities are log-concave."""

    even = fixed_loss = True

    @property
    @abstractmethod
    def deviation(self) -> float:
        """Its standard deviation."""

    def survival(self, t: Array) -> Array:
        """P(noise > t), which is P(noise ≤ −⌊t⌋ − 1)."""
        return self.cdf(-np.floor(np.asarray(t, dtype=float)) - 1)


@dataclass(frozen=True)
class DiscreteLaplace(DiscreteNoise):
    """P(t) proportional to e^(−|t|/scale), t an integer: the two-sided geometric distribution.

    >>> DiscreteLaplace(1).log_density(np.array([0.0, 1.0, 0.5])).round(6).tolist()  # tanh(1/2) is P(0)
    [-0.771937, -1.771937, -inf]
    """

    syntax = Syntax("discrete_laplace", order=192, scale=positive("discrete_laplace: scale"))
    norm = 1
    scale: Number

    @property
    def width(self) -> Number:
        return self.scale

    @property
    def deviation(self) -> float:
        """The root of 2a/(1 − a)², a = e^(−1/scale)."""
        return 1 / (math.sqrt(2) * math.sinh(min(1 / (2 * middle(self.scale)), 700)))

    def draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        """The difference of two geometric variables."""
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


def _check_sigma(value: Any) -> Number:
    sigma = check_positive(value, "discrete_gaussian: sigma")
    if sigma.b > _WIDEST or sigma.a < real("0.01"):
        given = f"got {middle(sigma):g}; for more noise gaussian(sigma) is nearly the same"
        raise InputError(f"discrete_gaussian: sigma must lie between 0.01 and {_WIDEST:,}, {given}")
    return sigma


@dataclass(frozen=True)
class DiscreteGaussian(DiscreteNoise):
    """P(t) proportional to e^(−t²/(2·sigma²)), t an integer.

    >>> DiscreteGaussian(1).log_density(np.array([0.0, 1.0, 0.5])).round(6).tolist()
    [-0.918939, -1.418939, -inf]
    """

    syntax = Syntax("discrete_gaussian", order=194, sigma=Parameter("number", _check_sigma))
    sigma: Number

    @property
    def width(self) -> Number:
        return self.sigma

    @cached_property
    def _chances(self) -> Array:
        """P(t) for t from 0 on, as far as doubles go."""
        s = middle(self.sigma)
        weights = np.exp(-0.5 * (np.arange(math.ceil(39 * s) + 2) / s) ** 2)
        return np.asarray(weights / (2 * weights.sum() - 1))

    @property
    def deviation(self) -> float:
        """Nearly sigma, but slightly less."""
        return math.sqrt(2 * float((np.arange(len(self._chances)) ** 2.0 * self._chances).sum()))

    def draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        """Discrete Laplace numbers by rejection, accepted with probabilities that give this law (Canonne et al.)."""
        s = middle(self.sigma)
        scale = math.floor(s) + 1
        wanted, found = math.prod(shape), np.zeros(0)
        while len(found) < wanted:
            tried = DiscreteLaplace(number(scale)).draw((2 * (wanted - len(found)) + 16,), rng)
            kept = rng.random(len(tried)) < np.exp(-0.5 * ((np.abs(tried) - s * s / scale) / s) ** 2)
            found = np.concatenate([found, tried[kept]])
        return found[:wanted].reshape(shape)

    def log_density(self, t: Array) -> Array:
        """Log of the probability of each number; −inf where it is not a whole one."""
        s = middle(self.sigma)
        return np.where(t == np.rint(t), -0.5 * (t / s) ** 2 + math.log(self._chances[0]), -np.inf)

    def cdf(self, t: Array) -> Array:
        whole = np.floor(np.asarray(t, dtype=float))
        tails = np.append(np.cumsum(self._chances[::-1])[::-1], 0.0)  # P(T ≥ k)
        beyond = np.where(whole < 0, -whole, whole + 1)
        tail = tails[np.minimum(beyond, len(tails) - 1).astype(int)]
        return np.asarray(np.where(whole < 0, tail, 1 - tail))
