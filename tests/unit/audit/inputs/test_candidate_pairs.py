"""Which inputs are told apart: neighbours only, inside their region, never twice the same, and smaller when shrunk."""

import copy
import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpassay.audit.inputs.candidate_pairs import input_sets, pairs_of, plain
from dpassay.audit.inputs.checks import MOST_PAIRS, check_inputs, same, shown, why_not_neighbours
from dpassay.audit.inputs.region_pairs import region_pairs
from dpassay.audit.inputs.shrinking import size, smaller
from dpassay.core.neighbours import Neighbours
from dpassay.errors import InputError
from dpassay.pipeline.parser import parse
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
    SensitivityBall,
    Sphere,
)

# ── One and the same ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("x", "y", "expected"),
    [
        (0, 0.0, True),
        (0, False, True),
        (0.0, -0.0, True),
        ([0, 1], np.array([0.0, 1.0]), True),
        ((0, 1), [0, 1], True),
        (math.nan, math.nan, True),
        ([0, 1], [0, 1, 0], False),
        ([0, 1], [1, 0], False),
        ("a", "a", True),
        ("a", "b", False),
        ("1", 1, False),
        ("", None, False),
        (None, None, True),
        (None, 0, False),
        ({"a": 1}, {"a": 1}, True),
        ({"a": 1}, {"a": 2}, False),
        ([["a"], 1], [["a"], 1], True),
        ([["a"], 1], (["a"], 1), True),
        (10**400, 10**400, True),
        (10**400, 10**400 + 1, False),
        (b"a", b"a", True),
        (b"a", "a", False),
    ],
)
def test_same(x, y, expected):
    assert same(x, y) is expected
    assert same(y, x) is expected


def test_inputs_that_cannot_be_told_apart():
    with pytest.raises(InputError, match="at least two inputs to compare, got 1"):
        check_inputs(["a"])
    with pytest.raises(InputError, match="at least two inputs to compare, got 0"):
        check_inputs([])
    with pytest.raises(InputError, match=r"inputs 2 and 4 are the same, 'b': they cannot be distinguished"):
        check_inputs(["a", "b", "c", "b"])
    with pytest.raises(InputError, match=r"inputs 1 and 2 are the same, \[0, 1\]"):
        check_inputs([[0, 1], np.array([0.0, 1.0])])
    assert check_inputs(["a", "b"]) == ("a", "b")


def test_inputs_are_shown_in_a_few_characters():
    assert json.loads(shown(np.array([1.0, 2.5]))) == [1.0, 2.5]
    assert float(shown(np.float64(2))) == 2
    assert shown("a" * 100) == "'" + "a" * 58 + "…"
    assert len(shown(list(range(1000)), 20)) == 20


def test_ragged_inputs_are_shown():
    assert shown([[1], [2, 3]]) == "[[1], [2, 3]]"


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        (np.array([[1, 2]]), [[1, 2]]),
        (np.float32(0.5), 0.5),
        (np.bool_(True), True),
        ((1, ("a", None)), [1, ["a", None]]),
        ({1: np.array([2.0]), "a": (3,)}, {"1": [2.0], "a": [3]}),
        ([np.int64(3)], [3]),
        ("text", "text"),
        (None, None),
    ],
)
def test_plain_is_ready_for_json(x, expected):
    assert plain(x) == expected
    assert json.loads(json.dumps(plain(x))) == expected


@pytest.mark.parametrize("x", [object(), {1, 2}, b"bytes", [1, object()], {"a": {1}}, 1j])
def test_what_cannot_be_written_is_said_so(x):
    with pytest.raises(InputError, match="cannot be written to a file: use numbers, lists or text"):
        plain(x)


# ── Lists ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("count", [2, 3, 23])
def test_all_pairs_of_a_short_list(count):
    found = pairs_of(list(range(count)))
    assert found == list(itertools.combinations(range(count), 2))
    assert len(found) <= MOST_PAIRS


@pytest.mark.parametrize("count", [24, 100, 500, 3000])
def test_some_pairs_of_a_long_list(count):
    found = pairs_of(list(range(count)))
    assert 0 < len(found) <= MOST_PAIRS
    assert all(x != y for x, y in found)
    ends = {x for pair in found for x in pair}
    assert {0, count - 1} <= ends


def test_repeated_inputs_count_once():
    assert pairs_of(["a", "b", "a", "b", "a"]) == [("a", "b")]
    assert len(pairs_of([[0, 1], (0, 1), np.array([1, 0])])) == 1


