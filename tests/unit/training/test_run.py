"""Runs end in a model with its statement; interrupted ones are continued to the same weights, others are refused."""

import importlib.metadata
import json
import os
import signal
from dataclasses import replace

import numpy as np
import pytest

from dpassay import check
from dpassay.errors import InputError
from dpassay.text.corpora.flights import flights, known_words
from dpassay.text.corpora.utterance import Utterance
from dpassay.text.models.folder import read_folder
from dpassay.text.models.words import tokenise
from dpassay.training import run as runs
from dpassay.training.canaries.audit import audit_training
from dpassay.training.canaries.scores import read_scores
from dpassay.training.federated import RoundPlan
from dpassay.training.run import CANARY_FILE, SECRETS, Trained, opened, train
from dpassay.training.settings import Settings
from dpassay.training.statement import stated_as_finished
from processes import interruptible, killed_at_each_moment

SAID = flights(150)
TINY = {"embedding": 4, "hidden": 4, "rate": 0.2}
KINDS = ["user", "entity", "user-entity", "example", "none"]


def settings(privacy="user", rounds=6, **more):
    noise = {} if privacy == "none" or "epsilon" in more else {"noise_multiplier": 1.2}
    return Settings(privacy, plan=RoundPlan(rounds=rounds, batch=2), **{**TINY, **noise, **more})


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
    assert rest.perplexity == whole.perplexity
    assert whole.perplexity[0] != whole.perplexity[1]


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


def test_a_run_that_is_killed_at_any_moment_goes_on_to_the_same_weights_and_scores(tmp_path, monkeypatch):
    chosen, said = settings("user", 1, noise_source="torch", seed=4, canaries=4), SAID[:40]
    monkeypatch.setattr(runs, "SAVED_EVERY", -1.0)
    train(said, tmp_path / "whole", chosen, vocabulary=known_words())
    whole, scores = weights(tmp_path / "whole"), (tmp_path / "whole" / CANARY_FILE).read_bytes()
    again = {"vocabulary": known_words()}
    for place in killed_at_each_moment(monkeypatch, tmp_path, lambda place: train(said, place, chosen, **again)):
        if not stated_as_finished(place):
            train(said, place, chosen, **again, resume=True)
        assert same(weights(place), whole)
        assert (place / CANARY_FILE).read_bytes() == scores
    assert int(place.name) > 12  # five operations for each of three saves, the scores and the key


def test_a_folder_that_a_killed_run_emptied_is_trained_into_anew(tmp_path):
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / SECRETS).write_text("")  # killed before the key was written
    train(SAID[:40], tmp_path / "m", settings("user", 1), vocabulary=known_words(), resume=True)
    (tmp_path / "n").mkdir()  # killed after it was emptied
    train(SAID[:40], tmp_path / "n", settings("user", 1), vocabulary=known_words(), resume=True)
    assert stated_as_finished(tmp_path / "m")
    assert stated_as_finished(tmp_path / "n")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="cannot be read"):
        train(SAID[:40], tmp_path / "other", settings("user", 1), vocabulary=known_words(), resume=True)
    assert (tmp_path / "other" / "notes.txt").read_text() == "mine"


def test_two_runs_of_the_operating_systems_numbers_differ(tmp_path):
    for name in "ab":
        train(SAID, tmp_path / name, settings(rounds=1), vocabulary=known_words())
    assert not same(weights(tmp_path / "a"), weights(tmp_path / "b"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"said": SAID[::-1][:-1]}, "was trained on another corpus"),
        ({"said": [*SAID[:-1], Utterance("another one", user=SAID[-1].user)]}, "was trained on another corpus"),
        ({"chosen": {"clip": 0.7}}, "differs in clip"),
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
        other.setattr(runs, "__version__", "99.0")
        with pytest.raises(InputError, match=r"was trained by dpassay .*, not 99\.0"):
            train(SAID, tmp_path / "m", settings(), vocabulary=known_words(), resume=True)
    (tmp_path / "m" / SECRETS).write_text("{}")
    with pytest.raises(InputError, match="is missing or damaged: the run cannot be continued"):
        train(SAID, tmp_path / "m", settings(), vocabulary=known_words(), resume=True)


