import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp, mpf

from dpassay.core.numbers import INFINITY, number, real, sqrt
from dpassay.errors import InputError
from dpassay.pipeline.regions import (
    Ball,
    Bits,
    Block,
    Box,
    Categories,
    Everything,
    Finite,
    Intersection,
    MinMax,
    OneHot,
    Pair,
    Repeated,
    Rows,
    SensitivityBall,
    Sparse,
    Sphere,
)
from oracles import ends, holds, read

INF = math.inf
NORMS = [1, 1.5, 2, 3, INF]


def inverse(p):
    return mpf(0) if p == INF else 1 / read(p)


def precise(enclosed, truth):
    """The truth is inside, and the enclosure is not wide."""
    low, high = ends(enclosed)
    assert holds(enclosed, truth)
    assert high - low <= abs(high) * Fraction(1, 10**40)


# ── Diameters by formula ────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("n", [1, 2, 3, 32, 1024, 100_000])
@pytest.mark.parametrize("p", NORMS)
@pytest.mark.parametrize("q", NORMS)
def test_ball_diameter_is_the_formula(n, p, q):
    with mp.workdps(60):
        radius = mpf(7) / 10
        truth = 2 * radius * mpf(n) ** max(mpf(0), inverse(q) - inverse(p))
        precise(Ball(p, "0.7", n).diameter(q), truth)


def test_adept_figures():
    with mp.workdps(60):
        assert mp.nstr(mp.sqrt(32), 5) == "5.6569"  # FACTS §2: Δ₁ = 2C√n
        precise(Ball(2, 1, 32).diameter(1), 2 * mp.sqrt(32))
        precise(Ball(2, 1, 1024).diameter(1), mpf(64))


def test_the_two_dimensional_counterexample_lies_in_the_ball():
    point = np.full(2, 2 / 3)
    assert Ball(2, 1, 2).contains(point)
    with mp.workdps(60):
        # FACTS §2: ±(2C/3, 2C/3) are 8C/3 apart in l1, which noise of scale 2C/ε turns into 4ε/3
        precise(Pair.of([2 / 3] * 2, [-2 / 3] * 2).distance(1), 4 * read(2 / 3))


@pytest.mark.parametrize("q", NORMS)
@pytest.mark.parametrize("n", [1, 2, 10, 100_000])
def test_other_diameters_are_their_formulas(n, q):
    with mp.workdps(60):
        power = inverse(q)
        precise(Sphere(3, n).diameter(q), 6 * mpf(n) ** max(mpf(0), power - mpf(1) / 2))
        precise(Bits(n).diameter(q), mpf(n) ** power)
        precise(Box.cube("-0.5", "1.5", n).diameter(q), 2 * mpf(n) ** power)
        precise(MinMax(n).diameter(q), mpf(n) ** power if n > 1 else mpf(0))
        precise(OneHot(n).diameter(q), mpf(2) ** power if n > 1 else mpf(0))
        for p in NORMS:
            precise(SensitivityBall(p, "0.3", n).diameter(q), mpf(3) / 10 * mpf(n) ** max(mpf(0), power - inverse(p)))


@pytest.mark.parametrize("q", [1, 2, 3])
def test_a_box_with_different_sides(q):
    box = Box(((0, 1, 3), ("-0.25", "0.5", 2), (10, 10, 1)))
    assert box.dim == 6
    with mp.workdps(60):
        precise(box.diameter(q), (3 + 2 * (mpf(3) / 4) ** q) ** (1 / mpf(q)))


def test_a_box_in_the_largest_norm():
    assert Box(((0, 1, 3), (-2, 5, 2))).diameter(INF) == 7


@pytest.mark.parametrize("q", NORMS)
@pytest.mark.parametrize(("n", "ones"), [(1, 1), (4, 1), (4, 2), (4, 3), (32, 2), (5, 5)])
def test_sparse_strings_differ_in_twice_as_many_places_as_they_have_ones(n, ones, q):
    with mp.workdps(60):
        precise(Sparse(n, ones).diameter(q), mpf(min(2 * ones, n)) ** inverse(q) if n > 1 else mpf(0))


@pytest.mark.parametrize("q", NORMS)
def test_repeated_vectors_are_farther_apart_by_a_root(q):
    with mp.workdps(60):
        precise(Repeated(Ball(2, 3, 16), 7).diameter(q), 6 * mpf(7) ** inverse(q) * mpf(16) ** max(0, inverse(q) - 0.5))
        precise(Repeated(Box.cube(0, 1, 2), 7).diameter(q), mpf(14) ** inverse(q))


