"""The pytest plugin: one error probability for the whole session, split over its tests before they run.

Every worker of pytest-xdist collects the same tests and so computes the same split. The audits' results are sent with
the tests' reports and summed where the summary is printed. Nothing heavy is imported until a test audits something.
"""

from __future__ import annotations

import argparse
import math
import os
import shlex
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

import pytest

from dpassay.testing.assertion import ALPHA, RUNNING, RUNS, SEED, AlphaShares, assert_dp, merged, two_digits
from dpassay.testing.trace_assertion import assert_trace

if TYPE_CHECKING:
    from dpassay.evidence.verdict import Verdict
    from dpassay.trace.result import TraceResult

RESERVE = 0.1  # of the error probability, for tests that have neither the mark nor the fixture
BUDGET = pytest.StashKey[AlphaShares]()
PLACE = pytest.StashKey[str]()
MARK = (
    "dp(epsilon=..., delta=..., pairs=..., ...): the test audits or traces a mechanism; "
    "dp(...) and dp_trace(...) take these as defaults"
)


def split(total: float, audited: int, others: int) -> tuple[float, float]:
    """The share of each test that has the mark or the fixture, and of each other test.

    >>> split(1e-4, 3, 0), split(1e-4, 3, 2), split(1e-4, 0, 2)
    ((3.3e-05, 0.0), (3e-05, 5e-06), (0.0, 5e-05))
    """
    reserve = RESERVE if audited and others else float(others > 0)
    first = two_digits((1 - reserve) * total / audited) if audited else 0.0
    return first, two_digits(reserve * total / others) if others else 0.0


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("dpassay", "differential privacy (dpassay)")
    group.addoption(
        "--dp-alpha",
        type=_alpha,
        default=ALPHA,
        metavar="P",
        help="error probability of all audits of the session together (default: 0.0001)",
    )
    group.addoption(
        "--dp-seed", type=_whole(0), default=SEED, metavar="N", help="seed of all audits of the session (default: 0)"
    )
    group.addoption(
        "--dp-runs", type=_whole(1), default=RUNS, metavar="N", help="runs of an audit that names none (default: 20000)"
    )


def _alpha(text: str) -> float:
    value = float(text)
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"it must lie strictly between 0 and 1, got {text}")
    return value


def _whole(least: int) -> Callable[[str], int]:
    def whole(text: str) -> int:
        value = int(text)
        if value < least:
            raise argparse.ArgumentTypeError(f"it must be a whole number, {least} or more, got {text}")
        return value

    return whole


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark, and the object that records this session's audits."""
    config.addinivalue_line("markers", MARK)
    config.pluginmanager.register(Session(config), "dpassay-session")


@pytest.fixture
def dp() -> Callable[..., Verdict]:
    """dpassay.assert_dp: dp(mechanism, pairs, epsilon=1) fails the test if the claim is refuted.

    What the test's mark @pytest.mark.dp(...) says need not be said again.
    """
    return assert_dp


@pytest.fixture
def dp_trace() -> Callable[..., TraceResult]:
    """dpassay.assert_trace: dp_trace(code, pairs=[(x, y)], epsilon=1) fails the test if its noise is too small.

    What the test's mark @pytest.mark.dp(...) says need not be said again.
    """
    return assert_trace


def pytest_itemcollected(item: pytest.Item) -> None:
    """Store the test's name as collected: pytest-xdist may add a group to it."""
    item.stash[PLACE] = item.nodeid


class Session:
    """One session's audits: each test's share, and the totals of their results."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.total: float = config.getoption("--dp-alpha")
        self.shares = (0.0, 0.0)
        self.audits = self.traces = self.tests = self.refuted = 0
        self.own: list[float] = []

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Split the error probability over the tests that were selected."""
        audited = sum(_audits(item) for item in session.items)
        self.shares = split(self.total, audited, len(session.items) - audited)

    def _budget(self, item: pytest.Item) -> AlphaShares:
        nodeid = item.stash.get(PLACE, item.nodeid)
        share = self.shares[0] if _audits(item) else self.shares[1]
        seed, runs = self.config.getoption("--dp-seed"), self.config.getoption("--dp-runs")
        path, colons, name = nodeid.partition("::")
        where = os.path.relpath(self.config.rootpath / path, self.config.invocation_params.dir) + colons + name
        # Alone in a session the test gets all of --dp-alpha, which is why its share is given there.
        replay = f"pytest {shlex.quote(where)} --dp-alpha={share!r} --dp-seed={seed} --dp-runs={runs}"
        # The stream's name omits the folder, which depends on the root and so on how pytest was called.
        place = path.rpartition("/")[2] + colons + name
        defaults: dict[str, Any] = {}
        for mark in reversed(list(item.iter_markers("dp"))):
            defaults = merged(defaults, mark.kwargs)
        return AlphaShares(share, seed, runs, place, replay, defaults)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """While a test runs, audits take from its budget. If it is run again, it continues with the rest."""
        if BUDGET not in item.stash:
            item.stash[BUDGET] = self._budget(item)
        RUNNING.append(item.stash[BUDGET])
        try:
            return (yield)
        finally:
            RUNNING.pop()

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Refuse a mark that cannot be understood."""
        if any(mark.args for mark in item.iter_markers("dp")):
            pytest.fail("the mark dp takes arguments by name only: @pytest.mark.dp(epsilon=1)", pytrace=False)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """A test that is marked for an audit and makes none has tested nothing."""
        result = yield
        budget = item.stash[BUDGET]
        if item.get_closest_marker("dp") and not (budget.found or budget.traces):
            said = "marked dp but audited nothing: call dp(mechanism, ...) or dp_trace(code, ...) in the test"
            pytest.fail(said, pytrace=False)
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Attach the results to the test's last report."""
        report = yield
        if call.when == "teardown":
            for name, found in _named(item.stash[BUDGET]):
                vars(report)[name] = [list(entry) for entry in found]
                found.clear()
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Sum the results; with pytest-xdist this happens where the summary is printed."""
        audits, traces = (getattr(report, name, []) for name in ("dp_audits", "dp_traces"))
        self.tests += bool(audits or traces)
        self.audits += len(audits)
        self.traces += len(traces)
        self.refuted += sum(refuted for refuted, _ in [*audits, *traces])
        self.own += [alpha for _, alpha in [*audits, *traces] if alpha]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Report what was audited and how often a correct mechanism fails."""
        if self.audits or self.traces:
            total = min(1.0, math.fsum([self.total if self.audits else 0.0, *self.own]))
            made = [(self.audits, "audit")] * bool(self.audits) + [(self.traces, "trace")] * bool(self.traces)
            terminalreporter.write_line(
                f"dp: {' and '.join(_count(*one) for one in made)} in {_count(self.tests, 'test')}, "
                f"{self.refuted} refuted; "
                f"a correct mechanism fails with probability at most {total:g} in all "
                f"(seed {self.config.getoption('--dp-seed')})"
            )


def _named(budget: AlphaShares) -> tuple[tuple[str, list[tuple[bool, float]]], ...]:
    """What a report carries, by its name there."""
    return ("dp_audits", budget.found), ("dp_traces", budget.traces)


def _audits(item: pytest.Item) -> bool:
    return item.get_closest_marker("dp") is not None or "dp" in getattr(item, "fixturenames", ())


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
