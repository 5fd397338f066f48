"""A search by random vectors never beats the diameter that a region states."""

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dpassay.core.numbers import down, up
from dpassay.pipeline.regions import (
    Ball,
    Bits,
    Box,
    Finite,
    Intersection,
    MinMax,
    OneHot,
    Repeated,
    Rows,
    SensitivityBall,
    Sparse,
    Sphere,
)

INF = math.inf
slow = settings(derandomize=True, deadline=None, max_examples=60)
powers = st.one_of(st.sampled_from([1, 1.5, 2, 3, INF]), st.floats(1, 20).map(lambda p: round(p, 3)))
queries = st.sampled_from([1, 2, INF])
dimensions = st.integers(1, 6)
radii = st.floats(0.01, 100).map(lambda r: round(r, 4))
seeds = st.integers(0, 2**32 - 1)
PAIRS = 400
ROUNDING = 1e-9


def directions(rng, dim):
    """Vectors of many shapes: round, sparse, flat, with few and with many large coordinates."""
    smooth = rng.normal(size=(PAIRS, dim))
    sparse = smooth * (rng.random((PAIRS, dim)) < 0.4)
    signs = rng.choice([-1.0, 1.0], size=(PAIRS, dim))
    nearly = signs * (1 + 0.1 * rng.normal(size=(PAIRS, dim)))
    return np.concatenate([smooth, sparse, signs, nearly, smooth**3])


def in_ball(rng, p, radius, dim):
    """Points on the surface, where the farthest ones lie, and some inside."""
    vectors = directions(rng, dim)
    norms = np.linalg.norm(vectors, ord=p, axis=1, keepdims=True)
    shrink = np.where(rng.random((len(vectors), 1)) < 0.8, 1.0, rng.random((len(vectors), 1)))
    return vectors / np.where(norms == 0, 1.0, norms) * radius * shrink


def largest_gap(rng, points, q):
    """The farthest pair of many: random ones, and each with its mirror image where that is in the set."""
    others = points[rng.permutation(len(points))]
    return float(np.linalg.norm(points - others, ord=q, axis=1).max())