@pytest.mark.parametrize("q", NORMS)
def test_rows_are_apart_by_what_one_can_move(q):
    assert Rows(9).diameter(q) == INFINITY
    precise(Rows(9, ("0.25", 2)).diameter(q), read("1.75"))
    pair = Rows(3, (2, 5)).farthest(q)
    assert (pair.first.tolist(), pair.second.tolist()) == ([5, 2, 2], [2, 2, 2])


@pytest.mark.parametrize("limits", [(1, 0), (0, INF), (-INF, 0)])
def test_bad_limits_of_rows_are_refused(limits):
    with pytest.raises(InputError, match="finite limits"):
        Rows(2, limits)


def test_more_ones_than_bits_are_refused():
    with pytest.raises(InputError, match="at most 3 of 3 bits can be ones, got 4"):
        Sparse(3, 4)


def test_everything_has_no_diameter():
    assert Everything(3).diameter(1) == INFINITY
    for size in (1, 1000):
        assert Everything(3).farthest(1, size).distance(1) == 2 * size


def test_categories():
    assert Categories(3).dim == 1
    assert all(Categories(3).contains(np.array([float(k)])) for k in range(3))
    assert not any(Categories(3).contains(np.array(v)) for v in ([3.0], [-1.0], [0.5], [0.0, 1.0]))
    pair = Categories(3).farthest(1)
    assert Categories(3).contains(pair.first)
    assert Categories(3).contains(pair.second)


# ── Finite sets ─────────────────────────────────────────────────────────────────────────────────


def exact_distance(one, other, q):
    """The qth power of the distance, and for ∞ the distance, of decimals as written."""
    gaps = [abs(Fraction(repr(float(a))) - Fraction(repr(float(b)))) for a, b in zip(one, other, strict=True)]
    return max(gaps) if q == INF else sum(gap**q for gap in gaps)


def finite_is_right(points, q):
    region = Finite(points)
    best = max(exact_distance(a, b, q) for a, b in itertools.combinations_with_replacement(points, 2))
    with mp.workdps(60):
        truth = read(best) if q == INF else read(best) ** (1 / mpf(q))
        assert holds(region.diameter(q), truth)
    pair = region.farthest(q)
    assert region.contains(pair.first)
    assert region.contains(pair.second)


@pytest.mark.parametrize("q", [1, 2, 3, INF])
def test_finite_against_brute_force(q):
    rng = np.random.default_rng(0)
    for size, dim in ((1, 1), (2, 3), (5, 1), (12, 2), (20, 6)):
        finite_is_right(rng.normal(size=(size, dim)).round(3).tolist(), q)


@pytest.mark.parametrize("q", [1, 2, INF])
def test_finite_where_many_pairs_tie(q):
    finite_is_right([list(map(float, bits)) for bits in itertools.product((0, 1), repeat=4)], q)


def test_finite_tells_points_apart_that_differ_in_the_last_digit_only():
    # As decimals the first and the last are 21e-16 apart, the first two 20e-16; as doubles it is the other way round.
    finite_is_right([[1.0] * 5, [1.0000000000000004] * 5, [1.0000000000000007] * 3 + [1.0] * 2], 1)


def test_finite_with_many_pairs_that_doubles_cannot_tell_apart():
    # All but the last point are 1 from the origin, the last a little more.
    points = [[0.0, 0.0]] + [[1.0, 0.0]] * 100 + [[1.0, 1e-12]]
    finite_is_right(points, 1)


def test_finite_with_tiny_coordinates():
    # The squares of these coordinates are 0 in doubles.
    points = [[0.0, 0.0]] + [[1e-200, 0.0]] * 60 + [[3e-200, 4e-200]]
    finite_is_right(points, 2)


def test_finite_with_a_norm_that_is_no_whole_number():
    points = [[0.0, 0.0], [1.0, 1.0], [1.5, 0.1]]
    with mp.workdps(60):
        truth = max(
            (abs(read(a[0]) - read(b[0])) ** 1.5 + abs(read(a[1]) - read(b[1])) ** 1.5) ** (mpf(2) / 3)
            for a, b in itertools.combinations(points, 2)
        )
        precise(Finite(points).diameter(1.5), truth)


# ── Two balls at once ───────────────────────────────────────────────────────────────────────────


def test_both_where_one_ball_lies_in_the_other():
    both = Intersection(Ball(2, 1, 4), Ball(INF, "0.4", 4))
    # (0.4, …) has l2 norm 0.8: the cube lies inside, and its l1 diameter is 4 · 0.8.
    low, high = ends(both.diameter(1))
    assert low <= Fraction(32, 10) <= high
    assert high - low < Fraction(1, 10**40)


