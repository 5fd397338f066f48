"""The network: its quick ways are the same as its plain ones, and its vectors stay in the ball."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="text systems need the extra: pip install 'dpassay[text]'")

from dpassay.text.models.autoencoder import Autoencoder, Shape, shifted  # noqa: E402
from dpassay.text.models.words import END, PAD, START, UNKNOWN  # noqa: E402


@pytest.fixture(scope="module")
def network() -> Autoencoder:
    torch.manual_seed(1)
    return Autoencoder(Shape(words=60, latent=8, hidden=16, embedding=12, clip=2.0, longest=10)).double().eval()


def rows(seed: int = 0, number: int = 30) -> np.ndarray:
    rng = np.random.default_rng(seed)
    table = np.full((number, 9), PAD)
    for row in table:
        length = rng.integers(0, 9)
        row[:length], row[length] = rng.integers(4, 60, length), END
    return table


def test_quick_reading_is_reading(network):
    numbers = rows()
    plain = network.encode(torch.from_numpy(numbers)).detach().numpy()
    assert np.allclose(network.vectors(numbers), plain, atol=1e-6)  # kept as float32
    assert (np.linalg.norm(plain, axis=1) <= 2.0 * (1 + 1e-12)).all()


def test_quick_writing_takes_the_likeliest_word_each_time(network):
    latents = torch.from_numpy(np.random.default_rng(1).normal(size=(40, 8)))
    written = network.write(latents)
    scores = network.logits(latents, shifted(written)).detach()
    scores[..., [PAD, START, UNKNOWN]] = -torch.inf
    ended = (written == END).cumsum(dim=1) - (written == END).int() > 0
    there = ~ended[:, : network.shape.longest]
    assert (scores.argmax(dim=2)[:, : network.shape.longest][there] == written[:, : network.shape.longest][there]).all()
    assert (written[ended] == END).all()
    assert not torch.isin(written, torch.tensor([PAD, START, UNKNOWN])).any()


def test_likelihoods_are_those_of_the_words(network):
    numbers = torch.from_numpy(rows(2, 5))
    latents = network.encode(numbers).detach()
    logs = torch.log_softmax(network.logits(latents, shifted(numbers)).detach(), dim=2)
    found = network.log_likelihood(latents, numbers).detach()
    for i, row in enumerate(numbers.tolist()):
        expected = sum(float(logs[i, t, word]) for t, word in enumerate(row) if word != PAD)
        assert float(found[i]) == pytest.approx(expected)


def test_the_writer_sees_no_more_than_the_ball(network):
    far = torch.tensor([[1e6, -1e6, 0.1, 0, 0, 0, 0, 0]]).double()
    seen = network.seen(far)
    assert float(seen.norm()) <= 8**0.5 * (1 + 1e-12)  # the ball, in units of clip / sqrt(dimension)
    assert float(seen[0, 0]) == -float(seen[0, 1])
    near = torch.full((1, 8), 0.1).double()
    assert torch.allclose(network.seen(near) * 2.0 / 8**0.5, near)


def test_weights_that_change_are_noticed(network):
    other = Autoencoder(network.shape).double()
    with pytest.raises(AssertionError, match="eval"):
        other.vectors(rows())