@pytest.mark.parametrize("inputs", [[], ["a"], ["a", "a"], [0, 0.0, False]])
def test_a_list_without_two_inputs(inputs):
    with pytest.raises(InputError, match="needs at least two that differ"):
        pairs_of(inputs)


@pytest.mark.parametrize(
    ("x", "y", "why"),
    [
        ("fly to Rome", "fly to Oslo", ""),
        ("fly to Rome", "fly  to\tOslo", ""),
        ("fly to Rome", "fly Rome", "3 and 2 words"),
        ("fly to Rome", "go to Oslo", "differ in 2 words"),
        ("fly to Rome", "fly to  Rome", "differ in 0 words"),
        (0, 1, "two texts, and these are not"),
    ],
)
def test_neighbours_differ_in_one_word_replaced(x, y, why):
    said = why_not_neighbours(x, y, Neighbours("word"))
    assert (said == "") == (why == "")
    assert why in said


def test_answers_farther_apart_than_the_query_allows_are_no_neighbours():
    pipeline = parse("query(l2, 1) | clip(l2, 5) | laplace(1)", dim=2)
    relation = Neighbours("query")
    assert not why_not_neighbours([0, 0], [0.6, 0.8], relation, pipeline)
    assert "1.41421 apart" in why_not_neighbours([0, 0], [1, 1], relation, pipeline)
    assert "is about the neighbors query" in why_not_neighbours([0, 0], [9, 9], Neighbours("any"), pipeline)
    assert not why_not_neighbours([0, 0], [0.6, 0.8], Neighbours("replace-record"), pipeline)
    assert "1.41421 apart" in why_not_neighbours([0, 0], [1, 1], Neighbours("add-remove-record"), pipeline)
    assert not why_not_neighbours([0, 0], [1.6, 1.2], Neighbours("group(2)"), pipeline)
    assert "rounding" in why_not_neighbours([1e12, 0], [1e12, 1], relation, pipeline)


def test_counts_are_whole_numbers():
    pipeline = parse("counts(l1, 2) | discrete_laplace(1)", dim=2)
    assert not why_not_neighbours([0, 3], [2, 3], Neighbours("query"), pipeline)
    assert "3 apart" in why_not_neighbours([0, 3], [2, 4], Neighbours("query"), pipeline)
    assert "not whole numbers" in why_not_neighbours([0, 3], [0.5, 3], Neighbours("query"), pipeline)


def test_a_record_added_to_a_sum_is_a_vector_against_none():
    """clip(l2, 1): one record moves the sum by 1, docs/proofs/record-sums.md; two records are 2 apart."""
    pipeline, relation = parse("clip(l2, 1) | laplace(1)", dim=1), Neighbours("add-remove-record")
    assert not why_not_neighbours([1.0], [0.0], relation, pipeline)
    assert "zero vector" in why_not_neighbours([1.0], [-1.0], relation, pipeline)
    assert not why_not_neighbours([1.0], [-1.0], Neighbours("replace-record"), pipeline)
    assert "one record" in why_not_neighbours([1.0], [0.0], Neighbours("group(2)"), pipeline)
    shifted = parse("squash(sigmoid) | laplace(1)", dim=1)
    assert "zero vector" in why_not_neighbours([1.0], [0.0], relation, shifted)


# ── Regions ─────────────────────────────────────────────────────────────────────────────────────

REGIONS = [
    *(Ball(p, radius, dim) for p in (1, 2, 3.5, math.inf) for radius in (1, 0.3) for dim in (1, 2, 5, 32)),
    *(Sphere(2, dim) for dim in (1, 2, 7)),
    Box.cube(0, 1, 4),
    Box.cube(-5, 2, 1),
    Box(((0, 1, 2), (-1, 5, 3), (2, 2, 1))),
    Intersection(Ball(2, 1, 4), Ball(math.inf, 0.4, 4)),
    Intersection(Ball(1, 1, 9), Ball(2, 0.5, 9)),
    Everything(1),
    Everything(6),
    Bits(1),
    Bits(8),
    Categories(2),
    Categories(10),
    OneHot(5),
    MinMax(4),
    Finite([[0, 1], [3, 4], [0, 1]]),
]


@pytest.mark.parametrize("region", REGIONS, ids=lambda r: f"{type(r).__name__}-{r.dim}")
def test_pairs_lie_in_their_region(region):
    found = region_pairs(region)
    assert found
    for x, y in found:
        assert len(x) == len(y) == region.dim
        assert region.contains(x)
        assert region.contains(y)
        assert not same(x, y)
    assert len({(tuple(x), tuple(y)) for x, y in found}) == len(found)
    for q in (1, 2, math.inf):  # the farthest pair is among them
        far = region.farthest(q)
        assert any(same(x, far.first) and same(y, far.second) for x, y in found)


