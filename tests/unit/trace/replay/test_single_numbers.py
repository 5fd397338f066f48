"""Single numbers are computed in less time, with the results of arrays of them."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dpassay.trace.replay.solving import Wanted
from dpassay.trace.watch.follow import combined, consistent, of_draw
from dpassay.trace.watch.record import CodeLine, DrawRecord, Node, RecordedRun, begin, end, numbered

PLACE = CodeLine("code.py", 1)
OPERATIONS: list[Callable[[Any, Any], tuple[Any, list[Any]]]] = [
    lambda z, c: (np.add, [c, z]),
    lambda z, c: (np.add, [z, c]),
    lambda z, c: (np.subtract, [c, z]),
    lambda z, c: (np.subtract, [z, c]),
    lambda z, c: (np.multiply, [z, c]),
    lambda z, c: (np.true_divide, [z, c]),
]
NUMBERS = [0.1, -3.0, 1e18, 1e-300, 0.0, math.inf, math.nan]


def drawn(values: Any) -> DrawRecord:
    made = np.array(values, dtype=float)
    return DrawRecord("numpy", "laplace", {"loc": 0.0, "scale": 1.0}, made, PLACE, 0, numbered(made.size))


def node_of(operation: Any, draw: DrawRecord, number: float) -> Node:
    node = of_draw(draw)
    function, sides = operation(node, number)
    nodes = [one if isinstance(one, Node) else None for one in sides]
    values = [draw.values if isinstance(one, Node) else number for one in sides]
    begin(RecordedRun(0))
    try:
        with np.errstate(all="ignore"):
            found = combined(function, nodes, values)
    finally:
        end()
    assert found is not None
    return found


def same(one: Any, other: Any) -> bool:
    return np.array_equal(np.reshape(one, -1), np.reshape(other, -1), equal_nan=True)


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("noise", [0.25, -1.5e-17, 7e5])
def test_a_single_number_is_followed_and_solved_for_as_an_array_is(operation: Any, number: float, noise: float) -> None:
    single, several = drawn(noise), drawn([noise])
    mine, its = node_of(operation, single, number), node_of(operation, several, number)
    assert mine.offset.shape == ()
    assert its.offset.shape == (1,)
    with np.errstate(all="ignore"):
        assert same(mine.offset, its.offset)
        assert same(mine.factor, its.factor)
        assert same(mine.value, its.value)
        for target in (0.5, float(its.value[0]), -2e9):
            noises = []
            for draw, node in ((single, mine), (several, its)):
                run = RecordedRun(0)
                run.draws.append(draw)
                wanted = Wanted(run)
                wanted.node(node, np.reshape(np.asarray(target), node.offset.shape))
                noises.append(wanted.noise()[0])
            assert same(*noises)
        for value in (float(its.value[0]), float(its.value[0]) * (1 + 1e-4), 0.0):
            assert consistent(mine, value) is consistent(its, np.array([value]))
