"""Radial noise in a Mahalanobis norm, that of a covariance matrix."""

import math
from dataclasses import field
from typing import Any

import numpy as np

from dpassay.core.numbers import Number, between, maximum, middle, sqrt
from dpassay.errors import InputError
from dpassay.pipeline.distributions import Distribution
from dpassay.pipeline.regions import Array, Pair, Region
from dpassay.pipeline.stages.noises.radial import Radial, ShiftedRadial, draw
from dpassay.pipeline.syntax import Syntax, positive
from dpassay.values import dataclass


@dataclass(frozen=True)
class Mahalanobis(Radial):
    """Add one noise vector z of density proportional to e^(-m/scale), m = sqrt(z·S^-1·z), S with these eigenvalues.

    S is a diagonal matrix, its diagonal evenly spaced from the smallest to the largest eigenvalue. In l2 and in the
    norm m, all statements hold for every matrix with these two. docs/proofs/radial.md, point 6.

    >>> noise = Mahalanobis(1, "0.25", 4)
    >>> print(noise, middle(noise.distance(Pair.of([1.0, 0.0], [0.0, 0.0]))))
    mahalanobis(1, 0.25, 4) 2.0
    """

    syntax = Syntax(
        "mahalanobis",
        order=177,
        scale=positive("mahalanobis: scale"),
        least=positive("mahalanobis: least eigenvalue"),
        largest=positive("mahalanobis: largest eigenvalue"),
    )
    norm: str = field(init=False, repr=False, default="mahalanobis")
    scale: Number
    least: Number
    largest: Number

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.least.a > self.largest.b:
            given = f"{middle(self.least):g} and {middle(self.largest):g}"
            raise InputError(f"mahalanobis needs the least eigenvalue first, then the largest one, got {given}")

    @property
    def q(self) -> float:
        """It is the l2 norm of scaled coordinates."""
        return 2.0

    @property
    def one_dimensional(self) -> Number:
        return self.scale * sqrt(self.least)

    def diameter(self, region: Region) -> Number:
        """From a pair's distance to the l2 diameter in the direction in which the norm is largest."""
        most = region.diameter(2) / sqrt(self.least)
        shown = maximum(*(self.distance(region.farthest(q)) for q in (1.0, 2.0, float("inf"))))
        return between(shown, most) if shown.a <= most.b else most

    def distance(self, pair: Pair) -> Number:
        """Exact for pairs that differ only in the first coordinate, where the eigenvalue is smallest; else bounds."""
        first = pair.blocks[0]
        if first.count == 1 and first.positions == "all" and all(block.same for block in pair.blocks[1:]):
            return abs(first.gap) / sqrt(self.least)
        length = pair.distance(2)
        return between(length / sqrt(self.largest), length / sqrt(self.least))

    def roots(self, dim: int) -> Array:
        """The square roots of the eigenvalues."""
        return np.sqrt(np.linspace(middle(self.least), middle(self.largest), dim))

    def run(self, batch: Any, rng: np.random.Generator) -> Any:
        batch = np.asarray(batch, dtype=float)
        return batch + draw("l2", middle(self.scale), batch.shape, rng) * self.roots(batch.shape[-1])

    def distribution(self, value: Array) -> Distribution:
        return ShiftedMahalanobis(self, value)

    def deviation(self, dim: int) -> float:
        """The root of the mean variance of its coordinates."""
        return math.sqrt((dim + 1) * float(np.mean(self.roots(dim) ** 2))) * middle(self.scale)


@dataclass(frozen=True)
class ShiftedMahalanobis:
    """Such noise added to a vector.

    >>> noisy = ShiftedMahalanobis(Mahalanobis(1, 4, 4), np.zeros(1))
    >>> noisy.log_likelihood(np.array([[2.0]])).round(6).tolist()  # Laplace noise of scale 2: -1 - ln 4
    [-2.386294]
    """

    noise: Mahalanobis
    centre: Array

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Draw n outputs, one per row."""
        return np.asarray(self.noise.run(np.tile(self.centre, (n, 1)), rng))

    def log_likelihood(self, outputs: Array) -> Array:
        """The log density of l2 noise in coordinates divided by the roots of the eigenvalues."""
        roots = self.noise.roots(len(self.centre))
        plain = ShiftedRadial(Radial("l2", self.noise.scale), self.centre / roots)
        return plain.log_likelihood(np.asarray(outputs) / roots) - float(np.log(roots).sum())
