"""How close texts are, by hand and by sacrebleu's own functions."""

import importlib
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="a language model needs torch: pip install 'dpassay[text]'")
sacrebleu = pytest.importorskip("sacrebleu", reason="BLEU is computed by sacrebleu: pip install 'dpassay[text]'")

from dpassay.errors import InputError  # noqa: E402
from dpassay.text import metrics  # noqa: E402

OLD = ["Show me flights to Rome", "the cheapest fare from Oslo please", "is there a meal"]
NEW = ["show me fares to rome", "the cheapest fare to bergen please", "a meal"]


def test_bleu_and_chrf_are_sacrebleu_s() -> None:
    lower = [text.lower() for text in OLD]
    assert metrics.bleu(NEW, OLD) == pytest.approx(sacrebleu.corpus_bleu(NEW, [lower], force=True).score)
    assert metrics.chrf(NEW, OLD) == pytest.approx(sacrebleu.corpus_chrf(NEW, [lower]).score)
    assert metrics.bleu(OLD, OLD) == metrics.chrf(OLD, OLD) == 100
    assert metrics.bleu([""] * 3, OLD) == metrics.chrf([""] * 3, OLD) == 0


def test_words_are_counted_by_hand() -> None:
    assert metrics.unchanged([*NEW[:2], "Is there  a meal"], OLD) == pytest.approx(1 / 3)
    assert metrics.words_kept(NEW, OLD) == pytest.approx((4 + 4 + 2) / 15)  # of 5, 6 and 4 words
    assert metrics.length(NEW, OLD) == pytest.approx((5 + 6 + 2) / 15)


def test_the_similarity_is_the_mean_cosine() -> None:
    vectors = {"east": [2.0, 0.0], "north": [0.0, 3.0], "north-east": [1.0, 1.0]}
    encoder: Any = SimpleNamespace(encode=lambda texts: np.array([vectors[text] for text in texts]))
    found = metrics.similarity(["east", "east", "east"], ["east", "north", "north-east"], encoder)
    assert found == pytest.approx((1 + 0 + math.sqrt(0.5)) / 3)


class Letters:
    """A language model of three tokens, b o e: after each token the next one has stated probabilities."""

    device = torch.device("cpu")
    bos_token_id, eos_token_id = 2, None  # begins a message of a chat, not a document

    def get_vocab(self) -> dict[str, int]:
        return {"<|endoftext|>": 0}

    table = torch.tensor([[0.5, 0.25, 0.25], [0.1, 0.7, 0.2], [0.3, 0.3, 0.4]])

    def encode(self, text: str, add_special_tokens: bool) -> list[int]:
        assert not add_special_tokens
        return ["boe".index(letter) for letter in text]

    def __call__(self, input_ids: Any, attention_mask: Any) -> Any:
        assert (attention_mask.sum(dim=1) >= 1).all()
        return SimpleNamespace(logits=self.table[input_ids].log())


def test_perplexity_is_that_of_all_words_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "language_model", lambda name: (Letters(), Letters()))
    monkeypatch.setattr(metrics, "BATCH", 2)
    # oo: .25 .7; e: .25; boe: .5 .25 .2, each after the start of a document; three words, and the empty text has none.
    total = -sum(math.log(p) for p in (0.25, 0.7, 0.25, 0.5, 0.25, 0.2))
    for texts in (["oo", "", "e", "boe"], ["boe", "e", "oo"]):
        assert metrics.perplexity(texts) == pytest.approx(math.exp(total / 3), rel=1e-6)
    assert metrics.perplexity(["", ""]) is None


def test_perplexity_does_not_fall_because_words_break_into_more_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "language_model", lambda name: (Letters(), Letters()))
    # The same first token; the second word goes on with a token of probability .7, and can only be less likely.
    assert (metrics.perplexity(["oo"]) or 0) > (metrics.perplexity(["o"]) or 0)


def test_without_sacrebleu_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    for metric in (metrics.bleu, metrics.chrf):
        with pytest.raises(InputError, match=r"pip install 'dpassay\[text\]'"):
            metric(NEW, OLD)
