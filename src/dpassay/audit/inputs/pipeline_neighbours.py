"""Which two inputs of a pipeline are neighbors: its first stage, or the relation, determines how they may differ."""

from typing import Any

import numpy as np

from dpassay.audit.outputs.outputs import as_row
from dpassay.core.neighbours import Neighbours
from dpassay.core.numbers import middle
from dpassay.errors import InputError
from dpassay.exact.dataflow.record_sums import check_neighbours
from dpassay.pipeline.pipeline import Pipeline, run
from dpassay.pipeline.regions import MonotoneBall
from dpassay.pipeline.stages.query import Counts, PersonRows, Query
from dpassay.pipeline.syntax import NORMS

SLACK = 1e-9  # for distances that doubles do not represent exactly
LARGEST = 1e9  # answers of a query, as a multiple of the distance between neighbors: noise is rounded to such numbers


def why_not_neighbours_of(pipeline: Pipeline, x: Any, y: Any, relation: Neighbours) -> str:
    """Why a pipeline's guarantee does not cover two inputs on which it can be run; empty if it does.

    >>> from dpassay.pipeline.parser import parse
    >>> counted = parse("query(l1, 1) | laplace(1)", dim=1)
    >>> why_not_neighbours_of(counted, [0.0], [5.0], counted.neighbours)
    "they are 5 apart, and neighbors' answers are at most 1 apart"
    """
    try:
        check_neighbours(pipeline, relation)
    except InputError as error:
        return str(error)
    one, other, first = as_row(x), as_row(y), pipeline.stages[0]
    if one is None or other is None or len(one) != len(other):
        numbers = bool(first.neighbours) or relation.relation == "add-remove-record"
        return "a pipeline that begins so takes two vectors of one length" if numbers else ""
    if isinstance(first, Query):
        return _why_not_answers(pipeline, first, one, other, relation.count)
    if isinstance(first, PersonRows) and (one != other).sum() != 1:
        return f"they differ in {(one != other).sum()} rows, and neighbors differ in one"
    if relation.relation == "add-remove-record":  # the records' vectors are summed, whether all take part or some
        if relation.count > 1:
            return f"a pipeline is run on one record, which says nothing about {relation}"
        if (np.any(one) and np.any(other)) or not keeps_zero(pipeline):
            return (
                "one of them must be the zero vector, and stay so before the noise: it stands for the sum without the "
                "record"
            )
    return ""


def _why_not_answers(pipeline: Pipeline, first: Query, one: Any, other: Any, count: int) -> str:
    region, order = pipeline.output_regions()[1].region, NORMS[first.norm]
    apart, allowed = float(np.linalg.norm(one - other, ord=order)), count * middle(first.distance)
    if apart > allowed * (1 + SLACK):
        return f"they are {apart:.6g} apart, and neighbors' answers are at most {allowed:.6g} apart"
    if isinstance(first, Counts) and not all(np.array_equal(row, np.rint(row)) for row in (one, other)):
        return "they are not whole numbers, as counts are"
    if isinstance(region, MonotoneBall) and (one > other).any() and (one < other).any():
        return "some answers rise and others fall, and neighbors' answers all move the same way"
    if max(np.abs(one).max(), np.abs(other).max()) > LARGEST * allowed:
        return f"answers above {LARGEST * allowed:.3g} are so large that the noise would be lost in rounding"
    return ""


def keeps_zero(pipeline: Pipeline) -> bool:
    """Whether the stages before the first noise take the zero vector to itself, so that it can stand for no record."""
    before = pipeline.stages[: (pipeline.noise_positions or [len(pipeline.stages)])[0]]
    try:
        return not np.any(run(before, np.zeros((1, pipeline.dim)), np.random.default_rng(0)))
    except InputError:
        return False