def test_a_run_is_continued_to_fewer_or_more_rounds_with_its_own_noise(tmp_path):
    """The noise is that of the first rounds, and ε follows from it: more rounds need a larger ε."""
    first = settings(rounds=6, epsilon=3.0)
    interrupted(tmp_path / "m", first)
    deviation = read_folder(tmp_path / "m", Trained)[0].deviation
    with pytest.raises(InputError, match=r"40 rounds give epsilon [\d.]+, above 3: continue to fewer"):
        train(SAID, tmp_path / "m", settings(rounds=40, epsilon=3.0), vocabulary=known_words(), resume=True)
    more = settings(rounds=8, epsilon=4.0)
    with interruptible(), pytest.raises(KeyboardInterrupt):
        train(SAID, tmp_path / "m", more, vocabulary=known_words(), resume=True, progress=interrupt_at(5))
    found = train(SAID, tmp_path / "m", more, vocabulary=known_words(), resume=True)
    assert found.statement["rounds"] == {"done": 8, "planned": 8}
    made = found.statement["mechanism"]
    assert made["noise_deviation"] == deviation
    verdict = check(made["pipeline"], epsilon=4, delta=1e-5, neighbours="add-remove-record", dim=1)
    assert (verdict.proven, verdict.epsilon.upper) == (True, found.statement["guarantee"]["epsilon"]["upper"])
    with pytest.raises(InputError, match="is finished, with 8 rounds"):
        train(SAID, tmp_path / "m", settings(rounds=9, epsilon=5.0), vocabulary=known_words(), resume=True)


def test_a_run_that_has_done_enough_is_finished(tmp_path):
    interrupted(tmp_path / "m", settings(rounds=6))
    found = train(SAID, tmp_path / "m", settings(rounds=2), vocabulary=known_words(), resume=True)
    assert found.statement["rounds"] == {"done": 3, "planned": 3}
    assert found.statement["finished"]
    guarantee, pipeline = found.statement["guarantee"], found.statement["mechanism"]["pipeline"]
    assert guarantee["of_rounds"] == 6  # whatever decided to stop, the six planned rounds cover it
    assert pipeline.endswith("times(6)")
    verdict = check(pipeline, epsilon=9, delta=1e-5, neighbours="add-remove-record", dim=1)
    assert guarantee["epsilon"]["upper"] == guarantee["when_finished"]["upper"] == verdict.epsilon.upper
    text = (tmp_path / "m" / "statement.md").read_text()
    assert "planned for 6 rounds and ended after 3" in text
    assert "The true ε of all 6 planned rounds lies in [" in text
    assert json.loads((tmp_path / "m" / "statement.json").read_text()) == found.statement
    assert not (tmp_path / "m" / SECRETS).exists()
    assert not any(":" in name for name in weights(tmp_path / "m"))


@pytest.mark.parametrize(("asked", "said"), [(1, 1), (2, 1), (3, 0), (5, 0)])
def test_fewer_rounds_than_are_done_are_worth_a_sentence(tmp_path, asked, said):
    interrupted(tmp_path / "m", settings(rounds=6))
    told = []
    found = train(SAID, tmp_path / "m", settings(rounds=asked), vocabulary=known_words(), resume=True, warn=told.append)
    sentence = f"3 rounds are done already, more than the {asked} requested: training ends with them"
    assert (found.statement["rounds"]["done"], told.count(sentence), len(told)) == (max(3, asked), said, said)


