"""Data sets that differ in one record: sums of vectors, moved by one vector, and what has no such meaning."""

import math

import numpy as np
import pytest

from dpassay import check
from dpassay.core.neighbours import Neighbours
from dpassay.core.numbers import INFINITY, down, number, up
from dpassay.errors import InputError
from dpassay.exact.analysis import analyse
from dpassay.exact.dataflow.record_sums import with_record_added
from dpassay.exact.profiles.profile import PrivacyProfile
from dpassay.pipeline.parser import parse
from dpassay.pipeline.regions import Bits, Box
from dpassay.pipeline.stages.base import OutputRegion

ADDED, REPLACED = "add-remove-record", "replace-record"


def profile(text: str, dim: int, kind: str) -> PrivacyProfile:
    return analyse(parse(text, dim), Neighbours(kind))


# How far one record moves the sum in l1, by hand: the noise has scale 1, so this is ε itself.
MOVES = [
    ("clip(l1, 3)", 4, 3, 6),
    ("clip(l2, 3)", 4, 6, 12),
    ("clip(linf, 3)", 4, 12, 24),
    ("normalise", 4, 2, 4),
    ("normalise", 1, 1, 2),
    ("clamp(2, 5)", 3, 15, 9),
    ("clamp(-5, 2)", 3, 15, 21),
    ("clamp(-2, 5)", 3, 15, 21),
    ("clamp(-1, 1)", 2, 2, 4),
    ("squash(sigmoid)", 3, 3, 3),
    ("onehot(4)", 1, 1, 2),
    ("onehot(1)", 1, 1, 0),
    ("binary(1, 1)", 2, 6, 6),
    ("clip(l1, 3) | repeat(5)", 4, 15, 30),
    ("clip(l2, 1) | clip(linf, 0.4)", 4, 1.6, 3.2),
]


@pytest.mark.parametrize(("text", "dim", "added", "replaced"), MOVES)
def test_a_sum_moves_by_one_vector_or_by_the_difference_of_two(
    text: str, dim: int, added: float, replaced: float
) -> None:
    for kind, truth in ((ADDED, added), (REPLACED, replaced)):
        found = profile(f"{text} | laplace(1)", dim, kind)
        assert down(found.pure) == pytest.approx(truth, rel=1e-12, abs=0)
        assert up(found.pure) == pytest.approx(truth, rel=1e-12, abs=0)


def test_a_histogram_at_positive_delta() -> None:
    # One count moves by 1: δ(ε) = 1 − e^((ε − 1)/2).
    found = profile("onehot(9) | laplace(1)", 1, ADDED).delta(number("0.25"))
    truth = -math.expm1(-0.375)
    assert down(found) == pytest.approx(truth, rel=1e-12)
    assert up(found) == pytest.approx(truth, rel=1e-12)


@pytest.mark.parametrize("kind", [ADDED, REPLACED])
@pytest.mark.parametrize(
    ("text", "dim", "advice"),
    [
        ("clip(linf, 1) | exponential(1)", 2, r"query\(linf, 1\) \| exponential\(1\)"),
        ("clip(linf, 1) | exponential(0.5) | decode", 10, r"query\(linf, 1\) \| exponential\(0.5\)"),
        ("onehot(4) | flip(0.75)", 1, "local DP: state neighbours='any'"),
        ("category(4) | flip(0.75)", 1, "local DP: state neighbours='any'"),
        ("binary(1, 1) | bits(0.9, 0.8, 0.1)", 1, "local DP: state neighbours='any'"),
        ("category(4) | leak(0.5)", 1, r"cannot be summed. Put onehot\(k\)"),
        ("category(4)", 1, r"cannot be summed. Put onehot\(k\)"),
    ],
)
def test_what_is_no_noise_on_a_sum_is_refused(text: str, dim: int, advice: str, kind: str) -> None:
    with pytest.raises(InputError, match=rf"{kind} means that the records' vectors are summed.*{advice}"):
        profile(text, dim, kind)


@pytest.mark.parametrize("kind", ["query", ADDED, REPLACED])
def test_a_query_states_the_distance_itself(kind: str) -> None:
    assert up(profile("query(linf, 1) | exponential(1)", 10, kind).pure) == 2
    # What is clipped is the answer, not a record: two answers lie anywhere in the ball.
    found = profile("query(l2, 5) | clip(l2, 1) | laplace(2)", 1, kind)
    assert (down(found.pure), up(found.pure)) == (1, 1)


@pytest.mark.parametrize(
    ("text", "dim", "what"),
    [
        ("minmax | laplace(1)", 3, "MinMax"),
        ("bloom(8, 2) | laplace(1)", 1, "Sparse"),
        ("minmax | encode | laplace(1)", 1, "a constant"),  # of which nobody knows that it is 0
    ],
)
def test_where_the_move_is_not_known_a_query_is_asked_for(text: str, dim: int, what: str) -> None:
    with pytest.raises(InputError, match=rf"{what}: it is not known how far .* query\(norm, distance\)"):
        profile(text, dim, ADDED)
    profile(text, dim, REPLACED)


