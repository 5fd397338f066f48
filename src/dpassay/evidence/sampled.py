"""Evidence from samples: what a guessing game showed."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class SampledWitness:
    """The inputs, the event, the counts and the error probability of a game, enough to replay it.

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
