"""Distinguishers that a user brings: what they may return."""

import math

import numpy as np
import pytest

from dpassay.audit.distinguishers.custom import CustomDistinguisher
from dpassay.audit.outputs.outputs import read
from dpassay.errors import InputError


def test_a_function_of_the_user():
    def longest(outputs):
        return [len(o) for o in outputs]

    assert CustomDistinguisher(longest).score(read(["a", "bcd"])).tolist() == [1, 3]
    assert CustomDistinguisher(longest).describe() == "the guesser longest"
    assert CustomDistinguisher(longest).candidates is None


def test_a_function_that_looks_at_the_batch_is_refused():
    # It would be right nearly always, even for a mechanism that keeps its guarantee: from many runs anybody can tell.
    def mean(outputs):
        return [sum(outputs) / len(outputs)] * len(outputs)

    with pytest.raises(InputError, match=r"the guesser mean scores an output 2\.0 among 3 and 3\.0 alone"):
        CustomDistinguisher(mean).score(read([1.0, 2.0, 3.0]))
    assert CustomDistinguisher(mean).score(read([3.0])).tolist() == [3.0]


@pytest.mark.parametrize(
    "function",
    [
        lambda outputs: 3.0,
        lambda outputs: [1.0],
        lambda outputs: [1.0] * (2 * len(outputs)),  # each would count twice
        lambda outputs: ["a"] * len(outputs),
        lambda outputs: None,
        lambda outputs: [len(o) for o in outputs],
        lambda outputs: np.zeros((len(outputs), 2, 2)),
    ],
)
def test_a_function_that_gives_no_scores_is_refused(function):
    with pytest.raises(InputError, match="must give"):
        CustomDistinguisher(function).score(read([1.0, 2.0, 3.0]))


def test_a_function_may_abstain_and_give_a_score_for_each_input():
    assert np.isnan(CustomDistinguisher(lambda outputs: [math.nan] * len(outputs)).score(read([1, 2]))).all()
    assert CustomDistinguisher(lambda outputs: np.zeros((len(outputs), 3))).score(read([1, 2])).shape == (2, 3)
    assert CustomDistinguisher(lambda outputs: []).score(read([])).shape == (0,)
