"""How long a trace may take: CPU seconds of this process and those it started, within a wall-clock limit."""

from __future__ import annotations

import time

WAITING = 16.0  # times the seconds of work, if the code sleeps or the machine is busy
COPYING = 3.0  # the same if each run has its own copy of the process, since copying takes most of the time


class TimeBudget:
    """Seconds of work that are left; with `strictly` they are seconds on the clock.

    >>> TimeBudget(10.0).left > 9
    True
    """

    def __init__(self, seconds: float, strictly: bool = False, waiting: float = WAITING) -> None:
        self.seconds, self.strictly, self.waiting = seconds, strictly, waiting
        self.began, self.worked = time.monotonic(), _work()

    @property
    def ends(self) -> float:
        """When it is over in any case, on the clock of time.monotonic."""
        return self.began + self.seconds * (1 if self.strictly else self.waiting)

    @property
    def spent(self) -> float:
        """Seconds of work since it began; on the clock if it is strict."""
        return time.monotonic() - self.began if self.strictly else _work() - self.worked

    @property
    def left(self) -> float:
        """Seconds of work that may still be done; 0 or less if it is over."""
        return min(self.seconds - self.spent, self.ends - time.monotonic())

    def part(self, share: float) -> TimeBudget:
        """A share of what is left."""
        return TimeBudget(max(0.0, self.left) * share, self.strictly, self.waiting)


_not_here = [0.0]


def charge(*, elsewhere: float = 0.0, copying: float = 0.0) -> None:
    """Count seconds of work in other processes, but not those spent on copying this one.

    Copying time depends on the size of the process, whatever the code does.
    """
    _not_here[0] += elsewhere - copying


def _work() -> float:
    return time.process_time() + _not_here[0]
