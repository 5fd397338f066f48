"""The claim comes with the object, on the command line and in a trace, and the verdict says whose claim it judged."""

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import dpassay
from dpassay.adapters.base import ReadObject
from dpassay.cli.common import as_options
from dpassay.cli.main import app
from dpassay.core.guarantee import ZCDP, PureDP
from recorded import recorded

MODULE = """
import numpy as np
from dpassay.adapters.base import ReadObject
from dpassay.core.guarantee import PureDP, ZCDP

def noisy(scale):
    return lambda x, rng: x + rng.laplace(scale=scale)

right = ReadObject("Lib's right", PureDP("0.5"), "query(l1, 1) | laplace(2)", 1, None, noisy(2.0), ((0.0, 1.0),))
wrong = ReadObject("Lib's wrong", PureDP("0.5"), None, None, None, noisy(0.2), ((0.0, 1.0),), by="Lib's epsilon")
formula = ReadObject("Lib's formula", pipeline="query(l1, 1) | laplace(2)", epsilon_at=lambda delta: 0.5)
silent = ReadObject("Lib's silent", None, None, None, None, noisy(2.0))
"""


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    (tmp_path / "objects_of_lib.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))

    def run(command: str, name: str, *more: str) -> Any:
        return CliRunner().invoke(app, [command, "--python", f"objects_of_lib:{name}", *more])

    return run


def test_check_needs_no_epsilon_where_the_object_states_one(told: Any) -> None:
    run = told("check", "right", "--json")
    data = json.loads(run.stdout)
    assert (run.exit_code, data["verdict"], data["epsilon"]["claimed"]) == (0, "proven", 0.5)
    assert data["claim"]["source"] == "stated by Lib's right"
    assert "Lib's right" in told("check", "right").stdout


def test_an_epsilon_of_ones_own_overrides_and_the_verdict_says_so(told: Any) -> None:
    run = told("check", "right", "--epsilon", "0.4", "--json")
    data = json.loads(run.stdout)
    assert (run.exit_code, data["verdict"]) == (1, "refuted")
    assert data["claim"]["source"] == "stated by the user, not by Lib's right, which states 0.5-DP"


def test_audit_needs_neither_epsilon_nor_pairs(told: Any) -> None:
    run = told("audit", "wrong", "--runs", "4000", "--json")
    data = json.loads(run.stdout)
    assert (run.exit_code, data["verdict"]) == (1, "refuted")
    assert (data["claim"]["name"], data["claim"]["source"]) == ("objects_of_lib:wrong", "stated by Lib's epsilon")
    assert told("audit", "wrong", "--runs", "1000", "--epsilon", "6").exit_code == 0


@pytest.mark.long
def test_trace_needs_neither_epsilon_nor_pairs(told: Any) -> None:
    run = told("trace", "wrong", "--json")
    data = json.loads(run.stdout)
    assert (run.exit_code, data["verdict"], data["traced_epsilon"][0]) == (1, "refuted", pytest.approx(5))
    assert data["reason"].endswith("The claim of 0.5-DP is stated by Lib's epsilon.")
    assert told("trace", "wrong", "--epsilon", "6").exit_code == 0


@pytest.mark.parametrize(
    ("command", "name", "said"),
    [
        ("check", "formula", r"Lib's formula states no epsilon of its own: use check\(\.\.\., delta=1e-5\), for"),
        ("check", "noisy", "objects_of_lib:noisy is of type function; dpassay cannot derive a formula"),
        ("audit", "noisy", "state the claimed epsilon: --epsilon 1"),
        ("audit", "silent", r"Lib's silent states no epsilon of its own: use check\(\.\.\., epsilon=1\)"),
        ("trace", "formula", "Lib's formula is a record or a setting, not code that could be run"),
        ("trace", "noisy", r"state the claimed epsilon: trace\(\.\.\., epsilon=1\)"),
        ("trace", "silent", r"give the inputs to run it on: pairs=\[\(X, Y\)\]"),
    ],
)
def test_what_is_missing_is_said(told: Any, command: str, name: str, said: str) -> None:
    error = told(command, name).exception
    assert isinstance(error, dpassay.InputError)
    assert re.search(said, str(error))


def test_the_command_line_speaks_of_its_own_options() -> None:
    assert as_options("use check(..., delta=1e-5), for") == "use --delta 1e-5, for"
    assert as_options("use trace(..., epsilon=1)") == "use --epsilon 1"


def test_two_ways_to_say_what_to_check_are_one_too_many(told: Any) -> None:
    error = told("check", "right", "--pipeline", "laplace(1)").exception
    assert isinstance(error, dpassay.InputError)
    assert "specify exactly one of" in str(error)


def test_a_trace_takes_the_object_itself() -> None:
    known = ReadObject("mine", PureDP(1), mechanism=lambda x, rng: x + rng.laplace(scale=0.5), pairs=((0.0, 1.0),))
    result = dpassay.trace(known)
    assert result.verdict.refuted
    assert (result.traced_epsilon.lower, result.verdict.source) == (pytest.approx(2), "stated by mine")
    assert dpassay.trace(known, epsilon=3).verdict.source.startswith("stated by the user, not by mine")


def test_an_assertion_takes_the_object_itself() -> None:
    known = ReadObject("mine", PureDP(1), mechanism=lambda x, n, rng: x + rng.laplace(0, 0.2, n), pairs=((0.0, 1.0),))
    with pytest.raises(AssertionError, match="the claim of 1-DP for mine is refuted"):
        dpassay.assert_dp(known)


def test_runs_test_what_zcdp_implies() -> None:
    """Bun and Steinke: ρ-zCDP implies (ρ + 2·sqrt(ρ·ln(1/δ)), δ)-DP."""
    known = ReadObject("mine", ZCDP("0.125"), mechanism=lambda x, n, rng: x + rng.normal(0, 2, n), pairs=((0.0, 1.0),))
    verdict = dpassay.audit(known, delta="1e-5", runs=500)
    assert verdict.guarantee.epsilon == pytest.approx(0.125 + 2 * math.sqrt(0.125 * math.log(1e5)), abs=1e-8)
    assert verdict.source == "stated by mine, 0.125-zCDP"
    assert dpassay.audit(known, runs=500).guarantee.delta == 1e-6
    with pytest.raises(dpassay.InputError, match="implies no epsilon at delta 0"):
        dpassay.audit(known, delta=0, runs=500)


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("opendp.mod", "Measurement"),
        ("dp_accounting.dp_event", "DpEvent GaussianDpEvent"),
        ("opacus.accountants", "IAccountant RDPAccountant"),
    ],
)
def test_an_object_of_an_unknown_version_gets_a_sentence(module: str, names: str) -> None:
    with pytest.raises(dpassay.InputError, match="dpassay may not know this version"):
        dpassay.check(recorded(module, names), delta=1e-5)
