"""What is looked at where outputs have fractions between other things."""

import math

import numpy as np
import pytest

from dpassay import audit
from dpassay.audit.distinguishers import fit_all
from dpassay.audit.distinguishers.base import Distinguisher
from dpassay.audit.outputs.leaf_views import View, columns, columns_of_array, partly_whole, without_fractions
from dpassay.audit.outputs.outputs import read


def patterns(batch):
    return without_fractions(read(batch)).keys().tolist()


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ([0.0, 0.3], [0.0, -7.5], True),
        ([0.0, 0.3], [0.3, 0.0], False),
        ([0.0, 0.3], [1.0, 0.3], False),
        ([0.0, 0.3], [math.nan, 0.3], False),
        ([0.0, 0.3], [0.0, math.inf], False),
        ([None, 0.3, 2], [None, 0.4, 2], True),
        ([None, 0.3, 2], [0.3, None, 2], False),
        ({"above": 0.3, "n": 5}, {"above": 0.7, "n": 5}, True),
        ({"above": 0.3, "n": 5}, {"above": 0.7, "n": 6}, False),
        ({"above": 0.3, "n": 5}, {"below": 0.3, "n": 5}, False),
        ([[0.0, 0.3], [0.1]], [[0.0, 0.9], [0.2]], True),
    ],
)
def test_fractions_are_one_and_the_same(one, other, same):
    first, second = patterns([one, other])
    assert (first == second) is same
    assert patterns([one]) == [first]
    assert patterns([one, None])[0] == first  # whatever else is in the batch


def test_it_is_for_outputs_with_fractions_and_something_else():
    assert partly_whole(read(np.array([[0.0, 0.5]])))
    assert partly_whole(read([{"a": 0.5}]))
    assert not partly_whole(read(np.array([[0.5, 0.5]])))
    assert not partly_whole(read(np.array([[0.0, 1.0]])))


def parity(x, n, rng):
    """Six answers, each with probability 1/2 a number and else 0: of the first four an even number, or an odd one."""
    marks = rng.random((n, 6)) < 0.5
    marks[:, 3] = marks[:, :3].sum(axis=1) % 2 != x
    return np.where(marks, rng.laplace(scale=5, size=(n, 6)), 0.0)


def test_which_answers_are_numbers_is_looked_at():
    """No answer alone and no two of them say anything, and no output comes twice."""
    assert audit(parity, [(0, 1)], epsilon=1, runs=10_000, shrink=False, until_refuted=True).word == "refuted"
    sides = [read(parity(x, 500, np.random.default_rng(0))) for x in (0, 1)]
    described = [one.describe() for one in fit_all(sides, (0, 1))]
    assert "which value the output without its fractions has" in described


def test_a_list_of_answers_is_looked_at_too():
    def answers(x, rng):
        return {"answers": [None if v == 0 else float(v) for v in parity(x, 1, rng)[0]]}

    assert audit(answers, [(0, 1)], epsilon=1, runs=10_000, shrink=False, until_refuted=True).word == "refuted"


def test_it_is_kept_in_files():
    data = {"kind": "Leaves", "look": "whole", "paths": ["output"], "offsets": []}
    (key,) = patterns([[0.0, 0.5]])
    base = {"kind": "Counted", "of": "value", "names": [key], "logs": [[-2.0], [-1.0]], "inputs": []}
    found = Distinguisher.from_data({**data, "base": base})
    assert found.score(read([[0.0, 0.7], [0.0, 1.0]])).tolist()[0] == 1.0
    assert found.view == View("whole", ("output",))


PATHS = [
    *("output", "output[0]", "output[1]", "output[2]", "len(output)", "output.shape", 'output["a"][0]', "output.a"),
    *(
        f"output.index({name})"
        for name in ("0", "1", "-5", "False", "None", '"Rome"', "2.0", str(2**53 + 1), "1" * 400)
    ),
    *("output.count(1)", "output.count(0)", 'output.count("Rome")', "output['a'].index(1)"),
]


@pytest.mark.parametrize(
    "rows",
    [
        [[0.5, 1.0, 2.0], [1.0, 1.0, 0.0], [-5.0, 0.0, 7.0], [math.nan, 1.0, 0.0], [math.inf, 0.0, 0.0]],
        [[0.0], [1.0], [0.5]],
        [[2.0**53, 1.0], [-0.0, 0.0]],
        [[1.0] * 600],
    ],
    ids=["three", "one", "two", "many"],
)
@pytest.mark.parametrize("turned", [False, True], ids=["in order", "backwards"])
def test_an_array_shows_what_its_rows_show_one_by_one(rows, turned):
    """In particular where the whole output and an entry of it are looked at, and places of what no number is."""
    batch, paths = read(np.array(rows)), PATHS[::-1] if turned else PATHS
    found = columns_of_array(batch.numbers, paths)
    assert np.array_equal(found, columns(batch, paths), equal_nan=True)
    assert np.array_equal(found.T, [columns(batch, [path])[:, 0] for path in paths], equal_nan=True)


def test_places_and_counts_of_an_array():
    paths = ["output.index(1)", "output.count(1)", "output[0]", "output"]
    rows = np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 0.5], [3.0, 2.0, 1.0]])
    wanted = [[1, 2, 0, math.nan], [math.nan, math.nan, 1, math.nan], [2, math.nan, 3, math.nan]]
    assert np.array_equal(columns_of_array(rows, paths), wanted, equal_nan=True)


def test_numbers_of_all_kinds_at_one_path_are_those_of_each_output():
    values = [0.5, 3, True, None, "x", 2**53 + 1, 2**2000, -(2**2000), float("inf")]
    items = [{"a": value} for value in values] + [{"b": 1}]
    expected = [0.5, 3, 1, math.nan, math.nan, float(2**53 + 1), math.inf, -math.inf, math.inf, math.nan]
    for some in (slice(None), slice(0, 4), slice(0, 2)):  # each of them is converted in another way
        found = columns(read(items[some]), ['output["a"]'])[:, 0]
        np.testing.assert_array_equal(found, expected[some])
