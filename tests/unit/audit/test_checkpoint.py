"""Audits on file: all that is written comes back bit for bit, and a damaged file is one sentence."""

import copy
import json
import math
import zlib

import numpy as np
import pytest

from dpassay.audit.attacks import (
    Boosted,
    Counted,
    CustomDistinguisher,
    Guarded,
    Likelihood,
    Linear,
    Nearest,
    Ngrams,
    Statistic,
)
from dpassay.audit.checkpoint import (
    LARGEST_FILE,
    Asked,
    Journal,
    game_of,
    game_record,
    guesser_data,
    guesser_of,
    load,
    save,
)
from dpassay.audit.decision_rule import DecisionRule, Hypothesis, learnt
from dpassay.audit.experiment import MOST_ROWS, Epoch, Experiment, Game
from dpassay.audit.features import HASHED
from dpassay.audit.inference import Counts, anytime_bound, log_evidence
from dpassay.audit.outputs import read
from dpassay.audit.sequential import anytime
from dpassay.audit.targets import as_mechanism
from dpassay.errors import InputError
from dpassay.pipeline.distributions import Laplace, Shifted
from dpassay.pipeline.mechanism import Failure

RNG = np.random.default_rng(1)
X, Y = np.array([0.0, 1 / 3, -1.0]), np.array([1.0, 1 / 3, 2.0])
LAWS = (Shifted(Laplace(1), X), Shifted(Laplace(1), Y))
KEYS = tuple(sorted(int(read([v]).keys()[0]) for v in (0, 1, "fly", None)))
ODDITIES = Counted("oddities", ("number", "text", "none"), RNG.normal(size=(2, 3)) * 4, (X, Y))
BATCH = [0, 1.5, None, "fly to Rome", "fly", "🦓", [0.1, 0.2, 0.3], X, math.nan, [1, math.inf, 0], Failure("E"), [1, 2]]
OUTPUTS = read(BATCH)


def ngrams(rows):
    logs = np.full((rows, HASHED), math.log(0.5 / 7))
    logs[:, 1:400] = np.log(RNG.integers(0, 4, size=(rows, 399)) + 0.5)
    logs[0, 0] = 2.0  # cell 0 is in use
    logs[:, zlib.crc32(b"fly") % HASHED] = 1 / 3  # and one that says the same of all
    return Ngrams(logs)


GUESSERS = {
    "coordinate": Statistic("coordinate 1", 3, -1.0),
    "sum": Statistic("sum", 3),
    "nearness": Statistic("nearness", 3, 1.0, (X, Y)),
    "far": Statistic("nearness", 3, 1.0, (np.array([math.inf, -0.0, 5e-324]), Y)),
    "linear": Linear(RNG.normal(size=3), 1 / 3),
    "linear with missing": Linear(RNG.normal(size=3), 1 / 3, RNG.normal(size=3)),
    "boosted": Boosted(
        "coordinates",
        3,
        ((0,), (0, 4)),
        {0: np.array([-0.1, 0.2]), 4: np.array([0.0])},
        (RNG.normal(size=4), RNG.normal(size=(4, 3))),
    ),
    "bits": Boosted("float bits", 3, ((4,),), {4: np.array([1023.0])}, (RNG.normal(size=39),)),
    "values": Counted("value", KEYS, RNG.normal(size=(2, 4))),
    "values of three": Counted("value", KEYS, RNG.normal(size=(3, 4))),
    "oddities": ODDITIES,
    "texts": Counted("oddities", ("text", "text, copies input 0"), RNG.normal(size=(2, 2)), ("fly to Rome", "\ud800")),
    "ngrams": ngrams(2),
    "ngrams of three": ngrams(3),
    "nearest": Nearest((X, Y, X + Y)),
    "guarded": Guarded(Linear(RNG.normal(size=3), 0.1), ODDITIES),
    "guarded likelihood": Guarded(Likelihood(LAWS), ODDITIES),
    "likelihood": Likelihood(LAWS),
}
ASKED = {
    "version": "0.1.0",
    "subject": {"kind": "object", "type": "tests"},
    "inputs": "0" * 64,
    "epsilon": 1.0,
    "delta": 0.0,
    "alpha": 0.001,
    "neighbours": "any",
    "seed": 7,
    "fixed": 0,
    "bits": False,
}


def columns(guesser):
    scores = guesser.scores(OUTPUTS)
    return 2 if scores.ndim == 1 else scores.shape[1]


def rule(guesser, low=-math.inf, high=0.5, grain=1e-9):
    return DecisionRule(guesser, low, high, 5, 1, 0.1, grain, columns(guesser))


