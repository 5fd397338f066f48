"""Decisions based on a number with noise in it: what it is compared with, where it is cast, hashed or printed.

For uniform numbers the points at which a decision changes are recorded, so that all outcomes can be enumerated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy import array, asarray

from dpassay.trace.laws.formulas import GRID, at_uniform, source_law, sources_of
from dpassay.trace.watch.follow import difference
from dpassay.trace.watch.record import Array, DrawRecord, Node, NoisyComparison, caller, current

COMPARISONS = {np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal}
_STEPS = {np.trunc, np.floor, np.ceil, np.rint, np.round, np.around, np.floor_divide}
_TO_NEAREST = {np.rint, np.round, np.around}
COMPARED = "compared"
MOST_CUTS, MOST_HANDLED, MOST_STEPS = 4096, 64, 256


def decided(node: Node | None, what: str) -> None:
    """Record that a number with noise in it was compared, cast, hashed, printed or used as an index, and where."""
    run = current()
    if node is not None and run is not None and what != COMPARED and len(run.used) < MOST_HANDLED:
        run.used.append(node)
    if node is not None and run is not None and len(run.handled) < MOST_HANDLED:
        place = caller()
        said = f"{'a drawn number' if node.unchanged else 'a number with noise'} is {what}"
        if (said, place) not in run.handled:
            run.handled.append((said, place))


def compared_with(ufunc: Any, nodes: Sequence[Node | None], values: Sequence[Any]) -> None:
    """Record what drawn numbers are compared with; NaN if the decision is not understood."""
    run = current()
    if run is None or len(run.compared) > MOST_CUTS:
        return
    with suppress(Exception):  # it must not disturb the code
        _record(ufunc, nodes, values)


def _record(ufunc: Any, nodes: Sequence[Node | None], values: Sequence[Any]) -> None:
    if ufunc in COMPARISONS and len(nodes) == 2:
        _noted(ufunc.__name__, difference(nodes, values), ufunc(*values))
        for node, other, value in ((nodes[0], nodes[1], values[1]), (nodes[1], nodes[0], values[0])):
            if node is not None:
                decided(node, COMPARED)
                _cut(node, math.nan if other is not None else value)
    elif ufunc in _STEPS and nodes and nodes[0] is not None:
        by = values[1] if ufunc is np.floor_divide and len(values) > 1 else 1.0
        _stepped(nodes[0], by, 0.5 if ufunc in _TO_NEAREST else 0.0)
    elif ufunc is None or ufunc is np.remainder:
        for node in nodes:
            if node is not None:
                _cut(node, math.nan)


def _noted(name: str, sides: Node | None, answers: Any) -> None:
    """Record a comparison with its answers."""
    run = current()
    if run is not None and len(run.comparisons) < MOST_CUTS and np.size(answers) <= MOST_CUTS:
        run.comparisons.append(NoisyComparison(caller(), name, sides, array(answers)))


def found_largest(node: Node | None, index: int, largest: bool) -> None:
    """Record which of some numbers is the largest or smallest."""
    ranked(node, "argmax" if largest else "argmin", [index])


def ranked(node: Node | None, name: str, answers: Any) -> None:
    """Record the place of the largest or smallest of some numbers, or their order."""
    if node is not None and node.offset.ndim == 1 and 2 <= node.offset.size <= MOST_CUTS:
        with suppress(Exception):  # it must not disturb the code
            _noted(name, node, answers)


def placed_among(node: Node | None, edges: Any) -> None:
    """Record that numbers were placed among sorted ones: each of those is a point where the answer changes."""
    points = asarray(edges)
    if node is None or points.ndim != 1 or points.dtype.kind not in "biuf" or points.size > MOST_CUTS:
        return
    spread = Node(
        node.draws, tuple((i[..., None], f[..., None]) for i, f in node.terms), node.offset[..., None], node.place
    )
    with suppress(Exception):
        _cut(spread, points)


def _stepped(node: Node, by: Any, half: float) -> None:
    """The points at which a number passes a multiple of another one, or is rounded to the next."""
    run = current()
    assert run is not None
    if not node.alone or np.ndim(by) or not by or node.index.size > MOST_CUTS:
        _cut(node, math.nan)
        return
    columns = (part.ravel().tolist() for part in (node.index, node.factor, node.offset))
    for index, factor, offset in zip(*columns, strict=True):
        span = _span(node, int(index))
        if span is None or not factor:
            continue
        ends = sorted((offset + factor * one) / float(by) - half for one in span)
        if ends[1] - ends[0] > MOST_STEPS:
            run.compared.append((int(index), math.nan))
            continue
        for whole in range(math.ceil(ends[0]), math.floor(ends[1]) + 1):
            run.compared.append((int(index), ((whole + half) * float(by) - offset) / factor))


def _span(node: Node, index: int) -> tuple[float, float] | None:
    """The ends between which a uniform number is; None for other numbers."""
    for draw in node.draws:
        if draw.start <= index < draw.start + draw.values.size:
            law = source_law(draw) if draw.formula is None else None
            if law is None or law.kind != "uniform":
                return None
            at = index - draw.start
            return float(law.location[at]), float(law.location[at] + law.scale[at])
    return None


def _cut(node: Node, others: Any) -> None:
    """The points of the drawn numbers at which a comparison of offset + factor · number changes."""
    run = current()
    assert run is not None
    try:
        values = asarray(others, dtype=float)
    except (TypeError, ValueError):
        values = asarray(math.nan)
    alone = node.alone and all(draw.formula is None for draw in node.draws)
    if not alone:
        for one in {source.start: source for draw in node.draws for source in sources_of(draw)}.values():
            if 0 < one.values.size <= MOST_CUTS and (law := source_law(one)) is not None and law.kind == "uniform":
                _behind(node, one, values)
        return
    with np.errstate(all="ignore"):
        points = asarray((values - node.offset) / node.factor)
    index = np.broadcast_to(node.index, points.shape)
    if points.size <= MOST_CUTS:
        run.compared += [(i, t) for i, t in zip(index.ravel().tolist(), points.ravel().tolist(), strict=True) if i >= 0]


def _behind(node: Node, draw: DrawRecord, values: Array) -> None:
    """A comparison of a monotone formula of one uniform number."""
    run = current()
    assert run is not None
    made = node.draws[0]
    if node.offset.size == 1 and values.size == 1 and node.alone and draw.values.size == 1 and len(node.draws) == 1:
        wanted = (float(values.reshape(())) - float(node.offset.reshape(()))) / float(node.factor.reshape(()))
        points = np.sort(np.concatenate([GRID, [1e-12, 1 - 1e-12]]))
        got = at_uniform(made, points)
        if got is not None and np.isfinite(wanted) and not np.isnan(got).any():
            steps = np.diff(got[:, 0])
            if (steps >= 0).all() or (steps <= 0).all():
                run.compared.append((draw.start, _crossing(made, wanted, draw)))
                return
    run.compared += [(draw.start + k, math.nan) for k in range(draw.values.size)]


def _crossing(made: DrawRecord, wanted: float, draw: DrawRecord) -> float:
    """Where a monotone formula passes a value, as a value of the uniform number."""
    law = source_law(draw)
    assert law is not None
    low, high = 0.0, 1.0
    for _ in range(12):
        points = np.linspace(low, high, 34)[1:-1]
        got = at_uniform(made, points)
        assert got is not None
        rising = got[-1, 0] >= got[0, 0]
        below = int(((got[:, 0] < wanted) if rising else (got[:, 0] > wanted)).sum())
        low, high = (float(points[below - 1]) if below else low), (float(points[below]) if below < 32 else high)
    return float(law.location[0] + law.scale[0] * (low + high) / 2)
