"""What one 32-bit word of a coordinate means: noise, a bit, or a contribution to a distinguisher's score.

Noise is drawn by inversion, u = (word + 1/2) / 2^32, so it increases with the word, and so does everything computed
from it. The answer to a question such as "is the coordinate rounded to 1?" is therefore constant on ranges of words.
The ends of such a range are found by calling the sampler itself 32 times; a kernel then compares words and takes no
logarithm. Counts are the same as if all the noise had been computed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpassay.compute.kernels.normal_quantile import normal_quantile
from dpassay.compute.kernels.philox import Words
from dpassay.values import dataclass

Array: TypeAlias = NDArray[np.float64]
ALL = 1 << 32
LAPLACE, GAUSSIAN, EXPONENTIAL = "laplace", "gaussian", "exponential"


@dataclass(frozen=True, slots=True)
class WordNoise:
    """Noise of a coordinate: of its kind with probability `kept`, NaN with probability `lost`, otherwise none.

    DPText's readings are exponential: kept 1/2 if NaN became 0, kept 1/2 and lost 1/2 if it stayed, otherwise kept 1.

    >>> WordNoise("laplace", 2.0).values(np.array([0, 1 << 31, (1 << 32) - 1], dtype=np.uint32)).round(3).tolist()
    [-44.361, 0.0, 44.361]
    """

    kind: str
    scale: float
    kept: float = 1.0
    lost: float = 0.0

    @property
    def cuts(self) -> tuple[int, int]:
        """Words from the first threshold on have no noise, and from the second on NaN."""
        return round(self.kept * ALL), ALL - round(self.lost * ALL)

    def values(self, words: Words) -> Array:
        """The noise that belongs to each word."""
        first, second = self.cuts
        drawn: Array = self.scale * standard(self.kind, words, first)
        if first == ALL:
            return np.asarray(drawn)
        return np.asarray(np.where(words < first, drawn, np.where(words < second, 0.0, np.nan)))


def standard(kind: str, words: Words, among: int = ALL) -> Array:
    """Noise of scale 1, by inversion; words from `among` on have no meaning.

    >>> standard("exponential", np.array([1 << 31], dtype=np.uint32)).round(4).tolist()  # the median is ln 2
    [0.6931]
    """
    w = words.astype(np.float64)
    if kind == LAPLACE:
        upper = words >= 1 << 31
        return np.asarray(np.copysign(np.log(np.where(upper, ALL - w - 0.5, w + 0.5) / (1 << 31)), upper - 0.5))
    if kind == GAUSSIAN:
        return normal_quantile((w + 0.5) / ALL)
    return -np.log(np.maximum(among - w - 0.5, 0.5) / among)


@dataclass(frozen=True, slots=True)
class Span:
    """Words from `low` on, `width` of them.

    >>> Span(3, 2).holds(np.array([2, 3, 4, 5], dtype=np.uint32)).tolist()
    [False, True, True, False]
    """

    low: int
    width: int

    def holds(self, words: Words) -> NDArray[np.bool_]:
        """Which words are among them."""
        w = words.astype(np.int64)
        return np.asarray((w >= self.low) & (w < self.low + self.width))


def coin(probability: float) -> Span:
    """The words that mean 1 for a bit that is 1 with this probability.

    >>> coin(0.5)
    Span(low=0, width=2147483648)
    """
    return Span(0, round(probability * ALL))


def rounded_up(noise: WordNoise, x: float, factor: float = 1.0) -> Span:
    """The words for which factor · (x + noise) is rounded to 1.

    >>> span = rounded_up(WordNoise("laplace", 1.0), 0.0)
    >>> span.width / 2**32, float(np.exp(-0.5) / 2)
    (0.30326..., 0.30326...)
    """

    def one(word: int) -> bool:
        with np.errstate(invalid="ignore"):
            return bool(factor * (x + noise.values(np.array([word], dtype=np.uint32))[0]) >= 0.5)

    first, second = noise.cuts
    low = first_word(one, first)
    high = first if first == ALL or not (first < second and one(first)) else second
    return Span(low, max(0, high - low))


def first_word(holds: Callable[[int], bool], end: int) -> int:
    """The first word below `end` from which on a monotone condition holds; `end` if it never does.

    >>> first_word(lambda word: word >= 1000, 1 << 32)
    1000
    """
    low, high = 0, end
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low
