"""Which of several inputs a vector output is nearest to."""

from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np

from dpassay.audit.distinguishers.base import Distinguisher, Scores, TrainingSet, array, require
from dpassay.audit.outputs.outputs import Array, Outputs
from dpassay.values import dataclass


@dataclass(frozen=True)
class NearestInput(Distinguisher):
    """For three or more inputs; `Statistic` does the same for two."""

    inputs: tuple[Array, ...]

    kind = "Nearest"
    learns = False
    order = 30
    per_input = "inputs"
    description = "which input the output is nearest to in l1"

    @classmethod
    def fit(cls, training: TrainingSet) -> Iterator[Self]:
        if len(training.outputs) > 2 and training.inputs_as_vectors:
            yield cls(training.inputs_as_vectors)

    def score(self, outputs: Outputs) -> Scores:
        rows = outputs.matrix(len(self.inputs[0]))
        with np.errstate(invalid="ignore", over="ignore"):
            return np.stack([-np.abs(rows - x).sum(axis=1) for x in self.inputs], axis=1)

    @classmethod
    def _read(cls, data: dict[str, Any], at_hand: Sequence[Distinguisher]) -> Self:
        inputs = tuple(array(x, 1) for x in data["inputs"])
        require(len(inputs) >= 2 and len({len(x) for x in inputs}) == 1, "inputs of one length")
        return cls(inputs)
