import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from dpassay.core.numbers import up
from dpassay.errors import InputError
from dpassay.pipeline.regions import (
    Ball,
    Bits,
    Box,
    Categories,
    Everything,
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
from dpassay.pipeline.stages.base import OutputRegion
from dpassay.pipeline.stages.binary import Binary
from dpassay.pipeline.stages.bounds.clamp import Clamp
from dpassay.pipeline.stages.bounds.round import Round
from dpassay.pipeline.stages.bounds.scaling import Clip, MinMaxScale, Normalise
from dpassay.pipeline.stages.bounds.squash import Squash
from dpassay.pipeline.stages.categories import Bloom, Category, Hash, OneHotEncode
from dpassay.pipeline.stages.dropout import Dropout
from dpassay.pipeline.stages.functions import Encode, Function
from dpassay.pipeline.stages.query import PersonRows, Query
from dpassay.pipeline.stages.repeat import Repeat
from oracles import holds, read
from tiers import repetitions

INF = math.inf
RNG = np.random.default_rng(0)
quick = settings(derandomize=True, deadline=None, max_examples=80)
VECTOR_STAGES = [
    Clip("l1", 1),
    Clip("l2", "0.7"),
    Clip("linf", 2),
    Normalise(),
    MinMaxScale(),
    Squash("tanh"),
    Squash("sigmoid"),
    Clamp("-0.5", "0.75"),
    Clamp(-2, 3),
    Round(),
]
vectors = st.integers(1, 5).flatmap(
    lambda dim: st.lists(
        st.lists(
            st.one_of(st.floats(-5, 5), st.sampled_from([0.0, -0.0, 1.0, 0.5, -2.0, 1e12, -1e-12])),
            min_size=dim,
            max_size=dim,
        ),
        min_size=1,
        max_size=6,
    )
)


def outputs_lie_in(region, outputs):
    """Each output is in the region, or is the zero vector that normalising leaves as it is."""
    for row in outputs:
        if isinstance(region, Sphere) and not row.any():
            continue
        assert region.contains(row), (region, row)


# ── Each stage keeps its word ───────────────────────────────────────────────────────────────────


@quick
@given(st.sampled_from(VECTOR_STAGES), vectors)
def test_a_stage_puts_out_what_it_says(stage, rows):
    batch = np.array(rows)
    reach = stage.output_region(OutputRegion(Everything(batch.shape[1])))
    outputs_lie_in(reach.region, stage.run(batch, RNG))
    assert reach.region.dim == batch.shape[1]


@settings(derandomize=True, deadline=None, max_examples=repetitions(200, 400))
@given(st.lists(st.sampled_from(VECTOR_STAGES), min_size=2, max_size=4), vectors)
def test_a_chain_of_stages_puts_out_what_it_says(stages, rows):
    batch = np.array(rows)
    reach = OutputRegion(Everything(batch.shape[1]))
    for stage in stages:
        reach, batch = stage.output_region(reach), stage.run(batch, RNG)
    outputs_lie_in(reach.region, batch)
    for one, other in itertools.combinations(batch, 2):
        for q in (1, 2, INF):
            assert np.linalg.norm(one - other, ord=q) <= up(reach.region.diameter(q)) * (1 + 1e-9)


@settings(derandomize=True, deadline=None, max_examples=repetitions(200, 400))
@given(
    st.sampled_from(["l1", "l2", "linf"]),
    st.floats(0.05, 3).map(lambda d: round(d, 3)),
    st.lists(st.sampled_from(VECTOR_STAGES), min_size=1, max_size=3),
    st.integers(1, 4),
    st.integers(0, 2**32 - 1),
)
def test_neighbours_answers_stay_as_close_as_a_chain_says(norm, distance, stages, dim, seed):
    rng = np.random.default_rng(seed)
    p = {"l1": 1, "l2": 2, "linf": INF}[norm]
    first = rng.choice([0.1, 1.0, 3.0]) * rng.normal(size=(60, dim))
    gap = rng.normal(size=(60, dim)) * (rng.random((60, dim)) < 0.6)
    size = np.linalg.norm(gap, ord=p, axis=1, keepdims=True)
    second = first + distance * gap / np.where(size == 0, 1.0, size)
    reach = Query(norm, distance).output_region(OutputRegion(Everything(dim)))
    for stage in stages:
        reach, first, second = stage.output_region(reach), stage.run(first, RNG), stage.run(second, RNG)
    for q in (1, 2, INF):
        assert np.linalg.norm(first - second, ord=q, axis=1).max() <= up(reach.region.diameter(q)) * (1 + 1e-9)


def test_rounding_after_clipping_a_query_does_not_hide_the_step():
    # 0.45 and 0.55 are neighbours, and rounding takes them to 0 and 1.
    reach = OutputRegion(Everything(1))
    for stage in (Query("l1", "0.1"), Clip("l1", 1), Round()):
        reach = stage.output_region(reach)
    outputs = Round().run(Clip("l1", 1).run(np.array([[0.45], [0.55]]), RNG), RNG)
    assert outputs.tolist() == [[0.0], [1.0]]
    assert up(reach.region.diameter(1)) >= 1


REGIONS = [
    Ball(1, 1, 3),
    Ball(2, "0.5", 3),
    Ball(INF, 2, 3),
    Sphere(2, 3),
    Box.cube(-1, 2, 3),
    Box.cube("0.5", "0.75", 3),
    MinMax(3),
    Bits(3),
    OneHot(3),
    Finite([[0, 0, 0], [1, -2, 3], [0.5, 0.5, 0.5]]),
    Intersection(Ball(2, 1, 3), Ball(INF, "0.6", 3)),
]


def points_of(region, rng):
    """Vectors of a region, its farthest pairs among them."""
    pairs = [region.farthest(q) for q in (1, 2, INF)]
    named = [v for pair in pairs for v in (pair.first, pair.second)]
    if isinstance(region, Finite):
        return np.array(region.points)
    if isinstance(region, Box):
        low, high = region.farthest(1).second, region.farthest(1).first
        return np.concatenate([named, low + (high - low) * rng.random((40, 3))])
    if isinstance(region, Bits):
        return np.concatenate([named, rng.integers(0, 2, (40, 3)).astype(float)])
    if isinstance(region, OneHot):
        return np.eye(3)
    noise = rng.normal(size=(40, 3))
    if isinstance(region, MinMax):
        return np.concatenate([named, MinMaxScale().run(noise, rng)])
    if isinstance(region, Sphere):
        return np.concatenate([named, 2 * noise / np.linalg.norm(noise, axis=1, keepdims=True)])
    return np.concatenate([named, [v for v in noise * rng.random((40, 1)) if region.contains(v)]])


@pytest.mark.parametrize("region", REGIONS, ids=[f"{type(r).__name__}{i}" for i, r in enumerate(REGIONS)])
@pytest.mark.parametrize("stage", VECTOR_STAGES, ids=str)
def test_a_stage_keeps_its_word_on_every_region(stage, region):
    points = points_of(region, np.random.default_rng(1))
    assert all(region.contains(point) for point in points)
    outputs_lie_in(stage.output_region(OutputRegion(region)).region, stage.run(points, RNG))


# ── Where a reach is exact, its farthest pair really comes out ──────────────────────────────────


@pytest.mark.parametrize("dim", [1, 2, 7])
@pytest.mark.parametrize("q", [1, 2, INF])
@pytest.mark.parametrize("stage", [s for s in VECTOR_STAGES if s.name in ("clip", "normalise", "minmax")], ids=str)
def test_the_farthest_pair_is_a_fixed_point(stage, q, dim):
    reach = stage.output_region(OutputRegion(Everything(dim)))
    assert reach.exact
    pair = reach.region.farthest(q)
    for vector in (pair.first, pair.second):
        np.testing.assert_allclose(stage.run(vector[None, :], RNG)[0], vector, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("kind", ["tanh", "sigmoid"])
def test_a_squashed_pair_comes_as_near_to_the_corners_as_one_likes(kind):
    reach = Squash(kind).output_region(OutputRegion(Everything(3)))
    assert reach.exact
    pair = reach.region.farthest(1)
    np.testing.assert_array_equal(Squash(kind).run(np.full((1, 3), 800.0), RNG)[0], pair.first)
    np.testing.assert_allclose(Squash(kind).run(np.full((1, 3), -800.0), RNG)[0], pair.second, atol=1e-300)


@pytest.mark.parametrize("integer", [0, 2])
def test_all_bit_strings_come_out(integer):
    stage = Binary(integer, 1)
    reach = stage.output_region(OutputRegion(Everything(1)))
    assert reach.exact
    grid = np.arange(2 ** (integer + 1)) / 2
    outputs = stage.run(np.concatenate([grid, -grid])[:, None], RNG)
    assert {tuple(row) for row in outputs} == set(itertools.product((0.0, 1.0), repeat=stage.length))


@pytest.mark.parametrize(
    ("stage", "region"),
    [
        (Clip("l2", 1), Box.cube("0.5", 2, 2)),  # (1, 0) cannot come out
        (Clip("l1", 1), Sphere(3, 2)),  # nothing but the l1 sphere comes out, though the ball is stated
        (Normalise(), Box.cube(1, 2, 2)),
        (Normalise(), Bits(2)),
        (Normalise(), Finite([[1, 0], [0, 1]])),
        (MinMaxScale(), Box(((0, 1, 1), (10, 11, 1)))),  # the second is always larger: only (0, 1) comes out
        (MinMaxScale(), Box.cube(1, 1, 2)),  # constant: only (0, 0) comes out
        (MinMaxScale(), Finite([[1, 0], [2, 0]])),
        (MinMaxScale(), OneHot(3)),
        (Squash("tanh"), Finite([[1, 0], [2, 0]])),
        (Binary(2, 2), Box.cube(0, 1, 2)),
        (Binary(2, 2), SensitivityBall(1, 1, 2)),
        (Round(), Ball(2, 3, 2)),
        (Round(), SensitivityBall(1, 1, 2)),
        (Clip("l1", 1), SensitivityBall(1, 1, 2)),
        (Clamp(0, 1), Ball(2, 2, 2)),  # the corner (1, 1) comes out, but not of every ball: (1, 1) needs radius √2
        (Clamp(0, 1), SensitivityBall(1, 3, 2)),
    ],
    ids=lambda value: str(value) if not hasattr(value, "diameter") else type(value).__name__,
)
def test_an_outer_bound_does_not_call_itself_exact(stage, region):
    reach = stage.output_region(OutputRegion(region))
    pair = reach.region.farthest(1)
    outputs = stage.run(points_of_plane(region), RNG)
    found = any(np.allclose(pair.first, row) for row in outputs) and any(
        np.allclose(pair.second, row) for row in outputs
    )
    assert not (reach.exact and not found)


def points_of_plane(region):
    """A fine grid of the plane (or of space), as far as it lies in the region."""
    if isinstance(region, Finite):
        return np.array(region.points)
    axis = np.linspace(-3, 12, 31) if isinstance(region, Box) else np.linspace(-3, 3, 25)
    grid = np.array(list(itertools.product(axis, repeat=region.dim)))
    if isinstance(region, Sphere):
        angles = np.linspace(0, 2 * np.pi, 360)
        grid = 3 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return np.array([v for v in grid if region.contains(v)])


@pytest.mark.parametrize("stage", [s for s in VECTOR_STAGES if s.name != "round"], ids=str)
def test_what_was_not_exact_does_not_become_so(stage):
    for region in (Everything(3), Ball(2, "0.1", 3), Box.cube(-9, 9, 3)):
        assert not stage.output_region(OutputRegion(region, exact=False)).exact


# ── Clip ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("norm", "p"), [("l1", 1), ("l2", 2), ("linf", INF)])
def test_clipping_scales_only_what_is_too_long(norm, p):
    batch = np.random.default_rng(2).normal(size=(200, 4)) * np.geomspace(1e-3, 1e3, 200)[:, None]
    clipped = Clip(norm, 2).run(batch, RNG)
    norms = np.linalg.norm(batch, ord=p, axis=1)
    short = norms <= 2
    assert short.any()
    assert not short.all()
    np.testing.assert_array_equal(clipped[short], batch[short])
    np.testing.assert_allclose(clipped[~short], batch[~short] * (2 / norms[~short, None]), rtol=1e-14)


def test_the_zero_vector_is_not_clipped():
    assert Clip("l2", 1).run(np.zeros((1, 3)), RNG).tolist() == [[0.0, 0.0, 0.0]]


def test_clipping_a_ball_again():
    assert Clip("l2", 3).output_region(OutputRegion(Ball(2, 1, 4))).region == Ball(2, 1, 4)
    assert Clip("l2", 1).output_region(OutputRegion(Ball(2, 3, 4))).region == Ball(2, 1, 4)
    # The l1 ball lies in the l2 ball, and the l2 ball of radius 1/2 in the l1 ball of radius 1 (√4 · 1/2 = 1).
    assert Clip("l2", 1).output_region(OutputRegion(Ball(1, 1, 4))).region == Ball(1, 1, 4)
    assert Clip("l1", 1).output_region(OutputRegion(Ball(2, "0.5", 4))).region == Ball(2, "0.5", 4)
    assert isinstance(Clip("l1", 1).output_region(OutputRegion(Ball(2, "0.9", 4))).region, Intersection)


def test_clipping_a_finite_set_leaves_its_ball():
    reach = Clip("l2", 1).output_region(OutputRegion(Finite([[3, 4], [0.1, 0]])))
    assert not reach.exact  # clipped points are known to doubles only
    assert reach.region == Ball(2, 1, 2)
    inside = OutputRegion(Finite([[0.3, 0.4], [0.1, 0]]))
    assert Clip("l2", 1).output_region(inside) == inside


def test_l2_clipping_does_not_increase_a_querys_distance():
    reach = Clip("l2", 1).output_region(OutputRegion(SensitivityBall(2, "0.3", 5)))
    assert reach.exact
    with mp.workdps(60):
        assert holds(reach.region.diameter(2), mpf(3) / 10)
    # Where neighbours are farther apart than the ball is wide, the ball is all that remains.
    reach = Clip("l2", 1).output_region(OutputRegion(SensitivityBall(2, 3, 5)))
    assert reach.region.diameter(2) == 2


@pytest.mark.parametrize("norm", ["l0", "L2", "", None])
def test_an_unknown_norm_is_refused(norm):
    for make in (lambda n: Clip(n, 1), lambda n: Query(n, 1)):
        with pytest.raises(InputError, match="l1, l2, linf"):
            make(norm)


@pytest.mark.parametrize("radius", [0, -1, math.nan, INF, "-2", None])
def test_a_bad_clipping_constant_is_refused(radius):
    with pytest.raises(InputError, match=r"clipping constant|expected a number"):
        Clip("l2", radius)


# ── Normalise, min-max, squash, round ───────────────────────────────────────────────────────────


def test_normalising():
    batch = np.random.default_rng(3).normal(size=(50, 4))
    np.testing.assert_allclose(np.linalg.norm(Normalise().run(batch, RNG), axis=1), 1, rtol=1e-14)
    assert Normalise().run(np.zeros((1, 3)), RNG).tolist() == [[0.0, 0.0, 0.0]]
    with pytest.raises(InputError, match="only l2"):
        Normalise("l1")


@pytest.mark.parametrize("row", [[1e170, 1e170], [1e-170, 1e-170], [2.7e-162, 1.5e-162], [5e-324, 0.0]])
def test_normalising_vectors_whose_squares_leave_the_doubles(row):
    output = Normalise().run(np.array([row]), RNG)[0]
    assert np.linalg.norm(output) <= 1 + 1e-12  # a longer output would be farther away than the region says
    assert Sphere(1, 2).contains(output) or not output.any()


def test_clipping_a_vector_whose_square_leaves_the_doubles():
    outputs = Clip("l2", 1).run(np.array([[1e200, 0.0], [-1e200, 1e-200]]), RNG)
    assert all(Ball(2, 1, 2).contains(row) for row in outputs)


def test_constant_vectors_become_zero():
    batch = np.array([[0.1, 0.1, 0.1], [-7.0, -7.0, -7.0], [0.0, 0.0, 0.0], [1e300, 1e300, 1e300]])
    assert not MinMaxScale().run(batch, RNG).any()


def test_min_max_in_one_dimension_is_zero():
    assert not MinMaxScale().run(np.random.default_rng(4).normal(size=(9, 1)), RNG).any()
    assert MinMaxScale().output_region(OutputRegion(Everything(1))).region.diameter(1) == 0


def test_min_max_scaling_keeps_order_and_ratios():
    scaled = MinMaxScale().run(np.array([[-1.0, 3.0, 0.0, 1.0]]), RNG)[0]
    np.testing.assert_allclose(scaled, [0, 1, 0.25, 0.5], rtol=1e-15)


def test_dpnr_reaches_every_corner():
    reach = MinMaxScale().output_region(OutputRegion(Everything(768)))
    assert reach.exact
    assert reach.region.diameter(1) == 768  # FACTS §5: Δ₁ = k


def test_squashing_against_mpmath():
    points = np.linspace(-30, 30, 61)
    with mp.workdps(30):
        tanh = [float(mp.tanh(read(x))) for x in points.tolist()]
        sigmoid = [float(1 / (1 + mp.exp(-read(x)))) for x in points.tolist()]
    np.testing.assert_allclose(Squash("tanh").run(points[None, :], RNG)[0], tanh, rtol=1e-14)
    np.testing.assert_allclose(Squash("sigmoid").run(points[None, :], RNG)[0], sigmoid, rtol=1e-14)


@pytest.mark.parametrize("radius", ["0.5", "3", Fraction(1, 3), Fraction(0.1), Fraction(2, 7)])
def test_squashing_a_cube_gives_exactly_its_image(radius):
    with mp.workdps(60):
        limit = read(radius)
        for before in (
            Ball(INF, radius, 2),
            Box.cube(-radius if isinstance(radius, Fraction) else f"-{radius}", radius, 2),
        ):
            reach = Squash("tanh").output_region(OutputRegion(before))
            assert reach.exact
            assert holds(reach.region.diameter(INF), 2 * mp.tanh(limit))
            reach = Squash("sigmoid").output_region(OutputRegion(before))
            assert holds(reach.region.diameter(INF), mp.tanh(limit / 2))


def test_squashing_a_box_far_out():
    region = Squash("sigmoid").output_region(OutputRegion(Box.cube(500, 1000, 2))).region
    with mp.workdps(500):
        truth = 1 / (1 + mp.exp(mpf(-1000))) - 1 / (1 + mp.exp(mpf(-500)))
        assert holds(region.diameter(INF), truth)


def test_an_unknown_squash_is_refused():
    with pytest.raises(InputError, match="tanh and sigmoid"):
        Squash("relu")


def test_rounding_is_to_the_nearest_whole_number():
    assert Round().run(np.array([[-1.5001, 0.49, 2.51]]), RNG).tolist() == [[-2.0, 0.0, 3.0]]


def test_rounding_leaves_bits_and_categories():
    for region in (Bits(3), OneHot(3), Categories(4)):
        assert Round().output_region(OutputRegion(region)).region == region


# ── Binary ──────────────────────────────────────────────────────────────────────────────────────


def written_in_bits(value, integer, fraction):
    """Sign, integer bits and fraction bits of a double, by whole-number arithmetic and text."""
    scaled = abs(Fraction(value)) * 2**fraction
    magnitude = min(scaled.numerator // scaled.denominator, 2 ** (integer + fraction) - 1)
    sign = "1" if math.copysign(1, value) < 0 else "0"
    body = format(magnitude, "b").zfill(integer + fraction) if integer + fraction else ""
    return [float(bit) for bit in sign + body]


@settings(derandomize=True, deadline=None, max_examples=300)
@given(
    st.integers(0, 30),
    st.integers(0, 30),
    st.lists(st.one_of(st.floats(-1e12, 1e12), st.floats(-4, 4), st.sampled_from([0.0, -0.0, -0.3])), min_size=1),
)
def test_binary_against_an_independent_writing(integer, fraction, values):
    bits = Binary(integer, fraction).run(np.array([values]), RNG)[0]
    assert bits.tolist() == [bit for v in values for bit in written_in_bits(v, integer, fraction)]


@pytest.mark.parametrize(("integer", "fraction"), [(4, 5), (20, 20), (26, 27), (27, 27), (30, 30)])
def test_what_is_too_large_is_written_as_all_ones(integer, fraction):
    for value in (1e18, 1e300):
        assert Binary(integer, fraction).run(np.array([[value]]), RNG)[0].tolist() == [0.0] + [1.0] * (
            integer + fraction
        )


def test_small_negative_numbers_keep_their_sign():
    assert Binary(1, 1).run(np.array([[-0.3, -0.0, 0.3]]), RNG)[0].tolist() == [1, 0, 0, 1, 0, 0, 0, 0, 0]


def test_binary_on_a_batch_gives_one_string_a_row():
    outputs = Binary(2, 2).run(np.zeros((7, 3)), RNG)
    assert outputs.shape == (7, 15)
    assert Binary(2, 2).output_region(OutputRegion(Everything(3))).region == Bits(15)


@pytest.mark.parametrize("bits", [-1, 31, 2.5, math.nan, INF, None, "two"])
def test_a_bad_number_of_bits_is_refused(bits):
    for make in (lambda b: Binary(b, 1), lambda b: Binary(1, b)):
        with pytest.raises(InputError, match="whole number of"):
            make(bits)


# ── Categories, queries, words, functions ───────────────────────────────────────────────────────


def test_categories_and_one_hot_vectors():
    batch = np.arange(5.0)[:, None]
    assert Category(5).run(batch, RNG) is batch
    np.testing.assert_array_equal(OneHotEncode(5).run(batch, RNG), np.eye(5))
    np.testing.assert_array_equal(OneHotEncode(5).run(np.eye(5), RNG), np.eye(5))
    outputs_lie_in(OneHotEncode(5).output_region(OutputRegion(Everything(1))).region, OneHotEncode(5).run(batch, RNG))
    outputs_lie_in(Category(5).output_region(OutputRegion(Everything(1))).region, batch)
    assert OneHotEncode(1).run(np.zeros((2, 1)), RNG).tolist() == [[1.0], [1.0]]


@pytest.mark.parametrize("stage", [Category(3), OneHotEncode(3)])
@pytest.mark.parametrize("name", [3.0, -1.0, 0.5, math.nan])
def test_an_unknown_category_is_refused(stage, name):
    with pytest.raises(InputError, match="0 to 2"):
        stage.run(np.array([[name]]), RNG)


@pytest.mark.parametrize("row", [[0.5, 0.5, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 0.0], [7.0, -6.0, 0.0]])
def test_a_vector_that_is_not_one_hot_does_not_pass_as_one(row):
    with pytest.raises(InputError):
        OneHotEncode(3).run(np.array([row]), RNG)


@pytest.mark.parametrize("size", [0, -1, 1.5, math.nan])
def test_a_bad_number_of_categories_is_refused(size):
    for make in (Category, OneHotEncode):
        with pytest.raises(InputError, match="whole number"):
            make(size)


def test_a_query_says_how_far_apart_answers_are():
    assert Query("l1", "0.5").output_region(OutputRegion(Everything(4))).region == SensitivityBall(1, "0.5", 4)
    batch = np.ones((2, 4))
    assert Query("l1", "0.5").run(batch, RNG) is batch
    with pytest.raises(InputError, match="sensitivity must be positive"):
        Query("l1", 0)


def test_dropout_without_and_with_almost_certain_dropping():
    texts = ["the quick brown fox", ""]
    assert Dropout(0).run(texts, RNG) == texts
    left = Dropout("0.999999999999").run(["word " * 50], np.random.default_rng(5))
    assert left == [""]  # a survivor among 50 words has probability 5e-11


def test_dropout_keeps_the_order_of_words():
    words = [str(i) for i in range(200)]
    left = Dropout("0.5").run([" ".join(words)], np.random.default_rng(6))[0].split()
    assert 0 < len(left) < 200
    assert [int(w) for w in left] == sorted(int(w) for w in left)


@pytest.mark.parametrize("mu", [-0.1, 1, 1.5, math.nan])
def test_a_bad_dropout_is_refused(mu):
    with pytest.raises(InputError, match=r"dropout needs a probability|expected a number"):
        Dropout(mu)


def test_dropout_refuses_vectors():
    with pytest.raises(InputError, match="words"):
        Dropout("0.5").run(np.zeros((2, 3)), RNG)


def test_encode_is_a_name_until_it_has_a_function():
    assert Encode(3).output_region(OutputRegion(Everything(3))) == OutputRegion(Everything(3))
    assert Encode(2, lambda texts: [[len(t), 0] for t in texts]).run(["a", "bc"], RNG).tolist() == [[1, 0], [2, 0]]
    with pytest.raises(InputError, match="give it a function"):
        Encode(2).run(["text"], RNG)
    batch = np.zeros((1, 2))
    assert Encode(2).run(batch, RNG) is batch


def test_a_function_may_put_out_anything():
    assert Function().output_region(OutputRegion(Ball(2, 1, 3))).region == Everything(3)
    assert Function(lambda b: b + 1).run(np.zeros((1, 1)), RNG).tolist() == [[1.0]]
    batch = np.zeros((1, 1))
    assert Function().run(batch, RNG) is batch


# ── What survives of an output ──────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("stage", [s for s in VECTOR_STAGES if s.keeps in ("all", "signs")], ids=str)
def test_a_stage_that_keeps_signs_or_all_keeps_them(stage):
    batch = np.random.default_rng(7).normal(size=(100, 3))
    outputs = stage.run(batch, RNG)
    middle = 0.5 if str(stage) == "squash(sigmoid)" else 0.0
    np.testing.assert_array_equal(np.sign(outputs - middle), np.sign(batch))


def test_a_stage_that_keeps_all_can_be_undone():
    batch = np.random.default_rng(8).normal(size=(100, 3))
    np.testing.assert_allclose(np.arctanh(Squash("tanh").run(batch, RNG)), batch, rtol=1e-9)
    squashed = Squash("sigmoid").run(batch, RNG)
    np.testing.assert_allclose(np.log(squashed / (1 - squashed)), batch, rtol=1e-9)
    assert Squash("tanh").keeps == "all"


def test_binary_keeps_signs():
    batch = np.random.default_rng(9).normal(size=(100, 3))
    bits = Binary(2, 3).run(batch, RNG).reshape(100, 3, 6)
    np.testing.assert_array_equal(bits[..., 0] == 1, batch < 0)
    assert Binary(2, 3).keeps == "signs"


def test_rounding_keeps_what_is_far_out():
    assert Round().keeps == "tails"
    assert (Round().run(np.array([[10.4, -99.6]]), RNG) >= [10, -100]).all()


def test_stages_that_lose_signs_and_tails_keep_nothing():
    # −1, 0, 1 and 0, 1, 2 become the same.
    assert MinMaxScale().keeps == "nothing"
    one, other = MinMaxScale().run(np.array([[-1.0, 0.0, 1.0], [0.0, 1.0, 2.0]]), RNG)
    assert one.tolist() == other.tolist()


@pytest.mark.parametrize(
    ("stage", "text"),
    [
        (Clip("l2", "0.1"), "clip(l2, 0.1)"),
        (Normalise(), "normalise(l2)"),
        (MinMaxScale(), "minmax"),
        (Clamp("-0.5", 1), "clamp(-0.5, 1)"),
        (Repeat(3), "repeat(3)"),
        (PersonRows(), "rows"),
        (Hash(4), "hash(4)"),
        (Bloom(32, 2), "bloom(32, 2)"),
        (Squash("tanh"), "squash(tanh)"),
        (Category(3), "category(3)"),
        (OneHotEncode(3), "onehot(3)"),
        (Binary(4, 5), "binary(4, 5)"),
        (Query("l1", 2), "query(l1, 2)"),
        (Dropout("0.5"), "dropout(0.5)"),
        (Round(), "round"),
        (Encode(3), "encode"),
        (Function(), "decode"),
    ],
)
def test_stages_print_as_they_are_written(stage, text):
    assert str(stage) == text
    assert text.startswith(stage.name)


# ── Clamp, rows, repeat, hashes ─────────────────────────────────────────────────────────────────


def test_clamping_moves_to_the_nearest_value():
    rows = np.array([[-7.0, -0.5, 0.2, 1.0, 9.0]])
    assert Clamp("-0.5", 1).run(rows, RNG).tolist() == [[-0.5, -0.5, 0.2, 1.0, 1.0]]
    for limits in ((1, 1), (2, 1)):
        with pytest.raises(InputError, match="a lower limit below the upper one"):
            Clamp(*limits)


def test_clamping_regions():
    assert Clamp(0, 1).output_region(OutputRegion(Everything(3))) == OutputRegion(Box.cube(0, 1, 3))
    assert Clamp(-2, 2).output_region(OutputRegion(Ball(2, 1, 3))) == OutputRegion(Ball(2, 1, 3))  # nothing moves
    assert not Clamp(0, 2).output_region(OutputRegion(Ball(2, 1, 3))).exact
    answers = Clamp(0, 1).output_region(OutputRegion(SensitivityBall(1, 1, 3)))
    assert (answers.region, answers.exact) == (SensitivityBall(1, 1, 3), False)  # not farther apart, perhaps nearer


ROW_STAGES = [Clamp(0, 1), Clamp(-3, 5), Squash("tanh"), Squash("sigmoid"), Round(), Clip("l1", 1), MinMaxScale()]


@settings(derandomize=True, deadline=None, max_examples=repetitions(150, 300))
@given(st.lists(st.sampled_from(ROW_STAGES), max_size=3), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_rows_stay_as_close_as_a_chain_says(stages, dim, seed):
    rng = np.random.default_rng(seed)
    first = rng.normal(size=(60, dim)) * rng.choice([0.3, 2.0, 20.0])
    second = first.copy()
    second[np.arange(60), rng.integers(0, dim, 60)] = rng.normal(size=60) * 20
    reach = PersonRows().output_region(OutputRegion(Everything(dim)))
    for stage in stages:
        reach, first, second = stage.output_region(reach), stage.run(first, RNG), stage.run(second, RNG)
    for q in (1, 2, INF):
        assert np.linalg.norm(first - second, ord=q, axis=1).max() <= up(reach.region.diameter(q)) * (1 + 1e-9)
    if isinstance(reach.region, Rows):
        assert ((first != second).sum(axis=1) <= 1).all()
        outputs_lie_in(reach.region, np.concatenate([first, second]))


def test_rows_are_not_vectors_around_zero():
    """Rows from 0 to 1 are 1 apart, and so is no pair ±1/2 of theirs: squashed, they are tanh 1 apart, not 2 tanh ½."""
    clamped = Clamp(0, 1).output_region(PersonRows().output_region(OutputRegion(Everything(3))))
    assert clamped == OutputRegion(Rows(3, (0, 1)))
    squashed = Squash("tanh").output_region(clamped)
    assert squashed.exact
    with mp.workdps(60):
        assert holds(squashed.region.diameter(1), mp.tanh(1))
    for stage in (Normalise(), Clip("l1", "0.3"), Clip("l2", "0.3"), Round(), Binary(1, 1)):
        assert not stage.output_region(clamped).exact
    assert Squash("sigmoid").output_region(PersonRows().output_region(OutputRegion(Everything(2)))).region == Rows(
        2, (0, 1)
    )
    assert Clamp("0.5", 3).output_region(clamped).region == Rows(3, ("0.5", 1))


def test_repeating():
    assert Repeat(3).run(np.array([[1.0, 2.0], [5.0, 6.0]]), RNG).tolist() == [[1, 2] * 3, [5, 6] * 3]
    assert Repeat(3).output_region(OutputRegion(Ball(2, 1, 2))) == OutputRegion(Repeated(Ball(2, 1, 2), 3))
    assert Repeat(4).output_region(Repeat(3).output_region(OutputRegion(Ball(2, 1, 2)))) == OutputRegion(
        Repeated(Ball(2, 1, 2), 12)
    )
    assert not Repeat(2).output_region(OutputRegion(Everything(2), exact=False)).exact
    for stage in (Squash("tanh"), Normalise(), MinMaxScale(), Clip("l2", "0.1")):
        assert not stage.output_region(
            Repeat(2).output_region(OutputRegion(Everything(2)))
        ).exact  # copies cannot differ
    with pytest.raises(InputError, match="cannot be repeated"):
        Repeat(2).output_region(OutputRegion(Categories(3)))
    for times in (0, 1.5, -1):
        with pytest.raises(InputError, match="times must be a whole number"):
            Repeat(times)


@pytest.mark.parametrize(("size", "hashes"), [(1, 1), (8, 2), (5, 4), (64, 3)])
def test_hashes_stay_in_range_and_depend_on_the_value_alone(size, hashes):
    values = np.arange(2000.0)[:, None]
    named = Hash(size).run(values, RNG)
    assert named.shape == (2000, 1)
    assert set(named.ravel()) == set(range(size))  # each is reached; the worst of 64 is missed with probability 1e-12
    bits = Bloom(size, hashes).run(values, RNG)
    region = Bloom(size, hashes).output_region(OutputRegion(Everything(1))).region
    assert region == Sparse(size, hashes)
    outputs_lie_in(region, bits)
    assert (bits.sum(axis=1) >= 1).all()
    np.testing.assert_array_equal(Bloom(size, hashes).run(values, np.random.default_rng(5)), bits)


def splitmix(value, salt):
    """The finaliser of splitmix64, in whole numbers."""
    z = (value + 0x9E3779B97F4A7C15 * (salt + 1)) % 2**64
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return z ^ (z >> 31)


def test_hashes_against_an_independent_writing():
    values = [0, 1, 5, 12345, 2**40, 2**53 - 1]
    batch = np.array(values, dtype=float)[:, None]
    assert Hash(7).run(batch, RNG).ravel().tolist() == [splitmix(v, 0) % 7 for v in values]
    for row, value in zip(Bloom(16, 3).run(batch, RNG), values, strict=True):
        assert set(np.flatnonzero(row)) == {splitmix(value, salt) % 16 for salt in range(3)}


def test_of_few_values_it_is_not_known_where_they_are_hashed_to():
    assert Hash(4).output_region(OutputRegion(Everything(1))) == OutputRegion(Categories(4))
    assert not Hash(4).output_region(OutputRegion(Categories(9))).exact
    assert not Bloom(8, 2).output_region(OutputRegion(Categories(9))).exact


@pytest.mark.parametrize("row", [[0.5], [-1.0], [math.nan], [math.inf], [1.0, 2.0]])
@pytest.mark.parametrize("stage", [Hash(4), Bloom(8, 2)], ids=str)
def test_what_is_no_name_is_not_hashed(stage, row):
    with pytest.raises(InputError, match="takes one whole number from 0"):
        stage.run(np.array([row]), RNG)


@pytest.mark.parametrize(
    ("stage", "before", "exact"),
    [
        (Category(3), OutputRegion(Everything(1)), True),
        (Category(3), OutputRegion(Categories(3)), True),
        (Category(3), OutputRegion(Categories(2)), False),
        (Category(3), OutputRegion(Ball(1, 1, 1)), False),
        (OneHotEncode(3), OutputRegion(Everything(3)), True),
        (OneHotEncode(3), OutputRegion(OneHot(3)), True),
        (OneHotEncode(3), OutputRegion(Categories(3)), True),
        (OneHotEncode(3), OutputRegion(Categories(4)), False),
        (OneHotEncode(3), OutputRegion(Ball(1, 1, 3)), False),
    ],
    ids=str,
)
def test_all_names_come_of_all_values_only(stage, before, exact):
    assert stage.output_region(before).exact is exact


@pytest.mark.parametrize("region", [MinMax(3), Bits(3), OneHot(3), Sparse(3, 2)], ids=str)
def test_clamping_leaves_what_lies_between_the_limits(region):
    assert Clamp(0, 1).output_region(OutputRegion(region)) == OutputRegion(region)
    assert Clamp("-0.5", 7).output_region(OutputRegion(region)) == OutputRegion(region)
    assert Clamp(0, "0.9").output_region(OutputRegion(region)) == OutputRegion(Box.cube(0, "0.9", 3), exact=False)
    assert not Clamp("0.1", 1).output_region(OutputRegion(region)).exact
