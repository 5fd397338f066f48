"""The command line, as a user or a script sees it: what is printed where, and with which exit code."""

import json
import math
import os
import re
import shlex
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from xml.dom import minidom

import jsonschema
import pytest

from dpassay.evidence.schema import VerdictRecord
from processes import LIMIT, started

ADEPT = ["check", "--pipeline", "clip(l2, C) | laplace(2*C/eps)", "--set", "C=1", "--dim", "32", "--epsilon", "1"]
OPEN = [
    "check",
    "--pipeline",
    "clip(l2, 1) | laplace(2) | times(4)",
    "--dim",
    "4",
    "--epsilon",
    "6.5",
    "--delta",
    "1e-3",
]
SCHEMA = VerdictRecord.model_json_schema(mode="serialization", by_alias=True)


def run(*arguments: str, timeout: float = LIMIT, **environment: str) -> subprocess.CompletedProcess[str]:
    """The real command, in a separate process."""
    return subprocess.run(
        [sys.executable, "-m", "dpassay", *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=timeout,
        check=False,
        env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1", **environment},
    )


def strict(text: str) -> dict:  # type: ignore[type-arg]
    def refuse(constant: str) -> object:
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


# ── As a new user would ─────────────────────────────────────────────────────────────────────────


@pytest.mark.long(every=3)
@pytest.mark.parametrize(
    ("pipeline", "options", "word", "code", "interval"),
    [
        ("clip(l2, C) | laplace(2*C/eps)", ["--set", "C=1", "--dim", "32"], "REFUTED", 1, "[5.656854249, 5.656854250]"),
        ("clip(l1, C) | laplace(2*C/eps)", ["--set", "C=1", "--dim", "32"], "PROVEN", 0, "1"),
        ("clip(l2, C) | laplace(2*C*sqrt(dim)/eps)", ["--set", "C=1", "--dim", "32"], "PROVEN", 0, "[0.9999999999, 1]"),
        ("encode | laplace(1/eps)", ["--dim", "8"], "REFUTED", 1, "inf"),
    ],
)
def test_first_commands(pipeline: str, options: list[str], word: str, code: int, interval: str) -> None:
    done = run("check", "--pipeline", pipeline, *options, "--epsilon", "1")
    assert done.returncode == code
    assert done.stderr == ""
    assert word in done.stdout
    shown = re.search(r"epsilon {2,}claimed 1, true (\S.*?) *│", done.stdout)[1]
    assert shown == interval
    if code:
        assert "Nothing bounds" in done.stdout or "11.31 apart in l1" in done.stdout


def test_the_gaussian_command(here) -> None:  # type: ignore[no-untyped-def]
    classic = "query(l2, 1) | gaussian(sqrt(2*ln(1.25/delta))/eps)"
    code, out, _ = here("check", "--pipeline", classic, "--epsilon", "10", "--delta", "1e-5")
    assert code == 1
    assert "REFUTED" in out
    assert re.search(r"2\.265\d*e-0?5|0\.00002265", out)
    assert re.search(r"gaussian\(0\.4998[89]", out)  # the sigma that is needed
    assert "0 < epsilon < 1" in " ".join(out.replace("│", " ").split())
    code, out, _ = here("check", "--pipeline", classic, "--epsilon", "0.5", "--delta", "1e-5")
    assert code == 0
    assert "PROVEN" in out


def test_json_is_all_there_is_on_stdout(here) -> None:  # type: ignore[no-untyped-def]
    done = run(*ADEPT, "--json")
    assert done.returncode == 1
    assert done.stderr == ""
    data = strict(done.stdout)
    jsonschema.validate(data, SCHEMA)
    assert data["verdict"] == "refuted"
    assert data["epsilon"]["lower"] <= math.sqrt(32) <= data["epsilon"]["upper"]
    infinite = strict(here("check", "--pipeline", "encode | laplace(1)", "--dim", "2", "--epsilon", "1", "--json")[1])
    jsonschema.validate(infinite, SCHEMA)
    assert infinite["epsilon"]["upper"] == "inf"


def test_exit_codes_of_an_open_verdict(here) -> None:  # type: ignore[no-untyped-def]
    assert here(*OPEN)[0] == 0
    code, out, _ = here(*OPEN, "--require-decision", "--json")
    assert code == 3
    assert strict(out)["verdict"] == "open"
    assert here(*ADEPT, "--require-decision")[0] == 1


def test_certificates(here, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "adept.json"
    code, out, _ = here(*ADEPT, "--certificate", str(path), "--json")
    assert code == 1
    strict(out)
    assert strict(path.read_text(encoding="utf-8"))["verdict"] == "refuted"
    verified = run("verify", str(path))  # by a process that has not written it
    assert verified.returncode == 0
    assert "holds" in verified.stdout
    path.write_text(path.read_text(encoding="utf-8").replace('"count": 32', '"count": 31'), encoding="utf-8")
    code, _, err = here("verify", str(path))
    assert code == 1
    assert "Traceback" not in err
    assert err
    told = strict(here("verify", str(path), "--json")[1])
    assert told["holds"] is False
    assert told["failures"]
    path.write_text(path.read_text(encoding="utf-8").replace('"neighbours":', '"neighbors":', 1), encoding="utf-8")
    code, _, err = here("verify", str(path))
    assert code == 1
    assert re.fullmatch(r"dpassay: the certificate does not hold: field \S+ is (missing|not known)\n", err)
    told = strict(here("verify", str(path), "--json")[1])
    assert told["holds"] is False
    assert "field" in told["failures"][0]
    path.write_text('{"schema": "dpassay/certificate/1"}', encoding="utf-8")
    code, _, err = here("verify", str(path))
    assert code == 2
    assert "dpassay check ... --certificate FILE" in " ".join(err.split())


def test_certificates_for_coq(here, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    path, coq = tmp_path / "adept.json", tmp_path / "adept.v"
    here(*ADEPT, "--certificate", str(path))
    code, _, err = here("verify", str(path), "--coq", str(coq))
    assert code == 0
    assert "coqc -Q proofs Dpassay" in " ".join(err.split())
    assert "Theorem verdict : ~ laplace_private (I := index 32) 2 1 (both (in_l2 1))." in coq.read_text(
        encoding="utf-8"
    )
    coq.unlink()
    path.write_text(path.read_text(encoding="utf-8").replace('"dim": 32', '"dim": 33'), encoding="utf-8")
    assert here("verify", str(path), "--coq", str(coq))[0] == 1
    assert here("verify", str(path), "--coq", str(coq), "--json")[0] == 1
    assert not coq.exists()  # what does not hold is not written
    combined = "cafe\u0301.v"  # an accent of its own, as file systems write it, which Coq does not read
    for name, said in (
        (combined, "letters, digits"),
        ("adept-l1.v", "end in .v, such as claim.v"),
        ("adept.json", "end in .v"),
        ("a.txt", "in .v"),
    ):
        code, _, err = here("verify", str(path), "--coq", str(tmp_path / name))
        assert (code, said in " ".join(err.split())) == (2, True)
    here("check", "madlib-clipped", "--certificate", str(path))
    code, _, err = here("verify", str(path), "--coq", str(coq))
    assert (code, coq.exists()) == (2, False)
    assert "no theorem" in err
    path.write_text('{"schema": "dpassay/audit/1"}', encoding="utf-8")
    code, _, err = here("verify", str(path), "--coq", str(coq))
    assert code == 2
    assert "--coq is for certificates" in " ".join(err.split())


def test_help_names_every_command(here) -> None:  # type: ignore[no-untyped-def]
    code, out, _ = here("--help")
    assert code == 0
    for command in ("check", "audit", "verify", "calibrate", "compose", "gallery", "show"):
        assert command in out
    assert run("--version").stdout.startswith("dpassay ")


def test_a_reader_that_goes_away() -> None:
    done = subprocess.run(
        f"{shlex.quote(sys.executable)} -m dpassay gallery --only laplace --json | head -c 1",
        shell=True,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert "Traceback" not in done.stderr


def test_output_that_must_be_ascii() -> None:
    done = run(*ADEPT, PYTHONIOENCODING="ascii")
    assert "Traceback" not in done.stderr
    assert done.returncode == 1
    done = run("gallery", "--only", "copy", PYTHONIOENCODING="ascii")
    assert "Traceback" not in done.stderr
    assert done.returncode == 0


def test_colour_is_left_out_when_asked() -> None:
    assert "\x1b[" not in run(*ADEPT, NO_COLOR="1", FORCE_COLOR="").stdout


# ── Bad input ───────────────────────────────────────────────────────────────────────────────────

P = ["check", "--pipeline", "clip(l1, C) | laplace(2*C/eps)"]
GOOD = [*P, "--set", "C=1", "--dim", "4"]
LONG = "clip(l2, 1) | " * 2000 + "laplace(1)"
BAD = [
    # epsilon
    *([*GOOD, "--epsilon", e] for e in ("0", "-1", "nan", "inf", "-inf", "", "abc", "1e999999999", "1,5", "[1, 2]")),
    GOOD,
    # delta
    *([*GOOD, "--epsilon", "1", "--delta", d] for d in ("1", "-1", "1.5", "nan", "inf", "x", "")),
    # dimension
    *([*P, "--set", "C=1", "--epsilon", "1", "--dim", n] for n in ("0", "-1", "1000000000", "x", "1.5", "nan", "")),
    [*P, "--set", "C=1", "--epsilon", "1"],
    # scale and other parameters
    *(
        [*P, "--set", f"C={c}", "--dim", "4", "--epsilon", "1"]
        for c in ("0", "-1", "nan", "inf", "1/0", "a", "", "9" * 2000)
    ),
    *(
        ["check", "--pipeline", f"clip(l1, 1) | {noise}", "--dim", "4", "--epsilon", "1"]
        for noise in ("laplace(0)", "laplace(-1)", "gaussian(0)", "gaussian(1/0)", "flip(2)", "flip(0.5)", "onehot(0)")
    ),
    # names
    ["check", "--pipeline", "clop(l1, 1) | laplace(1)", "--dim", "4", "--epsilon", "1"],
    ["check", "--pipeline", "clip(l3, 1) | laplace(1)", "--dim", "4", "--epsilon", "1"],
    ["check", "--pipeline", "clip(l1, D) | laplace(1)", "--dim", "4", "--epsilon", "1"],
    ["check", "--pipeline", "__import__('os').system('true')", "--dim", "4", "--epsilon", "1"],
    ["check", "--pipeline", "", "--dim", "4", "--epsilon", "1"],
    ["check", "--pipeline", LONG, "--dim", "4", "--epsilon", "1"],
    ["check", "--pipeline", "(" * 5000, "--dim", "4", "--epsilon", "1"],
    ["check", "adpet"],
    ["check", "x" * 5000],
    ["check", "adept", "--set", "D=1"],
    ["check", "adept", "--set", "self=1"],
    ["check", "adept", "--set", "name=1"],
    ["check", "adept", "--set", "eps=1"],
    ["check", "adept", "--set", "epsilon=1", "--epsilon", "1"],
    ["check", "adept", "--neighbours", "nobody"],
    # what is missing, or too much
    ["check"],
    ["check", "adept", *P[1:]],
    [*P, "--dim", "4", "--epsilon", "1"],
    [*GOOD, "--set", "D=1", "--epsilon", "1"],
    [*GOOD, "--set", "C=2", "--epsilon", "1"],
    [*P, "--set", "C", "--dim", "4", "--epsilon", "1"],
    [*P, "--set", "=1", "--dim", "4", "--epsilon", "1"],
    [*P, "--set", "a b=1", "--dim", "4", "--epsilon", "1"],
    [*P, "--set", "pi=3", "--dim", "4", "--epsilon", "1"],
    [*GOOD, "--epsilon", "1", "--certificate", "/dev/null/x.json"],
    [*GOOD, "--epsilon", "1", "--certificate", "/"],
    [*GOOD, "--epsilon", "1", "--nonsense"],
    ["check", "--pipeline", "minmax | laplace(1)", "--dim", "4", "--epsilon", "1", "--neighbours", "add-remove-record"],
    # gallery
    ["gallery", "--only", "nobody"],
    ["gallery", "--only", "nob*"],
    ["gallery", "--from", "nowhere"],
    ["gallery", "--delta", "2"],
    ["gallery", "--json", "--latex"],
    ["gallery", "--sample", "--delta", "0.1"],
    ["gallery", "--pages", "x", "--only", "adept"],
    ["gallery", "--alpha", "7"],
    ["reproduce", "nothing"],
    ["reproduce", "bayes", "--runs", "0"],
    ["reproduce", "bayes", "--corpus", "flights"],
    ["reproduce", "uedp-perplexity", "--vocabulary", "words.txt"],
    ["reproduce", "uedp-perplexity", "--corpus", "/nowhere/plays.csv"],
    ["reproduce", "bayes", "--seed", "-1"],
    ["reproduce", "bayes", "--out", "/dev/null"],
    ["reproduce", "bayes", "--out", "/proc/nowhere"],
    ["reproduce", "bayes", "--html", "/dev/null/x.html"],
    ["check", "adept", "--html", "/dev/null/x.html"],
    ["show", "nobody"],
    ["show", "nowhere.toml"],
    ["show", "adept", "--set", "X=1"],
    ["show", "adept", "--epsilon", "-1"],
    ["check", "nowhere.toml"],
    ["check", "adept", "--set", "dim=64", "--dim", "3"],
    ["check", "adept", "--set", "dim=x"],
    ["check", "adept", "--set", "pairs=1"],
    ["audit", "adept", "--set", "alpha=1"],
    ["check", "adept", "--people", "0"],
    ["gallery", "--only", "laplace", "--figure", "x.gif"],
    ["gallery", "--only", "laplace", "--figure", "/dev/null/x.svg"],
    ["gallery", "--only", "laplace", "--html", "/"],
    # compose
    ["compose"],
    *(
        ["compose", a]
        for a in ("", "x", "1 x", "1 x 0", "1 x 1e9", "1 x 99999999999", "1,1", "1,x", "nan", "inf", "foo(1)")
    ),
    *(["compose", "1", "--delta", d] for d in ("1", "-1", "nan", "x", "", "1/3")),
    ["compose", "1", "--delta", "1/3", "--json"],
    ["compose", "clip(l2, 1) | laplace(1)"],
    ["compose", "clip(l2, C) | laplace(1)", "--dim", "4"],
    # calibrate
    *(["calibrate", "laplace", "--epsilon", e] for e in ("0", "-1", "nan", "inf", "x", "", "1e-400")),
    ["calibrate", "laplace"],
    ["calibrate", "laplace", "--epsilon", "1", "--delta", "1"],
    ["calibrate", "laplace", "--epsilon", "1", "--sensitivity", "0"],
    ["calibrate", "laplace", "--epsilon", "1", "--sensitivity", "x"],
    ["calibrate", "gaussian", "--epsilon", "1"],
    ["calibrate", "gaussian", "--epsilon", "1", "--delta", "0"],
    ["calibrate", "gaussian", "--epsilon", "1", "--delta", "2"],
    ["calibrate", "gaussian", "--epsilon", "-1", "--delta", "0.1"],
    ["calibrate", "flip", "--epsilon", "-1"],
    ["calibrate", "flip", "--epsilon", "0", "--categories", "3"],
    ["calibrate", "flip", "--epsilon", "1", "--bits", "0"],
    ["calibrate", "flip", "--epsilon", "1", "--bits", "-2"],
    ["calibrate", "flip", "--epsilon", "1", "--categories", "1"],
    ["calibrate", "flip", "--epsilon", "1", "--bits", "3", "--categories", "3"],
    ["calibrate", "flip", "--epsilon", "1", "--bits", "x"],
    ["calibrate", "cauchy", "--epsilon", "1"],
    ["verify", "/no/such/file.json"],
    ["nonsense"],
]


@pytest.mark.parametrize("arguments", BAD, ids=lambda a: " ".join(a)[:70] or "nothing")
def test_bad_input_is_one_sentence_and_exit_2(here, arguments: list[str]) -> None:  # type: ignore[no-untyped-def]
    code, out, err = here(*arguments)
    assert code == 2
    assert out == ""
    assert err.strip()
    assert "Traceback" not in err
    # A sentence, perhaps with the place in the text below it; click adds how to get help.
    assert len(err) < 1200
    assert len(err.strip().splitlines()) <= 4
    assert "mpi(" not in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([*GOOD, "--epsilon", "-1"], ["epsilon", "-1"]),
        ([*GOOD, "--epsilon", "1", "--delta", "1"], ["delta", "between 0 and 1"]),
        ([*P, "--set", "C=1", "--epsilon", "1", "--dim", "1000000000"], ["dimension", "10,000,000"]),
        ([*P, "--set", "C=1", "--epsilon", "1"], ["pass --dim N"]),
        ([*P, "--set", "C=-1", "--dim", "4", "--epsilon", "1"], ["positive", "-1", "^"]),
        ([*P, "--dim", "4", "--epsilon", "1"], ["C", "pass --set C=VALUE"]),
        (["check", "--pipeline", "clop(l1, 1) | laplace(1)", "--dim", "4", "--epsilon", "1"], ["clop", "clip", "^"]),
        (["check", "adpet"], ["adpet", "did you mean 'adept'?"]),
        (["check", "adept", *P[1:]], ["specify exactly one of"]),
        (["check"], ["--pipeline"]),
        (GOOD, ["--epsilon"]),
        ([*GOOD, "--set", "C=2", "--epsilon", "1"], ["C", "twice"]),
        ([*GOOD, "--set", "D=1", "--epsilon", "1"], ["given with --set, but never used in the pipeline: D"]),
        ([*P, "--set", "C", "--dim", "4", "--epsilon", "1"], ["NAME=VALUE"]),
        ([*GOOD, "--epsilon", "1", "--certificate", "/dev/null/x.json"], ["/dev/null/x.json"]),
        (["gallery", "--only", "laplace", "--figure", "x.gif"], [".svg", ".pdf", ".png", "x.gif"]),
        (["compose", "1 x 0"], ["whole number", "1 x 0"]),
        (["calibrate", "gaussian", "--epsilon", "1", "--delta", "0"], ["delta"]),
        (["calibrate", "flip", "--epsilon", "1", "--bits", "0"], ["bits"]),
        (["verify", "/no/such/file.json"], ["/no/such/file.json"]),
    ],
    ids=lambda a: " ".join(a)[:60],
)
def test_the_sentence_says_what_was_wrong(here, arguments: list[str], said: list[str]) -> None:  # type: ignore[no-untyped-def]
    _, _, err = here(*arguments)
    for words in said:
        assert words in err, err


def test_an_epsilon_of_0_is_a_claim_like_any_other(here) -> None:  # type: ignore[no-untyped-def]
    """An output that tells nothing of the input keeps it; nothing else does."""
    assert here("check", "--pipeline", "onehot(1) | laplace(1)", "--epsilon", "0")[0] == 0
    assert here("check", "--pipeline", "onehot(2) | laplace(1)", "--epsilon", "0")[0] == 1
    said = {here(*command, "--epsilon", "-1")[2] for command in (GOOD, ["check", "adept"], ["calibrate", "flip"])}
    assert said == {"dpassay: epsilon must be a number from 0 to 1e+300, got -1\n"}


@pytest.mark.parametrize("pipeline", ["query(l1, C) | laplace(1)", "query(l1, 1) | laplace(1/eps)"])
def test_no_option_is_advised_that_a_command_does_not_have(here, pipeline: str) -> None:  # type: ignore[no-untyped-def]
    _, _, err = here("compose", pipeline)
    assert "--set" not in err
    assert "--epsilon" not in err


@pytest.mark.parametrize("name", ["device", "runs", "people", "pairs", "alpha", "subject", "parameters"])
def test_a_name_in_the_text_may_be_that_of_an_option(here, name: str) -> None:  # type: ignore[no-untyped-def]
    text = f"clip(l2, {name}) | laplace(2*{name}/eps)"
    code, out, _ = here("check", "--pipeline", text, "--set", f"{name}=2", "--dim", "4", "--epsilon", "1", "--json")
    assert code == 1
    assert strict(out)["claim"]["parameters"] == {name: "2", "dim": "4"}
    assert strict(out)["epsilon"]["lower"] == pytest.approx(2)  # √4


@pytest.mark.long(every=2)
@pytest.mark.parametrize(
    "arguments", [[*GOOD, "--epsilon", "nan"], ["check", "adept", "--set", "self=1"], ["compose", "x"]]
)
def test_bad_input_in_a_process_of_its_own(arguments: list[str]) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("dpassay: ")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("epsilon", "delta"), [("1", "1e-310"), ("0", "0.9999999999"), ("1", "0.999999")])
def test_extreme_deltas_do_not_hang(here, epsilon: str, delta: str) -> None:  # type: ignore[no-untyped-def]
    code, _, err = here("calibrate", "gaussian", "--epsilon", epsilon, "--delta", delta)
    assert code in (0, 2)
    assert "Traceback" not in err


# ── The other commands ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("arguments", "start", "truth"),
    [
        (["calibrate", "laplace", "--epsilon", "0.5", "--sensitivity", "2"], "laplace(4.0)", 4.0),
        (["calibrate", "gaussian", "--epsilon", "10", "--delta", "1e-5"], "gaussian(0.4998", 0.49989),
        (["calibrate", "flip", "--epsilon", "1", "--bits", "10"], "flip(0.5249", 1 / (1 + math.exp(-0.1))),
        (["calibrate", "flip", "--epsilon", "1", "--categories", "5"], "flip(0.404", math.e / (math.e + 4)),
    ],
)
def test_calibrate(here, arguments: list[str], start: str, truth: float) -> None:  # type: ignore[no-untyped-def]
    code, out, err = here(*arguments)
    assert (code, err) == (0, "")
    assert out.startswith(start)
    code, out, err = here(*arguments, "--json")
    data = strict(out)
    assert data["value"] == pytest.approx(truth, abs=5e-6)
    assert data["stage"].startswith(start)