@pytest.mark.parametrize("p", [1, 2, 3, math.inf])
@pytest.mark.parametrize("distance", [1, 0.1, 3, 1e-3, 1e6])
@pytest.mark.parametrize("dim", [1, 2, 5, 20])
def test_neighbouring_answers_are_no_farther_apart_than_allowed(p, distance, dim):
    found = region_pairs(SensitivityBall(p, distance, dim))
    gaps = [float(np.linalg.norm(x - y, ord=p)) for x, y in found]
    rounding = 4 * np.finfo(float).eps * dim * (1 + distance)  # of sums near 1
    assert max(gaps) <= distance + rounding
    assert max(gaps) >= distance - rounding
    assert all(len(x) == len(y) == dim and np.isfinite([x, y]).all() for x, y in found)
    assert all(not same(x, y) for x, y in found)


def test_very_near_answers_too_are_no_farther_apart_than_allowed():
    for distance in (1.2e-16, 1e-15, 1e-10):
        for x, y in region_pairs(SensitivityBall(math.inf, distance, 2)):
            assert np.abs(x - y).max() <= distance * (1 + 1e-12)


def test_a_region_of_one_value():
    with pytest.raises(InputError, match="no two different values"):
        region_pairs(Box.cube(1, 1, 3))


# ── Shrinking ───────────────────────────────────────────────────────────────────────────────────


def test_sizes():
    assert size(([0, 1, 2], [0, 5, 0])) == (2, 3)
    assert size((np.zeros(3), np.ones(3))) == (3, 3)
    assert size(("fly to Rome", "fly to Paris")) == (1, 6)
    assert size(("fly to Rome", "Rome")) == (2, 4)
    assert size(("", "a b")) == (2, 2)
    assert size((None, 3)) == (0, 0)
    assert size(([1, 2], [1, 2, 3])) == (0, 0)


def shrink(pair):
    """As an audit shrinks: the first smaller pair, if any, over and over."""
    steps = 0
    while found := [p for p in smaller(pair) if not same(*p) and size(p) < size(pair)]:
        pair, steps = found[0], steps + 1
        assert steps < 100
    return pair


VALUES = st.sampled_from([0.0, 0.0, 1.0, -2.0, 0.5])


@given(st.integers(2, 12).flatmap(lambda n: st.tuples(*[st.lists(VALUES, min_size=n, max_size=n)] * 2)))
@settings(derandomize=True, max_examples=150)
def test_smaller_vectors_are_strictly_smaller_neighbours(pair):
    x, y = (np.array(v) for v in pair)
    if same(x, y):
        return
    for a, b in smaller((x, y)):
        assert size((a, b)) < size((x, y))
        assert not same(a, b)
        moved = a != b
        assert (moved <= (x != y)).all()  # no coordinate differs that did not
        assert np.array_equal(b[moved], y[moved])
        assert np.abs(a - b).max() <= np.abs(x - y).max()
    last = shrink((x, y))
    assert size(last)[0] == 1
    assert not ((last[0] == last[1]) & (last[0] != 0)).any()


@pytest.mark.parametrize("pair", [(1.0, 2.0), ([1], [2]), (None, "a"), ({"a": 1}, {"a": 2}), ([1, 2], [1, 2, 3])])
def test_what_cannot_be_made_smaller(pair):
    assert list(smaller(pair)) == []


def test_lists_shrink_too():
    found = list(smaller(([1, 2, 3, 4], [5, 6, 7, 4])))
    assert found
    assert all(size(p) < size(([1, 2, 3, 4], [5, 6, 7, 4])) for p in found)


TEXTS = st.lists(st.sampled_from("abc"), max_size=6).map(" ".join)


@given(TEXTS, TEXTS)
@settings(derandomize=True, max_examples=200)
def test_shrinking_texts_ends_and_stays_a_pair(x, y):
    if x == y:
        return
    for pair in smaller((x, y)):
        assert pair[0] != pair[1]
        assert set((" ".join(pair)).split()) <= set(f"{x} {y}".split())
    last = shrink((x, y))
    assert last[0] != last[1]
    assert size(last) <= size((x, y))


def test_smaller_texts_are_strictly_smaller():
    texts = [" ".join(words) for n in range(4) for words in itertools.product("ab", repeat=n)]
    for x, y in itertools.combinations(texts, 2):
        assert all(size(pair) < size((x, y)) for pair in smaller((x, y)))