def game(guesser=None, **changes):
    guesser = GUESSERS["linear"] if guesser is None else guesser
    epochs = [
        Epoch(rule(guesser), Counts(5, 3, 10, 6.5, 1.25, 1), 20, 60, False, ((4, 1), (6, 1))),
        Epoch(rule(guesser, -1 / 3, math.inf), Counts(0, 0, 0, 0.5, 0.5, 2), 0, 10**15, True),
    ]
    return Game(epochs, 30, **changes)


def journal(of=None):
    of = game() if of is None else of
    inputs = tuple(X + k for k in range(of.epochs[0].rule.candidates)) if of.epochs else (X, Y)
    record = game_record(of, inputs, 0, 0.0009)
    asked = Asked(**ASKED)
    return Journal(asked=asked, verdict="unfinished", runs=30, searched=0, main=record, witness=None)


# ── There and back ──────────────────────────────────────────────────────────────────────────────


def test_every_kind_of_guesser_is_here():
    every = {Statistic, Linear, Boosted, Counted, Ngrams, Nearest, Guarded, Likelihood}
    assert {type(g) for g in GUESSERS.values()} == every


@pytest.mark.parametrize("name", GUESSERS)
def test_a_guesser_comes_back_bit_for_bit(name):
    guesser = GUESSERS[name]
    again = guesser_of(json.loads(json.dumps(guesser_data(guesser))), LAWS)
    assert type(again) is type(guesser)
    assert again.describe() == guesser.describe()
    assert again.scores(OUTPUTS).tobytes() == guesser.scores(OUTPUTS).tobytes()
    assert guesser_data(again) == guesser_data(guesser) or "far" in name  # NaN aside, the data too


@pytest.mark.parametrize("name", GUESSERS)
def test_a_game_comes_back_from_a_file_bit_for_bit(name, tmp_path):
    path = tmp_path / "audit.json"
    played = game(GUESSERS[name])
    written = journal(played)
    save(written, path)
    found = load(path)
    assert found.model_dump(exclude={"main"}) == written.model_dump(exclude={"main"})
    again = game_of(found.main, LAWS)
    assert again.runs == played.runs
    for one, other in zip(again.epochs, played.epochs, strict=True):
        assert one.tally == other.tally
        assert (one.learnt_from, one.length, one.singly, one.sizes) == (
            other.learnt_from,
            other.length,
            other.singly,
            other.sizes,
        )
        assert one.rule.count(OUTPUTS, 0) == other.rule.count(OUTPUTS, 0)
        assert (one.rule.low, one.rule.high, one.rule.grain) == (other.rule.low, other.rule.high, other.rule.grain)
        assert one.rule.describe() == other.rule.describe()
    assert log_evidence(again.tallies, 0.5) == log_evidence(played.tallies, 0.5)
    assert anytime_bound(again.tallies, 0.05) == anytime_bound(played.tallies, 0.05)
    assert list(tmp_path.iterdir()) == [path]  # nothing half-written is left


def test_guessers_that_were_learnt_come_back_bit_for_bit():
    rows = RNG.normal(size=(300, 3))
    data = [
        (rows + X, rows * 0.5 + Y),
        (["fly to Rome", "fly", None] * 100, ["stay in Rome", "fly", 3.5] * 100),
        (rows[:, 0].round(), rows[:, 1].round() + 1),
        ([[0] * k for k in RNG.integers(0, 5, 300)], [[1] * k for k in RNG.integers(2, 7, 300)]),
    ]
    kinds = set()
    for sides in data:
        seen = [read(side) for side in sides]
        for guesser in learnt(seen, (X, Y), bits="also"):
            again = guesser_of(json.loads(json.dumps(guesser_data(guesser))), None)
            for outputs in (*seen, OUTPUTS):
                assert again.scores(outputs).tobytes() == guesser.scores(outputs).tobytes(), guesser.describe()
            kinds |= {type(guesser), type(getattr(guesser, "base", guesser))}
    assert kinds >= {Statistic, Linear, Boosted, Counted, Ngrams}


