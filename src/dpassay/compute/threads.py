"""Run what libraries compute outside Python on as many threads as there are cores."""

import ctypes
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Item = TypeVar("Item")
Result = TypeVar("Result")


def in_threads(function: Callable[[Integers], Sequence[int]], numbers: Integers, least: int) -> Integers:
    """The results of a function for numbers that do not affect one another; each thread has at least `least` of them.

    >>> in_threads(lambda part: [int(number) + 1 for number in part], np.arange(3), least=1).tolist()
    [1, 2, 3]
    """
    parts = np.array_split(numbers, max(1, min(cores(), numbers.size // least)))
    if len(parts) == 1:
        return np.asarray(function(numbers), dtype=np.int64)
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(len(parts)) as threads:
        return np.concatenate([np.asarray(part, dtype=np.int64) for part in threads.map(function, parts)])


def lists_in_threads(
    function: Callable[[Sequence[Item]], list[Result]], items: Sequence[Item], size: int, most: int
) -> list[Result]:
    """The results of a function for a list, on at most `most` threads; each has whole groups of `size` items.

    >>> lists_in_threads(lambda part: [len(part)] * len(part), "abcdefg", size=2, most=2)
    [4, 4, 4, 4, 3, 3, 3]
    """
    groups = -(-len(items) // size)
    threads = max(1, min(most, cores(), groups))
    if threads == 1:
        return function(items)
    ends = [size * (groups * i // threads) for i in range(threads)] + [len(items)]
    parts = [items[a:b] for a, b in pairwise(ends)]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(threads) as pool:
        return [one for part in pool.map(function, parts) for one in part]


def torch_in_threads(
    function: Callable[[Sequence[Item]], list[Result]], items: Sequence[Item], size: int
) -> list[Result]:
    """The same for torch: each thread computes by itself, instead of all threads sharing each small matrix.

    Threads that wait for each other after every matrix of a few rows gain little on an idle machine, and on a busy one
    they took five times as much CPU time as one thread.
    """
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return lists_in_threads(function, items, size, threads)
    finally:
        torch.set_num_threads(threads)


@contextmanager
def numpy_in_one_thread() -> Iterator[None]:
    """Let numpy multiply matrices in one thread, if it comes with OpenBLAS.

    Threads that wait for each other after every small matrix took three times the CPU time on a busy machine. Nor do
    sums of floats then depend on the number of cores.
    """
    library = _openblas()
    if library is None:
        yield
        return
    with _LOCK:
        _INSIDE.append(library.scipy_openblas_get_num_threads64_())
        library.scipy_openblas_set_num_threads64_(1)
    try:
        yield
    finally:
        with _LOCK:
            before = _INSIDE.pop()
            if not _INSIDE:
                library.scipy_openblas_set_num_threads64_(before)


_LOCK = threading.Lock()
_INSIDE: list[int] = []  # how many threads there were before: outside first, then 1


@cache
def _openblas() -> Any:
    """The library by which numpy multiplies matrices; None if it has no threads that can be set."""
    try:
        library = ctypes.CDLL(np.linalg._umath_linalg.__file__)
        return library if hasattr(library, "scipy_openblas_set_num_threads64_") else None
    except (AttributeError, OSError, TypeError):  # numpy was built with another library
        return None


def cores() -> int:
    """The cores that this process may use.

    >>> cores() >= 1
    True
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
