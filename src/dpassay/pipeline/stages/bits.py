"""Randomized response, on bits and on categories."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpassay.core.numbers import Number, middle
from dpassay.errors import InputError
from dpassay.pipeline.distributions import BitDistribution, Distribution, Pmf
from dpassay.pipeline.regions import Array, Bits, Categories, OneHot, Region, Sparse
from dpassay.pipeline.stages.base import NoiseStage, OutputRegion
from dpassay.pipeline.syntax import Syntax, probability
from dpassay.values import dataclass


def _check_region(stage: NoiseStage, region: Region, allowed: tuple[type, ...], hint: str) -> None:
    """Refuse values that a stage cannot work on."""
    if not isinstance(region, allowed):
        raise InputError(f"{stage.name} cannot be applied to its input here: {hint}")


@dataclass(frozen=True)
class Flip(NoiseStage):
    """Keep each bit, or the category, with this probability.

    Otherwise flip it, or name another category at random.

    >>> Flip("0.75").distribution(np.array([1.0])).one.tolist()
    [0.75]
    """

    syntax = Syntax("flip", order=200, keep=probability("flip: keep"))
    keep: Number
    size: int = 0  # the number of categories; 0 for bits

    @property
    def on_bits(self) -> BitNoise:
        return BitNoise(self.keep, self.keep, 1 - self.keep)

    def output_region(self, before: OutputRegion) -> OutputRegion:
        hint = "put binary(m, n), onehot(k), bloom(k, h), category(k) or hash(k) before it"
        _check_region(self, before.region, (Bits, OneHot, Sparse, Categories), hint)
        if isinstance(before.region, Categories):
            return OutputRegion(before.region, exact=False)
        return OutputRegion(Bits(before.region.dim), exact=False)

    def for_region(self, region: Region) -> Flip | BitNoise:
        """The same for this number of categories, or for bits."""
        self.output_region(OutputRegion(region))  # refuses anything else
        return Flip(self.keep, region.size) if isinstance(region, Categories) else self.on_bits

    def distribution(self, value: Array) -> Distribution:
        if not self.size:
            return self.on_bits.distribution(value)
        other = (1 - middle(self.keep)) / max(1, self.size - 1)
        probabilities = np.full(self.size, other)
        probabilities[int(value[0])] = middle(self.keep) if self.size > 1 else 1.0
        return Pmf(probabilities)

    def run(self, batch: Any, rng: np.random.Generator) -> Any:
        if not self.size:
            return self.on_bits.run(batch, rng)
        batch = np.asarray(batch, dtype=float)
        kept = (rng.random(batch.shape) < middle(self.keep)) | (self.size == 1)
        step = rng.integers(1, max(2, self.size), size=batch.shape)
        return np.where(kept, batch, (batch + step) % self.size)

    def to_data(self) -> dict[str, Any]:
        """With the number of categories, which is not in its text."""
        return super().to_data() | {"size": self.size}


@dataclass(frozen=True)
class BitNoise(NoiseStage):
    """Redraw bits: P(1→1) at even and odd positions, P(0→1).

    Independent randomized response; positions are counted from 0.

    >>> BitNoise("0.9", "0.9", "0.1").distribution(np.array([1.0, 0.0])).one.tolist()
    [0.9, 0.1]
    """

    syntax = Syntax(
        "bits", order=210, even=probability("bits: even"), odd=probability("bits: odd"), zero=probability("bits: zero")
    )
    even: Number
    odd: Number
    zero: Number

    def __str__(self) -> str:
        """As flip(keep) if it is just that: 1 − keep may need more digits."""
        return str(Flip(self.even)) if self == Flip(self.even).on_bits else super().__str__()

    def output_region(self, before: OutputRegion) -> OutputRegion:
        hint = "put binary(m, n), onehot(k) or bloom(k, h) before it"
        _check_region(self, before.region, (Bits, OneHot, Sparse), hint)
        return OutputRegion(Bits(before.region.dim), exact=False)

    def distribution(self, value: Array) -> Distribution:
        return BitDistribution(self._ones(value))

    def run(self, batch: Any, rng: np.random.Generator) -> Any:
        return (rng.random(np.shape(batch)) < self._ones(batch)).astype(float)

    def _ones(self, bits: Array) -> Array:
        even = np.arange(np.shape(bits)[-1]) % 2 == 0
        ones = np.where(even, middle(self.even), middle(self.odd))
        return np.where(np.asarray(bits) == 1, ones, middle(self.zero))
