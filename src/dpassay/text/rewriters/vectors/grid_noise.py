"""Discrete Gaussian noise on the integers of a cube, for releasing numbers that were clipped one by one.

Clipped to [−C, C], numbers become integer multiples of a step C/R, from −R to R exactly, so two vectors are at most
2R√n apart in l2, and OpenDP's discrete Gaussian noise hides that by its own privacy map (docs/proofs/grid.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpassay.text.rewriters.vectors.release import (
    LEAST_SCALE,
    discrete_gaussian,
    discrete_gaussian_epsilon,
    opendp_version,
)

LEAST_RADIUS, MOST_RADIUS = 2**8, 2**21


@dataclass(frozen=True)
class CubeNoise:
    """Noise for `dim` numbers in [−clip, clip].

    The scale is the smallest one for (`epsilon`, δ) by OpenDP's map, or σ's if there is no `epsilon`.
    """

    clip: float
    dim: int
    sigma: float
    delta: float
    epsilon: float | None = None

    @cached_property
    def radius(self) -> int:
        """The clip in steps: a power of two at which the noise is at least 256 steps, where possible."""
        radius = LEAST_RADIUS
        while radius < MOST_RADIUS and self.sigma / self.clip * radius < LEAST_SCALE:
            radius *= 2
        return radius

    @property
    def distance(self) -> int:
        """The largest l2 distance between two vectors, in steps, rounded up."""
        square = 4 * self.radius**2 * self.dim
        root = math.isqrt(square)
        return root + (root * root < square)

    @cached_property
    def scale(self) -> int:
        """The standard deviation in steps."""
        scale = max(1, math.ceil(self.sigma / self.clip * self.radius))
        while self.epsilon is not None and self.kept(scale) > self.epsilon:
            scale += max(1, scale // 256)
        return scale

    def kept(self, scale: int) -> float:
        """The ε of this scale, by OpenDP's map."""
        return discrete_gaussian_epsilon(scale, self.distance, self.delta)

    def release(self, clipped: NDArray[np.float64]) -> NDArray[np.float64]:
        """Noisy rows that may be released."""
        steps = np.trunc(clipped / self.clip * self.radius).clip(-self.radius, self.radius).astype(np.int64)
        drawn = np.array(discrete_gaussian(self.scale, steps.size), dtype=np.int64).reshape(steps.shape)
        return (steps + drawn).astype(np.float64) * (self.clip / self.radius)

    def to_dict(self) -> dict[str, Any]:
        """What is drawn, ready for JSON."""
        step = self.clip / self.radius
        return {
            "sampler": f"{opendp_version()} discrete Gaussian",
            "grid_step": step,
            "integer_radius": self.radius,
            "integer_scale": self.scale,
            "integer_sensitivity": self.distance,
            "sensitivity_norm": "l2",
            "scale": self.scale * step,
            "least_continuous_scale": self.sigma,
            "epsilon_by_opendp": self.kept(self.scale),
        }
