"""Distances and gaps: numba's are numpy's, and both are what scipy and plain maxima give."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from dpassay.compute.kernels import numba_word_gaps, word_gaps

RNG = np.random.default_rng(5)
NAMES = {"l2": "euclidean", "l1": "cityblock", "linf": "chebyshev"}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("rows", "others", "columns"), [(1, 1, 1), (2, 4, 16), (3, 7, 17), (130, 5, 1025), (9, 130, 2049)]
)
def test_gaps_are_the_largest_and_smallest_differences(dtype, rows, others, columns):
    a, b = (RNG.standard_normal((count, columns)).astype(dtype) for count in (rows, others))
    difference = a[:, None, :] - b[None, :, :]
    for kernels in (word_gaps, numba_word_gaps):
        high, low = kernels.gaps(a, b)
        assert np.array_equal(high, difference.max(axis=2))
        assert np.array_equal(low, difference.min(axis=2))


@pytest.mark.parametrize("column", range(33))
def test_every_column_counts(column):
    a, b = np.zeros((2, 33), np.float32), np.zeros((4, 33), np.float32)
    a[1, column], b[2, column] = 3, 5
    high, low = numba_word_gaps.gaps(a, b)
    assert high.tolist() == [[0, 0, 0, 0], [3, 3, 0, 3]]
    assert low.tolist() == [[0, 0, -5, 0], [0, 0, -2, 0]]


@pytest.mark.parametrize("metric", NAMES)
@pytest.mark.parametrize("dim", [1, 50, 301])
def test_distances(metric, dim):
    a, b = RNG.standard_normal((70, dim)), RNG.standard_normal((9, dim))
    expected = cdist(a, b, NAMES[metric])
    for kernels in (word_gaps, numba_word_gaps):
        relative, _ = word_gaps.distance_error(dim, metric)
        assert kernels.distances(a, b, metric) == pytest.approx(expected, rel=2 * relative)


def test_distances_of_near_words_keep_their_digits():
    a = np.full((1, 3), 1e8)
    b = a + np.array([[3e-7, 4e-7, 0.0]])  # as the doubles are: 8 digits
    exact = float(np.sqrt(((a - b) ** 2).sum()))
    for kernels in (word_gaps, numba_word_gaps):
        assert kernels.distances(a, b, "l2")[0, 0] == exact > 0


def test_angles_from_0_to_pi():
    for kernels in (word_gaps, numba_word_gaps):
        for angle in (0.0, 1e-9, 0.5, np.pi / 2, 3.0, np.pi):
            a, b = np.array([[5.0, 0.0]]), np.array([[np.cos(angle), np.sin(angle)]])
            assert kernels.distances(a, b, "angle")[0, 0] == pytest.approx(angle, abs=1e-15)
