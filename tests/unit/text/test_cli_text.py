"""The commands for text systems, as a person meets them."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from processes import LIMIT, started, wait_until

torch = pytest.importorskip("torch", reason="text systems need the extra: pip install 'dpassay[text]'")
opendp = pytest.importorskip("opendp", reason="noise that is released needs the extra: pip install 'dpassay[release]'")

from dpassay.cli import main as cli  # noqa: E402
from dpassay.cli.text.resuming import Rewritten  # noqa: E402

NONE = "guarantee: no finite epsilon for any two texts (local DP); nothing is random\n"


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]):  # type: ignore[no-untyped-def]
    """The command line in this process: exit code, stdout, stderr."""

    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["dpassay", *map(str, arguments)])
        monkeypatch.setenv("COLUMNS", "100")
        monkeypatch.setenv("NO_COLOR", "1")
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        out, err = capfdbinary.readouterr()
        return int(stopped.value.code or 0), out.decode(), err.decode()

    return call


def test_the_shipped_corpus_is_written_and_a_model_trained_from_it(here, tmp_path):
    corpus, model = tmp_path / "c.csv", tmp_path / "m"
    assert here("corpus", "--out", corpus, "--lines", 60)[0] == 0
    code, out, _ = here("train", "adept", "--corpus", corpus, "--out", model, "--steps", 3, "--latent", 4, "--json")
    assert code == 0
    assert json.loads(out)["steps"] == 3
    assert sorted(path.name for path in model.iterdir()) == ["model.json", "weights.safetensors"]
    code, _, err = here("train", "adept", "--corpus", corpus, "--out", model, "--steps", 3)
    assert code == 2
    assert "not empty" in err


ODD = b"\n  \n\xf0\x9f\x9b\xab rome\na\0b\n" + b"word " * 10_000 + b"\nlast line without an end"


@pytest.mark.parametrize(
    "options",
    [
        ("--mechanism", "gaussian", "--epsilon", 5, "--delta", "1e-6"),
        ("--mechanism", "adept-as-published", "--epsilon", 1, "--as-published"),
        ("--mechanism", "none"),
    ],
)
def test_line_n_in_is_line_n_out(here, folder, tmp_path, options):
    source, out = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_bytes(ODD)
    assert here("rewrite", "--model", folder, "--in", source, "--out", out, *options)[0] == 0
    assert out.read_bytes().count(b"\n") == 6
    stated = json.loads((tmp_path / "out.txt.json").read_text())
    assert stated["mechanism"] == options[1]
    if options[1] == "gaussian":
        assert stated["guarantee"]["epsilon"] <= 5
        assert stated["drawn"]["sampler"].startswith("OpenDP")


def test_rewriting_goes_on_behind_the_lines_that_are_there(here, folder, tmp_path):
    source, out = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("one\ntwo\nthree\n")
    line = ("rewrite", "--model", folder, "--in", source, "--out", out, "--mechanism", "l1", "--epsilon", 2)
    assert here(*line)[0] == 0
    whole = out.read_bytes()
    first = whole.split(b"\n")[0] + b"\n"
    out.write_bytes(first + b"half a li")
    Rewritten(out).begin()
    assert here(*line, "--resume")[0] == 0
    assert out.read_bytes().startswith(first)
    assert b"half a li" not in out.read_bytes()
    assert out.read_bytes().count(b"\n") == 3
    code, _, err = here(*line)
    assert (code, "exists already" in err) == (2, True)
    code, _, err = here(*line[:-1], 3, "--resume")
    assert (code, "rewritten with other options" in err) == (2, True)


@pytest.mark.long
def test_two_workers_write_what_one_process_writes(here, folder, texts, tmp_path):
    source, alone, both = tmp_path / "in.txt", tmp_path / "alone.txt", tmp_path / "both.txt"
    source.write_text("".join(f"{line}\n" for line in (texts * 30)[:2000]))
    line = ("rewrite", "--model", folder, "--in", source, "--mechanism", "none", "--out")
    assert here(*line, alone)[0] == 0
    whole = alone.read_bytes()
    assert whole.count(b"\n") == 2000
    both.write_bytes(b"".join(whole.splitlines(keepends=True)[:1000]) + b"half a li")
    (tmp_path / "both.txt.json").write_bytes((tmp_path / "alone.txt.json").read_bytes())
    Rewritten(both).begin()
    code, _, err = here(*line, both, "--resume", "--workers", 2)
    assert (code, err.startswith(NONE), err.endswith(f"2,000 lines in {both}\n")) == (0, True, True)
    assert both.read_bytes() == whole


def test_workers_are_told_which_model_it_is(here, folder, tmp_path, monkeypatch):
    from dpassay.compute import executors, workers

    asked = []

    class Recorded(executors.Threads):
        def map(self, function, items):  # type: ignore[no-untyped-def]
            asked.append(function.args[0])
            return super().map(function, items)

    monkeypatch.setattr(workers, "Processes", Recorded)
    (tmp_path / "in.txt").write_bytes(b"a\n" * 600 + b"\xff\n")
    monkeypatch.chdir(folder.parent)
    options = ("--model", folder.name, "--in", tmp_path / "in.txt", "--mechanism", "l1", "--epsilon", "2")
    code, _, err = here("rewrite", *options, "--out", tmp_path / "out.txt", "--workers", 2)
    assert (code, "line 601, is not UTF-8" in err) == (2, True)  # told after the lines before it are written
    assert (tmp_path / "out.txt").read_bytes().count(b"\n") == 600
    [order] = asked
    assert order.rewriter == f"{folder},mechanism=l1"
    assert order.sha256 == json.loads((tmp_path / "out.txt.json").read_text())["model"]["sha256"]
    assert order.threads == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--workers", "0"), "workers must be a whole number"),
        (("--workers", "2", "--cluster", "tcp://127.0.0.1:1"), "not both"),
        (("--cluster", "nowhere"), "no Dask scheduler answers at nowhere"),
        (("--cluster", "nowhere", "--device", "abacus"), "unknown device"),
    ],
)
def test_a_crew_that_cannot_be_had_is_said_before_anything_is_written(here, folder, tmp_path, options, said):
    (tmp_path / "in.txt").write_text("a\n")
    out = tmp_path / "out.txt"
    line = ("rewrite", "--model", folder, "--in", tmp_path / "in.txt", "--mechanism", "none", "--out", out)
    code, _, err = here(*line, *options)
    assert code == 2
    assert said in err
    assert [path.name for path in tmp_path.iterdir()] == ["in.txt"]


@pytest.mark.long
def test_ctrl_c_keeps_what_a_worker_has_written(folder, texts, tmp_path):
    source, out = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("".join(f"{line}\n" for line in texts * 1000))
    line = [sys.executable, "-m", "dpassay", "rewrite", "--model", str(folder), "--mechanism", "none", "--workers", "1"]
    line += ["--in", str(source), "--out", str(out)]
    with started(line, stderr=subprocess.PIPE) as running:
        wait_until(lambda: out.exists() and out.stat().st_size, running)
        os.killpg(running.pid, signal.SIGINT)  # as a terminal does it: to all of them
        _, err = running.communicate(timeout=LIMIT)
    lines = out.read_bytes().count(b"\n")
    assert running.returncode == 130
    assert err.decode() == f"{NONE}interrupted; {lines:,} lines are in {out}. To continue, add --resume\n"
    assert lines >= 512


def test_lines_stream_from_standard_input(folder):
    command = [sys.executable, "-m", "dpassay", "rewrite", "--model", str(folder), "--mechanism", "none"]
    run = subprocess.run(command, input=b"a flight\n\n", capture_output=True, check=True, timeout=LIMIT)
    assert run.stdout.count(b"\n") == 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--mechanism", "adept-as-published", "--epsilon", "1"), "sqrt(n) times"),
        (("--mechanism", "laplace", "--epsilon", "1"), "unknown mechanism 'laplace'"),
        (("--mechanism", "l1", "--epsilon", "0"), "epsilon must be"),
        (("--mechanism", "l1"), "specify the epsilon"),
        (("--mechanism", "l1", "--epsilon", "1", "--delta", "0.1"), "leave delta out"),
        (("--mechanism", "gaussian", "--epsilon", "1", "--delta", "0"), "needs a delta"),
        (("--epsilon", "1", "--true-epsilon", "1"), "not both"),
        (("--set", "colour=red", "--epsilon", "1"), "there is no setting 'colour'"),
        (("--python", "mine:own"), "specify one rewriter"),
        (("--mechanism", "none", "--epsilon", "1"), "there is no epsilon"),
        (("--mechanism", "none", "--resume"), "--resume needs --out"),
    ],
)
def test_what_cannot_be_rewritten_is_said(here, folder, tmp_path, options, said):
    (tmp_path / "in.txt").write_text("a\n")
    code, out, err = here("rewrite", "--model", folder, "--in", tmp_path / "in.txt", *options)
    assert (code, out) == (2, "")
    assert said in err


def test_text_that_is_not_utf8_keeps_what_was_rewritten(here, folder, tmp_path):
    (tmp_path / "in.txt").write_bytes(b"a\n" * 600 + b"\xff\n")
    out = tmp_path / "out.txt"
    code, _, err = here("rewrite", "--model", folder, "--in", tmp_path / "in.txt", "--mechanism", "none", "--out", out)
    assert code == 2
    assert "line 601, is not UTF-8" in err
    assert out.read_bytes().count(b"\n") == 600


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"flight,book a flight\n", "at least 2 utterances"),
        (b"flight,book a flight\nairfare\n", "line 2"),
        (b"flight,book a flight\nairfare,caf\xe9\n", "UTF-8"),
        (b"", "empty"),
    ],
)
def test_a_corpus_that_cannot_be_used_is_said(here, tmp_path, content, said):
    (tmp_path / "c.csv").write_bytes(content)
    code, _, err = here("train", "adept", "--corpus", tmp_path / "c.csv", "--out", tmp_path / "m")
    assert code == 2
    assert said in err
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("bert",), "there is no command 'bert'"),
        (("adept", "--device", "abacus"), "unknown device"),
        (("adept", "--steps", "-1"), "steps must be"),
        (("dptext", "--epsilon", "0"), "epsilon must be"),
        (("adept", "--adversary", "0"), "there is no option --adversary"),
        (("adept", "--fine-tune", "3"), "there is no option --fine-tune"),
        (("dptext", "--adversary", "-1", "--as-published"), "the weight of the adversary must be 0"),
        (("dptext", "--resume"), "there is no option --resume"),
        (("adept", "--epsilon", "3"), "add --privacy example or user"),
        (("dptext", "--clip", "1"), "there is no option --clip"),
        (("-q", "adept"), "-q must come after the command: dpassay train COMMAND -q"),
        (("--helf", "adept"), "there is no option --helf; did you mean '--help'?"),
    ],
)
def test_what_cannot_be_trained_is_said(here, tmp_path, options, said):
    code, _, err = here("train", *options, "--out", tmp_path / "m")
    assert code == 2
    assert said in err


@pytest.mark.parametrize(
    ("system", "own", "others"),
    [
        ("adept", "--latent", ("--rounds", "--reading", "--encoder")),
        ("dptext", "--reading", ("--privacy", "--resume")),
        ("dpnr", "--encoder", ("--reading", "--rounds")),
        ("binary", "--lambda", ("--reading", "--mu")),
        ("lm", "--noise-multiplier", ("--latent", "--reading", "--mu")),
    ],
)
def test_each_system_has_a_page_of_its_own(here, system, own, others):
    code, out, _ = here("train", system, "--help")
    assert (code, own in out) == (0, True)
    assert not [option for option in others if f"{option} " in out]
    code, out, _ = here("train", "--help")
    assert all(f"  {name} " in out for name in ("adept", "dptext", "dpnr", "binary", "lm"))
    assert "--out" not in out


def test_dptext_is_reported_with_what_holds_and_what_a_guess_reaches(here, tmp_path):
    options = ("--corpus", "dialects:60", "--latent", 4, "--steps", 2)
    for more in ((), ("--reading", "right"), ("--reading", "nan", "--epsilon", 3)):  # nothing infinite without a flag
        code, _, err = here("train", "dptext", *options, *more, "--out", tmp_path / "x")
        assert (code, "no finite epsilon" in err, (tmp_path / "x").exists()) == (2, True, False)
    code, out, _ = here("train", "dptext", *options, "--reading", "right", "--epsilon", 3, "--out", tmp_path / "c")
    assert (code, "what holds: epsilon 3 for any two texts" in out) == (0, True)
    assert "not covered: the names of labels and attributes, which the model's folder lists" in out
    options = (*options, "--as-published")
    code, out, _ = here("train", "dptext", *options, "--out", tmp_path / "a", "--adversary", 0, "--json")
    found = json.loads(out)
    assert (code, found["adversary"], found["learnt"], found["guarantee"]["epsilon"]) == (0, 0, True, "inf")
    code, out, _ = here("train", "dptext", *options, "--out", tmp_path / "b", "--adversary", 2.5)
    lines = out.splitlines()
    assert code == 0
    assert all(
        "what holds: as published, no finite epsilon (claimed: " in line
        for line in lines
        if line.startswith("  epsilon")
    )
    assert sum("epsilon" in line for line in lines) == 1
    assert f"with the adversary (weight 2.5); chance: {found['chance']:.3f}" in out
    assert f"always the most common one: {found['commonest_task']:.3f}" in out
    code, _, err = here("check", "dptext-zero", "--model", tmp_path / "a", "--epsilon", 3)
    assert (code, "(learned, and therefore not a guarantee)" in err) == (2, True)


def test_dpnr_says_that_its_training_texts_are_not_covered(here, tmp_path, monkeypatch):
    from dpassay.text.models import encoders

    letters = encoders.Remembering(
        "letters", 3, lambda texts: [[text.count(letter) for letter in "abc"] for text in texts]
    )
    monkeypatch.setattr(encoders, "sentence_encoder", lambda name: letters)
    code, out, _ = here("train", "dpnr", "--corpus", "dialects:40", "--out", tmp_path / "m")
    assert (code, "fine tuning steps: 0" in out, "not covered: the training texts" in out) == (0, True, True)
    assert "what holds: epsilon 0.05 for any two texts (local DP)" in out  # with 3 numbers, 3 times the published noise
    options = ("--corpus", "dialects:40", "--epsilon", "5", "--as-published")
    code, out, _ = here("train", "dpnr", *options, "--out", tmp_path / "p")
    assert (code, "what holds: as published, epsilon 15 (claimed: 5)" in out) == (0, True)
    options = ("--corpus", "dialects:40", "--epsilon", "5", "--delta", "1e-5", "--out", tmp_path / "g")
    assert here("train", "dpnr", *options)[0] == 0
    monkeypatch.setattr("dpassay.text.rewriters.vectors.dpnr.sentence_encoder", lambda name: letters)
    for claim, expected in (("dpnr-gaussian", 1), ("dpnr-gaussian-fixed", 0)):
        code, out, _ = here("check", claim, "--model", tmp_path / "g", "--json")
        assert (code, json.loads(out)["claim"]["dim"]) == (expected, 3)
    for claim, model, said in (("dpnr", "g", "has Gaussian noise"), ("dpnr-gaussian", "m", "has Laplace noise")):
        code, _, err = here("check", claim, "--model", tmp_path / model)
        assert (code, said in err) == (2, True), err
    code, _, err = here("train", "dpnr", "--corpus", "dialects:40", "--delta", "1", "--out", tmp_path / "x")
    assert (code, "delta must be" in err) == (2, True)


def test_without_a_cuda_device_the_cpu_does_it(here, folder, tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    said = "there is no CUDA device that torch can use here: working on the CPU\n"
    (tmp_path / "in.txt").write_text("a\n")
    out = tmp_path / "out.txt"
    options = ("--in", tmp_path / "in.txt", "--mechanism", "none", "--out", out, "--device", "cuda")
    assert here("rewrite", "--model", folder, *options) == (0, "", f"{said}{NONE}1 line in {out}\n")
    options = ("--corpus", "flights:60", "--out", tmp_path / "m", "--latent", 4, "--steps", 2, "--device", "cuda")
    code, _, err = here("train", "adept", *options)
    assert (code, err) == (0, said)
    assert json.loads((tmp_path / "m" / "model.json").read_text())["plan"]["batch"] == 64  # as on a CPU


def test_a_model_is_checked_exactly_and_by_samples(here, folder, monkeypatch):
    monkeypatch.setattr("dpassay.text.systems.MOST_CANDIDATES", 4)
    code, out, _ = here("check", "adept", "--model", folder, "--json")
    assert code == 1
    assert json.loads(out)["epsilon"]["lower"] == pytest.approx(4.0)  # sqrt(16)
    code, out, _ = here("check", "adept-gaussian", "--model", folder, "--epsilon", "1", "--json")
    assert (code, json.loads(out)["verdict"]) == (0, "proven")
    code, out, _ = here("check", "adept", "--model", folder, "--runs", "300", "--json")
    assert code == 1
    assert 0 < json.loads(out)["runs"] <= 300
    code, _, err = here("check", "dpnr", "--model", folder)
    assert (code, "is a model of adept" in err) == (2, True)
    code, _, err = here("check", "laplace", "--model", folder)
    assert (code, "not a claim about a system that can be trained" in err) == (2, True)


def test_an_audit_of_a_model_is_saved_and_played_again(here, folder, texts, tmp_path):
    candidates, saved = tmp_path / "c.txt", tmp_path / "audit.json"
    candidates.write_text("\n".join(texts[:4]))
    line = ("--model", folder, "--mechanism", "sqrt-n", "--epsilon", "1", "--candidates", candidates, "--runs", "400")
    assert here("audit", *line, "--save", saved)[0] == 0
    code, out, _ = here("verify", saved, "--model", folder)
    assert (code, "as recorded" in out) == (0, True)
    code, _, err = here("audit", *line[2:], "--runs", "10")
    assert (code, "give its folder with --model" in err) == (2, True)


def test_a_rewritten_line_is_traced_to_its_candidates(here, folder, texts, tmp_path):
    (tmp_path / "c.txt").write_text("\n".join(texts[:5]) + "\n[bold]markup[/bold]\n")
    options = ("--model", folder, "--candidates", tmp_path / "c.txt", "--draws", "300")
    code, out, _ = here("reconstruct", texts[0], *options, "--epsilon", "1000", "--json")
    assert code == 0
    rows = json.loads(out)
    assert {row["candidate"] for row in rows} == {*texts[:5], "[bold]markup[/bold]"}
    code, out, _ = here("reconstruct", texts[0], *options, "--epsilon", "1000")
    assert (code, "[bold]markup[/bold]" in out) == (0, True)
    assert here("reconstruct", texts[0], *options)[0] == 2


def test_ctrl_c_keeps_what_was_learned(tmp_path: Path):
    model = tmp_path / "m"
    line = [sys.executable, "-m", "dpassay", "train", "adept", "--corpus", "flights:100", "--out", str(model)]
    with started(line, stderr=subprocess.PIPE) as running:
        wait_until((model / "model.json").exists, running)
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=LIMIT)
    assert running.returncode == 130
    assert b"add --resume" in err
    assert json.loads((model / "model.json").read_text())["steps"] >= 0


def test_without_torch_the_pip_line_is_said(here, tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    code, _, err = here("train", "adept", "--out", tmp_path / "m")
    assert code == 2
    assert "pip install 'dpassay[text]'" in err
