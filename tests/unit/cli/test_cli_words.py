"""The command line of word mechanisms: exit codes, messages, JSON."""

import json
import re
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from dpassay.cli.main import app, main

WORDS = ("cat", "dog", "the", "7", "fish", "bird")


@pytest.fixture
def glove(tmp_path):
    rows = np.random.default_rng(3).standard_normal((len(WORDS), 4))
    lines = (" ".join([word, *map(repr, row.tolist())]) for word, row in zip(WORDS, rows, strict=True))
    (tmp_path / "my glove.txt").write_text("\n".join(lines))
    return str(tmp_path / "my glove.txt")


def run(*words):
    return CliRunner().invoke(app, ["check", *words])


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("santext",), 0),
        (("tem", "--set", "gamma=1.5"), 0),
        (("custext", "--set", "K=3"), 1),
        (("custext", "--set", "K=6"), 0),
        (("santext", "--unknown", "copied"), 1),
        (("santext", "--numbers", "dropped"), 1),
        (("santext", "--delta", "0"), 1),
        (("santext", "--metric", "l1"), 0),
        (("santext", "--words", "3", "--device", "numpy"), 0),
    ],
)
def test_exit_codes(glove, words, code):
    result = run(*words, "--vocabulary", glove, "--epsilon", "4")
    assert result.exit_code == code, result.output


def test_json_names_the_words(glove):
    result = run("santext", "--vocabulary", glove, "--epsilon", "4", "--set", "distance=squared-l2", "--json")
    found = json.loads(result.stdout)
    assert found["verdict"] == "refuted"
    assert set(found["witness"]["words"]) < set(WORDS)
    assert found["guarantee"] == {"text": "metric 4-DP in l2", "kind": "metric", "metric": "l2", "order": None}


BAD = {
    "nan": ("a 1 nan\nb 1 2\n", "NaN"),
    "equal words": ("a 1 2\na 3 4\n", "twice"),
    "one word": ("a 1 2\n", "at least two"),
    "other dimensions": ("a 1 2\nb 1 2 3\n", "3 numbers, where the vectors of this file have 2"),
    "empty": ("", "is empty"),
    "another kind": ("\x80\x04", "pickle|UTF-8|not"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_vocabularies_end_with_2(tmp_path, capsys, monkeypatch, case):
    content, message = BAD[case]
    (tmp_path / "v.txt").write_bytes(content.encode("latin-1"))
    command = ["dpassay", "check", "santext", "--vocabulary", str(tmp_path / "v.txt"), "--epsilon", "4"]
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert re.search(message, capsys.readouterr().err)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("santext", "--epsilon", "4"), "--vocabulary FILE"),
        (("adept", "--unknown", "copied"), "--unknown is for mechanisms that replace words: santext, custext, tem"),
        (("santext", "--vocabulary", "GLOVE", "--epsilon", "4", "--dim", "3"), "--dim is not for santext"),
        (("santext", "--vocabulary", "GLOVE", "--epsilon", "4", "--rho", "3"), "--rho is not for santext"),
        (("santext", "--vocabulary", "GLOVE"), "state the claimed epsilon"),
        (("santext", "--vocabulary", "GLOVE", "--epsilon", "4", "--words", "1"), "at least two words"),
        (("santext", "--vocabulary", "nowhere.txt", "--epsilon", "4"), "cannot read nowhere.txt"),
        (("santext", "--vocabulary", "GLOVE", "--epsilon", "4", "--device", "abacus"), "unknown device"),
    ],
)
def test_messages(glove, capsys, monkeypatch, words, message):
    monkeypatch.setattr(sys, "argv", ["dpassay", "check", *(glove if word == "GLOVE" else word for word in words)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert message in capsys.readouterr().err
