"""The noise of a text rewriter: latent vectors are clipped and get noise; decoding them is post-processing.

Laplace and Gaussian noise in released outputs is drawn by OpenDP on integers, so that no floating-point rounding
affects the guarantee (docs/proofs/grid.md). OpenDP has neither K-norm nor von Mises-Fisher noise: those are drawn in
double precision, and their guarantee is that of real numbers. Numpy's noise is only for audits and simulations.
"""

import importlib
import math
import secrets
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from fractions import Fraction
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpassay.compute.threads import in_threads
from dpassay.core.numbers import number, sqrt
from dpassay.core.theorems import Theorem
from dpassay.errors import InputError
from dpassay.exact import calibrate
from dpassay.pipeline.stages.noises.directions import VonMisesFisher
from dpassay.pipeline.stages.noises.radial import draw as radial_noise

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# The grid. OpenDP draws as fast on a fine grid as on a coarse one (benchmarks/release.py), and the guarantee is exact
# on each. So the grid is fine enough to cost nothing: the clip is at least 4096 steps, and the noise at least 256.
# That also keeps an integer scale within 1/256 of the smallest one. With these limits a sum of squares fits in 63 bits.
LEAST_RADIUS, MOST_RADIUS = 2**12, 2**21
LEAST_SCALE = 256
LEAST_DRAWS = 2048  # for a thread: some 30 ms
MOST_DIM = 2**20


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a mechanism clips, which noise it adds, and whether the noise accounts for the factor √n.

    >>> RECIPES["l1"].norm
    1
    """

    norm: int
    noise: str
    widened: bool = False
    proofs: tuple[Theorem, ...] = (Theorem.LAPLACE, Theorem.DIAMETERS)
    pipeline: str = "clip(l2, C) | laplace(2*C/eps)"  # in the language of `dpassay check`

    @property
    def on_grid(self) -> bool:
        """Whether OpenDP draws its noise."""
        return self.noise in ("Laplace", "Gaussian")

    def distance(self, radius: int, dim: int) -> int:
        """The largest distance between two integer vectors of the ball, in the norm that the noise must hide.

        >>> RECIPES["adept-as-published"].distance(100, 64), RECIPES["gaussian"].distance(100, 64)
        (1600, 200)
        """
        wide = self.noise == "Laplace" and self.norm == 2
        return math.isqrt(4 * radius**2 * dim) if wide else 2 * radius

    def hidden(self, radius: int, dim: int) -> int:
        """The distance that the noise is scaled to: smaller than `distance` in ADePT as published.

        >>> RECIPES["adept-as-published"].hidden(100, 64), RECIPES["sqrt-n"].hidden(100, 64)
        (200, 1600)
        """
        return self.distance(radius, dim) if self.widened else 2 * radius


RECIPES = {
    "gaussian": Recipe(
        2, "Gaussian", proofs=(Theorem.GAUSSIAN,), pipeline="clip(l2, C) | gaussian(least_sigma(eps, delta, 2*C))"
    ),
    "l1": Recipe(1, "Laplace", pipeline="clip(l1, C) | laplace(2*C/eps)"),
    "sqrt-n": Recipe(2, "Laplace", widened=True, pipeline="clip(l2, C) | laplace(2*C*sqrt(dim)/eps)"),
    "k-norm": Recipe(2, "K-norm", proofs=(Theorem.RADIAL,), pipeline="clip(l2, C) | radial(l2, 2*C/eps)"),
    "vmf": Recipe(2, "von Mises-Fisher", proofs=(Theorem.SPHERE,), pipeline="normalise(l2) | vmf(eps/2)"),
    "adept-as-published": Recipe(2, "Laplace"),
}
MECHANISMS = tuple(RECIPES)


@dataclass(frozen=True, slots=True)
class Release:
    """A mechanism with its guarantee: clip each latent vector and add noise; a decoder does the rest.

    >>> private = Release("l1", epsilon=2, dim=3, clip=1)
    >>> private.scale()
    1.0
    >>> private.bounded([[3, -1, 0]]).tolist()
    [[0.75, -0.25, 0.0]]
    """

    mechanism: str
    epsilon: float
    delta: float = 0.0
    dim: int = 64
    clip: float = 1.0

    def __post_init__(self) -> None:
        if self.mechanism not in RECIPES:
            begun = [name for name in MECHANISMS if self.mechanism and name.startswith(str(self.mechanism))]
            near = begun or get_close_matches(str(self.mechanism), MECHANISMS, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise InputError(f"unknown mechanism {self.mechanism!r}; {hint}there are {', '.join(MECHANISMS)}")
        object.__setattr__(self, "epsilon", _within(self.epsilon, "epsilon", 1e-6, 1e4))
        object.__setattr__(self, "clip", _within(self.clip, "clip", 1e-100, 1e100))
        object.__setattr__(self, "delta", _delta(self.mechanism, self.delta))
        dim = _within(self.dim, "dim", 1, MOST_DIM)
        if dim != int(dim):
            raise InputError(f"dim must be a whole number, got {self.dim!r}")
        object.__setattr__(self, "dim", int(dim))

    @property
    def recipe(self) -> Recipe:
        """How the mechanism clips and which noise it adds."""
        return RECIPES[self.mechanism]

    def scale(self) -> float:
        """The scale of the continuous noise; for the Gaussian, the smallest standard deviation by the exact formula.

        For von Mises-Fisher noise it is 1/κ, in units of the clipping norm.

        >>> Release("sqrt-n", epsilon=1).scale(), round(Release("gaussian", 1, 1e-6).scale(), 4)
        (16.0, 8.4494)
        """
        return _continuous_scale(self)

    def bounded(self, latents: ArrayLike) -> Floats:
        """The vectors, one per row, clipped in the norm of the mechanism (up to the rounding of a double).

        >>> Release("gaussian", 1, 1e-6, dim=2, clip=5).bounded([[30, 40], [1, 2]]).tolist()
        [[3.0, 4.0], [1.0, 2.0]]
        """
        rows = self._rows(latents)
        largest = np.abs(rows).max(axis=1, keepdims=True, initial=0.0)
        # Each row is divided by its largest entry, so that squares neither overflow nor underflow.
        shape = rows / np.where(largest > 0, largest, 1.0)
        length = np.abs(shape).sum(axis=1) if self.recipe.norm == 1 else np.sqrt((shape**2).sum(axis=1))
        if self.mechanism == "vmf":  # only the direction is kept; for a zero vector, the first axis
            shape[:, 0] = np.where(largest[:, 0] > 0, shape[:, 0], 1.0)
            return np.asarray(shape * (self.clip / np.maximum(length, 1.0)[:, None]))
        most = self.clip / np.maximum(length, 1.0)[:, None]
        return np.where(largest <= most, rows, shape * most)

    def sample(self, latents: ArrayLike, rng: np.random.Generator) -> Floats:
        """Noisy vectors for audits: numpy's continuous noise, fast, and not safe to release.

        >>> Release("l1", 1, dim=2).sample([[0, 0]], np.random.default_rng(1)).shape
        (1, 2)
        """
        centre, scale = self.bounded(latents), self.scale()
        if self.recipe.noise == "K-norm":
            return centre + radial_noise("l2", scale, centre.shape, rng)
        if self.recipe.noise == "von Mises-Fisher":
            return np.asarray(VonMisesFisher(number(1 / scale)).run(centre / self.clip, rng) * self.clip)
        draw = rng.normal if self.recipe.noise == "Gaussian" else rng.laplace
        return centre + draw(0.0, scale, centre.shape)

    def release(self, latents: ArrayLike) -> Floats:
        """Noisy vectors that may be released: OpenDP's noise, on integer multiples of the grid's step.

        K-norm and von Mises-Fisher noise is drawn in double precision, from the randomness of the operating system.
        Each utterance is its own data set. Releasing the same one again spends its epsilon again.
        """
        if not self.recipe.on_grid:
            return self.sample(latents, np.random.default_rng(secrets.randbits(256)))
        noise = integer_noise(self)
        centre = to_grid(self.bounded(latents), self.clip, noise.radius, self.recipe.norm)
        if not centre.size:
            return centre.astype(np.float64)
        drawn = in_threads(noise.measurement, centre.ravel(), LEAST_DRAWS).reshape(centre.shape)
        return drawn.astype(np.float64) * (self.clip / noise.radius)

    @property
    def true_epsilon(self) -> float:
        """The ε that holds: the claimed one, times what the noise must hide over what it is scaled to.

        >>> Release("adept-as-published", 100, dim=64).true_epsilon, Release("l1", 100, dim=64).true_epsilon
        (800.0, 100.0)
        """
        recipe = self.recipe
        too_narrow = recipe.noise == "Laplace" and recipe.norm == 2 and not recipe.widened
        return self.epsilon * math.sqrt(self.dim) if too_narrow else self.epsilon

    @property
    def proofs(self) -> tuple[str, ...]:
        """The pages that the guarantee of `release` rests on."""
        grid = (Theorem.GRID,) if self.recipe.on_grid else ()
        return tuple(proof.page for proof in (*grid, *self.recipe.proofs, Theorem.POST_PROCESSING))

    def statement(self) -> dict[str, Any]:
        """What `release` does, ready for JSON."""
        return {
            "mechanism": self.mechanism,
            "parameter": {"epsilon": self.epsilon, "delta": self.delta, "per": "text, as its authors define it"},
            "dim": self.dim,
            "clip": self.clip,
            "clip_norm": f"l{self.recipe.norm}",
            "drawn": self._drawn(),
        }

    def _drawn(self) -> dict[str, Any]:
        recipe = self.recipe
        if not recipe.on_grid:
            return {"sampler": f"numpy {np.__version__}, {recipe.noise}, in double precision", "scale": self.scale()}
        noise = integer_noise(self)
        step = self.clip / noise.radius
        return {
            "sampler": f"{opendp_version()} discrete {recipe.noise}",
            "grid_step": step,
            "integer_radius": noise.radius,
            "integer_scale": noise.scale,
            "integer_sensitivity": noise.distance,
            "sensitivity_norm": "l2" if recipe.noise == "Gaussian" else "l1",
            "scale": noise.scale * step,
            "least_continuous_scale": self.scale(),
            "epsilon_by_opendp": noise.epsilon,
        }

    def _rows(self, latents: ArrayLike) -> Floats:
        try:
            rows = np.asarray(latents, dtype=np.float64)
        except (TypeError, ValueError, RuntimeError) as error:
            raise InputError(f"latents must be an array of numbers, one row per utterance: {error}") from None
        if rows.ndim != 2 or rows.shape[1] != self.dim:
            raise InputError(f"latents must have a row of {self.dim} numbers per utterance, got shape {rows.shape}")
        if not np.isfinite(rows).all():
            bad = int(np.argmin(np.isfinite(rows).all(axis=1)))
            raise InputError(f"latents must be finite, row {bad} is not: look for a division by 0 in the encoder")
        return rows


def to_grid(vectors: Floats, clip: float, radius: int, norm: int) -> Integers:
    """Clipped vectors in steps of clip/radius, rounded toward zero, with a norm of at most `radius`, exactly.

    >>> to_grid(np.array([[0.6, -0.8]]), 1.0, 4096, 2).tolist()
    [[2457, -3276]]
    """
    whole = np.trunc(vectors / clip * radius).clip(-radius, radius).astype(np.int64)
    # Rounded to a double, a clipped vector can lie slightly outside; a step inward brings it back.
    while (outside := norm_exceeds(whole, radius, norm)).any():
        whole[outside] -= np.sign(whole[outside])
    return whole


def norm_exceeds(whole: Integers, radius: int, norm: int) -> NDArray[np.bool_]:
    """Which rows have a norm above the radius, in integers: sum |x| > R, or sum x² > R².

    >>> norm_exceeds(np.array([[3, 4], [3, 5]]), 5, 2).tolist()
    [False, True]
    """
    if norm == 1:
        return np.asarray(np.abs(whole).sum(axis=1) > radius)
    return np.asarray((whole**2).sum(axis=1) > radius**2)


@dataclass(frozen=True, slots=True)
class IntegerNoise:
    """OpenDP's measurement, and its privacy map at the two distances."""

    measurement: Callable[[Integers], list[int]]
    radius: int
    scale: int
    distance: int
    hidden: int
    epsilon: float
    claimed: float


