"""The pairs that a trace takes: two different inputs, and neighbours where the relation is stated."""

import math
from typing import Any

import numpy as np
import pytest

from dpassay.errors import InputError
from dpassay.trace.relations import check_different, stated_relation
from dpassay.trace.session import trace


@pytest.mark.parametrize("x", [1, math.nan, "a", [1, 2], np.ones(2), {"a": [1]}])
def test_equal_inputs_are_refused(x: Any) -> None:
    with pytest.raises(InputError, match="equal inputs cannot be distinguished; give different ones"):
        trace(lambda x: x, pairs=[(x, x)], epsilon=1)
    with pytest.raises(InputError, match="equal inputs cannot be distinguished"):
        check_different([x, x, x], [])
    check_different([x, x, 2], [])


def test_inputs_of_one_value_are_named_as_they_are() -> None:
    with pytest.raises(InputError, match="True and 1 are equal: give inputs of different values"):
        check_different([], [(True, 1)])


def test_equal_inputs_among_others_make_no_pair() -> None:
    result = trace(lambda x, rng: x + rng.laplace(), [1.0, 1.0, 2.0], epsilon=1, hostile=False)
    assert result.pair == (1.0, 2.0)


A, B, C = [1, 0], [0, 1], [1, 1]


@pytest.mark.parametrize(
    ("relation", "x", "y", "why"),
    [
        ("add-remove-record", [A, B], [B], ""),
        ("add-remove-record", [A, B], [B, A, C], ""),
        (
            "add-remove-record",
            [A, B],
            [A, C],
            "1 would have to be removed and 1 added; between neighbors one record is",
        ),
        ("add-remove-record", [A, A], [A, A, A, A], "0 would have to be removed and 2 added"),
        ("add-remove-record", 3, 4, "these are not data sets"),
        ("replace-record", [A, B], [C, A], ""),
        ("replace-record", np.array([A, B]), np.array([A, C]), ""),
        ("replace-record", [A, B], [A], "one record would have to be added or removed"),
        ("replace-record", [A, A], [B, C], "they differ in 2 records"),
        ("replace-record", "a b", "a c", "these are not data sets"),
        ("user", [A, B, C], [B], ""),
        ("user", [A, B, C], [B, B], "here 2 and 1 records are not shared"),
        ("user", 1, 2, "these are not data sets"),
        ("user-entity", [A, B, C], [B, B], ""),
        ("group(2)", [A, B, C], [B], ""),
        ("group(2)", [A, B, C], [], "between neighbors at most 2 records are added or removed"),
        ("words(2)", "a b c", "a d e", ""),
        ("query", [1.0], [2.0], "neighbors 'query' needs a distance"),
        ("any", 1, "b", ""),
    ],
)
def test_pairs_must_keep_the_relation_that_is_stated(relation: str, x: Any, y: Any, why: str) -> None:
    if not why:
        assert str(stated_relation(relation, [], [(x, y)])) == str(stated_relation(relation, [], [(y, x)]))
        return
    with pytest.raises(InputError) as error:
        stated_relation(relation, [], [(x, y)])
    assert why in str(error.value)


def test_of_inputs_any_two_must_be_neighbours() -> None:
    with pytest.raises(InputError, match="differ in 2 words"):
        stated_relation("word", ["a b", "a c", "d c"], [])


def test_the_result_states_the_relation() -> None:
    result = trace(lambda x, rng: len(x) + rng.laplace(), pairs=[([1, 2], [1])], epsilon=1, neighbours="user")
    assert "neighbors: two data sets that differ in all records of one user, added or removed, as stated" in str(result)
    assert result.to_dict()["neighbours"] == "user"
    assert str(result.verdict.neighbours) == str(result.neighbours)
