"""DP-Prompt: the law of its tokens by enumeration, its likelihood, and its guarantee by formula."""

import itertools
import math
import pickle
from typing import Any

import numpy as np
import pytest

import dpassay
from dpassay import InputError

pytest.importorskip("transformers", reason="needs pip install 'dpassay[language-models]'")
torch = pytest.importorskip("torch")

import tiny_models  # noqa: E402
from dpassay.text.rewriters.base import PRETRAINED, TIMING, as_mechanism, released  # noqa: E402
from dpassay.text.rewriters.catalogue import Specification  # noqa: E402
from dpassay.text.rewriters.tokens import prompt  # noqa: E402
from dpassay.text.rewriters.tokens.drawing import DrawnText, seeded  # noqa: E402

SHORT = "say {text} again"
MODELS = {"gpt2": tiny_models.causal, "llama": tiny_models.llama, "bart": tiny_models.encoder_decoder}


def token_loss(width: float, temperature: float, size: int) -> float:
    """One token has the largest weight and the rest the smallest, or the other way round."""
    high = math.exp(width / temperature)
    return math.log((high / (high + size - 1)) / (1 / (1 + (size - 1) * high)))


def plain_softmax(model: Any, rows: list[int], low: float, high: float, temperature: float) -> np.ndarray:
    """By the model itself, without batches, caches or whole numbers."""
    with torch.no_grad():
        logits = model.network(input_ids=torch.tensor([rows])).logits[0, -1].double().numpy()
    raised = np.exp((np.clip(logits, low, high) - high) / temperature)
    return raised / raised.sum()


@pytest.mark.parametrize("kind", MODELS)
def test_the_guarantee_is_the_formula_and_that_of_the_exact_check(kind: str) -> None:
    model = MODELS[kind]()
    rewriter = prompt.make(60, model, tokens="5", low="-2", high="3", prompt=SHORT)
    loss = token_loss(5, rewriter.law.temperature, 16)
    assert 5 * loss == pytest.approx(60, rel=1e-12)
    assert rewriter.guarantee.epsilon == pytest.approx(5 * loss, rel=1e-12)
    assert rewriter.guarantee.epsilon <= 60
    assert rewriter.guarantee.neighbours.kind == "any"
    assert rewriter.guarantee.caveats == (PRETRAINED, TIMING)
    verdict = rewriter.exact()
    assert isinstance(verdict, dpassay.Proven)
    assert verdict.epsilon.lower == pytest.approx(60, rel=1e-9)


@pytest.mark.parametrize("kind", MODELS)
def test_the_likelihood_for_several_texts_is_that_for_each(kind: str) -> None:
    rewriter = prompt.make(60, MODELS[kind](), tokens="5", prompt=SHORT, batch="2")
    texts = ["show me flights", "rome", "show me flights to rome please"]  # of different lengths: padded to the longest
    output = rewriter.rewrite(texts[:1], np.random.default_rng(1))[0]
    alone = [rewriter.log_prob(output, text) for text in texts]
    assert rewriter.log_probs(output, texts) == pytest.approx(alone, abs=1e-4)
    assert len({round(number, 3) for number in alone}) == 3


def test_the_first_token_has_the_law_of_the_clipped_softmax() -> None:
    model = tiny_models.causal()
    rewriter = prompt.make(4, model, tokens="1", low="-1", high="1", prompt="{text}")
    text = "show me flights"
    rows = model.tokenizer(text)["input_ids"]
    expected = plain_softmax(model, rows, -1, 1, rewriter.law.temperature)
    assert expected.max() / expected.min() > 2  # it is visibly not uniform
    for token in range(16):
        assert rewriter.log_prob(DrawnText("", (token,)), text) == pytest.approx(math.log(expected[token]), abs=1e-6)
    drawn = rewriter.sampled([text] * 4000, seeded(np.random.default_rng(5)))
    counts = np.bincount([text.tokens[0] for text, _ in drawn], minlength=16)
    chi_square = ((counts - 4000 * expected) ** 2 / (4000 * expected)).sum()
    assert chi_square < 59.0  # 15 degrees of freedom: exceeded with probability 4e-7


