"""How many canaries to name as in or out when a guarantee is tested.

The numbers are fixed by the guarantee, the number of canaries and alpha, never by which canaries were in. Most of
alpha goes to the two numbers that would be best if scores were normal, like those of canaries under Gaussian noise;
the rest goes to a few others, for scores of another shape.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import ndtr, ndtri

from dpassay.core.guarantee import GDP, Guarantee

_SHARES = {True: 0.5, False: 0.2}  # of alpha: naming both sides, and naming canaries as in only
_OTHERS = (4, 16, 32, 64, 256)  # one canary in 4, in 16, … is named as in, for the rest of alpha
_THRESHOLDS = np.linspace(0, 7, 281)


@dataclass(frozen=True, slots=True)
class GuessCount:
    """To name the canaries with the highest scores as in, `top` of them, and as many of the lowest as out if `both`."""

    top: int
    both: bool
    alpha: float

    @property
    def named(self) -> int:
        """How many are named in total."""
        return self.top * (2 if self.both else 1)


@lru_cache(maxsize=4096)
def guess_counts(guarantee: Guarantee, canaries: int, alpha: float) -> tuple[GuessCount, ...]:
    """The tests that together have the error probability alpha.

    >>> [count.named for count in guess_counts(GDP(1), 1000, 0.05)][2:]
    [250, 62, 31, 15]
    >>> sum(count.alpha for count in guess_counts(GDP(1), 1000, 0.05)) <= 0.05
    True
    """
    best = [
        GuessCount(_best_top(guarantee, canaries, share * alpha, both), both, share * alpha)
        for both, share in _SHARES.items()
    ]
    others = [canaries // one_in for one_in in _OTHERS if canaries // one_in >= 10]
    left = alpha * (1 - 1e-9 - sum(_SHARES.values())) / max(1, len(others))  # rounding must not add to alpha
    return (*best, *(GuessCount(top, False, left) for top in others))


def _best_top(guarantee: Guarantee, canaries: int, alpha: float, both: bool) -> int:
    """How many to name on a side: those above the threshold for which the smallest separation of scores suffices.

    Scores are N(0, 1) for canaries that are out, and N(s, 1) for those that are in. At a threshold t there are as many
    wrong guesses as expected, plus a few by chance; enough correct ones to refute the guarantee require s.
    """
    half, sides = canaries / 2, 2 if both else 1
    expected = sides * half * ndtr(-_THRESHOLDS)
    wrong = (expected + 1.5 * np.sqrt(expected) + 1.5) / sides
    if isinstance(guarantee, GDP):
        needed = ndtr(ndtri(np.minimum(alpha * wrong / half, 1)) + guarantee.mu) / alpha
    else:
        needed = (wrong * np.exp(np.float64(guarantee.claimed)) + canaries * guarantee.delta / alpha) / half
    separation = np.where(needed < 1, _THRESHOLDS + ndtri(np.minimum(needed, 1)), np.inf)
    best = int(np.argmin(separation))
    if np.isinf(separation[best]):
        return min(max(1, canaries // 2), math.ceil(math.log(1 / alpha)))
    return min(max(1, canaries // 2), max(1, round(half * float(needed[best] + ndtr(-_THRESHOLDS[best])))))
