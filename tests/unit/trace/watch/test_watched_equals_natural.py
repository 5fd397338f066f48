"""A program does the same when it is watched: from the same random bits, the same output to the last bit and type."""

import random
from typing import Any

import numpy as np
import pytest
from natural_arrays import ARRAYS
from natural_programs import NUMBERS, ORDERS, SOURCES, Program

from dpassay.trace.watch.numbers import plain
from dpassay.trace.watch.record import RecordedRun
from dpassay.trace.watch.sources import watch, watched_generator


def _plainly(value: Any) -> Any:
    """A value with the types of its parts, as text that is equal only for equal bits."""
    kind = type(value)
    if isinstance(value, np.ndarray):
        return kind, value.dtype, value.shape, value.tobytes() if value.dtype != object else repr(value), repr(value)
    if isinstance(value, list | tuple):
        return kind, [_plainly(one) for one in value]
    if isinstance(value, dict):
        return kind, [(_plainly(key), _plainly(one)) for key, one in value.items()]
    if isinstance(value, set | frozenset):
        return kind, sorted(map(repr, map(_plainly, value)))
    return kind, repr(value)


def both_ways(program: Program) -> tuple[Any, Any, RecordedRun]:
    """The output of a program without the watch, and with it, after the same seeds."""
    outputs, run = [], RecordedRun(0)
    for watching in (False, True):
        random.seed(7)
        np.random.seed(7)
        rng = np.random.default_rng(7)
        with np.errstate(all="ignore"):
            if watching:
                with watch(run, program):
                    outputs.append(plain(program(watched_generator(rng))))
            else:
                outputs.append(program(rng))
        outputs.append([rng.random(), random.random(), np.random.normal(), np.random.normal()])  # and the state after
    return outputs[:2], outputs[2:], run


@pytest.mark.parametrize("name", [*NUMBERS, *ORDERS, *ARRAYS, *SOURCES])
def test_the_output_is_the_same(name: str) -> None:
    program = {**NUMBERS, **ORDERS, **ARRAYS, **SOURCES}[name]
    natural, watched, _ = both_ways(program)
    assert _plainly(watched) == _plainly(natural)
