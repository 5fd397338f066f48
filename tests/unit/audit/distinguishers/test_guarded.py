"""Anomalies of one input go before the score of another distinguisher."""

import math

import numpy as np

from dpassay.audit.distinguishers import fit_all
from dpassay.audit.distinguishers.combined.guarded import ONE_SIDED, Guarded
from dpassay.audit.distinguishers.frequencies import ANOMALIES, Frequencies
from dpassay.audit.distinguishers.statistic import Statistic
from dpassay.audit.outputs.outputs import read

NAN, INF = math.nan, math.inf
NAMES = ("number", "number, NaN", "none")
LOGS = np.array([[-0.1, -8.0, -3.0], [-0.1, -1.0, -2.0]])


def test_an_anomaly_of_one_input_is_an_infinite_score():
    outputs = read([5.0, NAN, None, "text"])
    guarded = Guarded(Statistic("coordinate 0", 1), Frequencies(ANOMALIES, NAMES, LOGS))
    assert 1 < ONE_SIDED < 7
    assert np.array_equal(guarded.score(outputs), [5, INF, NAN, NAN], equal_nan=True)
    other_way = Guarded(Statistic("coordinate 0", 1), Frequencies(ANOMALIES, NAMES, LOGS[::-1]))
    assert np.array_equal(other_way.score(outputs), [5, -INF, NAN, NAN], equal_nan=True)
    assert guarded.certain(1).startswith("the output is number, NaN")
    assert not guarded.certain(0)


def test_a_guard_is_needed_where_an_anomaly_is_one_inputs_own():
    assert Guarded.needed(Frequencies(ANOMALIES, NAMES, LOGS))
    assert not Guarded.needed(Frequencies(ANOMALIES, NAMES[:1], LOGS[:, :1]))
    assert not Guarded.needed(Frequencies(ANOMALIES, NAMES, np.vstack([LOGS, LOGS[:1]])))  # scores are for two inputs


def test_all_that_are_fitted_get_the_guard():
    numbers = np.random.default_rng(0).normal(size=50).tolist()
    with_guard = list(fit_all([read(numbers), read([*numbers, *[None] * 50])], (0.0, 1.0)))
    assert all(isinstance(d, Guarded) for d in with_guard[:-1])
    assert with_guard[-1] == with_guard[0].anomalies
    assert not any(isinstance(d, Guarded | Frequencies) for d in fit_all([read(numbers), read(numbers)], (0.0, 1.0)))
