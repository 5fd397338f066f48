"""Numbers written in bits."""

from typing import Any

import numpy as np

from dpassay.core.numbers import ONE, ZERO, Number, floor, real
from dpassay.errors import InputError
from dpassay.pipeline.regions import Bits, Everything, RowBits, Rows
from dpassay.pipeline.stages.base import OutputRegion, Stage
from dpassay.pipeline.syntax import Parameter, Syntax
from dpassay.pipeline.thresholds import SIGNS, Thresholds
from dpassay.values import dataclass


def _length(what: str) -> Parameter:
    def check(bits: int) -> int:
        if bits not in range(31):
            raise InputError(f"binary needs a whole number of {what} bits from 0 to 30, got {bits}")
        return int(bits)

    return Parameter("whole", check)


def _differing(first: str, second: str) -> int:
    return sum(one != other for one, other in zip(first, second, strict=True))


def farthest_strings(ranges: list[tuple[int, int, int]], length: int) -> tuple[str, str]:
    """Two bit strings, a sign and a number in one of its ranges, that differ in the most positions.

    docs/proofs/diameters.md, point 13. If both signs have a range, both ranges begin at 0.

    >>> farthest_strings([(0, 0, 4)], 5)
    ('00100', '00011')
    """
    pairs = []
    for sign, low, high in ranges:
        bits = (low ^ high).bit_length()
        turn = high >> max(0, bits - 1) << max(0, bits - 1)  # their common prefix, then a 1 and zeros
        pairs.append(((sign, turn), (sign, turn - 1 if bits else turn)))
    if len(ranges) == 2:
        (large, _, most), (small, _, least) = sorted(ranges, key=lambda limits: -limits[2])
        ones = (1 << most.bit_length()) - 1
        pairs.append(
            ((large, most), (small, ones - most)) if ones - most <= least else ((large, ones >> 1), (small, 0))
        )

    def written(sign: int, value: int) -> str:
        return f"{sign}{value:0{length - 1}b}" if length > 1 else str(sign)

    strings = [(written(*one), written(*other)) for one, other in pairs] or [("0" * length, "0" * length)]
    return max(strings, key=lambda pair: _differing(*pair))


@dataclass(frozen=True)
class Binary(Stage):
    """Each coordinate in bits: sign, integer bits, fraction bits.

    A number too large for the bits sets them all.

    >>> Binary(2, 1).run(np.array([[-2.5]]), np.random.default_rng()).tolist()
    [[1.0, 1.0, 0.0, 1.0]]
    """

    syntax = Syntax("binary", order=120, integer=_length("integer"), fraction=_length("fraction"))
    keeps = "signs"
    jumps = True
    integer: int
    fraction: int

    @property
    def length(self) -> int:
        """Bits for each coordinate."""
        return 1 + self.integer + self.fraction

    def output_region(self, before: OutputRegion) -> OutputRegion:
        """All bit strings, if the coordinates are not bounded more tightly than the bits are."""
        region = before.region
        if isinstance(region, Rows):
            first, second, reached = self._of_one_person(region.limits)
            top = real((1 << self.integer + self.fraction) - 1) / (1 << self.fraction)
            free = region.limits is None or bool(region.limits[0].b < -top.b and region.limits[1].a > top.b)
            return OutputRegion(RowBits(region.dim * self.length, first, second, free), before.exact and reached)
        return OutputRegion(Bits(region.dim * self.length), before.exact and isinstance(region, Everything))

    def _of_one_person(self, limits: tuple[Number, Number] | None) -> tuple[str, str, bool]:
        """Two strings that differ in the most positions, and whether values strictly between the limits give them."""
        if limits is None:
            return "1" * self.length, "0" * self.length, True
        inside, all_of_it = (farthest_strings(self._ranges(*limits, closed), self.length) for closed in (False, True))
        reached = _differing(*inside) == _differing(*all_of_it)
        return *(inside if reached else all_of_it), reached

    def _ranges(self, low: Number, high: Number, closed: bool) -> list[tuple[int, int, int]]:
        """For each sign, the smallest and the largest integer that the bits after it can represent."""
        unit, top = real(2) ** self.fraction, 2 ** (self.integer + self.fraction) - 1
        ranges = []
        for sign, least, most in ((0, low, high), (1, -high, -low)):
            if closed:
                first, last = floor(least.a * unit), floor(most.b * unit)
            else:
                first, last = floor(least.b * unit), -floor(-most.a * unit) - 1
            zero_alone = most.b <= 0 if closed else most.a <= 0
            if last >= 0 and not (zero_alone and (sign or not closed)):  # 0 has no negative sign
                ranges.append((sign, min(top, max(0, first)), min(top, last)))
        return ranges

    def thresholds_before(self, after: Thresholds) -> Thresholds | None:
        """The signs, if it is visible whether a bit is 0 or 1."""
        return None if after.within(ZERO, ONE) is None else SIGNS

    def run(self, batch: Any, rng: np.random.Generator) -> Any:
        batch = np.asarray(batch, dtype=float)
        over = np.abs(batch) >= 2.0**self.integer
        size = np.where(over, 0.0, np.abs(batch))
        whole = np.floor(size)
        parts = [np.signbit(batch)[..., None]]
        # Both parts are written separately: together they may have more bits than a double.
        for value, length in ((whole, self.integer), ((size - whole) * 2.0**self.fraction, self.fraction)):
            powers = 2 ** np.arange(length - 1, -1, -1, dtype=np.int64)
            parts.append((value.astype(np.int64)[..., None] // powers) % 2 | over[..., None])
        with_sign = np.concatenate(parts, axis=-1)
        return with_sign.reshape(*batch.shape[:-1], -1).astype(float)
