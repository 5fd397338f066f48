"""Outputs taken apart, and audits of mechanisms that leak their input in one leaf of one type, or do not.

The leaking ones must be refuted, and the witness must name the path. The others have ε = 0, and are refuted with the
probability that `FALSE_ALARMS` states, all together.
"""

import dataclasses
import datetime
import decimal
import enum
import fractions
import math
import uuid
from collections import OrderedDict, deque, namedtuple
from types import SimpleNamespace

import numpy as np
import pytest

from dpassay import audit
from dpassay.audit.distinguishers.combined.guarded import Guarded
from dpassay.audit.distinguishers.frequencies import Frequencies
from dpassay.audit.distinguishers.statistic import Statistic
from dpassay.audit.outputs.leaves import leaves_of
from dpassay.audit.outputs.outputs import read
from dpassay.audit.storage.replay import replay
from dpassay.audit.testing.decision_rule import DecisionRule
from dpassay.errors import InputError, MechanismError
from dpassay.pipeline.mechanism import Failure
from dpassay.testing.assertion import AuditWarning, assert_dp
from statistics_helper import FALSE_ALARMS

Decimal, Fraction = decimal.Decimal, fractions.Fraction
DAY = datetime.datetime(2020, 1, 1)


class Colour(enum.Enum):
    RED = 0
    BLUE = 1


@dataclasses.dataclass
class Record:
    noise: list
    secret: object


Named = namedtuple("Named", "noise secret")


# ── By hand ─────────────────────────────────────────────────────────────────────────────────────


def plain(found):
    return {path: leaf.tolist() if isinstance(leaf, np.ndarray) else leaf for path, leaf in found.items()}


def test_the_leaves_of_plain_values():
    assert plain(leaves_of(1.5)) == {"output": 1.5}
    assert plain(leaves_of(3)) == {"type(output)": "int", "output": 3}
    assert plain(leaves_of("a b")) == {"type(output)": "str", "output": "a b", "len(output)": 3}
    assert plain(leaves_of(None)) == {"type(output)": "none", "output": None}
    assert plain(leaves_of(math.inf)) == {"output": math.inf, "type(output)": "infinite"}
    assert plain(leaves_of(1 + 2j)) == {"type(output)": "complex", "output.real": 1.0, "output.imag": 2.0}
    assert plain(leaves_of(Colour.BLUE)) == {"type(output)": "Colour", "output": "BLUE"}
    assert plain(leaves_of(Failure("KeyError"))) == {"type(output)": "fails: KeyError"}
    assert plain(leaves_of(b"\x01\xff")) == {
        "type(output)": "bytes",
        "bytes(output)": b"\x01\xff",
        "len(output)": 2,
        "output": [1.0, 255.0],
    }


def test_the_leaves_of_collections():
    assert plain(leaves_of([0.5, 1.5])) == {"type(output)": "list", "len(output)": 2, "output": [0.5, 1.5]}
    found = plain(leaves_of({"b": [True, "x"], 7: (1.0,)}))
    assert found['output["b"][0]'] == 1
    assert found['type(output["b"][0])'] == "bool"
    assert found['output["b"].index("x")'] == 1
    assert found["output[7]"] == [1.0]
    assert found["type(output[7])"] == "tuple"
    assert found["list(output)[0]"] == "b"
    assert found["list(output).index(7)"] == 1
    assert found["len(list(output))"] == 2


def test_the_leaves_of_arrays():
    found = plain(leaves_of(np.array([[1, 2], [3, 4]], dtype=np.int16)))
    assert found == {
        "type(output)": "ndarray",
        "output.dtype": "int16",
        "output.shape": "(2, 2)",
        "output.flat": [1.0, 2.0, 3.0, 4.0],
    }
    assert plain(leaves_of(np.array([3.0, 1.0])))["output.index(1)"] == 1
    assert plain(leaves_of(np.array(["a", "b"])))["output[1]"] == "b"
    assert plain(leaves_of(np.array([2**53 + 1])))["output[0]"] == 2**53 + 1


