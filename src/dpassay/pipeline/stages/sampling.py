"""Which records take part in a step, and how many steps there are: some first stages and a last one."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpassay.core.numbers import Number, middle, number
from dpassay.errors import InputError
from dpassay.pipeline.stages.base import OutputRegion, Stage
from dpassay.pipeline.syntax import Parameter, Syntax, count
from dpassay.values import dataclass


def _check_rate(value: Any) -> Number:
    rate = number(value)
    if rate.a <= 0 or rate.a > 1:
        raise InputError(
            f"poisson needs a sampling rate above 0 and at most 1, got {middle(rate):g}; 1 means that every record "
            "takes part"
        )
    return number(1) if rate.b > 1 else rate  # an enclosure of 1 may slightly exceed 1


class Sampling(Stage):
    """A first stage that draws the records that take part; the others add nothing to the sum."""

    keeps = "all"
    amplifies: ClassVar[bool] = False  # whether a record takes part is drawn anew in each step
    on_its_own: ClassVar[bool] = False  # and for each record independently of all others

    @property
    def takes_all(self) -> bool:
        """Whether each record always takes part, alone if there are batches."""
        return False

    @property
    def warnings(self) -> tuple[str, ...]:
        """What it is easily confused with."""
        return ()

    def output_region(self, before: OutputRegion) -> OutputRegion:
        return before

    def run(self, batch: Any, rng: np.random.Generator) -> Any:
        """A record passes unchanged; whether it is summed is decided right before the noise."""
        return batch

    @abstractmethod
    def described(self, steps: int) -> str:
        """A sentence about this many steps, without the full stop."""

    @abstractmethod
    def draws(self, size: int, rng: np.random.Generator) -> Iterator[NDArray[np.bool_]]:
        """For each step, in which of `size` runs a data set's one record takes part."""


@dataclass(frozen=True)
class Poisson(Sampling):
    """Each record takes part with this probability; only as first stage.

    >>> Poisson("0.01").neighbours
    ('add-remove-record', 'replace-record')
    """

    syntax = Syntax("poisson", order=144, rate=Parameter("number", _check_rate))
    neighbours = ("add-remove-record", "replace-record")
    amplifies = on_its_own = True
    rate: Number

    @property
    def takes_all(self) -> bool:
        return bool(self.rate == 1)

    def described(self, steps: int) -> str:
        chance = f"with probability {middle(self.rate):g}"
        if steps == 1:
            return f"A record takes part {chance}"
        return f"A record takes part in each of {steps:,} steps {chance}, and the losses of all steps add up"

    def draws(self, size: int, rng: np.random.Generator) -> Iterator[NDArray[np.bool_]]:
        yield rng.random(size) < middle(self.rate)


@dataclass(frozen=True)
class Subsample(Sampling):
    """Draw m of n records without replacement; only as first stage.

    >>> round(middle(Subsample(256, 60000).rate), 6)
    0.004267
    """

    syntax = Syntax("subsample", order=145, size=count("subsample: m", "m"), records=count("subsample: n", "n"))
    neighbours = ("replace-record",)
    amplifies = True
    size: int
    records: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.size > self.records:
            raise InputError(f"subsample needs m at most n, got {self.size} of {self.records} records")

    @property
    def rate(self) -> Number:
        """The probability that one record is drawn."""
        return number(self.size) / self.records

    @property
    def takes_all(self) -> bool:
        return self.records == 1

    def described(self, steps: int) -> str:
        drawn = f"{self.size:,} of {self.records:,} records are drawn"
        return f"In each of {steps:,} steps {drawn}, and the losses of all steps add up" if steps > 1 else drawn

    def draws(self, size: int, rng: np.random.Generator) -> Iterator[NDArray[np.bool_]]:
        yield rng.random(size) < self.size / self.records


@dataclass(frozen=True)
class Shuffle(Sampling):
    """Shuffle the records and divide them into batches, one step each; only as first stage.

    Each record takes part in exactly one of the steps, so all of them together are an epoch.

    >>> sum(drawn.astype(int) for drawn in Shuffle(2).draws(3, np.random.default_rng(0))).tolist()
    [1, 1, 1]
    """

    syntax = Syntax("shuffle", order=146, batches=count("shuffle: batches"))
    neighbours = ("replace-record",)
    batches: int

    @property
    def warnings(self) -> tuple[str, ...]:
        if self.batches == 1:
            return ()
        return (
            "Shuffled batches are not Poisson samples: an epsilon computed for "
            f"poisson(1/{self.batches}) does not hold here, and no amplification by shuffling is proved.",
        )

    def described(self, steps: int) -> str:
        batches = f"each record takes part in one of {self.batches:,} shuffled batches"
        return f"In each of {steps:,} epochs {batches}" if steps > 1 else f"E{batches[1:]}"

    def draws(self, size: int, rng: np.random.Generator) -> Iterator[NDArray[np.bool_]]:
        batch = rng.integers(self.batches, size=size)
        for i in range(self.batches):
            yield batch == i


@dataclass(frozen=True)
class Times(Stage):
    """Repeat everything before it this many times; only as last stage.

    Each run may depend on all earlier outputs: adaptive composition.

    >>> print(Times(1000))
    times(1000)
    """

    syntax = Syntax("times", order=245, steps=count("times: steps"))
    keeps = "all"
    comes_last = True
    steps: int

    def output_region(self, before: OutputRegion) -> OutputRegion:
        return before

    def run(self, batch: Any, rng: np.random.Generator) -> Any:
        return batch
