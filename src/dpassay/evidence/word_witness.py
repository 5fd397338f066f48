"""A counterexample in words: two words, and a word that one of them becomes more easily than the other."""

from __future__ import annotations

import math

from dpassay.core.interval import Interval
from dpassay.values import dataclass


@dataclass(frozen=True)
class WordWitness:
    """Two words and an output, with ln P(output|x) and ln P(output|y); the distance is None if a word has no vector.

    >>> seen = WordWitness("yes", "no", "yes", Interval(-0.2, -0.1), Interval(-3.0, -2.9), 1.5)
    >>> print(seen.event)
    output 'yes': probability 0.860708 for 'yes', 0.0523397 for 'no'
    """

    x: str
    y: str
    output: str
    log_p: Interval
    log_q: Interval
    distance: float | None

    @property
    def pair(self) -> str:
        """The two words, as text."""
        apart = "" if self.distance is None else f", {self.distance:.6g} apart"
        return f"{self.x!r} against {self.y!r}{apart}"

    @property
    def event(self) -> str:
        """The output and its two probabilities, as text."""
        shown = f"output {self.output!r}" if self.output else "no output at all"
        return f"{shown}: probability {_chance(self.log_p)} for {self.x!r}, {_chance(self.log_q)} for {self.y!r}"


def _chance(log: Interval) -> str:
    if log.upper == -math.inf:
        return "0"
    middle = (log.lower + log.upper) / 2
    return f"{math.exp(middle):.6g}" if middle > -600 else f"10^{middle / math.log(10):.6g}"
