"""`dpassay train lm` as a person meets it: what is printed, what is refused, and what Ctrl-C leaves."""

import json
import os
import signal
import sys

import pytest

from processes import interruptible

pytest.importorskip("torch", reason="training needs the extra: pip install 'dpassay[text]'")

from dpassay.cli import common
from dpassay.cli import main as cli

QUICK = ("--corpus", "flights:60", "--rounds", 2, "--rate", 0.2)


@pytest.fixture
def here(monkeypatch, capfd):
    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["dpassay", "train", "lm", *map(str, arguments)])
        monkeypatch.setenv("COLUMNS", "100")
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        out, err = capfd.readouterr()
        return int(stopped.value.code or 0), out, err

    return call


def test_a_model_is_trained_and_the_result_printed(here, tmp_path):
    code, out, _ = here(*QUICK, "--out", tmp_path / "m", "--epsilon", 4)
    assert code == 0
    assert "held-out perplexity: " in out
    assert "  rounds: 2\n" in out
    assert "statement.md" in out
    low, high = json.loads(out.split("epsilon: ")[1].split(" at delta")[0])
    assert 3.9 < low <= high <= 4


def test_machine_readable_output_and_a_resumed_run(here, tmp_path, monkeypatch):
    given = (*QUICK, "--noise-multiplier", 1, "--noise-source", "torch", "--out", tmp_path / "m", "--json")

    def tell(done, of, note):
        os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as stopping, interruptible():
        stopping.setattr(common, "progress_lines", lambda: tell)
        code, out, err = here(*given)
    assert (code, out) == (130, "")
    assert err == f"interrupted; what was learnt is in {tmp_path / 'm'}. To continue, add --resume\n"
    code, out, _ = here(*given, "--resume")
    assert code == 0
    assert json.loads(out)["rounds"] == {"done": 2, "planned": 2}
    assert json.loads(out)["guarantee"]["epsilon"]["upper"] > 0
    code, _, err = here(*given, "--resume", "--rate", 0.3)
    assert (code, "differs in rate" in err) == (2, True)


@pytest.mark.parametrize(
    ("lines", "options", "message"),
    [
        ("to rome\nto oslo\nhello\n", ("--epsilon", 1), "3 of 3 utterances have no user"),
        ("user,text\nx,to rome\nx,to oslo\n", ("--epsilon", 1, "--held-out", "flights:5"), "1 user is left"),
        (
            "user,text,entities\nx,to rome,rome\ny,from rome,rome\n",
            ("--epsilon", 1, "--held-out", "flights:5", "--privacy", "entity"),
            "'rome' is in every sentence",
        ),
        ("user,text\nx,to rome\ny,oslo\n", ("--epsilon", 1, "--privacy", "entity"), "names no entities"),
        (None, ("--epsilon", 0), "epsilon must be a positive number"),
        (None, ("--epsilon", 1e-9, "--delta", 1e-15, "--rate", 1), "no noise multiplier up to 10,000 gives"),
        (None, (), "give either the epsilon or the noise multiplier"),
        (None, ("--epsilon", 1, "--noise-source", "dice"), "unknown noise source 'dice'"),
        (None, ("--epsilon", 1, "--privacy", "all"), "unknown privacy 'all'"),
        (None, ("--epsilon", 1, "--vocabulary", "/no/such"), "the vocabulary /no/such cannot be read"),
        (None, ("--epsilon", 1, "--entities-from", "spacy"), "--entities-from is for entity"),
        (None, ("--epsilon", 1, "--latent", 3), "--latent is not an option of lm"),
        (None, ("--epsilon", 1, "--rounds", 0), "rounds must be a whole number"),
    ],
)
def test_bad_input_is_one_sentence_and_leaves_nothing(here, tmp_path, lines, options, message):
    corpus = "flights:60"
    if lines is not None:
        corpus = tmp_path / ("c.csv" if "," in lines else "c.txt")
        corpus.write_text(lines)
    code, out, err = here("--corpus", corpus, "--out", tmp_path / "m", *options)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
    assert not (tmp_path / "m").exists()


def test_a_delta_that_is_too_large_is_worth_a_warning(here, tmp_path):
    code, _, err = here(*QUICK, "--noise-multiplier", 1, "--delta", 0.1, "--out", tmp_path / "m")
    assert code == 0
    assert "warning: delta 0.1 is at least 1 over the number of units" in err
