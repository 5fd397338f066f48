"""How batches are read: equal values have equal keys whatever they come in, and nothing odd is a crash."""

import math
import os
import subprocess
import sys

import numpy as np
import pytest

import dpassay
from dpassay.audit.outputs.outputs import LONGEST, join, part, read
from dpassay.errors import InputError, MechanismError
from dpassay.pipeline.mechanism import Failure


def key(value):
    (found,) = read([value]).keys().tolist()
    return found


# ── Numbers and vectors ─────────────────────────────────────────────────────────────────────────


def test_an_array_of_any_shape_has_one_row_an_output():
    array = np.arange(24).reshape(4, 2, 3)
    outputs = read(array)
    assert len(outputs) == 4
    assert outputs.width == 6
    assert outputs.kind == "vector[6]"
    assert outputs.numbers.tolist() == array.reshape(4, 6).tolist()
    assert outputs.numbers.dtype == np.float64


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint64, np.float16, np.float32, np.float64, np.longdouble])
def test_numbers_of_all_types(dtype):
    array = np.array([0, 1, 1], dtype=dtype)
    expected = read([0.0, 1.0, 1.0]).keys().tolist()
    assert read(array).keys().tolist() == read(list(array)).keys().tolist() == expected
    assert read(array).kind == "number"  # the dtype of a whole batch says nothing of one output
    kinds = {
        "b": "bool",
        "i": np.dtype(dtype).name,
        "u": np.dtype(dtype).name,
        "f": np.dtype(dtype).type.__name__ if dtype is not np.float64 else "number",
    }
    assert read(list(array)).kind == kinds[np.dtype(dtype).kind]
    assert read(array[:, None]).keys().tolist() == expected


def test_a_column_order_array_is_read_row_by_row():
    array = np.asfortranarray(np.arange(6.0).reshape(3, 2))
    assert read(array).keys().tolist() == read(np.ascontiguousarray(array)).keys().tolist()
    assert read(array[::-1]).keys().tolist() == read(array).keys().tolist()[::-1]


def test_equal_vectors_have_equal_keys_in_any_container():
    forms = [[1, 0, 2.5], (True, 0.0, 2.5), np.array([1, 0, 2.5]), np.array([1, 0, 2.5], dtype=np.float32)]
    forms.append(np.array([[1.0], [0.0], [2.5]]))  # a matrix is its entries in order
    assert len({key(form) for form in forms}) == 1
    mixed = read([*forms, None, "text", [1, 0]])
    assert mixed.numbers is None
    assert set(mixed.keys().tolist()[: len(forms)]) == {key(forms[0])}
    assert read(np.array([[1, 0, 2.5]])).keys().tolist() == [key(forms[0])]


def test_different_values_have_different_keys():
    values = [0.0, 1.0, -1.0, math.nan, math.inf, -math.inf, [0.0, 0.0], [0.0], [1.0, 0.0], [0.0, 1.0], [], None, ""]
    values += ["0", "0.0", "None", "nan", b"0", Failure("ValueError"), Failure("KeyError"), {"a": 1}, {"a": 2}, [None]]
    values += [["a"], ("a",), [[0.0]], [[0.0, 1.0]], 1j, 10**400, -(10**400), 10**400 + 1]
    equal = {str([0.0])}  # the number 0 and the vector (0) are one thing
    keys = [key(v) for v in values if str(v) not in equal]
    assert len(set(keys)) == len(keys)
    assert key([0.0]) == key(0.0)


def test_the_two_zeros_differ_and_nan_is_itself():
    assert key(0.0) != key(-0.0)
    assert key(np.array([0.0, 1.0])) != key(np.array([-0.0, 1.0]))
    assert key(math.nan) == key(float("nan")) == key(np.nan)


def test_whole_numbers_are_floats():
    assert key(3) == key(3.0) == key(np.uint8(3))
    assert key(2**60) == key(float(2**60)) == key(np.int64(2**60))


