"""A small autoencoder, trained for a few seconds, for the tests of text systems and of their commands."""

from pathlib import Path

import pytest

SMALL = {"latent": 16, "hidden": 32, "embedding": 32}


@pytest.fixture(scope="session")
def texts() -> list[str]:
    from dpassay.text.corpora.flights import flights

    return [utterance.text for utterance in flights(400) if len(utterance.text.split()) <= 9]


@pytest.fixture(scope="session")
def folder(texts: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch = pytest.importorskip("torch", reason="text systems need the extra: pip install 'dpassay[text]'")
    torch.set_num_threads(1)  # two test processes on two cores: more threads would only wait for each other
    from dpassay.text.models.training import Plan
    from dpassay.text.rewriters.adept import train

    place = tmp_path_factory.mktemp("model") / "adept"
    train(texts, texts[:20], place, Plan(steps=200, batch=32, learning_rate=0.01), **SMALL)
    return place
