"""Distances to several inputs."""

import math

import numpy as np

from dpassay.audit.distinguishers.base import TrainingSet
from dpassay.audit.distinguishers.nearest_input import NearestInput
from dpassay.audit.outputs.outputs import read


def test_scores_are_minus_the_distances():
    nearest = NearestInput((np.array([0.0, 0.0]), np.array([1.0, 1.0]), np.array([5.0, 0.0])))
    assert nearest.score(read([[0, 0], [2, 1]])).tolist() == [[0, -2, -5], [-3, -1, -4]]
    assert nearest.candidates == 3


def test_infinite_coordinates_are_no_warning():
    nearest = NearestInput((np.array([math.inf, 0.0]), np.zeros(2)))
    found = nearest.score(read([[math.inf, 1.0]]))
    assert np.array_equal(found, [[math.nan, -math.inf]], equal_nan=True)


def test_it_is_for_three_inputs_that_are_vectors_like_the_outputs():
    rows = read([[1.0, 2.0]])
    (found,) = NearestInput.fit(TrainingSet((rows,) * 3, ([0, 0], [1, 1], [2, 2])))
    assert [x.tolist() for x in found.inputs] == [[0, 0], [1, 1], [2, 2]]
    assert not list(NearestInput.fit(TrainingSet((rows,) * 2, ([0, 0], [1, 1]))))
    assert not list(NearestInput.fit(TrainingSet((rows,) * 3, ([0, 0], [1, 1], "text"))))
    assert not list(NearestInput.fit(TrainingSet((rows,) * 3, (0, 1, 2))))
