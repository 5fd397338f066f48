"""Saved audits that were changed: what still verifies as refuted is false of no mechanism that the oracle knows.

Every leaf of the files is changed in several ways, and a sample of these is verified. The oracle says what is
true of the claim that the changed file states. A fresh game refutes a claim that holds with probability at most
α = 0.001, and seeds are fixed.
"""

import copy
import json

import numpy as np
import pytest
from mpmath import mpf

import tiers
from dpassay import audit
from dpassay.audit.storage.replay import replay
from dpassay.errors import DpassayError
from mutations import NUMBER_IN_TEXT, WORDS, get, places, put
from oracle import Statement, Unreadable, false_statement, truth_of

FILES = [  # a pipeline, its dimension, what is claimed, and options
    ("query(l1, 5) | laplace(1)", 1, 1, 0, {}),
    ("query(l2, 5) | gaussian(1)", 2, 1, 0.01, {}),
    ("counts(l1, 5) | laplace(1)", 1, 1, 0, {}),
    ("counts(l1, 2) | discrete_laplace(0.5)", 1, 1, 0, {}),
    ("clip(l2, 1) | laplace(1)", 4, 1, 0, {}),
    ("clip(l1, 1) | laplace(0.5)", 2, 1, 0, {"neighbours": "replace-record"}),
    ("clip(l2, 1) | gaussian(0.3)", 2, 1, 0.01, {"neighbours": "add-remove-record"}),
    ("category(3) | flip(0.9)", 1, 1, 0, {"pairs": [([0], [1])]}),
    ("clamp(0, 1) | laplace(0.3)", 1, 1, 0, {"fixed": True, "runs": 2000}),
    ("query(linf, 2) | exponential(1)", 3, 0.5, 0, {}),
    ("query(l1, 3) | laplace(1)", 3, 1, 0, {}),
    ("query(linf, 3) | laplace(2)", 2, 1, 0, {}),
    ("query(l2, 3) | gaussian(1)", 1, 1, 1e-3, {}),
    ("counts(l1, 3) | discrete_laplace(1)", 2, 1, 0, {}),
    ("counts(l2, 3) | discrete_gaussian(1)", 1, 1, 1e-2, {}),
    ("clip(l1, 2) | laplace(1)", 2, 1, 0, {"neighbours": "add-remove-record"}),
    ("clip(linf, 1) | laplace(1)", 3, 1, 0, {}),
    ("clip(l2, 1) | gaussian(0.5)", 3, 1, 1e-2, {"neighbours": "replace-record"}),
    ("clamp(0, 2) | laplace(0.5)", 2, 1, 0, {}),
    ("clamp(-1, 1) | gaussian(0.5)", 1, 1, 1e-2, {}),
    ("category(4) | flip(0.9)", 1, 1, 0, {}),
    ("squash(tanh) | laplace(0.3)", 2, 1, 0, {}),
    ("query(l1, 2) | staircase(2, 1, 0.3)", 1, 1, 0, {}),
    ("query(l1, 1) | laplace(0.3) | times(2)", 1, 1, 0, {}),
    ("query(l1, 2) | laplace(1) | round", 1, 1, 0, {}),
    ("query(linf, 2) | noisymax(laplace, 1)", 3, 0.5, 0, {}),
    ("normalise(l2) | laplace(0.5)", 3, 1, 0, {}),
    ("query(l1, 2) | laplace(1) | clamp(-1, 1)", 1, 1, 0, {}),
    ("rows | clamp(0, 1) | laplace(0.3)", 3, 1, 0, {"neighbours": "replace-record"}),
    ("query(l1, 1) | laplace(0.3)", 2, 1, 0, {"neighbours": "group(2)", "pairs": [([0.0, 0.0], [2.0, 0.0])]}),
]
MUTANTS = tiers.repetitions(reduced=140, full=3000)


def changes(path, value):
    """What to put in place of a leaf."""
    name = path[-1]
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int | float):
        numbers = [0, 1, 2 * value, value / 2, -value, value + 1, value - 1, 0.2, 0.999, 1e-12]
        yield from (int(one) if isinstance(value, int) else float(one) for one in numbers)
    elif name == "dim":
        yield from ("1", "2", "10000000")
    elif name in WORDS:
        yield from WORDS[name].split()
    elif isinstance(value, str):
        for found in NUMBER_IN_TEXT.finditer(value):
            for factor in (0.2, 0.5, 2, 5):
                yield f"{value[: found.start()]}{float(found[0]) * factor:g}{value[found.end() :]}"
        yield from ("", value + " ")
    else:
        yield from (None, [], 0)


