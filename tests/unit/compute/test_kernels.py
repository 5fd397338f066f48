"""Kernels of numba and Triton: the same counts as numpy's, to the last run."""

import numpy as np
import pytest

from dpassay.cli.common import usable_device
from dpassay.compute import devices
from dpassay.compute.kernels import numba_kernels, numpy_kernels
from dpassay.compute.kernels.draws import Span, WordNoise
from dpassay.compute.kernels.likelihood_ratio import LikelihoodRatioTable, of_bits, of_noise
from dpassay.compute.kernels.philox import key, words

KEY = (123, 0xF0000456)  # the second word's highest bit is set
SPANS = [
    Span(0, 1 << 31),
    Span(5, 1000),
    Span(123456789, 2000000000),
    Span(1 << 31, 1 << 31),
    Span(0, 1),
    Span((1 << 32) - 1, 1),
    Span(3 << 24, 2 << 24),  # both ends between two bytes
    Span((3 << 24) + 1, (2 << 24) - 1),
    Span(0, 0),
    Span(0, 1 << 32),
]
FIRST, SECOND = [0.0, 1.0, 0.0, 2.0], [1.0, 0.0, -0.5, 2.0]
TELLINGS = {
    f"{kind}, {kept}, {lost}, {scale}, {side}": of_noise(WordNoise(kind, scale, kept, lost), FIRST, SECOND, side)
    for kind, kept, lost in [
        ("laplace", 1.0, 0.0),
        ("gaussian", 1.0, 0.0),
        ("exponential", 1.0, 0.0),
        ("exponential", 0.5, 0.0),
        ("exponential", 0.5, 0.5),
        ("exponential", 0.3, 0.2),
    ]
    for scale in (0.5, 50.0)
    for side in (0, 1)
} | {f"bits, {side}": of_bits(np.array([0.9, 0.0]), np.array([0.2, 0.5]), side) for side in (0, 1)}
LIMITS = [(-1e4, 1e4, 1e-5), (-np.inf, 3.0, 0.1), (-1e300, 0.0, 0.01), (2.0, np.inf, 0.25)]


@pytest.fixture(scope="module")
def interpreted():
    """Triton's kernels, run by its interpreter where there is no GPU; see conftest.py."""
    pytest.importorskip("triton", reason="Triton is not made for this system")
    from dpassay.compute.kernels import triton_kernels

    with pytest.MonkeyPatch.context() as patch:
        if not devices.has_gpu():
            patch.setattr(triton_kernels, "DEVICE", "cpu")
        yield triton_kernels


@pytest.mark.parametrize("dim", [1, 2, 7, 300])
@pytest.mark.parametrize("span", SPANS, ids=str)
def test_numba_votes_like_numpy(dim, span):
    for start, runs in ((0, 1000), (16 * 1024 + 32, 1500), (16 << 33, 17), (16 * (2**32 - 3), 100), (0, 0)):
        assert numba_kernels.count_votes(KEY, start, runs, dim, span) == numpy_kernels.count_votes(
            KEY, start, runs, dim, span
        )


@pytest.mark.parametrize("telling", TELLINGS.values(), ids=list(TELLINGS))
def test_numba_guesses_like_numpy(telling):
    for low, high, grain in LIMITS:
        for start, runs in ((0, 2500), (16 << 33, 100)):
            expected = numpy_kernels.count_guesses(KEY, start, runs, telling, low, high, grain)
            assert numba_kernels.count_guesses(KEY, start, runs, telling, low, high, grain) == expected


def test_numba_guesses_like_numpy_where_first_bytes_decide():
    many = of_noise(WordNoise("laplace", 200.0), np.zeros(200), np.linspace(-1, 1, 200), 0)
    assert np.isnan(many.by_byte).sum() <= numba_kernels.LAZY * many.dim
    for low, high, grain in ((-1e4, 1e4, 1e-6), (-np.inf, 2e4, 1e-6)):
        expected = numpy_kernels.count_guesses(KEY, 0, 3000, many, low, high, grain)
        assert numba_kernels.count_guesses(KEY, 0, 3000, many, low, high, grain) == expected
        assert expected[1] > 300


@pytest.mark.long(every=4)
@pytest.mark.parametrize("span", SPANS, ids=str)
def test_triton_votes_like_numpy(span, interpreted):
    for start, runs, dim in ((0, 700, 2), (0, 300, 3), (16 << 33, 33, 1)):  # with two coordinates there are ties
        assert interpreted.count_votes(KEY, start, runs, dim, span) == numpy_kernels.count_votes(
            KEY, start, runs, dim, span
        )