@lru_cache(maxsize=256)
def integer_noise(release: Release) -> IntegerNoise:
    """The integer noise that meets the guarantee by OpenDP's own privacy map, built once for each release."""
    recipe, radius = release.recipe, LEAST_RADIUS
    while radius < MOST_RADIUS and release.scale() / release.clip * radius < LEAST_SCALE:
        radius *= 2
    distance, hidden = recipe.distance(radius, release.dim), recipe.hidden(radius, release.dim)
    if recipe.noise == "Gaussian":
        measured, low = _gaussian, int(release.scale() / release.clip * radius / 2)
    else:
        measured, low = _laplace, math.ceil(hidden / Fraction(release.epsilon)) - 1
    scale = _least(lambda scale: measured(scale)[1](hidden, release.delta) <= release.epsilon, low)
    measurement, epsilon_at = measured(scale)
    epsilon, claimed = (epsilon_at(far, release.delta) for far in (distance, hidden))
    return IntegerNoise(measurement, radius, scale, distance, hidden, epsilon, claimed)


Measured = tuple[Callable[[Integers], list[int]], Callable[[int, float], float]]


def _laplace(scale: int) -> Measured:
    """OpenDP's discrete Laplace noise, and ε as a function of the l1 distance."""
    dp = _opendp()
    measurement = dp.m.make_laplace(dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64"), float(scale))
    return measurement, lambda distance, _: float(measurement.map(distance))


def _gaussian(scale: int) -> Measured:
    """OpenDP's discrete Gaussian noise, and ε as a function of the l2 distance and δ."""
    dp = _opendp()
    measurement = dp.m.make_gaussian(dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="i64"), float(scale))
    curve = dp.c.make_zCDP_to_approxDP(measurement)
    return measurement, lambda distance, delta: float(curve.map(distance).epsilon(delta))


