"""Where work runs: this process, its threads, local processes, or a Dask cluster. Results come back in order.

An executor takes an importable function and items that are plain data. It works a few items ahead. Results are in the
order of the items unless asked otherwise, so they do not depend on who did what. A dead worker's items are redone,
unless they may not be.
"""

from __future__ import annotations

import os
import pickle
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol, TypeAlias, TypeVar

from dpassay import __version__
from dpassay.errors import InputError, MechanismError
from dpassay.values import dataclass

Item = TypeVar("Item")
Result = TypeVar("Result")
Check: TypeAlias = Callable[[], None] | None

AHEAD = 3  # items in flight per worker
DEATHS = 3  # of workers that one item may cause
GRACE = 1.0  # seconds that a process may continue after it is told to end
MOMENT = 0.1  # seconds between two checks of whether there is time left
DIED = (
    "{} workers died at the same piece of work: the mechanism ends its process, or needs more memory than is "
    "available; or a script that uses workers lacks the line: if __name__ == '__main__':"
)
NOT_REDONE = (
    "a worker died. Its runs are not repeated: the mechanism has randomness of its own, so only runs in which no "
    "worker dies would be counted. If the mechanism ends its process, let it raise an exception instead, which counts "
    "as an output; if it needs more memory than is available, use fewer workers"
)


class Executor(Protocol):
    """Who does the work."""

    def map(
        self,
        function: Callable[[Item], Result],
        items: Iterable[Item],
        check: Check = None,
        ordered: bool = True,
        redo: bool = True,
    ) -> Iterator[Result]:
        """The results of all items, in order or as they are finished; items are taken only a little ahead of time.

        `check` is called regularly while waiting for a result; an exception from it ends the waiting. Without `redo`
        no item is begun twice: a worker that dies ends the work with a `MechanismError`.
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
        self,
        function: Callable[[Item], Result],
        items: Iterable[Item],
        check: Check = None,
        ordered: bool = True,
        redo: bool = True,
    ) -> Iterator[Result]:
        return (function(item) for item in items)

    def describe(self) -> str:
        return "this process"

    def close(self) -> None:
        """Nothing to do."""


class Ahead:
    """What executors that work ahead share: submitting items, waiting for them in order, redoing what was lost."""

    lost: tuple[type[BaseException], ...] = (BrokenExecutor,)
    chances = DEATHS  # how often in a row a lost item is redone

    def size(self) -> int:
        """How many workers there are now."""
        raise NotImplementedError

    def submit(self, function: Callable[[Any], Any], item: Any, redo: bool = True) -> Any:
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
        """Release futures that are no longer needed."""
        for future in futures:
            future.cancel()

    def lookout(self) -> Callable[[], None]:
        """To be called again and again while waiting: raises if nobody is left to do the work."""
        return lambda: None

    def first(self, pieces: list[SubmittedItem], check: Check = None) -> SubmittedItem:
        """The first piece that is finished."""
        look = self.lookout()
        while not (done := [piece for piece in pieces if piece.future is not None and piece.future.done()]):
            look()
            if check is not None:
                check()
            time.sleep(MOMENT)
        return done[0]

    def map(
        self,
        function: Callable[[Item], Result],
        items: Iterable[Item],
        check: Check = None,
        ordered: bool = True,
        redo: bool = True,
    ) -> Iterator[Result]:
        """Results in order, an error in the function or in the items at its place; or as they are finished."""
        waiting: list[SubmittedItem] = []
        source: Iterator[Item] | None = iter(items)
        wrong, deaths = None, 0
        try:
            while True:
                while source is not None and len(waiting) < AHEAD * self.size():
                    try:
                        waiting.append(SubmittedItem(next(source)))
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
                            piece.future = self.submit(function, piece.item, redo)
                    piece = waiting[0] if ordered else self.first(waiting, check)
                    result = self.wait(piece.future, check)
                except self.lost as error:
                    deaths += 1
                    if redo and deaths >= self.chances:
                        raise MechanismError(DIED.format(max(deaths, DEATHS))) from error
                    self.renew()
                    if not redo:
                        raise MechanismError(NOT_REDONE) from error
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
class SubmittedItem:
    """An item and, once it is submitted, its future."""

    item: Any
    future: Any = None


class Threads(Ahead):
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

    def submit(self, function: Callable[[Any], Any], item: Any, redo: bool = True) -> Any:
        return self.pool.submit(function, item)

    def describe(self) -> str:
        return f"{self.number} threads"

    def close(self) -> None:
        self.pool.shutdown(wait=True, cancel_futures=True)


class Processes(Ahead):
    """Processes on this machine, spawned afresh: they share none of this one's memory."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.pool = self._started()

    def _started(self) -> ProcessPoolExecutor:
        from multiprocessing import get_context

        return ProcessPoolExecutor(self.number, mp_context=get_context("spawn"), initializer=_bound)

    def size(self) -> int:
        return self.number

    def submit(self, function: Callable[[Any], Any], item: Any, redo: bool = True) -> Any:
        """Submit one item; a process starts when there is work for it."""
        try:
            with _unheard():
                return self.pool.submit(partial(told, function, __version__), item)
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


def told(function: Callable[[Item], Result], version: str, item: Item) -> Result:
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


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
