"""Checks of the given inputs: whether they differ, can be neighbors, and can be run."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from dpassay.audit.inputs.data_sets import why_not_records
from dpassay.audit.outputs.outputs import as_row
from dpassay.core.json import plain
from dpassay.core.neighbours import Neighbours
from dpassay.errors import InputError

if TYPE_CHECKING:
    from dpassay.pipeline.pipeline import Pipeline

InputPair = tuple[Any, Any]
MOST_PAIRS = 5000


def check_neighbours(inputs: tuple[Any, ...], relation: Neighbours, pipeline: Pipeline | None) -> None:
    """Refuse inputs that a pipeline cannot be run on, and inputs two of which are evidently not neighbors."""
    for x in inputs:
        check_runs(pipeline, x)
    for x, y in combinations(inputs, 2):
        check_pair(x, y, relation, pipeline)


def check_pair(x: Any, y: Any, relation: Neighbours, pipeline: Pipeline | None) -> None:
    """Refuse two inputs that are evidently not neighbors."""
    why = why_not_neighbours(x, y, relation, pipeline)
    if why:
        raise InputError(f"{shown(x)} and {shown(y)} are not neighbors: {why}")


def check_runs(pipeline: Pipeline | None, x: Any) -> None:
    """Refuse an input on which a pipeline cannot be run at all."""
    why = why_not_run(pipeline, x)
    if why:
        raise InputError(why)


def why_not_run(pipeline: Pipeline | None, x: Any) -> str:
    """Why a pipeline cannot be run on an input; empty if it can."""
    if pipeline is None:
        return ""
    from dpassay.pipeline.distributions import as_vector

    try:
        if not isinstance(x, str):
            vector = as_vector(x)
            if len(vector) != pipeline.dim or not np.isfinite(vector).all():
                raise InputError(f"it takes {pipeline.dim} finite numbers, got {shown(x)}")
        pipeline.sample(x, 1, np.random.default_rng(0))
    except Exception as error:  # whatever a stage raises, it cannot use this input
        return f"{pipeline} cannot be run on {shown(x)}: {error}"
    return ""


def same(x: Any, y: Any) -> bool:
    """Whether two inputs are identical.

    >>> same([0, 1], np.array([0.0, 1.0])), same("a", "b"), same(1, [1])
    (True, False, False)
    """
    try:
        return _alike(plain(x), plain(y))
    except InputError:
        return x is y


def _alike(x: Any, y: Any) -> bool:
    if isinstance(x, list) and isinstance(y, list):
        return len(x) == len(y) and all(map(_alike, x, y))
    if isinstance(x, dict) and isinstance(y, dict):
        return x.keys() == y.keys() and all(_alike(x[key], y[key]) for key in x)
    if isinstance(x, str) or isinstance(y, str) or isinstance(x, list | dict) or isinstance(y, list | dict):
        return type(x) is type(y) and bool(x == y)
    return bool(x == y) or (x != x and y != y)  # NaN is the same as NaN


def why_not_neighbours(x: Any, y: Any, relation: Neighbours, pipeline: Pipeline | None = None) -> str:
    """Why a guarantee does not cover two inputs; empty if it does, or if that cannot be seen from them.

    >>> why_not_neighbours("fly to Rome", "fly from Paris", Neighbours("word"))
    'they differ in 2 words, and neighbors differ in one'
    """
    if relation.relation == "word":
        if not isinstance(x, str) or not isinstance(y, str):
            return "neighbors are two texts, and these are not"
        if relation.kind.startswith("tokens"):
            return ""  # only the mechanism knows what a token is
        first, second = x.split(), y.split()
        most = "one" if relation.count == 1 else f"at most {relation.count}"
        if len(first) != len(second):
            replaced = f"{most} word{'s' * (relation.count > 1)} replaced"
            return f"they have {len(first)} and {len(second)} words, and neighbors differ in {replaced}"
        differing = sum(a != b for a, b in zip(first, second, strict=True))
        if 1 <= differing <= relation.count:
            return ""
        return f"they differ in {differing} words, and neighbors differ in {most}"
    if pipeline is None:
        return why_not_records(x, y, relation) if relation.kind == "element" else ""
    from dpassay.audit.inputs.pipeline_neighbours import why_not_neighbours_of

    return why_not_neighbours_of(pipeline, x, y, relation)


def check_inputs(inputs: Sequence[Any]) -> tuple[Any, ...]:
    """Inputs that can be distinguished: at least two, no two of them equal."""
    given = tuple(inputs)
    if len(given) < 2:
        raise InputError(f"an audit needs at least two inputs to compare, got {len(given)}")
    for (i, x), (j, y) in combinations(enumerate(given), 2):
        if same(x, y):
            raise InputError(f"inputs {i + 1} and {j + 1} are the same, {shown(x)}: they cannot be distinguished")
    return given


def shown(x: Any, most: int = 60) -> str:
    """An input in a few characters; equal neighbors in a vector are counted, not repeated.

    >>> shown(np.array([0.5] * 30 + [-1.0])), shown("fly to Rome")
    ('[0.5 × 30, -1]', "'fly to Rome'")
    """
    row = as_row(x) if isinstance(x, np.ndarray | list | tuple) else None
    if row is None:
        text = repr(x.item() if isinstance(x, np.generic) else x)
    else:
        runs = [(f"{value:.6g}", len(list(same_values))) for value, same_values in groupby(row.tolist())]
        text = "[" + ", ".join(value if count == 1 else f"{value} × {count}" for value, count in runs) + "]"
    return text if len(text) <= most else f"{text[: most - 1]}…"
