"""Distinguishers as data: what files hold since dpassay/audit/2, and what is refused. Each kind is one class."""

import copy
import json
import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from dpassay.audit.distinguishers import fit_all
from dpassay.audit.distinguishers.base import KINDS, Distinguisher, array
from dpassay.audit.distinguishers.boosted_tables import BoostedTables
from dpassay.audit.distinguishers.combined.encoded import Encoded, LeafEncoder
from dpassay.audit.distinguishers.custom import CustomDistinguisher
from dpassay.audit.distinguishers.frequencies import Frequencies
from dpassay.audit.distinguishers.likelihood_ratio import LikelihoodRatio
from dpassay.audit.distinguishers.logistic_regression import LogisticRegression
from dpassay.audit.distinguishers.naive_bayes import NaiveBayes
from dpassay.audit.distinguishers.own_likelihood import OwnLikelihood
from dpassay.audit.distinguishers.statistic import Statistic
from dpassay.audit.outputs.outputs import read
from dpassay.audit.outputs.texts.ngrams import HASHED
from dpassay.audit.storage.checkpoint import RuleRecord, rule_of, rule_record
from dpassay.errors import InputError
from dpassay.pipeline.distributions import Laplace, Shifted
from sample_distinguishers import DISTINGUISHERS, DISTRIBUTIONS, OUTPUTS, X, Y

AT_HAND = [LikelihoodRatio(DISTRIBUTIONS), DISTINGUISHERS["own likelihood"], DISTINGUISHERS["encoded"]]

# ── The format of dpassay/audit/2 ───────────────────────────────────────────────────────────────

INF, NAN = math.inf, math.nan
ROME = zlib.crc32(b"rome") % 2**15  # the cell of a word
# The number of a row: its width and its bits, mixed.
MIXED = ((1 ^ 0x3FF0000000000000) * 0x9E3779B97F4A7C15) % 2**64
ONE = MIXED ^ (MIXED >> 29)  # of 1.0, whose bits are 0x3FF0…
LINEAR = {"kind": "Linear", "weights": [2.0, -1.0], "bias": 0.5, "missing": []}
ODDITIES = {
    "kind": "Counted",
    "of": "oddities",
    "names": ["vector[2]", "none"],
    "logs": [[-0.1, -8.0], [-0.1, -1.0]],
    "inputs": [[0.0, 0.0], "text"],
}
LARGE = {"kind": "Leaves", "look": "numbers", "paths": ['output["n"]', 'output["m"]']}
# What a file has, an output, and its score.
WRITTEN = {
    "coordinate": ({"kind": "Statistic", "name": "coordinate 1", "width": 2, "sign": -1.0, "inputs": []}, [3, 4], -4),
    "nearness": ({"kind": "Statistic", "name": "nearness", "width": 1, "sign": 1.0, "inputs": [[0.0], [2.0]]}, 2, 2),
    "linear": (LINEAR, [1, 1], 1.5),
    "missing": ({**LINEAR, "missing": [10.0, 100.0]}, [1, NAN], 102.5),
    "nonzero": ({**LINEAR, "nonzero": [10.0, 100.0]}, [1, 0], 12.5),
    "boosted": (
        {
            "kind": "Boosted",
            "features": "coordinates",
            "width": 2,
            "columns": [[0], [0, 2]],
            "edges": {"0": [0.0], "2": [1.0]},
            "tables": [[1.0, 2.0, 4.0], [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0], [6.0, 7.0, 8.0]]],
        },
        [3, 9],
        2 + 4,
    ),
    "values": (
        {"kind": "Counted", "of": "value", "names": [3, ONE], "logs": [[0.0, -1.0], [0.0, -3.0]], "inputs": [0, 1]},
        1,
        -2,
    ),
    "oddities": (ODDITIES, None, 7),
    "ngrams": ({"kind": "Ngrams", "cells": [ROME], "logs": [[-3.0], [-1.0]], "rest": [-4.0, -4.0]}, "Rome", 2),
    "shared words": ({"kind": "SharedWords", "words": [["rome"], ["oslo", "paris"]]}, "Paris or Oslo or Rome", 1),
    "nearest": ({"kind": "Nearest", "inputs": [[0.0], [1.0], [5.0]]}, 2, [-2, -1, -3]),
    "guarded": ({"kind": "Guarded", "base": LINEAR, "oddities": ODDITIES}, None, INF),
    "guarded likelihood": ({"kind": "Guarded", "base": {"kind": "Likelihood"}, "oddities": ODDITIES}, None, INF),
    "likelihood": ({"kind": "Likelihood"}, 7, 1),
    "leaves": (
        {**LARGE, "paths": ['output["b"]', 'output["a"][1]'], "offsets": [], "base": LINEAR},
        {"a": [9.0, 3.0], "b": 1},
        2 - 3 + 0.5,
    ),
    "a large number": (
        {**LARGE, "offsets": [hex(2**70), "-0x1"], "base": LINEAR},
        {"n": 2**70 + 3, "m": 1},
        2 * 3 - (1 + 1) + 0.5,
    ),
    "exclusive": (
        {
            "kind": "Exclusive",
            "intervals": [[1, 2.0, 3.0, 0]],
            "words": [["rome", 1]],
            "kinds": [["none", 1]],
            "width": 2,
            "inputs": [0, 1],
        },
        [7, 2.5],
        -1,
    ),
    "custom": ({"kind": "Own"}, "text", 4),
    "own likelihood": ({"kind": "OwnLikelihood"}, 7, 1),
    "encoded": (
        {"kind": "Encoded", "compared": [['output["code"]', "output"]], "base": None},
        {"seed": 5, "code": 6},
        1,
    ),
    "encoded, on a base": (
        {"kind": "Encoded", "compared": [['output["code"]', "output"]], "base": {**LINEAR, "weights": [0.0, 1.0, 2.0]}},
        {"seed": 5, "code": 7},
        7 * 6 - 7 * 5 + 2 * (-1 + 2) + 0.5,
    ),
}
GIVEN = (Shifted(Laplace(1), np.zeros(1)), Shifted(Laplace(1), np.ones(1)))
CUSTOM = CustomDistinguisher(lambda outputs: [len(o) for o in outputs])
OWN = [
    CUSTOM,
    OwnLikelihood(lambda output, x: -abs(output - x), (0, 1)),
    Encoded(LeafEncoder(lambda output, x: output["seed"] + x, (0, 1))),
]


