"""A distinguisher supplied by the user."""

from collections.abc import Callable
from typing import Any

import numpy as np

from dpassay.audit.distinguishers.base import Distinguisher, Scores
from dpassay.audit.outputs.outputs import Outputs
from dpassay.errors import InputError
from dpassay.values import dataclass


@dataclass(frozen=True)
class CustomDistinguisher(Distinguisher):
    """A function from a list of outputs to scores, each depending on its own output only."""

    function: Callable[[list[Any]], Any]

    kind = "Own"
    learns = False
    not_in_file = "the guesser that was used then"

    @property
    def candidates(self) -> None:
        """Only the function knows."""

    def score(self, outputs: Outputs) -> Scores:
        """What the function returns, provided it returns the same for the last output on its own.

        All outputs of a batch have the same input, so scores that depend on the others would be guesses from many runs.
        """
        rows = outputs.rows()
        scores = self._call(rows)
        alone = self._call(rows[-1:])[0] if rows else 0.0
        if rows and not np.allclose(scores[-1], alone, rtol=1e-4, atol=1e-6, equal_nan=True):
            raise InputError(
                f"{self.describe()} scores an output {scores[-1]} among {len(rows)} and {alone} alone: "
                "it must score each output on its own, since all outputs of a batch have the same input"
            )
        return scores

    def _call(self, rows: list[Any]) -> Scores:
        try:
            scores = np.asarray(self.function(rows), dtype=float)
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
            raise InputError(f"{self.describe()} must give a list of numbers, but raised {said}") from error
        if scores.ndim not in (1, 2) or len(scores) != len(rows):
            shape = f"{len(rows)} scores, one per output, got shape {scores.shape}"
            raise InputError(f"{self.describe()} must give {shape}")
        return scores

    def describe(self) -> str:
        """The argument's name, and the function's if it has one."""
        return f"the guesser {getattr(self.function, '__name__', 'given')}"
