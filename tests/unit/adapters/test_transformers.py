"""Generation by transformers: the exact loss of a token by its formula, and a small model that is run."""

import copy
import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

import dpassay
from dpassay.adapters import adapted

transformers = pytest.importorskip("transformers", reason="needs transformers, the extra `encoders`")
torch = pytest.importorskip("torch")


class ClampLogits(transformers.LogitsProcessor):  # type: ignore[misc, name-defined]
    def __init__(self, low: float, high: float) -> None:
        self.low, self.high = low, high

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        return scores.clamp(self.low, self.high)


class ClipSoftly(transformers.LogitsProcessor):  # type: ignore[misc, name-defined]
    def __call__(self, input_ids: Any, scores: Any) -> Any:
        return 5 * torch.tanh(scores)


def token_loss(low: float, high: float, temperature: float, tokens: int) -> float:
    """One token has the high logit and the rest the low one, or the other way round."""
    width = (high - low) / temperature
    likely = 1 / (1 + (tokens - 1) * math.exp(-width))
    unlikely = math.exp(-width) / (math.exp(-width) + tokens - 1)
    return math.log(likely / unlikely)


@pytest.fixture(scope="module")
def model() -> Any:
    torch.manual_seed(0)
    config = transformers.GPT2Config(vocab_size=7, n_positions=16, n_embd=8, n_layer=1, n_head=1)
    made = transformers.GPT2LMHeadModel(config).eval()
    made.generation_config.pad_token_id = 0
    made.generation_config.eos_token_id = None
    return made


def decided(group: int) -> Any:
    """A model without attention whose logits for a prompt that ends in i are far above 1 for i, i + 1, … alone."""
    made = transformers.GPT2LMHeadModel(
        transformers.GPT2Config(vocab_size=7, n_positions=16, n_embd=8, n_layer=1, n_head=1, tie_word_embeddings=False)
    ).eval()
    made.generation_config.pad_token_id, made.generation_config.eos_token_id = 0, None
    with torch.no_grad():
        for parameter in made.transformer.h.parameters():
            parameter.zero_()
        made.transformer.wpe.weight.zero_()
        made.transformer.wte.weight.copy_(50 * torch.eye(7, 8))
        members = [[float((j - i) % 7 < group) if i < 7 else 0.0 for i in range(8)] for j in range(7)]
        made.lm_head.weight.copy_(50 * torch.tensor(members))
    return made


def call(model: Any, **more: Any) -> Any:
    clamp = transformers.LogitsProcessorList([ClampLogits(-1.0, 1.0)])
    return partial(model.generate, logits_processor=clamp, do_sample=True, **{"top_k": 0, **more})


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_clamped_logits_lose_what_the_formula_says(temperature: float) -> None:
    processors = transformers.LogitsProcessorList(
        [ClampLogits(-3.0, 2.0), transformers.TemperatureLogitsWarper(temperature)]
    )
    verdict = dpassay.check(processors, epsilon=100, dim=50)
    assert verdict.epsilon.lower == pytest.approx(token_loss(-3, 2, temperature, 50), rel=1e-9)
    assert verdict.epsilon.upper == pytest.approx(token_loss(-3, 2, temperature, 50), rel=1e-9)


def test_what_comes_before_the_clamp_does_not_matter() -> None:
    before = [transformers.TemperatureLogitsWarper(0.1), transformers.TopKLogitsWarper(3), ClampLogits(-1.0, 1.0)]
    verdict = dpassay.check(transformers.LogitsProcessorList(before), epsilon=100, dim=9)
    assert verdict.epsilon.lower == pytest.approx(token_loss(-1, 1, 1, 9), rel=1e-9)


def test_a_call_of_generate_has_the_loss_of_all_its_tokens(model: Any) -> None:
    verdict = dpassay.check(call(model, temperature=2.0, max_new_tokens=3), epsilon=100)
    assert verdict.epsilon.upper == pytest.approx(3 * token_loss(-1, 1, 2, 7), rel=1e-9)
    assert str(verdict.mechanism) == "clamp(-1, 1) | softmax(2) | times(3)"


