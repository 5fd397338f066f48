"""The plugin in real sessions: small test files are run, with the split, the summary and the replays that they give."""

import json
import re
import shlex
import subprocess
import sys
import warnings
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dpassay.testing import assertion as asserting
from dpassay.testing.assertion import RUNNING, AuditWarning, NotPrivate, assert_dp
from dpassay.testing.pytest_plugin import split

HEAD = """
import pytest
from dpassay import assert_dp

def right(x, n, rng):
    return x + rng.laplace(scale=1, size=n)  # epsilon 1 between 0 and 1

def wrong(x, n, rng):
    return x + rng.laplace(scale=0.25, size=n)  # epsilon 4

NEAR = [(0.0, 1.0)]
"""

# Our own settings, which would turn warnings into errors, end here; Hypothesis is only left out because it is slow.
PLAIN = ["--strict-markers", "-W", "default", "-p", "no:cacheprovider", "-p", "no:hypothesispytest"]

# A test that asks for `note` writes down with which numbers it audited.
CONFTEST = """
import json, os, pytest

@pytest.fixture
def note(request):
    def write(verdict):
        entry = [request.node.name.split("@")[0], verdict.alpha, verdict.seed, verdict.runs, verdict.witness.right]
        with open(os.environ["NOTES"], "a") as file:
            file.write(json.dumps(entry) + "\\n")
        return verdict
    return write
"""


@pytest.fixture(scope="module", autouse=True)
def _warm() -> None:
    """Imports what audits import: pytester forgets modules that are first imported in its own sessions."""
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        patch.setattr(asserting, "RUNNING", [])
        warnings.simplefilter("ignore", AuditWarning)
        assert_dp(lambda x, n, rng: x + rng.laplace(size=n), [(0.0, 1.0)], epsilon=9, runs=2560)
        for mechanism in (lambda x: x, lambda x: x + " word"):
            with pytest.raises(NotPrivate):
                assert_dp(mechanism, [("a b", "a c")], epsilon=1)


