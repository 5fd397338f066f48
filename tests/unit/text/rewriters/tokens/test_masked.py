"""DP-MLM: the law of its words by enumeration, its likelihood, and its guarantee by formula."""

import itertools
import math
from typing import Any

import numpy as np
import pytest

import dpassay
from dpassay import InputError

pytest.importorskip("transformers", reason="needs pip install 'dpassay[language-models]'")
torch = pytest.importorskip("torch")

import tiny_models  # noqa: E402
from dpassay.text.rewriters.base import PRETRAINED, TIMING, released  # noqa: E402
from dpassay.text.rewriters.catalogue import Specification  # noqa: E402
from dpassay.text.rewriters.tokens import masked  # noqa: E402

WORDS = tiny_models.WORDS


def plain_softmax(model: Any, words: list[str], place: int, low: float, high: float, temperature: float) -> np.ndarray:
    """Of the 11 words, by the model itself, from the text and the text with a word masked."""
    numbers = {word: len(tiny_models.SPECIAL) + i for i, word in enumerate(WORDS)}
    text = [numbers.get(word, tiny_models.UNKNOWN) for word in words]
    hidden = [*text[:place], tiny_models.MASK, *text[place + 1 :]]
    row = [tiny_models.START, *text, tiny_models.END, *hidden, tiny_models.END]
    with torch.no_grad():
        logits = model.network(input_ids=torch.tensor([row])).logits[0, len(text) + 2 + place, 5:].double().numpy()
    raised = np.exp((np.clip(logits, low, high) - high) / temperature)
    return raised / raised.sum()


def test_the_guarantee_is_that_of_all_words_and_of_the_exact_check() -> None:
    rewriter = masked.make(3, tiny_models.masked(), longest="4", low="-1", high="2")
    high = math.exp(3 / rewriter.law.temperature)
    assert math.log((high / (high + 10)) / (1 / (1 + 10 * high))) == pytest.approx(3, rel=1e-12)
    assert rewriter.guarantee.epsilon == pytest.approx(12, rel=1e-12)
    assert str(rewriter.guarantee).endswith("at most 4 words; the number of words is visible")
    assert rewriter.guarantee.caveats == (PRETRAINED, TIMING)
    verdict = rewriter.exact()
    assert isinstance(verdict, dpassay.Proven)
    assert verdict.epsilon.lower == pytest.approx(12, rel=1e-9)


def test_each_word_has_the_law_of_the_clipped_softmax() -> None:
    model, text = tiny_models.masked(), ["show", "me", "nonsense"]
    rewriter = masked.make(4, model, low="-1", high="1")
    for place in range(3):
        expected = plain_softmax(model, text, place, -1, 1, rewriter.law.temperature)
        others = [[w for i, w in enumerate(("to", "to", "to")) if i != place]] * len(WORDS)
        outputs = [[*other[:place], word, *other[place:]] for other, word in zip(others, WORDS, strict=True)]
        found = np.array([rewriter.log_prob(" ".join(output), " ".join(text)) for output in outputs])
        assert found - found[0] == pytest.approx(np.log(expected / expected[0]), abs=1e-6)
    drawn = rewriter.rewrite([" ".join(text)] * 2000, np.random.default_rng(7))
    counts = np.array([sum(text.split()[0] == word for text in drawn) for word in WORDS])
    expected = 2000 * plain_softmax(model, text, 0, -1, 1, rewriter.law.temperature)
    assert ((counts - expected) ** 2 / expected).sum() < 49.0  # 10 degrees of freedom: probability 4e-7


def test_the_probabilities_of_all_outputs_add_up_to_one() -> None:
    rewriter = masked.make(5, tiny_models.masked())
    pairs = itertools.product(WORDS, repeat=2)
    total = sum(math.exp(rewriter.log_prob(" ".join(pair), "to rome")) for pair in pairs)
    assert total == pytest.approx(1, abs=1e-6)
    assert rewriter.log_prob("to", "to rome") == -math.inf
    assert rewriter.log_prob("to <mask>", "to rome") == -math.inf


def test_no_output_tells_two_texts_apart_beyond_the_guarantee() -> None:
    rewriter = masked.make(1, tiny_models.masked(), longest="2")
    for pair in itertools.product(WORDS[::3], repeat=2):
        here, there = (rewriter.log_prob(" ".join(pair), text) for text in ("show me", "rome please"))
        assert abs(here - there) <= 2


def test_batches_and_padding_change_nothing_and_words_keep_their_number() -> None:
    model, texts = tiny_models.masked(), ["show me flights", "", "to", "rome in the morning please"]
    rows = []
    for batch, apart in (("1", False), ("3", False), ("8", True)):
        rewriter = masked.make(30, model, batch=batch)
        rows.append(rewriter._drawn(texts, lambda limits: limits // 3, apart))
    assert rows[0] == rows[1] == rows[2]
    assert [len(row.split()) for row in rows[0]] == [3, 0, 1, 5]


def test_a_long_text_is_cut_and_one_that_does_not_fit_is_read_around_its_mask() -> None:
    rewriter = masked.make(30, tiny_models.masked(), longest="40")
    (written,) = released(rewriter, [" ".join(["rome"] * 200)])
    assert len(written.split()) == 40
    row = rewriter._masked(["rome"] * 40, 39)
    assert len(row) <= 64
    assert row[-2:] == [tiny_models.MASK, tiny_models.END]


def test_a_folder_is_loaded_when_a_text_is_rewritten(tmp_path: Any) -> None:
    folder = tiny_models.saved(tiny_models.masked(seed=2), tmp_path)
    rewriter = Specification.read(f"dp-mlm,model={folder},longest=5").at_true(10)
    assert 10 * (1 - 1e-9) <= rewriter.guarantee.epsilon <= 10
    assert "model" not in vars(rewriter)
    assert len(rewriter.rewrite(["to rome"], np.random.default_rng(0))[0].split()) == 2
    assert rewriter.statement()["model"]["sha256"] == rewriter.describe()["sha256"]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("tokens", "kept"),
    [
        (["<pad>", "<mask>", "fly", "##ing", "to"], ["fly", "to"]),
        (["<pad>", "<mask>", "Ġfly", "ing", "Ġto", "Ġ"], ["fly", "to"]),
        (["<pad>", "<mask>", "▁fly", "ing", "▁to", "[unused1]"], ["fly", "to"]),
    ],
)
def test_only_whole_words_can_be_drawn(tokens: list[str], kept: list[str]) -> None:
    class Reader:
        mask_token_id, all_special_ids = 1, (0, 1)

        def get_vocab(self) -> dict[str, int]:
            return {token: i for i, token in enumerate(tokens)}

        def convert_tokens_to_string(self, given: list[str]) -> str:
            return "".join(given).replace("Ġ", " ").replace("▁", " ")

    assert list(masked.words_of(Reader(), 10).values()) == kept


def test_other_models_are_refused() -> None:
    with pytest.raises(InputError, match="is a causal model; this mechanism needs a masked one"):
        masked.make(1, tiny_models.causal())
    with pytest.raises(InputError, match="longest must be"):
        masked.make(1, tiny_models.masked(), longest="0")
