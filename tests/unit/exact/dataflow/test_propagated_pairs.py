"""Pairs that certainly occur before a noise: none lies outside the region that it was taken from."""

import numpy as np
import pytest

from dpassay import compose
from dpassay.core.neighbours import Neighbours
from dpassay.core.numbers import number
from dpassay.exact.analysis import analyse
from dpassay.exact.dataflow.propagated_pairs import _nearer, pushed_pairs
from dpassay.pipeline.pair import Block, Pair
from dpassay.pipeline.parser import parse
from dpassay.pipeline.regions import Ball, Box, Rows, SensitivityBall, Sphere


@pytest.mark.parametrize("region", [Ball(2, 1, 3), Ball(1, 2, 2), Box.cube("0.5", "0.7", 2), Box.cube(-3, -1, 1)])
def test_a_pair_is_moved_into_its_region(region):
    for q in (1.0, 2.0, float("inf")):
        pair = region.farthest(q)
        (near,) = _nearer(region, pair)
        assert 0 < near.distance(1).b < pair.distance(1).a
        assert region.contains(near.first, 0)
        assert region.contains(near.second, 0)


def test_rows_stay_between_their_limits():
    (near,) = _nearer(Rows(3, (number("0.5"), number("0.7"))), Pair((Block(number("0.7"), number("0.5"), 1),)))
    assert (near.first > 0.5).all()
    assert (near.second > 0.5).all()
    assert _nearer(Rows(3), Pair((Block(number(1), number(-1), 1),)))


def test_answers_may_be_nearer_and_unit_vectors_may_not():
    pair = Pair((Block(number("0.5"), number("-0.5"), 1),))
    assert _nearer(SensitivityBall(1, 1, 1), pair)[0].distance(1).b < 1
    assert _nearer(Sphere(1, 1), pair) == []


# What the second sigmoid puts out is above 1/2, and below 1/(1 + 1/e) = 0.731: always rounded to 1. The tanh of a
# number that is not negative is below 1: all of its bits are 0.
CONSTANT = [
    "squash(sigmoid) | squash(sigmoid) | round",
    "squash(sigmoid) | squash(sigmoid) | round | repeat(2)",
    "squash(tanh) | squash(sigmoid) | squash(sigmoid) | round",
    "clamp(0, 9) | squash(tanh) | binary(1, 0)",
    "squash(sigmoid) | binary(1, 0)",
]


@pytest.mark.long(every=3)
@pytest.mark.parametrize("dim", [1, 2])
@pytest.mark.parametrize("before", CONSTANT)
def test_a_jump_at_a_limit_that_is_not_attained_shows_nothing(before, dim):
    pipeline = parse(f"{before} | laplace(1)", dim=dim)
    for pair in pushed_pairs(pipeline, len(pipeline.stages) - 1, Neighbours()):
        assert np.array_equal(pair.first, pair.second)
    assert analyse(pipeline, Neighbours()).lower_pure.b == 0
    for noise in ("laplace(1)", "gaussian(1)"):
        found = compose(f"{before} | {noise}", f"{before} | laplace(2) x 2", delta=1e-5, dim=dim)
        assert found.exact.lower == 0


def test_a_limit_that_is_attained_counts():
    """Min-max gives 0 and 1, whose sigmoids are 1/2 and 0.73: rounded to 0 and 1, in both coordinates."""
    pipeline = parse("minmax | squash(sigmoid) | round | laplace(1)", dim=2)
    assert analyse(pipeline, Neighbours()).lower_pure.a == 2


@pytest.mark.parametrize("before", ["clamp(0, 9) | squash(tanh) | binary(1, 0)", "squash(sigmoid) | binary(1, 0)"])
def test_no_record_is_written_with_a_bit_that_only_doubles_have(before):
    """tanh(1000) is 1 in doubles, and less than 1 in truth: every record is a string of zeros."""
    texts = [f"poisson(0.5) | {before} | laplace({scale})" for scale in (1, 2)]
    assert compose(*texts, delta=1e-5, dim=1).exact.lower == 0
