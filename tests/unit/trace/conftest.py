"""Traces of these tests are short, also where a claim stays open."""

import pytest


@pytest.fixture(autouse=True)
def short(short_traces: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpassay.trace.runner.SECONDS", 3.0)
    monkeypatch.setattr("dpassay.trace.runner.COUNTING", 1.5)
    monkeypatch.setattr("dpassay.trace.hostile.SECONDS", 1.0)
