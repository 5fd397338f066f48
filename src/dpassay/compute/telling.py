"""What the word of a coordinate says to a guesser: the log-likelihood ratio of two inputs, second against first.

In each coordinate it is a constant on at most four ranges of words, but for the second range, where it may be a
straight line in the noise. Laplace noise has such a line between the two inputs, Gaussian noise everywhere, bits and
one-sided noise nowhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpassay.compute.draws import ALL, EXPONENTIAL, GAUSSIAN, LAPLACE, Array, Noise, first_word, standard
from dpassay.compute.philox import Words

LARGEST_STEP = 8.0  # of one coordinate's ratio: beyond it 32 bits are too few for the tails
LEAST_CHANCE = 2.0**-16  # of a bit, where it is not 0: likewise


@dataclass(frozen=True)
class Telling:
    """The ratio of each coordinate as a function of its word, for outputs of one of the two inputs.

    `cuts` has the three words of each coordinate at which the next range begins, `values` the constant of each of the
    four ranges, `slope` what the noise counts in the second.
    """

    kind: str
    cuts: NDArray[np.int64]
    values: Array
    slope: Array

    @property
    def dim(self) -> int:
        """How many coordinates there are."""
        return len(self.slope)

    def scores(self, words: Words, j: int) -> Array:
        """The ratio of coordinate j for each word."""
        place = np.searchsorted(self.cuts[j], words.astype(np.int64), side="right")
        found = self.values[j][place]
        if self.slope[j]:
            inner = place == 1
            found[inner] += self.slope[j] * standard(self.kind, words[inner])
        return found

    def by_byte(self) -> Array:
        """For each coordinate and first byte of a word the ratio; NaN where the rest of the word must be known."""
        low = np.arange(256, dtype=np.int64) << 24
        found = np.empty((self.dim, 256))
        for j in range(self.dim):
            first, last = (np.searchsorted(self.cuts[j], edge, side="right") for edge in (low, low + (1 << 24) - 1))
            curved = (first == 1) & bool(self.slope[j])
            found[j] = np.where((first == last) & ~curved, self.values[j][first], np.nan)
        return found


def of_noise(noise: Noise, first: Sequence[float], second: Sequence[float], side: int) -> Telling | None:
    """The ratios for noise added to two inputs, of which the given one is the true one.

    Coordinates in which the inputs agree say nothing and are left out. None where 32 bits are too few.
    """
    steps = (np.asarray(second, dtype=float) - np.asarray(first, dtype=float)) / noise.scale
    steps = steps[steps != 0]
    if not len(steps) or not np.abs(steps).max() <= LARGEST_STEP or (noise.kept < 1 and noise.kind != EXPONENTIAL):
        return None
    make = {LAPLACE: _laplace, GAUSSIAN: _gaussian, EXPONENTIAL: _exponential}[noise.kind]
    known = {step: make(noise, step, side) for step in set(steps.tolist())}
    rows = [known[step] for step in steps.tolist()]
    return _joined(noise.kind, rows)


def of_bits(first: Array, second: Array, side: int) -> Telling | None:
    """The same for bits that are 1 with these probabilities."""
    chances = np.stack([first, second])
    usual = (chances == 0) | (chances == 1) | (np.abs(chances - 0.5) <= 0.5 - LEAST_CHANCE)
    differ = chances[0] != chances[1]
    if not usual.all() or not differ.any():
        return None
    rows: list[Row] = []
    for p, q in chances[:, differ].T.tolist():
        one, zero = _log_ratio(q, p), _log_ratio(1 - q, 1 - p)
        rows.append(((round((p, q)[side] * ALL), ALL, ALL), (one, zero, zero, zero), 0.0))
    return _joined("bits", rows)


Row = tuple[tuple[int, int, int], tuple[float, float, float, float], float]


def _joined(kind: str, rows: Sequence[Row]) -> Telling:
    cuts, values, slope = zip(*rows, strict=True)
    return Telling(kind, np.array(cuts, dtype=np.int64), np.array(values), np.array(slope))


def _laplace(noise: Noise, step: float, side: int) -> Row:
    """|z| − |z − step| for the first input, |z + step| − |z| for the second: straight between 0 and the other one."""
    other = step if side == 0 else -step
    ends = sorted((0.0, other))

    def ratio(z: float) -> float:
        return abs(z) - abs(z - step) if side == 0 else abs(z + step) - abs(z)

    cuts = [_first_at_least(LAPLACE, z) for z in ends]
    below, above = (ratio(z) for z in ends)
    slope = (above - below) / (ends[1] - ends[0])
    return (cuts[0], cuts[1], ALL), (below, below - slope * ends[0], above, above), slope


def _gaussian(noise: Noise, step: float, side: int) -> Row:
    shift = step * step / 2
    middle = -shift if side == 0 else shift
    return (0, ALL, ALL), (0.0, middle, 0.0, 0.0), step


def _exponential(noise: Noise, step: float, side: int) -> Row:
    """Outputs between the two inputs are impossible for one of them; behind these come none at all, and the lost."""
    kept, present = noise.cuts
    forbidden = (step > 0) == (side == 0)  # outputs that the other input never gives
    impossible = -math.inf if side == 0 else math.inf
    cut = first_word(lambda word: _standard(EXPONENTIAL, word, kept) >= abs(step), kept) if forbidden else 0
    bare = impossible
    if not forbidden and kept < present:
        none = 1 - noise.kept - noise.lost
        bare = math.log(noise.kept) - abs(step) - math.log(noise.scale) - math.log(none)
        bare = bare if side == 0 else -bare
    return (cut, kept, present), (impossible, step, bare, 0.0), 0.0


def _standard(kind: str, word: int, among: int = ALL) -> float:
    return float(standard(kind, np.array([word], dtype=np.uint32), among)[0])


def _first_at_least(kind: str, z: float) -> int:
    return first_word(lambda word: _standard(kind, word) >= z, ALL)


def _log_ratio(p: float, q: float) -> float:
    if p == q:
        return 0.0
    return -math.inf if p == 0 else math.inf if q == 0 else math.log(p / q)
