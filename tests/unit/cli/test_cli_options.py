"""What all commands share: counts, --quiet, progress, the help and what the shell completes."""

import io
import os
import re
import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

from dpassay.cli import common, usage
from dpassay.cli import main as cli
from dpassay.cli.completion import complete_claim, complete_neighbours, complete_package, complete_pipeline
from dpassay.cli.options import GROUPS
from dpassay.errors import InputError
from processes import LIMIT, wait_until

PROVEN = ("check", "--pipeline", "query(l1, 1) | laplace(1)", "--epsilon", "1")


# ── Counts ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("given", "number"), [("1e5", 100_000), ("1E+3", 1000), ("12.0", 12), ("1_000", 1000), ("0", 0), (" 7 ", 7), (7, 7)]
)
def test_counts_as_people_write_them(given, number):
    assert common.whole_number(given) == number


@pytest.mark.parametrize("given", ["1.5", "1e-3", "ten", "", "inf", "nan", "1e41", "1e999999999", "0x10", "1,000"])
def test_what_is_no_count(given):
    with pytest.raises(InputError, match="is not a whole number; give one such as 100000 or 1e5"):
        common.whole_number(given)


def test_counts_in_options_and_settings(here):
    code, out, _ = here(*PROVEN, "--runs", "2e3", "--json")
    assert code == 0
    assert '"runs": 2000' in out
    code, out, err = here(*PROVEN, "--runs", "1.5")
    assert (code, out) == (2, "")
    assert "--runs: 1.5 is not a whole number" in " ".join(err.split())
    code, out, _ = here("check", "adept", "--set", "dim=1e3", "--json")
    assert code == 1
    assert '"dim": 1000' in out


# ── Progress and notes ──────────────────────────────────────────────────────────────────────────


def test_without_a_terminal_a_line_now_and_then_says_how_long_it_takes(capfd):
    now = 0.0
    tell = common.progress_lines(lambda: now)
    for second in range(60):
        now = float(second)
        tell(second, 60, "testing")
    lines = capfd.readouterr().err.splitlines()
    assert lines[0] == "testing: 10 of 60, about 50 s left"
    assert lines == [f"testing: {10 * k} of 60, about {60 - 10 * k} s left" for k in range(1, 6)]


def test_lines_become_fewer_in_long_work(capfd):
    now = 0.0
    tell = common.progress_lines(lambda: now)
    for now in map(float, range(0, 36_000, 10)):
        tell(int(now), 36_000, "testing")
    lines = capfd.readouterr().err.splitlines()
    # 10 s apart up to 100 s, then by a factor of 1/(1 - 0.1) each: 10 + log(360)/log(10/9).
    assert 50 < len(lines) < 10 + 56 + 1
    assert "min left" in lines[20]


def test_what_continues_counts_from_where_it_began(capfd):
    """Half was there already; 10 s for 10 of the other 50."""
    now = 0.0
    tell = common.progress_lines(lambda: now)
    tell(50, 100, "rounds")
    now = 10.0
    tell(60, 100, "rounds")
    assert capfd.readouterr().err == "rounds: 60 of 100, about 40 s left\n"


def test_long_work_without_steps_says_what_it_is_doing(monkeypatch):
    heard = io.StringIO()  # another thread writes: to ask pytest's capture meanwhile would lose what it writes
    monkeypatch.setattr(sys, "stderr", heard)
    monkeypatch.setattr(common, "LINE_EVERY", 0.0)
    with common.working("composing"):
        wait_until(lambda: heard.getvalue() == "composing …\n")
    monkeypatch.setattr(common, "LINE_EVERY", 1e6)
    with common.working("composing"):
        pass
    assert heard.getvalue() == "composing …\n"


@pytest.mark.parametrize(
    ("port", "said"), [("65536", "is more than 65,535"), ("1e9", "is more than"), ("-1", "is less than 0")]
)
def test_the_bounds_of_a_count_are_kept(here, port, said):
    code, _, err = here("serve", "--no-open", "--port", port)
    assert code == 2
    assert said in err


def test_calibrating_takes_the_shared_options(here):
    code, out, err = here("calibrate", "flip", "--epsilon", "1", "--categories", "1e1", "--quiet")
    assert (code, err) == (0, "")
    assert "flip" in out


def test_quiet_leaves_out_notes_and_keeps_results_and_errors(here, tmp_path):
    page = tmp_path / "a.html"
    assert "written" in here(*PROVEN, "--html", page)[2]
    code, out, err = here(*PROVEN, "--html", page, "--quiet")
    assert (code, err) == (0, "")
    assert "PROVEN" in out
    with common.progress_bar(3) as bar:
        assert bar is None
    code, _, err = here("check", "nothing-like-that", "-q")
    assert code == 2
    assert "unknown claim" in err


# ── Help and completion ─────────────────────────────────────────────────────────────────────────


