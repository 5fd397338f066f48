"""The audit command as a person meets it: exit codes, messages, files."""

import json
import math
import os
import re
import shlex
import signal
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path

import pytest

from dpassay.audit.options import AuditOptions
from processes import LIMIT, started, wait_until
from servers import respond, serving

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
PROGRAM = shlex.join([sys.executable, str(EXAMPLES / "noisy_count.py")])
TEXTS = '["one two three", "one two three four"]'  # counts that are 1 apart

SUBJECTS = '''
import numpy as np

def noisy(x, n, rng):
    """epsilon is 2 for inputs that are 1 apart."""
    return x + rng.laplace(scale=0.5, size=n)

def shout(text):
    return text.upper()

def wrong(x, n):
    return x

def three(x, n, rng):
    return [1, 2, 3]

def opaque(x, rng):
    return {"a": [object()]}

def printed(x, rng):
    return {"noise": rng.normal(size=8).tolist(), "secret": x}

def spotting(text, rng):
    return "asthma" in text
'''


@pytest.fixture
def run(here, tmp_path, monkeypatch):
    """The command line in this process, which saves a second each time, as if it had just been started in tmp_path."""
    (tmp_path / "subjects.py").write_text(SUBJECTS)
    monkeypatch.chdir(tmp_path)

    def command(*words, code=None):
        monkeypatch.setattr(sys, "path", sys.path[:])
        sys.modules.pop("subjects", None)
        found = subprocess.CompletedProcess(words, *here(*words))
        assert "Traceback" not in found.stderr
        if code is not None:
            assert found.returncode == code, found.stdout + found.stderr
        return found

    yield command
    sys.modules.pop("subjects", None)


NOISY = ("audit", "--python", "subjects:noisy", "--pair", "[0.0, 1.0]")


def test_what_cannot_be_read_exits_with_4_or_is_read_as_told(run):
    asked = ("audit", "--python", "subjects:opaque", "--pair", "[0, 1]", "--epsilon", "1", "--runs", "200")
    said = " ".join(run(*asked, code=4).stderr.split())
    assert 'output["a"][0] is of type object, which cannot be read' in said
    assert "--unknown repr" in said
    run(*asked, "--unknown", "repr", code=0)
    run(*asked, "--unknown", "pickle", code=2)


def test_a_mechanism_that_prints_its_input_is_refuted_by_the_path_to_it(run):
    said = run("audit", "--python", "subjects:printed", "--pair", "[0, 1]", "--epsilon", "1", code=1).stdout
    assert 'output["secret"]' in said


def test_a_refuted_claim_exits_with_1_and_shows_its_witness(run):
    said = run(*NOISY, "--epsilon", "1", code=1).stdout
    assert "REFUTED" in said
    assert "1-DP for subjects:noisy" in said
    assert "guesses were correct" in said
    assert "probability at most 0.001 in all" in said


def test_an_open_claim_exits_with_0_or_3_where_a_decision_was_asked_for(run):
    assert "proves nothing" in run(*NOISY, "--epsilon", "3", "--runs", "2000", code=0).stdout
    run(*NOISY, "--epsilon", "3", "--runs", "2000", "--require-decision", code=3)
    far = run(*NOISY, "--epsilon", "30", "--runs", "2000", "--require-decision", code=3)
    assert "undetectable with 2,000 runs" in " ".join(far.stdout.replace("│", " ").split())


def test_json_alone_on_stdout(run):
    data = json.loads(run(*NOISY, "--epsilon", "1", "--json", code=1).stdout)
    assert data["verdict"] == "refuted"
    assert data["alpha"] == 0.001
    assert data["witness"]["inputs"] == [0.0, 1.0]
    assert data["claim"]["name"] == "subjects:noisy"