def test_a_game_goes_on_from_a_file_as_if_nothing_had_happened(tmp_path):
    table = Experiment(as_mechanism(lambda x, n, rng: x + rng.laplace(size=n)), (0.0, 1.0), Hypothesis(1.0), 3)

    def steps(of):
        return anytime(table, of, 3000, 0.001)

    whole = Game(kept=[[], []])
    for _ in steps(whole):
        pass
    first = Game(kept=[[], []])
    going = steps(first)
    for _ in range(9):
        next(going)
    path = tmp_path / "audit.json"
    record = game_record(first, (0.0, 1.0), 0, 0.001)
    save(Journal(asked=Asked(**ASKED), verdict="unfinished", runs=0, searched=0, main=record, witness=None), path)
    second = game_of(load(path).main, None)
    second.kept = [[], []]
    for _ in steps(second):
        pass
    assert second.tallies == whole.tallies
    assert [e.sizes for e in second.epochs] == [e.sizes for e in whole.epochs]
    assert second.runs == whole.runs


def test_texts_of_all_characters_are_written(tmp_path):
    path = tmp_path / "audit.json"
    for text in ("🦓", "nul\0", "\ud800 half a pair", "\u2028"):
        record = game_record(Game([], 5), (text, "other"), 0, 0.001)
        save(Journal(asked=Asked(**ASKED), verdict="open", runs=5, searched=0, main=record, witness=None), path)
        assert load(path).main.inputs == [text, "other"]


def test_infinite_thresholds_are_text_that_any_json_reader_takes(tmp_path):
    path = tmp_path / "audit.json"
    save(journal(), path)

    def refuse(constant):
        raise AssertionError(constant)

    data = json.loads(path.read_text(), parse_constant=refuse)
    assert data["main"]["epochs"][0]["rule"]["low"] == "-inf"
    assert data["main"]["epochs"][1]["rule"]["high"] == "inf"


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path):
    path = tmp_path / "audit.json"
    save(journal(), path)
    before = path.read_text()
    with pytest.raises(FileNotFoundError):
        save(journal(), tmp_path / "missing" / "audit.json")
    bad = journal().model_copy(update={"verdict": object()})
    with pytest.raises(ValueError, match="object"):
        save(bad, path)
    assert path.read_text() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_guesser_that_the_file_cannot_hold():
    own = CustomDistinguisher(len)
    data = guesser_data(own)
    assert guesser_of(data, None, own) is own
    with pytest.raises(InputError, match="the guesser that was used then"):
        guesser_of(data, None)
    with pytest.raises(InputError, match="a mechanism that knows its distribution"):
        guesser_of(guesser_data(Likelihood(LAWS)), None)


# ── Damaged files ───────────────────────────────────────────────────────────────────────────────


def damaged(tmp_path, place, value):
    """A good file in which one place has another value."""
    path = tmp_path / "audit.json"
    save(journal(), path)
    data = json.loads(path.read_text())
    *parents, last = place
    inside = data
    for step in parents:
        inside = inside[step]
    inside[last] = value
    path.write_text(json.dumps(data))
    return path


EPOCH = ("main", "epochs", 0)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("schema",), "dpassay/audit/1"),
        (("schema",), None),
        (("schema",), ["dpassay/audit/2"]),
        (("verdict",), "proven"),
        (("runs",), -1),
        (("runs",), 1.5),
        (("runs",), 10**400),
        (("runs",), None),
        (("asked",), None),
        (("asked", "epsilon"), None),
        (("asked", "epsilon"), [1]),
        (("asked", "epsilon"), "one"),
        (("asked", "epsilon"), 10**400),
        (("asked", "epsilon"), {}),
        (("asked", "seed"), -1),
        (("asked", "seed"), "x"),
        (("asked", "subject"), {"kind": 3}),
        (("asked", "more"), 1),
        (("main",), []),
        (("main", "alpha"), 0),
        (("main", "alpha"), 2),
        (("main", "alpha"), math.nan),
        (("main", "alpha"), None),
        (("main", "inputs"), [1]),
        (("main", "inputs"), "ab"),
        (("main", "inputs"), [1, 2, 3]),
        (("main", "number"), -1),
        (("main", "runs"), 29),
        ((*EPOCH, "right"), -1),
        ((*EPOCH, "right"), 8),
        ((*EPOCH, "right"), 10**16),
        ((*EPOCH, "wrong"), math.nan),
        ((*EPOCH, "runs"), 11),
        ((*EPOCH, "sizes"), [[10**15, 1]]),
        ((*EPOCH, "sizes"), [[4, 1], [5, 1]]),
        ((*EPOCH, "sizes"), [[-1, 1], [5, 1], [6, 1]]),
        ((*EPOCH, "sizes"), None),
        ((*EPOCH, "sizes"), [[10, 0]]),
        ((*EPOCH, "sizes"), [[5, 3]]),
        ((*EPOCH, "sides"), 3),
        ((*EPOCH, "expected_right"), 0),
        ((*EPOCH, "expected_right"), math.nan),
        ((*EPOCH, "expected_wrong"), -math.inf),
        ((*EPOCH, "singly"), "perhaps"),
        ((*EPOCH, "rule", "grain"), 0),
        ((*EPOCH, "rule", "grain"), math.nan),
        ((*EPOCH, "rule", "low"), [0]),
        ((*EPOCH, "rule", "candidates"), 1),
        ((*EPOCH, "rule", "candidates"), 3),
        ((*EPOCH, "rule", "candidates"), 10**400),
        ((*EPOCH, "rule", "guesser"), []),
    ],
)
def test_a_damaged_file_is_said_to_be_damaged(place, value, tmp_path):
    with pytest.raises(InputError, match=r"is damaged|is not an audit's file"):
        load(damaged(tmp_path, place, value))