class Bench:
    """A folder with test files, and sessions in it."""

    def __init__(self, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
        self.pytester = pytester
        self.file = pytester.path / "notes"
        monkeypatch.setenv("NOTES", str(self.file))
        pytester.makeconftest(CONFTEST)

    def run(self, *options: str, **files: str) -> pytest.RunResult:
        if files:
            self.pytester.makepyfile(**{name: HEAD + text for name, text in files.items()})
        self.file.unlink(missing_ok=True)
        return self.pytester.runpytest(*PLAIN, *options)

    def notes(self) -> list[list[Any]]:
        return sorted(json.loads(line) for line in self.file.read_text().splitlines())

    def alphas(self) -> list[float]:
        return [entry[1] for entry in self.notes()]


@pytest.fixture
def bench(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(pytester, monkeypatch)


def summary(result: pytest.RunResult) -> str:
    found = [line for line in result.outlines if line.startswith("dp: ")]
    assert len(found) == 1, result.outlines
    return found[0]


def rows(result: pytest.RunResult) -> dict[str, str]:
    """The rows of the only failure."""
    found = [line[1:].split(maxsplit=1) for line in result.outlines if re.match(r"E {9}[a-z]+ ", line)]
    return {row[0]: row[1] for row in found}


def test_what_is_not_refuted_passes_and_the_summary_states_the_error(bench: Bench) -> None:
    text = """
@pytest.mark.dp(epsilon=1, pairs=NEAR)
def test_one(dp):
    assert dp(right).word == "open"
"""
    result = bench.run(test_a=text)
    result.assert_outcomes(passed=1)
    assert summary(result) == (
        "dp: 1 audit in 1 test, 0 refuted; a correct mechanism fails with probability at most 0.0001 in all (seed 0)"
    )


def test_a_session_without_audits_says_nothing(bench: Bench) -> None:
    result = bench.run(test_a="def test_one(): pass")
    result.assert_outcomes(passed=1)
    assert "dp:" not in result.stdout.str()


def test_a_failure_prints_the_claim_the_pair_the_event_the_counts_and_the_replay(bench: Bench) -> None:
    text = """
@pytest.mark.dp(epsilon=1)
def test_one(dp):
    dp(wrong, NEAR)
"""
    result = bench.run(test_a=text)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([">*dp(wrong, NEAR)", "E * the claim of 1-DP for test_a.wrong is refuted"])
    found = rows(result)
    assert list(found) == ["reason", "first", "gives", "second", "event", "counts", "rates", "alpha", "replay"]
    assert re.match(r"[\d,]+ of [\d,]+ guesses were correct \(", found["reason"])
    assert (found["first"], found["second"]) == ("0.0", "1.0")
    assert re.fullmatch(r"\d+ of \d+ guesses correct in [\d,]+ runs", found["counts"])
    assert found["alpha"].startswith("6e-05,")
    assert found["replay"] == "pytest test_a.py::test_one --dp-alpha=0.0001 --dp-seed=0 --dp-runs=20000"
    assert "asserting.py" not in result.stdout.str()  # the traceback ends in the test
    assert "1 audit in 1 test, 1 refuted" in summary(result)


DEEP = """
class TestIt:
    @pytest.mark.parametrize("word", ["it's $HOME/a::b [c]"])
    def test_it(self, dp, word):
        dp(right, NEAR, epsilon=2)
        dp(right, [(0.0, 3.0)], epsilon=1, runs=3000)

@pytest.mark.parametrize("i", range(5))
def test_other(dp, i):
    dp(right, NEAR, epsilon=2, runs=320)

def test_unmarked():
    assert_dp(right, [(0.0, 4.0)], epsilon=1)
"""


@pytest.mark.parametrize("other", ["test_unmarked", "TestIt"])
def test_the_line_replays_the_failure_with_the_same_counts(bench: Bench, other: str) -> None:
    folder = bench.pytester.mkdir("deep")
    (folder / "test_deep.py").write_text(HEAD + DEEP)
    first = bench.run("--dp-seed=4", "--dp-alpha=0.001", "--deselect", f"deep/test_deep.py::{other}")
    assert "1 refuted" in summary(first)
    before = rows(first)
    words = shlex.split(before["replay"])
    assert words[0] == "pytest"
    assert words[1].startswith("deep/test_deep.py::")
    # Without a configuration file the root is now another folder, and the test is alone.
    again = bench.pytester.runpytest(*PLAIN, *words[1:])
    again.assert_outcomes(failed=1)
    after = rows(again)
    assert after.pop("replay").split(" --", 1)[1] == before.pop("replay").split(" --", 1)[1]
    assert after == before


ONE = """
def test_b(dp, note):
    note(dp(right, NEAR, epsilon=1, runs=320))
"""


# The first call of a test gets 6/π² = 0.6079 of its share; shares and alphas are rounded down to two digits.
@pytest.mark.parametrize(
    ("mark", "tests", "alpha"),
    [
        ("", 1, 6e-5),
        ("@pytest.mark.parametrize('i', range(3))", 3, 2e-5),  # 3.3e-5 each
        ("@pytest.mark.parametrize('i', range(4))", 4, 1.5e-5),  # 2.5e-5 each
    ],
)
def test_the_error_probability_is_split_over_all_tests(bench: Bench, mark: str, tests: int, alpha: float) -> None:
    text = ONE if not mark else f"{mark}\n{ONE.strip().replace('note)', 'note, i)', 1)}\n"
    bench.run(test_a=text).assert_outcomes(passed=tests)
    assert bench.alphas() == [alpha] * tests


def test_the_split_is_over_the_tests_that_were_selected_in_all_files(bench: Bench) -> None:
    bench.run(test_a=ONE, test_c=ONE).assert_outcomes(passed=2)
    assert bench.alphas() == [3e-5] * 2
    bench.run("--deselect", "test_c.py::test_b", "--dp-alpha=0.02").assert_outcomes(passed=1, deselected=1)
    assert bench.alphas() == [0.012]


def test_several_calls_share_what_their_test_has_and_own_arguments_win(bench: Bench) -> None:
    text = """
def test_one(dp, note):
    for _ in range(3):
        note(dp(right, NEAR, epsilon=1))
    note(dp(right, NEAR, epsilon=1, runs=400, seed=5))
    note(dp(right, NEAR, epsilon=1, alpha=0.01))
"""
    result = bench.run("--dp-runs=320", test_a=text)
    _, alphas, seeds, runs, _ = zip(*bench.notes(), strict=True)
    assert alphas == (
        3.7e-6,
        6.7e-6,
        1.5e-5,
        6e-5,
        0.01,
    )  # 1e-4 · 6/π² over 16, 9, 4 and 1; the fifth is the test's own
    assert seeds[0] == 5
    assert len(set(seeds)) == 5
    assert runs == (400, 320, 320, 320, 320)
    assert "5 audits in 1 test, 0 refuted" in summary(result)
    assert "at most 0.0101 in all" in summary(result)


RESERVE = """
@pytest.mark.dp(epsilon=1)
def test_marked(note):
    note(assert_dp(right, NEAR, runs=320))

def test_with_fixture(dp, note):
    note(dp(right, NEAR, epsilon=1, runs=320))

def test_with_neither(note):
    note(assert_dp(right, NEAR, epsilon=1, runs=320))
    note(assert_dp(right, NEAR, epsilon=1, runs=320))

def test_without_audit():
    pass
"""


def test_a_tenth_is_kept_for_tests_that_did_not_announce_themselves(bench: Bench) -> None:
    result = bench.run(test_a=RESERVE)
    result.assert_outcomes(passed=4)
    assert "4 audits in 3 tests" in summary(result)
    # 0.9e-4 over two tests, and 1e-5 over the other two
    assert bench.alphas() == [2.7e-5, 2.7e-5, 7.5e-7, 3e-6]
    bench.run("-k", "with_neither").assert_outcomes(passed=1, deselected=3)
    assert bench.alphas() == [1.5e-5, 6e-5]


@pytest.mark.parametrize("total", [1e-4, 0.5, 1e-9])
def test_shares_never_add_up_to_more_than_the_total(total: float) -> None:
    for audited in (0, 1, 2, 3, 7, 999):
        for others in (0, 1, 3, 12_345):
            shares = split(total, audited, others)
            spent = audited * Fraction(shares[0]) + others * Fraction(shares[1])
            assert spent <= Fraction(total) * (1 + Fraction(1, 10**12))  # the rounding of products of doubles
            assert spent >= Fraction(total) * Fraction(9, 10) or not audited + others
            assert bool(audited) == bool(shares[0])
            assert bool(others) == bool(shares[1])


def test_a_mark_without_an_audit_fails(bench: Bench) -> None:
    text = """
@pytest.mark.dp(epsilon=1)
def test_forgets(dp): pass

@pytest.mark.dp(epsilon=1)
def test_skips(dp): pytest.skip()

@pytest.mark.dp(1)
def test_by_position(dp): dp(right, NEAR)

@pytest.mark.dp(epsilon=1, pairs=[(0.0, 9.0)])
@pytest.mark.xfail(raises=AssertionError, strict=True)
def test_known_to_be_wrong(dp): dp(right)
"""
    result = bench.run(test_a=text)
    result.assert_outcomes(failed=1, skipped=1, errors=1, xfailed=1)
    result.stdout.fnmatch_lines(["*marked dp but audited nothing*"])
    result.stdout.fnmatch_lines(["the mark dp takes arguments by name only*"])
    assert "1 audit in 1 test, 1 refuted" in summary(result)


def test_marks_of_classes_and_functions_are_defaults_and_the_nearest_wins(bench: Bench) -> None:
    text = """
@pytest.mark.dp(epsilon=1, pairs=NEAR, runs=320)
class TestIt:
    def test_class(self, dp):
        verdict = dp(right)
        assert (verdict.guarantee.epsilon, verdict.runs) == (1, 320)

    @pytest.mark.dp(epsilon=3)
    def test_function(self, dp):
        verdict = dp(right)
        assert (verdict.guarantee.epsilon, verdict.runs) == (3, 320)

    @pytest.mark.dp(epsilon=3)
    def test_call(self, dp):
        verdict = dp(right, inputs=[2.0, 3.0], epsilon=2, runs=256)
        assert (verdict.guarantee.epsilon, verdict.runs) == (2, 256)
        assert verdict.witness is None or verdict.witness.inputs == (2.0, 3.0)
"""
    bench.run(test_a=text).assert_outcomes(passed=3)


def test_a_seed_names_the_streams_and_other_tests_do_not_change_them(bench: Bench) -> None:
    text = "def test_a(dp, note):\n    note(dp(right, NEAR, epsilon=1, alpha=1e-5))\n"
    bench.run(test_a=text)
    first = bench.notes()
    bench.run()
    assert bench.notes() == first
    bench.run(test_a=ONE + text, test_b=ONE)
    assert first[0] in bench.notes()
    bench.run("--dp-seed=1", "test_a.py", test_a=text)
    [(_, _, seed, _, right)] = bench.notes()
    assert seed != first[0][2]
    assert right != first[0][4]


def test_bad_input_is_an_error_of_the_test_and_no_audit(bench: Bench) -> None:
    text = "def test_one(dp): dp(right, [(1.0, 1.0)], epsilon=1)"
    result = bench.run(test_a=text)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E*InputError:*"])
    assert "dp:" not in "".join(result.outlines[-3:])


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--dp-alpha=0", "strictly between 0 and 1"),
        ("--dp-alpha=2", "strictly between 0 and 1"),
        ("--dp-runs=0", "1 or more"),
        ("--dp-seed=-1", "0 or more"),
    ],
)
def test_bad_options_are_usage_errors(bench: Bench, option: str, words: str) -> None:
    result = bench.run(option, test_a="def test_one(): pass")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert words in result.stderr.str()


