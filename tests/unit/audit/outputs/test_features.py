"""What distinguishers look at, by hand: bins, bits, lengths, anomalies."""

import math

import numpy as np

from dpassay.audit.distinguishers.boosted_tables import BoostedTables
from dpassay.audit.outputs.features import (
    FEATURES,
    MOST_COPIED,
    anomalies,
    binned,
    feature_count,
    feature_name,
)
from dpassay.audit.outputs.outputs import as_row, read
from dpassay.pipeline.mechanism import Failure

NAN, INF = math.nan, math.inf


def named(values, inputs=()):
    codes, meaning = anomalies(read(values), inputs)
    return [meaning[code] for code in codes.tolist()]


def test_bins_have_their_edge_and_nan_its_own():
    edges = np.array([0.0, 1.0])
    assert binned(np.array([-1, -0.0, 0, 0.5, 1, 2, INF, -INF, NAN]), edges).tolist() == [0, 1, 1, 1, 2, 2, 2, 0, 3]
    assert binned(np.array([5.0, NAN]), np.array([])).tolist() == [0, 1]


def test_float_bits():
    identity = {j: np.arange(1.0, 2049.0) for j in range(4)}
    column = {
        j: BoostedTables("float bits", 1, ((j,),), {j: edges}, (np.arange(2050.0),)) for j, edges in identity.items()
    }
    # 1.5 is 3·2^−1: exponent 1023, mantissa 1000…, 51 zeros behind it; 1 + 2^−52 ends in a one.
    outputs = read([1.5, 1 + 2**-52, 0.0, 4.0])
    assert column[0].score(outputs).tolist() == [51, 0, 0, 52 + 0]
    assert column[1].score(outputs).tolist() == [1023, 1023, 0, 1025]
    # Their last ones stand for 2^−1, 2^−52, nothing and 2^2: exponents are counted from −1023, mantissas from 2^−52.
    assert column[2].score(outputs).tolist() == [1023 + 51, 1023, 0, 1025 + 52]
    assert column[3].score(outputs).tolist() == [0, 1, 0, 0]
    # After these four of each coordinate, its 52 bits one by one: 1.5 has the highest, 1 + 2^−52 the lowest.
    bits = [BoostedTables("float bits", 1, ((4 + k,),), {4 + k: np.array([0.5])}, (np.arange(3.0),)) for k in (0, 51)]
    assert [bit.score(outputs).tolist() for bit in bits] == [[0, 1, 0, 0], [1, 0, 0, 0]]
    assert feature_count("float bits", 4) == 4 * (4 + 52)
    assert feature_name("float bits", 4 * 4 + 52 + 7, 4) == "bit 7 of the mantissa of output[1]"
    assert feature_count("coordinates", 4) == 7
    assert feature_count("lengths", 1) == feature_count("where the output ends", 9) == 2


def test_lengths_and_words():
    edges = np.arange(1.0, 30.0)
    length, words = (BoostedTables("lengths", 1, ((j,),), {j: edges}, (np.arange(31.0),)) for j in (0, 1))
    outputs = read(["fly to Rome", "", [1, 2, 3], None])
    assert length.score(outputs).tolist() == [11, 0, 3, 30]
    assert words.score(outputs).tolist() == [3, 0, 0, 0]


def test_where_outputs_end():
    count = BoostedTables("where the output ends", 3, ((0,),), {0: np.arange(1.0, 4.0)}, (np.arange(5.0),))
    last = BoostedTables("where the output ends", 3, ((1,),), {1: np.array([10.0])}, (np.array([-1.0, 1.0, 9.0]),))
    outputs = read([[1, NAN, NAN], [1, 20, NAN], [1, 2, 30], [NAN, NAN, NAN], [5]])
    assert count.score(outputs).tolist() == [1, 2, 3, 0, 1]
    assert last.score(outputs).tolist() == [-1, 1, 1, 9, -1]


def test_anomalies_of_numbers():
    assert named([1.0, NAN, INF, -INF]) == ["number", "number, NaN", "number, infinite", "number, infinite"]
    rows = np.array([[1, 2], [NAN, INF], [1e308, 1e308]])
    assert named(rows) == named(list(rows)) == ["vector[2]", "vector[2], NaN, infinite", "vector[2]"]


