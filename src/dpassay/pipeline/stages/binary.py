"""Numbers written in bits."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpassay.errors import InputError
from dpassay.pipeline.regions import Bits, Everything
from dpassay.pipeline.stages.base import OutputRegion, Stage
from dpassay.pipeline.syntax import Parameter, Syntax


def _length(what: str) -> Parameter:
    def check(bits: int) -> int:
        if bits not in range(31):
            raise InputError(f"binary needs a whole number of {what} bits from 0 to 30, got {bits}")
        return int(bits)

    return Parameter("whole", check)


@dataclass(frozen=True)
class Binary(Stage):
    """Each coordinate in bits: sign, integer bits, fraction bits.

    What is too large for the bits sets them all.

    >>> Binary(2, 1).run(np.array([[-2.5]]), np.random.default_rng()).tolist()
    [[1.0, 1.0, 0.0, 1.0]]
    """

    syntax = Syntax("binary", order=120, integer=_length("integer"), fraction=_length("fraction"))
    keeps = "signs"
    integer: int
    fraction: int

    @property
    def length(self) -> int:
        """Bits for each coordinate."""
        return 1 + self.integer + self.fraction

    def output_region(self, before: OutputRegion) -> OutputRegion:
        """All bit strings, if the coordinates are not bounded more tightly than the bits are."""
        region = before.region
        return OutputRegion(Bits(region.dim * self.length), before.exact and isinstance(region, Everything))

    def run(self, batch: Any, rng: np.random.Generator) -> Any:
        batch = np.asarray(batch, dtype=float)
        over = np.abs(batch) >= 2.0**self.integer
        size = np.where(over, 0.0, np.abs(batch))
        whole = np.floor(size)
        parts = [np.signbit(batch)[..., None]]
        # Both parts are written apart: together they may have more bits than a double.
        for value, length in ((whole, self.integer), ((size - whole) * 2.0**self.fraction, self.fraction)):
            powers = 2 ** np.arange(length - 1, -1, -1, dtype=np.int64)
            parts.append((value.astype(np.int64)[..., None] // powers) % 2 | over[..., None])
        with_sign = np.concatenate(parts, axis=-1)
        return with_sign.reshape(*batch.shape[:-1], -1).astype(float)
