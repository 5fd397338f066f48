"""The random parts of a mechanism. Each knows the distribution of its output for a given value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from dpassay.core.numbers import ONE, ZERO, Number, maximum, middle, minimum, number
from dpassay.errors import InputError
from dpassay.pipeline.distributions import (
    BitDistribution,
    Distribution,
    Gaussian,
    Laplace,
    Mixture,
    Noise,
    OneSided,
    Pmf,
    Shifted,
)
from dpassay.pipeline.regions import Array, Bits, Categories, Everything, OneHot, Region, Sparse, check_positive
from dpassay.pipeline.stages.vector import Keeps, OutputRegion, written


@runtime_checkable
class NoiseStage(Protocol):
    """A stage that randomizes."""

    name: ClassVar[str]
    keeps: ClassVar[Keeps]

    def output_region(self, before: OutputRegion) -> OutputRegion:
        """What can come out, given what comes in."""

    def run(self, batch: Any, rng: np.random.Generator) -> Any:
        """Randomize a batch."""

    def distribution(self, value: Array) -> Distribution:
        """The distribution of the output for one value."""


def _probability(value: Any, what: str) -> Number:
    enclosed = number(value)
    if enclosed.b < 0 or enclosed.a > 1:
        raise InputError(f"{what} must be a probability, 0 to 1, got {middle(enclosed):g}")
    # An enclosure of 0 or 1 may stick out a little; a probability does not.
    return maximum(ZERO, minimum(ONE, enclosed))


def _needs(stage: str, region: Region, allowed: tuple[type, ...], hint: str) -> None:
    if not isinstance(region, allowed):
        raise InputError(f"{stage} cannot work on {type(region).__name__}: {hint}")


@dataclass(frozen=True)
class Additive:
    """The same noise added independently to each coordinate.

    >>> Additive(Laplace(2)).distribution(np.zeros(2)).noise.atom
    0.0
    """

    name: ClassVar[str] = "noise"
    keeps: ClassVar[Keeps] = "all"
    noise: Noise

    def output_region(self, before: OutputRegion) -> OutputRegion:
        """Anything. Noise on unbounded values can be swamped by them, so those stay what they were."""
        if isinstance(before.region, Categories) and not (isinstance(self.noise, Mixture) and not self.noise.parts):
            raise InputError("noise cannot be added to a category's name: put onehot(k) before it")
        swamped = isinstance(before.region, Everything) and not loses(self.noise)
        return OutputRegion(Everything(before.region.dim), before.exact and swamped)

    def run(self, batch: Any, rng: np.random.Generator) -> Any:
        """Add fresh noise."""
        return np.asarray(batch, dtype=float) + self.noise.draw(np.shape(batch), rng)

    def distribution(self, value: Array) -> Distribution:
        """The noise, shifted to the value."""
        return Shifted(self.noise, value)

    def __str__(self) -> str:
        if isinstance(self.noise, Laplace):
            return f"laplace({written(self.noise.scale)})"
        if isinstance(self.noise, Gaussian):
            return f"gaussian({written(self.noise.sigma)})"
        if isinstance(self.noise, OneSided):
            return f"onesided({written(self.noise.scale)})"
        if isinstance(self.noise, Mixture) and self.noise.one_sided:
            zero, lost = self.noise.atom_weight, self.noise.lost
            if not self.noise.parts:
                return f"leak({written(zero)})"
            scale = getattr(self.noise.parts[0][1], "scale", ZERO)
            return f"onesided({written(scale)}, {written(zero)}, {written(lost)})"
        return f"noise({type(self.noise).__name__})"


def loses(noise: Noise) -> bool:
    """Whether a coordinate may become NaN."""
    return isinstance(noise, Mixture) and bool(noise.lost.b > 0)


def one_sided(scale: Any, zero: Any = 0, lost: Any = 0) -> Additive:
    """Exponential noise, left out with probability `zero`; the coordinate becomes NaN with probability `lost`.

    >>> print(one_sided(2), one_sided(2, "0.5"))
    onesided(2) onesided(2, 0.5, 0)
    """
    none, nothing = _probability(zero, "onesided: zero"), _probability(lost, "onesided: lost")
    if none == 0 and nothing == 0:
        return Additive(OneSided(scale))
    rest = 1 - none - nothing
    if rest.b < 0:
        raise InputError(f"onesided: zero and lost may be 1 together, got {middle(none + nothing):g}")
    return Additive(Mixture(none, ((maximum(ZERO, rest), OneSided(scale)),), nothing))


def leak(chance: Any) -> Additive:
    """Show each coordinate as it is with this probability, else nothing (NaN).

    >>> print(leak("0.25"))
    leak(0.25)
    """
    shown = _probability(chance, "leak")
    return Additive(Mixture(shown, (), 1 - shown))


@dataclass(frozen=True)
class BitNoise:
    """Independent randomized response on bits, with its own probabilities at even and odd positions.

    `even` and `odd` are P(1 → 1) at positions 0, 2, … and 1, 3, …; `zero` is P(0 → 1).

    >>> BitNoise("0.9", "0.9", "0.1").distribution(np.array([1.0, 0.0])).one.tolist()
    [0.9, 0.1]
    """

    name: ClassVar[str] = "bits"
    keeps: ClassVar[Keeps] = "nothing"
    even: Number
    odd: Number
    zero: Number

    def __post_init__(self) -> None:
        for field in ("even", "odd", "zero"):
            object.__setattr__(self, field, _probability(getattr(self, field), f"bits: {field}"))

    def output_region(self, before: OutputRegion) -> OutputRegion:
        """All bit strings."""
        _needs("bits", before.region, (Bits, OneHot, Sparse), "put binary(m, n), onehot(k) or bloom(k, h) before it")
        return OutputRegion(Bits(before.region.dim), exact=False)

    def distribution(self, value: Array) -> Distribution:
        """Independent bits."""
        return BitDistribution(self._ones(value))

    def run(self, batch: Any, rng: np.random.Generator) -> Any:
        """Redraw each bit."""
        return (rng.random(np.shape(batch)) < self._ones(batch)).astype(float)

    def _ones(self, bits: Array) -> Array:
        even = np.arange(np.shape(bits)[-1]) % 2 == 0
        ones = np.where(even, middle(self.even), middle(self.odd))
        return np.where(np.asarray(bits) == 1, ones, middle(self.zero))

    def __str__(self) -> str:
        return f"bits({written(self.even)}, {written(self.odd)}, {written(self.zero)})"


@dataclass(frozen=True)
class Flip:
    """Keep each bit with probability `keep`, else flip it; keep a category, else name another at random.

    >>> Flip("0.75").distribution(np.array([1.0])).one.tolist()
    [0.75]
    """

    name: ClassVar[str] = "flip"
    keeps: ClassVar[Keeps] = "nothing"
    keep: Number
    size: int = 0  # the number of categories; 0 for bits

    def __post_init__(self) -> None:
        object.__setattr__(self, "keep", _probability(self.keep, "flip: keep"))

    @property
    def on_bits(self) -> BitNoise:
        """The same on bits."""
        return BitNoise(self.keep, self.keep, 1 - self.keep)

    def output_region(self, before: OutputRegion) -> OutputRegion:
        """All bit strings, or all categories."""
        hint = "put binary(m, n), onehot(k), bloom(k, h), category(k) or hash(k) before it"
        _needs("flip", before.region, (Bits, OneHot, Sparse, Categories), hint)
        if isinstance(before.region, Categories):
            return OutputRegion(before.region, exact=False)
        return OutputRegion(Bits(before.region.dim), exact=False)

    def for_region(self, region: Region) -> Flip | BitNoise:
        """The same stage, told whether it works on bits or on how many categories."""
        return Flip(self.keep, region.size) if isinstance(region, Categories) else self.on_bits

    def distribution(self, value: Array) -> Distribution:
        """Bits, or the pmf over categories."""
        if not self.size:
            return self.on_bits.distribution(value)
        other = (1 - middle(self.keep)) / max(1, self.size - 1)
        probabilities = np.full(self.size, other)
        probabilities[int(value[0])] = middle(self.keep) if self.size > 1 else 1.0
        return Pmf(probabilities)

    def run(self, batch: Any, rng: np.random.Generator) -> Any:
        """Redraw each bit or category."""
        if not self.size:
            return self.on_bits.run(batch, rng)
        batch = np.asarray(batch, dtype=float)
        kept = (rng.random(batch.shape) < middle(self.keep)) | (self.size == 1)
        step = rng.integers(1, max(2, self.size), size=batch.shape)
        return np.where(kept, batch, (batch + step) % self.size)

    def __str__(self) -> str:
        return f"flip({written(self.keep)})"


@dataclass(frozen=True)
class Choose:
    """The exponential mechanism: the value is a vector of scores, output j has probability ∝ e^(rate·score_j).

    >>> Choose(1).distribution(np.array([0.0, 0.0])).probabilities.tolist()
    [0.5, 0.5]
    """

    name: ClassVar[str] = "exponential"
    keeps: ClassVar[Keeps] = "nothing"
    rate: Number

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", check_positive(self.rate, "exponential: rate"))

    def output_region(self, before: OutputRegion) -> OutputRegion:
        """One of as many outputs as there are scores."""
        if isinstance(before.region, Categories):
            raise InputError("exponential needs a vector of scores, not a category")
        return OutputRegion(Categories(before.region.dim), exact=False)

    def distribution(self, value: Array) -> Distribution:
        """The pmf over outputs."""
        weights = np.exp(middle(self.rate) * (value - np.max(value)))
        return Pmf(weights / weights.sum())

    def run(self, batch: Any, rng: np.random.Generator) -> Any:
        """Draw one output a row (by the Gumbel trick)."""
        scores = middle(self.rate) * np.asarray(batch, dtype=float)
        return np.argmax(scores + rng.gumbel(size=scores.shape), axis=-1)[..., None].astype(float)

    def __str__(self) -> str:
        return f"exponential({written(self.rate)})"


NOISES = (Additive, BitNoise, Flip, Choose)
