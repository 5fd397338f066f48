"""Staircase noise: its density falls in steps, by a factor e^−epsilon every `sensitivity`."""

import math

import numpy as np

from dpassay.core.numbers import Number, middle
from dpassay.pipeline.distributions import Noise
from dpassay.pipeline.pair import Array
from dpassay.pipeline.syntax import Syntax, positive, probability
from dpassay.values import dataclass


@dataclass(frozen=True)
class Staircase(Noise):
    """Density proportional to e^(−epsilon·j), j = ⌊|t|/sensitivity + 1 − gamma⌋ the number of steps down to t.

    >>> float(Staircase(1, 2, "0.5").cdf(np.array(0.0)))
    0.5
    """

    syntax = Syntax(
        "staircase",
        order=186,
        epsilon=positive("staircase: epsilon"),
        sensitivity=positive("staircase: sensitivity"),
        gamma=probability("staircase: gamma"),
    )
    even = fixed_loss = True
    epsilon: Number
    sensitivity: Number
    gamma: Number

    @property
    def _top(self) -> float:
        """The density on the highest step, times the sensitivity."""
        epsilon, gamma = middle(self.epsilon), middle(self.gamma)
        return -math.expm1(-epsilon) / (2 * (gamma + math.exp(-epsilon) * (1 - gamma)))

    def draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        """A step, then uniformly the part of it before or after its edge; and a sign."""
        epsilon, gamma = middle(self.epsilon), middle(self.gamma)
        step = np.floor(rng.exponential(size=shape) / epsilon)
        behind = rng.random(size=shape) * (gamma + (1 - gamma) * math.exp(-epsilon)) >= gamma
        place = rng.random(size=shape)
        size = step + np.where(behind, gamma + (1 - gamma) * place, gamma * place)
        return np.asarray(middle(self.sensitivity) * size * rng.choice([-1.0, 1.0], size=shape))

    def _steps(self, t: Array) -> tuple[Array, Array]:
        """The distance from 0 in sensitivities, and the number of steps down."""
        size = np.abs(t) / middle(self.sensitivity)
        return size, np.floor(size + 1 - middle(self.gamma))

    def log_density(self, t: Array) -> Array:
        _, steps = self._steps(t)
        return np.asarray(math.log(self._top / middle(self.sensitivity)) - middle(self.epsilon) * steps)

    def _beyond(self, t: Array) -> Array:
        """P(noise > |t|): the rest of this step, and all further ones."""
        size, steps = self._steps(t)
        epsilon = middle(self.epsilon)
        rest = steps + middle(self.gamma) - size + 1 / math.expm1(epsilon)
        return np.asarray(self._top * np.exp(-epsilon * steps) * rest)

    def cdf(self, t: Array) -> Array:
        return np.asarray(np.where(np.asarray(t) < 0, self._beyond(t), 1 - self._beyond(t)))

    def survival(self, t: Array) -> Array:
        return self.cdf(-np.asarray(t))
