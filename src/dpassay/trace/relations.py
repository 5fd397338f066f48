"""The question of a trace: its inputs, which must differ and, if a relation is stated, be neighbors."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

from dpassay.audit.inputs.checks import same, shown, why_not_neighbours
from dpassay.audit.inputs.data_sets import why_not_records
from dpassay.core.neighbours import Neighbours
from dpassay.errors import InputError
from dpassay.values import dataclass

MOST_INPUTS = 40  # up to this many, every pair is examined


@dataclass(frozen=True, eq=False)
class TraceQuestion:
    """The question of a trace. `tried` is the number of hostile inputs to try, if not limited by the time they take."""

    inputs: tuple[Any, ...]
    pairs: tuple[tuple[Any, Any], ...]
    epsilon: Any
    delta: Any
    seed: int
    name: str
    relation: Neighbours | None
    hostile: bool
    tried: int | None = None
    seconds: float | None = None


def check_different(inputs: Sequence[Any], pairs: Sequence[tuple[Any, Any]]) -> None:
    """Refuse two inputs that are the same: they show nothing.

    >>> check_different([], [(1, 1)])
    Traceback (most recent call last):
    ...
    dpassay.errors.InputError: both inputs of a pair are 1: equal inputs cannot be distinguished; give different ones
    """
    for x, y in pairs:
        if same(x, y) and shown(x) != shown(y):  # 1, 1.0 and True
            raise InputError(f"{shown(x)} and {shown(y)} are equal: give inputs of different values")
        if same(x, y):
            raise InputError(
                f"both inputs of a pair are {shown(x)}: equal inputs cannot be distinguished; give different ones"
            )
    if not pairs and len(inputs) > 1 and all(same(inputs[0], x) for x in inputs[1:]):
        raise InputError(
            f"all inputs are {shown(inputs[0])}: equal inputs cannot be distinguished; give different ones"
        )


def stated_relation(
    neighbours: Neighbours | str | None, inputs: Sequence[Any], pairs: Sequence[tuple[Any, Any]]
) -> Neighbours | None:
    """The stated relation, if all given pairs satisfy it.

    >>> stated_relation("replace-record", [], [([1, 2], [1])])
    Traceback (most recent call last):
    ...
    dpassay.errors.InputError: [1, 2] and [1] are not neighbors: one record would have to be added or removed, ...
    """
    if neighbours is None:
        return None
    relation = Neighbours(neighbours) if isinstance(neighbours, str) else neighbours
    if relation.relation == "query":
        raise InputError(
            "neighbors 'query' needs a distance, which a trace does not know: leave neighbours out, and the pairs "
            "that you give are taken as neighbors"
        )
    for x, y in pairs or combinations(inputs[:MOST_INPUTS], 2):
        if why := why_not_neighbours(x, y, relation) or why_not_records(x, y, relation, data_sets=True):
            raise InputError(f"{shown(x)} and {shown(y)} are not neighbors: {why}")
    return relation
