"""The command line in this process, which is faster than in one of its own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

import pytest

from dpassay.cli import common
from dpassay.cli import main as cli

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Iterator[Call]:
    """A function that takes the words after `dpassay`: exit code, stdout, stderr."""
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")

    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["dpassay", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        out, err = capfd.readouterr()
        return int(stopped.value.code or 0), out, err

    yield call
    common.be_quiet(False)
