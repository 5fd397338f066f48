"""Generation by transformers as something to run, and what real calls of `generate` show of the formula read from it.

A formula for clamped logits is confirmed by a call in which every step starts from logits beyond the limits: the scores
that `generate` then draws from are compared with the formula's at each step. Where the formula says that two inputs can
have no token in common, two such inputs are tried. A formula covers any logits, but the weights of a model bound those
that it can give, so the lower bound on the loss is taken from the first tokens of real prompts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import permutations
from typing import Any

import numpy as np

from dpassay.adapters.confirming import Confirmation
from dpassay.core.guarantee import ApproxDP, Guarantee, PureDP
from dpassay.errors import counted, in_one_line
from dpassay.values import dataclass

NEAR = 1e-3  # difference of log-probabilities that is due to single precision
STEPS = 256  # of generation that are tried at most
ROWS = 4  # texts generated at once
MOST_LOGITS = 100_000  # of a step of processors: texts times tokens
LONGER = (50, 500)  # tokens of the longer texts after which one more is tried
PROMPTS = 12  # of a model whose logits are not clamped


@dataclass(frozen=True)
class Generation:
    """A call of `generate` as a mechanism: from the token numbers of a prompt to those of the output.

    Its randomness comes from torch's generator, which is seeded for each batch.
    """

    call: Any
    ends: tuple[int, ...]  # tokens that end a text

    @property
    def model(self) -> Any:
        """The model that generates."""
        return self.call.func.__self__

    def sample(self, x: Any, n: int, rng: np.random.Generator) -> list[tuple[int, ...]]:
        """Draw n continuations of the prompt, each up to its end."""
        import torch

        prompt = torch.as_tensor([list(x)], device=self.model.device)
        with torch.random.fork_rng(), torch.no_grad():
            # Not by a method of the generator: a trace would mistake the seed for noise of the code.
            torch.manual_seed(int(rng.bit_generator.random_raw()) >> 1)
            drawn = self.call(inputs=prompt.repeat(n, 1), attention_mask=torch.ones_like(prompt).repeat(n, 1))
        begins = 0 if self.model.config.is_encoder_decoder else len(x)
        return [self._ended(row) for row in drawn[:, begins:].tolist()]

    def _ended(self, row: list[int]) -> tuple[int, ...]:
        """The tokens up to the first that ends a text; the rest is padding."""
        stop = next((i for i, token in enumerate(row) if token in self.ends), len(row))
        return tuple(row[: stop + 1])


@dataclass(frozen=True)
class LikelyGeneration(Generation):
    """The same for a model that continues its prompt, with the likelihood of its output."""

    warpers: tuple[Any, ...]

    def log_prob(self, output: Any, x: Any) -> float:
        """The log-probability of a continuation of the prompt, by the processors and the settings that are known."""
        import torch

        tokens = torch.as_tensor([[*x, *output]], device=self.model.device)
        total = 0.0
        with torch.no_grad():
            logits = self.model(tokens).logits[:, len(x) - 1 : -1].float()
            for i, token in enumerate(output):
                scores = logits[:, i]
                for warper in self.warpers:
                    scores = warper(tokens[:, : len(x) + i], scores)
                total += float(scores.log_softmax(-1)[0, token])
        return total


@dataclass(frozen=True)
class Formula:
    """What was read: limits of the logits, the temperature, the number of tokens, and how many a choice is among.

    `favourites` is None if all tokens are kept; otherwise it is the number of tokens that can be all that are left.
    """

    limits: tuple[float, float] | None
    temperature: float
    tokens: int
    favourites: int | None
    greedy: bool


def confirm_call(call: Any, formula: Formula, guarantee: Guarantee) -> Confirmation:
    """What calls of `generate` show of a formula: whether it bounds the loss, and how large the loss is at least."""
    try:
        above = Confirmation(True, "")
        if formula.limits is not None:
            above = _by_steps(call, formula) if formula.favourites is None else _by_favourites(call, formula)
        if not above.agrees:
            return above
        below = _by_prompts(call, formula.greedy, guarantee)
        return replace(below, sentence=f"{above.sentence} {below.sentence}".strip())
    except Exception as error:  # of the model, of a processor, or of the library
        return Confirmation(False, f"A call of generate raised {in_one_line(type(error).__name__, str(error))[:200]}.")


def confirm_processors(processors: Any, formula: Formula, tokens: int) -> Confirmation:
    """What a list of processors shows of a formula: it is applied to texts that grow by one token per step."""
    import torch

    found, rng, rows = None, np.random.default_rng(0), _rows(tokens)
    try:
        with torch.no_grad():
            for length in (*range(1, 17), *LONGER):
                begun = torch.as_tensor(rng.integers(tokens, size=(rows, length)))
                begun[:, -1] = (torch.arange(rows) + rows * (length - 1)) % tokens
                logits = _beyond(formula.limits, tokens, length, rows)
                scores = logits.clone()
                for processor in processors[_last_clamp(processors) :]:
                    scores = processor(begun, scores)
                found = found or _unlike(scores, logits, formula, length)
    except Exception as error:  # of a processor
        said = in_one_line(type(error).__name__, str(error))[:200]
        return Confirmation(False, f"The processors raised {said}.")
    return Confirmation(found is None, found or "The scores of 16 steps agree with this formula.")


def _rows(tokens: int) -> int:
    """How many texts are tried at once: if they are few, one with each token at its end."""
    return max(ROWS, min(tokens, MOST_LOGITS // tokens))


def _by_steps(call: Any, formula: Formula) -> Confirmation:
    """Compare the scores of every step, which starts from logits beyond the limits."""
    seen: list[Any] = []

    def replaced(scores: Any) -> Any:
        seen.append(_beyond(formula.limits, scores.shape[-1], len(seen), len(scores)).to(scores))
        return seen[-1].clone()

    prompts = _prompts(call, _rows(_vocabulary(call)))
    drawn = _generated(call, replaced, min(formula.tokens, STEPS), prompts)
    if len(drawn.sequences) != len(prompts):
        said = f"For {counted(len(prompts), 'prompt')} generate returned {counted(len(drawn.sequences), 'text')}."
        return Confirmation(False, said)
    if len(drawn.scores) > formula.tokens:
        drew = counted(len(drawn.scores), "token")
        return Confirmation(False, f"It drew {drew} where the formula has {formula.tokens}.")
    for step, (scores, logits) in enumerate(zip(drawn.scores, seen, strict=True), start=1):
        if (difference := _unlike(scores, logits, formula, step)) is not None:
            return Confirmation(False, difference)
    steps = len(drawn.scores)
    for prompt in _longer(call):
        seen.clear()
        scores = _generated(call, replaced, 1, prompt).scores[0]
        if (difference := _unlike(scores, seen[0], formula, 1)) is not None:
            return Confirmation(False, f"After a prompt of {counted(prompt.shape[1], 'token')}: {difference}")
    some = "" if steps == formula.tokens else f" of {formula.tokens:,}"
    return Confirmation(True, f"The scores of {steps:,}{some} steps of a real call agree with this formula.")


def _by_favourites(call: Any, formula: Formula) -> Confirmation:
    """Try two inputs that prefer different tokens: no token may be possible for both."""
    import torch

    assert formula.limits is not None
    assert formula.favourites is not None
    (low, high), many = formula.limits, formula.favourites

    def preferring(first: int) -> Callable[[Any], Any]:
        def replaced(scores: Any) -> Any:
            made = torch.full_like(scores, low - 1)
            made[:, first : first + many] = high + 1
            return made

        return replaced

    one, other = (_first_token(call, preferring(first), formula.greedy) for first in (0, many))
    if bool(((one > 0) & (other > 0)).any()):
        return Confirmation(False, "Two inputs that prefer different tokens still have some in common.")
    return Confirmation(True, "Two inputs with no token in common were found by real calls.")


def _first_token(call: Any, replaced: Callable[[Any], Any] | None, greedy: bool, prompts: Any = None) -> Any:
    """The probabilities of the first token, a row per prompt."""
    import torch

    drawn = _generated(call, replaced, 1, prompts)
    if not greedy:
        return drawn.scores[0].double().softmax(-1)
    certain = torch.zeros((len(drawn.sequences), _vocabulary(call)), dtype=torch.float64)
    return certain.scatter(1, drawn.sequences[:, -1:].cpu(), 1.0)


def _by_prompts(call: Any, greedy: bool, guarantee: Guarantee) -> Confirmation:
    """The largest loss of the first token between some prompts, each a single token."""
    import torch

    chosen = np.linspace(0, _vocabulary(call) - 1, min(PROMPTS, _vocabulary(call))).astype(int)
    prompts = torch.as_tensor(chosen, device=call.func.__self__.device)[:, None]
    chances = _first_token(call, None, greedy, prompts).cpu().numpy()
    pairs = [(chances[i], chances[j]) for i, j in permutations(range(len(chances)), 2)]
    apart = max(float(x[y == 0].sum()) for x, y in pairs)  # of outputs that the other prompt never gives
    pure = max(float(np.log(x[(x > 0) & (y > 0)] / y[(x > 0) & (y > 0)]).max(initial=0)) for x, y in pairs) - NEAR
    most = 0.0
    if isinstance(guarantee, PureDP):
        lower = math.inf if apart > NEAR else max(0.0, pure)
        refutes = lower > guarantee.epsilon
    elif isinstance(guarantee, ApproxDP):
        # Of two prompts without a common token nothing is left to rounding.
        alone = any(not ((x > 0) & (y > 0)).any() for x, y in pairs)
        found = max(float(np.maximum(x - math.exp(guarantee.epsilon) * y, 0).sum()) for x, y in pairs)
        most = 1.0 if alone else max(0.0, found - NEAR)
        refutes = most > guarantee.delta
        lower = math.inf if apart - NEAR > guarantee.delta else guarantee.epsilon if refutes else 0.0
    else:
        lower, refutes = (math.inf, True) if apart > NEAR else (0.0, False)
    tried = f"Between {len(prompts)} prompts of one token, the first token that is generated"
    said = f"tells two apart with probability {apart:.3g}" if apart > NEAR else f"loses up to {pure + NEAR:.4g}"
    return Confirmation(True, f"{tried} {said}.", lower, refutes, most)


def _vocabulary(call: Any) -> int:
    return int(call.func.__self__.config.get_text_config().vocab_size)


def _prompts(call: Any, rows: int) -> Any:
    """Prompts of two tokens, each of which ends in another one."""
    import torch

    ends = torch.arange(1, rows + 1, device=call.func.__self__.device)
    return torch.stack([ends.flip(0), ends], dim=1) % _vocabulary(call)


def _longer(call: Any) -> Iterator[Any]:
    """Longer prompts, as far as the model takes them."""
    import torch

    most = getattr(call.func.__self__.config.get_text_config(), "max_position_embeddings", None) or LONGER[-1] + 1
    for length in sorted({min(length, int(most) - 1) for length in LONGER}):
        yield torch.arange(2 * length, device=call.func.__self__.device).reshape(2, -1) % _vocabulary(call)


def _generated(call: Any, replaced: Callable[[Any], Any] | None, steps: int, prompts: Any = None) -> Any:
    """A real call with its scores; `replaced` changes the logits before they are clamped."""
    import torch
    import transformers

    class Replace(transformers.LogitsProcessor):  # type: ignore[misc]
        def __call__(self, input_ids: Any, scores: Any) -> Any:
            assert replaced is not None
            return replaced(scores)

    if prompts is None:
        prompts = _prompts(call, ROWS)
    processors = list(call.keywords.get("logits_processor") or [])
    if replaced is not None:
        processors.insert(_last_clamp(processors), Replace())
    given = {**call.keywords, "logits_processor": transformers.LogitsProcessorList(processors)}
    given |= {"max_new_tokens": steps, "return_dict_in_generate": True, "output_scores": True}
    with quiet(), torch.random.fork_rng(), torch.no_grad():
        return call.func(inputs=prompts, attention_mask=torch.ones_like(prompts), **given)


def is_clamp(processor: Any) -> bool:
    """Whether a processor says that it clamps logits."""
    name = type(processor).__name__.lower()
    return "clip" in name or "clamp" in name


def _last_clamp(processors: Any) -> int:
    return max((i for i, processor in enumerate(processors) if is_clamp(processor)), default=0)


@contextmanager
def quiet() -> Iterator[None]:
    """Without the library's remarks on how it was called."""
    from transformers.utils import logging

    before = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(before)