@pytest.mark.parametrize("n", [2, 5, 100])
def test_both_brackets_a_known_diameter(n):
    # In l∞ the intersection's farthest pair is along an axis: twice the smaller radius.
    both = Intersection(Ball(1, 2, n), Ball(2, "1.25", n))
    low, high = ends(both.diameter(INF))
    assert low <= Fraction(5, 2) <= high


@pytest.mark.parametrize("q", NORMS)
def test_both_names_a_pair_inside(q):
    both = Intersection(Ball(1, 2, 50), Ball(INF, "0.3", 50))
    pair = both.farthest(q)
    assert both.contains(pair.first)
    assert both.contains(pair.second)
    assert ends(pair.distance(q))[0] == ends(both.diameter(q))[0]


def test_both_refuses_balls_of_different_dimension():
    with pytest.raises(InputError):
        Intersection(Ball(2, 1, 3), Ball(1, 1, 4))


# ── Pairs ───────────────────────────────────────────────────────────────────────────────────────


def test_a_pair_joins_equal_coordinates_and_expands_again():
    first, second = [1.0, 1.0, 2.0, 2.0, 1.0], [0.0, 0.0, 0.0, 1.0, 0.0]
    pair = Pair.of(first, second)
    assert [block.count for block in pair.blocks] == [2, 1, 1, 1]
    assert pair.first.tolist() == first
    assert pair.second.tolist() == second
    assert pair.distance(1) == 6
    assert pair.distance(INF) == 2


def test_distance_zero():
    pair = Pair((Block(number(1), number(1), 4),))
    assert all(pair.distance(q) == 0 for q in NORMS)


def test_a_pair_needs_vectors_of_one_length():
    with pytest.raises(ValueError, match=r"argument 2|length|dimension"):
        Pair.of([1.0], [1.0, 2.0])


# ── Bad input ───────────────────────────────────────────────────────────────────────────────────

DIMENSIONS = [0, -1, 1e9, 2.5, math.nan, INF, "3", None]


@pytest.mark.parametrize("dim", DIMENSIONS)
@pytest.mark.parametrize(
    "make",
    [
        lambda n: Ball(2, 1, n),
        lambda n: Sphere(1, n),
        lambda n: Box.cube(0, 1, n),
        MinMax,
        Bits,
        OneHot,
        Categories,
        Everything,
        lambda n: SensitivityBall(2, 1, n),
    ],
    ids=["ball", "sphere", "box", "minmax", "bits", "onehot", "categories", "everything", "apart"],
)
def test_a_bad_dimension_is_refused(make, dim):
    with pytest.raises(InputError, match=r"dimension must be a whole number from 1 to 10,000,000, got"):
        make(dim)


@pytest.mark.parametrize("dim", [1, 10_000_000, 3.0, np.int64(4)])
def test_a_good_dimension_becomes_a_whole_number(dim):
    assert Ball(2, 1, dim).dim == int(dim)


@pytest.mark.parametrize("radius", [0, -1, "-1", math.nan, "nan", INF, "inf", None, "wide"])
@pytest.mark.parametrize(
    "make",
    [lambda r: Ball(2, r, 3), lambda r: Sphere(r, 3), lambda r: SensitivityBall(2, r, 3)],
    ids=["ball", "sphere", "apart"],
)
def test_a_bad_radius_is_refused(make, radius):
    with pytest.raises(InputError, match=r"must be positive and finite, got|expected a number, got"):
        make(radius)


@pytest.mark.parametrize("p", [0.999, 0, -1, math.nan])
@pytest.mark.parametrize("make", [lambda p: Ball(p, 1, 3), lambda p: SensitivityBall(p, 1, 3)], ids=["ball", "apart"])
def test_a_bad_norm_is_refused(make, p):
    with pytest.raises(InputError, match="a norm needs p from 1 to infinity"):
        make(p)


@pytest.mark.parametrize("sides", [(), ((1, 0, 2),), ((0, INF, 2),), ((-INF, 0, 2),), ((0, math.nan, 2),)])
def test_a_bad_box_is_refused(sides):
    with pytest.raises(InputError, match=r"a box needs|expected a number"):
        Box(sides)


def test_a_box_may_be_a_point():
    assert holds(Box.cube("0.1", "0.1", 3).diameter(1), mpf(0))


@pytest.mark.parametrize("points", [[], [[]], [[1.0], [1.0, 2.0]], [[math.nan]], [[INF]], [[0.0]] * 2001])
def test_a_bad_finite_set_is_refused(points):
    with pytest.raises(InputError, match="a finite set"):
        Finite(points)


