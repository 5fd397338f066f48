"""How much work is handed to a worker at once: about a second's worth, so that the overhead is small."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")

SECONDS = 1.0  # target duration of a batch of tasks


class BatchSizer:
    """How many tasks go into a batch: enough to keep a worker busy for about a second, judging by the last ones.

    >>> sizer = BatchSizer()
    >>> sizer.took(1, 0.01)
    >>> sizer.number
    4
    """

    def __init__(self, most: int = 1 << 20) -> None:
        self.number, self.most = 1, most

    def took(self, tasks: int, seconds: float) -> None:
        """Record how long some tasks took; the next batch grows by at most a factor of four, or shrinks."""
        fitting = int(tasks * SECONDS / max(seconds, 1e-6))
        self.number = max(1, min(fitting, 4 * tasks, self.most))


def bundled(items: Iterable[Item], weight: Callable[[Item], int], enough: int) -> Iterator[tuple[Item, ...]]:
    """Items in order, in bundles that are each heavy enough, except perhaps the last.

    >>> list(bundled([3, 4, 1, 9, 2], lambda item: item, 5))
    [(3, 4), (1, 9), (2,)]
    """
    bundle: list[Item] = []
    total = 0
    for item in items:
        bundle.append(item)
        total += weight(item)
        if total >= enough:
            yield tuple(bundle)
            bundle, total = [], 0
    if bundle:
        yield tuple(bundle)