@pytest.mark.parametrize("settings", [{"do_sample": True, "temperature": 0.7, "top_p": 0.9}, {}, {"do_sample": False}])
def test_logits_that_nothing_bounds_have_no_finite_epsilon(settings: dict[str, Any], model: Any) -> None:
    config = transformers.GenerationConfig(**settings)
    verdict = dpassay.check(config, epsilon=50, delta=0.1, dim=100)
    assert verdict.refuted
    assert verdict.epsilon.lower == math.inf
    assert dpassay.check(model, epsilon=50).refuted  # greedy, and two prompts have different outputs
    judged = dpassay.check(partial(model.generate, generation_config=config), epsilon=50)
    assert judged.word == ("open" if settings.get("do_sample") else "refuted")  # its small weights bound its logits
    assert dpassay.check(partial(decided(1).generate, generation_config=config), epsilon=50).refuted


def test_the_loss_of_a_model_is_at_least_what_its_prompts_show(model: Any) -> None:
    """By enumeration: the largest ratio of the first token's probabilities over all prompts of one token."""
    with torch.no_grad():
        logs = model(torch.arange(7)[:, None]).logits[:, -1].log_softmax(-1)
    largest = float((logs[:, None] - logs[None]).max())
    for made in (partial(model.generate, do_sample=True, top_k=0), call(model, max_new_tokens=1)):
        for epsilon, word in ((largest / 2, "refuted"), (2 * largest, "open")):
            verdict = dpassay.check(made, epsilon=epsilon)
            assert verdict.word == word
            assert verdict.epsilon.lower == pytest.approx(largest, abs=2e-3)
            assert verdict.epsilon.lower <= largest < verdict.epsilon.upper


def test_the_delta_of_a_model_is_between_what_its_prompts_show_and_what_its_formula_allows(model: Any) -> None:
    """By enumeration of the first token. Between unclamped logits as large as one likes δ would be 1."""
    with torch.no_grad():
        chances = model(torch.arange(7)[:, None]).logits[:, -1].double().softmax(-1)
    for epsilon in (0.0, 0.05):
        shown = float((chances[:, None] - math.exp(epsilon) * chances[None]).clamp(min=0).sum(-1).max())
        made = partial(model.generate, do_sample=True, top_k=0)
        for delta, word in ((shown / 2, "refuted"), (2 * shown, "open")):
            verdict = dpassay.check(made, epsilon=epsilon, delta=delta)
            assert verdict.word == word
            if verdict.delta is not None:
                assert verdict.delta.lower == pytest.approx(shown, abs=2e-3)
                assert verdict.delta.lower <= shown <= verdict.delta.upper


def test_what_cannot_be_read_gets_a_sentence(model: Any) -> None:
    after = [ClampLogits(-1.0, 1.0), transformers.TopPLogitsWarper(0.9)]
    with pytest.raises(dpassay.InputError, match=r"top_p=0\.9 after a clamp has no exact analysis"):
        dpassay.check(transformers.LogitsProcessorList(after), epsilon=1, dim=9)
    with pytest.raises(dpassay.InputError, match="ClipSoftly does not clamp logits"):
        dpassay.check(transformers.LogitsProcessorList([ClipSoftly()]), epsilon=1, dim=9)
    with pytest.raises(dpassay.InputError, match="num_beams=1, num_return_sequences=1"):
        dpassay.check(transformers.GenerationConfig(num_beams=2, do_sample=True), epsilon=1, dim=9)
    with pytest.raises(dpassay.InputError, match="limit how many are generated, such as max_new_tokens=20"):
        dpassay.check(call(model), epsilon=1)
    with pytest.raises(dpassay.InputError, match="states no epsilon of its own"):
        dpassay.check(model)


def test_a_model_is_run_as_it_generates(model: Any) -> None:
    known = adapted(call(model, max_new_tokens=2))
    assert known is not None
    drawn = known.mechanism.sample([1, 2], 4000, np.random.default_rng(0))
    with torch.no_grad():
        logits = model(torch.tensor([[1, 2]])).logits[0, -1].clamp(-1, 1)
    often = np.bincount([row[0] for row in drawn], minlength=7) / 4000
    assert {len(row) for row in drawn} == {2}
    assert np.abs(often - logits.softmax(-1).numpy()).max() < 0.05  # Hoeffding and 7 tokens: 14·e^(-20) < 3e-8
    again = known.mechanism.sample([1, 2], 10, np.random.default_rng(5))
    assert again == known.mechanism.sample([1, 2], 10, np.random.default_rng(5))


