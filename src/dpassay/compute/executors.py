"""Where work runs: this process, its threads, local processes, or a Dask cluster. Results come back in order.

An executor takes an importable function and items that are plain data. It works a few items ahead. Results are in the
order of the items unless asked otherwise, so they do not depend on who did what. A dead worker's items are redone.
"""

from __future__ import annotations

import logging
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeAlias, TypeVar

from dpassay import __version__
from dpassay.errors import InputError, MechanismError

Item = TypeVar("Item")
Result = TypeVar("Result")
Check: TypeAlias = Callable[[], None] | None

AHEAD = 3  # items in flight per worker
DEATHS = 3  # of workers that one item may cause
MOST_WORKERS = 1024
GRACE = 1.0  # seconds that a process may continue after it is told to end
CONNECT, FAREWELL = 5.0, 5.0  # seconds to wait for a scheduler, and for it when disconnecting
MOMENT = 0.1  # seconds between two checks of whether there is time left
COUNTED = 1.0  # seconds for which the number of a cluster's workers is cached
DESERTED = 60.0  # seconds to wait for a worker after all have left
DIED = (
    "{} workers died at the same piece of work: the mechanism ends its process, or needs more memory than is "
    "available; or a script that uses workers lacks the line: if __name__ == '__main__':"
)
GONE = "the Dask scheduler at {} is gone"
WAITING = "no workers are left at {}: waiting {:g} seconds for one; Ctrl-C keeps the results so far"
LEFT = "all workers of the cluster at {0} have left: start some with 'dask worker {0}', and try again"


class Executor(Protocol):
    """Who does the work."""

    def map(
        self, function: Callable[[Item], Result], items: Iterable[Item], check: Check = None, ordered: bool = True
    ) -> Iterator[Result]:
        """The results of all items, in order or as they are finished; items are taken only a little ahead of time.

        `check` is called regularly while waiting for a result; an exception from it ends the waiting.
        """

    def describe(self) -> str:
        """A short description of the workers."""

    def close(self) -> None:
        """Release the workers."""


class InProcess:
    """This process, one item after the other.

    >>> list(InProcess().map(abs, [-1, 2]))
    [1, 2]
    """

    def map(
        self, function: Callable[[Item], Result], items: Iterable[Item], check: Check = None, ordered: bool = True
    ) -> Iterator[Result]:
        return (function(item) for item in items)

    def describe(self) -> str:
        return "this process"

    def close(self) -> None:
        """Nothing to do."""


class _Ahead:
    """What executors that work ahead share: submitting items, waiting for them in order, redoing what was lost."""

    lost: tuple[type[BaseException], ...] = (BrokenExecutor,)
    chances = DEATHS  # how often in a row a lost item is redone
    watched = False  # whether `wait` notices that all workers have left

    def size(self) -> int:
        """How many workers there are now."""
        raise NotImplementedError

    def submit(self, function: Callable[[Any], Any], item: Any) -> Any:
        """Submit one item and return its future."""
        raise NotImplementedError

    def wait(self, future: Any, check: Check = None) -> Any:
        """The result of an item."""
        while check is not None and not wait_for([future], MOMENT).done:
            check()
        return future.result()

    def survived(self, future: Any) -> bool:
        """Whether a future still has, or will have, its result after another one's was lost."""
        return future.done() and not future.cancelled() and future.exception() is None

    def renew(self) -> None:
        """Restore the executor after a loss."""

    def drop(self, futures: list[Any]) -> None:
        """These are no longer needed."""
        for future in futures:
            future.cancel()

    def first(self, pieces: list[_Piece], check: Check = None) -> _Piece:
        """The first piece that is finished; or, if there is none and `wait` is to watch, the next one."""
        while not (done := [piece for piece in pieces if piece.future and piece.future.done()]) and not self.watched:
            if check is not None:
                check()
            time.sleep(MOMENT)
        return (done or pieces)[0]

    def map(
        self, function: Callable[[Item], Result], items: Iterable[Item], check: Check = None, ordered: bool = True
    ) -> Iterator[Result]:
        """Results in order, an error in the function or in the items at its place; or as they are finished."""
        waiting: list[_Piece] = []
        source: Iterator[Item] | None = iter(items)
        wrong, deaths = None, 0
        try:
            while True:
                while source is not None and len(waiting) < AHEAD * self.size():
                    try:
                        waiting.append(_Piece(next(source)))
                    except StopIteration:
                        source = None
                    except Exception as error:  # raised once everything before it is done
                        source, wrong = None, error
                if not waiting:
                    break
                try:
                    alone = 0 < deaths == self.chances - 1  # the last attempt, when no other item can be to blame
                    for piece in waiting[: 1 if alone else None]:
                        if piece.future is None:
                            piece.future = self.submit(function, piece.item)
                    piece = waiting[0] if ordered else self.first(waiting, check)
                    result = self.wait(piece.future, check)
                except self.lost as error:
                    deaths += 1
                    if deaths >= self.chances:
                        raise MechanismError(DIED.format(max(deaths, DEATHS))) from error
                    self.renew()
                    for piece in waiting:
                        if piece.future is not None and not self.survived(piece.future):
                            piece.future = None
                    continue
                deaths = 0
                waiting.remove(piece)
                yield result
            if wrong is not None:
                raise wrong
        finally:
            self.drop([piece.future for piece in waiting if piece.future is not None])


