"""What executors are given to do in tests: functions that any process can import."""

import os
import signal
import time
from pathlib import Path


class Untold(Exception):
    """An error that cannot be read back from its pickle."""

    def __init__(self, one: str, two: str) -> None:
        super().__init__(f"{one} {two}")


def slow_square(number: int) -> int:
    time.sleep(0.05)
    return number**2


def wait_for_nine(task: tuple[int, str]) -> int:
    """The number; 0 is finished only when 9 has left its mark."""
    number, mark = task
    if number == 9:
        Path(mark).touch()
    began = time.monotonic()
    while number == 0 and not Path(mark).exists():
        assert time.monotonic() - began < 300, "9 was never asked for"
        time.sleep(0.02)
    return number


def reciprocal(number: float) -> float:
    return 1 / number


def die_once(task: tuple[int, str]) -> int:
    """The square; where a place for a mark is given and empty, the process ends instead."""
    number, mark = task
    if mark and not Path(mark).exists():
        Path(mark).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return slow_square(number)


def die_at_three(number: int) -> int:
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return slow_square(number)


def fail_untold(number: int) -> int:
    raise Untold("so", "it is")


def sleep_long(folder: str) -> None:
    """Leave a note of who is at work, and work for an hour."""
    (Path(folder) / str(os.getpid())).touch()
    time.sleep(3600)
