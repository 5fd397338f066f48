"""Squashed and rounded regions: formulas, and a search that finds nothing farther."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from dpassay.core.numbers import middle, real, sqrt
from dpassay.pipeline.parser import parse
from dpassay.pipeline.regions import Ball, MinMax, Rounded, SensitivityBall, Squashed

INF = float("inf")


def image(function: str, values: np.ndarray) -> np.ndarray:
    return np.tanh(values) if function == "tanh" else 1 / (1 + np.exp(-values))


def region_before_noise(text: str, dim: int):
    return parse(text, dim=dim).output_regions()[-2]


def test_the_reference_number() -> None:
    before = region_before_noise("clip(l2, 5) | squash(tanh) | laplace(1)", 64)
    assert before.exact
    assert middle(before.region.diameter(1)) == pytest.approx(2 * 64 * math.tanh(5 / 8), rel=1e-14)


@pytest.mark.parametrize("function", ["tanh", "sigmoid"])
@pytest.mark.parametrize("p", [1.0, 2.0, INF])
@pytest.mark.parametrize("q", [1.0, 2.0, INF])
@pytest.mark.parametrize("radius", [0.3, 1.0, 2.5, 6.0])
def test_no_pair_of_a_squashed_ball_is_farther(function: str, p: float, q: float, radius: float) -> None:
    dim = 3
    region = Squashed(Ball(p, radius, dim), function)
    rng = np.random.default_rng(0)
    points = rng.normal(size=(2, 40_000, dim)) * rng.choice([0.05, 1, 20], size=(2, 40_000, dim))
    points *= radius / np.linalg.norm(points, ord=p, axis=-1, keepdims=True)
    opposite = np.concatenate([points[0], points[1]]), np.concatenate([points[1], -points[1]])
    gaps = np.linalg.norm(image(function, opposite[0]) - image(function, opposite[1]), ord=q, axis=-1)
    diameter = region.diameter(q)
    assert gaps.max() <= float(diameter.b) * (1 + 1e-12)
    # A pair of answers may have any base: each coordinate differs by 2 tanh(t/2), or tanh(t/4), at most.
    apart = Squashed(SensitivityBall(p, 2 * radius, dim), function)
    assert apart.diameter(q) == diameter
    shifted = points[1] + 3 * rng.normal(size=points[1].shape)
    gaps = np.linalg.norm(image(function, shifted + 2 * points[0]) - image(function, shifted), ord=q, axis=-1)
    assert gaps.max() <= float(diameter.b) * (1 + 1e-12)
    # The pair that is named is one of the ball.
    pair = region.farthest(q)
    assert region.contains(pair.first)
    assert region.contains(pair.second)
    assert middle(pair.distance(q)) >= float(diameter.a) * (1 - 1e-12)


def test_formulas_of_squashed_regions() -> None:
    def diameter(region: Squashed, q: float) -> float:
        assert region.knows_farthest(q)
        return middle(region.diameter(q))

    assert diameter(Squashed(Ball(1, 1, 4), "tanh"), 1) == pytest.approx(8 * math.tanh(1 / 4))
    assert diameter(Squashed(SensitivityBall(1, 1, 4), "sigmoid"), 1) == pytest.approx(4 * math.tanh(1 / 16))
    assert diameter(Squashed(SensitivityBall(INF, 1, 4), "tanh"), 1) == pytest.approx(8 * math.tanh(1 / 2))
    assert diameter(Squashed(Ball(2, 1, 4), "tanh"), 2) == pytest.approx(4 * math.tanh(1 / 2))
    assert diameter(Squashed(Ball(1, 1, 4), "tanh"), 2) == pytest.approx(2 * math.tanh(1))  # sinh 2 < 4
    sphere = region_before_noise("normalise | squash(tanh) | laplace(1)", 4)
    assert sphere.exact
    assert diameter(sphere.region, 1) == pytest.approx(8 * math.tanh(1 / 2))
    assert not Squashed(Ball(1, 1.1, 4), "tanh").knows_farthest(2)  # sinh 2.2 > 4.4
    loose = Squashed(Ball(1, 5, 4), "tanh").diameter(2)
    assert float(loose.a) >= 4 * math.tanh(5 / 4) * (1 - 1e-12)
    assert float(loose.b) <= 4 * math.tanh(5) * (1 + 1e-12)


def rounded_moves(distance: float, p: float, dim: int) -> set[tuple[int, ...]]:
    """What rounded answers can differ by, found by rounding fractions: moves of quarters, and a little more."""
    limit, little = Fraction(distance), Fraction(1, 10**6)
    bases = [Fraction(k, 2) + e for k in range(4) for e in (-little / 2, 0, little / 2)]
    moves: dict[int, Fraction] = {}  # the least move for each difference
    for base, quarters, more in itertools.product(bases, range(4 * math.ceil(limit) + 1), (0, little)):
        step = Fraction(quarters, 4) + more
        size = abs(round(base + step) - round(base))
        moves[size] = min(moves.get(size, step), step)
    found = set()
    for sizes in itertools.combinations_with_replacement(sorted(moves), dim):
        steps = [moves[size] for size in sizes]
        spent = max(steps) if p == INF else sum(step ** int(p) for step in steps)
        if spent <= (limit if p == INF else limit ** int(p)):
            found.add(sizes)
    return found


@pytest.mark.parametrize("p", [1.0, 2.0, INF])
@pytest.mark.parametrize("dim", [1, 2, 3, 4])
@pytest.mark.parametrize("distance", [0.25, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0])
def test_rounded_answers_against_a_search(p: float, dim: int, distance: float) -> None:
    region = Rounded(SensitivityBall(p, distance, dim))
    found = rounded_moves(distance, p, dim)
    for q in (1.0, 2.0, INF):
        largest = max(np.linalg.norm(sizes, ord=q) for sizes in found)
        diameter = region.diameter(q)
        assert largest <= float(diameter.b) * (1 + 1e-12)
        assert float(diameter.a) <= largest * (1 + 1e-12)
        if region.knows_farthest(q):
            assert middle(diameter) == pytest.approx(largest, rel=1e-12)
    assert region.knows_farthest(1)
    for pair in region.pairs():  # each of them is a difference that occurs
        assert tuple(sorted(int(v) for v in pair.first)) in found
    if region.complete and p != 2:  # every difference lies below a mean of permutations of one that is named
        for sizes in found:
            assert any(majorised(sizes, tuple(pair.first)) for pair in region.pairs()), sizes


def majorised(sizes: tuple[int, ...], by: tuple[float, ...]) -> bool:
    """Whether the largest k together are never more than the other's largest k (weak majorisation)."""
    ours, theirs = (np.cumsum(sorted(v, reverse=True)) for v in (sizes, by))
    return bool(np.all(ours <= theirs))


def test_a_distance_that_is_not_known_to_be_whole() -> None:
    almost = Rounded(SensitivityBall(1, sqrt(real(3)) ** 2 / 3, 4))  # 1 within 50 digits, no point
    assert not almost.knows_farthest(1)
    assert (float(almost.diameter(1).a), float(almost.diameter(1).b)) == (4.0, 5.0)


@pytest.mark.parametrize("text", ["rows | minmax | laplace(1)", "rows | clamp(2, 3) | minmax | laplace(1)"])
def test_one_person_moves_all_of_a_min_max_image(text: str) -> None:
    pipeline = parse(text, dim=5)
    before = pipeline.output_regions()[-2]
    assert before.exact
    assert before.region == MinMax(5)
    # All others have one value: the person's value above or below it makes it the least or the largest.
    data = np.full((2, 5), 2.5)
    data[:, 0] = 3, 2
    for stage in pipeline.stages[:-1]:
        data = stage.run(data, np.random.default_rng())
    pair = before.region.farthest(1)
    assert data.tolist() == [pair.first.tolist(), pair.second.tolist()]
    assert np.abs(data[0] - data[1]).sum() == 5