def test_saved_verified_tampered(run, tmp_path):
    run(*NOISY, "--epsilon", "1", "--save", "a.json", code=1)
    refused = run("verify", "a.json", code=2)
    assert "never starts code that a file names; give it again: --python subjects:noisy" in refused.stderr
    good = run("verify", "a.json", "--python", "subjects:noisy", "--fresh-seed", "5", code=0).stdout
    assert "with the recorded seed 0: " in good
    assert "with the fresh seed 5: " in good
    data = json.loads((tmp_path / "a.json").read_text())
    data["main"]["epochs"][0]["right"] += 1
    (tmp_path / "a.json").write_text(json.dumps(data))
    bad = run("verify", "a.json", "--python", "subjects:noisy", "--json", code=1)
    assert "are recorded" in json.loads(bad.stdout)["failures"][0]
    other = run("verify", "a.json", "--python", "subjects:shout", code=2)
    assert "the audit was of" in other.stderr


def test_a_pipelines_audit_is_verified_without_more(run):
    run("audit", "adept", "--dim", "4", "--epsilon", "1", "--save", "b.json", code=1)
    assert "refute the claim again" in run("verify", "b.json", "--fresh-seed", "1", code=0).stdout


def test_a_program_and_going_on_after_it_talked_rubbish(run, tmp_path):
    asked = ("--pair", TEXTS, "--epsilon", "0.3", "--save", "c.json", "--runs", "6000", "--no-shrink")
    dying = tmp_path / "dying.py"
    dying.write_text(
        "import sys, json, random\n"
        "for number, line in enumerate(sys.stdin):\n"
        "    asked = json.loads(line)\n"
        "    if number > 40 and '--die' in open('mood').read():\n"
        "        print('out of memory', flush=True); continue\n"
        "    rng = random.Random(asked['seed'])\n"
        "    count = len(asked['input'].split())\n"
        "    noise = [rng.expovariate(0.4) - rng.expovariate(0.4) for _ in range(asked['n'])]\n"
        "    print(json.dumps({'outputs': [count + z for z in noise]}), flush=True)\n"
    )
    command = ("audit", "--command", shlex.join([sys.executable, "dying.py"]), *asked)
    (tmp_path / "mood").write_text("--die")
    died = run(*command, code=4)
    assert "gave an answer that is not JSON: 'out of memory'" in died.stderr
    assert "They are kept in c.json; --resume continues from them." in died.stderr
    (tmp_path / "mood").write_text("well")
    resumed = json.loads(run(*command, "--resume", "--json").stdout)
    assert resumed["verdict"] in ("refuted", "open")
    assert resumed["runs"] > 0
    assert "of these runs come from c.json" in resumed["warnings"][0]


def test_a_program_that_dies_is_started_again_and_counted(run, tmp_path):
    """One request in twenty ends it, whatever the input is: no evidence, and no error."""
    (tmp_path / "dying.py").write_text(
        "import sys, json, random\n"
        "for number, line in enumerate(sys.stdin):\n"
        "    rng = random.Random(json.loads(line)['seed'])\n"
        "    if rng.random() < 0.05: sys.exit(9)\n"
        "    print(json.dumps({'output': rng.random()}), flush=True)\n"
    )
    command = ("audit", "--command", shlex.join([sys.executable, "-I", "-S", "dying.py"]))
    asked = ("--pair", "[0, 1]", "--epsilon", "1", "--runs", "200", "--no-shrink", "--json")
    verdict = json.loads(run(*command, *asked, code=0).stdout)
    assert verdict["verdict"] == "open"
    (warning,) = [one for one in verdict["warnings"] if "exit code 9" in one]
    assert re.search(r"ended with exit code 9 and was started again, \d+ times\.", warning)