def discrete_gaussian(scale: int, size: int) -> list[int]:
    """OpenDP's discrete Gaussian noise: as many integers as requested."""
    measurement, _ = _gaussian_of(scale)
    return list(measurement(np.zeros(size, dtype=np.int64)))


def discrete_gaussian_epsilon(scale: int, distance: int, delta: float) -> float:
    """The ε of that noise for integers at most this far apart in l2, by OpenDP's privacy map."""
    return _gaussian_of(scale)[1](distance, delta)


@lru_cache(maxsize=16)
def _gaussian_of(scale: int) -> Measured:
    return _gaussian(scale)


def _least(enough: Callable[[int], bool], low: int) -> int:
    """The smallest integer above `low` that passes a monotone test."""
    low, step = max(low, 0), 1
    while not enough(low + step):
        low, step = low + step, 2 * step
    return bisect_left(range(low + step), True, lo=low + 1, key=enough)


@lru_cache(maxsize=256)
def _continuous_scale(release: Release) -> float:
    if release.recipe.noise == "Gaussian":
        return calibrate.gaussian(release.epsilon, release.delta, 2 * number(release.clip))
    if release.recipe.noise == "von Mises-Fisher":  # opposite unit vectors lose 2κ
        return calibrate.laplace(release.epsilon, 0, 2)
    widening = sqrt(release.dim) if release.recipe.widened else 1
    return calibrate.laplace(release.epsilon, 0, 2 * number(release.clip) * widening)