def test_equal_sets_have_equal_leaves_in_any_order():
    first, second = {"a", "b", "c", 1, (2, "d")}, {(2, "d"), 1, "c", "b", "a"}
    assert leaves_of(frozenset(first)) == leaves_of(frozenset(second))
    assert read([first]).keys().tolist() == read([second]).keys().tolist()
    assert read([first]).keys().tolist() != read([second - {"a"}]).keys().tolist()


SAME = [
    lambda: {"a": [1, {"b": (2.5, None)}]},
    lambda: Record([1.0], Colour.RED),
    lambda: OrderedDict(a=deque([1, 2])),
    lambda: SimpleNamespace(a=np.arange(3)),
    lambda: [DAY, DAY.date(), DAY.time(), DAY - DAY, Decimal("1.50"), Fraction(1, 3), uuid.UUID(int=5)],
    lambda: ValueError("a", 1),
]


@pytest.mark.parametrize("make", SAME)
def test_what_is_equal_has_equal_leaves(make):
    assert plain(leaves_of(make())) == plain(leaves_of(make()))


DIFFERENT = [
    (1, 1.0, True, "1", None, b"1", [1], (1,), {1}, frozenset([1]), {1: 1}, 1 + 0j, Decimal(1), Fraction(1)),
    (Decimal("1.5"), Decimal("1.50"), Decimal("NaN"), Decimal("Infinity"), Decimal("1e9999"), Decimal("1e9998")),
    (2**53, 2**53 + 1, 2**300, 2**300 + 1, -(2**300)),
    ([], [[]], [None], {}, {"a": None}, {"a": []}, set(), ()),
    (np.zeros(2), np.zeros(2, dtype=np.float32), np.zeros((2, 1)), np.zeros((1, 2)), [0.0, 0.0], np.zeros(3)),
    (np.longdouble(1), np.longdouble(1) + np.longdouble(2) ** -60, np.float64(1.5), np.float32(1.5)),
    (DAY, DAY + datetime.timedelta(microseconds=1), DAY.replace(tzinfo=datetime.UTC), DAY.replace(fold=1), DAY.date()),
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}, OrderedDict(a=1, b=2)),
    (["a", "b"], ["b", "a"], ["a", "b", "b"], ("a", "b"), deque(["a", "b"]), deque(["a", "b"], maxlen=4)),
    (Record([], 1), Record([], 2), Named([], 1), Named([], 2), SimpleNamespace(noise=[], secret=1)),
    (np.ma.MaskedArray([1.0, 2.0], [0, 1]), np.ma.MaskedArray([1.0, 2.0], [0, 0]), np.array([1.0, 2.0])),
    (np.datetime64(1, "ns"), np.datetime64(2, "ns"), np.timedelta64(1, "ns")),
    (ValueError("a"), ValueError("b"), KeyError("a")),
]


@pytest.mark.parametrize("values", DIFFERENT)
def test_what_differs_has_different_leaves(values):
    found = [str(plain(leaves_of(value))) for value in values]
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("kind", ["DataFrame", "Series"])
def test_what_is_said_of_the_data_of_a_frame_is_read(kind):
    frame = getattr(pytest.importorskip("pandas", reason="pandas is not installed"), kind)([1.0, 2.0])
    frame.attrs["records"] = 17
    assert leaves_of(frame)['output.attrs["records"]'] == 17


def test_too_many_leaves_are_refused(monkeypatch):
    monkeypatch.setattr("dpassay.audit.outputs.leaves.MOST_LEAVES", 100)
    assert leaves_of([0.5] * 1000)  # a row of numbers is one leaf
    with pytest.raises(MechanismError, match="more than 100 leaves; return fewer"):
        leaves_of([0.5, "a"] * 100)


# ── Audits ──────────────────────────────────────────────────────────────────────────────────────


def normals(rng):
    return rng.normal(size=8).tolist()


def beside(leaf):
    """Eight normals, and beside them the input as some leaf."""
    return lambda x, rng: {"noise": normals(rng), "secret": leaf(x)}


