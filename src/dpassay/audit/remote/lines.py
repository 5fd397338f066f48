"""What programs and endpoints share beneath their protocol: lines that carry requests and replies."""

from __future__ import annotations

import math
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from queue import LifoQueue
from typing import Any, Protocol

from dpassay.errors import InputError, MechanismError
from dpassay.pipeline.mechanism import Failure
from dpassay.values import dataclass

LONGEST_REPLY = 64 * 2**20  # bytes
LONGEST_TIME = 86_400.0  # seconds
MOST_LINES = 256


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply. `failed` is the result of the first attempt if it failed; `said` is None if all attempts failed.

    The output of a run is the result of its first attempt. An answer to a later attempt is conditional on not failing,
    so outputs that fail more often would be too rare: it may be used for training, but not as a run of a test.

    >>> Reply(b'{"output": 1}').failed is None
    True
    """

    said: bytes | None
    failed: Failure | None = None


class Line(Protocol):
    """A connection to a mechanism that runs elsewhere, open until it is closed."""

    def exchange(self, request: bytes, n: int) -> Reply:
        """Send a request for n outputs and read the answer."""

    def abort(self) -> None:
        """Cancel what another thread is waiting for."""

    def close(self) -> None:
        """Release everything that is held."""


class Troubles:
    """Problems that were recovered from, and how often each occurred. Threads share one object.

    >>> troubles = Troubles()
    >>> troubles.count("ended with exit code 3"); troubles.count("ended with exit code 3")
    >>> troubles.sentences("the program")
    ['the program ended with exit code 3, 2 times.']
    """

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()

    def count(self, what: str, times: int = 1) -> None:
        """Count one more."""
        with self._lock:
            self._counts[what] += times

    def take(self) -> dict[str, int]:
        """Take all counts so far, to be counted elsewhere: here they are reset.

        >>> troubles = Troubles()
        >>> troubles.count("was asked again", 2)
        >>> troubles.take(), troubles.take()
        ({'was asked again': 2}, {})
        """
        with self._lock:
            taken, self._counts = dict(self._counts), Counter()
        return taken

    def sentences(self, who: str) -> list[str]:
        """What a verdict should mention."""
        return [f"{who} {what}, {'once' if k == 1 else f'{k:,} times'}." for what, k in sorted(self._counts.items())]


class Lines:
    """Some lines to one subject, each used by one thread at a time; they are opened when they are needed."""

    def __init__(self, width: int) -> None:
        self.width, self.over = width, threading.Event()
        self.free: LifoQueue[Line | None] = LifoQueue()
        for _ in range(width):
            self.free.put(None)
        self.held: list[Line] = []
        self._pool: ThreadPoolExecutor | None = None

    @property
    def pool(self) -> ThreadPoolExecutor:
        """The threads that wait for replies."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.width, "dpassay")
        return self._pool

    def hold(self, line: Line) -> None:
        """Register a line that was opened, unless everything has been closed."""
        self.held.append(line)
        if self.over.is_set():
            line.abort()

    def drop(self, line: Line | None) -> None:
        """Close a line that can no longer be used."""
        if line in self.held:
            self.held.remove(line)
            line.close()

    def close(self) -> None:
        """Release everything: threads first, then lines that nobody listens to any more."""
        self.over.set()
        if self._pool is not None:
            for line in list(self.held):
                line.abort()
            self._pool.shutdown(wait=True, cancel_futures=True)
        while self.held:
            self.held.pop().close()


def seconds_of(limit: Any) -> float:
    """A time limit, if it is valid."""
    try:
        seconds = float(limit)
    except (TypeError, ValueError):
        seconds = math.nan
    if not 0 < seconds <= LONGEST_TIME:
        raise InputError(f"the time limit must be more than 0 and at most {LONGEST_TIME:g} seconds, got {limit!r}")
    return seconds


def number_of_lines(given: Any, what: str) -> int:
    """How many lines may be in use at once."""
    if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= MOST_LINES:
        raise InputError(f"{what} must be a whole number from 1 to {MOST_LINES}, got {given!r}")
    return given


def late(who: str, limit: float, n: int) -> str:
    """The message about a mechanism that did not answer in time."""
    asked = f"{who} gave no answer within {limit:g} s when it was asked for n = {n}"
    return f"{asked}; raise the time limit if it is slow, or make sure that it flushes its output"


def check_length(who: str, said: bytes | bytearray) -> None:
    """Refuse an answer that is too long."""
    if len(said) > LONGEST_REPLY:
        raise MechanismError(f"{who} answered with more than {LONGEST_REPLY // 2**20} MB: {short(said[:1000])}")


def short(said: bytes | bytearray) -> str:
    """The beginning of an answer, to be quoted."""
    text = said[:1000].decode("utf-8", "replace").strip()
    return repr(text if len(text) <= 200 else text[:200] + "…")
