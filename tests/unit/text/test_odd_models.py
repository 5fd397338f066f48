"""Odd models, files and options: each is refused with a sentence, and nothing is written over or judged by mistake."""

import hashlib
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="text systems need the extra: pip install 'dpassay[text]'")

from dpassay import InputError  # noqa: E402
from dpassay.claims.registry import find  # noqa: E402
from dpassay.cli import main as cli  # noqa: E402
from dpassay.text import systems  # noqa: E402
from dpassay.text.corpora.corpus import read_corpus  # noqa: E402
from dpassay.text.models.folder import from_bytes, to_bytes  # noqa: E402
from dpassay.text.models.training import EpochPlan  # noqa: E402
from dpassay.text.reconstruction import learn  # noqa: E402
from dpassay.text.rewriters.base import as_mechanism  # noqa: E402
from dpassay.text.rewriters.catalogue import Specification  # noqa: E402
from dpassay.text.rewriters.vectors.adept import load, train  # noqa: E402
from dpassay.text.rewriters.vectors.latent import LatentRewriter  # noqa: E402
from dpassay.text.rewriters.vectors.release import Release  # noqa: E402


def refused(monkeypatch, capsys, *arguments: object) -> str:
    monkeypatch.setattr(sys, "argv", ["dpassay", *map(str, arguments)])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    out, err = capsys.readouterr()
    assert (stopped.value.code, out) == (2, "")
    return str(err)


def changed(folder: Path, place: Path, weights=None, **changes) -> Path:
    shutil.copytree(folder, place)
    about = json.loads((place / "model.json").read_text())
    if weights is not None:
        arrays = from_bytes((place / "weights.safetensors").read_bytes(), place)
        content = to_bytes({name: weights(name, array) for name, array in arrays.items()})
        (place / "weights.safetensors").write_bytes(content)
        about["sha256"] = hashlib.sha256(content).hexdigest()
    (place / "model.json").write_text(json.dumps({**about, **changes}))
    return place


@pytest.mark.parametrize("word", ["two\nlines", "two words", "", "\ud800"])
def test_a_model_writes_one_line_a_line(folder, tmp_path, word):
    words = json.loads((folder / "model.json").read_text())["words"]
    with pytest.raises(InputError, match="a word that is not one"):
        load(changed(folder, tmp_path / "m", words=[word, *words[1:]]))


@pytest.mark.parametrize("odd", [lambda a: a * np.nan, lambda a: a.astype(np.int64), lambda a: a.astype(np.float64)])
def test_weights_are_finite_and_of_one_kind(folder, tmp_path, odd):
    place = changed(folder, tmp_path / "m", lambda name, array: odd(array) if name == "to_latent.bias" else array)
    with pytest.raises(InputError, match=r"not all finite 32-bit floating-point numbers: see to_latent\.bias"):
        load(place)


def test_training_goes_on_only_with_what_the_optimiser_remembers(tmp_path):
    texts, sizes = ["fly to rome", "fly to oslo"], {"latent": 2, "hidden": 4, "embedding": 4}
    train(texts, [], tmp_path / "m", EpochPlan(2, 4), **sizes)
    place = changed(tmp_path / "m", tmp_path / "less", steps=1)
    with pytest.raises(InputError, match="is missing; train into another folder"):
        train(texts, [], place, EpochPlan(2, 4), **sizes, resume=True)
    with pytest.raises(InputError, match="clip must be a number from"):
        train(texts, [], tmp_path / "tiny", EpochPlan(2, 4), **sizes, clip=1e-200)


@pytest.mark.parametrize(("name", "value"), [("dim", 32), ("C", "2"), ("T", "2")])
def test_a_claim_about_a_model_is_not_judged_with_other_sizes(folder, name, value):
    with pytest.raises(InputError, match=f"has its own {name}"):
        systems.check_model(find("adept-l1"), folder, **{name: value})


def test_the_model_s_own_size_may_be_given(folder):
    assert systems.check_model(find("adept-l1"), folder, dim=16, epsilon="2").word == "proven"


def test_texts_are_texts(folder):
    rewriter = as_mechanism(Specification.read(f"{folder},mechanism=l1").at(1.0, 0.0))
    for odd in ([1, 2], [["a"], {}]):
        with pytest.raises(InputError, match="a text system takes texts, got"):
            systems.attacked(systems.Running(rewriter, {}), odd, 0, None)


def test_a_seed_below_0_is_refused(model):
    with pytest.raises(InputError, match="seed must be 0 or more, got -1"):
        learn(LatentRewriter(model, Release("l1", 1, dim=16)), ["a", "b"], seed=-1)


def test_half_a_character_of_a_corpus_is_refused(tmp_path):
    path = tmp_path / "half.jsonl"
    path.write_text('{"text": "whole"}\n{"text": "half \\ud800"}\n')
    with pytest.raises(InputError, match="line 2: the text has half a character"):
        read_corpus(path)


def test_an_audit_of_a_model_that_says_too_little_is_refused(folder, tmp_path):
    from dpassay import audit

    saved = tmp_path / "a.json"
    named = Specification.read(str(folder))
    rewriter = Specification.read(f"{folder},mechanism=adept-as-published").at(1.0)
    audit(rewriter, [("a flight", "to rome")], epsilon=1, runs=100, save=saved)
    assert systems.of_audit(saved, named)[1] is None
    data = json.loads(saved.read_text())
    del data["asked"]["subject"]["epsilon"]
    saved.write_text(json.dumps(data))
    with pytest.raises(InputError, match="does not say which 'epsilon'"):
        systems.of_audit(saved, named)


def test_nothing_is_written_over_the_input(folder, tmp_path, monkeypatch, capsys):
    source = tmp_path / "in.txt"
    source.write_text("a flight\n")
    line = ("rewrite", "--model", folder, "--mechanism", "none", "--in")
    twice = ("--out", tmp_path / "o", "--statement", tmp_path / "." / "o")
    for options, said in ((("--statement", source), "must be different files"), (twice, "cannot write two results to")):
        assert said in refused(monkeypatch, capsys, *line, source, *options)
    assert source.read_text() == "a flight\n"
    for missing in (tmp_path / "no.txt", tmp_path):
        assert "cannot read" in refused(monkeypatch, capsys, *line, missing, "--out", tmp_path / "o")
    assert [path.name for path in tmp_path.iterdir()] == ["in.txt"]


@pytest.mark.parametrize("option", ["--latent", "--steps", "--batch"])
def test_0_is_not_the_default(option, tmp_path, monkeypatch, capsys):
    line = ("train", "adept", "--corpus", "flights:40", "--out", tmp_path / "m", option, 0)
    assert "got 0" in refused(monkeypatch, capsys, *line)


def test_at_least_one_candidate_is_shown(folder, tmp_path, monkeypatch, capsys):
    line = ("reconstruct", "x", "--model", folder, "--candidates", tmp_path / "c.txt", "--epsilon", 1, "--most", 0)
    assert "--most must be 1 or more, got 0" in refused(monkeypatch, capsys, *line)
