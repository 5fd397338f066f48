"""Exact distributions of an output: noise on coordinates, bits, finite pmfs, mixtures with atoms.

A `Noise` is a distribution on the line, centered at 0; `Shifted` adds it independently to each
coordinate of a vector. `BitDistribution` and `Pmf` are the discrete distributions. Each can be sampled and gives the
log-likelihood of outputs. Noise on coordinates, and bits, can also be drawn and scored word by word, by a kernel.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from dpassay.compute.kernels import draws
from dpassay.compute.kernels.likelihood_ratio import LikelihoodRatioTable, of_bits, of_noise
from dpassay.core.numbers import ONE, ZERO, Number, digits, middle, number
from dpassay.errors import InputError
from dpassay.pipeline.pair import Array
from dpassay.pipeline.syntax import Syntax, Written, positive, written
from dpassay.values import dataclass


@runtime_checkable
class Distribution(Protocol):
    """The exact distribution of the output for one input."""

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Draw n outputs, one per row."""

    def log_likelihood(self, outputs: Array) -> Array:
        """Log density (or log probability) of each row; −inf if it cannot occur."""


class Noise(Written, ABC):
    """A distribution on the line, centered at 0."""

    norm: ClassVar[float] = 0  # its loss depends only on a shift's lq norm, with this q; 0 if on none
    even: ClassVar[bool] = False  # −t is as likely as t, so the loss is the same in both orders
    known_tails: ClassVar[bool] = False  # what later stages leave of its loss is known
    flat_tails: ClassVar[bool] = False  # beyond two values the loss between them is constant
    fixed_loss: ClassVar[bool] = False  # however near two different values are, they lose at least this much
    limited: ClassVar[bool] = False  # its values lie between two limits
    lost: Number = ZERO  # the probability of NaN instead of a value

    @property
    def drops_values(self) -> bool:
        """Whether a coordinate may become NaN."""
        return bool(self.lost.b > 0)

    @property
    def width(self) -> Number:
        """Its scale or standard deviation; 1 if it has no such length."""
        return ONE

    def of_width(self, width: Number) -> "Noise":
        """The same kind of noise with another width."""
        raise NotImplementedError

    @property
    def deviation(self) -> float | None:
        """Its standard deviation; None if no formula is known."""
        return None

    @property
    def summands(self) -> "tuple[tuple[Number, Noise], ...]":
        """The noises of which it is a mixture, with their probabilities."""
        return ((ONE, self),)

    @property
    def atom(self) -> float:
        """The probability of exactly 0."""
        return 0.0

    @abstractmethod
    def draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        """Draw independent values."""

    @abstractmethod
    def log_density(self, t: Array) -> Array:
        """Log of the density at each point, without the atom at 0."""

    @abstractmethod
    def cdf(self, t: Array) -> Array:
        """P(noise ≤ t)."""

    @abstractmethod
    def survival(self, t: Array) -> Array:
        """P(noise > t), precise in the upper tail."""


@dataclass(frozen=True)
class Laplace(Noise):
    """Density e^(−|t|/scale) / (2·scale).

    >>> float(Laplace(2).cdf(np.array(0.0)))
    0.5
    """

    syntax = Syntax("laplace", order=160, scale=positive("Laplace scale"))
    norm = 1
    even = known_tails = flat_tails = True
    scale: Number

    @property
    def width(self) -> Number:
        return self.scale

    def of_width(self, width: Number) -> "Laplace":
        return replace(self, scale=width)

    @property
    def deviation(self) -> float:
        return math.sqrt(2) * middle(self.scale)

    def draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        return rng.laplace(scale=middle(self.scale), size=shape)

    def log_density(self, t: Array) -> Array:
        b = middle(self.scale)
        return np.asarray(-np.abs(t) / b - math.log(2 * b))

    def cdf(self, t: Array) -> Array:
        tail = np.exp(-np.abs(t) / middle(self.scale)) / 2
        return np.where(t < 0, tail, 1 - tail)

    def survival(self, t: Array) -> Array:
        return self.cdf(-t)


@dataclass(frozen=True)
class Gaussian(Noise):
    """The normal distribution with standard deviation sigma.

    >>> float(Gaussian(1).cdf(np.array(0.0)))
    0.5
    """

    syntax = Syntax("gaussian", order=170, sigma=positive("sigma"))
    norm = 2
    even = known_tails = fixed_loss = True
    sigma: Number

    @property
    def width(self) -> Number:
        return self.sigma

    def of_width(self, width: Number) -> "Gaussian":
        return replace(self, sigma=width)

    @property
    def deviation(self) -> float:
        return middle(self.sigma)

    def draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        return rng.normal(scale=middle(self.sigma), size=shape)

    def log_density(self, t: Array) -> Array:
        s = middle(self.sigma)
        return np.asarray(-0.5 * (t / s) ** 2 - math.log(s) - 0.5 * math.log(2 * math.pi))

    def cdf(self, t: Array) -> Array:
        from scipy.special import ndtr

        return np.asarray(ndtr(t / middle(self.sigma)))

    def survival(self, t: Array) -> Array:
        return self.cdf(-t)


