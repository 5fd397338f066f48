"""Evidence from samples: what a guessing game showed."""

from dataclasses import field
from math import inf
from typing import Any

from dpassay.values import dataclass


@dataclass(frozen=True)
class Example:
    """An output of one of the inputs, as text that can be shown anywhere, and which input the rule named for it."""

    input: int
    output: str
    named: int | None


@dataclass(frozen=True)
class Rate:
    """How often one input was named in its own runs and in those of the other."""

    named: int
    own: float
    other: float

    @property
    def ratio(self) -> float:
        """How many times as often; infinite if it was never named for the other.

        >>> Rate(0, 0.5, 0.25).ratio, Rate(0, 0.5, 0.0).ratio
        (2.0, inf)
        """
        return self.own / self.other if self.other else inf if self.own else 1.0


@dataclass(frozen=True)
class SampledWitness:
    """The inputs, the event, the counts and the error probability of a game, enough to replay it.

    `number` and `seed` identify the random streams. With several inputs, `right` counts how often the true one was
    named. The rest is for readers: for each of two inputs, `table` has how often the first and the second were named
    and its runs; `features` is what weighs most in the rule, and `examples` are a few outputs.
    """

    inputs: tuple[Any, ...]
    event: str
    right: int
    wrong: int
    runs: int
    alpha: float
    seed: int
    number: int
    table: tuple[tuple[int, int, int], ...] = ()
    features: tuple[str, ...] = ()
    examples: tuple[Example, ...] = ()
    failure: BaseException | None = field(default=None, compare=False, repr=False)  # of one of the examples

    @property
    def rates(self) -> tuple[Rate, ...]:
        """For each of two inputs that was ever named, how often; the most informative first.

        >>> SampledWitness(("a", "b"), "", 8, 2, 20, 0.1, 0, 0, ((3, 1, 10), (1, 5, 10))).rates
        (Rate(named=1, own=0.5, other=0.1), Rate(named=0, own=0.3, other=0.1))
        """
        if not all(row[2] for row in self.table):
            return ()
        found = []
        for i, (own, other) in enumerate((self.table, self.table[::-1]) if self.table else ()):
            if own[i] + other[i]:
                # A few runs may have an infinite ratio by chance: adding half a run on each side decides the order.
                telling = (own[i] + 0.5) / (own[2] + 1) * (other[2] + 1) / (other[i] + 0.5)
                found.append((-telling, Rate(i, own[i] / own[2], other[i] / other[2])))
        return tuple(rate for _, rate in sorted(found, key=lambda one: one[0]))
