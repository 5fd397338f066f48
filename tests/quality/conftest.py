"""Traces of these tests make fewer replays and runs than usual where a claim stays open."""

import pytest


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpassay.trace.runner.SECONDS", 1.5)
    monkeypatch.setattr("dpassay.trace.runner.ENOUGH", 40)
    monkeypatch.setattr("dpassay.trace.runner.MOST_TRIALS", 60)


@pytest.fixture
def patient(short: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Time enough to count what is wrong, which ends as soon as it is decided."""
    monkeypatch.setattr("dpassay.trace.runner.SECONDS", 10.0)
