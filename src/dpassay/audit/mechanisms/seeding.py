"""Generators that a mechanism shares with its whole process, seeded around each call and restored afterwards."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from dpassay.audit.mechanisms.python_objects import awaited
from dpassay.audit.mechanisms.targets import describe, one_at_a_time
from dpassay.pipeline.mechanism import HasDistribution, Mechanism
from dpassay.pipeline.pipeline import Pipeline
from dpassay.values import dataclass

if TYPE_CHECKING:
    from dpassay.pipeline.distributions import Distribution


@contextmanager
def seeded(rng: np.random.Generator) -> Iterator[None]:
    """Seed numpy's global generator, random and, if it is loaded, torch; afterwards their state is restored.

    >>> with seeded(np.random.default_rng(0)):
    ...     first = random.random(), np.random.random()
    >>> with seeded(np.random.default_rng(0)):
    ...     first == (random.random(), np.random.random())
    True
    """
    torch = sys.modules.get("torch")
    numpy_state, python_state = np.random.get_state(), random.getstate()
    torch_state = None if torch is None else torch.get_rng_state()
    cuda = torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized()
    cuda_states = torch.cuda.get_rng_state_all() if torch is not None and cuda else None
    seeds = rng.integers(0, 2**32, 3).tolist()
    try:
        np.random.seed(seeds[0])
        random.seed(seeds[1])
        if torch is not None:
            torch.manual_seed(seeds[2])
        yield
    finally:
        np.random.set_state(numpy_state)
        random.setstate(python_state)
        if torch is not None:
            torch.set_rng_state(torch_state)
        if torch is not None and cuda:
            torch.cuda.set_rng_state_all(cuda_states)


@dataclass(frozen=True)
class Seeded:
    """A mechanism with the process's generators seeded from the given one for each call."""

    mechanism: Mechanism

    @property
    def replays(self) -> bool:
        """Whether the same generator gives the same outputs: true as far as the process's generators go."""
        return True

    @property
    def singly(self) -> bool:
        """Whether each call gives one output."""
        return one_at_a_time(self.mechanism)

    def sample(self, x: Any, n: int, rng: np.random.Generator) -> Any:
        with seeded(rng):
            return awaited(self.mechanism.sample(x, n, rng))

    def describe(self) -> dict[str, str]:
        return describe(self.mechanism)


@dataclass(frozen=True)
class SeededDistribution(Seeded):
    """The same for a mechanism that knows its distribution."""

    def distribution(self, x: Any) -> Distribution:
        return cast(HasDistribution, self.mechanism).distribution(x)


def seed_all(mechanism: Mechanism) -> Mechanism:
    """A mechanism with the process's generators seeded around each call.

    A pipeline uses none of them, and a mechanism that runs elsewhere is not affected by them: both are left unchanged.

    >>> from dpassay.audit.mechanisms.targets import as_mechanism
    >>> noisy = seed_all(as_mechanism(lambda x: x + random.gauss(0, 1)))
    >>> noisy.sample(0, 2, np.random.default_rng(5)) == noisy.sample(0, 2, np.random.default_rng(5))
    True
    """
    if isinstance(mechanism, Pipeline | Seeded) or hasattr(mechanism, "sample_each"):
        return mechanism
    return SeededDistribution(mechanism) if isinstance(mechanism, HasDistribution) else Seeded(mechanism)
