"""Integers that a library computes outside Python, by as many threads as there are cores."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]


def in_threads(function: Callable[[Integers], Sequence[int]], numbers: Integers, least: int) -> Integers:
    """What a function makes of each number, where no number matters for another; at least `least` numbers a thread.

    >>> in_threads(lambda part: [int(number) + 1 for number in part], np.arange(3), least=1).tolist()
    [1, 2, 3]
    """
    parts = np.array_split(numbers, max(1, min(cores(), numbers.size // least)))
    if len(parts) == 1:
        return np.asarray(function(numbers), dtype=np.int64)
    with ThreadPoolExecutor(len(parts)) as threads:
        return np.concatenate([np.asarray(part, dtype=np.int64) for part in threads.map(function, parts)])


def cores() -> int:
    """The cores that this process may use.

    >>> cores() >= 1
    True
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
