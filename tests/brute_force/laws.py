"""The noises of one number, by their definitions: where their densities bend, and the mass of a piece of the line.

`x` is the value that the noise is added to, as a column; `low` and `high` are rows. Between two neighbouring `kinks` a
density is smooth, and a piece never reaches across one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr

Array = np.ndarray
Mass = Callable[[Array, Array, Array], Array]


@dataclass(frozen=True)
class Noise:
    """One noise: what it does to a value, apart from `lost`, the probability of NaN."""

    kinks: Array  # relative to the value, or absolute where the noise stays between limits
    mass: Mass  # of open intervals
    density: Callable[[Array, Array], Array]
    atoms: Array  # relative to the value
    weights: Array  # their probabilities
    reach: float  # hardly anything is farther away
    lost: float = 0.0
    limits: tuple[float, ...] = ()  # of the outputs, whatever the value is
    gaussian: bool = False
    moves: bool = True  # the loss depends only on how far the values are apart
    logarithms: Callable[[Array], Array] | None = None  # of the weights of whole numbers, without end
    jump: Callable[[Array], Array] | None = None  # how far the density's nearest jump is

    @property
    def discrete(self) -> bool:
        return len(self.atoms) > 0


NONE = np.zeros(0)


def _laplace_mass(b: float) -> Mass:
    def mass(x: Array, low: Array, high: Array) -> Array:
        a, c = (low - x) / b, (high - x) / b  # both at most 0 or both at least 0
        with np.errstate(invalid="ignore", over="ignore", under="ignore"):
            left, right = (
                0.5 * (np.exp(np.minimum(c, 0)) - np.exp(np.minimum(a, 0))),
                0.5 * (np.exp(-np.maximum(a, 0)) - np.exp(-np.maximum(c, 0))),
            )
        return np.where(c <= 1e-12, left, np.where(a >= -1e-12, right, left + right))

    return mass


def laplace(b: float) -> Noise:
    return Noise(np.zeros(1), _laplace_mass(b), lambda x, y: np.exp(-np.abs(y - x) / b) / (2 * b), NONE, NONE, 25 * b)


def gaussian(sigma: float) -> Noise:
    def mass(x: Array, low: Array, high: Array) -> Array:
        a, c = (low - x) / sigma, (high - x) / sigma
        return np.where(a > 0, ndtr(-a) - ndtr(-c), ndtr(c) - ndtr(a))

    def density(x: Array, y: Array) -> Array:
        return np.exp(-(((y - x) / sigma) ** 2) / 2) / sigma / np.sqrt(2 * np.pi)

    return Noise(np.zeros(1), mass, density, NONE, NONE, 7 * sigma, gaussian=True)


def onesided(b: float, zero: float, lost: float) -> Noise:
    rest = 1 - zero - lost

    def mass(x: Array, low: Array, high: Array) -> Array:
        return rest * (np.exp(-np.maximum(low - x, 0) / b) - np.exp(-np.maximum(high - x, 0) / b))

    def density(x: Array, y: Array) -> Array:
        return rest * np.where(y > x, np.exp(-np.maximum(y - x, 0) / b) / b, 0)

    atoms = (np.zeros(1), np.array([zero])) if zero else (NONE, NONE)
    return Noise(np.zeros(1), mass, density, *atoms, 25 * b, lost, jump=np.abs)


def leak(chance: float) -> Noise:
    def nothing(x: Array, low: Array, high: Array) -> Array:
        return np.zeros(np.broadcast_shapes(np.shape(x), np.shape(low)))

    return Noise(
        NONE,
        nothing,
        lambda x, y: np.zeros(np.broadcast_shapes(np.shape(x), np.shape(y))),
        np.zeros(1),
        np.array([chance]),
        1.0,
        1 - chance,
    )


def discrete(logarithms: Callable[[Array], Array], reach: int) -> Noise:
    """A whole number, with probabilities proportional to e^logarithms."""
    nothing = leak(1.0)
    t = np.arange(-reach, reach + 1).astype(float)
    weights = np.exp(logarithms(t))
    total = np.log(weights.sum())
    return Noise(
        NONE,
        nothing.mass,
        nothing.density,
        t,
        weights / weights.sum(),
        float(reach),
        logarithms=lambda t: logarithms(t) - total,
    )


def truncated_laplace(b: float, bound: float) -> Noise:
    plain, total = _laplace_mass(b), -np.expm1(-bound / b)

    def mass(x: Array, low: Array, high: Array) -> Array:
        a, c = np.clip(low, x - bound, x + bound), np.clip(high, x - bound, x + bound)
        return plain(x, a, c) / total

    def density(x: Array, y: Array) -> Array:
        return np.where(np.abs(y - x) < bound, np.exp(-np.abs(y - x) / b) / (2 * b * total), 0)

    return Noise(
        np.array([-bound, 0, bound]), mass, density, NONE, NONE, bound, jump=lambda z: np.abs(np.abs(z) - bound)
    )


def bounded_laplace(b: float, low_end: float, high_end: float) -> Noise:
    plain = _laplace_mass(b)

    def total(x: Array) -> Array:
        return plain(x, np.full_like(x, low_end), x) + plain(x, x, np.full_like(x, high_end))

    def mass(x: Array, low: Array, high: Array) -> Array:
        x = np.clip(x, low_end, high_end)  # beyond the ends the law stays the same
        a, c = np.clip(low, low_end, high_end), np.clip(high, low_end, high_end)
        return plain(x, a, c) / total(x)

    def density(x: Array, y: Array) -> Array:
        x = np.clip(x, low_end, high_end)
        return np.where((y > low_end) & (y < high_end), np.exp(-np.abs(y - x) / b) / (2 * b) / total(x), 0)

    return Noise(np.zeros(1), mass, density, NONE, NONE, high_end - low_end, limits=(low_end, high_end), moves=False)


def staircase(epsilon: float, width: float, gamma: float) -> Noise:
    """Height e^(−kε) from kΔ to (k+γ)Δ, and e^(−(k+1)ε) from there to (k+1)Δ, on both sides."""
    fall = np.exp(-epsilon)
    height = (1 - fall) / (2 * width * (gamma + fall * (1 - gamma)))
    steps = min(int(np.ceil(34 / epsilon)), 90)
    ends = np.unique(np.concatenate([width * np.arange(steps + 1), width * (np.arange(steps) + gamma)]))

    def density(x: Array, y: Array) -> Array:
        z = np.abs(y - x) / width
        k = np.floor(z)
        return height * np.exp(-epsilon * (k + (z - k >= gamma)))

    def above(z: Array) -> Array:
        """The mass beyond z ≥ 0."""
        with np.errstate(invalid="ignore"):
            k = np.where(np.isinf(z), 0, np.floor(z / width))
            part = np.where(np.isinf(z), 0, z / width - k)
        first = np.maximum(gamma - part, 0) + fall * (1 - np.maximum(part, gamma))
        rest = fall * (gamma + fall * (1 - gamma)) / (1 - fall)
        return np.where(np.isinf(z), 0, height * width * np.exp(-epsilon * k) * (first + rest))

    def mass(x: Array, low: Array, high: Array) -> Array:
        a, c = low - x, high - x
        right, left = np.maximum(a, 0), np.maximum(-c, 0)  # where it does not reach across x, one of them is 0
        beyond = np.where(c <= 0, above(left) - above(np.maximum(-a, 0)), above(right) - above(np.maximum(c, 0)))
        across = (a < 0) & (c > 0)
        return np.where(across, 1 - above(np.maximum(-a, 0)) - above(np.maximum(c, 0)), beyond)

    def jump(z: Array) -> Array:
        part = np.abs(z) / width % 1
        return width * np.minimum(np.minimum(part, 1 - part), np.abs(part - gamma))

    return Noise(np.concatenate([-ends[::-1], ends]), mass, density, NONE, NONE, steps * width, jump=jump)


def noise(name: str, given: dict[str, object]) -> Noise | None:
    """The noise of a stage on one number, or None where it has no law here, or one that reaches too far."""
    numbers = {key: float(value) for key, value in given.items() if not isinstance(value, str)}  # type: ignore[arg-type]
    if name in ("laplace", "radial"):
        return laplace(numbers["scale"])
    if name == "gaussian":
        return gaussian(numbers["sigma"])
    if name == "onesided":
        return onesided(numbers["scale"], numbers["zero"], numbers["lost"])
    if name == "leak":
        return leak(numbers["chance"])
    if name == "discrete_laplace":
        b = numbers["scale"]
        return discrete(lambda t: -np.abs(t) / b, int(30 * b + 2)) if b < 15 else None
    if name == "discrete_gaussian":
        sigma = numbers["sigma"]
        made = discrete(lambda t: -((t / sigma) ** 2) / 2, int(min(8 * sigma + 2, 402)))
        return replace(made, gaussian=True) if sigma < 50 else None
    if name == "truncated_laplace":
        return truncated_laplace(numbers["scale"], numbers["bound"])
    if name == "bounded_laplace":
        return bounded_laplace(numbers["scale"], numbers["low"], numbers["high"])
    if name == "staircase":
        long = numbers["epsilon"] < 0.3  # more steps than are laid out
        return None if long else staircase(numbers["epsilon"], numbers["sensitivity"], numbers["gamma"])
    return None