def holds_up(region, points, q, rng):
    assert all(region.contains(point) for point in points[:: max(1, len(points) // 50)])
    assert largest_gap(rng, points, q) <= up(region.diameter(q)) * (1 + ROUNDING)


def names_its_farthest_pair(region, q):
    pair = region.farthest(q)
    assert region.contains(pair.first)
    assert region.contains(pair.second)
    gap = float(np.linalg.norm(pair.first - pair.second, ord=q))
    assert math.isclose(gap, down(region.diameter(q)), rel_tol=ROUNDING, abs_tol=1e-300)
    assert pair.first.shape == pair.second.shape == (region.dim,)


@slow
@given(powers, radii, dimensions, queries, seeds)
def test_balls(p, radius, dim, q, seed):
    rng = np.random.default_rng(seed)
    ball = Ball(p, radius, dim)
    points = in_ball(rng, p, radius, dim)
    holds_up(ball, points, q, rng)
    mirrored = np.linalg.norm(2 * points, ord=q, axis=1).max()
    assert mirrored <= up(ball.diameter(q)) * (1 + ROUNDING)
    names_its_farthest_pair(ball, q)


@slow
@given(powers, radii, dimensions, queries, seeds)
def test_neighbours_answers(p, distance, dim, q, seed):
    rng = np.random.default_rng(seed)
    region = SensitivityBall(p, distance, dim)
    gaps = in_ball(rng, p, distance, dim)
    assert np.linalg.norm(gaps, ord=q, axis=1).max() <= up(region.diameter(q)) * (1 + ROUNDING)
    pair = region.farthest(q)
    assert np.linalg.norm(pair.first - pair.second, ord=p) <= distance * (1 + ROUNDING)
    names_its_farthest_pair(region, q)


@slow
@given(radii, dimensions, queries, seeds)
def test_spheres(radius, dim, q, seed):
    rng = np.random.default_rng(seed)
    vectors = directions(rng, dim)
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    points = (vectors / np.where(norms == 0, 1.0, norms) * radius)[norms[:, 0] > 0]
    holds_up(Sphere(radius, dim), np.concatenate([points, -points]), q, rng)
    names_its_farthest_pair(Sphere(radius, dim), q)


@slow
@given(
    st.lists(st.tuples(st.integers(-50, 50), st.integers(0, 50), st.integers(1, 3)), min_size=1, max_size=3),
    queries,
    seeds,
)
def test_boxes(sides, q, seed):
    rng = np.random.default_rng(seed)
    box = Box(tuple((low, low + width, count) for low, width, count in sides))
    low = np.repeat([s[0] for s in sides], [s[2] for s in sides]).astype(float)
    width = np.repeat([s[1] for s in sides], [s[2] for s in sides]).astype(float)
    corners = rng.integers(0, 2, size=(PAIRS, len(low)))
    points = low + width * np.concatenate([corners, rng.random((PAIRS, len(low)))])
    holds_up(box, points, q, rng)
    names_its_farthest_pair(box, q)


@slow
@given(dimensions, queries, seeds)
def test_min_max_vectors(dim, q, seed):
    rng = np.random.default_rng(seed)
    vectors = directions(rng, dim)
    low, span = vectors.min(axis=1, keepdims=True), np.ptp(vectors, axis=1, keepdims=True)
    points = (vectors - low) / np.where(span == 0, 1.0, span)
    holds_up(MinMax(dim), np.concatenate([points, np.zeros((1, dim))]), q, rng)
    names_its_farthest_pair(MinMax(dim), q)


@slow
@given(dimensions, queries, seeds)
def test_bits_and_one_hot_vectors(dim, q, seed):
    rng = np.random.default_rng(seed)
    holds_up(Bits(dim), rng.integers(0, 2, size=(PAIRS, dim)).astype(float), q, rng)
    holds_up(OneHot(dim), np.eye(dim)[rng.integers(0, dim, size=PAIRS)], q, rng)
    names_its_farthest_pair(Bits(dim), q)
    names_its_farthest_pair(OneHot(dim), q)


@slow
@given(dimensions, dimensions, queries, seeds)
def test_strings_with_few_ones(dim, ones, q, seed):
    rng = np.random.default_rng(seed)
    ones = min(dim, ones)
    ranks = rng.random((PAIRS, dim)).argsort(axis=1).argsort(axis=1)
    points = (ranks < rng.integers(1, ones + 1, size=(PAIRS, 1))).astype(float)
    holds_up(Sparse(dim, ones), points, q, rng)
    names_its_farthest_pair(Sparse(dim, ones), q)


@slow
@given(powers, radii, dimensions, st.integers(1, 5), queries, seeds)
def test_repeated_vectors(p, radius, dim, times, q, seed):
    rng = np.random.default_rng(seed)
    region = Repeated(Ball(p, radius, dim), times)
    points = np.tile(in_ball(rng, p, radius, dim), times)
    holds_up(region, points, q, rng)
    assert np.linalg.norm(2 * points, ord=q, axis=1).max() <= up(region.diameter(q)) * (1 + ROUNDING)
    pair = region.farthest(q)  # equal coordinates stand together: the copies are there in another order
    gap = float(np.linalg.norm(pair.first - pair.second, ord=q))
    assert math.isclose(gap, down(region.diameter(q)), rel_tol=ROUNDING)
    for vector in (pair.first, pair.second):
        assert region.contains(vector.reshape(dim, times).T.ravel())


@slow
@given(st.integers(-50, 50), st.integers(0, 50), dimensions, queries, seeds)
def test_rows_of_which_one_differs(low, width, dim, q, seed):
    rng = np.random.default_rng(seed)
    region = Rows(dim, (low, low + width))
    first = low + width * rng.random((PAIRS, dim))
    second = first.copy()
    second[np.arange(PAIRS), rng.integers(0, dim, PAIRS)] = rng.choice([low, low + width], PAIRS)
    assert all(region.contains(point) for point in second)
    assert np.linalg.norm(first - second, ord=q, axis=1).max() <= up(region.diameter(q)) * (1 + ROUNDING)
    names_its_farthest_pair(region, q)


@slow
@given(st.integers(1, 12), dimensions, powers, seeds)
def test_finite_sets_against_all_pairs(size, dim, q, seed):
    rng = np.random.default_rng(seed)
    points = np.round(rng.normal(size=(size, dim)), 2)
    region = Finite(points.tolist())
    gaps = np.linalg.norm(points[:, None, :] - points[None, :, :], ord=q, axis=2)
    assert math.isclose(gaps.max(), up(region.diameter(q)), rel_tol=ROUNDING, abs_tol=1e-12)
    names_its_farthest_pair(region, q)


@slow
@given(powers, powers, radii, radii, dimensions, queries, seeds)
def test_the_intersection_of_two_balls_is_bracketed(p, other, radius, second, dim, q, seed):
    rng = np.random.default_rng(seed)
    both = Intersection(Ball(p, radius, dim), Ball(other, second, dim))
    vectors = directions(rng, dim)
    first, last = (np.linalg.norm(vectors, ord=power, axis=1, keepdims=True) for power in (p, other))
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = np.nan_to_num(np.minimum(radius / first, second / last), posinf=0.0)
    points = vectors * scale
    holds_up(both, points, q, rng)
    assert np.linalg.norm(2 * points, ord=q, axis=1).max() <= up(both.diameter(q)) * (1 + ROUNDING)
    names_its_farthest_pair(both, q)