@pytest.mark.long(every=3)
@pytest.mark.parametrize("name", [name for name in TELLINGS if "50.0" not in name])
def test_triton_guesses_like_numpy(name, interpreted):
    low, high, grain = LIMITS[0]
    expected = numpy_kernels.count_guesses(KEY, 16, 600, TELLINGS[name], low, high, grain)
    assert interpreted.count_guesses(KEY, 16, 600, TELLINGS[name], low, high, grain) == expected


@pytest.mark.long(every=3)
@pytest.mark.parametrize("run", [0, 5, 15])
def test_the_ends_of_ranges_to_the_last_word(run, interpreted):
    # The ends are put where the words of these runs are: one more or less changes the count.
    drawn = [int(word) for word in words(KEY, 0, 16, range(1))[:, 0]]
    word = drawn[run]
    spans = [Span(word, 1), Span(word + 1, 1000), Span(word - 1000, 1000), Span(word - 1000, 1001)]
    for numbers in (numpy_kernels, numba_kernels, interpreted):
        assert [numbers.count_votes(KEY, 0, 16, 1, span) for span in spans] == [
            sum(span.low <= w < span.low + span.width for w in drawn) for span in spans
        ]
        for cut in (word, word + 1):  # a bit is 1 below its cut: three grains for 1, minus three for 0
            bits = LikelihoodRatioTable(
                "bits", np.array([[cut, 1 << 32, 1 << 32]]), np.array([[3.0, -3.0, 0.0, 0.0]]), np.zeros(1)
            )
            ones = sum(w < cut for w in drawn)
            assert numbers.count_guesses(KEY, 0, 16, bits, -3.0, 3.0, 1.0) == (16 - ones, ones)
            assert numbers.count_guesses(KEY, 0, 16, bits, -4.0, 4.0, 1.0) == (0, 0)


@pytest.mark.parametrize("numbers", [numpy_kernels, numba_kernels], ids=["numpy", "numba"])
def test_any_division_gives_the_same_counts(numbers):
    span, telling = SPANS[2], TELLINGS["laplace, 1.0, 0.0, 50.0, 0"]
    pieces = [(0, 1600), (1600, 16), (1616, 2400)]
    votes = sum(numbers.count_votes(KEY, start, runs, 3, span) for start, runs in pieces)
    assert votes == numbers.count_votes(KEY, 0, 4016, 3, span)
    guesses = [numbers.count_guesses(KEY, start, runs, telling, -100, 100, 1e-4) for start, runs in pieces]
    assert tuple(map(sum, zip(*guesses, strict=True))) == numbers.count_guesses(KEY, 0, 4016, telling, -100, 100, 1e-4)


def test_the_device_that_is_used(monkeypatch, capsys):
    monkeypatch.setattr(devices, "has_gpu", lambda: False)
    assert usable_device("cuda") == "cpu"
    said = "there is no CUDA device that torch and Triton can use here: working on the CPU\n"
    assert capsys.readouterr() == ("", said)
    assert devices.usable("cuda") == ("cpu", devices.NO_GPU)
    assert devices.numbers("cuda") is numba_kernels
    assert devices.numbers("numpy") is numpy_kernels
    monkeypatch.setattr(devices, "has_numba", lambda: False)
    assert devices.numbers("cpu") is numpy_kernels
    monkeypatch.setattr(devices, "has_gpu", lambda: True)
    assert devices.usable("cuda") == ("cuda", "")


def test_streams_are_entered_at_every_16th_run(interpreted):
    for numbers in (numpy_kernels, numba_kernels, interpreted):
        with pytest.raises(ValueError, match="every 16th run"):
            numbers.count_votes(KEY, 8, 100, 1, SPANS[0])
        with pytest.raises(ValueError, match="every 16th run"):
            numbers.count_guesses(KEY, 8, 100, TELLINGS["bits, 0"], 0.0, 0.0, 1.0)


def test_wide_vectors_in_numpy(monkeypatch):
    monkeypatch.setattr(numpy_kernels, "CELLS", 64)  # so that coordinates come in several goes
    its_key = key(3)
    many = of_noise(WordNoise("laplace", 200.0), np.zeros(150), np.ones(150), 1)
    assert numpy_kernels.count_votes(its_key, 0, 100, 150, SPANS[0]) == numba_kernels.count_votes(
        its_key, 0, 100, 150, SPANS[0]
    )
    found = numpy_kernels.count_guesses(its_key, 0, 100, many, -1e4, 1e4, 1e-6)
    assert found == numba_kernels.count_guesses(its_key, 0, 100, many, -1e4, 1e4, 1e-6)