# ── Membership ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("region", "inside", "outside"),
    [
        (Ball(1, 1, 2), [0.5, -0.5], [0.6, -0.5]),
        (Ball(2, 5, 2), [3.0, 4.0], [3.1, 4.0]),
        (Ball(INF, 1, 2), [1.0, -1.0], [1.1, 0.0]),
        (Sphere(5, 2), [3.0, 4.0], [3.0, 3.9]),
        (Box.cube(0, 1, 2), [0.0, 1.0], [0.5, 1.01]),
        (MinMax(3), [0.0, 0.3, 1.0], [0.1, 0.3, 1.0]),
        (MinMax(3), [0.0, 0.0, 0.0], [0.0, 0.0, 0.5]),
        (MinMax(1), [0.0], [1.0]),
        (Bits(2), [0.0, 1.0], [0.0, 0.5]),
        (OneHot(3), [0.0, 1.0, 0.0], [0.0, 1.0, 1.0]),
        (OneHot(3), [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]),
        (Finite([[1, 2], [3, 4]]), [3.0, 4.0], [3.0, 2.0]),
        (Sparse(3, 2), [1.0, 0.0, 1.0], [1.0, 1.0, 1.0]),
        (Sparse(3, 2), [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]),
        (Rows(2), [1e300, 0.0], [math.nan, 0.0]),
        (Rows(2, (0, 1)), [1.0, 0.0], [1.0, -0.1]),
        (Repeated(Ball(1, 1, 2), 2), [0.5, -0.5, 0.5, -0.5], [0.5, 0.5, 0.5, -0.5]),
        (Repeated(Ball(1, 1, 2), 2), [1.0, 0.0, 1.0, 0.0], [1.0, 0.1, 1.0, 0.1]),
        (Intersection(Ball(2, 1, 2), Ball(1, "1.2", 2)), [0.6, 0.6], [0.7, 0.7]),
        (Everything(2), [1e300, 0.0], [INF, 0.0]),
        (SensitivityBall(2, 1, 2), [1e300, 0.0], [math.nan, 0.0]),
    ],
)
def test_membership(region, inside, outside):
    assert region.contains(np.array(inside))
    assert not region.contains(np.array(outside))


def test_a_coordinate_that_stands_still_has_no_gap():
    # The enclosure of a root has a width, and so has the difference of two such enclosures.
    root, other = sqrt(real(3)), sqrt(real(3))
    assert Block(root, root, 2).same
    assert Block(root, root, 2).gap == 0
    assert not Block(root, other, 2).same  # they may hold two numbers
    assert Block(number("0.3"), number("0.3"), 2).gap == 0
    assert Block(number(2), number(2), 1).same
    assert Block(number(2), number(5), 1).gap == 3
    assert Pair.of([0.3, 0.1], [0.3, 0.2]).blocks[0].gap == 0
    assert Rows(3, ("0.3", 3)).farthest(1).blocks[1].gap == 0
    assert Repeated(Rows(3, ("0.3", 3)), 2).farthest(1).distance(INF) == Rows(3, ("0.3", 3)).diameter(INF)


@pytest.mark.parametrize(
    ("region", "l1", "l2", "linf"),
    [
        (Ball(2, 3, 4), 6, 3, 3),
        (Ball(1, 3, 4), 3, 3, 3),
        (Sphere(3, 4), 6, 3, 3),
        (Box.cube(-2, 1, 9), 18, 6, 2),
        (Intersection(Ball(2, 3, 4), Ball(float("inf"), 1, 4)), 4, 2, 1),
        (Bits(9), 9, 3, 1),
        (MinMax(9), 9, 3, 1),
        (OneHot(9), 1, 1, 1),
        (Sparse(9, 4), 4, 2, 1),
        (Rows(9, (-2, 1)), 18, 6, 2),
        (Finite([[3, 4], [-5, 0]]), 7, 5, 5),
        (Repeated(Ball(2, 3, 1), 4), 12, 6, 3),
        *((region, math.inf, math.inf, math.inf) for region in (Everything(3), Rows(3), SensitivityBall(2, 1, 3))),
        (Categories(3), math.inf, math.inf, math.inf),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_largest_norm_from_above(region, l1, l2, linf):
    for p, expected in ((1, l1), (2, l2), (math.inf, linf)):
        assert expected <= region.largest_norm(p) <= expected * (1 + 1e-11)


@pytest.mark.parametrize(
    "region",
    [Ball(1, 1, 3), Everything(3), SensitivityBall(2, 1, 3), Box.cube(-1, 2, 3)],
    ids=lambda value: type(value).__name__,
)
def test_regions_that_surround_zero(region):
    assert region.surrounds_zero


@pytest.mark.parametrize(
    "region",
    [Sphere(1, 3), Box.cube(0, 1, 3), Box.cube(-1, 0, 3), Bits(3), Rows(3)],
    ids=lambda value: type(value).__name__,
)
def test_regions_that_do_not_surround_zero(region):
    assert not region.surrounds_zero