def test_compose(here) -> None:  # type: ignore[no-untyped-def]
    code, out, err = here("compose", "1,1e-8 x 10", "query(l2, 1) | gaussian(4) x 20", "--delta", "1e-6", "--json")
    assert (code, err) == (0, "")
    data = strict(out)
    assert data["answers"] == 30
    assert data["delta"] == 1e-6
    assert data["neighbours"] == ["query"]
    for row in ("basic", "exact"):
        assert 0 <= data[row]["lower"] <= data[row]["upper"]
    assert data["exact"]["upper"] < data["basic"]["lower"]
    code, out, _ = here("compose", "0.1 x 100")
    assert code == 0
    assert "basic" in out
    assert "exact" in out
    # δ spent already: nothing is promised.
    _, out, _ = here("compose", "1,1e-3 x 10", "--delta", "1e-6", "--json")
    assert strict(out)["exact"]["upper"] == "inf"


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        (["0.1"], "1 answer at total delta 1e-6"),
        (["clip(l1, 1) | laplace(1)"], "this holds for any two inputs (local DP)\n"),
        (["clip(l1, 1) | laplace(1)", "query(l1, 1) | laplace(1)"], "(neighbors in every one of these senses)"),
    ],
)
def test_a_composition_says_for_which_neighbours_it_holds(here, answers, words) -> None:  # type: ignore[no-untyped-def]
    assert words in here("compose", *answers, "--dim", "1")[1]


