"""Noise as a function of words, and the ranges of words that are rounded to 1."""

import numpy as np
import pytest
from scipy.special import ndtri

from dpassay.compute.kernels.draws import ALL, Span, WordNoise, coin, first_word, rounded_up, standard
from dpassay.compute.kernels.normal_quantile import normal_quantile

NOISES = [
    WordNoise("laplace", 0.7),
    WordNoise("laplace", 128.0),
    WordNoise("gaussian", 0.3),
    WordNoise("exponential", 2.0),
    WordNoise("exponential", 2.0, kept=0.5),
    WordNoise("exponential", 0.1, kept=0.5, lost=0.5),
    WordNoise("exponential", 1.0, kept=0.25, lost=0.5),
]


def some_words(near=()):
    rng = np.random.default_rng(5)
    edges = [w + d for w in (0, 1 << 31, ALL - 1, *near) for d in range(-3, 4)]
    known = np.array([w for w in edges if 0 <= w < ALL], dtype=np.int64)
    return np.concatenate([rng.integers(0, ALL, 20_000), known]).astype(np.uint32)


@pytest.mark.parametrize("noise", NOISES, ids=str)
@pytest.mark.parametrize(("x", "factor"), [(0.0, 1.0), (1.0, 1.0), (0.0, 0.5), (1.0, 0.5), (0.4, 1.0)])
def test_a_range_of_words_is_what_the_sampler_rounds_up(noise, x, factor):
    span = rounded_up(noise, x, factor)
    words = some_words((span.low, span.low + span.width))
    with np.errstate(invalid="ignore"):
        rounded = factor * (x + noise.values(words)) >= 0.5  # NaN is rounded to 0, as a comparison does
    assert (span.holds(words) == rounded).all()


@pytest.mark.parametrize("kind", ["laplace", "gaussian", "exponential"])
def test_noise_rises_with_its_word(kind):
    words = np.sort(some_words())
    values = standard(kind, words)
    assert (np.diff(values) >= 0).all()
    assert np.isfinite(values).all()


def test_symmetric_noises_are_symmetric():
    words = some_words()
    mirrored = (ALL - 1 - words.astype(np.int64)).astype(np.uint32)
    for kind in ("laplace", "gaussian"):
        assert np.allclose(standard(kind, words), -standard(kind, mirrored), rtol=0, atol=1e-8)


def test_the_normal_quantile_is_scipys():
    tails = 10.0 ** -np.linspace(0.5, 12, 500)
    u = np.concatenate([np.random.default_rng(0).random(10_000), tails, 1 - tails])
    assert np.allclose(normal_quantile(u), ndtri(u), rtol=5e-15, atol=5e-15)  # both are good to about 16 digits


def test_readings_of_dptext():
    words = some_words()
    zero, lost = (WordNoise("exponential", 3.0, kept=0.5, lost=share).values(words) for share in (0.0, 0.5))
    assert ((zero == 0) == (words >= 1 << 31)).all()
    assert (np.isnan(lost) == (words >= 1 << 31)).all()
    assert (zero >= 0).all()


def test_coins():
    assert coin(0.0) == Span(0, 0)
    assert coin(1.0) == Span(0, ALL)
    assert coin(0.25).holds(np.array([0, (1 << 30) - 1, 1 << 30], dtype=np.uint32)).tolist() == [True, True, False]


@pytest.mark.parametrize("answer", [0, 1, 12345, ALL - 1, ALL])
def test_the_first_word(answer):
    assert first_word(lambda word: word >= answer, ALL) == answer