def test_the_likelihoods_of_all_outputs_add_up_to_one(model: Any) -> None:
    known = adapted(call(model, temperature=0.5, max_new_tokens=2))
    assert known is not None
    with torch.no_grad():
        first = (model(torch.tensor([[3]])).logits[0, -1].clamp(-1, 1) / 0.5).log_softmax(-1)
        second = (model(torch.tensor([[3, 4]])).logits[0, -1].clamp(-1, 1) / 0.5).log_softmax(-1)
    assert known.mechanism.log_prob((4, 5), [3]) == pytest.approx(float(first[4] + second[5]), abs=1e-5)
    total = sum(math.exp(known.mechanism.log_prob((i, j), [3])) for i in range(7) for j in range(7))
    assert total == pytest.approx(1, abs=1e-5)


def test_what_follows_the_end_of_a_text_is_left_out(model: Any) -> None:
    ending = transformers.GenerationConfig(
        do_sample=True, top_k=0, max_new_tokens=4, eos_token_id=[0, 1, 2, 3, 4, 5], pad_token_id=0
    )
    known = adapted(partial(model.generate, generation_config=ending))
    assert known is not None
    drawn = known.mechanism.sample([1], 200, np.random.default_rng(0))
    assert all(set(row[:-1]) <= {6} for row in drawn)
    assert {len(row) for row in drawn} > {1}


def test_a_model_is_audited_as_it_generates(model: Any) -> None:
    greedy = partial(model.generate, max_new_tokens=3)
    first = [tuple(model.generate(torch.tensor([[i]]), max_new_tokens=3)[0, 1:].tolist()) for i in range(7)]
    other = next(i for i in range(7) if first[i] != first[0])
    assert dpassay.audit(greedy, [([0], [other])], epsilon=1, runs=400, until_refuted=True).refuted
    clamped = call(model, max_new_tokens=1)  # epsilon is at most that of the clamp
    assert dpassay.audit(clamped, [([0], [other])], epsilon=4, runs=400, alpha=1e-6).word == "open"


RATIO = math.exp(-2.0)  # of the probabilities of a token at −1 and one at 1, at temperature 1
LEAST = RATIO / (6 + RATIO)  # the least probability of one of 7 tokens
OTHERS = 6 * RATIO / (1 + 6 * RATIO)  # that of six tokens at −1 beside one at 1


@pytest.mark.parametrize(
    "setting",
    [
        {"top_k": 7},
        {"min_p": 0.9 * RATIO},
        {"top_p": 1 - 0.9 * LEAST},
        {"epsilon_cutoff": 0.9 * LEAST},
        {"repetition_penalty": 1.5},
    ],
    ids=lambda one: next(iter(one)),
)
def test_a_cut_that_can_leave_nothing_out_changes_nothing(model: Any, setting: dict[str, Any]) -> None:
    verdict = dpassay.check(call(model, **{"max_new_tokens": 1, **setting}), epsilon=100)
    assert verdict.epsilon.upper == pytest.approx(token_loss(-1, 1, 1, 7), rel=1e-9)


@pytest.mark.parametrize(
    "setting",
    [
        {"top_k": 3},
        {"min_p": 1.1 * RATIO},
        {"top_p": 1 - 1.1 * OTHERS},
        {"epsilon_cutoff": 1.1 * OTHERS / 6},
        {"temperature": 0.1, "top_p": 0.9},
    ],
    ids=lambda one: next(reversed(one)),
)
def test_a_cut_that_can_leave_one_token_alone_tells_inputs_apart(setting: dict[str, Any]) -> None:
    made = call(decided(setting.get("top_k", 1)), **{"max_new_tokens": 1, **setting})
    verdict = dpassay.check(made, epsilon=100, delta=0.9)
    assert (verdict.epsilon.lower, verdict.delta.lower) == (math.inf, 1)
    processors = adapted(made).mechanism.warpers  # type: ignore[union-attr]
    if "epsilon_cutoff" in setting:
        processors = (*processors, transformers.EpsilonLogitsWarper(setting["epsilon_cutoff"]))
    kept = []
    for favourites in (range(3), range(3, 6)) if "top_k" in setting else ([0], [1]):  # and the library agrees
        scores = torch.full((1, 7), -5.0)
        scores[0, list(favourites)] = 5.0
        for processor in processors:
            scores = processor(torch.zeros((1, 1), dtype=torch.long), scores)
        kept.append(set(torch.isfinite(scores[0]).nonzero().flatten().tolist()))
    assert not kept[0] & kept[1]


