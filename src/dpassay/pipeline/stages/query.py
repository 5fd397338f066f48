"""First stages that say how neighbouring data sets differ: a query's answers, and rows of one person each."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpassay.core.numbers import Number
from dpassay.pipeline.regions import Rows, SensitivityBall
from dpassay.pipeline.stages.base import OutputRegion, Stage
from dpassay.pipeline.syntax import NORM, NORMS, Syntax, positive


@dataclass(frozen=True)
class Query(Stage):
    """Neighbours' answers are at most this far apart; only as first stage.

    >>> from dpassay.pipeline.regions import Everything
    >>> float(Query("l2", 1).output_region(OutputRegion(Everything(4))).region.diameter(2).mid)
    1.0
    """

    syntax = Syntax("query", order=130, norm=NORM, distance=positive("sensitivity"))
    neighbours = ("query", "replace-record", "add-remove-record")
    norm: str
    distance: Number

    def output_region(self, before: OutputRegion) -> OutputRegion:
        return OutputRegion(SensitivityBall(NORMS[self.norm], self.distance, before.region.dim))

    def run(self, batch: Any, rng: np.random.Generator) -> Any:
        return batch


@dataclass(frozen=True)
class PersonRows(Stage):
    """One coordinate per person: neighbours differ in one; only as first stage.

    >>> from dpassay.pipeline.regions import Everything
    >>> PersonRows().output_region(OutputRegion(Everything(4))).region
    Rows(dim=4, limits=None)
    """

    syntax = Syntax("rows", order=140)
    neighbours = ("replace-record",)
    depends_on_dimension = True

    def output_region(self, before: OutputRegion) -> OutputRegion:
        return OutputRegion(Rows(before.region.dim))

    def run(self, batch: Any, rng: np.random.Generator) -> Any:
        return batch
