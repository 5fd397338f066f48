"""What all tests of the text systems share; tests/unit/conftest.py trains the model."""

from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="text systems need the extra: pip install 'dpassay[text]'")

from dpassay.text.rewriters.vectors.adept import TrainedAutoencoder, load  # noqa: E402


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    """Two test processes on two cores: more threads would only wait for each other."""
    torch.set_num_threads(1)


@pytest.fixture
def model(folder: Path) -> TrainedAutoencoder:
    return load(folder)