def test_the_help_has_groups_with_whole_summaries_and_the_most_used_command_first(here):
    code, out, _ = here("--help")
    assert code == 0
    assert "..." not in out.split("Options:")[1]  # what click writes where it cuts a sentence
    lines = out.splitlines()
    first = lines.index("Judge a claim:")
    assert lines[first + 1].split()[0] == "check"
    words = " ".join(out.split())
    assert "what it is added to, and the resulting epsilon." in words
    assert all(f"{group}:" in lines for group in GROUPS)


def test_the_summaries_are_those_of_the_commands():
    program = typer.main.get_command(cli.app)
    for homes in GROUPS.values():
        for name, (_, summary) in homes.items():
            assert summary == program.get_command(None, name).get_short_help_str(limit=1000)


def test_the_help_imports_no_command():
    code = "import sys; from dpassay.cli.main import app; app(['--help'], standalone_mode=False); "
    code += "print(*(name for name in sys.modules if name.startswith(('dpassay.cli.', 'pydantic', 'rich', 'numpy'))))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(run.stdout.splitlines()[-1].split()) == {
        f"dpassay.cli.{name}" for name in ("coercion", "common", "completion", "main", "options", "usage")
    }


@pytest.mark.parametrize("options", [["--dim", "32"], ["--dim", "1e2", "--require-decision"], ["--json", "--dim", "3"]])
def test_options_are_read_without_pydantic(options):
    code = "import sys; from dpassay.cli.main import app; import dpassay.cli.formula.check as check; "
    code += "check.check_stages = lambda *given: print('pydantic' in sys.modules) or sys.exit(); "
    code += f"app(['check', 'adept', '--epsilon', '1', *{options!r}])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "False\n"


@pytest.mark.parametrize("given", ["abc", "1.5"])
def test_a_count_that_is_refused_names_its_option(here, given):
    code, _, err = here("check", "adept", "--dim", given)
    assert code == 2
    assert f"--dim: {given} is not a whole number" in err


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (["dpassay", "ver"], {"verify"}),
        (["dpassay", "check", "adept-g"], {"adept-gaussian"}),
        (["dpassay", "check", "--pipeline", "squ"], {"squash("}),
        (["dpassay", "reproduce", "bay"], {"bayes"}),
        (["dpassay", "check", "--neighbours", "repl"], {"replace-record"}),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else "",
)
def test_the_shell_completes(typed, offered):
    asked = {"_DPASSAY_COMPLETE": "complete_bash", "COMP_WORDS": " ".join(typed), "COMP_CWORD": str(len(typed) - 1)}
    # As the installed script does: the name that is completed is the program's.
    program = "import sys; sys.argv = ['dpassay']; from dpassay.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **asked},
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert set(done.stdout.split()) == offered


def test_what_completes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text("")
    assert complete_claim("mi") == ["mine.toml"]
    assert "adept" in complete_claim("")
    assert complete_pipeline("clip(l2, 1) |gauss") == ["clip(l2, 1) |gaussian("]
    assert complete_neighbours("us") == ["user", "user-entity"]
    assert all(name.startswith("pure-ldp") for name in complete_package("pure-ldp"))
    assert complete_package("pure-ldp")


def test_suggestions_only_where_they_are_near(here, tmp_path):
    assert "did you mean 'sanity-check'?" in here("reproduce", "sanity-chek", "--out", tmp_path)[2]
    assert "did you mean" not in here("reproduce", "zinc", "--out", tmp_path)[2]
    assert "did you mean" not in here("check", "zzzz")[2]


@pytest.mark.parametrize("command", ["check", "audit"])
@pytest.mark.parametrize("text", ["laplace", "adept", " laplace ", "mine.toml"])
def test_a_pipeline_is_not_the_name_of_a_claim(command: str, text: str) -> None:
    refused = CliRunner().invoke(cli.app, [command, "--pipeline", text, "--epsilon", "1"]).exception
    assert isinstance(refused, InputError)
    instead = f"for the claim, use 'dpassay {command} {text.strip()}'"
    assert str(refused) == f"--pipeline takes stages with their arguments, such as laplace(1); {instead}"


SUBCOMMANDS = {"train": ["adept", "dptext", "dpnr", "binary", "lm"], "calibrate": ["laplace", "gaussian", "flip"]}


@pytest.mark.parametrize(
    "name",
    [
        full
        for names in GROUPS.values()
        for name in names
        for full in ([f"{name} {sub}" for sub in SUBCOMMANDS.get(name, [])] or [name])
    ],
)
def test_the_help_has_groups_of_options_and_no_types_of_python(here, name):
    code, out, _ = here(*name.split(), "--help")
    assert code == 0
    assert not re.search(r"<\w+(\[\w+\])?>", out)
    options = re.findall(r"^  (?:-\w, )?--[\w-]+", out, re.MULTILINE)
    groups = [one for one in [*usage.OPTION_GROUPS, "Options"] if f"\n{one}:\n" in out]
    if len(options) <= usage.FEW:
        assert groups == ["Options"]
    else:
        assert len(groups) > 1
        assert "Options" not in groups  # every option has a place