def masked_bit(x, rng):
    mask = int(rng.integers(0, 2))
    return {"noise": normals(rng), "mask": mask, "masked": mask ^ x}


def shared(x, rng):
    share = 100 * rng.normal()
    return {"one": share, "noise": normals(rng), "other": x - share}


def in_the_first_half(x, rng):
    words = [f"w{i}" for i in 1 + rng.permutation(7)]
    words.insert(int(rng.integers(0, 4)) + 4 * (1 - x), "w0")
    return words


def torch_tensor(x, rng):
    return pytest.importorskip("torch").tensor([*normals(rng), float(x)])


def bfloat(x, rng):
    torch = pytest.importorskip("torch")
    return {"noise": torch.tensor(normals(rng)), "secret": torch.tensor([x], dtype=torch.bfloat16)}


def frame(x, rng):
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame({"noise": normals(rng), "secret": [x] * 8})


def series(x, rng):
    return pytest.importorskip("pandas").Series([*normals(rng), float(x)])


def index(x, rng):
    return pytest.importorskip("pandas").Series(normals(rng)[:2], index=["a", "b" if x else "c"])


def category(x, rng):
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame({"noise": normals(rng)[:2], "c": pandas.Categorical([["u", "v"][x], "v"])})


SECRET = 'output["secret"]'
LEAKS = {
    "whole number": (beside(lambda x: x), SECRET),
    "beyond 2**53": (beside(lambda x: 2**53 + x), SECRET),
    "300 bits": (beside(lambda x: 2**300 + x), SECRET),
    "numpy integer": (beside(lambda x: np.int64(2**53 + x)), SECRET),
    "float": (beside(float), SECRET),
    "truth value": (beside(bool), SECRET),
    "text": (beside(lambda x: ["yes", "no"][x]), SECRET),
    "bytes": (beside(lambda x: bytes([7, x])), SECRET),
    "none": (beside(lambda x: None if x else 5), SECRET),
    "nan": (beside(lambda x: math.nan if x else 0.5), SECRET),
    "category": (beside(Colour), SECRET),
    "complex": (beside(lambda x: complex(1, x)), f"{SECRET}.imag"),
    "Decimal": (beside(lambda x: Decimal("0.1") + x * Decimal("1e-25")), SECRET),
    "Fraction": (beside(lambda x: Fraction(1, 3) + Fraction(x, 10**30)), SECRET),
    "datetime": (beside(lambda x: DAY + datetime.timedelta(microseconds=x)), SECRET),
    "type": (beside(lambda x: 1.0 if x else 1), f"type({SECRET})"),
    "dtype": (beside(lambda x: np.zeros(3, dtype=[np.float32, np.float64][x])), f"{SECRET}.dtype"),
    "shape": (beside(lambda x: np.zeros((2, 3) if x else (3, 2))), f"{SECRET}.shape"),
    "length": (beside(lambda x: [None] * (2 + x)), f"len({SECRET})"),
    "set": (beside(lambda x: {"a", ["b", "c"][x]}), f"in {SECRET}"),
    "keys": (lambda x, rng: {"noise": normals(rng), "ab"[x]: 0.5}, "list(output)"),
    "order of keys": (lambda x, rng: dict([("a", rng.normal()), ("b", rng.normal())][:: [1, -1][x]]), "list(output)"),
    "lists of lists": (lambda x, rng: [normals(rng), [0.5, float(x)]], "output[1][1]"),
    "tuples": (lambda x, rng: (tuple(normals(rng)), ("a", x)), "output[1][1]"),
    "deep": (lambda x, rng: [{"a": ({"b": [normals(rng), {"c": x}]},)}], 'output[0]["a"][0]["b"][1]["c"]'),
    "dataclass": (lambda x, rng: Record(normals(rng), x), "output.secret"),
    "named tuple": (lambda x, rng: Named(normals(rng), x), "output.secret"),
    "records": (lambda x, rng: [Record(normals(rng), 0), Record([], x)], "output[1].secret"),
    "numbers in a set": (lambda x, rng: {*normals(rng), 100.0 + x}, "sorted(output)[8]"),
    "complex array": (lambda x, rng: np.array([*normals(rng), 1j * x]), "output.imag"),
    "raw bytes": (lambda x, rng: rng.bytes(8) + bytes([x]), "output[8]"),
    "torch tensor": (torch_tensor, "output[8]"),
    "bfloat16": (bfloat, SECRET),
    "data frame": (frame, SECRET),
    "series": (series, "output[8]"),
    "index": (index, "output.index"),
    "categories": (category, 'output["c"]'),
    "position": (in_the_first_half, 'output.index("w0")'),
    "pair of bits": (masked_bit, '(output["mask"] + output["masked"]) % 2'),
    "shares": (shared, 'output["one"] + output["other"]'),
    "plain vector": (
        lambda x, rng: (z := 100 * rng.normal(), [z, *normals(rng), z + x])[1],
        "entries that repeat another",
    ),
}


