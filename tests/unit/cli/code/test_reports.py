"""--sarif, --junit and --annotations as CI uses them, and this repository's GitHub Action and pre-commit hook."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from processes import LIMIT

ROOT = Path(__file__).parents[4]
HOLDS = 'pipeline = "query(l1, 1) | laplace(1)"\nepsilon = 1\n'
FAILS = 'pipeline = "query(l1, 1) | laplace(1/2)"\n\nepsilon = 1\n'
NOT_KNOWN = 'pipeline = "clip(l2, 1) | laplace(2) | times(4)"\nepsilon = 6.5\ndelta = 1e-3\ndim = 4\n'
CODE = """
import numpy as np

def honest(x):
    return float(np.clip(x, 0, 1)) + np.random.default_rng().laplace()

def shared(x):
    return np.asarray(x) + np.random.default_rng().laplace(scale=2.0)

def broken(x):
    raise RuntimeError("no model")
"""


@pytest.fixture
def here(here, tmp_path, monkeypatch):
    """The command line in an empty folder that is the repository: exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "reported_code.py").write_text(CODE)
    (tmp_path / "claims").mkdir()
    yield here
    sys.modules.pop("reported_code", None)


REPORTS = ("--sarif", "r.sarif", "--junit", "r.xml", "--annotations")


def alerts():
    """Level, rule, file and line of each result of r.sarif."""
    found = []
    for one in json.loads(Path("r.sarif").read_text())["runs"][0]["results"]:
        at = one["locations"][0].get("physicalLocation", {})
        place = at.get("artifactLocation", {}).get("uri"), at.get("region", {}).get("startLine")
        found.append((one["level"], one["ruleId"], *place))
    return found


def outcomes():
    suite = ElementTree.parse("r.xml").getroot().find("testsuite")
    return {case.get("name"): case[0].tag for case in suite}


def commands(err):
    return [line for line in err.splitlines() if line.startswith("::")]


def test_a_folder_of_claims(here):
    for name, text in (("a", HOLDS), ("b", FAILS), ("c", NOT_KNOWN), ("d", FAILS + 'expected = "refuted"\n')):
        Path("claims", f"{name}.toml").write_text(text)
    code, out, err = here("gallery", "--from", "claims", "--json", *REPORTS)
    assert code == 1
    assert [one["verdict"] for one in json.loads(out)] == ["proven", "refuted", "open", "refuted"]
    assert alerts() == [
        ("error", "claim-refuted", "claims/b.toml", 3),
        ("warning", "claim-open", "claims/c.toml", 2),
        ("note", "claim-refuted", "claims/d.toml", 3),
    ]
    assert outcomes() == {"a": "system-out", "b": "failure", "c": "skipped", "d": "system-out"}
    assert commands(err)[0].startswith("::error file=claims/b.toml,line=3,title=b%3A claim-refuted::Laplace noise")
    assert [line.split()[0] for line in commands(err)] == ["::error", "::warning", "::notice"]
    assert "refuted: b\n" in err


def test_the_exit_code_of_a_folder_says_what_is_an_error_in_its_reports(here):
    file = Path("claims", "a.toml")
    for text, options, code in (
        (HOLDS, (), 0),
        (FAILS, (), 1),
        (FAILS + 'expected = "refuted"\n', (), 0),
        (NOT_KNOWN, (), 0),
        (NOT_KNOWN, ("--require-decision",), 3),
        (NOT_KNOWN + 'expected = "open"\n', ("--require-decision",), 0),
        (HOLDS + 'expected = "refuted"\n', (), 1),
    ):
        file.write_text(text)
        assert here("gallery", "--from", "claims", *options, *REPORTS)[0] == code, text
        assert ("error" in [alert[0] for alert in alerts()]) == (code != 0), text
        assert (outcomes()["a"] == "failure") == (code != 0), text


def test_files_that_cannot_be_read_are_errors_at_their_lines(here):
    Path("claims", "a.toml").write_text(HOLDS + "dimm = 3\n")
    Path("claims", "b.toml").write_text(HOLDS)
    code, _, err = here("gallery", "--from", "claims", *REPORTS)
    assert code == 2
    assert alerts() == [("error", "claim-unreadable", "claims/a.toml", 3)]
    assert outcomes() == {"a": "error"}
    assert "did you mean 'dim'?" in commands(err)[0]
    code, _, err = here("check", "claims/a.toml", "--annotations")
    assert code == 2
    assert commands(err)[0].startswith("::error file=claims/a.toml,line=3,title=a%3A claim-unreadable::")


def test_one_claim(here):
    Path("claims", "b.toml").write_text(FAILS)
    assert here("check", "claims/b.toml", *REPORTS)[0] == 1
    assert alerts() == [("error", "claim-refuted", "claims/b.toml", 3)]
    code, _, err = here("check", "--pipeline", "query(l1, 1) | laplace(1)", "--epsilon", "1", *REPORTS)
    assert code == 0
    assert alerts() == []
    assert commands(err) == []
    assert outcomes() == {"pipeline": "system-out"}


