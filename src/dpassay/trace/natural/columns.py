"""The outputs of many runs as columns of numbers, so that an event is counted in all of them at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpassay.trace.natural.whole import WholeReading, numbers_in
from dpassay.values import dataclass

Array = NDArray[Any]


class RunOutputs(Sequence[WholeReading]):
    """The outputs of runs, in order. Each column of numbers is extracted once.

    >>> from dpassay.trace.natural.whole import read
    >>> RunOutputs([read([1.0, 2.0]), read("none")]).numbers(1, "output[0]")
    array([ 1., nan])
    """

    def __init__(self, readings: Sequence[WholeReading]) -> None:
        self.readings = readings
        self._columns: dict[Any, Array] = {}

    def __len__(self) -> int:
        return len(self.readings)

    def __getitem__(self, at: Any) -> Any:
        return RunOutputs(self.readings[at]) if isinstance(at, slice) else self.readings[at]

    def __iter__(self) -> Iterator[WholeReading]:
        return iter(self.readings)

    def numbers(self, at: int, path: str) -> Array:
        """The part `at` if it has this path and is a number; otherwise NaN."""

        def number(one: WholeReading) -> float:
            value = part(one, at, path)
            return value if type(value) is float else np.nan

        return self._column((at, path), number)

    def written(self, at: int, path: str, k: int, many: int) -> Array:
        """The k-th of the numbers written in a text; NaN where the text does not have `many` numbers."""

        def number(one: WholeReading) -> float:
            found = numbers_in(part(one, at, path))
            return found[k] if len(found) == many else np.nan

        return self._column((at, path, k, many), number)

    def _column(self, key: Any, number: Callable[[WholeReading], float]) -> Array:
        if key not in self._columns:
            self._columns[key] = np.fromiter(map(number, self.readings), float, len(self.readings))
        return self._columns[key]

    def where(self, test: Callable[[WholeReading], bool]) -> Array:
        """Which outputs pass a test that takes one."""
        return np.fromiter(map(test, self.readings), bool, len(self.readings))


def part(one: WholeReading, at: int, path: str) -> Any:
    """The value of the part `at`, if that is the path; otherwise None."""
    return one.values[at] if at < len(one.paths) and one.paths[at] == path else None


@dataclass(frozen=True)
class OutputColumn:
    """A number that every output has: its name, and how to extract it from all of them."""

    said: str
    of: Callable[[RunOutputs], Array]