@pytest.mark.long(every=3)
@pytest.mark.parametrize("name", LEAKS)
def test_a_leak_in_one_leaf_is_found_and_its_path_is_named(name):
    mechanism, path = LEAKS[name]
    verdict = audit(mechanism, [(0, 1)], epsilon=1, runs=1500, bits=False, shrink=False, until_refuted=True)
    assert verdict.word == "refuted"
    assert verdict.runs < 600
    assert path in verdict.witness.event


@pytest.mark.long(every=3)
@pytest.mark.parametrize("leak", LEAKS)
def test_the_same_without_a_leak_is_left_alone(leak):
    mechanism, _ = LEAKS[leak]
    name = "audits of leaves that do not leak"
    alpha = FALSE_ALARMS[name] / len(LEAKS)

    def escape_control_chars(x, rng):
        return mechanism(int(rng.integers(0, 2)), rng)

    verdict = audit(escape_control_chars, [(0, 1)], epsilon=1, runs=700, alpha=alpha, bits=False)
    assert verdict.word == "open"
    assert not verdict.warnings
    assert verdict.runs > 600


def test_a_batch_of_integers_beyond_2_to_the_53():
    def mechanism(x, n, rng):
        return 2**53 + x + 2 * rng.integers(0, 2, n)

    assert audit(mechanism, [(0, 1)], epsilon=1, runs=2000, shrink=False).word == "refuted"


def test_a_guesser_of_ones_own_sees_outputs_as_they_came():
    seen = []

    def parity(outputs):
        seen.extend(outputs)
        return [y % 2 for y in outputs]

    def mechanism(x, n, rng):
        return 2**60 + x + 2 * rng.integers(0, 50, n)

    assert audit(mechanism, [(0, 1)], epsilon=1, runs=2000, guesser=parity, shrink=False).word == "refuted"
    assert all(type(y) is int for y in seen)


def test_a_batch_may_be_a_tensor_or_a_data_frame():
    torch, pandas = pytest.importorskip("torch"), pytest.importorskip("pandas")

    def tensor(x, n, rng):
        return torch.tensor(np.column_stack([rng.normal(size=(n, 3)), np.full(n, x)]))

    def rows(x, n, rng):
        return pandas.DataFrame({"noise": rng.normal(size=n), "secret": np.full(n, x)})

    for mechanism, path in ((tensor, "output[3]"), (rows, SECRET)):
        verdict = audit(mechanism, [(0, 1)], epsilon=1, runs=1500, bits=False, shrink=False, until_refuted=True)
        assert verdict.word == "refuted"
        assert path in verdict.witness.event


# ── Refusals, and audits that see nothing ───────────────────────────────────────────────────────


class Opaque:
    def __init__(self, x):
        self.x = x

    def __repr__(self):
        return f"<Opaque {self.x} at 0x7f{id(self):x}>"


