"""What is at a path in a plain output is what its leaves say, and what cannot be read is refused at once."""

import math

import numpy as np
import pytest

from dpassay.audit.outputs.apart import Apart, numbers_at, rows_at, texts_at, tokens_at
from dpassay.audit.outputs.leaf_dict import written
from dpassay.audit.outputs.leaf_views import number
from dpassay.audit.outputs.leaves import element, leaves_of
from dpassay.errors import MechanismError

VALUES = [
    1.5,
    3,
    True,
    None,
    "x",
    "",
    -0.0,
    math.nan,
    math.inf,
    2**53 + 1,
    np.float64(2.5),
    np.int64(7),
    np.bool_(True),
]
VALUES += [[1, 2], [1.5, 2.0], [True, False], ["a", "b"], [1, "a", None], [], (1, 2), [[1], [2]], {"b": 1.0}, {}]
VALUES += [np.array([1.0, 2.0]), np.array([3, 2**53 + 1]), np.array([1.5, 2.5], dtype=np.float32)]
PATHS = [
    'output["a"]',
    'output["a"][0]',
    'output["a"][1]',
    'output["a"]["b"]',
    'output["c"]',
    "output",
    'len(output["a"])',
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
@pytest.mark.parametrize("path", PATHS)
def test_what_is_at_a_path_is_the_leaf_there(value, path):
    item = {"a": value, "d": "other"}
    leaves, one = leaves_of(item), [Apart(item)]
    assert one[0].simple
    found, leaf = numbers_at(one, path), element(leaves, path)
    if found is not None:
        expected = number(leaf)
        assert math.isnan(expected) if found[0] is None else np.array_equal([found[0]], [expected], equal_nan=True)
    tokens = tokens_at(one, path)
    assert tokens is None or tokens == ["" if leaf is ... else written(leaf)]
    texts = texts_at(one, path)
    assert texts is None or texts == [leaf if isinstance(leaf, str) else None]
    rows = rows_at(one, path)
    if rows is not None:
        entries = [number(element(leaves, f"{path}[{j}]")) for j in range(rows.shape[1])]
        assert rows.tolist() == [entries]


def test_most_values_are_found_without_leaves():
    one = [Apart({"a": {"b": [1.5, 2.5], "c": "text"}})]
    assert numbers_at(one, 'output["a"]["b"][1]') == [2.5]
    assert texts_at(one, 'output["a"]["c"]') == ["text"]
    assert tokens_at(one, 'output["a"]["c"]') == ["'text'"]
    assert rows_at(one, 'output["a"]["b"]').tolist() == [[1.5, 2.5]]
    assert numbers_at(one, 'len(output["a"]["b"])') is None


def test_keys_that_equal_a_text_without_being_one_need_leaves():
    class Name(str):
        __slots__ = ()

    one = Apart({Name("a"): 1.5})
    assert not one.simple
    assert numbers_at([one], 'output["a"]') is None


def test_what_cannot_be_read_is_refused_at_once():
    loop = []
    loop.append(loop)
    for item in ({"a": object()}, [lambda: 0], loop):
        with pytest.raises(MechanismError):
            Apart(item)