@pytest.mark.parametrize("form", [int, np.int64, lambda n: [n, 0], lambda n: np.array([0, n]), lambda n: {"a": (n,)}])
@pytest.mark.parametrize("number", [2**53, 2**53 + 2**20, -(2**53), 2**62])
def test_whole_numbers_are_never_rounded(form, number):
    assert key(form(number)) != key(form(number + 1))
    first, second = read([form(number), form(number + 1)]).rows()
    assert repr(first) == repr(form(number))  # a guesser of one's own sees them too
    assert repr(second) == repr(form(number + 1))


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_a_batch_of_large_whole_numbers_is_not_rounded(dtype):
    array = np.array([2**53, 2**53 + 1, 2**62 + 1], dtype=dtype)
    outputs = read(array)
    assert outputs.rows() == [2**53, 2**53 + 1, 2**62 + 1]
    assert len(set(outputs.keys().tolist())) == 3
    assert outputs.keys().tolist() == [key(2**53), key(2**53 + 1), key(2**62 + 1)]
    assert read(array[:1]).numbers.tolist() == [[2.0**53]]
    assert read(array[:1]).keys().tolist() == [key(2**53)]


def test_a_number_beyond_all_floats_is_an_output_like_others():
    huge = 10**400
    outputs = read([1, huge, huge])
    assert outputs.numbers is None
    keys = outputs.keys().tolist()
    assert keys[0] == key(1.0)
    assert keys[1] == keys[2] != keys[0]
    assert np.isnan(outputs.matrix(1)[1:]).all()
    assert read([10**6000]).keys().size == 1  # longer than Python writes in decimal
    assert read([[huge, 1]]).numbers is None


def test_every_coordinate_of_a_long_vector_names_it():
    long = np.zeros(3 * LONGEST + 5)
    keys = {key(long), key(long[:-1])}  # the length is in the name too
    for j in (0, LONGEST - 1, LONGEST, LONGEST + 1, 2 * LONGEST, len(long) - 1):
        other = long.copy()
        other[j] = 1
        keys.add(key(other))
    assert len(keys) == 8


# ── Everything else ─────────────────────────────────────────────────────────────────────────────


def test_text_of_any_type_is_text():
    assert key("yes") == key(np.str_("yes"))
    assert read(np.array(["yes", "no"])).keys().tolist() == read(["yes", "no"]).keys().tolist()
    assert read(np.array(["yes", "no"], dtype=object)).keys().tolist() == read(["yes", "no"]).keys().tolist()
    assert read(np.array(["yes", "no"])).kind == "text"
    assert read(np.array(["yes", "no"])).texts() == ["yes", "no"]


@pytest.mark.parametrize("text", ["", "🦓 zèbre", "nul\0nul", "\ud800 half a pair", "a" * 100_000, "\n\t "])
def test_odd_texts_have_keys(text):
    outputs = read([text, None])
    assert key(text) == outputs.keys().tolist()[0] != outputs.keys().tolist()[1]
    assert outputs.texts() == [text, ""]
    assert outputs.lengths()[0] == len(text)


def test_object_arrays():
    array = np.empty(4, dtype=object)
    array[:] = [1, None, "a", [1, 2]]
    outputs = read(array)
    assert outputs.numbers is None
    assert outputs.keys().tolist() == [key(1), key(None), key("a"), key([1, 2])]
    assert read(np.array([1, 2.5, True], dtype=object)).numbers.tolist() == [[1.0], [2.5], [1.0]]
    assert read(np.array([[1, "a"], [2, "b"]], dtype=object)).items == [[1, "a"], [2, "b"]]


def test_complex_numbers():
    array = np.array([1 + 2j, 3j])
    assert read(array).keys().tolist() == read(list(array)).keys().tolist() == [key(1 + 2j), key(3j)]