def test_a_key_and_a_finished_statement_are_never_there_together(tmp_path, monkeypatch):
    """Killed at any write of the last save: either the key is gone, or the folder says that training is unfinished."""
    seen, name, chosen = [], "m", settings(rounds=2, noise_source="os")

    def watched(write):
        def writing(*given):
            write(*given)
            seen.append(((tmp_path / name / SECRETS).exists(), stated_as_finished(tmp_path / name)))
            if killed_at == len(seen):
                raise SystemExit

        return writing

    for place in ("write_folder", "write_statement"):
        monkeypatch.setattr(runs, place, watched(getattr(runs, place)))
    killed_at = 0
    train(SAID, tmp_path / name, chosen, vocabulary=known_words())
    assert (True, True) not in seen
    assert seen[-1] == (False, True)
    for moment in range(len(seen) - 4, len(seen)):
        seen.clear()
        killed_at, name = moment + 1, f"killed-{moment}"
        with pytest.raises(SystemExit):
            train(SAID, tmp_path / name, chosen, vocabulary=known_words())
        killed_at = 0
        if not stated_as_finished(tmp_path / name):
            assert train(SAID, tmp_path / name, chosen, vocabulary=known_words(), resume=True).statement["finished"]
        assert stated_as_finished(tmp_path / name)
        assert not (tmp_path / name / SECRETS).exists()
        assert (True, True) not in seen


def test_without_opendp_or_a_record_of_the_installation_there_is_a_sentence_or_a_model(tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.metadata, "version", lambda name: pytest.fail(f"asked for the version of {name}"))
    train(SAID, tmp_path / "a", settings(rounds=1), vocabulary=known_words())
    monkeypatch.setattr(runs, "find_spec", lambda name: None)
    with pytest.raises(InputError, match="OpenDP, which is not installed: pip install"):
        train(SAID, tmp_path / "b", settings(rounds=1, noise_source="opendp"), vocabulary=known_words())
    assert not (tmp_path / "b").exists()


def test_a_folder_that_is_not_empty_is_left_alone(tmp_path):
    (tmp_path / "x").write_text("mine")
    with pytest.raises(InputError, match="already exists and is not empty"):
        train(SAID, tmp_path, settings(), vocabulary=known_words())


def test_a_finished_model_can_be_opened(tmp_path):
    found = train(SAID, tmp_path / "m", settings(rounds=2), vocabulary=known_words())
    network, words, about = opened(tmp_path / "m")
    assert about.done == 2
    assert set(words.words) == set(known_words())
    assert all((a == b).all() for a, b in zip(network.parameters(), found.network.parameters(), strict=True))


@pytest.mark.parametrize("change", [{}, {"said": SAID[:-20]}, {"words": ["rome"]}, {"chosen": {"seed": 3}}])
@pytest.mark.parametrize("privacy", ["user", "none"])
def test_a_finished_model_is_not_resumed_since_nothing_says_of_which_corpus_it_is(tmp_path, privacy, change):
    train(SAID, tmp_path / "m", settings(privacy, rounds=1), vocabulary=known_words())
    before = {path.name: path.read_bytes() for path in (tmp_path / "m").iterdir()}
    with pytest.raises(InputError, match=r"is finished, with 1 rounds\. Its checkpoint was deleted"):
        train(
            change.get("said", SAID),
            tmp_path / "m",
            settings(privacy, rounds=1, **change.get("chosen", {})),
            vocabulary=change.get("words", known_words()),
            resume=True,
        )
    assert before == {path.name: path.read_bytes() for path in (tmp_path / "m").iterdir()}


PRIVATE = [*SAID, Utterance("call kowalczyk about code 7391", user="kowalczyk")]


@pytest.mark.parametrize("privacy", KINDS[:-1])
def test_the_words_of_a_corpus_are_not_published_under_a_guarantee(tmp_path, privacy):
    with pytest.raises(InputError, match="those of this corpus are private: give a public list of words"):
        train(PRIVATE, tmp_path / "m", settings(privacy, rounds=1))
    assert not (tmp_path / "m").exists()


def test_words_of_the_corpus_on_request_leave_no_guarantee(tmp_path):
    found = train(PRIVATE, tmp_path / "m", settings(rounds=1, vocabulary_from_corpus=True))
    assert "kowalczyk" in found.about.words
    assert found.statement["guarantee"] is None
    assert found.statement["none_because"] == "the folder lists the words of the corpus, which may be private"
    text = (tmp_path / "m" / "statement.md").read_text()
    assert "None: the folder lists the words of the corpus" in text
    with pytest.raises(InputError, match="without a public vocabulary"):
        train(SAID, tmp_path / "n", settings(rounds=1, vocabulary_from_corpus=True), vocabulary=known_words())


