"""Runs without an output: exceptions, with the line of the traced code that raised them, and timeouts."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import TracebackType
from typing import Any

from dpassay.errors import MechanismError, in_one_line
from dpassay.trace.watch.record import CodeLine, is_theirs

_SIGNALS: Any = import_module("_signal")  # the enumerations of `signal` take longer than many runs do


class RunError(MechanismError):
    """A run of the traced code that failed. `kind` is what it raised, by its name.

    >>> print(RunError("ValueError", "no\\nway", "rewriter.py:61"))
    rewriter.py:61 raised ValueError: no way
    """

    def __init__(self, kind: str, said: str, where: str = "", *, whole: str = "") -> None:
        self.kind = kind
        super().__init__(whole or f"{where or 'the traced code'} raised {in_one_line(kind, said)}")


class WatchedTooLong(RunError):
    """The time for watched runs is over, so no further run is watched."""

    def __init__(self) -> None:
        super().__init__("TimeUp", "watching its runs takes longer than the trace may take")


class SubjectGone(MechanismError):
    """The interpreter of the traced code has ended or does not respond: no more runs can be made."""


class TooLong(BaseException):
    """A run's time is over. Like KeyboardInterrupt it is not an error that the traced code should handle."""


def place_of(traceback: TracebackType | None) -> str:
    """The innermost line of the traced code in a traceback, as file and line; empty if it has none."""
    found, at = "", traceback
    while at is not None:
        if is_theirs(at.tb_frame.f_code.co_filename):
            found = str(CodeLine(at.tb_frame.f_code.co_filename, at.tb_lineno))
        at = at.tb_next
    return found


def run_error(error: BaseException) -> RunError:
    """How an exception of the traced code is reported."""
    try:
        said = str(error)[:2000]
    except Exception:  # even an exception's str may fail
        said = ""
    return RunError(type(error).__name__[:80], said, place_of(error.__traceback__))


@contextmanager
def time_limited(seconds: float | None) -> Iterator[None]:
    """Interrupt Python code in the main thread after some time; compiled code is interrupted when it returns.

    Nothing is interrupted in other threads, or if the system has no alarm.

    >>> with time_limited(0.01):
    ...     while True: pass
    Traceback (most recent call last):
    ...
    dpassay.trace.natural.failing.RunError: ... raised TimeLimit: it did not finish within the time limit of 0.01 s
    """
    alarm = getattr(signal, "SIGALRM", None)
    if seconds is None or alarm is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    running = True

    def interrupt(*_: object) -> None:
        if running:
            raise TooLong

    handler, start = _SIGNALS.signal(alarm, interrupt), time.monotonic()
    left, every = signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)  # again, if the code swallows the first
    try:
        yield
    except TooLong as error:
        said = f"it did not finish within the time limit of {seconds:g} s"
        raise RunError("TimeLimit", said, place_of(error.__traceback__)) from None
    finally:
        running = False
        passed = time.monotonic() - start
        signal.setitimer(signal.ITIMER_REAL, max(left - passed, 1e-3) if left else 0.0, every)
        _SIGNALS.signal(alarm, handler)