def test_a_group_may_expect_less(here) -> None:  # type: ignore[no-untyped-def]
    _, out, _ = here("compose", "0.5,1e-6", "--group", "3", "--json")
    found = strict(out)["group"]
    assert found["size"] == 3
    assert found["bound"] == {"epsilon": 1.5, "delta": pytest.approx(1e-6 * (1 + math.exp(0.5) + math.e))}
    assert found["simple_bound"] == {"epsilon": 1.5, "delta": pytest.approx(3e-6 * math.e)}
    _, out, _ = here("compose", "0.5,1e-6", "--group", "3")
    assert "(1.5, 8.154845485377136e-06)-DP, by k*e^((k-1)*eps)*delta" in out
    _, out, _ = here("compose", "0.5,1e-6", "--group", "40")
    assert out.count("no guarantee by") == 2
    _, out, _ = here("compose", "1,1e-3", "--delta", "1e-6", "--group", "2", "--json")
    assert strict(out)["group"] == {"size": 2, "bound": None, "simple_bound": None}
    for wrong in ("0", "-1", "1e7", "x", "1.5"):
        code, out, err = here("compose", "1", "--group", wrong)
        assert (code, out, "whole number" in err) == (2, "", True), err


def test_parallel_answers_cost_the_largest(here) -> None:  # type: ignore[no-untyped-def]
    code, out, _ = here("compose", "0.5 x 100", "1", "--parallel", "--delta", "0")
    assert code == 0
    assert "101 answers about disjoint parts of the data, each at delta 0\n" in out
    assert "parallel composition  epsilon 1\n" in out
    _, out, _ = here("compose", "0.5 x 100", "1", "--parallel", "--delta", "0", "--json")
    assert strict(out)["parallel"] == {"lower": 1, "upper": 1}