def test_an_audit_points_at_the_function(here):
    asked = ("--pair", "[0, 1]", "--runs", "4e3", *REPORTS)
    assert here("audit", "--python", "reported_code:honest", "--epsilon", "0.1", *asked)[0] == 1
    assert alerts() == [("error", "claim-refuted", "reported_code.py", 4)]
    assert outcomes() == {"reported_code:honest": "failure"}
    code, _, _ = here("audit", "--python", "reported_code:honest", "--epsilon", "1", "--no-bits", *asked)
    assert code == 0
    assert alerts() == [("note", "claim-open", "reported_code.py", 4)]
    assert outcomes() == {"reported_code:honest": "skipped"}
    code, _, err = here("audit", "--python", "reported_code:broken", "--epsilon", "1", *asked)
    assert code == 4
    assert alerts() == [("error", "mechanism-failed", "reported_code.py", 10)]
    assert outcomes() == {"reported_code:broken": "error"}
    assert "no model" in commands(err)[0]


def test_a_trace_points_at_the_line(here):
    asked = ("--pair", "[[0, 0], [1, 0]]", "--epsilon", "1", "--no-hostile", *REPORTS)
    assert here("trace", "--python", "reported_code:shared", *asked)[0] == 1
    assert alerts() == [("error", "shared-noise", "reported_code.py", 8)]
    assert outcomes() == {"reported_code:shared": "failure"}
    assert here("trace", "--python", "reported_code:broken", *asked)[0] == 4
    assert [alert[1] for alert in alerts()] == ["mechanism-failed"]


def test_a_file_that_cannot_be_written_is_refused_before_the_work(here):
    code, out, err = here("check", "adept", "--sarif", "/dev/null/nowhere/r.sarif")
    assert (code, out) == (2, "")
    assert "nowhere" in err


# ── What this repository offers to others ───────────────────────────────────────────────────────


def run_action(folder: Path, **given: str) -> tuple[int, str, dict[str, str], str]:
    """The step that judges claims, as GitHub runs it: exit code, log, outputs, summary."""
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    step = next(one for one in action["runs"]["steps"] if one.get("id") == "judge")
    inputs = {name: given.get(name.replace("-", "_"), about["default"]) for name, about in action["inputs"].items()}
    inputs["python"] = sys.executable
    environment = {name: inputs[text.split("inputs.")[1].rstrip(" }")] for name, text in step["env"].items()}
    outputs, summary = folder / "outputs", folder / "summary"
    environment |= {"GITHUB_OUTPUT": str(outputs), "GITHUB_STEP_SUMMARY": str(summary)}
    environment |= {"GITHUB_WORKSPACE": str(folder), "GITHUB_ACTION_PATH": str(ROOT)}
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", step["run"]],
        cwd=folder,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=LIMIT,
        check=False,
    )
    found = dict(line.split("=", 1) for line in outputs.read_text().splitlines())
    assert set(action["outputs"]) == set(found)
    return done.returncode, done.stdout, found, summary.read_text()


def test_the_action_judges_annotates_and_sums_up(tmp_path):
    folder = tmp_path / "my claims"
    folder.mkdir()
    (folder / "right.toml").write_text(HOLDS)
    (folder / "wrong.toml").write_text(FAILS + 'name = "a|b `<script>`"\n')
    code, log, outputs, summary = run_action(tmp_path, claims="my claims", sarif="out.sarif")
    assert code == 1
    assert "::error file=my claims/wrong.toml,line=3," in log
    assert outputs == {
        "sarif": "out.sarif",
        "junit": "dpassay.xml",
        "proven": "1",
        "refuted": "1",
        "open": "0",
        "exit-code": "1",
    }
    assert (tmp_path / "out.sarif").is_file()
    assert (tmp_path / "dpassay.xml").is_file()
    assert "| right | ✓ proven | " in summary
    assert "| a\\|b \\`&lt;script>\\` | ✗ refuted | " in summary


def test_the_action_says_what_it_could_not_judge(tmp_path):
    (tmp_path / "claims").mkdir()
    (tmp_path / "claims" / "a.toml").write_text("pipeline = 3\n")
    code, log, outputs, summary = run_action(tmp_path)
    assert (code, outputs["exit-code"], outputs["proven"]) == (2, "2", "0")
    assert "::error file=claims/a.toml,line=1," in log
    assert "No claim of `claims` was judged (exit code 2)" in summary


def test_the_hook_judges_a_folder(here):
    hook, *_ = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    program, *arguments = shlex.split(hook["entry"])
    assert (program, hook["language"], hook["pass_filenames"]) == ("dpassay", "python", False)
    Path("claims", "a.toml").write_text(HOLDS)
    assert here(*arguments, *hook["args"])[0] == 0
    Path("claims", "a.toml").write_text(FAILS)
    assert here(*arguments, *hook["args"])[0] == 1
