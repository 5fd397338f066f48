"""Fine-tuning an encoder on noisy vectors: it learns, it is saved and comes back, and what does not fit is refused."""

import json

import numpy as np
import pytest

from dpassay import InputError
from dpassay.pipeline.distributions import Laplace
from dpassay.text.corpora.utterance import Utterance
from dpassay.text.models.encoders import Remembering, SentenceEncoder

torch = pytest.importorskip("torch", reason="fine-tuning needs pip install 'dpassay[text]'")
pytest.importorskip("safetensors", reason="models are kept as safetensors: pip install 'dpassay[text]'")

from dpassay.pipeline.stages.bounds.scaling import MinMaxScale  # noqa: E402
from dpassay.text.models.classifier import fit  # noqa: E402
from dpassay.text.models.fine_tuning import fine_tuned, scaled_rows  # noqa: E402
from dpassay.text.rewriters.vectors import dpnr  # noqa: E402

WORDS = "abcdefghijklmnop"  # one for each text; every other one has the first label
TEXTS = list(WORDS)
LABELS = ["first" if i % 2 else "second" for i in range(len(WORDS))]


class Tiny(torch.nn.Module):
    """What is used of a sentence-transformers model: the mean of the vectors of letters, of three elements."""

    def __init__(self, seed=0, width=3):
        super().__init__()
        start = torch.Generator().manual_seed(seed)
        self.letters = torch.nn.Parameter(torch.randn(len(WORDS), width, generator=start))

    def get_embedding_dimension(self):
        return self.letters.shape[1]

    def preprocess(self, texts):
        return {"counts": torch.tensor([[float(text.count(word)) for word in WORDS] for text in texts])}

    def forward(self, features):
        return {"sentence_embedding": features["counts"] @ self.letters}

    @torch.no_grad()
    def encode(self, texts, **options):
        return self(self.preprocess(texts))["sentence_embedding"].numpy()


def accuracy(encoder):
    """Of a linear classifier on the scaled vectors."""
    rows = MinMaxScale().run(encoder.encode(TEXTS), np.random.default_rng(0))
    return fit(rows, LABELS).accuracy(rows, LABELS)


def test_rows_are_scaled_as_the_system_scales_them():
    rows = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
    rows[2] = 0.5
    expected = MinMaxScale().run(rows, np.random.default_rng(0))
    assert scaled_rows(torch.from_numpy(rows)).numpy() == pytest.approx(expected, abs=1e-6)


def test_an_encoder_learns_what_a_frozen_one_does_not_tell():
    """Sixteen random vectors in the plane of scaled rows are not separable by a line; trained ones are."""
    frozen = SentenceEncoder("tiny", Tiny())
    before = frozen.encode(TEXTS)
    options = {"mu": 0, "noise": Laplace("0.02"), "rate": 0.05, "seed": 1}
    tuned = fine_tuned(frozen, TEXTS, LABELS, steps=150, **options)
    assert accuracy(frozen) < 0.9
    assert accuracy(tuned) == 1.0
    assert np.array_equal(SentenceEncoder("tiny", frozen.model).encode(TEXTS), before)  # a copy was trained
    state = torch.get_rng_state()
    again = fine_tuned(frozen, TEXTS, LABELS, steps=150, **options)
    assert np.array_equal(again.encode(TEXTS), tuned.encode(TEXTS))
    assert torch.equal(torch.get_rng_state(), state)


@pytest.fixture
def trained():
    said = [Utterance(text, label) for text, label in zip(TEXTS * 3, LABELS * 3, strict=True)]
    return dpnr.train(said, SentenceEncoder("tiny", Tiny()), epsilon=50, mu=0.1, fine_tune=4)


def test_a_fine_tuned_system_comes_back(trained, tmp_path, monkeypatch):
    system, classifier, report = trained
    assert report["fine_tuning_steps"] == 4
    assert not np.array_equal(system.encoder.encode(TEXTS), SentenceEncoder("tiny", Tiny()).encode(TEXTS))
    dpnr.save(system, classifier, tmp_path / "model", fine_tuned=True)
    monkeypatch.setattr(dpnr, "sentence_encoder", lambda name: SentenceEncoder(name, Tiny(seed=5)))
    again, _ = dpnr.load(tmp_path / "model")
    assert np.array_equal(again.encoder.encode(TEXTS), system.encoder.encode(TEXTS))
    assert json.loads((tmp_path / "model" / "model.json").read_text())["fine_tuned"] is True
    assert sorted(path.name for path in (tmp_path / "model").iterdir()) == ["model.json", "weights.safetensors"]


def test_weights_that_do_not_fit_are_refused(trained, tmp_path):
    system, classifier, _ = trained
    dpnr.save(system, classifier, tmp_path / "plain")
    path = tmp_path / "plain" / "model.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "fine_tuned": True}))
    with pytest.raises(InputError, match="does not fit the encoder tiny: see letters; train it again"):
        dpnr.load(tmp_path / "plain", SentenceEncoder("tiny", Tiny()))
    system.encoder.model.letters.data[0, 0] = torch.nan
    dpnr.save(system, classifier, tmp_path / "lost", fine_tuned=True)
    with pytest.raises(InputError, match="not all finite numbers: see letters"):
        dpnr.load(tmp_path / "lost", SentenceEncoder("tiny", Tiny()))


def test_what_cannot_be_fine_tuned_is_said():
    said = [Utterance(text, label) for text, label in zip(TEXTS, LABELS, strict=True)]
    fixed = Remembering("fixed", 3, lambda texts: np.zeros((len(texts), 3)))
    with pytest.raises(InputError, match="fixed cannot be fine-tuned: give a sentence-transformers model"):
        dpnr.train(said, fixed, epsilon=1, fine_tune=1)
    with pytest.raises(InputError, match="whole number of steps from 0"):
        dpnr.train(said, fixed, epsilon=1, fine_tune=-1)
