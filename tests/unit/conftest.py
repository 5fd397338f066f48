"""A small autoencoder, trained for a few seconds, for the tests of text systems; a browser; the command line."""

import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

SMALL = {"latent": 16, "hidden": 32, "embedding": 32}
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
]

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def short_traces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Traces make fewer replays than usual; their time is longer, since a copy of a large process takes a while."""
    monkeypatch.setattr("dpassay.trace.runner.SECONDS", 5.0)
    monkeypatch.setattr("dpassay.trace.runner.COUNTING", 5.0)
    monkeypatch.setattr("dpassay.trace.hostile.SECONDS", 4.0)
    monkeypatch.setattr("dpassay.trace.runner.ENOUGH", 40)
    monkeypatch.setattr("dpassay.trace.runner.MOST_TRIALS", 60)


# Of a module, not of the session: while it is open, an event loop runs in this process.
@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("no browser: install Debian's package chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def texts() -> list[str]:
    from dpassay.text.corpora.flights import flights

    return [utterance.text for utterance in flights(400) if len(utterance.text.split()) <= 9]


@pytest.fixture(scope="session")
def folder(texts: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch = pytest.importorskip("torch", reason="text systems need the extra: pip install 'dpassay[text]'")
    torch.set_num_threads(1)  # two test processes on two cores: more threads would only wait for each other
    from dpassay.text.models.training import EpochPlan
    from dpassay.text.rewriters.vectors.adept import train

    place = tmp_path_factory.mktemp("model") / "adept"
    train(texts, texts[:20], place, EpochPlan(steps=200, batch=32, learning_rate=0.01), **SMALL)
    return place


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Iterator[Call]:
    """The command line in this process: a function from the words after `dpassay` to exit code, stdout, stderr."""
    from dpassay.cli import common
    from dpassay.cli import main as cli

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
