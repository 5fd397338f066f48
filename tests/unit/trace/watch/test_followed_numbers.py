"""Watched numbers are the numbers they stand for, and remember offset + factor · draw."""

import math
import random
from typing import Any

import numpy as np
import pytest

from dpassay.trace.session import trace
from dpassay.trace.watch.numbers import plain
from dpassay.trace.watch.record import RecordedRun
from dpassay.trace.watch.sources import watch, watched_generator


def run_of(operate: Any) -> tuple[Any, RecordedRun]:
    run = RecordedRun(0)
    with watch(run, operate):
        result = operate(watched_generator(np.random.default_rng(0)))
    return result, run


def test_arithmetic_with_a_double_of_numpy_decides_nothing() -> None:
    """Also where the number is read for an output: nothing was compared, cast or printed."""
    result, run = run_of(lambda rng: 2 * rng.normal(size=2)[0] + np.float64(1))
    assert type(plain(result)) is np.float64
    assert (run.compared, run.handled) == ([], [])


OPERATIONS = {
    "sum": (lambda rng: np.arange(3.0) + rng.laplace(size=3), [1, 1, 1], [0, 1, 2]),
    "sum from the right": (lambda rng: rng.laplace(size=3) + np.arange(5, 8), [1, 1, 1], [5, 6, 7]),
    "in place": (lambda rng: np.add(v := np.arange(3.0), rng.laplace(size=3), out=v), [1, 1, 1], [0, 1, 2]),
    "difference": (lambda rng: 1 - rng.laplace(size=2), [-1, -1], [1, 1]),
    "scaled": (lambda rng: (2 * rng.normal(size=2) + 3) / 4, [0.5, 0.5], [0.75, 0.75]),
    "negative": (lambda rng: -(rng.normal() + 1), -1, -1),
    "one number": (lambda rng: 2.5 + rng.laplace(), 1, 2.5),
    "a number of numpy": (lambda rng: np.float64(2.5) + rng.laplace(), 1, 2.5),
    "python's": (lambda rng: 3 * random.gauss(0, 1) + 1, 3, 1),
    "the process's": (lambda rng: np.random.normal() - 1, 1, -1),
    "a slice": (lambda rng: (rng.normal(size=4) + np.arange(4))[1::2], [1, 1], [1, 3]),
    "another shape": (lambda rng: (rng.normal(size=4) + np.arange(4)).reshape(2, 2).T, [[1, 1]] * 2, [[0, 2], [1, 3]]),
    "one of them": (lambda rng: 1 + rng.normal(size=4)[2], 1, 1),
    "the noise cancels": (lambda rng: (z := rng.normal(size=2)) + 1 - z, [0, 0], [1, 1]),
}


@pytest.mark.parametrize("what", OPERATIONS)
def test_sums_and_products_are_followed(what: str) -> None:
    operate, factor, offset = OPERATIONS[what]
    result, run = run_of(operate)
    node = run.nodes[-1]
    assert np.array_equal(node.factor, factor)
    assert np.array_equal(node.offset, offset)
    assert np.allclose(node.value, np.asarray(result))
    assert np.array_equal(node.exact, np.asarray(result))  # type: ignore[arg-type]


def test_a_watched_number_is_a_float_everywhere() -> None:
    (number, exponential, text), _ = run_of(lambda rng: (z := rng.normal(), math.exp(z), f"{z:.3f}"))
    assert isinstance(number, float)
    assert exponential == math.exp(float(number))
    assert text == f"{float(number):.3f}"


def test_what_is_not_followed_has_no_memory() -> None:
    (ordered, largest), _ = run_of(lambda rng: (np.sort(z := rng.normal(size=5)), z.argmax()))
    assert getattr(ordered, "node", None) is None
    assert 0 <= largest < 5


def test_the_same_numbers_come_as_without_the_watch() -> None:
    watched, _ = run_of(lambda rng: rng.laplace(1, 2, size=3))
    assert np.array_equal(watched, np.random.default_rng(0).laplace(1, 2, size=3))


def masked(x: Any, rng: Any) -> Any:
    return np.ma.array(np.array(x) + rng.laplace(0, 1, 2), mask=[False, True])


def masked_before(x: Any, rng: Any) -> Any:
    return np.ma.masked_array(np.array(x, dtype=float)) + rng.laplace(0, 1, 2)


def masked_again(x: Any, rng: Any) -> Any:
    return np.ma.masked_invalid(np.ma.array(np.array(x) + rng.laplace(0, 1, 2)).copy())


@pytest.mark.parametrize("subject", [masked, masked_before, masked_again])
def test_a_masked_array_holds_nothing_of_the_watching(subject: Any) -> None:
    result = trace(subject, pairs=[([1, 2], [0, 2])], epsilon=1, hostile=False)
    assert result.pair_epsilon.upper == pytest.approx(1, rel=1e-9)
