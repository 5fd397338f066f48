"""Frequencies of values and of anomalies, by hand."""

import math

import numpy as np
import pytest

from dpassay.audit.distinguishers.base import TrainingSet
from dpassay.audit.distinguishers.frequencies import ANOMALIES, VALUES, Frequencies, _shrunk
from dpassay.audit.outputs.outputs import read

NAN = math.nan


def same(scores, expected):
    return np.array_equal(scores, np.array(expected, dtype=float), equal_nan=True)


def test_values():
    names = sorted(int(read([v]).keys()[0]) for v in ("yes", "no", 3))
    logs = {int(read([v]).keys()[0]): pair for v, pair in (("yes", (-1, -3)), ("no", (-2, -0.5)), (3, (-4, -4)))}
    counted = Frequencies(VALUES, tuple(names), np.array([logs[n] for n in names]).T)
    assert same(counted.score(read(["yes", "no", 3.0, "maybe", None, NAN])), [-2, 1.5, 0, NAN, NAN, NAN])
    three = Frequencies(VALUES, (names[0],), np.array([[-1.0], [-2.0], [-3.0]]))
    unknown = three.score(read([None, 77]))
    assert unknown.shape == (2, 3)
    assert np.isnan(unknown).all()
    assert three.candidates == 3


def test_anomalies():
    odd = Frequencies(ANOMALIES, ("number", "number, NaN", "none"), np.array([[-0.1, -8.0, -3.0], [-0.1, -1.0, -2.0]]))
    assert same(odd.score(read([5.0, NAN, None, "text"])), [0, 7, 1, NAN])


def fitted(first, second):
    return list(Frequencies.fit(TrainingSet((read(first), read(second)), (0, 1))))


def test_values_are_counted_where_they_repeat():
    (found,) = fitted(["yes"] * 9 + ["no"] * 3, ["yes"] * 3 + ["no"] * 9)
    yes, no, other = found.score(read(["yes", "no", "perhaps"]))
    assert yes == pytest.approx(-no)
    assert -math.log(9.5 / 3.5) < yes < 0  # shrunk
    assert math.isnan(other)
    assert not fitted(np.arange(40.0), np.arange(40.0, 80.0))
    three = TrainingSet(tuple(map(read, (["a"] * 3, ["b"] * 3, ["a", "b", "b"]))), (0, 1, 2))
    (found,) = Frequencies.fit(three)
    assert found.score(read(["a"])) == pytest.approx(np.log([[3.5 / 4, 0.5 / 4, 1.5 / 4]]))


def test_anomalies_are_counted_by_name():
    training = TrainingSet((read([1.0, NAN, NAN]), read([1.0, 2.0, None])), ((), ()))
    found = Frequencies.of_anomalies(training)
    assert found.names == ("number", "number, NaN", "none")
    assert found.logs == pytest.approx(np.log(np.array([[1.5, 2.5, 0.5], [2.5, 0.5, 1.5]]) / 4))
    assert found.describe() == "what sort of output it is: number; number, NaN; none"


def test_counts_of_runs_that_go_together_are_shrunk_less():
    # ln(60/40) of counts has variance 1/60 + 1/40; of runs that gave the same, 30 of them, 2·30/(60·40) is gone.
    table = np.array([[40.0, 60.0], [60.0, 40.0]])
    scores = np.log(table[1] / table[0])
    for shared in (0.0, 30.0):
        chance = (1 / 40.5 + 1 / 60.5) - 2 * shared / (40.5 * 60.5)
        real = scores[0] ** 2 - chance
        found = _shrunk(table, scores, np.full(2, shared))
        assert found[1] - found[0] == pytest.approx(scores * real / (real + chance))


def test_a_value_that_both_inputs_give_equally_often_is_never_named():
    sides = ["a"] * 1000, ["a"] * 997 + ["b"] * 3
    training = TrainingSet(tuple(map(read, sides)), ((), ()))
    (found,) = Frequencies.of_values(training)
    assert found.weightiest(training.outputs) == ["'b' in 0.3% of the second's outputs and 0% of the first's"]