def test_plain_lines_and_a_time_budget(run, tmp_path):
    (tmp_path / "lines.py").write_text("import sys\nfor line in sys.stdin: print(line.strip().upper(), flush=True)\n")
    command = ("audit", "--command", shlex.join([sys.executable, "-I", "-S", "lines.py"]), "--lines")
    pair = ("--pair", '["yes", "no"]', "--epsilon", "1")
    refuted = run(*command, "--processes", "2", *pair, "--save", "lines.json", code=1)
    assert "REFUTED" in refuted.stdout
    assert json.loads((tmp_path / "lines.json").read_text())["asked"]["subject"]["lines"] == "plain"
    run("verify", "lines.json", *command[1:], code=0)
    assert "the audit was of something else" in run("verify", "lines.json", *command[1:3], code=2).stderr
    (tmp_path / "slow.py").write_text(
        "import sys, time\nfor line in sys.stdin: time.sleep(0.05); print('same', flush=True)\n"
    )
    slow = ("audit", "--command", shlex.join([sys.executable, "-I", "-S", "slow.py"]), "--lines", *pair)
    late = run(*slow, "--time", "0.5s", "--save", "slow.json", code=0)
    said = " ".join(late.stdout.replace("│", " ").split())
    assert "The time limit of 0.5s was reached after" in said
    assert "--resume continues it" in said  # in the words of the command line
    assert json.loads((tmp_path / "slow.json").read_text())["verdict"] == "unfinished"
    run(*slow, "--time", "0.3s", "--save", "slow.json", "--resume", "--require-decision", code=3)
    assert "a time is a number with s, m, h or d" in run(*slow, "--time", "soon", code=2).stderr


def test_options_of_a_program_are_refused_without_one(run):
    said = run(*NOISY, "--epsilon", "1", "--lines", code=2).stderr
    assert "--lines requires --command: specify that too, or leave --lines out" in said
    assert "--token-env requires --url:" in run(*NOISY, "--epsilon", "1", "--token-env", "X", code=2).stderr