def test_a_test_that_cannot_fail_warns(bench: Bench) -> None:
    text = "def test_one(dp): dp(right, NEAR, epsilon=12)"
    result = bench.run("--dp-runs=320", test_a=text)
    result.assert_outcomes(passed=1, warnings=1)
    result.stdout.fnmatch_lines(["*AuditWarning: this assertion cannot fail: 12-DP*undetectable with 320 runs*"])
    bench.run("-W", "error").assert_outcomes(failed=1)


def test_xdist_gives_the_same_split_the_same_counts_and_one_summary(bench: Bench) -> None:
    pytest.importorskip("xdist")
    text = """
@pytest.mark.xdist_group("one")
@pytest.mark.parametrize("x", [1.0, 4.0])
def test_group(dp, note, x):
    note(dp(right, [(0.0, x)], epsilon=1))
"""
    outcomes, notes, lines = [], [], []
    for options in (("-p", "xdist"), ("-n", "2", "--dist", "loadgroup")):
        result = bench.run(*options, test_a=RESERVE, test_b=text)
        outcomes.append(result.parseoutcomes())
        notes.append(bench.notes())
        lines.append((summary(result), rows(result)))
    assert outcomes[0] == outcomes[1]
    assert outcomes[0]["failed"] == 1
    assert notes[0] == notes[1]
    assert lines[0] == lines[1]
    assert "6 audits in 5 tests, 1 refuted" in lines[0][0]