def test_outputs_that_cannot_be_read_are_refused_and_read_if_told_so():
    def mechanism(x, rng):
        return [normals(rng), Opaque(x)]

    with pytest.raises(MechanismError, match=r"output\[1\] is of type .*Opaque, which cannot be read"):
        audit(mechanism, [(0, 1)], epsilon=1, runs=500)
    verdict = audit(mechanism, [(0, 1)], epsilon=1, runs=500, unknown="repr", shrink=False)
    assert verdict.word == "refuted"
    assert "repr(output[1])" in verdict.witness.event
    with pytest.raises(InputError, match="unknown must be one of refuse, repr, bytes, got 'pickle'"):
        audit(mechanism, [(0, 1)], epsilon=1, unknown="pickle")


@pytest.mark.parametrize("fixed", [False, True])
def test_an_audit_that_can_learn_no_rule_goes_on_to_its_end_and_says_so(fixed):
    def silent(outputs):
        return [math.nan] * len(outputs)

    verdict = audit(lambda x, rng: x, [(0, 1)], epsilon=1, runs=3000, fixed=fixed, guesser=silent)
    assert verdict.word == "open"
    assert "nothing could be tested" in verdict.reason
    assert [w for w in verdict.warnings if w.startswith("Nothing was tested")]
    assert 3000 - 40 < verdict.runs <= 3000
    assert verdict.witness is None


def test_a_rule_that_comes_late_is_used():
    """A guesser that is silent for the first outputs: the next training gives a rule."""
    calls = []

    def late(outputs):
        calls.append(len(outputs))
        return [math.nan if sum(calls) < 300 else float(y) for y in outputs]

    assert audit(lambda x, rng: x, [(0, 1)], epsilon=1, runs=5000, guesser=late, shrink=False).word == "refuted"


def test_pytest_is_warned_of_an_audit_that_saw_nothing():
    def silent(outputs):
        return [math.nan] * len(outputs)

    with pytest.warns(AuditWarning, match="Nothing was tested"):
        assert_dp(lambda x, rng: x + rng.random(), [(0, 1)], epsilon=1, runs=500, guesser=silent)


def test_a_saved_audit_of_leaves_is_replayed_and_continued(tmp_path):
    def mechanism(x, rng):
        return {"noise": normals(rng), "secret": 2**60 + 3 * x + int(rng.integers(0, 5))}

    asked = {"pairs": [(0, 1)], "epsilon": 0.3, "save": tmp_path / "a.json", "bits": False, "shrink": False}
    assert audit(mechanism, runs=20, **asked).word == "open"
    verdict = audit(mechanism, runs=20_000, resume=True, **asked)
    assert verdict.word == "refuted"
    assert SECRET in verdict.witness.event
    assert '"Leaves"' in (tmp_path / "a.json").read_text()
    assert replay(tmp_path / "a.json", mechanism, seed=1).ok


def test_the_best_of_many_pairs_is_found_by_a_leaf():
    """Only one of twenty inputs leaks, and only in a leaf."""

    def mechanism(x, rng):
        return {"noise": normals(rng), "secret": [Colour(int(x == 13)), None]}

    options = {"runs": 30_000, "bits": False, "shrink": False, "until_refuted": True}
    verdict = audit(mechanism, inputs=list(range(20)), epsilon=1, **options)
    assert verdict.word == "refuted"
    assert 13 in verdict.witness.inputs


@pytest.mark.parametrize("guard", [False, True])
def test_the_words_of_a_rule_give_the_numbers_of_the_outputs(guard):
    """The first input gives 33 to 35, the second 30 to 32: the score is turned, and the words must not be."""
    found = Statistic("coordinate 0", 1, -1.0)
    anomalies = Frequencies("oddities", ("number",), np.zeros((2, 1)), (0, 1))
    rule = DecisionRule(Guarded(found, anomalies) if guard else found, -33.25, -31.75, 9, 0, 1.0, resolution=1.0)
    assert rule.count(read([33.0, 35.0]), 0) == (1, 0)  # scores of -33 and -35
    words = "the first input where it is at least 33.25 and the second input where it is at most 31.75"
    assert rule.describe().endswith(words)


def test_the_places_of_a_decimal_are_a_number():
    assert leaves_of(Decimal("1.50"))["output.as_tuple().exponent"] == -2
    assert "output.as_tuple().exponent" not in leaves_of(Decimal("NaN"))
