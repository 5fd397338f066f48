"""What a game showed: the evidence of a verdict that rests on samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class SampledWitness:
    """What a game showed, to be played again: the inputs, the event, the counts, and the error probability.

    `number` and `seed` name the random streams. Of several inputs `right` counts how often the true one was named.
    """

    inputs: tuple[Any, ...]
    event: str
    right: int
    wrong: int
    runs: int
    alpha: float
    seed: int
    number: int
