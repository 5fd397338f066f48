"""Boosted tables by hand, and the noise that their fit allows for."""

import math

import numpy as np

from dpassay.audit.distinguishers.base import TrainingSet
from dpassay.audit.distinguishers.boosted_tables import BoostedTables, _noise_share
from dpassay.audit.outputs.outputs import read

NAN, INF = math.nan, math.inf


def test_tables_add_up():
    edges = {0: np.array([0.0]), 2: np.array([1.0])}  # of a pair of coordinates, 2 is their difference
    tables = (np.array([1.0, 2.0, 4.0]), np.arange(9.0).reshape(3, 3))
    boosted = BoostedTables("coordinates", 2, ((0,), (0, 2)), edges, tables)
    outputs = read([[-1, -1], [3, 9], [3, NAN], None])
    # (0; 0, 0): 1 + 0.  (1; 1, 1): 2 + 4.  (1; 1, NaN): 2 + 5.  (NaN; NaN, NaN): 4 + 8.
    assert boosted.score(outputs).tolist() == [1, 6, 7, 12]


def test_infinite_coordinates_are_no_warning():
    table = BoostedTables("coordinates", 2, ((2,),), {2: np.array([0.0])}, (np.array([1.0, 2.0, 3.0]),))
    assert table.score(read([[INF, -INF], [1e308, 1e308], [INF, 1]])).tolist() == [1, 2, 1]


def test_a_cell_keeps_the_chance_of_runs_whose_counterpart_is_elsewhere():
    cells = np.array([0, 0, 0, 1, 1, 2, 0, 0, 1, 1, 2, 2])  # six runs of the one input, then their counterparts
    assert _noise_share(cells, 6, 4).tolist() == [(1 + 1) / (5 + 1), (2 + 1) / (4 + 1), (1 + 1) / (3 + 1), 1.0]
    assert _noise_share(cells, 0, 4).tolist() == [1.0] * 4


def fitted(first, second, bits="no"):
    return [b.features for b in BoostedTables.fit(TrainingSet((read(first), read(second)), ((), ()), bits))]


def test_the_features_are_those_that_the_outputs_have():
    rng = np.random.default_rng(0)
    rows, ends = rng.normal(size=(400, 3)), rng.integers(1, 3, size=(400, 1))
    assert fitted(rows, rows + 2) == ["coordinates"]
    assert fitted(rows.round(), rows + 2, "also") == ["where the output is not 0", "coordinates", "float bits"]
    cut = np.where(np.arange(3) <= ends, rows, NAN)
    assert fitted(cut, np.where(np.arange(3) < ends, rows + 2, NAN)) == ["where the output ends", "coordinates"]
    assert fitted([[0] * k for k in (1, 2) * 200], [[1] * k for k in (3, 4) * 200])[-1] == "lengths"
    assert not list(BoostedTables.fit(TrainingSet((read(rows),) * 3, (0, 1, 2))))


def test_float_bits_alone():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=400)
    (found,) = BoostedTables.fit_float_bits(TrainingSet((read(rows.round(3)), read(rows.round())), (0, 1), "only"))
    assert found.features == "float bits"
    assert not list(BoostedTables.fit_float_bits(TrainingSet((read(["a"] * 40), read(["b"] * 40)), (0, 1), "only")))
