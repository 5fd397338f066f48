"""What is found of an output by its form, against its leaves, and against one that is taken apart by itself."""

import math

import numpy as np
import pytest

from dpassay.audit.outputs.apart import Apart, numbers_at
from dpassay.audit.outputs.doubles import EXACT
from dpassay.audit.outputs.leaf_table import LeafTable
from dpassay.audit.outputs.leaf_views import View, without_fractions
from dpassay.audit.outputs.leaves import is_value, leaves_of
from dpassay.audit.outputs.outputs import read

VALUES = {
    "float": lambda rng: float(rng.normal()),
    "whole": lambda rng: float(rng.integers(-2, 3)),
    "odd": lambda rng: [math.nan, math.inf, -0.0, 0.0][rng.integers(4)],
    "int": lambda rng: int(rng.integers(5)),
    "large": lambda rng: EXACT + int(rng.integers(3)),
    "bool": lambda rng: bool(rng.integers(2)),
    "text": lambda rng: ["", "a b", "naïve"][rng.integers(3)],
    "none": lambda rng: None,
    "double": lambda rng: np.float64(rng.normal()),
    "numpy int": lambda rng: np.int64(rng.integers(5)),
}


def random_shape(rng, deep=2):
    """A function that draws outputs of one shape: dicts, lists and tuples of scalars, nested."""
    sort = rng.integers(4 if deep else 1)
    if sort == 0:
        return list(VALUES.values())[rng.integers(len(VALUES))]
    inside = [random_shape(rng, deep - 1) for _ in range(rng.integers(4))]
    if sort == 1:
        names = ['a "quoted" key', "len(output)", "b % 2"]
        return lambda rng: {name: one(rng) for name, one in zip(names, inside, strict=False)}
    kind = list if sort == 2 else tuple
    return lambda rng: kind(one(rng) for one in inside)


@pytest.mark.parametrize("seed", range(60))
def test_what_a_form_tells_is_what_the_leaves_tell(seed):
    rng = np.random.default_rng(seed)
    drawn = random_shape(rng)
    items = [{"x": drawn(rng), "y": float(rng.normal())} for _ in range(12)]
    for item in items:
        known, leaves = Apart(item), leaves_of(item)
        assert set(known.paths) == set(leaves)
        texts = [leaf for path, leaf in leaves.items() if isinstance(leaf, str) and is_value(path)]
        assert read([item]).texts() == [" ".join(texts)]
        for path in leaves:
            number = numbers_at([known], path)
            if number is not None and type(leaves[path]) in (int, float, bool):
                assert number == [leaves[path]] or math.isnan(number[0])
    table = LeafTable.of([Apart(item) for item in items])
    if table is not None:
        paths = sorted({path for item in items for path in leaves_of(item)})
        found = table.columns(paths)
        for row, item in zip(found, items, strict=True):
            leaves = leaves_of(item)
            there = {path: float(leaf) for path, leaf in leaves.items() if type(leaf) in (float, int, bool)}
            assert np.array_equal(row, [there.get(path, math.nan) for path in paths], equal_nan=True)


@pytest.mark.parametrize("seed", range(30))
def test_what_is_left_without_fractions_is_that_of_each_output(seed):
    """Outputs of one form are equal without their fractions if the same values are where."""
    rng = np.random.default_rng(seed)
    drawn = random_shape(rng)
    items = [{"x": drawn(rng), "y": float(rng.normal())} for _ in range(20)]
    shown = without_fractions(read(items)).items
    for one, text in zip(items, shown, strict=True):
        assert text == without_fractions(read([one, 1])).items[0]
        for other, again in zip(items, shown, strict=True):
            assert (text == again) == (_without(one) == _without(other))


def _without(item):
    if type(item) is dict:
        return [(key, _without(value)) for key, value in item.items()]
    if type(item) in (list, tuple):
        return [type(item), *map(_without, item)]
    fraction = isinstance(item, float) and math.isfinite(item) and item != int(item)
    return type(item), "fraction" if fraction else repr(item)


def test_outputs_of_one_form_share_their_paths():
    one, other = (Apart({"a": value, "b": [0.5, value]}) for value in (1.5, -2.0))
    assert one.paths is other.paths
    assert Apart({"a": math.nan, "b": [0.5, 1.0]}).paths is not one.paths
    assert View("numbers", ('output["b"][1]',)).of(read([one.item, other.item])).numbers.tolist() == [[1.5], [-2.0]]