@pytest.mark.parametrize("setting", [{"top_k": 5}, {"typical_p": 0.9}, {"top_p": 1 - 2 * LEAST}])
def test_a_cut_in_between_has_no_exact_answer(model: Any, setting: dict[str, Any]) -> None:
    with pytest.raises(dpassay.InputError, match=f"{next(iter(setting))}=.* after a clamp has no exact analysis"):
        dpassay.check(call(model, **{"max_new_tokens": 1, **setting}), epsilon=1)


def test_a_stand_in_for_a_cut_is_named(model: Any) -> None:
    verdict = dpassay.check(call(model, max_new_tokens=1, min_p=0.5), epsilon=1)
    assert verdict.name == "transformers' generate, whose min_p=0.5 can leave a single token"


def test_a_penalty_behind_the_clamp_is_named() -> None:
    after = [ClampLogits(-1.0, 1.0), transformers.RepetitionPenaltyLogitsProcessor(1.5)]
    with pytest.raises(dpassay.InputError, match="RepetitionPenaltyLogitsProcessor after a clamp"):
        dpassay.check(transformers.LogitsProcessorList(after), epsilon=1, dim=9)


def test_beams_are_deterministic() -> None:
    clamp = transformers.LogitsProcessorList([ClampLogits(-1.0, 1.0)])
    beams = partial(decided(1).generate, logits_processor=clamp, num_beams=2, max_new_tokens=2)
    assert dpassay.check(beams, epsilon=50, delta=0.5).epsilon.lower == math.inf


@pytest.mark.parametrize("setting", [{"min_p": 0.6}, {"typical_p": 0.5}, {"repetition_penalty": 3.0}, {"top_p": 0.6}])
def test_the_likelihood_has_the_support_of_what_is_drawn(model: Any, setting: dict[str, Any]) -> None:
    known = adapted(
        partial(model.generate, do_sample=True, temperature=0.05, **{"top_k": 0, "max_new_tokens": 1, **setting})
    )
    assert known is not None
    chances = [math.exp(known.mechanism.log_prob((i,), [3])) for i in range(7)]
    assert sum(chances) == pytest.approx(1, abs=1e-5)
    drawn = np.bincount([row[0] for row in known.mechanism.sample([3], 4000, np.random.default_rng(0))], minlength=7)
    assert np.abs(drawn / 4000 - chances).max() < 0.05  # Hoeffding and 7 tokens: 14·e^(-20) < 3e-8


@pytest.mark.usefixtures("short_traces")
def test_a_trace_sees_the_tokens_and_not_the_seed(model: Any) -> None:
    sharp = call(model, max_new_tokens=1, temperature=0.01)  # so that a few runs decide
    result = dpassay.trace(sharp, pairs=[([1, 2], [3, 4])], epsilon=1e-3, hostile=False)
    assert [draw.distribution for draw in result.draws] == ["choice"]
    assert result.rules == ("loss-too-large",)


@pytest.fixture
def own(model: Any) -> Iterator[Any]:
    """The settings of the model itself, which are put back afterwards."""
    before = copy.deepcopy(model.generation_config)
    yield model.generation_config
    model.generation_config = before


def clamped(model: Any, *processors: Any, **settings: Any) -> Any:
    processors = processors or (ClampLogits(-1.0, 1.0),)
    config = transformers.GenerationConfig(do_sample=True, max_new_tokens=3, **settings)
    return partial(
        model.generate, logits_processor=transformers.LogitsProcessorList(processors), generation_config=config
    )


def test_what_a_config_leaves_unset_is_taken_from_the_model(model: Any, own: Any) -> None:
    own.temperature = 0.1
    verdict = dpassay.check(clamped(model, top_k=0), epsilon=100)
    assert verdict.epsilon.upper == pytest.approx(3 * token_loss(-1, 1, 0.1, 7), rel=1e-9)
    set_again = dpassay.check(clamped(model, top_k=0, temperature=1.0), epsilon=100)
    assert set_again.epsilon.upper == pytest.approx(3 * token_loss(-1, 1, 1, 7), rel=1e-9)
    own.temperature, own.top_k = 1.0, 3
    assert not dpassay.check(clamped(model), epsilon=100).proven
    own.top_k, own.min_p = 0, 0.9
    assert not dpassay.check(clamped(model), epsilon=100).proven
    own.min_p, own.num_return_sequences = None, 5
    with pytest.raises(dpassay.InputError, match="num_return_sequences=1"):
        dpassay.check(clamped(model), epsilon=100)
    own.num_return_sequences, own.max_new_tokens = 1, 2
    own.do_sample = True
    short = partial(model.generate, logits_processor=[ClampLogits(-1.0, 1.0)], generation_config=None)
    assert str(dpassay.check(short, epsilon=100).text).endswith("times(2)")


