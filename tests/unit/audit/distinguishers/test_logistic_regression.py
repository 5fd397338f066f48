"""Logistic regression by hand, and as it is fitted."""

import math

import numpy as np
import pytest

from dpassay.audit.distinguishers.base import TrainingSet
from dpassay.audit.distinguishers.logistic_regression import LogisticRegression
from dpassay.audit.outputs.outputs import read

NAN, INF = math.nan, math.inf


def same(scores, expected):
    return np.array_equal(scores, np.array(expected, dtype=float), equal_nan=True)


def test_a_weighted_sum():
    linear = LogisticRegression(np.array([2.0, -1.0]), 0.5)
    assert same(linear.score(read([[1, 1], [0, 0], [3, -2]])), [1.5, 0.5, 8.5])
    assert same(linear.score(read([[1, 1], [1], None])), [1.5, NAN, NAN])
    infinite = LogisticRegression(np.array([0.0, 1.0]), 0.0)
    assert same(infinite.score(read([[INF, -INF], [1e308, 1e308], [INF, 1]])), [NAN, 1e308, NAN])


def test_weights_of_what_is_missing():
    linear = LogisticRegression(np.array([2.0, -1.0]), 0.5, np.array([10.0, 100.0]))
    outputs = read([[1, 1], [NAN, 1], [3, NAN], [1], None])
    assert same(linear.score(outputs), [1.5, 9.5, 106.5, 102.5, 110.5])


def test_weights_of_what_is_not_zero():
    linear = LogisticRegression(np.array([2.0, -1.0]), 0.5, np.array([0.0, 100.0]), np.array([0.0, 10.0]))
    assert same(linear.score(read([[1, 1], [1, 0], [0, NAN]])), [11.5, 2.5, 100.5])


def fitted(first, second):
    return list(LogisticRegression.fit(TrainingSet((read(first), read(second)), ((), ()))))


def test_the_log_odds_of_two_gaussians_are_found():
    # N(0, 1)² against N((1, 0), 1)²: the log-odds are exactly x₀ − 1/2.
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(2, 40_000, 2))
    (linear,) = fitted(first, second + np.array([1, 0]))
    # Standard errors are below 0.01, by the Fisher information of 80,000 runs with p(1 − p) ≈ 0.2; five are allowed,
    # so that one run in a million fails.
    assert linear.weights == pytest.approx([1, 0], abs=0.05)
    assert linear.bias == pytest.approx(-0.5, abs=0.05)
    assert len(linear.missing) == 0


def test_a_coordinate_that_may_be_missing_gets_a_second_weight():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(2, 4000, 2))
    rows[0, :2000, 1] = NAN  # half of the first input's, none of the second's
    (linear,) = fitted(*rows)
    assert linear.missing[0] == 0
    assert linear.missing[1] < -3


def test_a_coordinate_that_is_zero_or_any_number_gets_a_weight_for_not_being_zero():
    # The second coordinate is 0 with probability 0.7 and 0.4, else noise that says nothing: the log-odds of not being 0
    # against being 0 are ln(0.6/0.3) - ln(0.4/0.7) = 1.2528, with a standard error of 0.015; five are allowed.
    rng = np.random.default_rng(3)
    rows = 1000 * rng.normal(size=(2, 40_000, 2))
    for side, zero in enumerate((0.7, 0.4)):
        rows[side, rng.random(40_000) < zero, 1] = 0.0
    (linear,) = fitted(*rows)
    assert linear.nonzero == pytest.approx([0, 1.2528], abs=0.075)
    assert linear.weightiest([read(some) for some in rows])[0].startswith("output[1] not 0 in ")


def test_marks_need_no_weight_for_not_being_zero():
    rows = np.random.default_rng(4).integers(0, 2, size=(2, 1000, 2)).astype(float)
    (linear,) = fitted(*rows)
    assert len(linear.nonzero) == 0


def test_it_is_for_two_inputs_and_vectors_of_two_coordinates_or_more():
    rows = np.random.default_rng(2).normal(size=(40, 2))
    assert len(fitted(rows, rows)) == 1
    assert not fitted(rows[:, 0], rows[:, 0])
    assert not fitted(rows[:5], rows[:5])  # too few to fit
    assert not fitted([[1, 2], [1]], [[1, 2], [1]])
    assert not list(LogisticRegression.fit(TrainingSet((read(rows),) * 3, (0, 1, 2))))
