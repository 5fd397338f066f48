"""Runs end in a model with its statement; interrupted ones are continued to the same weights, others are refused."""

import json
import os
import signal
from dataclasses import replace

import numpy as np
import pytest

from dpassay.errors import InputError
from dpassay.text.corpora.flights import flights, known_words
from dpassay.text.corpora.utterance import Utterance
from dpassay.text.models.folder import read_folder
from dpassay.training import run as runs
from dpassay.training.canary_audit import audit_training
from dpassay.training.canary_scores import read_scores
from dpassay.training.federated import Plan
from dpassay.training.run import CANARY_FILE, SECRETS, Settings, Trained, opened, train
from processes import interruptible

SAID = flights(150)
TINY = {"embedding": 4, "hidden": 4, "rate": 0.2}
KINDS = ["user", "entity", "user-entity", "example", "none"]


def settings(privacy="user", rounds=6, **more):
    noise = {} if privacy == "none" or "epsilon" in more else {"noise_multiplier": 1.2}
    return Settings(privacy, plan=Plan(rounds=rounds, batch=2), **{**TINY, **noise, **more})


def weights(folder):
    return read_folder(folder, Trained)[1]


def same(first, second):
    return first.keys() == second.keys() and all(np.array_equal(first[name], second[name]) for name in first)


def interrupt_at(round_):
    def tell(done, rounds, note):
        if done == round_:
            os.kill(os.getpid(), signal.SIGINT)

    return tell


def interrupted(folder, chosen, at=3):
    with interruptible(), pytest.raises(KeyboardInterrupt):
        train(SAID, folder, chosen, vocabulary=known_words(), progress=interrupt_at(at))


@pytest.mark.parametrize("privacy", KINDS)
def test_an_interrupted_run_goes_on_to_the_same_weights(tmp_path, privacy):
    chosen = settings(privacy, noise_source="torch", seed=4)
    whole = train(SAID, tmp_path / "whole", chosen, vocabulary=known_words())
    interrupted(tmp_path / "parts", chosen)
    stated = json.loads((tmp_path / "parts" / "statement.json").read_text())
    assert stated["finished"] is False
    assert stated["rounds"] == {"done": 3, "planned": 6}
    assert "**Training is not finished**: 3 of 6 rounds" in (tmp_path / "parts" / "statement.md").read_text()
    rest = train(SAID, tmp_path / "parts", chosen, vocabulary=known_words(), resume=True)
    assert same(weights(tmp_path / "whole"), weights(tmp_path / "parts"))
    assert rest.statement == whole.statement
    assert whole.about.perplexity_after != whole.about.perplexity_before


def test_a_secret_key_goes_on_too_and_is_gone_at_the_end(tmp_path, monkeypatch):
    monkeypatch.setattr(runs.os, "urandom", lambda size: bytes(range(size)))
    chosen = settings()
    train(SAID, tmp_path / "whole", chosen, vocabulary=known_words())
    interrupted(tmp_path / "parts", chosen)
    assert (tmp_path / "parts" / SECRETS).stat().st_mode & 0o777 == 0o600
    train(SAID, tmp_path / "parts", chosen, vocabulary=known_words(), resume=True)
    assert same(weights(tmp_path / "whole"), weights(tmp_path / "parts"))
    assert sorted(path.name for path in (tmp_path / "parts").iterdir()) == [
        *("model.json", "statement.json", "statement.md", "weights.safetensors"),
    ]


def test_two_runs_of_the_operating_systems_numbers_differ(tmp_path):
    for name in "ab":
        train(SAID, tmp_path / name, settings(rounds=1), vocabulary=known_words())
    assert not same(weights(tmp_path / "a"), weights(tmp_path / "b"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"said": SAID[::-1][:-1]}, "was trained (on another corpus|with other settings: it differs in units)"),
        ({"said": [*SAID[:-1], Utterance("another one", user=SAID[-1].user)]}, "was trained on another corpus"),
        ({"chosen": {"clip": 0.7}}, "differs in clip"),
        ({"chosen": {"rounds": 7}}, "differs in plan"),
        ({"chosen": {"privacy": "entity"}}, "differs in"),
        ({"words": ["rome"]}, "differs in words"),
    ],
)
def test_a_checkpoint_of_another_run_is_refused(tmp_path, change, message):
    interrupted(tmp_path / "m", settings())
    before = {path.name: path.read_bytes() for path in (tmp_path / "m").iterdir()}
    with pytest.raises(InputError, match=message):
        train(
            change.get("said", SAID),
            tmp_path / "m",
            settings(**change.get("chosen", {})),
            vocabulary=change.get("words", known_words()),
            resume=True,
        )
    assert before == {path.name: path.read_bytes() for path in (tmp_path / "m").iterdir()}


