"""One number of a vector output: a coordinate, its sum, or which input it is nearer to."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np

from dpassay.audit.distinguishers.base import Distinguisher, Scores, TrainingSet, array, require, shown_names
from dpassay.audit.outputs.outputs import Array, Outputs, part
from dpassay.values import dataclass

NEARER, NEARER_STEPS = "nearness", "nearness of increments"
COORDINATE, SIZE = "coordinate ", "l1 norm"  # of one number: its absolute value
SUMMARIES: dict[str, Callable[[Array], Array]] = {
    "sum": lambda rows: rows.sum(axis=1),
    "smallest coordinate": lambda rows: rows.min(axis=1),
    "largest coordinate": lambda rows: rows.max(axis=1),
    SIZE: lambda rows: np.abs(rows).sum(axis=1),
}
ORIENTED = 1 << 14  # outputs of each input used to orient a statistic


@dataclass(frozen=True)
class Statistic(Distinguisher):
    """A statistic of the output, by its name; `sign` makes it higher for the second input."""

    name: str
    width: int
    sign: float = 1.0
    inputs: tuple[Array, ...] = ()

    kind = "Statistic"
    learns = False
    order = 40

    @classmethod
    def fit(cls, training: TrainingSet) -> Iterator[Self]:
        """For vectors of one length: nearness if the inputs are such vectors, summaries, and a few coordinates."""
        if not training.vectors or len(training.outputs) != 2:
            return
        width, inputs = training.width, training.inputs_as_vectors
        for name in (NEARER, NEARER_STEPS)[: min(width, 2)] if inputs else ():
            yield cls(name, width, 1.0, inputs)._oriented(training)
        summaries = list(SUMMARIES) if width > 1 else [SIZE] if _of_both_signs(training) else []
        for name in summaries + [f"{COORDINATE}{j}" for j in _most_different(training)]:
            yield cls(name, width)._oriented(training)

    def _oriented(self, training: TrainingSet) -> Self:
        """Higher for the second input: by medians, or by means if those agree."""
        first, second = (self.score(part(outputs, 0, ORIENTED)) for outputs in training.outputs)
        with np.errstate(all="ignore"):
            gap = _centre(second) - _centre(first)
        return replace(self, sign=-1.0 if gap < 0 else 1.0)

    def score(self, outputs: Outputs) -> Scores:
        """The number; NaN if the output has too few coordinates."""
        rows = outputs.matrix(self.width)
        with np.errstate(invalid="ignore", over="ignore"):
            return self.sign * self._values(rows)

    def _values(self, rows: Array) -> Scores:
        if self.name in (NEARER, NEARER_STEPS):
            first, second = self.inputs
            rows = np.diff(rows, axis=1, prepend=0.0) if self.name == NEARER_STEPS else rows
            return np.asarray(np.abs(rows - first).sum(axis=1) - np.abs(rows - second).sum(axis=1))
        if self.name in SUMMARIES:
            return np.asarray(SUMMARIES[self.name](rows))
        return np.asarray(rows[:, int(self.name.removeprefix(COORDINATE))])

    @property
    def likeness(self) -> bool:
        return self.name == NEARER and self.sign > 0

    @property
    def turned(self) -> bool:
        return self.sign < 0

    def describe(self) -> str:
        names = [f"output[{j}]" for j in range(self.width)] if self.width > 1 else ["output"]
        return self._described(names, "the output")

    def describe_of(self, names: Sequence[str]) -> str:
        return self._described(names, shown_names(names))

    def _described(self, names: Sequence[str], output: str) -> str:
        nearer = {NEARER: output, NEARER_STEPS: f"the increments of {output}"}
        if self.name in nearer:
            return f"the l1 distance of {nearer[self.name]} from the first input minus that from the second"
        if self.name == SIZE and self.width == 1:
            return f"the size of {names[0]}" if " " in names[0] else f"|{names[0]}|"
        if self.name.startswith(COORDINATE):
            return output if self.width == 1 else names[int(self.name.removeprefix(COORDINATE))]
        return f"the {self.name} of {output}"

    @classmethod
    def _read(cls, data: dict[str, Any], at_hand: Sequence[Distinguisher]) -> Self:
        name, width = str(data["name"]), int(data["width"])
        inputs = tuple(array(x, 1) for x in data["inputs"])
        require(width > 0, "a width")
        if name in (NEARER, NEARER_STEPS):
            require([len(x) for x in inputs] == [width, width], "two inputs of its width")
        elif name not in SUMMARIES:
            require(0 <= int(name.removeprefix(COORDINATE)) < width, "a coordinate of its width")
        return cls(name, width, float(data["sign"]), inputs)


def _centre(values: Array) -> float:
    finite = values[np.isfinite(values)]
    return float(np.median(finite) + 1e-9 * finite.mean()) if len(finite) else 0.0


def _of_both_signs(training: TrainingSet) -> bool:
    """Whether the outputs are numbers of both signs, so that their size says something else."""
    some = np.concatenate([outputs.matrix(1)[:ORIENTED] for outputs in training.outputs])
    return bool((some < 0).any() and (some > 0).any())


def _most_different(training: TrainingSet) -> list[int]:
    """The few coordinates that differ most between the two inputs."""
    if training.width <= 4:
        return list(range(training.width))
    first, second = (outputs.matrix(training.width)[:2000] for outputs in training.outputs)
    with np.errstate(all="ignore"):
        gap = np.abs(np.median(second, axis=0) - np.median(first, axis=0))
    return [int(j) for j in np.argsort(-np.nan_to_num(gap), kind="stable")[:3]]
