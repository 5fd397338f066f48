"""What words say, against the distributions' own log-likelihoods of the outputs that the words make."""

import math

import numpy as np
import pytest

from dpassay.compute.kernels.draws import ALL
from dpassay.compute.kernels.likelihood_ratio import of_bits
from dpassay.compute.kernels.philox import words
from dpassay.pipeline.distributions import (
    BitDistribution,
    Gaussian,
    Laplace,
    Mixture,
    OneSided,
    Pmf,
    Shifted,
    noise_by_words,
    told_by_words,
)

FIRST, SECOND = np.array([0.0, 1.0, 0.5, -2.0, 3.0]), np.array([1.0, 0.25, 0.5, 0.0, 2.9])
NOISES = [
    Laplace(0.7),
    Laplace(50),
    Gaussian(0.4),
    Gaussian(9),
    OneSided(0.5),
    Mixture(0.5, ((0.5, OneSided(2)),)),
    Mixture(0, ((0.5, OneSided(2)),), 0.5),
    Mixture(0.25, ((0.25, OneSided(1)),), 0.5),
]


@pytest.mark.parametrize("noise", NOISES, ids=lambda n: type(n).__name__)
@pytest.mark.parametrize("side", [0, 1])
def test_the_ratios_are_the_laws_own(noise, side):
    distributions = [Shifted(noise, FIRST), Shifted(noise, SECOND)]
    telling = told_by_words(distributions)[side]
    differ = np.flatnonzero(FIRST != SECOND)
    assert telling.dim == len(differ)
    drawn = words((3, 4), 0, 4000, range(telling.dim))
    outputs = np.tile((FIRST, SECOND)[side], (len(drawn), 1))
    outputs[:, differ] += noise_by_words(noise).values(drawn)
    with np.errstate(invalid="ignore"):
        expected = distributions[1].log_likelihood(outputs) - distributions[0].log_likelihood(outputs)
    found = sum(telling.scores(drawn[:, j], j) for j in range(telling.dim))
    assert np.isinf(expected).any() == isinstance(noise, OneSided | Mixture)
    assert np.allclose(found, expected, rtol=0, atol=1e-9 if not isinstance(noise, Gaussian) else 1e-8)


@pytest.mark.parametrize("side", [0, 1])
def test_bits(side):
    first, second = np.array([0.9, 0.5, 0.0, 0.3, 1.0]), np.array([0.1, 0.5, 0.25, 0.0, 0.75])
    telling = told_by_words([BitDistribution(first), BitDistribution(second)])[side]
    drawn = words((3, 4), 0, 4000, range(4))
    outputs = np.ones((len(drawn), 5))
    outputs[:, [0, 2, 3, 4]] = drawn < (first, second)[side][[0, 2, 3, 4]] * ALL
    outputs[:, 1] = 1
    with np.errstate(invalid="ignore"):
        expected = BitDistribution(second).log_likelihood(outputs) - BitDistribution(first).log_likelihood(outputs)
    found = sum(telling.scores(drawn[:, j], j) for j in range(4))
    assert np.allclose(found, expected, rtol=0, atol=1e-12)
    assert np.isinf(found).any()


def test_a_first_byte_decides_as_its_words_do():
    distributions = [Shifted(Laplace(2), FIRST), Shifted(Laplace(2), SECOND)]
    for telling in told_by_words(distributions):
        for j in range(telling.dim):
            for byte in range(256):
                some = np.unique(np.linspace(byte << 24, (byte + 1 << 24) - 1, 50).astype(np.uint32))
                scores = np.unique(telling.scores(some, j))
                known = telling.by_byte[j, byte]
                assert math.isnan(known) if len(scores) > 1 else math.isnan(known) or known == scores[0]
        assert np.isnan(telling.by_byte).mean() < 0.5


@pytest.mark.parametrize(
    "distributions",
    [
        [Shifted(Laplace(1), np.zeros(1)), Shifted(Laplace(1), np.full(1, 8.5))],  # tails beyond 32 bits
        [Shifted(Laplace(1), np.zeros(1)), Shifted(Laplace(2), np.ones(1))],  # two noises
        [Shifted(Mixture(0.5, ((0.5, Laplace(1)),)), np.zeros(1))] * 2,
        [Shifted(Laplace(1), np.zeros(2))] * 2,  # nothing differs
        [BitDistribution(np.array([1e-6])), BitDistribution(np.array([0.5]))],
        [BitDistribution(np.array([0.5])), BitDistribution(np.array([0.5]))],
        [Pmf(np.array([0.5, 0.5])), Pmf(np.array([0.25, 0.75]))],
        [Shifted(Laplace(1), np.full(1, x)) for x in (0.0, 1.0, 2.0)],
    ],
)
def test_what_kernels_leave_to_the_mechanism(distributions):
    assert told_by_words(distributions) is None


def test_bits_that_never_differ_in_one_place_are_left_out():
    assert of_bits(np.array([0.5, 0.25]), np.array([0.5, 0.75]), 0).dim == 1