def test_types_are_told_apart():
    scalars = [1.0, 1, True, np.float32(1), np.int8(1), np.int64(1)]
    assert named(scalars) == ["number", "int", "bool", "float32", "int8", "int"]
    found = named([[1.0], (1.0,), [1], np.ones(1), np.ones((1, 1)), np.ones(1, dtype=np.float32)])
    assert len(set(found)) == 6


def test_anomalies_of_mixtures():
    values = [1, NAN, [1, 2], None, "a", Failure("E"), {}, [NAN]]
    expected = ["int", "number, NaN", "vector[2], list of int", "none", "text", "fails: E", "dict"]
    expected.append("vector[1], list of float, NaN")
    assert named(values) == expected


def test_copies_of_coordinates():
    inputs = ([0.0, 5.0, 7.0], [0.0, 6.0, 8.0])
    rows = [[0, 1, 1], [9, 5, 9], [9, 9, 8], [0, 5, 8], [5, 9, 9]]
    # The first coordinate is both inputs' own: it tells nothing. And a value counts in its own place only.
    copies = ["", ", copies input 0", ", copies input 1", ", copies input 0, copies input 1", ""]
    assert named(np.array(rows), inputs) == [f"vector[3]{c}" for c in copies]
    assert named(rows, inputs) == [f"vector[3], list of int{c}" for c in copies]
    assert named([*rows, None], inputs)[:-1] == [f"vector[3], list of int{c}" for c in copies]
    assert named(np.array([[0, 5], [9, 9]]), inputs) == ["vector[2]", "vector[2]"]  # of another length: no copy
    assert named([1.0, 2.0], (1, 3)) == ["number, copies input 0", "number"]
    assert named([{"a": 1.5}, {"a": 2.0}], (1.5, 2.0)) == ['dict, output["a"] copies input 0', "dict"]
    assert named([{"a": ["fly"]}, {"a": []}], ("fly", "b")) == ['dict, output["a"][0] copies input 0', "dict"]
    assert named([{"a": [5.0, 6.0]}], ([5.0, 6.0], [0.0, 0.0])) == ['dict, output["a"] copies input 0']
    assert named([1.0], ("1", 1)) == ["number"]


def test_copies_of_no_number():
    assert named([NAN], (NAN, 0.0)) == ["number, NaN"]
    assert named([INF], (INF, 0.0)) == ["number, infinite, copies input 0"]
    assert named([-0.0], (0.0, 1.0)) == ["number, −0.0, copies input 0"]  # as numbers, the two zeros are one


def test_copies_of_texts():
    inputs = ("fly to Rome", "stay", "fly")
    expected = ["text, copies input 0", "text, copies input 1", "text", "none"]
    assert named(["fly to Rome", "stay", "Fly", None], inputs) == expected
    assert named([np.str_("fly"), np.array("fly")], inputs)[0] == "text, copies input 2"


def test_only_so_many_inputs_are_looked_for():
    inputs = tuple(float(i) for i in range(MOST_COPIED + 2))
    found = named([0.0, float(MOST_COPIED - 1), float(MOST_COPIED)], inputs)
    assert found == ["number, copies input 0", f"number, copies input {MOST_COPIED - 1}", "number"]


def test_inputs_as_rows():
    assert as_row([1, 2]).tolist() == as_row(np.array([1, 2])).tolist() == [1.0, 2.0]
    assert as_row(3).tolist() == [3.0]
    assert as_row("3") is as_row(None) is as_row([[1]]) is as_row({"a": 1}) is as_row(10**400) is None


def test_where_numbers_that_are_not_0_stand():
    rows = read(np.array([[0.0, 2.5, 0.0, -1.0, np.nan], [0.0, 0.0, 0.0, 0.0, 0.0], [7.0, 1.0, 3.0, 9.0, 0.0]]))
    column = FEATURES["where the output is not 0"](rows, 5)
    found = np.column_stack([column(j) for j in range(feature_count("where the output is not 0", 5))])
    expected = [[1, 3, np.nan, 2], [np.nan, np.nan, np.nan, 0], [0, 1, 2, 4]]
    assert np.array_equal(found, expected, equal_nan=True)
    assert feature_name("where the output is not 0", 1, 5) == "where the second number that is not 0 stands"