RELEASE = """
def noisy_count(text, rng):
    return len(text.split()) + rng.laplace(scale=0.25)

def rewrite(text, temperature, rng):
    return " ".join(rng.choice(["a", "b"], size=7))
"""


FAILS = """
def helper(x):
    return {}[x]  # where it goes wrong


def always(x, rng):
    return helper(x)


def sometimes(x, rng):
    return helper(x) if x == 1.0 else 0


def test_one(dp):
    dp(MECHANISM, NEAR, epsilon=1)
"""


@pytest.mark.parametrize(("mechanism", "error"), [("always", "MechanismError"), ("sometimes", "NotPrivate")])
def test_the_traceback_of_a_mechanism_that_fails_is_kept(bench: Bench, mechanism: str, error: str) -> None:
    result = bench.run(test_a=FAILS.replace("MECHANISM", mechanism))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*return {}[[]x[]]  # where it goes wrong",
            "E*KeyError: *",
            "*direct cause of the following exception*",
            f">*dp({mechanism}, NEAR, epsilon=1)",
            f"E*{error}: *",
        ]
    )


def test_the_example_in_the_documentation_runs(bench: Bench) -> None:
    page = (Path(__file__).parents[3] / "docs" / "pytest.md").read_text()
    example = re.search(r"^```python\n(# test_release.py\n.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert example
    bench.pytester.makepyfile(release=RELEASE, test_release=example[1])
    result = bench.run()
    result.assert_outcomes(passed=2, failed=1)  # no warnings
    printed = page.split("## What a failure prints")[1].split("```")[1]
    found = rows(result)
    labels = [line.split()[1] for line in printed.splitlines() if re.match("E {9}[a-z]", line)]
    assert list(found) == list(dict.fromkeys(labels))
    assert found["replay"] in printed


def test_an_inner_session_leaves_the_outer_tests_budget_alone(bench: Bench) -> None:
    before = list(RUNNING)
    bench.run(test_a=ONE).assert_outcomes(passed=1)
    assert before == RUNNING
    assert "test_an_inner_session" in RUNNING[-1].place


def test_the_plugin_imports_nothing_heavy_until_used() -> None:
    code = "import sys, dpassay.testing.pytest_plugin; print('\\n'.join(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(run.stdout.split())
    assert not {"numpy", "scipy", "mpmath", "pydantic", "rich", "matplotlib", "dpassay.audit.runner"} & loaded
    assert {name for name in loaded if name.startswith("dpassay.")} == {
        "dpassay.audit",
        "dpassay.audit.options",
        "dpassay.core",
        "dpassay.core.parameters",
        "dpassay.errors",
        "dpassay.testing",
        "dpassay.testing.assertion",
        "dpassay.testing.pytest_plugin",
        "dpassay.testing.trace_assertion",
        "dpassay.values",
    }


def test_the_mark_the_fixture_and_the_options_are_listed(bench: Bench) -> None:
    assert "@pytest.mark.dp(epsilon=..., " in bench.run("--markers").stdout.str()
    bench.run("--fixtures").stdout.fnmatch_lines(["dp -- *", "*dp(mechanism, pairs, epsilon=1)*"])
    bench.run("--help").stdout.fnmatch_lines(["*differential privacy*", "*--dp-alpha*", "*--dp-seed*", "*--dp-runs*"])
