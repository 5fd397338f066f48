"""How long an audit may take, and how often it may send requests: durations, rates, and the time budget.

The budget ends an audit as Ctrl-C does, except that there is a verdict: counts are kept, and the audit can be
continued. Anything that waits for an answer asks `within` how long it may wait, so that a call in progress is cut.
"""

from __future__ import annotations

import math
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from dpassay.errors import InputError

UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
LONGEST = 366 * 86_400.0  # seconds

_DEADLINE: ContextVar[float | None] = ContextVar("deadline", default=None)


class OutOfTime(BaseException):
    """The audit's time is over. Like KeyboardInterrupt it is not an error, and nothing may swallow it."""


def duration(given: Any) -> float:
    """Seconds, from a number or from text with a unit.

    >>> duration("10m"), duration("1.5h"), duration(90)
    (600.0, 5400.0, 90.0)
    """
    found = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)\s*([smhd]?)", str(given).strip()) if _numeric(given) else None
    seconds = float(found[1]) * UNITS[found[2] or "s"] if found else 0.0
    if not 0 < seconds <= LONGEST:
        raise InputError(f"a time is a number with s, m, h or d, such as 90s, 10m or 2h, at most 366d; got {given!r}")
    return seconds


def interval(given: Any) -> float:
    """The seconds between two requests, from how many are allowed per second, minute or hour.

    >>> interval("5/s"), interval("30/m")
    (0.2, 2.0)
    """
    number, _, unit = str(given).strip().partition("/")
    found = re.fullmatch(r"\d+(?:\.\d*)?|\.\d+", number) if unit in ("s", "m", "h") else None
    if not found or not 1e-4 <= float(number) <= 1e6:
        raise InputError(f"a rate is a number per second, minute or hour, such as 5/s, 100/m or 1000/h; got {given!r}")
    return UNITS[unit] / float(number)


def _numeric(given: Any) -> bool:
    return isinstance(given, str | int | float) and not isinstance(given, bool)


class Pacer:
    """Spaces requests, so that they are sent no faster than allowed. Threads share one object.

    >>> pacer = Pacer(0.01)
    >>> [pacer.turn(threading.Event()) for _ in range(2)]
    [None, None]
    """

    def __init__(self, every: float) -> None:
        self.every, self.next, self.lock = every, 0.0, threading.Lock()

    def turn(self, over: threading.Event) -> None:
        """Wait for the next slot, or until everything is closed."""
        with self.lock:
            now = time.monotonic()
            moment = max(now, self.next)
            self.next = moment + self.every
        pause(moment - now, over)


def pause(seconds: float, over: threading.Event) -> None:
    """Wait, but no longer than the audit's time or until everything is closed."""
    left = within(seconds)[0]
    if left > 0:
        over.wait(left)
    check_time()


@contextmanager
def time_budget(seconds: float | None) -> Iterator[None]:
    """Let `check_time` raise after this many seconds.

    >>> with time_budget(60):
    ...     check_time()
    """
    token = _DEADLINE.set(None if seconds is None else time.monotonic() + seconds)
    try:
        yield
    finally:
        _DEADLINE.reset(token)


def within(limit: float) -> tuple[float, bool]:
    """The seconds that something may take, `limit` at most, and whether the audit's time is over after them.

    >>> within(30.0)
    (30.0, False)
    """
    last = _DEADLINE.get()
    left = math.inf if last is None else last - time.monotonic()
    return (max(left, 1e-3), True) if left < limit else (limit, False)


def moment_of_the_end() -> float | None:
    """When the time is over, by the clock that all processes share.

    >>> moment_of_the_end() is None
    True
    """
    last = _DEADLINE.get()
    return None if last is None else time.time() + last - time.monotonic()


def check_time() -> None:
    """Whether there is time left: raises `OutOfTime` if not."""
    last = _DEADLINE.get()
    if last is not None and time.monotonic() >= last:
        raise OutOfTime