# The Rényi divergence of order ∞ is the max divergence, and bounding it by ε is ε-DP.
@pytest.mark.parametrize(("epsilon", "code"), [("1", 0), ("0.9", 1)])
def test_a_max_divergence_is_pure_dp(here, epsilon: str, code: int) -> None:  # type: ignore[no-untyped-def]
    given = ("check", "--pipeline", "query(l1, 1) | laplace(1)", "--epsilon", epsilon, "--json")
    found = [here(*given, *order) for order in ((), ("--order", "inf"), ("--order", "Infinity"))]
    assert [one[0] for one in found] == [code] * 3
    verdicts = [strict(one[1]) for one in found]
    assert verdicts[0]["guarantee"] == verdicts[1]["guarantee"] == verdicts[2]["guarantee"]
    assert here(*given, "--order", "inf", "--delta", "1e-6")[0] == 2


def test_counts_are_seldom_monotone_when_a_record_is_replaced(here) -> None:  # type: ignore[no-untyped-def]
    given = ("check", "--pipeline", "query(linf, 1, monotone) | exponential(1)", "--dim", "3", "--epsilon", "1")
    assert "Replacing a record" not in here(*given)[1]
    assert "Replacing a record" in here(*given, "--neighbours", "replace-record")[1]


def test_composition_of_bits_does_not_claim_too_much(here) -> None:  # type: ignore[no-untyped-def]
    # Five one-hot vectors with bits kept with probability ¾: ten bits of loss ±ln 3, so at δ = 0.01
    # δ(ε) = Σ C(10,k) max(0, 3^(10−k) − e^ε 3^k)/4^10.
    _, out, _ = here("compose", "onehot(2) | flip(0.75) x 5", "--delta", "0.01", "--json")
    exact = strict(out)["exact"]

    def delta(epsilon: float) -> float:
        return sum(math.comb(10, k) * max(0.0, 3 ** (10 - k) - math.exp(epsilon) * 3**k) for k in range(11)) / 4**10

    assert delta(exact["upper"]) <= 0.01 * (1 + 1e-9)
    assert delta(exact["lower"]) >= 0.01 * (1 - 1e-9)