@pytest.mark.parametrize("dim", [1, 2])
def test_signs_are_shown_only_where_sums_can_lie_around_zero(dim: int) -> None:
    # A record and its opposite half: sums ±1/2 are possible for vectors of a ball, and in two dimensions for unit
    # vectors. The signs of ±1/2 with Laplace noise of scale 1 lose ln((1 − t)/t), t = e^(−1/2)/2.
    tail = math.exp(-0.5) / 2
    apart = math.log((1 - tail) / tail)
    ball = profile("clip(l2, 1) | laplace(1) | clip(l2, 1)", dim, ADDED)
    assert down(ball.pure) >= apart * (1 - 1e-9)
    # Sums of numbers ±1 are whole: at best 0 against 1, whose signs lose ln((1/2)/(e^(−1)/2)) = 1 one way at most.
    sphere = profile("normalise | laplace(1) | clip(l2, 1)", dim, ADDED)
    assert (sphere.candidates == ()) == (dim == 1)
    # A count of 1 against 0: the noisy one is negative with probability e^(−1)/2 against 1/2.
    count = profile("onehot(3) | laplace(1) | normalise", 1, ADDED).pure
    assert (down(count), up(count)) == pytest.approx((1, 1), rel=1e-12)


def test_pairs_run_through_stages_are_compared_with_the_empty_sum() -> None:
    found = profile("clip(l2, 5) | squash(tanh) | laplace(1)", 64, ADDED)
    # The even spread is one vector of the ball: 64 tanh(5/8), and no vector has a longer sum of tanh: tanh is concave.
    truth = 64 * math.tanh(5 / 8)
    assert truth * (1 - 1e-8) <= down(found.pure) <= truth <= up(found.pure)


def test_one_more_name_moves_one_count() -> None:
    # So one coordinate shows it, with probability 1/10, however many there are.
    leak = profile("onehot(4) | leak(0.1)", 1, ADDED).delta(number(1))
    assert (down(leak), up(leak)) == pytest.approx((0.1, 0.1), rel=1e-12)


@pytest.mark.parametrize("kind", [ADDED, REPLACED])
def test_sums_lie_beyond_the_limits_of_a_record(kind: str) -> None:
    # Sums of 0.5 n lie far above the limit 1, where clamped Gaussian noise has no finite loss: the least output has
    # Φ((1 − s)/σ) of ever larger ratios.
    assert profile("clamp(0, 0.5) | gaussian(1) | clamp(0, 1)", 1, kind).pure.b == INFINITY
    assert profile("clamp(0, 0.5) | gaussian(1) | clamp(0, 1)", 1, "any").pure.b < INFINITY


def test_without_noise_a_count_gives_a_record_away() -> None:
    assert profile("onehot(1)", 1, ADDED).pure.a == INFINITY
    assert profile("onehot(1)", 1, REPLACED).pure == 0


def test_a_second_record_places_the_sums_anywhere() -> None:
    # Of unbounded records one can hold both sums far to the left; the other then moves one of them far to the right.
    found = profile("encode | laplace(1) | clip(l1, 1) | laplace(1)", 1, ADDED)
    assert (down(found.pure), up(found.pure)) == (2, 2)


def test_moves_of_random_boxes_cover_random_records() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        low, high = sorted(rng.normal(size=2).round(3))
        box = Box.cube(low - 0.001, high + 0.001, 3)
        moved = with_record_added(OutputRegion(box)).region
        record = rng.uniform(low, high, size=3)
        for q in (1.0, 2.0, math.inf):
            assert np.linalg.norm(record, ord=q) <= up(moved.diameter(q))
        pair = moved.farthest(1)
        assert box.contains(pair.first) != box.contains(pair.second) or box.contains(np.zeros(3))
        assert 0 in (*pair.first, *pair.second)
    assert with_record_added(OutputRegion(Bits(4))).region == Bits(4)


def test_the_command_says_it_in_a_sentence() -> None:
    with pytest.raises(InputError, match="local DP"):
        check("onehot(4) | flip(0.75)", epsilon=1, neighbours=REPLACED)


# ── Whole answers that several records move ─────────────────────────────────────────────────────


@pytest.mark.parametrize("text", ["counts(l1, 1.5)", "counts(linf, 0.5)", "counts(l2, 1)"])
def test_several_records_do_not_always_move_whole_answers_as_far_as_a_multiple(text: str) -> None:
    """Two records that each move whole answers by at most 1.5 in l1 move them by 2; e₁ + e₂ is not (1, 1, 1, 1)."""
    with pytest.raises(InputError, match="whole distance in l1 or linf"):
        profile(f"{text} | discrete_laplace(1)", 4, "group(2)")


@pytest.mark.parametrize(("text", "truth"), [("counts(l1, 2)", 6), ("counts(linf, 1)", 12), ("query(l1, 1.5)", 4.5)])
def test_a_group_moves_answers_by_a_multiple_of_a_whole_distance(text: str, truth: float) -> None:
    noise = "laplace" if text.startswith("query") else "discrete_laplace"
    found = profile(f"{text} | {noise}(1)", 4, "group(3)")
    assert down(found.pure) == pytest.approx(truth, rel=1e-12)
    assert up(found.pure) == pytest.approx(truth, rel=1e-12)