class ClampAtFirst(ClampLogits):
    def __call__(self, input_ids: Any, scores: Any) -> Any:
        return super().__call__(input_ids, scores) if input_ids.shape[1] <= 2 else scores


class ClampSomeCalls(ClampLogits):
    calls = 0

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        self.calls += 1
        return super().__call__(input_ids, scores) if self.calls <= 2 else scores


class ClampOneRow(ClampLogits):
    def __call__(self, input_ids: Any, scores: Any) -> Any:
        return torch.cat([scores[:1].clamp(self.low, self.high), scores[1:]])


class ClampLoosely(ClampLogits):
    def __call__(self, input_ids: Any, scores: Any) -> Any:
        return scores.clamp(self.low, self.high) * (1 if input_ids.shape[1] < 3 else 2)


class ClampButAfterOneToken(ClampLogits):
    def __call__(self, input_ids: Any, scores: Any) -> Any:
        return torch.where(input_ids[:, -1:] == 5, scores, super().__call__(input_ids, scores))


@pytest.mark.parametrize("kind", [ClampAtFirst, ClampSomeCalls, ClampOneRow, ClampLoosely, ClampButAfterOneToken])
def test_a_clamp_of_some_steps_only_is_not_believed(model: Any, kind: Any) -> None:
    verdict = dpassay.check(clamped(model, kind(-1.0, 1.0), top_k=0), epsilon=100)
    assert verdict.open
    assert "At step" in verdict.reason
    alone = dpassay.check(transformers.LogitsProcessorList([kind(-1.0, 1.0)]), epsilon=100, dim=9)
    assert alone.open


class ClampShortTexts(ClampLogits):
    def __call__(self, input_ids: Any, scores: Any) -> Any:
        return super().__call__(input_ids, scores) if input_ids.shape[1] < 6 else scores


def test_a_clamp_of_short_texts_only_is_not_believed(model: Any) -> None:
    verdict = dpassay.check(clamped(model, ClampShortTexts(-1.0, 1.0), top_k=0), epsilon=100)
    assert verdict.open
    assert "After a prompt of" in verdict.reason
    assert dpassay.check(transformers.LogitsProcessorList([ClampShortTexts(-1.0, 1.0)]), epsilon=100, dim=9).open


def test_the_steps_of_a_real_call_are_said(model: Any) -> None:
    verdict = dpassay.check(clamped(model, top_k=0), epsilon=100)
    assert verdict.proven
    assert "The scores of 3 steps of a real call agree with this formula." in verdict.reason


class ClampEach(transformers.LogitsProcessor):  # type: ignore[misc, name-defined]
    def __call__(self, input_ids: Any, scores: Any) -> Any:
        limits = torch.arange(1.0, 8.0)
        return torch.minimum(torch.maximum(scores, -limits), limits)


class ClampNothing(transformers.LogitsProcessor):  # type: ignore[misc, name-defined]
    def __call__(self, input_ids: Any, scores: Any) -> None:
        return None


@pytest.mark.parametrize("kind", [ClampEach, ClampNothing])
def test_a_processor_that_cannot_be_tried_gets_a_sentence(model: Any, kind: Any) -> None:
    with pytest.raises(dpassay.InputError, match=f"{kind.__name__} cannot be applied to 2001 logits"):
        dpassay.check(transformers.LogitsProcessorList([kind()]), epsilon=1, dim=7)
    with pytest.raises(dpassay.InputError, match=kind.__name__):
        dpassay.check(clamped(model, kind(), top_k=0), epsilon=1)


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({"temperature": 0.0}, "temperature"),
        ({"stop_strings": ["a"]}, "stop_strings after a clamp has no exact analysis"),
        ({"max_time": 1.0}, "max_time after a clamp has no exact analysis"),
        ({"prompt_lookup_num_tokens": 2}, "not assisted_generation"),
    ],
    ids=lambda one: "" if isinstance(one, str) else next(iter(one)),
)
def test_settings_that_the_formula_does_not_cover_are_named(model: Any, setting: dict[str, Any], said: str) -> None:
    with pytest.raises(dpassay.InputError, match=said):
        dpassay.check(call(model, **{"max_new_tokens": 3, **setting}), epsilon=100)