@pytest.mark.parametrize("name", WRITTEN)
def test_a_saved_rule_is_read_and_written_as_it_always_was(name):
    data, output, expected = WRITTEN[name]
    candidates = len(np.atleast_1d(expected)) if np.ndim(expected) else 2
    rule = {"low": "-inf", "high": 0.5, "right": 5, "wrong": 1, "promise": 0.1, "grain": 1e-9, "candidates": candidates}
    record = RuleRecord.model_validate_json(json.dumps({"guesser": data, **rule}))
    found = rule_of(record, GIVEN, OWN)
    assert found.distinguisher.score(read([output])).tolist() == [expected]
    assert json.loads(json.dumps(rule_record(found).model_dump(mode="json"))) == {"guesser": data, **rule}


def test_every_kind_has_its_place_in_the_format():
    assert {data["kind"] for data, _, _ in WRITTEN.values()} == set(KINDS)
    assert all(kind.kind == name for name, kind in KINDS.items())
    assert {type(d) for d in DISTINGUISHERS.values()} | {CustomDistinguisher} == set(KINDS.values())


def test_a_new_distinguisher_is_one_class(monkeypatch):
    """It is fitted and read from files without being named anywhere else."""
    monkeypatch.setitem(KINDS, "Range", None)  # so that it is gone afterwards

    @dataclass(frozen=True)
    class Range(Distinguisher):
        scale: np.ndarray

        kind = "Range"
        order = 35
        description = "the range of the output"

        @classmethod
        def fit(cls, training) -> Iterator["Range"]:
            if training.vectors:
                yield cls(np.array([float(training.width)]))

        def score(self, outputs):
            return np.ptp(outputs.matrix(int(self.scale[0])), axis=1)

        @classmethod
        def _read(cls, data, at_hand):
            return cls(array(data["scale"], 1))

    rows = read([[1, 5], [2, 2]])
    (found,) = [d for d in fit_all([rows, rows], (0, 1)) if isinstance(d, Range)]
    again = Distinguisher.from_data(found.to_data())
    assert again.to_data() == {"kind": "Range", "scale": [2.0]}
    assert again.score(rows).tolist() == [4, 0]
    assert again.describe() == "the range of the output"