def opendp_version() -> str:
    """OpenDP with its version; its files may be there without the record of an installation."""
    try:
        return f"OpenDP {version('opendp')}"
    except PackageNotFoundError:
        return "OpenDP of an unknown version,"


def _opendp() -> Any:
    """OpenDP, with the one feature its noise needs: `contrib`, which has not completed OpenDP's vetting."""
    try:
        dp = importlib.import_module("opendp.prelude")
    except ImportError:
        raise InputError(
            "noise in released outputs is drawn by OpenDP, which is not installed: pip install 'dpassay[release]'"
        ) from None
    dp.enable_features("contrib")
    return dp


def _within(value: Any, what: str, low: float, high: float) -> float:
    try:
        given = float(value)
    except (TypeError, ValueError, OverflowError):
        given = math.nan
    if not low <= given <= high:
        raise InputError(f"{what} must be a number from {low:g} to {high:g}, got {value!r}")
    return given


def _delta(mechanism: str, value: Any) -> float:
    if mechanism != "gaussian":
        if _within(value, "delta", 0, 1) != 0:
            raise InputError(f"{mechanism!r} guarantees pure DP: leave delta out, got {value!r}")
        return 0.0
    if not 0 < (delta := _within(value, "delta", 0, 1)) < 1:
        raise InputError(f"Gaussian noise needs a delta strictly between 0 and 1, such as 1e-6; got {value!r}")
    return delta