def test_a_secret_header_is_on_no_page(run, tmp_path, monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setenv("MY_TOKEN", "tok-123456789")

    def answer(handler, request):
        assert handler.headers["X-Key"] == "geheim-987"
        assert handler.headers["Authorization"] == "Bearer tok-123456789"
        respond(handler, json.dumps({"result": [request["text"], "tok-123456789"]}).encode())

    with serving(answer) as url:
        subject = ("--url", url, "--header", "X-Key: geheim-987", "--token-env", "MY_TOKEN")
        mapped = (*subject, "--request", '{"text": "$input"}', "--answer", "$.result", "--concurrency", "2")
        asked = ("--pair", '["yes", "no"]', "--epsilon", "1", "--save", "http.json", "--html", "page.html")
        said = run("audit", *mapped, *asked, code=1)
        run("verify", "http.json", *mapped, code=0)
    written = [(tmp_path / name).read_text() for name in ("http.json", "page.html")]
    for text in (*written, said.stdout, said.stderr):
        assert "geheim-987" not in text
        assert "tok-123456789" not in text
    subject = json.loads(written[0])["asked"]["subject"]
    assert subject == {
        "kind": "url", "url": url, "request": '{"text": "$input"}', "answer": "$.result", "headers": "X-Key"
    }  # fmt: skip


def test_a_program_that_hangs_exits_with_4(run, tmp_path):
    (tmp_path / "hang.py").write_text("import time; time.sleep(60)")
    command = ("audit", "--command", shlex.join([sys.executable, "hang.py"]), "--pair", "[0, 1]", "--epsilon", "1")
    assert "no answer within 0.5 s" in run(*command, "--time-limit", "0.5", code=4).stderr


def test_the_example_program(run):
    said = run("audit", "--command", PROGRAM, "--pair", TEXTS, "--epsilon", "0.2", "--runs", "20000")
    assert said.returncode in (0, 1), said.stderr


def test_texts_from_a_file_and_words(run, tmp_path):
    (tmp_path / "texts.txt").write_text("book a flight\n\ncancel it\nwhere is my bag\n")
    run("audit", "--python", "subjects:shout", "--inputs", "texts.txt", "--epsilon", "1", code=1)
    run("audit", "--python", "subjects:shout", "--text", "book a flight", "--epsilon", "1", code=1)
    found = run("audit", "--python", "subjects:shout", "--candidates", "texts.txt", "--epsilon", "1", code=1)
    assert "which of 3 inputs" in found.stdout
    (tmp_path / "pairs.jsonl").write_text("0\n1\n")
    run("audit", "--python", "subjects:noisy", "--inputs", "pairs.jsonl", "--epsilon", "1", code=1)


def test_words_of_a_vocabulary_are_put_into_a_text(run, tmp_path):
    (tmp_path / "words.txt").write_text("apple\nasthma\n")
    asked = ("audit", "--python", "subjects:spotting", "--text", "I have it", "--epsilon", "1", "--runs", "5000")
    run(*asked, code=0)
    assert "asthma" in run(*asked, "--vocabulary", "words.txt", "--no-odd-words", code=1).stdout
    assert "cannot be read" in run(*asked, "--vocabulary", "missing.txt", code=2).stderr
    said = run("audit", "--python", "subjects:spotting", "--epsilon", "1", "--vocabulary", "words.txt", code=2).stderr
    assert "give one with --text" in said


def test_the_planner(run):
    plan = json.loads(run("audit", "--plan", "--epsilon", "1", "--runs", "1000000", "--json", code=0).stdout)
    # docs/proofs/guessing-game.md: the most that 10^6 runs can show at 0.001
    assert plan["most"] == pytest.approx(11.8828623701686, abs=1e-6)
    # ln 1000 / KL(σ(2) ‖ σ(1)): what the best bet on every run needs
    assert plan["needed"][2]["runs"] == 103
    said = run("audit", "--plan", "--epsilon", "20", "--runs", "1000", code=0).stdout
    assert "undetectable with 1,000 runs" in said
    # nearly nothing to tell: ln 1000 · 8 / (true − claimed)², the Gaussian limit
    tiny = json.loads(run("audit", "--plan", "--epsilon", "1e-6", "--json", code=0).stdout)["needed"][2]["runs"]
    assert tiny == pytest.approx(8 * math.log(1000) / 1e-12, rel=1e-3)
    assert "10^" in run("audit", "--plan", "--epsilon", "700", code=0).stdout


LONG = ("audit", "--pipeline", "laplace(4)", "--dim", "4", "--pair", "[[0, 0, 0, 0], [1, 1, 1, 1]]", "--epsilon", "1")


@contextmanager
def begun(tmp_path, *words):
    """A long audit that keeps its counts, some time after it has begun, and what it had counted by then."""
    saved = tmp_path / "long.json"
    environment = {**os.environ, "NO_COLOR": "1"}
    command = [sys.executable, "-m", "dpassay", *LONG, "--runs", "1000000000000", "--save", "long.json", *words]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with started(command, cwd=tmp_path, env=environment, **pipes) as process:
        wait_until(lambda: saved.exists() and json.loads(saved.read_text())["runs"] > 300_000, process)
        yield process, json.loads(saved.read_text())["runs"]


def epochs(path):
    found = json.loads(path.read_text())["main"]["epochs"]
    return [{key: value for key, value in epoch.items() if key != "length"} for epoch in found]


@pytest.mark.long(every=2)
@pytest.mark.parametrize("workers", [(), ("--workers", "2")], ids=["alone", "two processes"])
def test_a_killed_audit_goes_on_to_the_same_counts(run, tmp_path, workers):
    with begun(tmp_path, *workers) as (process, counted):
        process.kill()
        process.communicate()
    kept = json.loads((tmp_path / "long.json").read_text())
    assert kept["verdict"] == "unfinished"
    assert kept["runs"] >= counted
    runs = str(kept["runs"] + 200_000)
    resumed = run(*LONG, "--runs", runs, "--save", "long.json", "--resume", "--json", code=0)
    assert json.loads(resumed.stdout)["runs"] == int(runs)
    run(*LONG, "--runs", runs, "--save", "whole.json", code=0)
    assert epochs(tmp_path / "long.json") == epochs(tmp_path / "whole.json")


def test_an_interrupted_audit_gives_its_partial_verdict_and_says_how_to_go_on(tmp_path):
    with begun(tmp_path, "--workers", "2") as (process, counted):
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=LIMIT)
    said = " ".join(out.decode().replace("│", " ").split())
    assert "the audit was interrupted after" in said
    assert "resume it from long.json" in said
    assert b"Traceback" not in err
    kept = json.loads((tmp_path / "long.json").read_text())
    assert kept["verdict"] == "unfinished"
    assert kept["runs"] >= counted


