"""Saved audits are played again."""

import json
import math

import numpy as np
import pytest

from dpassay import InputError, audit
from dpassay.audit.storage.replay import replay


def noisy(x, n, rng):
    return x + rng.laplace(scale=0.5, size=n)


def quiet(x, n, rng):
    return x + rng.laplace(scale=50, size=n)


PAIR = [(0.0, 1.0)]


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "audit.json"
    audit(noisy, PAIR, epsilon=1, save=path)
    return path


def edited(path, change):
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))
    return path


def test_with_the_recorded_seed_and_a_fresh_one(saved):
    found = replay(saved, noisy, seed=11)
    assert found.ok
    assert found.verdict == "refuted"
    assert found.established[0] == "the inputs 0.0 and 1.0 are neighbors: any two inputs (local DP)"
    assert found.established[1].startswith("the rule is the recorded one, based on ")
    assert "with the recorded seed 0: " in found.established[2]
    assert "with the fresh seed 11: " in found.established[4]


def test_a_shrunk_witness_and_fixed_runs_are_played_again(tmp_path):
    def vector(x, n, rng):
        return x + rng.laplace(scale=0.3, size=(n, 3))

    pair = [(np.zeros(3), np.ones(3))]
    for name, options in (("shrunk", {}), ("fixed", {"fixed": True, "runs": 5_000, "shrink": False})):
        path = tmp_path / f"{name}.json"
        audit(vector, pair, epsilon=1, save=path, **options)
        assert replay(path, vector, seed=2).ok


def test_an_open_audit_is_only_played_with_its_seed(tmp_path):
    path = tmp_path / "open.json"
    audit(noisy, PAIR, epsilon=3, runs=2_000, save=path)
    found = replay(path, noisy)
    assert found.ok
    assert not any("fresh seed" in said for said in found.established)


def test_changed_counts_are_noticed(saved):
    def move(data):
        epoch = data["main"]["epochs"][0]
        epoch["right"], epoch["wrong"] = epoch["right"] + 1, epoch["wrong"] - 1

    found = replay(edited(saved, move), noisy, seed=1)
    assert "are recorded" in found.failures[0]


def test_a_verdict_that_its_counts_do_not_bear_is_noticed(saved):
    found = replay(edited(saved, lambda d: d.update(verdict="open")), noisy, seed=1)
    assert "its counts refute it" in found.failures[0]


@pytest.mark.long
def test_another_mechanism_under_the_same_name_does_not_pass(saved):
    quiet.__qualname__, quiet.__module__ = noisy.__qualname__, noisy.__module__
    found = replay(saved, quiet, seed=1)
    assert len(found.failures) == 2
    assert "do not refute the claim" in found.failures[1]


def exactly_one(x, rng):
    """Randomized response at ε = 1."""
    return x if rng.random() < math.e / (1 + math.e) else 1 - x


def test_a_chosen_seed_and_error_probability_confirm_nothing(tmp_path):
    """A fresh game confirms a true claim with probability 0.001, so two of fifteen with probability below 1.1e-4."""
    for seed in range(100):
        path = tmp_path / f"{seed}.json"
        options = {"alpha": 0.2, "runs": 300, "seed": seed, "until_refuted": True}
        if not audit(exactly_one, [(0, 1)], epsilon=1, save=path, **options).refuted:
            continue
        confirmed = sum(replay(path, exactly_one, seed=1000 + k).ok for k in range(15))
        assert confirmed < 2
        return
    raise AssertionError("no seed was found")


def test_the_claim_names_what_was_audited(tmp_path):
    path = tmp_path / "query.json"
    audit("query(l1, 5) | laplace(1)", epsilon=1, dim=2, save=path, runs=2000)
    assert replay(path, seed=3).claim == "epsilon 1 of query(l1, 5) | laplace(1) in dimension 2"


def test_what_a_file_names_is_never_started(saved):
    with pytest.raises(InputError, match="never starts code that a file names; give it again: dpassay"):
        replay(saved)
    for key, option in (("command", "--command"), ("url", "--url"), ("path", "--python")):
        edited(saved, lambda d, key=key: d["asked"].update(subject={"kind": key, key: "rm -r x"}))
        with pytest.raises(InputError, match=f"{option} 'rm -r x'"):
            replay(saved)


@pytest.mark.long
def test_a_pipeline_is_parsed_from_its_text(tmp_path):
    path = tmp_path / "adept.json"
    audit("clip(l2, C) | laplace(2*C/eps)", epsilon=1, dim=9, C=1, save=path)
    assert replay(path, seed=3).ok


def test_randomness_of_its_own_is_not_compared(tmp_path):
    rng = np.random.default_rng(3)

    def own(x):
        return x + rng.laplace(scale=0.5)

    path = tmp_path / "own.json"
    audit(own, PAIR, epsilon=1, save=path)
    found = replay(path, own, seed=1)
    assert found.ok
    assert "uses its own random source" in found.established[2]


def test_a_mechanism_that_is_another(saved):
    with pytest.raises(InputError, match="the audit was of"):
        replay(saved, lambda x, n, rng: np.zeros(n))


def test_the_relation_must_hold_for_the_recorded_inputs(saved, tmp_path):
    for relation, said in (("word", "two texts"), ("friends", "unknown neighbors")):
        found = replay(edited(saved, lambda d, relation=relation: d["asked"].update(neighbours=relation)), noisy)
        assert said in found.failures[0]
        assert len(found.failures) == 1  # nothing is run
    path = tmp_path / "rows.json"

    def total(rows, rng):
        return sum(rows) + rng.laplace(scale=0.3)

    audit(total, [([0.0, 0.0], [1.0, 1.0])], epsilon=1, neighbours="any", shrink=False, save=path)
    assert replay(path, total, seed=1).ok
    edited(path, lambda d: d["asked"].update(neighbours="replace-record"))
    assert "they differ in 2 records" in replay(path, total, seed=1).failures[0]


def test_what_cannot_be_seen_from_the_inputs_is_said(saved):
    found = replay(edited(saved, lambda d: d["asked"].update(neighbours="replace-record")), noisy, seed=1)
    assert found.established[0].startswith("the inputs 0.0 and 1.0 are taken for neighbors: two data sets")


def test_rows_of_a_batch_confirm_nothing(tmp_path):
    """All rows of a batch share their noise: 1-DP for one output, and no privacy for two."""

    def shared(x, n, rng):
        return np.full(n, x + rng.laplace())

    path = tmp_path / "shared.json"
    audit(shared, PAIR, epsilon=1, runs=1000, save=path)

    def in_batches(data):
        for epoch in data["main"]["epochs"]:
            epoch["singly"] = False

    found = replay(edited(path, in_batches), shared)
    assert "rows may depend on each other" in found.failures[0]