# ── There and back ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", DISTINGUISHERS)
def test_a_guesser_comes_back_bit_for_bit(name):
    distinguisher = DISTINGUISHERS[name]
    again = Distinguisher.from_data(json.loads(json.dumps(distinguisher.to_data())), AT_HAND)
    assert type(again) is type(distinguisher)
    assert again.describe() == distinguisher.describe()
    assert again.score(OUTPUTS).tobytes() == distinguisher.score(OUTPUTS).tobytes()
    assert again.to_data() == distinguisher.to_data() or "far" in name  # NaN aside, the data too


def test_fitted_distinguishers_come_back_bit_for_bit():
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(300, 3))
    data = [
        (rows + X, rows * 0.5 + Y),
        (["fly to Rome", "fly", None] * 100, ["stay in Rome", "fly", 3.5] * 100),
        (rows[:, 0].round(), rows[:, 1].round() + 1),
        ([[0] * k for k in rng.integers(0, 5, 300)], [[1] * k for k in rng.integers(2, 7, 300)]),
    ]
    kinds = set()
    for sides in data:
        seen = [read(side) for side in sides]
        for distinguisher in fit_all(seen, (X, Y), bits="also"):
            again = Distinguisher.from_data(json.loads(json.dumps(distinguisher.to_data())))
            for outputs in (*seen, OUTPUTS):
                expected = distinguisher.score(outputs)
                assert again.score(outputs).tobytes() == expected.tobytes(), distinguisher.describe()
            kinds |= {type(distinguisher), type(getattr(distinguisher, "base", distinguisher))}
    assert kinds >= {Statistic, LogisticRegression, BoostedTables, Frequencies, NaiveBayes}


def test_what_a_file_cannot_hold_must_be_at_hand():
    custom = CustomDistinguisher(len)
    assert Distinguisher.from_data(custom.to_data(), [*AT_HAND, custom]) is custom
    with pytest.raises(InputError, match="the guesser that was used then"):
        Distinguisher.from_data(custom.to_data(), AT_HAND)
    with pytest.raises(InputError, match=r"a mechanism with a method log_prob\(output, x\)"):
        Distinguisher.from_data({"kind": "OwnLikelihood"}, AT_HAND[:1])
    with pytest.raises(InputError, match=r"a mechanism with a method encode\(x, output\)"):
        Distinguisher.from_data(DISTINGUISHERS["encoded"].to_data(), AT_HAND[:1])
    with pytest.raises(InputError, match="a mechanism that knows its distribution"):
        Distinguisher.from_data({"kind": "Likelihood"}, [custom])


# ── Data that does not fit together ───────────────────────────────────────────────────────────


def changed(name, /, **changes):
    data = json.loads(json.dumps(DISTINGUISHERS[name].to_data()))
    return {**data, **changes}


