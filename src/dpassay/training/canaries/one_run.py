"""The probability, under a guarantee, of guessing a given number of canaries of one training run correctly.

Each of m canaries is in the training data or not, by its own fair coin. An attacker who sees the trained model names
some of them as in or out. The guesses depend on each other through the run, so no law of large numbers holds, and yet a
guarantee for one canary bounds how many guesses can be correct: docs/proofs/one-run.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import betainc, ndtr, ndtri

from dpassay.core.guarantee import GDP, ApproxDP, Guarantee, PureDP
from dpassay.errors import InputError

# Rounding errors of the quantities below are far smaller: each is a sum of at most 10⁷ positive doubles.
_SAFE = 1 - 1e-8

_MOST_FEW = 20_000
_LEAST = 1e-300  # smaller probabilities are reported as this one: doubles end there
Tradeoff = Callable[[float], float]


@dataclass(frozen=True, slots=True)
class Guesses:
    """How many canaries there were, how many were named, and how many of these correctly.

    `both`: whether canaries were named as in and as out, or only as in.

    >>> Guesses(canaries=1000, named=20, right=19, both=False).wrong
    1
    """

    canaries: int
    named: int
    right: int
    both: bool = True

    def __post_init__(self) -> None:
        if not 0 <= self.right <= self.named <= self.canaries:
            raise InputError(
                f"of {self.canaries} canaries {self.named} cannot be named, {self.right} of them rightly: "
                "0 <= right <= named <= canaries"
            )

    @property
    def wrong(self) -> int:
        """How many were named wrongly."""
        return self.named - self.right


def rejected(guarantee: Guarantee, seen: Guesses, alpha: float) -> bool:
    """Whether this many correct guesses have probability at most alpha, for every mechanism with the guarantee.

    >>> rejected(PureDP(1), Guesses(1000, 100, 95), 0.05), rejected(PureDP(4), Guesses(1000, 100, 95), 0.05)
    (True, False)
    """
    return _tail(guarantee, seen) <= alpha or not _attainable(_tradeoff(guarantee), seen, alpha)


def p_value(guarantee: Guarantee, seen: Guesses) -> float:
    """The largest probability of this many correct guesses under the guarantee, to a relative 1%.

    >>> p_value(PureDP(0), Guesses(10, 10, 10)) == 2**-10
    True
    >>> p_value(GDP(0.5), Guesses(1000, 40, 36)) < p_value(GDP(0.8), Guesses(1000, 40, 36)) < 1
    True
    """
    tail, tradeoff = _tail(guarantee, seen), _tradeoff(guarantee)
    low, high = -700.0, 0.0  # of its logarithm
    while high - low > 0.01 and low < math.log(max(tail, 1e-300)):
        middle = (low + high) / 2
        low, high = (middle, high) if _attainable(tradeoff, seen, math.exp(middle)) else (low, middle)
    return max(min(tail, math.exp(high)), _LEAST)


def _tail(guarantee: Guarantee, seen: Guesses) -> float:
    """Points 1 and 2: under ε-DP guesses are no better than independent ones that are right with e^ε / (1 + e^ε).

    Under (ε, δ)-DP all but a few are no better. The number of these few has mean mδ, or half of that for one side.
    """
    if isinstance(guarantee, GDP) or seen.right == 0:
        return 1.0
    few = np.arange(1, 2 if guarantee.delta == 0 else min(seen.right, _MOST_FEW) + 1)
    chance = 1 / (1 + math.exp(-_epsilon(guarantee)))
    least = seen.right - few + 1  # of the others
    tails = betainc(least, seen.named - least + 1, chance)
    return float(np.min(tails + seen.canaries * guarantee.delta / (1 if seen.both else 2) / few))


def _epsilon(guarantee: Guarantee) -> float:
    if isinstance(guarantee, PureDP | ApproxDP):
        return guarantee.epsilon
    raise InputError(
        f"canaries test epsilon, epsilon with delta, or mu, not {guarantee}: state what it implies for one of these"
    )


def _tradeoff(guarantee: Guarantee) -> Tradeoff:
    if isinstance(guarantee, GDP):
        return _gaussian(guarantee.mu)
    return _approximate(_epsilon(guarantee), guarantee.delta)


def _approximate(epsilon: float, delta: float) -> Tradeoff:
    """The smallest P(E) that (ε, δ)-DP allows for an event of probability x under the neighbor."""
    return lambda x: max(0.0, (x - delta) * math.exp(-epsilon), 1 - delta - math.exp(min(epsilon, 700.0)) * (1 - x))


def _gaussian(mu: float) -> Tradeoff:
    """The same under μ-GDP."""
    return lambda x: float(ndtr(ndtri(x) - mu)) if x < 1 else 1.0


def _attainable(least: Tradeoff, seen: Guesses, alpha: float) -> bool:
    """Point 3: whether `right` or more correct guesses can have probability alpha.

    All of alpha is put on exactly `right`, and below it as little as the guarantee requires. If that exceeds the
    available mass, the answer is no.
    `right_part` and `wrong_part` are the mean fractions of canaries that were named correctly and wrongly.
    """
    sides = 1 if seen.both else 2
    right_part = alpha * seen.right / seen.canaries
    wrong_part = alpha * seen.wrong / seen.canaries
    most = seen.named / seen.canaries
    for right in range(seen.right - 1, -1, -1):
        needed = least(sides * right_part) / sides * _SAFE
        if needed <= wrong_part:
            return True
        right_part += right * (needed - wrong_part) / (seen.named - right)
        wrong_part = needed
        if right_part + wrong_part > most:
            return False
    return True
