"""Inputs that are likely to be distinguished: pairs from a region, and from the inputs of a pipeline."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np

from dpassay.audit.inputs.checks import MOST_PAIRS, InputPair, check_neighbours, same
from dpassay.audit.inputs.pipeline_neighbours import keeps_zero
from dpassay.core.neighbours import Neighbours
from dpassay.core.numbers import middle
from dpassay.errors import InputError
from dpassay.pipeline.parser import parse
from dpassay.pipeline.pipeline import Pipeline
from dpassay.pipeline.regions import Box, MonotoneBall, Region, SensitivityBall


def region_pairs(region: Region) -> list[InputPair]:
    """Pairs from a region that are likely to be distinguished: the farthest ones, and patterns from the literature.

    >>> from dpassay.pipeline.regions import Ball
    >>> [float(np.abs(x - y).sum()) for x, y in region_pairs(Ball(2, 1, dim=4))][:2]
    [4.0, 2.0]
    """
    if isinstance(region, SensitivityBall):
        return _distinct(_apart(region))
    found = [(pair.first, pair.second) for q in (1, 2, math.inf) for pair in [region.farthest(q)]]
    found += [(x, np.where(np.arange(len(x)) == 0, y, x)) for x, y in list(found)]
    centre = [((x + y) / 2, y) for x, y in found[:2]]
    found += [(x, y) for x, y in centre if region.contains(x)]
    if isinstance(region, Box):
        found += [(y, x) for x, y in found[:1]]
    return _distinct((x, y) for x, y in found if region.contains(x) and region.contains(y))


def _apart(region: SensitivityBall) -> Iterator[InputPair]:
    """Query answers: where they start (all low, or high if they fall) and in which pattern they move."""
    dim, distance = region.dim, middle(region.distance)
    place = np.arange(dim)
    one, half, every = place == 0, place < (dim + 1) // 2, place >= 0
    last = place == dim - 1
    ends = last | (place == (dim - 1) // 2)  # of both halves, for a mechanism that answers twice and starts over
    if math.isinf(region.p):
        signs = [every, one, one * 2 - 1, half * 2 - 1, half, (place % 2) * 2 - 1, last * 2 - 1, ends * 2 - 1]
        steps = [distance * np.asarray(s, dtype=float) for s in signs]
    else:
        steps = [distance * one.astype(float), distance * last.astype(float)]
        steps += [distance * every / dim ** (1 / region.p)]
    if isinstance(region, MonotoneBall):
        steps = [step for step in steps if (step >= 0).all() or (step <= 0).all()]
    for step in steps:
        for move in (step, -step):
            yield np.maximum(0.0, -move), np.maximum(0.0, move)
            yield np.full(dim, distance), distance + move


def _distinct(pairs: Iterable[InputPair]) -> list[InputPair]:
    found: list[InputPair] = []
    for x, y in pairs:
        if not same(x, y) and not any(same(x, a) and same(y, b) for a, b in found):
            found.append((x, y))
    if not found:
        raise InputError("the region has no two different values")
    return found[:MOST_PAIRS]


def region_of(text: str, dim: int | None) -> Region:
    """The output region of some stages, such as `clip(l2, 1)` or `query(linf, 1)`.

    >>> region_of("clip(l2, 1)", 4).dim
    4
    """
    return parse(text, dim, {}).output_regions()[-1].region


def pipeline_pairs(pipeline: Pipeline, relation: Neighbours) -> list[InputPair]:
    """Inputs of a pipeline whose outputs are likely to be far apart: its region's pairs, and large and small vectors.

    >>> x, y = pipeline_pairs(parse("clip(l2, 1) | laplace(2)", dim=4), Neighbours())[0]
    >>> x.tolist(), y.tolist()
    ([0.5, 0.5, 0.5, 0.5], [-0.5, -0.5, -0.5, -0.5])
    """
    dim, place = pipeline.dim, np.arange(pipeline.dim)
    found: list[InputPair] = []
    if relation.relation == "query":  # the distance between answers is known at the input, not after other stages
        found = region_pairs(pipeline.output_regions()[1].region)
    else:
        for position in pipeline.noise_positions[:1]:
            region = pipeline.output_regions()[position].region
            if region.dim == dim and math.isfinite(float(region.diameter(1).b)):
                found += region_pairs(region)
    if relation.relation == "add-remove-record":  # a record's vector against none, whose sum is 0
        found = [(x, np.zeros(dim)) for x, _ in found if np.any(x)] if keeps_zero(pipeline) else []
    elif relation.relation != "query":
        patterns = [np.zeros(dim), np.ones(dim), np.where(place == 0, 1.0, 0.0), np.where(place < dim / 2, 1.0, 0.0)]
        patterns += [np.where(place == dim - 1, 1.0, 0.0), np.where(place % 2 == 0, 1.0, -1.0)]
        found += [(p, q) for i, p in enumerate(patterns) for q in patterns[:i] if not same(p, q)]
        found += [(1e3 * p, -1e3 * p) for p in patterns[1:]]
    good = []
    for pair in found:
        try:
            check_neighbours(pair, relation, pipeline)
        except InputError:
            continue
        good.append(pair)
    if not good:
        raise InputError(f"no inputs are known for {pipeline}: give pairs of inputs")
    return good
