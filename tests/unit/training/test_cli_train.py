"""`dpassay train lm` as a person meets it: what is printed, what is refused, and what Ctrl-C leaves."""

import json
import os
import shlex
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
    assert err == f"interrupted; the progress so far is in {tmp_path / 'm'}. To continue, add --resume\n"
    code, out, _ = here(*given, "--resume")
    assert code == 0
    assert json.loads(out)["rounds"] == {"done": 2, "planned": 2}
    assert json.loads(out)["guarantee"] is None
    assert json.loads(out)["otherwise"]["epsilon"]["upper"] > 0
    for other in ((), ("--corpus", "bookings:60"), ("--seed", 3)):
        code, out, err = here(*given, "--resume", *other)
        assert (code, out, "is finished, with 2 rounds" in err) == (2, "", True)


def test_what_a_known_seed_guarantees_is_printed(here, tmp_path):
    code, out, _ = here(*QUICK, "--noise-multiplier", 1, "--noise-source", "torch", "--out", tmp_path / "m")
    assert code == 0
    assert "guarantee: none: noise from a known seed" in out
    assert "epsilon" not in out


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


def test_private_words_are_refused_and_never_under_an_epsilon(here, tmp_path):
    corpus = tmp_path / "mail.csv"
    rows = [f"user{i},call kowalczyk about code 7391 {i}" for i in range(40)]
    corpus.write_text("user,text\n" + "\n".join(rows) + "\n")
    given = ("--corpus", corpus, "--rounds", 1, "--rate", 0.2, "--epsilon", 1, "--out", tmp_path / "m")
    code, out, err = here(*given)
    assert (code, out) == (2, "")
    assert "give a public list of words with --vocabulary FILE" in err
    assert not (tmp_path / "m").exists()
    code, out, _ = here(*given, "--vocabulary-from-corpus")
    assert code == 0
    assert "guarantee: none: the folder lists the words of the corpus" in out
    assert "epsilon" not in out
    (tmp_path / "public.txt").write_text("call\nabout\ncode\n")
    code, out, _ = here(*given[:-1], tmp_path / "p", "--vocabulary", tmp_path / "public.txt")
    assert (code, "epsilon: [" in out) == (0, True)
    content = b"".join(path.read_bytes() for path in (tmp_path / "p").iterdir())
    assert b"kowalczyk" not in content
    assert b"7391" not in content


def test_the_audit_command_that_is_printed_can_be_run(here, tmp_path, monkeypatch, capfd):
    given = (*QUICK, "--epsilon", 4, "--out", tmp_path / "with space", "--canaries", 20)
    code, out, _ = here(*given)
    assert code == 0
    (line,) = [line for line in out.splitlines() if "to audit it: " in line]
    words = shlex.split(line.partition("to audit it: ")[2])
    assert words[words.index("--neighbours") + 1] == "user"
    high = json.loads(out.split("epsilon: ")[1].split(" at delta")[0])[1]
    assert float(words[words.index("--epsilon") + 1]) >= high - 1e-5
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert int(stopped.value.code or 0) in (0, 1)
    assert "canaries" in capfd.readouterr().out


def test_a_delta_that_is_too_large_is_worth_a_warning(here, tmp_path):
    code, _, err = here(*QUICK, "--noise-multiplier", 1, "--delta", 0.1, "--out", tmp_path / "m")
    assert code == 0
    assert "warning: delta 0.1 is at least 1 over the number of units" in err


@pytest.mark.parametrize("command", ["lm", "adept"])
def test_help_does_not_promise_that_a_seed_repeats_private_noise(monkeypatch, capfd, command):
    monkeypatch.setattr(sys, "argv", ["dpassay", "train", command, "--help"])
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit):
        cli.main()
    out = " ".join(capfd.readouterr().out.split())
    assert "The same seed gives the same result. " not in out
    assert "starting weights" in out.partition("--seed ")[2].partition("--device")[0]
    assert "unless --noise-source is torch" in out.partition("--seed ")[2].partition("--device")[0]


def test_an_early_end_is_said_where_epsilon_is_printed(here, tmp_path, monkeypatch):
    given = (*QUICK[:2], "--rate", 0.2, "--noise-multiplier", 1, "--out", tmp_path / "m")

    def tell(done, of, note):
        os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as stopping, interruptible():
        stopping.setattr(common, "progress_lines", lambda: tell)
        assert here(*given, "--rounds", 9)[0] == 130
    code, out, err = here(*given, "--rounds", 3, "--resume")
    assert (code, "more than the" in err) == (0, False)
    assert "  that is for all 9 planned rounds; training ended early" in out
    assert "  rounds: 3\n" in out
    code, out, _ = here(*given[:-1], tmp_path / "whole", "--rounds", 3)
    assert (code, "planned rounds" in out) == (0, False)