def test_the_order_of_a_dictionary_or_set_does_not_matter():
    assert key({"a": 1, "b": [2]}) == key({"b": [2], "a": 1})
    assert key({"a", "b", "c"}) == key({"c", "b", "a"})
    assert key({"a": 1}) != key({"a"})


def test_failures_are_told_apart_by_kind_not_by_what_they_say():
    assert key(Failure("ValueError", "empty text")) == key(Failure("ValueError", "other"))
    assert read([Failure("ValueError")]).kind == "fails: ValueError"


class Opaque:
    pass


class Rude:
    def __repr__(self):
        raise RuntimeError("no")

    def __bytes__(self):
        raise RuntimeError("no")


class Version:
    def __init__(self, number):
        self.number = number

    def __repr__(self):
        return f"version {self.number}"

    def __bytes__(self):
        return f"v{self.number}".encode()


def test_where_an_object_lies_in_memory_is_not_looked_at():
    # Addresses differ between runs for no reason of the mechanism's: they may only tell which batch came first.
    first, second = Opaque(), Opaque()
    assert repr(first) != repr(second)
    assert len(set(read([first, second], "repr").keys().tolist())) == 1
    assert len(set(read([{"a": [first]}, {"a": [second]}], "repr").keys().tolist())) == 1


@pytest.mark.parametrize("value", [Opaque(), [1, Opaque()], {"a": {"b": Opaque()}}, len, Opaque, iter([1]), Rude()])
def test_what_cannot_be_read_is_refused(value):
    with pytest.raises(MechanismError, match=r"output.* is of type .*, which cannot be read: return numbers"):
        read([value])


def test_the_path_of_what_cannot_be_read():
    with pytest.raises(MechanismError, match=r'^output\["a"\]\[1\] is of type .*Opaque, which'):
        read([{"a": [1, Opaque()]}])


def test_what_cannot_be_read_is_read_as_told():
    assert read([Version(1)], "repr").leaves[0]["repr(output)"] == "version 1"
    assert read([Version(1)], "bytes").leaves[0]["bytes(bytes(output))"] == b"v1"
    for how in ("repr", "bytes"):
        assert len(set(read([Version(1), Version(2), Version(1)], how).keys().tolist())) == 2
        with pytest.raises(MechanismError, match=f"has no {how}: RuntimeError: no"):
            read([Rude()], how)


def test_a_list_that_contains_itself_and_one_too_deep():
    loop = []
    loop.append(loop)
    deep = []
    for _ in range(20_000):
        deep = [deep]
    for value in (loop, deep):
        with pytest.raises(MechanismError, match="more than 64 levels deep, or contains itself"):
            read([value])


# ── What guessers ask ───────────────────────────────────────────────────────────────────────────


def test_a_matrix_is_cut_or_filled():
    outputs = read([[1, 2, 3], [4], [], 5.0, None, "text", np.array([[6, 7], [8, 9]]), Failure("E")])
    nan = math.nan
    expected = [[1, 2], [4, nan], [nan, nan], [5, nan], [nan, nan], [nan, nan], [6, 7], [nan, nan]]
    assert np.array_equal(outputs.matrix(2), expected, equal_nan=True)
    assert np.array_equal(read([[1, 2, 3]]).matrix(2), [[1, 2]])
    assert np.array_equal(read([[1, 2, 3]]).matrix(4), [[1, 2, 3, nan]], equal_nan=True)
    assert read(np.zeros((3, 2))).matrix(2).shape == (3, 2)


def test_a_matrix_that_no_memory_holds_is_refused():
    with pytest.raises(InputError, match="1000000000000 coordinates"):
        read([1.0]).matrix(10**12)


