"""Traces of these tests make fewer replays and runs than usual where a claim stays open."""

import pytest


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpassay.trace.runner.SECONDS", 1.5)
    monkeypatch.setattr("dpassay.trace.runner.ENOUGH", 40)
    monkeypatch.setattr("dpassay.trace.runner.MOST_TRIALS", 60)
