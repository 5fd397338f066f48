"""Statistics of vectors by hand."""

import math

import numpy as np
import pytest

from dpassay.audit.distinguishers.base import TrainingSet
from dpassay.audit.distinguishers.statistic import NEARER, NEARER_STEPS, Statistic
from dpassay.audit.outputs.outputs import read

NAN, INF = math.nan, math.inf


def same(scores, expected):
    return np.array_equal(scores, np.array(expected, dtype=float), equal_nan=True)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("sum", [2, 0]),
        ("smallest coordinate", [-2, 0]),
        ("largest coordinate", [3, 0]),
        ("l1 norm", [6, 0]),
        ("coordinate 0", [1, 0]),
        ("coordinate 2", [3, 0]),
    ],
)
def test_statistics(name, expected):
    rows = read([[1, -2, 3], [0, 0, 0]])
    assert same(Statistic(name, 3).score(rows), expected)
    assert same(Statistic(name, 3, -1.0).score(rows), [-v for v in expected])
    words = name.replace("coordinate ", "output[") + "]" if name.startswith("coordinate ") else name
    assert words in Statistic(name, 3).describe()


def test_nearness_is_the_difference_of_distances():
    x, y = np.array([0.0, 0.0]), np.array([1.0, 3.0])
    near = Statistic(NEARER, 2, 1.0, (x, y))
    assert same(near.score(read([[0, 0], [1, 3], [1, 0], [5, 5]])), [-4, 4, 1 - 3, 10 - 6])
    # Increments of (2, 3) are (2, 1): |2| + |1| from x, |1| + |−2| from y.
    steps = Statistic(NEARER_STEPS, 2, 1.0, (x, y))
    assert same(steps.score(read([[2, 3], [1, 4]])), [3 - 3, (1 + 3) - 0])


def test_statistics_of_what_is_no_vector_are_unknown():
    outputs = read([None, "text", [1], [1, 2, 9], [NAN, 1]])
    assert same(Statistic("sum", 2).score(outputs), [NAN, NAN, NAN, 3, NAN])
    assert same(Statistic("smallest coordinate", 2).score(outputs), [NAN, NAN, NAN, 1, NAN])
    assert same(Statistic("coordinate 0", 2).score(outputs), [NAN, NAN, 1, 1, NAN])


def test_infinite_coordinates_are_no_warning():
    # Warnings are errors here, as they may be where somebody's tests run.
    outputs = read([[INF, -INF], [1e308, 1e308], [INF, 1]])
    x = np.array([INF, 0.0])
    assert same(Statistic("sum", 2).score(outputs), [NAN, INF, INF])
    assert same(Statistic(NEARER, 2, 1.0, (x, np.zeros(2))).score(outputs), [NAN, NAN, NAN])  # ∞ − ∞ in each
    assert np.isnan(Statistic(NEARER_STEPS, 2, 1.0, (x, np.zeros(2))).score(outputs)[0])


def fitted(first, second, inputs):
    return {s.name: s.sign for s in Statistic.fit(TrainingSet((read(first), read(second)), inputs))}


def test_statistics_are_turned_so_that_the_second_input_is_higher():
    first, second = [[0, 5, 1], [0, 5, 3]], [[1, 2, 1], [1, 2, 3]]
    signs = fitted(first, second, ("no", "vectors"))
    assert [signs[f"coordinate {j}"] for j in range(3)] == [1, -1, 1]
    assert signs["sum"] == -1  # 7 on average, then 5
    assert NEARER not in signs


def test_nearness_is_for_inputs_of_the_width_of_the_outputs():
    rows = [[0.0, 1.0], [1.0, 0.0]]
    assert {NEARER, NEARER_STEPS} < set(fitted(rows, rows, ([0, 0], [1, 1])))
    assert NEARER not in fitted(rows, rows, ([0, 0, 0], [1, 1, 1]))
    assert NEARER not in fitted(rows, rows, ([0, 0], [1, 1, 1]))
    assert set(fitted([0.0, 1.0], [1.0, 2.0], (0, 1))) == {NEARER, "coordinate 0"}


def test_of_many_coordinates_those_that_differ_most_are_looked_at():
    shift = np.array([0, 9, 0, 7, 0, 8.0])
    names = fitted(np.zeros((5, 6)), np.zeros((5, 6)) + shift, ((), ()))
    assert [name for name in names if name.startswith("coordinate")] == ["coordinate 1", "coordinate 5", "coordinate 3"]


def test_no_statistic_for_three_inputs_or_for_outputs_of_several_lengths():
    assert not list(Statistic.fit(TrainingSet((read([1.0]),) * 3, (0, 1, 2))))
    assert not fitted([[1, 2], [1]], [[1, 2], [1]], ((), ()))


@pytest.mark.parametrize(
    ("name", "width", "words"), [("coordinate 0", 1, "the output"), ("coordinate 2", 3, "output[2]")]
)
def test_a_coordinate_is_named_as_python_names_it(name, width, words):
    assert Statistic(name, width).describe() == words


def test_the_size_of_a_number_is_a_statistic_if_it_has_both_signs():
    rng = np.random.default_rng(0)
    sides = tuple(read(scale * rng.laplace(size=500)) for scale in (1, 2))
    assert [one.describe() for one in Statistic.fit(TrainingSet(sides, ()))] == ["|output|", "the output"]
    positive = tuple(read(scale * rng.exponential(size=500)) for scale in (1, 2))
    assert [one.describe() for one in Statistic.fit(TrainingSet(positive, ()))] == ["the output"]