def test_lengths():
    values = ["abc", [1, 2], 5, np.zeros((2, 3)), None, {"a": 1}, Failure("E"), (), np.array("a"), np.array(["a", "b"])]
    nan = math.nan
    assert np.array_equal(read(values).lengths(), [3, 2, 1, 6, nan, 1, nan, 0, nan, 2], equal_nan=True)
    assert read(np.zeros((4, 7))).lengths().tolist() == [7.0] * 4


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (None, "none"),
        (True, "bool"),
        (5, "int"),
        (5.0, "number"),
        (np.float64(5.0), "number"),
        ([5], "vector[1], list of int"),
        ((5.0, 6.0), "vector[2], tuple of float"),
        ([], "vector[0], list"),
        (np.zeros(2), "vector[2]"),
        (np.zeros(2, dtype=np.int8), "vector[2] of int8"),
        (np.zeros((2, 2)), "vector[4], shape (2, 2)"),
        ("", "text"),
        ({}, "dict"),
        (["a"], "list"),
        ([[1]], "list"),
        (b"x", "bytes"),
        (10**400, "int"),
    ],
)
def test_kinds(value, kind):
    assert read([value]).kind == kind
    assert read([value, {"a": 1}]).kind == kind


# ── Empty batches, joining, cutting ─────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "batch",
    [[], (), np.zeros(0), np.zeros((0, 3)), np.zeros((0, 2, 3)), np.array([], dtype=object), np.array([], "U5")],
)
def test_an_empty_batch(batch):
    outputs = read(batch)
    assert len(outputs) == len(outputs.keys()) == len(outputs.lengths()) == len(outputs.matrix(3)) == 0
    assert outputs.texts() == outputs.rows() == []


def test_outputs_without_coordinates():
    outputs = read(np.zeros((5, 0)))
    assert len(outputs) == 5
    assert len(set(outputs.keys().tolist())) == 1
    assert outputs.keys().tolist()[0] == key([])


def test_joining_and_cutting():
    numbers = join([read([1, 2]), read(np.array([3.0]))])
    assert numbers.numbers.tolist() == [[1.0], [2.0], [3.0]]
    mixed = join([read([1, 2]), read(["a"]), read([[1, 2]])])
    assert mixed.numbers is None
    assert mixed.keys().tolist() == [key(1), key(2), key("a"), key([1, 2])]
    assert part(mixed, 1, 3).keys().tolist() == [key(2), key("a")]
    assert part(numbers, 1).numbers.tolist() == [[2.0], [3.0]]
    assert join([numbers]) is numbers
    wide = join([read(np.zeros((2, 3))), read(np.zeros((2, 4)))])
    assert wide.width is None
    assert wide.keys().tolist() == [key(np.zeros(3))] * 2 + [key(np.zeros(4))] * 2


def test_keys_are_the_same_in_every_process():
    values = "[1.5, 'a', None, {'x', 'y', 'z'}, {'b': 1, 'a': 2}, [1, 'b'], b'c', 2j]"
    code = f"from dpassay.audit.outputs.outputs import read; print(read({values}).keys().tolist())"
    found = {
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env).stdout
        for env in ({**os.environ, "PYTHONHASHSEED": "1"}, {**os.environ, "PYTHONHASHSEED": "2"})
    }
    assert found == {f"{[key(v) for v in eval(values)]}\n"}


def test_integers_of_different_sizes_are_different():
    def code(x, rng):
        drawn = int(rng.integers(5))
        return np.int32(drawn) if x and rng.random() < 0.4 else np.int64(drawn)

    verdict = dpassay.audit(code, [(0, 1)], epsilon=1, runs=2000)
    assert verdict.refuted
    assert "int32" in verdict.witness.event


def test_what_weighs_most_differs_between_the_inputs():
    """The outputs that are numbers have one length; how many are None tells the inputs apart."""

    def code(x, rng):
        return None if rng.random() < (0.3 if x else 0.1) else float(rng.normal())

    verdict = dpassay.audit(code, [(0, 1)], epsilon=0.5, runs=20_000)
    assert verdict.refuted
    assert "100%" not in verdict.witness.event
