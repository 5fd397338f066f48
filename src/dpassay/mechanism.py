"""What can be run: anything that draws n outputs for an input."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np

from dpassay.law import Law


@runtime_checkable
class Mechanism(Protocol):
    """Anything that can be run.

    >>> class Coin:
    ...     def sample(self, x, n, rng):
    ...         return rng.integers(0, 2, size=n)
    >>> isinstance(Coin(), Mechanism)
    True
    """

    def sample(self, x: Any, n: int, rng: np.random.Generator) -> Any:
        """Draw a batch of n outputs for the input x."""


@runtime_checkable
class HasLaw(Protocol):
    """A mechanism whose exact output distribution is known."""

    def law(self, x: Any) -> Law:
        """The distribution of the output for the input x."""