@dataclass(frozen=True)
class OneSided(Noise):
    """The exponential distribution: density e^(−t/scale)/scale for t ≥ 0, nothing below.

    >>> float(OneSided(1).cdf(np.array(-0.5)))
    0.0
    """

    syntax = Syntax("onesided", scale=positive("exponential scale"))
    fixed_loss = True
    scale: Number

    @property
    def width(self) -> Number:
        return self.scale

    @property
    def deviation(self) -> float:
        return middle(self.scale)

    def draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        return rng.exponential(scale=middle(self.scale), size=shape)

    def log_density(self, t: Array) -> Array:
        """Log density; −inf below 0."""
        b = middle(self.scale)
        return np.where(t < 0, -np.inf, -np.maximum(t, 0) / b - math.log(b))

    def cdf(self, t: Array) -> Array:
        return np.where(t < 0, 0.0, -np.expm1(-np.maximum(t, 0) / middle(self.scale)))

    def survival(self, t: Array) -> Array:
        return np.asarray(np.exp(-np.maximum(t, 0) / middle(self.scale)))


@dataclass(frozen=True)
class Mixture(Noise):
    """No noise at all with probability `atom_weight`, NaN with probability `lost`, otherwise one of several noises.

    >>> half = Mixture(0.5, ((0.5, OneSided(1)),))
    >>> half.atom
    0.5
    """

    atom_weight: Number
    parts: tuple[tuple[Number, Noise], ...]
    lost: Number = ZERO

    def __post_init__(self) -> None:
        weights = [number(self.atom_weight), *(number(w) for w, _ in self.parts), number(self.lost)]
        if any(w.a < 0 for w in weights) or 1 not in sum(weights, ZERO):
            raise InputError(f"weights must be 0 or more and sum to 1, got {[middle(w) for w in weights]}")
        if any(isinstance(noise, Mixture) for _, noise in self.parts):
            raise InputError("a mixture's parts may not be mixtures; list all parts side by side")
        if weights[-1].b > 0 and not self.one_sided:
            raise InputError("only exponential noise, or no noise at all, can be combined with lost values")
        object.__setattr__(self, "atom_weight", weights[0])
        object.__setattr__(self, "lost", weights[-1])
        parts = tuple((w, noise) for w, (_, noise) in zip(weights[1:-1], self.parts, strict=True) if not w == 0)
        object.__setattr__(self, "parts", parts)

    @property
    def atom(self) -> float:
        """The probability of exactly 0."""
        return middle(self.atom_weight)

    def __str__(self) -> str:
        if not self.one_sided:
            return "noise(Mixture)"
        if not self.parts:
            return f"leak({written(self.atom_weight)})"
        scale = getattr(self.parts[0][1], "scale", ZERO)
        return f"onesided({written(scale)}, {written(self.atom_weight)}, {written(self.lost)})"

    def to_data(self) -> dict[str, Any]:
        parts = [{"weight": list(digits(weight)), **noise.to_data()} for weight, noise in self.parts]
        lost = {"lost": list(digits(self.lost))} if self.lost.b > 0 else {}
        return {"stage": "mixture", "atom": list(digits(self.atom_weight)), "parts": parts, **lost}

    @property
    def summands(self) -> tuple[tuple[Number, Noise], ...]:
        return self.parts

    @property
    def one_sided(self) -> bool:
        """Whether it has at most one exponential noise, apart from the atom and lost values."""
        return len(self.parts) <= 1 and all(isinstance(noise, OneSided) for _, noise in self.parts)

    def draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        weights = np.array([self.atom, *(middle(w) for w, _ in self.parts), middle(self.lost)])
        which = rng.choice(len(weights), size=shape, p=weights / weights.sum())
        values = np.where(which == len(weights) - 1, np.nan, 0.0)
        for i, (_, noise) in enumerate(self.parts, start=1):
            chosen = which == i
            values[chosen] = noise.draw((int(chosen.sum()),), rng)
        return values

    def log_density(self, t: Array) -> Array:
        each = [math.log(middle(w)) + noise.log_density(np.asarray(t, dtype=float)) for w, noise in self.parts]
        return np.asarray(np.logaddexp.reduce(each)) if each else np.full(np.shape(t), -np.inf)

    def cdf(self, t: Array) -> Array:
        smooth = sum((middle(w) * noise.cdf(t) for w, noise in self.parts), np.zeros(np.shape(t)))
        return np.asarray(smooth + self.atom * (np.asarray(t) >= 0))

    def survival(self, t: Array) -> Array:
        smooth = sum((middle(w) * noise.survival(t) for w, noise in self.parts), np.zeros(np.shape(t)))
        return np.asarray(smooth + self.atom * (np.asarray(t) < 0))