def mutants(data):
    for path, value in places(data):
        if path and not isinstance(value, dict) and (not isinstance(value, list) or not value):
            yield from ((path, put(data, path, new)) for new in changes(path, value) if new != value)
    # Changes that go together: a shorter distance or less clipping, and a relation that does not ask.
    text = data["asked"]["subject"]["pipeline"]
    for smaller in changes(("pipeline",), text):
        for kind in WORDS["neighbours"].split():
            changed = copy.deepcopy(data)
            changed["asked"]["subject"]["pipeline"], changed["asked"]["neighbours"] = smaller, kind
            yield ("pipeline", kind), changed


def harm(data, path):
    """Why a file that verifies states something false; empty if it does not verify, or states nothing false."""
    path.write_text(json.dumps(data))
    try:
        found = replay(path, seed=77)
    except DpassayError:
        return ""
    if not found.ok or found.verdict != "refuted":
        return ""
    asked = data["asked"]
    try:
        truth = truth_of(asked["subject"]["pipeline"], {}, int(asked["subject"]["dim"]), asked["neighbours"])
    except Unreadable:
        return ""
    return false_statement(truth, Statement("refuted", mpf(float(asked["epsilon"])), mpf(float(asked["delta"])))) or ""


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("audits")
    found = []
    for k, (text, dim, epsilon, delta, options) in enumerate(FILES):
        path = folder / f"{k}.json"
        given = {"runs": 4000, "until_refuted": not options.get("fixed"), "seed": k, **options}
        assert audit(text, epsilon=epsilon, delta=delta, dim=dim, save=path, **given).refuted, text
        found.append(json.loads(path.read_text()))
    return found


def test_the_files_verify_and_state_the_truth(saved, tmp_path):
    for data in saved:
        path = tmp_path / "audit.json"
        path.write_text(json.dumps(data))
        assert replay(path, seed=77).ok, data["asked"]
        assert not harm(data, path)


def test_no_changed_audit_verifies_and_is_false(saved, tmp_path):
    found = [(where, changed) for data in saved for where, changed in mutants(data)]
    order = np.random.default_rng(1).permutation(len(found))[:MUTANTS]
    harmful = [(found[k][0], why) for k in order if (why := harm(found[k][1], tmp_path / "audit.json"))]
    assert not harmful


FORGED = [  # each verified once, though the claim that the file then states is proven
    (0, "query(l1, 5)", "query(l1, 1)"),
    (1, "query(l2, 5)", "query(l2, 1)"),
    (2, "counts(l1, 5)", "counts(l1, 1)"),
    (4, '"neighbours": "any"', '"neighbours": "word"'),
    (0, '"dim": "1"', '"dim": "10000000"'),
]


@pytest.mark.parametrize(("which", "old", "new"), FORGED)
def test_inputs_that_the_claim_does_not_cover_confirm_nothing(saved, tmp_path, which, old, new):
    path, text = tmp_path / "audit.json", json.dumps(saved[which])
    assert old in text
    path.write_text(text.replace(old, new))
    result = replay(path, seed=77)
    assert not result.ok
    assert result.failures[0].startswith("the claim does not cover the recorded inputs: ")


def test_what_the_conclusion_rests_on_is_checked_again(saved, tmp_path):
    path = tmp_path / "audit.json"

    def failures(where, value):
        path.write_text(json.dumps(put(saved[0], where, value)))
        return " ".join(replay(path, seed=77).failures)

    epoch, rule = ("main", "epochs", 0), ("main", "epochs", 0, "rule")
    statistic = {"kind": "Statistic", "name": "coordinate 0", "width": 1, "sign": 1.0, "inputs": []}
    assert get(saved[0], (*rule, "guesser"))["kind"] != "Statistic"
    assert "does not use the pipeline's distribution" in failures((*rule, "guesser"), statistic)
    assert "so fine" in failures((*rule, "grain"), 1e-15)
    assert "bit patterns" in failures(("asked", "bits"), True)
    assert "fewer inputs" in failures((*epoch, "sides"), 3 - get(saved[0], (*epoch, "sides")))
    assert "cannot be" in failures(("main", "replays"), False)
    for where in (("asked", "alpha"), ("main", "alpha")):
        with pytest.raises(DpassayError, match=r"0\.2"):
            failures(where, 0.999)