@dataclass(eq=False)
class _Piece:
    """An item and, once it is submitted, its future."""

    item: Any
    future: Any = None


class Threads(_Ahead):
    """Threads of this process: for kernels that let other threads run at the same time.

    >>> with_two = Threads(2)
    >>> list(with_two.map(abs, range(-3, 0)))
    [3, 2, 1]
    >>> with_two.close()
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.pool = ThreadPoolExecutor(number)

    def size(self) -> int:
        return self.number

    def submit(self, function: Callable[[Any], Any], item: Any) -> Any:
        return self.pool.submit(function, item)

    def describe(self) -> str:
        return f"{self.number} threads"

    def close(self) -> None:
        self.pool.shutdown(wait=True, cancel_futures=True)


class Processes(_Ahead):
    """Processes on this machine, spawned afresh: they share none of this one's memory."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.pool = self._started()

    def _started(self) -> ProcessPoolExecutor:
        from multiprocessing import get_context

        return ProcessPoolExecutor(self.number, mp_context=get_context("spawn"), initializer=_bound)

    def size(self) -> int:
        return self.number

    def submit(self, function: Callable[[Any], Any], item: Any) -> Any:
        """Submit one item; a process starts when there is work for it."""
        try:
            with _unheard():
                return self.pool.submit(partial(_told, function, __version__), item)
        except OSError as error:
            if error.errno is None:  # a process was being started when the pool noticed that another one had died
                raise BrokenExecutor from error
            raise

    def renew(self) -> None:
        """A pool that lost a process accepts no more work, so start another."""
        self.close()
        self.pool = self._started()

    def describe(self) -> str:
        return f"{self.number} processes"

    def close(self) -> None:
        """End the processes, and kill those that are still running a second later."""
        running = list((getattr(self.pool, "_processes", None) or {}).values())
        late = threading.Timer(GRACE, lambda: [process.terminate() for process in running])
        late.daemon = True
        late.start()
        self.pool.shutdown(wait=True, cancel_futures=True)
        late.cancel()


def _bound() -> None:
    """What a process does first: leave Ctrl-C to the process that hands out the work, and end when that one ends."""
    from multiprocessing import parent_process

    def follow(parent: Any) -> None:
        parent.join()
        os._exit(1)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=follow, args=(parent_process(),), daemon=True).start()


@contextmanager
def _unheard() -> Iterator[None]:
    """Ctrl-C is blocked; a process that starts meanwhile never receives it, not even before its first line runs."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _told(function: Callable[[Item], Result], version: str, item: Item) -> Result:
    """The function's result, in another process. An error that cannot be pickled is replaced by its description."""
    try:
        if version != __version__:
            raise InputError(f"a worker has dpassay {__version__}, not {version}: install the same on all of them")
        return function(item)
    except Exception as error:
        try:
            pickle.loads(pickle.dumps(error))  # our own bytes
        except Exception:
            words = f"{type(error).__name__}: {error}"
            raise (InputError(str(error)) if isinstance(error, InputError) else MechanismError(words)) from None
        raise


