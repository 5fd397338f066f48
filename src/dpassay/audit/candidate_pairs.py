"""What an audit is asked to tell apart: pairs, a list, a region, the words of a text, or many candidates.

Every pair that is offered is one of which the guarantee speaks, as far as that can be seen from the inputs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from dpassay.audit.inputs import (
    InputPair,
    check_inputs,
    pairs_of,
    region_pairs,
    same,
    shown,
    why_not_neighbours,
    word_pairs,
)
from dpassay.core.neighbours import Neighbours
from dpassay.errors import InputError
from dpassay.pipeline.distributions import as_vector
from dpassay.pipeline.parser import parse
from dpassay.pipeline.pipeline import Pipeline
from dpassay.pipeline.regions import Region


def what_to_tell_apart(mechanism: Any, relation: Neighbours, ways: dict[str, Any]) -> list[tuple[Any, ...]]:
    """All that may be told apart: tuples of inputs. One of the ways is used."""
    given = [name for name, value in ways.items() if value is not None]
    if len(given) > 1:
        raise InputError(f"say in one way what to tell apart, not in {len(given)}: {' and '.join(given)}")
    pipeline = mechanism if isinstance(mechanism, Pipeline) else None
    if not given:
        if pipeline is not None:
            return [tuple(pair) for pair in pipeline_pairs(pipeline, relation)]
        raise InputError("say what to tell apart: pairs, inputs, a region, a text, or candidates")
    value = ways[given[0]]
    if given[0] == "region":
        found: list[tuple[Any, ...]] = [tuple(pair) for pair in region_pairs(value)]
    elif given[0] == "text":
        found = [tuple(pair) for pair in word_pairs(value)]
    else:
        found = _listed(given[0], value)
    if given[0] != "inputs":
        for inputs in found[:64]:
            _check(inputs, relation, pipeline)
        return found
    neighbouring = [(x, y) for x, y in found if not why_not_neighbours(x, y, relation, pipeline)]
    if not neighbouring:
        x, y = found[0]
        raise InputError(f"no two of the inputs are neighbours: {why_not_neighbours(x, y, relation, pipeline)}")
    for x in neighbouring[0]:
        _check_runs(pipeline, x)
    return list(neighbouring)


def _listed(name: str, value: Any) -> list[tuple[Any, ...]]:
    if isinstance(value, str) or not isinstance(value, Sequence | np.ndarray):
        raise InputError(f"{name} must be a list, got {type(value).__name__}")
    if not len(value):
        raise InputError(f"the list of {name} is empty")
    if name == "inputs":
        return [tuple(pair) for pair in pairs_of(list(value))]
    if name == "candidates":
        return [check_inputs(list(value))]
    for pair in value:
        if isinstance(pair, str) or not isinstance(pair, Sequence | np.ndarray) or len(pair) != 2:
            raise InputError(f"a pair is two inputs, pairs=[(x, y), …]; got {shown(pair)}")
    return [check_inputs(pair) for pair in value]


def _check(inputs: tuple[Any, ...], relation: Neighbours, pipeline: Pipeline | None) -> None:
    for x in inputs:
        _check_runs(pipeline, x)
    for x, y in combinations(inputs[:64], 2):
        why = why_not_neighbours(x, y, relation, pipeline)
        if why:
            raise InputError(f"{shown(x)} and {shown(y)} are no neighbours: {why}")


def _check_runs(pipeline: Pipeline | None, x: Any) -> None:
    """Whether a pipeline can be run on an input at all."""
    if pipeline is None:
        return
    try:
        if not isinstance(x, str):
            vector = as_vector(x)
            if len(vector) != pipeline.dim or not np.isfinite(vector).all():
                raise InputError(f"it takes {pipeline.dim} finite numbers, got {shown(x)}")
        pipeline.sample(x, 1, np.random.default_rng(0))
    except Exception as error:  # whatever a stage raises, it is this input that it cannot use
        raise InputError(f"{pipeline} cannot be run on {shown(x)}: {error}") from None


def region_of(text: str, dim: int | None) -> Region:
    """The region that comes out of some stages, `clip(l2, 1)` or `query(linf, 1)`.

    >>> region_of("clip(l2, 1)", 4).dim
    4
    """
    return parse(text, dim, {}).output_regions()[-1].region


def pipeline_pairs(pipeline: Pipeline, relation: Neighbours) -> list[InputPair]:
    """Inputs of a pipeline that are likely to come out far apart: its region's pairs, and large and small vectors.

    >>> x, y = pipeline_pairs(parse("clip(l2, 1) | laplace(2)", dim=4), Neighbours())[0]
    >>> x.tolist(), y.tolist()
    ([0.5, 0.5, 0.5, 0.5], [-0.5, -0.5, -0.5, -0.5])
    """
    dim, place = pipeline.dim, np.arange(pipeline.dim)
    found: list[InputPair] = []
    if relation.kind == "query":  # how far apart answers are is known where they come in, not behind other stages
        found = region_pairs(pipeline.output_regions()[1].region)
    else:
        for position in pipeline.noise_positions[:1]:
            region = pipeline.output_regions()[position].region
            if region.dim == dim and math.isfinite(float(region.diameter(1).b)):
                found += region_pairs(region)
    if relation.kind == "add-remove-record":  # a record's vector against none
        found = [(x, np.zeros(dim)) for x, _ in found if np.any(x)]
    elif relation.kind != "query":
        patterns = [np.zeros(dim), np.ones(dim), np.where(place == 0, 1.0, 0.0), np.where(place < dim / 2, 1.0, 0.0)]
        patterns += [np.where(place == dim - 1, 1.0, 0.0), np.where(place % 2 == 0, 1.0, -1.0)]
        found += [(p, q) for i, p in enumerate(patterns) for q in patterns[:i] if not same(p, q)]
        found += [(1e3 * p, -1e3 * p) for p in patterns[1:]]
    good = []
    for pair in found:
        try:
            _check(pair, relation, pipeline)
        except InputError:
            continue
        good.append(pair)
    if not good:
        raise InputError(f"no inputs are known for {pipeline}: give pairs of inputs")
    return good