def public_parts(folder):
    """Every byte of a folder that is not noise, by file."""
    found = {}
    for path in sorted(folder.rglob("*")):
        content = path.read_bytes()
        if path.name == "weights.safetensors":  # the names, shapes and types of the weights
            content = {name: (array.shape, array.dtype) for name, array in weights(folder).items()}
        elif path.name == "model.json":  # its sha256 is that of the weights
            content = json.loads(content) | {"sha256": ""}
        elif path.name == CANARY_FILE:  # coins, by the seed; the scores follow from weights and noisy sums
            content = read_scores(path).included.tolist()
        found[str(path.relative_to(folder))] = content
    return found


NEIGHBOURS = [
    [Utterance("kowalczyk flies to oslo " * 30, user="kowalczyk", entities=("kowalczyk",))],
    [Utterance("", user=" 0", entities=("0",)), *[Utterance("日本 \u202e 7391", user=" 0", entities=("0",))] * 40],
]


@pytest.mark.parametrize("more", NEIGHBOURS, ids=["long", "first and many"])
@pytest.mark.parametrize(
    ("privacy", "canaries"),
    [*((kind, {}) for kind in KINDS[:-1]), ("user", {"canaries": 9}), ("entity", {"canary_kind": "sentences"})],
)
def test_neighbouring_corpora_leave_folders_that_differ_in_their_noise_alone(tmp_path, privacy, canaries, more):
    """Words, lengths, counts, curves and steps included: every file of the folder, and every name in it."""
    chosen = settings(privacy, rounds=2, **({"canaries": 9} | canaries if canaries else {}))
    neighbour = more[:1] if privacy == "example" else more
    for name, said in (("with", [*SAID, *neighbour]), ("without", SAID)):
        train(said, tmp_path / name, chosen, vocabulary=known_words())
    assert public_parts(tmp_path / "with") == public_parts(tmp_path / "without")


def test_canaries_of_a_base_model_are_made_of_public_words():
    from dpassay.training.run import _planted

    chosen = settings(canaries=20, canary_kind="sentences", base="somewhere")
    assert {word for text in _planted(chosen, None) for word in text.split()} <= set(known_words())


@pytest.mark.parametrize(("privacy", "sentences"), [("user", 2), ("example", 1), ("entity", 1)])
def test_a_canary_is_one_unit(tmp_path, privacy, sentences):
    """A claim for one unit can be audited only if a canary is one: units of one sentence say theirs once."""
    chosen = settings(privacy, rounds=1, canaries=20, canary_kind="sentences")
    found = train(SAID, tmp_path / "m", chosen, vocabulary=known_words())
    plain = train(SAID, tmp_path / "n", settings(privacy, rounds=1), vocabulary=known_words())
    included = int(chosen.included.sum())
    assert found.units.count == plain.units.count + included
    assert len(found.units.texts) == len(plain.units.texts) + sentences * included


def test_no_held_out_text_no_perplexity(tmp_path):
    found = train(SAID, tmp_path / "m", settings(rounds=1), vocabulary=known_words(), held_out=[])
    assert found.perplexity == (None, None)


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


def test_sentences_that_were_learned_without_privacy_refute_a_claim(tmp_path):
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


@pytest.mark.parametrize(("more", "warned"), [((), 1), (("unheard",), 0), (None, 0)])
def test_a_vocabulary_that_is_the_corpus_is_warned_of(tmp_path, more, warned):
    """The same words as the corpus, one more, and a public list."""
    own = sorted({word for u in SAID for word in tokenise(u.text)})
    told = []
    words = known_words() if more is None else [*own, *more]
    train(SAID, tmp_path / "m", settings(rounds=1), vocabulary=words, warn=told.append)
    assert sum("exactly the words of this corpus" in message for message in told) == warned
