"""Numbers of one type become doubles where none of them is rounded."""

import numpy as np
import pytest

from dpassay.audit.outputs.doubles import as_doubles
from dpassay.audit.outputs.outputs import read


@pytest.mark.parametrize("kind", [float, int, bool, np.float64, np.float32, np.bool_, np.int64, np.uint8])
def test_lists_of_one_type_are_rows_and_keep_their_type(kind):
    batch = [[kind(0), kind(1)], [kind(1), kind(1)]]
    outputs = read(batch)
    assert outputs.numbers.tolist() == [[0, 1], [1, 1]]
    assert not outputs.structured
    assert outputs.kind == f"vector[2], list of {kind.__name__}" == read(batch[:1]).kind


@pytest.mark.parametrize("entries", [[2**53 + 1, 0], [np.int64(2**53 + 1), np.int64(0)], [1, 2.0], ["1", "2"], []])
def test_others_are_not(entries):
    assert as_doubles(entries, set(map(type, entries))) is None
    assert read([entries, entries]).structured == (len(entries) > 0)
