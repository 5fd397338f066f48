"""First stages that define how neighboring data sets differ: a query's answers, and rows of one person each."""

from typing import Any

import numpy as np

from dpassay.core.numbers import Number
from dpassay.errors import InputError
from dpassay.pipeline.regions import Counted, MonotoneBall, Rows, SensitivityBall
from dpassay.pipeline.stages.base import OutputRegion, Stage
from dpassay.pipeline.syntax import NORM, NORMS, Parameter, Syntax, positive
from dpassay.values import dataclass

_MOVES = ("any", "monotone")


def _check_moves(moves: str) -> str:
    if moves not in _MOVES:
        raise InputError(f"a query's answers move {' or '.join(_MOVES)}, got {moves!r}")
    return moves


@dataclass(frozen=True)
class Query(Stage):
    """Neighbors' answers are at most this far apart; only as first stage.

    With the word `monotone`, between two neighbors either no answer falls or none rises, as with counts of records
    when one is added. The exponential mechanism then loses less; for additive noise it makes no difference.

    >>> from dpassay.pipeline.regions import Everything
    >>> float(Query("l2", 1).output_region(OutputRegion(Everything(4))).region.diameter(2).mid)
    1.0
    """

    syntax = Syntax(
        "query",
        order=130,
        norm=NORM,
        distance=positive("sensitivity"),
        moves=Parameter("word", _check_moves, _MOVES, default="any"),
    )
    neighbours = ("query", "replace-record", "add-remove-record")
    norm: str
    distance: Number
    moves: str = "any"

    def output_region(self, before: OutputRegion) -> OutputRegion:
        ball = MonotoneBall if self.moves == "monotone" else SensitivityBall
        return OutputRegion(ball(NORMS[self.norm], self.distance, before.region.dim))

    def __str__(self) -> str:
        return super().__str__().replace(", any)", ")")

    def to_data(self) -> dict[str, Any]:
        """As in a certificate; without the word if it is not set."""
        return {name: value for name, value in super().to_data().items() if value != "any"}

    def run(self, batch: Any, rng: np.random.Generator) -> Any:
        return batch


@dataclass(frozen=True)
class Counts(Query):
    """Neighbors' answers are whole numbers, at most this far apart; only as first stage.

    Discrete noise is for such answers.

    >>> from dpassay.pipeline.regions import Everything
    >>> float(Counts("l1", "1.5").output_region(OutputRegion(Everything(4))).region.diameter(1).mid)
    1.0
    """

    syntax = Syntax("counts", order=135, norm=NORM, distance=positive("sensitivity"))

    def output_region(self, before: OutputRegion) -> OutputRegion:
        return OutputRegion(Counted(SensitivityBall(NORMS[self.norm], self.distance, before.region.dim)))


@dataclass(frozen=True)
class PersonRows(Stage):
    """One coordinate per person: neighbors differ in one; only as first stage.

    >>> from dpassay.pipeline.regions import Everything
    >>> PersonRows().output_region(OutputRegion(Everything(4))).region
    Rows(dim=4, limits=None)
    """

    syntax = Syntax("rows", order=140)
    one_per_person = True
    neighbours = ("replace-record",)
    depends_on_dimension = True

    def output_region(self, before: OutputRegion) -> OutputRegion:
        return OutputRegion(Rows(before.region.dim))

    def run(self, batch: Any, rng: np.random.Generator) -> Any:
        return batch