WRONG = {
    "no kind": {},
    "unknown kind": {"kind": "Oracle"},
    "kind is a list": {"kind": ["Linear"]},
    "coordinate beyond": changed("coordinate", width=1),
    "coordinate below": changed("coordinate", name="coordinate -1"),
    "coordinate of text": changed("coordinate", name="the first"),
    "no width": changed("sum", width=0),
    "width of text": changed("sum", width="wide"),
    "width infinite": changed("sum", width=math.inf),
    "one input": changed("nearness", inputs=[[0, 0, 0]]),
    "inputs of two lengths": changed("nearness", inputs=[[0, 0, 0], [1, 1]]),
    "inputs of text": changed("nearness", inputs=["ab", "cd"]),
    "inputs missing": {k: v for k, v in changed("nearness").items() if k != "inputs"},
    "weights in two dimensions": changed("linear", weights=[[1, 2], [3, 4]]),
    "missing of another length": changed("linear", missing=[1.0]),
    "no weights": changed("linear", weights=[]),
    "ragged weights": changed("linear", weights=[[1], [2, 3]]),
    "weights of text": changed("linear", weights=["a"]),
    "bias missing": {"kind": "Linear", "weights": [1], "missing": []},
    "bias null": changed("linear", bias=None),
    "bias beyond": changed("linear", bias=10**400),
    "weight beyond": changed("linear", weights=[10**400]),
    "features unknown": changed("boosted", features="smell"),
    "feature beyond": changed("boosted", edges={"0": [0.0], "5": [0.0]}),
    "edges missing": changed("boosted", edges={"0": [0.0]}),
    "edges more than bins": changed("boosted", edges={"0": list(range(50)), "4": [0.0]}),
    "edges in two dimensions": changed("boosted", edges={"0": [[0.0]], "4": [0.0]}),
    "edges of a list": changed("boosted", edges=[[0.0]]),
    "table too small": changed("boosted", tables=[[1.0, 2.0], [[0.0] * 3] * 4]),
    "table too narrow": changed("boosted", tables=[[1.0] * 4, [[0.0] * 2] * 40]),
    "table too flat": changed("boosted", tables=[[1.0] * 4, [1.0] * 12]),
    "table too deep": changed("boosted", tables=[[[1.0] * 4] * 4, [[0.0] * 3] * 4]),
    "one table too few": changed("boosted", tables=[[1.0] * 4]),
    "one table too many": changed("boosted", columns=[[0]]),
    "a table of nothing": changed("boosted", columns=[[], [0, 4]]),
    "counted of what": changed("values", of="smell"),
    "names of text": changed("values", names=["a", "b", "c", "d"]),
    "names negative": changed("values", names=[-1, 2, 3, 4]),
    "names beyond": changed("values", names=[1, 2, 3, 2**64]),
    "names out of order": changed("values", names=[4, 3, 2, 1]),
    "names true": changed("values", names=[0, True, 2, 3]),
    "no names": changed("values", names=[], logs=[[], []]),
    "names that are lists": changed("oddities", names=[[1], [2], [3]]),
    "more names than columns": changed("values", logs=[[1.0], [2.0]]),
    "one row": changed("values", logs=[[1.0] * 4]),
    "flat logs": changed("values", logs=[1.0] * 4),
    "cells beyond": changed("ngrams", cells=[HASHED], logs=[[1.0], [2.0]]),
    "cells of text": changed("ngrams", cells=["a"], logs=[[1.0], [2.0]]),
    "logs of too few cells": changed("ngrams", logs=[[1.0], [2.0]]),
    "rest of one": changed("ngrams", rest=[1.0]),
    "rest of a million": changed("ngrams", rest=[1.0] * 10**6),
    "nearest of one": changed("nearest", inputs=[[0.0]]),
    "nearest of none": changed("nearest", inputs=[]),
    "nearest of two lengths": changed("nearest", inputs=[[0.0], [0.0, 1.0]]),
    "guard of no counts": changed("guarded", oddities=changed("linear")),
    "guard of three": changed("guarded", oddities=changed("values of three")),
    "guard for three": changed("guarded", base=changed("nearest")),
    "guard of text": changed("guarded", base="Linear"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_guesser_that_does_not_fit_together_is_refused(name):
    with pytest.raises(InputError, match="distinguisher that cannot be read"):
        Distinguisher.from_data(WRONG[name], AT_HAND)


def test_a_guesser_nested_too_deeply_is_refused():
    deep = changed("linear")
    for _ in range(5000):
        deep = {"kind": "Guarded", "base": deep, "oddities": changed("oddities")}
    with pytest.raises(InputError, match="distinguisher that cannot be read"):
        Distinguisher.from_data(deep, AT_HAND)


def test_a_guesser_for_vectors_that_no_memory_holds_is_refused_when_used():
    for data in (changed("sum", width=10**12), changed("boosted", width=10**12)):
        with pytest.raises(InputError, match="1000000000000 coordinates"):
            Distinguisher.from_data(data, AT_HAND).score(OUTPUTS)


def leaves(data, place=()):
    if isinstance(data, dict | list):
        for key, value in data.items() if isinstance(data, dict) else enumerate(data[:3]):
            yield from leaves(value, (*place, key))
    if place:
        yield place


@pytest.mark.parametrize("name", sorted(set(DISTINGUISHERS) - {"ngrams of three"}))
def test_no_damage_to_a_guesser_is_a_traceback(name):
    # Every value of its data is replaced by rubbish of every type; what is then read must score, or be refused.
    good = changed(name)
    for place in leaves(good):
        for rubbish in (None, -1, 10**400, math.nan, "x", [], {}, [[1], [2, 3]], True, 1e300):
            data = copy.deepcopy(good)
            inside = data
            for step in place[:-1]:
                inside = inside[step]
            inside[place[-1]] = rubbish
            try:
                distinguisher = Distinguisher.from_data(data, AT_HAND)
                scores = distinguisher.score(OUTPUTS)
            except InputError:
                continue
            assert len(scores) == len(OUTPUTS)