@pytest.mark.parametrize("kind", MODELS)
def test_the_likelihood_is_that_of_what_was_drawn(kind: str) -> None:
    model = MODELS[kind]()
    rewriter = prompt.make(100, model, tokens="6", prompt=SHORT, batch="3")
    texts = ["show me", "flights from boston to rome in the morning", "", "please", "to rome"]
    for text, (written, chance) in zip(texts, rewriter.sampled(texts, seeded(np.random.default_rng(1))), strict=True):
        assert rewriter.log_prob(written, text) == pytest.approx(chance, abs=2e-4)
        assert written.tokens[-1] == tiny_models.END or len(written.tokens) == 6
        assert tiny_models.END not in written.tokens[:-1]


def test_the_likelihood_is_the_product_of_plain_softmaxes() -> None:
    model = tiny_models.causal()
    rewriter = prompt.make(20, model, tokens="3", low="-1", high="1", prompt="{text}")
    prefix, tokens = model.tokenizer("flights to rome")["input_ids"], (7, 9, tiny_models.END)
    expected = 0.0
    for token in tokens:
        expected += math.log(plain_softmax(model, prefix, -1, 1, rewriter.law.temperature)[token])
        prefix = [*prefix, token]
    assert rewriter.log_prob(DrawnText("", tokens), "flights to rome") == pytest.approx(expected, abs=1e-6)


def test_the_probabilities_of_all_outputs_add_up_to_one() -> None:
    model = tiny_models.causal(words=["a"])
    rewriter = prompt.make(30, model, tokens="3", prompt=SHORT)
    size = rewriter.law.size
    total, end = 0.0, tiny_models.END
    others = [token for token in range(size) if token != end]
    outputs = [(*first, end) for n in (0, 1, 2) for first in itertools.product(others, repeat=n)]
    outputs += list(itertools.product(others, repeat=3))
    for tokens in outputs:
        total += math.exp(rewriter.log_prob(DrawnText("", tokens), "a a"))
    assert total == pytest.approx(1, abs=1e-6)
    assert rewriter.log_prob(DrawnText("", (end, end)), "a a") == -math.inf
    assert rewriter.log_prob(DrawnText("", (others[0],)), "a a") == -math.inf
    assert rewriter.log_prob(DrawnText("", (others[0],) * 4), "a a") == -math.inf


@pytest.mark.parametrize("kind", MODELS)
def test_no_output_tells_two_texts_apart_beyond_the_guarantee(kind: str) -> None:
    model = MODELS[kind]()
    rewriter = prompt.make(3, model, tokens="2", prompt=SHORT)
    for tokens in itertools.product(range(2, 16, 3), range(16)):
        if tokens[0] != tiny_models.END:
            here, there = (rewriter.log_prob(DrawnText("", tokens), text) for text in ("show me", "rome rome please"))
            assert abs(here - there) <= 3


