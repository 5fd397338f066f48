"""A small autoencoder, taught for a few seconds, for all tests of the text systems."""

from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="text systems need the extra: pip install 'dpassay[text]'")

from dpassay.text.corpora.flights import flights  # noqa: E402
from dpassay.text.models.training import Plan  # noqa: E402
from dpassay.text.rewriters.adept import Model, train  # noqa: E402

SMALL = {"latent": 16, "hidden": 32, "embedding": 32}


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    """Two test processes on two cores: more threads would only wait for each other."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def texts() -> list[str]:
    return [utterance.text for utterance in flights(400) if len(utterance.text.split()) <= 9]


@pytest.fixture(scope="session")
def folder(texts: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("model") / "adept"
    train(texts, texts[:20], place, Plan(steps=200, batch=32, learning_rate=0.01), **SMALL)
    return place


@pytest.fixture
def model(folder: Path) -> Model:
    from dpassay.text.rewriters.adept import load

    return load(folder)
