"""Common random numbers: generators that give two inputs the same numbers, even if one of them needs more.

A mechanism may stop early, or redraw some rows only. After that, an ordinary generator would give the runs of
another input different numbers, and outputs would differ by chance rather than only because of their inputs.
Here each array of numbers starts at its own position in the stream. Each call has its own stream, see `isolation`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np


class CommonNumbers(np.random.Generator):
    """A generator that moves on to the next position of its stream after every array it draws.

    >>> one, other = (CommonNumbers(np.random.Philox(1)) for _ in range(2))
    >>> len(one.random(3)), len(other.random(5)), bool(one.random() == other.random())
    (3, 5, True)
    """

    def __init__(self, bit_generator: np.random.BitGenerator) -> None:
        super().__init__(bit_generator)
        state: Any = bit_generator.state
        self.place, self.drawing = int(state["state"]["counter"][3]), False

    def next_place(self) -> None:
        """Move on to the next position, wherever the generator is."""
        self.place += 1
        state: Any = self.bit_generator.state
        state["state"]["counter"][:] = (0, 0, 0, self.place)  # 2^192 numbers apart
        state["buffer_pos"], state["has_uint32"] = len(state["buffer"]), 0
        self.bit_generator.state = state


def _aligned(name: str) -> Callable[..., Any]:
    draw = getattr(np.random.Generator, name)

    @wraps(draw)
    def drawn(self: CommonNumbers, *arguments: Any, **options: Any) -> Any:
        outer, self.drawing = self.drawing, True  # some methods call others
        try:
            numbers = draw(self, *arguments, **options)
        finally:
            self.drawing = outer
        if not outer and (isinstance(numbers, np.ndarray) or numbers is None):  # None: it has shuffled
            self.next_place()
        return numbers

    return drawn


for _name in dir(np.random.Generator):
    if not _name.startswith("_") and _name not in ("bit_generator", "spawn"):
        setattr(CommonNumbers, _name, _aligned(_name))


def common_numbers(rng: np.random.Generator) -> np.random.Generator:
    """The same stream for inputs whose runs are compared; a generator other than Philox is left unchanged.

    >>> rng = common_numbers(np.random.default_rng(0))
    >>> type(rng).__name__
    'Generator'
    """
    return CommonNumbers(rng.bit_generator) if isinstance(rng.bit_generator, np.random.Philox) else rng
