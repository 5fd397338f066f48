"""Audits on file: all that is written comes back bit for bit, and a damaged file is one sentence."""

import json
import math

import pytest

from dpassay.audit.mechanisms.targets import as_mechanism
from dpassay.audit.storage.checkpoint import (
    Journal,
    SavedQuestion,
    game_of,
    game_record,
    load,
    save,
)
from dpassay.audit.testing.decision_rule import DecisionRule, Hypothesis
from dpassay.audit.testing.experiment import MOST_ROWS, Experiment, GameResult, GameState, RoundResult
from dpassay.audit.testing.inference import RoundCounts, anytime_bound, log_evidence
from dpassay.audit.testing.sequential import anytime
from dpassay.core.records import LARGEST_FILE
from dpassay.errors import InputError
from sample_distinguishers import DISTINGUISHERS, DISTRIBUTIONS, OUTPUTS, X, Y

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


def columns(distinguisher):
    scores = distinguisher.score(OUTPUTS)
    return 2 if scores.ndim == 1 else scores.shape[1]


def rule(distinguisher, low=-math.inf, high=0.5, resolution=1e-9):
    return DecisionRule(distinguisher, low, high, 5, 1, 0.1, resolution, columns(distinguisher))


def game(distinguisher=None, **changes):
    distinguisher = DISTINGUISHERS["linear"] if distinguisher is None else distinguisher
    epochs = [
        RoundResult(rule(distinguisher), RoundCounts(5, 3, 10, 6.5, 1.25, 1), 20, 60, False, ((4, 1), (6, 1))),
        RoundResult(rule(distinguisher, -1 / 3, math.inf), RoundCounts(0, 0, 0, 0.5, 0.5, 2), 0, 10**15, True),
    ]
    return GameState(epochs, 30, **changes)


def journal(of=None):
    of = game() if of is None else of
    inputs = tuple(X + k for k in range(of.rounds[0].rule.candidates)) if of.rounds else (X, Y)
    record = game_record(GameResult(of, inputs, 0, 0.0009))
    asked = SavedQuestion(**ASKED)
    return Journal(asked=asked, verdict="unfinished", runs=30, searched=0, main=record, witness=None)


# ── There and back ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", DISTINGUISHERS)
def test_a_game_comes_back_from_a_file_bit_for_bit(name, tmp_path):
    path = tmp_path / "audit.json"
    played = game(DISTINGUISHERS[name])
    written = journal(played)
    save(written, path)
    found = load(path)
    assert found.model_dump(exclude={"main"}) == written.model_dump(exclude={"main"})
    again = game_of(found.main, DISTRIBUTIONS, [DISTINGUISHERS["own likelihood"], DISTINGUISHERS["encoded"]])
    assert again.runs == played.runs
    for one, other in zip(again.rounds, played.rounds, strict=True):
        assert one.counts == other.counts
        assert (one.learnt_from, one.length, one.singly, one.sizes) == (
            other.learnt_from,
            other.length,
            other.singly,
            other.sizes,
        )
        assert one.rule.count(OUTPUTS, 0) == other.rule.count(OUTPUTS, 0)
        assert (one.rule.low, one.rule.high, one.rule.resolution) == (
            other.rule.low,
            other.rule.high,
            other.rule.resolution,
        )
        assert one.rule.describe() == other.rule.describe()
    assert log_evidence(again.counts, 0.5) == log_evidence(played.counts, 0.5)
    assert anytime_bound(again.counts, 0.05) == anytime_bound(played.counts, 0.05)
    assert list(tmp_path.iterdir()) == [path]  # nothing half-written is left


def test_a_game_goes_on_from_a_file_as_if_nothing_had_happened(tmp_path):
    experiment = Experiment(as_mechanism(lambda x, n, rng: x + rng.laplace(size=n)), (0.0, 1.0), Hypothesis(1.0), 3)

    def steps(of):
        return anytime(experiment, of, 3000, 0.001)

    whole = GameState(kept=[[], []])
    for _ in steps(whole):
        pass
    first = GameState(kept=[[], []])
    going = steps(first)
    while len(first.rounds) < len(whole.rounds):  # the last rule has been learnt: the outputs it needed are in no file
        next(going)
    for _ in range(9):
        next(going)
    path = tmp_path / "audit.json"
    record = game_record(GameResult(first, (0.0, 1.0), 0, 0.001))
    save(
        Journal(asked=SavedQuestion(**ASKED), verdict="unfinished", runs=0, searched=0, main=record, witness=None), path
    )
    second = game_of(load(path).main, None)
    second.kept = [[], []]
    for _ in steps(second):
        pass
    assert second.counts == whole.counts
    assert [e.sizes for e in second.rounds] == [e.sizes for e in whole.rounds]
    assert second.runs == whole.runs


def test_texts_of_all_characters_are_written(tmp_path):
    path = tmp_path / "audit.json"
    for text in ("🦓", "nul\0", "\ud800 half a pair", "\u2028"):
        record = game_record(GameResult(GameState([], 5), (text, "other"), 0, 0.001))
        save(Journal(asked=SavedQuestion(**ASKED), verdict="open", runs=5, searched=0, main=record, witness=None), path)
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
    with pytest.raises(InputError, match="cannot write"):
        save(journal(), path / "audit.json")  # a file is no folder
    bad = journal().model_copy(update={"verdict": object()})
    with pytest.raises(ValueError, match="object"):
        save(bad, path)
    assert path.read_text() == before
    assert list(tmp_path.iterdir()) == [path]


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


@pytest.mark.parametrize("name", ["values of three", "ngrams of three", "nearest"])
def test_a_distinguisher_for_another_number_of_inputs_is_refused(name):
    # Its scores would be a table where a column is expected, and counts would exceed the runs.
    record = journal().main
    epochs = [
        e.model_copy(update={"rule": e.rule.model_copy(update={"guesser": DISTINGUISHERS[name].to_data()})})
        for e in record.epochs
    ]
    with pytest.raises(InputError, match="for 3 inputs, not for 2"):
        game_of(record.model_copy(update={"epochs": epochs}), DISTRIBUTIONS)
