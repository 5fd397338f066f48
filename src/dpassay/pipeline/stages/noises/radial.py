"""Radial noise: its density depends only on the noise's norm (the K-norm mechanism of a norm's ball)."""

import math
from typing import Any

import numpy as np

from dpassay.core.numbers import Number, middle
from dpassay.errors import InputError
from dpassay.pipeline.distributions import Distribution, Laplace
from dpassay.pipeline.regions import Array, Categories, Everything, Pair, Region, Repeated
from dpassay.pipeline.stages.base import NoiseStage, OutputRegion, Stage
from dpassay.pipeline.stages.noises.additive import Additive
from dpassay.pipeline.syntax import NORM, NORMS, Syntax, positive
from dpassay.values import dataclass


@dataclass(frozen=True)
class Radial(NoiseStage):
    """Add one noise vector z of density proportional to e^(-norm(z)/scale).

    In l1 this is Laplace noise on each coordinate. docs/proofs/radial.md.

    >>> round(Radial("l2", 2).deviation(32), 2), round(Radial("linf", 2).deviation(32), 2)
    (11.49, 38.68)
    """

    syntax = Syntax("radial", order=175, norm=NORM, scale=positive("radial: scale"))
    keeps = "all"
    outweighs_noise = True
    adds_to_vectors = True
    depends_on_dimension = True
    norm: str
    scale: Number

    @property
    def q(self) -> float:
        """The norm's number: 1, 2 or ∞."""
        return NORMS[self.norm]

    def diameter(self, region: Region) -> Number:
        """The largest distance between two vectors of a region in the norm of the noise; an interval around it."""
        return region.diameter(self.q)

    def distance(self, pair: Pair) -> Number:
        """The distance between two vectors in the norm of the noise."""
        return pair.distance(self.q)

    @property
    def one_dimensional(self) -> Number:
        """On one number it is Laplace noise, of this scale."""
        return self.scale

    def output_region(self, before: OutputRegion) -> OutputRegion:
        """Anything. Unbounded values can swamp the noise, so they stay unbounded."""
        if isinstance(before.region, Categories):
            raise InputError("noise cannot be added to a category's name: put onehot(k) before it")
        if isinstance(before.region, Repeated) and self.norm != "l1":
            raise InputError(
                f"{self.name} draws its noise for the whole vector at once, but repeat gives each copy its own "
                "noise; leave "
                "repeat out and compose the mechanism with itself (dpassay compose '... x N')"
            )
        return OutputRegion(Everything(before.region.dim), before.exact and isinstance(before.region, Everything))

    def run(self, batch: Any, rng: np.random.Generator) -> Any:
        batch = np.asarray(batch, dtype=float)
        return batch + draw(self.norm, middle(self.scale), batch.shape, rng)

    def distribution(self, value: Array) -> Distribution:
        same = in_dimension(self, len(value))
        return same.distribution(value) if isinstance(same, Additive) else ShiftedRadial(self, value)

    def deviation(self, dim: int) -> float:
        """The standard deviation of each coordinate of the noise."""
        variance = {"l1": 2.0, "l2": dim + 1.0, "linf": (dim + 1.0) * (dim + 2.0) / 3}
        return math.sqrt(variance[self.norm]) * middle(self.scale)


def in_dimension(stage: Stage, dim: int) -> Stage:
    """Laplace noise on each coordinate instead of radial noise, if that is the same; otherwise the stage unchanged.

    >>> str(in_dimension(Radial("l2", 3), 1)), str(in_dimension(Radial("l2", 3), 2))
    ('laplace(3)', 'radial(l2, 3)')
    """
    same = isinstance(stage, Radial) and (dim == 1 or stage.norm == "l1")
    return Additive(Laplace(stage.one_dimensional)) if isinstance(stage, Radial) and same else stage


def draw(norm: str, scale: float, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Draw noise vectors, one per row of the shape.

    The length is Gamma(n) times the scale, the direction that of a uniform point of the ball; or, equivalently, a
    uniform point of the ball times Gamma(n + 1).
    """
    dim, rows = shape[-1], (*shape[:-1], 1)
    if norm == "l1":
        return rng.laplace(scale=scale, size=shape)
    if norm == "linf":
        return np.asarray(rng.gamma(dim + 1, scale, size=rows) * rng.uniform(-1, 1, size=shape))
    direction = rng.standard_normal(size=shape)
    return np.asarray(rng.gamma(dim, scale, size=rows) * direction / np.linalg.norm(direction, axis=-1, keepdims=True))


@dataclass(frozen=True)
class ShiftedRadial:
    """Radial noise added to a vector.

    >>> noisy = ShiftedRadial(Radial("linf", 1), np.zeros(2))
    >>> noisy.log_likelihood(np.array([[0.5, -1.0]])).round(6).tolist()  # -1 - ln(2! * 2^2)
    [-3.079442]
    """

    noise: Radial
    centre: Array

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Draw n outputs, one per row."""
        return self.centre + draw(self.noise.norm, middle(self.noise.scale), (n, len(self.centre)), rng)

    def log_likelihood(self, outputs: Array) -> Array:
        """-norm/scale - ln(n! scale^n V), V the volume of the norm's unit ball."""
        n, scale = len(self.centre), middle(self.noise.scale)
        half = n * math.log(math.pi) / 2 - math.lgamma(n / 2 + 1)
        volume = {"l1": n * math.log(2) - math.lgamma(n + 1), "l2": half, "linf": n * math.log(2)}[self.noise.norm]
        length = np.linalg.norm(np.asarray(outputs) - self.centre, ord=self.noise.q, axis=-1)
        return np.asarray(-length / scale - n * math.log(scale) - math.lgamma(n + 1) - volume)