@dataclass(frozen=True)
class Shifted:
    """Independent noise added to each coordinate of a vector.

    >>> distribution = Shifted(Laplace(1), np.zeros(3))
    >>> distribution.sample(5, np.random.default_rng(0)).shape
    (5, 3)
    """

    noise: Noise
    centre: Array

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        return self.centre + self.noise.draw((n, len(self.centre)), rng)

    def log_likelihood(self, outputs: Array) -> Array:
        """Sum of the coordinates' log densities; a coordinate that hits the atom counts its log probability."""
        t = np.asarray(outputs) - self.centre
        losing = self.noise.drops_values
        each = self.noise.log_density(np.where(np.isnan(t), 0.0, t) if losing else t)
        if self.noise.atom:
            each = np.where(t == 0, math.log(self.noise.atom), each)
        if losing:
            each = np.where(np.isnan(t), math.log(middle(self.noise.lost)), each)
        return np.asarray(each.sum(axis=-1))


@dataclass(frozen=True)
class BitDistribution:
    """Independent bits; the ith is 1 with its own probability.

    >>> BitDistribution(np.array([0.9, 0.1])).log_likelihood(np.array([[1, 0]])).round(3).tolist()
    [-0.211]
    """

    one: Array

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        return (rng.random((n, len(self.one))) < self.one).astype(float)

    def log_likelihood(self, outputs: Array) -> Array:
        outputs = np.asarray(outputs)
        ones = outputs == 1
        with np.errstate(divide="ignore", invalid="ignore"):
            each = np.where(ones, np.log(self.one), np.log1p(-self.one))
        odd = ~(ones | (outputs == 0))
        if odd.any():
            each[odd] = -np.inf
        return np.asarray(each.sum(axis=-1))


@dataclass(frozen=True)
class Pmf:
    """One of finitely many outcomes, 0 to k−1.

    >>> Pmf(np.array([0.25, 0.75])).log_likelihood(np.array([[1.0]])).round(3).tolist()
    [-0.288]
    """

    probabilities: Array

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        weights = self.probabilities / self.probabilities.sum()
        return rng.choice(len(weights), size=(n, 1), p=weights).astype(float)

    def log_likelihood(self, outputs: Array) -> Array:
        named = np.asarray(outputs, dtype=float)[..., 0]
        known = np.isin(named, np.arange(len(self.probabilities)))
        with np.errstate(divide="ignore"):
            logs = np.log(self.probabilities)[np.where(known, named, 0).astype(int)]
        return np.where(known, logs, -np.inf)


def as_vector(x: Any) -> Array:
    """Read an input as one vector of doubles."""
    vector = np.atleast_1d(np.asarray(x, dtype=float))
    if vector.ndim != 1:
        raise InputError(f"expected one vector, got an array of shape {vector.shape}")
    return vector


def noise_by_words(noise: object) -> draws.WordNoise | None:
    """A noise as a function of 32-bit words; None if there is no such form, or if it draws in its own way.

    >>> noise_by_words(Laplace(2))
    WordNoise(kind='laplace', scale=2.0, kept=1.0, lost=0.0)
    """
    parts = [part for _, part in noise.parts] if isinstance(noise, Mixture) else []
    if any(type(each) not in (Laplace, Gaussian, OneSided, Mixture) for each in (noise, *parts)):
        return None
    match noise:
        case Laplace(scale):
            return draws.WordNoise(draws.LAPLACE, middle(scale))
        case Gaussian(sigma):
            return draws.WordNoise(draws.GAUSSIAN, middle(sigma))
        case OneSided(scale):
            return draws.WordNoise(draws.EXPONENTIAL, middle(scale))
        case Mixture(_, ((weight, OneSided(scale)),), lost):
            return draws.WordNoise(draws.EXPONENTIAL, middle(scale), middle(weight), middle(lost))
    return None


def told_by_words(distributions: Sequence[Distribution]) -> tuple[LikelihoodRatioTable, LikelihoodRatioTable] | None:
    """What each word of an output contributes to the log-likelihood ratio, drawn from the first and from the second.

    >>> first, second = told_by_words([Shifted(Laplace(1), np.array([x])) for x in (0.0, 1.0)])
    >>> first.values.tolist(), second.values.tolist()
    ([[-1.0, -1.0, 1.0, 1.0]], [[-1.0, 1.0, 1.0, 1.0]])
    """
    if any(type(distribution) not in (Shifted, BitDistribution) for distribution in distributions):
        return None
    match list(distributions):
        case [Shifted(noise, first), Shifted(other, second)] if len(first) == len(second):
            drawn = noise_by_words(noise)
            if drawn is None or drawn != noise_by_words(other):
                return None
            sides = [of_noise(drawn, first, second, side) for side in (0, 1)]
        case [BitDistribution(first), BitDistribution(second)] if len(first) == len(second):
            sides = [of_bits(first, second, side) for side in (0, 1)]
        case _:
            return None
    return None if sides[0] is None or sides[1] is None else (sides[0], sides[1])
