"""Random directions: noise on the unit sphere around a unit vector. docs/proofs/sphere.md."""

import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from dpassay.core.functions.log_concave import log_integral
from dpassay.core.numbers import PI, Number, middle
from dpassay.errors import InputError
from dpassay.pipeline.distributions import Distribution
from dpassay.pipeline.regions import Array, Sphere
from dpassay.pipeline.stages.base import NoiseStage, OutputRegion
from dpassay.pipeline.syntax import Syntax, positive
from dpassay.values import dataclass

_UNIT = 1e-6  # how far from 1 the length of a unit vector may be: vectors are often stored in single precision


@dataclass(frozen=True)
class Hemisphere:
    """Half of the sphere around a pole, in one coordinate from 0 (the pole) to `end` (the equator).

    `near` is the logarithm of the coordinate's density under the law around this pole, not normalized, and `loss` that
    of its ratio to the law around the opposite pole, which decreases. `reach` is where a loss is attained. `error`
    bounds the rounding errors of `near` and `loss`. `near` is concave, and so is `near − loss` unless it is `convex`.
    """

    near: Callable[[Array], Array]
    loss: Callable[[Array], Array]
    reach: Callable[[float], float]
    end: float
    error: float
    convex: bool = False

    def log_total(self) -> tuple[float, float]:
        """Bounds on the logarithm of the integral over both halves, each around its pole."""
        near = log_integral(self.near, 0.0, self.end, self.error)
        far = log_integral(lambda c: self.near(c) - self.loss(c), 0.0, self.end, 2 * self.error, self.convex)
        low, high = (float(np.logaddexp(one, other)) for one, other in zip(near, far, strict=True))
        return low - 1e-12, high + 1e-12  # the equator is this close to `end`