def test_resume_begins_where_there_is_no_file_yet(run):
    """One command line serves a loop that begins an audit and continues it."""
    words = (*NOISY, "--epsilon", "3", "--save", "loop.json", "--resume", "--json")
    begun, continued = (json.loads(run(*words, "--runs", runs).stdout) for runs in ("600", "1200"))
    assert not any("of these runs come from" in said for said in begun["warnings"])
    assert any("of these runs come from loop.json" in said for said in continued["warnings"])


@pytest.mark.parametrize("name", ["device", "runs", "inputs", "subject", "people"])
def test_a_parameter_may_have_the_name_of_an_option(run, name):
    text = f"clip(l1, {name}) | laplace(2*{name}/eps)"
    words = ("--pipeline", text, "--set", f"{name}=2", "--dim", "2", "--epsilon", "1", "--runs", "300", "--json")
    data = json.loads(run("audit", *words, code=0).stdout)
    plain = ("--pipeline", text.replace(name, "C"), "--set", "C=2", *words[4:])
    assert json.loads(run("audit", *plain, code=0).stdout)["witness"] == data["witness"]


def test_what_is_claimed_is_no_setting(run):
    words = ("audit", "--pipeline", "laplace(1/eps)", "--dim", "1", "--epsilon", "1", "--set")
    assert "use --epsilon" in run(*words, "eps=1", code=2).stderr
    assert "epsilon is given twice" in run(*words, "epsilon=1", code=2).stderr


def test_every_option_of_an_audit_has_its_help(run):
    said = " ".join(run("audit", "--help", code=0).stdout.split())
    for option in fields(AuditOptions):
        if "help" in option.metadata:
            assert f"--{option.name.replace('_', '-')}" in said
    assert all(flag in said for flag in ("--shrink / --no-shrink", "--bits / --no-bits"))
    assert "--no-fixed" not in said