def test_gallery(here, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    figure, page = tmp_path / "deep" / "gallery.svg", tmp_path / "gallery.html"
    code, out, err = here("gallery", "--only", "adept", "--only", "copy", "--figure", str(figure), "--html", str(page))
    assert code == 0
    assert figure.read_text(encoding="utf-8").startswith("<?xml")
    assert "ADePT" in page.read_text(encoding="utf-8")
    assert str(figure) in err
    assert str(figure) not in out
    assert "refuted" in out
    code, out, _ = here("gallery", "--only", "adept", "--json")
    (data,) = strict(out)  # type: ignore[misc]
    jsonschema.validate(data, SCHEMA)


def test_an_unexpected_verdict_in_the_gallery_is_an_alarm(here, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    from dpassay.claims.registry import REGISTRY

    monkeypatch.setitem(REGISTRY, "laplace", replace(REGISTRY["laplace"], expected="refuted"))
    code, _, err = here("gallery", "--only", "laplace")
    assert code == 1
    assert "not as expected: laplace" in err


def test_a_gallery_of_ones_own(here, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    claim = 'pipeline = "clip(l{0}, 1) | laplace(2/eps)"\nepsilon = 1\ndim = 4\nexpected = "{1}"\n'
    (tmp_path / "one.toml").write_text(claim.format(1, "proven"))
    (tmp_path / "two.toml").write_text(claim.format(2, "refuted"))
    code, out, _ = here("gallery", "--from", str(tmp_path))
    assert code == 0
    assert re.search(r"^one .* proven", out, re.MULTILINE)
    assert re.search(r"^two +1 +2 +. refuted", out, re.MULTILINE)
    code, out, _ = here("gallery", "--from", str(tmp_path), "--only", "t*", "--json")
    assert [data["claim"]["name"] for data in strict(out)] == ["two"]
    (tmp_path / "two.toml").write_text(claim.format(2, "proven"))
    code, _, err = here("gallery", "--from", str(tmp_path))
    assert code == 1
    assert "not as expected: two" in err
    assert here("check", str(tmp_path / "two.toml"))[0] == 1
    assert here("check", str(tmp_path / "two.toml"), "--dim", "1")[0] == 0
    assert here("audit", str(tmp_path / "two.toml"), "--epsilon", "1")[0] == 1


def test_own_claims_by_samples(here, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    # 0.1 % too much is wrong, but no samples will see it; a pipeline on texts without an encoder cannot be run.
    (tmp_path / "near.toml").write_text(
        'pipeline = "query(l1, 1) | laplace(1)"\nepsilon = "0.999"\nexpected = "refuted"'
    )
    (tmp_path / "text.toml").write_text(
        'pipeline = "dropout(0.5) | encode | minmax | laplace(9)"\nepsilon = 9\ndim = 4'
    )
    code, out, err = here("gallery", "--from", str(tmp_path), "--sample")
    assert code == 0
    assert "not seen" in out
    assert "text was not run" in err


def test_what_a_claim_says_of_itself_is_shown_harmlessly(here, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    words = 'name = "a\\u001b[31mz"\ntitle = "cost $\\\\foo$ \\u001b[1m <i>"\nbrief = "[b | c] <d> \\u001b[2J"\n'
    (tmp_path / "x.toml").write_text(
        words + 'pipeline = "query(l1, 1) | laplace(1)"\nepsilon = 1\nexpected = "refuted"'
    )
    figure = tmp_path / "x.svg"
    for extra in ([], ["--markdown"], ["--latex"], ["--figure", str(figure)]):
        code, out, err = here("gallery", "--from", str(tmp_path), *extra)
        assert code == 1
        assert "\x1b[31m" not in out + err
        assert "\x1b[2J" not in out + err
    minidom.parse(str(figure))


def test_the_gallery_at_another_delta(here) -> None:  # type: ignore[no-untyped-def]
    code, out, _ = here("gallery", "--only", "randomized-response", "--delta", "0.1")
    assert code == 0
    # Randomized response at ε = 1 loses ln(e·0.9 − 0.1) at δ = 0.1.
    assert f"{math.log(0.9 * math.e - 0.1):.4g}" in out
    code, out, _ = here("gallery", "--only", "coin-flip", "--only", "adept", "--delta", "0.9999999")
    assert code == 0  # verdicts at another δ are not compared with the expected ones
    code, out, err = here("gallery", "--only", "adept*", "--delta", "0")
    assert code == 0
    assert "adept-gaussian is left out" in err
    assert "adept-l1" in out


def test_the_gallery_with_samples(here, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    code, out, _ = here("gallery", "--only", "dpnr", "--only", "sue", "--sample")
    assert code == 0
    assert re.search(r"^dpnr +1 +4 +refuted .* yes", out, re.MULTILINE)
    assert re.search(r"^sue +1 +1 +proven .* yes", out, re.MULTILINE)
    code, out, _ = here("gallery", "--only", "dpnr", "--sample", "--json")
    (data,) = strict(out)
    assert data["small"]["agreement"] == "yes"
    assert data["small"]["sampled"]["runs"] > 0
    assert data["small"]["sampled"]["alpha"] <= 0.001
    jsonschema.validate(data["small"]["sampled"], SCHEMA)

    from dpassay.report.claims.claim_report import TrialResult

    monkeypatch.setattr(TrialResult, "contradictory", property(lambda self: True))
    code, _, err = here("gallery", "--only", "sue", "--sample")
    assert code == 1
    assert "exact and sampled verdicts differ: sue" in err


def test_an_interrupted_gallery_shows_what_it_has(here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    from dpassay import api as checking
    from dpassay.report.claims import claim_report as story

    judge, page = checking.check, tmp_path / "x.html"

    def interrupted(claim, **options):  # type: ignore[no-untyped-def]
        if claim.name == "adept":
            raise KeyboardInterrupt
        return judge(claim, **options)

    monkeypatch.setattr(checking, "check", interrupted)
    code, out, err = here("gallery", "--html", str(page))
    assert code == 130
    assert "2 of 77 claims are shown" in err
    assert "laplace-vector" in out
    assert not page.exists()
    monkeypatch.undo()
    audited = story.audit("query(l1, 1) | laplace(1)", epsilon=1, dim=1, runs=100)
    sampled = replace(audited.sampled, interrupted=True)
    monkeypatch.setattr(story, "audit", lambda *_, **__: replace(audited, sampled=sampled))
    code, out, err = here("gallery", "--only", "sue", "--sample")
    assert code == 130
    assert "interrupted while running: 0 of 1" in err
    assert "proven" in out


def test_a_users_own_text_is_shown_as_it_is(here) -> None:  # type: ignore[no-untyped-def]
    code, _, err = here("check", "--pipeline", "clip(l2, dim=1) | laplace(1)", "--epsilon", "1", "--dim", "2")
    assert code == 2
    assert "clip(l2, dim=1) | laplace(1)" in err


# The command line as it is, but for a check that says when it begins and has no end.
ENDLESS = """
from dpassay import api
from dpassay.cli.main import main

check = api.check

def endless(*arguments, **options):
    print("begun", flush=True)
    while True:
        check(*arguments, **options)

api.check = endless
main()
"""


def test_ctrl_c_ends_in_a_sentence() -> None:
    command = [sys.executable, "-c", ENDLESS, "check", "ome", "--delta", "1e-6"]
    with started(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "begun\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=LIMIT)
    assert process.returncode == 130
    assert err.strip() == "dpassay: interrupted; no file was changed"
    assert out == ""


def test_tables_for_papers(here) -> None:  # type: ignore[no-untyped-def]
    code, out, _ = here("gallery", "--only", "adept", "--latex")
    assert code == 0
    assert out.startswith(r"\begin{tabular}{lllll}")
    assert r"adept & 1 & 5.657 & $\times$ refuted & clipped in l2, not in l1 \\" in out
    code, out, _ = here("gallery", "--only", "adept", "--markdown")
    assert out.splitlines()[2] == "| adept | 1 | 5.657 | ✗ refuted | clipped in l2, not in l1 |"


def test_show(here, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    code, out, _ = here("show", "adept", "--set", "dim=64", "--epsilon", "2")
    assert code == 0
    for words in ("Krishna", "clip(l2, C)", "16", "REFUTED", "adept-sqrt-n", "dim 1024", "sqrt(n)"):
        assert words in out, words
    assert "metric notion" in here("show", "ome")[1]
    code, out, _ = here("show")
    assert code == 0
    assert all(name in out for name in ("adept", "leak-rows", "group"))
    code, out, _ = here("show", "dpnr", "--json")
    assert strict(out)["grid"][0] == {
        **{"changes": {"epsilon": "0.05", "dim": 2}, "claimed": 0.05, "verdict": "refuted"},
        **{"lower": pytest.approx(0.1), "upper": pytest.approx(0.1), "least_delta": 0.0},
    }
    (tmp_path / "mine.toml").write_text('pipeline = "query(l1, 1) | laplace(1/eps)"\nepsilon = 3')
    assert "3-DP holds" in here("show", str(tmp_path / "mine.toml"))[1]


def test_pages(here, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    for command in (
        ["check", "adept"],
        ["audit", "adept", "--dim", "8"],
        ["reproduce", "bayes", "--out", str(tmp_path)],
    ):
        file = tmp_path / f"{command[0]}.html"
        code, out, err = here(*command, "--html", str(file))
        assert code == (0 if command[0] == "reproduce" else 1)
        assert f"{file} written" in err
        assert str(file) not in out
        assert "<h1>" in file.read_text(encoding="utf-8")


def test_reproduce(here, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    code, out, _ = here("reproduce")
    assert code == 0
    assert "sanity-check" in out
    assert len(strict(here("reproduce", "--json")[1])) == 16
    where = ("--out", str(tmp_path / "made"), "--runs", "300")
    code, out, _ = here("reproduce", "sampled-laplace", *where)
    assert code == 0
    assert "exactly 0" in out
    assert sorted(path.suffix for path in (tmp_path / "made").iterdir()) == [
        ".csv",
        ".json",
        ".md",
        ".pdf",
        ".png",
        ".svg",
    ]
    stamp = (tmp_path / "made" / "sampled-laplace.json").stat().st_mtime_ns
    code, _, err = here("reproduce", "sampled-laplace", *where, "--resume")
    assert "already there" in err
    assert (tmp_path / "made" / "sampled-laplace.json").stat().st_mtime_ns == stamp
    data = strict(here("reproduce", "sampled-laplace", *where, "--resume", "--seed", "1", "--json")[1])
    assert data["sampled-laplace"]["made"] is True


def test_interrupted_reproductions_can_go_on(here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    from dpassay import reproduce as figures

    def interrupt(options: object) -> None:
        raise KeyboardInterrupt

    names = list(figures.FIGURES)
    kept = {name: figures.FIGURES[name] for name in ("bayes", "likelihood-ratio", "delta-extremes")}
    monkeypatch.setattr(
        figures, "FIGURES", {**kept, "likelihood-ratio": replace(kept["likelihood-ratio"], make=interrupt)}
    )
    code, _, err = here("reproduce", "all", "--out", str(tmp_path))
    assert code == 130
    assert "1 of 3" in err
    assert "--resume" in err
    assert (tmp_path / "bayes.json").exists()
    monkeypatch.setattr(figures, "FIGURES", kept)
    code, out, err = here("reproduce", "all", "--out", str(tmp_path), "--resume")
    assert code == 0
    assert "bayes: already there" in err
    assert (tmp_path / "delta-extremes.json").exists()
    assert names[0] not in out


def test_settings_may_give_what_has_an_option(here) -> None:  # type: ignore[no-untyped-def]
    code, out, _ = here("check", "adept", "--set", "dim=64", "--epsilon", "2", "--json")
    assert code == 1
    assert strict(out)["epsilon"]["lower"] == pytest.approx(16)
    code, out, _ = here("check", "adept", "--set", "epsilon=8", "--set", "delta=1e-6", "--json")
    assert (code, strict(out)["epsilon"]["claimed"], strict(out)["epsilon"]["delta"]) == (1, 8, 1e-6)


def test_people(here) -> None:  # type: ignore[no-untyped-def]
    base = ("check", "--pipeline", "query(l2, 1) | gaussian(9)", "--epsilon", "1", "--delta", "1e-6", "--json")
    assert strict(here(*base)[1])["warnings"] == []
    (warning,) = strict(here(*base, "--people", "1000000")[1])["warnings"]
    assert "0.632" in warning


def test_stages_are_listed(here) -> None:  # type: ignore[no-untyped-def]
    code, out, _ = here("check", "--stages")
    assert code == 0
    for stage in ("clip(norm, radius)", "laplace(scale)", "dropout(mu)", "exponential(rate)"):
        assert stage in out


def test_published_claims_by_name(here) -> None:  # type: ignore[no-untyped-def]
    code, out, _ = here("check", "adept", "--set", "C=2", "--dim", "1024", "--json")
    assert code == 1
    assert strict(out)["epsilon"]["lower"] == pytest.approx(32, rel=1e-12)
    assert here("check", "coin-flip")[0] == 0


def test_a_mistake_of_our_own_is_no_verdict(monkeypatch, capsys):
    from dpassay.cli.main import main

    def broken():
        raise TypeError("so it is")

    monkeypatch.setattr("dpassay.cli.main.app", broken)
    with pytest.raises(SystemExit) as ending:
        main()
    assert ending.value.code == 70
    said = capsys.readouterr().err
    assert said.startswith("dpassay: an error in dpassay itself, TypeError: so it is (test_cli.py, line ")
    assert "Traceback" not in said
    monkeypatch.setenv("DPASSAY_TRACEBACK", "1")
    with pytest.raises(TypeError):
        main()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["chekc", "adept"], "there is no command 'chekc'; did you mean 'check'? 'dpassay --help' lists them"),
        (["zzz"], "there is no command 'zzz'. 'dpassay --help' lists them"),
        (["check", "adept", "--set", "dimm=3"], "adept has no parameter dimm; did you mean 'dim'? It has epsilon"),
        (["packages", "show", "opendp-laplac"], "no record is called 'opendp-laplac'; did you mean opendp-laplace"),
        (
            ["check", "adept", "--dim", "99999999999"],
            "dimension must be a whole number from 1 to 10,000,000, got 99,999,999,999",
        ),
        (
            ["check", "latent-moue", "--epsilon", "4e7"],
            "these numbers are too large or too small for a verdict; choose",
        ),
        (["gallery", "--dark"], "--dark requires --figure FILE"),
        (["scan", ".", "--package", "x==1"], "specify either . or --package, not both"),
        (["serve", "--host", ""], "--host needs an address, such as 127.0.0.1"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(
    words: list[str], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from dpassay.cli.main import main

    monkeypatch.setattr("sys.argv", ["dpassay", *words])
    with pytest.raises(SystemExit) as ending:
        main()
    assert ending.value.code == 2
    assert f"dpassay: {said}" in capsys.readouterr().err
