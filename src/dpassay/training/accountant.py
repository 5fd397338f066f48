"""What a training run costs: certified intervals for ε, and the smallest noise for an ε.

A run of T rounds is the pipeline `poisson(q) | clip(l2, C) | gaussian(s) | times(T)`; docs/proofs/poisson.md explains
why.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

from dpassay.core.interval import Interval
from dpassay.core.neighbours import Neighbours
from dpassay.core.numbers import down, number, up
from dpassay.errors import InputError
from dpassay.exact.analysis import analyse
from dpassay.exact.profiles.profile import PrivacyProfile
from dpassay.pipeline.parser import parse

MOST_NOISE = 1e4
DIGITS = 4  # of a computed noise multiplier


@dataclass(frozen=True)
class Account:
    """A run as the accountant sees it.

    >>> spent = Account(rate=0.01, sensitivity=1.0, deviation=1.0, rounds=1000, delta=1e-5).epsilon()
    >>> round(spent.upper, 2)
    1.83
    """

    rate: float
    sensitivity: float
    deviation: float
    rounds: int
    delta: float

    def __post_init__(self) -> None:
        if not 0 < self.delta < 1:
            raise InputError(f"delta must lie strictly between 0 and 1, got {self.delta}")

    @property
    def pipeline(self) -> str:
        """The run as text, for `dpassay check`.

        >>> Account(0.05, 2.0, 4.0, 100, 1e-5).pipeline
        'poisson(0.05) | clip(l2, 2.0) | gaussian(4.0) | times(100)'
        """
        stages = (f"clip(l2, {self.sensitivity!r})", f"gaussian({self.deviation!r})", f"times({self.rounds})")
        return " | ".join((f"poisson({self.rate!r})", *stages))

    def profile(self) -> PrivacyProfile:
        """The bounds on the loss of the run, and the theorems they rest on."""
        return analyse(parse(self.pipeline, dim=1), Neighbours("add-remove-record"))

    def epsilon(self) -> Interval:
        """An interval that contains the true ε at δ."""
        return _epsilon(self)

    def spent(self, rounds: int) -> float:
        """An upper bound on the ε of the first rounds: that of the next milestone, so that few numbers are computed."""
        if rounds <= 0:
            return 0.0
        return replace(self, rounds=min(self.rounds, _milestone(rounds))).epsilon().upper


def _milestone(rounds: int) -> int:
    """The next milestone; there are four for each doubling of the rounds.

    >>> [_milestone(n) for n in (1, 7, 9, 100, 1000)]
    [1, 7, 10, 112, 1024]
    """
    grain = max(1, 1 << (rounds - 1).bit_length() >> 3)
    return -(-rounds // grain) * grain


@lru_cache(maxsize=1024)
def _epsilon(account: Account) -> Interval:
    found = account.profile().epsilon(number(repr(account.delta)))
    return Interval(down(found), up(found))


def least_noise(epsilon: float, delta: float, rate: float, rounds: int) -> float:
    """The smallest noise multiplier, to four digits, with which a run satisfies (ε, δ)-DP.

    >>> 0.99 < least_noise(1.83, 1e-5, 0.01, 1000) <= 1.0
    True
    """
    if not 0 < epsilon < math.inf:
        raise InputError(f"epsilon must be a positive number, got {epsilon:g}: no noise reaches it")

    def enough(multiplier: float) -> bool:
        return Account(rate, 1.0, multiplier, rounds, delta).epsilon().upper <= epsilon

    low, high = 0.0, 1.0
    while not enough(high):
        low, high = high, 2 * high
        if high > MOST_NOISE:
            raise InputError(
                f"no noise multiplier up to {MOST_NOISE:,.0f} gives epsilon {epsilon:g} at delta {delta:g} in "
                f"{rounds:,} rounds at rate {rate:g}: allow a larger epsilon, or take fewer rounds or a lower rate"
            )
    while low == 0 and enough(high / 2):
        high /= 2
        if high < 1e-3:
            return high
    low = high / 2
    while high - low > 10 ** -(DIGITS + 1) * high:
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    unit = 10.0 ** (math.floor(math.log10(high)) - DIGITS + 1)
    rounded = round(math.ceil(high / unit) * unit, 12)
    return rounded if enough(rounded) else high