def test_each_of_these_changes_is_the_only_one(tmp_path):
    load(damaged(tmp_path, ("asked", "seed"), 8))  # else the test above would show nothing
    load(damaged(tmp_path, (*EPOCH, "right"), 7))
    load(damaged(tmp_path, (*EPOCH, "sizes"), [[5, 2]]))
    load(damaged(tmp_path, (*EPOCH, "rule", "low"), "inf"))
    assert MOST_ROWS >= 10


def test_a_file_that_was_cut_off_anywhere(tmp_path):
    path = tmp_path / "audit.json"
    save(journal(), path)
    text = path.read_text()
    for end in range(0, len(text.rstrip()), 37):
        path.write_text(text[:end])
        with pytest.raises(InputError, match="cut off"):
            load(path)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe\x00",
        b"null",
        b"[]",
        b"3",
        b'"text"',
        b"{}",
        b'{"schema": "dpassay/audit/2"}',
        b"[" * 200_000,
        b'{"a":' * 200_000,
        b'{"schema": ' + b"9" * 5000 + b"}",
        b'{"schema": "dpassay/audit/2", "schema": 1e999}',
        b"\x80\x04\x95",  # a pickle's first bytes
    ],
    ids=range(13),
)
def test_what_is_no_audit(content, tmp_path):
    path = tmp_path / "audit.json"
    path.write_bytes(content)
    with pytest.raises(InputError):
        load(path)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        load(tmp_path / "missing.json")
    with pytest.raises(InputError, match="cannot be read"):
        load(tmp_path)
    huge = tmp_path / "huge.json"
    with huge.open("wb") as file:
        file.truncate(LARGEST_FILE + 1)
    with pytest.raises(InputError, match="larger than any audit's file"):
        load(huge)


# ── Guessers that do not fit together ───────────────────────────────────────────────────────────


def changed(name, /, **changes):
    data = json.loads(json.dumps(guesser_data(GUESSERS[name])))
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
    with pytest.raises(InputError, match="guesser that cannot be read"):
        guesser_of(WRONG[name], LAWS)


def test_a_guesser_nested_too_deeply_is_refused():
    deep = changed("linear")
    for _ in range(5000):
        deep = {"kind": "Guarded", "base": deep, "oddities": changed("oddities")}
    with pytest.raises(InputError, match="guesser that cannot be read"):
        guesser_of(deep, LAWS)


def test_a_guesser_for_vectors_that_no_memory_holds_is_refused_when_used():
    for data in (changed("sum", width=10**12), changed("boosted", width=10**12)):
        with pytest.raises(InputError, match="1000000000000 coordinates"):
            guesser_of(data, LAWS).scores(OUTPUTS)


@pytest.mark.parametrize("name", ["values of three", "ngrams of three", "nearest"])
def test_a_guesser_for_another_number_of_inputs_is_refused(name):
    # Its scores would be a table where a column is expected, and counts would exceed the runs.
    record = journal().main
    epochs = [
        e.model_copy(update={"rule": e.rule.model_copy(update={"guesser": changed(name)})}) for e in record.epochs
    ]
    with pytest.raises(InputError, match="for 3 inputs, not for 2"):
        game_of(record.model_copy(update={"epochs": epochs}), LAWS)


def leaves(data, place=()):
    if isinstance(data, dict | list):
        for key, value in data.items() if isinstance(data, dict) else enumerate(data[:3]):
            yield from leaves(value, (*place, key))
    if place:
        yield place


@pytest.mark.parametrize("name", sorted(set(GUESSERS) - {"ngrams of three"}))
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
                guesser = guesser_of(data, LAWS)
                scores = guesser.scores(OUTPUTS)
            except InputError:
                continue
            assert len(scores) == len(OUTPUTS)