class Cluster(_Ahead):
    """The workers of a Dask cluster. Dask redoes what a worker was doing when it died."""

    chances, watched = 1, True  # Dask has tried an item on several workers before it reports a loss

    def __init__(self, address: str) -> None:
        try:
            from distributed import Client, KilledWorker
        except ImportError:
            raise InputError("a cluster needs Dask, which is not installed: pip install 'dpassay[cluster]'") from None
        self.address, self.lost, self.counted = address, (KilledWorker,), (0, 0.0)
        self.levels = {name: logging.getLogger(name).level for name in ("distributed", "distributed.client")}
        _set_levels(dict.fromkeys(self.levels, logging.CRITICAL))  # what matters is reported here instead
        self.client = Client.__new__(Client)
        try:
            if not address.strip():
                raise InputError("the cluster's address is empty: give a scheduler's, such as tcp://127.0.0.1:8786")
            self.client.__init__(address, timeout=CONNECT, set_as_default=False)
            if not self.there():
                raise InputError(f"the cluster at {address} has no workers; start some with 'dask worker {address}'")
        except Exception as error:
            self.close()  # a half-made client would be closed by the garbage collector, and may deadlock there
            if isinstance(error, InputError | MechanismError):
                raise
            raise InputError(
                f"no Dask scheduler answers at {address}: {error or type(error).__name__}; start one with "
                "'dask scheduler' and give its address, such as tcp://127.0.0.1:8786"
            ) from None

    def there(self) -> int:
        """All threads of all workers, counted again after a second."""
        if not self.counted[1] or time.monotonic() - self.counted[1] > COUNTED:
            with self._in_touch():
                self.counted = sum(self.client.nthreads().values()), time.monotonic()
        return self.counted[0]

    def size(self) -> int:
        """If all workers have left, work is kept ready for one that may come."""
        return max(1, self.there())

    def submit(self, function: Callable[[Any], Any], item: Any) -> Any:
        with self._in_touch():
            return self.client.submit(partial(_told, function, __version__), item, pure=False)

    def wait(self, future: Any, check: Check = None) -> Any:
        """The result, as long as there are workers; if a worker leaves with a result, it is redone."""
        seen, told = time.monotonic(), False
        while True:
            try:
                return future.result(timeout=2 * COUNTED)
            except (OSError, RuntimeError, CancelledError) as error:
                if future.status == "error":  # the function's own
                    raise future.exception() from None
                if not isinstance(error, TimeoutError):
                    raise MechanismError(GONE.format(self.address)) from error
            if check is not None:
                check()
            seen = time.monotonic() if self.there() else seen
            if not self.there() and not told:
                told = True
                print(WAITING.format(self.address, DESERTED), file=sys.stderr)
            if time.monotonic() - seen > DESERTED:
                raise MechanismError(LEFT.format(self.address))

    def drop(self, futures: list[Any]) -> None:
        with suppress(Exception):
            if futures:
                self.client.cancel(futures, force=True)

    @contextmanager
    def _in_touch(self) -> Iterator[None]:
        try:
            yield
        except (OSError, RuntimeError) as error:
            raise MechanismError(GONE.format(self.address)) from error

    def describe(self) -> str:
        return f"{self.size()} Dask workers"

    def close(self) -> None:
        with suppress(Exception):  # the work is done, and it does not matter if the scheduler is gone
            self.client.close(timeout=FAREWELL)
        _set_levels(self.levels)


def _set_levels(levels: dict[str, int]) -> None:
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


def make_executor(workers: int | None = None, cluster: str | None = None, threads: int = 1) -> Executor:
    """The requested executor: local processes, a cluster, or otherwise this process, with threads for kernels.

    >>> make_executor().describe()
    'this process'
    >>> make_executor(workers=0)
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
    return InProcess() if threads == 1 else Threads(threads)


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
