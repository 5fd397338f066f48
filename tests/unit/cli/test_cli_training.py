"""The command that audits a training run."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from dpassay.cli.main import app
from dpassay.errors import InputError
from dpassay.training.canaries.scores import CanaryScores, read_scores, write_scores


@pytest.fixture
def scores(tmp_path):
    rng = np.random.default_rng(0)
    included = rng.random(600) < 0.5
    write_scores(CanaryScores(rng.normal(size=600) + 3 * included, included), tmp_path / "scores.csv")
    return tmp_path / "scores.csv"


def run(*arguments):
    return CliRunner().invoke(app, ["audit-training", *map(str, arguments)])


def test_scores_refute_a_claim(scores, tmp_path):
    result = run(
        "--scores",
        scores,
        "-e",
        1,
        "-d",
        "1e-5",
        "--json",
        "--figure",
        tmp_path / "roc.svg",
        "--exposure",
        tmp_path / "bits.svg",
        "--html",
        tmp_path / "p.html",
    )
    assert result.exit_code == 1
    told = json.loads(result.stdout)
    assert told["verdict"] == "refuted"
    assert float(told["epsilon"]["lower"]) > 1
    assert "<svg" in (tmp_path / "roc.svg").read_text()
    assert "<svg" in (tmp_path / "bits.svg").read_text()
    assert "one-run" in (tmp_path / "p.html").read_text()


@pytest.mark.parametrize(("inside", "said"), [(True, "4 canaries were in"), (False, "4 canaries were out")])
def test_canaries_on_one_side_have_a_verdict_and_no_picture(tmp_path, inside, said):
    write_scores(CanaryScores([1.0, 2.0, 3.0, 4.0], [inside] * 4), tmp_path / "all.csv")
    pictures = [tmp_path / "roc.svg", tmp_path / "bits.svg"]
    result = run(
        *("--scores", tmp_path / "all.csv", "-e", 1, "--json"),
        *("--figure", pictures[0], "--exposure", pictures[1]),
    )
    assert result.exit_code == 0
    assert json.loads(result.stdout)["verdict"] == "open"  # 4 right guesses: (e/(1 + e))^4 = 0.29
    assert said in result.stderr
    assert not any(picture.exists() for picture in pictures)


def test_an_open_verdict_can_be_refused(scores):
    assert run("--scores", scores, "--mu", 20).exit_code == 0
    assert run("--scores", scores, "--mu", 20, "--require-decision").exit_code == 3


def test_a_function_is_trained_and_its_scores_are_kept(tmp_path, monkeypatch):
    (tmp_path / "canary_subject.py").write_text(
        "def train(included, seed):\n    print('hello')\n    return included * 1.0\n"
    )
    monkeypatch.chdir(tmp_path)
    result = run(
        "--python", "canary_subject:train", "--canaries", 50, "--runs", 2, "--save", "s.csv", "--epsilon", 1, "--json"
    )
    assert result.exit_code == 1
    assert json.loads(result.stdout)["runs"] == 2
    assert read_scores("s.csv").canaries == 100


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--epsilon", 1], "give the scores"),
        (["--scores", "none.csv", "--epsilon", 1], "there is no file"),
        (["--scores", "SCORES", "--save", "x.csv", "--epsilon", 1], "--save is for --python"),
        (["--scores", "SCORES"], "state the claim"),
    ],
)
def test_bad_input_gets_a_sentence(scores, arguments, said):
    result = run(*(scores if argument == "SCORES" else argument for argument in arguments))
    assert isinstance(result.exception, InputError)
    assert said in str(result.exception)


def test_ctrl_c_keeps_the_runs_that_were_finished(tmp_path, monkeypatch):
    (tmp_path / "stopped_subject.py").write_text(
        "made = []\n"
        "def train(included, seed):\n"
        "    made.append(seed)\n"
        "    if len(made) == 3:\n"
        "        raise KeyboardInterrupt\n"
        "    return included * 1.0\n"
    )
    monkeypatch.chdir(tmp_path)
    asked = ["--python", "stopped_subject:train", "--canaries", 20, "--runs", 5, "--epsilon", 1]
    result = run(*asked, "--save", "s.csv")
    assert result.exit_code == 130
    assert "finished runs are in s.csv" in result.stderr
    assert read_scores("s.csv").runs == 2
    assert run(*asked, "--save", "s.csv", "--json").exit_code == 1
    assert read_scores("s.csv").runs == 5


def test_a_claim_that_cannot_be_tested_costs_no_training(tmp_path, monkeypatch):
    (tmp_path / "untouched_subject.py").write_text("def train(included, seed):\n    open('trained', 'w').close()\n")
    monkeypatch.chdir(tmp_path)
    for wrong in (["--epsilon", -1], ["--alpha", 0.9, "--epsilon", 1], ["--neighbours", "friends", "--epsilon", 1]):
        assert isinstance(run("--python", "untouched_subject:train", *wrong).exception, InputError)
    assert not (tmp_path / "trained").exists()
