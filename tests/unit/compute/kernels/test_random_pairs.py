"""Pairs beyond 2C: the kernel against numpy, both against other generators and an integral."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import binom

from dpassay.compute.kernels import random_pairs as pairs
from dpassay.compute.kernels.philox import key
from dpassay.reproduce import adept
from statistics_helper import generator, require, same_frequency_p_value

numba_pairs = pytest.importorskip("dpassay.compute.kernels.numba_pairs")
KEY, CLIP = (20, 21), 10.0
SHAPES = ("uniform", "normal")


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dim", [1, 2, 3, 4, 7, 8, 18, 33, 64, 130])
def test_the_kernel_counts_as_numpy(shape: str, dim: int) -> None:
    for start, size in ((0, 1), (16, 15), (48, 128), (160, 129), (1 << 36, 2000)):
        expected = pairs.count_beyond(KEY, start, size, dim, shape, CLIP)
        assert numba_pairs.count_beyond(KEY, start, size, dim, shape, CLIP) == expected


@pytest.mark.parametrize("clip", [1e-8, 1e-3, 0.1, 1.0, 30.0, 1e3, 1e8])
def test_other_bounds(clip: float) -> None:
    for dim in (2, 5, 40):
        expected = pairs.count_beyond(KEY, 0, 1000, dim, "normal", clip)
        assert numba_pairs.count_beyond(KEY, 0, 1000, dim, "normal", clip) == expected


def test_many_coordinates() -> None:
    for dim in (1000, numba_pairs.MOST, numba_pairs.MOST + 1):
        assert numba_pairs.count_beyond(KEY, 0, 20, dim, "uniform", CLIP) == (20, 0)
        assert pairs.count_beyond(KEY, 0, 20, dim, "uniform", CLIP) == (20, 0)


@pytest.mark.parametrize("count", [pairs.count_beyond, numba_pairs.count_beyond])
def test_any_division_gives_the_same_counts(count) -> None:
    for shape, dim in (("uniform", 4), ("normal", 18)):
        whole = count(KEY, 0, 5000, dim, shape, CLIP)
        for cuts in ((0, 16, 5000), (0, 1008, 1136, 4000, 5000), (0, 4992, 5000)):
            parts = [count(KEY, a, b - a, dim, shape, CLIP) for a, b in pairwise(cuts)]
            assert tuple(np.sum(parts, axis=0)) == whole
    assert count(KEY, 32, 0, 4, "uniform", CLIP) == (0, 0)


@pytest.mark.parametrize("shape", SHAPES)
def test_what_cannot_be(shape: str) -> None:
    # On a line clipped values are at most 2C apart; and so are vectors clipped in l1, in all dimensions.
    assert numba_pairs.count_beyond(KEY, 0, 100_000, 1, shape, CLIP) == (0, 0)
    assert all(numba_pairs.count_beyond(KEY, 0, 20_000, dim, shape, CLIP)[1] == 0 for dim in range(2, 65, 3))


@pytest.mark.parametrize("shape", SHAPES)
def test_cells_hold_their_words(shape: str) -> None:
    words = generator("cells").integers(0, 1 << 32, 100_000, dtype=np.uint32)
    words[:512] = (np.arange(256, dtype=np.uint32) << 24)[:, None].repeat(2, axis=1).ravel()
    words[1:512:2] += (1 << 24) - 1
    centres, (a, b, c, d) = numba_pairs._cells(shape, CLIP)
    centre = centres[words >> 24].astype(float)
    off = np.abs(pairs.coordinates(words, shape, CLIP) - centre)
    assert (off <= a + b * centre**4).all()
    assert (off**2 <= c + d * centre**4).all()


@pytest.mark.parametrize("norm", [2, 1])
def test_how_far_clipping_moves_a_vector(norm: int) -> None:
    rng = generator(f"clipping in l{norm}")
    for _ in range(2000):
        n = int(rng.integers(1, 12))
        x = rng.normal(size=n) * rng.choice([0.05, 0.5, 5])
        h = np.abs(rng.normal(size=n)) * rng.choice([0.01, 0.3, 2])
        near = x + h * rng.choice([-1, 1, 0.5], size=n)
        moved = np.abs(_clipped(near, norm) - _clipped(x, norm)).sum()
        size, radius = np.linalg.norm(x, norm), np.linalg.norm(h, norm)
        bound = np.sqrt(n) * radius if norm == 2 else 2 * radius
        bound = h.sum() if size + radius <= 1 else bound / max(1, size - radius)
        assert moved <= bound * (1 + 1e-12)


def _clipped(x: np.ndarray, norm: int) -> np.ndarray:
    return x * min(1, 1 / np.linalg.norm(x, norm))


def test_few_pairs_need_whole_words() -> None:
    # At n = 64 next to none; where half of the normal pairs are beyond, a quarter. The rest is decided by bytes.
    for shape, dim, share in (("uniform", 64, 0.001), ("normal", 64, 0.01), ("uniform", 5, 0.15), ("normal", 18, 0.3)):
        assert numba_pairs.counts(KEY, 0, 20_000, dim, shape, CLIP)[2] < share * 20_000


def test_pairs_by_numpys_generator() -> None:
    name, runs = "pairs by numpy's generator", 200_000
    rng, p_values = generator(name), []
    for k, shape in enumerate(SHAPES):
        for dim in ((2, 3, 6), (12, 16, 22))[k]:
            size = (2, runs, dim)
            drawn = rng.uniform(-CLIP, CLIP, size) if shape == "uniform" else rng.normal(0, (0.1 * CLIP) ** 0.5, size)
            x, y = drawn * np.minimum(1, CLIP / np.linalg.norm(drawn, axis=-1, keepdims=True))
            theirs = int(np.count_nonzero(np.abs(x - y).sum(axis=1) > 2 * CLIP))
            ours, _ = numba_pairs.count_beyond(key(1, dim), 0, runs, dim, shape, CLIP)
            p_values.append(same_frequency_p_value(ours, theirs, runs))
    require(name, len(p_values) * min(p_values))


def test_normal_pairs_by_their_curve() -> None:
    name, runs = "normal pairs by their curve", 200_000
    curve, p_values = adept.normal_curve(), []
    for dim in (8, 12, 16, 18, 20, 25, 32):
        low, high = curve[dim]
        found, _ = numba_pairs.count_beyond(key(2, dim), 0, runs, dim, "normal", CLIP)
        p_values.append(
            2 * min(binom.cdf(found, runs, max(0, low - 1e-12)), binom.sf(found - 1, runs, min(1, high + 1e-12)))
        )
    require(name, len(p_values) * min(p_values))