def test_a_checkpoint_of_another_version_or_without_its_secrets_is_refused(tmp_path, monkeypatch):
    interrupted(tmp_path / "m", settings())
    with monkeypatch.context() as other:
        other.setattr(runs, "version", lambda _: "99.0")
        with pytest.raises(InputError, match=r"was trained by dpassay .*, not 99\.0"):
            train(SAID, tmp_path / "m", settings(), vocabulary=known_words(), resume=True)
    (tmp_path / "m" / SECRETS).write_text("{}")
    with pytest.raises(InputError, match="is missing or damaged: the run cannot be continued"):
        train(SAID, tmp_path / "m", settings(), vocabulary=known_words(), resume=True)


def test_a_folder_that_is_not_empty_is_left_alone(tmp_path):
    (tmp_path / "x").write_text("mine")
    with pytest.raises(InputError, match="already exists and is not empty"):
        train(SAID, tmp_path, settings(), vocabulary=known_words())


def test_a_finished_model_can_be_opened_and_resumed_to_nothing(tmp_path):
    found = train(SAID, tmp_path / "m", settings(rounds=2), vocabulary=known_words())
    network, words, about = opened(tmp_path / "m")
    assert about.done == 2
    assert set(words.words) == set(known_words())
    assert all((a == b).all() for a, b in zip(network.parameters(), found.network.parameters(), strict=True))
    assert train(SAID, tmp_path / "m", settings(rounds=2), vocabulary=known_words(), resume=True).statement["finished"]


def test_words_from_the_corpus_are_said_to_be_uncovered(tmp_path):
    found = train(SAID, tmp_path / "m", settings(rounds=1))
    assert any("those of the corpus, and no guarantee covers" in line for line in found.statement["assumptions"])
    assert set(found.about.words) <= set(known_words())


def test_no_held_out_text_no_perplexity(tmp_path):
    found = train(SAID, tmp_path / "m", settings(rounds=1), vocabulary=known_words(), held_out=[])
    assert found.statement["held_out_perplexity"] == {"before": None, "after": None}


def test_a_delta_too_large_for_the_units_is_worth_a_warning(tmp_path):
    said = []
    train(SAID, tmp_path / "m", settings(rounds=1, delta=0.05), vocabulary=known_words(), warn=said.append)
    assert len(said) == 1
    assert "delta 0.05 is at least 1 over the number of units" in said[0]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"privacy": "user"}, "give either the epsilon or the noise multiplier"),
        ({"privacy": "user", "epsilon": 1.0, "noise_multiplier": 1.0}, "the other is computed"),
        ({"privacy": "none", "epsilon": 1.0}, "without privacy has no epsilon"),
        ({"privacy": "user", "noise_multiplier": 0.0}, "noise multiplier must be a number"),
        ({"privacy": "example", "noise_multiplier": 1.0, "noise_source": "opendp"}, "for user and entity privacy"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(given, message):
    with pytest.raises(InputError, match=message):
        Settings(**given)


def test_opendp_noise_trains_too(tmp_path):
    chosen = settings(rounds=1, noise_source="opendp", embedding=2, hidden=2)
    found = train(SAID, tmp_path / "m", chosen, vocabulary=["to", "from", "rome"])
    assert any("OpenDP's discrete Gaussian" in line for line in found.statement["assumptions"])


@pytest.mark.parametrize("kind", ["updates", "sentences"])
def test_canaries_are_planted_and_scored_and_survive_an_interruption(tmp_path, kind):
    chosen = settings(canaries=20, canary_kind=kind, noise_source="torch")
    train(SAID, tmp_path / "whole", chosen, vocabulary=known_words())
    interrupted(tmp_path / "parts", chosen)
    train(SAID, tmp_path / "parts", chosen, vocabulary=known_words(), resume=True)
    whole, parts = (read_scores(tmp_path / folder / CANARY_FILE) for folder in ("whole", "parts"))
    assert whole.canaries == 20
    assert 0 < whole.included.sum() < 20
    assert np.array_equal(whole.score, parts.score)
    assert np.array_equal(whole.included, chosen.included)


def test_sentences_that_were_learnt_without_privacy_refute_a_claim(tmp_path):
    chosen = settings("none", rounds=60, canaries=80, canary_kind="sentences", rate=0.5, hidden=32, embedding=16)
    chosen = replace(chosen, plan=replace(chosen.plan, server_rate=0.03))
    train(SAID[:40], tmp_path / "model", chosen, vocabulary=known_words()[:60])
    verdict = audit_training(read_scores(tmp_path / "model" / CANARY_FILE), epsilon=0.5, delta=1e-5)
    assert verdict.refuted, verdict.reason


def test_more_canaries_than_weights_leave_no_folder_behind(tmp_path):
    with pytest.raises(InputError, match="plant fewer, or sentences"):
        train(SAID, tmp_path / "model", settings(canaries=500_000), vocabulary=known_words())
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"canaries": 1}, "from 2 to"),
        ({"canaries": 5, "canary_kind": "birds"}, "unknown kind of canaries"),
        ({"canaries": 5, "privacy": "example"}, "plant sentences instead"),
    ],
)
def test_canaries_that_cannot_be_planted_are_refused(more, said):
    with pytest.raises(InputError, match=said):
        settings(**more)
