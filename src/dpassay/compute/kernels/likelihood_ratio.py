"""What a coordinate's word contributes to a distinguisher: the log-likelihood ratio of the second input to the first.

In each coordinate it is constant on at most four ranges of words, except the second range, where it may be linear
in the noise. Laplace noise has such a linear part between the two inputs, Gaussian noise everywhere, bits and
one-sided noise nowhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpassay.compute.kernels.draws import ALL, EXPONENTIAL, GAUSSIAN, LAPLACE, Array, WordNoise, standard
from dpassay.compute.kernels.philox import Words
from dpassay.values import dataclass

LARGEST_STEP = 8.0  # of one coordinate's ratio: beyond it 32 bits are too few for the tails
LEAST_CHANCE = 2.0**-16  # of a bit, unless it is 0: for the same reason


@dataclass(frozen=True)
class LikelihoodRatioTable:
    """The ratio of each coordinate as a function of its word, for outputs of one of the two inputs.

    `cuts` has the three words of each coordinate at which the next range begins, `values` the constant of each of the
    four ranges, and `slope` the coefficient of the noise in the second.
    """

    kind: str
    cuts: NDArray[np.int64]
    values: Array
    slope: Array

    @property
    def dim(self) -> int:
        return len(self.slope)

    def scores(self, words: Words, j: int) -> Array:
        """The ratio of coordinate j for each word."""
        place = np.searchsorted(self.cuts[j], words.astype(np.int64), side="right")
        found: Array = self.values[j][place]
        if self.slope[j]:
            inner = place == 1
            found[inner] += self.slope[j] * standard(self.kind, words[inner])
        return found

    @cached_property
    def by_byte(self) -> Array:
        """The ratio for each coordinate and first byte of a word; NaN where the rest of the word is needed."""
        low = np.arange(256, dtype=np.int64) << 24
        first, last = ((self.cuts[:, :, None] <= edge).sum(axis=1) for edge in (low, low + (1 << 24) - 1))
        curved = (first == 1) & (self.slope != 0)[:, None]
        return np.where((first == last) & ~curved, np.take_along_axis(self.values, first, axis=1), np.nan)


def of_noise(
    noise: WordNoise, first: Sequence[float] | Array, second: Sequence[float] | Array, side: int
) -> LikelihoodRatioTable | None:
    """The ratios for noise added to two inputs, of which the given one is the true one.

    Coordinates in which the inputs agree carry no information and are left out. None if 32 bits are too few.
    """
    steps = (np.asarray(second, dtype=float) - np.asarray(first, dtype=float)) / noise.scale
    steps = steps[steps != 0]
    if not len(steps) or not np.abs(steps).max() <= LARGEST_STEP or (noise.kept < 1 and noise.kind != EXPONENTIAL):
        return None
    make = {LAPLACE: _laplace, GAUSSIAN: _gaussian, EXPONENTIAL: _exponential}[noise.kind]
    return LikelihoodRatioTable(noise.kind, *make(noise, steps, side))


def of_bits(first: Array, second: Array, side: int) -> LikelihoodRatioTable | None:
    """The same for bits that are 1 with these probabilities."""
    chances = np.stack([first, second])
    usual = (chances == 0) | (chances == 1) | (np.abs(chances - 0.5) <= 0.5 - LEAST_CHANCE)
    differ = chances[0] != chances[1]
    if not usual.all() or not differ.any():
        return None
    p, q = chances[:, differ]
    one, zero = _log_ratio(q, p), _log_ratio(1 - q, 1 - p)
    cuts = _columns(np.rint((p, q)[side] * ALL), ALL, ALL).astype(np.int64)
    return LikelihoodRatioTable("bits", cuts, _columns(one, zero, zero, zero), np.zeros(len(p)))


Rows = tuple[NDArray[np.int64], Array, Array]  # cuts, values and slope


def _columns(*columns: Any) -> Array:
    return np.stack(np.broadcast_arrays(*columns), axis=1)


def _laplace(noise: WordNoise, step: Array, side: int) -> Rows:
    """|z| − |z − step| for the first input, |z + step| − |z| for the second: linear between 0 and the other one."""
    other = step if side == 0 else -step
    low, high = np.minimum(0.0, other), np.maximum(0.0, other)

    def ratio(z: Array) -> Array:
        return np.asarray(np.abs(z) - np.abs(z - step) if side == 0 else np.abs(z + step) - np.abs(z))

    below, above = ratio(low), ratio(high)
    slope = (above - below) / (high - low)
    cuts = _columns(_first_at_least(LAPLACE, low, ALL), _first_at_least(LAPLACE, high, ALL), ALL)
    return cuts.astype(np.int64), _columns(below, below - slope * low, above, above), slope


def _gaussian(noise: WordNoise, step: Array, side: int) -> Rows:
    """Linear in the noise everywhere."""
    shift = step * step / 2
    cuts = np.tile(np.array([0, ALL, ALL]), (len(step), 1))
    return cuts, _columns(0.0, -shift if side == 0 else shift, 0.0, 0.0), step


def _exponential(noise: WordNoise, step: Array, side: int) -> Rows:
    """Outputs between the two inputs are impossible for one of them; then come words without noise, and lost ones."""
    kept, present = noise.cuts
    forbidden = (step > 0) == (side == 0)  # outputs that the other input never gives
    impossible = -math.inf if side == 0 else math.inf
    cut = np.where(forbidden, _first_at_least(EXPONENTIAL, np.abs(step), kept), 0)
    bare = np.full(len(step), impossible)
    if kept < present:
        none = 1 - noise.kept - noise.lost
        told = math.log(noise.kept) - np.abs(step) - math.log(noise.scale) - math.log(none)
        bare = np.where(forbidden, impossible, told if side == 0 else -told)
    cuts = _columns(cut, kept, present).astype(np.int64)
    return cuts, _columns(impossible, step, bare, 0.0), np.zeros(len(step))


def _first_at_least(kind: str, z: Array, among: int) -> NDArray[np.int64]:
    """The first word whose noise is at least z, for each z."""
    low, high = np.zeros(len(z), dtype=np.int64), np.full(len(z), among, dtype=np.int64)
    for _ in range(33):
        middle = (low + high) // 2
        there = (middle == high) | (standard(kind, np.minimum(middle, ALL - 1).astype(np.uint32), among) >= z)
        low, high = np.where(there, low, middle + 1), np.where(there, middle, high)
    return low


def _log_ratio(p: Array, q: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(p == q, 0.0, np.log(p) - np.log(q)))