@dataclass(frozen=True)
class Direction(NoiseStage):
    """A random unit vector around the input, a unit vector; a zero vector is treated as the first axis."""

    takes_unit_vectors = True
    by_distance: ClassVar[bool] = False  # the loss of two vectors is kappa times their distance, not their angle
    kappa: Number

    @property
    def largest_loss(self) -> Number:
        """The loss between opposite vectors, which no other pair exceeds."""
        raise NotImplementedError

    def half(self, dim: int) -> Hemisphere:
        """Its law on half of the sphere."""
        raise NotImplementedError

    def log_density(self, cosine: Array, gap: Array) -> Array:
        """The logarithm of the density, not normalized, by the cosine of the angle and the distance to the center."""
        raise NotImplementedError

    def draw(self, dim: int, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Draw the cosine and sine of the angle between center and output, one pair per output."""
        raise NotImplementedError

    def output_region(self, before: OutputRegion) -> OutputRegion:
        """The sphere; the noise reaches all of it from everywhere."""
        if not isinstance(before.region, Sphere):
            raise InputError(f"{self.name} needs unit vectors: put normalise(l2) right before it")
        if before.region.dim == 1:
            raise InputError(f"{self.name} needs vectors of at least two dimensions: pass dim=N")
        return OutputRegion(before.region, exact=False)

    def run(self, batch: Any, rng: np.random.Generator) -> Any:
        centres = _unit_vectors(batch, self.name)
        rows = centres.reshape(-1, centres.shape[-1])
        cosine, sine = self.draw(rows.shape[1], len(rows), rng)
        other = rng.standard_normal(rows.shape)
        other -= np.sum(other * rows, axis=1, keepdims=True) * rows
        other /= np.linalg.norm(other, axis=1, keepdims=True)
        return (cosine[:, None] * rows + sine[:, None] * other).reshape(centres.shape)

    def distribution(self, value: Array) -> Distribution:
        return Around(self, _unit_vectors(value, self.name))


def _unit_vectors(batch: Any, name: str) -> Array:
    vectors = np.array(batch, dtype=float)
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    if not np.all((np.abs(length - 1) < _UNIT) | (length == 0)):
        raise InputError(f"{name} needs unit vectors, got one of length {float(length.max()):.6g}: use normalise(l2)")
    first = np.zeros(vectors.shape[-1])
    first[0] = 1.0
    return np.where(length == 0, first, vectors / np.where(length == 0, 1.0, length))


@dataclass(frozen=True)
class VonMisesFisher(Direction):
    """Draw a unit vector z around the unit vector x, of density proportional to e^(kappa·<x, z>).

    >>> print(VonMisesFisher("0.5"), middle(VonMisesFisher("0.5").largest_loss))
    vmf(0.5) 1.0
    """

    syntax = Syntax("vmf", order=195, kappa=positive("vmf: kappa"))
    by_distance = True

    @property
    def largest_loss(self) -> Number:
        return 2 * self.kappa

    def half(self, dim: int) -> Hemisphere:
        """In 1 − cosine; on a circle in the angle, since there 1 − cosine has an unbounded density at the pole."""
        kappa = middle(self.kappa)
        error = 2.0**-49 * (kappa + 50 * dim)
        if dim == 2:
            return Hemisphere(
                lambda a: kappa * np.cos(a),
                lambda a: 2 * kappa * np.cos(a),
                lambda loss: math.acos(min(1.0, loss / (2 * kappa))),
                math.pi / 2,
                error,
                convex=True,
            )
        power = (dim - 3) / 2

        def near(c: Array) -> Array:
            return kappa * (1 - c) + (power * (np.log(c) + np.log(2 - c)) if power else 0.0)

        return Hemisphere(near, lambda c: 2 * kappa * (1 - c), lambda loss: 1 - loss / (2 * kappa), 1.0, error)

    def log_density(self, cosine: Array, gap: Array) -> Array:
        return middle(self.kappa) * cosine

    def draw(self, dim: int, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """By rejection from a law with the same mode (Wood 1994), in 1 − cosine, which is precise near 0."""
        kappa, n = middle(self.kappa), dim - 1
        b = n / (2 * kappa + math.hypot(2 * kappa, n))
        far = 2 * b / (1 + b)  # 1 − x₀
        gaps = np.empty(count)
        left = np.arange(count)
        while len(left):
            beta = rng.beta(n / 2, n / 2, size=len(left))
            gap = 2 * b * beta / (1 - (1 - b) * beta)
            ratio = np.log((far + (1 - far) * gap) / (far * (2 - far)))
            accepted = kappa * (far - gap) + n * ratio >= np.log1p(-rng.uniform(size=len(left)))
            gaps[left[accepted]] = gap[accepted]
            left = left[~accepted]
        return 1 - gaps, np.sqrt(gaps * (2 - gaps))


@dataclass(frozen=True)
class Purkayastha(Direction):
    """Draw a unit vector z around the unit vector x, of density proportional to e^(-kappa·angle(x, z)).

    >>> print(Purkayastha(2), round(middle(Purkayastha(2).largest_loss), 6))
    purkayastha(2) 6.283185
    """

    syntax = Syntax("purkayastha", order=196, kappa=positive("purkayastha: kappa"))

    @property
    def largest_loss(self) -> Number:
        return self.kappa * +PI

    def half(self, dim: int) -> Hemisphere:
        kappa, power = middle(self.kappa), dim - 2
        return Hemisphere(
            lambda a: -kappa * a + (power * np.log(np.sin(a)) if power else 0.0),
            lambda a: kappa * (math.pi - 2 * a),
            lambda loss: (math.pi - loss / kappa) / 2,
            math.pi / 2,
            2.0**-49 * (4 * kappa + 50 * dim),
        )

    def log_density(self, cosine: Array, gap: Array) -> Array:
        return -middle(self.kappa) * 2 * np.arctan2(gap, np.sqrt(np.maximum(0.0, 4 - gap * gap)))

    def draw(self, dim: int, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """The angle has density e^(-kappa·a) sin^(n-2)(a), whose logarithm lies below its tangents."""
        kappa, power = middle(self.kappa), dim - 2
        mode = math.atan2(power, kappa)
        around = mode + math.sin(mode) / math.sqrt(max(1, power)) * np.array([-4, -2, -1, -0.4, 0, 0.4, 1, 2, 4])
        points = around[(around > mode / 8) & (around < (math.pi + 7 * mode) / 8)] if power else np.array([1.0])

        def phi(a: Array) -> Array:
            return -kappa * a + (power * np.log(np.sin(a)) if power else 0.0)

        angles = _below_tangents(phi, points, -kappa + power / np.tan(points), math.pi, count, rng)
        return np.cos(angles), np.sin(angles)


def _below_tangents(
    phi: Callable[[Array], Array], points: Array, slopes: Array, end: float, count: int, rng: np.random.Generator
) -> Array:
    """Draws from a density e^φ on (0, end), φ concave: from its tangents at some points, kept with e^(φ − tangent)."""
    values = phi(points)
    crossings = np.diff(values - slopes * points) / -np.diff(slopes)
    edges = np.concatenate([[0.0], crossings, [end]])
    tops = values + np.maximum(slopes * (edges[:-1] - points), slopes * (edges[1:] - points))
    width, steep = np.diff(edges), np.maximum(np.abs(slopes), 1e-300)
    masses = np.exp(tops - tops.max()) * -np.expm1(-steep * width) / steep
    angles, left = np.empty(count), np.arange(count)
    while len(left):
        piece = rng.choice(len(points), size=len(left), p=masses / masses.sum())
        inside = -np.log1p(rng.uniform(size=len(left)) * np.expm1(-steep[piece] * width[piece])) / steep[piece]
        angle = np.where(slopes[piece] > 0, edges[piece + 1] - inside, edges[piece] + inside)
        tangent = values[piece] + slopes[piece] * (angle - points[piece])
        with np.errstate(all="ignore"):
            accepted = phi(angle) - tangent >= np.log1p(-rng.uniform(size=len(left)))
        angles[left[accepted]] = angle[accepted]
        left = left[~accepted]
    return angles


@dataclass(frozen=True)
class Around:
    """A random direction around one unit vector.

    >>> law = Around(VonMisesFisher(1), np.array([1.0, 0.0, 0.0]))
    >>> law.log_likelihood(np.array([[1.0, 0.0, 0.0]])).round(5).tolist()  # 1 - ln(4 pi sinh 1)
    [-1.69246]
    """

    noise: Direction
    centre: Array

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Draw n outputs, one per row."""
        return np.asarray(self.noise.run(np.tile(self.centre, (n, 1)), rng))

    def log_likelihood(self, outputs: Array) -> Array:
        """By the area of the sphere; for a vector that does not lie on it, the direction counts."""
        n = len(self.centre)
        z = _unit_vectors(outputs, "the density")
        density = self.noise.log_density(z @ self.centre, np.linalg.norm(z - self.centre, axis=-1))
        equator = math.log(2) + (n - 1) / 2 * math.log(math.pi) - math.lgamma((n - 1) / 2)  # the area of its sphere
        return np.asarray(density - equator - sum(self.noise.half(n).log_total()) / 2)
