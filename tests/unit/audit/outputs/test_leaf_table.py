"""Columns of the numbers of many outputs are the numbers at their paths, one by one."""

from fractions import Fraction

import numpy as np

from dpassay.audit.outputs.apart import Apart
from dpassay.audit.outputs.leaf_table import LeafTable
from dpassay.audit.outputs.leaf_views import number
from dpassay.audit.outputs.leaves import leaves_of

ITEMS = [{"a": 1.5, "b": ["x", "y"]}, {"b": ["y"], "c": True}, ["x", 3, None], {"a": float("nan")}, {}]


def test_columns_are_the_numbers_at_their_paths():
    paths = [*sorted({path for item in ITEMS for path in leaves_of(item)}), "nowhere"]
    table = LeafTable.of(list(map(Apart, ITEMS)))
    expected = [[number(leaves_of(item).get(path)) for path in paths] for item in ITEMS]
    assert np.array_equal(table.columns(paths), expected, equal_nan=True)
    assert np.array_equal(table.columns(paths[::-2]), np.array(expected)[:, ::-2], equal_nan=True)


def test_numbers_that_floats_may_not_hold_are_left_to_others():
    assert LeafTable.of([Apart({"a": 2**53 + 1})]) is None
    assert LeafTable.of([Apart({"a": Fraction(1, 3)})]) is None
    assert LeafTable.of([None]) is None
