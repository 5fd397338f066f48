"""Traces in real pytest sessions: the failure names the line, the mark gives defaults, and the summary counts them."""

import warnings
from typing import Any

import numpy as np
import pytest

from dpassay import assert_dp, assert_trace
from dpassay.errors import InputError
from dpassay.testing import assertion as auditing
from dpassay.testing import trace_assertion as asserting
from dpassay.testing.assertion import AuditWarning, NotPrivate

pytestmark = pytest.mark.usefixtures("short_traces")
PLAIN = ["--strict-markers", "-W", "default", "-p", "no:cacheprovider", "-p", "no:hypothesispytest"]
PAIRS = [((1.0, 0.0), (0.0, 1.0))]
CODE = """
import numpy as np
import pytest

def bounded(x):
    return np.clip(np.nan_to_num(x), -1.0, 1.0)

def shared(x, rng):
    return bounded(x) + rng.laplace(scale=2.0)  # one number

def right(x, rng):
    return bounded(x) + rng.laplace(scale=2.0, size=2)

PAIRS = [((1.0, 0.0), (0.0, 1.0))]
"""


def bounded(x: Any) -> Any:
    return np.clip(np.nan_to_num(x), -1.0, 1.0)


def shared(x: Any, rng: Any) -> Any:
    return bounded(x) + rng.laplace(scale=2.0)  # one number for both


def right(x: Any, rng: Any) -> Any:
    return bounded(x) + rng.laplace(scale=2.0, size=2)


def lets_nan_through(x: Any, rng: Any) -> Any:
    return np.clip(x, -1.0, 1.0) + rng.laplace(scale=4.0, size=2)


@pytest.fixture(scope="module", autouse=True)
def _warm() -> None:
    """Imports what traces and audits import: pytester forgets modules that are first imported in its own sessions."""
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        patch.setattr(asserting, "RUNNING", [])
        patch.setattr(auditing, "RUNNING", [])
        warnings.simplefilter("ignore", AuditWarning)
        assert_trace(right, pairs=PAIRS, epsilon=1)
        assert_dp(right, PAIRS, epsilon=1.5, runs=500)


@pytest.fixture
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """As outside pytest: without a budget."""
    monkeypatch.setattr(asserting, "RUNNING", [])


@pytest.mark.usefixtures("_alone")
def test_a_failure_names_the_line_and_shows_it() -> None:
    with pytest.raises(NotPrivate) as failed:
        assert_trace(shared, pairs=PAIRS, epsilon=1)
    line = shared.__code__.co_firstlineno + 1
    said = str(failed.value).splitlines()
    assert said[0] == "the claim of 1-DP for shared is refuted"
    assert said[1].strip().startswith("reason ")
    assert (
        said[1]
        .split(maxsplit=1)[1]
        .startswith(
            f"test_trace_assertion.py:{line} adds one Laplace number of scale 2 to 2 coordinates: "
            "their differences are released exactly (ε = ∞); counted: "
        )
    )
    assert f"> {line}     return bounded(x) + rng.laplace(scale=2.0)  # one number for both" in str(failed.value)
    assert any(one.startswith("  rule     shared-noise: one random number") for one in said)
    assert said[-1] == "  replay   call assert_trace again with seed=0"
    assert failed.value.verdict.refuted


@pytest.mark.usefixtures("_alone")
def test_right_code_passes_and_hostile_inputs_warn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert assert_trace(right, pairs=PAIRS, epsilon=1).verdict.open
        assert assert_trace(lets_nan_through, pairs=PAIRS, epsilon=1, hostile=False).verdict.open
    with pytest.warns(AuditWarning, match="lets_nan_through: NaN in the input produces NaN in 1 coordinate"):
        assert_trace(lets_nan_through, pairs=PAIRS, epsilon=1)
    with pytest.raises(NotPrivate, match="NaN in the input produces NaN in 1 coordinate"):
        assert_trace(lets_nan_through, pairs=PAIRS, epsilon=1, neighbours="any")


@pytest.mark.usefixtures("_alone")
def test_what_is_claimed_must_be_said() -> None:
    with pytest.raises(InputError, match="state the claimed epsilon"):
        assert_trace(right, pairs=PAIRS)


def test_in_a_session(pytester: pytest.Pytester) -> None:
    tests = """
@pytest.mark.dp(epsilon=1, pairs=PAIRS, runs=500)
def test_right(dp_trace):
    dp_trace(right)

@pytest.mark.dp(epsilon=1, pairs=PAIRS)
def test_wrong(dp_trace):
    dp_trace(shared)

@pytest.mark.dp(epsilon=1)
def test_nothing(dp_trace):
    pass
"""
    pytester.makepyfile(test_release=CODE + tests)
    run = pytester.runpytest(*PLAIN)
    run.assert_outcomes(passed=1, failed=2)
    run.stdout.fnmatch_lines(
        [
            "E *NotPrivate: the claim of 1-DP for shared is refuted",
            "E *reason   test_release.py:8 adds one Laplace number of scale 2 to 2 coordinates: *",
            "E *> 8     return bounded(x) + rng.laplace(scale=2.0)  # one number",
            "E *replay   pytest test_release.py::test_wrong *",
            "*marked dp but audited nothing*",
            "dp: 2 traces in 2 tests, 1 refuted; a correct mechanism fails with probability at most 0.004 in all *",
        ]
    )


def test_a_trace_takes_nothing_from_the_audits_of_its_test(pytester: pytest.Pytester) -> None:
    tests = """
@pytest.mark.dp(epsilon=1.5, pairs=PAIRS)
def test_both(dp, dp_trace):
    first = dp_trace(right)
    verdict = dp(right, runs=500)
    assert verdict.alpha == 6e-05
    assert dp_trace(right).verdict.seed != first.verdict.seed
"""
    pytester.makepyfile(test_release=CODE + tests)
    run = pytester.runpytest(*PLAIN)
    run.assert_outcomes(passed=1, warnings=0)
    run.stdout.fnmatch_lines(["dp: 1 audit and 2 traces in 1 test, 0 refuted; * at most 0.0041 in all (seed 0)"])


def test_more_time_makes_more_runs() -> None:
    def right(x: float, rng: np.random.Generator) -> float:
        return x + rng.laplace(scale=1)

    short, long = (assert_trace(right, pairs=[(0.0, 1.0)], epsilon=1, hostile=False, time=time) for time in (0.3, "2s"))
    assert short.runs < long.runs
    with pytest.raises(InputError, match="soon"):
        assert_trace(right, pairs=[(0.0, 1.0)], epsilon=1, time="soon")
