"""Two data sets, record by record, in any order: do they differ as a relation requires?"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import numpy as np

from dpassay.core.json import plain
from dpassay.core.neighbours import Neighbours
from dpassay.errors import InputError


def why_not_records(x: Any, y: Any, relation: Neighbours, *, data_sets: bool = False) -> str:
    """Why two inputs are not data sets that differ as the relation requires; empty if they are, or if unclear.

    With `data_sets` they must be data sets; otherwise a number or a text may stand for one.

    >>> why_not_records([1, 2, 3], [1, 5, 6], Neighbours("replace-record"))
    'they differ in 2 records, and neighbors have one replaced'
    """
    if relation.relation not in ("replace-record", "add-remove-record"):
        return ""
    if relation.kind == "element" and any(one is None or isinstance(one, str | bytes) for one in (x, y)):
        return "neighbors are two vectors, and these are not"
    if any(one is None or isinstance(one, str | bytes | int | float) for one in (x, y)):
        return f"neighbors are {relation}, and these are not data sets" if data_sets else ""
    first, second = _rows(x), _rows(y)
    if first is None or second is None:
        return ""
    if relation.kind == "element":
        return _why_not_element(x, y)
    removed, added = (first - second).total(), (second - first).total()
    if relation.relation == "replace-record":
        if (removed, added) == (1, 1):
            return ""
        if removed != added:
            return "one record would have to be added or removed, and neighbors have one replaced"
        return f"they differ in {removed} records, and neighbors have one replaced"
    if relation.kind in ("user", "entity"):
        said = f"one of two neighbors has all records of the other; here {removed} and {added} records are not shared"
        return said if min(removed, added) > 0 else ""
    if relation.kind == "user-entity" or removed + added <= relation.count:
        return ""
    most = "one record is" if relation.count == 1 else f"at most {relation.count} records are"
    return f"{removed} would have to be removed and {added} added; between neighbors {most} added or removed"


def _why_not_element(x: Any, y: Any) -> str:
    """Why two vectors do not differ in one element; of tables, each entry is an element."""
    one, other = (np.asarray(plain(v.detach().cpu().numpy() if hasattr(v, "detach") else v), object) for v in (x, y))
    if one.shape != other.shape:
        return "they have different sizes, and neighbors differ in one element of a vector"
    changed = int(np.sum(one != other))
    return "" if changed == 1 else f"they differ in {changed} elements, and neighbors differ in one"


def _rows(x: Any) -> Counter[str] | None:
    """How often a data set has each record; None if it is not known what its records are."""
    if hasattr(x, "detach"):
        x = x.detach().cpu().numpy()
    try:
        rows = plain(x)
    except InputError:
        return None
    return Counter(json.dumps(row, sort_keys=True) for row in rows) if isinstance(rows, list) else None
