"""Where work runs: this process, its threads, local processes, or a Dask cluster. Results come back in order.

A crew is given a function that can be imported and items that are plain data. It works some items ahead and hands back
results in the order of the items, so what is made of them does not depend on who did what when. A worker that dies
costs its items only: they are done again by another.
"""

from __future__ import annotations

import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Protocol, TypeVar

from dpassay.errors import InputError, MechanismError

Item = TypeVar("Item")
Result = TypeVar("Result")

AHEAD = 3  # items under way for each worker
DEATHS = 3  # that one item may cost
SECONDS = 1.0  # that a parcel of tasks should take, so that handing it over costs little
MOST_WORKERS = 1024
CONNECT = "15s"
DIED = "{} workers died at the same piece of work: the mechanism ends its process, or needs more memory than there is"


class Crew(Protocol):
    """Who does the work."""

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """The results of all items, in their order; items are asked for only some time ahead."""

    def describe(self) -> str:
        """Who they are, in a few words."""

    def close(self) -> None:
        """Send them home."""


class Here:
    """This process, one item after the other.

    >>> list(Here().map(abs, [-1, 2]))
    [1, 2]
    """

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """One result after the other."""
        return (function(item) for item in items)

    def describe(self) -> str:
        """In words."""
        return "this process"

    def close(self) -> None:
        """Nothing to do."""


class _Ahead:
    """What crews have in common that work ahead: handing out, waiting in order, and doing again what was lost."""

    lost: tuple[type[BaseException], ...] = (BrokenExecutor,)

    def size(self) -> int:
        """How many workers there are now."""
        raise NotImplementedError

    def submit(self, function: Callable[[Any], Any], item: Any) -> Any:
        """Hand out one item; what comes back has `result` and `cancel`."""
        raise NotImplementedError

    def renew(self) -> None:
        """Make the crew whole again after a loss."""

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Results in order."""
        waiting: deque[tuple[Item, Any]] = deque()
        source, deaths = iter(items), 0
        try:
            while True:
                while len(waiting) < AHEAD * self.size():
                    try:
                        item = next(source)
                    except StopIteration:
                        break
                    waiting.append((item, self._handed_out(function, item)))
                if not waiting:
                    return
                try:
                    result = waiting[0][1].result()
                except self.lost as error:
                    deaths += 1
                    if deaths >= DEATHS:
                        raise MechanismError(DIED.format(deaths)) from error
                    self.renew()
                    waiting = deque((item, self.submit(function, item)) for item, _ in waiting)
                    continue
                deaths = 0
                waiting.popleft()
                yield result
        finally:
            for _, future in waiting:
                future.cancel()

    def _handed_out(self, function: Callable[[Any], Any], item: Any) -> Any:
        try:
            return self.submit(function, item)
        except self.lost:  # somebody died while nobody was waiting; what he had is noticed when it is waited for
            self.renew()
            return self.submit(function, item)


class Threads(_Ahead):
    """Threads of this process: for kernels, which let others run beside them.

    >>> with_two = Threads(2)
    >>> list(with_two.map(abs, range(-3, 0)))
    [3, 2, 1]
    >>> with_two.close()
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.pool = ThreadPoolExecutor(number)

    def size(self) -> int:
        """As many as were asked for."""
        return self.number

    def submit(self, function: Callable[[Any], Any], item: Any) -> Any:
        """Hand out one item."""
        return self.pool.submit(function, item)

    def describe(self) -> str:
        """In words."""
        return f"{self.number} threads"

    def close(self) -> None:
        """End what is under way."""
        self.pool.shutdown(wait=True, cancel_futures=True)


class Processes(_Ahead):
    """Processes of this machine, started anew: nothing of this one's memory goes with them."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.pool = self._started()

    def _started(self) -> ProcessPoolExecutor:
        from multiprocessing import get_context

        return ProcessPoolExecutor(self.number, mp_context=get_context("spawn"), initializer=_deaf)

    def size(self) -> int:
        """As many as were asked for."""
        return self.number

    def submit(self, function: Callable[[Any], Any], item: Any) -> Any:
        """Hand out one item."""
        return self.pool.submit(function, item)

    def renew(self) -> None:
        """A pool that lost a process takes no more work: start another."""
        self.pool.shutdown(wait=False, cancel_futures=True)
        self.pool = self._started()

    def describe(self) -> str:
        """In words."""
        return f"{self.number} processes"

    def close(self) -> None:
        """End what is under way."""
        self.pool.shutdown(wait=True, cancel_futures=True)


def _deaf() -> None:
    """Ctrl-C goes to all processes of a terminal; only the one that hands out the work should act on it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


class Cluster(_Ahead):
    """The workers of a Dask cluster. Dask does again what a worker that died had under way."""

    def __init__(self, address: str) -> None:
        try:
            from distributed import Client
            from distributed.scheduler import KilledWorker
        except ImportError:
            raise InputError("a cluster needs Dask, which is not installed: pip install 'dpassay[cluster]'") from None
        self.lost = (KilledWorker,)
        try:
            self.client = Client(address, timeout=CONNECT, set_as_default=False)
        except (OSError, ValueError, TypeError) as error:
            raise InputError(
                f"no Dask scheduler answers at {address}: {error or type(error).__name__}; start one by "
                "'dask scheduler' and give its address, such as tcp://127.0.0.1:8786"
            ) from None
        if not self.size(at_least=0):
            self.client.close()
            raise InputError(f"the cluster at {address} has no workers; start some by 'dask worker {address}'")

    def size(self, at_least: int = 1) -> int:
        """All threads of all workers that are there now."""
        workers = self.client.scheduler_info(n_workers=-1)["workers"].values()
        return max(at_least, sum(int(worker["nthreads"]) for worker in workers))

    def submit(self, function: Callable[[Any], Any], item: Any) -> Any:
        """Hand out one item."""
        return self.client.submit(function, item, pure=False)

    def describe(self) -> str:
        """In words."""
        return f"{self.size()} Dask workers"

    def close(self) -> None:
        """Leave the cluster; it goes on without us."""
        with suppress(Exception):  # the work is done, and a scheduler that is gone needs no farewell
            self.client.close()


def gathered(workers: int | None = None, cluster: str | None = None, threads: int = 1) -> Crew:
    """The crew that was asked for: local processes, a cluster, or else this process, with threads for kernels.

    >>> gathered().describe()
    'this process'
    >>> gathered(workers=0)
    Traceback (most recent call last):
    ...
    dpassay.errors.InputError: workers must be a whole number from 1 to 1024, got 0
    """
    if workers is not None and cluster is not None:
        raise InputError("give workers or a cluster, not both: a cluster has its own")
    if cluster is not None:
        return Cluster(cluster)
    if workers is not None:
        if isinstance(workers, bool) or not isinstance(workers, int) or not 1 <= workers <= MOST_WORKERS:
            raise InputError(f"workers must be a whole number from 1 to {MOST_WORKERS}, got {workers}")
        return Processes(workers)
    return Here() if threads == 1 else Threads(threads)


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Pace:
    """How many tasks go into a parcel: as many as keep a worker busy for about a second, by what the last ones took.

    >>> pace = Pace()
    >>> pace.took(1, 0.01)
    >>> pace.number
    4
    """

    def __init__(self, most: int = 1 << 20) -> None:
        self.number, self.most = 1, most

    def took(self, tasks: int, seconds: float) -> None:
        """So many tasks took so long; the next parcels are larger by no more than four times, or smaller."""
        fitting = int(tasks * SECONDS / max(seconds, 1e-6))
        self.number = max(1, min(fitting, 4 * tasks, self.most))