def test_workers_and_devices_change_no_count(run):
    words = (*LONG, "--runs", "150000", "--json")
    alone = run(*words, code=0)
    assert run(*words, "--workers", "2", code=0).stdout == alone.stdout
    assert run(*words, "--device", "numpy", code=0).stdout == alone.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--python", "subjects:noisy", "--pair", "[1, 1]", "--epsilon", "1"), "are the same"),
        (("--python", "subjects:noisy", "--pair", "[1]", "--epsilon", "1"), "two inputs as JSON"),
        (("--python", "subjects:noisy", "--pair", "x", "--epsilon", "1"), "two inputs as JSON"),
        (("--python", "subjects:noisy", "--epsilon", "1"), "compare: --pair '[X, Y]', --inputs FILE"),
        ((*NOISY[1:], "--epsilon", "1", "--alpha", "0"), "--alpha is an error probability"),
        ((*NOISY[1:], "--epsilon", "1", "--alpha", "2"), "--alpha is an error probability"),
        ((*NOISY[1:], "--epsilon", "1", "--search-runs", "-1"), "--search-runs must be a whole number"),
        ((*NOISY[1:], "--epsilon", "1", "--text", "book a flight"), "--pair and --text"),
        ((*NOISY[1:], "--epsilon", "1", "--workers", "2", "--cluster", "tcp://x:1"), "give --workers or --cluster,"),
        ((*NOISY[1:], "--epsilon", "1", "--runs", "-1"), "runs must be"),
        ((*NOISY[1:],), "state the claimed epsilon"),
        ((*NOISY[1:], "--epsilon", "-1"), "epsilon must be a number from 0 to 1e+300, got -1"),
        ((*NOISY[1:], "--epsilon", "1", "--save", "/dev/null/a.json"), "cannot write"),
        ((*NOISY[1:], "--epsilon", "1", "--resume"), "--resume needs --save"),
        ((*NOISY[1:], "--epsilon", "1", "--fixed", "--until-refuted"), "--fixed makes all runs but --until-refuted"),
        ((*NOISY[1:], "--epsilon", "1", "--alpha", "0.999"), "at most 0.2, got 0.999"),
        (("--python", "subjects:nothing", "--pair", "[0, 1]", "--epsilon", "1"), "has no 'nothing'"),
        (("--python", "subjects", "--pair", "[0, 1]", "--epsilon", "1"), "package.module:name"),
        (("--python", "subjects:wrong", "--pair", "[0, 1]", "--epsilon", "1"), "f(x, n, rng)"),
        (("--python", "subjects:three", "--pair", "[0, 1]", "--epsilon", "1"), "gave 3 outputs"),
        (("--command", "no-such-program", "--pair", "[0, 1]", "--epsilon", "1"), "cannot be started"),
        (("--url", "ftp://x/", "--pair", "[0, 1]", "--epsilon", "1"), "http"),
        ((*NOISY[1:], "--epsilon", "1", "--workers", "0"), "workers must be a whole number from 1"),
        ((*NOISY[1:], "--epsilon", "1", "--workers", "2", "--cluster", "tcp://127.0.0.1:1"), "not both"),
        ((*NOISY[1:], "--epsilon", "1", "--device", "abacus"), "unknown device 'abacus'; there are cpu, cuda, numpy"),
        (("adept", "--python", "subjects:noisy", "--epsilon", "1"), "name one thing to audit"),
        (("--python", "subjects:shout", "--inputs", "subjects.txt", "--epsilon", "1"), "subjects.txt"),
        (("--python", "subjects:shout", "--inputs", "empty.txt", "--epsilon", "1"), "has no inputs"),
        (("--python", "subjects:shout", "--inputs", "bad.jsonl", "--epsilon", "1"), "line 1, is not JSON"),
    ],
)
def test_bad_input_exits_with_2_and_a_sentence(run, tmp_path, words, said):
    (tmp_path / "empty.txt").write_text("\n \n")
    (tmp_path / "bad.jsonl").write_text("{\n")
    found = run("audit", *words, code=2)
    assert said in found.stderr
    assert found.stdout == ""


def test_check_with_runs_beside_the_exact_answer(run):
    found = run("check", "adept", "--dim", "4", "--runs", "5000", "--json", code=1)
    data = json.loads(found.stdout)
    assert data["epsilon"]["upper"] == pytest.approx(2.0)  # √4 times the claim
    assert data["runs"] > 0
    assert data["alpha"] == 0.001


def test_a_formula_has_one_verdict_whether_checked_or_run(run):
    """Samples cannot prove, but they do not make an exact verdict an open one either."""
    proven = json.loads(run("audit", "adept-l1", "--dim", "4", "--runs", "500", "--json", code=0).stdout)
    assert proven["verdict"] == "proven"
    assert proven["epsilon"]["upper"] == 1
    assert proven["runs"] == 500
    assert "500 runs show" in proven["reason"]
    refuted = json.loads(run("audit", "adept", "--dim", "4", "--runs", "500", "--json", code=1).stdout)
    assert refuted["epsilon"]["lower"] == pytest.approx(2)  # the exact one, √4
    pair = ("--pipeline", "laplace(1)", "--dim", "1", "--pair", "[[0.0], [1.0]]", "--epsilon", "1", "--runs", "500")
    assert json.loads(run("audit", *pair, "--json", code=0).stdout)["verdict"] == "open"  # of this pair alone
