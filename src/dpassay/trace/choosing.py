"""Draws of one of several things, recorded as the index of what was drawn, with all probabilities."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import Any

import numpy as np

from dpassay.trace.follow import moved, of_draw
from dpassay.trace.numbers import plain, with_node
from dpassay.trace.record import Array, Draw, Node, Run, current, drawing, importing

PYTHON_CHOICES = ("choice", "choices")
CHOICE = "choice"


def choosing(choice: Callable[..., Any]) -> Callable[..., Any]:
    """numpy's choice, of a new or an old generator."""

    @wraps(choice)
    def chosen(
        self: Any, a: Any, size: Any = None, replace: bool = True, p: Any = None, *rest: Any, **options: Any
    ) -> Any:
        run = current()
        a, p, size = plain(a), plain(p), plain(size)
        if run is None or drawing or importing():
            return choice(self, a, size, replace, p, *rest, **options)
        things = np.arange(a) if np.ndim(a) == 0 else np.asarray(a)
        drawing.append(True)
        try:
            at = np.asarray(choice(self, len(things), size, replace, p))
        finally:
            drawing.pop()
        draw = noted(run, "numpy", at, p, len(things), replace or at.ndim == 0)
        axis = options.get("axis", rest[0] if rest else 0)
        taken = np.take(things, draw.values, axis=axis)
        result: Any = taken[()] if isinstance(taken, np.ndarray) and taken.ndim == 0 else taken
        if np.ndim(a) == 0 and at.ndim == 0:
            result = int(result) if type(self).__name__.endswith("State") else np.int64(result)
        return with_node(result, _affine(draw, things), scalar=np.ndim(result) == 0)

    return chosen


def noted(run: Run, source: str, at: Array, p: Any, many: int, replace: bool) -> Draw:
    """Record the index of what was drawn."""
    weights = np.full(many, 1 / many) if p is None else np.asarray(p, dtype=float)
    return run.drawn(source, CHOICE if replace else "choice without replacement", {"p": weights}, at)


def _affine(draw: Draw, things: Array) -> Node | None:
    """One of the numbers a, a + b, a + 2b …"""
    if things.ndim != 1 or things.dtype.kind not in "biuf" or len(things) < 2:
        return None
    things = things.astype(float)
    step = things[1] - things[0]
    if not np.array_equal(things, things[0] + step * np.arange(len(things))):
        return None
    node = moved(of_draw(draw), np.array)
    node.terms = ((node.index, np.full(draw.shape, step)),)
    node.offset = np.full(draw.shape, things[0])
    return node


@cache
def choosing_in_python(choose: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Python's choice and choices."""

    @wraps(choose)
    def chosen(self: Any, population: Any, *arguments: Any, **options: Any) -> Any:
        run = current()
        if run is None or drawing or importing():
            return choose(self, population, *arguments, **options)
        drawing.append(True)
        try:
            at = np.asarray(choose(self, range(len(population)), *map(plain, arguments), **options))
        finally:
            drawing.pop()
        weights = arguments[0] if arguments else options.get("weights")
        if (together := options.get("cum_weights")) is not None:
            weights = np.diff([0.0, *together])
        weights = None if weights is None else np.asarray(plain(list(weights)), dtype=float)
        draw = noted(run, "random", at, None if weights is None else weights / weights.sum(), len(population), True)
        things = [population[i] for i in np.atleast_1d(draw.values).tolist()]
        if name == "choices":
            return things
        node = _affine(draw, np.asarray(population)) if isinstance(things[0], int | float) else None
        return things[0] if node is None else with_node(things[0], node, scalar=True)

    return chosen