def test_a_long_text_shrinks_to_the_words_that_differ():
    x, y = "please fly me to Rome on Monday", "please fly me to Paris on Monday"
    assert size(shrink((x, y)))[0] == 1
    assert size(shrink((x, y)))[1] <= 4
    assert shrink(("a", "b")) == ("a", "b")
    assert shrink(("a b", "a c"))[0].split()[-1] == "b"


# ── What numpy makes of equality ────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("x", [np.array(["a", "b"]), {"a": np.zeros(2)}, [np.zeros(2), "a"]])
def test_same_of_arrays_that_are_no_numbers(x):
    assert same(x, copy.deepcopy(x))


def test_shapes_are_part_of_an_input():
    assert not same(np.zeros((2, 2)), np.zeros(4))


@pytest.mark.parametrize("inputs", [["a"] * 600, ["a", "b"] + ["a"] * 598])
def test_a_long_list_of_few_inputs(inputs):
    if len(set(inputs)) > 1:
        assert pairs_of(inputs)
    else:
        with pytest.raises(InputError, match="at least two that differ"):
            pairs_of(inputs)


def test_several_words_may_differ() -> None:
    relation = Neighbours("words(2)")
    assert why_not_neighbours("a b c", "x y c", relation) == ""
    assert why_not_neighbours("a b c", "x y z", relation) == "they differ in 3 words, and neighbors differ in at most 2"
    assert why_not_neighbours("a b c", "a b c", relation).startswith("they differ in 0 words")
    assert why_not_neighbours("a b", "a b c", relation).endswith("neighbors differ in at most 2 words replaced")
    assert why_not_neighbours("a b", "ab c", Neighbours("tokens(1)")) == ""


def test_a_group_cannot_be_run_on_one_record() -> None:
    with pytest.raises(InputError, match="run on one record"):
        input_sets(parse("clip(l1, 1) | laplace(1)", dim=2), Neighbours("group(2)"), {})


def test_answers_that_begin_anew_in_the_middle_have_a_pair_of_their_own():
    """The last answer of each half moves against the others: twice ⊥⊥⊥⊥⊤ tells most of a sparse vector that stops
    after two."""
    moves = [(y - x).tolist() for x, y in region_pairs(SensitivityBall(math.inf, 1, 10))]
    assert [1, 1, 1, 1, -1] * 2 in moves
    assert [-1, -1, -1, -1, 1] * 2 in moves
    assert [1, -1] in [(y - x).tolist() for x, y in region_pairs(SensitivityBall(math.inf, 1, 2))]


@pytest.mark.parametrize("sampled", ["", "poisson(0.5) | ", "poisson(1) | "])
@pytest.mark.parametrize(("x", "y", "neighbors"), [(1.0, -1.0, False), (1.0, 0.5, False), (1.0, 0.0, True)])
def test_a_record_that_is_sampled_is_added_or_removed_too(sampled: str, x: float, y: float, neighbors: bool) -> None:
    pipeline = parse(f"{sampled}clip(l1, 1) | laplace(1)", dim=1)
    why = why_not_neighbours([x], [y], Neighbours("add-remove-record"), pipeline)
    assert (not why) is neighbors


def test_a_sampled_record_may_be_replaced() -> None:
    pipeline = parse("subsample(1, 3) | clip(l1, 1) | laplace(1)", dim=1)
    assert not why_not_neighbours([1.0], [-1.0], Neighbours("replace-record"), pipeline)


NEAR = [[0.01 * k] for k in range(64)]


def test_the_last_candidates_are_neighbors_too() -> None:
    pipeline = parse("query(l1, 1) | laplace(1)", dim=1)
    with pytest.raises(InputError, match=r"are not neighbors: they are \d+"):
        input_sets(pipeline, pipeline.neighbours, {"candidates": [*NEAR, [100.0]]})
    assert len(input_sets(pipeline, pipeline.neighbours, {"candidates": [*NEAR, [0.995]]})) == 1


def test_the_last_pairs_are_neighbors_too() -> None:
    pipeline = parse("query(l1, 1) | laplace(1)", dim=1)
    near = [(x, [x[0] + 1.0]) for x in NEAR]
    with pytest.raises(InputError, match="are not neighbors: they are 3 apart"):
        input_sets(pipeline, pipeline.neighbours, {"pairs": [*near, ([0.0], [3.0])]})
    texts = [f"word{k} stays here" for k in range(64)]
    with pytest.raises(InputError, match="they differ in 3 words"):
        input_sets(lambda text: text, Neighbours("word"), {"candidates": [*texts, "all words differ"]})
