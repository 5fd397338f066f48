"""The workers of a Dask cluster as an executor."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from dpassay import __version__
from dpassay.compute.executors import Ahead, Check, told
from dpassay.errors import InputError, MechanismError

CONNECT, FAREWELL = 5.0, 5.0  # seconds to wait for a scheduler, and for it when disconnecting
COUNTED = 1.0  # seconds for which the number of workers is cached
DESERTED = 60.0  # seconds to wait for a worker after all have left
GONE = "the Dask scheduler at {} is gone"
WAITING = "no workers are left at {}: waiting {:g} seconds for one; Ctrl-C keeps the results so far"
LEFT = "all workers of the cluster at {0} have left: start some with 'dask worker {0}', and try again"


class RepeatedTask(Exception):
    """Dask restarted a task after its worker had died, although the task may be started only once."""


class Cluster(Ahead):
    """The workers of a Dask cluster. Dask redoes what a worker was doing when it died, unless it is told not to."""

    chances = 1  # Dask has tried an item on several workers before it reports a loss

    def __init__(self, address: str) -> None:
        try:
            from distributed import Client, KilledWorker
        except ImportError:
            raise InputError("a cluster needs Dask, which is not installed: pip install 'dpassay[cluster]'") from None
        self.address, self.lost, self.counted = address, (KilledWorker, RepeatedTask), (0, 0.0)
        self.marked: set[str] = set()  # tasks that may be begun only once
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

    def submit(self, function: Callable[[Any], Any], item: Any, redo: bool = True) -> Any:
        begin = function if redo else partial(only_once, function)
        with self._in_touch():
            future = self.client.submit(partial(told, begin, __version__), item, pure=False)
        self.marked |= set() if redo else {future.key}
        return future

    def wait(self, future: Any, check: Check = None) -> Any:
        """The result, as long as there are workers; if a worker leaves with a result, it is redone."""
        look = self.lookout()
        while True:
            try:
                result = future.result(timeout=2 * COUNTED)
                self._unmark([future])
                return result
            except (OSError, RuntimeError, CancelledError) as error:
                if future.status == "error":  # the function's own
                    raise future.exception() from None
                if not isinstance(error, TimeoutError):
                    raise MechanismError(GONE.format(self.address)) from error
            if check is not None:
                check()
            look()

    def lookout(self) -> Callable[[], None]:
        seen, said = time.monotonic(), False

        def look() -> None:
            nonlocal seen, said
            if self.there():
                seen = time.monotonic()
            elif not said:
                said = True
                print(WAITING.format(self.address, DESERTED), file=sys.stderr)
            if time.monotonic() - seen > DESERTED:
                raise MechanismError(LEFT.format(self.address))

        return look

    def drop(self, futures: list[Any]) -> None:
        with suppress(Exception):
            if futures:
                self.client.cancel(futures, force=True)
        self._unmark(futures)

    def _unmark(self, futures: list[Any]) -> None:
        """Let the scheduler forget that these tasks were begun."""
        for key in self.marked.intersection(future.key for future in futures):
            self.marked.remove(key)
            with suppress(Exception):
                _begun(key, self.client).clear()

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


def only_once(function: Callable[[Any], Any], item: Any) -> Any:
    """The result, on a worker; `RepeatedTask` if a worker began this task before, and died or lost the result.

    The scheduler remembers that the task was begun, before the function is called.
    """
    from distributed import get_worker

    begun = _begun(get_worker().get_current_task())
    if begun.is_set():
        raise RepeatedTask
    begun.set()
    return function(item)


def _begun(key: str, client: Any = None) -> Any:
    from distributed import Event

    return Event(f"dpassay began {key}", client)


def _set_levels(levels: dict[str, int]) -> None:
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)
