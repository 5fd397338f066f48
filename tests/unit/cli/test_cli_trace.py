"""The trace command: verdict, line and exit code."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dpassay.cli.main import app
from dpassay.errors import InputError, MechanismError

pytestmark = pytest.mark.usefixtures("short_traces")
PAIR = ("--pair", "[[1, 0, 0], [0, 1, 0]]")
CODE = "docs.examples.shared_noise"


@pytest.fixture(autouse=True)
def _in_the_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[3])


def test_a_fault_is_named_with_its_line() -> None:
    run = CliRunner().invoke(app, ["trace", "--python", f"{CODE}:encode", *PAIR, "--epsilon", "1", "--json"])
    assert run.exit_code == 1
    data = json.loads(run.stdout)
    (finding,) = data["findings"]
    assert (data["verdict"], finding["rule"]) == ("refuted", "shared-noise")
    line = Path(finding["file"]).read_text().splitlines()[finding["line"] - 1]
    assert "rng.laplace(scale=2.0)" in line
    assert data["traced_epsilon"][0] == "inf"
    assert (data["pair_epsilon"][0] > 1, data["pair_epsilon"][1]) == (True, "inf")


def test_right_code_is_open_and_says_what_can_prove_it() -> None:
    arguments = ["trace", "--python", f"{CODE}:repaired", *PAIR, "--epsilon", "1"]
    run = CliRunner().invoke(app, arguments)
    assert run.exit_code == 0
    assert "'dpassay check' can, from a bound that holds for all inputs" in run.stdout
    assert CliRunner().invoke(app, [*arguments, "--require-decision"]).exit_code == 3


@pytest.mark.long
def test_inputs_come_from_a_file(tmp_path: Path) -> None:
    """Of nine inputs the two that are farthest apart are found: (1 − 0) / 2 is the largest loss."""
    file = tmp_path / "inputs.jsonl"
    file.write_text("\n".join(f"[{i / 8}, 0, 0]" for i in [3, 8, 5, 0, 1, 2, 4, 6, 7]))
    run = CliRunner().invoke(
        app,
        ["trace", "--python", f"{CODE}:repaired", "--inputs", str(file), "--epsilon", "1", "--json", "--time", "30s"],
    )
    assert json.loads(run.stdout)["pair_epsilon"][1] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--epsilon", "1"], "name the code to trace"),
        (["--python", "math:sin", "--epsilon", "1"], "give the inputs to run it on"),
        (["--python", "math:sin", "--pair", "[1]", "--epsilon", "1"], "--pair takes two inputs"),
        (["--python", "math:sin", "--pair", "[1, 2]", "--epsilon", "1", "--seed", "-1"], "0 or more, got -1"),
        (["--python", "math:sin", "--pair", "[1, 2]", "--epsilon=-1"], "a number from 0 to 1e+300, got -1"),
        (["--python", "math:sin", "--pair", "[1, 2]", "--epsilon", "1", "--html", "docs"], "docs: it is a folder"),
        (["--python", "math:sin", "--save", "x.json", "--html", "x.json"], "two results to x.json"),
        (
            ["--python", "a:b", "--interpreter", "python", "--time-limit", "0", "--pair", "[1, 2]", "--epsilon", "1"],
            "the time limit must be more than 0",
        ),
    ],
)
def test_bad_input_is_named(arguments: list[str], said: str) -> None:
    run = CliRunner().invoke(app, ["trace", *arguments])
    assert isinstance(run.exception, InputError)
    assert said in str(run.exception)


def test_a_trace_is_kept_shown_and_verified(tmp_path: Path) -> None:
    file, page = tmp_path / "trace.json", tmp_path / "trace.html"
    subject = ["--python", f"{CODE}:encode"]
    arguments = ["trace", *subject, *PAIR, "--epsilon", "1", "--save", str(file), "--html", str(page)]
    run = CliRunner().invoke(app, arguments)
    assert run.exit_code == 1
    assert "warning: NaN in the input produces NaN" in run.stdout
    assert "rng.laplace(scale=2.0)" in page.read_text()
    again = CliRunner().invoke(app, ["verify", str(file), *subject, "--fresh-seed", "1"])
    assert again.exit_code == 0
    assert "The trace holds: the claim epsilon 1 is refuted." in again.stdout
    assert "shared-noise at shared_noise.py:10" in again.stdout
    no_trace = CliRunner().invoke(app, ["verify", str(page), "--interpreter", "python"])
    assert "--interpreter is for the code of a saved trace" in str(no_trace.exception)
    alone = CliRunner().invoke(app, ["verify", str(file)])
    assert "verify never starts code that a file names" in str(alone.exception)
    other = CliRunner().invoke(app, ["verify", str(file), "--command", "cat"])
    assert "give it again with --python" in str(other.exception)
    another = CliRunner().invoke(app, ["verify", str(file), "--python", f"{CODE}:repaired"])
    assert str(another.exception) == f"the trace was of something else: {CODE}:encode, not {CODE}:repaired"
    assert "already exists" in str(CliRunner().invoke(app, arguments).exception)


def test_hostile_inputs_can_be_left_out_and_can_count() -> None:
    arguments = ["trace", "--python", f"{CODE}:repaired", *PAIR, "--epsilon", "1"]
    assert "warning" not in CliRunner().invoke(app, [*arguments, "--no-hostile"]).stdout
    run = CliRunner().invoke(app, [*arguments, "--neighbours", "any", "--json"])
    assert run.exit_code == 1
    assert json.loads(run.stdout)["findings"][0]["rule"] == "not-finite"


def test_a_time_limit_holds_for_each_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "slow_subject.py").write_text("import time\n\ndef slow(x):\n    time.sleep(60)\n")
    monkeypatch.chdir(tmp_path)
    arguments = ["--python", "slow_subject:slow", "--time-limit", "0.05"]
    run = CliRunner().invoke(app, ["trace", *arguments, "--pair", "[1, 2]", "--epsilon", "1"])
    assert isinstance(run.exception, MechanismError)
    said = "slow_subject.py:4 raised TimeLimit: it did not finish within the time limit of 0.05 s"
    assert str(run.exception) == said


def test_what_belongs_to_the_user_is_not_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "class Held:\n def __call__(self, x, rng): return x + rng.laplace()\n def close(self): raise SystemExit(9)\n"
    (tmp_path / "held.py").write_text(code + "held = Held()\n")
    monkeypatch.chdir(tmp_path)
    run = CliRunner().invoke(app, ["trace", "--python", "held:held", "--pair", "[1, 2]", "--epsilon", "1"])
    assert run.exit_code == 0
