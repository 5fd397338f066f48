"""What can be run: anything that draws n outputs for an input."""

from __future__ import annotations

import sys
from dataclasses import field
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard, runtime_checkable

import numpy as np

from dpassay.errors import InputError, without_address
from dpassay.values import dataclass

if TYPE_CHECKING:
    from dpassay.pipeline.distributions import Distribution
    from dpassay.pipeline.pipeline import Pipeline


def is_pipeline(mechanism: Any) -> TypeGuard[Pipeline]:
    """Whether a mechanism is a formula. To run other code no stage is imported.

    >>> is_pipeline(len)
    False
    """
    module = sys.modules.get("dpassay.pipeline.pipeline")
    return module is not None and isinstance(mechanism, module.Pipeline)


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
class HasDistribution(Protocol):
    """A mechanism whose exact output distribution is known."""

    def distribution(self, x: Any) -> Distribution:
        """The distribution of the output for the input x."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An output that is not a value: the mechanism raised an exception in this run.

    That it happens for one input and not for another is evidence like any other output, and so is its content: its
    message, its attributes, and the exceptions that led to it.

    >>> Failure("ValueError") == Failure("ValueError", "empty text")
    True
    """

    kind: str
    said: str = field(default="", compare=False)
    error: BaseException | None = field(default=None, compare=False, repr=False)  # the exception with its traceback
    attributes: str = field(default="", compare=False, repr=False)

    @property
    def told(self) -> str:
        """What a reader of the exception learns, without memory addresses."""
        return without_address(f"{self.said} {self.attributes}".strip())


class Redrawn(list[Any]):
    """Outputs that were drawn one by one because the batch failed.

    Whether this happens depends on the result of the first attempt, so these are not n plain runs: rare failures become
    rarer than they are, and not by the same factor for two inputs. A test must not count them as n runs. It may count
    all n as wrong guesses, and continue with `draw_singly`. A distinguisher may learn from them freely.

    >>> isinstance(Redrawn([1, 2]), list)
    True
    """


class RepeatedRequest(Redrawn):
    """A batch that was requested again after a transient failure of something else, such as a busy server.

    A test must not count it either, but the following runs need not be made one by one.

    >>> issubclass(RepeatedRequest, Redrawn)
    True
    """


def check_number(given: int, asked: int, remedy: str) -> None:
    """Whether a mechanism gave as many outputs as requested."""
    if given != asked:
        some, were = "output" if given == 1 else "outputs", "was" if asked == 1 else "were"
        raise InputError(f"the mechanism gave {given} {some} where {asked} {were} asked for: {remedy}")