def _beyond(limits: tuple[float, float] | None, tokens: int, step: int, rows: int) -> Any:
    """Logits within the limits and beyond them, others at each step."""
    import torch

    low, high = limits or (-1.0, 1.0)
    rng = np.random.default_rng(step)
    width = high - low
    near = rng.uniform(low - width, high + width, (rows, tokens))
    far = rng.choice([low - 100 * width, high + 100 * width], (rows, tokens))
    return torch.as_tensor(np.where(rng.random((rows, tokens)) < 0.5, near, far), dtype=torch.float32)


def _unlike(scores: Any, logits: Any, formula: Formula, step: int) -> str | None:
    """How the scores of a step differ from the formula's, as a sentence; None if they agree."""
    kept = logits if formula.limits is None else logits.clamp(*formula.limits)
    expected = (kept.double() / formula.temperature).log_softmax(-1)
    found = scores.to(expected).log_softmax(-1)
    if found.shape != expected.shape:
        return f"At step {step} the scores have the shape {tuple(found.shape)}, not {tuple(expected.shape)}."
    gap = float((found - expected).abs().nan_to_num(math.inf, math.inf, math.inf).max())
    if gap <= NEAR:
        return None
    said = "is excluded" if gap == math.inf else f"has a log-probability that is off by {gap:.3g}"
    return f"At step {step} a token {said}, compared with the formula."


def as_call(thing: Any) -> Any:
    """A model as the call of its `generate`; a call unchanged."""
    return thing if isinstance(thing, partial) else partial(thing.generate)
