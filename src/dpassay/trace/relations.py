"""The pairs given to a trace: two different inputs, and neighbours if a relation is stated."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from typing import Any

from dpassay.audit.candidate_pairs import same, shown, why_not_neighbours
from dpassay.core.json import plain
from dpassay.core.neighbours import Neighbours
from dpassay.errors import InputError

MOST_INPUTS = 40  # up to this many, every pair is examined


def check_different(inputs: Sequence[Any], pairs: Sequence[tuple[Any, Any]]) -> None:
    """Refuse two inputs that are the same: they show nothing.

    >>> check_different([], [(1, 1)])
    Traceback (most recent call last):
    ...
    dpassay.errors.InputError: both inputs of a pair are 1: a pair of equal inputs show nothing
    """
    for x, y in pairs:
        if same(x, y):
            raise InputError(f"both inputs of a pair are {shown(x)}: a pair of equal inputs show nothing")
    if not pairs and len(inputs) > 1 and all(same(inputs[0], x) for x in inputs[1:]):
        raise InputError(f"all inputs are {shown(inputs[0])}: equal inputs show nothing")


def stated_relation(
    neighbours: Neighbours | str | None, inputs: Sequence[Any], pairs: Sequence[tuple[Any, Any]]
) -> Neighbours | None:
    """The stated relation, if all given pairs satisfy it.

    >>> stated_relation("replace-record", [], [([1, 2], [1])])
    Traceback (most recent call last):
    ...
    dpassay.errors.InputError: [1, 2] and [1] are not neighbours: one record would have to be added or removed, ...
    """
    if neighbours is None:
        return None
    relation = Neighbours(neighbours) if isinstance(neighbours, str) else neighbours
    if relation.relation == "query":
        raise InputError(
            "neighbours 'query' needs a distance, which a trace does not know: leave neighbours out, and the pairs "
            "that you give are taken as neighbours"
        )
    for x, y in pairs or combinations(inputs[:MOST_INPUTS], 2):
        if why := why_not_neighbours(x, y, relation) or _why_not_records(x, y, relation):
            raise InputError(f"{shown(x)} and {shown(y)} are not neighbours: {why}")
    return relation


def _why_not_records(x: Any, y: Any, relation: Neighbours) -> str:
    """Why two inputs are not data sets that differ as the relation requires; empty if they are, or if unclear."""
    if relation.relation not in ("replace-record", "add-remove-record"):
        return ""
    if any(one is None or isinstance(one, str | bytes | int | float) for one in (x, y)):
        return f"neighbours are {relation}, and these are not data sets"
    first, second = _rows(x), _rows(y)
    if first is None or second is None:
        return ""
    removed, added = (first - second).total(), (second - first).total()
    if relation.relation == "replace-record":
        if (removed, added) == (1, 1):
            return ""
        if removed != added:
            return "one record would have to be added or removed, and neighbours have one replaced"
        return f"they differ in {removed} records, and neighbours have one replaced"
    if relation.kind in ("user", "entity"):
        said = f"one of two neighbours has all records of the other; here {removed} and {added} records are not shared"
        return said if min(removed, added) > 0 else ""
    if relation.kind == "user-entity" or removed + added <= relation.count:
        return ""
    most = "one record is" if relation.count == 1 else f"at most {relation.count} records are"
    return f"{removed} would have to be removed and {added} added; between neighbours {most} added or removed"


def _rows(x: Any) -> Counter[str] | None:
    """How often a data set has each record; None if it is not known what its records are."""
    if hasattr(x, "detach"):
        x = x.detach().cpu().numpy()
    try:
        rows = plain(x)
    except InputError:
        return None
    return Counter(json.dumps(row, sort_keys=True) for row in rows) if isinstance(rows, list) else None