@pytest.mark.parametrize("kind", MODELS)
def test_batches_and_padding_change_no_more_than_the_last_digits(kind: str) -> None:
    model = MODELS[kind]()
    texts = ["show me", "flights from boston to rome in the morning please", "to", "rome in the morning"]
    together = prompt.make(100, model, tokens="4", prompt=SHORT, batch="4")
    alone = prompt.make(100, model, tokens="4", prompt=SHORT, batch="1")
    for apart in (False, True):
        first = together.sampled(texts, lambda limits: limits // 3, apart=apart)
        second = alone.sampled(texts, lambda limits: limits // 3)
        assert [text.tokens for text, _ in first] == [text.tokens for text, _ in second]
        assert [chance for _, chance in first] == pytest.approx([chance for _, chance in second], abs=2e-4)


def test_a_released_text_depends_on_no_other() -> None:
    model = tiny_models.llama()
    rewriter = prompt.make(100, model, tokens="4", prompt=SHORT, batch="3", longest="8")
    chances = [
        rewriter.sampled(["show me", *others], lambda limits: limits // 3, apart=True)[0]
        for others in ([], ["to"], ["flights from boston to rome in the morning", "rome"])
    ]
    assert len({(text.tokens, chance) for text, chance in chances}) == 1  # to the last digit


def test_prompts_read_one_by_one_have_the_logits_of_those_read_in_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    for make in (tiny_models.causal, tiny_models.llama):
        rewriter = prompt.make(100, make(), tokens="4", prompt="show me {text} please", longest="8")
        rows = [rewriter._prompt(text) for text in ("show me", "flights from boston to rome", "", "show me")]
        assert rewriter._alone is not None
        with torch.inference_mode():
            alone = rewriter._begun(rows, apart=True)
            monkeypatch.setitem(vars(rewriter), "_alone", None)
            table = rewriter._begun(rows, apart=True)
            for _ in range(3):
                torch.testing.assert_close(alone.logits, table.logits, atol=1e-4, rtol=1e-4)
                assert torch.equal(alone.mask, table.mask)
                tokens = table.logits.argmax(dim=1)
                alone.write(tokens)
                table.write(tokens)
    assert prompt.make(100, tiny_models.encoder_decoder(), tokens="4", prompt=SHORT)._alone is None
    assert prompt.make(100, tiny_models.causal(), tokens="4", prompt="{text}")._alone is None  # nothing in common


def test_the_same_generator_gives_the_same_texts_and_a_release_is_made() -> None:
    rewriter = prompt.make(50, tiny_models.causal(), tokens="4", prompt=SHORT)
    texts = ["show me flights", "to rome"]
    first, second = (rewriter.rewrite(texts, np.random.default_rng(3)) for _ in range(2))
    assert first == second
    found = released(rewriter, texts)
    assert all(isinstance(text, DrawnText) and len(text.tokens) <= 4 for text in found)
    mechanism = as_mechanism(rewriter)
    (drawn,) = mechanism.sample("to rome", 1, np.random.default_rng(0))
    assert math.isfinite(mechanism.log_prob(drawn, "to rome"))  # type: ignore[attr-defined]


def test_a_drawn_text_survives_another_process() -> None:
    text = pickle.loads(pickle.dumps(DrawnText("to rome", (4, 1))))
    assert text == "to rome"
    assert text.tokens == (4, 1)


def test_a_plain_text_is_split_by_the_tokenizer() -> None:
    rewriter = prompt.make(50, tiny_models.causal(), tokens="4", prompt=SHORT)
    tokens = (*rewriter.model.tokenizer("to rome")["input_ids"], tiny_models.END)
    assert rewriter.log_prob("to rome", "please") == rewriter.log_prob(DrawnText("to rome", tokens), "please")


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), -float("inf")])
def test_logits_that_are_no_numbers_keep_the_guarantee(wrong: float) -> None:
    rewriter = prompt.make(5, tiny_models.causal(), tokens="1", prompt=SHORT)
    logits = torch.zeros(1, 16)
    logits[0, 3] = wrong
    chances = rewriter.law.log_probs(logits)
    assert torch.isfinite(chances).all()
    assert chances.max() - chances.min() <= 20 / rewriter.law.temperature


def test_a_folder_is_loaded_when_a_text_is_rewritten(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tiny_models.saved(tiny_models.causal(seed=4), tmp_path)
    rewriter = Specification.read(f"dp-prompt,model={folder},tokens=4").at_true(40)
    assert 40 * (1 - 1e-9) <= rewriter.guarantee.epsilon <= 40
    assert "model" not in vars(rewriter)
    written = rewriter.rewrite(["show me flights"], np.random.default_rng(0))
    again = prompt.make(40, tiny_models.causal(seed=4), tokens="4").rewrite(
        ["show me flights"], np.random.default_rng(0)
    )
    assert written == again
    assert rewriter.statement()["model"]["sha256"] == rewriter.describe()["sha256"]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"tokens": "0"}, "tokens must be a whole number"),
        ({"tokens": "2.5"}, "tokens must be a whole number"),
        ({"low": "-1"}, "give one of the two"),
        ({"low": "1", "high": "1"}, "high must be above low"),
        ({"width": "-3"}, "width must be a number"),
        ({"prompt": "no place"}, "has {text} once"),
        ({"prompt": "@nowhere.txt"}, "cannot be read"),
        ({"longest": "x"}, "longest must be a whole number"),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, str], said: str) -> None:
    with pytest.raises(InputError, match=said):
        prompt.make(50, tiny_models.causal(), **settings)


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), float("inf"), "x"])
def test_bad_epsilons_are_refused(epsilon: Any) -> None:
    with pytest.raises(InputError, match="epsilon must be a number"):
        prompt.make(epsilon, tiny_models.causal())


def test_a_masked_model_and_a_prompt_that_is_too_long_are_refused() -> None:
    with pytest.raises(InputError, match="is a masked model; this mechanism needs a causal or an encoder-decoder one"):
        prompt.make(50, tiny_models.masked())
    with pytest.raises(InputError, match="reads at most 64 tokens"):
        prompt.make(50, tiny_models.causal(), tokens="60").rewrite(["to"], np.random.default_rng(0))
    with pytest.raises(InputError, match="takes a text"):
        prompt.make(50, tiny_models.causal(), longest="4", tokens="4").rewrite([3], np.random.default_rng(0))  # type: ignore[list-item]
